//! Reading `/proc`. All parsing is of hostile text: a process names itself.

use std::fs;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::Path;

/// The threads of a process.
pub fn threads(pid: i32) -> io::Result<Vec<i32>> {
    let mut v: Vec<i32> =
        fs::read_dir(format!("/proc/{pid}/task"))?.filter_map(|e| e.ok()?.file_name().to_str()?.parse().ok()).collect();
    v.sort_unstable();
    Ok(v)
}

/// A field of `/proc/PID/status`, for instance `Tgid`.
pub fn status_field(pid: i32, name: &str) -> Option<String> {
    let text = fs::read(format!("/proc/{pid}/status")).ok()?;
    let text = String::from_utf8_lossy(&text);
    let line = text.lines().find_map(|l| l.strip_prefix(name)?.strip_prefix(':'))?;
    Some(line.trim().to_string())
}

/// The process that thread `tid` belongs to.
pub fn process_of(tid: i32) -> Option<i32> {
    status_field(tid, "Tgid")?.parse().ok()
}

/// Who traces `tid`, 0 for nobody.
pub fn tracer_of(tid: i32) -> Option<i32> {
    status_field(tid, "TracerPid")?.parse().ok()
}

/// The command name (`comm`), raw bytes without the newline.
pub fn comm(tid: i32) -> Option<Vec<u8>> {
    let mut c = fs::read(format!("/proc/{tid}/comm")).ok()?;
    c.truncate(c.len().saturating_sub(1));
    Some(c)
}

/// The call that a thread is blocked in: number and arguments. None: it runs, or may not be looked at.
pub fn call_in_flight(pid: i32, tid: i32) -> Option<(i64, [u64; 6])> {
    let text = fs::read_to_string(format!("/proc/{pid}/task/{tid}/syscall")).ok()?;
    parse_call(&text)
}

fn parse_call(text: &str) -> Option<(i64, [u64; 6])> {
    let mut words = text.split_whitespace();
    let nr: i64 = words.next()?.parse().ok()?;
    let mut args = [0; 6];
    for a in &mut args {
        *a = u64::from_str_radix(words.next()?.strip_prefix("0x")?, 16).ok()?;
    }
    (nr >= 0).then_some((nr, args))
}

/// What `/proc/PID/fd/N` (or `cwd` for none) leads to, raw bytes.
pub fn fd_link(pid: i32, fd: Option<i32>) -> Option<Vec<u8>> {
    let path = match fd {
        Some(fd) => format!("/proc/{pid}/fd/{fd}"),
        None => format!("/proc/{pid}/cwd"),
    };
    Some(fs::read_link(path).ok()?.into_os_string().into_vec())
}

/// The open descriptors of a process.
pub fn fds(pid: i32) -> io::Result<Vec<i32>> {
    let mut v: Vec<i32> =
        fs::read_dir(format!("/proc/{pid}/fd"))?.filter_map(|e| e.ok()?.file_name().to_str()?.parse().ok()).collect();
    v.sort_unstable();
    Ok(v)
}

/// Whether descriptor `fd` closes at exec, from `/proc/PID/fdinfo`.
pub fn fd_cloexec(pid: i32, fd: i32) -> bool {
    const O_CLOEXEC: u32 = 0o2_000_000;
    let Ok(text) = fs::read_to_string(format!("/proc/{pid}/fdinfo/{fd}")) else { return false };
    let flags = text.lines().find_map(|l| u32::from_str_radix(l.strip_prefix("flags:")?.trim(), 8).ok());
    flags.is_some_and(|f| f & O_CLOEXEC != 0)
}

/// The value of `/proc/sys/kernel/yama/ptrace_scope`, where the kernel has Yama.
pub fn yama_scope() -> Option<u32> {
    fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").ok()?.trim().parse().ok()
}

/// The kernel's release, for instance `6.18.44`.
pub fn kernel_release() -> String {
    fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default().trim().to_string()
}

/// Device and inode of the calling process's pid namespace; none for the initial one (PROC_PID_INIT_INO,
/// `include/linux/proc_ns.h`).
pub fn pid_namespace() -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;
    let meta = fs::metadata("/proc/self/ns/pid").ok()?;
    (meta.ino() != 0xefff_fffc).then(|| (meta.dev(), meta.ino()))
}

/// Whether a process exists.
pub fn exists(pid: i32) -> bool {
    Path::new(&format!("/proc/{pid}")).exists()
}

/// Effective capabilities of the calling process as bits.
pub fn effective_capabilities() -> u64 {
    status_field(std::process::id() as i32, "CapEff").and_then(|s| u64::from_str_radix(&s, 16).ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_in_flight_are_parsed_and_running_threads_are_not() {
        let line = "0 0x0 0x7ffd 0x10 0x0 0x0 0x0 0x7ffdc 0x7f3c\n";
        assert_eq!(parse_call(line), Some((0, [0, 0x7ffd, 0x10, 0, 0, 0])));
        assert_eq!(parse_call("running\n"), None);
        assert_eq!(parse_call("-1 0x7ffc 0x7f3c\n"), None);
    }
}
