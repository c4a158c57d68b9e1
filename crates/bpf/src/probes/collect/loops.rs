//! Loops of clauses that collect: in place (`may_goto`, Linux 6.9), or, before, each a function that is called back (`bpf_loop`, 5.17).
//!
//! ```text
//! in place     head: is there another round? ─► may_goto ─► body ─► next ─► head      break, continue, return: jumps
//! called back  bpf_loop(2^23) ─► function: head ─► rounds + 1 ─► body ─► 0            break: 1; return: a word says so, 1
//! ```
//!
//! Functions keep all that they know on the program's stack, whose end is their second argument: before 6.13 all stacks together have 512 bytes.
//!
//! The verifier follows what it knows of a word on the stack, and would walk each round by itself. So a zero of a map, of which it knows nothing, is
//! added to whatever a loop stores in a variable: from the second round on, all rounds look alike to it.
//!
//! It also removes what it believes not to be reached, and is mistaken with functions: until 6.7 it walks one that is called back for the first round
//! alone, and until 6.8 it takes for equal what differs in a word that was written by one function and read by another one (`__mark_chain_precision`,
//! kernel/bpf/verifier.c, 6.1). So in a clause with functions it knows nothing of any word on the stack.
//!
//! Nor does it in one with many branches there: it takes ways for different that differ in such a word alone, and walks each of them. A kernel that has
//! `may_goto` tells better which words matter, and relates a word of which it knows nothing to registers, which makes more ways different.
//!
//! As in the executor, a run has [`MAX_ROUNDS`] rounds, which is the kernel's own limit (`BPF_MAX_LOOPS`, include/linux/bpf.h, 6.9). Of loops in place
//! it is a time instead since 6.15: a quarter of a second (`bpf_check_timed_may_goto`, kernel/bpf/core.c, 6.18).

use super::{Clauses, Clausework, fail};
use crate::asm::Label;
use crate::frame::{Emitter, slot};
use crate::helper::Helper;
use crate::insn::{Alu, Atomic, Cond, Reg, Reg::*, Size};
use crate::script::Unfit;
use lang::Span;
use lang::script::ir::{Clause, Int, Stmt};
use lang::script::run::{Fault, MAX_ROUNDS};

/// How loops are made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Loops {
    /// In place, with `may_goto` (Linux 6.9): also the way of clauses without loops there.
    #[default]
    InPlace,
    /// As functions that `bpf_loop` calls back (Linux 5.17).
    CalledBack,
}

/// Words of all loops, if they are functions: how the last one has ended, and the rounds so far.
const OF_ALL: usize = 2;
/// Functions that may be called within one another, the program among them (`MAX_CALL_FRAMES`, include/linux/bpf_verifier.h, 6.1).
const FRAMES: usize = 8;
/// The least that a function takes of the stack (`check_max_stack_depth`, kernel/bpf/verifier.c, 6.1).
const LEAST_STACK: i16 = 32;
/// More branches than this are many.
pub(super) const FEW_BRANCHES: usize = 4;
/// A loop has ended by itself.
const ENDED: i32 = 1;
/// With a loop, the clause has ended.
const RETURNED: i32 = 2;
/// The end of the program's stack, in a function.
const STACK: Reg = R6;
/// A zero that the verifier does not know, in clauses with loops, and in those of which it is to know nothing.
pub(super) const ZERO: Reg = R9;

impl Loops {
    /// How many bytes of the stack this many functions within one another take; none: they cannot be called.
    pub(super) fn stacks(self, depth: usize) -> Option<i16> {
        match self {
            Loops::InPlace => Some(0),
            Loops::CalledBack => (depth < FRAMES).then(|| LEAST_STACK * depth as i16),
        }
    }
}

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

/// How many branches there are.
pub(super) fn branches(list: &[Stmt]) -> usize {
    let of = |s: &Stmt| {
        let arms = if let Stmt::If(arms, _) = s { arms.len() } else { 0 };
        bodies(s).0.into_iter().map(branches).sum::<usize>() + arms
    };
    list.iter().map(of).sum()
}

