//! Traces of which only the newest part is kept: `--max-size`, `--flight`.

use crate::babeltrace;
use crate::lab::{self, Running, User, each_ptracer, each_user};
use crate::record::{Recorded, calls, each_backend, finished, number, record, report, text};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

const DD: [&str; 6] = ["dd", "if=/dev/zero", "of=/dev/null", "bs=1", "count=20000", "status=none"];

/// Bytes of the streams of a trace. Files that go meanwhile are counted with those that come: then it is done again.
fn bytes_in(trace: &Path) -> u64 {
    let once = || {
        let files = fs::read_dir(trace).into_iter().flatten().flatten();
        let streams = files.filter(|e| e.file_name() != "metadata" && e.file_name() != ".trapline");
        streams.filter_map(|e| e.metadata().ok()).map(|m| m.len()).sum()
    };
    (0..5).map(|_| once()).min().unwrap_or(0)
}

/// Bytes of everything in a directory. Files that go meanwhile are counted with those that come: then it is done again.
fn all_bytes_in(trace: &Path) -> u64 {
    fn once(dir: &Path) -> u64 {
        let entries = fs::read_dir(dir).into_iter().flatten().flatten();
        let size = |e: fs::DirEntry| match e.metadata() {
            Ok(m) if m.is_dir() => once(&e.path()),
            Ok(m) => m.len(),
            Err(_) => 0,
        };
        entries.map(size).sum()
    }
    (0..5).map(|_| once(trace)).min().unwrap_or(0)
}

#[test]
fn a_limit_is_never_exceeded_and_the_oldest_go() {
    each_backend(|user, backend| {
        let roomy = record(user, &["--backend", backend], &DD);
        assert_eq!(number(&roomy.stats, "dropped"), 0, "{}", roomy.stats);
        for (size, max) in [("1M", 1u64 << 20), ("320K", 320 << 10)] {
            let dir = lab::scratch();
            let limit = ["record", "--backend", backend, "--max-size", size, "-o", "trace", "--stats", "stats"];
            let args = [&limit[..], &["--as", "text=live"], &DD].concat();
            let mut running = lab::start(lab::trapline(user, &args).current_dir(&dir).stderr(Stdio::piped()));
            let mut looks = 0;
            while running.child.try_wait().expect("wait").is_none() {
                let now = all_bytes_in(&dir.join("trace"));
                assert!(now <= max, "{now} bytes");
                looks += u32::from(now > max / 2);
            }
            let r = finished(user, dir, running.end());
            assert_eq!(r.outcome.code(), 0, "{}", r.outcome.stderr);
            let left = all_bytes_in(&r.trace);
            assert!(left <= max && left > max / 2, "{left} bytes left of {max}, {looks} looks");
            assert!(bytes_in(&r.trace) > 20_000, "there is room for events");
            // Where the newest were written, the older ones are counted.
            let overwritten = number(&r.stats, "overwritten");
            assert!(overwritten > 0, "nothing had to go, the test shows nothing");
            assert_eq!(number(&r.stats, "dropped"), 0, "{}", r.stats);
            assert_eq!(calls(&r.stats, "seen"), calls(&roomy.stats, "seen"));
            assert!(r.outcome.stderr.contains(&format!("{overwritten} overwritten")), "{}", r.outcome.stderr);
            let events = babeltrace::check_all(user, &r.trace);
            assert_eq!(events + overwritten, r.events(), "{}", r.stats);
            let later = r.report(&[]);
            assert_eq!(later.code(), 0);
            assert!(later.stderr.contains(&format!("{overwritten} older events")), "{}", later.stderr);
            let live = fs::read_to_string(r.dir.join("live")).expect("the live view");
            let (later, live) = (later.out(), live);
            assert!(later.lines().count() > 200);
            if backend == "ptrace" {
                assert!(live.ends_with(&later), "what is left is not the newest");
            } else {
                assert_eq!(live.lines().last(), later.lines().last());
            }
        }
    });
}

#[test]
fn limits_that_make_no_sense_are_one_line() {
    each_user(|user| {
        for (options, word) in [
            (&["--max-size", "1"][..], "at least 320K"),
            (&["--max-size", "100000"], "at least 320K"),
            (&["--flight", "0"], "--flight"),
            (&["--flight", "1"], "at least 64K"),
            (&["--max-size", "much"], "--max-size"),
            (&["--flight", "1M", "--max-size", "1M"], "--flight"),
        ] {
            let dir = lab::scratch();
            let args = [&["record", "-o", "trace"], options, &["echo", "ran"]].concat();
            let out = lab::run(lab::trapline(user, &args).current_dir(&dir));
            assert_eq!(
                (out.code(), out.out().as_str(), out.stderr.lines().count()),
                (2, "", 1),
                "{options:?} {}",
                out.stderr
            );
            assert!(out.stderr.contains(word), "{}", out.stderr);
            assert!(!dir.join("trace").exists());
        }
        // What is there is not replaced for nothing.
        let r = record(user, &["-e", "openat"], &["cat", "/etc/hostname"]);
        let before = lab::contents(&r.trace);
        let args = ["record", "--force", "-o", "trace", "--max-size", "1K", "echo", "ran"];
        let out = lab::run(lab::trapline(user, &args).current_dir(&r.dir));
        assert_eq!((out.code(), out.out().as_str()), (2, ""), "{}", out.stderr);
        assert!(before == lab::contents(&r.trace), "the old trace is gone");
    });
}

