//! Programs that are built with sanitizers, or for a profiler: they run as without trapline, or are refused before they start.

use crate::lab::{self, User};

#[track_caller]
fn build(name: &str, compiler: &str, flags: &[&str]) -> Option<String> {
    testkit::compile(compiler, &format!("sanitized_{name}"), "sanitized.c", &[&["-O1", "-g"], flags].concat())
}

#[track_caller]
fn same(command: &[&str]) {
    let (dir, bare_dir) = (lab::scratch(), lab::scratch());
    let bare = lab::run(lab::as_user(User::Me, command).current_dir(bare_dir));
    for (what, out) in [("graph", "functions"), ("heap", "json")] {
        let view = format!("{out}={}", dir.join(what).display());
        let args = [&[what, "-q", "--as", &view, "--"], command].concat();
        let traced = lab::run(lab::trapline(User::Me, &args).current_dir(&dir));
        let own = |l: &&str| l.starts_with("trapline: ");
        let said: Vec<&str> = traced.stderr.lines().filter(|l| !own(l)).collect();
        assert_eq!((traced.code(), traced.out(), said.join("\n")), (bare.code(), bare.out(), bare.stderr.clone()));
        let shown = std::fs::read_to_string(dir.join(what)).expect("a report");
        assert!(what == "heap" || shown.contains("work"), "{shown}");
    }
}

#[test]
fn programs_that_run() {
    let programs = [
        build("asan", "gcc", &["-fsanitize=address"]),
        build("ubsan", "gcc", &["-fsanitize=undefined"]),
        build("gprof", "gcc", &["-pg"]),
    ];
    for program in programs.iter().flatten() {
        same(&[program]);
    }
}

#[test]
fn children_that_run() {
    let Some(plain) = build("plain", "gcc", &[]) else { return };
    for flags in ["-fsanitize=address", "-fsanitize=thread"] {
        let Some(child) = build(&flags[11..], "gcc", &[flags]) else { continue };
        let bare = lab::run(&mut lab::as_user(User::Me, &[&plain, &child]));
        let traced = lab::run(&mut lab::trapline(User::Me, &["graph", "--as", "functions", "--", &plain, &child]));
        assert_eq!((traced.code(), bare.code()), (0, 0), "{}", traced.stderr);
        assert!(traced.out().starts_with(&bare.out()), "{}", traced.out());
        assert!(traced.stderr.contains("a program with a sanitizer"), "{}", traced.stderr);
    }
}

#[test]
fn programs_that_are_refused() {
    let Some(program) = build("tsan", "gcc", &["-fsanitize=thread"]) else { return };
    for command in ["graph", "heap"] {
        let out = lab::run(&mut lab::trapline(User::Me, &[command, "--", &program]));
        assert!(out.code() != 0 && out.out().is_empty(), "{}", out.out());
        assert!(out.stderr.contains("ThreadSanitizer and MemorySanitizer"), "{}", out.stderr);
    }
}
