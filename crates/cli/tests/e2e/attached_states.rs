//! Attaching to processes in states in which tracers seldom come: threads, children and programs come and go, everything is blocked, or the
//! process is stopped, waits in the kernel, or is about to end. None is left stopped, killed or with another signal mask.

use crate::injected::{has_its_own_text, rounds, started};
use crate::lab::{self, Outcome, User};
use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;
use testkit::Random;

#[track_caller]
fn program() -> Option<String> {
    testkit::compile("gcc", "attached_states", "attached_states.c", &["-O1", "-pthread"])
}

fn session(pid: u32, random: &mut Random) -> Outcome {
    let (pid, duration) = (pid.to_string(), format!("0.{:03}", random.below(100)));
    lab::run(&mut lab::trapline(User::Me, &["graph", "-q", "-p", &pid, "--as", "functions", "--duration", &duration]))
}

fn toggled(pid: u32) -> Outcome {
    let pid = pid.to_string();
    let enabled = lab::run(&mut lab::trapline(User::Me, &["tracer", "enable", "-p", &pid, "count"]));
    if enabled.code() != 0 {
        return enabled;
    }
    lab::run(&mut lab::trapline(User::Me, &["tracer", "disable", "-p", &pid, "count"]))
}

/// What must be the same of each thread behind a session as before it.
fn signals(pid: u32) -> BTreeMap<String, Vec<Option<String>>> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let of = |tid: u32| ["SigBlk", "SigIgn", "SigCgt"].map(|f| lab::status_field(tid, f)).to_vec();
    tasks
        .filter_map(|t| {
            let name = t.file_name().to_string_lossy().into_owned();
            Some((name.clone(), of(name.parse().ok()?)))
        })
        .collect()
}

/// Nobody traces it, and it is not stopped.
#[track_caller]
fn is_free(pid: u32) {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    for tid in tasks.filter_map(|t| t.file_name().to_string_lossy().parse().ok()) {
        let state = lab::status_field(tid, "State").unwrap_or_default();
        assert!(lab::tracer_of(tid) == 0 && !state.starts_with(['t', 'T']), "{tid}: {state}");
    }
}

/// A state in which threads stay: all sessions do their work, and leave masks and handlers as they were.
#[track_caller]
fn stays(state: &str) {
    if !lab::may_attach(User::Me) {
        return;
    }
    let Some(program) = program() else { return };
    let mut run = started(User::Me, &[&program, state, "100"]);
    let (pid, mut random) = (run.pid(), Random::new(1));
    // Those that the program blocks and handles at its beginning.
    std::thread::sleep(Duration::from_millis(100));
    let before = signals(pid);
    for round in 0..rounds(6) {
        let out = if round % 3 == 2 { toggled(pid) } else { session(pid, &mut random) };
        assert_eq!(out.code(), 0, "{state} {round}: {}", out.stderr);
        run.must_run();
        is_free(pid);
        // A thread that is about to leave a stub may still block all of them there.
        lab::until(&format!("{state} {round}: signals as before, {before:?}"), || signals(pid) == before);
    }
    // What a tracer has left in libc, because a thread was still in a call, goes with the next session.
    assert_eq!(session(pid, &mut random).code(), 0);
    has_its_own_text(pid);
    lab::kill("TERM", pid.into());
    let out = run.end();
    assert_eq!((out.code(), out.out()), (0, "right 0\n".into()), "{state}: {}", out.stderr);
}

/// A state in which something comes and goes. That a session finds nothing to attach to is an answer.
#[track_caller]
fn changes(state: &str, always: bool) {
    if !lab::may_attach(User::Me) {
        return;
    }
    let Some(program) = program() else { return };
    let mut run = started(User::Me, &[&program, state, "100"]);
    let (pid, mut random) = (run.pid(), Random::new(2));
    for round in 0..rounds(12) {
        let out = if round % 4 == 3 { toggled(pid) } else { session(pid, &mut random) };
        run.must_run();
        assert!(out.code() == 0 || !always && out.code() == 125, "{state} {round}: {}", out.stderr);
        std::thread::sleep(Duration::from_millis(random.below(20)));
    }
    // What executes another program may have had the signal just before.
    lab::until("its end", || {
        lab::kill("TERM", pid.into());
        run.child.try_wait().expect("wait").is_some()
    });
    let out = run.end();
    assert_eq!((out.code(), out.out()), (0, "right 0\n".into()), "{state}: {}", out.stderr);
}

