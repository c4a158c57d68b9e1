//! Threads, forks, execs and ends: nothing missed, nothing twice.

use crate::lab::{self, User, each_backend, each_ptracer};
use crate::trace::{arguments, trace};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Stdio;

const SETS: [&[&str]; 3] =
    [&[], &["-e", "getppid,nanosleep,clone,clone3,wait4,exit_group,execve"], &["--no-seccomp", "-e", "!mmap"]];

#[test]
fn threads_have_all_their_calls() {
    each_backend(|user| {
        let Some(program) = lab::program("threads") else { return };
        for options in SETS {
            let t = trace(user, options, &[&program, "150"]);
            assert_eq!(t.outcome.out(), "2400\n");
            assert_eq!(t.calls("clone3").len() + t.calls("clone").len(), 8, "{}", t.text());
            for name in ["getppid", "nanosleep"] {
                let calls = t.calls(name);
                assert_eq!(calls.len(), 8 * 150, "{name} {options:?}");
                let tids: BTreeSet<u32> = calls.iter().map(|l| l.tid).collect();
                assert_eq!(tids.len(), 8);
            }
            assert_eq!(t.with("+++ exited with 0 +++").len(), 9);
        }
    });
}

#[test]
fn fork_storm_misses_no_process() {
    const N: usize = 300;
    each_backend(|user| {
        let Some(program) = lab::program("forkstorm") else { return };
        for options in SETS {
            let t = trace(user, options, &[&program, &N.to_string()]);
            assert_eq!((t.outcome.out().as_str(), t.outcome.code()), ("300\n", 0));
            let forks: Vec<_> = t.calls("clone").into_iter().filter(|l| l.result().parse::<u32>().is_ok()).collect();
            assert_eq!(forks.len(), N, "{options:?}");
            assert_eq!(t.calls("getppid").len(), N);
            assert_eq!(t.calls("exit_group").len(), N + 1);
            assert_eq!(t.with("+++ exited with").len(), N + 1);
            assert_eq!(t.calls("wait4").into_iter().filter(|l| l.result().parse::<u32>().is_ok()).count(), N);
            let mut statuses = BTreeMap::new();
            for l in t.with("+++ exited with") {
                *statuses.entry(l.text.clone()).or_insert(0usize) += 1;
            }
            // 300 children with i & 63, and the parent's 0.
            assert_eq!(statuses["+++ exited with 0 +++"], 6);
            assert_eq!(statuses["+++ exited with 63 +++"], 4);
        }
    });
}

#[test]
fn execs_of_children_are_all_seen() {
    each_backend(|user| {
        let script = "i=0; while [ $i -lt 40 ]; do /bin/true; i=$((i+1)); done; /bin/true | /bin/true | /bin/true";
        for options in [&[][..], &["-e", "execve"]] {
            let t = trace(user, options, &["sh", "-c", script]);
            let execs = t.calls("execve");
            assert_eq!(execs.len(), 44, "{}", t.text());
            assert!(execs.iter().all(|l| l.result() == "0"));
            assert_eq!(t.with("+++ exited with 0 +++").len(), 44);
        }
    });
}

#[test]
fn vfork_and_a_failing_exec() {
    each_backend(|user| {
        let Some(program) = lab::program("vfork_exec") else { return };
        for options in [&[][..], &["-e", "vfork,execve,wait4,exit_group"]] {
            let t = trace(user, options, &[&program, "/bin/sh", "-c", "exit 9"]);
            assert_eq!(t.outcome.code(), 9);
            let forks: Vec<u32> = t.calls("vfork").iter().filter_map(|l| l.result().parse().ok()).collect();
            assert_eq!(forks.len(), 2, "{}", t.text());
            let failed = t.one("execve(\"/nonexistent/program\"");
            assert_eq!((failed.tid, failed.result()), (forks[1], "-1 ENOENT (No such file or directory)"));
            let worked = t.one("execve(\"/bin/sh\"");
            assert_eq!((worked.tid, worked.result()), (forks[0], "0"));
            t.one("+++ exited with 127 +++");
            assert_eq!(t.one("WEXITSTATUS(s) == 127").result(), forks[1].to_string());
        }
    });
}

