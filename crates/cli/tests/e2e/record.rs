//! `trapline record -o DIR`: what is kept is what was shown, and all of it can be read.

use crate::babeltrace;
use crate::kernel::possible;
use crate::lab::{self, Outcome, User, each_attacher, each_ptracer, each_user};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// Runs a scenario with both backends: ptrace for each user, the kernel's as root.
pub fn each_backend(scenario: impl Fn(User, &str)) {
    each_user(|user| scenario(user, "ptrace"));
    if possible() {
        eprintln!("kernel backend");
        scenario(User::Me, "kernel");
    }
}

/// A recording that has ended.
pub struct Recorded {
    pub user: User,
    /// Where it ran: a directory of its own.
    pub dir: PathBuf,
    /// The trace.
    pub trace: PathBuf,
    pub outcome: Outcome,
    pub stats: Value,
}

/// A counter of `--stats`.
pub fn number(stats: &Value, name: &str) -> u64 {
    stats[name].as_u64().unwrap_or_else(|| panic!("{name}: {stats}"))
}

/// Events that were lost, with those that trapline keeps for itself: a trace has them all.
pub fn lost_in_all(stats: &Value) -> u64 {
    number(stats, "dropped") + number(stats, "bookkeeping_dropped")
}

/// The counters in the words of a report.
pub fn lost_in_words(stats: &Value) -> String {
    match (number(stats, "dropped"), number(stats, "bookkeeping_dropped")) {
        (n, 0) => format!("{n} events"),
        (0, own) => format!("{own} of trapline's own events"),
        (n, own) => format!("{n} events and {own} of trapline's own"),
    }
}

/// A counter of each system call, by name.
pub fn calls(stats: &Value, counter: &str) -> BTreeMap<String, u64> {
    let probes = stats["probes"].as_object().expect("probes");
    let calls = probes.iter().filter(|(n, _)| n.starts_with("syscall:"));
    calls.map(|(n, c)| (n.clone(), c[counter].as_u64().expect("a counter"))).collect()
}

/// The statistics in a file.
pub fn stats_of(path: &Path) -> Value {
    let text = fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    serde_json::from_str(&text).unwrap_or_else(|e| panic!("{e}: {text}"))
}

/// Records a command: `trapline record OPTIONS -o trace --stats stats -- COMMAND`.
pub fn record(user: User, options: &[&str], command: &[&str]) -> Recorded {
    let dir = lab::scratch();
    let args = [&["record", "-o", "trace", "--stats", "stats"], options, &["--"], command].concat();
    let outcome = lab::run(lab::trapline(user, &args).current_dir(&dir));
    finished(user, dir, outcome)
}

/// A recording into `trace` of `dir` that has ended.
#[track_caller]
pub fn finished(user: User, dir: PathBuf, outcome: Outcome) -> Recorded {
    assert!(dir.join("stats").exists(), "{}", outcome.stderr);
    let stats = stats_of(&dir.join("stats"));
    Recorded { user, trace: dir.join("trace"), dir, outcome, stats }
}

impl Recorded {
    /// Events in the trace, as counted.
    pub fn events(&self) -> u64 {
        number(&self.stats, "events") + number(&self.stats, "bookkeeping")
    }
    /// babeltrace2 reads as many, and the same.
    #[track_caller]
    pub fn check(&self) -> Vec<babeltrace::Event> {
        assert_eq!(number(&self.stats, "dropped"), 0, "{}", self.stats);
        babeltrace::check(self.user, &self.trace, self.events())
    }
    /// `trapline report OPTIONS trace`
    pub fn report(&self, options: &[&str]) -> Outcome {
        report(self.user, &self.trace, options)
    }
}

/// `trapline report OPTIONS TRACE`
pub fn report(user: User, trace: &Path, options: &[&str]) -> Outcome {
    let args = [&["report"], options, &[trace.to_str().expect("UTF-8")]].concat();
    lab::run(lab::trapline(user, &args).current_dir(trace.parent().expect("a parent")))
}

