//! Clauses of scripts that collect in maps: the program reports no event.
//!
//! ```text
//! values ─► predicate ─► more values ─► statements: value, key ─► map of maps ─► map ─► this processor's words += value
//!                                                                  ▲ user space puts an empty map here, and reads the one that was there
//! ```
//!
//! Nothing is claimed, so that a run which interrupts another one collects too. Words are added to atomically. What a map holds is described at `lang::script::maps::words_of`.

mod aggregates;
pub(super) mod loops;
#[cfg(test)]
mod properties;

use super::clause::{Clause, From, conditions, ints};
use super::fields::{Plan, going};
use super::values::{FEW_TEMPS, STACK_END, read};
use super::whose;
use crate::asm::{Assembler, Label};
use crate::btf_offsets::BtfOffsets;
use crate::expr::{Generator, Place};
use crate::filter;
use crate::frame::{Emitter, Generated, Maps, Session, program, reg, slot};
use crate::helper::Helper;
use crate::insn::{Alu, Atomic, Cond, Reg, Reg::*, Size};
use crate::script::{self, Places, Unfit};
use crate::slab;
use aggregates::add;
use lang::Span;
use lang::ast::Cast;
use lang::ir::Op;
use lang::script::ir::{self, Expr, Int, Kind, Stmt};
use lang::script::maps::words_of;
use lang::script::run::Fault;
use lang::script::types::{Aggregate, Type};
use lang::script::value::Value as Scripts;
pub use loops::Loops;
use loops::{Ways, ZERO};

/// Bytes of a key that fit on the stack.
pub const MAX_KEY: usize = 96;
/// The most words that a map may have at a key.
pub const MAX_WORDS: usize = 512;
/// Bytes of a thread's name (`TASK_COMM_LEN`, include/linux/sched.h, 6.18).
const COMM: usize = 16;
const ENOMEM: i32 = 12;
/// How often a new key is tried where there is no memory for it.
const TRIES: u32 = 4;
/// `BPF_NOEXIST`.
const NO_EXIST: i32 = 1;

/// A part of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyPart {
    /// 8 bytes.
    Int,
    /// The thread's name, 16 bytes.
    Comm,
}

impl KeyPart {
    /// That of a type; None: keys of the kernel do not have it.
    pub fn of(ty: &Type) -> Option<KeyPart> {
        match ty {
            Type::Str(n) if usize::try_from(*n).is_ok_and(|n| n < COMM) => Some(KeyPart::Comm),
            Type::Str(_) | Type::Stack(..) | Type::Symbol(_) => None,
            ty => ty.as_int().map(|_| KeyPart::Int),
        }
    }

    /// Its bytes.
    pub fn size(self) -> usize {
        match self {
            KeyPart::Int => 8,
            KeyPart::Comm => COMM,
        }
    }
}

/// The parts of a map's key, and the words that it has at a key; None: it cannot be one of the kernel's.
pub fn layout(map: &ir::Map) -> Option<(Vec<KeyPart>, usize)> {
    let parts = map.key.iter().map(KeyPart::of).collect::<Option<Vec<_>>>()?;
    let words = words_of(&map.value).filter(|n| *n <= MAX_WORDS)?;
    (parts.iter().map(|p| p.size()).sum::<usize>() <= MAX_KEY).then_some((parts, words))
}

/// A key of the kernel's map, as the executor encodes it.
pub fn key(parts: &[KeyPart], raw: &[u8]) -> Vec<u8> {
    let (mut out, mut rest) = (Vec::new(), raw);
    for part in parts {
        let (own, after) = rest.split_at(part.size().min(rest.len()));
        rest = after;
        match part {
            KeyPart::Int => out.extend_from_slice(own),
            KeyPart::Comm => Scripts::text(own.split(|b| *b == 0).next().unwrap_or_default()).encode(&mut out),
        }
    }
    out
}

/// The words of a value.
pub fn words(raw: &[u8]) -> Vec<u64> {
    raw.as_chunks::<8>().0.iter().map(|w| u64::from_le_bytes(*w)).collect()
}

