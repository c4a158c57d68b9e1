//! A recording is shown while it goes on.

use crate::lab::{self, User};
use serde_json::Value;
use std::io::Write;
use std::process::Stdio;

// Slow: a report follows a recording that writes what it has once a second.
#[test]
fn what_comes_is_shown_in_order_until_the_recording_ends() {
    lab::each_backend(|user| {
        let scratch = lab::scratch();
        let words = ["record", "-q", "-e", "write,read", "-o", "trace", "sh", "-c"];
        let script = "while read n; do echo line $n; done";
        let mut record = lab::trapline(user, &[&words[..], &[script]].concat());
        let mut record = lab::start(record.current_dir(&scratch).stdin(Stdio::piped()).stdout(Stdio::null()));
        let mut input = record.child.stdin.take().expect("stdin");
        lab::until("the trace", || scratch.join("trace/metadata").exists());
        let text = scratch.join("text");
        let to_file = std::fs::File::create(&text).expect("a file");
        let mut follow = lab::trapline(User::Me, &["report", "-q", "--follow", "trace"]);
        let follow = lab::start(follow.current_dir(&scratch).stdout(to_file));
        for n in 0..4 {
            writeln!(input, "{n}").expect("the shell");
            let line = format!("write(1, \"line {n}\\n\", 7)");
            lab::until(&line, || std::fs::read_to_string(&text).is_ok_and(|t| t.contains(&line)));
        }
        drop(input);
        assert_eq!(record.end().code(), 0);
        assert_eq!(follow.end().code(), 0);
        let whole = lab::run(lab::trapline(User::Me, &["report", "-q", "trace"]).current_dir(&scratch));
        assert_eq!(std::fs::read_to_string(&text).expect("text"), whole.out());
        // Of one that has ended there is nothing to wait for.
        let again = lab::run(lab::trapline(User::Me, &["report", "-q", "--follow", "trace"]).current_dir(&scratch));
        assert_eq!(again.out(), whole.out());
    });
}

// Slow, as above.
#[test]
fn several_recordings_are_followed_in_one_order() {
    let scratch = lab::scratch();
    let names = ["a", "b"];
    let mut recordings = names.map(|name| {
        let words = ["record", "-q", "--backend", "ptrace", "-e", "write,read", "-o", name, "sh", "-c"];
        let script = format!("while read n; do echo {name} $n; done");
        let mut record = lab::trapline(User::Me, &[&words[..], &[&script]].concat());
        let mut record = lab::start(record.current_dir(&scratch).stdin(Stdio::piped()).stdout(Stdio::null()));
        let input = record.child.stdin.take().expect("stdin");
        lab::until("the trace", || scratch.join(name).join("metadata").exists());
        (record, Some(input))
    });
    let text = scratch.join("text");
    let to_file = std::fs::File::create(&text).expect("a file");
    let mut follow = lab::trapline(User::Me, &["report", "-q", "--follow", "a", "b"]);
    let follow = lab::start(follow.current_dir(&scratch).stdout(to_file));
    let shown = || std::fs::read_to_string(&text).unwrap_or_default();
    let mut expected = Vec::new();
    for n in 0..4 {
        let name = names[n % 2];
        // All that the first has said is there when it has ended, and the other goes on.
        if n == 3 {
            drop(recordings[0].1.take());
        }
        writeln!(recordings[n % 2].1.as_ref().expect("its input"), "{n}").expect("the shell");
        expected.push(format!("write(1, \"{name} {n}\\n\", 4)"));
        lab::until(&expected[n], || shown().contains(&expected[n]));
    }
    for (record, input) in recordings {
        drop(input);
        assert_eq!(record.end().code(), 0);
    }
    assert_eq!(follow.end().code(), 0);
    let whole = lab::run(lab::trapline(User::Me, &["report", "-q", "a", "b"]).current_dir(&scratch));
    assert_eq!(shown(), whole.out());
    let writes: Vec<usize> = expected.iter().filter_map(|line| shown().find(line.as_str())).collect();
    assert!(writes.len() == expected.len() && writes.is_sorted(), "{writes:?}");
    let stats =
        lab::run(lab::trapline(User::Me, &["report", "--follow", "--as", "stats", "a", "b"]).current_dir(&scratch));
    assert_eq!((stats.code(), stats.stderr.lines().count()), (2, 1), "{}", stats.stderr);
}

