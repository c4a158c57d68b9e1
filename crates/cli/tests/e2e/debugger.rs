//! A debugger's breakpoints in a process whose functions are patched: both orders, and the results are those of the program alone.

use crate::lab::{self, User};
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdin, Command, Stdio};

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

/// A program that says which process it is, whose standard input is open; what is to be done with its process id.
fn ready(mut command: Command) -> (Child, ChildStdin, String) {
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
    let mut line = String::new();
    BufReader::new(child.stdout.take().expect("output")).read_line(&mut line).expect("a line");
    let pid = line.trim().strip_prefix("ready ").unwrap_or_else(|| panic!("{line}")).to_string();
    let input = child.stdin.take().expect("input");
    lab::until("the thread reads", || {
        std::fs::read_to_string(format!("/proc/{pid}/syscall")).is_ok_and(|call| call.starts_with("0 "))
    });
    (child, input, pid)
}

/// What gdb prints of a process.
fn gdb(pid: &str, commands: &[&str]) -> String {
    let commands = commands.iter().flat_map(|c| ["-ex", c]);
    let out = lab::run(Command::new("gdb").args(["-nx", "-q", "-batch", "-p", pid]).args(commands));
    out.out()
}

/// The functions of the frames in gdb's text, in order; none where gdb has no name.
fn functions(text: &str) -> Vec<String> {
    let frames = text.lines().filter(|l| l.starts_with('#'));
    let named = frames.filter_map(|l| l.split_once(' ')?.1.trim().split(" (").next().map(str::to_string));
    named.map(|name| name.rsplit_once(" in ").map_or(name.clone(), |(_, name)| name.to_string())).collect()
}

fn nested() -> Option<String> {
    if !lab::has("gdb") {
        lab::skip("package:gdb", "no debugger");
        return None;
    }
    testkit::compile("gcc", "nested", "nested.c", &["-O2", "-pthread", "-fno-optimize-sibling-calls"])
}

/// Stubs are frames of their own; without them, a backtrace is that of the program alone.
#[test]
fn backtraces_go_through_stubs() {
    let Some(program) = nested() else { return };
    let all = ["set backtrace past-main", "thread apply all backtrace"];
    let (mut alone, input, pid) = ready(Command::new(&program));
    let expected = functions(&gdb(&pid, &all));
    drop(input);
    assert!(alone.wait().expect("its end").success());
    assert!(expected.iter().filter(|f| *f == "middle").count() == 4 && expected.iter().any(|f| f == "waits"));
    for variant in [&[][..], &["-t", "1us"]] {
        let words = [&["graph", "-q", "--as", "functions=/dev/null"], variant, &["--", &program]].concat();
        let (mut traced, input, pid) = ready(lab::trapline(User::Me, &words));
        let text = gdb(&pid, &all);
        drop(input);
        assert!(traced.wait().expect("its end").success());
        let (stubs, found): (Vec<String>, Vec<String>) = functions(&text).into_iter().partition(|f| f == "[trapline]");
        // Those of seven calls in the first thread (main, which has not returned, too), and of one or two in each other.
        assert!(stubs.len() >= 10, "{text}");
        assert_eq!(found, expected, "{variant:?} {text}");
    }
}

/// Wherever a thread is in a stub, in the beginning of a function that was moved, or in the program, its outermost frame is found.
#[test]
fn a_backtrace_is_whole_at_each_instruction() {
    const STEPS: usize = 400;
    let Some(program) = nested() else { return };
    let words = ["graph", "-q", "--as", "functions=/dev/null", "--", &program];
    let (mut traced, input, pid) = ready(lab::trapline(User::Me, &words));
    let go = format!("shell printf x >/proc/{pid}/fd/0");
    // The first call after the wait comes to slow code.
    let begin = ["set pagination off", "break leaf", "ignore 1 1", &go, "continue"];
    let step = ["stepi", "info symbol $pc", "backtrace -1"];
    let steps = std::iter::repeat_n(step, STEPS).flatten();
    let commands: Vec<&str> = begin.into_iter().chain(steps).chain(["delete", "detach"]).collect();
    let text = gdb(&pid, &commands);
    drop(input);
    assert!(traced.wait().expect("its end").success(), "{text}");
    // One for the attach, and one for the breakpoint.
    let outermost: Vec<String> = functions(&text).into_iter().skip_while(|f| f != "main").collect();
    assert_eq!(outermost.iter().filter(|f| *f == "main").count(), STEPS, "{text}");
    let places: std::collections::BTreeSet<&str> = text.lines().filter(|l| l.starts_with("[trapline]")).collect();
    assert!(places.len() > 20 && text.lines().any(|l| l.starts_with("leaf")), "{places:?}");
}

