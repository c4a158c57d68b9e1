//! Which records of a session are events: by the time (stops), by the function (what is enabled), by filters.
//!
//! ```text
//!  run ─► phase of each record: stopped? ─► enablings that have the function ─► --where ─► a filter of an enabling ─► the run that is delivered
//!                     └ no event                    └ none: no event                 └───────────┴ counted as filtered
//! ```
//!
//! A thread goes on writing records for a moment after a stop, until it needs another chunk, so the time of a record decides, not the
//! moment at which it is read. A filter is evaluated once for each function and thread where it does not name the time: what is
//! found is an [`Outcome`], and records count outcomes.
//!
//! Invariant: each record is delivered, is counted as filtered, or is no event of the session.

use super::identity::{self, Known, LOOK, MOST_THREADS};
use engine::pipeline::functions::shown_name;
use engine::request::expression::{Expression, Filtered};
use engine::request::functions::FunctionEnabling;
use engine::request::select::Calls;
use engine::stats::Counts;
use events::Event;
use events::functions::{Clock, Encoder, HIGH, RECORD, Run, Sums, Table, VALUES, each, entry, exit, time, word};
use lang::{Missing, Verdict};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// The most bytes of remembered outcomes of all threads.
const MOST_BYTES: usize = 64 << 20;

/// A time in which the session records the same.
#[derive(Clone, Copy, Debug)]
struct Phase {
    /// Its beginning: a value of the time stamp counter.
    from: u64,
    running: bool,
    /// Which of the sets of enablings.
    set: usize,
}

/// An enabling that the session has, or had.
struct Enabled {
    id: u32,
    filter: Option<Expression>,
}

/// What becomes of a record.
#[derive(Debug, PartialEq, Eq)]
struct Outcome {
    /// What `--where` says.
    whole: Verdict,
    /// The enablings that have the function, and what their filters say.
    each: Vec<(usize, Verdict)>,
    /// The record is delivered: `whole` passes, and one of `each`.
    passes: bool,
    /// How many entries, and exits.
    counted: [u64; 2],
}

impl Outcome {
    fn new(whole: Verdict, each: Vec<(usize, Verdict)>) -> Outcome {
        let passes = whole.passes() && each.iter().any(|(_, v)| v.passes());
        Outcome { whole, each, passes, counted: [0; 2] }
    }

    /// Whether it is an event of the session.
    fn is_event(&self) -> bool {
        !self.each.is_empty()
    }
}

/// A thread: what filters may ask of it, and the outcomes that are known of its records.
#[derive(Default)]
struct Thread {
    looked: Option<u64>,
    known: Known,
    /// The set of enablings that `outcomes` are of.
    set: usize,
    /// By word: the number of the outcome, from 1; 0: not known yet.
    outcomes: Vec<u16>,
}

/// What the filters of a session ask for.
#[derive(Clone, Copy, Default)]
struct Asks {
    of_threads: identity::Asks,
    time: bool,
    /// There is a filter.
    any: bool,
}

/// Chooses the records.
pub struct RecordFilter {
    phases: Vec<Phase>,
    /// The enablings of each set, with their places in `enabled`.
    sets: Vec<Vec<(usize, FunctionEnabling)>>,
    enabled: Vec<Enabled>,
    whole: Option<Arc<Expression>>,
    asks: Asks,
    names: Table,
    outcomes: Vec<Outcome>,
    /// What processes were when they began: threads that have ended before they were looked at were it too.
    processes: HashMap<u32, Known>,
    threads: HashMap<(u32, u32), Thread>,
    /// Bytes of the outcomes that threads remember.
    bytes: usize,
    /// Where no filter asks who it was: what is known for all threads.
    anybody: Thread,
    encoder: Encoder,
    event: Vec<u8>,
    kept: Vec<u8>,
    /// The highest number that a function has.
    numbers: Arc<AtomicU32>,
    /// Records with numbers that no function has.
    impossible: u64,
    /// Calls of which only sums are known, by the number of the function.
    summed: HashMap<u32, u64>,
}

impl RecordFilter {
    /// For a session with these enablings, each with its number, that pass `whole`. `numbers`: the highest number that a
    /// function has.
    pub fn new(
        enablings: &[(u32, FunctionEnabling)],
        whole: Option<Arc<Expression>>,
        running: bool,
        numbers: Arc<AtomicU32>,
    ) -> RecordFilter {
        let mut record_filter = RecordFilter {
            phases: vec![Phase { from: 0, running, set: 0 }],
            sets: Vec::new(),
            enabled: Vec::new(),
            whole,
            asks: Asks::default(),
            names: Table::default(),
            outcomes: Vec::new(),
            processes: HashMap::new(),
            threads: HashMap::new(),
            bytes: 0,
            anybody: Thread::default(),
            encoder: Encoder::default(),
            event: Vec::new(),
            kept: Vec::new(),
            numbers,
            impossible: 0,
            summed: HashMap::new(),
        };
        record_filter.add_set(enablings);
        record_filter
    }

