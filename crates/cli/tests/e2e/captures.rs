//! What is captured beside the arguments of system calls: the thread's name, and stacks.

use crate::babeltrace;
use crate::kernel::possible;
use crate::lab::{self, User};
use crate::record::{record, report};
use serde_json::Value;

/// Calls of the trace, as JSON.
#[track_caller]
fn calls(r: &crate::record::Recorded) -> Vec<Value> {
    let out = report(User::Me, &r.trace, &["-q", "--as", "json"]);
    assert_eq!((out.code(), out.stderr.as_str()), (0, ""));
    let all = out.out();
    let all = all.lines().map(|l| serde_json::from_str::<Value>(l).unwrap_or_else(|e| panic!("{e}: {l}")));
    all.filter(|e| e["type"] == "syscall").collect()
}

fn frames(call: &Value, stack: &str) -> usize {
    let all = call[stack].as_array().into_iter().flatten();
    all.filter(|f| f["inlined"] != true).count()
}

#[test]
fn calls_are_recorded_with_stacks_and_names() {
    if !possible() {
        return;
    }
    let script = "cat /etc/hostname >/dev/null; exit 3";
    // Few calls have tracepoints of their own, many share one.
    for more in ["", ",close,getppid,brk,exit_group"] {
        let (open, write) = (format!("openat{more} ustack=4 comm"), "write,mmap kstack=3");
        let r = record(User::Kernel, &["-e", &open, "-e", write], &["sh", "-c", script]);
        assert_eq!(r.outcome.code(), 3, "{}", r.outcome.stderr);
        let all = calls(&r);
        let named = |name: &'static str| all.iter().filter(move |c| c["name"] == name);
        assert!(named("openat").count() > 3 && named("mmap").count() > 10, "{all:?}");
        for call in named("openat") {
            let comm = call["args"]["comm"].as_str().unwrap_or_default();
            assert!(["sh", "cat"].contains(&comm) && (1..=4).contains(&frames(call, "ustack")), "{call}");
            assert!(call.get("kstack").is_none(), "{call}");
        }
        for call in named("mmap") {
            assert!((1..=3).contains(&frames(call, "kstack")) && call["args"].get("comm").is_none(), "{call}");
        }
        for call in named("exit_group") {
            assert!(call["args"]["comm"].is_string() && frames(call, "ustack") > 0, "{call}");
        }
        // As text: lines below the call, or among the arguments by their names.
        let text = report(User::Me, &r.trace, &["-e", "openat", "--no-stacks"]).out();
        let line = text.lines().find(|l| l.contains("/etc/hostname")).expect("the file");
        assert!(line.contains("O_RDONLY, comm=\"cat\") = 3"), "{line}");
        // They are still these calls: selections, filters and tables know them.
        let some = report(User::Me, &r.trace, &["-e", "openat", "--where", "startswith(args.filename, \"/etc/host\")"]);
        assert_eq!(some.out().lines().filter(|l| l.contains("openat(")).count(), 1, "{}", some.out());
        let table = report(User::Me, &r.trace, &["-c"]).out();
        assert!(table.lines().any(|l| l.ends_with(" openat")), "{table}");
        if let Some((events, lost)) = babeltrace::counts(User::Me, &r.trace) {
            assert_eq!((events, lost), (r.events(), 0));
        }
    }
}

#[test]
fn captures_for_all_are_for_calls_too() {
    if !possible() {
        return;
    }
    let r =
        record(User::Kernel, &["--comm", "--ustack=2", "-e", "getppid,execve", "-e", "begin"], &["sh", "-c", "exit 0"]);
    let all = calls(&r);
    assert!(all.iter().any(|c| c["name"] == "getppid"), "{all:?}");
    assert!(all.iter().all(|c| c["args"]["comm"].is_string() && c["ustack"].is_array()), "{all:?}");
}

#[test]
fn the_ptrace_backend_refuses_captures_of_the_kernel_in_one_line() {
    let args = ["record", "--backend", "ptrace", "-e", "openat kstack=4", "true"];
    let out = lab::run(&mut lab::trapline(User::Ptrace, &args));
    assert_eq!((out.code(), out.stderr.lines().count()), (125, 1), "{}", out.stderr);
    assert!(out.stderr.contains("only the kernel backend captures stacks"), "{}", out.stderr);
    if lab::has("setpriv") && lab::is_root() {
        let out = lab::run(&mut lab::trapline(User::Nobody, &["record", "-e", "openat comm", "true"]));
        assert_eq!((out.code(), out.stderr.lines().count()), (125, 1), "{}", out.stderr);
        assert!(out.stderr.contains("only the kernel backend"), "{}", out.stderr);
    }
}
