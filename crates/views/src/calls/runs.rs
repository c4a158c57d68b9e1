//! What has changed in the functions from some runs to others: means of their times and numbers of calls, with the spread of the runs.
//!
//! ```text
//! means of 5 and 5 runs; ~ where a change may be chance (Welch's t-test, 1 %)
//!
//!          total change            self  change calls change module function
//! -------------- ------- -------------- ------- ----- ------ ------ --------
//! 9.00us +-210ns +8.00us 2.20us +-264ns ~+200ns     4     +1 app    work
//! ```
//!
//! Functions are compared by their names and the names of their files. One that a run does not call counts as 0 there. Rows with a change
//! that is beyond the spread stand first.

use super::diff::{GREEN, RED, Side, Style};
use super::functions::{by_key, rows};
use super::sort::Sort;
use super::totals::Total;
use super::totals_json;
use crate::profile::functions::Key;
use crate::profile::name::base;
use crate::profile::table::columns;
use crate::profile::words::{ascii, module, rest};
use crate::spread::{Change, Spread, heading, number};
use crate::units::duration;
use crate::write::json as w;
use std::collections::HashMap;

/// Two sides, each of one or more runs.
pub struct Runs<'a> {
    /// The runs that are compared with.
    pub before: &'a [Side<'a>],
    /// The runs that are compared.
    pub after: &'a [Side<'a>],
}

/// A function, and what its calls add up to in each run: those before, and those after.
struct Row<'a> {
    key: Key<'a>,
    runs: [Vec<Total>; 2],
}

impl Row<'_> {
    fn change(&self, of: Sort) -> Change {
        let [before, after] = self.runs.each_ref().map(|runs| Spread::of(runs.iter().map(|total| of.number(total))));
        Change { before, after }
    }

    fn has_changed(&self) -> bool {
        [Sort::Total, Sort::Own, Sort::Calls].iter().any(|of| self.change(*of).size() > 0.0)
    }
}

fn time(ns: f64) -> String {
    duration(ns as u64)
}

impl<'a> Runs<'a> {
    /// The functions that have changed.
    fn rows(&self, sort: Sort) -> Vec<Row<'a>> {
        let none = || [self.before, self.after].map(|side| vec![Total::default(); side.len()]);
        let mut all: HashMap<Key<'a>, Row<'a>> = HashMap::new();
        for (side, runs) in [self.before, self.after].into_iter().enumerate() {
            for (nth, run) in runs.iter().enumerate() {
                for (key, total) in by_key(&rows(run.totals, run.functions, Sort::Name)) {
                    let key = Key { module: base(key.module), ..key };
                    let row = all.entry(key).or_insert_with(|| Row { key, runs: none() });
                    row.runs[side][nth].join(&total);
                }
            }
        }
        let mut all: Vec<_> = all.into_values().filter(Row::has_changed).collect();
        order::by(&mut all, |a, b| match sort {
            Sort::Name => a.key.cmp(&b.key),
            _ => a.change(sort).order(&b.change(sort)).then(a.key.cmp(&b.key)),
        });
        all
    }

    /// Appends an object for each function that has changed, at most `most`, in the order of the table.
    pub fn json(&self, sort: Sort, most: usize, out: &mut Vec<u8>) {
        for row in self.rows(sort).iter().take(most) {
            totals_json::begin("change", row.key.function, row.key.module, out);
            for (name, of) in [("calls", Sort::Calls), ("total_ns", Sort::Total), ("self_ns", Sort::Own)] {
                w::key(out, name);
                w::value(out, &row.change(of).json());
            }
            out.extend_from_slice(b"}\n");
        }
    }

    /// Appends a table of at most `rows` functions, the largest change of what they are sorted by first; by name, in the order of names.
    /// Functions that have not changed are left out. In colour, more time is red and less is green, where it is not chance.
    pub fn table(&self, style: Style, out: &mut Vec<u8>) {
        let Style { sort, rows: most, width, colour } = style;
        out.extend_from_slice(heading(self.before.len(), self.after.len()).as_bytes());
        let changed = self.rows(sort);
        if changed.is_empty() {
            out.extend_from_slice(b"No function has changed.\n");
            return;
        }
        let shown = &changed[..changed.len().min(most)];
        // A column of its own for what is compared otherwise, beside total, self and calls.
        let by = match sort {
            Sort::Min | Sort::Avg | Sort::Max => sort,
            _ => Sort::Total,
        };
        let spread = |change: &Change| format!("{} +-{}", time(change.after.mean), time(change.after.deviation));
        let numbers = shown.iter().map(|row| {
            let [spent, own, calls] = [by, Sort::Own, Sort::Calls].map(|of| row.change(of));
            [
                spread(&spent),
                spent.signed(time),
                spread(&own),
                own.signed(time),
                number(calls.after.mean),
                calls.signed(number),
            ]
        });
        let name = |key: &Key<'_>| if key.function.is_empty() { "[unknown]".to_owned() } else { ascii(key.function) };
        let names = shown.iter().map(|row| (module(&row.key), name(&row.key)));
        let headings = [by.name(), "change", "self", "change", "calls", "change"];
        let mut table = columns(&headings, numbers.collect(), names.collect(), width);
        for (nth, row) in shown.iter().enumerate().filter(|_| colour) {
            for (column, change) in [by, Sort::Own].map(|of| row.change(of)).iter().enumerate() {
                if !change.may_be_chance() && change.size() > 0.0 {
                    let is_more = change.after.mean > change.before.mean;
                    table.paint(nth, 2 * column + 1, if is_more { RED } else { GREEN });
                }
            }
        }
        table.write(out);
        rest(changed.len() - shown.len(), out);
        for (what, side) in [("before", self.before), ("after", self.after)] {
            for doubts in side.iter().filter_map(|run| run.totals.counts.doubts()).take(1) {
                out.extend_from_slice(format!("{what}: {doubts}\n").as_bytes());
            }
        }
    }
}
