//! What is known of the traced processes at the moment of an event: threads, descriptors and stacks, derived from events alone.

use super::fdtable::FdTable;
use super::stacks::Stacks;
use events::Event;
use events::names::{FdName, Names, Stack};

/// The state of what is traced.
#[derive(Default)]
pub struct World {
    fds: FdTable,
    stacks: Stacks,
}

impl World {
    /// Keeps names of descriptors too.
    pub fn keep_descriptors(&mut self) {
        self.fds.enable();
    }

    /// Learns what `ev` makes known, before it is shown.
    pub fn before(&mut self, ev: &Event<'_>) {
        self.fds.before(ev);
        self.stacks.note(ev);
    }

    /// Learns what holds after `ev`.
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
}
