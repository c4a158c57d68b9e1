//! Declarations in C: structures, unions, enumerations, typedefs, and how they lie in memory.
//!
//! Bitfields, anonymous members, arrays, pointers, `packed` and `aligned` are understood; functions and floating point are not.
//!
//! Invariant: every member of a structure lies inside of it, and no structure contains itself.

use super::diag::{Code, Diagnostic};
use super::tokens::{Result, Tokens};
use super::types::{MAX_WEIGHT, Space, Type};
use crate::ast::Cast;
use crate::diag::Span;
use crate::lex::Token;
use crate::near::did_you_mean;
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
    anonymous: usize,
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

/// So many structures may be within each other.
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
            Type::Struct(name) => self.structs.get(name).map(|s| (s.size, s.align))?,
            Type::Tuple(list) => {
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
            Type::Struct(name) => self.structs.get(name).map_or(0, |s| s.depth),
            _ => 0,
        }
    }

    /// A type by its name: one of C's, of the kernel's, of the language's, or a typedef of the script.
    pub fn named(&self, name: &str) -> Option<Type> {
        if let Some(t) = self.typedefs.get(name) {
            return Some(t.clone());
        }
        let (signed, size) = match name {
            "bool" | "_Bool" => return Some(Type::Bool),
            "void" => return Some(Type::None),
            "string" => return Some(Type::Str(63)),
            "int8" | "char" | "signed char" | "s8" | "__s8" | "int8_t" => (true, 1),
            "uint8" | "unsigned char" | "u8" | "__u8" | "uint8_t" | "u_char" => (false, 1),
            "int16" | "short" | "short int" | "s16" | "__s16" | "int16_t" => (true, 2),
            "uint16" | "unsigned short" | "u16" | "__u16" | "uint16_t" | "__be16" | "__le16" | "umode_t"
            | "sa_family_t" | "mode_t" => (false, 2),
            "int32" | "int" | "signed" | "signed int" | "s32" | "__s32" | "int32_t" | "pid_t" => (true, 4),
            "uint32" | "unsigned" | "unsigned int" | "u32" | "__u32" | "uint32_t" | "__be32" | "__le32" | "uid_t"
            | "gid_t" | "dev_t" | "gfp_t" | "u_int" => (false, 4),
            "int64" | "long" | "long int" | "long long" | "long long int" | "s64" | "__s64" | "int64_t" | "ssize_t"
            | "loff_t" | "intptr_t" | "off_t" | "ktime_t" | "time_t" => (true, 8),
            "uint64"
            | "unsigned long"
            | "unsigned long int"
            | "unsigned long long"
            | "unsigned long long int"
            | "u64"
            | "__u64"
            | "uint64_t"
            | "__be64"
            | "__le64"
            | "size_t"
            | "uintptr_t"
            | "sector_t"
            | "u_long" => (false, 8),
            _ => return None,
        };
        Some(Type::int(size, signed))
    }
}

/// Words of which the names of C's types are made.
const WORDS: &[&str] = &["unsigned", "signed", "long", "short", "int", "char"];

/// `unsigned long`, `int32`, `size_t`: as many words as belong to it. The words in the order of [`Declarations::named`].
pub(super) fn type_words(t: &mut Tokens<'_>) -> Result<String> {
    let (first, _) = t.name("a type")?;
    if !WORDS.contains(&first.as_str()) {
        return Ok(first);
    }
    let mut words = vec![first];
    while let Token::Name(n) = t.peek()? {
        if !WORDS.contains(&n.as_str()) || words.len() > 4 {
            break;
        }
        words.push(t.name("a type")?.0);
    }
    // `long unsigned int` is `unsigned long int`; `signed` says nothing but before `char`.
    words.sort_by_key(|w| (w != "unsigned", w != "signed"));
    if words.len() > 1 && words[0] == "signed" && words[1] != "char" {
        words.remove(0);
    }
    words.sort_by_key(|w| w == "int");
    Ok(words.join(" "))
}

/// `const`, `volatile` and the like mean nothing here.
fn qualifiers(t: &mut Tokens<'_>) -> Result<()> {
    while matches!(t.peek()?, Token::Name(n) if ["const", "volatile", "__user", "__rcu", "__kernel", "extern", "static"].contains(&n.as_str()))
    {
        t.next()?;
    }
    Ok(())
}

