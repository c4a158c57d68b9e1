//! What is known of the traced processes at the moment of an event: threads, descriptors and stacks, derived from events alone.

use super::fdtable::FdTable;
use super::stacks::Stacks;
use crate::resolver::Resolver;
use events::functions::Table;
use events::names::{FdName, Frame, FunctionName, Names, NoNames, Stack};
use events::traces::{self, Origin, Renumber};
use events::{Class, Event};
use std::cell::RefCell;
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
}

impl World {
    /// Keeps names of descriptors too.
    pub fn keep_descriptors(&mut self) {
        self.fds.enable();
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

    /// Learns what `ev` makes known, before it is shown.
    #[inline]
    pub fn before(&mut self, ev: &Event<'_>) {
        self.note_code(ev);
        self.fds.before(ev);
        self.stacks.note(ev);
        self.note_function(ev);
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

    /// Learns what holds after `ev`.
    #[inline]
    pub fn after(&mut self, ev: &Event<'_>) {
        self.fds.after(ev);
    }
}

impl Names for World {
    fn fd(&self, pid: u32, fd: i32) -> Option<&FdName> {
        self.fds.fd(pid, fd)
    }
    fn new_fd(&self, pid: u32, fd: i32) -> Option<&FdName> {
        self.fds.new_fd(pid, fd)
    }
    fn comm(&self, tid: u32) -> Option<&[u8]> {
        self.fds.comm(tid)
    }
    fn ids(&self, tid: u32) -> (Option<u32>, Option<u32>) {
        self.fds.ids(tid)
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
        match self.resolvers.get(traces::of(pid)).and_then(|r| r.try_borrow_mut().ok()) {
            Some(mut resolver) => resolver.frames(traces::own(pid), time, stack, each),
            None => NoNames.frames(pid, time, stack, each),
        }
    }
}
