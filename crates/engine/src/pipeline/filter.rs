//! `--where`: a filter for the calls of a session or of a trace, and how many events it rejected.
//!
//! ```text
//! text ─► Expression (a filter per class) ─┬─► programs of the kernel backend ─────► counters of the programs ─┐
//!                                     ├─► front end, events that are shown ──► Tally ─────────────────────┼─► Filtered
//!                                     └─► recorder, events that are kept ────► RecorderFilter ──────────────────────┘
//! ```
//!
//! It filters calls, other probes, and thread events (signals, stops, ends). A thread event is rejected only if the filter certainly
//! rejects its thread (`Lives`). trapline's own events have selections of their own. A notice that a call is still running
//! is shown where the filter can be decided before the call is carried out.

use crate::pipeline::threads::Threads;
use crate::request::expression::{Expression, Filtered};
use events::generated as g;
use events::names::Names;
use events::{Class, Event, Schema, registry};
use lang::Verdict;
use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Whether an event is a thread event: a signal, stop or end.
fn is_of_lives(s: &Schema) -> bool {
    [g::P_EXIT.id, g::P_SUPERSEDED.id, g::P_SIGNAL.id, g::P_STOP.id].contains(&s.base)
}

/// Counts rejected events, from several threads.
#[derive(Debug)]
pub struct Tally {
    passed: AtomicU64,
    parts: Vec<AtomicU64>,
    unknown: AtomicU64,
    classes: Vec<AtomicU64>,
}

impl Tally {
    /// Counts for a filter.
    pub fn of(filter: &Expression) -> Tally {
        let zeros = |n: usize| (0..n).map(|_| AtomicU64::new(0)).collect();
        Tally {
            passed: AtomicU64::new(0),
            parts: zeros(filter.parts().len()),
            unknown: AtomicU64::new(0),
            classes: zeros(filter.classes()),
        }
    }

    /// Counts a call of this class; whether it passes.
    pub fn count(&self, class: u16, verdict: Verdict) -> bool {
        let counter = match verdict {
            Verdict::Pass => {
                self.passed.fetch_add(1, Ordering::Relaxed);
                return true;
            }
            Verdict::Rejected(part) => self.parts.get(part).unwrap_or(&self.unknown),
            Verdict::Unknown(_) => &self.unknown,
        };
        counter.fetch_add(1, Ordering::Relaxed);
        if let Some(n) = self.classes.get(usize::from(class)) {
            n.fetch_add(1, Ordering::Relaxed);
        }
        false
    }

    /// How many have passed.
    pub fn passed(&self) -> u64 {
        self.passed.load(Ordering::Relaxed)
    }

    /// What was counted.
    pub fn total(&self) -> Filtered {
        let read = |n: &AtomicU64| n.load(Ordering::Relaxed);
        let classes = self.classes.iter().map(read).enumerate().filter(|(_, n)| *n > 0);
        Filtered {
            parts: self.parts.iter().map(read).collect(),
            unknown: read(&self.unknown),
            classes: classes.map(|(id, n)| (id as u16, n)).collect(),
        }
    }
}

/// A filter, the classes that it applies to, and the counts of what it rejected. Several threads can use it.
#[derive(Debug)]
pub struct EventFilter {
    filter: Arc<Expression>,
    looks: Vec<bool>,
    tally: Arc<Tally>,
    /// Threads of which an event has passed, where that matters.
    known: Mutex<HashSet<u32>>,
}

impl EventFilter {
    /// Asks `filter` about the classes that `looks` names; all others pass.
    pub fn new(filter: Arc<Expression>, looks: impl Fn(&Schema) -> bool) -> EventFilter {
        let tally = Arc::new(Tally::of(&filter));
        let looks = (0..filter.classes()).map(|id| registry::by_id(id as u16).is_some_and(&looks)).collect();
        EventFilter { filter, looks, tally, known: Mutex::default() }
    }

    /// What it has held back, also later.
    pub fn tally(&self) -> Arc<Tally> {
        Arc::clone(&self.tally)
    }

    /// The filter.
    pub fn filter(&self) -> &Expression {
        &self.filter
    }

    fn known(&self) -> MutexGuard<'_, HashSet<u32>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether an event passes.
    pub fn passes(&self, ev: &Event<'_>, names: &dyn Names) -> bool {
        let may_change = self.filter.lives_may_change();
        if ev.is_syscall() || ev.schema.class == Class::Probe {
            let looked_at = self.looks.get(usize::from(ev.schema.base)).copied().unwrap_or(false);
            let passes = !looked_at || self.tally.count(ev.schema.base, self.filter.verdict(ev, names));
            if passes && may_change && self.filter.selects(ev.schema) {
                self.known().insert(ev.tid());
            }
            return passes;
        }
        if is_of_lives(ev.schema) {
            return self.filter.passes_life(ev, names) || may_change && self.known().contains(&ev.tid());
        }
        if ev.schema.id != g::P_INFLIGHT.id {
            return true;
        }
        let Ok(call) = Event::parse(ev.bytes_of("call")) else { return true };
        !self.filter.selects(call.schema) || self.filter.passes_notice(&call, names)
    }
}

/// A filter before the recorder.
#[derive(Debug)]
pub struct RecorderFilter {
    filter: EventFilter,
    threads: Threads,
}

impl RecorderFilter {
    /// Asks `filter` about the classes that `looks` names; all others pass.
    pub fn new(filter: Arc<Expression>, looks: impl Fn(&Schema) -> bool) -> RecorderFilter {
        RecorderFilter { filter: EventFilter::new(filter, looks), threads: Threads::default() }
    }

    /// What it has held back, also later.
    pub fn tally(&self) -> Arc<Tally> {
        self.filter.tally()
    }

    /// Whether an event passes.
    pub fn passes(&mut self, event: &[u8]) -> bool {
        let Ok(ev) = Event::parse(event) else { return true };
        self.threads.before(&ev);
        // The reader of the trace needs the ends, and applies the filter again.
        let passes = is_of_lives(ev.schema) || self.filter.passes(&ev, &self.threads);
        self.threads.after(&ev);
        passes
    }
}
