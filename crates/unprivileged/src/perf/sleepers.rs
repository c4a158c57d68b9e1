//! Threads that do not run: who is blocked is looked at every few milliseconds, without being stopped.
//!
//! ```text
//! /proc/PID/task: who does not run ─► the same as before? ─┬─ yes: the time since the last look is added
//!                                                          └─ no, or it was long: an event, with the time and the stack
//! ```
//!
//! Each look stands for the time since the one before. A thread that has not run since then has the stack that it had, and costs a line of
//! `/proc`.

use super::rings::looked_at;
use crate::threads::Reader;
use engine::request::probe_enabling::ProbeEnabling;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use sys::{proc, time};
use unwind::Ended;

/// A thread that stays blocked is an event so often, ns.
const TOLD: u64 = 250_000_000;
/// The most processes that are looked at.
const MOST: usize = 4096;

/// For how long a thread did not run.
pub struct Slept<'s> {
    /// Its process.
    pub pid: u32,
    /// Thread.
    pub tid: u32,
    /// The processor on which it ran last.
    pub cpu: u32,
    /// When that was seen.
    pub time: u64,
    /// How long, ns.
    pub ns: u64,
    /// Its frames.
    pub frames: &'s [u64],
    /// Why there are no more.
    pub ended: Ended,
}

/// Takes what is seen.
pub type Tell<'t> = &'t mut dyn FnMut(&Slept<'_>);

/// A thread that does not run.
struct Asleep {
    pid: u32,
    cpu: u32,
    frames: Arc<[u64]>,
    ended: Ended,
    /// What was not told yet, ns.
    ns: u64,
    /// It was there at this look.
    seen: u64,
}

/// Looks at threads for one enabling.
pub struct Sleepers {
    /// The number of the enabling.
    pub nth: usize,
    period: u64,
    reader: Reader,
    /// The time of the last look; 0: there was none, or the session was stopped.
    last: u64,
    asleep: HashMap<u32, Asleep>,
}

impl Sleepers {
    /// For those enablings that want it.
    pub fn of(enablings: &[&Arc<ProbeEnabling>]) -> Vec<Sleepers> {
        let one = |(nth, e): (usize, &&Arc<ProbeEnabling>)| {
            let (reader, asleep) = (Reader::new(true, None), HashMap::new());
            Some(Sleepers { nth, period: looked_at(e)?, reader, last: 0, asleep })
        };
        enablings.iter().enumerate().filter_map(one).collect()
    }

    /// What was read of a process's code is of before.
    pub fn forget(&mut self, pid: u32) {
        self.reader.forget(pid as i32);
    }

    /// The time until the next look, which is at the time of so long before.
    pub fn until_next(&self, before: u64) -> Duration {
        Duration::from_nanos((self.last + self.period + before).saturating_sub(time::monotonic()))
    }

    /// Adds the time since the last look to each thread of these processes that does not run, if it is time to look.
    pub fn look(&mut self, now: u64, pids: impl Iterator<Item = u32>, tell: Tell<'_>) {
        if now.saturating_sub(self.last) < self.period {
            return;
        }
        let since = if self.last == 0 { 0 } else { now - self.last };
        for pid in pids.take(MOST) {
            let Ok(threads) = self.reader.asleep(pid as i32) else {
                self.forget(pid);
                continue;
            };
            for t in threads {
                self.add((pid, t.tid as u32), (t.frames, t.ended), (since, now), tell);
            }
        }
        self.last = now;
        self.asleep.retain(|tid, thread| {
            let stays = thread.seen == now;
            if !stays || thread.ns >= TOLD {
                thread.tell(*tid, now, tell);
            }
            stays
        });
    }

    /// A thread does not run. A stack that is the very one of the last look is that of a thread that has not run since.
    fn add(&mut self, who: (u32, u32), stack: (Arc<[u64]>, Ended), (ns, now): (u64, u64), tell: Tell<'_>) {
        let ((pid, tid), (frames, ended)) = (who, stack);
        match self.asleep.get_mut(&tid) {
            Some(thread) if Arc::ptr_eq(&thread.frames, &frames) => {
                thread.ns += ns;
                thread.seen = now;
            }
            before => {
                before.into_iter().for_each(|thread| thread.tell(tid, now, tell));
                let cpu = proc::cpu(tid as i32).unwrap_or_default().into();
                self.asleep.insert(tid, Asleep { pid, cpu, frames, ended, ns, seen: now });
            }
        }
    }

    /// A thread has ended: what was not told yet is told while it is known.
    pub fn ended(&mut self, tid: u32, time: u64, tell: Tell<'_>) {
        let time = time.max(self.last);
        self.asleep.remove(&tid).into_iter().for_each(|mut thread| thread.tell(tid, time, tell));
    }

    /// The session ends or is stopped: what was not told yet is told.
    pub fn pause(&mut self, now: u64, tell: Tell<'_>) {
        self.last = 0;
        self.asleep.drain().for_each(|(tid, mut thread)| thread.tell(tid, now, tell));
    }
}

impl Asleep {
    fn tell(&mut self, tid: u32, time: u64, tell: Tell<'_>) {
        let ns = std::mem::take(&mut self.ns);
        if ns > 0 {
            let Asleep { pid, cpu, ended, .. } = *self;
            tell(&Slept { pid, tid, cpu, time, ns, frames: &self.frames, ended });
        }
    }
}
