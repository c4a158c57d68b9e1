//! A traced process, as the backend sees it.

use super::allocations::{Allocations, Heap};
use super::bounds::Bounds;
use super::chunks::Chunks;
use super::open_calls::{OpenCalls, held};
use super::probe_events::ProbeEvents;
use super::record_filter::RecordFilter;
use super::server::Begun;
use super::sums::Rows;
use super::tree::Tree;
use super::tsc_clock::TscClock;
use engine::callers::Handle;
use engine::pipeline::backend::Deliver;
use events::StreamId;
use events::functions::{HIGH, Moment, RECORD, Run, time, word};
use events::stream::Scope;
use std::collections::{HashMap, HashSet};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};
use sys::agent::Held;
use sys::{proc, process};

/// How often it is looked which threads have ended.
const LOOK: Duration = Duration::from_millis(100);

/// A traced process.
pub struct Process {
    /// As trapline numbers it.
    pub pid: i32,
    own_pid: u32,
    /// Its name when it began.
    comm: Vec<u8>,
    chunks: Chunks,
    _held: Held,
    ended: OwnedFd,
    /// Another program has taken its place: what is left is read once.
    replaced: bool,
    /// Threads that were there when it was last looked: as the process numbers them, and as trapline does.
    threads: HashMap<u32, u32>,
    looked: Option<Instant>,
    /// Threads with chunks, and since when: one that was not there when it was looked after that is gone.
    seen: HashMap<u32, Instant>,
    /// Threads of which records were delivered, as trapline numbers them.
    begun: HashSet<u32>,
    /// Where allocations are recorded.
    pub allocations: Option<Allocations>,
    /// Records of functions and probes among those of allocations.
    others: Vec<u8>,
    /// Records of functions among those of probes.
    of_others: Vec<u8>,
    /// Records of its threads that were dropped.
    pub dropped: u64,
    bounds: Bounds,
    /// Where sums are kept instead of records.
    rows: Option<Rows>,
    /// Where entries are written late.
    open: Option<OpenCalls>,
    /// Gets to know where functions were called from.
    callers: Option<Handle>,
    /// Records without those that say so.
    of_callers: Vec<u8>,
}

impl Process {
    /// One that has begun.
    pub fn new(begun: Begun, allocations: Option<Allocations>, callers: Option<Handle>) -> Process {
        let threads = proc::threads(begun.pid).map_or(1, |all| all.len());
        Process {
            pid: begun.pid,
            own_pid: begun.own_pid,
            comm: begun.comm.unwrap_or_default(),
            rows: begun.sums.map(|shape| Rows::new(shape, begun.shared.chunks())),
            chunks: Chunks::new(begun.shared),
            _held: begun.held,
            ended: begun.ended,
            replaced: false,
            threads: HashMap::new(),
            looked: None,
            seen: HashMap::new(),
            begun: HashSet::new(),
            allocations,
            others: Vec::new(),
            of_others: Vec::new(),
            dropped: 0,
            bounds: Bounds::new(threads),
            open: begun.minimum.map(OpenCalls::new),
            callers,
            of_callers: Vec::new(),
        }
    }

    /// Records that threads have dropped since their last chunks.
    pub fn pending(&mut self) -> u64 {
        let [pending, ..] = self.chunks.shared().counts();
        self.bounds.lost(pending, self.dropped)
    }

    /// Programs that it was about to execute, and into which the agent could not follow.
    pub fn left(&mut self) -> u64 {
        let [.., left] = self.chunks.shared().counts();
        self.bounds.programs(left)
    }

    /// Whether it has said what cannot be true: it has written over the memory that it shares with trapline.
    pub fn is_broken(&self) -> bool {
        self.bounds.broken
    }

    /// Looks which calls are open, if it is time to, or `now`, and entries are written late.
    pub fn look_at_open_calls(&mut self, now: bool) {
        let others = self.threads.values().map(|tid| *tid as i32);
        if let Some(open) = &mut self.open {
            open.look(self.chunks.shared(), [self.pid].into_iter().chain(others), now);
        }
    }

    /// Another program runs in it now.
    pub fn replace(&mut self) {
        self.replaced = true;
    }

    /// Whether another program has taken its place.
    pub fn is_replaced(&self) -> bool {
        self.replaced
    }

    /// Up to when all of its calls are known, where sums are kept of them.
    pub fn complete(&self) -> Option<u64> {
        self.rows.as_ref().map(Rows::complete)
    }

    /// Its chunks.
    pub fn chunks(&self) -> &Chunks {
        &self.chunks
    }

    /// Bytes of records that wait to be read.
    pub fn waiting(&mut self) -> usize {
        self.chunks.waiting()
    }

