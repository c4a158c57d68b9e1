//! Functions beside calls and probes: a backend that starts the command, or that attaches to processes, and the agent in it.
//!
//! ```text
//!  offer: the agent's file, a socket ─► the command's environment ─► the first backend starts it ─► the agent's threads
//!  -p:    the agent is injected, and waits ─► the first backend attaches ─► the agent records
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
use engine::stats::Report;
use engine::target::Target;
use events::functions::Run;
use events::generated::{P_PAUSED, P_RESUMED};
use events::{Schema, StreamId};
use loading::Loading;
pub use sampled::Sampled;
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
    agent: Agent,
    loading: Loading,
    /// The agent waits for the first backend to begin.
    waiting: bool,
    first_ended: bool,
    /// All events of the first backend up to that time have come, ns.
    settled: u64,
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
                (offer.serve(plan, &functions, first.command())?, false)
            }
            Prepared::Injected(agent) => (*agent, !plan.paused),
        };
        Ok(Joined { name: plan.backend_name(), first, agent, loading, waiting, first_ended: false, settled: 0 })
    }

    /// Has the agent record from now on, once the first backend has begun: it reports the processes.
    fn begin(&mut self) {
        if self.waiting && self.first.has_begun() {
            self.waiting = false;
            // A start is never refused.
            let _ = self.agent.control(Order::Start);
        }
    }
}

/// What the first backend delivers, without what loads the agent. Notes the time of the last event.
struct First<'a> {
    loading: &'a mut Loading,
    last: Option<u64>,
    /// Up to which time all of its events are there, where it says that.
    settled: Option<u64>,
    each: &'a mut dyn Deliver,
}

impl Deliver for First<'_> {
    fn event(&mut self, stream: StreamId, event: &[u8]) {
        self.last = event.first_chunk().map(|b| u64::from_le_bytes(*b));
        if !self.loading.is_part(event) {
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

/// Adds what another backend says of the session.
fn add_state(state: &mut State, other: State) {
    state.streams.extend(other.streams);
    state.losses.add(&other.losses);
    state.filtered.add(&other.filtered);
    state.enablings.extend(other.enablings);
}

/// Adds what another backend reports at the end.
fn add_report(report: &mut Report, other: Report) {
    report.losses.add(&other.losses);
    report.filtered.add(&other.filtered);
    report.enablings.extend(other.enablings);
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
        let began = time::monotonic();
        let mut polled = Polled { events: 0, ended: self.first_ended };
        self.begin();
        if !self.first_ended {
            let mut first = First { loading: &mut self.loading, last: None, settled: None, each };
            polled = self.first.poll(room, &mut first);
            // Events come in order: with some, those after the last one may still come, however old they are.
            self.settled = match first.last {
                _ if polled.ended => u64::MAX,
                _ if !room => self.settled,
                last => {
                    let all = began.saturating_sub(SLACK).min(first.settled.unwrap_or(u64::MAX));
                    self.settled.max(last.unwrap_or(u64::MAX).min(all))
                }
            };
            self.first_ended = polled.ended;
        }
        if self.first_ended {
            // No process is left, or nothing more is wanted of any.
            self.agent.finish();
        }
        let mut second = Second { settled: None, each };
        let of_agent = self.agent.poll(room || self.first_ended, &mut second);
        if let Some(until) = second.settled {
            each.settled(until.min(self.settled));
        }
        Polled { events: polled.events + of_agent.events, ended: self.first_ended && of_agent.ended }
    }

    fn wait(&mut self, timeout: Duration) {
        if self.first_ended {
            return self.agent.wait(timeout);
        }
        self.first.wait(timeout.min(ROUND));
    }

    fn control(&mut self, order: Order) -> Result<State> {
        self.waiting &= !matches!(order, Order::Stop | Order::Start);
        let (first, second) = match order {
            Order::Stop => (Order::Stop, Order::Stop),
            Order::Start => (Order::Start, Order::Start),
            Order::Enable(enabled) => {
                let all = enabled.all.clone();
                (Order::Enable(enabled), Order::Enable(Enabled { all, ..Enabled::default() }))
            }
            // Refused by the agent.
            Order::Attach(_) | Order::Detach(_) => return self.agent.control(order),
            _ => (order, Order::Status),
        };
        // The first one's mark of a start comes before what the agent records, that of a stop behind it. Of anything else, what the agent
        // refuses is not done by the other either.
        let (mut state, mut second) = if matches!(first, Order::Start) {
            (self.first.control(first)?, self.agent.control(second)?)
        } else {
            let second = self.agent.control(second)?;
            (self.first.control(first)?, second)
        };
        state.agents = second.agents.take();
        add_state(&mut state, second);
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
        all.extend(self.agent.streams());
        all
    }

    fn dropped_on(&self, stream: StreamId) -> u64 {
        self.first.dropped_on(stream) + self.agent.dropped_on(stream)
    }

    fn report(&mut self) -> Report {
        let (mut report, mut second) = (self.first.report(), self.agent.report());
        report.planned = std::mem::take(&mut second.planned);
        report.traced = second.traced;
        add_report(&mut report, second);
        report
    }
}
