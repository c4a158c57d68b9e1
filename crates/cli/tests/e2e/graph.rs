//! `trapline graph` and `record -e function:…`: functions of programs, by the agent. Results of programs are those of an untraced run.

use crate::lab::{self, Outcome, User, each_user};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};

const C: &[&str] = &["-O1", "-fno-inline", "-pthread"];

#[track_caller]
fn compiled(name: &str, source: &str, more: &[&str]) -> Option<String> {
    let flags = [C, more].concat();
    testkit::compile(if source.ends_with("cc") { "g++" } else { "gcc" }, name, source, &flags)
}

fn graph(user: User, args: &[&str]) -> Outcome {
    lab::run(&mut lab::trapline(user, &[&["graph"], args].concat()))
}

/// The calls of each function of a trace: name, how often.
#[track_caller]
fn calls(user: User, dir: &str) -> Vec<(String, u64)> {
    let out = lab::run(&mut lab::trapline(user, &["report", "-q", "--as", "calls-json", dir]));
    assert_eq!(out.code(), 0, "{}", out.stderr);
    let mut all = std::collections::BTreeMap::new();
    for line in out.out().lines() {
        let call: Value = serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"));
        if let Some(name) = call["function"].as_str() {
            *all.entry(name.to_string()).or_default() += 1;
        }
    }
    all.into_iter().collect()
}

fn count(calls: &[(String, u64)], name: &str) -> u64 {
    calls.iter().find(|(n, _)| n == name).map_or(0, |(_, n)| *n)
}

/// Records all functions of a command without loss; its output is that of an untraced run. The trace.
#[track_caller]
fn same(user: User, command: &[&str]) -> PathBuf {
    let bare = lab::run(&mut lab::as_user(user, command));
    let dir = lab::scratch().join("trace");
    let stats = lab::scratch().join("stats");
    let options = [
        "-q",
        "--on-full",
        "block",
        "--stats",
        stats.to_str().expect("UTF-8"),
        "-o",
        dir.to_str().expect("UTF-8"),
        "--",
    ];
    let out = graph(user, &[&options[..], command].concat());
    assert_eq!((out.code(), out.out()), (bare.code(), bare.out()), "{}", out.stderr);
    let stats: Value = serde_json::from_slice(&fs::read(&stats).expect("statistics")).expect("JSON");
    assert_eq!((&stats["dropped"], &stats["backend"]), (&0.into(), &"agent".into()), "{stats}");
    dir
}

#[test]
fn calls_are_exact_for_every_user() {
    let Some(program) = compiled("graph_calls", "agent_calls.c", &[]) else { return };
    each_user(|user| {
        let dir = same(user, &[&program, "16"]);
        let calls = calls(user, dir.to_str().expect("UTF-8"));
        assert_eq!((count(&calls, "fib"), count(&calls, "main")), (3193, 1), "{calls:?}");
    });
}

#[test]
fn results_stay_what_they_are() {
    let throws = compiled("graph_throws", "agent_throws.cc", &[]);
    let leaves = compiled("graph_leaves", "agent_leaves.c", &["-fexceptions"]);
    let coroutines = compiled("graph_coroutines", "agent_coroutines.c", &[]);
    let leave = compiled("graph_handlers_leave", "agent_handlers_leave.c", &[]);
    let overflow = compiled("graph_overflow", "agent_overflow.c", &["-fno-optimize-sibling-calls"]);
    let panics = testkit::compile("rustc", "graph_panics", "panics.rs", &["-O"]);
    let by_number = compiled("graph_by_number", "handlers_by_number.cc", &["-O2", "-fnon-call-exceptions"]);
    for program in [throws, leaves, coroutines, leave, overflow, panics, by_number].into_iter().flatten() {
        same(User::Me, &[&program]);
    }
}