/// Descriptors of maps.
#[derive(Clone, Debug, Default)]
pub struct Descriptors {
    /// The maps of maps, by the numbers of the script's maps.
    pub maps: Vec<Option<i32>>,
    /// An array whose one value has as many zero bytes as the largest value.
    pub zeros: i32,
    /// An array with one value: a word for each [`Counter`].
    pub counters: i32,
    /// Of clauses with loops: an array of programs that has none.
    pub programs: Option<i32>,
}

/// Clauses of one program.
pub struct Clauses<'c> {
    /// The script.
    pub script: &'c lang::script::Program,
    /// The clauses, in their order.
    pub clauses: &'c [Clause],
    /// Their maps.
    pub maps: &'c Descriptors,
    /// The [`faults`] of all clauses that collect, those of other programs too.
    pub faults: &'c [(Fault, Span)],
    /// How their loops are made.
    pub loops: Loops,
}

impl Clauses<'_> {
    /// How many bytes of the stack the functions of their loops take; none: they cannot be called.
    fn functions(&self) -> Option<i16> {
        let of_script = self.clauses.iter().filter_map(|c| self.script.clauses.get(c.number));
        self.loops.stacks(of_script.map(|c| loops::depth(&c.body)).max().unwrap_or(0))
    }
}

/// What is counted while clauses run: the number of its word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counter {
    /// Reads of memory that is not there.
    BadReads,
    /// New keys that a map has refused.
    Refused(usize),
    /// What has gone wrong at a place.
    Fault(usize),
}

impl Counter {
    /// The number of its word, in a script of this many maps.
    pub fn word(self, maps: usize) -> usize {
        match self {
            Counter::BadReads => 0,
            Counter::Refused(map) => 1 + map,
            Counter::Fault(nth) => 1 + maps + nth,
        }
    }
}

/// The places of a script at which clauses may divide by zero, or have too many rounds of a loop, in an order that is always the same.
pub fn faults(script: &lang::script::Program, clauses: &[usize]) -> Vec<(Fault, Span)> {
    let mut found = Vec::new();
    for (n, c) in clauses.iter().filter_map(|n| Some((*n, script.clauses.get(*n)?))) {
        let mut each = |i: &Int| {
            ints(i, &mut |i| {
                if let Int::Binary(op, ..) = i
                    && let Some(at) = op.counted(0)
                    && !found.contains(&(Fault::DivisionByZero, at))
                {
                    found.push((Fault::DivisionByZero, at));
                }
            })
        };
        if let Some(predicate) = &c.predicate {
            conditions(predicate, &mut each);
        }
        statements(&c.body, &mut each);
        script.hoisted.iter().filter(|h| h.clause == n).for_each(|h| each(&h.expr.clone().int()));
        for at in loops::spans(c) {
            if !found.contains(&(Fault::TooManyRounds, at)) {
                found.push((Fault::TooManyRounds, at));
            }
        }
    }
    found
}

/// Calls `each` with the outermost numbers of statements that clauses of the kernel may have.
fn statements(list: &[Stmt], each: &mut dyn FnMut(&Int)) {
    for s in list {
        match s {
            Stmt::Collect(_, key, _, value, _) => {
                value.iter().for_each(&mut *each);
                key.iter().for_each(|e| each(&e.clone().int()));
            }
            Stmt::Change(ir::Place::Var(_), op, value) => {
                each(&Int::Binary(*op, Box::new(Int::Const(0)), Box::new(value.clone())));
            }
            Stmt::Change(ir::Place::Map(_, key), _, value) => {
                each(value);
                key.iter().for_each(|e| each(&e.clone().int()));
            }
            Stmt::Eval(Expr { kind: Kind::Step { place: ir::Place::Map(_, key), .. }, .. }) => {
                key.iter().for_each(|e| each(&e.clone().int()));
            }
            Stmt::Eval(e) | Stmt::Set(_, e) => each(&e.clone().int()),
            Stmt::Block(list) | Stmt::Repeat(_, list) => statements(list, each),
            Stmt::While(cond, list, _) => {
                conditions(cond, each);
                statements(list, each);
            }
            Stmt::Range(_, from, to, list, _) => {
                [from, to].into_iter().for_each(&mut *each);
                statements(list, each);
            }
            Stmt::If(arms, rest) => {
                for (cond, list) in arms {
                    conditions(cond, each);
                    statements(list, each);
                }
                statements(rest, each);
            }
            _ => {}
        }
    }
}

