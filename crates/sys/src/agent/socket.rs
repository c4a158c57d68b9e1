//! The socket on which agents ask: a stream socket of unix(7), beside the agent's file and, with the same text as its name, in the abstract
//! namespace.
//!
//! A file beside the agent's can be reached wherever the agent can be loaded: names in the abstract namespace belong to a network
//! namespace, and a child may enter another one. Where the agent cannot be loaded (chroot), a process can still say so by the abstract name.
//! The name is random, and nobody may list the directory; who connects must belong to the session's user, or descend from its processes.

use crate::check::check;
use crate::socket::{Peer, peer};
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// How long a process may take for each step of a request.
const PATIENCE: Duration = Duration::from_secs(5);

/// Waits for agents.
pub struct Listener {
    socket: UnixListener,
    /// The one beside the agent's file.
    beside: Option<UnixListener>,
    name: String,
    /// Its file, where it has one.
    file: Option<SocketFile>,
}

/// A socket's file, which goes with the value.
#[derive(Clone, Debug)]
pub struct SocketFile(Arc<OwnPath>);

#[derive(Debug)]
struct OwnPath(PathBuf);

impl SocketFile {
    /// Removes the file now: nobody can connect any more.
    pub fn remove(&self) {
        self.0.remove();
    }
}

impl OwnPath {
    fn remove(&self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

impl Drop for OwnPath {
    fn drop(&mut self) {
        self.remove();
    }
}

/// What the names of sockets begin with.
const NAMES: &str = "socket-";
/// The longest path of a socket (`sun_path`, unix(7)), without NUL.
const LONGEST: usize = 103;
/// The most files that are looked at for sockets of collectors that were killed.
const MOST_FILES: usize = 1000;

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
        Listener::abstract_one(format!("trapline-agent-{}", random_name()?))
    }

    /// Listens where a process can reach it: names of the abstract namespace belong to a network namespace.
    ///
    /// # Errors
    /// Those of setns(2): the process is in another network namespace, and the caller may not enter that.
    pub fn near(pid: i32) -> io::Result<Listener> {
        let theirs = std::fs::File::open(format!("/proc/{pid}/ns/net"))?;
        let own = std::fs::metadata("/proc/self/ns/net")?;
        let meta = theirs.metadata()?;
        if (meta.dev(), meta.ino()) == (own.dev(), own.ino()) {
            return Listener::new();
        }
        // A namespace belongs to a thread: this one ends.
        std::thread::scope(|scope| {
            let inside = scope.spawn(|| {
                // SAFETY: a descriptor that is open; only this thread changes its namespace.
                check(unsafe { libc::setns(theirs.as_raw_fd(), libc::CLONE_NEWNET) }.into())?;
                Listener::new()
            });
            inside.join().map_err(|_| io::Error::from(io::ErrorKind::Other))?
        })
    }

