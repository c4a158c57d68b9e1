//! The task iterator of `process:inflight`: writes the calls that threads are in.
//!
//! ```text
//! record: 0 now  8 tid (u32), pid (u32)  16 bytes of tails │ the state up to its tails │ tails │ flags, start, registers │ kernel stack
//! ```
//!
//! A record is read while its thread may run. It holds together where flags and start at its end are those of its state; else
//! the thread has left the call, and the reader drops it.
//!
//! Programs of iterators have no scratch buffer: r7 is the task that they are at.

use crate::asm::{Label, Operand};
use crate::btf_offsets::{BtfOffsets, Ids};
use crate::capture_row::{self, NO_ROW, WANTED};
use crate::frame::state::look;
use crate::frame::{Emitter, FRAMES, Generated, Maps, Session, reg, state};
use crate::helper::Helper;
use crate::insn::{Alu, Atomic, Cond, Reg, Reg::*, Size};

/// Bytes of a record before the state.
pub const HEAD: usize = 24;
/// Bytes of the state in a record.
pub const STATE: usize = state::TAILS as usize;
/// Bytes after the tails: flags and start, [`KEPT`] registers, the number of the call, the `fs` base, and bytes of the kernel's stack,
/// which follows.
pub const TRAILER: usize = 8 * (2 + KEPT + 3);
/// The registers that are written of a task: rip, rsp, rbp, rbx, r12, r13, r14 and r15, which a call keeps.
pub const KEPT: usize = 8;
/// Bytes of the window, the only value of its array: calls that began after the first u64, and not after the second. Then room for a stack.
pub const WINDOW: u32 = BOUNDS as u32 + 8 * FRAMES as u32;
/// Bytes of the two.
pub const BOUNDS: usize = 16;

/// What is written of a thread for the stacks of its call.
#[derive(Clone, Copy, Debug)]
pub struct Stacks {
    /// The offset of `thread.fsbase` in `task_struct`.
    pub fs_base: i32,
    /// Frames of the kernel's stack, at most.
    pub kernel: u8,
}

/// The task.
const TASK: Reg = R7;

/// Stack slots, above those that the [`Emitter`] uses here.
mod slot {
    pub const SEQ: i16 = -8;
    /// `HEAD` bytes.
    pub const HEAD: i16 = -48;
    pub const POINTER: i16 = -56;
    pub const LEVEL: i16 = -64;
    /// The task's home.
    pub const HOME: i16 = -72;
    /// `TRAILER` bytes, below all of the [`Emitter`]'s.
    pub const END: i16 = crate::frame::slot::LAST - super::TRAILER as i16;
}

/// `*(slot) =` the id of the task in r8, in the namespace at LEVEL.
fn id(e: &mut Emitter<'_>, slot: i16, at: &Ids) {
    e.peek(slot::POINTER, 8, R8, at.thread_pid);
    e.load(Size::W, R1, R10, slot::LEVEL);
    e.alu(Alu::Mul, R1, at.upid);
    e.load_slot(R2, slot::POINTER);
    e.alu(Alu::Add, R2, R1);
    e.peek(slot, 4, R2, at.numbers);
}

/// `STATE` = the words of the task, whose home is there and in [`slot::HOME`]: in its slot, where it has one. A task without a home, and one
/// that is not traced, goes to `out`; where it has a slot from before, its next program looks at the home.
fn slot_of_task(e: &mut Emitter<'_>, out: Label) {
    let [traced, at_home, look] = std::array::from_fn(|_| e.new_label());
    let Some(slots) = e.maps.slots else {
        e.jump_if(Cond::Eq, reg::STATE, 0, out);
        return e.store_slot(slot::HOME, reg::STATE);
    };
    e.mov(R1, TASK);
    e.call(Helper::TaskPtRegs);
    e.mov(R8, R0);
    e.jump_if(Cond::Eq, reg::STATE, 0, look);
    e.load_state(R1, state::FLAGS);
    e.jump_if(Cond::Set, R1, state::LEFT_OUT | state::OWN, look);
    e.jump(traced);
    e.bind(look);
    e.slot_of(slots, R8, out);
    e.load(Size::D, R1, R0, state::KEY);
    e.jump_if(Cond::Ne, R1, R8, out);
    e.mov(R1, look::ANEW);
    e.atomic(Atomic::Or, Size::D, R0, state::LOOK, R1);
    e.jump(out);
    e.bind(traced);
    e.store_slot(slot::HOME, reg::STATE);
    e.slot_of(slots, R8, at_home);
    e.load(Size::D, R1, R0, state::KEY);
    e.jump_if(Cond::Ne, R1, R8, at_home);
    e.mov(reg::STATE, R0);
    e.bind(at_home);
}

