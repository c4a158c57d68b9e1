//! The agent backend: functions of programs, traced by an agent in the process.
//!
//! ```text
//!  command with LD_PRELOAD ──► agents ◄── socket ──► server (a thread): plans          ── said ──┐
//!                                │                                                               ▼
//!                                └── chunks in shared memory ──────────────────────────► backend: rounds over all processes
//! ```
//!
//! `abi` describes what the two sides share, `patch` the stubs.

mod allocations;
pub mod attach;
mod bounds;
mod called;
mod captured;
pub mod chunks;
mod entry_filter;
pub mod explained;
mod file;
mod identity;
mod loadable;
mod module;
mod open_calls;
mod planner;
pub mod points;
mod probe_events;
mod process;
mod ready;
mod record_filter;
mod runtime;
pub mod self_test;
mod server;
mod silent;
mod start;
mod sums;
mod tables;
mod ticks;
mod times;
mod tree;
mod tsc_clock;
pub mod untraced;

use allocations::Heap;
use attach::Left;
use engine::backend::launch::Launched;
use engine::callers::Handle;
use engine::control::{Agents, Order, State, Stream};
use engine::error::{Error, Result};
use engine::own_events;
use engine::pipeline::backend::{Backend, Deliver, Polled};
use engine::pipeline::functions::shown_name;
use engine::plan::Plan;
use engine::request::enabling::{self, Enabling};
use engine::request::expression::Filtered;
use engine::request::functions::FunctionEnabling;
use engine::stats::{Counts as Tally, Losses, Report};
use events::generated::{P_FUNCTION, P_PAUSED, P_RESUMED};
use events::{Schema, StreamId, functions};
use identity::Known as Who;
use module::Known;
use probe_events::ProbeEvents;
use process::Process;
use record_filter::RecordFilter;
use server::{Counts, Said};
use silent::Silent;
pub use start::{Injection, Offer, possible, preloaded_file};
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};
use sys::agent::{Backlog, Life, SocketFile};
use sys::ptrace::Change;
use tree::Tree;
use tsc_clock::TscClock;
use untraced::{Executed, Gap, Gaps};

/// How much older than the round that reads it a record may be that is not read yet: its thread was preempted between the time and the
/// word, ns.
const LATE: u64 = 2_000_000;
/// The same for allocations, whose order over all threads counts: on a busy machine a thread may wait long for a processor, ns.
const HEAP_LATE: u64 = 50_000_000;
/// How long the answer to a process takes at most.
const ANSWER: Duration = Duration::from_secs(1);

/// A session of functions.
pub struct Agent {
    /// The command, where this backend has started it.
    command: Launched,
    /// Processes that the agent was injected into, and is taken out of at the end.
    attached: Vec<i32>,
    from: Receiver<Said>,
    /// What the server has said and nobody has dealt with yet.
    said: VecDeque<Said>,
    /// Requests that the server has not taken yet.
    backlog: Backlog,
    counts: Arc<Counts>,
    _life: Arc<Life>,
    processes: Vec<Process>,
    silent: Silent,
    moments: TscClock,
    /// Reports processes and threads, unless another backend does.
    tree: Option<Tree>,
    record_filter: RecordFilter,
    /// Where allocations are recorded.
    heap: Option<Heap>,
    /// Where probes are reached in processes.
    probes: Option<ProbeEvents>,
    /// All that the session has had.
    enablings: Vec<Enabling>,
    /// No functions are.
    no_functions: bool,
    /// Sums are kept of calls, and no records.
    keeps_sums: bool,
    /// What was asked for by name ([`Functions::asked`]).
    asked: Vec<(String, String)>,
    /// Functions of libraries are traced too.
    has_libraries: bool,
    /// Files with functions to be traced.
    modules: Vec<Arc<Known>>,
    /// Stops and starts that are to be delivered.
    marks: Vec<Vec<u8>>,
    dropped: HashMap<StreamId, u64>,
    trouble: Vec<String>,
    left_out: Vec<String>,
    /// Removed at the end; the server may listen a little longer.
    socket: Option<SocketFile>,
    executed: Arc<Executed>,
    gaps: Gaps,
    stopping: bool,
    /// It stops as soon as no agent waits for an answer.
    finishing: bool,
    /// Execs that the agent could not follow.
    left: u64,
    /// Gets to know where functions were called from, where stacks are copied beside this.
    callers: Option<Handle>,
    /// Another agent takes its place in the processes.
    makes_room: bool,
}

