//! The recorder with a clock that the tests move, and with a writer whose thread cannot be started.

use super::*;
use ctf::trace::{Found, Trace};
use events::encode::{self, Fixed};
use events::generated::{P_EXIT, P_MAP, SCHEMAS};
use events::layout::Layout;
use testkit::Scratch;

fn config(dir: &Scratch) -> Config {
    Config { dir: dir.to_path_buf(), command: "test".into(), backend: "none".into(), string: 32, ..Config::default() }
}

/// No thread, as where the limit of processes is reached.
fn no_thread(_: writer::Slot) -> io::Result<writer::Thread> {
    Err(io::ErrorKind::WouldBlock.into())
}

/// An event of that class, with these bytes in each of its tails.
fn event_with(schema: &'static events::Schema, time: u64, bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let layout = Layout::of(schema);
    encode::fixed(&mut out, schema, &layout, &Fixed { time, tid: 1, pid: 1, ..Fixed::default() }, &[0; 12]);
    for _ in &layout.tails {
        encode::bytes_tail(&mut out, bytes);
    }
    out
}

fn event_of(schema: &'static events::Schema, time: u64) -> Vec<u8> {
    event_with(schema, time, b"")
}

fn schema(name: &str) -> &'static events::Schema {
    SCHEMAS.iter().find(|s| s.name == name).expect("a call")
}

/// A call without arguments.
fn call(time: u64) -> Vec<u8> {
    event_of(schema("getppid"), time)
}

fn opened(dir: &Scratch) -> Trace {
    match ctf::trace::open(dir).expect("a trace") {
        Found::Native(trace) => *trace,
        Found::Foreign => panic!("not a trace of trapline"),
    }
}

/// Events of stream 0 that have left the recorder: a writer without a thread counts them at once.
fn closed(r: &Recorder) -> u64 {
    r.so_far().streams.get(&StreamId::cpu(0)).map_or(0, |s| s.unwritten)
}

#[test]
fn no_event_waits_for_longer_than_its_age() {
    let dir = Scratch::new("age");
    let mut r = Recorder { spawn: no_thread, ..Recorder::new(&config(&dir)).unwrap() };
    let t = r.began;
    // Without a tick: the caller is busy.
    r.event(StreamId::cpu(0), &call(t));
    r.event(StreamId::cpu(0), &call(t + AGE));
    assert_eq!(closed(&r), 0);
    r.event(StreamId::cpu(0), &call(t + AGE + 1));
    assert_eq!(closed(&r), 2);
    // Without an event.
    r.tick(t + 2 * AGE + 1, |_| 0);
    assert_eq!(closed(&r), 2);
    r.tick(t + 2 * AGE + 2 + TICK, |_| 0);
    assert_eq!(closed(&r), 3);
    // What a crash costs is less than the second that the documentation promises.
    const { assert!(AGE + TICK + LATE < 1_000_000_000) };
}

#[test]
fn without_a_thread_nothing_waits_and_all_is_counted() {
    let dir = Scratch::new("no-thread");
    let mut r = Recorder { spawn: no_thread, ..Recorder::new(&config(&dir)).unwrap() };
    let monitor = r.monitor();
    // More than the queue has room for.
    let (t, n) = (r.began, 2 * QUEUE as u64 / 4000);
    for i in 0..n {
        assert!(r.has_room(), "a target that blocks would wait for ever, after {i} events");
        r.event(StreamId::cpu((i % 2) as u32), &event_with(schema("write"), t + i, &[7; 4000]));
    }
    let news = monitor.news();
    let [News::Failed(path, why)] = &news[..] else { panic!("{news:?}") };
    assert_eq!(*path, *dir);
    assert!(why.to_string().starts_with("cannot start a thread: "), "{why}");
    let totals = r.finish().unwrap();
    assert_eq!((totals.taken.iter().sum::<u64>(), totals.unwritten.iter().sum::<u64>()), (n, n));
    assert_eq!(
        totals.streams[&StreamId::cpu(1)],
        StreamTotals { taken: n / 2, unwritten: n / 2, ..StreamTotals::default() }
    );
    assert!(monitor.news().is_empty(), "it was said once");
    // The trace says so too.
    let trace = opened(&dir);
    assert_eq!((trace.discarded(), trace.missing.len()), (n, 0));
    let end = trace.end.expect("an end");
    assert!(end.failed.is_some_and(|f| f.starts_with("cannot start a thread")));
    assert_eq!(end.unwritten, [("syscall:write".to_string(), n)]);
}

