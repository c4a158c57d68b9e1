//! Where text goes, and what happens when it cannot.

use crate::lab::{self, User, each_backend};
use crate::trace::{lines_of, on_stderr, trace};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Stdio;

fn stats(path: &Path) -> Value {
    let text = fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    serde_json::from_str(&text).unwrap_or_else(|e| panic!("{e}: {text}"))
}

/// One counter, of all system calls together.
fn of_calls(stats: &Value, counter: &str) -> u64 {
    let probes = stats["probes"].as_object().expect("probes");
    probes.iter().filter(|(n, _)| n.starts_with("syscall:")).map(|(_, c)| c[counter].as_u64().expect(counter)).sum()
}

#[test]
fn file_has_mode_0600_and_threads_on_every_line() {
    each_backend(|user| {
        let dir = lab::scratch();
        let run = |options: &[&str]| {
            let args = [options, &["-e", "execve", "sh", "-c", "umask 0; /bin/true; exit 0"]].concat();
            lab::run(
                lab::trapline(user, &[&["trace", "-q", "-o", "trace"], args.as_slice()].concat()).current_dir(&dir),
            )
        };
        assert_eq!(run(&[]).stderr, "");
        let file = dir.join("trace");
        assert_eq!(fs::metadata(&file).expect("file").permissions().mode() & 0o7777, 0o600);
        let first = fs::read_to_string(&file).expect("file");
        assert_eq!(lines_of(&file).iter().filter(|l| l.is("execve")).count(), 2);
        // PID, then spaces to five columns, then one more.
        for line in first.lines() {
            let digits = line.bytes().take_while(u8::is_ascii_digit).count();
            let spaces = line[digits..].bytes().take_while(|b| *b == b' ').count();
            assert_eq!(digits + spaces, digits.max(5) + 1, "{line}");
        }
        run(&["-A"]);
        let both = fs::read_to_string(&file).expect("file");
        assert!(both.starts_with(&first) && both.lines().count() == 2 * first.lines().count());
        run(&[]);
        assert_eq!(fs::read_to_string(&file).expect("file").lines().count(), first.lines().count());
    });
}

#[test]
fn a_file_for_each_thread() {
    each_backend(|user| {
        let Some(program) = lab::program("threads") else { return };
        let dir = lab::scratch();
        let mut c = lab::trapline(user, &["trace", "-q", "-ff", "-o", "t", "-e", "getppid,clone3", &program, "20"]);
        let out = lab::run(c.current_dir(&dir));
        assert_eq!((out.code(), out.stderr.as_str()), (0, ""));
        let mut sizes = Vec::new();
        for entry in fs::read_dir(&dir).expect("directory") {
            let path = entry.expect("entry").path();
            let text = fs::read_to_string(&path).expect("text");
            assert!(path.file_name().is_some_and(|n| n.to_string_lossy().starts_with("t.")), "{}", path.display());
            assert_eq!(fs::metadata(&path).expect("file").permissions().mode() & 0o7777, 0o600);
            assert!(
                text.lines().all(|l| l.starts_with("getppid()") || l.starts_with("clone3(") || l.starts_with("+++ ")),
                "{text}"
            );
            assert_eq!(text.matches("+++ exited with 0 +++").count(), 1);
            sizes.push(text.matches("getppid()").count());
        }
        sizes.sort_unstable();
        assert_eq!(sizes, [0, 20, 20, 20, 20, 20, 20, 20, 20]);
    });
}

#[test]
fn a_command_may_read() {
    each_backend(|user| {
        let dir = lab::scratch();
        let mut c =
            lab::trapline(user, &["trace", "-q", "-o", "|tr a-z A-Z >upper", "-e", "openat", "sh", "-c", "exit 3"]);
        assert_eq!(lab::run(c.current_dir(&dir)).code(), 3);
        let text = fs::read_to_string(dir.join("upper")).expect("upper");
        assert!(
            text.contains(" OPENAT(AT_FDCWD, ")
                && text.lines().last().is_some_and(|l| l.ends_with("+++ EXITED WITH 3 +++"))
        );
    });
}

#[test]
fn a_file_that_cannot_be_written_is_an_error_before_the_start() {
    each_backend(|user| {
        for file in ["/nonexistent/x", "/proc/nothing", "/"] {
            let out = on_stderr(user, &["-o", file, "echo", "ran"]);
            assert_eq!((out.code(), out.out().as_str()), (125, ""), "{}", out.stderr);
            assert_eq!(out.stderr.lines().count(), 1, "{}", out.stderr);
            assert!(out.stderr.contains(file), "{}", out.stderr);
        }
    });
}

