//! Which probes need no more than their events: their clauses read nothing that is known of tasks only by following them.

use super::places::Places;
use super::seen::{Get, gets};
use engine::request::enabling::{Enabling, What};
use lang::script::Program;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Notes it of the probes. Clauses of events that are not enabled one by one, such as those of `process:`, need all that there is.
pub fn assign(program: &Program, places: &Places, enablings: &mut [Enabling]) {
    let enabled: BTreeSet<_> = enablings
        .iter()
        .filter_map(Enabling::probe)
        .flat_map(|p| p.classes().iter().map(|s| s.probe().into_owned()).collect::<Vec<_>>())
        .collect();
    // Variables of threads go with their threads.
    let has_variables = program.maps.iter().any(lang::script::ir::Map::is_of_threads);
    if has_variables || !places.functions.is_empty() || places.probes.keys().any(|name| !enabled.contains(name)) {
        return;
    }
    for enabling in enablings {
        if let What::Probe(probe) = &mut enabling.what
            && let Some(probe) = Arc::get_mut(probe)
        {
            probe.bare = probe.classes().iter().all(|schema| {
                let name = schema.probe();
                let (runs, aliases) = (places.probes.get(name.as_ref()), places.aliases_of(&name));
                runs.into_iter().flatten().all(|(role, number)| {
                    let leaves = &program.clauses[*number].leaves;
                    let is_of_tasks = |get: &Get| matches!(get, Get::Named("comm" | "uid" | "gid" | "username"));
                    !gets(leaves, &program.hoisted, schema, *role, aliases).iter().any(is_of_tasks)
                })
            });
        }
    }
}
