//! Scripts beside what `record` and `trace` show, in traces, and again in reports.

use crate::babeltrace;
use crate::lab::{self, Outcome, User};
use std::path::{Path, PathBuf};

/// A directory with the shop in it, which writes 20 orders of 6 bytes to descriptor 3.
fn shop() -> Option<PathBuf> {
    let program = testkit::compile("gcc", "cookbook_shop", "cookbook/shop.c", &["-g", "-O1"])?;
    let dir = lab::scratch();
    testkit::open_to_all(&dir, 0o777);
    std::os::unix::fs::symlink(program, dir.join("shop")).expect("a link");
    Some(dir)
}

fn run(user: User, dir: &Path, args: &[&str]) -> Outcome {
    // Of another user.
    let _ = std::fs::remove_file(dir.join("shop.log"));
    lab::run(lab::trapline(user, args).current_dir(dir))
}

const WRITES: &str = "syscall:write /args.fd == 3/ { printf(\"wrote %d\\n\", retval); @ = sum(retval); }";

#[test]
fn clauses_run_beside_what_is_traced() {
    let Some(dir) = shop() else { return };
    std::fs::write(dir.join("sums.bt"), "syscall:write /args.fd >= $1/ { @[args.fd] = sum(retval); }")
        .expect("a script");
    lab::each_backend(|user| {
        let out = run(user, &dir, &["record", "-e", "clock_nanosleep", "-e", WRITES, "./shop"]);
        let text = out.out();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(out.code(), 0, "{}", out.stderr);
        for pair in lines[..40].chunks(2) {
            assert!(pair[0].contains("clock_nanosleep(") && pair[1] == "wrote 6", "{text}");
        }
        assert!(lines[40].ends_with("+++ exited with 0 +++") && lines[41..] == ["", "", "@: 120"], "{text}");
        // Nothing but the script, and a table of what was asked for beside it.
        let out = run(user, &dir, &["record", "-e", WRITES, "-e", "end { printf(\"end\\n\"); }", "./shop"]);
        assert_eq!(out.out(), "wrote 6\n".repeat(20) + "end\n\n\n@: 120\n", "{}", out.stderr);
        let out =
            run(user, &dir, &["record", "-c", "-e", "clock_nanosleep", "--script", "sums.bt", "--param=3", "./shop"]);
        let text = out.out();
        assert!(text.contains("20           clock_nanosleep") && !text.contains("write"), "{text} {}", out.stderr);
        assert!(text.ends_with("total\n\n\n@[3]: 120\n"), "{text}");
        // Of trace the lines are on stderr, which is the same place or another.
        let args = ["trace", "-e", "clock_nanosleep", "--script", "sums.bt", "--param", "3", "./shop"];
        let out = run(user, &dir, &args);
        assert_eq!((out.code(), out.out().as_str()), (0, "\n\n@[3]: 120\n"), "{}", out.stderr);
        assert!(
            out.stderr.matches("clock_nanosleep(").count() == 20 && !out.stderr.contains("write("),
            "{}",
            out.stderr
        );
        let path = lab::dir().join("trapline");
        let line = format!("exec {} trace -q -e clock_nanosleep -e '{WRITES}' ./shop 2>&1", path.display());
        let asked = user.asks_for().map_or(String::new(), |b| format!("--backend {b} "));
        let line = line.replace("trace -q ", &format!("trace -q {asked}"));
        let _ = std::fs::remove_file(dir.join("shop.log"));
        let text = lab::run(lab::as_user(user, &["sh", "-c", &line]).current_dir(&dir)).out();
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[..40].chunks(2).all(|p| p[0].starts_with("clock_nanosleep(") && p[1] == "wrote 6"), "{text}");
        assert_eq!(lines[40..], ["+++ exited with 0 +++", "", "", "@: 120"]);
        // Calls by their names alone.
        let out =
            run(user, &dir, &["record", "-e", "clock_nanosleep,write /dur > 0/ { @[probe] = count(); }", "./shop"]);
        let both = "\n\n@[syscall:clock_nanosleep]: 20\n@[syscall:write]: 20\n";
        assert_eq!((out.code(), out.out().as_str()), (0, both), "{}", out.stderr);
        // A filter of a call is not one of the script.
        let filter = ["-e", "write /retval > 6/", "-e", "syscall:write { @[probe] = count(); }"];
        let out = run(user, &dir, &[&["record"], &filter[..], &["./shop"]].concat());
        assert!(out.out().ends_with("\n\n\n@[syscall:write]: 20\n") && !out.out().contains("write("), "{}", out.out());
    });
    for (args, says) in [
        (&["record", "-e", "opennat { @ = count(); }", "true"][..], "ERROR: no provider is called 'opennat'"),
        (&["record", "--for", "sums.bt", "-e", WRITES, "true"], "--for: nothing runs with it"),
        (&["profile", "-e", WRITES, "true"], "record, trace and run take clauses"),
        (&["trace", "--script", "none.bt", "true"], "No such file"),
    ] {
        let out = run(User::Me, &dir, args);
        assert!(out.code() != 0 && out.stderr.contains(says), "{args:?}: {}", out.stderr);
    }
    let ends = "syscall:write /args.fd == 3/ { @++; if (@ == 3) { exit(5); } }";
    let out = run(User::Me, &dir, &["record", "-o", "ends", "-e", ends, "./shop"]);
    assert_eq!((out.code(), out.out().as_str()), (5, "\n\n@: 3\n"), "{}", out.stderr);
    assert_eq!(run(User::Me, &dir, &["report", "ends"]).out(), "\n\n@: 3\n");
}

