//! Threads of another process, stopped.
//!
//! A thread is stopped by PTRACE_INTERRUPT, not by a signal: at a place where it would otherwise return to the program, with no signal
//! half delivered, and with a system call that it was in about to be repeated. Let go, it notices nothing.

use crate::ptrace::{self, Change, Registers, event};
use crate::{mem, proc};
use std::io;
use std::ops::Range;
use std::time::{Duration, Instant};

/// How long a thread may wait in the kernel, where no signal reaches it, before it counts as one that does not stop.
const STOP: Duration = Duration::from_millis(100);
/// How long one may take that only waits for a processor.
const BUSY: Duration = Duration::from_secs(10);
/// How far up a stack is looked.
const STACK: usize = 64 << 10;
const NAP: Duration = Duration::from_micros(20);

/// A stopped thread. Dropped, it runs on.
pub struct Thread {
    tid: i32,
    /// It is stopped, and this thread traces it.
    held: bool,
}

/// Sleeps, or only lets others run in the first moments.
fn nap(since: Instant) {
    if since.elapsed() < NAP { std::thread::yield_now() } else { std::thread::sleep(NAP) }
}

impl Thread {
    /// Stops a thread.
    ///
    /// # Errors
    /// `PermissionDenied`: it may not be traced, or is already. `TimedOut`: it waits in the kernel and does not stop.
    pub fn stop(tid: i32) -> io::Result<Thread> {
        ptrace::seize(tid, 0)?;
        let mut thread = Thread { tid, held: false };
        thread.hold(STOP)?;
        Ok(thread)
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

    fn wait_for_stop(&mut self, limit: Duration) -> io::Result<()> {
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

    /// Some calls (epoll_wait, sigtimedwait, semop; signal(7)) end with EINTR when a thread is stopped, though no signal comes. The
    /// thread makes such a call again, with the whole time that it may take.
    fn repeat_call(&self) -> io::Result<()> {
        const EINTR: i64 = -4;
        let mut registers = self.registers()?;
        let is_64_bit = registers.is_64_bit();
        let r = &mut registers.0;
        if r.orig_rax as i64 >= 0 && r.rax as i64 == EINTR && is_64_bit && !self.gets_signal() {
            r.rax = r.orig_rax;
            r.rip = r.rip.wrapping_sub(2);
            // No call is under way any more: the kernel does nothing about it.
            r.orig_rax = u64::MAX;
            return ptrace::set_all_registers(self.tid, &registers);
        }
        Ok(())
    }

    /// Whether a signal waits for it that it does not block.
    fn gets_signal(&self) -> bool {
        let set = |name: &str| {
            let text = proc::status_field(self.tid, name).unwrap_or_default();
            u64::from_str_radix(&text, 16).unwrap_or(u64::MAX)
        };
        (set("SigPnd") | set("ShdPnd")) & !set("SigBlk") != 0
    }

    /// What has happened to it. A signal that it was about to get, it gets.
    pub(super) fn look(&mut self) -> io::Result<Option<i32>> {
        let Some(status) = retried(|| ptrace::wait_for(self.tid, false))? else { return Ok(None) };
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

    /// Its pc, and the words of the inner part of its stack.
    fn stack(&self) -> io::Result<(u64, Vec<u64>)> {
        let registers = self.registers()?;
        let mut stack = vec![0; STACK];
        let len = mem::read(self.tid, registers.sp() & !7, &mut stack).unwrap_or(0);
        let words = stack[..len].as_chunks::<8>().0;
        Ok((registers.pc(), words.iter().map(|w| u64::from_le_bytes(*w)).collect()))
    }

    /// Whether its pc is in one of these ranges, which are in order and apart, or was when a signal handler began.
    ///
    /// # Errors
    /// It has ended.
    pub fn is_within(&self, ranges: &[Range<u64>]) -> io::Result<bool> {
        // In words: the pc in a `struct ucontext`, and what is before and behind it: flags, code segment.
        const FLAGS_BEFORE: usize = 21;
        const SEGMENT_BEHIND: usize = 2;
        let (pc, words) = self.stack()?;
        let is_frame = |at: usize| {
            let flags = at.checked_sub(FLAGS_BEFORE).and_then(|f| words.get(f));
            flags.is_some_and(|f| *f <= 7) && words.get(at + SEGMENT_BEHIND).is_some_and(|s| s & 0xffff == 0x33)
        };
        Ok(is_in(ranges, pc) || (0..words.len()).any(|at| is_in(ranges, words[at]) && is_frame(at)))
    }

    /// Whether its pc is in one of these ranges, which are in order and apart, or a word of the inner part of its stack is: it may return
    /// there.
    ///
    /// # Errors
    /// It has ended.
    pub fn may_return_into(&self, ranges: &[Range<u64>]) -> io::Result<bool> {
        let (pc, words) = self.stack()?;
        Ok(is_in(ranges, pc) || words.iter().any(|w| is_in(ranges, *w)))
    }

    /// Lets it run for a moment, and stops it again.
    ///
    /// # Errors
    /// It has ended, or does not stop.
    pub fn nudge(&mut self) -> io::Result<()> {
        self.run()?;
        std::thread::yield_now();
        self.hold(STOP)
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

/// All threads of a process, stopped. Dropped, they run on.
pub struct Threads {
    pid: i32,
    threads: Vec<Thread>,
    /// Those that wait in the kernel and do not stop.
    deaf: Vec<Thread>,
}

impl Threads {
    /// Stops all threads of a process.
    ///
    /// # Errors
    /// Those of [`Thread::stop`], for its first thread. `TimedOut`: new threads come faster than they are stopped.
    pub fn stop(pid: i32) -> io::Result<Threads> {
        let mut all = Threads { pid, threads: Vec::new(), deaf: Vec::new() };
        for _ in 0..100 {
            let known = |tid: i32, all: &Threads| all.threads.iter().chain(&all.deaf).any(|t| t.tid == tid);
            let new: Vec<i32> = proc::threads(pid)?.into_iter().filter(|tid| !known(*tid, &all)).collect();
            if new.is_empty() {
                return if all.threads.is_empty() { Err(io::Error::from_raw_os_error(libc::ESRCH)) } else { Ok(all) };
            }
            all.add(&new)?;
        }
        Err(io::ErrorKind::TimedOut.into())
    }

    /// Stops these too: first all are asked, then waited for.
    fn add(&mut self, tids: &[i32]) -> io::Result<()> {
        let mut asked = Vec::new();
        for tid in tids {
            match ptrace::seize(*tid, 0) {
                Ok(()) => {
                    let _ = ptrace::interrupt(*tid);
                    asked.push(Thread { tid: *tid, held: false });
                }
                Err(e) if is_gone(&e) || self.has_ended(*tid) => {}
                Err(e) => return Err(e),
            }
        }
        let since = Instant::now();
        for mut thread in asked {
            match thread.wait_for_stop(STOP.saturating_sub(since.elapsed()).max(NAP)) {
                Ok(()) => self.threads.push(thread),
                Err(e) if e.kind() == io::ErrorKind::TimedOut => self.deaf.push(thread),
                Err(_) => thread.held = false,
            }
        }
        Ok(())
    }

    /// Whether a thread is about to be gone, so that it can no longer be traced.
    fn has_ended(&self, tid: i32) -> bool {
        let state = proc::status_field(tid, "State").unwrap_or_default();
        state.starts_with(['Z', 'X']) || state.is_empty()
    }

    /// The process.
    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// The stopped threads.
    pub fn all(&mut self) -> &mut [Thread] {
        &mut self.threads
    }

    /// Threads that wait in the kernel and did not stop: each with where it goes on, if that is known. One of them may be the parent
    /// of a vfork(2), whose child runs in the same memory.
    pub fn deaf(&self) -> Vec<(i32, Option<u64>)> {
        self.deaf.iter().map(|t| (t.tid, proc::pc_in_call(self.pid, t.tid))).collect()
    }

    /// Has no thread be within these ranges, which are in order and apart ([`Thread::is_within`]): those that are run on for a moment. False:
    /// one stays there.
    ///
    /// # Errors
    /// The process has ended.
    pub fn clear(&mut self, ranges: &[Range<u64>], tries: usize) -> io::Result<bool> {
        if self.deaf().iter().any(|(_, pc)| pc.is_none_or(|pc| ranges.iter().any(|r| r.contains(&pc)))) {
            return Ok(false);
        }
        for thread in &mut self.threads {
            let mut left = tries;
            while thread.is_within(ranges)? {
                if left == 0 {
                    return Ok(false);
                }
                left -= 1;
                thread.nudge()?;
            }
        }
        Ok(true)
    }

    /// Lets all threads go, at once.
    pub fn release(self) {
        drop(self);
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        self.threads.clear();
        // The kernel lets go of those that did not stop when the thread of trapline that asked them to ends.
        std::mem::take(&mut self.deaf).into_iter().for_each(std::mem::forget);
    }
}

/// Whether an address is in one of these ranges, which are in order and apart.
fn is_in(ranges: &[Range<u64>], address: u64) -> bool {
    let at = ranges.partition_point(|r| r.end <= address);
    ranges.get(at).is_some_and(|r| r.contains(&address))
}

fn is_gone(e: &io::Error) -> bool {
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
