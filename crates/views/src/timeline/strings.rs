//! Strings, frames and stacks, each once, by number. Number 0 is none.

use events::hash::Table;
use std::hash::Hash;

/// Values by number.
#[derive(Debug)]
pub(super) struct Numbered<T> {
    all: Vec<T>,
    numbers: Table<T, u32>,
}

impl<T> Default for Numbered<T> {
    fn default() -> Numbered<T> {
        Numbered { all: Vec::new(), numbers: Table::default() }
    }
}

impl<T: Clone + Eq + Hash> Numbered<T> {
    /// The values, in the order of their numbers, from 1.
    pub fn all(&self) -> &[T] {
        &self.all
    }

    fn number<Q>(&mut self, value: &Q) -> u32
    where
        T: std::borrow::Borrow<Q> + for<'q> From<&'q Q>,
        Q: Eq + Hash + ?Sized,
    {
        if let Some(number) = self.numbers.get(value) {
            return *number;
        }
        let number = self.all.len() as u32 + 1;
        let own = T::from(value);
        self.all.push(own.clone());
        self.numbers.insert(own, number);
        number
    }
}

/// Bytes that a string takes beside its text: counts, and its entries in a list and a table.
const EACH: usize = 56;

/// Strings by number.
#[derive(Debug, Default)]
pub(super) struct Strings {
    all: Numbered<std::rc::Rc<str>>,
    /// How many there are, and the memory that they take.
    known: usize,
    bytes: usize,
}

impl Strings {
    /// The number of a string; 0 of an empty one.
    pub fn number(&mut self, text: &str) -> u32 {
        if text.is_empty() {
            return 0;
        }
        let number = self.all.number(text);
        if number as usize > self.known {
            (self.known, self.bytes) = (number as usize, self.bytes + text.len() + EACH);
        }
        number
    }

    /// The strings, in the order of their numbers, from 1.
    pub fn all(&self) -> impl Iterator<Item = &str> {
        self.all.all().iter().map(|s| &**s)
    }

    /// How much memory they take, about.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

/// Frames: function, module, file, line, whether it is the kernel's; and stacks of them, innermost first.
#[derive(Debug, Default)]
pub(super) struct Frames {
    frames: Table<[u32; 5], u32>,
    all: Vec<[u32; 5]>,
    stacks: Numbered<std::rc::Rc<[u32]>>,
}

impl Frames {
    /// The number of a frame.
    pub fn frame(&mut self, frame: [u32; 5]) -> u32 {
        let next = self.all.len() as u32 + 1;
        let number = *self.frames.entry(frame).or_insert(next);
        if number == next {
            self.all.push(frame);
        }
        number
    }

    /// The number of a stack of frames.
    pub fn stack(&mut self, frames: &[u32]) -> u32 {
        self.stacks.number(frames)
    }

    /// The frames, in the order of their numbers, from 1.
    pub fn all(&self) -> &[[u32; 5]] {
        &self.all
    }

    /// The stacks, in the order of their numbers, from 1.
    pub fn stacks(&self) -> impl Iterator<Item = &[u32]> {
        self.stacks.all().iter().map(|s| &**s)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_has_one_number() {
        let mut strings = Strings::default();
        assert_eq!(["a", "", "b", "a"].map(|s| strings.number(s)), [1, 0, 2, 1]);
        assert_eq!(strings.all().collect::<Vec<_>>(), ["a", "b"]);
        let mut frames = Frames::default();
        let [a, b] = [[1, 0, 0, 7, 0], [1, 0, 0, 8, 0]].map(|f| frames.frame(f));
        assert_eq!([frames.stack(&[a, b]), frames.stack(&[b]), frames.stack(&[a, b])], [1, 2, 1]);
        assert_eq!(frames.stacks().collect::<Vec<_>>(), [&[1, 2][..], &[2]]);
    }
}
