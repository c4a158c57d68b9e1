//! What processes have mapped, as the records say.

use engine::backend::patched::Area;
use std::collections::HashMap;
use sys::maps::PROT_EXEC;

/// The number of a module.
pub(super) type ModuleId = u32;

/// The most mappings that are kept of a process; a hostile one makes more. The programs have fewer ([`bpf::unwind::MAPPINGS`]).
const MOST: usize = 4096;

/// Code of a module in a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Held {
    pub start: u64,
    pub end: u64,
    /// Of `start` in the file.
    pub offset: u64,
    pub module: ModuleId,
    /// The first mappings of a program matter most.
    pub nth: u32,
}

/// An area of patched functions in a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct HeldArea {
    pub area: Area,
    /// The rules of its stubs.
    pub module: ModuleId,
}

/// A process.
#[derive(Clone, Debug, Default)]
pub(super) struct Process {
    /// Sorted, apart.
    pub held: Vec<Held>,
    /// Sorted, apart.
    pub areas: Vec<HeldArea>,
    /// It has executable memory that is no file's: a just-in-time compiler's.
    pub jit: bool,
    /// Records up to this time are in it.
    pub since: u64,
    /// The table has to be changed.
    pub dirty: bool,
    /// When the table was last changed, ns.
    pub written: u64,
    /// The table has it, unless it has ended.
    pub in_table: bool,
    /// It has more mappings than the table holds.
    pub crowded: bool,
    /// The number of the next mapping.
    pub next: u32,
}

impl Process {
    /// A program begins.
    pub fn exec(&mut self, time: u64) {
        *self = Process { since: time, ..Process::default() };
    }

    /// Memory that is no file's.
    pub fn map_anonymous(&mut self, range: (u64, u64)) {
        let cut = self.cut(range);
        self.dirty |= cut | !self.jit;
        self.jit = true;
    }

    /// An area of patched functions.
    pub fn map_area(&mut self, held: HeldArea) {
        let range = held.area.range();
        self.cut(range);
        self.dirty = true;
        if self.areas.len() < MOST {
            let at = self.areas.partition_point(|a| a.area.range().0 < range.0);
            self.areas.insert(at, held);
        }
    }

    /// Code of a module.
    pub fn map(&mut self, range: (u64, u64), offset: u64, module: ModuleId) {
        let (start, end) = range;
        if start >= end {
            return;
        }
        let same = |h: &Held| h.module == module && (h.start, h.end, h.offset) == (start, end, offset);
        if self.held.iter().any(same) {
            return;
        }
        self.cut(range);
        self.dirty = true;
        if self.held.len() < MOST {
            let at = self.held.partition_point(|h| h.start < start);
            self.held.insert(at, Held { start, end, offset, module, nth: self.next });
            self.next = self.next.saturating_add(1);
        }
    }

    fn has(&self, module: ModuleId) -> bool {
        self.held.iter().any(|h| h.module == module) || self.areas.iter().any(|a| a.module == module)
    }

    /// Takes a range out of what is mapped; whether anything was there.
    fn cut(&mut self, (start, end): (u64, u64)) -> bool {
        let areas = self.areas.len();
        self.areas.retain(|a| end <= a.area.range().0 || a.area.range().1 <= start);
        self.dirty |= areas != self.areas.len();
        if !self.held.iter().any(|h| h.start < end && start < h.end) {
            return false;
        }
        let parts = |h: Held| {
            let low = (h.start < start).then(|| Held { end: h.end.min(start), ..h });
            let from = h.start.max(end);
            let high = (from < h.end).then(|| Held { start: from, offset: h.offset.wrapping_add(from - h.start), ..h });
            low.into_iter().chain(high)
        };
        self.held = std::mem::take(&mut self.held).into_iter().flat_map(parts).collect();
        true
    }

    /// A child begins with the mappings of this process. A program has copied its entry in the table, if it was there at `time`, as it was
    /// then.
    pub fn fork(&self, time: u64) -> Process {
        let dirty = self.dirty || self.written > time;
        let in_table = self.in_table && !dirty;
        Process { since: time, written: 0, dirty, in_table, crowded: false, ..self.clone() }
    }
}

/// What a name in the records or in `/proc/PID/maps` stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Named {
    File,
    Vdso,
    /// Memory of a just-in-time compiler.
    Anonymous,
    /// The kernel's; no frame is looked up there.
    Kernels,
}

