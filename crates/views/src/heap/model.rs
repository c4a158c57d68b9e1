//! The model of a heap: events in the order of time in, what each stack has allocated out.
//!
//! ```text
//! alloc, free ──► Process: blocks by address ──► Held: the sums of a stack ──► Model::stacks
//! alloc, unmap ─►          mappings          └─► peak, Series, coarse series
//! fork ─────────► a Process with copies
//! end ──────────► Ended: sums by stack and age
//! ```
//!
//! Invariants: `live` of the whole is the sum of `live` of all stacks, which is the sum of the blocks of running processes that are
//! their own. The peak and each stack's value at it are exact.
//!
//! A forked child has copies of its parent's blocks. They are the parent's in all sums, so that memory that two processes share counts
//! once, and a child that execs or exits at once has not lost anything; the sums of copies are apart.
//!
//! Memory: 38 to 75 bytes for each block that is outstanding (half as much again while the table grows), 448 for each stack (at
//! most [`MAX_STACKS`]), 32 KB of series, and at most 100 MB of sums by stack and age of ended processes. Copies are bounded by
//! [`MAX_COPIES`], processes by [`MAX_PROCESSES`], mappings of a process by the kernel (vm.max_map_count).

use super::Who;
use super::blocks::{Block, Owner, Sample};
use super::ended::Ended;
use super::held::Held;
use super::numbers::{Kind, Numbers, Sum};
use super::process::Process;
use super::series::{COARSE, Coarse, Mark, Point, Series, catch_up};
use super::threads::Threads;

/// The most stacks. Those with higher numbers are counted as stack 0.
pub const MAX_STACKS: usize = 1 << 20;
/// The most processes. Events of those with higher numbers are lost.
pub const MAX_PROCESSES: usize = 1 << 20;
/// The most copies of blocks that forked processes hold together. A process that would have more begins with none; what it then frees
/// without having allocated it counts as a copy.
pub const MAX_COPIES: usize = 1 << 22;

/// This many blocks of a process do not fit into a CPU's cache.
const MANY: usize = 30_000;

/// What the model says about all stacks together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// When it began: the first event, or the last reset, ns.
    pub start: u64,
    /// The time of the last event, ns.
    pub now: u64,
    /// The sums of all stacks; `peak` and `at_peak` are those of the whole.
    pub numbers: Numbers,
    /// When the peak was, ns.
    pub peak_time: u64,
    /// Blocks at an address that was outstanding: its free was not seen.
    pub missed_frees: u64,
    /// Frees of addresses that were not outstanding: allocated before the tracing, or the allocation was not seen.
    pub unknown_frees: u64,
    /// Frees of blocks that were allocated before the last reset.
    pub frees_of_before: u64,
    /// Frees of copies.
    pub frees_of_copies: u64,
    /// Events that are missing.
    pub lost: u64,
    /// The mean number of bytes from one recorded malloc'd block to the next, by which totals are estimated. 0: every block was recorded.
    pub sample: u64,
}

/// A heap.
pub struct Model {
    started: bool,
    now: u64,
    /// When the series get their next point.
    next: u64,
    series: Series,
    /// Of the series.
    mark: Mark,
    processes: Vec<Option<Box<Process>>>,
    stacks: Vec<Held>,
    /// By stack.
    coarse: Vec<Coarse>,
    threads: Threads,
    live: Sum,
    mapped: Sum,
    peak: Sum,
    peak_time: u64,
    /// The number of the peak.
    epoch: u64,
    sample: Sample,
    ended: Ended,
    copies: usize,
    max_copies: usize,
    /// Those of [`Summary`] that are counted.
    counts: Summary,
}

impl Default for Model {
    fn default() -> Model {
        Model::new()
    }
}

impl Model {
    /// An empty model. It begins with its first event.
    pub fn new() -> Model {
        Model {
            started: false,
            now: 0,
            next: 0,
            series: Series::new(0),
            mark: Mark::default(),
            processes: Vec::new(),
            stacks: Vec::new(),
            coarse: Vec::new(),
            threads: Threads::default(),
            live: Sum::default(),
            mapped: Sum::default(),
            peak: Sum::default(),
            peak_time: 0,
            epoch: 1,
            sample: Sample::default(),
            ended: Ended::default(),
            copies: 0,
            max_copies: MAX_COPIES,
            counts: Summary::default(),
        }
    }

    /// An empty model with another limit of copies than [`MAX_COPIES`].
    pub fn with_max_copies(most: usize) -> Model {
        Model { max_copies: most, ..Model::new() }
    }

    /// An empty model of sampled malloc'd blocks, one per `sample` bytes on average; 0: all blocks.
    pub fn sampled(bytes: u64) -> Model {
        Model { sample: Sample(bytes), ..Model::new() }
    }

