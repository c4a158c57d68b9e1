//! Maps in memory: what is collected, and in which order it is shown. Their keys are in `store.rs`.

mod store;

use super::ir;
use super::types::{Aggregate, Type};
use super::value::Value;
use events::functions::Sums;
use std::cmp::Ordering;
pub(super) use store::Store;

/// What a map holds at a key.
#[derive(Clone, Debug, PartialEq)]
pub enum Held {
    /// A value; of an aggregation, its number.
    Value(Value),
    /// Of `stats` and `avg`: how many, and their sum.
    Total {
        /// How many.
        count: u64,
        /// Their sum.
        total: i64,
    },
    /// Of `stddev`: how many, their sum, and that of their squares.
    Spread {
        /// How many.
        count: u64,
        /// Their sum.
        total: i128,
        /// The sum of their squares.
        squares: u128,
        /// How often that sum went beyond 2^128.
        carries: u64,
    },
    /// Of `min` and `max`: the value, if there was one.
    Extreme(Option<i64>),
    /// Of `hist`, `lhist` and `llquantize`: how many in each bucket.
    Buckets(Vec<u64>),
}

/// A line of a map.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The parts of the key; none for a map that is one value.
    pub key: Vec<Value>,
    /// What it holds.
    pub held: Held,
}

/// The order in which lines of a map are shown.
pub(super) fn order(map: &ir::Map, a: &Row, b: &Row) -> Ordering {
    let by_value = rank(&a.held, &map.value).cmp(&rank(&b.held, &map.value));
    by_value.then_with(|| compare_keys(&a.key, &b.key, &map.key))
}

/// The parts of an encoded key.
pub(super) fn parts(key: &[u8], types: &[Type]) -> Vec<Value> {
    let mut rest = key;
    let part = |t: &Type| {
        let (v, after) = Value::decode(rest, t);
        rest = after;
        v
    };
    types.iter().map(part).collect()
}

/// Where a line is by its value: numbers in the order of the type's, 0 for all that are in the order of their keys.
fn rank(held: &Held, ty: &Type) -> i128 {
    let number = |v: i64, signed: bool| if signed { i128::from(v) } else { i128::from(v as u64) };
    match (held, ty) {
        (Held::Value(Value::Int(v)), Type::Int(c)) => number(*v, c.signed),
        (Held::Value(Value::Int(v)), Type::Aggregate(a)) => number(*v, a.value().as_int().is_some_and(|c| c.signed)),
        // The peer's order: of the bits, whatever their sign.
        (Held::Extreme(v), _) => number(v.unwrap_or(0), false),
        (Held::Total { .. }, Type::Aggregate(Aggregate::Avg { signed } | Aggregate::Stats { signed })) => {
            number(held.average(*signed), *signed)
        }
        (Held::Buckets(b), _) => b.iter().map(|n| i128::from(*n)).sum(),
        (Held::Spread { .. }, _) => held.deviation().into(),
        _ => 0,
    }
}

fn compare_keys(a: &[Value], b: &[Value], types: &[Type]) -> Ordering {
    let pairs = a.iter().zip(b).zip(types);
    pairs.map(|((a, b), t)| compare(a, b, t)).find(|o| o.is_ne()).unwrap_or(Ordering::Equal)
}

fn compare(a: &Value, b: &Value, ty: &Type) -> Ordering {
    match (a, b, ty) {
        (Value::Tuple(a), Value::Tuple(b), Type::Tuple(types) | Type::Record(_, types)) => compare_keys(a, b, types),
        // Integers are compared as signed ones of their width.
        (Value::Int(a), Value::Int(b), _) => {
            let width = ty.as_int().map_or(8, |c| c.size);
            let signed = crate::ast::Cast { size: width, signed: true };
            signed.apply(*a).cmp(&signed.apply(*b))
        }
        (Value::Of { word: a, pid: p }, Value::Of { word: b, pid: q }, _) => (a, p).cmp(&(b, q)),
        _ => a.bytes().cmp(b.bytes()),
    }
}

