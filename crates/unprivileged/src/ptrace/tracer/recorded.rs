//! The ptracer's side of calls that processes record themselves ([`crate::ptrace::intercept`]): records in, events out; and threads that have
//! stopped in the code which writes them.

use super::Tracer;
use crate::ptrace::emit::{Emitter, End};
use crate::ptrace::fds;
use crate::ptrace::intercept::{Captures, Intercept, Record, Sorted, Then};
use crate::ptrace::thread::{Pending, Thread};
use engine::capture::{self, Limits, Memory};
use events::layout::NO_CPU;
use events::schema::Schema;
use events::types::Type;
use std::io;
use sys::intercept::{self, At, Slot};
use sys::ptrace::{self, Change, Status, SyscallInfo};
use sys::time;

/// While calls are recorded: how often records are looked for, µs, and how often where there were none lately. A ring has room for what a
/// thread records in 800 µs at most.
const BUSY: u32 = 400;
const IDLE: u32 = 10_000;
/// How often the ptracer wakes otherwise, µs.
pub const ALWAYS: u32 = 100_000;
/// How far two readings of the clocks, and what a processor sees of another one's memory, may be apart, ns.
const SKEW: u64 = 20_000;
/// How long a record that is not complete is waited for, ns.
const LATEST: u64 = 100_000_000;
/// Looks without a record until they become rare.
const PATIENCE: u32 = 64;

const SIGTRAP: i32 = 5;
/// An instruction was executed with the trap flag (`include/uapi/asm-generic/siginfo.h`).
const TRAP_TRACE: i32 = 2;
const SIGBUS: i32 = 7;
const SIGSEGV: i32 = 11;
const SIGSTOP: i32 = 19;
/// A thread leaves the code after so many instructions, or something is wrong.
const MOST_STEPS: usize = 1 << 18;

/// Records that were taken out of slots, until they are events.
#[derive(Default)]
pub struct Batch {
    bytes: Vec<u8>,
    /// When a call ended, by the time stamp counter; its thread; where its record begins.
    ends: Vec<(u64, i32, usize)>,
    /// Looks without a record.
    idle: u32,
    /// How often the ptracer wakes, µs.
    every: u32,
    /// All calls that have ended until then are events.
    settled: u64,
}

impl Tracer {
    /// Makes events of what was recorded until now, in the order of time.
    pub(super) fn drain(&mut self) {
        let Some(code) = self.intercept.as_mut() else { return };
        let began = time::monotonic();
        let Batch { bytes, ends, idle, settled, .. } = &mut self.batch;
        bytes.clear();
        ends.clear();
        let (mut lost, mut slots, mut behind) = (0, 0, false);
        for (tid, t) in &mut self.threads {
            let Some(slot) = &mut t.slot else { continue };
            slots += 1;
            let first = ends.len();
            // A record that becomes complete from here on is that of a call which ends after `began`.
            behind |= slot.is_behind();
            if !slot.drain(bytes, |at| ends.push((0, *tid, at))) {
                lost += 1;
            }
            for end in &mut ends[first..] {
                end.0 = Record::parse(&bytes[end.2..]).map_or(0, |r| r.times().1);
            }
        }
        (0..lost).for_each(|_| self.out.control().drop_event(None));
        self.out.in_order(slots > 0 && self.threads.len() > 1);
        *settled = if behind { (*settled).max(began.saturating_sub(LATEST)) } else { began.saturating_sub(SKEW) };
        let settled = (slots > 0).then_some(*settled);
        if ends.is_empty() {
            self.out.settle(settled);
            *idle = idle.saturating_add(1);
            return;
        }
        *idle = 0;
        code.clock.look();
        if slots > 1 {
            ends.sort_by_key(|e| e.0);
        }
        let Tracer { threads, intercept, out, job, tails, batch, .. } = self;
        let Some(code) = intercept else { return };
        let names = job.fd_names.then_some(job.fd_details);
        let mut to = Events { code, out, limits: job.limits, names, tails };
        for (_, tid, at) in &batch.ends {
            if let (Some(t), Some(record)) = (threads.get_mut(tid), Record::parse(&batch.bytes[*at..])) {
                to.recorded(t, &record);
            }
        }
        out.settle(settled);
    }

