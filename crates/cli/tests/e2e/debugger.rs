//! A debugger's breakpoints in a process whose functions are patched: both orders, and the results are those of the program alone.

use crate::lab::{self, User};
use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};

/// Calls that the program makes, in words.
const CALLS: &str = "300";
/// gdb stops at the second instruction, where the jump of a patched function is.
const STOPS: [&str; 8] = ["-nx", "-q", "-batch", "-ex", "break *called+4", "-ex", "ignore 1 100000", "-ex"];

fn program() -> Option<String> {
    if !lab::has("gdb") {
        lab::skip("package:gdb", "no debugger");
        return None;
    }
    testkit::compile("gcc", "debugged", "debugged.c", &["-O1", "-g", "-fcf-protection"])
}

fn hits(text: &str) -> bool {
    text.contains(&format!("breakpoint already hit {CALLS} times")) && text.contains("exited normally")
}

#[test]
fn breakpoints_are_hit_in_functions_that_are_patched() {
    let Some(program) = program() else { return };
    lab::each_attacher(|user| {
        let dir = lab::scratch();
        testkit::open_to_all(&dir, 0o777);
        let fifo = dir.join("fifo").display().to_string();
        lab::run(&mut lab::as_user(user, &["mkfifo", &fifo]));
        let words =
            ["graph", "--as", "functions", "-q", "--", "sh", "-c", "exec \"$@\" <\"$0\"", &fifo, &program, CALLS];
        let mut graph = lab::trapline(user, &words);
        let mut graph = graph.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("trapline");
        let input = std::fs::File::options().write(true).open(&fifo).expect("the program reads");
        let mut output = BufReader::new(graph.stdout.take().expect("output"));
        let mut line = String::new();
        output.read_line(&mut line).expect("a line");
        let pid = line.trim().strip_prefix("ready ").unwrap_or_else(|| panic!("{line}"));
        let go = format!("shell echo >{fifo}");
        let argv = [&["gdb"], &STOPS[..], &[&go, "-ex", "continue", "-ex", "info breakpoints", "-p", pid]].concat();
        let gdb = lab::run(&mut lab::as_user(user, &argv));
        assert!(hits(&gdb.out()), "{} {}", gdb.out(), gdb.stderr);
        drop(input);
        let mut rest = String::new();
        output.read_to_string(&mut rest).expect("text");
        assert!(graph.wait().expect("its end").success(), "{rest}");
        assert!(rest.starts_with(&format!("{CALLS}\n")), "{rest}");
        let called = rest.lines().find(|l| l.ends_with(" called")).unwrap_or_else(|| panic!("{rest}"));
        assert!(called.split_whitespace().any(|word| word == CALLS), "{rest}");
    });
}

#[test]
fn functions_with_a_breakpoint_are_left_alone_and_named() {
    let Some(program) = program() else { return };
    let dir = lab::scratch();
    std::fs::write(dir.join("line"), "\n").expect("a file");
    let run = format!("run {CALLS} <{}", dir.join("line").display());
    let argv = [&["graph", "--as", "functions", "--", "gdb"], &STOPS[..], &[&run, "-ex", "info breakpoints", &program]];
    let out = lab::run(lab::trapline(User::Me, &argv.concat()).current_dir(&dir));
    assert!(hits(&out.out()) && out.out().contains(&format!("\n{CALLS}\n")), "{} {}", out.out(), out.stderr);
    let named = |l: &str| l.contains("could not be patched: called") && l.contains("a breakpoint is there");
    assert!(out.stderr.lines().any(named), "{}", out.stderr);
}

#[test]
fn a_process_that_a_debugger_has_is_left_to_it() {
    let Some(program) = program() else { return };
    let dir = lab::scratch();
    std::fs::write(dir.join("line"), "\n").expect("a file");
    let run = format!("run {CALLS} <{}", dir.join("line").display());
    let attach = format!(
        "python import subprocess; subprocess.run([\"{}\", \"graph\", \"-p\", str(gdb.selected_inferior().pid)])",
        env!("CARGO_BIN_EXE_trapline")
    );
    let stop = ["-nx", "-q", "-batch", "-ex", "break called", "-ex", &run, "-ex", &attach];
    let out = lab::run(Command::new("gdb").args(stop).args(["-ex", "delete", "-ex", "continue", &program]));
    assert!(out.out().contains(&format!("\n{CALLS}\n")) && out.out().contains("exited normally"), "{}", out.out());
    assert!(out.stderr.contains("already traced by process") && out.stderr.contains("(gdb)"), "{}", out.stderr);
}
