//! `--as parquet`: everything of a trace as tables, for SQL.
//!
//! ```text
//! events ─► Parquet ─► a row of calls, functions, samples, allocations or events ─► row groups ─► bytes of a file for each table
//!                   ├► processes: a row when one has ended         see docs/PARQUET.md
//!                   ├► stacks: the frames of one that is new
//!                   └► traces: a row at the end
//! ```
//!
//! Rows are written as they come: what is held is a row group of each table, the processes that run, and the stacks that were met last.
//! It writes no files itself: its owner takes the bytes of each table and puts them into files.

mod call;
mod column;
mod dictionary;
mod encode;
mod file;
mod functions;
mod gzip;
mod processes;
pub mod schema;
mod stacks;
mod thrift;

use crate::call_events::CallEvents;
use crate::trace_stats::TraceStats;
use crate::write::number::civil;
use crate::{Options, View, json};
use call::Calls;
use column::Value;
use events::Event;
use events::functions::{self as records, Kind};
use events::layout::CAP_NO_RESULT;
use events::names::Names;
use events::schema::Class;
use file::File;
use functions::FunctionTable;
use processes::Processes;
use schema::Table;
use serde_json::Value as Json;
use stacks::StackTable;

pub use column::{Column, Kind as ColumnKind};

/// What is the same in all rows of a trace.
#[derive(Clone, Debug, Default)]
pub struct About {
    /// What the trace is called: a word that no other trace has.
    pub trace: String,
    /// The host where it was recorded; empty where that is not known.
    pub host: String,
    /// The time of its first event, ns of its clock.
    pub begin: u64,
    /// What to add to a time of its clock for ns since the epoch.
    pub realtime_offset: i64,
}

impl About {
    /// ns since the epoch.
    fn time(&self, ns: u64) -> i64 {
        i64::try_from(ns).unwrap_or(i64::MAX).saturating_add(self.realtime_offset)
    }

    /// Where the trace's files are in the directory of a table: `date=2026-11-28/host=web-1`, the day of its beginning in UTC.
    pub fn place(&self) -> String {
        let (year, month, day) = civil(self.time(self.begin).div_euclid(86_400_000_000_000));
        let mut place = format!("date={year:04}-{month:02}-{day:02}/host=");
        if self.host.is_empty() {
            place += "__HIVE_DEFAULT_PARTITION__";
        }
        for byte in self.host.bytes() {
            match byte {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' => place.push(byte.into()),
                _ => place += &format!("%{byte:02X}"),
            }
        }
        place
    }

    fn file(&self, table: &Table) -> File {
        File::new(table.columns, &[&self.trace, &self.host])
    }
}

/// What an event is of: the columns that most tables have.
struct Who<'a> {
    comm: Value<'a>,
    exe: Value<'a>,
    pid: Value<'a>,
    tid: Value<'a>,
}

/// The view.
pub struct Parquet {
    about: About,
    stats: TraceStats,
    calls: Calls,
    functions: CallEvents<FunctionTable>,
    samples: File,
    allocations: File,
    events: File,
    traces: File,
    processes: Processes,
    stacks: StackTable,
    options: Options,
    /// Starts of groups in a text, and the text.
    groups: Vec<usize>,
    text: Vec<u8>,
    lost: Option<u64>,
    rows: u64,
    last: u64,
}

/// Events of allocations that have a row among them.
const ALLOCATIONS: [&str; 4] = ["heap:malloc", "heap:free", "heap:mmap", "heap:munmap"];

impl Parquet {
    /// Tables without rows; `stats` has the facts about the trace that do not come from its events.
    pub fn new(about: About, stats: TraceStats) -> Parquet {
        Parquet {
            stats,
            calls: Calls::new(&about),
            functions: CallEvents::new(FunctionTable::new(&about)),
            samples: about.file(&schema::SAMPLES),
            allocations: about.file(&schema::ALLOCATIONS),
            events: about.file(&schema::EVENTS),
            traces: about.file(&schema::TRACES),
            processes: Processes::new(&about),
            stacks: StackTable::new(&about),
            options: Options::default(),
            groups: Vec::new(),
            text: Vec::new(),
            lost: None,
            rows: 0,
            last: about.begin,
            about,
        }
    }

    /// The file of each table, in the order of [`schema::ALL`].
    fn files(&mut self) -> [&mut File; 8] {
        [
            &mut self.calls.file,
            &mut self.functions.view_mut().file,
            &mut self.samples,
            &mut self.allocations,
            &mut self.events,
            &mut self.processes.file,
            &mut self.stacks.file,
            &mut self.traces,
        ]
    }

    /// Whether a table may have got bytes: true now and then.
    pub fn is_ready(&self) -> bool {
        self.rows.is_multiple_of(64)
    }

