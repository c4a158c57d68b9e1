//! The records of a ring, parsed. Every length is checked; a record that is shorter than its kind says is [`Record::Other`].
//!
//! ```text
//!  u32 kind │ u16 misc │ u16 size │ fields… │ text with NUL, padded to 8 │ with SAMPLE_ID_ALL: fields of sample_type
//! ```

use super::sample;

/// `PERF_RECORD_*`.
mod kind {
    pub const MMAP: u32 = 1;
    pub const LOST: u32 = 2;
    pub const COMM: u32 = 3;
    pub const EXIT: u32 = 4;
    pub const THROTTLE: u32 = 5;
    pub const UNTHROTTLE: u32 = 6;
    pub const FORK: u32 = 7;
    pub const SAMPLE: u32 = 9;
    pub const MMAP2: u32 = 10;
    pub const LOST_SAMPLES: u32 = 13;
}

/// `PERF_RECORD_MISC_MMAP_BUILD_ID`: a build id stands in place of the inode.
const MISC_MMAP_BUILD_ID: u16 = 1 << 14;
/// `PERF_RECORD_MISC_COMM_EXEC`: an exec gave the name.
const MISC_COMM_EXEC: u16 = 1 << 13;
/// `PERF_SAMPLE_REGS_ABI_32`, `_64`.
const ABI_32: u64 = 1;
const ABI_64: u64 = 2;
/// Bytes of a record's header.
pub const HEADER: usize = 8;

/// The task and time at the end of every record, as far as `sample_type` requests them; else zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stamp {
    /// Process.
    pub pid: u32,
    /// Thread.
    pub tid: u32,
    /// ns.
    pub time: u64,
    /// The event ([`super::Event::id`]).
    pub id: u64,
    /// Processor.
    pub cpu: u32,
}

/// A mapping that a process has made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping<'a> {
    /// Process and thread.
    pub who: (u32, u32),
    /// Address.
    pub addr: u64,
    /// Bytes.
    pub len: u64,
    /// Offset in the file, bytes.
    pub offset: u64,
    /// Which file.
    pub file: FileId<'a>,
    /// `PROT_*`.
    pub prot: u32,
    /// `MAP_*`.
    pub flags: u32,
    /// Path, or `[vdso]`, `//anon` and the like.
    pub path: &'a [u8],
}

/// The identity of a mapped file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileId<'a> {
    /// Its build id, 1 to 20 bytes.
    BuildId(&'a [u8]),
    /// Device (major, minor) and inode, zero for no file.
    Inode(u32, u32, u64),
}

/// A sample's fields. Zero where `sample_type` does not request them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sample<'a> {
    /// Instruction pointer.
    pub ip: u64,
    /// Address.
    pub addr: u64,
    /// Who and when.
    pub stamp: Stamp,
    /// Events that it represents.
    pub period: u64,
    /// The process, where it was interrupted.
    pub user: User<'a>,
}

/// What a sample has of the process ([`super::Attr::copy_user`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct User<'a> {
    /// Its registers.
    pub registers: Registers,
    /// The bytes from the stack pointer on that could be read, at most as many as were asked for.
    pub stack: &'a [u8],
    /// As many as were asked for: there may be more.
    pub is_cut: bool,
}

/// The registers of a process, by `enum perf_sample_regs_abi`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Registers {
    /// It has none: a thread of the kernel, or one that has given up its memory.
    #[default]
    None,
    /// It runs 32-bit code.
    Narrow,
    /// Those with numbers of the System V ABI (figure 3.36: rax, rdx, rcx, rbx, rsi, rdi, rbp, rsp, r8 to r15), and rip.
    Wide([u64; 16], u64),
}

/// The registers of a sample, in the order of `enum perf_event_x86_regs` (arch/x86/include/uapi/asm/perf_regs.h), by their numbers in the
/// ABI; rip has none.
const IN_SAMPLES: [usize; 17] = [0, 3, 2, 1, 4, 5, 6, 7, RIP, 8, 9, 10, 11, 12, 13, 14, 15];
const RIP: usize = 16;

