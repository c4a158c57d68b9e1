//! What a user who is not root sees by way of capabilities that trapline has from its file: his own tasks, as ptrace(2) would let him,
//! and no address of the kernel.

use crate::alone::alone;
use crate::kernel::possible;
use crate::lab::{self, Outcome, User};
use crate::trace::{Line, lines_of};
use crate::whole_machine::counted;
use serde_json::Value;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Stdio;
use std::sync::{OnceLock, PoisonError, RwLock, RwLockReadGuard};

/// Held for writing while kernel.perf_event_paranoid is not what it was.
static PARANOID: RwLock<()> = RwLock::new(());

/// Holds the switch as it is, where it does not shut out all but root anyway.
pub fn as_it_is() -> Option<RwLockReadGuard<'static, ()>> {
    let held = PARANOID.read().unwrap_or_else(PoisonError::into_inner);
    if lab::paranoid() > 2 {
        lab::skip("kernel:sysctl", "kernel.perf_event_paranoid allows only root");
        return None;
    }
    Some(held)
}

/// A copy of trapline that has the capabilities of the kernel backend from its file, made once: it cannot be written while a test
/// runs it.
pub fn with_capabilities() -> Option<String> {
    static COPY: OnceLock<Option<String>> = OnceLock::new();
    COPY.get_or_init(|| capable_copy("trapline-with-capabilities", "cap_bpf,cap_perfmon+ep")).clone()
}

/// A copy of trapline that has these capabilities from its file.
pub fn capable_copy(name: &str, capabilities: &str) -> Option<String> {
    let copy = lab::dir().join(name);
    if !lab::has("setpriv") || !lab::has("setcap") {
        lab::skip("package:setcap", "no setcap to give a file capabilities");
        return None;
    }
    std::fs::copy(lab::dir().join("trapline"), &copy).expect("copy");
    let copy = copy.to_str().expect("UTF-8").to_string();
    let out = lab::run(&mut lab::as_user(User::Me, &["setcap", capabilities, &copy]));
    if out.code() != 0 {
        lab::skip("fs:xattr", &format!("setcap: {}", out.stderr));
        return None;
    }
    Some(copy)
}

#[test]
fn capabilities_of_the_file_do_not_show_other_users_processes() {
    if !possible() {
        return;
    }
    let (Some(trapline), Some(program)) = (with_capabilities(), lab::program("counted")) else { return };
    let Some(_paranoid) = as_it_is() else { return };
    let run = |args: &[&str]| {
        let argv = [&[&trapline[..], "trace", "--backend", "kernel", "--duration", "0.3"], args].concat();
        lab::run(&mut lab::as_user(User::Nobody, &argv))
    };
    let (roots, mut nobodys) = (counted(User::Me, &program), counted(User::Nobody, &program));
    let (root, own) = (roots.pid.to_string(), nobodys.pid.to_string());
    let refusals = [&["-a"][..], &["-p", &root], &["-p", &own, "-p", &root]];
    for args in refusals {
        let out = run(args);
        assert_eq!((out.code(), out.stderr.lines().count()), (125, 1), "{args:?} {}", out.stderr);
        assert!(out.stderr.contains("uid ") && out.stderr.contains("run trapline as root"), "{args:?} {}", out.stderr);
    }
    let restricted = lab::attach_is_restricted();
    if !restricted {
        let out = run(&["-p", &own]);
        assert_eq!(out.code(), 0, "{}", out.stderr);
        assert!(out.stderr.contains("kernel backend") && out.stderr.contains("read(0"), "{}", out.stderr);
    }
    let out = run(&["-e", "getppid", &program, "5"]);
    assert_eq!(out.code(), 0, "{}", out.stderr);
    nobodys.go();
    nobodys.end();
    roots.end();
}

