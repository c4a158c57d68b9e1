//! Values of function calls: what arguments and results are ([`Signature`]), and how their bytes in a record are to be taken.
//!
//! A signature is text, which `functions:signature` events have ([`class`]): values as `name:shape`, separated by `;`, then `>` and the
//! shape of the result. Names have letters, digits and `_`; every other byte is `%` and two digits.
//!
//! | shape | value | bytes in the record |
//! |---|---|---|
//! | `i4` `u8` | an integer: signed or not, bytes | this many |
//! | `b1` `c4` | a truth value, a character | this many |
//! | `f8` | a floating-point number; `f16`: 10 bytes of x87 | this many |
//! | `i4[0=RED,1=GREEN]` | an enumeration | this many |
//! | `p` | an address | 8 |
//! | `a16` | characters in a structure | this many |
//! | `s` | the text that an address leads to | a head, the text |
//! | `T` | a string of Rust, by its address | a head, the string itself, if it was read; then a head, the text |
//! | `{x@0:i4,name@8:s}16` | a structure: its members and their offsets, its bytes | this many; then a head and the text for each `s` |
//! | `*{x@0:i4}16` | the address of a structure | a head, this many bytes; if they were read, texts as above |
//! | `?` | not known | none |
//!
//! Heads are those of `abi::values`. A hostile text or record gives other values, and nothing else.

use crate::dynamic::{self, Field};
use crate::schema::Schema;
use crate::types::{Fmt, Int, StrKind, Type};
use std::fmt::Write;
use std::sync::LazyLock;

/// In a head: how many bytes follow (`abi::values`, as the next ones).
pub const LENGTH: u16 = 0x0fff;
/// In a head: there is more of the string.
pub const CUT: u16 = 0x1000;
/// In a head: nothing could be read there; what follows is the address.
pub const FAULT: u16 = 0x2000;
/// In a head: the pointer is null.
pub const NULL: u16 = 0x4000;
/// In a head: the memory ends within the string.
pub const ENDS: u16 = 0x8000;

/// The name of a further argument: the text that the argument with this name leads to, which itself is an address.
pub fn text_of(name: &str) -> String {
    format!("str({name})")
}

/// The most values of a signature, members of a structure, and names of an enumeration.
pub const MOST: usize = 64;
/// The longest text of a signature.
const LONGEST: usize = 1 << 16;

/// The name of [`class`].
pub const CLASS: &str = "functions:signature";

/// The class of events that say what the arguments of a function are: `signature`, `number`. It is made when it is first asked for.
pub fn class() -> &'static Schema {
    static MADE: LazyLock<Option<&'static Schema>> = LazyLock::new(|| {
        let int = Type::Int(Int { size: 8, signed: false, fmt: Fmt::Dec });
        let fields = [("signature", Type::Str(StrKind::Text)), ("number", int)];
        dynamic::class(CLASS, &fields.map(|(name, ty)| Field { name: name.into(), ty })).ok()
    });
    MADE.unwrap_or(&crate::generated::P_RESUMED)
}

/// How the bytes of a value are taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shape {
    /// An integer, with the names of some values.
    Int {
        /// Bytes: 1, 2, 4, 8 or 16.
        size: u8,
        /// It has a sign.
        signed: bool,
        /// Names of an enumeration's values.
        names: Vec<(i64, String)>,
    },
    /// A truth value of this many bytes.
    Bool(u8),
    /// A character of this many bytes.
    Char(u8),
    /// A floating-point number: 4 or 8 bytes, or 16 with the 10 of x87.
    Float(u8),
    /// An address.
    Pointer,
    /// Characters in place, up to the first NUL.
    Chars(u16),
    /// The text that an address leads to.
    Text,
    /// A string of Rust, by its address.
    String,
    /// A structure.
    Struct(Struct),
    /// The address of a structure.
    To(Struct),
    /// Not known.
    Unknown,
}

/// A structure.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Struct {
    /// Names, offsets and shapes of its members, which are no structures.
    pub members: Vec<(String, u16, Shape)>,
    /// Bytes.
    pub size: u16,
}