/// Where things lie on the program's stack, as offsets from its end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Room {
    /// The word of the first leaf; the others are above it.
    leaves: i16,
    vars: i16,
    /// Behind the last variable.
    value: i16,
    scratch: i16,
    /// The words of loops for which [`slot::UNUSED`] has no room.
    loops: i16,
    key: i16,
    pub(super) temps: (i16, usize),
}

impl Room {
    /// `functions`: bytes that the functions of the program take of the stack.
    pub(super) fn of(script: &lang::script::Program, c: &ir::Clause, clause: &Clause, functions: i16) -> Option<Room> {
        let words = |n: usize| i16::try_from(8 * n).ok();
        let leaves = slot::LAST.checked_sub(words(clause.leaves.len())?)?;
        let value = leaves.checked_sub(8)?;
        let vars = value.checked_sub(words(c.vars.len())?)?;
        let scratch = vars.checked_sub(8)?;
        let sizes =
            script.maps.iter().filter_map(layout).map(|(parts, _)| parts.iter().map(|p| p.size()).sum::<usize>());
        let of_loops = loops::words(&c.body).saturating_sub(slot::UNUSED_COUNT);
        let loops = scratch.checked_sub(words(of_loops)?)?;
        let key = loops.checked_sub(i16::try_from(sizes.max().unwrap_or(0)).ok()?)?;
        let end = STACK_END + functions;
        let left = (key - end) / 8;
        let few = if functions == 0 { FEW_TEMPS } else { 1 };
        (left >= few).then_some(Room { leaves, vars, value, scratch, loops, key, temps: (end, left as usize) })
    }
}

/// The program of a probe whose clauses collect.
///
/// # Errors
/// [`crate::AsmError::Generator`] where an expression is too complex.
pub fn collect<'s>(
    maps: &'s Maps,
    offsets: &'s BtfOffsets,
    session: &'s Session,
    plan: &Plan<'_>,
    clauses: &'s Clauses<'s>,
) -> Generated {
    program(maps, offsets, session, |e, out| {
        e.store_slot(slot::CTX, R1);
        if let Some(place) = &plan.slab {
            e.mov(R5, R1);
            slab::is_of(e, R5, place, out);
        }
        whose(e, &plan.whose, out);
        // What it collects after the end nobody reads.
        if session.switch.is_some() {
            let found = e.stopped_before(out);
            going(e, found, out);
        }
        loops::off_private_stack(e, clauses);
        for clause in clauses.clauses {
            if let Err(unfit) = one(e, plan, clauses, clause) {
                fail(e, unfit);
            }
        }
    })
}

fn fail(e: &mut Emitter<'_>, unfit: Unfit) {
    e.fail(match unfit {
        Unfit::Temps => filter::Unfit::Temps,
        Unfit::Depth => filter::Unfit::Depth,
        Unfit::Leaf(_) | Unfit::Value => filter::Unfit::Result,
    });
}

/// What the code of a clause is made with.
struct Clausework<'c> {
    all: &'c Clauses<'c>,
    places: Vec<Option<(Place, Option<Cast>)>>,
    clause: &'c Clause,
    room: Room,
    /// The end of the program's stack.
    stack: Reg,
    /// Nothing that is kept on the stack may be known to the verifier: [`loops`].
    blind: bool,
}

