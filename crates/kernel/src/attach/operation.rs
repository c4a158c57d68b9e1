//! At the tracepoints of io_uring's operations: arguments lie in the operation's record, which the program makes.

use super::raw_tracepoint::Raw;
use super::{Attached, Way};
use bpf::probes::Value;
use engine::provider::ArgLocation;
use std::io;
use sys::bpf::prog::{Program, ProgramSpec};

/// One of those tracepoints.
pub struct At(pub Raw<'static>);

impl At {
    /// The tracepoint of this name.
    pub fn new(name: &'static str) -> At {
        At(Raw { name })
    }
}

impl Way for At {
    fn spec<'a>(&'a self, name: &'a str, insns: &'a [u8]) -> ProgramSpec<'a> {
        self.0.spec(name, insns)
    }

    fn attach(&self, program: &Program) -> io::Result<Attached> {
        self.0.attach(program)
    }

    fn value(&self, at: &ArgLocation, size: u8, signed: bool) -> Option<Value> {
        match at {
            ArgLocation::Record(off) => Some(Value::Context { off: i16::try_from(*off).ok()?, size, signed }),
            _ => None,
        }
    }

    fn own_frames(&self) -> u8 {
        self.0.own_frames()
    }
}