/// The debugger opens what the loader's list names: that must be no descriptor of its own.
#[test]
fn a_debugger_attaches_to_a_process_that_trapline_has_attached_to() {
    let Some(program) = nested() else { return };
    if !lab::may_attach(User::Me) {
        return;
    }
    let (mut traced, input, pid) = ready(Command::new(&program));
    let args = ["graph", "-q", "-p", &pid, "--duration", "0.1", "--as", "functions=/dev/null"];
    lab::run(&mut lab::trapline(User::Me, &args));
    let text = gdb(&pid, &["backtrace -1", "info sharedlibrary"]);
    drop(input);
    assert!(traced.wait().expect("its end").success());
    assert_eq!(functions(&text).last().map(String::as_str), Some("main"), "{text}");
    assert!(!text.contains("/proc/self/fd/"), "{text}");
}

/// Breakpoints at functions by their names are hit as often as without trapline, wherever the debugger puts them.
#[test]
fn breakpoints_by_name_are_hit_as_often() {
    const FUNCTIONS: [&str; 5] = ["Square::area", "Circle::area", "leaf", "catches", "deep"];
    if !lab::has("gdb") {
        return lab::skip("package:gdb", "no debugger");
    }
    let breaks = FUNCTIONS.map(|f| format!("break {f}"));
    let ignore: Vec<String> = (1..=FUNCTIONS.len()).map(|n| format!("ignore {n} 100000")).collect();
    let ways = [
        ("g++", "debugged_names", &["-O2"][..]),
        ("g++", "debugged_names_o0", &["-O0", "-fcf-protection"]),
        ("g++", "debugged_names_small", &["-Os"]),
        ("clang++", "debugged_names_clang_o0", &["-O0"]),
        ("clang++", "debugged_names_clang", &["-O1", "-gdwarf-4"]),
        ("clang++", "debugged_names_clang_o2", &["-O2"]),
        ("clang++", "debugged_names_clang_frames", &["-O1", "-fno-omit-frame-pointer"]),
    ];
    for (compiler, name, flags) in ways {
        let Some(program) = testkit::compile(compiler, name, "debugged_names.cc", &[flags, &["-g"]].concat()) else {
            continue;
        };
        let debugged = |command: Command| {
            let (mut child, input, pid) = ready(command);
            let go = format!("shell echo >/proc/{pid}/fd/0");
            let commands = breaks.iter().chain(&ignore).map(String::as_str);
            let commands: Vec<&str> = commands.chain([&*go, "continue", "info breakpoints"]).collect();
            let text = gdb(&pid, &commands);
            drop(input);
            let status = child.wait().expect("its end");
            let hits = text.lines().filter_map(|l| l.split_once("already hit ")).map(|(_, n)| n.to_string());
            (status.code(), hits.collect::<Vec<_>>(), text)
        };
        let mut alone = Command::new(&program);
        alone.arg(CALLS);
        let alone = debugged(alone);
        assert!(alone.0 > Some(0) && alone.1.len() == FUNCTIONS.len(), "{name} {}", alone.2);
        let argv = ["graph", "-q", "--as", "functions=/dev/null", "--", &program, CALLS];
        let traced = debugged(lab::trapline(User::Me, &argv));
        assert_eq!((traced.0, &traced.1), (alone.0, &alone.1), "{name} {}", traced.2);
    }
}
