//! Expressions: names get values, operators the meaning that their operands' types give them.

use super::super::ast::{self, Base, Kind as Written, TypeName, Unary};
use super::super::cdecl::Member;
use super::super::headers;
use super::super::ir::{Cmp, Cond, Equal, Expr, Int, Kind, Op, Place};
use super::super::types::{self, Space, Type, join_ints};
use super::{Checker, UNKNOWN, bounded};
use crate::ast::{Binary, Cast};
use crate::diag::{Code, Diagnostic, Span};
use crate::ir::Zero;
use crate::near::did_you_mean;
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

fn truth_value(c: Cond) -> Expr {
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

    fn var(&mut self, name: &str, span: Span) -> Result<Expr> {
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
        let key = keys.iter().map(|k| self.value(k)).collect::<Result<Vec<_>>>()?;
        self.use_key(name, &key, span)?;
        Ok(key)
    }

    fn map(&mut self, name: &str, keys: &[ast::Expr], span: Span) -> Result<Expr> {
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

    // Numbers and truth.

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
    fn signed(&self, a: &Expr, b: &Expr) -> bool {
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

    fn truths(&mut self, list: &[ast::Expr]) -> Result<Vec<Cond>> {
        list.iter().map(|e| self.truth_of(e)).collect()
    }

    fn unary(&mut self, op: Unary, e: &ast::Expr, span: Span) -> Result<Expr> {
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

    fn step(&mut self, target: &ast::Expr, up: bool, after: bool) -> Result<Expr> {
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

    fn binary(&mut self, op: Binary, a: &ast::Expr, b: &ast::Expr, span: Span) -> Result<Expr> {
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
    fn choice(&mut self, c: &ast::Expr, a: Option<&ast::Expr>, b: &ast::Expr, span: Span) -> Result<Expr> {
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

    // Types.

    /// The type that is meant.
    pub(super) fn type_of(&mut self, t: &TypeName) -> Result<Type> {
        let mut ty = match &t.base {
            Base::Named(n) => match self.declarations.named(n).or_else(|| self.world.typedef(n)) {
                Some(ty) => ty,
                None if self.structure(n) || t.pointers > 0 => Type::Struct(n.clone()),
                None => {
                    let known =
                        ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool", "string"];
                    let known = known.into_iter().chain(self.declarations.typedefs.keys().map(String::as_str));
                    let e = Diagnostic::new(Code::Type, t.span, format!("unknown type '{n}'"));
                    return Err(e.hint("a structure is written struct NAME").maybe_hint(self.near("", n, known)));
                }
            },
            Base::Struct(n) => Type::Struct(n.clone()),
            Base::Enum(n) => Type::Enum(n.clone()),
            Base::TypeOf(e) => {
                let leaves = self.leaves.len();
                let ty = self.value(e)?.ty;
                self.leaves.truncate(leaves);
                ty
            }
        };
        for _ in 0..t.pointers {
            ty = Type::Pointer(Box::new(ty), Space::Kernel);
        }
        if let (Type::Str(_), [n]) = (&ty, &t.arrays[..]) {
            return Ok(Type::Str((*n).clamp(1, 65536) as u32 - 1));
        }
        for n in t.arrays.iter().rev() {
            ty = Type::Array(Box::new(ty), *n);
        }
        bounded(ty, t.span)
    }

    /// Whether a structure of this name is known, here or in the world.
    fn structure(&mut self, name: &str) -> bool {
        if self.declarations.structs.contains_key(name) {
            return true;
        }
        match self.world.structure(name) {
            Some(s) => {
                self.declarations.structs.insert(name.to_owned(), s);
                true
            }
            None => false,
        }
    }

    fn size(&mut self, ty: &Type, span: Span) -> Result<u64> {
        if let Type::Struct(name) = ty {
            self.structure(name);
        }
        self.declarations.size(ty).map(|s| s.0).ok_or_else(|| {
            let e = Diagnostic::new(Code::Type, span, format!("the size of {ty} is not known"));
            e.hint("declare the structure in the script: struct NAME { … };")
        })
    }

    fn member(&mut self, of: &str, name: &str, span: Span) -> Result<Member> {
        self.structure(of);
        let Some(s) = self.declarations.structs.get(of) else {
            let e = Diagnostic::new(
                Code::Field,
                span,
                format!("'struct {of}' is not declared, and not a structure of the kernel"),
            );
            return Err(e.hint(format!("declare it in the script: struct {of} {{ … }};")));
        };
        let called = |name: &str| s.members.iter().find(|m| m.name == name).cloned();
        if let Some(found) = called(name) {
            return Ok(found);
        }
        // The script's own structures are as they are.
        let of_kernel = !self.script.declarations.structs.contains_key(of);
        if let Some((other, since)) = headers::renamed(of, name).filter(|_| of_kernel)
            && let Some(found) = called(other)
        {
            let message = format!("the running kernel's 'struct {of}' has '{other}' in the place of '{name}'");
            let w = Diagnostic::warning(Code::Field, span, message);
            self.warn(w.hint(format!("the name has changed with Linux {since}")));
            return Ok(found);
        }
        let e = Diagnostic::new(Code::Field, span, format!("'struct {of}' has no member '{name}'"));
        Err(e.maybe_hint(self.near("", name, s.members.iter().map(|m| m.name.as_str()))))
    }

    fn offset(&mut self, ty: &TypeName, path: &[String], span: Span) -> Result<Expr> {
        let (mut ty, mut offset) = (self.type_of(ty)?, 0u64);
        for name in path {
            let Type::Struct(of) = &ty else {
                return Err(Diagnostic::new(Code::Field, span, format!("{ty} has no members")));
            };
            let m = self.member(&of.clone(), name, span)?;
            (ty, offset) = (m.ty, offset + m.offset);
        }
        Ok(number(offset))
    }

    fn cast(&mut self, to: &TypeName, e: &ast::Expr, span: Span) -> Result<Expr> {
        let (ty, x) = (self.type_of(to)?, self.value(e)?);
        let cannot = |x: &Expr| {
            let e = Diagnostic::new(Code::Type, span, format!("{} cannot be cast to {ty}", x.ty));
            match x.ty.is_text() {
                true => e.hint("a string becomes bytes by (int8[])…, and no number"),
                false => e,
            }
        };
        match &ty {
            Type::Int(c) => {
                let x = if x.ty.as_int().is_some() { x } else { return Err(cannot(&x)) };
                if let Kind::Const(v, _) = x.kind {
                    return Ok(make(Kind::Const(c.apply(v), false), ty));
                }
                Ok(computed(x.int().cast(*c), ty))
            }
            Type::Bool => Ok(truth_value(self.truth(x, span)?)),
            Type::Enum(_) if x.ty.as_int().is_some() => Ok(make(x.kind, ty)),
            Type::Pointer(of, _) => {
                let space = match (&x.ty, &x.kind) {
                    (Type::Pointer(_, space), _) => *space,
                    (_, Kind::Leaf(i)) => self.space_of(*i),
                    _ => self.space(),
                };
                if x.ty.as_int().is_none() {
                    return Err(cannot(&x));
                }
                Ok(make(x.kind, Type::Pointer(of.clone(), space)))
            }
            Type::Str(_) if x.ty.is_text() => Ok(make(x.kind, ty)),
            Type::Array(of, n) => {
                let item = self.size(of, span)?.max(1);
                let bytes = match &x.ty {
                    Type::Str(len) => u64::from(*len) + 1,
                    t => self.size(&t.clone(), span)?,
                };
                let n = if *n == 0 { bytes / item } else { *n };
                if n * item > bytes.max(8) || matches!(x.ty, Type::Tuple(_) | Type::Record(..) | Type::Stack(..)) {
                    return Err(cannot(&x));
                }
                let total = number(n * item);
                Ok(make(Kind::Call("bytes", vec![x, total]), Type::Array(of.clone(), n)))
            }
            _ => Err(cannot(&x).maybe_hint(match &ty {
                Type::Struct(n) => Some(format!("cast to an address: (struct {n} *)…")),
                _ => None,
            })),
        }
    }

    // Memory.

    fn deref(&mut self, x: Expr, span: Span) -> Result<Expr> {
        let (of, space) = match &x.ty {
            Type::Pointer(of, _) if **of == Type::None => {
                let e = Diagnostic::new(Code::Type, span, "what this points to is not known");
                return Err(e.hint("cast it: *(uint64 *)…"));
            }
            Type::Pointer(of, space) => ((**of).clone(), *space),
            t => {
                let e = Diagnostic::new(Code::Type, span, format!("{t} is not an address"));
                return Err(e.hint("cast it: *(uint64 *)…"));
            }
        };
        if !matches!(of, Type::Struct(_)) {
            self.size(&of, span)?;
        }
        Ok(make(Kind::Load(Box::new(x.int()), space), of.within(space)))
    }

    /// The string at an address, of a structure's characters, or the string itself.
    pub(super) fn text_at(&mut self, x: Expr, length: Option<Expr>) -> Result<Expr> {
        let max = self.config.max_strlen;
        let most = match &length {
            Some(Expr { kind: Kind::Const(n, _), .. }) => (*n).clamp(1, i64::from(max) + 1) as u32 - 1,
            _ => max,
        };
        if let (Type::Pointer(..) | Type::Int(_), Kind::Leaf(i)) = (&x.ty, &x.kind)
            && let Some(text) = self.text_leaf(*i)
        {
            let whole = make(Kind::Leaf(text), Type::Str(max));
            return Ok(match length {
                None => whole,
                Some(n) => make(Kind::Call("cut", vec![whole, n]), Type::Str(most)),
            });
        }
        if x.ty.is_text() {
            return Ok(match length {
                None => x,
                Some(n) => make(Kind::Call("cut", vec![x, n]), Type::Str(most)),
            });
        }
        let space = match (&x.ty, &x.kind) {
            (Type::Pointer(_, space), _) => *space,
            (_, Kind::Leaf(i)) => self.space_of(*i),
            _ => self.space(),
        };
        if let Kind::Map(map, _) = x.kind {
            self.texts.entry(map).or_insert((space, max + 1));
        }
        let length = length.unwrap_or_else(|| number(u64::from(max) + 1));
        Ok(make(Kind::TextAt(Box::new(x.int()), space, Box::new(length.int())), Type::Str(most)))
    }

    fn field(&mut self, of: &ast::Expr, name: &str, span: Span) -> Result<Expr> {
        // What an iterator, or a probe, has been called with.
        if matches!(&of.kind, Written::Name(n) if n == "ctx") {
            return self.arg(name, span);
        }
        let x = self.value(of)?;
        self.field_of(x, of.span, name, span)
    }

    /// A member of what stands at `at`.
    pub(super) fn field_of(&mut self, mut x: Expr, at: Span, name: &str, span: Span) -> Result<Expr> {
        if matches!(x.ty, Type::Pointer(..)) {
            x = self.deref(x, at)?;
        }
        if let Type::Record(names, list) = &x.ty {
            let Some(n) = names.iter().position(|n| n == name) else {
                let e = Diagnostic::new(Code::Field, span, format!("no member of {} is called '{name}'", x.ty));
                return Err(e.maybe_hint(did_you_mean("", name, names.iter().map(String::as_str))));
            };
            let ty = list[n].clone();
            return Ok(make(Kind::Part(Box::new(x), n), ty));
        }
        let Type::Struct(s) = &x.ty else {
            let e = Diagnostic::new(Code::Field, span, format!("a value of type {} has no member '{name}'", x.ty));
            return Err(match x.ty {
                Type::Tuple(_) => e.hint("the parts of a tuple are .0, .1, …"),
                _ => e.hint("cast it to the address of a structure: ((struct NAME *)…)"),
            });
        };
        let m = self.member(&s.clone(), name, span)?;
        let (offset, ty) = (m.offset, m.ty);
        let read = match m.bits {
            None => ty.clone(),
            // As many bytes as the bits lie in.
            Some((shift, width)) => {
                Type::int((u32::from(shift) + u32::from(width)).div_ceil(8).next_power_of_two().min(8) as u8, false)
            }
        };
        let value = at_offset(x, Int::Const(offset as i64), read);
        Ok(match m.bits {
            None => value,
            Some((shift, width)) => {
                // To the left end, and from there back to the right one.
                let by = |n: u8| Int::Const(64 - i64::from(n.clamp(1, 64)));
                let back = if ty.as_int().is_some_and(|c| c.signed) { Op::Sar } else { Op::Shr };
                let left = Int::binary(Op::Shl, value.int(), by(shift + width));
                computed(Int::binary(back, left, by(width)), ty)
            }
        })
    }

    fn part(&mut self, of: &ast::Expr, n: usize, span: Span) -> Result<Expr> {
        let x = self.value(of)?;
        match &x.ty {
            Type::Tuple(list) | Type::Record(_, list) if n < list.len() => {
                let ty = list[n].clone();
                Ok(make(Kind::Part(Box::new(x), n), ty))
            }
            Type::Tuple(list) | Type::Record(_, list) => {
                let e = Diagnostic::new(Code::Field, span, format!("a tuple of {} parts has no part {n}", list.len()));
                Err(e.hint(format!("they are .0 to .{}", list.len().saturating_sub(1))))
            }
            t => {
                Err(Diagnostic::new(Code::Field, span, format!("a value of type {t} has no part {n}"))
                    .hint("tuples have"))
            }
        }
    }

    fn index(&mut self, of: &ast::Expr, index: &ast::Expr, span: Span) -> Result<Expr> {
        let (x, i) = (self.value(of)?, self.int_of(index)?);
        let (item, length) = match &x.ty {
            Type::Array(item, n) => ((**item).clone(), Some(*n)),
            Type::Pointer(item, _) if **item != Type::None => ((**item).clone(), None),
            t => {
                let e = Diagnostic::new(Code::Type, span, format!("a value of type {t} has no elements"));
                return Err(e.hint("arrays and addresses have; a map is written @name[…]"));
            }
        };
        if let (Kind::Const(v, _), Some(n)) = (&i.kind, length)
            && n > 0
            && (*v as u64) >= n
        {
            return Err(Diagnostic::new(Code::Type, index.span, format!("an array of {n} has no element {v}")));
        }
        let size = self.size(&item, span)?;
        let offset = Int::binary(Op::Mul, i.int(), Int::Const(size as i64));
        match &x.ty {
            Type::Pointer(_, space) => {
                let space = *space;
                let at = Int::Binary(Op::Add, Box::new(x.int()), Box::new(offset));
                Ok(make(Kind::Load(Box::new(at), space), item.within(space)))
            }
            _ => Ok(at_offset(x, offset, item)),
        }
    }
}

/// `-v`
fn constant_minus(v: u64) -> Expr {
    match v {
        0 => number(0),
        _ => make(Kind::Const((v as i64).wrapping_neg(), false), types::literal(v - 1)),
    }
}

/// A piece of what lies in memory, or of bytes that are there already.
fn at_offset(x: Expr, offset: Int, ty: Type) -> Expr {
    match x.kind {
        Kind::Load(address, space) => {
            let at = if offset == Int::Const(0) { address } else { Box::new(Int::binary(Op::Add, *address, offset)) };
            make(Kind::Load(at, space), ty.within(space))
        }
        _ => make(Kind::Piece(Box::new(x), Box::new(offset)), ty),
    }
}
