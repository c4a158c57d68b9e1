//! Functions, allocations and probes in files that join a session whose processes run without the agent.

use crate::kernel::possible;
use crate::lab::{self, User, each_user};
use crate::sessions::{Phases, Room};
use std::process::Stdio;

fn program() -> Option<String> {
    compiled("agent_steered")
}

fn compiled(name: &str) -> Option<String> {
    testkit::compile("gcc", name, "agent_steered.c", &["-O1", "-fno-inline", "-pthread"])
}

/// The session, its program, and trapline where the program runs without it.
struct Lab {
    room: Room,
    program: Phases,
    trapline: Option<lab::Running>,
}

/// A session named `a`; started with the program, or attached to it.
fn session(user: User, backend: &str, attached: bool, options: &[&str], path: &str) -> Lab {
    let room = Room::new(user);
    let args = [&["record", "-o", "a.trace", "--name", "a", "--backend", backend], options].concat();
    let (program, trapline) = if attached {
        let mut program = Phases::start(&mut lab::as_user(user, &[path]));
        // It is the program by now, not setpriv.
        program.make("work", 0);
        let pid = program.child.id().to_string();
        let args = [&args[..], &["-p", &pid]].concat();
        (program, Some(lab::start(room.trapline(&args).stderr(Stdio::piped()))))
    } else {
        (Phases::start(&mut room.trapline(&[&args[..], &["--", path]].concat())), None)
    };
    lab::until("its socket", || room.socket("a").exists());
    // It answers once it has attached.
    room.status("a");
    Lab { room, program, trapline }
}

/// Runs a scenario started and attached: with both backends as root, with ptrace as nobody.
fn each_way(options: &[&str], scenario: impl Fn(Lab, &str)) {
    each_way_of(program(), options, scenario);
}

fn each_way_of(program: Option<String>, options: &[&str], scenario: impl Fn(Lab, &str)) {
    let Some(path) = program else { return };
    let run = |user: User, backend: &str| {
        for attached in [false, true] {
            if attached && !lab::may_attach(user) {
                continue;
            }
            eprintln!("{backend}, attached: {attached}");
            scenario(session(user, backend, attached, options, &path), &path);
        }
    };
    each_user(|user| run(user, "ptrace"));
    if possible() {
        run(User::Me, "kernel");
    }
}

/// Ends the program, and with it the session. Returns the table of functions.
#[track_caller]
fn end(lab: Lab) -> String {
    let out = lab.program.end();
    match lab.trapline {
        None => assert_eq!(out.code(), 0, "{}", out.stderr),
        Some(trapline) => {
            assert_eq!((out.code(), out.stderr.as_str()), (0, ""));
            let out = trapline.end();
            assert_eq!(out.code(), 0, "{}", out.stderr);
            assert_eq!(out.stderr.lines().count(), 1, "{}", out.stderr);
        }
    }
    lab::run(&mut lab.room.trapline(&["report", "-q", "--as", "functions", "a.trace"])).out()
}

/// What was recorded of an enabling.
#[track_caller]
fn recorded(room: &Room, probe: &str) -> u64 {
    let status = room.status("a");
    let of = status["enablings"].as_array().expect("enablings").iter().filter(|e| e["probe"] == probe);
    of.filter_map(|e| e["recorded"].as_u64()).sum()
}

#[track_caller]
fn until(room: &Room, probe: &str, n: u64) {
    lab::until(&format!("{n} of {probe}"), || recorded(room, probe) == n);
}

/// Waits until the answers to so many commands have been written. A call counts where it ends: before the next pause.
#[track_caller]
fn answered(room: &Room, n: u64) {
    let calls = || room.status("a")["probes"]["syscall:write"]["recorded"].as_u64();
    lab::until(&format!("{n} calls"), || calls() == Some(n));
}

