//! The ptrace backend: a process of its own that traces, and a shared ring that carries its events.
//!
//! ```text
//! front end ──fork──► ptracer ──fork──► command        (command: same session and terminal as the front end)
//!     ▲                  │ setsid, deaf to INT HUP TERM, no files
//!     └── ring ◄─────────┘ PTRACE_SEIZE, PTRACE_SYSCALL …
//! ```
//!
//! What happens when one of them dies:
//! - the front end: the ptracer releases every thread (without a filter), or keeps resuming the command silently until it
//!   ends (with one: RET_TRACE without a tracer would fail its calls with ENOSYS);
//! - the ptracer: with a filter, PTRACE_O_EXITKILL ends the command with it; without (`--no-seccomp`, `-p`), the kernel
//!   detaches and the target continues;
//! - with `--kill-on-exit` whatever is traced is killed in both cases, and when the session ends before it.

mod emit;
mod fds;
mod filter;
mod intercept;
mod refusal;
mod renames;
mod thread;
mod tracer;

use emit::Emitter;
use engine::control::{self as orders, Order, State, Stream};
use engine::error::{Error, Result};
use engine::pipeline::backend::{Backend, Deliver, Polled};
use engine::plan::Plan;
use engine::stats::{Losses, Report};
use engine::target::{Command, Target};
use events::StreamId;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;
use sys::process;
use sys::ptrace::Change;
use sys::ring::control::{self, Ptracer};
use sys::ring::{Reader, Writer};
use sys::signal::{self, Held};
use sys::{proc, ptrace, seccomp};
use tracer::{Job, Tracer};

/// What failed at the start, on the control page.
mod failed {
    pub const ATTACH: u32 = 1;
    pub const EXEC: u32 = 2;
    pub const USER: u32 = 3;
    pub const FILTER: u32 = 4;
    pub const FORK: u32 = 5;
}

const USR1: i32 = 10;
const EINVAL: i32 = 22;
/// How long the ptracer may take for an order.
const PATIENCE: Duration = Duration::from_secs(4);

/// A running session, seen from the front end.
pub struct Session {
    ring: Reader,
    ptracer: i32,
    reaped: Option<i32>,
    /// While it is open, the ptracer waits before it attaches.
    held: Option<OwnedFd>,
    scratch: Vec<u8>,
    /// Events that were taken out of the ring while the ptracer was waited for.
    waiting: Vec<Vec<u8>>,
}

impl Session {
    /// Starts the ptracer, which waits for [`attach`](Session::attach). Must be called before any thread is started.
    pub fn start(plan: &Plan) -> Result<Session> {
        engine::rights::act_as_the_user();
        let (ring, writer) = sys::ring::new(plan.buffer).map_err(|e| Error::scarce("event buffer", &e))?;
        if plan.named {
            let seen = plan.seen_calls();
            ring.control().select(&seen.by_number(), seen.has_unknown());
            ring.control().hold(plan.paused);
        }
        let parent = process::own_pid();
        let gate = process::pipe().map_err(|e| Error::scarce("pipe", &e))?;
        let (begin, held) = process::pipe().map_err(|e| Error::scarce("pipe", &e))?;
        let (ptracer, (ring, held)) = process::fork((ring, held), || {
            tracer_main(plan, writer, parent, gate, begin);
            0
        })
        .map_err(|e| Error::scarce("fork", &e))?;
        Ok(Session { ring, ptracer, reaped: None, held: Some(held), scratch: Vec::new(), waiting: Vec::new() })
    }

    /// The command's process id; it has executed nothing before [`attach`](Session::attach).
    ///
    /// # Errors
    /// It could not be forked.
    pub fn forked(&mut self) -> Result<i32> {
        loop {
            match self.ring.control().command() {
                Some(pid) => return Ok(pid),
                None if self.finished() => {
                    return Err(Error::failed("fork", "the command is not there", "free some processes"));
                }
                None => std::thread::sleep(Duration::from_micros(50)),
            }
        }
    }

    /// Has the ptracer start the command, or attach to the processes of the plan. Dropped before that, it ends, and the command with it.
    pub fn attach(&mut self) {
        // One that has been killed is noticed elsewhere.
        let _ = self.held.take().map(|held| process::write_byte(&held, 1));
    }

