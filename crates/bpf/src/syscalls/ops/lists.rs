//! Ops of string arrays: argv and envp, and their number.
//!
//! Invariant: each op appends exactly one tail, the empty one where anything fails.

use super::op::*;
use super::simple::read_string;
use crate::scratch::*;

/// `WORD` = pointer `I` of the array at the address; r0 < 0 where it cannot be read.
pub(super) fn pointer(e: &mut Emitter<'_>) {
    e.load_slot(R3, slot::I);
    e.alu(Alu::Lsh, R3, 3);
    e.load_slot(R1, slot::CTX);
    e.load(Size::D, R1, R1, slot::ADDR);
    e.alu(Alu::Add, R3, R1);
    e.slot_address(R1, slot::WORD);
    e.mov(R2, 8);
    e.call(Helper::ProbeReadUser);
}

/// Counts the pointers of the array up to its NULL into `TOTAL`; `BROKEN` is 1 where it could not be read to its end.
pub(super) fn count_pointers(e: &mut Emitter<'_>) {
    e.words(R2);
    e.store(Size::D, R2, TOTAL, 0);
    e.store(Size::D, R2, BROKEN, 1);
    let function = e.callback("count a pointer", count_function);
    call_back(e, function, MAX_COUNT);
}

pub(super) fn count_function(e: &mut Emitter<'_>) {
    let [end, broken] = [e.new_label(), e.new_label()];
    e.note("count a pointer");
    enter(e);
    pointer(e);
    e.jump_if(Cond::Slt, R0, 0, broken);
    e.words(R2);
    e.load_slot(R1, slot::WORD);
    e.jump_if(Cond::Eq, R1, 0, end);
    e.load_slot(R1, slot::I);
    e.alu(Alu::Add, R1, 1);
    e.store(Size::D, R2, TOTAL, R1);
    leave(e, 0);
    e.bind(end);
    e.store(Size::D, R2, BROKEN, 0);
    e.bind(broken);
    leave(e, 1);
}

/// Sets the mark for the count, or goes to `empty` where nothing could be read.
pub(super) fn count_mark(e: &mut Emitter<'_>, empty: Label) {
    let fine = e.new_label();
    set_cap(e, WHOLE);
    e.words(R2);
    e.load(Size::D, R1, R2, BROKEN);
    e.jump_if(Cond::Eq, R1, 0, fine);
    set_cap(e, CUT);
    e.load(Size::D, R1, R2, TOTAL);
    e.jump_if(Cond::Ne, R1, 0, fine);
    set_cap(e, FAULT);
    e.jump(empty);
    e.bind(fine);
}

pub(super) fn counted(e: &mut Emitter<'_>, empty: Label) {
    e.store_slot(slot::HEAD, reg::END);
    count_pointers(e);
    e.load_slot(reg::END, slot::HEAD);
    count_mark(e, empty);
    e.words(R2);
    e.load(Size::D, R1, R2, TOTAL);
    e.place(R2, 0);
    e.store(Size::H, R2, 0, R1);
    e.store(Size::H, R2, 2, 0);
    e.alu(Alu::Add, reg::END, 4);
}

pub(super) fn strv(e: &mut Emitter<'_>, empty: Label) {
    let [give_up, done, all] = [e.new_label(), e.new_label(), e.new_label()];
    e.store_slot(slot::HEAD, reg::END);
    count_pointers(e);
    e.load_slot(reg::END, slot::HEAD);
    count_mark(e, empty);
    e.load_slot(R1, slot::CAP);
    e.words(R2);
    e.store(Size::D, R2, BROKEN, R1);
    e.store(Size::D, R2, DONE, 0);
    max(e, R1, 1024);
    e.spill(LEN, R1);
    e.alu(Alu::Add, reg::END, 4);
    let function = e.callback("a string of an array", strings_function);
    call_back(e, function, MAX_STRINGS);
    bound_offset(e, give_up);
    e.load_slot(R2, slot::HEAD);
    e.alu(Alu::Add, R2, reg::BUFFER);
    e.words(R3);
    e.load(Size::D, R4, R3, TOTAL);
    e.store(Size::H, R2, 0, R4);
    e.load(Size::D, R1, R3, DONE);
    e.store(Size::H, R2, 2, R1);
    e.load(Size::D, R5, R3, BROKEN);
    e.store_slot(slot::CAP, R5);
    e.jump_if(Cond::Ge, R1, R4, all);
    set_cap(e, CUT);
    e.bind(all);
    e.jump(done);
    e.bind(give_up);
    e.load_slot(reg::END, slot::HEAD);
    e.jump(empty);
    e.bind(done);
}

pub(super) fn strings_function(e: &mut Emitter<'_>) {
    let [enough, readable, bounded] = [e.new_label(), e.new_label(), e.new_label()];
    e.note("a string of an array");
    enter(e);
    e.words(R3);
    e.load(Size::D, R3, R3, TOTAL);
    e.jump_if(Cond::Ge, R1, R3, enough);
    e.load_slot(R2, slot::CTX);
    e.load(Size::H, R3, R2, N);
    e.jump_if(Cond::Ge, R1, R3, enough);
    forget_range(e, enough);
    pointer(e);
    e.jump_if(Cond::Slt, R0, 0, enough);
    e.load_slot(R3, slot::WORD);
    e.place(R1, 0);
    e.store(Size::D, R1, 0, R3);
    read_string(e, 9);
    e.jump_if(Cond::Sgt, R0, 0, readable);
    set_cap(e, FAULT);
    e.mov(R0, 1);
    e.bind(readable);
    e.jump_if(Cond::Le, R0, 1026, bounded);
    e.mov(R0, 1026);
    e.bind(bounded);
    e.place(R1, 8);
    e.load_slot(R2, slot::CAP);
    e.store(Size::B, R1, 0, R2);
    e.alu(Alu::Add, reg::END, R0);
    e.place(R1, 8);
    e.store(Size::B, R1, 0, 0);
    e.alu(Alu::Add, reg::END, 9);
    e.words(R2);
    e.load_slot(R1, slot::I);
    e.alu(Alu::Add, R1, 1);
    e.store(Size::D, R2, DONE, R1);
    leave(e, 0);
    e.bind(enough);
    leave(e, 1);
}
