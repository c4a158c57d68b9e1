//! Memory that clauses of events read: what depends on the event alone becomes a value of the event, so that who makes the event can read it.
//!
//! ```text
//! printf("%s", str(((struct file *)arg0)->name))    leaf: memory 0 = str(*(arg0 + 24))    printf("%s", leaf)
//! ```
//!
//! Statements are walked in their order, with what is known of variables and of maps at that point (`known`). A loop whose rounds are
//! known is written out where that makes all of its memory known: each round follows a pointer one step further.
//!
//! Invariant: an expression that is moved depends on leaves, constants and memory, and changes nothing.

mod known;
mod loops;
mod statements;

use super::ir::{Cond, Expr, Hoisted, Int, Kind, Leaf, Place, Program, Stmt, What};
use super::types::{Space, Type};
use crate::ir::Leaf as Of;
use known::Known;
use statements::{assigned, returns_early};
use std::collections::BTreeSet;

/// The most that a clause may read so.
const MOST: usize = 24;
/// The most bytes of a buffer whose length the event decides.
const BUFFER: u32 = 256;
/// A loop with more rounds is not written out.
const MOST_ROUNDS: usize = 64;
/// This many expressions are looked at while loops of a clause are written out.
const MOST_LOOKED_AT: usize = 20_000;

/// What an expression of memory reads.
#[derive(Clone, Debug, PartialEq)]
pub struct Read {
    /// Where.
    pub address: Int,
    /// Whose memory.
    pub space: Space,
    /// How many bytes, where the event decides it.
    pub length: Option<Int>,
}

impl Read {
    /// What this expression reads; none where it is no memory.
    pub fn of(e: &Expr) -> Option<Read> {
        let (address, space, length) = match &e.kind {
            Kind::Load(address, space) | Kind::TextAt(address, space, _) | Kind::Strings(address, space) => {
                ((**address).clone(), *space, None)
            }
            Kind::Call("buf at", args) => match &args[..] {
                [address, n, Expr { kind: Kind::Const(user, _), .. }] => {
                    let space = if *user != 0 { Space::User } else { Space::Kernel };
                    (address.clone().int(), space, Some(n.clone().int()))
                }
                _ => return None,
            },
            _ => return None,
        };
        Some(Read { address, space, length })
    }

    /// Its numbers.
    fn numbers(&self) -> impl Iterator<Item = &Int> {
        std::iter::once(&self.address).chain(&self.length)
    }
}

impl Hoisted {
    /// The name of the field that says how many bytes are read, where the event decides it.
    pub fn name_of_length(&self) -> String {
        format!("{}_length", self.name)
    }

    /// Whether it reads memory of the kernel.
    pub fn reads_kernel(&self) -> bool {
        let of_kernel = |e: &Expr| Read::of(e).is_some_and(|read| read.space == Space::Kernel);
        let mut any = of_kernel(&self.expr);
        inner(&self.expr, &mut |e| any |= of_kernel(e));
        any
    }
}

/// Moves what clauses of events read of memory into their leaves, where that is possible.
pub fn hoist(program: &mut Program) {
    let mut all = Vec::new();
    let texts: Vec<Option<(Space, u32)>> = program.maps.iter().map(|m| m.text).collect();
    for (nth, clause) in program.clauses.iter_mut().enumerate() {
        if clause.points.iter().any(|p| p.is_own()) {
            continue;
        }
        let is_of_programs = clause.points.iter().all(|p| OF_PROGRAMS.contains(&p.provider.name));
        let mut moves = Moves {
            clause: nth,
            first: all.len(),
            texts: if is_of_programs { &texts } else { &[] },
            stepped: &clause.stepped,
            first_flag: clause.vars.len(),
            flags: 0,
            lookable: MOST_LOOKED_AT,
            writes_out: false,
            now: State { leaves: std::mem::take(&mut clause.leaves), known: Known::of(clause), ..State::default() },
        };
        if let Some(predicate) = &mut clause.predicate {
            moves.cond(predicate);
            // What is read for the predicate is read first.
            if !moves.now.all.is_empty() {
                clause.predicate_leaves = moves.now.leaves.len();
            }
        }
        moves.stmts(&mut clause.body);
        let flags = moves.flags;
        let State { leaves, all: own, used, .. } = moves.now;
        clause.vars.extend(std::iter::repeat_n(Type::INT, flags));
        clause.idle = (0..leaves.len()).filter(|i| !used.contains(i)).collect();
        clause.leaves = leaves;
        all.extend(own);
    }
    program.hoisted = all;
}

