//! The kernel backend: eBPF programs and a ring per CPU.
//!
//! ```text
//! programs ─► ring per CPU ─► merge by time ─► source
//! ```
//!
//! The command is a child of the front end. It waits at a pipe until its task storage is set, and so is traced from its first
//! instruction; its children are, because their storage is made before they first run. Nothing blocks the target: a full ring
//! is counted.

mod areas;
pub mod attach;
mod attach_pids;
mod buffers;
mod command_start;
mod cost;
mod descriptors;
mod ending;
mod filtered;
mod functions;
mod in_flight;
mod in_flight_stacks;
mod left_out;
mod live;
pub mod load;
mod loaded;
mod map_set;
mod missed;
pub mod moved;
pub mod objects;
mod operations;
mod orders;
mod parallel;
pub mod peek;
pub mod probes;
pub mod programs;
pub mod registers;
mod ring;
pub mod ring_set;
pub mod rings_of_calls;
mod stack_tables;
mod start;
mod switch;
mod system_wide;
mod tables;
mod target;
mod task_ids;
mod task_iterator;
pub mod unwinder;
mod watch;

use attach_pids::Adopter;
use bpf::syscalls::state;
use engine::backend::fds;
use engine::backend::in_flight::{InFlight, at_attach};
use engine::backend::launch::Launched;
use engine::control::{self, Order, Preparer, State};
use engine::error::{Error, Result};
use engine::own_events;
use engine::pipeline::aside::Origin;
use engine::pipeline::backend::{Attached, Backend, Deliver, Polled};
use engine::pipeline::merge::Merge;
use engine::plan::Plan;
use engine::stats::{LetGo, NotCaptured, Report};
use events::StreamId;
use events::stream::Scope;
use in_flight::Watch;
use in_flight_stacks::Walker;
use live::Live;
use loaded::Loaded;
use std::collections::HashSet;
use std::os::fd::OwnedFd;
use std::time::Duration;
use sys::process;
use sys::ptrace::Change;
use sys::{proc, time};
use system_wide::ProcScan;

/// `BPF_NOEXIST`: the value must not be there yet.
const NO_EXIST: u64 = 1;

/// Reports what the descriptors of a process are, where names are wanted.
fn seed_fds(pid: i32, plan: &Plan, merge: &mut Merge) {
    if !plan.fd_names {
        return;
    }
    let now = time::monotonic();
    for fd in fds::open_fds(pid) {
        if let Some((args, path, detail)) = fds::look(pid, fd, plan.fd_details, false) {
            let who = (pid as u32, pid as u32);
            merge.push(&own_events::process(&events::generated::P_FD, now, who, &args, &[&path, &detail]));
        }
    }
}

/// A state of thread `tid` with these flags.
fn initial(flags: i32, tid: i32) -> [u8; state::SIZE as usize] {
    let mut v = [0u8; state::SIZE as usize];
    v[..8].copy_from_slice(&(flags as u64).to_le_bytes());
    v[state::TID as usize..][..8].copy_from_slice(&(tid as u64).to_le_bytes());
    v
}

/// The state of a thread that is in this call, or in none.
fn in_call(tid: i32, call: Option<&InFlight>) -> [u8; state::SIZE as usize] {
    let Some(call) = call else { return initial(0, tid) };
    let mut value = initial(state::IN_CALL | state::ATTACHED, tid);
    let mut put = |at: i16, v: u64| value[at as usize..at as usize + 8].copy_from_slice(&v.to_le_bytes());
    put(state::START, call.start);
    put(state::NR, call.nr);
    for (i, a) in call.args.iter().enumerate() {
        put(state::ARGS + 8 * i as i16, *a);
    }
    put(state::CPU, u64::from(call.cpu));
    value
}

/// The phase of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Nothing was polled yet.
    Begun,
    /// Events come.
    Running,
    /// All traced threads have reached their end, and some may not be gone.
    Ending(ending::Patience),
    /// The programs are to be detached.
    Over,
    /// They are detached, and all was handed over.
    Detached,
}

