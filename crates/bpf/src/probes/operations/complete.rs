//! The program of completions: the event of the submission gets its end, and goes into the ring.

use super::record::{Known, blank, complete_record, event};
use super::{
    CLASS, COMPLETION, FOUND, KEY, OTHER, Plan, REQUEST, RING, TRAILER, USER_DATA, class, finish, going, whose,
};
use crate::asm::Label;
use crate::btf_offsets::BtfOffsets;
use crate::frame::{Emitter, Generated, Lost, Maps, Session, field, program, reg};
use crate::helper::Helper;
use crate::insn::{Alu, Cond, Reg::*, Size};
use events::layout::Layout;

/// What the arguments of a completion are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arguments {
    /// Ring, request, `user_data`, result, flags.
    Values,
    /// Ring, request, the address of the entry of the completion queue.
    Entry,
    /// Of one that found the queue full: ring, `user_data`, result, flags.
    Overflown,
}

/// The program of completions.
///
/// # Errors
/// [`crate::AsmError::Generator`] where the filter is too complex.
pub fn complete(
    maps: &Maps,
    offsets: &BtfOffsets,
    session: &Session,
    plan: &Plan<'_>,
    arguments: Arguments,
) -> Generated {
    let layout = Layout::of(plan.schema);
    program(maps, offsets, session, |e, out| {
        let [found, unknown, patch, gone] = std::array::from_fn(|_| e.new_label());
        completion(e, arguments);
        look_up(e, plan, found, unknown);
        e.bind(unknown);
        e.note("nothing is known of its submission");
        not_submitted(e, plan, out);
        e.jump(patch);
        e.bind(found);
        e.store_slot(FOUND, R0);
        let switched = e.stopped_before(gone);
        going(e, switched, out);
        let [taken, claimed] = [e.new_label(), e.new_label()];
        e.claim(taken);
        e.jump(claimed);
        e.bind(taken);
        e.count_lost(Lost::Unknown);
        e.bind(gone);
        forget(e, plan);
        e.jump(out);
        e.bind(claimed);
        e.place_event();
        take(e, plan, &layout, out);
        e.bind(patch);
        e.note("its end");
        e.load(Size::W, R1, R10, COMPLETION);
        e.alu(Alu::Lsh, R1, 32);
        e.alu(Alu::Arsh, R1, 32);
        e.store_event(Size::D, layout.ret as i16, R1);
        e.load(Size::W, R1, R10, COMPLETION + 4);
        e.store_event(Size::D, layout.args[plan.cqe_flags].0 as i16, R1);
        e.call(Helper::GetSmpProcessorId);
        e.store_event(Size::H, layout.cpu.1 as i16, R0);
        finish(e, plan, out);
    })
}

/// The words of the completion, from the context in r1.
fn completion(e: &mut Emitter<'_>, arguments: Arguments) {
    let word = |e: &mut Emitter<'_>, nth: i16, to: i16, size: Size| {
        e.load(Size::D, R2, R9, 8 * nth);
        e.store(size, R10, to, R2);
    };
    e.mov(R9, R1);
    word(e, 0, RING, Size::D);
    if arguments == Arguments::Overflown {
        e.store_slot(REQUEST, 0);
        word(e, 1, USER_DATA, Size::D);
        word(e, 2, COMPLETION, Size::W);
        return word(e, 3, COMPLETION + 4, Size::W);
    }
    word(e, 1, REQUEST, Size::D);
    if arguments == Arguments::Entry {
        // `struct io_uring_cqe`: user_data, res, flags (include/uapi/linux/io_uring.h, 6.18).
        e.load(Size::D, R8, R9, 16);
        e.peek(USER_DATA, 8, R8, 0);
        return e.peek(COMPLETION, 8, R8, 8);
    }
    word(e, 2, USER_DATA, Size::D);
    word(e, 3, COMPLETION, Size::W);
    word(e, 4, COMPLETION + 4, Size::W);
}

