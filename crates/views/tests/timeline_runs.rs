//! Times of threads on processors and off them, from the scheduler's switches, and marks of what happens to threads: in Chrome's format.

mod build;

use build::Call;
use events::dynamic::{self, Field};
use events::names::{FdName, Names};
use events::traces::beside;
use events::types::{Fmt, Int, Type};
use events::{Event, Schema};
use serde_json::Value;
use views::View;
use views::timeline::{Timeline, chrome};
use views::trace_stats::{Trace, TraceStats};

struct Nothing;

impl Names for Nothing {
    fn fd(&self, _: u32, _: i32) -> Option<&FdName> {
        None
    }
    fn comm(&self, _: u32) -> Option<&[u8]> {
        None
    }
}

/// The events of a picture that have one of these kinds: thread, name, and time in ns.
fn events(calls: &[Call], kinds: &[&str]) -> Vec<(u64, String, u64)> {
    let mut view = Timeline::new(TraceStats::new(Trace::default()), chrome::WRITER);
    let mut out = Vec::new();
    for bytes in calls.iter().map(Call::encode) {
        let ev = Event::parse(&bytes).expect("an event");
        view.see(&ev);
        view.event(&ev, &Nothing, &mut out);
    }
    view.end(&mut out);
    let file: Value = serde_json::from_slice(&out).expect("JSON");
    let all = file["traceEvents"].as_array().expect("events").iter();
    let event = |e: &Value| {
        let time = (e["ts"].as_f64().expect("a time") * 1000.0).round() as u64;
        (e["tid"].as_u64().expect("a thread"), e["name"].as_str().expect("a name").to_owned(), time)
    };
    all.filter(|e| kinds.iter().any(|kind| e["ph"] == *kind)).map(event).collect()
}

/// States of threads: thread, state, begin and end.
fn runs(calls: &[Call]) -> Vec<(u64, String, u64, u64)> {
    let ends = events(calls, &["b", "e"]);
    ends.chunks(2).map(|two| (two[0].0, two[0].1.clone(), two[0].2, two[1].2)).collect()
}

fn switch_schema() -> &'static Schema {
    let int = Type::Int(Int { size: 8, signed: false, fmt: Fmt::Dec });
    let fields = ["prev_pid", "prev_state", "next_pid"].map(|name| Field { name: name.into(), ty: int });
    dynamic::class("tracepoint:sched:sched_switch", &fields).expect("a class")
}

/// A thread goes off a processor in a state, and another one goes on it.
fn switch(time: u64, (of, from, state): (u32, u32, u64), to: u32) -> Call {
    let fields = [("prev_pid", from.into()), ("prev_state", state), ("next_pid", to.into())];
    let call = Call::of(switch_schema()).times(time, time).who(of, of);
    fields.iter().fold(call, |call, (name, value)| call.arg(name, *value))
}

fn getppid(tid: u32, time: u64) -> Call {
    Call::new("getppid").times(time, time).who(tid, tid)
}

#[test]
fn last_states_last_to_the_end_unless_threads_have_ended() {
    let calls = [
        getppid(7, 0),
        switch(10, (7, 7, 1), 0),
        getppid(8, 20),
        switch(25, (8, 8, 0), 7),
        switch(30, (7, 7, 2), 0),
        getppid(9, 31),
        // It is a zombie.
        switch(32, (9, 9, 0x20), 0),
        getppid(8, 40),
        getppid(10, 41),
        switch(42, (10, 10, 0), 0),
        getppid(10, 44),
        // Its last switch is not in the trace.
        Call::process("exit").times(45, 45).who(10, 10),
        getppid(8, 50),
    ];
    let on = |tid, from, to| (tid, "on a processor".to_owned(), from, to);
    let expected = [
        on(7, 0, 10),
        (7, "waits".to_owned(), 10, 25),
        on(7, 25, 30),
        (7, "waits in the kernel, uninterruptible".to_owned(), 30, 50),
        on(8, 20, 25),
        (8, "waits for a processor".to_owned(), 25, 40),
        on(8, 40, 50),
        on(9, 31, 32),
        on(10, 41, 42),
        (10, "waits for a processor".to_owned(), 42, 44),
        on(10, 44, 45),
    ];
    assert_eq!(runs(&calls), expected);
}

/// A switch has the numbers of its own trace.
#[test]
fn threads_of_further_traces_have_their_own_switches() {
    let own = [getppid(7, 0), switch(10, (7, 7, 1), 8), getppid(7, 20), getppid(8, 20)];
    let (seven, eight) = (beside(1 << 22, 7), beside(1 << 22, 8));
    let further = [getppid(seven, 5), switch(15, (seven, 7, 1), 8), getppid(eight, 16)];
    let both = runs(&[&own[..2], &further, &own[2..]].concat());
    let of = |tid: u32| both.iter().filter(|run| run.0 == u64::from(tid)).map(|run| (run.2, run.3)).collect::<Vec<_>>();
    assert_eq!(of(7), [(0, 10), (10, 20), (20, 20)]);
    assert_eq!(of(seven), [(5, 15), (15, 20)]);
    assert_eq!((of(8), of(eight)), (vec![(10, 20)], vec![(15, 20)]));
}

#[test]
fn processors_share_the_number_of_their_idle_threads() {
    let calls = [getppid(7, 0), switch(10, (7, 7, 1), 0), switch(20, (0, 0, 0), 7), switch(30, (7, 7, 1), 0)];
    assert!(runs(&calls).iter().all(|run| run.0 == 7), "{:?}", runs(&calls));
}

#[test]
fn what_happens_to_threads_is_a_mark() {
    let of = |name: &str, time: u64| Call::process(name).times(time, time).who(7, 7);
    let calls = [
        of("attach", 0).str("comm", b"app"),
        of("fd", 1).str("path", b"/f").arg("fd", 3),
        of("map", 2).str("path", b"/lib/libc.so.6"),
        of("stop", 3).arg("signo", 19),
        of("superseded", 4).arg("by", 8),
        of("detach", 5),
    ];
    let marks: Vec<String> = events(&calls, &["i"]).into_iter().map(|(_, name, _)| name).collect();
    assert_eq!(marks, ["process:attach", "process:stop", "process:superseded", "process:detach"]);
}
