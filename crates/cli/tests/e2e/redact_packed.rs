//! `pack -o NEW --redact`: no byte of the copy has what is redacted, and every view of it is that of the trace with `--redact`.

use crate::lab::{self, User};
use crate::redact::recorded_by;
use std::fs;
use std::path::{Path, PathBuf};

/// The views that are compared. Pictures have random numbers, and statistics the sizes of streams.
const VIEWS: [&[&str]; 17] = [
    &["-c"],
    &["-yy", "-Y", "-v", "-k"],
    &["--as", "jsonl", "-yy", "-Y", "-v", "--mappings"],
    &["--as", "record", "--mappings"],
    &["--latency=path"],
    &["--latency=fd"],
    &["--by", "stack"],
    &["--as", "processes-json"],
    &["--as", "overview"],
    &["--as", "tree"],
    &["--as", "functions-json"],
    &["--as", "callgraph"],
    &["--as", "flame=out"],
    &["--as", "pprof=out"],
    &["--as", "timeline=out"],
    &["--as", "leaks"],
    &["--as", "heap-json"],
];

fn run(dir: &Path, user: User, words: &[&str]) -> String {
    let out = lab::run(lab::trapline(user, words).current_dir(dir));
    assert_eq!(out.code(), 0, "{words:?}: {}", out.stderr);
    out.out()
}

/// What a view of a trace shows, or writes.
fn shown(dir: &Path, trace: &str, view: &[&str], more: &[&str]) -> Vec<u8> {
    let file = dir.join("out");
    let _ = fs::remove_file(&file);
    let text = run(dir, User::Me, &[&["report", "-q", trace], view, more].concat());
    fs::read(&file).unwrap_or_else(|_| text.into_bytes())
}

/// All files below a directory, as bytes, with their names.
fn files(dir: &Path) -> Vec<u8> {
    let mut all = Vec::new();
    for entry in fs::read_dir(dir).expect("a directory") {
        let path = entry.expect("an entry").path();
        all.extend(path.file_name().expect("a name").as_encoded_bytes());
        all.extend(if path.is_dir() { files(&path) } else { fs::read(&path).expect("a file") });
    }
    all
}

fn has(bytes: &[u8], word: &str) -> bool {
    bytes.to_ascii_lowercase().windows(word.len()).any(|b| b == word.as_bytes())
}

/// Packs a copy; asserts that it has none of these words, which the trace has.
fn packed(dir: &Path, what: &str, gone: &[&str]) -> PathBuf {
    let copy = dir.join("copy");
    let _ = fs::remove_dir_all(&copy);
    run(dir, User::Me, &["pack", "-q", "t", "-o", "copy", "--redact", what]);
    let (before, after) = (files(&dir.join("t")), files(&copy));
    for word in gone {
        assert!(has(&before, word) && !has(&after, word), "--redact {what}: {word}");
    }
    assert!(gone.is_empty() || has(&after, "[redacted]"), "--redact {what}");
    copy
}

// Slow: every view is made of redacted copies and of the trace, for each user.
#[test]
fn a_packed_copy_shows_what_the_trace_shows_and_has_no_more() {
    lab::each_user(|user| {
        for (name, flags) in [("secrets", &[][..]), ("secrets_without_id", &["-Wl,--build-id=none"])] {
            let flags = [&["-O1", "-g"], flags].concat();
            let Some(dir) =
                testkit::compile("gcc", name, "secrets.c", &flags).and_then(|program| recorded_by(user, &program))
            else {
                return;
            };
            let words: [(&str, &[&str]); 4] = [
                ("/(?i:xyzzy|plugh)/", &["xyzzy", "plugh"]),
                ("all", &["xyzzy"]),
                ("env", &["xyzzyenv"]),
                ("argv,paths", &["xyzzyargument", "xyzzyfile", "xyzzydir"]),
            ];
            for (nth, (what, gone)) in words.into_iter().enumerate() {
                packed(&dir, what, gone);
                let whole = nth < if user == User::Me { 2 } else { 1 };
                for view in &VIEWS[..if whole { VIEWS.len() } else { 3 }] {
                    let (copy, trace) = (shown(&dir, "copy", view, &[]), shown(&dir, "t", view, &["--redact", what]));
                    let text = String::from_utf8_lossy(&copy);
                    assert!(!copy.is_empty() && copy == trace, "{name} {user:?} --redact {what} {view:?}: {text}");
                }
            }
        }
    });
}

