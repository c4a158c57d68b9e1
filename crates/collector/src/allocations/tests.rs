//! Records as an agent writes them, and what a consumer gets of them.

use super::*;
use engine::heap::Consumer;
use events::Event;
use events::functions::Moment;
use std::sync::Mutex;
use testkit::Random;

/// What a consumer has got.
#[derive(Debug, PartialEq)]
enum Seen {
    Stack(u32, u64, Vec<u64>),
    /// Process, time, thread.
    Entry(u32, u64, u32, What),
    Ended(u32, bool),
    Lost(u32, u64),
}

#[derive(Default)]
struct Log(Vec<Seen>);

impl Consumer for Log {
    fn began(&mut self, _: u32, _: u32, _: &[u8]) {}
    fn stack(&mut self, process: u32, _: u64, hash: u64, _: u8, frames: &[u64]) {
        self.0.push(Seen::Stack(process, hash, frames.to_vec()));
    }
    fn entries(&mut self, process: u32, entries: &[Entry]) {
        self.0.extend(entries.iter().map(|e| Seen::Entry(process, e.time, e.tid, e.what)));
    }
    fn ended(&mut self, process: u32, executes: bool) {
        self.0.push(Seen::Ended(process, executes));
    }
    fn lost(&mut self, process: u32, entries: u64) {
        self.0.push(Seen::Lost(process, entries));
    }
}

/// Nobody wants events where there is a consumer.
struct NoEvents;

impl Deliver for NoEvents {
    fn event(&mut self, stream: StreamId, _: &[u8]) {
        panic!("an event of {stream:?}");
    }
    fn functions(&mut self, _: &Run<'_>) {
        panic!("functions");
    }
    fn settled(&mut self, _: u64) {}
}

/// A session, with times from a moment on at which the lower half of the counter is 0. It is later than all moments that the session knows:
/// from there on a tick is a nanosecond.
struct Session {
    heap: Heap,
    moments: TscClock,
    high: u32,
    /// The ns of that moment.
    start: u64,
    log: Arc<Mutex<Log>>,
}

impl Session {
    fn new() -> Session {
        let log = Arc::new(Mutex::new(Log::default()));
        let wanted = Wanted { consumer: Some(Shared::new(&log)), ..Wanted::default() };
        let mut moments = TscClock::new();
        let Moment { tsc, monotonic } = moments.now();
        let high = (tsc >> 32) + 1;
        let start = monotonic + ((high << 32) - tsc);
        Session {
            heap: Heap::new(wanted, (0..).zip(HeapEnabling::all()).collect(), None, true),
            moments,
            high: high as u32,
            start,
            log,
        }
    }

    /// A process that numbers itself so.
    fn begin(&mut self, pid: u32) -> Allocations {
        self.heap.begin(pid as i32, pid, Known::default())
    }

    fn tsc(&self, time: u32) -> u64 {
        u64::from(self.high) << 32 | u64::from(time)
    }

    fn run<'r>(&self, tid: u32, records: &'r [u8]) -> Run<'r> {
        let stream = StreamId::new(Scope::Thread(tid), ENABLING);
        let (from, to) = (Moment::default(), Moment::default());
        Run { stream, pid: 1, begins: false, records, high: self.high, from, to, dropped: 0 }
    }

    /// A thread's records come.
    fn take(&self, a: &mut Allocations, tid: u32, records: &[Vec<u8>]) {
        let (bytes, mut others) = (records.concat(), Vec::new());
        let taken = a.take(&self.run(tid, &bytes), &mut others, |own_pid| self.heap.parent(own_pid));
        assert_eq!((taken, others.len()), (records.len(), 0));
    }

    /// What the consumer gets when what is older than `until` is delivered; times are those of the records.
    fn deliver<const N: usize>(&mut self, until: u32, all: [&mut Allocations; N]) -> Vec<Seen> {
        let until = self.tsc(until);
        self.heap.deliver(until, &self.moments, all.into_iter(), &mut NoEvents);
        let mut seen = std::mem::take(&mut self.log.lock().unwrap().0);
        for one in &mut seen {
            if let Seen::Entry(_, time, ..) = one {
                *time -= self.start;
            }
        }
        seen
    }
}

