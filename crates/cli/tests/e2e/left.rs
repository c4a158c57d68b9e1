//! Calls that end otherwise than by a return: left by exceptions and jumps, by a tail call, or open at the end. Which calls there are, and by
//! whom, is as gdb counts it.

use crate::lab::{self, User, compiled, scratch};
use serde_json::Value;
use std::collections::BTreeMap;
use std::process::Command;

/// How often a caller has called a function.
type Edges = BTreeMap<(String, String), u64>;

/// A recording of a command's functions.
struct Recorded {
    dir: String,
}

/// Records with these options, without loss. The program does what it does untraced.
#[track_caller]
fn record(options: &[&str], command: &[&str]) -> Recorded {
    let bare = lab::run(&mut lab::as_user(User::Me, command));
    let (dir, stats) = (scratch().join("trace"), scratch().join("stats"));
    let [dir, stats] = [dir, stats].map(|path| path.to_str().expect("UTF-8").to_owned());
    let fixed = ["graph", "-q", "--on-full", "block", "--stats", &stats, "-o", &dir];
    let out = lab::run(&mut lab::trapline(User::Me, &[&fixed, options, &["--"], command].concat()));
    assert_eq!((out.status, out.out()), (bare.status, bare.out()), "{}", out.stderr);
    let stats: Value = serde_json::from_slice(&std::fs::read(&stats).expect("statistics")).expect("JSON");
    assert_eq!(stats["dropped"], 0, "{stats}");
    Recorded { dir }
}

impl Recorded {
    #[track_caller]
    fn shown(&self, view: &str) -> String {
        let out = lab::run(&mut lab::trapline(User::Me, &["report", "-q", "--as", view, &self.dir]));
        assert_eq!((out.code(), out.stderr.as_str()), (0, ""), "{view}");
        out.out().to_owned()
    }

    #[track_caller]
    fn json(&self, view: &str) -> Vec<Value> {
        self.shown(view).lines().map(|l| serde_json::from_str(l).unwrap_or_else(|e| panic!("{e}: {l}"))).collect()
    }

    /// The calls of a function.
    #[track_caller]
    fn calls(&self, name: &str) -> Vec<Value> {
        self.json("calls-json").into_iter().filter(|call| call["function"] == name).collect()
    }

    /// Who has called whom among these functions. Each exit is that of the innermost call, whose entry was recorded.
    #[track_caller]
    fn edges(&self, functions: &[&str]) -> Edges {
        let (mut open, mut edges) = (BTreeMap::<u64, Vec<String>>::new(), Edges::new());
        for event in self.json("json") {
            let Some(function) = event["args"]["function"].as_str().map(str::to_owned) else { continue };
            if !functions.contains(&function.as_str()) {
                continue;
            }
            let stack = open.entry(event["tid"].as_u64().expect("a thread")).or_default();
            if event["name"] == "function:entry" {
                let caller = stack.last().map_or("-", String::as_str).to_owned();
                *edges.entry((caller, function.clone())).or_default() += 1;
                stack.push(function);
            } else {
                assert_eq!(stack.pop(), Some(function), "{event}");
            }
        }
        assert!(open.values().all(Vec::is_empty), "{open:?}");
        edges
    }
}

/// The edges that gdb counts at breakpoints; None without gdb.
#[track_caller]
fn by_gdb(functions: &[&str], command: &[&str]) -> Option<Edges> {
    if !lab::has("gdb") {
        lab::skip("package:gdb", "no gdb to count calls with");
        return None;
    }
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/e2e/calls.py");
    let mut gdb = Command::new("gdb");
    gdb.args(["-nx", "-q", "-batch", "-x", script, "--args"]).args(command).env("FUNCTIONS", functions.join(" "));
    let out = lab::run(&mut gdb);
    let text = out.out();
    let call = |line: &str| -> Option<((String, String), u64)> {
        let mut words = line.strip_prefix("call ")?.split(' ');
        let mut word = || words.next().map(str::to_owned);
        Some(((word()?, word()?), word()?.parse().ok()?))
    };
    let edges: Edges = text.lines().filter_map(call).collect();
    assert!(!edges.is_empty(), "{text} {}", out.stderr);
    Some(edges)
}

/// Calls that may take less time than the counter shows, so that any minimum leaves them out. They call nothing.
const BRIEF: [&str; 5] = ["after", "thrower", "cleaned", "jumper", "bare"];

/// Calls and callers are those that gdb counts, with each kind of stub.
#[track_caller]
fn as_gdb_counts(program: &str, functions: &[&str]) {
    let Some(wanted) = by_gdb(functions, &[program]) else { return };
    let longer: Vec<&str> = functions.iter().copied().filter(|f| !BRIEF.contains(f)).collect();
    for (options, functions) in [(&[][..], functions), (&["-t", "1ns"], &longer), (&["--args"], functions)] {
        let wanted = wanted.iter().filter(|((_, callee), _)| functions.contains(&callee.as_str()));
        let recorded = record(options, &[program]);
        assert_eq!(recorded.edges(functions), wanted.map(|(e, n)| (e.clone(), *n)).collect(), "{options:?}");
        let marked = |call: &Value| call["left"] == true || call["unfinished"] == true;
        let all = recorded.json("calls-json");
        assert!(!all.iter().any(|call| marked(call) && functions.contains(&call["function"].as_str().unwrap_or(""))));
    }
}

