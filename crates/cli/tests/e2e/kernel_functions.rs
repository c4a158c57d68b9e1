//! Scripts at functions of the kernel and of its modules. They need a kernel with kprobes, or with fentry.

use crate::lab::{self, Outcome, User};

/// Reads 7 bytes, fifty times.
const READS: &str = "dd if=/dev/zero of=/dev/null bs=7 count=50 status=none";

/// Runs a script on a command; none, and a skip, where this kernel has no such probes.
fn run(text: &str, command: &str) -> Option<Outcome> {
    let out = lab::run(&mut lab::trapline(User::Me, &["run", "-q", "-e", text, "-c", command]));
    if out.code() == 125 && out.stderr.contains("this kernel") {
        lab::skip(if text.starts_with('f') { "fentry" } else { "kprobe" }, out.stderr.trim());
        return None;
    }
    Some(out)
}

fn lines(text: &str, command: &str) -> Option<Vec<String>> {
    let out = run(text, command)?;
    assert_eq!(out.code(), 0, "{text}: {}", out.stderr);
    Some(out.out().lines().filter(|l| !l.is_empty()).map(str::to_string).collect())
}

#[test]
fn breakpoints_have_arguments_results_and_tasks() {
    let text = "kprobe:vfs_read /arg2 == 7/ { @at[comm, probe, func] = count(); @start[tid] = nsecs; }
        kprobe:vmlinux:vfs_read /arg2 == 7/ { @task[curtask->pid == tid, curtask->parent->tgid == curtask->real_parent->tgid] = count(); }
        kretprobe:vfs_read /@start[tid]/ { @r[retval] = count(); @ns = max((nsecs - @start[tid]) > 0); delete(@start[tid]); }
        kprobe:vfs_read /arg2 == 7/ { @name[tid] = ((struct file *)arg0)->f_path.dentry->d_name.name; }
        kretprobe:vfs_read /@name[tid]/ { @kept[str(@name[tid])] = count(); delete(@name[tid]); }
        kprobe:vfs_read /arg2 == 7/ { @file[str(((struct file *)arg0)->f_path.dentry->d_name.name)] = count(); }";
    let Some(found) = lines(text, READS) else { return };
    let file = "@file[zero]: 50";
    let expected = [
        "@at[dd, kprobe:vfs_read, vfs_read]: 50",
        file,
        "@kept[zero]: 50",
        "@ns: 1",
        "@r[7]: 50",
        "@task[true, true]: 50",
    ];
    assert_eq!(found, expected);
    let text = "kprobe:vfs_read /arg2 == 7/ { @n = count(); if ((int64)@n == 3) { exit(4); } }";
    let Some(out) = run(text, READS) else { return };
    assert_eq!((out.code(), out.out().trim()), (4, "@n: 3"), "{}", out.stderr);
}

#[test]
fn trampolines_have_types_names_and_stacks() {
    let text = "fentry:vfs_read /args.count == 7/ { @[str(args.file.f_path.dentry.d_name.name), kstack(1)] = count(); }
        kfunc:vmlinux:vfs_read /args->count == 7/ { @old = count(); }
        fexit:vfs_read /args.count == 7/ { @r[retval] = count(); } kretfunc:vfs_read /retval == 7/ { @old_r = count(); }";
    let Some(found) = lines(text, READS) else { return };
    let [name, frame, rest @ ..] = &found[..] else { panic!("{found:?}") };
    assert!(name == "@[zero, " && frame.trim().starts_with("vfs_read+"), "{found:?}");
    assert_eq!(rest, ["]: 50", "@old: 50", "@old_r: 50", "@r[7]: 50"]);
}

#[test]
fn functions_of_modules_have_types_and_are_those_of_the_module() {
    // The files of the emulated machine are on this file system.
    let is_there = std::fs::read_to_string("/proc/modules").is_ok_and(|all| all.contains("overlay "));
    if !is_there
        || !std::fs::read_to_string("/proc/mounts")
            .is_ok_and(|all| all.starts_with("overlay / ") || all.contains("\noverlay / "))
    {
        return lab::skip("overlay", "the root file system is no overlay by a module");
    }
    let command = "cat /etc/hostname /etc/hosts /etc/hosts";
    let wanted = |name: &str| format!("str({name}.f_path.dentry.d_name.name) == \"hosts\"");
    let text = format!(
        "kprobe:overlay:ovl_open /{}/ {{ @at[probe, func] = count(); }}
        kprobe:ovl_ope? /{}/ {{ @by[func] = count(); }} kretprobe:overlay:ovl_open /retval == 0/ {{ @r = count(); }}",
        wanted("((struct file *)arg1)"),
        wanted("((struct file *)arg1)")
    );
    // The command writes, too.
    let maps = |text: &str| Some(lines(text, command)?.into_iter().filter(|l| l.starts_with('@')).collect::<Vec<_>>());
    let Some(found) = maps(&text) else { return };
    let opened = found.iter().find_map(|l| l.strip_prefix("@r: ")?.parse::<u32>().ok());
    assert!(opened.is_some_and(|n| n >= 3), "{found:?}");
    assert_eq!(found[..2], ["@at[kprobe:overlay:ovl_open, ovl_open]: 2", "@by[ovl_open]: 2"], "{found:?}");
    let text = format!(
        "fentry:overlay:ovl_open /{0}/ {{ @at[probe] = count(); }} fexit:ovl_open /retval == 0 && {0}/ {{ @r = count(); }}",
        wanted("args.file")
    );
    let Some(found) = maps(&text) else { return };
    assert_eq!(found, ["@at[fentry:overlay:ovl_open]: 2", "@r: 2"]);
}

