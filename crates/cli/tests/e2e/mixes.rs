//! Any two kinds of probes in one recording: of a command and of a running process, for root and for an ordinary user. The program makes as
//! many events of each kind as it is told; alone and beside any other kind, that many are recorded.

use crate::lab::{self, Outcome, User};
use serde_json::Value;
use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::Stdio;

/// How many events there are.
enum Count {
    /// One in each round, and no other.
    Rounds,
    /// One in each round; the loader and the C library make some too.
    More,
    /// As time and the machine have it.
    Some,
}

/// A kind: its request, the name of its events, and how many there are.
struct Kind {
    request: &'static str,
    event: &'static str,
    count: Count,
}

const KINDS: &[Kind] = &[
    Kind { request: "syscall:getppid", event: "getppid", count: Count::Rounds },
    Kind { request: "function:work", event: "function:entry", count: Count::Rounds },
    Kind { request: "heap:malloc", event: "heap:malloc", count: Count::More },
    Kind { request: "software:page-faults:1", event: "software:page-faults:1", count: Count::More },
    Kind { request: "profile:hz:997", event: "profile:hz:997", count: Count::Some },
    Kind {
        request: "tracepoint:syscalls:sys_enter_munmap",
        event: "tracepoint:syscalls:sys_enter_munmap",
        count: Count::More,
    },
    Kind { request: "uprobe:mixes:probed", event: "uprobe:mixes:probed", count: Count::Rounds },
    Kind { request: "uretprobe:mixes:probed", event: "uretprobe:mixes:probed", count: Count::Rounds },
    Kind { request: "usdt:mixes:mixes:round", event: "usdt:mixes:mixes:round", count: Count::Rounds },
    Kind { request: "tracepoint:sched:sched_switch", event: "tracepoint:sched:sched_switch", count: Count::Some },
];

/// Kinds that only the kernel knows, and that it tells only root.
const OF_ROOT: &[&str] = &["tracepoint:"];

/// Rounds of the program.
const ROUNDS: usize = 20;

/// The pairs, each kind with itself too: alone.
fn pairs() -> impl Iterator<Item = Vec<&'static Kind>> {
    let with =
        |a: usize| (a..KINDS.len()).map(move |b| if a == b { vec![&KINDS[a]] } else { vec![&KINDS[a], &KINDS[b]] });
    (0..KINDS.len()).flat_map(with)
}

/// What was recorded, while it is recorded or afterwards.
struct Events(PathBuf);

impl Events {
    fn all(&self) -> Vec<Value> {
        let text = fs::read_to_string(&self.0).unwrap_or_default();
        // The last line may not be whole yet.
        text.lines().filter_map(|l| serde_json::from_str(l).ok()).collect()
    }

    /// Events of this name, of a thread or of all.
    fn count(&self, name: &str, tid: Option<u64>) -> usize {
        let is_its = |e: &Value| e["name"] == name && tid.is_none_or(|tid| e["tid"] == tid);
        self.all().iter().filter(|e| is_its(e)).count()
    }
}

/// Records these kinds of the program, which is started or runs already. The thread of the rounds that count, how the program has ended, and how
/// trapline has.
#[track_caller]
fn recorded(
    user: User,
    runs: bool,
    program: &str,
    options: &[&str],
    is_recorded: impl Fn() -> bool,
) -> (u32, Outcome, Outcome) {
    let rounds = ROUNDS.to_string();
    if !runs {
        let out = lab::run(&mut lab::trapline(user, &[&["record"], options, &["--", program, &rounds]].concat()));
        let of_program = Outcome { status: out.status, stdout: out.stdout.clone(), stderr: String::new() };
        return (0, of_program, out);
    }
    let mut target = lab::as_user(user, &[program, &rounds, "wait"]);
    let mut target = lab::start(target.stdin(Stdio::piped()).stdout(Stdio::piped()));
    let pid = target.pid();
    let named = pid.to_string();
    let argv = [&["record"], options, &["-p", &named]].concat();
    let mut recorder = lab::start(lab::trapline(user, &argv).stdout(Stdio::piped()).stderr(Stdio::piped()));
    lab::until("all kinds are recorded", || recorder.child.try_wait().expect("wait").is_some() || is_recorded());
    target.child.stdin.take().expect("a pipe").write_all(b"\n").expect("it reads");
    (pid, target.end(), recorder.end())
}