/// But for the function that a thread begins with and that pthread_exit leaves: its call ends with the thread.
const THROWING: [&str; 13] = [
    "thrower",
    "deep",
    "cleaned",
    "with_cleanup",
    "catches",
    "throws_again",
    "catches_again",
    "after",
    "below",
    "all",
    "work",
    "ends",
    "main",
];

#[test]
fn calls_end_where_exceptions_leave_them() {
    // gdb does not show callers that have made a tail call.
    let ways: [(&str, &str, &[&str]); 4] = [
        ("g++", "leaves_by_exceptions", &["-O1"]),
        ("g++", "leaves_by_exceptions_small", &["-Os", "-fno-optimize-sibling-calls"]),
        // The unwinder and the C++ library are the program's own.
        ("g++", "leaves_by_exceptions_alone", &["-O1", "-static-libgcc", "-static-libstdc++"]),
        ("clang++", "leaves_by_exceptions_clang", &["-O1", "-fno-optimize-sibling-calls"]),
    ];
    for (compiler, name, flags) in ways {
        let flags = [flags, &["-g", "-pthread", "-Wno-attributes"]].concat();
        if let Some(program) = testkit::compile(compiler, name, "leaves_by_exceptions.cc", &flags) {
            as_gdb_counts(&program, &THROWING);
        }
    }
}

const JUMPING: [&str; 14] = [
    "jumper",
    "large",
    "deep",
    "sets",
    "bare",
    "sets_bare",
    "in_handler",
    "handler",
    "raises",
    "sets_outside",
    "after",
    "below",
    "all",
    "main",
];

#[test]
fn calls_end_where_jumps_leave_them() {
    let checked = ["-g", "-O2", "-D_FORTIFY_SOURCE=2"];
    for (name, flags) in [("leaves_by_jumps", &["-g"][..]), ("leaves_by_jumps_checked", &checked)] {
        if let Some(program) = compiled(name, "leaves_by_jumps.c", flags) {
            as_gdb_counts(&program, &JUMPING);
        }
    }
}

#[test]
fn what_follows_a_call_that_was_left_is_not_in_it() {
    let ways = [
        ("leaves_by_exceptions_shown", "leaves_by_exceptions.cc", "main;work;all;below", "thrower", "catches;below"),
        ("leaves_by_jumps_shown", "leaves_by_jumps.c", "main;all;below", "jumper", "sets;below"),
        ("leaves_by_panics", "leaves_by_panics.rs", "main;all;below", "thrower", "catches;below"),
    ];
    for (name, source, wanted, leaves, wrong) in ways {
        let Some(program) = compiled(name, source, &["-g"]) else { continue };
        let recorded = record(&[], &[&program]);
        let folded = recorded.shown("folded");
        assert!(folded.lines().any(|l| l.contains(wanted)), "{folded}");
        let inside = format!("{leaves};below");
        assert!(!folded.lines().any(|l| l.contains(&inside) || l.contains(wrong)), "{folded}");
        let tree = recorded.shown("tree");
        assert!(tree.contains(leaves) && !tree.contains("without a recorded return"), "{tree}");
    }
}

#[test]
fn a_chain_of_tail_calls_has_all_its_records() {
    let with = |compiler, name, flags: &[&str]| testkit::compile(compiler, name, "tail_chains.c", flags);
    let Some(program) = with("gcc", "tail_chains", &["-O2"]) else { return };
    let small = with("gcc", "tail_chains_small", &["-Os", "-fcf-protection"]);
    let clang = with("clang", "tail_chains_clang", &["-O2", "-Wno-unknown-attributes"]);
    let lengths = [63u64, 64, 65, 1000].map(|n| (&program, n)).into_iter();
    let runs: Vec<_> = lengths.chain(small.iter().chain(&clang).map(|program| (program, 65))).collect();
    for options in [&[][..], &["-t", "1ns"]] {
        for (program, n) in &runs {
            let recorded = record(options, &[program, &n.to_string()]);
            let functions = ["even", "odd", "one", "two", "three", "last", "twice", "main"];
            let edges = recorded.edges(&functions);
            let of = |name: &str| edges.iter().filter(|((_, callee), _)| callee == name).map(|(_, n)| n).sum::<u64>();
            assert_eq!([of("even") + of("odd"), of("last"), of("twice")], [2 * (n + 1), 3, 1], "{n} {edges:?}");
            assert_eq!(of("one") + of("two") + of("three"), n + 1, "{n} {edges:?}");
        }
    }
}

fn milliseconds(call: &Value) -> u64 {
    call["duration_ns"].as_u64().expect("a duration") / 1_000_000
}

