//! `trapline tracer` with checkers: violations that are planted in programs, with their whole stacks.

use crate::injected::started;
use crate::lab::{self, Outcome, Running, User};
use serde_json::Value;
use std::fs;
use std::path::Path;

fn tracer(pid: u32, command: &str, more: &[&str]) -> Outcome {
    let pid = pid.to_string();
    lab::run(&mut lab::trapline(User::Me, &[&["tracer", command, "-p", &pid], more].concat()))
}

#[track_caller]
fn done(out: &Outcome) -> String {
    assert_eq!((out.code(), out.complaints().as_str()), (0, ""), "{}", out.out());
    out.out()
}

#[track_caller]
fn refused(out: &Outcome, why: &str) {
    assert_eq!(out.code(), 125, "{}", out.stderr);
    assert!(out.stderr.contains(why) && out.stderr.lines().count() == 1, "{}", out.stderr);
}

#[track_caller]
fn in_c() -> Option<String> {
    testkit::compile("gcc", "checked_c", "checked.c", &["-g", "-O1", "-pthread"])
}

/// What a checker has found, as JSON: at least one violation.
fn violations(pid: u32, checker: &str) -> Vec<Value> {
    lab::until("there is a violation", || !done(&tracer(pid, "print", &[checker])).is_empty());
    let text = done(&tracer(pid, "print", &[checker, "--as", "json"]));
    text.lines()
        .map(|l| serde_json::from_str(l).expect("an object"))
        .filter(|v: &Value| v["type"] == "violation")
        .collect()
}

/// The functions of a stack, innermost first, without inlined ones.
fn functions(violation: &Value) -> Vec<String> {
    let frames = violation["stack"].as_array().expect("a stack").iter();
    frames.filter(|f| f["inlined"] != true).map(|f| f["function"].as_str().unwrap_or("?").to_string()).collect()
}

/// The functions up to the one that a thread or a program begins with, which must be whole.
#[track_caller]
fn up_to(violation: &Value, last: &str) -> Vec<String> {
    let all = functions(violation);
    let at = all.iter().position(|f| f == last).unwrap_or_else(|| panic!("{last}: {all:?}"));
    assert_eq!(violation.get("ended"), None, "{violation}");
    all[..=at].to_vec()
}

fn end(run: Running) -> String {
    lab::kill("TERM", run.pid().into());
    let out = run.end();
    assert_eq!(out.code(), 0, "{}", out.stderr);
    out.out()
}

/// Runs a program with a checker; `planted` is what it is asked for.
fn with(program: &str, planted: &[&str], options: &[&str], look: impl FnOnce(u32)) -> Running {
    let run = started(User::Me, &[&[program], planted].concat());
    done(&tracer(run.pid(), "enable", options));
    look(run.pid());
    run
}

/// A program without a violation has none.
fn is_clean(program: &str, options: &[&str]) -> Running {
    with(program, &["clean"], options, |pid| {
        // The functions are called.
        let function = options.iter().skip_while(|o| **o != "-F").nth(1).expect("a function");
        done(&tracer(pid, "enable", &["count", "-F", function]));
        lab::until("the function is called", || !done(&tracer(pid, "print", &["count"])).starts_with("0 calls"));
        assert_eq!(done(&tracer(pid, "print", &[options[0]])), "");
        assert_eq!(done(&tracer(pid, "print", &[options[0], "--as", "json"])), "");
    })
}

#[test]
fn a_violation_in_c_has_its_whole_stack() {
    let Some(program) = in_c() else { return };
    let checker: &[&str] = &["thread_checker", "-F", "draw"];
    end(is_clean(&program, checker));
    let run = with(&program, &["thread"], checker, |pid| {
        for v in violations(pid, "thread_checker") {
            assert_eq!(up_to(&v, "body"), ["draw", "paint", "job", "body"], "{v}");
            assert_eq!(
                (&v["thread"], &v["function"], &v["caller"]),
                (&"worker-1".into(), &"draw".into(), &"paint".into())
            );
            assert_ne!(v["tid"], pid);
            let (first, second) = (&v["stack"][0], &v["stack"][1]);
            assert_eq!(first["offset"], "0x0", "{v}");
            let source =
                fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/programs/checked.c"));
            let line = |f: &Value| {
                assert!(f["file"].as_str().is_some_and(|f| f.ends_with("checked.c")), "{v}");
                source
                    .as_ref()
                    .expect("a source")
                    .lines()
                    .nth(f["line"].as_u64().expect("a line") as usize - 1)
                    .expect("it")
                    .to_string()
            };
            assert!(line(first).contains("void draw(int n)") && line(second).contains("{ draw(n);"), "{v}");
        }
        let text = done(&tracer(pid, "print", &["thread_checker", "--color", "never"]));
        let mut lines = text.lines();
        let head = lines.next().expect("a line");
        assert!(head.starts_with("worker-1 (") && head.contains("): draw called from paint"), "{head}");
        assert!(lines.next().is_some_and(|l| l.starts_with(" > /") && l.contains("(draw+0x0) [0x")), "{text}");
        assert!(done(&tracer(pid, "print", &["thread_checker", "--color", "always"])).starts_with("\x1b["));
    });
    end(run);
}

