//! The agent backend: functions of programs, traced by an agent in the process.
//!
//! ```text
//!  command with LD_PRELOAD ──► agents ◄── socket ──► server (a thread): plans          ── said ──┐
//!                                │                                                               ▼
//!                                └── chunks in shared memory ──────────────────────────► backend: rounds over all processes
//! ```
//!
//! `abi` describes what the two sides share, `patch` the stubs.

pub mod chunks;
pub mod explained;
mod file;
mod loadable;
mod module;
mod planner;
mod process;
mod runtime;
mod server;
pub mod trial;
pub mod untraced;

use super::launch::{Failure, Waiting};
use crate::backend::stats::{Losses, Report};
use crate::backend::{Backend, Deliver, Polled};
use crate::control::{self, Order, State, Stream};
use crate::error::{Error, Result};
use crate::functions::Functions;
use crate::plan::{OnFull, Plan};
use crate::target::{Command, Target};
use events::StreamId;
use explained::PlannedFile;
use planner::Planner;
use process::Process;
use server::{Counts, Room, Said, Server};
use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;
use sys::agent::{Life, Listener, SocketFile};
use sys::ptrace::{self, Change};
use untraced::{Executed, Gap, Gaps};

/// How much older than the round that reads it a record may be that is not read yet: its thread was preempted between the time and the
/// word, ns.
const LATE: u64 = 2_000_000;

/// A session of functions.
pub struct Agent {
    command: i32,
    status: Option<Change>,
    failure: Option<Failure>,
    from: Receiver<Said>,
    counts: Arc<Counts>,
    _life: Arc<Life>,
    processes: Vec<Process>,
    dropped: HashMap<StreamId, u64>,
    trouble: Vec<String>,
    /// Removed at the end; the server may listen a little longer.
    socket: Option<SocketFile>,
    executed: Arc<Executed>,
    gaps: Gaps,
    planned: Vec<PlannedFile>,
    stopping: bool,
    /// Calls while no collector was there, and execs that the agent could not follow.
    left: u64,
}

fn cannot(what: &str, e: &io::Error) -> Error {
    Error::failed(what, e.to_string(), "free some memory or processes")
}

impl Agent {
    /// Starts the command with the agent.
    ///
    /// # Errors
    /// The target is no command, or one that cannot load the agent.
    pub fn start(plan: &Plan, functions: &Functions) -> Result<Agent> {
        let Target::Command(command) = &plan.target else {
            return Err(Error::usage(
                "functions",
                "a running process has no agent",
                "start the command under trapline",
            ));
        };
        loadable::check(command)?;
        possible().map_err(|why| Error::failed("agent backend", why, "use uprobe:PROGRAM:FUNCTION as root"))?;
        let chunk_size = abi::shared::CHUNK as u32;
        let room = Room {
            chunks: (plan.buffer / chunk_size as usize).clamp(2, 1 << 20) as u32,
            chunk_size,
            block: plan.on_full == OnFull::Block,
        };
        Agent::launch(command, functions, room, plan.paused)
    }

    /// Starts a command with the agent, whatever program it is.
    fn launch(command: &Command, functions: &Functions, room: Room, paused: bool) -> Result<Agent> {
        let file = file::place()?;
        let listener =
            Listener::in_directory(file.parent().unwrap_or(Path::new("/"))).map_err(|e| cannot("socket", &e))?;
        let (own, socket) = (sys::process::euid(), listener.file());
        let user = command.user.as_ref().map_or(own, |u| u.uid);
        let preloaded = match command.image.variable("LD_PRELOAD") {
            Some(theirs) if !theirs.is_empty() => [file.as_os_str().as_encoded_bytes(), b":", theirs].concat(),
            _ => file.into_os_string().into_encoded_bytes(),
        };
        let variables = [("LD_PRELOAD", &*preloaded), (abi::SOCKET, listener.name().as_bytes())];
        let waiting = Waiting::fork(command, &variables)?;
        let life = Arc::new(Life::new().map_err(|e| cannot("thread", &e))?);
        let (to, from) = mpsc::channel();
        let counts = Arc::new(Counts::default());
        counts.paused.store(paused, Ordering::Release);
        let planner = Planner::new(functions.clone(), ticks_per_ms());
        let users = vec![own, sys::process::ruid(), user];
        let executed = Arc::new(Executed::default());
        let (life_too, counts_too, executed_too) = (Arc::clone(&life), Arc::clone(&counts), Arc::clone(&executed));
        let mut server = Server::new(listener, planner, life_too, room, users, to, counts_too, executed_too);
        server.expect(waiting.pid, command.path.to_bytes());
        std::thread::Builder::new()
            .name("trapline-agents".into())
            .spawn(move || server.run())
            .map_err(|e| cannot("thread", &e))?;
        let (command, mut waiting) = (waiting.pid, waiting);
        waiting.release();
        let failure = waiting.failure();
        Ok(Agent {
            command,
            status: None,
            failure,
            from,
            counts,
            _life: life,
            processes: Vec::new(),
            dropped: HashMap::new(),
            trouble: Vec::new(),
            socket,
            executed,
            gaps: Gaps::default(),
            planned: Vec::new(),
            stopping: false,
            left: 0,
        })
    }

    fn hear(&mut self, each: &mut dyn Deliver) {
        while let Ok(said) = self.from.try_recv() {
            match said {
                Said::Event(stream, event) => each.event(stream, &event),
                Said::Trouble(line) => self.trouble.push(line),
                Said::Gap(gap) => self.gap(&gap, each),
                Said::Planned(files) => self.planned.extend(files),
                Said::Begun(begun) => {
                    // A new program: the memory of the one before is complete.
                    if !begun.is_fork {
                        self.processes.iter_mut().filter(|p| p.pid == begun.pid).for_each(Process::replace);
                    }
                    self.processes.push(Process::new(*begun));
                }
            }
        }
    }

