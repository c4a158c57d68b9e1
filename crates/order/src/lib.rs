//! Stable sorting with one copy of the algorithm.
//!
//! `slice::sort_by` compiles its merge sort anew for each type and each comparison: 7 KB of code and 15 ms of a release build every time,
//! a tenth of the binary when every table sorted its rows with it. Here positions are sorted, by a comparison behind a pointer, and only
//! the step that moves the elements is compiled for each type.
//!
//! ```text
//!  elements, comparison ─► positions 0, 1, 2, … ─► sort (one copy) ─► positions in order ─► elements moved along the cycles
//! ```
//!
//! Rows of tables and lists of names are sorted here. Where the speed of sorting itself counts (events, symbols, rules), the standard
//! library's sort is faster.

use std::cmp::Ordering;

/// Sorts stably by a comparison. At most `u32::MAX` elements.
///
/// # Panics
/// There are more.
pub fn by<T>(elements: &mut [T], mut compare: impl FnMut(&T, &T) -> Ordering) {
    let sorted = positions(elements.len(), &mut |a, b| compare(&elements[a as usize], &elements[b as usize]));
    arrange(elements, sorted);
}

/// Sorts stably by a key, which is computed for each comparison. At most `u32::MAX` elements.
///
/// # Panics
/// There are more.
pub fn by_key<T, K: Ord>(elements: &mut [T], mut key: impl FnMut(&T) -> K) {
    by(elements, |a, b| key(a).cmp(&key(b)));
}

/// The positions of this many elements, in order.
fn positions(elements: usize, compare: &mut dyn FnMut(u32, u32) -> Ordering) -> Vec<u32> {
    let elements = u32::try_from(elements).expect("at most u32::MAX elements");
    let mut all: Vec<u32> = (0..elements).collect();
    all.sort_by(|a, b| compare(*a, *b));
    all
}

/// Moves the elements: the one at `from[i]` goes to `i`. Each cycle of positions is walked once.
fn arrange<T>(elements: &mut [T], mut from: Vec<u32>) {
    for start in 0..from.len() {
        let mut at = start;
        loop {
            let next = std::mem::replace(&mut from[at], at as u32) as usize;
            // What was at the start of the cycle has moved along, and is now where it belongs.
            if next == start || next == at {
                break;
            }
            elements.swap(at, next);
            at = next;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sorted_as_by_the_standard_library() {
        let mut seed = 7_u64;
        for len in (0..40).chain([1000]) {
            let all: Vec<(u64, usize)> = (0..len)
                .map(|i| {
                    seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    (seed >> 60, i)
                })
                .collect();
            let (mut want, mut stable, mut backwards) = (all.clone(), all.clone(), all.clone());
            want.sort_by_key(|e| e.0);
            by_key(&mut stable, |e| e.0);
            assert_eq!(stable, want);
            want.sort_by(|a, b| b.cmp(a));
            by(&mut backwards, |a, b| b.cmp(a));
            assert_eq!(backwards, want);
        }
    }

    #[test]
    fn elements_that_cannot_be_copied_are_moved() {
        let mut names: Vec<String> = ["c", "a", "d", "b"].map(String::from).into();
        by(&mut names, Ord::cmp);
        assert_eq!(names.concat(), "abcd");
        by_key(&mut names, |n| std::cmp::Reverse(n.clone()));
        assert_eq!(names.concat(), "dcba");
    }
}