/// `trapline repair TRACE`
pub fn repair(user: User, trace: &Path) -> Outcome {
    lab::run(&mut lab::trapline(user, &["repair", trace.to_str().expect("UTF-8")]))
}

/// Text of a report that has nothing to complain of.
#[track_caller]
pub fn text(user: User, trace: &Path, options: &[&str]) -> String {
    let out = report(user, trace, options);
    assert_eq!((out.code(), out.stderr.as_str()), (0, ""), "{options:?}");
    String::from_utf8(out.stdout).expect("UTF-8")
}

const VIEWS: [&str; 3] = ["text", "json", "record"];

/// The options that make `--as VIEW=PREFIX.VIEW`, all three.
fn into_files(prefix: &str) -> Vec<String> {
    VIEWS.iter().flat_map(|v| ["--as".to_string(), format!("{v}={prefix}.{v}")]).collect()
}

/// What a recording showed is what a report of it shows, byte by byte.
#[track_caller]
fn same_views(r: &Recorded, options: &[&str]) {
    let files = into_files("later");
    let all: Vec<&str> = options.iter().copied().chain(files.iter().map(String::as_str)).collect();
    let out = r.report(&all);
    assert_eq!((out.code(), out.stderr.as_str()), (0, ""), "{options:?}");
    for view in VIEWS {
        let read = |when: &str| fs::read(r.dir.join(format!("{when}.{view}"))).expect("a view");
        let (live, later) = (read("live"), read("later"));
        assert!(!live.is_empty(), "{options:?}: {view} shows nothing");
        if live != later {
            let (live, later) = (String::from_utf8_lossy(&live), String::from_utf8_lossy(&later));
            let (n, different) =
                live.lines().zip(later.lines()).enumerate().find(|(_, (a, b))| a != b).unwrap_or((0, ("", "")));
            let (a, b) = (live.lines().count(), later.lines().count());
            panic!("{options:?}: {view}: {a} and {b} lines; line {n}:\nlive:  {}\nlater: {}", different.0, different.1);
        }
    }
}

/// How many events had to be given another time, so that the trace does not go back in time.
fn clamped(trace: &Path) -> u64 {
    let end = fs::read_to_string(trace.join(".trapline/end")).expect("the end");
    end.lines().find_map(|l| l.strip_prefix("clamped ")?.parse().ok()).unwrap_or_else(|| panic!("{end}"))
}

/// Records a command with all views, and compares them with those of a report with the same options.
#[track_caller]
fn identical(user: User, backend: &str, options: &[&str], command: &[&str]) -> Recorded {
    let files = into_files("live");
    let with: Vec<&str> = ["--backend", backend]
        .into_iter()
        .chain(options.iter().copied())
        .chain(files.iter().map(String::as_str))
        .collect();
    let r = record(user, &with, command);
    if backend == "ptrace" {
        assert_eq!(clamped(&r.trace), 0, "one tracer tells of one thing after the other");
    }
    same_views(&r, options);
    r.check();
    r
}

/// A program with pipes, children, signals, failures, descriptors, and calls that take long.
const BUSY: &str = "echo one two >file; cat <file | tr a-z A-Z | sort >/dev/null; ls / nonexistent >/dev/null 2>&1; \
    trap 'echo got it' USR1; kill -USR1 $$; (exit 3); sleep 0.3 & wait; rm -f file; exit 5";

