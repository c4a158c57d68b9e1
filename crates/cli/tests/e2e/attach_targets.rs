//! Which processes can be attached to, and what is said of the others: each goes on with right results, whatever was tried.

use crate::injected::{has_its_own_text, started};
use crate::lab::{self, Outcome, Running, User};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// `tests/programs/targets.c`.
#[track_caller]
pub fn program() -> Option<String> {
    testkit::compile("gcc", "targets", "targets.c", &["-O1", "-fno-inline", "-pthread"])
}

/// Starts it in one of its modes, under a wrapper.
#[track_caller]
fn begin(user: User, wrapper: &[&str], arguments: &[&str]) -> Option<Running> {
    let program = program()?;
    Some(started(user, &[wrapper, &[&program], arguments].concat()))
}

fn graph(user: User, pid: u32, more: &[&str]) -> Outcome {
    let pid = pid.to_string();
    lab::run(&mut lab::trapline(user, &[&["graph", "-p", &pid, "--as", "functions"], more].concat()))
}

fn tracer(user: User, command: &str, pid: u32) -> Outcome {
    lab::run(&mut lab::trapline(user, &["tracer", command, "-p", &pid.to_string(), "count"]))
}

/// A session that records calls of fib.
#[track_caller]
pub fn records(user: User, pid: u32) -> Outcome {
    let out = graph(user, pid, &["--duration", "0.3"]);
    assert_eq!(out.code(), 0, "{}", out.stderr);
    assert!(out.out().contains(" fib"), "{}{}", out.out(), out.stderr);
    out
}

/// The count of calls of fib, by a tracer.
#[track_caller]
pub fn counts(user: User, pid: u32) {
    let done = |out: Outcome| {
        assert_eq!((out.code(), out.stderr.as_str()), (0, ""), "{}", out.out());
        out.out()
    };
    done(tracer(user, "enable", pid));
    lab::until("fib is counted", || done(tracer(user, "print", pid)).contains(" fib"));
    done(tracer(user, "disable", pid));
}

/// One line says why, of both commands, and the process is not attached to.
#[track_caller]
pub fn refuses(user: User, pid: u32, why: &str) {
    for out in [graph(user, pid, &["--duration", "0.3"]), tracer(user, "enable", pid)] {
        assert_eq!(out.code(), 125, "{why}: {}{}", out.out(), out.stderr);
        assert!(out.stderr.contains(why) && out.stderr.lines().count() == 1, "{why}: {}", out.stderr);
    }
}

/// The process ends when it is asked to, with right results.
#[track_caller]
pub fn goes_on(run: Running, pid: u32) {
    lab::kill("TERM", pid.into());
    let out = run.end();
    assert_eq!((out.code(), out.out()), (0, "right 0\n".into()), "{}", out.stderr);
}

/// Attaches twice, and lets it end.
#[track_caller]
fn works(user: User, wrapper: &[&str], arguments: &[&str]) {
    let Some(run) = begin(user, wrapper, arguments) else { return };
    let pid = run.pid();
    records(user, pid);
    counts(user, pid);
    records(user, pid);
    if wrapper.is_empty() && lab::is_root() {
        has_its_own_text(pid);
    }
    goes_on(run, pid);
}

#[track_caller]
fn is_refused(user: User, by: User, arguments: &[&str], why: &str) {
    let Some(run) = begin(user, &[], arguments) else { return };
    let pid = run.pid();
    refuses(by, pid, why);
    goes_on(run, pid);
}

#[track_caller]
pub fn is_root() -> bool {
    if !lab::is_root() {
        testkit::skip("root", "needs root");
    }
    lab::is_root()
}

#[test]
fn small_stacks_and_limits_that_leave_room_are_no_obstacle() {
    lab::each_attacher(|user| {
        for arguments in [&["stacks"][..], &["fsize"], &["nproc"], &["memlock"], &["as", "80000"]] {
            eprintln!("{arguments:?}");
            works(user, &[], arguments);
        }
    });
}

/// PR_SET_MDWE, as systemd's MemoryDenyWriteExecute sets it.
#[test]
fn a_process_that_may_not_make_code_is_attached_to() {
    lab::each_attacher(|user| {
        let Some(program) = program() else { return };
        let first = lab::run(&mut lab::as_user(user, &["timeout", "1", &program, "mdwe"]));
        match first.code() {
            77 => testkit::skip("kernel:6.3", "no PR_SET_MDWE"),
            _ => works(user, &[], &["mdwe"]),
        }
    });
}