    /// Hands over the bytes that each table has got since the last time, in their order.
    pub fn take(&mut self, mut each: impl FnMut(&'static str, Vec<u8>)) {
        for (table, file) in schema::ALL.iter().zip(self.files()).filter(|(_, file)| file.is_ready()) {
            each(table.name, file.take());
        }
    }

    /// An event that is no system call and no function record.
    fn other(&mut self, ev: &Event<'_>, names: &dyn Names) {
        let stack = self.stacks.number(ev, names);
        let program = self.processes.program(ev.pid());
        let who = who(ev, names, &program.exe);
        let name = ev.schema.probe();
        let (name, time) = (Value::Text(name.as_bytes()), self.about.time(ev.start()));
        let (at, time_ns) = (Value::Int(time), Value::Int(time));
        match ev.schema.name {
            sample if sample.starts_with("profile:") => {
                self.samples.row([at, time_ns, name, who.pid, who.tid, who.comm, who.exe, stack]);
            }
            heap if ALLOCATIONS.contains(&heap) => {
                let (address, size) = (ev.value_of("address"), ev.schema.arg("size").map(|i| ev.arg(i)));
                let (address, size) = (Value::Int(address as i64), Value::unsigned(size));
                self.allocations.row([at, time_ns, name, who.pid, who.tid, who.comm, who.exe, address, size, stack]);
            }
            _ => {
                self.text.clear();
                json::details(ev, &self.options, names, &mut self.groups, &mut self.text);
                let has_result = ev.is_span() && ev.caps() & CAP_NO_RESULT == 0;
                let ret = Value::maybe(has_result.then(|| ev.ret()));
                let (length, cpu) = (Value::unsigned(ev.duration()), Value::maybe(ev.cpus().0));
                let args = Value::Text(&self.text);
                let Who { comm, exe, pid, tid } = who;
                self.events.row([at, time_ns, length, name, pid, tid, comm, exe, cpu, ret, stack, args]);
            }
        }
    }

    /// The row of the trace.
    fn trace(&mut self) {
        let about = self.stats.to_json();
        let text = |key: &str| about[key].as_str().unwrap_or_default();
        let number = |key: &str| Value::unsigned(about[key].as_u64());
        let (begin, end) = (self.about.time(self.about.begin), self.about.time(self.last));
        self.traces.row([
            Value::Int(begin),
            Value::Int(begin),
            Value::Int(end),
            Value::text(text("kernel").trim().as_bytes()),
            Value::text(text("command").as_bytes()),
            Value::text(text("backend").as_bytes()),
            Value::text(text("tracer").trim().as_bytes()),
            Value::maybe(about["realtime_offset_ns"].as_i64()),
            Value::Int((about["complete"] == Json::Bool(true)).into()),
            Value::unsigned(Some(self.rows)),
            Value::unsigned(self.lost),
            number("missing_events"),
            number("overwritten"),
            number("unwritten"),
        ]);
    }
}

fn who<'a>(ev: &Event<'_>, names: &'a dyn Names, exe: &'a [u8]) -> Who<'a> {
    Who {
        comm: Value::text(names.comm(ev.tid()).unwrap_or_default()),
        exe: Value::text(exe),
        pid: Value::Int(ev.pid().into()),
        tid: Value::Int(ev.tid().into()),
    }
}

impl View for Parquet {
    fn see(&mut self, ev: &Event<'_>) {
        self.functions.see(ev);
        self.processes.see(ev);
    }

    fn event(&mut self, ev: &Event<'_>, names: &dyn Names, out: &mut Vec<u8>) {
        self.stats.event(ev, names, out);
        self.last = self.last.max(ev.time());
        if records::is_definition(ev.schema) {
            return;
        }
        self.rows += 1;
        self.processes.shown(ev, names);
        match records::kind(ev.schema) {
            Some(Kind::Entry | Kind::Exit | Kind::Begun) => self.functions.event(ev, names, out),
            Some(Kind::Lost) => {
                self.functions.event(ev, names, out);
                self.other(ev, names);
            }
            None if ev.schema.class == Class::Syscall => {
                let stack = self.stacks.number(ev, names);
                let program = self.processes.program(ev.pid());
                self.calls.row(ev, names, who(ev, names, &program.exe), stack);
            }
            None => {
                self.functions.event(ev, names, out);
                self.other(ev, names);
            }
        }
    }

    fn lost(&mut self, events: u64) {
        self.lost = Some(events);
    }

    fn end(&mut self, out: &mut Vec<u8>) {
        self.functions.end(out);
        self.processes.end();
        self.trace();
        let (version, trace) = (schema::VERSION.to_string(), self.about.trace.clone());
        let about = [("trapline.schema", version.as_str()), ("trapline.trace", &trace)];
        self.files().into_iter().for_each(|file| file.end(&about));
    }
}
