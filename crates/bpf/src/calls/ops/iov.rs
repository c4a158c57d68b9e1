//! Ops of iovec arrays and their contents.
//!
//! Invariant: as in the module above: exactly one tail, and the empty one where anything fails.

use super::*;

/// Stands for "no limit" in `LEFT`: no result has this value, and unsigned it is huge.
pub(super) const ENDLESS: i32 = i32::MIN;

/// The bytes that the result covers: all there are before the call.
pub(super) fn covered(a: &mut Assembler) {
    let [all, done] = [a.new_label(), a.new_label()];
    a.load(Size::B, R1, R10, EXIT);
    a.jump_if(Cond::Eq, R1, 0, all);
    result(a, R1);
    note(a, LEFT, R1);
    a.jump(done);
    a.bind(all);
    a.mov(R1, ENDLESS);
    note(a, LEFT, R1);
    a.bind(done);
}

pub(super) fn iov_op(a: &mut Assembler, cbs: &mut Callbacks, empty: Label) {
    let [give_up, done] = [a.new_label(), a.new_label()];
    covered(a);
    iov(a, cbs, give_up);
    a.jump(done);
    a.bind(give_up);
    a.load(Size::D, R8, R10, slot::HEAD);
    set_cap(a, FAULT);
    a.jump(empty);
    a.bind(done);
}

/// `LEN` iovecs at the address; contents as far as `LEFT` goes (unsigned; a negative result covers none). `give_up` where not
/// even the first can be read.
pub(super) fn iov(a: &mut Assembler, cbs: &mut Callbacks, give_up: Label) {
    let [whole, some] = [a.new_label(), a.new_label()];
    a.store(Size::D, R10, slot::HEAD, R8);
    a.alu(Alu::Add, R8, 2);
    words(a, R2);
    a.store(Size::D, R2, DONE, 0);
    let function = callback(a, cbs, Body::Iovecs);
    call_back(a, function, MAX_IOV);
    bound_offset(a, give_up);
    set_cap(a, WHOLE);
    noted(a, R1, DONE);
    noted(a, R2, LEN);
    a.jump_if(Cond::Ge, R1, R2, whole);
    set_cap(a, CUT);
    a.jump_if(Cond::Ne, R1, 0, some);
    a.jump(give_up);
    a.bind(some);
    a.bind(whole);
    a.load(Size::D, R2, R10, slot::HEAD);
    a.alu(Alu::Add, R2, R7);
    a.store(Size::H, R2, 0, R1);
}

pub(super) fn iovecs_function(a: &mut Assembler) {
    let [end, has_left, none, done] = [a.new_label(), a.new_label(), a.new_label(), a.new_label()];
    a.note("an iovec");
    enter(a);
    noted(a, R3, LEN);
    a.jump_if(Cond::Ge, R1, R3, end);
    // No more iovecs than bytes of one are wanted.
    a.load(Size::H, R3, R2, MAX);
    a.jump_if(Cond::Ge, R1, R3, end);
    forget_range(a, end);
    // struct iovec { base, len } → WORD2, WORD
    a.load(Size::D, R1, R10, slot::I);
    a.alu(Alu::Lsh, R1, 4);
    a.load(Size::D, R2, R10, slot::CTX);
    a.load(Size::D, R3, R2, slot::ADDR);
    a.alu(Alu::Add, R3, R1);
    a.mov(R1, R10);
    a.alu(Alu::Add, R1, i32::from(slot::WORD2));
    a.mov(R2, 16);
    a.call(Helper::ProbeReadUser);
    a.jump_if(Cond::Slt, R0, 0, end);
    place(a, R5, 0);
    a.load(Size::D, R1, R10, slot::WORD2);
    a.store(Size::D, R5, 0, R1);
    a.load(Size::D, R1, R10, slot::WORD);
    a.store(Size::D, R5, 8, R1);
    a.store(Size::B, R5, 16, 0);
    a.store(Size::H, R5, 17, 0);
    // r1 = min(len, left): what of it is valid
    noted(a, R2, LEFT);
    a.jump_if(Cond::Eq, R2, ENDLESS, has_left);
    a.jump_if(Cond::Slt, R2, 0, none);
    a.bind(has_left);
    let [fits, endless] = [a.new_label(), a.new_label()];
    a.jump_if(Cond::Le, R1, R2, fits);
    a.mov(R1, R2);
    a.bind(fits);
    a.jump_if(Cond::Eq, R2, ENDLESS, endless);
    a.alu(Alu::Sub, R2, R1);
    note(a, LEFT, R2);
    a.bind(endless);
    // What is captured of it.
    a.load(Size::D, R2, R10, slot::CTX);
    a.load(Size::H, R2, R2, MAX);
    a.store(Size::B, R5, 16, WHOLE);
    let [all, bounded] = [a.new_label(), a.new_label()];
    a.jump_if(Cond::Le, R1, R2, all);
    a.store(Size::B, R5, 16, CUT);
    a.mov(R1, R2);
    a.bind(all);
    a.jump_if(Cond::Le, R1, 4000, bounded);
    a.mov(R1, 4000);
    a.bind(bounded);
    a.store(Size::D, R10, slot::TEMP, R1);
    a.jump_if(Cond::Eq, R1, 0, none);
    a.mov(R2, R1);
    place(a, R1, 19);
    a.load(Size::D, R3, R10, slot::WORD2);
    a.call(Helper::ProbeReadUser);
    place(a, R5, 0);
    let readable = a.new_label();
    a.jump_if(Cond::Sge, R0, 0, readable);
    a.store(Size::B, R5, 16, FAULT);
    a.jump(none);
    a.bind(readable);
    a.load(Size::D, R1, R10, slot::TEMP);
    a.store(Size::H, R5, 17, R1);
    a.alu(Alu::Add, R8, R1);
    a.jump(done);
    a.bind(none);
    a.bind(done);
    a.alu(Alu::Add, R8, 19);
    words(a, R2);
    a.load(Size::D, R1, R10, slot::I);
    a.alu(Alu::Add, R1, 1);
    a.store(Size::D, R2, DONE, R1);
    leave(a, 0);
    a.bind(end);
    leave(a, 1);
}
