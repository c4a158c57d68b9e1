//! The record of an operation, and the event that is made from it.

use super::{
    CLASS, DESCRIPTOR, ENTRY_FD, ENTRY_FLAGS, ENTRY_USER_DATA, PATH_BIT, Plan, RECORD, RECORD_CQE_FLAGS, RECORD_SIZE,
    REGISTERED, RING, Tail, USER_DATA, Value, tail, value,
};
use crate::frame::{Emitter, field, reg, slot};
use crate::helper::Helper;
use crate::insn::{Alu, Cond, Reg::*, Size};
use events::layout::{CAP_START_UNKNOWN, Layout, NO_CPU};

/// What of an event is known when it is made.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Known {
    /// The submission: the current thread makes it.
    Submission,
    /// A completion only.
    Completion,
}

/// Of an operation whose entry is not known: a record of `user_data` and the ring.
pub(super) fn blank(e: &mut Emitter<'_>) {
    e.note("the entry is not known");
    for at in (RECORD..RING).step_by(8) {
        e.store_slot(at, 0);
    }
    e.store(Size::W, R10, ENTRY_FD, -1);
    e.load_slot(R1, USER_DATA);
    e.store_slot(ENTRY_USER_DATA, R1);
}

/// The rest of the record, of an entry that is in it: its file is a descriptor, or the index of a registered file.
pub(super) fn complete_record(e: &mut Emitter<'_>) {
    const IOSQE_FIXED_FILE: i32 = 1; // include/uapi/linux/io_uring.h, 6.18
    let [is_registered, done] = [e.new_label(), e.new_label()];
    e.load(Size::W, R1, R10, ENTRY_FD);
    e.alu(Alu::Lsh, R1, 32);
    e.alu(Alu::Arsh, R1, 32);
    e.load(Size::B, R2, R10, ENTRY_FLAGS);
    e.alu(Alu::And, R2, IOSQE_FIXED_FILE);
    e.jump_if(Cond::Ne, R2, 0, is_registered);
    e.store_slot(DESCRIPTOR, R1);
    e.store_slot(REGISTERED, -1);
    e.jump(done);
    e.bind(is_registered);
    e.store_slot(DESCRIPTOR, -1);
    e.store_slot(REGISTERED, R1);
    e.bind(done);
    e.store_slot(RECORD_CQE_FLAGS, 0);
    const _: () = assert!(RECORD_CQE_FLAGS + 8 == RECORD + RECORD_SIZE);
    e.slot_address(R1, RECORD);
    e.store_slot(slot::CTX, R1);
}

/// Makes the event of the record in the buffer, which is claimed; its time is its start.
pub(super) fn event(e: &mut Emitter<'_>, plan: &Plan<'_>, known: Known) {
    let layout = Layout::of(plan.schema);
    let start = layout.start as i16;
    e.note("fixed part");
    e.call(Helper::KtimeGetNs);
    e.store_event(Size::D, field::TIME, R0);
    e.store_event(Size::D, start, R0);
    e.load_slot(R1, CLASS);
    e.store_event(Size::H, field::ID, R1);
    let caps = if known == Known::Submission { 0 } else { CAP_START_UNKNOWN };
    e.store_event(Size::H, field::CAP, i32::from(caps));
    if let Some(at) = layout.more_caps {
        e.store_event(Size::D, at as i16, 0);
    }
    e.store_event(Size::D, layout.ret as i16, 0);
    e.store_event(Size::H, layout.cpu.0 as i16, i32::from(NO_CPU));
    e.store_event(Size::H, layout.cpu.1 as i16, i32::from(NO_CPU));
    e.who();
    if known == Known::Submission {
        e.call(Helper::GetSmpProcessorId);
        e.store_event(Size::H, layout.cpu.0 as i16, R0);
    }
    for (field, (at, _)) in plan.fields.iter().zip(layout.args) {
        match &field.value {
            // The stack of who completes says nothing of who has submitted.
            Value::KernelStack { .. } | Value::UserStack(_) if known == Known::Completion => e.mov(R1, 0),
            other => value(e, other),
        }
        e.store_event(Size::D, at as i16, R1);
    }
    e.mov(reg::END, layout.fixed as i32);
    let mut most = layout.fixed;
    for (i, t) in plan.fields.iter().enumerate().filter_map(|(i, field)| Some((i, field.tail?))) {
        most += t.most();
        one_tail(e, plan, (i, t), most as i32, known);
    }
}

/// What follows the fixed part for a field: of the address only where it is that of a path.
fn one_tail(e: &mut Emitter<'_>, plan: &Plan<'_>, (i, t): (usize, Tail), most: i32, known: Known) {
    let [read, done] = [e.new_label(), e.new_label()];
    if known == Known::Submission {
        match i == plan.path {
            false => e.jump(read),
            true => {
                e.load_slot(R1, CLASS);
                e.alu(Alu::Rsh, R1, PATH_BIT as i32);
                e.jump_if(Cond::Ne, R1, 0, read);
            }
        }
    }
    if known == Known::Completion || i == plan.path {
        e.place(R1, 0);
        e.store(Size::B, R1, 0, 0);
        e.alu(Alu::Add, reg::END, 1);
    }
    if known == Known::Submission {
        if i == plan.path {
            e.jump(done);
        }
        e.bind(read);
        tail(e, &Layout::of(plan.schema), i, t, most);
        e.bind(done);
    }
}