impl Held {
    /// What is held before the first value.
    pub fn new(ty: &Type) -> Held {
        match ty {
            Type::Aggregate(Aggregate::Avg { .. } | Aggregate::Stats { .. }) => Held::Total { count: 0, total: 0 },
            Type::Aggregate(Aggregate::Min { .. } | Aggregate::Max { .. }) => Held::Extreme(None),
            Type::Aggregate(Aggregate::Hist { .. } | Aggregate::Lhist { .. } | Aggregate::Llquantize(_)) => {
                Held::Buckets(Vec::new())
            }
            Type::Aggregate(Aggregate::Stddev { .. }) => Held::Spread { count: 0, total: 0, squares: 0, carries: 0 },
            ty => Held::Value(Value::zero(ty)),
        }
    }

    /// Of [`Held::Total`].
    pub fn average(&self, signed: bool) -> i64 {
        match self {
            Held::Total { count: 0, .. } => 0,
            Held::Total { count, total } if signed => (i128::from(*total) / i128::from(*count)) as i64,
            Held::Total { count, total } => (*total as u64 / count) as i64,
            _ => 0,
        }
    }

    /// Of [`Held::Spread`]: the standard deviation of all values, without its fraction.
    pub fn deviation(&self) -> u64 {
        let &Held::Spread { count, total, squares, carries } = self else { return 0 };
        let n = u128::from(count);
        // n² times the variance.
        let exact = n.checked_mul(squares).filter(|_| carries == 0).zip(total.unsigned_abs().checked_pow(2));
        let variance = match exact {
            Some((of_squares, of_total)) => of_squares.saturating_sub(of_total).checked_div(n * n).unwrap_or(0),
            None => {
                let (n, total) = (count as f64, total as f64);
                let squares = squares as f64 + carries as f64 * 128f64.exp2();
                ((squares - total * total / n) / n) as u128
            }
        };
        variance.isqrt() as u64
    }

    /// As the value that a script reads.
    pub fn read(&self, ty: &Type) -> Value {
        match self {
            Held::Value(v) => v.clone(),
            Held::Extreme(v) => Value::Int(v.unwrap_or(0)),
            Held::Total { .. } => Value::Int(self.average(ty.as_int().is_some_and(|c| c.signed))),
            Held::Spread { .. } => Value::Int(self.deviation() as i64),
            Held::Buckets(_) => Value::Int(0),
        }
    }

    /// Adds a value; `aggregate` is the map's. In a histogram it counts `weight` times.
    pub fn collect(&mut self, aggregate: Aggregate, v: i64, weight: u64) {
        match (self, aggregate) {
            (Held::Value(Value::Int(n)), Aggregate::Count) => *n = n.wrapping_add(1),
            (Held::Value(Value::Int(n)), _) => *n = n.wrapping_add(v),
            (Held::Total { count, total }, _) => (*count, *total) = (*count + 1, total.wrapping_add(v)),
            (Held::Extreme(e), Aggregate::Min { signed }) => {
                let less = e.is_none_or(|e| if signed { v < e } else { (v as u64) < e as u64 });
                *e = if less { Some(v) } else { *e };
            }
            (Held::Extreme(e), Aggregate::Max { signed }) => {
                let more = e.is_none_or(|e| if signed { v > e } else { v as u64 > e as u64 });
                *e = if more { Some(v) } else { *e };
            }
            (Held::Buckets(b), Aggregate::Hist { bits }) => count(b, log2(v, bits), weight),
            (Held::Buckets(b), Aggregate::Lhist { min, max, step }) => count(b, linear(v, min, max, step), weight),
            (Held::Buckets(b), Aggregate::Llquantize(powers)) => count(b, powers.bucket(v), weight),
            (Held::Spread { count, total, squares, carries }, Aggregate::Stddev { signed }) => {
                let v = if signed { i128::from(v) } else { i128::from(v as u64) };
                *count += 1;
                *total = total.saturating_add(v);
                let (sum, carry) = squares.overflowing_add(v.unsigned_abs().pow(2));
                (*squares, *carries) = (sum, *carries + u64::from(carry));
            }
            _ => {}
        }
    }
}

