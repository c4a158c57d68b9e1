//! What a session does: targets, selection, limits, and which backend carries it out. Printable with `--explain`.

use crate::capture::Limits;
use crate::select::Calls;
use std::ffi::CString;
use sys::process::{Identity, Image};

/// What a full ring does to the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnFull {
    /// The target waits.
    Block,
    /// The event is dropped and counted.
    Drop,
}

/// Which backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backend {
    /// The first of kernel, agent, ptrace that can do what is asked.
    Auto,
    /// ptrace(2): always there, never loses.
    Ptrace,
    /// eBPF: a fraction of the cost, needs privilege.
    Kernel,
}

/// Whose events.
#[derive(Debug)]
pub enum Target {
    /// A command that the session starts.
    Command(Command),
    /// Processes that run already.
    Pids(Vec<i32>),
}

/// A command to start.
#[derive(Debug)]
pub struct Command {
    /// What to execute.
    pub image: Image,
    /// Its path, for messages.
    pub path: CString,
    /// Who it runs as, where that is not the caller.
    pub user: Option<Identity>,
}

/// The plan of a session.
#[derive(Debug)]
pub struct Plan {
    /// Whose events.
    pub target: Target,
    /// The calls whose events are wanted.
    pub calls: Calls,
    /// Children and new threads are traced too.
    pub follow: bool,
    /// How much memory is read per argument.
    pub limits: Limits,
    /// Names of descriptors are needed (`-y`, `-P`).
    pub fd_names: bool,
    /// So are the ends of sockets and device numbers (`-yy`).
    pub fd_details: bool,
    /// A seccomp filter may be put on the command.
    pub seccomp: bool,
    /// What a full ring does.
    pub on_full: OnFull,
    /// Bytes of the ring.
    pub buffer: usize,
    /// Backend asked for.
    pub backend: Backend,
    /// Calls longer than this get a notice, in ms; 0 for never.
    pub notice_ms: u32,
}

/// Calls whose events the descriptor table needs, whether they are shown or not.
const FD_CALLS: &[&str] = &[
    "open",
    "openat",
    "openat2",
    "creat",
    "close",
    "close_range",
    "dup",
    "dup2",
    "dup3",
    "fcntl",
    "pipe",
    "pipe2",
    "socket",
    "socketpair",
    "accept",
    "accept4",
    "connect",
    "bind",
    "listen",
    "recvmsg",
    "recvmmsg",
    "epoll_create",
    "epoll_create1",
    "eventfd",
    "eventfd2",
    "signalfd",
    "signalfd4",
    "timerfd_create",
    "inotify_init",
    "inotify_init1",
    "fanotify_init",
    "memfd_create",
    "memfd_secret",
    "userfaultfd",
    "perf_event_open",
    "bpf",
    "io_uring_setup",
    "pidfd_open",
    "pidfd_getfd",
    "open_by_handle_at",
    "open_tree",
    "fsopen",
    "fsmount",
    "fspick",
    "landlock_create_ruleset",
    "mq_open",
    "chdir",
    "fchdir",
    "execve",
    "execveat",
    "clone",
    "clone3",
    "fork",
    "vfork",
    "unshare",
];

impl Plan {
    /// The calls that the backend must see: those wanted, and those that the descriptor table needs.
    pub fn seen_calls(&self) -> Calls {
        let mut calls = self.calls.clone();
        if self.fd_names {
            for name in FD_CALLS {
                if let Some(s) = events::schema::by_name(name) {
                    calls.insert(s);
                }
            }
        }
        calls
    }

    /// Whether a filter is put on the command: only one that trapline starts, and only where some calls run free.
    pub fn filters(&self) -> bool {
        self.seccomp && self.follow && matches!(self.target, Target::Command(_)) && !self.seen_calls().is_all()
    }

    /// What will be done and what is lost, a line each; `why` this backend.
    pub fn explain(&self, why: &str) -> Vec<String> {
        let mut out = vec![format!("backend: {} ({why})", self.backend.name())];
        let seen = self.seen_calls();
        out.push(format!("calls: {} wanted, {} seen by the tracer", self.calls.len(), seen.len()));
        match self.backend {
            Backend::Kernel => explain_kernel(&mut out),
            _ => self.explain_ptrace(&seen, &mut out),
        }
        let per_cpu = if self.backend == Backend::Kernel { " per CPU" } else { "" };
        let buffer = format!("buffer: {} KiB{per_cpu}", self.buffer >> 10);
        out.push(buffer);
        out.push(match self.on_full {
            OnFull::Block => "full buffer: the target waits".into(),
            OnFull::Drop => "full buffer: events are dropped and counted".into(),
        });
        out.extend(self.backend.lost().iter().map(|(what, detail)| format!("lost: {what}: {detail}")));
        out
    }