/// What a recording was asked for may be a secret too, and what its filter rejected is shown by no view.
#[test]
fn what_was_asked_for_does_not_leave() {
    let Some(program) = testkit::compile("gcc", "secrets", "secrets.c", &["-O1", "-g"]) else { return };
    lab::each_user(|user| {
        let dir = lab::scratch();
        fs::copy(&program, dir.join("xyzzyprogram")).expect("a copy");
        let span = "xyzzyspan = openat .. close by retval .. fd";
        let filter = ["-e", "openat,close,mkdir", "--where", r#"startswith(args.pathname, "xyzzyd") || retval < 0"#];
        let record = [&["record", "-q", "-o", "t", "--span", span][..], &filter, &["--", "./xyzzyprogram", "first"]];
        run(&dir, user, &record.concat());
        // Names of calls are no secrets: what was selected is selected in the copy too.
        packed(&dir, "all,/xyzzy|open|trap/", &["xyzzy"]);
        for view in [&["-c"][..], &["--as", "json"], &["--as", "spans"]] {
            let more: &[&str] = &["--redact", "all,/xyzzy|open|trap/"];
            let (copy, trace) = (shown(&dir, "copy", view, &[]), shown(&dir, "t", view, more));
            let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
            assert_eq!(text(copy), text(trace), "{user:?} {view:?}");
        }
        if user != User::Me {
            return;
        }
        fs::remove_dir_all(dir.join("t")).expect("the trace");
        let script = r#"syscall:mkdir { printf("xyzzyscript %s\n", str(args.pathname)); }"#;
        fs::write(dir.join("script"), script).expect("a script");
        run(&dir, user, &["record", "-q", "-o", "t", "--script", "script", "--", "./xyzzyprogram", "first"]);
        packed(&dir, "all,/xyzzy/", &["xyzzyscript"]);
    });
}

/// Allocations are compressed.
#[test]
fn a_copy_of_allocations_is_compressed_too() {
    let Some(program) = testkit::compile("gcc", "secrets", "secrets.c", &["-O1", "-g"]) else { return };
    let dir = lab::scratch();
    fs::copy(program, dir.join("xyzzyprogram")).expect("a copy");
    let record = ["record", "-q", "-o", "t", "-e", "heap:* ustack", "--", "./xyzzyprogram", "first"];
    run(&dir, User::Me, &record);
    packed(&dir, "/xyzzy|plugh/", &["xyzzy"]);
    for view in [&["--as", "leaks"][..], &["--as", "jsonl", "--mappings"], &["--as", "heap-json"]] {
        let (copy, trace) = (shown(&dir, "copy", view, &[]), shown(&dir, "t", view, &["--redact", "/xyzzy|plugh/"]));
        assert!(copy == trace && !has(&copy, "plugh"), "{view:?}: {}", String::from_utf8_lossy(&copy));
    }
}

/// Without `--redact`, a copy is what `pack` makes of a trace in its place.
#[test]
fn a_copy_without_rules_is_the_trace() {
    let Some(program) = testkit::compile("gcc", "secrets", "secrets.c", &["-O1", "-g"]) else { return };
    let Some(dir) = recorded_by(User::Me, &program) else { return };
    run(&dir, User::Me, &["pack", "-q", "t", "-o", "copy"]);
    assert!(!dir.join("t/.trapline/symbols").exists() && dir.join("copy/.trapline/symbols").exists());
    for view in VIEWS {
        assert!(shown(&dir, "copy", view, &[]) == shown(&dir, "t", view, &[]), "{view:?}");
    }
}

/// Values of functions are no events: they lie in the records.
#[test]
fn values_of_functions_leave_with_the_texts_only() {
    let Some(program) = testkit::compile("gcc", "values_secret", "values.c", &["-O1", "-g", "-pthread"]) else {
        return;
    };
    let dir = lab::scratch();
    run(&dir, User::Me, &["graph", "-q", "--args", "-o", "t", "--", &program]);
    let whole = shown(&dir, "t", &["--as", "calls-json"], &[]);
    assert!(has(&whole, "\"args\":"));
    for (what, has_values) in [("all", false), ("strings", false), ("env,paths", true)] {
        packed(&dir, what, &[]);
        for view in [&["--as", "tree"][..], &["--as", "calls-json"], &["--as", "json"], &["--as", "functions-json"]] {
            let (copy, trace) = (shown(&dir, "copy", view, &[]), shown(&dir, "t", view, &["--redact", what]));
            assert!(copy == trace, "--redact {what} {view:?}: {}", String::from_utf8_lossy(&copy));
        }
        assert_eq!(has(&shown(&dir, "copy", &["--as", "calls-json"], &[]), "\"args\":"), has_values, "{what}");
    }
}
