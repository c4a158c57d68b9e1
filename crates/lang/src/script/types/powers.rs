//! The buckets of histograms by powers.

use super::MAX_BUCKETS;

/// The buckets of `llquantize`: from factor^from to before factor^(to + 1); those of a power are as large as its end divided by the steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Powers {
    pub factor: u16,
    pub from: u8,
    pub to: u8,
    pub steps: u16,
}

impl Powers {
    /// None: there are no such buckets, or too many.
    pub fn new(factor: i64, from: i64, to: i64, steps: i64) -> Option<Powers> {
        let powers = Powers {
            factor: u16::try_from(factor).ok().filter(|f| *f > 1)?,
            from: u8::try_from(from).ok()?,
            to: u8::try_from(to).ok().filter(|to| i64::from(*to) >= from)?,
            steps: u16::try_from(steps).ok().filter(|s| *s > 0)?,
        };
        // Steps divide each power, or are as small as one.
        let fits = |at: u8| {
            let end = powers.power(u32::from(at) + 1)?;
            let steps = i64::from(powers.steps);
            let whole = steps % i64::from(powers.factor) == 0 && (end % steps == 0 || steps % end == 0);
            whole.then_some(())
        };
        (powers.from..=powers.to).try_for_each(fits)?;
        (powers.buckets() <= MAX_BUCKETS).then_some(powers)
    }

    fn power(self, n: u32) -> Option<i64> {
        i64::from(self.factor).checked_pow(n)
    }

    /// Of a power: where it begins, where it ends, and how large its buckets are.
    fn of_power(self, at: u8) -> (i64, i64, i64) {
        let begin = self.power(at.into()).unwrap_or(i64::MAX);
        let end = self.power(u32::from(at) + 1).unwrap_or(i64::MAX);
        (begin, end, (end / i64::from(self.steps)).max(1))
    }

    /// How many buckets there are: first what is less, last what is more.
    pub fn buckets(self) -> usize {
        let of = |at| {
            let (begin, end, step) = self.of_power(at);
            ((end - begin) / step) as usize
        };
        (self.from..=self.to).map(of).fold(2, usize::saturating_add)
    }

    /// The bucket of a value.
    pub fn bucket(self, v: i64) -> usize {
        let mut first = 1;
        for at in self.from..=self.to {
            let (begin, end, step) = self.of_power(at);
            if v < begin {
                return 0;
            }
            if v < end {
                return first + ((v - begin) / step) as usize;
            }
            first += ((end - begin) / step) as usize;
        }
        first
    }

    /// From which number a bucket goes to before which one. None: it has no such end.
    pub fn range(self, bucket: usize) -> (Option<i64>, Option<i64>) {
        let mut first = 1;
        for at in self.from..=self.to {
            let (begin, end, step) = self.of_power(at);
            if bucket == 0 {
                return (None, Some(begin));
            }
            let all = ((end - begin) / step) as usize;
            if bucket < first + all {
                let begin = begin + (bucket - first) as i64 * step;
                return (Some(begin), Some(begin + step));
            }
            first += all;
        }
        (self.power(u32::from(self.to) + 1), None)
    }
}
