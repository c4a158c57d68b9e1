//! All threads of another process, stopped.

use super::thread::{NAP, OPTIONS, STOP, Thread, Walk, is_gone, nap};
use crate::proc;
use crate::ptrace::{self, event};
use std::io;
use std::ops::Range;
use std::time::Instant;

/// How often all threads that were asked to stop are looked at, before each is waited for.
const ROUNDS: u32 = 20;

#[cfg(test)]
crate::check::has_not!(Threads: Send);

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
    /// Those of [`Thread::ask`], for its first thread. `TimedOut`: none stops, or new threads come faster than they are stopped.
    pub fn stop(pid: i32) -> io::Result<Threads> {
        let mut all = Threads { pid, threads: Vec::new(), deaf: Vec::new() };
        all.add_new()?;
        match (all.threads.is_empty(), all.deaf.is_empty()) {
            (false, _) => Ok(all),
            (true, false) => Err(io::ErrorKind::TimedOut.into()),
            (true, true) => Err(io::Error::from_raw_os_error(libc::ESRCH)),
        }
    }

    /// Stops threads that are not stopped yet, until there are no more. Whether there were any.
    fn add_new(&mut self) -> io::Result<bool> {
        for round in 0..100 {
            let known = |tid: i32| self.threads.iter().chain(&self.deaf).any(|t| t.tid == tid);
            let new: Vec<i32> = proc::threads(self.pid)?.into_iter().filter(|tid| !known(*tid)).collect();
            if new.is_empty() {
                return Ok(round > 0);
            }
            self.add(&new)?;
        }
        Err(io::ErrorKind::TimedOut.into())
    }

    /// Stops these too: first all are asked, then waited for.
    fn add(&mut self, tids: &[i32]) -> io::Result<()> {
        let mut asked = Vec::new();
        for tid in tids {
            match ptrace::seize_or_interrupted(*tid, OPTIONS) {
                Ok(()) => {
                    let _ = ptrace::interrupt(*tid);
                    asked.push(Thread::of(*tid));
                }
                // A thread of the process executes a program, and waits for those that were asked: they are looked at first.
                Err(e) if e.kind() == io::ErrorKind::Interrupted => break,
                Err(e) if is_gone(&e) || self.has_ended(*tid) => {}
                Err(e) => return Err(e),
            }
        }
        let since = Instant::now();
        // Those that stop at once are first: until a call is made to repeat, trapline may be killed, and the call ends with EINTR.
        let mut late = Vec::new();
        for _ in 0..ROUNDS {
            for mut thread in std::mem::take(&mut asked) {
                match thread.look() {
                    Ok(Some(event::STOP)) => match thread.repeat_call() {
                        Ok(()) => self.threads.push(thread),
                        Err(_) => thread.held = false,
                    },
                    Ok(_) => late.push(thread),
                    Err(_) => thread.held = false,
                }
            }
            std::mem::swap(&mut asked, &mut late);
            if asked.is_empty() {
                return Ok(());
            }
            nap(since);
        }
        for mut thread in asked {
            // One that waits for a page, or for a lock of the kernel, stops soon: the first ones that do not stop are given time.
            let limit = if since.elapsed() < 5 * STOP { STOP } else { NAP };
            match thread.wait_for_stop(limit) {
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

    /// Has no thread be within these ranges, which are in order and apart: one that is there executes instructions until it has left them,
    /// one that will return there runs until it has. False: one stays there.
    ///
    /// # Errors
    /// The process has ended.
    pub fn clear(&mut self, ranges: &[Range<u64>], walk: &Walk<'_>) -> io::Result<bool> {
        if ranges.is_empty() {
            return Ok(true);
        }
        if self.deaf().iter().any(|(_, pc)| pc.is_none_or(|pc| ranges.iter().any(|r| r.contains(&pc)))) {
            return Ok(false);
        }
        let since = Instant::now();
        loop {
            let mut n = 0;
            while let Some(thread) = self.threads.get_mut(n) {
                match thread.leave(ranges, walk, since) {
                    Ok(true) => n += 1,
                    Ok(false) => return Ok(false),
                    Err(e) if is_gone(&e) => self.threads.remove(n).held = false,
                    Err(e) => return Err(e),
                }
            }
            // Those that have run may have started others.
            if !self.add_new()? {
                return Ok(true);
            }
        }
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

#[cfg(test)]
mod tests {
    use super::super::thread::{STEP, TRAP};
    use super::*;
    use std::os::unix::process::ExitStatusExt;
    use std::process::{Command, Stdio};
    use std::time::Duration;

    /// Wherever a thread is when it is asked to stop instead: before the instruction, behind it, in a system call.
    #[test]
    fn steps_never_reach_the_program() {
        for program in [&["sh", "-c", "while :; do :; done"][..], &["dd", "if=/dev/zero", "of=/dev/null", "bs=1"]] {
            let mut child = Command::new(program[0]).args(&program[1..]).stderr(Stdio::null()).spawn().unwrap();
            let pid = child.id() as i32;
            for limit in [Duration::ZERO, Duration::from_micros(5), STEP].iter().cycle().take(600) {
                let mut threads = Threads::stop(pid).unwrap();
                let thread = &mut threads.all()[0];
                for _ in 0..5 {
                    thread.step(*limit).unwrap();
                    assert!(thread.held);
                    assert_eq!(thread.signals("SigPnd") & TRAP, 0);
                }
                threads.release();
            }
            assert_eq!(child.try_wait().unwrap(), None, "{program:?}");
            child.kill().unwrap();
            assert_eq!(child.wait().unwrap().signal(), Some(libc::SIGKILL), "{program:?}");
        }
    }
}
