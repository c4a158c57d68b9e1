//! Patterns of names in fixed fields: `*` stands for any characters, `?` for one.

/// Whether a name matches. Both end at the first NUL, or with their fields. At most as many steps as the product of the lengths.
pub fn matches(pattern: &[u8], name: &[u8]) -> bool {
    let (pattern, name) = (text(pattern), text(name));
    let (mut p, mut n) = (0, 0);
    // Where to go on after the last star, with one more character for it.
    let mut again: Option<(usize, usize)> = None;
    while let Some(character) = name.get(n) {
        match pattern.get(p) {
            Some(b'*') => {
                p += 1;
                again = Some((p, n));
            }
            Some(c) if c == character || *c == b'?' => (p, n) = (p + 1, n + 1),
            _ => match &mut again {
                Some((star, from)) => {
                    *from += 1;
                    (p, n) = (*star, *from);
                }
                None => return false,
            },
        }
    }
    pattern.get(p..).unwrap_or(&[]).iter().all(|c| *c == b'*')
}

fn text(field: &[u8]) -> &[u8] {
    let end = field.iter().position(|b| *b == 0).unwrap_or(field.len());
    field.get(..end).unwrap_or(&[])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_and_question_marks_stand_for_characters() {
        for (pattern, name, is) in [
            ("worker", "worker", true),
            ("worker", "worker-1", false),
            ("worker-*", "worker-1", true),
            ("worker-*", "worker", false),
            ("*-io-?", "x-io-io-7", true),
            ("*-io-?", "x-io-io-77", false),
            ("*", "", true),
            ("", "", true),
            ("", "a", false),
            ("a*b*c", "a-b-b-c", true),
            ("a*b*c", "a-b-b-c-", false),
            ("worker\0\0*", "worker\0junk", true),
        ] {
            assert_eq!(matches(pattern.as_bytes(), name.as_bytes()), is, "{pattern:?} {name:?}");
        }
    }
}
