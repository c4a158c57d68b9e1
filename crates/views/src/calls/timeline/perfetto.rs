//! Perfetto's format: a message `perfetto.protos.Trace` (perfetto_trace.proto of google/perfetto).
//!
//! ```text
//! packet { clocks: monotonic and real time; from now on, times are monotonic }
//! packet { a process }  packet { a thread: a track }
//! packet { name 1 is "main"; main begins on the track, at … }   packet { a slice ends on the track, at … }
//! ```
//!
//! What was lost is in the statistics of a trace's buffer, which Perfetto's interface shows as a loss of data.
//!
//! All packets are one sequence, in which each name is written once and is a number from then on. Packets of different threads need not be in
//! the order of their times.

use super::super::by_function::ByFunction;
use super::super::label;
use super::super::stack::{Call, Ending};
use super::{ELSEWHERE, Format, Losses, SystemCall, Thread, Track};
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
        pub const TRACE_STATS: u32 = 35;
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
        pub const NAME: u32 = 2;
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
    pub mod trace_stats {
        pub const BUFFER: u32 = 1;
    }
    pub mod buffer_stats {
        pub const PACKET_LOSS: u32 = 19;
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
    /// Names that are new in the next packet.
    interned: Message,
}

/// The track of what is of no thread.
const WHOLE_TRACK: u64 = 1;

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

    /// Appends a packet.
    fn packet(flags: u64, out: &mut Vec<u8>, fields: impl FnOnce(&mut Message)) {
        let mut trace = Message { bytes: std::mem::take(out) };
        trace.nested(field::trace::PACKET, |packet| {
            packet.number(field::packet::SEQUENCE, SEQUENCE);
            packet.number(field::packet::SEQUENCE_FLAGS, flags);
            fields(packet);
        });
        *out = trace.bytes;
    }

    /// Appends an event, with the names that are new in it.
    fn event(&mut self, time: u64, out: &mut Vec<u8>, fields: impl FnOnce(&mut Message)) {
        Self::packet(NEEDED, out, |packet| {
            packet.number(field::packet::TIMESTAMP, time);
            packet.nested(field::packet::TRACK_EVENT, fields);
            if !self.interned.bytes.is_empty() {
                packet.message(field::packet::INTERNED_DATA, &self.interned);
                self.interned.bytes.clear();
            }
        });
    }

    /// Number of name and category of a function.
    fn function(&mut self, track: &Track<'_>, function: u32) -> (u64, u64) {
        let known = *self.functions.of(function);
        if known.0 > 0 {
            return known;
        }
        let (name, module) = (label::plain(function, track.functions), label::module(function, track.functions));
        let ids = self.ids(&name, &module);
        *self.functions.of(function) = ids;
        ids
    }

    /// Numbers of a name and a category.
    fn ids(&mut self, name: &str, category: &str) -> (u64, u64) {
        (
            self.names.id(name, field::interned::NAMES, &mut self.interned),
            self.categories.id(category, field::interned::CATEGORIES, &mut self.interned),
        )
    }

    fn slice_end(&mut self, thread: Thread<'_>, time: u64, note: Option<&str>, out: &mut Vec<u8>) {
        self.event(time, out, |event| {
            event.number(field::event::TYPE, END);
            event.number(field::event::TRACK, thread_track(thread));
            if let Some(note) = note {
                annotation(event, "end", note);
            }
        });
    }
}

fn annotation(event: &mut Message, name: &str, text: &str) {
    event.nested(field::event::ANNOTATION, |m| {
        m.bytes_of(field::annotation::NAME, name.as_bytes());
        m.bytes_of(field::annotation::STRING, text.as_bytes());
    });
}

/// The fields of an event with the numbers of its name and category.
fn named(event: &mut Message, kind: u64, track: u64, (name, category): (u64, u64)) {
    event.number(field::event::TYPE, kind);
    event.number(field::event::TRACK, track);
    event.number(field::event::NAME, name);
    event.number(field::event::CATEGORY, category);
}

