//! Declarations in C: structures, unions, enumerations, typedefs, and how they lie in memory.
//!
//! Bitfields, anonymous members, arrays, pointers, `packed` and `aligned` are understood; functions and floating point are not.
//!
//! Invariant: every member of a structure lies inside of it, and no structure contains itself.

use super::types::{MAX_WEIGHT, Space, Type};
use crate::ast::{Binary, Cast, Expr, Kind, Unary};
use crate::diag::{Code, Diagnostic, Span};
use crate::ir::{Cmp, Op, Zero};
use crate::lex::Token;
use crate::near::did_you_mean;
use crate::parse::{Parser, type_words};
use crate::tokens::Result;
use std::collections::BTreeMap;

/// No structure is larger: 16 MiB.
const MAX_SIZE: u64 = 1 << 24;

/// What a script declares.
#[derive(Clone, Debug, Default)]
pub struct Declarations {
    /// Structures and unions, by name.
    pub structs: BTreeMap<String, Struct>,
    /// The values of enumerations, by the enumeration's name.
    pub enums: BTreeMap<String, Vec<(String, i64)>>,
    /// Other names of types.
    pub typedefs: BTreeMap<String, Type>,
    /// The values of all enumerations, and which they are of.
    constants: BTreeMap<String, (i64, String)>,
    /// Bytes and alignment of structures that are declared elsewhere.
    elsewhere: BTreeMap<String, (u64, u64)>,
    anonymous: usize,
    /// How many there were in braces.
    bodies: usize,
}

/// A structure or a union.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Struct {
    /// Bytes.
    pub size: u64,
    /// Bytes.
    pub align: u64,
    /// Its members; those of anonymous members among them.
    pub members: Vec<Member>,
    /// How many structures are within each other, this one among them.
    pub depth: usize,
}

/// A member.
#[derive(Clone, Debug, PartialEq)]
pub struct Member {
    /// Its name.
    pub name: String,
    /// Its type.
    pub ty: Type,
    /// Bytes from the start of the structure.
    pub offset: u64,
    /// Of a bitfield: the lowest bit, from `offset` on, and how many.
    pub bits: Option<(u8, u8)>,
}

/// This many structures may be within each other.
const MAX_DEPTH: usize = 32;

/// A structure that is being laid out.
#[derive(Default)]
struct Layout {
    out: Struct,
    union: bool,
    packed: bool,
    bit: u64,
}

impl Declarations {
    /// The value of an enumeration's name, and the enumeration.
    pub fn constant(&self, name: &str) -> Option<(i64, &str)> {
        self.constants.get(name).map(|(v, of)| (*v, of.as_str()))
    }

    /// Bytes, and alignment; None: not known.
    pub fn size(&self, ty: &Type) -> Option<(u64, u64)> {
        Some(match ty {
            Type::Bool => (1, 1),
            Type::Int(c) => (c.size.into(), c.size.into()),
            Type::Enum(_) | Type::User => (4, 4),
            Type::Pointer(..) | Type::Symbol(_) | Type::Moment => (8, 8),
            Type::Str(n) => (u64::from(*n) + 1, 1),
            Type::Buffer(n) => (u64::from(*n), 1),
            Type::Stack(..) => (16, 8),
            Type::Array(of, n) => {
                let (size, align) = self.size(of)?;
                (size.checked_mul(*n).filter(|s| *s <= MAX_SIZE)?, align)
            }
            Type::Struct(name) => {
                let own = self.structs.get(name).map(|s| (s.size, s.align));
                own.or_else(|| self.elsewhere.get(name).copied())?
            }
            Type::Tuple(list) | Type::Record(_, list) => {
                let (mut at, mut most) = (0u64, 1);
                for t in list {
                    let (size, align) = self.size(t)?;
                    at = at.next_multiple_of(align).checked_add(size)?;
                    most = most.max(align);
                }
                (at.next_multiple_of(most), most)
            }
            Type::Aggregate(_) | Type::None => return None,
        })
    }

    /// How many structures a value has within each other.
    fn depth(&self, ty: &Type) -> usize {
        match ty {
            Type::Array(of, _) => self.depth(of),
            Type::Struct(name) => self.structs.get(name).map_or(1, |s| s.depth),
            _ => 0,
        }
    }

    /// A type by its name: one of C's, of the kernel's, of the language's, or a typedef of the script.
    pub fn named(&self, name: &str) -> Option<Type> {
        if let Some(t) = self.typedefs.get(name) {
            return Some(t.clone());
        }
        Some(match name {
            "bool" | "_Bool" => Type::Bool,
            "void" => Type::None,
            "string" => Type::Str(63),
            _ => Type::Int(Cast::of_c(name)?),
        })
    }
}

