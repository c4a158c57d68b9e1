//! The programs behind `process:` events: what becomes of the traced tasks.
//!
//! A child is traced because its creator is: its task storage is made in `sched_process_fork`, before it first runs. The events
//! are laid out as their schemas say; the offsets come from [`Layout`].

use super::emit::{Maps, Target, count, current_state, fixed, output, program, scratch, slot, tails, who};
use super::ops::Callbacks;
use super::{counter, plan, state};
use crate::asm::{Assembler, Label};
use crate::helper::Helper;
use crate::insn::{Alu, Cond, Reg, Reg::*, Size};
use events::Schema;
use events::generated as g;
use events::layout::{CAP_NO_RESULT, Layout};

/// Starts an event of `schema` by the current task in the scratch buffer.
fn begin(a: &mut Assembler, target: &Target, schema: &Schema, cap: i32) {
    a.call(Helper::KtimeGetNs);
    a.store(Size::D, R7, 0, R0);
    a.store(Size::H, R7, 8, i32::from(schema.id));
    a.store(Size::H, R7, 10, cap);
    who(a, target);
    a.mov(R8, Layout::of(schema).fixed as i32);
}

/// Where argument `name` of `schema` stands.
fn at(schema: &Schema, name: &str) -> (i16, Size) {
    let (off, width) = schema.arg(name).map_or((0, 4), |i| Layout::of(schema).args[i]);
    (off as i16, if width == 8 { Size::D } else { Size::W })
}

fn put(a: &mut Assembler, schema: &Schema, name: &str, r: Reg) {
    let (off, size) = at(schema, name);
    a.store(size, R7, off, r);
}

/// The current task's comm as the string tail of the event: the fixed part is followed by up to 15 bytes and a NUL.
fn comm_tail(a: &mut Assembler) {
    let [bounded, bad] = [a.new_label(), a.new_label()];
    a.mov(R1, R10);
    a.alu(Alu::Add, R1, i32::from(slot::KEY));
    a.mov(R2, 16);
    a.call(Helper::GetCurrentComm);
    a.mov(R1, R7);
    a.alu(Alu::Add, R1, R8);
    a.mov(R2, 16);
    a.mov(R3, R10);
    a.alu(Alu::Add, R3, i32::from(slot::KEY));
    a.call(Helper::ProbeReadKernelStr);
    a.jump_if(Cond::Sle, R0, 0, bad);
    a.jump_if(Cond::Le, R0, 16, bounded);
    a.bind(bad);
    a.mov(R0, 1);
    a.mov(R1, R7);
    a.alu(Alu::Add, R1, R8);
    a.store(Size::B, R1, 0, 0);
    a.bind(bounded);
    a.alu(Alu::Add, R8, R0);
}

/// `sched_process_fork` (ctx: parent, child).
pub fn fork(maps: &Maps, target: &Target) -> Result<crate::Program, crate::AsmError> {
    const CLONE_FILES: i32 = 0x400;
    const CLONE_THREAD: i32 = 0x10000;
    program(maps, |a, _, out| {
        a.store(Size::D, R10, slot::CTX, R1);
        current_state(a, maps, out);
        scratch(a, maps, out);
        a.note("the child is traced because its creator is");
        a.load(Size::D, R9, R10, slot::CTX);
        a.map_fd(R1, maps.tasks);
        a.load(Size::D, R2, R9, 8);
        a.mov(R3, 0);
        a.mov(R4, 1); // BPF_LOCAL_STORAGE_GET_F_CREATE
        a.call(Helper::TaskStorageGet);
        let made = a.new_label();
        a.jump_if(Cond::Ne, R0, 0, made);
        // Without memory for it the child cannot be traced: that is a loss.
        count(a, counter::SEEN);
        count(a, counter::DROPPED);
        a.bind(made);
        begin(a, target, &g::P_FORK, 1);
        a.load(Size::D, R1, R9, 8);
        a.load(Size::W, R2, R1, target.task_tgid);
        put(a, &g::P_FORK, "child", R2);
        a.load(Size::W, R2, R1, target.task_pid);
        put(a, &g::P_FORK, "tid", R2);
        // Same thread group, same files: what the flags of the call said.
        a.load(Size::D, R3, R9, 0);
        a.mov(R5, 0);
        let [other_group, other_files] = [a.new_label(), a.new_label()];
        a.load(Size::W, R2, R1, target.task_tgid);
        a.load(Size::W, R4, R3, target.task_tgid);
        a.jump_if(Cond::Ne, R2, R4, other_group);
        a.alu(Alu::Or, R5, CLONE_THREAD);
        a.bind(other_group);
        a.load(Size::D, R2, R1, target.task_files);
        a.load(Size::D, R4, R3, target.task_files);
        a.jump_if(Cond::Ne, R2, R4, other_files);
        a.alu(Alu::Or, R5, CLONE_FILES);
        a.bind(other_files);
        put(a, &g::P_FORK, "flags", R5);
        comm_tail(a);
        output(a, maps);
    })
}

