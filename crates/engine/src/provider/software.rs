//! `software:EVENT:COUNT`: the kernel's own counters, one event for every COUNT of what they count.

use super::{ArgInfo, ArgLocation, ArgType, AttachPoint, Encoding, Probe, Provider, Ready, Refusal, count};
use lang::pattern::glob;
use sys::perf::SOFTWARE;
use sys::perf::attach::Counter;

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
        let (event, count) = count::split(pattern, FORM)?;
        let found = matching(event)?.into_iter().map(|(name, _)| probe(name, count, details));
        Ok(found.collect())
    }

    fn ready(&self, pattern: &str) -> Result<Vec<Ready>, Refusal> {
        let (event, count) = count::split(pattern, FORM)?;
        let period = count.ok_or(Refusal::Form(FORM))?;
        let ready = |(name, config)| {
            let point = AttachPoint::Counter { counter: Counter::Software(config), period };
            Ready::new(probe(name, count, true), point)
        };
        Ok(matching(event)?.into_iter().map(ready).collect())
    }
}

/// The counters whose names match, sorted.
fn matching(event: &str) -> Result<Vec<(&'static str, u64)>, Refusal> {
    let mut found: Vec<_> =
        SOFTWARE.iter().copied().filter(|(name, _)| glob(event.as_bytes(), name.as_bytes())).collect();
    found.sort_unstable();
    match found.is_empty() {
        true => Err(Refusal::nothing("software", event, SOFTWARE.iter().map(|s| s.0))),
        false => Ok(found),
    }
}

fn probe(name: &str, count: Option<u64>, details: bool) -> Probe {
    let args = if details && name.ends_with("faults") { vec![address()] } else { Vec::new() };
    Probe { args, ..count::probe("software", name, count) }
}

/// Faults have the address that was touched. With other counters the kernel leaves there what was in its memory.
fn address() -> ArgInfo {
    let ty = ArgType { c: "void *".into(), size: 8, signed: false, encoding: Encoding::Pointer };
    ArgInfo { name: "addr".into(), ty, location: ArgLocation::EventAddress }
}