/// One record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Record<'a> {
    /// `MMAP`, `MMAP2`.
    Mapping(Mapping<'a>, Stamp),
    /// A new name of thread `tid`.
    Comm {
        /// Process and thread.
        who: (u32, u32),
        /// By an exec.
        exec: bool,
        /// The name.
        name: &'a [u8],
        /// Who and when.
        stamp: Stamp,
    },
    /// A new process or thread.
    Fork {
        /// Process and thread.
        who: (u32, u32),
        /// Its parent's.
        parent: (u32, u32),
        /// ns.
        time: u64,
    },
    /// The end of a thread.
    Exit {
        /// Process and thread.
        who: (u32, u32),
        /// ns.
        time: u64,
    },
    /// This many records did not fit.
    Lost(u64),
    /// The kernel has stopped a clock that ticks too often, or lets it go on.
    Throttle {
        /// It goes on.
        over: bool,
        /// The event, and which of those that children have inherited from it.
        id: (u64, u64),
        /// ns.
        time: u64,
    },
    /// A sample.
    Sample(Sample<'a>),
    /// Anything else: its kind.
    Other(u32),
}

/// Reads fields from the front.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn take(&mut self, n: usize) -> Option<&'a [u8]> {
        let (head, rest) = self.0.split_at_checked(n)?;
        self.0 = rest;
        Some(head)
    }

    fn u32(&mut self) -> Option<u32> {
        self.take(4).and_then(|b| Some(u32::from_ne_bytes(b.try_into().ok()?)))
    }

    fn u64(&mut self) -> Option<u64> {
        self.take(8).and_then(|b| Some(u64::from_ne_bytes(b.try_into().ok()?)))
    }

    fn pair(&mut self) -> Option<(u32, u32)> {
        Some((self.u32()?, self.u32()?))
    }

    /// Up to the first NUL of what is left.
    fn text(&self) -> &'a [u8] {
        self.0.split(|b| *b == 0).next().unwrap_or_default()
    }
}

/// Parses a record of an event that was opened with `sample_type` and [`super::bit::SAMPLE_ID_ALL`].
pub fn parse(bytes: &[u8], sample_type: u64) -> Record<'_> {
    let mut f = Fields(bytes);
    let head = (|| Some((f.u32()?, f.u32()?)))();
    let Some((kind, misc_size)) = head else { return Record::Other(0) };
    // Two u16: the flags come first.
    let misc = (misc_size.to_le() & 0xffff) as u16;
    body(kind, misc, &bytes[HEADER..], sample_type).unwrap_or(Record::Other(kind))
}

/// Whether a record is of a mapping.
pub fn is_mapping(bytes: &[u8]) -> bool {
    matches!(Fields(bytes).u32(), Some(kind::MMAP | kind::MMAP2))
}

