//! How memory has changed over time: a verdict, a chart, and the stacks that have grown most, each with its verdict.

use super::rows::{Row, Rows};
use super::series::Series;
use super::verdict::{Trend, Verdict, verdict};
use super::{Options, words};
use crate::table::{Align, Table};
use crate::units::{duration, size};
use std::cmp::Reverse;

/// The most stacks that are shown.
const MOST: usize = 64;
/// The most lines of the chart.
const LINES: usize = 16;
/// The longest bar of the chart.
const BAR: usize = 40;

/// The verdict on all malloc'd memory.
pub fn of_malloc(series: &Series) -> Verdict {
    let points: Vec<u64> = series.points().iter().map(|p| p.malloc.bytes).collect();
    verdict(&points, series.step())
}

/// The verdict on all mapped memory.
pub fn of_mapped(series: &Series) -> Verdict {
    let points: Vec<u64> = series.points().iter().map(|p| p.mapped.bytes).collect();
    verdict(&points, series.step())
}

/// The verdict on a row.
pub fn of_row(rows: &Rows, row: &Row) -> Verdict {
    verdict(&row.series, rows.series.coarse_step())
}

/// Appends the view.
pub fn write(rows: &Rows, options: &Options, _realtime_offset: i64, out: &mut Vec<u8>) {
    let rows = &rows.folded();
    words::head(rows, &options.name, out);
    let whole = of_malloc(&rows.series);
    let growing = growing(rows);
    let mut text = whole.trend.text();
    if rows.has_mappings() {
        text += &format!("; mmap: {}", of_mapped(&rows.series).trend.text());
    }
    let steady = growing.iter().filter(|(v, _)| matches!(v.trend, Trend::Steady { .. })).count();
    match steady {
        0 => {}
        1 => text += "; 1 stack grows steadily",
        n => text += &format!("; {n} stacks grow steadily"),
    }
    words::line(&text, out);
    out.push(b'\n');
    chart(rows, out);
    let (shown, others) = growing.split_at(growing.len().min(options.top));
    for (v, row) in shown {
        let (grown, live) =
            (size(v.growth.unsigned_abs()), row.numbers.outstanding().and(row.numbers.mapped_outstanding()));
        let live = words::in_blocks(live, "block");
        words::line(&format!("\n+{grown}, {}: {live}", v.trend.text()), out);
        words::frames(rows, row, out);
    }
    if !others.is_empty() {
        let grown = others.iter().fold(0u64, |sum, (v, _)| sum.saturating_add(v.growth.unsigned_abs()));
        let n = words::things(others.len() as u64, "more stack");
        words::line(&format!("\n{n}: +{}", size(grown)), out);
    }
}

/// The rows that have grown most.
fn growing(rows: &Rows) -> Vec<(Verdict, &Row)> {
    let mut growing: Vec<(Verdict, &Row)> = rows.all().iter().map(|row| (of_row(rows, row), row)).collect();
    growing.retain(|(v, _)| matches!(v.trend, Trend::Steady { .. } | Trend::Jumps | Trend::LevelsOff));
    order::by_key(&mut growing, |(v, _)| Reverse(v.growth));
    growing.truncate(MOST);
    growing
}

/// A line for every 64th point or so.
fn chart(rows: &Rows, out: &mut Vec<u8>) {
    let series = &rows.series;
    let has_mappings = rows.has_mappings();
    let mut head = vec![("time", Align::Right), ("bytes", Align::Right), ("blocks", Align::Right)];
    if has_mappings {
        head.push(("mmap", Align::Right));
    }
    head.push(("of the peak", Align::Left));
    let mut table = Table::new(head);
    let each = series.points().len().div_ceil(LINES).max(1);
    let most = rows.summary.numbers.peak.max(1);
    for (nth, p) in series.points().iter().enumerate().step_by(each) {
        let time = series.step().saturating_mul(nth as u64);
        let mut cells = vec![duration(time), size(p.malloc.bytes), words::count(p.malloc.blocks)];
        if has_mappings {
            cells.push(size(p.mapped.bytes));
        }
        let bar = u128::from(p.malloc.bytes) * BAR as u128 / u128::from(most);
        cells.push("@".repeat(usize::try_from(bar).unwrap_or(BAR).min(BAR)));
        table.row(cells);
    }
    table.write(out);
}
