//! Functions beside system calls and other probes, in one trace: as root through the kernel and through ptrace, and as nobody.

use crate::lab::{self, Outcome, User, each_backend};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

const C: &[&str] = &["-O1", "-fno-inline", "-pthread"];

/// A program whose function `leaf` opens, reads and closes a file, as often as it is told.
#[track_caller]
fn callers() -> Option<String> {
    testkit::compile("gcc", "joined_calls", "joined_calls.c", C)
}

struct Recorded {
    out: Outcome,
    dir: PathBuf,
    stats: Value,
}

impl Recorded {
    fn text(&self) -> &str {
        self.dir.to_str().expect("UTF-8")
    }

    /// What a report of the trace says.
    #[track_caller]
    fn report(&self, user: User, options: &[&str]) -> String {
        let out = lab::run(&mut lab::trapline(user, &[&["report", "-q"], options, &[self.text()]].concat()));
        assert_eq!(out.code(), 0, "{}", out.stderr);
        out.out()
    }

    #[track_caller]
    fn json(&self, user: User, options: &[&str]) -> Vec<Value> {
        let parse = |l: &str| serde_json::from_str(l).unwrap_or_else(|e| panic!("{e}: {l}"));
        self.report(user, options).lines().map(parse).collect()
    }

    /// The names of the calls of each thread, in the order in which the threads were made.
    #[track_caller]
    fn calls(&self, user: User) -> Vec<Vec<String>> {
        let events = self.json(user, &["--as", "json"]);
        let made: Vec<u64> = events.iter().filter(|e| e["type"] == "fork").map(|e| number(e, "child_tid")).collect();
        let mut threads: BTreeMap<Option<usize>, Vec<String>> = BTreeMap::new();
        for e in events.iter().filter(|e| e["type"] == "syscall") {
            let thread = made.iter().position(|tid| *tid == number(e, "tid"));
            threads.entry(thread).or_default().push(e["name"].as_str().expect("a name").to_string());
        }
        threads.into_values().collect()
    }
}

fn number(of: &Value, field: &str) -> u64 {
    of[field].as_u64().unwrap_or_else(|| panic!("no {field} in {of}"))
}

/// Runs `trapline COMMAND OPTIONS -o DIR -- PROGRAM`, with the backend of the user.
#[track_caller]
fn run(user: User, options: &[&str], program: &[&str]) -> Recorded {
    let dir = lab::scratch().join("trace");
    let stats = lab::scratch().join("stats");
    let paths = ["-o", dir.to_str().expect("UTF-8"), "--stats", stats.to_str().expect("UTF-8")];
    let backend: Vec<&str> = user.asks_for().into_iter().flat_map(|b| ["--backend", b]).collect();
    let argv = [&options[..1], &backend, &paths, &options[1..], &["--"], program].concat();
    let out = lab::run(&mut lab::trapline(user, &argv));
    let stats = fs::read(&stats).ok().and_then(|s| serde_json::from_slice(&s).ok()).unwrap_or(Value::Null);
    Recorded { out, dir, stats }
}

#[track_caller]
fn recorded(user: User, options: &[&str], program: &[&str]) -> Recorded {
    let bare = lab::run(&mut lab::as_user(user, program));
    let r = run(user, options, program);
    assert_eq!((r.out.code(), r.out.out()), (bare.code(), bare.out()), "{}", r.out.stderr);
    assert_eq!(r.stats["backend"], format!("{}+agent", user.backend()), "{}", r.stats);
    assert_eq!(r.stats["dropped"], 0, "{}", r.stats);
    r
}

