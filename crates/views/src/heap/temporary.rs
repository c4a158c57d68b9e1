//! Temporary allocations, by stack: the most frequent first. The thread that allocates such a block frees it before it allocates
//! or frees another one: it could do without.

use super::rows::{Row, Rows};
use super::{Options, words};
use crate::profile::name::percent;
use crate::units::size;

/// Appends the view.
pub fn write(rows: &Rows, options: &Options, _realtime_offset: i64, out: &mut Vec<u8>) {
    let rows = &rows.folded();
    words::head(rows, &options.name, out);
    let n = &rows.summary.numbers;
    words::line(&of(n.temporary, n.total.blocks), out);
    let heading = |row: &Row| {
        let total = row.numbers.total;
        let mean = total.bytes.checked_div(total.blocks).unwrap_or(0);
        format!("{}, {} on average", of(row.numbers.temporary, total.blocks), size(mean))
    };
    let rest = |others: &[&Row]| {
        let temporary = others.iter().fold(0u64, |sum, row| sum.saturating_add(row.numbers.temporary));
        format!("{} temporary", words::count(temporary))
    };
    words::list(rows, &rows.by(|row| row.numbers.temporary), options, heading, rest, out);
}

fn of(temporary: u64, all: u64) -> String {
    let share = percent(temporary, all);
    format!("{} temporary of {} ({share})", words::count(temporary), words::things(all, "allocation"))
}
