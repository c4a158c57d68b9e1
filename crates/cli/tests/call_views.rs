//! `trapline report` draws function calls: of a trace that a backend of this test records.

use engine::Result;
use engine::control::{self, Order, State};
use engine::pipeline::backend::{Backend, Deliver, Polled};
use engine::pipeline::pump::Pump;
use engine::pipeline::recorder::{Config, Recorder};
use engine::pipeline::selection::Selection;
use engine::pipeline::source::Source;
use engine::stats::Report;
use events::StreamId;
use events::encode::{self, Fixed};
use events::functions::{Moment, Run};
use events::generated::P_FUNCTION;
use events::layout::Layout;
use events::stream::Scope;
use expect_test::expect;
use serde_json::Value;
use std::path::Path;
use std::process::Command;
use std::time::Duration;
use testkit::Scratch;

const MAIN: u32 = 1;
const PARSE: u32 = 2;
const LINE: u32 = 3;

/// The names of the functions of a usual program.
const NAMES: [&[u8]; 3] = [b"main", b"_ZN1a5parseEi", b"line\x1b[0m<&\""];

/// Delivers everything at once: two threads, in one of which records are missing.
struct Calls {
    over: bool,
    names: Vec<Vec<u8>>,
}

/// ns of the monotonic clock at which the counter is 0: after the recorder has begun.
fn zero() -> u64 {
    sys::time::monotonic() / 60_000_000_000 * 60_000_000_000 + 120_000_000_000
}

fn function(zero: u64, number: u32, name: &[u8]) -> Vec<u8> {
    let mut event = Vec::new();
    let fixed = Fixed { time: zero, cap: 0x15, tid: 7, pid: 7, ..Fixed::default() };
    encode::fixed(&mut event, &P_FUNCTION, &Layout::of(&P_FUNCTION), &fixed, &[1, 1, 1, number.into(), 0x1000]);
    encode::str_tail(&mut event, name);
    encode::str_tail(&mut event, b"/bin/program");
    encode::bytes_tail(&mut event, &[0xab; 20]);
    event
}

fn bytes(records: &[(u32, u32, bool)]) -> Vec<u8> {
    records.iter().flat_map(|(t, f, exit)| [*t, f << 1 | u32::from(*exit)].map(u32::to_le_bytes).concat()).collect()
}

/// main calls parse 100 times, which calls line twice.
fn usual() -> Vec<(u32, u32, bool)> {
    let mut all = vec![(10, MAIN, false)];
    for n in 0..100 {
        let t = 1000 * (n + 1);
        all.extend([(t, PARSE, false), (t + 10, LINE, false), (t + 110, LINE, true), (t + 120, LINE, false)]);
        all.extend([(t + 320, LINE, true), (t + 500, PARSE, true)]);
    }
    all.push((200_000, MAIN, true));
    all
}

