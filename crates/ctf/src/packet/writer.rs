//! The writer of one stream's packets.

use super::{FULL, FULL_UNPACKED, FUNCTIONS_HEADER, Functions, HEADER, Info};
use events::StreamId;
use events::functions::{self, Moment, RECORD, time};

/// Bytes of the longest record with values that an agent writes, and some.
const LONGEST: usize = 1 << 10;

/// A whole packet, ready to be stored.
#[derive(Debug)]
pub struct Packet {
    /// Which stream it is of.
    pub stream: StreamId,
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// Its events.
    pub events: u64,
}

/// The word of a record as a trace with values has it ([`crate::records`]).
fn stored(word: u32) -> u32 {
    word & 1 | (word >> 31) << 1 | (word & !functions::VALUES) >> 1 << 2
}

/// Writes the packets of one stream.
#[derive(Debug)]
pub struct PacketWriter {
    info: Info,
    full: usize,
    bytes: Vec<u8>,
    events: u64,
    /// Events whose time was before that of the event before them, and was set to it.
    clamped: u64,
}

impl PacketWriter {
    /// A stream without packets, whose clock shows `now` at the start.
    pub fn new(uuid: [u8; 16], stream: StreamId, now: u64) -> PacketWriter {
        let (begin, end) = (now, now);
        let (content, size, seq, discarded, functions, unpacked) = (0, 0, 0, 0, None, None);
        let info = Info { uuid, stream, begin, end, content, size, seq, discarded, functions, unpacked };
        PacketWriter { info, full: FULL, bytes: Vec::new(), events: 0, clamped: 0 }
    }

    /// A stream of function records. None has come before `first`.
    pub fn of_functions(uuid: [u8; 16], stream: StreamId, pid: u32, first: Moment) -> PacketWriter {
        let mut writer = PacketWriter::new(uuid, stream, first.monotonic);
        let (begin, end, last) = (first.tsc, first.tsc, first);
        writer.info.functions = Some(Functions { begin, end, pid, number: 0, first, last, values: false });
        writer
    }

    /// Its records may have values.
    pub fn with_values(mut self) -> PacketWriter {
        self.info.functions.iter_mut().for_each(|f| f.values = true);
        self
    }

    /// Bytes of the longest record.
    #[inline]
    fn longest(&self) -> usize {
        if self.info.functions.is_some_and(|f| f.values) { LONGEST } else { RECORD }
    }

    /// Records of another thread or program follow, in a packet of their own.
    pub fn begin_thread(&mut self, pid: u32) {
        if let Some(f) = &mut self.info.functions {
            (f.pid, f.number) = (pid, f.number.wrapping_add(1));
        }
    }

    /// Whether it is a stream of function records.
    #[inline]
    pub fn has_records(&self) -> bool {
        self.info.functions.is_some()
    }

    /// The process of its function records.
    pub fn pid(&self) -> u32 {
        self.info.functions.map_or(0, |f| f.pid)
    }

    /// The upper half of the counter that records get which have this one: time does not go back.
    fn upper(&self, high: u32) -> u32 {
        self.info.functions.map_or(high, |f| high.max((f.end >> 32) as u32))
    }

    /// Whether records with this upper half of the counter can follow in the open packet, or begin a new one.
    pub fn takes_records(&self, high: u32) -> bool {
        let Some(f) = &self.info.functions else { return false };
        self.bytes.is_empty()
            || (f.begin >> 32) as u32 == self.upper(high) && self.bytes.len() + self.longest() <= self.full
    }

    /// Appends records with this upper half of the counter, made between two moments: as many as there is room for. Returns how many
    /// bytes it has taken. Times that go back are set to the time of the record before.
    pub fn push_records(&mut self, records: &[u8], high: u32, first: Moment, last: Moment) -> usize {
        let upper = self.upper(high);
        let (begins, full) = (self.bytes.is_empty(), self.full.max(FUNCTIONS_HEADER + self.longest()));
        let Some(f) = &mut self.info.functions else { return 0 };
        if begins {
            self.bytes.reserve(full);
            self.bytes.resize(FUNCTIONS_HEADER, 0);
            f.first = first;
            self.info.begin = first.monotonic.max(self.info.end);
        }
        if f.values {
            return self.push_values(records, (high, upper), (begins, full), last);
        }
        let room = (full.saturating_sub(self.bytes.len()) / RECORD).min(records.len() / RECORD);
        let (taken, at) = (&records[..room * RECORD], self.bytes.len());
        let all = taken.as_chunks::<RECORD>().0;
        let (Some(one), Some(end)) = (all.first(), all.last()) else { return 0 };
        self.bytes.extend_from_slice(taken);
        let whole = |t: u32| u64::from(upper) << 32 | u64::from(t);
        // Pairs of neighbours, without a dependence from one to the next.
        let goes_back = |back: bool, (a, b): (&[u8; RECORD], &[u8; RECORD])| back | (time(b) < time(a));
        let back = all.iter().zip(&all[1..]).fold(false, goes_back);
        if back || upper != high || whole(time(one)) < f.end {
            let mut time_now = f.end.max(u64::from(upper) << 32) as u32;
            for record in self.bytes[at..].as_chunks_mut::<RECORD>().0 {
                if upper != high || time(record) < time_now {
                    self.clamped += u64::from(upper != high || time(record) != time_now);
                    record[..4].copy_from_slice(&time_now.to_le_bytes());
                }
                time_now = time(record);
            }
            let first_now = self.bytes[at..].first_chunk::<RECORD>().map_or(0, time);
            if begins {
                f.begin = whole(first_now);
            }
            f.end = whole(time_now);
        } else {
            if begins {
                f.begin = whole(time(one));
            }
            f.end = whole(time(end));
        }
        f.last = last;
        self.info.end = self.info.end.max(last.monotonic);
        self.events += room as u64;
        taken.len()
    }