    /// The time is `time`, although nothing has happened. Time that goes back stands still.
    #[inline]
    pub fn advance(&mut self, time: u64) {
        self.now = self.now.max(time);
        if self.now >= self.next {
            self.fill_series();
        }
    }

    #[cold]
    fn fill_series(&mut self) {
        if !self.started {
            self.started = true;
            self.series = Series::new(self.now);
            self.peak_time = self.now;
        }
        self.next = self.series.fill(self.now, Point { malloc: self.live, mapped: self.mapped });
        self.mark = self.series.mark();
    }

    /// Events with these addresses are about to come, at best 16 to 64 of them. That changes nothing, but where many blocks are
    /// outstanding, what the table has about these addresses is fetched from memory at once rather than for one event after
    /// the other.
    pub fn expect(&self, process: u32, addresses: &[u64]) {
        let known = self.processes.get(process as usize).and_then(Option::as_ref);
        if let Some(known) = known.filter(|p| p.blocks.len() > MANY) {
            let found = addresses.iter().filter(|a| known.blocks.contains_key(a)).count();
            std::hint::black_box(found);
        }
    }

    /// Events with these stacks are about to come: as [`Model::expect`] does for addresses.
    pub fn expect_stacks(&self, stacks: &[u32]) {
        let found = stacks.iter().filter_map(|stack| self.stacks.get(*stack as usize)).filter(|held| held.is_empty());
        std::hint::black_box(found.count());
    }

    /// The process, which begins with its first event; none where there are too many.
    #[inline]
    fn process(processes: &mut Vec<Option<Box<Process>>>, number: u32) -> Option<&mut Process> {
        let at = number as usize;
        if at >= processes.len() {
            if at >= MAX_PROCESSES {
                return None;
            }
            processes.resize_with(at + 1, || None);
        }
        Some(processes[at].get_or_insert_with(Box::default))
    }

    /// The place of a stack, which is about to change.
    #[inline]
    fn stack(&mut self, stack: u32) -> usize {
        let mut at = stack as usize;
        if at >= self.stacks.len() {
            at = self.new_stack(at);
        }
        let held = &mut self.stacks[at];
        held.before_change(self.epoch);
        if held.mark != self.mark {
            let value = held.held();
            catch_up(&mut self.coarse[at], &mut held.mark, self.mark, value);
        }
        at
    }

    #[cold]
    fn new_stack(&mut self, at: usize) -> usize {
        let at = if at < MAX_STACKS { at } else { 0 };
        if at >= self.stacks.len() {
            self.stacks.resize(at + 1, Held::new(self.mark));
            self.coarse.resize(at + 1, [0; COARSE]);
        }
        at
    }

    /// A thread has allocated memory.
    #[inline]
    pub fn alloc(&mut self, who: Who, time: u64, kind: Kind, address: u64, size: u64, stack: u32) {
        self.advance(time);
        if kind == Kind::Mmap {
            return self.map(who.process, address, size, stack);
        }
        let Some(process) = Self::process(&mut self.processes, who.process) else { return self.lost(1) };
        let block = Block { size, time: self.now, stack, owner: Owner::Own };
        if let Some(old) = process.blocks.insert(address, block) {
            self.missed(old);
        }
        self.threads.allocated(who, address);
        let sum = self.sample.of(size, self.now);
        let at = self.stack(stack);
        let held = &mut self.stacks[at];
        held.total.join(sum);
        held.live.join(sum);
        held.peak = held.peak.max(held.live.bytes);
        self.live.join(sum);
        if self.live.bytes > self.peak.bytes {
            self.peak = self.live;
            self.peak_time = self.now;
            self.epoch += 1;
        }
    }

    /// A block whose free was not seen.
    #[cold]
    fn missed(&mut self, old: Block) {
        if old.owner == Owner::Before {
            self.counts.frees_of_before += 1;
        } else {
            self.counts.missed_frees += 1;
            self.release(old);
        }
    }

    /// Takes a block out of the sums that it is in.
    #[inline]
    fn release(&mut self, block: Block) -> usize {
        let sum = self.sample.of(block.size, block.time);
        let at = self.stack(block.stack);
        let held = &mut self.stacks[at];
        match block.owner {
            Owner::Own => {
                held.live.subtract(sum);
                self.live.subtract(sum);
            }
            Owner::Copy => {
                held.copies.subtract(sum);
                self.copies = self.copies.saturating_sub(1);
            }
            Owner::Before => {}
        }
        at
    }