macro_rules! states {
    ($how:ident $more:tt: $($state:ident),*) => {
        $(#[test] fn $state() { states!(@ $how $more $state) })*
    };
    (@ stays () $state:ident) => { stays(stringify!($state)) };
    (@ changes ($always:literal) $state:ident) => { changes(stringify!($state), $always) };
}

states! { stays (): busy, all_blocked, trap_blocked, trap_ignored, calls, one_call }
states! { changes (true): threads, forks, vforks_in_a_thread }
states! { changes (false): executes, threads_that_execute, vforks }

/// A process that is about to end, when trapline is at any of its steps.
#[test]
fn ends() {
    if !lab::may_attach(User::Me) {
        return;
    }
    let Some(program) = program() else { return };
    let mut random = Random::new(3);
    for round in 0..rounds(12) {
        let after = random.below(400).to_string();
        let run = started(User::Me, &[&program, "ends", "100", &after]);
        let out = session(run.pid(), &mut random);
        assert!([0, 125].contains(&out.code()), "{after} {round}: {}", out.stderr);
        let out = run.end();
        assert_eq!((out.code(), out.out()), (0, "right 0\n".into()), "{after} {round}: {}", out.stderr);
    }
}

/// A process that is stopped stays so, whatever trapline does with it, and goes on when somebody continues it.
#[test]
fn stopped() {
    if !lab::may_attach(User::Me) {
        return;
    }
    let Some(program) = program() else { return };
    for (state, signal) in [("busy", "STOP"), ("threads", "STOP"), ("trap_ignored", "TSTP"), ("forks", "STOP")] {
        let run = started(User::Me, &[&program, state, "100"]);
        let (pid, mut random) = (run.pid(), Random::new(4));
        let is_stopped = || lab::status_field(pid, "State").is_some_and(|s| s.starts_with('T'));
        for round in 0..rounds(4) {
            lab::kill(signal, pid.into());
            lab::until("state T", is_stopped);
            let out = if round % 2 == 1 { toggled(pid) } else { session(pid, &mut random) };
            // A thread that is stopped at a bad place stays there.
            assert!([0, 125].contains(&out.code()), "{state} {round}: {}", out.stderr);
            lab::until("state T, untraced", || lab::tracer_of(pid) == 0 && is_stopped());
            lab::kill("CONT", pid.into());
            lab::until("going on", || !is_stopped());
            std::thread::sleep(Duration::from_millis(random.below(20)));
        }
        lab::kill("TERM", pid.into());
        let out = run.end();
        assert_eq!((out.code(), out.out()), (0, "right 0\n".into()), "{state}: {}", out.stderr);
    }
}

/// Stopped and continued at any moment of an attach.
#[test]
fn stopped_meanwhile() {
    if !lab::may_attach(User::Me) {
        return;
    }
    let Some(program) = program() else { return };
    for state in ["busy", "threads", "forks"] {
        let run = started(User::Me, &[&program, state, "100"]);
        let (pid, mut random) = (run.pid(), Random::new(5));
        for round in 0..rounds(4) {
            let (text, mut moments) = (pid.to_string(), random.clone());
            let visit = ["graph", "-q", "-p", &text, "--as", "functions", "--duration", "0.1"];
            let mut session = lab::start(
                lab::trapline(User::Me, &visit)
                    .stdout(std::process::Stdio::null())
                    .stderr(std::process::Stdio::piped()),
            );
            while session.child.try_wait().expect("wait").is_none() {
                for signal in ["STOP", "CONT"] {
                    lab::kill(signal, pid.into());
                    std::thread::sleep(Duration::from_micros(moments.below(5000)));
                }
            }
            random = moments;
            let out = session.end();
            assert_eq!(out.code(), 0, "{state} {round}: {}", out.stderr);
            lab::until("it runs, untraced", || {
                lab::tracer_of(pid) == 0 && lab::status_field(pid, "State").is_some_and(|s| s.starts_with(['R', 'S']))
            });
        }
        lab::kill("TERM", pid.into());
        let out = run.end();
        assert_eq!((out.code(), out.out()), (0, "right 0\n".into()), "{state}: {}", out.stderr);
    }
}
