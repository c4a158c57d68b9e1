//! Pictures of function calls for other programs: Chrome's format, and Perfetto's, which protoc reads with the fields of perfetto_trace.proto
//! (google/perfetto) that are used here, and Perfetto's own classes read as a whole. Skipped without protoc, or without these classes.

mod build;
mod calls;
mod perfetto_classes;

use build::Call;
use calls::script;
use events::functions;
use events::names::{FdName, FunctionName, Names};
use expect_test::{expect, expect_file};
use perfetto_classes::read_by_perfetto;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::io::Write;
use std::process::{Command, Stdio};
use views::View;
use views::calls::{Functions, Selection, What};
use views::timeline::{Timeline, Writer, chrome, perfetto, span_table, tree};
use views::trace_stats::{Trace, TraceStats};

/// Two threads, a system call, records that are missing, calls that do not return, a name with characters of every kind.
const USUAL: &str = "
    7: 1000 +main 1100 +f\u{1b}\"<b>\\@/lib/libf.so 1250 >write(1,\"x\")=1 1300 -f\u{1b}\"<b>\\@/lib/libf.so 1400 +f\u{1b}\"<b>\\@/lib/libf.so 2000 -main 2100 -before
    8: 1150 +work 1200 ?42 1500 +exit 1600 !
";

/// Names of the functions of a script.
struct Known(calls::Names);

impl Names for Known {
    fn fd(&self, _: u32, _: i32) -> Option<&FdName> {
        None
    }
    fn comm(&self, _: u32) -> Option<&[u8]> {
        Some(b"app")
    }
    fn function(&self, number: u32) -> Option<FunctionName<'_>> {
        let name = self.0.name(number)?;
        let module = self.0.module(number);
        Some(FunctionName { name, symbol: name, module, build_id: &[], address: 0, aliases: &[] })
    }
}

/// The events of a script.
fn events(script: &calls::Script) -> Vec<Vec<u8>> {
    let event = |event: &calls::Event| match event {
        calls::Event::Step(tid, step) => {
            let point = |schema| Call::of(schema).times(step.time, step.time).who(4711, *tid);
            match step.what {
                What::Entry(f) => point(functions::entry()).arg("number", f.into()),
                What::Exit(f) => point(functions::exit()).arg("number", f.into()),
                What::Gap { dropped } => point(functions::lost()).arg("records", dropped),
                _ => point(functions::begun()),
            }
        }
        calls::Event::SystemCall(tid, start, end, text) => {
            let name = text.split('(').next().unwrap_or_default();
            let call = Call::new(name).times(*start, *end).who(4711, *tid).ret(1);
            if name == "write" { call.arg("fd", 1).bytes("buf", b"x").arg("count", 1) } else { call }
        }
    };
    script.events.iter().map(|e| event(e).encode()).collect()
}

/// What is asked for.
#[derive(Clone, Default)]
struct Asked {
    selection: Selection,
    realtime_offset: Option<i64>,
    lost: Option<u64>,
}

/// A picture of a script, in the parts that are written one after the other.
fn parts(text: &str, writer: Writer, asked: &Asked) -> Vec<Vec<u8>> {
    let script = script(text);
    let all = events(&script);
    let known = Known(script.names);
    let stats = TraceStats::new(Trace { realtime_offset: asked.realtime_offset, ..Trace::default() });
    let mut view = Timeline::new(stats, writer).functions(asked.selection.clone(), |f| f.name.to_owned());
    let (mut parts, mut out) = (Vec::new(), Vec::new());
    for bytes in &all {
        let event = events::Event::parse(bytes).expect("an event");
        view.see(&event);
        view.event(&event, &known, &mut out);
    }
    asked.lost.iter().for_each(|lost| view.lost(*lost));
    view.end_in_parts(&mut out, &mut |part| parts.push(std::mem::take(part)));
    parts.push(out);
    parts
}

fn written(text: &str, writer: Writer, asked: &Asked) -> Vec<u8> {
    parts(text, writer, asked).concat()
}

