//! Samples in, a profile out: events with stacks are counted by their addresses, and each distinct address is resolved once.
//!
//! ```text
//! event ─► key: thread, program, stacks ─► waiting: tally by key ─┬─ later ─► World::frames ─► Stacks
//!                                                                 └─ what was mapped is known some time after it was
//! ```
//!
//! A key is resolved when its first sample is [`SETTLED`] old, because mappings are reported later than samples. Memory is
//! bounded: where there are too many keys, they are resolved at once.

mod missing;

use engine::pipeline::stacks::Ended;
use engine::pipeline::world::World;
use events::hash::Table;
use events::names::{GUESSED, Names, Stack};
use events::stacks::{self, EventStack};
use events::{Arg, Event, Schema, Type};
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::rc::Rc;
use views::profile::blocked::{BLOCKED, WAKER};
use views::profile::{Frame, FrameId, Labels, LabelsId, StackId, Stacks, Tally, Unit};

pub use missing::Missing;

/// How old a sample is before its addresses are resolved, ns: mappings come up to 200 ms late.
const SETTLED: u64 = 500_000_000;
/// The most keys that wait, and threads whose names are kept.
const MOST_WAITING: usize = 1 << 16;
/// The most addresses of stacks that are kept, and the most that are resolved. From there on they are forgotten and learnt again.
const MOST_ADDRESSES: usize = 8 << 20;
/// The most mappings of a process that are looked at.
const MOST_RANGES: usize = 1 << 16;
/// Bytes of the time that an event begins with.
const TIME: usize = size_of::<u64>();
/// The number of no stack.
const NONE: u32 = u32::MAX;
/// The program of addresses of the kernel.
const KERNEL: u32 = u32::MAX;

/// The stacks of a sample.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Raw {
    pid: u32,
    /// Which program the process runs: addresses mean the same as long as it is the same.
    program: u32,
    kernel: u32,
    user: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Key {
    labels: LabelsId,
    raw: Raw,
    /// Who ended it, and the stacks of that one.
    waker: Option<(LabelsId, Raw)>,
    /// A mark that the thread did not run stands between the kernel's frames and its own.
    blocked: bool,
}

#[derive(Clone, Copy)]
struct Waiting {
    tally: Tally,
    first: u64,
    last: u64,
}

/// A stack as it was captured.
struct Known {
    kernel: bool,
    frames: Rc<[u64]>,
    ended: u8,
    guessed: u32,
}

/// The places of the gathered fields in the events of a class.
#[derive(Clone, Copy)]
struct Places {
    /// The captured name.
    comm: Option<usize>,
    /// The ids of stacks, where all of its stacks have ids.
    ids: Option<[Option<usize>; stacks::FIELDS.len()]>,
    /// There is nothing else in them.
    alone: bool,
}

/// What a thread was called last.
struct Thread {
    pid: u32,
    comm: Box<[u8]>,
    labels: LabelsId,
}

/// A profile in the making.
pub struct Gather {
    /// What is shown.
    pub stacks: Stacks,
    /// What is not.
    pub missing: Missing,
    waiting: Vec<(Key, Waiting)>,
    /// Where a key is in `waiting`.
    places: Table<Key, usize>,
    /// Where samples are in `waiting` that have these bytes behind their time.
    same: Table<Box<[u8]>, usize>,
    /// Stacks by the ids of events, and by their addresses.
    by_id: Table<u64, u32>,
    by_frames: HashMap<Rc<[u64]>, u32>,
    known: Vec<Known>,
    addresses: usize,
    /// The program of each process.
    programs: Table<u32, u32>,
    /// What each has mapped: where it begins and ends.
    ranges: HashMap<u32, BTreeMap<u64, u64>>,
    next_program: u32,
    /// The frames of an address of a program: where they begin and end in `frames`.
    resolved: Table<(u32, u64), (u32, u32)>,
    frames: Vec<FrameId>,
    whole: Table<Key, StackId>,
    /// The frames of the kernel's scheduler, where stacks are shown without those that they begin with.
    scheduler: Option<HashSet<FrameId>>,
    /// Stacks of threads that did not run are marked, because others are there too.
    marks_blocked: bool,
    threads: Table<u32, Thread>,
    classes: Table<u16, Places>,
}

