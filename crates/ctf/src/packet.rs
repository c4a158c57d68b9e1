//! Packets of trapline's own streams: the header before their events, and how they are written ([`PacketWriter`]).
//!
//! ```text
//!  0     4      20        24                   32      40    48        56       64   72          80
//!  ┌─────┬──────┬─────────┬────────────────────┬───────┬─────┬─────────┬────────┬────┬───────────┬──
//!  │magic│ uuid │stream_id│ stream_instance_id │ begin │ end │ content │ packet │seq │ discarded │ …
//!  └─────┴──────┴─────────┴────────────────────┴───────┴─────┴─────────┴────────┴────┴───────────┴──
//!  80  84    86       88 92       96
//!  ┌───┬─────┬────────┬──┬────────┬────────
//!  │cpu│scope│enabling│id│reserved│ events
//!  └───┴─────┴────────┴──┴────────┴────────
//! ```
//!
//! Function records have a class of streams of their own. Its packets have the same header with times of the time stamp counter, and more:
//!
//! ```text
//!  80       84    86       88  92  96            100      104       112             120      128            136
//!  ┌────────┬─────┬────────┬───┬───┬─────────────┬────────┬─────────┬───────────────┬────────┬──────────────┬─────────
//!  │reserved│scope│enabling│tid│pid│thread_number│reserved│first_tsc│first_monotonic│last_tsc│last_monotonic│ records
//!  └────────┴─────┴────────┴───┴───┴─────────────┴────────┴─────────┴───────────────┴────────┴──────────────┴─────────
//! ```
//!
//! The number distinguishes threads that have had the same id one after the other, and programs that a thread has executed. Two moments on both
//! clocks, before and after the records, place these on the monotonic clock. All records of a packet have the same upper half of the
//! counter.
//!
//! A compressed packet ([`crate::packed`]) has another magic number, and the size of its content before that in place of `reserved`.
//!
//! In the first version of the format 4 reserved bytes and the events follow `cpu`, and the instance is the number of the stream
//! ([`crate::format::Format::stream`]).
//!
//! Little-endian; times in ns of the monotonic clock, sizes in bits. Events start on 8 bytes. Within a stream no event is older
//! than the one before it, and each lies within the times of its packet: readers of the format insist on both.

mod writer;

use crate::classes::{FUNCTIONS_CLASS, STREAM_CLASS};
use crate::format::Format;
use events::StreamId;
use events::functions::{Clock, Moment};
use events::stream::Scope;

pub use writer::{Packet, PacketWriter};

/// The magic number of every packet (CTF 1.8, 5.1).
pub const MAGIC: u32 = 0xC1FC_1FC1;
/// That of packets that are compressed, which no other reader takes for packets.
pub const PACKED: u32 = 0xC1FC_1FC5;
/// Bytes before the first event of a packet that is written.
pub const HEADER: usize = Format::NOW.head();
/// Bytes before the first record of a packet of function records.
pub const FUNCTIONS_HEADER: usize = 136;
/// Where a packet is closed, bytes. A larger event has a packet for itself.
pub const FULL: usize = 256 << 10;
/// Where a packet that will be compressed is closed, bytes: what its model has learned is forgotten with each.
pub const FULL_UNPACKED: usize = 4 << 20;
/// A packet that is larger than this before it is compressed is not taken for one, bytes.
pub const MAX_UNPACKED: usize = 32 << 20;
/// `cpu_id` of a stream that belongs to no processor.
const NO_CPU: u32 = u32::MAX;

/// Bytes that every packet of a trace begins with: the magic number and the identity of the trace.
pub const SIGN: usize = 20;

/// The first [`SIGN`] bytes of every packet of the trace `uuid`, which is of this version.
pub fn sign(uuid: &[u8; 16], format: Format) -> [u8; SIGN] {
    let mut sign = [0; SIGN];
    sign[..4].copy_from_slice(&magic(format).to_le_bytes());
    sign[4..].copy_from_slice(uuid);
    sign
}

/// What packets of this version begin with.
fn magic(format: Format) -> u32 {
    if format == Format::V5 { PACKED } else { MAGIC }
}

