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
//! A word with the bit [`VALUES`] is that of a longer record: a length of 2 bytes follows, and so many bytes, which [`crate::values`] reads;
//! with them the record has a multiple of 8 bytes.

use crate::dynamic::{self, Field};
use crate::encode::{self, Fixed};
use crate::generated::{P_FUNCTION, P_STACK};
use crate::layout::{self, Layout};
use crate::names::{FdName, FunctionName, Names};
use crate::rules::{self, Rules, What};
use crate::schema::Schema;
use crate::types::{Fmt, Int, Len, LenFrom, StrKind, Type};
use crate::values::{self, Signature};
use crate::{Event, StreamId};
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

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

/// The functions of a session or a trace, by number, as `process:function` events have reported them.
#[derive(Debug, Default)]
pub struct Table {
    all: Vec<Option<Box<Known>>>,
    bytes: usize,
    signatures: HashMap<u32, Box<Signature>>,
    rules: Option<Arc<dyn Rules>>,
}

#[derive(Debug)]
struct Known {
    name: String,
    symbol: String,
    module: String,
    build_id: Vec<u8>,
    address: u64,
    /// Further names.
    aliases: Vec<String>,
}

/// Knows functions, and nothing else.
impl Names for Table {
    fn fd(&self, _: u32, _: i32) -> Option<&FdName> {
        None
    }
    fn comm(&self, _: u32) -> Option<&[u8]> {
        None
    }
    fn function(&self, number: u32) -> Option<FunctionName<'_>> {
        self.get(number)
    }
    fn signature(&self, number: u32) -> Option<&Signature> {
        Table::signature(self, number)
    }
}

impl Known {
    /// Whether it names the function that `old` names.
    fn is_function_of(&self, old: &Known) -> bool {
        (self.address, &self.module, &self.build_id) == (old.address, &old.module, &old.build_id)
    }

    fn bytes(&self) -> usize {
        let aliases: usize = self.aliases.iter().map(String::len).sum();
        self.name.len() + self.symbol.len() + self.module.len() + self.build_id.len() + aliases
    }
}

/// Numbers from this one on have no name.
const MOST: u32 = 1 << 22;
/// The most bytes of names that are kept. Functions that come later have none.
const MOST_BYTES: usize = 1 << 30;

impl Table {
    /// Names and files of functions are as these rules want them from now on.
    pub fn redact(&mut self, rules: Option<Arc<dyn Rules>>) {
        self.rules = rules;
    }

    /// Learns a function, where `ev` reports one. Of several names of a function the last is its own, the others are aliases. `demangle` makes
    /// of a linker's name the one that is shown; none where that is the same.
    #[inline]
    pub fn note(&mut self, ev: &Event<'_>, demangle: impl FnOnce(&str) -> Option<String>) {
        if ev.schema.name == values::CLASS {
            return self.note_signature(ev);
        }
        if ev.schema.id != P_FUNCTION.id {
            return;
        }
        let text = |field| String::from_utf8_lossy(ev.bytes_of(field)).into_owned();
        let (number, symbol, module) = (ev.value_of("number") as u32, text("name"), text("path"));
        let name = demangle(&symbol).unwrap_or_else(|| symbol.clone());
        let (name, symbol, module) = self.shown(name, symbol, module);
        let (build_id, address, aliases) = (ev.bytes_of("build_id").to_vec(), ev.value_of("addr"), Vec::new());
        let mut known = Known { name, symbol, module, build_id, address, aliases };
        let at = number as usize;
        if let Some(old) = self.all.get(at).and_then(Option::as_deref).filter(|old| known.is_function_of(old)) {
            let mut names = old.aliases.clone();
            names.push(old.name.clone());
            names.retain(|name| *name != known.name);
            known.aliases = names;
        }
        let bytes = known.bytes();
        if number >= MOST || self.bytes + bytes > MOST_BYTES {
            return;
        }
        self.bytes += bytes;
        self.bytes -= self.all.get(at).and_then(Option::as_ref).map_or(0, |old| old.bytes());
        if at >= self.all.len() {
            self.all.resize_with(at + 1, || None);
        }
        self.all[at] = Some(Box::new(known));
    }

