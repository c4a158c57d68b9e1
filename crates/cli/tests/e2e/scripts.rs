//! `trapline run`: scripts over the events of each backend, of traces, and by themselves. docs/SCRIPTS.md has more, in `cookbook.rs`.

use crate::injected;
use crate::lab::{self, Outcome, User};

pub fn run(user: User, args: &[&str]) -> Outcome {
    lab::run(&mut lab::trapline(user, &[&["run"], args].concat()))
}

pub fn script(user: User, text: &str, command: &str) -> String {
    let out = run(user, &["-q", "-e", text, "-c", command]);
    assert_eq!(out.code(), 0, "{text}: {}", out.stderr);
    out.out()
}

#[test]
fn scripts_without_probes_run_by_themselves() {
    lab::each_user(|user| {
        let out =
            run(user, &["-e", "begin { printf(\"a %d\\n\", $1); exit(3); } end { @ = 1; print((1, \"x\")); }", "7"]);
        assert_eq!((out.code(), out.out().as_str()), (3, "a 7\n(1, x)\n\n\n@: 1\n"), "{}", out.stderr);
        assert_eq!(out.stderr, "Attached 2 probes\n");
        let out = run(
            user,
            &["-e", "interval:ms:5 { @n = count(); @t[elapsed / 5000000] = count(); if ((int64)@n == 4) { exit(); } }"],
        );
        // Each tick has the time at which it was due.
        assert_eq!((out.code(), out.out().as_str()), (0, "\n\n@n: 4\n@t[1]: 1\n@t[2]: 1\n@t[3]: 1\n@t[4]: 1\n"));
        assert_eq!(out.stderr, "Attached 1 probe\n");
        // It waits for a signal.
        let mut waits = lab::start(
            lab::trapline(user, &["-e", "begin { printf(\"x\\n\"); } end { printf(\"y\\n\"); }"])
                .stdout(std::process::Stdio::piped()),
        );
        std::thread::sleep(std::time::Duration::from_millis(300));
        waits.must_run();
        lab::kill("INT", waits.pid().into());
        let out = waits.end();
        assert_eq!((out.code(), out.out().as_str()), (0, "x\ny\n\n\n"));
    });
}

/// Also a key that a clause only reads was used. A map that was not declared so refuses the new ones.
#[test]
fn a_full_map_drops_the_least_recently_used_key_where_it_is_declared_so() {
    let text = "let @a = lruhash(2); let @b = hash(2);
        begin { for ($i : 0..3) { @a[$i] = $i; @b[$i] = $i; if ($i == 1 && @a[0] == 0) { continue; } } clear(@b); exit(); }";
    let out = run(User::Me, &["-q", "-e", text]);
    assert_eq!(out.out(), "\n\n@a[0]: 0\n@a[2]: 2\n");
    assert!(out.stderr.contains("@b: full: 1 new keys were refused") && !out.stderr.contains("@a"), "{}", out.stderr);
    if !lab::kernel_backend_is_possible() {
        return;
    }
    let text = "let @a = lruhash(64); tracepoint:syscalls:sys_enter_close /args.fd >= 1000/ { @a[args.fd] = count(); }";
    let closes = "python3 -c 'import os\nfor fd in range(1000, 2000):\n try: os.close(fd)\n except OSError: pass'";
    let out = run(User::Me, &["--explain", "-e", text, "-c", closes]);
    let keys = out.out().lines().filter(|l| l.starts_with("@a[")).count();
    assert!((1..=64).contains(&keys) && out.out().contains("@a[1999]: 1\n"), "{}", out.out());
    assert!(
        out.stderr.contains("in the kernel, which reports no event") && !out.stderr.contains("refused"),
        "{}",
        out.stderr
    );
}

