//! Signals and stops, as a tracer by ptrace is shown them.
//!
//! That is not when the kernel's tracepoints tell of them:
//!
//! ```text
//! ignored   signal_generate only, in the sender          held until the receiver's call ends ─► process:signal
//! fatal     signal_generate; delivered as SIGKILL        held until that delivery, or the end ─► process:signal
//! others    signal_deliver, in the receiver              at once ─► process:signal, and process:stop where it stops
//! ```
//!
//! A group-stop has no tracepoint. The thread that takes the signal is known to stop by what the kernel decides from; the others
//! leave their calls for it, with the stop pending.

use super::emit::{claimed, claimed_or, follow, output, program, slot, storage, whose};
use super::events::{at, begin, put};
use super::target::{Maps, Target};
use super::whole::state_or_new;
use super::{held, ops, pause, state};
use crate::asm::{Assembler, Label};
use crate::helper::Helper;
use crate::insn::{Alu, Atomic, Cond, Reg::*, Size};
use crate::scratch::{Lost, front};
use events::generated as g;

const SIGKILL: i32 = 9;
const SIGCHLD: i32 = 17;
const SIGSTOP: i32 = 19;
/// SIGTSTP, SIGTTIN, SIGTTOU: ignored by orphaned process groups.
const TERMINAL_STOPS: std::ops::RangeInclusive<i32> = 20..=22;
const SIGNAL_GROUP_EXIT: i32 = 4; // include/linux/sched/signal.h
/// Where the siginfo of an event stands while the event is built.
const INFO: i16 = front::SIGINFO;
/// A signal that finds the scratch buffer taken.
const LOST: Lost = Lost::Class(g::P_SIGNAL.id);

/// `signal_deliver` (ctx: signal, siginfo, sigaction).
pub fn delivered(maps: &Maps, target: &Target) -> Result<crate::Program, crate::AsmError> {
    program(maps, target, |a, _, out| {
        a.store(Size::D, R10, slot::CTX, R1);
        state_or_new(a, maps, target, out);
        a.load(Size::D, R1, R6, state::FLAGS);
        a.alu(Alu::And, R1, state::STARTING);
        a.jump_if(Cond::Ne, R1, 0, out);
        claimed(a, maps, LOST, out);
        show_held(a, maps, target);
        pause::stopped(a, target, out);
        // A fatal signal ends as SIGKILL for every thread: that is no signal that the target is given.
        a.load(Size::D, R9, R10, slot::CTX);
        a.load(Size::D, R1, R9, 0);
        a.jump_if(Cond::Eq, R1, SIGKILL, out);
        begin(a, target, &g::P_SIGNAL, 0);
        a.load(Size::D, R1, R9, 0);
        a.load(Size::D, R3, R9, 8);
        read_info(a);
        event(a);
        output(a, maps);
        own_stop(a, maps, target, out);
    })
}