fn record(time: u32, op: Op, address: u64, rest: &[u64]) -> Vec<u8> {
    let len = 6 + 8 * rest.len() as u64;
    let head = [u64::from(time) | u64::from(op.word()) << 32, len | address << 16];
    head.iter().chain(rest).flat_map(|n| n.to_le_bytes()).collect()
}

fn function(time: u32, word: u32) -> Vec<u8> {
    [time, word].map(u32::to_le_bytes).concat()
}

fn malloc(address: u64, size: u64, stack: u64) -> What {
    What::Alloc { kind: Kind::Malloc, address, size, stack }
}

fn mmap(address: u64, size: u64, stack: u64) -> What {
    What::Alloc { kind: Kind::Mmap, address, size, stack }
}

#[test]
fn the_old_block_of_a_realloc_is_free_before_the_new_one_is_there() {
    let mut s = Session::new();
    let mut a = s.begin(1);
    // Another thread gets the address in between.
    s.take(&mut a, 6, &[record(80, Op::Malloc, 0x1000, &[8, 2])]);
    let moved = record(100, Op::Realloc, 0x1000, &[0x2000, 64, 3, 40]);
    let grown = record(120, Op::Realloc, 0x2000, &[0x2000, 96, 4, 0]);
    s.take(&mut a, 5, &[record(10, Op::Malloc, 0x1000, &[32, 1]), moved, grown]);
    let remapped = record(200, Op::Mremap, 0x9000, &[4096, 0xa000, 8192, 7, 30]);
    s.take(&mut a, 6, &[record(150, Op::Mmap, 0x9000, &[4096, 6]), remapped, record(210, Op::Munmap, 0xa000, &[4096])]);
    let free = |address| What::Free { address };
    let want = [
        (10, 5, malloc(0x1000, 32, 1)),
        (60, 5, free(0x1000)),
        (80, 6, malloc(0x1000, 8, 2)),
        (100, 5, malloc(0x2000, 64, 3)),
        (120, 5, free(0x2000)),
        (120, 5, malloc(0x2000, 96, 4)),
        (150, 6, mmap(0x9000, 4096, 6)),
        (170, 6, What::Unmap { address: 0x9000, len: 4096 }),
        (200, 6, mmap(0xa000, 8192, 7)),
        (210, 6, What::Unmap { address: 0xa000, len: 4096 }),
    ];
    let want = want.map(|(time, tid, what)| Seen::Entry(0, time, tid, what));
    // The free may be delivered, and the allocation not yet.
    assert_eq!(s.deliver(100, [&mut a]), want[..3]);
    assert_eq!(s.deliver(1000, [&mut a]), want[3..]);
    assert_eq!(s.deliver(2000, [&mut a]), []);
    // Each entry counts.
    assert_eq!(s.heap.counts().iter().map(|c| c.1.seen).collect::<Vec<_>>(), [4, 2, 2, 2]);
}

#[test]
fn the_same_again_is_that_of_the_thread() {
    let mut s = Session::new();
    let mut a = s.begin(1);
    assert!(!a.has(5));
    let stack = record(9, Op::Stack, 2, &[11, 0x40, 0x50]);
    s.take(&mut a, 5, &[stack, record(10, Op::Malloc, 16, &[100, 11]), record(20, Op::Again, 32, &[])]);
    s.take(&mut a, 6, &[record(15, Op::Malloc, 48, &[200, 12]), record(30, Op::Again, 64, &[])]);
    // A realloc's size is no malloc's; and the next run goes on.
    s.take(&mut a, 5, &[record(35, Op::Realloc, 32, &[80, 300, 13, 1]), record(40, Op::Again, 96, &[])]);
    assert!(a.has(5) && a.has(6) && !a.has(7));
    let mut seen = s.deliver(1000, [&mut a]);
    assert_eq!(seen.remove(0), Seen::Stack(0, 11, vec![0x40, 0x50]));
    let blocks = [(10, 5, 16, 100, 11), (15, 6, 48, 200, 12), (20, 5, 32, 100, 11), (30, 6, 64, 200, 12)];
    let mut want: Vec<Seen> =
        blocks.map(|(time, tid, at, size, stack)| Seen::Entry(0, time, tid, malloc(at, size, stack))).into();
    want.push(Seen::Entry(0, 34, 5, What::Free { address: 32 }));
    want.push(Seen::Entry(0, 35, 5, malloc(80, 300, 13)));
    want.push(Seen::Entry(0, 40, 5, malloc(96, 100, 11)));
    assert_eq!(seen, want);
}