/// Handlers that the program has set by a `syscall` instruction of its own have no stand-in: their calls break none that they have interrupted.
#[test]
fn handlers_that_libc_does_not_know() {
    let flags = ["-O2", "-fnon-call-exceptions", "-DOWN_INSTRUCTION"];
    let Some(program) = testkit::compile("g++", "graph_by_own_call", "handlers_by_number.cc", &flags) else { return };
    let bare = lab::run(&mut lab::as_user(User::Me, &[&program])).out();
    assert!(bare.ends_with("right\n"), "{bare}");
    let out = lab::scratch().join("out").display().to_string();
    let sums = ["run", "-q", "-o", &out, "-e", "function:*:return { @[func] = hist(dur); @n[func] = count(); }", "-c"];
    for words in [&["graph", "-q", "-o", &out, "--"][..], &["graph", "-q", "-t", "1us", "-o", &out, "--"], &sums] {
        for round in 0..3 {
            let traced = lab::run(&mut lab::trapline(User::Me, &[words, &[&*program]].concat()));
            assert_eq!((traced.code(), traced.out()), (0, bare.clone()), "{words:?} {round}: {}", traced.stderr);
            let _ = fs::remove_dir_all(&out).or_else(|_| fs::remove_file(&out));
        }
    }
}

#[test]
fn threads_children_and_libraries_are_followed() {
    let text = |dir: &PathBuf| dir.to_str().expect("UTF-8").to_string();
    if let Some(program) = compiled("graph_threads", "agent_threads.c", &[]) {
        let dir = same(User::Me, &[&program]);
        assert_eq!(count(&calls(User::Me, &text(&dir)), "leaf"), 256 * 100);
    }
    if let Some(program) = compiled("graph_children", "agent_children.c", &[]) {
        let dir = same(User::Me, &[&program]);
        let calls = calls(User::Me, &text(&dir));
        assert_eq!((count(&calls, "in_child"), count(&calls, "executed")), (20, 6), "{calls:?}");
    }
}

#[test]
fn programs_of_this_machine_do_what_they_do() {
    same(User::Me, &["sh", "-c", "for i in 1 2 3; do echo $i | cat; done; env | sort | grep -v ^_="]);
    same(User::Me, &["ls", "/proc/self/fd"]);
    if lab::has("perl") {
        same(
            User::Me,
            &[
                "perl",
                "-e",
                "my %h; $h{$_ % 7} += $_ for 1..2000; eval { die 'x' }; print map { \"$_=$h{$_} \" } sort keys %h",
            ],
        );
    }
    if lab::has("python3") {
        let script = "import json, subprocess, threading\nprint(json.dumps(sorted(range(100))))\n\
            t = threading.Thread(target=lambda: print(sum(range(1000)))); t.start(); t.join()\n\
            print(subprocess.run(['echo', 'x'], capture_output=True).stdout)\ntry: int('x')\nexcept ValueError as e: print(e)";
        same(User::Me, &["python3", "-c", script]);
    }
    if lab::has("sqlite3") {
        same(
            User::Me,
            &["sqlite3", ":memory:", "create table t(a); insert into t values (1),(2); select sum(a) from t"],
        );
    }
}

#[test]
fn a_tree_is_what_uftrace_shows() {
    let Some(program) = compiled("graph_calls", "agent_calls.c", &[]) else { return };
    let out = graph(User::Me, &["-q", "-F", "fib", "--no-time", "--", &program, "3"]);
    let tree: Vec<String> =
        out.out().lines().filter_map(|l| l.split_once("| ").map(|(_, call)| call.to_string())).collect();
    let wanted = ["fib() {", "  fib() {", "    fib();", "    fib();", "  } /* fib */", "  fib();", "} /* fib */"];
    assert_eq!(tree, wanted, "{}\n{}", out.out(), out.stderr);
    assert_eq!(out.code(), 0);
    let table = graph(User::Me, &["-q", "--as", "functions", "--", &program, "10"]);
    assert!(table.out().lines().any(|l| l.contains(" 177 ") && l.ends_with(" fib")), "{}", table.out());
    // The temporary trace is gone.
    let temporary = lab::scratch().join("temporary");
    fs::create_dir(&temporary).expect("a directory");
    let mut command = lab::trapline(User::Me, &["graph", "-q", "--", &program, "3"]);
    assert_eq!(lab::run(command.env("TMPDIR", &temporary)).code(), 0);
    assert_eq!(fs::read_dir(&temporary).expect("a directory").count(), 0, "a trace is left behind");
}

