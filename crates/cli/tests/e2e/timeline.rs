//! Everything of a trace over time: `report --as html`, `overview`, `processes`, and `open`.

use crate::lab::{self, User};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

/// What is in a page.
pub(crate) struct Page {
    /// How many items it has of each kind.
    counts: BTreeMap<String, u64>,
    header: Value,
    /// How many items it has by kind and name.
    pub(crate) items: BTreeMap<String, u64>,
}

/// Reads a page.
pub(crate) fn page(file: &Path) -> Page {
    let reader = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/e2e/page.py");
    let out = lab::run(std::process::Command::new("python3").arg(reader).arg(file));
    assert_eq!(out.code(), 0, "{}", out.stderr);
    let said = out.out();
    let (header, items) = said.split_once('\n').expect("two lines");
    let header: Value = serde_json::from_str(header).expect("a header");
    let mut counts = BTreeMap::new();
    for row in header["rows"].as_array().expect("rows") {
        let kind = header["kinds"][row[0].as_u64().expect("a kind") as usize].as_str().expect("its name").to_owned();
        *counts.entry(kind).or_default() += row[4].as_u64().expect("a number");
    }
    Page { counts, header, items: serde_json::from_str(items).expect("items") }
}

/// Of a program with threads, functions, allocations, samples and a child: everything is there, as often as the trace has it.
#[test]
fn a_page_has_every_kind_of_event() {
    if !lab::has("python3") {
        return testkit::skip("package", "no python3");
    }
    let Some(program) = testkit::compile("gcc", "calls-and-heap", "timeline.c", &["-O1", "-g", "-pthread"]) else {
        return;
    };
    lab::each_attacher(|user| {
        let dir = lab::scratch();
        let trace = dir.join("t");
        let mut words = vec!["record", "-q", "-o", trace.to_str().expect("UTF-8"), "-e", "function:*", "-e", "heap:*"];
        if user == User::Me {
            words.extend(["-e", "syscall:*", "-e", "tracepoint:sched:sched_switch", "-e", "profile:hz:999 ustack"]);
        }
        words.extend(["--", &program]);
        let out = lab::run(&mut lab::trapline(user, &words));
        assert_eq!(out.code(), 3, "{}", out.stderr);
        let report = |view: &str| {
            let out = lab::run(&mut lab::trapline(user, &["report", trace.to_str().expect("UTF-8"), "--as", view]));
            assert_eq!(out.code(), 0, "{view}: {}", out.stderr);
            out.out()
        };
        let file = dir.join("page.html");
        report(&format!("html={}", file.display()));
        let Page { counts, header, .. } = page(&file);
        let stats: Value = serde_json::from_str(&report("stats-json")).expect("an object");
        let mut expected: BTreeMap<&str, u64> = BTreeMap::new();
        for probe in stats["probes"].as_array().expect("probes") {
            let (name, events) = (probe["name"].as_str().expect("a name"), probe["events"].as_u64().expect("a number"));
            let kind = match name {
                "function:entry" => "function",
                "heap:malloc" => "heap",
                _ if name.starts_with("syscall:") => "call",
                _ if name.starts_with("profile:") => "sample",
                _ => continue,
            };
            *expected.entry(kind).or_default() += events;
        }
        for (kind, n) in expected {
            let there = counts.get(kind).copied().unwrap_or(0);
            // A release of a block that was allocated in the trace is one more.
            assert!(if kind == "heap" { there >= n } else { there == n }, "{kind}: {there} and {n}");
        }
        let figures = |stats: &Value| {
            let of = |p: &Value| format!("{} {} {}", p["name"], p["events"], p["missing"]);
            stats["probes"].as_array().map(|all| all.iter().map(of).collect::<Vec<_>>()).unwrap_or_default()
        };
        assert_eq!(figures(&header["stats"]), figures(&stats));
        if user == User::Me {
            assert!(counts.get("run").is_some_and(|n| *n > 0), "{counts:?}");
            assert!(header["flows"].as_array().is_some_and(|f| !f.is_empty()), "{}", header["flows"]);
        }
        let names: Vec<&str> =
            header["functions"].as_array().expect("names").iter().filter_map(Value::as_str).collect();
        assert!(["main", "work"].iter().all(|f| names.contains(f)), "{names:?}");

        let overview = report("overview");
        let lane = overview.lines().find(|l| l.starts_with("calls-and-heap ")).expect("a lane");
        assert!(lane.chars().any(|c| ('▁'..='█').contains(&c)), "{lane}");
        assert!(overview.contains("busiest:\n  --from +0."), "{overview}");
        let processes = report("processes");
        assert!(processes.lines().count() >= 3, "{processes}");
        if user == User::Me {
            assert!(processes.lines().any(|l| l.contains("└ cat /dev/null")), "{processes}");
            let object = |line: &str| serde_json::from_str::<Value>(line).expect("an object");
            let all: Vec<Value> = report("processes-json").lines().map(object).collect();
            let child = all.iter().find(|p| p["comm"] == "cat").expect("the child");
            assert_eq!((&child["exit"], &child["parent"]), (&Value::from(0), &all[0]["pid"]));
            assert_eq!((&child["commands"][0]["argv"], &all[0]["exit"]), (&"cat /dev/null".into(), &Value::from(3)));
        }
    });
}

