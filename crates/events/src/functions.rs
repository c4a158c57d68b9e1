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
//!
//! A word with the bit [`VALUES`] is that of a longer record: a length of 2 bytes follows, and as many bytes, which [`crate::values`] reads;
//! with them the record has a multiple of 8 bytes.

mod encoder;
mod sums;
mod table;

use crate::StreamId;
use crate::dynamic::{self, Field};
use crate::generated::{P_FUNCTION, P_STACK};
use crate::schema::Schema;
use crate::types::{Fmt, Int, Len, LenFrom, StrKind, Type};
use std::sync::LazyLock;

pub use encoder::Encoder;
pub use sums::{BUCKETS, Sums, sums};
pub use table::Table;

/// Bytes of a record.
pub const RECORD: usize = 8;
/// The word of a marker that has the upper half of the counter (`abi::shared::HIGH`).
pub const HIGH: u32 = 1;
/// Bit of a word: values follow the record (`abi::shared::VALUES`).
pub const VALUES: u32 = 1 << 31;
/// Bytes of a record with values before those.
const HEAD: usize = RECORD + 2;

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
            let mut n = 0;
            while let Some(record) = rest.get(n).filter(|r| word(r) > HIGH) {
                n += match word(record) & VALUES {
                    0 => 1,
                    _ => match split(rest[n..].as_flattened()) {
                        Some((record, _)) => record.len() / RECORD,
                        None => break,
                    },
                };
            }
            let (part, next) = rest.split_at(n);
            rest = next;
            (n > 0).then_some((high, part.as_flattened()))
        })
    }
}

/// The first record of these, and the rest; None where there is no whole one.
#[inline]
pub fn split(records: &[u8]) -> Option<(&[u8], &[u8])> {
    let n = match word(records.first_chunk()?) & VALUES {
        0 => RECORD,
        _ => HEAD + usize::from(u16::from_le_bytes(*records[RECORD..].first_chunk()?)),
    };
    records.split_at_checked(n).filter(|_| n.is_multiple_of(RECORD))
}

/// Records, one after the other; what is no whole record ends them.
pub fn each(mut records: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let (record, rest) = split(records)?;
        records = rest;
        Some(record)
    })
}

/// The word and the values of a record, which is a whole one: the word without [`VALUES`].
#[inline]
pub fn parts_of(record: &[u8]) -> (u32, &[u8]) {
    (record.first_chunk().map_or(0, word) & !VALUES, record.get(HEAD..).unwrap_or_default())
}

/// The word of a record.
pub fn word(record: &[u8; RECORD]) -> u32 {
    (u64::from_le_bytes(*record) >> 32) as u32
}

/// The lower half of the counter in a record.
pub fn time(record: &[u8; RECORD]) -> u32 {
    u64::from_le_bytes(*record) as u32
}

/// The class of events of functions that were entered: `function`, its demangled name, and `number`.
pub fn entry() -> &'static Schema {
    class(&ENTRY)
}
/// The class of events of functions that have returned, or were left; fields as [`entry`].
pub fn exit() -> &'static Schema {
    class(&EXIT)
}
/// The classes of [`entry`] and [`exit`] of functions whose values were captured, which have one field more, `values`. They are made when
/// they are first asked for.
pub fn with_values() -> [&'static Schema; 2] {
    WITH_VALUES.unwrap_or_else(|| [entry(), exit()])
}
/// The class of events that stand where records of a thread are missing: `records`, how many; 0: not known.
pub fn lost() -> &'static Schema {
    class(&LOST)
}

/// The class of events that stand where a thread id has another thread, or a thread another program: what was open before never returns.
/// `number`: which one it is, from 0.
pub fn begun() -> &'static Schema {
    class(&BEGUN)
}

static ENTRY: LazyLock<Option<&'static Schema>> = LazyLock::new(|| made("function:entry", Some("function"), "number"));
static EXIT: LazyLock<Option<&'static Schema>> = LazyLock::new(|| made("function:exit", Some("function"), "number"));
/// [`ENTRY`] and [`EXIT`] of functions whose values were captured.
static WITH_VALUES: LazyLock<Option<[&'static Schema; 2]>> = LazyLock::new(|| {
    let of = |schema: &'static Schema| {
        let own = schema.args.iter().map(|a| Field { name: a.name.into(), ty: a.ty });
        let ty = Type::Bytes(Len { from: LenFrom::Const(0), mul: 1, div: 1 });
        dynamic::class(schema.name, &own.chain([Field { name: "values".into(), ty }]).collect::<Vec<_>>()).ok()
    };
    Some([of(entry())?, of(exit())?])
});
static LOST: LazyLock<Option<&'static Schema>> = LazyLock::new(|| made("functions:lost", None, "records"));
static BEGUN: LazyLock<Option<&'static Schema>> = LazyLock::new(|| made("functions:begun", None, "number"));

fn made(probe: &str, name: Option<&str>, number: &str) -> Option<&'static Schema> {
    let name = name.map(|name| Field { name: name.into(), ty: Type::Str(StrKind::Text) });
    let ty = Type::Int(Int { size: 8, signed: false, fmt: Fmt::Dec });
    let fields: Vec<_> = name.into_iter().chain([Field { name: number.into(), ty }]).collect();
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
    /// [`begun`].
    Begun,
}

