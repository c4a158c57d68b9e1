//! Counts of durations in buckets, and how they are drawn.
//!
//! A duration falls into an *octave*: 0; 1, 2, 4 … 512 ns; 1, 2, 4 … 512 us; the same in ms; and seconds in powers of two up to the
//! largest u64. The octaves that start at 512 end where the next unit begins, so that every limit is a round number. An octave
//! has 16 buckets of equal width, so a bucket is at most 1/16 as wide as the durations in it are long. Counts grow from the
//! shortest to the longest octave that occurs: 128 bytes each, at most 66 of them.

/// Buckets per octave.
const PARTS: usize = 16;
/// Octaves.
const OCTAVES: usize = 66;
/// What octaves are made of, ns.
const UNITS: [(u64, &str); 4] = [(1, "ns"), (1_000, "us"), (1_000_000, "ms"), (1_000_000_000, "s")];
/// Columns of the longest bar.
const BAR: usize = 52;

/// The octave of a duration.
fn octave(ns: u64) -> usize {
    let unit = match ns {
        0 => return 0,
        1..1_000 => 0,
        1_000..1_000_000 => 1,
        1_000_000..1_000_000_000 => 2,
        _ => 3,
    };
    1 + 10 * unit + (ns / UNITS[unit].0).ilog2() as usize
}

/// The shortest duration of an octave; the largest u64 for the one after the last.
fn starts(octave: usize) -> u64 {
    match octave {
        0 => 0,
        OCTAVES.. => u64::MAX,
        _ => {
            let unit = ((octave - 1) / 10).min(3);
            UNITS[unit].0 << (octave - 1 - 10 * unit)
        }
    }
}

fn bucket(ns: u64) -> usize {
    let o = octave(ns);
    let from = starts(o);
    let part = if o == 0 { 0 } else { u128::from(ns - from) * PARTS as u128 / u128::from(from) };
    o * PARTS + (part as usize).min(PARTS - 1)
}

/// The middle of a bucket.
fn middle(bucket: usize) -> u64 {
    let (o, part) = (bucket / PARTS, (bucket % PARTS) as u128);
    let (from, end) = (u128::from(starts(o)), u128::from(starts(o + 1)));
    let edge = |part: u128| (from + (from * part).div_ceil(PARTS as u128)).min(end);
    let (low, high) = (edge(part), edge(part + 1));
    (low + high.saturating_sub(low + 1) / 2) as u64
}

/// How many durations fell into each bucket.
#[derive(Clone, Debug, Default)]
pub struct Histogram {
    /// The first bucket that is kept: the first of its octave.
    first: usize,
    counts: Vec<u64>,
}

/// An octave that is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bar {
    /// The shortest duration in it, ns.
    pub from: u64,
    /// The shortest one beyond it, ns; the largest u64 for the last.
    pub to: u64,
    /// How many.
    pub n: u64,
}

impl Histogram {
    /// Counts a duration.
    #[inline]
    pub fn add(&mut self, ns: u64) {
        let b = bucket(ns);
        self.make_room(b, b + 1);
        self.counts[b - self.first] += 1;
    }

    /// Counts everything that `other` counted.
    pub fn join(&mut self, other: &Histogram) {
        if other.counts.is_empty() {
            return;
        }
        self.make_room(other.first, other.first + other.counts.len());
        let at = other.first - self.first;
        for (a, b) in self.counts[at..].iter_mut().zip(&other.counts) {
            *a += b;
        }
    }

    /// Makes room for the buckets `from..to`, in whole octaves and no more than that.
    #[inline]
    fn make_room(&mut self, from: usize, to: usize) {
        let (from, to) = (from / PARTS * PARTS, to.next_multiple_of(PARTS));
        if self.counts.is_empty() {
            self.first = from;
        }
        let end = (self.first + self.counts.len()).max(to);
        if from < self.first {
            let mut counts = Vec::with_capacity(end - from);
            counts.resize(self.first - from, 0);
            counts.append(&mut self.counts);
            (self.first, self.counts) = (from, counts);
        }
        let missing = end - self.first - self.counts.len();
        self.counts.reserve_exact(missing);
        self.counts.resize(end - self.first, 0);
    }

    /// The duration that `percent` of all are not longer than: the middle of its bucket, which is off by at most 1/32.
    pub fn quantile(&self, percent: u64) -> Option<u64> {
        let all: u64 = self.counts.iter().sum();
        let rank = (u128::from(all) * u128::from(percent)).div_ceil(100).max(1);
        let mut seen = 0;
        let at = self.counts.iter().position(|&n| {
            seen += u128::from(n);
            seen >= rank
        })?;
        Some(middle(self.first + at))
    }

