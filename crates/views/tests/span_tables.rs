//! Spans of two probes: which events belong together, and what the table says of them.

mod build;

use build::Call;
use events::dynamic::{self, Field};
use events::encode::{self, Fixed};
use events::layout::Layout;
use events::names::{FdName, FunctionName, Names};
use events::types::{Fmt, Int, Type};
use events::values::Signature;
use events::{Event, Schema, functions};
use expect_test::expect;
use views::View;
use views::timeline::spans::Definition;
use views::timeline::{Timeline, Writer, span_table};
use views::trace_stats::{Trace, TraceStats};

/// Names threads, and the functions 1 and 2.
struct Known(Signature);

impl Names for Known {
    fn fd(&self, _: u32, _: i32) -> Option<&FdName> {
        None
    }
    fn comm(&self, tid: u32) -> Option<&[u8]> {
        Some(if tid == 7 { b"accepts" } else { b"works\x1b[2J" })
    }
    fn function(&self, number: u32) -> Option<FunctionName<'_>> {
        let name = if number == 1 { "Task::poll" } else { "Task::drop" };
        Some(FunctionName { name, symbol: name, module: "/app", build_id: &[], address: 0, aliases: &[] })
    }
    fn signature(&self, _: u32) -> Option<&Signature> {
        Some(&self.0)
    }
}

fn at(us: u64) -> u64 {
    5_000_000_000 + us * 1000
}

fn call(tid: u32, name: &str, from: u64, to: u64) -> Call {
    Call::new(name).times(at(from), at(to)).who(7, tid)
}

fn probe(name: &str, fields: &[&str]) -> &'static Schema {
    let ty = Type::Int(Int { size: 8, signed: false, fmt: Fmt::Dec });
    let fields: Vec<Field> = fields.iter().map(|f| Field { name: (*f).into(), ty }).collect();
    dynamic::class(name, &fields).expect("a class")
}

/// A record of a function with an argument, which a record of an exit does not have.
fn function(exits: bool, tid: u32, number: u64, task: u64, us: u64) -> Vec<u8> {
    let schema = if exits { functions::exit() } else { functions::with_values()[0] };
    let call = Call::of(schema).times(at(us), at(us)).who(7, tid).arg("number", number);
    if exits { call.encode() } else { call.bytes("values", &task.to_le_bytes()).encode() }
}

fn definition(name: &str, probes: [&str; 2], keys: [&str; 2]) -> Definition {
    Definition { name: name.into(), probes: probes.map(str::to_owned), keys: keys.map(str::to_owned), first: false }
}

fn shown(definitions: Vec<Definition>, events: &[Vec<u8>], writer: Writer) -> String {
    let view = Timeline::new(TraceStats::new(Trace::default()), writer);
    let (mut view, mut out) = (view.spans(definitions, 3), Vec::new());
    let known = Known(Signature::parse("task:p;>i4").expect("a signature"));
    for bytes in events {
        let ev = Event::parse(bytes).expect("an event");
        view.see(&ev);
        view.event(&ev, &known, &mut out);
    }
    view.end(&mut out);
    String::from_utf8(out).expect("UTF-8")
}

