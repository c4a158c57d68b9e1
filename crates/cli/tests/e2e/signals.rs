//! Signals, stops and interrupted calls, passed through faithfully.

use crate::lab::{self, each_backend};
use crate::trace::trace;
use std::os::unix::process::ExitStatusExt;

#[test]
fn every_delivery_is_seen_and_reaches_the_program() {
    each_backend(|user| {
        let Some(program) = lab::program("signals") else { return };
        let alone = lab::run(&mut lab::as_user(user, &[&program]));
        for options in [&[][..], &["-e", "kill"], &["-e", "none"]] {
            let t = trace(user, options, &[&program]);
            assert_eq!(t.outcome.out(), alone.out());
            assert_eq!((t.outcome.status.signal(), t.outcome.status.code()), (Some(15), None));
            let lines: Vec<&str> = t.lines.iter().map(|l| l.text.as_str()).filter(|l| l.starts_with("--- ")).collect();
            let names: Vec<&str> = lines.iter().filter_map(|l| l.split(' ').nth(1)).collect();
            assert_eq!(
                names,
                ["SIGUSR1", "SIGUSR1", "SIGUSR2", "SIGHUP", "SIGINT", "SIGRT_2", "SIGRT_2", "SIGRT_2", "SIGTERM"]
            );
            assert!(lines[0].contains("si_code=SI_USER, si_pid="), "{}", lines[0]);
            assert!(lines[1].contains("si_code=SI_QUEUE") && lines[1].contains("si_int=7"), "{}", lines[1]);
            assert!(lines[2].contains("si_code=SI_TKILL"), "{}", lines[2]);
            for (i, value) in [(5, 1), (6, 2), (7, 3)] {
                assert!(lines[i].contains(&format!("si_int={value}, ")), "{}", lines[i]);
            }
            assert_eq!(t.lines.last().map(|l| l.text.as_str()), Some("+++ killed by SIGTERM +++"));
        }
    });
}

#[test]
fn a_fault_is_shown_with_its_address() {
    if !lab::has("python3") {
        return lab::skip("package:python3", "no python3");
    }
    each_backend(|user| {
        let script = "ulimit -c 0; exec /usr/bin/env python3 -c 'import ctypes; ctypes.string_at(0)'";
        let t = trace(user, &["-e", "none"], &["sh", "-c", script]);
        assert_eq!(t.outcome.status.signal(), Some(11), "{}", t.text());
        t.has("--- SIGSEGV {si_signo=SIGSEGV, si_code=SEGV_MAPERR, si_addr=NULL} ---");
        t.has("+++ killed by SIGSEGV");
    });
}

#[test]
fn a_group_stop_stops_and_goes_on() {
    each_backend(|user| {
        let Some(program) = lab::program("stop_cont") else { return };
        for options in [&[][..], &["-e", "wait4,kill"], &["-e", "none"]] {
            let t = trace(user, options, &[&program]);
            assert_eq!(t.outcome.code(), 0, "{}", t.text());
            t.one("--- SIGSTOP {si_signo=SIGSTOP, si_code=SI_USER");
            t.one("--- stopped by SIGSTOP ---");
            t.one("--- SIGCONT {");
            t.one("si_code=CLD_STOPPED");
            t.one("+++ exited with 5 +++");
            if options.is_empty() {
                t.one("WIFSTOPPED(s) && WSTOPSIG(s) == SIGSTOP");
                t.one("WEXITSTATUS(s) == 5");
            }
        }
    });
}