#[test]
fn calls_of_threads_that_are_blocked_last_until_the_end() {
    let Some(program) = compiled("blocked_at_the_end", "blocked_at_the_end.c", &[]) else { return };
    let ways = ["exit", "kill", "return"].map(|how| [(how, &[][..]), (how, &["-t", "5ms"])]);
    for (how, options) in ways.into_iter().flatten() {
        let recorded = record(options, &[&program, how]);
        for name in ["blocked", "around", "work"] {
            let calls = recorded.calls(name);
            // The process ends when the first thread has waited for 60 ms; when that is noticed is another matter.
            let right = |call: &Value| (59..10_000).contains(&milliseconds(call)) && call["unfinished"] == true;
            assert!(calls.len() == 4 && calls.iter().all(right), "{how} {calls:?}");
            let totals = recorded.json("functions-json");
            let total = totals.iter().find(|f| f["function"] == name).expect("a row");
            assert!(total["total_ns"].as_u64().expect("ns") >= 4 * 59_000_000, "{how} {total}");
        }
        let folded = recorded.shown("folded");
        let own = folded.lines().find_map(|l| l.strip_prefix("work;around;blocked ")?.parse::<u64>().ok());
        assert!(own.is_some_and(|ns| ns >= 4 * 59_000_000), "{how} {folded}");
    }
}

#[test]
fn with_a_minimum_the_first_calls_of_threads_have_their_times() {
    let Some(program) = compiled("slow_in_threads", "slow_in_threads.c", &[]) else { return };
    let recorded = record(&["-t", "2ms"], &[&program]);
    for (name, wanted) in [("outer", [40; 4].as_slice()), ("work", &[40; 4]), ("slow", &[5, 5, 5, 5, 40, 40, 40, 40])] {
        let calls = recorded.calls(name);
        let mut all: Vec<u64> = calls.iter().map(milliseconds).collect();
        all.sort_unstable();
        let right = all.len() == wanted.len() && all.iter().zip(wanted).all(|(ms, least)| ms >= least);
        assert!(right, "{name} {calls:?}");
    }
    assert!(recorded.calls("brief").is_empty());
}

/// Times as they are without a minimum too, and each call once: what a child of fork returns from, its parent has called.
#[test]
fn with_a_minimum_children_have_their_own_calls() {
    let ways: [(&str, &str, &[&str]); 2] =
        [("g++", "slow_in_children", &["-O2"]), ("clang++", "slow_in_children_clang", &["-O1", "-Wno-attributes"])];
    for (compiler, name, flags) in ways {
        let flags = [flags, &["-pthread"]].concat();
        let Some(program) = testkit::compile(compiler, name, "slow_in_children.cc", &flags) else { continue };
        for options in [&[][..], &["-t", "5ms"]] {
            let all = record(options, &[&program]).json("calls-json");
            for (name, wanted) in [
                ("slow", &[20, 20, 20, 20, 20, 20, 30][..]),
                ("outer", &[20, 20, 20, 30]),
                ("child", &[30]),
                ("forks", &[30]),
                ("returns_twice", &[40]),
                ("around", &[40]),
                ("main", &[60]),
            ] {
                let (calls, ends): (Vec<&Value>, Vec<&Value>) =
                    all.iter().filter(|call| call["function"] == name).partition(|call| call["duration_ns"].is_u64());
                let mut times: Vec<u64> = calls.iter().map(|call| milliseconds(call)).collect();
                times.sort_unstable();
                let right = times.len() == wanted.len() && times.iter().zip(wanted).all(|(ms, least)| ms >= least);
                // The child's returns from three calls.
                let returns = usize::from(["returns_twice", "around", "main"].contains(&name));
                assert!(right && ends.len() == returns, "{options:?} {name} {calls:?} {ends:?}");
            }
        }
    }
}

/// With a minimum too, calls that are open at the end are there if they have taken long enough, however the program ends, and each once.
#[test]
fn with_a_minimum_calls_that_are_open_at_the_end_are_there() {
    let Some(program) = compiled("open_at_end", "open_at_end.c", &["-O1", "-pthread"]) else { return };
    for how in ["exit", "_exit", "syscall", "instruction", "kill", "abort", "exec"] {
        for (options, leaves) in [(&[][..], 2), (&["-t", "20ms"], 0), (&["-t", "1h"], 0)] {
            let all = record(options, &[&program, how]).json("calls-json");
            let open: BTreeMap<&str, Vec<u64>> = all.iter().filter(|call| call["unfinished"] == true).fold(
                BTreeMap::new(),
                |mut open: BTreeMap<&str, Vec<u64>>, call| {
                    open.entry(call["function"].as_str().expect("a name")).or_default().push(milliseconds(call));
                    open
                },
            );
            let ended = all.iter().filter(|call| call["unfinished"] != true).count();
            let names: Vec<&str> = open.keys().copied().collect();
            let wanted: &[&str] = if options == ["-t", "1h"] { &[] } else { &["ends", "main", "middle", "waits"] };
            let each = open.values().all(|of| of.len() == 1 && of[0] >= 150);
            assert!(names == wanted && each && ended == leaves, "{how} {options:?} {all:?}");
        }
    }
}
