//! Wildcards.

/// Whether all of `text` matches: `*` is any run of bytes, `?` is any one. Takes time proportional to the product of the lengths
/// at most.
pub fn glob(pattern: &[u8], text: &[u8]) -> bool {
    let (mut p, mut t, mut back) = (0, 0, None);
    while t < text.len() {
        match pattern.get(p) {
            Some(b'*') => {
                back = Some((p + 1, t));
                p += 1;
            }
            Some(c) if *c == b'?' || *c == text[t] => {
                p += 1;
                t += 1;
            }
            _ => match &mut back {
                Some((after, from)) => {
                    *from += 1;
                    (p, t) = (*after, *from);
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|c| *c == b'*')
}

/// Whether it has wildcards.
pub fn is_pattern(text: &str) -> bool {
    text.contains(['*', '?'])
}

#[cfg(test)]
mod tests {
    use super::glob;

    #[test]
    fn stars_and_question_marks() {
        let g = |p: &str, t: &str| glob(p.as_bytes(), t.as_bytes());
        assert!(g("open*", "openat") && g("*at", "openat") && g("dup?", "dup2") && g("*", "") && g("**a*", "bab"));
        assert!(g("", "") && g("a*b*c", "aXbYbZc") && g("*ab", "aab"));
        assert!(!g("dup?", "dup") && !g("a", "ab") && !g("a*b", "abc") && !g("", "a") && !g("?", ""));
        // Many stars do not make it slow.
        assert!(!g(&"*a".repeat(50), &"a".repeat(49)));
        assert!(!g(&("*a".repeat(200) + "b"), &"a".repeat(5000)));
    }
}
