//! Operators: numbers, truth, and comparisons, with the meaning that the types of their operands give them.

use super::super::ast::{self, Kind as Written, Unary};
use super::super::ir::{Cmp, Cond, Equal, Expr, Int, Kind, Op, Place};
use super::super::types::{self, Type, join_ints};
use super::Checker;
use super::expr::{computed, constant, make, number, truth_value, unknown};
use crate::ast::{Binary, Cast};
use crate::diag::{Code, Diagnostic, Span};
use crate::ir::Zero;
use crate::tokens::Result;

impl Checker<'_> {
    /// A value that is used as an integer.
    pub(super) fn int(&self, x: Expr, span: Span) -> Result<Expr> {
        if x.ty == Type::None {
            // What a map holds that is counted on: `@x = @x + 1`. The last walk knows it.
            return if self.last || !matches!(x.kind, Kind::Map(..)) { Err(unknown(span)) } else { Ok(number(0)) };
        }
        match x.ty.as_int() {
            Some(_) => Ok(x),
            None => {
                let e = Diagnostic::new(Code::Type, span, format!("a number is needed here, not {}", x.ty.kind()));
                Err(if x.ty.is_text() {
                    e.hint("strings are compared with == and !=, strncmp() and strcontains()")
                } else {
                    e
                })
            }
        }
    }

    pub(super) fn int_of(&mut self, e: &ast::Expr) -> Result<Expr> {
        let x = self.expr(e)?;
        self.int(x, e.span)
    }

    /// The integer type of a checked integer; that of an aggregation's value.
    fn cast_of(x: &Expr) -> Cast {
        x.ty.as_int().unwrap_or(Cast { size: 8, signed: true })
    }

    /// Of two operands: whether they are taken as signed. A literal takes the sign of what it meets.
    pub(super) fn signed(&self, a: &Expr, b: &Expr) -> bool {
        match (self.flexible(a), self.flexible(b)) {
            (Some(v), None) if Self::cast_of(b).signed => v <= i64::MAX as u64,
            (None, Some(v)) if Self::cast_of(a).signed => v <= i64::MAX as u64,
            (Some(_), None) => Self::cast_of(b).signed,
            (None, Some(_)) => Self::cast_of(a).signed,
            _ => Self::cast_of(a).signed || Self::cast_of(b).signed,
        }
    }

    pub(super) fn truth(&mut self, x: Expr, span: Span) -> Result<Cond> {
        match &x.ty {
            Type::None => Err(unknown(span)),
            t if t.as_int().is_some() => Ok(x.truth()),
            t if t.is_text() => {
                Err(Diagnostic::new(Code::Type, span, "a string is neither true nor false")
                    .hint("compare it: … != \"\""))
            }
            t => Err(Diagnostic::new(Code::Type, span, format!("a value of type {t} is neither true nor false"))),
        }
    }

    pub(super) fn truth_of(&mut self, e: &ast::Expr) -> Result<Cond> {
        let x = self.expr(e)?;
        self.truth(x, e.span)
    }

    pub(super) fn truths(&mut self, list: &[ast::Expr]) -> Result<Vec<Cond>> {
        list.iter().map(|e| self.truth_of(e)).collect()
    }

    pub(super) fn unary(&mut self, op: Unary, e: &ast::Expr, span: Span) -> Result<Expr> {
        Ok(match op {
            Unary::Not => truth_value(self.truth_of(e)?.negated()),
            Unary::Minus => match self.int_of(e)? {
                Expr { kind: Kind::Const(v, true), .. } => constant_minus(v as u64),
                x => computed(x.int().minus(), Type::INT),
            },
            Unary::Complement => match self.int_of(e)? {
                Expr { kind: Kind::Const(v, true), .. } => constant(!v),
                x => {
                    let signed = Self::cast_of(&x).signed;
                    computed(x.int().complement(), Type::int(8, signed))
                }
            },
            Unary::Deref => {
                let x = self.value(e)?;
                self.deref(x, span)?
            }
            Unary::Address => {
                let e =
                    Diagnostic::new(Code::Unsupported, span, "addresses of variables and maps are not in this version");
                return Err(e.hint("use the value itself; a tuple holds several"));
            }
        })
    }

    pub(super) fn step(&mut self, target: &ast::Expr, up: bool, after: bool) -> Result<Expr> {
        let span = target.span;
        let not = |name: &str, holds: &Type| {
            let e =
                Diagnostic::new(Code::Type, span, format!("'{name}' holds {}, which are not counted", holds.kind()));
            e.hint("numbers are")
        };
        match &target.kind {
            Written::Map(name, keys) => {
                let key = self.key(name, keys, span)?;
                let info = self.map_info(name, span);
                if !info.assigned {
                    (info.span, info.assigned) = (span, true);
                }
                info.tried = true;
                info.value.step().map_err(|c| not(&format!("@{name}"), &c.holds))?;
                let ty = self.map_slot(name).ty();
                let by = self.stride(&ty, up, span)?;
                Ok(make(Kind::Step { place: Place::Map(self.map_index(name), key), by, after }, ty))
            }
            Written::Var(name) => {
                let Kind::Var(index) = self.var(name, span)?.kind else { return Err(unknown(span)) };
                let slot = &mut self.now.vars[self.clause][index].slot;
                if slot.declared.is_none() {
                    slot.step().map_err(|c| not(&format!("${name}"), &c.holds))?;
                }
                let ty = self.var_slot(index).ty();
                self.stepped.insert(index);
                let by = self.stride(&ty, up, span)?;
                Ok(make(Kind::Step { place: Place::Var(index), by, after }, ty))
            }
            _ => Err(Diagnostic::new(Code::Place, span, "only variables and maps are counted")),
        }
    }

    /// By how much `++` and `--` change a value.
    fn stride(&mut self, ty: &Type, up: bool, span: Span) -> Result<i64> {
        let by = match ty {
            Type::Pointer(of, _) if **of != Type::None => self.size(of, span)? as i64,
            _ => 1,
        };
        Ok(if up { by } else { -by })
    }

    pub(super) fn binary(&mut self, op: Binary, a: &ast::Expr, b: &ast::Expr, span: Span) -> Result<Expr> {
        let (x, y) = (self.expr(a)?, self.expr(b)?);
        if let (Written::Param(_), Binary::Add, Kind::Text(text), Kind::Const(n, _)) = (&a.kind, op, &x.kind, &y.kind) {
            let rest = usize::try_from(*n).ok().and_then(|n| text.get(n..)).unwrap_or_default().to_vec();
            let ty = Type::Str(rest.len() as u32);
            return Ok(make(Kind::Text(rest), ty));
        }
        if op.is_comparison() && self.last && (x.ty == Type::None || y.ty == Type::None) {
            return Err(unknown(if x.ty == Type::None { a.span } else { b.span }));
        }
        if op.is_comparison()
            && x.ty.as_int().is_none_or(|_| self.is_string_pointer(&x, &y) || self.is_string_pointer(&y, &x))
        {
            return self.compare_values(op, x, y, span);
        }
        if op.is_comparison() && (y.ty.as_int().is_none()) && y.ty != Type::None {
            return self.compare_values(op, x, y, span);
        }
        let (x, y) = (self.int(x, a.span)?, self.int(y, b.span)?);
        self.arithmetic(op, x, y, span)
    }

    /// An operator of two integers, or of a pointer and an integer.
    pub(super) fn arithmetic(&mut self, op: Binary, x: Expr, y: Expr, span: Span) -> Result<Expr> {
        let signed = self.signed(&x, &y);
        if let Some(cmp) = Cmp::of(op, signed) {
            let both = [Self::cast_of(&x), Self::cast_of(&y)];
            let solid = self.flexible(&x).is_none() && self.flexible(&y).is_none();
            let pointers = matches!(x.ty, Type::Pointer(..)) || matches!(y.ty, Type::Pointer(..));
            let order = !matches!(op, Binary::Eq | Binary::Ne);
            if solid && order && !pointers && join_ints(both[0], both[1]).is_none() {
                let w =
                    Diagnostic::warning(Code::Doubtful, span, format!("{} and {} are compared as signed", x.ty, y.ty));
                self.warn(w.hint("cast one of them: (uint64)…"));
            }
            return Ok(truth_value(Cond::compare(cmp, x.int(), y.int())));
        }
        let pointer = |t: &Type| if let Type::Pointer(of, _) = t { Some((**of).clone()) } else { None };
        match (pointer(&x.ty), pointer(&y.ty)) {
            (Some(_), Some(_)) => {
                let e = Diagnostic::new(Code::Type, span, format!("'{}' of two addresses", op.symbol()));
                return Err(e.hint("addresses are compared only; cast them: (uint64)…"));
            }
            (Some(of), None) => return self.pointer_math(op, x, y, of, span),
            (None, Some(of)) if op == Binary::Add => return self.pointer_math(op, y, x, of, span),
            _ => {}
        }
        let signed = signed || op == Binary::Sub;
        let Some(op) = Op::of(op, signed, Zero::Counted(span)) else { return Err(unknown(span)) };
        if let (Kind::Const(a, f), Kind::Const(b, g)) = (&x.kind, &y.kind)
            && op.counted(*b).is_none()
        {
            let v = op.apply(*a, *b);
            // Of literals it is one too, which takes the sign of what it meets; but it has the 64 bits of all arithmetic.
            return Ok(make(Kind::Const(v, *f && *g && v >= 0), Type::int(8, signed)));
        }
        Ok(computed(Int::binary(op, x.int(), y.int()), Type::int(8, signed)))
    }

    /// An address and a number of what it is of.
    fn pointer_math(&mut self, op: Binary, p: Expr, n: Expr, of: Type, span: Span) -> Result<Expr> {
        let ty = p.ty.clone();
        let size = if of == Type::None { 1 } else { self.size(&of, span)? };
        let op = match op {
            Binary::Add => Op::Add,
            Binary::Sub => Op::Sub,
            _ => {
                let e = Diagnostic::new(Code::Type, span, format!("'{}' of an address", op.symbol()));
                return Err(e.hint("cast it: (uint64)…"));
            }
        };
        let n = if size == 1 { n.int() } else { Int::binary(Op::Mul, n.int(), Int::Const(size as i64)) };
        Ok(computed(Int::Binary(op, Box::new(p.int()), Box::new(n)), ty))
    }

    /// A `char *` beside a string: what it points to is compared.
    fn is_string_pointer(&self, x: &Expr, other: &Expr) -> bool {
        matches!(&x.ty, Type::Pointer(of, _) if **of == Type::int(1, true)) && other.ty.is_text()
    }

    fn compare_values(&mut self, op: Binary, x: Expr, y: Expr, span: Span) -> Result<Expr> {
        let (x, y) = match (self.is_string_pointer(&x, &y), self.is_string_pointer(&y, &x)) {
            (true, _) => (self.text_at(x, None)?, y),
            (_, true) => (x, self.text_at(y, None)?),
            _ => (x, y),
        };
        let same = x.ty.is_text() && y.ty.is_text()
            || matches!((&x.ty, &y.ty), (Type::Buffer(_), Type::Buffer(_)) | (Type::Array(..), Type::Array(..)))
            || matches!((&x.ty, &y.ty), (Type::Tuple(a), Type::Tuple(b)) if a.len() == b.len())
            || matches!((&x.ty, &y.ty), (Type::Record(a, _), Type::Record(b, _)) if a == b);
        if !same {
            let message = format!("{} and {} cannot be compared", x.ty, y.ty);
            return Err(Diagnostic::new(Code::Type, span, message));
        }
        let equal = Cond::Test(Box::new(Equal(x, y)));
        match op {
            Binary::Eq => Ok(truth_value(equal)),
            Binary::Ne => Ok(truth_value(equal.negated())),
            _ => {
                let e = Diagnostic::new(Code::Type, span, format!("'{}' of strings", op.symbol()));
                Err(e.hint("strings are compared with == and !="))
            }
        }
    }

    /// `c ? a : b`; without `a` it is `c`.
    pub(super) fn choice(&mut self, c: &ast::Expr, a: Option<&ast::Expr>, b: &ast::Expr, span: Span) -> Result<Expr> {
        let (condition, first) = match a {
            Some(a) => (Some(self.truth_of(c)?), self.value(a)?),
            None => (None, self.int_of(c)?),
        };
        let second = self.value(b)?;
        let mut slot = types::Slot::default();
        let joined =
            slot.add(&first.ty, self.flexible(&first)).and_then(|()| slot.add(&second.ty, self.flexible(&second)));
        if joined.is_err() {
            let e = Diagnostic::new(Code::Type, span, format!("one of {} or {}", first.ty, second.ty));
            return Err(e.hint("both have one type: use a cast"));
        }
        let ty = slot.ty();
        Ok(match condition {
            Some(c) if ty.is_word() => computed(Int::choice(c, first.int(), second.int()), ty),
            Some(c) => make(Kind::Choice(Box::new(c), Box::new(first), Box::new(second)), ty),
            None if ty.is_word() => computed(Int::Or(Box::new(first.int()), Box::new(second.int())), ty),
            None => {
                let e = Diagnostic::new(Code::Type, span, format!("'?:' of {}", ty.kind()));
                return Err(e.hint("write the condition: … ? … : …"));
            }
        })
    }
}

/// `-v`
fn constant_minus(v: u64) -> Expr {
    match v {
        0 => number(0),
        _ => make(Kind::Const((v as i64).wrapping_neg(), false), types::literal(v - 1)),
    }
}
