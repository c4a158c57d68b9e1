//! All allocations, by stack: those with the most allocations first.

use super::rows::{Row, Rows};
use super::{Of, Options, words};
use crate::profile::name::percent;
use crate::units::size;

/// Appends the view.
pub fn write(rows: &Rows, options: &Options, _realtime_offset: i64, out: &mut Vec<u8>) {
    let rows = &rows.folded();
    words::head(rows, &options.name, out);
    let n = &rows.summary.numbers;
    let mean = n.total.bytes.checked_div(n.total.blocks).unwrap_or(0);
    let all = words::things(n.total.blocks, "allocation");
    let temporary = format!("{} temporary ({})", words::count(n.temporary), percent(n.temporary, n.total.blocks));
    words::line(&format!("{all} of {} on average, {temporary}", size(mean)), out);
    let heading = |row: &Row| {
        let Row { numbers, .. } = row;
        let share = percent(numbers.total.blocks, n.total.blocks);
        let mut text = words::things(numbers.total.blocks, "allocation");
        text += &format!(" ({share}), {}", size(numbers.total.bytes));
        if numbers.temporary > 0 {
            text += &format!(", {} temporary", words::count(numbers.temporary));
        }
        text
    };
    let shown = rows.by(|row| (row.numbers.total.blocks, row.numbers.total.bytes));
    let rest = |others: &[&Row]| {
        let sum = words::sum(others, |row| row.malloc(Of::Total));
        format!("{}, {}", words::things(sum.blocks, "allocation"), size(sum.bytes))
    };
    words::list(rows, &shown, options, heading, rest, out);
    if rows.has_mappings() {
        words::line("\nBy mmap:", out);
        let heading = |row: &Row| {
            let sum = row.numbers.mapped_total;
            let share = percent(sum.bytes, n.mapped_total.bytes);
            format!("{} ({share})", words::in_blocks(sum, "mapping"))
        };
        let rest = |others: &[&Row]| words::rest_mapped(others, Of::Total);
        words::list(rows, &rows.sorted(|row| row.mapped(Of::Total)), options, heading, rest, out);
    }
}
