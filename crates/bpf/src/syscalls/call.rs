//! The event of a call: fixed part and tails; of a call without a row, its registers.

use super::{filters, no_entry, ops, unseen};
use crate::asm::Label;
use crate::capture_row::{self, SHORT_CALL};
use crate::frame::{Emitter, Lost, field, reg, slot, state};
use crate::helper::Helper;
use crate::insn::{Alu, Cond, Reg::*, Size};
use crate::scratch::front;
use crate::stacks::Stacks;
use events::generated as g;
use events::layout::{CAP_32BIT, CAP_NO_RESULT, CAP_START_UNKNOWN, Layout, NO_CPU};

/// Writes the fixed part of the call's event into the scratch buffer, and sets `END` to its length.
fn fixed(e: &mut Emitter<'_>) {
    let session = e.session;
    e.note("fixed part");
    if !filters::timed(e.session) {
        e.call(Helper::KtimeGetNs);
        e.store_event(Size::D, field::TIME, R0);
    }
    e.load_row(Size::H, R1, capture_row::ID);
    e.store_event(Size::H, field::ID, R1);
    e.who();
    // All are stored as 8 bytes, without a branch for the verifier to follow: what follows a narrow one is stored later. An
    // argument that does not exist goes where the tails will be.
    let short = e.new_label();
    for i in 0..6i16 {
        if i == SHORT_CALL as i16 {
            e.load_row(Size::H, R2, capture_row::FLAGS);
            e.jump_if(Cond::Set, R2, i32::from(capture_row::SHORT), short);
        }
        e.load_row(Size::H, R2, capture_row::ARGS + 2 * i);
        e.alu(Alu::And, R2, 0x7f);
        e.alu(Alu::Add, R2, reg::BUFFER);
        e.load_state(R1, state::ARGS + 8 * i);
        e.store(Size::D, R2, 0, R1);
    }
    e.bind(short);
    if session.captures.is_some() {
        e.mov(R1, 1);
        for i in 0..capture_row::CAPTURES as i16 {
            e.load_row(Size::H, R2, capture_row::CAPTURED + 2 * i);
            e.alu(Alu::And, R2, 0x7f);
            e.alu(Alu::Add, R2, reg::BUFFER);
            e.store(Size::D, R2, 0, R1);
        }
    }
    start(e, 24);
    e.result(R1);
    e.store_event(Size::D, 32, R1);
    // Processors at entry and exit.
    let known = e.new_label();
    e.load_row(Size::B, R2, capture_row::CPU);
    e.alu(Alu::And, R2, 0x7f);
    e.alu(Alu::Add, R2, reg::BUFFER);
    cpu_of_entry(e);
    e.store(Size::H, R2, 0, R1);
    e.store_slot(slot::TEMP, R2);
    e.mov(R0, -1);
    e.get_ended(R1);
    e.jump_if(Cond::Ne, R1, 0, known);
    e.call(Helper::GetSmpProcessorId);
    e.bind(known);
    e.load_slot(R2, slot::TEMP);
    e.store(Size::H, R2, 2, R0);
    e.load_row(Size::B, reg::END, capture_row::FIXED);
    e.alu(Alu::And, reg::END, 0x7f);
}

/// Stores the start of the call at this offset of the event; where it is not known, the time of its end. Uses r1.
fn start(e: &mut Emitter<'_>, at: i16) {
    match e.session.no_entry {
        true => e.load_event(Size::D, R1, field::TIME),
        false => e.load_state(R1, state::START),
    }
    e.store_event(Size::D, at, R1);
}

/// r1 = the processor at the entry of the call.
fn cpu_of_entry(e: &mut Emitter<'_>) {
    match e.session.no_entry {
        true => e.mov(R1, i32::from(NO_CPU)),
        false => e.load_state(R1, state::CPU),
    }
}

