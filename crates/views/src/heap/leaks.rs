//! What is outstanding, by stack: the largest first.

use super::numbers::Sum;
use super::rows::{Row, Rows};
use super::{Of, Options, words};
use crate::profile::name::percent;
use crate::units::duration;

const OF: Of = Of::Outstanding;

/// Appends the view.
pub fn write(rows: &Rows, options: &Options, _realtime_offset: i64, out: &mut Vec<u8>) {
    let rows = &rows.folded();
    words::head(rows, &options.name, out);
    let all = rows.sum(|row| row.malloc(OF));
    let mapped = rows.sum(|row| row.mapped(OF));
    if rows.min_age > 0 {
        let mut text = format!("at least {} old: {}", duration(rows.min_age), words::in_blocks(all, "block"));
        if rows.has_mappings() {
            text += &format!(", {}", words::in_blocks(mapped, "mapping"));
        }
        words::line(&text, out);
    }
    let heading = |row: &Row| heading(row.old, all, row.oldest, "block");
    let rest = |others: &[&Row]| words::rest(others, OF);
    words::list(rows, &rows.sorted(|row| row.malloc(OF)), options, heading, rest, out);
    if mapped.blocks > 0 {
        words::line("\nBy mmap:", out);
        let heading = |row: &Row| self::heading(row.old_mapped, mapped, row.oldest_mapped, "mapping");
        let rest = |others: &[&Row]| words::rest_mapped(others, OF);
        words::list(rows, &rows.sorted(|row| row.mapped(OF)), options, heading, rest, out);
    }
}

fn heading(sum: Sum, whole: Sum, oldest: u64, thing: &str) -> String {
    let share = percent(sum.bytes, whole.bytes);
    let age = if sum.blocks == 1 { "age" } else { "oldest" };
    format!("{} ({share}), {age} {}", words::in_blocks(sum, thing), duration(oldest))
}
