//! `-p`: calls in flight, detaching, several processes.

use crate::lab::{self, Running, User, each_backend, each_ptracer};
use crate::trace::{Line, lines_of};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, Stdio};

/// tests/programs/in_flight.c, all of whose threads are blocked.
struct Target {
    running: Running,
    stdin: Option<ChildStdin>,
}

fn target(user: User, program: &str) -> Target {
    let mut child =
        lab::as_user(user, &[program]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("in_flight");
    let stdin = child.stdin.take();
    let mut line = String::new();
    BufReader::new(child.stdout.take().expect("stdout")).read_line(&mut line).expect("its pid");
    assert_eq!(line.trim(), child.id().to_string());
    let pid = child.id();
    let running = lab::start_with(child);
    lab::until("its read", || syscall_of(pid).as_deref() == Some("0"));
    Target { running, stdin }
}

/// The number of the call that a process is blocked in.
fn syscall_of(pid: u32) -> Option<String> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/syscall")).ok()?;
    text.split_whitespace().next().map(str::to_string)
}

impl Target {
    fn pid(&self) -> u32 {
        self.running.pid()
    }
    fn send(&mut self, text: &str) {
        self.stdin.as_mut().expect("stdin").write_all(text.as_bytes()).expect("its stdin");
    }
    /// It runs on, untraced, answers, and ends well.
    fn lives(mut self) {
        lab::until("no tracer", || lab::tracer_of(self.pid()) == 0);
        self.send("still there");
        let pid = self.pid();
        lab::until("its read", || syscall_of(pid).as_deref() == Some("0"));
        self.stdin = None;
        assert_eq!(self.running.end().code(), 0);
    }
}

struct Attached {
    running: Running,
    file: PathBuf,
}

fn attach(user: User, options: &[&str]) -> Attached {
    let (args, file) = crate::trace::arguments(options, &[]);
    let running = lab::start(lab::trapline(user, &args).stderr(Stdio::piped()));
    Attached { running, file }
}

/// Complete lines so far.
fn so_far(file: &Path) -> Vec<Line> {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    // The last one may be under way.
    let whole = text.rfind('\n').map_or(0, |end| end + 1);
    text[..whole].lines().map(Line::parse).collect()
}

impl Attached {
    #[track_caller]
    fn wait_for(&mut self, what: &str, count: usize) {
        let (running, file) = (&mut self.running, &self.file);
        lab::until(what, || {
            running.must_run();
            so_far(file).iter().filter(|l| l.text.contains(what)).count() >= count
        });
    }
    fn interrupt(self) -> (Vec<Line>, String) {
        lab::kill("INT", self.running.pid().into());
        let out = self.running.end();
        assert_eq!(out.code(), 0, "{}", out.stderr);
        (lines_of(&self.file), out.stderr)
    }
}

fn count(lines: &[Line], what: &str) -> usize {
    lines.iter().filter(|l| l.text.contains(what)).count()
}

#[test]
fn blocked_calls_are_shown_at_once_and_so_are_their_ends() {
    each_backend(|user| {
        if !lab::may_attach(user) {
            return;
        }
        let Some(program) = lab::program("in_flight") else { return };
        let mut target = target(user, &program);
        let pid = target.pid().to_string();
        let mut attached = attach(user, &["-p", &pid]);
        attached.wait_for("<in flight since attach>", 4);
        let lines = so_far(&attached.file);
        for call in ["read(0, ", "futex(", "epoll_wait(", "nanosleep("] {
            let found = lines
                .iter()
                .filter(|l| l.text.starts_with(call) && l.text.ends_with("<in flight since attach>"))
                .count();
            let restart =
                lines.iter().filter(|l| l.text.starts_with("restart_syscall(") && l.text.ends_with("attach>")).count();
            assert!(found == 1 || (call == "nanosleep(" && restart == 1), "{call} {lines:#?}");
        }
        // The attach has interrupted the read; the kernel restarted it, which is not shown.
        target.send("a line");
        attached.wait_for("read(0, \"a line\", 64)", 1);
        let lines = so_far(&attached.file);
        let reads: Vec<&str> = lines.iter().filter(|l| l.text.starts_with("read(0")).map(|l| l.text.as_str()).collect();
        assert!(reads[1].ends_with(" = 6"), "{reads:?}");
        assert_eq!(count(&lines, "ERESTART"), 0, "{lines:#?}");
        // The next read is a call of its own, noticed after a while; then all of them end with the process.
        attached.wait_for("read(0,  <in flight>", 1);
        lab::kill("USR1", target.pid().into());
        let out = attached.running.end();
        assert_eq!(out.code(), 0, "{}", out.stderr);
        assert_eq!(target.running.end().code(), 0);
        let lines = lines_of(&attached.file);
        assert_eq!(count(&lines, "--- SIGUSR1 {"), 1);
        assert!(lines.iter().any(|l| l.text.starts_with("futex(") && l.text.ends_with("= ?")), "{lines:#?}");
        assert_eq!(count(&lines, "+++ exited with 0 +++"), 4, "{lines:#?}");
        assert_eq!(count(&lines, "since attach"), 4);
    });
}

/// epoll_wait(2) ends with EINTR at any stop (signal(7)): it is made again.
#[test]
fn calls_that_the_kernel_does_not_restart_are_made_again() {
    each_ptracer(|user| {
        if !lab::may_attach(user) {
            return;
        }
        let Some(program) = lab::program("in_flight") else { return };
        let target = target(user, &program);
        let pid = target.pid().to_string();
        for _ in 0..3 {
            let mut attached = attach(user, &["--explain", "-p", &pid]);
            attached.wait_for("<in flight since attach>", 4);
            let (lines, stderr) = attached.interrupt();
            let of_epoll: Vec<_> = lines.iter().filter(|l| l.text.starts_with("epoll_wait(")).collect();
            assert!(!of_epoll.is_empty() && count(&lines, "EINTR") == 0, "{lines:#?}");
            assert!(!stderr.contains("EINTR"), "{stderr}");
            lab::until("no tracer", || lab::tracer_of(target.pid()) == 0);
        }
        target.lives();
    });
}

