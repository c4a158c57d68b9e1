//! Packets of traces whose packets are compressed.
//!
//! ```text
//!  0       96     104   108
//!  ┌──────┬──────┬──────┬────────┬──────┬────────┬──
//!  │header│ which│length│ column │length│ column │ …       a column: zlib (RFC 1950)
//!  └──────┴──────┴──────┴────────┴──────┴────────┴──
//! ```
//!
//! The header is that of [`crate::packet`] with a magic number of its own, so that other readers refuse the packet, and with the bytes
//! of the packet before it was compressed. Bits say which columns follow; the others are empty.
//!
//! Numbers are split into columns by what they are, and those above 247 by bytes. An event is its time, as a difference, and a *symbol*:
//! the number of an earlier event that had the same bytes but for the time. Addresses of blocks are no part of a symbol. An allocation
//! most often takes a block that was freed before, one of the last of its size: its address is a place in the list of those. A free is
//! the difference between the number of its block and that of the block which was freed before. What the model does not foresee is
//! only written with more bytes: whatever the events are, they come out as they went in.
//!
//! Each packet is read by itself. The reader's memory is bounded by [`MAX_UNPACKED`], whatever a packet says.

use crate::packet::{HEADER, Info, MAX_UNPACKED, Packet, event_length};
use events::Schema;
use events::hash::Table;
use miniz_oxide::deflate::compress_to_vec_zlib;
use miniz_oxide::inflate::decompress_to_vec_zlib_with_limit;

/// What numbers are of: each kind has [`PARTS`] columns.
#[derive(Clone, Copy)]
enum Of {
    /// Symbols, from 1; 0: a new one.
    Symbol,
    /// Length and role of a new symbol.
    Shape,
    /// Differences of times.
    Time,
    /// Places in the list of freed blocks; [`REACH`]: none.
    Reused,
    /// Addresses that were in no such place, as differences.
    Fresh,
    /// Blocks that are freed, from 1, as differences; 0: another one.
    Freed,
    /// Addresses of these others, as differences.
    Foreign,
}

/// Columns of a kind of number: the number or its length, and its bytes.
const PARTS: usize = 9;
/// The column of the bytes of symbols.
const LITERAL: usize = PARTS * (Of::Foreign as usize + 1);
/// All columns: a bit of a word for each.
const COLUMNS: usize = LITERAL + 1;
/// Larger numbers have columns for their bytes.
const LONG: u8 = 248;
/// How far an address is searched for in the list of freed blocks of its size.
const REACH: usize = 64;
/// Where events have the address of a block, and its size.
const ADDRESS: usize = 24;
const SIZE: usize = 32;
/// The level of compression, of 10: the next ones take up to four times as long for a twentieth less.
const LEVEL: u8 = 3;

/// What an event does to the block whose address it has.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    None,
    Allocates,
    Frees,
}

impl Role {
    /// That of the events of a class.
    fn of(id: u16) -> Role {
        match events::registry::by_id(id).map(Schema::probe).as_deref() {
            Some("heap:malloc" | "heap:mmap") => Role::Allocates,
            Some("heap:free" | "heap:munmap") => Role::Frees,
            _ => Role::None,
        }
    }

    /// Bytes that such an event has at least.
    fn least(self) -> usize {
        match self {
            Role::None => ADDRESS,
            Role::Allocates => SIZE + 8,
            Role::Frees => ADDRESS + 8,
        }
    }

    /// Which bytes of an event after its time are no part of its symbol.
    fn left_out(self) -> usize {
        if self == Role::None { 0 } else { 8 }
    }
}

/// A word of an event, which is long enough.
fn word(event: &[u8], at: usize) -> u64 {
    event.get(at..).and_then(|b| b.first_chunk()).map_or(0, |b| u64::from_le_bytes(*b))
}

/// A number that is small where a difference is, in either direction.
fn folded(difference: i64) -> u64 {
    (difference << 1 ^ difference >> 63) as u64
}

fn unfolded(n: u64) -> i64 {
    (n >> 1) as i64 ^ -((n & 1) as i64)
}

/// [`folded`] of a difference of addresses: their lowest four bits, which are mostly equal, are the highest of the number.
fn folded_address(difference: u64) -> u64 {
    folded(difference as i64 >> 4) | difference << 60
}

