//! The ptrace backend: a process of its own that traces, and a shared ring that brings its events.
//!
//! ```text
//! front end ──fork──► ptracer ──fork──► command        (command: same session and terminal as the front end)
//!     ▲                  │ setsid, deaf to INT HUP TERM, no descriptors
//!     └── ring ◄─────────┘ PTRACE_SEIZE, PTRACE_SYSCALL …
//! ```
//!
//! What happens when one of them dies:
//! - the front end: the ptracer lets every thread go (without a filter), or keeps resuming the command silently until it
//!   ends (with one: RET_TRACE without a tracer would fail its calls with ENOSYS);
//! - the ptracer: with a filter, PTRACE_O_EXITKILL ends the command with it; without (`--no-seccomp`, `-p`), the kernel
//!   detaches and the target runs on.

mod emit;
pub(crate) mod fds;
mod thread;
mod tracer;

use crate::backend::stats::{Losses, Report};
use crate::backend::{Backend, Polled};
use crate::control::{Order, State, Stream};
use crate::error::{Error, Result};
use crate::plan::{Command, Plan, Target};
use emit::Emitter;
use events::StreamId;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering;
use std::time::Duration;
use sys::process::{self, Fork};
use sys::ptrace::Change;
use sys::ring::Ring;
use sys::signal::{self, Held};
use sys::{proc, ptrace, seccomp};
use tracer::{Job, Tracer};

/// What failed at the start; stored in the ring's control words.
mod failed {
    pub const ATTACH: u32 = 1;
    pub const EXEC: u32 = 2;
    pub const USER: u32 = 3;
    pub const FILTER: u32 = 4;
    pub const FORK: u32 = 5;
}

const USR1: i32 = 10;

/// A running session, seen from the front end.
pub struct Session {
    ring: Ring,
    ptracer: i32,
    reaped: Option<i32>,
    scratch: Vec<u8>,
}

impl Session {
    /// Starts the ptracer, and through it the command or the attach. Must be called before any thread is started.
    pub fn start(plan: &Plan) -> Result<Session> {
        let cannot = |what: &str, e: io::Error| Error::failed(what, e.to_string(), "free some memory or processes");
        as_an_ordinary_program();
        let ring = Ring::new(plan.buffer).map_err(|e| cannot("event buffer", e))?;
        if plan.named {
            let seen = plan.seen_calls();
            ring.control().orders.select(&seen.by_number(), seen.has_unknown());
            ring.control().orders.stopped.store(plan.paused.into(), Ordering::Release);
        }
        let parent = process::own_pid();
        let gate = process::pipe().map_err(|e| cannot("pipe", e))?;
        match process::fork().map_err(|e| cannot("fork", e))? {
            Fork::Parent(ptracer) => Ok(Session { ring, ptracer, reaped: None, scratch: Vec::new() }),
            Fork::Child => {
                tracer_main(plan, &ring, parent, gate);
                process::exit_now(0)
            }
        }
    }

    /// Whether no more events will come.
    fn finished(&mut self) -> bool {
        if self.ring.control().finished.load(Ordering::SeqCst) != 0 {
            return true;
        }
        // The ptracer never ends without saying so: this one was killed.
        if self.reaped.is_none()
            && let Ok(Some(s)) = ptrace::wait_for(self.ptracer, false)
        {
            self.reaped = Some(s.raw);
        }
        self.reaped.is_some()
    }

    /// Has the ptracer look at its words now.
    fn wake(&self) {
        if self.reaped.is_none() {
            let _ = signal::kill(self.ptracer, USR1);
        }
    }

    /// Events that found no room; of a ring that is not read any more at least what was next in it.
    fn dropped(&self) -> u64 {
        self.ring.control().dropped() + u64::from(self.ring.is_given_up())
    }

    fn losses(&self) -> Losses {
        Losses { total: self.dropped(), classes: self.ring.control().dropped_by_class() }
    }
}

