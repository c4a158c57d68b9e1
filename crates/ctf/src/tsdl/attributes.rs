//! Attributes, `name = value;`, and what their values mean.

use std::borrow::Cow;

use super::Fault;
use super::lexer::Pos;
use crate::identifiers::clip;
use crate::model::{Base, ByteOrder, Encoding};

/// What follows `=`.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value<'a> {
    Number(i128),
    Text(Cow<'a, str>),
    Path(Vec<&'a str>),
}

/// `name = value;`
#[derive(Clone, Debug)]
pub(super) struct Attribute<'a> {
    pub name: Cow<'a, str>,
    pub value: Value<'a>,
    /// Where the value is.
    pub pos: Pos,
}

impl<'a> Attribute<'a> {
    fn fail<T>(&self, message: impl Into<String>) -> Result<T, Fault> {
        Err(Fault::at(self.pos, message))
    }
    /// The value as a word.
    pub fn word(&self) -> Result<Cow<'a, str>, Fault> {
        match &self.value {
            Value::Text(s) => Ok(s.clone()),
            Value::Path(p) => Ok(joined(p)),
            Value::Number(_) => self.fail(format!("`{}` is a name, not a number", self.name)),
        }
    }
    /// The value as an integer in a range.
    pub fn number(&self, low: i128, high: i128) -> Result<i128, Fault> {
        match self.value {
            Value::Number(n) if (low..=high).contains(&n) => Ok(n),
            _ => self.fail(format!("`{}` is an integer from {low} to {high}", clip(&self.name))),
        }
    }
    pub fn u32(&self, low: u32, high: u32) -> Result<u32, Fault> {
        Ok(self.number(low.into(), high.into())? as u32)
    }
    pub fn u64(&self) -> Result<u64, Fault> {
        Ok(self.number(0, u64::MAX.into())? as u64)
    }
    pub fn i64(&self) -> Result<i64, Fault> {
        Ok(self.number(i64::MIN.into(), i64::MAX.into())? as i64)
    }
    /// A power of two.
    pub fn alignment(&self) -> Result<u32, Fault> {
        match self.value {
            Value::Number(n) if alignment(n) => Ok(n as u32),
            _ => self.fail("an alignment is a power of two up to 65536"),
        }
    }
    pub fn truth(&self) -> Result<bool, Fault> {
        let path = match &self.value {
            Value::Number(n) => return Ok(*n != 0),
            Value::Path(p) => joined(p),
            Value::Text(_) => Cow::Borrowed(""),
        };
        match &*path {
            "true" | "TRUE" => Ok(true),
            "false" | "FALSE" => Ok(false),
            _ => self.fail(format!("`{}` is true or false", clip(&self.name))),
        }
    }
    /// An order of bytes; `native` is that of the trace.
    pub fn order(&self, native: Option<ByteOrder>) -> Result<ByteOrder, Fault> {
        let word = self.word()?;
        match (&*word, native) {
            ("le", _) => Ok(ByteOrder::Little),
            ("be" | "network", _) => Ok(ByteOrder::Big),
            ("native", Some(order)) => Ok(order),
            _ => self.fail(format!("`{}` is not an order of bytes: le, be, native or network", clip(&word))),
        }
    }
    pub fn base(&self) -> Result<Base, Fault> {
        let word = match &self.value {
            Value::Number(n) => n.to_string().into(),
            _ => self.word()?,
        };
        match &*word {
            "2" | "binary" | "b" => Ok(Base::Binary),
            "8" | "octal" | "oct" | "o" => Ok(Base::Octal),
            "10" | "decimal" | "dec" | "d" | "i" | "u" => Ok(Base::Decimal),
            "16" | "hexadecimal" | "hex" | "x" | "X" | "p" => Ok(Base::Hexadecimal),
            _ => self.fail(format!("`{}` is not a base: 2, 8, 10 or 16", clip(&word))),
        }
    }
    pub fn encoding(&self) -> Result<Encoding, Fault> {
        let word = self.word()?;
        match word.to_ascii_lowercase().as_str() {
            "none" => Ok(Encoding::None),
            "utf8" | "utf-8" => Ok(Encoding::Utf8),
            "ascii" => Ok(Encoding::Ascii),
            _ => self.fail(format!("`{}` is not an encoding: none, UTF8 or ASCII", clip(&word))),
        }
    }
    pub fn uuid(&self) -> Result<[u8; 16], Fault> {
        let text = self.word()?;
        let digits: Vec<u8> = text.bytes().filter(|b| *b != b'-').collect();
        let mut out = [0; 16];
        let nibble = |b: u8| char::from(b).to_digit(16).map(|d| d as u8);
        for (byte, pair) in out.iter_mut().zip(digits.chunks(2)) {
            let (Some(high), Some(low)) = (nibble(pair[0]), pair.get(1).copied().and_then(nibble)) else {
                return self.fail("a UUID has 32 hexadecimal digits");
            };
            *byte = high << 4 | low;
        }
        if digits.len() == 32 { Ok(out) } else { self.fail("a UUID has 32 hexadecimal digits") }
    }
    /// The clock in `clock.NAME.value`.
    pub fn clock(&self) -> Result<&'a str, Fault> {
        match &self.value {
            Value::Path(p) => match p.as_slice() {
                ["clock", name, "value"] | ["clock", name] => Ok(*name),
                _ => self.fail("an integer is mapped to `clock.NAME.value`"),
            },
            _ => self.fail("an integer is mapped to `clock.NAME.value`"),
        }
    }
}

/// A path as it is written.
pub(super) fn joined<'a>(path: &[&'a str]) -> Cow<'a, str> {
    match path {
        [one] => Cow::Borrowed(one),
        _ => Cow::Owned(path.join(".")),
    }
}

/// Whether it is an alignment that is taken.
pub(super) fn alignment(n: i128) -> bool {
    (1..=65536).contains(&n) && (n as u32).is_power_of_two()
}
