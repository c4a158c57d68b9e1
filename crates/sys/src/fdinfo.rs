//! What a descriptor of another process is: socket addresses and device numbers, for `-yy`.
//!
//! A socket is inspected through pidfd_getfd(2) (Linux 5.6), which needs the rights of ptrace; the copy is closed at once.

use crate::check::check;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt};

/// A socket's domain, type and protocol, with the raw addresses of both ends (empty where there is none).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Socket {
    /// `AF_*`.
    pub domain: i32,
    /// `SOCK_*`.
    pub kind: i32,
    /// Protocol.
    pub protocol: i32,
    /// Own address.
    pub local: Vec<u8>,
    /// Peer's address.
    pub peer: Vec<u8>,
}

fn copy_fd(pid: i32, fd: i32) -> io::Result<OwnedFd> {
    // SAFETY: plain integers; the descriptors returned are ours.
    unsafe {
        let pidfd = OwnedFd::from_raw_fd(check(libc::syscall(libc::SYS_pidfd_open, pid, 0))? as i32);
        let copy = check(libc::syscall(libc::SYS_pidfd_getfd, pidfd.as_raw_fd(), fd, 0))?;
        Ok(OwnedFd::from_raw_fd(copy as i32))
    }
}

/// Inspects socket `fd` of process `pid`.
pub fn socket(pid: i32, fd: i32) -> io::Result<Socket> {
    let s = copy_fd(pid, fd)?;
    let opt = |name: i32| -> io::Result<i32> {
        let (mut v, mut len) = (0i32, 4u32);
        // SAFETY: a 4-byte value and its length.
        let ok = unsafe { libc::getsockopt(s.as_raw_fd(), libc::SOL_SOCKET, name, (&raw mut v).cast(), &mut len) };
        check(ok.into())?;
        Ok(v)
    };
    let address = |f: unsafe extern "C" fn(i32, *mut libc::sockaddr, *mut u32) -> i32| -> Vec<u8> {
        let mut buf = vec![0u8; 128];
        let mut len = buf.len() as u32;
        // SAFETY: the buffer and its length are valid; the kernel writes at most `len` bytes.
        let ok = unsafe { f(s.as_raw_fd(), buf.as_mut_ptr().cast(), &mut len) } == 0;
        buf.truncate(if ok { len as usize } else { 0 });
        buf
    };
    Ok(Socket {
        domain: opt(libc::SO_DOMAIN)?,
        kind: opt(libc::SO_TYPE)?,
        protocol: opt(libc::SO_PROTOCOL)?,
        local: address(libc::getsockname),
        peer: address(libc::getpeername),
    })
}

/// Whether a call on socket `fd` of process `pid` ends by itself after a time (`SO_RCVTIMEO`, `SO_SNDTIMEO`): such a call fails with EINTR
/// where another one would be restarted (signal(7)).
pub fn socket_times_out(pid: i32, fd: i32) -> io::Result<bool> {
    let s = copy_fd(pid, fd)?;
    for name in [libc::SO_RCVTIMEO, libc::SO_SNDTIMEO] {
        let mut time = [0i64; 2];
        let mut len = size_of_val(&time) as u32;
        // SAFETY: a `struct timeval` is two 8-byte integers, and its length is given.
        let ok = unsafe { libc::getsockopt(s.as_raw_fd(), libc::SOL_SOCKET, name, time.as_mut_ptr().cast(), &mut len) };
        check(ok.into())?;
        if time != [0; 2] {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Major and minor number of the device of descriptor `fd` of process `pid`, and whether it is a block device.
pub fn device(pid: i32, fd: i32) -> Option<(u32, u32, bool)> {
    let meta = std::fs::metadata(format!("/proc/{pid}/fd/{fd}")).ok()?;
    let block = meta.file_type().is_block_device();
    if !block && !meta.file_type().is_char_device() {
        return None;
    }
    Some((libc::major(meta.rdev()), libc::minor(meta.rdev()), block))
}
