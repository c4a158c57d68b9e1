//! The schema of the lines of `--as json` and of the tables of `--as parquet`, as text and as JSON.
//!
//! ```text
//! json::members, events::generated ─► lines ─┐
//! parquet::schema ───────────────────────────┴─► text │ document (JSON Schema 2020-12; tables)
//! ```
//!
//! Invariant: nothing is listed here that the views do not write from the same tables. Tests validate lines of every type against it.

mod document;
mod text;
mod values;

use crate::json::members::{self as m, FIELDS, Member, Value};
use crate::json::{CALL, LOST, PROBE};
use events::generated::SCHEMAS;
use events::{Class, Schema, Type};

pub use document::{lines as lines_document, tables as tables_document};
pub use text::{lines as lines_text, tables as tables_text};

/// A type of lines.
#[derive(Clone, Debug)]
pub struct Line {
    /// Its name, the member `type`.
    pub name: &'static str,
    /// What it is about.
    pub about: &'static str,
    /// Its members, in their order.
    pub members: Vec<Member>,
}

/// What lines of trapline's own events are about.
const ABOUT: &[(&str, &str)] = &[
    ("signal", "a signal was delivered; of the members si_…, those that are valid for its code"),
    ("stop", "the process was stopped by a signal"),
    ("exit", "the thread ended"),
    ("superseded", "the thread is gone because another one took its id with execve"),
    ("fork", "the thread made a process or a thread"),
    ("exec", "the process runs another program"),
    ("fd", "a descriptor that was open when tracing began, or that a call has made (with names of descriptors: -y)"),
    ("attach", "tracing of the thread began"),
    ("detach", "tracing of the thread ended"),
    ("inflight", "a call that is still running, 200 ms after its start, or when tracing began or ended"),
    ("map", "the process has mapped a file with executable pages (with --mappings)"),
    ("stack", "frames of a stack (with --mappings)"),
    ("function", "a function that is traced (with --mappings)"),
    ("paused", "the session was stopped"),
    ("resumed", "the session goes on"),
    ("untraced", "a program runs whose functions are not traced"),
];

/// All types of lines.
pub fn lines() -> Vec<Line> {
    let own = SCHEMAS.iter().filter(|s| s.class == Class::Process).map(|s| of_process(s));
    [call(), probe()].into_iter().chain(own).chain([lost()]).collect()
}

/// The members of every line of an event.
const EVERY: [Member; 7] = [m::VERSION, m::TYPE, m::HOST, m::TRACE, m::PID, m::TID, m::COMM];

fn line(name: &'static str, about: &'static str, own: &[Member]) -> Line {
    let members = EVERY.iter().chain(own).chain(&[m::KSTACK, m::USTACK]).copied().collect();
    Line { name, about, members }
}

fn call() -> Line {
    let own = [
        m::CALL,
        m::NR,
        m::ARCH,
        m::START,
        m::END,
        m::CPU,
        m::CPU_EXIT,
        m::ARGS,
        m::RET,
        m::ERRNO,
        m::UNFINISHED,
        m::INTERRUPTED,
    ];
    line(CALL, "a call that ended", &own)
}

fn probe() -> Line {
    let own = [
        m::PROBE,
        m::MOMENT,
        m::BEGIN,
        m::FINISH,
        m::CPU,
        m::CPU_EXIT,
        m::ARGS,
        m::RETURNED,
        m::FAILED,
        m::UNFINISHED,
        m::VALUES,
        m::OUTCOME,
    ];
    let about = "an event of another probe: entries and exits of functions, samples, allocations, static probes, tracepoints and others";
    line(PROBE, about, &own)
}

/// Losses are of no thread.
fn lost() -> Line {
    Line { name: LOST, about: "the last line, where events were lost", members: vec![m::VERSION, m::TYPE, m::LOST] }
}

fn of_process(schema: &'static Schema) -> Line {
    let own: Vec<Member> = match schema.name {
        "inflight" => {
            let call = [m::CALL_IN_FLIGHT, m::NR, m::ARCH, m::START, m::TIME, m::ARGS, m::ATTACH, m::DETACH];
            return line(schema.name, about(schema), &call);
        }
        "signal" => vec![
            m::SIGNAL,
            m::SI_CODE,
            m::SI_ERRNO,
            m::SI_PID,
            m::SI_UID,
            m::SI_STATUS,
            m::SI_UTIME,
            m::SI_STIME,
            m::SI_ADDR,
            m::SI_VALUE,
            m::SI_TIMERID,
            m::SI_OVERRUN,
            m::SI_BAND,
            m::SI_FD,
            m::SI_CALL_ADDR,
            m::SI_SYSCALL,
            m::SI_ARCH,
        ],
        "stop" => vec![m::SIGNAL],
        "exit" => vec![m::CODE, m::KILLED, m::CORE],
        "fork" => vec![m::CHILD_COMM, m::CHILD, m::CHILD_TID, m::CLONE_FLAGS],
        "fd" => vec![m::FD, m::FD_PATH, m::DETAIL, m::CLOEXEC],
        _ => schema.args.iter().map(|arg| field(schema.name, arg.name, arg.ty)).collect(),
    };
    line(schema.name, about(schema), &[&[m::TIME], &own[..]].concat())
}

fn about(schema: &Schema) -> &'static str {
    ABOUT.iter().find(|(name, _)| *name == schema.name).map_or("", |(_, about)| about)
}

/// A member that is a field of the event, as it is.
fn field(event: &str, name: &'static str, ty: Type) -> Member {
    let known = FIELDS.iter().find(|f| (f.0, f.1) == (event, name));
    let value = match (event, name, ty) {
        ("map", "build_id", _) => Value::Name,
        (_, _, Type::Int(_)) => Value::Field(ty),
        _ => Value::Text,
    };
    Member { name, value, optional: known.is_some_and(|f| f.2), about: known.map_or("", |f| f.3) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_has_a_meaning() {
        for line in lines() {
            assert!(!line.about.is_empty(), "ABOUT has nothing of {}", line.name);
            for member in &line.members {
                assert!(!member.about.is_empty(), "FIELDS has nothing of {} {}", line.name, member.name);
            }
        }
        for (event, field, ..) in FIELDS {
            let schema = SCHEMAS.iter().find(|s| s.class == Class::Process && s.name == *event);
            assert!(schema.is_some_and(|s| s.arg(field).is_some()), "FIELDS has {event} {field}, which does not exist");
        }
    }
}
