//! What the agent records of a session: functions, allocations, and probes in files.

use crate::in_process;
use engine::Result;
use engine::capture::captures::Captures;
use engine::request::enabling::{self, Enabling, What};
use engine::request::expression::Expression;
use engine::request::functions::{self, FunctionEnabling, Functions, Probes};
use engine::request::heap_enabling;
use engine::request::heap_enabling::Wanted;
use engine::request::parse::Request;
use engine::request::probe_enabling::{self, ProbeEnabling};
use events::Schema;
use std::sync::Arc;

/// What the agent records.
pub struct OfAgent {
    /// How.
    pub functions: Functions,
    /// What is enabled of it.
    pub enablings: Vec<What>,
    /// Probes in files, which it reaches in processes.
    pub probes: Vec<ProbeEnabling>,
}

impl OfAgent {
    /// All of these functions.
    pub fn all(functions: Functions) -> OfAgent {
        OfAgent { functions, enablings: vec![What::Functions(FunctionEnabling::all())], probes: Vec::new() }
    }

    /// Whether only the agent has the probe of this name.
    pub fn has(name: &str) -> bool {
        OF_AGENT.iter().any(|provider| name.starts_with(provider))
    }

    /// The classes of events that filters can be about.
    pub fn classes(&self) -> Vec<&'static Schema> {
        let of_heap =
            self.enablings.iter().filter_map(|e| if let What::Heap(e) = e { e.probe.class(e.stack) } else { None });
        let of_probes = self.probes.iter().flat_map(|e| e.classes()).copied();
        self.functions.classes().into_iter().chain(of_heap).chain(of_probes).collect()
    }

    /// What the requests enable of functions and of the heap, which is taken out of them, with these probes; none: nothing. `more` is captured
    /// by all probes. `whole`: there is a filter of all events, beside those that probes have themselves.
    ///
    /// # Errors
    /// A filter or a capture is wrong.
    pub fn taken(
        requests: &mut Vec<Request>,
        probes: Vec<ProbeEnabling>,
        more: Captures,
        whole: bool,
    ) -> Result<Option<OfAgent>> {
        let enablings = functions::function_enablings(requests)?;
        let heap = heap_enabling::heap_enablings(requests, more)?;
        if enablings.is_empty() && heap.is_empty() && probes.is_empty() {
            return Ok(None);
        }
        for request in requests.iter_mut() {
            request.names.retain(|n| !OfAgent::has(n));
        }
        requests.retain(|r| !r.names.is_empty());
        let functions = Functions {
            enabled: enablings.iter().map(|e| e.pattern.clone()).collect(),
            none: enablings.is_empty(),
            heap: in_process::stacks((!heap.is_empty()).then(|| Wanted::events(&heap, whole)), &probes),
            ..Functions::default()
        };
        let enablings = enablings.into_iter().map(What::Functions).chain(heap.into_iter().map(What::Heap)).collect();
        Ok(Some(OfAgent { functions, enablings, probes }))
    }

    /// Prepares its probes as those of other backends are.
    ///
    /// # Errors
    /// The filter of all events does not suit one.
    pub fn prepare(&mut self, expression: Option<&Arc<Expression>>, strings: bool) -> Result<()> {
        if let Some(expression) = expression {
            probe_enabling::narrow(&mut self.probes, expression)?;
        }
        if !strings {
            probe_enabling::without_strings(&mut self.probes);
        }
        Ok(())
    }

    /// Has a list enable it; returns how the agent records it.
    pub fn join(self, all: &mut Vec<Enabling>) -> Functions {
        let probes = self.probes.into_iter().map(|e| What::InProcess(Arc::new(e)));
        enabling::add(all, self.enablings.into_iter().chain(probes));
        let numbered = all.iter().filter_map(|e| Some((e.id, Arc::clone(e.in_process()?))));
        Functions { probes: Probes(numbered.collect()), ..self.functions }
    }
}

/// What the names of probes begin with that only the agent has.
const OF_AGENT: [&str; 2] = [Functions::PROVIDER, engine::heap::classes::PROVIDER];
