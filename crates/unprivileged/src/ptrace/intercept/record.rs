//! A record of a call, out of the memory of the process that has written it. Nothing of it is believed that matters to this process.

use engine::capture::Memory;
use sys::intercept::{Descriptor, LONGEST, RECORD};

/// A record.
#[derive(Clone, Copy, Debug)]
pub struct Record<'b> {
    bytes: &'b [u8],
    /// Where the captures of exit begin.
    exit: usize,
}

impl<'b> Record<'b> {
    /// The one that begins here; as much of it as there is.
    pub fn parse(bytes: &'b [u8]) -> Option<Record<'b>> {
        if bytes.len() < RECORD {
            return None;
        }
        let short = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]) as usize;
        let end = if short(0) == 0 { bytes.len() } else { short(0).min(bytes.len()).min(LONGEST) };
        let bytes = bytes.get(..end)?;
        let exit = short(96).clamp(RECORD, end.max(RECORD));
        Some(Record { bytes, exit }).filter(|_| end >= RECORD)
    }

    fn word(&self, at: usize) -> u64 {
        let word = self.bytes.get(at..at + 8).and_then(|b| b.first_chunk());
        word.map_or(0, |word| u64::from_le_bytes(*word))
    }

    /// The number of the call.
    pub fn number(&self) -> u64 {
        self.word(0) >> 32
    }

    /// The time stamp counter before and after it.
    pub fn times(&self) -> (u64, u64) {
        (self.word(8), self.word(16))
    }

    /// The processors before and after it.
    pub fn processors(&self) -> (u16, u16) {
        // Linux keeps the number of the node above the twelve bits of the processor (arch/x86/include/asm/segment.h).
        const CPU: u64 = 0xfff;
        let both = self.word(24);
        ((both & CPU) as u16, (both >> 32 & CPU) as u16)
    }

    /// The six registers with arguments.
    pub fn arguments(&self) -> [u64; 6] {
        std::array::from_fn(|i| self.word(32 + 8 * i))
    }

    /// The raw result.
    pub fn result(&self) -> i64 {
        self.word(80) as i64
    }

    /// What was read before the call.
    pub fn entry(&self) -> Captures<'b> {
        Captures(self.bytes.get(RECORD..self.exit).unwrap_or(&[]))
    }

    /// What was read after it.
    pub fn exit(&self) -> Captures<'b> {
        Captures(self.bytes.get(self.exit..).unwrap_or(&[]))
    }
}

/// Memory that was read by a process.
#[derive(Clone, Copy, Debug, Default)]
pub struct Captures<'b>(&'b [u8]);

impl<'b> Iterator for Captures<'b> {
    type Item = (u64, &'b [u8]);

    fn next(&mut self) -> Option<(u64, &'b [u8])> {
        let (head, rest) = self.0.split_first_chunk::<16>()?;
        let address = u64::from_le_bytes(*head.first_chunk()?);
        let len = u32::from_le_bytes([head[8], head[9], head[10], head[11]]) as usize;
        let bytes = rest.get(..len)?;
        self.0 = rest.get(len.next_multiple_of(8)..).unwrap_or(&[]);
        Some((address, bytes))
    }
}

impl<'b> Memory for Captures<'b> {
    fn read(&mut self, addr: u64, buf: &mut [u8]) -> usize {
        // Of captures that overlap, the one that reaches furthest.
        let inside = |(at, bytes): (u64, &'b [u8])| bytes.get(usize::try_from(addr.checked_sub(at)?).ok()?..);
        let all = *self;
        let memory = all.filter(|(at, _)| *at >= Descriptor::LOWEST);
        let Some(from) = memory.filter_map(inside).max_by_key(|from| from.len()) else { return 0 };
        let len = from.len().min(buf.len());
        buf[..len].copy_from_slice(&from[..len]);
        len
    }
}

/// Captures by their addresses: of many, one is found without looking through all.
#[derive(Debug)]
pub struct Sorted<'b> {
    /// By address; each with the one that reaches furthest of those up to it.
    captures: Vec<(u64, (u64, &'b [u8]))>,
}

impl<'b> Sorted<'b> {
    /// Of captures that reach equally far, those of `first` are read.
    pub fn new(first: Captures<'b>, then: Captures<'b>) -> Sorted<'b> {
        let memory = first.chain(then).filter(|(at, _)| *at >= Descriptor::LOWEST);
        let mut captures: Vec<_> = memory.map(|capture| (capture.0, capture)).collect();
        captures.sort_by_key(|c| c.0);
        let end = |(at, bytes): (u64, &[u8])| at.saturating_add(bytes.len() as u64);
        for i in 1..captures.len() {
            if end(captures[i].1) <= end(captures[i - 1].1) {
                captures[i].1 = captures[i - 1].1;
            }
        }
        Sorted { captures }
    }
}

impl Memory for Sorted<'_> {
    fn read(&mut self, addr: u64, buf: &mut [u8]) -> usize {
        let up_to = self.captures.partition_point(|c| c.0 <= addr);
        let Some((_, (at, bytes))) = up_to.checked_sub(1).map(|last| self.captures[last]) else { return 0 };
        let inside = usize::try_from(addr - at).ok().and_then(|from| bytes.get(from..));
        let from = inside.unwrap_or(&[]);
        let len = from.len().min(buf.len());
        buf[..len].copy_from_slice(&from[..len]);
        len
    }
}

impl<'b> Record<'b> {
    /// What descriptors are, behind the call.
    pub fn descriptors(&self) -> impl Iterator<Item = Descriptor<'b>> {
        self.exit().filter_map(Descriptor::of)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use testkit::{Random, rounds};