/// The header of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Info {
    /// Identity of the trace.
    pub uuid: [u8; 16],
    /// Which stream it is of.
    pub stream: StreamId,
    /// Time of its first event, ns.
    pub begin: u64,
    /// Time of its last event, ns.
    pub end: u64,
    /// Bytes up to the end of its last event.
    pub content: u64,
    /// Bytes of the packet.
    pub size: u64,
    /// Number within its stream.
    pub seq: u64,
    /// Events of the stream that were lost up to its end.
    pub discarded: u64,
    /// What a packet of function records has besides; none in a packet of events.
    pub functions: Option<Functions>,
    /// Bytes up to the end of its last event before it was compressed; none in one that is not.
    pub unpacked: Option<u32>,
}

/// What the header of a packet of function records has besides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Functions {
    /// The time stamp counter at its first record.
    pub begin: u64,
    /// The time stamp counter at its last record.
    pub end: u64,
    /// The process.
    pub pid: u32,
    /// Which thread or program with this id it is, from 0.
    pub number: u32,
    /// A moment before its records.
    pub first: Moment,
    /// A moment after its records.
    pub last: Moment,
    /// Records may have values. The version of the format says so.
    pub values: bool,
}

/// Why bytes are not a packet of a trace of trapline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadPacket {
    /// Too short for a header.
    #[error("the file ends within a packet header")]
    Short,
    /// The magic number is another one.
    #[error("not a packet: its magic number is {0:#x}")]
    Magic(u32),
    /// The stream's number is invalid.
    #[error("a packet of stream {0:#x}, which cannot exist")]
    Stream(u64),
    /// The sizes contradict each other.
    #[error("a packet of {packet} bits has {content} bits of content")]
    Size {
        /// The size of its content, bits.
        content: u64,
        /// The size of the packet, bits.
        packet: u64,
    },
}

impl Info {
    /// Bytes before the first event, in a packet that is written.
    pub const fn head(&self) -> usize {
        if self.functions.is_some() { FUNCTIONS_HEADER } else { HEADER }
    }

    /// Writes it over the first [`Info::head`] bytes of `packet`.
    pub fn write(&self, packet: &mut [u8]) {
        let mut at = 0;
        let mut put = |bytes: &[u8]| {
            packet[at..at + bytes.len()].copy_from_slice(bytes);
            at += bytes.len();
        };
        put(&if self.unpacked.is_some() { PACKED } else { MAGIC }.to_le_bytes());
        put(&self.uuid);
        let class = if self.functions.is_some() { FUNCTIONS_CLASS } else { STREAM_CLASS };
        put(&(class as u32).to_le_bytes());
        let (begin, end) = self.functions.map_or((self.begin, self.end), |f| (f.begin, f.end));
        for v in [self.stream.number(), begin, end, self.content * 8, self.size * 8, self.seq, self.discarded] {
            put(&v.to_le_bytes());
        }
        let cpu = if let Scope::Cpu(n) = self.stream.scope() { n } else { NO_CPU };
        put(&cpu.to_le_bytes());
        put(&self.stream.kind().to_le_bytes());
        put(&self.stream.enabling().to_le_bytes());
        put(&self.stream.scope_id().to_le_bytes());
        let Some(f) = &self.functions else { return put(&self.unpacked.unwrap_or(0).to_le_bytes()) };
        [f.pid, f.number, 0].iter().for_each(|v| put(&v.to_le_bytes()));
        [f.first.tsc, f.first.monotonic, f.last.tsc, f.last.monotonic].iter().for_each(|v| put(&v.to_le_bytes()));
    }

