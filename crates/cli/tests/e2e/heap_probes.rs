//! `record -e heap:…`: filters, stops, counters; beside other probes; what a report of some of the events says.

use crate::lab::{self, User, each_user};
use crate::probes::{Recorded, options, read, refused};
use crate::sessions::{Phases, Room};
use serde_json::Value;
use std::fs;

/// Bytes of blocks and mappings of tests/programs/heap_steered.c.
const LARGE: u64 = 54321;
const SMALL: u64 = 21;
const MAPPED: u64 = 12288;

fn program() -> Option<String> {
    testkit::compile("gcc", "heap_steered", "heap_steered.c", &["-O2", "-g", "-pthread"])
}

/// Records the program while it is told these.
#[track_caller]
fn record(with: &[&str], program: &str, told: &[(&str, usize)]) -> Recorded {
    let (words, dir, stats) = options(&[&["--on-full", "block"], with].concat(), &[program]);
    let mut p = Phases::start(&mut lab::trapline(User::Me, &words));
    told.iter().for_each(|(what, n)| p.make(what, *n));
    let out = p.end();
    assert_eq!(out.code(), 0, "{words:?}: {}", out.stderr);
    read(dir, stats, out)
}

/// How many events of a probe have this size.
fn of_size(r: &Recorded, probe: &str, size: u64) -> usize {
    r.of(probe).iter().filter(|e| e["args"]["size"] == size).count()
}

#[test]
fn each_probe_has_its_events() {
    let Some(program) = program() else { return };
    let r = record(&["-e", "heap:*"], &program, &[("large", 10), ("small", 5), ("maps", 4), ("threads", 6)]);
    assert_eq!((of_size(&r, "heap:malloc", LARGE), of_size(&r, "heap:malloc", SMALL)), (10 + 18, 5));
    assert_eq!((of_size(&r, "heap:mmap", MAPPED), of_size(&r, "heap:munmap", MAPPED)), (4, 4));
    let [mallocs, frees] = ["heap:malloc", "heap:free"].map(|probe| r.count(probe, "recorded"));
    assert!(frees >= 33 && mallocs >= frees, "{}", r.stats);
    assert!(r.of("heap:malloc").iter().all(|e| e.get("ustack").is_none()), "{:?}", r.of("heap:malloc")[0]);
    assert_eq!((r.stats["dropped"].as_u64(), r.stats["missed"].as_u64()), (Some(0), Some(0)));
    let enabled = |e: &Value| (e["probe"].as_str().expect("a name").to_string(), e["recorded"].as_u64());
    let enablings: Vec<_> = r.stats["enablings"].as_array().expect("enablings").iter().map(enabled).collect();
    for (probe, n) in enablings {
        assert_eq!(n, Some(r.count(&probe, "recorded")), "{probe}");
    }
    let one = record(&["-e", "heap:mmap ustack"], &program, &[("large", 10), ("maps", 4)]);
    assert!(one.events.iter().all(|e| !e["name"].as_str().is_some_and(|n| n.starts_with("heap:") && n != "heap:mmap")));
    let stack = |e: &&Value| e["args"]["size"] == MAPPED && e["ustack"].to_string().contains("main");
    assert_eq!(one.of("heap:mmap").iter().filter(|e| stack(e)).count(), 4, "{:?}", one.of("heap:mmap"));
}

