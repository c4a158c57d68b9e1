//! A call that a thread is in: what is known of it before it ends.
//!
//! ```text
//! number, arguments, start ─► strings of its memory ─► process:inflight, with the call's event in it
//! ```

use crate::capture::{self, Limits, Memory};
use crate::own_events;
use crate::request::select::Calls;
use events::encode::{self, Fixed};
use events::generated as g;
use events::layout::{CAP_32BIT, CAP_NO_RESULT, CAP_START_UNKNOWN, NO_CPU};
use events::schema::Schema;
use events::stacks::FIELDS;
use sys::{proc, time};

const ARCH_X86_64: u64 = 0xc000_003e;
const ARCH_I386: u64 = 0x4000_0003;

/// A call that a thread is in.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct InFlight {
    /// When it was seen.
    pub now: u64,
    /// Thread.
    pub tid: u32,
    /// Process.
    pub pid: u32,
    /// It is a call of 32-bit code.
    pub compat: bool,
    /// It began before its thread was traced.
    pub attached: bool,
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
    /// The class of its events, which has stacks, and their ids: the kernel's, and that of its thread. None where there is no stack.
    pub stacks: Option<(&'static Schema, [u64; 2])>,
}

struct Remote(i32);

impl Memory for Remote {
    fn read(&mut self, addr: u64, buf: &mut [u8]) -> usize {
        sys::mem::read(self.0, addr, buf).unwrap_or(0)
    }
}

impl InFlight {
    /// The call's schema, and its arguments in the order of the schema.
    pub fn class(&self) -> (&'static Schema, [u64; 8]) {
        let mut args = [0; 8];
        match events::registry::by_number(self.nr).filter(|_| !self.compat) {
            Some(s) => {
                args[..6].copy_from_slice(&self.args);
                (s, args)
            }
            None => {
                (args[0], args[1]) = (self.nr, if self.compat { ARCH_I386 } else { ARCH_X86_64 });
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

    /// [`InFlight::complete_from`] the memory of its thread.
    pub fn complete(&mut self, limits: Limits) -> bool {
        if self.compat {
            // The state has the registers of a 64-bit call.
            match proc::call_in_flight(self.pid as i32, self.tid as i32) {
                Some((nr, args)) if nr as u64 == self.nr => self.args = args,
                _ => self.args = [0; 6],
            }
        }
        self.complete_from(&mut Remote(self.tid as i32), limits)
    }

    /// Reads from `mem` what the programs did not read at entry; returns whether anything was read.
    pub fn complete_from(&mut self, mem: &mut impl Memory, limits: Limits) -> bool {
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
    pub fn strip(&mut self) {
        self.tails.clear();
        self.caps = 0;
    }

    /// Appends the call's event without a result.
    pub fn call(&self, attach: u64, tails: bool, out: &mut Vec<u8>) {
        let (mut schema, mut args) = self.class();
        if let Some((class, ids)) = self.stacks {
            schema = class;
            for (name, id) in FIELDS.iter().zip(ids) {
                let at = class.args.iter().position(|arg| arg.name == *name);
                at.and_then(|at| args.get_mut(at)).into_iter().for_each(|arg| *arg = id);
            }
        }
        let Some(layout) = events::registry::layout(schema.id) else { return };
        let unknown = attach == 1 || self.attached;
        let more = if unknown { CAP_START_UNKNOWN } else { 0 } | if self.compat { CAP_32BIT } else { 0 };
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
        attached: true,
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

#[cfg(test)]
mod tests {
    use super::*;
    use events::Event;

    const LIMITS: Limits = Limits { string: 32, text: 0, verbose: false, keep: events::keep::KeepByCall::ALL };

    struct Path;
    impl Memory for Path {
        fn read(&mut self, addr: u64, buf: &mut [u8]) -> usize {
            let all = b"/etc/x\0";
            let n = buf.len().min(all.len());
            buf[..n].copy_from_slice(&all[..n]);
            if addr == 0x1000 { n } else { 0 }
        }
    }

    fn openat() -> InFlight {
        InFlight { now: 900, tid: 7, pid: 6, start: 100, nr: 257, args: [0, 0x1000, 0, 0, 0, 0], ..InFlight::default() }
    }

    #[test]
    fn a_notice_holds_the_call_as_far_as_it_is_known() {
        let mut f = openat();
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
        f.attached = true;
        assert_eq!(show(&f, 2).2, CAP_NO_RESULT | CAP_START_UNKNOWN | 1 << 2);
        // Tails that are none of the call's.
        f.tails = b"no end".to_vec();
        f.attached = false;
        assert_eq!(show(&f, 0), ("openat", 100, CAP_NO_RESULT, vec![]));
        f.compat = true;
        f.strip();
        assert_eq!(show(&f, 0), ("raw", 100, CAP_NO_RESULT | CAP_32BIT, vec![]));
    }

    #[test]
    fn memory_that_an_execve_may_have_replaced_is_not_read() {
        let mut f = openat();
        for nr in [59, 322] {
            f.nr = nr;
            f.args[0] = 0x1000;
            assert!(!f.complete_from(&mut Path, LIMITS) && f.tails.is_empty(), "{nr}");
        }
    }
}