    /// Reads it from the front of `bytes`, which are of a trace of this version.
    pub fn read(bytes: &[u8], format: Format) -> Result<Info, BadPacket> {
        let b = bytes;
        if b.len() < format.head() {
            return Err(BadPacket::Short);
        }
        let u32_at = |at: usize| u32::from_le_bytes([b[at], b[at + 1], b[at + 2], b[at + 3]]);
        let u64_at = |at: usize| u64::from(u32_at(at)) | u64::from(u32_at(at + 4)) << 32;
        if u32_at(0) != magic(format) {
            return Err(BadPacket::Magic(u32_at(0)));
        }
        let is_functions = matches!(format, Format::V3 | Format::V4) && u64::from(u32_at(20)) == FUNCTIONS_CLASS;
        let head = if is_functions { FUNCTIONS_HEADER } else { format.head() };
        if b.len() < head {
            return Err(BadPacket::Short);
        }
        let (content, packet) = (u64_at(48), u64_at(56));
        if content % 8 != 0 || packet % 8 != 0 || content > packet || content < head as u64 * 8 {
            return Err(BadPacket::Size { content, packet });
        }
        let unpacked = (format == Format::V5).then(|| u32_at(92));
        if let Some(size) = unpacked.filter(|n| !(head..=MAX_UNPACKED).contains(&(*n as usize))) {
            return Err(BadPacket::Size { content: u64::from(size) * 8, packet });
        }
        let stream = match format {
            Format::V1 => format.stream(u64_at(24)),
            Format::V2 | Format::V3 | Format::V4 | Format::V5 => {
                StreamId::from_parts(u32_at(84) as u16, u32_at(84) >> 16, u32_at(88))
            }
        };
        let mut uuid = [0; 16];
        uuid.copy_from_slice(&b[4..20]);
        let moment = |at: usize| Moment { tsc: u64_at(at), monotonic: u64_at(at + 8) };
        let functions = is_functions.then(|| Functions {
            begin: u64_at(32),
            end: u64_at(40),
            pid: u32_at(92),
            number: u32_at(96),
            first: moment(104),
            last: moment(120),
            values: format >= Format::V4,
        });
        let ns = |tsc| functions.map_or(tsc, |f| f.clock().ns(tsc));
        Ok(Info {
            uuid,
            stream: stream.ok_or(BadPacket::Stream(u64_at(24)))?,
            begin: ns(u64_at(32)),
            end: ns(u64_at(40)),
            content: content / 8,
            size: packet / 8,
            seq: u64_at(64),
            discarded: u64_at(72),
            functions,
            unpacked,
        })
    }
}

impl Functions {
    /// The clock of its records.
    pub fn clock(&self) -> Clock {
        Clock::between(self.first, self.last)
    }
}

/// Two empty packets in place of one that is empty and has the room: a count of lost events in the first packet of a stream has
/// nothing that it could be compared with. `None` where there is no such room. `last` is the header of the second one.
pub fn split(first: &Info, last: &Info) -> Option<Vec<u8>> {
    let size = first.head();
    let head = size as u64;
    if (first.seq, first.content, first.size) != (0, head, 2 * head) {
        return None;
    }
    let mut bytes = vec![0; 2 * size];
    Info { size: head, ..*first }.write(&mut bytes[..size]);
    let begin = first.end.min(last.end);
    Info { begin, content: head, size: head, seq: 1, ..*last }.write(&mut bytes[size..]);
    Some(bytes)
}

/// Walks over the events in the bytes of a packet that was written here: each as a slice that begins with the event, and where it starts. `length` says how
/// many bytes an event has.
pub fn events(packet: &[u8], length: impl Fn(&[u8]) -> Option<usize>) -> impl Iterator<Item = Result<&[u8], usize>> {
    let info = Info::read(packet, Format::NOW).ok().filter(|i| i.functions.is_none());
    let content = info.map_or(0, |i| i.content as usize).min(packet.len());
    let mut at = HEADER;
    std::iter::from_fn(move || {
        if at >= content {
            return None;
        }
        let rest = &packet[at..content];
        let Some(n) = length(rest).filter(|&n| n > 0 && n <= rest.len()) else {
            let bad = at;
            at = content;
            return Some(Err(bad));
        };
        at = (at + n).next_multiple_of(8);
        Some(Ok(&rest[..n]))
    })
}