impl Gather {
    /// Nothing yet.
    pub fn new(unit: Unit) -> Gather {
        Gather {
            stacks: Stacks::new(unit),
            missing: Missing::default(),
            waiting: Vec::new(),
            places: Table::default(),
            same: Table::default(),
            by_id: Table::default(),
            by_frames: HashMap::new(),
            known: Vec::new(),
            addresses: 0,
            programs: Table::default(),
            ranges: HashMap::new(),
            next_program: 0,
            resolved: Table::default(),
            frames: Vec::new(),
            whole: Table::default(),
            scheduler: None,
            marks_blocked: false,
            threads: Table::default(),
            classes: Table::default(),
        }
    }

    /// Nothing yet, of threads that leave the CPU: all their stacks begin in the scheduler, which is left out.
    pub fn of_switches() -> Gather {
        let stacks = Stacks::of_blocked_time();
        Gather { scheduler: Some(HashSet::new()), stacks, ..Gather::new(Unit::Nanoseconds) }
    }

    /// Whether it has threads that run and threads that do not.
    pub fn has_wall_clock(&self) -> bool {
        self.marks_blocked
    }

    /// Nothing yet, of threads that run and of threads that leave the CPU.
    pub fn of_wall_clock() -> Gather {
        Gather { scheduler: Some(HashSet::new()), marks_blocked: true, ..Gather::new(Unit::Nanoseconds) }
    }

    /// Adds an event of a thread that was blocked: for how long.
    pub fn blocked(&mut self, ev: &Event<'_>, ns: u64, world: &World) {
        let (labels, raw) = (self.labels(ev, world), self.raw(ev, world));
        self.add(labels, raw, None, ns, ev.time());
    }

    /// Learns when the addresses of a process get another meaning: it is a new one, it executes a program, or it maps a file where another
    /// was mapped.
    pub fn observe(&mut self, ev: &Event<'_>) {
        if ev.schema.class != events::Class::Process {
            return;
        }
        match ev.schema.name {
            "exec" => self.is_another(ev.pid()),
            "exit" if ev.pid() == ev.tid() => self.is_another(ev.pid()),
            "fork" => {
                let child = ev.value_of("child") as u32;
                if child != ev.pid() {
                    self.is_another(child);
                }
            }
            "map" => {
                let start = ev.value_of("addr");
                let end = start.saturating_add(ev.value_of("len"));
                let ranges = self.ranges.entry(ev.pid()).or_default();
                if ranges.range(..end).next_back().is_some_and(|(_, before)| *before > start) {
                    self.is_another(ev.pid());
                } else if ranges.len() < MOST_RANGES {
                    ranges.insert(start, end);
                }
            }
            _ => {}
        }
    }

    fn is_another(&mut self, pid: u32) {
        self.same.clear();
        self.programs.remove(&pid);
        self.ranges.remove(&pid);
    }

    fn places_in(&mut self, schema: &'static Schema) -> Places {
        *self.classes.entry(schema.id).or_insert_with(|| Places::of(schema))
    }

    /// The stacks of an event.
    pub fn raw(&mut self, ev: &Event<'_>, world: &World) -> Raw {
        let next = self.next_program;
        let program = *self.programs.entry(ev.pid()).or_insert(next);
        self.next_program += u32::from(program == next);
        let mut raw = Raw { pid: ev.pid(), program, kernel: NONE, user: NONE };
        if let Some(ids) = self.places_in(ev.schema).ids {
            let ids = ids.map(|nth| nth.map_or(0, |nth| ev.arg(nth)));
            let numbers = ids.map(|id| if id == 0 { Some(NONE) } else { self.by_id.get(&id).copied() });
            if let [Some(first), Some(second)] = numbers {
                self.set(&mut raw, first);
                self.set(&mut raw, second);
                return raw;
            }
        }
        for stack in stacks::of(ev, world) {
            let number = self.number(&stack, world);
            self.set(&mut raw, number);
        }
        raw
    }

