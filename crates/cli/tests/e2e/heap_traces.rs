//! Heaps that are kept: `heap -o`, `record -e heap:…` with filters, reports, differences; and what is left when trapline is killed.

use crate::heap::{address_of, child_of};
use crate::heap_accounts::{Account, CPP, EVENTS, PLAIN, Sum, THREADS, bare, by_function, heap_of, sum_of};
use crate::lab::{self, User};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;
use testkit::Random;

#[track_caller]
fn traced(args: &[&str], trace: &str, command: &[&str]) -> String {
    let argv = [args, &["-q", "-o", trace, "--"], command].concat();
    let mut run = lab::trapline(User::Me, &argv);
    let out = lab::run(crate::heap_accounts::prepare(&mut run, command[1]));
    let alone = bare(User::Me, command, &[]);
    assert_eq!((out.code(), out.out()), (alone.code(), alone.out()), "{command:?}: {}", out.stderr);
    alone.out()
}

fn new_trace() -> String {
    lab::scratch().join("trace").display().to_string()
}

// Slow: every scenario is recorded in two ways, and shown in all views.
#[test]
fn a_report_of_a_trace_is_what_the_command_shows() {
    for (program, scenario) in [(&PLAIN, "leaks"), (&PLAIN, "resizes"), (&THREADS, "storm"), (&CPP, "containers")] {
        let Some(program) = program.build() else { continue };
        let command = [&*program, scenario];
        for args in
            [&["heap"][..], &["record", "-e", "heap:malloc", "-e", "heap:free", "--ustack", "--on-full", "block"]]
        {
            let trace = new_trace();
            let account = Account::of(&traced(args, &trace, &command));
            let heap = heap_of(&trace);
            assert_eq!(by_function(&heap, "outstanding", &account), account.outstanding, "{args:?} {scenario}");
            assert_eq!(by_function(&heap, "total", &account), account.allocated, "{args:?} {scenario}");
            for view in ["leaks", "peak", "totals", "temporary", "growth", "flame", "pprof"] {
                let out = lab::run(&mut lab::trapline(User::Me, &["report", "-q", "--as", view, &trace]));
                assert!(out.code() == 0 && !out.stdout.is_empty(), "{view}: {}", out.stderr);
            }
        }
    }
}

/// Of each address, allocations and frees take turns, whichever threads they are of. What libc frees once more when a thread ends, the blocks
/// in its cache, is not among them.
#[test]
fn what_threads_hand_over_is_in_order() {
    let Some(program) = testkit::compile("gcc", "heap_handed", "heap_handed.c", &["-O1", "-pthread"]) else { return };
    let trace = new_trace();
    traced(&["heap"], &trace, &[&program, "all"]);
    let out = lab::run(&mut lab::trapline(User::Me, &["report", "-q", "--as", "json", &trace]));
    let events = out.out().lines().map(|l| serde_json::from_str::<Value>(l).expect("JSON")).collect::<Vec<_>>();
    let (mut held, mut seen) = (BTreeMap::new(), 0);
    for event in &events {
        let address = event["args"]["address"].as_str();
        match event["name"].as_str() {
            Some("heap:malloc") => {
                assert!(held.insert(address, true) != Some(true), "allocated twice: {event}");
                seen += 1;
            }
            Some("heap:free") => assert_eq!(held.insert(address, false), Some(true), "freed twice: {event}"),
            _ => {}
        }
    }
    assert!(seen >= 16 * 4000, "{seen}");
}

/// The events of a trace: name, address, size.
#[track_caller]
fn events(trace: &str, more: &[&str]) -> Vec<(String, u64, u64)> {
    let args = [&["report", "-q", "--as", EVENTS][..], more, &[trace]].concat();
    let out = lab::run(&mut lab::trapline(User::Me, &args));
    assert_eq!(out.code(), 0, "{}", out.stderr);
    events_of(&out)
}

fn events_of(out: &lab::Outcome) -> Vec<(String, u64, u64)> {
    let event = |line: &str| {
        let event: Value = serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"));
        let name = event["name"].as_str().filter(|n| n.starts_with("heap:"))?.to_string();
        let value = |key: &str| event.get(key).or_else(|| event["args"].get(key)).map_or(0, address_of);
        Some((name, value("address"), value("size")))
    };
    out.out().lines().filter_map(event).collect()
}

