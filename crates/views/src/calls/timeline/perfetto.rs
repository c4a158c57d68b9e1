//! Perfetto's format: a message `perfetto.protos.Trace` (perfetto_trace.proto of google/perfetto).
//!
//! ```text
//! packet { clocks: monotonic and real time; from now on, times are monotonic }
//! packet { a process }  packet { a thread: a track }
//! packet { name 1 is "main"; main begins on the track, at … }   packet { a slice ends on the track, at … }
//! ```
//!
//! All packets are one sequence, in which each name is written once and is a number from then on. Packets of different threads need not be in
//! the order of their times.

use super::super::by_function::ByFunction;
use super::super::stack::{Call, Ending};
use super::super::{SystemCall, Thread, label};
use super::{Format, Track};
use crate::profile::name;
use crate::protobuf::Message;
use std::collections::{HashMap, HashSet};

/// Numbers of the fields of the messages, by perfetto_trace.proto.
mod field {
    pub mod trace {
        pub const PACKET: u32 = 1;
    }
    pub mod packet {
        pub const CLOCK_SNAPSHOT: u32 = 6;
        pub const TIMESTAMP: u32 = 8;
        pub const SEQUENCE: u32 = 10;
        pub const TRACK_EVENT: u32 = 11;
        pub const INTERNED_DATA: u32 = 12;
        pub const SEQUENCE_FLAGS: u32 = 13;
        pub const DEFAULTS: u32 = 59;
        pub const TRACK_DESCRIPTOR: u32 = 60;
    }
    pub mod defaults {
        pub const CLOCK: u32 = 58;
    }
    pub mod clock_snapshot {
        pub const CLOCKS: u32 = 1;
        pub const PRIMARY: u32 = 2;
    }
    pub mod clock {
        pub const ID: u32 = 1;
        pub const TIMESTAMP: u32 = 2;
    }
    pub mod track {
        pub const UUID: u32 = 1;
        pub const PROCESS: u32 = 3;
        pub const THREAD: u32 = 4;
    }
    pub mod process {
        pub const PID: u32 = 1;
        pub const NAME: u32 = 6;
    }
    pub mod thread {
        pub const PID: u32 = 1;
        pub const TID: u32 = 2;
        pub const NAME: u32 = 5;
    }
    pub mod event {
        pub const CATEGORY: u32 = 3;
        pub const ANNOTATION: u32 = 4;
        pub const TYPE: u32 = 9;
        pub const NAME: u32 = 10;
        pub const TRACK: u32 = 11;
    }
    pub mod annotation {
        pub const STRING: u32 = 6;
        pub const NAME: u32 = 10;
    }
    pub mod interned {
        pub const CATEGORIES: u32 = 1;
        pub const NAMES: u32 = 2;
    }
    /// EventName and EventCategory.
    pub mod entry {
        pub const ID: u32 = 1;
        pub const NAME: u32 = 2;
    }
}

/// TrackEvent.Type.
const BEGIN: u64 = 1;
const END: u64 = 2;
const INSTANT: u64 = 3;
/// BuiltinClock.
const REALTIME: u64 = 1;
const MONOTONIC: u64 = 3;
/// TracePacket.SequenceFlags.
const CLEARED: u64 = 1;
const NEEDED: u64 = 2;
/// The one sequence.
const SEQUENCE: u64 = 1;

/// Names with numbers, from 1.
#[derive(Debug, Default)]
struct Names(HashMap<String, u64>);

impl Names {
    /// The number of a name, and the field that introduces it where it is new.
    fn id(&mut self, name: &str, field: u32, interned: &mut Message) -> u64 {
        if let Some(&id) = self.0.get(name) {
            return id;
        }
        let id = self.0.len() as u64 + 1;
        self.0.insert(name.to_owned(), id);
        let mut entry = Message::default();
        entry.number(field::entry::ID, id);
        entry.bytes_of(field::entry::NAME, name.as_bytes());
        interned.message(field, &entry);
        id
    }
}

/// The writer.
#[derive(Debug, Default)]
pub struct Perfetto {
    /// CLOCK_REALTIME minus CLOCK_MONOTONIC, ns, where the trace knows it.
    realtime_offset: Option<i64>,
    names: Names,
    categories: Names,
    /// Numbers of name and category of functions; 0 where they have none yet.
    functions: ByFunction<(u64, u64)>,
    processes: HashSet<u32>,
}

/// The track of a thread.
fn thread_track(t: Thread<'_>) -> u64 {
    1 << 63 | u64::from(t.tid)
}

/// The track of a process.
fn process_track(t: Thread<'_>) -> u64 {
    1 << 62 | u64::from(t.pid)
}

impl Perfetto {
    /// A writer for a trace whose clock is that much behind the time of day.
    pub fn new(realtime_offset: Option<i64>) -> Perfetto {
        Perfetto { realtime_offset, ..Perfetto::default() }
    }

    fn packet(&self, packet: &mut Message, flags: u64, out: &mut Vec<u8>) {
        use field::packet::{SEQUENCE as ID, SEQUENCE_FLAGS};
        packet.number(ID, SEQUENCE);
        packet.number(SEQUENCE_FLAGS, flags);
        let mut trace = Message::default();
        trace.message(field::trace::PACKET, packet);
        out.extend_from_slice(&trace.bytes);
    }

    fn event(&self, time: u64, event: &Message, interned: &Message, out: &mut Vec<u8>) {
        let mut packet = Message::default();
        packet.number(field::packet::TIMESTAMP, time);
        packet.message(field::packet::TRACK_EVENT, event);
        if !interned.bytes.is_empty() {
            packet.message(field::packet::INTERNED_DATA, interned);
        }
        self.packet(&mut packet, NEEDED, out);
    }

