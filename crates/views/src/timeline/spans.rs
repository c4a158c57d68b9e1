//! Spans of any two probes: what begins with one event and ends with another, in whatever threads.
//!
//! ```text
//! events ─► points: time, key, thread ─► in the order of time, matched by key ─► spans ─┬► rows of pictures, without overlaps
//!                                                                                      └► the slowest, and what they were made of
//! ```
//!
//! An end belongs to the latest begin with its key, or to the first one since the last end. Keys of calls, functions and allocations are
//! compared within their process, those of other probes everywhere.

use super::columns::{Item, Rows};
use super::lanes::{self, Lanes};
use super::processes::Processes;
use super::strings::Strings;
use super::{Kind, Of};
use crate::calls::pattern;
use crate::escape;
use crate::profile::name;
use events::Event;
use events::functions::{self, Kind as Record};
use events::hash::Table;
use events::layout::CAP_NO_RESULT;
use events::names::Names;
use events::schema::{Class, Schema};
use events::traces::own;
use events::types::Type;
use events::values::{Shape, Signature, Value, text_of};
use lang::pattern::glob;

/// A requested kind of spans.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Definition {
    /// What the spans are called.
    pub name: String,
    /// Where they begin and end: names of probes, which may have `*` and `?`, with `:entry` or `:return` of calls and functions.
    pub probes: [String; 2],
    /// What events of one span have in common: `tid`, `pid`, `retval`, `arg0` …, or the name of an argument; of the begin and of the end.
    pub keys: [String; 2],
    /// Of several begins before an end, the first one counts, and not the last.
    pub first: bool,
}

impl Definition {
    /// As it is written, without the name.
    pub fn text(&self) -> String {
        let ([begin, end], [from, to]) = (&self.probes, &self.keys);
        let first = if self.first { " first" } else { "" };
        let keys = if from == to { from.clone() } else { format!("{from} .. {to}") };
        format!("{begin} .. {end} by {keys}{first}")
    }

    /// Whether keys are compared within a process.
    fn is_local(&self) -> bool {
        const LOCAL: [&str; 5] = ["syscall:", "function:", "uprobe:", "uretprobe:", "heap:"];
        self.probes.iter().all(|probe| LOCAL.iter().any(|provider| probe.starts_with(provider)))
    }
}

/// What a key is made of.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Part {
    Number(u64),
    Text(Vec<u8>),
}

/// What events of one span have in common.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key {
    /// The process in which it is unique; 0 for all.
    pid: u32,
    pub part: Part,
}

/// A begin or an end.
#[derive(Clone, Debug)]
struct Point {
    time: u64,
    thread: usize,
    ends: bool,
    key: Key,
}

/// A span.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Span {
    /// When it begins and ends, ns of the trace's clock.
    pub start: u64,
    pub end: u64,
    /// The threads in which it does, by their indices.
    pub threads: [usize; 2],
    pub key: Key,
}

/// The spans of a definition.
#[derive(Debug, Default)]
pub(super) struct Set {
    pub definition: Definition,
    points: Vec<Point>,
    /// In the order of their begins.
    pub spans: Vec<Span>,
    /// Begins without an end, ends without a begin.
    pub unended: u64,
    pub unbegun: u64,
    /// Events that do not have the key.
    pub keyless: u64,
    /// Begins and ends, with a key or without.
    pub seen: [u64; 2],
    /// Spans that are in no row: too many overlap.
    pub crowded: u64,
}

/// What an event of a class, or a record of a function, is for a set: its index, and whether it ends a span.
type Role = (usize, bool);

/// All sets.
#[derive(Debug, Default)]
pub(super) struct Spans {
    pub sets: Vec<Set>,
    /// How many of the slowest are shown.
    pub slowest: usize,
    /// Roles of classes of events, of entries and of exits of functions, found at their first event.
    of_class: Table<u16, Vec<Role>>,
    of_function: Table<(u32, bool), Vec<Role>>,
    /// Keys at the entries of calls that have not returned: by thread, function, role.
    entered: Table<(usize, u32, Role), Vec<Option<Part>>>,
    /// Blocks: by thread, their times and sizes.
    pub allocated: Table<usize, Vec<(u64, u64)>>,
}