/// A running session.
pub struct Kernel {
    loaded: Loaded,
    /// The kernel measures the programs.
    measuring: Option<OwnedFd>,
    merge: Merge,
    /// Traced threads; empty on a whole machine.
    alive: HashSet<u32>,
    /// How many were attached to, less those that were let go.
    attached: i64,
    /// For threads without pidfds that are attached to later.
    adopter: Option<Adopter>,
    /// Makes the probes that are added later; goes to the front end.
    live: Option<Live>,
    /// Threads that have reached their end and may still have events.
    leaving: HashSet<u32>,
    /// Tasks that execute some programs are released.
    restricted: bool,
    /// The name of the program that was executed last.
    executed: Vec<u8>,
    let_go: LetGo,
    command: Launched,
    /// Readable from the command's end on; none: its end was seen, or there is no command.
    ended: Option<OwnedFd>,
    watch: Watch,
    walker: Option<Walker>,
    /// Classes of the event of the session's own end, where it is enabled.
    end: Vec<&'static events::Schema>,
    /// Where most events of the last round came from.
    origin: Origin,
    /// Every thread is traced, until somebody says stop.
    whole: bool,
    /// No program runs at the entry of calls.
    no_entry: bool,
    proc_scan: Option<ProcScan>,
    attribution: missed::Attribution,
    /// Descriptors get details.
    details: bool,
    held: switch::Held,
    /// Stacks that were handed over.
    reported: Reported,
    phase: Phase,
    stopping: bool,
    /// Rounds without an event.
    idle: u32,
    /// Threads that were still ending when the programs were detached.
    cut_off: u64,
    attached_now: Attached,
    report: Report,
}

/// Takes an event with its stream.
type Each<'e> = &'e mut dyn Deliver;

impl Backend for Kernel {
    fn name(&self) -> &'static str {
        "kernel"
    }

    fn poll(&mut self, room: bool, each: Each<'_>) -> Polled {
        if self.phase == Phase::Begun {
            if self.held.stopped {
                self.mark(&events::generated::P_PAUSED);
            }
            self.phase = Phase::Running;
        }
        if self.phase == Phase::Running && (self.stopping || self.all_ended()) {
            self.phase = if self.stopping { Phase::Over } else { Phase::Ending(ending::Patience::now()) };
        }
        let events = match self.phase {
            Phase::Begun | Phase::Running => self.run(room, each),
            Phase::Ending(patience) => self.see_them_out(patience, each),
            Phase::Over => self.detach(each),
            Phase::Detached => 0,
        };
        self.collect_command();
        Polled { events, ended: self.phase == Phase::Detached }
    }

    /// Sleeps, but not beyond the command's end, after which there often is nothing more to wait for.
    fn origin(&self) -> Origin {
        self.origin
    }

    fn wait(&mut self, time: Duration) {
        // Nothing comes any more: the programs are detached while the views show the last events.
        if self.phase == Phase::Over {
            return;
        }
        let over = match &self.ended {
            Some(fd) => process::wait_readable(fd, time).unwrap_or(true),
            None => {
                std::thread::sleep(time);
                false
            }
        };
        if over {
            self.ended = None;
        }
    }

    fn control(&mut self, order: Order) -> Result<State> {
        if self.phase == Phase::Detached { Err(control::ended()) } else { self.obey(order) }
    }

    fn take_preparer(&mut self) -> Option<Box<dyn Preparer>> {
        self.live.take().map(|live| Box::new(live) as Box<dyn Preparer>)
    }

    fn stop(&mut self) {
        self.stopping = true;
    }

    fn command(&self) -> Option<i32> {
        self.command.pid
    }

    fn command_status(&mut self) -> Option<Change> {
        self.command.status(!self.stopping)
    }

    fn take_attached(&mut self) -> Attached {
        std::mem::take(&mut self.attached_now)
    }

    fn failure(&mut self, plan: &Plan) -> Option<Error> {
        self.command.error(&plan.target)
    }

    fn streams(&self) -> Vec<StreamId> {
        self.loaded.streams()
    }

    fn dropped_on(&self, stream: StreamId) -> u64 {
        self.loaded.dropped_on(stream)
    }

    fn report(&mut self) -> Report {
        std::mem::take(&mut self.report)
    }
}

