//! Predicates of clauses that see events: an event that no clause of its probe wants is not reported.
//!
//! ```text
//! values of a clause ─► its predicate ─► holds: reported
//!                           └─► values of the next clause ─► its predicate ─► … ─► none holds: left
//! ```
//!
//! Whoever runs the clauses evaluates their predicates again.

use super::check::Check;
use super::clause::{Clause, From, conditions, ints};
use super::fields::Plan;
use super::values::{beside, over};
use crate::asm::Label;
use crate::frame::Emitter;
use lang::ir::Leaf;
use lang::script::Program;
use lang::script::ir::{Cond, Int, Kind};

/// The clauses of a probe, whose predicates its program evaluates first.
#[derive(Clone, Copy)]
pub struct Predicates<'c> {
    /// The script.
    pub script: &'c Program,
    /// All of them.
    pub clauses: &'c [Clause],
}

/// Whether the predicate of a clause can be evaluated before the event is made, and is the same when it is evaluated again: it reads
/// nothing but numbers of the event, and counts nothing.
pub fn is_decidable(script: &Program, clause: &Clause) -> bool {
    let Some(c) = script.clauses.get(clause.number) else { return false };
    let (Some(predicate), Some((.., temps))) = (&c.predicate, beside(c.predicate_leaves)) else { return false };
    let mut plain = Check { script, clause, vars: &[], all_memory: false, temps }.condition(predicate);
    predicate.leaves(&mut |leaf| plain &= matches!(leaf, Leaf::Value(v) if matches!(v.kind, Kind::Leaf(_))));
    conditions(predicate, &mut |i| {
        ints(i, &mut |i| {
            if let Int::Binary(op, _, by) = i {
                plain &= op.counted(0).is_none() || matches!(**by, Int::Const(n) if n != 0);
            }
        });
    });
    let of_event =
        |from: &From| matches!(from, From::Pid | From::Tid | From::Uid | From::Gid | From::Cpu | From::Field(_));
    plain && clause.leaves.iter().take(c.predicate_leaves).all(of_event)
}

impl Predicates<'_> {
    /// Whether one of them names the thread or the process.
    pub(super) fn ask_who(&self) -> bool {
        let named = |c: &Clause| {
            let count = self.script.clauses.get(c.number).map_or(0, |c| c.predicate_leaves);
            c.leaves.iter().take(count).any(|from| matches!(from, From::Pid | From::Tid))
        };
        self.clauses.iter().any(named)
    }

    /// Falls through for an event that a clause wants; else goes to `out`. The context is in its slot.
    pub(super) fn before(&self, e: &mut Emitter<'_>, plan: &Plan<'_>, out: Label) {
        let all: Vec<(&Clause, &Cond, usize)> = self.clauses.iter().filter_map(|c| self.predicate(c)).collect();
        let Some((last, others)) = all.split_last() else { return };
        let wanted = e.new_label();
        others.iter().for_each(|one| branch(e, plan, *one, true, wanted));
        branch(e, plan, *last, false, out);
        e.bind(wanted);
    }

    fn predicate<'c>(&'c self, clause: &'c Clause) -> Option<(&'c Clause, &'c Cond, usize)> {
        let c = self.script.clauses.get(clause.number)?;
        Some((clause, c.predicate.as_ref()?, c.predicate_leaves))
    }
}

/// Goes to `to` if the predicate is `when`, else falls through.
fn branch(e: &mut Emitter<'_>, plan: &Plan<'_>, of: (&Clause, &Cond, usize), when: bool, to: Label) {
    let (clause, predicate, count) = of;
    e.note(format!("the predicate of clause {}", clause.number));
    let leaves = clause.leaves.get(..count).unwrap_or(&clause.leaves);
    over(e, plan, leaves, |_| true, |g| g.branch(predicate, when, to));
}
