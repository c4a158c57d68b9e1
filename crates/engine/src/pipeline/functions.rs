//! Function records as events in one order with all others, for live views. Recorded ones are put in order by the reader of the trace.
//!
//! ```text
//! runs ──► a queue per thread ─┐
//! events ─► sorted by time ────┴► up to what is settled: events of [`events::functions`], and the others
//! ```
//!
//! As long as there is no run, events are handed on as they come. Who needs no order among threads takes the records of each thread at once
//! ([`Ordered::release_by_thread`]).

use crate::pipeline::world::World;
use events::StreamId;
use events::functions::{Clock, Encoder, RECORD, Run, VALUES, each, parts_of, split, time, word};
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
    /// None of them has values.
    is_plain: bool,
    /// The next record, bytes.
    at: usize,
    /// Records that are missing before it, to be reported.
    lost: u64,
    /// Which thread or program begins with it, to be reported.
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
                Some(record) => part.time_of(record),
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

/// Consecutive records of a thread.
pub struct Records<'a> {
    /// The process.
    pub pid: u32,
    /// The thread.
    pub tid: u32,
    /// Records are missing before them, or another thread or program begins with them: what was open before never returns.
    pub after_gap: bool,
    clock: Clock,
    high: u32,
    records: &'a [u8],
    /// The time of the record before, ns.
    last: u64,
    /// The time of the last one, ns.
    end: u64,
}

impl Records<'_> {
    /// The time of the last one, ns.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// The word of each.
    #[inline]
    pub fn words(&self) -> impl Iterator<Item = u32> + '_ {
        each(self.records).map(|record| parts_of(record).0)
    }

    /// The time of each, ns, and its word: the number of the function, shifted left by one, and 1 where it returns.
    #[inline]
    pub fn each(&self) -> impl Iterator<Item = (u64, u32)> + '_ {
        let (clock, high, mut last) = (self.clock, u64::from(self.high) << 32, self.last);
        each(self.records).map(move |record| {
            let low = record.first_chunk().map_or(0, time);
            last = last.max(clock.ns(high | u64::from(low)));
            (last, parts_of(record).0)
        })
    }
}

/// Takes what is released thread by thread.
pub trait ByThread {
    /// Up to this time, ns, all threads' records are wanted before any later one.
    fn due(&self) -> Option<u64>;
    /// All records and events before that time have been handed over.
    fn reached(&mut self, time: u64);
    /// Records of a thread.
    fn records(&mut self, records: &Records<'_>);
    /// An event.
    fn event(&mut self, event: &[u8]);
}

impl Part {
    /// When a record was made, ns.
    fn time_of(&self, record: &[u8]) -> u64 {
        self.clock.ns(u64::from(self.high) << 32 | u64::from(record.first_chunk().map_or(0, time)))
    }

    /// How many bytes the records have that come next and were made before a time, and when the last of them was: not before `last`.
    fn before(&self, before: u64, mut last: u64) -> (usize, u64) {
        let rest = &self.records[self.at..];
        if self.is_plain {
            let all = rest.as_chunks::<RECORD>().0;
            let n = match all.last() {
                _ if last >= before => 0,
                Some(end) if self.time_of(end) < before => all.len(),
                _ => all.partition_point(|record| self.time_of(record) < before),
            };
            let end = n.checked_sub(1).and_then(|at| all.get(at)).map_or(0, |record| self.time_of(record));
            return (n * RECORD, last.max(end));
        }
        let mut len = 0;
        for record in each(rest) {
            let time = self.time_of(record).max(last);
            if time >= before {
                break;
            }
            (last, len) = (time, len + record.len());
        }
        (len, last)
    }
}

impl Thread {
    /// Hands over the records before a time.
    fn hand_over(&mut self, tid: u32, before: u64, each: &mut impl ByThread) {
        while let Some(part) = self.parts.front_mut() {
            let mut ahead = Records {
                pid: part.pid,
                tid,
                after_gap: std::mem::take(&mut part.lost) > 0 || part.begun.take().is_some(),
                clock: part.clock,
                high: part.high,
                records: &[],
                last: self.last,
                end: self.last,
            };
            let (len, last) = part.before(before, self.last);
            self.last = last;
            (ahead.records, ahead.end) = (&part.records[part.at..part.at + len], last);
            if len > 0 || ahead.after_gap {
                each.records(&ahead);
            }
            part.at += len;
            // What is left is no whole record where it is not later.
            if split(&part.records[part.at..]).is_some() {
                break;
            }
            self.parts.pop_front();
        }
        self.look();
    }