#[test]
fn a_process_at_its_limits_is_refused_and_goes_on() {
    lab::each_attacher(|user| {
        let why = "the process may open no more files (RLIMIT_NOFILE)";
        for files in ["3", "4"] {
            is_refused(user, user, &["nofile", files], why);
        }
        // Enough for a tracer.
        let Some(run) = begin(user, &[], &["nofile", "5"]) else { return };
        let pid = run.pid();
        let out = graph(user, pid, &["--duration", "0.3"]);
        assert!(out.code() == 125 && out.stderr.contains(why), "{}", out.stderr);
        counts(user, pid);
        goes_on(run, pid);
        works(user, &[], &["nofile", "6"]);
        for kilobytes in ["0", "256"] {
            is_refused(user, user, &["as", kilobytes], "the process may map no more memory (RLIMIT_AS)");
        }
        for kilobytes in ["520", "640", "1000", "4000"] {
            let Some(run) = begin(user, &[], &["as", kilobytes]) else { return };
            let out = graph(user, run.pid(), &["--duration", "0.2"]);
            let lines = out.stderr.lines().count();
            let said = ["RLIMIT_AS", "cannot be loaded"].iter().any(|why| out.stderr.contains(why));
            assert!(out.code() == 125 && lines == 1 && said, "{kilobytes}: {}", out.stderr);
            let pid = run.pid();
            goes_on(run, pid);
        }
    });
}

#[test]
fn a_process_without_room_for_thread_local_storage_or_stubs_goes_on() {
    let dir = lab::scratch();
    let source = dir.join("storage.c");
    fs::write(&source, "__thread char big[200]; char *use(void) { return big; }\n").expect("a file");
    let mut libraries = Vec::new();
    for n in 0..16 {
        let library = dir.join(format!("storage{n}.so"));
        let flags = ["-shared", "-fPIC", "-O1", "-ftls-model=initial-exec", "-o"];
        let made = Command::new("gcc").args(flags).arg(&library).arg(&source).status();
        if !made.is_ok_and(|s| s.success()) {
            return testkit::skip("package:gcc", "no compiler");
        }
        libraries.push(library.display().to_string());
    }
    lab::each_attacher(|user| {
        let arguments: Vec<&str> = ["tls"].into_iter().chain(libraries.iter().map(String::as_str)).collect();
        is_refused(user, user, &arguments, "static TLS block (start the command under trapline)");
        let Some(run) = begin(user, &[], &["full"]) else { return };
        let out = graph(user, run.pid(), &["--duration", "0.2"]);
        assert!(out.stderr.contains("there is no room for stubs near it"), "{}", out.stderr);
        let pid = run.pid();
        goes_on(run, pid);
    });
}

/// Filters that end the process for a call, and filters that have it fail.
#[test]
fn seccomp_filters_are_run_before_anything_is_done() {
    if !is_root() {
        return;
    }
    for call in ["socket", "mmap", "mmap-exec"] {
        let name = call.trim_end_matches("-exec");
        is_refused(User::Me, User::Me, &["kill", call], &format!("its seccomp filter may end the process for {name}"));
        is_refused(User::Me, User::Me, &["errno", call], &format!("its seccomp filter refuses {name}"));
    }
    for (call, name) in [("mprotect-exec", "mprotect"), ("memfd_create", "memfd_create"), ("membarrier", "membarrier")]
    {
        is_refused(User::Me, User::Me, &["kill", call], &format!("its seccomp filter may end the process for {name}"));
        works(User::Me, &[], &["errno", call]);
    }
    is_refused(User::Me, User::Me, &["allow-list"], "its seccomp filter may end the process for");
    // A filter of one thread only.
    is_refused(User::Me, User::Me, &["strict-thread"], "its seccomp filter may end the process for socket");
    for action in ["kill", "errno"] {
        works(User::Me, &[], &[action, "nothing"]);
    }
}

#[test]
fn an_ordinary_user_cannot_read_filters_and_harms_nothing() {
    if !is_root() {
        return;
    }
    for arguments in [["kill", "socket"], ["kill", "mmap"], ["errno", "nothing"]] {
        is_refused(User::Nobody, User::Nobody, &arguments, "only root may read it");
        let Some(run) = begin(User::Nobody, &[], &arguments) else { return };
        let pid = run.pid();
        if arguments[1] == "nothing" {
            records(User::Me, pid);
        }
        goes_on(run, pid);
    }
}

