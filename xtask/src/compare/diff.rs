//! Lines up two sequences by Myers' greedy algorithm.

use std::ops::Range;

/// One step of an alignment; the numbers are places in the sequences.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    Both(usize, usize),
    Left(usize),
    Right(usize),
}

/// How many differences one search may meet. Sequences that differ more are lined up piece by piece: exact enough, and the
/// time stays within length × limit.
const LIMIT: usize = 1000;

/// The steps that lead through both sequences, with as many `Both` as possible.
pub fn align(left: &[u32], right: &[u32]) -> Vec<Step> {
    let mut steps = Vec::with_capacity(left.len().max(right.len()));
    let (mut x, mut y) = (0, 0);
    while x < left.len() || y < right.len() {
        while x < left.len() && y < right.len() && left[x] == right[y] {
            steps.push(Step::Both(x, y));
            (x, y) = (x + 1, y + 1);
        }
        let piece = search(&left[x..], &right[y..]);
        steps.extend(piece.iter().map(|step| match *step {
            Step::Both(a, b) => Step::Both(a + x, b + y),
            Step::Left(a) => Step::Left(a + x),
            Step::Right(b) => Step::Right(b + y),
        }));
        let taken = |of: fn(&Step) -> bool| piece.iter().filter(|step| of(step)).count();
        (x, y) = (x + taken(|s| !matches!(s, Step::Right(_))), y + taken(|s| !matches!(s, Step::Left(_))));
    }
    steps
}

/// The furthest x on each diagonal x - y = k, for one number of differences d; k goes from -d to d.
struct Front {
    d: isize,
    xs: Vec<isize>,
}

impl Front {
    fn get(&self, k: isize) -> isize {
        if k.abs() > self.d { -1 } else { self.xs[(k + self.d) as usize] }
    }
}

/// Searches the path with the fewest differences from the start to the end of both; after LIMIT differences, the path to
/// the furthest place reached.
fn search(left: &[u32], right: &[u32]) -> Vec<Step> {
    let (n, m) = (left.len() as isize, right.len() as isize);
    let mut fronts: Vec<Front> = Vec::new();
    loop {
        let d = fronts.len() as isize;
        let front = advance(fronts.last(), d, left, right);
        let at_end = (-d..=d).find(|&k| front.get(k) == n && n - k == m);
        let furthest = || (-d..=d).max_by_key(|&k| if front.get(k) < 0 { -1 } else { 2 * front.get(k) - k });
        let stop = at_end.or_else(|| if fronts.len() >= LIMIT { furthest() } else { None });
        fronts.push(front);
        if let Some(k) = stop {
            return walk_back(&fronts, k);
        }
    }
}

/// The front after one more difference, and the equal elements that follow it.
fn advance(last: Option<&Front>, d: isize, left: &[u32], right: &[u32]) -> Front {
    let (n, m) = (left.len() as isize, right.len() as isize);
    let mut front = Front { d, xs: vec![-1; (2 * d + 1) as usize] };
    for k in (-d..=d).step_by(2) {
        let start = last.map_or(0, |last| enter(last, k).0);
        let (mut x, mut y) = (start, start - k);
        if x < 0 || x > n || y < 0 || y > m {
            continue;
        }
        while x < n && y < m && left[x as usize] == right[y as usize] {
            (x, y) = (x + 1, y + 1);
        }
        front.xs[(k + d) as usize] = x;
    }
    front
}

/// How diagonal k is entered from the front before: the x there, and whether an element of the right was skipped.
fn enter(last: &Front, k: isize) -> (isize, bool) {
    let (down, across) = (last.get(k + 1), last.get(k - 1));
    // From below an element of the left is skipped, so x grows by one; -1 means that nothing led there.
    if down >= 0 && (across < 0 || down > across) {
        (down, true)
    } else if across >= 0 {
        (across + 1, false)
    } else {
        (-1, false)
    }
}

fn walk_back(fronts: &[Front], mut k: isize) -> Vec<Step> {
    let mut steps = Vec::new();
    let Some(mut x) = fronts.last().map(|front| front.get(k)) else { return steps };
    for d in (0..fronts.len()).rev() {
        let (start, skipped_right) = if d == 0 { (0, false) } else { enter(&fronts[d - 1], k) };
        let equal: Range<isize> = start..x;
        steps.extend(equal.rev().map(|x| Step::Both(x as usize, (x - k) as usize)));
        if d == 0 {
            break;
        }
        (x, k) = if skipped_right {
            steps.push(Step::Right((start - k - 1) as usize));
            (start, k + 1)
        } else {
            steps.push(Step::Left((start - 1) as usize));
            (start - 1, k - 1)
        };
    }
    steps.reverse();
    steps
}

#[cfg(test)]
mod tests {
    use super::{Step, align};

    /// Every element occurs once, in order; the answer is the number of pairs.
    fn check(left: &[u32], right: &[u32]) -> usize {
        let (mut x, mut y, mut pairs) = (0, 0, 0);
        for step in align(left, right) {
            let (dx, dy) = match step {
                Step::Both(a, b) => {
                    assert_eq!((left[a], a, b), (right[b], x, y));
                    pairs += 1;
                    (1, 1)
                }
                Step::Left(a) => (usize::from(a == x), 0),
                Step::Right(b) => (0, usize::from(b == y)),
            };
            assert!(dx + dy > 0, "{step:?} at {x},{y}");
            (x, y) = (x + dx, y + dy);
        }
        assert_eq!((x, y), (left.len(), right.len()));
        pairs
    }

    #[test]
    fn as_many_pairs_as_possible() {
        assert_eq!(check(&[], &[]), 0);
        assert_eq!(check(&[1, 2, 3], &[]), 0);
        assert_eq!(check(&[1, 2, 3, 1, 2, 2, 1], &[3, 2, 1, 2, 1, 3]), 4);
        assert_eq!(check(&[1, 2, 3], &[1, 9, 2, 3, 4]), 3);
    }

    #[test]
    fn long_sequences() {
        let left: Vec<u32> = (0..100_000).collect();
        let mut right = left.clone();
        right.remove(50_000);
        assert_eq!(check(&left, &right), 99_999);
        let other: Vec<u32> = (200_000..230_000).collect();
        assert_eq!(check(&left[..30_000], &other), 0);
    }
}
