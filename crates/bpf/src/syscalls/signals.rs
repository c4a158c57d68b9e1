//! Signals and stops, shown when a tracer that uses ptrace would see them. The kernel's tracepoints come at other times:
//!
//! ```text
//! ignored   signal_generate only, in the sender          held until the receiver's call ends ─► process:signal
//! fatal     signal_generate; delivered as SIGKILL        held until that delivery, or the end ─► process:signal
//! others    signal_deliver, in the receiver              at once ─► process:signal, and process:stop where it stops
//! ```
//!
//! A group-stop has no tracepoint. The thread that takes the signal stops by the kernel's own conditions; the
//! others return from their calls with the stop pending.

use crate::asm::Label;
use crate::btf_offsets::BtfOffsets;
use crate::frame::state::look;
use crate::frame::{Emitter, Generated, Lost, Maps, Session, held, program, reg, slot, state};
use crate::helper::Helper;
use crate::insn::{Alu, Atomic, Cond, Reg, Reg::*, Size};
use crate::scratch::front;
use events::generated as g;

const SIGKILL: i32 = 9;
const SIGCHLD: i32 = 17;
const SIGSTOP: i32 = 19;
/// SIGTSTP, SIGTTIN, SIGTTOU: ignored by orphaned process groups.
const TERMINAL_STOPS: std::ops::RangeInclusive<i32> = 20..=22;
const SIGNAL_GROUP_EXIT: i32 = 4; // include/linux/sched/signal.h
/// Where the siginfo of an event is while the event is built.
const INFO: i16 = front::SIGINFO;
/// A signal that finds the scratch buffer taken.
const LOST: Lost = Lost::Class(g::P_SIGNAL.id);

/// `signal_deliver` (context: signal, siginfo, sigaction).
pub fn delivered(maps: &Maps, offsets: &BtfOffsets, session: &Session) -> Generated {
    program(maps, offsets, session, |e, out| {
        e.store_slot(slot::CTX, R1);
        e.state_or_new(out);
        e.load_state(R1, state::FLAGS);
        e.alu(Alu::And, R1, state::STARTING);
        e.jump_if(Cond::Ne, R1, 0, out);
        e.claimed(LOST, out);
        show_held(e);
        e.stopped(out);
        // A fatal signal is delivered as SIGKILL to every thread: the target does not see that.
        e.load_slot(R9, slot::CTX);
        e.load(Size::D, R1, R9, 0);
        e.jump_if(Cond::Eq, R1, SIGKILL, out);
        begin(e);
        e.load(Size::D, R1, R9, 0);
        e.load(Size::D, R3, R9, 8);
        read_info(e);
        event(e);
        e.output();
        own_stop(e, out);
    })
}

