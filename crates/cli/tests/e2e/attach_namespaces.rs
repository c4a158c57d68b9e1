//! Processes in other namespaces and below another root.

use crate::attach_targets::{counts, goes_on, is_root, program, records, refuses};
use crate::injected::started;
use crate::lab::{self, Running, User};
use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// The process that a wrapper has started, by its arguments.
#[track_caller]
fn find(mark: &str) -> u32 {
    let has = |pid: &u32| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let words: Vec<&[u8]> = line.split(|b| *b == 0).collect();
        words.first().is_some_and(|w| w.ends_with(b"/targets")) && words.contains(&mark.as_bytes())
    };
    let mut found = None;
    lab::until("it is there", || {
        let all = fs::read_dir("/proc").expect("/proc").flatten();
        found = all.filter_map(|e| e.file_name().to_str()?.parse().ok()).find(has);
        found.is_some()
    });
    found.expect("found")
}

/// A process in a container, or none where that cannot be made.
#[track_caller]
fn contained(user: User, wrapper: &[&str], program: &str, mark: &str) -> Option<(Running, u32)> {
    let try_it: Vec<&str> = wrapper.iter().copied().chain(["true"]).collect();
    if wrapper[0] == "unshare" && !wrapper.contains(&"sh") && lab::run(&mut lab::as_user(user, &try_it)).code() != 0 {
        testkit::skip("kernel:namespaces", "no namespaces are to be had");
        return None;
    }
    let run = started(user, &[wrapper, &[program, "plain", mark]].concat());
    let pid = find(mark);
    Some((run, pid))
}

#[test]
fn processes_in_other_namespaces_are_attached_to() {
    let Some(program) = program() else { return };
    if !is_root() {
        return;
    }
    let wrappers: [(User, &[&str]); 7] = [
        (User::Me, &["unshare", "-pf", "--kill-child"]),
        (User::Me, &["unshare", "-mpf", "--kill-child", "--mount-proc"]),
        (User::Me, &["unshare", "-n"]),
        (User::Me, &["unshare", "-uiC"]),
        (User::Nobody, &["unshare", "-Ur"]),
        (User::Nobody, &["unshare", "-rmnpfui", "--kill-child", "--mount-proc"]),
        // No file in memory may be executed.
        (
            User::Me,
            &[
                "unshare",
                "-mpf",
                "--kill-child",
                "--mount-proc",
                "sh",
                "-c",
                "echo 2 >/proc/sys/vm/memfd_noexec; exec \"$@\"",
                "sh",
            ],
        ),
    ];
    for (n, (user, wrapper)) in wrappers.into_iter().enumerate() {
        eprintln!("{wrapper:?}");
        let mark = format!("mark-{}-{n}", std::process::id());
        let Some((run, pid)) = contained(user, wrapper, &program, &mark) else { continue };
        records(User::Me, pid);
        counts(User::Me, pid);
        records(User::Me, pid);
        if user == User::Nobody {
            // Its own user: not across network namespaces.
            match wrapper.contains(&"-Ur") {
                true => drop(records(user, pid)),
                false => refuses(user, pid, "it is in another network namespace"),
            }
        }
        goes_on(run, pid);
    }
}

/// A root directory with the program and its libraries, and nothing else.
fn root(program: &str, with_proc: bool) -> Option<PathBuf> {
    let dir = lab::scratch();
    for sub in ["bin", "proc", "tmp", "lib64", "lib/x86_64-linux-gnu", "old"] {
        fs::create_dir_all(dir.join(sub)).ok()?;
    }
    fs::copy(program, dir.join("bin/targets")).ok()?;
    let listed = Command::new("ldd").arg(program).output().ok()?;
    for word in String::from_utf8_lossy(&listed.stdout).split_whitespace().filter(|w| w.starts_with('/')) {
        let to = dir.join(word.trim_start_matches('/'));
        fs::create_dir_all(to.parent()?).ok()?;
        fs::copy(word, to).ok()?;
    }
    if with_proc {
        let made = Command::new("mount").args(["-t", "proc", "proc"]).arg(dir.join("proc")).status();
        made.ok()?.success().then_some(())?;
    }
    Some(dir)
}

#[test]
fn processes_in_another_root_are_attached_to_if_they_have_a_procfs() {
    let Some(program) = program() else { return };
    if !is_root() {
        return;
    }
    let Some(dir) = root(&program, false) else {
        return testkit::skip("package:ldd", "no other root can be made");
    };
    let dir = dir.to_str().expect("UTF-8");
    let mark = |n: u32| format!("root-{}-{n}", std::process::id());
    let (first, second, third) = (mark(1), mark(2), mark(3));
    let Some((run, pid)) = contained(User::Me, &["chroot", dir], "/bin/targets", &first) else { return };
    refuses(User::Me, pid, "the process sees no procfs");
    goes_on(run, pid);
    let script = format!("mount -t proc proc {dir}/proc && exec chroot {dir} \"$@\"");
    let wrapper = ["unshare", "-m", "sh", "-c", &script, "sh"];
    let Some((run, pid)) = contained(User::Me, &wrapper, "/bin/targets", &second) else { return };
    if lab::kernel_backend_is_possible() {
        // The path is one of the process's root.
        let args = ["record", "-p", &pid.to_string(), "-e", "uprobe:/bin/targets:fib", "--duration", "0.3"];
        let out = lab::run(&mut lab::trapline(User::Me, &args));
        let name = format!("uprobe:/proc/{pid}/root/bin/targets:fib");
        assert!(out.out().lines().any(|l| l.contains(&name)), "{}{}", out.out(), out.stderr);
    }
    records(User::Me, pid);
    counts(User::Me, pid);
    goes_on(run, pid);
    let script = format!(
        "mount --bind {dir} {dir} && mount -o remount,ro,bind {dir} && cd {dir} && mount -t proc -o noexec,nosuid proc proc && \
         pivot_root . old; exec \"$@\""
    );
    let wrapper = ["unshare", "-mnpf", "--kill-child", "sh", "-c", &script, "sh"];
    let Some((run, pid)) = contained(User::Me, &wrapper, "/bin/targets", &third) else { return };
    records(User::Me, pid);
    counts(User::Me, pid);
    goes_on(run, pid);
}
