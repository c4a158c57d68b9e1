//! The perf backend: samples with copied stacks, for users who may not use bpf(2).
//!
//! ```text
//! clock of each thread ─► registers, 32 KiB of the stack ─► ring per CPU ─► merge by time ─► walk by tables ─► events
//! mappings, forks, names, ends ───────────────────────────────┘
//! /proc, every few ms: threads that do not run ───────────────────────────────────────────────────► events
//! ```
//!
//! The kernel copies the inner part of the stack of the interrupted thread into the ring; the drain thread walks it while the target runs
//! on. Only frames are kept. Records of all CPUs are taken in order of time, so that a stack is walked with the mappings that it was
//! taken with. Tables are built by another thread, and the rings are emptied meanwhile.
//!
//! The command waits at a pipe until its events are open; they are switched on by its exec, and inherited by what it starts.

mod processes;
mod rings;
mod samples;
mod sleepers;

use engine::backend::code::build_beside;
use engine::backend::launch::{Launched, Waiting};
use engine::control::{self, Order, State, Stream};
use engine::error::{Error, Result};
use engine::own_events;
use engine::pipeline::backend::{Backend, Deliver, Polled};
use engine::pipeline::merge::Merge;
use engine::plan::Plan;
use engine::stats::{Cost, Losses, Report, large_enough};
use engine::target::Target;
use events::StreamId;
use events::generated as g;
use events::stream::Scope;
use processes::{Ahead, Processes};
pub use rings::can_carry;
use rings::{Begin, Rings};
use samples::{Each, Samples};
use sleepers::{Sleepers, Slept};
use std::collections::HashMap;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;
use sys::perf::record::Record;
use sys::ptrace::Change;
use sys::{proc, process, time};

/// The most bytes that wait for tables; then the rings fill up, and count.
const MOST_WAITING: usize = 256 << 20;
/// A record may become visible so long after its time: the kernel copies the stack meanwhile.
const LATE: u64 = 1_000_000;
/// `CLONE_VM | CLONE_THREAD`.
const CLONE_THREAD: u64 = 0x100 | 0x1_0000;

/// A running session.
pub struct Perf {
    rings: Rings,
    merge: Merge,
    /// What the mappings among the records that wait have of traced functions.
    ahead: Ahead,
    /// Records in order, which are being worked off.
    batch: Batch,
    processes: Processes,
    samples: Samples,
    sleepers: Vec<Sleepers>,
    /// Clocks that the kernel has stopped: since when.
    throttled: HashMap<(u64, u64), u64>,
    /// Events of trapline's own making, which are to be handed over.
    own: Vec<Vec<u8>>,
    labels: Vec<String>,
    command: Launched,
    /// Readable from the command's end on; none: its end was seen, or there is no command.
    ended: Option<OwnedFd>,
    held: bool,
    /// Records say that something was lost since it was last counted.
    loses: bool,
    stopping: bool,
    /// Since when nothing ticks any more: it ends once it is known what was called until then.
    ending: Option<u64>,
    over: bool,
    idle: u32,
    report: Report,
}

#[derive(Default)]
struct Batch {
    bytes: Vec<u8>,
    /// Stream and length of each record.
    index: Vec<(StreamId, usize)>,
}

impl Perf {
    /// Opens the events, and starts the command or attaches.
    ///
    /// # Errors
    /// The user may not; a target that is not there.
    pub fn start(plan: &Plan) -> Result<Perf> {
        if matches!(plan.target, Target::All { .. }) {
            let why = "stacks are copied of a command's or a process's threads only";
            return Err(Error::usage("-a", why, "use the kernel backend, or -p PID"));
        }
        // What the file's capabilities would allow is not the user's.
        engine::rights::act_as_the_user();
        let mut waiting = match &plan.target {
            Target::Command(cmd) => Some(Waiting::fork(cmd, &[])?),
            _ => None,
        };
        let mut perf = Perf::new(plan, plan.buffer)?;
        match (&mut waiting, &plan.target) {
            (Some(waiting), _) => perf.begin(waiting)?,
            (None, target) => perf.attach_to(target)?,
        }
        Ok(perf)
    }

