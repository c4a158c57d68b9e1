//! How programs are attached at the attach points of probes: a file per kind.
//!
//! ```text
//! AttachPoint ─► ways, the best one first ─► kind of program, where an argument is in its context, links
//! ```
//!
//! Which probes there are, and where their arguments lie in the ABI's terms, is the providers' ([`engine::provider`]).

pub mod attempt;
mod function;
pub mod operation;
pub(crate) mod perf_event;
mod raw_tracepoint;
mod registers;
mod tracepoint;
mod uprobe;

use crate::moved::{Agents, Moved};
use bpf::probes::Value;
use engine::provider::file_point::FilePoint;
use engine::provider::{ArgLocation, AttachPoint, operations};
use std::io;
use sys::bpf::link::Link;
use sys::bpf::prog::{Program, ProgramSpec};

/// A way to attach a program at an attach point.
pub trait Way: Send + Sync {
    /// What to load these instructions as.
    fn spec<'a>(&'a self, name: &'a str, insns: &'a [u8]) -> ProgramSpec<'a>;

    /// Attaches the program.
    fn attach(&self, program: &Program) -> io::Result<Attached>;

    /// Where the program finds `size` bytes of an argument.
    fn value(&self, at: &ArgLocation, size: u8, signed: bool) -> Option<Value>;

    /// How many frames of a kernel stack that the program captures are its own: of the program and of what called it.
    fn own_frames(&self) -> u8 {
        0
    }

    /// Whether closing a link waits for a grace period of RCU (some 35 ms).
    fn is_slow_to_close(&self) -> bool {
        false
    }

    /// What a refusal means and what to do about it, where the system's word does not say it.
    fn refusal(&self, e: &io::Error) -> Option<(String, String)> {
        let _ = e;
        None
    }
}

/// An attached program.
#[derive(Default)]
pub struct Attached {
    /// Dropping them detaches it.
    pub links: Vec<Link>,
    /// Of a file's sites: those where the kernel puts no breakpoint.
    pub refused: Vec<usize>,
    /// Those of them at which a process has other instructions than the file.
    pub moved: Vec<(usize, Moved)>,
}

impl From<Vec<Link>> for Attached {
    fn from(links: Vec<Link>) -> Attached {
        Attached { links, refused: Vec::new(), moved: Vec::new() }
    }
}

/// The ways to attach at a point, the best one first. `cookies`: for sites of several probes, the cookie of each.
pub fn ways<'p>(point: &'p AttachPoint, cookies: &'p [u64], agents: &'p Agents) -> Vec<Box<dyn Way + 'p>> {
    match point {
        AttachPoint::File(file) => in_file(file, cookies, agents),
        AttachPoint::Function(function) => function::ways(function),
        AttachPoint::Tracepoint { id, of_calls } => {
            vec![Box::new(tracepoint::Classic { id: *id, of_calls: *of_calls })]
        }
        AttachPoint::RawTracepoint { name } => vec![Box::new(raw_tracepoint::Raw { name })],
        AttachPoint::Slab(point) => vec![Box::new(raw_tracepoint::Raw { name: point.tracepoint })],
        AttachPoint::Operations(_) => vec![Box::new(operation::At::new(operations::COMPLETED))],
        AttachPoint::Clock { rate, every_cpu } => {
            vec![Box::new(perf_event::Clock { rate: *rate, every_cpu: *every_cpu })]
        }
        // No program is called for threads that do not run.
        AttachPoint::Blocked { .. } => Vec::new(),
        AttachPoint::Counter { counter, period } => {
            vec![Box::new(perf_event::Counted { counter: *counter, period: *period })]
        }
        AttachPoint::Watch { address, len, access } => {
            vec![Box::new(perf_event::Watch { address: *address, len: *len, access: *access })]
        }
        AttachPoint::WatchArgument(_) => vec![Box::new(perf_event::WatchLater)],
    }
}

/// The ways to attach at instructions of a file.
pub fn in_file<'p>(file: &'p FilePoint, cookies: &'p [u64], agents: &'p Agents) -> Vec<Box<dyn Way + 'p>> {
    // Before Linux 6.6 every site has an event of its own.
    vec![
        Box::new(uprobe::Uprobes { file, cookies, agents, one_by_one: false }),
        Box::new(uprobe::Uprobes { file, cookies, agents, one_by_one: true }),
    ]
}

/// How a program is attached at a point, in words.
pub fn how(point: &AttachPoint) -> String {
    match point {
        AttachPoint::File(file) => uprobe::how(file),
        AttachPoint::Function(function) => function::how(function).into(),
        AttachPoint::Tracepoint { id, .. } => format!("classic tracepoint {id}"),
        AttachPoint::RawTracepoint { .. } => "raw tracepoint".into(),
        AttachPoint::Slab(point) => format!("raw tracepoint {}: only objects of this slab", point.tracepoint),
        AttachPoint::Operations(operations) => {
            format!("raw tracepoints {} and {}, joined", operations.kernel.submitted, operations::COMPLETED)
        }
        AttachPoint::Clock { every_cpu: true, .. } => "a perf clock on every CPU: ticks that hit the target".into(),
        AttachPoint::Clock { every_cpu: false, .. } => "a perf clock on one CPU".into(),
        AttachPoint::Blocked { .. } => "no program: /proc says which threads of the target do not run".into(),
        AttachPoint::Counter { .. } => "a perf counter on every CPU: what hits the target".into(),
        AttachPoint::Watch { .. } => "a debug register of every CPU (perf): accesses by the target".into(),
        AttachPoint::WatchArgument(of) => {
            let stops = if of.stops { ", which stops the process until then" } else { "" };
            format!(
                "debug registers of every CPU (perf), armed at the function's entry ({}){stops}",
                uprobe::how(&of.entries)
            )
        }
    }
}

/// What events at a point cannot be seen.
pub fn lost(point: &AttachPoint) -> Option<&'static str> {
    let at_return = point.in_file().is_some_and(|f| f.at_return);
    at_return.then_some("returns of calls nested deeper than 64: the kernel follows no more")
}