/// `const`, `volatile` and the like mean nothing here.
fn qualifiers(p: &mut Parser<'_>) -> Result<()> {
    while matches!(p.t.peek()?, Token::Name(n) if ["const", "volatile", "__user", "__rcu", "__kernel", "extern", "static"].contains(&n.as_str()))
    {
        p.t.next()?;
    }
    Ok(())
}

/// One declaration, up to its semicolon.
pub(super) fn declaration(p: &mut Parser<'_>, d: &mut Declarations) -> Result<()> {
    let typedef = p.t.eat_name("typedef")?;
    let bodies = d.bodies;
    let (base, _) = specifier(p, d)?;
    if typedef && let (Some(name), ty, _) = declarator(p, &base, d)? {
        p.typedefs.insert(name.clone());
        d.typedefs.insert(name, ty);
    }
    // Behind a body, the semicolon may be left out.
    if p.t.eat(";")? || !typedef && d.bodies > bodies {
        return Ok(());
    }
    let e = p.t.unexpected("';'");
    Err(if typedef { e } else { e.hint("scripts have structures, unions, enumerations and typedefs of C") })
}

/// What stands before the names: a type, declared on the way where it has a body. And whether it had one without a name.
fn specifier(p: &mut Parser<'_>, d: &mut Declarations) -> Result<(Type, bool)> {
    qualifiers(p)?;
    let span = p.t.span()?;
    let word = match p.t.peek()? {
        Token::Name(n) => n.clone(),
        _ => return Err(p.t.unexpected("a type")),
    };
    match word.as_str() {
        "struct" | "union" => {
            p.t.next()?;
            aggregate(p, d, word == "union")
        }
        "enum" => {
            p.t.next()?;
            Ok((enumeration(p, d)?, false))
        }
        "float" | "double" => {
            let e = Diagnostic::new(Code::Declaration, span, format!("'{word}': scripts have no floating point"));
            Err(e.hint("uint32 or uint64 take the same room"))
        }
        _ => {
            let name = type_words(&mut p.t)?;
            qualifiers(p)?;
            // Pointers to types that nobody has declared are common.
            let unknown = || {
                let known = ["int", "char", "unsigned", "uint32_t", "uint64_t", "size_t", "struct"];
                let known = known.into_iter().chain(d.typedefs.keys().map(String::as_str));
                let e = Diagnostic::new(Code::Declaration, span, format!("unknown type '{name}'"));
                e.maybe_hint(did_you_mean("", &name, known))
            };
            match d.named(&name) {
                Some(ty) => Ok((ty, false)),
                None if p.t.at("*")? => Ok((Type::None, false)),
                None => Err(unknown()),
            }
        }
    }
}

fn attributes(p: &mut Parser<'_>, l: &mut Layout) -> Result<()> {
    while p.t.eat_name("__attribute__")? {
        p.t.expect("(")?;
        p.t.expect("(")?;
        loop {
            let (name, span) = p.t.name("an attribute")?;
            match name.trim_matches('_') {
                "packed" => l.packed = true,
                "aligned" => {
                    p.t.expect("(")?;
                    let (n, span) = p.t.integer("a power of two")?;
                    if !n.is_power_of_two() || n > 4096 {
                        return Err(Diagnostic::new(Code::Declaration, span, "not an alignment")
                            .hint("a power of two up to 4096"));
                    }
                    l.out.align = l.out.align.max(n);
                    p.t.expect(")")?;
                }
                "preserve_access_index" | "unused" => {}
                _ => {
                    let e = Diagnostic::new(Code::Declaration, span, format!("unknown attribute '{name}'"));
                    return Err(e.hint("packed and aligned(n) are known"));
                }
            }
            if !p.t.eat(",")? {
                break;
            }
        }
        p.t.expect(")")?;
        p.t.expect(")")?;
    }
    Ok(())
}

fn aggregate(p: &mut Parser<'_>, d: &mut Declarations, union: bool) -> Result<(Type, bool)> {
    let mut l = Layout { union, ..Layout::default() };
    attributes(p, &mut l)?;
    let named = matches!(p.t.peek()?, Token::Name(_));
    let name = match named {
        true => p.t.name("a name")?.0,
        false => {
            d.anonymous += 1;
            format!("(anonymous {})", d.anonymous)
        }
    };
    if !p.t.eat("{")? {
        return match named {
            true => Ok((Type::Struct(name), false)),
            false => Err(p.t.unexpected("a name or '{'")),
        };
    }
    p.t.enter()?;
    let mut list = Vec::new();
    while !p.t.eat("}")? {
        members(p, d, &mut list)?;
    }
    p.t.leave();
    attributes(p, &mut l)?;
    for m in &list {
        find(p, d, &m.ty);
    }
    list.into_iter().try_for_each(|m| l.member(m, d))?;
    d.structs.insert(name.clone(), l.finish());
    d.bodies += 1;
    Ok((Type::Struct(name), !named))
}

