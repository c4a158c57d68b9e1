//! `report --redact`: what a program has said is in no view, and in no file, though it is there without.

use crate::lab::{self, User};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What the program says, and the name of its function.
const WORDS: [&str; 2] = ["xyzzy", "plugh"];

/// A trace of calls, functions and allocations with their stacks.
fn recorded() -> Option<PathBuf> {
    recorded_by(User::Me, &testkit::compile("gcc", "secrets", "secrets.c", &["-O1", "-g"])?)
}

/// That of a program.
pub fn recorded_by(user: User, program: &str) -> Option<PathBuf> {
    let dir = lab::scratch();
    // Its name is a secret too.
    let secret = dir.join("xyzzyprogram");
    fs::copy(program, &secret).expect("a copy");
    let words = [
        "record",
        "-q",
        "-yy",
        "-v",
        "-s",
        "100",
        "-o",
        "t",
        "-e",
        "syscall:*",
        "-e",
        "function:plugh",
        "-e",
        "heap:* ustack",
        "--",
        "./xyzzyprogram",
        "first",
    ];
    let out = lab::run(lab::trapline(user, &words).current_dir(&dir));
    assert!(out.code() == 0 && out.stderr.is_empty(), "{} {}", out.code(), out.stderr);
    Some(dir)
}

/// The words that are in a view.
fn found(dir: &Path, python: &Path, view: &str, options: &[&str]) -> BTreeSet<String> {
    let file = lab::scratch().join("out");
    let to = format!("{view}={}", file.display());
    let words = [&["report", "-q", "-yy", "-Y", "-v", "t", "--as", &to], options].concat();
    let out = lab::run(lab::trapline(User::Me, &words).current_dir(dir));
    assert_eq!(out.code(), 0, "{words:?}: {}", out.stderr);
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/e2e/redact.py");
    let said = lab::run(Command::new(python).arg(script).arg(&file).args(WORDS));
    assert_eq!(said.code(), 0, "{view}: {}", said.stderr);
    said.out()
        .lines()
        .map(str::to_owned)
        .chain(WORDS.iter().filter(|w| out.stderr.contains(**w)).map(|w| (*w).into()))
        .collect()
}

/// All views, by names that mean one each.
fn views() -> BTreeSet<&'static str> {
    session::view::all().map(|kind| kind.name).filter(|name| !name.starts_with("spans")).collect()
}

// Slow: every view is made three times.
#[test]
fn no_view_has_what_is_redacted() {
    let (Some(python), Some(dir)) = (testkit::python("duckdb", "duckdb, pytz"), recorded()) else { return };
    let rules = [("/(?i:xyzzy|plugh)/", &WORDS[..]), ("all", &WORDS[..1])];
    let mut shown = [BTreeSet::new(), BTreeSet::new()];
    for view in views() {
        let without = found(&dir, &python, view, &[]);
        for (shown, _) in shown.iter_mut().zip(WORDS).filter(|(_, word)| without.contains(*word)) {
            shown.insert(view);
        }
        for (what, gone) in rules {
            let with = found(&dir, &python, view, &["--redact", what]);
            assert!(gone.iter().all(|word| !with.contains(*word)), "--redact {what} --as {view} has {with:?}");
        }
    }
    let tells = |views: &[&str], of: &BTreeSet<&str>| views.iter().filter(|v| !of.contains(**v)).count() == 0;
    let of_data =
        ["text", "json", "record", "html", "timeline", "parquet", "stats", "stats-json", "processes", "processes-json"];
    assert!(tells(&of_data, &shown[0]), "{shown:?}");
    let of_names =
        ["tree", "functions", "functions-json", "callgraph", "flame", "folded", "pprof", "leaks", "heap-json", "json"];
    assert!(tells(&of_names, &shown[1]), "{shown:?}");
}