    /// Whether no more events will come.
    fn finished(&mut self) -> bool {
        if self.ring.is_finished() {
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

    /// Makes the ptracer read its control words now. While it begins, it has no handler for the signal, and reads them later anyway.
    fn wake(&self) {
        if self.reaped.is_none() && self.ring.control().is_ready() {
            let _ = signal::kill(self.ptracer, USR1);
        }
    }

    /// Events that found no room; of a ring that is not read any more at least what was next in it.
    fn dropped(&self) -> u64 {
        self.ring.control().dropped() + u64::from(self.ring.is_given_up())
    }

    fn state(&self) -> State {
        let name = StreamId::TRACER.to_string();
        let stream = Stream { name, used: self.ring.used(), size: self.ring.size(), dropped: self.dropped() };
        let is_traced = |pid: &i32| sys::proc::tracer_of(*pid) == Some(self.ptracer);
        let running = sys::proc::processes().into_iter().filter(is_traced).collect();
        State { streams: vec![stream], losses: self.losses(), running, ..State::default() }
    }

    /// Has the ptracer attach to a process, or let go of one (negative), and waits for that. The ring is emptied meanwhile, because the
    /// ptracer may wait for room in it.
    fn change_targets(&mut self, pid: i32) -> Result<State> {
        self.ring.control().change_targets(pid);
        let until = std::time::Instant::now() + PATIENCE;
        loop {
            self.wake();
            let Session { ring, scratch, waiting, .. } = self;
            ring.drain(scratch, |event| waiting.push(event.to_vec()));
            if let Some((errno, tracer)) = self.ring.control().targets_changed() {
                let what = || format!("-p {pid}");
                return if errno == 0 { Ok(self.state()) } else { Err(refusal::explained(what(), errno, tracer)) };
            }
            if self.finished() || std::time::Instant::now() >= until {
                return Err(orders::ended());
            }
            self.ring.wait_for_frames(Duration::from_millis(2));
        }
    }

    /// Has the ptracer let go of a process for a moment, and waits until it has.
    fn lend(&mut self, pid: i32) -> Result<State> {
        self.change_targets(-(pid | control::LENT))?;
        let until = std::time::Instant::now() + PATIENCE;
        let is_traced = |tid: &i32| proc::tracer_of(*tid) == Some(self.ptracer);
        while proc::threads(pid).is_ok_and(|all| all.iter().any(is_traced)) {
            if std::time::Instant::now() >= until {
                let what = format!("-p {pid}");
                return Err(Error::failed(what, "a thread waits in the kernel and does not stop", "try again"));
            }
            let Session { ring, scratch, waiting, .. } = self;
            ring.drain(scratch, |event| waiting.push(event.to_vec()));
            self.ring.wait_for_frames(Duration::from_millis(1));
        }
        Ok(self.state())
    }

    fn losses(&self) -> Losses {
        Losses { total: self.dropped(), classes: self.ring.control().dropped_by_class() }
    }
}

impl Backend for Session {
    fn name(&self) -> &'static str {
        "ptrace"
    }

    fn has_begun(&self) -> bool {
        self.ring.control().is_ready()
    }

    /// Delivers events. Also releases a ptracer that waits for room in a ring that is no longer read.
    fn poll(&mut self, room: bool, each: &mut dyn Deliver) -> Polled {
        let ended = self.finished();
        // A disk that is slower than the command makes the command wait, or the ring fill up and count.
        if !room {
            return Polled::default();
        }
        let settled = self.ring.control().settled();
        let waiting = std::mem::take(&mut self.waiting);
        waiting.iter().for_each(|event| each.event(StreamId::TRACER, event));
        let events = self.ring.drain(&mut self.scratch, |event| each.event(StreamId::TRACER, event)) + waiting.len();
        if let Some(time) = settled {
            each.settled(time);
        }
        if self.ring.is_given_up() && !self.ring.control().has_stopped() {
            self.stop();
        }
        Polled { events, ended }
    }

    fn wait(&mut self, timeout: Duration) {
        self.ring.wait_for_frames(timeout);
    }

    /// The ptracer reads its control words at each stop, and now.
    fn control(&mut self, order: Order) -> Result<State> {
        let control = self.ring.control();
        match &order {
            Order::Status | Order::TakeOut => {}
            Order::Attach(pid) | Order::TakeBack(pid) => return self.change_targets(*pid),
            Order::Detach(pid) => return self.change_targets(-*pid),
            Order::Lend(pid) => return self.lend(*pid),
            Order::Stop => control.hold(true),
            Order::Start => control.hold(false),
            Order::Enable(enabled) => {
                let seen = enabled.calls.iter().map(|(seen, _)| seen);
                seen.for_each(|calls| control.select(&calls.by_number(), calls.has_unknown()));
            }
        }
        if !matches!(order, Order::Status | Order::TakeOut) {
            self.wake();
        }
        Ok(self.state())
    }

    fn stop(&mut self) {
        self.ring.control().stop();
        self.wake();
    }

    fn command(&self) -> Option<i32> {
        self.ring.control().command()
    }

    fn command_status(&mut self) -> Option<Change> {
        self.ring.control().command_status().map(|raw| ptrace::Status { tid: 0, raw }.change())
    }

    fn failure(&mut self, plan: &Plan) -> Option<Error> {
        let control::Failure { at, errno, pid, tracer } = self.ring.control().failure()?;
        let why = io::Error::from_raw_os_error(errno);
        Some(match (at, &plan.target) {
            (failed::ATTACH, target) => {
                let what = match target {
                    Target::Pids(_) | Target::All { .. } => format!("-p {pid}"),
                    Target::Command(cmd) => cmd.path.to_string_lossy().into_owned(),
                };
                refusal::explained(what, errno, tracer)
            }
            (failed::EXEC, Target::Command(cmd)) => engine::target::command::exec_error(cmd, errno),
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
        let unread = c.unread();
        let why = "calls that cannot be read are counted as dropped (Linux 5.3 has it, a sandbox may forbid it: see 'trapline doctor')";
        let trouble = (unread > 0).then(|| format!("PTRACE_GET_SYSCALL_INFO: failed at {unread} stops: {why}"));
        Report {
            losses: self.losses(),
            killed: self.reaped.is_some() && !self.ring.is_finished(),
            unreadable: self.ring.is_given_up(),
            trouble: trouble.into_iter().collect(),
            ..Report::default()
        }
    }
}

fn fail(control: Ptracer<'_>, at: u32, pid: i32, e: &io::Error) {
    let attaches = at == failed::ATTACH;
    let (errno, tracer) = if attaches { refusal::of(pid, e) } else { (e.raw_os_error().unwrap_or(EINVAL), 0) };
    control.fail(control::Failure { at, errno, pid, tracer });
}

/// The life of the ptracer process.
fn tracer_main(plan: &Plan, ring: Writer, parent: i32, gate: (OwnedFd, OwnedFd), begin: OwnedFd) {
    let seen = plan.seen_calls();
    let job = Job {
        calls: seen.by_number(),
        unknown: seen.has_unknown(),
        limits: plan.limits,
        follow: plan.follow,
        filtered: plan.filters(),
        kills: plan.kill_on_exit,
        takes_orders: plan.named,
        fd_names: plan.fd_names,
        fd_details: plan.fd_details,
        notice: u64::from(plan.notice_ms) * 1_000_000,
        cpu: plan.filter.as_ref().is_some_and(|f| f.asks_cpu()),
        hidden: plan.hidden_code(),
        rows: if plan.records_calls() {
            intercept::rows(&seen.by_number(), plan.limits, plan.fd_names)
        } else {
            vec![]
        },
        with_stacks: plan
            .call_captures
            .iter()
            .map(|c| (c.schema.base, (c.schema, usize::from(c.frames.ustack))))
            .collect(),
    };
    let forked = match &plan.target {
        Target::Command(cmd) => start_command(cmd, &job, ring.control(), gate),
        _ => Ok((None, gate.1)),
    };
    match forked.and_then(|forked| tracer::become_tracer().map(|()| forked)) {
        // The front end has given up, or has ended.
        Ok(_) if !matches!(process::read_byte(&begin), Ok(Some(_))) => ring.finish(),
        Ok((command, gate)) => {
            let _ = process::hold_no_files(gate.as_fd());
            let mut t = Tracer::new(job, Emitter::new(ring, plan.on_full, parent));
            let attached = attach(&mut t, plan, command);
            t.control().ready();
            if attached && command.is_some() {
                let _ = process::write_byte(&gate, 1);
            }
            drop(gate);
            if attached || command.is_some() {
                t.run();
            }
            t.finish();
        }
        Err(e) => {
            fail(ring.control(), failed::FORK, 0, &e);
            ring.finish();
        }
    }
}

fn attach(t: &mut Tracer, plan: &Plan, command: Option<i32>) -> bool {
    if let Some(pid) = command
        && let Err(e) = t.seize_command(pid)
    {
        fail(t.control(), failed::ATTACH, pid, &e);
        return false;
    }
    if let Target::Pids(pids) = &plan.target {
        for &pid in pids {
            if let Err(e) = t.seize_process(proc::process_of(pid).unwrap_or(pid)) {
                fail(t.control(), failed::ATTACH, pid, &e);
                return false;
            }
        }
    }
    true
}

/// Forks the command, which waits at the gate until it is traced. Returns its process id and the end of the gate that opens it.
fn start_command(
    cmd: &Command,
    job: &Job,
    control: Ptracer<'_>,
    (wait, open): (OwnedFd, OwnedFd),
) -> io::Result<(Option<i32>, OwnedFd)> {
    let filter = job.filtered.then(|| seccomp::program(&filter::verdicts(&job.calls, &job.rows), job.hidden));
    let held = signal::hold_counted();
    let (pid, open) = process::fork(open, move || match process::read_byte(&wait) {
        Ok(Some(_)) => command_main(cmd, filter.as_deref(), control, held),
        // Nobody opens the gate: the tracer could not attach, and has reported that.
        _ => 125,
    })?;
    control.set_command(pid);
    Ok((Some(pid), open))
}

/// Becomes the command; returns the exit code where that fails.
fn command_main(cmd: &Command, filter: Option<&[seccomp::Insn]>, control: Ptracer<'_>, held: Held) -> i32 {
    let me = process::own_pid();
    let _ = signal::as_at_start();
    if let Some(user) = &cmd.user
        && let Err(e) = process::become_user(user)
    {
        fail(control, failed::USER, me, &e);
        return 125;
    }
    // Nothing is shown before the exec, but each call would stop at the filter.
    held.give_back();
    if let Some(f) = filter
        && let Err(e) = seccomp::install(f)
    {
        fail(control, failed::FILTER, me, &e);
        return 125;
    }
    let e = cmd.image.exec();
    fail(control, failed::EXEC, me, &e);
    if e.kind() == io::ErrorKind::NotFound { 127 } else { 126 }
}
