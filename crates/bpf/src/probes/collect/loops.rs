//! Loops of clauses that collect, in place (`may_goto`, Linux 6.9): `break`, `continue` and `return` are jumps.
//!
//! The verifier follows what it knows of a word on the stack, and would walk each round by itself. So a zero of a map, of which it knows nothing, is
//! added to whatever a loop stores in a variable: from the second round on, all rounds look alike to it.
//!
//! As in the executor, a run has [`lang::script::run::MAX_ROUNDS`] rounds, which is the kernel's own limit (`BPF_MAX_LOOPS`, include/linux/bpf.h, 6.9).
//! Since 6.15 it is a time instead: a quarter of a second (`bpf_check_timed_may_goto`, kernel/bpf/core.c, 6.18).

use super::{Clauses, Clausework, Counter};
use crate::asm::Label;
use crate::frame::{Emitter, slot};
use crate::helper::Helper;
use crate::insn::{Alu, Atomic, Cond, Reg, Reg::*, Size};
use crate::script::Unfit;
use lang::Span;
use lang::script::ir::{Clause, Int, Stmt};
use lang::script::run::Fault;

/// Where jumps lead to.
#[derive(Clone, Copy)]
pub(super) struct Ways {
    /// Behind the clause.
    pub(super) done: Label,
    /// Behind the loop.
    pub(super) behind: Option<Label>,
    /// To the loop's next round.
    pub(super) next: Option<Label>,
    /// How many loops are around.
    depth: usize,
}

impl Ways {
    /// Outside of loops.
    pub(super) fn out(done: Label) -> Ways {
        Ways { done, behind: None, next: None, depth: 0 }
    }

    pub(super) fn is_in_loop(self) -> bool {
        self.depth > 0
    }

    pub(super) fn leave(self, e: &mut Emitter<'_>, to: Option<Label>) -> Result<(), Unfit> {
        e.jump(to.ok_or(Unfit::Value)?);
        Ok(())
    }
}

/// The bodies in a statement, and whether they are a loop's.
fn bodies(s: &Stmt) -> (Vec<&[Stmt]>, bool) {
    match s {
        Stmt::While(_, body, _) | Stmt::Repeat(_, body) | Stmt::Range(_, _, _, body, _) => (vec![body], true),
        Stmt::Block(body) => (vec![body], false),
        Stmt::If(arms, rest) => (arms.iter().map(|a| &a.1[..]).chain([&rest[..]]).collect(), false),
        _ => (Vec::new(), false),
    }
}

/// How many loops there are within one another.
pub(super) fn depth(list: &[Stmt]) -> usize {
    let of = |s: &Stmt| {
        let (bodies, is_loop) = bodies(s);
        bodies.into_iter().map(depth).max().unwrap_or(0) + usize::from(is_loop)
    };
    list.iter().map(of).max().unwrap_or(0)
}

/// Where the loops of a clause are, as the executor has it.
pub(super) fn spans(c: &Clause) -> Vec<Span> {
    fn walk(list: &[Stmt], of_clause: Span, to: &mut Vec<Span>) {
        for s in list {
            to.extend(span(s, of_clause));
            bodies(s).0.into_iter().for_each(|body| walk(body, of_clause, to));
        }
    }
    let mut all = Vec::new();
    walk(&c.body, c.span, &mut all);
    all
}

fn span(s: &Stmt, of_clause: Span) -> Option<Span> {
    match s {
        Stmt::While(_, _, at) | Stmt::Range(.., at) => Some(*at),
        Stmt::Repeat(..) => Some(of_clause),
        _ => None,
    }
}

