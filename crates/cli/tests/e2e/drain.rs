//! The reader of the rings has its share of the processor, however many threads make events.

use crate::alone::alone;
use crate::babeltrace;
use crate::crash::bytes_in;
use crate::kernel::possible;
use crate::lab::{self, Running, User};
use crate::record::{finished, number, record, report};
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
