//! Demangled names without what makes them long: arguments of templates and generics, and parameters.
//!
//! ```text
//! std::vector<int, std::allocator<int> >::push_back   std::vector::push_back
//! <alloc::vec::Vec<T> as core::ops::Drop>::drop       <alloc::vec::Vec as core::ops::Drop>::drop
//! ```
//!
//! A name with brackets that do not match stays as it is.

use std::borrow::Cow;

/// How deep types are shortened that are part of a name.
const DEPTH: usize = 16;
/// Tokens of C++ that follow the word `operator`, longer ones first.
const OPERATORS: [&str; 13] = ["<=>", "<<=", ">>=", "->*", "<<", ">>", "<=", ">=", "->", "()", "[]", "<", ">"];

/// The short form of a demangled name.
pub fn short(name: &str) -> Cow<'_, str> {
    if !name.contains(['<', '(']) {
        return name.into();
    }
    let mut out = String::with_capacity(name.len());
    match shorten(name, DEPTH, &mut out) {
        Some(()) if !out.is_empty() => out.into(),
        _ => name.into(),
    }
}

fn shorten(name: &str, depth: usize, out: &mut String) -> Option<()> {
    let mut rest = name;
    while let Some(at) = rest.find(['<', '(', '{', '>', ')', '}']) {
        let (before, from) = rest.split_at(at);
        out.push_str(before);
        if is_operator(out) {
            if let Some(token) = OPERATORS.iter().find(|t| from.starts_with(**t)) {
                out.push_str(token);
                rest = &from[token.len()..];
                continue;
            }
            // `operator->`: the first character of the token is before the bracket.
        } else if out.ends_with("operator-") && from.starts_with('>') {
            let token = if from.starts_with(">*") { 2 } else { 1 };
            out.push_str(&from[..token]);
            rest = &from[token..];
            continue;
        }
        let len = group(from)?;
        let (whole, after) = from.split_at(len);
        rest = after;
        let inside = &whole[1..len - 1];
        match whole.as_bytes()[0] {
            b'{' => out.push_str(whole),
            b'(' if inside == "anonymous namespace" => out.push_str(whole),
            b'(' => {}
            // A type as a part of the path, as Rust has it.
            _ if out.is_empty() || out.ends_with("::") && inside.starts_with("impl ") => {
                out.push('<');
                match depth.checked_sub(1) {
                    Some(depth) => shorten(inside, depth, out)?,
                    None => out.push_str(inside),
                }
                out.push('>');
            }
            _ => {
                if let Some(path) = out.strip_suffix("::") {
                    out.truncate(path.len());
                }
            }
        }
    }
    out.push_str(rest);
    Some(())
}

/// Whether a text ends with the word `operator`.
fn is_operator(text: &str) -> bool {
    let word = |c: char| c.is_alphanumeric() || c == '_';
    text.strip_suffix("operator").is_some_and(|before| !before.ends_with(word))
}

/// Bytes of the group that the bracket at the beginning opens; none where it is not closed, or closes one.
fn group(text: &str) -> Option<usize> {
    let mut open = Vec::new();
    let mut last = 0;
    for (i, c) in text.bytes().enumerate() {
        match c {
            b'<' | b'(' | b'{' => open.push(c),
            // Of an arrow, or "greater than" in an expression.
            b'>' if last == b'-' || i > 0 && open.last() != Some(&b'<') => {}
            b'>' => drop(open.pop().filter(|o| *o == b'<')?),
            // A "less than" in an expression is never closed.
            b')' => while open.pop()? != b'(' {},
            b'}' => while open.pop()? != b'{' {},
            _ => {}
        }
        last = c;
        if open.is_empty() {
            return Some(i + 1);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_and_parameters_are_left_out() {
        for (name, want) in [
            ("main", "main"),
            ("std::vector<int, std::allocator<int> >::push_back", "std::vector::push_back"),
            ("shop::add<long>(std::map<int, long> const&, long)", "shop::add"),
            ("f<(sizeof(int)>4), (1<2)>::g", "f::g"),
            ("A::operator()(int) const", "A::operator() const"),
            ("A<int>::operator<", "A::operator<"),
            ("operator<< <char>", "operator<< "),
            ("B<int>::operator->", "B::operator->"),
            ("B<int>::operator->*<int>", "B::operator->*"),
            ("B::operator==<int>", "B::operator=="),
            ("my_operator<int>", "my_operator"),
            ("C::operator std::vector<int>", "C::operator std::vector"),
            ("(anonymous namespace)::f<int>", "(anonymous namespace)::f"),
            ("f(int)::{lambda(std::vector<int>)#1}::operator()", "f::{lambda(std::vector<int>)#1}::operator()"),
            (
                "<alloc::vec::Vec<T,A> as core::ops::drop::Drop>::drop",
                "<alloc::vec::Vec as core::ops::drop::Drop>::drop",
            ),
            (
                "core::ops::impls::<impl core::ops::FnOnce<A> for &mut F>::call",
                "core::ops::impls::<impl core::ops::FnOnce for &mut F>::call",
            ),
            ("core::ptr::drop_in_place::<fn(Vec<u8>) -> u8>", "core::ptr::drop_in_place"),
            ("core::ptr::drop_in_place<alloc::string::String>", "core::ptr::drop_in_place"),
            ("a::b::{{closure}}", "a::b::{{closure}}"),
            ("f<int>.cold", "f.cold"),
        ] {
            assert_eq!(short(name), want, "{name}");
        }
    }

    #[test]
    fn other_text_than_names_stays_unchanged() {
        for name in ["<", ">", "a<b", "a)b(", "}{", "()", "x<(>", "<<<<>>>", "operator<<<<", "\u{2028}<é"] {
            assert!(!short(name).is_empty(), "{name}");
        }
        assert_eq!((short("a<b"), short("()")), ("a<b".into(), "()".into()));
        let deep = "<".repeat(40_000) + &">".repeat(40_000);
        assert!(!short(&deep).is_empty());
    }
}
