//! Function records as events in one order with all others, for live views. Recorded ones are put in order by the reader of the trace.
//!
//! ```text
//! runs ──► a queue per thread ─┐
//! events ─► sorted by time ────┴► up to what is settled: events of [`events::functions`], and the others
//! ```
//!
//! As long as there is no run, events are handed on as they come.

use crate::pipeline::world::World;
use events::StreamId;
use events::functions::{Clock, Encoder, RECORD, Run, parts_of, split, time};
use std::collections::{BTreeMap, VecDeque};
use symbols::demangle;

/// The name that is shown of a function: demangled, without parameters; none where the linker's is.
pub fn shown_name(symbol: &str) -> Option<String> {
    Some(demangle::of(symbol)?.plain)
}

/// The demangled name with its parameters; none where the linker's is no mangled one.
pub fn full_name(symbol: &str) -> Option<String> {
    Some(demangle::of(symbol)?.full)
}

/// Records that have the upper half of the counter.
struct Part {
    pid: u32,
    clock: Clock,
    high: u32,
    records: Vec<u8>,
    /// The next record, bytes.
    at: usize,
    /// Records that are missing before it, to be told.
    lost: u64,
    /// Which thread or program begins with it, to be told.
    begun: Option<u64>,
}

#[derive(Default)]
struct Thread {
    parts: VecDeque<Part>,
    /// The time of what was handed on last, ns: within a thread time does not go back.
    last: u64,
    /// The time of what comes next.
    next: Option<u64>,
    /// Which thread or program it is.
    number: Option<u64>,
}

impl Thread {
    /// Finds out when the next record was made.
    fn look(&mut self) {
        self.next = None;
        while let Some(part) = self.parts.front() {
            let time = match part.records[part.at..].first_chunk::<RECORD>() {
                Some(record) => part.clock.ns(u64::from(part.high) << 32 | u64::from(time(record))),
                // Only a loss.
                None if part.lost > 0 || part.begun.is_some() => part.clock.ns(0),
                None => {
                    self.parts.pop_front();
                    continue;
                }
            };
            return self.next = Some(time.max(self.last));
        }
    }
}

/// Brings runs and events into one order.
#[derive(Default)]
pub struct Ordered {
    active: bool,
    threads: BTreeMap<StreamId, Thread>,
    /// Events that wait: time, stream, place in `bytes`.
    events: Vec<(u64, StreamId, usize, usize)>,
    bytes: Vec<u8>,
    encoder: Option<Encoder>,
}

impl Ordered {
    /// Whether events have to be put in order ([`Ordered::event`]).
    pub fn is_active(&self) -> bool {
        self.active
    }

    /// Takes an event.
    pub fn event(&mut self, stream: StreamId, event: &[u8]) {
        let time = event.first_chunk().map_or(0, |b| u64::from_le_bytes(*b));
        self.events.push((time, stream, self.bytes.len(), event.len()));
        self.bytes.extend_from_slice(event);
    }

    /// Takes a run.
    pub fn run(&mut self, run: &Run<'_>) {
        self.active = true;
        let thread = self.threads.entry(run.stream).or_default();
        let (clock, mut lost) = (Clock::between(run.from, run.to), run.dropped);
        let mut begun = thread.number.map(|n| n + 1).filter(|_| run.begins);
        thread.number = Some(begun.or(thread.number).unwrap_or(0));
        for (high, records) in run.parts() {
            let part = Part { pid: run.pid, clock, high, records: records.to_vec(), at: 0, lost, begun };
            thread.parts.push_back(part);
            (lost, begun) = (0, None);
        }
        if lost > 0 || begun.is_some() {
            let clock = Clock::between(run.from, run.from);
            thread.parts.push_back(Part { pid: run.pid, clock, high: 0, records: Vec::new(), at: 0, lost, begun });
        }
        thread.look();
    }

    /// Hands over what is older than `until`; everything with `u64::MAX`.
    pub fn release(&mut self, until: u64, world: &mut World, mut each: impl FnMut(&[u8], &mut World)) {
        self.active = true;
        let all = until == u64::MAX;
        self.events.sort_by_key(|e| (e.0, e.1));
        let n = if all { self.events.len() } else { self.events.partition_point(|e| e.0 < until) };
        let encoder = self.encoder.get_or_insert_default();
        let (mut next_event, mut out) = (0, Vec::new());
        loop {
            let event = self.events[next_event..n].first().map(|e| (e.0, e.1));
            // The first thread, and what comes after it: up to that it goes on without a look at the others.
            let (mut first, mut limit) = (None, event);
            for (id, thread) in &self.threads {
                let Some(key) = thread.next.filter(|t| all || *t < until).map(|t| (t, *id)) else { continue };
                let later = match first.replace(key) {
                    Some(other) if other < key => first.replace(other),
                    other => other,
                };
                limit = [limit, later].into_iter().flatten().min();
            }
            let Some(key) = first.filter(|key| event.is_none_or(|e| *key < e)) else {
                let Some((_, _, at, len)) = self.events[..n].get(next_event) else { break };
                each(&self.bytes[*at..at + len], world);
                next_event += 1;
                continue;
            };
            let Some(thread) = self.threads.get_mut(&key.1) else { break };
            let goes_on = |t: u64| (all || t < until) && limit.is_none_or(|l| (t, key.1) < l);
            while let Some(time) = thread.next.filter(|t| goes_on(*t)) {
                let Some(part) = thread.parts.front_mut() else { break };
                let who = (part.pid, key.1.scope_id());
                if let Some(number) = part.begun.take() {
                    encoder.begun(&mut out, time, who, number);
                } else if part.lost > 0 {
                    encoder.lost(&mut out, time, who, std::mem::take(&mut part.lost));
                } else if let Some((record, _)) = split(&part.records[part.at..]) {
                    let (word, values) = parts_of(record);
                    let name = world.functions().name(word >> 1);
                    encoder.record_with(&mut out, time, who, word, name.as_bytes(), values);
                    part.at += record.len();
                } else {
                    // Never: a part has whole records.
                    part.at = part.records.len();
                }
                each(&out, world);
                thread.last = time;
                thread.look();
            }
        }
        self.events.drain(..n);
        if self.events.is_empty() {
            self.bytes.clear();
        } else if self.bytes.len() > 1 << 20 {
            let mut kept = Vec::new();
            for e in &mut self.events {
                let at = kept.len();
                kept.extend_from_slice(&self.bytes[e.2..e.2 + e.3]);
                e.2 = at;
            }
            self.bytes = kept;
        }
        self.threads.retain(|_, t| t.next.is_some() || t.last.saturating_add(FORGET) > until);
    }
}

/// How long a thread without records is remembered, ns.
const FORGET: u64 = 10_000_000_000;