impl Held {
    /// Adds a value this many times.
    pub fn collect_times(&mut self, aggregate: Aggregate, v: i64, times: u64) {
        match (&mut *self, aggregate) {
            _ if times == 0 => {}
            (Held::Value(Value::Int(n)), Aggregate::Count) => *n = n.wrapping_add(times as i64),
            (Held::Value(Value::Int(n)), _) => *n = n.wrapping_add(v.wrapping_mul(times as i64)),
            (Held::Total { count, total }, _) => {
                (*count, *total) = (*count + times, total.wrapping_add(v.wrapping_mul(times as i64)));
            }
            (Held::Extreme(_), _) => self.collect(aggregate, v, 1),
            (Held::Buckets(_), _) => self.collect(aggregate, v, times),
            _ => (0..times).for_each(|_| self.collect(aggregate, v, 1)),
        }
    }

    /// Adds what was added up elsewhere of values that are not negative. Histograms have powers of two.
    pub fn collect_sums(&mut self, aggregate: Aggregate, sums: &Sums) {
        match (self, aggregate) {
            (Held::Value(Value::Int(n)), Aggregate::Count) => *n = n.wrapping_add(sums.ended as i64),
            (Held::Value(Value::Int(n)), _) => *n = n.wrapping_add(sums.total as i64),
            (Held::Total { count, total }, _) => {
                (*count, *total) = (count.wrapping_add(sums.ended), total.wrapping_add(sums.total as i64));
            }
            (held @ Held::Extreme(_), Aggregate::Min { .. }) => {
                sums.least.into_iter().for_each(|v| held.collect(aggregate, v as i64, 1));
            }
            (held @ Held::Extreme(_), _) => sums.most.into_iter().for_each(|v| held.collect(aggregate, v as i64, 1)),
            (Held::Buckets(buckets), _) => {
                let used = sums.buckets.iter().rposition(|n| *n > 0).map_or(0, |last| last + 1);
                buckets.resize(buckets.len().max(used + 1), 0);
                buckets.iter_mut().skip(1).zip(&sums.buckets).for_each(|(n, more)| *n = n.wrapping_add(*more));
            }
            _ => {}
        }
    }

    /// Adds what was collected elsewhere for a map of this type.
    pub(super) fn join(&mut self, ty: &Type, other: Held) {
        match (self, other, ty) {
            (Held::Value(Value::Int(n)), Held::Value(Value::Int(more)), _) => *n = n.wrapping_add(more),
            (Held::Total { count, total }, Held::Total { count: n, total: sum }, _) => {
                (*count, *total) = (count.wrapping_add(n), total.wrapping_add(sum));
            }
            (held @ Held::Extreme(_), Held::Extreme(Some(v)), Type::Aggregate(aggregate)) => {
                held.collect(*aggregate, v, 1);
            }
            (Held::Buckets(buckets), Held::Buckets(more), _) => {
                buckets.resize(buckets.len().max(more.len()), 0);
                buckets.iter_mut().zip(more).for_each(|(n, more)| *n = n.saturating_add(more));
            }
            (
                Held::Spread { count, total, squares, carries },
                Held::Spread { count: n, total: t, squares: s, carries: c },
                _,
            ) => {
                (*count, *total) = (count.wrapping_add(n), total.saturating_add(t));
                let (sum, carry) = squares.overflowing_add(s);
                (*squares, *carries) = (sum, *carries + c + u64::from(carry));
            }
            _ => {}
        }
    }

