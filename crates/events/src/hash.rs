//! A hash for tables that are asked for every event: one multiplication of 128 bits, folded, for each word, and one at the
//! end.
//!
//! The standard hash costs several times as much. The keys are random, so that nobody can foresee which numbers of a trace collide.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher, RandomState};

/// A table with this hash.
pub type Table<K, V> = HashMap<K, V, Keys>;

/// Keys of a hash.
#[derive(Clone, Debug)]
pub struct Keys(u64, u64);

impl Default for Keys {
    fn default() -> Keys {
        let random = || RandomState::new().build_hasher().finish();
        Keys(random(), random() | 1)
    }
}

impl BuildHasher for Keys {
    type Hasher = Folded;

    #[inline]
    fn build_hasher(&self) -> Folded {
        Folded { hash: self.0, key: self.1 }
    }
}

/// 2 to the power of 64, divided by the golden ratio. With one multiplication alone, one key in 25 leaves the lowest bits of the hashes
/// of page addresses much alike.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

/// The two halves of a product, one on the other.
#[inline]
fn folded(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

/// What was hashed so far.
#[derive(Clone, Debug)]
pub struct Folded {
    hash: u64,
    key: u64,
}

impl Hasher for Folded {
    #[inline]
    fn finish(&self) -> u64 {
        folded(self.hash, SPREAD)
    }

    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        words.iter().for_each(|w| self.write_u64(u64::from_le_bytes(*w)));
        if !rest.is_empty() {
            let mut last = [0; 8];
            last[..rest.len()].copy_from_slice(rest);
            // Zeros at the end count too.
            self.write_u64(u64::from_le_bytes(last) ^ (rest.len() as u64) << 56);
        }
    }

    #[inline]
    fn write_u8(&mut self, n: u8) {
        self.write_u64(n.into());
    }

    #[inline]
    fn write_u16(&mut self, n: u16) {
        self.write_u64(n.into());
    }

    #[inline]
    fn write_u32(&mut self, n: u32) {
        self.write_u64(n.into());
    }

    #[inline]
    fn write_u64(&mut self, word: u64) {
        self.hash = folded(self.hash ^ word, self.key);
    }

    #[inline]
    fn write_usize(&mut self, n: usize) {
        self.write_u64(n as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn different_things_have_different_hashes() {
        let keys = Keys::default();
        let words = (0..50_000u64).map(|n| keys.hash_one(n << 12));
        let pairs = (0..50_000u32).map(|n| keys.hash_one((n % 7, n / 7)));
        let texts = (1..65).map(|n| keys.hash_one(&[0u8; 64][..n]));
        let all: HashSet<u64> = words.chain(pairs).chain(texts).collect();
        assert_eq!(all.len(), 100_064);
        // Tables take the lowest bits for a place.
        let places: HashSet<u64> = (0..1 << 12).map(|n: u64| keys.hash_one(n << 12) & 0xffff).collect();
        assert!(places.len() > 3500, "{}", places.len());
        assert_ne!(Keys::default().hash_one(1u64), keys.hash_one(1u64));
    }
}