#[test]
fn a_child_begins_after_the_fork_and_before_all_it_does() {
    let mut s = Session::new();
    let (mut parent, mut child) = (s.begin(100), s.begin(200));
    s.take(&mut parent, 100, &[record(10, Op::Malloc, 16, &[1, 1]), record(40, Op::Fork, 3, &[])]);
    // What it was about to record when it saw that it is a child is earlier than that.
    let begins = record(50, Op::Child, 3, &[100]);
    s.take(&mut child, 200, &[begins, record(48, Op::Malloc, 32, &[2, 2]), record(60, Op::Free, 16, &[])]);
    let fork = Seen::Entry(0, 40, 100, What::Fork { number: 3 });
    let first = Seen::Entry(0, 10, 100, malloc(16, 1, 1));
    assert_eq!(s.deliver(40, [&mut child, &mut parent]), [first]);
    assert_eq!(s.deliver(49, [&mut child, &mut parent]), [fork]);
    assert_eq!(s.deliver(50, [&mut child, &mut parent]), []);
    let begun = |time| Seen::Entry(1, time, 200, What::Child { parent: 0, number: 3 });
    assert_eq!(s.deliver(51, [&mut child, &mut parent]), [begun(48), Seen::Entry(1, 48, 200, malloc(32, 2, 2))]);
    assert_eq!(s.deliver(99, [&mut child, &mut parent]), [Seen::Entry(1, 60, 200, What::Free { address: 16 })]);

    // All in one round, and the parent has ended.
    let mut grandchild = s.begin(300);
    s.take(&mut grandchild, 300, &[record(130, Op::Child, 1, &[200]), record(125, Op::Free, 32, &[])]);
    s.take(&mut child, 200, &[record(120, Op::Fork, 1, &[])]);
    let now = s.tsc(140);
    s.heap.end(child, false, now);
    let want = [
        Seen::Entry(1, 120, 200, What::Fork { number: 1 }),
        Seen::Entry(2, 125, 300, What::Child { parent: 1, number: 1 }),
        Seen::Entry(2, 125, 300, What::Free { address: 32 }),
        Seen::Ended(1, false),
    ];
    assert_eq!(s.deliver(200, [&mut grandchild, &mut parent]), want);
    // Its first record is lost; of two threads, the later record comes first.
    let mut threads = s.begin(350);
    s.take(&mut threads, 351, &[record(202, Op::Child, 2, &[100]), record(260, Op::Free, 64, &[])]);
    assert_eq!(s.deliver(250, [&mut threads]), []);
    s.take(&mut threads, 350, &[record(255, Op::Free, 32, &[])]);
    let want = [
        Seen::Entry(3, 255, 350, What::Child { parent: 0, number: 2 }),
        Seen::Entry(3, 255, 350, What::Free { address: 32 }),
        Seen::Entry(3, 260, 351, What::Free { address: 64 }),
    ];
    assert_eq!(s.deliver(300, [&mut threads]), want);

    // A parent that nobody knows.
    let mut stray = s.begin(400);
    s.take(&mut stray, 400, &[record(310, Op::Child, 1, &[999]), record(305, Op::Free, 32, &[])]);
    let seen = s.deliver(400, [&mut stray]);
    assert_eq!(seen[0], Seen::Entry(4, 305, 400, What::Child { parent: u32::MAX, number: 1 }));
}

