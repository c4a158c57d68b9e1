//! Ops of string arrays: argv and envp, and their number.
//!
//! Invariant: as in the module above: exactly one tail, and the empty one where anything fails.

use super::*;

/// `WORD` = pointer `I` of the array at the address; r0 < 0 where it cannot be read.
pub(super) fn pointer(a: &mut Assembler) {
    a.load(Size::D, R3, R10, slot::I);
    a.alu(Alu::Lsh, R3, 3);
    a.load(Size::D, R1, R10, slot::CTX);
    a.load(Size::D, R1, R1, slot::ADDR);
    a.alu(Alu::Add, R3, R1);
    a.mov(R1, R10);
    a.alu(Alu::Add, R1, i32::from(slot::WORD));
    a.mov(R2, 8);
    a.call(Helper::ProbeReadUser);
}

/// Counts the pointers of the array up to its NULL into `TOTAL`; `BROKEN` is 1 where it could not be read to its end.
pub(super) fn count_pointers(a: &mut Assembler, cbs: &mut Callbacks) {
    words(a, R2);
    a.store(Size::D, R2, TOTAL, 0);
    a.store(Size::D, R2, BROKEN, 1);
    let function = callback(a, cbs, Body::Count);
    call_back(a, function, MAX_COUNT);
}

pub(super) fn count_function(a: &mut Assembler) {
    let [end, broken] = [a.new_label(), a.new_label()];
    a.note("count a pointer");
    enter(a);
    pointer(a);
    a.jump_if(Cond::Slt, R0, 0, broken);
    words(a, R2);
    a.load(Size::D, R1, R10, slot::WORD);
    a.jump_if(Cond::Eq, R1, 0, end);
    a.load(Size::D, R1, R10, slot::I);
    a.alu(Alu::Add, R1, 1);
    a.store(Size::D, R2, TOTAL, R1);
    leave(a, 0);
    a.bind(end);
    a.store(Size::D, R2, BROKEN, 0);
    a.bind(broken);
    leave(a, 1);
}

/// Marks what became of the count, or leaves for `empty` where nothing could be read.
pub(super) fn count_mark(a: &mut Assembler, empty: Label) {
    let fine = a.new_label();
    set_cap(a, WHOLE);
    words(a, R2);
    a.load(Size::D, R1, R2, BROKEN);
    a.jump_if(Cond::Eq, R1, 0, fine);
    set_cap(a, CUT);
    a.load(Size::D, R1, R2, TOTAL);
    a.jump_if(Cond::Ne, R1, 0, fine);
    set_cap(a, FAULT);
    a.jump(empty);
    a.bind(fine);
}

pub(super) fn counted(a: &mut Assembler, cbs: &mut Callbacks, empty: Label) {
    a.store(Size::D, R10, slot::HEAD, R8);
    count_pointers(a, cbs);
    a.load(Size::D, R8, R10, slot::HEAD);
    count_mark(a, empty);
    words(a, R2);
    a.load(Size::D, R1, R2, TOTAL);
    place(a, R2, 0);
    a.store(Size::H, R2, 0, R1);
    a.store(Size::H, R2, 2, 0);
    a.alu(Alu::Add, R8, 4);
}

pub(super) fn strv(a: &mut Assembler, cbs: &mut Callbacks, empty: Label) {
    let [give_up, done, all] = [a.new_label(), a.new_label(), a.new_label()];
    a.store(Size::D, R10, slot::HEAD, R8);
    count_pointers(a, cbs);
    a.load(Size::D, R8, R10, slot::HEAD);
    count_mark(a, empty);
    a.load(Size::D, R1, R10, slot::CAP);
    words(a, R2);
    a.store(Size::D, R2, BROKEN, R1);
    a.store(Size::D, R2, DONE, 0);
    max(a, R1, 1024);
    note(a, LEN, R1);
    a.alu(Alu::Add, R8, 4);
    let function = callback(a, cbs, Body::Strings);
    call_back(a, function, MAX_STRINGS);
    bound_offset(a, give_up);
    a.load(Size::D, R2, R10, slot::HEAD);
    a.alu(Alu::Add, R2, R7);
    words(a, R3);
    a.load(Size::D, R4, R3, TOTAL);
    a.store(Size::H, R2, 0, R4);
    a.load(Size::D, R1, R3, DONE);
    a.store(Size::H, R2, 2, R1);
    a.load(Size::D, R5, R3, BROKEN);
    a.store(Size::D, R10, slot::CAP, R5);
    a.jump_if(Cond::Ge, R1, R4, all);
    set_cap(a, CUT);
    a.bind(all);
    a.jump(done);
    a.bind(give_up);
    a.load(Size::D, R8, R10, slot::HEAD);
    a.jump(empty);
    a.bind(done);
}

pub(super) fn strings_function(a: &mut Assembler) {
    let [enough, readable, bounded] = [a.new_label(), a.new_label(), a.new_label()];
    a.note("a string of an array");
    enter(a);
    words(a, R3);
    a.load(Size::D, R3, R3, TOTAL);
    a.jump_if(Cond::Ge, R1, R3, enough);
    // No more strings than bytes of one are wanted.
    noted(a, R3, LEN);
    a.jump_if(Cond::Ge, R1, R3, enough);
    forget_range(a, enough);
    pointer(a);
    a.jump_if(Cond::Slt, R0, 0, enough);
    a.load(Size::D, R3, R10, slot::WORD);
    place(a, R1, 0);
    a.store(Size::D, R1, 0, R3);
    read_string(a, 9);
    a.jump_if(Cond::Sgt, R0, 0, readable);
    set_cap(a, FAULT);
    a.mov(R0, 1);
    a.bind(readable);
    a.jump_if(Cond::Le, R0, 1026, bounded);
    a.mov(R0, 1026);
    a.bind(bounded);
    place(a, R1, 8);
    a.load(Size::D, R2, R10, slot::CAP);
    a.store(Size::B, R1, 0, R2);
    a.alu(Alu::Add, R8, R0);
    place(a, R1, 8);
    a.store(Size::B, R1, 0, 0);
    a.alu(Alu::Add, R8, 9);
    words(a, R2);
    a.load(Size::D, R1, R10, slot::I);
    a.alu(Alu::Add, R1, 1);
    a.store(Size::D, R2, DONE, R1);
    leave(a, 0);
    a.bind(enough);
    leave(a, 1);
}