    fn gap(&mut self, gap: &Gap, each: &mut dyn Deliver) {
        self.gaps.note(gap);
        each.event(untraced::STREAM, &gap.event());
    }

    fn state(&self) -> State {
        let streams = self.processes.iter().map(|p| {
            let (used, all) = p.chunks().used();
            let size = p.chunks().shared().chunk_size();
            Stream {
                name: format!("process_{}", p.pid),
                used: (used * size) as u64,
                size: (all * size) as u64,
                dropped: 0,
            }
        });
        State { streams: streams.collect(), losses: self.losses(), ..State::default() }
    }

    fn losses(&self) -> Losses {
        Losses { total: self.dropped.values().sum(), classes: Vec::new() }
    }

    fn set_running(&self, running: bool) {
        self.counts.paused.store(!running, Ordering::Release);
        self.processes.iter().for_each(|p| p.chunks().shared().set_running(running));
    }
}

/// Whether functions can be traced here.
///
/// # Errors
/// Why not.
pub fn possible() -> std::result::Result<(), String> {
    let flags = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let has =
        |flag: &str| flags.lines().find(|l| l.starts_with("flags")).is_some_and(|l| l.split(' ').any(|f| f == flag));
    if !has("constant_tsc") || !has("nonstop_tsc") {
        return Err("the time stamp counter of this processor does not run at a constant rate".into());
    }
    file::place().map(drop).map_err(|e| e.to_string())
}

/// Ticks of the time stamp counter in a millisecond, measured for two of them.
fn ticks_per_ms() -> u64 {
    let from = sys::time::stamp();
    std::thread::sleep(Duration::from_millis(2));
    let to = sys::time::stamp();
    let ns = u128::from(to.1.saturating_sub(from.1)).max(1);
    (u128::from(to.0.saturating_sub(from.0)) * 1_000_000 / ns) as u64
}

impl Backend for Agent {
    fn name(&self) -> &'static str {
        "agent"
    }

    fn poll(&mut self, room: bool, each: &mut dyn Deliver) -> Polled {
        let until = sys::time::monotonic().saturating_sub(LATE);
        // Before the processes: what is not answered yet may begin one.
        let over = self.stopping || self.command_status().is_some() && self.counts.busy.load(Ordering::Acquire) == 0;
        self.hear(each);
        if !room {
            return Polled::default();
        }
        let (mut events, mut ended) = (0, Vec::new());
        for (n, process) in self.processes.iter_mut().enumerate() {
            let (records, is_over) = process.read(&mut self.dropped, each);
            events += records;
            if is_over || self.stopping {
                ended.push(n);
            }
        }
        for n in ended.into_iter().rev() {
            let process = self.processes.remove(n);
            let [_, orphaned, left] = process.chunks().shared().counts();
            self.left += orphaned.saturating_add(left);
        }
        let ended = over && self.processes.is_empty() && (self.stopping || !self.executed.is_waiting());
        let ended = ended || self.failure.is_some();
        if self.failure.is_none() {
            self.executed.missing(ended).iter().for_each(|gap| self.gap(gap, each));
        }
        each.settled(if ended { u64::MAX } else { until });
        if ended {
            self.counts.stop.store(true, Ordering::Release);
            self.socket.iter().for_each(SocketFile::remove);
        }
        Polled { events, ended }
    }

    fn wait(&mut self, timeout: Duration) {
        std::thread::sleep(timeout.min(Duration::from_millis(1)));
    }

    fn control(&mut self, order: Order) -> Result<State> {
        match order {
            Order::Status => {}
            Order::Stop => self.set_running(false),
            Order::Start => self.set_running(true),
            _ => return Err(control::unable("this", "agent")),
        }
        Ok(self.state())
    }

    fn stop(&mut self) {
        self.set_running(false);
        self.stopping = true;
    }

    fn command(&self) -> Option<i32> {
        Some(self.command)
    }

    fn command_status(&mut self) -> Option<Change> {
        if self.status.is_none()
            && let Ok(Some(s)) = ptrace::wait_for(self.command, false)
        {
            self.status = Some(s.change());
        }
        self.status
    }

    fn failure(&mut self, plan: &Plan) -> Option<Error> {
        match (&self.failure, &plan.target) {
            (Some(failure), Target::Command(cmd)) => Some(failure.error(cmd)),
            _ => None,
        }
    }

    fn streams(&self) -> Vec<StreamId> {
        self.dropped.keys().copied().collect()
    }

    fn dropped_on(&self, stream: StreamId) -> u64 {
        self.dropped.get(&stream).copied().unwrap_or(0)
    }

    fn report(&mut self) -> Report {
        let mut trouble = std::mem::take(&mut self.trouble);
        for said in self.from.try_iter() {
            match said {
                Said::Trouble(line) => trouble.push(line),
                Said::Gap(gap) => self.gaps.note(&gap),
                _ => {}
            }
        }
        trouble.extend(self.gaps.lines());
        if self.left > 0 {
            let why = "trapline cannot be reached from where they run (another network namespace?)";
            trouble.push(format!("not traced: {} programs: {why}", self.left));
        }
        let planned = std::mem::take(&mut self.planned);
        Report { losses: self.losses(), trouble, planned, ..Report::default() }
    }
}