/// The environments of programs, where they are captured, and descriptors; nothing of the environment where it is not.
#[test]
fn processes_show_what_an_exec_changes() {
    if !lab::has("perl") {
        return testkit::skip("package", "no perl");
    }
    lab::each_backend(|user| {
        let dir = lab::scratch();
        let trace = dir.join("t");
        let trace = trace.to_str().expect("UTF-8");
        let script = "ADDED=1 exec env -u GONE perl -e 'open F, \"/etc/passwd\"; exec \"true\"'";
        let report = |options: &[&str], view: &str| {
            let record =
                [&["record", "-q", "--force", "-E", "GONE=x", "-o", trace], options, &["--", "sh", "-c", script]];
            let out = lab::run(&mut lab::trapline(user, &record.concat()));
            assert_eq!(out.code(), 0, "{}", out.stderr);
            let out = lab::run(&mut lab::trapline(user, &["report", trace, "--as", view]));
            assert_eq!(out.code(), 0, "{}", out.stderr);
            out.out()
        };
        let tree = report(&["-v"], "processes");
        // A shell that begins in another directory than PWD says changes that too.
        let has = |line: &str| assert!(tree.lines().any(|l| l.trim().starts_with(line)), "{line}: {tree}");
        has("env: environment: +ADDED=1");
        has("perl: environment: -GONE");
        has("true: closed: 3 /etc/passwd");
        let process: Value = serde_json::from_str(&report(&[], "processes-json")).expect("an object");
        let commands = process["commands"].as_array().expect("commands");
        assert_eq!(commands.len(), 4, "{process}");
        assert!(commands.iter().all(|c| c["environment"].is_null()), "{process}");
        assert_eq!(commands[3]["closed"], serde_json::json!([{ "fd": 3, "file": "/etc/passwd" }]));
    });
}

#[test]
fn open_writes_a_private_file_and_names_it_or_shows_it() {
    let dir = lab::scratch();
    let out = lab::run(lab::trapline(User::Me, &["record", "-q", "-o", "t", "--", "true"]).current_dir(&dir));
    assert_eq!(out.code(), 0, "{}", out.stderr);
    let open = |words: &[&str]| {
        let mut command = lab::trapline(User::Me, &[&["open", "t"], words].concat());
        ["BROWSER", "DISPLAY", "WAYLAND_DISPLAY", "XDG_RUNTIME_DIR"].iter().for_each(|name| {
            command.env_remove(name);
        });
        command.current_dir(&dir);
        command
    };
    let out = lab::run(&mut open(&[]));
    assert_eq!(out.code(), 0, "{}", out.stderr);
    let file = out.out().trim_end().to_owned();
    let mode =
        |file: &str| std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(file).expect("a file").permissions());
    assert_eq!(mode(&file) & 0o7777, 0o600, "{file}");
    // The same trace has the same file.
    assert_eq!(lab::run(&mut open(&[])).out(), out.out());
    std::fs::remove_file(&file).expect("its file");
    // A browser gets the file.
    let browser = dir.join("browser");
    std::fs::write(&browser, format!("#!/bin/sh\necho \"$@\" > {}/seen\n", dir.display())).expect("a script");
    testkit::open_to_all(&browser, 0o755);
    let out = lab::run(open(&["-o", "page.html", "-q"]).env("BROWSER", format!("{} --new", browser.display())));
    assert_eq!((out.code(), out.out()), (0, String::new()), "{}", out.stderr);
    let seen = dir.join("seen");
    lab::until("the browser begins", || std::fs::read_to_string(&seen).is_ok_and(|s| s == "--new page.html\n"));
    let out = lab::run(&mut open(&["--from", "nonsense"]));
    assert_ne!(out.code(), 0);
    assert_eq!(out.stderr.lines().count(), 1, "{}", out.stderr);
}

