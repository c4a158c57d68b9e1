//! A thread of another process, stopped.
//!
//! A thread is stopped by PTRACE_INTERRUPT, not by a signal: at a place where it would otherwise return to the program, with no signal
//! half delivered, and with a system call that it was in about to be repeated. Let go, it notices nothing.

use crate::check::check;
use crate::ptrace::{self, Change, Registers, event};
use crate::{mem, proc};
use std::io;
use std::marker::PhantomData;
use std::ops::Range;
use std::time::{Duration, Instant};

/// A stop at a call is no SIGTRAP: a thread that comes to one while its tracer dies would get the signal (`ptrace_report_syscall`,
/// include/linux/ptrace.h of Linux 6.18).
pub(super) const OPTIONS: u64 = libc::PTRACE_O_TRACESYSGOOD as u64;
/// How long a thread may wait in the kernel, where no signal reaches it, before it counts as one that does not stop.
pub(super) const STOP: Duration = Duration::from_millis(100);
/// How long one may take that only waits for a processor.
const BUSY: Duration = Duration::from_secs(10);
/// How long a thread that runs may take for one instruction, before it counts as one that waits.
pub(super) const STEP: Duration = Duration::from_millis(100);
/// SIGTRAP in a set of signals.
pub(super) const TRAP: u64 = 1 << (libc::SIGTRAP - 1);
/// How often a thread runs a little further, and is still there, until it executes single instructions.
const NUDGES: u32 = 8;
/// How long one of these may take.
const LONGEST: Duration = Duration::from_millis(50);
/// A thread that has taken so much of a processor's time has run since: a stop alone takes less, ns.
const RAN: u64 = 200_000;
/// How long threads may take to leave the ranges of [`super::Threads::clear`].
const CLEAR: Duration = Duration::from_secs(3);
/// How far up a stack is looked.
const STACK: usize = 64 << 10;
pub(super) const NAP: Duration = Duration::from_micros(20);

/// Walks the stack of a stopped thread: the pcs of all its frames, those that handlers have interrupted included; none where the stack
/// cannot be walked to its end.
pub type Walk<'w> = dyn Fn(&Thread) -> Option<Vec<u64>> + 'w;

/// How often a thread whose stack cannot be walked runs a little further, until its whole stack is looked through instead.
const TRIES: u32 = 8;

/// A stopped thread of another process. Dropped, it runs on.
pub struct Thread {
    pub(super) tid: i32,
    /// It is stopped, and this thread traces it.
    pub(super) held: bool,
    /// It stays in the thread that traces it.
    here: PhantomData<*const ()>,
}

