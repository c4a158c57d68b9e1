//! JSON's words: keys, strings, numbers. Whatever bytes come in, what is appended is valid UTF-8 and valid JSON.

/// Appends a comma where the last thing written was a value. A value never ends in `{`, `[` or `:`.
pub fn comma(out: &mut Vec<u8>) {
    if !matches!(out.last(), Some(b'{' | b'[' | b':')) {
        out.push(b',');
    }
}

/// Appends the key of an object's next member.
#[inline]
pub fn key(out: &mut Vec<u8>, name: &str) {
    comma(out);
    string(out, name);
    out.push(b':');
}

/// Appends a decimal number.
#[inline]
pub fn number(out: &mut Vec<u8>, n: impl itoa::Integer) {
    out.extend_from_slice(itoa::Buffer::new().format(n).as_bytes());
}

/// Appends `true` or `false`.
pub fn boolean(out: &mut Vec<u8>, b: bool) {
    out.extend_from_slice(if b { b"true" } else { b"false" });
}

/// Appends `null`.
#[inline]
pub fn null(out: &mut Vec<u8>) {
    out.extend_from_slice(b"null");
}

/// Appends `v` as the string `"0x…"`.
pub fn hex(out: &mut Vec<u8>, v: u64) {
    out.extend_from_slice(b"\"0x");
    let digits = (67 - (v | 1).leading_zeros()) / 4;
    for i in (0..digits).rev() {
        out.push(digit((v >> (4 * i)) as u8));
    }
    out.push(b'"');
}

/// Appends an address: null, or `"0x…"`.
pub fn addr(out: &mut Vec<u8>, a: u64) {
    if a == 0 { null(out) } else { hex(out, a) }
}

/// Appends `v` as the string of an octal number, at least three digits, the first of them 0.
pub fn octal(out: &mut Vec<u8>, v: u64) {
    out.push(b'"');
    let digits = (66 - (v | 1).leading_zeros()) / 3;
    for i in (0..(digits + 1).max(3)).rev() {
        out.push(b'0' + (v.checked_shr(3 * i).unwrap_or(0) & 7) as u8);
    }
    out.push(b'"');
}

/// Appends bytes: a string where they are UTF-8, else `{"hex":"…"}`; what was cut is marked. The cut itself may have split a
/// character, which is omitted then.
#[inline]
pub fn bytes(out: &mut Vec<u8>, b: &[u8], cut: bool) {
    if !cut && is_plain(b) {
        out.push(b'"');
        out.extend_from_slice(b);
        return out.push(b'"');
    }
    let text = match std::str::from_utf8(b) {
        Ok(s) => Some(s),
        Err(e) if cut && e.error_len().is_none() => std::str::from_utf8(&b[..e.valid_up_to()]).ok(),
        Err(_) => None,
    };
    match text {
        Some(s) if !cut => return string(out, s),
        Some(s) => {
            out.extend_from_slice(b"{\"data\":");
            string(out, s);
        }
        None => {
            out.extend_from_slice(b"{\"hex\":\"");
            for &c in b {
                out.extend_from_slice(&[digit(c >> 4), digit(c)]);
            }
            out.push(b'"');
        }
    }
    if cut {
        out.extend_from_slice(b",\"truncated\":true");
    }
    out.push(b'}');
}

/// Appends a string. Control characters, and those that change the direction of text, are escaped: a line may be read on a
/// terminal.
#[inline]
pub fn string(out: &mut Vec<u8>, s: &str) {
    out.push(b'"');
    // Most strings need no escapes.
    if is_plain(s.as_bytes()) {
        out.extend_from_slice(s.as_bytes());
        return out.push(b'"');
    }
    let mut from = 0;
    for (at, c) in s.char_indices().filter(|&(_, c)| needs_escape(c)) {
        out.extend_from_slice(&s.as_bytes()[from..at]);
        escape(out, c);
        from = at + c.len_utf8();
    }
    out.extend_from_slice(&s.as_bytes()[from..]);
    out.push(b'"');
}

/// Whether bytes are printable ASCII without quotes and backslashes: eight at once.
#[inline]
fn is_plain(bytes: &[u8]) -> bool {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x80 * ONES;
    // The highest bit of each byte that is less than `n`; of all bytes below 128.
    let less = |word: u64, n: u64| word.wrapping_sub(ONES * n) & !word;
    let is = |word: u64, byte: u8| less(word ^ (ONES * u64::from(byte)), 1);
    let (eights, rest) = bytes.as_chunks::<8>();
    let odd = eights.iter().fold(0, |odd, eight| {
        let word = u64::from_le_bytes(*eight);
        odd | word | less(word, 0x20) | is(word, b'"') | is(word, b'\\') | is(word, 0x7f)
    });
    odd & HIGH == 0 && rest.iter().all(|b| matches!(b, b' '..=b'~') && *b != b'"' && *b != b'\\')
}

