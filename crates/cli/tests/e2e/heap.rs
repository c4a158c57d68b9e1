//! `trapline heap`: programs whose heap is known, function by function, do what they do bare, and are shown with the blocks they have.

use crate::heap_accounts::{
    Account, CPP, EVENTS, PLAIN, PROCESSES, Program, RUST, SIGNALS, Shown, Sum, THREADS, bare, functions, number,
    sum_of,
};
use crate::lab::{self, User};
use serde_json::Value;
use std::collections::BTreeSet;

/// All scenarios that end by themselves.
const SCENARIOS: [(&Program, &[&str]); 6] = [
    (
        &PLAIN,
        &[
            "leaks",
            "resizes",
            "refused",
            "aligned",
            "pages",
            "nothing",
            "deep",
            "jumps",
            "coroutines",
            "libraries",
            "statics",
        ],
    ),
    (&THREADS, &["crossing", "storm", "short_lives", "cancellations"]),
    (&SIGNALS, &["timer", "other_stack", "jumps_out", "nested", "killed", "aborted"]),
    (&PROCESSES, &["forks", "generations", "execs", "spawns", "forks_beside_threads"]),
    (&CPP, &["news", "containers", "usual_containers", "exceptions", "bad_allocs", "statics"]),
    (&RUST, &["all"]),
];

/// Runs a command bare and traced: what it prints, how it ends, and each function's blocks are the same.
#[track_caller]
fn exact(user: User, command: &[&str], environment: &[(&str, &str)]) -> Shown {
    let alone = bare(user, command, environment);
    let shown = Shown::of(user, &[], command, environment);
    let what = format!("{user:?} {command:?} {environment:?}: {}", shown.outcome.stderr);
    assert_eq!((shown.outcome.code(), shown.outcome.out()), (alone.code(), alone.out()), "{what}");
    let account = Account::of(&alone.out());
    assert_eq!(shown.outstanding(&account), account.outstanding, "outstanding of {what}");
    assert_eq!(shown.allocated(&account), account.allocated, "allocated by {what}");
    let (all, own) = (shown.totals(), account.totals());
    assert!(all.outstanding.bytes >= own.outstanding.bytes && all.allocated.blocks >= own.allocated.blocks, "{what}");
    shown
}

#[track_caller]
fn exact_scenarios(of: &Program) {
    let Some(program) = of.build() else { return };
    for (_, scenarios) in SCENARIOS.iter().filter(|(p, _)| std::ptr::eq(*p, of)) {
        for scenario in *scenarios {
            exact(User::Me, &[&program, scenario], &[]);
        }
    }
}

