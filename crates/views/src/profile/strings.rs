//! Strings, each held once and known by a number.

use events::hash::Table;
use std::sync::Arc;

/// The most bytes of a name; what is longer is cut, and ends in `...`.
pub const MAX_NAME: usize = 4096;

/// Bytes that a string takes beside its own.
const OVERHEAD: usize = 64;

/// The strings. Number 0 is the empty one.
pub struct Strings {
    all: Vec<Arc<str>>,
    ids: Table<Arc<str>, u32>,
    bytes: usize,
}

impl Strings {
    pub fn new() -> Strings {
        let empty: Arc<str> = "".into();
        Strings { all: vec![empty.clone()], ids: Table::from_iter([(empty, 0)]), bytes: 0 }
    }

    /// The number of a string; none where it is new and more than `most` bytes would be held.
    pub fn id(&mut self, s: &str, most: usize) -> Option<u32> {
        if s.len() > MAX_NAME {
            let end = (0..=MAX_NAME - 3).rev().find(|&i| s.is_char_boundary(i)).unwrap_or(0);
            let cut = format!("{}...", &s[..end]);
            return self.id(&cut, most);
        }
        if let Some(&id) = self.ids.get(s) {
            return Some(id);
        }
        let bytes = self.bytes + s.len() + OVERHEAD;
        if bytes > most {
            return None;
        }
        let id = u32::try_from(self.all.len()).ok()?;
        let s: Arc<str> = s.into();
        self.bytes = bytes;
        self.all.push(s.clone());
        self.ids.insert(s, id);
        Some(id)
    }

    /// [`Strings::id`], where the same string as the last time is likely: `last` is its number.
    pub fn id_again(&mut self, s: &str, last: &mut u32, most: usize) -> Option<u32> {
        if self.get(*last) != s {
            *last = self.id(s, most)?;
        }
        Some(*last)
    }

    pub fn get(&self, id: u32) -> &str {
        self.all.get(id as usize).map_or("", |s| s)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_string_is_held_once_and_no_more_than_there_is_room_for() {
        let mut s = Strings::new();
        let a = s.id("abc", 100).unwrap();
        assert_eq!((s.id("abc", 100), s.id("", 100), s.id("def", 100)), (Some(a), Some(0), None));
        assert_eq!((s.get(a), s.get(7)), ("abc", ""));
    }

    #[test]
    fn a_long_string_is_cut_between_characters() {
        let mut s = Strings::new();
        let id = s.id(&"é".repeat(5000), 1 << 20).unwrap();
        let cut = s.get(id);
        assert!(cut.len() <= MAX_NAME && cut.len() > MAX_NAME - 4 && cut.ends_with("é..."));
    }
}
