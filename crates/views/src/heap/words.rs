//! What the text views of a heap have in common: the first lines, stacks with a heading each, and what is not shown.
//!
//! Text is printable ASCII.

use super::numbers::{Numbers, Sum};
use super::rows::{Row, Rows};
use super::{Of, Options};
use crate::profile::words::ascii;
use crate::stack::{self, Place};
use crate::units::{duration, size};

/// A number: up to 99999 as it is, larger ones with three digits: `345k`, `2.10M`.
pub fn count(n: u64) -> String {
    if n < 100_000 {
        return n.to_string();
    }
    let (unit, name) = match n {
        0..=999_499 => (1e3, "k"),
        999_500..=999_499_999 => (1e6, "M"),
        999_500_000..=999_499_999_999 => (1e9, "G"),
        _ => (1e12, "T"),
    };
    let whole = n as f64 / unit;
    let places = if whole < 9.995 {
        2
    } else if whole < 99.95 {
        1
    } else {
        0
    };
    format!("{whole:.places$}{name}")
}

/// A number of things, whose plural ends in s.
pub fn things(n: u64, thing: &str) -> String {
    format!("{} {thing}{}", count(n), if n == 1 { "" } else { "s" })
}

/// `1.20KiB in 3 blocks`.
pub fn in_blocks(sum: Sum, thing: &str) -> String {
    format!("{} in {}", size(sum.bytes), things(sum.blocks, thing))
}

/// Appends a line.
pub fn line(text: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(text.as_bytes());
    out.push(b'\n');
}

/// The sentence on malloc'd memory.
pub fn malloc(rows: &Rows) -> String {
    let s = &rows.summary;
    let Numbers { total, .. } = s.numbers;
    let outstanding = in_blocks(s.numbers.outstanding(), "block");
    let peak = format!("peak {} at {}", size(s.numbers.peak), duration(s.peak_time - s.start));
    format!("{outstanding} outstanding of {}, {}; {peak}", things(total.blocks, "allocation"), size(total.bytes))
}

/// The sentence on mapped memory.
fn mapped(rows: &Rows) -> String {
    let n = &rows.summary.numbers;
    let outstanding = in_blocks(n.mapped_outstanding(), "mapping");
    format!("mmap: {outstanding} outstanding of {}, {}", count(n.mapped_total.blocks), size(n.mapped_total.bytes))
}

/// Appends the sums over the whole heap, and notes about those that are not exact.
pub fn head(rows: &Rows, name: &str, out: &mut Vec<u8>) {
    let name = if name.is_empty() { "heap".to_owned() } else { ascii(name) };
    let estimates = match rows.summary.sample {
        0 => String::new(),
        bytes => format!("; estimates: one sample for {}", size(bytes)),
    };
    line(&format!("{name}: {}{estimates}", malloc(rows)), out);
    if rows.has_mappings() {
        line(&mapped(rows), out);
    }
    let s = &rows.summary;
    let copies = s.numbers.copies;
    let notes = [
        (s.lost, format!("{} lost: numbers are too high or too low by up to that", things(s.lost, "event"))),
        (s.missed_frees, format!("{} not seen: the address was allocated again", things(s.missed_frees, "free"))),
        (s.unknown_frees, format!("{} of blocks whose allocation was not seen", things(s.unknown_frees, "free"))),
        (s.frees_of_before, format!("{} of blocks from before the reset", things(s.frees_of_before, "free"))),
        (copies.blocks, format!("{} that forks have copied, not in these numbers", in_blocks(copies, "block"))),
    ];
    notes.iter().filter(|(n, _)| *n > 0).for_each(|(_, note)| line(note, out));
}

/// Appends the frames of a row, innermost first.
pub fn frames(rows: &Rows, row: &Row, out: &mut Vec<u8>) {
    let mut any = false;
    for frame in rows.frames(row) {
        any = true;
        stack::line(&Place { frame, offset: None, address: None }, true, out);
    }
    if !any {
        stack::line(&Place::default(), true, out);
    }
}

/// Appends the first rows, each with its heading and frames, and a line about the others.
pub fn list(
    rows: &Rows,
    shown: &[&Row],
    options: &Options,
    heading: impl Fn(&Row) -> String,
    rest: impl Fn(&[&Row]) -> String,
    out: &mut Vec<u8>,
) {
    let (first, others) = shown.split_at(shown.len().min(options.top));
    for row in first {
        line(&format!("\n{}", heading(row)), out);
        frames(rows, row, out);
    }
    if !others.is_empty() {
        let n = things(others.len() as u64, "more stack");
        line(&format!("\n{n}: {}", rest(others)), out);
    }
}

/// The sum of something of some rows.
pub fn sum(rows: &[&Row], of: impl Fn(&Row) -> Sum) -> Sum {
    rows.iter().fold(Sum::default(), |all, row| all.and(of(row)))
}

/// Malloc'd memory of some rows, in a sentence.
pub fn rest(rows: &[&Row], of: Of) -> String {
    in_blocks(sum(rows, |row| row.malloc(of)), "block")
}

/// Mapped memory of some rows, in a sentence.
pub fn rest_mapped(rows: &[&Row], of: Of) -> String {
    in_blocks(sum(rows, |row| row.mapped(of)), "mapping")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_numbers_have_three_digits() {
        let all = [0, 99_999, 100_000, 999_499, 999_500, 2_104_000, 99_960_000, 1_000_000_000, u64::MAX];
        let all = all.map(count).join(" ");
        assert_eq!(all, "0 99999 100k 999k 1.00M 2.10M 100M 1.00G 18446744T");
        assert_eq!(things(1, "block") + &things(2, " block"), "1 block2  blocks");
    }
}
