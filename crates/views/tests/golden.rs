//! Golden tests of JSON, record and summary over the cases of `build/cases.rs`. `UPDATE_EXPECT=1` writes them anew.
//!
//! Invariant: what the views say of an event follows from its bytes alone.

mod build;

use events::Event;
use events::names::{AT_FDCWD, FdName, Names, NoNames};
use expect_test::expect_file;
use views::calls::counted::Counted;
use views::json::Json;
use views::options::FdNames;
use views::profile::Frame;
use views::record::Record;
use views::stack::Place;
use views::summary::{Column, Sort, Summary};
use views::trace_stats::{Trace, TraceStats};
use views::violations::Violation;
use views::{Options, View};

/// Every case under its name, as `view` shows it.
fn show(view: &mut dyn View) -> String {
    let mut out = Vec::new();
    for (name, events) in build::cases::all() {
        out.extend_from_slice(format!("## {name}\n").as_bytes());
        for bytes in &events {
            let ev = Event::parse(bytes).expect("the builder writes events that parse");
            view.event(&ev, &NoNames, &mut out);
        }
        out.push(b'\n');
    }
    view.end(&mut out);
    String::from_utf8(out).expect("views write UTF-8")
}

#[test]
fn json() {
    let text = show(&mut Json::new(Options::default()));
    for line in text.lines().filter(|l| l.starts_with('{')) {
        serde_json::from_str::<serde_json::Value>(line).unwrap_or_else(|e| panic!("{e}: {line}"));
    }
    expect_file!["golden/json.txt"].assert_eq(&text);
}

#[test]
fn json_verbose() {
    let text = show(&mut Json::new(Options { verbose: true, numbers: true, ..Options::default() }));
    expect_file!["golden/json_verbose.txt"].assert_eq(&text);
}

#[test]
fn record() {
    expect_file!["golden/record.txt"].assert_eq(&show(&mut Record::new()));
}

/// The end of a summary over all cases, and a few calls of known length.
fn summary(sort: &str, columns: &str) -> String {
    let sort = Sort::parse(sort).expect("a sort order");
    let mut view = Summary::new(sort).columns(Column::parse(columns).expect("a list of columns"));
    let slow = |name: &str, ns: u64, ret: i64| build::Call::new(name).times(1_000, 1_000 + ns).ret(ret).encode();
    let mut all: Vec<Vec<u8>> = build::cases::all().into_iter().flat_map(|c| c.1).collect();
    all.extend([slow("read", 1_500_000_000, 0), slow("read", 999, -4), slow("set_mempolicy_home_node", 12_345_678, 0)]);
    let mut out = Vec::new();
    for bytes in &all {
        view.event(&Event::parse(bytes).expect("the builder writes events that parse"), &NoNames, &mut out);
    }
    assert!(out.is_empty(), "a summary is silent until the end");
    view.end(&mut out);
    String::from_utf8(out).expect("UTF-8")
}

#[test]
fn summary_by_time() {
    let columns = "time-percent,total-time,avg-time,calls,errors,name";
    expect_file!["golden/summary.txt"].assert_eq(&summary("time", columns));
}

#[test]
fn summary_by_errors_with_other_columns() {
    expect_file!["golden/summary_columns.txt"].assert_eq(&summary("errors", "name,max-time,min-time,calls,errors"));
}

#[test]
fn summary_of_nothing_is_nothing() {
    let mut out = Vec::new();
    Summary::new(Sort::Time).end(&mut out);
    assert!(out.is_empty());
}

#[test]
fn summary_orders_and_columns_are_those_of_strace() {
    assert_eq!(Sort::parse("shortest"), Some(Sort::Min));
    assert_eq!(Sort::parse("wurst"), None);
    assert_eq!(Column::parse("calls"), Some(vec![Column::Calls, Column::Name]));
    assert_eq!(Column::parse("calls,count"), None);
    assert_eq!(Column::parse(""), None);
}

/// The last line, where events were lost.
fn of_losses() -> String {
    let (mut view, mut out) = (Json::new(Options::default()), Vec::new());
    view.lost(17);
    view.end(&mut out);
    String::from_utf8(out).expect("JSON")
}

/// What tracers of functions have, as JSON.
fn of_tracers() -> String {
    let counted = Counted { function: "ns::parse", module: "/usr/bin/app", calls: 76, total: 2_509_622, own: 52_217 };
    let place = |function, offset, address| Place {
        frame: Frame { function, module: "/usr/bin/app", ..Frame::default() },
        offset: Some(offset),
        address: Some(address),
    };
    let stack = [place("draw", 0, 0x15f5), place("paint", 9, 0x161d)];
    let (thread, function) = ("worker-1", "draw");
    let violation = Violation { tid: 12, thread, function, time: 7_000, stack: &stack, ..Violation::default() };
    let mut out = Vec::new();
    views::calls::counted::json(&[counted], 1, &mut out);
    views::violations::json(&[violation], 0, &mut out);
    String::from_utf8(out).expect("JSON")
}

/// A process that executes a program, reads, and ends, as JSON.
fn of_processes() -> String {
    processes(views::timeline::tree::JSON)
}

