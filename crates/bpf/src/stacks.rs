//! Stacks of events: each is reported once, and events have its id.
//!
//! ```text
//! user stack (tables, or frame pointers) ─┐
//! kernel stack ───────────────────────────┴─► frames in the area ─► hash ─► known? ─► id in the event
//!                                                                            └ no ─► process:stack into the same ring, before the event
//! ```
//!
//! The area is a value of a map of the enabling's own, one per CPU, and belongs to whoever has claimed the scratch buffer of that CPU. So
//! in each ring a stack comes before the first event that has its id. The hashes of the stacks that were reported last are in
//! the area too; where another has taken a stack's place there, it is reported again, and user space keeps the first only.
//!
//! ```text
//! 0  area of the unwinder: state, counters │ room for the fixed part of the event │ frames │ hashes │ counter of lost stacks
//! ```

use crate::asm::Label;
pub use crate::frame::Stacks;
use crate::frame::{Emitter, FRAMES, USER_STACK, field, reg, slot};
use crate::helper::Helper;
use crate::insn::{Alu, Cond, Reg::*, Size};
use crate::unwind::area;
use events::generated::P_STACK;
use events::layout::Layout;
use unwind::Frame;
use unwind::stack::{HEAD, MAX_FRAMES};

/// Hashes that are kept: a power of two.
const KNOWN: usize = 1 << KNOWN_BITS;
const KNOWN_BITS: i32 = 11;
/// Where they are.
const KNOWN_AT: i16 = area::SIZE as i16;
/// Counter, u64: stacks that found the ring full. Their events have the id 0.
pub const LOST: i16 = KNOWN_AT + 8 * KNOWN as i16;
/// Bytes of an area.
pub const SIZE: usize = LOST as usize + 8;
/// Where the frames are.
const FRAMES_AT: i16 = area::RECORD + HEAD as i16;
/// Where their number is, which is the length of the event's tail.
const LENGTH_AT: i16 = FRAMES_AT - 2;

/// Kinds of stacks, as [`P_STACK`] has them.
const USER: i32 = 0;
const KERNEL: i32 = 1;

/// `r0` = the id of the current task's user stack, of which `frames` are captured at most; 0 where it was lost. The event has its time and
/// its ids. Loses r1 to r5.
pub(crate) fn user(e: &mut Emitter<'_>, stacks: Stacks, frames: u16) {
    let [none, done] = [e.new_label(), e.new_label()];
    e.note("user stack");
    find_area(e, stacks, none);
    if stacks.tables.is_some() {
        // Its process, as user space counts it.
        e.load_event(Size::W, R2, field::PID);
        e.call_unwinder(frames);
    } else {
        by_kernel(e, i32::from(frames).clamp(1, FRAMES), USER_STACK);
        let empty = e.new_label();
        e.load_slot(R3, slot::AREA);
        e.load(Size::D, R1, R3, area::COUNT);
        e.jump_if(Cond::Eq, R1, 0, empty);
        e.load(Size::D, R1, R3, FRAMES_AT);
        e.constant(R2, Frame::EXACT);
        e.alu(Alu::Or, R1, R2);
        e.store(Size::D, R3, FRAMES_AT, R1);
        e.bind(empty);
        hash(e, stacks);
    }
    publish(e, USER);
    e.jump(done);
    e.bind(none);
    e.mov(R0, 0);
    e.bind(done);
}

/// `r0` = the id of the kernel's stack without its first `skip` frames, of which `frames` are captured at most; 0 where it was lost.
/// The context of the program is in r1.
pub(crate) fn kernel(e: &mut Emitter<'_>, stacks: Stacks, frames: u8, skip: u8) {
    let [none, done] = [e.new_label(), e.new_label()];
    e.note("kernel stack");
    find_area(e, stacks, none);
    by_kernel(e, i32::from(frames).clamp(1, FRAMES), i32::from(skip));
    hash(e, stacks);
    publish(e, KERNEL);
    e.jump(done);
    e.bind(none);
    e.mov(R0, 0);
    e.bind(done);
}

/// `slot::AREA` and r1 = the area of this CPU.
fn find_area(e: &mut Emitter<'_>, stacks: Stacks, none: Label) {
    e.call(Helper::GetSmpProcessorId);
    e.store(Size::W, R10, slot::KEY, R0);
    e.map_fd(R1, stacks.areas);
    e.slot_address(R2, slot::KEY);
    e.call(Helper::MapLookup);
    e.jump_if(Cond::Eq, R0, 0, none);
    e.store_slot(slot::AREA, R0);
    e.mov(R1, R0);
}

/// The frames that the kernel's own helper finds, into the area.
fn by_kernel(e: &mut Emitter<'_>, most: i32, flags: i32) {
    let [bad, found] = [e.new_label(), e.new_label()];
    e.load_slot(R2, slot::AREA);
    e.alu(Alu::Add, R2, i32::from(FRAMES_AT));
    e.load_slot(R1, slot::CONTEXT);
    e.mov(R3, most * 8);
    e.mov(R4, flags);
    e.call(Helper::GetStack);
    e.jump_if(Cond::Slt, R0, 0, bad);
    e.jump_if(Cond::Le, R0, most * 8, found);
    // Where there is no stack, it has no frames.
    e.bind(bad);
    e.mov(R0, 0);
    e.bind(found);
    e.load_slot(R1, slot::AREA);
    e.alu(Alu::Rsh, R0, 3);
    e.store(Size::D, R1, area::COUNT, R0);
    e.store(Size::D, R1, area::ENDED, 0);
    e.store(Size::D, R1, area::GUESSED, 0);
}