    fn set(&self, raw: &mut Raw, number: u32) {
        if let Some(known) = self.known.get(number as usize) {
            *(if known.kernel { &mut raw.kernel } else { &mut raw.user }) = number;
        }
    }

    fn number(&mut self, stack: &EventStack<'_>, world: &World) -> u32 {
        if stack.frames.is_empty() {
            // What is lost may still be reported; a stack without frames is known: the kernel's of a program that was interrupted.
            if let Some(id) = stack.id.filter(|id| world.stack(*id).is_some()) {
                self.by_id.insert(id, NONE);
                self.addresses += 1;
            }
            return NONE;
        }
        if let Some(number) = stack.id.and_then(|id| self.by_id.get(&id)) {
            return *number;
        }
        if let Some(number) = self.by_frames.get(&stack.frames[..]).filter(|_| stack.id.is_none()) {
            return *number;
        }
        let frames: Rc<[u64]> = Rc::from(&stack.frames[..]);
        let number = self.known.len() as u32;
        self.addresses += frames.len();
        let (kernel, ended, guessed) = (stack.kernel, stack.ended, stack.guessed);
        self.known.push(Known { kernel, frames: frames.clone(), ended, guessed });
        match stack.id {
            Some(id) => drop(self.by_id.insert(id, number)),
            None => drop(self.by_frames.insert(frames, number)),
        }
        number
    }

    /// Who had a stack.
    pub fn labels(&mut self, ev: &Event<'_>, world: &World) -> LabelsId {
        let (pid, tid) = (ev.pid(), ev.tid());
        let captured = self.places_in(ev.schema).comm.and_then(|i| ev.tail(i, false)).map(|t| t.bytes);
        let comm = captured.or_else(|| world.comm(tid)).unwrap_or_default();
        // A thread that ends has no name any more.
        if let Some(t) = self.threads.get(&tid)
            && (comm.is_empty() || t.pid == pid && *t.comm == *comm)
        {
            return t.labels;
        }
        let shown = String::from_utf8_lossy(comm);
        let shown = match world.origin(tid) {
            Some(origin) => format!("{}:{shown}", origin.label).into(),
            None => shown,
        };
        let labels = self.stacks.labels(Labels { pid, tid, comm: &shown });
        if self.threads.len() >= MOST_WAITING {
            self.threads.clear();
        }
        self.threads.insert(tid, Thread { pid, comm: comm.into(), labels });
        labels
    }

    /// Adds an event: how much it weighs.
    pub fn event(&mut self, ev: &Event<'_>, weight: u64, world: &World) {
        let time = stacks::time(ev);
        let bytes = &ev.bytes[TIME..];
        if let Some(at) = self.same.get(bytes) {
            return self.add_at(*at, weight, time);
        }
        let (labels, raw) = (self.labels(ev, world), self.raw(ev, world));
        let at = self.place(Key { labels, raw, waker: None, blocked: false }, time);
        self.add_at(at, weight, time);
        if self.same.len() < MOST_WAITING && self.is_told_by_its_bytes(ev) {
            self.same.insert(bytes.into(), at);
        }
    }

    /// Whether who it was and which stacks it had does not depend on anything that may change, but for the process's program.
    fn is_told_by_its_bytes(&mut self, ev: &Event<'_>) -> bool {
        let Places { comm: Some(comm), ids: Some(ids), alone: true } = self.places_in(ev.schema) else { return false };
        let is_known = |nth: &usize| ev.arg(*nth) == 0 || self.by_id.contains_key(&ev.arg(*nth));
        ev.tail(comm, false).is_some_and(|t| !t.bytes.is_empty()) && ids.iter().flatten().all(is_known)
    }