fn processes(writer: views::timeline::Writer) -> String {
    let at = |c: build::Call, from: u64, to: u64| c.times(2_000_100_000 + from, 2_000_100_000 + to).who(8, 8);
    let execve =
        |file: &[u8], words: &[&[u8]]| build::Call::new("execve").str("filename", file).strv("argv", words).ret(0);
    let shell = execve(b"/bin/sh", &[b"sh"]).strv("envp", &[b"HOME=/root", b"PWD=/", b"TERM=vt100"]);
    let ls = execve(b"/usr/bin/ls", &[b"ls", b"/"]).strv("envp", &[b"HOME=/", b"LANG=C", b"PWD=/"]);
    let all = [
        shell.times(2_000_100_000, 2_000_100_040),
        build::Call::process("fork").arg("child", 8).arg("tid", 8).times(2_000_100_050, 2_000_100_050),
        at(build::Call::new("openat").str("filename", b"/etc/passwd").arg("flags", 0o2_000_000).ret(3), 60, 80),
        at(build::Call::process("exec").str("comm", b"ls"), 500, 500),
        at(ls, 100, 600),
        at(build::Call::new("read").arg("fd", 3).ret(832), 700, 900),
        at(build::Call::new("openat").str("filename", b"/none").ret(-2), 1_000, 1_200),
        at(build::Call::process("exit").arg("code", 2), 2_000, 2_000),
    ];
    let (mut view, mut out) = (views::timeline::Timeline::new(TraceStats::new(Trace::default()), writer), Vec::new());
    for bytes in all.iter().map(build::Call::encode) {
        let ev = Event::parse(&bytes).expect("the builder writes events that parse");
        view.see(&ev);
        view.event(&ev, &NoNames, &mut out);
    }
    view.end(&mut out);
    String::from_utf8(out).expect("UTF-8")
}

#[test]
fn processes_as_a_tree() {
    expect_file!["golden/processes.txt"].assert_eq(&processes(views::timeline::tree::WRITER));
}

/// A request that one thread takes and another one answers, as JSON.
fn of_spans() -> String {
    use views::timeline::span_table;
    use views::timeline::spans::Definition;
    let at =
        |tid: u32, c: build::Call, from: u64, to: u64| c.times(2_000_100_000 + from, 2_000_100_000 + to).who(7, tid);
    let all = [
        at(7, build::Call::new("recvfrom").arg("fd", 5).ret(10), 100, 600),
        at(8, build::Call::new("pread64").arg("fd", 3).ret(9), 700, 9_900),
        at(8, build::Call::new("sendto").arg("fd", 5).ret(10), 10_000, 10_600),
        at(7, build::Call::new("recvfrom").arg("fd", 6).ret(10), 11_000, 11_600),
    ];
    let probes = ["syscall:recvfrom", "syscall:sendto"].map(str::to_owned);
    let keys = ["fd", "fd"].map(str::to_owned);
    let request = Definition { name: "request".into(), probes, keys, first: false };
    let view = views::timeline::Timeline::new(TraceStats::new(Trace::default()), span_table::JSON);
    let (mut view, mut out) = (view.spans(vec![request], 1), Vec::new());
    for bytes in all.iter().map(build::Call::encode) {
        view.event(&Event::parse(&bytes).expect("an event"), &NoNames, &mut out);
    }
    view.end(&mut out);
    String::from_utf8(out).expect("JSON")
}

/// Every example in the documents is what a view wrote of a case.
#[test]
fn examples_of_the_documents_are_real() {
    let documents = [
        (
            include_str!("../../../docs/JSON.md"),
            show(&mut Json::new(Options::default())) + &of_losses() + &of_tracers() + &of_processes() + &of_spans(),
        ),
        (include_str!("../../../docs/RECORD.md"), show(&mut Record::new())),
    ];
    for (document, shown) in documents {
        let examples = document.lines().filter(|l| {
            l.starts_with("{\"v\"") || ["E 2", "X 2", "P 2", "D "].iter().any(|start| l.starts_with(start))
        });
        assert!(examples.clone().count() > 8);
        for line in examples {
            assert!(shown.lines().any(|l| l == line), "not written by any case: {line}");
        }
    }
}

/// Knows the working directory and descriptor 3.
struct Known(FdName, FdName);

impl Names for Known {
    fn fd(&self, pid: u32, fd: i32) -> Option<&FdName> {
        match fd {
            AT_FDCWD if pid == 7 => Some(&self.0),
            3 if pid == 7 => Some(&self.1),
            _ => None,
        }
    }
    fn comm(&self, _: u32) -> Option<&[u8]> {
        Some(b"sh")
    }
}

#[test]
fn json_names_descriptors() {
    let known = Known(
        FdName { path: b"/tmp".to_vec(), detail: Vec::new() },
        FdName { path: b"socket:[1]".to_vec(), detail: b"TCP:[1.2.3.4:5]".to_vec() },
    );
    let show = |fd_names: FdNames, comm: bool| {
        let mut out = Vec::new();
        let bytes = build::cases::open(0).ret(3).encode();
        let ev = Event::parse(&bytes).expect("the builder writes events that parse");
        Json::new(Options { fd_names, comm, ..Options::default() }).event(&ev, &known, &mut out);
        serde_json::from_slice::<serde_json::Value>(&out).expect("valid JSON")
    };
    let full = show(FdNames::FULL, true);
    assert_eq!(full["args"]["dfd"], serde_json::json!({"fd": "AT_FDCWD", "path": "/tmp"}));
    assert_eq!(full["ret"], serde_json::json!({"fd": 3, "path": "socket:[1]", "detail": "TCP:[1.2.3.4:5]"}));
    assert_eq!(full["tid_comm"], "sh");
    assert_eq!(show(FdNames::PATH, false)["ret"], serde_json::json!({"fd": 3, "path": "socket:[1]"}));
    assert_eq!(show(FdNames::NONE, false)["ret"], 3);
}
