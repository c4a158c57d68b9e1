//! The different values of a column, each once, as a page of a dictionary has them.

use events::hash::Keys;
use std::hash::{BuildHasher, Hasher};

/// Places of numbers: which they are, from 1, where their hashes say; at least twice as many places as numbers.
#[derive(Debug, Default)]
struct Places {
    keys: Keys,
    slots: Vec<u32>,
}

/// How many places the next row group begins with, if it has as many values as this one: those of the largest would lie in no cache.
fn places_for(values: usize) -> usize {
    (4 * values).next_power_of_two().max(64)
}

impl Places {
    /// Forgets all numbers; their count was `numbers`.
    fn clear(&mut self, numbers: usize) {
        self.slots.truncate(places_for(numbers));
        self.slots.fill(0);
    }

    /// The number of a value with this hash, from 0, of those for which `is` holds; else the place where it belongs.
    #[inline]
    fn find(&self, hash: u64, is: impl Fn(usize) -> bool) -> Result<u32, usize> {
        let mask = self.slots.len() - 1;
        let mut at = hash as usize & mask;
        loop {
            match self.slots[at] {
                0 => return Err(at),
                number if is(number as usize - 1) => return Ok(number - 1),
                _ => at = (at + 1) & mask,
            }
        }
    }

    /// Makes room for one more than `n` values, with these hashes.
    #[inline]
    fn reserve(&mut self, n: usize, hash: impl Fn(&Places, usize) -> u64) {
        if self.slots.len() > 2 * n {
            return;
        }
        let places = (2 * self.slots.len()).max(64);
        self.slots.clear();
        self.slots.resize(places, 0);
        for nth in 0..n {
            if let Err(at) = self.find(hash(self, nth), |_| false) {
                self.slots[at] = nth as u32 + 1;
            }
        }
    }

    #[inline]
    fn of_number(&self, n: i64) -> u64 {
        let mut hasher = self.keys.build_hasher();
        hasher.write_u64(n as u64);
        hasher.finish()
    }
}

/// Texts by number, from 0.
#[derive(Debug, Default)]
pub struct Texts {
    /// Each behind its length, in four bytes.
    plain: Vec<u8>,
    /// Where each begins.
    starts: Vec<u32>,
    keys: Keys,
    /// Where their hashes say, at least twice as many as texts: the number from 1, and half of the hash, so that other texts need not be
    /// looked at.
    slots: Vec<(u32, u32)>,
    /// The last that was asked for.
    last: u32,
}

/// Bytes of a length.
const LENGTH: usize = 4;

impl Texts {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.starts.len()
    }

    /// All, each behind its length.
    pub fn plain(&self) -> &[u8] {
        &self.plain
    }

    /// All.
    pub fn all(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.starts.len()).map(|nth| self.text(nth))
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        self.slots.truncate(places_for(self.starts.len()));
        self.slots.fill((0, 0));
        self.plain.clear();
        self.starts.clear();
    }

    #[inline]
    fn text(&self, nth: usize) -> &[u8] {
        let end = self.starts.get(nth + 1).map_or(self.plain.len(), |end| *end as usize);
        &self.plain[self.starts[nth] as usize + LENGTH..end]
    }

    #[inline]
    fn hash(&self, text: &[u8]) -> u64 {
        let mut hasher = self.keys.build_hasher();
        hasher.write(text);
        hasher.finish()
    }

    /// The number of a text. A new one is stored as `stored` makes it.
    #[inline]
    pub fn number<'t>(&mut self, text: &'t [u8], stored: impl FnOnce(&'t [u8]) -> Option<&'t [u8]>) -> Option<u32> {
        // Many columns have the same text in one row after the other.
        if (self.last as usize) < self.starts.len() && self.text(self.last as usize) == text {
            return Some(self.last);
        }
        if self.slots.len() <= 2 * self.starts.len() {
            self.grow();
        }
        let hash = self.hash(text);
        let (half, mask) = ((hash >> 32) as u32, self.slots.len() - 1);
        let mut at = hash as usize & mask;
        loop {
            match self.slots[at] {
                (0, _) => break,
                (number, other) if other == half && self.text(number as usize - 1) == text => {
                    self.last = number - 1;
                    return Some(self.last);
                }
                _ => at = (at + 1) & mask,
            }
        }
        let text = stored(text)?;
        self.last = self.starts.len() as u32;
        self.slots[at] = (self.last + 1, half);
        self.starts.push(self.plain.len() as u32);
        self.plain.extend_from_slice(&(text.len() as u32).to_le_bytes());
        self.plain.extend_from_slice(text);
        Some(self.last)
    }

    /// Makes room for more.
    fn grow(&mut self) {
        let places = (2 * self.slots.len()).max(64);
        self.slots.clear();
        self.slots.resize(places, (0, 0));
        for nth in 0..self.starts.len() {
            let hash = self.hash(self.text(nth));
            let mut at = hash as usize & (places - 1);
            while self.slots[at].0 != 0 {
                at = (at + 1) & (places - 1);
            }
            self.slots[at] = (nth as u32 + 1, (hash >> 32) as u32);
        }
    }
}

/// Numbers by number, from 0.
#[derive(Debug, Default)]
pub struct Numbers {
    all: Vec<i64>,
    places: Places,
    last: u32,
}

impl Numbers {
    /// All.
    pub fn all(&self) -> &[i64] {
        &self.all
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        self.places.clear(self.all.len());
        self.all.clear();
    }

    /// The number of a number.
    #[inline]
    pub fn number(&mut self, n: i64) -> u32 {
        let Numbers { all, places, last } = self;
        if all.get(*last as usize) == Some(&n) {
            return *last;
        }
        places.reserve(all.len(), |places, nth| places.of_number(all[nth]));
        match places.find(places.of_number(n), |nth| all[nth] == n) {
            Ok(number) => *last = number,
            Err(at) => {
                *last = all.len() as u32;
                places.slots[at] = *last + 1;
                all.push(n);
            }
        }
        *last
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_text_has_one_number() {
        let mut texts = Texts::default();
        let all: Vec<String> = (0..1000).map(|n| format!("text {n}")).collect();
        for _ in 0..2 {
            for (nth, text) in all.iter().enumerate() {
                assert_eq!(texts.number(text.as_bytes(), Some), Some(nth as u32));
            }
        }
        assert_eq!(texts.number(b"", Some), Some(1000));
        assert_eq!((texts.number(b"bad", |_| None), texts.len()), (None, 1001));
        assert_eq!(texts.plain()[..10], *b"\x06\0\0\0text 0");
        assert_eq!(texts.all().last(), Some(&b""[..]));
        texts.clear();
        assert_eq!((texts.number(b"x", Some), texts.len(), texts.plain()), (Some(0), 1, &b"\x01\0\0\0x"[..]));
    }

    #[test]
    fn each_number_has_one() {
        let mut numbers = Numbers::default();
        let all = || (0..1000).map(|n| n * n - 5);
        for _ in 0..2 {
            all().enumerate().for_each(|(nth, n)| assert_eq!(numbers.number(n), nth as u32));
        }
        assert!(numbers.all().iter().copied().eq(all()));
        numbers.clear();
        assert_eq!((numbers.number(i64::MIN), numbers.number(7), numbers.number(i64::MIN)), (0, 1, 0));
    }
}
