//! What the kernel backend shows beyond calls and ends, line by line beside the ptrace backend: ids in pid namespaces, signals,
//! stops, names.

use crate::kernel::{Rules, kernel, possible, ptrace, same};
use crate::lab::{self, User};
use crate::trace::{Trace, arguments, lines_of};
use std::collections::{BTreeMap, BTreeSet};

/// A trace by trapline itself in a pid namespace of its own, with `/proc` to match.
fn inside(backend: &str, options: &[&str], command: &[&str]) -> Trace {
    let (args, file) = arguments(&[&["--backend", backend], options].concat(), command);
    let exe = lab::dir().join("trapline").display().to_string();
    let argv: Vec<&str> =
        ["unshare", "-pf", "--mount-proc", &exe].into_iter().chain(args.iter().map(|a| &a[..])).collect();
    let outcome = lab::run(&mut lab::as_user(User::Me, &argv));
    Trace { outcome, lines: lines_of(&file) }
}

/// The ids that makers of children were told, and the threads whose end is shown.
fn made_and_ended(t: &Trace) -> (BTreeSet<u32>, BTreeSet<u32>) {
    let made = ["fork", "vfork", "clone", "clone3"].iter().flat_map(|c| t.calls(c));
    let made = made.filter_map(|l| l.result().split(' ').next()?.parse().ok()).collect();
    (made, t.with("+++ exited with").iter().map(|l| l.tid).collect())
}

#[test]
fn ids_are_those_of_the_namespace_that_trapline_runs_in() {
    if !possible() {
        return;
    }
    if !lab::run(&mut lab::as_user(User::Me, &["unshare", "-pf", "--mount-proc", "true"])).status.success() {
        return lab::skip("namespace", "no pid namespace can be made");
    }
    for backend in ["ptrace", "kernel"] {
        let t = inside(backend, &[], &["sh", "-c", "echo $$; /bin/true; (/bin/true); sh -c '/bin/true; exit 3'"]);
        assert_eq!(t.outcome.code(), 3, "{}", t.text());
        let first = t.outcome.out().trim().parse::<u32>().expect("a pid");
        let (made, mut ended) = made_and_ended(&t);
        assert!(ended.remove(&first), "{backend}: {}", t.text());
        // A fresh namespace counts from 1.
        assert!(made == ended && made.len() == 4 && made.iter().all(|pid| *pid < 100), "{backend}: {}", t.text());
        assert!(t.lines.iter().all(|l| l.tid == first || made.contains(&l.tid)), "{backend}: {}", t.text());
    }
    // A thread that calls execve takes the id of its leader.
    let Some(program) = lab::program("exec_from_thread") else { return };
    for backend in ["ptrace", "kernel"] {
        let t = inside(backend, &["-e", "execve,exit_group"], &[&program, "/bin/sh", "-c", "exit 4"]);
        assert_eq!(t.outcome.code(), 4, "{}", t.text());
        let last = t.one("+++ exited with 4 +++");
        assert!(t.one("+++ superseded by execve").tid == last.tid && last.tid < 100, "{backend}: {}", t.text());
    }
}

#[test]
fn ids_of_a_namespace_below_are_those_of_trapline_s_own() {
    if !possible() {
        return;
    }
    if !lab::run(&mut lab::as_user(User::Me, &["unshare", "-pf", "true"])).status.success() {
        return lab::skip("namespace", "no pid namespace can be made");
    }
    let command = ["unshare", "-pf", "sh", "-c", "/bin/true; (/bin/true); exit 0"];
    let runs: [fn(&str, &[&str]) -> Trace; 2] = [
        |backend, command| if backend == "kernel" { kernel(&[], command) } else { ptrace(&[], command) },
        |backend, command| inside(backend, &[], command),
    ];
    for run in runs {
        for backend in ["ptrace", "kernel"] {
            let t = run(backend, &command);
            // What calls return is what the target sees: the first process of its namespace is 1.
            let results: BTreeMap<u32, &str> = t.calls("getpid").iter().map(|l| (l.tid, l.result())).collect();
            assert!(results.values().any(|r| *r == "1"), "{backend}: {}", t.text());
            let ended: BTreeSet<u32> = t.with("+++ exited with").iter().map(|l| l.tid).collect();
            let all: BTreeSet<u32> = t.lines.iter().map(|l| l.tid).collect();
            assert!(ended == all && all.len() == 4 && !all.contains(&1), "{backend}: {}", t.text());
        }
    }
}

