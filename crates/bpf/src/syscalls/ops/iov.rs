//! Ops of iovec arrays and their contents.
//!
//! Invariant: each op appends exactly one tail, the empty one where anything fails.

use super::op::*;
use crate::scratch::*;

/// "No limit" in `LEFT`: no result has this value, and unsigned it is huge.
pub(super) const ENDLESS: i32 = i32::MIN;

/// The bytes that the result covers: all there are before the call.
pub(super) fn covered(e: &mut Emitter<'_>) {
    let [all, done] = [e.new_label(), e.new_label()];
    e.load(Size::B, R1, R10, EXIT);
    e.jump_if(Cond::Eq, R1, 0, all);
    e.result(R1);
    e.spill(LEFT, R1);
    e.jump(done);
    e.bind(all);
    e.mov(R1, ENDLESS);
    e.spill(LEFT, R1);
    e.bind(done);
}

pub(super) fn iov_op(e: &mut Emitter<'_>, empty: Label) {
    let [give_up, done] = [e.new_label(), e.new_label()];
    covered(e);
    iov(e, give_up);
    e.jump(done);
    e.bind(give_up);
    e.load_slot(reg::END, slot::HEAD);
    set_cap(e, FAULT);
    e.jump(empty);
    e.bind(done);
}

/// `LEN` iovecs at the address; contents as far as `LEFT` goes (unsigned; a negative result covers none). `give_up` where not
/// even the first can be read.
pub(super) fn iov(e: &mut Emitter<'_>, give_up: Label) {
    let [whole, some] = [e.new_label(), e.new_label()];
    e.store_slot(slot::HEAD, reg::END);
    e.alu(Alu::Add, reg::END, 2);
    e.words(R2);
    e.store(Size::D, R2, DONE, 0);
    let function = e.callback("an iovec", iovecs_function);
    call_back(e, function, MAX_IOV);
    bound_offset(e, give_up);
    set_cap(e, WHOLE);
    e.reload(R1, DONE);
    e.reload(R2, LEN);
    e.jump_if(Cond::Ge, R1, R2, whole);
    set_cap(e, CUT);
    e.jump_if(Cond::Ne, R1, 0, some);
    e.jump(give_up);
    e.bind(some);
    e.bind(whole);
    e.load_slot(R2, slot::HEAD);
    e.alu(Alu::Add, R2, reg::BUFFER);
    e.store(Size::H, R2, 0, R1);
}

pub(super) fn iovecs_function(e: &mut Emitter<'_>) {
    let [end, has_left, none, done] = [e.new_label(), e.new_label(), e.new_label(), e.new_label()];
    e.note("an iovec");
    enter(e);
    e.reload(R3, LEN);
    e.jump_if(Cond::Ge, R1, R3, end);
    // No more iovecs than bytes of one are wanted.
    e.load(Size::H, R3, R2, MAX);
    e.jump_if(Cond::Ge, R1, R3, end);
    forget_range(e, end);
    // struct iovec { base, len } → WORD2, WORD
    e.load_slot(R1, slot::I);
    e.alu(Alu::Lsh, R1, 4);
    e.load_slot(R2, slot::CTX);
    e.load(Size::D, R3, R2, slot::ADDR);
    e.alu(Alu::Add, R3, R1);
    e.slot_address(R1, slot::WORD2);
    e.mov(R2, 16);
    e.call(Helper::ProbeReadUser);
    e.jump_if(Cond::Slt, R0, 0, end);
    e.place(R5, 0);
    e.load_slot(R1, slot::WORD2);
    e.store(Size::D, R5, 0, R1);
    e.load_slot(R1, slot::WORD);
    e.store(Size::D, R5, 8, R1);
    e.store(Size::B, R5, 16, 0);
    e.store(Size::H, R5, 17, 0);
    // r1 = min(len, left): what of it is valid
    e.reload(R2, LEFT);
    e.jump_if(Cond::Eq, R2, ENDLESS, has_left);
    e.jump_if(Cond::Slt, R2, 0, none);
    e.bind(has_left);
    let [fits, endless] = [e.new_label(), e.new_label()];
    e.jump_if(Cond::Le, R1, R2, fits);
    e.mov(R1, R2);
    e.bind(fits);
    e.jump_if(Cond::Eq, R2, ENDLESS, endless);
    e.alu(Alu::Sub, R2, R1);
    e.spill(LEFT, R2);
    e.bind(endless);
    // What is captured of it.
    e.load_slot(R2, slot::CTX);
    e.load(Size::H, R2, R2, MAX);
    e.store(Size::B, R5, 16, WHOLE);
    let [all, bounded] = [e.new_label(), e.new_label()];
    e.jump_if(Cond::Le, R1, R2, all);
    e.store(Size::B, R5, 16, CUT);
    e.mov(R1, R2);
    e.bind(all);
    e.jump_if(Cond::Le, R1, 4000, bounded);
    e.mov(R1, 4000);
    e.bind(bounded);
    e.store_slot(slot::TEMP, R1);
    e.jump_if(Cond::Eq, R1, 0, none);
    e.mov(R2, R1);
    e.place(R1, 19);
    e.load_slot(R3, slot::WORD2);
    e.call(Helper::ProbeReadUser);
    e.place(R5, 0);
    let readable = e.new_label();
    e.jump_if(Cond::Sge, R0, 0, readable);
    e.store(Size::B, R5, 16, FAULT);
    e.jump(none);
    e.bind(readable);
    e.load_slot(R1, slot::TEMP);
    e.store(Size::H, R5, 17, R1);
    e.alu(Alu::Add, reg::END, R1);
    e.jump(done);
    e.bind(none);
    e.bind(done);
    e.alu(Alu::Add, reg::END, 19);
    e.words(R2);
    e.load_slot(R1, slot::I);
    e.alu(Alu::Add, R1, 1);
    e.store(Size::D, R2, DONE, R1);
    leave(e, 0);
    e.bind(end);
    leave(e, 1);
}
