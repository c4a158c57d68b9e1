//! A heap as JSON: one object on one line, with all numbers. docs/HEAP.md describes it.

use super::Options;
use super::growth::{of_malloc, of_mapped, of_row};
use super::model::Summary;
use super::numbers::{Numbers, Sum};
use super::rows::{Row, Rows};
use super::verdict::{Trend, Verdict};
use crate::stack::{self, Place};
use crate::write::json as w;

/// The version of the object, `v`.
pub const VERSION: u32 = 1;

/// Appends the object.
pub fn write(rows: &Rows, options: &Options, _realtime_offset: i64, out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"v\":");
    w::number(out, VERSION);
    w::key(out, "name");
    w::string(out, &options.name);
    summary(rows, options, out);
    w::key(out, "series");
    series(rows, out);
    w::key(out, "stacks");
    out.push(b'[');
    rows.all().iter().for_each(|row| item(rows, row, out));
    out.extend_from_slice(b"]}\n");
}

fn number(key: &str, n: u64, out: &mut Vec<u8>) {
    w::key(out, key);
    w::number(out, n);
}

fn sum(key: &str, sum: Sum, out: &mut Vec<u8>) {
    w::key(out, key);
    out.push(b'{');
    number("bytes", sum.bytes, out);
    number("blocks", sum.blocks, out);
    out.push(b'}');
}

fn summary(rows: &Rows, options: &Options, out: &mut Vec<u8>) {
    let s: &Summary = &rows.summary;
    for (key, n) in [
        ("start_ns", s.start),
        ("end_ns", s.now),
        ("peak_ns", s.peak_time),
        ("min_age_ns", rows.min_age),
        ("sample", s.sample),
        ("lost", options.lost.unwrap_or(0).max(s.lost)),
        ("missed_frees", s.missed_frees),
        ("unknown_frees", s.unknown_frees),
        ("frees_of_before", s.frees_of_before),
        ("frees_of_copies", s.frees_of_copies),
    ] {
        number(key, n, out);
    }
    numbers(&s.numbers, out);
    sum("old", rows.sum(|row| row.old), out);
    sum("mapped_old", rows.sum(|row| row.old_mapped), out);
    verdict("growth", of_malloc(&rows.series), out);
    verdict("mapped_growth", of_mapped(&rows.series), out);
}

fn numbers(n: &Numbers, out: &mut Vec<u8>) {
    sum("outstanding", n.outstanding(), out);
    sum("live", n.live, out);
    sum("total", n.total, out);
    number("temporary", n.temporary, out);
    number("peak", n.peak, out);
    sum("at_peak", n.at_peak, out);
    sum("copies", n.copies, out);
    sum("mapped_outstanding", n.mapped_outstanding(), out);
    sum("mapped_live", n.mapped_live, out);
    sum("mapped_total", n.mapped_total, out);
}

fn verdict(key: &str, v: Verdict, out: &mut Vec<u8>) {
    w::key(out, key);
    out.extend_from_slice(b"{\"verdict\":");
    w::string(out, v.trend.name());
    w::key(out, "bytes");
    w::number(out, v.growth);
    if let Trend::Steady { rate } = v.trend {
        number("bytes_per_second", rate, out);
    }
    out.push(b'}');
}

fn series(rows: &Rows, out: &mut Vec<u8>) {
    out.push(b'{');
    number("step_ns", rows.series.step(), out);
    number("stack_step_ns", rows.series.coarse_step(), out);
    w::key(out, "points");
    out.push(b'[');
    for p in rows.series.points() {
        w::comma(out);
        list([p.malloc.bytes, p.malloc.blocks, p.mapped.bytes, p.mapped.blocks], out);
    }
    out.extend_from_slice(b"]}");
}

fn list(all: impl IntoIterator<Item = u64>, out: &mut Vec<u8>) {
    out.push(b'[');
    for n in all {
        w::comma(out);
        w::number(out, n);
    }
    out.push(b']');
}

fn item(rows: &Rows, row: &Row, out: &mut Vec<u8>) {
    w::comma(out);
    out.push(b'{');
    numbers(&row.numbers, out);
    sum("old", row.old, out);
    number("oldest_ns", row.oldest, out);
    sum("mapped_old", row.old_mapped, out);
    number("mapped_oldest_ns", row.oldest_mapped, out);
    verdict("growth", of_row(rows, row), out);
    w::key(out, "points");
    list(row.series.iter().copied(), out);
    w::key(out, "frames");
    let frames: Vec<Place<'_>> = rows.frames(row).map(|frame| Place { frame, offset: None, address: None }).collect();
    stack::json(&frames, out);
    out.push(b'}');
}
