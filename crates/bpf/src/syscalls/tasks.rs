//! The programs of `process:` events: how traced tasks begin, execute programs and end.
//!
//! A child is traced because its creator is: its task storage is made in `sched_process_fork`, before it first runs. The events
//! are laid out as their schemas define; the offsets come from [`events::layout`].

use super::call::{call_event, unfinished};
use super::no_entry;
use super::signals::{Shared, show_held};
use crate::asm::Label;
use crate::btf_offsets::BtfOffsets;
use crate::capture_row;
use crate::frame::Rights;
use crate::frame::{Emitter, Generated, Lost, Maps, Session, held, program, reg, slot, state};
use crate::helper::Helper;
use crate::insn::{Alu, Cond, Reg, Reg::*, Size};
use crate::scratch::{self};
use events::generated as g;
use events::layout::Layout;

/// The current task's comm as the string tail of the event: the fixed part is followed by up to 15 bytes and a NUL.
fn comm_tail(e: &mut Emitter<'_>) {
    let [bounded, bad] = [e.new_label(), e.new_label()];
    e.slot_address(R1, slot::KEY);
    e.mov(R2, 16);
    e.call(Helper::GetCurrentComm);
    e.place(R1, 0);
    e.mov(R2, 16);
    e.slot_address(R3, slot::KEY);
    e.call(Helper::ProbeReadKernelStr);
    e.jump_if(Cond::Sle, R0, 0, bad);
    e.jump_if(Cond::Le, R0, 16, bounded);
    e.bind(bad);
    e.mov(R0, 1);
    e.place(R1, 0);
    e.store(Size::B, R1, 0, 0);
    e.bind(bounded);
    e.alu(Alu::Add, R8, R0);
}

/// `sched_process_fork` (context: parent, child).
pub fn fork(maps: &Maps, offsets: &BtfOffsets, session: &Session) -> Generated {
    const CLONE_FILES: i32 = 0x400;
    const CLONE_THREAD: i32 = 0x10000;
    program(maps, offsets, session, |e, out| {
        e.store_slot(slot::CTX, R1);
        let untraced = e.untraced;
        e.every_home(untraced);
        e.note("the child is traced because its creator is");
        e.load_slot(R9, slot::CTX);
        e.load(Size::D, R2, R9, 8);
        e.storage(true);
        let [made, known] = [e.new_label(), e.new_label()];
        e.jump_if(Cond::Ne, R0, 0, made);
        if !session.system_wide {
            // Without memory for it the child cannot be traced: that is a loss.
            e.find(out);
            e.count_lost(Lost::Unknown);
        }
        e.jump(known);
        e.bind(made);
        e.load(Size::D, R1, R9, 8);
        e.thread_id(R2, R1);
        e.store(Size::D, R0, state::TID, R2);
        if !session.system_wide {
            e.find(out);
            e.count(scratch::BORN);
        }
        e.bind(known);
        if session.system_wide {
            e.born(out);
        }
        e.claimed(Lost::Class(g::P_FORK.id), out);
        e.begin(&g::P_FORK, 1);
        e.load(Size::D, R1, R9, 8);
        e.process_id(R2, R1);
        e.put("child", R2);
        e.thread_id(R2, R1);
        e.put("tid", R2);
        // The flags of the call follow from thread groups and files being equal.
        e.load(Size::D, R3, R9, 0);
        e.mov(R5, 0);
        let [other_group, other_files] = [e.new_label(), e.new_label()];
        e.load(Size::W, R2, R1, offsets.task_tgid);
        e.load(Size::W, R4, R3, offsets.task_tgid);
        e.jump_if(Cond::Ne, R2, R4, other_group);
        e.alu(Alu::Or, R5, CLONE_THREAD);
        e.bind(other_group);
        e.mov(R8, R5);
        e.follow(R9, R1, offsets.task_files);
        e.load_slot(R1, slot::CTX);
        e.load(Size::D, R1, R1, 0);
        e.follow(R2, R1, offsets.task_files);
        e.jump_if(Cond::Ne, R2, R9, other_files);
        e.alu(Alu::Or, R8, CLONE_FILES);
        e.bind(other_files);
        e.put("flags", R8);
        e.mov(R8, Layout::of(&g::P_FORK).fixed as i32);
        comm_tail(e);
        e.output();
    })
}

