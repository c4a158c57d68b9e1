//! Function records: entries and exits of traced functions, 8 bytes each, as an agent in the process writes them.
//!
//! ```text
//!  0      4                    8
//!  ┌──────┬────────────────────┐
//!  │ time │ function << 1 | exit │     time: the lower half of the time stamp counter; little-endian
//!  └──────┴────────────────────┘
//! ```
//!
//! They stay as they are from the process into the trace ([`Run`]). Where all events of a trace are shown in one order, each record becomes
//! an event of [`entry`] or [`exit`]. Numbers of functions begin with 1; a word of 0 is no record, and the word [`HIGH`] is a marker: the
//! half before it is the upper half of the counter from there on. `process:function` events ([`crate::generated::P_FUNCTION`])
//! say which function has a number.

use crate::StreamId;
use crate::dynamic::{self, Field};
use crate::encode::{self, Fixed};
use crate::layout::Layout;
use crate::schema::Schema;
use crate::types::{Fmt, Int, StrKind, Type};
use std::sync::LazyLock;

/// Bytes of a record.
pub const RECORD: usize = 8;
/// The word of a marker that has the upper half of the counter (`abi::shared::HIGH`).
pub const HIGH: u32 = 1;

/// One moment on two clocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moment {
    /// The time stamp counter.
    pub tsc: u64,
    /// The monotonic clock, ns.
    pub monotonic: u64,
}

/// Consecutive records of one thread.
#[derive(Clone, Copy, Debug)]
pub struct Run<'a> {
    /// The stream of the thread: [`crate::stream::Scope::Thread`] with its id as trapline sees it, and the enabling that functions belong to.
    /// A later thread with the same id has the same stream.
    pub stream: StreamId,
    /// The process, as trapline sees it.
    pub pid: u32,
    /// These are the first records of a thread or, after an exec, of a program: no earlier call of the stream is still running.
    pub begins: bool,
    /// Records, in the order of their times, with or without markers among them.
    pub records: &'a [u8],
    /// The upper half of the counter at the first record, unless that is a marker.
    pub high: u32,
    /// A moment before the first record, or when it was written.
    pub from: Moment,
    /// A moment after the last record, or when it was written.
    pub to: Moment,
    /// How many records of the stream were lost since its last run.
    pub dropped: u64,
}

impl<'a> Run<'a> {
    /// The thread.
    pub fn tid(&self) -> u32 {
        self.stream.scope_id()
    }

    /// Its records without markers: the upper half of the counter, and the records that have it. What is no record ends the run.
    pub fn parts(&self) -> impl Iterator<Item = (u32, &'a [u8])> + use<'a> {
        let (mut high, mut rest) = (self.high, self.records.as_chunks::<RECORD>().0);
        std::iter::from_fn(move || {
            while let Some(first) = rest.first().filter(|r| word(r) == HIGH) {
                high = time(first);
                rest = &rest[1..];
            }
            let n = rest.iter().position(|r| word(r) <= HIGH).unwrap_or(rest.len());
            let (part, next) = rest.split_at(n);
            rest = next;
            (n > 0).then_some((high, part.as_flattened()))
        })
    }
}

/// The word of a record.
pub fn word(record: &[u8; RECORD]) -> u32 {
    (u64::from_le_bytes(*record) >> 32) as u32
}

/// The lower half of the counter in a record.
pub fn time(record: &[u8; RECORD]) -> u32 {
    u64::from_le_bytes(*record) as u32
}

/// The class of events of functions that were entered: `name`, its demangled name, and `function`, its number.
pub fn entry() -> &'static Schema {
    class(&ENTRY)
}
/// The class of events of functions that have returned, or were left; fields as [`entry`].
pub fn exit() -> &'static Schema {
    class(&EXIT)
}
/// The class of events that stand where records of a thread are missing: `records`, how many; 0: not known.
pub fn lost() -> &'static Schema {
    class(&LOST)
}

static ENTRY: LazyLock<Option<&'static Schema>> = LazyLock::new(|| made("function:entry", true));
static EXIT: LazyLock<Option<&'static Schema>> = LazyLock::new(|| made("function:exit", true));
static LOST: LazyLock<Option<&'static Schema>> = LazyLock::new(|| made("functions:lost", false));

