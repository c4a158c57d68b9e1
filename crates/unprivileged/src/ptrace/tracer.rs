//! The ptracer process: stops in, events out.
//!
//! ```text
//! wait4 ─► stop ─┬─ entry / seccomp ─► Pending (registers, tails of entry)      ─► PTRACE_SYSCALL
//!                ├─ exit            ─► tails of exit, one event into the ring    ─► PTRACE_SYSCALL, or CONT with a filter
//!                ├─ signal          ─► process:signal                            ─► the same, with the signal
//!                ├─ group-stop      ─► process:stop                              ─► PTRACE_LISTEN
//!                └─ fork, exec, end ─► process:fork, :exec, :exit
//! ```
//!
//! It is the command's parent and tracer, has one thread, and never formats. Invariants: every stop is answered, with the
//! signal that was to be delivered, whatever becomes of the front end; a call that was entered leaves exactly one event.

mod calls;
mod recorded;
mod signals;
mod targets;
mod threads;

use self::recorded::Batch;
use super::emit::{Emitter, End};
use super::intercept::Intercept;
use super::thread::{Pending, Thread};
use engine::backend::stacks::Stacks;
use engine::capture::Limits;
use events::generated as g;
use events::layout::{CAP_NO_RESULT, CAP_START_UNKNOWN, Layout, NO_CPU};
use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet, VecDeque};
use std::io;
use std::sync::LazyLock;
use sys::ptrace::{self, Change, Status, event};
use sys::ring::control::Ptracer;
use sys::{proc, signal, time};

/// What the tracer was asked to do, in the form that its loop wants.
pub struct Job {
    /// Wanted, by number; numbers beyond are `unknown`.
    pub calls: Vec<bool>,
    /// Calls of no table and 32-bit ones are wanted.
    pub unknown: bool,
    /// How much is read.
    pub limits: Limits,
    /// New threads and children are traced.
    pub follow: bool,
    /// What is wanted is asked of the control page; `calls` and `unknown` hold only where it is not.
    pub takes_orders: bool,
    /// The command has a filter.
    pub filtered: bool,
    /// What is traced is killed when this process ends.
    pub kills: bool,
    /// Descriptors get names.
    pub fd_names: bool,
    /// Sockets and devices get details.
    pub fd_details: bool,
    /// A call longer than this is noticed, ns; 0 for never.
    pub notice: u64,
    /// The processor at entry must be known, whatever it costs.
    pub cpu: bool,
    /// The upper half of the addresses of code whose calls are not the program's (`bpf::syscalls::Session::hidden`).
    pub hidden: Option<u32>,
    /// What processes record themselves of which calls; empty: nothing.
    pub rows: Vec<(usize, sys::intercept::Row)>,
    /// Classes with stacks, by those of their calls and of signals, and the most frames of a stack.
    pub with_stacks: HashMap<u16, (&'static events::Schema, usize)>,
}

/// What happens at the stops.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Tracing,
    /// The front end is gone and a filter is set: nothing is wanted any more, but the target must be kept going.
    Resuming,
    /// Release every thread at its next stop.
    Detaching,
}

/// The tracer's state.
pub struct Tracer {
    job: Job,
    out: Emitter,
    threads: HashMap<i32, Thread>,
    command: Option<i32>,
    mode: Mode,
    tails: Vec<u8>,
    /// Calls that processes record themselves.
    intercept: Option<Intercept>,
    batch: Batch,
    /// What was reported of threads while something else was waited for.
    later: VecDeque<Status>,
    /// When it was last looked what takes long, ns.
    ticked: u64,
    /// Threads that ended before they were reported, and how.
    early: HashMap<i32, [u64; 3]>,
    stacks: Stacks,
    /// Processes that are to be attached to again in a moment.
    lent: HashSet<i32>,
}

/// The schema of calls that no table knows.
pub static RAW: LazyLock<(&'static events::Schema, &'static Layout)> = LazyLock::new(|| {
    let s = &g::C_RAW;
    (s, events::registry::layout(s.id).unwrap_or_else(|| unreachable!("raw is a generated schema")))
});

impl Tracer {
    /// A tracer that writes to `out`.
    pub fn new(mut job: Job, out: Emitter) -> Self {
        let rows = std::mem::take(&mut job.rows);
        let mut tracer = Tracer {
            job,
            out,
            threads: HashMap::new(),
            command: None,
            mode: Mode::Tracing,
            tails: Vec::new(),
            intercept: (!rows.is_empty()).then(|| Intercept::new(rows)),
            batch: Batch::default(),
            later: VecDeque::new(),
            ticked: 0,
            early: HashMap::new(),
            stacks: Stacks::default(),
            lent: HashSet::new(),
        };
        tracer.heed();
        tracer
    }

