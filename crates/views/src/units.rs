//! Durations and sizes as people read them: three digits and a unit.

/// A duration in ns as `999ns`, `1.23us`, `45.6ms`, `789s`, `1.16d`: three significant digits, rounded; whole seconds from
/// 1000 s on, days from 100,000 s on. At most seven characters.
pub fn duration(ns: u64) -> String {
    // The smallest value that rounds to 1000 of a unit belongs to the next one.
    let (unit, name): (u64, _) = match ns {
        0..=999 => return format!("{ns}ns"),
        1_000..=999_499 => (1_000, "us"),
        999_500..=999_499_999 => (1_000_000, "ms"),
        999_500_000..=99_999_499_999_999 => (1_000_000_000, "s"),
        _ => (86_400_000_000_000, "d"),
    };
    let whole = ns as f64 / unit as f64;
    // What rounds to 10.0 or 100 has one digit less after the point.
    let places = if whole < 9.995 {
        2
    } else if whole < 99.95 {
        1
    } else {
        0
    };
    format!("{whole:.places$}{name}")
}

/// Bytes as `999B`, `1.23KiB`, `45.6MiB`: three significant digits, rounded; four where there are from 1000 to 1023 of a unit.
pub fn size(bytes: u64) -> String {
    const UNITS: [&str; 7] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if bytes < 1024 {
        return format!("{bytes}B");
    }
    let mut power = bytes.ilog2() as usize / 10;
    let mut whole = bytes as f64 / (1u64 << (10 * power)) as f64;
    if whole >= 1023.5 && power + 1 < UNITS.len() {
        (power, whole) = (power + 1, whole / 1024.0);
    }
    let places = if whole < 9.995 {
        2
    } else if whole < 99.95 {
        1
    } else {
        0
    };
    format!("{whole:.places$}{}", UNITS[power])
}

/// ns as seconds with microseconds: `1.500350`.
pub fn seconds(ns: u64) -> String {
    format!("{}.{:06}", ns / 1_000_000_000, ns / 1000 % 1_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_three_digits_and_the_unit_that_fits() {
        for (ns, want) in [
            (0, "0ns"),
            (999, "999ns"),
            (1000, "1.00us"),
            (9_994, "9.99us"),
            (9_996, "10.0us"),
            (99_960, "100us"),
            (999_499, "999us"),
            (999_500, "1.00ms"),
            (1_500_350_000, "1.50s"),
            (999_499_999, "999ms"),
            (999_500_000, "1.00s"),
            (99_999_499_999_999, "99999s"),
            (99_999_500_000_000, "1.16d"),
            (u64::MAX, "213504d"),
        ] {
            assert_eq!(duration(ns), want, "{ns}");
        }
    }

    #[test]
    fn sizes_have_three_digits_and_the_unit_that_fits() {
        for (bytes, want) in [
            (0, "0B"),
            (1023, "1023B"),
            (1024, "1.00KiB"),
            (10_234, "9.99KiB"),
            (10_240, "10.0KiB"),
            (1_048_063, "1023KiB"),
            (1_048_575, "1.00MiB"),
            (u64::MAX, "16.0EiB"),
        ] {
            assert_eq!(size(bytes), want, "{bytes}");
        }
    }

    #[test]
    fn seconds_are_cut_to_microseconds() {
        assert_eq!(seconds(1_500_350_999), "1.500350");
        assert_eq!(seconds(u64::MAX), "18446744073.709551");
    }
}