#[test]
fn each_kind_joins_a_running_session() {
    each_way(&["-e", "write"], |mut lab, path| {
        let Lab { room, program: p, .. } = &mut lab;
        p.make("work", 5);
        answered(room, 1);
        room.refuses(&["set", "a", "-e", "+function:wrok"], 125, "nearest: work");
        room.does(&["set", "a", "-e", "+function:work"]);
        room.refuses(&["set", "a", "-e", "+function:work"], 125, "enabled already");
        p.make("work", 7);
        answered(room, 2);
        // What has no stub yet, and what has one.
        let probe = format!("uprobe:{path}:other");
        room.does(&["set", "a", "-e", "+function:other", "-e", "+heap:malloc", "-e", &format!("+{probe}")]);
        p.make("work", 3);
        p.make("other", 4);
        answered(room, 4);
        room.does(&["set", "a", "-e", "-function:work", "-e", "+getppid"]);
        p.make("work", 9);
        p.make("threads", 2);
        p.make("other", 6);
        answered(room, 7);
        until(room, "function:work", 2 * (7 + 3));
        until(room, "function:other", 2 * (4 + 6));
        until(room, &probe, 4 + 6);
        // Each thread that starts allocates.
        lab::until("allocations", || recorded(room, "heap:malloc") > 0);
        // While it is stopped, too.
        room.does(&["stop", "a"]);
        room.does(&["set", "a", "-e", "+function:works"]);
        p.make("other", 5);
        assert_eq!(room.status("a")["state"], "stopped");
        room.does(&["start", "a"]);
        p.make("work", 1);
        until(room, "function:works", 2);
        until(room, "function:other", 2 * (4 + 6));
        let status = room.status("a");
        assert_eq!((&status["dropped"], &status["agents"]["processes"]), (&0.into(), &1.into()), "{status}");
        answered(room, 8);
        let table = end(lab);
        let calls = |name: &str| {
            let line = table.lines().find(|l| l.split_whitespace().last() == Some(name))?;
            line.split_whitespace().nth(2).map(str::to_string)
        };
        // One function, whichever agent has recorded it.
        assert_eq!(["work", "other", "works"].map(calls), ["10", "10", "1"].map(|n| Some(n.to_string())), "{table}");
    });
}

/// Each kind joins, where the agent was loaded with the program for another function.
#[test]
fn each_kind_joins_a_session_that_began_with_the_agent() {
    each_way(&["-e", "write", "-e", "function:deep"], |mut lab, path| {
        let Lab { room, program: p, trapline } = &mut lab;
        // It is called before trapline attaches.
        let deep = u64::from(trapline.is_none());
        until(room, "function:deep", deep);
        p.make("work", 5);
        answered(room, 1);
        room.refuses(&["set", "a", "-e", "+function:wrok"], 125, "nearest: work");
        let probe = format!("uprobe:{path}:other");
        room.does(&["set", "a", "-e", "+function:work", "-e", "+heap:malloc"]);
        p.make("work", 7);
        p.make("in", 0);
        p.make("out", 0);
        answered(room, 4);
        until(room, "function:work", 2 * 7);
        // The outer call has been open all the time.
        until(room, "function:deep", deep + 2);
        room.does(&["set", "a", "-e", "+function:other", "-e", &format!("+{probe}"), "-e", "-function:deep"]);
        p.make("threads", 3);
        p.make("other", 4);
        p.make("in", 0);
        p.make("out", 0);
        answered(room, 8);
        until(room, "function:work", 2 * (7 + 9));
        until(room, "function:other", 2 * 4);
        until(room, &probe, 4);
        lab::until("allocations", || recorded(room, "heap:malloc") > 0);
        assert_eq!(recorded(room, "function:deep"), deep + 2);
        let mut others = 4;
        if trapline.is_none() && lab::may_attach(room.user) {
            let mut second = Phases::start(&mut lab::as_user(room.user, &[path]));
            second.make("work", 0);
            room.does(&["set", "a", "-p", &second.child.id().to_string()]);
            second.make("other", 3);
            p.make("other", 2);
            others += 3 + 2;
            until(room, "function:other", 2 * others);
            assert_eq!(second.end().code(), 0);
        }
        let status = room.status("a");
        assert_eq!(status["dropped"], 0, "{status}");
        let table = end(lab);
        let calls = |name: &str| {
            let line = table.lines().find(|l| l.split_whitespace().last() == Some(name))?;
            line.split_whitespace().nth(2).map(str::to_string)
        };
        assert_eq!(["work", "other"].map(calls), [16, others].map(|n| Some(n.to_string())), "{table}");
    });
}

