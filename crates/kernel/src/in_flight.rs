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
use engine::capture::{self, Limits, Memory};
use engine::own_events;
use engine::pipeline::merge::Merge;
use engine::request::select::Calls;
use events::encode::{self, Fixed};
use events::generated as g;
use events::layout::{CAP_32BIT, CAP_NO_RESULT, CAP_START_UNKNOWN, NO_CPU};
use events::schema::Schema;
use std::collections::HashSet;
use std::io;
use sys::{proc, time};

const ARCH_X86_64: u64 = 0xc000_003e;
const ARCH_I386: u64 = 0x4000_0003;
/// The interval between two looks for long calls, ns.
const PERIOD: u64 = 100_000_000;

/// A call that a thread is in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InFlight {
    /// When it was seen.
    pub now: u64,
    /// Thread.
    pub tid: u32,
    /// Process.
    pub pid: u32,
    /// Flags of [`state`].
    pub flags: i32,
    /// Start, or when its process was attached to.
    pub start: u64,
    /// Number.
    pub nr: u64,
    /// Arguments.
    pub args: [u64; 6],
    /// Capture bits of `tails`.
    pub caps: u16,
    /// Processor at entry.
    pub cpu: u16,
    /// Tails of entry, empty where none were read.
    pub tails: Vec<u8>,
}

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
            flags: field(state::FLAGS) as i32,
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

struct Remote(i32);

impl Memory for Remote {
    fn read(&mut self, addr: u64, buf: &mut [u8]) -> usize {
        sys::mem::read(self.0, addr, buf).unwrap_or(0)
    }
}

impl InFlight {
    fn compat(&self) -> bool {
        self.flags & state::COMPAT != 0
    }

    /// The call's schema, and its arguments in the order of the schema.
    fn class(&self) -> (&'static Schema, [u64; 8]) {
        let mut args = [0; 8];
        match events::registry::by_number(self.nr).filter(|_| !self.compat()) {
            Some(s) => {
                args[..6].copy_from_slice(&self.args);
                (s, args)
            }
            None => {
                (args[0], args[1]) = (self.nr, if self.compat() { ARCH_I386 } else { ARCH_X86_64 });
                args[2..].copy_from_slice(&self.args);
                (&g::C_RAW, args)
            }
        }
    }

    /// Whether its events are wanted.
    pub fn wanted(&self, calls: &Calls) -> bool {
        let (schema, _) = self.class();
        if schema.id == g::C_RAW.id { calls.has_unknown() } else { calls.contains(schema) }
    }

    /// Reads what the programs did not read at entry; returns whether anything was read.
    fn complete(&mut self, limits: Limits) -> bool {
        if self.compat() {
            // The state has the registers of a 64-bit call.
            match proc::call_in_flight(self.pid as i32, self.tid as i32) {
                Some((nr, args)) if nr as u64 == self.nr => self.args = args,
                _ => self.args = [0; 6],
            }
        }
        self.complete_from(&mut Remote(self.tid as i32), limits)
    }

    fn complete_from(&mut self, mem: &mut impl Memory, limits: Limits) -> bool {
        let (schema, args) = self.class();
        let Some(layout) = events::registry::layout(schema.id).filter(|l| l.tails.iter().any(|t| !t.out)) else {
            return false;
        };
        // The memory of an execve may be that of the new program by now.
        if !self.tails.is_empty() || matches!(schema.name, "execve" | "execveat") {
            return false;
        }
        let call = capture::Call { schema, layout, args: &args, result: None };
        self.caps = capture::tails(&call, mem, limits, 0, &mut self.tails);
        true
    }

    /// Forgets what was read.
    fn strip(&mut self) {
        self.tails.clear();
        self.caps = 0;
    }

    /// Appends the call's event without a result.
    fn call(&self, attach: u64, tails: bool, out: &mut Vec<u8>) {
        let (schema, args) = self.class();
        let Some(layout) = events::registry::layout(schema.id) else { return };
        let unknown = attach == 1 || self.flags & state::ATTACHED != 0;
        let more = if unknown { CAP_START_UNKNOWN } else { 0 } | if self.compat() { CAP_32BIT } else { 0 };
        let whole = tails && !self.tails.is_empty();
        let f = Fixed {
            time: self.now,
            cap: if whole { self.caps } else { 0 } | CAP_NO_RESULT | more,
            tid: self.tid,
            pid: self.pid,
            start: self.start,
            cpu_in: self.cpu,
            ..Fixed::default()
        };
        encode::fixed(out, schema, layout, &f, &args);
        if whole {
            out.extend_from_slice(&self.tails);
        }
        for spec in layout.tails.iter().filter(|t| t.out || !whole) {
            encode::empty_tail(out, spec.shape);
        }
    }

