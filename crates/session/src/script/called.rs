//! Values of a call of a function, as clauses read them: arguments by name and by number, strings that they lead to, the result.

use events::values::{Shape, Signature, Value, text_of};

/// Which argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Which {
    /// The one with this name.
    Named(String),
    /// The one with this number, from 0.
    Nth(usize),
}

/// The values of a call.
pub struct Called<'a> {
    signature: &'a Signature,
    arguments: Vec<(&'a str, Value<'a>)>,
    result: Option<Value<'a>>,
}

impl<'a> Called<'a> {
    /// Of a function with this signature: what the records of its entry and its exit have. Either may be missing.
    pub fn new(signature: &'a Signature, entry: &[u8], exit: &[u8]) -> Called<'a> {
        let arguments = if entry.is_empty() { Vec::new() } else { signature.arguments(entry) };
        let result = if exit.is_empty() { None } else { signature.result(exit) };
        Called { signature, arguments, result }
    }

    /// Where an argument is among all; what has no name of its own is called by its number.
    fn place(&self, which: &Which) -> Option<usize> {
        let named = |name: &str| self.signature.arguments.iter().position(|a| a.0 == name);
        match which {
            Which::Nth(nth) => Some(*nth),
            Which::Named(name) => named(name).or_else(|| name.strip_prefix("arg")?.parse().ok()),
        }
    }

    /// An argument as a number.
    pub fn number(&self, which: &Which) -> Option<i64> {
        let nth = self.place(which)?;
        let (name, shape) = self.signature.arguments.get(nth)?;
        // Strings are no arguments of their own.
        let value = &self.arguments.get(nth)?.1;
        if name.starts_with("str(") { None } else { value.number(shape) }
    }

    /// The string that an argument is or leads to, and whether it goes on; an empty one where nothing could be read.
    pub fn text(&self, which: &Which) -> Option<(&[u8], bool)> {
        let nth = self.place(which)?;
        let (name, shape) = self.signature.arguments.get(nth)?;
        let own = if name.is_empty() { text_of(&format!("arg{nth}")) } else { text_of(name) };
        let nth = match shape {
            Shape::Text | Shape::String => nth,
            _ => self.signature.arguments.iter().position(|a| a.0 == own)?,
        };
        match &self.arguments.get(nth)?.1 {
            Value::Text(bytes, more) => Some((bytes, *more)),
            Value::Null | Value::Address(_) => Some((b"", false)),
            _ => None,
        }
    }

    /// The result.
    pub fn result(&self) -> Option<i64> {
        self.result.as_ref()?.number(self.signature.result.as_ref()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signature(text: &str) -> Signature {
        Signature::parse(text).expect("a signature")
    }

    #[test]
    fn arguments_have_names_and_numbers() {
        let named = |n: &str| Which::Named(n.into());
        let numbers = signature("n:i4;s:p;:u1[7=RED];:p;str%28s%29:s;str%28arg3%29:s;>i2");
        let mut entry = (-5i32).to_le_bytes().to_vec();
        entry.extend(0x10u64.to_le_bytes());
        entry.push(7);
        entry.extend(0x20u64.to_le_bytes());
        entry.extend((2u16 | events::values::CUT).to_le_bytes());
        entry.extend(b"hi");
        entry.extend(events::values::NULL.to_le_bytes());
        let exit = (-2i16).to_le_bytes();
        let called = Called::new(&numbers, &entry, &exit);
        let found = [named("n"), named("s"), Which::Nth(0), named("arg2"), Which::Nth(3)].map(|w| called.number(&w));
        assert_eq!(found, [Some(-5), Some(16), Some(-5), Some(7), Some(32)]);
        assert_eq!([named("x"), Which::Nth(4), Which::Nth(9)].map(|w| called.number(&w)), [None; 3]);
        assert_eq!(called.text(&named("s")), Some((&b"hi"[..], true)));
        assert_eq!((called.text(&Which::Nth(3)), called.text(&named("n"))), (Some((&b""[..], false)), None));
        assert_eq!(called.result(), Some(-2));
        // At the entry, and where nothing was captured.
        assert_eq!(
            (Called::new(&numbers, &entry, &[]).result(), Called::new(&numbers, &[], &[]).number(&named("n"))),
            (None, None)
        );
        // As `--args` has them, a string has no address.
        let shown = signature("s:s;d:f8;");
        let mut entry = 1u16.to_le_bytes().to_vec();
        entry.push(b'x');
        entry.extend(1.5f64.to_le_bytes());
        let called = Called::new(&shown, &entry, &[]);
        assert_eq!((called.text(&Which::Nth(0)), called.number(&Which::Nth(0))), (Some((&b"x"[..], false)), None));
        assert_eq!((called.number(&named("d")), called.result()), (None, None));
    }
}
