//! Ops of messages, and of a signal set that a pointer points to.
//!
//! Invariant: each op appends exactly one tail, the empty one where anything fails.

use super::iov::{ENDLESS, iov};
use super::op::*;
use super::simple::read_at_addr;
use crate::scratch::*;

pub(super) fn sigpack(e: &mut Emitter<'_>, empty: Label) {
    let [done, set] = [e.new_label(), e.new_label()];
    e.place(R1, 2);
    e.mov(R2, 16);
    read_at_addr(e);
    fault(e, empty);
    set_cap(e, WHOLE);
    e.place(R1, 0);
    e.store(Size::H, R1, 0, 16);
    e.load(Size::D, R3, R1, 2);
    e.jump_if(Cond::Ne, R3, 0, set);
    e.alu(Alu::Add, reg::END, 18);
    e.jump(done);
    e.bind(set);
    // The kernel takes sets of 8 bytes only (kernel/signal.c, set_user_sigmask).
    e.place(R1, 18);
    e.mov(R2, 8);
    e.call(Helper::ProbeReadUser);
    e.place(R1, 0);
    e.alu(Alu::Add, reg::END, 18);
    e.jump_if(Cond::Slt, R0, 0, done);
    e.store(Size::H, R1, 0, 24);
    e.alu(Alu::Add, reg::END, 8);
    e.bind(done);
}

/// Offsets in a message, as `events::message` draws it: 56 bytes of struct msghdr, `msg_len`, capture bits.
const MSGHDR: i16 = 56;
const MSG_LEN: i16 = 56;
const MSG_CAPS: i16 = 60;
const MSG_HEADER: i32 = 61;
/// Messages of an array take no more bytes than these and one more message, so that there is room for those of the other phase.
const MAX_MESSAGES: i32 = 0x1800;
/// Bytes of `struct mmsghdr`, as a shift.
const MMSGHDR_SHIFT: i32 = 6;
/// The most messages that the kernel takes (UIO_MAXIOV).
pub(super) const MAX_MESSAGE_COUNT: i32 = 1024;

/// A struct user_msghdr, or one of an array of struct mmsghdr, and what it leads to. An array's messages are one run of the op
/// each, because frames of functions within functions would not fit the stack: `MORE` is the number of the next one.
pub(super) fn message(e: &mut Emitter<'_>, empty: Label) {
    let [start, give_up, done, cut, again, none] = std::array::from_fn(|_| e.new_label());
    e.reload(R1, MORE);
    e.jump_if(Cond::Ne, R1, 0, start);
    e.spill(MSG_HEAD, reg::END);
    e.place(R1, 0);
    e.store(Size::H, R1, 0, 0);
    e.alu(Alu::Add, reg::END, 2);
    how_many(e);
    set_cap(e, WHOLE);
    e.reload(R2, MSG_COUNT);
    e.jump_if(Cond::Eq, R2, 0, done);
    set_cap(e, 0);
    e.bind(start);
    forget_range(e, none);
    one_message(e, give_up);
    e.note("on to the next");
    e.reload(R1, MORE);
    e.alu(Alu::Add, R1, 1);
    e.reload(R2, MSG_HEAD);
    e.alu(Alu::And, R2, LAST_TAIL);
    e.mov(R3, reg::END);
    e.alu(Alu::Sub, R3, R2);
    e.alu(Alu::Add, R2, reg::BUFFER);
    e.store(Size::H, R2, 0, R1);
    e.spill(MORE, R1);
    set_cap(e, WHOLE);
    e.reload(R2, MSG_COUNT);
    e.jump_if(Cond::Lt, R1, R2, again);
    e.mov(R1, 0);
    e.spill(MORE, R1);
    e.jump(done);
    e.bind(again);
    set_cap(e, 0);
    e.jump_if(Cond::Le, R3, MAX_MESSAGES, done);
    e.bind(cut);
    e.mov(R1, 0);
    e.spill(MORE, R1);
    set_cap(e, CUT);
    e.jump(done);
    e.bind(give_up);
    e.load_slot(reg::END, slot::KEY + 8);
    e.reload(R1, MORE);
    e.jump_if(Cond::Ne, R1, 0, cut);
    e.bind(none);
    e.reload(reg::END, MSG_HEAD);
    e.alu(Alu::And, reg::END, LAST_TAIL);
    set_cap(e, FAULT);
    e.jump(empty);
    e.bind(done);
}

