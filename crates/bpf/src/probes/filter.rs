//! The filter of an enabling, before everything else that its program does for an event.
//!
//! ```text
//! arguments that the filter names ─► parts, cheapest first ─► passes: falls through
//!   (loads from the context)                └─► counted by part, and left
//! ```
//!
//! Numbers lie in the context, or on the stack below the slots of [`slot`]; short strings are read to the stack too. The
//! scratch buffer is looked up before only where the filter wants long strings, the event's time, or ids of a pid namespace.

use super::fields::{Field, Plan, Tail, Value, comm, going, ready, size_of, value};
use crate::asm::Label;
use crate::btf_offsets::BtfOffsets;
use crate::filter::{self, Argument, Bytes, Exits, Place};
use crate::frame::{Emitter, field, reg, slot};
use crate::helper::Helper;
use crate::insn::{Alu, Atomic, Cond, Reg::*, Size};
use crate::scratch::{self, front};
use events::Schema;
use events::layout::{self, Layout};
use lang::Filter;
use lang::filter::ir::{Leaf, Value as Asked};

/// The lowest byte of the stack.
const STACK_END: i16 = -512;
/// The first byte below the slots.
const FREE: i16 = slot::LAST;
/// The fewest words for intermediate numbers that are worth the stack.
const FEW_TEMPS: usize = 8;

/// Where things lie that the filter needs.
struct Room {
    /// The scratch buffer is looked up first.
    scratch: bool,
    /// On the stack, below this: numbers of arguments.
    args: i16,
    strings: (crate::insn::Reg, i16),
    temps: (crate::insn::Reg, i16, usize),
}

impl Room {
    fn of(filter: &Filter, offsets: &BtfOffsets) -> Room {
        let words = filter.needs().args.count_ones() as i16;
        let args = FREE - 8 * words;
        let strings = args - filter::room(filter) as i16;
        let left = (strings - STACK_END) / 8;
        let fits = left >= FEW_TEMPS as i16;
        let scratch = !fits || filter.needs().nsecs || offsets.namespace.is_some() && asks_who(filter);
        let (strings, temps) = match fits {
            true => ((R10, strings), (R10, STACK_END, left as usize)),
            false => ((reg::BUFFER, front::STRINGS), (reg::BUFFER, front::TEMPS, front::TEMP_COUNT)),
        };
        Room { scratch, args, strings, temps }
    }
}

fn asks_who(filter: &Filter) -> bool {
    let mut asks = false;
    for part in filter.parts() {
        part.cond.leaves(&mut |leaf| asks |= matches!(leaf, Leaf::Value(Asked::Pid | Asked::Tid)));
    }
    asks
}

/// Bytes of the scratch buffer that a filter uses.
pub(super) fn room(filter: &Filter, offsets: &BtfOffsets) -> usize {
    match Room::of(filter, offsets) {
        Room { strings: (reg::BUFFER, strings), .. } => strings as usize + filter::room(filter),
        _ => 0,
    }
}

/// The state in which [`before`] leaves the program.
pub(super) struct Known {
    /// The scratch buffer is claimed.
    pub(super) scratch: bool,
    /// The time of the event is in it.
    pub(super) time: bool,
}

/// Evaluates the filter and falls through for events that pass. The context is in its slot. `found`: the scratch buffer is found, but not claimed.
pub(super) fn before(e: &mut Emitter<'_>, plan: &Plan<'_>, found: bool, out: Label) -> Known {
    let offsets = e.offsets;
    let Some(filter) = &plan.filter else { return Known { scratch: false, time: false } };
    let room = Room::of(filter, e.offsets);
    if room.scratch {
        ready(e, found, out);
    }
    if filter.needs().nsecs {
        e.note("the time of the event");
        e.call(Helper::KtimeGetNs);
        e.store_event(Size::D, field::TIME, R0);
    }
    let mut places = filter::helpers(room.strings, room.temps);
    e.find_ids(&mut places);
    if room.scratch && offsets.namespace.is_some() && asks_who(filter) {
        e.who();
        (places.tid, places.pid) = (Place::Memory(reg::BUFFER, 12, Size::W), Place::Memory(reg::BUFFER, 16, Size::W));
    }
    if filter.needs().nsecs {
        places.nsecs = Place::Memory(reg::BUFFER, 0, Size::D);
    }
    e.load_slot(R9, slot::CTX);
    places.args = arguments(e, plan, filter, room.args);
    let exits = Exits { rejected: filter.parts().iter().map(|_| e.new_label()).collect(), unknown: e.new_label() };
    if let Err(unfit) = filter::emit(e, filter, &places, &exits) {
        e.fail(unfit);
    }
    let pass = e.new_label();
    e.jump(pass);
    leave(e, &exits, found, room.scratch, out);
    e.bind(pass);
    Known { scratch: room.scratch, time: filter.needs().nsecs }
}

