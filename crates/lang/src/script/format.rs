//! Formats of printf: text and what is put into it. How a value is written is the views' business.
//!
//! Invariant: widths and precisions are at most [`MAX_WIDTH`].

use super::types::Type;
use crate::diag::{Code, Diagnostic, Span};
use crate::tokens::Result;

/// The widest field.
pub const MAX_WIDTH: u32 = 4096;
/// The most values that one format takes.
pub const MAX_ARGS: usize = 32;

/// A format.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Format {
    /// Its pieces, in their order.
    pub pieces: Vec<Piece>,
}

/// A piece of a format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// As it is.
    Text(Vec<u8>),
    /// A value: the next one.
    Value(Spec),
}

/// How a value is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spec {
    /// `-`
    pub left: bool,
    /// `+`
    pub plus: bool,
    /// A blank.
    pub blank: bool,
    /// `#`
    pub alternate: bool,
    /// `0`
    pub zeros: bool,
    /// `@`: the value of a map, in `printa`.
    pub of_map: bool,
    /// At least this many characters.
    pub width: u32,
    /// Digits at least, or characters at most.
    pub precision: Option<u32>,
    /// Bytes of an integer that are shown.
    pub size: u8,
    /// As what.
    pub as_: As,
}

/// As what a value is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum As {
    Signed,
    Unsigned,
    Octal,
    Hex {
        upper: bool,
    },
    Character,
    Text,
    Pointer,
    /// Bytes: as text, all in hexadecimal, or in hexadecimal with blanks.
    Bytes,
    BytesHex,
    BytesBlanks,
    /// Flags of the kernel's allocator.
    Gfp,
}

impl Format {
    /// Reads one. `span` is that of the string.
    pub(super) fn parse(text: &[u8], span: Span) -> Result<Format> {
        let (mut pieces, mut plain, mut rest) = (Vec::new(), Vec::new(), text);
        while let Some((&c, after)) = rest.split_first() {
            rest = after;
            if c != b'%' {
                plain.push(c);
                continue;
            }
            if let Some(after) = rest.strip_prefix(b"%") {
                plain.push(b'%');
                rest = after;
                continue;
            }
            let (spec, after) = spec(rest).ok_or_else(|| unknown(rest, span))?;
            if spec.as_ == As::Gfp {
                let e = Diagnostic::new(Code::Unsupported, span, "'%gr' is not in this version");
                return Err(e.hint("%x shows the flags as a number"));
            }
            if !plain.is_empty() {
                pieces.push(Piece::Text(std::mem::take(&mut plain)));
            }
            pieces.push(Piece::Value(spec));
            rest = after;
        }
        if !plain.is_empty() {
            pieces.push(Piece::Text(plain));
        }
        Ok(Format { pieces })
    }

    /// A line of columns.
    pub(super) fn columns(specs: impl Iterator<Item = Spec>) -> Format {
        let mut pieces = Vec::new();
        for spec in specs {
            if !pieces.is_empty() {
                pieces.push(Piece::Text(b" ".into()));
            }
            pieces.push(Piece::Value(spec));
        }
        pieces.push(Piece::Text(b"\n".into()));
        Format { pieces }
    }

    /// How many values it takes.
    pub fn values(&self) -> impl Iterator<Item = &Spec> {
        self.pieces.iter().filter_map(|p| if let Piece::Value(s) = p { Some(s) } else { None })
    }
}

impl Spec {
    /// For values of a type, in a column: numbers to the right, what has a name to the left.
    pub(super) fn column(ty: &Type, of_map: bool) -> Spec {
        let text = Spec { as_: As::Text, left: true, width: 32, of_map, ..Spec::PLAIN };
        match ty {
            Type::Buffer(_) => Spec { as_: As::Bytes, ..text },
            ty if text.takes(ty) => text,
            ty => {
                let signed = ty.as_int().is_some_and(|c| c.signed);
                Spec { as_: if signed { As::Signed } else { As::Unsigned }, width: 16, of_map, ..Spec::PLAIN }
            }
        }
    }

    const PLAIN: Spec = Spec {
        left: false,
        plus: false,
        blank: false,
        alternate: false,
        zeros: false,
        of_map: false,
        width: 0,
        precision: None,
        size: 0,
        as_: As::Signed,
    };