/// Providers at whose events a program reads memory.
const OF_PROGRAMS: &[&str] =
    &["kprobe", "kretprobe", "fentry", "fexit", "rawtracepoint", "uprobe", "uretprobe", "usdt"];

/// The address of characters.
fn is_text(ty: &Type) -> bool {
    matches!(ty, Type::Pointer(of, _) if **of == Type::int(1, true))
}

/// Calls `each` with the memory that the numbers of a read depend on.
fn inner(e: &Expr, each: &mut dyn FnMut(&Expr)) {
    for number in Read::of(e).iter().flat_map(Read::numbers) {
        number.leaves(&mut |leaf| {
            if let Of::Value(value) = leaf {
                each(value);
                inner(value, each);
            }
        });
    }
}

/// The name of a field that has this: a hash of what it is (FNV-1a).
fn name_of(e: &Expr, leaves: &[Leaf]) -> String {
    let mut named: Vec<String> = Vec::new();
    leaf_names(e, leaves, &mut named);
    let text = format!("{e:?} {named:?}");
    let hash =
        text.bytes().fold(0xcbf2_9ce4_8422_2325u64, |hash, b| (hash ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3));
    format!("memory_{hash:016x}")
}

/// What the leaves are that an expression names, in its order.
fn leaf_names(e: &Expr, leaves: &[Leaf], out: &mut Vec<String>) {
    let of = |i: &Int| {
        i.leaves(&mut |leaf| {
            if let Of::Value(value) = leaf {
                leaf_names(value, leaves, out);
            }
        });
    };
    match &e.kind {
        Kind::Leaf(i) => out.extend(leaves.get(*i).map(|l| format!("{:?}", l.what))),
        _ => Read::of(e).iter().flat_map(Read::numbers).for_each(of),
    }
}

/// What has been moved, and what is known, at a point of a clause.
#[derive(Clone, Default)]
struct State {
    leaves: Vec<Leaf>,
    all: Vec<Hoisted>,
    known: Known,
    /// The leaves that are read.
    used: BTreeSet<usize>,
    /// How much memory is not moved, because its address is not known.
    left: usize,
    /// How many blocks are values.
    blocks: usize,
}

struct Moves<'a> {
    clause: usize,
    /// The number of the first that is moved.
    first: usize,
    /// Of maps that hold addresses of strings: whose memory, and how many bytes.
    texts: &'a [Option<(Space, u32)>],
    /// The variables that expressions change.
    stepped: &'a [usize],
    first_flag: usize,
    /// The variables that say whether a loop was left.
    flags: usize,
    lookable: usize,
    writes_out: bool,
    now: State,
}

