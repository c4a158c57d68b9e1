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
use crate::packet::Info;
use crate::records::records_of;
pub use crate::records::{Gap, Record, Records, entries_and_exits};
use events::StreamId;
use std::ops::RangeInclusive;

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
