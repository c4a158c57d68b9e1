//! Tracers and sessions that come and go very often, and tracers that misbehave: results and counts stay right, and nothing is left behind.

use crate::injected::{has_its_own_text, is_right, program, rounds, started};
use crate::lab::{self, Outcome, User};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

#[track_caller]
fn tracer(pid: u32, command: &str, more: &[&str]) -> String {
    let pid = pid.to_string();
    let out = lab::run(&mut lab::trapline(User::Me, &[&["tracer", command, "-p", &pid], more].concat()));
    assert_eq!((out.code(), out.complaints().as_str()), (0, ""), "{command} {more:?}");
    out.out()
}

/// The calls of a function in what count prints; 0 where it is not there.
fn calls(printed: &str, function: &str) -> u64 {
    let rows = printed.lines().map(|l| serde_json::from_str::<serde_json::Value>(l).expect("JSON"));
    rows.filter(|r| r["function"] == function).map(|r| r["calls"].as_u64().expect("a number")).sum()
}

/// 16 busy threads and a timer of 10 kHz; 1000 toggles with `TRAPLINE_TEST_ROUNDS=1000`. While it is enabled, count sees the calls that
/// belong together as often as they must be, but for those that each thread has open when it is enabled or disabled.
// Slow: 16 busy threads share the processors with trapline.
#[test]
fn toggles_under_busy_threads_and_a_timer() {
    if !lab::may_attach(User::Me) {
        return;
    }
    let Some(program) = program() else { return };
    let mut run = started(User::Me, &[&program, "10000", "16", "100"]);
    let pid = run.pid();
    for round in 0..rounds(6) {
        tracer(
            pid,
            "enable",
            [
                &["count", "-F", "caught", "-F", "thrown", "-F", "jumped", "-F", "far"][..],
                &["count"],
                &["count", "--no-time"],
            ][round % 3],
        );
        tracer(pid, "disable", &["count"]);
        run.must_run();
        let shown = tracer(pid, "print", &["count", "--as", "json"]);
        let [caught, thrown, jumped, far] = ["caught", "thrown", "jumped", "far"].map(|f| calls(&shown, f));
        assert!(thrown.abs_diff(6 * caught) <= 16 * 6, "{round}: {shown}");
        assert!(far.abs_diff(5 * jumped) <= 16 * 5, "{round}: {shown}");
        assert!(caught.abs_diff(jumped) <= 16, "{round}: {shown}");
    }
    is_right(run);
}

/// A program that makes calls when it is asked to.
struct Counted {
    child: Child,
    lines: BufReader<std::process::ChildStdout>,
}