/// The time of a record of an event that was opened with `sample_type`, which has [`sample::TIME`], and [`super::bit::SAMPLE_ID_ALL`].
pub fn time(bytes: &[u8], sample_type: u64) -> Option<u64> {
    let has = |bits: u64| (sample_type & bits).count_ones() as usize * 8;
    let at = match Fields(bytes).u32()? {
        kind::SAMPLE => HEADER + has(sample::IP | sample::TID),
        _ => bytes.len().checked_sub(stamp_len(sample_type))? + has(sample::TID),
    };
    Some(u64::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn body(kind: u32, misc: u16, bytes: &[u8], sample_type: u64) -> Option<Record<'_>> {
    if kind == kind::SAMPLE {
        return sampled(bytes, sample_type).map(Record::Sample);
    }
    let (fields, end) = bytes.split_at_checked(bytes.len().checked_sub(stamp_len(sample_type))?)?;
    let stamp = stamp(end, sample_type)?;
    let mut f = Fields(fields);
    Some(match kind {
        kind::MMAP => {
            let (who, addr, len, offset) = (f.pair()?, f.u64()?, f.u64()?, f.u64()?);
            let file = FileId::Inode(0, 0, 0);
            Record::Mapping(Mapping { who, addr, len, offset, file, prot: 0, flags: 0, path: f.text() }, stamp)
        }
        kind::MMAP2 => Record::Mapping(mapping(&mut f, misc)?, stamp),
        kind::COMM => {
            let who = f.pair()?;
            Record::Comm { who, exec: misc & MISC_COMM_EXEC != 0, name: f.text(), stamp }
        }
        kind::FORK | kind::EXIT => {
            let (pid, parent, tid, parent_tid, time) = (f.u32()?, f.u32()?, f.u32()?, f.u32()?, f.u64()?);
            match kind {
                kind::FORK => Record::Fork { who: (pid, tid), parent: (parent, parent_tid), time },
                _ => Record::Exit { who: (pid, tid), time },
            }
        }
        kind::LOST => {
            f.u64()?;
            Record::Lost(f.u64()?)
        }
        kind::THROTTLE | kind::UNTHROTTLE => {
            let (time, id) = (f.u64()?, (f.u64()?, f.u64()?));
            Record::Throttle { over: kind == kind::UNTHROTTLE, id, time }
        }
        kind::LOST_SAMPLES => Record::Lost(f.u64()?),
        other => Record::Other(other),
    })
}

fn mapping<'a>(f: &mut Fields<'a>, misc: u16) -> Option<Mapping<'a>> {
    let (who, addr, len, offset) = (f.pair()?, f.u64()?, f.u64()?, f.u64()?);
    let mut id = Fields(f.take(24)?);
    let file = if misc & MISC_MMAP_BUILD_ID != 0 {
        let size = usize::from(id.take(4)?[0]);
        FileId::BuildId(id.take(20)?.get(..size)?)
    } else {
        let (major, minor) = id.pair()?;
        FileId::Inode(major, minor, id.u64()?)
    };
    let (prot, flags) = f.pair()?;
    Some(Mapping { who, addr, len, offset, file, prot, flags, path: f.text() })
}

fn stamp_len(sample_type: u64) -> usize {
    (sample_type & (sample::TID | sample::TIME | sample::ID | sample::CPU)).count_ones() as usize * 8
}

/// `struct sample_id`: the fields that are asked for, in this order.
fn stamp(bytes: &[u8], sample_type: u64) -> Option<Stamp> {
    let (mut f, mut s) = (Fields(bytes), Stamp::default());
    let has = |bit| sample_type & bit != 0;
    if has(sample::TID) {
        (s.pid, s.tid) = f.pair()?;
    }
    if has(sample::TIME) {
        s.time = f.u64()?;
    }
    if has(sample::ID) {
        s.id = f.u64()?;
    }
    if has(sample::CPU) {
        s.cpu = f.pair()?.0;
    }
    Some(s)
}