/// Chrome's format is another writer of the same pictures, with or without system calls.
#[test]
fn a_picture_for_chrome_has_nothing_either() {
    let Some(dir) = recorded() else { return };
    for calls in [&[][..], &["--syscalls"]] {
        let picture = |options: &[&str]| {
            let words = [&["report", "-q", "t", "--as", "timeline=picture.json"], calls, options].concat();
            let out = lab::run(lab::trapline(User::Me, &words).current_dir(&dir));
            assert_eq!(out.code(), 0, "{words:?}: {}", out.stderr);
            let text = fs::read_to_string(dir.join("picture.json")).expect("a picture");
            let whole: serde_json::Value = serde_json::from_str(&text).expect("JSON");
            (whole["traceEvents"].as_array().expect("events").len(), text)
        };
        let (events, without) = picture(&[]);
        assert!(WORDS.iter().all(|word| without.contains(word)), "{without}");
        for (what, gone) in [("/(?i:xyzzy|plugh)/", &WORDS[..]), ("all", &WORDS[..1])] {
            let (same, with) = picture(&["--redact", what]);
            assert_eq!(same, events, "--redact {what}");
            assert!(with.contains("[redacted]") && gone.iter().all(|word| !with.contains(word)), "{what}: {with}");
        }
    }
}

#[test]
fn no_table_has_what_is_redacted() {
    let Some(dir) = recorded() else { return };
    let ways: [&[&str]; 11] = [
        &["-c"],
        &["--latency=path"],
        &["--latency=fd"],
        &["--latency=thread"],
        &["--latency=path", "--as", "json"],
        &["--by", "stack"],
        &["--read", "all", "--write", "all"],
        &["-k", "-n", "-x", "--mappings"],
        &["--as", "json", "--mappings"],
        &["--sort", "start", "--as", "record"],
        &["--span", "xyzzyspan = syscall:openat .. syscall:close by pid", "--as", "spans"],
    ];
    let lines = |options: &[&str]| {
        let words = [&["report", "-q", "-yy", "-Y", "-v", "t"], options].concat();
        let out = lab::run(lab::trapline(User::Me, &words).current_dir(&dir));
        assert_eq!(out.code(), 0, "{words:?}: {}", out.stderr);
        out.out() + &out.stderr
    };
    let has = |text: &str, word: &str| text.contains(word) || text.contains(&hex(word));
    for way in ways {
        let with = lines(&[way, &["--redact", "/xyzzy|plugh/"]].concat());
        assert!(!with.is_empty() && WORDS.iter().all(|word| !has(&with, word)), "{way:?}: {with}");
    }
    for way in [ways[1], ways[3], ways[6], ways[8], ways[10]] {
        assert!(has(&lines(way), WORDS[0]), "{way:?}");
    }
}

/// As a dump of bytes has it.
fn hex(word: &str) -> String {
    word.bytes().map(|b| format!("{b:02x}")).collect::<Vec<_>>().join(" ")
}

#[test]
fn several_traces_have_no_more() {
    let (Some(first), Some(second)) = (recorded(), recorded()) else { return };
    let traces = [&first, &second].map(|dir| dir.join("t").display().to_string());
    let shown = |options: &[&str]| {
        let words = [&["report", "-q", "-yy", "-Y", "-v", &traces[0], &traces[1]], options].concat();
        let out = lab::run(&mut lab::trapline(User::Me, &words));
        assert_eq!(out.code(), 0, "{words:?}: {}", out.stderr);
        out.out()
    };
    let host = sys::proc::host_name();
    let ways: [&[&str]; 6] = [
        &[],
        &["--as", "json"],
        &["--latency=path"],
        &["--as", "processes-json"],
        &["--as", "tree"],
        &["--as", "stats"],
    ];
    for way in ways {
        let secret = |text: &str| WORDS.iter().any(|word| text.contains(word));
        let with = shown(&[way, &["--redact", "host,/xyzzy|plugh/"]].concat());
        assert!(!with.is_empty() && !secret(&with), "{way:?}: {with}");
        assert!(secret(&shown(way)), "{way:?}");
        assert!(
            host.is_empty() || way != ["--as", "json"] || !with.contains(&format!("\"host\":\"{host}\"")),
            "{with}"
        );
    }
}