/// Every event is in the trace or in a counter.
#[test]
fn filters_are_of_one_probe_or_of_all() {
    let Some(program) = program() else { return };
    let told = [("large", 10), ("small", 5), ("maps", 4)];
    let all = record(&["-e", "heap:*"], &program, &told);
    let r = record(
        &["-e", "heap:malloc /args.size > 54000/", "-e", "heap:free", "-e", "heap:malloc /args.size == 21/"],
        &program,
        &told,
    );
    assert_eq!(
        (r.count("heap:malloc", "recorded"), r.count("heap:malloc", "seen")),
        (15, all.count("heap:malloc", "seen"))
    );
    assert_eq!(r.count("heap:free", "recorded"), all.count("heap:free", "recorded"));
    let enablings = r.stats["enablings"].as_array().expect("enablings");
    let recorded: Vec<_> = enablings.iter().map(|e| (e["recorded"].as_u64(), &e["filter"][0]["part"])).collect();
    assert_eq!((recorded[0].0, recorded[2].0), (Some(10), Some(5)), "{enablings:?}");
    assert_eq!((recorded[0].1, recorded[2].1), (&"args.size > 54000".into(), &"args.size == 21".into()));
    let by_name = ["-e", "heap:malloc /comm == \"heap_steered\" && uid == 0/", "-e", "heap:free /comm == \"other\"/"];
    let r = record(&by_name, &program, &told);
    let own = if sys::process::ruid() == 0 { r.count("heap:malloc", "seen") } else { 0 };
    assert_eq!((r.count("heap:malloc", "recorded"), r.count("heap:free", "recorded")), (own, 0));
    let whole = record(&["-e", "heap:*", "--where", "args.size == 12288"], &program, &told);
    assert_eq!((whole.count("heap:mmap", "recorded"), whole.count("heap:munmap", "recorded")), (4, 4));
    assert_eq!(whole.count("heap:free", "filtered"), all.count("heap:free", "recorded"));
    assert!(whole.out.stderr.contains("3 have args.size: the others are skipped"), "{}", whole.out.stderr);
    for (bad, why) in [
        ("heap:maloc", "did you mean heap:malloc"),
        ("heap:malloc kstack", "captures only its stack"),
        ("heap:malloc comm", "captures only its stack"),
        ("heap:malloc str(address)", "captures only its stack"),
        ("heap:malloc ustack=7", "are whole"),
        ("heap:malloc /args.length > 1/", "unknown field"),
        ("heap:free /cpu == 0/", "is not recorded"),
    ] {
        let (code, said) = refused(User::Me, &["-e", bad]);
        assert!(code == 2 && said.contains(why), "{bad}: {said}");
    }
}

#[test]
fn allocations_are_in_one_trace_with_everything_else() {
    let Some(program) = program() else { return };
    let with = ["-e", "heap:malloc /args.size == 54321/ ustack", "-e", "function:thread", "-e", "write"];
    let r = record(&with, &program, &[("large", 3), ("threads", 5)]);
    assert_eq!(r.count("heap:malloc", "recorded"), 18);
    assert_eq!(r.stats["probes"]["syscall:write"]["recorded"], 2);
    assert_eq!((r.count("function:entry", "recorded"), r.count("function:exit", "recorded")), (3, 3));
    // The ones of a thread are between its entry into the function and its exit.
    let times = |name: &str, tid: &Value| {
        let of = r.of(name).into_iter().filter(|e| e["tid"] == *tid);
        of.map(|e| e["time_ns"].as_u64().expect("a time")).collect::<Vec<_>>()
    };
    for entry in r.of("function:entry") {
        let tid = &entry["tid"];
        let (entered, left, blocks) =
            (times("function:entry", tid), times("function:exit", tid), times("heap:malloc", tid));
        assert_eq!((entered.len(), left.len(), blocks.len()), (1, 1, 5));
        assert!(blocks.iter().all(|t| (entered[0]..=left[0]).contains(t)), "{entered:?} {blocks:?} {left:?}");
    }
    let in_order: Vec<u64> = r.events.iter().filter_map(|e| e["time_ns"].as_u64()).collect();
    assert!(in_order.is_sorted());
}

