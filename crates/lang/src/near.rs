//! The nearest name to one that does not exist.

/// Longer names are not compared: the work is the product of the lengths.
const MAX_NAME: usize = 64;

/// The candidate with the fewest edits (insert, delete, replace, swap neighbours), if they are few for its length.
pub(crate) fn nearest<'a>(name: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
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
    nearest(name, candidates).map(|n| format!("did you mean {prefix}{n}?"))
}

/// Edits between the two, letter case counting for one as any other replacement.
fn distance(a: &[u8], b: &[u8]) -> usize {
    let mut before: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let replaced = above[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut best = replaced.min(above[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(before[j - 2] + 1);
            }
            row.push(best);
        }
        before = std::mem::replace(&mut above, row);
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
        assert_eq!(nearest("flgs", names.into_iter()), Some("flags"));
        assert_eq!(nearest("file", names.into_iter()), None);
        assert_eq!(nearest("x", ["y"].into_iter()), None);
    }
}
