//! Functions beside calls and probes: a backend that starts the command, or that attaches to processes, and the agent in it.
//!
//! ```text
//!  offer: the agent's file, a socket ─► the command's environment ─► the first backend starts it ─► the agent's threads
//!  -p:    the agent is injected, and waits ─► the first backend attaches ─► the agent records
//!  set:   the session pauses ─► the agent is injected, and waits ─► an order brings it ─► both go on
//!
//!  first: calls, probes, processes ─► loading: what loads the agent is left out ─┐
//!  agent: functions ────────────────────────────────────────────────────────────┴─► settled: the lesser of both ─► one source
//! ```
//!
//! The first backend knows where the agent's code is, and leaves out the calls that it makes ([`Plan::hidden_code`]). The session ends
//! with the first backend: it follows all processes.

mod loading;
mod sampled;

use collector::{self as agent, Agent, Offer};
use engine::control::{Enabled, Order, Preparer, State};
use engine::error::{Error, Result};
use engine::pipeline::backend::{Attached, Backend, Deliver, Polled};
use engine::plan::Plan;
use engine::stats::{Counts, Report};
use engine::target::Target;
use events::functions::Run;
use events::generated::{P_PAUSED, P_RESUMED};
use events::{Schema, StreamId};
use loading::Loading;
pub use sampled::Sampled;
use std::any::Any;
use std::time::Duration;
use sys::ptrace::Change;
use sys::time;

/// How much older than a round an event may be that the first backend delivers after it, ns.
const SLACK: u64 = 2_000_000;
/// How long the agent's buffers may wait for the next round.
const ROUND: Duration = Duration::from_millis(1);

/// Both backends.
pub struct Joined {
    name: &'static str,
    first: Box<dyn Backend>,
    /// None yet: an order may bring one.
    agent: Option<Box<Agent>>,
    /// Those that have left the processes to another one, and whether all of what they had is delivered.
    retired: Vec<(Box<Agent>, bool)>,
    /// None where the agent was injected while the session paused.
    loading: Option<Loading>,
    /// The agent waits for the first backend to begin.
    waiting: bool,
    first_ended: bool,
    /// All events of the first backend up to that time have come, ns.
    settled: u64,
    /// The first backend waits for what the agent tells of the calls of functions.
    tells_first: bool,
}

/// The agent's side of a session of both, before the first backend starts.
pub enum Prepared {
    /// What the command needs to load the agent, put into its environment.
    Offered(Offer),
    /// The agent is in the processes that are attached to, and waits.
    Injected(Box<Agent>),
}

/// What the command needs to load the agent; none where the plan needs only one backend, or attaches to processes.
///
/// # Errors
/// The command cannot load the agent.
pub fn offer(plan: &mut Plan) -> Result<Option<Prepared>> {
    let is_joined = plan.is_joined();
    let Target::Command(command) = &mut plan.target else { return Ok(None) };
    if !is_joined {
        return Ok(None);
    }
    let offer = Offer::new(command)?;
    let variables = offer.variables(command);
    command.image = command.image.with(&variables.each_ref().map(|(name, value)| (*name, &**value)));
    Ok(Some(Prepared::Offered(offer)))
}

/// Injects the agent into the processes of the plan; none where the plan needs only one backend, or starts a command. A process has one
/// tracer by ptrace(2), and the calls of the injection are not the program's: the first backend attaches afterwards.
///
/// # Errors
/// The processes cannot be attached to.
pub fn inject(plan: &Plan) -> Result<Option<Prepared>> {
    let (true, Target::Pids(pids)) = (plan.is_joined(), &plan.target) else { return Ok(None) };
    let functions = plan.functions.clone().unwrap_or_default();
    Ok(Some(Prepared::Injected(Box::new(Agent::attach_beside(plan, &functions, pids)?))))
}

impl Joined {
    /// Joins the agent to a backend that has started the command, or attached to processes.
    ///
    /// # Errors
    /// No thread can be started.
    pub fn start(first: Box<dyn Backend>, prepared: Prepared, plan: &Plan) -> Result<Joined> {
        let delivered = plan.delivered_calls();
        // Orders may ask for others later.
        let is_delivered = |call: &Schema| plan.named || delivered.contains(call);
        let file = match &prepared {
            Prepared::Offered(offer) => offer.file().to_path_buf(),
            Prepared::Injected(_) => agent::preloaded_file()?,
        };
        let loading = Loading::new(&file, |call| plan.class_of(call), is_delivered);
        let (agent, waiting) = match prepared {
            Prepared::Offered(offer) => {
                let functions = plan.functions.clone().unwrap_or_default();
                (Box::new(offer.serve(plan, &functions, first.command())?), false)
            }
            Prepared::Injected(agent) => (agent, !plan.paused),
        };
        let (agent, loading) = (Some(agent), Some(loading));
        let (name, retired, tells_first) = (plan.backend_name(), Vec::new(), plan.callers.is_some());
        let (first_ended, settled) = (false, 0);
        Ok(Joined { name, first, agent, retired, loading, waiting, first_ended, settled, tells_first })
    }

