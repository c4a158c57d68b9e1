//! The kernel backend: the same calls as the ptrace backend shows, exact counts, and nothing left behind.
//!
//! Calls and ends are compared; signals and stops, too, where their moment does not depend on other processes.

use crate::lab::{self, User};
use crate::trace::{Line, Trace, on_stderr, trace};
use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::OwnedFd;
use std::process::Stdio;
use std::time::Duration;
use sys::bpf::info::{self, Object};

pub use crate::lab::kernel_backend_is_possible as possible;

pub fn kernel(options: &[&str], command: &[&str]) -> Trace {
    trace(User::Me, &[&["--backend", "kernel"], options].concat(), command)
}

pub fn ptrace(options: &[&str], command: &[&str]) -> Trace {
    trace(User::Me, &[&["--backend", "ptrace"], options].concat(), command)
}

/// The shown calls and ends, by thread, without what differs between two runs of the same program.
pub fn threads_of(t: &Trace, rules: &Rules) -> Vec<Vec<String>> {
    let mut pids: BTreeSet<String> = t.lines.iter().map(|l| l.tid.to_string()).collect();
    let asked = t.lines.iter().filter(|l| ["getpid", "getppid", "gettid", "setsid"].iter().any(|c| l.is(c)));
    pids.extend(asked.map(|l| l.result().to_string()));
    let mut threads: BTreeMap<u32, Vec<String>> = BTreeMap::new();
    let wanted = |l: &&Line| l.is_call() || l.text.starts_with("+++ ") || rules.signals && l.text.starts_with("--- ");
    for l in t.lines.iter().filter(wanted) {
        let name = l.text.split('(').next().unwrap_or_default();
        let restart = rules.restarts && l.result().starts_with("? ERESTART");
        if rules.left_out.contains(&name) || restart || reads_a_state(l) {
            continue;
        }
        // Random bytes, and ids of processes that are not traced.
        let apart = ["getrandom", "getpgid", "getpgrp", "getsid", "getppid"].contains(&name);
        let line = if apart || rules.only_names.contains(&name) { name.to_string() } else { plain(&l.text, &pids) };
        threads.entry(l.tid).or_default().push(line);
    }
    let mut threads: Vec<Vec<String>> = threads.into_values().collect();
    if rules.any_order {
        threads.iter_mut().for_each(|t| t.sort());
    }
    threads.sort();
    threads
}

/// Whether a line is the reading of a thread's state (/proc/TID/stat), which a program polls for.
fn reads_a_state(line: &Line) -> bool {
    let text = line.is("read").then(|| line.text.split_once('"')).flatten();
    text.is_some_and(|(_, t)| {
        t.starts_with(|c: char| c.is_ascii_digit()) && {
            t.trim_start_matches(|c: char| c.is_ascii_digit()).starts_with(" (")
        }
    })
}

/// What is not compared.
#[derive(Default)]
pub struct Rules {
    /// Calls whose number depends on when the program was scheduled.
    pub left_out: &'static [&'static str],
    /// Calls that tell about the machine or the moment.
    pub only_names: &'static [&'static str],
    /// The order within a thread depends on when other threads run.
    pub any_order: bool,
    /// Calls that a signal interrupts and the kernel restarts: how often depends on when it comes.
    pub restarts: bool,
    /// Signals and stops are compared too.
    pub signals: bool,
}

const PORT: &str = "htons(";

/// Numbers behind these names are times or places that differ each time.
const VOLATILE: [&str; 7] = ["tv_sec=", "tv_nsec=", "tv_usec=", "st_size=", "l_pid=", "cpu_id=", PORT];

