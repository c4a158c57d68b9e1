//! The only op of a call such as read and write, one buffer, without a function that is called back: less than half the instructions.
//!
//! Invariant: what it appends is what the op would.

use super::op::*;
use crate::capture_row::{OPS, length};
use crate::scratch::OFFSET;

// Fields of the row's first op (`capture_row::Op`).
const OP_ARG: i16 = OPS + 1;
const OP_LENGTH: i16 = OPS + 3;
const OP_LEN_ARG: i16 = OPS + 4;
const OP_EXIT: i16 = OPS + 9;
const OP_MAX: i16 = OPS + 14;

/// Appends the tail of a row that is [`capture_row::STRAIGHT`](crate::capture_row::STRAIGHT).
pub fn straight(e: &mut Emitter<'_>) {
    let [ready, known, of_argument, whole, bounded, none, fault, empty, done] = std::array::from_fn(|_| e.new_label());
    e.note("the only tail: bytes");
    e.load_row(Size::B, R1, OP_EXIT);
    e.jump_if(Cond::Eq, R1, 0, ready);
    e.get_ended(R1);
    e.jump_if(Cond::Ne, R1, 0, empty);
    e.result(R2);
    e.jump_if(Cond::Sge, R2, 0, ready);
    // Only -4095…-1 are errors (include/linux/err.h).
    e.jump_if(Cond::Sge, R2, -4095, empty);
    e.bind(ready);
    argument(e, R3, OP_ARG);
    e.jump_if(Cond::Eq, R3, 0, empty);
    e.load_row(Size::B, R1, OP_LENGTH);
    e.jump_if(Cond::Ne, R1, i32::from(length::RET), of_argument);
    e.result(R2);
    e.jump_if(Cond::Sgt, R2, 0, known);
    e.mov(R2, 0);
    e.jump(known);
    e.bind(of_argument);
    argument(e, R2, OP_LEN_ARG);
    e.bind(known);
    e.load_row(Size::H, R1, OP_MAX);
    e.mov(R4, WHOLE);
    e.jump_if(Cond::Le, R2, R1, whole);
    e.mov(R2, R1);
    e.mov(R4, CUT);
    e.bind(whole);
    e.jump_if(Cond::Le, R2, MAX_BYTES, bounded);
    e.mov(R2, MAX_BYTES);
    e.bind(bounded);
    e.store_slot(slot::CAP, R4);
    e.store_slot(slot::LEN, R2);
    e.jump_if(Cond::Eq, R2, 0, none);
    e.place(R1, 2);
    e.call(Helper::ProbeReadUser);
    e.jump_if(Cond::Slt, R0, 0, fault);
    e.bind(none);
    e.place(R1, 0);
    e.load_slot(R2, slot::LEN);
    e.store(Size::H, R1, 0, R2);
    e.alu(Alu::Add, reg::END, R2);
    e.jump(done);
    e.bind(empty);
    e.store_slot(slot::CAP, 0);
    e.place(R1, 0);
    e.store(Size::H, R1, 0, 0);
    e.jump(done);
    e.bind(fault);
    e.store_slot(slot::CAP, FAULT);
    e.place(R1, 0);
    e.store(Size::H, R1, 0, 0);
    e.bind(done);
    e.alu(Alu::Add, reg::END, 2);
    e.load_row(Size::B, R2, OP_ARG);
    e.alu(Alu::Lsh, R2, 1);
    e.load_slot(R1, slot::CAP);
    e.alu(Alu::Lsh, R1, R2);
    e.set_caps(R1);
    // What the verifier knows of the end must not split its ways.
    e.spill(OFFSET, reg::END);
    e.reload(reg::END, OFFSET);
}

/// `r` = the argument whose index is at `at` of the row.
fn argument(e: &mut Emitter<'_>, r: Reg, at: i16) {
    e.load_row(Size::B, r, at);
    e.alu(Alu::And, r, 7);
    e.alu(Alu::Lsh, r, 3);
    e.alu(Alu::Add, r, reg::STATE);
    e.load(Size::D, r, r, state::ARGS);
}
