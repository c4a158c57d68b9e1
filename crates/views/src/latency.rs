//! How long calls and other spans took: a table with quantiles, and histograms, by call, thread, path or descriptor.
//!
//! A span of another probe has a row like a call, with the name of its probe. The time of a call is that between entry and exit. A call whose start is not known is counted, but has no time; a call
//! without a result is in no row; a line below the table counts it.
//!
//! Memory is bounded: at most [`MAX_ROWS`] rows and [`MAX_NAMES`] bytes of names; the calls of further rows are counted together.
//! The counts of a row grow with the range of its times: 128 bytes for a factor of two, so 1.3 KB from 1 us to 1 ms, and never
//! more than 8.5 KB. 10,000 rows are 15 MB as a rule; 100 MB if each of them had times from 0 to centuries.

mod exact;
mod histogram;
pub(crate) mod subject;
mod table;

use crate::View;
use crate::profile::words::ascii;
use crate::summary::{self, Sort};
use crate::write::json as w;
use events::Event;
use events::layout::CAP_NO_RESULT;
use events::names::Names;
use events::traces::{Origin, own};
use exact::Exact;
use histogram::Histogram;
use serde_json::{Value, json};
use std::collections::HashMap;
pub(crate) use subject::Subject;

/// The most rows but for `(others)`.
pub const MAX_ROWS: usize = 10_000;
/// The most bytes of paths in all rows together.
pub const MAX_NAMES: usize = 8 << 20;

/// The subject of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum By {
    /// A call.
    #[default]
    Call,
    /// A thread.
    Thread,
    /// A file: the first path of the call, else its first descriptor's, else that of the descriptor it made.
    Path,
    /// A process's descriptor: the call's first, else the one it made, else the directory that it started from.
    Fd,
}

impl By {
    /// The subject for the user's word.
    pub fn parse(name: &str) -> Option<By> {
        Some(match name {
            "call" => By::Call,
            "thread" => By::Thread,
            "path" => By::Path,
            "fd" => By::Fd,
            _ => return None,
        })
    }

    /// Its name: the heading of the column, and `by` in JSON.
    pub fn name(self) -> &'static str {
        match self {
            By::Call => "call",
            By::Thread => "thread",
            By::Path => "path",
            By::Fd => "fd",
        }
    }
}

/// A time that a part of the calls is not longer than.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantile {
    /// Half of them.
    P50,
    /// 90 %.
    P90,
    /// 99 %.
    P99,
}

impl Quantile {
    const ALL: [Quantile; 3] = [Quantile::P50, Quantile::P90, Quantile::P99];

    fn parse(name: &str) -> Option<Quantile> {
        Quantile::ALL.into_iter().find(|q| q.name() == name)
    }

    fn name(self) -> &'static str {
        ["p50", "p90", "p99"][self as usize]
    }

    fn percent(self) -> u64 {
        [50, 90, 99][self as usize]
    }
}

/// What the rows are sorted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// The orders of a summary; [`Sort::Nothing`] is the order of first occurrence.
    Of(Sort),
    /// The longest first.
    Quantile(Quantile),
}

impl Order {
    /// The order that is called `name`: what a summary takes, and `p50`, `p90`, `p99`.
    pub fn parse(name: &str) -> Option<Order> {
        Quantile::parse(name).map(Order::Quantile).or_else(|| Sort::parse(name).map(Order::Of))
    }
}

/// A column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Column {
    /// A column of a summary, with other units of times.
    Of(summary::Column),
    /// A quantile.
    Quantile(Quantile),
}

impl Column {
    /// The columns that are shown unless others are asked for.
    pub const DEFAULT: [Column; 10] = [
        Column::Of(summary::Column::Calls),
        Column::Of(summary::Column::Errors),
        Column::Of(summary::Column::Total),
        Column::Of(summary::Column::Min),
        Column::Of(summary::Column::Avg),
        Column::Quantile(Quantile::P50),
        Column::Quantile(Quantile::P90),
        Column::Quantile(Quantile::P99),
        Column::Of(summary::Column::Max),
        Column::Of(summary::Column::Name),
    ];

    /// A list of columns, separated by commas; none where one is unknown or named twice. The name is added as the last.
    pub fn parse(list: &str) -> Option<Vec<Column>> {
        let mut columns = Vec::new();
        for name in list.split(',') {
            let quantile = Quantile::parse(name).map(Column::Quantile);
            let c = quantile.or_else(|| summary::Column::parse_one(name).map(Column::Of))?;
            if columns.contains(&c) {
                return None;
            }
            columns.push(c);
        }
        if !columns.contains(&Column::Of(summary::Column::Name)) {
            columns.push(Column::Of(summary::Column::Name));
        }
        Some(columns)
    }
}

/// Durations whose quantiles are exact, in four bytes each. Of more, quantiles are those of histograms.
const MOST_EXACT: usize = 1 << 22;

