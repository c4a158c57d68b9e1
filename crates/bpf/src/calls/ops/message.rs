//! Ops of messages, and of a signal set behind a pointer.
//!
//! Invariant: as in the module above: exactly one tail, and the empty one where anything fails.

use super::*;

pub(super) fn sigpack(a: &mut Assembler, _: &mut Callbacks, empty: Label) {
    let [done, set] = [a.new_label(), a.new_label()];
    place(a, R1, 2);
    a.mov(R2, 16);
    read_at_addr(a);
    fault(a, empty);
    set_cap(a, WHOLE);
    place(a, R1, 0);
    a.store(Size::H, R1, 0, 16);
    a.load(Size::D, R3, R1, 2);
    a.jump_if(Cond::Ne, R3, 0, set);
    a.alu(Alu::Add, R8, 18);
    a.jump(done);
    a.bind(set);
    // The kernel takes sets of 8 bytes only (kernel/signal.c, set_user_sigmask).
    place(a, R1, 18);
    a.mov(R2, 8);
    a.call(Helper::ProbeReadUser);
    place(a, R1, 0);
    a.alu(Alu::Add, R8, 18);
    a.jump_if(Cond::Slt, R0, 0, done);
    a.store(Size::H, R1, 0, 24);
    a.alu(Alu::Add, R8, 8);
    a.bind(done);
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
/// each, because frames of functions within functions would not fit the stack: `MORE` says which comes next.
pub(super) fn message(a: &mut Assembler, cbs: &mut Callbacks, empty: Label) {
    let [start, give_up, done, cut, again, none] = std::array::from_fn(|_| a.new_label());
    noted(a, R1, MORE);
    a.jump_if(Cond::Ne, R1, 0, start);
    note(a, MSG_HEAD, R8);
    place(a, R1, 0);
    a.store(Size::H, R1, 0, 0);
    a.alu(Alu::Add, R8, 2);
    how_many(a);
    set_cap(a, WHOLE);
    noted(a, R2, MSG_COUNT);
    a.jump_if(Cond::Eq, R2, 0, done);
    set_cap(a, 0);
    a.bind(start);
    forget_range(a, none);
    one_message(a, cbs, give_up);
    a.note("on to the next");
    noted(a, R1, MORE);
    a.alu(Alu::Add, R1, 1);
    noted(a, R2, MSG_HEAD);
    a.alu(Alu::And, R2, LAST_TAIL);
    a.mov(R3, R8);
    a.alu(Alu::Sub, R3, R2);
    a.alu(Alu::Add, R2, R7);
    a.store(Size::H, R2, 0, R1);
    note(a, MORE, R1);
    set_cap(a, WHOLE);
    noted(a, R2, MSG_COUNT);
    a.jump_if(Cond::Lt, R1, R2, again);
    a.mov(R1, 0);
    note(a, MORE, R1);
    a.jump(done);
    a.bind(again);
    set_cap(a, 0);
    a.jump_if(Cond::Le, R3, MAX_MESSAGES, done);
    a.bind(cut);
    a.mov(R1, 0);
    note(a, MORE, R1);
    set_cap(a, CUT);
    a.jump(done);
    a.bind(give_up);
    a.load(Size::D, R8, R10, slot::KEY + 8);
    noted(a, R1, MORE);
    a.jump_if(Cond::Ne, R1, 0, cut);
    a.bind(none);
    noted(a, R8, MSG_HEAD);
    a.alu(Alu::And, R8, LAST_TAIL);
    set_cap(a, FAULT);
    a.jump(empty);
    a.bind(done);
}

/// Notes the number of messages: one, what the argument says, or how many were sent or received.
fn how_many(a: &mut Assembler) {
    let [by_result, some, bounded, known] = std::array::from_fn(|_| a.new_label());
    a.mov(R2, 1);
    a.load(Size::B, R1, R10, KIND);
    a.jump_if(Cond::Eq, R1, i32::from(kind::MSG), known);
    a.load(Size::B, R1, R10, EXIT);
    a.jump_if(Cond::Ne, R1, 0, by_result);
    noted(a, R2, LEN);
    a.jump(some);
    a.bind(by_result);
    result(a, R2);
    a.jump_if(Cond::Sge, R2, 0, some);
    a.mov(R2, 0);
    a.bind(some);
    a.jump_if(Cond::Le, R2, MAX_MESSAGE_COUNT, bounded);
    a.mov(R2, MAX_MESSAGE_COUNT);
    a.bind(bounded);
    a.bind(known);
    note(a, MSG_COUNT, R2);
}

/// The message at number `MORE`, at r8. `give_up` with its place in KEY + 8 where it cannot be read, or there is no room.
fn one_message(a: &mut Assembler, cbs: &mut Callbacks, give_up: Label) {
    const HEADER_ONLY: i32 = 0x80;
    let [done, received, no_name, no_iov, no_control, iov_fault, single, read, valid] =
        std::array::from_fn(|_| a.new_label());
    // The message's own capture bits stand in KEY, its place in KEY + 8.
    a.store(Size::D, R10, slot::KEY, 0);
    a.store(Size::D, R10, slot::KEY + 8, R8);
    noted(a, R1, MORE);
    a.alu(Alu::Lsh, R1, MMSGHDR_SHIFT);
    a.load(Size::D, R3, R10, slot::ADDR);
    a.alu(Alu::Add, R3, R1);
    a.store(Size::D, R10, slot::ADDR, R3);
    place(a, R1, 0);
    a.store(Size::W, R1, MSG_LEN, 0);
    // In an array, `msg_len` stands right behind, and goes right behind.
    a.mov(R2, i32::from(MSGHDR));
    a.load(Size::B, R3, R10, KIND);
    a.jump_if(Cond::Eq, R3, i32::from(kind::MSG), read);
    a.mov(R2, i32::from(MSG_CAPS));
    a.bind(read);
    read_at_addr(a);
    a.jump_if(Cond::Slt, R0, 0, give_up);
    place(a, R1, 0);
    a.store(Size::B, R1, MSG_CAPS, 0);
    a.alu(Alu::Add, R8, MSG_HEADER);
    a.note("what of it is valid");
    a.mov(R2, ENDLESS);
    a.load(Size::B, R3, R10, EXIT);
    a.jump_if(Cond::Eq, R3, 0, valid);
    a.load(Size::B, R3, R10, KIND);
    a.jump_if(Cond::Eq, R3, i32::from(kind::MSG), single);
    a.load(Size::W, R2, R1, MSG_LEN);
    a.jump(valid);
    a.bind(single);
    result(a, R2);
    a.bind(valid);
    note(a, LEFT, R2);
    // Only a message that was to be received and was not is of no interest.
    a.jump_if(Cond::Sge, R2, 0, received);
    a.jump_if(Cond::Eq, R2, ENDLESS, received);
    a.store(Size::B, R1, MSG_CAPS, HEADER_ONLY);
    place(a, R1, 0);
    a.store(Size::W, R1, 0, 0);
    a.store(Size::H, R1, 4, 0);
    a.alu(Alu::Add, R8, 6);
    a.jump(done);
    a.bind(received);
    // Name: u16 length, bytes.
    let name_bounded = a.new_label();
    a.load(Size::D, R3, R1, 0);
    a.load(Size::W, R2, R1, 8);
    place(a, R1, 0);
    a.store(Size::H, R1, 0, 0);
    a.jump_if(Cond::Eq, R3, 0, no_name);
    a.jump_if(Cond::Le, R2, 128, name_bounded);
    a.mov(R2, 128);
    a.bind(name_bounded);
    part(a, 0, WHOLE, no_name);
    a.bind(no_name);
    a.alu(Alu::Add, R8, 2);
    // iovecs.
    header(a, R1, &give_up);
    a.load(Size::D, R3, R1, 16);
    a.load(Size::D, R2, R1, 24);
    a.store(Size::D, R10, slot::ADDR, R3);
    note(a, LEN, R2);
    a.jump_if(Cond::Gt, R8, LAST_TAIL, give_up);
    place(a, R1, 0);
    a.store(Size::H, R1, 0, 0);
    a.jump_if(Cond::Eq, R3, 0, no_iov);
    iov(a, cbs, iov_fault);
    a.load(Size::D, R1, R10, slot::CAP);
    a.alu(Alu::Lsh, R1, 2);
    a.load(Size::D, R2, R10, slot::KEY);
    a.alu(Alu::Or, R2, R1);
    a.store(Size::D, R10, slot::KEY, R2);
    a.alu(Alu::Sub, R8, 2);
    a.jump(no_iov);
    a.bind(iov_fault);
    a.load(Size::D, R8, R10, slot::HEAD);
    a.load(Size::D, R2, R10, slot::KEY);
    a.alu(Alu::Or, R2, FAULT << 2);
    a.store(Size::D, R10, slot::KEY, R2);
    a.jump_if(Cond::Gt, R8, LAST_TAIL, give_up);
    place(a, R1, 0);
    a.store(Size::H, R1, 0, 0);
    a.bind(no_iov);
    a.alu(Alu::Add, R8, 2);
    a.jump_if(Cond::Gt, R8, LAST_TAIL, give_up);
    // Control messages: u16 length, bytes.
    let [control_bounded, control_cut] = [a.new_label(), a.new_label()];
    header(a, R1, &give_up);
    a.load(Size::D, R3, R1, 32);
    a.load(Size::D, R2, R1, 40);
    place(a, R1, 0);
    a.store(Size::H, R1, 0, 0);
    a.jump_if(Cond::Eq, R3, 0, no_control);
    a.jump_if(Cond::Gt, R2, MAX_CONTROL, control_cut);
    a.jump(control_bounded);
    a.bind(control_cut);
    a.mov(R2, MAX_CONTROL);
    part(a, 4, CUT, no_control);
    a.jump(no_control);
    a.bind(control_bounded);
    part(a, 4, WHOLE, no_control);
    a.bind(no_control);
    a.alu(Alu::Add, R8, 2);
    header(a, R1, &give_up);
    a.load(Size::D, R2, R10, slot::KEY);
    a.store(Size::B, R1, MSG_CAPS, R2);
    a.bind(done);
}

/// r = the message's header in the scratch buffer.
pub(super) fn header(a: &mut Assembler, r: Reg, give_up: &Label) {
    a.load(Size::D, r, R10, slot::KEY + 8);
    a.jump_if(Cond::Gt, r, LAST_TAIL, *give_up);
    a.alu(Alu::Add, r, R7);
}

/// A part of a message: r2 bytes (bounded) at r3, behind a u16 length at r8, which is left in front of the length for `+ 2`.
pub(super) fn part(a: &mut Assembler, shift: i32, cap: i32, none: Label) {
    let [fine, mark] = [a.new_label(), a.new_label()];
    a.store(Size::D, R10, slot::TEMP, R2);
    a.mov(R4, cap << shift);
    a.store(Size::D, R10, slot::WORD, R4);
    a.mov(R0, 0);
    a.jump_if(Cond::Eq, R2, 0, fine);
    place(a, R1, 2);
    a.call(Helper::ProbeReadUser);
    a.jump_if(Cond::Sge, R0, 0, fine);
    a.mov(R4, FAULT << shift);
    a.store(Size::D, R10, slot::WORD, R4);
    a.store(Size::D, R10, slot::TEMP, 0);
    a.bind(fine);
    a.load(Size::D, R2, R10, slot::KEY);
    a.load(Size::D, R4, R10, slot::WORD);
    a.alu(Alu::Or, R2, R4);
    a.store(Size::D, R10, slot::KEY, R2);
    a.bind(mark);
    a.load(Size::D, R2, R10, slot::TEMP);
    a.jump_if(Cond::Gt, R2, MAX_CONTROL, none);
    place(a, R1, 0);
    a.store(Size::H, R1, 0, R2);
    a.alu(Alu::Add, R8, R2);
}
