//! What is known of the traced processes at the moment of an event: threads, descriptors and stacks, derived from events alone.

use super::fdtable::FdTable;
use super::stacks::Stacks;
use crate::resolver::Resolver;
use events::Event;
use events::functions::Table;
use events::names::{FdName, Frame, FunctionName, Names, NoNames, Stack};
use std::cell::RefCell;
use symbols::demangle;

/// The state of what is traced.
#[derive(Default)]
pub struct World {
    fds: FdTable,
    stacks: Stacks,
    functions: Table,
    /// Names functions of stacks, where they are to be shown.
    resolver: Option<RefCell<Resolver>>,
}

impl World {
    /// Keeps names of descriptors too.
    pub fn keep_descriptors(&mut self) {
        self.fds.enable();
    }

    /// Names the functions of stacks from now on: [`Names::frames`].
    pub fn resolve_stacks(&mut self, resolver: Resolver) {
        self.resolver = Some(RefCell::new(resolver));
    }

    /// What names functions, if anything does.
    pub fn resolver(&mut self) -> Option<&mut Resolver> {
        self.resolver.as_mut().map(RefCell::get_mut)
    }

    /// Stacks that did not fit into memory: events that refer to them are shown without.
    pub fn stacks_not_held(&self) -> u64 {
        self.stacks.not_held()
    }

    /// Learns what `ev` makes known, before it is shown.
    #[inline]
    pub fn before(&mut self, ev: &Event<'_>) {
        if let Some(resolver) = &mut self.resolver {
            resolver.get_mut().note(ev);
        }
        self.fds.before(ev);
        self.stacks.note(ev);
        self.note_function(ev);
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
        match self.resolver.as_ref().and_then(|r| r.try_borrow_mut().ok()) {
            Some(mut resolver) => resolver.frames(pid, time, stack, each),
            None => NoNames.frames(pid, time, stack, each),
        }
    }
}
