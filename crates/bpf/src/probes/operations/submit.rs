//! The programs of submissions: the event goes into the map, and is put into a ring when the operation completes.

use super::record::{Known, blank, complete_record, event};
use super::{
    CLASS, ENTRY, ENTRY_FLAGS, ENTRY_USER_DATA, FOUND, KEY, Plan, RECORD, REQUEST, RING, TRAILER, USER_DATA, class,
    finish, going, whose,
};
use crate::asm::Label;
use crate::btf_offsets::BtfOffsets;

use crate::frame::{Emitter, Generated, Lost, Maps, Session, field, program, reg};
use crate::helper::Helper;
use crate::insn::{Alu, Cond, Reg::*, Size};
use events::layout::CAP_NO_RESULT;

/// What a submission is seen by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum From {
    /// `io_uring_submit_req`: the first argument is the request; its entry is the last one that the ring has taken.
    Submitted,
    /// `io_uring_req_failed`: the arguments are the entry and the request.
    Refused,
}

/// The program of submissions.
///
/// # Errors
/// [`crate::AsmError::Generator`] where the filter is too complex.
pub fn submit(maps: &Maps, offsets: &BtfOffsets, session: &Session, plan: &Plan<'_>, from: From) -> Generated {
    program(maps, offsets, session, |e, out| {
        e.store_slot(CLASS, 0);
        e.load(Size::D, R9, R1, if from == From::Submitted { 0 } else { 8 });
        e.store_slot(REQUEST, R9);
        match from {
            From::Submitted => e.peek(CLASS, 1, R9, i32::from(plan.offsets.request[0])),
            From::Refused => {
                // A request that the kernel refuses may have no opcode any more.
                e.load(Size::D, R8, R1, 0);
                e.peek(RECORD, ENTRY, R8, 0);
                e.load(Size::B, R1, R10, RECORD);
                e.store_slot(CLASS, R1);
            }
        }
        class(e, plan, out);
        whose(e, plan, out);
        let [_, ring, user_data] = plan.offsets.request;
        e.peek(USER_DATA, 8, R9, i32::from(user_data));
        e.peek(RING, 8, R9, i32::from(ring));
        if from == From::Submitted {
            taken_entry(e, plan);
        }
        let is_its = e.new_label();
        e.load_slot(R1, USER_DATA);
        e.load_slot(R2, ENTRY_USER_DATA);
        e.jump_if(Cond::Eq, R1, R2, is_its);
        blank(e);
        e.bind(is_its);
        complete_record(e);
        let found = e.stopped_before(out);
        going(e, found, out);
        // Its completion is an event whose start is not known.
        e.claim(out);
        e.place_event();
        event(e, plan, Known::Submission);
        keep(e, plan, out);
    })
}

/// The record = the entry that the ring in it has taken last (`io_get_sqe` of io_uring/io_uring.c, 6.1 to 6.18).
fn taken_entry(e: &mut Emitter<'_>, plan: &Plan<'_>) {
    const IORING_SETUP_SQE128: i32 = 0x400; // include/uapi/linux/io_uring.h, 6.18
    let [flags, array, entries, head, count] = plan.offsets.ring.map(i32::from);
    e.note("the entry of the submission queue");
    e.load_slot(R9, RING);
    for at in [KEY, KEY + 8, FOUND] {
        e.store_slot(at, 0);
    }
    e.peek(KEY, 4, R9, head);
    e.peek(KEY + 8, 4, R9, count);
    e.load_slot(R8, KEY);
    e.alu(Alu::Sub, R8, 1);
    e.load_slot(R1, KEY + 8);
    e.alu(Alu::Sub, R1, 1);
    e.alu(Alu::And, R8, R1);
    let [direct, short] = [e.new_label(), e.new_label()];
    e.peek(KEY, 8, R9, array);
    e.load_slot(R1, KEY);
    e.jump_if(Cond::Eq, R1, 0, direct);
    e.alu(Alu::Lsh, R8, 2);
    e.alu(Alu::Add, R8, R1);
    e.peek(FOUND, 4, R8, 0);
    e.load_slot(R8, FOUND);
    e.bind(direct);
    e.store_slot(KEY, 0);
    e.peek(KEY, 4, R9, flags);
    e.load_slot(R1, KEY);
    e.alu(Alu::And, R1, IORING_SETUP_SQE128);
    e.jump_if(Cond::Eq, R1, 0, short);
    e.alu(Alu::Lsh, R8, 1);
    e.bind(short);
    e.peek(KEY, 8, R9, entries);
    e.load_slot(R1, KEY);
    e.alu(Alu::Mul, R8, ENTRY);
    e.alu(Alu::Add, R8, R1);
    e.peek(RECORD, ENTRY, R8, 0);
}

/// Puts the event into the map, under the ring and `user_data`, or where another has those, under the request.
fn keep(e: &mut Emitter<'_>, plan: &Plan<'_>, out: Label) {
    const IOSQE_CQE_SKIP_SUCCESS: i32 = 0x40; // include/uapi/linux/io_uring.h, 6.18
    const EEXIST: i32 = 17;
    const NO_EXIST: i32 = 1; // BPF_NOEXIST
    let [silent, full] = [e.new_label(), e.new_label()];
    let room = plan.room() as i16;
    e.load(Size::B, R1, R10, ENTRY_FLAGS);
    e.alu(Alu::And, R1, IOSQE_CQE_SKIP_SUCCESS);
    e.jump_if(Cond::Ne, R1, 0, silent);
    e.store_event(Size::D, room, reg::END);
    e.load_slot(R1, REQUEST);
    e.store_event(Size::D, room + 8, R1);
    const _: () = assert!(TRAILER == 16);
    e.load_slot(R1, RING);
    e.store_slot(KEY, R1);
    e.load_slot(R1, USER_DATA);
    e.store_slot(KEY + 8, R1);
    update(e, plan, NO_EXIST);
    e.jump_if(Cond::Eq, R0, 0, out);
    // Before Linux 6.4 the function that the kernel calls here gives 32 bits.
    e.jump_if32(Cond::Ne, R0, -EEXIST, full);
    e.load_slot(R1, REQUEST);
    e.store_slot(KEY, R1);
    e.store_slot(KEY + 8, 0);
    update(e, plan, 0);
    e.jump_if(Cond::Eq, R0, 0, out);
    e.bind(full);
    e.note("more operations than the map has room for: the completion is an event whose start is not known");
    e.count_lost(Lost::Unknown);
    e.jump(out);
    e.bind(silent);
    e.note("its success posts no completion");
    e.load_event(Size::H, R1, field::CAP);
    e.alu(Alu::Or, R1, i32::from(CAP_NO_RESULT));
    e.store_event(Size::H, field::CAP, R1);
    finish(e, plan, out);
}

fn update(e: &mut Emitter<'_>, plan: &Plan<'_>, flags: i32) {
    e.map_fd(R1, plan.pending);
    e.slot_address(R2, KEY);
    e.mov(R3, reg::BUFFER);
    e.mov(R4, flags);
    e.call(Helper::MapUpdate);
}