/// What a function takes and returns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Signature {
    /// Names and shapes of its arguments.
    pub arguments: Vec<(String, Shape)>,
    /// None: it returns nothing.
    pub result: Option<Shape>,
}

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub enum Value<'s> {
    /// An integer.
    Signed(i128),
    /// An integer.
    Unsigned(u128),
    /// A value of an enumeration that has a name.
    Named(&'s str),
    /// A truth value.
    Bool(bool),
    /// A character.
    Char(u32),
    /// A number of this many bytes: 4, 8, or 16 with the bytes of x87 rounded.
    Float(f64, u8),
    /// An address.
    Address(u64),
    /// The null pointer.
    Null,
    /// Text, and whether it goes on.
    Text(Vec<u8>, bool),
    /// Members of a structure.
    Members(Vec<(&'s str, Value<'s>)>),
    /// Not known: it could not be found, or the record was full.
    Unknown,
}

impl Value<'_> {
    /// It as an integer of 64 bits; `shape` is that of the value. None where it is none.
    pub fn number(&self, shape: &Shape) -> Option<i64> {
        match (self, shape) {
            (Value::Signed(n), _) => i64::try_from(*n).ok(),
            (Value::Unsigned(n), _) => u64::try_from(*n).ok().map(|n| n as i64),
            (Value::Named(name), Shape::Int { names, .. }) => names.iter().find(|n| n.1 == *name).map(|n| n.0),
            (Value::Bool(b), _) => Some((*b).into()),
            (Value::Char(c), _) => Some((*c).into()),
            (Value::Address(a), _) => Some(*a as i64),
            (Value::Null, _) => Some(0),
            _ => None,
        }
    }
}

impl Signature {
    /// Its text.
    pub fn text(&self) -> String {
        let mut out = String::new();
        for (name, shape) in &self.arguments {
            write_name(&mut out, name);
            out.push(':');
            shape.write(&mut out);
            out.push(';');
        }
        if let Some(result) = &self.result {
            out.push('>');
            result.write(&mut out);
        }
        out
    }

    /// From its text; None where it is none.
    pub fn parse(text: &str) -> Option<Signature> {
        if text.len() > LONGEST {
            return None;
        }
        let mut p = Parser { rest: text.as_bytes() };
        let mut signature = Signature::default();
        while !p.rest.is_empty() && !p.takes(b'>') {
            let name = p.name();
            p.needs(b':')?;
            let shape = p.shape(true)?;
            p.needs(b';')?;
            signature.arguments.push((name, shape));
            if signature.arguments.len() > MOST {
                return None;
            }
        }
        if text.contains('>') {
            signature.result = Some(p.shape(true)?);
        }
        p.rest.is_empty().then_some(signature)
    }

    /// The values of arguments in a record of an entry.
    pub fn arguments<'s>(&'s self, values: &[u8]) -> Vec<(&'s str, Value<'s>)> {
        let mut bytes = Bytes(values);
        self.arguments.iter().map(|(name, shape)| (name.as_str(), shape.value(&mut bytes))).collect()
    }

    /// The result in a record of an exit.
    pub fn result(&self, values: &[u8]) -> Option<Value<'_>> {
        Some(self.result.as_ref()?.value(&mut Bytes(values)))
    }
}

fn write_name(out: &mut String, name: &str) {
    for b in name.bytes() {
        if b.is_ascii_alphanumeric() || b == b'_' {
            out.push(b.into());
        } else {
            let _ = write!(out, "%{b:02x}");
        }
    }
}

impl Shape {
    fn write(&self, out: &mut String) {
        let _ = match self {
            Shape::Int { size, signed, names } => {
                let _ = write!(out, "{}{size}", if *signed { 'i' } else { 'u' });
                if !names.is_empty() {
                    for (i, (value, name)) in names.iter().enumerate() {
                        let _ = write!(out, "{}{value}=", if i == 0 { '[' } else { ',' });
                        write_name(out, name);
                    }
                    out.push(']');
                }
                Ok(())
            }
            Shape::Bool(size) => write!(out, "b{size}"),
            Shape::Char(size) => write!(out, "c{size}"),
            Shape::Float(size) => write!(out, "f{size}"),
            Shape::Pointer => write!(out, "p"),
            Shape::Chars(size) => write!(out, "a{size}"),
            Shape::Text => write!(out, "s"),
            Shape::String => write!(out, "T"),
            Shape::Struct(s) => {
                s.write(out);
                Ok(())
            }
            Shape::To(s) => {
                out.push('*');
                s.write(out);
                Ok(())
            }
            Shape::Unknown => write!(out, "?"),
        };
    }

