//! What is in memory, in structures, tuples and arrays.

use super::super::ast::{self, Kind as Written};
use super::super::ir::{Expr, Int, Kind, Op};
use super::super::types::Type;
use super::Checker;
use super::expr::{computed, make, number};
use crate::diag::{Code, Diagnostic, Span};
use crate::near::did_you_mean;
use crate::tokens::Result;

impl Checker<'_> {
    pub(super) fn deref(&mut self, x: Expr, span: Span) -> Result<Expr> {
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

    pub(super) fn field(&mut self, of: &ast::Expr, name: &str, span: Span) -> Result<Expr> {
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

    pub(super) fn part(&mut self, of: &ast::Expr, n: usize, span: Span) -> Result<Expr> {
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

    pub(super) fn index(&mut self, of: &ast::Expr, index: &ast::Expr, span: Span) -> Result<Expr> {
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