    /// A process begins a program, or is a new child: its name and its user and group.
    pub fn begin(&mut self, pid: u32, comm: Option<Vec<u8>>, ids: Option<(u32, u32)>) {
        // A filter that asks for it may come later.
        self.processes.insert(pid, Known { comm, ids });
    }

    /// A process has ended.
    pub fn end(&mut self, pid: u32) {
        self.processes.remove(&pid);
        self.threads.retain(|(of, _), _| *of != pid);
    }

    /// Notes calls of which only sums are known, of a function.
    pub fn note_sums(&mut self, sums: &Sums) {
        let calls = self.summed.entry(sums.number).or_default();
        *calls = calls.saturating_add(sums.calls);
    }

    /// The calls of the function with this name, of those.
    fn summed(&self, enabling: usize) -> u64 {
        let set = self.sets.get(self.now().set).into_iter().flatten();
        let patterns: Vec<_> = set.filter(|(of, _)| *of == enabling).map(|(_, e)| e).collect();
        let has = |number: u32| patterns.iter().any(|e| e.has(self.names.names(number)));
        let calls = self.summed.iter().filter(|(number, _)| has(**number)).map(|(_, calls)| calls);
        calls.fold(0, |sum, calls| sum.saturating_add(*calls))
    }

    /// Learns the name of a function, from an event that reports it.
    pub fn note(&mut self, event: &[u8]) {
        if let Ok(ev) = Event::parse(event) {
            self.names.note(&ev, shown_name);
        }
    }

    /// The highest number that a function has.
    pub fn numbers(&self) -> u32 {
        self.numbers.load(Ordering::Acquire).max(self.names.last())
    }

    /// Whether the session has, or had, the enabling with this number.
    pub fn knows(&self, id: u32) -> bool {
        self.enabled.iter().any(|e| e.id == id)
    }

    /// Whether this pattern has been taken away from an enabling that the session has.
    pub fn is_without(&self, pattern: &String) -> bool {
        self.sets.get(self.now().set).is_some_and(|set| set.iter().any(|(_, e)| e.without.contains(pattern)))
    }

    /// Functions with stubs that the pattern of an enabling matches.
    pub fn matched(&self, enabling: &FunctionEnabling) -> usize {
        let numbers = 1..=self.names.last();
        numbers.filter(|n| self.names.get(*n).is_some() && enabling.has(self.names.names(*n))).count()
    }

    fn add_set(&mut self, enablings: &[(u32, FunctionEnabling)]) -> usize {
        let mut set = Vec::new();
        for (id, e) in enablings {
            let known = self.enabled.iter().position(|known| known.id == *id);
            set.push((known.unwrap_or(self.enabled.len()), e.clone()));
            if known.is_none() {
                let typed = |text: &String| Expression::new(text, &[], &Calls::none(), &[entry(), exit()]).ok();
                self.enabled.push(Enabled { id: *id, filter: e.filter.as_ref().and_then(typed) });
            }
        }
        let own = self.enabled.iter().filter_map(|e| e.filter.as_ref());
        let filters = own.chain(self.whole.as_deref());
        let time = |f: &Expression| [entry(), exit()].iter().filter_map(|s| f.of(s)).any(|f| f.needs().nsecs);
        self.asks = Asks {
            of_threads: identity::Asks::of(filters.clone()),
            time: filters.clone().any(time),
            any: filters.count() > 0,
        };
        self.sets.push(set);
        self.sets.len() - 1
    }

    fn now(&self) -> Phase {
        self.phases.last().copied().unwrap_or(Phase { from: 0, running: true, set: 0 })
    }

    /// From this moment on the session is stopped, or runs.
    pub fn switch(&mut self, tsc: u64, running: bool) {
        let set = self.now().set;
        self.phases.push(Phase { from: tsc.max(self.now().from), running, set });
    }

    /// From this moment on these are the enablings: those that were there before are known by their numbers.
    pub fn select(&mut self, tsc: u64, enablings: &[(u32, FunctionEnabling)]) {
        let (set, now) = (self.add_set(enablings), self.now());
        if self.sets[set] == self.sets[now.set] {
            self.sets.pop();
            return;
        }
        self.phases.push(Phase { from: tsc.max(now.from), running: now.running, set });
    }