    /// The time of its last record, ns.
    fn end(&self) -> Option<u64> {
        let part = self.parts.back()?;
        let last = if part.is_plain {
            part.records.as_chunks::<RECORD>().0.last().map(|r| &r[..])
        } else {
            each(&part.records).last()
        };
        Some(part.time_of(last?))
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
            let is_plain = records.as_chunks::<RECORD>().0.iter().all(|r| word(r) & VALUES == 0);
            let part = Part { pid: run.pid, clock, high, records: records.to_vec(), is_plain, at: 0, lost, begun };
            thread.parts.push_back(part);
            (lost, begun) = (0, None);
        }
        if lost > 0 || begun.is_some() {
            let clock = Clock::between(run.from, run.from);
            thread.parts.push_back(Part {
                pid: run.pid,
                clock,
                high: 0,
                records: Vec::new(),
                is_plain: true,
                at: 0,
                lost,
                begun,
            });
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
                let Some((_, stream, at, len)) = self.events[..n].get(next_event) else { break };
                world.comes_from(*stream);
                each(&self.bytes[*at..at + len], world);
                next_event += 1;
                continue;
            };
            let Some(thread) = self.threads.get_mut(&key.1) else { break };
            world.comes_from(key.1);
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
        self.forget(n, until);
    }

    /// Hands over what is older than `until`, everything with `u64::MAX`: the records of each thread, and events, in no order but at the times
    /// that `each` asks for.
    pub fn release_by_thread(&mut self, until: u64, each: &mut impl ByThread) {
        self.active = true;
        self.events.sort_by_key(|e| (e.0, e.1));
        let of_events = self.events.last().map(|e| e.0);
        let last = self.threads.values().filter_map(Thread::end).chain(of_events).max();
        let until = until.min(last.map_or(0, |last| last.saturating_add(1)));
        let mut n = 0;
        loop {
            let step = each.due().map_or(until, |due| due.min(until));
            self.threads.iter_mut().for_each(|(id, thread)| thread.hand_over(id.scope_id(), step, each));
            while let Some((_, _, at, len)) = self.events.get(n).filter(|e| e.0 < step) {
                each.event(&self.bytes[*at..at + len]);
                n += 1;
            }
            if step >= until {
                break;
            }
            each.reached(step);
            if each.due().is_some_and(|due| due <= step) {
                break;
            }
        }
        self.forget(n, until);
    }

    /// Lets go of the first events, and of threads that are over.
    fn forget(&mut self, events: usize, until: u64) {
        self.events.drain(..events);
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

#[cfg(test)]
mod tests {
    use super::*;
    use events::functions::Moment;

    /// What was handed over: times of records by thread, and the times that were reached.
    #[derive(Default)]
    struct Seen {
        dues: Vec<u64>,
        lines: Vec<String>,
    }

    impl ByThread for Seen {
        fn due(&self) -> Option<u64> {
            self.dues.first().copied()
        }
        fn reached(&mut self, time: u64) {
            self.dues.remove(0);
            self.lines.push(format!("reached {time}"));
        }
        fn records(&mut self, records: &Records<'_>) {
            let all: Vec<String> = records.each().map(|(time, word)| format!("{time}:{word}")).collect();
            let gap = if records.after_gap { "gap " } else { "" };
            self.lines.push(format!("{} {gap}{}", records.tid, all.join(" ")));
        }
        fn event(&mut self, event: &[u8]) {
            self.lines.push(format!("event {}", event[0]));
        }
    }

    fn run(ordered: &mut Ordered, tid: u32, records: &[(u32, u32)], dropped: u64) {
        let records: Vec<u8> = records.iter().flat_map(|(t, w)| [t.to_le_bytes(), w.to_le_bytes()].concat()).collect();
        let now = Moment::default();
        let stream = StreamId::new(events::stream::Scope::Thread(tid), 0);
        ordered.run(&Run { stream, pid: 1, begins: false, records: &records, high: 0, from: now, to: now, dropped });
    }

    #[test]
    fn threads_come_together_at_each_wanted_time() {
        let (mut ordered, mut seen) = (Ordered::default(), Seen { dues: vec![25, 40, 100], ..Seen::default() });
        run(&mut ordered, 7, &[(10, 2), (24, 3), (25, 2), (60, 3)], 0);
        run(&mut ordered, 8, &[(5, 4), (41, 5)], 3);
        ordered.event(StreamId::TRACER, &30u64.to_le_bytes());
        ordered.release_by_thread(50, &mut seen);
        let expected = ["7 10:2 24:3", "8 gap 5:4", "reached 25", "7 25:2", "event 30", "reached 40", "8 41:5"];
        assert_eq!(seen.lines, expected);
        // The end of all is where the last record is: what is due later does not come.
        run(&mut ordered, 8, &[(70, 4)], 0);
        seen.lines.clear();
        ordered.release_by_thread(u64::MAX, &mut seen);
        assert_eq!(seen.lines, ["7 60:3", "8 70:4"]);
        assert_eq!(seen.dues, [100]);
    }
}