/// A program with other rights is let go where it begins, as its children are; others of the command are not.
#[test]
fn capabilities_of_the_file_do_not_show_setuid_programs() {
    if !possible() {
        return;
    }
    let (Some(trapline), Some(program)) = (with_capabilities(), lab::program("counted")) else { return };
    let Some(_paranoid) = as_it_is() else { return };
    let dir = lab::scratch();
    let (suid, file) = (dir.join("suid"), dir.join("trace"));
    std::fs::copy(&program, &suid).expect("copy");
    std::fs::set_permissions(&suid, std::fs::Permissions::from_mode(0o4755)).expect("permissions");
    let script = format!("printf x | {program} 4; (printf x | exec {} 5); printf x | {program} 6", suid.display());
    for select in ["getppid,execve", "all", "getppid"] {
        let options = [&trapline, "trace", "--backend", "kernel", "-o", file.to_str().expect("UTF-8"), "-e", select];
        let argv = [&options[..], &["sh", "-c", &script]].concat();
        let out = lab::run(&mut lab::as_user(User::Nobody, &argv));
        assert_eq!(out.code(), 0, "{}", out.stderr);
        let numbers: Vec<&str> = std::str::from_utf8(&out.stdout).expect("UTF-8").lines().skip(1).step_by(2).collect();
        assert_eq!(numbers, ["4", "5", "6"]);
        let said =
            out.stderr.lines().find(|l| l.contains("suid: not shown")).unwrap_or_else(|| panic!("{}", out.stderr));
        assert!(said.contains("run trapline as root"), "{said}");
        let lines = lines_of(&file);
        let by_others: Vec<&Line> = lines.iter().filter(|l| l.is("getppid") && l.result() != "0").collect();
        let shells = by_others.len() - 10;
        assert!(shells < 4, "the shells ask, too, but the setuid program's 5 are not shown: {by_others:#?}");
        if select != "getppid" {
            let execve = lines.iter().find(|l| l.text.contains("/suid\", [")).expect("its execve");
            assert_eq!(execve.result(), "?", "{}", execve.text);
        }
        std::fs::remove_file(&file).expect("the trace");
    }
}

/// `trapline ARGS` as nobody, with the capabilities, started by a shell as a user starts it.
fn capable(trapline: &str, args: &[&str]) -> Outcome {
    let argv = [&["sh", "-c", "exec \"$@\"", "sh", trapline], args].concat();
    lab::run(&mut lab::as_user(User::Nobody, &argv))
}

#[test]
fn the_ptrace_backend_works_as_without_capabilities() {
    let (Some(trapline), Some(program)) = (with_capabilities(), lab::program("counted")) else { return };
    let out = capable(
        &trapline,
        &["trace", "--backend", "ptrace", "-e", "getppid", "sh", "-c", &format!("printf x | {program} 3")],
    );
    // The shells ask, too.
    assert!(out.code() == 0 && out.stderr.matches("getppid()").count() >= 3, "{}", out.stderr);
    let out = capable(&trapline, &["trace", "--backend", "ptrace", "-f", "cat", "/proc/self/status"]);
    let status = out.out();
    let fields: Vec<&str> = status.lines().filter(|l| l.starts_with("CapPrm") || l.starts_with("CapEff")).collect();
    assert!(fields.len() == 2 && fields.iter().all(|l| l.ends_with("0000000000000000")), "{fields:?}");
    if lab::attach_is_restricted() {
        return lab::skip("kernel:ptrace_scope", "attaching is restricted by kernel.yama.ptrace_scope");
    }
    let mut own = counted(User::Nobody, &program);
    let pid = own.pid.to_string();
    let out = capable(&trapline, &["trace", "--backend", "ptrace", "--duration", "0.3", "-p", &pid]);
    assert!(out.code() == 0 && out.stderr.contains("read(0"), "{}", out.stderr);
    own.go();
    own.end();
}

/// A program that its user may execute and not read: it may hold a secret.
// Slow: a session with capabilities only for each way to start the program.
#[test]
fn programs_that_may_not_be_read_are_not_shown() {
    let Some(trapline) = with_capabilities().filter(|_| possible()) else { return };
    let Some(_paranoid) = as_it_is() else { return };
    let program = lab::dir().join("unreadable");
    std::fs::copy("/bin/cat", &program).expect("copy");
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o711)).expect("permissions");
    let path = program.to_str().expect("UTF-8");
    let script = format!("{path} /etc/passwd >/dev/null; true");
    for command in [&["sh", "-c", &script][..], &[path, "/etc/passwd"]] {
        let args = [&["trace", "--backend", "kernel", "-e", "execve,openat,read,write"], command].concat();
        let out = capable(&trapline, &args);
        assert_eq!(out.code(), 0, "{}", out.stderr);
        assert!(!out.stderr.contains("root:") && !out.stderr.contains("passwd\", O_RDONLY"), "{}", out.stderr);
        assert!(out.stderr.contains("unreadable: not shown"), "{}", out.stderr);
    }
}

