//! Values of a running script, and how they lie in a map's key.
//!
//! ```text
//! key: parts one behind the other; integer: 8 bytes, string and bytes: length (4) and bytes, stack: word (8) and process (4)
//! ```

use super::types::{Space, Type};
use crate::ast::Cast;

/// A value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// An integer, a truth value, an address.
    Int(i64),
    /// A string, without its NUL.
    Text(Text),
    /// An address, and the string that was there when the event happened.
    At(i64, Text),
    /// Bytes: a buffer, an array, a structure.
    Bytes(Vec<u8>),
    /// Several values.
    Tuple(Vec<Value>),
    /// A stack's number, or an address, and the process that it is of.
    Of {
        /// The number, or the address.
        word: u64,
        /// The process.
        pid: u32,
    },
}

/// A string.
#[derive(Clone, Debug, Default)]
pub struct Text {
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// It was longer.
    pub cut: bool,
}

/// That one of them was longer says nothing.
impl PartialEq for Text {
    fn eq(&self, other: &Text) -> bool {
        self.bytes == other.bytes
    }
}

impl Eq for Text {}

impl Value {
    /// A string that is whole.
    pub fn text(bytes: impl Into<Vec<u8>>) -> Value {
        Value::Text(Text { bytes: bytes.into(), cut: false })
    }

    /// What a variable has that nothing is assigned to.
    pub fn zero(ty: &Type) -> Value {
        match ty {
            Type::Str(_) => Value::Text(Text::default()),
            Type::Buffer(_) | Type::Array(..) | Type::Struct(_) => Value::Bytes(Vec::new()),
            Type::Tuple(list) | Type::Record(_, list) => Value::Tuple(list.iter().map(Value::zero).collect()),
            Type::Stack(..) | Type::Symbol(Space::User) => Value::Of { word: 0, pid: 0 },
            _ => Value::Int(0),
        }
    }

    /// As an integer; 0 where it is none.
    pub fn int(&self) -> i64 {
        match self {
            Value::Int(v) | Value::At(v, _) => *v,
            Value::Of { word, .. } => *word as i64,
            _ => 0,
        }
    }

    /// As bytes: those of a string; empty where there are none.
    pub fn bytes(&self) -> &[u8] {
        match self {
            Value::Text(t) => &t.bytes,
            Value::Bytes(b) => b,
            _ => &[],
        }
    }

    /// As a string: up to the first NUL.
    pub fn chars(&self) -> &[u8] {
        self.bytes().split(|b| *b == 0).next().unwrap_or_default()
    }

    /// What bytes in memory are as a type.
    pub fn read(bytes: &[u8], ty: &Type) -> Value {
        match ty {
            Type::Array(..) | Type::Struct(_) | Type::Buffer(_) => Value::Bytes(bytes.to_vec()),
            Type::Str(_) => Value::text(bytes.split(|b| *b == 0).next().unwrap_or_default()),
            _ => {
                let mut word = [0; 8];
                let n = bytes.len().min(8);
                word[..n].copy_from_slice(&bytes[..n]);
                let cast = ty.as_int().unwrap_or(Cast { size: 8, signed: false });
                Value::Int(cast.apply(i64::from_le_bytes(word)))
            }
        }
    }

    /// Appends it as a part of a key.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Value::Int(v) | Value::At(v, _) => out.extend_from_slice(&v.to_le_bytes()),
            Value::Text(t) => with_length(&t.bytes, out),
            Value::Bytes(b) => with_length(b, out),
            Value::Tuple(list) => list.iter().for_each(|v| v.encode(out)),
            Value::Of { word, pid } => {
                out.extend_from_slice(&word.to_le_bytes());
                out.extend_from_slice(&pid.to_le_bytes());
            }
        }
    }

    /// A part of a key, and what follows it.
    pub fn decode<'k>(key: &'k [u8], ty: &Type) -> (Value, &'k [u8]) {
        let take = |n: usize| key.split_at(n.min(key.len()));
        match ty {
            Type::Str(_) | Type::Buffer(_) | Type::Array(..) | Type::Struct(_) => {
                let (length, rest) = take(4);
                let n = length.try_into().map_or(0, u32::from_le_bytes) as usize;
                let (bytes, rest) = rest.split_at(n.min(rest.len()));
                let text = matches!(ty, Type::Str(_));
                (if text { Value::text(bytes) } else { Value::Bytes(bytes.to_vec()) }, rest)
            }
            Type::Tuple(list) | Type::Record(_, list) => {
                let mut rest = key;
                let parts = list.iter().map(|t| {
                    let (v, after) = Value::decode(rest, t);
                    rest = after;
                    v
                });
                (Value::Tuple(parts.collect()), rest)
            }
            Type::Stack(..) | Type::Symbol(Space::User) => {
                let (word, rest) = take(8);
                let (pid, rest) = rest.split_at(4.min(rest.len()));
                let word = word.try_into().map_or(0, u64::from_le_bytes);
                (Value::Of { word, pid: pid.try_into().map_or(0, u32::from_le_bytes) }, rest)
            }
            _ => {
                let (word, rest) = take(8);
                (Value::Int(word.try_into().map_or(0, i64::from_le_bytes)), rest)
            }
        }
    }
}

/// Appends bytes as a part of a key.
pub(super) fn with_length(bytes: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
    out.extend_from_slice(bytes);
}