/// What interrupts a report leaves the directory as it was; what is no regular file is written as it is.
#[test]
fn an_interrupted_report_leaves_no_file() {
    let Some(program) = lab::program("hits") else { return };
    let dir = lab::scratch();
    let record = ["record", "-q", "-o", "t", "-e", "getppid", "--", &program, "calls", "10000"];
    lab::run(lab::trapline(User::Me, &record).current_dir(&dir));
    let names = || {
        let all = std::fs::read_dir(&dir).expect("a directory").flatten();
        all.map(|e| e.file_name().to_string_lossy().into_owned()).collect::<std::collections::BTreeSet<_>>()
    };
    let report = |words: &[&str]| {
        let mut command = lab::trapline(User::Me, &[&["report", "t"], words].concat());
        command.current_dir(&dir);
        command
    };
    for (view, signal) in [("html", "INT"), ("timeline", "TERM"), ("json", "HUP")] {
        for old in [None, Some("as it was")] {
            let file = dir.join(view);
            old.iter().for_each(|old| std::fs::write(&file, old).expect("a file"));
            let before = names();
            // Nobody reads the text: the report waits in the middle.
            let (_reader, writer) = std::io::pipe().expect("a pipe");
            let mut running = lab::start(report(&["--as", &format!("{view}={view}"), "--as", "text"]).stdout(writer));
            lab::until("it writes", || names().len() > before.len());
            running.must_run();
            lab::kill(signal, running.pid().into());
            let out = running.end();
            assert!(out.code() > 128, "{view}: {:?} {}", out.status, out.stderr);
            assert_eq!(names(), before, "{view}");
            assert_eq!(std::fs::read_to_string(&file).ok().as_deref(), old, "{view}");
        }
    }
    let (direct, whole) =
        (lab::run(&mut report(&["--as", "html=/dev/stdout"])), lab::run(&mut report(&["--as", "html=page"])));
    assert_eq!((direct.code(), whole.code()), (0, 0), "{}{}", direct.stderr, whole.stderr);
    assert!(!direct.out().is_empty() && direct.out() == std::fs::read_to_string(dir.join("page")).expect("a page"));
}

/// A recording for spans has their probes, and its page has the spans; other views have none.
#[test]
fn a_page_has_the_spans_of_its_recording() {
    if !lab::has("python3") {
        return testkit::skip("package", "no python3");
    }
    let Some(program) = testkit::compile("gcc", "desk", "cookbook/desk.c", &["-O1", "-g", "-pthread", "-fno-inline"])
    else {
        return;
    };
    lab::each_attacher(|user| {
        let dir = lab::scratch();
        let trace = dir.join("t");
        let trace = trace.to_str().expect("UTF-8");
        let spans = [
            "--span",
            "request = recvfrom .. sendto by fd",
            "--span",
            "answer = function:answer .. function:answer:return by nth",
        ];
        let record = [&["record", "-q", "-o", trace, "-e", "write"], &spans[..], &["--", &program]].concat();
        let out = lab::run(&mut lab::trapline(user, &record));
        assert_eq!(out.code(), 0, "{}", out.stderr);
        let report = |words: &[&str]| lab::run(&mut lab::trapline(user, &[&["report", trace], words].concat()));
        let file = dir.join("page.html");
        let out = report(&["--as", &format!("html={}", file.display())]);
        assert_eq!(out.code(), 0, "{}", out.stderr);
        assert_eq!(page(&file).counts.get("span"), Some(&6));
        let all: Vec<Value> = report(&["--as", "spans-json"])
            .out()
            .lines()
            .map(|l| serde_json::from_str(l).expect("an object"))
            .collect();
        let counted = |n: usize| (all[n]["name"].as_str(), all[n]["spans"].as_u64(), all[n]["without_end"].as_u64());
        assert_eq!((counted(0), counted(1)), ((Some("request"), Some(3), Some(0)), (Some("answer"), Some(3), Some(0))));
        let (slowest, threads) = (&all[0]["slowest"][0], &all[0]["slowest"][0]["threads"]);
        assert!(slowest["duration_ns"].as_u64().is_some_and(|ns| ns > 20_000_000), "{slowest}");
        assert_eq!(
            (&threads[0]["begins"], &threads[1]["ends"], &threads[1]["blocked_ns"]),
            (&true.into(), &true.into(), &Value::Null)
        );
        assert_eq!(all[1]["slowest"][0]["key"], Value::from(1));
        // The trace itself is asked, and the command line before it.
        let own = report(&["--span", "w = write .. write", "--rows", "1"]);
        assert!(
            own.out().starts_with("w: 5 spans of syscall:write .. syscall:write by tid, 1 begin without an end, 1 end"),
            "{}",
            own.out()
        );
        for words in [&["--as", "overview", "--span", "a = b .. c"][..], &["--span", "a = b"]] {
            let out = report(words);
            assert_eq!((out.code(), out.stderr.lines().count()), (2, 1), "{}", out.stderr);
        }
    });
}
