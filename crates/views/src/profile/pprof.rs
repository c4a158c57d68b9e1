//! pprof's format: the message `perftools.profiles.Profile` (profile.proto of google/pprof), not compressed.
//!
//! Each stack and labels are a sample with two values: how often, and the weight; of samples with a period, the second is the time.
//! An inlined frame is a line of the location of the frame that contains its code. Locations have no addresses: the names are
//! already here. pprof has no word for guessed frames.

use super::name;
use super::stacks::Stacks;
use super::style::{Style, Terminal};
use super::{Frame, Labels, Unit};
use crate::protobuf::Message;
use std::collections::HashMap;

/// Numbers of the fields of the messages, by profile.proto.
mod field {
    pub mod profile {
        pub const SAMPLE_TYPE: u32 = 1;
        pub const SAMPLE: u32 = 2;
        pub const MAPPING: u32 = 3;
        pub const LOCATION: u32 = 4;
        pub const FUNCTION: u32 = 5;
        pub const STRING_TABLE: u32 = 6;
        pub const TIME_NANOS: u32 = 9;
        pub const DURATION_NANOS: u32 = 10;
        pub const PERIOD_TYPE: u32 = 11;
        pub const PERIOD: u32 = 12;
        pub const COMMENT: u32 = 13;
        pub const DEFAULT_SAMPLE_TYPE: u32 = 14;
    }
    pub mod value_type {
        pub const TYPE: u32 = 1;
        pub const UNIT: u32 = 2;
    }
    pub mod sample {
        pub const LOCATION_ID: u32 = 1;
        pub const VALUE: u32 = 2;
        pub const LABEL: u32 = 3;
    }
    pub mod label {
        pub const KEY: u32 = 1;
        pub const STR: u32 = 2;
        pub const NUM: u32 = 3;
    }
    pub mod mapping {
        pub const ID: u32 = 1;
        pub const FILENAME: u32 = 5;
        pub const HAS_FUNCTIONS: u32 = 7;
        pub const HAS_FILENAMES: u32 = 8;
        pub const HAS_LINE_NUMBERS: u32 = 9;
        pub const HAS_INLINE_FRAMES: u32 = 10;
    }
    pub mod location {
        pub const ID: u32 = 1;
        pub const MAPPING_ID: u32 = 2;
        pub const LINE: u32 = 4;
    }
    pub mod line {
        pub const FUNCTION_ID: u32 = 1;
        pub const LINE: u32 = 2;
    }
    pub mod function {
        pub const ID: u32 = 1;
        pub const NAME: u32 = 2;
        pub const SYSTEM_NAME: u32 = 3;
        pub const FILENAME: u32 = 4;
    }
}

use field::profile as f;

/// Draws a profile in pprof's format.
pub fn draw(stacks: &Stacks, style: &Style, _: Option<Terminal>, out: &mut Vec<u8>) {
    style.lens.whole(stacks, |seen| write(seen, style.realtime_offset, out));
}

/// Appends a profile. `realtime_offset` is CLOCK_REALTIME minus CLOCK_MONOTONIC, ns.
pub fn write(stacks: &Stacks, realtime_offset: i64, out: &mut Vec<u8>) {
    let mut p = Profile::default();
    p.string("");
    p.types(stacks);
    let mut samples = Message::default();
    for e in stacks.entries() {
        let locations = p.locations(stacks, stacks.frames_of(e.stack));
        let scale = match stacks.unit() {
            Unit::Samples { period } if period > 0 => period,
            _ => 1,
        };
        let mut sample = Message::default();
        sample.packed(field::sample::LOCATION_ID, &locations);
        sample
            .packed(field::sample::VALUE, &[positive(e.tally.samples), positive(e.tally.weight.saturating_mul(scale))]);
        p.labels(stacks.labels_of(e.labels), &mut sample);
        samples.message(f::SAMPLE, &sample);
    }
    let comment = super::words::in_all(stacks);
    let comment = p.string(&format!("trapline: {comment}"));
    out.extend_from_slice(&p.head.bytes);
    out.extend_from_slice(&samples.bytes);
    out.extend_from_slice(&p.tables.bytes);
    let mut tail = Message::default();
    p.strings.iter().for_each(|s| tail.bytes_of(f::STRING_TABLE, s.as_bytes()));
    if let Some((first, last)) = stacks.span() {
        let start = i128::from(first) + i128::from(realtime_offset);
        tail.number(f::TIME_NANOS, u64::try_from(start).map_or(0, positive));
        tail.number(f::DURATION_NANOS, positive(last - first));
    }
    tail.number(f::COMMENT, comment);
    out.extend_from_slice(&tail.bytes);
}

/// A value that is an int64 there.
fn positive(v: u64) -> u64 {
    v.min(i64::MAX as u64)
}

/// A profile in the making.
#[derive(Default)]
struct Profile<'a> {
    strings: Vec<String>,
    string_ids: HashMap<String, u64>,
    functions: HashMap<(&'a str, &'a str, bool), u64>,
    mappings: HashMap<(&'a str, bool), u64>,
    /// By the frames of a location: inlined ones and the one that contains them.
    locations: HashMap<&'a [u32], u64>,
    /// Types of values.
    head: Message,
    /// Mappings, locations and functions.
    tables: Message,
}