#[test]
fn a_recording_selects_functions_by_name() {
    let Some(program) = compiled("graph_calls", "agent_calls.c", &[]) else { return };
    let dir = lab::scratch().join("trace").display().to_string();
    let out = lab::run(&mut lab::trapline(
        User::Me,
        &["record", "-q", "-e", "function:ma*", "-o", &dir, "--", &program, "5"],
    ));
    assert_eq!(out.code(), 0, "{}", out.stderr);
    assert_eq!(calls(User::Me, &dir), [("main".to_string(), 1)]);
    let text = lab::run(&mut lab::trapline(User::Me, &["report", "-q", &dir])).out();
    let main: Vec<&str> = text.lines().filter(|l| l.contains("function:main")).collect();
    assert_eq!(main.len(), 2, "{text}");
}

#[test]
fn a_function_is_found_by_any_of_its_names() {
    let Some(program) = compiled("aliased", "small_and_aliased.c", &[]) else { return };
    for name in ["plain", "__plain"] {
        let out = graph(User::Me, &["-q", "-F", name, "--no-time", "--", &program]);
        assert!(out.code() == 0 && out.out().ends_with("| plain();\n"), "{name}: {}\n{}", out.out(), out.stderr);
        let dir = lab::scratch().join("trace").display().to_string();
        let args = ["record", "-q", "-e", &format!("function:{name}"), "-o", &dir, "--", &program];
        assert_eq!(lab::run(&mut lab::trapline(User::Me, &args)).code(), 0);
        assert_eq!(calls(User::Me, &dir), [("plain".to_string(), 1)]);
        fs::remove_dir_all(&dir).expect("removed");
    }
}

/// Of the C library, and of a library whose functions have weak names, hidden ones, and versions; with symbols for the linker alone, too.
#[test]
fn functions_of_libraries_are_found_by_any_of_their_names() {
    let found = |name: &str, program: &str| {
        let out = graph(User::Me, &["-q", "--lib", "-F", name, "--as", "functions-json", "--", program]);
        assert_eq!(out.code(), 0, "{name}: {}", out.stderr);
        let lines = out.out().lines().filter_map(|l| serde_json::from_str::<Value>(l).ok()).collect::<Vec<_>>();
        let row = |v: &Value| Some((v["function"].as_str()?.to_string(), v["calls"].as_u64()?));
        lines.iter().filter_map(row).collect::<Vec<_>>()
    };
    if let Some(program) = testkit::compile("gcc", "calls_libc", "calls_libc.c", &["-O1", "-fno-builtin"]) {
        for name in ["write", "read", "open", "close", "printf", "getpid", "realloc", "qsort", "nanosleep"] {
            let rows = found(name, &program);
            assert!(rows.contains(&(name.to_string(), 1)), "{name}: {rows:?}");
        }
    }
    let versions =
        concat!("-Wl,--version-script=", env!("CARGO_MANIFEST_DIR"), "/../../tests/programs/named_twice.map");
    for (n, more) in [&["-O1"][..], &["-Os", "-s"]].into_iter().enumerate() {
        let flags = [more, &["-DLIBRARY", "-shared", "-fPIC", versions]].concat();
        let Some(library) = testkit::compile("gcc", &format!("libnamed{n}.so"), "named_twice.c", &flags) else {
            return;
        };
        let Some(program) =
            testkit::compile("gcc", &format!("named{n}"), "named_twice.c", &["-O1", "-Wl,--no-as-needed", &library])
        else {
            return;
        };
        let stripped = more.contains(&"-s");
        for (name, shown, calls) in [
            ("lib_write", "lib_write", 1),
            ("__lib_write", "lib_write", 1),
            ("lib_close", "lib_close", 2),
            ("lib_close64", "lib_close", 2),
            ("lib_close_hidden", "lib_close", 2),
            ("lib_seek_old", "lib_seek", 1),
        ] {
            if stripped && (name.ends_with("hidden") || name.ends_with("old")) {
                continue;
            }
            assert_eq!(found(name, &program), [(shown.to_string(), calls)], "{name} {more:?}");
        }
        // Two functions.
        assert_eq!(found("lib_seek", &program).iter().map(|(_, n)| n).sum::<u64>(), 2, "{more:?}");
    }
}