/// TASK and [`slot::SEQ`] `=` what the context has (meta, task).
fn task_and_sequence(e: &mut Emitter<'_>) {
    e.load(Size::D, TASK, R1, 8);
    e.load(Size::D, R1, R1, 0);
    e.load(Size::D, R1, R1, 0);
    e.store_slot(slot::SEQ, R1);
}

/// [`slot::LEVEL`] `=` the level of the reading process's pid namespace.
fn level_of_reader(e: &mut Emitter<'_>, at: &Ids) {
    e.call(Helper::GetCurrentTaskBtf);
    e.peek(slot::POINTER, 8, R0, at.thread_pid);
    e.load_slot(R8, slot::POINTER);
    e.peek(slot::LEVEL, 4, R8, at.level);
}

/// `*(slot) =` thread and process of the task (u32 each), as the reader knows them.
fn ids(e: &mut Emitter<'_>, slot: i16, at: &Ids) {
    level_of_reader(e, at);
    e.mov(R8, TASK);
    id(e, slot, at);
    e.peek(slot::POINTER, 8, TASK, at.group_leader);
    e.load_slot(R8, slot::POINTER);
    id(e, slot + 4, at);
}

/// Writes `len` bytes at `base + off` to the sequence.
fn write(e: &mut Emitter<'_>, base: Reg, off: i16, len: impl Into<Operand>, out: Label) {
    e.load_slot(R1, slot::SEQ);
    e.mov(R2, base);
    e.alu(Alu::Add, R2, i32::from(off));
    e.mov(R3, len);
    e.call(Helper::SeqWrite);
    // Too little room: the kernel discards what was written for this task, and runs the program again with an empty buffer.
    e.jump_if(Cond::Ne, R0, 0, out);
}

/// The registers with which the task has entered the kernel, [`KEPT`] words from this slot upwards; r8 = where they all are.
fn registers_of_task(e: &mut Emitter<'_>, slot: i16) {
    /// `struct pt_regs` (`arch/x86/include/asm/ptrace.h`): ip, sp, bp, bx, r12 to r15.
    const OF_USER: [i16; KEPT] = [128, 152, 32, 40, 24, 16, 8, 0];
    e.mov(R1, TASK);
    e.call(Helper::TaskPtRegs);
    e.mov(R8, R0);
    for (nth, at) in (0..).zip(OF_USER) {
        e.load(Size::D, R1, R8, at);
        e.store_slot(slot + 8 * nth, R1);
    }
}

/// Where the trailer has the number of the call.
const NUMBER_AT: i16 = slot::END + 16 + 8 * KEPT as i16;
/// And the bytes of the kernel's stack.
const LENGTH_AT: i16 = NUMBER_AT + 16;

/// What a walk up the task's stack begins with, into the trailer, and the kernel's stack into the window; zeros where they are not wanted.
fn stacks_of_call(e: &mut Emitter<'_>, window: i32, stacks: Option<Stacks>) {
    /// `orig_ax` of `struct pt_regs`.
    const NUMBER: i16 = 120;
    let first = slot::END + 16;
    let Some(Stacks { fs_base, kernel }) = stacks else {
        return (first..=LENGTH_AT).step_by(8).for_each(|at| e.store(Size::D, R10, at, 0));
    };
    registers_of_task(e, first);
    e.load(Size::D, R1, R8, NUMBER);
    e.store_slot(NUMBER_AT, R1);
    e.peek(NUMBER_AT + 8, 8, TASK, fs_base);
    e.store(Size::D, R10, LENGTH_AT, 0);
    if kernel > 0 {
        let none = e.new_label();
        e.mov(R1, TASK);
        e.map_value(R2, window, BOUNDS as u32);
        e.mov(R3, 8 * i32::from(kernel).min(FRAMES));
        e.mov(R4, 0);
        e.call(Helper::GetTaskStack);
        e.jump_if(Cond::Sle, R0, 0, none);
        e.store_slot(LENGTH_AT, R0);
        e.bind(none);
    }
}