    /// As it is written, without flags.
    pub fn name(&self) -> &'static str {
        match self.as_ {
            As::Signed => "%d",
            As::Unsigned => "%u",
            As::Octal => "%o",
            As::Hex { upper: false } => "%x",
            As::Hex { upper: true } => "%X",
            As::Character => "%c",
            As::Text => "%s",
            As::Pointer => "%p",
            As::Bytes => "%r",
            As::BytesHex => "%rx",
            As::BytesBlanks => "%rh",
            As::Gfp => "%gr",
        }
    }

    /// Whether values of the type are written so.
    pub(super) fn takes(&self, ty: &Type) -> bool {
        match self.as_ {
            As::Text => {
                ty.is_text()
                    || matches!(
                        ty,
                        Type::Enum(_) | Type::Stack(..) | Type::Symbol(_) | Type::User | Type::Bool | Type::Buffer(_)
                    )
            }
            As::Bytes | As::BytesHex | As::BytesBlanks => matches!(ty, Type::Buffer(_)),
            _ => ty.as_int().is_some(),
        }
    }

    /// What to write for values of the type, if there is a way.
    pub(super) fn instead(ty: &Type) -> Option<&'static str> {
        match ty {
            Type::Buffer(_) => Some("%r"),
            t if t.as_int().is_some() => Some("%d"),
            t if t.is_text() => Some("%s"),
            Type::Stack(..) => Some("%s"),
            _ => None,
        }
    }
}

fn unknown(rest: &[u8], span: Span) -> Diagnostic {
    let shown = String::from_utf8_lossy(&rest[..rest.len().min(8)]).into_owned();
    let e =
        Diagnostic::new(Code::Format, span, format!("what follows the % is not known: {}", crate::diag::quote(&shown)));
    e.hint("there are %d %i %u %x %X %o %c %s %p %r %rx %rh, and %% for a percent sign")
}

/// What follows a `%`, and the rest.
fn spec(text: &[u8]) -> Option<(Spec, &[u8])> {
    let mut s = Spec::PLAIN;
    let mut rest = text;
    loop {
        match rest.first()? {
            b'-' => s.left = true,
            b'+' => s.plus = true,
            b' ' => s.blank = true,
            b'#' => s.alternate = true,
            b'0' => s.zeros = true,
            b'@' => s.of_map = true,
            b'\'' => {}
            _ => break,
        }
        rest = &rest[1..];
    }
    s.width = number(&mut rest)?;
    if let Some(after) = rest.strip_prefix(b".") {
        rest = after;
        s.precision = Some(number(&mut rest)?);
    }
    let lengths: [(&[u8], u8); 7] = [(b"hh", 1), (b"h", 2), (b"ll", 8), (b"l", 8), (b"j", 8), (b"z", 8), (b"t", 8)];
    if let Some((name, size)) = lengths.iter().find(|(name, _)| rest.starts_with(name)) {
        s.size = *size;
        rest = &rest[name.len()..];
    }
    let forms: [(&[u8], As); 14] = [
        (b"rx", As::BytesHex),
        (b"rh", As::BytesBlanks),
        (b"r", As::Bytes),
        (b"gr", As::Gfp),
        (b"d", As::Signed),
        (b"i", As::Signed),
        (b"u", As::Unsigned),
        (b"o", As::Octal),
        (b"x", As::Hex { upper: false }),
        (b"X", As::Hex { upper: true }),
        (b"c", As::Character),
        (b"s", As::Text),
        (b"p", As::Pointer),
        (b"", As::Signed),
    ];
    let (name, as_) = forms.iter().find(|(name, _)| rest.starts_with(name)).filter(|f| !f.0.is_empty())?;
    s.as_ = *as_;
    Some((s, &rest[name.len()..]))
}

fn number(rest: &mut &[u8]) -> Option<u32> {
    let digits = rest.iter().take_while(|c| c.is_ascii_digit()).count();
    let (number, after) = rest.split_at(digits);
    *rest = after;
    if digits == 0 {
        return Some(0);
    }
    std::str::from_utf8(number).ok()?.parse().ok().filter(|n| *n <= MAX_WIDTH)
}
