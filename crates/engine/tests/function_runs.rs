//! Function records of a backend that nobody has heard of: shown live, recorded, shown again from the trace, by babeltrace2 as well.

use ctf::trace::{Found, Trace};
use engine::Result;
use engine::backend::recorded::Recorded;
use engine::control::{self, Order, State};
use engine::pipeline::backend::{Backend, Deliver, Polled};
use engine::pipeline::filter::EventFilter;
use engine::pipeline::pump::{Flow, Pump, Sink};
use engine::pipeline::recorder::{Config, Recorder};
use engine::pipeline::selection::Selection;
use engine::pipeline::source::Source;
use engine::pipeline::world::World;
use engine::request::expression::Expression;
use engine::request::select::Calls;
use engine::stats::Report;
use events::encode::{self, Fixed};
use events::functions::{HIGH, Moment, Run};
use events::generated::P_FUNCTION;
use events::layout::Layout;
use events::stream::Scope;
use events::{Event, StreamId};
use std::cell::RefCell;
use std::path::Path;
use std::process::Command;
use std::rc::Rc;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use testkit::{Scratch, has, skip};
use views::View;
use views::text::Text;

/// When the counter was 0, ns: not before the recorders began, which take nothing for older than themselves.
fn zero() -> u64 {
    static ZERO: OnceLock<u64> = OnceLock::new();
    *ZERO.get_or_init(|| sys::time::monotonic() + 60_000_000_000)
}

/// The counter at a time, ns: 2.5 GHz.
fn tsc(ns: u64) -> u64 {
    (ns - zero()) * 5 / 2
}

fn moment(ns: u64) -> Moment {
    Moment { tsc: tsc(ns), monotonic: ns }
}

fn thread(tid: u32) -> StreamId {
    StreamId::new(Scope::Thread(tid), 1)
}

/// What a backend delivers in one round.
#[derive(Clone)]
enum Part {
    /// An event.
    Event(StreamId, Vec<u8>),
    /// Records: thread, process, whether it begins, how many were lost before, first and last moment; time and word of each.
    Run(u32, u32, bool, u64, (u64, u64), Vec<(u64, u32)>),
    /// All up to that time has come.
    Settled(u64),
}

/// Delivers these, one after the other.
struct Fake(std::vec::IntoIter<Part>);

impl Fake {
    fn new(parts: &[Part]) -> Fake {
        let parts = parts.to_vec();
        Fake(parts.into_iter())
    }
}

/// Records with markers where the upper half of the counter changes; the first word of each chunk is one.
fn bytes(records: &[(u64, u32)]) -> Vec<u8> {
    let (mut all, mut high) = (Vec::new(), None);
    for (ns, word) in records {
        let t = tsc(*ns);
        if high.replace(t >> 32) != Some(t >> 32) {
            all.extend([(t >> 32) as u32, HIGH].map(u32::to_le_bytes).concat());
        }
        all.extend([t as u32, *word].map(u32::to_le_bytes).concat());
    }
    all
}

impl Backend for Fake {
    fn name(&self) -> &'static str {
        "fake"
    }
    fn poll(&mut self, _room: bool, each: &mut dyn Deliver) -> Polled {
        let mut events = 0;
        for part in self.0.by_ref().take(3) {
            events += 1;
            match part {
                Part::Event(stream, event) => each.event(stream, &event),
                Part::Settled(ns) => each.settled(ns),
                Part::Run(tid, pid, begins, dropped, (from, to), records) => each.functions(&Run {
                    stream: thread(tid),
                    pid,
                    begins,
                    records: &bytes(&records),
                    high: 0,
                    from: moment(from),
                    to: moment(to),
                    dropped,
                }),
            }
        }
        Polled { events, ended: events == 0 }
    }
    fn wait(&mut self, _timeout: Duration) {}
    fn control(&mut self, _order: Order) -> Result<State> {
        Err(control::ended())
    }
    fn stop(&mut self) {}
    fn streams(&self) -> Vec<StreamId> {
        Vec::new()
    }
    fn dropped_on(&self, _stream: StreamId) -> u64 {
        0
    }
    fn report(&mut self) -> Report {
        Report::default()
    }
}

