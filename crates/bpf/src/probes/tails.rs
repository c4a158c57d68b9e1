//! What is read of memory behind the fixed part of an event: strings, bytes, arrays of strings.

use super::fields::{STRING, STRINGS, Tail, comm, context};
use crate::frame::{Emitter, field, reg, slot};
use crate::helper::Helper;
use crate::insn::{Alu, Cond, Reg, Reg::*, Size};
use events::layout::Layout;
use events::schema::FIRST_CAPS;

/// Four bytes of the fixed part that no class of probes uses.
pub(super) const UNUSED: i16 = 20;

/// Where the two capture bits of an argument are.
#[derive(Clone, Copy)]
struct CapBits {
    size: Size,
    at: i16,
    shift: i32,
}

impl CapBits {
    /// Those of argument `i`; none where the class has no bits for it.
    fn of(layout: &Layout, i: usize) -> Option<CapBits> {
        match i.checked_sub(FIRST_CAPS) {
            None => Some(CapBits { size: Size::H, at: field::CAP, shift: 2 * i as i32 }),
            // A byte has those of four arguments.
            Some(i) => {
                let at = layout.more_caps?;
                Some(CapBits { size: Size::B, at: (at + i / 4) as i16, shift: 2 * (i % 4) as i32 })
            }
        }
    }
}

/// Reads a string at the address in r3; sets its capture bits.
fn string(e: &mut Emitter<'_>, helper: Helper, cap: Option<CapBits>) {
    let [bad, good, done] = [e.new_label(), e.new_label(), e.new_label()];
    e.place(R1, 0);
    e.mov(R2, STRING);
    e.call(helper);
    e.jump_if(Cond::Sle, R0, 0, bad);
    e.jump_if(Cond::Le, R0, STRING, good);
    e.bind(bad);
    e.place(R1, 0);
    e.store(Size::B, R1, 0, 0);
    capture(e, cap, 3);
    e.alu(Alu::Add, reg::END, 1);
    e.jump(done);
    e.bind(good);
    // A string that fills the buffer was cut: 2; else whole: 1.
    let whole = e.new_label();
    e.alu(Alu::Add, reg::END, R0);
    e.mov(R9, 1);
    e.jump_if(Cond::Lt, R0, STRING, whole);
    e.mov(R9, 2);
    e.bind(whole);
    if let Some(CapBits { size, at, shift }) = cap {
        e.alu(Alu::Lsh, R9, shift);
        e.load_event(size, R1, at);
        e.alu(Alu::Or, R1, R9);
        e.store_event(size, at, R1);
    }
    e.bind(done);
}

/// `r` = how many bytes are wanted: what the event says at `length`, at least 0, but at most `size`.
fn wanted(e: &mut Emitter<'_>, r: Reg, length: i16, size: u16) {
    let [positive, fits] = [e.new_label(), e.new_label()];
    e.load_event(Size::D, r, length);
    e.jump_if(Cond::Sge, r, 0, positive);
    e.mov(r, 0);
    e.bind(positive);
    e.jump_if(Cond::Le, r, i32::from(size), fits);
    e.mov(r, i32::from(size));
    e.bind(fits);
}

/// Reads bytes at the address in r3, behind their length; sets the capture bits. `length`: where the event says how many.
fn memory(e: &mut Emitter<'_>, helper: Helper, (size, length): (u16, Option<i16>), cap: Option<CapBits>) {
    let [bad, done] = [e.new_label(), e.new_label()];
    e.place(R1, 2);
    match length {
        None => e.mov(R2, i32::from(size)),
        Some(length) => wanted(e, R2, length, size),
    }
    e.call(helper);
    e.jump_if(Cond::Ne, R0, 0, bad);
    e.place(R1, 0);
    match length {
        None => {
            e.store(Size::H, R1, 0, i32::from(size));
            capture(e, cap, 1);
            e.alu(Alu::Add, reg::END, 2 + i32::from(size));
        }
        Some(length) => {
            wanted(e, R9, length, size);
            e.store(Size::H, R1, 0, R9);
            capture(e, cap, 1);
            e.alu(Alu::Add, reg::END, R9);
            e.alu(Alu::Add, reg::END, 2);
        }
    }
    e.jump(done);
    e.bind(bad);
    e.place(R1, 0);
    e.store(Size::H, R1, 0, 0);
    capture(e, cap, 3);
    e.alu(Alu::Add, reg::END, 2);
    e.bind(done);
}

