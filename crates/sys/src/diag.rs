//! What the kernel knows of sockets (sock_diag(7)): which UNIX socket is the other end of which.

use crate::check::check;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// `NETLINK_SOCK_DIAG` (`include/uapi/linux/netlink.h`).
const NETLINK_SOCK_DIAG: i32 = 4;
/// `SOCK_DIAG_BY_FAMILY` (`include/uapi/linux/sock_diag.h`).
const SOCK_DIAG_BY_FAMILY: u16 = 20;
/// `NLM_F_REQUEST`; `NLMSG_ERROR`, `NLMSG_DONE` (`include/uapi/linux/netlink.h`).
const NLM_F_REQUEST: u16 = 1;
/// `UDIAG_SHOW_PEER`, and the attribute with it (`include/uapi/linux/unix_diag.h`).
const UDIAG_SHOW_PEER: u32 = 4;
const UNIX_DIAG_PEER: u16 = 2;
/// Bytes of `struct nlmsghdr`, of `struct unix_diag_msg`.
const HEADER: usize = 16;
const MESSAGE: usize = 16;

/// The inode of the other end of the connected UNIX socket with this inode, in the network namespace of the caller. None: it has no other
/// end.
///
/// # Errors
/// `ENOENT`: there is no such socket here. Others: the kernel has no sock_diag.
pub fn unix_peer(inode: u32) -> io::Result<Option<u32>> {
    // SAFETY: plain integers; the descriptor returned is ours.
    let socket = unsafe {
        let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC;
        OwnedFd::from_raw_fd(check(libc::socket(libc::AF_NETLINK, kind, NETLINK_SOCK_DIAG).into())? as i32)
    };
    let request = request(inode);
    // SAFETY: the buffer and its length are valid.
    check(unsafe { libc::send(socket.as_raw_fd(), request.as_ptr().cast(), request.len(), 0) } as i64)?;
    let mut answer = [0u8; 4096];
    // SAFETY: the buffer and its length are valid; the kernel writes at most that much.
    let n = check(unsafe { libc::recv(socket.as_raw_fd(), answer.as_mut_ptr().cast(), answer.len(), 0) } as i64)?;
    peer(answer.get(..n as usize).unwrap_or_default())
}

/// `struct nlmsghdr` and `struct unix_diag_req`.
fn request(inode: u32) -> Vec<u8> {
    const REQUEST: usize = 24;
    let mut m = Vec::with_capacity(HEADER + REQUEST);
    m.extend_from_slice(&((HEADER + REQUEST) as u32).to_le_bytes());
    m.extend_from_slice(&SOCK_DIAG_BY_FAMILY.to_le_bytes());
    m.extend_from_slice(&NLM_F_REQUEST.to_le_bytes());
    m.extend_from_slice(&[0; 8]);
    m.extend_from_slice(&[libc::AF_UNIX as u8, 0, 0, 0]);
    // All states; the socket; what to show; any cookie (INET_DIAG_NOCOOKIE).
    for word in [u32::MAX, inode, UDIAG_SHOW_PEER, u32::MAX, u32::MAX] {
        m.extend_from_slice(&word.to_le_bytes());
    }
    m
}

/// The peer in an answer: `struct nlmsghdr`, `struct unix_diag_msg`, attributes.
fn peer(answer: &[u8]) -> io::Result<Option<u32>> {
    let nonsense = || io::Error::from(io::ErrorKind::InvalidData);
    let word = |at: usize| Some(u32::from_le_bytes(answer.get(at..at + 4)?.try_into().ok()?));
    let half = |at: usize| Some(u16::from_le_bytes(answer.get(at..at + 2)?.try_into().ok()?));
    if half(4).ok_or_else(nonsense)? != SOCK_DIAG_BY_FAMILY {
        // NLMSG_ERROR: `struct nlmsgerr` begins with a negative errno.
        let errno = word(HEADER).ok_or_else(nonsense)? as i32;
        return Err(io::Error::from_raw_os_error(errno.saturating_neg()));
    }
    let end = (word(0).ok_or_else(nonsense)? as usize).min(answer.len());
    let mut at = HEADER + MESSAGE;
    while let (Some(len), Some(kind)) = (half(at), half(at + 2)) {
        if at >= end || len < 4 {
            break;
        }
        if kind == UNIX_DIAG_PEER {
            return Ok(word(at + 4).filter(|inode| *inode != 0));
        }
        at += usize::from(len).next_multiple_of(4);
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;
    use std::os::unix::net::UnixStream;

    fn inode(socket: &UnixStream) -> u32 {
        std::fs::metadata(format!("/proc/self/fd/{}", socket.as_raw_fd())).unwrap().ino() as u32
    }

    #[test]
    fn the_ends_of_a_pair_know_each_other() {
        let (a, b) = UnixStream::pair().unwrap();
        assert_eq!(unix_peer(inode(&a)).unwrap(), Some(inode(&b)));
        let before = inode(&b);
        drop(b);
        // Of an end that is closed, there may be a socket left without a file.
        assert_ne!(unix_peer(inode(&a)).ok().flatten(), Some(before));
    }

    #[test]
    fn answers_may_be_anything() {
        let mut whole = vec![0; 48];
        whole[0] = 40;
        whole[4] = 20;
        (whole[32], whole[34], whole[36]) = (8, 2, 77);
        assert_eq!(peer(&whole).unwrap(), Some(77));
        for n in 0..whole.len() {
            let _ = peer(&whole[..n]);
        }
        whole[32] = 0;
        assert_eq!(peer(&whole).unwrap(), None);
        whole[4] = 2;
        whole[16..20].copy_from_slice(&(-2i32).to_le_bytes());
        assert_eq!(peer(&whole).unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