    /// Number of name and category of a function.
    fn function(&mut self, track: &Track<'_>, function: u32, interned: &mut Message) -> (u64, u64) {
        let known = *self.functions.of(function);
        if known.0 > 0 {
            return known;
        }
        let (name, module) = (label::plain(function, track.functions), label::module(function, track.functions));
        let ids = (
            self.names.id(&name, field::interned::NAMES, interned),
            self.categories.id(&module, field::interned::CATEGORIES, interned),
        );
        *self.functions.of(function) = ids;
        ids
    }

    fn slice_end(&self, thread: Thread<'_>, time: u64, note: Option<&str>, out: &mut Vec<u8>) {
        let mut event = Message::default();
        event.number(field::event::TYPE, END);
        event.number(field::event::TRACK, thread_track(thread));
        if let Some(note) = note {
            event.message(field::event::ANNOTATION, &annotation("end", note));
        }
        self.event(time, &event, &Message::default(), out);
    }
}

fn annotation(name: &str, text: &str) -> Message {
    let mut m = Message::default();
    m.bytes_of(field::annotation::NAME, name.as_bytes());
    m.bytes_of(field::annotation::STRING, text.as_bytes());
    m
}

/// An event with the numbers of its name and category.
fn named(kind: u64, thread: Thread<'_>, name: u64, category: u64) -> Message {
    let mut event = Message::default();
    event.number(field::event::TYPE, kind);
    event.number(field::event::TRACK, thread_track(thread));
    event.number(field::event::NAME, name);
    event.number(field::event::CATEGORY, category);
    event
}

impl Format for Perfetto {
    fn begin(&mut self, time: u64, out: &mut Vec<u8>) {
        let mut snapshot = Message::default();
        let mut clock = |id, time| {
            let mut m = Message::default();
            m.number(field::clock::ID, id);
            m.number_or_zero(field::clock::TIMESTAMP, time);
            snapshot.message(field::clock_snapshot::CLOCKS, &m);
        };
        clock(MONOTONIC, time);
        if let Some(offset) = self.realtime_offset {
            clock(REALTIME, time.saturating_add_signed(offset));
        }
        snapshot.number(field::clock_snapshot::PRIMARY, MONOTONIC);
        let mut defaults = Message::default();
        defaults.number(field::defaults::CLOCK, MONOTONIC);
        let mut packet = Message::default();
        packet.message(field::packet::CLOCK_SNAPSHOT, &snapshot);
        packet.message(field::packet::DEFAULTS, &defaults);
        self.packet(&mut packet, CLEARED, out);
    }

    fn thread(&mut self, track: &mut Track<'_>) {
        let t = track.thread;
        let comm = name::visible(t.comm);
        let mut describe = |this: &Perfetto, uuid, field, what: &Message| {
            let mut descriptor = Message::default();
            descriptor.number(field::track::UUID, uuid);
            descriptor.message(field, what);
            let mut packet = Message::default();
            packet.message(field::packet::TRACK_DESCRIPTOR, &descriptor);
            this.packet(&mut packet, NEEDED, track.out);
        };
        if self.processes.insert(t.pid) {
            let mut process = Message::default();
            process.number(field::process::PID, u64::from(t.pid));
            process.bytes_of(field::process::NAME, comm.as_bytes());
            describe(self, process_track(t), field::track::PROCESS, &process);
        }
        let mut thread = Message::default();
        thread.number(field::thread::PID, u64::from(t.pid));
        thread.number(field::thread::TID, u64::from(t.tid));
        thread.bytes_of(field::thread::NAME, comm.as_bytes());
        describe(self, thread_track(t), field::track::THREAD, &thread);
    }

    fn entered(&mut self, track: &mut Track<'_>, function: u32, time: u64) {
        let mut interned = Message::default();
        let (name, category) = self.function(track, function, &mut interned);
        self.event(time, &named(BEGIN, track.thread, name, category), &interned, track.out);
    }

    fn ended(&mut self, track: &mut Track<'_>, call: &Call) {
        let note = match call.ending {
            Ending::Returned => None,
            Ending::Left => Some("left without a recorded return"),
            Ending::Unfinished => Some("has not returned"),
        };
        self.slice_end(track.thread, call.end, note, track.out);
    }

    fn gap(&mut self, track: &mut Track<'_>, time: u64, dropped: u64) {
        let mut interned = Message::default();
        let name = self.names.id("records are missing", field::interned::NAMES, &mut interned);
        let category = self.categories.id("trapline", field::interned::CATEGORIES, &mut interned);
        let mut event = named(INSTANT, track.thread, name, category);
        event.message(field::event::ANNOTATION, &annotation("records", &dropped.to_string()));
        self.event(time, &event, &interned, track.out);
    }

    fn system_call(&mut self, track: &mut Track<'_>, call: &SystemCall<'_>) {
        let mut interned = Message::default();
        let name = self.names.id(&name::visible(call.name), field::interned::NAMES, &mut interned);
        let category = self.categories.id("syscall", field::interned::CATEGORIES, &mut interned);
        let mut event = named(BEGIN, track.thread, name, category);
        event.message(field::event::ANNOTATION, &annotation("call", &name::visible(call.text)));
        self.event(call.start, &event, &interned, track.out);
        self.slice_end(track.thread, call.end.max(call.start), None, track.out);
    }

    fn end(&mut self, _out: &mut Vec<u8>) {}
}