    /// The name, as [`abi::SOCKET`] has it.
    fn abstract_one(name: String) -> io::Result<Listener> {
        let socket = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name)?)?;
        socket.set_nonblocking(true)?;
        Ok(Listener { socket, beside: None, name, file: None })
    }

    /// Listens at a file in a directory, where all users can connect, too; at an abstract name alone where the path would be too long.
    /// Files that collectors have left there when they were killed are removed.
    ///
    /// # Errors
    /// No socket is to be had.
    pub fn in_directory(dir: &Path) -> io::Result<Listener> {
        let random = random_name()?;
        let (path, new) = (dir.join(format!("{NAMES}{random}")), dir.join(format!(".{random}")));
        let Some(name) = path.to_str().filter(|n| n.len() <= LONGEST) else { return Listener::new() };
        remove_orphans(dir);
        // Before it listens, another collector would take it for an orphan.
        let beside = UnixListener::bind(&new)?;
        let open = std::fs::set_permissions(&new, std::fs::Permissions::from_mode(0o666));
        let file = SocketFile(Arc::new(OwnPath(path.clone())));
        if let Err(e) = open.and_then(|()| std::fs::rename(&new, &path)) {
            let _ = std::fs::remove_file(&new);
            return Err(e);
        }
        beside.set_nonblocking(true)?;
        let listener = Listener::abstract_one(name.into())?;
        Ok(Listener { beside: Some(beside), file: Some(file), ..listener })
    }

    /// The socket's file, where it has one.
    pub fn file(&self) -> Option<SocketFile> {
        self.file.clone()
    }

    /// The name, as [`abi::SOCKET`] has it: a path, or a name of the abstract namespace.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The next request, if there is one.
    ///
    /// # Errors
    /// Those of accept4(2).
    pub fn accept(&self) -> io::Result<Option<Request>> {
        let beside = self.beside.as_ref().map(UnixListener::accept);
        let nothing = |e: &io::Error| e.kind() == io::ErrorKind::WouldBlock;
        match beside.filter(|a| !a.as_ref().is_err_and(nothing)).unwrap_or_else(|| self.socket.accept()) {
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

fn random_name() -> io::Result<String> {
    let mut random = [0u8; 16];
    crate::process::random(&mut random)?;
    Ok(random.iter().map(|b| format!("{b:02x}")).collect())
}

/// Removes sockets at which nobody listens any more.
fn remove_orphans(dir: &Path) {
    let files = std::fs::read_dir(dir).into_iter().flatten().take(MOST_FILES).flatten();
    for file in files.filter(|f| f.file_name().to_string_lossy().starts_with(NAMES)) {
        let refused = UnixStream::connect(file.path()).is_err_and(|e| e.kind() == io::ErrorKind::ConnectionRefused);
        if refused {
            let _ = std::fs::remove_file(file.path());
        }
    }
}

impl Listener {
    /// Waits for a request, at most this long.
    pub fn wait(&self, timeout: Duration) {
        wait([Some(&self.socket), self.beside.as_ref()], timeout);
    }

    /// What notifies another thread of waiting requests.
    ///
    /// # Errors
    /// Too many descriptors are open.
    pub fn backlog(&self) -> io::Result<Backlog> {
        let beside = self.beside.as_ref().map(UnixListener::try_clone).transpose()?;
        Ok(Backlog { socket: self.socket.try_clone()?, beside })
    }
}

/// The requests that nobody has taken yet.
#[derive(Debug)]
pub struct Backlog {
    socket: UnixListener,
    beside: Option<UnixListener>,
}

impl Backlog {
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        !wait([Some(&self.socket), self.beside.as_ref()], Duration::ZERO)
    }
}

/// Waits until one of these has a request, at most this long; whether it has.
fn wait(sockets: [Option<&UnixListener>; 2], timeout: Duration) -> bool {
    let fds = sockets.map(|s| s.map_or(-1, AsRawFd::as_raw_fd));
    let mut polled = fds.map(|fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 });
    let ms = i32::try_from(timeout.as_millis()).unwrap_or(i32::MAX);
    // SAFETY: an array of this length, which outlives the call; negative descriptors are ignored.
    unsafe { libc::poll(polled.as_mut_ptr(), polled.len() as libc::nfds_t, ms) > 0 }
}

impl Request {
    /// Reads exactly this many bytes.
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

/// An empty file in memory that can be sealed. It is never executed, and says so: `vm.memfd_noexec` may demand it (Linux 6.3).
pub(super) fn memfd(name: &std::ffi::CStr) -> io::Result<OwnedFd> {
    const MFD_NOEXEC_SEAL: u32 = 8;
    let make = |flags: u32| {
        // SAFETY: a NUL-terminated name; a descriptor that is returned is ours.
        unsafe {
            let fd =
                check(libc::memfd_create(name.as_ptr(), libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING | flags).into())?;
            Ok(OwnedFd::from_raw_fd(fd as i32))
        }
    };
    match make(MFD_NOEXEC_SEAL) {
        Err(e) if io::Error::raw_os_error(&e) == Some(libc::EINVAL) => make(0),
        made => made,
    }
}

/// Seals a file's size and its seals, and `more`.
pub(crate) fn seal(fd: &OwnedFd, more: i32) -> io::Result<()> {
    let seals = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL | more;
    // SAFETY: a descriptor that is open, and an integer.
    check(unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_ADD_SEALS, seals) }.into()).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;

    #[test]
    fn a_socket_s_file_goes_with_it_and_orphans_go_with_the_next() {
        let scratch = testkit::Scratch::new("agent-socket");
        let files = || std::fs::read_dir(&scratch).unwrap().count();
        let first = Listener::in_directory(&scratch).unwrap();
        UnixStream::connect(first.name()).unwrap();
        drop(UnixListener::bind(scratch.join("socket-orphan")).unwrap());
        assert_eq!(files(), 2);
        let second = Listener::in_directory(&scratch).unwrap();
        assert_eq!(files(), 2);
        UnixStream::connect(first.name()).unwrap();
        drop((first, second));
        assert_eq!(files(), 0);
        let long = scratch.join("d".repeat(100));
        std::fs::create_dir(&long).unwrap();
        assert!(Listener::in_directory(&long).unwrap().file().is_none());
    }

    #[test]
    fn both_names_lead_to_the_listener() {
        let scratch = testkit::Scratch::new("agent-socket-names");
        let listener = Listener::in_directory(&scratch).unwrap();
        let by_name = SocketAddr::from_abstract_name(listener.name()).unwrap();
        let _both = (UnixStream::connect(listener.name()).unwrap(), UnixStream::connect_addr(&by_name).unwrap());
        listener.wait(Duration::from_secs(10));
        assert!(listener.accept().unwrap().is_some() && listener.accept().unwrap().is_some());
        assert!(listener.accept().unwrap().is_none());
    }

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