/// `signal_generate` (context: signal, siginfo, task, group, result): signals that the target ignores, and those that kill it.
/// It is never given either; a debugger is shown both.
pub fn generated(maps: &Maps, target: &Target) -> Result<crate::Program, crate::AsmError> {
    // include/trace/events/signal.h
    const TRACE_SIGNAL_DELIVERED: i32 = 0;
    const TRACE_SIGNAL_IGNORED: i32 = 1;
    program(maps, target, |a, _, out| {
        let [fatal, known, now, hold] = std::array::from_fn(|_| a.new_label());
        a.store(Size::D, R10, slot::CTX, R1);
        a.mov(R9, R1);
        a.load(Size::D, R8, R9, 32);
        a.alu32(Alu::And, R8, -1);
        a.jump_if(Cond::Gt, R8, TRACE_SIGNAL_IGNORED, out);
        a.load(Size::D, R1, R9, 16);
        follow(a, R1, R1, target.task_signal);
        follow(a, R1, R1, target.signal_flags);
        a.alu(Alu::And, R1, SIGNAL_GROUP_EXIT);
        a.mov(R2, R8);
        a.jump_if(Cond::Eq, R2, TRACE_SIGNAL_DELIVERED, fatal);
        a.note("the process is about to end: this one comes too late");
        a.jump_if(Cond::Ne, R1, 0, out);
        a.store(Size::D, R10, slot::WORD, held::IGNORED);
        a.jump(known);
        a.bind(fatal);
        a.jump_if(Cond::Eq, R1, 0, out);
        a.load(Size::D, R1, R9, 0);
        a.jump_if(Cond::Eq, R1, SIGKILL, out);
        a.store(Size::D, R10, slot::WORD, held::FATAL);
        a.bind(known);
        a.load(Size::D, R2, R9, 16);
        storage(a, maps, false);
        let stranger = a.new_label();
        a.mov(R6, R0);
        a.jump_if(Cond::Eq, R6, 0, if target.whole { stranger } else { out });
        a.load(Size::D, R1, R6, state::FLAGS);
        a.mov(R2, R1);
        a.alu(Alu::And, R1, state::STARTING | state::LEFT_OUT | state::OWN);
        a.jump_if(Cond::Ne, R1, 0, out);
        a.store(Size::D, R10, slot::TEMP, R2);
        a.bind(stranger);
        claimed(a, maps, LOST, out);
        pause::stopped(a, target, out);
        a.note("who has sent what");
        a.load(Size::D, R1, R9, 0);
        a.load(Size::D, R3, R9, 8);
        read_info(a);
        missing_info(a, target);
        // There is no place to keep it for one of whom nothing is known.
        a.jump_if(Cond::Eq, R6, 0, now);
        a.load(Size::D, R1, R6, state::HELD);
        a.jump_if(Cond::Ne, R1, held::NONE, now);
        a.load(Size::D, R1, R10, slot::WORD);
        a.jump_if(Cond::Eq, R1, held::FATAL, hold);
        until_the_call_ends(a, target, now);
        a.bind(hold);
        a.load(Size::D, R1, R9, 0);
        a.store(Size::D, R6, state::HELD_NR, R1);
        for word in (0..state::SIGINFO as i16).step_by(8) {
            a.load(Size::D, R1, R7, INFO + word);
            a.store(Size::D, R6, state::HELD_INFO + word, R1);
        }
        a.load(Size::D, R1, R10, slot::WORD);
        set_held(a);
        a.jump(out);
        a.bind(now);
        begin(a, target, &g::P_SIGNAL, 0);
        a.load(Size::D, R1, R9, 16);
        whose(a, target);
        event(a);
        output(a, maps);
    })
}

/// Jumps to `now` unless the receiver is in a call that is about to end: it runs, or waits for the child that this tells of. One
/// that sleeps may do so for long. The receiver's flags are in TEMP.
fn until_the_call_ends(a: &mut Assembler, target: &Target, now: Label) {
    const WAITS: [i32; 2] = [61, 247]; // wait4, waitid
    let held = a.new_label();
    a.load(Size::D, R1, R10, slot::TEMP);
    a.alu(Alu::And, R1, state::IN_CALL);
    a.jump_if(Cond::Eq, R1, 0, now);
    a.load(Size::D, R1, R9, 16);
    a.load(Size::W, R1, R1, target.task_state);
    a.jump_if(Cond::Eq, R1, 0, held);
    a.load(Size::D, R1, R9, 0);
    a.jump_if(Cond::Ne, R1, SIGCHLD, now);
    a.load(Size::D, R1, R6, state::NR);
    for nr in WAITS {
        a.jump_if(Cond::Eq, R1, nr, held);
    }
    a.jump(now);
    a.bind(held);
}

/// Says in the state in r6 that what is in r1 is held there. A full barrier: the sender writes the siginfo before, the receiver reads it before.
fn set_held(a: &mut Assembler) {
    a.atomic(Atomic::Xchg, Size::D, R6, state::HELD, R1);
}

/// Shows the signal that the current task's state (r6) holds, if any. Needs the scratch buffer; leaves r9 alone.
pub(super) fn show_held(a: &mut Assembler, maps: &Maps, target: &Target) {
    let none = a.new_label();
    a.load(Size::D, R1, R6, state::HELD);
    a.jump_if(Cond::Eq, R1, held::NONE, none);
    a.note("a signal that was held");
    for word in (0..state::SIGINFO as i16).step_by(8) {
        a.load(Size::D, R1, R6, state::HELD_INFO + word);
        a.store(Size::D, R7, INFO + word, R1);
    }
    a.load(Size::D, R1, R6, state::HELD_NR);
    a.store(Size::W, R7, INFO, R1);
    // From here on the next signal may be put there.
    a.mov(R1, held::NONE);
    set_held(a);
    pause::stopped(a, target, none);
    begin(a, target, &g::P_SIGNAL, 0);
    event(a);
    output(a, maps);
    a.bind(none);
}

/// The ways between the end of a call and that of a task in one program, which shows a held signal at one place.
#[derive(Clone, Copy)]
pub(super) struct Shared {
    /// Shows it, and goes on as [`ops::set_ended`] has said.
    pub show: Label,
    /// Goes on with the end of the task.
    pub shown: Label,
}

