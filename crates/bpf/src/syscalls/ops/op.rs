//! The op that runs: its fields, its mark, its length, and how functions are called back.

use crate::scratch::*;

pub(crate) use crate::asm::Label;
pub(crate) use crate::capture_row::kind;
pub(crate) use crate::frame::{Emitter, reg, slot, state};
pub(crate) use crate::helper::Helper;
pub(crate) use crate::insn::{Alu, Cond, Reg, Reg::*, Size};

/// Where the last tail may start: the largest op must have room there.
pub(crate) const LAST_TAIL: i32 = 0x3fff;
/// The most bytes that a byte op reads.
pub(crate) const MAX_BYTES: i32 = 32768;
/// The most bytes that a string op reads, with two to see whether it is cut.
pub(crate) const MAX_STR: i32 = 4002;
const _: () = assert!(LAST_TAIL as usize + MAX_BYTES as usize + 64 <= EVENT);
/// Strings of an array that are read; the rest is counted.
pub(crate) const MAX_STRINGS: i32 = 512;
/// Strings of an array that are counted.
pub(crate) const MAX_COUNT: i32 = 4096;
/// iovecs that are read.
pub(crate) const MAX_IOV: i32 = 1024;
/// Bytes of control messages.
pub(crate) const MAX_CONTROL: i32 = 512;

// Fields of the op in its stack slot (`capture_row::Op`).
pub(crate) const KIND: i16 = slot::OP;
pub(crate) const ARG: i16 = slot::OP + 1;
pub(crate) const WHEN: i16 = slot::OP + 2;
pub(crate) const LENGTH: i16 = slot::OP + 3;
pub(crate) const LEN_ARG: i16 = slot::OP + 4;
pub(crate) const GUARD: i16 = slot::OP + 5;
pub(crate) const ELEM: i16 = slot::OP + 6;
pub(crate) const MUL: i16 = slot::OP + 8;
pub(crate) const EXIT: i16 = slot::OP + 9;
pub(crate) const DIV: i16 = slot::OP + 12;
pub(crate) const N: i16 = slot::OP + 10;
pub(crate) const MAX: i16 = slot::OP + 14;

pub(crate) const WHOLE: i32 = 1;
pub(crate) const CUT: i32 = 2;
pub(crate) const FAULT: i32 = 3;

/// The beginning of a function that is called back: `BUFFER`, the words and `END` from the frame of its caller (r2), which is kept in CTX,
/// and the number of the iteration (r1) in I.
pub(crate) fn enter(e: &mut Emitter<'_>) {
    e.store_slot(slot::CTX, R2);
    e.store_slot(slot::I, R1);
    e.load(Size::D, reg::BUFFER, R2, slot::SCRATCH);
    e.load(Size::D, R3, R2, slot::WORDS);
    e.store_slot(slot::WORDS, R3);
    e.reload(reg::END, OFFSET);
}

/// Returns: 0 for more, 1 for enough. `END` is passed in a word.
pub(crate) fn leave(e: &mut Emitter<'_>, enough: i32) {
    e.spill(OFFSET, reg::END);
    e.mov(R0, enough);
    e.exit();
}

/// Bounds `END`, equally for every path to this point: through memory, because the verifier would otherwise keep what it knows
/// of it on each of them, and check all that follows once for each.
pub(crate) fn forget_range(e: &mut Emitter<'_>, drop: Label) {
    e.words(R1);
    e.store(Size::D, R1, SPARE, reg::END);
    e.load(Size::D, reg::END, R1, SPARE);
    e.jump_if(Cond::Gt, reg::END, LAST_TAIL, drop);
}

/// `r` = the argument whose index is at `at` of the op.
pub(crate) fn argument(e: &mut Emitter<'_>, r: Reg, at: i16) {
    e.load(Size::B, r, R10, at);
    e.alu(Alu::And, r, 7);
    e.alu(Alu::Lsh, r, 3);
    e.alu(Alu::Add, r, reg::STATE);
    e.load(Size::D, r, r, state::ARGS);
}

/// Sets the op's mark.
pub(crate) fn set_cap(e: &mut Emitter<'_>, cap: i32) {
    e.store_slot(slot::CAP, cap);
}

/// Jumps to `empty` with the mark of a fault when r0 is an error.
pub(crate) fn fault(e: &mut Emitter<'_>, empty: Label) {
    let fine = e.new_label();
    e.jump_if(Cond::Sge, R0, 0, fine);
    set_cap(e, FAULT);
    e.jump(empty);
    e.bind(fine);
}

/// `r` = the op's most bytes, at most `most`.
pub(crate) fn max(e: &mut Emitter<'_>, r: Reg, most: i32) {
    let fine = e.new_label();
    e.load(Size::H, r, R10, MAX);
    e.jump_if(Cond::Le, r, most, fine);
    e.mov(r, most);
    e.bind(fine);
}

/// Bounds `END` for the verifier again, to which what a function returns is unknown; else goes to `no`.
pub(crate) fn bound_offset(e: &mut Emitter<'_>, no: Label) {
    e.jump_if(Cond::Gt, reg::END, MAX_EVENT, no);
}

/// Calls `function` back up to `n` times, with this frame. `END` is passed in a word.
pub(crate) fn call_back(e: &mut Emitter<'_>, function: Label, n: i32) {
    e.spill(OFFSET, reg::END);
    e.mov(R1, n);
    e.func(R2, function);
    e.mov(R3, R10);
    e.mov(R4, 0);
    e.call(Helper::Loop);
    e.reload(reg::END, OFFSET);
}