impl Counted {
    fn start(plant: bool) -> Option<Counted> {
        let program = testkit::compile("gcc", "attached_counts", "attached_counts.c", &["-O1", "-pthread"])?;
        let mut command = lab::as_user(User::Me, &[&*program, if plant { "plant" } else { "none" }]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
        let mut counted = Counted { lines: BufReader::new(child.stdout.take().expect("piped")), child };
        assert_eq!(counted.line(), "begun\n");
        Some(counted)
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.lines.read_line(&mut line).expect("its output");
        line
    }

    #[track_caller]
    fn go(&mut self) {
        self.child.stdin.as_mut().expect("piped").write_all(b"go\n").expect("its input");
        assert_eq!(self.line(), "done \n");
    }

    #[track_caller]
    fn ends(mut self) {
        drop(self.child.stdin.take());
        assert!(self.child.wait().expect("wait").success());
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Each has the calls of its own time, whatever the others do meanwhile.
// Slow: three tracers come and go, twice, with every call counted.
#[test]
fn tracers_of_different_lifetimes_count_exactly() {
    if !lab::may_attach(User::Me) {
        return;
    }
    let Some(mut program) = Counted::start(false) else { return };
    let pid = program.child.id();
    for round in 0..rounds(2) {
        let expect = |times: u64| {
            let shown = tracer(pid, "print", &["count", "--as", "json"]);
            for (function, each) in [("middle", 4000), ("leaf", 12002), ("deep", 40_000), ("only_main", 1), ("slow", 2)]
            {
                // leaf: two of each middle, one of each chain of deep, and those of only_main.
                let wanted = if function == "leaf" { 4000 * 2 + 4000 + 1 } else { each };
                assert_eq!(calls(&shown, function), wanted * times, "{round} {function} {times}: {shown}");
            }
        };
        program.go();
        tracer(pid, "enable", if round % 2 == 0 { &["count"] } else { &["count", "--no-time"] });
        expect(0);
        program.go();
        expect(1);
        tracer(pid, "enable", &["thread_checker", "-F", "middle", "-F", "leaf"]);
        program.go();
        expect(2);
        tracer(pid, "enable", &["loop_checker", "--loop", "loop"]);
        program.go();
        tracer(pid, "disable", &["thread_checker"]);
        program.go();
        expect(4);
        tracer(pid, "disable", &["count"]);
        program.go();
        expect(4);
        // Those of the time before are still there.
        let violations = tracer(pid, "print", &["thread_checker"]);
        assert!(violations.contains(": middle called from works"), "{violations}");
        tracer(pid, "disable", &["loop_checker"]);
    }
    has_its_own_text(pid);
    program.ends();
}

#[test]
fn checkers_find_what_was_planted_and_nothing_else() {
    if !lab::may_attach(User::Me) {
        return;
    }
    for plant in [true, false] {
        let Some(mut program) = Counted::start(plant) else { return };
        let pid = program.child.id();
        tracer(pid, "enable", &["thread_checker", "-F", "only_main"]);
        tracer(pid, "enable", &["loop_checker", "--loop", "loop", "--budget", "5000"]);
        for _ in 0..3 {
            program.go();
        }
        let [threads, loops] = ["thread_checker", "loop_checker"].map(|t| tracer(pid, "print", &[t]));
        tracer(pid, "disable", &["thread_checker"]);
        tracer(pid, "disable", &["loop_checker"]);
        // Three of the four threads, three times; what takes long within a callee is the callee's.
        let heads = |text: &str| text.lines().filter(|l| !l.starts_with(" > ")).map(str::to_string).collect::<Vec<_>>();
        if plant {
            let [threads, loops] = [heads(&threads), heads(&loops)];
            assert!(threads.len() == 1 && loops.len() == 1, "{threads:?} {loops:?}");
            assert!(threads[0].ends_with(": only_main called from works, 9 times by 9 threads"), "{threads:?}");
            assert!(
                loops[0].contains(": slow called from loop took ") && loops[0].ends_with(" at most, 3 times"),
                "{loops:?}"
            );
        } else {
            assert_eq!((threads.as_str(), loops.as_str()), ("", ""));
        }
        program.ends();
    }
}

/// Records that one session has lost are not those of the next one, and a thread that had no room then has some now.
// Slow: four sessions, each until its buffer is full.
#[test]
fn losses_belong_to_their_session() {
    if !lab::may_attach(User::Me) {
        return;
    }
    let Some(program) = program() else { return };
    let run = started(User::Me, &[&program, "1000", "4", "0"]);
    let (pid, stats) = (run.pid().to_string(), lab::scratch().join("stats").display().to_string());
    for round in 0..rounds(4) {
        let out = lab::run(&mut lab::trapline(
            User::Me,
            &["graph", "-q", "-p", &pid, "--as", "functions", "--duration", "0.1", "--stats", &stats],
        ));
        assert_eq!(out.code(), 0, "{round}: {}", out.stderr);
        let text = fs::read(&stats).expect("statistics");
        let dropped = serde_json::from_slice::<serde_json::Value>(&text).expect("JSON")["dropped"].as_u64();
        assert!(dropped.is_some_and(|n| n < 1 << 40), "{round}: {dropped:?} dropped");
        assert!(out.out().contains(" fib"), "{round}: {}", out.out());
    }
    is_right(run);
}

/// What a process has that could grow: mappings, descriptors, KB of memory.
fn owned(pid: u32) -> [u64; 3] {
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).expect("its mappings");
    let fds = fs::read_dir(format!("/proc/{pid}/fd")).expect("its descriptors").count();
    let rss = lab::status_field(pid, "VmRSS").expect("its memory");
    let rss = rss.split_whitespace().next().and_then(|n| n.parse().ok()).expect("a number");
    [maps.lines().count() as u64, fds as u64, rss]
}

/// Attaches and detaches many times, tracers in between. Nothing grows from a quarter of the way on.
#[track_caller]
fn many_times(pid: u32, usual: usize, options: &[&str], mut still_right: impl FnMut()) {
    let text = pid.to_string();
    let all = rounds(usual);
    let mut seen = Vec::new();
    for round in 0..all {
        let out: Outcome = lab::run(&mut lab::trapline(
            User::Me,
            &[&["graph", "-q", "-p", &text, "--as", "functions", "--duration", "0.02"], options].concat(),
        ));
        assert_eq!(out.code(), 0, "{round}: {}", out.stderr);
        if round % 5 == 4 {
            tracer(pid, "enable", &["count"]);
            tracer(pid, "disable", &["count"]);
        }
        still_right();
        seen.push(owned(pid));
    }
    let first = [0, 1, 2].map(|i| seen[..all.div_ceil(4)].iter().map(|s| s[i]).max().unwrap_or(0));
    // Sessions that threads were still in leave what the next one takes away: some more or less is no growth, and connections that a busy
    // server has yet to close are none either.
    let room = [30, 3, 8 << 10];
    lab::until(&format!("as few mappings, descriptors and KB as at first: {first:?} {seen:?}"), || {
        std::iter::zip(owned(pid), std::iter::zip(first, room)).all(|(now, (first, room))| now <= first + room)
    });
    // A thread may still be in a call when a session ends: then the hook of unwinders stays until the next one.
    lab::until("every byte is its own", || {
        let _ = lab::run(&mut lab::trapline(
            User::Me,
            &["graph", "-q", "-p", &text, "--as", "functions", "--duration", "0.01"],
        ));
        std::panic::catch_unwind(|| has_its_own_text(pid)).is_ok()
    });
}

// Slow: trapline comes and goes often on a busy interpreter.
#[test]
fn python_many_times() {
    if !lab::has("python3") {
        return testkit::skip("package", "no python3");
    }
    if !lab::may_attach(User::Me) {
        return;
    }
    let script = "import json, re\nprint('begun', flush=True)\nn = 0\n\
        while True:\n    assert json.loads(json.dumps([n, {'b': n}]))[1]['b'] == n\n    assert re.sub('[0-9]', 'x', str(n)).strip('x') == ''\n    \
        try:\n        {}[n]\n    except KeyError as e:\n        assert e.args == (n,)\n    n += 1";
    let mut run = started(User::Me, &["python3", "-c", script]);
    many_times(run.pid(), 8, &[], || run.must_run());
}

/// A client that checks each answer, those of caught panics too.
fn asks(port: u16, over: &AtomicBool, answers: &AtomicU64) {
    while !over.load(Ordering::Relaxed) {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("a connection");
        let mut lines = BufReader::new(stream.try_clone().expect("a descriptor"));
        for n in 0..200u64 {
            let (line, wanted) = match n % 10 {
                3 => (format!("{n}x"), "120 is no digit".to_string()),
                _ => (n.to_string(), n.to_string().bytes().map(|b| u64::from(b - b'0')).sum::<u64>().to_string()),
            };
            stream.write_all(format!("{line}\n").as_bytes()).expect("a request");
            let mut answer = String::new();
            lines.read_line(&mut answer).expect("an answer");
            assert_eq!(answer.trim_end(), wanted, "{line}");
            answers.fetch_add(1, Ordering::Relaxed);
        }
    }
}

#[test]
fn a_server_many_times() {
    if !lab::may_attach(User::Me) {
        return;
    }
    let Some(server) = testkit::compile("rustc", "attached_server", "attached_server.rs", &["-O", "--edition=2024"])
    else {
        return;
    };
    let mut child = lab::as_user(User::Me, &[server]).stdout(Stdio::piped()).spawn().expect("it starts");
    let mut line = String::new();
    BufReader::new(child.stdout.take().expect("piped")).read_line(&mut line).expect("its port");
    let port: u16 = line.trim().parse().expect("a port");
    let mut run = lab::start_with(child);
    let (over, answers) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        let clients: Vec<_> = (0..4).map(|_| scope.spawn(|| asks(port, &over, &answers))).collect();
        // Whatever fails here, the clients end.
        let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let mut before = 0;
            many_times(run.pid(), 8, &[], || {
                run.must_run();
                lab::until("it answers", || answers.load(Ordering::Relaxed) > before);
                before = answers.load(Ordering::Relaxed);
            });
        }));
        over.store(true, Ordering::Relaxed);
        for client in clients {
            client.join().expect("right answers");
        }
        if let Err(why) = done {
            std::panic::resume_unwind(why);
        }
    });
}