#[test]
fn calls_are_in_the_functions_that_make_them() {
    let Some(program) = callers() else { return };
    each_backend(|user| {
        let r = recorded(user, &["graph", "--syscalls"], &[&program, "200"]);
        let tree = r.report(user, &["--as", "tree", "--syscalls", "--function", "leaf"]);
        let tree: Vec<&str> = tree.lines().filter_map(|l| Some(l.split_once("] | ")?.1)).collect();
        let from = tree.iter().position(|l| l.starts_with("leaf() {")).expect("leaf");
        let whole = |l: &[&str]| {
            l.len() == 5
                && l[0] == "leaf() {"
                && l[1].starts_with("  openat(AT_FDCWD, \"/etc/passwd\"")
                && l[2].starts_with("  read(")
                && l[3].starts_with("  close(")
                && l[4].starts_with("} /* leaf")
        };
        let calls: Vec<&[&str]> = tree[from..].chunks(5).take(200).collect();
        assert!(calls.len() == 200 && calls.iter().all(|c| whole(c)), "{user:?}: {calls:?}");
        // As slices: a call begins and ends inside of the function that makes it.
        let slices = r.json(user, &["--as", "calls-json"]);
        let mut leaves: Vec<(u64, u64)> = slices
            .iter()
            .filter(|c| c["function"] == "leaf")
            .map(|c| (number(c, "start_ns"), number(c, "start_ns") + number(c, "duration_ns")))
            .collect();
        leaves.sort_unstable();
        let events = r.json(user, &["--as", "json", "-e", "openat,read,close"]);
        let calls = events.iter().filter(|e| e["type"] == "syscall");
        let times = calls.map(|c| (number(c, "start_ns"), number(c, "end_ns")));
        let of_leaf: Vec<_> = times.filter(|t| t.1 >= leaves[0].0).collect();
        let outside = of_leaf.iter().filter(|(from, to)| !leaves.iter().any(|(begin, end)| begin <= from && to <= end));
        assert_eq!((leaves.len(), of_leaf.len(), outside.count()), (200, 600, 0), "{user:?}");
    });
}

#[test]
fn the_agent_s_calls_are_not_shown() {
    let Some(program) = callers() else { return };
    let script = "ls /dev/null; (exec true); env A=1 ls / | tail -n 1; exec sh -c 'echo $0'";
    let python = "import json, os\npid = os.fork()\nif not pid: os._exit(3)\nprint(os.waitpid(pid, 0)[1], json.dumps({'a': [1]}))";
    let mut programs: Vec<Vec<&str>> =
        vec![vec!["ls", "/usr"], vec![&program, "3"], vec!["sh", "-c", script], vec!["env", "no-such-program"]];
    if lab::has("/usr/bin/python3") || lab::has("python3") {
        programs.push(vec!["/usr/bin/python3", "-ISc", python]);
    }
    each_backend(|user| {
        for command in &programs {
            if !PathBuf::from(command[0]).is_absolute() || PathBuf::from(command[0]).exists() {
                same_calls(user, command);
            }
        }
    });
}

/// Whether the calls of a command are the same with functions and without.
#[track_caller]
fn same_calls(user: User, command: &[&str]) {
    let without = run(user, &["record", "-q", "-e", "all"], command);
    let with = run(user, &["record", "-q", "-e", "all", "-e", "function:main"], command);
    assert_eq!((with.out.code(), with.out.out()), (without.out.code(), without.out.out()), "{}", with.out.stderr);
    // The loader asks for more memory for one more library. When children end is not the agent's doing.
    let kept = |calls: Vec<Vec<String>>| -> Vec<Vec<String>> {
        let left_out = ["mmap", "munmap", "brk", "rt_sigreturn", "wait4", "poll"];
        let keep = |calls: Vec<String>| calls.into_iter().filter(|c| !left_out.contains(&c.as_str())).collect();
        calls.into_iter().map(keep).collect()
    };
    let (a, b) = (without.calls(user), with.calls(user));
    let maps = |all: &[Vec<String>]| all.iter().flatten().filter(|c| *c == "mmap").count();
    assert!(maps(&b) <= maps(&a) + 2 * b.len(), "{user:?} {command:?}: {} {}", maps(&a), maps(&b));
    let (a, b) = (kept(a), kept(b));
    assert_eq!(a.len(), b.len(), "{user:?} {command:?}");
    if let Some((a, b)) = a.iter().zip(&b).find(|(a, b)| a != b) {
        let at = a.iter().zip(b).take_while(|(a, b)| a == b).count();
        let near = |all: &[String]| all.iter().skip(at.saturating_sub(3)).take(8).cloned().collect::<Vec<_>>();
        panic!("{user:?} {command:?}: call {at}: {:?}, with functions {:?}", near(a), near(b));
    }
    let text = with.report(user, &[]);
    // The kernel calls the agent first when a signal comes.
    let its = |l: &&str| l.contains("trapline-agent") || l.contains("0x10ff0") && !l.contains(" rt_sigaction(");
    assert_eq!(text.lines().find(its), None, "{user:?} {command:?}");
    // The new program's environment has what loads the agent.
    assert!(!text.contains("LD_PRELOAD"), "{text}");
}