/// A limited recording removes parts while somebody reads: that is no damage, and no loss but of what is overwritten.
#[test]
fn a_limited_recording_can_be_reported_while_it_goes_on() {
    each_backend(|user, backend| {
        let dir = lab::scratch();
        let script = "while [ ! -e go ]; do dd if=/dev/zero of=/dev/null bs=1 count=500 status=none; done";
        let args = [
            "record",
            "--backend",
            backend,
            "--max-size",
            "512K",
            "-o",
            "trace",
            "--stats",
            "stats",
            "sh",
            "-c",
            script,
        ];
        let running = lab::start(lab::trapline(user, &args).current_dir(&dir).stderr(Stdio::piped()));
        let trace = dir.join("trace");
        let first = trace.join(if backend == "ptrace" { "tracer.0" } else { "cpu_0.0" });
        lab::until("parts that have gone", || !first.exists() && bytes_in(&trace) > 200_000);
        for round in 0..20 {
            let options: &[&str] = [&["-c"][..], &["--as", "stats"], &["--as", "json"], &[]][round % 4];
            let out = report(user, &trace, options);
            // A busy machine may drop some, which is said too.
            let said = out.stderr.lines().filter(|l| !l.contains("events were dropped"));
            let said: Vec<&str> = said.filter(|l| !l.contains("the recording is still running")).collect();
            assert_eq!((out.code(), said), (0, vec![]), "{}", out.stderr);
            assert!(out.stderr.contains("the recording is still running"), "{}", out.stderr);
            assert_eq!(
                options.len() == 2 && options[1] == "stats",
                out.out().contains("not yet: the recording is still running")
            );
        }
        fs::write(dir.join("go"), "").expect("go");
        let r = finished(user, dir, running.end());
        assert_eq!(r.outcome.code(), 0, "{}", r.outcome.stderr);
        assert_eq!(r.report(&["-c"]).code(), 0);
    });
}

/// Events of enabled probes: without what trapline says of processes.
fn enabled(user: User, trace: &Path) -> u64 {
    let own =
        ["process:exec", "fork", "exec", "exit", "signal", "stop", "superseded", "attach", "fd", "map", "inflight"];
    let json = babeltrace::json(user, trace);
    json.iter().filter(|e| e["type"].as_str().is_none_or(|t| !own.contains(&t))).count() as u64
}

/// The number of events that a line says of a snapshot.
fn said_of(stderr: &str, snapshot: &str) -> Option<u64> {
    let line = stderr.lines().find(|l| l.contains(&format!("{snapshot}: ")))?;
    line.rsplit_once(": ")?.1.strip_suffix(" events")?.parse().ok()
}

#[test]
fn a_flight_recorder_writes_the_newest_at_the_end() {
    each_backend(|user, backend| {
        let r = record(user, &["--backend", backend, "--flight", "256K", "--as", "text=live"], &DD);
        assert_eq!(r.outcome.code(), 0, "{}", r.outcome.stderr);
        let snapshot = r.trace.join("snapshot-1");
        let bytes: u64 = bytes_in(&snapshot);
        assert!(bytes <= 256 << 10 && bytes > 128 << 10, "{bytes}");
        let events = babeltrace::check_all(user, &snapshot);
        assert_eq!(said_of(&r.outcome.stderr, "snapshot-1"), Some(enabled(user, &snapshot)), "{}", r.outcome.stderr);
        let stats: Value = serde_json::from_str(&text(user, &snapshot, &["-q", "--as", "stats-json"])).expect("JSON");
        assert_eq!(number(&stats, "events"), enabled(user, &snapshot));
        assert_eq!(number(&stats, "events") + number(&stats, "bookkeeping"), events);
        let overwritten = number(&r.stats, "overwritten");
        assert!(overwritten > 0, "nothing had to go, the test shows nothing");
        assert_eq!((events + overwritten, number(&r.stats, "dropped")), (r.events(), 0), "{}", r.stats);
        // The one snapshot is what the directory stands for.
        let out = r.report(&[]);
        assert_eq!((out.code(), out.out()), (0, report(user, &snapshot, &[]).out()));
        assert!(out.stderr.contains(&format!("{overwritten} older events")), "{}", out.stderr);
        let live = fs::read_to_string(r.dir.join("live")).expect("the live view");
        assert!(out.out().lines().last().is_some_and(|l| Some(l) == live.lines().last()));
        assert!(backend == "kernel" || live.ends_with(&out.out()));
    });
}

struct Flying {
    user: User,
    dir: PathBuf,
    running: Running,
}

