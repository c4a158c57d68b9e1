//! What of a script was to run in the kernel, and what the kernel has refused.

use engine::request::collecting::{Instead, Refusals};
use engine::request::enabling::{Enabling, What};
use std::sync::Arc;

/// What is done where the kernel has loops in place and refuses the program for them.
const CALLED_BACK: &str = "the loops of its program are functions that are called back";

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
            let refusal = self.refusals.of(&probe.name)?;
            let (what, refused) = match (refusal.instead, probe.clauses.is_empty()) {
                (Instead::CalledBack, _) => (CALLED_BACK, "the program with loops in place"),
                (Instead::Events, true) => ("its predicates are evaluated in trapline", "their program"),
                (Instead::Events, false) => ("its clauses run in trapline, over its events", "their program"),
            };
            Some(format!("{}: {what}: the kernel refuses {refused}: {}", probe.name, refusal.why))
        };
        self.probes.iter().filter_map(line).collect()
    }

    /// Where a clause runs that was to run in the kernel; none: it was not.
    pub fn place(&self, clause: usize) -> Option<String> {
        const HERE: &str = "in the kernel, which reports no event: it only collects";
        const THERE: &str = "in trapline, over the events of its probes";
        let own = || self.probes.iter().filter(|p| p.clauses.contains(&clause));
        let with = |instead: Instead| -> Vec<&str> {
            let has = |p: &&OfProbe| self.refusals.of(&p.name).is_some_and(|r| r.instead == instead);
            own().filter(has).map(|p| p.name.as_str()).collect()
        };
        let (refused, called_back, count) = (with(Instead::Events), with(Instead::CalledBack), own().count());
        if count == 0 {
            return None;
        }
        if count == refused.len() {
            return Some(format!("{THERE}: the kernel refuses its program"));
        }
        let mut place = HERE.to_owned();
        if !called_back.is_empty() {
            let where_ =
                if called_back.len() == count { String::new() } else { format!(" at {}", called_back.join(", ")) };
            place += &format!("; {CALLED_BACK}{where_}: the kernel refuses the program with loops in place");
        }
        if !refused.is_empty() {
            place += &format!("; but {THERE} at {}, where the kernel refuses its program", refused.join(", "));
        }
        Some(place)
    }
}
