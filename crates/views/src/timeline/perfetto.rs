//! Everything over time in Perfetto's format (`crate::perfetto`): for ui.perfetto.dev, and for its queries.
//!
//! ```text
//! the processors: who is on each
//! a process ─┬ heap: a counter of the bytes that are outstanding; one of its open descriptors; spans of two probes, that begin in it
//!            └ a thread: its functions, nested ─┬ calls, with arguments and results
//!                                               ├ runs: on a processor, and off it
//!                                               └ marks; where events are missing
//! samples have stacks; who has begun or woken a thread is a flow to it
//! ```

use super::columns::{Item, Row};
use super::curves::is_curve;
use super::{Kind, Of, Timeline, tally};
use crate::perfetto::{
    BEGIN, BYTES, COUNT, COUNTER, END, Encoder, INSTANT, Names, annotation, describe, field, named, process, thread,
};
use crate::profile::name;
use crate::protobuf::Message;
use std::collections::HashSet;

/// Tracks by what they are of.
fn process_track(process: usize) -> u64 {
    1 << 62 | process as u64
}

fn thread_track(thread: usize) -> u64 {
    1 << 63 | thread as u64
}

/// The track of a row that has one of its own.
fn row_track(nth: usize) -> u64 {
    1 << 61 | nth as u64
}

/// The track of all processors.
const PROCESSORS: u64 = 1 << 60;

struct Writer<'t> {
    timeline: &'t Timeline,
    encoder: Encoder,
    strings: Vec<&'t str>,
    functions: Names,
    paths: Names,
    /// What was written of frames, of their files, and of stacks.
    frames: HashSet<u32>,
    mappings: HashSet<u64>,
    stacks: HashSet<u64>,
    all_stacks: Vec<&'t [u32]>,
}

/// Appends the file.
pub fn write(timeline: &Timeline, out: &mut Vec<u8>) {
    let begin = if timeline.begin == u64::MAX { 0 } else { timeline.begin };
    Encoder::begin(begin, timeline.stats.realtime_offset(), out);
    let mut writer = Writer {
        timeline,
        encoder: Encoder::default(),
        strings: timeline.strings.all().collect(),
        functions: Names::default(),
        paths: Names::default(),
        frames: HashSet::new(),
        mappings: HashSet::new(),
        stacks: HashSet::new(),
        all_stacks: timeline.frames.stacks().collect(),
    };
    for (n, p) in timeline.processes.all().iter().enumerate() {
        process(process_track(n), p.pid, &name::visible(&p.name), out);
    }
    for (n, t) in timeline.processes.threads().iter().enumerate() {
        let pid = timeline.processes.all().get(t.process).map_or(0, |p| p.pid);
        thread(thread_track(n), (pid, t.tid), &name::visible(&t.name), out);
    }
    let rows = timeline.ordered();
    if rows.iter().any(|row| row.kind == Kind::Cpu) {
        describe(PROCESSORS, out, |track| track.bytes_of(field::track::NAME, b"processors"));
    }
    let mut rest = &rows[..];
    let mut nth = 0;
    while let [first, ..] = rest {
        // The functions of a thread are one track: each inside of those around it.
        let same = |row: &&Row| row.of == first.of && row.kind == Kind::Function;
        let n = if first.kind == Kind::Function { rest.iter().take_while(|row| same(row)).count() } else { 1 };
        match first.kind {
            Kind::Function => writer.nested(&rest[..n], out),
            Kind::Sample => writer.samples(first, out),
            _ if is_curve(first) => writer.curve(first, row_track(nth), out),
            _ => writer.flat(first, row_track(nth), out),
        }
        rest = &rest[n..];
        nth += 1;
    }
    writer.flows(row_track(nth), out);
    if let Some(all @ 1..) = timeline.lost {
        let shown: i64 = rows.iter().filter(|r| r.kind == Kind::Lost).flat_map(|r| r.items()).map(|i| i.value).sum();
        let elsewhere = all.saturating_sub(u64::try_from(shown).unwrap_or(0));
        writer.encoder.losses(all, elsewhere, timeline.last, "events are missing", out);
    }
}