macro_rules! programs {
    ($($test:ident $program:expr),* $(,)?) => { $(#[test] fn $test() { exact_scenarios(&$program) })* };
}

programs! {
    one_thread PLAIN, threads THREADS, handlers_of_signals SIGNALS, processes PROCESSES, exceptions_and_containers CPP,
    rust_programs RUST,
}

#[test]
fn every_user_gets_the_same() {
    lab::each_user(|user| {
        for (program, scenario) in [
            (&PLAIN, "leaks"),
            (&THREADS, "storm"),
            (&SIGNALS, "timer"),
            (&PROCESSES, "forks"),
            (&CPP, "news"),
            (&RUST, "all"),
        ] {
            if let Some(program) = program.build() {
                exact(user, &[&program, scenario], &[]);
            }
        }
    });
}

/// Allocators of Debian: package, library. Not all of them take everything: jemalloc has no pvalloc, mimalloc's operator new does not
/// throw.
const ALLOCATORS: [(&str, &str); 3] = [
    ("libjemalloc2", "/usr/lib/x86_64-linux-gnu/libjemalloc.so.2"),
    ("libmimalloc2.0", "/usr/lib/x86_64-linux-gnu/libmimalloc.so.2"),
    ("libtcmalloc-minimal4", "/usr/lib/x86_64-linux-gnu/libtcmalloc_minimal.so.4"),
];
const ANYWHERE: [(&Program, &[&str]); 5] = [
    (&PLAIN, &["leaks", "resizes", "refused", "aligned", "nothing", "libraries"]),
    (&THREADS, &["crossing", "storm"]),
    (&PROCESSES, &["forks"]),
    (&CPP, &["news", "containers", "exceptions"]),
    (&RUST, &["all"]),
];

#[track_caller]
fn allocators() -> impl Iterator<Item = (&'static str, &'static str)> {
    let there = |(package, library): &(&str, &str)| {
        let there = std::path::Path::new(library).exists();
        if !there {
            lab::skip(&format!("package:{package}"), "not installed");
        }
        there
    };
    ALLOCATORS.into_iter().filter(there)
}

// Slow: every scenario with each of three allocators.
#[test]
fn preloaded_allocators() {
    for (_, library) in allocators() {
        for (program, scenarios) in ANYWHERE {
            let Some(program) = program.build() else { continue };
            for scenario in scenarios {
                exact(User::Me, &[&program, scenario], &[("LD_PRELOAD", library)]);
            }
        }
    }
}

// Slow: every scenario with each of three allocators.
#[test]
fn linked_allocators() {
    for (package, library) in allocators() {
        for (program, scenarios) in
            [(&PLAIN, &["leaks", "resizes", "aligned"]), (&CPP, &["news", "containers", "exceptions"])]
        {
            let Some(program) = program.linked(&format!("_{package}"), &["-Wl,--no-as-needed", library]) else {
                continue;
            };
            for scenario in scenarios {
                exact(User::Me, &[&program, scenario], &[]);
            }
        }
    }
}

/// The functions of stacks that have something outstanding, from the innermost of a name on.
#[track_caller]
fn from<'a>(json: &'a Value, name: &str) -> Vec<Vec<&'a str>> {
    let all = json["stacks"].as_array().expect("stacks");
    let held = all.iter().filter(|s| sum_of(&s["outstanding"]).blocks > 0).map(functions);
    held.filter_map(|names| names.iter().position(|n| *n == name).map(|at| names[at..].to_vec())).collect()
}

/// A stack up to main.
fn to_main<'a>(stack: &[&'a str]) -> Vec<&'a str> {
    let end = stack.iter().position(|n| *n == "main").map_or(stack.len(), |at| at + 1);
    stack[..end].to_vec()
}

#[test]
fn stacks_are_whole() {
    let (Some(plain), Some(signals)) = (PLAIN.build(), SIGNALS.build()) else { return };
    let deep = exact(User::Me, &[&plain, "deep"], &[]);
    let stacks = from(&deep.json, "leaks");
    let mut want = vec!["leaks"];
    want.extend(["descends"; 200]);
    want.extend(["deep", "run_scenario", "main"]);
    assert_eq!(stacks.iter().map(|s| to_main(s)).collect::<Vec<_>>(), [want]);

    let leaks = exact(User::Me, &[&plain, "leaks"], &[]);
    let inlined = from(&leaks.json, "leaks_inlined");
    assert!(!inlined.is_empty() && inlined.iter().all(|s| s[1] == "another_way"), "{inlined:?}");
    for way in ["one_way", "another_way"] {
        assert!(from(&leaks.json, "leaks").iter().any(|s| s[1] == way), "{way}");
    }

    // A handler's stack goes on with what was interrupted, on the same stack and on another one.
    for scenario in ["timer", "other_stack"] {
        let timer = exact(User::Me, &[&signals, scenario], &[]);
        let stacks = from(&timer.json, "on_timer");
        assert!(!stacks.is_empty());
        for stack in stacks {
            let works = stack.iter().filter(|n| **n == "works").count();
            assert!(works == 6 && to_main(&stack).ends_with(&[scenario, "run_scenario", "main"]), "{stack:?}");
        }
    }

    // The code of a library that is closed is known.
    let libraries = exact(User::Me, &[&plain, "libraries"], &[]);
    let stacks = from(&libraries.json, "library_allocates");
    assert!(!stacks.is_empty() && stacks.iter().all(|s| s[1] == "libraries"), "{stacks:?}");
    let coroutines = exact(User::Me, &[&plain, "coroutines"], &[]);
    let longest = from(&coroutines.json, "in_a_coroutine").iter().map(Vec::len).max();
    assert!(longest.is_some_and(|n| n > 20), "{longest:?}");
}

