//! Numbers into a byte buffer.

/// Decimal.
#[inline]
pub fn dec(n: u64, out: &mut Vec<u8>) {
    // Most numbers are descriptors and small counts.
    if n < 10 { out.push(b'0' + n as u8) } else { longer(n, out) }
}

#[inline]
fn longer(n: u64, out: &mut Vec<u8>) {
    let (len, mut rest) = (n.ilog10() as usize + 1, n);
    let mut digits = [0; 20];
    for d in digits[..len].iter_mut().rev() {
        *d = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    first(&digits, len, out);
}

/// Signed decimal.
#[inline]
pub fn signed(n: i64, out: &mut Vec<u8>) {
    if n < 0 {
        out.push(b'-');
    }
    dec(n.unsigned_abs(), out);
}

/// Appends the first `len` bytes: all are copied and the rest is cut off, because a copy of a fixed length is a few instructions, and one
/// of any length a call.
#[inline]
fn first<const N: usize>(bytes: &[u8; N], len: usize, out: &mut Vec<u8>) {
    let end = out.len() + len.min(N);
    out.extend_from_slice(bytes);
    out.truncate(end);
}

/// `n` spaces.
#[inline]
pub fn spaces(n: usize, out: &mut Vec<u8>) {
    const SOME: [u8; 48] = [b' '; 48];
    match n {
        0 => {}
        1..=48 => first(&SOME, n, out),
        _ => out.resize(out.len() + n, b' '),
    }
}

/// Decimal, right-aligned in `width`.
pub fn padded(n: u64, width: usize, out: &mut Vec<u8>) {
    let mut b = itoa::Buffer::new();
    let s = b.format(n);
    spaces(width.saturating_sub(s.len()), out);
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
    let len = (64 - n.leading_zeros()).div_ceil(bits).max(1) as usize;
    let (mut digits, mut rest) = ([0; 22], n);
    for digit in digits[..len].iter_mut().rev() {
        let d = rest as u8 & ((1 << bits) - 1);
        *digit = if d < 10 { b'0' + d } else { b'a' + d - 10 };
        rest >>= bits;
    }
    first(&digits, len, out);
}

/// ` /* 0.02 s */` after a number of clock ticks (100 a second, USER_HZ), nothing after 0.
pub fn ticks(n: u64, out: &mut Vec<u8>) {
    if n > 0 {
        out.extend_from_slice(format!(" /* {}.{:02} s */", n / 100, n % 100).as_bytes());
    }
}

/// ` /* 2001-09-09T01:46:40.000000005+0000 */`: the local time, with nanoseconds where there are any. Nothing for 0 and for
/// times beyond the year 9999.
pub fn date(secs: i64, nanos: u64, utc_offset: i64, out: &mut Vec<u8>) {
    if (secs == 0 && nanos == 0) || !(-62_000_000_000..=250_000_000_000).contains(&secs) || nanos > 999_999_999 {
        return;
    }
    let local = secs + utc_offset;
    let (year, month, day) = civil(local.div_euclid(86400));
    let t = local.rem_euclid(86400);
    let (h, m, s) = (t / 3600, t / 60 % 60, t % 60);
    let fraction = if nanos > 0 { format!(".{nanos:09}") } else { String::new() };
    let (sign, zone) = (if utc_offset < 0 { '-' } else { '+' }, utc_offset.abs() / 60);
    let text = format!(
        " /* {year:04}-{month:02}-{day:02}T{h:02}:{m:02}:{s:02}{fraction}{sign}{:02}{:02} */",
        zone / 60,
        zone % 60
    );
    out.extend_from_slice(text.as_bytes());
}

/// Year, month and day of a day number since 1970-01-01, in the Gregorian calendar, counted in eras of 400 years from March.
pub fn civil(days: i64) -> (i64, i64, i64) {
    let z = days + 719_468;
    let era = z.div_euclid(146_097);
    let day_of_era = z.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    (era * 400 + year_of_era + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    fn shown(write: impl Fn(&mut Vec<u8>)) -> String {
        let mut out = b"x".to_vec();
        write(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn numbers_are_those_of_the_standard_library() {
        let edges = (0..64).flat_map(|bit| [(1u64 << bit) - 1, 1 << bit]);
        let tens = (0..20).flat_map(|n| [10u64.pow(n) - 1, 10u64.pow(n)]);
        for n in edges.chain(tens).chain([u64::MAX]) {
            assert_eq!(shown(|o| super::dec(n, o)), format!("x{n}"));
            assert_eq!(shown(|o| super::hex(n, o)), if n == 0 { "x0".into() } else { format!("x{n:#x}") });
            let octal = if n == 0 { String::new() } else { format!("{n:o}") };
            assert_eq!(shown(|o| super::octal(n, o)), format!("x{:0>3}", format!("0{octal}")));
            for n in [n as i64, (n as i64).wrapping_neg()] {
                assert_eq!(shown(|o| super::signed(n, o)), format!("x{n}"));
            }
        }
        for n in 0..100 {
            assert_eq!(shown(|o| super::spaces(n, o)), format!("x{}", " ".repeat(n)));
        }
    }

    #[test]
    fn dates_are_local_and_iso() {
        let show = |s, n, off| {
            let mut out = Vec::new();
            super::date(s, n, off, &mut out);
            String::from_utf8(out).unwrap()
        };
        assert_eq!(show(1_000_000_000, 5, 0), " /* 2001-09-09T01:46:40.000000005+0000 */");
        assert_eq!(show(951_782_400, 0, -5400), " /* 2000-02-28T22:30:00-0130 */");
        assert_eq!(show(0, 0, 0), "");
    }

    #[test]
    fn octal_is_strace_s() {
        for (n, want) in [(0, "000"), (7, "007"), (0o22, "022"), (0o644, "0644"), (0o100644, "0100644")] {
            let mut out = Vec::new();
            super::octal(n, &mut out);
            assert_eq!(String::from_utf8(out).unwrap(), want);
        }
    }
}
