//! What receives the values of an event.

use crate::types::Int;

/// What a text is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Text {
    /// A path.
    Path,
    /// A C string.
    Str,
    /// Bytes that are not ended by NUL.
    Buf,
}

/// What encloses several values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// Named fields.
    Struct,
    /// Items.
    Array,
    /// Names or numbers in brackets, separated by spaces; the complement when negated.
    Set {
        /// Everything but the members.
        negated: bool,
    },
}

/// Takes the values of an event, in order.
pub trait Sink {
    /// Whether verbose fields are wanted.
    fn verbose(&self) -> bool;
    /// Bytes of a string that are wanted, where more of it may be there.
    fn string_limit(&self) -> Option<usize> {
        None
    }
    /// An integer.
    fn int(&mut self, v: u64, int: &Int);
    /// Text or bytes; `cut` where there was more.
    fn text(&mut self, b: &[u8], cut: bool, kind: Text);
    /// A pointer whose target was not read (0 is NULL).
    fn addr(&mut self, a: u64);
    /// A pointer whose target could not be read.
    fn fault(&mut self, a: u64);
    /// A group starts.
    fn open(&mut self, g: Group);
    /// The next value is the field `name`; an empty name shows the value alone.
    fn field(&mut self, name: &str);
    /// The next value is an item.
    fn item(&mut self);
    /// A group ends; `more` where it was shortened.
    fn close(&mut self, g: Group, more: bool);
    /// A member of a set.
    fn member(&mut self, name: &str);
    /// Something that is shown as a number of things, at an address; `more` where not all were captured.
    fn count(&mut self, addr: u64, n: u64, more: bool, what: &str);
    /// A value at entry is followed by the one at exit.
    fn becomes(&mut self);
    /// A value that has a name of its own instead of a number.
    fn symbol(&mut self, name: &str) {
        self.text(name.as_bytes(), false, Text::Str);
    }
    /// The value before was a point in time: seconds since the epoch and nanoseconds.
    fn date(&mut self, secs: i64, nanos: u64) {
        let _ = (secs, nanos);
    }
    /// An address in a network's own notation: the macro that makes it, and its text.
    fn inet(&mut self, family: u16, text: &str, field: &str);
}
