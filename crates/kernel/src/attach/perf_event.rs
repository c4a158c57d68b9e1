//! At perf events of CPUs: clocks, counters, watched addresses.

use super::{Attached, Way, registers};
use bpf::probes::Value;
use engine::provider::ArgLocation;
use std::io;
use sys::bpf::link::Link;
use sys::bpf::prog::{Program, ProgramKind, ProgramSpec};
use sys::perf::Event;
use sys::perf::attach::{self as perf, Access, Counter, Rate, Target};

fn spec<'a>(name: &'a str, insns: &'a [u8]) -> ProgramSpec<'a> {
    ProgramSpec::new(ProgramKind::PerfEvent, name, insns)
}

/// Attaches to an event of each of these CPUs.
fn on(cpus: Vec<u32>, program: &Program, event: impl Fn(u32) -> io::Result<Event>) -> io::Result<Attached> {
    let links: io::Result<Vec<Link>> = cpus.into_iter().map(|cpu| Link::perf(program, event(cpu)?, 0)).collect();
    Ok(links?.into())
}

/// Offset of `addr` in `struct bpf_perf_event_data` (include/uapi/linux/bpf_perf_event.h, 6.18): registers, period, address.
const ADDRESS: i16 = 176;

/// Where a program finds an argument: the address of the event, or what its registers lead to.
fn value(at: &ArgLocation, size: u8, signed: bool) -> Option<Value> {
    match at {
        ArgLocation::EventAddress => Some(Value::Context { off: ADDRESS, size, signed }),
        ArgLocation::AtEventAddress => Some(Value::User { base: Some(ADDRESS), index: None, disp: 0, size, signed }),
        at => registers::value(at, size, signed),
    }
}

/// A clock of one CPU, or of each.
pub struct Clock {
    pub rate: Rate,
    pub every_cpu: bool,
}

impl Way for Clock {
    fn spec<'a>(&'a self, name: &'a str, insns: &'a [u8]) -> ProgramSpec<'a> {
        spec(name, insns)
    }

    fn attach(&self, program: &Program) -> io::Result<Attached> {
        let mut cpus = sys::processors::online()?;
        if !self.every_cpu {
            cpus.truncate(1);
        }
        on(cpus, program, |cpu| perf::profile(cpu, self.rate))
    }

    fn value(&self, at: &ArgLocation, size: u8, signed: bool) -> Option<Value> {
        registers::value(at, size, signed)
    }
}

/// A counter of each CPU.
pub struct Counted {
    pub counter: Counter,
    pub period: u64,
}

impl Way for Counted {
    fn spec<'a>(&'a self, name: &'a str, insns: &'a [u8]) -> ProgramSpec<'a> {
        spec(name, insns)
    }

    fn attach(&self, program: &Program) -> io::Result<Attached> {
        let event = |cpu| perf::counter(self.counter, self.period, Target::Cpu(cpu));
        on(sys::processors::online()?, program, event)
    }

    fn value(&self, at: &ArgLocation, size: u8, signed: bool) -> Option<Value> {
        value(at, size, signed)
    }

    fn refusal(&self, e: &io::Error) -> Option<(String, String)> {
        let missing = matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::Unsupported)
            && matches!(self.counter, Counter::Hardware(_));
        let why = match sys::perf::has_hardware_counters() {
            true => "the processor has no such counter",
            false => "this machine has no hardware counters (a virtual machine often has none)",
        };
        missing.then(|| (why.into(), "use software:, or profile:".into()))
    }
}

/// Has a debug register of each CPU watch an address.
pub fn watch(program: &Program, address: u64, len: u8, access: Access) -> io::Result<Attached> {
    on(sys::processors::online()?, program, |cpu| perf::watch(address, len, access, cpu))
}

/// Debug registers that watch what functions are called with ([`crate::watch`]): nothing, when the session begins.
pub struct WatchLater;

impl Way for WatchLater {
    fn spec<'a>(&'a self, name: &'a str, insns: &'a [u8]) -> ProgramSpec<'a> {
        spec(name, insns)
    }

    fn attach(&self, _: &Program) -> io::Result<Attached> {
        Ok(Attached::default())
    }

    fn value(&self, at: &ArgLocation, size: u8, signed: bool) -> Option<Value> {
        value(at, size, signed)
    }
}

/// A debug register of each CPU.
pub struct Watch {
    pub address: u64,
    pub len: u8,
    pub access: Access,
}

impl Way for Watch {
    fn spec<'a>(&'a self, name: &'a str, insns: &'a [u8]) -> ProgramSpec<'a> {
        spec(name, insns)
    }

    fn attach(&self, program: &Program) -> io::Result<Attached> {
        watch(program, self.address, self.len, self.access)
    }

    fn value(&self, at: &ArgLocation, size: u8, signed: bool) -> Option<Value> {
        value(at, size, signed)
    }

    fn refusal(&self, e: &io::Error) -> Option<(String, String)> {
        (e.kind() == io::ErrorKind::StorageFull).then(|| {
            let why = "all debug registers of a processor are taken, and x86 has four";
            (why.into(), "watch fewer addresses, or end the debugger that has them".into())
        })
    }
}