    /// Opens the events beside a backend that has started the command, which has executed nothing yet, or that attaches.
    ///
    /// # Errors
    /// The user may not; a target that is not there.
    pub fn beside(plan: &Plan, command: Option<i32>) -> Result<Perf> {
        let mut perf = Perf::new(plan, plan.samples_beside.unwrap_or(plan.buffer))?;
        match command {
            Some(pid) => perf.open(pid)?,
            None => perf.attach_to(&plan.target)?,
        }
        Ok(perf)
    }

    /// Without any target. `buffer`: bytes of a ring.
    fn new(plan: &Plan, buffer: usize) -> Result<Perf> {
        let _ = process::raise_file_limit();
        let probes: Vec<_> = plan.probes().collect();
        let rings = Rings::new(&probes, plan.copied_stack, buffer)?;
        let mut perf = Perf {
            rings,
            merge: Merge::default(),
            ahead: Ahead::default(),
            batch: Batch::default(),
            processes: Processes::new(plan.callers.clone()),
            samples: Samples::new(&plan.enablings),
            sleepers: Sleepers::of(&probes),
            throttled: HashMap::new(),
            own: Vec::new(),
            labels: plan.probes().map(|e| e.label()).collect(),
            command: Launched::default(),
            ended: None,
            held: plan.named && plan.paused,
            loses: false,
            stopping: false,
            ending: None,
            over: false,
            idle: 0,
            report: Report::default(),
        };
        if perf.held {
            perf.mark(&g::P_PAUSED);
        }
        Ok(perf)
    }

    /// Opens the events of the processes of the target.
    fn attach_to(&mut self, target: &Target) -> Result<()> {
        let Target::Pids(pids) = target else { return Ok(()) };
        for pid in pids {
            self.attach(proc::process_of(*pid).unwrap_or(*pid))?;
        }
        if !self.held {
            self.rings.tick(true);
        }
        Ok(())
    }

    /// Opens the events of a command that has executed nothing yet.
    fn open(&mut self, pid: i32) -> Result<()> {
        let begin = if self.held { Begin::Told } else { Begin::Exec };
        self.rings.add(pid, begin).map_err(|e| of_command(&e))?;
        self.processes.begin(pid as u32, pid as u32, b"trapline".to_vec());
        Ok(())
    }

    /// Opens the events of the command, and releases it.
    fn begin(&mut self, waiting: &mut Waiting) -> Result<()> {
        let pid = waiting.pid;
        self.open(pid)?;
        self.ended = Some(process::pidfd(pid, false).map_err(|e| of_command(&e))?);
        waiting.release();
        self.command = Launched::new(pid, waiting.failure());
        Ok(())
    }

    /// Opens the events of all threads of a process.
    fn attach(&mut self, pid: i32) -> Result<()> {
        let what = || format!("-p {pid}");
        let mut known: Vec<i32> = Vec::new();
        loop {
            let gone = |_| Error::failed(what(), "no such process", "see 'ps -e'");
            let all = proc::threads(pid).map_err(gone)?;
            let fresh: Vec<i32> = all.into_iter().filter(|tid| !known.contains(tid)).collect();
            if fresh.is_empty() {
                break;
            }
            for tid in fresh {
                self.rings.add(tid, Begin::Told).map_err(|e| refused(what(), &e))?;
                known.push(tid);
                let (uid, gid) = engine::backend::ids::ids(tid);
                let comm = proc::comm(tid).unwrap_or_default();
                let who = (pid as u32, tid as u32);
                self.own.push(own_events::process(&g::P_ATTACH, time::monotonic(), who, &[0, uid, gid], &[&comm]));
            }
        }
        self.processes.attach(pid as u32, &known);
        Ok(())
    }