/// Reads the strings of an array whose address is at `at` of the event, up to one that is not there; sets the capture bits. The event has
/// at most `most` bytes then.
fn strings(e: &mut Emitter<'_>, user: bool, cap: Option<CapBits>, at: i16, most: i32) {
    const HEADER: i32 = 4;
    let (number, text) = match user {
        true => (Helper::ProbeReadUser, Helper::ProbeReadUserStr),
        false => (Helper::ProbeReadKernel, Helper::ProbeReadKernelStr),
    };
    let [none, done] = [e.new_label(), e.new_label()];
    e.place(R9, 0);
    e.store(Size::W, R9, 0, 0);
    e.alu(Alu::Add, reg::END, HEADER);
    for i in 0..STRINGS as i32 {
        e.load_event(Size::D, R3, at);
        e.alu(Alu::Add, R3, 8 * i);
        e.slot_address(R1, slot::WORD);
        e.mov(R2, 8);
        e.call(number);
        e.jump_if(Cond::Ne, R0, 0, if i == 0 { none } else { done });
        e.load_slot(R3, slot::WORD);
        e.jump_if(Cond::Eq, R3, 0, done);
        e.place(R1, 0);
        e.store(Size::D, R1, 0, R3);
        e.place(R1, 9);
        e.mov(R2, STRING);
        e.call(text);
        e.jump_if(Cond::Sle, R0, 0, done);
        e.jump_if(Cond::Gt, R0, STRING, done);
        // A string that fills the buffer was cut: 2; else whole: 1.
        e.mov(R2, R0);
        e.alu(Alu::Rsh, R2, STRING.ilog2() as i32);
        e.alu(Alu::Add, R2, 1);
        e.place(R1, 8);
        e.store(Size::B, R1, 0, R2);
        e.alu(Alu::Add, reg::END, 9);
        e.alu(Alu::Add, reg::END, R0);
        e.store(Size::H, R9, 0, i + 1);
        e.store(Size::H, R9, 2, i + 1);
    }
    e.bind(done);
    // Through memory, so that the verifier does not follow what comes next once for each number of strings.
    e.store_event(Size::W, UNUSED, reg::END);
    e.load_event(Size::W, reg::END, UNUSED);
    e.store_event(Size::W, UNUSED, 0);
    let end = e.ends_at;
    e.jump_if(Cond::Gt, reg::END, most, end);
    capture(e, cap, 1);
    let over = e.new_label();
    e.jump(over);
    e.bind(none);
    capture(e, cap, 3);
    e.bind(over);
}

fn capture(e: &mut Emitter<'_>, cap: Option<CapBits>, bits: i32) {
    if let Some(CapBits { size, at, shift }) = cap {
        e.load_event(size, R1, at);
        e.alu(Alu::Or, R1, bits << shift);
        e.store_event(size, at, R1);
    }
}

/// Reads what follows the fixed part for field `i`, of an event with this layout, which has at most `most` bytes then.
pub(super) fn tail(e: &mut Emitter<'_>, layout: &Layout, i: usize, tail: Tail, most: i32) {
    let at_of = |i: usize| layout.args.get(i).map_or(0, |a| a.0 as i16);
    let (cap, at) = (CapBits::of(layout, i), at_of(i));
    match tail {
        Tail::UserString | Tail::KernelString => {
            e.load_event(Size::D, R3, at);
            let user = tail == Tail::UserString;
            string(e, if user { Helper::ProbeReadUserStr } else { Helper::ProbeReadKernelStr }, cap);
        }
        Tail::Memory { user, size, length } => {
            e.load_event(Size::D, R3, at);
            let helper = if user { Helper::ProbeReadUser } else { Helper::ProbeReadKernel };
            memory(e, helper, (size, length.map(|i| at_of(i.into()))), cap);
        }
        Tail::Strings { user } => strings(e, user, cap, at, most),
        Tail::ContextString { off } => {
            context(e);
            e.mov(R3, R2);
            e.alu(Alu::Add, R3, i32::from(off));
            string(e, Helper::ProbeReadKernelStr, cap);
        }
        Tail::DataLoc { off } => {
            context(e);
            e.load(Size::W, R1, R2, off);
            e.alu(Alu::And, R1, 0xffff);
            e.mov(R3, R2);
            e.alu(Alu::Add, R3, R1);
            string(e, Helper::ProbeReadKernelStr, cap);
        }
        Tail::Comm => {
            comm(e, R3);
            string(e, Helper::ProbeReadKernelStr, cap);
        }
        Tail::Hidden => {
            e.place(R1, 0);
            e.store(Size::B, R1, 0, 0);
            e.alu(Alu::Add, reg::END, 1);
        }
    }
}