    /// Adds a sample: of whom, when, and how much.
    pub fn add(&mut self, labels: LabelsId, raw: Raw, waker: Option<(LabelsId, Raw)>, weight: u64, time: u64) {
        let at = self.place(Key { labels, raw, waker, blocked: self.marks_blocked }, time);
        self.add_at(at, weight, time);
    }

    fn place(&mut self, key: Key, time: u64) -> usize {
        let Gather { waiting, places, .. } = self;
        *places.entry(key).or_insert_with(|| {
            waiting.push((key, Waiting { tally: Tally::default(), first: time, last: time }));
            waiting.len() - 1
        })
    }

    fn add_at(&mut self, at: usize, weight: u64, time: u64) {
        let Some((key, waiting)) = self.waiting.get_mut(at) else { return };
        waiting.tally.join(Tally { samples: 1, weight });
        waiting.first = waiting.first.min(time);
        waiting.last = waiting.last.max(time);
        let raw = key.raw;
        self.note(raw);
    }

    fn note(&mut self, raw: Raw) {
        self.missing.samples += 1;
        match self.known.get(raw.user as usize) {
            None if raw.kernel == NONE => self.missing.without_stack += 1,
            None => {}
            Some(user) => {
                self.missing.ended[Ended::of(user.ended) as usize] += 1;
                self.missing.guessed += u64::from(user.guessed > 0);
            }
        }
    }

    /// Whether samples have to be resolved at once.
    pub fn is_full(&self) -> bool {
        self.waiting.len() >= MOST_WAITING || self.addresses >= MOST_ADDRESSES
    }

    /// Resolves the samples that are old enough at `now`; at [`u64::MAX`], the end, all of them.
    pub fn settle(&mut self, now: u64, world: &World) {
        let limit =
            if self.is_full() { u64::MAX } else { now.saturating_sub(if now == u64::MAX { 0 } else { SETTLED }) };
        let all = std::mem::take(&mut self.waiting).into_iter();
        let (mut ready, waiting): (Vec<_>, Vec<_>) = all.partition(|(_, w)| w.first <= limit);
        self.places = waiting.iter().enumerate().map(|(at, (key, _))| (*key, at)).collect();
        self.waiting = waiting;
        self.same.clear();
        ready.sort_by_key(|(_, w)| (w.first, w.last));
        for (key, w) in ready {
            let stack = match self.whole.get(&key) {
                Some(stack) => *stack,
                None => self.resolve(key, w.first, world),
            };
            self.stacks.add_many(stack, key.labels, Tally::default(), w.first);
            self.stacks.add_many(stack, key.labels, w.tally, w.last);
        }
        if self.waiting.is_empty() && self.addresses >= MOST_ADDRESSES || self.frames.len() >= MOST_ADDRESSES {
            self.forget();
        }
    }

    /// Forgets what can be learnt again.
    fn forget(&mut self) {
        self.whole.clear();
        self.resolved.clear();
        self.frames.clear();
        if self.waiting.is_empty() {
            self.by_id.clear();
            self.by_frames.clear();
            self.known.clear();
            self.addresses = 0;
        }
    }

    fn resolve(&mut self, key: Key, time: u64, world: &World) -> StackId {
        let mut all = Vec::new();
        if let Some((labels, raw)) = key.waker {
            self.frames_of(raw, None, time, world, &mut all);
            let who = self.stacks.labels_of(labels).comm.to_owned();
            all.push(self.stacks.frame(&Frame { function: &format!("[{who}]"), ..Frame::default() }));
            // The waker's innermost frame is next to those that it wakes.
            all.reverse();
            all.push(self.stacks.frame(&Frame { function: WAKER, ..Frame::default() }));
        }
        let mark = Frame { function: BLOCKED, ..Frame::default() };
        let mark = key.blocked.then(|| self.stacks.frame(&mark));
        self.frames_of(key.raw, mark, time, world, &mut all);
        let id = self.stacks.stack(&all);
        self.whole.insert(key, id);
        id
    }