impl Kernel {
    /// A round of a session that goes on.
    fn run(&mut self, room: bool, each: Each<'_>) -> usize {
        let now = time::monotonic();
        let n = self.round(now, room, each);
        if let Some(proc_scan) = &mut self.proc_scan {
            let (some_are_left, found) = proc_scan.step(&self.loaded, &mut self.merge);
            if !some_are_left {
                self.proc_scan = None;
            }
            self.notice_found(found);
        }
        if !self.held.stopped {
            self.notice_long_calls(now);
        }
        self.idle = if n > 0 { 0 } else { self.idle + 1 };
        self.free_rings();
        // An end that was dropped, or happened before the attach was complete, is not waited for forever.
        if n == 0 && self.idle.is_multiple_of(64) {
            self.forget_ended();
        }
        n
    }

    /// Reads the end of the command, if it has ended: until then its last thread is not gone.
    fn collect_command(&mut self) {
        if self.ended.is_none() || self.phase != Phase::Running {
            self.command.status(false);
        }
    }

    /// Detaches the programs, and hands over the rest.
    fn detach(&mut self, each: Each<'_>) -> usize {
        self.loaded.say(&self.end, &mut self.merge);
        // Whatever the task storage says from here on is how things were when the programs went.
        self.loaded.detach();
        if self.stopping {
            self.fill();
            if self.whole {
                self.leave_all();
            } else {
                in_flight::leave(&self.calls_in_flight(), &self.alive, &mut self.merge);
            }
        }
        if !self.held.stopped {
            self.unfinished();
        }
        let n = self.round(u64::MAX, true, each);
        self.phase = Phase::Detached;
        let enablings = self.loaded.probe_counts();
        let not_captured = self.no_entry.then(|| self.not_captured());
        let lines = self.loaded.probes.iter().zip(&enablings).map(|(p, (_, n))| n.line(&p.label));
        self.report = Report {
            losses: self.loaded.losses(),
            large_enough_buffer: self.loaded.large_enough_buffer(),
            filtered: filtered::count(&self.loaded),
            lines: lines.chain(not_captured.iter().map(NotCaptured::line)).collect(),
            not_captured,
            stacks: self.loaded.stack_counts(),
            cost: Some(cost::of(&self.loaded, &enablings, self.measuring.take().is_some())),
            enablings,
            missed: self.attribution.count(&self.loaded.misses()),
            let_go: std::mem::take(&mut self.let_go),
            cut_off: self.cut_off,
            ..Report::default()
        };
        n
    }

    /// The operations that have not completed.
    fn unfinished(&mut self) {
        let now = time::monotonic();
        for probe in &mut self.loaded.probes {
            let stream = StreamId::new(Scope::Cpu(0), probe.rings.0 as u16 + 1);
            probe.unfinished(now).iter().for_each(|event| self.merge.push_from(stream, event));
        }
    }

    /// What a session without durations has not captured: of the threads that are traced to the end, the calls that they are in too.
    fn not_captured(&self) -> NotCaptured {
        let mut lost = self.loaded.not_captured();
        let is_in_call = |tid: &&u32| {
            let tid = **tid as i32;
            let call = proc::process_of(tid).and_then(|pid| at_attach(pid, tid, self.held.limits));
            call.is_some_and(|call| call.wanted(&self.held.calls))
        };
        if self.stopping && !self.held.stopped {
            lost.calls += self.alive.iter().filter(is_in_call).count() as u64;
        }
        lost
    }

    /// Empties the rings once, where there is room, and hands over what is older than `began`; returns how many events came.
    fn round(&mut self, began: u64, room: bool, each: Each<'_>) -> usize {
        let n = if room { self.fill() } else { 0 };
        let Kernel { merge, reported, .. } = self;
        // Each ring reports a stack before the first event that has it; of several reports the first is kept.
        merge.release(began, &mut |stream: StreamId, event: &[u8]| match reported.is_stack(event) {
            None => each.event(stream, event),
            Some(true) => each.event(StreamId::STACKS, event),
            Some(false) => {}
        });
        n
    }