const SECRET: &str = "the-secret-of-root";

/// What an ordinary user must not see of root's process: its name, its ids, its memory, and an address of the kernel.
#[track_caller]
fn shows_nothing(spec: &str, events: &str, pid: u32) {
    fn walk(v: &Value, each: &mut impl FnMut(&Value)) {
        each(v);
        match v {
            Value::Array(all) => all.iter().for_each(|v| walk(v, each)),
            Value::Object(all) => all.values().for_each(|v| walk(v, each)),
            _ => {}
        }
    }
    for line in events.lines() {
        let event: Value = serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"));
        walk(&event, &mut |v| {
            let text = v.as_str().unwrap_or_default();
            assert!(!text.contains("rootsprocess") && !text.contains("secret"), "{spec}: {line}");
            // Words of memory, in hexadecimal or not.
            let number = v.as_u64().or_else(|| u64::from_str_radix(text.strip_prefix("0x")?, 16).ok());
            let Some(number) = number else { return };
            // What is in hexadecimal is an address, which may be the same number.
            assert!(!v.is_number() || number != u64::from(pid), "{spec}: its id: {line}");
            assert!(!(0xffff_8000_0000_0000..0xffff_ffff_ffff_0000).contains(&number), "{spec}: an address: {line}");
            let bytes = number.to_le_bytes();
            assert!(!SECRET.as_bytes().windows(4).any(|w| bytes.windows(4).any(|b| b == w)), "{spec}: {line}");
        });
    }
}

/// tracefs as the administrator may have opened it: what it says of some tracepoints, readable by all, in its place.
fn readable_tracefs(dir: &Path, tracepoints: &[&str]) -> bool {
    for tracepoint in tracepoints {
        let from = Path::new("/sys/kernel/tracing/events").join(tracepoint);
        let to = dir.join("events").join(tracepoint);
        std::fs::create_dir_all(&to).expect("a directory");
        for file in ["id", "format"] {
            let Ok(text) = std::fs::read(from.join(file)) else { return false };
            std::fs::write(to.join(file), text).expect("a file");
        }
    }
    lab::run(&mut lab::as_user(User::Me, &["chmod", "-R", "a+rX", dir.to_str().expect("UTF-8")])).code() == 0
}

/// Runs a command of nobody's that sees this tracefs.
fn shown_tracefs(tracefs: &Path, command: &[&str]) -> Outcome {
    let script = "mount --bind \"$1\" /sys/kernel/tracing && shift && exec setpriv --reuid nobody --regid nogroup --clear-groups -- \"$@\"";
    let args = ["unshare", "-m", "sh", "-c", script, "sh", tracefs.to_str().expect("UTF-8")];
    lab::run(&mut lab::as_user(User::Me, &[&args[..], command].concat()))
}

