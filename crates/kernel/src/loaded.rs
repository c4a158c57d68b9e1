//! What of a session is loaded into the kernel, and what it has counted.

use super::areas::Areas;
use super::buffers::Buffers;
use super::probes::AttachedProbe;
use super::programs::Later;
use super::ring::Ring;
use super::ring_set::RingSet;
use super::{stack_tables, task_iterator, unwinder};
use bpf::scratch;
use bpf::syscalls::state;
use engine::own_events;
use engine::stats::{Counts, Losses, NotCaptured, Passed, Spent, StackCounts, large_enough};
use events::StreamId;
use events::stream::Scope;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};
use std::time::Duration;
use sys::bpf::link::Link;
use sys::bpf::map::{Map, Values};
use sys::bpf::prog::Program;

/// The kernel's side of a session. Dropping it detaches everything.
pub struct Loaded {
    /// Task storage: who is traced.
    pub tasks: Arc<Map>,
    /// A ring per CPU.
    pub rings: Vec<Ring>,
    /// What was read from each ring.
    pub passed: Vec<Passed>,
    /// Probes other than calls.
    pub probes: Vec<AttachedProbe>,
    /// Their rings.
    pub sets: Vec<RingSet>,
    /// Shows the calls in flight, where this kernel can.
    pub iterator: Option<task_iterator::TaskIterator>,
    /// The rows of calls, where they may change.
    pub rows_of_calls: Option<Values>,
    pub(super) counters: Buffers,
    /// Why events of calls go through the kernel's rings; none: the programs write their rings themselves.
    pub kernel_rings: Option<&'static str>,
    /// A program counts the threads that are gone.
    pub sees_threads_go: bool,
    pub(super) links: Vec<Link>,
    /// Links that take a grace period of RCU each to close.
    pub(super) slow_links: Vec<Link>,
    /// What was loaded: where it is attached, and its instructions.
    pub sources: Vec<(String, bpf::Program)>,
    pub(super) programs: Vec<Program>,
    /// How many runs of each program the kernel had skipped when the session began.
    pub(super) missed_before: Vec<u64>,
    /// Where calls capture stacks.
    pub(super) areas: Option<Areas>,
    /// Keeps the tables for user stacks.
    pub(super) unwinder: Option<unwinder::Handle>,
    /// Kept for the programs.
    pub(super) maps: Arc<Vec<Map>>,
}