/// `sched_process_exec` (context: task, old pid, binprm).
pub fn exec(maps: &Maps, offsets: &BtfOffsets, session: &Session) -> Generated {
    program(maps, offsets, session, |e, out| {
        e.store_slot(slot::CTX, R1);
        e.state_or_new(out);
        e.name_slot();
        e.claimed_or(out, |e| {
            e.count_lost(Lost::Class(g::P_EXEC.id));
            let go = if session.only.is_some() { let_go } else { begun };
            go(e);
            e.jump(out);
        });
        late_name(e);
        if let Some(rights) = &session.only {
            other_rights(e, rights, out);
        }
        begun(e);
        executed(e);
    })
}

/// The event of the program that the current task has executed.
fn executed(e: &mut Emitter<'_>) {
    e.begin(&g::P_EXEC, 1);
    old_id(e);
    e.put("old_tid", R1);
    e.call(Helper::GetCurrentUidGid);
    e.put("uid", R0);
    e.alu(Alu::Rsh, R0, 32);
    e.put("gid", R0);
    comm_tail(e);
    e.output();
}

/// The current task is the command itself from here on.
fn begun(e: &mut Emitter<'_>) {
    e.note("the command has become itself");
    e.load_state(R1, state::FLAGS);
    e.alu(Alu::And, R1, !state::STARTING);
    e.store_state(state::FLAGS, R1);
    if e.maps.slots.is_some() {
        // Probes find it there.
        let none = e.new_label();
        e.home(none);
        e.load(Size::D, R1, R0, state::FLAGS);
        e.alu(Alu::And, R1, !state::STARTING);
        e.store(Size::D, R0, state::FLAGS, R1);
        e.bind(none);
    }
}

/// The current task is traced no longer.
fn let_go(e: &mut Emitter<'_>) {
    let maps = e.maps;
    e.gives_slot_back();
    e.task(R0);
    e.map_fd(R1, maps.tasks);
    e.mov(R2, R0);
    e.call(Helper::TaskStorageDelete);
}

/// Stops tracing the task, and so its future children, where it has executed a program with rights that the session's user does not
/// have. The execve is shown without a result.
fn other_rights(e: &mut Emitter<'_>, rights: &Rights, out: Label) {
    // include/linux/sched/coredump.h: MMF_DUMPABLE_MASK, SUID_DUMP_USER
    const DUMPABLE_MASK: i32 = 3;
    const DUMPED_FOR_ITS_USER: i32 = 1;
    let own = e.offsets.credentials;
    let [same, other, event, ended, drop] = std::array::from_fn(|_| e.new_label());
    e.note("another user's rights, capabilities, or a program that its user may not read");
    e.task(R0);
    e.follow(R8, R0, own.task_cred);
    for off in own.uids {
        e.follow(R2, R8, off);
        e.alu32(Alu::Sub, R2, rights.uid as i32);
        e.jump_if(Cond::Ne, R2, 0, other);
    }
    e.follow(R2, R8, own.permitted);
    e.constant(R1, !rights.capabilities);
    e.alu(Alu::And, R2, R1);
    e.jump_if(Cond::Ne, R2, 0, other);
    e.task(R0);
    e.follow(R2, R0, own.task_mm);
    e.follow(R2, R2, own.mm_flags);
    e.alu(Alu::And, R2, DUMPABLE_MASK);
    e.jump_if(Cond::Ne, R2, DUMPED_FOR_ITS_USER, other);
    e.jump(same);
    e.bind(other);
    e.load_state(R1, state::FLAGS);
    e.alu(Alu::And, R1, state::IN_CALL);
    if e.session.no_entry {
        // The execve, of which nothing else is known.
        e.count(scratch::UNRETURNED);
        e.jump(ended);
    }
    e.jump_if(Cond::Eq, R1, 0, ended);
    // What was not read at entry may not be read now: this is the new program's memory.
    e.load_state(R1, state::LEN);
    e.jump_if(Cond::Eq, R1, 0, drop);
    unfinished(e, event, ended, out);
    e.bind(event);
    call_event(e);
    e.jump(ended);
    e.bind(drop);
    e.count_lost(Lost::Unknown);
    e.bind(ended);
    executed(e);
    e.begin(&g::P_DETACH, 0);
    e.output();
    let_go(e);
    e.jump(out);
    e.bind(same);
}