const SIGNALS: Rules = Rules { left_out: &[], only_names: &[], any_order: false, restarts: false, signals: true };

#[test]
fn every_delivery_is_equal() {
    if !possible() {
        return;
    }
    let Some(program) = lab::program("signals") else { return };
    for options in [&[][..], &["-e", "kill"], &["-e", "none"]] {
        same(options, &[&program], &SIGNALS);
    }
}

#[test]
fn fatal_signals_are_equal() {
    if !possible() {
        return;
    }
    // To itself, from a child while it waits, while it runs, and by the kernel.
    for script in [
        "kill -TERM $$",
        "kill -USR1 $$",
        "kill -ALRM $$; echo never",
        "ulimit -c 0; kill -SEGV $$",
        "ulimit -c 0; kill -QUIT $$",
        "trap '' USR1; kill -USR1 $$; kill -TERM $$",
    ] {
        for options in [&[][..], &["-e", "kill"], &["-e", "none"]] {
            same(options, &["sh", "-c", script], &SIGNALS);
        }
    }
    for script in ["(sleep 0.1; kill -TERM $$) & exec sleep 10", "(sleep 0.1; kill -HUP $$) & while :; do :; done"] {
        for backend in ["ptrace", "kernel"] {
            let t = if backend == "kernel" {
                kernel(&[], &["sh", "-c", script])
            } else {
                ptrace(&[], &["sh", "-c", script])
            };
            let (signal, name) = if script.contains("TERM") { (15, "SIGTERM") } else { (1, "SIGHUP") };
            assert_eq!(t.outcome.code(), 128 + signal, "{}", t.text());
            let given = t.one(&format!("--- {name} {{si_signo={name}, si_code=SI_USER, si_pid="));
            let end = t.one(&format!("+++ killed by {name} +++"));
            assert_eq!(given.tid, end.tid, "{backend}: {}", t.text());
            let last: Vec<&str> =
                t.lines.iter().filter(|l| l.tid == end.tid).map(|l| &l.text[..]).rev().take(3).collect();
            assert!(last[0].starts_with("+++ ") && last[1].starts_with("--- "), "{backend}: {}", t.text());
            // The call that it slept in has been left for the signal.
            let left = last[2].starts_with("clock_nanosleep(") && last[2].contains(" = ? ERESTART");
            assert!(left || signal == 1, "{backend}: {}", t.text());
        }
    }
    // By the kernel, with no siginfo of its own.
    for run in [kernel, ptrace] {
        let t =
            run(&["-e", "write"], &["sh", "-c", "sleep 0.2 | { exec sleep 0.1; }; { sleep 0.1; echo lost; } | true"]);
        let lost = t.one("--- SIGPIPE {si_signo=SIGPIPE, si_code=SI_USER, si_pid=");
        assert!(lost.text.contains(&format!("si_pid={}, ", lost.tid)), "{}", t.text());
        assert_eq!(t.one("+++ killed by SIGPIPE +++").tid, lost.tid, "{}", t.text());
    }
}

