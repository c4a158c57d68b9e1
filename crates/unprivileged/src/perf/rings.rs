//! The events of a session, and a ring per CPU for their records.
//!
//! ```text
//!  thread × CPU: a dummy (mappings, names, forks, ends) and a clock per enabling, inherited by children
//!                                        └─► the CPU's ring, which belongs to a dummy of trapline's own
//! ```
//!
//! Dummies and clocks are events of their own, so that the kernel counts what each has lost.

use super::processes::Ahead;
use engine::error::{Error, Result};
use engine::pipeline::merge::Merge;
use engine::provider::{ArgLocation, AttachPoint};
use engine::request::probe_enabling::{ProbeEnabling, Source};
use events::StreamId;
use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use sys::perf::attach::{Counter, Rate};
use sys::perf::record::{self, HEADER};
use sys::perf::ring::Ring;
use sys::perf::{self, Attr, Event, bit, sample};
use sys::processors;

/// What all records have.
const STAMP: u64 = sample::TID | sample::TIME | sample::ID | sample::CPU;
/// The smallest ring, pages; it holds a sample.
const LEAST: usize = 32;
const PAGE: usize = 4096;

/// Since when the clocks tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begin {
    /// The thread's next exec.
    Exec,
    /// [`Rings::tick`] is called.
    Told,
}

struct Cpu {
    number: u32,
    ring: Ring,
    /// Owns the ring, and never says anything.
    owner: Event,
    dummies: Vec<Event>,
    /// Clocks, each with its enabling.
    clocks: Vec<(usize, Event)>,
    /// Records in the ring that were lost, as records say.
    reported: u64,
    /// Events of each enabling that were lost.
    dropped: Vec<u64>,
    /// Records of dummies that were lost.
    lost: u64,
}

/// A clock or a counter that is opened for each thread.
struct Clock {
    /// The number of its enabling.
    nth: usize,
    attr: Attr,
    /// ns; 0: it is no clock.
    period: u64,
}

/// All rings.
pub struct Rings {
    cpus: Vec<Cpu>,
    dummy: Attr,
    clocks: Vec<Clock>,
    /// The enablings of events, by the number that records have.
    of: HashMap<u64, usize>,
    sample_type: u64,
    /// The kernel counts what each event has lost.
    counts: bool,
    /// Bytes of each ring.
    pub size: usize,
    /// Bytes and records that were taken out.
    pub passed: engine::stats::Passed,
}

fn failed(what: &str, e: &io::Error) -> Error {
    let todo = "see 'trapline doctor'; a container or sandbox may forbid perf_event_open(2)";
    Error::failed(what, e.to_string(), todo)
}

impl Rings {
    /// Makes the rings, of `buffer` bytes if the limits on locked memory allow it; `stack`: bytes of a stack that are copied.
    ///
    /// # Errors
    /// What the user may not open, or locked memory that is not even enough for small rings.
    pub fn new(enablings: &[&Arc<ProbeEnabling>], stack: u32, buffer: usize) -> Result<Rings> {
        let has_stack = enablings.iter().any(|e| e.fields.iter().any(|f| matches!(f, Source::UserStack(_))));
        let stack = if has_stack { stack } else { 0 };
        let base = |kind, config| {
            let attr = Attr::new(kind, config).flags(bit::SAMPLE_ID_ALL | bit::INHERIT).monotonic();
            attr.sample_type(STAMP | sample::ADDR)
        };
        let online = processors::online().map_err(|e| failed("perf events", &e))?;
        let first = *online.first().unwrap_or(&0) as i32;
        let (mut clocks, mut counts) = (Vec::new(), true);
        let is_clock = |e: &&Arc<ProbeEnabling>| looked_at(e).is_none();
        for (nth, e) in enablings.iter().enumerate().filter(|(_, e)| is_clock(e)) {
            let (config, period) = clock_of(e).ok_or_else(|| unable(&e.name))?;
            let attr = base(perf::TYPE_SOFTWARE, config).copy_user(stack).flags(bit::DISABLED);
            let attr = match rate_of(e) {
                Some(Rate::Hz(hz)) => attr.frequency(hz),
                _ => attr.period(period),
            };
            let (attr, lost) = allowed(&attr, first).map_err(|error| refused(e, &error))?;
            counts &= lost;
            clocks.push(Clock { nth, attr, period: if rate_of(e).is_some() { period } else { 0 } });
        }
        let own = Attr::new(perf::TYPE_SOFTWARE, perf::SW_DUMMY).period(1).sample_type(STAMP).monotonic();
        let own = own.flags(bit::SAMPLE_ID_ALL | bit::EXCLUDE_KERNEL | bit::EXCLUDE_HV);
        let said = bit::INHERIT | bit::MMAP | bit::MMAP2 | bit::COMM | bit::COMM_EXEC | bit::TASK;
        let dummy = own.clone().flags(said);
        let dummy = if counts { dummy.count_lost() } else { dummy };
        let pages = (buffer / PAGE).clamp(LEAST, 1 << 18);
        let mut pages = if pages.is_power_of_two() { pages } else { pages.next_power_of_two() / 2 };
        let cpus = loop {
            match cpus(&online, &own, pages, enablings.len()) {
                Ok(cpus) => break cpus,
                Err(e) if e.kind() == io::ErrorKind::PermissionDenied && pages > LEAST => pages /= 2,
                Err(e) => return Err(no_room(&e)),
            }
        };
        let sample_type = STAMP | sample::ADDR | sample::REGS_USER | if stack > 0 { sample::STACK_USER } else { 0 };
        let (size, passed, of) = (pages * PAGE, Default::default(), HashMap::new());
        Ok(Rings { cpus, dummy, clocks, of, sample_type, counts, size, passed })
    }