/// One declaration, up to its semicolon.
pub(super) fn declaration(t: &mut Tokens<'_>, d: &mut Declarations) -> Result<()> {
    let typedef = t.eat_name("typedef")?;
    let (base, _) = specifier(t, d)?;
    if typedef {
        let (name, ty, _) = declarator(t, &base, d)?;
        if let Some(name) = name {
            d.typedefs.insert(name, ty);
        }
    }
    if !t.at(";")? && !typedef {
        return Err(t.unexpected("';'").hint("scripts have structures, unions, enumerations and typedefs of C"));
    }
    t.expect(";")?;
    Ok(())
}

/// What stands before the names: a type, declared on the way where it has a body. And whether it had one without a name.
fn specifier(t: &mut Tokens<'_>, d: &mut Declarations) -> Result<(Type, bool)> {
    qualifiers(t)?;
    let span = t.span()?;
    let word = match t.peek()? {
        Token::Name(n) => n.clone(),
        _ => return Err(t.unexpected("a type")),
    };
    match word.as_str() {
        "struct" | "union" => {
            t.next()?;
            aggregate(t, d, word == "union")
        }
        "enum" => {
            t.next()?;
            Ok((enumeration(t, d)?, false))
        }
        "float" | "double" => {
            let e = Diagnostic::new(Code::Declaration, span, format!("'{word}': scripts have no floating point"));
            Err(e.hint("uint32 or uint64 take the same room"))
        }
        _ => {
            let name = type_words(t)?;
            qualifiers(t)?;
            // Pointers to types that nobody has declared are common.
            let unknown = || {
                let known = ["int", "char", "unsigned", "uint32_t", "uint64_t", "size_t", "struct"];
                let known = known.into_iter().chain(d.typedefs.keys().map(String::as_str));
                let e = Diagnostic::new(Code::Declaration, span, format!("unknown type '{name}'"));
                e.maybe_hint(did_you_mean("", &name, known))
            };
            match d.named(&name) {
                Some(ty) => Ok((ty, false)),
                None if t.at("*")? => Ok((Type::None, false)),
                None => Err(unknown()),
            }
        }
    }
}

fn attributes(t: &mut Tokens<'_>, l: &mut Layout) -> Result<()> {
    while t.eat_name("__attribute__")? {
        t.expect("(")?;
        t.expect("(")?;
        loop {
            let (name, span) = t.name("an attribute")?;
            match name.trim_matches('_') {
                "packed" => l.packed = true,
                "aligned" => {
                    t.expect("(")?;
                    let (n, span) = t.integer("a power of two")?;
                    if !n.is_power_of_two() || n > 4096 {
                        return Err(Diagnostic::new(Code::Declaration, span, "not an alignment")
                            .hint("a power of two up to 4096"));
                    }
                    l.out.align = l.out.align.max(n);
                    t.expect(")")?;
                }
                "preserve_access_index" | "unused" => {}
                _ => {
                    let e = Diagnostic::new(Code::Declaration, span, format!("unknown attribute '{name}'"));
                    return Err(e.hint("packed and aligned(n) are known"));
                }
            }
            if !t.eat(",")? {
                break;
            }
        }
        t.expect(")")?;
        t.expect(")")?;
    }
    Ok(())
}

