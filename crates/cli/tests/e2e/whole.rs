//! A report changes nothing, follows nothing and waits for nothing; and it says what is missing of a trace, every time.

use crate::babeltrace;
use crate::lab::{self, Outcome, User, contents, each_user};
use crate::record::{Recorded, each_backend, number, record, repair, report, text};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

const SCRIPT: &str =
    "cat /etc/hostname >/dev/null; ls / >/dev/null; dd if=/dev/zero of=/dev/null bs=1 count=5000 status=none";

fn recorded(user: User, backend: &str) -> Recorded {
    let r = record(user, &["--backend", backend], &["sh", "-c", SCRIPT]);
    assert_eq!(r.outcome.code(), 0, "{}", r.outcome.stderr);
    r
}

/// The files of streams, the largest first.
fn streams(trace: &Path) -> Vec<PathBuf> {
    let files = fs::read_dir(trace).expect("the trace").flatten().filter(|e| e.file_type().is_ok_and(|t| t.is_file()));
    let mut all: Vec<PathBuf> = files.map(|e| e.path()).filter(|p| !p.ends_with("metadata")).collect();
    all.sort_by_key(|p| std::cmp::Reverse(fs::metadata(p).expect("a stream").len()));
    all
}

fn stats(user: User, trace: &Path) -> (Outcome, Value) {
    let out = report(user, trace, &["-q", "--as", "stats-json"]);
    let value = serde_json::from_str(&out.out()).unwrap_or_else(|e| panic!("{e}: {}", out.stderr));
    (out, value)
}

/// Reports a trace of which something is missing: every report says so in equal words, and none changes anything.
#[track_caller]
fn incomplete(r: &Recorded, words: &[&str]) -> Outcome {
    let before = contents(&r.trace);
    let first = r.report(&[]);
    for _ in 0..2 {
        let out = r.report(&[]);
        assert_eq!(out.code(), 125, "{}", out.stderr);
        assert!(words.iter().all(|w| out.stderr.contains(w)), "{words:?}: {}", out.stderr);
        assert!((&out.stderr, &out.stdout) == (&first.stderr, &first.stdout), "{}", out.stderr);
    }
    let (out, value) = stats(r.user, &r.trace);
    assert_eq!((out.code(), &value["complete"]), (125, &Value::Bool(false)), "{value}");
    let table = r.report(&["--as", "stats"]);
    assert!(table.code() == 125 && !table.out().contains("complete\n"), "{}", table.out());
    assert!(before == contents(&r.trace), "a report has changed the trace");
    first
}

#[test]
fn whatever_is_in_the_directory_is_left_alone() {
    each_backend(|user, backend| {
        let r = recorded(user, backend);
        let all = text(user, &r.trace, &[]);
        let outside = r.dir.join("outside");
        fs::write(&outside, "a file that is somewhere else and shorter than a packet").expect("a file");
        // What earlier versions took for truncated streams, and emptied.
        fs::write(r.trace.join("notes.txt"), "thirty-five bytes that are nobody's.").expect("a note");
        fs::write(r.trace.join("zeros"), [0; 500]).expect("zeros");
        symlink(&outside, r.trace.join("a_link")).expect("a link");
        symlink("/dev/zero", r.trace.join("cpu_77")).expect("a link");
        fs::create_dir(r.trace.join("a_directory")).expect("a directory");
        fs::write(r.trace.join("empty"), "").expect("an empty file");
        fs::write(r.trace.join(".hidden"), "hidden").expect("a hidden file");
        let _socket = UnixListener::bind(r.trace.join("socket")).expect("a socket");
        assert!(lab::run(lab::as_user(user, &["mkfifo", "fifo"]).current_dir(&r.trace)).code() == 0);
        let before = (contents(&r.trace), fs::read(&outside).expect("the file"));
        for options in [&[][..], &["--as", "stats"], &["-y"], &["--as", "json"], &["-c"]] {
            let out = r.report(options);
            assert_eq!((out.code(), out.stderr.lines().count()), (0, 1), "{options:?} {}", out.stderr);
            assert!(
                out.stderr.contains("ignored, because they are not part of this trace: a_directory"),
                "{}",
                out.stderr
            );
            assert!(out.stderr.contains("a_link (a symbolic link, which is not followed)"), "{}", out.stderr);
            assert!(!options.is_empty() || out.out() == all, "other events than without them");
        }
        assert_eq!(r.report(&["-q"]).stderr, "");
        assert_eq!(repair(user, &r.trace).out(), "nothing to repair: every stream ends with a whole packet\n");
        assert!(before == (contents(&r.trace), fs::read(&outside).expect("the file")), "something has changed");
    });
}

