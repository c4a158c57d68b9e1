//! Everything over time in Perfetto's format (`crate::perfetto`): for ui.perfetto.dev, and for its queries.
//!
//! ```text
//! the processors: who is on each; when the session was stopped
//! a process ─┬ heap: a counter of the bytes that are outstanding; one of its open descriptors; spans of two probes, that begin in it
//!            └ a thread: its functions, nested ─┬ calls, with arguments and results
//!                                               ├ runs: on a processor, and off it
//!                                               └ marks; where events are missing
//! samples have stacks; who has begun or woken a thread is a flow to it
//! ```
//!
//! The file is written as it grows: in memory are the rows, and a part of it.

use super::columns::{Item, Row};
use super::curves::{self, is_curve};
use super::words::{self, Words, ending};
use super::{Kind, Of, Timeline, Writer, flows, nested};
use crate::perfetto::{
    BEGIN, BYTES, COUNT, COUNTER, END, Encoder, INSTANT, Names, annotation, describe, field, named, process, thread,
};
use crate::profile::name;
use crate::protobuf::Message;
use crate::spill::Spill;
use std::collections::HashSet;

/// Writes it.
pub const WRITER: Writer = Writer::parts(write);

/// The numbers of tracks: the upper bits distinguish processes, threads and rows.
fn process_track(process: usize) -> u64 {
    1 << 62 | process as u64
}

fn thread_track(thread: usize) -> u64 {
    1 << 63 | thread as u64
}

/// The track of a row, other than of functions.
fn row_track(nth: usize) -> u64 {
    1 << 61 | nth as u64
}

/// The tracks of all processors, of stops of the session, and of events that the file leaves out.
const PROCESSORS: u64 = 1 << 60;
const SESSION: u64 = 2;
const LEFT_OUT: u64 = 3;

/// The size of a part that is written at once, bytes.
const PART: usize = 1 << 16;

struct File<'t, 's> {
    timeline: &'t Timeline,
    encoder: Encoder,
    words: &'t Words<'t>,
    /// Numbers of names and categories of functions; 0 where they have none yet.
    functions: Vec<(u64, u64)>,
    frame_functions: Names,
    paths: Names,
    /// Frames, their files and stacks that are written already.
    frames: HashSet<u32>,
    mappings: HashSet<u64>,
    stacks: HashSet<u64>,
    all_stacks: Vec<&'t [u32]>,
    spill: Spill<'s>,
}