    /// The notice: `attach` 0 for a long call, 1 for one found at attach, 2 for one left at the end.
    pub fn notice(&self, attach: u64) -> Vec<u8> {
        let mut call = Vec::new();
        self.call(attach, true, &mut call);
        if call.len() > usize::from(u16::MAX) || events::Event::parse(&call).is_err() {
            // Too much for a notice: the end will show it all.
            call.clear();
            self.call(attach, false, &mut call);
        }
        own_events::process(&g::P_INFLIGHT, self.now, (self.pid, self.tid), &[0, attach], &[&call])
    }
}

/// The call that a thread is blocked in before it is traced.
pub fn at_attach(pid: i32, tid: i32, limits: Limits) -> Option<InFlight> {
    let (nr, args) = proc::call_in_flight(pid, tid)?;
    let mut call = InFlight {
        tid: tid as u32,
        pid: pid as u32,
        flags: state::IN_CALL | state::ATTACHED,
        nr: nr as u64,
        args,
        cpu: NO_CPU,
        ..InFlight::default()
    };
    call.complete_from(&mut Remote(tid), limits);
    call.now = time::monotonic();
    call.start = call.now;
    Some(call)
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
            for call in calls.iter().filter(|c| c.flags & state::ATTACHED == 0) {
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
    use events::Event;

    const LIMITS: Limits = Limits { string: 32, text: 0, verbose: false, keep: events::keep::KeepByCall::ALL };

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

    struct Path;
    impl Memory for Path {
        fn read(&mut self, addr: u64, buf: &mut [u8]) -> usize {
            let all = b"/etc/x\0";
            let n = buf.len().min(all.len());
            buf[..n].copy_from_slice(&all[..n]);
            if addr == 0x1000 { n } else { 0 }
        }
    }

    #[test]
    fn records_that_do_not_hold_together_are_left_out() {
        let all =
            [record(1, (1, 100), b"a\0"), record(1, (0, 100), b""), record(1, (1, 101), b""), record(5, (5, 100), b"")];
        let found = parse(&all.concat());
        assert_eq!(found.iter().map(|f| f.flags).collect::<Vec<_>>(), [1, 5]);
        assert_eq!((found[0].tid, found[0].pid, found[0].now, &found[0].tails[..]), (7, 6, 900, &b"a\0"[..]));
        let half = all.concat();
        assert_eq!(parse(&half[..half.len() - 1]).len(), 1);
    }

    #[test]
    fn a_notice_holds_the_call_as_far_as_it_is_known() {
        let mut f = parse(&record(1, (1, 100), b"")).remove(0);
        let show = |f: &InFlight, attach| {
            let bytes = f.notice(attach);
            let ev = Event::parse(&bytes).unwrap();
            let inner = Event::parse(ev.bytes_of("call")).unwrap();
            assert_eq!((ev.time(), ev.tid(), ev.pid(), ev.value_of("attach")), (900, 7, 6, attach));
            (inner.schema.name, inner.start(), inner.caps(), inner.bytes_of("filename").to_vec())
        };
        assert_eq!(show(&f, 0), ("openat", 100, CAP_NO_RESULT, vec![]));
        assert!(f.complete_from(&mut Path, LIMITS) && !f.complete_from(&mut Path, LIMITS));
        assert_eq!(show(&f, 0), ("openat", 100, CAP_NO_RESULT | 1 << 2, b"/etc/x".to_vec()));
        assert_eq!(show(&f, 1).2, CAP_NO_RESULT | CAP_START_UNKNOWN | 1 << 2);
        f.flags |= state::ATTACHED;
        assert_eq!(show(&f, 2).2, CAP_NO_RESULT | CAP_START_UNKNOWN | 1 << 2);
        // Tails that are none of the call's.
        f.tails = b"no end".to_vec();
        f.flags = state::IN_CALL;
        assert_eq!(show(&f, 0), ("openat", 100, CAP_NO_RESULT, vec![]));
        f.flags |= state::COMPAT;
        f.strip();
        assert_eq!(show(&f, 0), ("raw", 100, CAP_NO_RESULT | CAP_32BIT, vec![]));
    }

    #[test]
    fn memory_that_an_execve_may_have_replaced_is_not_read() {
        let mut f = parse(&record(1, (1, 100), b"")).remove(0);
        for nr in [59, 322] {
            f.nr = nr;
            f.args[0] = 0x1000;
            assert!(!f.complete_from(&mut Path, LIMITS) && f.tails.is_empty(), "{nr}");
        }
    }
}