#[test]
fn a_stop_from_outside_holds_the_command() {
    each_backend(|user| {
        let dir = lab::scratch();
        let script = "echo $$ > pid.new; mv pid.new pid; i=0; while [ ! -e go ] && [ $i -lt 1000 ]; do sleep 0.02; i=$((i+1)); done; exit 6";
        let mut c = lab::trapline(user, &["trace", "-q", "-o", "trace", "sh", "-c", script]);
        let running = lab::start(c.current_dir(&dir));
        lab::until("the command's pid", || dir.join("pid").exists());
        let pid: u32 = std::fs::read_to_string(dir.join("pid")).expect("pid").trim().parse().expect("pid");
        lab::kill("STOP", pid.into());
        // A process in a group-stop under PTRACE_LISTEN is in state t.
        lab::until("the stop", || {
            std::fs::read_to_string(dir.join("trace")).is_ok_and(|t| t.contains("stopped by SIGSTOP"))
        });
        lab::until("state t", || lab::status_field(pid, "State").is_some_and(|s| s.starts_with(['t', 'T'])));
        std::fs::write(dir.join("go"), "").expect("go");
        lab::kill("CONT", pid.into());
        assert_eq!(running.end().code(), 6);
        let text = std::fs::read_to_string(dir.join("trace")).expect("trace");
        assert!(text.contains("--- SIGCONT {"), "{text}");
    });
}

#[test]
fn job_control_of_a_shell_works() {
    if !lab::has("bash") {
        return lab::skip("package:bash", "no bash");
    }
    each_backend(|user| {
        // The shell makes process groups, sees its job stop, and takes it up again.
        let script = "set -m; sh -c 'kill -STOP $$; exit 3' & \
            until jobs %1 | grep -q Stopped; do sleep 0.02; done; \
            fg %1 >/dev/null; echo $?";
        let t = trace(user, &["-e", "none"], &["bash", "-c", script]);
        assert_eq!(t.outcome.out(), "3\n", "{}", t.text());
        t.has("--- stopped by SIGSTOP ---");
    });
}

#[test]
fn interrupted_and_restarted_calls() {
    each_backend(|user| {
        let Some(program) = lab::program("eintr") else { return };
        for options in [&[][..], &["-e", "read,nanosleep,wait4,rt_sigreturn"]] {
            let t = trace(user, options, &[&program]);
            assert_eq!(t.outcome.code(), 0, "{}", t.text());
            let parent = t.lines[0].tid;
            let reads: Vec<&str> = t
                .calls("read")
                .into_iter()
                .filter(|l| l.tid == parent && l.text.contains(", 1) "))
                .map(|l| l.result())
                .collect();
            let restarted = "? ERESTARTSYS (To be restarted if SA_RESTART is set)";
            // Whether an alarm comes while the read waits again, or before, depends on the load.
            let (last, before) = reads.split_last().expect("reads");
            assert!(before.len() >= 2 && before.iter().all(|r| *r == restarted) && *last == "1", "{}", t.text());
            let returns: Vec<&str> = t.calls("rt_sigreturn").iter().map(|l| l.result()).collect();
            // An alarm that comes before the program has seen EINTR gives it back again.
            let (seen, again) =
                returns.split_at(returns.partition_point(|r| *r == "-1 EINTR (Interrupted system call)"));
            assert!(!seen.is_empty() && again.len() >= 2 && again.iter().all(|r| *r == "0"), "{}", t.text());
            assert_eq!(t.calls("nanosleep")[0].result(), "? ERESTART_RESTARTBLOCK (Interrupted by signal)");
            if options.is_empty() {
                // Its rest is as long as was left, so there may be a notice before.
                assert_eq!(t.calls("restart_syscall").last().map(|l| l.result()), Some("0"), "{}", t.text());
            }
        }
    });
}

#[test]
fn signals_to_trapline_are_passed_on() {
    each_backend(|user| {
        for (name, number) in [("TERM", 15), ("INT", 2), ("HUP", 1)] {
            let dir = lab::scratch();
            let script = "echo > ready; exec sleep 50";
            let mut c = lab::trapline(user, &["trace", "-q", "-o", "trace", "sh", "-c", script]);
            let running = lab::start(c.current_dir(&dir));
            let asleep = || std::fs::read_to_string(dir.join("trace")).is_ok_and(|t| t.contains("<in flight>"));
            lab::until("sleep", asleep);
            lab::kill(name, running.pid().into());
            let out = running.end();
            assert_eq!(out.status.signal(), Some(number), "{name}");
            let text = std::fs::read_to_string(dir.join("trace")).expect("trace");
            assert!(text.contains(&format!("--- SIG{name} {{")), "{text}");
            assert!(text.contains(&format!("+++ killed by SIG{name}")), "{text}");
        }
    });
}