/// Spills the number of messages: one, the value of the argument, or how many were sent or received.
fn how_many(e: &mut Emitter<'_>) {
    let [by_result, some, bounded, known] = std::array::from_fn(|_| e.new_label());
    e.mov(R2, 1);
    e.load(Size::B, R1, R10, KIND);
    e.jump_if(Cond::Eq, R1, i32::from(kind::MSG), known);
    e.load(Size::B, R1, R10, EXIT);
    e.jump_if(Cond::Ne, R1, 0, by_result);
    e.reload(R2, LEN);
    e.jump(some);
    e.bind(by_result);
    e.result(R2);
    e.jump_if(Cond::Sge, R2, 0, some);
    e.mov(R2, 0);
    e.bind(some);
    e.jump_if(Cond::Le, R2, MAX_MESSAGE_COUNT, bounded);
    e.mov(R2, MAX_MESSAGE_COUNT);
    e.bind(bounded);
    e.bind(known);
    e.spill(MSG_COUNT, R2);
}

/// The message at number `MORE`, to the end of the event. `give_up` with its place in KEY + 8 where it cannot be read, or there
/// is no room.
fn one_message(e: &mut Emitter<'_>, give_up: Label) {
    const HEADER_ONLY: i32 = 0x80;
    let [done, received, no_name, single, read, valid] = std::array::from_fn(|_| e.new_label());
    // The message's own capture bits are in KEY, its place in KEY + 8.
    e.store_slot(slot::KEY, 0);
    e.store_slot(slot::KEY + 8, reg::END);
    e.reload(R1, MORE);
    e.alu(Alu::Lsh, R1, MMSGHDR_SHIFT);
    e.load_slot(R3, slot::ADDR);
    e.alu(Alu::Add, R3, R1);
    e.store_slot(slot::ADDR, R3);
    e.place(R1, 0);
    e.store(Size::W, R1, MSG_LEN, 0);
    // In an array `msg_len` follows, here and in the event.
    e.mov(R2, i32::from(MSGHDR));
    e.load(Size::B, R3, R10, KIND);
    e.jump_if(Cond::Eq, R3, i32::from(kind::MSG), read);
    e.mov(R2, i32::from(MSG_CAPS));
    e.bind(read);
    read_at_addr(e);
    e.jump_if(Cond::Slt, R0, 0, give_up);
    e.place(R1, 0);
    e.store(Size::B, R1, MSG_CAPS, 0);
    e.alu(Alu::Add, reg::END, MSG_HEADER);
    e.note("what of it is valid");
    e.mov(R2, ENDLESS);
    e.load(Size::B, R3, R10, EXIT);
    e.jump_if(Cond::Eq, R3, 0, valid);
    e.load(Size::B, R3, R10, KIND);
    e.jump_if(Cond::Eq, R3, i32::from(kind::MSG), single);
    e.load(Size::W, R2, R1, MSG_LEN);
    e.jump(valid);
    e.bind(single);
    e.result(R2);
    e.bind(valid);
    e.spill(LEFT, R2);
    // Only a message that was not received is skipped.
    e.jump_if(Cond::Sge, R2, 0, received);
    e.jump_if(Cond::Eq, R2, ENDLESS, received);
    e.store(Size::B, R1, MSG_CAPS, HEADER_ONLY);
    e.place(R1, 0);
    e.store(Size::W, R1, 0, 0);
    e.store(Size::H, R1, 4, 0);
    e.alu(Alu::Add, reg::END, 6);
    e.jump(done);
    e.bind(received);
    // Name: u16 length, bytes.
    let name_bounded = e.new_label();
    e.load(Size::D, R3, R1, 0);
    e.load(Size::W, R2, R1, 8);
    e.place(R1, 0);
    e.store(Size::H, R1, 0, 0);
    e.jump_if(Cond::Eq, R3, 0, no_name);
    e.jump_if(Cond::Le, R2, 128, name_bounded);
    e.mov(R2, 128);
    e.bind(name_bounded);
    part(e, 0, WHOLE, no_name);
    e.bind(no_name);
    e.alu(Alu::Add, reg::END, 2);
    iovecs(e, give_up);
    control(e, give_up);
    header(e, R1, &give_up);
    e.load_slot(R2, slot::KEY);
    e.store(Size::B, R1, MSG_CAPS, R2);
    e.bind(done);
}

