//! What has changed from one trace to another, by function: times and numbers of calls after, and how much more or less they are.
//!
//! Functions are compared by their names and the names of their files. Unlike samples, calls are exact, so the times themselves are compared.

use super::functions::{by_key, rows};
use super::sort::Sort;
use super::totals::{Total, Totals};
use super::{Functions, totals_json};
use crate::profile::functions::Key;
use crate::profile::name::base;
use crate::profile::table::columns;
use crate::profile::words::{ascii, module, rest};
use crate::units::duration;
use crate::write::json as w;
use std::cmp::Ordering;
use std::collections::HashMap;

pub(super) const RED: &str = "\x1b[31m";
pub(super) const GREEN: &str = "\x1b[32m";

/// How the table is drawn.
#[derive(Clone, Copy, Debug)]
pub struct Style {
    /// What is compared first: its largest change is in the first row.
    pub sort: Sort,
    /// The most rows.
    pub rows: usize,
    /// The longest line, in characters: longer names are shortened. [`usize::MAX`] for any length.
    pub width: usize,
    /// Escape sequences for colours.
    pub colour: bool,
}

/// The calls of a trace and the names of its functions.
#[derive(Clone, Copy)]
pub struct Side<'a> {
    /// The calls.
    pub totals: &'a Totals,
    /// The names.
    pub functions: &'a dyn Functions,
}

/// Two traces.
#[derive(Clone, Copy)]
pub struct Diff<'a> {
    /// The one that is compared with.
    pub before: Side<'a>,
    /// The one that is compared.
    pub after: Side<'a>,
}

struct Change<'a> {
    key: Key<'a>,
    before: Total,
    after: Total,
}

/// How much larger `after` is, with its sign, by a function that shows it without.
fn signed(before: u64, after: u64, show: impl Fn(u64) -> String) -> String {
    match after.cmp(&before) {
        Ordering::Equal => "0".to_owned(),
        Ordering::Greater => format!("+{}", show(after - before)),
        Ordering::Less => format!("-{}", show(before - after)),
    }
}

impl<'a> Diff<'a> {
    fn changes(&self, sort: Sort) -> Vec<Change<'a>> {
        let mut all: HashMap<Key<'a>, Change<'a>> = HashMap::new();
        for (side, is_after) in [(self.before, false), (self.after, true)] {
            for (key, total) in by_key(&rows(side.totals, side.functions, Sort::Name)) {
                let key = Key { module: base(key.module), ..key };
                let none = Total::default();
                let change = all.entry(key).or_insert(Change { key, before: none, after: none });
                if is_after { &mut change.after } else { &mut change.before }.join(&total);
            }
        }
        let mut all: Vec<_> = all.into_values().collect();
        all.retain(|c| (c.before.calls, c.before.total, c.before.own) != (c.after.calls, c.after.total, c.after.own));
        let size = |c: &Change<'_>| sort.number(&c.before).abs_diff(sort.number(&c.after));
        order::by(&mut all, |a, b| {
            let by_total = b.after.total.cmp(&a.after.total).then(a.key.cmp(&b.key));
            match sort {
                Sort::Name => a.key.cmp(&b.key),
                _ => size(b).cmp(&size(a)).then(by_total),
            }
        });
        all
    }

    /// Appends an object for each function that has changed, at most `most`, in the order of the table.
    pub fn json(&self, sort: Sort, most: usize, out: &mut Vec<u8>) {
        for Change { key, before, after } in self.changes(sort).iter().take(most) {
            totals_json::begin("change", key.function, key.module, out);
            for (name, total) in [("before", before), ("after", after)] {
                w::key(out, name);
                totals_json::object(total, out);
            }
            out.extend_from_slice(b"}\n");
        }
    }

    /// Appends a table of at most `rows` functions, the largest change of what they are sorted by first; by name, in the order of names.
    /// Functions that have not changed are left out. In colour, more time is red and less is green.
    pub fn table(&self, style: Style, out: &mut Vec<u8>) {
        let Style { sort, rows: most, width, colour } = style;
        let changes = self.changes(sort);
        if changes.is_empty() {
            out.extend_from_slice(b"No function has changed.\n");
            return;
        }
        let shown = &changes[..changes.len().min(most)];
        // A column of its own for what is compared otherwise, beside total, self and calls.
        let by = match sort {
            Sort::Min | Sort::Avg | Sort::Max => sort,
            _ => Sort::Total,
        };
        let pairs = |c: &Change<'_>| {
            [by, Sort::Own, Sort::Calls].map(|column| (column.number(&c.before), column.number(&c.after)))
        };
        let numbers = shown.iter().map(|c| {
            let [time, own, calls] = pairs(c);
            [
                duration(time.1),
                signed(time.0, time.1, duration),
                duration(own.1),
                signed(own.0, own.1, duration),
                calls.1.to_string(),
                signed(calls.0, calls.1, |n| n.to_string()),
            ]
        });
        let name =
            |c: &Change<'_>| if c.key.function.is_empty() { "[unknown]".to_owned() } else { ascii(c.key.function) };
        let names = shown.iter().map(|c| (module(&c.key), name(c)));
        let headings = [by.name(), "change", "self", "change", "calls", "change"];
        let mut table = columns(&headings, numbers.collect(), names.collect(), width);
        for (row, change) in shown.iter().enumerate().filter(|_| colour) {
            for (column, (before, after)) in pairs(change).into_iter().take(2).enumerate() {
                match after.cmp(&before) {
                    Ordering::Greater => table.paint(row, 2 * column + 1, RED),
                    Ordering::Less => table.paint(row, 2 * column + 1, GREEN),
                    Ordering::Equal => {}
                }
            }
        }
        table.write(out);
        rest(changes.len() - shown.len(), out);
        for (what, side) in [("before", self.before), ("after", self.after)] {
            if let Some(doubts) = side.totals.counts.doubts() {
                out.extend_from_slice(format!("{what}: {doubts}\n").as_bytes());
            }
        }
    }
}
