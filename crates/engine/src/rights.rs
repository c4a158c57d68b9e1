//! What a user who is not root may see by way of trapline's own capabilities (`setcap cap_bpf,cap_perfmon+ep`).
//!
//! With those capabilities programs see every task and every address of the kernel, so a trapline that has them from its file would
//! lend them to every user who may run it. This file decides everything that it shows such a user:
//!
//! ```text
//! whose     tasks of the user alone, which ptrace(2) would let that user trace: the same user, dumpable, no capabilities of their own.
//!           Targets are checked before and after the attach; a task that executes a program of another kind is released by the
//!           programs ([`bpf::syscalls::Rights`])
//! what      memory and registers of those tasks; of the kernel's records what is about the task itself
//! never     addresses of the kernel, its functions and their arguments, what records say of other tasks
//! ```
//!
//! What is not named here is refused: a new provider, a new tracepoint, a new argument.

pub mod refusal;

use crate::capture::captures::Captures;
use crate::error::{Error, Result};
use crate::target::Target;
use lang::Filter;
use lang::filter::ir::{Leaf, Value};
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::OnceLock;
use sys::perf::{self, Attr};
use sys::{caps, proc, process};

/// Whether the user who started trapline may see everything.
pub fn is_root() -> bool {
    process::ruid() == 0
}

/// Tracepoints whose records are about the task that reaches them, and the fields of theirs that are. `*`: all.
const TRACEPOINTS: &[(&str, &[&str])] = &[
    ("exceptions:page_fault_user", &["*"]),
    ("raw_syscalls:*", &["*"]),
    ("sched:sched_process_exec", &["*"]),
    ("sched:sched_process_exit", &["*"]),
    ("sched:sched_process_fork", &["*"]),
    ("sched:sched_switch", &["prev_comm", "prev_pid", "prev_prio", "prev_state"]),
    ("signal:signal_deliver", &["*"]),
    ("syscalls:*", &["*"]),
    ("task:task_newtask", &["*"]),
    ("task:task_rename", &["*"]),
];

/// What may be seen of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sight {
    /// Everything.
    All,
    /// The arguments of these names; `*`: all.
    Only(&'static [&'static str]),
    /// That it happened, but not in which task.
    Anonymous,
}

impl Sight {
    /// Whether an argument may be seen.
    pub fn has(self, argument: &str) -> bool {
        match self {
            Sight::All => true,
            Sight::Only(names) => names.iter().any(|n| *n == "*" || *n == argument),
            Sight::Anonymous => false,
        }
    }
}

/// What an ordinary user may see of a probe; none: nothing.
fn of_ordinary(name: &str) -> Option<Sight> {
    let (provider, rest) = name.split_once(':').unwrap_or((name, ""));
    match provider {
        // Registers and memory of the task, or nothing but that it was hit.
        "syscall" | "uprobe" | "uretprobe" | "usdt" | "profile" | "blocked" | "software" | "hardware" | "begin"
        | "end" => Some(Sight::All),
        // It ticks whatever task is there.
        "interval" => Some(Sight::Anonymous),
        "tracepoint" => {
            let known = |pattern: &str| match pattern.strip_suffix('*') {
                Some(category) => rest.starts_with(category),
                None => rest == pattern,
            };
            TRACEPOINTS.iter().find(|t| known(t.0)).map(|t| Sight::Only(t.1))
        }
        _ => None,
    }
}

/// Why an ordinary user cannot use a probe, or not all of it; `None` where they can.
pub fn note(probe: &str) -> Option<&'static str> {
    match of_ordinary(probe) {
        None if probe.starts_with("watchpoint:") || probe.starts_with("asyncwatchpoint:") => {
            Some("for root only: it takes one of the four debug registers of every processor from everybody")
        }
        None => Some("for root only: it shows the kernel or other users' tasks"),
        Some(Sight::Anonymous) => Some("for root only: the task in which it fires"),
        Some(Sight::Only(names)) if names != ["*"] => Some("for root only: what it shows of other tasks"),
        Some(_) => None,
    }
}

fn refuse(probe: &str, what: &str, todo: &str) -> Error {
    let user = process::ruid();
    Error::failed(format!("-e {probe}"), format!("{what} for root only, and uid {user} started trapline"), todo)
}

/// What the user who started trapline may see of a probe that is enabled with these captures.
///
/// # Errors
/// The probe or a capture is for root.
pub fn of_probe(probe: &str, captures: Captures) -> Result<Sight> {
    match is_root() {
        true => Ok(Sight::All),
        false => ordinary(probe, captures),
    }
}

