//! Golden tests of the tables that a report ends with: latencies and trace statistics. `UPDATE_EXPECT=1` writes them anew.
//!
//! Invariant: as in `golden.rs`; besides, text is printable ASCII, and no line is wider than was asked for.

mod build;

use build::Call;
use events::Event;
use events::layout::{CAP_INTERRUPTED, CAP_NO_RESULT, CAP_START_UNKNOWN};
use events::names::{AT_FDCWD, FdName, Names, NoNames};
use expect_test::expect_file;
use serde_json::json;
use views::View;
use views::latency::{By, Column, Latency, Order};
use views::trace_stats::{Missing, Stream, Trace, TraceStats};

/// Knows some descriptors of process 7, and hostile names.
struct Known(Vec<(i32, FdName)>);

impl Known {
    fn new() -> Known {
        let name = |path: &[u8], detail: &[u8]| FdName { path: path.to_vec(), detail: detail.to_vec() };
        Known(vec![
            (AT_FDCWD, name(b"/home/me", b"")),
            (3, name(b"/etc/passwd", b"")),
            (4, name(b"socket:[17]", b"TCP:[127.0.0.1:80->127.0.0.1:4000]")),
            (5, name(b"/tmp/\x1b[2J\n<\xff> \\ (deleted)", b"")),
            (9, name(b"/", b"")),
        ])
    }
}

impl Names for Known {
    fn fd(&self, pid: u32, fd: i32) -> Option<&FdName> {
        self.0.iter().find(|(n, _)| *n == fd && pid == 7).map(|(_, name)| name)
    }
    fn comm(&self, tid: u32) -> Option<&[u8]> {
        match tid {
            7 => Some(b"sh"),
            8 => Some(b"\x1b]0;x\x07\xff"),
            _ => None,
        }
    }
}

/// Calls of known length: files and sockets, failures, ends and beginnings that are not known, lengths up to the largest.
fn calls() -> Vec<Vec<u8>> {
    let took = |c: Call, ns: u64| c.times(1_000, 1_000 + ns);
    let on = |name: &str, fd: i64| Call::new(name).arg("fd", fd as u64);
    let open = |dir: i64, path: &[u8]| Call::new("openat").arg("dfd", dir as u64).str("filename", path);
    let (long, cwd) = ([b"/usr/lib/".as_slice(), &[b'x'; 200], b"/\x01end"].concat(), i64::from(AT_FDCWD));
    let mut all: Vec<Call> = (1..=100).map(|i| took(on("read", 3).ret(1), i * 1_000)).collect();
    all.extend([
        took(on("read", 0), 0),
        took(on("read", 3).ret(-11), 2_345_678),
        took(on("write", 4).ret(5).who(7, 8), 999),
        took(on("write", 5).ret(5).who(7, 8), 1_000),
        took(on("write", 77).ret(-9), 512),
        took(on("write", -1).ret(-9), 513),
        took(open(cwd, b"/etc/passwd").ret(3), 20_000),
        took(open(cwd, b"./notes").ret(3), 21_000),
        took(open(9, b"etc/passwd").ret(3), 22_000),
        took(open(55, b"etc/passwd").ret(-9).who(7, 9), 23_000),
        took(open(cwd, &long).ret(-2).who(8, 8), 1_500_000_000),
        took(Call::new("openat").arg("dfd", 3).fault("filename", 0xdead).ret(-14), 300),
        took(Call::new("newfstatat").arg("dfd", 3).str("filename", b"").arg("flag", 0x1000), 400),
        took(Call::new("utimensat").arg("dfd", 3).arg("filename", 0), 450),
        took(Call::new("symlink").str("oldname", b"../x").str("newname", b"link"), 4_000),
        took(Call::new("mq_unlink").str("u_name", b"queue").ret(-2), 700),
        took(Call::new("socket").arg("family", 2).arg("type", 1).ret(4), 9_000),
        took(Call::new("mmap").arg("len", 4096).arg("flags", 0x22).arg("fd", -1i64 as u64).ret(0x7000_0000), 3_000),
        took(Call::raw(0x270f, 0xc000_003e, [0; 6]).ret(-38), 100),
        took(Call::raw(3, 0x4000_0003, [0; 6]).ret(12), 120),
        Call::new("poll").times(0, u64::MAX),
        // Its clock went back.
        Call::new("getpid").times(2_000, 1_000).ret(7),
        on("read", 3).ret(-4).flags(CAP_START_UNKNOWN | CAP_INTERRUPTED),
        Call::new("pause").ret(-4).flags(CAP_START_UNKNOWN),
        Call::new("exit_group").flags(CAP_NO_RESULT),
        on("read", 3).flags(CAP_NO_RESULT | CAP_START_UNKNOWN),
        Call::process("exit").arg("code", 3),
    ]);
    all.iter().map(Call::encode).collect()
}

