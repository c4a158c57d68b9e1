//! A heap in the simplest way: everything is held, and counted anew whenever it is asked for.

use std::collections::BTreeMap;
use views::heap::{Kind, Numbers, Sum, Who};

#[derive(Clone, Copy, PartialEq)]
enum Owner {
    Own,
    Copy,
    Before,
}

#[derive(Clone)]
struct Block {
    stack: u32,
    size: u64,
    time: u64,
    owner: Owner,
}

#[derive(Clone, Default)]
struct Process {
    blocks: BTreeMap<u64, Block>,
    /// By page.
    pages: BTreeMap<u64, (u64, Block)>,
    had_more: bool,
}

/// The heap. A mapping is one block for each run of its pages.
#[derive(Default)]
pub struct Naive {
    processes: BTreeMap<u32, Process>,
    ended: Vec<(u32, Kind, u64, u64)>,
    totals: BTreeMap<u32, Numbers>,
    last: BTreeMap<Who, Option<u64>>,
    /// Live malloc'd memory by stack after each event.
    pub history: Vec<(u64, BTreeMap<u32, Sum>)>,
    pub missed: u64,
    pub unknown: u64,
    pub before: u64,
    pub copies: u64,
    mappings: u64,
}

impl Naive {
    fn live(&self) -> BTreeMap<u32, Sum> {
        let mut all: BTreeMap<u32, Sum> = BTreeMap::new();
        for b in self.processes.values().flat_map(|p| p.blocks.values()).filter(|b| b.owner == Owner::Own) {
            all.entry(b.stack).or_default().add(b.size);
        }
        all
    }

    fn note(&mut self, time: u64) {
        let live = self.live();
        self.history.push((time, live));
    }

    pub fn alloc(&mut self, who: Who, time: u64, kind: Kind, address: u64, size: u64, stack: u32) {
        let totals = self.totals.entry(stack).or_default();
        if kind == Kind::Mmap {
            let pages = size.div_ceil(4096);
            if pages > 0 {
                totals.mapped_total.add(pages * 4096);
            }
            self.mappings += 1;
            let process = self.processes.entry(who.process).or_default();
            for page in 0..pages {
                let block = Block { stack, size: 4096, time, owner: Owner::Own };
                process.pages.insert(address + page * 4096, (self.mappings, block));
            }
            return self.note(time);
        }
        totals.total.add(size);
        self.last.insert(who, Some(address));
        let process = self.processes.entry(who.process).or_default();
        let block = Block { stack, size, time, owner: Owner::Own };
        if let Some(old) = process.blocks.remove(&address) {
            *(if old.owner == Owner::Before { &mut self.before } else { &mut self.missed }) += 1;
            self.note(time);
        }
        self.processes.entry(who.process).or_default().blocks.insert(address, block);
        self.note(time);
    }

    pub fn free(&mut self, who: Who, time: u64, address: u64) {
        let was_last = self.last.insert(who, None).flatten() == Some(address);
        let process = self.processes.entry(who.process).or_default();
        match process.blocks.remove(&address) {
            None => *(if process.had_more { &mut self.copies } else { &mut self.unknown }) += 1,
            Some(b) => match b.owner {
                Owner::Own => self.totals.entry(b.stack).or_default().temporary += u64::from(was_last),
                Owner::Copy => self.copies += 1,
                Owner::Before => self.before += 1,
            },
        }
        self.note(time);
    }

    pub fn unmap(&mut self, process: u32, time: u64, address: u64, len: u64) {
        let pages = &mut self.processes.entry(process).or_default().pages;
        (address..address + len)
            .step_by(4096)
            .for_each(|page| assert!(pages.remove(&page).is_none_or(|b| b.1.size == 4096)));
        self.note(time);
    }

    /// What was before the reset is not copied: a free of it counts as one of a copy.
    pub fn fork(&mut self, parent: u32, child: u32, time: u64) {
        self.end(child, time);
        let mut new = self.processes.get(&parent).cloned().unwrap_or_default();
        let all = new.blocks.len();
        new.blocks.retain(|_, b| b.owner != Owner::Before);
        new.had_more |= new.blocks.len() < all;
        new.blocks.values_mut().for_each(|b| b.owner = Owner::Copy);
        new.pages.values_mut().for_each(|(_, b)| b.owner = Owner::Copy);
        self.processes.insert(child, new);
    }

    pub fn end(&mut self, process: u32, time: u64) {
        self.last.retain(|who, _| who.process != process);
        for (kind, b) in self.runs(process) {
            self.ended.push((b.stack, kind, b.size, time - b.time));
        }
        self.processes.remove(&process);
        self.note(time);
    }

