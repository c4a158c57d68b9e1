//! A block that is outstanding: malloc'd, or a mapping.

use super::numbers::Sum;

/// Whose a block is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// The process has allocated it.
    Own,
    /// Its parent has, before the fork: the sums have it there.
    Copy,
    /// It was allocated before the last reset.
    Before,
}

/// A block that is outstanding.
#[derive(Clone, Copy, Debug)]
pub struct Block {
    /// Bytes.
    pub size: u64,
    /// When it was allocated, ns.
    pub time: u64,
    /// Where.
    pub stack: u32,
    /// Whose it is.
    pub owner: Owner,
}

/// The weight of a recorded block, where one is recorded per this number of bytes on average; 0: all blocks are recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sample(pub u64);

impl Sample {
    /// The estimate that a block of this size, allocated at this time, stands for. It depends on nothing else.
    #[inline]
    pub fn of(self, size: u64, time: u64) -> Sum {
        if self.0 == 0 { Sum { blocks: 1, bytes: size } } else { self.estimate(size, time) }
    }

    #[cold]
    fn estimate(self, size: u64, time: u64) -> Sum {
        // A block of one byte is recorded as often as one of none.
        let taken = -(-(size.max(1) as f64) / self.0 as f64).exp_m1();
        let weight = taken.recip();
        // Rounded up as often as is right on average.
        let chance = hash(time ^ size.rotate_left(32)) as f64 / u64::MAX as f64;
        let blocks = weight.floor() + f64::from(u8::from(chance < weight.fract()));
        Sum { blocks: blocks as u64, bytes: (size as f64 * weight).round() as u64 }
    }
}

/// The end of splitmix64.
fn hash(mut x: u64) -> u64 {
    x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ x >> 31
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_stands_for_many() {
        assert_eq!(Sample(0).of(7, 1), Sum { blocks: 1, bytes: 7 });
        let sum = Sample(512 << 10).of(64, 3);
        assert!((8192..=8193).contains(&sum.blocks) && (524_288..524_400).contains(&sum.bytes), "{sum:?}");
        assert_eq!(Sample(1000).of(1 << 40, 9), Sum { blocks: 1, bytes: 1 << 40 });
        // 1 / (1 - 1/e) = 1.582
        let blocks = (0..100_000).map(|time| Sample(1000).of(1000, time).blocks).sum::<u64>();
        assert!((157_700..158_700).contains(&blocks), "{blocks}");
        assert!(Sample(1 << 40).of(0, 0).blocks >= 1 << 39);
        assert_eq!(Sample(1000).of(1000, 5), Sample(1000).of(1000, 5));
    }
}