    /// Takes what is in the rings; returns how many events.
    fn fill(&mut self) -> usize {
        let Kernel { loaded, merge, alive, leaving, whole, details, let_go, restricted, executed, .. } = self;
        let mut leaving = loaded.sees_threads_go.then_some(leaving);
        let mut counts = vec![0; loaded.rings.len()];
        for (((cpu, ring), passed), n) in
            (0..).map(StreamId::cpu).zip(&mut loaded.rings).zip(&mut loaded.passed).zip(&mut counts)
        {
            *n = ring.drain(|event| {
                passed.add(event);
                if descriptors::is_raw(event) {
                    descriptors::event(event, *details).iter().for_each(|e| merge.push_from(cpu, e));
                    return;
                }
                if !*whole {
                    match (follow(event, alive), &mut leaving) {
                        (Some(Follows::Ended(tid)), Some(leaving)) => drop(leaving.insert(tid)),
                        (Some(Follows::Executed(comm)), _) if *restricted => *executed = comm.to_vec(),
                        (Some(Follows::LetGo), _) => note_let_go(let_go, executed),
                        _ => {}
                    }
                } else if is_own_end(event) {
                    return;
                }
                merge.push_from(cpu, event);
            });
        }
        for (nth, set) in (1..).zip(&mut loaded.sets) {
            set.drain(|cpu, event| {
                counts.get_mut(cpu as usize).into_iter().for_each(|n| *n += 1);
                merge.push_from(StreamId::new(Scope::Cpu(cpu), nth), event)
            });
        }
        self.origin = Origin::of((0..).zip(counts.iter().copied()));
        counts.iter().sum()
    }
}

/// The stacks that were handed over.
#[derive(Default)]
struct Reported {
    ids: HashSet<u64>,
}

impl Reported {
    /// The most ids that are kept; then they are forgotten, and stacks are handed over again.
    const MOST: usize = 4 << 20;

    /// Whether an event reports a stack, and one that was not handed over before.
    fn is_stack(&mut self, event: &[u8]) -> Option<bool> {
        if !ring_set::is_stack(event) {
            return None;
        }
        if self.ids.len() >= Reported::MOST {
            self.ids.clear();
        }
        Some(events::Event::parse(event).is_ok_and(|ev| self.ids.insert(ev.value_of("id"))))
    }
}

/// What has become of a thread.
enum Follows<'e> {
    /// It has reached its end.
    Ended(u32),
    /// It has become a program of this name.
    Executed(&'e [u8]),
    /// That program is not shown.
    LetGo,
}

/// Notes the name of a program that is released.
fn note_let_go(let_go: &mut LetGo, comm: &[u8]) {
    const NAMED: usize = 4;
    let name = String::from_utf8_lossy(comm).into_owned();
    let_go.1 += 1;
    if let_go.0.len() < NAMED && !let_go.0.contains(&name) {
        let_go.0.push(name);
    }
}

/// Keeps the set of traced threads: forks add to it, ends take away.
fn follow<'e>(event: &'e [u8], alive: &mut HashSet<u32>) -> Option<Follows<'e>> {
    use events::generated as g;
    let id = event.get(8..10).map_or(u16::MAX, |b| u16::from_le_bytes([b[0], b[1]]));
    if ![g::P_FORK.id, g::P_EXIT.id, g::P_EXEC.id, g::P_DETACH.id].contains(&id) {
        return None;
    }
    let ev = events::Event::parse(event).ok()?;
    if id == g::P_FORK.id {
        alive.insert(ev.value_of("tid") as u32);
    } else if id == g::P_EXIT.id {
        alive.remove(&ev.tid());
        return Some(Follows::Ended(ev.tid()));
    } else if id == g::P_DETACH.id {
        // It is waited for all the same: it may be the command.
        return Some(Follows::LetGo);
    } else {
        // A thread that called execve has taken the leader's id.
        alive.remove(&(ev.value_of("old_tid") as u32));
        alive.insert(ev.tid());
        return Some(Follows::Executed(ev.bytes_of("comm")));
    }
    None
}

/// Whether a thread of trapline ends: one that has helped to load may still be ending when the programs are attached, and has no
/// mark then.
fn is_own_end(event: &[u8]) -> bool {
    let id = events::generated::P_EXIT.id.to_le_bytes();
    event.get(8..10) == Some(&id) && event.get(16..20) == Some(&(sys::process::own_pid() as u32).to_le_bytes())
}