/// At the end of a call: the signal that was held until then, and the stop that another thread's signal asks for.
pub(super) fn after_call(a: &mut Assembler, maps: &Maps, target: &Target, shared: Option<Shared>, out: Label) {
    const JOBCTL_STOP_PENDING: i32 = 1 << 17; // include/linux/sched/jobctl.h
    let [waiting, interrupted] = std::array::from_fn(|_| a.new_label());
    a.load(Size::D, R1, R6, state::HELD);
    a.jump_if(Cond::Ne, R1, held::NONE, waiting);
    a.load(Size::D, R1, R6, state::RET);
    a.jump_if(Cond::Eq, R1, -4, interrupted);
    a.jump_if(Cond::Sgt, R1, -512, out);
    a.jump_if(Cond::Slt, R1, -516, out);
    a.jump(interrupted);
    a.bind(waiting);
    // It is shown after the next call.
    claimed_or(a, maps, out, |a| a.jump(out));
    if let Some(shared) = shared {
        ops::set_ended(a, false);
        a.bind(shared.show);
    }
    show_held(a, maps, target);
    if let Some(shared) = shared {
        ops::get_ended(a, R1);
        a.jump_if(Cond::Ne, R1, 0, shared.shown);
    }
    a.bind(interrupted);
    a.call(Helper::GetCurrentTaskBtf);
    a.load(Size::D, R9, R0, target.task_jobctl);
    a.mov(R1, R9);
    a.alu(Alu::And, R1, JOBCTL_STOP_PENDING);
    a.jump_if(Cond::Eq, R1, 0, out);
    a.alu(Alu::And, R9, 0x7f);
    claimed(a, maps, Lost::Class(g::P_STOP.id), out);
    pause::stopped(a, target, out);
    begin(a, target, &g::P_STOP, 0);
    put(a, &g::P_STOP, "signo", R9);
    output(a, maps);
}

/// The stop of the thread that has just been given a signal, where the kernel will carry it out (kernel/signal.c, get_signal and
/// do_signal_stop).
fn own_stop(a: &mut Assembler, maps: &Maps, target: &Target, out: Label) {
    const JOBCTL_STOP_DEQUEUED: i32 = 1 << 16; // include/linux/sched/jobctl.h
    const LEVELS: usize = 8;
    let [stops, terminal] = [a.new_label(), a.new_label()];
    a.load(Size::D, R1, R9, 0);
    a.jump_if(Cond::Lt, R1, SIGSTOP, out);
    a.jump_if(Cond::Gt, R1, *TERMINAL_STOPS.end(), out);
    a.note("the default action");
    a.load(Size::D, R2, R9, 16);
    follow(a, R2, R2, target.sigaction_handler);
    a.jump_if(Cond::Ne, R2, 0, out);
    a.call(Helper::GetCurrentTaskBtf);
    a.load(Size::D, R1, R0, target.task_jobctl);
    a.alu(Alu::And, R1, JOBCTL_STOP_DEQUEUED);
    a.jump_if(Cond::Eq, R1, 0, out);
    a.mov(R8, R0);
    follow(a, R6, R8, target.task_signal);
    follow(a, R1, R6, target.signal_flags);
    a.alu(Alu::And, R1, SIGNAL_GROUP_EXIT);
    a.jump_if(Cond::Ne, R1, 0, out);
    a.load(Size::D, R1, R9, 0);
    a.jump_if(Cond::Ne, R1, SIGSTOP, terminal);
    a.jump(stops);
    a.bind(terminal);
    a.note("unless its process group is orphaned: one of its ancestors there has a parent elsewhere in the session");
    let (group, session) = (target.signal_pids + 16, target.signal_pids + 24); // PIDTYPE_PGID, PIDTYPE_SID
    for (slot, field) in [(slot::KEY, group), (slot::KEY + 8, session)] {
        follow(a, R1, R6, field);
        a.store(Size::D, R10, slot, R1);
    }
    for _ in 0..LEVELS {
        let same = a.new_label();
        follow(a, R8, R8, target.task_parent);
        follow(a, R6, R8, target.task_signal);
        follow(a, R1, R6, group);
        a.load(Size::D, R2, R10, slot::KEY);
        a.jump_if(Cond::Eq, R1, R2, same);
        follow(a, R1, R6, session);
        a.load(Size::D, R2, R10, slot::KEY + 8);
        a.jump_if(Cond::Eq, R1, R2, stops);
        a.jump(out);
        a.bind(same);
    }
    a.jump(out);
    a.bind(stops);
    begin(a, target, &g::P_STOP, 0);
    a.load(Size::D, R1, R9, 0);
    put(a, &g::P_STOP, "signo", R1);
    output(a, maps);
}

