//! Either of trapline's two processes is killed.

use crate::lab::{self, Running, User, each_ptracer};
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// A command that says when it runs, waits for leave, then makes calls that would fail without their tracer.
const SCRIPT: &str = "echo $$ >pid.new; mv pid.new pid; i=0; while [ ! -e go ] && [ $i -lt 1000 ]; do sleep 0.02; i=$((i+1)); done; \
    cat /etc/passwd >copy && (exec /bin/true) && echo fine >end.new; mv end.new end; exit 6";

struct Case {
    dir: PathBuf,
    running: Running,
    command: u32,
    tracer: u32,
}

fn case(user: User, options: &[&str]) -> Case {
    case_of(user, options, SCRIPT)
}

fn case_of(user: User, options: &[&str], script: &str) -> Case {
    let dir = lab::scratch();
    let args = [&["trace", "-o", "trace"], options, &["sh", "-c", script]].concat();
    let running = lab::start(lab::trapline(user, &args).current_dir(&dir).stderr(Stdio::piped()));
    lab::until("the command's pid", || dir.join("pid").exists());
    let command = std::fs::read_to_string(dir.join("pid")).expect("pid").trim().parse().expect("pid");
    let tracer = lab::tracer_of(command);
    assert_ne!(tracer, 0);
    assert_ne!(tracer, running.pid());
    Case { dir, running, command, tracer }
}

fn gone(pid: u32) -> bool {
    lab::status_field(pid, "State").is_none_or(|s| s.starts_with('Z'))
}

fn says_fine(dir: &Path) {
    lab::until("the command's end", || dir.join("end").exists());
    assert_eq!(std::fs::read_to_string(dir.join("end")).expect("end"), "fine\n");
    assert_eq!(std::fs::read(dir.join("copy")).expect("copy"), std::fs::read("/etc/passwd").expect("passwd"));
}

/// Options with a filter, and without.
const FILTERED: [&[&str]; 5] =
    [&[], &["-e", "openat"], &["-e", "execve,read,clone,wait4"], &["-e", "none"], &["-e", "all", "-yy"]];
const UNFILTERED: [&[&str]; 4] =
    [&["--no-seccomp"], &["--no-seccomp", "-e", "openat"], &["-e", "all", "-yy", "--no-seccomp"], &["-k"]];

#[test]
fn the_command_survives_the_front_end() {
    each_ptracer(|user| {
        for options in FILTERED.iter().chain(&UNFILTERED) {
            let c = case(user, options);
            lab::kill("KILL", c.running.pid().into());
            lab::until("the front end's end", || gone(c.running.pid()));
            std::fs::write(c.dir.join("go"), "").expect("go");
            says_fine(&c.dir);
            lab::until("the command's end", || gone(c.command));
            // Nothing is left to trace, so the tracer ends too.
            lab::until("the tracer's end", || gone(c.tracer));
        }
    });
}

#[test]
fn without_the_front_end_calls_are_as_untraced() {
    each_ptracer(|user| {
        let (Some(children), Some(asks)) = (lab::program("untraced_children"), lab::program("asks_tracer")) else {
            return;
        };
        let untraced = lab::run(&mut lab::as_user(user, &["sh", "-c", &format!("{children}; {asks}")])).out();
        let wait = SCRIPT.split_once("cat ").expect("a wait").0;
        let script = format!("{wait} ({children}; {asks}) >end.new; mv end.new end");
        for options in FILTERED.iter().chain(&UNFILTERED) {
            let c = case_of(user, options, &script);
            lab::kill("KILL", c.running.pid().into());
            lab::until("the front end's end", || gone(c.running.pid()));
            std::fs::write(c.dir.join("go"), "").expect("go");
            lab::until("the command's end", || c.dir.join("end").exists());
            assert_eq!(std::fs::read_to_string(c.dir.join("end")).expect("end"), untraced, "{options:?}");
            lab::until("the tracer's end", || gone(c.tracer));
        }
    });
}

#[test]
fn with_a_filter_the_command_dies_with_its_tracer() {
    each_ptracer(|user| {
        for options in FILTERED {
            let c = case(user, options);
            lab::kill("KILL", c.tracer.into());
            let out = c.running.end();
            assert_eq!(out.code(), 125, "{options:?} {}", out.stderr);
            assert!(out.stderr.contains("tracer process was killed"), "{}", out.stderr);
            assert!(out.stderr.contains("the command was killed with it"), "{}", out.stderr);
            assert!(out.stderr.contains("--no-seccomp"), "{}", out.stderr);
            lab::until("the command's end", || gone(c.command));
            assert!(!c.dir.join("end").exists());
        }
    });
}