fn ordinary(probe: &str, captures: Captures) -> Result<Sight> {
    let sight = of_ordinary(probe).ok_or_else(|| {
        let provider = probe.split(':').next().unwrap_or_default();
        let what = match provider {
            "tracepoint" => "what this tracepoint shows of the kernel or of other tasks is",
            // A session that takes all of them leaves none for anybody else's debugger.
            "watchpoint" | "asyncwatchpoint" => "the debug registers of all processors are",
            _ => "functions and data of the kernel are",
        };
        refuse(probe, what, "run trapline as root")
    })?;
    if captures.kstack > 0 {
        return Err(refuse(probe, "stacks of the kernel are", "leave out kstack, or run trapline as root"));
    }
    if sight == Sight::Anonymous && captures != (Captures { cpu: captures.cpu, ..Captures::default() }) {
        let what = "it fires in any task, and what that task does is";
        return Err(refuse(probe, what, "leave out ustack and comm, or use profile: for your own tasks"));
    }
    Ok(sight)
}

/// Refuses a filter that asks who is there, of a probe whose task may not be seen.
pub fn of_filter(probe: &str, sight: Sight, filter: &Filter) -> Result<()> {
    let needs = filter.needs();
    let mut who = needs.comm || needs.uid || needs.gid;
    for part in filter.parts() {
        part.cond.leaves(&mut |leaf| who |= matches!(leaf, Leaf::Value(Value::Pid | Value::Tid)));
    }
    match sight {
        Sight::Anonymous if who => {
            Err(refuse(probe, "the task in which it fires is", "leave the task out of the filter"))
        }
        _ => Ok(()),
    }
}

/// kernel.perf_event_paranoid from which on an ordinary user has no tracing whatsoever, capabilities of a file or not. The kernel
/// itself knows values up to 2; distributions use 3 and 4 to exclude ordinary users, and it is the one switch that an administrator
/// has.
const SHUT_OUT: i32 = 3;

/// Whether the administrator lets the user who started trapline use the kernel backend. An error gives the reason.
pub fn kernel_backend() -> std::result::Result<(), String> {
    shut_out(is_root(), sys::perf::paranoid())
}

fn shut_out(root: bool, paranoid: Option<i32>) -> std::result::Result<(), String> {
    match paranoid {
        Some(n) if n >= SHUT_OUT && !root => {
            Err(format!("kernel.perf_event_paranoid is {n}, which allows only root (sysctl, or run as root)"))
        }
        _ => Ok(()),
    }
}

/// Whether this machine and the user who started trapline can use the kernel backend, as it was when this was first asked. An error gives
/// the reason and what would change it.
pub fn kernel_backend_is_usable() -> std::result::Result<(), String> {
    static ANSWER: OnceLock<std::result::Result<(), String>> = OnceLock::new();
    let ask = || {
        kernel_backend()?;
        sys::bpf::probe::usable().map_err(|e: io::Error| refusal(&e))
    };
    ANSWER.get_or_init(ask).clone()
}

/// Whether the user who started trapline may take samples with copied stacks (perf_event_open(2)). An error gives the reason and
/// what would change it.
pub fn copied_stacks() -> std::result::Result<(), String> {
    shut_out(is_root(), sys::perf::paranoid())?;
    let clock = Attr::new(perf::TYPE_SOFTWARE, perf::SW_CPU_CLOCK).period(1_000_000_000).sample_type(perf::sample::TID);
    let clock = clock.copy_user(8).flags(perf::bit::DISABLED | perf::bit::EXCLUDE_KERNEL | perf::bit::EXCLUDE_HV);
    match perf::Event::open(&clock, 0, -1) {
        Ok(_) => Ok(()),
        Err(e) => Err(format!("perf_event_open is refused: {e} (a container or sandbox may forbid it)")),
    }
}

/// Gives up the capabilities that trapline has from its file: what they would allow is not for the user who started it, and a command
/// that is forked with them cannot be traced by that user.
pub fn act_as_the_user() {
    let held = caps::effective().unwrap_or(0);
    if !is_root() && held != 0 && caps::drop_to(held & caps::FOR_PTRACE).is_ok() {
        let _ = process::make_dumpable();
    }
}

/// Opens a file that the user who started trapline names: with that user's rights, and not with those that trapline has from its file.
pub fn open(path: &Path) -> io::Result<File> {
    if is_root() { File::open(path) } else { caps::without(|| File::open(path))? }
}