fn function(time: u64, number: u32, name: &str) -> Part {
    let mut event = Vec::new();
    let fixed = Fixed { time, cap: 0x15, tid: 7, pid: 7, ..Fixed::default() };
    encode::fixed(&mut event, &P_FUNCTION, &Layout::of(&P_FUNCTION), &fixed, &[1, 1, 1, number.into(), 0x1000]);
    encode::str_tail(&mut event, name.as_bytes());
    encode::str_tail(&mut event, b"/bin/program");
    encode::bytes_tail(&mut event, &[0xab; 20]);
    Part::Event(StreamId::FUNCTIONS, event)
}

fn call(time: u64, tid: u32) -> Part {
    let schema = events::registry::by_name("getppid").expect("a call");
    let fixed = Fixed { time, start: time - 1, ret: 42, tid, pid: 7, ..Fixed::default() };
    let mut event = Vec::new();
    encode::fixed(&mut event, schema, &Layout::of(schema), &fixed, &[]);
    Part::Event(StreamId::cpu(0), event)
}

/// Lines of text into memory.
struct Lines(Text, Rc<RefCell<Vec<u8>>>);

impl Sink for Lines {
    fn event(&mut self, ev: &Event<'_>, world: &World) -> Result<Flow> {
        self.0.event(ev, world, &mut self.1.borrow_mut());
        Ok(Flow::Continue)
    }
    fn has_written(&self) -> bool {
        !self.1.borrow().is_empty()
    }
}

/// Runs a pump to its end; what it has shown.
fn shown(source: Source<'_>, selection: Selection) -> String {
    let text = Rc::default();
    let mut pump =
        Pump::new(source, selection, vec![Box::new(Lines(Text::new(views::Options::default()), Rc::clone(&text)))]);
    while !pump.turn().ended {}
    pump.end_sinks(None);
    let _ = pump.source.report();
    let _ = pump.source.finish().expect("a trace");
    drop(pump);
    String::from_utf8(text.take()).expect("text")
}

fn live(parts: &[Part]) -> String {
    shown(Source::new(Box::new(Fake::new(parts)), None), Selection::all())
}

fn config(dir: &Path) -> Config {
    Config {
        dir: dir.into(),
        command: "none".into(),
        backend: "fake".into(),
        realtime_offset: 1_700_000_000_000_000_000,
        string: 32,
        ..Config::default()
    }
}

fn record(parts: &[Part], config: &Config) -> String {
    let recorder = Recorder::new(config).expect("a recorder");
    shown(Source::new(Box::new(Fake::new(parts)), Some(recorder)), Selection::all())
}

fn open(dir: &Path) -> Box<Trace> {
    let Ok(Found::Native(trace)) = ctf::trace::open(dir) else { panic!("no trace of trapline's") };
    trace
}

fn later(trace: &Trace, selection: Selection) -> String {
    shown(Source::new(Box::new(Recorded::new(trace, 0, u64::MAX)), None), selection)
}

const MAIN: u32 = 1;
const WORK: u32 = 2;
const fn entry(f: u32) -> u32 {
    f << 1
}
const fn exit(f: u32) -> u32 {
    f << 1 | 1
}

/// Two threads and calls between their functions; a gap of more than 2^32 ticks; a thread id that comes again in another process; losses;
/// a number without a name.
fn session() -> Vec<Part> {
    let s = |n: u64| zero() + n * 1_000_000;
    vec![
        function(s(1), MAIN, "main"),
        function(s(1), WORK, "_ZN4acme4workEi"),
        Part::Run(7, 7, true, 0, (s(1), s(6)), vec![(s(2), entry(MAIN)), (s(3), entry(WORK)), (s(5), exit(WORK))]),
        call(s(4), 7),
        Part::Run(8, 7, true, 0, (s(1), s(6)), vec![(s(3) + 500, entry(WORK)), (s(4) + 500, exit(WORK))]),
        Part::Settled(s(6)),
        call(s(7), 8),
        // More than 2^32 ticks later.
        Part::Run(7, 7, false, 0, (s(6), s(5001)), vec![(s(8), entry(WORK)), (s(5000), exit(WORK))]),
        Part::Run(8, 9, true, 3, (s(4000), s(5001)), vec![(s(4001), entry(9)), (s(4002), exit(9))]),
        call(s(4500), 7),
        Part::Settled(s(5001)),
        Part::Run(7, 7, false, 0, (s(5001), s(5003)), vec![(s(5002), exit(MAIN))]),
    ]
}