#[test]
fn without_a_filter_the_command_outlives_its_tracer() {
    each_ptracer(|user| {
        for options in UNFILTERED {
            let c = case(user, options);
            lab::kill("KILL", c.tracer.into());
            let (dir, command, front) = (c.dir.clone(), c.command, i64::from(c.running.pid()));
            // Ending `Running` would end the command's group, so the front end is only watched here.
            lab::until("the front end's end", || gone(front as u32));
            assert_eq!(lab::tracer_of(command), 0);
            std::fs::write(dir.join("go"), "").expect("go");
            says_fine(&dir);
            let out = c.running.end();
            assert_eq!(out.code(), 125, "{options:?} {}", out.stderr);
            assert!(
                out.stderr.contains("tracer process was killed") && out.stderr.contains("continues untraced"),
                "{}",
                out.stderr
            );
        }
    });
}

#[test]
fn the_tracer_is_deaf_and_apart() {
    each_ptracer(|user| {
        let c = case(user, &["-e", "openat"]);
        for signal in ["INT", "HUP", "TERM"] {
            lab::kill(signal, c.tracer.into());
        }
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", c.tracer)).expect("stat");
        let session = stat.rsplit_once(") ").and_then(|(_, r)| r.split(' ').nth(3).map(str::to_string));
        assert_eq!(session, Some(c.tracer.to_string()), "a session of its own");
        assert_eq!(lab::status_field(c.tracer, "Threads").as_deref(), Some("1"));
        if lab::is_root() || user == User::Me {
            let open: Vec<String> = std::fs::read_dir(format!("/proc/{}/fd", c.tracer))
                .into_iter()
                .flatten()
                .flatten()
                .filter_map(|e| Some(std::fs::read_link(e.path()).ok()?.display().to_string()))
                .filter(|l| !l.contains("memfd") && l != "/dev/null")
                .collect();
            assert!(open.is_empty(), "the front end's descriptors: {open:?}");
        }
        std::fs::write(c.dir.join("go"), "").expect("go");
        says_fine(&c.dir);
        assert_eq!(c.running.end().code(), 6);
    });
}

#[test]
fn a_target_of_p_survives_both() {
    each_ptracer(|user| {
        if !lab::may_attach(user) {
            return;
        }
        for kill_tracer in [true, false] {
            let dir = lab::scratch();
            let target = lab::start(lab::as_user(user, &["sh", "-c", SCRIPT]).current_dir(&dir));
            lab::until("its pid", || dir.join("pid").exists());
            let args = ["trace", "-o", "trace", "-e", "openat", "-p", &target.pid().to_string()];
            let front = lab::start(lab::trapline(user, &args).current_dir(&dir).stderr(Stdio::piped()));
            lab::until("the tracer", || lab::tracer_of(target.pid()) != 0);
            let tracer = lab::tracer_of(target.pid());
            lab::kill("KILL", if kill_tracer { tracer.into() } else { front.pid().into() });
            lab::until("no tracer", || lab::tracer_of(target.pid()) == 0);
            lab::until("the front end's end", || gone(front.pid()));
            lab::until("the tracer's end", || gone(tracer));
            std::fs::write(dir.join("go"), "").expect("go");
            says_fine(&dir);
            assert_eq!(target.end().code(), 6);
            if kill_tracer {
                let out = front.end();
                assert_eq!(out.code(), 125, "{}", out.stderr);
                assert!(out.stderr.contains("tracer process was killed"), "{}", out.stderr);
            }
        }
    });
}

#[test]
fn a_ring_that_says_nonsense_ends_the_trace_and_not_the_command() {
    use std::os::unix::fs::FileExt;
    if !lab::is_root() {
        return lab::skip("root", "needs to write to another process's memory");
    }
    each_ptracer(|user| {
        for options in [&[][..], &["--no-seccomp", "-e", "openat"], &["-e", "openat"]] {
            let mut c = case(user, options);
            let maps = std::fs::read_to_string(format!("/proc/{}/maps", c.tracer)).expect("maps");
            let ring = maps.lines().find(|l| l.contains("trapline-ring")).expect("the ring");
            let base = u64::from_str_radix(ring.split('-').next().expect("an address"), 16).expect("an address");
            let memory = std::fs::OpenOptions::new().write(true).open(format!("/proc/{}/mem", c.tracer)).expect("mem");
            // The first word of it: how much was written. The tracer may write there too, before the front end looks.
            lab::until("the end", || {
                let _ = memory.write_all_at(&u64::MAX.to_le_bytes(), base);
                c.running.child.try_wait().expect("wait").is_some()
            });
            std::fs::write(c.dir.join("go"), "").expect("go");
            says_fine(&c.dir);
            let out = c.running.end();
            assert_eq!(out.code(), 125, "{options:?} {}", out.stderr);
            assert!(out.stderr.contains("the tracer's ring has invalid contents"), "{options:?} {}", out.stderr);
            assert!(!out.stderr.contains(" 0 dropped"), "{}", out.stderr);
        }
    });
}