#[test]
fn what_is_allocated_while_a_session_is_stopped_is_no_event() {
    let Some(program) = program() else { return };
    each_user(|user| {
        let room = Room::new(user);
        let args = ["record", "-o", "h.trace", "--name", "h", "--on-full", "block", "-e"];
        let one = "heap:malloc /args.size == 54321/";
        let mut p = Phases::start(&mut room.trapline(&[&args[..], &[one, "--", &program]].concat()));
        lab::until("its socket", || room.socket("h").exists());
        p.make("large", 5);
        room.does(&["stop", "h"]);
        p.make("large", 700);
        p.make("threads", 20);
        room.does(&["start", "h"]);
        p.make("large", 7);
        p.make("threads", 11);
        lab::until("all events", || room.status("h")["events"] == 5 + 7 + 33);
        let status = room.status("h");
        let of = |key: &str| status["probes"]["heap:malloc"][key].as_u64().expect("a number");
        assert_eq!((of("recorded"), of("seen") - of("filtered")), (45, 45), "{status}");
        assert_eq!((&status["enablings"][0]["recorded"], &status["dropped"]), (&45.into(), &0.into()), "{status}");
        room.refuses(&["set", "h", "-e", "+heap:free"], 125, "stay as they are");
        room.refuses(&["set", "h", "-e", "-heap:malloc"], 2, "nothing would be enabled");
        room.does(&["stop", "h"]);
        p.make("large", 3000);
        assert_eq!(p.end().code(), 0);
        let events = room.events("h.trace");
        let count = |name: &str| events.iter().filter(|m| *m == name).count();
        assert_eq!((count("heap:malloc"), count("paused"), count("resumed")), (45, 2, 1));
    });
}

/// Full buffers lose events, and each of them is counted.
#[test]
fn what_finds_no_room_is_counted() {
    const MANY: usize = 400_000;
    let Some(program) = program() else { return };
    let with = ["-e", "heap:malloc", "-e", "heap:free", "--buffer", "64K", "--on-full", "drop"];
    let (words, dir, stats) = options(&with, &[&program]);
    let mut p = Phases::start(&mut lab::trapline(User::Me, &words));
    p.make("large", MANY);
    let out = p.end();
    let r: Value = serde_json::from_str(&fs::read_to_string(stats).expect("statistics")).expect("JSON");
    let [events, dropped] = ["events", "dropped"].map(|key| r[key].as_u64().expect("a number"));
    // Records that open a chunk, and those of libc.
    assert!(
        (2 * MANY as u64..2 * MANY as u64 + 100).contains(&(events + dropped)),
        "{events} {dropped}: {}",
        out.stderr
    );
    let report =
        |view: &str| lab::run(&mut lab::trapline(User::Me, &["report", "--as", view, dir.to_str().expect("UTF-8")]));
    let shown = report("leaks");
    if dropped > 0 {
        assert!(shown.stderr.contains(&format!("{dropped} events were dropped")), "{}", shown.stderr);
        assert!(shown.out().contains("events lost"), "{}", shown.out());
    }
}

#[test]
fn limited_traces_have_the_last_events() {
    let Some(program) = program() else { return };
    for limit in [["--max-size", "1M"], ["--flight", "512K"]] {
        let with = [&limit[..], &["-e", "heap:malloc ustack", "-e", "heap:free", "--on-full", "block"]].concat();
        let (words, dir, stats) = options(&with, &[&program]);
        let mut p = Phases::start(&mut lab::trapline(User::Me, &words));
        p.make("large", 100_000);
        p.make("kept", 17);
        let out = p.end();
        assert_eq!(out.code(), 0, "{}", out.stderr);
        let stats: Value = serde_json::from_str(&fs::read_to_string(stats).expect("statistics")).expect("JSON");
        assert!(stats["overwritten"].as_u64().is_some_and(|n| n > 100_000) && stats["dropped"] == 0, "{stats}");
        let dir = dir.to_str().expect("UTF-8");
        let shown = lab::run(&mut lab::trapline(User::Me, &["report", "--as", "leaks", dir]));
        assert_eq!(shown.code(), 0, "{}", shown.stderr);
        assert!(shown.out().contains("in 17 blocks") && shown.out().contains("(allocates)"), "{}", shown.out());
        assert!(shown.stderr.contains("what is outstanding cannot be known"), "{}", shown.stderr);
    }
}

