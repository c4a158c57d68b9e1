//! What a tracer has counted of functions, as a table and as JSON.
//!
//! ```text
//!   total    self calls     avg module function
//! ------- ------- ----- ------- ------ --------
//!  1.50ms   500us     1  1.50ms app    main
//! ```
//!
//! Calls that were counted without their time have no columns of times. Invariant: printable ASCII, whatever the names are.

use super::sort::{SORTS, Sort};
use super::totals_json;
use crate::profile::functions::Key;
use crate::profile::table::columns;
use crate::profile::words::{ascii, module, rest};
use crate::units::duration;
use crate::write::json as w;
use std::cmp::Reverse;

/// A function, and what was counted of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counted<'a> {
    /// Its demangled name.
    pub function: &'a str,
    /// The file that contains it; empty where it is not known.
    pub module: &'a str,
    /// Calls.
    pub calls: u64,
    /// Their time in all, in ns.
    pub total: u64,
    /// Without that of other functions which are counted, in ns.
    pub own: u64,
}

impl Counted<'_> {
    fn average(&self) -> u64 {
        self.total.checked_div(self.calls).unwrap_or(0)
    }

    fn number(&self, sort: Sort) -> u64 {
        match sort {
            Sort::Own => self.own,
            Sort::Calls => self.calls,
            Sort::Avg => self.average(),
            Sort::Name => 0,
            _ => self.total,
        }
    }
}

/// The orders that a table of counts may have: those of functions, without the ones of the shortest and the longest call.
pub fn sorts() -> impl Iterator<Item = (&'static str, Sort)> {
    SORTS.into_iter().filter(|(_, sort)| !matches!(sort, Sort::Min | Sort::Max))
}

/// Puts functions in order: the largest first, then by calls and name.
pub fn sort(all: &mut [Counted<'_>], by: Sort) {
    order::by(all, |a, b| {
        let key = |c: &Counted<'_>| Reverse((c.number(by), if by == Sort::Name { 0 } else { c.calls }));
        key(a).cmp(&key(b)).then_with(|| (a.function, a.module).cmp(&(b.function, b.module)))
    });
}

/// Appends the table of functions in their order, at most `rows` of them, in lines of at most `width` characters.
pub fn table(all: &[Counted<'_>], rows: usize, width: usize, out: &mut Vec<u8>) {
    let shown = &all[..all.len().min(rows)];
    let timed = all.iter().any(|c| c.total > 0);
    let name =
        |c: &Counted<'_>| (module(&Key { function: c.function, module: c.module, kernel: false }), ascii(c.function));
    let names = shown.iter().map(name).collect();
    let times = |c: &Counted<'_>| [duration(c.total), duration(c.own), c.calls.to_string(), duration(c.average())];
    if shown.is_empty() {
    } else if timed {
        columns(&["total", "self", "calls", "avg"], shown.iter().map(times).collect(), names, width).write(out);
    } else {
        columns(&["calls"], shown.iter().map(|c| [c.calls.to_string()]).collect(), names, width).write(out);
    }
    rest(all.len() - shown.len(), out);
    let calls = all.iter().fold(0u64, |sum, c| sum.saturating_add(c.calls));
    let plural = |n: u64, what: &str| if n == 1 { format!("1 {what}") } else { format!("{n} {what}s") };
    out.extend_from_slice(
        format!("{} of {}\n", plural(calls, "call"), plural(all.len() as u64, "function")).as_bytes(),
    );
}

/// Appends an object for each function, on a line of its own.
pub fn json(all: &[Counted<'_>], rows: usize, out: &mut Vec<u8>) {
    let timed = all.iter().any(|c| c.total > 0);
    for c in all.iter().take(rows) {
        totals_json::begin("function", c.function, c.module, out);
        w::key(out, "calls");
        w::number(out, c.calls);
        let times = [("total_ns", c.total), ("self_ns", c.own), ("avg_ns", c.average())];
        for (key, n) in times.into_iter().filter(|_| timed) {
            w::key(out, key);
            w::number(out, n);
        }
        out.extend_from_slice(b"}\n");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn both(timed: bool) -> [Counted<'static>; 2] {
        let (total, own) = if timed { (2_000_000, 500) } else { (0, 0) };
        [
            Counted { function: "f\x1b", module: "/bin/app", calls: 7, total: total / 4, own },
            Counted { function: "ns::g", module: "", calls: 2, total, own: own / 2 },
        ]
    }

    fn drawn(all: &mut [Counted<'_>], by: &str, rows: usize) -> String {
        sort(all, sorts().find(|s| s.0 == by).expect("an order").1);
        let mut out = Vec::new();
        table(all, rows, 100, &mut out);
        String::from_utf8(out).expect("ASCII")
    }

    #[test]
    fn a_table_has_times_where_there_are_any() {
        let text = drawn(&mut both(true), "total", 9);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines[0].split_whitespace().collect::<Vec<_>>(),
            ["total", "self", "calls", "avg", "module", "function"]
        );
        assert_eq!(lines[2].split_whitespace().collect::<Vec<_>>(), ["2.00ms", "250ns", "2", "1.00ms", "-", "ns::g"]);
        assert!(lines[3].ends_with(" app    f\\033") && lines[4] == "9 calls of 2 functions", "{text}");
        let text = drawn(&mut both(false), "total", 9);
        assert!(text.starts_with("calls module function\n"), "{text}");
        assert_eq!(drawn(&mut [], "total", 9), "0 calls of 0 functions\n");
    }

    #[test]
    fn rows_have_the_requested_order_and_number() {
        for (by, first) in [("total", "ns::g"), ("avg", "ns::g"), ("self", "f"), ("calls", "f"), ("name", "f")] {
            let text = drawn(&mut both(true), by, 1);
            assert!(
                text.lines().nth(2).expect("a row").contains(first) && text.contains("1 more function\n"),
                "{by}: {text}"
            );
        }
        assert!(sorts().all(|(name, _)| name != "min" && name != "max"));
    }

    #[test]
    fn each_function_is_an_object() {
        let mut out = Vec::new();
        json(&both(true)[..1], 9, &mut out);
        json(&both(false), 1, &mut out);
        let text = String::from_utf8(out).expect("UTF-8");
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines[0],
            r#"{"v":1,"type":"function","function":"f\u001b","module":"/bin/app","calls":7,"total_ns":500000,"self_ns":500,"avg_ns":71428}"#
        );
        assert_eq!(lines[1..], [r#"{"v":1,"type":"function","function":"f\u001b","module":"/bin/app","calls":7}"#]);
    }
}