/// Whether events only define what other events refer to, a function or a stack. Their time may be before their process begins.
pub fn is_definition(schema: &Schema) -> bool {
    [P_FUNCTION.id, P_STACK.id].contains(&schema.id)
}

/// What a class is to functions, if it is one of theirs.
pub fn kind(schema: &Schema) -> Option<Kind> {
    match schema.name {
        "function:entry" => Some(Kind::Entry),
        "function:exit" => Some(Kind::Exit),
        "functions:lost" => Some(Kind::Lost),
        "functions:begun" => Some(Kind::Begun),
        _ => None,
    }
}

/// Translates the time stamp counter into the monotonic clock, by two moments on both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Clock {
    from: Moment,
    /// ns per tick, with 32 binary places.
    slope: u64,
}

impl Clock {
    /// The clock through two moments. Where they are one, a tick is a nanosecond.
    pub fn between(from: Moment, to: Moment) -> Clock {
        let (ticks, ns) = (to.tsc.saturating_sub(from.tsc), to.monotonic.saturating_sub(from.monotonic));
        let slope = (u128::from(ns) << 32).checked_div(ticks.into()).unwrap_or(1 << 32);
        Clock { from, slope: slope.try_into().unwrap_or(u64::MAX) }
    }

    /// The monotonic time of a value of the counter.
    #[inline]
    pub fn ns(&self, tsc: u64) -> u64 {
        let scaled = |ticks: u64| ((u128::from(ticks) * u128::from(self.slope)) >> 32) as u64;
        match tsc.checked_sub(self.from.tsc) {
            Some(ticks) => self.from.monotonic.saturating_add(scaled(ticks)),
            None => self.from.monotonic.saturating_sub(scaled(self.from.tsc - tsc)),
        }
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
        assert_eq!((ev.bytes_of("function"), ev.value_of("number")), (&b"main"[..], 17));
        assert_eq!(kind(ev.schema), Some(Kind::Exit));
        encoder.lost(&mut out, 5, (3, 4), 12);
        let ev = Event::parse(&out).unwrap();
        assert_eq!((kind(ev.schema), ev.value_of("records")), (Some(Kind::Lost), 12));
        encoder.begun(&mut out, 5, (3, 4), 1);
        let ev = Event::parse(&out).unwrap();
        assert_eq!((kind(ev.schema), ev.value_of("number")), (Some(Kind::Begun), 1));
    }

    #[test]
    fn a_record_with_values_is_one_record() {
        let mut all = records(&[(9, 2)]);
        for word in [5 | VALUES, 4 | VALUES] {
            all.extend(records(&[(10, word)]));
            all.extend(14u16.to_le_bytes());
            // What follows looks like markers and like nothing.
            all.extend([0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0]);
        }
        all.extend(records(&[(7, HIGH), (11, 3)]));
        let of = run(&all);
        let parts: Vec<_> = of.parts().map(|(high, p)| (high, p.len())).collect();
        assert_eq!(parts, [(5, 8 + 2 * 24), (7, 8)]);
        let words: Vec<_> =
            of.parts().flat_map(|(_, p)| each(p)).map(|r| (parts_of(r).0, parts_of(r).1.len())).collect();
        assert_eq!(words, [(2, 0), (5, 14), (4, 14), (3, 0)]);
        assert_eq!(each(&all[..24]).count(), 1);
        let mut out = Vec::new();
        Encoder::default().record_with(&mut out, 99, (3, 4), 7, b"f", &[1, 2, 3]);
        let ev = Event::parse(&out).unwrap();
        assert_eq!(
            (kind(ev.schema), ev.value_of("number"), ev.bytes_of("values")),
            (Some(Kind::Exit), 3, &[1, 2, 3][..])
        );
        assert_eq!(ev.bytes_of("function"), b"f");
    }

    #[test]
    fn a_clock_goes_through_its_moments_and_takes_any_number() {
        let at = |tsc, monotonic| Moment { tsc, monotonic };
        let clock = Clock::between(at(1_000_000, 500), at(26_000_000_000 + 1_000_000, 10_000_000_500));
        for (tsc, ns) in
            [(1_000_000, 500), (2_600_000 + 1_000_000, 1_000_499), (26_000_000_000 + 1_000_000, 10_000_000_499)]
        {
            assert!(clock.ns(tsc).abs_diff(ns) <= 2, "{} {ns}", clock.ns(tsc));
        }
        assert_eq!((clock.ns(0), clock.ns(u64::MAX) > 1 << 62), (0, true));
        for (from, to) in
            [(at(5, 5), at(5, 9)), (at(9, 9), at(5, 5)), (at(0, 0), at(1, u64::MAX)), (at(0, 0), at(u64::MAX, 1))]
        {
            let clock = Clock::between(from, to);
            let _ = [0, 5, u64::MAX].map(|t| clock.ns(t));
        }
    }
}