/// A clause; falls through.
fn one<'c>(e: &mut Emitter<'c>, plan: &Plan<'_>, all: &'c Clauses<'c>, clause: &'c Clause) -> Result<(), Unfit> {
    let Some(c) = all.script.clauses.get(clause.number) else { return Ok(()) };
    let room = |functions| Room::of(all.script, c, clause, functions);
    let why = if room(0).is_some() { Unfit::Depth } else { Unfit::Temps };
    let room = all.functions().and_then(room).ok_or(why)?;
    let at = |i: usize| room.leaves + 8 * i as i16;
    let work = Clausework::new(all, clause, room, R10);
    let done = e.new_label();
    e.note(format!("clause {}", clause.number));
    work.load_zero(e);
    let first = c.predicate_leaves.min(clause.leaves.len());
    (0..first).try_for_each(|i| work.leaf(e, plan, i, at(i)))?;
    if let Some(predicate) = &c.predicate {
        work.generate(e, |g| g.branch(predicate, false, done))?;
    }
    (first..clause.leaves.len()).try_for_each(|i| work.leaf(e, plan, i, at(i)))?;
    (0..c.vars.len()).for_each(|i| work.set_word(e, room.vars + 8 * i as i16, 0));
    work.before_loops(e);
    work.statements(e, &c.body, Ways::out(done))?;
    e.bind(done);
    Ok(())
}

