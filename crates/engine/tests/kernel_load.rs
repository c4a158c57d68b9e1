//! The programs are taken by this kernel's verifier. Needs bpf(2).

use engine::backend::kernel::load::load;
use engine::capture::Limits;
use engine::plan::{Backend, OnFull, Plan, Target};
use engine::select::Calls;

fn plan(calls: Calls, string: usize) -> Plan {
    Plan {
        target: Target::Pids(vec![]),
        calls,
        follow: true,
        limits: Limits { string, verbose: false },
        fd_names: false,
        fd_details: false,
        seccomp: true,
        on_full: OnFull::Drop,
        buffer: 1 << 16,
        backend: Backend::Auto,
        notice_ms: 200,
    }
}

#[test]
fn the_verifier_takes_the_programs() {
    if sys::process::euid() != 0 {
        return skip("root", "bpf(2) needs privilege");
    }
    for calls in [Calls::all(), Calls::parse("openat,close").unwrap()] {
        match load(&plan(calls, 32)) {
            Ok(l) => assert!(l.iterator.is_some(), "the iterator was rejected"),
            Err(e) => panic!("{e}"),
        }
    }
}

/// Says that the test did not run, and has it counted.
fn skip(tier: &str, why: &str) {
    use std::io::Write;
    println!("skipped ({tier}): {why}");
    if let Some(path) = std::env::var_os("TRAPLINE_SKIPS")
        && let Ok(mut f) = std::fs::OpenOptions::new().append(true).create(true).open(path)
    {
        let _ = writeln!(f, "{tier}\tthe_verifier_takes_the_programs\t{why}");
    }
}
