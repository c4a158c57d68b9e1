//! Heaps of programs that run already: `heap -p`, and `heap start|print|reset|stop|clear -p`.

use crate::heap_accounts::{Account, PLAIN, Sum, by_function};
use crate::lab::{self, Running, User, each_attacher};
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::process::{ChildStdin, ChildStdout, Stdio};
use std::time::Duration;

/// tests/programs/heap.c, which does what it is told: `a` leaks 1000 bytes, `z` leaks 2 times 50, `f` frees what was leaked last.
struct Target {
    running: Running,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

impl Target {
    fn start(user: User, program: &str) -> Target {
        let mut command = lab::as_user(user, &[program, "answers"]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("a target");
        let (stdin, stdout) = (child.stdin.take().expect("stdin"), child.stdout.take().expect("stdout"));
        Target { running: lab::start_with(child), stdin, stdout: BufReader::new(stdout) }
    }

    fn pid(&self) -> String {
        self.running.pid().to_string()
    }

    /// Has it do something and waits until it is done.
    #[track_caller]
    fn told(&mut self, words: &str) {
        for word in words.chars() {
            write!(self.stdin, "{word}").expect("its stdin");
            let mut answer = String::new();
            self.stdout.read_line(&mut answer).expect("its answer");
            assert_eq!(answer, ".\n");
        }
    }

    /// It goes on, untraced, and ends well: its account is what it has done.
    #[track_caller]
    fn ends(mut self) -> Account {
        write!(self.stdin, "q").expect("its stdin");
        let mut rest = String::new();
        std::io::Read::read_to_string(&mut self.stdout, &mut rest).expect("its account");
        assert_eq!(self.running.end().code(), 0);
        Account::of(&rest)
    }
}

#[track_caller]
fn heap(user: User, args: &[&str]) -> String {
    let out = lab::run(&mut lab::trapline(user, &[&["heap"], args].concat()));
    assert_eq!(out.code(), 0, "{args:?}: {}", out.stderr);
    out.out()
}

fn both() -> Account {
    Account::of("heap leaks 0 0 0 0\nheap leaks_zeroed 0 0 0 0\n")
}

/// What is printed of a session: by function, outstanding and allocated.
#[track_caller]
fn printed(user: User, pid: &str) -> [Sum; 4] {
    let text = heap(user, &["print", "-p", pid, "--as", "json"]);
    let json: Value = serde_json::from_str(&text).unwrap_or_else(|e| panic!("{e}: {text}"));
    let [outstanding, total] = ["outstanding", "total"].map(|key| by_function(&json, key, &both()));
    [outstanding["leaks"], outstanding["leaks_zeroed"], total["leaks"], total["leaks_zeroed"]]
}

const fn sum(blocks: u64, bytes: u64) -> Sum {
    Sum { blocks, bytes }
}

#[test]
fn sessions_count_from_their_start() {
    let Some(program) = PLAIN.build() else { return };
    each_attacher(|user| {
        let mut target = Target::start(user, &program);
        let pid = target.pid();
        // What was there before is not counted, and freeing it counts for nothing.
        target.told("aaz");
        heap(user, &["start", "-p", &pid]);
        assert_eq!(printed(user, &pid), [sum(0, 0); 4]);
        target.told("faazzzf");
        assert_eq!(printed(user, &pid), [sum(1, 1000), sum(3, 300), sum(2, 2000), sum(3, 300)]);
        // Printing changes nothing.
        assert_eq!(printed(user, &pid), [sum(1, 1000), sum(3, 300), sum(2, 2000), sum(3, 300)]);
        heap(user, &["reset", "-p", &pid]);
        target.told("z");
        let after = printed(user, &pid);
        assert_eq!((after[1], after[3]), (sum(1, 100), sum(1, 100)), "{after:?}");
        heap(user, &["stop", "-p", &pid]);
        target.told("az");
        assert_eq!(printed(user, &pid), after, "a session that is stopped counts nothing");
        heap(user, &["clear", "-p", &pid]);
        let gone = lab::run(&mut lab::trapline(user, &["heap", "print", "-p", &pid]));
        assert!(gone.code() != 0 && gone.stderr.lines().count() == 1, "{}", gone.stderr);
        target.told("z");
        let account = target.ends();
        assert_eq!(account.allocated["leaks"], sum(5, 5000));
        assert_eq!(account.outstanding["leaks_zeroed"], sum(7, 700));
    });
}

#[test]
fn attached_until_it_is_interrupted() {
    let Some(program) = PLAIN.build() else { return };
    each_attacher(|user| {
        let mut target = Target::start(user, &program);
        let file = lab::scratch().join("json");
        let view = format!("json={}", file.display());
        let ready = lab::scratch().join("ready");
        let mut command = lab::trapline(user, &["heap", "-p", &target.pid(), "--as", &view]);
        let err = std::fs::File::create(&ready).expect("a file");
        let tracer = lab::start(command.stderr(err));
        target.told("az");
        // It is told until one of them is counted: when that begins, nobody says.
        lab::until("it is attached", || {
            std::fs::read_to_string(format!("/proc/{}/maps", target.pid())).is_ok_and(|m| m.contains("trapline"))
        });
        std::thread::sleep(Duration::from_millis(500));
        let before = 3;
        target.told(&"z".repeat(before));
        target.told("aaf");
        lab::kill("INT", tracer.pid().into());
        let out = tracer.end();
        assert!(out.code() == 0 || out.code() == 130, "{}", std::fs::read_to_string(&ready).unwrap_or_default());
        let json: Value = serde_json::from_slice(&std::fs::read(&file).expect("a report")).expect("JSON");
        let outstanding = by_function(&json, "outstanding", &both());
        assert_eq!((outstanding["leaks"], outstanding["leaks_zeroed"]), (sum(1, 1000), sum(3, 300)), "{json}");
        target.told("az");
        assert_eq!(target.ends().allocated["leaks"], sum(4, 4000));
    });
}

/// A session's trapline is killed at random moments; the target goes on, and can be attached to again.
#[test]
fn killed_while_attached() {
    let Some(program) = PLAIN.build() else { return };
    if !lab::may_attach(User::Me) {
        return;
    }
    let mut target = Target::start(User::Me, &program);
    let mut random = testkit::Random::new(11);
    for _ in 0..6 {
        let maps = std::fs::read_to_string(format!("/proc/{}/maps", target.pid())).unwrap_or_default();
        let before = maps.lines().filter(|l| l.contains("memfd:trapline ")).map(str::to_string).next_back();
        let mut tracer =
            lab::start(lab::trapline(User::Me, &["heap", "-q", "-p", &target.pid()]).stdout(Stdio::null()));
        // While the agent's memory is being mapped, there is a tenth of a millisecond that the target would not survive.
        lab::until("it is attached", || {
            let file = |name| std::fs::read_to_string(format!("/proc/{}/{name}", target.pid())).unwrap_or_default();
            let memory =
                || file("maps").lines().filter(|l| l.contains("memfd:trapline ")).map(str::to_string).next_back();
            memory().is_some_and(|line| before != Some(line)) && file("status").contains("TracerPid:\t0\n")
        });
        let wait = Duration::from_micros(random.below(150_000));
        let begin = std::time::Instant::now();
        while begin.elapsed() < wait {
            target.told("azf");
        }
        lab::kill("KILL", tracer.pid().into());
        let _ = tracer.child.wait();
        target.told("azfaz");
    }
    heap(User::Me, &["start", "-p", &target.pid()]);
    target.told("az");
    assert_eq!(printed(User::Me, &target.pid()), [sum(1, 1000), sum(1, 100), sum(1, 1000), sum(1, 100)]);
    heap(User::Me, &["clear", "-p", &target.pid()]);
    target.ends();
}

/// The error of a command that fails: one line.
#[track_caller]
fn refused(user: User, args: &[&str]) -> String {
    let out = lab::run(&mut lab::trapline(user, &[&["heap"], args].concat()));
    assert!(out.code() != 0 && out.stderr.lines().count() == 1, "{args:?}: {} {}", out.code(), out.stderr);
    out.stderr
}

/// The collector of a process.
#[track_caller]
fn collector(user: User, pid: &str) -> u32 {
    let out = lab::run(&mut lab::trapline(user, &["session", "list", "--json"]));
    let all: Value = serde_json::from_str(&out.out()).expect("JSON");
    let name = format!("heap-{pid}");
    let found = all.as_array().into_iter().flatten().find(|s| s["name"] == Value::String(name.clone()));
    found.and_then(|s| s["pid"].as_u64()).expect("a collector in the list of sessions") as u32
}

#[test]
fn what_sessions_refuse() {
    let Some(program) = PLAIN.build() else { return };
    each_attacher(|user| {
        let mut target = Target::start(user, &program);
        let pid = target.pid();
        for verb in ["print", "stop", "reset", "clear"] {
            let line = refused(user, &[verb, "-p", &pid]);
            assert!(line.contains("is not recorded") && line.contains("heap start"), "{line}");
        }
        heap(user, &["start", "-p", &pid]);
        assert!(refused(user, &["start", "-p", &pid]).contains("started already"));
        assert!(refused(user, &["print", "-p", &pid, "--as", "nonsense"]).contains("no such view"));
        heap(user, &["stop", "-p", &pid]);
        assert!(refused(user, &["stop", "-p", &pid]).contains("stopped already"));
        heap(user, &["start", "-p", &pid]);
        target.told("a");
        // It holds nothing of whoever has started it.
        let fds = std::fs::read_dir(format!("/proc/{}/fd", collector(user, &pid))).expect("its descriptors");
        let files = fds.flatten().filter_map(|e| std::fs::read_link(e.path()).ok());
        let pipes: Vec<_> = files.filter(|f| f.to_string_lossy().starts_with("pipe:")).collect();
        assert!(pipes.is_empty(), "{pipes:?}");
        assert_eq!(printed(user, &pid)[0], sum(1, 1000));
        // It goes on when the process has ended.
        target.ends();
        lab::until("its end is noticed", || {
            lab::run(&mut lab::trapline(user, &["session", "list"])).out().contains("ended")
        });
        assert_eq!(printed(user, &pid)[0], sum(1, 1000));
        assert!(refused(user, &["stop", "-p", &pid]).contains("has ended"));
        heap(user, &["clear", "-p", &pid]);
        for verb in ["start", "print", "clear"] {
            assert!(refused(user, &[verb, "-p", &pid]).contains("no such process"));
        }
    });
    if lab::is_root() && lab::has("setpriv") {
        let target = Target::start(User::Me, &program);
        assert!(refused(User::Nobody, &["start", "-p", &target.pid()]).contains("another user"));
        assert!(refused(User::Nobody, &["print", "-p", &target.pid()]).contains("is not recorded"));
        target.ends();
    } else {
        lab::skip("unprivileged", "there is no second user");
    }
}

/// The collector, and then the process, are killed at random moments.
#[test]
fn collectors_are_killed() {
    let Some(program) = PLAIN.build() else { return };
    if !lab::may_attach(User::Me) {
        return;
    }
    let user = User::Me;
    let mut target = Target::start(user, &program);
    let pid = target.pid();
    let mut random = testkit::Random::new(17);
    for round in 0..6 {
        heap(user, &["start", "-p", &pid]);
        let wait = Duration::from_micros(random.below(20_000));
        let begin = std::time::Instant::now();
        while begin.elapsed() < wait {
            target.told("azf");
        }
        lab::kill("KILL", collector(user, &pid).into());
        target.told("azfaz");
        if round % 2 == 0 {
            // What is left goes, and there is no more.
            let line = refused(user, &["print", "-p", &pid]);
            assert!(line.contains("heap clear"), "{line}");
            heap(user, &["clear", "-p", &pid]);
            assert!(refused(user, &["clear", "-p", &pid]).contains("is not recorded"));
            target.told("az");
        }
    }
    heap(user, &["start", "-p", &pid]);
    target.told("az");
    assert_eq!(printed(user, &pid), [sum(1, 1000), sum(1, 100), sum(1, 1000), sum(1, 100)]);
    lab::kill("KILL", target.running.pid().into());
    let _ = target.running.child.wait();
    assert_eq!(printed(user, &pid), [sum(1, 1000), sum(1, 100), sum(1, 1000), sum(1, 100)]);
    heap(user, &["clear", "-p", &pid]);
}
