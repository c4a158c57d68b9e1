//! Patterns for names of functions: `*` stands for any characters, `?` for one.
//!
//! A pattern without parameters matches a function whatever its parameters are: `ns::f` matches `ns::f(int)`.

/// Whether a name, with or without its parameters, matches.
pub fn matches(pattern: &str, name: &str) -> bool {
    glob(pattern, name) || glob(pattern, without_parameters(name))
}

/// A name up to its parameters.
pub fn without_parameters(name: &str) -> &str {
    const ANONYMOUS: &str = "(anonymous namespace)";
    let mut from = 0;
    while let Some(at) = name[from..].find('(') {
        let at = from + at;
        if name[at..].starts_with(ANONYMOUS) {
            from = at + ANONYMOUS.len();
        } else if name[..at].ends_with("operator") {
            from = at + 1;
        } else {
            return &name[..at];
        }
    }
    name
}

/// Whether all of `text` matches. At most `pattern.len() * text.len()` steps.
fn glob(pattern: &str, text: &str) -> bool {
    let (p, t) = (pattern.as_bytes(), text.as_bytes());
    let (mut i, mut j) = (0, 0);
    // Where to go on after the last star, with one more character for it.
    let mut again = None;
    while j < t.len() {
        match p.get(i) {
            Some(b'*') => {
                again = Some((i + 1, j + 1));
                i += 1;
            }
            Some(c) if *c == t[j] || *c == b'?' => (i, j) = (i + 1, j + 1),
            _ => match again {
                Some((star, from)) => {
                    again = Some((star, from + 1));
                    (i, j) = (star, from);
                }
                None => return false,
            },
        }
    }
    p[i..].iter().all(|c| *c == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_stand_for_any_characters_and_parameters_may_be_missing() {
        for (pattern, name, want) in [
            ("main", "main", true),
            ("main", "main2", false),
            ("m*n", "main", true),
            ("*::f", "a::b::f(int, char)", true),
            ("a::f(int)", "a::f(int)", true),
            ("a::f(int)", "a::f(char)", false),
            ("*", "", true),
            ("?", "", false),
            ("(anonymous namespace)::f", "(anonymous namespace)::f(int)", true),
            ("A::operator()", "A::operator()(int) const", true),
            ("A::operator(*", "A::operator()(int) const", true),
            ("a*b*c", "aXbXbXc", true),
            ("a*b*c", "aXbXbX", false),
        ] {
            assert_eq!(matches(pattern, name), want, "{pattern} {name}");
        }
    }
}