    /// Appends the frames of both stacks, the innermost first, with the mark between them.
    fn frames_of(&mut self, raw: Raw, mark: Option<FrameId>, time: u64, world: &World, out: &mut Vec<FrameId>) {
        let before = out.len();
        for (number, kernel) in [(raw.kernel, true), (raw.user, false)] {
            out.extend(mark.filter(|_| !kernel));
            let Some(known) = self.known.get(number as usize) else { continue };
            let frames = Rc::clone(&known.frames);
            let program = if kernel { KERNEL } else { raw.program };
            for (nth, &address) in frames.iter().enumerate() {
                // Of the kernel, the innermost is where the probe is, and the others are behind calls.
                let address = address.wrapping_sub(u64::from(kernel && nth > 0));
                let (from, to) = match self.resolved.get(&(program, address)) {
                    Some(range) => *range,
                    None => self.address((raw.pid, program), address, time, world),
                };
                let frames = &self.frames[from as usize..to as usize];
                let is_left_out = |f: &FrameId| kernel && self.scheduler.as_ref().is_some_and(|s| s.contains(f));
                if out.len() > before || !frames.iter().all(is_left_out) {
                    out.extend_from_slice(frames);
                }
            }
        }
    }

    fn address(&mut self, (pid, program): (u32, u32), address: u64, time: u64, world: &World) -> (u32, u32) {
        let Gather { stacks, frames, resolved, scheduler, .. } = self;
        let one = [address];
        let stack = Stack { kernel: program == KERNEL, ended: 0, guessed: 0, frames: &one };
        let from = frames.len() as u32;
        world.frames(pid, time, &stack, &mut |f| {
            let id = stacks.frame(&Frame {
                function: f.function,
                module: f.module,
                file: f.file,
                line: f.line,
                inlined: f.inlined,
                guessed: f.guessed || !f.kernel && address & GUESSED != 0,
                kernel: f.kernel,
            });
            frames.push(id);
            if let Some(scheduler) = scheduler
                && f.kernel
                && is_scheduler(f.function)
            {
                scheduler.insert(id);
            }
        });
        let range = (from, frames.len() as u32);
        resolved.insert((program, address), range);
        range
    }

    /// The counters for `--stats`.
    pub fn to_json(&self) -> Value {
        let (total, not_held, m) = (self.stacks.total(), self.stacks.not_held(), &self.missing);
        let cut: serde_json::Map<String, Value> = m.cut().map(|(why, n)| (why.text().to_owned(), json!(n))).collect();
        json!({
            "unit": self.stacks.unit().name(),
            "samples": total.samples,
            "weight": total.weight,
            "not_held": not_held.samples,
            "without_stack": m.without_stack,
            "cut": cut,
            "guessed": m.guessed,
        })
    }
}

/// Whether a function of the kernel does nothing but leave the CPU.
fn is_scheduler(function: &str) -> bool {
    let name = function.trim_start_matches("__");
    name.starts_with("schedule") || name.starts_with("io_schedule")
}

impl Places {
    fn of(schema: &Schema) -> Places {
        // It is followed by stacks, or by nothing.
        let last = schema.args.iter().rposition(|a| a.name == "comm");
        let comm = last.filter(|last| schema.args[last + 1..].iter().all(stacks::is_stack));
        let by_id = |a: &Arg| matches!(a.ty, Type::Int(_));
        let have_ids = schema.args.iter().filter(|a| stacks::is_stack(a)).all(by_id);
        let place = |field| schema.args.iter().position(|a| a.name == field && stacks::is_stack(a));
        let alone = (0..).zip(schema.args).all(|(nth, a)| comm == Some(nth) || stacks::is_stack(a));
        Places { comm, ids: have_ids.then(|| stacks::FIELDS.map(place)), alone }
    }
}

/// Whether events of a class have stacks.
pub fn has_stacks(schema: &Schema) -> bool {
    schema.class != events::Class::Process && schema.args.iter().any(stacks::is_stack)
}