// Slow: a command runs once for each option of trace, with both backends.
#[test]
fn all_options_show_the_same_later() {
    each_backend(|user, backend| {
        let all = [
            &[][..],
            &["-ttt", "-T"],
            &["-tt"],
            &["-t", "-n"],
            &["-r"],
            &["-y"],
            &["-yy"],
            &["-v", "-s", "100"],
            &["-X", "raw"],
            &["-X", "verbose", "--types"],
            &["-xx", "--decode-pids", "comm"],
            &["--sort", "start", "-T"],
            &["-P", "/dev/null"],
            &["-P", "file", "-y"],
            &["-z"],
            &["-Z"],
            &["-e", "openat,wait4,%process", "-e", "signal=none"],
            &["-y", "-e", "read,write"],
            &["-e", "raw=openat", "--columns", "80"],
            &["--color", "always"],
            &["-C"],
            &["-C", "-S", "calls", "-U", "calls,name"],
        ];
        // They sleep most of the time.
        std::thread::scope(|scope| {
            for some in all.chunks(all.len().div_ceil(4)) {
                scope.spawn(move || {
                    for options in some {
                        let r = identical(user, backend, options, &["sh", "-c", BUSY]);
                        assert_eq!(r.outcome.code(), 5, "{options:?} {}", r.outcome.stderr);
                    }
                });
            }
        });
    });
}

#[test]
fn tables_are_the_same_later() {
    each_backend(|user, backend| {
        for options in [&["-c"][..], &["-c", "-S", "name"], &["-c", "-e", "openat,read"]] {
            let r = identical(user, backend, options, &["sh", "-c", BUSY]);
            assert_eq!(r.outcome.code(), 5, "{}", r.outcome.stderr);
        }
    });
}

#[test]
fn programs_show_the_same_later() {
    let c = |name: &str| lab::program(name);
    let (Some(threads), Some(storm), Some(signals), Some(fds), Some(bad), Some(families)) =
        (c("threads"), c("forkstorm"), c("signals"), c("fds"), c("bad_pointers"), c("families"))
    else {
        return;
    };
    each_backend(|user, backend| {
        let own = lab::scratch();
        let own = own.to_str().expect("UTF-8");
        let python = "import os, json, threading\nt = [threading.Thread(target=os.getpid) for _ in range(4)]\n\
            [x.start() for x in t]; [x.join() for x in t]\nos.system('true')";
        for (options, command) in [
            (&["-ttt", "-T", "-y"][..], &[&threads[..], "200"][..]),
            (&["-s", "64"], &[&storm, "200"]),
            (&["-yy"], &[&signals]),
            (&["-yy", "-v"], &[&fds]),
            (&["-v"], &[&bad]),
            (&["-yy", "-v", "-s", "500"], &[&families, own]),
            (&["-y", "-n"], &["python3", "-c", python]),
            (&["-yy", "--sort", "start"], &["git", "--version"]),
            (&["--sort", "start", "-ttt"], &["sh", "-c", "sleep 0.5 | cat; sleep 0.3"]),
        ] {
            identical(user, backend, options, command);
        }
    });
}

#[test]
fn attached_processes_show_the_same_later() {
    each_attacher(|user| {
        let mut backends = vec!["ptrace"];
        if user == User::Me && possible() {
            backends.push("kernel");
        }
        for backend in backends {
            for options in [&["-y"][..], &["-ttt", "-T", "--sort", "start"]] {
                let script =
                    "echo >ready; while [ ! -e stop ]; do sleep 0.05; cat /etc/hostname >/dev/null; done; echo >ended";
                let dir = lab::scratch();
                let target = lab::start(lab::as_user(user, &["sh", "-c", script]).current_dir(&dir));
                lab::until("the target", || dir.join("ready").exists());
                let (pid, files) = (target.pid().to_string(), into_files("live"));
                let mut args = vec!["record", "-o", "trace", "--stats", "stats", "--backend", backend, "-p", &pid];
                args.extend(options);
                args.extend(files.iter().map(String::as_str));
                let mut c = lab::trapline(user, &args);
                let front = lab::start(c.current_dir(&dir).stderr(Stdio::piped()));
                let shown = dir.join("live.text");
                let calls = || fs::read_to_string(&shown).unwrap_or_default().matches("/etc/hostname").count();
                lab::until("calls", || calls() >= 5);
                lab::kill("INT", front.pid().into());
                let r = finished(user, dir.clone(), front.end());
                assert_eq!(r.outcome.code(), 0, "{}", r.outcome.stderr);
                fs::write(dir.join("stop"), "").expect("stop");
                assert_eq!(target.end().code(), 0);
                same_views(&r, options);
                r.check();
            }
        }
    });
}