/// Has the program use the kernel's stack: from 6.15 on, x86 looks for the time of `may_goto` there (`arch_bpf_timed_may_goto`), even where the program
/// has a stack of its own (6.13), and takes for a time whatever it finds. A program with a tail call has none (`check_max_stack_depth`,
/// kernel/bpf/verifier.c, 6.18); this one is never carried out.
pub(super) fn off_private_stack(e: &mut Emitter<'_>, clauses: &Clauses<'_>) {
    let Some(programs) = clauses.maps.programs else { return };
    let here = e.new_label();
    e.map_value(R1, clauses.maps.zeros, 0);
    e.load(Size::D, R1, R1, 0);
    e.jump_if(Cond::Eq, R1, 0, here);
    e.load_slot(R1, slot::CTX);
    e.map_fd(R2, programs);
    e.mov(R3, 0);
    e.call(Helper::TailCall);
    e.bind(here);
}

impl Clausework<'_> {
    /// A loop; falls through.
    pub(super) fn rounds(&self, e: &mut Emitter<'_>, s: &Stmt, around: Ways) -> Result<(), Unfit> {
        let c = &self.all.script.clauses[self.clause.number];
        let [head, next, behind, too_many] = std::array::from_fn(|_| e.new_label());
        let ways = Ways { done: around.done, behind: Some(behind), next: Some(next), depth: around.depth + 1 };
        let count = self.room.loops + 16 * around.depth as i16;
        let end = count + 8;
        match s {
            Stmt::Range(_, from, to, ..) => {
                self.word(e, count, from)?;
                self.word(e, end, to)?;
            }
            Stmt::Repeat(n, _) => {
                e.store(Size::D, R10, count, 0);
                e.constant(R1, u64::from(*n));
                e.store(Size::D, R10, end, R1);
            }
            _ => {}
        }
        let counts = !matches!(s, Stmt::While(..));
        e.bind(head);
        for at in c.stepped.iter().map(|var| self.room.vars + 8 * *var as i16) {
            e.load(Size::D, R0, R10, at);
            self.forget(e, R0);
            e.store(Size::D, R10, at, R0);
        }
        if counts {
            e.load(Size::D, R1, R10, count);
            e.load(Size::D, R2, R10, end);
            e.jump_if(Cond::Sge, R1, R2, behind);
        }
        let body = match s {
            Stmt::Range(var, _, _, body, _) => {
                e.store(Size::D, R10, self.room.vars + 8 * *var as i16, R1);
                body
            }
            Stmt::While(condition, body, _) => {
                self.generate(e, |g| g.branch(condition, false, behind))?;
                body
            }
            Stmt::Repeat(_, body) => body,
            _ => return Err(Unfit::Value),
        };
        e.may_goto(too_many);
        self.statements(e, body, ways)?;
        e.bind(next);
        if counts {
            e.load(Size::D, R0, R10, count);
            e.alu(Alu::Add, R0, 1);
            self.forget(e, R0);
            e.store(Size::D, R10, count, R0);
        }
        e.jump(head);
        e.bind(too_many);
        self.count(e, self.fault((Fault::TooManyRounds, span(s, c.span).unwrap_or(c.span))));
        e.jump(around.done);
        e.bind(behind);
        Ok(())
    }

    /// A word of the stack = a number.
    fn word(&self, e: &mut Emitter<'_>, at: i16, number: &Int) -> Result<(), Unfit> {
        self.generate(e, |g| g.int(number))?;
        e.store(Size::D, R10, at, R0);
        Ok(())
    }

    /// The verifier knows nothing of a register any more, which stays as it is. Uses r1.
    pub(super) fn forget(&self, e: &mut Emitter<'_>, r: Reg) {
        e.map_value(R1, self.all.maps.zeros, 0);
        e.load(Size::D, R1, R1, 0);
        e.alu(Alu::Add, r, R1);
    }

    /// Adds 1 to a counter.
    fn count(&self, e: &mut Emitter<'_>, counter: Counter) {
        e.map_value(R1, self.all.maps.counters, 8 * counter.word(self.all.maps.maps.len()) as u32);
        e.mov(R2, 1);
        e.atomic(Atomic::Add, Size::D, R1, 0, R2);
    }
}