    /// Takes its value from the front of a record's values.
    fn value<'s>(&'s self, bytes: &mut Bytes<'_>) -> Value<'s> {
        self.taken(bytes).unwrap_or_else(|| {
            // What follows cannot be found either.
            bytes.0 = &[];
            Value::Unknown
        })
    }

    fn taken<'s>(&'s self, bytes: &mut Bytes<'_>) -> Option<Value<'s>> {
        Some(match self {
            Shape::Text => bytes.text()?,
            Shape::String => match bytes.head()? {
                (head, _) if head & NULL != 0 => Value::Null,
                (head, at) if head & FAULT != 0 => address(at),
                _ => bytes.text()?,
            },
            Shape::Struct(s) => {
                let own = bytes.take(s.size.into())?;
                Value::Members(s.values(own, bytes))
            }
            Shape::To(s) => match bytes.head()? {
                (head, _) if head & NULL != 0 => Value::Null,
                (head, at) if head & FAULT != 0 => address(at),
                (_, own) => Value::Members(s.values(own, bytes)),
            },
            plain => plain.plain(bytes.take(plain.size())?),
        })
    }

    /// Bytes of a value that is in place.
    fn size(&self) -> usize {
        match self {
            Shape::Int { size, .. } | Shape::Bool(size) | Shape::Char(size) => (*size).into(),
            Shape::Float(16) => 10,
            Shape::Float(size) => (*size).into(),
            Shape::Pointer => 8,
            Shape::Chars(size) => (*size).into(),
            _ => 0,
        }
    }

    /// A value that is in place.
    fn plain<'s>(&'s self, bytes: &[u8]) -> Value<'s> {
        let mut word = [0; 16];
        word.iter_mut().zip(bytes).for_each(|(to, b)| *to = *b);
        let bits = u128::from_le_bytes(word);
        match self {
            Shape::Int { size, signed, names } => {
                let unused = 128 - 8 * u32::from(*size).clamp(1, 16);
                let value = (bits << unused) as i128 >> unused;
                let named = |v: i128| names.iter().find(|(n, _)| i128::from(*n) == v).map(|(_, name)| name.as_str());
                match (named(if *signed { value } else { bits as i128 }), signed) {
                    (Some(name), _) => Value::Named(name),
                    (None, true) => Value::Signed(value),
                    (None, false) => Value::Unsigned(bits),
                }
            }
            Shape::Bool(_) => Value::Bool(bits != 0),
            Shape::Char(_) => Value::Char(bits as u32),
            Shape::Float(4) => Value::Float(f32::from_bits(bits as u32).into(), 4),
            Shape::Float(8) => Value::Float(f64::from_bits(bits as u64), 8),
            Shape::Float(_) => Value::Float(extended(bits), 16),
            Shape::Pointer if bits == 0 => Value::Null,
            Shape::Pointer => Value::Address(bits as u64),
            Shape::Chars(_) => {
                let end = bytes.iter().position(|b| *b == 0);
                Value::Text(bytes[..end.unwrap_or(bytes.len())].to_vec(), end.is_none())
            }
            _ => Value::Unknown,
        }
    }
}

/// A number of x87, as near as 64 bits come.
fn extended(bits: u128) -> f64 {
    let (mantissa, exponent) = (bits as u64, (bits >> 64) as u16);
    let sign = if exponent & 0x8000 != 0 { -1.0 } else { 1.0 };
    sign * match exponent & 0x7fff {
        0x7fff if mantissa << 1 == 0 => f64::INFINITY,
        0x7fff => f64::NAN,
        e => mantissa as f64 * f64::powi(2.0, (i32::from(e) - 16383 - 63).max(-1000)),
    }
}

fn address(bytes: &[u8]) -> Value<'static> {
    Value::Address(bytes.first_chunk().map_or(0, |b| u64::from_le_bytes(*b)))
}