impl<'c> Clausework<'c> {
    fn new(all: &'c Clauses<'c>, clause: &'c Clause, room: Room, stack: Reg) -> Clausework<'c> {
        let at = |i: usize| room.leaves + 8 * i as i16;
        let places = (0..clause.leaves.len()).map(|i| Some((Place::Memory(stack, at(i), Size::D), None))).collect();
        let body = all.script.clauses.get(clause.number).map_or(&[][..], |c| &c.body);
        let is_complex = loops::depth(body) > 0 || loops::branches(body) > loops::FEW_BRANCHES;
        Clausework { all, places, clause, room, stack, blind: is_complex && all.loops == Loops::CalledBack }
    }

    /// Reads a leaf. What memory depends on was read before.
    fn leaf(&self, e: &mut Emitter<'_>, plan: &Plan<'_>, i: usize, at: i16) -> Result<(), Unfit> {
        let Some(From::Memory(n)) = self.clause.leaves.get(i) else {
            if let Some(from) = self.clause.leaves.get(i) {
                read(e, plan, *from, at);
                if self.blind && !matches!(from, From::Comm | From::Nothing) {
                    self.forget_word(e, at);
                }
            }
            return Ok(());
        };
        let Some(hoisted) = self.all.script.hoisted.get(*n) else { return Err(Unfit::Value) };
        // A string is no number of a clause that collects.
        if hoisted.expr.ty.as_int().is_some() {
            let number = hoisted.expr.clone().int();
            self.generate(e, |g| g.int(&number))?;
            self.keep(e, at);
        }
        Ok(())
    }

    fn generate<T>(
        &self,
        e: &mut Emitter<'_>,
        make: impl FnOnce(&mut Generator<'_, filter::Unfit, Places<'_, filter::Unfit>>) -> Result<T, Unfit>,
    ) -> Result<T, Unfit> {
        let (counters, maps) = (self.all.maps.counters, self.all.maps.maps.len());
        let count = |a: &mut Assembler<filter::Unfit>, fault: script::Fault| {
            let counter = match fault {
                script::Fault::BadRead => Counter::BadReads,
                script::Fault::DivisionByZero(at) => self.fault((Fault::DivisionByZero, at)),
            };
            a.map_value(R1, counters, 8 * counter.word(maps) as u32);
            a.mov(R2, 1);
            a.atomic(Atomic::Add, Size::D, R1, 0, R2);
        };
        let room = self.room;
        let (stack, leaves) = (self.stack, &self.places);
        let zero = self.blind.then_some(ZERO);
        let source = Places { leaves, vars: (stack, room.vars), scratch: (stack, room.scratch), count: &count, zero };
        let mut g = Generator { a: e, source: &source, temps: (stack, room.temps.0, room.temps.1), depth: 0 };
        make(&mut g)
    }

    /// The counter of what goes wrong at a place.
    fn fault(&self, fault: (Fault, Span)) -> Counter {
        Counter::Fault(self.all.faults.iter().position(|known| *known == fault).unwrap_or(0))
    }

    fn statements(&self, e: &mut Emitter<'c>, list: &'c [Stmt], ways: Ways) -> Result<(), Unfit> {
        list.iter().try_for_each(|s| self.statement(e, s, ways))
    }

    fn statement(&self, e: &mut Emitter<'c>, s: &'c Stmt, ways: Ways) -> Result<(), Unfit> {
        match s {
            Stmt::Collect(map, key, aggregate, number, None) => {
                if let Some(number) = number {
                    self.number(e, number)?;
                }
                // What the map has become over all clauses, such as signed, is what counts.
                let of_map = self.all.script.maps.get(*map).map(|m| &m.value);
                let aggregate = if let Some(Type::Aggregate(a)) = of_map { *a } else { *aggregate };
                let done = e.new_label();
                self.find(e, *map, key, done)?;
                if number.is_some() {
                    e.load(Size::D, R1, self.stack, self.room.value);
                }
                add(e, aggregate, done);
                e.bind(done);
                Ok(())
            }
            Stmt::Eval(Expr { kind: Kind::Step { place: ir::Place::Map(map, key), by, .. }, .. }) => {
                self.sum(e, *map, key, &Int::Const(*by), false)
            }
            Stmt::Change(ir::Place::Map(map, key), op, number) => self.sum(e, *map, key, number, *op == Op::Sub),
            Stmt::Change(ir::Place::Var(var), op, amount) => {
                let c = &self.all.script.clauses[self.clause.number];
                let (vars, steps) = (&c.vars, !c.stepped.is_empty());
                let cast = vars.get(*var).and_then(Type::as_int).ok_or(Unfit::Value)?;
                let word = |i| Box::new(Int::Value(Box::new(Expr { kind: Kind::Var(i), ty: Type::INT })));
                if !steps {
                    let changed = Int::Binary(*op, word(*var), Box::new(amount.clone())).cast(cast);
                    return self.set(e, *var, &changed, ways);
                }
                // What the amount changes comes first.
                self.number(e, amount)?;
                self.set(e, *var, &Int::Binary(*op, word(*var), word(vars.len())).cast(cast), ways)
            }
            Stmt::Set(ir::Place::Var(var), number) => self.set(e, *var, &number.clone().int(), ways),
            Stmt::Eval(number) => {
                let number = number.clone().int();
                self.generate(e, |g| g.int(&number))
            }
            Stmt::Block(list) => self.statements(e, list, ways),
            Stmt::While(..) | Stmt::Repeat(..) | Stmt::Range(..) => self.rounds(e, s, ways),
            Stmt::Break => ways.leave(e, ways.behind),
            Stmt::Continue => ways.leave(e, ways.next),
            Stmt::Return => ways.leave(e, Some(ways.done)),
            Stmt::If(arms, rest) => {
                let done = e.new_label();
                for (cond, list) in arms {
                    let next = e.new_label();
                    self.generate(e, |g| g.branch(cond, false, next))?;
                    self.statements(e, list, ways)?;
                    e.jump(done);
                    e.bind(next);
                }
                self.statements(e, rest, ways)?;
                e.bind(done);
                Ok(())
            }
            _ => Err(Unfit::Value),
        }
    }

    /// The word of the value = a number.
    fn number(&self, e: &mut Emitter<'_>, number: &Int) -> Result<(), Unfit> {
        self.generate(e, |g| g.int(number))?;
        self.keep(e, self.room.value);
        Ok(())
    }

    /// A variable = a number.
    fn set(&self, e: &mut Emitter<'_>, var: usize, number: &Int, ways: Ways) -> Result<(), Unfit> {
        self.generate(e, |g| g.int(number))?;
        if ways.is_in_loop() && !self.blind {
            self.forget(e, R0);
        }
        self.keep(e, self.room.vars + 8 * var as i16);
        Ok(())
    }

    /// Adds a number to what a map has at a key, or takes it away.
    fn sum(&self, e: &mut Emitter<'_>, map: usize, key: &[Expr], number: &Int, less: bool) -> Result<(), Unfit> {
        self.number(e, number)?;
        let done = e.new_label();
        self.find(e, map, key, done)?;
        e.load(Size::D, R1, self.stack, self.room.value);
        if less {
            e.neg(R1);
        }
        add(e, Aggregate::Sum { signed: true }, done);
        e.bind(done);
        Ok(())
    }

    /// r0 = the words of this processor that a map has at a key; `none` where the map is full, which is counted.
    fn find(&self, e: &mut Emitter<'_>, map: usize, key: &[Expr], none: Label) -> Result<(), Unfit> {
        let Some(m) = self.all.script.maps.get(map) else { return Err(Unfit::Value) };
        let (Some((parts, _)), Some(Some(outer))) = (layout(m), self.all.maps.maps.get(map)) else {
            return Err(Unfit::Value);
        };
        let mut at = self.room.key;
        for (part, expr) in parts.iter().zip(key) {
            match (part, &expr.kind) {
                (KeyPart::Comm, Kind::Leaf(i)) if self.clause.leaves.get(*i) == Some(&From::Comm) => {
                    self.address(e, R1, at);
                    e.mov(R2, COMM as i32);
                    e.call(Helper::GetCurrentComm);
                }
                (KeyPart::Comm, _) => return Err(Unfit::Value),
                (KeyPart::Int, _) => {
                    let number = expr.clone().int();
                    self.generate(e, |g| g.int(&number))?;
                    e.store(Size::D, self.stack, at, R0);
                }
            }
            at += part.size() as i16;
        }
        e.note(format!("@{}", m.name));
        e.store(Size::W, self.stack, slot::KEY, 0);
        e.map_fd(R1, *outer);
        self.address(e, R2, slot::KEY);
        e.call(Helper::MapLookup);
        e.jump_if(Cond::Eq, R0, 0, none);
        let key = if parts.is_empty() { slot::KEY } else { self.room.key };
        if parts.is_empty() {
            e.mov(R1, R0);
            self.address(e, R2, key);
            e.call(Helper::MapLookup);
            e.jump_if(Cond::Eq, R0, 0, none);
            return Ok(());
        }
        e.mov(reg::BUFFER, R0);
        let found = e.new_label();
        self.look(e, key);
        e.jump_if(Cond::Ne, R0, 0, found);
        // The kernel keeps memory for a few new keys, and makes more as soon as interrupts are served.
        let made = e.new_label();
        for _ in 0..TRIES {
            e.mov(R1, reg::BUFFER);
            self.address(e, R2, key);
            e.map_value(R3, self.all.maps.zeros, 0);
            e.mov(R4, NO_EXIST);
            e.call(Helper::MapUpdate);
            e.jump_if(Cond::Ne, R0, -ENOMEM, made);
        }
        e.bind(made);
        self.look(e, key);
        e.jump_if(Cond::Ne, R0, 0, found);
        e.map_value(R1, self.all.maps.counters, 8 * Counter::Refused(map).word(self.all.maps.maps.len()) as u32);
        e.mov(R2, 1);
        e.atomic(Atomic::Add, Size::D, R1, 0, R2);
        e.jump(none);
        e.bind(found);
        Ok(())
    }

    /// `r` = the address of what is on the program's stack.
    fn address(&self, e: &mut Emitter<'_>, r: Reg, at: i16) {
        e.mov(r, self.stack);
        e.alu(Alu::Add, r, i32::from(at));
    }

    fn look(&self, e: &mut Emitter<'_>, key: i16) {
        e.mov(R1, reg::BUFFER);
        self.address(e, R2, key);
        e.call(Helper::MapLookup);
    }
}
