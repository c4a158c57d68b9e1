//! The kernel's records of what processes map, begin and end: two rings per CPU. That of mappings and execs wakes its reader at each record.
//! That of forks and exits does not, because nobody waits for those: a program has given the child its entry in the table.
//!
//! The events are those of CPUs and not of processes. They see everything, whoever is of interest: opening them does not wait for the
//! kernel's readers (events of a process do, for a grace period of RCU), none is taken off a process that executes a program with other
//! rights, threads need no search, and nothing is reported twice.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use sys::perf::record::{self, FileId, Record};
use sys::perf::ring::Ring;
use sys::perf::{self, Attr, Event, bit, sample};
use sys::processors;

const SAMPLE_TYPE: u64 = sample::TID | sample::TIME;
/// Bytes of forks and exits that wake the reader: some hundred processes, which are in the table until it has seen them end.
const UNURGENT: u32 = 1 << 14;
/// Pages of data per ring, as many as the limits on locked memory allow.
const PAGES: [usize; 4] = [128, 64, 16, 4];

/// Which file is mapped, as the kernel says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum MappedFile {
    BuildId(Vec<u8>),
    /// Device (major, minor) and inode.
    Inode((u32, u32, u64)),
}

/// What has happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Happened {
    /// Executable code was mapped.
    Mapped { range: (u64, u64), offset: u64, file: MappedFile, path: Vec<u8> },
    /// A program begins.
    Exec,
    /// A process has begun; its creator.
    Fork(u32),
    /// The first thread has ended.
    Exit,
}

/// A record.
#[derive(Clone, Debug)]
pub(super) struct Said {
    pub time: u64,
    pub pid: u32,
    pub what: Happened,
}

/// Events and rings.
pub(super) struct Records(Vec<(Event, Ring)>);

impl Records {
    /// Opens them. Needs CAP_PERFMON.
    pub fn open() -> io::Result<Records> {
        let attr = Attr::new(perf::TYPE_SOFTWARE, perf::SW_DUMMY)
            .period(1)
            .sample_type(SAMPLE_TYPE)
            .flags(bit::SAMPLE_ID_ALL)
            .monotonic();
        let tasks = attr.clone().flags(bit::TASK).wake_at(UNURGENT);
        let mapped = attr.flags(bit::MMAP | bit::MMAP2 | bit::COMM | bit::COMM_EXEC).wake_at(1);
        let with_id = mapped.clone().flags(bit::BUILD_ID);
        let mut all = Vec::new();
        for cpu in processors::online()? {
            let cpu = cpu as i32;
            let mapped = open(&with_id, cpu).or_else(|_| open(&mapped, cpu));
            match mapped.and_then(|mapped| Ok([mapped, open(&tasks, cpu)?])) {
                // ENODEV: it has gone off line.
                Err(e) if e.raw_os_error() == Some(19) => {}
                other => all.extend(other?),
            }
        }
        if all.is_empty() { Err(io::ErrorKind::NotFound.into()) } else { Ok(Records(all)) }
    }

    /// What becomes readable when there are records.
    pub fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.0.iter().map(|(event, _)| event.as_fd())
    }

    /// Hands over what there is, in the order of each CPU. Returns how many records the kernel has lost.
    pub fn drain(&mut self, mut each: impl FnMut(Said)) -> u64 {
        let mut lost = 0;
        for (_, ring) in &mut self.0 {
            ring.drain(|bytes| match record::parse(bytes, SAMPLE_TYPE) {
                Record::Lost(n) => lost += n,
                other => {
                    if let Some(said) = of(other) {
                        each(said);
                    }
                }
            });
        }
        lost
    }
}

fn open(attr: &Attr, cpu: i32) -> io::Result<(Event, Ring)> {
    let event = Event::open(attr, -1, cpu)?;
    let mut error = io::Error::from(io::ErrorKind::OutOfMemory);
    for pages in PAGES {
        match Ring::new(&event, pages) {
            Ok(ring) => return Ok((event, ring)),
            Err(e) => error = e,
        }
    }
    Err(error)
}

fn of(record: Record<'_>) -> Option<Said> {
    match record {
        Record::Mapping(m, stamp) if m.prot & sys::maps::PROT_EXEC != 0 => {
            let file = match m.file {
                FileId::BuildId(id) => MappedFile::BuildId(id.to_vec()),
                FileId::Inode(major, minor, inode) => MappedFile::Inode((major, minor, inode)),
            };
            let range = (m.addr, m.addr.saturating_add(m.len));
            let what = Happened::Mapped { range, offset: m.offset, file, path: m.path.to_vec() };
            Some(Said { time: stamp.time, pid: m.who.0, what })
        }
        Record::Comm { who, exec: true, stamp, .. } => {
            Some(Said { time: stamp.time, pid: who.0, what: Happened::Exec })
        }
        Record::Fork { who, parent, time } if who.0 != parent.0 => {
            Some(Said { time, pid: who.0, what: Happened::Fork(parent.0) })
        }
        Record::Exit { who: (pid, tid), time } if pid == tid => Some(Said { time, pid, what: Happened::Exit }),
        _ => None,
    }
}
