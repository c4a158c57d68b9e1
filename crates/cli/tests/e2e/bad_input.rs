//! Input that asks for what cannot be: one clear line, what and why and what to do.

use crate::lab::{self, User, each_backend, each_ptracer, each_user};
use crate::trace::on_stderr;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

/// One line on stderr, with all of `words`, and nothing on stdout.
#[track_caller]
fn refused(user: User, args: &[&str], code: i32, words: &[&str]) {
    let out = on_stderr(user, args);
    assert_eq!(out.code(), code, "{args:?} {}", out.stderr);
    assert_eq!(out.stderr.lines().count(), 1, "{args:?} {}", out.stderr);
    assert!(out.stderr.starts_with("trapline: "), "{args:?} {}", out.stderr);
    assert_eq!(out.out(), "");
    for word in words {
        assert!(out.stderr.contains(word), "{args:?} no '{word}' in: {}", out.stderr);
    }
}

#[test]
fn commands_that_cannot_run() {
    each_backend(|user| {
        let dir = lab::scratch();
        let path = |name: &str, mode: u32, text: &str| {
            let file = dir.join(name);
            fs::write(&file, text).expect("file");
            fs::set_permissions(&file, fs::Permissions::from_mode(mode)).expect("mode");
            file.display().to_string()
        };
        refused(user, &["no-such-command-here"], 127, &["no-such-command-here", "not found"]);
        refused(user, &["/no/such/file"], 127, &["/no/such/file", "no such file"]);
        refused(user, &["/etc/passwd/x"], 127, &["/etc/passwd/x"]);
        refused(user, &[""], 127, &["empty"]);
        refused(user, &["/tmp"], 126, &["/tmp", "directory"]);
        refused(user, &[&path("plain", 0o644, "#!/bin/sh\n")], 126, &["plain", "permission denied", "chmod"]);
        refused(user, &[&path("garbage", 0o755, "\x7fnot a program\n")], 126, &["garbage", "not a program"]);
        refused(user, &[&path("lost", 0o755, "#!/no/such/interpreter\n")], 127, &["lost", "interpreter"]);
        refused(user, &["-e", "openat", &path("garbage2", 0o755, "\x7fnot a program\n")], 126, &["garbage2"]);
        refused(user, &[], 2, &["nothing to trace", "-p PID"]);
        refused(user, &["-p", "1", "true"], 2, &["-p", "command"]);
    });
}

#[test]
fn processes_that_cannot_be_traced() {
    each_backend(|user| {
        refused(user, &["-p", "4194999"], 125, &["4194999", "no such process"]);
        for bad in ["0", "-1", "x", "1x", "99999999999"] {
            refused(user, &[&format!("-p{bad}")], 2, &["not a process id"]);
        }
    });
}

#[test]
fn a_process_that_has_ended() {
    each_backend(|user| {
        // Not waited for, it stays a zombie until the test ends it.
        let mut child = lab::as_user(user, &["true"]).spawn().expect("true");
        lab::until("a zombie", || lab::status_field(child.id(), "State").is_some_and(|s| s.starts_with('Z')));
        let out = on_stderr(user, &["-p", &child.id().to_string()]);
        let _ = child.wait();
        assert_eq!(out.code(), 125, "{}", out.stderr);
        assert_eq!(out.stderr.lines().count(), 1, "{}", out.stderr);
        assert!(out.stderr.contains("the process has ended"), "{}", out.stderr);
    });
}

#[test]
fn a_process_that_ends_while_attaching() {
    each_backend(|user| {
        if !lab::may_attach(user) {
            return;
        }
        let Some(program) = lab::program("threads") else { return };
        for _ in 0..12 {
            let running = lab::start(lab::as_user(user, &[&program, "20"]).stdout(Stdio::null()));
            let out = on_stderr(user, &["-p", &running.pid().to_string()]);
            // Either it was caught, or it was not there any more.
            let caught = out.code() == 0 && out.stderr.contains("events");
            let gone = out.code() == 125 && out.stderr.lines().count() == 1;
            assert!(caught || gone, "{} {}", out.code(), out.stderr);
            assert_eq!(running.end().code(), 0);
        }
    });
}

