//! Memory that clauses of events read: what depends on the event alone becomes a value of the event, so that who makes the event can read it.
//!
//! ```text
//! printf("%s", str(((struct file *)arg0)->name))    leaf: memory 0 = str(*(arg0 + 24))    printf("%s", leaf)
//! ```
//!
//! Invariant: an expression that is moved depends on leaves, constants and memory, and changes nothing.

use super::ir::{Clause, Cond, Expr, Hoisted, Int, Kind, Leaf, Place, Program, Stmt, What};
use super::types::{Space, Type};
use crate::ir::Leaf as Of;
use std::collections::BTreeSet;

/// The most that a clause may read so.
const MOST: usize = 16;
/// The most bytes of a buffer whose length the event decides.
const BUFFER: u32 = 256;

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
        if clause.points.iter().any(|p| p.is_special() || p.is_interval()) {
            continue;
        }
        let leaves = std::mem::take(&mut clause.leaves);
        let known = Known::of(clause);
        if clause.points.iter().all(|p| OF_PROGRAMS.contains(&p.provider.name)) {
            keep(&mut clause.body, &texts, &leaves, &known);
        }
        let mut moves = Moves { clause: nth, leaves, all: &mut all, here: 0, known, used: BTreeSet::new() };
        if let Some(predicate) = &mut clause.predicate {
            moves.cond(predicate);
            // What is read for the predicate is read first.
            if moves.here > 0 {
                clause.predicate_leaves = moves.leaves.len();
            }
        }
        moves.stmts(&mut clause.body);
        clause.idle = (0..moves.leaves.len()).filter(|i| !moves.used.contains(i)).collect();
        clause.leaves = moves.leaves;
    }
    program.hoisted = all;
}

/// Providers at whose events a program reads memory.
const OF_PROGRAMS: &[&str] =
    &["kprobe", "kretprobe", "fentry", "fexit", "rawtracepoint", "uprobe", "uretprobe", "usdt"];

/// Of addresses of strings that a map holds, the string is read when they are put into it: later nobody can.
fn keep(body: &mut [Stmt], texts: &[Option<(Space, u32)>], leaves: &[Leaf], known: &Known) {
    for s in body {
        match s {
            Stmt::Set(Place::Map(map, _), e) => {
                let Some((space, length)) = texts.get(*map).copied().flatten() else { continue };
                // These have their strings with them.
                let has_text = matches!(e.kind, Kind::Leaf(i) if leaves.get(i).is_some_and(|l| is_text(&l.ty)));
                if has_text || e.ty.as_int().is_none() {
                    continue;
                }
                let is_event_s = |address: &Int| !matches!(address, Int::Const(_));
                if let Some(address) = known.number(&e.clone().int()).filter(is_event_s) {
                    let kind = Kind::TextAt(Box::new(address), space, Box::new(Int::Const(length.into())));
                    let text = Expr { kind, ty: Type::Str(length.saturating_sub(1)) };
                    *e = Expr { kind: Kind::Kept(Box::new(e.clone()), Box::new(text)), ty: e.ty.clone() };
                }
            }
            Stmt::If(arms, rest) => {
                arms.iter_mut().for_each(|(_, list)| keep(list, texts, leaves, known));
                keep(rest, texts, leaves, known);
            }
            Stmt::While(_, list, _)
            | Stmt::Repeat(_, list)
            | Stmt::Function(list)
            | Stmt::Block(list)
            | Stmt::Range(_, _, _, list, _)
            | Stmt::Each(_, _, list) => keep(list, texts, leaves, known),
            _ => {}
        }
    }
}

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

/// Variables that have one value in a run, which the event decides.
struct Known(Vec<Option<Int>>);

impl Known {
    fn of(clause: &Clause) -> Known {
        let vars = clause.vars.len();
        let mut sets: Vec<Vec<Option<&Expr>>> = vec![Vec::new(); vars];
        assigned(&clause.body, &mut sets);
        // `$x++` and find() are parts of expressions.
        for var in &clause.stepped {
            sets.get_mut(*var).into_iter().for_each(|all| all.push(None));
        }
        let mut known = Known(vec![None; vars]);
        // One may depend on another that is set before.
        for _ in 0..vars {
            for (var, sets) in sets.iter().enumerate() {
                if let [Some(e)] = sets[..]
                    && e.ty.as_int().is_some()
                    && known.0[var].is_none()
                {
                    known.0[var] = known.number(&e.clone().int());
                }
            }
        }
        known
    }

