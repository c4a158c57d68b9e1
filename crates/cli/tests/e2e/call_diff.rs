//! `trapline diff` of system calls.

use crate::lab::{self, User};
use std::path::Path;

fn recorded(user: User, dir: &Path, command: &[&str]) -> String {
    let path = dir.to_str().expect("UTF-8").to_string();
    let out = lab::run(&mut lab::trapline(user, &[&["record", "-o", &path, "--"], command].concat()));
    assert_eq!(out.code(), 0, "{}", out.stderr);
    path
}

fn diff(user: User, args: &[&str]) -> String {
    let out = lab::run(&mut lab::trapline(user, &[&["diff"], args].concat()));
    assert_eq!(out.code(), 0, "{}", out.stderr);
    out.out()
}

#[test]
fn what_a_command_does_otherwise_is_shown() {
    lab::each_backend(|user| {
        let dir = lab::scratch();
        testkit::open_to_all(&dir, 0o777);
        let a = recorded(user, &dir.join("a"), &["cat", "/etc/hostname"]);
        let b = recorded(user, &dir.join("b"), &["sh", "-c", "cat /etc/hostname /etc/passwd /no/such/file; true"]);
        let text = diff(user, &[&a, &b]);
        assert!(text.starts_with("What fails otherwise:\n\nerrors change "), "{text}");
        for line in ["ENOENT /no/such/file\n", "\ncalls change errors change ", "\nOnly after, ", " /etc/passwd\n"] {
            assert!(text.contains(line), "{line}: {text}");
        }
        let only_after = text.split("Only after").nth(1).unwrap_or_default();
        assert!(!only_after.contains("/etc/hostname"), "{text}");
        assert_eq!(diff(user, &[&a, &a]), "No call has changed.\n");
        let json = diff(user, &["--as", "calls-json", &a, &b]);
        let lines = json.lines().map(|l| serde_json::from_str::<serde_json::Value>(l).expect("JSON"));
        assert!(lines.into_iter().any(|l| l["type"] == "file" && l["path"] == "/no/such/file" && l["only"] == "after"));
    });
}

#[test]
fn runs_are_compared_with_runs() {
    let dir = lab::scratch();
    testkit::open_to_all(&dir, 0o777);
    lab::each_user(|user| {
        let dir = dir.join(format!("{user:?}"));
        std::fs::create_dir(&dir).expect("a directory");
        testkit::open_to_all(&dir, 0o777);
        for n in 0..3 {
            recorded(user, &dir.join(format!("old-{n}")), &["true"]);
            recorded(user, &dir.join(format!("new-{n}")), &["cat", "/etc/hostname"]);
        }
        let [old, new] = ["old-*", "new-*"].map(|p| dir.join(p).to_str().expect("UTF-8").to_string());
        let text = diff(user, &[&old, &new]);
        assert!(
            text.starts_with("means of 3 and 3 runs; ~ where a change may be chance (Welch's t-test, 1 %)\n"),
            "{text}"
        );
        assert!(text.contains(" /etc/hostname\n"), "{text}");
        // The number of calls is the same in each run, so what differs is no chance.
        let json = diff(user, &["--as", "calls-json", &old, &new]);
        let lines: Vec<serde_json::Value> = json.lines().map(|l| serde_json::from_str(l).expect("JSON")).collect();
        let advice = lines.iter().find(|l| l["call"] == "fadvise64");
        assert!(advice.is_some_and(|l| l["calls"]["chance"] == false), "{json}");
        // The same by directories of traces.
        for (pattern, parent) in [("old", "olds"), ("new", "news")] {
            std::fs::create_dir(dir.join(parent)).expect("a directory");
            for n in 0..3 {
                std::fs::rename(dir.join(format!("{pattern}-{n}")), dir.join(parent).join(n.to_string()))
                    .expect("moved");
            }
        }
        let [olds, news] = ["olds", "news"].map(|p| dir.join(p).to_str().expect("UTF-8").to_string());
        assert_eq!(diff(user, &[&olds, &news]), text);
        let out = lab::run(&mut lab::trapline(user, &["diff", &format!("{old}x"), &new]));
        assert!(out.code() == 125 && out.stderr.contains("no such recording"), "{}", out.stderr);
    });
}

/// The calls of a program with another argument are others in each run, and its times are noise.
#[test]
fn functions_of_runs_are_compared_with_those_of_others() {
    let Some(program) = lab::program("fib") else { return };
    lab::each_user(|user| {
        let dir = lab::scratch();
        testkit::open_to_all(&dir, 0o777);
        let graph = |name: &str, n: &str| {
            let path = dir.join(name).to_str().expect("UTF-8").to_string();
            let out = lab::run(&mut lab::trapline(user, &["graph", "-q", "-o", &path, "--", &program, n]));
            assert_eq!(out.code(), 0, "{}", out.stderr);
        };
        for n in 0..3 {
            graph(&format!("old-{n}"), "8");
            graph(&format!("new-{n}"), "10");
        }
        let [old, new] = ["old-*", "new-*"].map(|p| dir.join(p).to_str().expect("UTF-8").to_string());
        let text = diff(user, &[&old, &new]);
        assert!(text.starts_with("means of 3 and 3 runs; ~ where a change may be chance"), "{text}");
        // fib(8) is 67 calls, fib(10) 177.
        let row = text.lines().find(|line| line.ends_with(" fib")).unwrap_or_default();
        assert!(row.contains(" 177 ") && row.contains(" +110 "), "{text}");
        let json = diff(user, &["--as", "functions-json", &old, &new]);
        let lines: Vec<serde_json::Value> = json.lines().map(|l| serde_json::from_str(l).expect("JSON")).collect();
        let fib = lines.iter().find(|l| l["function"] == "fib").expect("fib");
        assert!(fib["calls"]["chance"] == false && fib["calls"]["after"]["mean"] == 177.0, "{fib}");
        // Of runs of one kind, counts are equal, and times differ by chance.
        let first = dir.join("old-0").display().to_string();
        let same = diff(user, &["--as", "functions-json", &first, &old]);
        for line in same.lines().map(|l| serde_json::from_str::<serde_json::Value>(l).expect("JSON")) {
            assert_eq!(line["calls"]["before"]["mean"], line["calls"]["after"]["mean"], "{line}");
        }
        let out = lab::run(&mut lab::trapline(user, &["diff", "--as", "functions", "--as", "calls", &old, &new]));
        assert!(out.code() == 2 && out.stderr.contains("run it once for each"), "{}", out.stderr);
    });
}