/// `signal_generate` (context: signal, siginfo, task, group, result): signals that the target ignores, and those that kill it.
/// Neither is delivered to it; a debugger sees both.
pub fn generated(maps: &Maps, offsets: &BtfOffsets, session: &Session) -> Generated {
    // include/trace/events/signal.h
    const TRACE_SIGNAL_DELIVERED: i32 = 0;
    const TRACE_SIGNAL_IGNORED: i32 = 1;
    program(maps, offsets, session, |e, out| {
        let [fatal, known, now, hold] = std::array::from_fn(|_| e.new_label());
        e.store_slot(slot::CTX, R1);
        e.mov(R9, R1);
        e.load(Size::D, R8, R9, 32);
        e.alu32(Alu::And, R8, -1);
        e.jump_if(Cond::Gt, R8, TRACE_SIGNAL_IGNORED, out);
        e.load(Size::D, R1, R9, 16);
        e.follow(R1, R1, offsets.task_signal);
        e.follow(R1, R1, offsets.signal_flags);
        e.alu(Alu::And, R1, SIGNAL_GROUP_EXIT);
        e.mov(R2, R8);
        e.jump_if(Cond::Eq, R2, TRACE_SIGNAL_DELIVERED, fatal);
        e.note("the process is about to end: this one comes too late");
        e.jump_if(Cond::Ne, R1, 0, out);
        e.store_slot(slot::WORD, held::IGNORED);
        e.jump(known);
        e.bind(fatal);
        e.jump_if(Cond::Eq, R1, 0, out);
        e.load(Size::D, R1, R9, 0);
        e.jump_if(Cond::Eq, R1, SIGKILL, out);
        e.store_slot(slot::WORD, held::FATAL);
        e.bind(known);
        e.load(Size::D, R2, R9, 16);
        e.storage(false);
        let stranger = e.new_label();
        e.mov(R6, R0);
        e.jump_if(Cond::Eq, R6, 0, if session.system_wide { stranger } else { out });
        e.load_state(R1, state::FLAGS);
        e.alu(Alu::And, R1, state::STARTING | state::LEFT_OUT | state::OWN);
        e.jump_if(Cond::Ne, R1, 0, out);
        receivers_call(e);
        e.bind(stranger);
        e.claimed(LOST, out);
        e.stopped(out);
        e.note("who has sent what");
        e.load(Size::D, R1, R9, 0);
        e.load(Size::D, R3, R9, 8);
        read_info(e);
        missing_info(e);
        // A receiver without a state cannot hold it.
        e.jump_if(Cond::Eq, R6, 0, now);
        e.load_state(R1, state::HELD);
        e.jump_if(Cond::Ne, R1, held::NONE, now);
        e.load_slot(R1, slot::WORD);
        e.jump_if(Cond::Eq, R1, held::FATAL, hold);
        until_the_call_ends(e, now);
        e.bind(hold);
        e.load(Size::D, R1, R9, 0);
        e.store_state(state::HELD_NR, R1);
        for word in (0..state::SIGINFO as i16).step_by(8) {
            e.load_event(Size::D, R1, INFO + word);
            e.store_state(state::HELD_INFO + word, R1);
        }
        e.load_slot(R1, slot::WORD);
        set_held(e, R6);
        receiver_looks(e, out);
        e.jump(out);
        e.bind(now);
        e.begin(&g::P_SIGNAL, 0);
        e.load(Size::D, R1, R9, 16);
        e.whose();
        event(e);
        e.output();
    })
}

/// Jumps to `now` unless the receiver is in a call that is about to end: it runs, or waits for the child that this signal is
/// from. A receiver that sleeps may sleep for long. What [`receivers_call`] has found is used.
fn until_the_call_ends(e: &mut Emitter<'_>, now: Label) {
    const WAITS: [i32; 2] = [61, 247]; // wait4, waitid
    let offsets = e.offsets;
    let held = e.new_label();
    e.load_slot(R1, slot::TEMP);
    e.alu(Alu::And, R1, state::IN_CALL);
    e.jump_if(Cond::Eq, R1, 0, now);
    e.load(Size::D, R1, R9, 16);
    e.load(Size::W, R1, R1, offsets.task_state);
    e.jump_if(Cond::Eq, R1, 0, held);
    e.load(Size::D, R1, R9, 0);
    e.jump_if(Cond::Ne, R1, SIGCHLD, now);
    e.load_slot(R1, slot::ADDR);
    for nr in WAITS {
        e.jump_if(Cond::Eq, R1, nr, held);
    }
    e.jump(now);
    e.bind(held);
}

/// Of the receiver, whose home is in r6, with the context in r9: flags to TEMP, the number of its call to ADDR.
fn receivers_call(e: &mut Emitter<'_>) {
    let [at_home, known] = [e.new_label(), e.new_label()];
    receivers_slot(e, at_home);
    for (slot, word) in [(slot::TEMP, state::FLAGS), (slot::ADDR, state::NR)] {
        e.load(Size::D, R1, R0, word);
        e.store_slot(slot, R1);
    }
    e.jump(known);
    e.bind(at_home);
    for (slot, word) in [(slot::TEMP, state::FLAGS), (slot::ADDR, state::NR)] {
        e.load_state(R1, word);
        e.store_slot(slot, R1);
    }
    e.bind(known);
}