const SHOWN: &str = "\
7     function:main:entry()
7     function:acme::work:entry()
8     function:acme::work:entry()
7     getppid()                         = 42
8     function:acme::work:exit()
7     function:acme::work:exit()
8     getppid()                         = 42
7     function:acme::work:entry()
8     functions:begun(number=1)
8     functions:lost(records=3)
8     function:#9:entry()
8     function:#9:exit()
7     getppid()                         = 42
7     function:acme::work:exit()
7     function:main:exit()
";

#[test]
fn they_are_shown_recorded_and_shown_again() {
    let parts = session();
    assert_eq!(live(&parts), SHOWN);
    let scratch = Scratch::new("function-runs");
    let dir = scratch.join("trace");
    assert_eq!(record(&parts, &config(&dir)), SHOWN);
    let trace = open(&dir);
    assert_eq!(later(&trace, Selection::all()), SHOWN);
    assert_eq!((trace.discarded(), trace.data.damage().places, trace.is_whole()), (3, 0, true));
    let taken: u64 =
        trace.end.iter().flat_map(|e| &e.taken).filter(|(p, _)| p.starts_with("function:")).map(|t| t.1).sum();
    assert_eq!(taken, 10);
    for thread in trace.data.function_threads() {
        let end = trace.end.iter().flat_map(|e| &e.streams).find(|s| s.id == thread.stream()).expect("its line");
        assert_eq!(
            (end.events, end.events, end.packets),
            (thread.records(), end.taken, {
                trace.data.streams.iter().find(|s| s.id == thread.stream()).map_or(0, |s| s.packets.len() as u64)
            })
        );
    }
    // By name, and by what the filter language has.
    let some = |patterns: &[&str]| Selection {
        probes: Some(patterns.iter().map(|p| (*p).into()).collect()),
        ..Selection::all()
    };
    let count = |selection| later(&trace, selection).matches("function:").count();
    assert_eq!(count(some(&["function:main"])), 2);
    assert_eq!(count(some(&["function:acme::*:exit"])), 3);
    assert_eq!(count(some(&["uprobe:*"])), 0);
    let classes: Vec<_> = trace.classes().filter(|s| events::functions::kind(s).is_some()).collect();
    for (text, wanted) in [("args.function == \"main\"", 2), ("args.number == 2 && tid == 8", 2), ("pid == 9", 2)] {
        let expression = Expression::new(text, &[], &Calls::none(), &classes).expect("a filter");
        let filter = EventFilter::new(Arc::new(expression), |_| true);
        assert_eq!(count(Selection { filters: vec![filter], ..Selection::all() }), wanted, "{text}");
    }
}

/// A packet: thread, process, number, whether it begins, losses, times of its records in ms.
type Read = (u32, u32, u32, bool, u64, Vec<u64>);

#[test]
fn each_thread_is_read_by_itself() {
    let scratch = Scratch::new("function-threads");
    let dir = scratch.join("trace");
    record(&session(), &config(&dir));
    let trace = open(&dir);
    let mut all = Vec::new();
    for thread in trace.data.function_threads() {
        let mut packets = thread.packets(0..=u64::MAX);
        while let Some(packet) = packets.next() {
            let times: Vec<_> = packet.records().map(|r| (r.time + 500_000 - zero()) / 1_000_000).collect();
            all.push((thread.tid(), packet.pid, packet.number, packet.begins, packet.gap.lost, times));
        }
    }
    let wanted = [
        (7, 7, 0, true, 0, vec![2, 3, 5]),
        (7, 7, 0, false, 0, vec![8]),
        (7, 7, 0, false, 0, vec![5000]),
        (7, 7, 0, false, 0, vec![5002]),
        (8, 7, 0, true, 0, vec![3, 4]),
        (8, 9, 1, true, 3, vec![4001, 4002]),
    ];
    // How many packets there are depends on their age too.
    let join = |all: &[Read]| {
        let mut out: Vec<(u32, u32, u32, u64, Vec<u64>)> = Vec::new();
        for (tid, pid, number, _, lost, times) in all {
            match out.last_mut().filter(|o| (o.0, o.1, o.2) == (*tid, *pid, *number)) {
                Some(o) => o.4.extend(times),
                None => out.push((*tid, *pid, *number, *lost, times.clone())),
            }
        }
        out
    };
    assert_eq!(join(&all), join(&wanted));
    assert_eq!(all.iter().filter(|p| p.3).count(), 3);
    let functions = trace.functions(|_| None);
    assert_eq!((functions.get(WORK).map(|f| f.symbol), functions.last()), (Some("_ZN4acme4workEi"), WORK));
}

