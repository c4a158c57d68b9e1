//! The programs behind `process:` events: what becomes of the traced tasks.
//!
//! A child is traced because its creator is: its task storage is made in `sched_process_fork`, before it first runs. The events
//! are laid out as their schemas say; the offsets come from [`Layout`].

use super::emit::{
    call_event, claimed, claimed_or, entry_lost, follow, output, process_id, program, slot, storage, thread_id, who,
};
use super::filters::{self, Outcome};
use super::ops::Callbacks;
use super::pause;
use super::signals::{Shared, show_held};
use super::target::{Maps, Rights, Target};
use super::whole::{born, every_state, state_or_new};
use super::{held, plan, state};
use crate::asm::{Assembler, Label};
use crate::helper::Helper;
use crate::insn::{Alu, Cond, Reg, Reg::*, Size};
use crate::scratch::{self, Lost};
use events::Schema;
use events::generated as g;
use events::layout::Layout;

/// Starts an event of `schema` by the current task in the scratch buffer.
pub(super) fn begin(a: &mut Assembler, target: &Target, schema: &Schema, cap: i32) {
    a.call(Helper::KtimeGetNs);
    a.store(Size::D, R7, 0, R0);
    a.store(Size::H, R7, 8, i32::from(schema.id));
    a.store(Size::H, R7, 10, cap);
    who(a, target);
    a.mov(R8, Layout::of(schema).fixed as i32);
}

/// Where argument `name` of `schema` stands.
pub(super) fn at(schema: &Schema, name: &str) -> (i16, Size) {
    let (off, width) = schema.arg(name).map_or((0, 4), |i| Layout::of(schema).args[i]);
    (off as i16, if width == 8 { Size::D } else { Size::W })
}

pub(super) fn put(a: &mut Assembler, schema: &Schema, name: &str, r: Reg) {
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
    program(maps, target, |a, _, out| {
        a.store(Size::D, R10, slot::CTX, R1);
        every_state(a, maps, target, out, out);
        a.note("the child is traced because its creator is");
        a.load(Size::D, R9, R10, slot::CTX);
        a.load(Size::D, R2, R9, 8);
        storage(a, maps, true);
        let [made, known] = [a.new_label(), a.new_label()];
        a.jump_if(Cond::Ne, R0, 0, made);
        if !target.whole {
            // Without memory for it the child cannot be traced: that is a loss.
            scratch::find(a, maps, out);
            scratch::count_lost(a, Lost::Unknown);
        }
        a.jump(known);
        a.bind(made);
        a.load(Size::D, R1, R9, 8);
        thread_id(a, target, R2, R1);
        a.store(Size::D, R0, state::TID, R2);
        if !target.whole {
            scratch::find(a, maps, out);
            scratch::count(a, scratch::BORN);
        }
        a.bind(known);
        if target.whole {
            born(a, target, out);
        }
        claimed(a, maps, Lost::Class(g::P_FORK.id), out);
        begin(a, target, &g::P_FORK, 1);
        a.load(Size::D, R1, R9, 8);
        process_id(a, target, R2, R1);
        put(a, &g::P_FORK, "child", R2);
        thread_id(a, target, R2, R1);
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
        a.mov(R8, R5);
        follow(a, R9, R1, target.task_files);
        a.load(Size::D, R1, R10, slot::CTX);
        a.load(Size::D, R1, R1, 0);
        follow(a, R2, R1, target.task_files);
        a.jump_if(Cond::Ne, R2, R9, other_files);
        a.alu(Alu::Or, R8, CLONE_FILES);
        a.bind(other_files);
        put(a, &g::P_FORK, "flags", R8);
        a.mov(R8, Layout::of(&g::P_FORK).fixed as i32);
        comm_tail(a);
        output(a, maps);
    })
}

/// `sched_process_exec` (ctx: task, old pid, binprm).
pub fn exec(maps: &Maps, target: &Target) -> Result<crate::Program, crate::AsmError> {
    program(maps, target, |a, cbs, out| {
        a.store(Size::D, R10, slot::CTX, R1);
        state_or_new(a, maps, target, out);
        claimed_or(a, maps, out, |a| {
            scratch::count_lost(a, Lost::Class(g::P_EXEC.id));
            let go = if target.only.is_some() { let_go } else { begun };
            go(a, maps);
            a.jump(out);
        });
        late_name(a, target);
        if let Some(rights) = &target.only {
            other_rights(a, maps, cbs, target, rights, out);
        }
        begun(a, maps);
        executed(a, maps, target);
    })
}