fn feed(view: &mut dyn View, events: &[Vec<u8>], names: &dyn Names) {
    let mut out = Vec::new();
    for bytes in events {
        view.event(&Event::parse(bytes).expect("the builder writes events that parse"), names, &mut out);
    }
    assert!(out.is_empty(), "silent until the end");
}

fn end(view: &mut dyn View) -> String {
    let mut out = Vec::new();
    view.end(&mut out);
    assert!(out.iter().all(|b| *b == b'\n' || (0x20..0x7f).contains(b)), "a control character came through");
    String::from_utf8(out).expect("ASCII")
}

fn latency(view: Latency) -> String {
    let mut view = view;
    feed(&mut view, &calls(), &Known::new());
    end(&mut view)
}

#[test]
fn latency_by_call_with_histograms() {
    let text = latency(Latency::new(By::Call).histograms(true));
    assert!(text.lines().all(|l| l.len() <= 100), "{text}");
    expect_file!["golden/latency_call.txt"].assert_eq(&text);
}

#[test]
fn latency_by_thread() {
    expect_file!["golden/latency_thread.txt"].assert_eq(&latency(Latency::new(By::Thread)));
}

#[test]
fn latency_by_path() {
    let text = latency(Latency::new(By::Path).order(Order::parse("calls").expect("an order")));
    assert!(text.lines().all(|l| l.len() <= 100), "{text}");
    expect_file!["golden/latency_path.txt"].assert_eq(&text);
}

#[test]
fn latency_by_descriptor_with_other_columns() {
    let columns = Column::parse("name,p99,time-percent,errors").expect("columns");
    let text = latency(Latency::new(By::Fd).order(Order::parse("p99").expect("an order")).columns(columns));
    expect_file!["golden/latency_fd.txt"].assert_eq(&text);
}

#[test]
fn latency_of_every_case_as_json() {
    let mut view = Latency::new(By::Path);
    feed(&mut view, &calls(), &Known::new());
    let mut out = Vec::new();
    view.write_json(&mut out);
    let text = String::from_utf8(out).expect("UTF-8");
    assert!(!text.trim_end().chars().any(char::is_control));
    let back: serde_json::Value = serde_json::from_str(&text).expect("valid JSON");
    assert_eq!(back, view.to_json());
    let pretty = serde_json::to_string_pretty(&back).expect("JSON");
    expect_file!["golden/latency_json.txt"].assert_eq(&(pretty + "\n"));
}

#[test]
fn latency_of_nothing() {
    let mut view = Latency::new(By::Call).histograms(true);
    feed(&mut view, &[Call::process("exit").encode()], &NoNames);
    assert_eq!(end(&mut view), "No calls.\n");
    assert_eq!(view.to_json()["total"]["p50_ns"], json!(null));
    feed(&mut view, &[Call::new("pause").flags(CAP_NO_RESULT).encode()], &NoNames);
    assert_eq!(end(&mut view), "No calls.\n1 call without a result: in no row\n");
}

#[test]
fn calls_without_a_row_of_their_own_are_counted_together() {
    let mut view = Latency::new(By::Thread).max_rows(2);
    let call = |tid: u32| Call::new("getpid").who(1, tid).times(0, u64::from(tid)).ret(1).encode();
    let all: Vec<Vec<u8>> = (1..=10).chain([1, 2, 3]).map(call).collect();
    feed(&mut view, &all, &NoNames);
    let v = view.to_json();
    assert_eq!(v["rows"].as_array().map(Vec::len), Some(2));
    assert_eq!(v["others"]["calls"], 9);
    assert_eq!(v["others"]["total_ns"], (3..=10).sum::<u64>() + 3);
    assert_eq!(v["total"]["calls"], 13);
    assert!(end(&mut view).contains("9 calls for which there was no room"));
}