/// Appends a value, on one line, its strings escaped as [`string`] does it.
pub fn value(out: &mut Vec<u8>, v: &serde_json::Value) {
    use serde_json::Value;
    match v {
        Value::Null => null(out),
        Value::Bool(b) => boolean(out, *b),
        Value::Number(n) => out.extend_from_slice(n.to_string().as_bytes()),
        Value::String(s) => string(out, s),
        Value::Array(items) => {
            out.push(b'[');
            for item in items {
                comma(out);
                value(out, item);
            }
            out.push(b']');
        }
        Value::Object(members) => {
            out.push(b'{');
            for (name, member) in members {
                key(out, name);
                value(out, member);
            }
            out.push(b'}');
        }
    }
}

/// Bytes as a value: see [`bytes`].
pub fn bytes_value(b: &[u8]) -> serde_json::Value {
    match std::str::from_utf8(b) {
        Ok(s) => s.into(),
        Err(_) => serde_json::json!({ "hex": b.iter().map(|c| format!("{c:02x}")).collect::<String>() }),
    }
}

fn needs_escape(c: char) -> bool {
    match c {
        '"' | '\\' => true,
        ' '..='~' => false,
        _ => {
            c.is_control()
                || matches!(c, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
        }
    }
}

fn escape(out: &mut Vec<u8>, c: char) {
    match c {
        '"' | '\\' => out.extend_from_slice(&[b'\\', c as u8]),
        '\n' => out.extend_from_slice(b"\\n"),
        '\t' => out.extend_from_slice(b"\\t"),
        '\r' => out.extend_from_slice(b"\\r"),
        // All that are escaped lie below U+10000.
        _ => {
            let v = c as u32;
            out.extend_from_slice(b"\\u");
            out.extend([12, 8, 4, 0].map(|shift| digit((v >> shift) as u8)));
        }
    }
}

fn digit(v: u8) -> u8 {
    b"0123456789abcdef"[usize::from(v & 15)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(f: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        f(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn numbers_in_other_bases() {
        assert_eq!(text(|o| hex(o, 0)), "\"0x0\"");
        assert_eq!(text(|o| hex(o, u64::MAX)), "\"0xffffffffffffffff\"");
        assert_eq!(text(|o| hex(o, 0x1234)), "\"0x1234\"");
        assert_eq!(text(|o| octal(o, 0)), "\"000\"");
        assert_eq!(text(|o| octal(o, 0o44)), "\"044\"");
        assert_eq!(text(|o| octal(o, 0o644)), "\"0644\"");
        assert_eq!(text(|o| octal(o, u64::MAX)), "\"01777777777777777777777\"");
    }

    #[test]
    fn every_string_comes_back() {
        let s: String = (0..0x3000).filter_map(char::from_u32).chain(['\u{feff}', '\u{10ffff}']).collect();
        let json = text(|o| string(o, &s));
        assert!(!json.chars().any(char::is_control));
        assert_eq!(serde_json::from_str::<String>(&json).unwrap(), s);
    }

    #[test]
    fn each_byte_is_plain_or_not_wherever_it_is() {
        for byte in 0..=u8::MAX {
            let plain = matches!(byte, b' '..=b'~') && byte != b'"' && byte != b'\\';
            for (len, at) in (1..20).flat_map(|len| (0..len).map(move |at| (len, at))) {
                let mut bytes = vec![b'!'; len];
                bytes[at] = byte;
                assert_eq!(is_plain(&bytes), plain, "{byte:#x} at {at} of {len}");
            }
        }
    }

    #[test]
    fn a_value_comes_back_and_controls_no_terminal() {
        let v = serde_json::json!({
            "a\u{202e}": [null, true, -1, 1.5, u64::MAX, "\u{9b}31m\u{1b}[0m", [], {}, bytes_value(b"\xff")], "b": {"c": "d"}
        });
        let json = text(|o| value(o, &v));
        assert!(!json.chars().any(|c| c.is_control() || c == '\u{202e}'), "{json}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&json).unwrap(), v);
    }

    #[test]
    fn bytes_are_text_where_they_can_be() {
        assert_eq!(text(|o| bytes(o, b"a\x1b[0m", false)), "\"a\\u001b[0m\"");
        assert_eq!(text(|o| bytes(o, b"a\xff", false)), "{\"hex\":\"61ff\"}");
        assert_eq!(text(|o| bytes(o, b"a\xff\n", true)), "{\"hex\":\"61ff0a\",\"truncated\":true}");
        assert_eq!(text(|o| bytes(o, "aé".as_bytes(), true)), "{\"data\":\"aé\",\"truncated\":true}");
        assert_eq!(text(|o| bytes(o, &"aé".as_bytes()[..2], true)), "{\"data\":\"a\",\"truncated\":true}");
        assert_eq!(text(|o| bytes(o, &"aé".as_bytes()[..2], false)), "{\"hex\":\"61c3\"}");
    }
}
