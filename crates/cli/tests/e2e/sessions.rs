//! `record --name` and `trapline session`: what is recorded between which requests.

use crate::injected;
use crate::kernel::possible;
use crate::lab::{self, Outcome, Running, User, each_attacher, each_user};
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

/// Runs a scenario with both backends: ptrace for each user, the kernel's as root.
pub fn each_backend(scenario: impl Fn(User, &str)) {
    each_user(|user| scenario(user, "ptrace"));
    if possible() {
        eprintln!("kernel backend");
        scenario(User::Me, "kernel");
    }
}

/// A place for sockets and traces: the directory that XDG_RUNTIME_DIR names.
pub struct Room {
    pub user: User,
    pub path: PathBuf,
}

impl Room {
    pub fn new(user: User) -> Room {
        let path = lab::scratch();
        if user == User::Nobody {
            let id = |option: &str| -> u32 {
                let out = lab::run(Command::new("id").args([option, "nobody"]));
                out.out().trim().parse().expect("an id")
            };
            chown(&path, Some(id("-u")), Some(id("-g"))).expect("chown");
        }
        fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).expect("chmod");
        Room { user, path }
    }

    pub fn trapline(&self, args: &[&str]) -> Command {
        let mut c = lab::trapline(self.user, args);
        c.env("XDG_RUNTIME_DIR", &self.path).current_dir(&self.path);
        c
    }

    /// `trapline session ARGS`
    pub fn ask(&self, args: &[&str]) -> Outcome {
        lab::run(&mut self.trapline(&[&["session"], args].concat()))
    }

    /// `trapline session ARGS`, which must succeed; its output.
    #[track_caller]
    pub fn does(&self, args: &[&str]) -> String {
        let out = self.ask(args);
        assert_eq!((out.code(), out.stderr.as_str()), (0, ""), "{args:?}");
        out.out()
    }

    /// `trapline session ARGS`, which must be refused with this status and these words.
    #[track_caller]
    pub fn refuses(&self, args: &[&str], code: i32, why: &str) {
        let out = self.ask(args);
        assert_eq!(out.code(), code, "{args:?} {}", out.stderr);
        assert!(out.stderr.contains(why) && out.stderr.lines().count() == 1, "{args:?} {}", out.stderr);
    }

    #[track_caller]
    pub fn status(&self, name: &str) -> Value {
        let text = self.does(&["status", name, "--json"]);
        serde_json::from_str(&text).unwrap_or_else(|e| panic!("{e}: {text}"))
    }

    pub fn socket(&self, name: &str) -> PathBuf {
        self.path.join("trapline").join(format!("{name}.sock"))
    }

    /// Names of the calls, signals and marks of a trace, in order.
    #[track_caller]
    pub fn events(&self, dir: &str) -> Vec<String> {
        let out = lab::run(&mut self.trapline(&["report", "-q", "--as", "json", dir]));
        assert_eq!(out.code(), 0, "{}", out.stderr);
        let name = |line: &str| {
            let v: Value = serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"));
            let key = if v["type"] == "syscall" || v["type"] == "probe" { "name" } else { "type" };
            v[key].as_str().expect("a name").to_string()
        };
        out.out().lines().map(name).collect()
    }

    /// How many events of these names a trace has.
    #[track_caller]
    pub fn counts<const N: usize>(&self, dir: &str, names: [&str; N]) -> [usize; N] {
        let events = self.events(dir);
        let found = names.map(|n| events.iter().filter(|e| *e == n).count());
        if lab::has("babeltrace2") {
            let mut c = Command::new("timeout");
            c.args(["20", "babeltrace2"]).arg(self.path.join(dir)).current_dir(&self.path);
            let out = lab::run(&mut c);
            assert_eq!((out.code(), out.stderr.as_str()), (0, ""), "{dir}");
            for (name, n) in names.iter().zip(found) {
                let marks = [format!(":{name}: "), format!("{name}: ")];
                let lines = out.out().lines().filter(|l| marks.iter().any(|m| l.contains(m.as_str()))).count();
                assert_eq!(lines, n, "{name} in babeltrace2's text of {dir}");
            }
        } else {
            lab::skip("package:babeltrace2", "no other reader of traces");
        }
        found
    }
}

/// tests/programs/phases.c, or something that it runs in.
pub struct Phases {
    pub child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

impl Phases {
    pub fn start(command: &mut Command) -> Phases {
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("phases");
        let (stdin, stdout) = (child.stdin.take().expect("stdin"), child.stdout.take().expect("stdout"));
        Phases { child, stdin, stdout: BufReader::new(stdout) }
    }