impl Agent {
    /// Takes the agents out of the processes that were attached to, and of their children.
    fn detach(&mut self) {
        let attached = std::mem::take(&mut self.attached);
        if attached.is_empty() {
            return;
        }
        let mut pids = attached.clone();
        pids.extend(self.processes.iter().map(|p| p.pid).filter(|pid| !attached.contains(pid)));
        for pid in pids.into_iter().filter(|pid| !sys::process::has_ended(*pid)) {
            let left = if self.makes_room { attach::detach_within(pid, Duration::ZERO) } else { attach::detach(pid) };
            match left {
                Ok(Left::Nothing) => {}
                // The next session takes that over.
                Ok(Left::Hook) if self.makes_room => {}
                Ok(Left::Hook) => self.trouble.push(format!(
                    "process {pid}: threads are still in functions that were traced: the unwinder's hook stays in libgcc until the next session"
                )),
                Ok(Left::Bytes(n)) => {
                    self.trouble.push(format!("process {pid}: {n} functions have other bytes than trapline left there"));
                }
                Err(_) if sys::process::has_ended(pid) => {}
                Err(e) => self.trouble.push(e.to_string()),
            }
        }
    }

    /// No process will begin or go on: stops once all that have asked are answered.
    pub fn finish(&mut self) {
        self.finishing = true;
    }

    fn hear(&mut self, each: &mut dyn Deliver) {
        self.said.extend(self.from.try_iter());
        while let Some(said) = self.said.pop_front() {
            match said {
                Said::Event(stream, event) => {
                    if event.get(8..10) == Some(&P_FUNCTION.id.to_le_bytes()) {
                        self.record_filter.note(&event);
                    }
                    each.event(stream, &event);
                }
                Said::Came(came) => self.tree.iter_mut().for_each(|t| t.came(&came)),
                Said::Maps(events) if self.tree.is_some() => {
                    events.iter().for_each(|event| each.event(StreamId::MAPS, event));
                }
                // The other backend reports them.
                Said::Maps(_) => {}
                Said::Module(known) => self.modules.push(known),
                Said::Points(first, file) => self.probes.iter_mut().for_each(|p| p.add(first, Arc::clone(&file))),
                Said::Trouble(line) => self.trouble.push(line),
                Said::LeftOut(line) => self.left_out.push(line),
                Said::Gap(gap) => self.gap(&gap, each),
                Said::Begun(begun) => {
                    // A new program: the memory of the one before is complete.
                    if !begun.is_fork {
                        self.processes.iter_mut().filter(|p| p.pid == begun.pid).for_each(Process::replace);
                    }
                    self.record_filter.begin(begun.pid as u32, begun.comm.clone(), begun.ids);
                    // It began as the session was when it asked.
                    begun.shared.set_running(!self.counts.paused.load(Ordering::Acquire));
                    self.silent.add(&begun.shared);
                    let (pid, own) = (begun.pid, begun.own_pid);
                    let who = Who { comm: begun.comm.clone(), ids: begun.ids };
                    self.probes.iter_mut().for_each(|p| p.begin(pid as u32, who.clone()));
                    let allocations = self.heap.as_mut().map(|h| h.begin(pid, own, who));
                    self.processes.push(Process::new(*begun, allocations, self.callers.clone()));
                }
            }
        }
    }

