//! Records of allocations (`abi::heap`): out of the runs of threads, into one order of time for each process, to a consumer or as events.
//!
//! A thread's records are mostly in order; a time from before a call of the kernel may be late. So what is not older than the round that has
//! read it waits ([`Heap::deliver`]), and is sorted with what came later, by the time stamp counter: what that is in ns depends on when one
//! looks. Entries have ns only when they are delivered.

use super::entry_filter::EntryFilter;
use super::identity::Known;
use super::tsc_clock::TscClock;
use abi::heap::Op;
use engine::heap::classes::Probe;
use engine::heap::{Entry, Kind, Shared, What};
use engine::pipeline::backend::Deliver;
use engine::request::expression::Expression;
use engine::request::heap_enabling::{HeapEnabling, Wanted};
use engine::stats::Counts;
use events::StreamId;
use events::encode::{self, Fixed};
use events::functions::{Clock, RECORD, Run, VALUES, each as each_record, time, word};
use events::generated::P_STACK;
use events::stream::Scope;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// The most stacks that are remembered as reported. More are reported again.
const MOST_TOLD: usize = 1 << 22;
/// How much earlier than what refers to them stacks are reported, ns: what a value of the counter is in ns is known better later.
const EARLIER: u64 = 1_000_000;
/// The enabling of the streams of these events.
const ENABLING: u16 = 2;

/// What a thread's records refer to: size and stack of its last Malloc.
type Last = (u64, u64);

/// The allocations of a process.
pub struct Allocations {
    /// Its number in the session.
    pub process: u32,
    pid: u32,
    last: HashMap<u32, Last>,
    /// What waits, not in order: with the time stamp counter as its time.
    waiting: Vec<Entry>,
    /// How many of them are in order.
    in_order: usize,
    /// Whose child it is, and the time stamp counter when it was one: before everything else.
    child: Option<(What, u64)>,
    /// The time of what was delivered last, ns.
    delivered: u64,
    /// Stacks since the last time: time stamp counter, hash, why it ends, and where its frames are.
    stacks: Vec<(u64, u64, u8, usize, usize)>,
    frames: Vec<u64>,
    /// Entries that were lost since the last time.
    lost: u64,
}

/// A word of a record's rest.
#[inline]
fn number(record: &[u8], n: usize) -> u64 {
    record.get(16 + 8 * n..).and_then(<[u8]>::first_chunk).map_or(0, |b| u64::from_le_bytes(*b))
}

/// The address of a record, which has one.
#[inline]
fn address(record: &[u8]) -> u64 {
    record.get(8..).and_then(<[u8]>::first_chunk).map_or(0, |b| u64::from_le_bytes(*b) >> 16)
}

impl Allocations {
    /// Of a process with this number.
    pub fn new(process: u32, pid: u32) -> Allocations {
        Allocations {
            process,
            pid,
            last: HashMap::new(),
            waiting: Vec::new(),
            in_order: 0,
            child: None,
            delivered: 0,
            stacks: Vec::new(),
            frames: Vec::new(),
            lost: 0,
        }
    }

    /// Whether a thread has allocated anything.
    pub fn has(&self, tid: u32) -> bool {
        self.last.contains_key(&tid)
    }

