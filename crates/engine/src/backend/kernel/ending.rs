//! The end of a session whose targets have all ended: what they still do on their way out.
//!
//! ```text
//! sched_process_exit ─► memory is freed, the parent is told, the last switch ─► sched_process_free
//! (the event of the end)     events of tracepoints, clocks, counters             a traced thread is gone
//! ```
//!
//! Since Linux 6.16 a task announces its end before it frees its memory. The programs count the threads that have reached their end
//! and those that are gone; the session is over when the numbers are equal. A thread that nobody collects is never gone: those are
//! waited for as long as they need to switch for the last time.

use super::Drain;
use std::sync::atomic::Ordering;
use std::time::Duration;
use sys::{process, time};

/// How long a thread that has ended may take to switch for the last time, ns.
const LAST_SWITCH: u64 = 50_000_000;
/// How long nothing may happen before threads that have not ended are given up, ns: a process that frees much memory goes on having
/// events.
const PATIENCE: u64 = 10_000_000_000;

impl Drain {
    /// Whether all traced threads have reached their end. The counters know of ends whose events found a ring full.
    pub(super) fn all_ended(&self) -> bool {
        let (begun, ended, _) = self.loaded.threads();
        !self.whole && (self.alive.is_empty() || ended >= self.attached + begun)
    }

    /// Forgets threads that have ended before the programs could count it.
    pub(super) fn forget_ended(&mut self) {
        self.alive.retain(|tid| !process::has_ended(*tid as i32));
    }

    /// Goes on until the threads that have reached their end are gone. How many are not, and may have had more events.
    pub(super) fn see_them_out(&mut self) -> u64 {
        let mut last = time::monotonic();
        let mut seen = (0, 0);
        while self.loaded.sees_threads_go && !self.shared.stop.load(Ordering::Acquire) {
            let now = time::monotonic();
            let some = self.round(now);
            let (_, ended, gone) = self.loaded.threads();
            if gone >= ended {
                return 0;
            }
            if some || seen != (ended, gone) {
                (last, seen) = (now, (ended, gone));
            }
            let waits = now.saturating_sub(last);
            if waits > LAST_SWITCH && self.leaving.iter().all(|tid| process::has_ended(*tid as i32)) {
                return 0;
            }
            if waits > PATIENCE {
                return ended - gone;
            }
            self.pause(Duration::from_millis(1));
        }
        0
    }
}