#[test]
fn links_in_place_of_what_is_trapline_s_own_are_not_followed() {
    each_user(|user| {
        // Each of them, moved away and linked to.
        let linked = |name: &str| {
            let r = recorded(user, "ptrace");
            let elsewhere = r.dir.join("elsewhere");
            fs::rename(r.trace.join(name), &elsewhere).expect("move");
            symlink(&elsewhere, r.trace.join(name)).expect("link");
            r
        };
        let r = linked("tracer");
        incomplete(&r, &["tracer (a symbolic link", "missing: ", " of tracer with "]);
        let r = linked(".trapline");
        incomplete(&r, &["the end is missing"]);
        let r = linked(".trapline/end");
        incomplete(&r, &["the end is missing"]);
        let r = linked("metadata");
        let out = r.report(&[]);
        assert_eq!((out.code(), out.out().as_str(), out.stderr.lines().count()), (125, "", 1), "{}", out.stderr);
        assert!(out.stderr.contains("metadata: a symbolic link, which is not followed"), "{}", out.stderr);
        // One that the user names is.
        let r = recorded(user, "ptrace");
        let link = r.dir.join("link");
        symlink(&r.trace, &link).expect("link");
        assert_eq!(text(user, &link, &[]), text(user, &r.trace, &[]));
    });
}

// Slow: every stream is cut in three ways, and read by all views after each, with both backends.
#[test]
fn what_is_missing_is_said_every_time() {
    each_backend(|user, backend| {
        let r = recorded(user, backend);
        let (whole, (_, value)) = (contents(&r.trace), stats(user, &r.trace));
        let events = number(&value, "events") + number(&value, "bookkeeping");
        assert_eq!((&value["complete"], events), (&Value::Bool(true), r.events()));
        let lines = text(user, &r.trace, &[]).lines().count();
        for stream in streams(&r.trace) {
            let name = stream.file_name().expect("a name").to_string_lossy().into_owned();
            // A whole file; all but its first packet; a half of it, as of a copy that was interrupted.
            let bytes = &whole[&stream];
            for left in [None, Some(176), Some(bytes.len() / 2), Some(10)] {
                let aside = r.dir.join("aside");
                match left {
                    None => fs::rename(&stream, &aside).expect("move"),
                    Some(n) => fs::write(&stream, &bytes[..n]).expect("cut"),
                }
                let out = incomplete(&r, &["missing: ", &format!(" of {name} with ")]);
                assert!(out.out().lines().count() <= lines);
                let (_, value) = stats(user, &r.trace);
                let there = number(&value, "events") + number(&value, "bookkeeping");
                assert_eq!(there + number(&value, "missing_events"), events, "{name} {left:?} {value}");
                assert_eq!(value["missing"][0]["stream"].as_str(), Some(name.as_str()), "{value}");
                // Nor does a repair make it whole.
                if left.is_some_and(|n| n != 10) {
                    assert_eq!(repair(user, &r.trace).code(), 0);
                    incomplete(&r, &["missing: ", &format!(" of {name} with ")]);
                    babeltrace::check_rest(user, &r.trace);
                }
                match left {
                    None => fs::rename(&aside, &stream).expect("move"),
                    Some(_) => fs::write(&stream, bytes).expect("the stream"),
                }
            }
        }
        assert_eq!(text(user, &r.trace, &[]).lines().count(), lines);
        // All of it.
        streams(&r.trace).iter().for_each(|s| fs::remove_file(s).expect("remove"));
        let out = incomplete(&r, &["missing: "]);
        assert_eq!(out.out(), "");
    });
}

