//! What has changed from one heap to another, by stack: what has grown most first.
//!
//! Stacks are compared by the functions of their frames and the names of their modules: addresses, lines and the directories of modules
//! may differ.

use super::numbers::Sum;
use super::rows::{Row, Rows};
use super::{Options, words};
use crate::profile::name::base;
use crate::units::size;
use std::cmp::{Ordering, Reverse};
use std::collections::HashMap;

/// Two heaps.
#[derive(Clone, Copy)]
pub struct Diff<'a> {
    /// The one that is compared with.
    pub before: &'a Rows,
    /// The one that is compared.
    pub after: &'a Rows,
}

/// Functions and modules.
type Key<'a> = Vec<(&'a str, &'a str)>;

/// A stack in both.
struct Change<'a> {
    before: Sum,
    after: Sum,
    /// Whose frames are shown.
    shown: (&'a Rows, &'a Row),
}

impl Change<'_> {
    fn bytes(&self) -> i128 {
        i128::from(self.after.bytes) - i128::from(self.before.bytes)
    }

    fn blocks(&self) -> i128 {
        i128::from(self.after.blocks) - i128::from(self.before.blocks)
    }
}

impl<'a> Diff<'a> {
    /// Appends the stacks that differ in malloc'd memory, then those that differ in mapped memory; [`super::Of`] of the options is which.
    pub fn write(&self, options: &Options, out: &mut Vec<u8>) {
        for (what, rows) in [("before", self.before), ("after", self.after)] {
            words::head(rows, what, out);
        }
        if !self.list(options, "block", |row| row.malloc(options.of), "", out) {
            words::line("\nNo stack has changed.", out);
        }
        self.list(options, "mapping", |row| row.mapped(options.of), "\nBy mmap:\n", out);
    }

    /// Appends the changes of one kind of memory, below a title; whether there are any.
    fn list(&self, options: &Options, thing: &str, of: impl Fn(&Row) -> Sum, title: &str, out: &mut Vec<u8>) -> bool {
        let changes = self.changes(of);
        if changes.is_empty() {
            return false;
        }
        out.extend_from_slice(title.as_bytes());
        let (shown, others) = changes.split_at(changes.len().min(options.top));
        for c in shown {
            let bytes = format!("{} ({} -> {})", signed(c.bytes(), size), size(c.before.bytes), size(c.after.bytes));
            let blocks = format!("{} ({} -> {})", things(c.blocks(), thing), c.before.blocks, c.after.blocks);
            words::line(&format!("\n{bytes}, {blocks}"), out);
            words::frames(c.shown.0, c.shown.1, out);
        }
        if !others.is_empty() {
            let n = words::things(others.len() as u64, "more stack");
            let (bytes, blocks) = others.iter().fold((0, 0), |(a, b), c| (a + c.bytes(), b + c.blocks()));
            words::line(&format!("\n{n}: {}, {}", signed(bytes, size), things(blocks, thing)), out);
        }
        true
    }

    fn changes(&self, of: impl Fn(&Row) -> Sum) -> Vec<Change<'a>> {
        let mut all: HashMap<Key<'a>, Change<'a>> = HashMap::new();
        for (rows, is_after) in [(self.after, true), (self.before, false)] {
            for row in rows.all() {
                let key: Key<'a> = rows.frames(row).map(|f| (f.function, base(f.module))).collect();
                let none = Sum::default();
                let change = all.entry(key).or_insert(Change { before: none, after: none, shown: (rows, row) });
                if is_after { &mut change.after } else { &mut change.before }.join(of(row));
            }
        }
        let mut all: Vec<(Key<'a>, Change<'a>)> = all.into_iter().filter(|(_, c)| c.before != c.after).collect();
        order::by(&mut all, |(a, x), (b, y)| {
            let key = |c: &Change<'_>| Reverse((c.bytes(), c.blocks()));
            key(x).cmp(&key(y)).then_with(|| a.cmp(b))
        });
        all.into_iter().map(|(_, change)| change).collect()
    }
}

/// A number of things with its sign.
fn things(n: i128, thing: &str) -> String {
    signed(n, |n| words::things(n, thing))
}

/// A number with its sign, shown by a function that has none.
fn signed(n: i128, show: impl Fn(u64) -> String) -> String {
    let text = show(u64::try_from(n.unsigned_abs()).unwrap_or(u64::MAX));
    match n.cmp(&0) {
        Ordering::Equal => text,
        Ordering::Greater => format!("+{text}"),
        Ordering::Less => format!("-{text}"),
    }
}