/// With filters, and with stacks of allocations; a second agent takes the place of the first.
#[test]
fn filters_and_stacks_join_too() {
    each_way(&["-e", "write", "--ustack"], |mut lab, _| {
        let Lab { room, program: p, .. } = &mut lab;
        room.does(&["set", "a", "-e", "+function:o*", "-e", "+heap:malloc"]);
        p.make("other", 40);
        p.make("threads", 1);
        let filtered = "function:w* /tid != pid/";
        room.does(&["set", "a", "-e", &format!("+{filtered}")]);
        p.make("other", 2);
        p.make("threads", 30);
        until(room, "function:o*", 2 * 42);
        until(room, "function:w*", 2 * 3 * (30 + 1));
        let dir = room.path.join("a.trace");
        let room = Room { user: room.user, path: room.path.clone() };
        end(lab);
        let args = ["report", "-q", "--as", "text", "-e", "heap:malloc", dir.to_str().expect("a path")];
        let out = lab::run(&mut room.trapline(&args));
        let text = out.out();
        // Those of the threads' areas, which are used again.
        assert!(text.matches("pthread_create").count() >= 3, "{} {text}", out.stderr);
    });
}

/// Samples of an ordinary user, taken beside.
#[test]
fn samples_get_functions_too() {
    let Some(path) = program() else { return };
    each_user(|user| {
        if lab::paranoid() > 2 {
            return lab::skip("kernel:perf", "an ordinary user may take no samples");
        }
        let samples = ["-e", "profile:hz:99", "--ustack"];
        let and_functions = ["-e", "profile:hz:99", "--ustack", "-e", "function:deep"];
        for (attached, options) in [(false, &samples[..]), (true, &samples), (false, &and_functions)] {
            if attached && !lab::may_attach(user) {
                continue;
            }
            let mut lab = session(user, "perf", attached, options, &path);
            lab.room.does(&["set", "a", "-e", "+function:work", "-e", &format!("+uprobe:{path}:other")]);
            lab.program.make("work", 20);
            lab.program.make("other", 3);
            until(&lab.room, "function:work", 40);
            until(&lab.room, &format!("uprobe:{path}:other"), 3);
            lab.room.refuses(&["set", "a", "-e", "+openat"], 125, "perf");
            lab.room.does(&["end", "a"]);
        }
    });
}

/// Processes join and leave a session with functions.
#[test]
fn processes_join_a_session_that_has_got_the_agent() {
    let Some(path) = program() else { return };
    let run = |user: User, backend: &str| {
        if !lab::may_attach(user) {
            return;
        }
        let mut lab = session(user, backend, true, &["-e", "write"], &path);
        lab.room.does(&["set", "a", "-e", "+function:work"]);
        lab.program.make("work", 2);
        let mut second = Phases::start(&mut lab::as_user(user, &[&path]));
        let pid = second.child.id().to_string();
        lab.room.does(&["set", "a", "-p", &pid]);
        second.make("work", 30);
        lab.program.make("work", 400);
        until(&lab.room, "function:work", 2 * 432);
        lab.room.does(&["set", "a", "-p", &format!("-{pid}")]);
        second.make("work", 5);
        lab.program.make("work", 1000);
        until(&lab.room, "function:work", 2 * 1432);
        let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).expect("its mappings");
        assert!(!maps.contains("trapline-plan"), "{maps}");
        assert_eq!(second.end().code(), 0);
        end(lab);
    };
    each_user(|user| run(user, "ptrace"));
    if possible() {
        run(User::Me, "kernel");
    }
}

/// Where the agent cannot be, it is said, and the session goes on.
#[test]
fn a_process_that_cannot_have_it_goes_on() {
    let Some(path) =
        testkit::compile("gcc", "agent_steered_static", "agent_steered.c", &["-O1", "-static", "-pthread"])
    else {
        return;
    };
    each_user(|user| {
        let mut lab = session(user, "ptrace", false, &["-e", "write"], &path);
        lab.program.make("work", 2);
        lab.room.refuses(&["set", "a", "-e", "+function:work"], 125, "static");
        lab.program.make("work", 2);
        lab::until("its calls", || lab.room.status("a")["probes"]["syscall:write"]["recorded"] == 2);
        end(lab);
    });
}