#[test]
fn stops_are_equal() {
    if !possible() {
        return;
    }
    let Some(program) = lab::program("stop_cont") else { return };
    for run in [kernel, ptrace] {
        for options in ["all", "kill,exit_group", "none"] {
            let t = run(&["-e", options], &[&program]);
            assert_eq!(t.outcome.code(), 0, "{}", t.text());
            let child = t.one("--- stopped by SIGSTOP ---").tid;
            let mine: Vec<&str> = t.lines.iter().filter(|l| l.tid == child).map(|l| &l.text[..]).collect();
            let at = mine.iter().position(|l| l.starts_with("--- SIGSTOP")).expect("a signal");
            let mut expected =
                vec!["--- SIGSTOP {si_signo=SIGSTOP, si_code=SI_USER", "--- stopped by SIGSTOP ---", "--- SIGCONT {"];
            if options != "none" {
                assert!(mine[at - 1].starts_with("kill(") && mine[at - 1].contains(", SIGSTOP) "), "{}", t.text());
                expected.push("exit_group(5)");
            }
            expected.push("+++ exited with 5 +++");
            assert_eq!(mine.len() - at, expected.len(), "{}", t.text());
            assert!(mine[at..].iter().zip(expected).all(|(l, e)| l.starts_with(e)), "{}", t.text());
        }
    }
    // Every thread of a group stops, once.
    let Some(program) = lab::program("blocked_threads") else { return };
    for run in [kernel, ptrace] {
        let t = run(&[], &[&program]);
        let stopped: BTreeSet<u32> = t.with("--- stopped by SIGSTOP ---").iter().map(|l| l.tid).collect();
        assert_eq!((stopped.len(), t.with("--- stopped by").len()), (4, 4), "{}", t.text());
        t.one("--- SIGSTOP {si_signo=SIGSTOP");
    }
}

#[test]
fn a_terminal_stop_of_an_orphaned_group_is_none() {
    if !possible() {
        return;
    }
    if !lab::has("setsid") {
        return lab::skip("package:util-linux", "no setsid");
    }
    for run in [kernel, ptrace] {
        // In a session of its own nobody could continue it: the kernel does not stop it.
        let t = run(&["-e", "none"], &["setsid", "sh", "-c", "kill -TSTP $$; exit 3"]);
        assert_eq!(t.outcome.code(), 3, "{}", t.text());
        t.one("--- SIGTSTP {si_signo=SIGTSTP");
        t.lacks("--- stopped by");
        // As its own group in the session of its parent it is stopped.
        let script = "set -m; sh -c 'kill -TSTP $$; exit 3' & sleep 0.2; kill -CONT $!; wait $!";
        let t = run(&["-e", "none"], &["sh", "-c", script]);
        assert_eq!(t.outcome.code(), 3, "{}", t.text());
        t.one("--- stopped by SIGTSTP ---");
    }
}

#[test]
fn an_ignored_signal_comes_after_the_call_that_it_arrives_in() {
    if !possible() {
        return;
    }
    for run in [kernel, ptrace] {
        let t = run(&["-e", "wait4,vfork,clone"], &["sh", "-c", "/bin/true; (exit 3); /bin/true; exit 0"]);
        let first = t.calls("clone")[0].tid;
        let mine: Vec<&str> = t.lines.iter().filter(|l| l.tid == first).map(|l| &l.text[..]).collect();
        let children = mine.iter().filter(|l| l.starts_with("--- SIGCHLD {")).count();
        assert_eq!(children, 3, "{}", t.text());
        for (at, line) in mine.iter().enumerate().filter(|(_, l)| l.starts_with("--- SIGCHLD {")) {
            // What it tells of has been made: its maker has returned.
            let pid = line.split("si_pid=").nth(1).and_then(|l| l.split(',').next()).expect("a pid");
            let made = |l: &&&str| l.rsplit(" = ").next().is_some_and(|r| r == pid) && !l.starts_with("wait4");
            assert!(mine[..at].iter().any(|l| made(&l)), "{}", t.text());
        }
    }
}