#[test]
fn a_process_of_somebody_else() {
    if !lab::is_root() {
        return lab::skip("root", "needs a process of root's");
    }
    if !lab::has("setpriv") {
        return lab::skip("unprivileged", "no setpriv to become nobody");
    }
    let running = lab::start(&mut lab::as_user(User::Me, &["sleep", "50"]));
    let pid = running.pid().to_string();
    refused(User::Nobody, &["-p", &pid], 125, &[&pid, "not permitted", "root"]);
    assert_eq!(lab::tracer_of(running.pid()), 0);
}

#[test]
fn a_process_that_is_traced_already() {
    each_ptracer(|user| {
        if !lab::may_attach(user) {
            return;
        }
        let target = lab::start(&mut lab::as_user(user, &["sleep", "50"]));
        let pid = target.pid().to_string();
        let first = lab::start(lab::trapline(user, &["trace", "-o", "/dev/null", "-p", &pid]).stderr(Stdio::null()));
        lab::until("the first tracer", || lab::tracer_of(target.pid()) != 0);
        refused(user, &["-p", &pid], 125, &[&pid, "already traced", "trapline"]);
        lab::kill("INT", first.pid().into());
        assert_eq!(first.end().code(), 0);
        lab::until("no tracer", || lab::tracer_of(target.pid()) == 0);
        if !lab::has("strace") {
            return lab::skip("package:strace", "no strace");
        }
        let strace = lab::start(lab::as_user(user, &["strace", "-o", "/dev/null", "-p", &pid]).stderr(Stdio::null()));
        lab::until("strace", || lab::tracer_of(target.pid()) == strace.pid());
        refused(user, &["-p", &pid], 125, &[&pid, "already traced", "strace", &strace.pid().to_string()]);
    });
}

#[test]
fn tracers_that_would_trace_each_other() {
    each_ptracer(|user| {
        if !lab::may_attach(user) {
            return;
        }
        // The two processes of the outer one, from a shell that it traces, and from one further in.
        let exe = lab::dir().join("trapline").display().to_string();
        let find = "T=$(awk '/TracerPid/{print $2}' /proc/self/status); F=$(awk '/PPid/{print $2}' /proc/$T/status);";
        let script = format!(
            "{find} for p in $T $F; do for c in 'trace --backend ptrace -o /dev/null' graph; do {exe} $c -p $p; echo $?; done; done"
        );
        let out = lab::run(&mut lab::trapline(user, &["trace", "-o", "/dev/null", "sh", "-c", &script]));
        assert_eq!((out.code(), out.out().as_str()), (0, "125\n125\n125\n125\n"), "{}", out.stderr);
        assert_eq!(out.stderr.matches("it traces this trapline").count(), 4, "{}", out.stderr);
    });
}

#[test]
fn one_bad_process_of_several_leaves_the_others_alone() {
    each_backend(|user| {
        if !lab::may_attach(user) {
            return;
        }
        let target = lab::start(&mut lab::as_user(user, &["sleep", "50"]));
        let out = on_stderr(user, &["-p", &format!("{},4194999", target.pid())]);
        assert_eq!(out.code(), 125, "{}", out.stderr);
        assert!(out.stderr.contains("4194999: no such process"), "{}", out.stderr);
        let tracer = lab::tracer_of(target.pid());
        let its_command = std::fs::read(format!("/proc/{tracer}/cmdline")).unwrap_or_default();
        assert_eq!(tracer, 0, "{}", String::from_utf8_lossy(&its_command));
        // It may still have to wait for a processor, to sleep again.
        lab::until("it sleeps", || lab::status_field(target.pid(), "State").is_some_and(|s| s.starts_with('S')));
    });
}