/// Most calls of a function of a thread whose arguments are remembered until they return.
const MOST_ENTERED: usize = 1 << 12;

/// The end of the name of a probe that says which moment of a call or a function is meant.
fn moment(probe: &str) -> (&str, Option<bool>) {
    for (suffix, ends) in [(":entry", false), (":return", true), (":exit", true)] {
        if let Some(probe) = probe.strip_suffix(suffix) {
            return (probe, Some(ends));
        }
    }
    (probe, None)
}

/// The probe, of which all moments are.
pub fn without_moment(probe: &str) -> &str {
    moment(probe).0
}

impl Spans {
    pub fn new(definitions: Vec<Definition>, slowest: usize) -> Spans {
        let set = |definition| Set { definition, ..Set::default() };
        Spans { sets: definitions.into_iter().map(set).collect(), slowest, ..Spans::default() }
    }

    pub fn is_empty(&self) -> bool {
        self.sets.is_empty()
    }

    /// The roles of a probe: the spans that its events begin or end.
    fn roles(&self, matches: impl Fn(&str) -> bool) -> Vec<Role> {
        let places = self.sets.iter().enumerate().flat_map(|(n, set)| {
            // An event that ends a span may begin the next one.
            [true, false].map(|ends| ((n, ends), &set.definition.probes[usize::from(ends)]))
        });
        places.filter(|(_, probe)| matches(probe)).map(|(role, _)| role).collect()
    }

    /// An event of a thread.
    pub fn event(&mut self, ev: &Event<'_>, names: &dyn Names, thread: usize) {
        match functions::kind(ev.schema) {
            Some(Record::Entry) => return self.record(ev, names, thread, false),
            Some(Record::Exit) => return self.record(ev, names, thread, true),
            Some(_) => return,
            None => {}
        }
        if ev.schema.name == "heap:malloc" {
            self.allocated.entry(thread).or_default().push((ev.time(), ev.value_of("size")));
        }
        if !self.of_class.contains_key(&ev.schema.id) {
            let roles = self.roles(|probe| is_of(probe, ev.schema));
            self.of_class.insert(ev.schema.id, roles);
        }
        // A call that is to be made again has done nothing.
        let again = matches!(ev.errno(), Some(EINTR | EAGAIN));
        let count = if again { 0 } else { self.of_class[&ev.schema.id].len() };
        for nth in 0..count {
            let role @ (set, ends) = self.of_class[&ev.schema.id][nth];
            let definition = &self.sets[set].definition;
            let at_entry = moment(&definition.probes[usize::from(ends)]).1 == Some(false);
            let time = if ev.is_syscall() && at_entry { ev.start() } else { ev.time() };
            let part = part_of(ev, &definition.keys[usize::from(ends)]);
            self.point(role, (time, ev.pid(), thread), part);
        }
    }