/// What is not known of some of the events is said.
#[test]
fn a_report_of_some_events_says_so() {
    const DOUBT: &str = "what is outstanding cannot be known";
    let Some(program) = program() else { return };
    let report = |r: &Recorded, more: &[&str]| {
        let dir = r.dir.to_str().expect("UTF-8");
        lab::run(&mut lab::trapline(User::Me, &[&["report", dir][..], more].concat()))
    };
    let told = [("kept", 3), ("large", 2)];
    for (with, said) in [
        (&["-e", "heap:malloc"][..], "heap:free was not recorded"),
        (&["-e", "heap:munmap", "-e", "heap:free"], "heap:malloc was not recorded"),
        (&["-e", "heap:malloc /args.size > 1/", "-e", "heap:free"], "a filter"),
        (&["-e", "heap:malloc", "-e", "heap:free", "--where", "pid > 1"], "a filter"),
    ] {
        let out = report(&record(with, &program, &told), &["--as", "leaks"]);
        assert!(out.code() == 0 && out.stderr.contains(said) && out.stderr.contains(DOUBT), "{with:?}: {}", out.stderr);
    }
    let r = record(&["-e", "heap:malloc ustack", "-e", "heap:free"], &program, &told);
    let whole = report(&r, &["--as", "leaks"]);
    assert!(!whole.stderr.contains(DOUBT) && whole.out().contains("in 3 blocks"), "{} {}", whole.stderr, whole.out());
    assert!(report(&r, &["--as", "leaks", "-e", "heap:malloc"]).stderr.contains(DOUBT));
    // Views of the heap and of events have their names.
    assert!(report(&r, &["--as", "json"]).out().lines().all(|l| l.starts_with("{\"v\":1,\"type\":\"")));
    let heap: Value = serde_json::from_str(&report(&r, &["--as", "heap-json"]).out()).expect("JSON");
    assert_eq!((&heap["name"], heap["lost"].as_u64()), (&"heap_steered".into(), Some(0)));
    let folded = |more: &[&str]| report(&r, &[&["--as", "folded"], more].concat()).out();
    assert!(folded(&[]).contains(&format!("main;allocates {}", 3 * LARGE)), "{}", folded(&[]));
    assert!(
        folded(&["--of", "total"]).contains(&format!("main;allocates {}", 5 * LARGE)),
        "{}",
        folded(&["--of", "total"])
    );
    // The profile of the events, as of any with stacks.
    assert!(folded(&["--by", "args.size"]).contains(&format!("main;allocates {}", 5 * LARGE)));
    let none = report(&r, &["--top", "3"]);
    assert!(none.code() == 2 && none.stderr.contains("it is for views of the heap"), "{}", none.stderr);
    let (words, dir, _) = options(&["-e", "openat"], &["true"]);
    assert_eq!(lab::run(&mut lab::trapline(User::Me, &words)).code(), 0);
    let none = lab::run(&mut lab::trapline(User::Me, &["report", "--as", "leaks", dir.to_str().expect("UTF-8")]));
    assert!(none.code() == 125 && none.stderr.contains("it has no allocations"), "{}", none.stderr);
}

#[test]
fn the_probes_are_listed_and_explained() {
    let list = |args: &[&str]| lab::run(&mut lab::trapline(User::Me, &[&["list"][..], args].concat())).out();
    assert_eq!(list(&["heap:*"]), "heap:free\nheap:malloc\nheap:mmap\nheap:munmap\n");
    assert!(list(&["-v", "heap:malloc"]).starts_with("heap:malloc(void *address, size_t size)"));
    assert!(list(&["*:m*map"]).contains("heap:mmap"));
    let args = ["record", "--explain", "-e", "heap:malloc /args.size > 1/ ustack", "--", "true"];
    let said = lab::run(&mut lab::trapline(User::Me, &args)).stderr;
    for line in [
        "only an agent traces allocations",
        "probe: heap:malloc: ",
        "fields: address, size, ustack",
        "by trapline: args.size > 1",
    ] {
        assert!(said.contains(line), "{line}: {said}");
    }
}
