//! Durations as they are, for quantiles that are exact.

/// Durations, of which most fit into four bytes.
#[derive(Clone, Debug, Default)]
pub struct Exact {
    short: Vec<u32>,
    long: Vec<u64>,
}

impl Exact {
    /// Keeps a duration.
    #[inline]
    pub fn add(&mut self, ns: u64) {
        match u32::try_from(ns) {
            Ok(ns) => self.short.push(ns),
            Err(_) => self.long.push(ns),
        }
    }

    /// Keeps everything that `other` has.
    pub fn join(&mut self, other: &Exact) {
        self.short.extend_from_slice(&other.short);
        self.long.extend_from_slice(&other.long);
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.short.len() + self.long.len()
    }

    /// The shortest duration that `percent` of all do not exceed: what `quantile_disc` of SQL is.
    pub fn quantile(&self, percent: u64) -> Option<u64> {
        let rank = (self.len() as u64 * percent).div_ceil(100).max(1) as usize - 1;
        if rank < self.short.len() {
            let mut all = self.short.clone();
            return Some((*all.select_nth_unstable(rank).1).into());
        }
        let (mut all, rank) = (self.long.clone(), rank - self.short.len());
        (rank < all.len()).then(|| *all.select_nth_unstable(rank).1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_quantile_is_one_of_them(mut all in prop::collection::vec(0..1u64 << 33, 0..200), percent in 0..=100u64) {
            let (mut exact, mut half) = (Exact::default(), Exact::default());
            let (first, second) = all.split_at(all.len() / 2);
            first.iter().for_each(|ns| exact.add(*ns));
            second.iter().for_each(|ns| half.add(*ns));
            exact.join(&half);
            all.sort_unstable();
            let rank = (all.len() as u64 * percent).div_ceil(100).max(1) as usize;
            prop_assert_eq!(exact.len(), all.len());
            prop_assert_eq!(exact.quantile(percent), all.get(rank - 1).copied());
        }
    }
}
