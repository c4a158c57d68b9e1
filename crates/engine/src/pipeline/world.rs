//! What is known of the traced processes at the moment of an event: threads and descriptors, derived from events alone.

use super::fdtable::FdTable;
use events::Event;
use events::names::{FdName, Names};

/// The state of what is traced.
#[derive(Default)]
pub struct World {
    fds: FdTable,
}

impl World {
    /// Keeps names of descriptors too.
    pub fn keep_descriptors(&mut self) {
        self.fds.enable();
    }

    /// Learns what `ev` makes known, before it is shown.
    pub fn before(&mut self, ev: &Event<'_>) {
        self.fds.before(ev);
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
}