    /// Takes the records of allocations out of a run, and returns how many there were; the others are left in `others`, where there are
    /// any. `parent`: the number of the process that a child names.
    pub fn take(&mut self, run: &Run<'_>, others: &mut Vec<u8>, parent: impl Fn(u32) -> u32) -> usize {
        others.clear();
        self.lost = self.lost.saturating_add(run.dropped);
        let tid = run.tid();
        let mut last = self.last.get(&tid).copied().unwrap_or_default();
        let (mut high, mut told, mut taken) = (run.high, u32::MAX, 0);
        for record in each_record(run.records) {
            let Some(head) = record.first_chunk::<RECORD>() else { break };
            let plain = word(head) & !VALUES;
            if plain == events::functions::HIGH {
                high = time(head);
                continue;
            }
            let Some(op) = Op::of(plain) else {
                if std::mem::replace(&mut told, high) != high {
                    others.extend([high, events::functions::HIGH].map(u32::to_le_bytes).as_flattened());
                }
                others.extend_from_slice(record);
                continue;
            };
            taken += 1;
            let now = u64::from(high) << 32 | u64::from(time(head));
            let address = address(record);
            let mut put = |time, what| self.waiting.push(Entry { time, tid, what });
            let alloc = |kind, address, size, stack| What::Alloc { kind, address, size, stack };
            match op {
                Op::Malloc => {
                    last = (number(record, 0), number(record, 1));
                    put(now, alloc(Kind::Malloc, address, last.0, last.1));
                }
                Op::Again => put(now, alloc(Kind::Malloc, address, last.0, last.1)),
                Op::Free => put(now, What::Free { address }),
                Op::Realloc => {
                    let before = now.saturating_sub(number(record, 3));
                    put(before, What::Free { address });
                    put(now, alloc(Kind::Malloc, number(record, 0), number(record, 1), number(record, 2)));
                }
                Op::Mmap => put(now, alloc(Kind::Mmap, address, number(record, 0), number(record, 1))),
                Op::Munmap => put(now, What::Unmap { address, len: number(record, 0) }),
                Op::Mremap => {
                    let before = now.saturating_sub(number(record, 4));
                    put(before, What::Unmap { address, len: number(record, 0) });
                    put(now, alloc(Kind::Mmap, number(record, 1), number(record, 2), number(record, 3)));
                }
                Op::Stack => {
                    let from = self.frames.len();
                    let frames = record.get(24..).unwrap_or_default().as_chunks::<8>().0;
                    self.frames.extend(frames.iter().map(|b| u64::from_le_bytes(*b)));
                    self.stacks.push((now, number(record, 0), address as u8, from, self.frames.len()));
                }
                Op::Fork => put(now, What::Fork { number: address }),
                Op::Child => {
                    // The time of what it was about to record is earlier.
                    let parent = parent(number(record, 0) as u32);
                    self.child = Some((What::Child { parent, number: address }, now));
                }
            }
        }
        self.last.insert(tid, last);
        taken
    }
}

impl Allocations {
    /// Whether nothing waits. That it is a child is delivered with what it does, and does not matter if that is nothing.
    fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.stacks.is_empty()
    }

    /// Puts what waits in order. That it is a child comes first, once anything is older than `until`: what is not may still get
    /// something before it.
    fn sort(&mut self, until: u64) {
        // What waited before is in order.
        let new = self.in_order.saturating_sub(1).min(self.waiting.len());
        if !self.waiting[new..].is_sorted_by_key(|e| e.time) {
            self.waiting.sort_by_key(|e| e.time);
        }
        self.in_order = self.waiting.len();
        if let Some(first) = self.waiting.first().copied()
            && (first.time < until || until == u64::MAX)
            && let Some((what, _)) = self.child.take()
        {
            self.waiting.insert(0, Entry { what, ..first });
        }
    }

    /// When the first of what waits was, and of the stacks: a value of the time stamp counter.
    fn first(&self) -> Option<u64> {
        let stack = self.stacks.iter().map(|s| s.0).min();
        self.waiting.first().map(|e| e.time).into_iter().chain(stack).min()
    }

    /// Gives the first `n` entries, and all stacks, their times in ns.
    fn set_times(&mut self, n: usize, moments: &TscClock) {
        let entries = &mut self.waiting[..n];
        let (Some(first), Some(last)) = (entries.first(), entries.last()) else {
            return self.stacks.iter_mut().for_each(|s| s.0 = moments.at(s.0).monotonic);
        };
        let clock = Clock::between(moments.at(first.time), moments.at(last.time));
        // Many have the same time.
        let (mut tsc, mut ns) = (u64::MAX, self.delivered);
        for entry in entries {
            if entry.time != tsc {
                // The clocks of two batches are not quite the same.
                (tsc, ns) = (entry.time, clock.ns(entry.time).max(ns));
            }
            entry.time = ns;
        }
        self.delivered = ns;
        self.stacks.iter_mut().for_each(|s| s.0 = clock.ns(s.0));
    }
}

