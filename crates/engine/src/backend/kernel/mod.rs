//! The kernel backend: eBPF programs, a ring per CPU, a thread that drains them.
//!
//! ```text
//! programs ─► ring per CPU ─► drain thread: merge by time ─► backlog (bounded) ─► collector, views
//! ```
//!
//! The command is a child of the front end. It waits at a pipe until its task storage is set, and so is traced from its first
//! instruction; its children are, because their storage is made before they first run. Nothing blocks the target: a full ring
//! is counted. The drain thread never formats.

mod backlog;
pub mod load;
mod merge;
pub mod notice;

use crate::error::{Error, Result};
use crate::plan::{Command, Plan, Target};
use backlog::Backlog;
use bpf::calls::state;
use load::Loaded;
use merge::Merge;
use notice::Watch;
use std::collections::HashSet;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use sys::process::{self, Fork};
use sys::ptrace::{self, Change};
use sys::{proc, signal, time};

/// What both threads see. Legend: (d) written by the drain thread, (f) by the front end.
#[derive(Default)]
struct Shared {
    /// (d) appends chunks of events and says when no more will come, (f) takes them.
    backlog: Backlog,
    /// (f) Detach and finish.
    stop: AtomicBool,
    /// (d) Events that found a ring full.
    dropped: AtomicU64,
}

/// A running session.
pub struct Session {
    shared: Arc<Shared>,
    drain: Option<JoinHandle<()>>,
    command: Option<i32>,
    status: Option<Change>,
    failure: Option<(u32, i32)>,
    notices: bool,
}

const FAILED_USER: u8 = 1;
/// `BPF_NOEXIST`: the value must not be there yet.
const NO_EXIST: u64 = 1;

impl Session {
    /// Loads the programs, and starts the command or attaches.
    pub fn start(plan: &Plan) -> Result<Session> {
        let loaded = load::load(plan)?;
        let mut alive = HashSet::new();
        let mut command = None;
        let mut failure = None;
        let mut merge = Merge::default();
        match &plan.target {
            Target::Command(cmd) => {
                let (pid, failed) = start_command(cmd, plan, &loaded, &mut merge)?;
                alive.insert(pid as u32);
                command = Some(pid);
                failure = failed;
            }
            Target::Pids(pids) => {
                for &pid in pids {
                    let pid = proc::process_of(pid).unwrap_or(pid);
                    seed_fds(pid, plan, &mut merge);
                    attach(pid, plan, &loaded, &mut alive, &mut merge)?;
                }
            }
        }
        // Before the drain thread starts, because capabilities belong to threads.
        let _ = sys::caps::drop_to(sys::caps::AFTER_ATTACH);
        let shared = Arc::new(Shared::default());
        let notices = loaded.iterator.is_some();
        let watch = Watch::new(plan.notice_ms, plan.limits);
        let drain = Drain { loaded, shared: Arc::clone(&shared), merge, alive, command, watch };
        let drain = std::thread::Builder::new()
            .name("trapline-drain".into())
            .spawn(move || drain.run())
            .map_err(|e| Error::failed("drain thread", e.to_string(), "free some processes"))?;
        Ok(Session { shared, drain: Some(drain), command, status: None, failure, notices })
    }

    /// Hands over events of the backlog, but not without end; returns how many.
    pub fn drain(&mut self, mut each: impl FnMut(&[u8])) -> usize {
        let mut n = 0;
        let mut chunk = Vec::new();
        // Whoever wants to end the session must get a turn, however fast the target is.
        let mut turns = 64;
        while turns > 0 && self.shared.backlog.pop(&mut chunk) {
            turns -= 1;
            let mut rest = &chunk[..];
            while let Some((len, tail)) = rest.split_first_chunk::<4>() {
                let (event, next) = tail.split_at((u32::from_le_bytes(*len) as usize).min(tail.len()));
                each(event);
                n += 1;
                rest = next;
            }
        }
        n
    }

