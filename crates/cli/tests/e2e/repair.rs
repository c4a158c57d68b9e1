//! `trapline repair`: what it cuts is in crash.rs and whole.rs; here is what it refuses.

use crate::lab::{self, User, contents, each_user};
use crate::record::{Recorded, record, repair};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Stdio;

fn recorded(user: User) -> Recorded {
    let r = record(user, &["--backend", "ptrace"], &["cat", "/etc/hostname"]);
    assert_eq!(r.outcome.code(), 0, "{}", r.outcome.stderr);
    r
}

/// Truncates the last packet of a stream.
fn truncate(file: &Path) {
    let file = fs::OpenOptions::new().write(true).open(file).expect("a stream");
    let size = file.metadata().expect("a stream").len();
    file.set_len(size - 3).expect("cut");
}

/// One error line, and nothing is changed.
#[track_caller]
fn refused(user: User, dir: &Path, words: &[&str]) {
    let before = contents(dir);
    let out = repair(user, dir);
    assert_eq!((out.code(), out.out().as_str(), out.stderr.lines().count()), (125, "", 1), "{}", out.stderr);
    assert!(words.iter().all(|w| out.stderr.contains(w)), "{words:?} {}", out.stderr);
    assert!(before == contents(dir), "something has changed");
}

#[test]
fn what_is_no_trace_of_ones_own_is_refused() {
    each_user(|user| {
        let r = recorded(user);
        truncate(&r.trace.join("tracer"));
        let link = r.dir.join("link");
        symlink(&r.trace, &link).expect("link");
        refused(user, &link, &["a symbolic link, which is not followed"]);
        refused(user, Path::new("/nonexistent"), &["No such file or directory"]);
        refused(user, Path::new("/etc/passwd"), &["Not a directory"]);
        let mine = |dir: &Path| {
            assert_eq!(lab::run(lab::as_user(user, &["mkdir", "own"]).current_dir(dir)).code(), 0);
            dir.join("own")
        };
        let empty = mine(&lab::scratch());
        refused(user, &empty, &["no metadata"]);
        let foreign = mine(&lab::scratch());
        let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../ctf/tests/corpus/small");
        for entry in fs::read_dir(corpus).expect("the corpus").flatten() {
            fs::copy(entry.path(), foreign.join(entry.file_name())).expect("copy");
        }
        refused(user, &foreign, &["not a trace of trapline"]);
        // A lock that leads elsewhere.
        fs::rename(r.trace.join(".trapline/lock"), r.dir.join("lock")).expect("move");
        symlink(r.dir.join("lock"), r.trace.join(".trapline/lock")).expect("link");
        refused(user, &r.trace, &[".trapline/lock: a symbolic link"]);
        let out = lab::run(&mut lab::trapline(user, &["repair"]));
        assert_eq!((out.code(), out.stderr.lines().count()), (2, 1), "{}", out.stderr);
    });
}

#[test]
fn the_traces_of_others_are_refused() {
    if !lab::is_root() || !lab::has("setpriv") {
        return lab::skip("root", "only root can hand a trace to somebody else");
    }
    for (owner, other) in [(User::Me, User::Nobody), (User::Nobody, User::Me)] {
        let r = recorded(owner);
        truncate(&r.trace.join("tracer"));
        assert_eq!(lab::run(lab::as_user(owner, &["chmod", "-R", "a+rwX", "trace"]).current_dir(&r.dir)).code(), 0);
        refused(other, &r.trace, &["it belongs to another user"]);
        assert_eq!(repair(owner, &r.trace).code(), 0);
    }
    // A single file of somebody else's.
    let r = recorded(User::Me);
    truncate(&r.trace.join("tracer"));
    assert_eq!(lab::run(lab::as_user(User::Me, &["chown", "nobody", "trace/tracer"]).current_dir(&r.dir)).code(), 0);
    refused(User::Me, &r.trace, &["tracer: it belongs to another user"]);
}

#[test]
fn only_files_of_the_trace_are_cut_and_never_through_a_link() {
    each_user(|user| {
        let (r, other) = (recorded(user), recorded(user));
        truncate(&other.trace.join("tracer"));
        truncate(&r.trace.join("tracer"));
        // A truncated stream of another trace, behind a link and as a file.
        symlink(other.trace.join("tracer"), r.trace.join("cpu_7")).expect("link");
        fs::copy(other.trace.join("tracer"), r.trace.join("cpu_8")).expect("copy");
        let (theirs, foreign) = (contents(&other.trace), fs::read(r.trace.join("cpu_8")).expect("a file"));
        let out = repair(user, &r.trace);
        assert_eq!((out.code(), out.out().lines().count()), (0, 1), "{} {}", out.out(), out.stderr);
        assert!(out.out().starts_with("tracer: removed "), "{}", out.out());
        assert!(theirs == contents(&other.trace) && foreign == fs::read(r.trace.join("cpu_8")).expect("a file"));
        assert_eq!(repair(user, &r.trace).out(), "nothing to repair: every stream ends with a whole packet\n");
    });
}

#[test]
fn a_recording_that_goes_on_is_refused() {
    each_user(|user| {
        let dir = lab::scratch();
        let args = [
            "record",
            "-q",
            "--backend",
            "ptrace",
            "-o",
            "trace",
            "sh",
            "-c",
            "while [ ! -e go ]; do sleep 0.02; done",
        ];
        let running = lab::start(lab::trapline(user, &args).current_dir(&dir).stderr(Stdio::piped()));
        lab::until("packets", || dir.join("trace/tracer").exists());
        let out = repair(user, &dir.join("trace"));
        assert_eq!((out.code(), out.stderr.lines().count()), (125, 1), "{}", out.stderr);
        assert!(out.stderr.contains("it is still being recorded"), "{}", out.stderr);
        fs::write(dir.join("go"), "").expect("go");
        assert_eq!(running.end().code(), 0);
        assert_eq!(repair(user, &dir.join("trace")).code(), 0);
    });
}
