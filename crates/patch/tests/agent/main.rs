//! The agent in programs that do what breaks tracers: their results stay what they are, and every call has its records.

#[path = "../elf/mod.rs"]
mod elf;

mod collector;
mod graph;
mod library;
mod tracers;
mod tracers_order;

use collector::{Run, Wish, run};
use std::collections::BTreeMap;
use std::process::Command;
use testkit::compiled;

/// Runs a program bare and under the agent, and compares what it prints and how it ends.
#[track_caller]
fn same(program: &str, arguments: &[&str], wish: Wish) -> Run {
    let bare = Command::new(program).args(arguments).output().expect("the program");
    let traced = run(Command::new(program).args(arguments), wish);
    let text = |b: &[u8]| String::from_utf8_lossy(b).into_owned();
    assert_eq!(
        text(&traced.output.stdout),
        text(&bare.stdout),
        "{} {}",
        traced.output.status,
        text(&traced.output.stderr)
    );
    assert_eq!(traced.output.status, bare.status);
    assert!(!traced.processes.is_empty(), "nobody asked: {:?}", traced.requests);
    let installed = traced.processes[0].installed;
    assert!(installed.error == 0 && installed.patched > 0, "{installed:?}");
    traced
}

/// Of each thread: times never go back, and each exit is that of the innermost call. Returns how many calls are open at the end.
#[track_caller]
fn check_nesting(run: &Run) -> BTreeMap<u32, usize> {
    let mut open = BTreeMap::new();
    for process in &run.processes {
        for (tid, records) in process.threads() {
            let (mut stack, mut last) = (vec![], 0);
            for (time, function, exit) in records {
                assert!(time >= last, "{tid}: time goes back by {}", last - time);
                last = time;
                if exit {
                    let name = |f: u32| run.names.get(f as usize);
                    let top = stack.pop();
                    assert_eq!(top.and_then(name), name(function), "{tid}: exit of another than the innermost");
                } else {
                    stack.push(function);
                }
            }
            open.insert(tid, stack.len());
        }
    }
    open
}

#[test]
fn calls_are_exact() {
    let Some(program) = compiled("agent_calls", "agent_calls.c", &["-fno-inline"]) else { return };
    let run = same(&program, &["20"], Wish::default());
    assert_eq!(run.count("fib"), (21891, 21891));
    assert_eq!(run.dropped(), 0);
    // Everything has returned but what ends the process.
    assert!(check_nesting(&run).values().all(|open| *open <= 1));
}

#[test]
fn what_does_not_fit_is_counted() {
    let Some(program) = compiled("agent_calls", "agent_calls.c", &["-fno-inline"]) else { return };
    let wish = Wish { chunks: 2, chunk_size: 4096, block: false, ..Wish::default() };
    let run = same(&program, &["24"], wish);
    let (entries, exits) = run.count("fib");
    let others: u64 = ["main", "_init", "_start", "frame_dummy"].iter().map(|n| run.count(n)).map(|c| c.0 + c.1).sum();
    let all = entries + exits + run.dropped();
    let expected = 2 * 150_049;
    assert!((expected..expected + 16).contains(&all), "{entries} + {exits} + {} ({others} others)", run.dropped());
}

#[test]
fn waiting_loses_nothing() {
    let Some(program) = compiled("agent_calls", "agent_calls.c", &["-fno-inline"]) else { return };
    let run = same(&program, &["24"], Wish { chunks: 2, chunk_size: 4096, ..Wish::default() });
    assert_eq!(run.count("fib"), (150_049, 150_049));
    assert_eq!(run.dropped(), 0);
}

#[test]
fn timed_stubs_write_what_took_long() {
    let Some(program) = compiled("agent_calls", "agent_calls.c", &["-fno-inline"]) else { return };
    let run = same(&program, &["20"], Wish { variant: abi::stub::Variant::Timed, ..Wish::default() });
    assert_eq!(run.count("fib"), (21891, 21891));
    check_nesting(&run);
    let variant = abi::stub::Variant::Timed;
    let run = same(&program, &["20"], Wish { variant, minimum: 1 << 50, ..Wish::default() });
    assert_eq!(run.count("fib"), (0, 0));
}

#[test]
fn exceptions() {
    let Some(program) = compiled("agent_throws", "agent_throws.cc", &["-fno-inline"]) else { return };
    let run = same(&program, &[], Wish::default());
    assert_eq!(run.dropped(), 0);
    let Some(program) = compiled("agent_panics", "panics.rs", &[]) else { return };
    same(&program, &[], Wish::default());
}

#[test]
fn jumps_and_ends_of_threads() {
    let Some(program) = compiled("agent_leaves", "agent_leaves.c", &["-fno-inline", "-fexceptions"]) else { return };
    same(&program, &[], Wish::default());
}

#[test]
fn coroutines() {
    let Some(program) = compiled("agent_coroutines", "agent_coroutines.c", &["-fno-inline"]) else { return };
    same(&program, &[], Wish::default());
}

#[test]
fn handlers_of_signals() {
    let Some(program) = compiled("agent_handlers", "agent_handlers.c", &["-fno-inline"]) else { return };
    let run = run(&mut Command::new(&program), Wish { chunks: 2048, ..Wish::default() });
    assert!(run.output.status.success(), "{:?} {}", run.output.status, run.text());
    // "NAME COUNT" of each function that counts itself.
    let mut lines = 0;
    for line in run.text().lines() {
        let (name, count) = line.split_once(' ').expect("a name and a number");
        let count: u64 = count.parse().expect("a number");
        assert_eq!(run.count(name), (count, count), "{name}, {} dropped", run.dropped());
        lines += 1;
    }
    assert!(lines >= 3);
    check_nesting(&run);
}

