//! What can be true of a process. It may write anything into the memory that it shares with trapline, so what it says of itself is believed
//! as far as the kernel and the clock allow.

use std::collections::HashSet;
use std::sync::OnceLock;
use std::time::Instant;

/// When the first session of this trapline began, and how many threads the machine had begun then. A process is known later than it begins:
/// by then threads of it may have come and gone.
static BEGUN: OnceLock<(Instant, Option<u64>)> = OnceLock::new();

/// A session begins: before any of its processes.
pub fn begin_session() {
    BEGUN.get_or_init(|| (Instant::now(), sys::proc::begun()));
}

/// What a lost record costs a thread at least, and what an attempt to execute a program does, ns.
const RECORD: u64 = 5;
const PROGRAM: u64 = 1_000;
/// How much earlier than its session a process may have begun, ns.
const EARLIER: u64 = 100_000_000;

/// What a process can have done since the session began.
pub struct Bounds {
    begun: Instant,
    processors: u64,
    /// Threads that the machine had begun then, but for those that the process has.
    before: Option<u64>,
    /// How many can have begun since then, as was last looked, and whether that was in this round.
    known: (u64, bool),
    /// Threads that the kernel's list has had when it was looked at.
    seen: HashSet<u32>,
    /// Threads that it has never had then: those that were gone by then, and invented ones.
    unseen: HashSet<u32>,
    /// It has said what cannot be true.
    pub broken: bool,
}

impl Bounds {
    /// Of a process that has this many threads.
    pub fn new(threads: usize) -> Bounds {
        let (begun, before) = *BEGUN.get_or_init(|| (Instant::now(), sys::proc::begun()));
        let processors = sys::processors::online().map_or(1, |all| all.len() as u64);
        Bounds {
            begun,
            processors,
            before: before.map(|n| n.saturating_sub(threads as u64)),
            known: (0, false),
            seen: HashSet::new(),
            unseen: HashSet::new(),
            broken: false,
        }
    }

    /// A round of reading begins: threads that write in it have begun by now.
    pub fn begin_round(&mut self) {
        self.known.1 = false;
    }

    /// The kernel has these threads.
    pub fn have_seen<'t>(&mut self, threads: impl Iterator<Item = &'t u32>) {
        self.seen.extend(threads);
    }

    /// Whether a thread with this id can have been there, though the kernel's list has never had it: there are no more of them than
    /// the machine has begun threads.
    pub fn has_thread(&mut self, tid: u32) -> bool {
        if self.seen.contains(&tid) || self.unseen.contains(&tid) {
            return true;
        }
        let room = |most: u64, unseen: &HashSet<u32>| (unseen.len() as u64) < most;
        if !room(self.known.0, &self.unseen) && !self.known.1 {
            let begun = sys::proc::begun().zip(self.before).map(|(now, before)| now.saturating_sub(before));
            // The agent may have been there before this process was known.
            self.known = (begun.unwrap_or(1 << 12) + 1, true);
        }
        let can_be = room(self.known.0, &self.unseen);
        if can_be {
            self.unseen.insert(tid);
        }
        self.broken |= !can_be;
        can_be
    }

    fn at_most(&mut self, said: u64, ns: u64) -> u64 {
        let passed = self.begun.elapsed().as_nanos() as u64 + EARLIER;
        let can_be = said <= passed.saturating_mul(self.processors) / ns;
        self.broken |= !can_be;
        if self.broken { 0 } else { said }
    }

    /// How many records were lost, beside those from `before`: 0 where that is not known, because it has said what cannot be true.
    pub fn lost(&mut self, said: u64, before: u64) -> u64 {
        if self.at_most(said.saturating_add(before), RECORD) == 0 { 0 } else { said }
    }

    /// How many programs were executed, in the same way.
    pub fn programs(&mut self, said: u64) -> u64 {
        self.at_most(said, PROGRAM)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_true_is_not_believed() {
        let mut bounds = Bounds::new(1);
        assert_eq!((bounds.lost(1000, 5), bounds.programs(3), bounds.lost(0, 0)), (1000, 3, 0));
        assert!(!bounds.broken);
        assert_eq!((bounds.lost(u64::MAX, 1), bounds.lost(1, u64::MAX), bounds.programs(1 << 40)), (0, 0, 0));
        assert!(bounds.broken && bounds.lost(1, 0) == 0);
    }

    #[test]
    fn threads_are_no_more_than_the_machine_has_begun() {
        let mut bounds = Bounds::new(1);
        bounds.before = None;
        let known = (0..1 << 16).filter(|tid| bounds.has_thread(*tid)).count();
        assert_eq!(known, (1 << 12) + 1);
        assert!(bounds.broken && bounds.has_thread(7) && !bounds.has_thread(1 << 17));
    }
}
