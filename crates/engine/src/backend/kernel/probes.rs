//! Probes other than calls: a program, a scratch buffer and a ring per CPU for each enabling, so that none can make another
//! lose events.

use super::load::{refused, rejected};
use crate::backend::stats::{Counts, Passed};
use crate::enabling::Enabling;
use crate::error::{Error, Result};
use bpf::calls::{Maps, Target};
use bpf::probes::{self, Whose};
use bpf::scratch;
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::atomic::Ordering;
use sys::bpf::link::Link;
use sys::bpf::map::{MMAPABLE, Map, Values};
use sys::bpf::prog::{LoadError, Program};
use sys::bpf::ring::Ring;

/// An enabling's side in the kernel. Dropping it detaches its program.
pub struct Probe {
    /// Its name.
    pub name: String,
    /// Its name and its filter.
    pub label: String,
    /// What was loaded.
    pub source: bpf::Program,
    /// A ring per CPU.
    pub rings: Vec<Ring>,
    /// What was taken out of each ring.
    pub passed: Vec<Passed>,
    /// The provider's way was refused, and another one taken.
    pub fell_back: bool,
    counters: Values,
    /// Runs of its program that the kernel had left out when the session began: trapline's own calls of bpf(2) keep programs from running.
    missed_before: u64,
    /// Of its filter.
    parts: usize,
    cpus: u32,
    links: Vec<Link>,
    slow: bool,
    program: Program,
    /// Counts entries, for returns.
    entries: Option<Program>,
    _maps: Vec<Map>,
}

/// The smallest ring of an enabling, unless a smaller one was asked for.
const SMALLEST: usize = 256 << 10;

/// Bytes of the ring of each of `n` enablings, per CPU: a share of what was asked for.
pub fn share(buffer: usize, n: usize) -> usize {
    (buffer / n.next_power_of_two().max(1)).max(buffer.min(SMALLEST))
}

impl Probe {
    /// Loads the enabling's program and makes its maps; attaches nothing yet. `tasks` is the session's task storage.
    pub fn load(enabling: &Enabling, tasks: &Map, target: &Target, cpus: u32, buffer: usize) -> Result<Option<Probe>> {
        let Some(hook) = &enabling.hook else { return Ok(None) };
        let cannot = |e: io::Error| refused(&enabling.name, &e);
        let size = buffer.max(4096) as u32;
        let ring_maps: Vec<Map> =
            (0..cpus).map(|_| Map::ring("trapline_probe", size)).collect::<io::Result<_>>().map_err(cannot)?;
        let buffers = Map::array("trapline_scratch", scratch::SIZE, cpus, MMAPABLE).map_err(cannot)?;
        super::orders::begin(&buffers, target.switch).map_err(cannot)?;
        let fd = |m: &Map| m.as_fd().as_raw_fd();
        let maps = Maps {
            tasks: fd(tasks),
            scratch: fd(&buffers),
            rings: ring_maps.iter().map(fd).collect(),
            rows: -1,
            row_count: 0,
            switches: -1,
        };
        let whose = match hook.is_of_the_machine() {
            false => Whose::Tasks,
            true if enabling.anonymous => Whose::Nobody,
            true => Whose::Anyone,
        };
        let (fields, filter) = (enabling.fields.clone(), enabling.filter.clone());
        let by_cookie = !enabling.members.is_empty();
        let plan = probes::Plan { schema: enabling.schema, fields, whose, filter, by_cookie };
        let source = probes::probe(&maps, target, &plan).map_err(|e| match e {
            bpf::AsmError::Filter(unfit) => {
                Error::usage(format!("-e {}", enabling.name), unfit.to_string(), "use a simpler filter")
            }
            e => Error::failed("BPF generator", e.to_string(), "please report it"),
        })?;
        // Entries first, so that no return comes without its entry.
        let mut all_links = Vec::new();
        let mut entries = None;
        if let Some(before) = hook.entries() {
            let counts = probes::entered(&maps, target, &plan)
                .map_err(|e| Error::failed("BPF generator", e.to_string(), "please report it"))?;
            let (program, links, _) = attach_somehow(before.as_ref(), &enabling.name, &counts)?;
            entries = Some(program);
            all_links.extend(links);
        }
        let (program, links, fell_back) = attach_somehow(hook.as_ref(), &enabling.name, &source)?;
        all_links.extend(links);
        let counters = buffers.mmap().map_err(cannot)?;
        let rings = ring_maps.iter().map(Ring::new).collect::<io::Result<_>>().map_err(cannot)?;
        let mut kept = ring_maps;
        kept.push(buffers);
        Ok(Some(Probe {
            name: enabling.name.clone(),
            label: enabling.label(),
            source,
            passed: vec![Passed::default(); cpus as usize],
            rings,
            fell_back,
            counters,
            missed_before: 0,
            parts: enabling.filter.as_ref().map_or(0, |f| f.parts().len()),
            cpus,
            links: all_links,
            slow: hook.is_slow_to_close(),
            program,
            entries,
            _maps: kept,
        }))
    }

