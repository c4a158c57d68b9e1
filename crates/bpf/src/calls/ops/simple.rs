//! Ops of strings, bytes and elements: one read each.
//!
//! Invariant: as in the module above: exactly one tail, and the empty one where anything fails.

use super::*;

/// Reads r2 bytes of the target at its address to r1; r0 < 0 where that failed.
pub(super) fn read_at_addr(a: &mut Assembler) {
    a.load(Size::D, R3, R10, slot::ADDR);
    a.call(Helper::ProbeReadUser);
}

/// r2 = the smaller of the length and the most; the mark says which.
pub(super) fn clamp(a: &mut Assembler, most: i32) {
    let [whole, bounded] = [a.new_label(), a.new_label()];
    max(a, R1, most);
    noted(a, R2, LEN);
    set_cap(a, WHOLE);
    a.jump_if(Cond::Le, R2, R1, whole);
    set_cap(a, CUT);
    a.mov(R2, R1);
    a.bind(whole);
    a.jump_if(Cond::Le, R2, most, bounded);
    a.mov(R2, most);
    a.bind(bounded);
}

pub(super) fn bytes(a: &mut Assembler, _: &mut Callbacks, empty: Label) {
    let none = a.new_label();
    clamp(a, MAX_BYTES);
    note(a, LEN, R2);
    a.mov(R0, 0);
    a.jump_if(Cond::Eq, R2, 0, none);
    place(a, R1, 2);
    read_at_addr(a);
    fault(a, empty);
    a.bind(none);
    place(a, R1, 0);
    noted(a, R2, LEN);
    a.store(Size::H, R1, 0, R2);
    a.alu(Alu::Add, R8, R2);
    a.alu(Alu::Add, R8, 2);
}

/// r0 = bytes of the string at r3, NUL included, which stands at r8 + `off` of the scratch buffer; the mark says "cut" where it
/// was longer than r4.
pub(super) fn read_string(a: &mut Assembler, off: i32) {
    let [whole, bounded] = [a.new_label(), a.new_label()];
    noted(a, R2, LEN);
    a.alu(Alu::Add, R2, 2);
    a.jump_if(Cond::Le, R2, MAX_STR, bounded);
    a.mov(R2, MAX_STR);
    a.bind(bounded);
    place(a, R1, off);
    a.call(Helper::ProbeReadUserStr);
    set_cap(a, WHOLE);
    noted(a, R1, LEN);
    a.alu(Alu::Add, R1, 1);
    a.jump_if(Cond::Sle, R0, R1, whole);
    // One more byte than wanted came: end the string where it is full.
    set_cap(a, CUT);
    a.mov(R0, R1);
    a.jump_if(Cond::Le, R1, MAX_STR, whole);
    a.mov(R0, MAX_STR);
    a.bind(whole);
}

/// Reads the op's string at r8 + `off`, and leaves its bytes without NUL in r1, bounded.
pub(super) fn op_string(a: &mut Assembler, off: i32, empty: Label) {
    let bounded = a.new_label();
    max(a, R1, MAX_STR - 2);
    note(a, LEN, R1);
    a.load(Size::D, R3, R10, slot::ADDR);
    read_string(a, off);
    fault(a, empty);
    a.mov(R1, R0);
    a.alu(Alu::Sub, R1, 1);
    a.jump_if(Cond::Le, R1, MAX_STR, bounded);
    a.mov(R1, 0);
    a.bind(bounded);
}

pub(super) fn string(a: &mut Assembler, _: &mut Callbacks, empty: Label) {
    op_string(a, 0, empty);
    a.alu(Alu::Add, R8, R1);
    place(a, R2, 0);
    a.store(Size::B, R2, 0, 0);
    a.alu(Alu::Add, R8, 1);
}

pub(super) fn string_bytes(a: &mut Assembler, _: &mut Callbacks, empty: Label) {
    op_string(a, 2, empty);
    place(a, R2, 0);
    a.store(Size::H, R2, 0, R1);
    a.alu(Alu::Add, R8, R1);
    a.alu(Alu::Add, R8, 2);
}

pub(super) fn element(a: &mut Assembler, _: &mut Callbacks, empty: Label) {
    a.load(Size::H, R2, R10, ELEM);
    a.alu(Alu::And, R2, 0xfff);
    a.jump_if(Cond::Eq, R2, 0, empty);
    place(a, R1, 1);
    read_at_addr(a);
    fault(a, empty);
    set_cap(a, WHOLE);
    place(a, R1, 0);
    a.store(Size::B, R1, 0, 1);
    a.load(Size::H, R2, R10, ELEM);
    a.alu(Alu::And, R2, 0xfff);
    a.alu(Alu::Add, R8, R2);
    a.alu(Alu::Add, R8, 1);
}

pub(super) fn elements(a: &mut Assembler, _: &mut Callbacks, empty: Label) {
    let none = a.new_label();
    // The length in bytes; a number so large that it would wrap is cut all the same.
    let small = a.new_label();
    noted(a, R1, LEN);
    a.jump_if(Cond::Le, R1, 0xff_ffff, small);
    a.mov(R1, 0xff_ffff);
    a.bind(small);
    a.load(Size::H, R2, R10, ELEM);
    a.alu(Alu::Mul, R1, R2);
    note(a, LEN, R1);
    clamp(a, 4096);
    note(a, LEN, R2);
    a.mov(R0, 0);
    a.jump_if(Cond::Eq, R2, 0, none);
    place(a, R1, 2);
    read_at_addr(a);
    fault(a, empty);
    a.bind(none);
    noted(a, R2, LEN);
    a.mov(R3, R2);
    a.load(Size::H, R4, R10, ELEM);
    a.alu(Alu::Div, R3, R4);
    place(a, R1, 0);
    a.store(Size::H, R1, 0, R3);
    a.alu(Alu::Add, R8, R2);
    a.alu(Alu::Add, R8, 2);
}