    /// A record of a function.
    fn record(&mut self, ev: &Event<'_>, names: &dyn Names, thread: usize, exits: bool) {
        let number = ev.value_of("number") as u32;
        for exit in [false, true] {
            if !self.of_function.contains_key(&(number, exit)) {
                let name = String::from_utf8_lossy(ev.bytes_of("function"));
                let known = names.function(number);
                let aliases = known.map_or(&[][..], |f| f.aliases);
                let all: Vec<&str> = [&name]
                    .into_iter()
                    .map(|n| &**n)
                    .chain(known.map(|f| f.name))
                    .chain(aliases.iter().map(String::as_str))
                    .collect();
                let is_of = |probe: &str| {
                    let (probe, at_return) = moment(probe);
                    let pattern = probe.strip_prefix("function:");
                    at_return.unwrap_or(false) == exit
                        && pattern.is_some_and(|p| all.iter().any(|n| pattern::matches(p, n)))
                };
                let roles = self.roles(is_of);
                self.of_function.insert((number, exit), roles);
            }
        }
        let signature = names.signature(number);
        let at = (ev.time(), ev.pid(), thread);
        let part = |key: &str| part_of_function(ev, signature, exits, key);
        // Records of exits have no arguments: those of the entry count.
        for nth in 0..self.of_function[&(number, true)].len() {
            let role @ (set, ends) = self.of_function[&(number, true)][nth];
            let key = &self.sets[set].definition.keys[usize::from(ends)];
            if matches!(key.as_str(), "retval" | "tid" | "pid") {
                if exits {
                    let part = part(key);
                    self.point(role, at, part);
                }
                continue;
            }
            let entered = self.entered.entry((thread, number, role)).or_default();
            if exits {
                let part = entered.pop().flatten();
                self.point(role, at, part);
            } else if entered.len() < MOST_ENTERED {
                entered.push(part(key));
            }
        }
        for nth in 0..if exits { 0 } else { self.of_function[&(number, false)].len() } {
            let role @ (set, ends) = self.of_function[&(number, false)][nth];
            let part = part(&self.sets[set].definition.keys[usize::from(ends)]);
            self.point(role, at, part);
        }
    }

    fn point(&mut self, (set, ends): Role, (time, pid, thread): (u64, u32, usize), part: Option<Part>) {
        let set = &mut self.sets[set];
        set.seen[usize::from(ends)] += 1;
        let Some(part) = part else {
            set.keyless += 1;
            return;
        };
        let pid = if set.definition.is_local() { pid } else { 0 };
        set.points.push(Point { time, thread, ends, key: Key { pid, part } });
    }

    /// Matches begins and ends, and puts the spans into rows of the processes in which they begin.
    pub fn end(&mut self, processes: &Processes, rows: &mut Rows, strings: &mut Strings) {
        for (nth, set) in self.sets.iter_mut().enumerate() {
            set.matched();
            let name = strings.number(&set.definition.name);
            let mut lanes = Lanes::default();
            for span in &set.spans {
                let process = processes.of_thread(span.threads[0]);
                let Some(lane) = lanes.place(process, span.start, span.end) else {
                    set.crowded += 1;
                    continue;
                };
                let text = strings.number(&words(&set.definition, span, processes));
                let item = Item { start: span.start, length: span.end - span.start, name, text, ..Item::default() };
                rows.of(Of::Process(process), Kind::Span, nth as u32 * lanes::MOST + lane).push(&item);
            }
        }
    }
}

const EINTR: i64 = 4;
const EAGAIN: i64 = 11;

impl Set {
    fn matched(&mut self) {
        let mut points = std::mem::take(&mut self.points);
        // Entries of calls are known when those have returned.
        points.sort_by_key(|point| point.time);
        let mut open: Table<Key, (u64, usize)> = Table::default();
        for Point { time, thread, ends, key } in points {
            if !ends {
                if self.definition.first && open.contains_key(&key) {
                    continue;
                }
                self.unended += u64::from(open.insert(key, (time, thread)).is_some());
            } else if let Some((start, from)) = open.remove(&key) {
                self.spans.push(Span { start, end: time, threads: [from, thread], key });
            } else {
                self.unbegun += 1;
            }
        }
        self.unended += open.len() as u64;
        self.spans.sort_by_key(|span| span.start);
    }
}

/// Whether a class is that of a probe, or of the call that one is a moment of.
fn is_of(probe: &str, schema: &Schema) -> bool {
    let is = |probe: &str| glob(probe.as_bytes(), schema.probe().as_bytes());
    is(probe) || schema.class == Class::Syscall && is(moment(probe).0)
}