#[test]
fn mistakes_are_shown_where_they_are() {
    for (text, says) in [
        ("begin { printf(\"%d\\n\", 1, 2) }", "stdin:1:9-29: ERROR: the format takes 1 value, 2 are given [S0012]"),
        (
            "syscall:opennat { @ = count(); }",
            "stdin:1:1-16: ERROR: -e opennat: no such system call (did you mean openat",
        ),
        ("heap:new { @ = count(); }", "stdin:1:1-9: ERROR: heap:new: no such probe"),
        ("process:die { @ = count(); }", "stdin:1:1-12: ERROR: process:die: no such event of processes"),
        ("process:exec { @[strace] = count(); }", "stdin:1:1: ERROR: 'strace' is not known at process:exec"),
        ("function:main { @ = max(dur); }", "stdin:1:1: ERROR: 'dur' is not known at function:main"),
    ] {
        let out = run(User::Me, &["-e", text, "-c", "true"]);
        assert_eq!((out.code(), out.out().as_str()), (2, ""), "{text}");
        assert!(out.stderr.starts_with(says), "{text}: {}", out.stderr);
    }
    let out = run(User::Me, &["-d", "-e", "syscall:read { @ = count(); }"]);
    assert_eq!((out.code(), out.out(), out.stderr), (0, String::new(), String::new()));
    for (args, says) in [
        (&["-e", "begin {}", "-c", "'"][..], "a quote in it is not closed"),
        (&["-e", "begin {}", "-c", "true", "-p", "1"], "given together with -p"),
        (&["/no/script"], "No such file"),
        (&["-p", "1x", "/no/script"], "-p 1x: not a process id"),
        (&["-e", "#include <lol/no.h>\nbegin {}"], "'<lol/no.h>': file not found"),
        (&[], "no script is given"),
        (&["--config", "x", "-e", "begin {}"], "it has no value"),
    ] {
        let out = run(User::Me, args);
        assert!(out.code() != 0 && out.stderr.contains(says), "{args:?}: {}", out.stderr);
    }
    if lab::is_root() {
        let out = run(User::Nobody, &["-e", "tracepoint:sched:sched_switch { @ = count(); }"]);
        assert!(out.code() == 125 && out.stderr.contains("-c COMMAND, -p PID"), "{}", out.stderr);
    }
}

/// What a program does is the same for all who look. Tracepoints begin behind the command's own execve (59); uprobes of others make calls
/// (335, 336).
#[test]
fn ptrace_and_the_kernel_give_the_same() {
    let Some(program) = testkit::compile("gcc", "cookbook_settings", "cookbook/settings.c", &["-g", "-O1", "-pthread"])
    else {
        return;
    };
    let text = "syscall:openat /retval < 0/ { @[comm, strerror(-retval), str(args.filename)] = count(); }
        tracepoint:syscalls:sys_enter_openat { @entered = count(); }
        tracepoint:syscalls:sys_exit_openat { @left[args.ret < 0] = count(); }
        tracepoint:raw_syscalls:sys_enter /args.id != 59 && args.id < 330/ { @calls[args.id] = count(); }
        process:exec { @exec[comm, args.comm] = count(); } process:exit { @exit[args.code] = count(); }
        process:fork { @fork[comm] = count(); }";
    let all = std::cell::RefCell::new(Vec::new());
    lab::each_backend(|user| {
        let asked = if let User::Ptrace = user { "ptrace" } else { "kernel" };
        let command = format!("sh -c 'true; {program}; true'");
        let out = run(User::Me, &["-q", "--backend", asked, "-e", text, "-c", &command]);
        assert_eq!((out.code(), out.stderr.as_str()), (0, ""));
        all.borrow_mut().push(out.out());
    });
    let all = all.into_inner();
    assert!(all[0].contains("No such file or directory, /etc/settings/app.conf]: 1\n"), "{}", all[0]);
    assert!(all.iter().all(|text| *text == all[0]), "{all:#?}");
}

