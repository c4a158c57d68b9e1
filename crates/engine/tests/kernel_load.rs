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
        return;
    }
    let at = std::time::Instant::now();
    match load(&plan(Calls::all(), 32)) {
        Ok(l) => {
            eprintln!("{:?}", at.elapsed());
            drop(l)
        }
        Err(e) => panic!("{e}"),
    }
}
