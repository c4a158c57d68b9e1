//! Why a process cannot be attached to, from the ptracer to the front end.

use engine::Error;
use engine::target::traces_trapline;
use std::io;
use sys::{proc, process};

const EINVAL: i32 = 22;
/// Used in place of an errno: the process is a zombie.
const ZOMBIE: i32 = 10_000;
/// Used in place of an errno: no other process is traced.
pub const ALONE: i32 = 10_001;
/// Used in place of an errno: the process traces trapline.
pub const TRACER: i32 = 10_002;

/// Explains why a process cannot be attached to; `tracer` traces it already.
pub fn explained(what: String, errno: i32, tracer: i32) -> Error {
    const ENOENT: i32 = 2;
    const ESRCH: i32 = 3;
    if errno == ZOMBIE {
        return Error::failed(what, "the process has ended", "its parent has not collected it yet");
    }
    if errno == ALONE {
        return Error::failed(what, "no other process is traced", "to end the session: trapline session end");
    }
    if errno == TRACER {
        return traces_trapline(what);
    }
    if matches!(errno, ESRCH | ENOENT) {
        return Error::failed(what, "no such process", "see 'ps -e'");
    }
    if tracer != 0 {
        let name = proc::comm(tracer).map(|c| String::from_utf8_lossy(&c).into_owned()).unwrap_or_default();
        let why = format!("already traced by process {tracer} ({name})");
        return Error::failed(what, why, "a process has one tracer: end that one first");
    }
    let scope = proc::yama_scope().unwrap_or(0);
    if scope >= 1 && process::euid() != 0 {
        let why = format!("not permitted: kernel.yama.ptrace_scope is {scope}");
        return Error::failed(what, why, "run as root, or start the command under trapline");
    }
    if process::euid() != 0 {
        return Error::failed(
            what,
            "not permitted: the process belongs to another user or is privileged",
            "run as root",
        );
    }
    let why = io::Error::from_raw_os_error(errno).to_string();
    Error::failed(what, format!("cannot attach: {why}"), "kernel threads and trapline itself cannot be traced")
}

/// Why a process cannot be attached to: an error number or [`ZOMBIE`], and who traces it already, 0 for nobody.
pub fn of(pid: i32, e: &io::Error) -> (i32, i32) {
    let zombie = proc::status_field(pid, "State").is_some_and(|s| s.starts_with('Z'));
    let errno = if zombie { ZOMBIE } else { e.raw_os_error().unwrap_or(EINVAL) };
    (errno, proc::tracer_of(pid).unwrap_or(0))
}
