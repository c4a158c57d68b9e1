//! Making processes: fork, exec, sessions, descriptors.

use crate::check::check;
use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

/// How long [`fork`] waits for threads that are joined, and still end.
const THREADS_END: Duration = Duration::from_secs(1);

/// Forks a process that runs `child` and ends with the exit code that it returns. Returns the id of the process, and `mine`.
///
/// What `child` owns is the child's alone: the parent's copy is dropped. What is in `mine` is the parent's alone: the child drops
/// its copy before `child` runs. So a pipe has one end on each side, and ends with either process. The child has no way back into
/// the caller: it ends as [`exit_now`] does, with code 101 where `child` panics, or executes a program.
///
/// # Errors
/// `ResourceBusy`: the calling process has more than one thread. In the child none of the others would exist, and a lock that one
/// of them held, such as the allocator's, would stay locked.
pub fn fork<T>(mine: T, child: impl FnOnce() -> i32) -> io::Result<(i32, T)> {
    alone()?;
    // SAFETY: the calling thread is the only one (checked), so the child may go on as the parent may.
    match check(unsafe { libc::fork() }.into())? {
        0 => {
            let _end = ExitOnDrop;
            drop(mine);
            exit_now(child())
        }
        pid => Ok((pid as i32, mine)),
    }
}

/// Ends the process where a panic would unwind into the frames of the process that it was forked from.
struct ExitOnDrop;

impl Drop for ExitOnDrop {
    fn drop(&mut self) {
        exit_now(101)
    }
}