    /// Up to when samples can be taken, ns: until now, or until it is known which functions were called.
    pub fn known(&self) -> u64 {
        let known = self.processes.callers.as_ref().map_or(u64::MAX, |callers| callers.get().known());
        known.min(time::monotonic())
    }

    fn mark(&mut self, schema: &'static events::Schema) {
        let own = process::own_pid() as u32;
        self.own.push(own_events::process(schema, time::monotonic(), (own, own), &[], &[]));
    }

    fn hold(&mut self, held: bool) {
        if held != self.held {
            self.held = held;
            self.rings.tick(!held);
            self.mark(if held { &g::P_PAUSED } else { &g::P_RESUMED });
        }
    }

    /// Whether all that was traced has ended.
    fn all_ended(&self) -> bool {
        self.ended.is_none() && !self.processes.are_there()
    }

    /// Hands over what is older than `until`; returns how many records there were.
    fn round(&mut self, until: u64, each: Each<'_>) -> usize {
        self.own.drain(..).for_each(|event| each(StreamId::TRACER, &event));
        self.rings.drain(&mut self.merge, &mut self.ahead);
        // What is seen of blocked threads has the time of the look, and no record may come later that is older.
        let until = if self.sleepers.is_empty() || until == u64::MAX { until } else { until.saturating_sub(LATE) };
        let Batch { bytes, index } = &mut self.batch;
        bytes.clear();
        index.clear();
        self.merge.release(until, |stream, record| {
            index.push((stream, record.len()));
            bytes.extend_from_slice(record);
        });
        let batch = std::mem::take(&mut self.batch);
        let mut rest = &batch.bytes[..];
        for (stream, len) in &batch.index {
            let (record, after) = rest.split_at(*len);
            rest = after;
            self.take(*stream, record, each);
        }
        let n = batch.index.len();
        self.batch = batch;
        self.processes.callers.iter().for_each(|callers| callers.get().settle(Merge::watermark(until)));
        let now = if until == u64::MAX { time::monotonic() } else { until };
        n + self.look_at_sleepers(now, each)
    }