    /// A number that depends on the event alone, without variables.
    fn number(&self, i: &Int) -> Option<Int> {
        let both = |a: &Int, b: &Int| Some((Box::new(self.number(a)?), Box::new(self.number(b)?)));
        Some(match i {
            Int::Const(v) => Int::Const(*v),
            Int::Value(v) => match &v.kind {
                Kind::Leaf(_) => i.clone(),
                Kind::Var(var) => self.0.get(*var)?.clone()?,
                Kind::Load(address, space) => {
                    let kind = Kind::Load(Box::new(self.number(address)?), *space);
                    Int::Value(Box::new(Expr { kind, ty: v.ty.clone() }))
                }
                _ => return None,
            },
            Int::Cast(cast, x) => Int::Cast(*cast, Box::new(self.number(x)?)),
            Int::Minus(x) => Int::Minus(Box::new(self.number(x)?)),
            Int::Complement(x) => Int::Complement(Box::new(self.number(x)?)),
            Int::Binary(op, a, b) => {
                let (a, b) = both(a, b)?;
                Int::Binary(*op, a, b)
            }
            Int::Or(a, b) => {
                let (a, b) = both(a, b)?;
                Int::Or(a, b)
            }
            Int::Choice(..) | Int::Truth(_) => return None,
        })
    }

    /// What is in memory, at an address that the event decides, without variables.
    fn memory(&self, e: &Expr) -> Option<Expr> {
        let kind = match &e.kind {
            Kind::Load(address, space) => Kind::Load(Box::new(self.number(address)?), *space),
            Kind::Strings(address, space) => Kind::Strings(Box::new(self.number(address)?), *space),
            // A buffer of so many bytes.
            Kind::Call("buf at", args) => match &args[..] {
                [address, Expr { kind: Kind::Const(..), .. }, Expr { kind: Kind::Const(user, _), .. }] => {
                    let space = if *user != 0 { Space::User } else { Space::Kernel };
                    Kind::Load(Box::new(self.number(&address.clone().int())?), space)
                }
                [address, n, user @ Expr { kind: Kind::Const(..), .. }] => {
                    let number =
                        |e: &Expr| Some(Expr { kind: Kind::Int(self.number(&e.clone().int())?), ty: e.ty.clone() });
                    let kind = Kind::Call("buf at", vec![number(address)?, number(n)?, user.clone()]);
                    let Type::Buffer(most) = e.ty else { return None };
                    return Some(Expr { kind, ty: Type::Buffer(most.min(BUFFER)) });
                }
                _ => return None,
            },
            Kind::TextAt(address, space, length)
                if matches!(e.ty, Type::Str(_)) && matches!(**length, Int::Const(_)) =>
            {
                Kind::TextAt(Box::new(self.number(address)?), *space, length.clone())
            }
            _ => return None,
        };
        Some(Expr { kind, ty: e.ty.clone() })
    }
}

/// What is assigned to each variable: None of what is no simple assignment.
fn assigned<'s>(list: &'s [Stmt], sets: &mut [Vec<Option<&'s Expr>>]) {
    let other = |sets: &mut [Vec<Option<&'s Expr>>], var: usize, e: Option<&'s Expr>| {
        sets.get_mut(var).into_iter().for_each(|all| all.push(e));
    };
    for s in list {
        match s {
            Stmt::Set(Place::Var(var), e) => other(sets, *var, Some(e)),
            Stmt::Change(Place::Var(var), ..) => other(sets, *var, None),
            Stmt::If(arms, rest) => {
                arms.iter().for_each(|(_, list)| assigned(list, sets));
                assigned(rest, sets);
            }
            Stmt::While(_, list, _) | Stmt::Repeat(_, list) | Stmt::Block(list) | Stmt::Function(list) => {
                assigned(list, sets)
            }
            Stmt::Range(var, _, _, list, _) | Stmt::Each(_, var, list) => {
                other(sets, *var, None);
                assigned(list, sets);
            }
            _ => {}
        }
    }
}

struct Moves<'a> {
    clause: usize,
    leaves: Vec<Leaf>,
    all: &'a mut Vec<Hoisted>,
    here: usize,
    known: Known,
    /// The leaves that are read.
    used: BTreeSet<usize>,
}

