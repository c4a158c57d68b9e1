//! The reader of the rings has its share of the processor, however many threads make events.

use crate::alone::alone;
use crate::babeltrace;
use crate::crash::bytes_in;
use crate::kernel::possible;
use crate::lab::{self, Running, User};
use crate::record::{finished, number, record, report};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::PathBuf;
use std::process::Stdio;

/// 64 threads that call getppid as fast as they can.
#[test]
fn many_busy_threads_do_not_starve_the_reader() {
    if !possible() {
        return;
    }
    let Some(callers) = lab::program("callers") else { return };
    let _alone = alone();
    const THREADS: &str = "64";
    let run = |options: &[&str]| {
        let options = [&["--backend", "kernel", "-e", "getppid"], options].concat();
        let r = record(User::Me, &options, &[&callers, THREADS, "20000"]);
        assert_eq!((r.outcome.code(), r.outcome.out().trim()), (0, "1280000"), "{}", r.outcome.stderr);
        let seen = r.events() + number(&r.stats, "dropped") + number(&r.stats, "bookkeeping_dropped");
        assert!(seen >= 1_280_000, "{}", r.stats);
        r
    };
    // At an equal share two of three are lost; what else runs may take a processor away for longer than a buffer lasts, now and then.
    let lost: Vec<u64> = (0..3).map(|_| number(&run(&[]).stats, "dropped")).take_while(|n| *n > 0).collect();
    assert!(lost.len() < 3, "{lost:?} of 1280000 events were dropped");
}

#[test]
fn what_a_larger_buffer_had_held_is_said() {
    if !possible() {
        return;
    }
    let Some(callers) = lab::program("callers") else { return };
    let _alone = alone();
    let run = |buffer: &str| {
        record(User::Me, &["--backend", "kernel", "-e", "getppid", "--buffer", buffer], &[&callers, "16", "20000"])
    };
    let small = run("4K");
    assert!(number(&small.stats, "dropped") > 0, "nothing was dropped, the test shows nothing");
    let said = small.outcome.stderr.as_str();
    let hint = said.split("(--buffer ").nth(1).and_then(|s| s.split(" would have held them)").next()).expect(said);
    let large = run(hint);
    assert_eq!(number(&large.stats, "dropped"), 0, "{hint}: {}", large.outcome.stderr);
    assert!(!large.outcome.stderr.contains("would have held"), "{}", large.outcome.stderr);
    if let Some(found) = babeltrace::counts(User::Me, &large.trace) {
        assert_eq!(found, (large.events(), 0));
    }
}

/// A recording of busy threads whose reader is stopped in the midst of their calls, and goes on being stopped until they have made them
/// all.
struct Stopped {
    dir: PathBuf,
    running: Running,
    /// Calls of getppid that were made.
    made: u64,
}