    fn explain_ptrace(&self, seen: &Calls, out: &mut Vec<String>) {
        if self.filters() {
            out.push("seccomp: a filter lets all other calls run free; if the tracer process is killed, the command is killed with it (--no-seccomp avoids both)".into());
            if sys::process::euid() != 0 {
                out.push("  the filter sets no_new_privs: setuid programs run without their privilege, as under any tracer of yours".into());
            }
        } else if matches!(self.target, Target::Pids(_)) {
            out.push("seccomp: no filter, because a filter would outlive the attach: every call stops".into());
        } else if !self.follow {
            out.push("seccomp: no filter, because untraced children would inherit it".into());
        } else if seen.is_all() {
            out.push("seccomp: no filter, because every call is wanted".into());
        } else {
            out.push(
                "seccomp: no filter (--no-seccomp): every call stops, and the command survives the death of the tracer"
                    .into(),
            );
        }
        if matches!(self.target, Target::Pids(_)) {
            out.push(
                "attach: each thread is stopped once. A blocked call is restarted by the kernel and shown as one call"
                    .into(),
            );
        }
    }
}

/// How the kernel backend attaches, and what of it was found missing by trying.
fn explain_kernel(out: &mut Vec<String>) {
    out.push(
        "attach: up to four calls through their own tracepoints, where tracefs can be read, else all calls through typed ones"
            .into(),
    );
    out.push("  nothing stops, and nothing is left in the kernel when trapline ends".into());
    let found = sys::bpf::probe::features();
    if let Err(e) = found.task_iterator {
        out.push(format!("in flight: no notices of calls that run for long, because there is no task iterator: {e}"));
    }
    if found.thread_pidfd.is_err() {
        out.push("attach: threads cannot be named (Linux 6.9): -p sees the first thread of each process only".into());
    }
}

/// Whether `auto` may take the kernel backend. False: only `--backend kernel` does.
pub const AUTO_TAKES_KERNEL: bool = false;

impl Backend {
    /// The name that `--backend` takes.
    pub fn name(self) -> &'static str {
        match self {
            Backend::Auto => "auto",
            Backend::Ptrace => "ptrace",
            Backend::Kernel => "kernel",
        }
    }

    /// The backend that is taken, and why. `on_full`: what was asked for, if anything.
    pub fn taken(self, on_full: Option<OnFull>) -> (Backend, String) {
        match self {
            Backend::Auto if on_full == Some(OnFull::Block) => {
                (Backend::Ptrace, "auto: --on-full block, and only ptrace can make the target wait".into())
            }
            Backend::Auto => match sys::bpf::probe::usable() {
                Err(e) => (Backend::Ptrace, format!("auto: {}", refusal(&e))),
                Ok(()) if AUTO_TAKES_KERNEL => (Backend::Kernel, "auto: bpf(2) may be used".into()),
                Ok(()) => (Backend::Ptrace, "auto; --backend kernel would work too, at a fraction of the cost".into()),
            },
            asked => (asked, "as asked for".into()),
        }
    }

    /// What a full ring does where nothing was asked for.
    pub fn on_full(self) -> OnFull {
        if self == Backend::Kernel { OnFull::Drop } else { OnFull::Block }
    }

    /// What it does not show or costs: what, and how.
    pub fn lost(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Backend::Kernel => &[
                ("stops", "a thread group stopped by SIGSTOP is not shown"),
                ("long buffers", "cut after 4000 bytes, whatever -s says"),
                ("arrays of messages", "recvmmsg and sendmmsg show the address"),
                ("waiting", "the target is never made to wait: a full buffer drops and counts"),
            ],
            Backend::Auto | Backend::Ptrace => &[
                ("time", "two stops per call: a call takes some 50 times as long"),
                (
                    "attach (-p)",
                    "epoll_wait, semop, semtimedop, msgrcv, msgsnd, sigtimedwait, io_getevents and reads of inotify \
                     fail with EINTR on any stop, see signal(7)",
                ),
                (
                    "cpu",
                    "at entry from the thread's rseq area, where it has one and memory is read anyway; at exit unknown: \
                     the kernel updates rseq only after the exit stop",
                ),
            ],
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