/// Where stubs have replaced return addresses, the stack has the program's.
#[test]
fn frames_of_traced_functions_are_those_of_the_program() {
    let Some(program) = in_c() else { return };
    let run = with(&program, &["thread"], &["thread_checker"], |pid| {
        done(&tracer(pid, "enable", &["count"]));
        let is_draw = |v: &Value| v["function"] == "draw" && functions(v).len() > 4;
        let found: Vec<Value> = violations(pid, "thread_checker").into_iter().filter(is_draw).collect();
        assert!(!found.is_empty());
        found.iter().for_each(|v| assert_eq!(up_to(v, "body"), ["draw", "paint", "job", "body"], "{v}"));
    });
    end(run);
}

#[test]
fn a_violation_in_cpp_has_demangled_names() {
    let Some(program) = testkit::compile("g++", "checked_cc", "checked.cc", &["-g", "-O1", "-pthread"]) else { return };
    let checker: &[&str] = &["thread_checker", "-F", "ui::Window<int>::draw"];
    end(is_clean(&program, checker));
    let run = with(&program, &["thread"], checker, |pid| {
        for v in violations(pid, "thread_checker") {
            let job = "(anonymous namespace)::job(bool)";
            assert_eq!(up_to(&v, job), ["ui::Window<int>::draw(int)", "ui::Window<int>::paint(int)", job], "{v}");
            assert_eq!((&v["function"], &v["caller"]), (&"ui::Window<int>::draw".into(), &"ui::Window::paint".into()));
        }
    });
    end(run);
}

#[test]
fn a_violation_in_rust_has_demangled_names() {
    let Some(program) = testkit::compile("rustc", "checked_rs", "checked.rs", &["-O", "-g", "--crate-name", "checked"])
    else {
        return;
    };
    let checker: &[&str] = &["thread_checker", "-F", "checked::Window::draw"];
    drop(is_clean(&program, checker));
    drop(with(&program, &["thread"], checker, |pid| {
        for v in violations(pid, "thread_checker") {
            let expected = ["Window::draw", "Window::paint", "job"].map(|f| format!("checked::{f}"));
            assert_eq!(up_to(&v, &expected[2]), expected, "{v}");
            assert_eq!(v["thread"], "worker-1");
        }
    }));
    // On the main thread it is main that has called.
    drop(with(&program, &["clean"], &[checker, &["--thread", "nobody"]].concat(), |pid| {
        let of_main: Vec<Value> = violations(pid, "thread_checker").into_iter().filter(|v| v["tid"] == pid).collect();
        assert!(!of_main.is_empty());
        for v in of_main {
            let expected = ["Window::draw", "Window::paint", "main"].map(|f| format!("checked::{f}"));
            assert_eq!(up_to(&v, &expected[2]), expected, "{v}");
            assert_eq!(functions(&v).last().map(String::as_str), Some("_start"), "{v}");
        }
    }));
}

/// From the handler of a signal the stack goes on to what the signal has interrupted, without the agent's frame between them.
#[test]
fn a_violation_in_a_handler_has_the_frames_that_were_interrupted() {
    let Some(program) = in_c() else { return };
    let run = with(&program, &["handler"], &["thread_checker", "-F", "draw"], |pid| {
        for v in violations(pid, "thread_checker") {
            let all = up_to(&v, "body");
            assert_eq!(all[..2], ["draw", "handler"], "{v}");
            assert_eq!(all[all.len() - 2..], ["job", "body"], "{v}");
            let modules =
                v["stack"].as_array().expect("a stack").iter().map(|f| f["module"].as_str().unwrap_or_default());
            assert!(modules.into_iter().all(|m| m.ends_with("checked_c") || m.contains("libc.so")), "{v}");
        }
    });
    end(run);
}