    /// Looks at threads that do not run, where it is time to; returns how many events that were.
    fn look_at_sleepers(&mut self, now: u64, each: Each<'_>) -> usize {
        let Perf { processes, samples, sleepers, .. } = self;
        let mut n = 0;
        for sleepers in sleepers {
            let nth = sleepers.nth;
            let pids: Vec<u32> = processes.pids().collect();
            let mut tell = |slept: &Slept<'_>| {
                n += 1;
                samples.slept(nth, slept, processes, each);
            };
            match self.held || self.stopping {
                true => sleepers.pause(now, &mut tell),
                false => sleepers.look(now, pids.into_iter(), &mut tell),
            }
        }
        n
    }

    /// Works a record off.
    fn take(&mut self, stream: StreamId, bytes: &[u8], each: Each<'_>) {
        let Perf { rings, merge, ahead, processes, samples, sleepers, .. } = self;
        let mut say = |schema, time, who, args: &[u64], tails: &[&[u8]]| {
            each(stream, &own_events::process(schema, time, who, args, tails));
        };
        match rings.parse(bytes) {
            Record::Sample(sample) => {
                if let Some(nth) = rings.enabling(sample.stamp.id) {
                    samples.take(nth, &sample, processes, each);
                }
            }
            Record::Mapping(m, _) => {
                let mut later = Ahead::default();
                let meanwhile = || {
                    if merge.waiting() < MOST_WAITING {
                        rings.drain(merge, &mut later);
                    }
                    std::thread::sleep(Duration::from_millis(1));
                };
                let mut meanwhile = meanwhile;
                sleepers.iter_mut().for_each(|s| s.forget(m.who.0));
                processes.map(&m, ahead, &mut |bytes| build_beside(bytes, &mut meanwhile));
                ahead.append(&mut later);
            }
            Record::Comm { who, exec: true, name, stamp } => {
                sleepers.iter_mut().for_each(|s| s.forget(who.0));
                processes.exec(who.0, name, stamp.time);
                let (uid, gid) = processes.ids(who.0, who.1);
                let args = [0, who.1.into(), uid.into(), gid.into()];
                say(&g::P_EXEC, stamp.time, who, &args, &[name]);
            }
            Record::Comm { who, name, .. } => processes.rename(who, name),
            Record::Fork { who, parent, time } => {
                processes.fork(who, parent, time);
                let flags = if who.0 == parent.0 { CLONE_THREAD } else { 0 };
                let args = [0, who.0.into(), who.1.into(), flags];
                say(&g::P_FORK, time, parent, &args, &[processes.comm(parent.1)]);
            }
            Record::Exit { who, time } => {
                for sleepers in sleepers.iter_mut() {
                    let nth = sleepers.nth;
                    sleepers.ended(who.1, time, &mut |slept| samples.slept(nth, slept, processes, each));
                }
                processes.exit(who, time);
                if processes.code(who.0).is_none() {
                    sleepers.iter_mut().for_each(|s| s.forget(who.0));
                }
                // The record does not tell how.
                each(stream, &own_events::process(&g::P_EXIT, time, who, &[0, 0, 0], &[]));
            }
            Record::Lost(n) => {
                rings.note_lost(stream, n);
                self.loses = true;
            }
            Record::Throttle { over: false, id, time } => drop(self.throttled.insert(id, time)),
            Record::Throttle { over: true, id, time } => {
                let Some(nth) = rings.enabling(id.0) else { return };
                let since = self.throttled.remove(&id);
                let ticks = since.and_then(|since| time.saturating_sub(since).checked_div(rings.period(nth)));
                samples.missed(nth, ticks.unwrap_or(0));
            }
            Record::Other(_) => {}
        }
    }

    /// Reads the end of the command, if it has ended.
    fn collect_command(&mut self) {
        if self.ended.is_none() {
            self.command.status(false);
        }
    }

    /// Ends the session, once no event ticks any more: the rest is handed over.
    fn end(&mut self, each: Each<'_>) -> usize {
        let mut n = self.round(u64::MAX, each);
        // What has come while tables were built.
        n += self.round(u64::MAX, each);
        self.rings.count_lost();
        self.over = true;
        self.report = self.counted();
        n
    }

    fn losses(&self) -> Losses {
        Losses { total: (0..self.labels.len()).map(|nth| self.rings.dropped(nth)).sum(), classes: Vec::new() }
    }

    fn counted(&self) -> Report {
        let enablings = self.samples.counts(|nth| self.rings.dropped(nth));
        let files = &self.processes.files;
        let mut stacks = self.samples.stacks.clone();
        stacks.tables = vec![
            ("modules", files.built),
            ("build_ns", files.build_ns),
            ("unreadable", files.unreadable),
            ("lost_records", self.rings.lost()),
            ("snapshots", self.processes.snapshots),
            ("updates", self.processes.updates),
        ];
        let losses = self.losses();
        Report {
            // More than this is hardly allowed by any limit on locked memory.
            large_enough_buffer: large_enough(self.rings.size as u64, self.rings.passed, losses.total)
                .filter(|n| *n <= 64 << 20),
            lines: self.labels.iter().zip(&enablings).map(|(label, (_, n))| n.line(label)).collect(),
            cost: Some(Cost { programs: None, drain_ns: time::of_thread() }),
            losses,
            stacks,
            enablings,
            ..Report::default()
        }
    }
}

/// Why the command cannot be sampled.
fn of_command(e: &std::io::Error) -> Error {
    Error::failed("the command", e.to_string(), "see 'trapline doctor'")
}

/// Why a process cannot be attached to.
fn refused(what: String, e: &std::io::Error) -> Error {
    const EMFILE: i32 = 24;
    if e.raw_os_error() == Some(EMFILE) {
        let why = "each of its threads takes two descriptors and more per CPU, and there are too many";
        return Error::failed(what, why, "raise 'ulimit -Hn', or run trapline as root");
    }
    let why = match e.kind() {
        std::io::ErrorKind::PermissionDenied => {
            "not permitted: the process belongs to another user or is privileged".to_string()
        }
        _ => e.to_string(),
    };
    Error::failed(what, why, "run as root, or name a process of your own")
}