impl Backend for Session {
    fn name(&self) -> &'static str {
        "ptrace"
    }

    /// Whoever waits for room in a ring that is not read any more is let go.
    fn poll(&mut self, room: bool, each: &mut dyn FnMut(StreamId, &[u8])) -> Polled {
        let ended = self.finished();
        // A disk that is slower than the command makes the command wait, or the ring fill up and count.
        if !room {
            return Polled::default();
        }
        let events = self.ring.drain(&mut self.scratch, |event| each(StreamId::TRACER, event));
        if self.ring.is_given_up() && self.ring.control().stop.load(Ordering::Relaxed) == 0 {
            self.stop();
        }
        Polled { events, ended }
    }

    fn wait(&mut self, timeout: Duration) {
        self.ring.wait_for_frames(timeout);
    }

    /// The ptracer looks at its words at each stop, and now.
    fn control(&mut self, order: Order) -> Option<State> {
        let orders = &self.ring.control().orders;
        match &order {
            Order::Status => {}
            Order::Stop => orders.stopped.store(1, Ordering::Release),
            Order::Start => orders.stopped.store(0, Ordering::Release),
            Order::Select(calls) => orders.select(&calls.by_number(), calls.has_unknown()),
        }
        if !matches!(order, Order::Status) {
            self.wake();
        }
        let name = StreamId::TRACER.to_string();
        let stream = Stream { name, used: self.ring.used(), size: self.ring.size(), dropped: self.dropped() };
        Some(State { streams: vec![stream], losses: self.losses(), ..State::default() })
    }

    fn stop(&mut self) {
        self.ring.control().stop.store(1, Ordering::SeqCst);
        self.wake();
    }

    fn command(&self) -> Option<i32> {
        Some(self.ring.control().command.load(Ordering::Acquire)).filter(|&p| p != 0)
    }

    fn command_status(&mut self) -> Option<Change> {
        let c = self.ring.control();
        let ended = c.command_ended.load(Ordering::Acquire) != 0;
        ended.then(|| ptrace::Status { tid: 0, raw: c.status.load(Ordering::Relaxed) }.change())
    }

    fn failure(&mut self, plan: &Plan) -> Option<Error> {
        let c = self.ring.control();
        let errno = c.failure.load(Ordering::Acquire);
        if errno == 0 {
            return None;
        }
        let pid = c.failed_pid.load(Ordering::Relaxed);
        let why = io::Error::from_raw_os_error(errno);
        Some(match (c.failed_at.load(Ordering::Relaxed), &plan.target) {
            (failed::ATTACH, target) => {
                let what = match target {
                    Target::Pids(_) | Target::All { .. } => format!("-p {pid}"),
                    Target::Command(cmd) => cmd.path.to_string_lossy().into_owned(),
                };
                attach_error(what, errno, c.failed_tracer.load(Ordering::Relaxed))
            }
            (failed::EXEC, Target::Command(cmd)) => crate::command::exec_error(cmd, errno),
            (failed::USER, _) => Error::failed("-u", why.to_string(), "run trapline as root to change the user"),
            (failed::FILTER, _) => Error::failed("seccomp filter", why.to_string(), "use --no-seccomp"),
            _ => Error::failed("ptrace", why.to_string(), "see 'trapline doctor'"),
        })
    }

    fn streams(&self) -> Vec<StreamId> {
        vec![StreamId::TRACER]
    }

    fn dropped_on(&self, stream: StreamId) -> u64 {
        if stream == StreamId::TRACER { self.dropped() } else { 0 }
    }

    fn report(&mut self) -> Report {
        let c = self.ring.control();
        let unread = c.unread.load(Ordering::Relaxed);
        let why = "calls that cannot be read are counted as dropped (Linux 5.3 has it, a sandbox may forbid it: see 'trapline doctor')";
        let trouble = (unread > 0).then(|| format!("PTRACE_GET_SYSCALL_INFO: failed at {unread} stops: {why}"));
        Report {
            losses: self.losses(),
            interrupted: c.interrupted.load(Ordering::Relaxed),
            killed: self.reaped.is_some() && c.finished.load(Ordering::SeqCst) == 0,
            unreadable: self.ring.is_given_up(),
            trouble: trouble.into_iter().collect(),
            ..Report::default()
        }
    }
}

/// Gives up capabilities that trapline's file has for the kernel backend: the command is forked from this process, and one with
/// capabilities cannot be traced by its user.
fn as_an_ordinary_program() {
    use sys::caps;
    let held = caps::effective().unwrap_or(0);
    if process::ruid() != 0 && held != 0 && caps::drop_to(held & caps::FOR_PTRACE).is_ok() {
        let _ = process::make_dumpable();
    }
}

/// Stands for an errno: the process is a zombie.
const ZOMBIE: i32 = 10_000;

/// Explains why a process cannot be attached to; `tracer` traces it already.
fn attach_error(what: String, errno: i32, tracer: i32) -> Error {
    const ENOENT: i32 = 2;
    const ESRCH: i32 = 3;
    if errno == ZOMBIE {
        return Error::failed(what, "the process has ended", "its parent has not collected it yet");
    }
    if matches!(errno, ESRCH | ENOENT) {
        return Error::failed(what, "no such process", "see 'ps -e'");
    }
    if tracer != 0 {
        let name = proc::comm(tracer).map(|c| String::from_utf8_lossy(&c).into_owned()).unwrap_or_default();
        let why = format!("already traced by process {tracer} ({name})");
        return Error::failed(what, why, "a process has one tracer: end that one first");
    }
    let scope = proc::yama_scope().unwrap_or(0);
    if scope >= 1 && process::euid() != 0 {
        let why = format!("not permitted: kernel.yama.ptrace_scope is {scope}");
        return Error::failed(what, why, "run as root, or start the command under trapline");
    }
    if process::euid() != 0 {
        return Error::failed(
            what,
            "not permitted: the process belongs to another user or is privileged",
            "run as root",
        );
    }
    let why = io::Error::from_raw_os_error(errno).to_string();
    Error::failed(what, format!("cannot attach: {why}"), "kernel threads and trapline itself cannot be traced")
}

