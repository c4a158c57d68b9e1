//! The function records in the bytes of a packet.
//!
//! Where records may have values, their words are others than in memory, so that two bits are the class of a record:
//!
//! ```text
//!  bit    31       30 … 1     0                 31 … 2     1        0
//!         values   function   exit     ──►      function   values   exit
//! ```

use crate::format::Format;
use crate::packet::{self, Info};
use events::functions::{Clock, RECORD, VALUES, time, word};

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
    /// Records may have values.
    values: bool,
}

/// The word of a record that a trace with values has so.
fn restored(word: u32) -> u32 {
    word & 1 | word >> 2 << 1 | (word & 2) << 30
}

impl Decoder {
    /// At the first record of a packet.
    pub(crate) fn new(info: &Info) -> Decoder {
        let of = info.functions.unwrap_or_default();
        Decoder { clock: of.clock(), tsc: of.begin, span: (info.begin, info.end.max(info.begin)), values: of.values }
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

    /// The first record of these bytes, its values, and how long it is; None where none is whole.
    #[inline]
    pub(crate) fn first<'b>(&mut self, bytes: &'b [u8]) -> Option<(Record, &'b [u8], usize)> {
        let head = bytes.first_chunk::<RECORD>()?;
        if !self.values {
            return Some((self.record(head), &[], RECORD));
        }
        let (low, word) = (time(head), restored(word(head)));
        let mut values = &[][..];
        if word & VALUES != 0 {
            let len = u16::from_le_bytes(*bytes.get(RECORD..)?.first_chunk()?);
            values = bytes.get(RECORD + 2..)?.get(..len.into())?;
        }
        let len = if word & VALUES == 0 { RECORD } else { RECORD + 2 + values.len() };
        let mut plain = [0; RECORD];
        plain[..4].copy_from_slice(&low.to_le_bytes());
        plain[4..].copy_from_slice(&(word & !VALUES).to_le_bytes());
        Some((self.record(&plain), values, len))
    }
}

/// The records of a packet.
#[derive(Clone, Debug)]
pub struct Records<'a> {
    rest: &'a [u8],
    decoder: Decoder,
}

impl<'a> Records<'a> {
    /// The records in the content of a packet of function records.
    pub(crate) fn new(content: &'a [u8], info: &Info) -> Records<'a> {
        let bytes = content.get(info.head()..).unwrap_or_default();
        Records { rest: bytes, decoder: Decoder::new(info) }
    }
}

impl Iterator for Records<'_> {
    type Item = Record;
    #[inline]
    fn next(&mut self) -> Option<Record> {
        let (record, _, len) = self.decoder.first(self.rest)?;
        self.rest = self.rest.get(len..).unwrap_or_default();
        Some(record)
    }
    fn size_hint(&self) -> (usize, Option<usize>) {
        (0, Some(self.rest.len() / RECORD))
    }
}

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

/// The records of a packet, given without its header, without the values that are to be left out.
pub(crate) fn without_values(records: &[u8], info: &Info, leaves_out: &dyn Fn(&[u8]) -> bool) -> Vec<u8> {
    let (mut decoder, mut rest, mut out) = (Decoder::new(info), records, Vec::with_capacity(records.len()));
    while let Some((_, values, len)) = decoder.first(rest) {
        let (record, behind) = rest.split_at(len);
        if !values.is_empty() && leaves_out(values) {
            out.extend_from_slice(&record[..RECORD]);
            out.extend_from_slice(&0u16.to_le_bytes());
        } else {
            out.extend_from_slice(record);
        }
        rest = behind;
    }
    out
}

/// How many entries and exits of functions are in a packet that was written here; none where it has events. `values`: they may have values.
pub fn entries_and_exits(packet: &[u8], values: bool) -> (u64, u64) {
    let format = if values { Format::V4 } else { Format::NOW };
    let Some(info) = Info::read(packet, format).ok().filter(|i| i.functions.is_some()) else { return (0, 0) };
    let records = Records::new(packet.get(..info.content as usize).unwrap_or_default(), &info);
    records.fold((0, 0), |(entries, exits), r| (entries + u64::from(!r.exit), exits + u64::from(r.exit)))
}

/// How many records a packet has, at most: those with values take more than [`RECORD`] bytes.
pub(crate) fn records_of(info: &Info) -> u64 {
    info.content.saturating_sub(packet::FUNCTIONS_HEADER as u64) / RECORD as u64
}
