//! The values of fields that were read.

use std::sync::Arc;

use crate::model::Base;

/// The value of a field.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Integer without sign, and the base to show it in.
    Unsigned(u64, Base),
    /// Integer with sign: its bits count for bases other than 10, of which there are so many.
    Signed(i64, Base, u32),
    /// Floating point number.
    Float(f64),
    /// Enumeration: its value, and all labels that this value has.
    Enum(i128, Vec<Arc<str>>),
    /// Text, without its NUL: bytes that need not be UTF-8.
    Text(Vec<u8>),
    /// Array of 8-bit integers without sign that is not text.
    Bytes(Vec<u8>, Base),
    /// Array or sequence of anything else.
    Array(Vec<Value>),
    /// Fields: their names, which all events of a class share, and as many values.
    Struct(Arc<[String]>, Vec<Value>),
    /// The chosen option of a variant: all names, the index of the chosen one, its value.
    Variant(Arc<[String]>, usize, Box<Value>),
}

impl Value {
    /// The field of that name, if it is a struct with one.
    pub fn field(&self, name: &str) -> Option<&Value> {
        self.fields().find(|(n, _)| *n == name).map(|(_, v)| v)
    }

    /// Names and values, if it is a struct.
    pub fn fields(&self) -> impl Iterator<Item = (&str, &Value)> {
        let (names, values): (&[String], &[Value]) = match self {
            Value::Struct(names, values) => (names, values),
            _ => (&[], &[]),
        };
        names.iter().map(String::as_str).zip(values)
    }

    /// The number, if it is an integer or an enumeration.
    pub fn integer(&self) -> Option<i128> {
        match self {
            Value::Unsigned(n, _) => Some(i128::from(*n)),
            Value::Signed(n, ..) => Some(i128::from(*n)),
            Value::Enum(n, _) => Some(*n),
            _ => None,
        }
    }
}