/// Goes to `found` with the value of the operation in r0, whose key is in its slot, or to `unknown`.
fn look_up(e: &mut Emitter<'_>, plan: &Plan<'_>, found: Label, unknown: Label) {
    let other = e.new_label();
    e.load_slot(R1, RING);
    e.store_slot(KEY, R1);
    e.load_slot(R1, USER_DATA);
    e.store_slot(KEY + 8, R1);
    lookup(e, plan);
    e.jump_if(Cond::Eq, R0, 0, other);
    e.load_slot(R1, REQUEST);
    e.jump_if(Cond::Eq, R1, 0, found);
    e.load(Size::D, R2, R0, plan.room() as i16 + 8);
    e.jump_if(Cond::Eq, R1, R2, found);
    e.bind(other);
    e.note("another operation has the same user_data");
    e.load_slot(R1, REQUEST);
    e.jump_if(Cond::Eq, R1, 0, unknown);
    e.store_slot(KEY, R1);
    e.store_slot(KEY + 8, 0);
    lookup(e, plan);
    e.jump_if(Cond::Ne, R0, 0, found);
}

fn lookup(e: &mut Emitter<'_>, plan: &Plan<'_>) {
    e.map_fd(R1, plan.pending);
    e.slot_address(R2, KEY);
    e.call(Helper::MapLookup);
}

/// The event in the buffer = what the value in `FOUND` has; it leaves the map, unless more completions follow.
fn take(e: &mut Emitter<'_>, plan: &Plan<'_>, layout: &Layout, out: Label) {
    const IORING_CQE_F_MORE: i32 = 2; // include/uapi/linux/io_uring.h, 6.18
    let room = plan.room();
    let [last, done] = [e.new_label(), e.new_label()];
    e.mov(R1, reg::BUFFER);
    e.mov(R2, (room + TRAILER) as i32);
    e.load_slot(R3, FOUND);
    e.call(Helper::ProbeReadKernel);
    e.call(Helper::KtimeGetNs);
    e.store_event(Size::D, field::TIME, R0);
    e.load(Size::W, R1, R10, COMPLETION + 4);
    e.alu(Alu::And, R1, IORING_CQE_F_MORE);
    e.jump_if(Cond::Eq, R1, 0, last);
    e.note("the next completion's event begins here");
    e.load_slot(R1, FOUND);
    e.store(Size::D, R1, layout.start as i16, R0);
    e.jump(done);
    e.bind(last);
    forget(e, plan);
    e.bind(done);
    e.load_event(Size::D, reg::END, room as i16);
    e.jump_if(Cond::Gt, reg::END, room as i32, out);
}

/// Takes the key out of the map.
fn forget(e: &mut Emitter<'_>, plan: &Plan<'_>) {
    e.map_fd(R1, plan.pending);
    e.slot_address(R2, KEY);
    e.call(Helper::MapDelete);
}

/// The event of a completion by the current thread, of which nothing else is known; `out` where it is not wanted.
fn not_submitted(e: &mut Emitter<'_>, plan: &Plan<'_>, out: Label) {
    let known = e.new_label();
    e.store_slot(CLASS, i32::from(OTHER));
    e.load_slot(R9, REQUEST);
    e.jump_if(Cond::Eq, R9, 0, known);
    e.store_slot(CLASS, 0);
    e.peek(CLASS, 1, R9, i32::from(plan.offsets.request[0]));
    e.bind(known);
    class(e, plan, out);
    whose(e, plan, out);
    blank(e);
    complete_record(e);
    let found = e.stopped_before(out);
    let [taken, claimed] = [e.new_label(), e.new_label()];
    going(e, found, out);
    e.claim(taken);
    e.jump(claimed);
    e.bind(taken);
    e.count_lost(Lost::Unknown);
    e.jump(out);
    e.bind(claimed);
    e.place_event();
    event(e, plan, Known::Completion);
}
