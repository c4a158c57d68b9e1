//! `hardware:EVENT:COUNT`: the performance counters of the processor, one event for every COUNT of what they count.

use super::{AttachPoint, Probe, Provider, Ready, Refusal, count};
use lang::pattern::glob;
use sys::perf::attach::Counter;
use sys::perf::{HARDWARE, has_hardware_counters};

/// The provider.
pub struct Hardware;

const FORM: &str = "hardware:EVENT:COUNT: every COUNT-th event of a performance counter of the processor";

impl Provider for Hardware {
    fn name(&self) -> &'static str {
        "hardware"
    }

    fn describe(&self) -> &'static str {
        FORM
    }

    fn list(&self, pattern: &str, _: bool) -> Result<Vec<Probe>, Refusal> {
        let (event, count) = count::split(pattern, FORM)?;
        Ok(matching(event)?.into_iter().map(|(name, _)| count::probe("hardware", name, count)).collect())
    }

    fn ready(&self, pattern: &str) -> Result<Vec<Ready>, Refusal> {
        let (event, count) = count::split(pattern, FORM)?;
        let period = count.ok_or(Refusal::Form(FORM))?;
        let ready = |(name, config)| {
            let point = AttachPoint::Counter { counter: Counter::Hardware(config), period };
            Ready::new(count::probe("hardware", name, count), point)
        };
        Ok(matching(event)?.into_iter().map(ready).collect())
    }

    fn unusable(&self) -> Option<String> {
        (!has_hardware_counters()).then(|| "this machine has no hardware counters".into())
    }
}

/// The counters whose names, or other names, match, sorted.
fn matching(event: &str) -> Result<Vec<(&'static str, u64)>, Refusal> {
    let is_meant = |name: &str| glob(event.as_bytes(), name.as_bytes());
    let meant = HARDWARE.iter().filter(|(name, other, _)| is_meant(name) || other.is_some_and(is_meant));
    let mut found: Vec<_> = meant.map(|(name, _, config)| (*name, *config)).collect();
    found.sort_unstable();
    let names = || HARDWARE.iter().flat_map(|(name, other, _)| [Some(*name), *other]).flatten();
    if found.is_empty() { Err(Refusal::nothing("hardware", event, names())) } else { Ok(found) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_have_one_name_each_and_are_found_by_others() {
        let names = |p: &str| Hardware.list(p, true).map(|v| v.into_iter().map(|p| p.name).collect::<Vec<_>>());
        assert_eq!(names("cycles:1000").unwrap(), ["hardware:cpu-cycles:1000"]);
        assert_eq!(names("branch*").unwrap(), ["hardware:branch-instructions:COUNT", "hardware:branch-misses:COUNT"]);
        assert_eq!(names("*").unwrap().len(), HARDWARE.len());
        assert_eq!(names("cycles:0"), Err(Refusal::Form(FORM)));
        let Err(Refusal::Nothing(near)) = names("instruction:5") else { panic!() };
        assert_eq!(near[0], "hardware:instructions");
        assert!(matches!(Hardware.ready("cycles"), Err(Refusal::Form(_))));
    }
}