/// Evaluates the filter of a span that is in the buffer, whole, and falls through where it passes.
pub(super) fn of_built(e: &mut Emitter<'_>, (schema, filter): (&Schema, &Filter), out: Label) {
    let layout = Layout::of(schema);
    let at = |off: usize, size| Place::Memory(reg::BUFFER, off as i16, size);
    let Room { strings, temps, .. } = Room::of(filter, e.offsets);
    // What does not fit on the stack would be put where the event is.
    if strings.0 != R10 {
        return e.fail(filter::Unfit::Temps);
    }
    let argument = |i: usize| {
        let is_first_tail = layout.tails.first().is_some_and(|t| usize::from(t.arg) == i);
        let bytes = if is_first_tail { Bytes::Copy(reg::BUFFER, layout.fixed as i16, None) } else { Bytes::Nowhere };
        Argument { value: at(layout.args[i].0.into(), Size::D), bytes }
    };
    let places = filter::Places {
        pid: at(layout::PID, Size::W),
        tid: at(layout::TID, Size::W),
        cpu: at(layout.cpu.0, Size::H),
        nsecs: at(0, Size::D),
        start: Some(at(layout.start, Size::D)),
        retval: Some(at(layout.ret, Size::D)),
        args: (0..schema.args.len()).map(argument).collect(),
        ..filter::helpers(strings, temps)
    };
    let exits = Exits { rejected: filter.parts().iter().map(|_| e.new_label()).collect(), unknown: e.new_label() };
    let needs = filter.needs();
    let if_needed = |needed, cap| if needed { cap } else { 0 };
    let lacks = if_needed(needs.retval, layout::CAP_NO_RESULT) | if_needed(needs.start, layout::CAP_START_UNKNOWN);
    if lacks != 0 {
        e.load_event(Size::H, R1, field::CAP);
        e.alu(Alu::And, R1, i32::from(lacks));
        e.jump_if(Cond::Ne, R1, 0, exits.unknown);
    }
    if let Err(unfit) = filter::emit(e, filter, &places, &exits) {
        e.fail(unfit);
    }
    let pass = e.new_label();
    e.jump(pass);
    leave(e, &exits, true, true, out);
    e.bind(pass);
}

/// Where the arguments are; those that are not in the context as they are wanted are put on the stack, from `at` up.
fn arguments(e: &mut Emitter<'_>, plan: &Plan<'_>, filter: &Filter, mut at: i16) -> Vec<Argument> {
    let mut places = Vec::new();
    for (i, field) in plan.fields.iter().enumerate() {
        let mut place = Place::Memory(R10, slot::WORD, Size::D);
        if filter.needs().args & 1u32.checked_shl(i as u32).unwrap_or(0) != 0 {
            place = match number(field) {
                Some(place) => place,
                None => {
                    address_or_number(e, field);
                    e.store_slot(at, R1);
                    at += 8;
                    Place::Memory(R10, at - 8, Size::D)
                }
            };
        }
        // A number whose string a filter asks for is an address of the process's.
        let bytes = if matches!(field.tail, None | Some(Tail::UserString)) { Bytes::User } else { Bytes::Kernel };
        places.push(Argument { value: place, bytes });
    }
    places
}

/// The place of a number that can be loaded from the context as it is; r9 is the context.
fn number(field: &Field) -> Option<Place> {
    match (&field.value, field.tail) {
        (Value::Context { off, size, signed }, None | Some(Tail::UserString | Tail::KernelString))
            if !*signed || *size == 8 =>
        {
            Some(Place::Memory(R9, *off, size_of(*size)))
        }
        _ => None,
    }
}

/// r1 = the address of a string, or the number.
fn address_or_number(e: &mut Emitter<'_>, field: &Field) {
    match field.tail {
        Some(Tail::ContextString { off }) => {
            e.mov(R1, R9);
            e.alu(Alu::Add, R1, i32::from(off));
        }
        Some(Tail::DataLoc { off }) => {
            e.load(Size::W, R2, R9, off);
            e.alu(Alu::And, R2, 0xffff);
            e.mov(R1, R9);
            e.alu(Alu::Add, R1, R2);
        }
        Some(Tail::Comm) => comm(e, R1),
        _ => value(e, &field.value),
    }
}

/// Counts events that do not pass. `found`: the scratch buffer is found; `claimed`: it is claimed too, and the session is not over.
fn leave(e: &mut Emitter<'_>, exits: &Exits, found: bool, claimed: bool, out: Label) {
    let common = e.new_label();
    for (i, label) in exits.rejected.iter().enumerate() {
        e.bind(*label);
        e.mov(R8, 8 * i.min(scratch::PARTS - 1) as i32);
        e.jump(common);
    }
    e.bind(exits.unknown);
    e.mov(R8, i32::from(scratch::UNKNOWN - scratch::FILTERED));
    e.bind(common);
    e.note("filtered out");
    if !claimed {
        going(e, found, out);
    }
    // The reader of the counters adds these to those that were seen.
    let at = e.word(scratch::FILTERED);
    e.words(R1);
    e.alu(Alu::Add, R1, R8);
    e.mov(R2, 1);
    e.atomic(Atomic::Add, Size::D, R1, at, R2);
    e.jump(out);
}
