//! What this machine allows, and why not.

use sys::{proc, process, seccomp};

/// One line of the report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What was looked at.
    pub what: String,
    /// Whether it works.
    pub ok: bool,
    /// What that means, and what would change it.
    pub detail: String,
}

fn finding(what: &str, ok: bool, detail: impl Into<String>) -> Finding {
    Finding { what: what.into(), ok, detail: detail.into() }
}

const CAP_SYS_PTRACE: u64 = 1 << 19;

/// Looks at the machine.
pub fn examine() -> Vec<Finding> {
    let root = process::euid() == 0;
    let can_ptrace = proc::effective_capabilities() & CAP_SYS_PTRACE != 0;
    let mut out = vec![finding("kernel", true, format!("Linux {}", proc::kernel_release()))];
    out.push(finding(
        "user",
        true,
        if root { "root".to_string() } else { format!("uid {}: an ordinary user", process::euid()) },
    ));
    out.push(start_command());
    out.push(attach(can_ptrace));
    let filter = seccomp::available();
    out.push(finding(
        "seccomp filter",
        filter,
        if filter {
            "calls that are not selected run free (trace -e …)"
        } else {
            "this kernel has no RET_TRACE: every call stops, selected or not"
        },
    ));
    out.push(finding(
        "names of other users' processes",
        can_ptrace,
        if can_ptrace {
            "all of /proc can be read"
        } else {
            "only your own processes can be looked at (run as root for all)"
        },
    ));
    out.push(finding("kernel backend (eBPF)", false, "not in this build: system calls are traced through ptrace"));
    out.push(finding("agent backend", false, "not in this build"));
    out
}

/// Whether a command can be traced: tried, not guessed, because sandboxes forbid ptrace in many ways.
fn start_command() -> Finding {
    match sys::probe::ptrace_child() {
        Ok(info) => finding(
            "trace a command",
            true,
            if info {
                "ptrace works: trapline trace -- CMD"
            } else {
                "ptrace works, but PTRACE_GET_SYSCALL_INFO (Linux 5.3) is missing"
            },
        ),
        Err(e) => finding(
            "trace a command",
            false,
            format!(
                "ptrace is refused: {e} (a container or sandbox may forbid it: --cap-add=SYS_PTRACE, or another seccomp profile)"
            ),
        ),
    }
}

fn attach(can_ptrace: bool) -> Finding {
    let scope = proc::yama_scope();
    let what = "attach to a process (-p)";
    match (scope, can_ptrace) {
        (Some(3), _) => finding(what, false, "kernel.yama.ptrace_scope is 3: nobody may attach until the next boot"),
        (_, true) => finding(what, true, "any process"),
        (None | Some(0), false) => finding(what, true, "your own processes (run as root for others)"),
        (Some(1), false) => finding(
            what,
            false,
            "kernel.yama.ptrace_scope is 1: only children (run as root, or: sysctl kernel.yama.ptrace_scope=0)",
        ),
        (Some(n), false) => {
            finding(what, false, format!("kernel.yama.ptrace_scope is {n}: only with CAP_SYS_PTRACE (run as root)"))
        }
    }
}