#[test]
fn exec_from_a_thread_supersedes_the_leader() {
    each_backend(|user| {
        let Some(program) = lab::program("exec_from_thread") else { return };
        for options in [&[][..], &["-e", "execve,pause,clone,clone3,exit_group"]] {
            let t = trace(user, options, &[&program, "/bin/sh", "-c", "exit 4"]);
            assert_eq!(t.outcome.code(), 4, "{}", t.text());
            let leader = t.lines[0].tid;
            let made = [t.calls("clone"), t.calls("clone3")].concat();
            let threads: Vec<u32> = made.iter().filter_map(|l| l.result().split(' ').next()?.parse().ok()).collect();
            assert_eq!(threads.len(), 2, "{}", t.text());
            let line = t.one("+++ superseded by execve in pid ");
            assert_eq!(
                (line.tid, line.text.as_str()),
                (leader, format!("+++ superseded by execve in pid {} +++", threads[1]).as_str())
            );
            // The exec ends under the leader's id; the pauses never end.
            let exec = t.one("execve(\"/bin/sh\"");
            assert_eq!((exec.tid, exec.result()), (leader, "0"), "{}", t.text());
            let pauses = t.calls("pause");
            let paused: BTreeSet<u32> = pauses.iter().map(|l| l.tid).collect();
            assert_eq!(paused, BTreeSet::from([leader, threads[0]]), "{}", t.text());
            assert!(pauses.iter().all(|l| l.text.ends_with("= ?")), "{}", t.text());
            // One end for the process, one for the idle thread.
            assert_eq!(t.with("+++ exited with 4 +++").len(), 1);
            assert_eq!(t.with("+++ exited with 4 +++")[0].tid, leader);
            assert_eq!(t.lines.iter().filter(|l| l.tid == threads[0] && l.text.starts_with("+++ ")).count(), 1);
        }
    });
}

#[test]
fn calls_cut_off_by_exit_group_have_no_result() {
    each_backend(|user| {
        let Some(program) = lab::program("exit_group_in_flight") else { return };
        for options in [&[][..], &["-e", "read,futex,pause,exit_group"], &["-e", "status=unfinished"]] {
            let t = trace(user, options, &[&program]);
            assert_eq!(t.outcome.code(), 7);
            for call in ["read(", "futex(", "pause("] {
                let line = t.lines.iter().find(|l| l.text.starts_with(call) && l.is_call() && l.text.ends_with("= ?"));
                assert!(line.is_some(), "{call} {}", t.text());
            }
            assert_eq!(t.one("exit_group(7)").result(), "?");
            assert_eq!(t.with("+++ exited with 7 +++").len(), 4);
        }
    });
}

#[test]
fn without_following_only_the_first_thread_is_shown() {
    each_backend(|user| {
        for name in ["threads", "forkstorm"] {
            let Some(program) = lab::program(name) else { return };
            for options in [&["--no-follow"][..], &["--no-follow", "-e", "getppid,exit_group,clone,clone3"]] {
                let t = trace(user, options, &[&program, "5"]);
                assert_eq!(t.outcome.code(), 0);
                assert_eq!(t.lines.iter().map(|l| l.tid).collect::<BTreeSet<_>>().len(), 1, "{}", t.text());
                assert!(t.calls("getppid").is_empty());
                assert!(t.calls("clone").len() + t.calls("clone3").len() >= 5);
            }
        }
    });
}

#[test]
fn a_prefix_appears_with_the_second_process() {
    each_backend(|user| {
        let script = "x=$(/bin/true); exit 0";
        let out = crate::trace::on_stderr(user, &["-q", "sh", "-c", script]);
        let first = out.stderr.lines().position(|l| l.starts_with("[pid ")).expect("a prefix");
        assert!(first > 5, "{}", out.stderr);
        assert!(out.stderr.lines().skip(first).all(|l| l.starts_with("[pid ")), "{}", out.stderr);
        let before: Vec<&str> = out.stderr.lines().take(first).collect();
        assert!(before.iter().all(|l| !l.contains("clone(") && !l.contains("vfork(") && !l.contains("fork(")));
        let alone = crate::trace::on_stderr(user, &["-q", "/bin/true"]);
        assert!(!alone.stderr.contains("[pid "), "{}", alone.stderr);
    });
}

