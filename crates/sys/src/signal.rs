//! Signals: dispositions, handlers that only count, timers that only interrupt.

use crate::check::check;
use crate::passing::{self, Passing};
use std::io;
use std::marker::PhantomData;
use std::path::Path;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

/// How signals were set when the process started, before Rust's runtime ignored SIGPIPE, and [`fail_beyond_the_size_limit`] SIGXFSZ.
static AT_START: [(i32, AtomicUsize); 2] =
    [(libc::SIGPIPE, AtomicUsize::new(libc::SIG_DFL)), (libc::SIGXFSZ, AtomicUsize::new(libc::SIG_DFL))];

extern "C" fn remember() {
    for (sig, at_start) in &AT_START {
        // SAFETY: reads the disposition into a valid, zeroed sigaction.
        unsafe {
            let mut old: libc::sigaction = std::mem::zeroed();
            if libc::sigaction(*sig, std::ptr::null(), &mut old) == 0 {
                at_start.store(old.sa_sigaction, Ordering::Relaxed);
            }
        }
    }
}

// SAFETY: .init_array holds function pointers that the loader calls before main; this one only stores to an atomic.
#[cfg_attr(not(miri), used, unsafe(link_section = ".init_array"))]
#[cfg_attr(miri, allow(dead_code))]
static BEFORE_MAIN: extern "C" fn() = remember;

fn set(sig: i32, handler: usize, flags: i32) -> io::Result<()> {
    // SAFETY: a zeroed sigaction with a handler and flags is valid; the handler is SIG_DFL, SIG_IGN or an extern "C" fn
    // that is async-signal-safe.
    unsafe {
        let mut sa: libc::sigaction = std::mem::zeroed();
        sa.sa_sigaction = handler;
        sa.sa_flags = flags;
        check(libc::sigaction(sig, &sa, std::ptr::null_mut()).into()).map(drop)
    }
}

/// A bit for each of the signals 1 to 64.
#[derive(Debug)]
struct Signals(AtomicU64);

impl Signals {
    const fn none() -> Signals {
        Signals(AtomicU64::new(0))
    }

    fn insert(&self, sig: i32) {
        self.0.fetch_or(1 << (sig - 1), Ordering::Relaxed);
    }
    fn has(&self, sig: i32) -> bool {
        self.0.load(Ordering::Relaxed) >> (sig - 1) & 1 != 0
    }
    fn all(&self) -> impl Iterator<Item = i32> + use<> {
        let bits = self.0.load(Ordering::Relaxed);
        (1..65).filter(move |sig| bits >> (sig - 1) & 1 != 0)
    }
    fn clear(&self) {
        self.0.store(0, Ordering::Relaxed);
    }
}

/// Ignores a signal.
pub fn ignore(sig: i32) -> io::Result<()> {
    set(sig, libc::SIG_IGN, 0)
}

/// Gives a signal its default action.
pub fn default(sig: i32) -> io::Result<()> {
    set(sig, libc::SIG_DFL, 0)
}

extern "C" fn nothing(_: i32) {}

/// Ignores a signal in this process, and not in the programs that it starts, if it is ignored (a shell starts `cmd &` with INT ignored). An empty
/// handler takes the place of `SIG_IGN`: execve(2) resets handlers to the default action. The standard library can start the programs by
/// posix_spawn(3) then.
pub fn ignore_only_here(sig: i32) -> io::Result<()> {
    // SAFETY: a zeroed sigaction is valid, and the call writes to it only.
    let old = unsafe {
        let mut old: libc::sigaction = std::mem::zeroed();
        check(libc::sigaction(sig, std::ptr::null(), &mut old).into())?;
        old
    };
    if old.sa_sigaction == libc::SIG_IGN { set(sig, nothing as *const () as usize, libc::SA_RESTART) } else { Ok(()) }
}

/// Files that would become larger than the limit (`RLIMIT_FSIZE`) fail with EFBIG, as those on a full disk fail with ENOSPC. The process does not end
/// of it (SIGXFSZ).
pub fn fail_beyond_the_size_limit() -> io::Result<()> {
    ignore(libc::SIGXFSZ)
}

/// Restores SIGPIPE and SIGXFSZ to their dispositions at the start of the process, for a command that is about to be executed.
pub fn as_at_start() -> io::Result<()> {
    AT_START.iter().try_for_each(|(sig, at_start)| set(*sig, at_start.load(Ordering::Relaxed), 0))
}