#[test]
fn a_stream_that_cannot_be_read_is_missing() {
    if !lab::is_root() || !lab::has("setpriv") {
        return lab::skip("root", "only root can hand a trace to somebody else");
    }
    let r = recorded(User::Me, "ptrace");
    let script = "chmod -R a+rX trace; chmod 600 trace/maps";
    assert_eq!(lab::run(lab::as_user(User::Me, &["sh", "-c", script]).current_dir(&r.dir)).code(), 0);
    let of_nobody = Recorded { user: User::Nobody, ..r };
    let out = incomplete(&of_nobody, &["cannot be read: maps (Permission denied)", " of maps with "]);
    assert_eq!(out.out(), text(User::Me, &of_nobody.trace, &[]));
}

#[test]
fn a_stream_that_is_there_twice_is_read_once() {
    each_backend(|user, backend| {
        let r = recorded(user, backend);
        let all = text(user, &r.trace, &[]);
        for stream in streams(&r.trace) {
            let name = stream.file_name().expect("a name").to_string_lossy().into_owned();
            let copy = ["cp", &name, &format!("{name}.copy")];
            assert_eq!(lab::run(lab::as_user(user, &copy).current_dir(&r.trace)).code(), 0);
        }
        let out = r.report(&[]);
        assert!(out.out() == all && out.code() == 0, "{}", out.stderr);
        assert!(out.stderr.contains("are there twice"), "{}", out.stderr);
    });
}

#[test]
fn what_is_missing_of_a_trace_of_the_first_format_is_said_too() {
    let old = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/traces/first/kernel");
    let dir = lab::scratch();
    let copy = |to: &str| {
        let out = lab::run(lab::as_user(User::Me, &["cp", "-r", old.to_str().expect("UTF-8"), to]).current_dir(&dir));
        assert_eq!(out.code(), 0, "{}", out.stderr);
        dir.join(to)
    };
    assert_eq!(report(User::Me, &copy("whole"), &[]).stderr, "");
    for (name, stream, left) in [("a", "maps", None), ("b", "cpu_0", Some(88))] {
        let trace = copy(name);
        let path = trace.join(stream);
        match left {
            None => fs::remove_file(&path).expect("remove"),
            Some(n) => fs::OpenOptions::new().write(true).open(&path).and_then(|f| f.set_len(n)).expect("cut"),
        }
        for options in [&[][..], &["-y"]] {
            let out = report(User::Me, &trace, options);
            assert_eq!(out.code(), 125, "{}", out.stderr);
            assert!(out.stderr.contains(" of 234 events"), "{}", out.stderr);
        }
        let table = report(User::Me, &trace, &["--as", "stats"]);
        assert!(table.code() == 125 && table.out().contains("end         incomplete"), "{}", table.out());
    }
}

#[test]
fn traces_of_other_tracers_are_opened_with_the_same_care() {
    each_user(|user| {
        let dir = lab::scratch();
        let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../ctf/tests/corpus/small");
        for entry in fs::read_dir(corpus).expect("the corpus").flatten() {
            fs::copy(entry.path(), dir.join(entry.file_name())).expect("copy");
        }
        let all = text(user, &dir, &[]);
        assert!(all.lines().count() > 1, "{all}");
        symlink("/dev/zero", dir.join("a_link")).expect("link");
        assert!(lab::run(lab::as_user(user, &["mkfifo", "fifo"]).current_dir(&dir)).code() == 0);
        let before = contents(&dir);
        let out = report(user, &dir, &[]);
        assert_eq!((out.code(), out.out()), (0, all), "{}", out.stderr);
        assert!(out.stderr.contains("part of this trace: a_link, fifo\n"), "{}", out.stderr);
        assert!(before == contents(&dir));
    });
}