#[test]
fn itself_and_its_own_kind() {
    each_ptracer(|user| {
        let exe = lab::dir().join("trapline").display().to_string();
        // The inner one cannot trace what the outer one traces already; it says so, and ends.
        for inner in [&["-o", "/dev/null"][..], &["-e", "openat"], &["-o", "/dev/null", "--no-follow"]] {
            let outer = ["--backend", "ptrace", "-o", "/dev/null", &exe, "trace", "--backend", "ptrace"];
            let args = [&outer, inner, &["ls"]].concat();
            let out = on_stderr(user, &args);
            assert_eq!(out.code(), 125, "{inner:?} {}", out.stderr);
            assert!(out.stderr.contains("already traced by process"), "{}", out.stderr);
            assert!(out.stderr.contains("(trapline)"), "{}", out.stderr);
        }
        // An outer one that does not follow leaves room for the inner one.
        let outer = ["-q", "--backend", "ptrace", "--no-follow", "-o", "/dev/null"];
        let inner = [&exe, "trace", "--backend", "ptrace", "-q", "-o", "/dev/null", "sh", "-c", "exit 3"];
        let out = on_stderr(user, &[&outer[..], &inner].concat());
        assert_eq!(out.code(), 3, "{}", out.stderr);
        let script = format!("exec {exe} trace -p $$");
        let out = lab::run(&mut lab::as_user(user, &["sh", "-c", &script]));
        assert_eq!(out.code(), 2);
        assert!(out.stderr.contains("trapline itself"), "{}", out.stderr);
    });
}

#[test]
fn options_that_are_not_offered_name_the_equivalent() {
    each_user(|user| {
        let cases: &[(&[&str], &str)] = &[
            (&["-D", "true"], "not needed"),
            (&["-I", "2", "true"], "Ctrl-C"),
            (&["-b", "execve", "true"], "not offered"),
            (&["-d", "true"], "--explain"),
            (&["-O", "1", "true"], "not offered"),
            (&["--inject=openat:error=EIO", "true"], "never changes"),
            (&["--decode-fds=pidfd", "true"], "path, socket, dev"),
            (&["-e", "openat@32", "true"], "selected together"),
            (&["-e", "quiet=attached", "true"], "path-resolution"),
            (&["-e", "read=x", "true"], "a number, all or none"),
            (&["--relative-timestamps=m", "true"], "s, ms, us or ns"),
            (&["--absolute-timestamps=epoch", "true"], "none, time or unix"),
            (&["--kill-on-exit", "-p", "1"], "leave it out"),
            (&["--kill-on-exit", "--backend", "kernel", "true"], "leave out --backend"),
            (&["--seccomp-bpff", "true"], "no such option"),
            (&["-a", "true"], "--columns"),
            (&["--backend", "nonsense", "true"], "ptrace"),
            (&["--on-full", "nonsense", "true"], "block"),
            (&["--buffer", "nonsense", "true"], "4M"),
            (&["--buffer", "0", "true"], "4M"),
            (&["-e", "", "true"], "-e '': it names nothing"),
            (&["-e", "trace=", "true"], "names nothing"),
            (&["-e", ",", "true"], "names nothing"),
            (&["-e", "signal=", "true"], "names nothing"),
            (&["-e", "status=", "true"], "names nothing"),
            (&["-e", "raw=", "true"], "names nothing"),
            (&["--trace", "", "true"], "names nothing"),
            (&["-e", "tracepoint:sched:sched_switch", "true"], "record -e tracepoint:sched:sched_switch"),
            (&["-e", "syscall:openat:entry", "true"], "record -e syscall:openat:entry"),
            (&["-e", "openat,profile:hz:99", "true"], "record -e profile:hz:99"),
            (&["--duration", "0", "true"], "for instance 10, 1.5s"),
            (&["--duration", "0s", "true"], "for instance 10, 1.5s"),
            (&["--duration", "1x", "true"], "ns us ms s m h d"),
            (&["--duration=-1", "true"], "not a time"),
            (&["--duration", "99999999d", "true"], "not a time"),
            (&["-s", "x", "true"], "number"),
            (&["-X", "nonsense", "true"], "abbrev"),
            (&["--colums", "60", "true"], "--columns"),
        ];
        for (args, hint) in cases {
            let out = on_stderr(user, args);
            assert_eq!(out.code(), 2, "{args:?} {}", out.stderr);
            assert_eq!(out.stderr.lines().count(), 1, "{args:?} {}", out.stderr);
            assert!(out.stderr.contains(hint), "{args:?} {}", out.stderr);
        }
        let out = lab::run(&mut lab::trapline(user, &["trce", "true"]));
        assert!(out.code() == 2 && out.stderr.contains("trace"), "{}", out.stderr);
        let out = lab::run(&mut lab::trapline(user, &["ls"]));
        assert!(out.code() == 2 && out.stderr.contains("trapline trace -- ls"), "{}", out.stderr);
    });
}

