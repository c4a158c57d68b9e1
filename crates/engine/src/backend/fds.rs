//! What the descriptors of processes are, as `process:fd` events have it.

use events::names::AT_FDCWD;
use sys::{fdinfo, proc};

/// The working directory, and the open descriptors of a process.
pub fn open_fds(pid: i32) -> impl Iterator<Item = i32> {
    std::iter::once(AT_FDCWD).chain(proc::fds(pid).unwrap_or_default())
}

/// Arguments and strings of the `process:fd` event of a descriptor: its path, and with `details` what `-yy` adds.
pub fn look(pid: i32, fd: i32, details: bool, made: bool) -> Option<([u64; 4], Vec<u8>, Vec<u8>)> {
    let cwd = fd == AT_FDCWD;
    let path = proc::fd_link(pid, (!cwd).then_some(fd))?;
    let cloexec = !cwd && proc::fd_cloexec(pid, fd);
    let flags = u64::from(cloexec) | if made { 2 } else { 0 };
    let detail = if details && !cwd { detail(pid, fd, &path) } else { Vec::new() };
    Some(([0, 0, fd as u64, flags], path, detail))
}

/// What `-yy` adds: the ends of a socket, the numbers of a device.
fn detail(pid: i32, fd: i32, path: &[u8]) -> Vec<u8> {
    if path.starts_with(b"socket:[") {
        let Ok(s) = fdinfo::socket(pid, fd) else { return Vec::new() };
        let mut text = events::sockaddr::describe_socket(s.domain, s.kind, s.protocol, &s.local, &s.peer).into_bytes();
        if !text.is_empty() && !text.contains(&b':') {
            // No end is known yet: the inode identifies the socket.
            text.push(b':');
            text.extend_from_slice(&path[b"socket:".len()..]);
        }
        return text;
    }
    match fdinfo::device(pid, fd) {
        Some((major, minor, block)) => format!("{} {major}:{minor}", if block { "block" } else { "char" }).into_bytes(),
        None => Vec::new(),
    }
}
