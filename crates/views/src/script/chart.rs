//! Histograms: a line for each bucket, from the first to the last one that is not empty.

use lang::script::maps::log2_range;
use lang::script::types::Aggregate;

/// The widest bar.
const BAR: f32 = 52.0;

/// A bucket: where it begins (inclusive) and ends (inclusive), and how many values are in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bucket {
    pub min: Option<i64>,
    pub max: Option<i64>,
    pub count: u64,
}

/// The buckets that are shown.
pub(super) fn buckets(aggregate: Aggregate, counts: &[u64], div: i64) -> Vec<Bucket> {
    shown(counts).map(|i| bucket(aggregate, i, counts[i], div)).collect()
}

fn shown(counts: &[u64]) -> std::ops::Range<usize> {
    let first = counts.iter().position(|n| *n > 0).unwrap_or(0);
    let last = counts.iter().rposition(|n| *n > 0).map_or(0, |i| i + 1);
    first..last
}

fn bucket(aggregate: Aggregate, index: usize, count: u64, div: i64) -> Bucket {
    match aggregate {
        Aggregate::Lhist { min, max, step } => {
            let steps = ((max - min) / step) as usize;
            let start = min.saturating_add((index as i64 - 1).saturating_mul(step));
            let (from, to) = match index {
                0 => (None, Some(min.saturating_sub(1))),
                i if i > steps => (Some(max), None),
                _ => (Some(start), Some(start + step - 1)),
            };
            Bucket { min: from, max: to, count }
        }
        Aggregate::Llquantize(powers) => {
            let (from, to) = powers.range(index);
            Bucket { min: from, max: to.map(|to| to - 1), count }
        }
        Aggregate::Hist { bits } => {
            let count = count / div.max(1) as u64;
            match log2_range(index, bits) {
                None => Bucket { min: None, max: Some(-1), count },
                Some((from, to)) => Bucket { min: Some(from as i64), max: Some((to - 1) as i64), count },
            }
        }
        _ => Bucket { min: None, max: None, count },
    }
}

/// Appends a line for each bucket.
pub(super) fn lines(aggregate: Aggregate, counts: &[u64], div: i64, out: &mut Vec<u8>) {
    let most = counts.iter().copied().max().unwrap_or(0).max(1);
    for i in shown(counts) {
        let bucket = bucket(aggregate, i, counts[i], div);
        // Bars are of what was counted, in single precision.
        let bar = (counts[i] as f32 / most as f32 * BAR) as usize;
        let label = label(aggregate, i, bucket);
        let line = format!("{label:<16}{:>8} |{:<52}|\n", bucket.count, "@".repeat(bar));
        out.extend_from_slice(line.as_bytes());
    }
}

fn label(aggregate: Aggregate, index: usize, b: Bucket) -> String {
    match (aggregate, b.min, b.max) {
        (Aggregate::Lhist { min, .. }, None, _) => format!("(..., {})", linear(min)),
        (Aggregate::Lhist { .. }, Some(min), None) => format!("[{}, ...)", linear(min)),
        (Aggregate::Lhist { .. }, Some(min), Some(max)) => format!("[{}, {})", linear(min), linear(max + 1)),
        (Aggregate::Llquantize(_), None, Some(max)) => format!("(..., {})", max + 1),
        (Aggregate::Llquantize(_), Some(min), None) => format!("[{min}, ...)"),
        (_, None, _) => "(..., 0)".into(),
        (_, Some(min), Some(max)) if min == max => format!("[{min}]"),
        (Aggregate::Llquantize(_), Some(min), Some(max)) => format!("[{min}, {})", max + 1),
        (Aggregate::Hist { bits }, ..) => format!("[{}, {})", power(index - 1, bits), power(index, bits)),
        _ => String::new(),
    }
}

/// The start of a bucket of powers of two: the part of the power in 2^bits parts, with the power's unit.
fn power(index: usize, bits: u8) -> String {
    let (interval, part) = (index >> bits, index & ((1 << bits) - 1));
    match interval.checked_sub(1) {
        None => index.to_string(),
        Some(power) => {
            let unit = ["", "K", "M", "G", "T", "P", "E"].get(power / 10).copied().unwrap_or_default();
            format!("{}{unit}", ((1u64 << bits) + part as u64) << (power % 10))
        }
    }
}

/// A number in units of 1024 where it is a multiple of one.
fn linear(n: i64) -> String {
    match n {
        0 => "0".into(),
        n if n % (1 << 20) == 0 => format!("{}M", n >> 20),
        n if n % (1 << 10) == 0 => format!("{}K", n >> 10),
        n => n.to_string(),
    }
}