/// The path of an execve, where it could not be read at entry: the memory that it was in is gone, but the kernel has a copy.
fn late_name(e: &mut Emitter<'_>) {
    const EXECVE: i32 = 59;
    const EXECVEAT: i32 = 322;
    const CUT: i32 = 2;
    const FAULT: i32 = 3;
    /// Bytes of a path with its NUL, and one to see whether it is cut.
    const ROOM: i32 = capture_row::MAX_PATH as i32 + 2;
    let offsets = e.offsets;
    let [known, first, second, faulted, bounded, whole] = std::array::from_fn(|_| e.new_label());
    e.note("the path, where it could not be read");
    e.load_state(R1, state::FLAGS);
    e.alu(Alu::And, R1, state::IN_CALL);
    e.jump_if(Cond::Eq, R1, 0, known);
    e.load_slot(R9, slot::CTX);
    e.load(Size::D, R9, R9, 16);
    // The place of the argument's capture bits.
    e.load_state(R1, state::NR);
    e.jump_if(Cond::Eq, R1, EXECVE, first);
    e.jump_if(Cond::Ne, R1, EXECVEAT, known);
    // The name that the kernel has made of a directory and a path is not what was asked for.
    e.follow(R1, R9, offsets.binprm_fdpath);
    e.jump_if(Cond::Eq, R1, 0, second);
    e.jump(known);
    e.bind(first);
    e.mov(R2, 0);
    e.jump(faulted);
    e.bind(second);
    e.mov(R2, 2);
    e.bind(faulted);
    e.store_slot(slot::TEMP, R2);
    e.load_state(R1, state::CAPS);
    e.alu(Alu::Rsh, R1, R2);
    e.alu(Alu::And, R1, FAULT);
    e.jump_if(Cond::Ne, R1, FAULT, known);
    e.load_state(R8, state::LEN);
    // Not `== 0`: kernels before 6.4 learn nothing of a number that is not zero.
    e.jump_if(Cond::Lt, R8, 1, known);
    e.jump_if(Cond::Gt, R8, state::ROOM, known);
    e.follow(R3, R9, offsets.binprm_filename);
    e.mov(R1, reg::BUFFER);
    e.mov(R2, ROOM);
    e.call(Helper::ProbeReadKernelStr);
    e.jump_if(Cond::Sle, R0, 1, known);
    e.jump_if(Cond::Le, R0, ROOM, bounded);
    e.mov(R0, ROOM);
    e.bind(bounded);
    e.mov(R9, R0);
    e.home(known);
    e.store_slot(slot::ADDR, R0);
    e.note("in front of the other tails");
    e.mov(R1, reg::BUFFER);
    e.alu(Alu::Add, R1, R9);
    e.mov(R2, R8);
    e.alu(Alu::Sub, R2, 1);
    e.load_slot(R3, slot::ADDR);
    e.alu(Alu::Add, R3, i32::from(state::TAILS) + 1);
    e.call(Helper::ProbeReadKernel);
    e.alu(Alu::Sub, R8, 1);
    e.alu(Alu::Add, R8, R9);
    e.jump_if(Cond::Gt, R8, state::ROOM, known);
    e.load_slot(R1, slot::ADDR);
    e.alu(Alu::Add, R1, i32::from(state::TAILS));
    e.mov(R2, R8);
    e.mov(R3, reg::BUFFER);
    e.call(Helper::ProbeReadKernel);
    e.store_state(state::LEN, R8);
    e.load_slot(R2, slot::TEMP);
    e.mov(R1, FAULT - 1);
    e.jump_if(Cond::Lt, R9, ROOM, whole);
    e.mov(R1, FAULT - CUT);
    e.bind(whole);
    e.alu(Alu::Lsh, R1, R2);
    e.load_state(R2, state::CAPS);
    e.alu(Alu::Xor, R2, R1);
    e.store_state(state::CAPS, R2);
    e.bind(known);
}

/// r1 = the id that the thread had before it took its leader's: the context has that of the initial namespace.
fn old_id(e: &mut Emitter<'_>) {
    let offsets = e.offsets;
    e.load_slot(R2, slot::CTX);
    if offsets.namespace.is_none() {
        return e.load(Size::D, R1, R2, 8);
    }
    let [known, same] = [e.new_label(), e.new_label()];
    e.home(same);
    e.load(Size::D, R1, R0, state::TID);
    e.task(R3);
    e.thread_id(R4, R3);
    e.store(Size::D, R0, state::TID, R4);
    e.load_slot(R2, slot::CTX);
    e.load(Size::W, R4, R3, offsets.task_pid);
    e.load(Size::W, R5, R2, 8);
    e.jump_if(Cond::Eq, R4, R5, same);
    e.jump_if(Cond::Ne, R1, 0, known);
    e.bind(same);
    e.task(R3);
    e.thread_id(R1, R3);
    e.bind(known);
}

