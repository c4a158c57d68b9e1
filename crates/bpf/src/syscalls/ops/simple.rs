//! Ops of strings, bytes and elements: one read each.
//!
//! Invariant: each op appends exactly one tail, the empty one where anything fails.

use super::op::*;
use crate::scratch::*;

/// Reads r2 bytes of the target at its address to r1; r0 < 0 where that failed.
pub(super) fn read_at_addr(e: &mut Emitter<'_>) {
    e.load_slot(R3, slot::ADDR);
    e.call(Helper::ProbeReadUser);
}

/// r2 = the smaller of the length and the limit; the mark shows which.
pub(super) fn clamp(e: &mut Emitter<'_>, most: i32) {
    let [whole, bounded] = [e.new_label(), e.new_label()];
    max(e, R1, most);
    e.reload(R2, LEN);
    set_cap(e, WHOLE);
    e.jump_if(Cond::Le, R2, R1, whole);
    set_cap(e, CUT);
    e.mov(R2, R1);
    e.bind(whole);
    e.jump_if(Cond::Le, R2, most, bounded);
    e.mov(R2, most);
    e.bind(bounded);
}

pub(super) fn bytes(e: &mut Emitter<'_>, empty: Label) {
    let none = e.new_label();
    clamp(e, MAX_BYTES);
    e.spill(LEN, R2);
    e.mov(R0, 0);
    e.jump_if(Cond::Eq, R2, 0, none);
    e.place(R1, 2);
    read_at_addr(e);
    fault(e, empty);
    e.bind(none);
    end_bytes(e);
}

/// A System V message. Where its text cannot be read, its type alone, with the mark of what is cut.
pub(super) fn message_text(e: &mut Emitter<'_>, empty: Label) {
    const TYPE: i32 = events::types::MTYPE as i32;
    let whole = e.new_label();
    e.reload(R2, LEN);
    e.alu(Alu::Add, R2, TYPE);
    e.spill(LEN, R2);
    clamp(e, MAX_BYTES);
    e.spill(LEN, R2);
    e.place(R1, 2);
    read_at_addr(e);
    e.jump_if(Cond::Sge, R0, 0, whole);
    set_cap(e, CUT);
    e.mov(R2, TYPE);
    e.spill(LEN, R2);
    e.place(R1, 2);
    read_at_addr(e);
    fault(e, empty);
    e.bind(whole);
    end_bytes(e);
}

/// Ends a tail of bytes, which are there: their number in front of them, and the event's end behind.
fn end_bytes(e: &mut Emitter<'_>) {
    e.place(R1, 0);
    e.reload(R2, LEN);
    e.store(Size::H, R1, 0, R2);
    e.alu(Alu::Add, reg::END, R2);
    e.alu(Alu::Add, reg::END, 2);
}

/// r0 = bytes of the string at r3, NUL included, which is read to `END + off` of the event; the mark is "cut" where it
/// is longer than `LEN`.
pub(super) fn read_string(e: &mut Emitter<'_>, off: i32) {
    let [whole, bounded] = [e.new_label(), e.new_label()];
    e.reload(R2, LEN);
    e.alu(Alu::Add, R2, 2);
    e.jump_if(Cond::Le, R2, MAX_STR, bounded);
    e.mov(R2, MAX_STR);
    e.bind(bounded);
    e.place(R1, off);
    e.call(Helper::ProbeReadUserStr);
    set_cap(e, WHOLE);
    e.reload(R1, LEN);
    e.alu(Alu::Add, R1, 1);
    e.jump_if(Cond::Sle, R0, R1, whole);
    // One more byte than wanted came: end the string where it is full.
    set_cap(e, CUT);
    e.mov(R0, R1);
    e.jump_if(Cond::Le, R1, MAX_STR, whole);
    e.mov(R0, MAX_STR);
    e.bind(whole);
}

/// Reads the op's string to `END + off`; r1 = its bytes without NUL, bounded.
pub(super) fn op_string(e: &mut Emitter<'_>, off: i32, empty: Label) {
    let bounded = e.new_label();
    max(e, R1, MAX_STR - 2);
    e.spill(LEN, R1);
    e.load_slot(R3, slot::ADDR);
    read_string(e, off);
    fault(e, empty);
    e.mov(R1, R0);
    e.alu(Alu::Sub, R1, 1);
    e.jump_if(Cond::Le, R1, MAX_STR, bounded);
    e.mov(R1, 0);
    e.bind(bounded);
}

pub(super) fn string(e: &mut Emitter<'_>, empty: Label) {
    op_string(e, 0, empty);
    e.alu(Alu::Add, reg::END, R1);
    e.place(R2, 0);
    e.store(Size::B, R2, 0, 0);
    e.alu(Alu::Add, reg::END, 1);
}

pub(super) fn string_bytes(e: &mut Emitter<'_>, empty: Label) {
    op_string(e, 2, empty);
    e.place(R2, 0);
    e.store(Size::H, R2, 0, R1);
    e.alu(Alu::Add, reg::END, R1);
    e.alu(Alu::Add, reg::END, 2);
}

pub(super) fn element(e: &mut Emitter<'_>, empty: Label) {
    e.load(Size::H, R2, R10, ELEM);
    e.alu(Alu::And, R2, 0xfff);
    e.jump_if(Cond::Eq, R2, 0, empty);
    e.place(R1, 1);
    read_at_addr(e);
    fault(e, empty);
    set_cap(e, WHOLE);
    e.place(R1, 0);
    e.store(Size::B, R1, 0, 1);
    e.load(Size::H, R2, R10, ELEM);
    e.alu(Alu::And, R2, 0xfff);
    e.alu(Alu::Add, reg::END, R2);
    e.alu(Alu::Add, reg::END, 1);
}

pub(super) fn elements(e: &mut Emitter<'_>, empty: Label) {
    let none = e.new_label();
    // The length in bytes; a number so large that it would wrap is cut all the same.
    let small = e.new_label();
    e.reload(R1, LEN);
    e.jump_if(Cond::Le, R1, 0xff_ffff, small);
    e.mov(R1, 0xff_ffff);
    e.bind(small);
    e.load(Size::H, R2, R10, ELEM);
    e.alu(Alu::Mul, R1, R2);
    e.spill(LEN, R1);
    clamp(e, 4096);
    e.spill(LEN, R2);
    e.mov(R0, 0);
    e.jump_if(Cond::Eq, R2, 0, none);
    e.place(R1, 2);
    read_at_addr(e);
    fault(e, empty);
    e.bind(none);
    e.reload(R2, LEN);
    e.mov(R3, R2);
    e.load(Size::H, R4, R10, ELEM);
    e.alu(Alu::Div, R3, R4);
    e.place(R1, 0);
    e.store(Size::H, R1, 0, R3);
    e.alu(Alu::Add, reg::END, R2);
    e.alu(Alu::Add, reg::END, 2);
}