/// Records with `args`, as lines of text too; a report prints the same.
fn recorded(user: User, dir: &Path, args: &[&str]) -> String {
    let _ = std::fs::remove_dir_all(dir.join("trace"));
    let live = run(user, dir, &[&["record", "-q", "-o", "trace", "--as", "text"], args].concat());
    assert_eq!(live.code(), 0, "{}", live.stderr);
    let past = run(user, dir, &["report", "trace"]);
    assert_eq!((past.code(), past.stderr.as_str()), (0, ""));
    assert_eq!(past.out(), live.out());
    live.out()
}

#[test]
fn a_report_prints_what_the_session_printed() {
    let Some(dir) = shop() else { return };
    let text = "begin { printf(\"%s begins as %d\\n\", str($1), pid); }
        function:order:return { @took[func, dur > 1000000] = count(); }
        heap:malloc { @sizes = hist(args.size); }
        process:exec { printf(\"exec %s\\n\", comm); }
        syscall:openat { @[comm, str(args.filename), ustack(1)] = count(); }
        interval:ms:7 { @ticks = count(); @last = max(elapsed / 7000000); }
        end { printf(\"%s after %d ms, \\\"quoted\\\\n\\\"\\n\", strftime(\"%S.%f\", nsecs), elapsed / 1000000); }";
    lab::each_user(|user| {
        let args = ["-e", text, "-e", "clock_nanosleep", "-e", "function:main", "--param", "it's", "./shop"];
        let live = recorded(user, &dir, &args);
        assert!(live.starts_with("it's begins as ") && live.contains("\nexec shop\n"), "{live}");
        for part in
            ["@took[order, true]: 20\n", "@ticks: ", "shop.log, \n", "clock_nanosleep(", "function:main:entry()"]
        {
            assert!(live.contains(part), "{part}: {live}");
        }
        let has = |text: &str, part: &str| text.contains(part);
        assert!(!has(&live, "openat(") && !has(&live, "function:order"), "{live}");
        // What only the script wanted is in the trace.
        for args in [&["--no-script"][..], &["--as", "json"], &["-e", "openat"]] {
            let out = run(user, &dir, &[&["report"], args, &["trace"]].concat());
            assert!(has(&out.out(), "openat") && !has(&out.out(), "begins as"), "{args:?}: {}", out.out());
        }
        let table = run(user, &dir, &["report", "-c", "trace"]).out();
        assert!(has(&table, "openat") && !has(&table, "begins as"), "{table}");
        assert!(babeltrace::counts(user, &dir.join("trace")).is_none_or(|(n, dropped)| n > 40 && dropped == 0));
        // Another script over the same events.
        let out = run(user, &dir, &["run", "--trace", "trace", "-e", "function:order { @ = count(); }"]);
        assert_eq!(out.out(), "\n\n@: 20\n");
    });
}

#[test]
fn a_probe_that_both_want_is_enabled_once() {
    let Some(dir) = shop().filter(|_| lab::kernel_backend_is_possible()) else { return };
    let script = "uprobe:./shop:order { printf(\"order %d\\n\", arg1); @[ustack(1)] = count(); }";
    let shown = |args: &[&str]| recorded(User::Me, &dir, &[&["-e", script], args, &["./shop"]].concat());
    let lines = |text: &str, part: &str| text.lines().filter(|l| l.contains(part)).count();
    for (args, n) in [
        (&[][..], 0),
        (&["-e", "uprobe:./shop:order"], 20),
        (&["-e", "uprobe:./shop:order /args.n > 17/"], 2),
        (&["-e", "uprobe:./shop:order /args.arg1 == 0 || args.arg1 == 9/"], 2),
        (&["-e", "uprobe:./shop:ord*,clock_nanosleep comm"], 20),
        (&["-e", "uprobe:./shop:*"], 20),
    ] {
        let text = shown(args);
        assert_eq!((lines(&text, "uprobe:./shop:order("), lines(&text, "order 1")), (n, 11), "{args:?}: {text}");
        assert!(text.contains("]: 20\n"), "{text}");
    }
    let out = run(User::Me, &dir, &["record", "-e", script, "-e", "uprobe:./shop:order /args.x == 1/", "./shop"]);
    assert!(out.code() == 2 && out.stderr.contains("unknown field 'args.x'"), "{}", out.stderr);
    let all = "uprobe:./shop:* { @[func] = count(); }";
    let text = recorded(User::Me, &dir, &["-e", all, "-e", "uprobe:./shop:order /args.arg1 == 3/", "./shop"]);
    assert!(lines(&text, "uprobe:./shop:") == 1 && text.contains("@[order]: 20\n"), "{text}");
    let text = "tracepoint:syscalls:sys_enter_openat { printf(\"%s %s\\n\", comm, str(args.filename)); }
        tracepoint:syscalls:sys_exit_* { @[probe] = count(); } software:page-faults:1 { @faults[comm] = count(); }";
    let text = recorded(User::Me, &dir, &["-e", text, "./shop"]);
    assert!(
        text.contains("shop /etc/ld.so.cache\n") && text.contains("@[tracepoint:syscalls:sys_exit_write]: 20\n"),
        "{text}"
    );
}

#[test]
fn what_a_script_reads_is_recorded_for_it() {
    let Some(dir) = shop() else { return };
    let text = "syscall:write /args.fd == 3/ { @bytes = sum(retval); @[comm, str(args.buf, 3)] = count(); }
        function:order { @n[func] = count(); } process:exit { @exit = sum(args.code); }";
    std::fs::write(dir.join("reads.bt"), text).expect("a script");
    lab::each_user(|user| {
        let _ = std::fs::remove_dir_all(dir.join("trace"));
        let live = run(user, &dir, &["run", "-q", "reads.bt", "-c", "./shop"]);
        assert!(live.out().contains("@[shop, or]: 20\n@bytes: 120\n"), "{} {}", live.out(), live.stderr);
        let out = run(user, &dir, &["record", "-q", "-o", "trace", "--for", "reads.bt", "./shop"]);
        assert_eq!((out.code(), out.out(), out.stderr), (0, String::new(), String::new()));
        assert_eq!(run(user, &dir, &["run", "--trace", "trace", "reads.bt"]).out(), live.out());
        let report = run(user, &dir, &["report", "trace"]).out();
        assert!(report.contains("write(3, \"order\\n\", 6") && !report.contains("clock_nanosleep"), "{report}");
    });
}

/// A script that is too long is not kept, and one that is damaged does not run; the events are there.
#[test]
fn events_are_shown_without_the_script_that_cannot_run() {
    let Some(dir) = shop() else { return };
    let long = format!("{WRITES} /*{}*/", "x".repeat(65 << 10));
    std::fs::write(dir.join("long.bt"), long).expect("a script");
    let out = run(User::Me, &dir, &["record", "-o", "long", "--script", "long.bt", "./shop"]);
    assert!(out.code() == 0 && out.stderr.contains("long.bt: too long: the trace does not keep it"), "{}", out.stderr);
    assert_eq!(run(User::Me, &dir, &["report", "long"]).out().matches("write(3, ").count(), 20);
    run(User::Me, &dir, &["record", "-o", "trace", "-e", WRITES, "./shop"]);
    let metadata = dir.join("trace/metadata");
    let text = std::fs::read_to_string(&metadata).expect("metadata");
    for (from, to) in [
        ("script = \"syscall:write", "script = \"syscall:opennat"),
        ("@ = sum", "@@@@@@@"),
        ("script_calls = \"0 ", "script_calls = \"0 %x"),
    ] {
        std::fs::write(&metadata, text.replace(from, to)).expect("metadata");
        let out = run(User::Me, &dir, &["report", "trace"]);
        assert!(
            out.code() == 0 && out.stderr.contains("script cannot run here: all events are shown"),
            "{}",
            out.stderr
        );
        assert_eq!(out.out().matches("write(3, ").count(), 20, "{to}");
    }
    // Files of this machine are not shown.
    std::fs::write(&metadata, text.replace("@ = sum(retval)", "cat(\\\"/etc/passwd\\\")")).expect("metadata");
    let out = run(User::Me, &dir, &["report", "trace"]);
    assert_eq!(out.out(), "wrote 6\n".repeat(20) + "\n\n");
    assert!(
        out.stderr.contains("cat(), system() and cgroup_path() show nothing over a trace (20 times)"),
        "{}",
        out.stderr
    );
}