#[test]
fn a_flight_recorder_without_a_thread_keeps_the_last() {
    let dir = Scratch::new("no-thread-flight");
    let config = Config { flight: Some(1 << 20), ..config(&dir) };
    let mut r = Recorder { spawn: no_thread, ..Recorder::new(&config).unwrap() };
    let (monitor, t) = (r.monitor(), r.began);
    (0..100).for_each(|i| r.event(StreamId::cpu(0), &call(t + i)));
    r.event(StreamId::cpu(0), &event_of(&P_EXIT, t + 100));
    monitor.snapshot();
    r.tick(t + 200, |_| 0);
    r.finish().unwrap();
    let written = monitor.news().into_iter().map(|n| match n {
        News::Snapshot(path, events) => (path, events),
        News::Failed(path, e) | News::NoSnapshot(path, e) => panic!("{}: {e}", path.display()),
    });
    // Events of enabled probes: an exit is none.
    let wanted = ["snapshot-1", "snapshot-2"].map(|n| (dir.join(n), 100));
    assert_eq!(written.collect::<Vec<_>>(), wanted);
}

#[test]
fn streams_count_what_becomes_of_their_events() {
    let dir = Scratch::new("streams");
    let mut r = Recorder::new(&config(&dir)).unwrap();
    let (monitor, t) = (r.monitor(), r.began);
    let probe = StreamId::new(events::stream::Scope::Cpu(0), 1);
    (0..10).for_each(|i| r.event(StreamId::cpu(0), &call(t + i)));
    (0..7).for_each(|i| r.event(probe, &call(t + i)));
    r.event(StreamId::TRACER, &event_of(&P_EXIT, t));
    monitor.mapping(&event_of(&P_MAP, t));
    monitor.lost_mappings(5);
    // Rings that were full; of mappings nobody else knows.
    r.tick(t + 1, |stream| if stream == probe { 3 } else { 9 * u64::from(stream == StreamId::MAPS) });
    r.set_lost(StreamId::cpu(2), 4);
    let totals = r.finish().unwrap();
    let of = |taken, discarded| StreamTotals { taken, discarded, ..StreamTotals::default() };
    let calls = [(StreamId::cpu(0), of(10, 0)), (StreamId::cpu(2), of(0, 4)), (probe, of(7, 3))];
    let own = [(StreamId::MAPS, of(1, 5)), (StreamId::TRACER, of(1, 0))];
    let wanted: Vec<_> = calls.into_iter().chain(own).collect();
    assert_eq!(totals.streams.into_iter().collect::<Vec<_>>(), wanted);
    assert_eq!(totals.lost_mappings, 5);
    let trace = opened(&dir);
    let said: Vec<_> = trace.data.streams.iter().map(|s| (s.id, trace.data.discarded_of(s.id))).collect();
    assert_eq!(said, wanted.iter().map(|(id, t)| (*id, t.discarded)).collect::<Vec<_>>());
    let end = trace.end.as_ref().expect("an end");
    let said: Vec<_> = end.streams.iter().map(|s| (s.id, s.events, s.taken, s.discarded)).collect();
    assert_eq!(said, wanted.iter().map(|(id, t)| (*id, t.taken, t.taken, t.discarded)).collect::<Vec<_>>());
    assert!(trace.is_whole() && end.events() == Some(19));
}