/// Frames have the file and the line of the allocation.
#[test]
fn lines_are_those_of_the_source() {
    let Some(program) = PLAIN.build() else { return };
    let source =
        std::fs::read_to_string(format!("{}/../../tests/programs/heap.c", env!("CARGO_MANIFEST_DIR"))).expect("heap.c");
    let line = 1 + source.lines().position(|l| l.contains("void *block = MALLOC(size);")).expect("its line");
    let shown = exact(User::Me, &[&program, "deep"], &[]);
    let all = shown.json["stacks"].as_array().expect("stacks");
    let frames = all.iter().flat_map(|s| s["frames"].as_array().into_iter().flatten());
    let leaks: Vec<&Value> = frames.filter(|f| f["function"] == "leaks").collect();
    assert_eq!(leaks.len(), 1, "{leaks:?}");
    let place = leaks[0].to_string();
    assert!(place.contains("heap.c") && place.contains(&line.to_string()), "{place}, not line {line}");
    assert!(leaks[0]["module"].as_str().is_some_and(|m| m.ends_with("heap_c")), "{place}");
}

/// What is left of mappings, by their events; addresses are compared with the program's first mapping.
#[test]
fn mappings_and_their_parts() {
    const PAGE: u64 = 4096;
    let Some(program) = PLAIN.build() else { return };
    let trace = lab::scratch().join("trace").display().to_string();
    let args = [
        "record",
        "-q",
        "-e",
        "heap:mmap",
        "-e",
        "heap:munmap",
        "--on-full",
        "block",
        "-o",
        &trace,
        "--",
        &program,
        "mappings",
    ];
    let out = lab::run(&mut lab::trapline(User::Me, &args));
    assert_eq!((out.code(), out.out()), (0, bare(User::Me, &[&program, "mappings"], &[]).out()), "{}", out.stderr);
    let report = lab::run(&mut lab::trapline(User::Me, &["report", "-q", "--as", EVENTS, &trace]));
    let mut mapped = BTreeSet::new();
    let mut first = None;
    for line in report.out().lines() {
        let event: Value = serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"));
        let name = event["name"].as_str().unwrap_or_default();
        if name != "heap:mmap" && name != "heap:munmap" {
            continue;
        }
        let value = |key: &str| event.get(key).or_else(|| event["args"].get(key)).map_or(0, address_of);
        let (from, size) = (value("address"), value("size"));
        if name == "heap:mmap" && size == 100 * PAGE && first.is_none() {
            first = Some(from);
        }
        let there = from..from + size;
        match name {
            "heap:mmap" => mapped.extend(there.step_by(4096)),
            _ => mapped.retain(|page| !there.contains(page)),
        }
    }
    let first = first.expect("the mapping of 100 pages");
    let left: Vec<u64> = (0..100).filter(|n| mapped.contains(&(first + n * PAGE))).collect();
    let want: Vec<u64> = (10..44).chain(50..60).chain(65..95).collect();
    assert_eq!(left, want);
}

/// A number of a JSON event: as such, or as text in hexadecimal.
pub fn address_of(value: &Value) -> u64 {
    let text = value.as_str().and_then(|s| u64::from_str_radix(s.trim_start_matches("0x"), 16).ok());
    value.as_u64().or(text).unwrap_or_else(|| panic!("no number: {value}"))
}

