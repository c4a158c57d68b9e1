//! A model prepared for reading: every path is replaced by the slot that holds its value, every alignment is known.

mod build;

use std::collections::HashMap;
use std::sync::Arc;

use crate::model::{Base, ByteOrder, Clock, Label};

/// No slot, no role, no clock.
pub(crate) const NONE: u32 = u32::MAX;
/// Fields whose values steer the reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Role {
    Magic,
    StreamId,
    StreamInstance,
    Begin,
    End,
    ContentSize,
    PacketSize,
    Discarded,
    Sequence,
    EventId,
}

/// How many roles there are.
pub(crate) const ROLES: usize = 10;

/// An integer to be read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Int {
    pub size: u32,
    pub signed: bool,
    pub order: ByteOrder,
    pub base: Base,
    /// The slot that keeps its value, if a length or a tag needs it.
    pub slot: u32,
    pub role: u32,
    pub clock: u32,
}

/// How many elements.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Length {
    Fixed(u64),
    Slot(u32),
}

/// Labels of an enumeration by value.
#[derive(Debug, Default)]
pub(crate) struct Labels {
    pub ranges: Vec<(i128, i128, Arc<str>)>,
    overlap: bool,
}

impl Labels {
    pub fn new(labels: &[Label]) -> Labels {
        let mut ranges: Vec<_> = labels.iter().map(|l| (l.first, l.last, Arc::from(l.name.as_str()))).collect();
        let overlap = {
            let mut sorted: Vec<(i128, i128)> = labels.iter().map(|l| (l.first, l.last)).collect();
            sorted.sort_unstable();
            sorted.windows(2).any(|w| w[0].1 >= w[1].0)
        };
        if !overlap {
            order::by_key(&mut ranges, |r| r.0);
        }
        Labels { ranges, overlap }
    }

    /// All labels of a value, in the order of the metadata.
    pub fn of(&self, value: i128) -> Vec<Arc<str>> {
        let inside = |r: &&(i128, i128, Arc<str>)| (r.0..=r.1).contains(&value);
        if self.overlap {
            return self.ranges.iter().filter(inside).map(|r| r.2.clone()).collect();
        }
        let at = self.ranges.partition_point(|r| r.0 <= value);
        self.ranges[..at].last().filter(inside).map(|r| vec![r.2.clone()]).unwrap_or_default()
    }
}

#[derive(Debug)]
pub(crate) enum Kind {
    Int(Int),
    Enum(Int, Labels),
    /// Of 32 or 64 bits.
    Float(u32, ByteOrder),
    Str,
    Struct(Arc<[String]>, Vec<u32>),
    /// Elements of 8 bits; whether they are text.
    Bytes(Length, bool, Base, ByteOrder),
    Array(u32, Length),
    /// The tag's slot; ranges of the tag, each with the index of its option; names and nodes of the options.
    Variant(u32, Vec<(i128, i128, usize)>, Arc<[String]>, Vec<u32>),
}

#[derive(Debug)]
pub(crate) struct Node {
    /// In bits.
    pub align: u64,
    /// Fewest bits that a value takes.
    pub min: u64,
    pub kind: Kind,
}

/// A class of events, ready to be read.
#[derive(Debug)]
pub struct Class {
    /// Id within its stream class.
    pub id: u64,
    /// Name.
    pub name: String,
    /// Level, as in syslog and LTTng.
    pub loglevel: Option<i64>,
    pub(crate) context: Option<u32>,
    pub(crate) fields: Option<u32>,
}

#[derive(Debug)]
pub(crate) struct StreamPlan {
    pub packet_context: Option<u32>,
    pub event_header: Option<u32>,
    pub event_context: Option<u32>,
    pub events: HashMap<u64, Arc<Class>>,
    /// Clock and size in bits of `timestamp_begin`.
    pub begin: Option<(usize, u32)>,
    pub end: Option<(usize, u32)>,
    /// Size in bits of `events_discarded` and `packet_seq_num`.
    pub discarded_size: u32,
    pub sequence_size: u32,
}

/// How to read the streams of a trace.
#[derive(Debug)]
pub struct Plan {
    pub(crate) nodes: Vec<Node>,
    pub(crate) slots: usize,
    pub(crate) packet_header: Option<u32>,
    pub(crate) streams: HashMap<u64, Arc<StreamPlan>>,
    pub(crate) clocks: Vec<Clock>,
    pub(crate) uuid: Option<[u8; 16]>,
}

/// The part of the metadata that cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The packet header.
    Trace,
    /// A stream class, by index.
    Stream(usize),
    /// An event class, by the index of its stream class and its own.
    Event(usize, usize),
}

/// Why no plan can be made from metadata.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct PlanError {
    /// Where.
    pub place: Place,
    /// What.
    pub message: String,
}

impl Plan {
    pub(crate) fn node(&self, index: u32) -> &Node {
        &self.nodes[index as usize]
    }
}
