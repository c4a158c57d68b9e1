//! `--where`: counted by hand, the same live and later, on both backends; counters; what is said when it is wrong or nothing passes.

use crate::lab::{self, Outcome, User, each_user};
use crate::trace::{Trace, lines_of, trace};
use crate::{kernel, terminal};
use serde_json::Value;
use std::path::Path;

/// A set of calls, a filter of it, and how many calls of `known_calls` pass.
const CASES: &[(&str, &str, usize)] = &[
    ("openat", r#"startswith(args.filename, "/nonexistent/")"#, 7),
    ("openat", r#"retval == -ENOENT && startswith(args.filename, "/nonexistent/known")"#, 7),
    ("openat", r#"args.filename == "/nonexistent/known-3" || args.filename == "/nonexistent/known-5""#, 2),
    ("openat", r#"args.filename == "/dev/null""#, 5),
    ("openat", r#"args.flags & O_CREAT && args.filename == "/dev/null""#, 3),
    ("openat", r#"(args.flags & O_ACCMODE) == O_RDONLY && args.filename == "/dev/null""#, 2),
    ("kill", "retval == 0 && args.sig == 0", 4),
    ("kill", "retval == -EINVAL", 2),
    ("kill,openat", r#"probe == "syscall:kill""#, 6),
    ("nanosleep", "dur >= 20ms && nsecs > 0", 3),
    ("nanosleep", "dur < 20ms", 0),
    ("memfd_create", r#"startswith(args.uname, "0123456789012345678901234567890123456789-this")"#, 2),
    ("memfd_create", r#"args.uname == "0123456789012345678901234567890123456789-that""#, 1),
    ("getxattr", r#"startswith(args.name, "user.0123456789012345678901234567890123456789-this")"#, 2),
    ("getxattr", r#"args.name == "user.0123456789012345678901234567890123456789-that""#, 1),
    ("openat", r#"endswith(args.filename, "/known-3")"#, 1),
    ("openat", r#"contains(args.filename, "xistent/k") && retval == -ENOENT"#, 7),
    ("openat", r#"glob(args.filename, "/dev/n*l") && !contains(args.filename, "known")"#, 5),
    ("openat", r#"glob(args.filename, "/nonexistent/known-?")"#, 7),
    ("memfd_create", r#"endswith(args.uname, "-that")"#, 1),
    ("memfd_create", r#"contains(args.uname, "9-th") || pid == 1"#, 3),
    ("getxattr", r#"glob(args.name, "user.*-th?s*")"#, 2),
    ("getxattr", r#"endswith(args.name, "-this") && comm != "x""#, 2),
    ("close", r#"strcontains(comm, "-work") && endswith(comm, "er") && retval == -EBADF"#, 6),
    ("close", r#"comm == "a-worker" && retval == -EBADF"#, 6),
    ("close", "args.fd == 4002 && pid == tid", 7),
    ("close,kill", "retval < 0 && pid != tid", 6),
];

fn calls(lines: &[crate::trace::Line]) -> usize {
    lines.iter().filter(|l| l.is_call()).count()
}

fn each_backend(scenario: impl Fn(&str)) {
    scenario("ptrace");
    if kernel::possible() {
        scenario("kernel");
    }
}

/// `trapline record -o DIR OPTIONS -- COMMAND`
fn record(dir: &Path, options: &[&str], command: &[&str]) -> Outcome {
    let all = [&["record", "-o", dir.to_str().expect("UTF-8")], options, &["--"], command].concat();
    lab::run(&mut lab::trapline(User::Me, &all))
}

#[test]
fn an_enabling_has_a_filter_that_no_program_carries_out() {
    let Some(program) = lab::program("known_calls").filter(|_| kernel::possible()) else { return };
    let dir = lab::scratch().join("trace");
    let with = |filter: &str| {
        let expr = format!("openat /{filter}/");
        let out = record(&dir, &["--force", "-e", &expr], &[&program]);
        assert_eq!(out.code(), 0, "{}", out.stderr);
        calls(&report(&dir, &[]).0)
    };
    assert_eq!(with(r#"endswith(args.filename, "/known-3")"#), 1);
    assert_eq!(with(r#"contains(args.filename, "/known") && retval < 0"#), 7);
    let refused = record(&dir, &["--force", "-e", r#"tracepoint:sched:sched_switch /glob(comm, "a*")/"#], &["true"]);
    assert!(refused.code() == 2 && refused.stderr.contains("are for calls and functions"), "{}", refused.stderr);
    let where_ = ["--force", "-e", "tracepoint:sched:sched_switch", "--where", r#"contains(comm, "a")"#];
    let refused = record(&dir, &where_, &["true"]);
    assert!(refused.code() == 2 && refused.stderr.lines().count() == 1, "{}", refused.stderr);
}

/// `trapline report OPTIONS DIR`, as lines.
fn report(dir: &Path, options: &[&str]) -> (Vec<crate::trace::Line>, Outcome) {
    let file = lab::scratch().join("text");
    let view = format!("text={}", file.display());
    let all = [&["report", "--as", &view], options, &[dir.to_str().expect("UTF-8")]].concat();
    let out = lab::run(&mut lab::trapline(User::Me, &all));
    (lines_of(&file), out)
}

fn counters(path: &Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(path).expect("--stats")).expect("JSON")
}

#[test]
fn live_filters_pass_what_was_counted_by_hand() {
    let Some(program) = lab::program("known_calls") else { return };
    each_backend(|backend| {
        for (set, filter, expected) in CASES {
            let t = trace(User::Me, &["--backend", backend, "-e", set, "--where", filter], &[&program]);
            assert_eq!(calls(&t.lines), *expected, "{backend} {filter}\n{}", t.text());
        }
    });
}

#[test]
fn a_recording_of_everything_is_filtered_later_alike() {
    let Some(program) = lab::program("known_calls") else { return };
    each_backend(|backend| {
        let dir = lab::scratch();
        let out = record(&dir, &["--backend", backend, "-s", "64"], &[&program]);
        assert_eq!(out.code(), 0, "{}", out.stderr);
        for (set, filter, expected) in CASES {
            let (lines, out) = report(&dir, &["-e", set, "--where", filter]);
            assert_eq!(calls(&lines), *expected, "{backend} {filter}\n{}", out.stderr);
        }
        let (lines, out) = report(&dir, &["-e", "kill", "--where", "retval > 0"]);
        assert_eq!(calls(&lines), 0);
        assert!(out.stderr.contains("nothing matched: 6 events were rejected, all by 'retval > 0'"), "{}", out.stderr);
    });
}

#[test]
fn a_filtered_recording_holds_what_passes_and_counts_the_rest() {
    let Some(program) = lab::program("known_calls") else { return };
    each_backend(|backend| {
        let stats = lab::scratch().join("stats");
        let path = stats.to_str().expect("UTF-8");
        for (options, in_report) in [(&[][..], 15), (&["-y"][..], 15)] {
            let dir = lab::scratch();
            let filter = "retval < 0 && (args.fd == 4001 || args.fd == 4002 || args.fd == $1) && args.fd >= 4001";
            let rest = ["--backend", backend, "-e", "close", "--where", filter, "--param", "4003", "--stats", path];
            let out = record(&dir, &[&rest[..], options].concat(), &[&program]);
            assert_eq!(out.code(), 0, "{}", out.stderr);
            let (lines, said) = report(&dir, options);
            assert_eq!(calls(&lines), in_report - 2, "{backend} {options:?} {}", said.stderr);
        }
        let dir = lab::scratch();
        let rest = ["--backend", backend, "-e", "openat,kill", "--where", "retval == 0", "--stats", path];
        let out = record(&dir, &rest, &[&program]);
        assert_eq!(out.code(), 0, "{}", out.stderr);
        let found = counters(&stats);
        let kill = &found["probes"]["syscall:kill"];
        assert_eq!((&kill["seen"], &kill["recorded"], &kill["filtered"]), (&6.into(), &4.into(), &2.into()), "{found}");
        assert_eq!(calls(&report(&dir, &[]).0), 4);
    });
}

#[test]
fn a_filtered_recording_reads_as_it_was_shown() {
    let Some(program) = lab::program("known_calls") else { return };
    each_backend(|backend| {
        let filter = r#"retval < 0 && (comm == "a-worker" || args.fd > 4001)"#;
        let name = r#"startswith(args.name, "user.0123456789012345678901234567890123456789-th")"#;
        for (set, filter) in [("close", filter), ("getxattr", name)] {
            let (dir, shown) = (lab::scratch(), lab::scratch().join("shown"));
            let view = format!("text={}", shown.display());
            let options = ["--backend", backend, "--as", &view, "-e", set, "--where", filter, "-s", "8"];
            let out = record(&dir, &options, &[&program]);
            assert_eq!(out.code(), 0, "{}", out.stderr);
            let later = lab::scratch().join("later");
            let view = format!("text={}", later.display());
            let dir = dir.to_str().expect("UTF-8");
            let out = lab::run(&mut lab::trapline(User::Me, &["report", "--as", &view, dir]));
            let text = |path: &Path| std::fs::read_to_string(path).expect("text");
            assert_eq!(text(&shown), text(&later), "{backend} {filter} {}", out.stderr);
            assert!(calls(&lines_of(&later)) >= 3, "{}", text(&later));
        }
    });
}

/// What was seen is what was recorded, dropped and filtered, and the parts add up, for these calls (empty: all). Others may be seen
/// for the sake of names.
fn adds_up(found: &Value, selected: &[&str]) {
    let probes = found["probes"].as_object().expect("probes");
    let sum = |what: &str| -> u64 { probes.values().map(|p| p[what].as_u64().expect("a number")).sum() };
    assert_eq!(sum("seen"), sum("recorded") + sum("dropped") + sum("filtered"), "{found}");
    let parts = found["where"].as_array().expect("parts");
    let rejected: u64 = parts.iter().map(|p| p["rejected"].as_u64().expect("a number")).sum();
    let unknown = found["unknown"].as_u64().expect("a number");
    let chosen = |name: &str| selected.is_empty() || selected.iter().any(|s| name == format!("syscall:{s}"));
    let filtered = probes.iter().filter(|(name, _)| chosen(name)).map(|(_, p)| p["filtered"].as_u64().unwrap_or(0));
    assert_eq!(filtered.sum::<u64>(), rejected + unknown, "{found}");
    assert_eq!(found["dropped"], 0, "{found}");
}

#[test]
fn every_call_is_recorded_or_counted() {
    let Some(program) = lab::program("known_calls") else { return };
    each_backend(|backend| {
        let stats = lab::scratch().join("stats");
        let path = stats.to_str().expect("UTF-8");
        let run = |options: &[&str]| -> (Trace, Value) {
            let t = trace(User::Me, &[&["--backend", backend, "--stats", path], options].concat(), &[&program]);
            (t, counters(&stats))
        };
        let filter = r#"args.sig == 99 && retval == 0 && comm != "nobody""#;
        let (t, found) = run(&["-e", "kill", "--where", filter]);
        adds_up(&found, &["kill"]);
        let part = |i: usize| found["where"][i]["rejected"].as_u64();
        assert_eq!([part(0), part(1), part(2)], [Some(4), Some(2), Some(0)], "{found}");
        assert_eq!(found["where"][1]["part"], "retval == 0");
        assert_eq!(found["probes"]["syscall:kill"]["filtered"], 6, "{found}");
        let said = "nothing matched: 6 events were rejected, 4 by 'args.sig == 99', 2 by 'retval == 0'";
        assert!(t.outcome.stderr.contains(said), "{}", t.text());
        // Those that do not return lack a result: two processes and a thread end.
        let (t, found) = run(&["--where", "retval < 0"]);
        adds_up(&found, &[]);
        assert_eq!(found["unknown"], 3, "{found}");
        let errors = t.lines.iter().filter(|l| l.is_call()).all(|l| l.result().starts_with("-1 E"));
        assert!(errors && calls(&t.lines) >= 7 + 2 + 6 + 7, "{}", t.text());
        let (t, found) = run(&["-e", "socket", "--where", "retval < 0"]);
        adds_up(&found, &["socket"]);
        assert!(t.outcome.stderr.contains("nothing matched: no such call was made"), "{}", t.text());
        // Names of descriptors do not suffer from what is filtered.
        let (t, found) = run(&["-y", "-e", "openat,close", "--where", "retval == 0"]);
        adds_up(&found, &["openat", "close"]);
        assert_eq!(t.with("close(3</dev/null>)").len(), 5, "{backend} {}", t.text());
    });
}

/// What was made is what was shown, dropped and filtered, however small the buffer.
#[test]
fn full_buffers_and_filters_count_every_call() {
    let command = ["dd", "if=/dev/zero", "of=/dev/null", "bs=1", "count=20000", "status=none"];
    let stats = lab::scratch().join("stats");
    let path = stats.to_str().expect("UTF-8");
    let run = |options: &[&str]| -> Value {
        let t = trace(User::Me, &[&["--stats", path, "-e", "read,write"], options].concat(), &command);
        assert_eq!(t.outcome.code(), 0, "{}", t.outcome.stderr);
        counters(&stats)
    };
    let number = |found: &Value, what: &str| found[what].as_u64().expect("a number");
    let shown = |found: &Value| number(found, "events") + number(found, "bookkeeping");
    let filtered = |found: &Value| {
        let parts = found["where"].as_array().expect("parts").iter().map(|p| p["rejected"].as_u64().expect("a number"));
        parts.sum::<u64>() + number(found, "unknown")
    };
    let all = run(&["--backend", "ptrace"]);
    let dropped = |found: &Value| number(found, "dropped") + number(found, "bookkeeping_dropped");
    assert!(shown(&all) > 40_000 && dropped(&all) == 0, "{all}");
    each_backend(|backend| {
        let small = ["--backend", backend, "--buffer", "4K", "--on-full", "drop"];
        for filter in ["args.fd == 1 && retval == 1", "retval == 1", "retval != 1"] {
            let found = run(&[&small[..], &["--where", filter]].concat());
            let made = shown(&found) + dropped(&found) + filtered(&found);
            assert_eq!(made, shown(&all), "{backend} {filter} {found}");
        }
    });
}

#[test]
fn users_are_followed() {
    if !lab::is_root() {
        return lab::skip("root", "only root becomes another user");
    }
    let Some(program) = lab::program("known_calls") else { return };
    each_backend(|backend| {
        for (filter, expected) in
            [("uid == 65534", 5), ("gid == 65534 && uid != 0", 5), ("uid == 0 && args.fd == 4002", 2), ("gid == $1", 5)]
        {
            let options = ["-e", "close", "--where", filter, "--param", "65534"];
            let t = trace(User::Me, &[&["--backend", backend], &options[..]].concat(), &[&program]);
            assert_eq!(calls(&t.lines), expected, "{backend} {filter}\n{}", t.text());
            let dir = lab::scratch();
            record(&dir, &["--backend", backend], &[&program]);
            assert_eq!(calls(&report(&dir, &options).0), expected, "{backend} {filter}, later");
        }
    });
}

/// What a filter asks at the entry of a call must be so at its end.
#[test]
fn calls_that_rename_their_thread_have_its_new_name() {
    if !lab::has("python3") {
        return lab::skip("package", "no python3");
    }
    let rename = "import ctypes\nfor name in [b'before', b'after'] * 3: ctypes.CDLL(None).prctl(15, name)";
    let write = "for name in ['before', 'after'] * 3: open('/proc/self/comm', 'w').write(name)";
    each_backend(|backend| {
        for (set, filter, program, by_ptrace, by_the_kernel) in [
            // ptrace learns of the name by the call.
            ("prctl", r#"comm == "after" && args.option == 15"#, rename, 2, 3),
            ("prctl", r#"comm == "before" && args.option == 15"#, rename, 3, 3),
            ("write", r#"comm == "after""#, write, 0, 3),
            ("execve", r#"comm == "python3" && retval == 0"#, "", 1, 1),
        ] {
            let options = ["--backend", backend, "-e", set, "--where", filter];
            let t = trace(User::Me, &options, &["/usr/bin/env", "/usr/bin/python3", "-S", "-c", program]);
            let expected = if backend == "kernel" { by_the_kernel } else { by_ptrace };
            assert_eq!(calls(&t.lines), expected, "{backend} {filter}\n{}", t.text());
        }
    });
}

/// Of a process that runs already, name and user are known from the attach on; children have them from their makers.
#[test]
fn running_processes_are_filtered_by_name_and_user() {
    let uid = if lab::is_root() { "0".into() } else { lab::status_field(std::process::id(), "Uid").expect("Uid") };
    let uid = uid.split_whitespace().next().expect("a number").to_string();
    let script = "while :; do kill -0 $$; (kill -0 $$; exec sleep 0.05); done";
    let target = lab::start(&mut lab::as_user(User::Me, &["sh", "-c", script]));
    each_backend(|backend| {
        let dir = lab::scratch();
        let pid = target.pid().to_string();
        let start = |name: &str, filter: &str| {
            let file = dir.join(name);
            let path = file.to_str().expect("UTF-8").to_string();
            let options = ["trace", "--backend", backend, "-o", &path, "-p", &pid, "-e", "kill", "--where", filter];
            let run = lab::start(&mut lab::trapline(User::Me, &[&options[..], &["--param", &uid]].concat()));
            (run, file)
        };
        let kills = |file: &Path| std::fs::read_to_string(file).unwrap_or_default().matches("kill(").count();
        let (run, file) = start("passes", r#"uid == $1 && comm == "sh""#);
        lab::until("calls of two processes", || kills(&file) >= 4);
        lab::kill("INT", run.pid().into());
        assert_eq!(run.end().code(), 0);
        let tids: std::collections::BTreeSet<u32> =
            lines_of(&file).iter().filter(|l| l.is("kill")).map(|l| l.tid).collect();
        assert!(tids.len() >= 2, "{backend} {tids:?}");
        let (run, file) = start("not", r#"uid == $1 && comm != "sh""#);
        let text = || std::fs::read_to_string(&file).unwrap_or_default();
        lab::until("the end of a child", || text().contains("+++ exited"));
        lab::kill("INT", run.pid().into());
        assert_eq!(run.end().code(), 0);
        assert_eq!(kills(&file), 0, "{backend}");
    });
}

/// 32-bit calls have no arguments by name, but all else that a filter may ask for.
#[test]
fn calls_without_a_row_are_filtered_too() {
    let Some(program) = lab::program("ia32") else { return };
    each_backend(|backend| {
        let stats = lab::scratch().join("stats");
        let path = stats.to_str().expect("UTF-8");
        let run =
            |filter: &str| trace(User::Me, &["--backend", backend, "--stats", path, "--where", filter], &[&program]);
        // A getpid, a write and a close that fails.
        let all = trace(User::Me, &["--backend", backend], &[&program]);
        if all.with("close@i386(").is_empty() {
            return lab::skip("kernel:ia32", "this kernel takes no 32-bit calls");
        }
        let t = run("retval == -EBADF && uid >= 0 && dur > 0");
        assert_eq!((calls(&t.lines), t.with("close@i386(").len()), (1, 1), "{backend} {}", t.text());
        let found = counters(&stats);
        let raw = &found["probes"]["syscall:raw"];
        assert_eq!((&raw["seen"], &raw["recorded"], &raw["filtered"]), (&3.into(), &1.into(), &2.into()), "{found}");
        adds_up(&found, &[]);
    });
}

#[test]
fn strings_are_shown_as_short_as_ever() {
    let Some(program) = lab::program("known_calls") else { return };
    each_backend(|backend| {
        let filter = r#"args.name == "user.0123456789012345678901234567890123456789-that""#;
        let options = ["--backend", backend, "-e", "getxattr", "--where", filter];
        let t = trace(User::Me, &[&options[..], &["-s", "8"]].concat(), &[&program]);
        t.one(r#"getxattr("/dev/null", "user.012"..., NULL, 0)"#);
        // Nor are names of threads, which are as long as they are.
        let t = trace(
            User::Me,
            &["--backend", backend, "-e", "close", "--where", r#"comm == "a-worker""#, "-s", "2"],
            &[&program],
        );
        assert_eq!(calls(&t.lines), 6, "{backend} {}", t.text());
    });
}

#[test]
fn processors_are_known_to_filters() {
    if !lab::has("taskset") {
        return lab::skip("package:util-linux", "no taskset to choose a processor");
    }
    let Some(program) = lab::program("known_calls") else { return };
    each_backend(|backend| {
        for (filter, expected) in [("cpu == 0 && args.fd == 4002", 7), ("cpu != 0 && args.fd == 4002", 0)] {
            let options = ["--backend", backend, "-e", "close", "--where", filter];
            let t = trace(User::Me, &options, &["taskset", "-c", "0", &program]);
            assert_eq!(calls(&t.lines), expected, "{backend} {filter}\n{}", t.text());
        }
    });
}

#[test]
fn calls_in_flight_are_shown_where_that_can_be_decided() {
    each_backend(|backend| {
        let run = |filter: &str| {
            trace(User::Me, &["--backend", backend, "-e", "/nanosleep$", "--where", filter], &["sleep", "0.6"])
        };
        let t = run(r#"comm == "sleep""#);
        assert_eq!((t.with("in flight").len(), calls(&t.lines)), (1, 1), "{}", t.text());
        let t = run(r#"comm == "sleep" && retval == 0"#);
        assert_eq!((t.with("in flight").len(), calls(&t.lines)), (0, 1), "{}", t.text());
    });
}

#[test]
fn mistakes_are_one_line() {
    each_user(|user| {
        let refused = |command: &[&str], words: &[&str]| {
            let out = lab::run(&mut lab::trapline(user, command));
            assert_eq!((out.code(), out.stderr.lines().count()), (2, 1), "{command:?} {}", out.stderr);
            assert!(out.stderr.starts_with("trapline: "), "{}", out.stderr);
            words.iter().for_each(|w| assert!(out.stderr.contains(w), "{command:?}, no {w}: {}", out.stderr));
        };
        let dir = lab::scratch().join("trace");
        let dir = dir.to_str().expect("UTF-8");
        for command in [&["trace"][..], &["record", "-o", dir]] {
            let with = |set: &str, filter: &str, words: &[&str]| {
                refused(&[command, &["-e", set, "--where", filter, "--", "true"]].concat(), words);
            };
            with(
                "openat",
                "args.flgs & O_CREAT",
                &["--where: F0003", "'args.flgs'", "at 1:1 (did you mean args.flags?)"],
            );
            with("openat", "retval == -ENOENTT", &["F0007", "at 1:12", "ENOENT"]);
            with("openat", "args.filename == 3", &["F0009", "at 1:"]);
            with("openat", "pid == $1", &["F0010", "$1"]);
            with("openat", "pid ==", &["F0006"]);
            with("exit_group", "retval == 0", &["F0012"]);
        }
        refused(&["trace", "--param", "1", "--", "true"], &["--where"]);
    });
    assert_eq!(record(&lab::scratch(), &["-q"], &["true"]).code(), 0);
}

#[test]
fn a_terminal_is_shown_the_place() {
    let args = ["trace", "-e", "openat", "--where", "pid && args.flgs", "--", "true"];
    let Some(shown) = terminal::on_terminal(User::Me, &[], &args) else { return };
    let expected = "\
trapline: --where: F0003 unknown field 'args.flgs' at 1:8
  |
1 | pid && args.flgs
  |        ^^^^^^^^^
  = did you mean args.flags?
";
    assert!(shown.contains(expected), "{shown}");
}

#[test]
fn an_argument_that_some_calls_have_is_a_filter_for_those() {
    lab::each_backend(|user| {
        // As README has it.
        let filter = "retval == -ENOENT && startswith(args.filename, \"/etc/\")";
        let t = trace(user, &["--where", filter], &["cat", "/etc/no-such-file", "/proc/no-such-file"]);
        t.one("\"/etc/no-such-file\"");
        t.lacks("/proc/no-such-file");
        let note = t.outcome.stderr.lines().find(|l| l.contains("--where: of ")).unwrap_or_default();
        assert!(note.contains("have args.filename: the others are skipped"), "{}", t.outcome.stderr);
        // Two calls, of which one has it.
        let t = trace(user, &["-e", "openat,close", "--where", "args.flags == 0"], &["true"]);
        assert!(t.outcome.stderr.contains("of 2 selected calls 1 has args.flags"), "{}", t.outcome.stderr);
        assert!(!t.names().contains(&"close"), "{}", t.text());
        let t = trace(user, &["-q", "-e", "openat,close", "--where", "args.flags != 0"], &["true"]);
        assert_eq!((t.outcome.stderr.as_str(), t.names()), ("", vec!["openat"]));
    });
}

#[test]
fn ends_are_shown_of_threads_that_the_filter_may_have_something_of() {
    lab::each_backend(|user| {
        let ends = |filter: &str| {
            let t = trace(user, &["-q", "-e", "exit_group", "--where", filter], &["sh", "-c", "/bin/true; /bin/echo"]);
            let lives = |l: &&crate::trace::Line| l.text.starts_with("+++ ") || l.text.starts_with("--- ");
            (t.lines.iter().filter(lives).count(), t.calls("exit_group").len())
        };
        // Three ends, and two SIGCHLD.
        assert_eq!(ends("args.error_code == 0"), (5, 3));
        assert_eq!(ends("args.error_code == 1 || pid == 1"), (5, 0));
        assert_eq!(ends("comm == \"true\""), (1, 1));
        assert_eq!(ends("pid == 1 && args.error_code == 0"), (0, 0));
        assert_eq!(ends("uid == 54321"), (0, 0));
        assert_eq!(ends("probe == \"syscall:exit_group\""), (5, 3));
    });
}

#[test]
fn a_recording_keeps_ends_and_its_report_asks_again() {
    each_user(|user| {
        let dir = lab::scratch();
        let args = ["record", "-q", "-o", "r", "--where", "comm == \"true\"", "sh", "-c", "/bin/true; /bin/echo"];
        assert_eq!(lab::run(lab::trapline(user, &args).current_dir(&dir)).code(), 0);
        let shown = lab::run(lab::trapline(user, &["report", "r"]).current_dir(&dir)).out();
        assert_eq!(shown.matches("+++ exited").count(), 1, "{shown}");
    });
}

/// Whatever it is compared with, live and in a trace.
#[test]
fn a_string_that_cannot_be_read_is_unknown() {
    let Some(program) = lab::program("bad_pointers") else { return };
    each_backend(|backend| {
        for filter in [r#"args.filename != "/nothing""#, r#"args.filename == "/nothing""#, r#"args.filename == """#] {
            let dir = lab::scratch();
            let stats = dir.join("stats");
            let path = stats.to_str().expect("UTF-8");
            let options = ["--backend", backend, "-e", "openat", "--stats", path, "--where", filter];
            let t = trace(User::Me, &options, &[&program]);
            t.lacks("0x1, ");
            let live = counters(&stats);
            // A path at address 1, and one that runs into an unmapped page, which the kernel sees not to be empty. NULL is known to be
            // no string.
            let unknown = if backend == "kernel" && filter.ends_with("\"\"") { 1 } else { 2 };
            assert_eq!(live["unknown"], unknown, "{backend} {filter} {live}");
            adds_up(&live, &["openat"]);
            let rec = dir.join("rec");
            let out = record(&rec, &["--backend", backend, "-e", "openat"], &[&program]);
            assert_eq!(out.code(), 0, "{}", out.stderr);
            let args = ["report", rec.to_str().expect("UTF-8"), "--where", filter];
            let out = lab::run(&mut lab::trapline(User::Me, &args));
            assert_eq!(out.code(), 0, "{}", out.stderr);
            assert_eq!(out.out().lines().filter(|l| l.contains("openat(")).count(), calls(&t.lines), "{filter}");
            let options = ["--backend", backend, "-e", "openat", "--stats", path, "--where", filter];
            let out = record(&dir.join("filtered"), &options, &[&program]);
            assert_eq!(out.code(), 0, "{}", out.stderr);
            assert_eq!(counters(&stats)["unknown"], live["unknown"], "{backend} {filter}");
        }
    });
}