/// Events of `--as json`, those that are whole.
pub fn json_events(file: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let whole = text.rfind('\n').map_or(0, |end| end + 1);
    text[..whole].lines().map(|l| serde_json::from_str(l).unwrap_or_else(|e| panic!("{e}: {l}"))).collect()
}

fn traced_as_json(user: User, options: &[&str], command: &[&str]) -> Vec<Value> {
    let (args, file) = arguments(&[&["--as", "json"], options].concat(), command);
    let out = lab::run(&mut lab::trapline(user, &args));
    assert_eq!(out.code(), 0, "{}", out.stderr);
    json_events(&file)
}

fn of_type<'e>(events: &'e [Value], kind: &str) -> Vec<&'e Value> {
    events.iter().filter(|e| e["type"] == kind).collect()
}

/// What selects getppid, with and without the calls that make threads, and with and without a filter in front.
const SELECTIONS: [&[&str]; 5] = [
    &["-e", "getppid"],
    &["--no-seccomp", "-e", "getppid"],
    &["-e", "getppid,clone,clone3"],
    &["--no-seccomp", "-e", "getppid,clone,clone3"],
    &[],
];

#[test]
fn threads_belong_to_their_process_whatever_is_selected() {
    each_backend(|user| {
        let Some(program) = lab::program("threads") else { return };
        for options in SELECTIONS {
            let events = traced_as_json(user, options, &[&program, "3"]);
            let pid = &of_type(&events, "exec")[0]["pid"];
            assert_eq!(events.iter().filter(|e| e["name"] == "getppid").count(), 24, "{options:?}");
            assert!(events.iter().all(|e| e["pid"] == *pid), "{options:?} {events:#?}");
            let forks = of_type(&events, "fork");
            assert_eq!((forks.len(), of_type(&events, "exit").len()), (8, 9), "{options:?}");
            for fork in forks {
                assert_eq!(fork["child"], *pid, "{options:?} {fork}");
                assert!(fork["flags"].as_array().expect("flags").iter().any(|f| f == "CLONE_THREAD"), "{fork}");
            }
        }
    });
}

#[test]
fn children_are_processes_of_their_own_whatever_is_selected() {
    each_backend(|user| {
        let Some(program) = lab::program("forkstorm") else { return };
        for options in SELECTIONS {
            let events = traced_as_json(user, options, &[&program, "12"]);
            assert_eq!(events.iter().filter(|e| e["name"] == "getppid").count(), 12, "{options:?}");
            assert!(events.iter().all(|e| e["pid"] == e["tid"]), "{options:?} {events:#?}");
            for fork in of_type(&events, "fork") {
                assert_eq!(fork["child"], fork["child_tid"], "{options:?} {fork}");
                assert!(!fork["flags"].as_array().expect("flags").iter().any(|f| f == "CLONE_THREAD"), "{fork}");
            }
        }
    });
}

#[test]
fn threads_that_begin_after_the_attach_belong_to_their_process() {
    each_backend(|user| {
        if !lab::may_attach(user) {
            return;
        }
        let Some(program) = lab::program("thread_storm") else { return };
        let mut child = lab::as_user(user, &[&program]).stdin(Stdio::piped()).spawn().expect("thread_storm");
        let stdin = child.stdin.take();
        let target = lab::start_with(child);
        let pid = target.pid();
        let (args, file) = arguments(&["--as", "json", "-e", "getppid", "-p", &pid.to_string()], &[]);
        let mut running = lab::start(lab::trapline(user, &args).stderr(Stdio::piped()));
        lab::until("threads", || {
            running.must_run();
            of_type(&json_events(&file), "fork").len() > 3
        });
        lab::kill("INT", running.pid().into());
        assert_eq!(running.end().code(), 0);
        let events = json_events(&file);
        assert!(events.iter().any(|e| e["name"] == "getppid"), "{events:#?}");
        assert!(events.iter().all(|e| e["pid"] == pid), "{events:#?}");
        assert!(of_type(&events, "fork").iter().all(|e| e["child"] == pid), "{events:#?}");
        drop(stdin);
        assert_eq!(target.end().code(), 0);
    });
}

