//! A table of functions with fixed units, for scripts: total time in seconds, time per call in milliseconds, calls, name; the largest total
//! first.
//!
//! ```text
//! Total (s) Per Call (ms)      Calls Name
//!  1.500000   1500.000000          1 main
//! ```

use super::functions::{Sort, rows};
use super::totals::Totals;
use super::{Functions, label};

/// Appends the table.
pub fn write(totals: &Totals, functions: &dyn Functions, out: &mut Vec<u8>) {
    out.extend_from_slice(b"Total (s) Per Call (ms)      Calls Name\n");
    for r in rows(totals, functions, Sort::Total) {
        let t = &r.total;
        let (seconds, micros) = (t.total / 1_000_000_000, t.total / 1000 % 1_000_000);
        // Times inside of other calls of the function are part of their durations.
        let each = t.average();
        let text = format!(
            "{:>9} {:>13} {:>10} {}\n",
            format!("{seconds}.{micros:06}"),
            format!("{}.{:06}", each / 1_000_000, each % 1_000_000),
            t.calls,
            label::plain(r.number, functions)
        );
        out.extend_from_slice(text.as_bytes());
    }
}
