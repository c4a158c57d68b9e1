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

mod recorded;

use self::recorded::Batch;
use super::emit::{Emitter, End};
use super::filter;
use super::intercept::Intercept;
use super::renames::CHANGE_ROOT;
use super::thread::{Pending, Thread};
use engine::backend::code::build_here;
use engine::backend::ids::ids;
use engine::backend::stacks::{self, Stacks};
use engine::capture::{self, Limits};
use events::generated as g;
use events::layout::{CAP_INTERRUPTED, CAP_NO_RESULT, CAP_START_UNKNOWN, Layout, NO_CPU};
use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet, VecDeque};
use std::io;
use std::sync::LazyLock;
use sys::ptrace::{self, Change, FrameRegisters, Status, event, option};
use sys::ring::control::Ptracer;
use sys::{proc, seccomp, signal, time};

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
}

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
            return Err(io::Error::from_raw_os_error(super::TRACER));
        }
        let (mut seen, mut dead) = (Vec::new(), HashSet::new());
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
                match ptrace::seize(tid, self.options()) {
                    Ok(()) => {
                        seen.push(tid);
                        self.attached(pid, tid);
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

    /// Gives the call that a thread is in its stack, where it has none yet. The thread stops before it leaves the call.
    fn complete_stack(&mut self, tid: i32) {
        let Some(mut t) = self.threads.remove(&tid) else { return };
        if let Some(mut p) = t.pending.take() {
            if p.registers.is_some() && p.stack.is_some_and(|at| p.args[at] == 0) {
                self.take_stack(&t, &mut p);
            }
            t.pending = Some(p);
        }
        self.threads.insert(tid, t);
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

    /// Undoes, at the next stop of a thread, what was changed for the length of its call. A thread that the call has made has a copy.
    fn put_back(&mut self, tid: i32, ev: i32) {
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

    fn ended(&mut self, s: Status, end: [u64; 3]) {
        let Some(mut t) = self.threads.remove(&s.tid) else {
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
        if self.command == Some(s.tid) {
            self.control().command_ended(s.raw);
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

    /// How a thread has ended: exit code, signal, whether a core was dumped.
    fn tell_end(&mut self, who: (i32, i32), end: [u64; 3]) {
        if who.0 == who.1 {
            self.stacks.forget(who.0);
        }
        self.out.process(&g::P_EXIT, who, &end, &[]);
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

    /// A stop at a call: by the filter, which stops at entries only, or else at any of both ends.
    fn syscall_stop(&mut self, tid: i32, by_filter: bool) {
        // Whatever becomes of it here, the thread goes on.
        if let Some(mut t) = self.threads.remove(&tid) {
            match ptrace::syscall_info(tid) {
                Ok(info) => self.call_stop(&mut t, &info),
                // Killed meanwhile: its end will be reported, and shows the call that it was in.
                Err(e) if e.raw_os_error() == Some(ESRCH) => {}
                Err(_) => self.unread_stop(&mut t, by_filter),
            }
            self.threads.insert(tid, t);
        }
        self.resume(tid, 0);
    }

    fn call_stop(&mut self, t: &mut Thread, info: &ptrace::SyscallInfo) {
        t.unread = false;
        if info.op == 3 && !self.is_hidden(info) && self.may_record(t, info) {
            return;
        }
        match info.op {
            1 | 3 => match &mut t.pending {
                // The restart of a call that the attach interrupted.
                Some(p) if p.restarting => p.restarting = false,
                // With a filter on, an entry stop precedes the seccomp stop of the same call.
                Some(_) if info.op == 3 => {}
                _ if self.is_hidden(info) && !EXECS.contains(&info.nr) => t.pending = None,
                _ => {
                    let mut args = info.args;
                    if info.nr == RT_SIGRETURN && info.arch == ptrace::ARCH_X86_64 {
                        args[0] = info.sp + SIGFRAME_MASK;
                    }
                    let on_behalf = self.is_hidden(info);
                    t.pending = Some(Pending { on_behalf, ..self.entry(t, info.arch, info.nr, args) });
                }
            },
            2 => self.exit(t, info.ret),
            _ => {}
        }
        // Last, because events show what the program asks for.
        if info.op == 3 && info.told != u32::from(seccomp::MARK) {
            // A filter of the program's own asks a tracer, and there is none but trapline.
            t.changed = ptrace::refuse(t.tid).ok();
        } else if info.op == 3 || info.op == 1 && self.job.follow && !self.job.filtered {
            t.changed = ptrace::trace_untraced(t.tid, info).ok().flatten();
        }
    }

    fn is_hidden(&self, info: &ptrace::SyscallInfo) -> bool {
        self.job.hidden.is_some_and(|upper| info.ip >> 32 == u64::from(upper))
    }

    /// A stop at a call that the kernel does not describe. A call whose entry was seen is shown without its end; any other is lost,
    /// and counted once.
    fn unread_stop(&mut self, t: &mut Thread, by_filter: bool) {
        if by_filter && t.refuses {
            // It was told at the entry stop of the call.
            return;
        }
        self.control().count_unread();
        if t.pending.is_some() {
            // With a filter on, an entry stop precedes the filter's stop of one call.
            if !by_filter {
                self.tell_unfinished(t);
                t.pending = None;
            }
            return;
        }
        // After the filter's stop the thread runs without stops: there is none at the end of the call.
        t.unread = !by_filter && !t.unread;
        if (by_filter || t.unread) && !t.starting {
            self.control().drop_event(None);
        }
    }

    fn entry(&mut self, t: &mut Thread, arch: u32, nr: u64, regs: [u64; 6]) -> Pending {
        let native = arch == ptrace::ARCH_X86_64;
        let known = if native { events::registry::by_number(nr) } else { None };
        let wanted = match known {
            _ if self.job.takes_orders => self.control().wants(known.map(|_| nr)),
            Some(_) => self.job.calls.get(nr as usize).copied().unwrap_or(self.job.unknown),
            None => self.job.unknown,
        };
        let mut args = [0; 8];
        let class = known.map(|s| self.job.with_stacks.get(&s.id).map_or(s, |c| c.0));
        let (schema, layout) = match class.and_then(|s| Some((s, events::registry::layout(s.id)?))) {
            Some(found) => {
                args[..6].copy_from_slice(&regs);
                found
            }
            None => {
                (args[0], args[1]) = (nr, u64::from(arch));
                args[2..].copy_from_slice(&regs);
                *RAW
            }
        };
        let mut tails = std::mem::take(&mut t.spare);
        tails.clear();
        let (mut caps, mut cpu) = (0, NO_CPU);
        if wanted && !layout.tails.is_empty() {
            let mut mem = t.memory();
            let call = capture::Call { schema, layout, args: &args, result: None };
            caps = capture::tails(&call, &mut mem, self.job.limits, 0, &mut tails);
            cpu = mem.cpu;
        }
        if wanted && self.job.cpu && cpu == NO_CPU {
            cpu = proc::cpu(t.tid).unwrap_or(NO_CPU);
        }
        let stack = if schema.id == schema.base { None } else { schema.args.iter().position(events::stacks::is_stack) };
        if let Some(at) = stack {
            // The register is no argument of the call.
            args[at] = 0;
        }
        let start = time::monotonic();
        let mut p = Pending {
            schema,
            layout,
            nr,
            start,
            args,
            caps,
            tails,
            cpu,
            stack,
            registers: stack.filter(|_| wanted && !t.starting).and_then(|_| ptrace::frame_registers(t.tid).ok()),
            noticed: false,
            wanted,
            restarting: false,
            on_behalf: false,
        };
        if stacks::is_at_entry(schema.name) {
            self.take_stack(t, &mut p);
        }
        p
    }

    /// The id of the stack of a thread that does not run, which is reported.
    fn stack(&mut self, who: (i32, i32), registers: FrameRegisters, most: usize) -> u64 {
        let Tracer { stacks, out, .. } = self;
        stacks.of(who, registers, most, &mut build_here, |stack| out.stack(who, &stack))
    }

    /// The stack of a thread that does not run, for the call that it is in.
    fn take_stack(&mut self, t: &Thread, p: &mut Pending) {
        if let Some(at) = p.stack.filter(|_| p.wanted && !t.starting && !self.out.silent && !self.out.held)
            && let Some(registers) = p.registers.or_else(|| ptrace::frame_registers(t.tid).ok())
        {
            let most = self.job.with_stacks.get(&p.schema.base).map_or(0, |c| c.1);
            p.args[at] = self.stack((t.pid, t.tid), registers, most);
        }
    }

    /// Stops or resumes reporting calls, as the front end asks.
    fn heed(&mut self) {
        if self.job.takes_orders {
            self.out.hold(self.control().is_held());
            if let Some(pid) = self.control().change_of_targets() {
                let changed = if pid > 0 { self.add(pid) } else { self.release(-pid) };
                let (errno, tracer) = changed.map_or_else(|e| super::refusal(pid.abs(), &e), |()| (0, 0));
                self.control().targets_changed(errno, tracer);
            }
        }
    }

    /// Attaches to a process while others are traced.
    fn add(&mut self, pid: i32) -> io::Result<()> {
        let pid = proc::process_of(pid).unwrap_or(pid);
        self.seize_process(pid).inspect_err(|_| {
            let _ = self.release(pid);
        })
    }

    /// Lets go of a process: each of its threads at its next stop.
    fn release(&mut self, pid: i32) -> io::Result<()> {
        if self.threads.values().all(|t| t.pid == pid || t.leaving) {
            return Err(io::Error::from_raw_os_error(super::ALONE));
        }
        let mut some = false;
        for t in self.threads.values_mut().filter(|t| t.pid == pid) {
            (t.leaving, some) = (true, true);
            let _ = ptrace::interrupt(t.tid);
        }
        if some { Ok(()) } else { Err(io::Error::from_raw_os_error(3)) }
    }

    /// A stop of a thread that is to be let go: the one that was asked for ends its tracing; any other is dealt with first.
    fn leaving(&mut self, tid: i32, sig: i32, ev: i32) {
        if ev != event::STOP {
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

    fn exit(&mut self, t: &mut Thread, ret: i64) {
        let end = time::monotonic();
        let Some(mut p) = t.pending.take() else { return };
        if t.starting {
            // Only the execve that works out is the command's own.
            if p.schema.name != "execve" || ret < 0 {
                t.spare = p.tails;
                return;
            }
            t.starting = false;
        }
        if stacks::changes_mappings(p.schema.name) {
            self.stacks.forget(t.pid);
        }
        if self.job.filtered && ret >= 0 {
            self.note_refusals(t, &p);
        }
        if CHANGE_ROOT.contains(&p.nr) && ret >= 0 {
            self.look_at_root(t);
        }
        if p.wanted && !(p.on_behalf && ret < 0) {
            // Before the command's execve there is no stack of its own.
            if !stacks::is_at_entry(p.schema.name) || p.stack.is_some_and(|at| p.args[at] == 0) {
                self.take_stack(t, &mut p);
            }
            self.tails.clear();
            let mut more = 0;
            if p.layout.tails.iter().any(|s| s.out) {
                let mut mem = t.memory();
                p.caps = self.exit_tails(&p, &mut mem, ret);
                if p.cpu == NO_CPU {
                    p.cpu = mem.cpu;
                }
            }
            if p.caps & CAP_START_UNKNOWN != 0 && ret == -4 {
                more |= CAP_INTERRUPTED;
            }
            if self.job.fd_names && ret >= 0 {
                super::fds::made(&mut self.out, t, &p, ret, end, self.job.fd_details);
            }
            let e = End { time: end, ret, more, out: &self.tails, cpu: p.cpu, cpu_out: NO_CPU };
            self.out.call((t.pid, t.tid), &p, &e);
            if self.job.fd_names && ret >= 0 {
                super::fds::changed(&mut self.out, t, &p, end, self.job.fd_details);
            }
        }
        t.spare = p.tails;
    }

    /// After a call that has succeeded: whether the thread has got a seccomp filter beside trapline's. Where that refuses a call,
    /// trapline's says nothing of it; but the thread stops at the entry of a call before any filter is asked.
    fn note_refusals(&mut self, t: &mut Thread, p: &Pending) {
        let Some(everywhere) = filter::added(p) else { return };
        t.refuses = true;
        Self::stop_recording(t);
        if everywhere {
            for other in self.threads.values_mut().filter(|other| other.pid == t.pid) {
                other.refuses = true;
                Self::stop_recording(other);
            }
        }
    }

    /// The stop that an attach asked for, and the first stop of a new thread.
    fn attach_stop(&mut self, tid: i32) {
        let unseen = |p: &&mut Pending| p.caps & CAP_START_UNKNOWN != 0 && !p.noticed;
        if let Some(p) = self.threads.get_mut(&tid).and_then(|t| t.pending.as_mut()).filter(unseen) {
            // Unless the call has ended by itself.
            let inside = ptrace::call_registers(tid).is_ok_and(|(nr, _)| nr == p.nr as i64);
            p.registers = if inside { ptrace::frame_registers(tid).ok() } else { None };
            self.notice(tid, 1);
        }
        let Some(mut t) = self.threads.remove(&tid) else { return self.resume(tid, 0) };
        if let Some(p) = &mut t.pending
            && p.caps & CAP_START_UNKNOWN != 0
            && !p.restarting
        {
            match ptrace::call_registers(tid) {
                Ok((nr, rax)) if nr == p.nr as i64 && events::errno::is_restart(-rax) => p.restarting = true,
                Ok((nr, rax)) if nr == p.nr as i64 => {
                    if rax == -4 {
                        self.control().count_interrupted();
                    }
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

    /// Thread `maker` has made a thread or process.
    fn made(&mut self, maker: i32) {
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
    fn adopt(&mut self, child: i32) {
        let pid = proc::process_of(child).unwrap_or(child);
        self.introduce(Birth { child, pid, by: (pid, child), flags: 0, rseq: None });
        if let Some(t) = self.threads.get_mut(&child) {
            t.adopted = true;
        }
    }

    fn executed(&mut self, tid: i32) {
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

    fn seed_fds(&mut self, pid: i32) {
        super::fds::seed(&mut self.out, pid, time::monotonic(), self.job.fd_details, false);
    }

    fn signalled(&mut self, tid: i32, sig: i32) {
        if self.leave_code(tid, sig) {
            return self.resume(tid, 0);
        }
        let who = self.who(tid);
        if let Ok(raw) = ptrace::siginfo(tid)
            && !self.threads.get(&tid).is_some_and(|t| t.starting)
        {
            let info = siginfo_args(sig, &raw);
            match self.job.with_stacks.get(&g::P_SIGNAL.id) {
                Some(&(schema, most)) if !self.out.held => {
                    let mut args = [0; 13];
                    args[..12].copy_from_slice(&info);
                    let registers = ptrace::frame_registers(tid);
                    args[12] = registers.map_or(0, |r| self.stack(who, r, most));
                    self.out.process(schema, who, &args, &[]);
                }
                _ => self.out.process(&g::P_SIGNAL, who, &info, &[]),
            }
        }
        self.resume(tid, sig);
    }
}

const RT_SIGRETURN: u64 = 15;
/// execve and execveat: what hidden code makes on the program's behalf.
const EXECS: [u64; 2] = [59, 322];
const ESRCH: i32 = 3;
/// `include/uapi/linux/sched.h`.
const CLONE_VM: u64 = 0x100;
const CLONE_THREAD: u64 = 0x10000;
/// At rt_sigreturn the stack pointer points to a `struct ucontext`, whose `uc_sigmask` comes after flags, link, stack_t (24)
/// and sigcontext (256) (`arch/x86/include/asm/sigframe.h`, `include/uapi/asm-generic/ucontext.h`).
const SIGFRAME_MASK: u64 = 8 + 8 + 24 + 256;

mod libc_sig {
    /// SIGTRAP.
    pub const TRAP: i32 = 5;
}

/// Whether a thread of `pid` has ended, or is gone.
fn is_dead(pid: i32, tid: i32) -> bool {
    let state = proc::status_field(tid, "State");
    state.is_none_or(|s| s.starts_with(['Z', 'X'])) || proc::process_of(tid) != Some(pid)
}

/// The arguments of `process:signal` from a raw siginfo (`include/uapi/asm-generic/siginfo.h`, 64-bit layout).
fn siginfo_args(sig: i32, raw: &[u8; 128]) -> [u64; 12] {
    let i32_at = |at: usize| i32::from_le_bytes([raw[at], raw[at + 1], raw[at + 2], raw[at + 3]]) as i64 as u64;
    let u64_at = |at: usize| {
        let mut le = [0; 8];
        le.copy_from_slice(&raw[at..at + 8]);
        u64::from_le_bytes(le)
    };
    let (errno, code) = (i32_at(4), i32_at(8));
    let mut a = [sig as u64, code, errno, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    const CHLD: i32 = 17;
    const SYS: i32 = 31;
    match sig {
        CHLD => {
            (a[3], a[4], a[5]) = (i32_at(16), i32_at(20), i32_at(24));
            (a[6], a[7]) = (u64_at(32), u64_at(40));
        }
        // SIGILL, SIGTRAP, SIGBUS, SIGFPE, SIGSEGV: fault address, where the kernel raised it (positive code).
        4 | 5 | 7 | 8 | 11 if (code as i64) > 0 => a[8] = u64_at(16),
        SYS if (code as i64) > 0 => (a[8], a[10], a[11]) = (u64_at(16), i32_at(24), i32_at(28) & 0xffff_ffff),
        _ => (a[3], a[4], a[9]) = (i32_at(16), i32_at(20), u64_at(24)),
    }
    a
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