/// Appends the file.
fn write(timeline: &Timeline, out: &mut Vec<u8>, spill: Spill<'_>) {
    Encoder::begin(timeline.first(), timeline.stats.realtime_offset(), out);
    let words = &Words::new(timeline);
    let mut file = File {
        timeline,
        encoder: Encoder::default(),
        words,
        functions: vec![(0, 0); timeline.functions.view().all().len() + 1],
        frame_functions: Names::default(),
        paths: Names::default(),
        frames: HashSet::new(),
        mappings: HashSet::new(),
        stacks: HashSet::new(),
        all_stacks: timeline.frames.stacks().collect(),
        spill,
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
    file.session(out);
    // The functions of a thread are one track: each inside of those around it.
    let same = |a: &&Row, b: &&Row| a.kind == Kind::Function && b.kind == Kind::Function && a.of == b.of;
    let mut tracks = 0;
    for (nth, rows) in rows.chunk_by(same).enumerate() {
        match rows[0].kind {
            Kind::Function => file.nested(rows, out),
            Kind::Sample => file.samples(rows[0], out),
            _ if is_curve(rows[0]) => file.curve(rows[0], row_track(nth), out),
            _ => file.flat(rows[0], row_track(nth), out),
        }
        tracks = nth + 1;
    }
    file.flows(row_track(tracks), out);
    file.left_out(out);
    if let Some((all @ 1.., elsewhere)) = words::lost(timeline, &rows) {
        file.encoder.losses(all, elsewhere, timeline.last, "events are missing", out);
    }
}

impl File<'_, '_> {
    /// Appends an event.
    fn event(&mut self, time: u64, out: &mut Vec<u8>, fields: impl FnOnce(&mut Message)) {
        self.encoder.event(time, out, fields);
        if out.len() >= PART {
            (self.spill)(out);
        }
    }

    /// A slice ends.
    fn end(&mut self, track: u64, time: u64, note: &str, out: &mut Vec<u8>) {
        self.event(time, out, |event| {
            event.number(field::event::TYPE, END);
            event.number(field::event::TRACK, track);
            if !note.is_empty() {
                annotation(event, "end", note);
            }
        });
    }

    /// When the session was stopped.
    fn session(&mut self, out: &mut Vec<u8>) {
        if !self.timeline.pauses.is_empty() {
            describe(SESSION, out, |track| track.bytes_of(field::track::NAME, b"session"));
        }
        for [from, to] in &self.timeline.pauses {
            let ids = self.encoder.ids("stopped", "trapline");
            self.event(*from, out, |event| named(event, BEGIN, SESSION, ids));
            self.end(SESSION, (*to).min(self.timeline.last).max(*from), "", out);
        }
    }

    /// Events that the file leaves out.
    fn left_out(&mut self, out: &mut Vec<u8>) {
        for (nth, (what, n)) in words::left_out(self.timeline).enumerate() {
            if nth == 0 {
                describe(LEFT_OUT, out, |track| track.bytes_of(field::track::NAME, b"left out"));
            }
            let ids = self.encoder.ids(what, "trapline");
            self.event(self.timeline.last, out, |event| {
                named(event, INSTANT, LEFT_OUT, ids);
                annotation(event, "number", &n.to_string());
            });
        }
    }

    /// Numbers of name and category of an item.
    fn ids(&mut self, row: &Row, item: &Item) -> (u64, u64) {
        let known = if row.kind == Kind::Function { self.functions.get_mut(item.name as usize) } else { None };
        match known {
            Some(known @ (0, _)) => {
                let (name, file) = self.words.name(row, item);
                *known = self.encoder.ids(&name, file);
                *known
            }
            Some(known) => *known,
            None => {
                let (name, category) = self.words.name(row, item);
                self.encoder.ids(&name, category)
            }
        }
    }

    /// Functions of a thread, by their depths: a slice begins before those inside of it, and ends after them.
    fn nested(&mut self, rows: &[&Row], out: &mut Vec<u8>) {
        let Of::Thread(thread) = rows[0].of else { return };
        let track = thread_track(thread);
        // Open slices: depth, end, note.
        let mut open: Vec<(u32, u64, &str)> = Vec::new();
        for (depth, item) in nested::in_order(rows) {
            while let Some((_, end, note)) = open.pop_if(|(of, ..)| *of >= depth) {
                self.end(track, end, note, out);
            }
            let ids = self.ids(rows[0], &item);
            self.event(item.start, out, |event| named(event, BEGIN, track, ids));
            open.push((depth, item.start.saturating_add(item.length), ending(&item)));
        }
        while let Some((_, end, note)) = open.pop() {
            self.end(track, end, note, out);
        }
    }

    /// A row as a track below that of its thread or process.
    fn track(&mut self, row: &Row, track: u64, out: &mut Vec<u8>, more: impl FnOnce(&mut Message)) {
        let parent = match row.of {
            Of::Thread(thread) => thread_track(thread),
            Of::Process(process) => process_track(process),
            Of::Cpu(_) => PROCESSORS,
        };
        let name = self.words.row(row);
        describe(track, out, |descriptor| {
            descriptor.bytes_of(field::track::NAME, name.as_bytes());
            descriptor.number(field::track::PARENT, parent);
            more(descriptor);
        });
    }

    /// Slices and marks that are in no others.
    fn flat(&mut self, row: &Row, track: u64, out: &mut Vec<u8>) {
        let is_slice = matches!(row.kind, Kind::Call | Kind::Run | Kind::Span | Kind::Cpu);
        self.track(row, track, out, |_| {});
        let mut last = 0;
        for item in row.items() {
            let ids = self.ids(row, &item);
            // Times of a track do not go back.
            let start = item.start.max(last);
            last = start.max(item.start.saturating_add(item.length));
            let kind = if is_slice { BEGIN } else { INSTANT };
            let words = self.words;
            self.event(start, out, |event| {
                named(event, kind, track, ids);
                words.notes(row, &item, &mut |what, text| annotation(event, what, text));
            });
            if is_slice {
                self.end(track, last, "", out);
            }
        }
    }

    /// What is outstanding after each allocation and release; how many descriptors are open.
    fn curve(&mut self, row: &Row, track: u64, out: &mut Vec<u8>) {
        let unit = if row.kind == Kind::Heap { BYTES } else { COUNT };
        self.track(row, track, out, |descriptor| {
            descriptor.nested(field::track::COUNTER, |counter| counter.number(field::counter::UNIT, unit));
        });
        for (time, level) in curves::levels(self.timeline, row) {
            self.event(time, out, |event| {
                event.number(field::event::TYPE, COUNTER);
                event.number(field::event::TRACK, track);
                event.number_or_zero(field::event::COUNTER_VALUE, level as u64);
            });
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
            if out.len() >= PART {
                (self.spill)(out);
            }
        }
    }

    /// Defines a stack in the next packet, unless an earlier one has.
    fn intern(&mut self, stack: u64) {
        let frames = self.all_stacks.get((stack as usize).wrapping_sub(1)).copied().unwrap_or_default();
        if stack == 0 || !self.stacks.insert(stack) {
            return;
        }
        for number in frames {
            if !self.frames.insert(*number) {
                continue;
            }
            let (function, module) = self.words.frame(*number);
            let interned = &mut self.encoder.interned;
            let function = self.frame_functions.id(&function, field::interned::FUNCTIONS, interned);
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
        let mut of = None;
        for end in flows::ends(self.timeline) {
            if of != Some(end.thread) {
                of = Some(end.thread);
                track += 1;
                describe(track, out, |descriptor| {
                    descriptor.bytes_of(field::track::NAME, b"who begins and wakes whom");
                    descriptor.number(field::track::PARENT, thread_track(end.thread));
                });
            }
            let ids = self.encoder.ids(end.what, "sched");
            let field = if end.is_last { field::event::LAST_FLOWS } else { field::event::FLOWS };
            self.event(end.time, out, |event| {
                named(event, INSTANT, track, ids);
                event.fixed(field, end.flow);
            });
        }
    }
}