    /// The number of the phase at a moment.
    fn phase_at(&self, tsc: u64) -> usize {
        self.phases.partition_point(|p| p.from <= tsc).max(1) - 1
    }

    /// Whether a function has this number, or may have it by now: what is reported is heard of a little later.
    fn is_number(&self, number: u32) -> bool {
        number <= self.names.last() || number <= self.numbers.load(Ordering::Acquire)
    }

    /// What of a run is delivered: its events that pass. None: nothing of it, and it has no losses to report.
    pub fn take<'a>(&'a mut self, run: &Run<'a>) -> Option<Run<'a>> {
        let key = (run.pid, run.tid());
        let mut thread = std::mem::take(self.thread(key, run));
        let before = thread.outcomes.len();
        let clock = Clock::between(run.from, run.to);
        let (mut at, mut phase, mut until) = (usize::MAX, Phase { from: 1, running: false, set: 0 }, 0);
        // What passes: records one after the other, with the upper half of the counter.
        let mut passing: Vec<(u32, &[u8])> = Vec::new();
        let (mut all, mut last) = (true, run.records.get(..0));
        for (high, part) in run.parts() {
            last = Some(part);
            let (mut from, mut end) = (0, 0);
            for record in each(part) {
                let Some(head) = record.first_chunk::<RECORD>() else { break };
                let tsc = u64::from(high) << 32 | u64::from(time(head));
                if at == usize::MAX || tsc >= until || tsc < phase.from {
                    at = self.phase_at(tsc);
                    phase = self.phases[at];
                    until = self.phases.get(at + 1).map_or(u64::MAX, |p| p.from);
                    if thread.set != phase.set {
                        thread.set = phase.set;
                        thread.outcomes.fill(0);
                    }
                }
                let word = word(head) & !VALUES;
                if !(phase.running && self.passes(key, &mut thread, word, || clock.ns(tsc))) {
                    passing.extend(part.get(from..end).filter(|records| !records.is_empty()).map(|r| (high, r)));
                    (all, from) = (false, end + record.len());
                }
                end += record.len();
            }
            passing.extend(part.get(from..end).filter(|records| !records.is_empty()).map(|r| (high, r)));
        }
        self.bytes += 2 * (thread.outcomes.len() - before.min(thread.outcomes.len()));
        *self.slot(key) = thread;
        if passing.is_empty() {
            return (run.dropped > 0).then_some(Run { records: &[], ..*run });
        }
        // What is behind the last record is none.
        let is_whole = last.is_some_and(|part| part.as_ptr_range().end == run.records.as_ptr_range().end);
        if all && is_whole {
            return Some(*run);
        }
        self.kept.clear();
        let mut last_high = None;
        for (high, records) in passing {
            if last_high.replace(high) != Some(high) {
                self.kept.extend([high, HIGH].map(u32::to_le_bytes).as_flattened());
            }
            self.kept.extend_from_slice(records);
        }
        Some(Run { records: &self.kept, ..*run })
    }

    /// Whether a record is delivered, which is counted.
    #[inline]
    fn passes(&mut self, key: (u32, u32), thread: &mut Thread, word: u32, ns: impl FnOnce() -> u64) -> bool {
        let n = match thread.outcomes.get(word as usize) {
            Some(n) if *n > 0 => usize::from(*n) - 1,
            _ if !self.is_number(word >> 1) => {
                self.impossible += 1;
                return false;
            }
            _ => self.decide(key, thread, word, ns()),
        };
        let Some(outcome) = self.outcomes.get_mut(n) else { return false };
        outcome.counted[(word & 1) as usize] += 1;
        outcome.passes
    }

    /// Where a thread's outcomes are remembered.
    fn slot(&mut self, key: (u32, u32)) -> &mut Thread {
        if self.asks.any { self.threads.entry(key).or_default() } else { &mut self.anybody }
    }

    /// A thread, with its name and ids as they are now, as far as filters ask for them.
    fn thread(&mut self, key: (u32, u32), run: &Run<'_>) -> &mut Thread {
        let Asks { of_threads: asks, any: asked, .. } = self.asks;
        if self.threads.len() > MOST_THREADS || self.bytes > MOST_BYTES {
            self.threads.clear();
            self.bytes = 0;
        }
        let process = self.processes.get(&key.0).cloned().unwrap_or_default();
        let thread = self.slot(key);
        if run.begins && asked {
            *thread = Thread { set: thread.set, ..Thread::default() };
        }
        let now = run.to.monotonic;
        if asks.any() && thread.looked.is_none_or(|at| now.saturating_sub(at) > LOOK) {
            thread.looked = Some(now);
            let now = Known::look(key.1, asks).or(&thread.known).or(&process);
            if now != thread.known {
                thread.known = now;
                thread.outcomes.fill(0);
            }
        }
        thread
    }

