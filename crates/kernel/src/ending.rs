//! The end of a session whose targets have all ended: what they still do on their way out.
//!
//! ```text
//! sched_process_exit ─► memory is freed, the parent is notified, last switch ─► sched_process_free
//! (the event of the end)     events of tracepoints, clocks, counters             a traced thread is gone
//! ```
//!
//! Since Linux 6.16 a task announces its end before it frees its memory. The programs count the threads that have reached their end
//! and those that are gone; the session is over when the numbers are equal. A thread that nobody collects is never gone: those are
//! waited for as long as they need to switch for the last time.

use super::{Each, Kernel, Phase};
use sys::{process, time};

/// How long a thread that has ended may take to switch for the last time, ns.
const LAST_SWITCH: u64 = 50_000_000;
/// After this time without any event, threads that have not ended are given up, ns. A process that frees much memory still has
/// events.
const PATIENCE: u64 = 10_000_000_000;

/// What happened last among threads that are ending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Patience {
    last: u64,
    seen: (u64, u64),
}

impl Patience {
    /// Begins to wait.
    pub(super) fn now() -> Patience {
        Patience { last: time::monotonic(), seen: (0, 0) }
    }
}

impl Kernel {
    /// Whether all traced threads have reached their end. The counters know of ends whose events found a ring full.
    pub(super) fn all_ended(&self) -> bool {
        let (begun, ended, _) = self.loaded.threads();
        !self.whole && (self.alive.is_empty() || ended as i64 >= self.attached + begun as i64)
    }

    /// Forgets threads that have ended before the programs could count it.
    pub(super) fn forget_ended(&mut self) {
        self.alive.retain(|tid| !process::has_ended(*tid as i32));
    }

    /// A round of a session whose threads have reached their end, until they are gone; those that are not in the end are counted, because
    /// they may have had more events.
    pub(super) fn see_them_out(&mut self, mut patience: Patience, each: Each<'_>) -> usize {
        let now = time::monotonic();
        let n = self.round(now, true, each);
        let (_, ended, gone) = self.loaded.threads();
        if n > 0 || patience.seen != (ended, gone) {
            patience = Patience { last: now, seen: (ended, gone) };
        }
        let waits = now.saturating_sub(patience.last);
        let all_gone = !self.loaded.sees_threads_go
            || gone >= ended
            || waits > LAST_SWITCH && self.leaving.iter().all(|tid| process::has_ended(*tid as i32));
        if !all_gone && waits <= PATIENCE && !self.stopping {
            self.phase = Phase::Ending(patience);
            return n;
        }
        self.cut_off = if all_gone || self.stopping { 0 } else { ended - gone };
        self.phase = Phase::Over;
        // All that will come has come: it is shown while the programs are detached.
        n + self.round(u64::MAX, true, each)
    }
}
