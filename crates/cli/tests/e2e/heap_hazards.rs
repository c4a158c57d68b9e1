//! The programs that do what breaks tracers (`tests/programs/hazards*`), under `trapline heap`: what they print, how they end and what
//! they write is what an untraced run prints.

use crate::hazards::{CPP, PROCESSES, Program, RUST, SIGNALS, STACKS, files, prepare};
use crate::lab::{self, User};

#[track_caller]
fn same(program: &Program, scenarios: &[&str]) {
    let Some(built) = program.build("shared", &[]) else { return };
    for scenario in scenarios {
        let dir = lab::scratch();
        let bare = lab::run(prepare(&mut lab::as_user(User::Me, &[&*built, *scenario]), &dir));
        let (bare_files, _) = files(&dir.join("w"));
        let json = format!("json={}", dir.join("json").display());
        let argv = ["heap", "-q", "--as", &json, "--", &*built, *scenario];
        let traced = lab::run(prepare(&mut lab::trapline(User::Me, &argv), &dir));
        let (traced_files, _) = files(&dir.join("w"));
        // trapline's own lines say what it cannot show.
        let own = |l: &&str| !l.starts_with("trapline: ");
        let said: String = traced.stderr.lines().filter(own).map(|l| format!("{l}\n")).collect();
        assert_eq!((traced.code(), traced.out(), said), (bare.code(), bare.out(), bare.stderr), "{scenario}");
        assert_eq!(traced_files, bare_files, "{scenario}");
        let json = std::fs::read(dir.join("json")).expect("a report");
        let json: serde_json::Value = serde_json::from_slice(&json).expect("JSON");
        assert!(json["stacks"].is_array(), "{scenario}");
        let _ = std::fs::remove_dir_all(dir);
    }
}

macro_rules! hazards {
    ($($test:ident $program:expr, $scenarios:expr);* $(;)?) => { $(#[test] fn $test() { same(&$program, &$scenarios) })* };
}

hazards! {
    stacks STACKS, ["all", "Exit_handlers"];
    signals SIGNALS, ["all", "Dies_of_overflow", "Killed", "Aborted"];
    processes PROCESSES, [
        "all", "Chain", "Exec_in_a_thread", "Seccomp_strict", "Seccomp_kill", "Seccomp_refuse", "Seccomp_signals", "Dispatch",
    ];
    cpp CPP, ["all", "Uncaught", "Not_allowed", "Terminated"];
    rust RUST, ["all", "Panic_message", "Aborting_panic", "Unwinds_main"];
}

#[test]
fn handlers_that_libc_does_not_know_of() {
    let flags = ["-O2", "-fnon-call-exceptions"];
    let Some(program) = testkit::compile("g++", "heap_by_number", "handlers_by_number.cc", &flags) else { return };
    let alone = lab::run(&mut lab::as_user(User::Me, &[&program]));
    let traced = lab::run(&mut lab::trapline(User::Me, &["heap", "-q", "--as", "json=/dev/null", "--", &program]));
    assert_eq!((traced.code(), traced.out()), (alone.code(), alone.out()), "{}", traced.stderr);
}
