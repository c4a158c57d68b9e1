//! Names of probes in an `-e`: what separates them, and how a name holds blanks and commas.
//!
//! ```text
//!  uprobe:./prog:"acme::Widget::poke(int, char const*)",read /FILTER/ comm
//! ```
//!
//! Within double quotes every character belongs to the name; `\"`, `\\` and `\xHH` are escapes for other characters. Quotes may
//! begin anywhere in a name. What trapline prints as a probe's name can be given back to it as it is.

/// The first position outside of quotes where `wanted` holds, if any.
pub fn find(text: &str, mut wanted: impl FnMut(&str) -> bool) -> Option<usize> {
    let (mut quoted, mut escaped) = (false, false);
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            _ if !quoted && wanted(&text[at..]) => return Some(at),
            _ => {}
        }
    }
    None
}

/// Whether every quote is closed.
pub fn is_closed(text: &str) -> bool {
    let mut all = text.to_string();
    all.push('\0');
    find(&all, |rest| rest == "\0").is_some()
}

/// The parts between the commas that are outside of quotes.
pub fn split(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some(at) = find(rest, |rest| rest.starts_with(',')) {
        parts.push(&rest[..at]);
        rest = &rest[at + 1..];
    }
    parts.push(rest);
    parts
}

/// A name without its quotes.
pub fn unquote(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut quoted = false;
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '"' => quoted = !quoted,
            '\\' if quoted => match chars.next() {
                Some('x') => {
                    let digits: String = chars.by_ref().take(2).collect();
                    out.extend(u32::from_str_radix(&digits, 16).ok().and_then(char::from_u32));
                }
                Some(other) => out.push(other),
                None => {}
            },
            c => out.push(c),
        }
    }
    out
}

/// A name with quotes where it needs them.
pub fn quote(name: &str) -> String {
    let special = |c: char| c.is_whitespace() || c.is_control() || matches!(c, ',' | '"' | '\\');
    if !name.contains(special) {
        return name.to_string();
    }
    let mut out = String::from('"');
    for c in name.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c.is_ascii_control() => out.push_str(&format!("\\x{:02x}", c as u32)),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_back_from_their_quotes() {
        for name in ["main", "a b", "f(int, char*)", r#"operator"" _km"#, r"back\slash", "tab\tline\n", "", "é, ü"] {
            let quoted = quote(name);
            assert_eq!(unquote(&quoted), name, "{quoted}");
            assert_eq!(split(&format!("{quoted},x")), [quoted.as_str(), "x"]);
            assert_eq!(find(&format!("{quoted} /"), |r| r.starts_with(" /")), Some(quoted.len()), "{quoted}");
        }
        assert_eq!(quote("uprobe:/bin/sh:a::b<c>"), "uprobe:/bin/sh:a::b<c>");
        assert_eq!(unquote(r#"uprobe:"./my prog":"a, b"+4"#), "uprobe:./my prog:a, b+4");
    }

    #[test]
    fn a_quote_needs_its_end() {
        assert!(is_closed(r#"a"b, c"d"#) && is_closed("") && is_closed(r#""\"""#));
        assert!(!is_closed(r#"a"b"#) && !is_closed(r#""\""#) && !is_closed(r#"""""#));
        assert_eq!(split(r#"a,"b,c"#), ["a", r#""b,c"#]);
    }
}