    /// Tells the program that the session is over; one that runs meanwhile may still write an event.
    pub fn stop(&self) {
        for cpu in 0..self.cpus {
            if let Some(word) = self.counters.word(scratch::index(cpu, scratch::STOPPED)) {
                word.store(1, Ordering::Relaxed);
            }
        }
    }

    /// Detaches the program; the links that take long to close are returned.
    pub fn detach(&mut self) -> &[Link] {
        if !self.slow {
            self.links.clear();
        }
        &self.links
    }

    /// The session begins: what the kernel has left out before is not of it.
    pub fn begin(&mut self) {
        self.missed_before = sys::bpf::info::program(&self.program).map_or(0, |p| p.recursion_misses);
    }

    /// Sets what is held back.
    pub fn switch(&self, to: u64) {
        super::orders::set(&self.counters, self.cpus, to);
    }

    /// What was counted so far.
    pub fn counts(&self) -> Counts {
        let parts: Vec<u64> = (0..self.parts.min(scratch::PARTS)).map(|i| self.rejected(i)).collect();
        let program = sys::bpf::info::program(&self.program).unwrap_or_default();
        Counts {
            seen: self.seen(),
            recorded: self.passed.iter().map(|p| p.events).sum(),
            dropped: self.dropped(),
            filtered: parts.iter().sum::<u64>() + self.sum(scratch::UNKNOWN),
            parts,
            skipped: program.recursion_misses.saturating_sub(self.missed_before),
            entered: self.entries.as_ref().map(|_| self.sum(scratch::ENTERED)),
            cost: (program.run_count, program.run_time_ns),
        }
    }

    /// Events that a part of the filter held back.
    fn rejected(&self, part: usize) -> u64 {
        self.sum(scratch::FILTERED + 8 * part as i16)
    }

    /// Events that happened. The program counts an event that its filter holds back once only.
    pub fn seen(&self) -> u64 {
        let parts = (0..self.parts.min(scratch::PARTS)).map(|i| self.rejected(i)).sum::<u64>();
        self.sum(scratch::SEEN) + parts + self.sum(scratch::UNKNOWN)
    }

    /// Events that found a ring full.
    pub fn dropped(&self) -> u64 {
        self.sum(scratch::DROPPED)
    }

    fn sum(&self, which: i16) -> u64 {
        (0..self.cpus).map(|cpu| self.word(cpu, which)).sum()
    }

    /// Events that found the ring of a processor full.
    pub fn dropped_on(&self, cpu: u32) -> u64 {
        self.word(cpu, scratch::DROPPED)
    }

    fn word(&self, cpu: u32, which: i16) -> u64 {
        self.counters.word(scratch::index(cpu, which)).map_or(0, |w| w.load(Ordering::Relaxed))
    }
}

/// What went wrong.
enum Refused {
    Load(LoadError),
    Attach(io::Error),
}

impl Refused {
    fn error(&self) -> &io::Error {
        match self {
            Refused::Load(e) => &e.error,
            Refused::Attach(e) => e,
        }
    }

    fn said(&self, name: &str, hook: &dyn crate::provider::Hook, source: &bpf::Program) -> Error {
        match (hook.explain(self.error()), self) {
            (Some((why, todo)), _) => Error::failed(name, why, todo),
            (None, Refused::Load(e)) => rejected(e, source),
            (None, Refused::Attach(e)) => refused(name, e),
        }
    }
}

/// Attaches a program as the hook says, or else as it says instead; which of the two it was.
fn attach_somehow(
    hook: &dyn crate::provider::Hook,
    name: &str,
    source: &bpf::Program,
) -> Result<(Program, Vec<Link>, bool)> {
    let bytes = source.bytes();
    let first = match attach(hook, &bytes) {
        Ok((program, links)) => return Ok((program, links, false)),
        Err(first) => first,
    };
    let Some(other) = hook.instead() else { return Err(first.said(name, hook, source)) };
    match attach(other.as_ref(), &bytes) {
        Ok((program, links)) => Ok((program, links, true)),
        // What both refusals mean, where that is known.
        Err(second) => Err(match (hook.explain(first.error()), other.explain(second.error())) {
            (Some((why, _)), Some((also, todo))) if why == also => Error::failed(name, why, todo),
            (Some((why, _)), Some((also, todo))) => Error::failed(name, format!("{why}, and {also}"), todo),
            _ => first.said(name, hook, source),
        }),
    }
}

fn attach(hook: &dyn crate::provider::Hook, insns: &[u8]) -> std::result::Result<(Program, Vec<Link>), Refused> {
    let program = Program::load(&hook.spec("trapline_probe", insns)).map_err(Refused::Load)?;
    let links = hook.attach(&program).map_err(Refused::Attach)?;
    Ok((program, links))
}
