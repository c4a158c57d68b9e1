//! `trapline tracer … graph`: a recording beside other tracers, on the same functions of a process.

use crate::injected::{has_its_own_text, rounds};
use crate::lab::{self, User};
use crate::tracers::{done, enabled, refused, tracer};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

/// A program that makes known calls when it is told to, inside of a call that is always under way.
struct Rounds {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

const CALLS: [(&str, u64); 4] = [("fib", 1973), ("leaf", 600), ("middle", 300), ("round_of_calls", 1)];

impl Rounds {
    fn start(argv: &[&str]) -> Rounds {
        let mut command = lab::as_user(User::Me, argv);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
        let (input, output) = (child.stdin.take().expect("piped"), child.stdout.take().expect("piped"));
        let mut program = Rounds { child, input, output: BufReader::new(output) };
        assert_eq!(program.line(), "begun\n");
        program
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("its output");
        line
    }

    fn round(&mut self) {
        self.input.write_all(b".").expect("it listens");
        assert_eq!(self.line(), "275110\n");
    }

    fn end(self) {
        let Rounds { mut child, input, .. } = self;
        drop(input);
        assert!(child.wait().expect("wait").success());
    }
}

fn program() -> Option<String> {
    testkit::compile("gcc", "rounds", "rounds.c", &["-O1"])
}

/// The calls of a function, and how many of them have returned, in a trace.
fn recorded(dir: &str, name: &str) -> (u64, u64) {
    let cat = lab::run(&mut lab::trapline(User::Me, &["report", "-q", dir, "--as", "json"]));
    assert_eq!(cat.code(), 0, "{}", cat.stderr);
    let of = |what: &str| {
        let is_it = |l: &&str| l.contains(what) && l.contains(&format!("\"{name}\""));
        cat.out().lines().filter(is_it).count() as u64
    };
    (of("function:entry"), of("function:exit"))
}

/// The calls of a function in a table of calls, in the column with this number.
fn calls(table: &str, column: usize, name: &str) -> Option<u64> {
    let line = table.lines().find(|l| l.split_ascii_whitespace().last() == Some(name))?;
    line.split_ascii_whitespace().nth(column)?.parse().ok()
}

/// Every call of these rounds has its records, and the one that was under way when the recording began has none.
#[track_caller]
fn has_rounds(dir: &str, n: u64) {
    for (name, calls) in &CALLS[..3] {
        assert_eq!(recorded(dir, name), (n * calls, n * calls), "{name}");
    }
    let table = lab::run(&mut lab::trapline(User::Me, &["report", "-q", dir, "--as", "functions"]));
    for (name, each) in &CALLS[..3] {
        assert_eq!(calls(&table.out(), 2, name), Some(n * each), "{}", table.out());
    }
}

#[track_caller]
fn has_counted(pid: u32, n: u64) {
    let table = done(&tracer(pid, "print", &["count"]));
    for (name, each) in &CALLS[..3] {
        assert_eq!(calls(&table, 2, name), Some(n * each), "{table}");
    }
}

fn status(pid: u32, name: &str) -> String {
    done(&tracer(pid, "status", &[name]))
}

/// Whether a recording is enabled, which another trapline may be about to begin: then the process is that one's for a moment.
fn is_enabled(pid: u32) -> bool {
    // A status at that moment would have the other one refused.
    std::thread::sleep(std::time::Duration::from_secs(1));
    tracer(pid, "status", &["graph"]).out() == "graph\tenabled\n"
}

#[test]
fn count_comes_and_goes_while_a_recording_lasts() {
    let Some(program) = program() else { return };
    let mut run = Rounds::start(&[&program]);
    let pid = run.child.id();
    assert!(done(&tracer(pid, "list", &[])).lines().any(|l| l == "graph"));
    refused(&tracer(pid, "disable", &["graph"]), "graph is not enabled");
    refused(&tracer(pid, "print", &["graph"]), "graph is not enabled");
    let dir = lab::scratch().join("lasts");
    let dir = dir.to_str().expect("UTF-8");
    done(&tracer(pid, "enable", &["graph", "-o", dir]));
    let other = format!("{dir}-other");
    refused(&tracer(pid, "enable", &["graph", "-o", &other]), "graph is already enabled");
    refused(&tracer(pid, "enable", &["graph"]), "graph is already enabled");
    for _ in 0..rounds(2) {
        run.round();
        done(&tracer(pid, "enable", &["count"]));
        assert_eq!(
            (status(pid, "graph"), status(pid, "count")),
            ("graph\tenabled\n".into(), "count\tenabled\n".into())
        );
        run.round();
        has_counted(pid, 1);
        lab::until("the trace has calls", || {
            done(&tracer(pid, "print", &["graph"])).lines().any(|l| l.contains("fib()"))
        });
        done(&tracer(pid, "disable", &["count"]));
        run.round();
    }
    done(&tracer(pid, "disable", &["graph"]));
    assert!(enabled(pid).is_empty());
    has_rounds(dir, 3 * rounds(2) as u64);
    run.round();
    lab::until("no call is open", || {
        done(&tracer(pid, "status", &[]));
        std::panic::catch_unwind(|| has_its_own_text(pid)).is_ok()
    });
    run.end();
}

#[test]
fn a_recording_comes_and_goes_while_count_lasts() {
    let Some(program) = program() else { return };
    let mut run = Rounds::start(&[&program]);
    let pid = run.child.id();
    done(&tracer(pid, "enable", &["count"]));
    let (mut all, rounds) = (0, rounds(3));
    for n in 0..rounds {
        let dir = lab::scratch().join(format!("goes-{n}"));
        let dir = dir.to_str().expect("UTF-8");
        run.round();
        // Some of its functions only, the second time.
        let some: &[&str] = if n % 2 == 1 { &["-F", "fib", "-F", "middle", "-N", "mid*"] } else { &[] };
        done(&tracer(pid, "enable", &[&["graph", "-o", dir], some].concat()));
        run.round();
        // Its place in the list is behind the recording's now.
        if n == 2 {
            done(&tracer(pid, "disable", &["count"]));
            run.round();
            done(&tracer(pid, "enable", &["count"]));
            all = 0;
        }
        run.round();
        done(&tracer(pid, "disable", &["graph"]));
        assert_eq!(
            (status(pid, "graph"), status(pid, "count")),
            ("graph\tdisabled\n".into(), "count\tenabled\n".into())
        );
        match n {
            _ if !some.is_empty() => {
                assert_eq!((recorded(dir, "fib"), recorded(dir, "middle")), ((2 * 1973, 2 * 1973), (0, 0)));
            }
            2 => has_rounds(dir, 3),
            _ => has_rounds(dir, 2),
        }
        run.round();
        all += if n == 2 { 2 } else { 4 };
        has_counted(pid, all);
    }
    done(&tracer(pid, "disable", &["count"]));
    run.round();
    lab::until("no call is open", || {
        done(&tracer(pid, "status", &[]));
        std::panic::catch_unwind(|| has_its_own_text(pid)).is_ok()
    });
    run.end();
}

/// `graph -p` in one terminal, and a tracer's commands in another; a recorder that is killed.
#[test]
fn a_recording_of_another_command_is_seen_and_ended() {
    let Some(program) = program() else { return };
    let mut run = Rounds::start(&[&program]);
    let pid = run.child.id();
    let mut command = lab::trapline(User::Me, &["graph", "-q", "-p", &pid.to_string(), "--as", "functions"]);
    let view = lab::start(command.stdout(Stdio::piped()).stderr(Stdio::piped()));
    lab::until("it is enabled", || is_enabled(pid));
    run.round();
    done(&tracer(pid, "enable", &["thread_checker", "--thread", "nobody", "-F", "fib"]));
    run.round();
    lab::until("the trace has calls", || done(&tracer(pid, "print", &["graph"])).contains("fib()"));
    done(&tracer(pid, "disable", &["graph"]));
    let shown = view.end();
    assert_eq!(calls(&shown.out(), 2, "fib"), Some(2 * 1973), "{} {}", shown.out(), shown.stderr);
    run.round();
    // A recorder that is killed leaves no recording.
    let killed = lab::start(&mut lab::trapline(User::Me, &["graph", "-q", "-p", &pid.to_string()]));
    lab::until("it is enabled", || is_enabled(pid));
    run.round();
    lab::kill("KILL", killed.pid().into());
    killed.end();
    lab::until("it is not enabled", || status(pid, "graph") == "graph\tdisabled\n");
    run.round();
    let dir = lab::scratch().join("killed");
    let dir = dir.to_str().expect("UTF-8");
    done(&tracer(pid, "enable", &["graph", "-o", dir]));
    run.round();
    done(&tracer(pid, "disable", &["thread_checker"]));
    run.round();
    done(&tracer(pid, "disable", &["graph"]));
    has_rounds(dir, 2);
    assert!(enabled(pid).is_empty());
    run.end();
}

/// The recording of a command, from its start on.
#[test]
fn tracers_come_and_go_in_a_command_that_is_recorded() {
    let Some(program) = program() else { return };
    let dir = lab::scratch().join("command");
    let dir = dir.to_str().expect("UTF-8");
    let trapline = lab::trapline(User::Me, &["graph", "-q", "-o", dir, "--", &program]);
    let argv: Vec<&str> =
        [trapline.get_program()].into_iter().chain(trapline.get_args()).map(|a| a.to_str().expect("UTF-8")).collect();
    let mut run = Rounds::start(&argv);
    let recorder = run.child.id();
    let children = std::fs::read_to_string(format!("/proc/{recorder}/task/{recorder}/children")).expect("its children");
    let pid: u32 = children.split_ascii_whitespace().next().and_then(|pid| pid.parse().ok()).expect("the command");
    run.round();
    done(&tracer(pid, "enable", &["count"]));
    run.round();
    has_counted(pid, 1);
    refused(&tracer(pid, "disable", &["graph"]), "the recording began with the program");
    done(&tracer(pid, "disable", &["count"]));
    run.round();
    run.end();
    has_rounds(dir, 3);
}