#[test]
fn what_is_not_traced_says_why() {
    let Some(program) = compiled("aliased", "small_and_aliased.c", &[]) else { return };
    let dir = lab::scratch().join("trace").display().to_string();
    for (name, why) in [
        ("tiny", "tiny is not traced: it is smaller than a jump instruction"),
        ("chosen", "chosen is not traced: it is an IFUNC"),
        ("plane", "no function of the traced programs has this name (nearest: plain, "),
    ] {
        let out = graph(User::Me, &["-F", name, "--", &program]);
        assert!(out.stderr.contains(&format!("trapline: -F {name}: {why}")), "{}", out.stderr);
        let probe = format!("function:{name}");
        let out = lab::run(&mut lab::trapline(User::Me, &["record", "-e", &probe, "-o", &dir, "--", &program]));
        assert!(out.stderr.contains(&format!("trapline: {probe}: {why}")), "{}", out.stderr);
        fs::remove_dir_all(&dir).expect("removed");
    }
    let out = graph(User::Me, &["-t", "1h", "--", &program]);
    assert!(out.stderr.contains("entered: none that has taken as long as -t says"), "{}", out.stderr);
    // A loop that runs already; named twice it is one process.
    let mut run = lab::start(&mut lab::as_user(User::Me, &[&program, "loop"]));
    let pid = run.pid().to_string();
    lab::until("it sleeps", || {
        fs::read_to_string(format!("/proc/{pid}/wchan")).is_ok_and(|at| at.contains("nanosleep"))
    });
    let out = graph(User::Me, &["-p", &pid, "-p", &pid, "--duration", "50ms"]);
    assert!(out.stderr.contains("entered: none; what runs already"), "{}", out.stderr);
    lab::kill("KILL", run.pid().into());
    let _ = run.child.wait();
}

#[test]
fn a_start_that_fails_leaves_no_directory() {
    let script = lab::scratch().join("script");
    fs::write(&script, "#!/nonexistent\n").expect("a script");
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).expect("executable");
    let (script, gone) = (script.display().to_string(), i32::MAX.to_string());
    let (new, empty) = (lab::scratch().join("new"), lab::scratch().join("empty"));
    fs::create_dir(&empty).expect("a directory");
    for dir in [&new, &empty] {
        let dir = dir.to_str().expect("UTF-8");
        for command in ["graph", "record", "heap"] {
            for target in [&["-p", &*gone][..], &["--", &script]] {
                let args = [&[command, "-o", dir][..], target].concat();
                let out = lab::run(&mut lab::trapline(User::Me, &args));
                assert!(out.code() > 2 || out.code() == 1, "{args:?}: {}", out.stderr);
                assert!(!new.exists() && fs::read_dir(&empty).expect("it stays").count() == 0, "{args:?}");
            }
        }
    }
}

#[test]
fn what_a_killed_graph_leaves_goes_with_the_next() {
    let temporary = lab::scratch().join("temporary");
    fs::create_dir(&temporary).expect("a directory");
    let begin = |args: &[&str]| {
        let mut command = lab::trapline(User::Me, &[&["graph", "-q"], args].concat());
        command.env("TMPDIR", &temporary);
        command
    };
    let count = || fs::read_dir(&temporary).expect("a directory").count();
    // The command's parent is trapline.
    lab::run(&mut begin(&["sh", "-c", "kill -KILL $PPID"]));
    assert_eq!(count(), 1);
    let mut second = lab::start(begin(&["cat"]).stdin(Stdio::piped()));
    let traces = || fs::read_dir(&temporary).expect("a directory").flatten().map(|e| e.path().join("trace/metadata"));
    lab::until("it records, and the first one's is gone", || count() == 1 && traces().all(|t| t.exists()));
    // One that is in use stays.
    assert_eq!(lab::run(&mut begin(&["true"])).code(), 0);
    assert_eq!(count(), 1);
    drop(second.child.stdin.take());
    assert!(second.child.wait().expect("it ends").success());
    assert_eq!(count(), 0);
}

