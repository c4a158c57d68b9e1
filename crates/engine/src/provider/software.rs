//! `software:EVENT:COUNT`: the kernel's own counters, one event for every COUNT of what they count.

use super::pattern::is_pattern;
use super::{ArgInfo, ArgType, Form, Hook, Place, Probe, Provider, Ready, Refusal, glob};
use bpf::probes::Value;
use std::io;
use sys::bpf::link::Link;
use sys::bpf::prog::{Program, ProgramKind, ProgramSpec};
use sys::perf::{SOFTWARE, attach as perf};

/// The provider.
pub struct Software;

const FORM: &str = "software:EVENT:COUNT: every COUNT-th event of a counter of the kernel (clocks: ns)";

impl Provider for Software {
    fn name(&self) -> &'static str {
        "software"
    }

    fn describe(&self) -> &'static str {
        FORM
    }

    fn list(&self, pattern: &str, details: bool) -> Result<Vec<Probe>, Refusal> {
        let (event, count) = pattern.split_once(':').unwrap_or((pattern, "*"));
        let any = is_pattern(count) || count == "COUNT";
        if !any && !count.parse::<u64>().is_ok_and(|n| n > 0) {
            return Err(Refusal::Form(FORM));
        }
        let mut found: Vec<Probe> = SOFTWARE
            .iter()
            .filter(|(name, _)| glob(event.as_bytes(), name.as_bytes()))
            .map(|(name, _)| Probe {
                name: format!("software:{name}:{}", if any { "COUNT" } else { count }),
                args: if details && name.ends_with("faults") { vec![address()] } else { Vec::new() },
                note: if any { "COUNT: a number of your choice".into() } else { String::new() },
                ..Probe::default()
            })
            .collect();
        found.sort_by(|a, b| a.name.cmp(&b.name));
        match found.is_empty() {
            true => Err(Refusal::nothing("software", event, SOFTWARE.iter().map(|s| s.0))),
            false => Ok(found),
        }
    }

    fn ready(&self, pattern: &str) -> Result<Vec<Ready>, Refusal> {
        let mut ready = Vec::new();
        for probe in self.list(pattern, true)? {
            let mut words = probe.name.split(':').skip(1);
            let event = words.next().unwrap_or_default();
            let count = words.next().and_then(|n| n.parse().ok()).ok_or(Refusal::Form(FORM))?;
            let config = SOFTWARE.iter().find(|s| s.0 == event).map(|s| s.1).ok_or(Refusal::Form(FORM))?;
            ready.push(Ready { probe, hook: Box::new(Counter { config, count }) });
        }
        Ok(ready)
    }
}

/// The counter, on each CPU.
struct Counter {
    config: u64,
    count: u64,
}

/// Offset of `addr` in `struct bpf_perf_event_data` (include/uapi/linux/bpf_perf_event.h, 6.18): registers, period, address.
const ADDRESS: i16 = 176;

impl Hook for Counter {
    fn spec<'a>(&'a self, name: &'a str, insns: &'a [u8]) -> ProgramSpec<'a> {
        ProgramSpec::new(ProgramKind::PerfEvent, name, insns)
    }
    fn how(&self) -> String {
        "a perf counter on every CPU: what hits the target".into()
    }
    fn attach(&self, program: &Program) -> io::Result<Vec<Link>> {
        let on = |cpu| Link::perf(program, perf::software(self.config, self.count, perf::Target::Cpu(cpu))?, 0);
        sys::perf::online_cpus()?.into_iter().map(on).collect()
    }
    fn value(&self, place: &Place, size: u8, signed: bool) -> Option<Value> {
        (*place == Place::Argument(0)).then_some(Value::Context { off: ADDRESS, size, signed })
    }
}

/// Faults have the address that was touched. With other counters the kernel leaves there what was in its memory.
fn address() -> ArgInfo {
    let ty = ArgType { c: "void *".into(), size: 8, signed: false, form: Form::Pointer };
    ArgInfo { name: "addr".into(), ty, place: Place::Argument(0) }
}
