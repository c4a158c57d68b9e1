//! The program of a probe that is no system call: where each field of its event comes from, and what it captures.
//!
//! ```text
//! attached to a tracepoint, a function, a timer ─► predicates ─► whose? ─► filter ─► fields ─► tails ─► the enabling's ring of this CPU
//! ```
//!
//! Each enabling has maps of its own: a scratch buffer, because one program can interrupt another on the same processor, and
//! rings, so that a flood of one enabling's events drops none of another.

pub mod check;
pub mod clause;
pub mod collect;
mod fields;
mod filter;
pub mod operations;
pub mod predicates;
mod tails;
mod values;
pub mod watch;

use crate::asm::Label;
use crate::btf_offsets::BtfOffsets;
use crate::frame::{Emitter, Generated, Lost, Maps, Session, field, program, reg, slot, state};
use crate::helper::Helper;
use crate::insn::{Alu, Cond, Reg::*, Size};
use crate::scratch::{self, Shape};
use crate::slab;
use events::layout::Layout;
use fields::{context, going, ready, value};
use predicates::Predicates;
use tails::{UNUSED, tail};

pub use fields::{Field, Plan, STRING, STRINGS, Tail, Value, Whose};

impl Plan<'_> {
    /// What its scratch buffers are made for.
    pub fn shape(&self, offsets: &BtfOffsets) -> Shape {
        let tails: usize = self.fields.iter().filter_map(|f| f.tail).map(Tail::most).sum();
        let event = Layout::of(self.schema).fixed + tails;
        Shape::of_probe(event.max(self.filter.as_ref().map_or(0, |f| filter::room(f, offsets))))
    }
}

/// The program that counts the entries of functions whose returns another one is for: the kernel follows a limited number of returns.
pub fn entered(maps: &Maps, offsets: &BtfOffsets, session: &Session, plan: &Plan<'_>) -> Generated {
    program(maps, offsets, session, |e, out| {
        e.store_slot(slot::CTX, R1);
        whose(e, &plan.whose, out);
        going(e, false, out);
        e.count(scratch::ENTERED);
    })
}

fn whose(e: &mut Emitter<'_>, whose: &Whose, out: Label) {
    if let Whose::AllBut(processes) = whose {
        e.current_id(true);
        processes.iter().for_each(|pid| e.jump_if32(Cond::Eq, R1, *pid as i32, out));
    }
    if *whose == Whose::Tasks {
        e.state_or_new(out);
        e.load_state(R1, state::FLAGS);
        e.alu(Alu::And, R1, state::STARTING);
        e.jump_if(Cond::Ne, R1, 0, out);
    }
}

/// The program of a probe. `predicates`: those of the clauses that its events are for.
///
/// # Errors
/// [`crate::AsmError::Generator`] where the filter is too complex.
pub fn probe(
    maps: &Maps,
    offsets: &BtfOffsets,
    session: &Session,
    plan: &Plan<'_>,
    predicates: Option<Predicates<'_>>,
) -> Generated {
    let layout = Layout::of(plan.schema);
    debug_assert!(!plan.schema.is_span(), "{}: a program of one place has no start", plan.schema.name);
    program(maps, offsets, session, |e, out| {
        e.store_slot(slot::CTX, R1);
        if let Some(place) = &plan.slab {
            e.mov(R5, R1);
            slab::is_of(e, R5, place, out);
        }
        // What is rejected costs no look at the task, whose state has the ids where it is asked for.
        let (early, late) = match predicates {
            Some(p) if plan.whose == Whose::Tasks && p.ask_who() => (None, predicates),
            _ => (predicates, None),
        };
        early.iter().for_each(|p| p.before(e, plan, out));
        whose(e, &plan.whose, out);
        late.iter().for_each(|p| p.before(e, plan, out));
        let found = e.stopped_before(out);
        let known = filter::before(e, plan, found, out);
        if !known.scratch {
            ready(e, found, out);
        }
        let full = e.new_label();
        e.has_room(layout.fixed as i32, full);
        e.note("fixed part");
        if !known.time {
            e.call(Helper::KtimeGetNs);
            e.store_event(Size::D, field::TIME, R0);
        }
        if plan.by_cookie {
            context(e);
            e.mov(R1, R2);
            e.call(Helper::GetAttachCookie);
            e.store_event(Size::H, field::ID, R0);
        } else {
            e.store_event(Size::H, field::ID, i32::from(plan.schema.id));
        }
        e.store_event(Size::H, field::CAP, 0);
        if let Some(at) = layout.more_caps {
            e.store_event(Size::D, at as i16, 0);
        }
        match plan.whose {
            Whose::Tasks | Whose::Anyone | Whose::AllBut(_) => e.who(),
            Whose::Nobody => [12, 16].into_iter().for_each(|at| e.store_event(Size::W, at, 0)),
        }
        e.store_event(Size::W, UNUSED, 0);
        for (field, (at, _)) in plan.fields.iter().zip(layout.args) {
            match &field.value {
                Value::Script(number) => values::number(e, plan, number),
                other => value(e, other),
            }
            e.store_event(Size::D, at as i16, R1);
        }
        e.mov(reg::END, layout.fixed as i32);
        let tails = plan.fields.iter().enumerate().filter_map(|(i, field)| Some((i, field.tail?)));
        let (nested, flat): (Vec<_>, Vec<_>) = tails.partition(|(_, t)| t.is_nested());
        let mut most = layout.fixed;
        for (i, t) in flat.into_iter().chain(nested) {
            e.note(format!("tail of {}", plan.schema.args.get(i).map_or("", |a| a.name)));
            most += t.most();
            tail(e, &layout, i, t, most as i32);
        }
        e.output();
        if maps.shape.has_rings() {
            e.jump(out);
            e.bind(full);
            e.count_lost(Lost::Unknown);
        }
    })
}
