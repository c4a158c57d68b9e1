//! What ended processes left behind: sums by stack, kind and age. Ages are grouped in steps of 1/64, so that the number of sums
//! depends on stacks, not on blocks. When there are very many, all ages of a stack are one group from then on.

use super::numbers::{Kind, Sum};
use events::hash::Table;

/// The most groups by age.
const MOST: usize = 1 << 19;
/// The group of all ages.
const ANY: u16 = u16::MAX;

/// Blocks of about the same age.
#[derive(Clone, Copy, Debug, Default)]
pub struct Group {
    /// How many, and how large.
    pub sum: Sum,
    /// The age of the oldest, ns.
    pub oldest: u64,
}

/// The groups.
#[derive(Debug, Default)]
pub struct Ended {
    groups: Table<(u32, Kind, u16), Group>,
}

/// The group of an age: its highest bit and the six below it.
fn group(age: u64) -> u16 {
    match age.checked_ilog2() {
        Some(bits @ 6..) => (bits << 6) as u16 | (age >> (bits - 6) & 63) as u16,
        _ => age as u16,
    }
}

impl Ended {
    /// Adds a block, or what it stands for.
    pub fn add(&mut self, stack: u32, kind: Kind, sum: Sum, age: u64) {
        let mut key = (stack, kind, group(age));
        if self.groups.len() >= MOST && !self.groups.contains_key(&key) {
            key.2 = ANY;
        }
        let g = self.groups.entry(key).or_default();
        g.sum.join(sum);
        g.oldest = g.oldest.max(age);
    }

    /// All groups, by stack and kind.
    pub fn iter(&self) -> impl Iterator<Item = (u32, Kind, &Group)> {
        self.groups.iter().map(|(&(stack, kind, _), g)| (stack, kind, g))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_has_any_age() {
        let mut ended = Ended::default();
        let n = MOST as u64 + 1000;
        for i in 0..n {
            ended.add(i as u32, Kind::Malloc, Sum { blocks: 1, bytes: 2 }, i);
        }
        for age in [3, 70_000, 500] {
            ended.add(9_999_999, Kind::Mmap, Sum { blocks: 1, bytes: 1 }, age);
        }
        let all = ended.iter().fold(Sum::default(), |sum, (_, _, g)| sum.and(g.sum));
        assert_eq!(all, Sum { blocks: n + 3, bytes: 2 * n + 3 });
        assert_eq!(ended.groups.len(), MOST + 1001);
        assert_eq!(ended.groups[&(9_999_999, Kind::Mmap, ANY)].oldest, 70_000);
    }

    #[test]
    fn ages_that_differ_by_more_than_a_64th_are_told_apart() {
        let mut last = group(0);
        for age in (1..1_000_000u64).chain((1..1000).map(|n| u64::MAX / 2000 * n)) {
            let g = group(age);
            assert!(g >= last, "{age}");
            assert_ne!(g, group(age.saturating_add(age.div_ceil(64)).max(age + 1)), "{age}");
            last = g;
        }
    }
}
