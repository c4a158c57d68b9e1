//! The programs are taken by this kernel's verifier. Needs bpf(2).

use engine::backend::kernel::load::{load, load_filtered};
use engine::capture::Limits;
use engine::captures::Captures;
use engine::enabling::call_captures;
use engine::plan::{Backend, OnFull, Plan};
use engine::select::Calls;
use engine::target::Target;
use testkit::skip;

fn plan(calls: Calls, string: usize) -> Plan {
    Plan {
        probes: Vec::new(),
        functions: None,
        call_filters: Vec::new(),
        call_enablings: Vec::new(),
        former_calls: Vec::new(),
        refiltered: false,
        call_captures: Vec::new(),
        unwind: Default::default(),
        copied_stack: 0,
        measure: false,
        target: Target::Pids(vec![]),
        calls,
        follow: true,
        limits: Limits { string, text: 0, verbose: false, keep: Default::default() },
        fd_names: false,
        fd_details: false,
        seccomp: true,
        on_full: OnFull::Drop,
        buffer: 1 << 16,
        backend: Backend::Auto,
        named: false,
        paused: false,
        notice_ms: 200,
        filter: None,
    }
}

#[test]
fn the_verifier_takes_the_programs() {
    if sys::process::euid() != 0 {
        return skip("root", "bpf(2) needs privilege");
    }
    for calls in [Calls::all(), Calls::parse("openat,close").unwrap()] {
        for target in [Target::Pids(vec![]), Target::All { left_out: vec![] }] {
            match load(&Plan { target, ..plan(calls.clone(), 32) }) {
                Ok(l) => assert!(l.iterator.is_some(), "the iterator was rejected"),
                Err(e) => panic!("{e}"),
            }
        }
        for target in [Target::Pids(vec![]), Target::All { left_out: vec![] }] {
            let plan = Plan { target, named: true, paused: true, ..plan(calls.clone(), 32) };
            let loaded = load(&plan).unwrap_or_else(|e| panic!("{e}"));
            assert!(loaded.rows_of_calls.is_some());
        }
    }
    // With captures: of all calls, of few, in sessions that take orders.
    let captures = Captures { kstack: 127, ustack: 127, comm: true };
    for (calls, named) in [("all", false), ("all", true), ("openat,close", false), ("mmap", true)] {
        let calls = Calls::parse(calls).unwrap();
        let call_captures = call_captures(&[], captures, &calls).unwrap();
        if let Err(e) = load(&Plan { call_captures, named, fd_names: !named, ..plan(calls, 4000) }) {
            panic!("{e}");
        }
    }
    // With names of descriptors, and with what they lead to.
    for details in [false, true] {
        if let Err(e) = load(&Plan { fd_names: true, fd_details: details, ..plan(Calls::all(), 32) }) {
            panic!("{e}");
        }
    }
}

/// A filter for every call that it suits.
fn filters(text: &str) -> Vec<(u32, lang::Filter)> {
    let parsed = lang::filter::parse(text, &[]).unwrap_or_else(|e| panic!("{}", e.block("", text)));
    let numbers = 0..events::generated::X86_64.len() as u32;
    numbers.filter_map(|nr| Some((nr, parsed.check(events::registry::by_number(nr.into())?).ok()?))).collect()
}

#[test]
fn the_verifier_takes_long_filters() {
    if sys::process::euid() != 0 {
        return skip("root", "bpf(2) needs privilege");
    }
    let names = (0..150).map(|i| format!("args.filename == \"/some/where/with/a/name/{i}\""));
    let numbers = (0..500).map(|i| format!("pid == {i}"));
    let sum = (0..60).map(|i| format!("(tid % {} > 2)", i + 3)).collect::<Vec<_>>().join(" + ") + " > 7";
    for text in [names.collect::<Vec<_>>().join(" || "), numbers.collect::<Vec<_>>().join(" || "), sum] {
        let calls = Calls::parse("openat,execve,chdir").unwrap();
        load_filtered(&plan(calls, 32), filters(&text)).unwrap_or_else(|e| panic!("{}…: {e}", &text[..60]));
    }
}

#[test]
fn the_verifier_takes_filters() {
    if sys::process::euid() != 0 {
        return skip("root", "bpf(2) needs privilege");
    }
    // What this kernel takes of the simplest programs it takes of all.
    let own = load(&plan(Calls::parse("openat").unwrap(), 32)).unwrap_or_else(|e| panic!("{e}")).kernel_rings;
    for (text, calls) in [
        ("pid == 1 && uid == 0 && dur > 1ms", "openat,close"),
        ("retval < 0 && comm == \"cat\"", "all"),
        ("nsecs % 7 == (cpu ? -tid : dur / pid)", "all"),
        (
            "startswith(args.filename, \"/etc/\") || args.filename == \"/usr/lib/locale/locale-archive\"",
            "openat,execve",
        ),
        ("args.filename != \"/bin/true\" && retval == 0", "execve,execveat"),
        ("args.buf == \"/tmp\"", "getcwd"),
        ("args.flags & 1 && args.flags / 3 != 2", "all"),
        ("args.fd == 3", "all"),
    ] {
        let list = filters(text);
        let calls = if calls == "all" { Calls::all() } else { Calls::parse(calls).unwrap() };
        assert!(!list.is_empty(), "{text}");
        let loaded = load_filtered(&plan(calls, 32), list).unwrap_or_else(|e| panic!("{text}: {e}"));
        assert_eq!(loaded.kernel_rings, own, "{text}");
    }
}
