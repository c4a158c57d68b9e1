//! The last event of each thread, if that was an allocation: a block that the next one frees was temporary.

use super::Who;
use events::hash::Table;

/// The most threads that are remembered. Beyond, all are forgotten, and so is at most one temporary block of each.
const MOST: usize = 65_536;

/// The block that a thread has just allocated, by process and thread.
#[derive(Debug, Default)]
pub struct Threads {
    /// The thread of the last event: most events have the same one as the one before.
    who: Who,
    last: Option<u64>,
    others: Table<Who, u64>,
}

impl Threads {
    fn switch(&mut self, who: Who) {
        if who != self.who {
            self.switch_to(who);
        }
    }

    fn switch_to(&mut self, who: Who) {
        if let Some(address) = self.last {
            if self.others.len() >= MOST {
                self.others.clear();
            }
            self.others.insert(self.who, address);
        }
        self.last = self.others.remove(&who);
        self.who = who;
    }

    /// A thread has allocated a block.
    pub fn allocated(&mut self, who: Who, address: u64) {
        self.switch(who);
        self.last = Some(address);
    }

    /// A thread frees a block: whether its last event was to allocate that.
    pub fn frees(&mut self, who: Who, address: u64) -> bool {
        self.switch(who);
        self.last.take() == Some(address)
    }

    /// A process has ended.
    pub fn end(&mut self, process: u32) {
        self.others.retain(|who, _| who.process != process);
        if self.who.process == process {
            self.last = None;
        }
    }
}
