//! Types that scripts name, structures and their members, and casts.

use super::super::ast::{self, Base, TypeName};
use super::super::cdecl::Member;
use super::super::headers;
use super::super::ir::{Expr, Kind};
use super::super::types::{Space, Type};
use super::Checker;
use super::bounded;
use super::expr::{computed, make, number, truth_value};
use crate::diag::{Code, Diagnostic, Span};
use crate::tokens::Result;

impl Checker<'_> {
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
    pub(super) fn structure(&mut self, name: &str) -> bool {
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

    pub(super) fn size(&mut self, ty: &Type, span: Span) -> Result<u64> {
        if let Type::Struct(name) = ty {
            self.structure(name);
        }
        self.declarations.size(ty).map(|s| s.0).ok_or_else(|| {
            let e = Diagnostic::new(Code::Type, span, format!("the size of {ty} is not known"));
            e.hint("declare the structure in the script: struct NAME { … };")
        })
    }

    pub(super) fn member(&mut self, of: &str, name: &str, span: Span) -> Result<Member> {
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

    pub(super) fn offset(&mut self, ty: &TypeName, path: &[String], span: Span) -> Result<Expr> {
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

    pub(super) fn cast(&mut self, to: &TypeName, e: &ast::Expr, span: Span) -> Result<Expr> {
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
}