/// The agent is not called when a filter would end the process for that.
#[test]
fn a_filter_that_comes_during_a_session_is_run_before_its_end() {
    lab::each_attacher(|user| {
        let Some(run) = begin(user, &[], &["filters"]) else { return };
        let pid = run.pid();
        let dir = lab::scratch().join("trace").display().to_string();
        let text = pid.to_string();
        let arguments = ["graph", "-q", "-p", &text, "-o", &dir];
        let session = lab::start(lab::trapline(user, &arguments).stderr(Stdio::piped()));
        lab::until("it is patched", || is_patched(pid));
        std::thread::sleep(std::time::Duration::from_millis(300));
        lab::kill("USR1", pid.into());
        lab::until("it has a filter", || lab::status_field(pid, "Seccomp").as_deref() == Some("2"));
        lab::kill("INT", session.pid().into());
        let out = session.end();
        assert!(out.stderr.contains("the jumps in them stay until it ends"), "{}", out.stderr);
        refuses(user, pid, "its seccomp filter");
        goes_on(run, pid);
    });
}

/// Whether the agent is there, and nobody traces the process by ptrace any more.
fn is_patched(pid: u32) -> bool {
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
    maps.contains("trapline") && lab::tracer_of(pid) == 0 && maps.matches("r-xp 00000000 00:00").count() > 1
}

// Slow: the child lives for 20 s, longer than trapline waits.
#[test]
fn a_child_of_vfork_is_waited_for() {
    lab::each_attacher(|user| {
        let Some(run) = begin(user, &[], &["waits-in-vfork", "2"]) else { return };
        let pid = run.pid();
        records(user, pid);
        goes_on(run, pid);
    });
    let Some(run) = begin(User::Me, &[], &["waits-in-vfork", "20"]) else { return };
    let pid = run.pid();
    refuses(User::Me, pid, "a child that it has made by vfork(2) runs in its memory");
    goes_on(run, pid);
}

#[test]
fn a_stopped_process_stays_stopped_and_goes_on_traced() {
    lab::each_attacher(|user| {
        let Some(run) = begin(user, &[], &["plain"]) else { return };
        let pid = run.pid();
        let state = |of: &str| lab::status_field(pid, "State").is_some_and(|s| s.starts_with(of));
        lab::kill("STOP", pid.into());
        lab::until("it is stopped", || state("T"));
        let out = graph(user, pid, &["--duration", "0.2"]);
        assert_eq!(out.code(), 0, "{}", out.stderr);
        lab::until("it is stopped again", || state("T"));
        let session = lab::start(
            lab::trapline(user, &["graph", "-p", &pid.to_string(), "--duration", "2", "--as", "functions"])
                .stdout(Stdio::piped())
                .stderr(Stdio::piped()),
        );
        lab::until("it is patched", || is_patched(pid));
        lab::until("it is still stopped", || state("T"));
        lab::kill("CONT", pid.into());
        let out = session.end();
        assert!(out.code() == 0 && out.out().contains(" fib"), "{}{}", out.out(), out.stderr);
        goes_on(run, pid);
    });
}

#[test]
fn a_frozen_process_is_refused_and_stays_whole() {
    if !is_root() {
        return;
    }
    let kinds = [
        ("/sys/fs/cgroup/freezer", "freezer.state", "FROZEN", "THAWED"),
        ("/sys/fs/cgroup/unified", "cgroup.freeze", "1", "0"),
        ("/sys/fs/cgroup", "cgroup.freeze", "1", "0"),
    ];
    let mut done = false;
    for (mount, file, on, off) in kinds {
        let group = PathBuf::from(format!("{mount}/trapline-test-{}", std::process::id()));
        if fs::create_dir(&group).is_err() || !group.join(file).exists() {
            let _ = fs::remove_dir(&group);
            continue;
        }
        let Some(run) = begin(User::Me, &[], &["plain"]) else { return };
        let pid = run.pid();
        let put = |file: &str, what: &str| fs::write(group.join(file), what);
        let frozen = put("cgroup.procs", &pid.to_string()).and_then(|()| put(file, on)).is_ok();
        std::thread::sleep(std::time::Duration::from_millis(300));
        let said = frozen.then(|| graph(User::Me, pid, &["--duration", "0.2"]));
        let thawed = put(file, off);
        if let Some(out) = said {
            assert!(thawed.is_ok() && out.code() == 125, "{}", out.stderr);
            assert!(out.stderr.contains("the process is frozen") && out.stderr.lines().count() == 1, "{}", out.stderr);
            records(User::Me, pid);
            done = true;
        }
        goes_on(run, pid);
        lab::until("the group is empty", || fs::remove_dir(&group).is_ok());
    }
    if !done {
        testkit::skip("kernel:freezer", "no cgroup can be made that freezes");
    }
}