#[test]
fn a_stack_that_is_too_large_says_so() {
    let Some(program) = in_c() else { return };
    let run = with(&program, &["deep"], &["thread_checker", "-F", "draw", "-F", "descend"], |pid| {
        let all = violations(pid, "thread_checker");
        let v = all.iter().find(|v| v["function"] == "draw").expect("one of draw");
        let functions = functions(v);
        assert_eq!(functions[0], "draw");
        assert!(functions.len() > 50 && functions[1..].iter().all(|f| f == "descend"), "{functions:?}");
        assert_eq!(v["ended"], "the copy of the stack ends there");
    });
    end(run);
}

#[test]
fn a_call_that_takes_too_long_has_its_duration_and_its_stack() {
    let Some(program) = in_c() else { return };
    let checker: &[&str] = &["loop_checker", "--loop", "turn", "--budget", "5000", "-F", "quick", "-F", "slow"];
    let mut took = Vec::new();
    let run = with(&program, &["loop"], checker, |pid| {
        for v in violations(pid, "loop_checker") {
            assert_eq!(up_to(&v, "main"), ["slow", "turn", "main"], "{v}");
            assert_eq!(functions(&v).last().map(String::as_str), Some("_start"), "{v}");
            assert_eq!(v["tid"], pid);
            took.push(v["took_ns"].as_u64().expect("a duration"));
        }
        let text = done(&tracer(pid, "print", &["loop_checker"]));
        assert!(text.contains(": slow called from turn took ") && !text.contains("quick"), "{text}");
    });
    // The program sleeps for 20 ms in each call, and has measured around them.
    let out = end(run);
    let most: u64 = out.split_whitespace().nth(1).and_then(|n| n.parse().ok()).expect("a number");
    for ns in took {
        // The clocks differ by less than a thousandth.
        assert!((19_980_000..=most + most / 1000).contains(&ns), "{ns} {most}");
    }
    // Nothing is found in a loop that does not wait.
    let run = with(&program, &["clean"], checker, |pid| {
        done(&tracer(pid, "enable", &["count", "-F", "quick"]));
        lab::until("the loop turns", || !done(&tracer(pid, "print", &["count"])).starts_with("0 calls"));
        assert!(!done(&tracer(pid, "print", &["loop_checker"])).contains("slow"));
    });
    end(run);
}

#[test]
fn functions_are_chosen_by_section() {
    let Some(program) = in_c() else { return };
    let run = started(User::Me, &[&program, "thread"]);
    let pid = run.pid();
    refused(
        &tracer(pid, "enable", &["count", "--section", "ui_cod"]),
        "no section with code matches ui_cod (nearest: ui_code",
    );
    done(&tracer(pid, "enable", &["count", "--section", "ui_*"]));
    lab::until("both are called", || done(&tracer(pid, "print", &["count"])).contains("of 2 functions"));
    let rows: Vec<Value> = done(&tracer(pid, "print", &["count", "--as", "json"]))
        .lines()
        .map(|l| serde_json::from_str(l).expect("an object"))
        .collect();
    let mut names: Vec<&str> = rows.iter().map(|r| r["function"].as_str().expect("a name")).collect();
    names.sort_unstable();
    assert_eq!(names, ["draw", "paint"]);
    // Each of them has to match.
    refused(&tracer(pid, "enable", &["thread_checker", "--section", "ui_*", "-F", "quick"]), "no function matches");
    done(&tracer(pid, "enable", &["thread_checker", "--section", "ui_*", "-N", "paint"]));
    assert!(violations(pid, "thread_checker").iter().all(|v| v["function"] == "draw"));
    // The function whose callees are watched may be elsewhere.
    done(&tracer(pid, "enable", &["loop_checker", "--section", "ui_*", "--loop", "main"]));
    end(run);
}

