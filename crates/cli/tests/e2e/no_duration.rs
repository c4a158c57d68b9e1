//! `--no-duration`: the calls, arguments and results of a full trace, but for what is only known at the entry of calls.

use crate::kernel::{POLLING, Rules, difference, kernel, possible, threads_of};
use crate::lab::{self, User};
use crate::record::{Recorded, number, record, report};
use crate::trace::{Trace, on_stderr};
use serde_json::Value;

/// Calls whose arguments are other ones, or none, without their entry.
const OTHER_ARGUMENTS: &[&str] = &[
    "execve",
    "rt_sigreturn",
    "poll",
    "ppoll",
    "select",
    "pselect6",
    "accept",
    "accept4",
    "recvfrom",
    "getsockname",
    "getpeername",
    "getsockopt",
    "sendfile",
    "ioctl",
];

/// Calls that have no result.
fn without_return(t: &Trace) -> usize {
    t.lines.iter().filter(|l| l.is_call() && l.result() == "?").count()
}

fn arguments_and_calls(stderr: &str) -> (u64, u64) {
    let stderr = stderr.lines().last().unwrap_or_default();
    let words: Vec<&str> = stderr.split_whitespace().collect();
    let before = |what: &str| {
        let at = words.iter().position(|w| w.starts_with(what)).unwrap_or_else(|| panic!("{what}: {stderr}"));
        words[at - 1].parse().unwrap_or_else(|e| panic!("{e}: {stderr}"))
    };
    assert!(stderr.contains("without return not captured (--no-duration), kernel backend"), "{stderr}");
    (before("argument"), before("call"))
}

/// Traces a program with and without durations, and wants the same of both but for what is counted.
#[track_caller]
fn same(command: &[&str], rules: &Rules) {
    let only_names = [OTHER_ARGUMENTS, rules.only_names].concat().leak();
    let rules = Rules { only_names, ..*rules };
    let mut last = String::new();
    for _ in 0..3 {
        let (mut full, ends) = (kernel(&[], command), kernel(&["--no-duration"], command));
        assert_eq!((full.outcome.status, full.outcome.out()), (ends.outcome.status, ends.outcome.out()), "{command:?}");
        assert_eq!(without_return(&ends), 0, "{}", ends.text());
        let (arguments, calls) = arguments_and_calls(&ends.outcome.stderr);
        assert!(arguments >= 3, "{}", ends.outcome.stderr);
        let unreturned = without_return(&full);
        full.lines.retain(|l| !l.is_call() || l.result() != "?");
        match difference(&threads_of(&full, &rules), &threads_of(&ends, &rules)) {
            None if calls == unreturned as u64 => return,
            None => last = format!("{calls} calls are said not to return, {unreturned} do not"),
            Some(d) => last = d,
        }
    }
    panic!("{command:?}: {last}");
}

macro_rules! same {
    ($($test:ident: $program:literal $args:expr, $rules:expr;)*) => {$(
        #[test]
        fn $test() {
            if !possible() {
                return;
            }
            let Some(program) = lab::program($program) else { return };
            let args: &[&str] = &$args;
            same(&[&[program.as_str()][..], args].concat(), &$rules);
        }
    )*};
}

same! {
    threads_are_the_same: "threads" ["100"], Rules { left_out: &["futex"], ..Rules::default() };
    forks_are_the_same: "forkstorm" ["300"], Rules { any_order: true, restarts: true, ..Rules::default() };
    vfork_and_exec_are_the_same: "vfork_exec" ["/bin/sh", "-c", "exit 9"], Rules::default();
    exec_from_a_thread_is_the_same: "exec_from_thread" ["/bin/sh", "-c", "exit 4"],
        Rules { left_out: POLLING, any_order: true, ..Rules::default() };
    signals_are_the_same: "signals" [], Rules::default();
    bad_pointers_are_the_same: "bad_pointers" [], Rules::default();
    bad_numbers_are_the_same: "bad_number" [], Rules::default();
    calls_cut_off_by_the_end_are_counted: "exit_group_in_flight" [],
        Rules { left_out: POLLING, any_order: true, ..Rules::default() };
}

#[test]
fn calls_of_the_32_bit_table_are_the_same() {
    if !possible() {
        return;
    }
    let Some(program) = lab::program("ia32") else { return };
    if lab::run(&mut lab::as_user(User::Me, &[&program])).code() == 77 {
        return lab::skip("kernel:IA32_EMULATION", "no 32-bit calls on this kernel");
    }
    same(&[&program], &Rules::default());
}

/// The call that a process is in from the beginning to the end of a trace.
#[test]
fn a_call_in_flight_at_the_end_is_counted() {
    if !possible() {
        return;
    }
    let sleeper = lab::start(lab::as_user(User::Me, &["sleep", "100"]).stdout(std::process::Stdio::null()));
    let pid = sleeper.pid().to_string();
    lab::until("its sleep", || {
        std::fs::read_to_string(format!("/proc/{pid}/syscall")).is_ok_and(|s| s.starts_with("230 "))
    });
    for (option, counted) in [("all", 1), ("openat", 0)] {
        let options = ["--no-duration", "-e", option, "--duration", "100ms", "-p", &pid];
        let out = lab::run(&mut lab::trapline(User::Me, &[&["trace"], &options[..]].concat()));
        assert_eq!((out.code(), arguments_and_calls(&out.stderr)), (0, (0, counted)), "{}", out.stderr);
    }
}

