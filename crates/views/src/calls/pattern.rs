//! Patterns for names of functions: `*` stands for any characters, `?` for one.
//!
//! A pattern without parameters matches a function whatever its parameters are: `ns::f` matches `ns::f(int)`.

use lang::pattern::glob;

/// Whether a name, with or without its parameters, matches.
pub fn matches(pattern: &str, name: &str) -> bool {
    [name, without_parameters(name)].into_iter().any(|name| glob(pattern.as_bytes(), name.as_bytes()))
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
