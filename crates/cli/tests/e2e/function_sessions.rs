//! Sessions of functions: stop, start, set, status; filters; every record is in the trace or in a counter.

use crate::lab::{self, User, each_user};
use crate::sessions::{Phases, Room};
use serde_json::Value;
use std::fs;

fn program() -> Option<String> {
    testkit::compile("gcc", "agent_steered", "agent_steered.c", &["-O1", "-fno-inline", "-pthread"])
}

/// `trapline record -o NAME.trace --stats NAME.json OPTIONS -- COMMAND`
fn record(room: &Room, name: &str, options: &[&str], command: &[&str]) -> Phases {
    let (dir, stats) = (format!("{name}.trace"), format!("{name}.json"));
    let args = ["record", "-o", &dir, "--stats", &stats];
    Phases::start(&mut room.trapline(&[&args, options, &["--"], command].concat()))
}

/// With a name; it has begun when this returns.
fn session(room: &Room, name: &str, options: &[&str], command: &[&str]) -> Phases {
    let p = record(room, name, &[&["--name", name], options].concat(), command);
    lab::until("its socket", || room.socket(name).exists());
    p
}

fn stats(room: &Room, name: &str) -> Value {
    let text = fs::read(room.path.join(format!("{name}.json"))).expect("statistics");
    let stats: Value = serde_json::from_slice(&text).expect("JSON");
    for (probe, n) in stats["probes"].as_object().expect("probes") {
        let of = |key: &str| n[key].as_u64().expect("a number");
        assert_eq!(of("seen"), of("recorded") + of("dropped") + of("filtered"), "{probe}: {n}");
    }
    stats
}

/// A counter, of entries and exits together.
fn both(stats: &Value, counter: &str) -> u64 {
    let of = |class: &str| stats["probes"][class][counter].as_u64().unwrap_or(0);
    of("function:entry") + of("function:exit")
}

/// The functions that were entered, in order.
fn entered(room: &Room, name: &str) -> Vec<String> {
    let dir = format!("{name}.trace");
    let out = lab::run(&mut room.trapline(&["report", "-q", "--as", "json", &dir]));
    assert_eq!(out.code(), 0, "{}", out.stderr);
    let event = |line: &str| -> Value { serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}")) };
    let entries = out.out().lines().map(event).filter(|v| v["name"] == "function:entry").collect::<Vec<_>>();
    entries.iter().map(|v| v["args"]["function"].as_str().expect("a name").to_string()).collect()
}

fn report(room: &Room, view: &str, name: &str) -> String {
    let out = lab::run(&mut room.trapline(&["report", "-q", "--as", view, &format!("{name}.trace")]));
    assert_eq!(out.code(), 0, "{}", out.stderr);
    out.out()
}

#[test]
fn what_is_called_while_a_session_is_stopped_is_not_recorded() {
    let Some(program) = program() else { return };
    each_user(|user| {
        let room = Room::new(user);
        let mut p = session(&room, "a", &["-e", "function:work"], &[&program]);
        p.make("work", 5);
        room.does(&["stop", "a"]);
        assert_eq!(room.status("a")["state"], "stopped");
        room.refuses(&["stop", "a"], 125, "already stopped");
        p.make("work", 70);
        p.make("threads", 20);
        room.does(&["start", "a"]);
        p.make("work", 7);
        p.make("threads", 11);
        lab::until("all records", || room.status("a")["events"] == 2 * (5 + 7 + 33));
        let status = room.status("a");
        assert_eq!((&status["agents"]["processes"], &status["dropped"]), (&1.into(), &0.into()), "{status}");
        assert_eq!(status["streams"][0]["used"], 0, "{status}");
        assert!(room.does(&["status", "a"]).contains("1 processes, "));
        room.does(&["stop", "a"]);
        p.make("work", 3000);
        assert_eq!(p.end().code(), 0);
        let marks = room.events("a.trace");
        let count = |name: &str| marks.iter().filter(|m| *m == name).count();
        assert_eq!((count("function:entry"), count("function:exit")), (45, 45));
        assert_eq!((count("paused"), count("resumed")), (2, 1));
        let stats = stats(&room, "a");
        let work = &stats["enablings"][0];
        assert_eq!(
            (&work["probe"], &work["seen"], &work["recorded"]),
            (&"function:work".into(), &90.into(), &90.into())
        );
        assert!(report(&room, "stats", "a").contains("function:work"), "{stats}");
    });
}

