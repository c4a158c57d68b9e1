//! A table of functions with fixed units, for scripts: total time in seconds, time per call in milliseconds, calls, name; the largest total
//! first.
//!
//! ```text
//! Total (s) Per Call (ms)      Calls Name
//!  1.500000   1500.000000          1 main
//! ```

use super::by_thread::{ByThread, How};
use super::functions::rows;
use super::sort::Sort;
use super::totals::Totals;
use super::{Functions, label};
use crate::profile::words::losses;
use crate::table::{Align, Table};

/// Appends the table of a trace.
pub fn show(calls: &dyn ByThread, _: &How, out: &mut Vec<u8>) {
    write(&calls.totals(), calls.functions(), out);
    if let Some(lost) = losses(calls.lost()) {
        out.extend_from_slice(format!("# {lost}\n").as_bytes());
    }
}

/// Appends the table.
pub fn write(totals: &Totals, functions: &dyn Functions, out: &mut Vec<u8>) {
    let head =
        [("Total (s)", Align::Right), ("Per Call (ms)", Align::Right), ("Calls", Align::Right), ("Name", Align::Left)];
    let mut table = Table::new(head).without_rules().at_least([9, 13, 10]);
    for r in rows(totals, functions, Sort::Total) {
        let t = &r.total;
        let (seconds, micros) = (t.total / 1_000_000_000, t.total / 1000 % 1_000_000);
        // Times inside of other calls of the function are part of their durations.
        let each = t.average();
        table.row(vec![
            format!("{seconds}.{micros:06}"),
            format!("{}.{:06}", each / 1_000_000, each % 1_000_000),
            t.calls.to_string(),
            label::plain(r.number, functions),
        ]);
    }
    table.write(out);
}