    /// A backend that an agent may join later ([`Plan::may_get_agent`]).
    pub fn alone(first: Box<dyn Backend>, plan: &Plan) -> Joined {
        let (name, retired, settled, tells_first) = (first.name(), Vec::new(), 0, plan.callers.is_some());
        let (agent, loading, waiting, first_ended) = (None, None, false, false);
        Joined { name, first, agent, retired, loading, waiting, first_ended, settled, tells_first }
    }

    /// All that there are, and were.
    fn agents(&self) -> impl Iterator<Item = &Agent> {
        self.agent.iter().chain(self.retired.iter().map(|(agent, _)| agent)).map(|agent| &**agent)
    }

    /// Adds what agents have counted that have left.
    fn add_retired(&mut self, state: &mut State) {
        for (agent, _) in &mut self.retired {
            let Ok(of_agent) = agent.control(Order::Status) else { continue };
            if let (Some(all), Some(its)) = (&mut state.agents, of_agent.agents) {
                (all.patched, all.refused) = (all.patched + its.patched, all.refused + its.refused);
            }
            add_state(state, State { running: Vec::new(), ..of_agent });
        }
    }

    /// Has the agent record from now on, once the first backend has begun: it reports the processes.
    fn begin(&mut self) {
        if self.waiting && self.first.has_begun() {
            self.waiting = false;
            // A start is never refused.
            self.agent.iter_mut().for_each(|agent| drop(agent.control(Order::Start)));
        }
    }
}

/// What the first backend delivers, without what loads the agent. Notes the time of the last event.
struct First<'a> {
    loading: Option<&'a mut Loading>,
    last: Option<u64>,
    /// Up to which time all of its events are there, where it says that.
    settled: Option<u64>,
    each: &'a mut dyn Deliver,
}

impl Deliver for First<'_> {
    fn event(&mut self, stream: StreamId, event: &[u8]) {
        self.last = event.first_chunk().map(|b| u64::from_le_bytes(*b));
        if !self.loading.as_mut().is_some_and(|loading| loading.is_part(event)) {
            self.each.event(stream, event);
        }
    }

    fn functions(&mut self, run: &Run<'_>) {
        self.each.functions(run);
    }

    fn settled(&mut self, until: u64) {
        self.settled = Some(until);
    }
}

/// What the agent delivers, without stops and starts, which the first backend reports. Notes what is settled instead of passing it on.
struct Second<'a> {
    settled: Option<u64>,
    each: &'a mut dyn Deliver,
}

impl Deliver for Second<'_> {
    fn event(&mut self, stream: StreamId, event: &[u8]) {
        let marks = [&P_PAUSED, &P_RESUMED].map(|mark| mark.id.to_le_bytes());
        if !marks.iter().any(|id| event.get(8..10) == Some(id)) {
            self.each.event(stream, event);
        }
    }

    fn functions(&mut self, run: &Run<'_>) {
        self.each.functions(run);
    }

    fn settled(&mut self, until: u64) {
        self.settled = Some(until);
    }
}

/// The agent among what was prepared for an order.
fn take_agent(prepared: &mut Vec<Box<dyn Any + Send>>) -> Option<Box<Agent>> {
    let at = prepared.iter().position(|it| it.is::<Agent>())?;
    prepared.swap_remove(at).downcast().ok()
}

/// Adds what another backend says of the session.
fn add_state(state: &mut State, other: State) {
    state.streams.extend(other.streams);
    state.losses.add(&other.losses);
    state.filtered.add(&other.filtered);
    add_counts(&mut state.enablings, other.enablings);
}

/// Adds what was counted of enablings, by their numbers.
fn add_counts(all: &mut Vec<(u32, Counts)>, more: Vec<(u32, Counts)>) {
    for (id, counts) in more {
        match all.iter_mut().find(|(known, _)| *known == id) {
            Some((_, known)) => known.add(&counts),
            None => all.push((id, counts)),
        }
    }
}

/// Adds what another backend reports at the end.
fn add_report(report: &mut Report, other: Report) {
    report.losses.add(&other.losses);
    report.filtered.add(&other.filtered);
    add_counts(&mut report.enablings, other.enablings);
    report.lines.extend(other.lines);
    report.trouble.extend(other.trouble);
    report.left_out.extend(other.left_out);
}

