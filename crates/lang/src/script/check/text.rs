//! Calls that make strings and bytes of values, and of memory.

use super::super::ast::{self, Kind as Written};
use super::super::ir::{Expr, Kind};
use super::super::types::{Space, Type};
use super::Checker;
use super::call::word;
use super::expr::{make, number};
use crate::diag::{Code, Diagnostic, Span, quote};
use crate::tokens::Result;

impl Checker<'_> {
    /// The bytes of an address of the Internet that is written out.
    pub(super) fn pton(&mut self, list: &[ast::Expr]) -> Result<Expr> {
        let text = word(&list[0])?;
        let bytes = internet(&text).ok_or_else(|| {
            let e = Diagnostic::new(
                Code::Call,
                list[0].span,
                format!("{} is not an address of the Internet", quote(&text)),
            );
            e.hint("for instance \"127.0.0.1\" or \"::1\"")
        })?;
        let n = bytes.len() as u64;
        Ok(make(Kind::Text(bytes), Type::Array(Box::new(Type::int(1, false)), n)))
    }

    pub(super) fn str(&mut self, list: &[ast::Expr]) -> Result<Expr> {
        // `str($1)` is a string also where the parameter looks like a number.
        if let Written::Param(n) = &list[0].kind {
            let text = n.checked_sub(1).and_then(|i| self.params.positional.get(i)).cloned();
            if text.is_none() {
                let w =
                    Diagnostic::warning(Code::Parameter, list[0].span, format!("'${n}' was not given and is empty"));
                self.warn(w.hint("parameters follow the script on the command line"));
            }
            let text = text.unwrap_or_default();
            return Ok(make(Kind::Text(text.clone().into_bytes()), Type::Str(text.len() as u32)));
        }
        let x = self.value(&list[0])?;
        let length = list.get(1).map(|e| self.int_of(e)).transpose()?;
        let fits =
            x.ty.is_text() || matches!(x.ty, Type::Pointer(..) | Type::Int(_) | Type::Array(..) | Type::Buffer(_));
        if !fits {
            let e = Diagnostic::new(Code::Call, list[0].span, format!("{} is no address of a string", x.ty));
            return Err(e.hint("str() reads the string at an address"));
        }
        if matches!(x.ty, Type::Array(..) | Type::Buffer(_)) {
            let max = self.config.max_strlen;
            return Ok(make(Kind::Call("text", vec![x]), Type::Str(max)));
        }
        self.text_at(x, length)
    }

    pub(super) fn buf(&mut self, list: &[ast::Expr], span: Span) -> Result<Expr> {
        let x = self.value(&list[0])?;
        let max = self.config.max_strlen;
        match (&x.ty, list.get(1)) {
            (Type::Pointer(..) | Type::Int(_), Some(n)) => {
                let n = self.int_of(n)?;
                let most = if let Kind::Const(v, _) = n.kind { v.clamp(0, max.into()) as u32 } else { max };
                let space = match (&x.ty, &x.kind) {
                    (Type::Pointer(_, s), _) => *s,
                    (_, Kind::Leaf(i)) => self.space_of(*i),
                    _ => self.space(),
                };
                let space = number(u64::from(space == Space::User));
                Ok(make(Kind::Call("buf at", vec![x, n, space]), Type::Buffer(most)))
            }
            (Type::Pointer(..) | Type::Int(_), None) => {
                let e = Diagnostic::new(Code::Call, span, "how many bytes is not known");
                Err(e.hint("write buf(address, length)"))
            }
            (Type::Array(..) | Type::Str(_) | Type::Buffer(_), n) => {
                // Of a string, what is behind its end are zeros.
                let mut args = match n {
                    Some(n) => vec![self.int_of(n)?, number(if x.ty.is_text() { max.into() } else { 0 })],
                    None => vec![number(max.into()), number(0)],
                };
                args.insert(0, x);
                Ok(make(Kind::Call("buf", args), Type::Buffer(max)))
            }
            (t, _) => Err(Diagnostic::new(Code::Call, span, format!("a value of type {t} has no bytes to show"))),
        }
    }

    /// `n` bytes of a value: an array, or the memory at an address.
    pub(super) fn bytes_of(&mut self, x: Expr, n: u64, span: Span) -> Result<Expr> {
        let bytes = Type::Array(Box::new(Type::int(1, false)), n);
        match &x.ty {
            Type::Array(..) | Type::Buffer(_) | Type::Str(_) => Ok(x),
            Type::Pointer(_, space) => {
                let space = *space;
                Ok(make(Kind::Load(Box::new(x.int()), space), bytes))
            }
            t => {
                let e = Diagnostic::new(Code::Call, span, format!("{n} bytes are needed here, not {}", t.kind()));
                Err(e.hint("pass an array, or an address"))
            }
        }
    }

    pub(super) fn ntop(&mut self, list: &[ast::Expr], span: Span) -> Result<Expr> {
        let last = self.value(&list[list.len() - 1])?;
        let family = match list {
            [family, _] => Some(self.int_of(family)?),
            _ => None,
        };
        let ty = Type::Str(45);
        let args = match (&last.ty, family) {
            (Type::Int(_), None) => vec![number(2), last],
            (Type::Int(_), Some(f)) => vec![f, last],
            (Type::Array(_, n), None) => vec![number(if *n == 16 { 10 } else { 2 }), last],
            (Type::Array(..) | Type::Buffer(_) | Type::Str(_), Some(f)) => vec![f, last],
            (Type::Pointer(..), Some(f)) => {
                let bytes = self.bytes_of(last, if matches!(f.kind, Kind::Const(10, _)) { 16 } else { 4 }, span)?;
                vec![f, bytes]
            }
            (t, _) => {
                let e = Diagnostic::new(Code::Call, span, format!("a value of type {t} is no address of the Internet"));
                return Err(e.hint("a number, or 4 or 16 bytes are"));
            }
        };
        Ok(make(Kind::Call("ntop", args), ty))
    }
}

/// The bytes of an address of the Internet.
fn internet(text: &str) -> Option<Vec<u8>> {
    match text.parse::<std::net::IpAddr>().ok()? {
        std::net::IpAddr::V4(a) => Some(a.octets().to_vec()),
        std::net::IpAddr::V6(a) => Some(a.octets().to_vec()),
    }
}