#[test]
fn a_request_goes_from_thread_to_thread() {
    let malloc = probe("heap:malloc", &["address", "size"]);
    let switch = probe("tracepoint:sched:sched_switch", &["prev_pid", "prev_state", "next_pid"]);
    let switched = |from: u64, state: u64, to: u64, us| {
        let call = Call::of(switch).times(at(us), at(us)).who(7, 8);
        call.arg("prev_pid", from).arg("prev_state", state).arg("next_pid", to).encode()
    };
    let events = [
        call(7, "recvfrom", 0, 100).arg("fd", 5).ret(10).encode(),
        // Nothing was there yet; and a descriptor that nobody answers.
        call(7, "recvfrom", 110, 111).arg("fd", 6).ret(-11).encode(),
        call(7, "recvfrom", 112, 113).arg("fd", 9).ret(1).encode(),
        call(7, "futex", 120, 130).ret(1).encode(),
        Call::of(malloc).times(at(140), at(140)).who(7, 8).arg("address", 1).arg("size", 4000).encode(),
        switched(8, 1, 0, 150),
        switched(0, 0, 8, 350),
        call(8, "pread64", 145, 400).arg("fd", 3).ret(9).encode(),
        call(8, "sendto", 410, 420).arg("fd", 5).ret(10).encode(),
        call(8, "sendto", 430, 440).arg("fd", 5).ret(10).encode(),
        call(7, "recvfrom", 450, 460).arg("fd", 5).ret(10).encode(),
        call(7, "sendto", 470, 480).arg("fd", 5).ret(10).encode(),
        // Another process has descriptors of its own.
        Call::new("sendto").times(at(490), at(490)).who(9, 9).arg("fd", 9).ret(1).encode(),
    ];
    let request = definition("request", ["syscall:recvfrom", "syscall:sendto"], ["fd", "fd"]);
    expect![[r#"
        request: 2 spans of syscall:recvfrom .. syscall:sendto by fd, 1 begin without an end, 2 ends without a begin
        total 340us, average 170us, p50 20.0us, p99 320us, max 320us

        +0.000100 for 320us: request fd 5, 7 (accepts) to 8 (works\u{1b}[2J)
          7 (accepts): 0ns blocked, nothing allocated
            10.0us  1  futex
            2.00us  2  recvfrom
          8 (works\u{1b}[2J): 200us blocked, 3.91KiB in 1 block allocated
             255us  1  pread64
            10.0us  1  sendto

        +0.000460 for 20.0us: request fd 5, 7 (accepts)
          7 (accepts): 0ns blocked, nothing allocated
            10.0us  1  sendto
    "#]]
    .assert_eq(&shown(vec![request.clone()], &events, span_table::WRITER));
    // The begin of the call, and not its end; only what is asked for.
    let entry = definition("all", ["syscall:recvfrom:entry", "syscall:send*"], ["arg0", "args.fd"]);
    let text = shown(vec![entry], &events, span_table::WRITER);
    assert!(text.contains("\n+0.000000 for 420us: all arg0 5, 7"), "{text}");
}

#[test]
fn a_task_is_polled_in_any_thread() {
    let (poll, drop) = (1, 2);
    let events = [
        function(false, 7, poll, 0x7000_0000_1000, 0),
        function(true, 7, poll, 0, 10),
        function(false, 8, poll, 0x7000_0000_1000, 50),
        function(false, 8, poll, 0x7000_0000_2000, 55),
        function(true, 8, poll, 0, 58),
        function(true, 8, poll, 0, 70),
        function(false, 8, drop, 0x7000_0000_1000, 80),
        function(true, 8, drop, 0, 81),
    ];
    let polls = definition("poll", ["function:Task::poll", "function:Task::poll:return"], ["task", "task"]);
    let task = definition("task", ["function:*::poll", "function:Task::drop"], ["arg0", "arg0"]);
    let whole = Definition { first: true, ..task.clone() };
    let heads = |text: &str| {
        text.lines().filter(|l| l.contains(" for ") || l.contains("span")).map(str::to_owned).collect::<Vec<_>>()
    };
    expect![[r#"
        [
            "poll: 3 spans of function:Task::poll .. function:Task::poll:return by task",
            "+0.000050 for 20.0us: poll task 0x700000001000, 8 (works\\u{1b}[2J)",
            "+0.000000 for 10.0us: poll task 0x700000001000, 7 (accepts)",
            "+0.000055 for 3.00us: poll task 0x700000002000, 8 (works\\u{1b}[2J)",
            "task: 1 span of function:*::poll .. function:Task::drop by arg0, 2 begins without an end",
            "+0.000050 for 30.0us: task arg0 0x700000001000, 8 (works\\u{1b}[2J)",
            "task: 1 span of function:*::poll .. function:Task::drop by arg0 first, 1 begin without an end",
            "+0.000000 for 80.0us: task arg0 0x700000001000, 7 (accepts) to 8 (works\\u{1b}[2J)",
        ]
    "#]]
    .assert_debug_eq(&heads(&shown(vec![polls, task, whole], &events, span_table::WRITER)));
}

#[test]
fn probes_that_are_not_there_are_named_and_keys_that_are_texts_match() {
    let usdt = dynamic::class(
        "usdt:/app:lab:step",
        &[Field { name: "id".into(), ty: Type::Str(events::types::StrKind::Text) }],
    );
    let usdt = usdt.expect("a class");
    let step = |tid: u32, id: &[u8], us: u64| {
        let mut out = Vec::new();
        let fixed = Fixed { time: at(us), start: at(us), tid, pid: tid, cap: 0, more_caps: 0, ..Fixed::default() };
        encode::fixed(&mut out, usdt, &Layout::of(usdt), &fixed, &[0x1000]);
        encode::str_tail(&mut out, id);
        out
    };
    let events = [step(7, b"a", 1), step(8, b"b\x1b", 2), step(8, b"a", 3), step(7, b"b\x1b", 5)];
    let probes = ["usdt:*:step", "usdt:*:step"];
    let text = shown(
        vec![
            definition("id", probes, ["id", "id"]),
            definition("none", ["syscall:openat", "usdt:*"], ["fd", "retval"]),
        ],
        &events,
        span_table::WRITER,
    );
    expect![[r#"
        id: 2 spans of usdt:*:step .. usdt:*:step by id, 2 begins without an end, 2 ends without a begin
        total 5.00us, average 2.50us, p50 2.00us, p99 3.00us, max 3.00us

        +0.000001 for 3.00us: id id b\33, 8 (works\u{1b}[2J) to 7 (accepts)
          8 (works\u{1b}[2J): no calls
          7 (accepts): no calls

        +0.000000 for 2.00us: id id a, 7 (accepts) to 8 (works\u{1b}[2J)
          7 (accepts): no calls
          8 (works\u{1b}[2J): no calls

        none: 0 spans: no event of syscall:openat is among those that are shown
    "#]]
    .assert_eq(&text);
}