    /// Sleeps until there are events, the end, or `timeout`.
    pub fn wait(&self, timeout: Duration) {
        self.shared.backlog.wait(timeout);
    }

    /// Asks for the end.
    pub fn stop(&self) {
        self.shared.stop.store(true, Ordering::Release);
    }

    /// Whether no more events will come.
    pub fn finished(&mut self) -> bool {
        if self.status.is_none()
            && let Some(pid) = self.command
            && let Ok(Some(s)) = ptrace::wait_for(pid, false)
            && !matches!(s.change(), Change::Stopped(..))
        {
            self.status = Some(s.change());
        }
        let done = self.shared.backlog.is_finished();
        if done && let Some(t) = self.drain.take() {
            let _ = t.join();
        }
        done
    }

    /// The command's process id.
    pub fn command(&self) -> Option<i32> {
        self.command
    }

    /// How the command ended.
    pub fn command_status(&mut self) -> Option<Change> {
        if self.status.is_none()
            && !self.shared.stop.load(Ordering::Acquire)
            && let Some(pid) = self.command
            && let Ok(Some(s)) = ptrace::wait_for(pid, true)
        {
            self.status = Some(s.change());
        }
        self.status
    }

    /// What went wrong with the files of the backlog, if anything did, and what that has cost.
    pub fn trouble(&self) -> Option<String> {
        let lost = self.shared.backlog.lost_bytes();
        let why = self.shared.backlog.take_error().map(|e| e.to_string());
        match (why, lost) {
            (None, 0) => None,
            (why, 0) => Some(format!("{} (the events were kept in memory)", why.unwrap_or_default())),
            (why, n) => Some(format!("{}: {n} bytes of events are lost and not counted", why.unwrap_or_default())),
        }
    }

    /// Events that found a ring full.
    pub fn dropped(&self) -> u64 {
        self.shared.dropped.load(Ordering::Relaxed)
    }

    /// Whether calls in flight can be shown: this kernel has task iterators.
    pub fn has_notices(&self) -> bool {
        self.notices
    }

    /// Why the command could not start, if it could not.
    pub fn failure(&self, plan: &Plan) -> Option<Error> {
        let (at, errno) = self.failure?;
        match &plan.target {
            Target::Command(_) if at == u32::from(FAILED_USER) => {
                let why = io::Error::from_raw_os_error(errno).to_string();
                Some(Error::failed("-u", why, "run trapline as root to change the user"))
            }
            Target::Command(cmd) => Some(crate::command::exec_error(cmd, errno)),
            Target::Pids(_) => None,
        }
    }
}

/// Forks the command, traces it, and lets it go; says why its exec failed, if it did.
fn start_command(cmd: &Command, plan: &Plan, loaded: &Loaded, merge: &mut Merge) -> Result<(i32, Option<(u32, i32)>)> {
    let cannot = |what: &str, e: io::Error| Error::failed(what, e.to_string(), "free some memory or processes");
    let gate = process::pipe().map_err(|e| cannot("pipe", e))?;
    let report = process::pipe().map_err(|e| cannot("pipe", e))?;
    match process::fork().map_err(|e| cannot("fork", e))? {
        Fork::Child => command_main(cmd, &gate, &report.1),
        Fork::Parent(pid) => {
            drop(gate.0);
            let traced = process::pidfd(pid, false).and_then(|fd| loaded.trace(&fd, &initial(state::STARTING)));
            if let Err(e) = traced {
                return Err(Error::failed("task storage of the command", e.to_string(), "use --backend ptrace"));
            }
            // Before it runs; what is trapline's own among them closes at the exec.
            seed_fds(pid, plan, merge);
            let _ = process::write_byte(&gate.1, 1);
            drop(report.1);
            // The report's pipe closes at the exec, or brings what failed.
            let failed = match process::read_byte(&report.0) {
                Ok(Some(at)) => {
                    let mut errno = [0u8; 4];
                    for b in &mut errno {
                        *b = process::read_byte(&report.0).ok().flatten().unwrap_or(0);
                    }
                    Some((at.into(), i32::from_le_bytes(errno)))
                }
                _ => None,
            };
            Ok((pid, failed))
        }
    }
}