impl Format for Perfetto {
    fn begin(&mut self, time: u64, out: &mut Vec<u8>) {
        let real = self.realtime_offset.map(|offset| (REALTIME, time.saturating_add_signed(offset)));
        Self::packet(CLEARED, out, |packet| {
            packet.nested(field::packet::CLOCK_SNAPSHOT, |snapshot| {
                for (id, time) in [(MONOTONIC, time)].into_iter().chain(real) {
                    snapshot.nested(field::clock_snapshot::CLOCKS, |clock| {
                        clock.number(field::clock::ID, id);
                        clock.number_or_zero(field::clock::TIMESTAMP, time);
                    });
                }
                snapshot.number(field::clock_snapshot::PRIMARY, MONOTONIC);
            });
            packet.nested(field::packet::DEFAULTS, |defaults| defaults.number(field::defaults::CLOCK, MONOTONIC));
        });
    }

    fn thread(&mut self, track: &mut Track<'_>) {
        let t = track.thread;
        let comm = name::visible(t.comm);
        if self.processes.insert(t.pid) {
            describe(process_track(t), track.out, |descriptor| {
                descriptor.nested(field::track::PROCESS, |process| {
                    process.number(field::process::PID, u64::from(t.pid));
                    process.bytes_of(field::process::NAME, comm.as_bytes());
                });
            });
        }
        describe(thread_track(t), track.out, |descriptor| {
            descriptor.nested(field::track::THREAD, |thread| {
                thread.number(field::thread::PID, u64::from(t.pid));
                thread.number(field::thread::TID, u64::from(t.tid));
                thread.bytes_of(field::thread::NAME, comm.as_bytes());
            });
        });
    }

    fn entered(&mut self, track: &mut Track<'_>, function: u32, time: u64) {
        let ids = self.function(track, function);
        self.event(time, track.out, |event| named(event, BEGIN, thread_track(track.thread), ids));
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
        let ids = self.ids("records are missing", "trapline");
        self.event(time, track.out, |event| {
            named(event, INSTANT, thread_track(track.thread), ids);
            annotation(event, "records", &dropped.to_string());
        });
    }

    fn system_call(&mut self, track: &mut Track<'_>, call: &SystemCall<'_>) {
        let ids = self.ids(&name::visible(call.name), "syscall");
        self.event(call.start, track.out, |event| {
            named(event, BEGIN, thread_track(track.thread), ids);
            annotation(event, "call", &name::visible(call.text));
        });
        self.slice_end(track.thread, call.end.max(call.start), None, track.out);
    }

    fn end(&mut self, losses: Option<Losses>, out: &mut Vec<u8>) {
        let Some(Losses { all, elsewhere, last }) = losses.filter(|l| l.all > 0) else { return };
        if elsewhere > 0 {
            describe(WHOLE_TRACK, out, |descriptor| descriptor.bytes_of(field::track::NAME, ELSEWHERE.as_bytes()));
            let ids = self.ids(ELSEWHERE, "trapline");
            self.event(last, out, |event| {
                named(event, INSTANT, WHOLE_TRACK, ids);
                annotation(event, "events", &elsewhere.to_string());
            });
        }
        Self::packet(NEEDED, out, |packet| {
            packet.nested(field::packet::TRACE_STATS, |stats| {
                stats.nested(field::trace_stats::BUFFER, |buffer| buffer.number(field::buffer_stats::PACKET_LOSS, all));
            });
        });
    }
}

/// Appends the description of a track.
fn describe(uuid: u64, out: &mut Vec<u8>, fields: impl FnOnce(&mut Message)) {
    Perfetto::packet(NEEDED, out, |packet| {
        packet.nested(field::packet::TRACK_DESCRIPTOR, |descriptor| {
            descriptor.number(field::track::UUID, uuid);
            fields(descriptor);
        });
    });
}
