//! Times of day as text.
//!
//! Which moment it is, and how far the place's clock is from UTC, is what the host says.

/// A moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wall {
    /// Seconds since 1970, UTC.
    pub seconds: i64,
    /// Within the second.
    pub nanoseconds: u32,
    /// Seconds that the local clock is ahead of UTC.
    pub offset: i32,
}

const DAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
#[rustfmt::skip]
const MONTHS: [&str; 12] = [
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December",
];

/// The longest text.
const MAX: usize = 4096;

/// As strftime(3) writes it in the locale C; `%f` are microseconds. What is not known stays as it is.
pub fn format(format: &[u8], wall: Wall) -> Vec<u8> {
    let mut out = String::new();
    let text = String::from_utf8_lossy(format);
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '%' => match chars.next() {
                Some(c) => conversion(c, wall, &mut out),
                None => out.push('%'),
            },
            c => out.push(c),
        }
        if out.len() > MAX {
            break;
        }
    }
    out.into_bytes()
}

fn conversion(c: char, wall: Wall, out: &mut String) {
    let local = wall.seconds.saturating_add(wall.offset.into());
    let (days, second) = (local.div_euclid(86400), local.rem_euclid(86400));
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    let (year, month, day) = civil(days);
    let weekday = (days + 4).rem_euclid(7) as usize;
    let day_of_year = days - from_civil(year) + 1;
    let twelve = (hour + 11) % 12 + 1;
    let text = match c {
        'Y' => format!("{year}"),
        'C' => format!("{:02}", year.div_euclid(100)),
        'y' => format!("{:02}", year.rem_euclid(100)),
        'm' => format!("{month:02}"),
        'd' => format!("{day:02}"),
        'e' => format!("{day:2}"),
        'j' => format!("{day_of_year:03}"),
        'H' => format!("{hour:02}"),
        'k' => format!("{hour:2}"),
        'I' => format!("{twelve:02}"),
        'l' => format!("{twelve:2}"),
        'M' => format!("{minute:02}"),
        'S' => format!("{second:02}"),
        's' => format!("{}", wall.seconds),
        'f' => format!("{:06}", wall.nanoseconds / 1000),
        'p' => if hour < 12 { "AM" } else { "PM" }.into(),
        'P' => if hour < 12 { "am" } else { "pm" }.into(),
        'a' => DAYS[weekday][..3].into(),
        'A' => DAYS[weekday].into(),
        'b' | 'h' => MONTHS[month as usize - 1][..3].into(),
        'B' => MONTHS[month as usize - 1].into(),
        'u' => format!("{}", (weekday + 6) % 7 + 1),
        'w' => format!("{weekday}"),
        'z' => {
            let (sign, minutes) = (if wall.offset < 0 { '-' } else { '+' }, wall.offset.abs() / 60);
            format!("{sign}{:02}{:02}", minutes / 60, minutes % 60)
        }
        'n' => "\n".into(),
        't' => "\t".into(),
        '%' => "%".into(),
        'D' | 'x' => return several("%m/%d/%y", wall, out),
        'F' => return several("%Y-%m-%d", wall, out),
        'T' | 'X' => return several("%H:%M:%S", wall, out),
        'R' => return several("%H:%M", wall, out),
        'r' => return several("%I:%M:%S %p", wall, out),
        'c' => return several("%a %b %e %H:%M:%S %Y", wall, out),
        c => format!("%{c}"),
    };
    out.push_str(&text);
}

fn several(format: &str, wall: Wall, out: &mut String) {
    out.push_str(&String::from_utf8_lossy(&self::format(format.as_bytes(), wall)));
}

/// Year, month and day of a day since 1970, in the Gregorian calendar (years of 365.2425 days that begin in March).
fn civil(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let (era, day) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let march = (5 * day + 2) / 153;
    let month = if march < 10 { march + 3 } else { march - 9 };
    (year + era * 400 + i64::from(month <= 2), month, day - (153 * march + 2) / 5 + 1)
}

/// The day since 1970 of the first of January.
fn from_civil(year: i64) -> i64 {
    let before = year - 1;
    365 * (year - 1970) + (before.div_euclid(4) - before.div_euclid(100) + before.div_euclid(400)) - 477
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_date_writes_it() {
        let at = |seconds, offset| Wall { seconds, nanoseconds: 123_456_789, offset };
        let f = |f: &str, w| String::from_utf8(format(f.as_bytes(), w)).unwrap();
        // date -u -d @951827696 '+…'
        assert_eq!(f("%F %T %j %a %B %u %I%p", at(951_827_696, 0)), "2000-02-29 12:34:56 060 Tue February 2 12PM");
        assert_eq!(f("%Y-%m-%d %H:%M %z %f", at(0, -3600)), "1969-12-31 23:00 -0100 123456");
        assert_eq!(
            f("%c|%D|%R|%e|%%|%Q|%", at(1_700_000_000, 7200)),
            "Wed Nov 15 00:13:20 2023|11/15/23|00:13|15|%|%Q|%"
        );
        assert_eq!(f("%j %y", at(1_735_603_200, 0)), "366 24");
    }
}
