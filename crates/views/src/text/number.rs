//! Numbers into a byte buffer.

/// Decimal.
pub fn dec(n: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(itoa::Buffer::new().format(n).as_bytes());
}

/// Signed decimal.
pub fn signed(n: i64, out: &mut Vec<u8>) {
    out.extend_from_slice(itoa::Buffer::new().format(n).as_bytes());
}

/// Decimal, right-aligned in `width`.
pub fn padded(n: u64, width: usize, out: &mut Vec<u8>) {
    let mut b = itoa::Buffer::new();
    let s = b.format(n);
    out.resize(out.len() + width.saturating_sub(s.len()), b' ');
    out.extend_from_slice(s.as_bytes());
}

/// `0x…`, zero as `0`.
pub fn hex(n: u64, out: &mut Vec<u8>) {
    if n == 0 {
        return out.push(b'0');
    }
    out.extend_from_slice(b"0x");
    digits(n, 4, out);
}

/// Octal with a leading zero, at least three digits in all.
pub fn octal(n: u64, out: &mut Vec<u8>) {
    let at = out.len();
    out.push(b'0');
    if n > 0 {
        digits(n, 3, out);
    }
    while out.len() < at + 3 {
        out.insert(at, b'0');
    }
}

fn digits(n: u64, bits: u32, out: &mut Vec<u8>) {
    let len = (64 - n.leading_zeros()).div_ceil(bits).max(1);
    for i in (0..len).rev() {
        let d = (n >> (i * bits)) as u8 & ((1 << bits) - 1);
        out.push(if d < 10 { b'0' + d } else { b'a' + d - 10 });
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn octal_is_strace_s() {
        for (n, want) in [(0, "000"), (7, "007"), (0o22, "022"), (0o644, "0644"), (0o100644, "0100644")] {
            let mut out = Vec::new();
            super::octal(n, &mut out);
            assert_eq!(String::from_utf8(out).unwrap(), want);
        }
    }
}
