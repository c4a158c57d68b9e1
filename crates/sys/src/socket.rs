//! Unix stream sockets that only their owner can reach: directories checked, names taken safely, peers known.

use crate::check::check;
use std::ffi::OsStr;
use std::fs::{File, Permissions};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::time::Duration;

/// The process at the other end of a connection (`SO_PEERCRED`, unix(7)), at the time when it connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Process id.
    pub pid: i32,
    /// Effective user.
    pub uid: u32,
}

/// Opens the directory `path`, which must not be a symbolic link; `uid` must own it, and nobody else may have access.
///
/// Errors: `NotFound`; `PermissionDenied` for what is somebody else's or open to others; errors of open(2).
pub fn private_dir(path: &Path, uid: u32) -> io::Result<File> {
    let flags = libc::O_DIRECTORY | libc::O_NOFOLLOW;
    let dir = std::fs::OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    let meta = dir.metadata()?;
    if meta.uid() != uid {
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, "it belongs to another user"));
    }
    if meta.mode() & 0o077 != 0 {
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, "other users may access it"));
    }
    Ok(dir)
}

/// Opens the directory `path`, and creates it if it is missing, with mode 0700, whatever the umask.
pub fn make_private_dir(path: &Path, uid: u32) -> io::Result<File> {
    match std::fs::DirBuilder::new().mode(0o700).create(path) {
        Err(e) if e.kind() != io::ErrorKind::AlreadyExists => return Err(e),
        // A umask that takes the owner's own rights would make it useless.
        Ok(()) => std::fs::set_permissions(path, Permissions::from_mode(0o700))?,
        Err(_) => {}
    }
    private_dir(path, uid)
}

/// Listens at `path`, which must not exist, with mode 0600 from the first moment. The listener does not block.
pub fn listen(path: &Path) -> io::Result<UnixListener> {
    /// Connections that wait to be accepted.
    const BACKLOG: i32 = 128;
    let (address, len) = address(path.as_os_str())?;
    let socket = stream_socket()?;
    // The file gets the mode of the socket, less the umask (`unix_bind_bsd`, net/unix/af_unix.c).
    // SAFETY: a descriptor that is open; an address of that length.
    unsafe {
        check(libc::fchmod(socket.as_raw_fd(), 0o600).into())?;
        check(libc::bind(socket.as_raw_fd(), (&raw const address).cast(), len).into())?;
        check(libc::listen(socket.as_raw_fd(), BACKLOG).into())?;
    }
    // A umask that takes the owner's own rights would make it useless.
    std::fs::set_permissions(path, Permissions::from_mode(0o600))?;
    let listener = UnixListener::from(socket);
    listener.set_nonblocking(true)?;
    Ok(listener)
}

fn stream_socket() -> io::Result<OwnedFd> {
    // SAFETY: plain integers; a descriptor that is returned is ours.
    unsafe {
        let fd = check(libc::socket(libc::AF_UNIX, libc::SOCK_STREAM | libc::SOCK_CLOEXEC, 0).into())?;
        Ok(OwnedFd::from_raw_fd(fd as i32))
    }
}

/// Connects to the socket at `path`, and gives up after `timeout`, which later reads and writes have too.
///
/// Errors: `ConnectionRefused` where nobody listens any more; `WouldBlock` where nobody answers.
pub fn connect(path: &Path, timeout: Duration) -> io::Result<UnixStream> {
    let (address, len) = address(path.as_os_str())?;
    let stream = UnixStream::from(stream_socket()?);
    // connect(2) waits no longer than a write would.
    stream.set_write_timeout(Some(timeout))?;
    stream.set_read_timeout(Some(timeout))?;
    // SAFETY: an address of that length, and a descriptor that is open.
    check(unsafe { libc::connect(stream.as_raw_fd(), (&raw const address).cast(), len) }.into())?;
    Ok(stream)
}

/// The address of a path: refused where it does not fit, or has a NUL.
fn address(path: &OsStr) -> io::Result<(libc::sockaddr_un, libc::socklen_t)> {
    let bytes = path.as_bytes();
    // SAFETY: a struct of plain integers, for which zeros are valid.
    let mut address: libc::sockaddr_un = unsafe { std::mem::zeroed() };
    address.sun_family = libc::AF_UNIX as libc::sa_family_t;
    if bytes.is_empty() || bytes.len() >= address.sun_path.len() || bytes.contains(&0) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "the path is too long for a socket"));
    }
    for (to, from) in address.sun_path.iter_mut().zip(bytes) {
        *to = *from as libc::c_char;
    }
    let len = std::mem::offset_of!(libc::sockaddr_un, sun_path) + bytes.len() + 1;
    Ok((address, len as libc::socklen_t))
}

/// The process at the other end.
pub fn peer(stream: &UnixStream) -> io::Result<Peer> {
    let mut cred = libc::ucred { pid: 0, uid: 0, gid: 0 };
    let mut len = size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: room for the answer, and its length.
    check(unsafe {
        libc::getsockopt(stream.as_raw_fd(), libc::SOL_SOCKET, libc::SO_PEERCRED, (&raw mut cred).cast(), &raw mut len)
            .into()
    })?;
    Ok(Peer { pid: cred.pid, uid: cred.uid })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;
    use testkit::Scratch;

    #[test]
    fn directories_of_others_open_ones_and_links_are_refused() {
        let base = Scratch::new("dirs");
        let uid = crate::process::euid();
        let own = base.join("own");
        assert_eq!(private_dir(&own, uid).unwrap_err().kind(), io::ErrorKind::NotFound);
        make_private_dir(&own, uid).unwrap();
        assert_eq!(make_private_dir(&own, uid).unwrap().metadata().unwrap().mode() & 0o7777, 0o700);
        assert_eq!(private_dir(&own, uid + 1).unwrap_err().kind(), io::ErrorKind::PermissionDenied);
        std::fs::set_permissions(&own, Permissions::from_mode(0o750)).unwrap();
        assert_eq!(private_dir(&own, uid).unwrap_err().kind(), io::ErrorKind::PermissionDenied);
        std::fs::set_permissions(&own, Permissions::from_mode(0o700)).unwrap();
        symlink(&own, base.join("link")).unwrap();
        assert!(make_private_dir(&base.join("link"), uid).is_err());
        std::fs::write(base.join("file"), "").unwrap();
        assert!(make_private_dir(&base.join("file"), uid).is_err());
    }

    #[test]
    fn peers_are_known_and_a_socket_without_a_listener_is_told() {
        let base = Scratch::new("peers");
        let path = base.join("x.sock");
        let listener = listen(&path).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        assert_eq!(listen(&path).unwrap_err().kind(), io::ErrorKind::AddrInUse);
        assert_eq!(listener.accept().unwrap_err().kind(), io::ErrorKind::WouldBlock);
        let client = connect(&path, Duration::from_secs(5)).unwrap();
        let (server, _) = listener.accept().unwrap();
        let me = Peer { pid: crate::process::own_pid(), uid: crate::process::euid() };
        assert_eq!((peer(&server).unwrap(), peer(&client).unwrap()), (me, me));
        drop(listener);
        assert_eq!(connect(&path, Duration::from_secs(5)).unwrap_err().kind(), io::ErrorKind::ConnectionRefused);
        let long = base.join("x".repeat(200));
        assert_eq!(connect(&long, Duration::from_secs(5)).unwrap_err().kind(), io::ErrorKind::InvalidInput);
    }
}