#[test]
fn a_process_has_ended_when_all_it_did_is_delivered() {
    let mut s = Session::new();
    let (mut waits, nothing, mut lone) = (s.begin(1), s.begin(2), s.begin(3));
    s.take(&mut waits, 1, &[record(90, Op::Free, 16, &[]), record(10, Op::Free, 32, &[])]);
    // A child whose first allocation is missing: nothing is to come of it.
    s.take(&mut lone, 3, &[record(20, Op::Child, 1, &[1])]);
    let bytes = record(30, Op::Free, 48, &[]);
    let cut = Run { dropped: 7, ..s.run(1, &bytes[..8]) };
    assert_eq!(waits.take(&cut, &mut Vec::new(), |_| 0), 0);
    for (a, executes, at) in [(waits, false, 70), (nothing, true, 85), (lone, false, 30)] {
        let at = s.tsc(at);
        s.heap.end(a, executes, at);
    }
    let free = |time, address| Seen::Entry(0, time, 1, What::Free { address });
    assert_eq!(s.deliver(80, []), [free(10, 32), Seen::Lost(0, 7), Seen::Ended(2, false)]);
    assert_eq!(s.deliver(85, []), []);
    assert_eq!(s.deliver(90, []), [Seen::Ended(1, true)]);
    assert_eq!(s.deliver(91, []), [free(90, 16), Seen::Ended(0, false)]);
    assert!(s.heap.ended.is_empty());
}

#[test]
fn records_of_functions_are_left_as_they_were() {
    let mut s = Session::new();
    let mut a = s.begin(1);
    let (entry, exit) = (5 << 1, 5 << 1 | 1);
    let values = [&function(4, VALUES | entry)[..], &6u16.to_le_bytes(), b"values"].concat();
    let marker = |high| function(high, events::functions::HIGH);
    let all = [
        function(1, entry),
        record(2, Op::Malloc, 16, &[1, 1]),
        function(3, exit),
        values.clone(),
        marker(s.high + 1),
        record(0, Op::Free, 16, &[]),
        marker(s.high + 2),
        function(7, entry),
        record(8, Op::Free, 32, &[]),
    ]
    .concat();
    let mut others = vec![1];
    assert_eq!(a.take(&s.run(1, &all), &mut others, |_| 0), 3);
    let want = [marker(s.high), function(1, entry), function(3, exit), values, marker(s.high + 2), function(7, entry)];
    assert_eq!(others, want.concat());
    let run = s.run(1, &others);
    let parts: Vec<_> = run.parts().map(|(high, part)| (high - s.high, part.len())).collect();
    assert_eq!(parts, [(0, 32), (2, 8)]);
    let times: Vec<u64> = a.waiting.iter().map(|e| e.time).collect();
    assert_eq!(times, [s.tsc(2), s.tsc(0) + (1 << 32), s.tsc(8) + (2 << 32)]);
    // Only markers, or nothing.
    for none in [&marker(3)[..], &[]] {
        assert_eq!((a.take(&s.run(1, none), &mut others, |_| 0), others.len()), (0, 0));
    }
}

/// Events, with the streams they are of.
#[derive(Default)]
struct Events(Vec<(StreamId, Vec<u8>)>);

impl Deliver for Events {
    fn event(&mut self, stream: StreamId, event: &[u8]) {
        self.0.push((stream, event.to_vec()));
    }
    fn functions(&mut self, _: &Run<'_>) {
        panic!("functions");
    }
    fn settled(&mut self, _: u64) {}
}

#[test]
fn a_stack_is_an_event_once_and_before_all_that_have_it() {
    let mut s = Session::new();
    let probes =
        [Probe::Malloc, Probe::Free].map(|probe| HeapEnabling { probe, stack: true, filter: None, text: None });
    s.heap = Heap::new(Wanted::events(&probes, false), (0..).zip(probes).collect(), None, true);
    let (mut a, mut b) = (s.begin(7), s.begin(8));
    let stack = |time| record(time, Op::Stack, 2, &[11, 0x40, 0x50 | events::names::GUESSED]);
    let what = [record(20, Op::Mmap, 4096, &[1, 11]), record(30, Op::Free, 16, &[]), record(31, Op::Fork, 1, &[])];
    s.take(&mut a, 7, &[&[stack(9), record(10, Op::Malloc, 16, &[100, 11])][..], &what].concat());
    s.take(&mut b, 8, &[record(40, Op::Child, 1, &[7]), stack(35), record(35, Op::Malloc, 32, &[200, 11])]);
    let mut got = Events::default();
    s.heap.deliver(s.tsc(100), &s.moments, [&mut b, &mut a].into_iter(), &mut got);
    let parsed: Vec<_> = got.0.iter().map(|(stream, bytes)| (*stream, Event::parse(bytes).unwrap())).collect();
    let names: Vec<_> = parsed.iter().map(|(_, ev)| (ev.schema.probe().into_owned(), ev.pid())).collect();
    let want = [("heap:malloc", 7), ("heap:free", 7), ("heap:fork", 7), ("heap:child", 8), ("heap:malloc", 8)];
    assert_eq!(names[1..], want.map(|(name, pid)| (name.to_string(), pid)));
    let (stream, told) = &parsed[0];
    assert_eq!((*stream, told.schema.id), (StreamId::OWN_STACKS, P_STACK.id));
    assert!(parsed[1..].iter().all(|(_, ev)| told.time() <= ev.time()));
    assert_eq!(told.time(), s.moments.at(s.tsc(9)).monotonic - EARLIER);
    assert_eq!(["id", "ended", "guessed"].map(|field| told.value_of(field)), [11, 2, 1]);
    assert_eq!(parsed[1].1.value_of("ustack"), 11);
    assert_eq!(parsed[1].0, StreamId::new(Scope::Process(7), ENABLING));
    assert_eq!(parsed[4].1.value_of("parent"), 7);
}