/// Looks for the structure that a type is made of, where the script does not declare it.
fn find(p: &Parser<'_>, d: &mut Declarations, ty: &Type) {
    match ty {
        Type::Array(of, _) => find(p, d, of),
        Type::Struct(name) if !d.structs.contains_key(name) => {
            if let Some(found) = p.sizes.and_then(|sizes| sizes(name)) {
                d.elsewhere.insert(name.clone(), found);
            }
        }
        _ => {}
    }
}

/// A member, before it has a place.
struct Written {
    name: Option<String>,
    ty: Type,
    bits: Option<(u64, Span)>,
    span: Span,
    /// A structure without a name, whose members are the outer one's.
    anonymous: bool,
}

fn members(p: &mut Parser<'_>, d: &mut Declarations, list: &mut Vec<Written>) -> Result<()> {
    let span = p.t.span()?;
    let (base, anonymous) = specifier(p, d)?;
    if p.t.eat(";")? {
        if anonymous {
            list.push(Written { name: None, ty: base, bits: None, span, anonymous });
        }
        return Ok(());
    }
    loop {
        let (name, ty, span) = if p.t.at(":")? { (None, base.clone(), span) } else { declarator(p, &base, d)? };
        let bits = match p.t.eat(":")? {
            true => Some(p.t.integer("the number of bits")?),
            false => None,
        };
        list.push(Written { name, ty, bits, span, anonymous: false });
        if !p.t.eat(",")? {
            break;
        }
    }
    // So may it behind the last member.
    if !p.t.at("}")? {
        p.t.expect(";")?;
    }
    Ok(())
}

/// `*name[4]`, `(*name)(…)`
fn declarator(p: &mut Parser<'_>, base: &Type, d: &Declarations) -> Result<(Option<String>, Type, Span)> {
    let mut ty = base.clone();
    let mut pointers = 0;
    while p.t.eat("*")? {
        qualifiers(p)?;
        pointers += 1;
        if pointers > 8 {
            return Err(p.t.unexpected("a name"));
        }
        ty = Type::Pointer(Box::new(ty), Space::Kernel);
    }
    let span = p.t.span()?;
    if p.t.eat("(")? {
        p.t.expect("*")?;
        let name = p.t.name("a name")?.0;
        p.t.expect(")")?;
        p.t.expect("(")?;
        let mut open = 1;
        while open > 0 {
            match p.t.next()?.0 {
                Token::Sym("(") => open += 1,
                Token::Sym(")") => open -= 1,
                Token::End => return Err(p.t.unexpected("')'")),
                _ => {}
            }
        }
        return Ok((Some(name), Type::Pointer(Box::new(Type::None), Space::Kernel), span));
    }
    let name = p.t.name("a name")?.0;
    let mut lengths = Vec::new();
    while p.t.eat("[")? {
        lengths.push(match p.t.at("]")? {
            true => 0,
            false => constant(p, d)? as u64,
        });
        p.t.expect("]")?;
        if lengths.len() > 8 {
            return Err(p.t.unexpected("';'"));
        }
    }
    for n in lengths.into_iter().rev() {
        ty = Type::Array(Box::new(ty), n);
    }
    if ty.weight() > MAX_WEIGHT {
        return Err(Diagnostic::new(
            Code::TooLarge,
            span,
            format!("a type that is made of more than {MAX_WEIGHT} others"),
        ));
    }
    Ok((Some(name), ty, span))
}

fn enumeration(p: &mut Parser<'_>, d: &mut Declarations) -> Result<Type> {
    let name = match p.t.peek()? {
        Token::Name(_) => p.t.name("a name")?.0,
        _ => {
            d.anonymous += 1;
            format!("(anonymous {})", d.anonymous)
        }
    };
    if !p.t.eat("{")? {
        return Ok(Type::Enum(name));
    }
    d.bodies += 1;
    let mut next = 0i64;
    d.enums.insert(name.clone(), Vec::new());
    while !p.t.eat("}")? {
        let (value, _) = p.t.name("a name")?;
        if p.t.eat("=")? {
            next = constant(p, d)?;
        }
        d.constants.insert(value.clone(), (next, name.clone()));
        d.enums.entry(name.clone()).or_default().push((value, next));
        next = next.wrapping_add(1);
        if !p.t.eat(",")? {
            p.t.expect("}")?;
            break;
        }
    }
    Ok(Type::Enum(name))
}

/// The value of a constant expression.
pub(super) fn constant(p: &mut Parser<'_>, d: &Declarations) -> Result<i64> {
    value(&p.expr()?, d)
}