/// Scripts show what filters and probes do: every value, function and map that leads elsewhere is refused, or reads nothing.
// Slow: a session for each script.
#[test]
fn no_script_shows_another_user_or_memory_of_the_kernel() {
    let Some(trapline) = with_capabilities().filter(|_| possible()) else { return };
    let Some(probes) = lab::program("probes") else { return };
    let Some(_paranoid) = as_it_is() else { return };
    let tracefs = lab::scratch();
    let tracepoints = [
        "sched/sched_switch",
        "sched/sched_waking",
        "sched/sched_process_exec",
        "syscalls/sys_enter_openat",
        "raw_syscalls/sys_enter",
    ];
    if !lab::has("unshare") || !readable_tracefs(&tracefs, &tracepoints) {
        return lab::skip("kernel:tracefs", "tracepoints cannot be shown to nobody");
    }
    let _alone = alone();
    let busy = lab::dir().join("rootsprocess");
    let _ = std::fs::copy("/bin/dd", &busy);
    let busy = busy.to_str().expect("UTF-8");
    let mut command = lab::as_user(User::Me, &[busy, "if=/dev/zero", "of=/dev/null", "bs=512"]);
    let roots: Vec<_> =
        (0..2).map(|_| lab::start(command.env("SECRET", SECRET.repeat(20)).stderr(Stdio::null()))).collect();
    let root = roots[0].pid().to_string();
    let (open, switch) = ("tracepoint:syscalls:sys_enter_openat", "tracepoint:sched:sched_switch");
    let own = format!("uprobe:{probes}:worked");
    let work = format!("sh -c '{probes} 3 >/dev/null; cat /etc/hostname >/dev/null; sleep 0.05'");
    let run = |text: &str, target: [&str; 2]| {
        shown_tracefs(&tracefs, &[&[&trapline, "run", "-q", "-f", "json", "-e", text][..], &target].concat())
    };
    for (text, shows) in [
        (
            format!(
                "{open} {{ printf(\"%s %s\\n\", comm, str(args.filename)); @[pid, comm, cgroup, numaid] = count(); }}"
            ),
            "/etc/hostname",
        ),
        (
            format!(
                "{open} {{ printf(\"%s %r\\n\", str(kptr(args.filename)), buf(args.filename, 4)); @[ustack] = count(); }}"
            ),
            "/etc/hostname",
        ),
        (
            format!(
                "{switch} {{ @[args.prev_comm, args.prev_pid, args.next_pid, args.next_prio] = count(); @n = count(); }}"
            ),
            "\"@n\"",
        ),
        (format!("{switch} {{ @[args.next_pid] = count(); @s = sum(args.next_pid); }}"), "\"@s\": 0"),
        (
            format!(
                "{switch} {{ printf(\"%d %d\\n\", args.next_pid, args.next_prio); @c[args.next_comm] = count(); }}"
            ),
            "",
        ),
        (
            format!(
                "{own} {{ @ = sum(*(uint64 *)uptr(0xffffffff81000000)); @s[str(uptr(0xffffffff81000000))] = count(); }}"
            ),
            "\"@\": 0",
        ),
        (
            format!(
                "{own} {{ $p = (uint64)0xffffffff81000000; if (arg0 > 0) {{ $p = $p + 8; }} @ = max(*(uint64 *)$p); }}"
            ),
            "",
        ),
        // Numbers are addresses of the process at its probes: nothing is there.
        (format!("{own} {{ @[*(uint64 *)0xffffffff81000000] = count(); }}"), "{\"@\": {\"0\": "),
        ("profile:hz:999 { @[pid, comm, ustack] = count(); }".into(), ""),
        ("process:exec { printf(\"%d %s\\n\", pid, comm); }".into(), "sleep"),
        ("begin { cat(\"/etc/shadow\"); printf(\"begins\\n\"); exit(); }".into(), "begins"),
    ] {
        let out = run(&text, ["-c", &work]);
        assert_eq!(out.code(), 0, "{text}: {}", out.stderr);
        assert!(out.out().contains(shows), "{text}: {}{}", out.out(), out.stderr);
        roots.iter().for_each(|r| shows_nothing(&text, &out.out(), r.pid()));
    }
    let every = format!("{open} {{ @ = count(); }}");
    for (text, target) in [
        (format!("{open} {{ @[kstack] = count(); }}"), ["-c", &*work]),
        (format!("{own} {{ @[kstack(raw, 2)] = count(); }}"), ["-c", &work]),
        (format!("{open} {{ @[curtask] = count(); }}"), ["-c", &work]),
        (format!("{own} {{ printf(\"%s\\n\", str(curtask)); }}"), ["-c", &work]),
        (format!("{open} {{ @ = sum(*(uint64 *)kptr(0xffffffff81000000)); }}"), ["-c", &work]),
        (format!("{own} {{ printf(\"%s %r\\n\", str(0xffffffff81000000), buf(kptr(arg0), 8)); }}"), ["-c", &work]),
        (format!("{open} {{ @[*(uint64 *)kptr(0xffffffff81000000)] = count(); }}"), ["-c", &work]),
        ("tracepoint:raw_syscalls:sys_enter /0 != *(uint64 *)args.id/ { @ = count(); }".into(), ["-c", &work]),
        (format!("{switch} {{ printf(\"%s\\n\", str(args.next_pid)); }}"), ["-c", &work]),
        ("tracepoint:sched:sched_waking { @[args.comm] = count(); }".into(), ["-c", &work]),
        ("rawtracepoint:sched_switch { @[args.next->pid] = count(); }".into(), ["-c", &work]),
        ("kprobe:vfs_read { @ = count(); }".into(), ["-c", &work]),
        ("slab:* { @ = count(); }".into(), ["-c", &work]),
        ("interval:ms:1 { @[curtask] = count(); exit(); }".into(), ["-c", &work]),
        (every.clone(), ["-p", &root]),
        (every, ["-q", "-q"]),
    ] {
        let out = run(&text, target);
        assert!([2, 125].contains(&out.code()) && out.out().is_empty(), "{text}: {}{}", out.out(), out.stderr);
        let says = ["root", "is not known at", "not known to be addresses"];
        assert!(says.iter().any(|s| out.stderr.contains(s)), "{text}: {}", out.stderr);
    }
    // Files are opened with the user's own rights.
    if let Some(reads_all) = capable_copy("trapline-reads-all", "cap_bpf,cap_perfmon,cap_dac_read_search+ep") {
        let secret = lab::scratch().join("secret.bt");
        std::fs::write(&secret, format!("{SECRET} {{")).expect("a file");
        std::fs::set_permissions(&secret, std::fs::Permissions::from_mode(0o600)).expect("permissions");
        let secret = secret.to_str().expect("UTF-8");
        for args in [&["-e", &format!("begin {{ cat(\"{secret}\"); exit(); }}")][..], &[secret]] {
            let out = capable(&reads_all, &[&["run"], args].concat());
            let said = out.out() + &out.stderr;
            assert!(said.contains("Permission denied") && !said.contains(SECRET), "{said}");
        }
    }
    // Without tracefs, the tracepoints of calls are served by the events of calls.
    let text = format!("{open} {{ @[str(args.filename)] = count(); }}");
    let out = capable(&trapline, &["run", "-q", "-e", &text, "-c", "cat /etc/hostname"]);
    assert!(out.code() == 0 && out.out().contains("@[/etc/hostname]: 1\n"), "{}{}", out.out(), out.stderr);
}

