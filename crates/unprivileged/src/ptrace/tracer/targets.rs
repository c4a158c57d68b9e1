//! What is traced: the command, processes that run already, and those that the front end adds or lets go.

use super::Tracer;
use super::calls::EXECS;
use crate::ptrace::thread::{Pending, Thread};
use crate::ptrace::{fds, refusal};
use engine::backend::ids::ids;
use events::generated as g;
use events::layout::CAP_START_UNKNOWN;
use std::collections::HashSet;
use std::io;
use std::time::{Duration, Instant};
use sys::ptrace::{self, event, option};
use sys::ring::control::LENT;
use sys::{proc, time};

/// How long a process may take to execute a program while it is attached to.
const LONGEST: Duration = Duration::from_secs(10);

impl Tracer {
    fn options(&self) -> u64 {
        let follow = if self.job.follow { option::FORK | option::VFORK | option::CLONE } else { 0 };
        let filter = if self.job.filtered { option::SECCOMP | option::EXITKILL } else { 0 };
        let kills = if self.job.kills { option::EXITKILL } else { 0 };
        let ends = if self.job.with_stacks.is_empty() { 0 } else { option::EXIT };
        option::SYSGOOD | option::EXEC | follow | filter | kills | ends
    }

    /// Attaches to the command, which waits for a byte before its execve.
    pub fn seize_command(&mut self, pid: i32) -> io::Result<()> {
        ptrace::seize(pid, self.options())?;
        ptrace::interrupt(pid)?;
        let mut t = Thread::new(pid, pid);
        t.starting = true;
        t.known = true;
        self.threads.insert(pid, t);
        self.command = Some(pid);
        Ok(())
    }

    /// Attaches to every thread of a running process.
    pub fn seize_process(&mut self, pid: i32) -> io::Result<()> {
        if proc::tracers().contains(&pid) {
            return Err(io::Error::from_raw_os_error(refusal::TRACER));
        }
        let (mut seen, mut dead) = (Vec::new(), HashSet::new());
        let since = Instant::now();
        loop {
            // Threads that start while we attach are caught by the next round; those of threads already attached by
            // PTRACE_O_TRACECLONE.
            let tids = proc::threads(pid)?;
            let new: Vec<i32> =
                tids.into_iter().filter(|t| !self.threads.contains_key(t) && !dead.contains(t)).collect();
            if new.is_empty() {
                if seen.is_empty() && !self.threads.values().any(|t| t.pid == pid) {
                    return Err(io::Error::from_raw_os_error(3));
                }
                break;
            }
            for tid in new {
                match ptrace::seize_or_interrupted(tid, self.options()) {
                    Ok(()) => {
                        seen.push(tid);
                        self.attached(pid, tid);
                    }
                    // A thread of it executes a program, and waits for those that are attached already.
                    Err(e) if e.kind() == io::ErrorKind::Interrupted && since.elapsed() < LONGEST => {
                        while let Ok(Some(status)) = ptrace::wait(false) {
                            self.on_status(status);
                        }
                        break;
                    }
                    // A thread may end between the listing and the attach; the process itself may not.
                    Err(e) if e.raw_os_error() == Some(3) && tid != pid => {}
                    // Made by a thread that is attached already, and attached with it (PTRACE_O_TRACECLONE).
                    Err(_) if proc::tracer_of(tid) == Some(sys::process::own_pid()) => {
                        self.threads.insert(tid, Thread { known: true, ..Thread::new(tid, pid) });
                    }
                    // A thread that has ended, and stays in the listing until others have too.
                    Err(_) if tid != pid && is_dead(pid, tid) => {
                        dead.insert(tid);
                    }
                    Err(e) => return Err(e),
                }
            }
        }
        for tid in seen {
            self.look_at_call(tid);
        }
        Ok(())
    }

    fn attached(&mut self, pid: i32, tid: i32) {
        let mut t = Thread::new(tid, pid);
        t.known = true;
        let comm = proc::comm(tid).unwrap_or_default();
        let (uid, gid) = ids(tid);
        self.out.process(&g::P_ATTACH, (pid, tid), &[0, uid, gid], &[&comm]);
        if tid == pid && self.job.fd_names {
            self.seed_fds(pid);
        }
        self.threads.insert(tid, t);
    }

    /// Shows the call that a thread is blocked in, and then stops the thread, so that it can be made to stop at calls.
    fn look_at_call(&mut self, tid: i32) {
        let Some(mut t) = self.threads.remove(&tid) else { return };
        let pid = t.pid;
        if let Some((nr, regs)) = proc::call_in_flight(pid, tid) {
            let mut p = self.entry(&mut t, ptrace::ARCH_X86_64, nr as u64, regs);
            if EXECS.contains(&p.nr) {
                p.forget_memory();
            }
            p.caps |= CAP_START_UNKNOWN;
            p.start = time::monotonic();
            // Its stack is known at the stop.
            if p.stack.is_none() {
                p.noticed = true;
                if p.wanted {
                    self.out.in_flight((pid, tid), &p, 1);
                }
            }
            t.pending = Some(p);
        }
        let _ = ptrace::interrupt(tid);
        self.threads.insert(tid, t);
    }

