//! What a trace has of the heap.

use crate::stacks;
use ctf::trace::Trace;
use engine::heap::classes::Probe;
use events::Schema;

/// The probe of the heap whose events have this class.
pub fn probe(class: &Schema) -> Option<Probe> {
    Probe::named(&class.probe())
}

/// Whether a trace has events of the heap.
pub fn has_heap(trace: &Trace) -> bool {
    trace.classes().any(|class| probe(class).is_some())
}

/// Whether it has them and no other events with stacks.
pub fn has_only_heap(trace: &Trace) -> bool {
    let other = |class: &'static Schema| probe(class).is_none() && stacks::have_any([class].into_iter());
    has_heap(trace) && !trace.classes().any(other)
}
