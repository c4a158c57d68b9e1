//! Durations, in one form everywhere: in filters (`dur > 10ms`), for `--duration`, after `--from +`.
//!
//! A number and a unit; on the command line with a fraction, and seconds where no unit is given.

const SECOND: u64 = 1_000_000_000;

/// Units, and nanoseconds in each.
pub const UNITS: &[(&str, u64)] = &[
    ("ns", 1),
    ("us", 1_000),
    ("ms", 1_000_000),
    ("s", SECOND),
    ("m", 60 * SECOND),
    ("min", 60 * SECOND),
    ("h", 3_600 * SECOND),
    ("d", 86_400 * SECOND),
];

/// The hint for a text that is not a duration.
pub const HINT: &str = "seconds, or with a unit (ns us ms s m h d): for instance 10, 1.5s or 200ms";

/// `1.5`, `1.5s`, `200ms`, `10us`, `7ns`, `2m`, `1h`: nanoseconds, what is less than one cut off. None: it is no time, or too long
/// for 64 bits.
pub fn parse(text: &str) -> Option<u64> {
    let split = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let unit = if unit.is_empty() { "s" } else { unit };
    let scale = UNITS.iter().find(|u| u.0 == unit)?.1;
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits = |s: &str| s.bytes().all(|b| b.is_ascii_digit());
    if whole.is_empty() && fraction.is_empty() || fraction.len() > 18 || !digits(whole) || !digits(fraction) {
        return None;
    }
    let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let part: u128 = if fraction.is_empty() { 0 } else { fraction.parse().ok()? };
    let part = part * u128::from(scale) / 10u128.pow(fraction.len() as u32);
    whole.checked_mul(scale)?.checked_add(part as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_with_and_without_units() {
        for (text, ns) in [
            ("0", 0),
            ("10", 10 * SECOND),
            ("1.5", 1_500_000_000),
            (".25s", 250_000_000),
            ("1.", SECOND),
            ("1.000000001", SECOND + 1),
            ("200ms", 200_000_000),
            ("0.5us", 500),
            ("7ns", 7),
            ("1.9ns", 1),
            ("2m", 120 * SECOND),
            ("2min", 120 * SECOND),
            ("1.5h", 5_400 * SECOND),
            ("1d", 86_400 * SECOND),
        ] {
            assert_eq!(parse(text), Some(ns), "{text}");
        }
    }

    #[test]
    fn what_is_no_time_is_none() {
        for text in
            ["", ".", "s", "-1", "+1", "1e3", "1 s", "1S", "1x", "1.5.5", "1_0", "99999999999999999999", "1ms2", "٣"]
        {
            assert_eq!(parse(text), None, "{text}");
        }
        assert_eq!(parse("213504d"), None);
    }
}
