//! Function records of a trace, thread by thread: no events, no allocation per record. For views that need each thread's records only.
//!
//! ```text
//! let mut packets = thread.packets(0..=u64::MAX);
//! while let Some(packet) = packets.next() {
//!     // packet.lost, packet.begins: what was open in the thread is not known any more
//!     for record in packet.records() { /* record.time, record.function, record.exit */ }
//! }
//! ```
//!
//! Threads may be read by several threads at once ([`Data::function_threads`]). A packet has at most 32,768 records as trapline writes it.

use crate::native::{Data, Place, Stream};
use crate::packet::{self, Info};
use events::StreamId;
use events::functions::{Clock, RECORD, time, word};
use std::ops::RangeInclusive;

/// An entry or exit of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// When, ns of the monotonic clock; within a stream never less than before.
    pub time: u64,
    /// The number of the function ([`events::functions::Table`]). Of a damaged trace it may be any.
    pub function: u32,
    /// It has returned, or was left.
    pub exit: bool,
}

/// Makes records of the bytes of a packet, in their order.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Decoder {
    clock: Clock,
    tsc: u64,
    /// The time of the last record, and that of the last one of the packet, ns.
    span: (u64, u64),
}

impl Decoder {
    /// At the first record of a packet.
    pub(crate) fn new(info: &Info) -> Decoder {
        let of = info.functions.unwrap_or_default();
        Decoder { clock: of.clock(), tsc: of.begin, span: (info.begin, info.end.max(info.begin)) }
    }

    /// The next record.
    #[inline]
    pub(crate) fn record(&mut self, record: &[u8; RECORD]) -> Record {
        let word = word(record);
        // The lower half of the counter is a step forward from the one before, as readers of the format have it.
        self.tsc = self.tsc.wrapping_add(u64::from(time(record).wrapping_sub(self.tsc as u32)));
        self.span.0 = self.clock.ns(self.tsc).clamp(self.span.0, self.span.1);
        Record { time: self.span.0, function: word >> 1, exit: word & 1 != 0 }
    }
}

/// The records of a packet.
#[derive(Clone, Debug)]
pub struct Records<'a> {
    rest: &'a [[u8; RECORD]],
    decoder: Decoder,
}

impl<'a> Records<'a> {
    /// The records in the content of a packet of function records.
    fn new(content: &'a [u8], info: &Info) -> Records<'a> {
        let bytes = content.get(info.head()..).unwrap_or_default();
        Records { rest: bytes.as_chunks().0, decoder: Decoder::new(info) }
    }
}

impl Iterator for Records<'_> {
    type Item = Record;
    #[inline]
    fn next(&mut self) -> Option<Record> {
        let (record, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(self.decoder.record(record))
    }
    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.rest.len(), Some(self.rest.len()))
    }
}
impl ExactSizeIterator for Records<'_> {}

/// What is missing before a packet of function records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gap {
    /// Records that were lost before they could be stored.
    pub lost: u64,
    /// Packets are missing, of which nobody knows how many records they had: overwritten, damaged.
    pub hole: bool,
}

impl Gap {
    /// What is missing before a packet; `before` is the one before it in the trace.
    pub(crate) fn before(info: &Info, before: Option<&Info>) -> Gap {
        let (seq, discarded) = before.map_or((0, 0), |b| (b.seq.wrapping_add(1), b.discarded));
        Gap { lost: info.discarded.saturating_sub(discarded), hole: info.seq != seq }
    }

    /// Whether anything is.
    pub fn is_one(&self) -> bool {
        self.lost > 0 || self.hole
    }
}

/// A packet of function records.
#[derive(Debug)]
pub struct Packet<'a> {
    /// The process.
    pub pid: u32,
    /// Which thread or program with this id it is, from 0: another one than in the packet before has no calls that are still open.
    pub number: u32,
    /// The number is another one than in the packet before, or this is the first.
    pub begins: bool,
    /// What is missing before it.
    pub gap: Gap,
    /// Time of its first record, ns.
    pub begin: u64,
    /// Time of its last record, ns.
    pub end: u64,
    content: &'a [u8],
    info: Info,
}

impl<'a> Packet<'a> {
    /// Its records, of which there may be none.
    pub fn records(&self) -> Records<'a> {
        Records::new(self.content, &self.info)
    }
}

/// A thread id with its records.
#[derive(Clone, Copy, Debug)]
pub struct Thread<'a> {
    data: &'a Data,
    stream: &'a Stream,
}

impl<'a> Thread<'a> {
    /// The stream.
    pub fn stream(&self) -> StreamId {
        self.stream.id
    }

    /// The thread.
    pub fn tid(&self) -> u32 {
        self.stream.id.scope_id()
    }

    /// How many records it has in the trace.
    pub fn records(&self) -> u64 {
        let all = self.stream.packets.iter().filter(|p| p.info.functions.is_some());
        all.fold(0, |n, p| n.saturating_add(records_of(&p.info)))
    }

    /// Its packets that have records in a window of time, ns, and those that say that records are missing. Records outside of the window
    /// are among them.
    pub fn packets(&self, window: RangeInclusive<u64>) -> Packets<'a> {
        let all = &self.stream.packets;
        let first = all.partition_point(|p| p.info.end < *window.start());
        let last = all.partition_point(|p| p.info.begin <= *window.end()).max(first);
        let before = all[..first].last().map(|p| p.info);
        Packets { data: self.data, rest: &all[first..last], before, last: None, bytes: Vec::new() }
    }
}

/// How many records a packet has.
pub(crate) fn records_of(info: &Info) -> u64 {
    info.content.saturating_sub(packet::FUNCTIONS_HEADER as u64) / RECORD as u64
}

/// The packets of a thread.
#[derive(Debug)]
pub struct Packets<'a> {
    data: &'a Data,
    rest: &'a [Place],
    before: Option<Info>,
    /// Number and process of the packet before, of this window.
    last: Option<(u32, u32)>,
    bytes: Vec<u8>,
}

impl Packets<'_> {
    /// The next one, which is read now. One that cannot be read is damage of the trace, and a hole before the next.
    #[allow(clippy::should_implement_trait, reason = "what it lends lives until the next call")]
    pub fn next(&mut self) -> Option<Packet<'_>> {
        loop {
            let (place, rest) = self.rest.split_first()?;
            self.rest = rest;
            let Some(of) = place.info.functions else { continue };
            let gap = Gap::before(&place.info, self.before.as_ref());
            if records_of(&place.info) == 0 && !gap.is_one() {
                self.before = Some(place.info);
                continue;
            }
            if !self.data.load_or_note(place, &mut self.bytes) {
                continue;
            }
            self.before = Some(place.info);
            let begins = self.last.replace((of.number, of.pid)) != Some((of.number, of.pid));
            return Some(Packet {
                pid: of.pid,
                number: of.number,
                begins,
                gap,
                begin: place.info.begin,
                end: place.info.end,
                content: &self.bytes,
                info: place.info,
            });
        }
    }
}

impl Data {
    /// The threads that have function records, in the order of their ids.
    pub fn function_threads(&self) -> Vec<Thread<'_>> {
        let has = |s: &&Stream| s.packets.iter().any(|p| p.info.functions.is_some());
        self.streams.iter().filter(has).map(|stream| Thread { data: self, stream }).collect()
    }
}