/// r0 = the receiver's slot, with the context in r9; `none` where it has none. Uses r8.
fn receivers_slot(e: &mut Emitter<'_>, none: Label) {
    let Some(slots) = e.maps.slots else { return e.jump(none) };
    e.load(Size::D, R1, R9, 16);
    e.call(Helper::TaskPtRegs);
    e.mov(R8, R0);
    e.slot_of(slots, R8, none);
    e.load(Size::D, R1, R0, state::KEY);
    e.jump_if(Cond::Ne, R1, R8, none);
}

/// Has the receiver find the signal that its home holds.
fn receiver_looks(e: &mut Emitter<'_>, none: Label) {
    receivers_slot(e, none);
    e.mov(R1, look::SIGNAL);
    e.atomic(Atomic::Or, Size::D, R0, state::LOOK, R1);
}

/// Sets the [`state::HELD`] of the home in `home` to r1. A full barrier: the sender writes the siginfo before it, the receiver reads it
/// before it.
fn set_held(e: &mut Emitter<'_>, home: Reg) {
    e.atomic(Atomic::Xchg, Size::D, home, state::HELD, R1);
}

/// Shows the signal that the current task's home holds, if any. The scratch buffer is claimed; r9 is kept.
pub(super) fn show_held(e: &mut Emitter<'_>) {
    let none = e.new_label();
    e.load_state(R1, state::HELD);
    e.jump_if(Cond::Eq, R1, held::NONE, none);
    e.note("a signal that was held");
    e.home(none);
    for word in (0..state::SIGINFO as i16).step_by(8) {
        e.load(Size::D, R1, R0, state::HELD_INFO + word);
        e.store_event(Size::D, INFO + word, R1);
    }
    e.load(Size::D, R1, R0, state::HELD_NR);
    e.store_event(Size::W, INFO, R1);
    // From here on the next signal may be put there.
    e.store_state(state::HELD, held::NONE);
    e.mov(R1, held::NONE);
    set_held(e, R0);
    e.stopped(none);
    begin(e);
    event(e);
    e.output();
    e.bind(none);
}

/// The ways between the end of a call and that of a task in one program, which shows a held signal at one place.
#[derive(Clone, Copy)]
pub(super) struct Shared {
    /// Shows it, and continues with the end of the task or of the call ([`Emitter::set_ended`]).
    pub show: Label,
    /// Goes on with the end of the task.
    pub shown: Label,
}

/// At the end of a call: the signal that was held until then, and the stop that another thread's signal asks for.
pub(super) fn after_call(e: &mut Emitter<'_>, shared: Option<Shared>, out: Label) {
    const JOBCTL_STOP_PENDING: i32 = 1 << 17; // include/linux/sched/jobctl.h
    let offsets = e.offsets;
    let [waiting, interrupted] = std::array::from_fn(|_| e.new_label());
    e.load_state(R1, state::HELD);
    e.jump_if(Cond::Ne, R1, held::NONE, waiting);
    e.load_state(R1, state::RET);
    e.jump_if(Cond::Eq, R1, -4, interrupted);
    e.jump_if(Cond::Sgt, R1, -512, out);
    e.jump_if(Cond::Slt, R1, -516, out);
    e.jump(interrupted);
    e.bind(waiting);
    // It is shown after the next call.
    e.claimed_or(out, |e| e.jump(out));
    if let Some(shared) = shared {
        e.set_ended(false);
        e.bind(shared.show);
    }
    show_held(e);
    if let Some(shared) = shared {
        e.get_ended(R1);
        e.jump_if(Cond::Ne, R1, 0, shared.shown);
    }
    e.bind(interrupted);
    e.task(R0);
    e.load(Size::D, R9, R0, offsets.task_jobctl);
    e.mov(R1, R9);
    e.alu(Alu::And, R1, JOBCTL_STOP_PENDING);
    e.jump_if(Cond::Eq, R1, 0, out);
    e.alu(Alu::And, R9, 0x7f);
    e.claimed(Lost::Class(g::P_STOP.id), out);
    e.stopped(out);
    e.begin(&g::P_STOP, 0);
    e.put("signo", R9);
    e.output();
}

