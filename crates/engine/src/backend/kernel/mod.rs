//! The kernel backend: eBPF programs, a ring per CPU, a thread that drains them.
//!
//! ```text
//! programs ─► ring per CPU ─► drain thread: merge by time ─► backlog (bounded) ─► collector, views
//! ```
//!
//! The command is a child of the front end. It waits at a pipe until its task storage is set, and so is traced from its first
//! instruction; its children are, because their storage is made before they first run. Nothing blocks the target: a full ring
//! is counted. The drain thread never formats.

pub mod attach;
mod attach_pids;
mod backlog;
pub mod cost;
mod descriptors;
mod ending;
mod filtered;
pub mod load;
mod merge;
pub mod notice;
mod orders;
mod parallel;
pub mod probes;
mod refusal;
pub mod ring_set;
mod skipped;
mod tables;
mod target;
mod waiting;
mod whole;

use crate::control::{Desk, Order, Standing};
use crate::error::{Error, Result};
use crate::losses::Losses;
use crate::plan::{Plan, Target};
use crate::recorder::Recorder;
use attach_pids::Attacher;
use backlog::Backlog;
use bpf::calls::state;
use load::{Loaded, PROBE_SHIFT};
use merge::Merge;
use notice::Watch;
pub use skipped::Skipped;
use std::collections::HashSet;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;
use sys::priority::Urgency;
use sys::process;
use sys::ptrace::{self, Change};
use sys::{proc, time};
use waiting::{Failure, Waiting};
use whole::Survey;

/// What both threads see. Legend: (d) written by the drain thread, (f) by the front end.
#[derive(Default)]
struct Shared {
    /// (d) appends chunks of events and says when no more will come, (f) takes them.
    backlog: Backlog,
    /// (f) leaves orders, (d) carries them out.
    desk: Desk,
    /// (f) Detach and finish.
    stop: AtomicBool,
    /// (d) Events that were lost so far.
    dropped: AtomicU64,
    /// (d) Which, and with what buffer they would not have been, when the programs are detached.
    losses: OnceLock<(Losses, Option<u64>)>,
    /// (d) Its priority is raised.
    raised: AtomicBool,
    /// (d) Names of the first programs that were let go, and how many were in all.
    let_go: Mutex<LetGo>,
    /// (d) Threads that were still ending when the programs were detached.
    cut_off: AtomicU64,
    /// (d) What was counted of each enabling, when the programs are detached.
    enablings: OnceLock<Vec<(String, probes::Counts)>>,
    /// (d) What the session has cost, when the programs are detached.
    cost: OnceLock<cost::Cost>,
    /// (d) What the kernel has left out, when the programs are detached.
    skipped: OnceLock<Skipped>,
    /// (d) What has kept the events, when no more will come; (f) takes it.
    kept: Mutex<Option<Recorder>>,
    /// (d) What filters have held back, then too.
    filtered: OnceLock<crate::sieve::Filtered>,
}

/// Programs whose tasks are not shown to the session's user: names of the first ones, and how many.
pub type LetGo = (Vec<String>, u64);

/// A running session.
pub struct Session {
    shared: Arc<Shared>,
    command: Option<i32>,
    status: Option<Change>,
    failure: Option<Failure>,
    notices: bool,
    programs: Vec<(String, bpf::Program)>,
    /// Probes that are attached in their second way, because the kernel refused the first.
    fell_back: Vec<String>,
}

/// `BPF_NOEXIST`: the value must not be there yet.
const NO_EXIST: u64 = 1;