/// The event of the program that the current task has executed.
fn executed(a: &mut Assembler, maps: &Maps, target: &Target) {
    begin(a, target, &g::P_EXEC, 1);
    old_id(a, target);
    put(a, &g::P_EXEC, "old_tid", R1);
    a.call(Helper::GetCurrentUidGid);
    put(a, &g::P_EXEC, "uid", R0);
    a.alu(Alu::Rsh, R0, 32);
    put(a, &g::P_EXEC, "gid", R0);
    comm_tail(a);
    output(a, maps);
}

/// The current task, whose state is in r6, is the command itself from here on.
fn begun(a: &mut Assembler, _: &Maps) {
    a.note("the command has become itself");
    a.load(Size::D, R1, R6, state::FLAGS);
    a.alu(Alu::And, R1, !state::STARTING);
    a.store(Size::D, R6, state::FLAGS, R1);
}

/// The current task is traced no longer.
fn let_go(a: &mut Assembler, maps: &Maps) {
    a.call(Helper::GetCurrentTaskBtf);
    a.map_fd(R1, maps.tasks);
    a.mov(R2, R0);
    a.call(Helper::TaskStorageDelete);
}

/// Lets the task go, and with it its children to come, where the program that it has become has rights that the session's user has
/// not: its calls are none of his business. The execve is shown without a result.
fn other_rights(a: &mut Assembler, maps: &Maps, cbs: &mut Callbacks, target: &Target, rights: &Rights, out: Label) {
    // include/linux/sched/coredump.h: MMF_DUMPABLE_MASK, SUID_DUMP_USER
    const DUMPABLE_MASK: i32 = 3;
    const DUMPED_FOR_ITS_USER: i32 = 1;
    let [same, other, event, ended, drop] = std::array::from_fn(|_| a.new_label());
    a.note("another user's rights, capabilities, or a program that its user may not read");
    a.call(Helper::GetCurrentTaskBtf);
    follow(a, R8, R0, rights.task_cred);
    for off in rights.uids {
        follow(a, R2, R8, off);
        a.alu32(Alu::Sub, R2, rights.uid as i32);
        a.jump_if(Cond::Ne, R2, 0, other);
    }
    follow(a, R2, R8, rights.permitted);
    a.constant(R1, !rights.capabilities);
    a.alu(Alu::And, R2, R1);
    a.jump_if(Cond::Ne, R2, 0, other);
    a.call(Helper::GetCurrentTaskBtf);
    follow(a, R2, R0, rights.task_mm);
    follow(a, R2, R2, rights.mm_flags);
    a.alu(Alu::And, R2, DUMPABLE_MASK);
    a.jump_if(Cond::Ne, R2, DUMPED_FOR_ITS_USER, other);
    a.jump(same);
    a.bind(other);
    a.load(Size::D, R1, R6, state::FLAGS);
    a.alu(Alu::And, R1, state::IN_CALL);
    a.jump_if(Cond::Eq, R1, 0, ended);
    // What was not read at entry may not be read now: this is the new program's memory.
    a.load(Size::D, R1, R6, state::LEN);
    a.jump_if(Cond::Eq, R1, 0, drop);
    unfinished(a, maps, target, event, ended, out);
    a.bind(event);
    call_event(a, maps, cbs, target);
    a.jump(ended);
    a.bind(drop);
    scratch::count_lost(a, Lost::Unknown);
    a.bind(ended);
    executed(a, maps, target);
    begin(a, target, &g::P_DETACH, 0);
    output(a, maps);
    let_go(a, maps);
    a.jump(out);
    a.bind(same);
}

