//! Processes that outlive the command are waited for, and named.

use crate::lab::{self, Running, User, compiled, scratch};
use std::fs::{self, File};
use std::process::Stdio;

/// A session whose command has ended, and waits for a child until its standard input ends; trapline has said so in this file.
#[track_caller]
fn waiting(user: User, args: &[&str]) -> (Running, String) {
    let said = scratch().join("said");
    let mut command = lab::trapline(user, args);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(File::create(&said).expect("a file"));
    let mut running = lab::start(&mut command);
    let line = || fs::read_to_string(&said).unwrap_or_default();
    lab::until("the line", || line().contains("waiting for what it has started"));
    running.must_run();
    let line = line();
    assert!(line.contains(" (outlives)") && !line.contains("more"), "{line}");
    (running, line)
}

/// Lets the child go on, and waits for the end of the session.
#[track_caller]
fn end(mut running: Running) -> lab::Outcome {
    drop(running.child.stdin.take());
    running.end()
}

#[test]
fn functions_of_children_that_outlive_the_command_are_recorded() {
    let Some(program) = compiled("outlives", "outlives.c", &[]) else { return };
    for how in ["child", "daemon", "executes"] {
        let (running, said) = waiting(User::Me, &["graph", "--as", "functions", "--", &program, how]);
        let out = end(running);
        let shown = out.out();
        let row = shown.lines().find(|l| l.ends_with(" in_child")).unwrap_or_else(|| panic!("{how} {shown}"));
        assert_eq!(row.split_whitespace().nth(2), Some("10"), "{how} {row}");
        assert_eq!(out.code(), 7, "{said}");
    }
}

#[test]
fn a_trace_names_what_it_waits_for() {
    let Some(program) = compiled("outlives", "outlives.c", &[]) else { return };
    lab::each_backend(|user| {
        let trace = scratch().join("trace").display().to_string();
        let (running, said) = waiting(user, &["trace", "-e", "read", "-o", &trace, "--", &program, "child"]);
        assert_eq!(end(running).code(), 7, "{said}");
    });
}

#[test]
fn an_interrupt_ends_a_session_whose_command_has_ended() {
    let Some(program) = compiled("outlives", "outlives.c", &[]) else { return };
    let trace = scratch().join("trace").display().to_string();
    for args in [&["graph", "--as", "functions", "--"][..], &["trace", "-e", "read", "-o", &trace, "--"]] {
        let (mut running, said) = waiting(User::Me, &[args, &[program.as_str(), "daemon"]].concat());
        lab::kill("INT", running.pid().into());
        // The child has its standard output still.
        lab::until("the end", || running.child.try_wait().expect("wait").is_some());
        let out = end(running);
        assert_eq!(out.code(), 7, "{said}");
        assert!(!out.out().contains("in_child"), "{said} {}", out.out());
    }
}