impl Struct {
    fn write(&self, out: &mut String) {
        out.push('{');
        for (i, (name, offset, shape)) in self.members.iter().enumerate() {
            if i > 0 {
                out.push(',');
            }
            write_name(out, name);
            let _ = write!(out, "@{offset}:");
            shape.write(out);
        }
        let _ = write!(out, "}}{}", self.size);
    }

    fn values<'s>(&'s self, own: &[u8], rest: &mut Bytes<'_>) -> Vec<(&'s str, Value<'s>)> {
        let mut all = Vec::new();
        for (name, offset, shape) in &self.members {
            let value = match shape {
                Shape::Text => shape.value(rest),
                shape => {
                    let at = usize::from(*offset);
                    own.get(at..at + shape.size()).map_or(Value::Unknown, |b| shape.plain(b))
                }
            };
            all.push((name.as_str(), value));
        }
        all
    }
}

/// Values that have not been taken yet.
struct Bytes<'v>(&'v [u8]);

impl<'v> Bytes<'v> {
    fn take(&mut self, n: usize) -> Option<&'v [u8]> {
        let (first, rest) = self.0.split_at_checked(n)?;
        self.0 = rest;
        Some(first)
    }

    fn head(&mut self) -> Option<(u16, &'v [u8])> {
        let head = u16::from_le_bytes(*self.take(2)?.first_chunk()?);
        Some((head, self.take((head & LENGTH).into())?))
    }

    fn text(&mut self) -> Option<Value<'static>> {
        Some(match self.head()? {
            (head, _) if head & NULL != 0 => Value::Null,
            (head, at) if head & FAULT != 0 => address(at),
            (head, text) => Value::Text(text.to_vec(), head & (CUT | ENDS) != 0),
        })
    }
}

struct Parser<'t> {
    rest: &'t [u8],
}

