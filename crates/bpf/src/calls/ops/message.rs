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

/// A struct user_msghdr and what it leads to: see `events::message`.
pub(super) fn message(a: &mut Assembler, cbs: &mut Callbacks, empty: Label) {
    const HEADER_ONLY: i32 = 0x80;
    let [give_up, done, received, no_name, no_iov, no_control, iov_fault] =
        [a.new_label(), a.new_label(), a.new_label(), a.new_label(), a.new_label(), a.new_label(), a.new_label()];
    place(a, R1, 2);
    a.mov(R2, 56);
    read_at_addr(a);
    fault(a, empty);
    place(a, R1, 0);
    a.store(Size::H, R1, 0, 1);
    a.store(Size::W, R1, 58, 0);
    a.store(Size::B, R1, 62, 0);
    // The message's own capture bits stand in KEY, the header's place in KEY + 8.
    a.store(Size::D, R10, slot::KEY, 0);
    a.store(Size::D, R10, slot::KEY + 8, R8);
    a.alu(Alu::Add, R8, 63);
    // Only a message that was to be received and was not is of no interest.
    a.load(Size::B, R2, R10, EXIT);
    a.jump_if(Cond::Eq, R2, 0, received);
    result(a, R2);
    a.jump_if(Cond::Sge, R2, 0, received);
    a.store(Size::B, R1, 62, HEADER_ONLY);
    place(a, R1, 0);
    a.store(Size::W, R1, 0, 0);
    a.store(Size::H, R1, 4, 0);
    a.alu(Alu::Add, R8, 6);
    set_cap(a, WHOLE);
    a.jump(done);
    a.bind(received);
    // Name: u16 length, bytes.
    let name_bounded = a.new_label();
    a.load(Size::D, R3, R1, 2);
    a.load(Size::W, R2, R1, 10);
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
    a.load(Size::D, R3, R1, 18);
    a.load(Size::D, R2, R1, 26);
    a.store(Size::D, R10, slot::ADDR, R3);
    note(a, LEN, R2);
    a.jump_if(Cond::Gt, R8, MAX_OFFSET, give_up);
    place(a, R1, 0);
    a.store(Size::H, R1, 0, 0);
    a.jump_if(Cond::Eq, R3, 0, no_iov);
    covered(a);
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
    a.jump_if(Cond::Gt, R8, MAX_OFFSET, give_up);
    place(a, R1, 0);
    a.store(Size::H, R1, 0, 0);
    a.bind(no_iov);
    a.alu(Alu::Add, R8, 2);
    a.jump_if(Cond::Gt, R8, MAX_OFFSET, give_up);
    // Control messages: u16 length, bytes.
    let [control_bounded, control_cut] = [a.new_label(), a.new_label()];
    header(a, R1, &give_up);
    a.load(Size::D, R3, R1, 34);
    a.load(Size::D, R2, R1, 42);
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
    a.store(Size::B, R1, 62, R2);
    set_cap(a, WHOLE);
    a.jump(done);
    a.bind(give_up);
    a.load(Size::D, R8, R10, slot::KEY + 8);
    set_cap(a, FAULT);
    a.jump(empty);
    a.bind(done);
}

/// r = the message's header in the scratch buffer (its u16 count at 0).
pub(super) fn header(a: &mut Assembler, r: Reg, give_up: &Label) {
    a.load(Size::D, r, R10, slot::KEY + 8);
    a.jump_if(Cond::Gt, r, MAX_OFFSET, *give_up);
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