fn made(probe: &str, named: bool) -> Option<&'static Schema> {
    let number = Type::Int(Int { size: 8, signed: false, fmt: Fmt::Dec });
    let field = |name: &str, ty| Field { name: name.into(), ty };
    let fields = match named {
        true => vec![field("name", Type::Str(StrKind::Text)), field("function", number)],
        false => vec![field("records", number)],
    };
    dynamic::class(probe, &fields).ok()
}

/// Where there are too many classes, the event of a function is one of trapline's own without a line in a view.
fn class(made: &'static LazyLock<Option<&'static Schema>>) -> &'static Schema {
    made.unwrap_or(&crate::generated::P_RESUMED)
}

/// What a class is to functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// [`entry`].
    Entry,
    /// [`exit`].
    Exit,
    /// [`lost`].
    Lost,
}

/// What a class is to functions, if it is one of theirs.
pub fn kind(schema: &Schema) -> Option<Kind> {
    match schema.name {
        "function:entry" => Some(Kind::Entry),
        "function:exit" => Some(Kind::Exit),
        "functions:lost" => Some(Kind::Lost),
        _ => None,
    }
}

/// Makes the events of records.
#[derive(Debug)]
pub struct Encoder {
    entry: (&'static Schema, Layout),
    exit: (&'static Schema, Layout),
    lost: (&'static Schema, Layout),
}

impl Default for Encoder {
    fn default() -> Encoder {
        let with = |schema| (schema, Layout::of(schema));
        Encoder { entry: with(entry()), exit: with(exit()), lost: with(lost()) }
    }
}

impl Encoder {
    /// Writes the event of a record of thread `tid` of `pid` into `out`, which is cleared. `name` is the function's name.
    pub fn record(&self, out: &mut Vec<u8>, time: u64, (pid, tid): (u32, u32), word: u32, name: &[u8]) {
        let (schema, layout) = if word & 1 == 0 { &self.entry } else { &self.exit };
        out.clear();
        let fixed = Fixed { time, cap: 1, tid, pid, ..Fixed::default() };
        encode::fixed(out, schema, layout, &fixed, &[1, u64::from(word >> 1)]);
        out.extend_from_slice(name);
        out.push(0);
    }

    /// Writes the event that stands where `records` records are missing into `out`, which is cleared.
    pub fn lost(&self, out: &mut Vec<u8>, time: u64, (pid, tid): (u32, u32), records: u64) {
        out.clear();
        encode::fixed(out, self.lost.0, &self.lost.1, &Fixed { time, tid, pid, ..Fixed::default() }, &[records]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Event;
    use crate::stream::Scope;

    fn run(records: &[u8]) -> Run<'_> {
        let stream = StreamId::new(Scope::Thread(7), 1);
        let (from, to) = (Moment::default(), Moment::default());
        Run { stream, pid: 7, begins: true, records, high: 5, from, to, dropped: 0 }
    }

    fn records(all: &[(u32, u32)]) -> Vec<u8> {
        all.iter().flat_map(|(t, w)| [t.to_le_bytes(), w.to_le_bytes()].concat()).collect()
    }

    #[test]
    fn markers_part_runs_and_what_is_no_record_ends_them() {
        let all = records(&[(9, 2), (6, HIGH), (7, HIGH), (1, 3), (2, 4), (8, HIGH), (0, 5), (0, 0), (1, 2)]);
        let parts: Vec<_> = run(&all).parts().map(|(high, part)| (high, part.len() / RECORD)).collect();
        assert_eq!(parts, [(5, 1), (7, 2), (8, 1)]);
        assert_eq!(run(&all[..7]).parts().count(), 0);
        assert_eq!(run(&[]).parts().count(), 0);
    }

    #[test]
    fn a_record_becomes_an_event() {
        let mut out = vec![1, 2, 3];
        let encoder = Encoder::default();
        encoder.record(&mut out, 99, (3, 4), 17 << 1 | 1, b"main");
        let ev = Event::parse(&out).unwrap();
        assert_eq!((ev.schema.name, ev.time(), ev.pid(), ev.tid()), ("function:exit", 99, 3, 4));
        assert_eq!((ev.bytes_of("name"), ev.value_of("function")), (&b"main"[..], 17));
        assert_eq!(kind(ev.schema), Some(Kind::Exit));
        encoder.lost(&mut out, 5, (3, 4), 12);
        let ev = Event::parse(&out).unwrap();
        assert_eq!((kind(ev.schema), ev.value_of("records")), (Some(Kind::Lost), 12));
    }
}
