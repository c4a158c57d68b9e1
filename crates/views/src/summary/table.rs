//! The table of a summary, in the columns of strace 6.1. Its seconds are those of `strace -c -w`, and say so.
//!
//! Invariant: a column is as wide as its widest cell, and never narrower than strace's; numbers are aligned to the right.

use super::{Column, Row, Stats};
use crate::table::{Align, Table};

/// Heading and smallest width of a column.
fn heading(c: Column) -> (&'static str, usize) {
    match c {
        Column::Percent => ("% time", 6),
        Column::Total => ("wall secs", 11),
        Column::Min => ("shortest", 8),
        Column::Max => ("longest", 8),
        Column::Avg => ("usecs/call", 11),
        Column::Calls => ("calls", 9),
        Column::Errors => ("errors", 9),
        Column::Name => ("syscall", 16),
    }
}

/// Writes head, rows and total.
pub fn write(rows: &[Row], columns: &[Column], out: &mut Vec<u8>) {
    let mut total = Stats::default();
    rows.iter().for_each(|r| total.join(&r.stats));
    let percent = |s: &Stats| match total.total {
        0 => 0.0,
        all => 100.0 * s.total as f64 / all as f64,
    };
    let align = |c: Column| if c == Column::Name { Align::Left } else { Align::Right };
    let head = columns.iter().map(|&c| (heading(c).0, align(c)));
    let mut table = Table::new(head).at_least(columns.iter().map(|&c| heading(c).1));
    for r in rows {
        table.row(columns.iter().map(|&c| cell(c, &r.name, &r.stats, percent(&r.stats))).collect());
    }
    table.total(columns.iter().map(|&c| cell(c, "total", &total, 100.0)).collect());
    table.write(out);
}

fn cell(c: Column, name: &str, s: &Stats, percent: f64) -> String {
    // In whole numbers, rounded: a double has no room for all digits.
    let seconds = |ns: u64| {
        let us = ns / 1000 + u64::from(ns % 1000 >= 500);
        format!("{}.{:06}", us / 1_000_000, us % 1_000_000)
    };
    match c {
        Column::Percent => format!("{percent:.2}"),
        Column::Total => seconds(s.total),
        Column::Min => seconds(s.min.unwrap_or(0)),
        Column::Max => seconds(s.max),
        Column::Avg => (s.avg() / 1000).to_string(),
        Column::Calls => s.calls.to_string(),
        Column::Errors if s.errors == 0 => String::new(),
        Column::Errors => s.errors.to_string(),
        Column::Name => name.to_owned(),
    }
}
