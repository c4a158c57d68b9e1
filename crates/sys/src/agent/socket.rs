//! The socket on which agents ask: a stream socket in the abstract namespace of unix(7), which needs no file and is gone with the
//! collector. Its name is random; who connects must know it and belong to the session's user or root.

use crate::check::check;
use crate::socket::{Peer, peer};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::time::Duration;

/// How long a process may take for each step of a request.
const PATIENCE: Duration = Duration::from_secs(5);

/// Waits for agents.
pub struct Listener {
    socket: UnixListener,
    name: String,
}

/// What an agent asks, and the way to answer.
pub struct Request {
    stream: UnixStream,
    /// The process that asks.
    pub peer: Peer,
}

impl Listener {
    /// Listens at a name that nobody can guess.
    ///
    /// # Errors
    /// No socket is to be had.
    pub fn new() -> io::Result<Listener> {
        let mut random = [0u8; 16];
        crate::process::random(&mut random)?;
        let hex: String = random.iter().map(|b| format!("{b:02x}")).collect();
        let name = format!("trapline-agent-{hex}");
        let socket = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name)?)?;
        socket.set_nonblocking(true)?;
        Ok(Listener { socket, name })
    }

    /// The name, as [`abi::SOCKET`] has it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The next request, if there is one.
    ///
    /// # Errors
    /// Those of accept4(2).
    pub fn accept(&self) -> io::Result<Option<Request>> {
        match self.socket.accept() {
            Ok((stream, _)) => {
                stream.set_nonblocking(false)?;
                stream.set_read_timeout(Some(PATIENCE))?;
                stream.set_write_timeout(Some(PATIENCE))?;
                let peer = peer(&stream)?;
                Ok(Some(Request { stream, peer }))
            }
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(e) => Err(e),
        }
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Request {
    /// Reads exactly so many bytes.
    ///
    /// # Errors
    /// The process says less, or takes too long.
    pub fn read(&mut self, into: &mut [u8]) -> io::Result<()> {
        self.stream.read_exact(into)
    }

    /// Another handle to it.
    ///
    /// # Errors
    /// Those of fcntl(2).
    pub fn second(&self) -> io::Result<Request> {
        Ok(Request { stream: self.stream.try_clone()?, peer: self.peer })
    }

    /// Answers, with descriptors.
    ///
    /// # Errors
    /// The process does not take it.
    pub fn answer(&mut self, bytes: &[u8], fds: &[BorrowedFd]) -> io::Result<()> {
        /// Room for the control message of that many descriptors.
        const MOST: usize = 4;
        if fds.is_empty() {
            return self.stream.write_all(bytes);
        }
        if fds.len() > MOST || bytes.is_empty() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let raw: Vec<i32> = fds.iter().map(AsRawFd::as_raw_fd).collect();
        let mut room = [0u64; 8];
        let mut part = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
        // SAFETY: a struct of integers and pointers, for which zeros are valid; then all of it points to values that outlive the call.
        // The room is aligned and large enough for the header and MOST descriptors (CMSG_SPACE(16) is 32).
        let sent = unsafe {
            let mut message: libc::msghdr = std::mem::zeroed();
            message.msg_iov = &raw mut part;
            message.msg_iovlen = 1;
            message.msg_control = room.as_mut_ptr().cast();
            message.msg_controllen = libc::CMSG_SPACE((raw.len() * 4) as u32) as usize;
            let header = libc::CMSG_FIRSTHDR(&raw const message);
            (*header).cmsg_level = libc::SOL_SOCKET;
            (*header).cmsg_type = libc::SCM_RIGHTS;
            (*header).cmsg_len = libc::CMSG_LEN((raw.len() * 4) as u32) as usize;
            std::ptr::copy_nonoverlapping(raw.as_ptr(), libc::CMSG_DATA(header).cast(), raw.len());
            check(libc::sendmsg(self.stream.as_raw_fd(), &raw const message, libc::MSG_NOSIGNAL) as libc::c_long)?
        };
        self.stream.write_all(bytes.get(sent as usize..).unwrap_or_default())
    }
}

/// A file in memory with these bytes, which nobody can change any more.
///
/// # Errors
/// Those of memfd_create(2) and write(2).
pub fn sealed(name: &std::ffi::CStr, bytes: &[u8]) -> io::Result<OwnedFd> {
    let fd = memfd(name)?;
    let mut file = std::fs::File::from(fd);
    file.write_all(bytes)?;
    let fd = OwnedFd::from(file);
    seal(&fd, libc::F_SEAL_WRITE)?;
    Ok(fd)
}

/// An empty file in memory that can be sealed.
pub(super) fn memfd(name: &std::ffi::CStr) -> io::Result<OwnedFd> {
    let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
    // SAFETY: a NUL-terminated name; a descriptor that is returned is ours.
    unsafe {
        let fd = check(libc::memfd_create(name.as_ptr(), flags).into())?;
        Ok(OwnedFd::from_raw_fd(fd as i32))
    }
}

/// Seals a file's size and its seals, and `more`.
pub(super) fn seal(fd: &OwnedFd, more: i32) -> io::Result<()> {
    let seals = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL | more;
    // SAFETY: a descriptor that is open, and an integer.
    check(unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_ADD_SEALS, seals) }.into()).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptors_come_with_the_answer_and_cannot_be_changed() {
        let listener = Listener::new().unwrap();
        assert!(listener.accept().unwrap().is_none());
        let address = SocketAddr::from_abstract_name(listener.name()).unwrap();
        let mut agent = UnixStream::connect_addr(&address).unwrap();
        agent.write_all(b"hello").unwrap();
        let mut request = listener.accept().unwrap().unwrap();
        let mut said = [0; 5];
        request.read(&mut said).unwrap();
        assert_eq!((&said, request.peer.pid), (b"hello", crate::process::own_pid()));
        let fd = sealed(c"plan", b"0123456789").unwrap();
        request.answer(b"welcome", &[fd.as_fd()]).unwrap();
        let mut got = [0; 7];
        agent.read_exact(&mut got).unwrap();
        assert_eq!(&got, b"welcome");
        let file = std::fs::File::from(fd);
        assert!(file.set_len(3).is_err() && file.set_len(30).is_err());
        assert!((&file).write_all(b"x").is_err());
    }
}