#[test]
fn an_execve_from_a_page_that_is_not_resident() {
    if !possible() {
        return;
    }
    let Some(program) = lab::program("nonresident_exec") else { return };
    let dir = lab::scratch();
    for run in [kernel, ptrace] {
        for options in [&["-e", "execve"][..], &[]] {
            let t = run(options, &[&program, dir.to_str().expect("UTF-8"), "/bin/true"]);
            assert_eq!(t.outcome.code(), 0, "{}", t.text());
            t.one("execve(\"/no/such/program\", [\"fails\"], 0x");
            let works = t.one("execve(\"/bin/true\", [\"works\", \"well\"], 0x");
            assert!(works.text.contains(" /* 0 vars */)") && works.result() == "0", "{}", t.text());
        }
    }
}

#[test]
fn names_of_descriptors_are_equal() {
    if !possible() {
        return;
    }
    let (Some(fds), Some(network), Some(named)) =
        (lab::program("fds"), lab::program("families_net"), lab::program("descriptors"))
    else {
        return;
    };
    let dir = lab::scratch();
    let dir = dir.to_str().expect("UTF-8");
    let network_rules = Rules {
        only_names: &["timer_delete", "timer_create", "read", "recvfrom", "ppoll", "pselect6"],
        ..Rules::default()
    };
    for option in ["-y", "-yy"] {
        same(&[option], &[&fds], &Rules::default());
        same(&[option], &[&network], &network_rules);
        same(&[option], &[&named, dir], &Rules::default());
        same(
            &[option],
            &["cat", "/etc/hostname", "/proc/self/comm", "/sys/kernel/mm/transparent_hugepage/enabled"],
            &READS,
        );
    }
    // Only calls on a file, however it is reached.
    same(&["-P", "/etc/hostname"], &["sh", "-c", "cd /etc; exec cat <hostname"], &Rules::default());
    let t = kernel(&["-yy"], &[&named, dir]);
    for name in [
        "<pipe:[",
        "<anon_inode:[eventfd]>",
        "<anon_inode:[eventpoll]>",
        "<anon_inode:[pidfd]>",
        "</memfd:named>(deleted)",
        "/gone>(deleted)",
        "/below/real>",
        "<TCP:[127.0.0.1:",
        "->127.0.0.1:",
        "<UNIX-STREAM:[\"",
        "</dev/null<char 1:3>>",
        "AT_FDCWD</proc/sys/kernel>",
    ] {
        t.has(name);
    }
}

/// What is read from /proc depends on the moment.
const READS: Rules = Rules {
    left_out: &[],
    only_names: &["read", "write", "mmap", "fadvise64"],
    any_order: false,
    restarts: false,
    signals: false,
};

#[test]
fn calls_that_seccomp_answers_before_they_begin_are_equal() {
    if !possible() {
        return;
    }
    let Some(program) = lab::program("refused") else { return };
    // Which thread waits for which, and how often, differs.
    let rules = Rules { left_out: &["futex"], only_names: &["ioctl"], any_order: true, ..Rules::default() };
    for (how, getppid) in [
        ("errno", "-1 ENOMSG"),
        ("fork", "-1 ENOMSG"),
        ("exec", "-1 ENOMSG"),
        ("trap", "110"),
        ("kill", "110"),
        ("kill-thread", "?"),
        ("notify", "4242"),
    ] {
        for options in [&[][..], &["-e", "getppid,open"]] {
            same(options, &[&program, how], &rules);
            let t = kernel(options, &[&program, how]);
            let [line] = t.calls("getppid")[..] else { panic!("{how}: {}", t.text()) };
            assert!(line.result().starts_with(getppid), "{how}: {}", t.text());
        }
    }
    // Filters are asked at the end of such a call, and its duration is unknown.
    let t = kernel(&["-T", "--where", "retval < 0 && args.flags == 0", "-e", "open"], &[&program, "errno"]);
    t.has("open(\"/refused\", O_RDONLY) ");
    t.has("= -1 ENOMSG (No message of desired type)");
    t.lacks("ENOMSG (No message of desired type) <");
}