fn stopped(program: &str) -> Stopped {
    let dir = lab::scratch();
    let script = format!("echo $$ >pid.new; mv pid.new pid; {program} 4 250000 >made.new; mv made.new made");
    let args = ["record", "--backend", "kernel", "-e", "getppid", "--where", r#"comm == "callers""#];
    let into = ["--buffer", "64K", "-o", "trace", "--stats", "stats", "--", "sh", "-c", &script];
    let args = [&args[..], &into].concat();
    let running = lab::start(lab::trapline(User::Me, &args).current_dir(&dir).stderr(Stdio::piped()));
    lab::until("the command", || dir.join("pid").exists());
    lab::until("packets", || bytes_in(&dir.join("trace")) > (300 << 10));
    lab::kill("STOP", running.pid().into());
    // The programs go on without a reader, and hold nobody up.
    lab::until("the end of the calls", || dir.join("made").exists());
    let state = lab::status_field(running.pid(), "State").expect("a state");
    assert!(state.starts_with('T'), "the reader is not stopped: {state}");
    let made = std::fs::read_to_string(dir.join("made")).expect("made").trim().parse().expect("a number");
    Stopped { dir, running, made }
}

/// How many calls of getppid a report shows, and how many of them do not have the result of the first.
fn shown(text: &str) -> (u64, usize) {
    let results: Vec<&str> =
        text.lines().filter(|l| l.contains("getppid(")).map(|l| l.rsplit(' ').next().unwrap_or_default()).collect();
    (results.len() as u64, results.iter().filter(|r| **r != results[0] || r.parse::<u32>().is_err()).count())
}

#[test]
fn a_reader_that_is_stopped_loses_what_is_counted() {
    if !possible() {
        return;
    }
    let Some(callers) = lab::program("callers") else { return };
    let s = stopped(&callers);
    lab::kill("CONT", s.running.pid().into());
    let outcome = s.running.end();
    assert_eq!(outcome.code(), 0, "{}", outcome.stderr);
    let r = finished(User::Me, s.dir, outcome);
    let counter = |name: &str| r.stats["probes"]["syscall:getppid"][name].as_u64().expect("a counter");
    let dropped = counter("dropped");
    let later = report(User::Me, &r.trace, &["-q", "-e", "getppid"]);
    let (decoded, wrong) = shown(&later.out());
    assert!(dropped > 0 && decoded > 0, "{}", r.stats);
    assert_eq!((decoded + dropped, decoded, wrong), (s.made, counter("recorded"), 0), "{}", r.stats);
    if let Some((events, discarded)) = babeltrace::counts(User::Me, &r.trace) {
        let lost = number(&r.stats, "dropped") + number(&r.stats, "bookkeeping_dropped");
        assert_eq!((events, discarded), (r.events(), lost), "{}", r.stats);
    }
}

/// Nobody is left to count, but what is in the trace is true.
#[test]
fn a_reader_that_is_killed_leaves_what_it_has_read_and_its_command() {
    if !possible() {
        return;
    }
    let Some(callers) = lab::program("callers") else { return };
    let s = stopped(&callers);
    let command = std::fs::read_to_string(s.dir.join("pid")).expect("pid").trim().parse().expect("a number");
    lab::kill("KILL", s.running.pid().into());
    lab::until("the end of the reader", || {
        lab::status_field(s.running.pid(), "State").is_none_or(|s| s.starts_with('Z'))
    });
    assert_eq!(s.made, 1_000_000);
    lab::until("the end of the command", || lab::status_field(command, "State").is_none_or(|s| s.starts_with('Z')));
    let killed = s.running.end();
    assert_eq!(killed.code(), 128 + 9, "{}", killed.stderr);
    let later = report(User::Me, &s.dir.join("trace"), &["-e", "getppid"]);
    assert_eq!(later.code(), 125, "{}", later.stderr);
    assert!(later.stderr.contains("the end is missing"), "{}", later.stderr);
    let (decoded, wrong) = shown(&later.out());
    assert!(decoded > 0 && decoded < s.made && wrong == 0, "{decoded} of {}, {wrong} wrong", s.made);
}

/// How many calls threads have made, by their ids.
type ByThread = BTreeMap<u32, u64>;

/// What eight threads on two processors have made and what `record -a` has of it, with rings of 64 KiB: calls made, calls decoded, and how
/// many were dropped. `every`: after this many calls a thread sleeps for 1 ms; 0 for never.
fn eight_threads(program: &str, calls: &str, every: &str) -> (ByThread, ByThread, u64) {
    let dir = lab::scratch();
    let mut threads = lab::as_user(User::Me, &[program, "8", calls, every])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("own_counts");
    let (mut stdin, mut stdout) =
        (threads.stdin.take().expect("stdin"), BufReader::new(threads.stdout.take().expect("stdout")));
    let threads = lab::start_with(threads);
    // What it prints first: it is about to wait.
    stdout.read_line(&mut String::new()).expect("its pid");
    let args = ["record", "-q", "-a", "--buffer", "64K", "-e", "sched_get_priority_max,read"];
    let into = ["-o", "trace", "--stats", "stats", "--as", "text=live"];
    let args = [&args[..], &into].concat();
    let running = lab::start(lab::trapline(User::Me, &args).current_dir(&dir).stderr(Stdio::piped()));
    // Its programs see calls, of whomever: all of them are attached.
    let live = || std::fs::read_to_string(dir.join("live")).unwrap_or_default();
    lab::until("a read of some process", || live().contains(" read("));
    stdin.write_all(b"x").expect("its stdin");
    let mut text = String::new();
    stdout.read_to_string(&mut text).expect("its counts");
    assert_eq!(threads.end().code(), 0);
    lab::kill("INT", running.pid().into());
    let outcome = running.end();
    assert_eq!(outcome.code(), 0, "{}", outcome.stderr);
    let r = finished(User::Me, dir, outcome);
    let pair = |l: &str| l.split_once(' ').and_then(|(tid, n)| Some((tid.parse().ok()?, n.parse().ok()?)));
    let made: ByThread = text.lines().map(|l| pair(l).expect("a thread and its calls")).collect();
    let later = report(User::Me, &r.trace, &["-q", "-e", "sched_get_priority_max"]).out();
    let mut decoded = ByThread::new();
    for line in later.lines().filter(|l| l.contains("sched_get_priority_max(")) {
        let (tid, call) = line.split_once(' ').expect("a thread id");
        let tid = tid.parse().expect("a thread id");
        if made.contains_key(&tid) {
            assert!(call.ends_with(" = 0"), "{line}");
            *decoded.entry(tid).or_default() += 1;
        }
    }
    (made, decoded, r.stats["probes"]["syscall:sched_get_priority_max"]["dropped"].as_u64().expect("a counter"))
}

#[test]
fn calls_of_threads_on_a_whole_machine_add_up_by_thread() {
    if !possible() {
        return;
    }
    let Some(program) = lab::program("own_counts") else { return };
    let _alone = alone();
    let whole = |(made, decoded, dropped): &(ByThread, ByThread, u64)| {
        assert_eq!(made.len(), 8, "{made:?}");
        assert_eq!(
            decoded.values().sum::<u64>() + dropped,
            made.values().sum::<u64>(),
            "{dropped} dropped: {decoded:?}"
        );
        // Nobody is credited with a call of another thread.
        assert!(decoded.iter().all(|(tid, n)| n <= &made[tid]), "{decoded:?} of {made:?}");
    };
    // What else runs may keep the reader from its processor for longer than a ring of this size lasts.
    let slow =
        (0..5).map(|_| eight_threads(&program, "2000", "10")).inspect(whole).find(|(_, _, dropped)| *dropped == 0);
    let (made, decoded, _) = slow.expect("calls of slow threads were dropped each time");
    assert_eq!(decoded, made);
    let flood = eight_threads(&program, "100000", "0");
    whole(&flood);
    assert!(flood.2 > 0 && !flood.1.is_empty(), "{} dropped, the test shows nothing: {:?}", flood.2, flood.1);
}
