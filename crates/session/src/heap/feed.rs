//! From what happens to heaps, live or in a trace, to the model of them.

use engine::heap::{Consumer, Entry, Kind, What};
use std::collections::HashMap;
use views::heap::{self, Intern, Model, Who};

/// A heap that grows out of entries: the model, and what the addresses in its stacks mean.
#[derive(Default)]
pub struct Feed {
    /// The model.
    pub model: Model,
    /// The stacks.
    pub intern: Intern,
    /// Who had a stack first, and when, by the stack's number: its addresses are those of that process then.
    seen: Vec<(u32, u64)>,
    /// Programs in processes, by number.
    processes: Vec<Process>,
    /// The next number of a process in the model, which has copies of forked ones too.
    next: u32,
    /// What children begin with, in the model: by parent and number of the fork.
    forks: HashMap<(u32, u64), u32>,
    /// The stack that was asked for last, and its number.
    last: ((u32, u64), u32),
    /// Entries are missing.
    is_lossy: bool,
    /// The time of the last entry, ns.
    now: u64,
    /// Entries that are missing, as far as it is not known when.
    lost: u64,
    /// Everything before this moment is in the model, ns.
    settled: u64,
    /// When allocations are not taken: from, to, ns.
    pauses: Vec<(u64, u64)>,
}

/// A program in a process.
#[derive(Clone, Default)]
struct Process {
    pid: u32,
    comm: String,
    /// Its number in the model: that of the copy that its parent has left, where it is a child.
    model: u32,
}

impl Feed {
    /// One with this model.
    pub fn new(model: Model) -> Feed {
        Feed { model, ..Feed::default() }
    }

    fn new_model(&mut self) -> u32 {
        self.next += 1;
        self.next - 1
    }

    /// The number of a process in the model.
    fn model_of(&mut self, process: u32) -> u32 {
        let at = process as usize;
        while self.processes.len() <= at {
            let model = self.new_model();
            self.processes.push(Process { model, ..Process::default() });
        }
        self.processes[at].model
    }

    /// A feed that lacks `lost` entries.
    pub fn lacking(lost: u64) -> Feed {
        Feed { lost, ..Feed::default() }
    }

    /// No more will come.
    pub fn settle(&mut self) {
        self.model.lost(std::mem::take(&mut self.lost));
    }

    /// How many stacks there are: their numbers are below this.
    pub fn stacks(&self) -> u32 {
        self.seen.len() as u32
    }

    /// The process that had a stack first, when, and its frames.
    pub fn stack(&self, id: u32) -> Option<(u32, u64, &[u64])> {
        let (_, frames) = self.intern.frames(id)?;
        let (process, time) = *self.seen.get(id as usize)?;
        Some((self.processes.get(process as usize)?.pid, time, frames))
    }

    /// Everything before this moment is in the model, ns.
    pub fn settled(&self) -> u64 {
        self.settled
    }

    /// Allocations are not taken from this moment on, ns.
    pub fn stop(&mut self, time: u64) {
        self.pauses.push((time, u64::MAX));
    }

    /// They are taken again.
    pub fn start(&mut self, time: u64) {
        self.pauses.iter_mut().filter(|p| p.1 == u64::MAX).for_each(|p| p.1 = time);
    }

    /// Forgets all that was allocated so far.
    pub fn reset(&mut self, time: u64) {
        self.model.reset(time);
    }

    /// Whether an allocation is taken.
    #[inline]
    fn takes(&self, time: u64) -> bool {
        !self.pauses.iter().any(|(from, to)| (*from..*to).contains(&time))
    }

    /// Entries that are older than a pause by this do not come any more, ns.
    const LATE: u64 = 60_000_000_000;

    /// The number of a stack.
    #[inline]
    fn id(&mut self, process: u32, hash: u64, time: u64) -> u32 {
        if hash == 0 {
            return 0;
        }
        if (process, hash) == self.last.0 {
            return self.last.1;
        }
        let id = self.intern.id(process, hash);
        if id as usize >= self.seen.len() {
            self.seen.resize(id as usize + 1, (process, time));
        }
        self.last = ((process, hash), id);
        id
    }