    /// [`PacketWriter::push_records`], where they may have values. The header is there.
    fn push_values(
        &mut self,
        records: &[u8],
        (high, upper): (u32, u32),
        (begins, full): (bool, usize),
        last: Moment,
    ) -> usize {
        let Some(f) = &mut self.info.functions else { return 0 };
        let (mut taken, mut is_first) = (0, begins);
        for record in functions::each(records) {
            let (Some(head), Some(rest)) = (record.first_chunk(), record.get(RECORD..)) else { break };
            if self.bytes.len() + record.len() > full {
                break;
            }
            let least = f.end.max(u64::from(upper) << 32);
            let at = (u64::from(upper) << 32 | u64::from(time(head))).max(least);
            self.clamped += u64::from(upper != high || at as u32 != time(head));
            if std::mem::take(&mut is_first) {
                f.begin = at;
            }
            f.end = at;
            self.bytes.extend_from_slice(&(at as u32).to_le_bytes());
            self.bytes.extend_from_slice(&stored(functions::word(head)).to_le_bytes());
            self.bytes.extend_from_slice(rest);
            taken += record.len();
            self.events += 1;
        }
        f.last = last;
        self.info.end = self.info.end.max(last.monotonic);
        taken
    }

    /// Whether the packet should be closed now.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.bytes.len() + self.longest() > self.full
    }

    /// Closes packets at `full` bytes: where little room is left for each, or they will be compressed.
    pub fn full_at(mut self, full: usize) -> PacketWriter {
        self.full = full.min(if self.has_records() { FULL } else { FULL_UNPACKED });
        self
    }

    /// Appends an event. Returns whether the packet should be closed now.
    #[inline]
    pub fn push(&mut self, event: &[u8]) -> bool {
        let Some(time) = event.first_chunk::<8>().map(|b| u64::from_le_bytes(*b)) else { return false };
        if self.bytes.is_empty() {
            let usual = self.full.min(FULL);
            self.bytes.reserve(usual + (usual >> 3));
            self.bytes.resize(HEADER, 0);
            self.info.begin = time.max(self.info.end);
        }
        self.bytes.resize(self.bytes.len().next_multiple_of(8), 0);
        let at = self.bytes.len();
        self.bytes.extend_from_slice(event);
        if time < self.info.end {
            self.clamped += 1;
            self.bytes[at..at + 8].copy_from_slice(&self.info.end.to_le_bytes());
        } else {
            self.info.end = time;
        }
        self.events += 1;
        self.bytes.len() >= self.full
    }

    /// The time of the first event of the open packet.
    #[inline]
    pub fn waiting_since(&self) -> Option<u64> {
        (!self.bytes.is_empty()).then_some(self.info.begin)
    }

    /// Closes the packet, which may be empty. An empty one that is the first of its stream has room for a second
    /// header after its own ([`super::split`]).
    pub fn close(&mut self) -> Packet {
        let first = self.bytes.is_empty() && self.info.seq == 0;
        let head = self.info.head();
        if self.bytes.is_empty() {
            self.bytes.resize(head, 0);
            self.info.begin = self.info.end;
            self.info.functions.iter_mut().for_each(|f| f.begin = f.end);
        }
        let mut bytes = std::mem::take(&mut self.bytes);
        self.info.content = bytes.len() as u64;
        bytes.resize(if first { 2 * head } else { bytes.len().next_multiple_of(8) }, 0);
        self.info.size = bytes.len() as u64;
        self.info.write(&mut bytes);
        self.info.seq += 1;
        Packet { stream: self.info.stream, bytes, events: std::mem::take(&mut self.events) }
    }

    /// Notes that the time is `now`, without an event.
    pub fn advance(&mut self, now: u64) {
        // Of function records nobody knows the counter at that time.
        if self.bytes.is_empty() && self.info.functions.is_none() {
            self.info.end = self.info.end.max(now);
        }
    }

    /// Events of this stream that were lost, as far as known; never less than before.
    pub fn discarded(&self) -> u64 {
        self.info.discarded
    }

    /// Sets how many events of this stream were lost so far.
    pub fn set_discarded(&mut self, n: u64) {
        self.info.discarded = self.info.discarded.max(n);
    }

    /// A buffer for the next packet.
    pub fn reuse(&mut self, buffer: Vec<u8>) {
        if self.bytes.is_empty() {
            self.bytes = buffer;
            self.bytes.clear();
        }
    }

    /// Events whose time had to be changed, by nanoseconds as a rule, so that the stream does not go back in time.
    pub fn clamped(&self) -> u64 {
        self.clamped
    }
}