    /// The octaves from the first that is not empty to the last.
    pub fn bars(&self) -> Vec<Bar> {
        let octave = |(i, part): (usize, &[u64])| {
            let o = self.first / PARTS + i;
            Bar { from: starts(o), to: starts(o + 1), n: part.iter().sum() }
        };
        let mut bars: Vec<Bar> = self.counts.chunks(PARTS).enumerate().map(octave).collect();
        let used = bars.iter().rposition(|b| b.n > 0).map_or(0, |last| last + 1);
        bars.truncate(used);
        bars.drain(..bars.iter().position(|b| b.n > 0).unwrap_or(0));
        bars
    }

    /// Appends a line per octave: limits, number, bar.
    pub fn draw(&self, out: &mut Vec<u8>) {
        let bars = self.bars();
        let most = bars.iter().map(|b| b.n).max().unwrap_or(1);
        let labels: Vec<String> = bars.iter().map(|b| format!("[{}, {})", edge(b.from), edge(b.to))).collect();
        let width = labels.iter().map(String::len).max().unwrap_or(0).max(16);
        for (bar, label) in bars.iter().zip(&labels) {
            let filled = (u128::from(bar.n) * BAR as u128 / u128::from(most)) as usize;
            let n = bar.n;
            out.extend_from_slice(format!("{label:<width$} {n:>10} |{:<BAR$}|\n", "@".repeat(filled)).as_bytes());
        }
    }
}

/// The limit of an octave in its unit.
fn edge(ns: u64) -> String {
    if ns == u64::MAX {
        return "...".to_owned();
    }
    let (unit, name) = UNITS.iter().rev().find(|(unit, _)| ns >= *unit).unwrap_or(&UNITS[0]);
    format!("{}{name}", ns / unit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn octaves_meet_and_their_limits_are_round() {
        let edges: Vec<u64> = (0..=OCTAVES).map(starts).collect();
        assert!(edges.is_sorted_by(|a, b| a < b));
        for (o, &ns) in edges[..OCTAVES].iter().enumerate() {
            assert_eq!(octave(ns), o);
            assert_eq!(octave(edges[o + 1] - 1), o);
        }
        let text: Vec<String> = edges.iter().map(|&e| edge(e)).collect();
        assert_eq!(text[..3], ["0ns", "1ns", "2ns"]);
        assert_eq!(text[9..13], ["256ns", "512ns", "1us", "2us"]);
        assert_eq!(text[30..33], ["512ms", "1s", "2s"]);
        assert_eq!(text[65..], ["17179869184s", "..."]);
        assert_eq!(octave(u64::MAX), OCTAVES - 1);
    }

    #[test]
    fn nothing_has_no_quantile_and_no_bars() {
        let mut out = Vec::new();
        Histogram::default().draw(&mut out);
        assert!(out.is_empty());
        assert_eq!(Histogram::default().quantile(50), None);
    }

    #[test]
    fn empty_octaves_are_drawn_between_others_only() {
        let mut h = Histogram::default();
        [1_999, 700, 4_000, 4_500].into_iter().for_each(|ns| h.add(ns));
        let n: Vec<(u64, u64)> = h.bars().iter().map(|b| (b.from, b.n)).collect();
        assert_eq!(n, [(512, 1), (1_000, 1), (2_000, 0), (4_000, 2)]);
    }

    /// Lengths as they occur and as they could: every octave is as likely as any other.
    fn any_length() -> impl Strategy<Value = u64> {
        (0..64u32, any::<u64>()).prop_map(|(shift, v)| v >> shift)
    }

    proptest! {
        #[test]
        fn a_quantile_is_as_exact_as_is_said(mut all in prop::collection::vec(any_length(), 1..200), percent in 0..=100u64) {
            let mut h = Histogram::default();
            all.iter().for_each(|&ns| h.add(ns));
            all.sort_unstable();
            let rank = (all.len() as u64 * percent).div_ceil(100).max(1) as usize;
            let (exact, got) = (all[rank - 1], h.quantile(percent).unwrap());
            prop_assert!(exact.abs_diff(got) <= exact / 32 + 1, "{exact} {got}");
        }

        #[test]
        fn joined_histograms_count_as_one(
            a in prop::collection::vec(any_length(), 0..50), b in prop::collection::vec(any_length(), 0..50)
        ) {
            let of = |v: &mut dyn Iterator<Item = &u64>| {
                let mut h = Histogram::default();
                v.for_each(|&ns| h.add(ns));
                h
            };
            let mut joined = of(&mut a.iter());
            joined.join(&of(&mut b.iter()));
            let together = of(&mut a.iter().chain(&b));
            prop_assert_eq!(joined.bars(), together.bars());
            prop_assert_eq!(joined.quantile(90), together.quantile(90));
            prop_assert!(joined.counts.capacity() <= OCTAVES * PARTS);
        }
    }
}
