//! What works on this machine, why the rest does not, and what to do about it.

use collector::{self, self_test};
use engine::plan::Backend;
use engine::rights;
use std::io;
use sys::bpf::probe::{self, Features};
use sys::tracefs::Place;
use sys::{caps, proc, process, seccomp};

/// One line of the report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What was examined.
    pub what: String,
    /// Whether it works.
    pub ok: bool,
    /// What the result means.
    pub detail: String,
    /// What would change it, where somebody can: what to do, and what for.
    pub todo: Option<String>,
}

impl Finding {
    fn or_do(self, todo: impl Into<String>) -> Finding {
        Finding { todo: (!self.ok).then(|| todo.into()), ..self }
    }
}

fn finding(what: &str, ok: bool, detail: impl Into<String>) -> Finding {
    Finding { what: what.into(), ok, detail: detail.into(), todo: None }
}

/// What a backend never shows, on no machine.
pub struct Limit {
    /// The backend.
    pub backend: &'static str,
    /// What it is about.
    pub what: &'static str,
    /// What is not shown, or not done.
    pub detail: &'static str,
}

/// The limits of all backends.
pub fn limits() -> impl Iterator<Item = Limit> {
    let backends = [Backend::Kernel, Backend::Perf, Backend::Agent, Backend::Ptrace];
    backends.into_iter().flat_map(|backend| {
        backend.lost().iter().map(move |(what, detail)| Limit { backend: backend.name(), what, detail })
    })
}

/// What to do next, the most useful last.
pub fn next(findings: &[Finding]) -> Vec<String> {
    let mut steps: Vec<String> = Vec::new();
    for todo in findings.iter().filter_map(|f| f.todo.clone()) {
        if !steps.contains(&todo) {
            steps.push(todo);
        }
    }
    if findings.iter().any(|f| f.what == TRACE && f.ok) {
        steps.push(
            "trapline trace -- CMD shows what a command does; 'trapline help' has other questions and their answers"
                .into(),
        );
    }
    steps
}

/// Whether a command can be traced at all.
const TRACE: &str = "trace a command";

/// Examines the machine.
pub fn examine() -> Vec<Finding> {
    let root = process::euid() == 0;
    let held = caps::effective().unwrap_or(0);
    let can_ptrace = held & caps::SYS_PTRACE != 0;
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
            "calls that are not selected run without a stop (trace -e …)"
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
            "only your own processes can be read (run as root for all)"
        },
    ));
    let found = probe::features();
    out.push(capabilities(held));
    out.extend(switches(may_bpf(held)));
    out.extend(bpf(&found));
    out.push(tracefs());
    out.push(kernel_backend(&found));
    out.push(match &found.loops {
        Ok(()) => finding(
            "user stacks",
            true,
            "walked in the kernel by tables made from .eh_frame, or by frame pointers (--unwind)",
        ),
        Err(e) => finding(
            "user stacks",
            false,
            format!("only of calls, by ptrace: {e} (Linux 5.17 walks them in the kernel)"),
        ),
    });
    out.push(match rights::copied_stacks() {
        Ok(()) => finding(
            "perf backend (samples)",
            true,
            "trapline profile -- CMD, -p PID of your own: stacks are copied and walked by tables",
        ),
        Err(why) => finding("perf backend (samples)", false, why),
    });
    out.push(profile());
    out.extend(agent_backend());
    let (taken, why) = Backend::Auto.taken(None, false);
    out.push(finding("trapline trace takes", true, format!("{} ({why})", taken.name())));
    out
}

/// Functions: where the agent's file can lie, and whether the agent works, which is tried.
fn agent_backend() -> Vec<Finding> {
    let row = |what: &str, tried: Result<String, String>| match tried {
        Ok(good) => finding(what, true, good),
        Err(why) => finding(what, false, why),
    };
    let mut out = vec![row("agent: its file", self_test::file())];
    let switch = std::fs::read_to_string("/proc/sys/vm/memfd_noexec");
    if let Ok(value) = switch {
        let detail = format!("{}: the agent's memory is never executed, so any value does", value.trim());
        out.push(finding("vm.memfd_noexec", true, detail));
    }
    let works = collector::possible().and_then(|()| self_test::run());
    let usual = "trapline graph -- CMD, record -e uprobe:, usdt: -- CMD: dynamically linked programs, without root";
    out.push(row("agent backend (functions)", works.map(|tried| format!("{usual} ({tried})"))));
    out
}

/// What takes samples.
fn profile() -> Finding {
    let what = "trapline profile takes";
    match (rights::kernel_backend_is_usable(), rights::copied_stacks()) {
        (Ok(()), _) => finding(what, true, "kernel (auto: bpf(2) may be used)"),
        (Err(why), Ok(())) => finding(what, true, format!("perf (auto: {why})")),
        (Err(kernel), Err(perf)) => finding(what, false, format!("nothing: {kernel}; {perf}")),
    }
}

/// Whether these capabilities are enough for the kernel backend.
fn may_bpf(held: u64) -> bool {
    let both = caps::BPF | caps::PERFMON;
    held & both == both || held & caps::SYS_ADMIN != 0
}

