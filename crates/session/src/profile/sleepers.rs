//! Threads that do not run, for users who may not trace the scheduler: who is blocked is looked at every few milliseconds, without being
//! stopped.
//!
//! Each look is a sample that stands for the time since the one before. A thread that has not run since then has the stack that it had, and
//! costs a line of `/proc`.

use super::gather::Gather;
use events::Event;
use std::collections::BTreeSet;
use unprivileged::threads::Reader;
use views::profile::Labels;

/// Between two looks, ns.
const PERIOD: u64 = 5_000_000;
/// The most processes that are looked at.
const MOST: usize = 4096;

/// Looks at threads.
pub struct Sleepers {
    reader: Reader,
    pids: BTreeSet<i32>,
    last: u64,
}

impl Default for Sleepers {
    fn default() -> Sleepers {
        Sleepers { reader: Reader::new(true, None), pids: BTreeSet::new(), last: 0 }
    }
}

impl Sleepers {
    /// Learns which processes there are.
    pub fn observe(&mut self, ev: &Event<'_>) {
        let pid = ev.pid() as i32;
        if ev.schema.class != events::Class::Process {
            return;
        }
        match ev.schema.name {
            "exit" if ev.pid() == ev.tid() => _ = self.pids.remove(&pid),
            "exec" | "attach" | "map" if self.pids.len() < MOST => {
                // What was read of its code is of before.
                self.reader.forget(pid);
                self.pids.insert(pid);
            }
            _ => {}
        }
    }

    /// Adds the time since the last look to each thread that does not run.
    pub fn look(&mut self, now: u64, gather: &mut Gather) {
        let Sleepers { reader, pids, last } = self;
        if now.saturating_sub(*last) < PERIOD {
            return;
        }
        let since = if *last == 0 { now } else { *last };
        *last = now;
        pids.retain(|pid| {
            let Ok(threads) = reader.asleep(*pid) else { return false };
            for t in threads {
                let comm = String::from_utf8_lossy(&t.name);
                let who = Labels { pid: *pid as u32, tid: t.tid as u32, comm: &comm };
                let weight = now.saturating_sub(since);
                if weight > 0 {
                    gather.add_blocked(who, (&t.frames, t.ended as u8), weight, now);
                }
            }
            true
        });
    }
}