/// Those of a process that has ended.
struct Ended {
    allocations: Allocations,
    executes: bool,
    /// By then: a value of the time stamp counter.
    at: u64,
}

/// The allocations of a session.
pub struct Heap {
    /// Takes everything in the place of events.
    consumer: Option<Shared>,
    /// Chooses what is an event.
    pub chosen: EntryFilter,
    /// Of processes that have ended, as long as something waits.
    ended: Vec<Ended>,
    /// The last process with a process id, as processes number themselves, by number in the session and as trapline numbers it.
    parents: HashMap<u32, (u32, u32)>,
    /// Process ids by numbers in the session.
    pids: HashMap<u32, u32>,
    next: u32,
    told: HashSet<u64>,
    /// Entries that the consumer has got, by probe.
    consumed: [u64; 4],
    /// The time of the stacks of this round, ns: no event that refers to them is older.
    stacks_at: u64,
}

impl Heap {
    /// Of a session that wants this, with these enablings by number.
    pub fn new(
        wanted: Wanted,
        probes: Vec<(u32, HeapEnabling)>,
        whole: Option<Arc<Expression>>,
        running: bool,
    ) -> Heap {
        Heap {
            consumer: wanted.consumer,
            chosen: EntryFilter::new(probes, wanted.forks, whole, running),
            ended: Vec::new(),
            parents: HashMap::new(),
            pids: HashMap::new(),
            next: 0,
            told: HashSet::new(),
            consumed: [0; 4],
            stacks_at: 0,
        }
    }

    /// A process begins.
    pub fn begin(&mut self, pid: i32, own_pid: u32, known: Known) -> Allocations {
        let process = self.next;
        self.next += 1;
        self.parents.insert(own_pid, (process, pid as u32));
        self.pids.insert(process, pid as u32);
        if let Some(consumer) = &self.consumer {
            consumer.lock().began(process, pid as u32, known.comm.as_deref().unwrap_or_default());
        }
        self.chosen.begin(pid as u32, known);
        Allocations::new(process, pid as u32)
    }

    /// Whether a consumer gets everything in the place of events.
    pub fn has_consumer(&self) -> bool {
        self.consumer.is_some()
    }

    /// What was counted of each enabling, by number. With a consumer every probe is enabled.
    pub fn counts(&self) -> Vec<(u32, Counts)> {
        if self.consumer.is_none() {
            return self.chosen.counts();
        }
        let counts = self.consumed.iter().map(|n| Counts { seen: *n, recorded: *n, ..Counts::default() });
        self.chosen.ids().zip(counts).collect()
    }

    /// The number of the process that numbers itself so.
    pub fn parent(&self, own_pid: u32) -> u32 {
        self.parents.get(&own_pid).map_or(u32::MAX, |p| p.0)
    }

    /// A process has ended by now, a value of the time stamp counter, or executes another program.
    pub fn end(&mut self, allocations: Allocations, executes: bool, now: u64) {
        self.ended.push(Ended { allocations, executes, at: now });
    }

