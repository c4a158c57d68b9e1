//! What has changed from one profile to another.
//!
//! A profile of twice the time has twice the weights, so shares are compared: a change is a difference in *points*, hundredths of
//! the whole. The flame graph of a difference is [`super::flame::Flame::write_difference`].

use super::folded::Folds;
use super::functions::{Key, functions};
use super::stacks::Stacks;
use super::table::columns;
use super::words::{ascii, in_all, module, rest};
use super::{By, name, percent};
use std::collections::HashMap;

/// Changes below this, in points, are shown as none.
const NOTHING: f64 = 0.005;

/// Two profiles.
#[derive(Clone, Copy)]
pub struct Diff<'a> {
    /// The one that is compared with.
    pub before: &'a Stacks,
    /// The one that is compared.
    pub after: &'a Stacks,
}

/// How a function has changed: shares of the whole in percent, before and after.
struct Change<'a> {
    key: Key<'a>,
    own: (f64, f64),
    total: (f64, f64),
}

fn points(pair: (f64, f64)) -> f64 {
    pair.1 - pair.0
}

/// A number with a sign; nothing where nothing has changed.
fn signed(points: f64) -> String {
    if points.abs() < NOTHING { "0.00".to_owned() } else { format!("{points:+.2}") }
}

impl<'a> Diff<'a> {
    /// The functions of both, the largest change of their own share first, then that of their total share.
    fn changes(&self) -> Vec<Change<'a>> {
        let mut all: HashMap<Key<'a>, Change<'a>> = HashMap::new();
        for (stacks, after) in [(self.before, false), (self.after, true)] {
            let whole = stacks.kept();
            for f in functions(stacks) {
                let change = all.entry(f.key).or_insert(Change { key: f.key, own: (0.0, 0.0), total: (0.0, 0.0) });
                let shares = (percent(f.own, whole), percent(f.total, whole));
                if after {
                    (change.own.1, change.total.1) = shares;
                } else {
                    (change.own.0, change.total.0) = shares;
                }
            }
        }
        let mut all: Vec<_> = all.into_values().collect();
        let size = |pair| points(pair).abs();
        order::by(&mut all, |a, b| {
            let by_size = size(b.own).total_cmp(&size(a.own)).then(size(b.total).total_cmp(&size(a.total)));
            by_size.then(a.key.cmp(&b.key))
        });
        all
    }

    /// Appends a table of at most `rows` functions, in lines of `width` characters: self and total share after, and the change of
    /// each in points. Functions that have not changed are left out.
    pub fn table(&self, rows: usize, width: usize, out: &mut Vec<u8>) {
        for (what, stacks) in [("before", self.before), ("after", self.after)] {
            out.extend_from_slice(format!("{what}: {}\n", in_all(stacks)).as_bytes());
        }
        let mut changes = self.changes();
        let is_change = |c: &Change<'_>| points(c.own).abs() >= NOTHING || points(c.total).abs() >= NOTHING;
        changes.retain(is_change);
        if changes.is_empty() {
            out.extend_from_slice(b"No function has changed.\n");
            return;
        }
        let shown = &changes[..changes.len().min(rows)];
        let numbers = shown.iter().map(|c| {
            [format!("{:.2}%", c.own.1), signed(points(c.own)), format!("{:.2}%", c.total.1), signed(points(c.total))]
        });
        let names = shown.iter().map(|c| (module(&c.key), ascii(&name::function(&c.key.frame()))));
        out.push(b'\n');
        columns(&["self%", "change", "total%", "change"], numbers.collect(), names.collect(), width).write(out);
        rest(changes.len() - shown.len(), out);
    }

    /// Appends all stacks, folded, with their weights before and after, as difffolded.pl prints them and flamegraph.pl reads them:
    /// `outer;inner BEFORE AFTER`. With `normalise`, weights before are scaled to the whole of those after (difffolded.pl -n).
    pub fn folded(&self, by: By, normalise: bool, out: &mut Vec<u8>) {
        let (was, is) = (self.before.kept(), self.after.kept());
        let scaled = |weight: u64| {
            let exact = u128::from(weight) * u128::from(is) / u128::from(was.max(1));
            u64::try_from(exact).unwrap_or(u64::MAX)
        };
        let folds = Folds::new([self.before, self.after], by);
        for (line, [before, after]) in &folds.lines {
            folds.line(line, out);
            let before = if normalise { scaled(*before) } else { *before };
            out.extend_from_slice(format!(" {before} {after}\n").as_bytes());
        }
    }
}
