//! At raw tracepoints: the program sees the arguments, a word each.

use super::{Attached, Way};
use bpf::probes::Value;
use engine::provider::ArgLocation;
use std::io;
use sys::bpf::link::Link;
use sys::bpf::prog::{Program, ProgramKind, ProgramSpec};

/// The tracepoint of a name.
pub struct Raw<'p> {
    pub name: &'p str,
}

impl Way for Raw<'_> {
    fn spec<'a>(&'a self, name: &'a str, insns: &'a [u8]) -> ProgramSpec<'a> {
        ProgramSpec::new(ProgramKind::RawTracepoint, name, insns)
    }

    fn attach(&self, program: &Program) -> io::Result<Attached> {
        Ok(vec![Link::raw_tracepoint(program, self.name)?].into())
    }

    fn value(&self, at: &ArgLocation, size: u8, signed: bool) -> Option<Value> {
        match at {
            ArgLocation::Argument(i) => Some(Value::Context { off: 8 * i16::from(*i), size, signed }),
            ArgLocation::Constant(n) => Some(Value::Constant(*n)),
            _ => None,
        }
    }

    /// The program and bpf_trace_run. Whether __bpf_trace_NAME and __traceiter_NAME come next, or neither, differs by tracepoint and by
    /// how many programs are at it.
    fn own_frames(&self) -> u8 {
        2
    }

    fn refusal(&self, e: &io::Error) -> Option<(String, String)> {
        let todo = || "see 'trapline list rawtracepoint:*'".into();
        (e.kind() == io::ErrorKind::NotFound).then(|| ("this kernel has no such tracepoint any more".into(), todo()))
    }
}