    /// All that the process has goes, and nothing of it is left.
    pub fn exec(&mut self, process: u32, time: u64) {
        self.last.retain(|who, _| who.process != process);
        self.processes.remove(&process);
        self.note(time);
    }

    /// Whether a block is outstanding there.
    pub fn has(&self, process: u32, address: u64) -> bool {
        self.processes.get(&process).is_some_and(|p| p.blocks.contains_key(&address))
    }

    pub fn reset(&mut self, time: u64) {
        let mut processes = std::mem::take(&mut self.processes);
        for p in processes.values_mut() {
            p.blocks.values_mut().for_each(|b| b.owner = Owner::Before);
            p.pages.values_mut().for_each(|(_, b)| b.owner = Owner::Before);
        }
        *self = Naive { processes, mappings: self.mappings, ..Naive::default() };
        self.note(time);
    }

    /// The blocks and mappings that are the process's own.
    fn runs(&self, process: u32) -> Vec<(Kind, Block)> {
        let Some(p) = self.processes.get(&process) else { return Vec::new() };
        let mut all: Vec<(Kind, Block)> = p.blocks.values().map(|b| (Kind::Malloc, b.clone())).collect();
        let mut last = None;
        for (page, (mapping, b)) in &p.pages {
            match (last, all.last_mut()) {
                (Some((before, of)), Some((Kind::Mmap, run))) if before + 4096 == *page && of == *mapping => {
                    run.size += 4096
                }
                _ => all.push((Kind::Mmap, b.clone())),
            }
            last = Some((*page, *mapping));
        }
        all.retain(|(_, b)| b.owner == Owner::Own);
        all
    }

    /// The peak, its time, and what each stack had then.
    pub fn peak(&self) -> (Sum, u64, BTreeMap<u32, Sum>) {
        let whole = |live: &BTreeMap<u32, Sum>| live.values().fold(Sum::default(), |all, s| all.and(*s));
        let mut peak = (Sum::default(), self.history.first().map_or(0, |h| h.0), BTreeMap::new());
        for (time, live) in &self.history {
            if whole(live).bytes > peak.0.bytes {
                peak = (whole(live), *time, live.clone());
            }
        }
        peak
    }

    /// What was live just before `time`.
    pub fn before(&self, time: u64) -> Sum {
        let live = self.history.iter().take_while(|(t, _)| *t < time).last().map(|(_, live)| live);
        live.into_iter().flat_map(|live| live.values()).fold(Sum::default(), |all, s| all.and(*s))
    }

    pub fn numbers(&self) -> BTreeMap<u32, Numbers> {
        let mut all = self.totals.clone();
        for process in self.processes.keys() {
            for (kind, b) in self.runs(*process) {
                let n = all.entry(b.stack).or_default();
                (if kind == Kind::Malloc { &mut n.live } else { &mut n.mapped_live }).add(b.size);
            }
        }
        for b in self.processes.values().flat_map(|p| p.blocks.values()).filter(|b| b.owner == Owner::Copy) {
            all.entry(b.stack).or_default().copies.add(b.size);
        }
        for (stack, kind, size, _) in &self.ended {
            let n = all.entry(*stack).or_default();
            (if *kind == Kind::Malloc { &mut n.ended } else { &mut n.mapped_ended }).add(*size);
        }
        for (stack, sum) in self.peak().2 {
            all.entry(stack).or_default().at_peak = sum;
        }
        for (_, live) in &self.history {
            for (stack, sum) in live {
                let n = all.entry(*stack).or_default();
                n.peak = n.peak.max(sum.bytes);
            }
        }
        all.retain(|_, n| *n != Numbers::default());
        all
    }

    /// The oldest outstanding block of each stack and kind, and the sum of those that are old enough and certainly shown.
    pub fn outstanding(&self, now: u64, min_age: u64) -> BTreeMap<(u32, Kind), (Sum, u64)> {
        let live = self.processes.keys().flat_map(|p| self.runs(*p));
        let live = live.map(|(kind, b)| (b.stack, kind, b.size, now - b.time));
        let mut all: BTreeMap<(u32, Kind), (Sum, u64)> = BTreeMap::new();
        for (stack, kind, size, age) in live.chain(self.ended.iter().copied()).filter(|b| b.3 >= min_age) {
            let (sum, oldest) = all.entry((stack, kind)).or_default();
            sum.add(size);
            *oldest = age.max(*oldest);
        }
        all
    }
}
