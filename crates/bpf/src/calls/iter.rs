//! The task iterator behind in-flight notices: writes the calls that threads are in.
//!
//! ```text
//! record: 0 now  8 tid (u32), pid (u32)  16 bytes of tails │ the state up to its tails │ tails │ flags, start
//! ```
//!
//! A record is read while its thread may run. It holds together where flags and start at its end are those of its state; else
//! the thread has moved on, and the reader drops it.

use super::emit::{row, storage};
use super::plan::{self, NO_ROW, WANTED};
use super::state;
use super::target::Maps;
use crate::asm::{Assembler, Label};
use crate::helper::Helper;
use crate::insn::{Alu, Cond, Reg::*, Size};

/// Bytes of a record before the state.
pub const HEAD: usize = 24;
/// Bytes of the state in a record.
pub const STATE: usize = state::TAILS as usize;
/// Bytes behind the tails.
pub const TRAILER: usize = 16;
/// Bytes of the window, the only value of its array: calls that began after the first u64, and not after the second.
pub const WINDOW: u32 = 16;

/// Offsets by which a task's ids are found, as the namespace of the reading process knows them.
#[derive(Clone, Copy, Debug, Default)]
pub struct Offsets {
    /// `task_struct.thread_pid`.
    pub thread_pid: i32,
    /// `task_struct.group_leader`.
    pub group_leader: i32,
    /// `pid.level`.
    pub level: i32,
    /// `pid.numbers`, with that of `upid.nr` added.
    pub numbers: i32,
    /// Bytes of `struct upid`.
    pub upid: i32,
}

/// Stack slots, below those of the helpers of [`super::emit`] that are used here.
mod slot {
    pub const SEQ: i16 = -8;
    /// `TRAILER` bytes.
    pub const END: i16 = -24;
    /// `HEAD` bytes.
    pub const HEAD: i16 = -48;
    pub const POINTER: i16 = -56;
    pub const LEVEL: i16 = -64;
}

/// `*(slot) = *(base + off)`, zeroes where that cannot be read.
pub(super) fn peek(a: &mut Assembler, slot: i16, size: i32, base: crate::insn::Reg, off: i32) {
    a.mov(R3, base);
    a.alu(Alu::Add, R3, off);
    a.mov(R1, R10);
    a.alu(Alu::Add, R1, i32::from(slot));
    a.mov(R2, size);
    a.call(Helper::ProbeReadKernel);
}

/// `*(slot) =` the id of the task in r8, in the namespace at LEVEL.
fn id(a: &mut Assembler, slot: i16, at: &Offsets) {
    peek(a, slot::POINTER, 8, R8, at.thread_pid);
    a.load(Size::W, R1, R10, slot::LEVEL);
    a.alu(Alu::Mul, R1, at.upid);
    a.load(Size::D, R2, R10, slot::POINTER);
    a.alu(Alu::Add, R2, R1);
    peek(a, slot, 4, R2, at.numbers);
}

/// Writes `len` bytes at `base + off` to the sequence.
fn write(a: &mut Assembler, base: crate::insn::Reg, off: i16, len: impl Into<crate::asm::Operand>, out: Label) {
    a.load(Size::D, R1, R10, slot::SEQ);
    a.mov(R2, base);
    a.alu(Alu::Add, R2, i32::from(off));
    a.mov(R3, len);
    a.call(Helper::SeqWrite);
    // Too little room: the kernel takes back what was written of this task, and asks again with an empty buffer.
    a.jump_if(Cond::Ne, R0, 0, out);
}

/// The program for `bpf_iter_task` (context: meta, task). `window` is an array of one value of [`WINDOW`] bytes; `unknown`: calls
/// that no row describes, and 32-bit ones, are wanted.
pub fn in_flight(maps: &Maps, window: i32, at: &Offsets, unknown: bool) -> Result<crate::Program, crate::AsmError> {
    let mut a = Assembler::new();
    let [out, other, wanted, no_tails, ended] = std::array::from_fn(|_| a.new_label());
    let a = &mut a;
    a.load(Size::D, R7, R1, 8);
    a.load(Size::D, R1, R1, 0);
    a.load(Size::D, R1, R1, 0);
    a.store(Size::D, R10, slot::SEQ, R1);
    a.note("no task: the end");
    a.jump_if(Cond::Eq, R7, 0, out);
    a.mov(R2, R7);
    storage(a, maps, false);
    a.jump_if(Cond::Eq, R0, 0, out);
    a.mov(R6, R0);
    a.load(Size::D, R1, R6, state::FLAGS);
    a.mov(R2, R1);
    a.alu(Alu::And, R2, state::IN_CALL | state::STARTING | state::REJECTED);
    a.jump_if(Cond::Ne, R2, state::IN_CALL, out);
    a.note("began within the window");
    a.load(Size::D, R2, R6, state::START);
    a.map_value(R3, window, 0);
    a.load(Size::D, R4, R3, 0);
    a.jump_if(Cond::Le, R2, R4, out);
    a.load(Size::D, R4, R3, 8);
    a.jump_if(Cond::Gt, R2, R4, out);
    a.alu(Alu::And, R1, state::COMPAT);
    a.jump_if(Cond::Ne, R1, 0, other);
    a.load(Size::D, R1, R6, state::NR);
    row(a, maps, other);
    a.load(Size::H, R1, R9, plan::FLAGS);
    a.mov(R2, R1);
    a.alu(Alu::And, R2, i32::from(NO_ROW));
    a.jump_if(Cond::Ne, R2, 0, other);
    a.alu(Alu::And, R1, i32::from(WANTED));
    a.jump_if(Cond::Eq, R1, 0, out);
    a.jump(wanted);
    a.bind(other);
    if !unknown {
        a.jump(out);
    }
    a.bind(wanted);
    a.note("who, as the reader knows them");
    a.call(Helper::KtimeGetNs);
    a.store(Size::D, R10, slot::HEAD, R0);
    a.call(Helper::GetCurrentTaskBtf);
    peek(a, slot::POINTER, 8, R0, at.thread_pid);
    a.load(Size::D, R8, R10, slot::POINTER);
    peek(a, slot::LEVEL, 4, R8, at.level);
    a.mov(R8, R7);
    id(a, slot::HEAD + 8, at);
    peek(a, slot::POINTER, 8, R7, at.group_leader);
    a.load(Size::D, R8, R10, slot::POINTER);
    id(a, slot::HEAD + 12, at);
    a.note("tails that were read at entry");
    a.load(Size::D, R9, R6, state::LEN);
    a.jump_if(Cond::Le, R9, state::ROOM, no_tails);
    a.mov(R9, 0);
    a.bind(no_tails);
    a.store(Size::D, R10, slot::HEAD + 16, R9);
    write(a, R10, slot::HEAD, HEAD as i32, out);
    write(a, R6, 0, STATE as i32, out);
    a.jump_if(Cond::Eq, R9, 0, ended);
    a.jump_if(Cond::Gt, R9, state::ROOM, out);
    write(a, R6, state::TAILS, R9, out);
    a.bind(ended);
    a.load(Size::D, R1, R6, state::FLAGS);
    a.store(Size::D, R10, slot::END, R1);
    a.load(Size::D, R1, R6, state::START);
    a.store(Size::D, R10, slot::END + 8, R1);
    write(a, R10, slot::END, TRAILER as i32, out);
    a.bind(out);
    a.mov(R0, 0);
    a.exit();
    std::mem::take(a).finish()
}

