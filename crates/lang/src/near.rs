//! The known names nearest to one that does not exist.

/// Longer names are not compared: the work is the product of the lengths.
const MAX_NAME: usize = 64;

/// The up to three names that differ least from `name`, which is none of them.
pub fn nearest<'a>(name: &str, all: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut scored: Vec<(usize, &str)> = all.filter(|n| *n != name).map(|n| (score(name, n), n)).collect();
    scored.sort();
    scored.dedup();
    scored.truncate(3);
    scored.into_iter().map(|(_, n)| n).collect()
}

/// Edits, where a common prefix counts in favour.
fn score(a: &str, b: &str) -> usize {
    distance(a.as_bytes(), b.as_bytes()) * 2 + usize::from(!b.starts_with(a) && !a.starts_with(b))
}

/// The candidate with the fewest edits, if they are few for its length.
fn likely<'a>(name: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let limit = (name.len() / 3).max(1);
    candidates
        .filter(|c| c.len().abs_diff(name.len()) <= limit && name.len() <= MAX_NAME)
        .map(|c| (distance(name.as_bytes(), c.as_bytes()), c))
        .filter(|(d, c)| *d <= limit && *d < c.len())
        .min_by_key(|(d, _)| *d)
        .map(|(_, c)| c)
}

/// A hint that names it.
pub(crate) fn did_you_mean<'a>(prefix: &str, name: &str, candidates: impl Iterator<Item = &'a str>) -> Option<String> {
    likely(name, candidates).map(|n| format!("did you mean {prefix}{n}?"))
}

/// Edits between the two (insert, delete, replace, swap neighbours), letter case counting for one as any other replacement.
fn distance(a: &[u8], b: &[u8]) -> usize {
    let (mut before, mut above): (Vec<usize>, Vec<usize>) = (vec![0; b.len() + 1], (0..=b.len()).collect());
    let mut row = before.clone();
    for i in 1..=a.len() {
        row[0] = i;
        for j in 1..=b.len() {
            let replaced = above[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            row[j] = replaced.min(above[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                row[j] = row[j].min(before[j - 2] + 1);
            }
        }
        // The oldest row is written over next.
        std::mem::swap(&mut before, &mut above);
        std::mem::swap(&mut above, &mut row);
    }
    above[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_edits() {
        for (a, b, d) in [("flgs", "flags", 1), ("flasg", "flags", 1), ("", "ab", 2), ("kitten", "sitting", 3)] {
            assert_eq!(distance(a.as_bytes(), b.as_bytes()), d, "{a} {b}");
        }
        let names = ["flags", "filename", "mode"];
        assert_eq!(likely("flgs", names.into_iter()), Some("flags"));
        assert_eq!(likely("file", names.into_iter()), None);
        assert_eq!(likely("x", ["y"].into_iter()), None);
    }

    #[test]
    fn three_are_nearest_and_a_common_prefix_counts() {
        let names = ["open", "openat", "read", "opne", "pread"];
        assert_eq!(nearest("opena", names.into_iter()), ["open", "openat", "opne"]);
        assert_eq!(nearest("raed", names.into_iter())[0], "read");
        assert_eq!(nearest("read", names.into_iter())[0], "pread");
    }
}
