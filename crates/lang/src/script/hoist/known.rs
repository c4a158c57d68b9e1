//! What is known of variables and of maps at a point of a clause: numbers that the event alone decides.

use super::{BUFFER, MOST_ROUNDS};
use crate::ir::{Leaf as Of, Op};
use crate::script::ir::{Clause, Cond, Expr, Int, Kind, Place};
use crate::script::types::{Space, Type};
use std::collections::BTreeSet;

/// This many variables of a clause are followed.
const MOST_VARS: usize = 256;
/// This many values of maps are.
const MOST_VALUES: usize = 16;
/// Of a number that is made of more, nothing is known.
const MOST_NODES: usize = 4 * MOST_ROUNDS;

#[derive(Clone, Debug, PartialEq)]
enum Var {
    /// Nothing was assigned to it.
    Unset,
    Known(Int),
    Unknown,
}

/// What is known.
#[derive(Clone, Default)]
pub struct Known {
    vars: Vec<Var>,
    /// Those that have 64 bits.
    whole: Vec<bool>,
    /// A map, a key of constants, and the value there.
    values: Vec<(usize, Vec<Expr>, Int)>,
}

impl Known {
    /// At the start of a clause.
    pub fn of(clause: &Clause) -> Known {
        let whole = |ty: &Type| ty.as_int().is_some_and(|c| c.size == 8);
        let whole: Vec<bool> = clause.vars.iter().take(MOST_VARS).map(whole).collect();
        Known { vars: vec![Var::Unset; whole.len()], whole, values: Vec::new() }
    }

    /// Whether something was assigned to a variable.
    pub fn is_set(&self, var: usize) -> bool {
        self.vars.get(var).is_none_or(|v| *v != Var::Unset)
    }

    /// Nothing is known of a variable.
    pub fn unknown(&mut self, var: usize) {
        self.vars.get_mut(var).into_iter().for_each(|v| *v = Var::Unknown);
    }

    /// Nothing is known of these variables, nor of any map.
    pub fn vary(&mut self, vars: &BTreeSet<usize>) {
        vars.iter().for_each(|var| self.unknown(*var));
        self.values.clear();
    }

    /// Nothing is known of a map.
    pub fn forget(&mut self, map: usize) {
        self.values.retain(|(m, ..)| *m != map);
    }

    /// What is known either way.
    pub fn merge(&mut self, other: &Known) {
        for (v, o) in self.vars.iter_mut().zip(&other.vars) {
            match (&*v, o) {
                (_, Var::Unset) => {}
                (Var::Unset, o) => *v = o.clone(),
                (a, b) if a == b => {}
                _ => *v = Var::Unknown,
            }
        }
        self.values.retain(|value| other.values.contains(value));
    }

    /// Something is assigned: a number, if it is known.
    pub fn set(&mut self, place: &Place, value: Option<Int>) {
        let value = value.filter(|v| nodes(v) <= MOST_NODES);
        match place {
            Place::Var(var) => {
                self.vars.get_mut(*var).into_iter().for_each(|v| *v = value.clone().map_or(Var::Unknown, Var::Known));
            }
            Place::Map(map, key) => {
                self.forget(*map);
                let is_constant = |e: &Expr| matches!(e.kind, Kind::Const(..) | Kind::Text(_));
                if let Some(value) = value.filter(|_| key.iter().all(is_constant) && self.values.len() < MOST_VALUES) {
                    self.values.push((*map, key.clone(), value));
                }
            }
        }
    }

    /// A variable, or a map, is counted up or down.
    pub fn step(&mut self, e: &Expr) {
        match &e.kind {
            Kind::Step { place: place @ Place::Var(var), by, .. } => {
                let value = self.var(*var).filter(|_| self.is_whole(*var)).map(|v| sum(v, *by));
                self.set(place, value);
            }
            Kind::Step { place: Place::Map(map, _), .. } => self.forget(*map),
            _ => {}
        }
    }

    /// What `place op= i` makes of a variable.
    pub fn changed(&self, place: &Place, op: Op, i: &Int) -> Option<Int> {
        let Place::Var(var) = place else { return None };
        let old = self.var(*var).filter(|_| self.is_whole(*var) && op.zero().is_none())?;
        Some(match (op, self.number(i)?) {
            (Op::Add, Int::Const(by)) => sum(old, by),
            (_, i) => Int::binary(op, old, i),
        })
    }

    /// The number that an expression is.
    pub fn value(&self, e: &Expr) -> Option<Int> {
        e.ty.as_int().and_then(|_| self.number(&e.clone().int()))
    }

    fn var(&self, var: usize) -> Option<Int> {
        match self.vars.get(var)? {
            Var::Known(v) => Some(v.clone()),
            Var::Unset | Var::Unknown => None,
        }
    }

    fn is_whole(&self, var: usize) -> bool {
        self.whole.get(var).copied().unwrap_or(false)
    }

