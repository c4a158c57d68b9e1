//! Threads and processes that begin, execute another program, and end.

use super::{Mode, Tracer};
use crate::ptrace::thread::Thread;
use engine::backend::ids::ids;
use events::generated as g;
use sys::ptrace::{self, Status, event};
use sys::{proc, signal};

/// `include/uapi/linux/sched.h`.
const CLONE_VM: u64 = 0x100;
const CLONE_THREAD: u64 = 0x10000;

/// What the event of a new thread or process contains.
struct Birth {
    child: i32,
    /// The process that it belongs to.
    pid: i32,
    /// Who has made it: process and thread.
    by: (i32, i32),
    /// `CLONE_*`.
    flags: u64,
    /// Address of its `struct rseq`, where it has inherited one.
    rseq: Option<u64>,
}

impl Tracer {
    /// Thread `maker` has made a thread or process.
    pub(super) fn made(&mut self, maker: i32) {
        let Ok(child) = ptrace::event_message(maker) else { return };
        let (child, pid) = (child as i32, self.who(maker).0);
        let joins = signal::is_thread_of(pid, child);
        let flags = ptrace::clone_flags(maker).unwrap_or(0) & !CLONE_THREAD | if joins { CLONE_THREAD } else { 0 };
        let rseq = self.threads.get(&maker).and_then(|t| t.rseq).filter(|_| flags & CLONE_VM == 0);
        if let Some(code) = self.intercept.as_mut().filter(|_| !joins) {
            code.forked(pid, child, flags & CLONE_VM != 0);
        }
        self.introduce(Birth { child, pid: if joins { pid } else { child }, by: (pid, maker), flags, rseq });
    }

    /// Reports who has made a thread, once, and resumes it if it waited for that.
    fn introduce(&mut self, birth: Birth) {
        let Birth { child, pid, by, flags, rseq } = birth;
        let early = self.early.remove(&child);
        let known = self.threads.get(&child).is_some_and(|t| t.adopted);
        if known {
            return;
        }
        self.out.process(&g::P_FORK, by, &[0, pid as u64, child as u64, flags], &[b""]);
        if let Some(end) = early {
            return self.tell_end((pid, child), end);
        }
        let leaving = self.job.takes_orders && self.threads.values().any(|t| t.pid == pid && t.leaving);
        let refuses = match self.threads.get(&by.1).filter(|_| by.1 != child) {
            Some(maker) => maker.refuses,
            None => self.threads.values().any(|t| t.refuses),
        };
        let t = self.threads.entry(child).or_insert_with(|| Thread::new(child, pid));
        (t.pid, t.known, t.rseq, t.leaving, t.refuses) = (pid, true, rseq, leaving, refuses);
        if let Some((sig, ev)) = t.held.take() {
            self.put_back(child, ev);
            self.stopped(child, sig, ev);
        }
    }

    /// A thread whose creator died before it could report it.
    pub(super) fn adopt(&mut self, child: i32) {
        let pid = proc::process_of(child).unwrap_or(child);
        self.introduce(Birth { child, pid, by: (pid, child), flags: 0, rseq: None });
        if let Some(t) = self.threads.get_mut(&child) {
            t.adopted = true;
        }
    }

    pub(super) fn executed(&mut self, tid: i32) {
        let old = ptrace::event_message(tid).map_or(tid, |t| t as i32);
        if old != tid {
            // A thread other than the leader called execve, and has taken the leader's id (execve(2)).
            if let Some(mut leader) = self.threads.remove(&tid) {
                self.end_in_code(&mut leader);
                self.tell_unfinished(&leader);
                self.out.process(&g::P_SUPERSEDED, (leader.pid, tid), &[old as u64], &[]);
            }
            if let Some(mut t) = self.threads.remove(&old) {
                t.tid = tid;
                self.threads.insert(tid, t);
            }
        }
        let comm = proc::comm(tid).unwrap_or_default();
        let mut pid = tid;
        let mut first = false;
        if let Some(t) = self.threads.get_mut(&tid) {
            t.reset_image();
            self.stacks.forget(t.pid);
            if let Some(code) = &mut self.intercept {
                code.forget(t.pid);
            }
            pid = t.pid;
            // With a filter that does not stop execve, no exit stop will show that the command has started.
            first = t.starting;
            if t.pending.is_none() {
                t.starting = false;
            }
        }
        let (uid, gid) = ids(tid);
        self.out.process(&g::P_EXEC, (pid, tid), &[0, old as u64, uid, gid], &[&comm]);
        if first && self.job.fd_names {
            self.seed_fds(pid);
        }
        self.resume(tid, 0);
    }

    pub(super) fn ended(&mut self, s: Status, end: [u64; 3]) {
        let Some(mut t) = self.threads.remove(&s.tid) else {
            if self.lent.remove(&s.tid) {
                self.tell_end((s.tid, s.tid), end);
                return self.tell_end_of_command(s);
            }
            // It never stopped, and its creator's event has not reported it yet.
            if self.mode != Mode::Detaching {
                self.early.insert(s.tid, end);
            }
            return;
        };
        if !t.starting {
            self.end_in_code(&mut t);
            self.tell_unfinished(&t);
            self.tell_end((t.pid, t.tid), end);
        }
        if let Some(code) = &mut self.intercept
            && !self.threads.values().any(|other| other.pid == t.pid)
        {
            code.forget(t.pid);
        }
        self.tell_end_of_command(s);
    }

    fn tell_end_of_command(&self, s: Status) {
        if self.command == Some(s.tid) {
            self.control().command_ended(s.raw);
        }
    }

    /// How a thread has ended: exit code, signal, whether a core was dumped.
    fn tell_end(&mut self, who: (i32, i32), end: [u64; 3]) {
        if who.0 == who.1 {
            self.stacks.forget(who.0);
        }
        self.out.process(&g::P_EXIT, who, &end, &[]);
    }

    /// Undoes, at the next stop of a thread, what was changed for the length of its call. A thread that the call has made has a copy.
    pub(super) fn put_back(&mut self, tid: i32, ev: i32) {
        let Some(t) = self.threads.get_mut(&tid) else { return };
        let Some(changed) = t.changed.take() else { return };
        if matches!(ev, event::FORK | event::VFORK | event::CLONE)
            && let Ok(child) = ptrace::event_message(tid).map(|child| child as i32)
            && proc::tracer_of(child) == Some(sys::process::own_pid())
        {
            let pid = proc::process_of(child).unwrap_or(child);
            self.threads.entry(child).or_insert_with(|| Thread::new(child, pid)).changed = Some(changed);
        }
        let _ = changed.put_back(tid);
    }
}