/// A tracer of `attached_bad_tracer.c`.
fn bad(number: u32) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let library = lab::scratch().join("bad.so");
    let gcc = Command::new("gcc")
        .args(["-O1", "-shared", "-fPIC", "-I"])
        .arg(root.join("crates/tracer/include"))
        .arg(format!("-DBAD={number}"))
        .arg("-o")
        .args([&library, &root.join("tests/programs/attached_bad_tracer.c")])
        .status();
    assert!(gcc.expect("gcc").success());
    library
}

/// Tracers that call malloc, sleep, write, take much stack, lose errno, or send signals: the program's results stay what they are.
// Slow: nine sessions with tracers that sleep.
#[test]
fn tracers_that_misbehave_do_no_harm_to_results() {
    if !lab::may_attach(User::Me) || !lab::has("gcc") {
        return;
    }
    let Some(program) = program() else { return };
    for (number, what) in [(1, "malloc"), (2, "sleeps"), (3, "writes"), (4, "stack and errno"), (6, "signals")] {
        for (threads, timer) in [("2", "0"), ("4", "200")] {
            if timer == "0" && number == 6 {
                continue;
            }
            let run = started(User::Me, &[&program, "100", threads, timer]);
            let library = bad(number);
            tracer(run.pid(), "enable", &[library.to_str().expect("UTF-8")]);
            std::thread::sleep(std::time::Duration::from_millis(200));
            assert_eq!(tracer(run.pid(), "status", &["bad"]), "bad\tenabled\n", "{what}");
            tracer(run.pid(), "disable", &["bad"]);
            lab::kill("TERM", run.pid().into());
            let out = run.end();
            assert_eq!((out.code(), out.out()), (0, "right 0\n".into()), "{what}: {}", out.stderr);
        }
    }
}

/// A fault in a tracer is one of the program: it ends as it would by a fault of its own, and trapline says that it has ended.
#[test]
fn a_tracer_that_faults_ends_the_program_by_the_fault() {
    if !lab::may_attach(User::Me) || !lab::has("gcc") {
        return;
    }
    let Some(program) = program() else { return };
    let run = started(User::Me, &[&program, "100", "2", "0"]);
    let (pid, library) = (run.pid().to_string(), bad(5));
    let enable = ["tracer", "enable", "-p", &pid, library.to_str().expect("UTF-8")];
    lab::run(&mut lab::trapline(User::Me, &enable));
    assert_eq!(run.end().code(), 128 + 11);
    let out = lab::run(&mut lab::trapline(User::Me, &["tracer", "status", "-p", &pid]));
    assert!(out.code() == 125 && out.stderr.lines().count() == 1, "{}", out.stderr);
}