    /// A function's name, the linker's, and its file, as they are to be shown.
    fn shown(&self, name: String, symbol: String, module: String) -> (String, String, String) {
        let Some(rules) = &self.rules else { return (name, symbol, module) };
        let module = rules::string(&**rules, What::Path, &module).into_owned();
        match rules.text(What::Name, name.as_bytes()).or_else(|| rules.text(What::Name, symbol.as_bytes())) {
            Some(other) => {
                let other = String::from_utf8_lossy(&other).into_owned();
                (other.clone(), other, module)
            }
            None => (name, symbol, module),
        }
    }

    fn note_signature(&mut self, ev: &Event<'_>) {
        let (number, text) = (ev.value_of("number") as u32, ev.bytes_of("signature"));
        let known = std::str::from_utf8(text).ok().and_then(Signature::parse);
        if let Some(signature) = known.filter(|_| self.bytes + text.len() <= MOST_BYTES) {
            // As parsed it takes more.
            self.bytes += 8 * text.len();
            self.signatures.insert(number, Box::new(signature));
        }
    }

    /// What the arguments and the result of the function with this number are, if they were captured.
    pub fn signature(&self, number: u32) -> Option<&Signature> {
        self.signatures.get(&number).map(|s| &**s)
    }

    /// Whether values of any function were captured.
    pub fn has_values(&self) -> bool {
        !self.signatures.is_empty()
    }

    /// The function with this number.
    pub fn get(&self, number: u32) -> Option<FunctionName<'_>> {
        let Known { name, symbol, module, build_id, address, aliases } = self.all.get(number as usize)?.as_deref()?;
        Some(FunctionName { name, symbol, module, build_id, address: *address, aliases })
    }

    /// Its names: those of the linker and the demangled ones, of its aliases too; none where it is not known.
    pub fn names(&self, number: u32) -> impl Iterator<Item = &str> + Clone {
        let known = self.all.get(number as usize).and_then(Option::as_deref);
        known.into_iter().flat_map(|f| [&f.symbol, &f.name].into_iter().chain(&f.aliases)).map(String::as_str)
    }

    /// Its name, or its number where it has none.
    pub fn name(&self, number: u32) -> Cow<'_, str> {
        match self.get(number) {
            Some(f) => f.name.into(),
            None => format!("#{number}").into(),
        }
    }

    /// The highest number that has a name; 0: none has.
    pub fn last(&self) -> u32 {
        self.all.len().saturating_sub(1) as u32
    }
}

/// Makes the events of records.
#[derive(Debug)]
pub struct Encoder {
    /// Events of an entry and of an exit, without a name.
    events: [Vec<u8>; 2],
    /// Where the number of the function is in each.
    number: [usize; 2],
}

impl Default for Encoder {
    fn default() -> Encoder {
        let of = |schema: &'static Schema| {
            let (mut event, layout) = (Vec::new(), Layout::of(schema));
            // The name is there as a whole.
            encode::fixed(&mut event, schema, &layout, &Fixed { cap: 1, ..Fixed::default() }, &[1, 0]);
            (event, usize::from(layout.args[1].0))
        };
        let [(entry, a), (exit, b)] = [entry(), exit()].map(of);
        Encoder { events: [entry, exit], number: [a, b] }
    }
}

impl Encoder {
    /// Writes the event of a record of thread `tid` of `pid` into `out`, which is cleared. `name` is the function's name.
    pub fn record(&self, out: &mut Vec<u8>, time: u64, (pid, tid): (u32, u32), word: u32, name: &[u8]) {
        let which = (word & 1) as usize;
        out.clear();
        out.extend_from_slice(&self.events[which]);
        let mut put = |at: usize, bytes: &[u8]| {
            if let Some(to) = out.get_mut(at..at + bytes.len()) {
                to.copy_from_slice(bytes);
            }
        };
        put(0, &time.to_le_bytes());
        put(layout::TID, &tid.to_le_bytes());
        put(layout::PID, &pid.to_le_bytes());
        put(self.number[which], &u64::from(word >> 1).to_le_bytes());
        out.extend_from_slice(name);
        out.push(0);
    }