/// A script over a trace prints what it has printed while the trace was recorded.
#[test]
fn a_recording_gives_what_the_session_gave() {
    let Some(program) = testkit::compile("gcc", "cookbook_shop", "cookbook/shop.c", &["-g", "-O1"]) else { return };
    let text = "syscall:write { @bytes[args.fd] = sum(retval); @h = hist(retval); } syscall:clock_nanosleep { @n[dur > 10000] = count(); }";
    lab::each_user(|user| {
        let dir = lab::scratch();
        testkit::open_to_all(&dir, 0o777);
        let live = lab::run(lab::trapline(user, &["run", "-q", "-e", text, "-c", &program]).current_dir(&dir));
        let args = ["record", "-q", "-o", "trace", "-e", "write,clock_nanosleep", &program];
        assert_eq!(lab::run(lab::trapline(user, &args).current_dir(&dir)).code(), 0);
        let past = lab::run(lab::trapline(user, &["run", "--trace", "trace", "-e", text]).current_dir(&dir));
        assert_eq!((past.code(), past.out()), (0, live.out()), "{}", past.stderr);
        let out = lab::run(
            lab::trapline(user, &["run", "--trace", "trace", "-e", "uprobe:libc:malloc { @ = count(); }"])
                .current_dir(&dir),
        );
        assert!(out.code() == 2 && out.stderr.contains("the trace has no such probe"), "{}", out.stderr);
        // An interval is one of the trace's time.
        let out = lab::run(
            lab::trapline(user, &["run", "--trace", "trace", "-e", "interval:ms:10 { @ = count(); }"])
                .current_dir(&dir),
        );
        assert!(out.code() == 0 && out.out().starts_with("\n\n@: "), "{} {}", out.out(), out.stderr);
    });
}

/// However many calls a running program makes, its session ends in time.
#[test]
fn busy_programs_do_not_hold_a_session() {
    let Some(program) = injected::program() else { return };
    if !lab::may_attach(User::Me) {
        return;
    }
    let running = injected::started(User::Me, &[&program, "600", "2", "1000"]);
    let pid = running.pid().to_string();
    let text = "function:* { @[func] = count(); } interval:ms:50 { print(@, 1); }";
    let out = run(User::Me, &["-q", "-p", &pid, "--duration", "0.2", "-e", text]);
    assert!(out.code() == 0 && out.out().contains("@["), "{} {}", out.out(), out.stderr);
    injected::is_right(running);
}

#[test]
fn a_script_ends_the_session_and_the_command_runs_on() {
    lab::each_user(|user| {
        let dir = lab::scratch();
        testkit::open_to_all(&dir, 0o777);
        let text = "syscall:write /str(args.buf, 3) == \"one\" || args.count == 4/ { printf(\"seen\\n\"); exit(5); }";
        let command = "sh -c 'echo one >one; sleep 0.2; echo two >two'";
        let out = lab::run(lab::trapline(user, &["run", "-q", "-e", text, "-c", command]).current_dir(&dir));
        assert_eq!((out.code(), out.out().as_str()), (5, "seen\n\n\n"), "{}", out.stderr);
        lab::until("the command has gone on", || dir.join("two").exists());
    });
}

#[test]
fn other_names_of_the_command_are_known() {
    let out = lab::run(&mut lab::trapline(User::Me, &["-e", "begin { printf(\"x\\n\"); exit(); }"]));
    assert_eq!((out.code(), out.out().as_str()), (0, "x\n\n\n"));
    let link = lab::scratch().join("bpftrace");
    std::os::unix::fs::symlink(lab::dir().join("trapline"), &link).expect("a link");
    let link = link.to_str().expect("UTF-8");
    let out = lab::run(&mut lab::as_user(User::Me, &[link, "-e", "BEGIN { print(1); exit(); }"]));
    assert_eq!((out.code(), out.out().as_str()), (0, "1\n\n\n"), "{}", out.stderr);
    // Its options, and its own name.
    let text = "BEGIN { @[comm, strerror(EPERM)] = 1; cat(\"/no\"); exit(); }";
    let words = [link, "--unsafe", "-v", "--no-warnings", "--include", "errno.h", "-f", "json", "-q", "-e", text];
    let out = lab::run(&mut lab::as_user(User::Me, &words));
    assert_eq!(
        out.out(),
        "{\"type\": \"map\", \"data\": {\"@\": {\"bpftrace,Operation not permitted\": 1}}}\n",
        "{}",
        out.stderr
    );
    assert_eq!(out.stderr, "ERROR: failed to open file '/no': No such file or directory\n");
    let out = lab::run(&mut lab::as_user(User::Me, &[link, "-l", "software:*"]));
    assert!(out.out().contains("software:page-faults"), "{}", out.out());
    let said = |option: &str| lab::run(&mut lab::as_user(User::Me, &[link, option])).out();
    assert_eq!(said("--version"), format!("bpftrace v0.26.1 (trapline {})\n", env!("CARGO_PKG_VERSION")));
    assert!(said("--help").contains("Usage: trapline run [OPTIONS] FILE"), "{}", said("--help"));
    assert!(said("--info").contains("kernel backend (eBPF)"), "{}", said("--info"));
}