/// The kernel's stack behind the trailer.
fn write_stack(e: &mut Emitter<'_>, window: i32, out: Label) {
    e.load_slot(R9, LENGTH_AT);
    e.jump_if(Cond::Eq, R9, 0, out);
    e.jump_if(Cond::Gt, R9, 8 * FRAMES, out);
    e.map_value(R8, window, 0);
    write(e, R8, BOUNDS as i16, R9, out);
}

/// The program for `bpf_iter_task` (context: meta, task). `window` is an array of one value of [`WINDOW`] bytes; `unknown`: calls
/// that no row describes, and 32-bit ones, are wanted; `stacks`: what is written for stacks (Linux 5.15).
pub fn in_flight(maps: &Maps, window: i32, at: &Ids, unknown: bool, stacks: Option<Stacks>) -> Generated {
    let (offsets, session) = (BtfOffsets::default(), Session::default());
    let mut e = Emitter::new(maps, &offsets, &session);
    let [out, other, wanted, no_tails, ended] = std::array::from_fn(|_| e.new_label());
    task_and_sequence(&mut e);
    e.note("no task: the end");
    e.jump_if(Cond::Eq, TASK, 0, out);
    e.mov(R2, TASK);
    e.storage(false);
    e.mov(reg::STATE, R0);
    slot_of_task(&mut e, out);
    e.load_state(R1, state::FLAGS);
    e.mov(R2, R1);
    e.alu(Alu::And, R2, state::IN_CALL | state::STARTING | state::REJECTED);
    e.jump_if(Cond::Ne, R2, state::IN_CALL, out);
    e.note("began within the window");
    e.load_state(R2, state::START);
    e.map_value(R3, window, 0);
    e.load(Size::D, R4, R3, 0);
    e.jump_if(Cond::Le, R2, R4, out);
    e.load(Size::D, R4, R3, 8);
    e.jump_if(Cond::Gt, R2, R4, out);
    e.alu(Alu::And, R1, state::COMPAT);
    e.jump_if(Cond::Ne, R1, 0, other);
    e.load_state(R1, state::NR);
    e.row(other);
    e.load_row(Size::H, R1, capture_row::FLAGS);
    e.mov(R2, R1);
    e.alu(Alu::And, R2, i32::from(NO_ROW));
    e.jump_if(Cond::Ne, R2, 0, other);
    e.alu(Alu::And, R1, i32::from(WANTED));
    e.jump_if(Cond::Eq, R1, 0, out);
    e.jump(wanted);
    e.bind(other);
    if !unknown {
        e.jump(out);
    }
    e.bind(wanted);
    e.note("who, as the reader knows them");
    e.call(Helper::KtimeGetNs);
    e.store_slot(slot::HEAD, R0);
    ids(&mut e, slot::HEAD + 8, at);
    e.note("tails that were read at entry");
    e.load_state(R9, state::LEN);
    e.jump_if(Cond::Le, R9, state::ROOM, no_tails);
    e.mov(R9, 0);
    e.bind(no_tails);
    e.store_slot(slot::HEAD + 16, R9);
    write(&mut e, R10, slot::HEAD, HEAD as i32, out);
    write(&mut e, reg::STATE, 0, STATE as i32, out);
    e.jump_if(Cond::Eq, R9, 0, ended);
    e.jump_if(Cond::Gt, R9, state::ROOM, out);
    e.load_slot(R8, slot::HOME);
    write(&mut e, R8, state::TAILS, R9, out);
    e.bind(ended);
    stacks_of_call(&mut e, window, stacks);
    e.load_state(R1, state::FLAGS);
    e.store_slot(slot::END, R1);
    e.load_state(R1, state::START);
    e.store_slot(slot::END + 8, R1);
    write(&mut e, R10, slot::END, TRAILER as i32, out);
    if stacks.is_some_and(|s| s.kernel > 0) {
        write_stack(&mut e, window, out);
    }
    e.bind(out);
    e.mov(R0, 0);
    e.exit();
    e.finish()
}

/// Bytes of a seed: a state, and a u64 with the outcome.
pub const SEED: u32 = state::SIZE + 8;
/// The task had a state of its own.
pub const HAD_ONE: i32 = 1;
/// The task has this state now.
pub const TAKEN: i32 = 2;