    /// Opens the events of a thread, which children inherit from it. A thread that has ended is no error.
    ///
    /// # Errors
    /// It is somebody else's; there are too many descriptors.
    pub fn add(&mut self, tid: i32, begin: Begin) -> io::Result<()> {
        const ESRCH: i32 = 3;
        let on_exec = if begin == Begin::Exec { bit::ENABLE_ON_EXEC } else { 0 };
        for cpu in &mut self.cpus {
            let open = |attr: &Attr| {
                let event = Event::open(attr, tid, cpu.number as i32)?;
                event.output_to(&cpu.owner)?;
                io::Result::Ok(event)
            };
            let opened = open(&self.dummy).and_then(|dummy| {
                let clocks = self.clocks.iter().map(|c| io::Result::Ok((c.nth, open(&c.attr.clone().flags(on_exec))?)));
                Ok((dummy, clocks.collect::<io::Result<Vec<_>>>()?))
            });
            let (dummy, clocks) = match opened {
                Err(e) if e.raw_os_error() == Some(ESRCH) => return Ok(()),
                other => other?,
            };
            cpu.dummies.push(dummy);
            for (nth, clock) in clocks {
                self.of.insert(clock.id()?, nth);
                cpu.clocks.push((nth, clock));
            }
        }
        Ok(())
    }

    /// Lets all clocks tick, or stops them.
    pub fn tick(&self, on: bool) {
        for (_, clock) in self.cpus.iter().flat_map(|c| &c.clocks) {
            let _ = if on { clock.enable() } else { clock.disable() };
        }
    }

    /// Takes what is in the rings; returns how many records.
    pub fn drain(&mut self, merge: &mut Merge, ahead: &mut Ahead) -> usize {
        let Rings { cpus, sample_type, passed, .. } = self;
        let mut n = 0;
        for cpu in cpus {
            let stream = StreamId::cpu(cpu.number);
            n += cpu.ring.drain(|bytes| {
                passed.add(bytes);
                if bytes.len() >= HEADER {
                    if record::is_mapping(bytes)
                        && let record::Record::Mapping(m, _) = record::parse(bytes, *sample_type)
                    {
                        ahead.read(&m);
                    }
                    merge.push_at(record::time(bytes, *sample_type).unwrap_or(0), stream, bytes);
                }
            });
        }
        n
    }

    /// A record, parsed.
    pub fn parse<'b>(&self, bytes: &'b [u8]) -> record::Record<'b> {
        record::parse(bytes, self.sample_type)
    }

    /// The enabling of an event by the number that records have.
    pub fn enabling(&self, id: u64) -> Option<usize> {
        self.of.get(&id).copied()
    }

    /// The period of an enabling's clock, ns; 0: it is none.
    pub fn period(&self, enabling: usize) -> u64 {
        self.clocks.iter().find(|c| c.nth == enabling).map_or(0, |c| c.period)
    }

    /// A record says that this many did not fit.
    pub fn note_lost(&mut self, stream: StreamId, n: u64) {
        let cpu = self.cpus.iter_mut().find(|c| StreamId::cpu(c.number) == stream);
        cpu.into_iter().for_each(|c| c.reported += n);
    }

    /// Asks the kernel what was lost.
    pub fn count_lost(&mut self) {
        for cpu in &mut self.cpus {
            if self.counts {
                cpu.lost = cpu.dummies.iter().filter_map(|e| e.lost().ok()).sum();
                cpu.dropped.fill(0);
                for (nth, clock) in &cpu.clocks {
                    cpu.dropped[*nth] += clock.lost().unwrap_or(0);
                }
            } else if let Some(first) = cpu.dropped.first_mut() {
                // A kernel before 6.0 tells not whose they were; nearly all are samples.
                *first = cpu.reported;
            }
        }
    }

    /// Events of an enabling that were lost, as they were last counted.
    pub fn dropped(&self, enabling: usize) -> u64 {
        self.cpus.iter().filter_map(|c| c.dropped.get(enabling)).sum()
    }

    /// Events of an enabling that were lost on a CPU, as they were last counted.
    pub fn dropped_on(&self, cpu: u32, enabling: usize) -> u64 {
        let cpu = self.cpus.iter().find(|c| c.number == cpu);
        cpu.and_then(|c| c.dropped.get(enabling)).copied().unwrap_or(0)
    }

    /// Records of mappings, names, forks and ends that were lost.
    pub fn lost(&self) -> u64 {
        self.cpus.iter().map(|c| c.lost).sum()
    }

    /// The CPUs.
    pub fn cpus(&self) -> impl Iterator<Item = u32> {
        self.cpus.iter().map(|c| c.number)
    }

    /// Readable when a part of a ring is full.
    pub fn fds(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.cpus.iter().map(|c| c.owner.as_fd())
    }
}