#[test]
fn a_session_may_begin_stopped() {
    let Some(program) = program() else { return };
    let room = Room::new(User::Me);
    let mut p = session(&room, "b", &["--paused", "-e", "function:*"], &[&program]);
    p.make("work", 9);
    room.does(&["start", "b"]);
    p.make("work", 2);
    assert_eq!(p.end().code(), 0);
    assert_eq!(entered(&room, "b").iter().filter(|f| *f == "work").count(), 2);
}

/// A call that is entered before a stop and left in it, and one that is entered in it and left later.
#[test]
fn a_stop_is_a_hole_in_the_calls() {
    let Some(program) = program() else { return };
    let room = Room::new(User::Me);
    let mut p = session(&room, "c", &["-e", "function:work", "-e", "function:deep"], &[&program]);
    p.make("in", 0);
    p.make("work", 1);
    room.does(&["stop", "c"]);
    p.make("out", 0);
    p.make("in", 0);
    p.make("in", 0);
    p.make("in", 0);
    room.does(&["start", "c"]);
    p.make("work", 1);
    // Both of the inner calls, as far as anybody knows, and two that nobody has seen begin.
    for _ in 0..3 {
        p.make("out", 0);
    }
    assert_eq!(p.end().code(), 0);
    let functions = report(&room, "functions", "c");
    let last = functions.lines().last().expect("a sum");
    assert!(last.contains("2 calls entered while nothing was recorded") && !last.contains("missing"), "{last}");
    let cat = report(&room, "cat", "c");
    assert_eq!(cat.lines().filter(|l| l.contains("/* the session was stopped here */")).count(), 1, "{cat}");
    let json = report(&room, "calls-json", "c");
    assert_eq!(json.lines().filter(|l| l.contains("\"pause\"")).count(), 1, "{json}");
}

/// System calls and functions of one session: neither has anything of the time when it was stopped, and `set` changes both.
#[test]
fn calls_and_functions_of_a_session_stop_and_start_together() {
    let Some(program) = program() else { return };
    each_user(|user| {
        let room = Room::new(user);
        let events = ["-e", "write /args.fd == 1/", "-e", "function:work", "-e", "function:other"];
        let mut p = session(&room, "both", &events, &[&program]);
        // What the agent refuses, the other backend does not do either.
        if user == User::Me {
            let all = ["set", "both", "-e", "+tracepoint:sched:sched_process_fork", "-e", "+function:nothing"];
            room.refuses(&all, 125, "no function of the traced programs has this name");
            let enablings = room.status("both")["enablings"].as_array().map(Vec::len);
            assert_eq!(enablings, Some(2), "of the functions that it has begun with");
        }
        // The program says "done" before its call has ended.
        let reach = |n: u64| lab::until("all events", || room.status("both")["events"].as_u64() >= Some(n));
        p.make("other", 2);
        reach(2 * 2 + 1);
        room.does(&["set", "both", "-e", "-function:other"]);
        p.make("work", 5);
        p.make("other", 6);
        reach(2 * (2 + 5) + 3);
        room.does(&["stop", "both"]);
        p.make("work", 70);
        p.make("threads", 9);
        room.does(&["start", "both"]);
        p.make("work", 7);
        reach(2 * (2 + 5 + 7) + 4);
        room.does(&["set", "both", "-e", "+function:other", "-e", "-write"]);
        p.make("other", 3);
        p.make("work", 2);
        room.does(&["set", "both", "-e", "-function:work"]);
        p.make("work", 40);
        p.make("other", 4);
        room.does(&["stop", "both"]);
        p.make("other", 50);
        room.does(&["start", "both"]);
        p.make("other", 1);
        assert_eq!(p.end().code(), 0);
        let names = entered(&room, "both");
        let count = |name: &str| names.iter().filter(|n| *n == name).count();
        assert_eq!((count("work"), count("other")), (5 + 7 + 2, 2 + 3 + 4 + 1), "{user:?}");
        let marks = room.events("both.trace");
        let count = |name: &str| marks.iter().filter(|m| *m == name).count();
        assert_eq!((count("paused"), count("resumed")), (2, 2));
        // What the program has said before the stop, and to the next request after it; not while it was stopped, nor after `set`.
        assert_eq!(count("write"), 4, "{marks:?}");
        let stats = stats(&room, "both");
        assert_eq!((both(&stats, "recorded"), both(&stats, "dropped")), (2 * 24, 0), "{stats}");
    });
}