/// The iovecs of the message.
fn iovecs(e: &mut Emitter<'_>, give_up: Label) {
    let [no_iov, iov_fault] = std::array::from_fn(|_| e.new_label());
    header(e, R1, &give_up);
    e.load(Size::D, R3, R1, 16);
    e.load(Size::D, R2, R1, 24);
    e.store_slot(slot::ADDR, R3);
    e.spill(LEN, R2);
    e.jump_if(Cond::Gt, reg::END, LAST_TAIL, give_up);
    e.place(R1, 0);
    e.store(Size::H, R1, 0, 0);
    e.jump_if(Cond::Eq, R3, 0, no_iov);
    iov(e, iov_fault);
    e.load_slot(R1, slot::CAP);
    e.alu(Alu::Lsh, R1, 2);
    e.load_slot(R2, slot::KEY);
    e.alu(Alu::Or, R2, R1);
    e.store_slot(slot::KEY, R2);
    e.alu(Alu::Sub, reg::END, 2);
    e.jump(no_iov);
    e.bind(iov_fault);
    e.load_slot(reg::END, slot::HEAD);
    e.load_slot(R2, slot::KEY);
    e.alu(Alu::Or, R2, FAULT << 2);
    e.store_slot(slot::KEY, R2);
    e.jump_if(Cond::Gt, reg::END, LAST_TAIL, give_up);
    e.place(R1, 0);
    e.store(Size::H, R1, 0, 0);
    e.bind(no_iov);
    e.alu(Alu::Add, reg::END, 2);
    e.jump_if(Cond::Gt, reg::END, LAST_TAIL, give_up);
}

/// The control messages: u16 length, bytes.
fn control(e: &mut Emitter<'_>, give_up: Label) {
    let [no_control, control_bounded, control_cut] = std::array::from_fn(|_| e.new_label());
    header(e, R1, &give_up);
    e.load(Size::D, R3, R1, 32);
    e.load(Size::D, R2, R1, 40);
    e.place(R1, 0);
    e.store(Size::H, R1, 0, 0);
    e.jump_if(Cond::Eq, R3, 0, no_control);
    e.jump_if(Cond::Gt, R2, MAX_CONTROL, control_cut);
    e.jump(control_bounded);
    e.bind(control_cut);
    e.mov(R2, MAX_CONTROL);
    part(e, 4, CUT, no_control);
    e.jump(no_control);
    e.bind(control_bounded);
    part(e, 4, WHOLE, no_control);
    e.bind(no_control);
    e.alu(Alu::Add, reg::END, 2);
}

/// r = the message's header in the scratch buffer.
pub(super) fn header(e: &mut Emitter<'_>, r: Reg, give_up: &Label) {
    e.load_slot(r, slot::KEY + 8);
    e.jump_if(Cond::Gt, r, LAST_TAIL, *give_up);
    e.alu(Alu::Add, r, reg::BUFFER);
}

/// A part of a message: r2 bytes (bounded) at r3, after a u16 length. `END` is left before the bytes' length: the caller adds 2.
pub(super) fn part(e: &mut Emitter<'_>, shift: i32, cap: i32, none: Label) {
    let [fine, mark] = [e.new_label(), e.new_label()];
    e.store_slot(slot::TEMP, R2);
    e.mov(R4, cap << shift);
    e.store_slot(slot::WORD, R4);
    e.mov(R0, 0);
    e.jump_if(Cond::Eq, R2, 0, fine);
    e.place(R1, 2);
    e.call(Helper::ProbeReadUser);
    e.jump_if(Cond::Sge, R0, 0, fine);
    e.mov(R4, FAULT << shift);
    e.store_slot(slot::WORD, R4);
    e.store_slot(slot::TEMP, 0);
    e.bind(fine);
    e.load_slot(R2, slot::KEY);
    e.load_slot(R4, slot::WORD);
    e.alu(Alu::Or, R2, R4);
    e.store_slot(slot::KEY, R2);
    e.bind(mark);
    e.load_slot(R2, slot::TEMP);
    e.jump_if(Cond::Gt, R2, MAX_CONTROL, none);
    e.place(R1, 0);
    e.store(Size::H, R1, 0, R2);
    e.alu(Alu::Add, reg::END, R2);
}