    /// How many threads have written records, of those that were there when it was last looked.
    pub fn threads(&self) -> usize {
        let allocates = |tid: &u32| self.allocations.as_ref().is_some_and(|a| a.has(*tid));
        self.threads.values().filter(|tid| self.begun.contains(tid) || allocates(tid)).count()
    }

    /// The stream of a thread of its, by the thread's number in trapline's namespace. Enabling 0 is for calls.
    fn stream(tid: u32) -> StreamId {
        StreamId::new(Scope::Thread(tid), 1)
    }

    /// Looks which threads there are, unless it has just done so; whether it has looked.
    fn look(&mut self) -> bool {
        if self.looked.is_some_and(|at| at.elapsed() < LOOK) {
            return false;
        }
        self.looked = Some(Instant::now());
        let tids = proc::threads(self.pid).unwrap_or_default();
        let same = self.own_pid == self.pid as u32;
        let own = |tid: i32| {
            if same { Some(tid as u32) } else { proc::own_id(tid).map(|id| id as u32) }
        };
        self.threads = tids.iter().filter_map(|tid| Some((own(*tid)?, *tid as u32))).collect();
        self.bounds.have_seen(self.threads.keys());
        true
    }

    /// Threads with records, other than the first, that are not there any more. The kernel's list of threads may lack one while others
    /// end, so the thread itself is asked for too.
    fn ended_threads(&self) -> Vec<u32> {
        let there: HashSet<u32> = self.threads.values().copied().collect();
        let is_gone = |tid: &&u32| **tid != self.pid as u32 && !there.contains(tid) && !proc::exists(**tid as i32);
        self.begun.iter().filter(is_gone).copied().collect()
    }

    /// Delivers what is new and passes `record_filter`; notifies `tree` of threads that begin and end. Returns how many records were read, and
    /// whether nothing will come any more, as it is with the `last` call. `dropped` counts by stream. `heap` knows the processes of the
    /// session, where allocations are recorded; `probes` takes the records of probes.
    #[allow(clippy::too_many_arguments)]
    pub fn read(
        &mut self,
        last: bool,
        moments: &mut TscClock,
        record_filter: &mut RecordFilter,
        (heap, mut probes): (Option<&Heap>, Option<&mut ProbeEvents>),
        dropped: &mut HashMap<StreamId, u64>,
        mut tree: Option<&mut Tree>,
        each: &mut dyn Deliver,
    ) -> (usize, bool) {
        if self.rows.is_some() {
            return self.read_sums(last, moments, record_filter, dropped, tree, each);
        }
        let (over, ended) = self.begin_round(tree.is_some());
        let at = sys::time::monotonic();
        let Process {
            pid,
            own_pid,
            comm,
            chunks,
            threads,
            looked,
            seen,
            begun,
            dropped: lost,
            allocations,
            others,
            of_others,
            bounds,
            open,
            callers,
            of_callers,
            ..
        } = self;
        let same = *own_pid == *pid as u32;
        // The kernel's list of threads may lack one while others end, so the thread itself is asked for too.
        let gone = |tid: u32| {
            seen.get(&tid).is_some_and(|since| looked.is_some_and(|at| at > *since))
                && !threads.contains_key(&tid)
                && !(same && proc::exists(tid as i32))
        };
        let to = moments.now();
        if allocations.is_some() {
            chunks.shared().tell_time(to.tsc);
        }
        let impossible = record_filter.impossible();
        bounds.begin_round();
        let (mut callers, mut told) = (callers.as_ref().map(Handle::get), std::mem::take(of_callers));
        let table = chunks.shared().threads();
        // Before the records: a thread says in its next chunk what it has lost.
        if chunks.shared().counts()[0] > 0 {
            callers.iter_mut().for_each(|callers| callers.doubt(*pid as u32));
        }
        let records = chunks.read(over, gone, |mut run| {
            let tid = match threads.get(&run.tid) {
                Some(tid) => *tid,
                None if run.tid == *own_pid => *pid as u32,
                None if same && proc::has_thread(*pid, run.tid as i32) || bounds.has_thread(run.tid) => run.tid,
                // Nobody's records.
                None => return,
            };
            run.dropped = bounds.lost(run.dropped, *lost);
            if let Some(callers) = &mut callers {
                let lost = (run.dropped > 0).then(|| held(*pid, table, run.tid, run.pair.0));
                told.clear();
                callers.take(tid, run.high, run.records, lost, &mut told);
            }
            let records = if callers.is_some() { &told[..] } else { run.records };
            let stream = Process::stream(tid);
            let all = dropped.entry(stream).or_default();
            *all = all.saturating_add(run.dropped);
            *lost = lost.saturating_add(run.dropped);
            if let Some(open) = open.as_mut() {
                open.written(run.tid, run.high, records);
            }
            let taken = run.pair.0;
            let run = Run {
                stream,
                pid: *pid as u32,
                begins: !begun.contains(&tid),
                records,
                high: run.high,
                from: moments.at(taken),
                to,
                dropped: run.dropped,
            };
            // With a minimum of time, an entry is written when its call ends, with its own time.
            let first = first_record(&run).filter(|tsc| *tsc < taken);
            let run = first.map_or(run, |tsc| Run { from: moments.at(tsc), ..run });
            let run = match (allocations.as_mut(), heap) {
                (Some(allocations), Some(heap)) => {
                    let taken = allocations.take(&run, others, |own| heap.parent(own));
                    if others.is_empty() && (taken > 0 || run.dropped == 0) {
                        return;
                    }
                    Run { records: others, ..run }
                }
                _ => run,
            };
            let mut rest = std::mem::take(of_others);
            let run = match probes.as_deref_mut() {
                Some(probes) => {
                    let taken = probes.take(&run, &mut rest, each);
                    if rest.is_empty() && (taken > 0 || run.dropped == 0) {
                        *of_others = rest;
                        return;
                    }
                    Run { records: &rest, ..run }
                }
                None => run,
            };
            if let Some(run) = record_filter.take(&run) {
                if begun.insert(tid)
                    && tid != *pid as u32
                    && let Some(tree) = &mut tree
                {
                    tree.thread_begins((*pid as u32, tid), begins_at(&run, moments), comm);
                }
                each.functions(&run);
            }
            *of_others = rest;
        });
        drop(callers);
        *of_callers = told;
        bounds.broken |= record_filter.impossible() != impossible;
        if over || last {
            self.deliver_open_calls(to, (moments, record_filter), tree.as_deref_mut(), each);
        } else {
            self.look_at_open_calls(false);
        }
        if let Some(tree) = tree {
            self.end_threads(ended, over, at, tree);
        }
        // What a thread has dropped is in the header of its next chunk; what is left has no chunk to say it.
        if over || last {
            self.deliver_pending(to, dropped, each);
        }
        (records, over || last)
    }