/// Bytes that are records now and then.
fn hostile(r: &mut Random) -> Vec<u8> {
    const OPS: [Op; 10] = {
        use Op::*;
        [Malloc, Again, Free, Realloc, Mmap, Munmap, Mremap, Stack, Fork, Child]
    };
    let mut bytes = Vec::new();
    for _ in 0..r.below(12) {
        let rest: Vec<u64> = (0..r.below(7)).map(|_| if r.below(2) == 0 { r.below(4) } else { r.next() }).collect();
        match r.below(16) {
            0 => bytes.extend(r.next().to_le_bytes()),
            1 => bytes.extend(function(if r.below(2) == 0 { u32::MAX } else { r.next() as u32 }, 1)),
            2 => bytes.extend(function(r.next() as u32, r.below(20) as u32)),
            _ => bytes.extend(record(r.next() as u32, r.of(&OPS), r.next() >> r.below(64), &rest)),
        }
    }
    if r.below(4) == 0 {
        bytes.truncate(r.index(bytes.len()));
    }
    if r.below(4) == 0 && !bytes.is_empty() {
        let at = r.index(bytes.len());
        bytes[at] = r.next() as u8;
    }
    bytes
}

#[test]
fn hostile_records_are_entries_in_order_of_time_at_worst() {
    let (mut r, mut s, mut others, mut entries) = (Random::new(1), Session::new(), Vec::new(), 0);
    let mut all: Vec<Allocations> = (1..4).map(|pid| s.begin(pid)).collect();
    let mut times: HashMap<u32, u64> = HashMap::new();
    for round in 0..testkit::rounds(10_000) {
        let bytes = hostile(&mut r);
        let high = r.of(&[0, s.high, u32::MAX]);
        let at = r.index(all.len());
        let run = Run { high, dropped: r.of(&[0, 1, u64::MAX]), ..s.run(r.below(4) as u32, &bytes) };
        let taken = all[at].take(&run, &mut others, |own_pid| s.heap.parent(own_pid));
        // A marker before each record of a function at worst.
        assert!(others.len() <= 2 * bytes.len() && taken * 8 <= bytes.len());
        if r.below(8) == 0 {
            let (new, now) = (s.begin(1 + r.below(4) as u32), r.next());
            s.heap.end(std::mem::replace(&mut all[at], new), r.below(2) == 0, now);
        }
        if r.below(3) > 0 {
            continue;
        }
        let until = if round % 100 == 0 { u64::MAX } else { r.next() };
        s.heap.deliver(until, &s.moments, all.iter_mut(), &mut NoEvents);
        if until == u64::MAX {
            assert!(all.iter().all(|a| a.child.is_some() || a.is_empty() && a.frames.is_empty()), "{round}");
        }
        for seen in s.log.lock().unwrap().0.drain(..) {
            if let Seen::Entry(process, time, ..) = seen {
                let last = times.entry(process).or_default();
                assert!(*last <= time, "{process}: {last} {time}");
                *last = time;
                entries += 1;
            }
        }
    }
    assert!(entries > 10_000, "{entries}");
}