#[test]
fn a_file_without_section_headers_has_no_sections() {
    let Some(program) = in_c() else { return };
    let stripped = lab::scratch().join("without_sections");
    let mut bytes = fs::read(&program).expect("the program");
    // e_shoff; e_shnum and e_shstrndx.
    bytes[0x28..0x30].fill(0);
    bytes[0x3c..0x40].fill(0);
    fs::write(&stripped, bytes).expect("a file");
    testkit::open_to_all(&stripped, 0o755);
    let run = started(User::Me, &[stripped.to_str().expect("UTF-8"), "thread"]);
    refused(&tracer(run.pid(), "enable", &["count", "--section", "ui_*"]), "has no section headers");
    end(run);
}

#[test]
fn threads_are_sets_of_names() {
    let Some(program) = in_c() else { return };
    let run = started(User::Me, &[&program, "thread"]);
    let pid = run.pid();
    for (threads, main_may, workers_may) in [
        (&[][..], true, false),
        (&["main"][..], true, false),
        (&["worker-?"], false, true),
        (&["main", "wor*-1"], true, true),
        (&["worker", "x*", "worker-2"], false, false),
    ] {
        let options: Vec<&str> = threads.iter().flat_map(|t| ["--thread", t]).collect();
        done(&tracer(pid, "enable", &[&["thread_checker", "-F", "paint"], &options[..]].concat()));
        done(&tracer(pid, "enable", &["count", "-F", "job", "-F", "turn"]));
        // Both have called it since.
        lab::until("both threads have run", || {
            let text = done(&tracer(pid, "print", &["count", "--as", "json"]));
            let enough = |l: &str| serde_json::from_str::<Value>(l).is_ok_and(|v| v["calls"].as_u64() > Some(2));
            text.lines().filter(|l| enough(l)).count() == 2
        });
        let text = done(&tracer(pid, "print", &["thread_checker", "--as", "json"]));
        let of: Vec<Value> = text.lines().map(|l| serde_json::from_str(l).expect("an object")).collect();
        assert_eq!(of.iter().any(|v| v["tid"] == pid), !main_may, "{threads:?}: {text}");
        assert_eq!(of.iter().any(|v| v["thread"] == "worker-1"), !workers_may, "{threads:?}: {text}");
        done(&tracer(pid, "disable", &["count"]));
        done(&tracer(pid, "disable", &["thread_checker"]));
    }
    let long = tracer(pid, "enable", &["thread_checker", "--thread", "a-name-that-is-too-long"]);
    assert!(long.code() != 0 && long.stderr.contains("1 to 15 bytes"), "{}", long.stderr);
    end(run);
}

#[test]
fn a_program_is_stopped_at_the_call_and_continues() {
    let Some(program) = in_c() else { return };
    let progress = lab::scratch().join("progress");
    let far = || fs::read_to_string(&progress).unwrap_or_default();
    let run = started(User::Me, &[&program, "stop", progress.to_str().expect("UTF-8")]);
    let pid = run.pid();
    done(&tracer(pid, "enable", &["thread_checker", "-F", "draw", "--thread", "nobody", "--stop"]));
    lab::kill("USR1", pid.into());
    let is_stopped = || {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("its status");
        status.lines().any(|l| l.starts_with("State:\tT"))
    };
    lab::until("it is stopped", is_stopped);
    for _ in 0..2 {
        let found = violations(pid, "thread_checker");
        assert_eq!(found.len(), 1);
        assert_eq!(up_to(&found[0], "main"), ["draw", "paint", "main"]);
        // Looking at it does not let it run.
        lab::until("it is stopped", is_stopped);
        assert_eq!(far(), "before");
    }
    lab::kill("CONT", pid.into());
    lab::until("it goes on", || far() == "after ");
    assert!(!is_stopped());
    done(&tracer(pid, "disable", &["thread_checker"]));
    end(run);
}

#[test]
fn what_is_mistyped_is_suggested() {
    let Some(program) = in_c() else { return };
    let run = started(User::Me, &[&program, "clean"]);
    let pid = run.pid();
    for command in ["enable", "disable", "print", "status"] {
        refused(&tracer(pid, command, &["coutn"]), "no such tracer coutn (nearest: count; see 'trapline tracer list')");
    }
    refused(&tracer(pid, "enable", &["count", "-F", "quikc"]), "nearest: quick");
    refused(&tracer(pid, "enable", &["loop_checker", "--loop", "trun"]), "nearest: turn");
    let wrong = tracer(pid, "print", &["count", "-S", "min"]);
    assert!(wrong.code() == 2 && wrong.stderr.contains("total, self, calls, avg, name"), "{}", wrong.stderr);
    end(run);
}