    /// Delivers what is older than `until`, a value of the time stamp counter.
    pub fn deliver<'p>(
        &mut self,
        until: u64,
        moments: &TscClock,
        all: impl Iterator<Item = &'p mut Allocations>,
        each: &mut dyn Deliver,
    ) -> usize {
        let mut ended = std::mem::take(&mut self.ended);
        let mut delivered = 0;
        let mut both: Vec<&mut Allocations> = Vec::new();
        all.for_each(|a| both.push(a));
        ended.iter_mut().for_each(|e| both.push(&mut e.allocations));
        // Parents come before their children; what a child begins with is known when its parent's fork was delivered.
        both.sort_by_key(|a| a.process);
        both.retain(|a| a.child.is_none_or(|(_, at)| at < until));
        both.iter_mut().for_each(|a| a.sort(until));
        // A stack that one process has reported may be another one's too.
        let first = both.iter().filter_map(|a| a.first()).min().map(|tsc| moments.at(tsc).monotonic);
        self.stacks_at = self.stacks_at.max(first.map_or(0, |ns| ns.saturating_sub(EARLIER)));
        for a in both {
            delivered += self.deliver_of(a, until, moments, each);
        }
        let is_over = |e: &Ended| e.allocations.is_empty() && e.at < until;
        let (over, still): (Vec<Ended>, Vec<Ended>) = ended.into_iter().partition(is_over);
        self.ended = still;
        // After exec(2) another program runs in the process.
        over.iter().filter(|e| !e.executes).for_each(|e| self.chosen.end(e.allocations.pid));
        if let Some(consumer) = &self.consumer {
            let mut consumer = consumer.lock();
            over.iter().for_each(|e| consumer.ended(e.allocations.process, e.executes));
            consumer.settled(moments.at(until).monotonic);
        }
        delivered
    }

    fn deliver_of(&mut self, a: &mut Allocations, until: u64, moments: &TscClock, each: &mut dyn Deliver) -> usize {
        let n = if until == u64::MAX { a.waiting.len() } else { a.waiting.partition_point(|e| e.time < until) };
        let lost = std::mem::take(&mut a.lost);
        if n == 0 && a.stacks.is_empty() && lost == 0 {
            return 0;
        }
        let (read, n) = (n, self.chosen.without_stops(&mut a.waiting, n));
        a.set_times(n, moments);
        if let Some(consumer) = &self.consumer {
            let mut consumer = consumer.lock();
            for (time, hash, ended, from, to) in a.stacks.drain(..) {
                consumer.stack(a.process, time, hash, ended, a.frames.get(from..to).unwrap_or_default());
            }
            for entry in &a.waiting[..n] {
                if let Some(count) = self.consumed.get_mut(Probe::of(&entry.what) as usize) {
                    *count += 1;
                }
            }
            consumer.entries(a.process, &a.waiting[..n]);
            if lost > 0 {
                consumer.lost(a.process, lost);
            }
        } else {
            self.stacks(a, each);
            for entry in &a.waiting[..n] {
                self.event(a.pid, entry, each);
            }
        }
        a.frames.clear();
        a.waiting.drain(..n);
        a.in_order = a.waiting.len();
        read
    }

    /// Reports stacks that were not reported yet.
    fn stacks(&mut self, a: &mut Allocations, each: &mut dyn Deliver) {
        for (_, hash, ended, from, to) in a.stacks.drain(..) {
            if self.told.len() >= MOST_TOLD {
                self.told.clear();
            }
            if !self.told.insert(hash) {
                continue;
            }
            let frames = a.frames.get(from..to).unwrap_or_default();
            let guessed = frames.iter().filter(|f| **f & events::names::GUESSED != 0).count() as u64;
            each.event(
                StreamId::OWN_STACKS,
                &stack_event(self.stacks_at, a.pid, [hash, ended.into(), guessed], frames),
            );
        }
    }

    fn event(&mut self, pid: u32, entry: &Entry, each: &mut dyn Deliver) {
        let parent = match entry.what {
            What::Child { parent, .. } => self.pids.get(&parent).copied().unwrap_or(0),
            _ => 0,
        };
        if let Some(event) = self.chosen.event(pid, entry, parent) {
            each.event(StreamId::new(Scope::Process(pid), ENABLING), event);
        }
    }
}

/// A stack as an event.
fn stack_event(time: u64, pid: u32, [id, ended, guessed]: [u64; 3], frames: &[u64]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let Some(layout) = events::registry::layout(P_STACK.id) else { return bytes };
    let fixed = Fixed { time, cap: 1, tid: pid, pid, ..Fixed::default() };
    encode::fixed(&mut bytes, &P_STACK, layout, &fixed, &[1, id, 0, ended, guessed]);
    let frames: Vec<u8> = frames.iter().flat_map(|f| f.to_le_bytes()).collect();
    encode::many_tail(&mut bytes, &frames, 8);
    bytes
}

#[cfg(test)]
mod tests;
