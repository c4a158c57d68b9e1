//! Which clauses of scripts a program can have: those that collect in maps of the kernel, and read only what is there.

use super::clause::{Clause, From};
use super::collect::{KeyPart, Room, layout};
use super::values::beside;
use crate::expr;
use lang::ast::Cast;
use lang::ir::{Leaf, Op};
use lang::script::hoist::Read;
use lang::script::ir::{self, Expr, Int, Kind, Stmt};
use lang::script::types::{Space, Type};

/// Whether a clause can run in the kernel: it collects in maps that may be the kernel's, and reads only what is there. `all_memory`: also
/// memory of the kernel.
pub fn is_possible(script: &lang::script::Program, clause: &Clause, all_memory: bool) -> bool {
    let Some(c) = script.clauses.get(clause.number) else { return false };
    let Some(room) = Room::of(script, c, clause, 0) else { return false };
    let check = Check { script, clause, vars: &c.vars, all_memory, temps: room.temps.1 };
    !c.body.is_empty()
        && c.vars.iter().all(|ty| ty.as_int().is_some())
        && c.predicate.as_ref().is_none_or(|p| check.condition(p))
        && check.statements(&c.body)
}

/// What the values of a clause may be.
pub(super) struct Check<'c> {
    pub(super) script: &'c lang::script::Program,
    pub(super) clause: &'c Clause,
    pub(super) vars: &'c [Type],
    /// Memory of the kernel may be read.
    pub(super) all_memory: bool,
    /// Words for intermediate numbers.
    pub(super) temps: usize,
}

/// The most bytes of an array, a structure or a buffer that a program reads.
pub const MOST_MEMORY: u64 = 256;

/// How many bytes a program reads of what is neither a number nor a string.
pub fn bytes_of(script: &lang::script::Program, ty: &Type) -> Option<u16> {
    let size = script.declarations.size(ty)?.0;
    (1..=MOST_MEMORY).contains(&size).then_some(size as u16)
}

/// Whether a program can read a value of memory, of a clause with these leaves.
pub fn is_readable(script: &lang::script::Program, clause: &Clause, memory: usize, all_memory: bool) -> bool {
    let (Some(hoisted), Some(c)) = (script.hoisted.get(memory), script.clauses.get(clause.number)) else {
        return false;
    };
    let Some((.., temps)) = beside(clause.leaves.len()) else { return false };
    let check = Check { script, clause, vars: &c.vars, all_memory, temps };
    let of = |space: &Space| all_memory || *space == Space::User;
    let ty = &hoisted.expr.ty;
    let is_strings = matches!(hoisted.expr.kind, Kind::Strings(..));
    let fits = is_strings || ty.as_int().is_some() || ty.is_text() || bytes_of(script, ty).is_some();
    hoisted.clause == clause.number
        && fits
        && match &hoisted.expr.kind {
            Kind::Leaf(_) => check.number(&hoisted.expr),
            _ => Read::of(&hoisted.expr).is_some_and(|read| {
                of(&read.space) && check.int(&read.address) && read.length.is_none_or(|n| check.int(&n))
            }),
        }
}

impl Check<'_> {
    fn statements(&self, list: &[Stmt]) -> bool {
        list.iter().all(|s| match s {
            Stmt::Collect(map, key, _, value, None) => {
                self.map(*map, key) && value.as_ref().is_none_or(|v| self.int(v))
            }
            Stmt::Eval(Expr { kind: Kind::Step { place: ir::Place::Map(map, key), .. }, .. }) => {
                self.is_sum(*map) && self.map(*map, key)
            }
            Stmt::Change(ir::Place::Map(map, key), Op::Add | Op::Sub, value) => {
                self.is_sum(*map) && self.map(*map, key) && self.int(value)
            }
            Stmt::Change(ir::Place::Var(var), op, value) => {
                let var = Int::Value(Box::new(Expr { kind: Kind::Var(*var), ty: Type::INT }));
                self.int(&Int::Binary(*op, Box::new(var), Box::new(value.clone())))
            }
            Stmt::Set(ir::Place::Var(var), e) => {
                self.vars.get(*var).is_some_and(|ty| ty.as_int().is_some()) && self.number(e)
            }
            Stmt::Eval(e @ Expr { kind: Kind::Step { place: ir::Place::Var(_), .. }, .. }) => self.number(e),
            Stmt::If(arms, rest) => {
                arms.iter().all(|(c, list)| self.condition(c) && self.statements(list)) && self.statements(rest)
            }
            Stmt::Block(list) | Stmt::Repeat(_, list) => self.statements(list),
            Stmt::While(c, list, _) => self.condition(c) && self.statements(list),
            Stmt::Range(_, from, to, list, _) => self.int(from) && self.int(to) && self.statements(list),
            Stmt::Break | Stmt::Continue | Stmt::Return => true,
            _ => false,
        })
    }

    fn is_sum(&self, map: usize) -> bool {
        self.script.maps.get(map).is_some_and(|m| matches!(m.value, Type::Int(Cast { size: 8, .. })))
    }

    fn map(&self, map: usize, key: &[Expr]) -> bool {
        let Some((parts, _)) = self.script.maps.get(map).and_then(layout) else { return false };
        parts.len() == key.len()
            && parts.iter().zip(key).all(|(part, e)| match (part, &e.kind) {
                (KeyPart::Comm, Kind::Leaf(i)) => self.clause.leaves.get(*i) == Some(&From::Comm),
                (KeyPart::Comm, _) => false,
                (KeyPart::Int, _) => self.number(e),
            })
    }

    fn number(&self, e: &Expr) -> bool {
        e.ty.as_int().is_some() && self.int(&e.clone().int())
    }

    fn int(&self, i: &Int) -> bool {
        let mut fits = expr::words_of(i, &|v| words_of_value(v)) <= self.temps;
        i.leaves(&mut |leaf| fits &= self.leaf(leaf));
        fits
    }

    pub(super) fn condition(&self, c: &ir::Cond) -> bool {
        let mut fits = expr::words(c, &|v| words_of_value(v)) <= self.temps;
        c.leaves(&mut |leaf| fits &= self.leaf(leaf));
        fits
    }

    fn leaf(&self, leaf: Leaf<'_, Box<Expr>, Box<ir::Equal>>) -> bool {
        let Leaf::Value(value) = leaf else { return false };
        let is_number = value.ty.as_int().is_some();
        match &value.kind {
            Kind::Leaf(i) => match self.clause.leaves.get(*i) {
                None | Some(From::Comm | From::Nothing) => false,
                Some(From::Memory(n)) => {
                    is_number
                        && is_readable(self.script, self.clause, *n, self.all_memory)
                        && self.script.hoisted.get(*n).is_some_and(|h| words_of_value(&h.expr) <= self.temps)
                }
                Some(_) => is_number,
            },
            Kind::Var(_) => is_number,
            Kind::Step { place: ir::Place::Var(_), .. } => is_number,
            Kind::Load(address, space) => is_number && (self.all_memory || *space == Space::User) && self.int(address),
            _ => false,
        }
    }
}

/// How many words the code of a value takes.
fn words_of_value(value: &Expr) -> usize {
    match &value.kind {
        Kind::Load(address, _) => expr::words_of(address, &|v| words_of_value(v)),
        _ => 0,
    }
}
