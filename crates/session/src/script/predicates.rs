//! Which predicates the programs of probes evaluate, before clauses see the events: those over numbers that each event has.
//!
//! The clauses evaluate them again, so that what a script shows is the same; events that none of a probe's clauses wants do not come.

use super::collecting::clauses_of;
use super::places::Places;
use super::seen::Get;
use engine::request::collecting::{From, Predicates, is_decidable};
use engine::request::enabling::{Enabling, What};
use engine::request::probe_enabling::Source;
use lang::script::Program;
use std::sync::Arc;

/// Has the programs of probes evaluate the predicates of their clauses, where each clause has one that they can evaluate.
pub fn assign(program: &Arc<Program>, places: &Places, enablings: &mut [Enabling]) {
    for enabling in enablings {
        if let What::Probe(probe) = &mut enabling.what
            && let Some(probe) = Arc::get_mut(probe)
        {
            let fields = &probe.fields;
            let clauses =
                clauses_of(program, places, probe, |(_, get)| from(get, fields), |c| is_decidable(program, c));
            probe.predicates = clauses.map(|clauses| Predicates { script: Arc::clone(program), clauses });
        }
    }
}

/// Where a program has the value that the event has.
fn from(get: &Get, fields: &[Source]) -> From {
    match get {
        Get::Named("pid") => From::Pid,
        Get::Named("tid") => From::Tid,
        Get::Arg(i) => match fields.get(*i) {
            Some(Source::Number(_) | Source::Text { .. } | Source::Cpu | Source::Uid | Source::Gid) => From::Field(*i),
            _ => From::Nothing,
        },
        _ => From::Nothing,
    }
}