impl Moves<'_> {
    fn expr(&mut self, e: &mut Expr) {
        let of_program = |e: &Expr| match e.kind {
            Kind::Leaf(i) => self.leaves.get(i).filter(|l| l.what.is_of_programs()).map(|_| e.clone()),
            _ => None,
        };
        if self.here < MOST
            && let Some(read) = self.known.memory(e).or_else(|| of_program(e))
        {
            let (what, ty) = (What::Memory(self.all.len()), read.ty.clone());
            let found = self.all.iter().position(|h| h.clause == self.clause && h.expr == read);
            let what = found.map_or(what, What::Memory);
            let known = self.leaves.iter().position(|l| l.what == what);
            let index = known.unwrap_or(self.leaves.len());
            if known.is_none() {
                let name = name_of(&read, &self.leaves);
                self.all.push(Hoisted { clause: self.clause, expr: read, name });
                self.leaves.push(Leaf { what, ty });
                self.here += 1;
            }
            e.kind = Kind::Leaf(index);
            self.used.insert(index);
            return;
        }
        match &mut e.kind {
            Kind::Map(_, list)
            | Kind::HasKey(_, list)
            | Kind::Delete(_, list)
            | Kind::Find(_, list, _)
            | Kind::Tuple(list) => {
                list.iter_mut().for_each(|e| self.expr(e));
            }
            Kind::Call(_, list) => list.iter_mut().for_each(|e| self.expr(e)),
            Kind::Int(i) => self.int(i),
            Kind::Choice(c, a, b) => {
                self.cond(c);
                self.expr(a);
                self.expr(b);
            }
            Kind::Part(of, _) => self.expr(of),
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
            Kind::Step { place, .. } => self.place(place),
            Kind::Block(list, value) => {
                self.stmts(list);
                self.expr(value);
            }
            Kind::Leaf(i) => _ = self.used.insert(*i),
            Kind::Nothing | Kind::Const(..) | Kind::Text(_) | Kind::Var(_) | Kind::Length(_) => {}
        }
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
            Int::Binary(_, a, b) | Int::Or(a, b) => {
                self.int(a);
                self.int(b);
            }
            Int::Choice(c, a, b) => {
                self.cond(c);
                self.int(a);
                self.int(b);
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
            Cond::All(list) | Cond::Any(list) => list.iter_mut().for_each(|c| self.cond(c)),
        }
    }

    fn stmts(&mut self, list: &mut [Stmt]) {
        for s in list {
            match s {
                Stmt::Eval(e) | Stmt::Print(e) | Stmt::Join(e, _) => self.expr(e),
                Stmt::Set(place, e) => {
                    self.place(place);
                    self.expr(e);
                }
                Stmt::Change(place, _, i) => {
                    self.place(place);
                    self.int(i);
                }
                Stmt::Collect(_, key, _, value, weight) => {
                    key.iter_mut().for_each(|e| self.expr(e));
                    value.iter_mut().chain(weight).for_each(|i| self.int(i));
                }
                Stmt::If(arms, rest) => {
                    for (c, list) in arms {
                        self.cond(c);
                        self.stmts(list);
                    }
                    self.stmts(rest);
                }
                Stmt::While(c, list, _) => {
                    self.cond(c);
                    self.stmts(list);
                }
                Stmt::Range(_, a, b, list, _) => {
                    self.int(a);
                    self.int(b);
                    self.stmts(list);
                }
                Stmt::Repeat(_, list) | Stmt::Each(_, _, list) | Stmt::Block(list) | Stmt::Function(list) => {
                    self.stmts(list)
                }
                Stmt::Write(_, _, list) | Stmt::PrintKey(_, list) => list.iter_mut().for_each(|e| self.expr(e)),
                Stmt::Speculate(_, number) => self.int(number),
                Stmt::PrintMap(_, a, b) => a.iter_mut().chain(b).for_each(|i| self.int(i)),
                Stmt::Exit(code) => code.iter_mut().for_each(|i| self.int(i)),
                Stmt::Break
                | Stmt::Continue
                | Stmt::Return
                | Stmt::Clear(_)
                | Stmt::Zero(_)
                | Stmt::Time(_)
                | Stmt::PrintAll(..) => {}
            }
        }
    }
}