    /// Reads what a call has given, into the tails of exit: the capture bits.
    pub(super) fn exit_tails(&mut self, p: &Pending, memory: &mut impl Memory, ret: i64) -> u16 {
        exit_tails(p, memory, ret, self.job.limits, &mut self.tails)
    }

    /// The call that a thread is in, in the code, and its result if it is over.
    fn call_in_code(&mut self, t: &mut Thread) -> Option<(Pending, Option<i64>)> {
        let (bytes, result) = t.slot.as_ref()?.open()?;
        if let Some(code) = &mut self.intercept {
            code.clock.look();
        }
        let record = Record::parse(&bytes)?;
        let p = begun(self.intercept.as_ref()?, t, &record, self.job.limits)?;
        t.began = record.times().0;
        Some((p, result))
    }

    /// A thread has ended in the code: the call that it was in becomes its own, as if it had stopped there. True: it was over.
    pub(super) fn end_in_code(&mut self, t: &mut Thread) {
        let Some((p, result)) = self.call_in_code(t) else { return };
        t.slot = None;
        match result {
            None => t.pending = Some(p),
            Some(ret) => {
                let now = time::monotonic();
                let e = End { time: now, ret, more: 0, out: &[], cpu: p.cpu, cpu_out: NO_CPU };
                self.out.call((t.pid, t.tid), &p, &e);
            }
        }
    }

    /// Reports calls that threads have been in, in the code, for long.
    pub(super) fn notice_in_code(&mut self) {
        if self.job.notice == 0 || self.out.held || self.intercept.is_none() {
            return;
        }
        let now = time::monotonic();
        let inside: Vec<i32> = self.threads.values().filter(|t| t.slot.is_some()).map(|t| t.tid).collect();
        for tid in inside {
            let Some(mut t) = self.threads.remove(&tid) else { continue };
            if let Some((p, None)) = self.call_in_code(&mut t) {
                if !p.noticed && now.saturating_sub(p.start) >= self.job.notice {
                    t.noticed = t.began;
                    self.out.in_flight((t.pid, tid), &p, 0);
                }
                t.spare = p.tails;
            }
            self.threads.insert(tid, t);
        }
    }

    /// A thread stops at the filter. True: it goes on elsewhere, or has ended.
    pub(super) fn may_record(&mut self, t: &mut Thread, info: &SyscallInfo) -> bool {
        if t.starting || t.refuses || t.pending.is_some() {
            return false;
        }
        let alone = !self.threads.values().any(|other| other.pid == t.pid);
        let Some(code) = &mut self.intercept else { return false };
        match code.stop((t.pid, t.tid), info, alone, &mut t.slot) {
            Then::GoesOn => false,
            Then::Repeats => true,
            Then::Ended(status) => {
                self.later.extend(status);
                true
            }
        }
    }

    /// A thread may have stopped for the first time.
    pub(super) fn give_slot(&mut self, tid: i32) {
        let Some(t) = self.threads.get_mut(&tid).filter(|t| !t.looked) else { return };
        t.looked = true;
        if let Some(code) = &mut self.intercept
            && !t.refuses
        {
            t.slot = code.begin((t.pid, tid));
        }
    }

    /// A signal has stopped a thread. If that is in the code, the thread leaves it first: its handler, and whatever looks at its registers, finds it where
    /// the call would have been. True: the signal was not the program's.
    pub(super) fn leave_code(&mut self, tid: i32, sig: i32) -> bool {
        let (Some(code), Some(t)) = (&self.intercept, self.threads.get_mut(&tid)) else { return false };
        let Ok(mut registers) = ptrace::all_registers(tid) else { return false };
        let cause = || ptrace::siginfo(tid).map_or(0, |i| i32::from_le_bytes([i[8], i[9], i[10], i[11]]));
        let Some(at) = intercept::at(registers.pc()) else {
            let (pid, pc) = (t.pid, registers.pc());
            let repeats = match if sig == SIGTRAP { cause() } else { 0 } {
                TRAP_TRACE if std::mem::take(&mut t.stepped) == pc => Some(pc),
                TRAP_TRACE => code.stepped((pid, tid), pc).map(|(pc, next)| {
                    t.stepped = next;
                    pc
                }),
                1.. => code.trapped(pid, pc),
                _ => None,
            };
            if let Some(pc) = repeats.or_else(|| code.in_program((pid, tid), pc)) {
                registers.set_pc(pc);
                let _ = ptrace::set_all_registers(tid, &registers);
            }
            return repeats.is_some();
        };
        let faults = matches!(sig, SIGSEGV | SIGBUS) && cause() > 0;
        match at {
            At::Entry => {
                go(tid, &mut registers);
                faults
            }
            _ if faults => {
                let Some(pc) = intercept::fixup(registers.pc()) else { return false };
                registers.set_pc(pc);
                let _ = ptrace::set_all_registers(tid, &registers);
                true
            }
            At::Site | At::After => {
                self.at_call(tid);
                false
            }
            At::Before | At::Behind => {
                let _ = self.step_out(tid);
                false
            }
        }
    }

