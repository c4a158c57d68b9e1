//! Whether a process can be attached to, and what to say where it cannot.

use super::{failed, permits};
use crate::error::{Error, Result};
use std::io;
use sys::maps::{self, Map};
use sys::{proc, process};

const UPROBES: &str = "use -e 'uprobe:PROGRAM:FUNCTION' as root, with record";

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
        return Err(failed(pid, "the process has ended", "its parent has not collected it yet"));
    }
    if proc::is_kernel_thread(pid) {
        return Err(failed(pid, "a kernel thread has no functions of a program", "kprobe:FUNCTION is for the kernel"));
    }
    if proc::process_of(pid).is_some_and(|leader| leader != pid) {
        return Err(failed(pid, "this is a thread of another process", "name the process: see 'ps -e'"));
    }
    if proc::tracer_of(pid).is_some_and(|t| t != 0) {
        return Err(refusal(pid, &io::Error::from_raw_os_error(1)));
    }
    let maps = maps::of(pid).map_err(|e| refusal(pid, &e))?;
    if maps.is_empty() {
        return Err(refusal(pid, &io::ErrorKind::PermissionDenied.into()));
    }
    is_dynamic(pid, &maps)?;
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
        return Err(failed(pid, "the process runs 32-bit code", "use a 64-bit program"));
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

/// Why a process may not be stopped or looked at.
pub fn refusal(pid: i32, e: &io::Error) -> Error {
    let Some(owner) = proc::ids(pid) else { return failed(pid, "no such process", "see 'ps -e'") };
    if let Some(tracer) = proc::tracer_of(pid).filter(|t| *t != 0) {
        let name = proc::comm(tracer).map(|c| String::from_utf8_lossy(&c).into_owned()).unwrap_or_default();
        let why = format!("already traced by process {tracer} ({name})");
        return failed(pid, why, "a process has one tracer: end that one first");
    }
    if e.kind() != io::ErrorKind::PermissionDenied {
        return failed(pid, format!("cannot attach: {e}"), "the process runs on untraced");
    }
    if process::euid() == 0 {
        return failed(
            pid,
            "cannot attach: it belongs to another user namespace, or may not be traced",
            "run trapline there",
        );
    }
    if owner.0 != process::euid() {
        return failed(pid, "not permitted: the process belongs to another user", "run as root");
    }
    match proc::yama_scope() {
        Some(scope @ 1..) => {
            let why = format!("not permitted: kernel.yama.ptrace_scope is {scope}");
            failed(pid, why, "run as root, or start the command under trapline")
        }
        _ => failed(pid, "not permitted: the process is privileged, or has made itself undumpable", "run as root"),
    }
}
