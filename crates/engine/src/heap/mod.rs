//! Allocations of programs: what comes, and the events that say so. What is asked for is in [`crate::request::heap_enabling`].
//!
//! ```text
//!  records of the agent ─► backend::agent::allocations: in order of time ─┬► Consumer: a model of the heap, without events between
//!                                                                         └► events `heap:malloc`, … ─► recorder, views
//! ```

pub mod classes;

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Where the agent's code is: frames there are those of what stands in for the program's handlers of signals.
pub const AGENT: std::ops::Range<u64> = abi::CODE;

/// What kind of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A block of an allocator.
    Malloc,
    /// A mapping.
    Mmap,
}

/// What has happened to the heap of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// Memory was allocated.
    Alloc {
        /// A block, or a mapping.
        kind: Kind,
        /// Its first byte.
        address: u64,
        /// Bytes that were asked for.
        size: u64,
        /// The hash of the stack; 0: not known.
        stack: u64,
    },
    /// A block was freed.
    Free {
        /// Its first byte.
        address: u64,
    },
    /// Memory was unmapped: a mapping, a part of one, or of several.
    Unmap {
        /// Its first byte.
        address: u64,
        /// Bytes.
        len: u64,
    },
    /// The process is about to fork.
    Fork {
        /// Which of its forks.
        number: u64,
    },
    /// The process begins as a child of another one, with the heap that this had at that fork.
    Child {
        /// The parent, by its number in the session.
        parent: u32,
        /// Which of the parent's forks.
        number: u64,
    },
}

/// It, with a time and a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// ns of the monotonic clock. Of an allocation after it, of a free before it.
    pub time: u64,
    /// The thread, as trapline numbers it.
    pub tid: u32,
    /// What.
    pub what: What,
}

/// Takes what happens to the heaps of a session's processes.
///
/// A process is a program in a process: it has a number in the session, and another one after exec(2). Entries of one process come in order
/// of time; those of a parent up to a fork before those of the child.
pub trait Consumer: Send {
    /// A process begins.
    fn began(&mut self, process: u32, pid: u32, comm: &[u8]);
    /// The frames of a stack, innermost first, as `unwind::Frame` has them. It may come after the first entry that has its hash.
    fn stack(&mut self, process: u32, time: u64, hash: u64, ended: u8, frames: &[u64]);
    /// What has happened.
    fn entries(&mut self, process: u32, entries: &[Entry]);
    /// The process has ended, or executes another program.
    fn ended(&mut self, process: u32, executes: bool);
    /// This many entries of the process are missing.
    fn lost(&mut self, process: u32, entries: u64);
    /// What has happened before this moment (ns) has come.
    fn settled(&mut self, until: u64) {
        let _ = until;
    }
}

/// A consumer that is shared with who shows what it has.
#[derive(Clone)]
pub struct Shared(Arc<Mutex<dyn Consumer>>);

impl Shared {
    /// Shares a consumer.
    pub fn new<C: Consumer + 'static>(consumer: &Arc<Mutex<C>>) -> Shared {
        Shared(Arc::clone(consumer) as Arc<Mutex<dyn Consumer>>)
    }

    /// The consumer, for a moment.
    pub fn lock(&self) -> MutexGuard<'_, dyn Consumer + 'static> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Shared")
    }
}

impl PartialEq for Shared {
    fn eq(&self, other: &Shared) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}
impl Eq for Shared {}