#[test]
fn offsets_are_those_of_instructions() {
    // Where the next instruction begins depends on how the kernel was compiled.
    let mut reached = Vec::new();
    for offset in 1..=9 {
        let text =
            format!("kprobe:vfs_read+{offset} {{ @inside = count(); }} kprobe:vfs_read {{ @entered = count(); }}");
        let Some(out) = run(&text, READS) else { return };
        match out.code() {
            0 => reached.push(out.out()),
            125 => assert!(out.stderr.contains("no instruction begins at this offset"), "{}", out.stderr),
            code => panic!("{code}: {}", out.stderr),
        }
    }
    assert!(!reached.is_empty());
    for out in reached {
        let counts: Vec<&str> = out.lines().filter_map(|l| l.split_once(": ").map(|l| l.1)).collect();
        assert!(counts.len() == 2 && counts[0] == counts[1], "{out}");
    }
    let Some(out) = run("kprobe:vfs_read+1000000 { }", "true") else { return };
    assert!(out.code() == 2 && out.stderr.contains("vfs_read has "), "{}", out.stderr);
}

#[test]
fn what_the_kernel_does_not_let_be_traced_is_named() {
    let list = std::fs::read_to_string("/sys/kernel/tracing/available_filter_functions").unwrap_or_default();
    if list.is_empty() {
        return lab::skip("kprobe", "this kernel lists no functions that may be traced");
    }
    let Some(out) = run("kprobe:exc_page_fault { }", "true") else { return };
    assert!(out.code() == 2 && out.stderr.contains("does not let it be traced"), "{}", out.stderr);
    let Some(out) = run("kprobe:no_such_module:f { }", "true") else { return };
    assert!(out.code() == 2 && out.stderr.contains("no such function, or module"), "{}", out.stderr);
}

// Slow: some two hundred probes are attached and detached.
#[test]
fn many_functions_are_counted_by_their_names() {
    let pattern = "kprobe:tcp_*";
    let connect = "import socket; s = socket.socket(); s.bind(('127.0.0.1', 0)); s.listen(9)
for _ in range(6): c = socket.create_connection(s.getsockname()); s.accept(); c.close()";
    let file = lab::scratch().join("connect.py");
    std::fs::write(&file, connect).expect("a program");
    let command = format!("python3 {}", file.display());
    let text = format!("{pattern} {{ @[func] = count(); @all = count(); }} kprobe:tcp_connect {{ @one = count(); }}");
    let Some(found) = lines(&text, &command) else { return };
    assert!(found.contains(&"@[tcp_connect]: 6".to_string()) && found.contains(&"@one: 6".to_string()), "{found:?}");
    let sum: u64 =
        found.iter().filter(|l| l.starts_with("@[")).filter_map(|l| l.rsplit_once(": ")?.1.parse::<u64>().ok()).sum();
    let all = found.iter().find_map(|l| l.strip_prefix("@all: ")?.parse::<u64>().ok());
    assert!(all == Some(sum) && found.len() > 30, "{found:?}");
}

#[test]
fn recordings_have_clauses_and_events() {
    let dir = lab::scratch();
    let args = ["record", "-q", "-o", "trace", "-e", "kprobe:vfs_read /args.count == 7/"];
    let clause = ["-e", "kretprobe:vfs_read /retval == 7/ { @ = count(); }", "--"];
    let dd: Vec<&str> = READS.split(' ').collect();
    let out = lab::run(lab::trapline(User::Me, &[&args[..], &clause, &dd].concat()).current_dir(&dir));
    if out.code() == 125 && out.stderr.contains("this kernel") {
        return lab::skip("kprobe", out.stderr.trim());
    }
    assert_eq!((out.code(), out.out().trim()), (0, "@: 50"), "{}", out.stderr);
    let report = lab::run(lab::trapline(User::Me, &["report", "trace"]).current_dir(&dir)).out();
    let events = report.lines().filter(|l| l.contains("kprobe:vfs_read(") && l.contains("count=7")).count();
    assert!(events == 50 && report.contains("@: 50"), "{report}");
}
