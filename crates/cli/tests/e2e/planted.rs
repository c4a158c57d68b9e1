//! Directories of somebody else's, and links that somebody has planted: a recording neither follows them nor writes over what is
//! there, and `--force` removes nothing through them.

use crate::lab::{self, User, contents, each_user};
use crate::record::{calls, finished, number, record, text};
use std::fs;
use std::os::unix::fs::symlink;
use std::process::Stdio;

#[test]
fn a_directory_of_somebody_else_s_is_refused() {
    if !lab::is_root() || !lab::has("setpriv") {
        return lab::skip("root", "only root can be somebody else");
    }
    for (owner, other) in [(User::Nobody, User::Me), (User::Me, User::Nobody)] {
        for options in [&[][..], &["--flight", "1M"], &["--max-size", "1M"], &["--force"]] {
            let dir = lab::scratch();
            let made = lab::run(lab::as_user(owner, &["mkdir", "-m", "777", "trace"]).current_dir(&dir));
            assert_eq!(made.code(), 0);
            let args = [&["record", "-o", "trace"], options, &["echo", "ran"]].concat();
            let out = lab::run(lab::trapline(other, &args).current_dir(&dir));
            assert_eq!((out.code(), out.out().as_str(), out.stderr.lines().count()), (125, "", 1), "{}", out.stderr);
            assert!(out.stderr.contains("trace: it belongs to another user (choose"), "{}", out.stderr);
            assert_eq!(contents(&dir.join("trace")).len(), 0, "something was written there");
            let out = lab::run(lab::trapline(owner, &args).current_dir(&dir));
            assert_eq!((out.code(), out.out().as_str()), (0, "ran\n"), "{}", out.stderr);
        }
    }
}

#[test]
fn a_link_in_place_of_the_directory_is_refused() {
    each_user(|user| {
        for (option, target) in [("--max-size", "empty"), ("--flight", "empty"), ("--max-size", "nothing")] {
            let dir = lab::scratch();
            assert_eq!(lab::run(lab::as_user(user, &["mkdir", "empty"]).current_dir(&dir)).code(), 0);
            symlink(target, dir.join("trace")).expect("link");
            let args = ["record", option, "1M", "-o", "trace", "echo", "ran"];
            let out = lab::run(lab::trapline(user, &args).current_dir(&dir));
            assert_eq!((out.code(), out.out().as_str(), out.stderr.lines().count()), (125, "", 1), "{}", out.stderr);
            assert!(out.stderr.contains("symbolic link"), "{}", out.stderr);
            assert_eq!(contents(&dir.join("empty")).len(), 0, "something was written there");
        }
    });
}

#[test]
fn a_snapshot_is_not_written_through_a_planted_link() {
    each_user(|user| {
        let dir = lab::scratch();
        let outside = dir.join("outside");
        fs::create_dir(&outside).expect("a directory");
        let script = "touch ready; while [ ! -e go ]; do sleep 0.02; done; exit 3";
        let args =
            ["record", "--backend", "ptrace", "--flight", "1M", "-o", "trace", "--stats", "stats", "sh", "-c", script];
        let running = lab::start(lab::trapline(user, &args).current_dir(&dir).stderr(Stdio::piped()));
        lab::until("the command", || dir.join("ready").exists());
        symlink(&outside, dir.join("trace/snapshot-1")).expect("link");
        fs::write(dir.join("go"), "").expect("go");
        let r = finished(user, dir, running.end());
        assert_eq!(r.outcome.code(), 3, "{}", r.outcome.stderr);
        assert!(
            r.outcome.stderr.contains("trace/snapshot-1: File exists (no complete snapshot"),
            "{}",
            r.outcome.stderr
        );
        // What is in no snapshot is counted as dropped.
        assert_eq!(number(&r.stats, "events"), 0, "{}", r.stats);
        let seen: u64 = calls(&r.stats, "seen").values().sum();
        assert!(seen > 50 && number(&r.stats, "dropped") >= seen, "{}", r.stats);
        assert_eq!(calls(&r.stats, "seen"), calls(&r.stats, "dropped"));
        assert_eq!(contents(&outside).len(), 0, "something was written there");
    });
}

