//! Events that programs are attached to: functions of programs and of the kernel, tracepoints, clocks,
//! counters and watched addresses.
//!
//! All start disabled; [`crate::bpf::link::Link::perf`] attaches a program to one and enables it. Without a pid (or with -1) an
//! event of a place in code is opened on one CPU, but its program runs on every CPU: it belongs to the place. Clocks and
//! counters belong to the CPU, or to the thread, that they are opened for.

use super::{Attr, Event, SW_CPU_CLOCK, TYPE_BREAKPOINT, TYPE_HARDWARE, TYPE_SOFTWARE, TYPE_TRACEPOINT, bit, open};
use std::ffi::CString;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// How often a clock ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rate {
    /// Times a second.
    Hz(u64),
    /// Once in this many ns.
    Ns(u64),
}

/// A function of a program or library, or any instruction of it.
#[derive(Clone, Copy, Debug)]
pub struct Uprobe<'a> {
    /// The file.
    pub path: &'a Path,
    /// Where the instruction lies in the file.
    pub offset: u64,
    /// When the function that begins there returns, instead.
    pub at_return: bool,
    /// Offset of a counter in the file that is raised while it is attached (the semaphore of a static probe, Linux 4.20); 0: none.
    pub counter: u64,
    /// One process only.
    pub pid: Option<i32>,
}

impl Uprobe<'_> {
    /// Opens the event.
    ///
    /// # Errors
    /// `NotFound`: a kernel without uprobes. `InvalidInput`: an instruction that cannot be probed, or outside the file.
    pub fn open(&self) -> io::Result<Event> {
        let pmu = Pmu::named("uprobe")?;
        let mut config = pmu.at_return(self.at_return)?;
        if self.counter != 0 {
            let shift = pmu.bit("ref_ctr_offset")?;
            // The word has room for 32 bits.
            config |= u64::from(u32::try_from(self.counter).map_err(|_| io::ErrorKind::InvalidInput)?) << shift;
        }
        let path = CString::new(self.path.as_os_str().as_bytes())?;
        pmu.open(config, &path, self.offset, self.pid)
    }
}

/// An instruction of a function of the kernel, or its return. `NotFound`: a kernel without kprobes, or no such function.
pub fn kprobe(function: &str, offset: u64, at_return: bool) -> io::Result<Event> {
    let pmu = Pmu::named("kprobe")?;
    let name = CString::new(function)?;
    pmu.open(pmu.at_return(at_return)?, &name, offset, None)
}

/// An instruction of the kernel, or the return of the function that begins there. `NotFound`: a kernel without kprobes.
pub fn kprobe_at(address: u64, at_return: bool) -> io::Result<Event> {
    let pmu = Pmu::named("kprobe")?;
    let attr = Attr::new(pmu.kind, pmu.at_return(at_return)?).flags(bit::DISABLED).configs(0, address);
    Event::open(&attr, -1, 0)
}

/// The classic tracepoint `id` ([`crate::bpf::link::tracepoint_id`]).
pub fn tracepoint(id: u64) -> io::Result<Event> {
    Event::open(&Attr::new(TYPE_TRACEPOINT, id).flags(bit::DISABLED), -1, 0)
}

/// A clock of one CPU, whatever runs there.
pub fn profile(cpu: u32, rate: Rate) -> io::Result<Event> {
    let attr = Attr::new(TYPE_SOFTWARE, SW_CPU_CLOCK).flags(bit::DISABLED);
    let attr = match rate {
        Rate::Hz(hz) => attr.frequency(hz),
        Rate::Ns(ns) => attr.period(ns),
    };
    Event::open(&attr, -1, cpu as i32)
}

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counter {
    /// A number of [`super::SOFTWARE`].
    Software(u64),
    /// A number of [`super::HARDWARE`].
    Hardware(u64),
}

/// A counter: one event per `period` counts, of a thread, or of all that a CPU runs.
///
/// # Errors
/// `NotFound`, `Unsupported`: the processor has no such counter.
pub fn counter(counter: Counter, period: u64, target: Target) -> io::Result<Event> {
    let (kind, config) = match counter {
        Counter::Software(config) => (TYPE_SOFTWARE, config),
        Counter::Hardware(config) => (TYPE_HARDWARE, config),
    };
    let attr = Attr::new(kind, config).flags(bit::DISABLED).period(period);
    match target {
        Target::Thread(tid) => Event::open(&attr, tid, -1),
        Target::Cpu(cpu) => Event::open(&attr, -1, cpu as i32),
    }
}

/// Which accesses to an address are watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Writes.
    Write,
    /// Reads and writes: x86 cannot watch reads alone.
    ReadWrite,
    /// Execution of the instruction that begins there.
    Execute,
}

/// Accesses to `len` bytes at an address, by whatever a CPU runs: a debug register, of which x86 has four.
///
/// # Errors
/// `ENOSPC`: all debug registers are taken. `InvalidInput`: a length other than 1, 2, 4 and 8, or an address that is not a multiple of
/// it.
pub fn watch(address: u64, len: u8, access: Access, cpu: u32) -> io::Result<Event> {
    // `HW_BREAKPOINT_*` (include/uapi/linux/hw_breakpoint.h, 6.18).
    let kind = match access {
        Access::Write => 2,
        Access::ReadWrite => 3,
        Access::Execute => 4,
    };
    let attr =
        Attr::new(TYPE_BREAKPOINT, 0).flags(bit::DISABLED).period(1).breakpoint(kind).configs(address, len.into());
    // SAFETY: of a breakpoint, the kernel compares the address and never follows it.
    unsafe { open(&attr, -1, cpu as i32) }
}

/// What a counter counts for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// A thread (0: the caller).
    Thread(i32),
    /// A CPU.
    Cpu(u32),
}

/// A kind of events that the kernel describes in `/sys/bus/event_source/devices`.
struct Pmu {
    dir: String,
    kind: u32,
}

impl Pmu {
    fn named(name: &str) -> io::Result<Pmu> {
        let dir = format!("/sys/bus/event_source/devices/{name}");
        let text = std::fs::read_to_string(format!("{dir}/type"))?;
        let kind = text.trim().parse().map_err(|_| io::ErrorKind::InvalidData)?;
        Ok(Pmu { dir, kind })
    }

    /// The lowest bit of a field of `config`: `config:0`, `config:32-63`.
    fn bit(&self, field: &str) -> io::Result<u32> {
        let text = std::fs::read_to_string(format!("{}/format/{field}", self.dir))?;
        let bits = text.trim().strip_prefix("config:").and_then(|b| b.split('-').next()?.parse::<u32>().ok());
        bits.filter(|b| *b < 64).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    fn at_return(&self, wanted: bool) -> io::Result<u64> {
        if wanted { self.bit("retprobe").map(|b| 1 << b) } else { Ok(0) }
    }

    fn open(&self, config: u64, name: &CString, offset: u64, pid: Option<i32>) -> io::Result<Event> {
        let attr = Attr::new(self.kind, config).flags(bit::DISABLED).configs(name.as_ptr() as u64, offset);
        let (pid, cpu) = match pid {
            Some(pid) => (pid, -1),
            None => (-1, 0),
        };
        // SAFETY: the first word is the address of a string with NUL that lives through the call; the kernel copies it.
        unsafe { open(&attr, pid, cpu) }
    }
}
