//! Expressions: names get values, operators the meaning that their operands' types give them.

use super::super::ast::{self, Kind as Written};
use super::super::ir::{Cond, Expr, Int, Kind, What};
use super::super::types::{self, Type};
use super::Checker;
use super::{UNKNOWN, bounded};
use crate::diag::{Code, Diagnostic, Span};
use crate::parse::OF_THREADS;
use crate::tokens::Result;
use std::collections::HashMap;

pub(super) fn make(kind: Kind, ty: Type) -> Expr {
    Expr { kind, ty }
}

/// A number without a sign, as it is in a script.
pub(super) fn number(v: u64) -> Expr {
    make(Kind::Const(v as i64, true), types::literal(v))
}

/// A constant's value.
pub(super) fn constant(v: i64) -> Expr {
    if v >= 0 { number(v as u64) } else { make(Kind::Const(v, false), types::literal(!v as u64)) }
}

pub(super) fn truth_value(c: Cond) -> Expr {
    let kind = if let Cond::Const(b) = c { Kind::Const(b.into(), false) } else { Kind::Int(c.into()) };
    make(kind, Type::Bool)
}

/// A number that is made of others.
pub(super) fn computed(i: Int, ty: Type) -> Expr {
    make(Kind::Int(i), ty)
}

/// A value that a map, or a variable, is not known to have yet.
pub(super) fn unknown(span: Span) -> Diagnostic {
    Diagnostic::new(Code::Type, span, UNKNOWN).hint("assign a value to it, or give it its type with a cast: (uint64)…")
}

