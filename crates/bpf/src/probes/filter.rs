//! The filter of an enabling, in front of everything that its program does for an event.
//!
//! ```text
//! arguments that the filter names ─► parts, cheapest first ─► passes: falls through
//!   (loads from the context)                └─► counted by part, and left
//! ```
//!
//! Numbers lie in the context, or on the stack behind the slots of [`super::slot`]; short strings are read to the stack too. The
//! scratch buffer is looked up before only where the filter wants long strings, the event's time, or ids of a pid namespace.

use super::{Field, Plan, Tail, Value, comm, going, ready, size_of, value};
use crate::asm::{AsmError, Assembler, Label};
use crate::calls::emit::{slot, who};
use crate::calls::{Maps, Target};
use crate::filter::{self, Argument, Bytes, Exits, Place};
use crate::helper::Helper;
use crate::insn::{Alu, Atomic, Reg::*, Size};
use crate::scratch::{self, front};
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
    fn of(filter: &Filter, target: &Target) -> Room {
        let words = filter.needs().args.count_ones() as i16;
        let args = FREE - 8 * words;
        let strings = args - filter::room(filter) as i16;
        let left = (strings - STACK_END) / 8;
        let fits = left >= FEW_TEMPS as i16;
        let scratch = !fits || filter.needs().nsecs || target.namespace.is_some() && asks_who(filter);
        let (strings, temps) = match fits {
            true => ((R10, strings), (R10, STACK_END, left as usize)),
            false => ((R7, front::STRINGS), (R7, front::TEMPS, front::TEMP_COUNT)),
        };
        Room { scratch, args, strings, temps }
    }
}

fn asks_who(filter: &Filter) -> bool {
    let mut asks = false;
    for part in filter.parts() {
        part.cond.values(&mut |leaf| asks |= matches!(leaf, Leaf::Value(Asked::Pid | Asked::Tid)));
    }
    asks
}

/// Bytes of the scratch buffer that a filter uses.
pub(super) fn room(filter: &Filter, target: &Target) -> usize {
    match Room::of(filter, target) {
        Room { strings: (R7, strings), .. } => strings as usize + filter::room(filter),
        _ => 0,
    }
}

/// What [`before`] leaves for the program behind it.
pub(super) struct Known {
    /// r7 is the scratch buffer.
    pub(super) scratch: bool,
    /// The time of the event stands in it.
    pub(super) time: bool,
}

/// Goes on with events that pass. The context is in its slot. `found`: r7 is the scratch buffer, which is not claimed.
pub(super) fn before(
    a: &mut Assembler,
    maps: &Maps,
    target: &Target,
    plan: &Plan<'_>,
    found: bool,
    out: Label,
) -> Known {
    let Some(filter) = &plan.filter else { return Known { scratch: false, time: false } };
    let room = Room::of(filter, target);
    if room.scratch {
        ready(a, maps, found, out);
    }
    if filter.needs().nsecs {
        a.note("the time of the event");
        a.call(Helper::KtimeGetNs);
        a.store(Size::D, R7, 0, R0);
    }
    let mut places = filter::helpers(room.strings, room.temps);
    target.find_ids(&mut places);
    if room.scratch && target.namespace.is_some() && asks_who(filter) {
        who(a, target);
        (places.tid, places.pid) = (Place::Memory(R7, 12, Size::W), Place::Memory(R7, 16, Size::W));
    }
    if filter.needs().nsecs {
        places.nsecs = Place::Memory(R7, 0, Size::D);
    }
    a.load(Size::D, R9, R10, slot::CTX);
    places.args = arguments(a, plan, filter, room.args);
    let exits = Exits { rejected: filter.parts().iter().map(|_| a.new_label()).collect(), unknown: a.new_label() };
    if let Err(unfit) = filter::emit(a, filter, &places, &exits) {
        a.mistake(AsmError::Filter(unfit));
    }
    let pass = a.new_label();
    a.jump(pass);
    leave(a, maps, &exits, found, room.scratch, out);
    a.bind(pass);
    Known { scratch: room.scratch, time: filter.needs().nsecs }
}

/// Where the arguments are; those that are not in the context as they are wanted are put on the stack, from `at` up.
fn arguments(a: &mut Assembler, plan: &Plan<'_>, filter: &Filter, mut at: i16) -> Vec<Argument> {
    let mut places = Vec::new();
    for (i, field) in plan.fields.iter().enumerate() {
        let mut place = Place::Memory(R10, slot::WORD, Size::D);
        if filter.needs().args & 1u32.checked_shl(i as u32).unwrap_or(0) != 0 {
            place = match number(field) {
                Some(place) => place,
                None => {
                    address_or_number(a, field);
                    a.store(Size::D, R10, at, R1);
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
fn address_or_number(a: &mut Assembler, field: &Field) {
    match field.tail {
        Some(Tail::ContextString { off }) => {
            a.mov(R1, R9);
            a.alu(Alu::Add, R1, i32::from(off));
        }
        Some(Tail::DataLoc { off }) => {
            a.load(Size::W, R2, R9, off);
            a.alu(Alu::And, R2, 0xffff);
            a.mov(R1, R9);
            a.alu(Alu::Add, R1, R2);
        }
        Some(Tail::Comm) => comm(a, R1),
        _ => value(a, &field.value),
    }
}

/// Counts what does not pass. `found`: r7 is the scratch buffer; `claimed`: and claimed, and the session is not over.
fn leave(a: &mut Assembler, maps: &Maps, exits: &Exits, found: bool, claimed: bool, out: Label) {
    let common = a.new_label();
    for (i, label) in exits.rejected.iter().enumerate() {
        a.bind(*label);
        a.mov(R8, 8 * i.min(scratch::PARTS - 1) as i32);
        a.jump(common);
    }
    a.bind(exits.unknown);
    a.mov(R8, i32::from(scratch::UNKNOWN - scratch::FILTERED));
    a.bind(common);
    a.note("filtered out");
    if !claimed {
        going(a, maps, found, out);
    }
    // Whoever reads the counters adds these to those that were seen.
    scratch::words(a, R1);
    a.alu(Alu::Add, R1, i32::from(scratch::FILTERED));
    a.alu(Alu::Add, R1, R8);
    a.mov(R2, 1);
    a.atomic(Atomic::Add, Size::D, R1, 0, R2);
    a.jump(out);
}
