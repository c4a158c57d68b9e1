//! One run of a clause over an event: what it has, and how it begins.
//!
//! ```text
//!  exec ──► statements ──► print · keys (maps) ──► values ──► memory
//! ```

use super::speculation::Speculations;
use super::{Datum, Event, Failure, Fault, Host};
use crate::diag::Span;
use crate::script::ir::{Clause, Place, Program, Stmt, What};
use crate::script::maps::{Held, Store};
use crate::script::value::Value;
use std::collections::BTreeMap;

/// Why an expression has no value.
pub(super) enum Stop {
    /// Something is not known.
    Unknown,
    /// A block in it has left the loop, or the clause.
    Leave(Next),
}

pub(super) type Result<T> = std::result::Result<T, Stop>;

/// Where a statement leads to.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    Go,
    Break,
    Continue,
    Return,
}

/// What a clause has read of the event.
pub(super) enum Leaf<'r> {
    /// The event's own.
    Of(Datum<'r>),
    /// What was read of memory.
    Read(Value),
}

pub(super) struct Run<'r> {
    pub program: &'r Program,
    pub clause: &'r Clause,
    pub stores: &'r mut [Store],
    pub faults: &'r mut BTreeMap<(Fault, usize, usize), u64>,
    pub bad_reads: &'r mut u64,
    pub random: &'r mut u64,
    pub exit: &'r mut Option<i32>,
    pub vars: &'r mut Vec<Option<Value>>,
    pub key: Vec<u8>,
    pub leaves: Vec<Leaf<'r>>,
    pub rounds: u32,
    pub speculations: &'r mut Speculations,
    /// The speculation that keeps what is printed.
    pub speculating: Option<u64>,
    pub event: &'r dyn Event,
    pub host: &'r mut dyn Host,
}

impl<'r> Run<'r> {
    /// Whether the predicate held, and the body ran.
    pub fn clause(&mut self) -> Result<bool> {
        let c = self.clause;
        self.fetch(c.predicate_leaves)?;
        if let Some(p) = &c.predicate
            && !p.eval(self)?
        {
            return Ok(false);
        }
        self.fetch(c.leaves.len())?;
        self.stmts(&c.body)?;
        Ok(true)
    }

    /// Adds what was collected for its only statement, where the predicate holds.
    pub fn collected(&mut self, held: Held) -> Result<bool> {
        let c = self.clause;
        self.fetch(c.leaves.len())?;
        if let Some(p) = &c.predicate
            && !p.eval(self)?
        {
            return Ok(false);
        }
        if let Some(Stmt::Collect(m, key, ..) | Stmt::Change(Place::Map(m, key), ..)) = c.body.first() {
            let ty = &self.program.maps[*m].value;
            self.with_key(key, |run, key| {
                if let Some(at) = run.stores[*m].at(key, || Held::new(ty)) {
                    at.join(ty, held);
                }
            })?;
        }
        Ok(true)
    }

    /// Takes what the clause reads of the event, so that all of it is known before anything happens.
    fn fetch(&mut self, up_to: usize) -> Result<()> {
        for (i, leaf) in self.clause.leaves.iter().enumerate().take(up_to).skip(self.leaves.len()) {
            let clause = self.clause;
            let found = match (self.event.leaf(i, leaf), &leaf.what) {
                (Some(datum), _) => Leaf::Of(datum),
                (None, _) if clause.idle.contains(&i) => Leaf::Of(Datum::Int(0)),
                // Who has memory itself is asked for that, where the address is known.
                (None, What::Memory(n))
                    if clause.idle.iter().all(|i| self.event.leaf(*i, &clause.leaves[*i]).is_some()) =>
                {
                    let program = self.program;
                    Leaf::Read(self.any(&program.hoisted.get(*n).ok_or(Stop::Unknown)?.expr)?)
                }
                (None, _) => return Err(Stop::Unknown),
            };
            self.leaves.push(found);
        }
        Ok(())
    }

    pub(super) fn fault(&mut self, fault: Fault, span: Span) {
        *self.faults.entry((fault, span.start, span.end)).or_default() += 1;
    }

    /// A map has no room for a key.
    pub(super) fn is_full(&mut self) {
        self.host.failed(Failure::Update, self.clause.span);
    }
}