    /// The control page.
    pub fn control(&self) -> Ptracer<'_> {
        self.out.control()
    }

    /// Marks the end of the events in the ring.
    pub fn finish(&mut self) {
        self.out.finish();
    }

    /// Runs until nothing is left to trace.
    pub fn run(&mut self) {
        let mut queue: VecDeque<Status> = VecDeque::new();
        self.intercept.iter().for_each(Intercept::prepare);
        loop {
            queue.extend(self.later.drain(..));
            if queue.is_empty() {
                self.drain();
                self.pace();
                // To look for stops without a wait would be worse: a stop takes several times as long where its tracer runs on another processor.
                match ptrace::wait(true) {
                    Ok(Some(s)) => queue.push_back(s),
                    Ok(None) => {}
                    Err(e) if e.kind() == io::ErrorKind::Interrupted => self.tick(),
                    // Nobody is traced in this moment.
                    Err(_) if !self.lent.is_empty() => {
                        std::thread::sleep(std::time::Duration::from_millis(1));
                        self.tick();
                    }
                    Err(_) => return,
                }
                // With several threads, take what is ready together, or the first in the kernel's list starve the rest.
                while self.threads.len() > 1 && queue.len() < 256 {
                    match ptrace::wait(false) {
                        Ok(Some(s)) => queue.push_back(s),
                        _ => break,
                    }
                }
            }
            if let Some(s) = queue.pop_front() {
                self.on_status(s);
            }
            if self.mode == Mode::Detaching && self.threads.is_empty() && queue.is_empty() {
                return;
            }
        }
    }

    /// Every 100 ms, and when the front end wants something.
    fn tick(&mut self) {
        self.heed();
        if self.mode == Mode::Tracing && (self.out.silent || self.out.abandoned()) {
            self.leave();
        }
        let now = time::monotonic();
        if now < self.ticked + u64::from(recorded::ALWAYS) * 1000 {
            return;
        }
        self.ticked = now;
        let notice = self.job.notice;
        let is_long = |p: &Pending| p.wanted && !p.noticed && now.saturating_sub(p.start) >= notice;
        let long = self.threads.values().filter(|t| notice > 0 && t.pending.as_ref().is_some_and(is_long));
        for tid in if self.out.held { Vec::new() } else { long.map(|t| t.tid).collect() } {
            self.notice(tid, 0);
        }
        self.notice_in_code();
        let orphans: Vec<i32> = self.threads.values().filter(|t| t.held.is_some()).map(|t| t.tid).collect();
        for tid in orphans.into_iter().chain(self.early.keys().copied().collect::<Vec<_>>()) {
            self.adopt(tid);
        }
    }

    /// Reports the call that a thread is in ([`Emitter::in_flight`]).
    fn notice(&mut self, tid: i32, attach: u64) {
        self.complete_stack(tid);
        let Some(t) = self.threads.get_mut(&tid) else { return };
        if let Some(p) = t.pending.as_mut().filter(|p| p.wanted) {
            let found = !p.noticed && p.caps & CAP_START_UNKNOWN != 0;
            p.noticed = true;
            self.out.in_flight((t.pid, tid), p, if found && attach == 0 { 1 } else { attach });
        }
    }

    /// The front end is gone or has had enough.
    fn leave(&mut self) {
        let wanted = self.control().must_stop();
        if wanted && (!self.job.filtered || self.job.kills) {
            let mut threads: Vec<i32> = self.threads.keys().copied().collect();
            threads.sort_unstable();
            for tid in threads {
                self.notice(tid, 2);
                self.out.process(&g::P_DETACH, self.who(tid), &[], &[]);
            }
        }
        self.out.silent = true;
        if self.job.kills {
            // The kernel kills them when this process has ended.
            self.threads.clear();
            self.mode = Mode::Detaching;
            return;
        }
        self.mode = if self.job.filtered { Mode::Resuming } else { Mode::Detaching };
        if self.mode == Mode::Resuming {
            self.job.calls.fill(false);
            self.job.unknown = false;
            // Whoever waits for the end of tracing need not wait for the end of the command.
            self.out.finish();
            return;
        }
        for t in self.threads.values_mut() {
            if t.held.is_some() {
                let _ = ptrace::detach(t.tid, 0);
            } else {
                let _ = ptrace::interrupt(t.tid);
            }
        }
        self.threads.retain(|_, t| t.held.is_none());
    }

    fn on_status(&mut self, s: Status) {
        self.heed();
        self.drain();
        match s.change() {
            Change::Exited(code) => self.ended(s, [code as u64, 0, 0]),
            Change::Killed(sig, core) => self.ended(s, [0, sig as u64, core.into()]),
            Change::Stopped(sig, ev) => {
                self.put_back(s.tid, ev);
                match self.mode {
                    Mode::Detaching => {
                        let deliver = if ev == 0 && sig & 0x80 == 0 { sig } else { 0 };
                        if targets::is_end_of_call(sig, ev) {
                            let _ = ptrace::repeat_call(s.tid);
                        }
                        if ptrace::detach(s.tid, deliver).is_ok() {
                            self.threads.remove(&s.tid);
                        }
                    }
                    _ if self.threads.get(&s.tid).is_some_and(|t| t.leaving) => self.leaving(s.tid, sig, ev),
                    _ => self.stopped(s.tid, sig, ev),
                }
            }
        }
    }

    /// The call that a thread is in for good.
    fn tell_unfinished(&mut self, t: &Thread) {
        if let Some(p) = t.pending.as_ref().filter(|p| p.wanted) {
            let end =
                End { time: time::monotonic(), ret: 0, more: CAP_NO_RESULT, out: &[], cpu: p.cpu, cpu_out: NO_CPU };
            self.out.call((t.pid, t.tid), p, &end);
        }
    }

    fn stopped(&mut self, tid: i32, sig: i32, ev: i32) {
        if let Entry::Vacant(v) = self.threads.entry(tid) {
            // A new thread or process that was attached with its maker, whose event has not come yet. If it is killed first, this
            // is what was known of it.
            let t = v.insert(Thread::new(tid, proc::process_of(tid).unwrap_or(tid)));
            t.held = Some((sig, ev));
            return;
        }
        self.give_slot(tid);
        match (sig, ev) {
            (s, 0) if s & 0x80 != 0 => self.syscall_stop(tid, false),
            (_, event::SECCOMP) => self.syscall_stop(tid, true),
            (_, event::FORK | event::VFORK | event::CLONE) => {
                self.made(tid);
                self.resume(tid, 0);
            }
            (_, event::EXEC) => self.executed(tid),
            (_, event::EXIT) => {
                self.complete_stack(tid);
                self.resume(tid, 0);
            }
            (s, event::STOP) if s == libc_sig::TRAP => self.attach_stop(tid),
            (s, event::STOP) => {
                let who = self.who(tid);
                self.out.process(&g::P_STOP, who, &[s as u64], &[]);
                let _ = ptrace::listen(tid);
            }
            (s, 0) => self.signalled(tid, s),
            _ => self.resume(tid, 0),
        }
    }

    fn who(&self, tid: i32) -> (i32, i32) {
        (self.threads.get(&tid).map_or(tid, |t| t.pid), tid)
    }

    /// Resumes a thread so that its next interesting stop is seen.
    fn resume(&mut self, tid: i32, sig: i32) {
        let inside = self.threads.get(&tid).is_some_and(|t| t.pending.is_some() || t.changed.is_some());
        let refuses = self.threads.get(&tid).is_some_and(|t| t.refuses);
        // With a filter, only the exits of calls that it stopped are wanted; entries come as seccomp events.
        let unseen = self.job.filtered && !inside && !refuses;
        let res = if unseen { ptrace::cont(tid, sig) } else { ptrace::syscall(tid, sig) };
        // ESRCH: killed meanwhile; its end will be reported.
        let _ = res;
    }
}

mod libc_sig {
    /// SIGTRAP.
    pub const TRAP: i32 = 5;
}

/// Prepares the calling process for its life as a tracer: own session, deaf to the terminal, no descriptor of the front
/// end's, notified when the front end dies.
pub fn become_tracer() -> io::Result<()> {
    let _ = sys::process::new_session();
    for sig in [1, 2, 3, 13, 15, 20, 21, 22] {
        signal::ignore(sig)?; // HUP INT QUIT PIPE TERM TSTP TTIN TTOU
    }
    signal::uncount();
    const USR1: i32 = 10;
    const USR2: i32 = 12;
    const ALRM: i32 = 14;
    // A snapshot is asked of the front end, whose handler this process has inherited.
    signal::default(USR2)?;
    signal::count_signal(USR1)?;
    signal::count_signal(ALRM)?;
    signal::on_parent_death(USR1)?;
    signal::interval_timer(recorded::ALWAYS)
}
