//! Which entries of heaps are events: by the time (stops), by the probe, by filters. Their counters.
//!
//! Invariant: each entry is delivered, is counted as filtered, or is no event of the session.

use super::identity::{Asks, Identities, Known};
use super::times::Times;
use engine::heap::Entry;
use engine::heap::classes::{self, Probe};
use engine::request::enabling::Enabling;
use engine::request::expression::{Expression, Filtered};
use engine::request::heap_enabling::HeapEnabling;
use engine::stats::Counts;
use events::Event;
use lang::{Missing, Verdict};
use std::sync::Arc;

/// Chooses them.
pub struct EntryFilter {
    forks: bool,
    /// Those that are enabled, by number.
    probes: Vec<(u32, HeapEnabling)>,
    /// The filter of all events.
    whole: Option<Arc<Expression>>,
    asks: Asks,
    times: Times,
    identities: Identities,
    /// By enabling.
    counts: Vec<Counts>,
    filtered: Filtered,
    event: Vec<u8>,
}

/// What a filter says of an event. None at all lets it pass; one that is not for its class does not.
fn verdict(filter: Option<&Expression>, ev: &Event<'_>, who: &Known) -> Verdict {
    let Some(filter) = filter else { return Verdict::Pass };
    filter.of(ev.schema).map_or(Verdict::Unknown(Missing::Probe), |f| f.matches(ev, &who.context()))
}

impl EntryFilter {
    /// Of a session that has these probes enabled, and forks too.
    pub fn new(
        probes: Vec<(u32, HeapEnabling)>,
        forks: bool,
        whole: Option<Arc<Expression>>,
        running: bool,
    ) -> EntryFilter {
        let filters = probes.iter().filter_map(|(_, e)| e.filter.as_deref());
        let asks = Asks::of(filters.chain(whole.as_deref()));
        let parts = |e: &HeapEnabling| vec![0; e.filter.as_ref().map_or(0, |f| f.parts().len())];
        let counts = probes.iter().map(|(_, e)| Counts { parts: parts(e), ..Counts::default() }).collect();
        let parts = vec![0; whole.as_ref().map_or(0, |w| w.parts().len())];
        EntryFilter {
            forks,
            probes,
            whole,
            asks,
            times: Times::new(running),
            identities: Identities::default(),
            counts,
            filtered: Filtered { parts, ..Filtered::default() },
            event: Vec::new(),
        }
    }

    /// A process begins a program, or is a new child: its name and its user and group.
    pub fn begin(&mut self, pid: u32, known: Known) {
        self.identities.begin(pid, known);
    }

    /// A process has ended.
    pub fn end(&mut self, pid: u32) {
        self.identities.end(pid);
    }

    /// From this moment on the session is stopped, or runs.
    pub fn switch(&mut self, tsc: u64, running: bool) {
        self.times.switch(tsc, running);
    }

    /// From this moment on, in nanoseconds of the monotonic clock, there are no events of enablings that were taken away.
    pub fn remove(&mut self, now: u64, all: &[Enabling]) {
        self.times.remove(now, all);
    }

    /// Removes, from the first `n` entries, those of times in which the session is stopped. Returns how many are left. Times are values of
    /// the time stamp counter.
    pub fn without_stops(&self, entries: &mut Vec<Entry>, n: usize) -> usize {
        if self.times.always_runs() {
            return n;
        }
        n - entries.extract_if(..n, |e| !self.times.runs_at(e.time)).count()
    }

    /// An entry of process `pid` as an event, if it is one that passes. `parent`: the process that [`engine::heap::What::Child`] is to name.
    pub fn event(&mut self, pid: u32, entry: &Entry, parent: u32) -> Option<&[u8]> {
        let probe = Probe::of(&entry.what);
        if matches!(probe, Probe::Fork | Probe::Child) {
            if !self.forks {
                return None;
            }
            classes::encode(&mut self.event, pid, entry, parent, false);
            return Some(&self.event);
        }
        let times = &self.times;
        let is_of = |(id, e): &(u32, HeapEnabling)| e.probe == probe && times.has(*id, entry.time);
        let (_, first) = self.probes.iter().find(|p| is_of(p))?;
        classes::encode(&mut self.event, pid, entry, parent, first.stack);
        let ev = Event::parse(&self.event).ok()?;
        let nobody = Known::default();
        let who = match self.asks.any() {
            true => self.identities.of((pid, entry.tid), entry.time, self.asks),
            false => &nobody,
        };
        let whole = verdict(self.whole.as_deref(), &ev, who);
        let mut passes = false;
        for ((_, e), n) in self.probes.iter().zip(&mut self.counts).filter(|(p, _)| is_of(p)) {
            n.seen += 1;
            match (whole, verdict(e.filter.as_deref(), &ev, who)) {
                (Verdict::Pass, Verdict::Pass) => {
                    n.recorded += 1;
                    passes = true;
                }
                (Verdict::Pass, Verdict::Rejected(part)) => n.parts.get_mut(part).into_iter().for_each(|n| *n += 1),
                _ => {}
            }
        }
        if passes {
            return Some(&self.event);
        }
        match whole {
            Verdict::Pass => {}
            Verdict::Rejected(part) if part < self.filtered.parts.len() => self.filtered.parts[part] += 1,
            _ => self.filtered.unknown += 1,
        }
        *self.filtered.classes.entry(ev.schema.id).or_default() += 1;
        None
    }

