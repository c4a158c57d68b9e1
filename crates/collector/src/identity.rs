//! Who has made a record: what filters may ask of it.

use engine::request::expression::Expression;
use lang::Context;
use std::collections::HashMap;
use sys::proc;

/// How old the name and the ids of a thread may be, ns.
pub const LOOK: u64 = 100_000_000;
/// The most threads that are remembered.
pub const MOST_THREADS: usize = 1 << 14;

/// The name and the ids of a thread, as far as they are known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Known {
    /// Its name.
    pub comm: Option<Vec<u8>>,
    /// Its user and group.
    pub ids: Option<(u32, u32)>,
}

impl Known {
    /// What is known, completed by what is known elsewhere.
    pub fn or(self, other: &Known) -> Known {
        Known { comm: self.comm.or_else(|| other.comm.clone()), ids: self.ids.or(other.ids) }
    }

    /// What a thread is now, as far as it is there and is asked for.
    pub fn look(tid: u32, asks: Asks) -> Known {
        let tid = tid as i32;
        let comm = if asks.comm { proc::comm(tid) } else { None };
        let ids = if asks.ids { proc::ids(tid) } else { None };
        Known { comm, ids }
    }

    /// In the form in which filters ask.
    pub fn context(&self) -> Context<'_> {
        Context {
            comm: self.comm.as_deref(),
            uid: self.ids.map(|ids| ids.0),
            gid: self.ids.map(|ids| ids.1),
            cpu: None,
        }
    }
}

/// What filters ask of threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Asks {
    /// Names.
    pub comm: bool,
    /// Users and groups.
    pub ids: bool,
}

impl Asks {
    /// All that these filters ask for.
    pub fn of<'f>(filters: impl Iterator<Item = &'f Expression>) -> Asks {
        filters.fold(Asks::default(), |a, f| Asks { comm: a.comm | f.asks_comm(), ids: a.ids | f.asks_ids() })
    }

    /// Whether they ask for anything.
    pub fn any(self) -> bool {
        self.comm || self.ids
    }
}

/// Who has made what: threads as they are now, or were when they were looked at last, or as their processes were when those began.
#[derive(Debug, Default)]
pub struct Identities {
    /// What processes were when they began.
    processes: HashMap<u32, Known>,
    /// Threads, and when it was looked what they are, ns.
    threads: HashMap<u32, (u64, Known)>,
}

impl Identities {
    /// A process begins a program, or is a new child: its name and its user and group.
    pub fn begin(&mut self, pid: u32, known: Known) {
        self.processes.insert(pid, known);
    }

    /// A process has ended.
    pub fn end(&mut self, pid: u32) {
        self.processes.remove(&pid);
    }

    /// What a thread of a process was at a time, as far as it `asks`.
    pub fn of(&mut self, (pid, tid): (u32, u32), time: u64, asks: Asks) -> &Known {
        if self.threads.len() > MOST_THREADS {
            self.threads.clear();
        }
        let (looked, known) = self.threads.entry(tid).or_default();
        if *looked == 0 || time.saturating_sub(*looked) > LOOK {
            *looked = time.max(1);
            let process = self.processes.get(&pid).cloned().unwrap_or_default();
            *known = Known::look(tid, asks).or(known).or(&process);
        }
        known
    }
}