fn command_main(cmd: &Command, gate: &(OwnedFd, OwnedFd), report: &OwnedFd) -> ! {
    process::close(&gate.1);
    if !matches!(process::read_byte(&gate.0), Ok(Some(_))) {
        process::exit_now(125);
    }
    let _ = signal::restore_sigpipe();
    let fail = |at: u8, e: &io::Error, code: i32| -> ! {
        let _ = process::write_byte(report, at);
        for b in e.raw_os_error().unwrap_or(22).to_le_bytes() {
            let _ = process::write_byte(report, b);
        }
        process::exit_now(code)
    };
    if let Some(user) = &cmd.user
        && let Err(e) = process::become_user(user)
    {
        fail(FAILED_USER, &e, 125);
    }
    let e = cmd.image.exec();
    let code = if e.kind() == io::ErrorKind::NotFound { 127 } else { 126 };
    fail(2, &e, code)
}

/// Says what the descriptors of a process are, where names are wanted.
fn seed_fds(pid: i32, plan: &Plan, merge: &mut Merge) {
    use crate::backend::ptrace::fds;
    if !plan.fd_names {
        return;
    }
    let now = time::monotonic();
    for fd in fds::open_fds(pid) {
        if let Some((args, path, detail)) = fds::look(pid, fd, plan.fd_details, false) {
            let who = (pid as u32, pid as u32);
            merge.push(&notice::process(&events::generated::P_FD, now, who, &args, &[&path, &detail]));
        }
    }
}

/// A state with these flags.
fn initial(flags: i32) -> [u8; state::SIZE as usize] {
    let mut v = [0u8; state::SIZE as usize];
    v[..8].copy_from_slice(&(flags as u64).to_le_bytes());
    v
}

/// Traces every thread of a process: says so of all of them, and then which call each is blocked in.
fn attach(pid: i32, plan: &Plan, loaded: &Loaded, alive: &mut HashSet<u32>, merge: &mut Merge) -> Result<()> {
    const EEXIST: i32 = 17;
    const ESRCH: i32 = 3;
    let gone = || Error::failed(format!("-p {pid}"), "no such process", "see 'ps -e'");
    let seen = plan.seen_calls();
    loop {
        let tids = proc::threads(pid).map_err(|_| gone())?;
        let fresh: Vec<i32> = tids.into_iter().filter(|t| alive.insert(*t as u32)).collect();
        if fresh.is_empty() {
            return Ok(());
        }
        let found: Vec<_> =
            fresh.into_iter().map(|tid| (tid, time::monotonic(), proc::comm(tid).unwrap_or_default())).collect();
        for (tid, at, comm) in found {
            let Ok(fd) = process::pidfd(tid, tid != pid) else { continue };
            // Its time is before that of any end of the call.
            let call = notice::at_attach(pid, tid, plan.limits);
            match loaded.tasks.update(&fd.as_raw_fd().to_le_bytes(), &in_call(call.as_ref()), NO_EXIST) {
                Ok(()) => {}
                // A thread that began after its creator was attached to; or one that is gone.
                Err(e) if matches!(e.raw_os_error(), Some(EEXIST | ESRCH)) => continue,
                Err(e) => return Err(Error::failed(format!("-p {pid}"), e.to_string(), "use --backend ptrace")),
            }
            merge.push(&notice::process(&events::generated::P_ATTACH, at, (pid as u32, tid as u32), &[], &[&comm]));
            if let Some(call) = call.filter(|c| c.wanted(&seen)) {
                merge.push(&call.notice(1));
            }
        }
    }
}