/// `sched_process_exec` (ctx: task, old pid, binprm).
pub fn exec(maps: &Maps, target: &Target) -> Result<crate::Program, crate::AsmError> {
    program(maps, |a, _, out| {
        a.store(Size::D, R10, slot::CTX, R1);
        current_state(a, maps, out);
        a.note("the command has become itself");
        a.load(Size::D, R1, R6, state::FLAGS);
        a.alu(Alu::And, R1, !state::STARTING);
        a.store(Size::D, R6, state::FLAGS, R1);
        scratch(a, maps, out);
        begin(a, target, &g::P_EXEC, 1);
        a.load(Size::D, R2, R10, slot::CTX);
        a.load(Size::D, R1, R2, 8);
        put(a, &g::P_EXEC, "old_tid", R1);
        comm_tail(a);
        output(a, maps);
    })
}

/// `sched_process_exit` (ctx: task): the call that it ends in, and the end.
pub fn exit(maps: &Maps, target: &Target) -> Result<crate::Program, crate::AsmError> {
    program(maps, |a, cbs, out| {
        let [ended, drop] = [a.new_label(), a.new_label()];
        a.store(Size::D, R10, slot::CTX, R1);
        current_state(a, maps, out);
        scratch(a, maps, out);
        a.load(Size::D, R1, R6, state::FLAGS);
        a.alu(Alu::And, R1, state::IN_CALL | state::STARTING);
        a.jump_if(Cond::Ne, R1, state::IN_CALL, ended);
        unfinished(a, maps, cbs, target, ended, drop);
        a.bind(ended);
        a.load(Size::D, R1, R6, state::FLAGS);
        a.alu(Alu::And, R1, state::STARTING);
        a.jump_if(Cond::Ne, R1, 0, out);
        a.note("the end of the task");
        superseded(a, maps, target, out);
        begin(a, target, &g::P_EXIT, 0);
        a.load(Size::D, R2, R10, slot::CTX);
        a.load(Size::D, R2, R2, 0);
        a.load(Size::W, R1, R2, target.task_exit_code);
        a.mov(R2, R1);
        a.alu(Alu::Rsh, R2, 8);
        a.alu(Alu::And, R2, 0xff);
        put(a, &g::P_EXIT, "code", R2);
        a.mov(R2, R1);
        a.alu(Alu::And, R2, 0x7f);
        put(a, &g::P_EXIT, "signo", R2);
        a.alu(Alu::Rsh, R1, 7);
        a.alu(Alu::And, R1, 1);
        put(a, &g::P_EXIT, "core", R1);
        output(a, maps);
        a.jump(out);
        a.bind(drop);
        count(a, counter::SEEN);
        count(a, counter::DROPPED);
        a.jump(ended);
    })
}

/// The end of a thread group's leader because another thread has called execve is told as such.
fn superseded(a: &mut Assembler, maps: &Maps, target: &Target, out: Label) {
    let no = a.new_label();
    a.load(Size::D, R1, R10, slot::CTX);
    a.load(Size::D, R1, R1, 0);
    a.load(Size::W, R2, R1, target.task_pid);
    a.load(Size::W, R3, R1, target.task_tgid);
    a.jump_if(Cond::Ne, R2, R3, no);
    a.load(Size::D, R2, R1, target.task_signal);
    a.load(Size::D, R2, R2, target.signal_exec);
    a.jump_if(Cond::Eq, R2, 0, no);
    a.load(Size::W, R9, R2, target.task_pid);
    begin(a, target, &g::P_SUPERSEDED, 0);
    put(a, &g::P_SUPERSEDED, "by", R9);
    output(a, maps);
    a.jump(out);
    a.bind(no);
}

/// The event of a call that will not return.
fn unfinished(a: &mut Assembler, maps: &Maps, cbs: &mut Callbacks, target: &Target, ended: Label, drop: Label) {
    a.note("the call that it ends in");
    a.load(Size::D, R1, R6, state::FLAGS);
    a.alu(Alu::And, R1, !state::IN_CALL);
    a.store(Size::D, R6, state::FLAGS, R1);
    a.load(Size::D, R1, R6, state::NR);
    super::emit::row(a, maps, ended);
    a.load(Size::H, R1, R9, plan::FLAGS);
    a.alu(Alu::And, R1, i32::from(plan::WANTED));
    a.jump_if(Cond::Eq, R1, 0, ended);
    a.store(Size::D, R10, slot::RET, 0);
    fixed(a, target, true);
    a.mov(R1, 0);
    super::ops::set_result(a);
    tails(a, cbs, plan::N_IN, drop);
    super::ops::run_empty(a, drop);
    super::ops::get_caps(a, R1);
    a.alu(Alu::Or, R1, i32::from(CAP_NO_RESULT));
    super::emit::attached_bit(a);
    a.store(Size::H, R7, 10, R1);
    output(a, maps);
}