/// What is counted for a row. Times are ns.
#[derive(Clone, Debug, Default)]
struct Stats {
    calls: u64,
    errors: u64,
    /// Calls whose time is known.
    timed: u64,
    total: u64,
    min: u64,
    max: u64,
    histogram: Histogram,
    /// All durations, as long as they are kept.
    exact: Exact,
}

impl Stats {
    fn add(&mut self, ns: Option<u64>, failed: bool) {
        self.calls += 1;
        self.errors += u64::from(failed);
        if let Some(ns) = ns {
            self.range(1, ns, ns, ns);
            self.histogram.add(ns);
        }
    }

    fn range(&mut self, timed: u64, total: u64, min: u64, max: u64) {
        self.min = if self.timed == 0 { min } else { self.min.min(min) };
        self.max = self.max.max(max);
        self.total = self.total.saturating_add(total);
        self.timed += timed;
    }

    fn join(&mut self, other: &Stats) {
        self.calls += other.calls;
        self.errors += other.errors;
        if other.timed > 0 {
            self.range(other.timed, other.total, other.min, other.max);
            self.histogram.join(&other.histogram);
            self.exact.join(&other.exact);
        }
    }

    fn avg(&self) -> Option<u64> {
        self.total.checked_div(self.timed)
    }

    /// Of the durations themselves; where there are too many of those, of their histogram.
    fn quantile(&self, q: Quantile) -> Option<u64> {
        if self.exact.len() as u64 == self.timed {
            return self.exact.quantile(q.percent());
        }
        Some(self.histogram.quantile(q.percent())?.clamp(self.min, self.max))
    }
}

/// A row and what is known of its name.
#[derive(Debug, Default)]
struct Group {
    stats: Stats,
    /// How many rows were there before.
    nth: usize,
    pid: u32,
    /// The thread's last command name.
    comm: Vec<u8>,
    /// Where the thread or process was traced, if there are several traces.
    origin: Option<Box<Origin>>,
}

impl Group {
    /// The name of its row.
    fn name(&self, subject: &Subject, by: By) -> String {
        let name = subject.name(by, &self.comm);
        match &self.origin {
            Some(origin) => format!("{} {name}", ascii(&origin.label)),
            None => name,
        }
    }
}

/// The view: silent until the end.
pub struct Latency {
    by: By,
    order: Order,
    columns: Vec<Column>,
    histograms: bool,
    width: usize,
    max_rows: usize,
    rows: HashMap<Subject, Group>,
    /// Bytes of names in `rows`.
    names: usize,
    /// Calls for which there was no room.
    others: Stats,
    unfinished: u64,
    /// Durations that are kept, up to [`MOST_EXACT`]; then none is any more.
    exact: Option<usize>,
}

impl Latency {
    /// A table by `by` with the default columns, the most total time first, without histograms, 100 characters wide.
    pub fn new(by: By) -> Latency {
        Latency {
            by,
            order: Order::Of(Sort::Time),
            columns: Column::DEFAULT.to_vec(),
            histograms: false,
            width: 100,
            max_rows: MAX_ROWS,
            rows: HashMap::new(),
            names: 0,
            others: Stats::default(),
            unfinished: 0,
            exact: Some(0),
        }
    }

    /// Sets the order of the rows.
    pub fn order(self, order: Order) -> Latency {
        Latency { order, ..self }
    }

    /// Sets the columns.
    pub fn columns(self, columns: Vec<Column>) -> Latency {
        Latency { columns, ..self }
    }

    /// Sets whether each row has a histogram.
    pub fn histograms(self, histograms: bool) -> Latency {
        Latency { histograms, ..self }
    }

    /// Sets the longest line, in characters: longer names are shortened. [`usize::MAX`] for any length.
    pub fn width(self, width: usize) -> Latency {
        Latency { width, ..self }
    }

    /// Sets the most rows.
    pub fn max_rows(self, max_rows: usize) -> Latency {
        Latency { max_rows, ..self }
    }

    /// The statistics that a call belongs to.
    fn stats(&mut self, ev: &Event<'_>, names: &dyn Names) -> &mut Stats {
        let subject = Subject::of(ev, self.by, names);
        let (nth, heap) = (self.rows.len(), subject.heap());
        let room = nth < self.max_rows && self.names + heap <= MAX_NAMES;
        if !room && !self.rows.contains_key(&subject) {
            return &mut self.others;
        }
        let of_process = matches!(subject, Subject::Thread(_) | Subject::Fd(..));
        let group = self.rows.entry(subject).or_insert_with(|| {
            self.names += heap;
            let origin = names.origin(ev.tid()).filter(|_| of_process).cloned().map(Box::new);
            Group { nth, origin, ..Group::default() }
        });
        if self.by == By::Thread {
            group.pid = ev.pid();
            if let Some(comm) = names.comm(ev.tid())
                && comm != group.comm
            {
                group.comm = comm.to_vec();
            }
        }
        &mut group.stats
    }