/// Bytes of a seed: a state, and a u64 that says what became of it.
pub const SEED: u32 = state::SIZE + 8;
/// The task had a state of its own.
pub const HAD_ONE: i32 = 1;
/// The task has this state now.
pub const TAKEN: i32 = 2;

/// A program for `bpf_iter_task` that gives tasks a state. `seeds` is a hash from thread ids of the initial pid namespace (u32) to
/// values of [`SEED`] bytes. `task_pid`: the offset of `task_struct.pid`.
pub fn adopt(maps: &Maps, seeds: i32, task_pid: i16) -> Result<crate::Program, crate::AsmError> {
    const CREATE: i32 = 1; // BPF_LOCAL_STORAGE_GET_F_CREATE, include/uapi/linux/bpf.h
    let mut a = Assembler::new();
    let [out, had_one] = std::array::from_fn(|_| a.new_label());
    a.load(Size::D, R7, R1, 8);
    a.note("no task: the end");
    a.jump_if(Cond::Eq, R7, 0, out);
    a.load(Size::W, R1, R7, task_pid);
    a.store(Size::W, R10, slot::SEQ, R1);
    a.map_fd(R1, seeds);
    a.mov(R2, R10);
    a.alu(Alu::Add, R2, i32::from(slot::SEQ));
    a.call(Helper::MapLookup);
    a.jump_if(Cond::Eq, R0, 0, out);
    a.mov(R6, R0);
    a.load(Size::D, R1, R6, state::SIZE as i16);
    a.jump_if(Cond::Ne, R1, 0, out);
    a.mov(R2, R7);
    storage(&mut a, maps, false);
    a.jump_if(Cond::Ne, R0, 0, had_one);
    a.map_fd(R1, maps.tasks);
    a.mov(R2, R7);
    a.mov(R3, R6);
    a.mov(R4, CREATE);
    a.call(Helper::TaskStorageGet);
    a.jump_if(Cond::Eq, R0, 0, out);
    a.store(Size::D, R6, state::SIZE as i16, TAKEN);
    a.jump(out);
    a.bind(had_one);
    a.store(Size::D, R6, state::SIZE as i16, HAD_ONE);
    a.bind(out);
    a.mov(R0, 0);
    a.exit();
    a.finish()
}

/// A program for `bpf_iter_task` that writes one u32: the level of the reading process's pid namespace. The kernel tells no
/// process how deep its namespace is.
pub fn level(at: &Offsets) -> Result<crate::Program, crate::AsmError> {
    let mut a = Assembler::new();
    let out = a.new_label();
    a.load(Size::D, R7, R1, 8);
    a.load(Size::D, R1, R1, 0);
    a.load(Size::D, R1, R1, 0);
    a.store(Size::D, R10, slot::SEQ, R1);
    a.note("once, behind the last task");
    a.jump_if(Cond::Ne, R7, 0, out);
    a.call(Helper::GetCurrentTaskBtf);
    peek(&mut a, slot::POINTER, 8, R0, at.thread_pid);
    a.load(Size::D, R8, R10, slot::POINTER);
    peek(&mut a, slot::LEVEL, 4, R8, at.level);
    write(&mut a, R10, slot::LEVEL, 4, out);
    a.bind(out);
    a.mov(R0, 0);
    a.exit();
    a.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_without_a_row_are_written_only_where_wanted() {
        let maps = Maps {
            tasks: 3,
            scratch: 4,
            shape: crate::scratch::Shape::CALLS,
            rings: Default::default(),
            rows: 6,
            row_count: 470,
            switches: 7,
        };
        let made = |unknown| in_flight(&maps, 9, &Offsets::default(), unknown).unwrap().to_string();
        for text in [made(true), made(false)] {
            assert_eq!(text.matches("seq_write").count(), 4, "{text}");
        }
        assert_ne!(made(true), made(false));
    }
}