#[test]
fn an_interrupt_detaches_and_the_target_lives() {
    each_backend(|user| {
        if !lab::may_attach(user) {
            return;
        }
        let Some(program) = lab::program("in_flight") else { return };
        for options in [&[][..], &["-e", "read"], &["-y"], &["-e", "none"]] {
            for signal in ["INT", "TERM", "HUP"] {
                let target = target(user, &program);
                let pid = target.pid().to_string();
                let attached = attach(user, &[options, &["-p", &pid]].concat());
                let (tid, front) = (target.pid(), attached.running.pid());
                lab::until("the attach", || lab::is_attached(user, front, tid));
                lab::kill(signal, attached.running.pid().into());
                assert_eq!(attached.running.end().code(), 0, "{signal}");
                target.lives();
            }
        }
    });
}

#[test]
fn a_stopped_process_stays_stopped() {
    each_backend(|user| {
        if !lab::may_attach(user) {
            return;
        }
        let Some(program) = lab::program("in_flight") else { return };
        let target = target(user, &program);
        let pid = target.pid();
        let stopped = |letters: &[char]| lab::status_field(pid, "State").is_some_and(|s| s.starts_with(letters));
        lab::kill("STOP", pid.into());
        lab::until("state T", || stopped(&['T']));
        let mut attached = attach(user, &["-p", &pid.to_string()]);
        if user == User::Kernel {
            // It looks at processes without stopping them, and cannot tell which signal has stopped one before.
            lab::until("the attach", || lab::is_attached(user, attached.running.pid(), pid));
        } else {
            attached.wait_for("stopped by SIGSTOP", 1);
        }
        assert!(stopped(&['T', 't']));
        let (_, stderr) = attached.interrupt();
        lab::until("no tracer", || lab::tracer_of(pid) == 0);
        lab::until("state T", || stopped(&['T']));
        lab::kill("CONT", pid.into());
        lab::until("going on", || stopped(&['S']));
        assert!(stderr.contains("0 dropped"), "{stderr}");
        target.lives();
    });
}

#[test]
fn several_processes() {
    each_backend(|user| {
        if !lab::may_attach(user) {
            return;
        }
        let Some(program) = lab::program("in_flight") else { return };
        for together in [true, false] {
            let (one, two) = (target(user, &program), target(user, &program));
            let (a, b) = (one.pid().to_string(), two.pid().to_string());
            let list = format!("{a},{b}");
            let options: &[&str] = if together { &["-p", &list] } else { &["-p", &a, "-p", &b] };
            let mut attached = attach(user, options);
            attached.wait_for("since attach", 8);
            let (lines, _) = attached.interrupt();
            for pid in [one.pid(), two.pid()] {
                assert!(lines.iter().any(|l| l.tid == pid && l.text.starts_with("read(0")), "{lines:#?}");
            }
            one.lives();
            two.lives();
        }
    });
}

#[test]
fn the_same_process_twice_is_attached_once() {
    each_backend(|user| {
        if !lab::may_attach(user) {
            return;
        }
        let Some(program) = lab::program("in_flight") else { return };
        let target = target(user, &program);
        let pid = target.pid().to_string();
        let mut attached = attach(user, &["-p", &pid, "-p", &pid]);
        attached.wait_for("since attach", 4);
        let (lines, _) = attached.interrupt();
        assert_eq!(lines.iter().filter(|l| l.text.ends_with("since attach>")).count(), 4);
        target.lives();
    });
}

#[test]
fn no_filter_is_left_behind() {
    each_backend(|user| {
        if !lab::may_attach(user) {
            return;
        }
        let Some(program) = lab::program("in_flight") else { return };
        let target = target(user, &program);
        let attached = attach(user, &["-e", "openat", "-p", &target.pid().to_string()]);
        lab::until("the attach", || lab::is_attached(user, attached.running.pid(), target.pid()));
        assert_eq!(
            lab::status_field(target.pid(), "Seccomp").as_deref(),
            lab::status_field(std::process::id(), "Seccomp").as_deref()
        );
        attached.interrupt();
        target.lives();
    });
}

/// A thread that is made while its process is being attached to is attached with its maker, and may not be taken for another
/// tracer's.
#[test]
fn a_process_that_makes_threads_meanwhile_can_be_attached_to() {
    each_backend(|user| {
        if !lab::may_attach(user) {
            return;
        }
        let Some(program) = lab::program("thread_storm") else { return };
        for _ in 0..12 {
            let mut child = lab::as_user(user, &[&program])
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .expect("thread_storm");
            let stdin = child.stdin.take();
            let pid = child.id();
            let running = lab::start_with(child);
            let threads = || std::fs::read_dir(format!("/proc/{pid}/task")).map_or(0, Iterator::count);
            lab::until("threads", || threads() > 1);
            // What the threads do is not shown: nothing would be waited for but text, when the kernel backend brings all of it.
            let mut attached = attach(user, &["-e", "/^clone/", "-p", &pid.to_string()]);
            attached.wait_for("clone", 40);
            let (_, stderr) = attached.interrupt();
            assert!(!stderr.contains("already traced"), "{stderr}");
            lab::until("no tracer", || lab::tracer_of(pid) == 0);
            drop(stdin);
            assert_eq!(running.end().code(), 0);
        }
    });
}
