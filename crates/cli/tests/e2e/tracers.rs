//! `trapline tracer`: tracers that are switched on and off in processes that run.

use crate::injected::{comes_to_its_own_text, is_right, program, rounds, started};
use crate::lab::{self, Outcome, User};
use std::path::Path;
use std::process::Command;

pub fn tracer(pid: u32, command: &str, more: &[&str]) -> Outcome {
    let pid = pid.to_string();
    lab::run(&mut lab::trapline(User::Me, &[&["tracer", command, "-p", &pid], more].concat()))
}

#[track_caller]
pub fn done(out: &Outcome) -> String {
    assert_eq!((out.code(), out.complaints().as_str()), (0, ""), "{}", out.out());
    out.out()
}

#[track_caller]
pub fn refused(out: &Outcome, why: &str) {
    assert_eq!(out.code(), 125, "{}", out.stderr);
    assert!(out.stderr.contains(why) && out.stderr.lines().count() == 1, "{}", out.stderr);
}

/// The tracers of a process that are enabled; all others are disabled.
#[track_caller]
pub fn enabled(pid: u32) -> Vec<String> {
    let status = done(&tracer(pid, "status", &[]));
    let states = status.lines().map(|l| l.split_once('\t').unwrap_or_else(|| panic!("{l}")));
    let (enabled, disabled): (Vec<_>, Vec<_>) = states.partition(|(_, state)| *state == "enabled");
    assert!(disabled.iter().all(|(_, state)| *state == "disabled"), "{status}");
    enabled.into_iter().map(|(name, _)| name.to_string()).collect()
}

#[test]
fn tracers_are_enabled_shown_and_disabled() {
    let Some(program) = program() else { return };
    let run = started(User::Me, &[&program, "600", "2", "0"]);
    let pid = run.pid();
    assert!(enabled(pid).is_empty());
    refused(&tracer(pid, "enable", &["nothing"]), "no such tracer nothing");
    refused(&tracer(pid, "disable", &["count"]), "count is not enabled");
    done(&tracer(pid, "enable", &["count"]));
    refused(&tracer(pid, "enable", &["count"]), "count is already enabled");
    // Another one, on some of the same functions, which ends first.
    done(&tracer(pid, "enable", &["thread_checker", "-F", "fib", "--thread", "nobody"]));
    assert_eq!(enabled(pid), ["count", "thread_checker"]);
    lab::until("fib is called", || done(&tracer(pid, "print", &["thread_checker"])).contains(": fib"));
    done(&tracer(pid, "disable", &["thread_checker"]));
    assert_eq!(done(&tracer(pid, "status", &["count"])), "count\tenabled\n");
    let shown = done(&tracer(pid, "print", &["count"]));
    for name in ["fib", "caught", "jumped"] {
        assert!(shown.lines().any(|l| l.ends_with(&format!(" {name}"))), "{name}: {shown}");
    }
    done(&tracer(pid, "disable", &["count"]));
    assert!(enabled(pid).is_empty());
    is_right(run);
}

/// Exceptions, longjmp, handlers, calls that wait, 16 busy threads and a timer of 10 kHz, while tracers come and go.
#[test]
fn results_stay_what_they_are_while_tracers_come_and_go() {
    let Some(program) = program() else { return };
    let run = started(User::Me, &[&program, "1000", "16", "100"]);
    let pid = run.pid();
    for round in 0..rounds(3) {
        done(&tracer(pid, "enable", if round % 2 == 0 { &["count", "--no-time"] } else { &["count"] }));
        done(&tracer(pid, "enable", &["loop_checker", "--loop", "fib"]));
        done(&tracer(pid, "disable", &["count"]));
        done(&tracer(pid, "disable", &["loop_checker"]));
    }
    is_right(run);
}

#[test]
fn without_a_tracer_every_byte_is_the_program_s() {
    let script = "print('begun', flush=True)\nn = 0\nwhile True:\n    n += len(str(n))";
    if !lab::has("python3") {
        return testkit::skip("package", "no python3");
    }
    let mut run = started(User::Me, &["python3", "-c", script]);
    for _ in 0..rounds(3) {
        done(&tracer(run.pid(), "enable", &["count", "-F", "PyUnicode*", "-F", "PyLong*"]));
        done(&tracer(run.pid(), "disable", &["count"]));
    }
    comes_to_its_own_text(run.pid());
    run.must_run();
}

#[test]
fn the_examples_work() {
    let Some(program) = program() else { return };
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let in_c = lab::scratch().join("deepest.so");
    let gcc = Command::new("gcc")
        .args(["-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-I"])
        .arg(root.join("crates/tracer/include"))
        .arg("-o")
        .arg(&in_c)
        .arg(root.join("examples/tracer_c/deepest.c"))
        .status();
    assert!(gcc.expect("gcc").success());
    let target = root.join("target/tracer-example");
    let cargo = Command::new(env!("CARGO"))
        .args(["build", "--quiet", "--release", "--offline", "--manifest-path"])
        .arg(root.join("examples/tracer_rust/Cargo.toml"))
        .arg("--target-dir")
        .arg(&target)
        .env_remove("RUSTFLAGS")
        .status();
    assert!(cargo.expect("cargo").success());
    let run = started(User::Me, &[&program, "600", "2", "0"]);
    let libraries = [in_c, target.join("release/libtracer_example.so")];
    for (library, name) in libraries.iter().zip(["deepest", "calls"]) {
        done(&tracer(run.pid(), "enable", &[library.to_str().expect("UTF-8"), "-F", "fib"]));
        assert_eq!(done(&tracer(run.pid(), "status", &[name])), format!("{name}\tenabled\n"));
    }
    std::thread::sleep(std::time::Duration::from_millis(100));
    for name in ["deepest", "calls"] {
        done(&tracer(run.pid(), "disable", &[name]));
    }
    lab::kill("TERM", run.pid().into());
    let out = run.end();
    assert_eq!((out.code(), out.out()), (0, "right 0\n".into()), "{}", out.stderr);
    assert!(out.stderr.contains("deepest call: ") && out.stderr.contains("calls: "), "{}", out.stderr);
}
