//! What has changed from one trace to another, by function: times and numbers of calls after, and how much more or less they are.
//!
//! Functions are compared by their names and the names of their files. Unlike samples, calls are exact, so the times themselves are compared.

use super::Functions;
use super::functions::{Sort, by_key, rows};
use super::totals::{Total, Totals};
use crate::profile::functions::Key;
use crate::profile::name::base;
use crate::profile::table::{ascii, columns, module, rest};
use crate::units::duration;
use std::collections::HashMap;

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
        std::cmp::Ordering::Equal => "0".to_owned(),
        std::cmp::Ordering::Greater => format!("+{}", show(after - before)),
        std::cmp::Ordering::Less => format!("-{}", show(before - after)),
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
        all.sort_by(|a, b| size(b).cmp(&size(a)).then(a.key.cmp(&b.key)));
        all
    }

    /// Appends a table of at most `most` functions, in lines of `width` characters, the largest change of what they are sorted by first.
    /// Functions that have not changed are left out.
    pub fn table(&self, sort: Sort, most: usize, width: usize, out: &mut Vec<u8>) {
        let changes = self.changes(sort);
        if changes.is_empty() {
            out.extend_from_slice(b"No function has changed.\n");
            return;
        }
        let shown = &changes[..changes.len().min(most)];
        let numbers = shown.iter().map(|Change { before, after, .. }| {
            [
                duration(after.total),
                signed(before.total, after.total, duration),
                duration(after.own),
                signed(before.own, after.own, duration),
                after.calls.to_string(),
                signed(before.calls, after.calls, |n| n.to_string()),
            ]
        });
        let name =
            |c: &Change<'_>| if c.key.function.is_empty() { "[unknown]".to_owned() } else { ascii(c.key.function) };
        let names = shown.iter().map(|c| (module(&c.key), name(c)));
        columns(&["total", "change", "self", "change", "calls", "change"], numbers.collect(), names.collect(), width)
            .write(out);
        rest(changes.len() - shown.len(), out);
        for (what, side) in [("before", self.before), ("after", self.after)] {
            if let Some(doubts) = side.totals.counts.doubts() {
                out.extend_from_slice(format!("{what}: {doubts}\n").as_bytes());
            }
        }
    }
}
