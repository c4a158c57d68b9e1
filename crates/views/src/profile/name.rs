//! How frames are called, and how names are made safe.
//!
//! Invariant: no control character, no mark that changes the direction of text and no character that XML lacks leaves
//! [`visible`].

use super::Frame;
use std::borrow::Cow;
use std::fmt::Write;

/// Whether a character is shown as it is.
fn is_plain(c: char) -> bool {
    match c {
        ' '..='~' => true,
        _ => {
            !c.is_control()
                && !matches!(c, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
                && !matches!(c, '\u{061c}' | '\u{fffe}' | '\u{ffff}')
        }
    }
}

/// A name on one line: other characters as `\n`, `\t`, `\u{1b}`.
pub fn visible(name: &str) -> Cow<'_, str> {
    escaped(name, |_| false)
}

/// A name without `;` in it, which separates frames: that is `\u{3b}`.
pub fn without_separator(name: &str) -> Cow<'_, str> {
    escaped(name, |c| c == ';')
}

fn escaped(name: &str, is_special: impl Fn(char) -> bool) -> Cow<'_, str> {
    if name.chars().all(|c| is_plain(c) && !is_special(c)) {
        return name.into();
    }
    let mut out = String::with_capacity(name.len() + 16);
    for c in name.chars() {
        match c {
            '\n' | '\t' | '\r' => out.extend(c.escape_default()),
            _ if is_plain(c) && !is_special(c) => out.push(c),
            _ => out.extend(c.escape_unicode()),
        }
    }
    out.into()
}

/// The last part of a path.
pub fn base(path: &str) -> &str {
    path.trim_end_matches('/').rsplit('/').next().unwrap_or(path)
}

/// The name of a frame's function; that of its module in brackets where it has none, or `[unknown]`.
pub fn function<'a>(f: &Frame<'a>) -> Cow<'a, str> {
    match (f.function, base(f.module)) {
        ("", "") if f.kernel => "[kernel]".into(),
        ("", "") => "[unknown]".into(),
        ("", module) if module.starts_with('[') => module.into(),
        ("", module) => format!("[{module}]").into(),
        (name, _) => name.into(),
    }
}

/// What follows a frame's name: `_[k]` in the kernel, `_[i]` inlined, as in stackcollapse-perf's annotations; `_[g]` before it if
/// the frame is guessed.
pub fn mark(f: &Frame<'_>) -> &'static str {
    match (f.guessed, f.kernel, f.inlined) {
        (false, false, false) => "",
        (false, true, _) => "_[k]",
        (false, _, true) => "_[i]",
        (true, false, false) => "_[g]",
        (true, true, _) => "_[g]_[k]",
        (true, _, true) => "_[g]_[i]",
    }
}

/// Appends text to XML, as content or as the value of an attribute.
pub fn xml(text: &str, out: &mut String) {
    for c in visible(text).chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
}

/// A text in at most `room` characters: its beginning, `..`, and its end where it is longer. A function's name has its scope at the
/// beginning and what it is at the end.
pub fn shortened(text: &str, room: usize) -> Cow<'_, str> {
    let n = text.chars().count();
    if n <= room {
        return text.into();
    }
    let Some(kept) = room.checked_sub(2) else { return text.chars().take(room).collect::<String>().into() };
    let head = kept / 2;
    let mut out: String = text.chars().take(head).collect();
    out.push_str("..");
    out.extend(text.chars().skip(n - (kept - head)));
    out.into()
}

/// A number with two digits after the point, and a percent sign.
pub fn percent(part: u64, whole: u64) -> String {
    let mut out = String::new();
    let _ = write!(out, "{:.2}%", super::percent(part, whole));
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_made_visible() {
        assert_eq!(visible("a\u{1b}[0m\n\u{202e}é<;\u{9b}\u{ffff}"), "a\\u{1b}[0m\\n\\u{202e}é<;\\u{9b}\\u{ffff}");
        assert_eq!(without_separator("a;b\0"), "a\\u{3b}b\\u{0}");
        let mut out = String::new();
        xml("</script>&\"'\u{0}", &mut out);
        assert_eq!(out, "&lt;/script&gt;&amp;&quot;&#39;\\u{0}");
    }

    #[test]
    fn frames_without_a_name_have_their_module_s() {
        let f = Frame::default();
        assert_eq!(function(&f), "[unknown]");
        assert_eq!(function(&Frame { kernel: true, ..f }), "[kernel]");
        assert_eq!(function(&Frame { module: "/lib/libc.so.6", ..f }), "[libc.so.6]");
        assert_eq!(function(&Frame { module: "[vdso]", ..f }), "[vdso]");
        assert_eq!(function(&Frame { function: "f", module: "m", ..f }), "f");
    }

    #[test]
    fn long_names_keep_both_ends() {
        assert_eq!(shortened("abcdefghij", 10), "abcdefghij");
        assert_eq!(shortened("abcdefghijk", 10), "abcd..hijk");
        assert_eq!(shortened("éééééééé", 5), "é..éé");
        assert_eq!(shortened("abc", 1), "a");
        assert_eq!(shortened("abc", 0), "");
    }
}