    /// [`Process::read`] where sums are kept: reads rows instead of records.
    fn read_sums(
        &mut self,
        last: bool,
        moments: &mut TscClock,
        record_filter: &mut RecordFilter,
        dropped: &mut HashMap<StreamId, u64>,
        mut tree: Option<&mut Tree>,
        each: &mut dyn Deliver,
    ) -> (usize, bool) {
        let has_ended = self.replaced || process::wait_readable(&self.ended, Duration::ZERO).unwrap_or(true);
        if !has_ended && !last && !self.rows.as_mut().is_some_and(Rows::is_due) {
            return (0, false);
        }
        let (over, ended) = self.begin_round(tree.is_some());
        let to = moments.now();
        let Process { pid, own_pid, comm, chunks, threads, looked, seen, begun, dropped: lost, bounds, rows, .. } =
            self;
        let (pid, own_pid, same) = (*pid as u32, *own_pid, *own_pid == *pid as u32);
        let gone = |tid: u32| {
            seen.get(&tid).is_some_and(|since| looked.is_some_and(|at| at > *since))
                && !threads.contains_key(&tid)
                && !(same && proc::exists(tid as i32))
        };
        bounds.begin_round();
        let Some(rows) = rows else { return (0, over || last) };
        let since = rows.begin_round(to.monotonic);
        let read = chunks.read_rows(rows, over || last, gone, |own, added| {
            let tid = match threads.get(&own) {
                Some(tid) => *tid,
                None if own == own_pid => pid,
                None if same && proc::has_thread(pid as i32, own as i32) || bounds.has_thread(own) => own,
                // Nobody's rows.
                None => return,
            };
            let is_new = begun.insert(tid);
            if let Some(tree) = tree.as_mut().filter(|_| is_new && tid != pid) {
                tree.thread_begins((pid, tid), to.monotonic, comm);
            }
            match added {
                Ok(sums) => {
                    record_filter.note_sums(&sums);
                    each.event(Process::stream(tid), &sums.event(since, (pid, tid)));
                }
                Err(n) => {
                    let n = bounds.lost(n, *lost);
                    *lost = lost.saturating_add(n);
                    let all = dropped.entry(Process::stream(tid)).or_default();
                    *all = all.saturating_add(n);
                    each.functions(&lost_run(Process::stream(tid), pid, (is_new, n), to));
                }
            }
        });
        // Memory that cannot be read: what the process has counted since is not known.
        bounds.broken |= read.is_err();
        if let Some(tree) = tree {
            self.end_threads(ended, over, to.monotonic, tree);
        }
        if over || last {
            self.deliver_pending(to, dropped, each);
        }
        (read.unwrap_or(0), over || last)
    }

