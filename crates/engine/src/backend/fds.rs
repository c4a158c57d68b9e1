//! What the descriptors of processes are, as `process:fd` events have it.

use events::names::AT_FDCWD;
use sys::fdinfo::{self, Socket};
use sys::intercept::Descriptor;
use sys::proc;

/// The working directory, and the open descriptors of a process.
pub fn open_fds(pid: i32) -> impl Iterator<Item = i32> {
    std::iter::once(AT_FDCWD).chain(proc::fds(pid).unwrap_or_default())
}

/// Arguments and strings of a `process:fd` event.
pub type Fd = ([u64; 4], Vec<u8>, Vec<u8>);

/// The `process:fd` event of a descriptor: its path, and with `details` what `-yy` adds. `made`: a call has made it.
pub fn look(pid: i32, fd: i32, details: bool, made: bool) -> Option<Fd> {
    let cwd = fd == AT_FDCWD;
    let path = proc::fd_link(pid, (!cwd).then_some(fd))?;
    let cloexec = !cwd && proc::fd_cloexec(pid, fd);
    let detail = match details && !cwd {
        true if is_socket(&path) => detail(&path, fdinfo::socket(pid, fd).ok(), None),
        true => detail(&path, None, fdinfo::device(pid, fd)),
        false => Vec::new(),
    };
    Some(event(fd, cloexec, made, path, detail))
}

/// The `process:fd` event of a descriptor that its process has described. If the process could not read the name, this one does, as long as the
/// descriptor still leads to that file.
pub fn described(pid: i32, d: &Descriptor, details: bool, made: bool) -> Option<Fd> {
    let fd = d.fd();
    if d.path().is_empty() {
        // The file is compared after the look: a descriptor may get another one at any moment.
        let event = look(pid, fd, details, made);
        return event.filter(|_| fd == AT_FDCWD || proc::fd_file(pid, fd) == Some(d.file()));
    }
    let detail = if details && fd != AT_FDCWD { detail(d.path(), d.socket(), d.device()) } else { Vec::new() };
    Some(event(fd, d.cloexec, made, d.path().to_vec(), detail))
}

fn event(fd: i32, cloexec: bool, made: bool, path: Vec<u8>, detail: Vec<u8>) -> Fd {
    ([0, 0, fd as u64, u64::from(cloexec) | if made { 2 } else { 0 }], path, detail)
}

fn is_socket(path: &[u8]) -> bool {
    path.starts_with(b"socket:[")
}

/// What `-yy` adds: the ends of a socket, the numbers of a device.
fn detail(path: &[u8], socket: Option<Socket>, device: Option<(u32, u32, bool)>) -> Vec<u8> {
    if is_socket(path) {
        let Some(s) = socket else { return Vec::new() };
        let mut text = events::sockaddr::describe_socket(s.domain, s.kind, s.protocol, &s.local, &s.peer).into_bytes();
        if !text.is_empty() && !text.contains(&b':') {
            // No end is known yet: the inode identifies the socket.
            text.push(b':');
            text.extend_from_slice(&path[b"socket:".len()..]);
        }
        return text;
    }
    match device {
        Some((major, minor, block)) => format!("{} {major}:{minor}", if block { "block" } else { "char" }).into_bytes(),
        None => Vec::new(),
    }
}