/// How many words the loops of a clause take.
pub(super) fn words(list: &[Stmt]) -> usize {
    OF_ALL + 2 * depth(list)
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
    let Some(programs) = clauses.maps.programs.filter(|_| clauses.loops == Loops::InPlace) else { return };
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

/// Whether a loop counts its rounds.
fn counts(s: &Stmt) -> bool {
    !matches!(s, Stmt::While(..))
}

impl<'c> Clausework<'c> {
    /// No loop has ended, and none had a round.
    pub(super) fn before_loops(&self, e: &mut Emitter<'_>) {
        if self.blind && depth(&self.of_script().body) > 0 {
            self.set_word(e, self.ended(), 0);
            self.set_word(e, self.spent(), 0);
        }
    }

    fn of_script(&self) -> &'c Clause {
        &self.all.script.clauses[self.clause.number]
    }

    fn var(&self, var: usize) -> i16 {
        self.room.vars + 8 * var as i16
    }

    /// A word of loops.
    fn word_at(&self, nth: usize) -> i16 {
        match nth.checked_sub(slot::UNUSED_COUNT) {
            None => slot::UNUSED + 8 * nth as i16,
            Some(nth) => self.room.loops + 8 * nth as i16,
        }
    }

    /// The word that says how the last loop has ended.
    fn ended(&self) -> i16 {
        self.word_at(0)
    }

    /// The word of the rounds so far.
    fn spent(&self) -> i16 {
        self.word_at(1)
    }

    /// The words of a loop's count and of its end.
    fn counted(&self, around: usize) -> (i16, i16) {
        let first = OF_ALL + 2 * around;
        (self.word_at(first), self.word_at(first + 1))
    }

    /// A loop; falls through.
    pub(super) fn rounds(&self, e: &mut Emitter<'c>, s: &'c Stmt, around: Ways) -> Result<(), Unfit> {
        let (count, end) = self.counted(around.depth);
        match s {
            Stmt::Range(_, from, to, ..) => {
                self.word(e, count, from)?;
                self.word(e, end, to)?;
            }
            Stmt::Repeat(n, _) => {
                self.set_word(e, count, 0);
                self.word(e, end, &Int::Const(i64::from(*n)))?;
            }
            _ => {}
        }
        match self.all.loops {
            Loops::InPlace => self.in_place(e, s, around),
            Loops::CalledBack => self.called_back(e, s, around),
        }
    }

    fn in_place(&self, e: &mut Emitter<'c>, s: &'c Stmt, around: Ways) -> Result<(), Unfit> {
        let [head, next, behind, too_many] = std::array::from_fn(|_| e.new_label());
        let ways = Ways { done: around.done, behind: Some(behind), next: Some(next), depth: around.depth + 1 };
        e.bind(head);
        self.head(e, s, around.depth, behind)?;
        e.may_goto(too_many);
        self.body(e, s, ways)?;
        e.jump(head);
        e.bind(too_many);
        self.too_many(e, s);
        e.jump(around.done);
        e.bind(behind);
        Ok(())
    }

    fn called_back(&self, e: &mut Emitter<'c>, s: &'c Stmt, around: Ways) -> Result<(), Unfit> {
        let work = Clausework::new(self.all, self.clause, self.room, STACK);
        let function = e.function(move |e| {
            if let Err(unfit) = work.function(e, s, around.depth) {
                fail(e, unfit);
            }
        });
        let behind = e.new_label();
        e.mov(R1, MAX_ROUNDS as i32);
        e.func(R2, function);
        e.mov(R3, self.stack);
        e.mov(R4, 0);
        e.call(Helper::Loop);
        e.load(Size::D, R2, self.stack, self.ended());
        self.set_word(e, self.ended(), 0);
        e.jump_if(Cond::Eq, R2, ENDED, behind);
        e.jump_if(Cond::Eq, R2, RETURNED, around.done);
        // It had all rounds that there are, and may have had no more to do.
        self.head(e, s, around.depth, behind)?;
        self.too_many(e, s);
        e.jump(around.done);
        e.bind(behind);
        Ok(())
    }

    /// A loop's function, which `bpf_loop` calls for each round. `depth`: how many loops are around.
    fn function(&self, e: &mut Emitter<'c>, s: &'c Stmt, depth: usize) -> Result<(), Unfit> {
        let [done, behind, next, too_many, end] = std::array::from_fn(|_| e.new_label());
        let ways = Ways { done, behind: Some(behind), next: Some(next), depth: depth + 1 };
        e.note("a round");
        e.mov(STACK, R2);
        self.load_zero(e);
        self.head(e, s, depth, behind)?;
        e.load(Size::D, R0, STACK, self.spent());
        e.jump_if(Cond::Ge, R0, MAX_ROUNDS as i32, too_many);
        e.alu(Alu::Add, R0, 1);
        self.forget(e, R0);
        e.store(Size::D, STACK, self.spent(), R0);
        self.body(e, s, ways)?;
        e.mov(R0, 0);
        e.exit();
        e.bind(too_many);
        self.too_many(e, s);
        e.bind(done);
        self.set_word(e, self.ended(), RETURNED);
        e.jump(end);
        e.bind(behind);
        self.set_word(e, self.ended(), ENDED);
        e.bind(end);
        e.mov(R0, 1);
        e.exit();
        Ok(())
    }

    /// Goes to `behind` if there is no other round. `around`: how many loops are.
    fn head(&self, e: &mut Emitter<'_>, s: &Stmt, around: usize, behind: Label) -> Result<(), Unfit> {
        for var in self.of_script().stepped.iter().filter(|_| !self.blind) {
            self.forget_word(e, self.var(*var));
        }
        match s {
            Stmt::While(condition, ..) => self.generate(e, |g| g.branch(condition, false, behind))?,
            _ => {
                let (count, end) = self.counted(around);
                e.load(Size::D, R1, self.stack, count);
                e.load(Size::D, R2, self.stack, end);
                e.jump_if(Cond::Sge, R1, R2, behind);
            }
        }
        if let Stmt::Range(var, ..) = s {
            if self.blind {
                self.forget(e, R1);
            }
            e.store(Size::D, self.stack, self.var(*var), R1);
        }
        Ok(())
    }

    /// A round, and what comes before the next one.
    fn body(&self, e: &mut Emitter<'c>, s: &'c Stmt, ways: Ways) -> Result<(), Unfit> {
        let (Stmt::While(_, body, _) | Stmt::Repeat(_, body) | Stmt::Range(_, _, _, body, _)) = s else {
            return Err(Unfit::Value);
        };
        self.statements(e, body, ways)?;
        ways.next.into_iter().for_each(|next| e.bind(next));
        if counts(s) {
            let (count, _) = self.counted(ways.depth - 1);
            e.load(Size::D, R0, self.stack, count);
            e.alu(Alu::Add, R0, 1);
            self.forget(e, R0);
            e.store(Size::D, self.stack, count, R0);
        }
        Ok(())
    }

    /// The run had as many rounds as it may have.
    fn too_many(&self, e: &mut Emitter<'_>, s: &Stmt) {
        let c = self.of_script();
        let counter = self.fault((Fault::TooManyRounds, span(s, c.span).unwrap_or(c.span)));
        e.map_value(R1, self.all.maps.counters, 8 * counter.word(self.all.maps.maps.len()) as u32);
        e.mov(R2, 1);
        e.atomic(Atomic::Add, Size::D, R1, 0, R2);
    }

    /// A word of the stack = a number.
    fn word(&self, e: &mut Emitter<'_>, at: i16, number: &Int) -> Result<(), Unfit> {
        self.generate(e, |g| g.int(number))?;
        self.keep(e, at);
        Ok(())
    }

    /// A word of the stack = r0.
    pub(super) fn keep(&self, e: &mut Emitter<'_>, at: i16) {
        if self.blind {
            self.forget(e, R0);
        }
        e.store(Size::D, self.stack, at, R0);
    }

    /// A word of the stack = a constant. Loses r0.
    pub(super) fn set_word(&self, e: &mut Emitter<'_>, at: i16, to: i32) {
        if !self.blind {
            return e.store(Size::D, self.stack, at, to);
        }
        e.mov(R0, to);
        self.keep(e, at);
    }

    /// The verifier knows nothing of a word any more, which stays as it is. Loses r0.
    pub(super) fn forget_word(&self, e: &mut Emitter<'_>, at: i16) {
        e.load(Size::D, R0, self.stack, at);
        self.forget(e, R0);
        e.store(Size::D, self.stack, at, R0);
    }

    /// Loads [`ZERO`], where it is needed.
    pub(super) fn load_zero(&self, e: &mut Emitter<'_>) {
        if self.blind || depth(&self.of_script().body) > 0 {
            e.map_value(ZERO, self.all.maps.zeros, 0);
            e.load(Size::D, ZERO, ZERO, 0);
        }
    }

    /// The verifier knows nothing of a register any more, which stays as it is.
    pub(super) fn forget(&self, e: &mut Emitter<'_>, r: Reg) {
        e.alu(Alu::Add, r, ZERO);
    }
}
