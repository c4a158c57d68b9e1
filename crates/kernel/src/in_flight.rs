//! In-flight notices: which threads are inside a call, and the events that report it.
//!
//! ```text
//! every 100 ms: task iterator, calls that began in (last bound, now − 200 ms] ─► strings ─► process:inflight ─► merge
//! ```
//!
//! The windows are disjoint, so that a call gets one notice at most and nothing need be remembered of it. A record bears the
//! moment at which the program saw the call, and so stands before the call's end. Where iterators cannot be loaded there are no
//! notices.

use super::task_iterator::TaskIterator;
use bpf::syscalls::iterator::{HEAD, STATE, TRAILER};
use bpf::syscalls::state;
use engine::backend::in_flight::InFlight;
use engine::capture::Limits;
use engine::own_events;
use engine::pipeline::merge::Merge;
use events::generated as g;
use std::collections::HashSet;
use std::io;
use sys::{proc, time};

/// The interval between two looks for long calls, ns.
const PERIOD: u64 = 100_000_000;

/// Reads the iterator's records; records whose thread has left the call since are skipped.
fn parse(mut bytes: &[u8]) -> Vec<InFlight> {
    let word = |b: &[u8], at: usize| b.get(at..at + 8).and_then(|b| b.try_into().ok()).map_or(0, u64::from_le_bytes);
    let mut found = Vec::new();
    while let Some((head, rest)) = bytes.split_at_checked(HEAD) {
        let len = word(head, 16).min(u64::from(u32::MAX)) as usize;
        let Some((s, rest)) = rest.split_at_checked(STATE) else { break };
        let Some((tails, rest)) = rest.split_at_checked(len) else { break };
        let Some((end, rest)) = rest.split_at_checked(TRAILER) else { break };
        bytes = rest;
        let field = |at: i16| word(s, at as usize);
        let (tid, pid) = (word(head, 8) as u32, (word(head, 8) >> 32) as u32);
        if word(end, 0) != field(state::FLAGS) || word(end, 8) != field(state::START) || tid == 0 || pid == 0 {
            continue;
        }
        found.push(InFlight {
            now: word(head, 0),
            tid,
            pid,
            compat: field(state::FLAGS) & state::COMPAT as u64 != 0,
            attached: field(state::FLAGS) & state::ATTACHED as u64 != 0,
            start: field(state::START),
            nr: field(state::NR),
            args: std::array::from_fn(|i| field(state::ARGS + 8 * i as i16)),
            caps: field(state::CAPS) as u16,
            cpu: field(state::CPU) as u16,
            tails: tails.to_vec(),
        });
    }
    found
}

/// Looks for long calls now and then.
pub struct Watch {
    /// A call longer than this is noticed, ns; 0 for never.
    threshold: u64,
    limits: Limits,
    /// Calls that began until then have had their notice.
    until: u64,
    next: u64,
}

impl Watch {
    /// Starts with this threshold in ms; 0 for never.
    pub fn new(threshold_ms: u32, limits: Limits) -> Watch {
        Watch { threshold: u64::from(threshold_ms) * 1_000_000, limits, until: 0, next: time::monotonic() + PERIOD }
    }

    /// Notices for the calls that have become long since it last looked.
    pub fn look(&mut self, iterator: &TaskIterator, now: u64, merge: &mut Merge) {
        if self.threshold == 0 || now < self.next {
            return;
        }
        self.next = now + PERIOD;
        let until = now.saturating_sub(self.threshold);
        // If a read fails, the next one covers its window too.
        if let Ok(calls) = self.read(iterator, self.until, until) {
            self.until = until;
            // Those found at attach have had theirs.
            for call in calls.iter().filter(|c| !c.attached) {
                merge.push(&call.notice(0));
            }
        }
    }

    fn read(&self, iterator: &TaskIterator, after: u64, until: u64) -> io::Result<Vec<InFlight>> {
        let mut calls = parse(&iterator.read(after, until)?);
        let read: Vec<bool> = calls.iter_mut().map(|c| c.complete(self.limits)).collect();
        if read.contains(&true) {
            // What was read counts only if the thread was in the call all the while.
            let still: HashSet<_> = parse(&iterator.read(after, until)?).iter().map(|c| (c.tid, c.start)).collect();
            for (call, read) in calls.iter_mut().zip(read) {
                if read && !still.contains(&(call.tid, call.start)) {
                    call.strip();
                }
            }
        }
        Ok(calls)
    }

    /// The threads that are in a call, where every thread is traced.
    pub fn leave_all(&self, iterator: Option<&TaskIterator>, merge: &mut Merge) {
        let now = time::monotonic();
        for call in self.calls(iterator) {
            merge.push(&InFlight { now, ..call.clone() }.notice(2));
            merge.push(&own_events::process(&g::P_DETACH, now, (call.pid, call.tid), &[], &[]));
        }
    }

    /// The last events of the threads that are released: the calls that they are in, and that they are no longer traced.
    pub fn leave(&self, iterator: Option<&TaskIterator>, threads: &HashSet<u32>, merge: &mut Merge) {
        leave(&self.calls(iterator), threads, merge);
    }

    /// The calls that traced threads are in; none without an iterator.
    pub fn calls(&self, iterator: Option<&TaskIterator>) -> Vec<InFlight> {
        iterator.and_then(|i| self.read(i, 0, u64::MAX).ok()).unwrap_or_default()
    }
}

/// The last events of threads that are let go: those of `calls` that they are in, and that they are no longer traced.
pub fn leave(calls: &[InFlight], threads: &HashSet<u32>, merge: &mut Merge) {
    let mut threads: Vec<u32> = threads.iter().copied().collect();
    threads.sort_unstable();
    let now = time::monotonic();
    for tid in threads {
        let call = calls.iter().find(|c| c.tid == tid);
        if let Some(call) = call {
            merge.push(&InFlight { now, ..call.clone() }.notice(2));
        }
        if let Some(pid) = call.map(|c| c.pid).or_else(|| proc::process_of(tid as i32).map(|p| p as u32)) {
            merge.push(&own_events::process(&g::P_DETACH, now, (pid, tid), &[], &[]));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(flags: u64, end: (u64, u64), tails: &[u8]) -> Vec<u8> {
        let mut s = vec![0u8; STATE];
        let mut put = |at: i16, v: u64| s[at as usize..at as usize + 8].copy_from_slice(&v.to_le_bytes());
        for (at, v) in [(state::FLAGS, flags), (state::START, 100), (state::NR, 257), (state::ARGS + 8, 0x1000)] {
            put(at, v);
        }
        put(state::CAPS, if tails.is_empty() { 0 } else { 1 << 2 });
        let head = [900u64, 7 | 6 << 32, tails.len() as u64].map(u64::to_le_bytes).concat();
        [&head[..], &s, tails, &end.0.to_le_bytes(), &end.1.to_le_bytes()].concat()
    }

    #[test]
    fn records_that_do_not_hold_together_are_left_out() {
        let all =
            [record(1, (1, 100), b"a\0"), record(1, (0, 100), b""), record(1, (1, 101), b""), record(5, (5, 100), b"")];
        let found = parse(&all.concat());
        assert_eq!(found.iter().map(|f| f.compat).collect::<Vec<_>>(), [false, true]);
        assert_eq!((found[0].tid, found[0].pid, found[0].now, &found[0].tails[..]), (7, 6, 900, &b"a\0"[..]));
        let half = all.concat();
        assert_eq!(parse(&half[..half.len() - 1]).len(), 1);
    }
}