/// The path of an execve, where it could not be read at entry: the memory that it stood in is gone, but the kernel has a copy.
fn late_name(a: &mut Assembler, target: &Target) {
    const EXECVE: i32 = 59;
    const EXECVEAT: i32 = 322;
    const CUT: i32 = 2;
    const FAULT: i32 = 3;
    /// Bytes of a path with its NUL, and one to tell "cut".
    const ROOM: i32 = plan::MAX_PATH as i32 + 2;
    let [known, first, second, faulted, bounded, whole] = std::array::from_fn(|_| a.new_label());
    a.note("the path, where it could not be read");
    a.load(Size::D, R1, R6, state::FLAGS);
    a.alu(Alu::And, R1, state::IN_CALL);
    a.jump_if(Cond::Eq, R1, 0, known);
    a.load(Size::D, R9, R10, slot::CTX);
    a.load(Size::D, R9, R9, 16);
    // Where the capture bits of the argument stand.
    a.load(Size::D, R1, R6, state::NR);
    a.jump_if(Cond::Eq, R1, EXECVE, first);
    a.jump_if(Cond::Ne, R1, EXECVEAT, known);
    // The name that the kernel has made of a directory and a path is not what was asked for.
    follow(a, R1, R9, target.binprm_fdpath);
    a.jump_if(Cond::Eq, R1, 0, second);
    a.jump(known);
    a.bind(first);
    a.mov(R2, 0);
    a.jump(faulted);
    a.bind(second);
    a.mov(R2, 2);
    a.bind(faulted);
    a.store(Size::D, R10, slot::TEMP, R2);
    a.load(Size::D, R1, R6, state::CAPS);
    a.alu(Alu::Rsh, R1, R2);
    a.alu(Alu::And, R1, FAULT);
    a.jump_if(Cond::Ne, R1, FAULT, known);
    a.load(Size::D, R8, R6, state::LEN);
    // Not `== 0`: kernels before 6.4 learn nothing of a number that is not zero.
    a.jump_if(Cond::Lt, R8, 1, known);
    a.jump_if(Cond::Gt, R8, state::ROOM, known);
    follow(a, R3, R9, target.binprm_filename);
    a.mov(R1, R7);
    a.mov(R2, ROOM);
    a.call(Helper::ProbeReadKernelStr);
    a.jump_if(Cond::Sle, R0, 1, known);
    a.jump_if(Cond::Le, R0, ROOM, bounded);
    a.mov(R0, ROOM);
    a.bind(bounded);
    a.mov(R9, R0);
    a.note("in front of the other tails");
    a.mov(R1, R7);
    a.alu(Alu::Add, R1, R9);
    a.mov(R2, R8);
    a.alu(Alu::Sub, R2, 1);
    a.mov(R3, R6);
    a.alu(Alu::Add, R3, i32::from(state::TAILS) + 1);
    a.call(Helper::ProbeReadKernel);
    a.alu(Alu::Sub, R8, 1);
    a.alu(Alu::Add, R8, R9);
    a.jump_if(Cond::Gt, R8, state::ROOM, known);
    a.mov(R1, R6);
    a.alu(Alu::Add, R1, i32::from(state::TAILS));
    a.mov(R2, R8);
    a.mov(R3, R7);
    a.call(Helper::ProbeReadKernel);
    a.store(Size::D, R6, state::LEN, R8);
    a.load(Size::D, R2, R10, slot::TEMP);
    a.mov(R1, FAULT - 1);
    a.jump_if(Cond::Lt, R9, ROOM, whole);
    a.mov(R1, FAULT - CUT);
    a.bind(whole);
    a.alu(Alu::Lsh, R1, R2);
    a.load(Size::D, R2, R6, state::CAPS);
    a.alu(Alu::Xor, R2, R1);
    a.store(Size::D, R6, state::CAPS, R2);
    a.bind(known);
}

/// r1 = the id that the thread had before it took its leader's: the context has that of the initial namespace.
fn old_id(a: &mut Assembler, target: &Target) {
    a.load(Size::D, R2, R10, slot::CTX);
    if target.namespace.is_none() {
        return a.load(Size::D, R1, R2, 8);
    }
    let [known, same] = [a.new_label(), a.new_label()];
    a.call(Helper::GetCurrentTaskBtf);
    a.mov(R3, R0);
    a.load(Size::D, R2, R10, slot::CTX);
    a.load(Size::W, R4, R3, target.task_pid);
    a.load(Size::W, R5, R2, 8);
    a.load(Size::D, R1, R6, state::TID);
    thread_id(a, target, R3, R3);
    a.store(Size::D, R6, state::TID, R3);
    a.jump_if(Cond::Eq, R4, R5, same);
    a.jump_if(Cond::Ne, R1, 0, known);
    a.bind(same);
    a.mov(R1, R3);
    a.bind(known);
}

/// `sched_process_exit`: the call that it ends in, and the end.
pub fn exit(maps: &Maps, target: &Target) -> Result<crate::Program, crate::AsmError> {
    program(maps, target, |a, cbs, out| {
        state_or_new(a, maps, target, out);
        let [event, ended] = [a.new_label(), a.new_label()];
        reached_its_end(a, maps, target, out);
        unfinished(a, maps, target, event, ended, out);
        a.bind(event);
        call_event(a, maps, cbs, target);
        a.bind(ended);
        end(a, maps, target, None, out);
    })
}