/// What an interval knows, and the process that was started.
#[test]
fn intervals_know_the_command_and_where_they_run() {
    lab::each_user(|user| {
        let text = "interval:ms:20 { @[cpid, numaid < 64]++; } process:exit { @same = pid == cpid; }";
        let out = script(user, text, "sleep 0.1");
        assert!(out.contains(", true]: ") && out.ends_with("@same: true\n") && !out.contains("@[0,"), "{out}");
    });
    if lab::kernel_backend_is_possible() && lab::is_root() {
        let text =
            "begin { @[cgroup, numaid] = 1; } tracepoint:syscalls:sys_enter_exit_group { @[cgroup, (uint32)0]++; }";
        let out = script(User::Me, text, "true");
        assert!(out.ends_with("]: 2\n"), "{out}");
        let text =
            "interval:ms:5 { printf(\"%s %d %d\\n\", curtask->comm, curtask->flags != 0, *(uint64 *)8); exit(); }";
        let out = run(User::Me, &["-q", "-e", text]);
        assert_eq!((out.out().as_str(), out.stderr.as_str()), ("trapline 1 0\n\n\n", ""));
    }
}

#[test]
fn commands_run_where_they_are_allowed() {
    let text =
        "begin { printf(\"a\\n\"); system(\"echo %d '%s'; echo x >&2\", 5, \"b c\"); printf(\"d\\n\"); exit(); }";
    lab::each_user(|user| {
        let out = run(user, &["-q", "--unsafe", "-e", text]);
        assert_eq!((out.code(), out.out().as_str(), out.stderr.as_str()), (0, "a\n5 b c\nd\n\n\n", "x\n"));
        let out = run(user, &["-q", "-e", text]);
        assert!(out.code() == 2 && out.stderr.contains("HINT: allow it with --unsafe"), "{}", out.stderr);
    });
    let out = run(User::Me, &["-q", "--unsafe", "-f", "json", "-e", "begin { system(\"echo a\"); exit(); }"]);
    assert_eq!(out.out(), "{\"type\": \"syscall\", \"data\": \"a\\n\"}\n", "{}", out.stderr);
}