    /// A thread frees a block.
    #[inline]
    pub fn free(&mut self, who: Who, time: u64, address: u64) {
        self.advance(time);
        let was_last = self.threads.frees(who, address);
        let Some(process) = Self::process(&mut self.processes, who.process) else { return self.lost(1) };
        let Some(block) = process.blocks.remove(&address) else {
            let count =
                if process.began_with_more { &mut self.counts.frees_of_copies } else { &mut self.counts.unknown_frees };
            *count += 1;
            return;
        };
        match block.owner {
            Owner::Own => {}
            Owner::Copy => self.counts.frees_of_copies += 1,
            Owner::Before => {
                self.counts.frees_of_before += 1;
                return;
            }
        }
        let at = self.release(block);
        if was_last && block.owner == Owner::Own {
            self.stacks[at].temporary += self.sample.of(block.size, block.time).blocks;
        }
    }

    /// A mapping, which replaces those that were there (MAP_FIXED).
    fn map(&mut self, process: u32, address: u64, size: u64, stack: u32) {
        self.unmap(process, self.now, address, size);
        let Some(process) = Self::process(&mut self.processes, process) else { return self.lost(1) };
        let size = process.mappings.insert(address, Block { size, time: self.now, stack, owner: Owner::Own });
        if size == 0 {
            return;
        }
        let at = self.stack(stack);
        let held = &mut self.stacks[at];
        held.mapped_total.add(size);
        held.mapped_live.add(size);
        self.mapped.add(size);
    }

    /// A range of addresses is unmapped: mappings, parts of them, or nothing that is known.
    pub fn unmap(&mut self, process: u32, time: u64, address: u64, len: u64) {
        self.advance(time);
        let Some(known) = self.processes.get_mut(process as usize).and_then(Option::as_mut) else { return };
        let mut changed = Vec::new();
        known.mappings.remove(address, len, |block, left| changed.push((block, left)));
        for (block, left) in changed.into_iter().filter(|(b, _)| b.owner == Owner::Own) {
            let at = self.stack(block.stack);
            let held = &mut self.stacks[at];
            for sum in [&mut held.mapped_live, &mut self.mapped] {
                sum.remove(block.size);
                left.into_iter().filter(|size| *size > 0).for_each(|size| sum.add(size));
            }
        }
    }

    /// A process has forked: the child begins with copies of the parent's blocks. A vfork, or a clone that shares the memory, is no
    /// new process.
    pub fn fork(&mut self, parent: u32, child: u32, time: u64) {
        self.end(child, time);
        let Some(from) = self.processes.get(parent as usize).and_then(Option::as_ref) else { return };
        let mut new = Process { began_with_more: from.began_with_more, ..Process::default() };
        if self.copies.saturating_add(from.blocks.len()) > self.max_copies {
            new.began_with_more = true;
        } else {
            new.blocks = from.blocks.clone();
            // Copies of what was before the reset are not worth their memory.
            let all = new.blocks.len();
            new.blocks.retain(|_, block| block.owner != Owner::Before);
            new.began_with_more |= new.blocks.len() < all;
            new.mappings = from.mappings.clone();
            new.mappings.belong_to(Owner::Copy);
        }
        for block in new.blocks.values_mut() {
            block.owner = Owner::Copy;
            self.copies += 1;
            let at = self.stack(block.stack);
            self.stacks[at].copies.join(self.sample.of(block.size, block.time));
        }
        match Self::process(&mut self.processes, child) {
            Some(process) => *process = new,
            None => self.drop_copies(&new),
        }
    }

    fn drop_copies(&mut self, process: &Process) {
        for block in process.blocks.values().filter(|b| b.owner == Owner::Copy) {
            self.release(*block);
        }
    }

    /// A process ends, or another program begins in it. What is outstanding stays so.
    pub fn end(&mut self, process: u32, time: u64) {
        self.advance(time);
        self.threads.end(process);
        let Some(ended) = self.processes.get_mut(process as usize).and_then(Option::take) else { return };
        self.drop_copies(&ended);
        for block in ended.blocks.values().filter(|b| b.owner == Owner::Own) {
            let at = self.release(*block);
            let sum = self.sample.of(block.size, block.time);
            self.stacks[at].ended.join(sum);
            self.ended.add(at as u32, Kind::Malloc, sum, self.now - block.time);
        }
        for block in ended.mappings.iter().filter(|b| b.owner == Owner::Own) {
            let at = self.stack(block.stack);
            let held = &mut self.stacks[at];
            held.mapped_live.remove(block.size);
            held.mapped_ended.add(block.size);
            self.mapped.remove(block.size);
            self.ended.add(at as u32, Kind::Mmap, Sum { blocks: 1, bytes: block.size }, self.now - block.time);
        }
    }