#[cfg(test)]
mod tests {
    use super::*;
    use events::dynamic::{Field, class};
    use events::encode::{self, Fixed};
    use events::generated::P_STACK;
    use events::layout::Layout;
    use events::types::{Fmt, Int};
    use views::profile::{By, folded};

    /// A stack as it is reported before the events that have its id.
    fn report(world: &mut World, id: u64, kernel: bool, (ended, guessed): (u64, u64), frames: &[u64]) {
        let mut bytes = Vec::new();
        let fixed = Fixed { time: 1, cap: 1, ..Fixed::default() };
        let values = [1, id, u64::from(kernel), ended, guessed];
        encode::fixed(&mut bytes, &P_STACK, &Layout::of(&P_STACK), &fixed, &values);
        let frames: Vec<u8> = frames.iter().flat_map(|f| f.to_le_bytes()).collect();
        encode::many_tail(&mut bytes, &frames, 8);
        let ev = Event::parse(&bytes).unwrap();
        world.before(&ev, &ev);
    }

    #[test]
    fn stacks_are_counted_by_their_ids() {
        let mut world = World::default();
        report(&mut world, 7, false, (1, 0), &[0x10, 0x20]);
        report(&mut world, 8, false, (5, 1), &[0x30 | GUESSED]);
        report(&mut world, 9, true, (0, 0), &[1 << 63]);
        let id = Type::Int(Int { size: 8, signed: false, fmt: Fmt::Stack });
        let fields = ["kstack", "ustack"].map(|name| Field { name: name.into(), ty: id });
        let schema = class("profile:hz:97", &fields).unwrap();
        assert!(has_stacks(schema) && !has_stacks(&P_STACK));
        let layout = events::registry::layout(schema.id).unwrap();
        let mut gather = Gather::new(Unit::Events);
        // The last one has an id that was never reported.
        for (time, stacks) in [(10, [9, 7]), (20, [0, 7]), (30, [0, 7]), (40, [0, 8]), (50, [0, 0]), (60, [0, 77])] {
            let mut bytes = Vec::new();
            let fixed = Fixed { time, pid: 1, tid: 1, ..Fixed::default() };
            encode::fixed(&mut bytes, schema, layout, &fixed, &stacks);
            let ev = Event::parse(&bytes).unwrap();
            gather.event(&ev, 1, &world);
        }
        // What was mapped is not known yet.
        gather.settle(100, &world);
        assert!(gather.stacks.is_empty());
        gather.settle(u64::MAX, &world);
        assert_eq!((gather.stacks.total().samples, gather.stacks.span()), (6, Some((10, 60))));
        let m = &gather.missing;
        assert_eq!((m.samples, m.without_stack, m.guessed, m.ended[1], m.ended[5]), (6, 2, 1, 3, 1));
        assert_eq!(
            m.lines()[1],
            "stacks that do not reach the outermost frame: 1 (1: code without unwind information, and rbp is no frame pointer)"
        );
        let mut out = Vec::new();
        folded::write(&gather.stacks, By::Nothing, &mut out);
        let lines = "[unknown] 2\n[unknown];[unknown] 2\n[unknown];[unknown];[kernel]_[k] 1\n[unknown]_[g] 1\n";
        assert_eq!(String::from_utf8_lossy(&out), lines);
    }

    #[test]
    fn a_full_queue_is_resolved_at_once() {
        let world = World::default();
        let mut gather = Gather::new(Unit::Events);
        let labels = gather.stacks.labels(Labels::default());
        for n in 0..MOST_WAITING as u32 + 10 {
            let raw = Raw { pid: n, program: n, kernel: NONE, user: NONE };
            gather.add(labels, raw, None, 1, 1);
            if gather.is_full() {
                gather.settle(1, &world);
            }
        }
        assert_eq!((gather.waiting.len(), gather.stacks.total().samples), (10, MOST_WAITING as u64));
    }
}