impl Backend for Perf {
    fn name(&self) -> &'static str {
        "perf"
    }

    fn poll(&mut self, room: bool, each: &mut dyn Deliver) -> Polled {
        if self.over {
            return Polled { events: 0, ended: true };
        }
        let mut events = 0;
        if room {
            events = self.round(self.known(), &mut |stream, event| each.event(stream, event));
        }
        self.idle = if events > 0 { 0 } else { self.idle + 1 };
        if self.idle % 64 == 63 {
            self.processes.forget_ended();
        }
        if std::mem::take(&mut self.loses) {
            self.rings.count_lost();
        }
        if self.stopping || self.all_ended() {
            self.stopping = true;
            let since = *self.ending.get_or_insert_with(|| {
                self.rings.tick(false);
                time::monotonic()
            });
            if self.known() >= since {
                events += self.end(&mut |stream, event| each.event(stream, event));
            }
        }
        self.collect_command();
        Polled { events, ended: self.over }
    }

    fn gather(&mut self) {
        if self.merge.waiting() < MOST_WAITING {
            self.rings.drain(&mut self.merge, &mut self.ahead);
        }
    }

    fn wait(&mut self, timeout: Duration) {
        let fds: Vec<_> = self.ended.iter().map(|fd| fd.as_fd()).chain(self.rings.fds()).collect();
        let next = self.sleepers.iter().map(|s| s.until_next(LATE)).min();
        let _ = process::wait_any(&fds, Some(next.map_or(timeout, |next| timeout.min(next))));
        drop(fds);
        let over = |fd: &OwnedFd| process::wait_readable(fd, Duration::ZERO).unwrap_or(true);
        if self.ended.as_ref().is_some_and(over) {
            self.ended = None;
        }
    }

    fn control(&mut self, order: Order) -> Result<State> {
        if self.over {
            return Err(control::ended());
        }
        match &order {
            // Its probes stay as they are; functions are the agent's.
            Order::Status | Order::Enable(_) => {}
            Order::Stop => self.hold(true),
            Order::Start => self.hold(false),
            Order::Lend(_) | Order::TakeBack(_) | Order::TakeOut => {}
            Order::Attach(pid) | Order::Detach(pid) => return Err(control::unable(format!("-p {pid}"), "perf")),
        }
        self.rings.count_lost();
        let stream = |cpu| {
            let dropped = (0..self.labels.len()).map(|nth| self.rings.dropped_on(cpu, nth)).sum();
            Stream { name: StreamId::cpu(cpu).to_string(), used: 0, size: self.rings.size as u64, dropped }
        };
        Ok(State {
            streams: self.rings.cpus().map(stream).collect(),
            losses: self.losses(),
            enablings: self.samples.counts(|nth| self.rings.dropped(nth)),
            running: self.processes.pids().map(|pid| pid as i32).collect(),
            ..State::default()
        })
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

    fn failure(&mut self, plan: &Plan) -> Option<Error> {
        self.command.error(&plan.target)
    }

    fn streams(&self) -> Vec<StreamId> {
        let nths = 0..=self.labels.len() as u16;
        nths.flat_map(|nth| self.rings.cpus().map(move |cpu| StreamId::new(Scope::Cpu(cpu), nth))).collect()
    }

    fn dropped_on(&self, stream: StreamId) -> u64 {
        let all = (0..self.labels.len()).flat_map(|nth| self.rings.cpus().map(move |cpu| (nth, cpu)));
        let of = |(nth, cpu): &(usize, u32)| StreamId::new(Scope::Cpu(*cpu), *nth as u16 + 1) == stream;
        all.into_iter().find(of).map_or(0, |(nth, cpu)| self.rings.dropped_on(cpu, nth))
    }

    fn report(&mut self) -> Report {
        std::mem::take(&mut self.report)
    }
}
