//! In-flight notices: which threads are inside a call, and the events that report it.
//!
//! ```text
//! every 100 ms: task iterator, calls that began in (last bound, now − 200 ms] ─► strings ─► stacks ─► process:inflight ─► merge
//! ```
//!
//! The windows are disjoint, so that a call gets one notice at most and nothing need be remembered of it. A record bears the
//! moment at which the program saw the call, and so stands before the call's end. Where iterators cannot be loaded there are no
//! notices.

use super::Kernel;
use super::task_iterator::TaskIterator;
use bpf::syscalls::iterator::{HEAD, KEPT, STATE, TRAILER};
use bpf::syscalls::state;
use engine::backend::copied::UNKNOWN;
use engine::backend::in_flight::InFlight;
use engine::own_events;
use engine::pipeline::merge::Merge;
use events::generated as g;
use std::collections::HashSet;
use std::io;
use sys::ptrace::FrameRegisters;
use sys::{proc, time};

/// The interval between two looks for long calls, ns.
const PERIOD: u64 = 100_000_000;

/// A call that a thread was seen in.
pub struct Seen {
    pub call: InFlight,
    /// What a walk up its stack begins with; none where that is not known.
    pub registers: Option<FrameRegisters>,
    /// The kernel's stack, innermost frame first.
    pub kernel: Vec<u64>,
}

/// The registers in the trailer of a record, of a call with this number.
fn registers(words: &[u8], nr: u64) -> Option<FrameRegisters> {
    /// Their numbers in the ABI: rsp, rbp, rbx, r12 to r15.
    const NUMBERS: [usize; KEPT - 1] = [7, 6, 3, 12, 13, 14, 15];
    let mut words = words.as_chunks::<8>().0.iter().map(|w| u64::from_le_bytes(*w));
    let pc = words.next().filter(|pc| *pc != 0)?;
    let mut by_number = [UNKNOWN; 16];
    for (number, value) in NUMBERS.into_iter().zip(&mut words) {
        by_number[number] = value;
    }
    // Its thread may have been in another call when it was attached to.
    words.next().filter(|number| *number == nr)?;
    Some(FrameRegisters { pc, by_number, fs_base: words.next()? })
}

/// Reads the iterator's records; records whose thread has left the call since are skipped.
pub fn parse(mut bytes: &[u8]) -> Vec<Seen> {
    let word = |b: &[u8], at: usize| b.get(at..at + 8).and_then(|b| b.try_into().ok()).map_or(0, u64::from_le_bytes);
    let mut found = Vec::new();
    while let Some((head, rest)) = bytes.split_at_checked(HEAD) {
        let len = word(head, 16).min(u64::from(u32::MAX)) as usize;
        let Some((s, rest)) = rest.split_at_checked(STATE) else { break };
        let Some((tails, rest)) = rest.split_at_checked(len) else { break };
        let Some((end, rest)) = rest.split_at_checked(TRAILER) else { break };
        let len = word(end, TRAILER - 8).min(u64::from(u32::MAX)) as usize;
        let Some((kernel, rest)) = rest.split_at_checked(len) else { break };
        bytes = rest;
        let field = |at: i16| word(s, at as usize);
        let (tid, pid) = (word(head, 8) as u32, (word(head, 8) >> 32) as u32);
        if word(end, 0) != field(state::FLAGS) || word(end, 8) != field(state::START) || tid == 0 || pid == 0 {
            continue;
        }
        let registers = registers(&end[16..], field(state::NR));
        let call = InFlight {
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
            stacks: None,
        };
        let kernel = kernel.as_chunks::<8>().0.iter().map(|w| u64::from_le_bytes(*w)).collect();
        found.push(Seen { call, registers, kernel });
    }
    found
}

/// When to look for long calls.
pub struct Watch {
    /// A call longer than this is noticed, ns; 0 for never.
    threshold: u64,
    /// Calls that began until then have had their notice.
    until: u64,
    next: u64,
}

impl Watch {
    /// Starts with this threshold in ms; 0 for never.
    pub fn new(threshold_ms: u32) -> Watch {
        Watch { threshold: u64::from(threshold_ms) * 1_000_000, until: 0, next: time::monotonic() + PERIOD }
    }

    /// The window of the calls that have become long since it last looked; none where it is too early to look.
    fn window(&mut self, now: u64) -> Option<(u64, u64)> {
        if self.threshold == 0 || now < self.next {
            return None;
        }
        self.next = now + PERIOD;
        Some((self.until, now.saturating_sub(self.threshold)))
    }
}