impl Backend for Joined {
    fn name(&self) -> &'static str {
        self.name
    }

    fn has_begun(&self) -> bool {
        self.first.has_begun()
    }

    fn poll(&mut self, room: bool, each: &mut dyn Deliver) -> Polled {
        self.begin();
        let Joined { first, agent, retired, loading, .. } = self;
        for (agent, ended) in retired.iter_mut().filter(|(_, ended)| !ended) {
            // What it has is older than what comes from now on.
            *ended = agent.poll(room || self.first_ended, &mut Second { settled: None, each }).ended;
        }
        let all_ended = retired.iter().all(|(_, ended)| *ended);
        let Some(agent) = agent else {
            let polled = first.poll(room, each);
            self.first_ended = polled.ended;
            return Polled { ended: polled.ended && all_ended, ..polled };
        };
        let began = time::monotonic();
        let mut polled = Polled { events: 0, ended: self.first_ended };
        let (mut of_agent, mut settled) = (None, None);
        if self.tells_first && !self.first_ended {
            first.gather();
            let mut second = Second { settled: None, each };
            of_agent = Some(agent.poll(room, &mut second));
            settled = second.settled;
        }
        if !self.first_ended {
            let mut of_first = First { loading: loading.as_mut(), last: None, settled: None, each };
            polled = first.poll(room, &mut of_first);
            // Events come in order: with some, those after the last one may still come, however old they are.
            self.settled = match of_first.last {
                _ if polled.ended => u64::MAX,
                _ if !room => self.settled,
                last => {
                    let all = began.saturating_sub(SLACK).min(of_first.settled.unwrap_or(u64::MAX));
                    self.settled.max(last.unwrap_or(u64::MAX).min(all))
                }
            };
            self.first_ended = polled.ended;
        }
        if self.first_ended {
            // No process is left, or nothing more is wanted of any.
            agent.finish();
        }
        let of_agent = match of_agent {
            Some(polled) => polled,
            None => {
                let mut second = Second { settled: None, each };
                let polled = agent.poll(room || self.first_ended, &mut second);
                settled = second.settled;
                polled
            }
        };
        if let Some(until) = settled.filter(|_| all_ended) {
            each.settled(until.min(self.settled));
        }
        Polled { events: polled.events + of_agent.events, ended: self.first_ended && of_agent.ended && all_ended }
    }

    fn wait(&mut self, timeout: Duration) {
        match &mut self.agent {
            None => self.first.wait(timeout),
            Some(agent) if self.first_ended => agent.wait(timeout),
            Some(_) => self.first.wait(timeout.min(ROUND)),
        }
    }

    fn control(&mut self, mut order: Order) -> Result<State> {
        self.waiting &= !matches!(order, Order::Stop | Order::Start);
        if let Order::Enable(enabled) = &mut order
            && let Some(agent) = take_agent(&mut enabled.prepared)
        {
            // Where the first backend refuses the order, the agent leaves the processes again.
            let state = self.first.control(order)?;
            self.agent = Some(agent);
            return Ok(state);
        }
        if let Order::TakeOut = order
            && let Some(mut agent) = self.agent.take()
        {
            // It is never refused.
            let _ = agent.control(Order::TakeOut);
            self.retired.push((agent, false));
        }
        let Some(agent) = &mut self.agent else {
            let mut state = self.first.control(order)?;
            self.add_retired(&mut state);
            return Ok(state);
        };
        let (first, second) = match order {
            Order::Stop => (Order::Stop, Order::Stop),
            Order::Start => (Order::Start, Order::Start),
            Order::Enable(enabled) => {
                let all = enabled.all.clone();
                (Order::Enable(enabled), Order::Enable(Enabled { all, ..Enabled::default() }))
            }
            // Of processes that come and go, the agent is told nothing: another one is injected afterwards.
            _ => (order, Order::Status),
        };
        // The first one's mark of a start comes before what the agent records, that of a stop behind it. Of anything else, what the agent
        // refuses is not done by the other either.
        let (mut state, mut second) = if matches!(first, Order::Start) {
            (self.first.control(first)?, agent.control(second)?)
        } else {
            let second = agent.control(second)?;
            (self.first.control(first)?, second)
        };
        state.agents = second.agents.take();
        add_state(&mut state, second);
        self.add_retired(&mut state);
        Ok(state)
    }

    fn take_preparer(&mut self) -> Option<Box<dyn Preparer>> {
        self.first.take_preparer()
    }

    fn stop(&mut self) {
        // The agent stops with it, once it has let go of all threads.
        self.first.stop();
    }

    fn command(&self) -> Option<i32> {
        self.first.command()
    }

    fn command_status(&mut self) -> Option<Change> {
        self.first.command_status()
    }

    fn take_attached(&mut self) -> Attached {
        self.first.take_attached()
    }

    fn failure(&mut self, plan: &Plan) -> Option<Error> {
        self.first.failure(plan)
    }

    fn streams(&self) -> Vec<StreamId> {
        let mut all = self.first.streams();
        all.extend(self.agents().flat_map(|agent| agent.streams()));
        all
    }

    fn dropped_on(&self, stream: StreamId) -> u64 {
        self.first.dropped_on(stream) + self.agents().map(|agent| agent.dropped_on(stream)).sum::<u64>()
    }

    fn report(&mut self) -> Report {
        let mut report = self.first.report();
        let mut agents = self.retired.iter_mut().map(|(agent, _)| agent).chain(&mut self.agent);
        // The last one has all enablings, and what became of the functions.
        let Some(last) = agents.next_back() else { return report };
        let mut second = last.report();
        for its in agents.map(|agent| agent.report()) {
            add_counts(&mut second.enablings, its.enablings);
            second.losses.add(&its.losses);
            second.filtered.add(&its.filtered);
            second.trouble.extend(its.trouble);
            second.traced = second.traced.max(its.traced);
        }
        second.lines = last.lines(&second.enablings);
        report.planned = std::mem::take(&mut second.planned);
        report.traced = second.traced;
        add_report(&mut report, second);
        report
    }
}