    /// A number that changes nothing on the way.
    pub fn pure(&self, i: &Int) -> Option<Int> {
        let mut changes = false;
        i.leaves(&mut |leaf| changes |= matches!(leaf, Of::Value(value) if !steps(value).is_empty()));
        if changes { None } else { self.number(i) }
    }

    /// Whether a condition holds that only depends on what is known.
    pub fn decided(&self, c: &Cond) -> Option<bool> {
        let mut found = Vec::new();
        c.leaves(&mut |leaf| {
            if let Of::Value(value) = leaf {
                found.extend(steps(value));
            }
        });
        if found.len() > 1 {
            return None;
        }
        self.holds(c)
    }

    fn holds(&self, c: &Cond) -> Option<bool> {
        Some(match c {
            Cond::Const(c) => *c,
            Cond::Compare(cmp, a, b) => match (self.number(a)?, self.number(b)?) {
                (Int::Const(a), Int::Const(b)) => cmp.holds(a, b),
                _ => return None,
            },
            Cond::Not(c) => !self.holds(c)?,
            Cond::All(_) | Cond::Any(_) | Cond::Test(_) => return None,
        })
    }

    /// A number that depends on the event alone, without variables. What the number changes on the way is not changed.
    pub fn number(&self, i: &Int) -> Option<Int> {
        let both = |a: &Int, b: &Int| Some((self.number(a)?, self.number(b)?));
        Some(match i {
            Int::Const(v) => Int::Const(*v),
            Int::Value(v) => match &v.kind {
                Kind::Leaf(_) => i.clone(),
                Kind::Var(var) => self.var(*var)?,
                Kind::Told(of, _) => self.number(&Expr::clone(of).int())?,
                Kind::Map(map, key) => self.values.iter().find(|(m, k, _)| m == map && k == key)?.2.clone(),
                Kind::Step { place: Place::Var(var), by, after } => {
                    let old = self.var(*var).filter(|_| self.is_whole(*var))?;
                    if *after { old } else { sum(old, *by) }
                }
                Kind::Load(address, space) => {
                    let kind = Kind::Load(Box::new(self.number(address)?), *space);
                    Int::Value(Box::new(Expr { kind, ty: v.ty.clone() }))
                }
                _ => return None,
            },
            Int::Cast(cast, x) => self.number(x)?.cast(*cast),
            Int::Minus(x) => self.number(x)?.minus(),
            Int::Complement(x) => self.number(x)?.complement(),
            Int::Binary(op, a, b) => match (op, both(a, b)?) {
                (Op::Add, (a, Int::Const(by))) => sum(a, by),
                (op, (a, b)) => Int::binary(*op, a, b),
            },
            Int::Or(a, b) => {
                let (a, b) = both(a, b)?;
                Int::Or(Box::new(a), Box::new(b))
            }
            Int::Choice(..) | Int::Truth(_) => return None,
        })
    }

    /// What is in memory, at an address that the event decides, without variables.
    pub fn memory(&self, e: &Expr) -> Option<Expr> {
        super::Read::of(e)?;
        if steps(e).len() > 1 {
            return None;
        }
        let kind = match &e.kind {
            Kind::Load(address, space) => Kind::Load(Box::new(self.number(address)?), *space),
            Kind::Strings(address, space) => Kind::Strings(Box::new(self.number(address)?), *space),
            // A buffer of this many bytes.
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

/// A number and a constant.
fn sum(i: Int, by: i64) -> Int {
    match i {
        Int::Const(v) => Int::Const(v.wrapping_add(by)),
        Int::Binary(Op::Add, a, b) if matches!(*b, Int::Const(_)) => match *b {
            Int::Const(v) if v.wrapping_add(by) == 0 => *a,
            Int::Const(v) => Int::Binary(Op::Add, a, Box::new(Int::Const(v.wrapping_add(by)))),
            b => Int::Binary(Op::Add, a, Box::new(b)),
        },
        i if by == 0 => i,
        i => Int::Binary(Op::Add, Box::new(i), Box::new(Int::Const(by))),
    }
}

/// Of how many parts a number is made.
fn nodes(i: &Int) -> usize {
    1 + match i {
        Int::Const(_) => 0,
        Int::Value(v) => super::Read::of(v).map_or(0, |read| nodes(&read.address)),
        Int::Cast(_, x) | Int::Minus(x) | Int::Complement(x) => nodes(x),
        Int::Binary(_, a, b) | Int::Or(a, b) | Int::Choice(_, a, b) => nodes(a) + nodes(b),
        Int::Truth(_) => 0,
    }
}

/// What the numbers of an expression count up or down.
pub fn steps(e: &Expr) -> Vec<Expr> {
    let mut all = Vec::new();
    let mut of = |i: &Int| {
        i.leaves(&mut |leaf| {
            if let Of::Value(value) = leaf {
                all.extend(steps(value));
            }
        });
    };
    match &e.kind {
        Kind::Step { .. } => return vec![e.clone()],
        Kind::Told(of, _) => return steps(of),
        Kind::Int(i) => of(i),
        _ => super::Read::of(e).iter().flat_map(super::Read::numbers).for_each(of),
    }
    all
}