/// The ids of the call's stacks.
fn stacks(e: &mut Emitter<'_>) {
    let (Some(stacks), Some(own_frames)) = (e.maps.stacks, e.session.captures) else { return };
    let capture_row::Frames { kernel, user } = e.session.frames;
    for (nth, _) in [u16::from(kernel), user].into_iter().enumerate().filter(|(_, frames)| *frames > 0) {
        let at = capture_row::STACKS + 2 * nth as i16;
        let [none, now, known] = [e.new_label(), e.new_label(), e.new_label()];
        e.load_row(Size::H, R1, at);
        e.jump_if(Cond::Eq, R1, 0, none);
        // A call that replaces or ends its program has none of its own any more.
        e.load_row(Size::H, R1, capture_row::FLAGS);
        e.alu(Alu::And, R1, i32::from(capture_row::AT_ENTRY));
        e.jump_if(Cond::Eq, R1, 0, now);
        e.load_state(R0, state::STACKS + 8 * nth as i16);
        e.jump(known);
        e.bind(now);
        capture_stack(e, stacks, nth, (kernel, user), own_frames);
        e.bind(known);
        e.load_row(Size::H, R2, at);
        e.alu(Alu::And, R2, 0x7f);
        e.alu(Alu::Add, R2, reg::BUFFER);
        e.store(Size::D, R2, 0, R0);
        e.bind(none);
    }
}

/// `r0` = the id of the kernel's stack (`nth` 0) or of the process's (1).
fn capture_stack(e: &mut Emitter<'_>, stacks: Stacks, nth: usize, (kernel, user): (u8, u16), own_frames: u8) {
    match nth {
        0 => crate::stacks::kernel(e, stacks, kernel, own_frames),
        _ => crate::stacks::user(e, stacks, user),
    }
}

/// The ids of the stacks of a call whose memory is read at its entry, into the state. Needs the scratch buffer.
pub(super) fn stacks_at_entry(e: &mut Emitter<'_>) {
    let (Some(stacks), Some(own_frames)) = (e.maps.stacks, e.session.captures) else { return };
    let capture_row::Frames { kernel, user } = e.session.frames;
    e.load_state(R1, state::START);
    e.store_event(Size::D, field::TIME, R1);
    e.who();
    for (nth, _) in [u16::from(kernel), user].into_iter().enumerate().filter(|(_, frames)| *frames > 0) {
        let none = e.new_label();
        e.load_row(Size::H, R1, capture_row::STACKS + 2 * nth as i16);
        e.jump_if(Cond::Eq, R1, 0, none);
        capture_stack(e, stacks, nth, (kernel, user), own_frames);
        e.store_state(state::STACKS + 8 * nth as i16, R0);
        e.bind(none);
    }
}

/// The tails of the event: those of entry, which were read then or are read now, and those of exit.
fn tails(e: &mut Emitter<'_>, drop: Label) {
    let run = e.new_label();
    no_entry::count_replaced(e);
    e.load_state(R1, state::CAPS);
    e.set_caps(R1);
    e.mov(R1, 0);
    e.load_row(Size::B, R2, capture_row::N);
    ops::choose(e);
    let [keep, execve, failed] = std::array::from_fn(|_| e.new_label());
    e.load_state(R2, state::NR);
    e.jump_if(Cond::Eq, R2, 59, execve);
    e.jump_if(Cond::Ne, R2, 322, keep);
    e.bind(execve);
    e.result(R2);
    e.jump_if(Cond::Slt, R2, 0, failed);
    // One whose entry nobody has seen: the memory is the new program's. The addresses are in the event.
    e.load_state(R2, state::LEN);
    e.jump_if(Cond::Ne, R2, 0, keep);
    (0..6).for_each(|i| e.store_state(state::ARGS + 8 * i, 0));
    e.jump(keep);
    e.bind(failed);
    // One that failed has left the memory as it was, and has faulted its pages in: read it now.
    e.store_state(state::LEN, 0);
    e.mov(R1, 0);
    e.set_caps(R1);
    e.bind(keep);
    e.load_state(R2, state::LEN);
    e.jump_if(Cond::Eq, R2, 0, run);
    e.jump_if(Cond::Gt, R2, state::ROOM, run);
    e.store_slot(slot::LEN, R2);
    e.home(drop);
    e.mov(R3, R0);
    e.alu(Alu::Add, R3, i32::from(state::TAILS));
    e.place(R1, 0);
    e.load_slot(R2, slot::LEN);
    e.call(Helper::ProbeReadKernel);
    e.load_slot(R2, slot::LEN);
    e.alu(Alu::Add, reg::END, R2);
    e.load_row(Size::B, R1, capture_row::N_IN);
    e.load_row(Size::B, R2, capture_row::N);
    ops::choose(e);
    e.bind(run);
    ops::run(e, ops::Nested::All, drop);
}