// Slow: a recording for each of many selections, with both backends.
#[test]
fn a_selection_holds_beside_functions() {
    let Some(program) = callers() else { return };
    let names = |r: &Recorded, user: User| -> Vec<String> {
        let all = r.json(user, &["--as", "json"]);
        let shown = all.iter().filter(|e| ["syscall", "probe"].contains(&e["type"].as_str().unwrap_or_default()));
        shown.map(|e| e["name"].as_str().unwrap_or_default().to_string()).collect()
    };
    each_backend(|user| {
        // One list for both; a filter for one of them.
        for (options, calls) in [
            (&["record", "-e", "function:leaf,read"][..], 3),
            (&["record", "-e", "function:leaf", "-e", "read /args.count == 4/"], 2),
            (&["record", "-e", "function:leaf,read", "--where", "pid > 0"], 3),
            (&["record", "-e", "function:leaf", "-e", "trace=read"], 3),
            (&["record", "-e", "function:leaf", "--trace", "read"], 3),
        ] {
            let r = recorded(user, options, &[&program, "2"]);
            let all = names(&r, user);
            // The loader reads libc, but nobody reads the agent's file.
            assert_eq!(all.iter().filter(|n| *n == "read").count(), calls, "{user:?} {options:?}: {all:?}");
            assert_eq!(all.iter().filter(|n| n.starts_with("function:")).count(), 4, "{user:?} {options:?}: {all:?}");
            assert_eq!(all.len(), calls + 4, "{user:?} {options:?}: {all:?}");
            // By which the loading of the agent is known.
            let others = r.report(user, &["-e", "open,openat,close"]);
            assert!(!others.contains("open") && !others.contains("close("), "{user:?} {options:?}: {others}");
        }
    });
    if lab::kernel_backend_is_possible() {
        let probe = "tracepoint:sched:sched_process_exit";
        let r =
            recorded(User::Kernel, &["record", "-e", "function:leaf", "-e", probe, "-e", "openat"], &[&program, "2"]);
        let all = names(&r, User::Kernel);
        for (name, n) in [(probe, 1), ("function:leaf:entry", 0), ("openat", 4)] {
            let found = all.iter().filter(|a| *a == name).count();
            assert!(found == n || n == 0, "{name}: {all:?}");
        }
    }
}

/// A value in an event as babeltrace2 prints it.
fn printed<'a>(line: &'a str, field: &str) -> Option<&'a str> {
    let rest = line.split_once(&format!(" {field} = "))?.1;
    Some(rest.split([',', ' ']).next()?.trim_matches('"'))
}

/// It merges both clocks: the counter that functions have, and the clock of all other events.
#[test]
fn a_trace_of_both_is_read_by_babeltrace() {
    let Some(program) = callers() else { return };
    if !lab::has("babeltrace2") {
        return lab::skip("package:babeltrace2", "no babeltrace2");
    }
    let script = format!("'{program}' 50 2000 & '{program}' 50; wait; exec '{program}' 5");
    each_backend(|user| {
        let r = recorded(user, &["record", "-e", "all", "-e", "function:*"], &["sh", "-c", &script]);
        let argv = ["timeout", "60", "babeltrace2", "--clock-seconds", "--no-delta", "--color=never", r.text()];
        let out = lab::run(&mut lab::as_user(User::Me, &argv));
        assert_eq!((out.code(), out.stderr.as_str()), (0, ""), "{user:?}");
        let text = out.out();
        let (mut leaf, mut last, mut inside) = (None, String::new(), BTreeMap::new());
        let (mut of_leaf, mut outside, mut functions) = (0, 0, 0);
        for line in text.lines() {
            let (time, rest) = line.strip_prefix('[').and_then(|l| l.split_once("] ")).expect("a time");
            let time = format!("{time:0>24}");
            assert!(last <= time, "{user:?}: {line}");
            last = time;
            let name = rest.split(' ').nth(1).unwrap_or_default().trim_end_matches(':');
            let tid = printed(rest, "tid").unwrap_or_default().to_string();
            match name {
                "process:function" if printed(rest, "name") == Some("leaf") => {
                    leaf = printed(rest, "number").map(str::to_string);
                }
                "function:entry" | "function:exit" => {
                    functions += 1;
                    if printed(rest, "function") == leaf.as_deref() {
                        inside.insert(tid, name == "function:entry");
                    }
                }
                "syscall:openat" if rest.contains("\"/etc/passwd\"") => {
                    of_leaf += 1;
                    outside += u32::from(inside.get(&tid) != Some(&true));
                }
                _ => {}
            }
        }
        assert_eq!((functions, of_leaf), (2 * (105 + 3), 105), "{user:?}");
        // It takes the counter's rate for constant.
        assert!(outside <= 5, "{user:?}: {outside} of {of_leaf} calls are outside of their function");
        eprintln!("{user:?}: {outside} of {of_leaf} outside");
    });
}