/// The rate of a clock.
fn rate_of(e: &ProbeEnabling) -> Option<Rate> {
    match e.point {
        Some(AttachPoint::Clock { rate, .. }) => Some(rate),
        _ => None,
    }
}

/// The software event of an enabling, and its period; none where it is another probe.
fn clock_of(e: &ProbeEnabling) -> Option<(u64, u64)> {
    match e.point.as_ref()? {
        AttachPoint::Clock { rate, every_cpu: true } => {
            let period = match rate {
                Rate::Hz(hz) => 1_000_000_000u64.checked_div(*hz)?,
                Rate::Ns(ns) => *ns,
            };
            Some((perf::SW_CPU_CLOCK, period))
        }
        AttachPoint::Counter { counter: Counter::Software(config), period } => Some((*config, *period)),
        _ => None,
    }
}

/// How often threads that do not run are looked at for an enabling, ns.
pub fn looked_at(e: &ProbeEnabling) -> Option<u64> {
    match e.point {
        Some(AttachPoint::Blocked { period }) => Some(period),
        _ => None,
    }
}

/// Whether this backend has the probe and all that its events capture.
pub fn can_carry(e: &ProbeEnabling) -> bool {
    let has = |f: &Source| match f {
        Source::Comm | Source::Cpu | Source::Uid | Source::Gid | Source::UserStack(_) | Source::Hidden { .. } => true,
        Source::Number(n) => matches!(n.at, ArgLocation::EventAddress | ArgLocation::Elapsed),
        _ => false,
    };
    (clock_of(e).is_some() || looked_at(e).is_some()) && e.fields.iter().all(has)
}

fn unable(name: &str) -> Error {
    Error::failed(format!("-e {name}"), "only the kernel backend has this probe", "leave out --unwind copy")
}

/// What of an event the user may open, tried on the calling thread: as it is, or without what happens in the kernel; with counts of what
/// is lost, or, before Linux 6.0, without; whether it has them.
fn allowed(attr: &Attr, cpu: i32) -> io::Result<(Attr, bool)> {
    let user = attr.clone().flags(bit::EXCLUDE_KERNEL | bit::EXCLUDE_HV);
    let mut error = io::Error::from(io::ErrorKind::Unsupported);
    for attr in [attr, &user] {
        for counts in [true, false] {
            let tried = if counts { attr.clone().count_lost() } else { attr.clone() };
            match Event::open(&tried, 0, cpu) {
                Ok(_) => return Ok((tried, counts)),
                Err(e) => error = e,
            }
        }
    }
    Err(error)
}

/// Why a probe cannot be opened.
fn refused(e: &ProbeEnabling, error: &io::Error) -> Error {
    let most = std::fs::read_to_string("/proc/sys/kernel/perf_event_max_sample_rate").ok();
    let most = most.and_then(|n| n.trim().parse::<u64>().ok());
    if let (Some(Rate::Hz(hz)), Some(most)) = (rate_of(e), most)
        && hz > most
    {
        let why = format!("kernel.perf_event_max_sample_rate is {most}");
        return Error::failed(format!("-e {}", e.name), why, "sample less often");
    }
    failed(&format!("-e {}", e.name), error)
}

fn no_room(e: &io::Error) -> Error {
    let todo = "raise 'ulimit -l' or kernel.perf_event_mlock_kb, or end other sessions of yours";
    Error::failed("buffers of perf events", format!("{e}: {} KiB per CPU of locked memory", (LEAST * PAGE) >> 10), todo)
}

fn cpus(online: &[u32], own: &Attr, pages: usize, enablings: usize) -> io::Result<Vec<Cpu>> {
    const ENODEV: i32 = 19;
    let own = own.clone().wake_at((pages * PAGE / 4) as u32);
    let mut cpus = Vec::new();
    for &number in online {
        let owner = match Event::open(&own, 0, number as i32) {
            Err(e) if e.raw_os_error() == Some(ENODEV) => continue,
            other => other?,
        };
        let ring = Ring::new(&owner, pages)?;
        let (dummies, clocks, dropped) = (Vec::new(), Vec::new(), vec![0; enablings]);
        cpus.push(Cpu { number, ring, owner, dummies, clocks, reported: 0, dropped, lost: 0 });
    }
    if cpus.is_empty() { Err(io::ErrorKind::NotFound.into()) } else { Ok(cpus) }
}