/// The event of the call: at its end, or at that of its task ([`Emitter::set_ended`], [`Emitter::set_result`]). Emitted once,
/// because the verifier checks the ops once for each place from which they are run.
pub fn call_event(e: &mut Emitter<'_>) {
    let [drop, done, returned] = [e.new_label(), e.new_label(), e.new_label()];
    e.load_row(Size::B, R2, capture_row::FIXED);
    e.has_room(R2, drop);
    fixed(e);
    stacks(e);
    let [general, complete] = [e.new_label(), e.new_label()];
    if e.session.kinds.is_none_or(|mask| mask >> capture_row::kind::BYTES & 1 == 1) {
        e.load_row(Size::H, R1, capture_row::FLAGS);
        e.alu(Alu::And, R1, i32::from(capture_row::STRAIGHT));
        e.jump_if(Cond::Eq, R1, 0, general);
        ops::straight(e);
        e.jump(complete);
    }
    e.bind(general);
    tails(e, drop);
    e.bind(complete);
    e.get_ended(R2);
    e.get_caps(R1);
    e.jump_if(Cond::Eq, R2, 0, returned);
    e.alu(Alu::Or, R1, i32::from(CAP_NO_RESULT));
    e.bind(returned);
    attached_bit(e);
    e.store_event(Size::H, field::CAP, R1);
    e.output();
    e.jump(done);
    e.bind(drop);
    e.note("too long, or no room in the ring");
    e.mov(R1, 0);
    attached_bit(e);
    e.load_row(Size::H, R3, capture_row::ID);
    e.count_lost(Lost::InR3);
    e.bind(done);
}

/// A call that no row describes, or a 32-bit one: number, architecture, registers. `registers` sets r3 to the address of the registers.
pub(super) fn raw_event(e: &mut Emitter<'_>, registers: impl FnOnce(&mut Emitter<'_>)) {
    const REGISTERS: i32 = 168;
    const ARCH_X86_64: u64 = 0xc000_003e;
    const ARCH_I386: u64 = 0x4000_0003;
    // 32-bit calls take their arguments from bx cx dx si di bp (arch/x86/include/asm/syscall.h).
    const ARG_REGISTERS_32: [i16; 6] = [40, 88, 96, 104, 112, 32];
    let schema = &events::generated::C_RAW;
    let layout = Layout::of(schema);
    let [compat, ready] = [e.new_label(), e.new_label()];
    let at = |i: usize| layout.args[i].0 as i16;
    e.note("a call without a row");
    e.call(Helper::KtimeGetNs);
    e.store_event(Size::D, field::TIME, R0);
    e.store_event(Size::H, field::ID, i32::from(schema.id));
    e.who();
    start(e, layout.start as i16);
    e.load_state(R1, state::NR);
    e.store_event(Size::W, at(0), R1);
    e.load_slot(R1, slot::RET);
    e.store_event(Size::D, layout.ret as i16, R1);
    cpu_of_entry(e);
    e.store_event(Size::H, layout.cpu.0 as i16, R1);
    e.call(Helper::GetSmpProcessorId);
    e.store_event(Size::H, layout.cpu.1 as i16, R0);
    e.load_state(R1, state::FLAGS);
    e.alu(Alu::And, R1, state::COMPAT);
    e.jump_if(Cond::Ne, R1, 0, compat);
    e.store_event(Size::H, field::CAP, 0);
    e.constant(R1, ARCH_X86_64);
    e.store_event(Size::W, at(1), R1);
    for i in 0..6usize {
        e.load_state(R1, state::ARGS + 8 * i as i16);
        e.store_event(Size::D, at(2 + i), R1);
    }
    e.jump(ready);
    e.bind(compat);
    e.store_event(Size::H, field::CAP, i32::from(CAP_32BIT));
    e.constant(R1, ARCH_I386);
    e.store_event(Size::W, at(1), R1);
    // The registers, after the event.
    registers(e);
    e.mov(R1, reg::BUFFER);
    e.alu(Alu::Add, R1, i32::from(front::REGISTERS));
    e.mov(R2, REGISTERS);
    e.call(Helper::ProbeReadKernel);
    for (i, reg) in ARG_REGISTERS_32.iter().enumerate() {
        e.load_event(Size::D, R1, front::REGISTERS + *reg);
        e.store_event(Size::D, at(2 + i), R1);
    }
    e.bind(ready);
    e.mov(reg::END, layout.fixed as i32);
}