/// The views say the same in their words.
#[test]
fn text_and_flame_graphs() {
    let Some(program) = PLAIN.build() else { return };
    let own = Account::of(&bare(User::Me, &[&program, "leaks"], &[]).out()).totals();
    let run = |args: &[&str]| {
        let all = [&["heap", "-q"][..], args, &["--", &program, "leaks"]].concat();
        let out = lab::run(&mut lab::trapline(User::Me, &all));
        assert_eq!(out.code(), 0, "{}", out.stderr);
        out.out()
    };
    for view in ["leaks", "peak", "totals", "temporary", "growth"] {
        let text = run(&["--as", view]);
        assert!(text.contains("leaks"), "{view}: {text}");
    }
    let text = run(&[]);
    let blocks = format!("{} blocks", own.outstanding.blocks);
    assert!(text.contains(&blocks) && text.contains("another_way") && text.contains("heap.c"), "{text}");
    assert!(run(&["--as", "flame"]).contains("<svg"), "no flame graph");
    let folded = run(&["--as", "folded"]);
    let sum: u64 =
        folded.lines().filter(|l| l.contains(';')).filter_map(|l| l.rsplit_once(' ')?.1.parse::<u64>().ok()).sum();
    assert_eq!(sum, own.outstanding.bytes, "{folded}");
}

/// Blocks are weighed by a sample; what comes out is near to what is there.
#[test]
fn samples_are_near() {
    let Some(program) = PLAIN.build() else { return };
    let command = [&*program, "resizes"];
    let account = Account::of(&bare(User::Me, &command, &[]).out());
    let shown = Shown::of(User::Me, &["--sample", "64K"], &command, &[]);
    let (all, own) = (sum_of(&shown.json["total"]), account.totals().allocated);
    // 80 MB are about 1,200 samples: a deviation of a quarter is nine times what is usual.
    assert!(all.bytes.abs_diff(own.bytes) < own.bytes / 4, "{all:?} {own:?}");
    assert_eq!(number(&shown.json["lost"]), 0);
}

/// A program that is killed, and one whose tracer is.
#[test]
fn what_was_outstanding_when_it_was_killed() {
    let Some(program) = PLAIN.build() else { return };
    let file = lab::scratch().join("json");
    let view = format!("json={}", file.display());
    let mut command = lab::trapline(User::Me, &["heap", "-q", "--as", &view, "--", &program, "endless"]);
    let said = lab::scratch().join("said");
    let running = lab::start(command.stdout(std::fs::File::create(&said).expect("a file")));
    lab::until("it runs", || std::fs::read(&said).is_ok_and(|text| text == b"ready\n"));
    std::thread::sleep(std::time::Duration::from_millis(200));
    lab::kill("KILL", child_of(running.pid()).expect("its child").into());
    let out = running.end();
    assert_eq!(out.code(), 128 + 9, "{}", out.stderr);
    let json: Value = serde_json::from_slice(&std::fs::read(&file).expect("a report")).expect("JSON");
    let account = Account::of("heap leaks 0 0 0 0\n");
    let left = crate::heap_accounts::by_function(&json, "outstanding", &account)["leaks"];
    let all = crate::heap_accounts::by_function(&json, "total", &account)["leaks"];
    assert!(left == Sum { blocks: 100, bytes: 100_000 } || left == Sum { blocks: 101, bytes: 100_010 }, "{left:?}");
    assert!(all.blocks > 1000, "{all:?}");
}

/// The program of this name that trapline, or a process of it, has started.
pub fn child_of(trapline: u32) -> Option<u32> {
    let children = |pid: u32| {
        let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
        let lists = tasks.filter_map(|t| std::fs::read_to_string(t.path().join("children")).ok());
        lists
            .flat_map(|l| l.split_whitespace().filter_map(|n| n.parse().ok()).collect::<Vec<u32>>())
            .collect::<Vec<u32>>()
    };
    let is_program =
        |pid: &u32| std::fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|c| c.trim() == "heap_c");
    let below = children(trapline);
    below.iter().copied().find(is_program).or_else(|| below.iter().flat_map(|c| children(*c)).find(is_program))
}