#[test]
fn a_directory_that_is_no_trace_is_one_line_that_says_what_to_do() {
    each_user(|user| {
        let dir = lab::scratch();
        fs::write(dir.join("file"), "text").expect("a file");
        fs::create_dir(dir.join("closed")).expect("a directory");
        let secret = lab::scratch();
        fs::write(secret.join("metadata"), "/* CTF 1.8 */").expect("a file");
        for path in [dir.join("closed"), secret.join("metadata")] {
            fs::set_permissions(path, fs::Permissions::from_mode(0o000)).expect("mode");
        }
        let mut cases = vec![
            (vec![], 2, &["no trace is named", "trapline report DIR"][..]),
            (vec!["nothing"], 125, &["nothing: no such directory", "record -o DIR"]),
            (vec!["file"], 125, &["file: Not a directory", "name the directory"]),
            (vec!["."], 125, &["no metadata", "record -o DIR"]),
        ];
        if user == User::Nobody {
            cases.push((vec!["closed"], 125, &["closed: Permission denied", "as its owner, or as root"]));
            cases.push((
                vec![secret.to_str().expect("UTF-8")],
                125,
                &["metadata: Permission denied", "as its owner, or as root"],
            ));
        }
        for (args, code, words) in cases {
            let out = lab::run(lab::trapline(user, &[&["report"], &args[..]].concat()).current_dir(&dir));
            assert_eq!((out.code(), out.out().as_str(), out.stderr.lines().count()), (code, "", 1), "{}", out.stderr);
            assert!(words.iter().all(|w| out.stderr.contains(w)), "{args:?} {}", out.stderr);
        }
    });
}

#[test]
fn an_empty_report_says_why() {
    each_user(|user| {
        let r = record(user, &["--backend", "ptrace"], &["cat", "/etc/hostname"]);
        for (options, words) in [
            (&["-e", "ptrace", "-e", "signal=none", "-p", "1"][..], "is selected by -e, -p"),
            (&["-p", "1"], "is selected by -p"),
            (&["-P", "/nonexistent", "-e", "signal=none", "-p", "1"], "is selected by -e, -p, -P"),
            (&["--from", "+1h"], "no event lies between --from and --to"),
            (&["--where", "retval == 123456789", "-p", "1"], "nothing matched"),
        ] {
            let out = r.report(options);
            assert_eq!((out.code(), out.out().as_str(), out.stderr.lines().count()), (0, "", 1), "{}", out.stderr);
            assert!(out.stderr.contains(words), "{options:?} {}", out.stderr);
            assert_eq!(r.report(&[options, &["-q"]].concat()).stderr, "");
        }
        assert_eq!(r.report(&["-c"]).stderr, "");
        let none = record(user, &["--backend", "ptrace", "-e", "none", "-e", "signal=none"], &["true"]);
        let out = none.report(&["-p", "1"]);
        assert_eq!((out.code(), out.stderr.lines().count()), (0, 1), "{}", out.stderr);
    });
}

#[test]
fn latencies_are_a_table_or_json() {
    each_user(|user| {
        let r = record(user, &["--backend", "ptrace"], &["cat", "/etc/hostname"]);
        let table = text(user, &r.trace, &["--latency"]);
        assert!(table.starts_with("calls errors"), "{table}");
        assert_eq!(text(user, &r.trace, &["--latency", "--as", "text"]), table);
        for by in ["call", "thread", "path", "fd"] {
            let json = text(user, &r.trace, &[&format!("--latency={by}"), "--as", "json"]);
            let value: Value = serde_json::from_str(&json).unwrap_or_else(|e| panic!("{e}: {json}"));
            assert_eq!(value["by"].as_str(), Some(by));
            let rows = value["rows"].as_array().expect("rows");
            assert!(rows.iter().all(|row| row["total_ns"].is_u64()) && !rows.is_empty(), "{value}");
        }
        let out = r.report(&["--latency", "--as", "record"]);
        assert_eq!((out.code(), out.stderr.lines().count()), (2, 1), "{}", out.stderr);
        assert!(out.stderr.contains("text or json"), "{}", out.stderr);
    });
}

#[test]
fn events_means_one_thing_in_every_line() {
    each_backend(|user, backend| {
        let r = recorded(user, backend);
        let n = number(&r.stats, "events");
        assert!(r.outcome.stderr.contains(&format!("trapline: {n} events, 0 dropped")), "{}", r.outcome.stderr);
        let (_, value) = stats(user, &r.trace);
        let both = |v: &Value| (number(v, "events"), number(v, "bookkeeping"));
        assert_eq!(both(&value), both(&r.stats));
        let table = r.report(&["--as", "stats"]).out();
        assert!(
            table.contains(&format!("\nevents      {n}\nbookkeeping {}\n", number(&value, "bookkeeping"))),
            "{table}"
        );
    });
}
