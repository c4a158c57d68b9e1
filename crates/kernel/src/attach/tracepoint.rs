//! At classic tracepoints: the program sees the record.

use super::{Attached, Way};
use bpf::probes::Value;
use engine::provider::ArgLocation;
use std::io;
use sys::bpf::link::Link;
use sys::bpf::prog::{Program, ProgramKind, ProgramSpec};

/// The classic tracepoint of a number.
pub struct Classic {
    pub id: u64,
    /// It is one of a system call.
    pub of_calls: bool,
}

impl Way for Classic {
    fn spec<'a>(&'a self, name: &'a str, insns: &'a [u8]) -> ProgramSpec<'a> {
        ProgramSpec::new(ProgramKind::Tracepoint, name, insns)
    }

    fn attach(&self, program: &Program) -> io::Result<Attached> {
        Ok(vec![Link::tracepoint(program, self.id)?].into())
    }

    fn value(&self, at: &ArgLocation, size: u8, signed: bool) -> Option<Value> {
        match at {
            ArgLocation::Record(off) => Some(Value::Context { off: i16::try_from(*off).ok()?, size, signed }),
            _ => None,
        }
    }

    /// Those of calls go through two functions more: perf_syscall_enter and __traceiter_sys_enter, or those of the end.
    fn own_frames(&self) -> u8 {
        if self.of_calls { 2 } else { 0 }
    }

    fn is_slow_to_close(&self) -> bool {
        true
    }
}
