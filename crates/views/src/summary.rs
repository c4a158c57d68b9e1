//! `-c`: calls counted and timed, one row per call, in the table that strace -c prints. Operations of io_uring are rows too, by their probes' names.
//!
//! Times are those that pass between entry and exit (strace -c -w). What strace shows without -w, the change of `ru_stime`, is
//! made of ticks of 4 ms on most kernels: most calls take none, and one has the time of all others. A call without a result is not
//! counted, and one whose start is not known takes no time. Memory is bounded: at most 1024 rows for numbers that no table knows.

mod table;

use crate::View;
use events::Event;
use events::io_uring;
use events::layout::{CAP_32BIT, CAP_NO_RESULT};
use events::names::Names;
use std::collections::BTreeMap;

/// The most rows for calls without a schema; those that come after are counted together.
const MAX_UNNAMED: usize = 1024;

/// What the rows are sorted by (`-S`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Sort {
    /// Total time, most first.
    #[default]
    Time,
    /// Shortest call, longest first.
    Min,
    /// Longest call, longest first.
    Max,
    /// Average, longest first.
    Avg,
    /// Number of calls, most first.
    Calls,
    /// Number of errors, most first.
    Errors,
    /// Name.
    Name,
    /// Call number.
    Nothing,
}

impl Sort {
    /// The order that strace calls `name`.
    pub fn parse(name: &str) -> Option<Sort> {
        Some(match name {
            "time" | "time-percent" | "time-total" | "total-time" => Sort::Time,
            "min" | "min-time" | "shortest" | "time-min" => Sort::Min,
            "max" | "max-time" | "longest" | "time-max" => Sort::Max,
            "avg" | "avg-time" | "time-avg" => Sort::Avg,
            "calls" | "count" => Sort::Calls,
            "errors" | "error" => Sort::Errors,
            "name" | "syscall" | "syscall-name" => Sort::Name,
            "nothing" | "none" => Sort::Nothing,
            _ => return None,
        })
    }
}

/// A column of the table (`-U`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Column {
    /// Share of all time.
    Percent,
    /// Seconds in all.
    Total,
    /// Seconds of the shortest call.
    Min,
    /// Seconds of the longest call.
    Max,
    /// Microseconds per call.
    Avg,
    /// Number of calls.
    Calls,
    /// Number of errors, empty for none.
    Errors,
    /// Name of the call.
    Name,
}

impl Column {
    /// The columns that are shown unless others are asked for.
    pub const DEFAULT: [Column; 6] =
        [Column::Percent, Column::Total, Column::Avg, Column::Calls, Column::Errors, Column::Name];

    /// The column that strace calls `name`.
    pub(crate) fn parse_one(name: &str) -> Option<Column> {
        Some(match name {
            "time-percent" | "time" => Column::Percent,
            "total-time" | "time-total" => Column::Total,
            "min-time" | "shortest" | "time-min" => Column::Min,
            "max-time" | "longest" | "time-max" => Column::Max,
            "avg-time" | "time-avg" => Column::Avg,
            "calls" | "count" => Column::Calls,
            "errors" | "error" => Column::Errors,
            "name" | "syscall" | "syscall-name" => Column::Name,
            _ => return None,
        })
    }

    /// A list of columns, separated by commas; none where one is unknown or named twice. The name is added as the last.
    pub fn parse(list: &str) -> Option<Vec<Column>> {
        let mut columns = Vec::new();
        for name in list.split(',') {
            let c = Column::parse_one(name)?;
            if columns.contains(&c) {
                return None;
            }
            columns.push(c);
        }
        if !columns.contains(&Column::Name) {
            columns.push(Column::Name);
        }
        Some(columns)
    }
}

/// What is counted of a call. Times are ns.
#[derive(Clone, Copy, Debug, Default)]
struct Stats {
    calls: u64,
    errors: u64,
    total: u64,
    min: Option<u64>,
    max: u64,
}

impl Stats {
    /// Counts a call; `ns` is `None` where its start is not known.
    fn add(&mut self, ns: Option<u64>, failed: bool) {
        let time = ns.unwrap_or(0);
        self.join(&Stats { calls: 1, errors: failed.into(), total: time, min: ns, max: time });
    }

    fn join(&mut self, other: &Stats) {
        self.min = self.min.into_iter().chain(other.min).min();
        self.max = self.max.max(other.max);
        self.total = self.total.saturating_add(other.total);
        self.calls += other.calls;
        self.errors += other.errors;
    }

    fn avg(&self) -> u64 {
        self.total / self.calls.max(1)
    }
}

/// A row of the table.
struct Row {
    name: String,
    stats: Stats,
}

