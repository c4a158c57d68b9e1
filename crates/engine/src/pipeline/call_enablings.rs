//! Calls that are enabled more than once, or with other filters than at the start: each enabling has a filter and counters of its own.
//!
//! ```text
//! events of the backend ─► an enabling of the call whose filter they pass? ─► recorder, views
//!                                    each that is asked counts              └► no: counted as filtered
//! ```
//!
//! An event is recorded once, however many enablings it passes. A call with one enabling is filtered by the backend where that can; it is
//! counted here only where others have to be.

use super::filter::Filtered;
use super::threads::Threads;
use crate::backend::stats::{CallCounts, Losses};
use crate::select::Calls;
use events::names::Names;
use events::{Class, Event, Schema};
use lang::{Context, Filter, Missing, Verdict};
use std::collections::HashMap;
use std::sync::Arc;

/// Calls that were enabled together, and their filter.
#[derive(Clone, Debug)]
pub struct CallEnabling {
    /// Its number in the session: numbers are not used again.
    pub id: u32,
    /// As it was written.
    pub names: String,
    /// Its filter, as it was written.
    pub filter: Option<String>,
    /// The calls.
    pub calls: Calls,
    /// The filter, by class; of those in `calls`, all or none.
    pub typed: Arc<HashMap<u16, Filter>>,
}

impl CallEnabling {
    /// Its name and its filter.
    pub fn label(&self) -> String {
        match &self.filter {
            None => self.names.clone(),
            Some(filter) => format!("{} /{filter}/", self.names),
        }
    }

    fn needs(&self, asks: impl Fn(&lang::Needs) -> bool) -> bool {
        self.typed.values().any(|f| asks(f.needs()))
    }

    /// How many bytes of strings decide.
    pub fn text_bytes(&self) -> usize {
        self.typed.values().flat_map(|f| &f.needs().strings).map(|s| s.bytes).max().unwrap_or(0)
    }

    /// Whether names of threads are asked for.
    pub fn asks_comm(&self) -> bool {
        self.needs(|n| n.comm)
    }

    /// Whether users or groups are asked for.
    pub fn asks_ids(&self) -> bool {
        self.needs(|n| n.uid || n.gid)
    }
}

/// The calls among `all` whose filters are evaluated here: those with several enablings one of which has a filter; with `every`, all that
/// have one.
pub fn evaluated(all: &[CallEnabling], every: bool) -> Calls {
    let mut calls = Calls::none();
    if all.iter().all(|e| e.filter.is_none()) {
        return calls;
    }
    for call in events::registry::syscalls().filter(|s| s.name != "raw") {
        let of: Vec<&CallEnabling> = all.iter().filter(|e| e.calls.contains(call)).collect();
        if of.iter().any(|e| e.filter.is_some()) && (every || of.len() > 1) {
            calls.insert(call);
        }
    }
    calls
}

/// The enablings of calls on the way of the events.
#[derive(Default)]
pub struct CallEnablings {
    all: Vec<CallEnabling>,
    evaluated: Option<Calls>,
    /// By class: positions in `all`.
    by_class: HashMap<u16, Vec<usize>>,
    counts: HashMap<u32, CallCounts>,
    /// What the backend had lost and held back of their calls when they were enabled.
    before: HashMap<u32, (u64, u64)>,
    /// Of those that are enabled no more.
    gone: Vec<(u32, CallCounts)>,
    filtered: Filtered,
    threads: Threads,
}

impl CallEnablings {
    /// Sets them; what was counted of those that stay is kept. Without a call that is `evaluated`, events are not looked at. `losses` and
    /// `filtered`: what the backend has counted so far.
    pub fn set(&mut self, all: Vec<CallEnabling>, evaluated: Calls, losses: &Losses, filtered: &Filtered) {
        let now = self.counts(losses, filtered).into_iter();
        self.gone = now.filter(|(id, _)| !all.iter().any(|e| e.id == *id)).collect();
        for enabling in &all {
            self.before.entry(enabling.id).or_insert_with(|| elsewhere(&enabling.calls, losses, filtered));
            self.counts.entry(enabling.id).or_default();
        }
        self.by_class.clear();
        for call in events::registry::syscalls() {
            let of = all.iter().enumerate().filter(|(_, e)| e.calls.contains(call)).map(|(nth, _)| nth);
            self.by_class.insert(call.id, of.collect());
        }
        self.all = all;
        self.evaluated = Some(evaluated).filter(|calls| !calls.is_empty());
    }

    /// Whether an event goes on.
    pub fn passes(&mut self, event: &[u8]) -> bool {
        let Some(evaluated) = &self.evaluated else { return true };
        let Ok(ev) = Event::parse(event) else { return true };
        self.threads.before(&ev);
        let verdict = if ev.is_syscall() {
            let of = self.by_class.get(&ev.schema.base).map_or(&[][..], Vec::as_slice);
            judge(&ev, of.iter().filter_map(|nth| self.all.get(*nth)), evaluated, &self.threads, &mut self.counts)
        } else {
            Verdict::Pass
        };
        self.threads.after(&ev);
        if !verdict.passes() {
            self.count(ev.schema, verdict);
        }
        verdict.passes()
    }

    fn count(&mut self, schema: &Schema, verdict: Verdict) {
        match verdict {
            Verdict::Unknown(_) => self.filtered.unknown += 1,
            _ => {
                self.filtered.parts.resize(self.filtered.parts.len().max(1), 0);
                self.filtered.parts[0] += 1;
            }
        }
        *self.filtered.classes.entry(schema.base).or_default() += 1;
    }

    /// What was held back.
    pub fn filtered(&self) -> &Filtered {
        &self.filtered
    }