fn unfolded_address(n: u64) -> u64 {
    (unfolded(n & (u64::MAX >> 4)) as u64) << 4 | n >> 60
}

/// What both sides know of blocks.
#[derive(Default)]
struct Blocks {
    /// Address and size of each that was allocated.
    all: Vec<(u64, u64)>,
    /// Addresses of those that were freed, by size.
    free: Table<u64, Vec<u64>>,
    /// The last one that was freed.
    last_freed: u64,
    /// The last address that was fresh, and that was foreign.
    last: [u64; 2],
}

impl Blocks {
    /// What an allocator makes of a size: glibc's does this; with others a few more addresses are fresh.
    fn class(size: u64) -> u64 {
        (size.saturating_add(23) & !15).max(32)
    }

    fn free_of(&mut self, size: u64) -> &mut Vec<u64> {
        self.free.entry(Blocks::class(size)).or_default()
    }
}

/// Columns that are being filled.
struct Writer([Vec<u8>; COLUMNS]);

impl Writer {
    #[inline]
    fn put(&mut self, of: Of, n: u64) {
        let parts = &mut self.0[of as usize * PARTS..][..PARTS];
        if n < LONG.into() {
            return parts[0].push(n as u8);
        }
        let bytes = 8 - n.leading_zeros() as usize / 8;
        parts[0].push(LONG - 1 + bytes as u8);
        parts[1..].iter_mut().zip(n.to_le_bytes()).take(bytes).for_each(|(part, byte)| part.push(byte));
    }
}

/// Compresses a packet of events, as [`crate::packet::PacketWriter`] has made it, with this header.
pub fn pack(packet: &Packet, info: &Info) -> Packet {
    let content = packet.bytes.get(HEADER..info.content as usize).unwrap_or_default();
    let mut bytes = vec![0; HEADER];
    if !content.is_empty() {
        let columns = columns(content);
        let which = columns.iter().enumerate().fold(0u64, |all, (i, c)| all | u64::from(!c.is_empty()) << i);
        bytes.extend_from_slice(&which.to_le_bytes());
        for column in columns.iter().filter(|c| !c.is_empty()) {
            let packed = compress_to_vec_zlib(column, LEVEL);
            bytes.extend_from_slice(&(packed.len() as u32).to_le_bytes());
            bytes.extend_from_slice(&packed);
        }
    }
    let content = bytes.len() as u64;
    // An empty packet may have room for a second header.
    let size = if content == HEADER as u64 { info.size as usize } else { bytes.len().next_multiple_of(8) };
    bytes.resize(size, 0);
    Info { content, size: size as u64, unpacked: Some(info.content as u32), ..*info }.write(&mut bytes);
    Packet { stream: packet.stream, bytes, events: packet.events }
}

fn columns(content: &[u8]) -> [Vec<u8>; COLUMNS] {
    let mut out = Writer(std::array::from_fn(|_| Vec::new()));
    let mut symbols: Table<Vec<u8>, u64> = Table::default();
    let mut live: Table<u64, usize> = Table::default();
    let mut roles: Table<u16, Role> = Table::default();
    let (mut blocks, mut time, mut key) = (Blocks::default(), 0u64, Vec::new());
    let mut rest = content;
    while rest.len() >= ADDRESS {
        let len = event_length(rest).filter(|n| *n >= ADDRESS).map_or(rest.len(), |n| n.next_multiple_of(8));
        let (event, after) = rest.split_at(len.min(rest.len()));
        rest = after;
        let id = u16::from_le_bytes([event[8], event[9]]);
        let role = *roles.entry(id).or_insert_with(|| Role::of(id));
        let role = if event.len() < role.least() { Role::None } else { role };
        key.clear();
        key.extend_from_slice(&event[8..ADDRESS]);
        key.extend_from_slice(&event[ADDRESS + role.left_out()..]);
        let next = symbols.len() as u64 + 1;
        match symbols.get(&key) {
            Some(symbol) => out.put(Of::Symbol, *symbol),
            None => {
                symbols.insert(key.clone(), next);
                out.put(Of::Symbol, 0);
                out.put(Of::Shape, (event.len() as u64) << 2 | role as u64);
                out.0[LITERAL].extend_from_slice(&key);
            }
        }
        let (now, address) = (word(event, 0), word(event, ADDRESS));
        out.put(Of::Time, now.wrapping_sub(time));
        time = now;
        match role {
            Role::None => {}
            Role::Allocates => {
                let size = word(event, SIZE);
                let free = blocks.free_of(size);
                match free.iter().rev().take(REACH).position(|a| *a == address) {
                    Some(place) => {
                        free.remove(free.len() - 1 - place);
                        out.put(Of::Reused, place as u64);
                    }
                    None => {
                        let last = std::mem::replace(&mut blocks.last[0], address);
                        out.put(Of::Reused, REACH as u64);
                        out.put(Of::Fresh, folded_address(address.wrapping_sub(last)));
                    }
                }
                live.insert(address, blocks.all.len());
                blocks.all.push((address, size));
            }
            Role::Frees => match live.remove(&address) {
                Some(number) => {
                    let last = std::mem::replace(&mut blocks.last_freed, number as u64);
                    out.put(Of::Freed, folded((number as u64).wrapping_sub(last) as i64) + 1);
                    let size = blocks.all[number].1;
                    blocks.free_of(size).push(address);
                }
                None => {
                    let last = std::mem::replace(&mut blocks.last[1], address);
                    out.put(Of::Freed, 0);
                    out.put(Of::Foreign, folded_address(address.wrapping_sub(last)));
                }
            },
        }
    }
    out.0[LITERAL].extend_from_slice(rest);
    out.0
}