/// As in C, of signed numbers; by zero 1 as in a script.
fn constant_binary(op: Binary, a: i64, b: i64) -> i64 {
    let holds = |c: Cmp| c.holds(a, b).into();
    let zero = Zero::Counted(Span::default());
    Op::of(op, true, zero).map_or_else(|| Cmp::of(op, true).map_or(0, holds), |op| op.apply(a, b))
}

fn value(e: &Expr, d: &Declarations) -> Result<i64> {
    let truth = |e: &Expr| Ok::<_, Diagnostic>(value(e, d)? != 0);
    Ok(match &e.kind {
        Kind::Int(v) => *v as i64,
        Kind::Bool(b) => (*b).into(),
        Kind::Name(n) => match d.constant(n) {
            Some((v, _)) => v,
            None => return Err(Diagnostic::new(Code::Declaration, e.span, format!("'{n}' is not a constant"))),
        },
        Kind::Unary(Unary::Minus, x) => value(x, d)?.wrapping_neg(),
        Kind::Unary(Unary::Complement, x) => !value(x, d)?,
        Kind::Unary(Unary::Not, x) => (!truth(x)?).into(),
        Kind::Binary(op, a, b) => constant_binary(*op, value(a, d)?, value(b, d)?),
        Kind::All(list) => list.iter().map(truth).collect::<Result<Vec<_>>>()?.iter().all(|t| *t).into(),
        Kind::Any(list) => list.iter().map(truth).collect::<Result<Vec<_>>>()?.iter().any(|t| *t).into(),
        Kind::Choice(c, Some(a), b) => value(if truth(c)? { a } else { b }, d)?,
        _ => return Err(Diagnostic::new(Code::Declaration, e.span, "not a constant")),
    })
}

impl Layout {
    fn member(&mut self, m: Written, d: &Declarations) -> Result<()> {
        let unknown = || {
            let e = Diagnostic::new(Code::Declaration, m.span, format!("the size of '{}' is not known here", m.ty));
            e.hint("declare it before, or make the member a pointer")
        };
        let (size, align) = d.size(&m.ty).ok_or_else(unknown)?;
        self.out.depth = self.out.depth.max(d.depth(&m.ty));
        if self.out.depth >= MAX_DEPTH {
            let message = format!("more than {MAX_DEPTH} structures within each other");
            return Err(Diagnostic::new(Code::TooLarge, m.span, message).hint("make the member a pointer"));
        }
        if let Some((width, span)) = m.bits {
            return self.bitfield(m.name, m.ty, width, span);
        }
        let align = if self.packed { 1 } else { align.max(1) };
        let offset = if self.union { 0 } else { self.bit.div_ceil(8).next_multiple_of(align) };
        match (m.name, &m.ty) {
            (Some(name), _) => self.out.members.push(Member { name, ty: m.ty, offset, bits: None }),
            (None, Type::Struct(inner)) if m.anonymous => {
                let inner = d.structs.get(inner).map(|s| s.members.clone()).unwrap_or_default();
                self.out.members.extend(inner.into_iter().map(|m| Member { offset: m.offset + offset, ..m }));
            }
            _ => {}
        }
        self.grow((offset + size) * 8, align, m.span)
    }

    fn bitfield(&mut self, name: Option<String>, ty: Type, width: u64, span: Span) -> Result<()> {
        let Some(Cast { size, .. }) = ty.as_int().filter(|c| width <= u64::from(c.size) * 8) else {
            return Err(Diagnostic::new(Code::Declaration, span, format!("'{ty}' does not have {width} bits")));
        };
        let unit = u64::from(size) * 8;
        if self.union {
            self.bit = 0;
        }
        if width == 0 || (!self.packed && self.bit / unit != (self.bit + width - 1) / unit) {
            self.bit = self.bit.next_multiple_of(unit);
        }
        // A packed field may begin in one unit and end in the next: it is read from the byte where it begins.
        let base = if self.packed { self.bit / 8 * 8 } else { self.bit / unit * unit };
        if let Some(name) = name {
            let bits = Some(((self.bit - base) as u8, width as u8));
            self.out.members.push(Member { name, ty, offset: base / 8, bits });
        }
        self.grow(self.bit + width, if self.packed { 1 } else { size.into() }, span)
    }

    fn grow(&mut self, bit: u64, align: u64, span: Span) -> Result<()> {
        self.bit = bit;
        self.out.align = self.out.align.max(align);
        self.out.size = self.out.size.max(bit.div_ceil(8));
        if self.out.size > MAX_SIZE || self.out.members.len() > 1 << 16 {
            return Err(Diagnostic::new(Code::TooLarge, span, "a structure of more than 16 MiB"));
        }
        Ok(())
    }

    fn finish(self) -> Struct {
        let align = self.out.align.max(1);
        Struct { size: self.out.size.next_multiple_of(align), align, depth: self.out.depth + 1, ..self.out }
    }
}