#[test]
fn handlers_that_do_not_return() {
    let Some(program) = compiled("agent_handlers_leave", "agent_handlers_leave.c", &["-fno-inline"]) else { return };
    same(&program, &[], Wish::default());
}

#[test]
fn children() {
    let Some(program) = compiled("agent_children", "agent_children.c", &["-fno-inline"]) else { return };
    let run = same(&program, &[], Wish::default());
    assert_eq!(run.count("in_child").0, 20, "{:?}", run.requests);
    assert_eq!(run.count("in_parent"), (20, 20));
    assert_eq!(run.count("executed"), (6, 6), "{:?}", run.requests);
}

#[test]
fn threads() {
    let Some(program) = compiled("agent_threads", "agent_threads.c", &["-fno-inline"]) else { return };
    let run = same(&program, &[], Wish { chunks: 512, ..Wish::default() });
    assert_eq!(run.count("leaf"), (256 * 100, 256 * 100));
    assert_eq!(run.dropped(), 0);
    check_nesting(&run);
}

#[test]
fn modules_come_and_go() {
    let library = testkit::compile("gcc", "agent_module.so", "agent_module.c", &["-O1", "-shared", "-fPIC"]);
    let Some(library) = library else { return };
    let Some(program) = compiled("agent_modules", "agent_modules.c", &["-fno-inline"]) else { return };
    let run = same(&program, &[&library], Wish::default());
    assert_eq!(run.count("module_function"), (100, 100), "{:?} {:?}", run.requests, run.processes[0].installed);
}

#[test]
fn a_stack_that_overflows() {
    let Some(program) = compiled("agent_overflow", "agent_overflow.c", &["-fno-inline", "-fno-optimize-sibling-calls"])
    else {
        return;
    };
    same(&program, &[], Wish::default());
}

#[test]
fn a_program_with_a_filter_of_calls() {
    let Some(program) = compiled("agent_filtered", "agent_filtered.c", &["-fno-inline"]) else { return };
    let run = same(&program, &["records"], Wish::default());
    assert_eq!(run.count("work"), (100_000, 100_000));
    // Without calls that records need, nothing is recorded from the filter on, which is counted.
    let run = same(&program, &[], Wish::default());
    let (entries, exits) = run.count("work");
    assert_eq!((entries + exits + run.dropped(), entries), (200_000, 0), "{entries} {exits} {}", run.dropped());
}

#[test]
fn nothing_is_seen_of_it() {
    let environment = |c: &mut Command| {
        c.env_clear().env("A", "1").env("PATH", testkit::PATH).env("Z", "last");
    };
    for program in ["/usr/bin/env", "/bin/sh"] {
        let arguments: &[&str] = if program == "/bin/sh" { &["-c", "env; exec env"] } else { &[] };
        let (mut bare, mut traced) = (Command::new(program), Command::new(program));
        environment(bare.args(arguments));
        environment(traced.args(arguments));
        let bare = bare.output().expect("env");
        let traced = run(&mut traced, Wish::default());
        assert_eq!(traced.text(), String::from_utf8_lossy(&bare.stdout));
        assert!(!traced.processes.is_empty());
    }
    // A descriptor more or less would change the number of the one that ls opens.
    let run = same("/bin/ls", &["/proc/self/fd"], Wish::default());
    assert!(run.processes[0].installed.patched > 0);
}

#[test]
fn without_a_collector_nothing_happens() {
    let out = Command::new("/usr/bin/env")
        .env_clear()
        .env("LD_PRELOAD", collector::agent())
        .env(abi::SOCKET, "trapline-nobody")
        .env("A", "1")
        .output()
        .expect("env");
    assert_eq!(String::from_utf8_lossy(&out.stdout), "A=1\n");
    assert!(out.status.success() && out.stderr.is_empty());
}

#[test]
fn programs_of_this_machine() {
    let all: Wish = Wish { functions: |_, _| true, hooks: true, ..Wish::default() };
    same("/bin/ls", &["/"], all.clone());
    same("/bin/sh", &["-c", "for i in 1 2 3; do echo $i | cat; done"], all.clone());
    if testkit::has("python3") {
        let script = "import json, subprocess, threading\nprint(json.dumps(list(range(100))))\n\
            t = threading.Thread(target=lambda: print(sum(range(1000)))); t.start(); t.join()\n\
            print(subprocess.run(['echo', 'x'], capture_output=True).stdout)";
        same("/usr/bin/python3", &["-c", script], Wish { functions: |f, _| f.contains("python"), ..all });
    }
}

/// Not a test: prints what a call costs. `cargo test -p patch --test agent -- --ignored --nocapture cost`
#[test]
#[ignore = "measures"]
fn cost() {
    let Some(program) = compiled("agent_calls", "agent_calls.c", &["-fno-inline"]) else { return };
    let time = |c: &mut Command| {
        let begin = std::time::Instant::now();
        assert!(c.status().expect("the program").success());
        begin.elapsed()
    };
    for n in ["1", "32"] {
        let bare = (0..5).map(|_| time(Command::new(&program).arg(n))).min();
        let none = Wish { functions: |_, _| false, ..Wish::default() };
        let nothing = (0..5).map(|_| run(Command::new(&program).arg(n), none.clone()).took).min();
        let traced =
            (0..5).map(|_| run(Command::new(&program).arg(n), Wish { chunks: 4096, ..Wish::default() }).took).min();
        println!("fib {n}: bare {bare:?}, nothing enabled {nothing:?}, traced {traced:?}");
    }
}