// Slow: a session for each kind of probe.
#[test]
fn no_kind_of_probe_shows_another_user_or_an_address_of_the_kernel() {
    let Some(trapline) = with_capabilities().filter(|_| possible()) else { return };
    let Some(probes) = lab::program("probes") else { return };
    let Some(_paranoid) = as_it_is() else { return };
    let tracefs = lab::scratch();
    let tracepoints = [
        "sched/sched_switch",
        "sched/sched_wakeup",
        "sched/sched_waking",
        "sched/sched_process_fork",
        "sched/sched_process_exec",
        "sched/sched_process_exit",
        "kmem/kmalloc",
        "kmem/kfree",
        "kmem/mm_page_alloc",
        "timer/timer_start",
        "timer/hrtimer_start",
        "signal/signal_generate",
        "signal/signal_deliver",
        "task/task_newtask",
        "task/task_rename",
        "syscalls/sys_enter_openat",
        "syscalls/sys_exit_openat",
        "syscalls/sys_exit_read",
        "raw_syscalls/sys_enter",
        "raw_syscalls/sys_exit",
        "exceptions/page_fault_user",
        "irq/softirq_entry",
    ];
    if !lab::has("unshare") || !readable_tracefs(&tracefs, &tracepoints) {
        return lab::skip("kernel:tracefs", "tracepoints cannot be shown to nobody");
    }
    let _alone = alone();
    // Root's process: busy on every CPU, wakes others, opens files, has a secret in its environment and on its stack.
    let busy = lab::dir().join("rootsprocess");
    std::fs::copy("/bin/dd", &busy).expect("copy");
    let busy = busy.to_str().expect("UTF-8");
    let mut command = lab::as_user(User::Me, &[busy, "if=/dev/zero", "of=/dev/null", "bs=512"]);
    let roots: Vec<_> =
        (0..2).map(|_| lab::start(command.env("SECRET", SECRET.repeat(20)).stderr(Stdio::null()))).collect();
    let libc = format!("uprobe:{probes}:worked");
    let mut specs: Vec<String> = [
        "interval:ms:1",
        "profile:hz:2000",
        "profile:hz:2000 ustack comm",
        "software:page-faults:1 ustack comm",
        "software:context-switches:1 ustack comm",
        "software:cpu-clock:100000 ustack",
        "begin,end",
        "openat,read,clone,execve",
        "syscall:openat:entry ustack comm",
        "syscall:read:return comm",
        &format!("{libc} ustack comm"),
        &format!("uretprobe:{probes}:worked comm"),
        &format!("usdt:{probes}:lab:step ustack comm"),
    ]
    .map(String::from)
    .to_vec();
    let refused = [
        "interval:ms:1 ustack=32 comm kstack=4",
        "interval:ms:1 ustack",
        "interval:ms:1 comm",
        "interval:ms:1 /comm == \"rootsprocess\"/",
        "interval:ms:1 /pid != 1/",
        "profile:hz:2000 kstack",
        "kprobe:vfs_read",
        "fentry:vfs_read",
        "fexit:vfs_read",
        "kretprobe:vfs_read",
        "rawtracepoint:sched_switch",
        "watchpoint:0x1000:8:w",
        "software:page-faults:1 kstack",
        &format!("{libc} kstack"),
        "syscall:openat:entry kstack",
    ]
    .map(String::from);
    if sys::perf::has_hardware_counters() {
        specs.push("hardware:instructions:100000 ustack comm".into());
    }
    let own = |t: &str| {
        let known = ["sched_switch", "process", "deliver", "task_", "sys_", "page_fault"];
        known.iter().any(|k| t.contains(k))
    };
    let (seen, kept): (Vec<&str>, Vec<&str>) = tracepoints.iter().copied().partition(|t| own(t));
    let tracepoint = |t: &&str| format!("tracepoint:{}", t.replace('/', ":"));
    specs.extend(seen.iter().map(tracepoint));
    specs.extend(seen.iter().map(|t| tracepoint(t) + " ustack comm"));
    let refused: Vec<String> = refused
        .into_iter()
        .chain(kept.iter().map(tracepoint))
        .chain(seen.iter().map(|t| tracepoint(t) + " kstack"))
        .collect();
    let work = format!("{probes} 3 >/dev/null; for i in 1 2 3; do cat /etc/hostname >/dev/null; done; sleep 0.05");
    let record = |spec: &str| {
        shown_tracefs(&tracefs, &[&trapline, "record", "--as", "json", "-e", spec, "--", "sh", "-c", &work])
    };
    let mut silent = Vec::new();
    for spec in &specs {
        let out = record(spec);
        assert_eq!(out.code(), 0, "{spec}: {}", out.stderr);
        roots.iter().for_each(|r| shows_nothing(spec, &out.out(), r.pid()));
        let name = spec.split([' ', ',']).next().unwrap_or_default();
        if !out.out().contains(name) {
            silent.push(spec);
        }
    }
    assert!(silent.len() < specs.len() / 3, "nothing was seen by {silent:?}, the test shows little");
    for spec in &refused {
        let out = record(spec);
        assert_eq!((out.code(), out.stderr.lines().count()), (125, 1), "{spec}: {}", out.stderr);
        assert!(out.stderr.contains("root"), "{spec}: {}", out.stderr);
    }
}