#[test]
fn without_a_directory_nothing_is_kept() {
    each_user(|user| {
        let dir = lab::scratch();
        let args = ["record", "-q", "-e", "openat", "--", "cat", "/etc/hostname"];
        let out = lab::run(lab::trapline(user, &args).current_dir(&dir));
        assert_eq!((out.code(), out.stderr.as_str()), (0, ""));
        assert!(out.out().contains("openat(AT_FDCWD, \"/etc/hostname\""), "{}", out.out());
        assert_eq!(fs::read_dir(&dir).expect("directory").count(), 0);
        for option in ["--max-size", "--flight"] {
            let out = lab::run(&mut lab::trapline(user, &["record", option, "1M", "echo", "ran"]));
            assert_eq!((out.code(), out.out().as_str(), out.stderr.lines().count()), (2, "", 1), "{}", out.stderr);
            assert!(out.stderr.contains(option) && out.stderr.contains("-o DIR"), "{}", out.stderr);
        }
    });
}

#[test]
fn exit_statuses_are_those_of_the_command() {
    each_backend(|user, backend| {
        for (script, code) in [("exit 0", 0), ("exit 77", 77), ("kill -TERM $$", 143), ("kill -KILL $$", 137)] {
            let r = record(user, &["--backend", backend], &["sh", "-c", script]);
            assert_eq!(r.outcome.code(), code, "{script}: {}", r.outcome.stderr);
            r.check();
        }
        for (command, code, word) in
            [("no-such-command-here", 127, "not found"), ("/etc/passwd", 126, "permission denied")]
        {
            let dir = lab::scratch();
            let args = ["record", "--backend", backend, "-o", "trace", command];
            let out = lab::run(lab::trapline(user, &args).current_dir(&dir));
            assert_eq!((out.code(), out.stderr.lines().count()), (code, 1), "{}", out.stderr);
            assert!(out.stderr.contains(word), "{}", out.stderr);
        }
    });
}

#[test]
fn only_the_owner_can_read_a_trace() {
    each_backend(|user, backend| {
        let dir = lab::scratch();
        let run =
            format!("umask 0; exec {} record --backend {backend} -o trace true", lab::dir().join("trapline").display());
        assert_eq!(lab::run(lab::as_user(user, &["sh", "-c", &run]).current_dir(&dir)).code(), 0);
        let mut look = vec![dir.join("trace")];
        let mut seen = 0;
        while let Some(path) = look.pop() {
            let meta = fs::symlink_metadata(&path).expect("metadata");
            let wanted = if meta.is_dir() { 0o700 } else { 0o600 };
            assert_eq!(meta.permissions().mode() & 0o7777, wanted, "{}", path.display());
            seen += 1;
            if meta.is_dir() {
                look.extend(fs::read_dir(&path).expect("directory").map(|e| e.expect("entry").path()));
            }
        }
        assert!(seen >= 6, "{seen} files and directories");
    });
}