#[test]
fn processes_that_another_one_traces_are_refused_with_its_name() {
    if !lab::has("strace") {
        return testkit::skip("package:strace", "no strace");
    }
    let Some(run) = begin(User::Me, &[], &["stacks"]) else { return };
    let pid = run.pid();
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).expect("its threads").flatten();
    let last = tasks.filter_map(|t| t.file_name().to_str()?.parse::<u32>().ok()).max().expect("a thread");
    // A thread is not the process, and is enough for the other tracer.
    refuses(User::Me, last, &format!("this is a thread of process {pid} (-p {pid} traces all its threads)"));
    for traced in [pid, last] {
        let strace = ["strace", "-o", "/dev/null", "-p", &traced.to_string()];
        let other = lab::start(lab::as_user(User::Me, &strace).stderr(Stdio::null()));
        lab::until("strace is there", || lab::tracer_of(traced) != 0);
        refuses(User::Me, pid, &format!("already traced by process {} (strace)", other.pid()));
        lab::kill("INT", other.pid().into());
        let _ = other.end();
        lab::until("strace has gone", || lab::tracer_of(traced) == 0);
    }
    records(User::Me, pid);
    goes_on(run, pid);
}

#[test]
fn undumpable_and_privileged_processes_are_for_root() {
    if !is_root() {
        return;
    }
    works(User::Me, &[], &["undumpable"]);
    is_refused(User::Nobody, User::Nobody, &["undumpable"], "it has made itself undumpable");
    let Some(program) = program() else { return };
    let dir = lab::scratch();
    let copy = |name: &str| {
        let path = dir.join(name);
        fs::copy(&program, &path).expect("a copy");
        testkit::open_to_all(&path, 0o755);
        path.display().to_string()
    };
    let setuid = copy("setuid");
    testkit::open_to_all(Path::new(&setuid), 0o4755);
    let capable = copy("capable");
    let set = Command::new("setcap").args(["cap_net_raw+ep", &capable]).status().is_ok_and(|s| s.success());
    if !set {
        testkit::skip("package:setcap", "no capabilities for files");
    }
    for (path, why, there) in [(setuid, "it has changed its user", true), (capable, "it has capabilities", set)] {
        if !there {
            continue;
        }
        let run = started(User::Nobody, &[&path, "plain"]);
        let pid = run.pid();
        if why.contains("user") && lab::status_field(pid, "Uid").is_some_and(|u| u.starts_with("65534\t65534")) {
            testkit::skip("mount:suid", "the tests' directory is mounted with nosuid");
            continue;
        }
        refuses(User::Nobody, pid, why);
        records(User::Me, pid);
        goes_on(run, pid);
    }
    // Another user's.
    is_refused(User::Me, User::Nobody, &["plain"], "belongs to another user");
}

#[test]
fn what_is_no_process_of_a_64_bit_program_is_said() {
    let mut child = Command::new("true").spawn().expect("true");
    let pid = child.id();
    lab::until("it is a zombie", || lab::status_field(pid, "State").is_some_and(|s| s.starts_with('Z')));
    refuses(User::Me, pid, "the process has ended");
    child.wait().expect("its status");
    if lab::is_root() {
        refuses(User::Me, 2, "a kernel thread");
    }
    if lab::has("python3") {
        let script = "import threading, time, ctypes\n\
            threading.Thread(target=lambda: (time.sleep(20))).start()\nprint('begun', flush=True)\n\
            ctypes.CDLL(None).pthread_exit(0)";
        let run = started(User::Me, &["python3", "-c", script]);
        let pid = run.pid();
        lab::until("its first thread ends", || lab::status_field(pid, "State").is_some_and(|s| s.starts_with('Z')));
        refuses(User::Me, pid, "its first thread has ended");
    }
    let dir = lab::scratch();
    let (source, program) = (dir.join("small.S"), dir.join("small").display().to_string());
    let text = ".code32\n.globl _start\n_start: mov $4,%eax\nmov $1,%ebx\nmov $text,%ecx\nmov $6,%edx\nint $0x80\n\
        mov $162,%eax\nmov $time,%ebx\nxor %ecx,%ecx\nint $0x80\nmov $1,%eax\nmov $7,%ebx\nint $0x80\n\
        .data\ntext: .ascii \"begun\\n\"\ntime: .long 5, 0\n";
    fs::write(&source, text).expect("a file");
    let flags = ["-m32", "-nostdlib", "-static", "-o", &program];
    if !Command::new("gcc").args(flags).arg(&source).stderr(Stdio::null()).status().is_ok_and(|s| s.success()) {
        return testkit::skip("package:gcc", "no programs of 32 bits");
    }
    let run = started(User::Me, &[&program]);
    refuses(User::Me, run.pid(), "the process runs 32-bit code");
    assert_eq!(run.end().code(), 7);
}