/// The events of a trace.
#[track_caller]
fn events(r: &Recorded) -> Vec<Value> {
    let out = report(User::Me, &r.trace, &["-q", "--as", "json"]);
    assert_eq!((out.code(), out.stderr.as_str()), (0, ""));
    out.out().lines().map(|l| serde_json::from_str(l).unwrap_or_else(|e| panic!("{e}: {l}"))).collect()
}

#[test]
fn a_trace_says_what_it_has_not() {
    if !possible() {
        return;
    }
    let r = record(User::Kernel, &["--no-duration"], &["sh", "-c", "cat /etc/hostname; exit 3"]);
    assert_eq!(r.outcome.code(), 3, "{}", r.outcome.stderr);
    let (arguments, calls) = arguments_and_calls(&r.outcome.stderr);
    let counted = &r.stats["not_captured"];
    assert_eq!((number(counted, "arguments"), number(counted, "calls")), (arguments, calls));
    let said = report(User::Me, &r.trace, &["-e", "openat"]);
    assert_eq!(said.code(), 0);
    assert_eq!(arguments_and_calls(&said.stderr.replace('\n', ", kernel backend\n")), (arguments, calls));
    // No call has a start; each has an end and its arguments.
    let all = events(&r);
    let calls: Vec<&Value> = all.iter().filter(|e| e["type"] == "syscall").collect();
    assert!(calls.len() > 20 && calls.iter().all(|c| c["start_ns"].is_null() && c["end_ns"].is_u64()), "{calls:?}");
    assert!(calls.iter().all(|c| c.get("cpu").is_none() && c["cpu_exit"].is_u64()));
    assert!(
        calls.iter().any(|c| c["name"] == "openat" && c["args"].to_string().contains("/etc/hostname")),
        "{calls:?}"
    );
    assert!(!calls.iter().any(|c| c["name"] == "exit_group"));
    r.check();
}

#[test]
fn what_needs_the_start_is_refused_of_such_a_trace() {
    if !possible() {
        return;
    }
    let r = record(User::Kernel, &["--no-duration", "-e", "openat,close ustack=4"], &["cat", "/etc/hostname"]);
    for options in [
        &["-T"][..],
        &["-c"],
        &["-C", "-U", "calls,name"],
        &["--latency"],
        &["--latency=path", "--hist"],
        &["--sort", "start"],
        &["--as", "folded", "--by", "dur"],
        &["--as", "timeline", "--syscalls"],
        &["--where", "dur > 1ms"],
        &["--where", "cpu == 0"],
    ] {
        let out = report(User::Me, &r.trace, options);
        assert_eq!((out.code(), out.out().as_str()), (2, ""), "{options:?} {}", out.stderr);
        assert!(
            out.stderr.lines().count() == 1 && out.stderr.contains("was recorded with --no-duration"),
            "{}",
            out.stderr
        );
    }
    let dir = r.trace.to_str().expect("UTF-8");
    let out = lab::run(&mut lab::trapline(User::Me, &["diff", "--as", "folded", "--by", "dur", dir, dir]));
    assert_eq!((out.code(), out.stderr.contains("was recorded with --no-duration")), (2, true), "{}", out.stderr);
    for options in [
        &["--as", "folded"][..],
        &["--as", "record"],
        &["--as", "stats"],
        &["-c", "-U", "calls,errors,name", "-S", "calls"],
        &["--where", "retval >= 0 && nsecs > 0"],
        &["-ttt", "--sort", "end"],
    ] {
        let out = report(User::Me, &r.trace, options);
        assert!(out.code() == 0 && !out.out().is_empty(), "{options:?} {}", out.stderr);
    }
}

#[test]
fn what_needs_the_start_is_refused_at_once() {
    for options in [
        &["-T"][..],
        &["-c"],
        &["--sort", "start"],
        &["--backend", "ptrace"],
        &["--where", "dur > 1ms"],
        &["-e", "none"],
    ] {
        let options = [&["--no-duration"], options, &["echo", "ran"]].concat();
        let out = on_stderr(User::Me, &options);
        assert!(out.code() == 2 || !possible() && out.code() == 1, "{options:?} {}", out.stderr);
        assert!(!out.out().contains("ran") && out.stderr.contains("--no-duration"), "{options:?} {}", out.stderr);
    }
    let out = lab::run(&mut lab::trapline(User::Me, &["record", "--no-duration", "-e", "function:main", "true"]));
    assert_eq!((out.code(), out.stderr.contains("functions have an entry and an exit")), (2, true), "{}", out.stderr);
}

/// Few calls are seen at their own tracepoints, which have no registers.
#[test]
fn few_calls_have_their_arguments_too() {
    if !possible() {
        return;
    }
    let run = |option: &[&str]| {
        let t =
            kernel(&[option, &["-e", "openat,execve,clone,wait4"]].concat(), &["sh", "-c", "cat /etc/hostname; true"]);
        threads_of(&t, &Rules { only_names: &["execve"], ..Rules::default() })
    };
    let (full, ends) = (run(&[]), run(&["--no-duration"]));
    assert_eq!(difference(&full, &ends), None);
    let told = on_stderr(User::Kernel, &["--no-duration", "--explain", "-e", "openat", "true"]);
    assert!(
        told.stderr.contains("its own tracepoint at its end") && told.stderr.contains("lost: durations"),
        "{}",
        told.stderr
    );
}