impl<'a> Profile<'a> {
    fn string(&mut self, s: &str) -> u64 {
        let s = name::visible(s);
        if let Some(&id) = self.string_ids.get(&*s) {
            return id;
        }
        let id = self.strings.len() as u64;
        self.strings.push(s.clone().into_owned());
        self.string_ids.insert(s.into_owned(), id);
        id
    }

    fn value_type(&mut self, kind: &str, unit: &str) -> Message {
        let mut m = Message::default();
        m.number(field::value_type::TYPE, self.string(kind));
        m.number(field::value_type::UNIT, self.string(unit));
        m
    }

    /// The types of both values, and the period.
    fn types(&mut self, stacks: &Stacks) {
        let unit = stacks.unit();
        let (first, second, of) = match unit {
            Unit::Samples { period: 0 } => ("events", "samples", "count"),
            Unit::Samples { .. } => ("samples", "cpu", "nanoseconds"),
            Unit::Nanoseconds => ("events", "time", "nanoseconds"),
            Unit::Bytes => ("events", "space", "bytes"),
            Unit::Events => ("samples", "events", "count"),
        };
        let (first, second) = stacks.blocks().map_or((first, second), |b| (b.objects, b.space));
        let types = [self.value_type(first, "count"), self.value_type(second, of)];
        types.iter().for_each(|t| self.head.message(f::SAMPLE_TYPE, t));
        if let Unit::Samples { period } = unit
            && period > 0
        {
            self.head.message(f::PERIOD_TYPE, &types[1]);
            self.head.number(f::PERIOD, positive(period));
        }
        let id = self.string(second);
        self.head.number(f::DEFAULT_SAMPLE_TYPE, id);
    }

    /// The locations of a stack, innermost first.
    fn locations(&mut self, stacks: &'a Stacks, frames: &'a [u32]) -> Vec<u64> {
        let pieces = frames.split_inclusive(|id| !stacks.frame_at(*id).inlined);
        pieces.map(|piece| self.location(stacks, piece)).collect()
    }

    fn location(&mut self, stacks: &'a Stacks, frames: &'a [u32]) -> u64 {
        if let Some(&id) = self.locations.get(frames) {
            return id;
        }
        let id = self.locations.len() as u64 + 1;
        self.locations.insert(frames, id);
        let mut m = Message::default();
        m.number(field::location::ID, id);
        if let Some(last) = frames.last() {
            m.number(field::location::MAPPING_ID, self.mapping(&stacks.frame_at(*last)));
        }
        for frame in frames {
            let frame = stacks.frame_at(*frame);
            let mut line = Message::default();
            line.number(field::line::FUNCTION_ID, self.function(&frame));
            line.number(field::line::LINE, frame.line.into());
            m.message(field::location::LINE, &line);
        }
        self.tables.message(f::LOCATION, &m);
        id
    }

    fn mapping(&mut self, frame: &Frame<'a>) -> u64 {
        let next = self.mappings.len() as u64 + 1;
        let id = *self.mappings.entry((frame.module, frame.kernel)).or_insert(next);
        if id == next {
            let file = match frame.module {
                "" if frame.kernel => "[kernel]",
                "" => "[unknown]",
                module => module,
            };
            let mut m = Message::default();
            m.number(field::mapping::ID, id);
            m.number(field::mapping::FILENAME, self.string(file));
            // Nothing is left to be looked up.
            for has in [
                field::mapping::HAS_FUNCTIONS,
                field::mapping::HAS_FILENAMES,
                field::mapping::HAS_LINE_NUMBERS,
                field::mapping::HAS_INLINE_FRAMES,
            ] {
                m.number(has, 1);
            }
            self.tables.message(f::MAPPING, &m);
        }
        id
    }

    fn function(&mut self, frame: &Frame<'a>) -> u64 {
        let name = name::function(frame);
        let next = self.functions.len() as u64 + 1;
        // Functions without a name are distinguished by their modules.
        let key = if frame.function.is_empty() { frame.module } else { frame.function };
        let id = *self.functions.entry((key, frame.file, frame.function.is_empty())).or_insert(next);
        if id == next {
            let mut m = Message::default();
            m.number(field::function::ID, id);
            let name = self.string(&name);
            m.number(field::function::NAME, name);
            m.number(field::function::SYSTEM_NAME, name);
            m.number(field::function::FILENAME, self.string(frame.file));
            self.tables.message(f::FUNCTION, &m);
        }
        id
    }

    fn labels(&mut self, labels: Labels<'_>, sample: &mut Message) {
        for (key, n) in [("pid", labels.pid), ("tid", labels.tid)] {
            if n > 0 {
                let mut m = Message::default();
                m.number(field::label::KEY, self.string(key));
                m.number(field::label::NUM, n.into());
                sample.message(field::sample::LABEL, &m);
            }
        }
        if !labels.comm.is_empty() {
            let mut m = Message::default();
            m.number(field::label::KEY, self.string("comm"));
            m.number(field::label::STR, self.string(labels.comm));
            sample.message(field::sample::LABEL, &m);
        }
    }
}