/// `signal_deliver` (ctx: signal, siginfo, sigaction). Offsets of `struct kernel_siginfo` are those of the UAPI's siginfo_t.
pub fn signal(maps: &Maps, target: &Target) -> Result<crate::Program, crate::AsmError> {
    program(maps, |a, _, out| {
        a.store(Size::D, R10, slot::CTX, R1);
        current_state(a, maps, out);
        a.load(Size::D, R1, R6, state::FLAGS);
        a.alu(Alu::And, R1, state::STARTING);
        a.jump_if(Cond::Ne, R1, 0, out);
        scratch(a, maps, out);
        // A fatal signal ends as SIGKILL for every thread: that is no signal that the target is given.
        a.load(Size::D, R1, R10, slot::CTX);
        a.load(Size::D, R1, R1, 0);
        a.jump_if(Cond::Eq, R1, 9, out);
        begin(a, target, &g::P_SIGNAL, 0);
        signal_event(a);
        output(a, maps);
    })
}

/// `signal_generate` (context: signal, siginfo, task, group, result): signals that the target ignores, and is never given. A
/// debugger is shown those too.
pub fn ignored_signal(maps: &Maps, target: &Target) -> Result<crate::Program, crate::AsmError> {
    const TRACE_SIGNAL_IGNORED: i32 = 1; // include/trace/events/signal.h
    program(maps, |a, _, out| {
        a.store(Size::D, R10, slot::CTX, R1);
        a.load(Size::D, R2, R1, 32);
        a.alu32(Alu::And, R2, -1);
        a.jump_if(Cond::Ne, R2, TRACE_SIGNAL_IGNORED, out);
        a.map_fd(R1, maps.tasks);
        a.load(Size::D, R2, R10, slot::CTX);
        a.load(Size::D, R2, R2, 16);
        a.mov(R3, 0);
        a.mov(R4, 0);
        a.call(Helper::TaskStorageGet);
        a.jump_if(Cond::Eq, R0, 0, out);
        a.mov(R6, R0);
        a.load(Size::D, R1, R6, state::FLAGS);
        a.alu(Alu::And, R1, state::STARTING);
        a.jump_if(Cond::Ne, R1, 0, out);
        scratch(a, maps, out);
        begin(a, target, &g::P_SIGNAL, 0);
        a.load(Size::D, R1, R10, slot::CTX);
        a.load(Size::D, R1, R1, 16);
        a.load(Size::W, R2, R1, target.task_pid);
        a.store(Size::W, R7, 12, R2);
        a.load(Size::W, R2, R1, target.task_tgid);
        a.store(Size::W, R7, 16, R2);
        signal_event(a);
        output(a, maps);
    })
}

/// The fields of a signal's event, with the context in its slot: its first two words are signal and siginfo. What the kernel
/// passes instead of a siginfo (SEND_SIG_NOINFO, SEND_SIG_PRIV) cannot be read and leaves zeros.
fn signal_event(a: &mut Assembler) {
    // The 48 bytes that matter, behind the event.
    a.mov(R1, R7);
    a.alu(Alu::Add, R1, 1024);
    a.mov(R2, 48);
    a.load(Size::D, R9, R10, slot::CTX);
    a.load(Size::D, R3, R9, 8);
    a.call(Helper::ProbeReadKernel);
    a.load(Size::D, R1, R9, 0);
    put(a, &g::P_SIGNAL, "signo", R1);
    for name in ["pid", "uid", "status", "utime", "stime", "addr", "value", "nr", "arch"] {
        let (off, size) = at(&g::P_SIGNAL, name);
        a.store(size, R7, off, 0);
    }
    let copy = |a: &mut Assembler, name: &str, from: i16, size: Size| {
        a.load(size, R2, R7, 1024 + from);
        put(a, &g::P_SIGNAL, name, R2);
    };
    copy(a, "errno", 4, Size::W);
    copy(a, "code", 8, Size::W);
    siginfo_fields(a, copy);
}

/// Which fields a siginfo has depends on signal and code (sigaction(2)): the same choice as the ptrace backend's.
fn siginfo_fields(a: &mut Assembler, copy: impl Fn(&mut Assembler, &str, i16, Size)) {
    let [child, fault, system, done] = [a.new_label(), a.new_label(), a.new_label(), a.new_label()];
    let sender = a.new_label();
    a.load(Size::W, R3, R7, 1024 + 8);
    a.alu(Alu::Lsh, R3, 32);
    a.alu(Alu::Arsh, R3, 32);
    a.load(Size::D, R1, R9, 0);
    a.jump_if(Cond::Eq, R1, 17, child);
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
