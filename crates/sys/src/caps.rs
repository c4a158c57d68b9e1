//! Capabilities of the calling thread: reads them, and drops those that are no longer needed.
//!
//! Capabilities belong to threads: what is dropped before a thread is started, it never has. Processes forked before keep
//! theirs.

use crate::check::check;
use std::io;

/// Kill anybody's processes.
pub const KILL: u64 = 1 << 5;
/// Write files and enter directories of others.
pub const DAC_OVERRIDE: u64 = 1 << 1;
/// Read files and directories of others.
pub const DAC_READ_SEARCH: u64 = 1 << 2;
/// Inspect processes of others.
pub const SYS_PTRACE: u64 = 1 << 19;
/// Raise priorities.
pub const SYS_NICE: u64 = 1 << 23;
/// Nearly everything; before Linux 5.8 also what [`BPF`] and [`PERFMON`] allow.
pub const SYS_ADMIN: u64 = 1 << 21;
/// Load programs that read memory, and attach them.
pub const PERFMON: u64 = 1 << 38;
/// Use bpf(2).
pub const BPF: u64 = 1 << 39;
/// Open what a process has mapped by `/proc/PID/map_files` (Linux 5.9; before, [`SYS_ADMIN`]).
pub const CHECKPOINT_RESTORE: u64 = 1 << 40;

/// Whether a file gives capabilities to who executes it.
pub fn of_file(file: &std::fs::File) -> bool {
    use std::os::fd::AsRawFd;
    let name = c"security.capability";
    // SAFETY: an open descriptor and a NUL-terminated name; only the size is asked for.
    unsafe { libc::fgetxattr(file.as_raw_fd(), name.as_ptr(), std::ptr::null_mut(), 0) > 0 }
}

/// What a session of the kernel backend needs once its programs are attached and its command is started:
/// - `BPF`: running the task iterator and reading task storage (kernels before 5.19 refuse any bpf(2) where the
///   unprivileged one is disabled);
/// - `SYS_PTRACE`, `DAC_READ_SEARCH`: `/proc/PID/fd`, `/proc/PID/fdinfo` and memory of other users' processes;
/// - `CHECKPOINT_RESTORE`: files that processes have mapped and nobody can open by a path any more, for the names of functions;
/// - `DAC_OVERRIDE`: `-ff -o FILE` and `--stats FILE` make files later;
/// - `KILL`: passing signals on to a command that runs as another user.
///
/// Not: the rings (mapped already), `PERFMON` (only loading and attaching ask for it; detaching does not), `SYS_ADMIN`.
pub const AFTER_ATTACH: u64 = BPF | SYS_PTRACE | DAC_READ_SEARCH | DAC_OVERRIDE | KILL | CHECKPOINT_RESTORE;

/// What attaching programs takes beside [`AFTER_ATTACH`]. `SYS_ADMIN`: to open tracefs where it is not mounted, and the types of
/// modules.
pub const TO_ATTACH: u64 = PERFMON | SYS_ADMIN;

/// What taking the agent out of a process takes beside [`AFTER_ATTACH`]: its filters of system calls are read before.
pub const TO_DETACH: u64 = SYS_ADMIN;

/// What helps a tracer by ptrace, if it has it: looking into processes and files of others.
pub const FOR_PTRACE: u64 = SYS_PTRACE | DAC_READ_SEARCH | DAC_OVERRIDE | KILL;

/// `_LINUX_CAPABILITY_VERSION_3` (`include/uapi/linux/capability.h`).
const VERSION_3: u32 = 0x2008_0522;

#[repr(C)]
struct Header {
    version: u32,
    pid: i32,
}

/// `struct __user_cap_data_struct`: 32 capabilities; two of them make up a set.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Data {
    effective: u32,
    permitted: u32,
    inheritable: u32,
}

fn get() -> io::Result<[Data; 2]> {
    let mut data = [Data::default(); 2];
    let mut header = Header { version: VERSION_3, pid: 0 };
    // SAFETY: version 3 fills two structures; both addresses are valid for the call.
    check(unsafe { libc::syscall(libc::SYS_capget, &raw mut header, data.as_mut_ptr()) })?;
    Ok(data)
}

/// The effective capabilities.
pub fn effective() -> io::Result<u64> {
    let data = get()?;
    Ok(u64::from(data[0].effective) | u64::from(data[1].effective) << 32)
}

/// Gives up every capability that is not in `keep`, of the calling thread and for good (an execve of root aside). Ambient
/// ones go with the permitted ones.
pub fn drop_to(keep: u64) -> io::Result<()> {
    set_aside(keep, 0)
}

/// Gives up every capability that is neither in `keep` nor in `aside`; those in `aside` have no effect until [`with`] is called.
pub fn set_aside(keep: u64, aside: u64) -> io::Result<()> {
    let mut data = get()?;
    let halves = |set: u64| [set as u32, (set >> 32) as u32];
    for ((d, keep), aside) in data.iter_mut().zip(halves(keep)).zip(halves(aside)) {
        d.permitted &= keep | aside;
        d.effective &= keep;
        d.inheritable &= keep;
    }
    set(&data)
}

/// Calls `act` with these capabilities in effect, as far as the calling thread has them.
pub fn with<T>(capabilities: u64, act: impl FnOnce() -> T) -> T {
    let before = get().ok();
    if let Some(mut data) = before {
        for (d, more) in data.iter_mut().zip([capabilities as u32, (capabilities >> 32) as u32]) {
            d.effective |= d.permitted & more;
        }
        let _ = set(&data);
    }
    let result = act();
    if let Some(data) = before {
        let _ = set(&data);
    }
    result
}

/// Calls `act` without the effect of any capability.
///
/// # Errors
/// The capabilities cannot be read, or put aside: `act` is not called.
pub fn without<T>(act: impl FnOnce() -> T) -> io::Result<T> {
    let before = get()?;
    set(&before.map(|d| Data { effective: 0, ..d }))?;
    let result = act();
    let _ = set(&before);
    Ok(result)
}

fn set(data: &[Data; 2]) -> io::Result<()> {
    let mut header = Header { version: VERSION_3, pid: 0 };
    // SAFETY: version 3 reads two structures; both addresses are valid for the call.
    check(unsafe { libc::syscall(libc::SYS_capset, &raw mut header, data.as_ptr()) }).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_keeps_what_is_asked_for_and_leaves_others_alone() {
        let before = effective().unwrap();
        std::thread::spawn(move || {
            drop_to(AFTER_ATTACH).unwrap();
            assert_eq!(effective().unwrap(), before & AFTER_ATTACH);
            assert_eq!(without(|| effective().unwrap()).unwrap(), 0);
            assert_eq!(effective().unwrap(), before & AFTER_ATTACH);
            drop_to(0).unwrap();
            assert_eq!(effective().unwrap(), 0);
            assert_eq!(std::thread::spawn(|| effective().unwrap()).join().unwrap(), 0);
        })
        .join()
        .unwrap();
        assert_eq!(effective().unwrap(), before);
    }
}