impl Named {
    pub fn of(path: &[u8]) -> Named {
        match path {
            b"[vdso]" => Named::Vdso,
            b"[vsyscall]" | b"[uprobes]" | b"[vvar]" | b"[vvar_vclock]" => Named::Kernels,
            b"//anon" => Named::Anonymous,
            _ if path.first() == Some(&b'/') => Named::File,
            _ => Named::Anonymous,
        }
    }
}

/// The executable mappings of a process, from `/proc`.
pub(super) fn of(pid: u32) -> std::io::Result<Vec<sys::maps::Map>> {
    let mut all = sys::maps::of(pid as i32)?;
    all.retain(|m| m.prot & PROT_EXEC != 0);
    Ok(all)
}

/// All processes that are followed.
#[derive(Default)]
pub(super) struct Processes {
    all: HashMap<u32, Process>,
    /// Those with changes that the table does not have.
    dirty: Vec<u32>,
}

impl Processes {
    pub fn get(&self, pid: u32) -> Option<&Process> {
        self.all.get(&pid)
    }

    pub fn has(&self, pid: u32) -> bool {
        self.all.contains_key(&pid)
    }

    /// Changes one; none: it is not followed.
    pub fn change<T>(&mut self, pid: u32, change: impl FnOnce(&mut Process) -> T) -> Option<T> {
        let process = self.all.get_mut(&pid)?;
        let result = change(process);
        if process.dirty {
            self.dirty.push(pid);
        }
        Some(result)
    }

    pub fn insert(&mut self, pid: u32, process: Process) {
        if process.dirty {
            self.dirty.push(pid);
        }
        self.all.insert(pid, process);
    }

    pub fn remove(&mut self, pid: u32) {
        self.all.remove(&pid);
    }

    /// Those with changes, each once.
    pub fn take_dirty(&mut self) -> Vec<u32> {
        let mut dirty = std::mem::take(&mut self.dirty);
        dirty.sort_unstable();
        dirty.dedup();
        dirty.retain(|pid| self.all.get(pid).is_some_and(|p| p.dirty));
        dirty
    }

    /// The tables of a module have come or gone.
    pub fn touch(&mut self, module: ModuleId) {
        for (pid, process) in &mut self.all {
            if process.has(module) {
                process.dirty = true;
                self.dirty.push(*pid);
            }
        }
    }

    /// Whether a process has a module mapped.
    pub fn have(&self, module: ModuleId) -> bool {
        self.all.values().any(|p| p.has(module))
    }

    pub fn pids(&self) -> Vec<u32> {
        self.all.keys().copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(p: &Process) -> Vec<(u64, u64, u64, u32)> {
        p.held.iter().map(|h| (h.start, h.end, h.offset, h.module)).collect()
    }

    #[test]
    fn later_mappings_replace_earlier_ones() {
        let mut p = Process::default();
        p.map((100, 200), 1000, 1);
        p.map((300, 400), 0, 2);
        p.map((140, 160), 7, 3);
        assert_eq!(list(&p), [(100, 140, 1000, 1), (140, 160, 7, 3), (160, 200, 1060, 1), (300, 400, 0, 2)]);
        p.map((150, 350), 0, 4);
        assert_eq!(list(&p), [(100, 140, 1000, 1), (140, 150, 7, 3), (150, 350, 0, 4), (350, 400, 50, 2)]);
        p.dirty = false;
        p.map((150, 350), 0, 4);
        p.map((9, 9), 0, 4);
        assert!(!p.dirty);
        p.map_anonymous((0, 400));
        assert!(p.held.is_empty() && p.jit && p.dirty);
        p.dirty = false;
        p.map_anonymous((0, 400));
        assert!(!p.dirty);
    }

    #[test]
    fn a_child_is_written_where_the_table_was_not_up_to_date() {
        let mut p = Process { written: 50, in_table: true, ..Process::default() };
        assert!(!p.fork(60).dirty && p.fork(60).in_table);
        // Its creator was perhaps not in the table yet.
        assert!(p.fork(40).dirty && !p.fork(40).in_table);
        p.map((1, 2), 0, 1);
        assert!(p.fork(60).dirty);
        p.exec(70);
        assert!(!p.in_table && !p.dirty && p.held.is_empty());
    }

    #[test]
    fn names_are_told_apart() {
        for (name, want) in [
            ("/usr/bin/x (deleted)", Named::File),
            ("//anon", Named::Anonymous),
            ("", Named::Anonymous),
            ("[anon:v8]", Named::Anonymous),
            ("[heap]", Named::Anonymous),
            ("[vdso]", Named::Vdso),
            ("[uprobes]", Named::Kernels),
        ] {
            assert_eq!(Named::of(name.as_bytes()), want, "{name}");
        }
    }
}
