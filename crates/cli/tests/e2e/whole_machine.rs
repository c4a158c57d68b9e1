//! `-a`: every process of the machine, but trapline's own and those that read what it writes. And `--duration`, and who may
//! attach where trapline has capabilities that its user does not have.

use crate::kernel::possible;
use crate::lab::{self, Running, User, each_user};
use crate::terminal::on_terminal;
use crate::trace::{Line, arguments, lines_of, on_stderr, trace};
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, ChildStdout, Stdio};

/// tests/programs/counted.c
pub struct Counted {
    running: Running,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    pub pid: u32,
}

const CALLS: usize = 3000;

pub fn counted(user: User, program: &str) -> Counted {
    let mut child = lab::as_user(user, &[program, &CALLS.to_string()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("counted");
    let stdin = child.stdin.take();
    let stdout = BufReader::new(child.stdout.take().expect("stdout"));
    let mut c = Counted { running: lab::start_with(child), stdin, stdout, pid: 0 };
    c.pid = c.line().parse().expect("its pid");
    c
}

impl Counted {
    fn line(&mut self) -> String {
        let mut line = String::new();
        self.stdout.read_line(&mut line).expect("its line");
        line.trim().to_string()
    }
    /// Lets it make its calls, and waits until it has.
    pub fn go(&mut self) {
        self.stdin.as_mut().expect("stdin").write_all(b"x").expect("its stdin");
        assert_eq!(self.line(), CALLS.to_string());
    }
    pub fn end(mut self) -> u32 {
        self.stdin = None;
        assert_eq!(self.running.end().code(), 0);
        self.pid
    }
}

fn so_far(file: &Path) -> Vec<Line> {
    // The last line may be half there.
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    whole
        .lines()
        .filter_map(|l| l.split_once(' '))
        .filter_map(|(tid, text)| Some(Line { tid: tid.parse().ok()?, text: text.trim_start().into() }))
        .collect()
}

fn threads(pid: u32) -> BTreeSet<u32> {
    let dir = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    dir.filter_map(|e| e.file_name().to_str()?.parse().ok()).collect()
}

fn start(options: &[&str]) -> (Running, PathBuf) {
    let (args, file) = arguments(options, &[]);
    (lab::start(lab::trapline(User::Me, &args).stderr(Stdio::piped())), file)
}

#[test]
fn processes_from_before_and_from_during_the_trace_are_seen_whole() {
    if !possible() {
        return;
    }
    let Some(program) = lab::program("counted") else { return };
    for options in [&["-e", "getppid,read"][..], &["--buffer", "64M"]] {
        let mut before = counted(User::Me, &program);
        let (running, file) = start(&[&["-a"], options].concat());
        let pid = before.pid;
        let waits = || so_far(&file).iter().any(|l| l.tid == pid && l.text == "read(0,  <in flight since attach>");
        lab::until("its read, in flight since the attach", waits);
        let own = threads(running.pid());
        assert!(own.len() >= 2, "{own:?}");
        before.go();
        let mut during = counted(User::Nobody, &program);
        during.go();
        let pids = [before.end(), during.end()];
        lab::kill("INT", running.pid().into());
        let out = running.end();
        assert_eq!(out.code(), 0, "{}", out.stderr);
        assert!(out.stderr.contains(" 0 dropped, kernel backend"), "{}", out.stderr);
        let lines = lines_of(&file);
        for pid in pids {
            let of = |what: &str| lines.iter().filter(|l| l.tid == pid && l.text.starts_with(what)).count();
            assert_eq!((of("getppid("), of("+++ exited with 0 +++")), (CALLS, 1), "{pid} {options:?}");
            let reads: Vec<&Line> =
                lines.iter().filter(|l| l.tid == pid && l.is("read") && l.text.contains(", 1)")).collect();
            assert_eq!(reads.len(), 2, "{reads:#?}");
            assert!(reads[0].text.starts_with("read(0, \"x\", 1)") && reads[0].result() == "1", "{reads:#?}");
        }
        let own: Vec<&Line> = lines.iter().filter(|l| own.contains(&l.tid)).collect();
        assert!(own.is_empty(), "{own:#?}");
    }
}

#[test]
fn a_call_from_before_the_start_has_no_start() {
    if !possible() {
        return;
    }
    let Some(program) = lab::program("counted") else { return };
    let mut before = counted(User::Me, &program);
    let (running, file) = start(&["-a", "-e", "read", "--as", "json"]);
    let text = || std::fs::read_to_string(&file).unwrap_or_default();
    let read_of = |pid: u32| {
        let all = text();
        let whole = all.rfind('\n').map_or("", |end| &all[..end]).to_string();
        let events = whole.lines().filter_map(|l| serde_json::from_str::<serde_json::Value>(l).ok());
        events.filter(|e| e["pid"] == pid && e["name"] == "read" && e["ret"] == 1).collect::<Vec<_>>()
    };
    lab::until("the survey", || text().contains(&format!("\"pid\":{}", before.pid)));
    before.go();
    before.go();
    let pid = before.end();
    lab::until("both reads", || read_of(pid).len() == 2);
    lab::kill("TERM", running.pid().into());
    assert_eq!(running.end().code(), 0);
    let known: Vec<bool> = read_of(pid).iter().map(|e| e["start_ns"].is_number()).collect();
    assert_eq!(known, [false, true], "{:#?}", read_of(pid));
}

/// Links of single calls are closed by a process that outlives trapline. Another trapline tells which processes those are.
#[test]
fn none_of_its_own_processes_is_an_event() {
    if !possible() {
        return;
    }
    let trapline = lab::dir().join("trapline");
    for (calls, processes) in [("close_range,setsid,nanosleep,kill", 3), ("all", 1)] {
        let (inner, file) = arguments(&["-a", "-e", calls, "--duration", "0.3", "--buffer", "64M"], &[]);
        let command: Vec<&str> =
            std::iter::once(trapline.to_str().expect("UTF-8")).chain(inner.iter().map(String::as_str)).collect();
        let outer = trace(User::Me, &["--backend", "ptrace"], &command);
        assert_eq!(outer.outcome.code(), 0, "{}", outer.outcome.stderr);
        let own: BTreeSet<u32> = outer.lines.iter().map(|l| l.tid).collect();
        // Its processes, and the thread that drains.
        assert!(own.len() > processes, "{own:?}");
        let lines = lines_of(&file);
        let seen: Vec<&Line> = lines.iter().filter(|l| own.contains(&l.tid)).collect();
        assert!(seen.is_empty(), "{calls}: {seen:#?}");
    }
}

/// What a command reads that trapline writes to is no event either, nor what it starts.
#[test]
fn the_command_behind_a_pipe_is_no_event() {
    if !possible() {
        return;
    }
    let dir = lab::scratch();
    let here = dir.display();
    let to =
        format!("|echo $$ >{here}/first; sh -c 'echo $$ >{here}/second; cat >{here}/out; echo end >>{here}/out'; true");
    let args = ["trace", "-a", "-o", &to, "-e", "read,write,execve", "--duration", "1"];
    let out = lab::run(&mut lab::trapline(User::Me, &args));
    assert_eq!(out.code(), 0, "{}", out.stderr);
    let text = |name: &str| std::fs::read_to_string(dir.join(name)).expect("what the command has written");
    let shown = text("out");
    assert!(shown.ends_with("end\n"), "{shown}");
    for pid in [text("first"), text("second")] {
        let seen: Vec<&str> = shown.lines().filter(|l| l.split(' ').next() == Some(pid.trim())).collect();
        assert!(seen.is_empty(), "{seen:#?}");
    }
}

#[test]
fn on_a_terminal_its_owner_is_left_out() {
    if !possible() {
        return;
    }
    // Of what the terminal's readers are called only: what other tests make would take long to show.
    let names = "comm == \"python3\" || startswith(comm, \"e2e\")";
    let calls = "read,write,select,pselect6,wait4";
    let args = ["trace", "-a", "--color", "never", "-e", calls, "--where", names, "--duration", "2"];
    let Some(shown) = on_terminal(User::Me, &[], &args) else { return };
    let said =
        shown.lines().find(|l| l.contains("because they read this output: ")).unwrap_or_else(|| panic!("{shown}"));
    let (pid, rest) = said.split_once("output: ").and_then(|(_, r)| r.split_once(' ')).expect("a pid");
    assert!(rest.contains("python3") && rest.contains("-o FILE"), "{said}");
    let tag = format!("[pid {pid:>5}]");
    assert!(!shown.contains(&tag), "a loop: {shown}");
    assert!(shown.contains("STATUS 0"), "{shown}");
}

#[test]
fn what_does_not_go_with_the_whole_machine_is_said() {
    each_user(|user| {
        for (args, hint) in [
            (&["-a", "--backend", "ptrace"][..], "kernel backend"),
            (&["-a", "-p", "1"], "one or the other"),
            (&["-a", "--", "60", "true"], "--columns"),
            (&["-a", "--no-follow"], "follow"),
            (&["--duration", "0", "true"], "above 0"),
            (&["--duration", "soon", "true"], "seconds"),
        ] {
            let out = on_stderr(user, args);
            assert_eq!((out.code(), out.stderr.lines().count()), (2, 1), "{args:?} {}", out.stderr);
            assert!(out.stderr.contains(hint), "{args:?} {}", out.stderr);
        }
    });
    if lab::is_root() && lab::has("setpriv") {
        let out = on_stderr(User::Nobody, &["-a"]);
        assert_eq!((out.code(), out.stderr.lines().count()), (125, 1), "{}", out.stderr);
        assert!(out.stderr.contains("root") && out.stderr.contains("-p PID"), "{}", out.stderr);
    }
}

#[test]
fn a_duration_ends_the_trace_and_not_the_target() {
    each_user(|user| {
        let Some(program) = lab::program("counted") else { return };
        let backends = if user == User::Me && possible() { &["ptrace", "kernel"][..] } else { &["ptrace"] };
        for backend in backends {
            let dir = lab::scratch();
            // Of a session of its own, because what is in the group of a run ends with the run.
            let script = format!(
                "cd {}; exec >out 2>&1; i=0; while [ ! -e go ] && [ $i -lt 600 ]; do sleep 0.05; i=$((i+1)); done; [ -e go ] && echo fine >end",
                dir.display()
            );
            let t = trace(
                user,
                &["--backend", backend, "--no-seccomp", "--duration", "0.5"],
                &["setsid", "sh", "-c", &script],
            );
            assert_eq!(t.outcome.code(), 0, "{}", t.text());
            t.has("execve(");
            assert!(!dir.join("end").exists());
            std::fs::write(dir.join("go"), "").expect("go");
            lab::until("the command's end", || dir.join("end").exists());
            if user == User::Nobody && lab::attach_is_restricted() {
                continue;
            }
            let mut target = counted(user, &program);
            let pid = target.pid.to_string();
            let t = trace(user, &["--backend", backend, "--duration", "0.3", "-p", &pid], &[]);
            assert_eq!(t.outcome.code(), 0, "{}", t.text());
            t.has("read(0,  <in flight since attach>");
            target.go();
            target.end();
        }
        // A command that ends before keeps its status.
        assert_eq!(trace(user, &["--duration", "60"], &["sh", "-c", "exit 7"]).outcome.code(), 7);
    });
}