#[test]
fn functions_are_taken_away_and_come_back() {
    let Some(program) = program() else { return };
    let room = Room::new(User::Me);
    let options = ["-e", "function:work", "-e", "function:other", "-e", "function:d*"];
    let mut p = session(&room, "d", &options, &[&program]);
    p.make("other", 1);
    room.does(&["set", "d", "-e", "-function:wo*"]);
    p.make("work", 50);
    p.make("other", 1);
    room.does(&["set", "d", "-e", "+function:work /tid != pid/", "-e", "-function:other"]);
    p.make("work", 2);
    p.make("other", 50);
    p.make("threads", 2);
    room.refuses(&["set", "d", "-e", "+function:works"], 125, "works was not patched when its program started");
    room.refuses(&["set", "d", "-e", "+function:nothing"], 125, "no function of this name");
    room.refuses(&["set", "d", "-e", "-function:nothing"], 125, "no such function is traced");
    room.refuses(&["set", "d", "-e", "+function:d*"], 125, "it is enabled already");
    room.refuses(&["set", "d", "-e", "+function:deep /args.no == 1/"], 2, "F0003");
    room.refuses(&["set", "d", "-e", "function:work"], 2, "is added or taken away");
    room.refuses(&["set", "d", "-p", "1"], 125, "no agent");
    room.refuses(&["set", "d", "-e", "openat"], 125, "the session records functions");
    room.refuses(&["set", "d", "-e", "-function:*"], 2, "nothing would be enabled");
    // A part of what a pattern has enabled.
    room.does(&["set", "d", "-e", "-function:dee?"]);
    p.make("in", 0);
    p.make("out", 0);
    let status = room.status("d");
    let state = |n: usize| status["enablings"][n]["enabled"].as_bool().expect("a flag");
    assert_eq!((state(0), state(1), state(2), state(3)), (false, false, true, true), "{status}");
    assert_eq!(p.end().code(), 0);
    let entered = entered(&room, "d");
    let count = |name: &str| entered.iter().filter(|f| *f == name).count();
    assert_eq!((count("work"), count("other"), count("deep")), (6, 2, 1), "{entered:?}");
    // Two calls in the first thread were rejected, at both ends.
    let stats = stats(&room, "d");
    assert_eq!((both(&stats, "filtered"), &stats["enablings"][3]["filtered"]), (4, &4.into()), "{stats}");
}

#[test]
fn filters_apply_to_what_is_recorded() {
    let Some(program) = program() else { return };
    let room = Room::new(User::Me);
    let check = |options: &[&str], recorded: u64, filtered: u64| {
        let mut p = record(&room, "e", &[&["--force"], options].concat(), &[&program]);
        p.make("work", 3);
        p.make("other", 4);
        p.make("threads", 5);
        let out = p.end();
        assert_eq!(out.code(), 0, "{options:?}: {}", out.stderr);
        let stats = stats(&room, "e");
        assert_eq!((both(&stats, "recorded"), both(&stats, "filtered")), (recorded, filtered), "{options:?} {stats}");
        assert_eq!(entered(&room, "e").len() as u64 * 2, recorded, "{options:?}");
        stats
    };
    // 3 + 15 calls of work, 4 of other.
    let all = ["-e", "function:work,function:other", "--where"];
    let with = |text| [&all[..], &[text]].concat();
    check(&with("tid == pid"), 14, 30);
    check(&with("args.function == \"work\""), 36, 8);
    check(&with("comm == \"agent_steered\" && startswith(args.function, \"oth\")"), 8, 36);
    check(&with("nsecs > 1"), 44, 0);
    check(&with("uid == 4294967295"), 0, 44);
    let stats = check(&["-e", "function:work /tid != pid/", "-e", "function:other"], 38, 6);
    assert_eq!(stats["enablings"][0]["filter"][0]["rejected"], 6, "{stats}");
    let stats = check(&["-e", "function:w* /tid != pid/", "--where", "args.function != \"works\""], 30, 14);
    assert_eq!(stats["where"][0]["rejected"], 8, "{stats}");
    for (options, why) in [
        (&["-e", "function:work", "--where", "retval == 0"][..], "F0012"),
        (&["-e", "function:work /args.function == 3/"], "F0009"),
        (&["-e", "function:work kstack"], "no captures"),
    ] {
        let out = lab::run(&mut room.trapline(&[&["record"], options, &["--", "true"]].concat()));
        assert!(out.code() == 2 && out.stderr.contains(why) && out.stderr.lines().count() == 1, "{}", out.stderr);
    }
}

#[test]
fn live_views_show_what_passes() {
    let Some(program) = program() else { return };
    let room = Room::new(User::Me);
    let options = ["record", "-q", "-e", "function:work,function:other", "--where", "args.function == \"other\""];
    for (view, line) in
        [("text", "function:other:entry()"), ("json", "\"function\":\"other\""), ("record", "function=\"other\"")]
    {
        let file = room.path.join(view);
        let shown = format!("{view}={}", file.display());
        let mut p = Phases::start(&mut room.trapline(&[&options[..], &["--as", &shown, "--", &program]].concat()));
        p.make("work", 3);
        p.make("other", 2);
        assert_eq!(p.end().code(), 0);
        let text = fs::read_to_string(&file).expect("what was shown");
        let lines = text.lines().filter(|l| l.contains(line) && l.contains("entry")).count();
        assert_eq!((lines, text.contains("\"work\"") || text.contains(":work:")), (2, false), "{text}");
    }
}

