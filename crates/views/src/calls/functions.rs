//! Functions as a table: how often each was called, and how long that took.
//!
//! ```text
//!   total    self calls     min     avg     max module function
//! ------- ------- ----- ------- ------- ------- ------ --------
//!  1.50ms   500us     1  1.50ms  1.50ms  1.50ms app    main
//! ```
//!
//! Invariant: printable ASCII, whatever the names are.

use super::by_thread::{ByThread, How};
use super::sort::Sort;
use super::totals::{Total, Totals};
use super::{Functions, label};
use crate::profile::functions::Key;
use crate::profile::table::columns;
use crate::profile::words::{ascii, module, rest};
use crate::units::duration;
use std::cmp::Reverse;
use std::collections::HashMap;

/// A function and what its calls add up to.
#[derive(Clone, Debug)]
pub struct Row<'a> {
    /// Its name and module.
    pub key: Key<'a>,
    /// Its number; of several with one name and module, one of them.
    pub number: u32,
    /// Its calls.
    pub total: Total,
}

/// All functions, sorted.
pub fn rows<'a>(totals: &Totals, functions: &'a dyn Functions, sort: Sort) -> Vec<Row<'a>> {
    let mut all: Vec<_> = totals
        .iter()
        .map(|(number, total)| {
            let key = Key {
                function: functions.name(number).unwrap_or_default(),
                module: functions.module(number),
                kernel: false,
            };
            Row { key, number, total: *total }
        })
        .collect();
    order::by(&mut all, |a, b| {
        let number = |r: &Row<'_>| Reverse((sort.number(&r.total), if sort == Sort::Name { 0 } else { r.total.total }));
        number(a).cmp(&number(b)).then(a.key.cmp(&b.key)).then(a.number.cmp(&b.number))
    });
    all
}

/// Rows by what they are called: several functions of a file may have one name.
pub(super) fn by_key<'a>(rows: &[Row<'a>]) -> HashMap<Key<'a>, Total> {
    let mut all: HashMap<Key<'a>, Total> = HashMap::new();
    for r in rows {
        all.entry(r.key).or_default().join(&r.total);
    }
    all
}

/// Appends the table of a trace.
pub fn show(calls: &dyn ByThread, how: &How, out: &mut Vec<u8>) {
    let (rows, width) = how.size;
    let table = Table { sort: how.sort, rows: how.rows.unwrap_or(rows), width };
    table.write(&calls.totals(), calls.functions(), out);
}

/// How the table is drawn.
#[derive(Clone, Copy, Debug)]
pub struct Table {
    /// The order of the rows.
    pub sort: Sort,
    /// The most rows.
    pub rows: usize,
    /// The longest line, in characters: longer names are shortened. [`usize::MAX`] for any length.
    pub width: usize,
}

impl Default for Table {
    fn default() -> Table {
        Table { sort: Sort::Total, rows: usize::MAX, width: 100 }
    }
}

impl Table {
    /// Appends the table, and below it what is not certain about it.
    pub fn write(&self, totals: &Totals, functions: &dyn Functions, out: &mut Vec<u8>) {
        let all = rows(totals, functions, self.sort);
        let shown = &all[..all.len().min(self.rows)];
        if !shown.is_empty() {
            let numbers = shown.iter().map(|r| numbers(&r.total)).collect();
            let names = shown.iter().map(|r| (module(&r.key), ascii(&label::plain(r.number, functions)))).collect();
            columns(&["total", "self", "calls", "min", "avg", "max"], numbers, names, self.width).write(out);
        }
        rest(all.len() - shown.len(), out);
        out.extend_from_slice(summary(totals, all.len()).as_bytes());
    }
}

fn numbers(t: &Total) -> [String; 6] {
    [
        duration(t.total),
        duration(t.own),
        t.calls.to_string(),
        t.shortest().map_or("-".to_owned(), duration),
        duration(t.average()),
        duration(t.max),
    ]
}

/// A line about the whole, and one about what is not certain.
fn summary(totals: &Totals, functions: usize) -> String {
    let plural = |n: u64, what: &str| if n == 1 { format!("1 {what}") } else { format!("{n} {what}s") };
    let calls = totals.iter().fold(0u64, |sum, (_, t)| sum.saturating_add(t.calls));
    let mut text = format!("{} of {}", plural(calls, "call"), plural(functions as u64, "function"));
    text += &format!(" in {}", plural(totals.threads, "thread"));
    if let Some(doubts) = totals.counts.doubts() {
        text += &format!("; {doubts}");
    }
    text.push('\n');
    text
}
