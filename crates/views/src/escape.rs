//! Escaping of traced bytes: nothing from a target reaches a terminal as a control character.

/// Appends `b` as the inside of a C string as strace writes it: `\n`, `\"`, octal escapes of up to three digits, shortened where
/// the next byte is no digit.
#[inline]
pub fn c_string(b: &[u8], out: &mut Vec<u8>) {
    for (i, &c) in b.iter().enumerate() {
        if !plain(c, out) {
            octal(c, b.get(i + 1).is_some_and(u8::is_ascii_digit), out);
        }
    }
}

/// Appends `b` as [`c_string`] does, but with hexadecimal escapes.
pub fn c_string_in_hex(b: &[u8], out: &mut Vec<u8>) {
    for &c in b {
        if !plain(c, out) {
            hex_string(&[c], out);
        }
    }
}

/// Appends a byte of a string that needs no number.
#[inline]
fn plain(c: u8, out: &mut Vec<u8>) -> bool {
    match c {
        b'"' | b'\\' => out.extend_from_slice(&[b'\\', c]),
        b'\n' => out.extend_from_slice(b"\\n"),
        b'\t' => out.extend_from_slice(b"\\t"),
        b'\r' => out.extend_from_slice(b"\\r"),
        0x0b => out.extend_from_slice(b"\\v"),
        0x0c => out.extend_from_slice(b"\\f"),
        0x20..=0x7e => out.push(c),
        _ => return false,
    }
    true
}

#[inline]
fn octal(c: u8, full: bool, out: &mut Vec<u8>) {
    let (a, b, d) = (c >> 6, c >> 3 & 7, c & 7);
    out.push(b'\\');
    if full || a > 0 {
        out.push(b'0' + a);
    }
    if full || a > 0 || b > 0 {
        out.push(b'0' + b);
    }
    out.push(b'0' + d);
}

/// Appends `b` with every byte as `\x..`.
pub fn hex_string(b: &[u8], out: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    for &c in b {
        out.extend_from_slice(&[b'\\', b'x', DIGITS[usize::from(c >> 4)], DIGITS[usize::from(c & 15)]]);
    }
}

/// Appends a name that is shown without quotes (a path after a descriptor, a command name) with everything but printable
/// ASCII escaped, and `<` and `>` too, which enclose it.
pub fn name(b: &[u8], out: &mut Vec<u8>) {
    for (i, &c) in b.iter().enumerate() {
        match c {
            b'<' | b'>' | b'\\' => octal(c, true, out),
            0x20..=0x7e => out.push(c),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\t' => out.extend_from_slice(b"\\t"),
            _ => octal(c, b.get(i + 1).is_some_and(u8::is_ascii_digit), out),
        }
    }
}

/// Appends a text that trapline made itself (`TCP:[127.0.0.1:1->127.0.0.1:2]`) but that may quote a path of the target: all
/// but printable ASCII is escaped, `>` is kept.
pub fn name_in_brackets(b: &[u8], out: &mut Vec<u8>) {
    for &c in b {
        match c {
            0x20..=0x7e => out.push(c),
            _ => octal(c, true, out),
        }
    }
}

/// Appends a message that may quote the user or a target: UTF-8 passes, control characters are escaped.
pub fn line(b: &[u8], out: &mut Vec<u8>) {
    for c in String::from_utf8_lossy(b).chars() {
        if c.is_control() {
            out.extend_from_slice(c.escape_default().to_string().as_bytes());
        } else {
            out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    fn c(b: &[u8]) -> String {
        let mut out = Vec::new();
        super::c_string(b, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn control_characters_never_pass() {
        for b in 0..=255u8 {
            assert!(c(&[b, b]).bytes().all(|c| (0x20..0x7f).contains(&c)), "{b}");
        }
    }

    #[test]
    fn hexadecimal_escapes_are_of_bytes_that_need_a_number() {
        let mut out = Vec::new();
        super::c_string_in_hex(b"a\0\n\xff1\"", &mut out);
        assert_eq!(out, b"a\\x00\\n\\xff1\\\"");
    }

    #[test]
    fn octal_escapes_are_as_short_as_they_can_be() {
        assert_eq!(c(b"\0\x01a\x001\x1b[0m\"\\\n\xff"), "\\0\\1a\\0001\\33[0m\\\"\\\\\\n\\377");
    }
}