/// Records kinds together, and counts them.
#[track_caller]
fn record(user: User, runs: bool, program: &str, kinds: &[&Kind]) {
    let dir = lab::scratch();
    let events = Events(dir.join("json"));
    // The program by its path: it is in no directory of PATH.
    let named = |text: &str| text.replacen(":mixes:", &format!(":{program}:"), 1);
    let requests: Vec<String> = kinds.iter().map(|k| named(k.request)).collect();
    let names: Vec<String> = kinds.iter().map(|k| named(k.event)).collect();
    let (trace, live) = (dir.join("trace").display().to_string(), format!("json={}", events.0.display()));
    let mut options = vec!["-o", &trace, "--as", &live];
    requests.iter().for_each(|r| options.extend(["-e", r]));
    let all = || names.iter().all(|name| events.count(name, None) > 0);
    let (pid, of_program, out) = recorded(user, runs, program, &options, all);
    let right = (0, format!("{}\n", 3 * ROUNDS));
    if user == User::Nobody && kinds.iter().any(|k| OF_ROOT.iter().any(|p| k.request.starts_with(p))) {
        assert!(!runs || (of_program.code(), of_program.out()) == right, "{requests:?}");
        assert!(out.code() != 0 && out.stderr.lines().count() == 1, "{requests:?}: {}", out.stderr);
        assert!(out.stderr.contains("root"), "{requests:?}: {}", out.stderr);
        return;
    }
    assert_eq!((of_program.code(), of_program.out()), right, "{requests:?}: {}", out.stderr);
    assert!(out.code() == 0 && out.stderr.contains(" 0 dropped"), "{requests:?}: {}", out.stderr);
    let tid = match pid {
        0 => events.all().iter().find_map(|e| e["tid"].as_u64()).expect("an event"),
        pid => pid.into(),
    };
    for (kind, name) in kinds.iter().zip(&names) {
        let n = events.count(name, Some(tid));
        let right = match kind.count {
            Count::Rounds => n == ROUNDS,
            Count::More => (ROUNDS..ROUNDS + 1000).contains(&n),
            Count::Some => events.count(name, None) > 0,
        };
        assert!(right, "{requests:?}: {n} of {name}");
    }
}

#[track_caller]
fn each_pair(user: User, runs: bool) {
    // A file of its own: probes of the kernel put breakpoints into all processes that have it.
    let file =
        format!("mixes_{}_{}", if user == User::Nobody { "user" } else { "own" }, if runs { "runs" } else { "new" });
    let Some(program) = testkit::compile("gcc", &file, "mixes.c", &["-g", "-O1", "-fno-builtin", "-pthread"]) else {
        return;
    };
    pairs().for_each(|kinds| record(user, runs, &program, &kinds));
}

#[test]
fn of_a_command_as_root() {
    if lab::kernel_backend_is_possible() {
        each_pair(User::Me, false);
    }
}

#[test]
fn of_a_command_as_an_ordinary_user() {
    if lab::is_root() {
        each_pair(User::Nobody, false);
    } else {
        testkit::skip("root", "needs root to become nobody");
    }
}

#[test]
fn of_a_process_as_root() {
    if lab::kernel_backend_is_possible() {
        each_pair(User::Me, true);
    }
}

#[test]
fn of_a_process_as_an_ordinary_user() {
    if lab::is_root() && lab::may_attach(User::Nobody) {
        each_pair(User::Nobody, true);
    } else {
        testkit::skip("root", "needs root to become nobody");
    }
}