/// Refuses targets that the real user could not trace with ptrace(2). Asked again when they are attached to: one may have become
/// another program meanwhile. From then on the eBPF programs check it.
pub fn of_targets(target: &Target) -> Result<()> {
    if is_root() {
        return Ok(());
    }
    let user = process::ruid();
    if let Err(why) = kernel_backend() {
        return Err(Error::failed("--backend kernel", why, "use --backend ptrace"));
    }
    match target {
        Target::Command(_) => Ok(()),
        Target::All { .. } => Err(Error::failed(
            "-a",
            format!("the whole machine is for root only, and uid {user} started trapline"),
            "run trapline as root; -p shows your own processes",
        )),
        Target::Pids(pids) => {
            let processes: Vec<i32> = pids.iter().map(|p| proc::process_of(*p).unwrap_or(*p)).collect();
            match process::first_refused(&processes) {
                Ok(None) => Ok(()),
                Ok(Some(pid)) => Err(Error::failed(
                    format!("-p {pid}"),
                    format!("uid {user} may not look into it (ptrace(2), access mode checking)"),
                    "run trapline as root, or name a process of your own",
                )),
                Err(e) => Err(Error::failed("-p", e.to_string(), "use --backend ptrace")),
            }
        }
    }
}

/// Why the kernel backend cannot be used, and what would change it.
pub fn refusal(e: &std::io::Error) -> String {
    match e.kind() {
        std::io::ErrorKind::PermissionDenied => {
            "bpf(2) is refused (run as root, or: setcap cap_bpf,cap_perfmon+ep trapline)".into()
        }
        std::io::ErrorKind::NotFound => {
            "this kernel has no type information, /sys/kernel/btf/vmlinux (CONFIG_DEBUG_INFO_BTF)".into()
        }
        std::io::ErrorKind::Unsupported => "this kernel has no bpf(2)".into(),
        _ => format!("bpf(2): {e}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sees(probe: &str) -> Option<Sight> {
        ordinary(probe, Captures::default()).ok()
    }

    #[test]
    fn what_is_not_named_is_refused() {
        for probe in [
            "kprobe:vfs_read",
            "fentry:vfs_read",
            "kretprobe:x",
            "fexit:x",
            "rawtracepoint:x",
            "watchpoint:0x1000:8:w",
            "new:x",
            "",
        ] {
            assert_eq!(sees(probe), None, "{probe}");
        }
        for record in ["kmem:kmalloc", "sched:sched_waking", "timer:timer_start", "signal:signal_generate", "*:x"] {
            assert_eq!(sees(&format!("tracepoint:{record}")), None, "{record}");
        }
    }

    #[test]
    fn of_records_about_two_tasks_one_is_seen() {
        let switch = sees("tracepoint:sched:sched_switch").unwrap();
        assert!(switch.has("prev_comm") && !switch.has("next_comm") && !switch.has("next_pid") && !switch.has("new"));
        assert!(sees("tracepoint:syscalls:sys_enter_openat").unwrap().has("filename"));
        assert!(note("tracepoint:sched:sched_switch").is_some() && note("tracepoint:raw_syscalls:sys_enter").is_none());
    }

    #[test]
    fn captures_of_the_kernel_and_of_strangers_are_refused() {
        let with = |probe: &str, kstack, ustack, comm| {
            ordinary(probe, Captures { kstack, ustack, comm, ..Captures::default() }).is_ok()
        };
        assert!(with("uprobe:/bin/sh:main", 0, 4, true) && with("profile:hz:99", 0, 4, true));
        assert!(!with("uprobe:/bin/sh:main", 1, 0, false) && !with("profile:hz:99", 4, 0, false));
        assert!(with("interval:ms:2", 0, 0, false));
        assert!(!with("interval:ms:2", 0, 1, false) && !with("interval:ms:2", 0, 0, true));
        let schema = events::registry::by_name("getppid").unwrap();
        let filter = |text: &str| lang::filter::parse(text, &[]).unwrap().check(schema).unwrap();
        for text in ["pid == 1", "nsecs > 1 && tid == 1", "comm == \"x\"", "uid == 0 || gid == 0"] {
            assert!(of_filter("interval:ms:2", Sight::Anonymous, &filter(text)).is_err(), "{text}");
            assert!(of_filter("profile:hz:1", Sight::All, &filter(text)).is_ok(), "{text}");
        }
        assert!(of_filter("interval:ms:2", Sight::Anonymous, &filter("nsecs > 1 && cpu == 0")).is_ok());
    }

    #[test]
    fn the_switch_of_the_administrator_binds_all_but_root() {
        for (root, paranoid, ok) in [(false, 3, false), (false, 4, false), (false, 2, true), (true, 4, true)] {
            assert_eq!(shut_out(root, Some(paranoid)).is_ok(), ok, "{root} {paranoid}");
        }
        assert!(shut_out(false, None).is_ok());
    }
}
