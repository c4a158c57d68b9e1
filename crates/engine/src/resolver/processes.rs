//! What each process has mapped, by the events of a session or a trace.
//!
//! A process that executes a program has mapped it before its `process:exec` event: what was mapped within [`EXEC_NS`] before belongs to
//! the new program. What belongs to the old one after all is at addresses that the new one does not use.

use std::collections::{HashMap, VecDeque};
use symbols::ModuleId;
use symbols::process::{Located, Process};

/// Longer than this, ns, no program is being mapped before its event comes.
const EXEC_NS: u64 = 1_000_000_000;
/// Mappings of a process that are kept for this.
const MOST_RECENT: usize = 4096;
/// Processes that have ended and are remembered: events of other processors may come later.
const MOST_ENDED: usize = 1024;
/// Processes in all, and mappings of all of them: what comes later is not known.
const MOST: usize = 1 << 20;
const MOST_MAPPINGS: usize = 8 << 20;

/// Address, length and offset in the file.
type Extent = (u64, u64, u64);

#[derive(Default)]
struct Known {
    process: Process,
    /// The last mappings, with their times.
    recent: VecDeque<(u64, Extent, Option<ModuleId>)>,
    /// Mappings that it has, or has had, at most.
    mappings: usize,
}

impl Known {
    fn map(&mut self, time: u64, extent: Extent, module: Option<ModuleId>) {
        self.mappings += 1;
        self.process.map(time, extent.0, extent.1, extent.2, module);
        while self.recent.front().is_some_and(|m| m.0.saturating_add(EXEC_NS) < time)
            || self.recent.len() >= MOST_RECENT
        {
            self.recent.pop_front();
        }
        self.recent.push_back((time, extent, module));
    }

    /// Maps again what was mapped within [`EXEC_NS`] before `time`.
    fn again(&mut self, recent: VecDeque<(u64, Extent, Option<ModuleId>)>, time: u64) {
        for (at, extent, module) in recent {
            if at.saturating_add(EXEC_NS) >= time {
                self.map(at, extent, module);
            }
        }
    }
}

/// All processes.
#[derive(Default)]
pub struct Processes {
    all: HashMap<u32, Known>,
    ended: VecDeque<u32>,
    /// Mappings of all of them.
    mappings: usize,
}

impl Processes {
    fn of(&mut self, pid: u32) -> Option<&mut Known> {
        if self.all.len() >= MOST && !self.all.contains_key(&pid) {
            return None;
        }
        Some(self.all.entry(pid).or_default())
    }

    /// A mapping.
    pub fn map(&mut self, pid: u32, time: u64, extent: Extent, module: Option<ModuleId>) {
        if self.mappings < MOST_MAPPINGS
            && let Some(known) = self.of(pid)
        {
            known.map(time, extent, module);
            self.mappings += 1;
        }
    }

    fn remove(&mut self, pid: u32) -> Option<Known> {
        let known = self.all.remove(&pid)?;
        self.mappings = self.mappings.saturating_sub(known.mappings);
        Some(known)
    }

    /// It executes another program.
    pub fn exec(&mut self, pid: u32, time: u64) {
        if let Some(known) = self.of(pid) {
            known.process.exec(time);
            let (recent, before) = (std::mem::take(&mut known.recent), known.mappings);
            known.again(recent, time);
            self.mappings += known.mappings - before;
        }
    }

    /// It has made a process, or a thread of its own.
    pub fn fork(&mut self, parent: u32, child: u32, time: u64) {
        if child == parent {
            return;
        }
        let Some(inherited) = self.all.get(&parent).map(|p| p.mappings) else { return };
        if self.mappings + inherited > MOST_MAPPINGS {
            return;
        }
        let Some(process) = self.all.get(&parent).map(|p| p.process.fork(time)) else { return };
        // What the child has mapped may have been reported already; a process that had its number before is another one.
        let recent = self.remove(child).map(|k| k.recent).unwrap_or_default();
        if let Some(known) = self.of(child) {
            (known.process, known.mappings) = (process, inherited);
            known.again(recent.into_iter().filter(|m| m.0 >= time).collect(), time);
            self.mappings += known.mappings;
        }
    }

    /// It has ended.
    pub fn exit(&mut self, pid: u32) {
        self.ended.push_back(pid);
        if self.ended.len() > MOST_ENDED
            && let Some(oldest) = self.ended.pop_front()
        {
            self.remove(oldest);
        }
    }

    /// Where an address of a process belonged to at a time.
    pub fn locate(&self, pid: u32, address: u64, time: u64) -> Option<Located> {
        self.all.get(&pid)?.process.locate(address, time)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use symbols::Symbolizer;
    use symbols::files::Identity;
    use symbols::finder::Finder;

    /// A trace may say anything: that a process with many mappings forks for ever.
    #[test]
    fn mappings_are_bounded_together() {
        let mut all = Processes::default();
        for n in 0..1 << 13 {
            all.map(1, n, (n << 12, 1 << 12, 0), None);
        }
        for child in 2..10_000 {
            all.fork(1, child, 1 << 20);
            all.exec(child, 1 << 20);
        }
        let held: usize = all.all.values().map(|k| k.mappings).sum();
        assert!(all.mappings == held && held <= MOST_MAPPINGS + 2 * MOST_RECENT && held > MOST_MAPPINGS / 2, "{held}");
    }

    #[test]
    fn a_program_is_mapped_before_its_exec_is_reported() {
        let mut symbolizer = Symbolizer::new(Finder::new().without_system());
        let mut module = |name: &str| symbolizer.module(&Identity::new(name, &[]));
        let (old, new, own) = (module("/old"), module("/new"), module("/own"));
        let mut all = Processes::default();
        let at = |all: &Processes, pid, address, time| all.locate(pid, address, time).and_then(|l| l.module);
        let second = EXEC_NS;
        all.map(1, second, (0x1000, 0x1000, 0), old);
        all.fork(1, 2, 2 * second);
        // The child's mapping comes before the fork does, and its exec after both.
        all.fork(1, 3, 2 * second);
        all.map(2, 5 * second, (0x5000, 0x1000, 0), new);
        all.exec(2, 5 * second + 10);
        assert_eq!((at(&all, 2, 0x1000, 4 * second), at(&all, 2, 0x1000, 6 * second)), (old, None));
        assert_eq!((at(&all, 2, 0x5000, 6 * second), at(&all, 3, 0x1000, 6 * second)), (new, old));
        all.map(4, 7 * second + 5, (0x9000, 0x1000, 0), own);
        all.fork(1, 4, 7 * second);
        assert_eq!((at(&all, 4, 0x9000, 8 * second), at(&all, 4, 0x1000, 8 * second)), (own, old));
        // The number of a process that has ended is used again.
        all.exit(4);
        all.fork(1, 4, 9 * second);
        assert_eq!((at(&all, 4, 0x9000, 9 * second), at(&all, 4, 0x1000, 9 * second)), (None, old));
    }
}