/// The hash of the frames in the area. Kernels that walk tables have bpf_loop; with it the program is 1,500 instructions shorter.
fn hash(e: &mut Emitter<'_>, stacks: Stacks) {
    e.load_slot(R1, slot::AREA);
    if stacks.tables.is_some() {
        area::begin_hash(e, R1);
        let one = e.callback("trapline_hash", emit_hash_one);
        e.load(Size::D, R1, R1, area::COUNT);
        e.func(R2, one);
        e.slot_address(R3, slot::AREA);
        e.mov(R4, 0);
        e.call(Helper::Loop);
    } else {
        let all = e.callback("trapline_hash_all", emit_hash_all);
        e.call_local(all);
    }
}

/// Called back with the number of a frame, and where the area's address is.
fn emit_hash_one(e: &mut Emitter<'_>) {
    let end = e.new_label();
    e.note("hash of a frame");
    e.jump_if(Cond::Ge, R1, MAX_FRAMES as i32, end);
    e.load(Size::D, R2, R2, 0);
    e.alu(Alu::Lsh, R1, 3);
    e.alu(Alu::Add, R1, R2);
    e.load(Size::D, R1, R1, FRAMES_AT);
    e.load(Size::D, R3, R2, area::HASH);
    area::mix(e, R3, R1, R0, R5);
    e.store(Size::D, R2, area::HASH, R3);
    e.bind(end);
    e.mov(R0, 0);
    e.exit();
}

/// r1 is the address of the area.
fn emit_hash_all(e: &mut Emitter<'_>) {
    let done = e.new_label();
    e.note("hash of a stack");
    area::begin_hash(e, R1);
    e.load(Size::D, R4, R1, area::COUNT);
    e.load(Size::D, R3, R1, area::HASH);
    for nth in 0..FRAMES {
        e.jump_if(Cond::Le, R4, nth, done);
        e.load(Size::D, R2, R1, FRAMES_AT + 8 * nth as i16);
        area::mix(e, R3, R2, R0, R5);
    }
    e.bind(done);
    e.store(Size::D, R1, area::HASH, R3);
    e.mov(R0, 0);
    e.exit();
}

/// `r0` = the id of the stack in the area, which is reported unless it is known.
fn publish(e: &mut Emitter<'_>, kind: i32) {
    e.load_slot(R1, slot::AREA);
    e.mov(R2, reg::BUFFER);
    e.mov(R3, kind);
    let label = e.callback("trapline_stack", emit_publish);
    e.call_local(label);
}

/// r6 the area, r7 the event that has the stack, r8 the kind, r9 the hash.
fn emit_publish(e: &mut Emitter<'_>) {
    let layout = Layout::of(&P_STACK);
    let head = LENGTH_AT - layout.fixed as i16;
    let at = |i: usize| head + layout.args[i].0 as i16;
    let [known, full, bounded, found] = std::array::from_fn(|_| e.new_label());
    e.note("report of a stack");
    e.mov(R6, R1);
    e.mov(R7, R2);
    e.mov(R8, R3);
    e.load(Size::D, R9, R6, area::HASH);
    e.mov(R1, R9);
    e.alu(Alu::Rsh, R1, 64 - KNOWN_BITS);
    e.alu(Alu::Lsh, R1, 3);
    e.alu(Alu::Add, R1, R6);
    e.load(Size::D, R2, R1, KNOWN_AT);
    e.jump_if(Cond::Eq, R2, R9, known);
    // Before the event, in whichever stream it will be.
    e.load(Size::D, R1, R7, field::TIME);
    e.alu(Alu::Sub, R1, 1);
    e.store(Size::D, R6, head + field::TIME, R1);
    e.store(Size::H, R6, head + field::ID, i32::from(P_STACK.id));
    // The frames were read, whole.
    e.store(Size::H, R6, head + field::CAP, 1);
    for at in [field::TID, field::PID] {
        e.load(Size::W, R1, R7, at);
        e.store(Size::W, R6, head + at, R1);
    }
    e.store(Size::W, R6, head + 20, 0);
    e.load(Size::D, R4, R6, area::ENDED);
    e.load(Size::D, R5, R6, area::GUESSED);
    e.load(Size::D, R3, R6, area::COUNT);
    e.store(Size::D, R6, at(0), 1);
    e.store(Size::D, R6, at(1), R9);
    e.store(Size::W, R6, at(2), R8);
    e.store(Size::W, R6, at(3), R4);
    e.store(Size::W, R6, at(4), R5);
    e.jump_if(Cond::Le, R3, MAX_FRAMES as i32, bounded);
    e.mov(R3, 0);
    e.bind(bounded);
    e.store(Size::H, R6, LENGTH_AT, R3);
    e.mov(R8, R3);
    e.alu(Alu::Lsh, R8, 3);
    e.alu(Alu::Add, R8, layout.fixed as i32 + 2);
    e.call(Helper::GetSmpProcessorId);
    let maps = e.maps;
    e.ring_of_cpu(&maps.rings, 0, found);
    e.bind(found);
    e.mov(R2, R6);
    e.alu(Alu::Add, R2, i32::from(head));
    e.mov(R3, R8);
    e.mov(R4, 1); // BPF_RB_NO_WAKEUP: the collector polls.
    e.call(Helper::RingbufOutput);
    e.jump_if(Cond::Ne, R0, 0, full);
    e.mov(R1, R9);
    e.alu(Alu::Rsh, R1, 64 - KNOWN_BITS);
    e.alu(Alu::Lsh, R1, 3);
    e.alu(Alu::Add, R1, R6);
    e.store(Size::D, R1, KNOWN_AT, R9);
    e.bind(known);
    e.mov(R0, R9);
    e.exit();
    e.bind(full);
    e.load(Size::D, R1, R6, LOST);
    e.alu(Alu::Add, R1, 1);
    e.store(Size::D, R6, LOST, R1);
    e.mov(R0, 0);
    e.exit();
}
