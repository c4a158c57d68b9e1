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

use super::ir::{Cond, Expr, Hoisted, Int, Kind, Leaf, Place, Program, Stmt, What};
use super::types::{Space, Type};
use crate::ir::{Cmp, Leaf as Of};
use known::Known;
use std::collections::BTreeSet;

/// The most that a clause may read so.
const MOST: usize = 24;
/// The most bytes of a buffer whose length the event decides.
const BUFFER: u32 = 256;
/// A loop with more rounds is not written out.
const MOST_ROUNDS: usize = 64;
/// So many expressions are looked at while loops of a clause are written out.
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

/// Whether a function may return before the end of its statements.
fn returns_early(list: &[Stmt]) -> bool {
    fn count(list: &[Stmt]) -> usize {
        let of = |s: &Stmt| match s {
            Stmt::Return => 1,
            Stmt::If(arms, rest) => arms.iter().map(|a| count(&a.1)).sum::<usize>() + count(rest),
            Stmt::While(_, list, _)
            | Stmt::Repeat(_, list)
            | Stmt::Block(list)
            | Stmt::Range(_, _, _, list, _)
            | Stmt::Each(_, _, list) => count(list),
            _ => 0,
        };
        list.iter().map(of).sum()
    }
    fn ends(list: &[Stmt]) -> usize {
        match list.last() {
            Some(Stmt::Return) => 1,
            Some(Stmt::Block(list)) => ends(list),
            _ => 0,
        }
    }
    count(list) > ends(list)
}

/// The variables that statements assign to.
fn assigned(list: &[Stmt], to: &mut BTreeSet<usize>) {
    for s in list {
        match s {
            Stmt::Set(Place::Var(var), _) | Stmt::Change(Place::Var(var), ..) => _ = to.insert(*var),
            Stmt::If(arms, rest) => {
                arms.iter().for_each(|(_, list)| assigned(list, to));
                assigned(rest, to);
            }
            Stmt::While(_, list, _) | Stmt::Repeat(_, list) | Stmt::Block(list) | Stmt::Function(list) => {
                assigned(list, to)
            }
            Stmt::Range(var, _, _, list, _) | Stmt::Each(var, _, list) => {
                to.insert(*var);
                assigned(list, to);
            }
            _ => {}
        }
    }
}

/// Whether a loop with this body is left by `break`, and whether one of its rounds is by `continue`.
fn jumps(body: &[Stmt]) -> (bool, bool) {
    let mut all = (false, false);
    let mut add = |(a, b)| all = (all.0 | a, all.1 | b);
    for s in body {
        match s {
            Stmt::Break => add((true, false)),
            Stmt::Continue => add((false, true)),
            Stmt::Block(list) => add(jumps(list)),
            Stmt::If(arms, rest) => arms.iter().map(|a| &a.1).chain([rest]).for_each(|list| add(jumps(list))),
            _ => {}
        }
    }
    all
}

