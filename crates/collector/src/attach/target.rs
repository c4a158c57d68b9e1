//! Whether a process can be attached to, and what to say where it cannot.

use super::{failed, permits};
use engine::error::{Error, Result};
use std::io;
use sys::maps::{self, Map};
use sys::{proc, process};

/// What is left to do where the agent cannot be.
pub const UPROBES: &str = "use -e 'uprobe:PROGRAM:FUNCTION' as root, with record";

/// Looks at a process, and returns what it has mapped.
///
/// # Errors
/// It cannot have the agent.
pub fn check(pid: i32) -> Result<Vec<Map>> {
    if pid == process::own_pid() {
        return Err(failed(pid, "trapline does not trace itself", "name another process"));
    }
    let gone = || refusal(pid, &io::Error::from_raw_os_error(3));
    let state = proc::status_field(pid, "State").ok_or_else(gone)?;
    if state.starts_with(['Z', 'X']) {
        // The leader of a process is a zombie until its other threads have ended too.
        return Err(match proc::threads(pid) {
            Ok(all) if all.len() > 1 => {
                failed(pid, "its first thread has ended, without which it cannot be read", UPROBES)
            }
            _ => failed(pid, "the process has ended", "its parent has not collected it yet"),
        });
    }
    if proc::is_kernel_thread(pid) {
        return Err(failed(pid, "a kernel thread has no functions of a program", "kprobe:FUNCTION is for the kernel"));
    }
    if let Some(leader) = proc::process_of(pid).filter(|leader| *leader != pid) {
        let why = format!("this is a thread of process {leader}");
        return Err(failed(pid, why, format!("-p {leader} traces all its threads")));
    }
    if proc::tracers().contains(&pid) {
        return Err(engine::target::traces_trapline(format!("-p {pid}")));
    }
    if other_tracer(pid).is_some() {
        return Err(refusal(pid, &io::Error::from_raw_os_error(1)));
    }
    let maps = maps::of(pid).map_err(|e| refusal(pid, &e))?;
    if maps.is_empty() {
        return Err(refusal(pid, &io::ErrorKind::PermissionDenied.into()));
    }
    is_dynamic(pid, &maps)?;
    if is_frozen(pid) {
        return Err(frozen(pid));
    }
    let proc_files = format!("/proc/{pid}/root/proc/version");
    if std::fs::metadata(proc_files).is_err_and(|e| e.kind() == io::ErrorKind::NotFound) {
        let todo = format!("mount one at its /proc; or {UPROBES}");
        return Err(failed(
            pid,
            "the process sees no procfs (chroot, or a mount namespace), which the agent needs",
            todo,
        ));
    }
    permits::check(pid)?;
    Ok(maps)
}

/// Whether glibc's loader is there.
fn is_dynamic(pid: i32, maps: &[Map]) -> Result<()> {
    let mut head = [0; 20];
    let file = std::fs::File::open(format!("/proc/{pid}/exe")).map_err(|e| refusal(pid, &e))?;
    let read = std::os::unix::fs::FileExt::read_at(&file, &mut head, 0);
    const CLASS_32: u8 = 1;
    const X86_64: [u8; 2] = [62, 0];
    if read.is_ok() && (head[4] == CLASS_32 || head[18..] != X86_64) {
        return Err(failed(pid, "the process runs 32-bit code", "its system calls can be traced: trapline trace -p"));
    }
    let has = |start: &str| maps.iter().any(|m| name_of(m).starts_with(start));
    if has("ld-musl") {
        return Err(failed(
            pid,
            "musl programs load no agent when they run",
            "start it under trapline; or ".to_string() + UPROBES,
        ));
    }
    if has("libc.so.6") || has("libc-2.") {
        return Ok(());
    }
    let go = symbols::Elf::read(&file).is_ok_and(|elf| elf.sections().any(|s| s.name == ".gopclntab"));
    let why = if go { "a static Go program loads no agent" } else { "a static program loads no agent" };
    Err(failed(pid, why, UPROBES))
}

/// The name of the file of a mapping.
pub fn name_of(map: &Map) -> String {
    let path = String::from_utf8_lossy(&map.path);
    path.rsplit('/').next().unwrap_or_default().to_string()
}

/// Whether its cgroup is frozen, of either version of cgroups(7), where these are mounted as usual.
pub fn is_frozen(pid: i32) -> bool {
    let groups = std::fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default();
    let says = |file: String, words: &[&str]| {
        let text = std::fs::read_to_string(file).unwrap_or_default();
        text.lines().any(|line| words.contains(&line.trim()))
    };
    groups.lines().any(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        match (parts.next(), parts.next()) {
            (Some("freezer"), Some(path)) => {
                says(format!("/sys/fs/cgroup/freezer{path}/freezer.state"), &["FROZEN", "FREEZING"])
            }
            (Some(""), Some(path)) => ["", "/unified"]
                .iter()
                .any(|mount| says(format!("/sys/fs/cgroup{mount}{path}/cgroup.events"), &["frozen 1"])),
            _ => false,
        }
    })
}

/// What to say of a process that has ended.
pub fn ended(pid: i32) -> Error {
    failed(pid, "the process has ended", "see 'ps -e'")
}

/// What to say of a process where no socket can be.
pub fn far(pid: i32, e: &io::Error) -> Error {
    match process::has_ended(pid) {
        true => ended(pid),
        false => failed(pid, format!("it is in another network namespace: {e}"), "run as root"),
    }
}

/// What to say of a frozen process.
pub fn frozen(pid: i32) -> Error {
    failed(pid, "the process is frozen (cgroups(7)), and executes nothing", "thaw it first")
}