/// The key of an event.
fn part_of(ev: &Event<'_>, key: &str) -> Option<Part> {
    let whole = ev.caps() & CAP_NO_RESULT == 0 && ev.errno().is_none();
    let key = key.strip_prefix("args.").unwrap_or(key);
    let named = ev.schema.arg(key).or_else(|| nth(key).filter(|n| *n < ev.schema.args.len()));
    let Some(i) = named else {
        return match key {
            "tid" => Some(Part::Number(ev.tid().into())),
            "pid" => Some(Part::Number(ev.pid().into())),
            "retval" if ev.is_span() && whole => Some(Part::Number(ev.ret() as u64)),
            _ => None,
        };
    };
    match ev.schema.args[i].ty {
        Type::Str(_) => {
            let tail = ev.tail(i, false).or_else(|| ev.tail(i, true))?;
            Some(Part::Text(tail.bytes.to_vec()))
        }
        _ => Some(Part::Number(ev.arg(i))),
    }
}

/// The number of an argument: `arg0`.
fn nth(key: &str) -> Option<usize> {
    key.strip_prefix("arg")?.parse().ok()
}

/// The key of a call of a function.
fn part_of_function(ev: &Event<'_>, signature: Option<&Signature>, exits: bool, key: &str) -> Option<Part> {
    let key = key.strip_prefix("args.").unwrap_or(key);
    match key {
        "tid" => return Some(Part::Number(ev.tid().into())),
        "pid" => return Some(Part::Number(ev.pid().into())),
        _ => {}
    }
    let (signature, values) = (signature?, ev.bytes_of("values"));
    if values.is_empty() {
        return None;
    }
    if exits {
        let shape = signature.result.as_ref().filter(|_| key == "retval")?;
        return part(&signature.result(values)?, shape);
    }
    let named = |name: &str| signature.arguments.iter().position(|(own, _)| own == name);
    let i = named(key).or_else(|| nth(key))?;
    // The text that an address leads to, where it was captured too.
    let i = named(&text_of(&signature.arguments.get(i)?.0)).unwrap_or(i);
    part(&signature.arguments(values).get(i)?.1, &signature.arguments.get(i)?.1)
}

fn part(value: &Value<'_>, shape: &Shape) -> Option<Part> {
    match value {
        Value::Text(text, _) => Some(Part::Text(text.clone())),
        // A pinned reference, or another type around a value, is the value.
        Value::Members(members) => match (members.as_slice(), shape) {
            ([(_, value)], Shape::Struct(s)) => part(value, &s.members.first()?.2),
            _ => None,
        },
        value => value.number(shape).map(|n| Part::Number(n as u64)),
    }
}

/// What is said of a span: its key, and its threads.
pub(super) fn words(definition: &Definition, span: &Span, processes: &Processes) -> String {
    let [from, to] = span.threads.map(|thread| named(thread, processes));
    let threads = if span.threads[0] == span.threads[1] { from } else { format!("{from} to {to}") };
    match definition.keys[0].as_str() {
        "tid" | "pid" => format!("{} {threads}", definition.name),
        key => format!("{} {key} {}, {threads}", definition.name, shown(&span.key.part)),
    }
}

/// A thread: its number and its name.
pub(super) fn named(thread: usize, processes: &Processes) -> String {
    let Some(thread) = processes.threads().get(thread) else { return "?".into() };
    format!("{} ({})", own(thread.tid), printable(&thread.name))
}

/// A name of the program, without control characters.
pub(super) fn printable(text: &str) -> String {
    name::visible(text).into_owned()
}

/// A key: large numbers are addresses.
pub(super) fn shown(part: &Part) -> String {
    match part {
        Part::Number(n) if *n < 1 << 32 => n.to_string(),
        Part::Number(n) => format!("{n:#x}"),
        Part::Text(text) => {
            let mut out = Vec::new();
            escape::c_string(text, &mut out);
            String::from_utf8_lossy(&out).into_owned()
        }
    }
}