impl Moves<'_> {
    /// Memory at an address that is known: it becomes a leaf.
    fn moved(&mut self, e: &mut Expr) -> bool {
        let of_program = |e: &Expr| match e.kind {
            Kind::Leaf(i) => self.now.leaves.get(i).filter(|l| l.what.is_of_programs()).map(|_| e.clone()),
            _ => None,
        };
        if self.now.all.len() >= MOST {
            return false;
        }
        let Some(read) = self.now.known.memory(e).or_else(|| of_program(e)) else { return false };
        let State { all, leaves, used, known, .. } = &mut self.now;
        let ty = read.ty.clone();
        let found = all.iter().position(|h| h.expr == read);
        let what = What::Memory(self.first + found.unwrap_or(all.len()));
        let there = leaves.iter().position(|l| l.what == what);
        let index = there.unwrap_or(leaves.len());
        if there.is_none() {
            let name = name_of(&read, leaves);
            all.push(Hoisted { clause: self.clause, expr: read, name });
            leaves.push(Leaf { what, ty });
        }
        used.insert(index);
        // What it has changed on the way, it still does.
        let step = known::steps(e).pop();
        e.kind = Kind::Leaf(index);
        if let Some(mut step) = step {
            known.step(&step);
            std::mem::swap(e, &mut step);
            let ty = step.ty.clone();
            *e = Expr { kind: Kind::Block(vec![Stmt::Eval(e.clone())], Box::new(step)), ty };
        }
        true
    }

    fn expr(&mut self, e: &mut Expr) {
        if self.writes_out {
            self.lookable = self.lookable.saturating_sub(1);
        }
        if self.moved(e) {
            return;
        }
        self.now.left += usize::from(Read::of(e).is_some());
        match &mut e.kind {
            Kind::Delete(map, list) => {
                list.iter_mut().for_each(|e| self.expr(e));
                self.now.known.forget(*map);
            }
            Kind::Find(_, list, var) => {
                list.iter_mut().for_each(|e| self.expr(e));
                self.now.known.unknown(*var);
            }
            Kind::Map(_, list) | Kind::HasKey(_, list) | Kind::Tuple(list) => {
                list.iter_mut().for_each(|e| self.expr(e));
            }
            Kind::Call(_, list) => list.iter_mut().for_each(|e| self.expr(e)),
            Kind::Int(i) => self.int(i),
            Kind::Choice(c, a, b) => {
                self.cond(c);
                self.either(|m| m.expr(a));
                self.either(|m| m.expr(b));
            }
            Kind::Part(of, _) | Kind::Told(of, _) => self.expr(of),
            Kind::Load(address, _) | Kind::Strings(address, _) => self.int(address),
            Kind::Kept(address, text) => {
                self.expr(address);
                self.expr(text);
            }
            Kind::Piece(of, offset) => {
                self.expr(of);
                self.int(offset);
            }
            Kind::TextAt(address, _, length) => {
                self.int(address);
                self.int(length);
            }
            Kind::Step { place, .. } => {
                self.place(place);
                self.now.known.step(e);
            }
            Kind::Block(list, value) => {
                self.now.blocks += 1;
                self.stmts(list);
                self.expr(value);
            }
            Kind::Leaf(i) => _ = self.now.used.insert(*i),
            Kind::Nothing | Kind::Const(..) | Kind::Text(_) | Kind::Var(_) | Kind::Length(_) => {}
        }
    }

    /// Something that may happen or not.
    fn either(&mut self, walk: impl FnOnce(&mut Self)) {
        let without = self.now.known.clone();
        walk(self);
        self.now.known.merge(&without);
    }

    fn place(&mut self, place: &mut Place) {
        if let Place::Map(_, key) = place {
            key.iter_mut().for_each(|e| self.expr(e));
        }
    }

    fn int(&mut self, i: &mut Int) {
        match i {
            Int::Const(_) => {}
            Int::Value(v) => self.expr(v),
            Int::Cast(_, x) | Int::Minus(x) | Int::Complement(x) => self.int(x),
            Int::Binary(_, a, b) => {
                self.int(a);
                self.int(b);
            }
            Int::Or(a, b) => {
                self.int(a);
                self.either(|m| m.int(b));
            }
            Int::Choice(c, a, b) => {
                self.cond(c);
                self.either(|m| m.int(a));
                self.either(|m| m.int(b));
            }
            Int::Truth(c) => self.cond(c),
        }
    }

    fn cond(&mut self, c: &mut Cond) {
        match c {
            Cond::Const(_) => {}
            Cond::Compare(_, a, b) => {
                self.int(a);
                self.int(b);
            }
            Cond::Test(equal) => {
                self.expr(&mut equal.0);
                self.expr(&mut equal.1);
            }
            Cond::Not(c) => self.cond(c),
            Cond::All(list) | Cond::Any(list) => {
                // What does not decide is not evaluated.
                for (i, c) in list.iter_mut().enumerate() {
                    if i == 0 { self.cond(c) } else { self.either(|m| m.cond(c)) }
                }
            }
        }
    }

    fn stmts(&mut self, list: &mut [Stmt]) {
        for s in list {
            match s {
                Stmt::Eval(e) | Stmt::Print(e) | Stmt::Join(e, _) => self.expr(e),
                Stmt::Set(place, e) => {
                    self.keep(place, e);
                    let value = self.now.known.value(e);
                    self.expr(e);
                    self.place(place);
                    self.now.known.set(place, value);
                }
                Stmt::Change(place, op, i) => {
                    let value = self.now.known.changed(place, *op, i);
                    self.int(i);
                    self.place(place);
                    self.now.known.set(place, value);
                }
                Stmt::Collect(map, key, _, value, weight) => {
                    value.iter_mut().chain(weight).for_each(|i| self.int(i));
                    key.iter_mut().for_each(|e| self.expr(e));
                    self.now.known.forget(*map);
                }
                Stmt::If(arms, rest) => self.arms(arms, rest),
                Stmt::While(..) | Stmt::Repeat(..) | Stmt::Range(..) | Stmt::Each(..) => self.rounds(s),
                Stmt::Block(list) => self.stmts(list),
                Stmt::Function(list) => {
                    self.stmts(list);
                    if returns_early(list) {
                        // Some of it may not have been done.
                        let mut all = BTreeSet::new();
                        assigned(list, &mut all);
                        self.now.known.vary(&all);
                    }
                }
                Stmt::Write(_, _, list) | Stmt::PrintKey(_, list) => list.iter_mut().for_each(|e| self.expr(e)),
                Stmt::Speculate(_, number) | Stmt::Unwatch(number) => self.int(number),
                Stmt::PrintMap(_, a, b) => a.iter_mut().chain(b).for_each(|i| self.int(i)),
                Stmt::Exit(code) => code.iter_mut().for_each(|i| self.int(i)),
                Stmt::Clear(map) | Stmt::Zero(map) => self.now.known.forget(*map),
                Stmt::Break | Stmt::Continue | Stmt::Return | Stmt::Time(_) | Stmt::PrintAll(..) => {}
            }
        }
    }

    /// One of the arms.
    fn arms(&mut self, arms: &mut [(Cond, Vec<Stmt>)], rest: &mut [Stmt]) {
        let mut ends: Vec<Known> = Vec::new();
        for (c, list) in arms {
            self.cond(c);
            let without = self.now.known.clone();
            self.stmts(list);
            ends.push(std::mem::replace(&mut self.now.known, without));
        }
        self.stmts(rest);
        ends.iter().for_each(|end| self.now.known.merge(end));
    }

    /// Of an address of a string that a map is to hold, the string is read now: later nobody can.
    fn keep(&mut self, place: &Place, e: &mut Expr) {
        let Place::Map(map, _) = place else { return };
        let Some((space, length)) = self.texts.get(*map).copied().flatten() else { return };
        // These have their strings with them.
        let has_text = matches!(e.kind, Kind::Leaf(i) if self.now.leaves.get(i).is_some_and(|l| is_text(&l.ty)));
        if has_text || e.ty.as_int().is_none() {
            return;
        }
        let is_event_s = |address: &Int| !matches!(address, Int::Const(_));
        if let Some(address) = self.now.known.value(e).filter(is_event_s) {
            let kind = Kind::TextAt(Box::new(address), space, Box::new(Int::Const(length.into())));
            let text = Expr { kind, ty: Type::Str(length.saturating_sub(1)) };
            *e = Expr { kind: Kind::Kept(Box::new(e.clone()), Box::new(text)), ty: e.ty.clone() };
        }
    }
}