/// A program for `bpf_iter_task` that gives tasks a state. `seeds` is a hash from thread ids of the initial pid namespace (u32) to
/// values of [`SEED`] bytes. `task_pid`: the offset of `task_struct.pid`.
pub fn adopt(maps: &Maps, seeds: i32, task_pid: i16) -> Generated {
    const CREATE: i32 = 1; // BPF_LOCAL_STORAGE_GET_F_CREATE, include/uapi/linux/bpf.h
    let (offsets, session) = (BtfOffsets::default(), Session::default());
    let mut e = Emitter::new(maps, &offsets, &session);
    let [out, had_one] = std::array::from_fn(|_| e.new_label());
    e.load(Size::D, TASK, R1, 8);
    e.note("no task: the end");
    e.jump_if(Cond::Eq, TASK, 0, out);
    e.load(Size::W, R1, TASK, task_pid);
    e.store(Size::W, R10, slot::SEQ, R1);
    e.map_fd(R1, seeds);
    e.slot_address(R2, slot::SEQ);
    e.call(Helper::MapLookup);
    e.jump_if(Cond::Eq, R0, 0, out);
    e.mov(reg::STATE, R0);
    e.load_state(R1, state::SIZE as i16);
    e.jump_if(Cond::Ne, R1, 0, out);
    e.mov(R2, TASK);
    e.storage(false);
    e.jump_if(Cond::Ne, R0, 0, had_one);
    e.map_fd(R1, maps.tasks);
    e.mov(R2, TASK);
    e.mov(R3, reg::STATE);
    e.mov(R4, CREATE);
    e.call(Helper::TaskStorageGet);
    e.jump_if(Cond::Eq, R0, 0, out);
    e.store_state(state::SIZE as i16, TAKEN);
    e.jump(out);
    e.bind(had_one);
    e.store_state(state::SIZE as i16, HAD_ONE);
    e.bind(out);
    e.mov(R0, 0);
    e.exit();
    e.finish()
}

/// A program for `bpf_iter_task` that writes one u32: the level of the reading process's pid namespace. No system call
/// reports how deep a namespace is.
pub fn level(at: &Ids) -> Generated {
    let maps = Maps::default();
    let (offsets, session) = (BtfOffsets::default(), Session::default());
    let mut e = Emitter::new(&maps, &offsets, &session);
    let out = e.new_label();
    task_and_sequence(&mut e);
    e.note("once, behind the last task");
    e.jump_if(Cond::Ne, TASK, 0, out);
    level_of_reader(&mut e, at);
    write(&mut e, R10, slot::LEVEL, 4, out);
    e.bind(out);
    e.mov(R0, 0);
    e.exit();
    e.finish()
}

/// Bytes of a record of [`registers`]: thread and process (u32 each), then rip, rsp, rbp, rbx, r12, r13, r14 and r15.
pub const REGISTERS: usize = 8 * (1 + KEPT);

/// A program for `bpf_iter_task` that writes the registers with which each task has entered the kernel: a record of [`REGISTERS`] bytes.
/// They are those of its user space as long as it is blocked.
pub fn registers(at: &Ids) -> Generated {
    const RECORD: i16 = slot::HOME - REGISTERS as i16;
    let maps = Maps::default();
    let (offsets, session) = (BtfOffsets::default(), Session::default());
    let mut e = Emitter::new(&maps, &offsets, &session);
    let out = e.new_label();
    task_and_sequence(&mut e);
    e.note("no task: the end");
    e.jump_if(Cond::Eq, TASK, 0, out);
    ids(&mut e, RECORD, at);
    registers_of_task(&mut e, RECORD + 8);
    write(&mut e, R10, RECORD, REGISTERS as i32, out);
    e.bind(out);
    e.mov(R0, 0);
    e.exit();
    e.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_without_a_row_are_written_only_where_wanted() {
        let maps = Maps { tasks: 3, scratch: 4, rows: 6, row_count: 470, switches: 7, ..Maps::default() };
        let made = |unknown| {
            in_flight(&maps, 9, &Ids::default(), unknown, Some(Stacks { fs_base: 40, kernel: 0 })).unwrap().to_string()
        };
        for text in [made(true), made(false)] {
            assert_eq!(text.matches("seq_write").count(), 4, "{text}");
        }
        assert_ne!(made(true), made(false));
    }
}
