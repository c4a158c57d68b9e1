//! Perfetto's format: messages of `perfetto.protos.Trace` (perfetto_trace.proto of google/perfetto), one after the other.
//!
//! ```text
//! packet { clocks: monotonic and real time; from now on, times are monotonic }
//! packet { a process }  packet { a thread: a track }
//! packet { name 1 is "main"; main begins on the track, at … }   packet { a slice ends on the track, at … }
//! ```
//!
//! All packets are one sequence, in which each name is written once and is a number from then on. What was lost is in the statistics of a
//! trace's buffer, which Perfetto's interface shows as a loss of data. Packets of different tracks need not be in the order of their times.

use crate::protobuf::Message;
use std::collections::HashMap;

/// Numbers of the fields of the messages, by perfetto_trace.proto.
pub mod field {
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
        pub const PERF_SAMPLE: u32 = 66;
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
        pub const PARENT: u32 = 5;
        pub const COUNTER: u32 = 8;
    }
    pub mod counter {
        pub const UNIT: u32 = 3;
    }
    pub mod sample {
        pub const PID: u32 = 2;
        pub const TID: u32 = 3;
        pub const CALLSTACK: u32 = 4;
    }
    pub mod frame {
        pub const ID: u32 = 1;
        pub const FUNCTION: u32 = 2;
        pub const MAPPING: u32 = 3;
    }
    pub mod callstack {
        pub const ID: u32 = 1;
        pub const FRAMES: u32 = 2;
    }
    pub mod mapping {
        pub const ID: u32 = 1;
        pub const PATH: u32 = 7;
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
        pub const COUNTER_VALUE: u32 = 30;
        pub const FLOWS: u32 = 47;
        pub const LAST_FLOWS: u32 = 48;
    }
    pub mod annotation {
        pub const STRING: u32 = 6;
        pub const NAME: u32 = 10;
    }
    pub mod interned {
        pub const CATEGORIES: u32 = 1;
        pub const NAMES: u32 = 2;
        pub const FUNCTIONS: u32 = 5;
        pub const FRAMES: u32 = 6;
        pub const CALLSTACKS: u32 = 7;
        pub const PATHS: u32 = 17;
        pub const MAPPINGS: u32 = 19;
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
pub const BEGIN: u64 = 1;
pub const END: u64 = 2;
pub const INSTANT: u64 = 3;
pub const COUNTER: u64 = 4;
/// CounterDescriptor.Unit: UNIT_COUNT.
pub const COUNT: u64 = 2;
/// CounterDescriptor.Unit: UNIT_SIZE_BYTES.
pub const BYTES: u64 = 3;
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
pub struct Names(HashMap<String, u64>);

impl Names {
    /// The number of a name, and the field that introduces it where it is new.
    pub fn id(&mut self, name: &str, field: u32, interned: &mut Message) -> u64 {
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

/// What writes packets.
#[derive(Debug, Default)]
pub struct Encoder {
    names: Names,
    categories: Names,
    /// Names that are new in the next packet.
    pub interned: Message,
}

/// The track of what is of no thread.
pub const WHOLE_TRACK: u64 = 1;

impl Encoder {
    /// Begins a file; `time` is that of the first event, and the clock is that much behind the time of day.
    pub fn begin(time: u64, realtime_offset: Option<i64>, out: &mut Vec<u8>) {
        let real = realtime_offset.map(|offset| (REALTIME, time.saturating_add_signed(offset)));
        packet(CLEARED, out, |packet| {
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

    /// Appends an event, with the names that are new in it.
    pub fn event(&mut self, time: u64, out: &mut Vec<u8>, fields: impl FnOnce(&mut Message)) {
        self.timed(time, field::packet::TRACK_EVENT, out, fields);
    }

    /// Appends a packet with a time and a message, with the names that are new in it.
    pub fn timed(&mut self, time: u64, field: u32, out: &mut Vec<u8>, fields: impl FnOnce(&mut Message)) {
        packet(NEEDED, out, |packet| {
            packet.number(field::packet::TIMESTAMP, time);
            packet.nested(field, fields);
            if !self.interned.bytes.is_empty() {
                packet.message(field::packet::INTERNED_DATA, &self.interned);
                self.interned.bytes.clear();
            }
        });
    }

    /// Numbers of a name and a category.
    pub fn ids(&mut self, name: &str, category: &str) -> (u64, u64) {
        (
            self.names.id(name, field::interned::NAMES, &mut self.interned),
            self.categories.id(category, field::interned::CATEGORIES, &mut self.interned),
        )
    }

    /// Ends a file that lacks `all` events, `elsewhere` of them without a mark; `last` is the time of the last event.
    pub fn losses(&mut self, all: u64, elsewhere: u64, last: u64, what: &str, out: &mut Vec<u8>) {
        if elsewhere > 0 {
            describe(WHOLE_TRACK, out, |descriptor| descriptor.bytes_of(field::track::NAME, what.as_bytes()));
            let ids = self.ids(what, "trapline");
            self.event(last, out, |event| {
                named(event, INSTANT, WHOLE_TRACK, ids);
                annotation(event, "events", &elsewhere.to_string());
            });
        }
        packet(NEEDED, out, |packet| {
            packet.nested(field::packet::TRACE_STATS, |stats| {
                stats.nested(field::trace_stats::BUFFER, |buffer| buffer.number(field::buffer_stats::PACKET_LOSS, all));
            });
        });
    }
}

/// Describes the track of a process.
pub fn process(track: u64, pid: u32, name: &str, out: &mut Vec<u8>) {
    describe(track, out, |descriptor| {
        descriptor.nested(field::track::PROCESS, |process| {
            process.number(field::process::PID, pid.into());
            process.bytes_of(field::process::NAME, name.as_bytes());
        });
    });
}

/// Describes the track of a thread.
pub fn thread(track: u64, (pid, tid): (u32, u32), name: &str, out: &mut Vec<u8>) {
    describe(track, out, |descriptor| {
        descriptor.nested(field::track::THREAD, |thread| {
            thread.number(field::thread::PID, pid.into());
            thread.number(field::thread::TID, tid.into());
            thread.bytes_of(field::thread::NAME, name.as_bytes());
        });
    });
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

/// Adds a text to an event.
pub fn annotation(event: &mut Message, name: &str, text: &str) {
    event.nested(field::event::ANNOTATION, |m| {
        m.bytes_of(field::annotation::NAME, name.as_bytes());
        m.bytes_of(field::annotation::STRING, text.as_bytes());
    });
}

/// The fields of an event with the numbers of its name and category.
pub fn named(event: &mut Message, kind: u64, track: u64, (name, category): (u64, u64)) {
    event.number(field::event::TYPE, kind);
    event.number(field::event::TRACK, track);
    event.number(field::event::NAME, name);
    event.number(field::event::CATEGORY, category);
}

/// Appends the description of a track.
pub fn describe(uuid: u64, out: &mut Vec<u8>, fields: impl FnOnce(&mut Message)) {
    packet(NEEDED, out, |packet| {
        packet.nested(field::packet::TRACK_DESCRIPTOR, |descriptor| {
            descriptor.number(field::track::UUID, uuid);
            fields(descriptor);
        });
    });
}