#[test]
fn a_directory_that_is_not_empty_is_refused_and_force_replaces_only_traces() {
    each_ptracer(|user| {
        let r = record(user, &["-e", "openat"], &["cat", "/etc/hostname"]);
        assert_eq!(r.outcome.code(), 0);
        let again = |options: &[&str]| {
            let args = [
                &["record", "-q", "-o", "trace"],
                options,
                &["--", "sh", "-c", "echo ran; cat /etc/passwd >/dev/null"],
            ];
            lab::run(lab::trapline(user, &args.concat()).current_dir(&r.dir))
        };
        let refused = |options: &[&str], words: &[&str]| {
            let out = again(options);
            assert_eq!((out.code(), out.out().as_str(), out.stderr.lines().count()), (125, "", 1), "{}", out.stderr);
            assert!(words.iter().all(|w| out.stderr.contains(w)), "{}", out.stderr);
        };
        refused(&[], &["trace", "not empty", "--force"]);
        let before = text(user, &r.trace, &[]);
        assert!(before.contains("/etc/hostname"));
        for foreign in ["notes.txt", ".trapline/mine", "cpu_0"] {
            let path = r.trace.join(foreign);
            fs::write(&path, "not yours").expect("a file");
            refused(&["--force"], &["--force", "trace"]);
            assert_eq!(fs::read(&path).expect("still there"), b"not yours");
            fs::remove_file(&path).expect("remove");
            assert_eq!(text(user, &r.trace, &[]), before, "{foreign}");
        }
        fs::create_dir(r.trace.join("sub")).expect("a directory");
        refused(&["--force"], &["--force"]);
        fs::remove_dir(r.trace.join("sub")).expect("remove");
        let out = again(&["--force"]);
        assert_eq!((out.code(), out.out().as_str(), out.stderr.as_str()), (0, "ran\n", ""));
        let after = text(user, &r.trace, &[]);
        assert!(after.contains("/etc/passwd") && !after.contains("/etc/hostname"), "{after}");
        // Where there is nothing, nothing is replaced; a directory of somebody else's is none.
        let home = lab::scratch();
        fs::write(home.join("file"), "mine").expect("a file");
        let args = ["record", "--force", "-o", home.to_str().expect("UTF-8"), "echo", "ran"];
        let out = lab::run(&mut lab::trapline(user, &args));
        assert_eq!((out.code(), out.out().as_str()), (125, ""), "{}", out.stderr);
        assert_eq!(fs::read(home.join("file")).expect("still there"), b"mine");
    });
}

#[test]
fn drops_of_a_full_ring_are_in_the_trace() {
    if !possible() {
        return;
    }
    const N: u64 = 30_000;
    let count = format!("count={N}");
    let dd = ["dd", "if=/dev/zero", "of=/dev/null", "bs=1", &count, "status=none"];
    let all = |options: &[&str]| record(User::Me, &[&["--backend", "kernel", "-e", "all"], options].concat(), &dd);
    // A call that takes long, which depends on the moment, makes an event more.
    let mut attempts = (0..3).map(|_| {
        let (roomy, r) = (all(&[]), all(&["--buffer", "4096"]));
        assert_eq!(roomy.outcome.code(), 0, "{}", roomy.outcome.stderr);
        roomy.check();
        let made = roomy.events();
        assert!(made > 2 * N, "{made}");
        let dropped = lost_in_all(&r.stats);
        assert!(dropped > 0, "nothing was dropped, the test shows nothing");
        (r.events() + dropped == made).then_some(r)
    });
    let r = attempts.find_map(|a| a).expect("events and drops that are as many as were made");
    babeltrace::check_with_drops(User::Me, &r.trace, r.events());
    let out = r.report(&[]);
    assert_eq!(out.code(), 0, "{}", out.stderr);
    assert!(out.stderr.contains(&format!("{} were dropped", lost_in_words(&r.stats))), "{}", out.stderr);
    assert_eq!(out.stderr.lines().count(), 1, "{}", out.stderr);
    // Which calls they were is known too.
    let stats: Value = serde_json::from_str(&r.report(&["-q", "--as", "stats-json"]).out()).expect("JSON");
    let of_calls = calls(&r.stats, "dropped");
    for (name, n) in &of_calls {
        let probe = stats["probes"].as_array().expect("probes").iter().find(|p| p["name"] == name.as_str());
        assert_eq!(probe.and_then(|p| p["dropped"].as_u64()).unwrap_or(0), *n, "{name} {stats}");
    }
    assert!(of_calls["syscall:read"] > 0 && of_calls["syscall:write"] > 0, "{}", r.stats);
}