    /// A thread that stands at the instruction which makes the call, or behind it, goes to where the program has it.
    fn at_call(&mut self, tid: i32) {
        let Some(mut t) = self.threads.remove(&tid) else { return };
        if let (Some(slot), Ok(mut registers)) = (&t.slot, ptrace::all_registers(tid)) {
            let (back, raw) = slot.ways();
            if intercept::at(registers.pc()) == Some(At::Site) {
                slot.close();
                registers.set_pc(raw);
                let _ = ptrace::set_all_registers(tid, &registers);
            } else if let Some((p, _)) = self.call_in_code(&mut t) {
                if let Some(slot) = &t.slot {
                    slot.close();
                }
                registers.set_pc(back);
                registers.set_rcx(back);
                let _ = ptrace::set_all_registers(tid, &registers);
                t.pending = Some(p);
                self.exit(&mut t, registers.result());
            }
        }
        self.threads.insert(tid, t);
    }

    /// A thread executes single instructions until it is out of the code, or at the call. The signal that has stopped it is still the one that
    /// it will be resumed with.
    fn step_out(&mut self, tid: i32) -> io::Result<()> {
        let (signal, mask) = (ptrace::siginfo(tid)?, ptrace::signal_mask(tid)?);
        ptrace::set_signal_mask(tid, u64::MAX)?;
        let mut stop = false;
        for _ in 0..MOST_STEPS {
            let mut registers = ptrace::all_registers(tid)?;
            match intercept::at(registers.pc()) {
                None => break,
                Some(At::Site | At::After) => {
                    self.drain();
                    self.at_call(tid);
                    break;
                }
                Some(_) => {}
            }
            ptrace::step(tid)?;
            match wait(tid)? {
                status if matches!(status.change(), Change::Exited(_) | Change::Killed(..)) => {
                    self.later.push_back(status);
                    return Err(io::ErrorKind::NotFound.into());
                }
                status if matches!(status.change(), Change::Stopped(SIGSEGV | SIGBUS, 0)) => {
                    registers = ptrace::all_registers(tid)?;
                    if let Some(pc) = intercept::fixup(registers.pc()) {
                        registers.set_pc(pc);
                        ptrace::set_all_registers(tid, &registers)?;
                    }
                }
                status => stop |= status.change() == Change::Stopped(SIGSTOP, 0),
            }
        }
        self.drain();
        ptrace::set_signal_mask(tid, mask)?;
        ptrace::set_siginfo(tid, &signal)?;
        if stop {
            sys::signal::kill(tid, SIGSTOP)?;
        }
        Ok(())
    }

    /// How often the ptracer wakes: as records come.
    pub(super) fn pace(&mut self) {
        if self.intercept.is_none() {
            return;
        }
        let some = self.threads.values().any(|t| t.slot.is_some());
        let every = match self.batch.idle {
            _ if !some => ALWAYS,
            idle if idle < PATIENCE => BUSY,
            _ => IDLE,
        };
        if every != self.batch.every {
            self.batch.every = every;
            let _ = sys::signal::interval_timer(every);
        }
    }

    /// A thread has another root directory now: whether it still sees the names of descriptors that the ptracer would see.
    pub(super) fn look_at_root(&self, t: &Thread) {
        let Some(code) = &self.intercept else { return };
        let sees = code.sees_names(t.pid);
        let others = self.threads.values().filter(|other| other.pid == t.pid);
        others.chain([t]).filter_map(|t| t.slot.as_ref()).for_each(|slot| slot.set_names(sees));
    }