    /// The numbers of the enablings.
    pub fn ids(&self) -> impl Iterator<Item = u32> {
        self.probes.iter().map(|(id, _)| *id)
    }

    /// What was counted of each enabling, by number.
    pub fn counts(&self) -> Vec<(u32, Counts)> {
        let of = |n: &Counts| Counts { filtered: n.seen - n.recorded, ..n.clone() };
        self.ids().zip(self.counts.iter().map(of)).collect()
    }

    /// Events that filters have rejected.
    pub fn filtered(&self) -> &Filtered {
        &self.filtered
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::heap::{Kind, What};
    use engine::request::select::Calls;

    fn enabled(probe: Probe, filter: Option<&str>) -> (u32, HeapEnabling) {
        let class = probe.class(false).unwrap();
        let typed = |text| Arc::new(Expression::new(text, &[], &Calls::none(), &[class]).unwrap());
        (0, HeapEnabling { probe, stack: false, filter: filter.map(typed), text: filter.map(str::to_string) })
    }

    fn malloc(time: u64, size: u64) -> Entry {
        Entry { time, tid: 8, what: What::Alloc { kind: Kind::Malloc, address: 0x1000, size, stack: 0 } }
    }

    #[test]
    fn every_event_is_delivered_or_counted() {
        let probes = vec![
            enabled(Probe::Malloc, Some("args.size > 10 && args.size < 100")),
            enabled(Probe::Malloc, Some("args.size == 5")),
            enabled(Probe::Free, None),
        ];
        let classes = [Probe::Malloc, Probe::Free].map(|p| p.class(false).unwrap());
        let whole = Expression::new("args.size != 50", &[], &Calls::none(), &classes).unwrap();
        let mut chosen = EntryFilter::new(probes, false, Some(Arc::new(whole)), true);
        let sizes = [5, 7, 20, 50, 200];
        let passed: Vec<u64> =
            sizes.into_iter().filter(|size| chosen.event(7, &malloc(1, *size), 0).is_some()).collect();
        assert_eq!(passed, [5, 20]);
        // A free has no size.
        assert!(chosen.event(7, &Entry { time: 1, tid: 8, what: What::Free { address: 1 } }, 0).is_none());
        // Nobody has asked for these.
        assert!(chosen.event(7, &Entry { time: 1, tid: 8, what: What::Unmap { address: 1, len: 1 } }, 0).is_none());
        assert!(chosen.event(7, &Entry { time: 1, tid: 8, what: What::Fork { number: 1 } }, 0).is_none());
        let counts = chosen.counts();
        let numbers = |n: &Counts| (n.seen, n.recorded, n.filtered, n.parts.clone());
        assert_eq!(numbers(&counts[0].1), (5, 1, 4, vec![2, 1]));
        assert_eq!(numbers(&counts[1].1), (5, 1, 4, vec![3]));
        assert_eq!(numbers(&counts[2].1), (1, 0, 1, vec![]));
        let f = chosen.filtered();
        assert_eq!(
            (&f.parts[..], f.unknown, f.classes[&classes[0].id], f.classes[&classes[1].id]),
            (&[1][..], 1, 3, 1)
        );
    }

    #[test]
    fn what_is_made_while_the_session_is_stopped_is_no_event() {
        let mut chosen = EntryFilter::new(vec![enabled(Probe::Malloc, None)], false, None, false);
        [(10, true), (20, false), (30, true)].into_iter().for_each(|(tsc, running)| chosen.switch(tsc, running));
        let mut entries: Vec<Entry> = [5, 10, 19, 20, 29, 30, 40, 21].map(|time| malloc(time, 1)).into();
        assert_eq!(chosen.without_stops(&mut entries, 7), 4);
        assert_eq!(entries.iter().map(|e| e.time).collect::<Vec<_>>(), [10, 19, 30, 40, 21]);
    }

    #[test]
    fn filters_may_ask_who_it_was() {
        let probe = enabled(Probe::Malloc, Some("comm == \"mine\" && uid == 3"));
        let mut chosen = EntryFilter::new(vec![probe], false, None, true);
        chosen.begin(7, Known { comm: Some(b"mine".to_vec()), ids: Some((3, 3)) });
        // No thread has this number.
        let entry = |tid| Entry { tid, ..malloc(1, 1) };
        assert!(chosen.event(7, &entry(i32::MAX as u32), 0).is_some());
        assert!(chosen.event(9, &entry(i32::MAX as u32 - 1), 0).is_none());
    }
}