impl Session {
    /// Loads the programs, and starts the command or attaches. Events go to `keep`, and with `live` to [`Session::drain`].
    pub fn start(plan: &Plan, keep: Option<Recorder>, live: bool) -> Result<Session> {
        // The command waits at its gate meanwhile, and inherits nothing of what is made.
        let waiting = match &plan.target {
            Target::Command(cmd) => Some(Waiting::fork(cmd)?),
            _ => None,
        };
        let mut merge = Merge::default();
        let mut survey = match &plan.target {
            Target::All { left_out } => Some(Survey::begin(plan, left_out, &mut merge)),
            _ => None,
        };
        // The kernel measures as long as the descriptor is held.
        let measuring = if plan.measure { sys::bpf::info::enable_stats().ok() } else { None };
        let filters =
            if plan.call_filters.is_empty() { crate::sieve::in_programs(plan) } else { plan.call_filters.clone() };
        let (mut loaded, later) = load::begin(plan, filters)?;
        let mut later = Some(later);
        let own = |name: &str| {
            let enabled = plan.probes.iter().filter(|e| e.point.is_none() && e.name == name);
            enabled.map(|e| e.schema).collect::<Vec<_>>()
        };
        loaded.say(&own("begin"), &mut merge);
        let mut alive = HashSet::new();
        let mut command = None;
        let (mut failure, mut ended) = (None, None);
        match &plan.target {
            Target::Command(_) => {
                let Some(waiting) = waiting else { unreachable!("forked above") };
                let pid = waiting.pid;
                (failure, ended) = waiting.start(plan, &mut loaded, &mut later, &mut merge)?;
                alive.insert(pid as u32);
                command = Some(pid);
            }
            Target::Pids(pids) => {
                let Some(later) = &later else { unreachable!("taken by commands only") };
                let mut attacher = Attacher::new(plan, &loaded, later);
                for &pid in pids {
                    let pid = proc::process_of(pid).unwrap_or(pid);
                    seed_fds(pid, plan, &mut merge);
                    attacher.attach(pid, &mut alive, &mut merge)?;
                }
                // What has become another program since it was asked is seen by the programs from now on, and was not before.
                crate::rights::of_targets(plan)?;
                loaded.begin();
            }
            Target::All { left_out } => {
                // Threads that began since the first time.
                whole::leave_out(&loaded.tasks, left_out);
                if let Some(survey) = &mut survey {
                    survey.attached(left_out);
                }
                loaded.begin();
            }
        }
        if let Some(later) = later {
            loaded.add_iterator(later);
        }
        // Before the drain thread starts, because capabilities belong to threads. It needs one more for a moment.
        let _ = sys::caps::drop_to(sys::caps::AFTER_ATTACH | sys::caps::SYS_NICE);
        let shared = Arc::new(Shared::default());
        let notices = loaded.iterator.is_some();
        let watch = Watch::new(plan.notice_ms, plan.limits);
        let programs = std::mem::take(&mut loaded.sources);
        let fell_back = loaded.probes.iter().filter(|p| p.fell_back).map(|p| p.name.clone()).collect();
        let attribution = skipped::Attribution::of(plan);
        let whole = survey.is_some();
        let drain = Drain {
            end: own("end"),
            loaded,
            measuring,
            shared: Arc::clone(&shared),
            merge,
            attached: alive.len() as u64,
            alive,
            leaving: HashSet::new(),
            restricted: !crate::rights::is_root(),
            executed: Vec::new(),
            ended,
            watch,
            keep,
            live,
            whole,
            survey,
            attribution,
            details: plan.fd_details,
            held: orders::Held::of(plan),
            next_count: 0,
        };
        // Nobody joins it: what it still takes down when it has finished goes on beside the views, or ends with the process.
        std::thread::Builder::new()
            .name("trapline-drain".into())
            .spawn(move || drain.run())
            .map_err(|e| Error::failed("drain thread", e.to_string(), "free some processes"))?;
        let _ = sys::caps::drop_to(sys::caps::AFTER_ATTACH);
        Ok(Session { shared, command, status: None, failure, notices, programs, fell_back })
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

    /// Has an order carried out; none where the session has ended, or is too busy to answer.
    pub fn order(&self, order: Order) -> Option<Standing> {
        self.shared.desk.ask(order, Duration::from_secs(5))
    }

    /// Sleeps until there are events, the end, or `timeout`.
    pub fn wait(&self, timeout: Duration) {
        self.shared.backlog.wait(timeout);
    }

    /// Asks for the end.
    pub fn stop(&self) {
        self.shared.stop.store(true, Ordering::Release);
    }

    /// Whether no more events will come, and all have been handed over.
    pub fn finished(&mut self) -> bool {
        if self.status.is_none()
            && let Some(pid) = self.command
            && let Ok(Some(s)) = ptrace::wait_for(pid, false)
            && !matches!(s.change(), Change::Stopped(..))
        {
            self.status = Some(s.change());
        }
        self.shared.backlog.is_finished()
    }

    /// What has kept the events, once the session has [finished](Session::finished).
    pub fn take_recorder(&mut self) -> Option<Recorder> {
        self.shared.kept.lock().unwrap_or_else(PoisonError::into_inner).take()
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

    /// Events that were lost before they were in a ring, in all and by class; known when the session has finished.
    pub fn losses(&self) -> Losses {
        self.shared.losses.get().map(|l| l.0.clone()).unwrap_or_default()
    }

    /// The `--buffer` with which none would have found a ring full, in bytes.
    pub fn large_enough_buffer(&self) -> Option<u64> {
        self.shared.losses.get()?.1
    }

    /// Whether the thread that empties the rings has a higher priority than others.
    pub fn is_raised(&self) -> bool {
        self.shared.raised.load(Ordering::Relaxed)
    }

    /// Events that were lost before they were in a ring.
    pub fn dropped(&self) -> u64 {
        self.shared.dropped.load(Ordering::Relaxed)
    }

    /// Programs that were let go, because they have rights that the session's user has not, or because he may not read them.
    pub fn let_go(&self) -> LetGo {
        self.shared.let_go.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Threads that were still on their way out when the session ended: what they did then is not in it.
    pub fn cut_off(&self) -> u64 {
        self.shared.cut_off.load(Ordering::Relaxed)
    }

    /// Runs of programs that the kernel has left out; known when the session has finished.
    pub fn skipped(&self) -> Skipped {
        self.shared.skipped.get().cloned().unwrap_or_default()
    }

    /// What filters in the programs have held back; known when the session has finished.
    pub fn filtered(&self) -> crate::sieve::Filtered {
        self.shared.filtered.get().cloned().unwrap_or_default()
    }

    /// What runs in the kernel: where, and the program.
    pub fn programs(&self) -> &[(String, bpf::Program)] {
        &self.programs
    }

    /// What was counted of each enabling of a probe other than a call; empty until the programs are detached.
    pub fn enablings(&self) -> &[(String, probes::Counts)] {
        self.shared.enablings.get().map_or(&[], Vec::as_slice)
    }

    /// Probes that are attached in their second way, because the kernel has refused the first.
    pub fn fell_back(&self) -> &[String] {
        &self.fell_back
    }

    /// What the session has cost; known when it has finished.
    pub fn cost(&self) -> Option<&cost::Cost> {
        self.shared.cost.get()
    }

    /// Whether calls in flight can be shown: this kernel has task iterators.
    pub fn has_notices(&self) -> bool {
        self.notices
    }

    /// Why the command could not start, if it could not.
    pub fn failure(&self, plan: &Plan) -> Option<Error> {
        match (&self.failure, &plan.target) {
            (Some(failure), Target::Command(cmd)) => Some(failure.error(cmd)),
            _ => None,
        }
    }
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

/// A state of thread `tid` with these flags.
fn initial(flags: i32, tid: i32) -> [u8; state::SIZE as usize] {
    let mut v = [0u8; state::SIZE as usize];
    v[..8].copy_from_slice(&(flags as u64).to_le_bytes());
    v[state::TID as usize..][..8].copy_from_slice(&(tid as u64).to_le_bytes());
    v
}

/// The state of a thread that is in this call, or in none.
fn in_call(tid: i32, call: Option<&notice::InFlight>) -> [u8; state::SIZE as usize] {
    let Some(call) = call else { return initial(0, tid) };
    let mut value = initial(call.flags, tid);
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
    /// The kernel measures the programs.
    measuring: Option<OwnedFd>,
    shared: Arc<Shared>,
    merge: Merge,
    /// Traced threads; empty on a whole machine.
    alive: HashSet<u32>,
    /// How many of them there were at the start.
    attached: u64,
    /// Threads that have reached their end and may still have events.
    leaving: HashSet<u32>,
    /// Some programs are let go.
    restricted: bool,
    /// The name of the program that was executed last.
    executed: Vec<u8>,
    /// Readable from the command's end on; none: its end was seen, or there is no command.
    ended: Option<OwnedFd>,
    watch: Watch,
    /// Keeps the events.
    keep: Option<Recorder>,
    /// The front end wants the events too.
    live: bool,
    /// Classes of the event of the session's own end, where it is enabled.
    end: Vec<&'static events::Schema>,
    /// Every thread is traced, until somebody says stop.
    whole: bool,
    survey: Option<Survey>,
    attribution: skipped::Attribution,
    /// Descriptors get details.
    details: bool,
    held: orders::Held,
    /// When the counters of losses are added up again.
    next_count: u64,
}

/// How often counters of losses are added up where there are many probes, ns.
const COUNT_NS: u64 = 50_000_000;

impl Drain {
    fn run(mut self) {
        // Else it gets the processor as often as each of the threads whose events it must keep up with.
        let raised = sys::priority::raise(Urgency::Reader).is_ok();
        self.keep.iter_mut().for_each(Recorder::start_writer);
        let _ = sys::caps::drop_to(sys::caps::AFTER_ATTACH);
        self.shared.raised.store(raised, Ordering::Relaxed);
        let mut idle = 0u32;
        if self.held.stopped {
            self.mark(&events::generated::P_PAUSED);
        }
        while !self.all_ended() && !self.shared.stop.load(Ordering::Acquire) {
            let now = time::monotonic();
            self.obey();
            let some = self.round(now);
            if let Some(survey) = &mut self.survey
                && !survey.step(&self.loaded, &mut self.merge)
            {
                self.survey = None;
            }
            if let Some(iterator) = self.loaded.iterator.as_ref().filter(|_| !self.held.stopped) {
                self.watch.look(iterator, now, &mut self.merge);
            }
            if some {
                idle = 0;
            } else {
                idle += 1;
                // An end that was dropped, or happened before the attach was complete, is not waited for forever.
                if idle.is_multiple_of(64) {
                    self.forget_ended();
                }
            }
            self.pause(Duration::from_micros(if idle > 8 { 4000 } else { 1000 }));
        }
        let mut cut_off = 0;
        if self.all_ended() {
            cut_off = self.see_them_out();
            // All that will come has come: it is shown while the programs are detached.
            self.round(u64::MAX);
        }
        self.shared.cut_off.store(cut_off, Ordering::Relaxed);
        self.shared.desk.close();
        self.loaded.say(&self.end, &mut self.merge);
        // Whatever the task storage says from here on is how things were when the programs went.
        self.loaded.detach();
        if self.shared.stop.load(Ordering::Acquire) {
            self.fill();
            let iterator = self.loaded.iterator.as_ref().filter(|_| !self.held.stopped);
            if self.whole {
                self.watch.leave_all(iterator, &mut self.merge);
            } else {
                self.watch.leave(iterator, &self.alive, &mut self.merge);
            }
        }
        self.round(u64::MAX);
        let _ = self.shared.losses.set((self.loaded.losses(), self.loaded.large_enough_buffer()));
        let _ = self.shared.filtered.set(filtered::count(&self.loaded));
        let enablings = self.loaded.probe_counts();
        if let Some(recorder) = &mut self.keep {
            recorder
                .set_counts(self.loaded.probes.iter().zip(&enablings).map(|(p, (_, n))| n.line(&p.label)).collect());
        }
        let _ = self.shared.cost.set(cost::Cost::of(&self.loaded, &enablings, self.measuring.take().is_some()));
        let _ = self.shared.enablings.set(enablings);
        let _ = self.shared.skipped.set(self.attribution.count(&self.loaded.misses()));
        if let Some(recorder) = &mut self.keep {
            for stream in self.loaded.streams() {
                recorder.set_lost(stream, self.loaded.dropped_on(stream));
            }
        }
        *self.shared.kept.lock().unwrap_or_else(PoisonError::into_inner) = self.keep.take();
        self.shared.backlog.finish();
    }

    /// Sleeps, but not beyond the command's end, behind which there often is nothing more to wait for.
    fn pause(&mut self, time: Duration) {
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

    /// Empties the rings once; whether anything came.
    fn round(&mut self, began: u64) -> bool {
        // A backlog that has no room, neither in memory nor on disk, leaves the rings to fill up, and to count.
        let room = !self.shared.backlog.is_full() && self.keep.as_ref().is_none_or(Recorder::has_room);
        let n = if room || began == u64::MAX { self.fill() } else { 0 };
        let mut chunk = Vec::new();
        let Drain { keep, live, .. } = self;
        self.merge.release(began, |stream, event| {
            if let Some(recorder) = keep {
                recorder.event(stream, event);
            }
            if *live {
                chunk.extend_from_slice(&(event.len() as u32).to_le_bytes());
                chunk.extend_from_slice(event);
            }
        });
        if !chunk.is_empty() {
            self.shared.backlog.push(chunk);
        }
        if let Some(recorder) = &mut self.keep {
            recorder.tick(began, |cpu| self.loaded.dropped_on(cpu));
        }
        if began >= self.next_count {
            self.shared.dropped.store(self.loaded.counts().1, Ordering::Relaxed);
            // To add up the counters of many probes takes longer than to empty their rings.
            let many = self.loaded.probes.len() > ring_set::OWN;
            self.next_count = if many { began.saturating_add(COUNT_NS) } else { 0 };
        }
        n > 0
    }

    /// Takes what is in the rings; returns how many events.
    fn fill(&mut self) -> usize {
        let Drain { loaded, merge, alive, leaving, whole, details, shared, restricted, executed, .. } = self;
        let mut leaving = loaded.sees_threads_go.then_some(leaving);
        let mut n = 0;
        for ((cpu, ring), passed) in (0..).zip(&mut loaded.rings).zip(&mut loaded.passed) {
            n += ring.drain(|event| {
                passed.add(event);
                if descriptors::is_raw(event) {
                    descriptors::event(event, *details).iter().for_each(|e| merge.push_from(cpu, e));
                    return;
                }
                if !*whole {
                    match (follow(event, alive), &mut leaving) {
                        (Some(Follows::Ended(tid)), Some(leaving)) => drop(leaving.insert(tid)),
                        (Some(Follows::Executed(comm)), _) if *restricted => *executed = comm.to_vec(),
                        (Some(Follows::LetGo), _) => note_let_go(shared, executed),
                        _ => {}
                    }
                } else if is_own_end(event) {
                    return;
                }
                merge.push_from(cpu, event);
            });
        }
        for (nth, set) in (1u32..).zip(&mut loaded.sets) {
            n += set.drain(|cpu, event| merge.push_from(nth << PROBE_SHIFT | cpu, event));
        }
        n
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

/// Takes down the name of a program that is let go.
fn note_let_go(shared: &Shared, comm: &[u8]) {
    const NAMED: usize = 4;
    let name = String::from_utf8_lossy(comm).into_owned();
    let mut let_go = shared.let_go.lock().unwrap_or_else(PoisonError::into_inner);
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