fn chrome(text: &str, asked: &Asked) -> String {
    String::from_utf8(written(text, chrome::WRITER, asked)).expect("UTF-8")
}

fn perfetto(text: &str, asked: &Asked) -> Vec<u8> {
    let file = written(text, perfetto::WRITER, asked);
    // For other readers.
    if let Some(dir) = std::env::var_os("TRAPLINE_KEEP") {
        std::fs::write(std::path::Path::new(&dir).join("calls.pftrace"), &file).expect("a file");
    }
    file
}

fn lost(lost: u64) -> Asked {
    Asked { lost: Some(lost), ..Asked::default() }
}

#[test]
fn chrome_s_format_is_one_object() {
    let text = chrome(USUAL, &Asked::default());
    expect![[r#"
        {"displayTimeUnit":"ns","traceEvents":[
        {"ph":"M","name":"process_name","pid":4711,"tid":4711,"args":{"name":"app"}},
        {"ph":"M","name":"thread_name","pid":4711,"tid":7,"args":{"name":"app"}},
        {"ph":"M","name":"thread_name","pid":4711,"tid":8,"args":{"name":"app"}},
        {"ph":"X","name":"main","pid":4711,"tid":7,"cat":"app","ts":1.000,"dur":1.000},
        {"ph":"X","name":"f\\u{1b}\"<b>\\","pid":4711,"tid":7,"cat":"libf.so","ts":1.100,"dur":0.200},
        {"ph":"X","name":"f\\u{1b}\"<b>\\","pid":4711,"tid":7,"cat":"libf.so","ts":1.400,"dur":0.600,"args":{"end":"left without a recorded return"}},
        {"ph":"X","name":"write","pid":4711,"tid":7,"cat":"syscall","ts":1.240,"dur":0.010,"args":{"call":"write(1, \"x\", 1) = 1","result":"1"}},
        {"ph":"X","name":"work","pid":4711,"tid":8,"cat":"app","ts":1.150,"dur":0.450,"args":{"end":"has not returned"}},
        {"ph":"X","name":"exit","pid":4711,"tid":8,"cat":"app","ts":1.500,"dur":0.100,"args":{"end":"has not returned"}},
        {"ph":"i","name":"events are missing","pid":4711,"tid":8,"cat":"trapline","ts":1.200,"s":"t","args":{"events":"42"}}
        ]}
    "#]].assert_eq(&text);
    let file: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(file["traceEvents"].as_array().expect("a list").len(), 3 + 5 + 1 + 1);
    // A thread's gap has 42 of them.
    for (n, mark) in [
        (42, ""),
        (
            50,
            r#",
{"ph":"i","name":"events are missing","pid":0,"tid":0,"cat":"trapline","ts":2.100,"s":"g","args":{"events":"8"}}"#,
        ),
    ] {
        let with = text.replace("\n]}\n", &format!("{mark}\n],\"otherData\":{{\"lost\":{n}}}}}\n"));
        assert_eq!(chrome(USUAL, &lost(n)), with);
    }
    let none = chrome("", &Asked::default());
    assert_eq!(serde_json::from_str::<Value>(&none).expect("JSON")["traceEvents"], json!([]));
}

/// Numbers and types of the fields, by perfetto_trace.proto.
const PROTO: &str = r#"syntax = "proto2";
message Trace { repeated TracePacket packet = 1; }
message TracePacket {
    optional uint64 timestamp = 8; optional uint32 timestamp_clock_id = 58; optional uint32 trusted_packet_sequence_id = 10;
    optional uint32 sequence_flags = 13; optional ClockSnapshot clock_snapshot = 6;
    optional TrackEvent track_event = 11; optional InternedData interned_data = 12; optional TracePacketDefaults trace_packet_defaults = 59;
    optional TrackDescriptor track_descriptor = 60; optional TraceStats trace_stats = 35;
}
message TraceStats {
    message BufferStats { optional uint64 trace_writer_packet_loss = 19; }
    repeated BufferStats buffer_stats = 1;
}
message TracePacketDefaults { optional uint32 timestamp_clock_id = 58; }
message ClockSnapshot {
    message Clock { optional uint32 clock_id = 1; optional uint64 timestamp = 2; }
    repeated Clock clocks = 1; optional BuiltinClock primary_trace_clock = 2;
}
enum BuiltinClock { BUILTIN_CLOCK_REALTIME = 1; BUILTIN_CLOCK_MONOTONIC = 3; BUILTIN_CLOCK_BOOTTIME = 6; }
message TrackDescriptor {
    optional uint64 uuid = 1; optional uint64 parent_uuid = 5; optional string name = 2; optional ProcessDescriptor process = 3; optional ThreadDescriptor thread = 4;
}
message ProcessDescriptor { optional int32 pid = 1; optional string process_name = 6; }
message ThreadDescriptor { optional int32 pid = 1; optional int32 tid = 2; optional string thread_name = 5; }
message TrackEvent {
    enum Type { TYPE_UNSPECIFIED = 0; TYPE_SLICE_BEGIN = 1; TYPE_SLICE_END = 2; TYPE_INSTANT = 3; }
    repeated uint64 category_iids = 3; repeated DebugAnnotation debug_annotations = 4; optional Type type = 9; optional uint64 name_iid = 10;
    optional uint64 track_uuid = 11;
}
message DebugAnnotation { optional string name = 10; optional string string_value = 6; }
message InternedData { repeated EventCategory event_categories = 1; repeated EventName event_names = 2; }
message EventCategory { optional uint64 iid = 1; optional string name = 2; }
message EventName { optional uint64 iid = 1; optional string name = 2; }
"#;

/// A file as text; none without protoc.
#[track_caller]
fn decoded(file: &[u8]) -> Option<String> {
    if !testkit::has("protoc") {
        testkit::skip("package:protobuf-compiler", "no protoc");
        return None;
    }
    let dir = testkit::Scratch::new("perfetto");
    dir.write("trace.proto", PROTO.as_bytes());
    let mut protoc = Command::new("protoc");
    protoc.arg("--proto_path").arg(&*dir).args(["--decode=Trace", "trace.proto"]);
    let mut child = protoc.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("protoc");
    child.stdin.take().expect("a pipe").write_all(file).expect("protoc reads");
    let said = child.wait_with_output().expect("protoc ends");
    assert!(said.status.success());
    let text = String::from_utf8(said.stdout).expect("UTF-8");
    // Fields that the description lacks are shown as numbers.
    assert!(!text.lines().any(|l| l.trim_start().starts_with(|c: char| c.is_ascii_digit())), "{text}");
    Some(text)
}

#[test]
fn protoc_reads_a_timeline() {
    let asked = Asked { realtime_offset: Some(1_700_000_000_000_000_000), ..Asked::default() };
    if let Some(text) = decoded(&perfetto(USUAL, &asked)) {
        expect_file!["golden/timeline_perfetto.txt"].assert_eq(&text);
    }
}

#[test]
fn a_timeline_says_what_was_lost() {
    for (n, elsewhere) in [(42, 0), (50, 8)] {
        let file = perfetto(USUAL, &lost(n));
        if let Some(text) = decoded(&file) {
            assert!(text.ends_with(&format!(
                "  trace_stats {{\n    buffer_stats {{\n      trace_writer_packet_loss: {n}\n    }}\n  }}\n}}\n"
            )));
            // The name of the marks, and that of the track of those that are elsewhere.
            assert_eq!(text.matches("\"events are missing\"").count(), if elsewhere > 0 { 2 } else { 1 });
        }
        if let Some(text) = read_by_perfetto(&file) {
            let mark = format!("whole: 'events are missing' [trapline] at 2100 events='{elsewhere}'\n");
            assert_eq!(text.matches(&mark).count(), usize::from(elsewhere > 0), "{text}");
            assert!(text.ends_with(&format!("lost {n}\n")), "{text}");
        }
    }
}

/// Tables of everything say it too, in their last line.
#[test]
fn tables_say_what_was_lost() {
    let text = |writer, n| String::from_utf8(written(USUAL, writer, &lost(n))).expect("UTF-8");
    for (writer, last) in [
        (tree::WRITER, "50 events were lost, and are in no number here\n"),
        (span_table::WRITER, "50 events were lost, and are in no number here\n"),
        (tree::JSON, "{\"v\":1,\"type\":\"lost\",\"events\":50}\n"),
        (span_table::JSON, "{\"v\":1,\"type\":\"lost\",\"events\":50}\n"),
    ] {
        assert!(text(writer, 50).ends_with(last), "{}", text(writer, 50));
        assert!(!text(writer, 0).contains("lost"), "{}", text(writer, 0));
    }
}

#[test]
fn perfetto_s_own_classes_read_a_timeline() {
    let asked = Asked { realtime_offset: Some(1_700_000_000_000_000_000), ..Asked::default() };
    let Some(text) = read_by_perfetto(&perfetto(USUAL, &asked)) else { return };
    expect![[r#"
        clocks {3: 1000, 1: 1700000000000001000} primary 3
        process 4711 app
        thread 4711/7 app
        thread 4711/8 app
        4711/7:   'f\\u{1b}"<b>\\' [libf.so] 1100..1300
        4711/7:   'f\\u{1b}"<b>\\' [libf.so] 1400..2000 end='left without a recorded return'
        4711/7: 'main' [app] 1000..2000
        track 4711/7/calls
        4711/7/calls: 'write' [syscall] 1240..1250 call='write(1, "x", 1) = 1' result='1'
        4711/8:   'exit' [app] 1500..1600 end='has not returned'
        4711/8: 'work' [app] 1150..1600 end='has not returned'
        track 4711/8/missing
        4711/8/missing: 'events are missing' [trapline] at 1200 events='42'
    "#]]
    .assert_eq(&text);
}

/// Functions that are selected, and the system calls in them.
#[test]
fn a_timeline_has_the_calls_that_are_selected() {
    const CALLS: &str = "
        7: 10 +main 20 +f 25 +g 40 >getpid()=1 50 -g 60 -f 70 >getpid()=1 80 +g 90 -g 100 -main
        8: 15 >getpid()=1
    ";
    let of = |only: &[&str], without: &[&str], depth: usize| {
        let words = |all: &[&str]| all.iter().map(|w| (*w).to_owned()).collect();
        let selection = Selection { only: words(only), without: words(without), depth, ..Selection::default() };
        let file: Value = serde_json::from_str(&chrome(CALLS, &Asked { selection, ..Asked::default() })).expect("JSON");
        let slices = file["traceEvents"].as_array().expect("a list").iter().filter(|e| e["ph"] == "X");
        let slice = |e: &Value| format!("{} {} {}", e["name"].as_str().unwrap_or_default(), e["ts"], e["tid"]);
        slices.map(slice).collect::<Vec<_>>().join(", ")
    };
    let all = "main 0.01 7, f 0.02 7, g 0.08 7, g 0.025 7, getpid 0.03 7, getpid 0.06 7, getpid 0.005 8";
    assert_eq!(of(&[], &[], usize::MAX), all);
    assert_eq!(of(&["f"], &[], usize::MAX), "f 0.02 7, g 0.025 7, getpid 0.03 7");
    assert_eq!(of(&[], &["f"], usize::MAX), "main 0.01 7, g 0.08 7, getpid 0.06 7, getpid 0.005 8");
    assert_eq!(of(&[], &[], 1), "main 0.01 7, getpid 0.005 8");
}

#[test]
fn any_timeline_is_whole() {
    let mut rng = testkit::Random::new(0x9e7f);
    for round in 0..testkit::rounds(30) {
        // Entries and exits that do not match, losses, ends of threads, in three threads.
        let mut all = String::new();
        for tid in 7..10 {
            all += &format!("{tid}: ");
            (0..300).for_each(|n| {
                let f = rng.index(5);
                let word = match rng.index(10) {
                    0..=4 => format!("+f{f}"),
                    5..=7 => format!("-f{f}"),
                    8 => "?3".to_owned(),
                    _ => "!".to_owned(),
                };
                all += &format!("{} {word} ", n / 3 * 10);
            });
            all.push('\n');
        }
        let selection = Selection {
            only: if rng.below(2) == 0 { vec![] } else { vec!["f1".into(), "f3".into()] },
            without: if rng.below(2) == 0 { vec![] } else { vec!["f2".into()] },
            depth: rng.of(&[1, 3, usize::MAX]),
            shortest: 0,
        };
        let asked = Asked { selection, ..Asked::default() };
        let file: Value = serde_json::from_str(&chrome(&all, &asked)).expect("JSON");
        let slices = are_nested(&file);
        // Each run of Python takes long.
        if round < 3
            && let Some(text) = read_by_perfetto(&perfetto(&all, &asked))
        {
            assert_eq!(text.matches("' [app] ").count(), slices, "{text}");
        }
    }
}

/// Asserts that the slices of each thread are inside of each other, or beside each other; returns how many there are.
fn are_nested(file: &Value) -> usize {
    let micros = |e: &Value, key: &str| (e[key].as_f64().expect("a time") * 1000.0).round() as u64;
    let mut threads: HashMap<u64, Vec<(u64, u64)>> = HashMap::new();
    for e in file["traceEvents"].as_array().expect("a list").iter().filter(|e| e["ph"] == "X") {
        let start = micros(e, "ts");
        threads.entry(e["tid"].as_u64().expect("a thread")).or_default().push((start, start + micros(e, "dur")));
    }
    for slices in threads.values() {
        for (n, (start, end)) in slices.iter().enumerate() {
            let crosses = |(from, to): &&(u64, u64)| start < from && from < end && end < to;
            assert_eq!(slices.iter().find(crosses), None, "{n}: {start}..{end}");
        }
    }
    threads.values().map(Vec::len).sum()
}

#[test]
fn each_name_is_written_once_and_each_slice_ends() {
    let mut many = "7: 0 +main".to_owned();
    (1..100).for_each(|n| many += &format!(" {} +f{} {} -f{}", n * 10, n % 3, n * 10 + 5, n % 3));
    if let Some(text) = decoded(&perfetto(&many, &Asked::default())) {
        assert_eq!(text.matches("event_names").count(), 4);
        assert_eq!((text.matches("TYPE_SLICE_BEGIN").count(), text.matches("TYPE_SLICE_END").count()), (100, 100));
        assert!(!text.contains("BUILTIN_CLOCK_REALTIME") && !text.contains("clock_id: 1\n"), "{text}");
    }
}

/// Only a part of a large file is in memory.
#[test]
fn a_large_timeline_is_written_in_parts() {
    let mut many = "7: 0 +main".to_owned();
    (1..20_000).for_each(|n| many += &format!(" {} +f{} {} -f{}", n * 10, n % 3, n * 10 + 5, n % 3));
    for writer in [perfetto::WRITER, chrome::WRITER] {
        let all = parts(&many, writer, &Asked::default());
        assert!(all.len() > 5 && all.iter().all(|part| part.len() < 1 << 17), "{:?}", all.iter().map(Vec::len));
    }
    serde_json::from_str::<Value>(&chrome(&many, &Asked::default())).expect("JSON");
}

/// A recursion of any depth that a program has is in the file.
#[test]
fn a_timeline_is_as_deep_as_the_calls() {
    const DEPTH: usize = 3000;
    let mut deep = "7:".to_owned();
    (0..DEPTH).for_each(|n| deep += &format!(" {} +f", n * 10));
    (DEPTH..2 * DEPTH).for_each(|n| deep += &format!(" {} -f", n * 10));
    let file: Value = serde_json::from_str(&chrome(&deep, &Asked::default())).expect("JSON");
    assert_eq!(are_nested(&file), DEPTH);
    assert_eq!(file["otherData"], Value::Null);
}
