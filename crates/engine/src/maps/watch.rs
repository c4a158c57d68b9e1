//! The kernel's records of mappings: a dummy event per thread and CPU that children inherit, and one ring per CPU.

use std::io;
use sys::perf::record::{self, Mapping, Record};
use sys::perf::ring::Ring;
use sys::perf::{self, Attr, Event, bit, sample};
use sys::processors;

const SAMPLE_TYPE: u64 = sample::TID | sample::TIME | sample::ID;
/// Bytes of `SAMPLE_TYPE` at the end of a record.
const STAMP: usize = 24;
const EXEC: u32 = 4;
/// Pages of data per ring, as many as the limits on locked memory allow.
const PAGES: [usize; 4] = [64, 32, 16, 4];

/// One CPU: its ring, the event that owns it (of the caller, it never says anything), and those that write there.
struct Cpu {
    cpu: i32,
    ring: Ring,
    owner: Event,
    events: Vec<Event>,
}

/// Events and rings.
pub struct Watch {
    attr: Attr,
    cpus: Vec<Cpu>,
}

impl Watch {
    /// Makes the rings.
    pub fn new() -> io::Result<Watch> {
        let base = Attr::new(perf::TYPE_SOFTWARE, perf::SW_DUMMY)
            .period(1)
            .sample_type(SAMPLE_TYPE)
            .flags(bit::SAMPLE_ID_ALL | bit::EXCLUDE_KERNEL | bit::EXCLUDE_HV)
            .monotonic();
        let mut cpus = Vec::new();
        for cpu in processors::online()? {
            let cpu = cpu as i32;
            let owner = match Event::open(&base, 0, cpu) {
                Err(e) if is_offline(&e) => continue,
                other => other?,
            };
            cpus.push(Cpu { cpu, ring: ring(&owner)?, owner, events: Vec::new() });
        }
        if cpus.is_empty() {
            return Err(io::ErrorKind::NotFound.into());
        }
        let attr = base.flags(bit::INHERIT | bit::MMAP | bit::MMAP2 | bit::COMM | bit::COMM_EXEC);
        let with_id = attr.clone().flags(bit::BUILD_ID);
        // A kernel before 5.12 has inodes instead of build ids.
        let attr = if Event::open(&with_id, 0, cpus[0].cpu).is_ok() { with_id } else { attr };
        Ok(Watch { attr, cpus })
    }

    /// Watches a thread, and what it starts from now on. One that has ended is no error.
    pub fn add(&mut self, tid: i32) -> io::Result<()> {
        const ESRCH: i32 = 3;
        for c in &mut self.cpus {
            let event = match Event::open(&self.attr, tid, c.cpu) {
                Err(e) if e.raw_os_error() == Some(ESRCH) => return Ok(()),
                Err(e) if is_offline(&e) => continue,
                other => other?,
            };
            event.output_to(&c.owner)?;
            c.events.push(event);
        }
        Ok(())
    }

    /// Hands over what was recorded, in the order of each CPU; returns how many records the kernel has lost.
    ///
    /// A thread that was added and also inherited reports everything twice, one record after the other,
    /// for two events: once is enough.
    pub fn drain(&mut self, mut each: impl FnMut(Said<'_, '_>, u64)) -> u64 {
        let mut lost = 0;
        for c in &mut self.cpus {
            let (mut last, mut last_id) = (Vec::new(), 0);
            c.ring.drain(|bytes| match record::parse(bytes, SAMPLE_TYPE) {
                Record::Mapping(m, stamp) if m.prot & EXEC != 0 => {
                    let said = &bytes[..bytes.len() - STAMP];
                    if stamp.id == last_id || last != said {
                        (last, last_id) = (said.to_vec(), stamp.id);
                        each(Said::Mapping(&m), stamp.time);
                    }
                }
                Record::Comm { who, exec: true, stamp, .. } => each(Said::Exec(who.0), stamp.time),
                Record::Lost(n) => lost += n,
                _ => {}
            });
        }
        lost
    }
}

/// What a record reports.
pub enum Said<'m, 'b> {
    /// A mapping with executable pages.
    Mapping(&'m Mapping<'b>),
    /// This process is executing a program, whose mappings follow.
    Exec(u32),
}

fn is_offline(e: &io::Error) -> bool {
    const ENODEV: i32 = 19;
    e.raw_os_error() == Some(ENODEV)
}

fn ring(event: &Event) -> io::Result<Ring> {
    let mut error = io::Error::from(io::ErrorKind::OutOfMemory);
    for pages in PAGES {
        match Ring::new(event, pages) {
            Ok(r) => return Ok(r),
            Err(e) => error = e,
        }
    }
    Err(error)
}
