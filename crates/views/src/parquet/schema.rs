//! The tables and their columns; docs/PARQUET.md describes them.
//!
//! Whoever adds a column appends it to its table, and to the page, which has the same words. Whoever removes one, or gives it
//! another meaning, also raises [`VERSION`].

use super::column::{Column, Kind};

/// The version of the schema.
pub const VERSION: u32 = 1;

/// A table.
#[derive(Debug)]
pub struct Table {
    /// Its name, and that of its directory.
    pub name: &'static str,
    /// What its rows are.
    pub about: &'static str,
    /// Its columns.
    pub columns: &'static [Column],
}

const fn column(name: &'static str, kind: Kind, about: &'static str) -> Column {
    Column { name, kind, optional: false, about }
}

const fn optional(name: &'static str, kind: Kind, about: &'static str) -> Column {
    Column { name, kind, optional: true, about }
}

const TIME_NS: Column = column("time_ns", Kind::Rising, "`time`, in ns since the epoch");
const TRACE: Column = column("trace", Kind::Constant, "the trace");
const HOST: Column = column("host", Kind::Constant, "the host");
const PID: Column = column("pid", Kind::Int, "the process");
const TID: Column = column("tid", Kind::Int, "the thread");
const COMM: Column = optional("comm", Kind::Text, "the name of the thread");
const UID: Column = optional("uid", Kind::Long, "the real user");
const STACK: Column = optional("stack_id", Kind::Int, "the stack");
const TIME: Column = column("time", Kind::Time, "when");
const EXE: Column = optional("exe", Kind::Text, "the program of the process");
const END_NS: Column = column("end_ns", Kind::Rising, "its last event, in ns since the epoch");

/// System calls.
pub static CALLS: Table = Table {
    name: "calls",
    about: "System calls, those that did not return included.",
    columns: &[
        column("time", Kind::Time, "when it was entered; when it ended, where `dur_ns` is NULL"),
        TIME_NS,
        optional("dur_ns", Kind::Long, "from entry to exit; NULL where the entry was before the recording"),
        TRACE,
        HOST,
        column(
            "name",
            Kind::Text,
            "`openat`; `syscall_0x1c8` of a number without a name, `read@i386` of a 32-bit call",
        ),
        PID,
        TID,
        COMM,
        optional("exe", Kind::Text, "the program of the process, as execve was given it"),
        UID,
        optional("cpu", Kind::Int, "the processor at the entry"),
        optional("ret", Kind::Long, "the result, -1 of a call that failed; NULL of a call that did not return"),
        optional("errno", Kind::Text, "`ENOENT`; NULL of a call that did not fail"),
        optional(
            "fd",
            Kind::Int,
            "the descriptor: the first argument that is one, else the one that was made, else the directory that a path begins at",
        ),
        optional("path", Kind::Text, "the file, or both ends of the socket, as `--latency=path` has it"),
        optional("path2", Kind::Text, "the second path of rename, link and others"),
        optional("bytes", Kind::Long, "bytes that were read or written"),
        optional(
            "addr",
            Kind::Text,
            "the address that the call was given or has got, else that of the other end of its socket: IP address, or path",
        ),
        optional("port", Kind::Int, "its port"),
        STACK,
        optional("args", Kind::Text, "the arguments by name"),
    ],
};

/// Calls of functions.
pub static FUNCTIONS: Table = Table {
    name: "functions",
    about: "Calls of functions, in the order of their ends.",
    columns: &[
        column("time", Kind::Time, "when it was entered"),
        TIME_NS,
        column("dur_ns", Kind::Long, "from entry to exit"),
        column("self_ns", Kind::Long, "without the calls that it has made"),
        TRACE,
        HOST,
        column("name", Kind::Text, "the function, demangled; `?` where it is not known"),
        optional("module", Kind::Text, "the file that contains it"),
        PID,
        TID,
        COMM,
        column("depth", Kind::Int, "how many calls of the thread are around it"),
        column("ending", Kind::Text, "`returned`; `left` by a jump or an exception; `unfinished`"),
        column("across_gap", Kind::Truth, "records are missing in it, so that it may be two calls"),
        column(
            "outermost",
            Kind::Truth,
            "no call around it is of the same function: of recursive calls, the one whose `dur_ns` has all",
        ),
    ],
};

/// Samples of stacks.
pub static SAMPLES: Table = Table {
    name: "samples",
    about: "Samples of `profile:` probes.",
    columns: &[
        TIME,
        TIME_NS,
        TRACE,
        HOST,
        column("name", Kind::Text, "the probe: `profile:hz:99`"),
        PID,
        TID,
        COMM,
        EXE,
        STACK,
    ],
};