#[test]
fn stops_that_cannot_be_looked_at_are_answered_and_counted() {
    const PTRACE: &str = "101";
    const GET_SYSCALL_INFO: &str = "0x420e";
    const EIO: &str = "5";
    each_ptracer(|user| {
        let (Some(deny), Some(threads)) = (lab::program("deny"), lab::program("threads")) else { return };
        for options in [&["-e", "getppid"][..], &["--no-seccomp", "-e", "getppid"], &[]] {
            let (args, _) = arguments(options, &[&threads, "5"]);
            let inner = lab::trapline(user, &args);
            let mut argv =
                vec![deny.as_ref(), PTRACE.as_ref(), GET_SYSCALL_INFO.as_ref(), EIO.as_ref(), inner.get_program()];
            argv.extend(inner.get_args());
            // setpriv, where the user is another one, is denied nothing.
            let out = lab::run(&mut lab::as_user(User::Me, &argv));
            assert_eq!((out.code(), out.out().as_str()), (0, "80\n"), "{options:?} {}", out.stderr);
            assert!(out.stderr.contains("PTRACE_GET_SYSCALL_INFO: failed at"), "{}", out.stderr);
            let (_, last) = out.stderr.rsplit_once("events, ").expect("the last line");
            let dropped: u64 = last.split_once(" dropped").and_then(|(n, _)| n.parse().ok()).expect("a number");
            // The calls of the eight threads; without a filter in front all others too.
            assert!(
                if options.first() == Some(&"-e") { dropped >= 40 } else { dropped > 80 },
                "{options:?} {}",
                out.stderr
            );
        }
    });
}

/// With a seccomp filter and without.
const FILTERS: [&[&str]; 4] = [&["-e", "openat"], &["-e", "none"], &["--no-seccomp", "-e", "openat"], &[]];

#[test]
fn children_that_ask_not_to_be_traced() {
    each_ptracer(|user| {
        let Some(program) = lab::program("untraced_children") else { return };
        let untraced = lab::run(&mut lab::as_user(user, &[&program])).out();
        assert_eq!(untraced.matches(" 0 same same\n").count(), 8, "{untraced}");
        for options in FILTERS {
            let t = trace(user, options, &[&program]);
            assert_eq!((t.outcome.out(), t.outcome.code()), (untraced.clone(), 0), "{options:?}");
            let opened = t.calls("openat").into_iter().filter(|l| l.text.contains("/etc/passwd")).count();
            assert_eq!(opened, if options.ends_with(&["none"]) { 0 } else { 6 }, "{options:?} {}", t.text());
            if options.is_empty() {
                // What the program asked for.
                t.has("clone(child_stack=NULL, flags=CLONE_UNTRACED|SIGCHLD) = ");
                assert_eq!(t.with("clone3({flags=CLONE_UNTRACED, exit_signal=").len(), 4, "{}", t.text());
            }
        }
    });
}

#[test]
fn a_program_that_leaves_calls_to_its_tracer_has_none() {
    each_backend(|user| {
        let Some(program) = lab::program("asks_tracer") else { return };
        for data in ["0", "1", "65535"] {
            for options in FILTERS {
                let t = trace(user, options, &[&program, data]);
                let line = "getppid -38 openat -38 clone -38 getpid 1\n";
                assert_eq!((t.outcome.out(), t.outcome.code()), (line.repeat(3), 0), "{options:?} {data}");
                if options.first() == Some(&"-e") && options[1] == "openat" {
                    assert_eq!(t.with(" = -1 ENOSYS").len(), 3, "{options:?} {}", t.text());
                }
            }
        }
    });
}
