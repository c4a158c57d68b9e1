//! Keeps the table of processes: records in, changes of maps out. Runs in one thread.

use super::Target;
use super::builders::{Builders, Done, Job};
use super::counts::Counts;
use super::expected;
use super::identity::Mapped;
use super::maps::{Maps, Writer};
use super::modules::{Modules, State};
use super::processes::{self, Held, HeldArea, ModuleId, Named, Process, Processes};
use super::records::{Happened, MappedFile, Said};
use bpf::unwind::{GUESS_UNMAPPED, MAPPINGS};
use engine::backend::patched;
use std::collections::{HashMap, HashSet, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use sys::time::monotonic;
use unwind::Mapping;
use unwind::build::Module;
use unwind::table::CHUNK;

/// How often processes that are about to end are looked at.
const LOOK: Duration = Duration::from_millis(20);

/// The state.
pub(super) struct ProcessTable {
    maps: Arc<Maps>,
    writer: Writer,
    modules: Modules,
    processes: Processes,
    counts: Arc<Mutex<Counts>>,
    /// Every process is followed.
    all: bool,
    /// What this process starts is followed.
    children: bool,
    own: u32,
    /// Processes that were asked for.
    roots: Vec<u32>,
    /// Processes that are to be read from `/proc`.
    unread: VecDeque<u32>,
    /// Processes whose first thread has ended.
    leaving: HashSet<u32>,
    looked: Instant,
    /// Modules that wait for room.
    waiting: VecDeque<ModuleId>,
    /// When the first record came that a process's entry lacks.
    first: HashMap<u32, u64>,
    /// Programs that will be executed soon.
    expected: Vec<PathBuf>,
    /// What is for the builders.
    jobs: Vec<Job>,
}

impl ProcessTable {
    pub fn new(maps: &Arc<Maps>, writer: Writer, counts: &Arc<Mutex<Counts>>) -> ProcessTable {
        let mut table = ProcessTable {
            maps: Arc::clone(maps),
            writer,
            modules: Modules::default(),
            processes: Processes::default(),
            counts: Arc::clone(counts),
            all: false,
            children: false,
            own: sys::process::own_pid() as u32,
            roots: Vec::new(),
            unread: VecDeque::new(),
            leaving: HashSet::new(),
            looked: Instant::now(),
            waiting: VecDeque::new(),
            first: HashMap::new(),
            expected: Vec::new(),
            jobs: Vec::new(),
        };
        table.make_chunks(1);
        table
    }

    fn count(&self, change: impl FnOnce(&mut Counts)) {
        change(&mut self.counts.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Follows it from now on.
    pub fn watch(&mut self, target: Target) {
        match target {
            Target::Children => {
                self.children = true;
                self.roots.push(self.own);
            }
            Target::Command(pid) => {
                self.roots.push(pid);
                self.processes.insert(pid, Process::default());
            }
            Target::Process(pid) => {
                self.roots.push(pid);
                self.unread.push_back(pid);
            }
            Target::Machine => {
                self.all = true;
                self.unread.extend(self.everybody());
            }
        }
    }

    fn everybody(&self) -> Vec<u32> {
        let all = sys::proc::all().into_iter().map(|pid| pid as u32);
        all.filter(|pid| *pid != self.own).collect()
    }

    /// A program that will be executed soon.
    pub fn expect(&mut self, program: &Path) {
        self.expected.push(program.to_path_buf());
    }

    /// Whether nothing is being built, and all that was built is in the tables.
    pub fn is_settled(&self) -> bool {
        self.expected.is_empty() && self.waiting.is_empty() && !self.writer.waits() && !self.modules.are_building()
    }

    /// Takes notice of what has happened.
    pub fn note(&mut self, said: Said) {
        let Said { time, pid, what } = said;
        match what {
            Happened::Fork(parent) => self.fork(parent, pid, time),
            Happened::Exit if self.processes.has(pid) => {
                self.leaving.insert(pid);
            }
            Happened::Exec => {
                self.leaving.remove(&pid);
                self.first.remove(&pid);
                self.processes.change(pid, |p| p.exec(time));
            }
            Happened::Mapped { range, offset, file, path } => {
                if self.processes.get(pid).is_some_and(|p| time > p.since) {
                    self.map(&Mapped { pid, range, path: &path, file: &file }, offset);
                    if self.processes.get(pid).is_some_and(|p| p.dirty) {
                        self.first.entry(pid).or_insert(time);
                    }
                }
            }
            Happened::Exit => {}
        }
    }

    fn fork(&mut self, parent: u32, child: u32, time: u64) {
        self.leaving.remove(&child);
        match self.processes.get(parent) {
            Some(p) => {
                let process = p.fork(time);
                self.processes.insert(child, process);
            }
            None if parent == self.own && (self.children || self.all) => {
                self.processes.insert(child, Process { since: time, ..Process::default() });
            }
            None if self.all => self.unread.push_back(child),
            None => {}
        }
    }

    fn map(&mut self, mapped: &Mapped<'_>, offset: u64) {
        match Named::of(mapped.path) {
            Named::Kernels => {}
            Named::Anonymous => self.map_anonymous(mapped.pid, mapped.range),
            Named::File | Named::Vdso => {
                let found = self.modules.of(mapped);
                if let Some(e) = &found.error {
                    self.count(|c| c.unreadable(mapped.path, e));
                }
                self.jobs.extend(found.job);
                self.processes.change(mapped.pid, |p| p.map(mapped.range, offset, found.id));
            }
        }
    }

    /// Memory of no file: areas of patched functions, or a just-in-time compiler's.
    fn map_anonymous(&mut self, pid: u32, range: (u64, u64)) {
        if !self.processes.has(pid) {
            return;
        }
        let areas = patched::areas(pid as i32, range);
        if areas.is_empty() {
            self.processes.change(pid, |p| p.map_anonymous(range));
        }
        for area in areas {
            let (module, is_new) = self.modules.of_stubs(area.variant());
            self.waiting.extend(is_new.then_some(module));
            self.processes.change(pid, |p| p.map_area(HeldArea { area, module }));
        }
    }

    /// Records were lost: what is there is read from `/proc`.
    pub fn lost(&mut self, records: u64) {
        self.count(|c| c.lost += records);
        self.unread.clear();
        if self.all {
            self.unread.extend(self.everybody());
        } else {
            let known = self.processes.pids().into_iter();
            let found = self.roots.iter().flat_map(|root| sys::proc::descendants(*root as i32));
            let all: HashSet<u32> = known.chain(found.map(|pid| pid as u32)).collect();
            self.unread.extend(all);
        }
    }

    /// Reads some processes from `/proc`; whether any are left.
    pub fn read_some(&mut self) -> bool {
        for _ in 0..4 {
            let Some(pid) = self.unread.pop_front() else { return false };
            self.read(pid);
        }
        !self.unread.is_empty()
    }

    fn read(&mut self, pid: u32) {
        let since = monotonic();
        let maps = processes::of(pid).unwrap_or_default();
        // A thread of the kernel, or one that has ended.
        if maps.is_empty() {
            return self.forget(pid);
        }
        self.count(|c| c.snapshots += 1);
        self.processes.insert(pid, Process { since, ..Process::default() });
        for m in maps {
            let file = MappedFile::Inode(m.file);
            self.map(&Mapped { pid, range: m.range, path: &m.path, file: &file }, m.offset);
        }
    }

    fn forget(&mut self, pid: u32) {
        self.processes.remove(pid);
        self.first.remove(&pid);
        self.leaving.remove(&pid);
        self.maps.forget(pid);
    }

    /// Takes what the builders have done.
    pub fn done(&mut self, done: Done) {
        match done {
            Done::Put(chunks) => self.writer.arrived(&chunks),
            Done::Built(id, module, ns) => {
                self.count(|c| c.build_ns += ns);
                match module {
                    Ok(module) if !module.is_empty() => {
                        self.count(|c| {
                            c.built += 1;
                            c.unknown_rows += u64::from(module.counts().unknown_rows);
                        });
                        self.modules.set(id, State::Built(module));
                        self.waiting.push_back(id);
                    }
                    _ => {
                        self.count(|c| c.without += 1);
                        self.modules.set(id, State::Without);
                        self.processes.touch(id);
                    }
                }
            }
        }
    }

    /// The thread ends.
    pub fn end(&self) {
        self.count(|c| c.cpu_ns = sys::time::of_thread());
    }

    /// Brings the maps up to date, and gives the builders what there is to be done.
    pub fn write(&mut self, builders: &Builders) {
        for program in std::mem::take(&mut self.expected) {
            let files = expected::files(&program);
            self.jobs.extend(files.iter().filter_map(|file| self.modules.expect(file)));
        }
        self.jobs.drain(..).for_each(|job| builders.give(job));
        self.place();
        self.flush();
        self.look_at_leaving();
        self.modules.bound(&self.processes);
        self.jobs.drain(..).for_each(|job| builders.give(job));
    }

    fn place(&mut self) {
        while let Some(id) = self.waiting.pop_front() {
            let Some(module) = self.modules.take_built(id) else { continue };
            match self.writer.place(&module, &self.maps) {
                Ok(placed) => {
                    self.modules.set(id, State::Placed(placed));
                    self.processes.touch(id);
                    self.make_chunks(1);
                    let bytes = self.writer.bytes();
                    self.count(|c| c.bytes = bytes);
                }
                Err(_) => {
                    if self.room_for(&module) {
                        self.modules.set(id, State::Built(module));
                        self.waiting.push_front(id);
                        return;
                    }
                    self.count(|c| c.too_large += 1);
                    self.modules.set(id, State::Without);
                    self.processes.touch(id);
                }
            }
        }
    }

    /// Sees to it that there will be room; false: there is none for this module.
    fn room_for(&mut self, module: &Module) -> bool {
        if module.tables().rows.len() > self.writer.max_chunks() as usize * CHUNK {
            return false;
        }
        let wanted = self.writer.chunks_for(module);
        self.make_chunks(wanted);
        // None is missing where the numbers of pages are used up.
        let missing = wanted.saturating_sub(self.writer.available());
        (missing == 0 && self.writer.waits()) || self.evict(missing.max(1))
    }

    fn make_chunks(&mut self, wanted: usize) {
        // Without memory there are no more of them.
        let made = self.writer.more(wanted).unwrap_or_default();
        if !made.is_empty() {
            self.jobs.push(Job::Put(made));
        }
    }

    /// Takes modules out. First no process leads to them any more; then their chunks are replaced, which waits for programs.
    fn evict(&mut self, chunks: usize) -> bool {
        let victims = self.modules.victims(chunks, &self.processes);
        let taken = |table: &mut ProcessTable, id| {
            table.processes.touch(id);
            table.modules.take_placed(id)
        };
        let placed: Vec<_> = victims.into_iter().filter_map(|id| taken(self, id)).collect();
        self.flush();
        self.count(|c| c.evicted += placed.len() as u64);
        let new: Vec<_> = placed.iter().flat_map(|p| self.writer.remove(p).unwrap_or_default()).collect();
        let any = !new.is_empty();
        if any {
            self.jobs.push(Job::Put(new));
        }
        any
    }

    /// Writes the processes that have changed.
    fn flush(&mut self) {
        for pid in self.processes.take_dirty() {
            let Some(process) = self.processes.get(pid) else { continue };
            let (mappings, crowded) = self.mappings(process);
            let begins = !process.in_table;
            if begins && mappings.is_empty() && !process.jit {
                self.processes.change(pid, |p| p.dirty = false);
                continue;
            }
            let flags = if process.jit { GUESS_UNMAPPED } else { 0 };
            let tls = process.areas.first().map_or(0, |a| a.area.tls());
            let newly_crowded = crowded && !process.crowded;
            let set =
                bpf::unwind::process(flags, tls, &mappings).is_some_and(|value| self.maps.set(pid, &value, begins));
            let now = monotonic();
            let first = self.first.remove(&pid);
            self.count(|c| {
                c.crowded += u64::from(newly_crowded);
                c.no_room += u64::from(begins && !set);
                if let Some(first) = first {
                    c.updated(now.saturating_sub(first));
                }
            });
            self.processes.change(pid, |p| {
                (p.dirty, p.written, p.crowded) = (false, now, crowded);
                p.in_table |= set;
            });
        }
    }

    /// What the table has of a process, and whether that is not all.
    fn mappings(&self, process: &Process) -> (Vec<Mapping>, bool) {
        let mut all: Vec<(u32, Mapping)> = Vec::with_capacity(process.held.len());
        for held in &process.held {
            let Some(mapping) = self.mapping(held) else { continue };
            match all.last_mut() {
                Some((_, last)) if last.flags & mapping.flags & Mapping::NO_ROWS != 0 && last.end == mapping.start => {
                    last.end = mapping.end;
                }
                _ => all.push((held.nth, mapping)),
            }
        }
        all.extend(process.areas.iter().flat_map(|held| self.mappings_of_area(held)).map(|m| (0, m)));
        let crowded = all.len() > MAPPINGS;
        if crowded {
            // Code with rows first, then what was mapped first.
            order::by_key(&mut all, |(nth, m)| (m.flags & Mapping::NO_ROWS, *nth));
            all.truncate(MAPPINGS);
        }
        order::by_key(&mut all, |(_, m)| m.start);
        (all.into_iter().map(|(_, m)| m).collect(), crowded)
    }

    fn mappings_of_area(&self, held: &HeldArea) -> [Mapping; 2] {
        let moved = held.area.moved();
        let stubs = match self.modules.state(held.module) {
            State::Placed(placed) => held.area.stubs(placed.pages().start),
            // There is no room for the rules.
            _ => Mapping { flags: Mapping::NO_ROWS, ..held.area.stubs(0) },
        };
        [stubs, moved]
    }

    /// None: nothing is known of the code yet.
    fn mapping(&self, held: &Held) -> Option<Mapping> {
        let (start, end) = (held.start, held.end);
        let without = Mapping { start, end, flags: Mapping::NO_ROWS, ..Mapping::default() };
        match self.modules.state(held.module) {
            State::Placed(placed) => Some(placed.mapping(start, end, held.offset).unwrap_or(without)),
            State::Building | State::Built(_) => None,
            State::Without | State::Unreadable | State::Out => Some(without),
        }
    }

    /// Forgets processes that have ended.
    fn look_at_leaving(&mut self) {
        if self.leaving.is_empty() || self.looked.elapsed() < LOOK {
            return;
        }
        self.looked = Instant::now();
        let ended: Vec<u32> = self.leaving.iter().copied().filter(|pid| sys::process::has_ended(*pid as i32)).collect();
        for pid in ended {
            self.forget(pid);
        }
    }

    /// How long the thread may wait if nothing happens.
    pub fn patience(&self) -> Duration {
        match () {
            () if !self.unread.is_empty() => Duration::ZERO,
            () if !self.waiting.is_empty() => Duration::from_micros(100),
            () if !self.leaving.is_empty() => LOOK,
            () => Duration::from_millis(500),
        }
    }
}
