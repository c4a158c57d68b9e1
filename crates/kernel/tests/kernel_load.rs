//! The programs are taken by this kernel's verifier. Needs bpf(2).

use engine::capture::Limits;
use engine::capture::captures::Captures;
use engine::error::Error;
use engine::plan::{Backend, OnFull, Plan};
use engine::request::call_enabling::call_captures;
use engine::request::enabling::of_calls;
use engine::request::select::Calls;
use engine::target::Target;
use events::layout::ID;
use kernel::load::{begin_with, load, load_filtered};
use kernel::rings_of_calls;
use std::io::Write;
use std::os::fd::AsRawFd;
use std::process::{Command, Stdio};
use testkit::skip;

fn plan(calls: Calls, string: usize) -> Plan {
    Plan {
        enablings: of_calls(&calls),
        functions: None,
        refiltered: false,
        call_captures: Vec::new(),
        unwind: Default::default(),
        samples_beside: None,
        copied_stack: 0,
        callers: None,
        measure: false,
        no_duration: false,
        target: Target::Pids(vec![]),
        follow: true,
        limits: Limits { string, text: 0, verbose: false, keep: Default::default() },
        fd_names: false,
        fd_details: false,
        seccomp: true,
        kill_on_exit: false,
        on_full: OnFull::Drop,
        buffer: 1 << 16,
        buffer_is_asked: true,
        backend: Backend::Auto,
        named: false,
        paused: false,
        notice_ms: 200,
        slots: None,
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
    // Without programs at entry, and so without an iterator.
    for calls in ["all", "openat,close", "ioctl,poll,execve,read,write"] {
        let calls = Calls::parse(calls).unwrap();
        for (target, named) in
            [(Target::Pids(vec![]), false), (Target::All { left_out: vec![] }, false), (Target::Pids(vec![]), true)]
        {
            let fd_names = calls.is_all() && !named;
            let plan = Plan { target, named, no_duration: true, fd_names, ..plan(calls.clone(), 32) };
            let loaded = load(&plan).unwrap_or_else(|e| panic!("{e}"));
            assert!(loaded.iterator.is_none() && !loaded.sources.iter().any(|(at, _)| at.contains("sys_enter")));
        }
    }
    // With captures: of all calls, of few, in sessions that take orders.
    let captures = Captures { kstack: 127, ustack: 127, comm: true, ..Captures::default() };
    for (calls, named) in [("all", false), ("all", true), ("openat,close", false), ("mmap", true)] {
        let calls = Calls::parse(calls).unwrap();
        let call_captures = call_captures(&[], captures, &calls).unwrap();
        for no_duration in [false, true] {
            let call_captures = call_captures.clone();
            let plan = Plan { call_captures, named, no_duration, fd_names: !named, ..plan(calls.clone(), 4000) };
            if let Err(e) = load(&plan) {
                panic!("{e}");
            }
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
        ("startswith(comm, \"a-long-name\") && pid * tid - (tid * 3 - pid * tid) != cpu * (pid + tid)", "all"),
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

/// A kernel that refuses programs which write rings themselves, after it has taken everything else.
#[test]
fn where_rings_of_programs_are_refused_the_kernel_s_have_all_events() {
    if sys::process::euid() != 0 {
        return skip("root", "bpf(2) needs privilege");
    }
    const CALLS: usize = 300;
    for calls in ["kill", "all"] {
        let plan = plan(Calls::parse(calls).unwrap(), 32);
        let mut tried = Vec::new();
        let begun = rings_of_calls::begin(&plan, |why| {
            tried.push(why);
            let begun = begin_with(&plan, Vec::new(), None, why)?;
            match why {
                None => Err(Error::failed("a program", "refused", "nothing")),
                Some(_) => Ok(begun),
            }
        });
        let (mut loaded, _) = begun.unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(tried, [None, Some(rings_of_calls::REFUSED)]);
        assert_eq!(loaded.kernel_rings, Some(rings_of_calls::REFUSED));
        let script = format!("read go; i=0; while [ $i -lt {CALLS} ]; do i=$((i+1)); kill -0 $$; done");
        let mut shell = Command::new("sh").args(["-c", &script]).stdin(Stdio::piped()).spawn().expect("sh");
        let pid = sys::process::pidfd(shell.id() as i32, false).expect("a pidfd");
        loaded.tasks.update(&pid.as_raw_fd().to_le_bytes(), &[0; bpf::syscalls::state::SIZE as usize], 0).unwrap();
        shell.stdin.take().expect("stdin").write_all(b"go\n").expect("sh reads");
        assert!(shell.wait().expect("sh").success());
        let kill = events::registry::by_name("kill").expect("kill").id;
        let (mut kills, mut all) = (0, 0);
        for ring in &mut loaded.rings {
            all += ring.drain(|event| kills += usize::from(event[ID..ID + 2] == kill.to_le_bytes()));
        }
        assert_eq!((kills, loaded.counts()), (CALLS, (all as u64, 0)), "{calls}");
    }
}