/// What is printed and cleared while it is counted adds up to all that has happened; and so does what two processors count.
#[test]
fn nothing_is_counted_twice_or_lost() {
    let Some(program) = testkit::compile("gcc", "script_calls", "script_calls.c", &["-O1", "-pthread"]) else { return };
    if !lab::kernel_backend_is_possible() {
        return testkit::skip("kernel", "no kernel backend");
    }
    let text = "tracepoint:syscalls:sys_enter_getppid { @a = count(); @b++; @c[tid] = stats(1); @h[comm] = hist(args.__syscall_nr); }
        interval:ms:10 { print(@a); clear(@a); } end { printf(\"rest\\n\"); }";
    let out = script(User::Me, text, &format!("{program} 200000 2"));
    let counts = out.lines().filter_map(|l| l.strip_prefix("@a: ")?.parse::<u64>().ok());
    assert_eq!(counts.sum::<u64>(), 400_000, "{out}");
    assert!(
        out.contains("@b: 400000\n") && out.matches("{ .count = 200000, .average = 1, .total = 200000 }").count() == 2,
        "{out}"
    );
    assert!(out.contains("[64, 128)         400000 |@"), "{out}");
    // A map that is full refuses new keys, and says so.
    let text = "tracepoint:syscalls:sys_enter_getppid { @[nsecs] = count(); }";
    let out = run(User::Me, &["-q", "--config", "max_map_keys=10", "-e", text, "-c", &format!("{program} 100 1")]);
    assert!(out.stderr.contains("@: full: 90 new keys were refused"), "{}", out.stderr);
    assert_eq!(out.out().matches("]: 1\n").count(), 10, "{}", out.out());
}

#[test]
fn maps_are_printed_when_sigusr1_asks() {
    lab::each_user(|user| {
        let dir = lab::scratch();
        testkit::open_to_all(&dir, 0o777);
        let seen = dir.join("seen");
        let text = "begin { @a = 1; print(@a); }";
        for more in [&[][..], &["-c", "sleep 10"]] {
            let out = [&["run", "-q", "-e", text, "-o", seen.to_str().expect("UTF-8")], more].concat();
            let mut running = lab::start(&mut lab::trapline(user, &out));
            let holds = |want: &str| std::fs::read_to_string(&seen).is_ok_and(|have| have == want);
            lab::until("begin has run", || holds("@a: 1\n"));
            lab::kill("USR1", running.pid().into());
            lab::until("the map is printed", || holds("@a: 1\n@a: 1\n"));
            running.must_run();
            lab::kill("TERM", running.pid().into());
            running.end();
            let _ = std::fs::remove_file(&seen);
        }
    });
}

#[test]
fn clauses_run_at_signals_of_trapline() {
    lab::each_user(|user| {
        let dir = lab::scratch();
        testkit::open_to_all(&dir, 0o777);
        let seen = dir.join("seen");
        let text = "begin { printf(\"ready\\n\"); } self:signal:SIGUSR1 { @n++; printf(\"%s %d\\n\", probe, @n); }
            self:signal:SIGUSR1 /@n == 2/ { exit(3); }";
        for more in [&[][..], &["-c", "sh -c 'exec sleep 10 >/dev/null 2>&1'"]] {
            let out = [&["run", "-q", "-e", text, "-o", seen.to_str().expect("UTF-8")], more].concat();
            let running = lab::start(&mut lab::trapline(user, &out));
            let holds = |want: &str| std::fs::read_to_string(&seen).is_ok_and(|have| have == want);
            lab::until("begin has run", || holds("ready\n"));
            lab::kill("USR1", running.pid().into());
            lab::until("the clause has run", || holds("ready\nself:signal:SIGUSR1 1\n"));
            lab::kill("USR1", running.pid().into());
            assert_eq!(running.end().code(), 3);
            assert!(holds("ready\nself:signal:SIGUSR1 1\nself:signal:SIGUSR1 2\n\n\n@n: 2\n"));
            let _ = std::fs::remove_file(&seen);
        }
    });
}

/// A script of the whole machine that needs no more than its events has no programs but those of its probes.
#[test]
fn tasks_are_followed_where_a_clause_asks_for_them() {
    if !lab::kernel_backend_is_possible() {
        return testkit::skip("kernel", "no kernel backend");
    }
    let programs = |reads: &str, ends: &str| {
        let text = format!("tracepoint:raw_syscalls:sys_enter {{ printf(\"%d {reads}\\n\", pid{ends}); exit(); }}");
        let out = run(User::Me, &["--explain=programs", "-e", &text]);
        assert_eq!(out.code(), 0, "{}", out.stderr);
        out.stderr.lines().filter(|l| l.contains("program of")).count()
    };
    assert_eq!(programs("%s %d %s %s", ", comm, uid, username, kstack(2)"), 1);
    assert!(programs("%s", ", ustack(2)") > 1);
    let of_processes =
        "begin { @n = 0; } process:exec { @n++; } tracepoint:raw_syscalls:sys_enter /@n > 3/ { exit(); }";
    let mut running =
        lab::start(lab::trapline(User::Me, &["run", "-q", "-e", of_processes]).stdout(std::process::Stdio::null()));
    lab::until("programs are seen", || {
        let _ = std::process::Command::new("true").status();
        running.child.try_wait().expect("wait").is_some()
    });
    assert!(programs("%s", ", usym(args.id)") > 1);
}

/// Events that no clause wants take no room in rings; what a script shows is the same as where it decides that by itself.
#[test]
fn what_no_predicate_wants_is_not_reported() {
    let Some(program) = testkit::compile("gcc", "script_calls", "script_calls.c", &["-O1", "-pthread"]) else { return };
    if !lab::kernel_backend_is_possible() {
        return testkit::skip("kernel", "no kernel backend");
    }
    let ends =
        "tracepoint:raw_syscalls:sys_enter /args.id == 231 && uid >= 0/ { printf(\"%d %s\\n\", args.id, comm); }";
    let out = run(User::Me, &["-q", "--buffer", "16K", "-e", ends, "-c", &format!("{program} 200000 2")]);
    assert_eq!((out.out().as_str(), out.stderr.as_str()), ("231 script_calls\n\n\n", ""));
    let out = run(User::Me, &["--explain", "-e", ends, "-c", "true"]);
    assert!(out.stderr.contains("predicates: in its program, before"), "{}", out.stderr);
    let clauses = |more: &str| {
        let text = format!(
            "tracepoint:raw_syscalls:sys_enter /args.id % 111 == 110 {more}/ {{ printf(\"a %d\\n\", args.id); @n++; }}
             tracepoint:raw_syscalls:sys_enter /pid > 1 && (args.id > 250 || args.id < 0 || gid == -1) {more}/ {{ printf(\"b %d\\n\", args.id); }}"
        );
        script(User::Me, &text, &format!("{program} 20 1"))
    };
    let decided = clauses("");
    assert!(decided.contains("a 110\n") && decided.contains("b 257\n") && decided.contains("@n: 20\n"), "{decided}");
    assert_eq!(decided, clauses("&& nsecs > 0"));
}

/// A program that the kernel refuses, for its size or by its verifier, costs a line: its clauses run over events, and give the same.
#[test]
fn what_the_kernel_refuses_runs_in_trapline() {
    let Some(program) = testkit::compile("gcc", "script_calls", "script_calls.c", &["-O1", "-pthread"]) else { return };
    if !lab::kernel_backend_is_possible() {
        return testkit::skip("kernel", "no kernel backend");
    }
    let command = format!("{program} 20 1");
    let text = |more: &str| {
        format!(
            "tracepoint:raw_syscalls:sys_enter /args.id == 110/ {{ @n[comm] = count(); @s = sum(args.id); {more} }}
             tracepoint:raw_syscalls:sys_exit /args.id == 110/ {{ @n[comm] = count(); }}"
        )
    };
    let expected = script(User::Me, &text(""), &command);
    assert_eq!(expected, "\n\n@n[script_calls]: 40\n@s: 2200\n");
    let others = |first: u64| {
        (0..45).map(|k| format!("gid == {}", 3_000_000_000u64 + first + k)).collect::<Vec<_>>().join(" || ")
    };
    let jumps = (0..200).map(|n| format!("if ({}) {{ @s = sum(1); }}", others(45 * n))).collect::<String>();
    let long = (0..3000).map(|n| format!("if (args.id == {n} + 100000) {{ @n[comm] = count(); }}")).collect::<String>();
    let file = lab::scratch().join("script.bt");
    for (more, why) in [(jumps, "jumps is too complex"), (long, "is out of range")] {
        std::fs::write(&file, text(&more)).expect("a script");
        let out = run(User::Me, &["--explain", file.to_str().expect("UTF-8"), "-c", &command]);
        assert_eq!((out.code(), out.out()), (0, expected.clone()), "{}", out.stderr);
        let says = |start: &str, middle: &str| {
            out.stderr.lines().filter(|l| l.starts_with(start) && l.contains(middle)).count()
        };
        let start = "trapline: tracepoint:raw_syscalls:sys_enter: its clauses run in trapline, over its events: the kernel refuses";
        assert_eq!(says(start, why), 1, "{}", out.stderr);
        let place = format!("trapline: {}:", file.display());
        let there = "sys_enter: in trapline, over the events of its probes: the kernel refuses its program";
        assert_eq!((says(&place, there), says(&place, "sys_exit: in the kernel")), (1, 1), "{}", out.stderr);
    }
}

/// However the kernel has loops.
#[test]
fn loops_that_only_collect_run_in_the_kernel() {
    if !lab::kernel_backend_is_possible() {
        return testkit::skip("kernel", "no kernel backend");
    }
    // umask.
    let text = "tracepoint:raw_syscalls:sys_enter /args.id == 95/ {
        $s = (int64)0;
        for ($i : 0..1000) { if ($i == 7) { continue; } unroll(5) { $k = 0; while ($k++ < 9) { $s += $i; if ($k == 2) { break; } } } }
        @s = sum($s); @n = count();
        while (1) { if ($s++ > 0) { return; } } @never = count();
    }";
    let out = run(User::Me, &["--explain", "-e", text, "-c", "sh -c 'umask 022; umask 027; umask'"]);
    let maps = out.out();
    let of = |map: &str| -> u64 {
        let number = maps.lines().find_map(|l| l.strip_prefix(map));
        number.unwrap_or_else(|| panic!("{maps}{}", out.stderr)).parse().expect("a number")
    };
    assert!(of("@n: ") >= 3 && of("@s: ") == of("@n: ") * 10 * (499_500 - 7) && !maps.contains("@never"), "{maps}");
    assert!(
        out.stderr.contains("in the kernel, which reports no event") && !out.stderr.contains("refuse"),
        "{}",
        out.stderr
    );
}

/// A loop in place, through which lead so many ways that the verifier gives up, is called back before the clauses go over events.
#[test]
fn loops_that_are_too_large_in_place_are_called_back() {
    if !lab::kernel_backend_is_possible() || !sys::bpf::probe::may_goto() {
        return testkit::skip("kernel", "no kernel backend, or no loops in place");
    }
    // umask, of which the verifier knows nothing.
    let ifs = (40..120).map(|k| format!("if (args.id == {k}) {{ $v++; }} if ($v < args.id) {{ $w = {k}; }} "));
    let text = format!(
        "tracepoint:raw_syscalls:sys_enter /(args.id ^ 95) == 0/ {{
            $v = (int64)1; $w = (int64)0; @n = count(); for ($i : 0..3) {{ {} @s[$w] = sum($v); }} }}",
        ifs.collect::<String>()
    );
    let out = run(User::Me, &["--explain", "-e", &text, "-c", "sh -c 'umask 022; umask 027; umask'"]);
    let maps = out.out();
    let of = |map: &str| -> Option<u64> { maps.lines().find_map(|l| l.strip_prefix(map))?.parse().ok() };
    let (calls, sum) = (of("@n: "), of("@s[119]: "));
    assert!(calls >= Some(3) && sum == calls.map(|n| n * (2 + 3 + 4)), "{maps}{}", out.stderr);
    let says = |what: &str| out.stderr.matches(what).count();
    let way = "the loops of its program are functions that are called back: the kernel refuses the program with loops in place";
    let (place, why) =
        (format!("in the kernel, which reports no event: it only collects; {way}\n"), "BPF program is too large");
    assert_eq!(
        (says(&place), says(&format!("sys_enter: {way}: {why}")), says("trapline, over")),
        (1, 1, 0),
        "{}",
        out.stderr
    );
}

/// Other files are imported once, with the folder of the importing one, and messages name them; tests are those of the script alone.
#[test]
fn scripts_have_libraries_and_tests() {
    let dir = lab::scratch();
    std::fs::create_dir(dir.join("more")).expect("a folder");
    let put = |name: &str, text: &str| std::fs::write(dir.join(name), text).expect("a file");
    put("lib.bt", "#define BIG 100\nimport \"more/types.h\";\nfn big($n : int64) : bool { return $n > BIG; }\n");
    put("more/types.h", "import \"../lib.bt\";\nstruct pair { int a; int b; };\n");
    let body = "begin { print((a = big(101), b = sizeof(struct pair))); errorf(\"oops\\n\"); }";
    put("main.bt", &format!("import \"lib.bt\";\nimport \"more/types.h\";\n{body}\nbegin {{ exit(); }}\n"));
    let run = |user: User, args: &[&str]| lab::run(lab::trapline(user, args).current_dir(&dir));
    for user in [User::Me, User::Nobody] {
        let out = run(user, &["run", "-q", "main.bt"]);
        assert_eq!((out.code(), out.out().as_str()), (0, "{ .a = true, .b = 8 }\n\n\n"), "{}", out.stderr);
        assert!(out.stderr.contains("main.bt:3:57-73: ERROR: oops"), "{}", out.stderr);
    }
    put("wrong.bt", "import \"lib.bt\";\nimport \"more/none.h\";\nbegin { }");
    let out = run(User::Me, &["run", "wrong.bt"]);
    assert!(
        out.code() == 125 && out.stderr.contains("wrong.bt:2:1: import \"more/none.h\": No such file"),
        "{}",
        out.stderr
    );

    let tests = "import \"lib.bt\";
test:right { @[1] = 2; assert(big(101)); assert(len(@) == 1); }
test:wrong { print(41); assert(big(1), \"one is small\"); print(42); }
test:unknown { $z = 0; print(1 / $z); }
bench:map { @[rand % 10] = count(); }
begin { print(\"not run\"); }
";
    put("test.bt", tests);
    let out = run(User::Nobody, &["test", "test.bt"]);
    let text = out.out();
    let (before, after) = text.split_once("bench:map ... ").expect("a benchmark");
    let said = "test.bt: test:right ... ok
test.bt: test:wrong ... FAILED
    41
    test.bt:3:25-55: ERROR: assertion failed: one is small
test.bt: test:unknown ... FAILED
    1
    test.bt:4:30-36: a division by zero, whose result is 1 (1 times)
test.bt: ";
    assert_eq!((out.code(), before), (1, said), "{}", out.stderr);
    let (took, rest) = after.split_once(' ').expect("a time");
    assert!(
        took.parse::<f64>().is_ok_and(|ns| ns > 0.0) && rest == "ns a run\n3 tests, 2 failed, 1 benchmark\n",
        "{text}"
    );
    put("good.bt", "test:good { assert(1); }");
    assert_eq!(run(User::Me, &["test", "good.bt"]).code(), 0);
    for (file, says) in [("main.bt", "main.bt: it has no tests"), ("none.bt", "none.bt: No such file")] {
        let out = run(User::Me, &["test", file]);
        assert!(out.code() == 125 && out.stderr.contains(says), "{}", out.stderr);
    }
}

#[test]
fn operations_that_fail_are_said() {
    let text = "struct foo { int a; }; begin { @a[1] = 1; delete(@a[2]); print(@a[3]); @b = @a[3]; $x = ((struct foo *)8)->a; exit(); }";
    let run = |user, options: &[&str]| {
        let words = [&["run", "-e", text, "--config", "print_maps_on_exit=false"], options].concat();
        lab::run(&mut lab::trapline(user, &words))
    };
    let deleted = "stdin:1:43-56: WARNING: Failed to map_delete_elem: No such file or directory (-2)";
    let out = run(User::Nobody, &[]);
    assert_eq!((out.code(), out.stderr.trim()), (0, "Attached 1 probe"));
    let out = run(User::Nobody, &["-k"]);
    assert_eq!((out.code(), out.stderr.contains(deleted)), (0, true), "{}", out.stderr);
    assert!(!out.stderr.contains("lookup"), "{}", out.stderr);
    let out = run(User::Nobody, &["-kk"]);
    let read = "Failed to map_lookup_elem: 0\n";
    assert!(out.stderr.contains(deleted) && out.stderr.contains(read), "{}", out.stderr);
    assert!(out.stderr.contains("Failed to probe_read: Bad address (-14)"), "{}", out.stderr);
    let out = run(User::Nobody, &["-kk", "-q", "-f", "json"]);
    let line =
        "{\"type\": \"helper_error\", \"helper\": \"map_delete_elem\", \"retcode\": -2, \"line\": 1, \"col\": 43}";
    assert_eq!(out.out().lines().next(), Some(line));
    let full = "begin { @[1] = 1; @[2] = 1; exit(); }";
    let words = ["run", "-k", "-e", full, "--config", "max_map_keys=1"];
    let out = lab::run(&mut lab::trapline(User::Nobody, &words));
    assert!(out.stderr.contains("WARNING: Failed to map_update_elem: Argument list too long (-7)"), "{}", out.stderr);
}