    /// Looks which threads there are. Returns whether the process is over, and the threads that have ended, if anybody `asks` for them.
    fn begin_round(&mut self, asks: bool) -> (bool, Vec<u32>) {
        // Before the records: a thread that is gone then has written all of its.
        let over = self.replaced || process::wait_readable(&self.ended, Duration::ZERO).unwrap_or(true);
        let looked_now = !over && self.look();
        // Those that have ended by now have written all of their records.
        let ended = if asks && looked_now { self.ended_threads() } else { Vec::new() };
        let now = Instant::now();
        let mut seen = std::mem::take(&mut self.seen);
        seen.retain(|tid, _| self.chunks.threads().any(|t| t == *tid));
        self.chunks.threads().for_each(|tid| {
            seen.entry(tid).or_insert(now);
        });
        self.seen = seen;
        (over, ended)
    }

    /// Notifies `tree` of threads that have ended by that time: all, where the process is over. The end of the first is that of the process.
    fn end_threads(&mut self, ended: Vec<u32>, over: bool, at: u64, tree: &mut Tree) {
        let left = self.begun.iter().copied().filter(|tid| over && *tid != self.pid as u32);
        for tid in ended.into_iter().chain(left.collect::<Vec<_>>()) {
            self.begun.remove(&tid);
            tree.thread_ends((self.pid as u32, tid), at);
        }
    }

    /// Delivers the entries of calls that are open at the end, and were not written.
    fn deliver_open_calls(
        &mut self,
        to: Moment,
        (moments, record_filter): (&TscClock, &mut RecordFilter),
        mut tree: Option<&mut Tree>,
        each: &mut dyn Deliver,
    ) {
        let Process { pid, own_pid, comm, threads, begun, bounds, open, .. } = self;
        let pid = *pid as u32;
        for (own, first, records) in open.iter_mut().flat_map(OpenCalls::end) {
            let tid = match threads.get(&own) {
                Some(tid) => *tid,
                None if own == *own_pid => pid,
                None if *own_pid == pid && bounds.has_thread(own) => own,
                None => continue,
            };
            let (stream, begins) = (Process::stream(tid), !begun.contains(&tid));
            let (high, from) = ((first >> 32) as u32, moments.at(first));
            let run = Run { stream, pid, begins, records: &records, high, from, to, dropped: 0 };
            let Some(run) = record_filter.take(&run) else { continue };
            if begun.insert(tid)
                && tid != pid
                && let Some(tree) = &mut tree
            {
                tree.thread_begins((pid, tid), begins_at(&run, moments), comm);
            }
            each.functions(&run);
        }
    }

    /// Delivers, without records, how many were dropped since the last chunks.
    fn deliver_pending(&mut self, at: Moment, dropped: &mut HashMap<StreamId, u64>, each: &mut dyn Deliver) {
        let left = self.pending();
        if left == 0 {
            return;
        }
        let stream = Process::stream(self.pid as u32);
        self.dropped = self.dropped.saturating_add(left);
        let all = dropped.entry(stream).or_default();
        *all = all.saturating_add(left);
        let begins = self.begun.insert(self.pid as u32);
        each.functions(&lost_run(stream, self.pid as u32, (begins, left), at));
    }
}

/// A run without records, which says how many were dropped.
fn lost_run(stream: StreamId, pid: u32, (begins, dropped): (bool, u64), at: Moment) -> Run<'static> {
    Run { stream, pid, begins, records: &[], high: (at.tsc >> 32) as u32, from: at, to: at, dropped }
}

/// The time stamp counter in the first record of a run.
fn first_record(run: &Run<'_>) -> Option<u64> {
    let (mut high, mut all) = (run.high, run.records.as_chunks::<RECORD>().0.iter());
    loop {
        let record = all.next()?;
        match word(record) {
            HIGH => high = time(record),
            0 => return None,
            _ => return Some(u64::from(high) << 32 | u64::from(time(record))),
        }
    }
}

/// A moment before the first record of a thread, ns: its chunk may be older, if the thread waited for a processor with it.
fn begins_at(run: &Run<'_>, moments: &TscClock) -> u64 {
    /// What two ways to compute a time may differ by.
    const ROUNDED: u64 = 1000;
    let at = first_record(run).map(|tsc| moments.at(tsc).monotonic);
    at.map_or(run.from.monotonic, |at| at.saturating_sub(ROUNDED).max(run.from.monotonic))
}
