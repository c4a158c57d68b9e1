//! `--from` and `--to`.

use crate::ask::Ask;
use crate::view::screen::Clocks;
use engine::{Error, Result};

/// A span of time: ns of the monotonic clock, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// First moment.
    pub from: u64,
    /// Last moment.
    pub to: u64,
}

const SECOND: i128 = 1_000_000_000;
const DAY: i128 = 86_400 * SECOND;

impl Window {
    /// All of time.
    pub const ALL: Window = Window { from: 0, to: u64::MAX };

    /// What the command line says, for a trace that begins at `begin`.
    pub fn parse(ask: &Ask, begin: u64, clocks: Clocks) -> Result<Window> {
        let get = |name: &str, given: &Option<String>, other: u64| -> Result<u64> {
            let Some(text) = given else { return Ok(other) };
            moment(text, begin, clocks).ok_or_else(|| {
                let hint =
                    "+1.5 or +200ms after the beginning, 13:45:00.25, or seconds since the epoch, as -ttt prints them";
                Error::usage(format!("--{name} {text}"), "not a time", hint)
            })
        };
        Ok(Window { from: get("from", &ask.trace.from, 0)?, to: get("to", &ask.trace.to, u64::MAX)? })
    }
}

/// A moment on the monotonic clock; what is before its zero is zero.
fn moment(text: &str, begin: u64, clocks: Clocks) -> Option<u64> {
    let offset = i128::from(clocks.realtime_offset);
    let mono = if let Some(span) = text.strip_prefix('+') {
        i128::from(begin) + i128::from(lang::duration::parse(span)?)
    } else if text.contains(':') {
        // The first such time of day that is not more than half a day before the beginning.
        let local = i128::from(begin) + offset + i128::from(clocks.utc_offset) * SECOND;
        let of_day = clock(text)?;
        let mut t = local - local.rem_euclid(DAY) + of_day;
        if t < local - DAY / 2 {
            t += DAY;
        }
        t - offset - i128::from(clocks.utc_offset) * SECOND
    } else {
        decimal(text)? - offset
    };
    u64::try_from(mono.max(0)).ok()
}

/// `HH:MM[:SS[.fraction]]`: ns of the day.
fn clock(text: &str) -> Option<i128> {
    let mut parts = text.splitn(3, ':');
    let mut next = |max: i128| -> Option<i128> {
        let n: i128 = parts.next()?.parse().ok()?;
        (0..max).contains(&n).then_some(n)
    };
    let (hours, minutes) = (next(24)?, next(60)?);
    let seconds = parts.next().map_or(Some(0), decimal).filter(|s| *s < 61 * SECOND)?;
    Some((hours * 3600 + minutes * 60) * SECOND + seconds)
}

/// Seconds with up to nine decimals: ns.
fn decimal(text: &str) -> Option<i128> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = |s: &str| s.bytes().all(|b| b.is_ascii_digit());
    if whole.is_empty() && fraction.is_empty()
        || whole.len() > 12
        || fraction.len() > 9
        || !digits(whole)
        || !digits(fraction)
    {
        return None;
    }
    let whole: i128 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let part: i128 = if fraction.is_empty() { 0 } else { format!("{fraction:0<9}").parse().ok()? };
    Some(whole * SECOND + part)
}

#[cfg(test)]
mod tests {
    use super::*;

    // The trace begins at 5 s of a clock whose zero was at 10:00:00 UTC of day 100; the time zone is one hour ahead.
    const CLOCKS: Clocks = Clocks {
        realtime_offset: (100 * 86_400 + 36_000) * 1_000_000_000,
        utc_offset: 3600,
        string: None,
        no_strangers: false,
    };
    fn at(text: &str) -> Option<u64> {
        moment(text, 5_000_000_000, CLOCKS)
    }

    #[test]
    fn times_are_relative_of_the_day_or_absolute() {
        assert_eq!(at("+0"), Some(5_000_000_000));
        assert_eq!(at("+1.5"), Some(6_500_000_000));
        assert_eq!(at("+200ms"), Some(5_200_000_000));
        assert_eq!(at("+3us"), Some(5_000_003_000));
        assert_eq!(at("+2m"), Some(125_000_000_000));
        assert_eq!(at("11:00:06.25"), Some(6_250_000_000));
        assert_eq!(at("11:01"), Some(60_000_000_000));
        // Before the beginning.
        assert_eq!(at("00:00"), Some(0));
        // Past midnight, of a trace that begins at 23:00:05.
        let late = Clocks { realtime_offset: (100 * 86_400 + 82_800) * 1_000_000_000, utc_offset: 0, ..CLOCKS };
        assert_eq!(moment("00:30", 5_000_000_000, late), Some(5400 * 1_000_000_000));
        assert_eq!(at("8676007.5"), Some(7_500_000_000));
        assert_eq!(at("0"), Some(0));
    }

    #[test]
    fn invalid_times_are_refused() {
        for bad in [
            "",
            "+",
            "x",
            "-1",
            "1:",
            "25:00",
            "10:61",
            "10:00:99",
            "+1x",
            "1.0000000001",
            "+1.5x",
            "+1e3",
            "9999999999999",
        ] {
            assert_eq!(at(bad), None, "{bad}");
        }
    }
}