    /// A thread's program has a filter of its own now: its calls stop again.
    pub(super) fn stop_recording(t: &mut Thread) {
        if let Some(slot) = &t.slot {
            Slot::turn_off(slot);
        }
    }
}

/// Where records become events.
struct Events<'t> {
    code: &'t Intercept,
    out: &'t mut Emitter,
    limits: Limits,
    /// Descriptors get names, or details too.
    names: Option<bool>,
    tails: &'t mut Vec<u8>,
}

impl Events<'_> {
    /// One call that is over.
    fn recorded(&mut self, t: &mut Thread, record: &Record<'_>) {
        let Some(mut p) = begun(self.code, t, record, self.limits) else { return };
        let (cpu, cpu_out) = record.processors();
        let end = self.code.clock.at(record.times().1).max(p.start);
        self.tails.clear();
        let ret = record.result();
        p.caps = if has_messages(p.schema) {
            // Of what was sent the call has changed the lengths alone.
            exit_tails(&p, &mut Sorted::new(record.exit(), record.entry()), ret, self.limits, self.tails)
        } else {
            exit_tails(&p, &mut record.exit(), ret, self.limits, self.tails)
        };
        t.ended = end;
        // Where its record has come too late to be in its place, the whole call is moved, so that it takes as long as it took.
        let late = self.out.last().saturating_sub(end);
        p.start += late;
        let names = self.names.filter(|_| ret >= 0);
        if let Some(details) = names {
            fds::recorded(self.out, t, &p, record, end + late, (details, true));
        }
        let e = End { time: end + late, ret, more: 0, out: self.tails, cpu, cpu_out };
        self.out.call((t.pid, t.tid), &p, &e);
        if let Some(details) = names {
            fds::recorded(self.out, t, &p, record, end + late, (details, false));
        }
        t.spare = p.tails;
    }
}

fn exit_tails(p: &Pending, memory: &mut impl Memory, ret: i64, limits: Limits, tails: &mut Vec<u8>) -> u16 {
    if !p.layout.tails.iter().any(|s| s.out) {
        return p.caps;
    }
    let call = capture::Call { schema: p.schema, layout: p.layout, args: &p.args, result: Some(ret) };
    capture::tails(&call, memory, limits, p.caps, tails)
}

/// Whether a call has several messages, and its record so many captures that they are sorted.
fn has_messages(schema: &Schema) -> bool {
    schema.args.iter().any(|a| matches!(a.ty, Type::Mmsghdr(_)))
}

/// What a record says of a call that has begun.
fn begun(code: &Intercept, t: &mut Thread, record: &Record<'_>, limits: Limits) -> Option<Pending> {
    let nr = record.number();
    let schema = events::registry::by_number(nr).filter(|_| code.has(nr))?;
    let layout = events::registry::layout(schema.id)?;
    let mut args = [0; 8];
    args[..6].copy_from_slice(&record.arguments());
    let mut tails = std::mem::take(&mut t.spare);
    tails.clear();
    let mut caps = 0;
    if layout.tails.iter().any(|s| !s.out) {
        let call = capture::Call { schema, layout, args: &args, result: None };
        caps = if has_messages(schema) {
            capture::tails(&call, &mut Sorted::new(record.entry(), Captures::default()), limits, 0, &mut tails)
        } else {
            capture::tails(&call, &mut record.entry(), limits, 0, &mut tails)
        };
    }
    Some(Pending {
        schema,
        layout,
        nr,
        // Two readings of the clocks may differ by some ns.
        start: code.clock.at(record.times().0).max(t.ended),
        args,
        caps,
        tails,
        cpu: record.processors().0,
        stack: None,
        registers: None,
        noticed: t.noticed == record.times().0,
        wanted: true,
        restarting: false,
        on_behalf: false,
    })
}

/// A thread at the first instruction goes to where the call is made instead.
fn go(tid: i32, registers: &mut ptrace::Registers) {
    if let Ok(raw) = ptrace::read_word(tid, registers.r11().wrapping_add(8)) {
        registers.set_pc(raw);
        let _ = ptrace::set_all_registers(tid, registers);
    }
}

fn wait(tid: i32) -> io::Result<Status> {
    loop {
        match ptrace::wait_for(tid, true) {
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Ok(None) => {}
            other => return other?.ok_or_else(|| io::ErrorKind::NotFound.into()),
        }
    }
}