#[test]
fn options_that_exclude_each_other() {
    each_user(|user| {
        for (options, words) in [
            (&["-z", "-Z"][..], &["-z", "-Z"][..]),
            (&["-z", "-e", "status=failed"], &["status=", "-z"]),
            (&["-Z", "--status", "failed"], &["status=", "-Z"]),
            (&["-c", "-C"], &["-c", "-C"]),
            (&["-c", "--as", "json"], &["--as", "-c"]),
            (&["-ff", "-o", "|cat"], &["-ff", "command"]),
            (&["-ff", "-c", "-o", "/dev/null"], &["-ff", "table"]),
            (&["-f", "--no-follow"], &["--no-follow", "-f"]),
        ] {
            refused(user, &[options, &["true"]].concat(), 2, words);
        }
        for option in [["-u", "root"], ["-E", "A=b"]] {
            refused(user, &[&option[..], &["-p", "1"]].concat(), 2, &[option[0], "no command"]);
        }
        for (options, word) in
            [(&["-A", "-o", "trace"][..], "-A"), (&["-ff", "-o", "trace"], "-ff"), (&["--force"], "-o DIR")]
        {
            let args = [&["record"], options, &["true"]].concat();
            let out = lab::run(lab::trapline(user, &args).current_dir(lab::scratch()));
            assert_eq!((out.code(), out.stderr.lines().count()), (2, 1), "{args:?} {}", out.stderr);
            assert!(out.stderr.contains(word), "{}", out.stderr);
        }
    });
}

#[test]
fn options_that_have_no_effect_are_named() {
    each_user(|user| {
        for (options, notes) in [
            (&["-A"][..], &["-A: has no effect without -o FILE"][..]),
            (&["-ff"], &["-ff: has no effect without -o FILE"]),
            (&["-S", "name"], &["-S: has no effect without a table (-c, -C)"]),
            (&["-w", "-U", "name"], &["-U: has no effect without", "-w: has no effect without"]),
            (&["-c", "-tt", "--columns", "60"], &["-t: has no effect with -c", "--columns: has no effect with -c"]),
            (&["--as", "json", "-T", "-x"], &["-T: has no effect with --as json", "-x: has no effect with --as json"]),
            (&["-c", "-S", "name", "-w"], &[]),
            (&["-tt", "-T", "-x"], &[]),
            (&["-q", "-A", "-ff", "-S", "name"], &[]),
        ] {
            let out = on_stderr(user, &[options, &["-e", "openat", "true"]].concat());
            assert_eq!(out.code(), 0, "{options:?} {}", out.stderr);
            assert_eq!(out.stderr.matches("has no effect").count(), notes.len(), "{options:?} {}", out.stderr);
            notes
                .iter()
                .for_each(|n| assert!(out.stderr.contains(&format!("trapline: {n}")), "{options:?} {}", out.stderr));
        }
        let dir = lab::scratch();
        let args = ["record", "-o", "r", "-tt", "-c", "true"];
        let out = lab::run(lab::trapline(user, &args).current_dir(&dir));
        for option in ["-t", "-c"] {
            assert!(out.stderr.contains(&format!("{option}: has no effect on a trace")), "{}", out.stderr);
        }
    });
}