/// Whether the calling thread is the only one of its process. A thread that was joined may still be there for a moment.
fn alone() -> io::Result<()> {
    let start = std::time::Instant::now();
    while std::fs::read_dir("/proc/self/task")?.take(2).count() > 1 {
        if start.elapsed() > THREADS_END {
            return Err(io::Error::new(io::ErrorKind::ResourceBusy, "the process has more than one thread"));
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok(())
}

/// Ends the process without running destructors or flushing anything.
pub fn exit_now(code: i32) -> ! {
    // SAFETY: _exit does not return.
    unsafe { libc::_exit(code) }
}

/// Starts a session of its own.
pub fn new_session() -> io::Result<()> {
    // SAFETY: no arguments.
    check(unsafe { libc::setsid() }.into()).map(drop)
}

/// Has the three standard descriptors lead to /dev/null. They are open all the time, and no value owns them: the standard library opens those
/// that a program is started without.
pub fn leave_terminal() -> io::Result<()> {
    let null = std::fs::File::options().read(true).write(true).open("/dev/null")?;
    for fd in 0..3 {
        // SAFETY: both are descriptors, and the first three have no owner. No test can show that: one that closes them takes them from others.
        check(unsafe { libc::dup2(null.as_raw_fd(), fd) }.into())?;
    }
    Ok(())
}

/// A pipe, close-on-exec: read end, write end.
pub fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let mut fds = [0; 2];
    // SAFETY: room for two descriptors; on success both are ours.
    unsafe {
        check(libc::pipe2(fds.as_mut_ptr(), libc::O_CLOEXEC).into())?;
        Ok((OwnedFd::from_raw_fd(fds[0]), OwnedFd::from_raw_fd(fds[1])))
    }
}

/// Writes one byte. Async-signal-safe.
pub fn write_byte(fd: &impl AsFd, byte: u8) -> io::Result<()> {
    // SAFETY: one byte from a valid address.
    check(unsafe { libc::write(fd.as_fd().as_raw_fd(), (&raw const byte).cast(), 1) } as libc::c_long).map(drop)
}

/// Reads one byte, none at the end. Async-signal-safe.
pub fn read_byte(fd: &impl AsFd) -> io::Result<Option<u8>> {
    let mut byte = 0u8;
    loop {
        // SAFETY: one byte into a valid address.
        match check(unsafe { libc::read(fd.as_fd().as_raw_fd(), (&raw mut byte).cast(), 1) } as libc::c_long) {
            Ok(0) => return Ok(None),
            Ok(_) => return Ok(Some(byte)),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
}

/// Points every descriptor of the process but `keep` to /dev/null, so that it holds no file, pipe or terminal of others. The numbers
/// stay in use: their owners keep them, read nothing from then on, and close them.
///
/// # Errors
/// `ResourceBusy`: the calling process has more than one thread. Another one might close a descriptor, and open a file under its number,
/// between the look at it and this.
pub fn hold_no_files(keep: BorrowedFd) -> io::Result<()> {
    alone()?;
    let null = std::fs::OpenOptions::new().read(true).write(true).open("/dev/null")?;
    let (null, keep) = (null.as_raw_fd(), keep.as_raw_fd());
    let name = |entry: io::Result<std::fs::DirEntry>| entry.ok()?.file_name().to_str()?.parse::<i32>().ok();
    // Collected, so that the descriptor of the directory is closed.
    let open: Vec<i32> = std::fs::read_dir("/proc/self/fd")?.filter_map(name).collect();
    for fd in open.into_iter().chain(0..3).filter(|fd| ![null, keep].contains(fd)) {
        let flags = if fd < 3 { 0 } else { libc::O_CLOEXEC };
        // SAFETY: F_GETFD reads flags. A descriptor that is open is made to name another file, which its owner may still use and
        // close, and which refuses what only maps, events and memory can do; one that is closed stays so, but for the first three. There is no
        // other thread that could open or close any meanwhile.
        unsafe {
            if fd < 3 || libc::fcntl(fd, libc::F_GETFD) >= 0 {
                check(libc::dup3(null, fd, flags).into())?;
            }
        }
    }
    Ok(())
}

/// Gives copies of `fds` to a process that closes them when the calling process has ended, and then ends itself. Nobody waits
/// for it, and it keeps nothing else open. Where it cannot be made, the caller closes them at its own end.
pub fn leave_behind(fds: &[BorrowedFd]) {
    let mut keep: Vec<i32> = fds.iter().map(|fd| fd.as_raw_fd()).collect();
    keep.sort_unstable();
    let parent = own_pid();
    // SAFETY: the child only makes async-signal-safe calls (close_range, setsid, getppid, nanosleep, _exit) and touches no
    // memory but the vector that was made before; the intermediate child lets init inherit it, so that no zombie is left.
    unsafe {
        let first = libc::fork();
        if first != 0 {
            if first > 0 {
                libc::waitpid(first, std::ptr::null_mut(), 0);
            }
            return;
        }
        libc::setsid();
        let mut from = 0u32;
        for fd in &keep {
            let fd = *fd as u32;
            if fd > from {
                libc::syscall(libc::SYS_close_range, from, fd - 1, 0);
            }
            from = fd + 1;
        }
        libc::syscall(libc::SYS_close_range, from, u32::MAX, 0);
        // The caller waits until here: nobody else holds a descriptor that is not in `fds`.
        if libc::fork() != 0 {
            libc::_exit(0);
        }
        let pause = libc::timespec { tv_sec: 0, tv_nsec: 1_000_000 };
        // Two seconds at most: the parent is about to end.
        for _ in 0..2000 {
            if libc::kill(parent, 0) != 0 {
                break;
            }
            libc::nanosleep(&pause, std::ptr::null_mut());
        }
        libc::_exit(0);
    }
}

/// The user and groups that a command runs as.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// User.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Supplementary groups.
    pub groups: Vec<u32>,
}

/// Becomes `who`, for good.
pub fn become_user(who: &Identity) -> io::Result<()> {
    // SAFETY: the groups slice is valid for the call; ids are plain integers.
    unsafe {
        check(libc::setgroups(who.groups.len(), who.groups.as_ptr()).into())?;
        check(libc::setresgid(who.gid, who.gid, who.gid).into())?;
        check(libc::setresuid(who.uid, who.uid, who.uid).into()).map(drop)
    }
}

/// Which of stdin, stdout and stderr were closed when the process started, a bit each: Rust's runtime opens `/dev/null` in their place.
static CLOSED_AT_START: AtomicU8 = AtomicU8::new(0);

extern "C" fn remember_closed() {
    for fd in 0..3 {
        // SAFETY: F_GETFD only looks at a descriptor.
        if unsafe { libc::fcntl(fd, libc::F_GETFD) } < 0 {
            CLOSED_AT_START.fetch_or(1 << fd, Ordering::Relaxed);
        }
    }
}

// SAFETY: .init_array holds function pointers that the loader calls before main; this one only stores to an atomic.
#[used]
#[unsafe(link_section = ".init_array")]
static AT_START: extern "C" fn() = remember_closed;

/// A program, its arguments and environment, ready for execve(2): made before the fork, because making it allocates.
#[derive(Debug)]
pub struct Image {
    path: CString,
    argv: Vec<CString>,
    envp: Vec<CString>,
}

impl Image {
    /// Arguments and variables (`NAME=VALUE`) must not contain NUL.
    pub fn new(path: CString, argv: Vec<CString>, envp: Vec<CString>) -> Image {
        Image { path, argv, envp }
    }

    /// This program with further variables, which replace those of their names.
    pub fn with(&self, variables: &[(&str, &[u8])]) -> Image {
        let is = |v: &CString, name: &str| {
            v.as_bytes().strip_prefix(name.as_bytes()).is_some_and(|rest| rest.first() == Some(&b'='))
        };
        let kept = self.envp.iter().filter(|v| !variables.iter().any(|(name, _)| is(v, name))).cloned();
        let new =
            variables.iter().filter_map(|(name, value)| CString::new([name.as_bytes(), b"=", value].concat()).ok());
        Image { path: self.path.clone(), argv: self.argv.clone(), envp: kept.chain(new).collect() }
    }

    /// The value of a variable of its environment.
    pub fn variable(&self, name: &str) -> Option<&[u8]> {
        self.envp.iter().find_map(|v| v.as_bytes().strip_prefix(name.as_bytes())?.strip_prefix(b"="))
    }

    /// Executes it, with stdin, stdout and stderr closed where they were when the calling process started; returns only on failure.
    /// Async-signal-safe but for the two pointer lists, which a single-threaded child may allocate.
    pub fn exec(&self) -> io::Error {
        for fd in (0..3).filter(|fd| CLOSED_AT_START.load(Ordering::Relaxed) >> fd & 1 != 0) {
            // SAFETY: what is there was opened by Rust's runtime, and nobody uses it between here and the exec.
            unsafe { libc::close(fd) };
        }
        let list = |v: &[CString]| -> Vec<*const libc::c_char> {
            v.iter().map(|s| s.as_ptr()).chain(std::iter::once(std::ptr::null())).collect()
        };
        let (argv, envp) = (list(&self.argv), list(&self.envp));
        // SAFETY: NUL-terminated strings in NULL-terminated arrays that outlive the call.
        unsafe { libc::execve(self.path.as_ptr(), argv.as_ptr(), envp.as_ptr()) };
        io::Error::last_os_error()
    }
}

/// Whether the calling process may execute the file (access(2) with X_OK, effective ids).
pub fn may_execute(path: &CStr) -> io::Result<()> {
    // SAFETY: a NUL-terminated path.
    check(unsafe { libc::faccessat(libc::AT_FDCWD, path.as_ptr(), libc::X_OK, libc::AT_EACCESS) }.into()).map(drop)
}

/// Effective user id.
pub fn euid() -> u32 {
    // SAFETY: no arguments, cannot fail.
    unsafe { libc::geteuid() }
}

/// Real user id: the user who started the process, whatever the file's owner or capabilities are.
pub fn ruid() -> u32 {
    // SAFETY: no arguments, cannot fail.
    unsafe { libc::getuid() }
}

/// The real group.
pub fn rgid() -> u32 {
    // SAFETY: no arguments, cannot fail.
    unsafe { libc::getgid() }
}

/// The processor that the calling thread runs on.
pub fn own_cpu() -> Option<u32> {
    // SAFETY: no arguments.
    u32::try_from(unsafe { libc::sched_getcpu() }).ok()
}

/// The NUMA node of that processor.
pub fn own_node() -> Option<u32> {
    let (mut cpu, mut node) = (0u32, 0u32);
    // SAFETY: both are written, and live; the third argument is not used.
    let failed = unsafe { libc::syscall(libc::SYS_getcpu, &raw mut cpu, &raw mut node, std::ptr::null::<u8>()) };
    (failed == 0).then_some(node)
}

/// The first of these processes with a thread that the real user may not inspect by ptrace's rules: no capability and no
/// setuid bit of trapline's helps. A process that is gone is not refused.
///
/// Reading `/proc/PID/task/TID/syscall` asks PTRACE_MODE_ATTACH_FSCREDS (`proc_pid_syscall`, `fs/proc/base.c`); the question is put
/// by a thread that has given up everything: the kernel keeps ids and capabilities for each thread.
pub fn first_refused(pids: &[i32]) -> io::Result<Option<i32>> {
    let pids = pids.to_vec();
    let asked = std::thread::Builder::new().spawn(move || refused_to_real_user(&pids))?;
    match asked.join().unwrap_or(-1) {
        0 => Ok(None),
        -1 => Err(io::ErrorKind::PermissionDenied.into()),
        pid => Ok(Some(pid)),
    }
}

/// Has the calling thread give up everything, and returns the first process that is refused then: 0 for none, -1 where it cannot be given up.
fn refused_to_real_user(pids: &[i32]) -> i32 {
    let (uid, gid) = (ruid(), rgid());
    // SAFETY: plain integers. With an effective id of root first the ids go, and with them capabilities. The calls of libc would
    // change all threads.
    let become_real = unsafe {
        libc::syscall(libc::SYS_setresgid, gid, gid, gid) == 0 && libc::syscall(libc::SYS_setresuid, uid, uid, uid) == 0
    };
    if !become_real || crate::caps::drop_to(0).is_err() {
        return -1;
    }
    let refused = |pid: &&i32| {
        let threads = crate::proc::threads(**pid).unwrap_or_default();
        threads.iter().any(|tid| {
            let read = std::fs::read(format!("/proc/{pid}/task/{tid}/syscall"));
            read.is_err_and(|e| matches!(e.raw_os_error(), Some(libc::EACCES | libc::EPERM)))
        })
    };
    pids.iter().find(refused).copied().unwrap_or(0)
}

/// Parent's process id.
pub fn parent() -> i32 {
    // SAFETY: no arguments, cannot fail.
    unsafe { libc::getppid() }
}

/// Own process id.
pub fn own_pid() -> i32 {
    std::process::id() as i32
}

/// The caller's thread.
pub fn own_tid() -> i32 {
    // SAFETY: always succeeds.
    unsafe { libc::syscall(libc::SYS_gettid) as i32 }
}

/// A command whose signals are as they were when this process started ([`crate::signal::as_at_start`]).
pub fn command(program: impl AsRef<std::ffi::OsStr>) -> std::process::Command {
    use std::os::unix::process::CommandExt;
    let mut command = std::process::Command::new(program);
    // SAFETY: in the forked child only sigaction(2) is called, which is async-signal-safe.
    unsafe { command.pre_exec(crate::signal::as_at_start) };
    command
}

/// Waits until `fd` is readable (a pidfd is when its process has ended), `time` at most; whether it is.
pub fn wait_readable(fd: &impl AsFd, time: Duration) -> io::Result<bool> {
    wait_any(&[fd.as_fd()], Some(time))
}

/// Waits until one of these is readable, `time` at most (none: as long as it takes); whether one is.
pub fn wait_any(fds: &[BorrowedFd], time: Option<Duration>) -> io::Result<bool> {
    let wait = |fd: &BorrowedFd| libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    let mut fds: Vec<libc::pollfd> = fds.iter().map(wait).collect();
    let time = time.map(|t| libc::timespec { tv_sec: t.as_secs() as _, tv_nsec: t.subsec_nanos().into() });
    let at_most = time.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: the entries and the time are ours, and there are as many entries as said; no mask.
    let ready = unsafe { libc::ppoll(fds.as_mut_ptr(), fds.len() as libc::nfds_t, at_most, std::ptr::null()) };
    match crate::check::check(ready.into()) {
        Err(e) if e.kind() == io::ErrorKind::Interrupted => Ok(false),
        other => other.map(|n| n > 0),
    }
}

/// A descriptor for a process, or with `thread` for any thread (PIDFD_THREAD, Linux 6.9).
pub fn pidfd(pid: i32, thread: bool) -> io::Result<OwnedFd> {
    let flags = if thread { libc::O_EXCL } else { 0 };
    // SAFETY: plain integers; a descriptor that is returned is ours.
    unsafe {
        let fd = check(libc::syscall(libc::SYS_pidfd_open, pid, flags))?;
        Ok(OwnedFd::from_raw_fd(fd as i32))
    }
}

/// Whether a thread has ended: it is gone, or it is the first of a process whose threads have all ended.
///
/// Nothing of it is read under `/proc`, because most files there hold the memory of the process while they are read: should it end
/// meanwhile, the reader would free that memory in its place.
pub fn has_ended(tid: i32) -> bool {
    match pidfd(tid, false) {
        Ok(fd) => wait_readable(&fd, Duration::ZERO).unwrap_or(true),
        Err(e) if e.raw_os_error() == Some(libc::ESRCH) => true,
        // Not the first thread of its process: when it ends, it is gone.
        Err(_) => crate::signal::kill(tid, 0).is_err_and(|e| e.raw_os_error() == Some(libc::ESRCH)),
    }
}

/// Makes the calling process, and those that it forks, dumpable: processes of the same user may trace them (prctl(2)). A program whose
/// file has capabilities is not, and neither is what it forks. For a process that has given those up.
pub fn make_dumpable() -> io::Result<()> {
    // SAFETY: PR_SET_DUMPABLE takes a number.
    check(unsafe { libc::prctl(libc::PR_SET_DUMPABLE, 1, 0, 0, 0) }.into()).map(drop)
}

/// Fills `bytes` with random numbers, as getrandom(2) does.
///
/// The bare call: the standard library declares libc's function as a weak symbol, which in one program with a strong one, optimised
/// as a whole and linked statically with musl, is a null pointer.
pub fn random(bytes: &mut [u8]) -> io::Result<()> {
    let mut done = 0;
    while let Some(rest) = bytes.get_mut(done..).filter(|rest| !rest.is_empty()) {
        // SAFETY: the pointer and the length are those of one slice that is borrowed for the call.
        match check(unsafe { libc::syscall(libc::SYS_getrandom, rest.as_mut_ptr(), rest.len(), 0) }) {
            Ok(n) => done += n as usize,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

/// Writes a file that only its owner may read; refuses a name that exists.
pub fn write_private(path: &std::path::Path, bytes: &[u8]) -> io::Result<()> {
    use std::io::Write;
    use std::os::unix::fs::OpenOptionsExt;
    std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?.write_all(bytes)
}

/// Whether a descriptor is a terminal.
pub fn is_terminal(fd: &impl AsFd) -> bool {
    // SAFETY: isatty takes a descriptor.
    unsafe { libc::isatty(fd.as_fd().as_raw_fd()) == 1 }
}

/// Columns and rows of a terminal; none where it is no terminal, or does not say.
pub fn terminal_size(fd: &impl AsFd) -> Option<(u16, u16)> {
    let mut size = libc::winsize { ws_row: 0, ws_col: 0, ws_xpixel: 0, ws_ypixel: 0 };
    // SAFETY: the request writes one winsize, which `size` is for the duration of the call.
    let done = unsafe { libc::ioctl(fd.as_fd().as_raw_fd(), libc::TIOCGWINSZ, &mut size) } == 0;
    (done && size.ws_col > 0 && size.ws_row > 0).then_some((size.ws_col, size.ws_row))
}

/// Raises the limit on open descriptors to the hard limit.
pub fn raise_file_limit() -> io::Result<()> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is a valid rlimit for the duration of both calls.
    let done = unsafe {
        libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) == 0 && {
            limit.rlim_cur = limit.rlim_max;
            libc::setrlimit(libc::RLIMIT_NOFILE, &limit) == 0
        }
    };
    if done { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_with_threads_does_not_fork_and_keeps_its_files() {
        let (wait, go_on) = pipe().unwrap();
        let thread = std::thread::spawn(move || read_byte(&wait));
        let other = std::thread::spawn(|| hold_no_files(io::stderr().as_fd()).unwrap_err());
        let refused = [fork((), || 0).unwrap_err(), other.join().unwrap()];
        assert_eq!(refused.map(|e| e.kind()), [io::ErrorKind::ResourceBusy; 2]);
        drop(go_on);
        assert_eq!(thread.join().unwrap().unwrap(), None);
    }

    #[test]
    fn random_numbers_fill_everything_and_differ() {
        let mut all = [[0u8; 1000]; 2];
        all.iter_mut().for_each(|bytes| random(bytes).unwrap());
        assert_ne!(all[0], all[1]);
        // The odds against a run of 16 zeros at the end are 2 to the 128th.
        assert!(all.iter().all(|bytes| bytes[984..].iter().any(|b| *b != 0)));
        random(&mut []).unwrap();
    }
}
