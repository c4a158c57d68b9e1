//! From time stamps of the processor to times.

/// Moments on both clocks: the time stamp counter, and the monotonic clock, ns.
pub struct Clock {
    first: (u64, u64),
    before: (u64, u64),
    now: (u64, u64),
}

/// How long the rate of the counter has to be measured before it is taken as it is, ns.
const LONG: u64 = 10_000_000;

impl Clock {
    /// From now on.
    pub fn new() -> Clock {
        let first = sys::time::stamp();
        // Two moments of which one is no later could not say how fast the counter runs.
        while sys::time::monotonic() < first.1 + 100_000 {
            std::hint::spin_loop();
        }
        let now = sys::time::stamp();
        Clock { first, before: first, now }
    }

    /// Takes a moment. What is asked for afterwards lies before it.
    pub fn look(&mut self) {
        let now = sys::time::stamp();
        if now.0 > self.now.0 && now.1 > self.now.1 {
            self.before = self.now;
            self.now = now;
        }
    }

    /// The time at which the counter had this value: between the last two moments, or as long before them as the counter says.
    pub fn at(&self, tsc: u64) -> u64 {
        if tsc >= self.before.0 {
            let since = scale(tsc - self.before.0, self.before, self.now);
            return (self.before.1 + since).min(self.now.1);
        }
        let rate =
            if self.before.1 >= self.first.1 + LONG { (self.first, self.before) } else { (self.first, self.now) };
        self.before.1.saturating_sub(scale(self.before.0 - tsc, rate.0, rate.1))
    }
}

/// So many ticks in ns, at the rate between two moments.
fn scale(ticks: u64, from: (u64, u64), to: (u64, u64)) -> u64 {
    let (of, ns) = ((to.0 - from.0).max(1), to.1 - from.1);
    u64::try_from(u128::from(ticks) * u128::from(ns) / u128::from(of)).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_lie_between_their_moments() {
        let clock =
            Clock { first: (1000, 500), before: (2_000_001_000, 1_000_000_500), now: (2_000_003_000, 1_000_001_500) };
        let at = |tsc| clock.at(tsc);
        assert_eq!(
            [at(2_000_001_000), at(2_000_002_000), at(2_000_003_000)],
            [1_000_000_500, 1_000_001_000, 1_000_001_500]
        );
        // Hostile values are times, too.
        assert_eq!((at(1000), at(u64::MAX), at(0)), (500, 1_000_001_500, 0));
    }

    #[test]
    fn the_counter_agrees_with_the_clock() {
        let mut clock = Clock::new();
        for _ in 0..100 {
            let (tsc, now) = sys::time::stamp();
            clock.look();
            assert!(clock.at(tsc).abs_diff(now) < 1_000_000, "{} {now}", clock.at(tsc));
        }
    }
}
