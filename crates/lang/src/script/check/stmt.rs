//! Statements.

use super::super::ast::{self, Kind as Written, Stmt as Line, StmtKind};
use super::super::ir::{Cond, Expr, Int, Kind, Op, Place, Stmt};
use super::super::table::{self, Class};
use super::super::types::{Slot, Type};
use super::{Checker, bounded};
use crate::ast::Binary;
use crate::diag::{Code, Diagnostic, Span};
use crate::ir::Zero;
use crate::parse::OF_THREADS;
use crate::tokens::Result;

/// The most rounds of an `unroll`.
const MAX_UNROLL: i64 = 100;

impl Checker<'_> {
    pub(super) fn stmts(&mut self, list: &[Line]) -> Vec<Stmt> {
        let mut out = Vec::new();
        for line in list {
            let stmt = self.stmt(line);
            out.extend(self.keep(stmt));
        }
        out
    }

    fn inner(&mut self, list: &[Line]) -> Vec<Stmt> {
        self.block(|c| c.stmts(list))
    }

    fn loop_body(&mut self, list: &[Line]) -> Vec<Stmt> {
        self.loops += 1;
        let out = self.inner(list);
        self.loops -= 1;
        out
    }

    fn stmt(&mut self, line: &Line) -> Result<Stmt> {
        let span = line.span;
        Ok(match &line.kind {
            StmtKind::Expr(e) => self.effect(e)?,
            StmtKind::Assign(target, op, value) => self.assign(target, *op, value, span)?,
            StmtKind::Let(name, ty, value) => self.let_(name, ty.as_ref(), value.as_ref(), span)?,
            StmtKind::If(arms, otherwise) => {
                // Mistakes in one arm do not hide those in others.
                let arms: Vec<_> = arms
                    .iter()
                    .map(|(c, body)| {
                        let truth = self.truth_of(c);
                        (self.keep(truth), self.inner(body))
                    })
                    .collect();
                let otherwise = self.inner(otherwise);
                Stmt::If(arms.into_iter().filter_map(|(c, body)| Some((c?, body))).collect(), otherwise)
            }
            StmtKind::While(c, body) => {
                let truth = self.truth_of(c);
                let truth = self.keep(truth);
                let body = self.loop_body(body);
                match truth {
                    Some(truth) => Stmt::While(truth, body, span),
                    None => Stmt::Block(Vec::new()),
                }
            }
            StmtKind::Unroll(n, body) => {
                let rounds = match self.int_of(n)?.kind {
                    Kind::Const(v @ 1..=MAX_UNROLL, _) => v as u32,
                    _ => {
                        let e = Diagnostic::new(Code::Type, n.span, format!("not a number from 1 to {MAX_UNROLL}"));
                        return Err(e.hint("a loop has any number of rounds: for $i : 0..n { … }"));
                    }
                };
                Stmt::Repeat(rounds, self.loop_body(body))
            }
            StmtKind::ForRange(var, from, to, body) => {
                let bounds = self.int_of(from).and_then(|a| Ok((a.int(), self.int_of(to)?.int())));
                let bounds = self.keep(bounds);
                self.block(|c| {
                    let mut slot = Slot::default();
                    let _ = slot.add(&Type::INT, None);
                    let index = c.declare(var, slot, span);
                    c.now.vars[c.clause][index].assigned = true;
                    let body = c.loop_body(body);
                    match bounds {
                        Some((a, b)) => Stmt::Range(index, a, b, body, span),
                        None => Stmt::Block(Vec::new()),
                    }
                })
            }
            StmtKind::ForMap(var, map, at, body) => self.each(var, map, *at, body)?,
            StmtKind::Block(body) => Stmt::Block(self.inner(body)),
            StmtKind::Function(body) => {
                let loops = std::mem::take(&mut self.loops);
                let body = self.inner(body);
                self.loops = loops;
                Stmt::Function(body)
            }
            StmtKind::Break | StmtKind::Continue if self.loops == 0 => {
                let word = if line.kind == StmtKind::Break { "break" } else { "continue" };
                let e = Diagnostic::new(Code::Place, span, format!("'{word}' outside of a loop"));
                return Err(e.hint("return ends the clause"));
            }
            StmtKind::Break => Stmt::Break,
            StmtKind::Continue => Stmt::Continue,
            StmtKind::Return(_) => Stmt::Return,
        })
    }

    /// An expression, for what it does.
    fn effect(&mut self, e: &ast::Expr) -> Result<Stmt> {
        match &e.kind {
            Written::Call(name, list) if table::row(name).is_some_and(|r| r.class == Class::Statement) => {
                self.statement_call(name, list, e.span)
            }
            // `c ? f() : g()`, each of which is a statement.
            Written::Choice(c, Some(a), b) => {
                let c = self.truth_of(c)?;
                let (a, b) = (self.effect(a)?, self.effect(b)?);
                Ok(Stmt::If(vec![(c, vec![a])], vec![b]))
            }
            // What a macro has become.
            Written::Block(stmts, value) => Ok(self.block(|c| {
                let mut out = c.stmts(stmts);
                let value = c.effect(value);
                out.extend(c.keep(value));
                Stmt::Block(out)
            })),
            _ => {
                let x = self.expr(e)?;
                let idle = match &x.kind {
                    Kind::Const(..) | Kind::Text(_) | Kind::Leaf(_) | Kind::Var(_) => true,
                    Kind::Int(Int::Truth(c)) => matches!(**c, Cond::Compare(..)),
                    _ => false,
                };
                if idle {
                    let w = Diagnostic::warning(Code::Doubtful, e.span, "this does nothing");
                    self.warn(w.hint("print() shows a value"));
                }
                Ok(Stmt::Eval(x))
            }
        }
    }

    fn let_(&mut self, name: &str, ty: Option<&ast::TypeName>, value: Option<&ast::Expr>, span: Span) -> Result<Stmt> {
        let slot = match ty {
            Some(t) => match self.type_of(t) {
                Ok(ty) => Slot::declared(ty),
                Err(e) => {
                    // It is there nevertheless, so that what follows has no other mistakes.
                    self.declare(name, Slot::default(), span);
                    return Err(e);
                }
            },
            None => Slot::default(),
        };
        let value = value.map(|v| self.value(v));
        let index = self.declare(name, slot, span);
        match value {
            None => Ok(Stmt::Block(Vec::new())),
            Some(v) => {
                let v = v?;
                self.assign_var(name, index, &v, span)?;
                Ok(Stmt::Set(Place::Var(index), v))
            }
        }
    }

    fn assign(&mut self, target: &ast::Expr, op: Option<Binary>, value: &ast::Expr, span: Span) -> Result<Stmt> {
        if let Written::Map(name, _) = &target.kind {
            self.map_info(name, target.span).tried = true;
        }
        match (&target.kind, op) {
            (Written::Map(name, keys), None) => {
                if let Written::Call(f, list) = &value.kind
                    && table::row(f).is_some_and(|r| r.class == Class::Aggregation)
                {
                    return self.collect(name, keys, f, list, target.span, value.span);
                }
                let key = self.key(name, keys, target.span);
                // A thread's variable that is 0 is not kept.
                if name.starts_with(OF_THREADS) && value.kind == Written::Int(0) {
                    return Ok(Stmt::Eval(Expr { kind: Kind::Delete(self.map_index(name), key?), ty: Type::Bool }));
                }
                let v = self.value(value)?;
                self.assign_map(name, &v.ty, self.flexible(&v), target.span)?;
                Ok(Stmt::Set(Place::Map(self.map_index(name), key?), v))
            }
            (Written::Map(name, keys), Some(op)) => {
                let place = Place::Map(self.map_index(name), self.key(name, keys, target.span)?);
                let before = self.map_slot(name);
                self.change(place, before, op, value, span, |c, v| {
                    c.assign_map(name, &v.ty, c.flexible(v), target.span)
                })
            }
            (Written::Var(name), None) => {
                let v = self.value(value);
                let index = self.assigned(name, target.span);
                let v = v?;
                self.assign_var(name, index, &v, target.span)?;
                Ok(Stmt::Set(Place::Var(index), v))
            }
            (Written::Var(name), Some(op)) => {
                let Kind::Var(index) = self.expr(target)?.kind else {
                    return Err(Diagnostic::new(Code::Place, target.span, "not a variable"));
                };
                let before = self.var_slot(index);
                self.change(Place::Var(index), before, op, value, span, |c, v| {
                    c.assign_var(name, index, v, target.span)
                })
            }
            // `_ = value`
            _ => Ok(Stmt::Eval(self.expr(value)?)),
        }
    }

    /// `place op= value`: what it holds afterwards has the type of `place op value`.
    fn change(
        &mut self,
        place: Place,
        before: Slot,
        op: Binary,
        value: &ast::Expr,
        span: Span,
        assign: impl FnOnce(&mut Self, &Expr) -> Result<()>,
    ) -> Result<Stmt> {
        let v = self.int_of(value)?;
        let (kind, ty) = match before.ty() {
            Type::None => (Kind::Const(0, true), Type::int(1, true)),
            ty => (before.flexible().map_or(Kind::Nothing, |v| Kind::Const(v as i64, true)), ty),
        };
        if matches!(ty, Type::Aggregate(_)) {
            let e = Diagnostic::new(Code::Type, span, format!("it holds {}, which only grows by itself", ty.kind()));
            return Err(e.hint("use another map"));
        }
        let old = self.int(Expr { kind, ty }, span)?;
        let new = self.arithmetic(op, old, v.clone(), span)?;
        // The operands are known as types only: nothing is folded here.
        let signed = new.ty.as_int().is_none_or(|c| c.signed);
        let solid = Expr {
            kind: Kind::Nothing,
            ty: if matches!(new.ty, Type::Pointer(..)) { new.ty.clone() } else { Type::int(8, signed) },
        };
        assign(self, &solid)?;
        let Some(op) = Op::of(op, signed, Zero::Counted(span)) else {
            return Err(Diagnostic::new(Code::Syntax, span, "not an operator of an assignment"));
        };
        let amount = match new.kind {
            // An address moves by what it is of.
            Kind::Int(Int::Binary(_, _, scaled)) if matches!(solid.ty, Type::Pointer(..)) => *scaled,
            _ => v.int(),
        };
        Ok(Stmt::Change(place, op, amount))
    }

    fn each(&mut self, var: &str, map: &str, at: Span, body: &[Line]) -> Result<Stmt> {
        let info = self.map_info(map, at);
        if info.key.as_ref().is_some_and(Vec::is_empty) {
            let first = info.key_span;
            let e = Diagnostic::new(Code::Type, at, format!("'@{map}' has no keys to go through"));
            return Err(e.second(first, "it is one value here").hint(format!("use @{map} itself")));
        }
        let key = self.map_key(map);
        let value = match self.map_slot(map).ty() {
            Type::Aggregate(a) if a.value() != Type::None => a.value(),
            Type::Aggregate(a) => {
                let e =
                    Diagnostic::new(Code::Type, at, format!("'@{map}' holds {a}, which are no values to go through"));
                return Err(e.hint(format!("print(@{map}) shows it")));
            }
            t => t,
        };
        let key = match &key[..] {
            [one] => one.clone(),
            parts => Type::Tuple(parts.to_vec()),
        };
        self.block(|c| {
            let mut slot = Slot::default();
            let known = key != Type::Tuple(Vec::new()) && value != Type::None;
            if known {
                let ty = bounded(Type::Tuple(vec![key, value]), at)?;
                let _ = slot.add(&ty, None);
            }
            let index = c.declare(var, slot, at);
            c.now.vars[c.clause][index].assigned = true;
            let body = c.loop_body(body);
            Ok(Stmt::Each(index, c.map_index(map), body))
        })
    }
}