fn fail(ring: &Ring, at: u32, pid: i32, e: &io::Error) {
    let c = ring.control();
    c.failed_at.store(at, Ordering::Relaxed);
    c.failed_pid.store(pid, Ordering::Relaxed);
    let tracer = if at == failed::ATTACH { proc::tracer_of(pid).unwrap_or(0) } else { 0 };
    c.failed_tracer.store(tracer, Ordering::Relaxed);
    let zombie = at == failed::ATTACH && proc::status_field(pid, "State").is_some_and(|s| s.starts_with('Z'));
    c.failure.store(if zombie { ZOMBIE } else { e.raw_os_error().unwrap_or(22) }, Ordering::Release);
}

/// The life of the ptracer process.
fn tracer_main(plan: &Plan, ring: &Ring, parent: i32, gate: (OwnedFd, OwnedFd)) {
    let seen = plan.seen_calls();
    let job = Job {
        calls: seen.by_number(),
        unknown: seen.has_unknown(),
        limits: plan.limits,
        follow: plan.follow,
        filtered: plan.filters(),
        takes_orders: plan.named,
        fd_names: plan.fd_names,
        fd_details: plan.fd_details,
        notice: u64::from(plan.notice_ms) * 1_000_000,
        cpu: plan.filter.as_ref().is_some_and(|f| f.asks_cpu()),
    };
    let mut ok = true;
    let mut command = None;
    if let Target::Command(cmd) = &plan.target {
        match start_command(cmd, &job, ring, &gate) {
            Ok(pid) => command = Some(pid),
            Err(e) => {
                fail(ring, failed::FORK, 0, &e);
                ok = false;
            }
        }
    }
    let (gate_read, gate_write) = gate;
    drop(gate_read);
    if let Err(e) = tracer::become_tracer() {
        fail(ring, failed::FORK, 0, &e);
        ok = false;
    }
    if ok {
        let _ = process::close_all_but(Some(&gate_write));
        let out = Emitter::new(ring, plan.on_full, parent);
        let mut t = Tracer::new(job, ring, out);
        ok = attach(&mut t, plan, ring, command);
        if ok && command.is_some() {
            let _ = process::write_byte(&gate_write, 1);
        }
        drop(gate_write);
        if ok || command.is_some() {
            t.run();
        }
    }
    ring.control().finished.store(1, Ordering::SeqCst);
    ring.wake_reader();
}

fn attach(t: &mut Tracer<'_>, plan: &Plan, ring: &Ring, command: Option<i32>) -> bool {
    if let Some(pid) = command
        && let Err(e) = t.seize_command(pid)
    {
        fail(ring, failed::ATTACH, pid, &e);
        return false;
    }
    if let Target::Pids(pids) = &plan.target {
        for &pid in pids {
            if let Err(e) = t.seize_process(proc::process_of(pid).unwrap_or(pid)) {
                fail(ring, failed::ATTACH, pid, &e);
                return false;
            }
        }
        ring.control().started.store(1, Ordering::Release);
    }
    true
}

/// Forks the command, which waits at the gate until it is traced.
fn start_command(cmd: &Command, job: &Job, ring: &Ring, gate: &(OwnedFd, OwnedFd)) -> io::Result<i32> {
    let filter = job.filtered.then(|| seccomp::program(&tracer::filter_numbers(job)));
    let held = signal::hold_counted();
    match process::fork()? {
        Fork::Parent(pid) => {
            ring.control().command.store(pid, Ordering::Release);
            Ok(pid)
        }
        Fork::Child => {
            // Nobody opens the gate: the tracer could not attach, and has said so.
            match pass_gate(gate) {
                Ok(()) => command_main(cmd, filter.as_deref(), ring, held),
                Err(_) => process::exit_now(125),
            }
        }
    }
}

fn pass_gate(gate: &(OwnedFd, OwnedFd)) -> io::Result<()> {
    // The own copy of the writing end would keep the read from ending when the tracer dies.
    process::close(&gate.1);
    match process::read_byte(&gate.0)? {
        Some(_) => Ok(()),
        None => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

fn command_main(cmd: &Command, filter: Option<&[seccomp::Insn]>, ring: &Ring, held: Held) -> ! {
    let me = process::own_pid();
    let _ = signal::restore_sigpipe();
    if let Some(user) = &cmd.user
        && let Err(e) = process::become_user(user)
    {
        fail(ring, failed::USER, me, &e);
        process::exit_now(125);
    }
    if let Some(f) = filter
        && let Err(e) = seccomp::install(f)
    {
        fail(ring, failed::FILTER, me, &e);
        process::exit_now(125);
    }
    // Its system calls stand behind the filter, and before the exec nothing is shown.
    held.give_back();
    let e = cmd.image.exec();
    fail(ring, failed::EXEC, me, &e);
    process::exit_now(if e.kind() == io::ErrorKind::NotFound { 127 } else { 126 })
}
