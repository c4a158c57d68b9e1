//! What is recorded of allocations: the probes of the heap that are enabled, and what they need.

use crate::capture::captures::{self, Captures};
use crate::error::{Error, Result};
use crate::heap;
use crate::heap::{Shared, classes};
use crate::provider;
use crate::request::expression::Expression;
use crate::request::parse::{Request, mistake};
use crate::request::select::Calls;
use events::Schema;
use std::sync::Arc;

/// A probe of the heap that is enabled, with its filter.
#[derive(Clone, Debug)]
pub struct HeapEnabling {
    /// Which of [`classes::ALL`].
    pub probe: classes::Probe,
    /// With the stack of the allocation: it, or another one of this probe, wants that.
    pub stack: bool,
    /// Only events that pass this.
    pub filter: Option<Arc<Expression>>,
    /// The filter as it was written.
    pub text: Option<String>,
}

/// What is recorded of allocations.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// Forks too, so that a reader of the events knows what a child begins with.
    pub forks: bool,
    /// Stacks are walked.
    pub stacks: bool,
    /// Nothing else: they are those of probes, and allocators are left alone.
    pub only_stacks: bool,
    /// One allocation per this many bytes, on average; 0: all.
    pub sample: u64,
    /// The trace is compressed. Times are those of a clock that ticks every millisecond, where that is enough for the order.
    pub packed: bool,
    /// Takes everything in the place of events.
    pub consumer: Option<Shared>,
}

impl Wanted {
    /// Events of these probes. `whole`: there is a filter of all events, beside those that probes have themselves.
    pub fn events(probes: &[HeapEnabling], whole: bool) -> Wanted {
        use classes::Probe::{Free, Malloc, Mmap, Munmap};
        let has = |probe| probes.iter().any(|e| e.probe == probe && e.filter.is_none()) && !whole;
        // Without all allocations and frees, nobody asks what a child has from its parent.
        let forks = has(Malloc) && has(Free) || has(Mmap) && has(Munmap);
        let stacks = probes.iter().any(|e| e.stack);
        Wanted { forks, stacks, ..Wanted::default() }
    }

    /// The classes of events that come beside those of the probes.
    pub fn classes(&self) -> impl Iterator<Item = &'static Schema> {
        let forks = [classes::Probe::Fork, classes::Probe::Child];
        forks.into_iter().filter(|_| self.forks).filter_map(|p| p.class(false))
    }
}

impl HeapEnabling {
    /// Of every probe, with stacks.
    pub fn all() -> Vec<HeapEnabling> {
        let of = |(probe, ..): &(classes::Probe, _, _)| HeapEnabling {
            probe: *probe,
            stack: true,
            filter: None,
            text: None,
        };
        classes::ALL.iter().map(of).collect()
    }
}

/// What the requests enable of the heap. `more` is captured by all of them; the stacks of allocations are whole.
///
/// # Errors
/// A filter is wrong, or they capture what allocations do not have.
pub fn heap_enablings(requests: &[Request], more: Captures) -> Result<Vec<HeapEnabling>> {
    let mut all: Vec<HeapEnabling> = Vec::new();
    for request in requests {
        for name in request.names.iter().filter(|n| n.starts_with(heap::classes::PROVIDER)) {
            let Captures { kstack, ustack, comm, .. } = request.captures;
            if kstack > 0 || comm || !request.strings.is_empty() {
                let why = "an allocation captures only its stack in the program";
                return Err(Error::usage(format!("-e {name}"), why, "ustack, or no capture"));
            }
            if ustack != 0 && ustack != captures::USER {
                let why = "the stacks of allocations are whole";
                return Err(Error::usage(format!("-e {name}"), why, "ustack without a number"));
            }
            for found in provider::list(name, false)? {
                let Some(probe) = heap::classes::Probe::named(&found.name) else { continue };
                let filter = request.filter.as_deref().map(|text| heap_filter(&found.name, probe, text)).transpose()?;
                let (stack, text) = ((ustack | more.ustack) > 0 && probe.allocates(), request.filter.clone());
                match all.iter_mut().find(|e| (e.probe, &e.text) == (probe, &text)) {
                    Some(known) => known.stack |= stack,
                    None => all.push(HeapEnabling { probe, stack, filter, text }),
                }
            }
        }
    }
    // All events of a probe are of one class.
    let with_stacks: Vec<_> = all.iter().filter(|e| e.stack).map(|e| e.probe).collect();
    all.iter_mut().for_each(|e| e.stack = with_stacks.contains(&e.probe));
    Ok(all)
}

/// The filter of a probe of the heap, for its events with and without a stack.
fn heap_filter(name: &str, probe: heap::classes::Probe, text: &str) -> Result<Arc<Expression>> {
    let mut classes: Vec<&'static Schema> = [false, true].into_iter().filter_map(|s| probe.class(s)).collect();
    classes.dedup_by_key(|s| s.id);
    let parsed = lang::filter::parse(text, &[]).and_then(|p| p.check_all(&classes));
    parsed.map_err(|d| mistake(name, text, &d))?;
    let filter = Expression::new(text, &[], &Calls::none(), &classes).map_err(|d| mistake(name, text, &d))?;
    if filter.asks_cpu() {
        let why = "on which CPU something is allocated is not recorded";
        return Err(Error::usage(format!("-e {name}: /{text}/"), why, "leave cpu out"));
    }
    Ok(Arc::new(filter))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::parse::label;

    #[test]
    fn probes_of_the_heap_are_taken_from_requests() {
        let enabled = |texts: &[&str]| {
            let requests: Vec<Request> = texts.iter().map(|text| Request::parse(text).unwrap()).collect();
            let all = heap_enablings(&requests, Captures::default()).map_err(|e| e.to_string())?;
            let label = |e: &HeapEnabling| label(e.probe.name(), e.text.as_deref());
            Ok(all.iter().map(|e| (label(e), e.stack)).collect::<Vec<_>>())
        };
        let some =
            enabled(&["heap:malloc,read /args.size > 9/ ustack", "heap:mun*", "heap:munmap ustack", "tracepoint:*:x"]);
        let want = [("heap:malloc /args.size > 9/", true), ("heap:munmap", false)].map(|(l, s)| (l.to_string(), s));
        assert_eq!(some, Ok(want.to_vec()));
        assert_eq!(enabled(&["heap:*"]).map(|all: Vec<(String, bool)>| all.len()), Ok(4));
        for bad in
            ["heap:malloc kstack", "heap:malloc comm", "heap:malloc str(address)", "heap:malloc ustack=4", "heap:maloc"]
        {
            assert!(enabled(&[bad]).is_err_and(|e: String| e.lines().count() == 1), "{bad}");
        }
        assert!(
            enabled(&["heap:free /args.size > 1/"]).is_err() && enabled(&["heap:malloc /args.ustack == 1/"]).is_err()
        );
    }
}