/// The summary view: silent until the end.
pub struct Summary {
    sort: Sort,
    columns: Vec<Column>,
    /// By class id.
    named: Vec<Stats>,
    /// Calls without a schema: 32-bit or not, number.
    unnamed: BTreeMap<(bool, u32), Stats>,
    /// Operations of io_uring, by name.
    operations: BTreeMap<&'static str, Stats>,
    /// Calls for which there was no room in `unnamed`.
    others: Stats,
}

impl Summary {
    /// A summary with the default columns.
    pub fn new(sort: Sort) -> Summary {
        Summary {
            sort,
            columns: Column::DEFAULT.to_vec(),
            named: vec![Stats::default(); events::generated::SCHEMAS.len()],
            unnamed: BTreeMap::new(),
            operations: BTreeMap::new(),
            others: Stats::default(),
        }
    }

    /// Sets the columns.
    pub fn columns(self, columns: Vec<Column>) -> Summary {
        Summary { columns, ..self }
    }

    fn stats(&mut self, ev: &Event<'_>) -> Option<&mut Stats> {
        if io_uring::is_operation(ev.schema) {
            return Some(self.operations.entry(ev.schema.name).or_default());
        }
        if ev.schema.name != "raw" {
            return self.named.get_mut(usize::from(ev.schema.base));
        }
        let key = (ev.caps() & CAP_32BIT != 0, ev.value_of("nr") as u32);
        if self.unnamed.len() >= MAX_UNNAMED && !self.unnamed.contains_key(&key) {
            return Some(&mut self.others);
        }
        Some(self.unnamed.entry(key).or_default())
    }

    /// The rows of 64-bit or of 32-bit calls, in the order of their numbers.
    fn rows(&self, narrow: bool) -> Vec<Row> {
        let mut rows = Vec::new();
        if !narrow {
            let counted = self.named.iter().enumerate().filter(|(_, s)| s.calls > 0);
            let mut named: Vec<_> = counted.map(|(id, s)| (events::generated::SCHEMAS[id], s)).collect();
            order::by_key(&mut named, |(schema, _)| schema.x86_64);
            rows.extend(named.into_iter().map(|(schema, s)| Row { name: schema.name.to_owned(), stats: *s }));
        }
        let operations = self.operations.iter().filter(|_| !narrow);
        rows.extend(operations.map(|(name, s)| Row { name: (*name).to_owned(), stats: *s }));
        let unnamed = self.unnamed.iter().filter(|((is_narrow, _), _)| *is_narrow == narrow);
        rows.extend(unnamed.map(|((_, nr), s)| Row { name: unnamed_name(narrow, *nr), stats: *s }));
        if !narrow && self.others.calls > 0 {
            rows.push(Row { name: "(other numbers)".to_owned(), stats: self.others });
        }
        rows
    }
}

fn unnamed_name(narrow: bool, nr: u32) -> String {
    let known = events::generated::I386.get(nr as usize).filter(|n| narrow && !n.is_empty());
    known.map_or_else(|| format!("syscall_{nr:#x}"), |n| (*n).to_owned())
}

/// Sorts in place; rows that are equal keep their order.
fn sort(rows: &mut [Row], by: Sort) {
    use std::cmp::Reverse;
    match by {
        Sort::Time => order::by_key(rows, |r| Reverse(r.stats.total)),
        Sort::Min => order::by_key(rows, |r| Reverse(r.stats.min)),
        Sort::Max => order::by_key(rows, |r| Reverse(r.stats.max)),
        Sort::Avg => order::by_key(rows, |r| Reverse(r.stats.avg())),
        Sort::Calls => order::by_key(rows, |r| Reverse(r.stats.calls)),
        Sort::Errors => order::by_key(rows, |r| Reverse(r.stats.errors)),
        Sort::Name => order::by(rows, |a, b| a.name.cmp(&b.name)),
        Sort::Nothing => {}
    }
}

impl View for Summary {
    fn event(&mut self, ev: &Event<'_>, _: &dyn Names, _: &mut Vec<u8>) {
        let is_counted = ev.is_syscall() || ev.is_span() && io_uring::is_operation(ev.schema);
        if !is_counted || ev.caps() & CAP_NO_RESULT != 0 {
            return;
        }
        let ns = ev.duration();
        let failed = ev.errno().is_some();
        if let Some(s) = self.stats(ev) {
            s.add(ns, failed);
        }
    }

    fn end(&mut self, out: &mut Vec<u8>) {
        for (narrow, title) in [(false, ""), (true, "System call usage summary for 32 bit mode:\n")] {
            let mut rows = self.rows(narrow);
            if rows.is_empty() {
                continue;
            }
            sort(&mut rows, self.sort);
            out.extend_from_slice(title.as_bytes());
            table::write(&rows, &self.columns, out);
        }
    }
}
