//! `rawtracepoint:NAME`: static places of the kernel, with the arguments of the place itself instead of a record made from them.

use super::kernel_types::{self, kernel_types};
use super::{AttachPoint, Probe, Provider, Ready, Refusal};
use lang::pattern::glob;
use std::collections::HashMap;
use sys::btf::KernelBtf;

/// The provider.
pub struct RawTracepoint;

const FORM: &str = "rawtracepoint:NAME: a static place in the kernel, with its arguments instead of a record";

impl Provider for RawTracepoint {
    fn name(&self) -> &'static str {
        "rawtracepoint"
    }

    fn describe(&self) -> &'static str {
        FORM
    }

    fn list(&self, pattern: &str, details: bool) -> Result<Vec<Probe>, Refusal> {
        let btf = kernel_types()?;
        let all = kernel_types::tracepoints(&btf);
        let callers = if details { kernel_types::callers(&btf) } else { HashMap::new() };
        let probe = |(name, id): &(&str, u32)| {
            let mut probe = Probe { name: format!("rawtracepoint:{name}"), ..Probe::default() };
            if details {
                describe(&mut probe, &btf, *callers.get(name).unwrap_or(id));
            }
            probe
        };
        let matching = all.iter().filter(|t| glob(pattern.as_bytes(), t.0.as_bytes()));
        let found: Vec<Probe> = matching.map(probe).collect();
        match found.is_empty() {
            true => Err(Refusal::nothing("rawtracepoint", pattern, all.iter().map(|t| t.0))),
            false => Ok(found),
        }
    }

    fn ready(&self, pattern: &str) -> Result<Vec<Ready>, Refusal> {
        let ready = |probe: Probe| {
            let name = probe.name.split_once(':').map(|n| n.1.to_string()).unwrap_or_default();
            Ready::new(probe, AttachPoint::RawTracepoint { name })
        };
        Ok(self.list(pattern, true)?.into_iter().map(ready).collect())
    }
}

/// Adds the arguments: `argN`, and in filters also by the names of their parameters.
fn describe(probe: &mut Probe, btf: &KernelBtf, id: u32) {
    for (nth, mut arg) in kernel_types::arguments(btf, id).into_iter().enumerate() {
        let number = format!("arg{nth}");
        let name = std::mem::replace(&mut arg.name, number.clone());
        if name != number {
            probe.aliases.push((name, number));
        }
        probe.args.push(arg);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_have_the_types_of_the_kernel_and_numbers_for_names() {
        if KernelBtf::kernel().is_err() {
            return;
        }
        let found = RawTracepoint.list("sys_ente?", true).unwrap();
        let [enter] = &found[..] else { panic!("{found:?}") };
        let args: Vec<String> = enter.args.iter().map(|a| a.to_string()).collect();
        assert_eq!(args, ["struct pt_regs *arg0", "long int arg1"]);
        assert!(RawTracepoint.list("*", false).unwrap().len() > 100);
        let Err(Refusal::Nothing(near)) = RawTracepoint.list("sched_swich", false) else { panic!() };
        assert_eq!(near[0], "rawtracepoint:sched_switch");
    }
}