/// Static probes join, as functions do.
#[test]
fn static_probes_join_too() {
    // A file of its own: probes of the kernel's are in all processes that have it.
    each_way_of(compiled("agent_steered_probes"), &["-e", "write"], |mut lab, path| {
        let Lab { room, program: p, .. } = &mut lab;
        let probe = format!("usdt:{path}:steered:mark");
        p.make("mark", 2);
        answered(room, 1);
        room.does(&["set", "a", "-e", &format!("+{probe} /args.arg0 > 1/")]);
        p.make("mark", 5);
        until(room, &probe, 3);
        p.make("work", 9);
        answered(room, 3);
        assert_eq!(recorded(room, &probe), 3);
        // Removed by its name, not by another filter, and added again.
        room.refuses(&["set", "a", "-e", &format!("-{probe} /args.arg0 > 2/")], 125, "no such probe is enabled");
        room.does(&["set", "a", "-e", "+heap:malloc", "-e", &format!("-{probe}")]);
        p.make("threads", 1);
        p.make("mark", 5);
        answered(room, 5);
        lab::until("allocations", || recorded(room, "heap:malloc") > 0);
        room.does(&["set", "a", "-e", "-heap:*"]);
        let allocated = recorded(room, "heap:malloc");
        p.make("threads", 1);
        answered(room, 6);
        room.refuses(&["set", "a", "-e", &format!("-{probe}")], 125, "no such probe is enabled");
        room.does(&["set", "a", "-e", &format!("+{probe}")]);
        p.make("mark", 2);
        answered(room, 7);
        until(room, &probe, 3 + 2);
        room.does(&["set", "a", "-e", &format!("-{probe}"), "-e", "+getppid"]);
        p.make("mark", 6);
        answered(room, 8);
        assert_eq!((recorded(room, &probe), recorded(room, "heap:malloc")), (3 + 2, allocated));
        end(lab);
    });
}

/// Calls join functions where a session was started for both.
#[test]
fn calls_join_a_session_of_functions() {
    each_way(&["-e", "none", "-e", "function:work"], |mut lab, _| {
        let Lab { room, program: p, .. } = &mut lab;
        p.make("work", 5);
        until(room, "function:work", 2 * 5);
        room.does(&["set", "a", "-e", "+write"]);
        p.make("work", 3);
        answered(room, 1);
        until(room, "function:work", 2 * (5 + 3));
        room.does(&["set", "a", "-e", "-write"]);
        p.make("work", 1);
        until(room, "function:work", 2 * (5 + 3 + 1));
        answered(room, 1);
        end(lab);
    });
}

/// An order for which the agent would have to be injected once more, and cannot: the session goes on with what the first one has counted, and
/// takes the order later.
#[test]
fn a_second_injection_that_is_refused_takes_nothing_along() {
    let Some(path) = program() else { return };
    if !lab::has("prlimit") {
        return testkit::skip("package", "no prlimit");
    }
    if lab::may_attach(User::Me) {
        let mut lab = session(User::Me, "ptrace", true, &["-e", "write"], &path);
        let Lab { room, program: p, .. } = &mut lab;
        let pid = p.child.id().to_string();
        let limit = |files: &str| {
            let out =
                lab::run(std::process::Command::new("prlimit").args(["--pid", &pid, &format!("--nofile={files}:")]));
            assert_eq!(out.code(), 0, "{}", out.stderr);
        };
        room.does(&["set", "a", "-e", "+function:work"]);
        p.make("work", 7);
        answered(room, 1);
        until(room, "function:work", 2 * 7);
        limit("3");
        room.refuses(&["set", "a", "-e", "+function:other"], 125, "RLIMIT_NOFILE");
        p.make("other", 5);
        limit("256");
        room.does(&["set", "a", "-e", "+function:other"]);
        p.make("other", 4);
        answered(room, 3);
        until(room, "function:other", 2 * 4);
        let Lab { room, program, trapline } = lab;
        let out = program.end();
        assert_eq!((out.code(), out.stderr.as_str()), (0, ""));
        let out = trapline.expect("it has attached").end();
        assert_eq!(out.code(), 0, "{}", out.stderr);
        let table = lab::run(&mut room.trapline(&["report", "-q", "--as", "functions", "a.trace"])).out();
        let calls = |name: &str| {
            let line = table.lines().find(|l| l.split_whitespace().last() == Some(name))?;
            line.split_whitespace().nth(2).map(str::to_string)
        };
        assert_eq!(["work", "other"].map(calls), ["7", "4"].map(|n| Some(n.to_string())), "{table} {}", out.stderr);
    }
}