    /// The stop that an attach asked for, and the first stop of a new thread.
    pub(super) fn attach_stop(&mut self, tid: i32) {
        let unseen = |p: &&mut Pending| p.caps & CAP_START_UNKNOWN != 0 && !p.noticed;
        if let Some(p) = self.threads.get_mut(&tid).and_then(|t| t.pending.as_mut()).filter(unseen) {
            // Unless the call has ended by itself.
            let inside = ptrace::call_registers(tid).is_ok_and(|(nr, _)| nr == p.nr as i64);
            p.registers = if inside { ptrace::frame_registers(tid).ok() } else { None };
            self.notice(tid, 1);
        }
        let Some(mut t) = self.threads.remove(&tid) else { return self.resume(tid, 0) };
        let repeats = ptrace::repeat_call(tid).unwrap_or(false);
        if let Some(p) = &mut t.pending
            && p.caps & CAP_START_UNKNOWN != 0
            && !p.restarting
        {
            match ptrace::call_registers(tid) {
                _ if repeats => p.restarting = true,
                Ok((nr, rax)) if nr == p.nr as i64 && events::errno::is_restart(-rax) => p.restarting = true,
                Ok((nr, rax)) if nr == p.nr as i64 => {
                    self.exit(&mut t, rax);
                }
                // It ended by itself between the look and the stop; its result is gone.
                _ => {
                    self.tell_unfinished(&t);
                    t.pending = None;
                }
            }
        }
        let restarting = t.pending.as_ref().is_some_and(|p| p.restarting);
        self.threads.insert(tid, t);
        if restarting {
            let _ = ptrace::syscall(tid, 0);
        } else {
            self.resume(tid, 0);
        }
    }

    /// Stops or resumes reporting calls, as the front end asks.
    pub(super) fn heed(&mut self) {
        if self.job.takes_orders {
            self.out.hold(self.control().is_held());
            if let Some(pid) = self.control().change_of_targets() {
                let changed = match pid {
                    1.. => self.add(pid),
                    _ if -pid & LENT != 0 => self.lend(-pid & !LENT),
                    _ => self.release(-pid),
                };
                let (errno, tracer) = changed.map_or_else(|e| refusal::of(pid.abs(), &e), |()| (0, 0));
                self.control().targets_changed(errno, tracer);
            }
        }
    }

    /// Attaches to a process while others are traced.
    fn add(&mut self, pid: i32) -> io::Result<()> {
        let pid = proc::process_of(pid).unwrap_or(pid);
        self.lent.remove(&pid);
        // Those that it has not let go of yet stay.
        self.threads.values_mut().filter(|t| t.pid == pid).for_each(|t| t.leaving = false);
        self.seize_process(pid).inspect_err(|_| {
            let _ = self.release(pid);
        })
    }

    /// Lets go of a process: each of its threads at its next stop.
    fn release(&mut self, pid: i32) -> io::Result<()> {
        if self.threads.values().all(|t| t.pid == pid || t.leaving) {
            return Err(io::Error::from_raw_os_error(refusal::ALONE));
        }
        self.let_go(pid)
    }

    /// Lets go of a process for as long as another tracer takes, though no other is traced.
    fn lend(&mut self, pid: i32) -> io::Result<()> {
        self.let_go(pid)?;
        self.lent.insert(pid);
        Ok(())
    }

    fn let_go(&mut self, pid: i32) -> io::Result<()> {
        let mut some = false;
        for t in self.threads.values_mut().filter(|t| t.pid == pid) {
            (t.leaving, some) = (true, true);
            let _ = ptrace::interrupt(t.tid);
        }
        if some { Ok(()) } else { Err(io::Error::from_raw_os_error(3)) }
    }

    /// A stop of a thread that is to be let go: the one that was asked for ends its tracing; any other is dealt with first.
    pub(super) fn leaving(&mut self, tid: i32, sig: i32, ev: i32) {
        // A call that was interrupted for this ends before the stop.
        let repeats = is_end_of_call(sig, ev) && ptrace::repeat_call(tid).unwrap_or(false);
        if ev != event::STOP && !repeats {
            self.stopped(tid, sig, ev);
            let _ = ptrace::interrupt(tid);
            return;
        }
        if !self.threads.contains_key(&tid) {
            return;
        }
        self.notice(tid, 2);
        self.out.process(&g::P_DETACH, self.who(tid), &[], &[]);
        if ptrace::detach(tid, 0).is_ok() {
            self.threads.remove(&tid);
        }
    }

    pub(super) fn seed_fds(&mut self, pid: i32) {
        fds::seed(&mut self.out, pid, time::monotonic(), self.job.fd_details, false);
    }
}

/// Whether a stop is one at the entry or the end of a call, or one that was asked for: a signal is delivered at none of these.
pub(super) fn is_end_of_call(sig: i32, ev: i32) -> bool {
    const TRAP: i32 = 5;
    matches!((sig, ev), (TRAP, event::STOP)) || sig & 0x80 != 0 && ev == 0
}

/// Whether a thread of `pid` has ended, or is gone.
fn is_dead(pid: i32, tid: i32) -> bool {
    let state = proc::status_field(tid, "State");
    state.is_none_or(|s| s.starts_with(['Z', 'X'])) || proc::process_of(tid) != Some(pid)
}