/// A sample's order differs from that of the other records' ends.
fn sampled(bytes: &[u8], sample_type: u64) -> Option<Sample<'_>> {
    let (mut f, mut s) = (Fields(bytes), Sample::default());
    let has = |bit| sample_type & bit != 0;
    if has(sample::IP) {
        s.ip = f.u64()?;
    }
    if has(sample::TID) {
        (s.stamp.pid, s.stamp.tid) = f.pair()?;
    }
    if has(sample::TIME) {
        s.stamp.time = f.u64()?;
    }
    if has(sample::ADDR) {
        s.addr = f.u64()?;
    }
    if has(sample::ID) {
        s.stamp.id = f.u64()?;
    }
    if has(sample::CPU) {
        s.stamp.cpu = f.pair()?.0;
    }
    if has(sample::PERIOD) {
        s.period = f.u64()?;
    }
    if has(sample::REGS_USER) {
        s.user.registers = match f.u64()? {
            ABI_64 => {
                let (mut registers, mut ip) = ([0; 16], 0);
                for number in IN_SAMPLES {
                    let value = f.u64()?;
                    *registers.get_mut(number).unwrap_or(&mut ip) = value;
                }
                Registers::Wide(registers, ip)
            }
            ABI_32 => {
                f.take(8 * IN_SAMPLES.len())?;
                Registers::Narrow
            }
            _ => Registers::None,
        };
    }
    if has(sample::STACK_USER) {
        let size = usize::try_from(f.u64()?).ok()?;
        let copy = f.take(size)?;
        // How many of them were read follows, but only where there was a stack.
        let read = if size == 0 { 0 } else { usize::try_from(f.u64()?).ok()?.min(size) };
        (s.user.stack, s.user.is_cut) = (&copy[..read], read == size);
    }
    Some(s)
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHO: u64 = sample::TID | sample::TIME;

    fn record(kind: u32, misc: u16, fields: &[u8]) -> Vec<u8> {
        let mut v = kind.to_ne_bytes().to_vec();
        v.extend(misc.to_ne_bytes());
        v.extend(((fields.len() + HEADER) as u16).to_ne_bytes());
        v.extend(fields);
        v
    }

    fn words(words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|w| w.to_ne_bytes()).collect()
    }

    fn mmap2(misc: u16, id: &[u32]) -> Vec<u8> {
        let mut f = words(&[7, 8, 0x1000, 0, 0x2000, 0, 0x3000, 0]);
        f.extend(words(id));
        f.extend(words(&[5, 2]));
        f.extend(b"/bin/x\0\0");
        f.extend(words(&[7, 8, 99, 0]));
        record(10, misc, &f)
    }

    #[test]
    fn mappings_have_an_inode_or_a_build_id() {
        let stamp = Stamp { pid: 7, tid: 8, time: 99, ..Stamp::default() };
        let with = |file| {
            let (who, path) = ((7, 8), b"/bin/x".as_slice());
            let m = Mapping { who, addr: 0x1000, len: 0x2000, offset: 0x3000, file, prot: 5, flags: 2, path };
            Record::Mapping(m, stamp)
        };
        let inode = mmap2(0, &[8, 1, 77, 0, 0, 0]);
        assert_eq!(parse(&inode, WHO), with(FileId::Inode(8, 1, 77)));
        let id = mmap2(1 << 14, &[u32::from_ne_bytes([4, 0, 0, 0]), 0x0403_0201, 0, 0, 0, 0]);
        assert_eq!(parse(&id, WHO), with(FileId::BuildId(&0x0403_0201u32.to_ne_bytes())));
        // A build id with an impossible size makes the record invalid.
        let bad = mmap2(1 << 14, &[u32::from_ne_bytes([21, 0, 0, 0]), 1, 0, 0, 0, 0]);
        assert_eq!(parse(&bad, WHO), Record::Other(10));
    }

    #[test]
    fn names_forks_exits_and_losses() {
        let mut f = words(&[7, 8]);
        f.extend(b"sh\0\0\0\0\0\0");
        f.extend(words(&[7, 8, 5, 0]));
        let stamp = Stamp { pid: 7, tid: 8, time: 5, ..Stamp::default() };
        let comm = record(3, 1 << 13, &f);
        assert_eq!(parse(&comm, WHO), Record::Comm { who: (7, 8), exec: true, name: b"sh", stamp });
        let task = words(&[9, 7, 10, 8, 6, 0, 7, 8, 6, 0]);
        let (who, parent, time) = ((9, 10), (7, 8), 6);
        assert_eq!(parse(&record(7, 0, &task), WHO), Record::Fork { who, parent, time });
        assert_eq!(parse(&record(4, 0, &task), WHO), Record::Exit { who, time });
        assert_eq!(parse(&record(2, 0, &words(&[1, 0, 33, 0, 7, 8, 6, 0])), WHO), Record::Lost(33));
        assert_eq!(parse(&record(2, 0, &words(&[1, 0, 33, 0])), 0), Record::Lost(33));
    }

    #[test]
    fn samples_have_their_own_order() {
        let all = sample::IP | WHO | sample::ADDR | sample::ID | sample::CPU | sample::PERIOD;
        let bytes = record(9, 0, &words(&[1, 0, 7, 8, 3, 0, 4, 0, 5, 0, 6, 0, 2, 0]));
        let stamp = Stamp { pid: 7, tid: 8, time: 3, id: 5, cpu: 6 };
        assert_eq!(time(&bytes, all), Some(3));
        assert_eq!(
            parse(&bytes, all),
            Record::Sample(Sample { ip: 1, addr: 4, stamp, period: 2, ..Sample::default() })
        );
    }

    #[test]
    fn samples_have_registers_and_a_stack() {
        let all = sample::TID | sample::REGS_USER | sample::STACK_USER;
        let parsed = |fields: &[u32]| {
            let bytes = record(9, 0, &words(fields));
            match parse(&bytes, all) {
                Record::Sample(s) => Some((s.user.registers, s.user.stack.to_vec(), s.user.is_cut)),
                _ => None,
            }
        };
        // Each has its place in the sample, from 1, as its value.
        let values = |n: u32| (1..=n).flat_map(|v| [v, 0]).collect::<Vec<_>>();
        let head = [vec![7, 8, 2, 0], values(17)].concat();
        let wide = || Registers::Wide([1, 4, 3, 2, 5, 6, 7, 8, 10, 11, 12, 13, 14, 15, 16, 17], 9);
        let with = |rest: &[u32]| parsed(&[&head[..], rest].concat());
        let stack = words(&[5, 6, 7, 8]);
        assert_eq!(with(&[16, 0, 5, 6, 7, 8, 16, 0]), Some((wide(), stack.clone(), true)));
        assert_eq!(with(&[16, 0, 5, 6, 7, 8, 8, 0]), Some((wide(), stack[..8].to_vec(), false)));
        // More than there is.
        assert_eq!(with(&[16, 0, 5, 6, 7, 8, 99, 0]).unwrap().1, stack);
        assert_eq!(with(&[32, 0, 5, 6, 7, 8, 8, 0]), None);
        assert_eq!(with(&[0, 0]), Some((wide(), Vec::new(), true)));
        assert_eq!(parsed(&[7, 8, 0, 0, 0, 0]), Some((Registers::None, Vec::new(), true)));
        assert_eq!(parsed(&[vec![7, 8, 1, 0], values(17), vec![0, 0]].concat()).unwrap().0, Registers::Narrow);
    }

    #[test]
    fn clocks_that_stop_are_reported() {
        let end = [7, 8, 9, 0];
        let of = |kind| record(kind, 0, &words(&[&[6, 0, 3, 0, 4, 0][..], &end].concat()));
        assert_eq!((time(&of(5), WHO), time(&[5, 0, 0, 0], WHO), time(&[], WHO)), (Some(9), None, None));
        assert_eq!(parse(&of(5), WHO), Record::Throttle { over: false, id: (3, 4), time: 6 });
        assert_eq!(parse(&of(6), WHO), Record::Throttle { over: true, id: (3, 4), time: 6 });
    }

    #[test]
    fn what_is_cut_off_is_no_record_and_no_panic() {
        for (kind, whole) in [(10, mmap2(0, &[8, 1, 77, 0, 0, 0])), (10, mmap2(1 << 14, &[20, 0, 0, 0, 0, 0]))] {
            for n in 0..whole.len() {
                let r = parse(&whole[..n], WHO);
                assert!(matches!(r, Record::Other(_) | Record::Mapping(..)), "{kind} {n} {r:?}");
            }
        }
        for kind in 0..25 {
            for len in 0..80 {
                let _ = parse(&record(kind, u16::MAX, &vec![0xff; len]), u64::MAX);
            }
        }
    }
}
