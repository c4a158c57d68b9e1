//! Identifiers of the metadata language: keywords, scopes, and how names that clash with them are written.

use std::borrow::Cow;

/// Identifiers that cannot name a field, sorted.
pub(crate) const KEYWORDS: &[&str] = &[
    "_Bool",
    "_Complex",
    "_Imaginary",
    "align",
    "callsite",
    "char",
    "clock",
    "const",
    "double",
    "enum",
    "env",
    "event",
    "float",
    "floating_point",
    "int",
    "integer",
    "long",
    "short",
    "signed",
    "stream",
    "string",
    "struct",
    "trace",
    "typealias",
    "typedef",
    "unsigned",
    "variant",
    "void",
];

/// The scopes that a path may begin with, outermost first.
pub(crate) const SCOPES: [&[&str]; 6] = [
    &["trace", "packet", "header"],
    &["stream", "packet", "context"],
    &["stream", "event", "header"],
    &["stream", "event", "context"],
    &["event", "context"],
    &["event", "fields"],
];

/// Whether it looks like the name of a type that [`crate::print`] makes: `u32`, `ix64_a64_mono`.
fn is_alias(name: &str) -> bool {
    let bits = name.trim_start_matches(['u', 'i', 'x', 'o', 'b']);
    (1..=2).contains(&(name.len() - bits.len())) && bits.starts_with(|c: char| c.is_ascii_digit())
}

/// The name with every character that an identifier cannot have as an underscore.
pub(crate) fn sanitize(name: &str) -> Cow<'_, str> {
    let is_first = |b: &u8| b.is_ascii_alphabetic() || *b == b'_';
    if name.as_bytes().first().is_some_and(is_first) && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') {
        return Cow::Borrowed(name);
    }
    let mut out: String = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    if !out.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
        out.insert(0, 'n');
    }
    Cow::Owned(out)
}

/// A field's name as it is written: readers take one leading underscore away.
pub(crate) fn field_name(name: &str) -> Cow<'_, str> {
    let name = sanitize(name);
    if name.starts_with('_') || KEYWORDS.binary_search(&&*name).is_ok() || is_alias(&name) {
        Cow::Owned(format!("_{name}"))
    } else {
        name
    }
}

/// The name of a field that is written so.
pub(crate) fn strip(written: &str) -> &str {
    written.strip_prefix('_').filter(|rest| !rest.is_empty()).unwrap_or(written)
}

/// Index into [`SCOPES`] of the scope that a path begins with, if it does, and the rest of the path.
pub(crate) fn scope<S: AsRef<str>>(path: &[S]) -> Option<(usize, &[S])> {
    SCOPES.iter().enumerate().find_map(|(index, words)| {
        let (head, rest) = path.split_at_checked(words.len())?;
        (head.iter().map(AsRef::as_ref).eq(words.iter().copied()) && !rest.is_empty()).then_some((index, rest))
    })
}

/// An identifier as diagnostics show it: not longer than a line.
pub(crate) fn clip(word: &str) -> String {
    if word.chars().count() <= 60 { word.into() } else { word.chars().take(57).chain("...".chars()).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_clash_are_written_with_an_underscore() {
        assert!(KEYWORDS.is_sorted());
        let all = KEYWORDS.iter().chain(&["u32", "ix64_a64", "_x"]);
        all.for_each(|name| assert_eq!(field_name(name), format!("_{name}")));
        let others =
            [("uid", "uid"), ("in", "in"), ("a b-é", "a_b__"), ("9", "n9"), ("", "n"), ("b", "b"), ("A_1", "A_1")];
        others.iter().for_each(|(name, written)| assert_eq!(field_name(name), *written));
    }
}