    /// Finds out what becomes of a record, and remembers it. Returns the number of the outcome, from 0.
    fn decide(&mut self, (pid, tid): (u32, u32), thread: &mut Thread, word: u32, ns: u64) -> usize {
        let found = self.outcome((pid, tid), thread, word, ns);
        let is_it = |o: &Outcome| (o.whole, &o.each) == (found.whole, &found.each);
        let n = self.outcomes.iter().position(is_it).unwrap_or_else(|| {
            self.outcomes.push(found);
            self.outcomes.len() - 1
        });
        // The process may write any number: only those of functions have room.
        if !self.asks.time && word >> 1 <= self.names.last() {
            let room = (self.names.last() as usize + 1) * 2;
            if thread.outcomes.len() < room {
                thread.outcomes.resize(room, 0);
            }
            if let (Some(place), Ok(n)) = (thread.outcomes.get_mut(word as usize), u16::try_from(n + 1)) {
                *place = n;
            }
        }
        n
    }

    fn outcome(&mut self, who: (u32, u32), thread: &Thread, word: u32, ns: u64) -> Outcome {
        let mut event = std::mem::take(&mut self.event);
        let name = self.names.name(word >> 1);
        self.encoder.record(&mut event, ns, who, word, name.as_bytes());
        let context = thread.known.context();
        let ev = Event::parse(&event).ok();
        let verdict = |filter: Option<&Expression>| {
            let Some(filter) = filter else { return Verdict::Pass };
            let of = ev.as_ref().and_then(|ev| Some((ev, filter.of(ev.schema)?)));
            of.map_or(Verdict::Unknown(Missing::Probe), |(ev, filter)| filter.matches(ev, &context))
        };
        let is_known = self.names.get(word >> 1).is_some();
        let set = self.sets.get(thread.set).map_or(&[][..], Vec::as_slice);
        let of = set.iter().filter(|(_, e)| !is_known || e.has(self.names.names(word >> 1)));
        let each = of.filter_map(|(n, _)| Some((*n, verdict(self.enabled.get(*n)?.filter.as_ref())))).collect();
        let outcome = Outcome::new(verdict(self.whole.as_deref()), each);
        self.event = event;
        outcome
    }

    /// How many records had numbers that no function has: the process has written them itself.
    pub fn impossible(&self) -> u64 {
        self.impossible
    }

    /// Records that filters have rejected.
    pub fn filtered(&self) -> Filtered {
        let mut all = Filtered::default();
        all.parts.resize(self.whole.as_ref().map_or(0, |w| w.parts().len()), 0);
        for o in self.outcomes.iter().filter(|o| o.is_event() && !o.passes) {
            let both = o.counted.iter().sum::<u64>();
            match o.whole {
                Verdict::Pass => {}
                Verdict::Rejected(part) if part < all.parts.len() => all.parts[part] += both,
                _ => all.unknown += both,
            }
            for (class, n) in [entry(), exit()].iter().zip(o.counted).filter(|(_, n)| *n > 0) {
                *all.classes.entry(class.id).or_default() += n;
            }
        }
        all
    }

    /// What was counted of each enabling, by number, those included that are enabled no more. `dropped` records were lost, of functions that
    /// nobody knows.
    pub fn counts(&self, dropped: u64) -> Vec<(u32, Counts)> {
        let alone = self.enabled.len() == 1;
        let counts = self.enabled.iter().enumerate().map(|(n, e)| {
            let parts = e.filter.as_ref().map_or(0, |f| f.parts().len());
            let mut c = Counts { parts: vec![0; parts], ..Counts::default() };
            for o in &self.outcomes {
                let Some((_, own)) = o.each.iter().find(|(of, _)| *of == n) else { continue };
                let both = o.counted.iter().sum::<u64>();
                c.seen += both;
                match (o.whole, own) {
                    (Verdict::Pass, Verdict::Pass) => c.recorded += both,
                    (Verdict::Pass, Verdict::Rejected(part)) if *part < parts => c.parts[*part] += both,
                    _ => {}
                }
            }
            let summed = self.summed(n);
            (c.seen, c.recorded) = (c.seen.saturating_add(summed), c.recorded.saturating_add(summed));
            c.filtered = c.seen - c.recorded;
            // Of several enablings, nobody knows which a lost record was of.
            if alone {
                (c.seen, c.dropped) = (c.seen.saturating_add(dropped), dropped);
            }
            (e.id, c)
        });
        counts.collect()
    }
}

#[cfg(test)]
mod tests;
