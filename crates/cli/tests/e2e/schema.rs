//! `trapline schema`: lines of real recordings of every kind are valid by what it prints.

use crate::json_schema::invalid;
use crate::lab::{self, User};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// The schema that is printed.
fn schema() -> Value {
    let out = lab::run(&mut lab::trapline(User::Me, &["schema", "lines", "--as", "json"]));
    assert_eq!(out.code(), 0, "{}", out.stderr);
    serde_json::from_str(&out.out()).expect("JSON")
}

/// The types of the lines of a trace, and the names of its probes, which are all valid.
fn kinds(schema: &Value, words: &[&str], dir: &Path) -> BTreeSet<String> {
    let out = lab::run(lab::trapline(User::Me, &[&["report", "-q", "--as", "jsonl"], words].concat()).current_dir(dir));
    assert_eq!(out.code(), 0, "{}", out.stderr);
    let mut all = BTreeSet::new();
    for line in out.out().lines() {
        let value: Value = serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"));
        let kind = value["type"].as_str().expect("a type").to_owned();
        let known = &schema["$defs"][&kind]["properties"];
        for member in value.as_object().expect("an object").keys() {
            assert!(known.get(member).is_some(), "the schema of {kind} lacks {member}: {line}");
        }
        assert_eq!(invalid(schema, &value), None, "{line}");
        if kind == "probe" {
            let name = value["name"].as_str().expect("a name");
            all.extend(name.split_once(':').map(|(provider, _)| provider.to_owned()));
        }
        all.insert(kind);
    }
    all
}

fn record(words: &[&str], dir: &Path) {
    let out =
        lab::run(lab::trapline(User::Me, &[&["record", "-q", "--force", "-o", "t"], words].concat()).current_dir(dir));
    assert!(out.stderr.is_empty(), "{words:?}: {}", out.stderr);
}

#[track_caller]
fn has(found: &BTreeSet<String>, wanted: &[&str]) {
    for kind in wanted {
        assert!(found.contains(*kind), "no {kind}: {found:?}");
    }
}

#[test]
fn lines_of_calls_and_of_lives_are_valid() {
    let (schema, dir) = (schema(), lab::scratch());
    let mut found = BTreeSet::new();
    for name in ["signals", "forkstorm", "names", "bad_pointers", "bad_number", "huge_iov", "ia32", "threads"] {
        let Some(program) = lab::program(name) else { return };
        record(&["--backend", "ptrace", "-yy", "--", &program, "3"], &dir);
        for more in
            [&["t"][..], &["t", "-yy", "-Y", "-v", "-n", "--mappings"], &["t", "-X", "raw"], &["t", "-e", "raw=all"]]
        {
            found.extend(kinds(&schema, more, &dir));
        }
    }
    // Of one whose buffer was too small.
    let dropped = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/traces/first/dropped");
    found.extend(kinds(&schema, &[dropped], &dir));
    has(&found, &["syscall", "signal", "exit", "fork", "exec", "fd", "map", "lost"]);
}

#[test]
fn lines_of_other_probes_are_valid() {
    if lab::bpf_refused().is_some() {
        return testkit::skip("root", "no kernel backend");
    }
    let Some(program) = testkit::compile("gcc", "queries", "queries.c", &["-O1", "-g"]) else { return };
    let (schema, dir) = (schema(), lab::scratch());
    let probes = [
        "syscall:* ustack kstack",
        "function:*",
        "heap:* ustack",
        "profile:hz:999 ustack",
        "tracepoint:sched:sched_switch",
    ];
    let words = probes.iter().flat_map(|probe| ["-e", probe]).chain(["--args", "--", &program]).collect::<Vec<_>>();
    record(&words, &dir);
    let found = kinds(&schema, &["t", "-yy", "-Y", "--mappings"], &dir);
    has(&found, &["syscall", "probe", "function", "heap", "profile", "tracepoint", "exit", "map", "stack"]);
    has(&kinds(&schema, &["t", "--no-stacks", "--sort", "start"], &dir), &["heap"]);
}

#[test]
fn lines_of_static_probes_are_valid() {
    if !lab::kernel_backend_is_possible() {
        return;
    }
    let Some(program) = lab::program("probes") else { return };
    let (schema, dir) = (schema(), lab::scratch());
    let probes = [format!("usdt:{program}:lab:*"), format!("uprobe:{program}:worked")];
    record(&["-e", &probes[0], "-e", &probes[1], "--ustack", "--comm", "--", &program, "3"], &dir);
    has(&kinds(&schema, &["t"], &dir), &["probe", "usdt", "uprobe"]);
}

#[test]
fn tables_are_those_that_are_written() {
    let (dir, of) = (lab::scratch(), ["schema", "tables", "--as", "json"]);
    let out = lab::run(&mut lab::trapline(User::Me, &of));
    let tables: Value = serde_json::from_str(&out.out()).expect("JSON");
    record(&["--backend", "ptrace", "--", "true"], &dir);
    let out = lab::run(lab::trapline(User::Me, &["report", "-q", "t", "--as", "parquet=p"]).current_dir(&dir));
    assert_eq!(out.code(), 0, "{}", out.stderr);
    let written: BTreeSet<String> = fs::read_dir(dir.join("p"))
        .expect("tables")
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .filter(|name| name != "trapline.json")
        .collect();
    assert_eq!(tables["tables"].as_object().expect("tables").keys().cloned().collect::<BTreeSet<_>>(), written);
}