/// The state of a thread that is in this call, or in none.
fn in_call(call: Option<&notice::InFlight>) -> [u8; state::SIZE as usize] {
    let Some(call) = call else { return initial(0) };
    let mut value = initial(call.flags);
    let mut put = |at: i16, v: u64| value[at as usize..at as usize + 8].copy_from_slice(&v.to_le_bytes());
    put(state::START, call.start);
    put(state::NR, call.nr);
    for (i, a) in call.args.iter().enumerate() {
        put(state::ARGS + 8 * i as i16, *a);
    }
    put(state::CPU, u64::from(call.cpu));
    value
}

/// The drain thread's work.
struct Drain {
    loaded: Loaded,
    shared: Arc<Shared>,
    merge: Merge,
    /// Traced threads.
    alive: HashSet<u32>,
    command: Option<i32>,
    watch: Watch,
}

impl Drain {
    fn run(mut self) {
        let mut idle = 0u32;
        while !self.alive.is_empty() && !self.shared.stop.load(Ordering::Acquire) {
            let now = time::monotonic();
            let some = self.round(now);
            if let Some(iterator) = &self.loaded.iterator {
                self.watch.look(iterator, now, &mut self.merge);
            }
            if some {
                idle = 0;
            } else {
                idle += 1;
                // An end that was dropped, or happened before the attach was complete, is not waited for forever.
                if idle.is_multiple_of(64) {
                    self.alive.retain(|t| proc::exists(*t as i32) && !is_zombie(*t as i32));
                }
            }
            std::thread::sleep(Duration::from_micros(if idle > 8 { 4000 } else { 1000 }));
        }
        // Whatever the task storage says from here on is how things were when the programs went.
        self.loaded.detach();
        if self.shared.stop.load(Ordering::Acquire) {
            self.fill();
            self.watch.leave(self.loaded.iterator.as_ref(), &self.alive, &mut self.merge);
        }
        self.round(u64::MAX);
        self.shared.backlog.finish();
    }

    /// Empties the rings once; whether anything came.
    fn round(&mut self, began: u64) -> bool {
        // A backlog that has no room, neither in memory nor on disk, leaves the rings to fill up, and to count.
        let n = if !self.shared.backlog.is_full() || began == u64::MAX { self.fill() } else { 0 };
        let mut chunk = Vec::new();
        if self.merge.release(began, &mut chunk) > 0 {
            self.shared.backlog.push(chunk);
        }
        self.shared.dropped.store(self.loaded.counts().1, Ordering::Relaxed);
        let _ = self.command;
        n > 0
    }

    /// Takes what is in the rings; returns how many events.
    fn fill(&mut self) -> usize {
        let Drain { loaded, merge, alive, .. } = self;
        let mut n = 0;
        for ring in &mut loaded.rings {
            n += ring.drain(|event| {
                follow(event, alive);
                merge.push(event);
            });
        }
        n
    }
}

fn is_zombie(pid: i32) -> bool {
    proc::status_field(pid, "State").is_none_or(|s| s.starts_with('Z'))
}

/// Keeps the set of traced threads: forks add to it, ends take away.
fn follow(event: &[u8], alive: &mut HashSet<u32>) {
    use events::generated as g;
    let id = event.get(8..10).map_or(u16::MAX, |b| u16::from_le_bytes([b[0], b[1]]));
    if id != g::P_FORK.id && id != g::P_EXIT.id && id != g::P_EXEC.id {
        return;
    }
    let Ok(ev) = events::Event::parse(event) else { return };
    if id == g::P_FORK.id {
        alive.insert(ev.value_of("tid") as u32);
    } else if id == g::P_EXIT.id {
        alive.remove(&ev.tid());
    } else {
        // A thread that called execve has taken the leader's id.
        alive.remove(&(ev.value_of("old_tid") as u32));
        alive.insert(ev.tid());
    }
}