    /// What was counted of each, by its number, with what the backend has counted of their calls; nothing where no call is evaluated.
    pub fn counts(&self, losses: &Losses, filtered: &Filtered) -> Vec<(u32, CallCounts)> {
        if self.evaluated.is_none() {
            return Vec::new();
        }
        let of = |e: &CallEnabling| {
            let before = self.before.get(&e.id).copied().unwrap_or_default();
            let now = elsewhere(&e.calls, losses, filtered);
            let (dropped, held_back) = (now.0.saturating_sub(before.0), now.1.saturating_sub(before.1));
            let counts = self.counts.get(&e.id).copied().unwrap_or_default();
            (e.id, CallCounts { dropped, held_back, ..counts })
        };
        self.gone.iter().copied().chain(self.all.iter().map(of)).collect()
    }
}

/// What a backend has lost and held back of some calls.
fn elsewhere(calls: &Calls, losses: &Losses, filtered: &Filtered) -> (u64, u64) {
    let is_of = |id: &u16| events::registry::by_id(*id).is_some_and(|s| s.class == Class::Syscall && calls.contains(s));
    let lost = losses.classes.iter().filter(|(id, _)| is_of(id)).map(|(_, n)| n).sum();
    (lost, filtered.classes.iter().filter(|(id, _)| is_of(id)).map(|(_, n)| n).sum())
}

/// Asks each enabling of a call, and counts; the event passes where one of them has passed it.
fn judge<'e>(
    ev: &Event<'_>,
    enablings: impl Iterator<Item = &'e CallEnabling>,
    evaluated: &Calls,
    threads: &Threads,
    counts: &mut HashMap<u32, CallCounts>,
) -> Verdict {
    let (uid, gid) = threads.ids(ev.tid());
    let context = Context { comm: threads.comm(ev.tid()), uid, gid };
    let decides = evaluated.contains(ev.schema);
    let mut verdict = None;
    for enabling in enablings {
        let own = match enabling.typed.get(&ev.schema.base).filter(|_| decides) {
            Some(filter) => filter.matches(ev, &context),
            None if enabling.filter.is_some() && decides => Verdict::Unknown(Missing::Probe),
            None => Verdict::Pass,
        };
        let counts = counts.entry(enabling.id).or_default();
        counts.asked += 1;
        counts.passed += u64::from(own.passes());
        if own.passes() || verdict.is_none() {
            verdict = Some(own);
        }
    }
    // A call that nobody has enabled is there for the names of descriptors or threads.
    verdict.unwrap_or(Verdict::Pass)
}

#[cfg(test)]
mod tests {
    use super::*;
    use events::encode::{self, Fixed};
    use events::layout::Layout;

    fn enabling(id: u32, names: &str, filter: Option<&str>) -> CallEnabling {
        let calls = Calls::parse(names).unwrap();
        let classes: Vec<_> = events::registry::syscalls().filter(|s| s.name != "raw" && calls.contains(s)).collect();
        let typed = filter.map(|text| lang::filter::parse(text, &[]).unwrap().check_all(&classes).unwrap());
        let typed = classes.iter().zip(typed.into_iter().flatten()).map(|(s, f)| (s.id, f)).collect();
        let (names, filter) = (names.into(), filter.map(str::to_string));
        CallEnabling { id, names, filter, calls, typed: Arc::new(typed) }
    }

    fn event(name: &str, fd: u64) -> Vec<u8> {
        let schema = events::registry::by_name(name).unwrap();
        let mut event = Vec::new();
        let fixed = Fixed { time: 1, tid: 7, pid: 7, ..Fixed::default() };
        let mut args = vec![0; schema.args.len()];
        args.iter_mut().take(1).for_each(|a| *a = fd);
        encode::fixed(&mut event, schema, &Layout::of(schema), &fixed, &args);
        for tail in &Layout::of(schema).tails {
            encode::empty_tail(&mut event, tail.shape);
        }
        event
    }

    #[test]
    fn every_enabling_counts_and_an_event_is_recorded_once() {
        let all = vec![
            enabling(0, "close,getppid", None),
            enabling(1, "close", Some("args.fd == 3")),
            enabling(2, "dup", Some("args.oldfd == 3")),
            enabling(3, "dup", Some("args.oldfd > 2")),
        ];
        let evaluated = evaluated(&all, false);
        assert_eq!(evaluated.names(), ["close", "dup"]);
        let mut e = CallEnablings::default();
        assert!(e.passes(&event("dup", 1)), "nothing is evaluated yet");
        let lost = Losses { total: 5, classes: vec![(events::registry::by_name("dup").unwrap().id, 5)] };
        e.set(all.clone(), evaluated, &lost, &Filtered::default());
        assert!(e.passes(&event("close", 3)) && e.passes(&event("close", 4)) && e.passes(&event("getppid", 0)));
        assert!(e.passes(&event("dup", 3)) && e.passes(&event("dup", 4)) && !e.passes(&event("dup", 1)));
        let lost = Losses { total: 7, classes: vec![(events::registry::by_name("dup").unwrap().id, 7)] };
        let counts = e.counts(&lost, &Filtered::default()).into_iter();
        let counts: Vec<_> = counts.map(|(id, c)| (id, c.asked, c.passed, c.dropped)).collect();
        assert_eq!(counts, [(0, 3, 3, 0), (1, 2, 1, 0), (2, 3, 1, 2), (3, 3, 2, 2)]);
        assert_eq!((e.filtered().total(), e.filtered().classes.len()), (1, 1));
        // One that is left alone has its filter evaluated by the backend, and with `every` here.
        assert!(super::evaluated(&all[2..3], false).is_empty() && !super::evaluated(&all[2..3], true).is_empty());
    }
}