/// Names of probes have files in them, also where each trace says what it has taken and dropped.
#[test]
fn statistics_name_no_file() {
    if lab::bpf_refused().is_some() {
        return testkit::skip("root", "no kernel backend");
    }
    let Some(program) = testkit::compile("gcc", "secrets", "secrets.c", &["-O1", "-g"]) else { return };
    let dir = lab::scratch();
    let secret = dir.join("xyzzyprogram");
    fs::copy(program, &secret).expect("a copy");
    let run = |words: &[&str]| {
        let out = lab::run(lab::trapline(User::Me, words).current_dir(&dir));
        assert_eq!(out.code(), 0, "{words:?}: {}", out.stderr);
        out.out()
    };
    let probe = format!("uprobe:{}:plugh", secret.display());
    for trace in ["t", "u"] {
        run(&["record", "-q", "-o", trace, "-e", &probe, "--", "./xyzzyprogram", "first"]);
    }
    for traces in [&["t"][..], &["t", "u"]] {
        let stats = |options: &[&str]| run(&[&["report", "-q", "--as", "stats"], traces, options].concat());
        assert!(stats(&[]).contains(WORDS[0]), "{traces:?}");
        let with = stats(&["--redact", "all"]);
        assert!(with.contains("uprobe:[redacted]:plugh") && !with.contains(WORDS[0]), "{with}");
    }
}

#[test]
fn each_word_is_about_its_texts() {
    let (Some(python), Some(dir)) = (testkit::python("duckdb", "duckdb, pytz"), recorded()) else { return };
    let lines = |options: &[&str]| {
        let words = [&["report", "-q", "-yy", "-v", "t", "-e", "syscall:*"], options].concat();
        lab::run(lab::trapline(User::Me, &words).current_dir(&dir)).out()
    };
    for (what, secrets, others) in [
        ("env", &["xyzzyenv"][..], &["xyzzyargument", "xyzzydata", "xyzzyfile"][..]),
        ("argv", &["xyzzyargument"], &["xyzzyenv", "xyzzydata"]),
        ("buffers", &["xyzzydata", "xyzzyvec", "xyzzymessage"], &["xyzzyfile", "xyzzyargument"]),
        ("paths", &["xyzzyfile", "xyzzydir", "xyzzylink", "xyzzysocket"], &["xyzzyargument", "xyzzydata"]),
        ("strings", &["xyzzythread"], &["xyzzyfile"]),
        ("/xyzzy[a-f]*/", &["xyzzy"], &["[redacted]ile"]),
    ] {
        let (with, without) = (lines(&["--redact", what]), lines(&[]));
        for secret in secrets {
            assert!(!with.contains(secret) && without.contains(secret), "{what}: {secret}");
        }
        others.iter().for_each(|other| assert!(with.contains(other), "{what}: no {other}"));
        assert_eq!(with.lines().count(), without.lines().count(), "{what}");
    }
    // Filters have whole events.
    let one = lines(&["--redact", "all", "--where", "startswith(args.filename, \"xyzzyfi\")"]);
    assert!(one.contains("openat(") && !one.contains("xyzzy"), "{one}");
    // The name of the host is in the directories of tables.
    let host = sys::proc::host_name();
    assert!(!found(&dir, &python, "parquet", &["--redact", "host"]).is_empty());
    let out = lab::run(
        lab::trapline(User::Me, &["report", "-q", "t", "--as", "stats", "--redact", "host"]).current_dir(&dir),
    );
    assert!(out.out().contains("[redacted]") && (host.is_empty() || !out.out().contains(&host)), "{}", out.out());
}

#[test]
fn what_cannot_keep_a_secret_is_refused() {
    let Some(dir) = recorded() else { return };
    for (words, why) in [
        (&["report", "t", "--redact", "envs"][..], "nothing of this name"),
        (&["report", "t", "--redact", "/x*/"], "finds nothing everywhere"),
        (&["report", "t", "--redact", "all", "--follow"], "leave out --follow"),
        (&["pack", "t", "--redact", "all"], "add -o NEW"),
        (&["pack", "t", "-o", "t", "--redact", "all"], "choose a directory that does not exist yet"),
    ] {
        let out = lab::run(lab::trapline(User::Me, words).current_dir(&dir));
        assert!(out.code() != 0 && out.stderr.contains(why), "{words:?}: {}", out.stderr);
        assert_eq!(out.stderr.lines().count(), 1, "{}", out.stderr);
    }
}