#[cfg(test)]
crate::check::has_not!(Thread: Send);
#[cfg(test)]
crate::check::has_not!(super::Caller<'_>: Send);

/// Sleeps, or only lets others run in the first moments.
pub(super) fn nap(since: Instant) {
    if since.elapsed() < NAP { std::thread::yield_now() } else { std::thread::sleep(NAP) }
}

impl Thread {
    /// Asks a thread to stop.
    ///
    /// # Errors
    /// `PermissionDenied`: it may not be traced, or is already.
    pub fn ask(tid: i32) -> io::Result<Thread> {
        ptrace::seize(tid, OPTIONS)?;
        let thread = Thread::of(tid);
        ptrace::interrupt(tid)?;
        Ok(thread)
    }

    /// Waits until a thread that was asked has stopped. False: it waits in the kernel, and stops when it returns from there.
    ///
    /// # Errors
    /// It has ended.
    pub fn has_stopped(&mut self) -> io::Result<bool> {
        match self.wait_for_stop(STOP) {
            Err(e) if e.kind() == io::ErrorKind::TimedOut => Ok(false),
            other => other.map(|()| true),
        }
    }

    /// One that this thread traces.
    pub(super) fn of(tid: i32) -> Thread {
        Thread { tid, held: false, here: PhantomData }
    }

    /// Its id.
    pub fn tid(&self) -> i32 {
        self.tid
    }

    /// Stops it, after [`Thread::run`] too.
    pub(super) fn hold(&mut self, limit: Duration) -> io::Result<()> {
        ptrace::interrupt(self.tid)?;
        self.wait_for_stop(limit)
    }

    /// Stops it again, from a stop of another kind.
    pub(super) fn hold_on(&mut self, limit: Duration) -> io::Result<()> {
        ptrace::interrupt(self.tid)?;
        self.run()?;
        self.wait_for_stop(limit)
    }

    pub(super) fn wait_for_stop(&mut self, limit: Duration) -> io::Result<()> {
        let since = Instant::now();
        loop {
            if self.look()? == Some(event::STOP) {
                return self.repeat_call();
            }
            let waited = since.elapsed();
            if waited >= BUSY
                || waited >= limit && proc::status_field(self.tid, "State").is_none_or(|s| s.starts_with('D'))
            {
                return Err(io::ErrorKind::TimedOut.into());
            }
            nap(since);
        }
    }

    /// Has the thread make its call again that the stop has ended ([`ptrace::repeat_call`]).
    pub(super) fn repeat_call(&self) -> io::Result<()> {
        ptrace::repeat_call(self.tid).map(drop)
    }

    /// A set of signals in its status.
    pub(super) fn signals(&self, field: &str) -> u64 {
        proc::signals(self.tid, field)
    }

    /// Whether it may execute a single instruction: the kernel forces SIGTRAP for that, and where the signal is blocked or ignored, it
    /// resets the program's action to the default (`force_sig_info_to_task`, kernel/signal.c of Linux 6.18). Of a program that steps through
    /// itself, the signal is its own.
    fn may_step(&self) -> bool {
        const TRAP_FLAG: u64 = 0x100;
        let steps_itself = || self.registers().is_ok_and(|r| r.0.eflags & TRAP_FLAG != 0);
        (self.signals("SigBlk") | self.signals("SigIgn")) & TRAP == 0 && !steps_itself()
    }

    /// What has happened to it. A signal that it was about to get, it gets.
    pub(super) fn look(&mut self) -> io::Result<Option<i32>> {
        let status = match retried(|| ptrace::wait_for(self.tid, false)) {
            // A thread that executes a program takes the first one's id, and the others are gone.
            Err(e) if e.raw_os_error() == Some(libc::ECHILD) => return Err(io::Error::from_raw_os_error(libc::ESRCH)),
            other => other?,
        };
        let Some(status) = status else { return Ok(None) };
        match status.change() {
            Change::Stopped(_, event::STOP) => {
                self.held = true;
                Ok(Some(event::STOP))
            }
            Change::Stopped(signal, 0) => {
                ptrace::cont(self.tid, signal & 0x7f)?;
                Ok(None)
            }
            Change::Stopped(_, other) => {
                ptrace::cont(self.tid, 0)?;
                Ok(Some(other))
            }
            Change::Exited(_) | Change::Killed(..) => {
                self.held = false;
                Err(io::Error::from_raw_os_error(libc::ESRCH))
            }
        }
    }

    /// Lets it run, still traced.
    pub(super) fn run(&mut self) -> io::Result<()> {
        self.held = false;
        ptrace::cont(self.tid, 0)
    }

    /// Its registers.
    ///
    /// # Errors
    /// It has ended.
    pub fn registers(&self) -> io::Result<Registers> {
        ptrace::all_registers(self.tid)
    }

    /// Writes memory that it may write to. Nobody traces a thread of his own process, so no memory of trapline is ever written.
    ///
    /// # Errors
    /// Those of process_vm_writev(2); `WriteZero`: only a part of it is mapped; ESRCH: it is not stopped.
    pub fn write(&self, addr: u64, bytes: &[u8]) -> io::Result<()> {
        let tid = self.held()?;
        if bytes.is_empty() {
            return Ok(());
        }
        let local = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
        let remote = libc::iovec { iov_base: addr as *mut libc::c_void, iov_len: bytes.len() };
        // SAFETY: the local iovec covers `bytes`, which is only read; the remote one is only interpreted in the thread's process, which is
        // another one.
        let n = unsafe { libc::process_vm_writev(tid, &local, 1, &remote, 1, 0) };
        if check(n as libc::c_long)? as usize == bytes.len() { Ok(()) } else { Err(io::ErrorKind::WriteZero.into()) }
    }

    /// Writes to memory of a stopped thread's process that may be read-only, such as its code.
    ///
    /// # Errors
    /// Those of open(2) and pwrite(2) for `/proc/PID/mem`; ESRCH: it is not stopped.
    pub(super) fn write_code(&self, addr: u64, bytes: &[u8]) -> io::Result<()> {
        let memory = std::fs::OpenOptions::new().write(true).open(format!("/proc/{}/mem", self.held()?))?;
        std::os::unix::fs::FileExt::write_all_at(&memory, bytes, addr)
    }

    /// Its id, which is its own as long as it is stopped.
    fn held(&self) -> io::Result<i32> {
        if self.held { Ok(self.tid) } else { Err(io::Error::from_raw_os_error(libc::ESRCH)) }
    }

    /// The words of the inner part of its stack.
    fn stack(&self) -> io::Result<Vec<u64>> {
        let registers = self.registers()?;
        let mut stack = vec![0; STACK];
        let len = mem::read(self.tid, registers.sp() & !7, &mut stack).unwrap_or(0);
        let words = stack[..len].as_chunks::<8>().0;
        Ok(words.iter().map(|w| u64::from_le_bytes(*w)).collect())
    }

    /// Whether its pc is in one of these ranges, which are in order and apart, or that of a frame from which it will return there.
    ///
    /// # Errors
    /// It has ended.
    fn within(&self, ranges: &[Range<u64>], walk: &Walk<'_>) -> io::Result<Within> {
        let registers = self.registers()?;
        if is_in(ranges, registers.pc()) {
            return Ok(Within::Now);
        }
        Ok(match walk(self) {
            Some(pcs) if pcs.iter().any(|pc| is_in(ranges, *pc)) => Within::Later,
            Some(_) => Within::Not,
            // In the kernel its stack does not change: it is looked through.
            None if registers.0.orig_rax as i64 >= 0 => self.seems_within(ranges)?,
            None => Within::Unknown,
        })
    }

    /// [`Thread::within`] by all words of the inner part of its stack, where handlers may have left frames.
    fn seems_within(&self, ranges: &[Range<u64>]) -> io::Result<Within> {
        // In words: the pc in a `struct ucontext`, and what is before and behind it: flags, code segment.
        const FLAGS_BEFORE: usize = 21;
        const SEGMENT_BEHIND: usize = 2;
        let words = self.stack()?;
        let is_frame = |at: usize| {
            let flags = at.checked_sub(FLAGS_BEFORE).and_then(|f| words.get(f));
            flags.is_some_and(|f| *f <= 7) && words.get(at + SEGMENT_BEHIND).is_some_and(|s| s & 0xffff == 0x33)
        };
        let in_frame = (0..words.len()).any(|at| is_in(ranges, words[at]) && is_frame(at));
        Ok(if in_frame { Within::Later } else { Within::Not })
    }

    /// Whether its pc is in one of these ranges, which are in order and apart, or it may return there.
    ///
    /// # Errors
    /// It has ended.
    pub fn may_return_into(&self, ranges: &[Range<u64>], walk: &Walk<'_>) -> io::Result<bool> {
        if is_in(ranges, self.registers()?.pc()) {
            return Ok(true);
        }
        let pcs = match walk(self) {
            Some(pcs) => pcs,
            None => self.stack()?,
        };
        Ok(pcs.iter().any(|pc| is_in(ranges, *pc)))
    }

    /// Lets it run for a time, and stops it again. It is not traced meanwhile: a thread whose timer ticks faster than trapline could pass
    /// its signals on would never leave its handler.
    fn nudge(&mut self, time: Duration) -> io::Result<()> {
        self.held = false;
        ptrace::detach(self.tid, 0)?;
        std::thread::sleep(time);
        ptrace::seize(self.tid, OPTIONS)?;
        self.hold(STOP)
    }

    /// Where it is.
    fn place(&self) -> Option<(u64, u64)> {
        self.registers().map(|r| (r.pc(), r.sp())).ok()
    }

    /// How long it has been on a processor, ns (`/proc/TID/schedstat`, kernel/sched/stats.c of Linux 6.18).
    fn run_time(&self) -> Option<u64> {
        let text = std::fs::read_to_string(format!("/proc/{}/schedstat", self.tid)).ok()?;
        text.split(' ').next()?.parse().ok()
    }

    /// Lets it execute an instruction, and stops it again. A signal that comes first is delivered instead. After `limit`, it is asked to
    /// stop wherever it is: on a busy machine it may not have begun. The signal of the step never reaches the program.
    pub(super) fn step(&mut self, limit: Duration) -> io::Result<()> {
        self.held = false;
        ptrace::step(self.tid)?;
        let (since, mut asked) = (Instant::now(), false);
        loop {
            let Some(status) = retried(|| ptrace::wait_for(self.tid, false))? else {
                match since.elapsed() {
                    waited if waited >= BUSY => return Err(io::ErrorKind::TimedOut.into()),
                    waited if waited >= limit && !asked => {
                        asked = true;
                        ptrace::interrupt(self.tid)?;
                    }
                    _ => nap(since),
                }
                continue;
            };
            match status.change() {
                Change::Stopped(libc::SIGTRAP, 0) if self.has_stepped()? => return self.hold_on(STOP),
                Change::Stopped(signal, 0) => {
                    ptrace::interrupt(self.tid)?;
                    ptrace::cont(self.tid, signal & 0x7f)?;
                    return self.wait_for_stop(STOP);
                }
                // This stop comes before a signal that is there already: that of the step comes next.
                Change::Stopped(..) if self.signals("SigPnd") & TRAP != 0 => ptrace::cont(self.tid, 0)?,
                Change::Stopped(..) => {
                    self.held = true;
                    return self.repeat_call();
                }
                Change::Exited(_) | Change::Killed(..) => return Err(io::Error::from_raw_os_error(libc::ESRCH)),
            }
        }
    }

    /// Whether the SIGTRAP that it has stopped with is that of a step: `TRAP_BRKPT` behind a system call, `TRAP_TRACE` behind any other
    /// instruction (`include/uapi/asm-generic/siginfo.h`). That of the program's own breakpoint has `SI_KERNEL`.
    fn has_stepped(&self) -> io::Result<bool> {
        const TRAP_BRKPT: i32 = 1;
        const TRAP_TRACE: i32 = 2;
        let info = ptrace::siginfo(self.tid)?;
        let code = info[8..].first_chunk().map_or(0, |c| i32::from_ne_bytes(*c));
        Ok(code == TRAP_BRKPT || code == TRAP_TRACE)
    }

    /// Has it leave these ranges, no later than [`CLEAR`] after `since`. False: it stays there.
    pub(super) fn leave(&mut self, ranges: &[Range<u64>], walk: &Walk<'_>, since: Instant) -> io::Result<bool> {
        let (mut time, mut tries, mut nudges) = (NAP, 0, 0);
        loop {
            let mut within = self.within(ranges, walk)?;
            if within == Within::Unknown {
                tries += 1;
                if tries > TRIES {
                    within = self.seems_within(ranges)?;
                }
            }
            let moved = match within {
                Within::Not => return Ok(true),
                _ if since.elapsed() > CLEAR => return Ok(false),
                // A step is the last resort: a thread that executes one while trapline is killed gets the signal of it.
                Within::Now if nudges >= NUDGES && self.may_step() => self.step(STEP),
                Within::Now | Within::Later | Within::Unknown => {
                    let before = (self.place(), self.run_time());
                    let moved = self.nudge(time);
                    let ran = before.1.zip(self.run_time()).is_none_or(|(then, now)| now.saturating_sub(then) >= RAN);
                    // On a busy machine, it may be stopped again before it has had a processor: a step would wait for one too.
                    nudges += u32::from(ran || self.place() != before.0);
                    // Longer each time: the thread needs a processor, and the handler may take its time.
                    time = (time * 2).min(LONGEST);
                    moved
                }
            };
            match moved {
                Err(e) if e.kind() == io::ErrorKind::TimedOut => return Ok(false),
                other => other?,
            }
        }
    }

    /// Lets it go.
    fn release(&mut self) -> bool {
        if !self.held {
            let _ = self.look();
        }
        !std::mem::take(&mut self.held) || ptrace::detach(self.tid, 0).is_ok()
    }
}

impl Drop for Thread {
    fn drop(&mut self) {
        if !self.held && self.hold(STOP).is_err() {
            return;
        }
        self.release();
    }
}

/// Where a thread is, as to some ranges of code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Within {
    Not,
    /// Its pc is in one.
    Now,
    /// It will return to one.
    Later,
    /// Its stack cannot be walked where it is.
    Unknown,
}

/// Whether an address is in one of these ranges, which are in order and apart.
fn is_in(ranges: &[Range<u64>], address: u64) -> bool {
    let at = ranges.partition_point(|r| r.end <= address);
    ranges.get(at).is_some_and(|r| r.contains(&address))
}

pub(super) fn is_gone(e: &io::Error) -> bool {
    e.raw_os_error() == Some(libc::ESRCH)
}

/// Does it again where a signal has interrupted it.
fn retried<T>(mut what: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match what() {
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}