#[test]
fn programs_that_restrict_themselves_are_traced() {
    let Some(program) = testkit::compile("gcc", "joined_filtered", "agent_filtered.c", C) else { return };
    each_backend(|user| {
        let bare = lab::run(&mut lab::as_user(user, &[&*program]));
        // From the filter on, the agent may not make the calls that records need: they are counted as lost.
        let r = run(user, &["graph", "--syscalls"], &[&program]);
        assert_eq!((r.out.code(), r.out.out()), (bare.code(), bare.out()), "{user:?}: {}", r.out.stderr);
        let calls = r.json(user, &["--as", "calls-json"]);
        assert!(calls.iter().any(|c| c["function"] == "main"), "{user:?}: {calls:?}");
        assert_eq!(r.json(user, &["--as", "json", "-e", "prctl"]).iter().filter(|e| e["type"] == "syscall").count(), 2);
    });
}

/// Names and processes are there without another backend, too.
// Slow: every call of 64 threads is recorded and read again, for each user.
#[test]
fn functions_alone_have_their_processes_and_threads() {
    let Some(program) = callers() else { return };
    let Some(threads) = testkit::compile("gcc", "joined_threads", "agent_threads.c", C) else { return };
    lab::each_user(|user| {
        let script = format!("'{program}' 1; '{threads}'; exit 3");
        let dir = lab::scratch().join("trace");
        let text = dir.to_str().expect("UTF-8");
        let argv = ["record", "-q", "--on-full", "block", "-e", "function:*", "-o", text, "--", "sh", "-c", &script];
        let out = lab::run(&mut lab::trapline(user, &argv));
        assert_eq!(out.code(), 3, "{}", out.stderr);
        let r = Recorded { out, dir: dir.clone(), stats: Value::Null };
        let json = r.json(user, &["--as", "json"]);
        let of = |kind: &str| json.iter().filter(|e| e["type"] == kind).collect::<Vec<_>>();
        let execs: Vec<&str> = of("exec").iter().map(|e| e["comm"].as_str().expect("a name")).collect();
        assert_eq!(execs.len(), 3, "{execs:?}");
        assert!(
            execs.iter().all(|name| program.contains(name) || threads.contains(name) || *name == "sh"),
            "{execs:?}"
        );
        let (forks, first) = (of("fork"), number(of("exec")[0], "pid"));
        let (processes, of_threads): (Vec<&Value>, Vec<&Value>) =
            forks.into_iter().partition(|e| e["child"] == e["child_tid"]);
        assert_eq!((processes.len(), of_threads.len()), (2, 256), "{user:?}");
        assert!(processes.iter().all(|e| number(e, "pid") == first), "{processes:?}");
        // Threads have a name in their lines. One that begins while another is seen to end may get it a moment later.
        let calls = r.json(user, &["--as", "calls-json"]);
        let calls: Vec<&Value> = calls.iter().filter(|c| c["type"] == "call").collect();
        let named =
            calls.iter().filter(|c| c["tid_comm"].as_str().is_some_and(|name| name.starts_with("joined_"))).count();
        let unnamed = calls.iter().find(|c| !c["tid_comm"].as_str().is_some_and(|name| name.starts_with("joined_")));
        let all = calls.len();
        assert!(all > 25_000 && named > all / 100 * 99, "{user:?}: {named} of {all}, {unnamed:?}");
    });
}