#[test]
fn what_has_no_agent_is_said_in_a_line() {
    let fixed = testkit::compile("gcc", "graph_static", "agent_calls.c", &["-static"]);
    let Some(fixed) = fixed else { return };
    for (args, code, why) in [
        (&["--", &*fixed, "3"][..], 125, "a static program loads no agent"),
        (&["--as", "trees", "--", "true"], 2, "no such view"),
        (&["--backend", "ptrace", "--", "true"], 2, "functions are traced by the agent"),
        (&["--backend", "kernel", "--", "true"], 2, "functions are traced by the agent"),
        (&["--", "/nonexistent"], 127, "no such file"),
    ] {
        let out = graph(User::Me, args);
        assert_eq!(out.code(), code, "{args:?}: {}", out.stderr);
        assert!(out.stderr.contains(why) && out.stderr.lines().count() == 1, "{args:?}: {}", out.stderr);
    }
}

#[test]
fn what_the_agent_does_not_trace_is_refused() {
    for (args, why) in [
        (&["trace", "--backend", "agent", "--", "true"][..], "it traces functions, and no system calls"),
        (&["record", "--backend", "agent", "-e", "begin", "--", "true"], "it traces functions, and no other probes"),
    ] {
        let out = lab::run(&mut lab::trapline(User::Me, args));
        assert_eq!((out.code(), out.stderr.lines().count()), (2, 1), "{args:?}: {}", out.stderr);
        assert!(out.stderr.contains(why), "{args:?}: {}", out.stderr);
    }
}

#[test]
fn the_command_survives_a_killed_trapline() {
    let Some(program) = compiled("graph_calls", "agent_calls.c", &[]) else { return };
    let dir = lab::scratch().join("trace").display().to_string();
    let marker = lab::scratch().join("done").display().to_string();
    // Far more records than the disk gets before trapline dies; then the thread would wait for a room that never comes.
    let script = format!("'{program}' 31 > '{marker}.new' && mv '{marker}.new' '{marker}'");
    let mut run = lab::start(&mut lab::trapline(
        User::Me,
        &["graph", "-q", "--on-full", "block", "--buffer", "256K", "-o", &dir, "--", "sh", "-c", &script],
    ));
    lab::until("it has begun", || fs::metadata(format!("{marker}.new")).is_ok());
    std::thread::sleep(Duration::from_millis(20));
    lab::kill("KILL", run.pid().into());
    let _ = run.child.wait();
    let begin = Instant::now();
    lab::until("the command has ended", || fs::metadata(&marker).is_ok());
    assert!(begin.elapsed() < Duration::from_secs(20));
    assert_eq!(fs::read_to_string(&marker).expect("its output").trim(), "1346269");
}

#[test]
fn nonsense_from_processes_is_refused() {
    let Some(program) = compiled("graph_calls", "agent_calls.c", &[]) else { return };
    if !lab::has("python3") {
        return testkit::skip("package", "no python3");
    }
    // It speaks to the socket as an agent would, and says nonsense; then an honest program runs.
    let script = "import os, socket, sys\n\
        name = [l.split()[-1] for l in open('/proc/net/unix') if '/trapline-agent-' in l and '/socket-' in l]\n\
        refused = 0\n\
        for n in name:\n\
        \x20   for bad in (b'', b'x' * 7, b'\\xff' * 4096, bytes(512), os.urandom(65536)):\n\
        \x20       s = socket.socket(socket.AF_UNIX)\n\
        \x20       try: s.connect(n.replace('@', '\\0'))\n\
        \x20       except OSError: continue\n\
        \x20       try: s.sendall(bad)\n\
        \x20       except OSError: pass\n\
        \x20       s.close()\n\
        \x20       refused += 1\n\
        assert refused >= 5, name\n\
        os.execv(sys.argv[1], [sys.argv[1], '16'])";
    let dir = lab::scratch().join("trace").display().to_string();
    let out = graph(User::Me, &["-o", &dir, "--program", "graph_calls*", "--", "python3", "-c", script, &program]);
    assert_eq!((out.code(), out.out().trim()), (0, "987"), "{}", out.stderr);
    assert_eq!(count(&calls(User::Me, &dir), "fib"), 3193, "{}", out.stderr);
}