/// `sched_process_exit` (context: task): the call that the task ends in, and its end.
pub fn exit(maps: &Maps, offsets: &BtfOffsets, session: &Session) -> Generated {
    program(maps, offsets, session, |e, out| {
        e.every_state();
        e.gives_slot_back();
        e.leave_out(out);
        let [event, ended] = [e.new_label(), e.new_label()];
        reached_its_end(e, out);
        if session.no_entry {
            e.find(out);
            no_entry::ends_in(e, ended);
            no_entry::count_unreturned(e, ended);
            e.bind(ended);
            e.claimed(Lost::Class(g::P_EXIT.id), out);
        } else {
            unfinished(e, event, ended, out);
            e.bind(event);
            call_event(e);
            e.bind(ended);
        }
        end(e, None, out);
    })
}

/// Counts that the current task has reached its end, whether its event is lost or not. Not in system-wide sessions, where nobody
/// waits for that.
pub(super) fn reached_its_end(e: &mut Emitter<'_>, out: Label) {
    let session = e.session;
    if !session.system_wide {
        e.find(out);
        e.count(scratch::ENDED);
    }
}

/// `sched_process_free` (context: task): a traced task is gone. It has switched for the last time, it was reaped, and
/// its memory is freed.
pub fn freed(maps: &Maps, offsets: &BtfOffsets, session: &Session) -> Generated {
    program(maps, offsets, session, |e, out| {
        e.load(Size::D, R2, R1, 0);
        e.storage(false);
        e.jump_if(Cond::Eq, R0, 0, out);
        e.find(out);
        e.count(scratch::FREED);
    })
}

/// The event of the end of the current task.
pub(super) fn end(e: &mut Emitter<'_>, shared: Option<Shared>, out: Label) {
    let offsets = e.offsets;
    e.load_state(R1, state::FLAGS);
    e.alu(Alu::And, R1, state::STARTING);
    e.jump_if(Cond::Ne, R1, 0, out);
    match shared {
        None => show_held(e),
        Some(shared) => {
            e.load_state(R1, state::HELD);
            e.jump_if(Cond::Ne, R1, held::NONE, shared.show);
            e.bind(shared.shown);
        }
    }
    e.note("the end of the task");
    superseded(e, out);
    e.begin(&g::P_EXIT, 0);
    e.task(R0);
    e.load(Size::W, R1, R0, offsets.task_exit_code);
    e.mov(R2, R1);
    e.alu(Alu::Rsh, R2, 8);
    e.alu(Alu::And, R2, 0xff);
    e.put("code", R2);
    e.mov(R2, R1);
    e.alu(Alu::And, R2, 0x7f);
    e.put("signo", R2);
    e.alu(Alu::Rsh, R1, 7);
    e.alu(Alu::And, R1, 1);
    e.put("core", R1);
    e.output();
}

/// A thread group's leader that ends because another thread has called execve has an event of its own: `process:superseded`.
fn superseded(e: &mut Emitter<'_>, out: Label) {
    let offsets = e.offsets;
    let no = e.new_label();
    e.task(R0);
    e.load(Size::W, R2, R0, offsets.task_pid);
    e.load(Size::W, R3, R0, offsets.task_tgid);
    e.jump_if(Cond::Ne, R2, R3, no);
    e.follow(R2, R0, offsets.task_signal);
    e.follow(R9, R2, offsets.signal_exec);
    e.jump_if(Cond::Eq, R9, 0, no);
    // It still has an id of its own: it takes the leader's later.
    distant_id(e, R9);
    e.begin(&g::P_SUPERSEDED, 0);
    e.put("by", R9);
    e.output();
    e.jump(out);
    e.bind(no);
}

/// `task` = the thread id of that task, to which the register is an untyped pointer.
fn distant_id(e: &mut Emitter<'_>, task: Reg) {
    let offsets = e.offsets;
    match offsets.namespace {
        None => e.follow(task, task, offsets.task_pid),
        Some(ns) => {
            e.follow(task, task, ns.thread_pid);
            e.follow(task, task, ns.number);
        }
    }
}