/// Who traces one of its threads, if not trapline.
fn other_tracer(pid: i32) -> Option<i32> {
    let tids = proc::threads(pid).unwrap_or_else(|_| vec![pid]);
    let is_other = |t: &i32| *t != 0 && proc::process_of(*t) != Some(process::own_pid());
    tids.into_iter().filter_map(proc::tracer_of).find(is_other)
}

/// Why a process may not be stopped or looked at.
pub fn refusal(pid: i32, e: &io::Error) -> Error {
    let Some(owner) = proc::ids(pid) else { return failed(pid, "no such process", "see 'ps -e'") };
    if let Some(tracer) = other_tracer(pid) {
        let name = proc::comm(tracer).map(|c| String::from_utf8_lossy(&c).into_owned()).unwrap_or_default();
        let why = format!("already traced by process {tracer} ({name})");
        return failed(pid, why, "a process has one tracer: end that one first");
    }
    if e.kind() != io::ErrorKind::PermissionDenied {
        return failed(pid, format!("cannot attach: {e}"), "the process runs on untraced");
    }
    let (why, todo) = forbidden(process::euid(), owner.0, privilege(pid), proc::yama_scope());
    failed(pid, why, todo)
}

/// What a process has that keeps its own user from tracing it.
fn privilege(pid: i32) -> Option<&'static str> {
    let differ = |field: &str| {
        let text = proc::status_field(pid, field).unwrap_or_default();
        let mut ids = text.split_whitespace().take(3);
        let first = ids.next();
        ids.any(|id| Some(id) != first)
    };
    if differ("Uid") || differ("Gid") {
        return Some("it has changed its user or group");
    }
    let permitted = proc::status_field(pid, "CapPrm").and_then(|c| u64::from_str_radix(&c, 16).ok()).unwrap_or(0);
    if permitted & !proc::effective_capabilities() != 0 {
        return Some("it has capabilities");
    }
    // Files of such a process belong to root, its directory does not.
    let owner = std::fs::metadata(format!("/proc/{pid}/status")).map(|m| std::os::unix::fs::MetadataExt::uid(&m));
    let is_own = owner.is_ok_and(|uid| proc::ids(pid).is_some_and(|ids| ids.0 == uid));
    (!is_own).then_some("it has made itself undumpable (PR_SET_DUMPABLE), or its file may not be read")
}

/// Why this user may not trace that one's process, and what to do (ptrace(2), "Ptrace access mode checking").
fn forbidden(own: u32, owner: u32, privilege: Option<&str>, scope: Option<u32>) -> (String, String) {
    const ROOT: &str = "run as root";
    let yama = scope.map(|s| format!("not permitted: kernel.yama.ptrace_scope is {s}")).unwrap_or_default();
    let (why, todo) = match (privilege, scope) {
        (_, Some(3)) => (
            yama,
            "nobody may trace running processes until the machine starts again: start the command under trapline",
        ),
        _ if own == 0 => (
            "not permitted: it belongs to another user namespace, or trapline lacks CAP_SYS_PTRACE".into(),
            "run trapline as root of the machine",
        ),
        _ if own != owner => ("not permitted: the process belongs to another user".into(), ROOT),
        (Some(privilege), _) => (format!("not permitted: {privilege}"), ROOT),
        (None, Some(2)) => (yama, "run as root, or start the command under trapline"),
        (None, Some(1)) => (yama, "run as root, start the command under trapline, or set it to 0"),
        _ => ("not permitted: a security policy of the machine forbids it".into(), ROOT),
    };
    (why, todo.into())
}

const EMFILE: i32 = 24;

/// The error of a process that may open no more files.
pub fn too_many_files() -> io::Error {
    io::Error::from_raw_os_error(EMFILE)
}

/// What to say where the process is at one of its limits.
pub fn at_limit(pid: i32, e: &io::Error) -> Option<Error> {
    if e.raw_os_error() == Some(EMFILE) {
        let todo = format!("raise its limit: prlimit --pid {pid} --nofile=1024");
        return Some(failed(pid, "the process may open no more files (RLIMIT_NOFILE)", todo));
    }
    if e.kind() != io::ErrorKind::OutOfMemory {
        return None;
    }
    let text = std::fs::read_to_string(format!("/proc/{pid}/limits")).unwrap_or_default();
    let line = text.lines().find_map(|l| l.strip_prefix("Max address space")).unwrap_or("unlimited");
    Some(match line.trim_start().starts_with("unlimited") {
        true => {
            failed(pid, "there is no memory for the agent in the process", "free some, or choose a smaller --buffer")
        }
        false => failed(
            pid,
            "the process may map no more memory (RLIMIT_AS)",
            format!("raise its limit: prlimit --pid {pid} --as=unlimited; or choose a smaller --buffer"),
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_may_not_trace_is_told_why() {
        let says = |own, owner, privilege, scope| {
            let (why, todo) = forbidden(own, owner, privilege, scope);
            format!("{why} ({todo})")
        };
        for scope in 1..=3 {
            let line = says(7, 7, None, Some(scope));
            assert!(line.contains(&format!("kernel.yama.ptrace_scope is {scope}")), "{line}");
        }
        assert!(says(7, 7, None, Some(1)).contains("run as root, start the command under trapline, or set it to 0"));
        assert!(says(0, 7, None, Some(3)).contains("ptrace_scope is 3"));
        assert!(says(0, 0, None, Some(1)).contains("CAP_SYS_PTRACE"));
        assert!(says(7, 8, None, Some(1)).contains("belongs to another user (run as root)"));
        assert!(says(7, 7, Some("it has capabilities"), Some(1)).contains("it has capabilities (run as root)"));
        assert!(says(7, 7, None, Some(0)).contains("a security policy"));
    }
}
