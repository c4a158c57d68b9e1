//! What of a script was to run in the kernel, and what the kernel has refused.

use engine::request::collecting::Refusals;
use engine::request::enabling::{Enabling, What};
use std::sync::Arc;

/// What of a script was to run in the kernel.
#[derive(Default)]
pub struct InKernel {
    probes: Vec<OfProbe>,
    refusals: Refusals,
}

/// What was to run in the program of a probe.
struct OfProbe {
    name: String,
    /// Clauses that collect there; none: only their predicates were to be evaluated.
    clauses: Vec<usize>,
}

impl InKernel {
    /// Of enablings that are complete.
    pub fn of(enablings: &mut [Enabling]) -> InKernel {
        let mut all = InKernel::default();
        for enabling in enablings {
            if let What::Probe(probe) = &mut enabling.what
                && let Some(probe) = Arc::get_mut(probe)
                && (probe.collects.is_some() || probe.predicates.is_some())
            {
                probe.refusals = all.refusals.clone();
                let clauses = probe.collects.iter().flat_map(|c| &c.clauses).map(|c| c.number).collect();
                all.probes.push(OfProbe { name: probe.name.clone(), clauses });
            }
        }
        all
    }

    /// What the kernel has refused, a line each.
    pub fn refused(&self) -> Vec<String> {
        let line = |probe: &OfProbe| {
            let why = self.refusals.of(&probe.name)?;
            let what = match probe.clauses.is_empty() {
                true => "its predicates are evaluated in trapline",
                false => "its clauses run in trapline, over its events",
            };
            Some(format!("{}: {what}: the kernel refuses their program: {why}", probe.name))
        };
        self.probes.iter().filter_map(line).collect()
    }

    /// Where a clause runs that was to run in the kernel; none: it was not.
    pub fn place(&self, clause: usize) -> Option<String> {
        const HERE: &str = "in the kernel, which reports no event: it only collects";
        const THERE: &str = "in trapline, over the events of its probes";
        let own = || self.probes.iter().filter(|p| p.clauses.contains(&clause));
        let refused: Vec<&str> =
            own().filter(|p| self.refusals.of(&p.name).is_some()).map(|p| p.name.as_str()).collect();
        match own().count() {
            0 => None,
            _ if refused.is_empty() => Some(HERE.into()),
            n if n == refused.len() => Some(format!("{THERE}: the kernel refuses its program")),
            _ => Some(format!("{HERE}; but {THERE} at {}, where the kernel refuses its program", refused.join(", "))),
        }
    }
}
