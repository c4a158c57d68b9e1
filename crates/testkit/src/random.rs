//! Random numbers that follow from a seed, so that each run of a test sees the same ones.

/// A generator (splitmix64).
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The numbers that follow from `seed`, any number.
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// The next number.
    #[expect(clippy::should_implement_trait, reason = "an endless sequence has no Option")]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `n`; 0 where `n` is 0.
    pub fn below(&mut self, n: u64) -> u64 {
        self.next() % n.max(1)
    }

    /// An index of something that has `n` entries.
    pub fn index(&mut self, n: usize) -> usize {
        self.below(n as u64) as usize
    }

    /// An entry of a list.
    pub fn of<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.index(list.len())]
    }
}

/// How many rounds a test of random inputs makes: `usual` times TRAPLINE_FUZZ_ROUNDS, where that is set.
pub fn rounds(usual: usize) -> usize {
    usual * std::env::var("TRAPLINE_FUZZ_ROUNDS").map_or(1, |n| n.parse().expect("TRAPLINE_FUZZ_ROUNDS is a number"))
}

/// The rounds of a test of random inputs, `usual` of them as in [`rounds`]: the numbers of a round follow from `seed`, or from
/// TRAPLINE_FUZZ_SEED, and from the round. The text says how to repeat a round.
pub fn seeded(seed: u64, usual: usize) -> impl ExactSizeIterator<Item = (String, Random)> {
    let of = |n: String| n.parse().expect("TRAPLINE_FUZZ_SEED is a number");
    let seed: u64 = std::env::var("TRAPLINE_FUZZ_SEED").map_or(seed, of);
    (0..rounds(usual)).map(move |round| {
        let own = seed.wrapping_add(round as u64);
        let how = format!("round {round} of seed {seed}: TRAPLINE_FUZZ_SEED={own} makes it the first");
        (how, Random::new(Random::new(own).next()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_is_the_first_one_of_its_seed() {
        let first = |seed: u64, round: usize| seeded(seed, round + 1).nth(round).expect("a round").1.next();
        assert_eq!(first(7, 5), first(12, 0));
        assert_ne!(first(7, 5), first(7, 6));
        assert!(seeded(7, 6).nth(5).expect("a round").0.contains("TRAPLINE_FUZZ_SEED="));
    }

    #[test]
    fn numbers_are_those_of_the_algorithm_and_stay_below() {
        // The first numbers of splitmix64 from 0, as its authors give them.
        let mut r = Random::new(0);
        assert_eq!([r.next(), r.next()], [0xe220_a839_7b1d_cdaf, 0x6e78_9e6a_a1b9_65f4]);
        assert!((0..1000).all(|n| r.below(n) < n.max(1)));
        assert!((0..100).all(|_| [3, 5].contains(&r.of(&[3, 5]))));
    }
}