#[test]
fn a_trace_without_functions_does_not_speak_of_them() {
    let scratch = Scratch::new("function-none");
    let dir = scratch.join("trace");
    record(&[call(zero() + 5, 7)], &config(&dir));
    let text = std::fs::read_to_string(dir.join("metadata")).expect("metadata");
    assert!(!text.contains("clock.tsc") && text.contains("trace_format = 2"), "{text}");
    assert!(open(&dir).data.function_threads().is_empty());
}

#[test]
fn babeltrace2_reads_them_in_the_same_order() {
    if !has("babeltrace2") {
        return skip("package:babeltrace2", "no babeltrace2");
    }
    let scratch = Scratch::new("function-babeltrace");
    let dir = scratch.join("trace");
    // Without losses, of which it warns.
    let parts: Vec<Part> = session()
        .into_iter()
        .map(|p| match p {
            Part::Run(tid, pid, begins, _, span, records) => Part::Run(tid, pid, begins, 0, span, records),
            other => other,
        })
        .collect();
    record(&parts, &config(&dir));
    let script = "ulimit -v 1000000; exec timeout 20 babeltrace2 --clock-gmt \"$0\"";
    let out = Command::new("sh").args(["-c", script]).arg(&dir).output().expect("babeltrace2");
    let (text, errors) = (String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
    assert!(out.status.success() && errors.is_empty(), "{errors}");
    let theirs: Vec<&str> = text
        .lines()
        .filter(|l| !l.contains("process:"))
        .map(|l| ["getppid", "function:entry", "function:exit"].into_iter().find(|n| l.contains(n)).unwrap_or(l))
        .collect();
    let ours: Vec<&str> = SHOWN
        .lines()
        .filter(|l| !l.contains("functions:"))
        .map(|l| match l {
            l if l.contains("getppid") => "getppid",
            l if l.contains(":entry") => "function:entry",
            _ => "function:exit",
        })
        .collect();
    assert_eq!(theirs, ours, "{text}");
}

/// This many runs of 1000 records each, by two threads, after the names of their functions.
fn many(runs: u64) -> Vec<Part> {
    let s = |n: u64| zero() + n * 100_000;
    let mut parts = vec![function(s(1), MAIN, "main"), function(s(1), WORK, "_ZN4acme4workEi")];
    for i in 1..=runs {
        let records = (0..1000).map(|n| (s(i) + n * 50, entry(MAIN + n as u32 % 2) | (n as u32 / 2 % 2))).collect();
        parts.push(Part::Run(7 + i as u32 % 2, 7, i < 3, 0, (s(i), s(i + 1)), records));
        parts.push(Part::Settled(s(i + 1)));
    }
    parts
}

/// Keeps no lines: how many records the sinks were shown is not the question.
fn quietly(parts: Vec<Part>, config: &Config) -> engine::stats::totals::Totals {
    let recorder = Recorder::new(config).expect("a recorder");
    let mut source = Source::new(Box::new(Fake::new(&parts)), Some(recorder));
    while !source.poll(true, &mut |_, _: &[u8]| {}).ended {}
    let _ = source.report();
    source.finish().expect("a trace").expect("totals")
}

#[test]
fn what_has_no_room_is_counted_and_names_go_last() {
    let scratch = Scratch::new("function-limits");
    let runs = 300;
    for (name, limit) in [("size", true), ("flight", false)] {
        let dir = scratch.join(name);
        let mut config = config(&dir);
        let room = engine::pipeline::recorder::least_size(&config) + (200 << 10);
        (config.max_size, config.flight) = if limit { (Some(room), None) } else { (None, Some(400 << 10)) };
        let totals = quietly(many(runs), &config);
        let dir = if limit { dir } else { dir.join("snapshot-1") };
        let trace = open(&dir);
        let there: u64 = trace.data.function_threads().iter().map(|t| t.records()).sum();
        let of = |f: fn(&engine::stats::totals::StreamTotals) -> u64| -> u64 {
            [7, 8].iter().filter_map(|tid| totals.streams.get(&thread(*tid))).map(f).sum()
        };
        assert_eq!((of(|t| t.taken), of(|t| t.overwritten) + there), (runs * 1000, runs * 1000), "{name}");
        assert!(there > 10_000 && there < 100_000, "{name}: {there}");
        assert_eq!(trace.functions(|_| None).last(), WORK, "{name}");
        // What is missing at the beginning is shown, and names are there although they are the oldest.
        let text = later(&trace, Selection::all());
        assert_eq!(text.matches("functions:lost(records=0)").count(), 2, "{name}");
        assert_eq!(
            (text.matches("function:main:").count() + text.matches("function:acme::work:").count()) as u64,
            there
        );
        if limit {
            let size: u64 = std::fs::read_dir(&dir)
                .expect("a directory")
                .flatten()
                .map(|f| f.metadata().map_or(0, |m| m.len()))
                .sum();
            assert!(size <= room, "{size} {room}");
        }
    }
}

#[test]
fn a_stream_that_was_cut_off_is_repaired() {
    use std::os::unix::fs::MetadataExt;
    let scratch = Scratch::new("function-repair");
    let dir = scratch.join("trace");
    quietly(many(100), &config(&dir));
    let file = dir.join(thread(7).to_string());
    let size = std::fs::metadata(&file).expect("a stream");
    std::fs::File::options().write(true).open(&file).and_then(|f| f.set_len(size.len() - 100)).expect("truncated");
    let before = open(&dir);
    assert_eq!((before.data.truncated.len(), before.missing.len()), (1, 1));
    let repaired = ctf::repair::repair(&dir, size.uid()).expect("repaired");
    assert_eq!(repaired.cuts.len(), 1);
    let after = open(&dir);
    let there: u64 = after.data.function_threads().iter().map(|t| t.records()).sum();
    assert_eq!((after.data.truncated.len(), there + after.missing[0].events.unwrap_or(0)), (0, 100_000));
}

#[test]
fn what_no_agent_would_write_is_shown_or_counted() {
    let raw = |pairs: &[(u64, u32)]| -> Vec<u8> { bytes(pairs) };
    let at = |n: u64| zero() + n;
    // An exit without an entry, numbers nobody has named, times that go back, and what is no record.
    let mut records = raw(&[(at(50), exit(WORK)), (at(40), entry(0x3fff_ffff)), (at(60), exit(3)), (at(60), entry(3))]);
    records.extend([0; 8]);
    records.extend(raw(&[(at(70), entry(4))]));
    records.extend([1, 2, 3]);
    struct Raw(Option<Vec<u8>>);
    impl Backend for Raw {
        fn name(&self) -> &'static str {
            "raw"
        }
        fn poll(&mut self, _room: bool, each: &mut dyn Deliver) -> Polled {
            let Some(records) = self.0.take() else { return Polled { events: 0, ended: true } };
            let stream = thread(7);
            for (from, to) in
                [(Moment::default(), Moment::default()), (moment(zero() + 9), Moment { tsc: 1, monotonic: u64::MAX })]
            {
                each.functions(&Run {
                    stream,
                    pid: 7,
                    begins: true,
                    records: &records,
                    high: u32::MAX,
                    from,
                    to,
                    dropped: u64::MAX,
                });
            }
            each.settled(0);
            Polled { events: 1, ended: false }
        }
        fn wait(&mut self, _timeout: Duration) {}
        fn control(&mut self, _order: Order) -> Result<State> {
            Err(control::ended())
        }
        fn stop(&mut self) {}
        fn streams(&self) -> Vec<StreamId> {
            vec![thread(7)]
        }
        fn dropped_on(&self, _stream: StreamId) -> u64 {
            u64::MAX
        }
        fn report(&mut self) -> Report {
            Report::default()
        }
    }
    let scratch = Scratch::new("function-raw");
    let dir = scratch.join("trace");
    let recorder = Recorder::new(&config(&dir)).expect("a recorder");
    let live = shown(Source::new(Box::new(Raw(Some(records))), Some(recorder)), Selection::all());
    assert_eq!((live.matches("function:").count(), live.matches(":exit").count()), (8, 4), "{live}");
    let text = later(&open(&dir), Selection::all());
    assert_eq!(text.matches("function:").count(), 8, "{text}");
}