/// How many bytes the event at the front of `bytes` has, for events of the generated classes.
#[inline]
pub fn event_length(bytes: &[u8]) -> Option<usize> {
    events::Event::length(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const STREAM: StreamId = StreamId::new(Scope::Cpu(2), 5);

    fn event(time: u64, n: usize) -> Vec<u8> {
        let mut e = time.to_le_bytes().to_vec();
        e.push(n as u8);
        e.resize(9 + n, 7);
        e
    }
    fn length(b: &[u8]) -> Option<usize> {
        b.get(8).map(|n| 9 + usize::from(*n))
    }

    #[test]
    fn what_was_pushed_comes_out_of_packets_whose_times_hold() {
        let mut f = PacketWriter::new([3; 16], STREAM, 90);
        let first = f.close();
        let all: Vec<_> = (0..10_000u64).map(|i| event(100 + i * 3, i as usize % 90)).collect();
        let mut packets = vec![first];
        for e in &all {
            if f.push(e) {
                packets.push(f.close());
            }
        }
        f.set_discarded(7);
        packets.push(f.close());
        assert!(packets.len() > 2);
        let mut out = Vec::new();
        let mut end = 0;
        for (seq, p) in packets.iter().enumerate() {
            let i = Info::read(&p.bytes, Format::NOW).unwrap();
            assert_eq!((i.uuid, i.stream, i.seq), ([3; 16], STREAM, seq as u64));
            assert_eq!((i.size, p.bytes.len() % 8), (p.bytes.len() as u64, 0));
            assert!(i.begin >= end && i.begin <= i.end);
            end = i.end;
            let found: Vec<_> = events(&p.bytes, length).map(|e| e.unwrap().to_vec()).collect();
            assert_eq!(found.len() as u64, p.events);
            out.extend(found);
        }
        assert_eq!(out, all);
        let last = Info::read(&packets.last().unwrap().bytes, Format::NOW).unwrap();
        assert_eq!((last.discarded, f.clamped()), (7, 0));
    }

    #[test]
    fn a_packet_says_which_stream_it_is_of() {
        let scopes = [Scope::Cpu(7), Scope::Thread(u32::MAX), Scope::Process(1), StreamId::MAPS.scope()];
        for stream in scopes.map(|s| StreamId::new(s, 3)).into_iter().chain([StreamId::TRACER]) {
            let packet = PacketWriter::new([3; 16], stream, 90).close();
            let head = Info::read(&packet.bytes, Format::NOW).unwrap();
            assert_eq!((packet.stream, head.stream), (stream, stream));
        }
    }

    #[test]
    fn the_first_packet_of_a_stream_can_become_two() {
        let mut f = PacketWriter::new([3; 16], STREAM, 90);
        let first = f.close();
        let head = Info::read(&first.bytes, Format::NOW).unwrap();
        assert_eq!((first.bytes.len(), head.content, head.size), (2 * HEADER, HEADER as u64, 2 * HEADER as u64));
        let two = split(&head, &Info { discarded: 7, end: 100, ..head }).unwrap();
        let (a, b) = (Info::read(&two, Format::NOW).unwrap(), Info::read(&two[HEADER..], Format::NOW).unwrap());
        assert_eq!((a.seq, a.size, a.discarded, a.end), (0, HEADER as u64, 0, 90));
        assert_eq!((b.seq, b.size, b.discarded, b.begin, b.end), (1, HEADER as u64, 7, 90, 100));
        f.push(&event(95, 0));
        for packet in [f.close(), f.close()] {
            let head = Info::read(&packet.bytes, Format::NOW).unwrap();
            assert_eq!(split(&head, &head), None);
        }
    }

    #[test]
    fn a_time_before_the_last_is_set_to_it_and_counted() {
        let mut f = PacketWriter::new([0; 16], STREAM, 0);
        for t in [10u64, 9, 12] {
            f.push(&event(t, 0));
        }
        let p = f.close();
        let times: Vec<u64> =
            events(&p.bytes, length).map(|e| u64::from_le_bytes(e.unwrap()[..8].try_into().unwrap())).collect();
        assert_eq!((times, f.clamped()), (vec![10u64, 10, 12], 1));
    }

    #[test]
    fn hostile_heads_and_events_are_errors() {
        let mut f = PacketWriter::new([0; 16], STREAM, 0);
        f.push(&event(1, 3));
        let good = f.close().bytes;
        assert_eq!(Info::read(&good[..HEADER - 1], Format::NOW), Err(BadPacket::Short));
        let with = |at: usize, v: u64| {
            let mut b = good.clone();
            b[at..at + 8].copy_from_slice(&v.to_le_bytes());
            b
        };
        assert!(matches!(Info::read(&with(0, 5), Format::NOW), Err(BadPacket::Magic(5))));
        for (content, packet) in [(u64::MAX, 800u64), (8, 800), (801, 808), (1000, 800)] {
            let mut b = with(48, content);
            b[56..64].copy_from_slice(&packet.to_le_bytes());
            assert!(matches!(Info::read(&b, Format::NOW), Err(BadPacket::Size { .. })), "{content} {packet}");
        }
        let strange = with(84, 4);
        assert_eq!(Info::read(&strange, Format::NOW), Err(BadPacket::Stream(STREAM.number())));
        assert_eq!(Info::read(&with(24, 1 << 32), Format::V1), Err(BadPacket::Stream(1 << 32)));
        let mut cut = good.clone();
        cut[HEADER + 8] = 200;
        assert_eq!(events(&cut, length).collect::<Vec<_>>(), [Err(HEADER)]);
        assert_eq!(events(&good, |_| Some(0)).collect::<Vec<_>>(), [Err(HEADER)]);
    }
}