    /// Makes the calls; they have been made when this returns.
    #[track_caller]
    pub fn make(&mut self, what: &str, n: usize) {
        self.ask(what, n);
        self.made();
    }

    /// Has calls made, and does not wait for them.
    #[track_caller]
    pub fn ask(&mut self, what: &str, n: usize) {
        writeln!(self.stdin, "{what} {n}").expect("its stdin");
    }

    /// Waits until they have been made.
    #[track_caller]
    pub fn made(&mut self) {
        let mut line = String::new();
        self.stdout.read_line(&mut line).expect("its stdout");
        assert_eq!(line, "done\n");
    }

    /// Nothing more is to be made; how it ends.
    pub fn end(self) -> Outcome {
        drop(self.stdin);
        lab::start_with(self.child).end()
    }

    /// It ends by itself, and what ran in it is let go then: that still has its stderr.
    #[track_caller]
    pub fn ends(mut self) -> Outcome {
        lab::until("the end", || self.child.try_wait().expect("wait").is_some());
        drop(self.stdin);
        lab::start_with(self.child).end()
    }
}

/// `trapline record --name NAME -o DIR OPTIONS phases`
pub fn record(room: &Room, backend: &str, name: &str, options: &[&str]) -> Option<Phases> {
    let program = lab::program("phases")?;
    let dir = format!("{name}.trace");
    let args = ["record", "--backend", backend, "--name", name, "-o", &dir];
    let p = Phases::start(&mut room.trapline(&[&args, options, &["--", &program]].concat()));
    lab::until("its socket", || room.socket(name).exists());
    Some(p)
}

#[test]
fn what_happens_while_a_session_is_stopped_is_not_recorded() {
    each_backend(|user, backend| {
        let room = Room::new(user);
        let Some(mut p) = record(&room, backend, "a", &["-e", "getppid,getuid"]) else { return };
        p.make("ppid", 5);
        room.does(&["stop", "a"]);
        assert_eq!(room.status("a")["state"], "stopped");
        room.refuses(&["stop", "a"], 125, "already stopped");
        p.make("ppid", 70);
        p.make("uid", 70);
        p.make("kill", 4);
        p.make("fork", 3);
        room.does(&["start", "a"]);
        room.refuses(&["start", "a"], 125, "already running");
        p.make("uid", 11);
        p.make("kill", 2);
        p.make("fork", 6);
        assert_eq!(p.end().code(), 0);
        let names = ["getppid", "getuid", "signal", "fork", "paused", "resumed"];
        // Forks are told of all the while: three in the pause, six after it. Each child makes one getppid, and ends
        // with a signal to its parent, which ignores that.
        let [ppid, uid, _, forks, paused, resumed] = room.counts("a.trace", names);
        assert_eq!((ppid, uid, forks, paused, resumed), (5 + 6, 11, 9, 1, 1), "{user:?} {backend}");
        let events = room.events("a.trace");
        let at = |name: &str| events.iter().position(|e| e == name).expect(name);
        let gap = &events[at("paused")..at("resumed")];
        assert!(!gap.iter().any(|e| ["getppid", "getuid", "signal"].contains(&e.as_str())), "{gap:?}");
        // Nobody is left to ask, and nothing is left behind.
        assert!(!room.socket("a").exists());
        room.refuses(&["status", "a"], 125, "no such session");
    });
}

#[test]
fn a_session_may_begin_stopped_and_with_nothing_enabled() {
    each_backend(|user, backend| {
        let room = Room::new(user);
        let Some(mut p) = record(&room, backend, "b", &["--paused", "-e", "none"]) else { return };
        p.make("ppid", 9);
        room.refuses(&["start", "b"], 125, "nothing is enabled");
        room.refuses(&["set", "b", "-e", "none"], 2, "nothing would be enabled");
        room.does(&["set", "b", "-e", "getppid"]);
        p.make("ppid", 9);
        room.does(&["start", "b"]);
        p.make("ppid", 21);
        p.make("uid", 9);
        assert_eq!(p.end().code(), 0);
        assert_eq!(room.counts("b.trace", ["getppid", "getuid", "paused", "resumed"]), [21, 0, 1, 1]);
    });
}

#[test]
fn the_calls_of_a_running_session_can_be_changed() {
    each_backend(|user, backend| {
        let room = Room::new(user);
        let Some(mut p) = record(&room, backend, "c", &["-e", "getppid"]) else { return };
        p.make("ppid", 3);
        p.make("uid", 10);
        room.does(&["set", "c", "-e", "getuid", "-e", "openat"]);
        p.make("ppid", 10);
        p.make("uid", 7);
        for (set, code, why) in [
            ("getppidd", 2, "did you mean getppid"),
            ("%files", 2, "%file"),
            ("/(/", 2, "check the expression"),
            ("uprobe:/bin/sh:main", 2, "added or taken away"),
            ("begin", 2, "added or taken away"),
            ("", 2, "it names no probe"),
            ("none", 2, "nothing would be enabled"),
        ] {
            room.refuses(&["set", "c", "-e", set], code, why);
        }
        assert_eq!(room.status("c")["calls"], "getuid,openat");
        room.does(&["set", "c", "-e", "all"]);
        p.make("ppid", 20);
        room.does(&["set", "c", "-e", "!getuid,getppid"]);
        p.make("ppid", 10);
        p.make("uid", 10);
        assert_eq!(p.end().code(), 0);
        assert_eq!(room.counts("c.trace", ["getppid", "getuid"]), [3 + 20, 7], "{user:?} {backend}");
        let events = room.events("c.trace");
        assert!(events.iter().any(|e| e == "read") && events.iter().any(|e| e == "write"), "{events:?}");
    });
}

#[test]
fn status_counts_and_list_names() {
    each_backend(|user, backend| {
        let room = Room::new(user);
        // Root may see the sessions of others.
        let list = room.ask(&["list"]);
        assert!(!list.out().contains("d-1.x"), "{}", list.out());
        let Some(mut p) = record(&room, backend, "d-1.x", &["-e", "getppid,getuid"]) else { return };
        p.make("ppid", 12);
        p.make("uid", 30);
        let counter = |s: &Value, probe: &str, key: &str| s["probes"][probe][key].as_u64().unwrap_or(0);
        lab::until("its counters", || {
            let s = room.status("d-1.x");
            (counter(&s, "syscall:getppid", "recorded"), counter(&s, "syscall:getuid", "seen")) == (12, 30)
        });
        let s = room.status("d-1.x");
        for (key, value) in [("name", "d-1.x"), ("backend", backend), ("state", "running"), ("dir", "d-1.x.trace")] {
            assert_eq!(s[key], value, "{s}");
        }
        assert_eq!((s["pid"].as_u64(), s["events"].as_u64()), (Some(p.child.id().into()), Some(42)), "{s}");
        let streams = s["streams"].as_array().expect("streams");
        assert!(!streams.is_empty() && streams.iter().all(|r| r["size"].as_u64() > r["used"].as_u64()), "{s}");
        let text = room.does(&["status", "d-1.x"]);
        assert!(text.contains("syscall:getppid") && text.contains("running") && text.contains("STREAM"), "{text}");
        let list = room.does(&["list"]);
        let line = list.lines().nth(1).expect("a session");
        assert!(["d-1.x", "running", backend, "phases"].iter().all(|w| line.contains(w)), "{list}");
        room.refuses(&["status", "d-1.y"], 125, "did you mean d-1.x");
        let end = room.does(&["destroy", "d-1.x"]);
        assert_eq!(end, "42 events, 0 dropped\n");
        assert!(!room.socket("d-1.x").exists());
        // The command is let go; the recording has ended well.
        p.make("ppid", 5);
        let out = p.ends();
        assert_eq!((out.code(), out.stderr.contains("42 events")), (0, true), "{}", out.stderr);
        assert_eq!(room.counts("d-1.x.trace", ["getppid", "getuid"]), [12, 30]);
    });
}

/// `trapline record --name NAME -e CALLS TARGET`: of what runs already.
fn attach(room: &Room, backend: &str, name: &str, calls: &str, target: &[&str]) -> Running {
    let dir = format!("{name}.trace");
    let args = ["record", "--backend", backend, "--name", name, "-o", &dir, "-e", calls];
    let running = lab::start(room.trapline(&[&args, target].concat()).stderr(Stdio::piped()));
    lab::until("the session", || room.ask(&["status", name]).code() == 0);
    running
}

/// A room, and a target that waits to be told what to call.
fn phases() -> Option<(Room, Phases)> {
    let program = lab::program("phases")?;
    let mut p = Phases::start(&mut lab::as_user(User::Me, &[&program]));
    p.make("ppid", 1);
    Some((Room::new(User::Me), p))
}

#[test]
fn two_sessions_on_one_target_are_independent() {
    if !possible() {
        return;
    }
    let Some((room, mut p)) = phases() else { return };
    let pid = p.child.id().to_string();
    let one = attach(&room, "kernel", "one", "getppid", &["-p", &pid]);
    let two = attach(&room, "kernel", "two", "getuid", &["-p", &pid]);
    p.make("ppid", 4);
    p.make("uid", 8);
    room.does(&["stop", "one"]);
    p.make("ppid", 16);
    p.make("uid", 32);
    room.does(&["start", "one"]);
    room.does(&["set", "two", "-e", "getppid"]);
    p.make("ppid", 64);
    p.make("uid", 128);
    assert_eq!(room.does(&["destroy", "one"]), "68 events, 0 dropped\n");
    assert_eq!(one.end().code(), 0);
    p.make("ppid", 256);
    assert_eq!(room.does(&["destroy", "two"]), format!("{} events, 0 dropped\n", 8 + 32 + 64 + 256));
    assert_eq!(two.end().code(), 0);
    p.make("ppid", 1);
    assert_eq!(p.end().code(), 0);
    assert_eq!(room.counts("one.trace", ["getppid", "getuid"]), [68, 0]);
    assert_eq!(room.counts("two.trace", ["getppid", "getuid"]), [64 + 256, 40]);
}

#[test]
fn what_runs_already_runs_on_when_its_session_ends() {
    let scenario = |user: User, backend: &str| {
        let Some(program) = lab::program("phases") else { return };
        let room = Room::new(user);
        let mut p = Phases::start(&mut lab::as_user(user, &[&program]));
        p.make("ppid", 1);
        let pid = p.child.id().to_string();
        let running = attach(&room, backend, "m", "getppid,read", &["--paused", "-p", &pid]);
        p.make("ppid", 9);
        let started = Instant::now();
        room.does(&["start", "m"]);
        p.make("ppid", 8);
        room.does(&["stop", "m"]);
        // A call that was in flight for longer is announced.
        let calm = started.elapsed() < Duration::from_millis(200);
        p.make("ppid", 9);
        assert!(room.does(&["destroy", "m"]).ends_with(" 0 dropped\n"));
        assert_eq!(running.end().code(), 0);
        assert_eq!(lab::tracer_of(p.child.id()), 0);
        p.make("ppid", 1);
        assert_eq!(p.end().code(), 0);
        // The read that it was in at the start was found, and left, while nothing was recorded; so was the one at the
        // end.
        let [made, inflight, paused, resumed] = room.counts("m.trace", ["getppid", "inflight", "paused", "resumed"]);
        assert_eq!([made, paused, resumed], [8, 2, 1], "{user:?} {backend}");
        assert!(!calm || inflight == 0, "{user:?} {backend}: {inflight}");
    };
    each_attacher(|user| scenario(user, "ptrace"));
    if possible() {
        scenario(User::Me, "kernel");
    }
}

#[test]
fn the_whole_machine_can_be_a_session() {
    if !possible() {
        return;
    }
    let Some((room, mut p)) = phases() else { return };
    let running = attach(&room, "kernel", "w", "getppid", &["-a", "--paused"]);
    p.make("ppid", 9);
    room.does(&["start", "w"]);
    p.make("ppid", 40);
    p.make("uid", 9);
    room.does(&["set", "w", "-e", "getuid"]);
    p.make("uid", 3);
    room.does(&["stop", "w"]);
    p.make("uid", 9);
    room.does(&["destroy", "w"]);
    assert_eq!(running.end().code(), 0);
    let pid = p.child.id().to_string();
    assert_eq!(p.end().code(), 0);
    let out = lab::run(&mut room.trapline(&["report", "-q", "-p", &pid, "w.trace"])).out();
    let count = |call: &str| out.lines().filter(|l| l.contains(call)).count();
    assert_eq!((count("getppid("), count("getuid(")), (40, 3), "{out}");
}

#[test]
fn probes_stop_with_their_session() {
    if !possible() {
        return;
    }
    let room = Room::new(User::Me);
    let probe = "tracepoint:sched:sched_process_fork";
    let Some(mut p) = record(&room, "kernel", "p", &["-e", "getppid", "-e", probe]) else { return };
    p.make("fork", 3);
    room.does(&["stop", "p"]);
    p.make("fork", 20);
    room.does(&["start", "p"]);
    p.make("fork", 4);
    lab::until("its counters", || room.status("p")["probes"][probe]["seen"] == 7);
    room.does(&["stop", "p"]);
    assert_eq!(p.end().code(), 0);
    assert_eq!(room.counts("p.trace", [probe, "getppid", "paused", "resumed"]), [7, 7, 2, 1]);
}

#[test]
fn a_flight_recorder_is_asked_by_its_name() {
    each_backend(|user, backend| {
        let room = Room::new(user);
        let Some(mut p) = record(&room, backend, "j", &["--flight", "4M", "-e", "getppid"]) else { return };
        p.make("ppid", 25);
        let seen = || room.status("j")["probes"]["syscall:getppid"]["recorded"].as_u64();
        lab::until("its counters", || seen() == Some(25));
        let said = room.does(&["snapshot", "j"]);
        assert!(said.starts_with("j.trace/snapshot-1: ") && said.ends_with(" events\n"), "{said}");
        assert_eq!(room.counts("j.trace/snapshot-1", ["getppid"]), [25]);
        room.does(&["stop", "j"]);
        p.make("ppid", 50);
        room.does(&["start", "j"]);
        p.make("ppid", 5);
        lab::until("its counters", || seen() == Some(30));
        assert!(room.does(&["snapshot", "j"]).starts_with("j.trace/snapshot-2: "));
        assert_eq!(room.counts("j.trace/snapshot-2", ["getppid", "paused", "resumed"]), [30, 1, 1]);
        room.does(&["destroy", "j"]);
        assert_eq!(p.ends().code(), 0);
        let Some(p) = record(&room, backend, "k", &["-e", "getppid"]) else { return };
        room.refuses(&["snapshot", "k"], 125, "not a flight recorder");
        assert_eq!(p.end().code(), 0);
    });
}

#[test]
fn explain_says_what_a_name_costs() {
    each_backend(|user, backend| {
        let room = Room::new(user);
        let args = ["record", "--backend", backend, "--explain", "--name", "l", "-e", "getppid", "-o", "l", "true"];
        let out = lab::run(&mut room.trapline(&args));
        assert_eq!(out.code(), 0, "{}", out.stderr);
        assert!(out.stderr.contains("of a named session may change"), "{}", out.stderr);
    });
}

#[test]
fn a_name_changes_nothing_of_what_is_recorded() {
    let Some(program) = lab::program("vectors") else { return };
    each_backend(|user, backend| {
        let room = Room::new(user);
        let args =
            ["record", "--backend", backend, "--name", "x", "-e", "writev,getppid", "-o", "trace", "--", &program];
        let out = lab::run(&mut room.trapline(&args));
        assert_eq!(out.code(), 0, "{}", out.stderr);
        assert!(out.stderr.contains("1112 events, 0 dropped"), "{}", out.stderr);
        let found = room.events("trace");
        let count = |name: &str| found.iter().filter(|n| *n == name).count();
        assert_eq!((count("writev"), count("getppid")), (1000, 112));
    });
}

/// Recordings, heaps, tracers and slab traces are in one list, and one word ends each.
#[test]
fn everything_that_runs_is_in_one_list() {
    let Some(program) = injected::program() else { return };
    each_user(|user| {
        let run = injected::started(user, &[&program, "600", "1", "0"]);
        let (room, pid) = (Room::new(user), run.pid().to_string());
        let does = |args: &[&str]| {
            let out = lab::run(&mut room.trapline(args));
            assert_eq!((out.code(), out.stderr.as_str()), (0, ""), "{args:?}: {}", out.out());
            out.out()
        };
        does(&["tracer", "enable", "-p", &pid, "count"]);
        does(&["heap", "start", "-p", &pid]);
        let [count, heap] = ["count", "heap"].map(|what| format!("{what}-{pid}"));
        let state = |name: &str| {
            let all: Value = serde_json::from_str(&does(&["session", "list", "--json"])).expect("JSON");
            let all = all.as_array().expect("a list").clone();
            let it = all.iter().find(|s| s["name"] == name)?;
            Some((it["kind"].as_str()?.to_string(), it["state"].as_str()?.to_string()))
        };
        let is = |kind: &str, state: &str| Some((kind.to_string(), state.to_string()));
        assert_eq!((state(&count), state(&heap)), (is("tracer", "running"), is("heap", "running")));
        let listed = does(&["session", "list"]);
        let target = format!("-p {pid}");
        assert!(listed.lines().any(|l| l.starts_with(&count) && l.ends_with(&target)), "{listed}");
        assert!(does(&["session", "status", &count]).contains("running"));
        lab::until("functions are counted", || does(&["session", "print", &count]).contains("fib"));
        assert!(does(&["session", "print", &heap]).contains("outstanding"));
        does(&["session", "stop", &heap]);
        assert_eq!(state(&heap), is("heap", "stopped"));
        does(&["session", "reset", &heap]);
        room.refuses(&["stop", &count], 125, "it is a tracer, which has status, print and end");
        does(&["session", "end", &heap]);
        does(&["session", "end", &count]);
        assert_eq!((state(&count), state(&heap)), (None, None));
        room.refuses(&["end", &count], 125, "no such session");
        injected::is_right(run);
    });
}