/// Adds to r1 the mark of a call whose start is not known: it was in flight at attach.
pub(super) fn attached_bit(e: &mut Emitter<'_>) {
    if e.session.no_entry {
        return e.alu(Alu::Or, R1, i32::from(CAP_START_UNKNOWN));
    }
    let known = e.new_label();
    e.load_state(R2, state::FLAGS);
    e.alu(Alu::And, R2, state::ATTACHED);
    e.jump_if(Cond::Eq, R2, 0, known);
    e.alu(Alu::Or, R1, i32::from(CAP_START_UNKNOWN));
    e.load_state(R2, state::FLAGS);
    e.alu(Alu::And, R2, !state::ATTACHED);
    e.store_state(state::FLAGS, R2);
    e.bind(known);
}

/// Counts the call, of which nothing could be read at its entry, as lost; falls through.
pub(super) fn entry_lost(e: &mut Emitter<'_>, out: Label) {
    e.note("its entry found the scratch buffer taken");
    e.load_state(R1, state::NR);
    e.row(out);
    e.load_row(Size::H, R3, capture_row::ID);
    e.count_lost(Lost::InR3);
}

/// Jumps to `ended` where the current task ends in no call that is wanted; else to `event`, where [`call_event`] is.
pub(super) fn unfinished(e: &mut Emitter<'_>, event: Label, ended: Label, out: Label) {
    e.note("the call that it ends in");
    e.claimed(Lost::Class(g::P_EXIT.id), out);
    e.set_ended(true);
    let [read, seen, without_row] = std::array::from_fn(|_| e.new_label());
    e.load_state(R1, state::FLAGS);
    e.jump_if(Cond::Set, R1, state::STARTING | state::REJECTED, ended);
    e.jump_if(Cond::Set, R1, state::IN_CALL, seen);
    unseen::ends_in(e, ended);
    e.bind(seen);
    e.mov(R2, R1);
    e.alu(Alu::And, R2, state::ENTRY_LOST);
    e.jump_if(Cond::Eq, R2, 0, read);
    entry_lost(e, out);
    e.jump(ended);
    e.bind(read);
    e.alu(Alu::And, R1, !state::IN_CALL);
    e.store_state(state::FLAGS, R1);
    e.jump_if(Cond::Set, R1, state::COMPAT, without_row);
    e.load_state(R1, state::NR);
    e.row(without_row);
    e.load_row(Size::H, R1, capture_row::FLAGS);
    e.jump_if(Cond::Set, R1, i32::from(capture_row::NO_ROW), without_row);
    e.alu(Alu::And, R1, i32::from(capture_row::WANTED));
    e.jump_if(Cond::Eq, R1, 0, ended);
    e.call_is_held_back(ended);
    e.store_slot(slot::RET, 0);
    filters::before(e, filters::Outcome::CutOff, ended);
    e.mov(R1, 0);
    e.set_result();
    e.jump(event);
    e.bind(without_row);
    if e.session.unknown {
        e.raw_is_held_back(ended);
        e.store_slot(slot::RET, 0);
        raw_event(e, unseen::registers_of_task);
        e.store_event(Size::H, Layout::of(&g::C_RAW).cpu.1 as i16, i32::from(NO_CPU));
        e.load_event(Size::H, R1, field::CAP);
        e.alu(Alu::Or, R1, i32::from(CAP_NO_RESULT));
        attached_bit(e);
        e.store_event(Size::H, field::CAP, R1);
        e.output();
    }
    e.jump(ended);
}