#[test]
fn the_switch_of_the_administrator_binds_capabilities_too() {
    let Some(trapline) = with_capabilities().filter(|_| possible()) else { return };
    const PATH: &str = "/proc/sys/kernel/perf_event_paranoid";
    let _paranoid = PARANOID.write().unwrap_or_else(PoisonError::into_inner);
    struct Restore(String);
    impl Drop for Restore {
        fn drop(&mut self) {
            let _ = std::fs::write(PATH, &self.0);
        }
    }
    let before = Restore(std::fs::read_to_string(PATH).expect("the switch"));
    if std::fs::write(PATH, "3").is_err() {
        return lab::skip("kernel:sysctl", "kernel.perf_event_paranoid cannot be set");
    }
    let asked = capable(&trapline, &["trace", "--backend", "kernel", "true"]);
    let auto = capable(&trapline, &["trace", "true"]);
    let doctor = capable(&trapline, &["doctor"]);
    let root = lab::run(&mut lab::as_user(User::Me, &[&trapline, "trace", "--backend", "kernel", "true"]));
    drop(before);
    assert_eq!((asked.code(), asked.stderr.lines().count()), (125, 1), "{}", asked.stderr);
    assert!(asked.stderr.contains("perf_event_paranoid is 3"), "{}", asked.stderr);
    assert!(auto.code() == 0 && auto.stderr.contains("ptrace backend"), "{}", auto.stderr);
    assert!(root.code() == 0 && root.stderr.contains("kernel backend"), "{}", root.stderr);
    for what in ["kernel.perf_event_paranoid", "kernel backend"] {
        let text = doctor.out();
        let line = text.lines().find(|l| l.contains(what)).unwrap_or_else(|| panic!("{text}"));
        assert!(line.starts_with("no") && line.contains("allows only root"), "{line}");
    }
}