/// The stop of the thread that has just been given a signal, where the kernel will carry it out (kernel/signal.c, get_signal and
/// do_signal_stop).
fn own_stop(e: &mut Emitter<'_>, out: Label) {
    const JOBCTL_STOP_DEQUEUED: i32 = 1 << 16; // include/linux/sched/jobctl.h
    const LEVELS: usize = 8;
    let offsets = e.offsets;
    let [stops, terminal] = [e.new_label(), e.new_label()];
    e.load(Size::D, R1, R9, 0);
    e.jump_if(Cond::Lt, R1, SIGSTOP, out);
    e.jump_if(Cond::Gt, R1, *TERMINAL_STOPS.end(), out);
    e.note("the default action");
    e.load(Size::D, R2, R9, 16);
    e.follow(R2, R2, offsets.sigaction_handler);
    e.jump_if(Cond::Ne, R2, 0, out);
    e.task(R0);
    e.load(Size::D, R1, R0, offsets.task_jobctl);
    e.alu(Alu::And, R1, JOBCTL_STOP_DEQUEUED);
    e.jump_if(Cond::Eq, R1, 0, out);
    e.mov(R8, R0);
    e.follow(R6, R8, offsets.task_signal);
    e.follow(R1, R6, offsets.signal_flags);
    e.alu(Alu::And, R1, SIGNAL_GROUP_EXIT);
    e.jump_if(Cond::Ne, R1, 0, out);
    e.load(Size::D, R1, R9, 0);
    e.jump_if(Cond::Ne, R1, SIGSTOP, terminal);
    e.jump(stops);
    e.bind(terminal);
    e.note("unless its process group is orphaned: one of its ancestors there has a parent elsewhere in the session");
    let (group, session) = (offsets.signal_pids + 16, offsets.signal_pids + 24); // PIDTYPE_PGID, PIDTYPE_SID
    for (slot, field) in [(slot::KEY, group), (slot::KEY + 8, session)] {
        e.follow(R1, R6, field);
        e.store_slot(slot, R1);
    }
    for _ in 0..LEVELS {
        let same = e.new_label();
        e.follow(R8, R8, offsets.task_parent);
        e.follow(R6, R8, offsets.task_signal);
        e.follow(R1, R6, group);
        e.load_slot(R2, slot::KEY);
        e.jump_if(Cond::Eq, R1, R2, same);
        e.follow(R1, R6, session);
        e.load_slot(R2, slot::KEY + 8);
        e.jump_if(Cond::Eq, R1, R2, stops);
        e.jump(out);
        e.bind(same);
    }
    e.jump(out);
    e.bind(stops);
    e.state_again();
    e.begin(&g::P_STOP, 0);
    e.load(Size::D, R1, R9, 0);
    e.put("signo", R1);
    e.output();
}

/// Reads the siginfo at r3 of signal r1 to [`INFO`]. What the kernel passes instead of a siginfo (SEND_SIG_NOINFO,
/// SEND_SIG_PRIV) cannot be read and leaves zeros. Offsets of `struct kernel_siginfo` are those of the UAPI's siginfo_t.
fn read_info(e: &mut Emitter<'_>) {
    e.store_slot(slot::LEN, R1);
    e.mov(R1, reg::BUFFER);
    e.alu(Alu::Add, R1, i32::from(INFO));
    e.mov(R2, state::SIGINFO);
    e.call(Helper::ProbeReadKernel);
    e.load_slot(R1, slot::LEN);
    e.store_event(Size::W, INFO, R1);
}