    fn fork(&mut self, process: u32, number: u64, time: u64) {
        let (from, copy) = (self.model_of(process), self.new_model());
        self.model.fork(from, copy, time);
        if let Some(before) = self.forks.insert((process, number), copy) {
            self.model.end(before, time);
        }
    }

    /// A process begins with the copy that its parent has left.
    fn child(&mut self, process: u32, parent: u32, number: u64) {
        if let Some(copy) = self.forks.remove(&(parent, number)) {
            self.intern.fork(parent, process);
            if let Some(p) = self.processes.get_mut(process as usize) {
                p.model = copy;
            }
        }
    }

    /// Prefetches the memory for these entries, where the stacks are too many for the caches.
    fn expect(&self, process: u32, entries: &[Entry]) {
        const MANY: u32 = 4096;
        if self.stacks() < MANY {
            return;
        }
        let mut ids = [0; AHEAD];
        for (id, entry) in ids.iter_mut().zip(entries) {
            if let What::Alloc { stack, .. } = entry.what {
                *id = self.intern.peek(process, stack);
            }
        }
        self.model.expect_stacks(&ids);
    }

    fn take(&mut self, process: u32, entries: &[Entry]) {
        let mut model = self.model_of(process);
        let mut rest = entries;
        self.now = entries.last().map_or(self.now, |e| self.now.max(e.time));
        while let Some((entry, next)) = rest.split_first() {
            rest = next;
            let Entry { time, tid, what } = *entry;
            let who = Who { process: model, tid };
            match what {
                What::Alloc { .. } if !self.takes(time) => {}
                What::Alloc { kind: of, address, size, stack } => {
                    let id = self.id(process, stack, time);
                    if let [Entry { tid: same, what: What::Free { address: freed }, .. }, others @ ..] = rest
                        && (*same, *freed, of) == (tid, address, Kind::Malloc)
                        // Else a block may be outstanding there whose free is missing.
                        && !self.is_lossy
                    {
                        rest = others;
                        self.model.temporary(who, time, address, size, id);
                    } else {
                        self.model.alloc(who, time, kind(of), address, size, id);
                    }
                }
                What::Free { address } => self.model.free(who, time, address),
                What::Unmap { address, len } => self.model.unmap(model, time, address, len),
                What::Fork { number } => self.fork(process, number, time),
                What::Child { parent, number } => {
                    self.child(process, parent, number);
                    model = self.model_of(process);
                }
            }
        }
    }
}

/// This many entries are looked at before they are taken.
const AHEAD: usize = 64;

#[inline]
fn kind(kind: Kind) -> heap::Kind {
    match kind {
        Kind::Malloc => heap::Kind::Malloc,
        Kind::Mmap => heap::Kind::Mmap,
    }
}

impl Consumer for Feed {
    fn began(&mut self, process: u32, pid: u32, comm: &[u8]) {
        self.model_of(process);
        let known = &mut self.processes[process as usize];
        (known.pid, known.comm) = (pid, String::from_utf8_lossy(comm).into_owned());
    }

    fn stack(&mut self, process: u32, time: u64, hash: u64, _ended: u8, frames: &[u64]) {
        self.id(process, hash, time);
        self.intern.define(process, hash, frames);
    }

    fn entries(&mut self, process: u32, entries: &[Entry]) {
        for some in entries.chunks(AHEAD) {
            self.expect(process, some);
            self.take(process, some);
        }
    }

    fn ended(&mut self, process: u32, executes: bool) {
        let model = self.model_of(process);
        let now = self.now;
        if executes {
            self.model.exec(model, now)
        } else {
            self.model.end(model, now)
        }
        let left: Vec<u32> = self.forks.extract_if(|(parent, _), _| *parent == process).map(|(_, copy)| copy).collect();
        left.into_iter().for_each(|copy| self.model.end(copy, now));
    }

    fn lost(&mut self, _: u32, entries: u64) {
        self.is_lossy = true;
        self.model.lost(entries);
    }

    fn settled(&mut self, until: u64) {
        self.settled = self.settled.max(until);
        self.pauses.retain(|(_, to)| to.saturating_add(Self::LATE) > until);
    }
}