#[test]
fn a_full_disk_drops_and_counts() {
    each_backend(|user| {
        let Some(program) = lab::program("threads") else { return };
        let dir = lab::scratch();
        let script = format!("{program} 400; exit 5");
        let mut c = lab::trapline(
            user,
            &["trace", "-o", "/dev/full", "--stats", "s.json", "-e", "nanosleep", "sh", "-c", &script],
        );
        let out = lab::run(c.current_dir(&dir));
        assert_eq!((out.code(), out.out().as_str()), (5, "6400\n"));
        assert_eq!(out.stderr.matches("No space left on device").count(), 1, "{}", out.stderr);
        assert_eq!(out.stderr.lines().count(), 2, "{}", out.stderr);
        let s = stats(&dir.join("s.json"));
        assert_eq!(of_calls(&s, "seen"), 3200);
        // Not one line could be written.
        assert_eq!((of_calls(&s, "recorded"), of_calls(&s, "dropped")), (0, 3200), "{s}");
        assert_eq!(s["events"], 0);
    });
}

#[test]
fn a_closed_pipe_drops_and_counts() {
    each_backend(|user| {
        let Some(program) = lab::program("threads") else { return };
        let dir = lab::scratch();
        let script = format!("{program} 2000; exit 5");
        let mut c = lab::trapline(
            user,
            &["trace", "-o", "|head -1 >first", "--stats", "s.json", "-e", "nanosleep", "sh", "-c", &script],
        );
        let out = lab::run(c.current_dir(&dir));
        assert_eq!((out.code(), out.out().as_str()), (5, "32000\n"), "{}", out.stderr);
        assert_eq!(out.stderr.matches("Broken pipe").count(), 1, "{}", out.stderr);
        assert_eq!(fs::read_to_string(dir.join("first")).expect("first").lines().count(), 1);
        let s = stats(&dir.join("s.json"));
        assert_eq!(of_calls(&s, "seen"), 16000);
        assert_eq!(of_calls(&s, "recorded") + of_calls(&s, "dropped"), 16000);
        // 16000 lines are more than a pipe and a buffer hold.
        assert!(of_calls(&s, "dropped") > 5000, "{s}");
        assert!(s["dropped"].as_u64() >= Some(of_calls(&s, "dropped")));
    });
}

/// Sends a signal to trapline until it has ended.
fn insist(running: &lab::Running, signal: &str) {
    let pid = running.pid();
    lab::until("its end", || {
        lab::kill(signal, pid.into());
        lab::status_field(pid, "State").is_none_or(|s| s.starts_with('Z'))
    });
}

// Slow: signals end what is blocked when they come for a second.
#[test]
fn signals_end_a_trapline_whose_output_nobody_reads() {
    each_backend(|user| {
        for signal in ["INT", "TERM"] {
            let script = "echo $$ >&2; while :; do /bin/true; done";
            let mut c = lab::trapline(user, &["trace", "-o", "|sleep 50", "sh", "-c", script]);
            let running = lab::start(c.stderr(Stdio::null()));
            let is_blocked =
                || fs::read_to_string(format!("/proc/{}/syscall", running.pid())).is_ok_and(|s| s.starts_with("1 "));
            lab::until("it waits", || (0..20).all(|_| is_blocked()));
            insist(&running, signal);
        }
    });
}

// Slow: as above.
#[test]
fn signals_end_a_trapline_whose_tracer_does_not_run() {
    lab::each_ptracer(|user| {
        if !lab::may_attach(user) {
            return;
        }
        let target = lab::start(&mut lab::as_user(user, &["sleep", "50"]));
        for signal in ["INT", "TERM"] {
            let pid = target.pid().to_string();
            let running =
                lab::start(lab::trapline(user, &["trace", "-o", "/dev/null", "-p", &pid]).stderr(Stdio::null()));
            lab::until("the tracer", || lab::tracer_of(target.pid()) != 0);
            let tracer = lab::tracer_of(target.pid());
            lab::kill("STOP", tracer.into());
            lab::until("it is stopped", || lab::status_field(tracer, "State").is_some_and(|s| s.starts_with('T')));
            insist(&running, signal);
            lab::kill("CONT", tracer.into());
            lab::until("no tracer", || lab::tracer_of(target.pid()) == 0);
        }
    });
}