/// A library for `loads`.
fn late() -> Option<String> {
    let dir = lab::scratch();
    let (source, library) = (dir.join("late.c"), dir.join("late.so").display().to_string());
    fs::write(&source, "long in_library(long n) { return n + 1; }\n").ok()?;
    let flags = ["-shared", "-fPIC", "-O1", "-o", &library];
    Command::new("gcc").args(flags).arg(&source).status().ok()?.success().then_some(library)
}

#[test]
fn modules_that_are_loaded_during_a_session_are_patched() {
    let Some(library) = late() else { return testkit::skip("package:gcc", "no compiler") };
    lab::each_attacher(|user| {
        let Some(run) = begin(user, &[], &["loads", &library]) else { return };
        let pid = run.pid();
        let dir = lab::scratch().join("trace").display().to_string();
        let arguments = ["graph", "-q", "--lib", "-p", &pid.to_string(), "-o", &dir];
        let session = lab::start(lab::trapline(user, &arguments).stderr(Stdio::piped()));
        lab::until("it is patched", || is_patched(pid));
        std::thread::sleep(std::time::Duration::from_millis(300));
        lab::kill("USR1", pid.into());
        lab::until("it is loaded", || {
            fs::read_to_string(format!("/proc/{pid}/maps")).is_ok_and(|maps| maps.contains("late.so"))
        });
        std::thread::sleep(std::time::Duration::from_millis(300));
        lab::kill("INT", session.pid().into());
        let out = session.end();
        assert_eq!(out.code(), 0, "{}", out.stderr);
        let shown = lab::run(&mut lab::trapline(user, &["report", &dir, "--as", "functions"]));
        let line = shown.out().lines().find(|l| l.ends_with(" in_library")).map(str::to_string);
        assert!(line.is_some_and(|l| l.split_whitespace().any(|w| w == "100")), "{}{}", shown.out(), shown.stderr);
        goes_on(run, pid);
    });
}

#[test]
fn children_and_what_they_execute_are_traced_or_counted_as_gaps() {
    let Some(program) = program() else { return };
    lab::each_attacher(|user| {
        let session = |arguments: &[&str]| {
            let run = begin(user, &[], arguments).expect("compiled");
            let pid = run.pid();
            let out = graph(user, pid, &["--duration", "1"]);
            assert_eq!(out.code(), 0, "{}", out.stderr);
            goes_on(run, pid);
            out
        };
        let has = |out: &Outcome, name: &str| out.out().lines().any(|l| l.ends_with(&format!(" {name}")));
        let forks = session(&["forks"]);
        assert!(has(&forks, "forks") && has(&forks, "in_child"), "{}{}", forks.out(), forks.stderr);
        let executes = session(&["executes", &program, "once"]);
        assert!(has(&executes, "once") && !executes.stderr.contains("not traced"), "{}", executes.stderr);
        if let Some(fixed) = testkit::compile("gcc", "targets_static", "targets.c", &["-O1", "-static", "-pthread"]) {
            let gap = session(&["executes", &fixed, "once"]);
            assert!(gap.stderr.contains("a static program loads no agent"), "{}", gap.stderr);
            assert!(has(&gap, "before_exec"), "{}", gap.out());
        }
    });
}

/// Tracers have no trapline beside them: children count for themselves, and later modules have no tracer until it is enabled again.
#[test]
fn tracers_stay_with_the_process_that_has_them() {
    let (Some(program), Some(library)) = (program(), late()) else { return };
    for arguments in [&["loads", &library][..], &["forks"], &["executes", &program, "once"]] {
        let Some(run) = begin(User::Me, &[], arguments) else { return };
        let pid = run.pid();
        counts(User::Me, pid);
        let enabled = tracer(User::Me, "enable", pid);
        assert_eq!(enabled.code(), 0, "{}", enabled.stderr);
        lab::kill("USR1", pid.into());
        std::thread::sleep(std::time::Duration::from_millis(500));
        let out = tracer(User::Me, "print", pid);
        assert!(out.out().contains(" fib") && !out.out().contains("in_library"), "{}{}", out.out(), out.stderr);
        // It ends with a tracer.
        goes_on(run, pid);
    }
}