#[test]
fn git_and_its_children_are_traced() {
    if !lab::has("git") {
        return testkit::skip("package", "no git");
    }
    each_backend(|user| {
        let dir = lab::scratch().join("repository");
        let text = dir.to_str().expect("UTF-8");
        lab::run(&mut lab::as_user(user, &["git", "init", "-q", text]));
        let program = ["git", "-C", text, "-c", "alias.x=!git status --short | cat; echo end", "x"];
        let r = recorded(user, &["record", "-e", "execve,function:*"], &program);
        let all = r.json(user, &["--as", "json"]);
        let execs = all.iter().filter(|e| e["type"] == "exec").count();
        let forks = all.iter().filter(|e| e["type"] == "fork").count();
        // Each once: by the backend that follows processes anyway.
        let processes: std::collections::BTreeSet<u64> =
            all.iter().filter(|e| e["type"] == "exec").map(|e| number(e, "pid")).collect();
        assert!(execs >= 3 && processes.len() >= 2 && forks + 1 >= processes.len(), "{user:?}: {execs} {forks}");
        let children: Vec<u64> = all.iter().filter(|e| e["type"] == "fork").map(|e| number(e, "child_tid")).collect();
        let different: std::collections::BTreeSet<&u64> = children.iter().collect();
        assert_eq!(children.len(), different.len(), "{user:?}");
    });
}

#[test]
fn the_command_s_end_is_the_session_s() {
    let Some(program) = callers() else { return };
    each_backend(|user| {
        for (command, code) in [
            (&["/nonexistent"][..], 127),
            (&["/dev/null"], 126),
            (&["sh", "-c", "exit 3"], 3),
            (&["sh", "-c", "kill -TERM $$"], 128 + 15),
        ] {
            let r = run(user, &["graph", "-q", "--syscalls"], command);
            let ended = r
                .out
                .status
                .code()
                .unwrap_or_else(|| 128 + std::os::unix::process::ExitStatusExt::signal(&r.out.status).unwrap_or(0));
            assert_eq!(ended, code, "{user:?} {command:?}: {}", r.out.stderr);
        }
        // A session that ends before its command.
        let r = run(user, &["graph", "--syscalls", "--duration", "1.5"], &[&program, "60", "50000"]);
        let calls = r.json(user, &["--as", "calls-json"]);
        let leaves = calls.iter().filter(|c| c["function"] == "leaf").count();
        let events = r.json(user, &["--as", "json", "-e", "read"]);
        let reads = events.iter().filter(|e| e["type"] == "syscall" && e["args"]["count"] == 4).count();
        assert!(leaves < 60 && reads < 60 && leaves.abs_diff(reads) <= 2, "{user:?}: {leaves} {reads}");
    });
}

#[test]
fn what_cannot_be_traced_together_is_said_in_a_line() {
    for (args, why) in [
        (&["record", "-e", "function:main,openat", "-a"][..], "functions are traced in one program"),
        (&["record", "-e", "function:main,openat /args.dfd == 1/", "--", "true"], "unknown field 'args.dfd'"),
        (&["graph", "--syscalls", "--backend", "agent", "--", "true"], "it traces functions, and no system calls"),
    ] {
        let out = lab::run(&mut lab::trapline(User::Me, args));
        assert_eq!((out.code(), out.stderr.lines().count()), (2, 1), "{args:?}: {}", out.stderr);
        assert!(out.stderr.contains(why), "{args:?}: {}", out.stderr);
    }
}

/// Each enabling has its own numbers, whichever backend counts them: what happened was recorded, dropped or filtered.
#[test]
fn enablings_of_both_add_up() {
    if !lab::kernel_backend_is_possible() {
        return;
    }
    let Some(program) = testkit::compile("gcc", "heap_handed", "heap_handed.c", &["-O1", "-pthread"]) else { return };
    let probes = ["heap:*", "function:*", "tracepoint:sched:sched_switch", "tracepoint:syscalls:sys_enter_openat"];
    let options: Vec<&str> = ["record"].into_iter().chain(probes.iter().flat_map(|p| ["-e", *p])).collect();
    let recorded = run(User::Kernel, &options, &[&program]);
    let stats = recorded.json(User::Kernel, &["--as", "stats-json"]);
    let rows = stats[0]["enablings"].as_array().expect("enablings");
    assert_eq!(rows.len(), 7, "{rows:?}");
    for row in rows {
        let lost = number(row, "dropped") + number(row, "filtered");
        assert_eq!(number(row, "seen"), number(row, "recorded") + lost, "{row}");
    }
}