/// Columns that are being read.
struct Reader {
    columns: [Vec<u8>; COLUMNS],
    at: [usize; COLUMNS],
}

impl Reader {
    /// The columns of a packet of `size` bytes, from what follows its header.
    fn new(packed: &[u8], size: usize) -> Option<Reader> {
        let (which, mut rest) = packed.split_first_chunk()?;
        let which = u64::from_le_bytes(*which);
        let mut columns = std::array::from_fn(|_| Vec::new());
        // As many bytes as the events have, and a number for each.
        let mut left = 2 * size;
        for (_, column) in columns.iter_mut().enumerate().filter(|(i, _)| which >> i & 1 == 1) {
            let (len, after) = rest.split_first_chunk()?;
            let (bytes, after) = after.split_at_checked(u32::from_le_bytes(*len) as usize)?;
            *column = decompress_to_vec_zlib_with_limit(bytes, left).ok()?;
            left -= column.len();
            rest = after;
        }
        Some(Reader { columns, at: [0; COLUMNS] })
    }

    #[inline]
    fn byte(&mut self, column: usize) -> Option<u8> {
        let byte = self.columns[column].get(self.at[column]).copied();
        self.at[column] += 1;
        byte
    }

    #[inline]
    fn get(&mut self, of: Of) -> Option<u64> {
        let first = of as usize * PARTS;
        let short = self.byte(first)?;
        let Some(more) = short.checked_sub(LONG) else { return Some(short.into()) };
        (0..=usize::from(more)).try_fold(0, |n, i| Some(n | u64::from(self.byte(first + 1 + i)?) << (8 * i)))
    }
}