    /// As [`Encoder::record`], with the values of the record; without any it is the same.
    #[allow(clippy::too_many_arguments)]
    pub fn record_with(
        &self,
        out: &mut Vec<u8>,
        time: u64,
        (pid, tid): (u32, u32),
        word: u32,
        name: &[u8],
        values: &[u8],
    ) {
        let Some(classes) = WITH_VALUES.as_ref().filter(|_| !values.is_empty()) else {
            return self.record(out, time, (pid, tid), word, name);
        };
        let schema = classes[(word & 1) as usize];
        out.clear();
        let fixed = Fixed { time, tid, pid, cap: 0b1_0001, ..Fixed::default() };
        encode::fixed(out, schema, &Layout::of(schema), &fixed, &[1, u64::from(word >> 1), 1]);
        encode::str_tail(out, name);
        encode::bytes_tail(out, values);
    }

    /// Writes the event that stands where `records` records are missing into `out`, which is cleared.
    pub fn lost(&self, out: &mut Vec<u8>, time: u64, who: (u32, u32), records: u64) {
        one_number(lost(), out, time, who, records);
    }

    /// Writes the event that stands where another thread or program begins into `out`, which is cleared.
    pub fn begun(&self, out: &mut Vec<u8>, time: u64, who: (u32, u32), number: u64) {
        one_number(begun(), out, time, who, number);
    }
}

fn one_number(schema: &'static Schema, out: &mut Vec<u8>, time: u64, (pid, tid): (u32, u32), number: u64) {
    out.clear();
    encode::fixed(out, schema, &Layout::of(schema), &Fixed { time, tid, pid, ..Fixed::default() }, &[number]);
}

#[cfg(test)]
mod tests {
    use super::*;
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
    fn the_last_of_several_names_is_the_functions() {
        let mut table = Table::default();
        let mut report = |name: &[u8], address: u64| {
            let mut event = Vec::new();
            let fixed = Fixed { cap: 0x15, ..Fixed::default() };
            encode::fixed(&mut event, &P_FUNCTION, &Layout::of(&P_FUNCTION), &fixed, &[1, 1, 1, 9, address]);
            [name, b"/lib/c"].into_iter().for_each(|text| encode::str_tail(&mut event, text));
            encode::bytes_tail(&mut event, &[1, 2]);
            table.note(&Event::parse(&event).unwrap(), |_| None);
            let name = table.name(9).into_owned();
            (name, table.get(9).unwrap().aliases.to_vec(), table.names(9).any(|n| n == "__write"))
        };
        let aliases = |names: &[&str]| names.iter().map(|n| n.to_string()).collect::<Vec<_>>();
        assert_eq!(report(b"__write", 5), ("__write".into(), aliases(&[]), true));
        // Told again, it is no other one.
        for _ in 0..2 {
            assert_eq!(report(b"write", 5), ("write".into(), aliases(&["__write"]), true));
        }
        // Another function of that number.
        assert_eq!(report(b"read", 6), ("read".into(), aliases(&[]), false));
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

    #[test]
    fn a_function_is_known_by_its_number() {
        let layout = Layout::of(&P_FUNCTION);
        let mut table = Table::default();
        for number in [3, u64::from(u32::MAX)] {
            let mut bytes = Vec::new();
            encode::fixed(
                &mut bytes,
                &P_FUNCTION,
                &layout,
                &Fixed { cap: 0x15, ..Fixed::default() },
                &[1, 1, 1, number, 77],
            );
            encode::str_tail(&mut bytes, b"_ZN1a1bEv");
            encode::str_tail(&mut bytes, b"/bin/x");
            encode::bytes_tail(&mut bytes, &[1, 2]);
            table.note(&Event::parse(&bytes).unwrap(), |_| Some("a::b".into()));
        }
        let known = FunctionName {
            name: "a::b",
            symbol: "_ZN1a1bEv",
            module: "/bin/x",
            build_id: &[1, 2],
            address: 77,
            aliases: &[],
        };
        assert_eq!((table.get(3), table.get(0), table.get(u32::MAX), table.last()), (Some(known), None, None, 3));
        assert_eq!((table.name(3), table.name(4)), ("a::b".into(), "#4".into()));
    }
}