/// A line without pids, addresses, times and other large numbers.
fn plain(line: &str, pids: &BTreeSet<String>) -> String {
    let mut out = String::new();
    let mut rest = line;
    while let Some(c) = rest.chars().next() {
        let word = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
        if word == 0 {
            out.push(c);
            rest = &rest[c.len_utf8()..];
            continue;
        }
        let (token, after) = rest.split_at(word);
        let digits = token.bytes().all(|b| b.is_ascii_digit());
        let hex = token.strip_prefix("0x").is_some_and(|h| h.len() > 4);
        let volatile = VOLATILE.iter().any(|v| out.ends_with(v));
        // Of thousands of pids some are sizes too: then no number of three digits tells anything.
        let large = token.len() > if pids.len() > 64 { 2 } else { 4 };
        let vague = hex || digits && (volatile || large || pids.contains(token));
        out.push_str(if vague { "N" } else { token });
        rest = after;
    }
    // Dates of files, and the columns before the result.
    out.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The first thread that is different, and its first different line.
pub fn difference(a: &[Vec<String>], b: &[Vec<String>]) -> Option<String> {
    if a == b {
        return None;
    }
    let only = |x: &[Vec<String>], y: &[Vec<String>]| x.iter().find(|t| !y.contains(t)).cloned().unwrap_or_default();
    let (x, y) = (only(a, b), only(b, a));
    let at = x.iter().zip(&y).position(|(x, y)| x != y).unwrap_or(x.len().min(y.len()));
    Some(format!(
        "{} and {} threads; line {at}:\nkernel: {}\nptrace: {}\nbefore: {}",
        a.len(),
        b.len(),
        x.get(at).map_or("(none)", |l| l),
        y.get(at).map_or("(none)", |l| l),
        x.get(at.wrapping_sub(1)).map_or("", |l| l),
    ))
}

/// Traces a program with both backends and wants equal calls, ends and exit statuses. Where a program's calls depend on the
/// moment now and then, another attempt is made; a systematic difference shows in each.
#[track_caller]
pub fn same(options: &[&str], command: &[&str], rules: &Rules) {
    let mut last = String::new();
    for _ in 0..3 {
        let (k, p) = (kernel(options, command), ptrace(options, command));
        assert_eq!(
            (k.outcome.status, k.outcome.out()),
            (p.outcome.status, p.outcome.out()),
            "{command:?}\n{}",
            k.text()
        );
        assert!(k.outcome.stderr.contains(" 0 dropped, kernel backend"), "{}", k.outcome.stderr);
        match difference(&threads_of(&k, rules), &threads_of(&p, rules)) {
            None => return,
            Some(d) => last = d,
        }
    }
    panic!("{command:?} {options:?}: {last}");
}

/// What polling for another thread's state takes.
pub const POLLING: &[&str] =
    &["openat", "read", "close", "nanosleep", "clock_nanosleep", "newfstatat", "fstat", "lseek"];

#[test]
fn numbers_are_compared_only_where_they_can_be_equal() {
    let pids = BTreeSet::from(["77".to_string()]);
    assert_eq!(plain("wait4(77, 0x7ffe1234, 0, NULL)  = 77", &pids), "wait4(N, N, 0, NULL) = N");
    assert_eq!(plain("x({tv_nsec=12}, 12, 0x1, 0x12345)", &pids), "x({tv_nsec=N}, 12, 0x1, N)");
}

macro_rules! same {
    ($($test:ident: $program:literal $args:expr, $rules:expr;)*) => {$(
        #[test]
        fn $test() {
            if !possible() {
                return;
            }
            let Some(program) = lab::program($program) else { return };
            let args: &[&str] = &$args;
            same(&[], &[&[program.as_str()][..], args].concat(), &$rules);
        }
    )*};
}

// restart_syscall: under ptrace a SIGCONT interrupts a call once more.
same! {
    threads_are_equal: "threads" ["100"], Rules { left_out: &["futex"], ..Rules::default() };
    fork_storm_is_equal: "forkstorm" ["300"], Rules { any_order: true, restarts: true, ..Rules::default() };
    large_fork_storm_is_equal: "forkstorm" ["3000"], Rules { any_order: true, restarts: true, ..Rules::default() };
    vfork_is_equal: "vfork_exec" ["/bin/sh", "-c", "exit 9"], Rules::default();
    exec_from_a_thread_is_equal: "exec_from_thread" ["/bin/sh", "-c", "exit 4"],
        Rules { left_out: POLLING, any_order: true, ..Rules::default() };
    signal_calls_are_equal: "signals" [], Rules::default();
    interrupted_calls_are_equal: "eintr" [], Rules { left_out: &["restart_syscall", "clock_nanosleep", "openat", "close", "fstat",
        "newfstatat", "lseek"], any_order: true, restarts: true, ..Rules::default() };
    bad_pointers_are_equal: "bad_pointers" [], Rules::default();
    huge_iovecs_are_equal: "huge_iov" [], Rules::default();
    descriptors_are_equal: "fds" [], Rules::default();
    bad_numbers_are_equal: "bad_number" [], Rules::default();
    calls_cut_off_by_the_end_are_equal: "exit_group_in_flight" [], Rules { left_out: POLLING, any_order: true, ..Rules::default() };
    network_families_are_equal: "families_net" [],
        Rules { only_names: &["timer_delete", "timer_create", "read", "recvfrom"], ..Rules::default() };
}

#[test]
fn names_are_equal() {
    if !possible() {
        return;
    }
    let Some(program) = lab::program("names") else { return };
    let dir = lab::scratch();
    same(&[], &[&program, dir.to_str().expect("UTF-8")], &Rules::default());
    same(&["-s", "300"], &[&program, dir.to_str().expect("UTF-8")], &Rules::default());
    // /lib is a link: the name behind a descriptor is that of the file.
    let out = on_stderr(User::Me, &["--backend", "kernel", "-y", "-e", "openat", "cat", "/etc/hostname"]);
    assert!(out.stderr.contains("\"/etc/hostname\", O_RDONLY) = 3</etc/hostname>"), "{}", out.stderr);
}

/// At the end of memory, and behind it, too. The ids of the queues differ.
#[test]
fn texts_of_queues_are_equal() {
    if !possible() {
        return;
    }
    let Some(program) = lab::program("messages") else { return };
    for options in
        [&["-e", "msgsnd,msgrcv"][..], &["-e", "msgsnd,msgrcv", "-s", "3"], &["-e", "msgsnd,msgrcv", "-s", "0"]]
    {
        let lines = |t: Trace| {
            let calls = t.lines.iter().filter(|l| l.text.starts_with("msg"));
            let texts = calls.filter_map(|l| Some(plain(l.text.split_once(',')?.1, &BTreeSet::new())));
            texts.collect::<Vec<_>>()
        };
        let (ptrace, kernel) = (lines(ptrace(options, &[&program])), lines(kernel(options, &[&program])));
        assert!(ptrace.len() == 8 * 16 && ptrace == kernel, "{options:?} {ptrace:?} {kernel:?}");
    }
}

#[test]
fn families_are_equal() {
    if !possible() {
        return;
    }
    let Some(program) = lab::program("families") else { return };
    let dir = lab::scratch();
    let rules = Rules {
        only_names: &[
            "sysinfo",
            "getrusage",
            "times",
            "statfs",
            "shmget",
            "semget",
            "msgget",
            "shmat",
            "shmctl",
            "semctl",
            "msgctl",
            "semop",
            "semtimedop",
            "msgsnd",
            "msgrcv",
            "shmdt",
        ],
        ..Rules::default()
    };
    same(&[], &[&program, dir.to_str().expect("UTF-8")], &rules);
}

#[test]
fn calls_of_the_32_bit_table_are_equal() {
    if !possible() {
        return;
    }
    let Some(program) = lab::program("ia32") else { return };
    if lab::run(&mut lab::as_user(User::Me, &[&program])).code() == 77 {
        return lab::skip("kernel:IA32_EMULATION", "no 32-bit calls on this kernel");
    }
    same(&[], &[&program], &Rules::default());
    kernel(&["-e", "write"], &[&program]).lacks("@i386");
}

#[test]
fn exit_statuses_are_those_of_the_command() {
    if !possible() {
        return;
    }
    for (script, code) in [("exit 0", 0), ("exit 77", 77), ("kill -TERM $$", 143), ("kill -KILL $$", 137)] {
        let t = kernel(&[], &["sh", "-c", script]);
        assert_eq!(t.outcome.code(), code, "{script}: {}", t.text());
    }
    for (command, code, word) in [("no-such-command-here", 127, "not found"), ("/etc/passwd", 126, "permission denied")]
    {
        let out = on_stderr(User::Me, &["--backend", "kernel", command]);
        assert_eq!(out.code(), code, "{}", out.stderr);
        assert!(out.stderr.contains(word), "{}", out.stderr);
    }
}

#[test]
fn calls_that_change_their_own_memory_are_shown_with_arguments() {
    if !possible() {
        return;
    }
    let (Some(signals), Some(threads)) = (lab::program("signals"), lab::program("threads")) else { return };
    let t = kernel(&[], &["/bin/sh", "-c", "exec /bin/true first second"]);
    t.one("execve(\"/bin/sh\", [\"/bin/sh\", \"-c\", \"exec /bin/true first second\"], 0x");
    let exec = t.one("execve(\"/bin/true\", [\"/bin/true\", \"first\", \"second\"], 0x");
    assert!(exec.text.contains(" vars */)") && exec.result() == "0", "{}", exec.text);
    let t = kernel(&["-e", "rt_sigreturn"], &[&signals]);
    // Four handlers, and three of a signal that was blocked three times.
    assert_eq!(t.calls("rt_sigreturn").len(), 7, "{}", t.text());
    assert!(t.calls("rt_sigreturn").iter().all(|l| l.text.starts_with("rt_sigreturn({mask=[")), "{}", t.text());
    let t = kernel(&["-e", "clone,clone3"], &[&threads, "1"]);
    let clones: Vec<_> = t.lines.iter().filter(|l| l.is("clone3") || l.is("clone")).collect();
    assert_eq!(clones.len(), 8, "{}", t.text());
    assert!(clones.iter().all(|l| l.text.contains("CLONE_VM|CLONE_FS|CLONE_FILES")), "{}", t.text());
    assert!(
        clones.iter().all(|l| l.text.contains(&format!("parent_tid=[{}]", l.result().split(' ').next().unwrap_or("")))
            || l.is("clone3") && l.text.contains("=> {parent_tid=")),
        "{}",
        t.text()
    );
}

#[test]
fn a_path_in_a_page_that_is_not_resident() {
    if !possible() {
        return;
    }
    let Some(program) = lab::program("nonresident") else { return };
    let dir = lab::scratch();
    for options in [&["-e", "openat"][..], &[]] {
        let t = kernel(options, &[&program, dir.to_str().expect("UTF-8")]);
        assert_eq!(t.outcome.code(), 0, "{}", t.text());
        for path in ["/fresh/mapping", "/dropped/page", "/across/two/pages"] {
            t.one(&format!("openat(AT_FDCWD, \"{path}\", O_RDONLY) = -1 ENOENT"));
        }
    }
}

#[test]
fn sixty_four_threads_have_all_their_calls() {
    if !possible() {
        return;
    }
    let Some(program) = lab::program("threads") else { return };
    let script = format!("for i in 1 2 3 4 5 6 7 8; do {program} 100 & done; wait");
    for options in [&["-e", "getppid,nanosleep"][..], &[]] {
        let t = kernel(options, &["sh", "-c", &script]);
        assert!(t.outcome.stderr.contains(" 0 dropped, "), "{}", t.outcome.stderr);
        for name in ["getppid", "nanosleep"] {
            let mut by_thread: BTreeMap<u32, usize> = BTreeMap::new();
            for l in t.calls(name) {
                *by_thread.entry(l.tid).or_default() += 1;
            }
            by_thread.retain(|_, n| *n >= 100);
            assert_eq!(by_thread.values().copied().collect::<Vec<_>>(), [100; 64], "{name} {options:?}");
        }
    }
}

#[test]
fn ten_thousand_processes_are_all_seen() {
    const N: usize = 10_000;
    if !possible() {
        return;
    }
    let Some(program) = lab::program("forkstorm") else { return };
    let t = kernel(&["-e", "getppid,exit_group"], &[&program, &N.to_string()]);
    assert_eq!((t.outcome.code(), t.outcome.out()), (0, format!("{N}\n")));
    assert!(t.outcome.stderr.contains(" 0 dropped, "), "{}", t.outcome.stderr);
    let of = |name: &str| t.calls(name).iter().map(|l| l.tid).collect::<Vec<_>>();
    assert_eq!((of("getppid").len(), of("exit_group").len()), (N, N + 1));
    assert_eq!(t.with("+++ exited with").len(), N + 1);
}

/// events, bookkeeping and dropped of `--stats`.
fn counts(backend: &str, options: &[&str], command: &[&str]) -> (u64, u64, u64) {
    let file = lab::scratch().join("stats").display().to_string();
    let t = trace(User::Me, &[&["--backend", backend, "--stats", &file], options].concat(), command);
    assert_eq!(t.outcome.code(), 0, "{}", t.outcome.stderr);
    let text = std::fs::read_to_string(file).expect("statistics");
    let stats: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let number = |name: &str| stats[name].as_u64().unwrap_or_else(|| panic!("{name}: {text}"));
    let shown = t.lines.iter().filter(|l| l.is_call()).count() as u64;
    assert_eq!(number("events"), shown, "{text}");
    let own = number("bookkeeping") + number("bookkeeping_dropped");
    (number("events"), own, number("dropped"))
}

#[test]
fn a_full_ring_is_counted_exactly() {
    if !possible() {
        return;
    }
    let Some(program) = lab::program("threads") else { return };
    let dd = ["dd", "if=/dev/zero", "of=/dev/null", "bs=1", "count=30000", "status=none"];
    for (options, command) in
        [(["-e", "getppid"], &[&program[..], "2000"][..]), (["-e", "read,write"], &dd), (["-e", "all"], &dd)]
    {
        let (made, _, lost) = counts("ptrace", &options, command);
        assert_eq!(lost, 0);
        let roomy = counts("kernel", &options, command);
        assert_eq!((roomy.0, roomy.2), (made, 0), "{command:?}: shown and dropped");
        // A ring of a page: what becomes of tasks is dropped and counted too, but not as calls.
        let mut dropped = 0;
        // The drain thread has a real-time priority: it may keep up for once.
        for _ in 0..20 {
            let full = counts("kernel", &[&options[..], &["--buffer", "4096"]].concat(), command);
            assert_eq!((full.0 + full.2, full.1), (made, roomy.1), "{command:?}: {full:?}");
            dropped += full.2;
            if dropped > 0 {
                break;
            }
        }
        assert!(dropped > 0, "{command:?}: nothing was dropped, the test shows nothing");
    }
}

#[test]
fn a_full_ring_cannot_block() {
    if !possible() {
        return;
    }
    let out = on_stderr(User::Me, &["--backend", "kernel", "--on-full", "block", "true"]);
    assert_eq!((out.code(), out.stderr.lines().count()), (2, 1), "{}", out.stderr);
    assert!(out.stderr.contains("--on-full") && out.stderr.contains("ptrace"), "{}", out.stderr);
}

#[test]
fn without_rights_there_is_one_clear_line() {
    if lab::is_root() && !lab::has("setpriv") {
        return lab::skip("unprivileged", "no setpriv to become nobody");
    }
    let user = if lab::is_root() { User::Nobody } else { User::Me };
    let out = on_stderr(user, &["--backend", "kernel", "true"]);
    assert_eq!((out.code(), out.stderr.lines().count()), (125, 1), "{}", out.stderr);
    let needed = if lab::paranoid() > 2 { "kernel.perf_event_paranoid" } else { "CAP_BPF" };
    for word in ["trapline: ", "root", needed, "--backend ptrace"] {
        assert!(out.stderr.contains(word), "no {word} in: {}", out.stderr);
    }
}

/// The programs, maps and links of trapline's on this machine.
pub fn objects() -> BTreeSet<(&'static str, u32)> {
    let mut found = BTreeSet::new();
    // What ends between listing and opening is not there.
    let each = |object: Object, look: &mut dyn FnMut(u32, OwnedFd)| {
        for id in info::ids(object).expect("bpf(2)") {
            if let Ok(fd) = info::by_id(object, id) {
                look(id, fd);
            }
        }
    };
    let ours = |name: &str| name.starts_with("trapline_");
    let mut programs = BTreeSet::new();
    each(Object::Program, &mut |id, fd| {
        if info::program(&fd).is_ok_and(|p| ours(&p.name)) {
            programs.insert(id);
        }
    });
    each(Object::Map, &mut |id, fd| {
        if info::map(&fd).is_ok_and(|m| ours(&m.name)) {
            found.insert(("map", id));
        }
    });
    each(Object::Link, &mut |id, fd| {
        if info::link(&fd).is_ok_and(|l| programs.contains(&l.program)) {
            found.insert(("link", id));
        }
    });
    found.extend(programs.into_iter().map(|id| ("program", id)));
    found
}

/// What the command of the next test does: it says when it runs, waits for leave, makes some calls, says that all went well.
const SCRIPT: &str = "echo $$ >pid.new; mv pid.new pid; i=0; while [ ! -e go ] && [ $i -lt 1000 ]; do sleep 0.02; i=$((i+1)); done; \
    cat /etc/passwd >copy && (exec /bin/true) && echo fine >end.new; mv end.new end; exit 6";

#[test]
fn nothing_is_left_behind_by_a_killed_trapline() {
    if !possible() {
        return;
    }
    let (mut kinds, mut ran) = (BTreeSet::new(), 0);
    for round in 0..20u64 {
        let dir = lab::scratch();
        let before = objects();
        let args = ["trace", "--backend", "kernel", "-o", "trace", "sh", "-c", SCRIPT];
        let running = lab::start(lab::trapline(User::Me, &args).current_dir(&dir).stderr(Stdio::null()));
        // From the midst of loading to the midst of the command, at a step that is no divisor of anything.
        std::thread::sleep(Duration::from_micros(round * 13_700));
        if round % 4 == 3 {
            lab::until("the command", || dir.join("pid").exists());
        }
        let mut ours: BTreeSet<_> = objects().difference(&before).copied().collect();
        lab::kill("KILL", running.pid().into());
        let gone = |pid: u32| lab::status_field(pid, "State").is_none_or(|s| s.starts_with('Z'));
        lab::until("trapline's end", || gone(running.pid()));
        kinds.extend(ours.iter().map(|o| o.0));
        ours.extend(objects().difference(&before));
        // Other tests' objects that came meanwhile are in it too; they go as well.
        lab::until("an end of all programs, maps and links", || objects().intersection(&ours).next().is_none());
        // Unless it still waited for trapline's leave, the command goes on.
        std::fs::write(dir.join("go"), "").expect("go");
        let pid = || std::fs::read_to_string(dir.join("pid")).ok().and_then(|p| p.trim().parse::<u32>().ok());
        let started = std::time::Instant::now();
        while pid().is_none() && started.elapsed() < Duration::from_millis(if round % 4 == 3 { 30_000 } else { 300 }) {
            std::thread::sleep(Duration::from_millis(5));
        }
        if let Some(pid) = pid() {
            ran += 1;
            lab::until("the command's end", || dir.join("end").exists() && gone(pid));
            assert_eq!(std::fs::read_to_string(dir.join("end")).expect("end"), "fine\n");
        }
    }
    assert_eq!(kinds, BTreeSet::from(["link", "map", "program"]), "the kills came too early");
    assert!(ran >= 5, "{ran} commands ran");
}