    /// Adds what words hold that somebody else has collected: see [`words_of`].
    fn merge(&mut self, ty: &Type, words: &[u64]) {
        let word = |i: usize| words.get(i).copied().unwrap_or(0);
        match (self, ty) {
            (Held::Value(Value::Int(n)), _) => *n = n.wrapping_add(word(0) as i64),
            (Held::Total { count, total }, _) => {
                (*count, *total) = (count.wrapping_add(word(0)), total.wrapping_add(word(1) as i64));
            }
            (held @ Held::Extreme(_), Type::Aggregate(aggregate)) if word(1) != 0 => {
                held.collect(*aggregate, extreme(*aggregate, word(0)), 1);
            }
            (Held::Buckets(buckets), _) => {
                let used = words.iter().rposition(|n| *n > 0).map_or(0, |last| last + 1);
                buckets.resize(buckets.len().max(used), 0);
                buckets.iter_mut().zip(words).for_each(|(n, more)| *n = n.wrapping_add(*more));
            }
            _ => {}
        }
    }
}

/// How many words hold what a map of this type has at a key, for who collects elsewhere; None: nobody can. Zeros are nothing.
///
/// | type | words |
/// |---|---|
/// | count | how many |
/// | sum, integers that are only added to | the sum; 1 where there is one |
/// | avg, stats | how many, their sum |
/// | min, max | [`ordered`] of the value, of which the largest counts; 1 where there is one |
/// | hist, lhist | a word for each bucket |
pub fn words_of(ty: &Type) -> Option<usize> {
    Some(match ty {
        Type::Aggregate(Aggregate::Count) => 1,
        Type::Int(_) | Type::Aggregate(Aggregate::Sum { .. }) => 2,
        Type::Aggregate(Aggregate::Avg { .. } | Aggregate::Stats { .. }) => 2,
        Type::Aggregate(Aggregate::Min { .. } | Aggregate::Max { .. }) => 2,
        Type::Aggregate(Aggregate::Hist { bits }) => log2(i64::MAX, *bits) + 1,
        Type::Aggregate(Aggregate::Lhist { min, max, step }) => linear(i64::MAX, *min, *max, *step) + 1,
        _ => return None,
    })
}

/// A value of `min` or `max` as a word of which the largest one counts: what it is combined with by an exclusive or.
pub fn ordered(aggregate: Aggregate) -> u64 {
    let sign = |signed: bool| if signed { 1 << 63 } else { 0 };
    match aggregate {
        Aggregate::Min { signed } => !sign(signed),
        Aggregate::Max { signed } => sign(signed),
        _ => 0,
    }
}

/// The value back.
fn extreme(aggregate: Aggregate, word: u64) -> i64 {
    (word ^ ordered(aggregate)) as i64
}

fn count(buckets: &mut Vec<u64>, at: usize, weight: u64) {
    if buckets.len() <= at {
        buckets.resize(at + 1, 0);
    }
    buckets[at] = buckets[at].saturating_add(weight);
}

/// The bucket of a value: 0 of negative ones, 1 of zero, then powers of two, each in 2^bits parts.
fn log2(v: i64, bits: u8) -> usize {
    match v {
        i64::MIN..0 => 0,
        v if v < 1 << bits => v as usize + 1,
        v => {
            let power = 63 - v.leading_zeros() - u32::from(bits);
            let part = (v >> power) as usize & ((1 << bits) - 1);
            (((power as usize + 1) << bits) | part) + 1
        }
    }
}

/// Where a bucket of `hist` begins and ends: from the first number on to before the second one. None: that of negative values.
pub fn log2_range(bucket: usize, bits: u8) -> Option<(u64, u64)> {
    let v = bucket.checked_sub(1)?;
    let (power, part) = (v >> bits, (v & ((1 << bits) - 1)) as u64);
    match power {
        0 => Some((v as u64, v as u64 + 1)),
        p if p + usize::from(bits) > 64 => None,
        p => {
            let start = |part: u64| (((1u128 << bits) + u128::from(part)) << (p - 1)).min(u64::MAX.into()) as u64;
            Some((start(part), start(part + 1)))
        }
    }
}