impl Parser<'_> {
    fn takes(&mut self, b: u8) -> bool {
        let Some(rest) = self.rest.strip_prefix(&[b]) else { return false };
        self.rest = rest;
        true
    }

    fn needs(&mut self, b: u8) -> Option<()> {
        self.takes(b).then_some(())
    }

    fn name(&mut self) -> String {
        let is_name = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'%');
        let n = self.rest.iter().position(|b| !is_name(b)).unwrap_or(self.rest.len());
        let (mut name, rest) = self.rest.split_at(n);
        self.rest = rest;
        let mut out = Vec::with_capacity(n);
        while let Some((first, rest)) = name.split_first() {
            let digits = rest.first_chunk::<2>().and_then(|d| std::str::from_utf8(d).ok());
            match digits.filter(|_| *first == b'%').and_then(|d| u8::from_str_radix(d, 16).ok()) {
                Some(b) => {
                    out.push(b);
                    name = &rest[2..];
                }
                None => {
                    out.push(*first);
                    name = rest;
                }
            }
        }
        String::from_utf8_lossy(&out).into_owned()
    }

    fn number<T: std::str::FromStr>(&mut self) -> Option<T> {
        let n = self.rest.iter().position(|b| !b.is_ascii_digit() && *b != b'-').unwrap_or(self.rest.len());
        let (digits, rest) = self.rest.split_at(n);
        self.rest = rest;
        std::str::from_utf8(digits).ok()?.parse().ok()
    }

    fn shape(&mut self, outer: bool) -> Option<Shape> {
        let (first, rest) = self.rest.split_first()?;
        if *first != b'{' {
            self.rest = rest;
        }
        Some(match first {
            b'i' | b'u' => {
                let size = self.number().filter(|n| (1..=16).contains(n))?;
                let mut names = Vec::new();
                let more = self.takes(b'[');
                while more && !self.takes(b']') {
                    let value = self.number()?;
                    self.needs(b'=')?;
                    names.push((value, self.name()));
                    self.takes(b',');
                    if names.len() > MOST {
                        return None;
                    }
                }
                Shape::Int { size, signed: *first == b'i', names }
            }
            b'b' => Shape::Bool(self.number().filter(|n| *n <= 16)?),
            b'c' => Shape::Char(self.number().filter(|n| *n <= 16)?),
            b'f' => Shape::Float(self.number().filter(|n| [4, 8, 16].contains(n))?),
            b'p' => Shape::Pointer,
            b'a' => Shape::Chars(self.number()?),
            b's' => Shape::Text,
            b'T' if outer => Shape::String,
            b'{' if outer => Shape::Struct(self.structure()?),
            b'*' if outer => Shape::To(self.structure()?),
            b'?' => Shape::Unknown,
            _ => return None,
        })
    }

    fn structure(&mut self) -> Option<Struct> {
        self.needs(b'{')?;
        let mut members = Vec::new();
        while !self.takes(b'}') {
            let name = self.name();
            self.needs(b'@')?;
            let offset = self.number()?;
            self.needs(b':')?;
            members.push((name, offset, self.shape(false)?));
            self.takes(b',');
            if members.len() > MOST {
                return None;
            }
        }
        Some(Struct { members, size: self.number()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn int(size: u8) -> Shape {
        Shape::Int { size, signed: true, names: Vec::new() }
    }

    fn point() -> Struct {
        let names = vec![(-1, "NO".into()), (7, "a::B<c>".into())];
        let mood = Shape::Int { size: 1, signed: true, names };
        let members = vec![
            ("x".into(), 0, int(4)),
            ("name".into(), 8, Shape::Text),
            ("mood".into(), 16, mood),
            ("tag".into(), 17, Shape::Chars(3)),
        ];
        Struct { members, size: 24 }
    }

    #[test]
    fn a_signature_is_its_text() {
        let arguments = vec![
            ("n".into(), Shape::Int { size: 8, signed: false, names: Vec::new() }),
            ("{x} é".into(), Shape::Text),
            (String::new(), Shape::To(point())),
            ("s".into(), Shape::Struct(point())),
            ("f".into(), Shape::Float(16)),
            ("t".into(), Shape::String),
            ("o".into(), Shape::Unknown),
        ];
        let all = Signature { arguments, result: Some(Shape::Bool(1)) };
        assert_eq!(Signature::parse(&all.text()), Some(all.clone()), "{}", all.text());
        let none = Signature { result: None, ..all };
        assert_eq!(Signature::parse(&none.text()), Some(none));
        assert_eq!(Signature::parse(""), Some(Signature::default()));
        for bad in ["n", "n:", "n:i4", "n:x4;", "n:i99;", ">", "n:{x@0:{y@0:i4}4}4;", "n:{x@0;}", ">i4;", "n:*i4;"] {
            assert_eq!(Signature::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn values_are_taken_in_order_and_end_with_the_record() {
        let signature = Signature {
            arguments: vec![("n".into(), int(2)), ("p".into(), Shape::To(point())), ("s".into(), Shape::Text)],
            result: Some(Shape::Float(4)),
        };
        let mut bytes = (-5i16).to_le_bytes().to_vec();
        bytes.extend(24u16.to_le_bytes());
        bytes.extend([1, 0, 0, 0, 0, 0, 0, 0, 9, 9, 9, 9, 9, 9, 9, 9, 7, b'a', b'b', 0, 0, 0, 0, 0]);
        bytes.extend((2 | CUT).to_le_bytes());
        bytes.extend(b"hi");
        bytes.extend((8 | FAULT).to_le_bytes());
        bytes.extend(16u64.to_le_bytes());
        let text = |t: &str, more| Value::Text(t.as_bytes().to_vec(), more);
        let members = vec![
            ("x", Value::Signed(1)),
            ("name", text("hi", true)),
            ("mood", Value::Named("a::B<c>")),
            ("tag", text("ab", false)),
        ];
        let want = [("n", Value::Signed(-5)), ("p", Value::Members(members)), ("s", Value::Address(16))];
        assert_eq!(signature.arguments(&bytes), want);
        assert_eq!(signature.result(&1.5f32.to_le_bytes()), Some(Value::Float(1.5, 4)));
        for n in 0..bytes.len() {
            let cut = signature.arguments(&bytes[..n]);
            assert!(cut.len() == 3 && cut[2].1 == Value::Unknown, "{n}: {cut:?}");
        }
        assert_eq!(extended((16384 << 64) | 0xc000_0000_0000_0000), 3.0);
    }
}
