//! What is known of the traced processes at the moment of an event: threads, descriptors and stacks, derived from events alone.

use super::fdtable::FdTable;
use super::stacks::Stacks;
use crate::resolver::Resolver;
use events::functions::Table;
use events::names::{FdName, Frame, FunctionName, Names, NoNames, Stack};
use events::redact;
use events::rules::Rules;
use events::stream::Scope;
use events::traces::{self, Origin, Renumber};
use events::{Class, Event, StreamId};
use std::cell::RefCell;
use std::sync::Arc;
use symbols::demangle;

/// The state of what is traced.
#[derive(Default)]
pub struct World {
    fds: FdTable,
    stacks: Stacks,
    functions: Table,
    /// Names functions of stacks, where they are to be shown: one for each trace.
    resolvers: Vec<RefCell<Resolver>>,
    /// Where the events of each trace come from, if there are several.
    origins: Vec<Origin>,
    /// Texts that are not to be shown.
    rules: Option<Arc<dyn Rules>>,
    /// With rules: descriptors and threads as they are, for filters.
    whole: Option<FdTable>,
    /// The processor whose stream the event is of that is being shown.
    cpu: Option<u32>,
}

impl World {
    /// Knows nothing yet, and will give no text that the rules are about.
    pub fn redacted(rules: Option<Arc<dyn Rules>>) -> World {
        let mut world =
            World { whole: rules.is_some().then(FdTable::default), rules: rules.clone(), ..World::default() };
        world.functions.redact(rules);
        world
    }

    /// The event as it is to be shown, where there are rules.
    #[inline]
    pub fn redact(&self, ev: &Event<'_>) -> Option<Vec<u8>> {
        let rules = self.rules.as_ref()?;
        let mut shown = Vec::new();
        redact::event(ev, &**rules, &mut shown);
        Some(shown)
    }

    /// Keeps names of descriptors too.
    pub fn keep_descriptors(&mut self) {
        self.fds.enable();
        self.whole.iter_mut().for_each(FdTable::enable);
    }

    /// Names the functions of stacks from now on: [`Names::frames`].
    pub fn resolve_stacks(&mut self, resolver: Resolver) {
        self.resolvers.push(RefCell::new(resolver));
    }

    /// The events are those of several traces ([`events::traces`]), which come from there.
    pub fn join(&mut self, origins: Vec<Origin>) {
        self.origins = origins;
    }

    /// What names functions, if anything does: that of the first trace.
    pub fn resolver(&mut self) -> Option<&mut Resolver> {
        self.resolvers.first_mut().map(RefCell::get_mut)
    }

    /// What could not be resolved, a line for each file.
    pub fn troubles(&mut self) -> Vec<String> {
        let mut all: Vec<String> = Vec::new();
        for (nth, resolver) in self.resolvers.iter_mut().enumerate() {
            let of = self.origins.get(nth).map(|origin| format!("{}: ", origin.trace)).unwrap_or_default();
            all.extend(resolver.get_mut().troubles().into_iter().map(|line| of.clone() + &line));
        }
        all
    }

    /// Stacks that did not fit into memory: events that refer to them are shown without.
    pub fn stacks_not_held(&self) -> u64 {
        self.stacks.not_held()
    }

    /// Learns which stream the next event is of.
    #[inline]
    pub fn comes_from(&mut self, stream: StreamId) {
        self.cpu = match stream.scope() {
            Scope::Cpu(cpu) => Some(cpu),
            _ => None,
        };
    }

    /// Learns what an event makes known, before it is `shown`. Files of what was mapped are found by their own names.
    #[inline]
    pub fn before(&mut self, original: &Event<'_>, shown: &Event<'_>) {
        self.note_code(original);
        self.fds.before(shown);
        self.whole.iter_mut().for_each(|whole| whole.before(original));
        self.stacks.note(shown);
        self.note_function(original);
    }

    /// Learns what a process has mapped, as its own trace has it.
    #[inline]
    fn note_code(&mut self, ev: &Event<'_>) {
        if self.resolvers.is_empty() {
            return;
        }
        let nth = traces::of(ev.tid());
        let Some(resolver) = self.resolvers.get_mut(nth).map(RefCell::get_mut) else { return };
        if nth == 0 || ev.schema.class != Class::Process {
            return resolver.note(ev);
        }
        let mut bytes = ev.bytes.to_vec();
        Renumber::default().event(&mut bytes);
        if let Ok(ev) = Event::parse(&bytes) {
            resolver.note(&ev);
        }
    }

    /// Learns a traced function, where `ev` reports one.
    pub fn note_function(&mut self, ev: &Event<'_>) {
        self.functions.note(ev, |symbol| Some(demangle::of(symbol)?.plain));
    }

    /// The traced functions.
    pub fn functions(&self) -> &Table {
        &self.functions
    }

    /// Names for filters, which have whole events.
    pub fn whole(&self) -> &dyn Names {
        self.whole.as_ref().map_or(self, |whole| whole)
    }

    /// Learns what holds after an event.
    #[inline]
    pub fn after(&mut self, original: &Event<'_>, shown: &Event<'_>) {
        self.fds.after(shown);
        self.whole.iter_mut().for_each(|whole| whole.after(original));
    }
}

impl Names for World {
    fn fd(&self, pid: u32, fd: i32) -> Option<&FdName> {
        self.fds.fd(pid, fd)
    }
    fn new_fd(&self, pid: u32, fd: i32) -> Option<&FdName> {
        self.fds.new_fd(pid, fd)
    }
    fn registered(&self, index: i32) -> Option<&FdName> {
        self.fds.registered(index)
    }
    fn comm(&self, tid: u32) -> Option<&[u8]> {
        self.fds.comm(tid)
    }
    fn ids(&self, tid: u32) -> (Option<u32>, Option<u32>) {
        self.fds.ids(tid)
    }
    fn cpu(&self) -> Option<u32> {
        self.cpu
    }
    fn origin(&self, id: u32) -> Option<&Origin> {
        self.origins.get(traces::of(id))
    }
    fn stack(&self, id: u64) -> Option<Stack<'_>> {
        self.stacks.get(id)
    }
    fn function(&self, number: u32) -> Option<FunctionName<'_>> {
        self.functions.get(number)
    }
    fn signature(&self, number: u32) -> Option<&events::values::Signature> {
        self.functions.signature(number)
    }
    fn frames(&self, pid: u32, time: u64, stack: &Stack<'_>, each: &mut dyn FnMut(&Frame<'_>)) {
        // It is busy only where `each` asks again.
        let own = traces::own(pid);
        match self.resolvers.get(traces::of(pid)).and_then(|r| r.try_borrow_mut().ok()) {
            Some(mut resolver) => match &self.rules {
                Some(rules) => resolver.frames(own, time, stack, &mut |frame| redact::frame(&**rules, frame, each)),
                None => resolver.frames(own, time, stack, each),
            },
            None => NoNames.frames(pid, time, stack, each),
        }
    }
}