fn capabilities(held: u64) -> Finding {
    let all = [("CAP_BPF", caps::BPF), ("CAP_PERFMON", caps::PERFMON), ("CAP_SYS_ADMIN", caps::SYS_ADMIN)];
    let said = |(name, bit): (&str, u64)| format!("{name} {}", if held & bit != 0 { "yes" } else { "no" });
    let mut detail = all.map(said).join(", ");
    if !may_bpf(held) {
        detail += ": they allow the kernel backend";
    } else if process::ruid() != 0 {
        detail += "; not for root: your own tasks as far as ptrace would allow it, no -a; setuid programs and those that you may not \
                   read are let go; no stacks, functions or addresses of the kernel, and few tracepoints";
    }
    let own = std::env::current_exe().map_or("trapline".into(), |path| path.display().to_string());
    finding("capabilities for bpf(2)", may_bpf(held), detail).or_do(format!(
        "run as root, or: setcap cap_bpf,cap_perfmon+ep {own}: the kernel backend, at a sixtieth of the cost, and probes; users who may run \
         it see what ptrace would let them see"
    ))
}

/// The kernel's settings (sysctl): they matter to users without the capabilities, and one of them to all but root.
fn switches(capable: bool) -> [Finding; 2] {
    let bpf = proc_number("unprivileged_bpf_disabled");
    let perf = proc_number("perf_event_paranoid");
    let shut_out = rights::kernel_backend();
    let told = |value: Option<i64>, bars: bool, what: &str| {
        let value = value.map_or("not there".to_string(), |v| v.to_string());
        match (capable, bars) {
            (true, _) => format!("{value}: has no effect with these capabilities"),
            (false, true) => format!("{value}: {what}"),
            (false, false) => format!("{value}: tracing programs need the capabilities anyway"),
        }
    };
    let (no_bpf, no_perf) = (bpf.is_some_and(|v| v > 0), perf.is_some_and(|v| v > -1));
    [
        finding("kernel.unprivileged_bpf_disabled", capable || !no_bpf, told(bpf, no_bpf, "bpf(2) needs CAP_BPF")),
        finding(
            "kernel.perf_event_paranoid",
            shut_out.is_ok() && (capable || !no_perf),
            shut_out.err().unwrap_or_else(|| told(perf, no_perf, "tracepoints need CAP_PERFMON")),
        ),
    ]
}

fn proc_number(name: &str) -> Option<i64> {
    std::fs::read_to_string(format!("/proc/sys/kernel/{name}")).ok()?.trim().parse().ok()
}

/// Each feature of bpf(2), as it was found by using it.
fn bpf(found: &Features) -> Vec<Finding> {
    let row = |what: &str, tried: &io::Result<()>, good: &str, without: &str| match tried {
        Ok(()) => finding(what, true, good),
        Err(e) => finding(what, false, format!("{e}: {without}")),
    };
    let needed = "needed by the kernel backend";
    vec![
        row("/sys/kernel/btf/vmlinux", &found.types, "the kernel's types can be read", needed),
        row("bpf: tracing programs", &found.program, "one was loaded", needed),
        row("bpf: loops", &found.loops, "a function was called back", needed),
        row("bpf: typed tracepoints", &found.typed_tracepoint, "one was attached", needed),
        row("bpf: task storage", &found.task_storage, "made and written", needed),
        row("bpf: ring buffer", &found.ring, "made and mapped", needed),
        row("bpf: task iterator", &found.task_iterator, "opened", "no notices of calls in flight (kernel backend)"),
        row(
            "pidfds of threads",
            &found.thread_pidfd,
            "-p reaches every thread",
            "-p of the kernel backend reaches every thread only in the initial pid namespace, elsewhere only first threads (needs Linux 6.9)",
        ),
    ]
}

fn tracefs() -> Finding {
    let without = "even a few selected calls use the tracepoints of all calls";
    match sys::tracefs::place() {
        Ok(Place::Mounted(dir)) => finding("tracefs", true, format!("{dir} can be read: tracepoints of single calls")),
        Ok(place) => finding("tracefs", true, format!("{place}: tracepoints of single calls")),
        Err(e) if e.kind() == io::ErrorKind::PermissionDenied => {
            finding("tracefs", false, format!("only root may read it: {without}"))
        }
        Err(e) => finding("tracefs", false, format!("{e}: {without}"))
            .or_do("mount -t tracefs tracefs /sys/kernel/tracing: tracepoints of single calls"),
    }
}

fn kernel_backend(found: &Features) -> Finding {
    let needed = [&found.program, &found.types, &found.typed_tracepoint, &found.task_storage, &found.ring];
    let what = "kernel backend (eBPF)";
    let all = if rights::is_root() {
        "trapline trace -- CMD, -p PID, -a"
    } else {
        "trapline trace -- CMD, -p PID of your own"
    };
    match (rights::kernel_backend(), needed.iter().find_map(|r| r.as_ref().err())) {
        (Err(why), _) => finding(what, false, why),
        (_, Some(e)) => finding(what, false, rights::refusal(e)),
        _ => finding(what, true, all),
    }
}

/// Whether a command can be traced: tried, not guessed, because sandboxes forbid ptrace in many ways.
fn start_command() -> Finding {
    match sys::probe::ptrace_child() {
        Ok(info) => finding(
            TRACE,
            true,
            if info {
                "ptrace works: trapline trace -- CMD"
            } else {
                "ptrace works, but PTRACE_GET_SYSCALL_INFO (Linux 5.3) is missing"
            },
        ),
        Err(e) => finding(TRACE, false, format!("ptrace is refused: {e}")).or_do(
            "allow ptrace, which a container or sandbox may forbid: --cap-add=SYS_PTRACE, or another seccomp profile",
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
        (Some(1), false) => finding(what, false, "kernel.yama.ptrace_scope is 1: only children")
            .or_do("run as root, or: sysctl kernel.yama.ptrace_scope=0: to attach to your own processes (-p)"),
        (Some(n), false) => {
            finding(what, false, format!("kernel.yama.ptrace_scope is {n}: only with CAP_SYS_PTRACE (run as root)"))
        }
    }
}