/// Whoever may rename the directory while it is written to does not lead the recording elsewhere.
#[test]
fn a_recording_stays_in_the_directory_that_it_has_made() {
    each_user(|user| {
        let dir = lab::scratch();
        let outside = dir.join("outside");
        assert_eq!(lab::run(lab::as_user(user, &["mkdir", "outside"]).current_dir(&dir)).code(), 0);
        // New parts are made, old ones removed, and the end is written after the move.
        let script = "touch ready; while [ ! -e go ]; do sleep 0.02; done; \
            dd if=/dev/zero of=/dev/null bs=1 count=9000 status=none";
        let args = [
            "record",
            "--backend",
            "ptrace",
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
        lab::until("the command", || dir.join("ready").exists());
        fs::rename(dir.join("trace"), dir.join("moved")).expect("move");
        symlink(&outside, dir.join("trace")).expect("link");
        fs::write(dir.join("go"), "").expect("go");
        let out = running.end();
        assert_eq!(out.code(), 0, "{}", out.stderr);
        assert_eq!(contents(&outside).len(), 0, "something was written there");
        assert!(dir.join("moved/.trapline/end").exists());
        let moved = lab::run(lab::trapline(user, &["report", "-c", "moved"]).current_dir(&dir));
        assert_eq!(moved.code(), 0, "{}", moved.stderr);
    });
}

#[test]
fn force_removes_nothing_through_a_link() {
    each_user(|user| {
        let outside = lab::scratch();
        fs::write(outside.join("mine"), "mine").expect("a file");
        for (name, target) in
            [("cpu_9", "mine"), (".trapline/end.new", "mine"), ("snapshot-1", ""), ("metadata", "mine")]
        {
            let r = record(user, &["--backend", "ptrace", "-e", "openat"], &["cat", "/etc/hostname"]);
            let link = r.trace.join(name);
            let _ = fs::remove_file(&link);
            symlink(outside.join(target), &link).expect("link");
            let before = contents(&r.trace);
            let args = ["record", "-q", "--force", "-o", "trace", "echo", "ran"];
            let out = lab::run(lab::trapline(user, &args).current_dir(&r.dir));
            assert_eq!((out.code(), out.out().as_str(), out.stderr.lines().count()), (125, "", 1), "{}", out.stderr);
            assert!(out.stderr.contains("--force trace: it is not a trace of trapline alone"), "{}", out.stderr);
            assert!(before == contents(&r.trace), "{name}: something was removed");
            assert_eq!(fs::read(outside.join("mine")).expect("a file"), b"mine");
        }
        // The directory itself.
        let r = record(user, &["--backend", "ptrace", "-e", "openat"], &["cat", "/etc/hostname"]);
        let before = text(user, &r.trace, &[]);
        symlink("trace", r.dir.join("link")).expect("link");
        let args = ["record", "-q", "--force", "-o", "link", "echo", "ran"];
        let out = lab::run(lab::trapline(user, &args).current_dir(&r.dir));
        assert_eq!((out.code(), out.out().as_str()), (125, ""), "{}", out.stderr);
        assert_eq!(text(user, &r.trace, &[]), before);
    });
}

/// A file that has the name of a stream and the head of a packet, but of another trace, is not the trace's.
#[test]
fn force_removes_what_is_certainly_of_the_trace_and_nothing_else() {
    each_user(|user| {
        let one = record(user, &["--backend", "ptrace"], &["true"]);
        let other = record(user, &["--backend", "ptrace"], &["true"]);
        let force = |dir: &std::path::Path| {
            let args = ["record", "-q", "--force", "-o", "trace", "echo", "ran"];
            lab::run(lab::trapline(user, &args).current_dir(dir))
        };
        fs::copy(other.trace.join("tracer"), one.trace.join("cpu_3")).expect("copy");
        let before = contents(&one.trace);
        let out = force(&one.dir);
        assert_eq!((out.code(), out.out().as_str()), (125, ""), "{}", out.stderr);
        assert!(out.stderr.contains("cpu_3 is in it"), "{}", out.stderr);
        assert!(before == contents(&one.trace), "something was removed");
        // One that was cut in the middle is.
        fs::OpenOptions::new().write(true).open(other.trace.join("tracer")).and_then(|f| f.set_len(50)).expect("cut");
        let out = force(&other.dir);
        assert_eq!((out.code(), out.out().as_str()), (0, "ran\n"), "{}", out.stderr);
    });
}
