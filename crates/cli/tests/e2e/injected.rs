//! `trapline graph -p` and `record -e function:… -p`: the agent in processes that run already, and out of them again.

use crate::lab::{self, Outcome, Running, User};
use std::fs;
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::process::Stdio;

/// How often a test attaches, unless `TRAPLINE_TEST_ROUNDS` says otherwise.
pub fn rounds(most: usize) -> usize {
    std::env::var("TRAPLINE_TEST_ROUNDS").ok().and_then(|n| n.parse().ok()).unwrap_or(most)
}

fn graph(user: User, pid: u32, more: &[&str]) -> Outcome {
    let pid = pid.to_string();
    lab::run(&mut lab::trapline(user, &[&["graph", "-p", &pid], more].concat()))
}

/// Starts a program, and waits for its first line.
pub fn started(user: User, argv: &[&str]) -> Running {
    let mut child = lab::as_user(user, argv).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    let mut first = [0];
    let out = child.stdout.as_mut().expect("piped");
    while first[0] != b'\n' {
        assert_eq!(out.read(&mut first).expect("its output"), 1, "it has ended");
    }
    lab::start_with(child)
}

/// The program of these tests.
#[track_caller]
pub fn program() -> Option<String> {
    testkit::compile("g++", "injected", "attached.cc", &["-O1", "-fno-inline", "-pthread"])
}

/// Code that is not what its file has: a mapping, and a place in it.
fn other_text(pid: u32) -> Option<(String, usize)> {
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).expect("its mappings");
    let memory = fs::File::open(format!("/proc/{pid}/mem")).expect("its memory");
    maps.lines().filter(|l| l.contains(" r-xp ") && l.contains(" /") && !l.contains("memfd")).find_map(|line| {
        let mut words = line.split_ascii_whitespace();
        let (from, to) = words.next().and_then(|w| w.split_once('-')).expect("a range");
        let hex = |s: &str| u64::from_str_radix(s, 16).expect("a number");
        let (from, to, offset) = (hex(from), hex(to), hex(words.nth(1).expect("an offset")));
        let file = fs::read(line[line.find(" /").expect("a path")..].trim()).expect("the file");
        let mut there = vec![0; (to - from) as usize];
        memory.read_exact_at(&mut there, from).expect("its memory");
        let own = &file[offset as usize..file.len().min(offset as usize + there.len())];
        there.iter().zip(own).position(|(a, b)| a != b).map(|at| (line.to_string(), at))
    })
}

/// All code of files is what the files have.
#[track_caller]
pub fn has_its_own_text(pid: u32) {
    assert_eq!(other_text(pid), None);
}

/// The same, as soon as no thread is in a call any more that was traced: on a loaded machine that takes a while.
#[track_caller]
pub fn comes_to_its_own_text(pid: u32) {
    lab::until("no call is open", || {
        let out = lab::run(&mut lab::trapline(User::Me, &["tracer", "status", "-p", &pid.to_string()]));
        assert_eq!(out.code(), 0, "{}", out.stderr);
        other_text(pid).is_none()
    });
}

#[track_caller]
pub fn is_right(run: Running) {
    lab::kill("TERM", run.pid().into());
    let out = run.end();
    assert_eq!((out.code(), out.out()), (0, "right 0\n".into()), "{}", out.stderr);
}

#[test]
fn functions_of_a_running_process_are_seen_and_it_is_left_as_it_was() {
    let Some(program) = program() else { return };
    lab::each_attacher(|user| {
        let run = started(user, &[&program, "600", "2", "0"]);
        let out = graph(user, run.pid(), &["--duration", "0.3", "--as", "functions"]);
        assert_eq!(out.code(), 0, "{}", out.stderr);
        for name in ["fib", "caught", "jumped"] {
            assert!(out.out().lines().any(|l| l.ends_with(&format!(" {name}"))), "{name}: {}", out.out());
        }
        has_its_own_text(run.pid());
        is_right(run);
    });
}

/// Exceptions, longjmp, handlers, calls that wait, 16 busy threads and a timer of 10 kHz, while trapline comes and goes.
// Slow: twelve sessions come and go on up to 16 busy threads and a timer of 10 kHz.
#[test]
fn results_stay_what_they_are_while_trapline_comes_and_goes() {
    let Some(program) = program() else { return };
    for (threads, timer) in [("0", "0"), ("16", "0"), ("1", "100"), ("16", "100")] {
        let run = started(User::Me, &[&program, "1000", threads, timer]);
        for round in 0..rounds(3) {
            let out = graph(User::Me, run.pid(), &["-q", "--duration", "0.05", "--as", "functions"]);
            assert_eq!(out.code(), 0, "{threads} {timer} {round}: {}", out.stderr);
        }
        comes_to_its_own_text(run.pid());
        is_right(run);
    }
}

/// What sigaction(2) says is the program's own, wherever in it a thread is when trapline comes and goes.
// Slow: twelve sessions for each user, in a program that never waits.
#[test]
fn results_of_sigaction_stay_what_they_are() {
    let Some(program) = testkit::compile("gcc", "handlers", "handlers.c", &["-O1", "-pthread"]) else { return };
    lab::each_attacher(|user| {
        let mut run = started(user, &[&program]);
        for round in 0..rounds(12) {
            let out = graph(user, run.pid(), &["-q", "--duration", "0.01", "--as", "functions"]);
            run.must_run();
            assert_eq!(out.code(), 0, "{round}: {}", out.stderr);
        }
        has_its_own_text(run.pid());
        is_right(run);
    });
}