/// Events are in order: a block is not allocated again before it is freed, and freed once.
#[test]
fn events_are_right_for_each_address() {
    for (program_of, scenario) in [(&PLAIN, "resizes"), (&THREADS, "storm"), (&THREADS, "crossing")] {
        let Some(program) = program_of.build() else { continue };
        let trace = new_trace();
        let args = ["record", "-e", "heap:malloc", "-e", "heap:free", "--on-full", "block"];
        let own = Account::of(&traced(&args, &trace, &[&program, scenario])).totals();
        let (mut live, mut allocated) = (BTreeMap::new(), Sum::default());
        for (name, address, size) in events(&trace, &[]) {
            if name == "heap:malloc" {
                assert_eq!(live.insert(address, size), None, "{address:#x} is allocated twice");
                allocated = Sum { blocks: allocated.blocks + 1, bytes: allocated.bytes + size };
            } else {
                assert!(live.remove(&address).is_some(), "{address:#x} is freed twice");
            }
        }
        assert!(allocated.blocks >= own.allocated.blocks && live.len() as u64 >= own.outstanding.blocks);
        assert!(live.values().sum::<u64>() >= own.outstanding.bytes);
    }
}

/// The trace of `heap -o` is compressed, and has the same events as a plain one. What is cut off of it is missed, and can be repaired.
#[test]
fn a_trace_of_the_heap_is_compressed() {
    let Some(program) = PLAIN.build() else { return };
    let [packed, plain] = [new_trace(), new_trace()];
    let command = [&*program, "resizes"];
    traced(&["heap"], &packed, &command);
    traced(&["record", "-e", "heap:*", "--ustack", "--on-full", "block"], &plain, &command);
    let sizes = |events: Vec<_>| events.into_iter().map(|(name, _, size)| (name, size)).collect::<Vec<(_, u64)>>();
    let whole = sizes(events(&packed, &[]));
    assert_eq!(whole, sizes(events(&plain, &[])));
    let bytes = |trace: &str| {
        let files = fs::read_dir(trace).expect("a trace").map(|e| e.expect("a name").path());
        files.filter(|f| f.is_file()).map(|f| f.metadata().expect("a file").len()).sum::<u64>()
    };
    assert!(bytes(&packed) * 4 < bytes(&plain), "{} of {} bytes", bytes(&packed), bytes(&plain));
    let mut names = fs::read_dir(&packed).expect("a trace").map(|e| e.expect("a name").path());
    let stream = names.find(|p| p.to_string_lossy().contains("probe_")).expect("a stream");
    let len = stream.metadata().expect("a file").len();
    fs::OpenOptions::new().write(true).open(&stream).and_then(|f| f.set_len(len - 9)).expect("cut");
    let out = lab::run(&mut lab::trapline(User::Me, &["repair", &packed]));
    assert!(out.code() == 0 && out.out().contains("removed"), "{} {}", out.out(), out.stderr);
    let out = lab::run(&mut lab::trapline(User::Me, &["report", "--as", EVENTS, &packed]));
    assert!(out.code() == 125 && out.stderr.contains("missing"), "{}", out.stderr);
    let left = sizes(events_of(&out));
    assert!(left.len() < whole.len() && whole.starts_with(&left));
}

#[test]
fn filters_select_events() {
    let Some(program) = PLAIN.build() else { return };
    let [all, large, reported] = [new_trace(), new_trace(), new_trace()];
    let command = [&*program, "leaks"];
    let select = ["record", "-e", "heap:malloc", "-e", "heap:free", "--on-full", "block"];
    traced(&select, &all, &command);
    traced(&[&select[..3], &["--on-full", "block", "--where", "args.size > 1000"]].concat(), &large, &command);
    traced(&select[..3], &reported, &command);
    let sizes = |events: Vec<(String, u64, u64)>| {
        let mallocs = events.into_iter().filter(|e| e.0 == "heap:malloc");
        let mut sizes: Vec<u64> = mallocs.map(|e| e.2).collect();
        sizes.sort_unstable();
        sizes
    };
    let want: Vec<u64> = sizes(events(&all, &[])).into_iter().filter(|s| *s > 1000).collect();
    assert!(want.iter().filter(|s| **s == 200_000).count() == 20, "{want:?}");
    assert_eq!(sizes(events(&large, &[])), want);
    assert_eq!(sizes(events(&reported, &["--where", "args.size > 1000"])), want);
    let none =
        lab::run(&mut lab::trapline(User::Me, &["record", "-e", "heap:nothing", "-o", &new_trace(), "--", "true"]));
    assert!(none.code() != 0 && none.stderr.lines().count() == 1, "{}", none.stderr);
}