/// A command that opens `/etc/STEP` for each step that is asked for by a file of that name, and ends when asked to.
fn flying(user: User, options: &[&str]) -> Flying {
    let dir = lab::scratch();
    let script = "touch ready; while [ ! -e end ]; do for s in one two three; do if [ -e $s ]; then rm $s; cat /etc/no-$s 2>/dev/null; \
        touch did-$s; fi; done; sleep 0.02; done; exit 4";
    let args = [&["record", "-o", "trace", "--stats", "stats"], options, &["sh", "-c", script]].concat();
    let running = lab::start(lab::trapline(user, &args).current_dir(&dir).stderr(Stdio::piped()));
    lab::until("the command", || dir.join("ready").exists());
    Flying { user, dir, running }
}

impl Flying {
    fn step(&self, name: &str) {
        fs::write(self.dir.join(name), "").expect("a step");
        let did = self.dir.join(format!("did-{name}"));
        lab::until(name, || did.exists());
    }
    fn snapshot(&self, n: u32) -> PathBuf {
        let path = self.dir.join(format!("trace/snapshot-{n}"));
        lab::until("a snapshot", || path.join(".trapline/end").exists());
        path
    }
    fn end(self) -> Recorded {
        fs::write(self.dir.join("end"), "").expect("the end");
        finished(self.user, self.dir.clone(), self.running.end())
    }
}

#[test]
fn snapshots_can_be_asked_for() {
    each_backend(|user, backend| {
        let f = flying(user, &["--backend", backend, "--flight", "8M"]);
        f.step("one");
        lab::kill("USR2", f.running.pid().into());
        let first = f.snapshot(1);
        f.step("two");
        lab::kill("USR2", f.running.pid().into());
        let second = f.snapshot(2);
        f.step("three");
        let r = f.end();
        let third = r.trace.join("snapshot-3");
        assert_eq!(r.outcome.code(), 4, "{}", r.outcome.stderr);
        let mut before = String::new();
        for (n, snapshot) in [&first, &second, &third].into_iter().enumerate() {
            let shown = text(user, snapshot, &["-e", "openat"]);
            for (step, name) in ["one", "two", "three"].into_iter().enumerate() {
                assert_eq!(shown.contains(&format!("\"/etc/no-{name}\"")), step <= n, "snapshot {n}, {name}");
            }
            let events = babeltrace::check_all(user, snapshot);
            assert_eq!(
                said_of(&r.outcome.stderr, &format!("snapshot-{}", n + 1)),
                Some(enabled(user, snapshot)),
                "{}",
                r.outcome.stderr
            );
            assert!(enabled(user, snapshot) < events);
            assert!(shown.len() > before.len() && (backend == "kernel" || shown.starts_with(&before)));
            before = shown;
        }
        assert_eq!(babeltrace::json(user, &third).len() as u64, r.events());
        let out = r.report(&[]);
        assert_eq!((out.code(), out.stderr.lines().count()), (125, 1), "{}", out.stderr);
        assert!(out.stderr.contains("3 snapshots") && out.stderr.contains("snapshot-1"), "{}", out.stderr);
        // All of them are one trace to replace.
        let args = ["record", "-q", "--force", "-o", "trace", "true"];
        let out = lab::run(lab::trapline(user, &args).current_dir(&r.dir));
        assert_eq!((out.code(), out.stderr.as_str()), (0, ""));
        assert!(!third.exists() && text(user, &r.trace, &[]).contains("execve("));
    });
}

/// A limit of file sizes is the command's: trapline has less room then, and ends neither itself nor the command by SIGXFSZ.
#[test]
fn a_limit_of_file_sizes_ends_nobody() {
    const SCRIPT: &str = "grep SigIgn /proc/self/status; ls /usr; echo fine";
    if !lab::has("prlimit") {
        return;
    }
    each_ptracer(|user| {
        let alone = lab::run(&mut lab::as_user(user, &["sh", "-c", SCRIPT])).out();
        let (scratch, exe) = (lab::scratch(), lab::dir().join("trapline").display().to_string());
        let out = scratch.join("out").display().to_string();
        for words in
            [&["trace", "--backend", "ptrace", "-f"][..], &["record", "--backend", "ptrace"], &["graph"], &["heap"]]
        {
            // 20 MB is less than the memory in which a process records its calls, 1 MB less than the buffer of events.
            for limit in ["--fsize=1000000", "--fsize=20000000"] {
                let argv = [&["prlimit", limit, &exe], words, &["-o", &out, "--", "sh", "-c", SCRIPT]].concat();
                let traced = lab::run(&mut lab::as_user(user, &argv));
                let is_refused =
                    traced.code() == 125 && traced.stderr.contains("(raise the limit: ulimit -f unlimited)");
                assert!(
                    is_refused && traced.out().is_empty() || traced.code() == 0 && traced.out() == alone,
                    "{argv:?}: {}",
                    traced.stderr
                );
                let _ = fs::remove_dir_all(&out).or_else(|_| fs::remove_file(&out));
            }
        }
    });
}
