//! The tables and their columns; docs/PARQUET.md describes them.
//!
//! Whoever adds a column appends it to its table, and to the page. Whoever removes one, or gives it another meaning, also raises [`VERSION`].

use super::column::{Column, Kind};

/// The version of the schema.
pub const VERSION: u32 = 1;

/// A table.
#[derive(Debug)]
pub struct Table {
    /// Its name, and that of its directory.
    pub name: &'static str,
    /// Its columns.
    pub columns: &'static [Column],
}

const fn column(name: &'static str, kind: Kind) -> Column {
    Column { name, kind, optional: false }
}

const fn optional(name: &'static str, kind: Kind) -> Column {
    Column { name, kind, optional: true }
}

const TIME: Column = column("time", Kind::Time);
const TIME_NS: Column = column("time_ns", Kind::Rising);
const DURATION: Column = optional("dur_ns", Kind::Long);
const TRACE: Column = column("trace", Kind::Constant);
const HOST: Column = column("host", Kind::Constant);
const NAME: Column = column("name", Kind::Text);
const PID: Column = column("pid", Kind::Int);
const TID: Column = column("tid", Kind::Int);
const COMM: Column = optional("comm", Kind::Text);
const EXE: Column = optional("exe", Kind::Text);
const CPU: Column = optional("cpu", Kind::Int);
const RET: Column = optional("ret", Kind::Long);
const STACK: Column = optional("stack_id", Kind::Int);
const ARGS: Column = optional("args", Kind::Text);

/// System calls.
pub static CALLS: Table = Table {
    name: "calls",
    columns: &[
        TIME,
        TIME_NS,
        DURATION,
        TRACE,
        HOST,
        NAME,
        PID,
        TID,
        COMM,
        EXE,
        optional("uid", Kind::Long),
        CPU,
        RET,
        optional("errno", Kind::Text),
        optional("fd", Kind::Int),
        optional("path", Kind::Text),
        optional("path2", Kind::Text),
        optional("bytes", Kind::Long),
        optional("addr", Kind::Text),
        optional("port", Kind::Int),
        STACK,
        ARGS,
    ],
};

/// Calls of functions.
pub static FUNCTIONS: Table = Table {
    name: "functions",
    columns: &[
        TIME,
        TIME_NS,
        column("dur_ns", Kind::Long),
        column("self_ns", Kind::Long),
        TRACE,
        HOST,
        NAME,
        optional("module", Kind::Text),
        PID,
        TID,
        COMM,
        column("depth", Kind::Int),
        column("ending", Kind::Text),
        column("across_gap", Kind::Truth),
        column("outermost", Kind::Truth),
    ],
};

/// Samples of stacks.
pub static SAMPLES: Table =
    Table { name: "samples", columns: &[TIME, TIME_NS, TRACE, HOST, NAME, PID, TID, COMM, EXE, STACK] };

/// Allocations and releases.
pub static ALLOCATIONS: Table = Table {
    name: "allocations",
    columns: &[
        TIME,
        TIME_NS,
        TRACE,
        HOST,
        NAME,
        PID,
        TID,
        COMM,
        EXE,
        column("address", Kind::Long),
        optional("size", Kind::Long),
        STACK,
    ],
};

/// All other events.
pub static EVENTS: Table = Table {
    name: "events",
    columns: &[TIME, TIME_NS, DURATION, TRACE, HOST, NAME, PID, TID, COMM, EXE, CPU, RET, STACK, ARGS],
};

/// Processes.
pub static PROCESSES: Table = Table {
    name: "processes",
    columns: &[
        TIME,
        TIME_NS,
        column("end_ns", Kind::Rising),
        TRACE,
        HOST,
        PID,
        optional("ppid", Kind::Int),
        COMM,
        EXE,
        optional("argv", Kind::Text),
        optional("cwd", Kind::Text),
        optional("uid", Kind::Long),
        optional("exit_code", Kind::Int),
        optional("exit_signal", Kind::Int),
    ],
};

/// Frames of stacks.
pub static STACKS: Table = Table {
    name: "stacks",
    columns: &[
        TRACE,
        HOST,
        column("stack_id", Kind::Int),
        column("depth", Kind::Int),
        optional("function", Kind::Text),
        optional("module", Kind::Text),
        optional("file", Kind::Text),
        optional("line", Kind::Int),
        optional("address", Kind::Long),
        column("kernel", Kind::Truth),
        column("inlined", Kind::Truth),
        column("guessed", Kind::Truth),
    ],
};

/// The trace: one row.
pub static TRACES: Table = Table {
    name: "traces",
    columns: &[
        TIME,
        TIME_NS,
        column("end_ns", Kind::Rising),
        TRACE,
        HOST,
        optional("kernel", Kind::Text),
        optional("command", Kind::Text),
        optional("backend", Kind::Text),
        optional("tracer", Kind::Text),
        optional("clock_offset_ns", Kind::Long),
        column("complete", Kind::Truth),
        column("events", Kind::Long),
        optional("lost", Kind::Long),
        optional("missing", Kind::Long),
        optional("overwritten", Kind::Long),
        column("unwritten", Kind::Long),
    ],
};

/// All tables.
pub static ALL: [&Table; 8] = [&CALLS, &FUNCTIONS, &SAMPLES, &ALLOCATIONS, &EVENTS, &PROCESSES, &STACKS, &TRACES];