/// Fills in a siginfo that the kernel passes as a number (kernel/signal.c, __send_signal_locked): sent by itself, or by the current
/// process, with its id in the receiver's namespace.
fn missing_info(e: &mut Emitter<'_>) {
    const SI_KERNEL: i32 = 0x80;
    let offsets = e.offsets;
    let [known, user] = [e.new_label(), e.new_label()];
    e.load(Size::D, R1, R9, 8);
    // To the verifier it is a pointer, which is never NULL.
    e.unknown(R1);
    e.jump_if(Cond::Gt, R1, 1, known);
    e.jump_if(Cond::Eq, R1, 0, user);
    e.store_event(Size::W, INFO + 8, SI_KERNEL);
    e.jump(known);
    e.bind(user);
    e.call(Helper::GetCurrentUidGid);
    e.store_event(Size::W, INFO + 20, R0);
    e.task(R0);
    let ids = &offsets.ids;
    e.follow(R1, R0, ids.group_leader as i16);
    e.follow(R8, R1, ids.thread_pid as i16);
    e.load(Size::D, R2, R9, 16);
    e.follow(R2, R2, ids.thread_pid as i16);
    e.follow(R2, R2, ids.level as i16);
    // The level has 32 bits.
    e.mov32(R2, R2);
    e.alu(Alu::Mul, R2, ids.upid);
    e.mov(R3, R8);
    e.alu(Alu::Add, R3, R2);
    e.alu(Alu::Add, R3, ids.numbers);
    e.mov(R1, reg::BUFFER);
    e.alu(Alu::Add, R1, i32::from(INFO + 16));
    e.mov(R2, 4);
    e.call(Helper::ProbeReadKernel);
    e.bind(known);
}

/// Begins the event of a signal of the current task, with the stack of its process where signals have one. Another task's has none.
fn begin(e: &mut Emitter<'_>) {
    match (e.session.signals, e.maps.stacks) {
        (Some(schema), Some(stacks)) => {
            e.begin(schema, 0);
            crate::stacks::user(e, stacks, e.session.frames.user);
            e.put("ustack", R0);
        }
        _ => e.begin(&g::P_SIGNAL, 0),
    }
}

/// Stores the fields of a signal's event, from the siginfo at [`INFO`].
fn event(e: &mut Emitter<'_>) {
    e.load_event(Size::W, R1, INFO);
    e.put("signo", R1);
    for name in ["pid", "uid", "status", "utime", "stime", "addr", "value", "nr", "arch"] {
        let (off, size) = e.at(name);
        e.store_event(size, off, 0);
    }
    let copy = |e: &mut Emitter<'_>, name: &str, from: i16, size: Size| {
        e.load_event(size, R2, INFO + from);
        e.put(name, R2);
    };
    copy(e, "errno", 4, Size::W);
    copy(e, "code", 8, Size::W);
    fields(e, copy);
}

/// Which fields a siginfo has depends on signal and code (sigaction(2)). The ptrace backend makes the same choice.
fn fields(e: &mut Emitter<'_>, copy: impl Fn(&mut Emitter<'_>, &str, i16, Size)) {
    let [child, fault, system, done] = [e.new_label(), e.new_label(), e.new_label(), e.new_label()];
    let sender = e.new_label();
    e.load_event(Size::W, R3, INFO + 8);
    e.alu(Alu::Lsh, R3, 32);
    e.alu(Alu::Arsh, R3, 32);
    e.load_event(Size::W, R1, INFO);
    e.jump_if(Cond::Eq, R1, SIGCHLD, child);
    e.jump_if(Cond::Sle, R3, 0, sender);
    for sig in [4, 5, 7, 8, 11] {
        e.jump_if(Cond::Eq, R1, sig, fault);
    }
    e.jump_if(Cond::Eq, R1, 31, system);
    e.bind(sender);
    copy(e, "pid", 16, Size::W);
    copy(e, "uid", 20, Size::W);
    copy(e, "value", 24, Size::D);
    e.jump(done);
    e.bind(child);
    copy(e, "pid", 16, Size::W);
    copy(e, "uid", 20, Size::W);
    copy(e, "status", 24, Size::W);
    copy(e, "utime", 32, Size::D);
    copy(e, "stime", 40, Size::D);
    e.jump(done);
    e.bind(fault);
    copy(e, "addr", 16, Size::D);
    e.jump(done);
    e.bind(system);
    copy(e, "addr", 16, Size::D);
    copy(e, "nr", 24, Size::W);
    copy(e, "arch", 28, Size::W);
    e.bind(done);
}
