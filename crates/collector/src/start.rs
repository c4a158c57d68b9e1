//! How a session of functions starts: what is there before the command is forked, the server of agents, and the attach to processes that run.

use super::allocations::Heap;
use super::attach::{self, Running};
use super::module::Known;
use super::planner::Planner;
use super::probe_events::ProbeEvents;
use super::ready::Plans;
use super::record_filter::RecordFilter;
use super::server::{Counts, Room, Said, Server};
use super::silent::Silent;
use super::ticks::ticks_per_ms;
use super::tree::Tree;
use super::tsc_clock::TscClock;
use super::untraced::{Executed, Gaps};
use super::{Agent, bounds, explained, file, loadable, mark, of_functions};
use engine::backend::launch::{Launched, Waiting};
use engine::error::{Error, Result};
use engine::plan::Plan;
use engine::request::enabling::Enabling;
use engine::request::expression::Expression;
use engine::request::functions::Functions;
use engine::target::{Command, Target};
use events::StreamId;
use events::generated::P_PAUSED;
use std::collections::{HashMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc;
use sys::agent::{Life, Listener};

/// What must be there before the command is forked: the agent's file, and the socket where agents ask.
pub struct Offer {
    file: PathBuf,
    listener: Listener,
    /// Users whose processes are answered.
    users: Vec<u32>,
    /// The command's program.
    program: Vec<u8>,
}

impl Offer {
    /// For this command.
    ///
    /// # Errors
    /// Its program cannot load the agent, or the agent cannot be put anywhere.
    pub fn new(command: &Command) -> Result<Offer> {
        bounds::begin_session();
        loadable::check(command)?;
        possible().map_err(|why| Error::failed("agent backend", why, "use uprobe:PROGRAM:FUNCTION as root"))?;
        let file = file::place(loadable::loads_asan(command))?;
        let beside = file.parent().unwrap_or(Path::new("/"));
        let listener = Listener::in_directory(beside).map_err(|e| Error::scarce("socket", &e))?;
        let own = sys::process::euid();
        let users = vec![own, sys::process::ruid(), command.user.as_ref().map_or(own, |u| u.uid)];
        Ok(Offer { file, listener, users, program: command.path.to_bytes().to_vec() })
    }

    /// The agent's file.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// The variables that the command's environment gets.
    pub fn variables(&self, command: &Command) -> [(&'static str, Vec<u8>); 2] {
        let file = self.file.as_os_str().as_encoded_bytes();
        let preloaded = match command.image.variable("LD_PRELOAD") {
            Some(theirs) if !theirs.is_empty() => [file, b":", theirs].concat(),
            _ => file.to_vec(),
        };
        [("LD_PRELOAD", preloaded), (abi::SOCKET, self.listener.name().as_bytes().to_vec())]
    }

    /// Answers agents, in threads of its own: after the fork. `command`: the process whose descendants are answered too, where it is known.
    ///
    /// # Errors
    /// No thread can be started.
    pub fn serve(self, plan: &Plan, functions: &Functions, command: Option<i32>) -> Result<Agent> {
        let (room, filter) = (Room::of(plan, functions), plan.filter.clone());
        let mut agent = self.serve_with(room, plan.paused, filter, functions, &plan.enablings, command)?;
        agent.callers = plan.callers.clone();
        Ok(agent)
    }

    pub(super) fn serve_with(
        self,
        room: Room,
        paused: bool,
        filter: Option<Arc<Expression>>,
        functions: &Functions,
        enablings: &[Enabling],
        command: Option<i32>,
    ) -> Result<Agent> {
        let planner = Planner::new(functions.clone(), ticks_per_ms());
        let begin = |server: &mut Server| command.into_iter().for_each(|pid| server.expect(pid, &self.program));
        serve(self.listener, planner, self.users, room, paused, filter, functions, enablings, begin)
            .map(|(agent, _)| agent)
    }
}

/// Begins to answer agents, in threads of its own. `begin` notifies the server of processes.
#[allow(clippy::too_many_arguments)]
fn serve(
    listener: Listener,
    planner: Planner,
    users: Vec<u32>,
    room: Room,
    paused: bool,
    filter: Option<Arc<Expression>>,
    functions: &Functions,
    enablings: &[Enabling],
    begin: impl FnOnce(&mut Server),
) -> Result<(Agent, Arc<Plans>)> {
    let life = Arc::new(Life::new().map_err(|e| Error::scarce("thread", &e))?);
    let (to, from) = mpsc::channel();
    let counts = Arc::new(Counts::default());
    counts.paused.store(paused, Ordering::Release);
    let (life_of_server, counted) = (Arc::clone(&life), Arc::clone(&counts));
    let (executed, socket) = (Arc::new(Executed::default()), listener.file());
    let executed_too = Arc::clone(&executed);
    let heard = to.clone();
    let report = move |events: Vec<Vec<u8>>, files: Vec<Arc<Known>>, points: Vec<(u32, Arc<Known>)>| {
        let events = events.into_iter().map(|e| Said::Event(StreamId::FUNCTIONS, e));
        let points = points.into_iter().map(|(first, file)| Said::Points(first, file));
        events.chain(files.into_iter().map(Said::Module)).chain(points).for_each(|said| drop(heard.send(said)));
    };
    let of_heap = || enablings.iter().filter_map(|e| Some((e.id, e.heap()?.clone()))).collect();
    let heap = functions.heap.clone().map(|wanted| Heap::new(wanted, of_heap(), filter.clone(), !paused));
    let probes = (!functions.probes.0.is_empty()).then(|| ProbeEvents::new(&functions.probes, !paused));
    let plans = Arc::new(Plans::new(planner, Box::new(report)));
    let plans_too = Arc::clone(&plans);
    let backlog = listener.backlog().map_err(|e| Error::scarce("socket", &e))?;
    let mut server = Server::new(listener, plans_too, life_of_server, room, users, to, counted, executed_too);
    begin(&mut server);
    std::thread::Builder::new()
        .name("trapline-agents".into())
        .spawn(move || server.run())
        .map_err(|e| Error::scarce("thread", &e))?;
    let agent = Agent {
        backlog,
        command: Launched::default(),
        attached: Vec::new(),
        from,
        said: VecDeque::new(),
        counts,
        _life: life,
        processes: Vec::new(),
        silent: Silent::default(),
        moments: TscClock::new(),
        tree: None,
        record_filter: RecordFilter::new(&of_functions(enablings), filter, !paused, plans.numbers()),
        heap,
        probes,
        enablings: enablings.to_vec(),
        no_functions: functions.none,
        keeps_sums: functions.sums.is_some(),
        asked: functions.asked(),
        has_libraries: functions.libraries,
        modules: Vec::new(),
        marks: if paused { vec![mark(&P_PAUSED)] } else { Vec::new() },
        dropped: HashMap::new(),
        trouble: Vec::new(),
        left_out: Vec::new(),
        socket,
        executed,
        gaps: Gaps::default(),
        stopping: false,
        finishing: false,
        left: 0,
        callers: None,
        makes_room: false,
    };
    Ok((agent, plans))
}

impl Agent {
    /// Starts the command with the agent, or injects the agent into running processes.
    ///
    /// # Errors
    /// The command cannot load the agent, or the processes cannot be attached to.
    pub fn start(plan: &Plan, functions: &Functions) -> Result<Agent> {
        match &plan.target {
            Target::Command(command) => Agent::start_command(plan, functions, command),
            Target::Pids(pids) => {
                let mut agent = Agent::attach(plan, functions, pids, plan.paused)?;
                agent.tree = Some(Tree::default());
                Ok(agent)
            }
            Target::All { .. } => Err(Error::usage("-a", "functions are traced in one program", "use -p PID")),
        }
    }

    fn start_command(plan: &Plan, functions: &Functions, command: &Command) -> Result<Agent> {
        let offer = Offer::new(command)?;
        let variables = offer.variables(command);
        let mut waiting = Waiting::fork(command, &variables.each_ref().map(|(name, value)| (*name, &**value)))?;
        let mut agent = offer.serve(plan, functions, Some(waiting.pid))?;
        waiting.release();
        (agent.command, agent.tree) = (Launched::new(waiting.pid, waiting.failure()), Some(Tree::default()));
        Ok(agent)
    }

    /// Attaches to processes, to all of them or to none, beside another backend, which reports them. Nothing is recorded before
    /// [`Order::Start`](engine::control::Order::Start).
    ///
    /// # Errors
    /// The processes cannot be attached to.
    pub fn attach_beside(plan: &Plan, functions: &Functions, pids: &[i32]) -> Result<Agent> {
        Agent::attach(plan, functions, pids, true)
    }

    /// Attaches to processes; to all of them, or to none.
    fn attach(plan: &Plan, functions: &Functions, pids: &[i32], paused: bool) -> Result<Agent> {
        let mut injection = Injection::new(functions, pids, 0)?;
        injection.look();
        match std::mem::take(&mut injection.refused).into_iter().next() {
            Some(refused) => Err(refused),
            None => injection.inject_here(plan, paused, false).map(|(agent, _)| agent),
        }
    }
}

/// An agent that is about to be injected into processes.
pub struct Injection {
    planner: Planner,
    functions: Functions,
    pids: Vec<i32>,
    /// Those that were looked at.
    running: Vec<Running>,
    /// Why it cannot be injected into others.
    refused: Vec<Error>,
}

impl Injection {
    /// Into these processes. Numbers of functions are higher than `last`.
    ///
    /// # Errors
    /// Nothing can be injected here.
    pub fn new(functions: &Functions, pids: &[i32], last: u32) -> Result<Injection> {
        bounds::begin_session();
        possible().map_err(|why| Error::failed("agent backend", why, "use uprobe:PROGRAM:FUNCTION as root"))?;
        let planner = Planner::new(functions.clone(), ticks_per_ms()).numbered_after(last);
        let (running, refused) = (Vec::new(), Vec::new());
        Ok(Injection { planner, functions: functions.clone(), pids: pids.to_vec(), running, refused })
    }

    /// Reads the files that the processes have mapped, which takes the longest.
    pub fn read(&mut self) {
        for pid in &self.pids {
            let maps = sys::maps::of(*pid).unwrap_or_default();
            self.planner.prepare(*pid, &maps);
        }
    }

    /// Looks whether the processes can have it. No other tracer has them; nothing has happened to them afterwards.
    pub fn look(&mut self) {
        let Injection { planner, pids, running, refused, .. } = self;
        let first = pids.first().copied().unwrap_or_default();
        for pid in pids.iter().copied() {
            match Running::new(pid, |maps| (planner.prepare(pid, maps), planner.modules(pid, maps))) {
                Err(e) => refused.push(e),
                Ok(_) if sys::process::has_ended(pid) => refused.push(attach::ended(pid)),
                Ok(_) if network_of(pid) != network_of(first) => {
                    let why = format!("it is in another network namespace than process {first}");
                    refused.push(Error::failed(format!("-p {pid}"), why, "trace them in two sessions"));
                }
                Ok(process) => running.push(process),
            }
        }
    }

    /// A line for each pattern that no function of the processes matches which can be traced.
    pub fn unmatched(&self) -> Vec<String> {
        explained::unmatched(&self.planner.files(), &self.functions.asked(), self.functions.libraries)
    }

    /// Has the agent injected, beside another backend, which reports the processes. Nothing is recorded before
    /// [`Order::Start`](engine::control::Order::Start). Also why it was not injected into some of them.
    ///
    /// # Errors
    /// It could not be injected into any.
    pub fn inject(mut self, plan: &Plan) -> Result<(Agent, Vec<Error>)> {
        let mut refused = std::mem::take(&mut self.refused);
        let injected = (!self.running.is_empty()).then(|| self.inject_here(plan, true, true)).transpose()?;
        let (agent, more) = injected.unzip();
        refused.extend(more.into_iter().flatten());
        match agent.filter(|agent| !agent.attached.is_empty()) {
            Some(agent) => Ok((agent, refused)),
            None => Err(refused
                .into_iter()
                .next()
                .unwrap_or_else(|| Error::failed("agent", "no process is traced", "see 'trapline session status'"))),
        }
    }

    /// Injects it. With `others`, a process that refuses it is passed over; else it is in all processes, or in none.
    fn inject_here(self, plan: &Plan, paused: bool, others: bool) -> Result<(Agent, Vec<Error>)> {
        let Injection { planner, functions, pids, running, .. } = self;
        let first = pids.first().copied().unwrap_or_default();
        let listener = Listener::near(first).map_err(|e| attach::far(first, &e))?;
        let name = listener.name().to_string();
        let users = vec![sys::process::euid(), sys::process::ruid()];
        let begin = |server: &mut Server| pids.iter().for_each(|pid| server.admit(*pid));
        let (room, filter) = (Room::of(plan, &functions), plan.filter.clone());
        let (mut agent, plans) =
            serve(listener, planner, users, room, paused, filter, &functions, &plan.enablings, begin)?;
        agent.callers = plan.callers.clone();
        let mut refused = Vec::new();
        for process in running {
            match process.attach(&name, &plans) {
                Ok(()) => agent.attached.push(process.pid()),
                Err(e) if others => refused.push(e),
                // Dropped, the agent detaches from those that have been attached to.
                Err(e) => return Err(e),
            }
        }
        Ok((agent, refused))
    }
}

/// The network namespace of a process, as far as it may be seen.
fn network_of(pid: i32) -> Option<PathBuf> {
    std::fs::read_link(format!("/proc/{pid}/ns/net")).ok()
}

/// The file from which programs load the agent that attached processes execute.
///
/// # Errors
/// It cannot be put anywhere.
pub fn preloaded_file() -> Result<PathBuf> {
    file::place(false)
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
    file::place(false).map(drop).map_err(|e| e.to_string())
}
