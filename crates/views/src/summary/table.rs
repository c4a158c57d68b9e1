//! The table of a summary, in the columns of strace 6.1.
//!
//! Invariant: a column is as wide as its widest cell, and never narrower than strace's; numbers are aligned to the right.

use super::{Column, Row, Stats};

/// Heading and smallest width of a column.
fn heading(c: Column) -> (&'static str, usize) {
    match c {
        Column::Percent => ("% time", 6),
        Column::Total => ("seconds", 11),
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
    let head = columns.iter().map(|&c| heading(c).0.to_owned()).collect();
    let mut cells: Vec<Vec<String>> = vec![head];
    for r in rows {
        cells.push(columns.iter().map(|&c| cell(c, &r.name, &r.stats, percent(&r.stats))).collect());
    }
    cells.push(columns.iter().map(|&c| cell(c, "total", &total, 100.0)).collect());

    let width = |i: usize| cells.iter().map(|row| row[i].len()).chain([heading(columns[i]).1]).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns.len()).map(width).collect();
    let dashes: Vec<String> = widths.iter().map(|&w| "-".repeat(w)).collect();
    for (i, row) in cells.iter().enumerate() {
        if i == 1 || i == cells.len() - 1 {
            line(&dashes, columns, &widths, out);
        }
        line(row, columns, &widths, out);
    }
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

/// Cells to the right of their columns, names to the left; the last name without spaces after it.
fn line(row: &[String], columns: &[Column], widths: &[usize], out: &mut Vec<u8>) {
    for (i, (text, &w)) in row.iter().zip(widths).enumerate() {
        if i > 0 {
            out.push(b' ');
        }
        let last = i + 1 == row.len();
        let padded = match columns[i] {
            Column::Name if last => text.clone(),
            Column::Name => format!("{text:<w$}"),
            _ => format!("{text:>w$}"),
        };
        out.extend_from_slice(padded.as_bytes());
    }
    out.push(b'\n');
}