/// Allocations and releases.
pub static ALLOCATIONS: Table = Table {
    name: "allocations",
    about: "Blocks and mappings that were allocated and released.",
    columns: &[
        TIME,
        TIME_NS,
        TRACE,
        HOST,
        column("name", Kind::Text, "`heap:malloc`, `heap:free`, `heap:mmap`, `heap:munmap`"),
        PID,
        TID,
        COMM,
        EXE,
        column("address", Kind::Long, "where"),
        optional("size", Kind::Long, "bytes; NULL of `heap:free`"),
        STACK,
    ],
};

/// All other events.
pub static EVENTS: Table = Table {
    name: "events",
    about: "All other events: what happens to processes, signals, and probes.",
    columns: &[
        column("time", Kind::Time, "when it happened or began"),
        TIME_NS,
        optional("dur_ns", Kind::Long, "how long it lasted, of probes with a beginning and an end"),
        TRACE,
        HOST,
        column("name", Kind::Text, "the probe: `process:exit`, `tracepoint:sched:sched_switch`"),
        PID,
        TID,
        COMM,
        EXE,
        optional("cpu", Kind::Int, "the processor at the beginning, of what lasts"),
        optional("ret", Kind::Long, "the result, of what lasts"),
        STACK,
        optional("args", Kind::Text, "its fields"),
    ],
};

/// Processes.
pub static PROCESSES: Table = Table {
    name: "processes",
    about: "Processes, a row for each: of one that has executed several programs, the last.",
    columns: &[
        column("time", Kind::Time, "when it was made, or its first event"),
        TIME_NS,
        END_NS,
        TRACE,
        HOST,
        column("pid", Kind::Int, "its number"),
        optional("ppid", Kind::Int, "that of the process that has made it"),
        optional("comm", Kind::Text, "its name"),
        optional("exe", Kind::Text, "its program, as execve was given it, or its parent's"),
        optional("argv", Kind::Text, "the program's arguments, a list in JSON"),
        optional("cwd", Kind::Text, "its working directory, as it was first known"),
        UID,
        optional("exit_code", Kind::Int, "its status, where it has ended by itself"),
        optional("exit_signal", Kind::Int, "the signal that has ended it"),
    ],
};

/// Frames of stacks.
pub static STACKS: Table = Table {
    name: "stacks",
    about: "Frames of stacks, innermost first, those of the kernel before those of the program.",
    columns: &[
        TRACE,
        HOST,
        column("stack_id", Kind::Int, "the stack: with `trace`, what other tables have"),
        column("depth", Kind::Int, "0 of the innermost frame"),
        optional("function", Kind::Text, "the function, demangled"),
        optional("module", Kind::Text, "the file that contains it, or the module of the kernel"),
        optional("file", Kind::Text, "the source file"),
        optional("line", Kind::Int, "the line there"),
        optional("address", Kind::Long, "the offset in the module's file, or the address"),
        column("kernel", Kind::Truth, "it is a function of the kernel"),
        column("inlined", Kind::Truth, "its code is in that of the next frame"),
        column("guessed", Kind::Truth, "the unwinder has guessed it"),
    ],
};

/// The trace: one row.
pub static TRACES: Table = Table {
    name: "traces",
    about: "Each trace, in one row.",
    columns: &[
        column("time", Kind::Time, "its beginning"),
        TIME_NS,
        END_NS,
        column("trace", Kind::Constant, "its id"),
        HOST,
        optional("kernel", Kind::Text, "name, release and architecture of the kernel"),
        optional("command", Kind::Text, "the command that was traced"),
        optional("backend", Kind::Text, "what has recorded it"),
        optional("tracer", Kind::Text, "the trapline that has"),
        optional("clock_offset_ns", Kind::Long, "what was added to times of the monotonic clock"),
        column("complete", Kind::Truth, "the trace has its end, and nothing of it is missing"),
        column("events", Kind::Long, "events that are in these tables"),
        optional("lost", Kind::Long, "events that were lost while it was recorded"),
        optional("missing", Kind::Long, "events that were recorded and are not there"),
        optional("overwritten", Kind::Long, "events that newer ones have replaced (`--flight`, `--max-size`)"),
        column("unwritten", Kind::Long, "events that could not be written"),
    ],
};

/// All tables.
pub static ALL: [&Table; 8] = [&CALLS, &FUNCTIONS, &SAMPLES, &ALLOCATIONS, &EVENTS, &PROCESSES, &STACKS, &TRACES];
