//! What a session has cost: time of its programs, as far as the kernel measured it, and of the drain thread.

use super::loaded::Loaded;
use engine::stats::{Cost, Counts, Spent};

/// The cost so far. Called by the drain thread.
pub fn of(loaded: &Loaded, enablings: &[(u32, Counts)], measured: bool) -> Cost {
    let of_calls = loaded.spent().into_iter();
    let of_probes = loaded.probes.iter().zip(enablings).map(|(p, (_, n))| Spent {
        name: p.name.clone(),
        runs: n.cost.0,
        ns: n.cost.1,
    });
    let all = of_calls.chain(of_probes).filter(|s| s.runs > 0).collect();
    Cost { programs: measured.then_some(all), drain_ns: sys::time::of_thread() }
}
