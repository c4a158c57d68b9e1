//! What a session has cost: time of its programs, as far as the kernel measured it, and of the thread that empties the rings.

use super::load::Loaded;
use super::probes::Counts;

/// What a program has cost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spent {
    /// The probe, or the program's name.
    pub name: String,
    /// Runs.
    pub runs: u64,
    /// Time, ns.
    pub ns: u64,
}

/// What a session has cost.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Of each program that ran; none where the kernel was not asked to measure.
    pub programs: Option<Vec<Spent>>,
    /// CPU time of the thread that empties the rings, ns.
    pub drain_ns: u64,
}

impl Cost {
    /// What it is now; called by the thread that empties the rings.
    pub fn of(loaded: &Loaded, enablings: &[(String, Counts)], measured: bool) -> Cost {
        let of_calls = loaded.spent().into_iter();
        let of_probes = enablings.iter().map(|(name, n)| Spent { name: name.clone(), runs: n.cost.0, ns: n.cost.1 });
        let all = of_calls.chain(of_probes).filter(|s| s.runs > 0).collect();
        Cost { programs: measured.then_some(all), drain_ns: sys::time::of_thread() }
    }
}