    /// One more duration is kept: if that are too many, none is.
    fn kept(&mut self) {
        self.exact = self.exact.map(|n| n + 1).filter(|n| *n < MOST_EXACT);
        if self.exact.is_none() {
            self.others.exact = Exact::default();
            self.rows.values_mut().for_each(|g| g.stats.exact = Exact::default());
        }
    }

    /// Everything that was counted.
    fn total(&self) -> Stats {
        let mut total = self.others.clone();
        self.rows.values().for_each(|g| total.join(&g.stats));
        total
    }

    /// The rows in order.
    fn sorted(&self) -> Vec<(&Subject, &Group)> {
        use std::cmp::Reverse;
        let mut rows: Vec<_> = self.rows.iter().collect();
        order::by_key(&mut rows, |(_, g)| g.nth);
        let timed = |s: &Stats, ns: u64| (s.timed > 0).then_some(ns);
        match self.order {
            Order::Of(Sort::Time) => order::by_key(&mut rows, |(_, g)| Reverse(g.stats.total)),
            Order::Of(Sort::Min) => order::by_key(&mut rows, |(_, g)| Reverse(timed(&g.stats, g.stats.min))),
            Order::Of(Sort::Max) => order::by_key(&mut rows, |(_, g)| Reverse(timed(&g.stats, g.stats.max))),
            Order::Of(Sort::Avg) => order::by_key(&mut rows, |(_, g)| Reverse(g.stats.avg())),
            Order::Of(Sort::Calls) => order::by_key(&mut rows, |(_, g)| Reverse(g.stats.calls)),
            Order::Of(Sort::Errors) => order::by_key(&mut rows, |(_, g)| Reverse(g.stats.errors)),
            Order::Of(Sort::Name) => order::by_key(&mut rows, |(subject, _)| *subject),
            Order::Of(Sort::Nothing) => {}
            Order::Quantile(q) => order::by_key(&mut rows, |(_, g)| Reverse(g.stats.quantile(q))),
        }
        rows
    }

    /// Everything as JSON; docs/REPORT.md describes the members.
    pub fn to_json(&self) -> Value {
        let rows: Vec<Value> = self.sorted().into_iter().map(|(subject, g)| self.row_json(subject, g)).collect();
        json!({
            "by": self.by.name(),
            "rows": rows,
            "others": if self.others.calls > 0 { stats_json(&self.others) } else { Value::Null },
            "total": stats_json(&self.total()),
            "unfinished": self.unfinished,
        })
    }

    fn row_json(&self, subject: &Subject, g: &Group) -> Value {
        let mut v = stats_json(&g.stats);
        v["name"] = g.name(subject, self.by).into();
        if let Some(origin) = &g.origin {
            v["host"] = origin.host.as_str().into();
            v["trace"] = origin.trace.as_str().into();
        }
        match subject {
            Subject::Thread(tid) => {
                v["tid"] = own(*tid).into();
                v["pid"] = own(g.pid).into();
                v["comm"] = w::bytes_value(&g.comm);
            }
            Subject::Path(path) => v["path"] = w::bytes_value(path),
            Subject::Socket(ends) => v["socket"] = w::bytes_value(ends),
            Subject::Fd(pid, fd) => {
                v["pid"] = own(*pid).into();
                v["fd"] = (*fd).into();
            }
            Subject::Call(_) | Subject::Number(..) | Subject::Unnamed | Subject::None => {}
        }
        v
    }

    /// Appends [`Latency::to_json`] on one line that is safe to show on a terminal.
    pub fn write_json(&self, out: &mut Vec<u8>) {
        w::value(out, &self.to_json());
        out.push(b'\n');
    }
}

fn stats_json(s: &Stats) -> Value {
    let timed = |ns: u64| (s.timed > 0).then_some(ns);
    let bars = s.histogram.bars();
    json!({
        "calls": s.calls,
        "errors": s.errors,
        "timed": s.timed,
        "total_ns": s.total,
        "min_ns": timed(s.min),
        "avg_ns": s.avg(),
        "p50_ns": s.quantile(Quantile::P50),
        "p90_ns": s.quantile(Quantile::P90),
        "p99_ns": s.quantile(Quantile::P99),
        "max_ns": timed(s.max),
        "histogram": bars.iter().map(|b| json!([b.from, b.to, b.n])).collect::<Vec<_>>(),
    })
}

impl View for Latency {
    fn event(&mut self, ev: &Event<'_>, names: &dyn Names, _: &mut Vec<u8>) {
        if !ev.is_span() {
            return;
        }
        if ev.caps() & CAP_NO_RESULT != 0 {
            self.unfinished += 1;
            return;
        }
        let (duration, exact) = (ev.duration(), self.exact.is_some());
        let stats = self.stats(ev, names);
        stats.add(duration, ev.errno().is_some());
        if let Some(ns) = duration.filter(|_| exact) {
            stats.exact.add(ns);
            self.kept();
        }
    }

    fn end(&mut self, out: &mut Vec<u8>) {
        table::write(self, out);
    }
}