fn aggregate(t: &mut Tokens<'_>, d: &mut Declarations, union: bool) -> Result<(Type, bool)> {
    let mut l = Layout { union, ..Layout::default() };
    attributes(t, &mut l)?;
    let named = matches!(t.peek()?, Token::Name(_));
    let name = match named {
        true => t.name("a name")?.0,
        false => {
            d.anonymous += 1;
            format!("(anonymous {})", d.anonymous)
        }
    };
    if !t.eat("{")? {
        return match named {
            true => Ok((Type::Struct(name), false)),
            false => Err(t.unexpected("a name or '{'")),
        };
    }
    t.enter()?;
    let mut list = Vec::new();
    while !t.eat("}")? {
        members(t, d, &mut list)?;
    }
    t.leave();
    attributes(t, &mut l)?;
    list.into_iter().try_for_each(|m| l.member(m, d))?;
    d.structs.insert(name.clone(), l.finish());
    Ok((Type::Struct(name), !named))
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

fn members(t: &mut Tokens<'_>, d: &mut Declarations, list: &mut Vec<Written>) -> Result<()> {
    let span = t.span()?;
    let (base, anonymous) = specifier(t, d)?;
    if t.eat(";")? {
        if anonymous {
            list.push(Written { name: None, ty: base, bits: None, span, anonymous });
        }
        return Ok(());
    }
    loop {
        let (name, ty, span) = if t.at(":")? { (None, base.clone(), span) } else { declarator(t, &base, d)? };
        let bits = match t.eat(":")? {
            true => Some(t.integer("the number of bits")?),
            false => None,
        };
        list.push(Written { name, ty, bits, span, anonymous: false });
        if !t.eat(",")? {
            break;
        }
    }
    t.expect(";")?;
    Ok(())
}

/// `*name[4]`, `(*name)(…)`
fn declarator(t: &mut Tokens<'_>, base: &Type, d: &Declarations) -> Result<(Option<String>, Type, Span)> {
    let mut ty = base.clone();
    let mut pointers = 0;
    while t.eat("*")? {
        qualifiers(t)?;
        pointers += 1;
        if pointers > 8 {
            return Err(t.unexpected("a name"));
        }
        ty = Type::Pointer(Box::new(ty), Space::Kernel);
    }
    let span = t.span()?;
    if t.eat("(")? {
        t.expect("*")?;
        let name = t.name("a name")?.0;
        t.expect(")")?;
        t.expect("(")?;
        let mut open = 1;
        while open > 0 {
            match t.next()?.0 {
                Token::Sym("(") => open += 1,
                Token::Sym(")") => open -= 1,
                Token::End => return Err(t.unexpected("')'")),
                _ => {}
            }
        }
        return Ok((Some(name), Type::Pointer(Box::new(Type::None), Space::Kernel), span));
    }
    let name = t.name("a name")?.0;
    let mut lengths = Vec::new();
    while t.eat("[")? {
        lengths.push(match t.at("]")? {
            true => 0,
            false => constant(t, d)? as u64,
        });
        t.expect("]")?;
        if lengths.len() > 8 {
            return Err(t.unexpected("';'"));
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

fn enumeration(t: &mut Tokens<'_>, d: &mut Declarations) -> Result<Type> {
    let name = match t.peek()? {
        Token::Name(_) => t.name("a name")?.0,
        _ => {
            d.anonymous += 1;
            format!("(anonymous {})", d.anonymous)
        }
    };
    if !t.eat("{")? {
        return Ok(Type::Enum(name));
    }
    let mut next = 0i64;
    d.enums.insert(name.clone(), Vec::new());
    while !t.eat("}")? {
        let (value, _) = t.name("a name")?;
        if t.eat("=")? {
            next = constant(t, d)?;
        }
        d.constants.insert(value.clone(), (next, name.clone()));
        d.enums.entry(name.clone()).or_default().push((value, next));
        next = next.wrapping_add(1);
        if !t.eat(",")? {
            t.expect("}")?;
            break;
        }
    }
    Ok(Type::Enum(name))
}

/// An integer constant expression: all of C's operators but `?:`, `sizeof` aside.
pub(super) fn constant(t: &mut Tokens<'_>, d: &Declarations) -> Result<i64> {
    constant_from(t, d, 0)
}

fn constant_from(t: &mut Tokens<'_>, d: &Declarations, min: u8) -> Result<i64> {
    use crate::ast::Binary;
    t.enter()?;
    let mut left = constant_unary(t, d)?;
    while let Token::Sym(s) = t.peek()? {
        let logic = [("||", 1u8), ("&&", 2)].into_iter().find(|(name, p)| name == s && *p >= min);
        if let Some((name, power)) = logic {
            t.next()?;
            let right = constant_from(t, d, power + 1)?;
            left = i64::from(if name == "||" { left != 0 || right != 0 } else { left != 0 && right != 0 });
            continue;
        }
        let Some((op, _, power)) = Binary::ALL.iter().find(|(_, name, power)| name == s && *power >= min) else {
            break;
        };
        t.next()?;
        let right = constant_from(t, d, power + 1)?;
        left = super::ops::constant_binary(*op, left, right);
    }
    t.leave();
    Ok(left)
}

fn constant_unary(t: &mut Tokens<'_>, d: &Declarations) -> Result<i64> {
    t.enter()?;
    let (token, span) = t.next()?;
    let v = match token {
        Token::Int(v) => v,
        Token::Sym("-") => constant_unary(t, d)?.wrapping_neg(),
        Token::Sym("~") => !constant_unary(t, d)?,
        Token::Sym("!") => i64::from(constant_unary(t, d)? == 0),
        Token::Sym("(") => {
            let v = constant_from(t, d, 0)?;
            t.expect(")")?;
            v
        }
        Token::Name(n) => match d.constant(&n) {
            Some((v, _)) => v,
            None => return Err(Diagnostic::new(Code::Declaration, span, format!("'{n}' is not a constant"))),
        },
        _ => return Err(Diagnostic::new(Code::Syntax, span, "expected a constant")),
    };
    t.leave();
    Ok(v)
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
