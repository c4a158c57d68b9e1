//! Allocations of programs: what is asked for, what comes, and the events that say so.
//!
//! ```text
//!  records of the agent ─► backend::agent::allocations: in order of time ─┬► Consumer: a model of the heap, without events between
//!                                                                         └► events `heap:malloc`, … ─► recorder, views
//! ```

pub mod classes;

use crate::pipeline::filter::Expression;
use events::Schema;
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
    /// So many entries of the process are missing.
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

/// A probe of the heap that is enabled, with its filter.
#[derive(Clone, Debug)]
pub struct Enabled {
    /// Which of [`classes::ALL`].
    pub probe: classes::Probe,
    /// With the stack of the allocation.
    pub stack: bool,
    /// Only events that pass this.
    pub filter: Option<Arc<Expression>>,
    /// The filter as it was written.
    pub text: Option<String>,
}

impl PartialEq for Enabled {
    fn eq(&self, other: &Enabled) -> bool {
        (self.probe, self.stack, &self.text) == (other.probe, other.stack, &other.text)
    }
}
impl Eq for Enabled {}

impl Enabled {
    /// Its probe and its filter.
    pub fn label(&self) -> String {
        let filter = self.text.as_ref().map(|text| format!(" /{}/", text.replace(['\n', '\r'], " ")));
        self.probe.name().to_string() + &filter.unwrap_or_default()
    }
}

/// What is recorded of allocations.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// Events that are delivered; none where there is a consumer.
    pub probes: Vec<Enabled>,
    /// Forks too, so that a reader of the events knows what a child begins with.
    pub forks: bool,
    /// Stacks are walked.
    pub stacks: bool,
    /// One allocation for so many bytes, on average; 0: all.
    pub sample: u64,
    /// The trace is compressed. Times are those of a clock that ticks every millisecond, where that is enough for the order.
    pub packed: bool,
    /// Takes everything in the place of events.
    pub consumer: Option<Shared>,
}

impl Wanted {
    /// Events of these probes. `whole`: there is a filter of all events, beside those that probes have themselves.
    pub fn events(probes: Vec<Enabled>, whole: bool) -> Wanted {
        use classes::Probe::{Free, Malloc, Mmap, Munmap};
        let has = |probe| probes.iter().any(|e| e.probe == probe && e.filter.is_none()) && !whole;
        // Without all allocations and frees, nobody asks what a child has from its parent.
        let forks = has(Malloc) && has(Free) || has(Mmap) && has(Munmap);
        let stacks = probes.iter().any(|e| e.stack);
        Wanted { probes, forks, stacks, ..Wanted::default() }
    }

    /// The class of a probe's events.
    pub fn class(&self, probe: classes::Probe) -> Option<&'static Schema> {
        probe.class(self.has_stack(probe))
    }

    /// Whether events of a probe have a stack: all of them, if one of its enablings wants it.
    pub fn has_stack(&self, probe: classes::Probe) -> bool {
        self.probes.iter().any(|e| e.probe == probe && e.stack)
    }

    /// The classes of the probes that are asked for.
    pub fn asked(&self) -> impl Iterator<Item = &'static Schema> {
        let asked = classes::ALL.iter().map(|p| p.0).filter(|p| self.probes.iter().any(|e| e.probe == *p));
        asked.filter_map(|p| self.class(p))
    }

    /// The classes of all events that come.
    pub fn classes(&self) -> impl Iterator<Item = &'static Schema> {
        let forks = [classes::Probe::Fork, classes::Probe::Child];
        self.asked().chain(forks.into_iter().filter(|_| self.forks).filter_map(|p| p.class(false)))
    }
}