/// A process has no more mappings after many sessions than after a few.
#[test]
fn many_sessions_leave_nothing_behind() {
    if !lab::has("python3") {
        return testkit::skip("package", "no python3");
    }
    let script = "import json\nprint('begun', flush=True)\nn = 0\n\
        while True:\n    assert json.loads(json.dumps([n, {'b': n}]))[1]['b'] == n\n    n += 1";
    let mut run = started(User::Me, &["python3", "-c", script]);
    let pid = run.pid();
    let mut mappings = Vec::new();
    for round in 0..rounds(10) {
        let out = graph(User::Me, pid, &["-q", "--lib", "--duration", "0.02", "--as", "functions"]);
        assert_eq!(out.code(), 0, "{round}: {}", out.stderr);
        run.must_run();
        let maps = fs::read_to_string(format!("/proc/{pid}/maps")).expect("its mappings");
        mappings.push(maps.lines().count());
    }
    has_its_own_text(pid);
    let (first, last) = (mappings[mappings.len() / 2], mappings[mappings.len() - 1]);
    assert!(last <= first + 20, "{mappings:?}");
}

#[test]
fn a_killed_trapline_leaves_a_process_that_can_be_attached_to() {
    let Some(program) = program() else { return };
    let mut run = started(User::Me, &[&program, "1000", "4", "1000"]);
    let dir = lab::scratch();
    // While it injects, while it patches, and while it records.
    for (n, after) in [0u64, 2, 5, 10, 20, 40, 60, 90, 400].into_iter().enumerate() {
        let trace: PathBuf = dir.join(format!("trace-{n}"));
        let text = trace.to_str().expect("UTF-8");
        let pid = run.pid().to_string();
        let mut killed = lab::start(&mut lab::trapline(User::Me, &["graph", "-q", "-p", &pid, "-o", text]));
        lab::until("it has begun", || {
            run.must_run();
            trace.exists()
        });
        std::thread::sleep(std::time::Duration::from_millis(after));
        lab::kill("KILL", killed.pid().into());
        let _ = killed.child.wait();
    }
    run.must_run();
    let out = graph(User::Me, run.pid(), &["--duration", "0.2", "--as", "functions"]);
    run.must_run();
    assert_eq!(out.code(), 0, "{}", out.stderr);
    assert!(out.out().contains(" fib"), "{}", out.out());
    comes_to_its_own_text(run.pid());
    // Of a thread that the kernel has just stopped in epoll_wait(2), the killed trapline could not make the call again (signal(7), "Interruption
    // of system calls by stop signals"); and a signal frame continues no call with a restart block: nanosleep(2), futex(2).
    const WAITS: [u32; 4] = [57, 58, 61, 65];
    lab::kill("TERM", run.pid().into());
    let out = run.end();
    let is_known = |line: &&str| WAITS.iter().any(|at| *line == format!("attached.cc:{at}: wrong, errno 4"));
    let other: Vec<&str> = out.stderr.lines().filter(|line| !is_known(line)).collect();
    assert_eq!(other, [""; 0]);
    assert!(out.stderr.lines().count() <= 18, "{}", out.stderr);
}

#[test]
fn what_cannot_be_attached_to_is_said_in_a_line() {
    let says = |user: User, pid: u32, why: &str| {
        let out = graph(user, pid, &[]);
        assert_eq!(out.code(), 125, "{why}: {}", out.stderr);
        assert!(out.stderr.contains(why) && out.stderr.lines().count() == 1, "{why}: {}", out.stderr);
    };
    says(User::Me, 1 << 30, "no such process");
    if lab::is_root() {
        says(User::Me, 2, "a kernel thread");
        says(User::Nobody, std::process::id(), "belongs to another user");
    }
    if let Some(fixed) = testkit::compile("g++", "injected_static", "attached.cc", &["-O1", "-static", "-pthread"]) {
        let run = started(User::Me, &[&fixed, "60", "0", "0"]);
        says(User::Me, run.pid(), "a static program loads no agent");
        is_right(run);
    }
    let Some(program) = program() else { return };
    let run = started(User::Me, &[&program, "600", "0", "0"]);
    let dir = lab::scratch().join("trace").display().to_string();
    let pid = run.pid().to_string();
    let other = lab::start(&mut lab::trapline(User::Me, &["graph", "-q", "-p", &pid, "-o", &dir]));
    let injected =
        || fs::read_to_string(format!("/proc/{pid}/maps")).is_ok_and(|m| m.matches("r-xp 00000000 00:00").count() > 1);
    lab::until("the first is there", || injected() && lab::tracer_of(run.pid()) == 0);
    std::thread::sleep(std::time::Duration::from_millis(300));
    says(User::Me, run.pid(), "another trapline traces its functions");
    lab::kill("INT", other.pid().into());
    let _ = other.end();
    comes_to_its_own_text(run.pid());
    is_right(run);
}

/// A library comes and goes all the time: a plan that is made before the process is stopped is often one for other mappings.
#[test]
fn a_process_whose_mappings_change_meanwhile_can_be_attached_to() {
    let Some(module) = testkit::compile("gcc", "loads_module.so", "agent_module.c", &["-shared", "-fPIC"]) else {
        return;
    };
    let Some(program) = testkit::compile("gcc", "loads", "loads.c", &["-O1", "-pthread"]) else { return };
    let run = started(User::Me, &[&program, &module]);
    let functions = |options: &[&str]| {
        let out = graph(User::Me, run.pid(), &[&["-q", "--duration", "0.05", "--as", "functions"], options].concat());
        assert_eq!(out.code(), 0, "{}", out.stderr);
        out.out()
    };
    for _ in 0..rounds(6) {
        functions(&["--lib"]);
    }
    lab::until("a call is seen", || functions(&[]).contains(" twice"));
    is_right(run);
}
