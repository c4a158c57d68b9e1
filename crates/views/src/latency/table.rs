//! The table and the histograms as text.
//!
//! Invariant: printable ASCII, whatever the names are; no line is wider than was asked for unless its numbers are.

use super::{Column, Latency, Stats};
use crate::summary::Column as Of;
use crate::table::{Align, Table, shortened};
use crate::units::duration;

/// Names are never shortened to less.
const LEAST_NAME: usize = 16;

/// Appends everything.
pub fn write(view: &Latency, out: &mut Vec<u8>) {
    let total = view.total();
    let mut rows: Vec<(String, &Stats)> =
        view.sorted().into_iter().map(|(subject, g)| (g.name(subject, view.by), &g.stats)).collect();
    if view.others.calls > 0 {
        rows.push(("(others)".to_owned(), &view.others));
    }
    if rows.is_empty() {
        out.extend_from_slice(b"No calls.\n");
    } else {
        table(view, &rows, &total, out);
    }
    notes(view, &total, out);
    if view.histograms {
        let room = view.width.saturating_sub(1).max(LEAST_NAME);
        rows.iter().for_each(|(name, stats)| histogram(&shortened(name, room), stats, out));
        if rows.len() > 1 {
            histogram("total", &total, out);
        }
    }
}

fn table(view: &Latency, rows: &[(String, &Stats)], total: &Stats, out: &mut Vec<u8>) {
    let mut table = Table::new(view.columns.iter().map(|&c| heading(c, view.by.name())));
    let cells = |name: &str, s: &Stats| view.columns.iter().map(|&c| cell(c, name, s, total)).collect();
    rows.iter().for_each(|(name, s)| table.row(cells(name, s)));
    table.total(cells("total", total));
    if let Some(i) = view.columns.iter().position(|c| *c == Column::Of(Of::Name)) {
        table.squeeze(i, view.width, LEAST_NAME);
    }
    table.write(out);
}

fn heading(c: Column, name: &str) -> (String, Align) {
    let text = match c {
        Column::Of(Of::Name) => return (name.to_owned(), Align::Left),
        Column::Of(Of::Percent) => "% time",
        Column::Of(Of::Total) => "total",
        Column::Of(Of::Min) => "min",
        Column::Of(Of::Max) => "max",
        Column::Of(Of::Avg) => "avg",
        Column::Of(Of::Calls) => "calls",
        Column::Of(Of::Errors) => "errors",
        Column::Quantile(q) => q.name(),
    };
    (text.to_owned(), Align::Right)
}

fn cell(c: Column, name: &str, s: &Stats, all: &Stats) -> String {
    let time = |ns: Option<u64>| ns.map_or_else(|| "-".to_owned(), duration);
    let timed = |ns: u64| time((s.timed > 0).then_some(ns));
    match c {
        Column::Of(Of::Percent) => format!("{:.2}", 100.0 * s.total as f64 / all.total.max(1) as f64),
        Column::Of(Of::Total) => timed(s.total),
        Column::Of(Of::Min) => timed(s.min),
        Column::Of(Of::Max) => timed(s.max),
        Column::Of(Of::Avg) => time(s.avg()),
        Column::Of(Of::Calls) => s.calls.to_string(),
        Column::Of(Of::Errors) if s.errors == 0 => String::new(),
        Column::Of(Of::Errors) => s.errors.to_string(),
        Column::Of(Of::Name) => name.to_owned(),
        Column::Quantile(q) => time(s.quantile(q)),
    }
}

/// The lines below the table: what the rows do not show.
fn notes(view: &Latency, total: &Stats, out: &mut Vec<u8>) {
    let unknown = total.calls - total.timed;
    let said = [
        (view.unfinished, " without a result: in no row"),
        (unknown, " whose start is not known: counted, without a time"),
        (view.others.calls, " for which there was no room for a row of their own: in (others)"),
    ];
    for (n, what) in said.iter().filter(|(n, _)| *n > 0) {
        let calls = if *n == 1 { "call" } else { "calls" };
        out.extend_from_slice(format!("{n} {calls}{what}\n").as_bytes());
    }
}

/// Nothing where no time is known.
fn histogram(name: &str, stats: &Stats, out: &mut Vec<u8>) {
    if stats.timed > 0 {
        out.extend_from_slice(format!("\n{name}:\n").as_bytes());
        stats.histogram.draw(out);
    }
}