static COUNTS: [AtomicU32; 65] = [const { AtomicU32::new(0) }; 65];

static SENT: [AtomicU32; 65] = [const { AtomicU32::new(0) }; 65];

extern "C" fn count(sig: i32, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    // SAFETY: with SA_SIGINFO the kernel passes a valid siginfo.
    let sent = unsafe { info.as_ref() }.is_none_or(|i| i.si_code <= 0);
    if !sent && SPARED.has(sig) {
        return;
    }
    let add = |counts: &[AtomicU32; 65]| counts.get(sig as usize).map(|c| c.fetch_add(1, Ordering::Release));
    // In this order: a thread that sees the count also sees whether the signal was sent, see `counted`.
    if sent {
        add(&SENT);
    }
    add(&COUNTS);
    if ENDING.has(sig) {
        insist(sig);
    }
}

/// Counted signals that end the process where nobody takes note of them.
static ENDING: Signals = Signals::none();

/// How many of them were taken note of, and when the first of the others came.
static NOTED: [AtomicU32; 65] = [const { AtomicU32::new(0) }; 65];
static SINCE: [AtomicU64; 65] = [const { AtomicU64::new(0) }; 65];

/// A counted signal has come: whether the one before it waits in vain.
fn insist(sig: i32) {
    let at = sig as usize;
    let (now, unnoted) = (crate::time::monotonic(), counted(sig).wrapping_sub(NOTED[at].load(Ordering::Acquire)));
    if unnoted < 2 {
        SINCE[at].store(now, Ordering::Relaxed);
    } else if now.saturating_sub(SINCE[at].load(Ordering::Relaxed)) >= 1_000_000_000 && default(sig).is_ok() {
        passing::remove_all();
        // It is blocked in its handler, and comes when that returns.
        // SAFETY: raise takes a signal number.
        unsafe { libc::raise(sig) };
    }
}

extern "C" fn remove_and_end(sig: i32) {
    passing::remove_all();
    if default(sig).is_ok() {
        // It is blocked in its handler, and comes when that returns.
        // SAFETY: raise takes a signal number.
        unsafe { libc::raise(sig) };
    }
}

/// Removes a file if a signal ends the process before it is done. Signals that are counted or ignored keep what they do.
///
/// # Errors
/// The name has a NUL.
pub fn remove_at_end(path: &Path) -> io::Result<Passing> {
    let passing = Passing::new(path)?;
    for sig in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT] {
        if disposition(sig) == Some(libc::SIG_DFL) {
            set(sig, remove_and_end as *const () as usize, 0)?;
        }
    }
    Ok(passing)
}

/// Counts a signal as [`count_signal`] does. If it comes a second after one of its kind that nobody has [noted](note), as where the process
/// is blocked for good, it has its default action.
pub fn count_ending(sig: i32) -> io::Result<()> {
    count_signal(sig)?;
    ENDING.insert(sig);
    Ok(())
}

/// Takes note of as many of a signal that ends the process.
pub fn note(sig: i32, counted: u32) {
    if let Some(noted) = NOTED.get(sig as usize) {
        noted.store(counted, Ordering::Release);
    }
}

/// Signals that are counted.
static COUNTED: Signals = Signals::none();

/// Those of them that were ignored when the process started: a shell does this for `cmd &`, to protect it from the terminal's.
static SPARED: Signals = Signals::none();

/// Counts a signal instead of its action. System calls that it interrupts return EINTR. Of a signal that was ignored only those are
/// counted that a process has sent, and a command that is started inherits that it is ignored.
pub fn count_signal(sig: i32) -> io::Result<()> {
    if is_ignored(sig) {
        SPARED.insert(sig);
    }
    set(sig, count as *const () as usize, libc::SA_SIGINFO)?;
    COUNTED.insert(sig);
    Ok(())
}

/// A counted signal is as it was when the process started.
fn restore(sig: i32) {
    let _ = if SPARED.has(sig) { ignore(sig) } else { default(sig) };
}

/// In a forked process that is no front end: counted signals are as they were when trapline started, but those that it ignores.
pub fn uncount() {
    COUNTED.all().filter(|sig| !is_ignored(*sig)).for_each(restore);
    COUNTED.clear();
    ENDING.clear();
}

/// Blocks counted signals while this exists: it is made before a fork, so that none is lost between the fork and the exec. See
/// [`Held::give_back`]. The mask is that of one thread: it stays there.
pub struct Held(libc::sigset_t, PhantomData<*const ()>);