#[test]
fn an_interrupt_ends_it_with_what_is_shown_at_the_end() {
    let scratch = lab::scratch();
    let words =
        ["record", "-q", "--backend", "ptrace", "-e", "getppid,write", "-o", "trace", "sh", "-c", "echo a; sleep 30"];
    let mut record = lab::trapline(User::Me, &words);
    let record = lab::start(record.current_dir(&scratch).stdout(Stdio::null()));
    lab::until("the trace", || scratch.join("trace/metadata").exists());
    let mut follow = lab::trapline(User::Me, &["report", "--follow", "-c", "trace"]);
    let follow = lab::start(follow.current_dir(&scratch).stdout(Stdio::piped()).stderr(Stdio::piped()));
    std::thread::sleep(std::time::Duration::from_secs(3));
    lab::kill("INT", follow.pid().into());
    let out = follow.end();
    assert!(out.out().lines().any(|l| l.ends_with(" write")), "{} {}", out.out(), out.stderr);
    assert!(out.stderr.contains("the recording is still running"), "{}", out.stderr);
    drop(record);
    let stats =
        lab::run(lab::trapline(User::Me, &["report", "--follow", "--as", "stats", "trace"]).current_dir(&scratch));
    assert_eq!((stats.code(), stats.stderr.lines().count()), (2, 1), "{}", stats.stderr);
}

/// A picture is written when the recording ends, or when the report is interrupted: of functions alone too.
#[test]
fn pictures_are_written_at_the_end() {
    let Some(program) =
        testkit::compile("gcc", "mixes_followed", "mixes.c", &["-g", "-O1", "-fno-builtin", "-pthread"])
    else {
        return;
    };
    let scratch = lab::scratch();
    let record = ["record", "-q", "-e", "function:work", "-o", "trace", "--", &program, "5", "wait"];
    let mut record = lab::trapline(User::Me, &record);
    let mut record =
        lab::start(record.current_dir(&scratch).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped()));
    lab::until("the trace", || scratch.join("trace/metadata").exists());
    let follow = |name: &str, views: &[&str]| {
        let lines = format!("json={name}");
        let mut follow =
            lab::trapline(User::Me, &[&["report", "-q", "--follow", "trace", "--as", &lines], views].concat());
        let follow = lab::start(follow.current_dir(&scratch).stderr(Stdio::piped()));
        let lines = scratch.join(name);
        lab::until("it follows", || std::fs::read_to_string(&lines).is_ok_and(|t| t.contains("function:entry")));
        follow
    };
    let slices = |name: &str| {
        let file: Value = serde_json::from_slice(&std::fs::read(scratch.join(name)).expect("a picture")).expect("JSON");
        file["traceEvents"].as_array().expect("events").iter().filter(|e| e["ph"] == "X").count()
    };
    let part = follow("part", &["--as", "timeline=part.json"]);
    assert!(!scratch.join("part.json").exists());
    lab::kill("INT", part.pid().into());
    part.end();
    assert!(slices("part.json") > 0);

    let views = ["timeline=FILE.json", "timeline=FILE", "processes=FILE.text"];
    let named = |name: &str| views.map(|view| view.replace("FILE", name));
    let words = |names: &[String; 3]| names.iter().flat_map(|n| ["--as".to_owned(), n.clone()]).collect::<Vec<_>>();
    let followed = words(&named("followed"));
    let follow = follow("lines", &followed.iter().map(String::as_str).collect::<Vec<_>>());
    drop(record.child.stdin.take());
    assert_eq!(record.end().code(), 0);
    let out = follow.end();
    assert_eq!((out.code(), out.stderr.as_str()), (0, ""));
    let whole = words(&named("whole"));
    let whole = [&["report", "-q", "trace"], &whole.iter().map(String::as_str).collect::<Vec<_>>()[..]].concat();
    assert_eq!(lab::run(lab::trapline(User::Me, &whole).current_dir(&scratch)).code(), 0);
    for end in [".json", "", ".text"] {
        let read = |name: &str| std::fs::read(scratch.join(format!("{name}{end}"))).expect("a picture");
        assert!(read("followed") == read("whole"), "{end}");
    }
    assert!(slices("whole.json") >= slices("part.json"));
}
