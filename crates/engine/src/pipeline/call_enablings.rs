//! Calls that are enabled more than once, or with other filters than at the start: each enabling has a filter and counters of its own.
//!
//! ```text
//! events of the backend ─► an enabling of the call whose filter they pass? ─► recorder, views
//!                                    each that is asked counts              └► no: counted as filtered
//! ```
//!
//! An event is recorded once, however many enablings it passes. A call with one enabling is filtered by the backend where that can; it is
//! counted here only where others have to be.

use super::threads::Threads;
use crate::request::call_enabling::CallEnabling;
use crate::request::enabling::Enabling;
use crate::request::expression::Filtered;
use crate::request::select::Calls;
use crate::stats::{Counts, Losses};
use events::names::Names;
use events::{Class, Event, Schema};
use lang::{Context, Missing, Verdict};
use std::collections::HashMap;

/// The enablings of calls on the way of the events.
#[derive(Default)]
pub struct CallEnablings {
    /// Those that are enabled, with their numbers.
    all: Vec<(u32, CallEnabling)>,
    evaluated: Option<Calls>,
    /// By class: positions in `all`.
    by_class: HashMap<u16, Vec<usize>>,
    counts: HashMap<u32, Asked>,
    /// What the backend had lost and held back of their calls when they were enabled.
    before: HashMap<u32, (u64, u64)>,
    /// Of those that are enabled no more.
    gone: Vec<(u32, Counts)>,
    filtered: Filtered,
    threads: Threads,
}

/// Events that came, and those of them that have passed the filter.
type Asked = (u64, u64);

impl CallEnablings {
    /// Sets them, the calls among `all`; what was counted of those that stay is kept. Without a call that is `evaluated`, events are not
    /// looked at. `losses` and `filtered`: what the backend has counted so far.
    pub fn set(&mut self, all: &[Enabling], evaluated: Calls, losses: &Losses, filtered: &Filtered) {
        let enabled = all.iter().filter(|e| !e.removed).filter_map(|e| Some((e.id, e.calls()?.clone())));
        let all: Vec<(u32, CallEnabling)> = enabled.collect();
        let now = self.counts(losses, filtered).into_iter();
        self.gone = now.filter(|(id, _)| !all.iter().any(|(known, _)| known == id)).collect();
        for (id, enabling) in &all {
            self.before.entry(*id).or_insert_with(|| elsewhere(&enabling.calls, losses, filtered));
            self.counts.entry(*id).or_default();
        }
        self.by_class.clear();
        for call in events::registry::syscalls() {
            let of = all.iter().enumerate().filter(|(_, (_, e))| e.calls.contains(call)).map(|(nth, _)| nth);
            self.by_class.insert(call.id, of.collect());
        }
        self.all = all;
        self.evaluated = Some(evaluated).filter(|calls| !calls.is_empty());
    }

    /// Whether an event goes on.
    #[inline]
    pub fn passes(&mut self, event: &[u8]) -> bool {
        self.evaluated.is_none() || self.is_passed(event)
    }

    #[inline(never)]
    fn is_passed(&mut self, event: &[u8]) -> bool {
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
    pub fn counts(&self, losses: &Losses, filtered: &Filtered) -> Vec<(u32, Counts)> {
        if self.evaluated.is_none() {
            return Vec::new();
        }
        let of = |(id, e): &(u32, CallEnabling)| {
            let before = self.before.get(id).copied().unwrap_or_default();
            let now = elsewhere(&e.calls, losses, filtered);
            // No enabling of theirs wanted the events that the backend has held back.
            let (dropped, held_back) = (now.0.saturating_sub(before.0), now.1.saturating_sub(before.1));
            let (asked, recorded) = self.counts.get(id).copied().unwrap_or_default();
            let (seen, filtered) = (asked + dropped + held_back, asked - recorded + held_back);
            (*id, Counts { seen, recorded, dropped, filtered, parts: vec![filtered], ..Counts::default() })
        };
        self.gone.iter().cloned().chain(self.all.iter().map(of)).collect()
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
    enablings: impl Iterator<Item = &'e (u32, CallEnabling)>,
    evaluated: &Calls,
    threads: &Threads,
    counts: &mut HashMap<u32, Asked>,
) -> Verdict {
    let (uid, gid) = threads.ids(ev.tid());
    let context = Context { comm: threads.comm(ev.tid()), uid, gid, cpu: None };
    let decides = evaluated.contains(ev.schema);
    let mut verdict = None;
    for (id, enabling) in enablings {
        let own = match enabling.typed.get(&ev.schema.base).filter(|_| decides) {
            Some(filter) => filter.matches(ev, &context),
            None if enabling.filter.is_some() && decides => Verdict::Unknown(Missing::Probe),
            None => Verdict::Pass,
        };
        let (asked, passed) = counts.entry(*id).or_default();
        *asked += 1;
        *passed += u64::from(own.passes());
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
    use crate::request::call_enabling::evaluated;
    use crate::request::enabling::{What, list};
    use events::encode::{self, Fixed};
    use events::layout::Layout;
    use std::sync::Arc;

    fn enabling(names: &str, filter: Option<&str>) -> CallEnabling {
        let calls = Calls::parse(names).unwrap();
        let classes: Vec<_> = events::registry::syscalls().filter(|s| s.name != "raw" && calls.contains(s)).collect();
        let typed = filter.map(|text| lang::filter::parse(text, &[]).unwrap().check_all(&classes).unwrap());
        let typed = classes.iter().zip(typed.into_iter().flatten()).map(|(s, f)| (s.id, f)).collect();
        let (names, filter) = (names.into(), filter.map(str::to_string));
        CallEnabling { names, filter, calls, typed: Arc::new(typed) }
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
        let of = [
            enabling("close,getppid", None),
            enabling("close", Some("args.fd == 3")),
            enabling("dup", Some("args.fildes == 3")),
            enabling("dup", Some("args.fildes > 2")),
        ];
        let some = evaluated(of.iter(), false);
        let all = list(of.iter().cloned().map(What::Calls));
        assert_eq!(some.names(), ["close", "dup"]);
        let mut e = CallEnablings::default();
        assert!(e.passes(&event("dup", 1)), "nothing is evaluated yet");
        let lost = Losses { total: 5, classes: vec![(events::registry::by_name("dup").unwrap().id, 5)] };
        e.set(&all, some, &lost, &Filtered::default());
        assert!(e.passes(&event("close", 3)) && e.passes(&event("close", 4)) && e.passes(&event("getppid", 0)));
        assert!(e.passes(&event("dup", 3)) && e.passes(&event("dup", 4)) && !e.passes(&event("dup", 1)));
        let lost = Losses { total: 7, classes: vec![(events::registry::by_name("dup").unwrap().id, 7)] };
        let counts = e.counts(&lost, &Filtered::default()).into_iter();
        let counts: Vec<_> = counts.map(|(id, c)| (id, c.seen, c.recorded, c.dropped)).collect();
        assert_eq!(counts, [(0, 3, 3, 0), (1, 2, 1, 0), (2, 5, 1, 2), (3, 5, 2, 2)]);
        assert_eq!((e.filtered().total(), e.filtered().classes.len()), (1, 1));
        // One that is left alone has its filter evaluated by the backend, and with `every` here.
        assert!(evaluated(of[2..3].iter(), false).is_empty() && !evaluated(of[2..3].iter(), true).is_empty());
    }
}