impl Backend for Calls {
    fn name(&self) -> &'static str {
        "fake"
    }
    fn poll(&mut self, _room: bool, each: &mut dyn Deliver) -> Polled {
        if std::mem::replace(&mut self.over, true) {
            return Polled { events: 0, ended: true };
        }
        let zero = zero();
        let moment = |ns: u32| Moment { tsc: ns.into(), monotonic: zero + u64::from(ns) };
        for (number, name) in [MAIN, PARSE, LINE].into_iter().zip(&self.names) {
            each.event(StreamId::FUNCTIONS, &function(zero, number, name));
        }
        let mut run = |tid, begins, dropped, from, records: &[(u32, u32, bool)]| {
            let stream = StreamId::new(Scope::Thread(tid), 1);
            let (from, to, records) = (moment(from), moment(1 << 20), bytes(records));
            each.functions(&Run { stream, pid: 7, begins, records: &records, high: 0, from, to, dropped });
        };
        run(7, true, 0, 0, &usual());
        run(8, true, 0, 0, &[(500, LINE, false), (600, LINE, true)]);
        run(8, false, 3, 0, &[(700, LINE, false)]);
        each.settled(u64::MAX);
        Polled { events: 4, ended: false }
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

/// Records the trace of a usual program.
fn record(dir: &Path) {
    record_with(dir, NAMES.map(<[u8]>::to_vec).to_vec());
}

/// Records a trace with other names.
fn record_with(dir: &Path, names: Vec<Vec<u8>>) {
    let config =
        Config { dir: dir.into(), command: "program".into(), backend: "fake".into(), string: 32, ..Config::default() };
    let recorder = Recorder::new(&config).expect("a recorder");
    let mut pump =
        Pump::new(Source::new(Box::new(Calls { over: false, names }), Some(recorder)), Selection::all(), Vec::new());
    while !pump.turn().ended {}
    let _ = pump.source.report();
    let _ = pump.source.finish().expect("a trace");
}

struct Shown {
    out: Vec<u8>,
    err: String,
    code: Option<i32>,
}

fn report(dir: &Path, args: &[&str]) -> Shown {
    let mut command = Command::new(env!("CARGO_BIN_EXE_trapline"));
    let out = command.arg("report").arg(dir).args(args).output().expect("trapline");
    Shown { out: out.stdout, err: String::from_utf8(out.stderr).expect("UTF-8"), code: out.status.code() }
}

#[track_caller]
fn text(dir: &Path, args: &[&str]) -> String {
    let shown = report(dir, args);
    assert_eq!(shown.code, Some(0), "{}", shown.err);
    String::from_utf8(shown.out).expect("UTF-8")
}

#[test]
fn each_view_draws_the_calls_of_a_trace() {
    let scratch = Scratch::new("calls");
    let dir = scratch.join("trace");
    record(&dir);
    let tree = text(&dir, &["--as", "tree"]);
    expect![[r##"
        # DURATION     TID     FUNCTION
                    [    7] | main() {
           0.100 us [    8] | line\u{1b}[0m<&"();
                    [    8] | /* 3 records are missing */
         199.300 us [    8] | line\u{1b}[0m<&"(); /* has not returned */
                    [    7] |   a::parse() {
           0.100 us [    7] |     line\u{1b}[0m<&"();
           0.200 us [    7] |     line\u{1b}[0m<&"();
           0.500 us [    7] |   } /* a::parse */
                    [    7] |   a::parse() {
           0.100 us [    7] |     line\u{1b}[0m<&"();
           0.200 us [    7] |     line\u{1b}[0m<&"();
    "##]]
    .assert_eq(&tree.lines().take(12).map(|l| format!("{l}\n")).collect::<String>());
    expect![[r#"
        # DURATION     TID              MODULE FUNCTION
         199.990 us [    7]          program | main();
                    [    8]                  | /* 3 records are missing */
        # 3 records are missing; 1 call not returned at the end
    "#]]
    .assert_eq(&text(&dir, &["--as", "tree", "--function", "main", "--depth", "1", "--module"]));
    expect![[r#"
         total   self calls   min    avg   max module  function
        ------ ------ ----- ----- ------ ----- ------- ----------------
         229us  229us   202 100ns 1.14us 199us program line\u{1b}[0m<&"
         200us  150us     1 200us  200us 200us program main
        50.0us 20.0us   100 500ns  500ns 500ns program a::parse
        303 calls of 3 functions in 2 threads; 3 records are missing; 1 call not returned at the end
    "#]]
    .assert_eq(&text(&dir, &["--as", "functions"]));
    expect![[r#"
         total   self calls   min   avg   max module  function
        ------ ------ ----- ----- ----- ----- ------- --------
        50.0us 50.0us   100 500ns 500ns 500ns program a::parse
        1 more function
        101 calls of 2 functions in 2 threads; 3 records are missing; 1 call not returned at the end
    "#]]
    .assert_eq(&text(&dir, &["--as", "functions", "-S", "calls", "--rows", "1", "--no-function", "line*"]));
    expect![[r#"
        Total (s) Per Call (ms)      Calls Name
         0.000229      0.001135        202 line\u{1b}[0m<&"
         0.000199      0.199990          1 main
         0.000050      0.000500        100 a::parse
        # 3 events were lost
    "#]]
    .assert_eq(&text(&dir, &["--as", "stat"]));
    expect![[r#"
        line\u{1b}[0m<&" 199400
        main 149990
        main;a::parse 20000
        main;a::parse;line\u{1b}[0m<&" 30000
        [3 events were lost] 0
    "#]]
    .assert_eq(&text(&dir, &["--as", "folded"]));
    expect![[r#"
        %% 3 events were lost
        flowchart TD
          f1["main<br/>program<br/>200us (self 150us), 1x"]
          f2["a::parse<br/>program<br/>50.0us (self 20.0us), 100x"]
          f3["line#92;u{1b}[0m#60;#38;#34;<br/>program<br/>229us (self 229us), 202x"]
          f1 -->|"100x, 50.0us"| f2
          f2 -->|"200x, 30.0us"| f3
          note["3 events were lost"]
    "#]]
    .assert_eq(&text(&dir, &["--as", "mermaid"]));
    let graph = text(&dir, &["--as", "callgraph"]);
    assert!(graph.starts_with("digraph calls {") && graph.contains("3 events were lost"), "{graph}");
    let json = text(&dir, &["--as", "functions-json"]);
    assert_eq!(json.lines().last(), Some(r#"{"v":1,"type":"lost","events":3}"#));
    let flame = text(&dir, &["--as", "flame"]);
    assert!(flame.contains("a::parse") && flame.contains("; 3 events were lost<"), "{flame}");
    assert_eq!(text(&dir, &["--as", "cat"]).lines().count(), 2 * (1 + 300 + 2) + 3);
    for line in text(&dir, &["--as", "calls-json"]).lines() {
        let call: Value = serde_json::from_str(line).expect("JSON");
        assert!(call["type"] == "call" || call["type"] == "gap", "{line}");
    }
    let chrome = scratch.join("calls.json");
    assert_eq!(text(&dir, &["--as", &format!("timeline={}", chrome.display())]), "");
    let file: Value = serde_json::from_slice(&std::fs::read(&chrome).expect("a file")).expect("JSON");
    assert_eq!(file["traceEvents"].as_array().expect("a list").len(), 1 + 2 + 1 + 300 + 2 + 1);
    assert_eq!(file["otherData"]["lost"], 3);
    assert!(report(&dir, &["--as", "timeline"]).out.len() > 600 * 20);
}

/// Names of two functions of one template, and of one that is not mangled.
const TEMPLATES: [&[u8]; 3] = [b"main", b"_ZN1a5parseIiEEvT_", b"_ZN1a5parseIcEEvT_"];

#[test]
fn functions_have_the_requested_names() {
    let scratch = Scratch::new("calls-demangled");
    let dir = scratch.join("trace");
    record_with(&dir, TEMPLATES.map(<[u8]>::to_vec).to_vec());
    // Calls of one inside of the other count once.
    expect![[r#"
        total  self calls   min   avg   max module  function
        ----- ----- ----- ----- ----- ----- ------- --------
        249us 249us   302 100ns 925ns 199us program a::parse
        200us 150us     1 200us 200us 200us program main
        303 calls of 2 functions in 2 threads; 3 records are missing; 1 call not returned at the end
    "#]]
    .assert_eq(&text(&dir, &["--as", "functions"]));
    let names = |args: &[&str]| {
        let table = text(&dir, &[&["--as", "stat"][..], args].concat());
        let last = |line: &str| line.split_whitespace().skip(3).collect::<Vec<_>>().join(" ");
        table.lines().skip(1).filter(|l| !l.starts_with('#')).map(last).collect::<Vec<_>>().join("; ")
    };
    assert_eq!(names(&["--demangle", "full"]), "a::parse<char>(char); main; a::parse<int>(int)");
    assert_eq!(names(&["--demangle", "no"]), "_ZN1a5parseIcEEvT_; main; _ZN1a5parseIiEEvT_");
    // What is treated differently is not one function.
    assert_eq!(names(&["-N", "a::parse<char>"]), "main; a::parse");
    assert_eq!(names(&["-e", "function:a::*"]), "a::parse");
    assert_eq!(names(&["-e", "function:main"]), "main");
    assert_eq!(names(&["-F", "a::parse", "-D", "1"]), "a::parse");
    let tree = |args: &[&str]| text(&dir, &[&["--as", "tree"][..], args].concat());
    assert!(tree(&[]).contains(" a::parse();\n"), "{}", tree(&[]));
    assert!(tree(&["--demangle", "full"]).contains(" a::parse<char>(char);\n"));
    assert!(!tree(&["-e", "function:main"]).contains("parse"));
    assert!(tree(&["--tid", "8"]).lines().all(|l| l.starts_with('#') || l.contains("[    8]")));
    assert!(text(&dir, &["--as", "calls-json"]).contains(r#""function":"a::parse<int>""#));
    let json = text(&dir, &["--as", "functions-json", "-S", "calls"]);
    let first: Value = serde_json::from_str(json.lines().next().expect("a line")).expect("JSON");
    assert_eq!((&first["function"], &first["calls"]), (&"a::parse<char>".into(), &202.into()));
}

#[test]
fn two_traces_are_compared() {
    let scratch = Scratch::new("calls-compared");
    let (a, b) = (scratch.join("a"), scratch.join("b"));
    record(&a);
    record_with(&b, [NAMES[0], b"other", NAMES[2]].map(<[u8]>::to_vec).to_vec());
    let diff = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_trapline"));
        let out = command.arg("diff").args([&a, &b]).args(args).output().expect("trapline");
        (
            out.status.code(),
            String::from_utf8(out.stdout).expect("UTF-8"),
            String::from_utf8_lossy(&out.stderr).into_owned(),
        )
    };
    let (code, table, err) = diff(&["-q"]);
    assert_eq!((code, &*err), (Some(0), ""));
    expect![[r#"
         total  change   self  change calls change module  function
        ------ ------- ------ ------- ----- ------ ------- --------
        50.0us +50.0us 20.0us +20.0us   100   +100 program other
           0ns -50.0us    0ns -20.0us     0   -100 program a::parse
        before: 3 records are missing; 1 call not returned at the end
        after: 3 records are missing; 1 call not returned at the end
    "#]]
    .assert_eq(&table);
    assert_eq!(diff(&["--as", "functions"]).1, table);
    assert!(diff(&["--color", "always"]).1.contains("\x1b[31m+50.0us\x1b[0m"));
    let json = diff(&["--as", "functions-json", "-S", "name"]).1;
    let lines: Vec<Value> = json.lines().map(|l| serde_json::from_str(l).expect("JSON")).collect();
    assert_eq!((lines.len(), &lines[0]["function"], &lines[0]["after"]), (2, &"a::parse".into(), &Value::Null));
    assert_eq!(lines[1]["after"]["calls"], 100);
    // The command as it was called before there were calls.
    let mut old = Command::new(env!("CARGO_BIN_EXE_trapline"));
    let out = old.args(["profile", "diff", "-q"]).args([&a, &b]).output().expect("trapline");
    assert_eq!(String::from_utf8_lossy(&out.stdout), table);
    for (args, want) in
        [(&["--as", "table"][..], "has a stack"), (&["-S", "size"], "no such order"), (&["--as", "tree"], "tree")]
    {
        let (code, _, err) = diff(args);
        assert!(code.is_some_and(|c| c > 0) && err.contains(want), "{args:?} {code:?} {err}");
    }
}

#[test]
fn what_cannot_be_selected_is_refused() {
    let scratch = Scratch::new("calls-refused");
    let dir = scratch.join("trace");
    record(&dir);
    for (args, want) in [
        (&["--as", "functions", "-e", "openat"][..], "--function"),
        (&["--as", "stat", "-e", "function:main:entry"], "-e function:main:entry"),
        (&["--as", "stat", "--where", "retval > 0"], "--where"),
        (&["--as", "functions", "-S", "size"], "no such order"),
        (&["--as", "functions", "--follow"], "does not follow"),
        (&["--as", "tree", "--min-time", "soon"], "--min-time soon"),
    ] {
        let shown = report(&dir, args);
        assert_eq!(shown.code, Some(2), "{args:?} {}", shown.err);
        assert!(shown.err.contains(want), "{args:?} {}", shown.err);
    }
}

/// All views of a trace, a file each.
const VIEWS: [&str; 13] = [
    "tree",
    "cat",
    "stat",
    "functions",
    "functions-json",
    "callgraph",
    "mermaid",
    "flame",
    "folded",
    "timeline",
    "calls-json",
    "text",
    "json",
];

/// Shows a trace by all views, each in a file of `to` with its name.
fn all_views(dir: &Path, to: &Path) -> Shown {
    let wanted = VIEWS.map(|v| format!("--as={v}={}", to.join(v).display()));
    let chrome = format!("--as=timeline={}", to.join("timeline.json").display());
    report(dir, &wanted.iter().chain([&chrome]).map(String::as_str).collect::<Vec<_>>())
}

#[test]
fn names_of_any_kind_are_bounded_and_control_nothing() {
    let scratch = Scratch::new("calls-names");
    let dir = scratch.join("trace");
    let long = [&b"_Z"[..], &[b'x'; 64 << 10]].concat();
    let hostile = b"\xff\xfe\x1b]0;title\x07\n\r\0\xe2\x80\xae</script><!--]]>\";%{".to_vec();
    record_with(&dir, vec![hostile, long, vec![b'<'; 30_000]]);
    let shown = all_views(&dir, &scratch.join(""));
    assert_eq!(shown.code, Some(0), "{}", shown.err);
    for view in VIEWS.iter().filter(|v| **v != "timeline") {
        let bytes = std::fs::read(scratch.join(view)).expect("a file");
        let text = std::str::from_utf8(&bytes).unwrap_or_else(|e| panic!("{view}: {e}"));
        assert!(!text.chars().any(|c| c.is_control() && c != '\n' || c == '\u{202e}'), "{view}");
        assert!(!text.contains("</script><!--"), "{view}");
        if view.ends_with("json") {
            text.lines().for_each(|line| drop(serde_json::from_str::<Value>(line).expect("JSON")));
        } else {
            let longest = text.lines().map(str::len).max().unwrap_or(0);
            let bound = match *view {
                // What other programs read, and events as they are, have whole names.
                "folded" | "flame" | "text" => 1 << 20,
                _ => 10_000,
            };
            assert!(longest < bound, "{view}: a line of {longest} bytes");
        }
    }
    let chrome = std::fs::read(scratch.join("timeline.json")).expect("a file");
    serde_json::from_slice::<Value>(&chrome).expect("JSON");
}

#[test]
fn damaged_traces_are_shown_as_far_as_they_go() {
    let scratch = Scratch::new("calls-damaged");
    let whole = scratch.join("whole");
    record(&whole);
    let mut rng = testkit::Random::new(0xda3a6e);
    let files: Vec<_> = std::fs::read_dir(&whole).expect("a directory").flatten().collect();
    let files: Vec<_> = files.iter().filter(|f| f.path().is_file()).map(std::fs::DirEntry::file_name).collect();
    for round in 0..testkit::rounds(10) {
        let dir = scratch.join(format!("damaged{round}"));
        let copied = Command::new("cp").arg("-r").args([&whole, &dir]).status().expect("cp");
        assert!(copied.success());
        for _ in 0..1 + rng.index(3) {
            let file = dir.join(&files[rng.index(files.len())]);
            let mut bytes = std::fs::read(&file).expect("a file");
            let at = rng.index(bytes.len().max(1));
            match rng.index(3) {
                0 => bytes.truncate(at),
                // Headers of packets are where most can go wrong.
                1 if bytes.len() > 200 => bytes[at % 200] ^= 1 << rng.index(8),
                _ => bytes.get_mut(at).into_iter().for_each(|b| *b = rng.next() as u8),
            }
            std::fs::write(&file, bytes).expect("a file");
        }
        let to = scratch.join(format!("views{round}"));
        std::fs::create_dir(&to).expect("a directory");
        let look = |what: &str, shown: &Shown| {
            let known = matches!(shown.code, Some(0 | 125));
            assert!(
                known && !shown.err.contains("panicked"),
                "{what} {}: {:?} {}",
                dir.display(),
                shown.code,
                shown.err
            );
        };
        look("report", &all_views(&dir, &to));
        for command in ["repair", "pack"] {
            let out = Command::new(env!("CARGO_BIN_EXE_trapline")).arg(command).arg(&dir).output().expect("trapline");
            let err = String::from_utf8_lossy(&out.stderr).into_owned();
            look(command, &Shown { out: out.stdout, err, code: out.status.code() });
        }
        look("report after repair", &all_views(&dir, &to));
        let diff =
            Command::new(env!("CARGO_BIN_EXE_trapline")).arg("diff").args([&whole, &dir]).output().expect("trapline");
        let err = String::from_utf8_lossy(&diff.stderr).into_owned();
        // What is no trace any more may be taken for another kind of recording.
        let _ = std::str::from_utf8(&diff.stdout).expect("UTF-8");
        look("diff", &Shown { out: diff.stdout, err, code: diff.status.code() });
    }
}
