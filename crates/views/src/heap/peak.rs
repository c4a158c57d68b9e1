//! What was outstanding when malloc'd memory of all processes together was at its peak, by stack: the largest first.

use super::rows::{Row, Rows};
use super::{Of, Options, words};
use crate::profile::name::percent;
use crate::units::{duration, size};

/// Appends the view.
pub fn write(rows: &Rows, options: &Options, _realtime_offset: i64, out: &mut Vec<u8>) {
    let rows = &rows.folded();
    words::head(rows, &options.name, out);
    let s = &rows.summary;
    let peak = words::in_blocks(s.numbers.at_peak, "block");
    words::line(&format!("at {}: {peak}", duration(s.peak_time - s.start)), out);
    let heading = |row: &Row| {
        let at_peak = row.numbers.at_peak;
        let share = percent(at_peak.bytes, s.numbers.at_peak.bytes);
        let own = format!("own peak {}", size(row.numbers.peak));
        format!("{} ({share}), {own}", words::in_blocks(at_peak, "block"))
    };
    let rest = |others: &[&Row]| words::rest(others, Of::Peak);
    words::list(rows, &rows.sorted(|row| row.malloc(Of::Peak)), options, heading, rest, out);
}
