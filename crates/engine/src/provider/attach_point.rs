//! A provider's description of a probe that is to be enabled: where it is, and what it takes to reach it. Attaching is up to the backend
//! (`backend::kernel::attach`).

use super::Probe;
use super::file_point::FilePoint;
use super::operations::Operations;
use crate::slab::points::Point;
use events::Extent;
use std::path::Path;
use sys::perf::attach::{Access, Counter, Rate};

/// A probe that can be enabled.
pub struct Ready {
    /// Its name and its arguments.
    pub probe: Probe,
    /// Where it is.
    pub point: AttachPoint,
    /// What the same pattern matches and cannot be enabled.
    pub left_out: Vec<LeftOut>,
}

impl Ready {
    /// A probe at an attach point, of a pattern that skips nothing.
    pub fn new(probe: Probe, point: AttachPoint) -> Ready {
        Ready { probe, point, left_out: Vec::new() }
    }
}

/// Probes that are skipped, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOut {
    /// Why.
    pub why: &'static str,
    /// Their names.
    pub probes: Vec<String>,
}

/// Where a probe is.
pub enum AttachPoint {
    /// Instructions of a file.
    File(FilePoint),
    /// A function of the kernel.
    Function(FunctionPoint),
    /// The tracepoint of this number, with its record.
    Tracepoint {
        /// Its number.
        id: u64,
        /// It is one of a system call: its addresses are those that the process has passed.
        of_calls: bool,
    },
    /// A tracepoint, with the arguments of its prototype.
    RawTracepoint {
        /// Its name.
        name: String,
    },
    /// A tracepoint of the kernel's allocator, with the arguments of its prototype: only for objects of one slab.
    Slab(Point),
    /// Submissions and completions of io_uring, joined: spans.
    Operations(Operations),
    /// A clock.
    Clock {
        /// How often it ticks.
        rate: Rate,
        /// On every CPU; else on one.
        every_cpu: bool,
    },
    /// Threads that do not run, looked at every so often, ns.
    Blocked {
        /// How often.
        period: u64,
    },
    /// A counter of each CPU.
    Counter {
        /// What it counts.
        counter: Counter,
        /// How many of those are one event.
        period: u64,
    },
    /// An address, in any traced process that has it.
    Watch {
        /// The address.
        address: u64,
        /// Bytes.
        len: u8,
        /// What is watched.
        access: Access,
    },
    /// Addresses that are an argument of calls of a function.
    WatchArgument(ArgumentWatch),
}

/// Addresses that are an argument of calls of a function: each is watched from its first call on.
pub struct ArgumentWatch {
    /// Where the function is entered.
    pub entries: FilePoint,
    /// The number of its argument.
    pub argument: u8,
    /// Bytes.
    pub len: u8,
    /// What is watched.
    pub access: Access,
    /// The process is stopped until the address is watched.
    pub stops: bool,
}

/// A function of the kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FunctionPoint {
    /// Its name.
    pub name: String,
    /// The module that it is in.
    pub module: Option<String>,
    /// Where it begins, where its name alone is not enough.
    pub address: Option<u64>,
    /// This many bytes behind its start.
    pub offset: u64,
    /// Its id in the kernel's BTF, or in that of its module; 0: they do not have it.
    pub id: u32,
    /// How many arguments it has.
    pub arguments: u8,
    /// At its return; else at its entry.
    pub at_return: bool,
    /// By a breakpoint only.
    pub by_breakpoint: bool,
}

impl AttachPoint {
    /// The instructions of a file, where it is in one.
    pub fn in_file(&self) -> Option<&FilePoint> {
        match self {
            AttachPoint::File(file) => Some(file),
            _ => None,
        }
    }

    /// The file that it is in.
    pub fn file(&self) -> Option<&Path> {
        match self {
            AttachPoint::WatchArgument(of) => of.entries.path(),
            _ => self.in_file()?.path(),
        }
    }

    /// Whether its events last: they have a start and a result.
    pub fn extent(&self) -> Extent {
        if matches!(self, AttachPoint::Operations(_)) { Extent::Span } else { Extent::Point }
    }

    /// Whether addresses of strings are the process's, and not the kernel's.
    pub fn strings_are_users(&self) -> bool {
        match self {
            AttachPoint::File(_) | AttachPoint::Operations(_) => true,
            AttachPoint::Tracepoint { of_calls, .. } => *of_calls,
            _ => false,
        }
    }

    /// Whether its events hit whatever task runs there, traced or not.
    pub fn is_of_the_machine(&self) -> bool {
        matches!(self, AttachPoint::Clock { every_cpu: false, .. })
    }

    /// Whether threads are looked at for it: no program is attached anywhere.
    pub fn is_looked_at(&self) -> bool {
        matches!(self, AttachPoint::Blocked { .. })
    }

    /// Whether it is an address, which means something in the target's processes only.
    pub fn is_address(&self) -> bool {
        matches!(self, AttachPoint::Watch { .. } | AttachPoint::WatchArgument(_))
    }
}