/// Where there is almost no room, and where there is enough memory for the newest records only.
#[test]
fn every_record_is_in_the_trace_or_in_a_counter() {
    let Some(program) = program() else { return };
    let room = Room::new(User::Me);
    let cases: [(&[&str], bool); 5] = [
        (&["--buffer", "8K"], false),
        (&["--buffer", "8K", "--name", "f", "--where", "tid % 2 == 0"], false),
        (&["--buffer", "8K", "--on-full", "block"], true),
        (&["--flight", "1M", "--on-full", "block"], true),
        (&["--max-size", "2M", "--on-full", "block"], true),
    ];
    for (options, whole) in cases {
        let mut p = record(&room, "f", &[&["--force", "-e", "function:work"], options].concat(), &[&program]);
        p.make("threads", 100_000);
        p.make("work", 100_000);
        let out = p.end();
        assert_eq!(out.code(), 0, "{}", out.stderr);
        let stats = stats(&room, "f");
        let dropped = stats["dropped"].as_u64().expect("a number");
        let (recorded, filtered) = (both(&stats, "recorded"), both(&stats, "filtered"));
        assert_eq!(recorded + filtered + dropped, 800_000, "{options:?} {stats}");
        assert!(!whole || dropped == 0, "{options:?} {stats}");
        fs::remove_dir_all(room.path.join("f.trace")).expect("a trace");
    }
}

/// A record is there as soon as it is written.
#[test]
fn a_killed_program_leaves_all_its_records() {
    let Some(program) = program() else { return };
    let room = Room::new(User::Me);
    let made = room.path.join("made");
    let command = [program.as_str(), made.to_str().expect("UTF-8")];
    let mut p = record(&room, "g", &["--buffer", "64K", "-e", "function:work"], &command);
    p.make("work", 1000);
    p.ask("threads", 1 << 40);
    let count = || u64::from_le_bytes(fs::read(&made).expect("the count")[..8].try_into().expect("8 bytes"));
    lab::until("calls", || count() > 100_000);
    let children = fs::read_to_string(format!("/proc/{0}/task/{0}/children", p.child.id())).expect("its children");
    lab::kill("KILL", children.split_whitespace().next().and_then(|c| c.parse().ok()).expect("a child"));
    let out = p.end();
    assert_eq!(out.code(), 137, "{}", out.stderr);
    let stats = stats(&room, "g");
    let seen = both(&stats, "recorded") + stats["dropped"].as_u64().expect("a number");
    // Each of the three threads may have died between a record and its call, or between a call and its record.
    assert!(seen.abs_diff(2 * count()) <= 6, "{seen} records of {} calls: {stats}", count());
}

/// Stops and starts while threads call: no record has a time in between, and blocked threads go on.
#[test]
fn a_storm_of_stops_is_exact() {
    let Some(program) = program() else { return };
    let room = Room::new(User::Me);
    for on_full in ["drop", "block"] {
        let name = format!("h{on_full}");
        let options = ["--buffer", "16K", "--on-full", on_full, "-e", "function:work"];
        let mut p = session(&room, &name, &options, &[&program]);
        p.ask("threads", 150_000);
        for _ in 0..6 {
            room.does(&["stop", &name]);
            room.does(&["start", &name]);
        }
        p.made();
        assert_eq!(p.end().code(), 0);
        stats(&room, &name);
        let out = lab::run(&mut room.trapline(&["report", "-q", "--as", "json", &format!("{name}.trace")]));
        let text = out.out();
        let time = |line: &str| -> u64 {
            let from = line.find("\"time_ns\":").expect("a time") + 10;
            line[from..].bytes().take_while(u8::is_ascii_digit).fold(0, |n, b| n * 10 + u64::from(b - b'0'))
        };
        let times = |what: &str| -> Vec<u64> { text.lines().filter(|l| l.contains(what)).map(time).collect() };
        let stopped: Vec<(u64, u64)> = times("\"paused\"").into_iter().zip(times("\"resumed\"")).collect();
        assert_eq!(stopped.len(), 6);
        for t in times("\"function:e") {
            assert!(!stopped.iter().any(|(from, to)| *from < t && t < *to), "{t} in {stopped:?}");
        }
    }
}