/// Blocks counted signals.
pub fn hold_counted() -> Held {
    // SAFETY: the sets are valid; an emptied one is filled with numbers of signals.
    unsafe {
        let (mut set, mut old): (libc::sigset_t, libc::sigset_t) = (std::mem::zeroed(), std::mem::zeroed());
        libc::sigemptyset(&mut set);
        for sig in COUNTED.all() {
            libc::sigaddset(&mut set, sig);
        }
        libc::sigprocmask(libc::SIG_BLOCK, &set, &mut old);
        Held(old, PhantomData)
    }
}

impl Held {
    /// In a child that is about to execute a command: counted signals are as they were when trapline started, and those that a
    /// terminal sent before the fork, to what was to be the command's process group, come now, as do those that waited.
    pub fn give_back(self) {
        for sig in COUNTED.all() {
            restore(sig);
            if counted(sig) > sent(sig) {
                // SAFETY: raise takes a signal number.
                unsafe { libc::raise(sig) };
            }
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // SAFETY: the set is the one that sigprocmask gave.
        unsafe { libc::sigprocmask(libc::SIG_SETMASK, &self.0, std::ptr::null_mut()) };
    }
}

/// How often a counted signal was sent by a process, and not by the kernel for a terminal.
pub fn sent(sig: i32) -> u32 {
    SENT.get(sig as usize).map_or(0, |c| c.load(Ordering::Relaxed))
}

/// Whether a signal is ignored now.
pub fn is_ignored(sig: i32) -> bool {
    disposition(sig) == Some(libc::SIG_IGN)
}

/// What a signal does now.
fn disposition(sig: i32) -> Option<usize> {
    // SAFETY: reads the disposition into a valid, zeroed sigaction.
    unsafe {
        let mut old: libc::sigaction = std::mem::zeroed();
        (libc::sigaction(sig, std::ptr::null(), &mut old) == 0).then_some(old.sa_sigaction)
    }
}

/// How often a counted signal came. What [`sent`] says afterwards is no older.
pub fn counted(sig: i32) -> u32 {
    COUNTS.get(sig as usize).map_or(0, |c| c.load(Ordering::Acquire))
}

/// Sends SIGALRM every `us` microseconds, so that a blocking wait returns; 0 stops it.
pub fn interval_timer(us: u32) -> io::Result<()> {
    let tv = libc::timeval { tv_sec: (us / 1_000_000).into(), tv_usec: (us % 1_000_000).into() };
    let it = libc::itimerval { it_interval: tv, it_value: tv };
    // SAFETY: `it` is valid for the call; no old value is asked for.
    check(unsafe { libc::setitimer(libc::ITIMER_REAL, &it, std::ptr::null_mut()) }.into()).map(drop)
}

/// Sends a signal to a process (or, negative, a group).
pub fn kill(pid: i32, sig: i32) -> io::Result<()> {
    // SAFETY: kill takes plain integers.
    check(unsafe { libc::kill(pid, sig) }.into()).map(drop)
}

/// Whether thread `tid` belongs to process `pid`, which need not be allowed to be signalled. Unlike `/proc` this never is another
/// pid namespace's.
pub fn is_thread_of(pid: i32, tid: i32) -> bool {
    // SAFETY: tgkill takes plain integers; signal 0 is only looked for.
    let found = check(unsafe { libc::syscall(libc::SYS_tgkill, pid, tid, 0) });
    !matches!(found.map_err(|e| e.raw_os_error()), Err(Some(libc::ESRCH | libc::EINVAL)))
}

/// Unblocks all signals in the calling thread.
pub fn unblock_all() {
    // SAFETY: an emptied set is valid for sigprocmask.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        libc::sigprocmask(libc::SIG_SETMASK, &set, std::ptr::null_mut());
    }
}

/// Asks for a signal when the parent dies.
pub fn on_parent_death(sig: i32) -> io::Result<()> {
    // SAFETY: PR_SET_PDEATHSIG takes a signal number.
    check(unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, sig as libc::c_ulong, 0, 0, 0) }.into()).map(drop)
}

/// Ends the calling process by signal `sig` (its default action), or returns where the signal does not kill.
pub fn die_of(sig: i32) {
    passing::remove_all();
    let _ = default(sig);
    // No core file of trapline's own for a command that dumped one.
    // SAFETY: setrlimit with a valid struct; raise takes a signal number.
    unsafe {
        let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        libc::setrlimit(libc::RLIMIT_CORE, &none);
        unblock_all();
        libc::raise(sig);
    }
}