#[test]
fn a_thread_of_the_kernel() {
    each_backend(|user| {
        let is_kthreadd = lab::status_field(2, "PPid").as_deref() == Some("0");
        if !is_kthreadd {
            return lab::skip("kernel:pids", "no kernel threads are in sight");
        }
        refused(user, &["-p", "2"], 125, &["-p 2", "kernel thread", "makes no system calls"]);
    });
}

#[test]
fn a_full_device_is_told() {
    each_user(|user| {
        let trapline = lab::dir().join("trapline").display().to_string();
        for args in [
            "list",
            "list tracepoint:",
            "doctor",
            "man",
            "completions bash",
            "--help",
            "trace --help",
            "--version",
            "session list --json",
            r#"run -q -e 'begin { printf("x\n"); exit(3); }'"#,
            r#"run -q -e 'interval:ms:5 { printf("x\n"); }'"#,
            r#"run -q -c false -e 'syscall:exit_group { printf("x\n"); }'"#,
            r#"run -q -c true -e 'end { printf("x\n"); }'"#,
        ] {
            let script = format!("exec '{trapline}' {args} > /dev/full");
            let out = lab::run(&mut lab::as_user(user, &["sh", "-c", &script]));
            assert_eq!(out.code(), 125, "{args} {}", out.stderr);
            assert!(out.stderr.contains("trapline: stdout: No space left on device ("), "{args} {}", out.stderr);
            // Whoever has read enough is no trouble.
            let script = format!("'{trapline}' {args} | true");
            assert_eq!(lab::run(&mut lab::as_user(user, &["sh", "-c", &script])).stderr, "", "{args}");
        }
        if !lab::may_attach(user) {
            return;
        }
        let target = lab::start(&mut lab::as_user(user, &["sleep", "50"]));
        let out = on_stderr(user, &["-o", "/dev/full", "-p", &target.pid().to_string()]);
        assert_eq!(out.code(), 125, "{}", out.stderr);
        assert_eq!(out.stderr.matches("No space left on device").count(), 1, "{}", out.stderr);
    });
}

#[test]
fn too_few_descriptors() {
    each_backend(|user| {
        let trace = lab::trace_in_a_shell(user);
        let (mut told, mut ran) = (0, 0);
        for limit in 4..40 {
            let script = format!("ulimit -n {limit}; exec {trace} -o /dev/null true");
            let out = lab::run(&mut lab::as_user(user, &["sh", "-c", &script]));
            if out.code() == 0 {
                ran += 1;
                continue;
            }
            told += 1;
            assert_eq!((out.code(), out.stderr.lines().count()), (125, 1), "{limit} {}", out.stderr);
            assert!(out.stderr.contains("too many open files (raise the limit: ulimit -n"), "{limit} {}", out.stderr);
        }
        assert!(told > 0 && ran > 0, "{told} {ran}");
    });
}

#[test]
fn durations_have_units() {
    each_backend(|user| {
        if !lab::may_attach(user) {
            return;
        }
        let target = lab::start(lab::as_user(user, &["sleep", "50"]).stdout(Stdio::null()).stderr(Stdio::null()));
        let pid = target.pid().to_string();
        for time in ["0.2", "200ms", ".2s", "200000us"] {
            let out = on_stderr(user, &["-q", "-o", "/dev/null", "--duration", time, "-p", &pid]);
            assert_eq!((out.code(), out.stderr.as_str()), (0, ""), "{time}");
        }
    });
}