/// The siginfo at r3 of signal r1 to its place behind the event. What the kernel passes instead of a siginfo (SEND_SIG_NOINFO,
/// SEND_SIG_PRIV) cannot be read and leaves zeros. Offsets of `struct kernel_siginfo` are those of the UAPI's siginfo_t.
fn read_info(a: &mut Assembler) {
    a.store(Size::D, R10, slot::LEN, R1);
    a.mov(R1, R7);
    a.alu(Alu::Add, R1, i32::from(INFO));
    a.mov(R2, state::SIGINFO);
    a.call(Helper::ProbeReadKernel);
    a.load(Size::D, R1, R10, slot::LEN);
    a.store(Size::W, R7, INFO, R1);
}

/// What the kernel will make of a siginfo that is none (kernel/signal.c, __send_signal_locked): sent by itself, or by the current
/// process, with the id that the receiver knows it by.
fn missing_info(a: &mut Assembler, target: &Target) {
    const SI_KERNEL: i32 = 0x80;
    let [known, user] = [a.new_label(), a.new_label()];
    a.load(Size::D, R1, R9, 8);
    // The verifier takes it for a pointer, which is never NULL.
    ops::unknown(a, R1);
    a.jump_if(Cond::Gt, R1, 1, known);
    a.jump_if(Cond::Eq, R1, 0, user);
    a.store(Size::W, R7, INFO + 8, SI_KERNEL);
    a.jump(known);
    a.bind(user);
    a.call(Helper::GetCurrentUidGid);
    a.store(Size::W, R7, INFO + 20, R0);
    a.call(Helper::GetCurrentTaskBtf);
    let ids = &target.ids;
    follow(a, R1, R0, ids.group_leader as i16);
    follow(a, R8, R1, ids.thread_pid as i16);
    a.load(Size::D, R2, R9, 16);
    follow(a, R2, R2, ids.thread_pid as i16);
    follow(a, R2, R2, ids.level as i16);
    // It is of 32 bits.
    a.mov32(R2, R2);
    a.alu(Alu::Mul, R2, ids.upid);
    a.mov(R3, R8);
    a.alu(Alu::Add, R3, R2);
    a.alu(Alu::Add, R3, ids.numbers);
    a.mov(R1, R7);
    a.alu(Alu::Add, R1, i32::from(INFO + 16));
    a.mov(R2, 4);
    a.call(Helper::ProbeReadKernel);
    a.bind(known);
}

/// The fields of a signal's event, from the siginfo behind it.
fn event(a: &mut Assembler) {
    a.load(Size::W, R1, R7, INFO);
    put(a, &g::P_SIGNAL, "signo", R1);
    for name in ["pid", "uid", "status", "utime", "stime", "addr", "value", "nr", "arch"] {
        let (off, size) = at(&g::P_SIGNAL, name);
        a.store(size, R7, off, 0);
    }
    let copy = |a: &mut Assembler, name: &str, from: i16, size: Size| {
        a.load(size, R2, R7, INFO + from);
        put(a, &g::P_SIGNAL, name, R2);
    };
    copy(a, "errno", 4, Size::W);
    copy(a, "code", 8, Size::W);
    fields(a, copy);
}

/// Which fields a siginfo has depends on signal and code (sigaction(2)): the same choice as the ptrace backend's.
fn fields(a: &mut Assembler, copy: impl Fn(&mut Assembler, &str, i16, Size)) {
    let [child, fault, system, done] = [a.new_label(), a.new_label(), a.new_label(), a.new_label()];
    let sender = a.new_label();
    a.load(Size::W, R3, R7, INFO + 8);
    a.alu(Alu::Lsh, R3, 32);
    a.alu(Alu::Arsh, R3, 32);
    a.load(Size::W, R1, R7, INFO);
    a.jump_if(Cond::Eq, R1, SIGCHLD, child);
    a.jump_if(Cond::Sle, R3, 0, sender);
    for sig in [4, 5, 7, 8, 11] {
        a.jump_if(Cond::Eq, R1, sig, fault);
    }
    a.jump_if(Cond::Eq, R1, 31, system);
    a.bind(sender);
    copy(a, "pid", 16, Size::W);
    copy(a, "uid", 20, Size::W);
    copy(a, "value", 24, Size::D);
    a.jump(done);
    a.bind(child);
    copy(a, "pid", 16, Size::W);
    copy(a, "uid", 20, Size::W);
    copy(a, "status", 24, Size::W);
    copy(a, "utime", 32, Size::D);
    copy(a, "stime", 40, Size::D);
    a.jump(done);
    a.bind(fault);
    copy(a, "addr", 16, Size::D);
    a.jump(done);
    a.bind(system);
    copy(a, "addr", 16, Size::D);
    copy(a, "nr", 24, Size::W);
    copy(a, "arch", 28, Size::W);
    a.bind(done);
}
