//! Every event of a trace is in the pictures of it: in the page, in Perfetto's format and in Chrome's, each as often as in `--as stats`.

use crate::lab::{self, User};
use crate::timeline::page;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};

/// How many items a picture has, by kind and name: `call openat`, `mark process:exit`. Curves and samples have no names outside of a page.
type Items = BTreeMap<String, u64>;

fn add(items: &mut Items, kind: &str, name: &str, n: u64) {
    let of = if matches!(kind, "heap" | "files" | "sample") { kind.to_owned() } else { format!("{kind} {name}") };
    *items.entry(of).or_default() += n;
}

/// A page, as formats for other programs have it: where a process ends, its curves end at 0.
fn as_others(page: &Items) -> Items {
    let mut items = Items::new();
    for (of, n) in page {
        match of.split_once(' ').expect("kind and name") {
            ("left", curve) => add(&mut items, curve, "", *n),
            (kind, name) => add(&mut items, kind, name, *n),
        }
    }
    items
}

/// Perfetto's format, as its own classes read it; none without them.
fn perfetto(file: &Path) -> Option<Items> {
    const CLASSES: &str = "google.protobuf.unknown_fields, perfetto.protos.perfetto.trace.perfetto_trace_pb2";
    let python = testkit::python("perfetto", CLASSES)?;
    let reader = concat!(env!("CARGO_MANIFEST_DIR"), "/../views/tests/read_timeline.py");
    let file = std::fs::File::open(file).expect("a picture");
    let out = lab::run(Command::new(python).arg(reader).stdin(Stdio::from(file)));
    assert_eq!(out.code(), 0, "{}", out.stderr);
    let mut items = Items::new();
    for line in out.out().lines() {
        if line.starts_with("sample of ") {
            add(&mut items, "sample", "", 1);
            continue;
        }
        // `PID/TID/calls: 'openat' [syscall] 5..9 …`, `PID/heap: 100 at 5`; functions are in the track of their thread.
        let Some((track, item)) = line.split_once(": ").filter(|(track, _)| track.contains('/')) else { continue };
        let name = item.split('\'').nth(1).unwrap_or_default();
        match track.rsplit('/').next().expect("a track") {
            "calls" => add(&mut items, "call", name, 1),
            "runs" => add(&mut items, "run", name, 1),
            "marks" => add(&mut items, "mark", name, 1),
            "heap" => add(&mut items, "heap", "", 1),
            "descriptors" => add(&mut items, "files", "", 1),
            "who-begins-and-wakes-whom" if matches!(name, "starts" | "wakes") => add(&mut items, "flow", name, 1),
            "who-begins-and-wakes-whom" => {}
            track if track.starts_with("processor-") => add(&mut items, "cpu", name, 1),
            thread if thread.parse::<u32>().is_ok() => add(&mut items, "function", name, 1),
            other => add(&mut items, other, name, 1),
        }
    }
    Some(items)
}

/// Chrome's format.
fn chrome(file: &Path) -> Items {
    let file: Value = serde_json::from_slice(&std::fs::read(file).expect("a picture")).expect("JSON");
    let mut items = Items::new();
    for event in file["traceEvents"].as_array().expect("events") {
        let text = |key: &str| event[key].as_str().unwrap_or_default();
        let kind = match (text("ph"), text("cat")) {
            ("M" | "e" | "f", _) => continue,
            ("X", "syscall") => "call",
            ("X", "sched") => "cpu",
            ("X", _) => "function",
            ("b", "sched") => "run",
            ("i", "sample") => "sample",
            ("i", "probe") => "mark",
            ("C", _) if text("name") == "heap" => "heap",
            ("C", _) => "files",
            ("s", _) => "flow",
            (other, _) => other,
        };
        add(&mut items, kind, text("name"), 1);
    }
    items
}

/// Takes the items that are one event each of a probe: how many there are.
fn take(items: &mut Items, probe: &str) -> u64 {
    let mut take = |of: &str| items.remove(of).unwrap_or(0);
    match probe {
        // Both records of a call are one slice.
        "function:entry" | "function:exit" => {
            items.iter().filter(|(of, _)| of.starts_with("function ")).map(|(_, n)| n).sum()
        }
        // A thread has left a processor. Where it had come back is not always known: the switches to it are those of others.
        "tracepoint:sched:sched_switch" => take("run on a processor") + take("run off a processor, and on one"),
        // A thread that the trace knows is woken by a flow.
        "tracepoint:sched:sched_wakeup" => take("flow wakes") + take(&format!("mark {probe}")),
        "heap:malloc" | "heap:free" => take(&format!("heap {probe}")),
        _ => match probe.split_once(':') {
            Some(("syscall", name)) => take(&format!("call {name}")),
            Some(("profile", _)) => take(&format!("sample {probe}")),
            _ => take(&format!("mark {probe}")),
        },
    }
}

#[test]
fn pictures_have_all_events() {
    if lab::bpf_refused().is_some() {
        return testkit::skip("root", "no kernel backend");
    }
    if !lab::has("python3") {
        return testkit::skip("package", "no python3");
    }
    let Some(program) = testkit::compile("gcc", "counted_in_pictures", "timeline.c", &["-O1", "-g", "-pthread"]) else {
        return;
    };
    let dir = lab::scratch();
    let trapline = |words: &[&str]| {
        let out = lab::run(lab::trapline(User::Me, words).current_dir(&dir));
        assert!(matches!(out.code(), 0 | 3), "{words:?}: {}", out.stderr);
        out
    };
    let rounds = format!("usdt:{program}:desk:round");
    let probes = [
        "syscall:*",
        "function:*",
        "heap:*",
        "tracepoint:sched:sched_switch",
        "tracepoint:sched:sched_wakeup",
        "profile:hz:999 ustack",
        &rounds,
    ];
    let words: Vec<&str> = probes.iter().flat_map(|probe| ["-e", probe]).collect();
    let out = trapline(&[&["record", "-o", "t"], &words[..], &["--", &program]].concat());
    assert!(out.stderr.contains(" 0 dropped"), "{}", out.stderr);
    trapline(&["report", "t", "--as", "html=page", "--as", "timeline=all.pftrace", "--as", "timeline=all.json"]);

    let mut page = page(&dir.join("page")).items;
    let others = as_others(&page);
    assert_eq!(chrome(&dir.join("all.json")), others);
    if let Some(items) = perfetto(&dir.join("all.pftrace")) {
        assert_eq!(items, others);
    }

    let stats: Value =
        serde_json::from_str(&trapline(&["report", "t", "--as", "stats-json"]).out()).expect("an object");
    let mut kinds = 0;
    for probe in stats["probes"].as_array().expect("probes") {
        let (name, events) = (probe["name"].as_str().expect("a name"), probe["events"].as_u64().expect("a number"));
        // What others refer to: names of functions and of places in memory, and stacks.
        if matches!(name, "process:function" | "process:map" | "process:stack") {
            continue;
        }
        assert_eq!(take(&mut page, name), events, "{name}");
        kinds += usize::from(!name.starts_with("syscall:"));
    }
    assert!(kinds >= 14, "{stats}");
    // Nothing else is there but what follows from these events.
    let follows = ["run ", "cpu ", "files ", "left ", "function ", "flow starts"];
    page.retain(|of, _| !follows.iter().any(|kind| of.starts_with(kind)));
    assert_eq!(page, Items::new());
}