#[test]
fn names_take_no_more_than_their_share() {
    let mut view = Latency::new(By::Path);
    let path = |i: usize| [format!("/{i:04}").as_bytes(), &[b'x'; 4090]].concat();
    let all: Vec<Vec<u8>> = (0..3000).map(|i| Call::new("chdir").str("filename", &path(i)).encode()).collect();
    feed(&mut view, &all, &NoNames);
    let rows = view.to_json()["rows"].as_array().map_or(0, Vec::len);
    assert_eq!(rows, views::latency::MAX_NAMES / path(0).len());
    assert_eq!(view.to_json()["total"]["calls"], 3000);
}

/// Every example of output in the document, which are the blocks of no language, is what a view showed.
#[test]
fn examples_of_the_document_are_real() {
    let goldens = [
        include_str!("golden/latency_call.txt"),
        include_str!("golden/trace_stats.txt"),
        include_str!("golden/by_stack.txt"),
        include_str!("golden/several_traces.txt"),
    ];
    let document = include_str!("../../../docs/REPORT.md");
    let blocks = document.split("```").skip(1).step_by(2).filter(|block| block.starts_with('\n'));
    let examples: Vec<&str> = blocks.flat_map(|block| block.trim().lines()).collect();
    assert!(examples.len() >= 9);
    for line in examples {
        let shown = |g: &str| g.lines().any(|l| l.trim() == line.trim());
        assert!(goldens.into_iter().any(shown), "in no golden: {line}");
    }
}

#[test]
fn orders_and_columns_have_names() {
    for name in ["time", "min", "max", "avg", "calls", "errors", "name", "nothing", "p50", "p90", "p99"] {
        let order = Order::parse(name).unwrap_or_else(|| panic!("{name}"));
        let mut view = Latency::new(By::Call).order(order);
        feed(&mut view, &calls(), &Known::new());
        let v = view.to_json();
        let member = match name {
            "time" => "total_ns".to_owned(),
            "calls" | "errors" | "name" => name.to_owned(),
            "nothing" => continue,
            _ => format!("{name}_ns"),
        };
        let values: Vec<_> = v["rows"].as_array().expect("rows").iter().map(|r| r[&member].clone()).collect();
        if name == "name" {
            // Calls without a schema come after the others.
            let named: Vec<&str> = values.iter().filter_map(|v| v.as_str()).filter(|n| !n.contains('0')).collect();
            assert!(named.iter().filter(|n| !n.contains('@')).is_sorted(), "{named:?}");
        } else {
            assert!(values.iter().map(|v| v.as_u64()).is_sorted_by(|a, b| a >= b), "{name}: {values:?}");
        }
    }
    assert_eq!(Order::parse("p42"), None);
    assert_eq!(Column::parse("calls").map(|c| c.len()), Some(2));
    assert_eq!(Column::parse("p50,p50"), None);
    assert_eq!(Column::parse("p51"), None);
    assert_eq!(["call", "thread", "path", "fd", "pid"].map(By::parse).iter().flatten().count(), 4);
}

fn trace() -> Trace {
    Trace {
        command: "sh -c '\u{1b}[2J\u{e9}'".into(),
        backend: "kernel".into(),
        host: "box".into(),
        kernel: "6.18.5 x86_64".into(),
        tracer: "trapline 0.1.0".into(),
        span: Some((1_000, 2_000_150_000)),
        realtime_offset: Some(1_000_000_000_000_000_000),
        ended: true,
        overwritten: Some(8),
        clamped: Some(0),
        ..Trace::default()
    }
}

fn trace_stats(trace: Trace) -> TraceStats {
    let mut t = TraceStats::new(trace);
    let stream = |name: &str, packets: u64| Stream {
        name: name.into(),
        packets,
        events: Some(120),
        bytes: packets << 18,
        discarded: packets,
        span: Some((1_000, 1_500_001_000)),
    };
    t.stream(stream("cpu0", 3));
    t.stream(stream("cpu1", 12));
    t.stream(Stream { name: "tracer".into(), ..Stream::default() });
    let all: Vec<Vec<u8>> = calls().into_iter().filter(|b| Event::parse(b).is_ok_and(|e| e.time() < 1 << 40)).collect();
    feed(&mut t, &all, &NoNames);
    t
}