impl Kernel {
    /// Notices for the calls that have become long since it last looked.
    pub(super) fn notice_long_calls(&mut self, now: u64) {
        let Some((after, until)) = self.watch.window(now) else { return };
        // If a read fails, the next one covers its window too.
        if let Ok(calls) = self.read_calls(after, until) {
            self.watch.until = until;
            // Those found at attach have had theirs.
            for call in calls.iter().filter(|c| !c.attached) {
                self.merge.push(&call.notice(0));
            }
        }
    }

    /// Reports the calls that threads were found in at attach.
    pub(super) fn notice_found(&mut self, mut calls: Vec<InFlight>) {
        self.walk(&mut calls);
        calls.iter().for_each(|call| self.merge.push(&call.notice(1)));
    }

    /// The calls that traced threads are in; none without an iterator, and in a session that is stopped.
    pub(super) fn calls_in_flight(&mut self) -> Vec<InFlight> {
        self.read_calls(0, u64::MAX).unwrap_or_default()
    }

    fn read_calls(&mut self, after: u64, until: u64) -> io::Result<Vec<InFlight>> {
        let Some(iterator) = self.iterator() else { return Ok(Vec::new()) };
        let mut calls: Vec<_> = parse(&iterator.read(after, until)?).into_iter().map(|seen| seen.call).collect();
        let read: Vec<bool> = calls.iter_mut().map(|c| c.complete(self.held.limits)).collect();
        if read.contains(&true) {
            // What was read counts only if the thread was in the call all the while.
            let still = still(iterator, after, until)?;
            for (call, read) in calls.iter_mut().zip(read) {
                if read && !still.contains(&(call.tid, call.start)) {
                    call.strip();
                }
            }
        }
        self.walk(&mut calls);
        Ok(calls)
    }

    /// The iterator, while the session records.
    fn iterator(&self) -> Option<&TaskIterator> {
        self.loaded.iterator.as_ref().filter(|_| !self.held.stopped)
    }

    /// The last events of all threads that are in a call, where every thread is traced.
    pub(super) fn leave_all(&mut self) {
        let calls = self.calls_in_flight();
        let now = time::monotonic();
        for call in calls {
            self.merge.push(&InFlight { now, ..call.clone() }.notice(2));
            self.merge.push(&own_events::process(&g::P_DETACH, now, (call.pid, call.tid), &[], &[]));
        }
    }
}

/// The calls that threads are in, by thread and start.
pub fn still(iterator: &TaskIterator, after: u64, until: u64) -> io::Result<HashSet<(u32, u64)>> {
    Ok(parse(&iterator.read(after, until)?).iter().map(|seen| (seen.call.tid, seen.call.start)).collect())
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
        let words = [end.0, end.1, 0x400, 0x7000, 5, 6, 7, 8, 9, 10, 257, 0x1230, 16, 0xf1, 0xf2];
        let trailer = words.map(u64::to_le_bytes).concat();
        [&head[..], &s, tails, &trailer].concat()
    }

    #[test]
    fn records_that_do_not_hold_together_are_left_out() {
        let all =
            [record(1, (1, 100), b"a\0"), record(1, (0, 100), b""), record(1, (1, 101), b""), record(5, (5, 100), b"")];
        let found = parse(&all.concat());
        assert_eq!(found.iter().map(|f| f.call.compat).collect::<Vec<_>>(), [false, true]);
        let call = &found[0].call;
        assert_eq!(found[1].kernel, [0xf1, 0xf2]);
        assert_eq!((call.tid, call.pid, call.now, &call.tails[..]), (7, 6, 900, &b"a\0"[..]));
        let half = all.concat();
        assert_eq!(parse(&half[..half.len() - 1]).len(), 1);
    }

    #[test]
    fn registers_belong_to_the_call_that_was_seen() {
        let of = |nr| registers(&record(1, (1, 100), b"")[HEAD + STATE + 16..], nr);
        let found = of(257).expect("registers");
        assert_eq!((found.pc, found.fs_base), (0x400, 0x1230));
        assert_eq!(found.by_number[..8], [UNKNOWN, UNKNOWN, UNKNOWN, 6, UNKNOWN, UNKNOWN, 5, 0x7000]);
        assert_eq!(found.by_number[11..], [UNKNOWN, 7, 8, 9, 10]);
        assert!(of(0).is_none());
    }
}