/// The bucket of a value: 0 below `min`, then the steps, then what is `max` or above.
fn linear(v: i64, min: i64, max: i64, step: i64) -> usize {
    let steps = (max - min) / step;
    match v {
        v if v < min => 0,
        v if v >= max => steps as usize + 1,
        // Where the steps do not reach max, what is between belongs to the last one.
        v => (1 + (v - min) / step).min(steps + 1) as usize,
    }
}

#[cfg(test)]
mod tests {
    use super::super::types::Powers;
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Every number is in the bucket that says so.
        #[test]
        fn buckets_hold_what_they_say(v in any::<i64>().prop_flat_map(|v| (0u32..63).prop_map(move |s| v >> s)), bits in 0u8..6) {
            match log2_range(log2(v, bits), bits) {
                None => prop_assert!(v < 0),
                Some((from, to)) => prop_assert!(v >= 0 && from <= v as u64 && (v as u64) < to, "{v} {from} {to}"),
            }
        }

        #[test]
        fn buckets_follow_each_other(bucket in 1usize..1500, bits in 0u8..6) {
            if let (Some(a), Some(b)) = (log2_range(bucket, bits), log2_range(bucket + 1, bits)) {
                prop_assert_eq!(a.1, b.0);
            }
        }
    }

    /// What is collected in two places is what is collected in one.
    #[test]
    fn what_was_collected_in_parts_is_joined() {
        use Aggregate::*;
        let powers = Llquantize(crate::script::types::Powers { factor: 10, from: 0, to: 3, steps: 10 });
        let all = [Count, Sum { signed: true }, Min { signed: true }, Max { signed: false }, Avg { signed: true }];
        let others =
            [Stats { signed: false }, Hist { bits: 1 }, Lhist { min: -5, max: 10, step: 4 }, Stddev { signed: true }];
        let values = [7i64, -3, 0, i64::MIN, i64::MAX, 4, 1 << 40, i64::MIN];
        for aggregate in all.into_iter().chain(others).chain([powers]) {
            let ty = Type::Aggregate(aggregate);
            for at in 0..=values.len() {
                let collected = |values: &[i64]| {
                    let mut held = Held::new(&ty);
                    values.iter().for_each(|v| held.collect(aggregate, *v, 1));
                    held
                };
                let mut several = collected(&values[..at]);
                several.collect_times(aggregate, 5, at as u64);
                let again = [&values[..at], &vec![5; at]].concat();
                assert_eq!(several, collected(&again), "{aggregate:?} {at}");
                let mut first = collected(&values[..at]);
                first.join(&ty, collected(&values[at..]));
                assert_eq!(first, collected(&values), "{aggregate:?} {at}");
            }
        }
    }

    #[test]
    fn words_of_others_are_merged() {
        use Aggregate::*;
        let all = [
            Count,
            Sum { signed: true },
            Min { signed: true },
            Min { signed: false },
            Max { signed: true },
            Max { signed: false },
            Avg { signed: true },
            Stats { signed: false },
            Hist { bits: 0 },
            Hist { bits: 2 },
            Lhist { min: -5, max: 10, step: 4 },
        ];
        let values = [7i64, -3, 0, i64::MIN, i64::MAX, 4, 1 << 40];
        for aggregate in all {
            let ty = Type::Aggregate(aggregate);
            let mut whole = Held::new(&ty);
            values.iter().for_each(|v| whole.collect(aggregate, *v, 1));
            let mut merged = Held::new(&ty);
            for (nth, v) in values.iter().enumerate() {
                if nth % 2 == 0 {
                    merged.collect(aggregate, *v, 1);
                    continue;
                }
                let mut words = vec![0; words_of(&ty).unwrap()];
                match aggregate {
                    Count => words[0] = 1,
                    Sum { .. } => words.copy_from_slice(&[*v as u64, 1]),
                    Avg { .. } | Stats { .. } => words.copy_from_slice(&[1, *v as u64]),
                    Min { .. } | Max { .. } => words.copy_from_slice(&[*v as u64 ^ ordered(aggregate), 1]),
                    Hist { bits } => words[log2(*v, bits)] = 1,
                    Lhist { min, max, step } => words[linear(*v, min, max, step)] = 1,
                    Stddev { .. } | Llquantize(_) => unreachable!("they are collected in one place only"),
                }
                merged.merge(&ty, &words);
            }
            assert_eq!(merged, whole, "{aggregate:?}");
        }
        // A sum of nothing is one too.
        let map = ir::Map { name: "x".into(), key: Vec::new(), value: Type::INT, kind: None, entries: 8, text: None };
        let mut store = Store::new(&map);
        store.merge(&Type::INT, b"", &[0, 0]);
        assert_eq!(store.len(), 0);
        store.merge(&Type::INT, b"", &[0, 1]);
        assert_eq!(store.pairs(), [(&b""[..], &Held::Value(Value::Int(0)))]);
        assert_eq!(words_of(&Type::Str(3)), None);
    }

    #[test]
    fn deviations() {
        let of = |signed, values: &[i64]| {
            let aggregate = Aggregate::Stddev { signed };
            let mut held = Held::new(&Type::Aggregate(aggregate));
            values.iter().for_each(|v| held.collect(aggregate, *v, 1));
            held.deviation()
        };
        assert_eq!(of(true, &[]), 0);
        assert_eq!(of(true, &[-7]), 0);
        assert_eq!(of(true, &[2, 4, 4, 4, 5, 5, 7, 9]), 2);
        assert_eq!(of(true, &[-1000, 1000]), 1000);
        assert_eq!(of(false, &[0, 1 << 62]), 1 << 61);
        // Of numbers without an exact sum, near enough.
        assert!(of(true, &[i64::MIN, i64::MAX].repeat(50)).abs_diff(1 << 63) < 1 << 20);
        assert!(of(false, &[0, -1]).abs_diff(1 << 63) < 1 << 20);
    }

    proptest! {
        /// Every number is in the bucket that says so, whatever the powers.
        #[test]
        fn powers_hold_what_they_say(f in 2i64..12, from in 0i64..4, more in 0i64..4, times in 1i64..5, v in -10i64..1_000_000_000) {
            let Some(powers) = Powers::new(f, from, from + more, f * times) else { return Ok(()) };
            let bucket = powers.bucket(v);
            prop_assert!(bucket < powers.buckets());
            let (start, end) = powers.range(bucket);
            prop_assert!(start.is_none_or(|s| s <= v) && end.is_none_or(|e| v < e), "{powers:?} {v} {bucket} {start:?} {end:?}");
            if bucket + 1 < powers.buckets() {
                prop_assert_eq!(end, powers.range(bucket + 1).0);
            }
        }
    }

    #[test]
    fn powers_that_have_no_steps() {
        assert!(
            Powers::new(10, 0, 6, 20).is_some()
                && Powers::new(10, 0, 18, 10).is_none()
                && Powers::new(2, 0, 40, 2).is_some()
        );
        for (factor, from, to, steps) in
            [(1, 0, 3, 10), (10, 3, 2, 10), (10, 0, 3, 7), (10, 0, 3, 0), (10, 0, 300, 10), (10, 2, 4, 30)]
        {
            assert_eq!(Powers::new(factor, from, to, steps), None, "{factor} {from} {to} {steps}");
        }
    }

    #[test]
    fn steps() {
        let at = |v| linear(v, 0, 10, 5);
        assert_eq!([at(-1), at(0), at(4), at(5), at(9), at(10), at(i64::MAX), at(i64::MIN)], [0, 1, 1, 2, 2, 3, 3, 0]);
        assert_eq!(linear(9, 0, 10, 4), 3);
    }
}