    /// A process executes another program: what was outstanding is gone, and was no leak.
    pub fn exec(&mut self, process: u32, time: u64) {
        self.advance(time);
        self.threads.end(process);
        let Some(ended) = self.processes.get_mut(process as usize).and_then(Option::take) else { return };
        for block in ended.blocks.values() {
            self.release(*block);
        }
        for block in ended.mappings.iter().filter(|b| b.owner == Owner::Own) {
            let at = self.stack(block.stack);
            self.stacks[at].mapped_live.remove(block.size);
            self.mapped.remove(block.size);
        }
    }

    /// A thread has allocated a block at an address where none was outstanding, and frees it with its next event: as
    /// [`Model::alloc`] and [`Model::free`], in a fraction of the time.
    #[inline]
    pub fn temporary(&mut self, who: Who, time: u64, address: u64, size: u64, stack: u32) {
        let sum = self.sample.of(size, self.now.max(time));
        if self.live.bytes.saturating_add(sum.bytes) > self.peak.bytes {
            self.alloc(who, time, Kind::Malloc, address, size, stack);
            return self.free(who, time, address);
        }
        self.advance(time);
        self.threads.frees(who, address);
        let at = self.stack(stack);
        let held = &mut self.stacks[at];
        held.total.join(sum);
        held.peak = held.peak.max(held.live.bytes.saturating_add(sum.bytes));
        held.temporary += sum.blocks;
    }

    /// This many events are missing.
    pub fn lost(&mut self, events: u64) {
        self.counts.lost = self.counts.lost.saturating_add(events);
    }

    /// Begins anew. Blocks that are outstanding are forgotten; when they are freed, that is counted as
    /// [`Summary::frees_of_before`].
    pub fn reset(&mut self, time: u64) {
        self.advance(time);
        let now = self.now;
        let mut processes = std::mem::take(&mut self.processes);
        for process in processes.iter_mut().flatten() {
            process.blocks.values_mut().for_each(|b| b.owner = Owner::Before);
            process.mappings.belong_to(Owner::Before);
        }
        *self = Model { processes, sample: self.sample, ..Model::with_max_copies(self.max_copies) };
        self.advance(now);
    }

    /// What there is in all.
    pub fn summary(&self) -> Summary {
        let mut numbers = Numbers::default();
        self.stacks.iter().for_each(|held| numbers.join(&held.numbers(self.epoch)));
        numbers.peak = self.peak.bytes;
        numbers.at_peak = self.peak;
        Summary {
            start: self.series.start(),
            now: self.now,
            numbers,
            peak_time: self.peak_time,
            sample: self.sample.0,
            ..self.counts
        }
    }

    /// The numbers of each stack that has any.
    pub fn stacks(&self) -> impl Iterator<Item = (u32, Numbers)> {
        let held = self.stacks.iter().enumerate().filter(|(_, held)| !held.is_empty());
        held.map(|(at, held)| (at as u32, held.numbers(self.epoch)))
    }

    /// Outstanding blocks of at least the age `min_age`, ns: gives their stack, their kind, their sum and the age of the oldest of
    /// them. A stack comes several times. Of ended processes, blocks that are up to 1/64 younger may be among them.
    pub fn outstanding(&self, min_age: u64, each: &mut dyn FnMut(u32, Kind, Sum, u64)) {
        for process in self.processes.iter().flatten() {
            let blocks = process.blocks.values().map(|b| (Kind::Malloc, b));
            for (kind, block) in blocks.chain(process.mappings.iter().map(|b| (Kind::Mmap, b))) {
                let age = self.now - block.time;
                if block.owner == Owner::Own && age >= min_age {
                    let stack = if (block.stack as usize) < MAX_STACKS { block.stack } else { 0 };
                    let sample = if kind == Kind::Malloc { self.sample } else { Sample::default() };
                    each(stack, kind, sample.of(block.size, block.time), age);
                }
            }
        }
        for (stack, kind, group) in self.ended.iter().filter(|(_, _, group)| group.oldest >= min_age) {
            each(stack, kind, group.sum, group.oldest);
        }
    }

    /// The points of the whole.
    pub fn series(&self) -> &Series {
        &self.series
    }

    /// The bytes of a stack over time: a point for [`Series::coarse_step`] each, at most [`COARSE`].
    pub fn stack_series(&self, stack: u32) -> Vec<u64> {
        let at = stack as usize;
        let (Some(held), Some(points)) = (self.stacks.get(at), self.coarse.get(at)) else { return Vec::new() };
        let (mut points, mut mark) = (*points, held.mark);
        catch_up(&mut points, &mut mark, self.mark, held.held());
        points[..mark.points()].to_vec()
    }
}