    /// Processes that have asked, and are not heard of yet: those that are answered just now, too.
    fn begun_unheard(&mut self) -> Vec<i32> {
        let since = Instant::now();
        loop {
            let is_busy = self.counts.busy.load(Ordering::Acquire) > 0;
            self.said.extend(self.from.try_iter());
            if !is_busy || since.elapsed() > ANSWER {
                break;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        let begun = |said: &Said| if let Said::Begun(begun) = said { Some(begun.pid) } else { None };
        self.said.iter().filter_map(begun).collect()
    }

    fn gap(&mut self, gap: &Gap, each: &mut dyn Deliver) {
        self.gaps.note(gap);
        each.event(untraced::STREAM, &gap.event());
    }

    fn state(&mut self) -> State {
        let streams = self.processes.iter_mut().map(|p| {
            let shared = p.chunks().shared();
            let (size, pending) = (shared.chunks() * shared.chunk_size(), p.pending());
            Stream {
                name: format!("process_{}", p.pid),
                used: p.waiting() as u64,
                size: size as u64,
                dropped: p.dropped.saturating_add(pending),
            }
        });
        let streams = streams.collect();
        // What threads have dropped since their last chunk is in no header yet.
        let pending = self.processes.iter_mut().fold(0u64, |n, p| n.saturating_add(p.pending()));
        let losses = self.losses(self.lost().saturating_add(pending));
        State {
            streams,
            filtered: self.filtered(),
            enablings: self.enabling_counts(losses.total),
            running: self.processes.iter().map(|p| p.pid).chain(self.silent.found().iter().copied()).collect(),
            agents: Some(Agents {
                processes: self.processes.len() as u64,
                threads: self.processes.iter().map(|p| p.threads() as u64).sum(),
                modules: self.modules.iter().filter(|m| !m.plan.sites.is_empty()).count() as u64,
                patched: self.counts.functions.load(Ordering::Relaxed),
                refused: self.counts.refused.load(Ordering::Relaxed),
                numbers: self.record_filter.numbers(),
            }),
            losses,
            ..State::default()
        }
    }

    /// Records that were dropped.
    fn lost(&self) -> u64 {
        self.dropped.values().fold(0, |sum, n| sum.saturating_add(*n))
    }

    /// Losses of records: which functions they were of, and whether entries or exits, nobody knows; nor whether of functions or of the
    /// heap, where both are recorded.
    fn losses(&self, total: u64) -> Losses {
        let of_functions = total > 0 && self.heap.is_none() && self.probes.is_none();
        Losses { total, classes: if of_functions { vec![(functions::lost().id, total)] } else { Vec::new() } }
    }

    /// What was counted of enablings, by number. `lost` records are of functions, unless there is a heap too.
    fn enabling_counts(&self, lost: u64) -> Vec<(u32, Tally)> {
        let of = |is_alone: bool| if is_alone && self.heap.is_none() { lost } else { 0 };
        let mut counts = self.record_filter.counts(of(self.probes.is_none()));
        counts.extend(self.probes.iter().flat_map(|p| p.counts(of(self.no_functions))));
        counts.extend(self.heap.iter().flat_map(Heap::counts));
        counts
    }

    /// What was counted of enablings, as it is kept with a trace.
    pub fn lines(&self, counts: &[(u32, Tally)]) -> Vec<String> {
        let counted = enabling::counted(&self.enablings, counts);
        counted.into_iter().map(|(e, n)| n.line(&e.label())).collect()
    }

    /// Events that filters have rejected.
    fn filtered(&self) -> Filtered {
        let mut all = self.record_filter.filtered();
        self.heap.iter().for_each(|h| all.add(h.chosen.filtered()));
        self.probes.iter().for_each(|p| all.add(p.filtered()));
        all
    }

    /// From this moment on records are events, or not.
    fn phase(&mut self, running: bool) {
        let now = sys::time::stamp().0;
        self.record_filter.switch(now, running);
        self.heap.iter_mut().for_each(|h| h.chosen.switch(now, running));
        self.probes.iter_mut().for_each(|p| p.switch(now, running));
    }

    /// From now on other functions are recorded, all of which have stubs.
    fn select(&mut self, enablings: Vec<Enabling>) -> Result<()> {
        let selected = of_functions(&enablings);
        for (_, e) in selected.iter().filter(|(id, _)| !self.record_filter.knows(*id)) {
            let has = |name: &String| {
                let shown = shown_name(name);
                e.has([name.as_str()].into_iter().chain(shown.as_deref()))
            };
            let mut without = self.modules.iter().flat_map(|m| &m.others).filter(|n| has(n));
            let what = format!("-e '+{}'", e.probe());
            if let Some(first) = without.next() {
                let name = shown_name(first).unwrap_or_else(|| first.clone());
                let more = without.count();
                let others = if more > 0 { format!(" (and {more} others)") } else { String::new() };
                let why = format!(
                    "{name}{others} was not patched when its program started, and running programs are not patched"
                );
                return Err(Error::failed(what, why, "record another session that names it at the start"));
            }
            if self.record_filter.matched(e) == 0 {
                let todo = "see 'trapline session status'";
                return Err(Error::failed(what, "no function of this name could be patched", todo));
            }
        }
        for pattern in selected.iter().flat_map(|(_, e)| &e.without).filter(|p| !self.record_filter.is_without(p)) {
            let gone = FunctionEnabling { pattern: pattern.clone(), ..FunctionEnabling::default() };
            if self.record_filter.matched(&gone) == 0 {
                let todo = "see 'trapline session status'";
                return Err(Error::failed(format!("-e '-{}'", gone.probe()), "no such function is traced", todo));
            }
        }
        let now = sys::time::stamp().0;
        self.record_filter.select(now, &selected);
        self.heap.iter_mut().for_each(|h| h.chosen.remove(sys::time::monotonic(), &enablings));
        self.probes.iter_mut().for_each(|p| p.remove(now, &enablings));
        self.enablings = enablings;
        Ok(())
    }

    fn switch(&mut self, running: bool) {
        if running {
            self.marks.push(mark(&P_RESUMED));
            self.set_running(true);
            self.phase(true);
        } else {
            self.phase(false);
            self.set_running(false);
            self.marks.push(mark(&P_PAUSED));
        }
    }

    fn set_running(&mut self, running: bool) {
        self.counts.paused.store(!running, Ordering::Release);
        // A process that has just begun, too: what it does from now on is recorded, or not.
        self.said.extend(self.from.try_iter());
        let begun = self.said.iter().filter_map(|said| if let Said::Begun(begun) = said { Some(begun) } else { None });
        begun.for_each(|begun| begun.shared.set_running(running));
        self.processes.iter().for_each(|p| p.chunks().shared().set_running(running));
    }
}

/// The enablings of functions that were not taken away, with their numbers.
fn of_functions(all: &[Enabling]) -> Vec<(u32, FunctionEnabling)> {
    all.iter().filter(|e| !e.removed).filter_map(|e| Some((e.id, e.functions()?.clone()))).collect()
}

/// The event of a stop or a start, now.
fn mark(schema: &'static Schema) -> Vec<u8> {
    let own = sys::process::own_pid() as u32;
    own_events::process(schema, sys::time::monotonic(), (own, own), &[], &[])
}

impl Drop for Agent {
    fn drop(&mut self) {
        self.detach();
        self.callers.iter().for_each(|callers| callers.get().stop());
        self.counts.stop.store(true, Ordering::Release);
    }
}

impl Backend for Agent {
    fn name(&self) -> &'static str {
        "agent"
    }

    fn poll(&mut self, room: bool, each: &mut dyn Deliver) -> Polled {
        let late = if self.heap.is_some() { HEAP_LATE } else { LATE };
        let until = sys::time::monotonic().saturating_sub(late);
        if self.finishing && self.counts.busy.load(Ordering::Acquire) == 0 {
            self.stop();
        }
        // Before the processes: what is not answered yet may begin one.
        let is_over = !self.attached.is_empty() || self.command_status().is_some();
        let over = self.stopping || is_over && self.counts.busy.load(Ordering::Acquire) == 0;
        for mark in std::mem::take(&mut self.marks) {
            match (&mut self.tree, mark.first_chunk()) {
                (Some(tree), Some(at)) => tree.put(u64::from_le_bytes(*at), mark),
                _ => each.event(StreamId::TRACER, &mark),
            }
        }
        // Before it is heard which processes there are: what they record from now on, is not told in this round.
        let now = self.moments.now();
        self.hear(each);
        if !room {
            return Polled::default();
        }
        self.callers.iter().for_each(|callers| callers.get().begin_round(now));
        let (mut events, mut ended) = (0, Vec::new());
        // A record is written before anything that follows from what it says can happen: what is read from now on, and is older, is
        // complete as far as one address is concerned. Events have an order among those of others, too.
        let complete = self.moments.now().tsc;
        for (n, process) in self.processes.iter_mut().enumerate() {
            let tree = self.tree.as_mut();
            let heap = self.heap.as_ref();
            let (records, is_over) = process.read(
                self.stopping,
                &mut self.moments,
                &mut self.record_filter,
                (heap, self.probes.as_mut()),
                &mut self.dropped,
                tree,
                each,
            );
            events += records;
            if is_over {
                ended.push(n);
            }
        }
        for n in ended.into_iter().rev() {
            let mut process = self.processes.remove(n);
            if let (Some(heap), Some(allocations)) = (&mut self.heap, process.allocations.take()) {
                heap.end(allocations, process.is_replaced(), self.moments.now().tsc);
            }
            // Another program may run in it now.
            if !self.processes.iter().any(|p| p.pid == process.pid) {
                self.record_filter.end(process.pid as u32);
                self.probes.iter_mut().for_each(|p| p.end(process.pid as u32));
            }
            self.left = self.left.saturating_add(process.left());
            if process.is_broken() {
                self.trouble.push(format!(
                    "process {}: it has written over the memory that it shares with trapline: what is recorded of it may be wrong, and what is lost is not known",
                    process.pid
                ));
            }
        }
        let ended = over && self.processes.is_empty();
        let mut ended = ended && (self.stopping || !self.executed.is_waiting() && !self.silent.may_be_there());
        if ended && !self.stopping {
            // One that is silent no more has asked since, or executes another program: that waits to be heard, is being heard, or was.
            ended = self.backlog.is_empty() && self.counts.busy.load(Ordering::Acquire) == 0;
            self.hear(each);
            ended &= self.processes.is_empty() && !self.executed.is_waiting();
        }
        let ended = ended || self.command.has_failed();
        if self.keeps_sums {
            // Functions that were called just now have been named before.
            self.hear(each);
        }
        if let Some(heap) = &mut self.heap {
            let until = match (ended, heap.has_consumer()) {
                (true, _) => u64::MAX,
                (_, true) => complete,
                _ => self.moments.ago(HEAP_LATE),
            };
            heap.deliver(until, &self.moments, self.processes.iter_mut().filter_map(|p| p.allocations.as_mut()), each);
        }
        if !self.command.has_failed() {
            self.executed.missing(ended).iter().for_each(|gap| self.gap(gap, each));
        }
        if let Some(tree) = &mut self.tree {
            tree.look(ended, self.command.pid.zip(self.command.known_status()), |pid| {
                self.processes.iter().any(|p| p.pid == pid)
            });
            tree.deliver(if ended { u64::MAX } else { until }, each);
        }
        let until = self.processes.iter().filter_map(Process::complete).fold(until, u64::min);
        each.settled(if ended { u64::MAX } else { until });
        if ended {
            self.callers.iter().for_each(|callers| callers.get().stop());
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
            Order::Stop => self.switch(false),
            Order::Start => self.switch(true),
            Order::Enable(enabled) => self.select(enabled.all)?,
            Order::Lend(_) | Order::TakeBack(_) => {}
            Order::TakeOut => {
                // Out of processes that it was loaded into with their program, too: they have kept what they had.
                if self.attached.is_empty() {
                    let known = self.processes.iter().map(|p| p.pid).chain(self.silent.found().iter().copied());
                    self.attached = known.collect();
                    let begun = self.begun_unheard();
                    self.attached.extend(begun);
                }
                self.makes_room = true;
                self.stop();
            }
            Order::Attach(_) | Order::Detach(_) => {
                let what = "a running process has no agent, and an agent is not taken out of one";
                return Err(Error::failed("-p", what, "stop pauses the session for all its processes"));
            }
        }
        Ok(self.state())
    }

    fn stop(&mut self) {
        if !std::mem::replace(&mut self.stopping, true) {
            self.phase(false);
            self.set_running(false);
            // Calls that are open last until now.
            if !self.no_functions {
                self.marks.push(mark(&P_PAUSED));
            }
            self.processes.iter_mut().for_each(|process| process.look_at_open_calls(true));
            self.detach();
        }
    }

    fn command(&self) -> Option<i32> {
        self.command.pid
    }

    fn command_status(&mut self) -> Option<Change> {
        self.command.status(false)
    }

    fn failure(&mut self, plan: &Plan) -> Option<Error> {
        self.command.error(&plan.target)
    }

    fn streams(&self) -> Vec<StreamId> {
        self.dropped.keys().copied().collect()
    }

    fn dropped_on(&self, stream: StreamId) -> u64 {
        self.dropped.get(&stream).copied().unwrap_or(0)
    }

    fn report(&mut self) -> Report {
        // A session can end by itself, where an agent found nothing to do. After the report trapline may end at any moment, and with it
        // a call in a process that is being detached from.
        self.detach();
        let mut trouble = std::mem::take(&mut self.trouble);
        for said in self.said.drain(..).chain(self.from.try_iter()) {
            match said {
                Said::Trouble(line) => trouble.push(line),
                Said::LeftOut(line) => self.left_out.push(line),
                Said::Gap(gap) => self.gaps.note(&gap),
                Said::Module(known) => self.modules.push(known),
                _ => {}
            }
        }
        trouble.extend(self.gaps.lines());
        if self.left > 0 {
            let why =
                "trapline cannot be reached from where it is executed (another network namespace, a seccomp filter)";
            trouble.push(format!("not traced: {}: {why}", untraced::programs(self.left)));
        }
        let losses = self.losses(self.lost());
        let enablings = self.enabling_counts(losses.total);
        let lines = self.lines(&enablings);
        let planned = self.modules.iter().map(|known| explained::planned(known)).collect();
        let mut left_out = std::mem::take(&mut self.left_out);
        left_out.extend(explained::unmatched(&self.modules, &self.asked, self.has_libraries));
        let filtered = self.filtered();
        let traced = self.counts.processes.load(Ordering::Relaxed);
        Report { filtered, enablings, lines, losses, trouble, left_out, planned, traced, ..Report::default() }
    }
}