impl<'t> Writer<'t> {
    fn string(&self, number: u32) -> &'t str {
        self.strings.get((number as usize).wrapping_sub(1)).copied().unwrap_or_default()
    }

    /// A slice ends.
    fn end(&mut self, track: u64, time: u64, note: Option<&str>, out: &mut Vec<u8>) {
        self.encoder.event(time, out, |event| {
            event.number(field::event::TYPE, END);
            event.number(field::event::TRACK, track);
            if let Some(note) = note {
                annotation(event, "end", note);
            }
        });
    }

    /// Functions of a thread, by their depths: a slice begins, and those that it is around, before it ends.
    fn nested(&mut self, rows: &[&Row], out: &mut Vec<u8>) {
        let Some(Of::Thread(thread)) = rows.first().map(|row| row.of) else { return };
        let track = thread_track(thread);
        let names = self.timeline.functions.view().names();
        let mut all: Vec<(u32, Item)> = rows.iter().flat_map(|r| r.items().map(|i| (r.depth, i))).collect();
        all.sort_by_key(|(depth, item)| (item.start, *depth));
        // Those that have begun and not ended: depth, end, what is said of it.
        let mut open: Vec<(u32, u64, i64)> = Vec::new();
        let note = |value: i64| match value & 3 {
            1 => Some("left without a recorded return"),
            2 => Some("has not returned"),
            _ => None,
        };
        for (depth, item) in all {
            while let Some((_, end, value)) = open.pop_if(|(of, ..)| *of >= depth) {
                self.end(track, end, note(value), out);
            }
            let name = names.get((item.name as usize).wrapping_sub(1)).map_or("?", |n| n);
            let ids = self.encoder.ids(&name::visible(name), "function");
            self.encoder.event(item.start, out, |event| named(event, BEGIN, track, ids));
            open.push((depth, item.start.saturating_add(item.length), item.value));
        }
        while let Some((_, end, value)) = open.pop() {
            self.end(track, end, note(value), out);
        }
    }

    /// A row as a track below that of its thread or process.
    fn track(&mut self, row: &Row, track: u64, name: &str, out: &mut Vec<u8>, more: impl FnOnce(&mut Message)) {
        let parent = match row.of {
            Of::Thread(thread) => thread_track(thread),
            Of::Process(process) => process_track(process),
            Of::Cpu(_) => PROCESSORS,
        };
        describe(track, out, |descriptor| {
            descriptor.bytes_of(field::track::NAME, name.as_bytes());
            descriptor.number(field::track::PARENT, parent);
            more(descriptor);
        });
    }

    /// Slices and marks that are in no others.
    fn flat(&mut self, row: &Row, track: u64, out: &mut Vec<u8>) {
        let (name, category) = match row.kind {
            Kind::Call => ("calls", "syscall"),
            Kind::Run | Kind::Cpu => ("runs", "sched"),
            Kind::Lost => ("missing", "trapline"),
            Kind::Span => ("spans", "span"),
            _ => ("marks", "probe"),
        };
        // Each processor has a track, and spans of one name one for each that overlaps others.
        let of = row.items().next().filter(|_| row.kind == Kind::Span).map(|item| self.string(item.name));
        let name = match row.of {
            Of::Cpu(cpu) => format!("processor {cpu}"),
            _ => of.map_or_else(|| name.to_owned(), |of| format!("{name} {}", name::visible(of))),
        };
        self.track(row, track, &name, out, |_| {});
        let mut last = 0;
        for item in row.items() {
            let name = if row.kind == Kind::Lost { "events are missing" } else { self.string(item.name) };
            let ids = self.encoder.ids(&name::visible(name), category);
            let text = self.string(item.text);
            let file = if row.kind == Kind::Call { self.string(item.subject as u32) } else { "" };
            let kind =
                if matches!(row.kind, Kind::Call | Kind::Run | Kind::Span | Kind::Cpu) { BEGIN } else { INSTANT };
            // Times of a track do not go back.
            let start = item.start.max(last);
            last = start.max(item.start.saturating_add(item.length));
            self.encoder.event(start, out, |event| {
                named(event, kind, track, ids);
                match row.kind {
                    Kind::Call => {
                        [("call", text), ("file", file)].iter().filter(|(_, t)| !t.is_empty()).for_each(|(n, t)| {
                            annotation(event, n, &name::visible(t));
                        });
                        annotation(event, "result", &item.value.to_string());
                    }
                    Kind::Lost => annotation(event, "events", &item.value.to_string()),
                    Kind::Span => annotation(event, "span", &name::visible(text)),
                    Kind::Mark if !text.is_empty() => annotation(event, "event", &name::visible(text)),
                    _ => {}
                }
            });
            if kind == BEGIN {
                self.end(track, last, None, out);
            }
        }
    }

    /// What is outstanding after each allocation and release; how many descriptors are open.
    fn curve(&mut self, row: &Row, track: u64, out: &mut Vec<u8>) {
        let (name, unit) = if row.kind == Kind::Heap { ("heap", BYTES) } else { ("descriptors", COUNT) };
        self.track(row, track, name, out, |descriptor| {
            descriptor.nested(field::track::COUNTER, |counter| counter.number(field::counter::UNIT, unit));
        });
        let (mut sum, mut last) = (0i64, 0);
        let mut level = |time: u64, level: i64, out: &mut Vec<u8>| {
            self.encoder.event(time, out, |event| {
                event.number(field::event::TYPE, COUNTER);
                event.number(field::event::TRACK, track);
                event.number_or_zero(field::event::COUNTER_VALUE, level as u64);
            });
        };
        for item in row.items() {
            sum = sum.saturating_add(item.value);
            last = item.start.max(last);
            level(last, sum, out);
        }
        // What a process had is gone with it.
        let process = tally::process(self.timeline, row).and_then(|process| self.timeline.processes.all().get(process));
        if let Some(process) = process.filter(|p| p.exit.is_some() && sum != 0) {
            level(process.last.max(last), 0, out);
        }
    }

    /// Samples with their stacks.
    fn samples(&mut self, row: &Row, out: &mut Vec<u8>) {
        let Of::Thread(thread) = row.of else { return };
        let Some(t) = self.timeline.processes.threads().get(thread) else { return };
        let pid = self.timeline.processes.all().get(t.process).map_or(0, |p| p.pid);
        let tid = t.tid;
        for item in row.items() {
            self.intern(item.stack);
            self.encoder.timed(item.start, field::packet::PERF_SAMPLE, out, |sample| {
                sample.number(field::sample::PID, pid.into());
                sample.number(field::sample::TID, tid.into());
                sample.number(field::sample::CALLSTACK, item.stack);
            });
        }
    }

    /// Has the next packet say what a stack is, where none has.
    fn intern(&mut self, stack: u64) {
        let frames = self.all_stacks.get((stack as usize).wrapping_sub(1)).copied().unwrap_or_default();
        if stack == 0 || !self.stacks.insert(stack) {
            return;
        }
        for number in frames {
            if !self.frames.insert(*number) {
                continue;
            }
            let of = self.timeline.frames.all().get((*number as usize).wrapping_sub(1));
            let [function, module, ..] = of.copied().unwrap_or_default();
            let (function, module) = (name::visible(self.string(function)), name::visible(self.string(module)));
            let interned = &mut self.encoder.interned;
            let function = self.functions.id(&function, field::interned::FUNCTIONS, interned);
            let path = self.paths.id(&module, field::interned::PATHS, interned);
            if self.mappings.insert(path) {
                interned.nested(field::interned::MAPPINGS, |mapping| {
                    mapping.number(field::mapping::ID, path);
                    mapping.number(field::mapping::PATH, path);
                });
            }
            interned.nested(field::interned::FRAMES, |frame| {
                frame.number(field::frame::ID, (*number).into());
                frame.number(field::frame::FUNCTION, function);
                frame.number(field::frame::MAPPING, path);
            });
        }
        // The outermost first.
        self.encoder.interned.nested(field::interned::CALLSTACKS, |callstack| {
            callstack.number(field::callstack::ID, stack);
            frames.iter().rev().for_each(|f| callstack.number(field::callstack::FRAMES, (*f).into()));
        });
    }

    /// Who has begun or woken whom: an instant on both sides, and a flow between them.
    fn flows(&mut self, mut track: u64, out: &mut Vec<u8>) {
        let mut ends: Vec<(u64, u64, u64, bool, &str)> = Vec::new();
        for (n, [time, from, to, kind]) in self.timeline.flows.iter().enumerate() {
            let (one, other) = if *kind == 0 { ("starts", "started") } else { ("wakes", "woken") };
            ends.push((*from, *time, n as u64 + 1, false, one));
            ends.push((*to, *time, n as u64 + 1, true, other));
        }
        ends.sort_unstable();
        let mut of = None;
        for (thread, time, flow, is_last, what) in ends {
            if of != Some(thread) {
                of = Some(thread);
                track += 1;
                describe(track, out, |descriptor| {
                    descriptor.bytes_of(field::track::NAME, b"who begins and wakes whom");
                    descriptor.number(field::track::PARENT, thread_track(thread as usize));
                });
            }
            let ids = self.encoder.ids(what, "sched");
            let field = if is_last { field::event::LAST_FLOWS } else { field::event::FLOWS };
            self.encoder.event(time, out, |event| {
                named(event, INSTANT, track, ids);
                event.fixed(field, flow);
            });
        }
    }
}