#[test]
fn differences_are_what_has_grown() {
    let Some(program) = PLAIN.build() else { return };
    let [one, other] = [new_trace(), new_trace()];
    traced(&["heap"], &one, &[&program, "nothing"]);
    traced(&["heap"], &other, &[&program, "deep"]);
    let diff = |a: &str, b: &str| {
        let out = lab::run(&mut lab::trapline(User::Me, &["diff", a, b]));
        assert!(out.code() < 2, "{}", out.stderr);
        out.out()
    };
    let grown = diff(&one, &other);
    assert!(grown.contains("descends") && grown.contains("blocks_of_nothing"), "{grown}");
    let same = diff(&other, &other);
    assert!(!same.contains("descends"), "{same}");
}

/// trapline is killed at any moment: the program does what it does bare, and what has been kept can be read.
#[test]
fn the_program_goes_on_without_trapline() {
    let Some(program) = PLAIN.build() else { return };
    let command = [&*program, "long_work"];
    let want = bare(User::Me, &command, &[]).out();
    let mut random = Random::new(7);
    for round in 0..8 {
        let trace = new_trace();
        let file = lab::scratch().join("out");
        let script =
            format!("'{program}' long_work > '{0}.new'; echo $? >> '{0}.new'; mv '{0}.new' '{0}'", file.display());
        let kept: &[&str] = if round % 2 == 0 { &["-o", &trace] } else { &[] };
        let argv = [&["heap", "-q"], kept, &["--", "sh", "-c", &script]].concat();
        let mut run = lab::start(lab::trapline(User::Me, &argv).stdout(Stdio::null()));
        if round > 1 {
            let begun = || fs::metadata(format!("{}.new", file.display())).is_ok_and(|m| m.len() > 0);
            lab::until("it has begun", || begun() || file.exists());
        }
        std::thread::sleep(Duration::from_micros(random.below(100_000)));
        lab::kill("KILL", run.pid().into());
        let _ = run.child.wait();
        // Killed before it has started the command, there is no command.
        if round > 1 {
            lab::until("the command has ended", || file.exists());
            assert_eq!(fs::read_to_string(&file).expect("its output"), format!("{want}0\n"), "round {round}");
        }
        if round % 2 == 0 && Path::new(&trace).join("metadata").exists() {
            // The end is missing.
            let out = lab::run(&mut lab::trapline(User::Me, &["report", "-q", "--as", "leaks", &trace]));
            assert!([0, 125].contains(&out.code()) && out.stderr.is_empty(), "{}", out.stderr);
            assert!(out.out().contains("outstanding") || out.out().is_empty(), "{}", out.out());
        }
    }
}

/// The program is killed while trapline keeps its events.
#[test]
fn a_trace_of_a_killed_program() {
    let Some(program) = PLAIN.build() else { return };
    let trace = new_trace();
    let argv = ["heap", "-q", "-o", &trace, "--", &program, "endless"];
    let said = lab::scratch().join("said");
    let stdout = fs::File::create(&said).expect("a file");
    let running = lab::start(lab::trapline(User::Me, &argv).stdout(stdout));
    lab::until("it runs", || fs::read(&said).is_ok_and(|text| text == b"ready\n"));
    std::thread::sleep(Duration::from_millis(200));
    lab::kill("KILL", child_of(running.pid()).expect("its child").into());
    assert_eq!(running.end().code(), 128 + 9);
    let left = by_function(&heap_of(&trace), "outstanding", &Account::of("heap leaks 0 0 0 0\n"))["leaks"];
    assert!((100..=101).contains(&left.blocks) && left.bytes >= 100_000, "{left:?}");
    assert!(sum_of(&heap_of(&trace)["total"]).blocks > 100);
}
