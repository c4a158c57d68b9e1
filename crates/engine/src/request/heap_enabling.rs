//! What is recorded of allocations: the probes of the heap that are enabled, and what they need.

use crate::heap::{Shared, classes};
use crate::request::expression::Expression;
use events::Schema;
use std::sync::Arc;

/// A probe of the heap that is enabled, with its filter.
#[derive(Clone, Debug)]
pub struct Enabled {
    /// Which of [`classes::ALL`].
    pub probe: classes::Probe,
    /// With the stack of the allocation.
    pub stack: bool,
    /// Only events that pass this.
    pub filter: Option<Arc<Expression>>,
    /// The filter as it was written.
    pub text: Option<String>,
}

impl PartialEq for Enabled {
    fn eq(&self, other: &Enabled) -> bool {
        (self.probe, self.stack, &self.text) == (other.probe, other.stack, &other.text)
    }
}
impl Eq for Enabled {}

impl Enabled {
    /// Its probe and its filter.
    pub fn label(&self) -> String {
        let filter = self.text.as_ref().map(|text| format!(" /{}/", text.replace(['\n', '\r'], " ")));
        self.probe.name().to_string() + &filter.unwrap_or_default()
    }
}

/// What is recorded of allocations.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// Events that are delivered; none where there is a consumer.
    pub probes: Vec<Enabled>,
    /// Forks too, so that a reader of the events knows what a child begins with.
    pub forks: bool,
    /// Stacks are walked.
    pub stacks: bool,
    /// One allocation for so many bytes, on average; 0: all.
    pub sample: u64,
    /// The trace is compressed. Times are those of a clock that ticks every millisecond, where that is enough for the order.
    pub packed: bool,
    /// Takes everything in the place of events.
    pub consumer: Option<Shared>,
}

impl Wanted {
    /// Events of these probes. `whole`: there is a filter of all events, beside those that probes have themselves.
    pub fn events(probes: Vec<Enabled>, whole: bool) -> Wanted {
        use classes::Probe::{Free, Malloc, Mmap, Munmap};
        let has = |probe| probes.iter().any(|e| e.probe == probe && e.filter.is_none()) && !whole;
        // Without all allocations and frees, nobody asks what a child has from its parent.
        let forks = has(Malloc) && has(Free) || has(Mmap) && has(Munmap);
        let stacks = probes.iter().any(|e| e.stack);
        Wanted { probes, forks, stacks, ..Wanted::default() }
    }

    /// The class of a probe's events.
    pub fn class(&self, probe: classes::Probe) -> Option<&'static Schema> {
        probe.class(self.has_stack(probe))
    }

    /// Whether events of a probe have a stack: all of them, if one of its enablings wants it.
    pub fn has_stack(&self, probe: classes::Probe) -> bool {
        self.probes.iter().any(|e| e.probe == probe && e.stack)
    }

    /// The classes of the probes that are asked for.
    pub fn asked(&self) -> impl Iterator<Item = &'static Schema> {
        let asked = classes::ALL.iter().map(|p| p.0).filter(|p| self.probes.iter().any(|e| e.probe == *p));
        asked.filter_map(|p| self.class(p))
    }

    /// The classes of all events that come.
    pub fn classes(&self) -> impl Iterator<Item = &'static Schema> {
        let forks = [classes::Probe::Fork, classes::Probe::Child];
        self.asked().chain(forks.into_iter().filter(|_| self.forks).filter_map(|p| p.class(false)))
    }
}