impl Checker<'_> {
    /// An expression that has a value.
    pub(super) fn value(&mut self, e: &ast::Expr) -> Result<Expr> {
        let x = self.expr(e)?;
        match (&x.ty, &x.kind) {
            (Type::None, Kind::Nothing | Kind::Block(..)) => {
                Err(Diagnostic::new(Code::Place, e.span, "this has no value")
                    .hint("it is a statement: put it on a line of its own"))
            }
            (Type::None, _) => Err(unknown(e.span)),
            _ => Ok(x),
        }
    }

    pub(super) fn expr(&mut self, e: &ast::Expr) -> Result<Expr> {
        let x = self.untold(e)?;
        Ok(self.told(x, e.span))
    }

    /// An expression of which it is said where it fails, if the command line wants that.
    pub(super) fn told(&self, x: Expr, span: Span) -> Expr {
        // Of structures it is their members that are read.
        let is_whole = x.ty.as_int().is_some() || x.ty.is_text();
        let from = match &x.kind {
            Kind::Delete(..) => 1,
            Kind::Map(..) | Kind::TextAt(..) | Kind::Load(..) if is_whole => 2,
            Kind::Leaf(i) if self.leaves.get(*i).is_some_and(|leaf| leaf.what.is_memory()) => 2,
            _ => return x,
        };
        if self.params.failures < from {
            return x;
        }
        let ty = x.ty.clone();
        make(Kind::Told(Box::new(x), span), ty)
    }

    fn untold(&mut self, e: &ast::Expr) -> Result<Expr> {
        let span = e.span;
        match &e.kind {
            Written::Int(v) => Ok(number(*v)),
            Written::Str(s) => Ok(make(Kind::Text(s.clone()), Type::Str(s.len() as u32))),
            Written::Bool(b) => Ok(truth_value(Cond::Const(*b))),
            Written::Param(n) => Ok(self.parameter(*n, span)),
            Written::ParamCount => Ok(number(self.params.positional.len() as u64)),
            Written::Name(n) => self.name(n, span),
            Written::Var(n) => self.var(n, span),
            Written::Map(n, keys) => self.map(n, keys, span),
            Written::Call(n, list) => self.call(n, list, span),
            Written::Unary(op, x) => self.unary(*op, x, span),
            Written::Step { target, up, after } => self.step(target, *up, *after),
            Written::Cast(ty, x) => self.cast(ty, x, span),
            Written::Binary(op, a, b) => self.binary(*op, a, b, span),
            Written::All(list) => Ok(truth_value(Cond::All(self.truths(list)?))),
            Written::Any(list) => Ok(truth_value(Cond::Any(self.truths(list)?))),
            Written::Choice(c, a, b) => self.choice(c, a.as_deref(), b, span),
            Written::Arg(name) => self.arg(name, span),
            Written::Field(of, name, _) => self.field(of, name, span),
            Written::Part(of, n) => self.part(of, *n, span),
            Written::Index(of, i) => self.index(of, i, span),
            Written::Tuple(list) => {
                let list = list.iter().map(|e| self.value(e)).collect::<Result<Vec<_>>>()?;
                let ty =
                    if list.is_empty() { Type::None } else { Type::Tuple(list.iter().map(|e| e.ty.clone()).collect()) };
                Ok(make(if list.is_empty() { Kind::Nothing } else { Kind::Tuple(list) }, bounded(ty, span)?))
            }
            Written::Record(names, list) => {
                let list = list.iter().map(|e| self.value(e)).collect::<Result<Vec<_>>>()?;
                let ty = Type::Record(names.clone(), list.iter().map(|e| e.ty.clone()).collect());
                Ok(make(Kind::Tuple(list), bounded(ty, span)?))
            }
            Written::Block(stmts, value) => self.block(|c| {
                let stmts = c.stmts(stmts);
                let value = c.expr(value)?;
                let ty = value.ty.clone();
                Ok(make(Kind::Block(stmts, Box::new(value)), ty))
            }),
            Written::SizeOfType(ty) => {
                let ty = self.type_of(ty)?;
                self.size(&ty, span).map(number)
            }
            Written::SizeOf(x) => {
                // It is not evaluated: nothing in it is read of the event.
                let leaves = self.leaves.len();
                let ty = self.value(x)?.ty;
                self.leaves.truncate(leaves);
                self.size(&ty, span).map(number)
            }
            Written::OffsetOf(ty, path) => self.offset(ty, path, span),
        }
    }

    fn parameter(&mut self, n: usize, span: Span) -> Expr {
        if n == 0 {
            return make(Kind::Text(b"trapline".to_vec()), Type::Str(8));
        }
        let Some(text) = self.params.positional.get(n - 1) else {
            let e = Diagnostic::warning(Code::Parameter, span, format!("'${n}' was not given and is 0"));
            self.warn(e.hint("parameters follow the script on the command line"));
            return number(0);
        };
        match crate::lex::whole_number(text) {
            Some(v) => constant(v),
            None => make(Kind::Text(text.clone().into_bytes()), Type::Str(text.len() as u32)),
        }
    }

    pub(super) fn var(&mut self, name: &str, span: Span) -> Result<Expr> {
        let shown = name.split('\'').next().unwrap_or_default();
        let Some(index) = self.lookup(name) else {
            if self.ended.contains(name) {
                self.now.hoisted.insert((self.clause, name.to_owned()));
                return Err(unknown(span));
            }
            let known: Vec<String> =
                self.scopes.iter().flat_map(HashMap::keys).filter(|n| !n.contains('\'')).cloned().collect();
            let e = Diagnostic::new(Code::Variable, span, format!("nothing is assigned to '${shown}' here"));
            let e = match self.before.maps.contains_key(name) {
                _ if shown != name => {
                    return Err(e.hint("macros and functions know their parameters and their own variables only"));
                }
                true => e.hint(format!("there is a map @{shown}")),
                false => e.hint("a variable is known in the block where it is assigned first, and in those within"),
            };
            return Err(e.maybe_hint(self.near("$", shown, known.iter().map(String::as_str))));
        };
        if self.now.hoisted.contains(&(self.clause, name.to_owned())) && self.scopes.len() == 1 {
            let w =
                Diagnostic::warning(Code::Doubtful, span, format!("'${shown}' is assigned in a block that has ended"));
            self.warn(w.hint(format!("declare it before the block: let ${shown};")));
        }
        Ok(make(Kind::Var(index), self.var_slot(index).ty()))
    }

    /// The parts of a key, whose types are joined to the map's.
    pub(super) fn key(&mut self, name: &str, keys: &[ast::Expr], span: Span) -> Result<Vec<Expr>> {
        let key = match self.world.is_several() {
            true if name.starts_with(OF_THREADS) => {
                vec![self.leaf(What::thread_of_all(), Type::int(4, false), span)?]
            }
            several => {
                if several {
                    self.warn_of_equal_numbers(name, keys, span);
                }
                keys.iter().map(|k| self.value(k)).collect::<Result<Vec<_>>>()?
            }
        };
        self.use_key(name, &key, span)?;
        Ok(key)
    }

    /// Warns of a map by process or thread alone: those of several traces may have equal numbers.
    fn warn_of_equal_numbers(&mut self, name: &str, keys: &[ast::Expr], span: Span) {
        let has = |names: [&str; 2]| {
            keys.iter().find_map(|k| match &k.kind {
                Written::Name(n) if names.contains(&n.as_str()) => Some(n.clone()),
                _ => None,
            })
        };
        let Some(number) = has(["tid", "pid"]).filter(|_| has(["host", "trace"]).is_none()) else { return };
        let w = format!("'@{name}' is by {number} alone, and several traces may have the same {number}");
        if self.messages.iter().any(|before| before.message == w) {
            return;
        }
        self.warn(Diagnostic::warning(Code::Doubtful, span, w).hint(format!("write @{name}[trace, {number}]")));
    }

    pub(super) fn map(&mut self, name: &str, keys: &[ast::Expr], span: Span) -> Result<Expr> {
        let key = self.key(name, keys, span)?;
        let ty = match self.map_slot(name).ty() {
            Type::Aggregate(a) if a.value() == Type::None => {
                let e = Diagnostic::new(Code::Type, span, format!("'@{name}' holds {a}, which is no number"));
                return Err(e.hint(format!("print(@{name}) shows it")));
            }
            Type::Aggregate(a) => a.value(),
            ty => ty,
        };
        Ok(make(Kind::Map(self.map_index(name), key), ty))
    }
}