/// Detaches probes and closes links. Closing some takes long: a process that nobody waits for does it when trapline has ended.
pub(super) fn take_down(probes: &mut [AttachedProbe], slow_links: &[Link]) {
    probes.iter().for_each(AttachedProbe::stop);
    if !probes.is_empty() {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    let of_probes = probes.iter_mut().flat_map(|p| p.detach());
    let fds: Vec<BorrowedFd> = slow_links.iter().chain(of_probes).map(|l| l.as_fd()).collect();
    if !fds.is_empty() {
        sys::process::leave_behind(&fds);
    }
}

impl Loaded {
    /// Loads the iterator, where this kernel has one.
    pub fn add_iterator(&mut self, later: &Later) {
        // Without programs at entry nobody knows of them.
        let session = &later.session;
        let Some(btf) = later.btf.as_ref().filter(|_| !session.no_entry) else { return };
        self.iterator = task_iterator::load(btf, &later.maps, session.unknown, session.frames).ok();
        self.sources.extend(self.iterator.as_ref().map(|i| ("the task iterator".to_string(), i.source.clone())));
    }

    /// The command is about to begin, or all processes are attached to: runs that the kernel skipped before do not count.
    pub fn begin(&mut self) {
        self.missed_before = self.missed();
        self.probes.iter_mut().for_each(AttachedProbe::begin);
    }

    /// Detaches the programs: no event comes after this.
    pub fn detach(&mut self) {
        // The process that closes slow links is made while the others are attached, so that on a whole machine it is known as
        // trapline's own from its birth.
        take_down(&mut self.probes, &self.slow_links);
        self.links.clear();
    }

    /// Without programs at entry: arguments whose memory had to be read there, and wanted calls in which threads have ended.
    pub fn not_captured(&self) -> NotCaptured {
        NotCaptured { arguments: self.sum(scratch::TOO_LATE), calls: self.sum(scratch::UNRETURNED) }
    }

    /// Events seen by the programs, and events that found a ring full.
    pub fn counts(&self) -> (u64, u64) {
        let (seen, dropped) = self.probes.iter().fold((0, 0), |n, p| (n.0 + p.seen(), n.1 + p.dropped()));
        (seen + self.sum(scratch::SEEN) + self.sum(scratch::PUBLISHED), dropped + self.sum(scratch::DROPPED))
    }

    /// Events that were lost before they were in a ring.
    pub fn losses(&self) -> Losses {
        let of = |id: usize| (id as u16, self.sum(scratch::DROPPED_CLASSES + 8 * id as i16));
        let classes = (0..scratch::CLASSES).map(of).filter(|(_, n)| *n > 0).collect();
        Losses { total: self.counts().1, classes }
    }

    /// The `--buffer` with which no ring would have been full, in bytes; none where none was, or where no ring can be so large.
    pub fn large_enough_buffer(&self) -> Option<u64> {
        /// The kernel's limit of a ring.
        const MOST: u64 = 1 << 30;
        let share = self.sets.len().next_power_of_two() as u64;
        let calls = self.passed.iter().map(|passed| (passed, 1));
        let probes = self.sets.iter().flat_map(|s| &s.passed).map(|passed| (passed, share));
        let mut all = 0;
        for ((passed, share), stream) in calls.chain(probes).zip(self.streams()) {
            let dropped = self.dropped_on(stream);
            if let Some(ring) = self.ring_of(stream).filter(|_| dropped > 0) {
                all = all.max(large_enough(ring.size() as u64, *passed, dropped)?.checked_mul(share)?);
            }
        }
        (1..=MOST).contains(&all).then_some(all)
    }

    /// Threads that traced ones have made; traced threads that have reached their end; those of them that are gone.
    pub fn threads(&self) -> (u64, u64, u64) {
        // A thread is counted as born before it is counted as ended, and the counters are of several processors: those that are read later
        // know of every thread that those read earlier have counted.
        let [gone, ended, born] = [scratch::FREED, scratch::ENDED, scratch::BORN].map(|which| {
            let n = self.sum(which);
            fence(Ordering::Acquire);
            n
        });
        (born, ended, gone)
    }

    /// Events that filters rejected: by part, where the last number is for that part and all after it; and those that lack
    /// what their filter names. They are among those seen.
    pub fn filtered(&self) -> ([u64; scratch::PARTS], u64) {
        let part = |i: usize| self.sum(scratch::FILTERED + 8 * i as i16);
        (std::array::from_fn(part), self.sum(scratch::UNKNOWN))
    }

    /// Rejected events, by number of the call.
    pub fn filtered_calls(&self) -> Vec<(u64, u64)> {
        let of = |nr: usize| (nr as u64, self.sum(scratch::FILTERED_CALLS + 8 * nr as i16));
        (0..scratch::CALLS).map(of).filter(|(_, n)| *n > 0).collect()
    }

    /// A counter, of all processors.
    fn sum(&self, which: i16) -> u64 {
        self.counters.sum(which)
    }

    /// The streams that rings feed: the processors for calls, and for each set of rings of probes processors of its own.
    pub fn streams(&self) -> Vec<StreamId> {
        let cpus = (0..self.rings.len() as u32).map(StreamId::cpu);
        let probes = (1..)
            .zip(&self.sets)
            .flat_map(|(nth, s)| (0..s.passed.len() as u32).map(move |cpu| StreamId::new(Scope::Cpu(cpu), nth)));
        cpus.chain(probes).collect()
    }

    /// Events that found the ring of a stream full.
    pub fn dropped_on(&self, stream: StreamId) -> u64 {
        let Scope::Cpu(cpu) = stream.scope() else { return 0 };
        if let Some(nth) = stream.enabling().checked_sub(1) {
            return self.probes.iter().filter(|p| p.rings.0 == usize::from(nth)).map(|p| p.dropped_on(cpu)).sum();
        }
        self.counters.of_cpu(cpu, scratch::DROPPED)
    }

    /// The ring of a stream.
    pub fn ring_of(&self, stream: StreamId) -> Option<&Ring> {
        let Scope::Cpu(cpu) = stream.scope() else { return None };
        let rings = match stream.enabling().checked_sub(1) {
            None => &self.rings,
            Some(nth) => &self.sets.get(usize::from(nth))?.rings,
        };
        rings.get(cpu as usize)
    }

    /// Sets which events are skipped, of calls and of all other probes.
    pub fn switch(&self, to: u64) {
        self.counters.set(scratch::SWITCH, to);
        self.probes.iter().for_each(|p| p.switch(to));
    }

    /// What was counted of each enabling, by number.
    pub fn probe_counts(&self) -> Vec<(u32, Counts)> {
        let counts = |p: &AttachedProbe| Some((p.id, p.counts(self.sets.get(p.rings.0)?)));
        self.probes.iter().filter_map(counts).collect()
    }

    /// Keeps the tables of a process that joins the session.
    pub fn watch_stacks(&self, pid: i32) {
        self.unwinder.iter().for_each(|u| u.watch(pid as u32));
    }

    /// Waits until the tables of the command's files are there: 0.7 ms for the C library, 24 ms for a compiler, longer on a loaded machine.
    /// Without them its first stacks would end at the first frame.
    pub fn wait_for_tables(&self) {
        /// Time for 15 MB of unwind information on a machine that has ten times as much to do as processors.
        const PATIENCE: Duration = Duration::from_secs(2);
        self.unwinder.iter().for_each(|u| u.wait_for_expected(PATIENCE));
    }

    /// What was counted of stacks.
    pub fn stack_counts(&self) -> StackCounts {
        let mut all = self.areas.as_ref().map(Areas::counts).unwrap_or_default();
        self.probes.iter().for_each(|p| all.add(&p.stacks()));
        all.tables = self.unwinder.as_ref().map(|u| stack_tables::counted(&u.counts())).unwrap_or_default();
        all
    }

    /// Events of the session itself, of these classes.
    pub fn say(&self, classes: &[&'static events::Schema], merge: &mut engine::pipeline::merge::Merge) {
        let pid = sys::process::own_pid() as u32;
        for schema in classes {
            merge.push(&own_events::process(schema, sys::time::monotonic(), (pid, pid), &[], &[]));
        }
    }

    /// Name of each program, and its missed runs since the session began.
    pub fn misses(&self) -> Vec<(String, u64)> {
        let names = self.programs.iter().map(|p| sys::bpf::info::program(p).map(|p| p.name).unwrap_or_default());
        let before = self.missed_before.iter().copied().chain(std::iter::repeat(0));
        names.zip(self.missed().iter().zip(before).map(|(now, before)| now.saturating_sub(before))).collect()
    }

    /// All missed runs of each program; 0 where the kernel does not report them.
    fn missed(&self) -> Vec<u64> {
        self.programs.iter().map(|p| sys::bpf::info::program(p).map_or(0, |p| p.recursion_misses)).collect()
    }

    /// What the programs of calls and tasks have cost, where the kernel has measured it.
    pub fn spent(&self) -> Vec<Spent> {
        let told = self.programs.iter().filter_map(|p| sys::bpf::info::program(p).ok());
        told.map(|p| Spent { name: p.name, runs: p.run_count, ns: p.run_time_ns }).collect()
    }

    /// Traces the task of a pidfd, starting in this state.
    pub fn trace(&self, pidfd: &impl AsRawFd, value: &[u8; state::SIZE as usize]) -> io::Result<()> {
        self.tasks.update(&pidfd.as_raw_fd().to_le_bytes(), value, 0)
    }
}