#[test]
fn trace_stats_of_a_whole_trace() {
    let mut t = trace_stats(trace());
    t.foreign("sched_switch\n", 48, 5_000);
    assert!(t.taken("syscall:read", 110) && t.taken("syscall:close", 2) && !t.taken("syscall:nothing", 1));
    expect_file!["golden/trace_stats.txt"].assert_eq(&end(&mut t));
    let mut out = Vec::new();
    t.write_json(&mut out);
    let text = String::from_utf8(out).expect("UTF-8");
    assert!(!text.trim_end().chars().any(char::is_control));
    let back: serde_json::Value = serde_json::from_str(&text).expect("valid JSON");
    assert_eq!(back, t.to_json());
    expect_file!["golden/trace_stats_json.txt"].assert_eq(&(serde_json::to_string_pretty(&back).expect("JSON") + "\n"));
}

#[test]
fn trace_stats_of_a_trace_without_an_end() {
    let cut = Trace { ended: false, truncated: 4096, overwritten: None, clamped: None, span: None, ..trace() };
    expect_file!["golden/trace_stats_cut.txt"].assert_eq(&end(&mut trace_stats(cut)));
}

#[test]
fn trace_stats_of_a_trace_that_is_not_all_there() {
    let lines = |t: &mut TraceStats| {
        end(t).lines().filter(|l| l.starts_with("end ") || l.starts_with("missing ")).collect::<String>()
    };
    let with = |change: fn(&mut Trace)| {
        let mut all = trace();
        change(&mut all);
        trace_stats(all)
    };
    // What the streams say.
    let gone = |stream: &str, events| Missing { stream: stream.into(), packets: 2, events };
    let mut t = with(|_| ());
    assert_eq!((lines(&mut t), t.to_json()["complete"].clone()), ("end         complete".into(), json!(true)));
    let mut all = trace();
    all.missing = vec![gone("cpu0", Some(90)), gone("tr\nacer", None)];
    let mut t = trace_stats(all);
    assert_eq!(
        lines(&mut t),
        "end         incomplete: not all that was recorded is there\
         missing     2 packets of cpu0 with 90 events, 2 packets of tr\\012acer"
    );
    let v = t.to_json();
    assert_eq!((&v["complete"], &v["missing_events"], &v["live"]), (&json!(false), &json!(90), &json!(false)));
    assert_eq!(v["missing"][0], json!({"stream": "cpu0", "packets": 2, "events": 90}));
    // What the probes say, where the streams say nothing: 6 are missing, of which some may have gone for newer ones.
    for (overwritten, unwritten, words) in [
        (0, 0, "incomplete: not all that was recorded is there|missing     6 events"),
        (3, 2, "incomplete: not all that was recorded is there|missing     1 events"),
        (4, 2, "complete"),
    ] {
        let mut t = trace_stats(Trace { overwritten: Some(overwritten), unwritten, ..trace() });
        assert!(t.taken("syscall:read", 110));
        assert_eq!(lines(&mut t), format!("end         {}", words.replace('|', "")));
    }
    assert!(lines(&mut with(|t| t.truncated = 1)).contains("incomplete"));
    assert!(lines(&mut with(|t| (t.live, t.ended) = (true, false))).contains("the recording is still running"));
}

#[test]
fn trace_stats_of_nothing() {
    let mut t = TraceStats::new(Trace { ended: true, ..Trace::default() });
    assert_eq!(end(&mut t), "end         complete\nevents      0\nbookkeeping 0\ndiscarded   0\n");
    assert_eq!(t.to_json()["first_ns"], json!(null));
}

#[test]
fn probes_of_other_tracers_are_bounded() {
    let mut t = TraceStats::new(Trace::default());
    (0..views::trace_stats::MAX_FOREIGN as u64 + 5).for_each(|i| t.foreign(&format!("p{i}"), 1, i));
    t.foreign("p0", 1, 0);
    let probes = t.to_json()["probes"].as_array().cloned().expect("probes");
    assert_eq!(probes.len(), views::trace_stats::MAX_FOREIGN + 1);
    assert_eq!(probes.last().map(|p| (p["name"].clone(), p["events"].clone())), Some((json!("(others)"), json!(5))));
    assert_eq!(probes[0]["events"], 2);
}