/// `break` of a loop that is written out: it says so, and leaves its round.
fn mark_breaks(body: &mut Vec<Stmt>, flag: usize) {
    let set = || Stmt::Set(Place::Var(flag), Expr { kind: Kind::Const(1, false), ty: Type::INT });
    let mut i = 0;
    while i < body.len() {
        match &mut body[i] {
            Stmt::Break => {
                body.insert(i, set());
                i += 1;
            }
            Stmt::Block(list) => mark_breaks(list, flag),
            Stmt::If(arms, rest) => {
                arms.iter_mut().for_each(|(_, list)| mark_breaks(list, flag));
                mark_breaks(rest, flag);
            }
            _ => {}
        }
        i += 1;
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

    /// A loop, which is written out where that moves all of its memory, and nothing else does.
    fn rounds(&mut self, s: &mut Stmt) {
        let (written, before, outside) = (s.clone(), self.now.clone(), self.writes_out);
        self.any_round(s);
        if self.now.left == before.left || self.lookable == 0 {
            return;
        }
        let left = before.left;
        let as_it_is = std::mem::replace(&mut self.now, before);
        self.writes_out = true;
        let out = self.written_out(written);
        self.writes_out = outside;
        match out {
            Some(out) if self.now.left == left && self.lookable > 0 => *s = out,
            _ => self.now = as_it_is,
        }
    }

    /// A loop, whatever its round.
    fn any_round(&mut self, s: &mut Stmt) {
        let (mut vars, mut one) = (BTreeSet::new(), None);
        let body: &mut Vec<Stmt> = match s {
            Stmt::While(_, body, _) | Stmt::Repeat(_, body) => body,
            Stmt::Each(var, _, body) => {
                one = Some(*var);
                body
            }
            Stmt::Range(var, a, b, body, _) => {
                self.int(a);
                self.int(b);
                one = Some(*var);
                body
            }
            _ => return,
        };
        assigned(body, &mut vars);
        vars.extend(self.stepped);
        vars.retain(|var| self.now.known.is_set(*var));
        vars.extend(one);
        self.now.known.vary(&vars);
        if let Stmt::While(c, ..) = s {
            self.cond(c);
        }
        if let Stmt::While(_, body, _)
        | Stmt::Repeat(_, body)
        | Stmt::Each(_, _, body)
        | Stmt::Range(_, _, _, body, _) = s
        {
            self.stmts(body);
        }
        self.now.known.vary(&vars);
    }

    /// The rounds of a loop, one behind the other. None: nobody knows how many there are, or there are too many.
    fn written_out(&mut self, s: Stmt) -> Option<Stmt> {
        let (body, condition, mut values) = match s {
            Stmt::Repeat(n, body) => (body, None, Some((0..i64::from(n), None))),
            Stmt::Range(var, a, b, body, _) => {
                let (Int::Const(a), Int::Const(b)) = (self.now.known.pure(&a)?, self.now.known.pure(&b)?) else {
                    return None;
                };
                (body, None, Some((a..b, Some(var))))
            }
            Stmt::While(c, body, _) => (body, Some(c), None),
            _ => return None,
        };
        let (breaks, continues) = jumps(&body);
        if continues {
            return None;
        }
        let blocks = self.now.blocks;
        let flag = self.first_flag + self.flags;
        self.flags += usize::from(breaks);
        let number = |v: i64| Expr { kind: Kind::Const(v, false), ty: Type::INT };
        let mut out = Vec::new();
        if breaks {
            out.push(Stmt::Set(Place::Var(flag), number(0)));
        }
        for _ in 0..=MOST_ROUNDS {
            let mut round = Vec::new();
            let mut goes_on = true;
            if let Some(c) = &condition {
                goes_on = self.now.known.decided(c)?;
                let mut c = c.clone();
                self.cond(&mut c);
                round.push(Stmt::Eval(Expr { kind: Kind::Int(c.into()), ty: Type::Bool }));
            }
            if let Some((values, var)) = &mut values {
                let value = values.next();
                goes_on = value.is_some();
                if let (Some(var), Some(v)) = (*var, value) {
                    round.push(Stmt::Set(Place::Var(var), number(v)));
                    self.now.known.set(&Place::Var(var), Some(Int::Const(v)));
                }
            }
            if goes_on {
                let mut body = body.clone();
                self.stmts(&mut body);
                if breaks {
                    mark_breaks(&mut body, flag);
                }
                round.push(Stmt::Repeat(1, body));
            }
            if breaks {
                let flag = Int::Value(Box::new(Expr { kind: Kind::Var(flag), ty: Type::INT }));
                round = vec![Stmt::If(vec![(Cond::Compare(Cmp::Eq, flag, Int::Const(0)), round)], Vec::new())];
            }
            out.extend(round);
            // A block that is a value may leave the loop from within an expression.
            if self.lookable == 0 || self.now.blocks != blocks {
                return None;
            }
            if !goes_on {
                if breaks {
                    let mut vars = BTreeSet::new();
                    assigned(&body, &mut vars);
                    vars.extend(self.stepped);
                    self.now.known.vary(&vars);
                }
                return Some(Stmt::Block(out));
            }
        }
        None
    }
}