    fn record(captures: &[(u64, &[u8])], entry: usize) -> Vec<u8> {
        let mut bytes = vec![0; RECORD];
        let mut exit = RECORD;
        for (i, (address, data)) in captures.iter().enumerate() {
            bytes.extend_from_slice(&address.to_le_bytes());
            bytes.extend_from_slice(&(data.len() as u64).to_le_bytes());
            bytes.extend_from_slice(data);
            bytes.resize(bytes.len().next_multiple_of(8), 0);
            exit = if i < entry { bytes.len() } else { exit };
        }
        let len = bytes.len() as u32;
        bytes[..4].copy_from_slice(&len.to_le_bytes());
        bytes[4..8].copy_from_slice(&257u32.to_le_bytes());
        bytes[96..100].copy_from_slice(&(exit as u32).to_le_bytes());
        bytes
    }

    #[test]
    fn memory_is_what_was_captured() {
        let bytes = record(&[(0x11000, b"/etc/passwd\0"), (0x12000, b"abc"), (1, b"no memory")], 1);
        let record = Record::parse(&bytes).unwrap();
        assert_eq!(record.number(), 257);
        let mut buf = [0; 8];
        assert_eq!((record.entry().read(0x11004, &mut buf), &buf), (8, b"/passwd\0"));
        assert_eq!(record.entry().read(0x12000, &mut buf), 0);
        assert_eq!((record.exit().read(0x12001, &mut buf), &buf[..2]), (2, &b"bc"[..]));
        assert_eq!((record.exit().read(0x12003, &mut buf), record.exit().read(0x11fff, &mut buf)), (0, 0));
        assert_eq!((record.exit().read(2, &mut buf), record.descriptors().count()), (0, 0));
        let mut exit = record.exit();
        assert_eq!([0x12000, 0x11fff, 0x12000].map(|at| exit.read(at, &mut buf)), [3, 0, 3]);
    }

    /// Captures that overlap, and that are found in another way where there are many.
    #[test]
    fn sorted_captures_are_the_same_memory() {
        let mut random = Random::new(7);
        let mut found = 0;
        for _ in 0..rounds(500) {
            let data: Vec<u8> = (0..4096).map(|_| random.next() as u8).collect();
            let captures: Vec<(u64, &[u8])> = (0..random.index(30))
                .map(|_| {
                    let (at, len) = (random.index(4000), random.index(96));
                    (0x10000 + at as u64, &data[at..at + len])
                })
                .collect();
            let bytes = record(&captures, captures.len());
            let record = Record::parse(&bytes).unwrap();
            let mut sorted = Sorted::new(record.exit(), record.entry());
            for _ in 0..50 {
                let at = 0x10000 + random.index(4096) as u64;
                let (mut one, mut other) = ([0; 64], [0; 64]);
                let read = (record.entry().read(at, &mut one), sorted.read(at, &mut other));
                found += read.0;
                assert_eq!((read.0, one), (read.1, other), "{at:x}");
            }
        }
        assert!(found > 0);
        let bytes = record(&[(0x10000, b"before"), (0x10000, b"behind")], 1);
        let both = Record::parse(&bytes).unwrap();
        let mut buf = [0; 8];
        assert_eq!((Sorted::new(both.exit(), both.entry()).read(0x10002, &mut buf), &buf[..4]), (4, &b"hind"[..]));
    }

    #[test]
    fn hostile_records_are_bounded() {
        let fine = record(&[(0x1000, b"abc"), (0x2000, b"def")], 1);
        assert!(Record::parse(&fine[..RECORD - 1]).is_none());
        let mut random = Random::new(31);
        for _ in 0..rounds(2000) {
            let mut bytes = fine.clone();
            for _ in 0..4 {
                let at = random.index(bytes.len());
                bytes[at] = random.next() as u8;
            }
            bytes.truncate(random.index(fine.len() + 1));
            if let Some(record) = Record::parse(&bytes) {
                assert!(record.entry().chain(record.exit()).count() < LONGEST / 16);
                let _ = (record.times(), record.processors(), record.arguments(), record.result());
            }
        }
    }
}
