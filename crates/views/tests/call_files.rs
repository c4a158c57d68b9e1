//! Views of calls for other programs: JSON, Chrome's format, Perfetto's format, which protoc reads with the fields of perfetto_trace.proto
//! (google/perfetto) that are used here, and Perfetto's own classes read as a whole. Skipped without protoc, or without these classes.

mod calls;
mod perfetto_classes;

use calls::script;
use expect_test::{expect, expect_file};
use perfetto_classes::read_by_perfetto;
use serde_json::Value;
use std::io::Write;
use std::process::{Command, Stdio};
use views::calls::json::Json;
use views::calls::timeline::Timeline;
use views::calls::timeline::chrome::Chrome;
use views::calls::timeline::perfetto::Perfetto;
use views::calls::{CallView, Selection};

/// Two threads, a system call, records that are missing, calls that do not return, a name with characters of every kind.
const USUAL: &str = "
    7: 1000 +main 1100 +f\u{1b}\"<b>\\@/lib/libf.so 1250 >write(1,\"x\")=1 1300 -f\u{1b}\"<b>\\@/lib/libf.so 1400 +f\u{1b}\"<b>\\@/lib/libf.so 2000 -main 2100 -before
    8: 1150 +work 1200 ?42 1500 +exit 1600 !
";

#[test]
fn json_has_an_object_for_each_call() {
    let text = script(USUAL).shown(Json::new(Selection::default()));
    expect![[r#"
        {"v":1,"type":"gap","pid":4711,"tid":8,"tid_comm":"app","time_ns":1200,"dropped":42}
        {"v":1,"type":"call","pid":4711,"tid":7,"tid_comm":"app","function":"f\u001b\"<b>\\","module":"/lib/libf.so","start_ns":1100,"duration_ns":200,"self_ns":200,"depth":1}
        {"v":1,"type":"call","pid":4711,"tid":8,"tid_comm":"app","function":"exit","module":"/usr/bin/app","start_ns":1500,"duration_ns":100,"self_ns":100,"depth":1,"unfinished":true}
        {"v":1,"type":"call","pid":4711,"tid":8,"tid_comm":"app","function":"work","module":"/usr/bin/app","start_ns":1150,"duration_ns":450,"self_ns":350,"depth":0,"unfinished":true,"across_gap":true}
        {"v":1,"type":"call","pid":4711,"tid":7,"tid_comm":"app","function":"f\u001b\"<b>\\","module":"/lib/libf.so","start_ns":1400,"duration_ns":600,"self_ns":600,"depth":1,"left":true}
        {"v":1,"type":"call","pid":4711,"tid":7,"tid_comm":"app","function":"main","module":"/usr/bin/app","start_ns":1000,"duration_ns":1000,"self_ns":200,"depth":0}
        {"v":1,"type":"return","pid":4711,"tid":7,"tid_comm":"app","function":"before","module":"/usr/bin/app","time_ns":2100}
    "#]].assert_eq(&text);
    for line in text.lines() {
        let object: Value = serde_json::from_str(line).expect("JSON");
        assert!(object.is_object() && !line.chars().any(char::is_control), "{line}");
    }
    let long = script(USUAL).shown(Json::new(Selection { shortest: 1000, ..Selection::default() }));
    assert_eq!(long.matches("\"type\":\"call\"").count(), 1);
}

#[test]
fn chrome_s_format_is_one_object() {
    let text = script(USUAL).shown(Timeline::new(Chrome::new(), Selection::default()));
    expect![[r#"
        {"displayTimeUnit":"ns","traceEvents":[
        {"ph":"M","name":"process_name","pid":4711,"tid":7,"args":{"name":"app"}},
        {"ph":"M","name":"thread_name","pid":4711,"tid":7,"args":{"name":"app"}},
        {"ph":"M","name":"thread_name","pid":4711,"tid":8,"args":{"name":"app"}},
        {"ph":"i","name":"records are missing","pid":4711,"tid":8,"ts":1.200,"s":"t","args":{"records":"42"}},
        {"ph":"X","name":"write","pid":4711,"tid":7,"cat":"syscall","ts":1.240,"dur":0.010,"args":{"call":"write(1,\"x\")=1"}},
        {"ph":"X","name":"f\\u{1b}\"<b>\\","pid":4711,"tid":7,"cat":"libf.so","ts":1.100,"dur":0.200},
        {"ph":"X","name":"exit","pid":4711,"tid":8,"cat":"app","ts":1.500,"dur":0.100,"args":{"end":"has not returned"}},
        {"ph":"X","name":"work","pid":4711,"tid":8,"cat":"app","ts":1.150,"dur":0.450,"args":{"end":"has not returned"}},
        {"ph":"X","name":"f\\u{1b}\"<b>\\","pid":4711,"tid":7,"cat":"libf.so","ts":1.400,"dur":0.600,"args":{"end":"left without a recorded return"}},
        {"ph":"X","name":"main","pid":4711,"tid":7,"cat":"app","ts":1.000,"dur":1.000}
        ]}
    "#]].assert_eq(&text);
    let file: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(file["traceEvents"].as_array().expect("a list").len(), 3 + 5 + 1 + 1);
    // A thread's gap has 42 of them.
    for (lost, mark) in [
        (42, ""),
        (
            50,
            r#",
{"ph":"i","name":"events are missing","pid":0,"tid":0,"ts":2.100,"s":"g","args":{"events":"8"}}"#,
        ),
    ] {
        let mut view = Timeline::new(Chrome::new(), Selection::default());
        view.lost(lost);
        let with = text.replace("\n]}\n", &format!("{mark}\n],\"otherData\":{{\"lost\":{lost}}}}}\n"));
        assert_eq!(script(USUAL).shown(view), with);
    }
    let none = script("").shown(Timeline::new(Chrome::new(), Selection::default()));
    assert_eq!(serde_json::from_str::<Value>(&none).expect("JSON")["traceEvents"], serde_json::json!([]));
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

fn perfetto(text: &str, realtime_offset: Option<i64>) -> Vec<u8> {
    perfetto_with(text, realtime_offset, 0)
}

fn perfetto_with(text: &str, realtime_offset: Option<i64>, lost: u64) -> Vec<u8> {
    let mut view: Box<dyn CallView> = Box::new(Timeline::new(Perfetto::new(realtime_offset), Selection::default()));
    view.lost(lost);
    let file = script(text).bytes(&mut *view);
    // For other readers.
    if let Some(dir) = std::env::var_os("TRAPLINE_KEEP") {
        std::fs::write(std::path::Path::new(&dir).join("calls.pftrace"), &file).expect("a file");
    }
    file
}

#[test]
fn protoc_reads_a_timeline() {
    if let Some(text) = decoded(&perfetto(USUAL, Some(1_700_000_000_000_000_000))) {
        expect_file!["golden/calls_perfetto.txt"].assert_eq(&text);
    }
}

#[test]
fn a_timeline_says_what_was_lost() {
    for (lost, elsewhere) in [(42, 0), (50, 8)] {
        let file = perfetto_with(USUAL, None, lost);
        if let Some(text) = decoded(&file) {
            assert!(text.ends_with(&format!(
                "  trace_stats {{\n    buffer_stats {{\n      trace_writer_packet_loss: {lost}\n    }}\n  }}\n}}\n"
            )));
            assert_eq!(text.matches("events are missing").count(), if elsewhere > 0 { 2 } else { 0 });
        }
        if let Some(text) = read_by_perfetto(&file) {
            let mark = format!("whole: 'events are missing' [trapline] at 2100 events='{elsewhere}'\n");
            assert_eq!(text.matches(&mark).count(), usize::from(elsewhere > 0), "{text}");
            assert!(text.ends_with(&format!("lost {lost}\n")), "{text}");
        }
    }
}

#[test]
fn perfetto_s_own_classes_read_a_timeline() {
    let Some(text) = read_by_perfetto(&perfetto(USUAL, Some(1_700_000_000_000_000_000))) else { return };
    expect![[r#"
        clocks {3: 1000, 1: 1700000000000001000} primary 3
        process 4711 app
        thread 4711/7 app
        thread 4711/8 app
        4711/8:   'records are missing' [trapline] at 1200 records='42'
        4711/7:     'write' [syscall] 1240..1250 call='write(1,"x")=1'
        4711/7:   'f\\u{1b}"<b>\\' [libf.so] 1100..1300
        4711/8:   'exit' [app] 1500..1600 end='has not returned'
        4711/8: 'work' [app] 1150..1600 end='has not returned'
        4711/7:   'f\\u{1b}"<b>\\' [libf.so] 1400..2000 end='left without a recorded return'
        4711/7: 'main' [app] 1000..2000
    "#]]
    .assert_eq(&text);
}

#[test]
fn perfetto_s_own_classes_read_any_timeline() {
    let mut rng = testkit::Random::new(0x9e7f);
    for _ in 0..3 {
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
                all += &format!("{} {word} ", n * 10);
            });
            all.push('\n');
        }
        let Some(text) = read_by_perfetto(&perfetto(&all, None)) else { return };
        assert!(text.contains("'f0' [app] "), "{text}");
    }
}

#[test]
fn each_name_is_written_once_and_each_slice_ends() {
    let mut many = "7: 0 +main".to_owned();
    (1..100).for_each(|n| many += &format!(" {} +f{} {} -f{}", n * 10, n % 3, n * 10 + 5, n % 3));
    if let Some(text) = decoded(&perfetto(&many, None)) {
        assert_eq!(text.matches("event_names").count(), 4);
        assert_eq!((text.matches("TYPE_SLICE_BEGIN").count(), text.matches("TYPE_SLICE_END").count()), (100, 100));
        assert!(!text.contains("BUILTIN_CLOCK_REALTIME") && !text.contains("clock_id: 1\n"), "{text}");
    }
}