#[test]
fn a_closed_stderr_does_not_touch_the_command() {
    each_backend(|user| {
        let Some(program) = lab::program("threads") else { return };
        let dir = lab::scratch();
        let script = format!("{program} 600 >done 2>&1; echo more >>done; exit 5");
        let mut c = lab::trapline(user, &["trace", "--stats", "s.json", "-e", "nanosleep", "sh", "-c", &script]);
        // Nobody reads from the first byte on.
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let running = lab::start(c.current_dir(&dir).stdout(Stdio::piped()).stderr(writer));
        assert_eq!(running.end().code(), 5);
        assert_eq!(fs::read_to_string(dir.join("done")).expect("done"), "9600\nmore\n");
        let s = stats(&dir.join("s.json"));
        assert_eq!((of_calls(&s, "seen"), of_calls(&s, "dropped")), (4800, 4800), "{s}");
    });
}

#[test]
fn counters_add_up() {
    each_backend(|user| {
        let Some(program) = lab::program("signals") else { return };
        for options in [
            &[][..],
            &["-Z"],
            &["-z", "-e", "kill,rt_sigaction"],
            &["-e", "signal=none"],
            &["-y", "-e", "read"],
            &["-P", "/nonexistent"],
        ] {
            let file = lab::scratch().join("s.json");
            let name = file.display().to_string();
            let t = trace(user, &[&["--stats", &name], options].concat(), &[&program]);
            let s = stats(&file);
            assert_eq!(s["backend"], user.backend());
            for (probe, c) in s["probes"].as_object().expect("probes") {
                let n = |k: &str| c[k].as_u64().unwrap_or_else(|| panic!("{probe} {k}"));
                assert_eq!(n("seen"), n("recorded") + n("dropped") + n("filtered"), "{probe} {s}");
                let call = probe.strip_prefix("syscall:");
                if let Some(call) = call.filter(|c| *c != "raw") {
                    assert_eq!(n("recorded"), t.calls(call).len() as u64, "{options:?} {probe} {}", t.text());
                }
            }
            let calls = t.lines.iter().filter(|l| l.is_call()).count() as u64;
            assert_eq!((s["events"].as_u64(), s["dropped"].as_u64()), (Some(calls), Some(0)), "{options:?} {s}");
            assert_eq!(of_calls(&s, "recorded"), calls);
            assert!(t.outcome.stderr.contains(&format!("{calls} events, 0 dropped")), "{}", t.outcome.stderr);
        }
    });
}

#[test]
fn stats_that_cannot_be_written_are_one_line() {
    each_backend(|user| {
        let out = on_stderr(user, &["-q", "-e", "none", "--stats", "/nonexistent/s.json", "sh", "-c", "exit 3"]);
        assert_eq!(out.code(), 3);
        assert_eq!(out.stderr.matches("--stats /nonexistent/s.json").count(), 1, "{}", out.stderr);
    });
}

#[test]
fn a_full_buffer_drops_and_counts_or_blocks() {
    each_backend(|user: User| {
        let Some(program) = lab::program("threads") else { return };
        let dir = lab::scratch();
        // The reader waits until the program has ended, so the buffer fills for certain.
        let reader = "|while [ ! -e go ]; do sleep 0.05; done; cat >trace";
        let script = format!("{program} 600; echo >go");
        let common = ["trace", "--buffer", "4096", "--stats", "s.json", "-e", "getppid,nanosleep"];
        let dropping = ["--on-full", "drop", "-o", reader, "sh", "-c", &script];
        let out = lab::run(lab::trapline(user, &[&common[..], &dropping].concat()).current_dir(&dir));
        assert_eq!((out.code(), out.out().as_str()), (0, "9600\n"), "{}", out.stderr);
        let (shown, s) = (lines_of(&dir.join("trace")), stats(&dir.join("s.json")));
        let shown = shown.iter().filter(|l| l.is_call()).count() as u64;
        let dropped = s["dropped"].as_u64().expect("dropped");
        assert_eq!(of_calls(&s, "recorded"), shown);
        // Forks, exits and execs (not 100 of them) may be among the dropped too.
        let all = shown + dropped;
        assert!(dropped > 0 && (9600..9700).contains(&all), "{shown} shown, {dropped} dropped");
        assert!(out.stderr.contains(&format!(" {dropped} dropped")), "{}", out.stderr);

        if user == User::Kernel {
            // It never makes the target wait.
            return;
        }
        let blocking = ["-o", "trace", &program, "600"];
        let out = lab::run(lab::trapline(user, &[&common[..], &blocking].concat()).current_dir(&dir));
        assert_eq!((out.code(), out.out().as_str()), (0, "9600\n"), "{}", out.stderr);
        let shown = lines_of(&dir.join("trace"));
        assert_eq!(shown.iter().filter(|l| l.is_call()).count(), 9600);
    });
}