/// The content of a packet that had `size` bytes, from what follows its header, in place of what is in `out`; `None` if it is damaged.
pub(crate) fn unpack(packed: &[u8], size: usize, out: &mut Vec<u8>) -> Option<()> {
    out.clear();
    if size > MAX_UNPACKED {
        return None;
    }
    let mut input = Reader::new(packed, size)?;
    // Role, length, and where its bytes are.
    let mut symbols: Vec<(Role, usize, usize)> = Vec::new();
    let (mut blocks, mut time) = (Blocks::default(), 0u64);
    while size - out.len() >= ADDRESS {
        let (role, len, literal) = match input.get(Of::Symbol)? {
            0 => {
                let shape = input.get(Of::Shape)?;
                let role = *[Role::None, Role::Allocates, Role::Frees].get(shape as usize & 3)?;
                let len = usize::try_from(shape >> 2).ok().filter(|n| (role.least()..=size).contains(n))?;
                let literal = input.at[LITERAL];
                input.at[LITERAL] += len - 8 - role.left_out();
                symbols.push((role, len, literal));
                (role, len, literal)
            }
            n => *symbols.get(usize::try_from(n - 1).ok()?)?,
        };
        if len > size - out.len() {
            return None;
        }
        time = time.wrapping_add(input.get(Of::Time)?);
        let bytes = input.columns[LITERAL].get(literal..literal + len - 8 - role.left_out())?;
        let (head, tail) = bytes.split_at_checked(ADDRESS - 8)?;
        out.extend_from_slice(&time.to_le_bytes());
        out.extend_from_slice(head);
        let at = out.len();
        out.resize(at + role.left_out(), 0);
        out.extend_from_slice(tail);
        let address = match role {
            Role::None => continue,
            Role::Allocates => {
                let size = word(out, at + 8);
                let place = usize::try_from(input.get(Of::Reused)?).ok()?;
                let free = blocks.free_of(size);
                let address = match free.len().checked_sub(place.saturating_add(1)).filter(|_| place < REACH) {
                    Some(i) => free.remove(i),
                    None => {
                        let fresh = unfolded_address(input.get(Of::Fresh)?);
                        blocks.last[0] = blocks.last[0].wrapping_add(fresh);
                        blocks.last[0]
                    }
                };
                blocks.all.push((address, size));
                address
            }
            Role::Frees => match input.get(Of::Freed)? {
                0 => {
                    let foreign = unfolded_address(input.get(Of::Foreign)?);
                    blocks.last[1] = blocks.last[1].wrapping_add(foreign);
                    blocks.last[1]
                }
                n => {
                    blocks.last_freed = blocks.last_freed.wrapping_add(unfolded(n - 1) as u64);
                    let (address, size) = *blocks.all.get(usize::try_from(blocks.last_freed).ok()?)?;
                    blocks.free_of(size).push(address);
                    address
                }
            },
        };
        out[at..at + 8].copy_from_slice(&address.to_le_bytes());
    }
    let (from, n) = (input.at[LITERAL], size - out.len());
    out.extend_from_slice(input.columns[LITERAL].get(from..from.checked_add(n)?)?);
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::Format;
    use crate::packet::{FULL_UNPACKED, PacketWriter};
    use events::StreamId;
    use events::dynamic::{Field, class};
    use events::encode::{Fixed, fixed};
    use events::types::{Fmt, Int, Type};
    use testkit::Random;

    const STREAM: StreamId = StreamId::cpu(0);

    /// Writes an event of a class with this name.
    fn event(name: &str, args: &[(&str, u64)], time: u64, out: &mut Vec<u8>) {
        let ty = Type::Int(Int { size: 8, signed: false, fmt: Fmt::Hex });
        let fields: Vec<Field> = args.iter().map(|(name, _)| Field { name: (*name).into(), ty }).collect();
        let schema = class(name, &fields).unwrap();
        let layout = events::registry::layout(schema.id).unwrap();
        let values: Vec<u64> = args.iter().map(|a| a.1).collect();
        out.clear();
        fixed(out, schema, layout, &Fixed { time, tid: 7, pid: 7, ..Fixed::default() }, &values);
    }

    /// What a program does that allocates and frees at random, some of it twice and some of it never, and other events between.
    fn packet(n: u64, random: &mut Random) -> (Packet, Info) {
        let mut writer = PacketWriter::new([3; 16], STREAM, 0);
        let (mut e, mut live, mut next) = (Vec::new(), vec![0x5000], 0x7000_0000u64);
        for i in 0..n {
            let (size, stack) = (random.below(300), random.below(4) << 40 | 0x7c15);
            let at = random.index(live.len());
            match random.below(9) {
                0..4 => {
                    next += size + random.below(40);
                    live.push(next);
                    event("heap:malloc", &[("address", next), ("size", size), ("ustack", stack)], i * 9, &mut e);
                }
                4 => event("heap:mmap", &[("address", live[at]), ("size", u64::MAX - size)], i * 9, &mut e),
                5 => event("test:other", &[("a", random.next())], i * 9, &mut e),
                6 => event("heap:free", &[("address", random.next())], i * 9, &mut e),
                _ => event("heap:free", &[("address", live[at])], i * 9, &mut e),
            }
            writer.push(&e);
        }
        let packet = writer.close();
        let info = Info::read(&packet.bytes, Format::NOW).unwrap();
        (packet, info)
    }

    fn unpacked(packed: &[u8]) -> Option<Vec<u8>> {
        let info = Info::read(packed, Format::V5).ok()?;
        let (body, mut out) = (packed.get(HEADER..info.content as usize)?, Vec::new());
        unpack(body, info.unpacked? as usize - HEADER, &mut out)?;
        Some(out)
    }

    #[test]
    fn whatever_was_packed_comes_out_as_it_was() {
        let mut random = Random::new(1);
        for n in [1, 2, 50, 5000] {
            let (packet, info) = packet(n, &mut random);
            let packed = pack(&packet, &info);
            let content = &packet.bytes[HEADER..info.content as usize];
            assert!(unpacked(&packed.bytes).is_some_and(|out| out == content), "{n} events");
            let head = Info::read(&packed.bytes, Format::V5).unwrap();
            assert_eq!((head.size, packed.events), (packed.bytes.len() as u64, n));
            assert_eq!((head.begin, head.end, head.seq), (info.begin, info.end, info.seq));
            // Other readers refuse it, and events that are none are taken as they are.
            assert!(Info::read(&packed.bytes, Format::NOW).is_err());
            for cut in (0..content.len().min(200)).step_by(9) {
                let mut bytes = packet.bytes[..HEADER + cut].to_vec();
                bytes[HEADER..].iter_mut().skip(random.index(100)).for_each(|b| *b ^= random.next() as u8);
                let (content, size) = (bytes.len() as u64, bytes.len() as u64);
                let strange = Packet { stream: STREAM, bytes, events: 1 };
                let packed = pack(&strange, &Info { content, size, ..info });
                assert!(cut == 0 || unpacked(&packed.bytes).is_some_and(|out| out == strange.bytes[HEADER..]), "{cut}");
            }
        }
    }

    #[test]
    fn a_program_that_repeats_itself_takes_a_fraction_of_a_byte_for_an_event() {
        let (mut writer, mut e) = (PacketWriter::new([3; 16], STREAM, 0).full_at(FULL_UNPACKED), Vec::new());
        let n = 40_000;
        for i in 0..n {
            let address = 0x5555_0000_1000 + i % 50 * 64;
            let (size, stack) = (24 + i % 3, 0x1234_5678_9abc_def0 + i % 5);
            event("heap:malloc", &[("address", address), ("size", size), ("ustack", stack)], i, &mut e);
            writer.push(&e);
            event("heap:free", &[("address", address)], i, &mut e);
            writer.push(&e);
        }
        let packet = writer.close();
        let info = Info::read(&packet.bytes, Format::NOW).unwrap();
        let packed = pack(&packet, &info);
        assert!(packed.bytes.len() * 1000 < packet.bytes.len(), "{} of {}", packed.bytes.len(), packet.bytes.len());
    }

    #[test]
    fn hostile_packets_are_refused_or_end_within_their_bounds() {
        let mut random = Random::new(2);
        let (packet, info) = packet(300, &mut random);
        let packed = pack(&packet, &info);
        let body = packed.bytes[HEADER..].to_vec();
        let size = info.content as usize - HEADER;
        let mut out = Vec::new();
        for round in 0..3000 {
            let mut bytes = body.clone();
            // Checksums refuse most of what is changed: columns are made of random bytes too.
            if round % 2 == 0 {
                (0..1 + random.below(4)).for_each(|_| {
                    let at = random.index(bytes.len());
                    bytes[at] = random.next() as u8;
                });
                bytes.truncate(1 + random.index(bytes.len()));
            } else {
                let which = random.next();
                bytes = which.to_le_bytes().to_vec();
                for _ in 0..which.count_ones() {
                    let small = random.below(2) == 0;
                    let column: Vec<u8> = (0..random.below(400))
                        .map(|_| if small { random.below(4) as u8 } else { random.next() as u8 })
                        .collect();
                    let column = compress_to_vec_zlib(&column, 1);
                    bytes.extend_from_slice(&(column.len() as u32).to_le_bytes());
                    bytes.extend_from_slice(&column);
                }
            }
            let _ = unpack(&bytes, size, &mut out);
            assert!(out.len() <= size);
        }
        // A column that would become larger than all events, and a size that no packet has.
        let bomb = compress_to_vec_zlib(&vec![0; 1 << 20], 9);
        let mut bytes = 1u64.to_le_bytes().to_vec();
        bytes.extend_from_slice(&(bomb.len() as u32).to_le_bytes());
        bytes.extend_from_slice(&bomb);
        assert!(unpack(&bytes, 1000, &mut out).is_none() && out.capacity() < 1 << 20);
        assert!(unpack(&body, MAX_UNPACKED + 1, &mut out).is_none());
    }
}