/// Counts that the current task has reached its end, whatever becomes of the event. Not on a whole machine, which has no end.
pub(super) fn reached_its_end(a: &mut Assembler, maps: &Maps, target: &Target, out: Label) {
    if !target.whole {
        scratch::find(a, maps, out);
        scratch::count(a, scratch::ENDED);
    }
}

/// `sched_process_free` (context: task): a traced task is gone. It has switched for the last time, somebody has collected it, and
/// what it has freed is freed.
pub fn freed(maps: &Maps, target: &Target) -> Result<crate::Program, crate::AsmError> {
    program(maps, target, |a, _, out| {
        a.load(Size::D, R2, R1, 0);
        storage(a, maps, false);
        a.jump_if(Cond::Eq, R0, 0, out);
        scratch::find(a, maps, out);
        scratch::count(a, scratch::FREED);
    })
}

/// The event of the end of the current task, whose storage is in r6.
pub(super) fn end(a: &mut Assembler, maps: &Maps, target: &Target, shared: Option<Shared>, out: Label) {
    a.load(Size::D, R1, R6, state::FLAGS);
    a.alu(Alu::And, R1, state::STARTING);
    a.jump_if(Cond::Ne, R1, 0, out);
    match shared {
        None => show_held(a, maps, target),
        Some(shared) => {
            a.load(Size::D, R1, R6, state::HELD);
            a.jump_if(Cond::Ne, R1, held::NONE, shared.show);
            a.bind(shared.shown);
        }
    }
    a.note("the end of the task");
    superseded(a, maps, target, out);
    begin(a, target, &g::P_EXIT, 0);
    a.call(Helper::GetCurrentTaskBtf);
    a.load(Size::W, R1, R0, target.task_exit_code);
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
}

/// The end of a thread group's leader because another thread has called execve is told as such.
fn superseded(a: &mut Assembler, maps: &Maps, target: &Target, out: Label) {
    let no = a.new_label();
    a.call(Helper::GetCurrentTaskBtf);
    a.load(Size::W, R2, R0, target.task_pid);
    a.load(Size::W, R3, R0, target.task_tgid);
    a.jump_if(Cond::Ne, R2, R3, no);
    follow(a, R2, R0, target.task_signal);
    follow(a, R9, R2, target.signal_exec);
    a.jump_if(Cond::Eq, R9, 0, no);
    // An id of its own still: it has the leader's only later.
    distant_id(a, target, R9);
    begin(a, target, &g::P_SUPERSEDED, 0);
    put(a, &g::P_SUPERSEDED, "by", R9);
    output(a, maps);
    a.jump(out);
    a.bind(no);
}

/// `task` = the thread id of that task, whose place is only a number.
fn distant_id(a: &mut Assembler, target: &Target, task: Reg) {
    match target.namespace {
        None => follow(a, task, task, target.task_pid),
        Some(ns) => {
            follow(a, task, task, ns.thread_pid);
            follow(a, task, task, ns.number);
        }
    }
}

/// Jumps to `ended` where the current task, whose storage is in r6, ends in no call that is wanted; else to `event`, with the
/// call ready to be told of.
pub(super) fn unfinished(a: &mut Assembler, maps: &Maps, target: &Target, event: Label, ended: Label, out: Label) {
    a.note("the call that it ends in");
    claimed(a, maps, Lost::Class(g::P_EXIT.id), out);
    super::ops::set_ended(a, true);
    let read = a.new_label();
    a.load(Size::D, R1, R6, state::FLAGS);
    a.jump_if(Cond::Set, R1, state::STARTING | state::REJECTED, ended);
    a.mov(R2, R1);
    a.alu(Alu::And, R2, state::IN_CALL);
    a.jump_if(Cond::Eq, R2, 0, ended);
    a.mov(R2, R1);
    a.alu(Alu::And, R2, state::ENTRY_LOST);
    a.jump_if(Cond::Eq, R2, 0, read);
    entry_lost(a, maps, out);
    a.jump(ended);
    a.bind(read);
    a.alu(Alu::And, R1, !state::IN_CALL);
    a.store(Size::D, R6, state::FLAGS, R1);
    a.load(Size::D, R1, R6, state::NR);
    super::emit::row(a, maps, ended);
    a.load(Size::H, R1, R9, plan::FLAGS);
    a.alu(Alu::And, R1, i32::from(plan::WANTED));
    a.jump_if(Cond::Eq, R1, 0, ended);
    pause::call_is_held_back(a, target, ended);
    a.store(Size::D, R10, slot::RET, 0);
    filters::before(a, target, Outcome::CutOff, ended);
    a.mov(R1, 0);
    super::ops::set_result(a);
    a.jump(event);
}
