//! Whether memory grows: a verdict on a series.
//!
//! The series is cut into eight parts of equal length. The *floor* of a part is what nine tenths of its points exceed or reach: what is
//! given back again and again does not count, nor does a short end at which everything is freed. The first quarter is the
//! start-up, and does not count. With `growth` as the last floor minus the third:
//!
//! 1. less than 16 points: too short to tell;
//! 2. growth below 5% of the most there was: *no growth*, unless every floor is higher than the one before and the growth is at
//!    least 0.5%; *falls* where it is below minus 5%;
//! 3. of the growth, a tenth or less in the last quarter: *levels off*;
//! 4. fewer than three of the five floors after the third are higher than the one before by 5% of the growth: *grows in jumps*;
//! 5. else it *grows steadily*; the rate at the end is that of the last quarter.

/// Parts of a series.
const PARTS: usize = 8;
/// The least points of a verdict.
const LEAST: usize = 2 * PARTS;
/// The first part after the start-up.
const FIRST: usize = 2;

/// How memory changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trend {
    /// There are too few points.
    TooShort,
    /// After the start-up it does not grow.
    None,
    /// It grows all the time.
    Steady {
        /// Bytes a second at the end.
        rate: u64,
    },
    /// It has grown, but not all the time.
    Jumps,
    /// It has grown and does so no longer.
    LevelsOff,
    /// It has become less.
    Falls,
}

impl Trend {
    /// Its name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Trend::TooShort => "too-short",
            Trend::None => "no-growth",
            Trend::Steady { .. } => "grows-steadily",
            Trend::Jumps => "grows-in-jumps",
            Trend::LevelsOff => "levels-off",
            Trend::Falls => "falls",
        }
    }

    /// In words.
    pub fn text(self) -> String {
        match self {
            Trend::TooShort => "too short to tell".to_owned(),
            Trend::None => "no growth".to_owned(),
            Trend::Steady { rate } => format!("grows steadily ({}/s at the end)", crate::units::size(rate)),
            Trend::Jumps => "grows in jumps".to_owned(),
            Trend::LevelsOff => "levels off".to_owned(),
            Trend::Falls => "falls".to_owned(),
        }
    }
}

/// A verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// How memory changes.
    pub trend: Trend,
    /// Bytes more than after the start-up; less than 0: fewer.
    pub growth: i64,
}

/// The verdict on points that are `step` ns apart.
pub fn verdict(points: &[u64], step: u64) -> Verdict {
    let n = points.len();
    if n < LEAST {
        return Verdict { trend: Trend::TooShort, growth: 0 };
    }
    let floors: [i128; PARTS] = std::array::from_fn(|i| floor(&points[i * n / PARTS..(i + 1) * n / PARTS]));
    let most = points.iter().copied().max().map_or(0, i128::from);
    let [.., before, _, last] = floors;
    let growth = last - floors[FIRST];
    let rises = |least: i128| floors[FIRST..].windows(2).filter(|pair| pair[1] - pair[0] > least).count();
    let grows = growth * 20 >= most && growth > 0 || rises(0) == PARTS - FIRST - 1 && growth * 200 >= most;
    let trend = if -growth * 20 >= most && growth < 0 {
        Trend::Falls
    } else if !grows {
        Trend::None
    } else if (last - before) * 10 <= growth {
        Trend::LevelsOff
    } else if rises(growth / 20) < 3 {
        Trend::Jumps
    } else {
        // From the beginning of the last part but two to that of the last one.
        let time = (7 * n / PARTS - 5 * n / PARTS) as i128 * i128::from(step.max(1));
        let rate = (last - before) * 1_000_000_000 / time;
        Trend::Steady { rate: u64::try_from(rate).unwrap_or(u64::MAX) }
    };
    let growth = i64::try_from(growth).unwrap_or(if growth > 0 { i64::MAX } else { i64::MIN });
    Verdict { trend, growth }
}

/// What nine tenths of the points exceed or reach.
fn floor(points: &[u64]) -> i128 {
    let mut sorted = points.to_vec();
    sorted.sort_unstable();
    sorted.get(sorted.len() / 10).copied().map_or(0, i128::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of n points a millisecond apart.
    fn of(n: u64, f: impl Fn(u64) -> u64) -> Trend {
        verdict(&(0..n).map(f).collect::<Vec<_>>(), 1_000_000).trend
    }

    #[test]
    fn what_grows_and_what_does_not() {
        for n in [16, 23, 32, 600, 1024] {
            let steady = of(n, |i| 5000 + 100 * i);
            let Trend::Steady { rate } = steady else { panic!("{n}: {steady:?}") };
            assert!((85_000..=130_000).contains(&rate), "{n}: {rate}");
            assert!(matches!(of(n, |i| 5000 + i * i), Trend::Steady { .. }), "{n}: ever faster");
            assert_eq!(of(n, |i| (100 * i).min(50 * n)), Trend::LevelsOff, "{n}: a cache up to its limit");
            assert_eq!(of(n, |i| if i < n / 5 { 1000 * i } else { 200 * n }), Trend::None, "{n}: start-up, then flat");
            assert_eq!(of(n, |_| 77), Trend::None, "{n}: flat");
            assert_eq!(of(n, |_| 0), Trend::None, "{n}: nothing");
            assert_eq!(of(n, |i| 100 * (n - i)), Trend::Falls, "{n}");
            assert_eq!(of(n, |i| if i < n * 5 / 8 { 1000 } else { 3000 }), Trend::LevelsOff, "{n}: once");
            assert_eq!(of(n, |i| u64::MAX - n + i), Trend::None, "{n}: too little, too large");
        }
        assert_eq!(of(15, |i| i), Trend::TooShort);
        assert_eq!(of(0, |i| i), Trend::TooShort);
    }

    #[test]
    fn released_memory_does_not_count() {
        for period in [7, 20, 60, 100] {
            assert_eq!(of(1000, |i| 1000 + 100 * (i % period)), Trend::None, "a saw of {period}");
            assert!(
                matches!(of(1000, |i| 10 * i + 100 * (i % period)), Trend::Steady { .. }),
                "a saw that leaks, {period}"
            );
        }
        // A leak that is freed at exit.
        assert!(matches!(of(1000, |i| if i > 990 { 0 } else { 100 * i }), Trend::Steady { .. }));
        // A slow leak under much that stays.
        assert!(matches!(of(1000, |i| 1_000_000 + 20 * i), Trend::Steady { rate: 18_000..=22_000 }));
        assert_eq!(of(1000, |i| if i < 600 { 1000 } else { 1000 + 4000 * (i / 800) }), Trend::Jumps);
    }

    #[test]
    fn the_rate_is_that_of_the_end() {
        // 1 byte a ms, then 10.
        let Trend::Steady { rate } = of(800, |i| i + 9 * i.saturating_sub(500)) else { panic!() };
        assert!((9_900..=10_100).contains(&rate), "{rate}");
    }
}
