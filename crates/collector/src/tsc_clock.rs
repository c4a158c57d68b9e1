//! When the time stamp counter had a value: moments on both clocks that trapline has taken itself.
//!
//! A process could say when it has taken a chunk. But a tracer may stop it between its looks at the two clocks, and in a time namespace it
//! has a clock of its own. All processors have one counter, so trapline's moments are those of every process.

use events::functions::{Clock, Moment};
use std::collections::VecDeque;

/// The least distance of moments that are kept, ns.
const APART: u64 = 10_000_000;
/// How many are kept: of at least 10 s.
const MOST: usize = 1024;

/// TscClock, in order.
pub struct TscClock {
    kept: VecDeque<Moment>,
    last: Moment,
}

fn take() -> Moment {
    let (tsc, monotonic) = sys::time::stamp();
    Moment { tsc, monotonic }
}

impl TscClock {
    /// From now on.
    pub fn new() -> TscClock {
        let first = take();
        TscClock { kept: VecDeque::from([first]), last: first }
    }

    /// Takes one.
    pub fn now(&mut self) -> Moment {
        let now = take();
        if self.kept.back().is_none_or(|m| now.monotonic >= m.monotonic + APART) {
            if self.kept.len() == MOST {
                // The first one stays: it is far away from all others, which makes up for what it is off.
                self.kept.remove(1);
            }
            self.kept.push_back(now);
        }
        self.last = now;
        now
    }

    /// What the counter was this many ns before the last moment, or earlier.
    pub fn ago(&self, ns: u64) -> u64 {
        let first = self.kept.front().copied().unwrap_or_default();
        let (ticks, of) =
            (self.last.tsc.saturating_sub(first.tsc), self.last.monotonic.saturating_sub(first.monotonic));
        // A short time says little about the counter's rate.
        if of <= 2 * ns {
            return first.tsc;
        }
        let back = u128::from(ticks) * u128::from(ns) / u128::from(of);
        self.last.tsc.saturating_sub(back.try_into().unwrap_or(u64::MAX))
    }

    /// The moment at which the counter had this value: between the two that are next to it. A value from before the first moment, or after
    /// the last one, is not one of this session: that moment is returned.
    pub fn at(&self, tsc: u64) -> Moment {
        let after = self.kept.partition_point(|m| m.tsc <= tsc);
        let (Some(before), true) = (after.checked_sub(1).map(|n| self.kept[n]), tsc < self.last.tsc) else {
            return if after == 0 { self.kept[0] } else { self.last };
        };
        let next = self.kept.get(after).copied().unwrap_or(self.last);
        Moment { tsc, monotonic: Clock::between(before, next).ns(tsc) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_lies_between_its_neighbours() {
        let mut moments = TscClock::new();
        let taken: Vec<Moment> = (0..200).map(|_| moments.now()).collect();
        for pair in taken.windows(2) {
            let middle = moments.at(pair[0].tsc / 2 + pair[1].tsc / 2);
            // Each look at the clocks takes a while, and may be off by as much.
            assert!(middle.monotonic + 1_000_000 > pair[0].monotonic, "{middle:?} {pair:?}");
            assert!(middle.monotonic < pair[1].monotonic + 1_000_000, "{middle:?} {pair:?}");
        }
        assert_eq!((moments.at(0), moments.at(u64::MAX)), (moments.kept[0], moments.last));
    }
}
