//! What a process has mapped, and when: which module an address belonged to at a time.
//!
//! ```text
//!  address
//!    ▲   ┌─ libone ─┬─ libtwo ─────      a mapping ends where a later one takes its place; what is left of it stays
//!    │ ┌─┴──────────┴─ program ────      exec ends all of them
//!    └─────────────────────────────► time
//! ```

use crate::module_id::ModuleId;
use crate::perf_map::PerfMap;
use std::collections::BTreeMap;

/// The most mappings of a process that have ended, and are remembered; and those that last.
const MAX_ENDED: usize = 1 << 16;
const MAX_MAPPINGS: usize = 1 << 16;
/// Mappings that are looked at for an address, by where they begin.
const MAX_LOOKED_AT: usize = 256;

/// Where an address belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Located {
    /// The module; none: memory without a file.
    pub module: Option<ModuleId>,
    /// Offset in the module's file.
    pub offset: u64,
}

#[derive(Clone, Copy, Debug)]
struct Mapping {
    start: u64,
    end: u64,
    offset: u64,
    module: Option<ModuleId>,
    /// From this time on, and up to that one.
    from: u64,
    to: u64,
}

impl Mapping {
    fn located(&self, address: u64) -> Located {
        Located { module: self.module, offset: self.offset.wrapping_add(address - self.start) }
    }

    /// A part of it.
    fn part(&self, start: u64, end: u64, from: u64) -> Mapping {
        Mapping { start, end, offset: self.offset.wrapping_add(start - self.start), from, ..*self }
    }
}

/// The mappings of a process.
#[derive(Clone, Debug, Default)]
pub struct Process {
    lasting: BTreeMap<u64, Mapping>,
    /// By where they begin.
    ended: BTreeMap<u64, Vec<Mapping>>,
    ended_count: usize,
    dropped: u64,
    perf_map: PerfMap,
}

impl Process {
    /// A process that has mapped nothing.
    pub fn new() -> Process {
        Process::default()
    }

    /// Notes a mapping: `len` bytes at `start`, of a module's file from `offset` on.
    pub fn map(&mut self, time: u64, start: u64, len: u64, offset: u64, module: Option<ModuleId>) {
        let end = start.saturating_add(len);
        if start >= end {
            return;
        }
        if self.lasting.len() >= MAX_MAPPINGS {
            self.dropped += 1;
            return;
        }
        self.unmap(time, start, end);
        self.lasting.insert(start, Mapping { start, end, offset, module, from: time, to: u64::MAX });
    }

    /// Notes that a range is mapped no more.
    pub fn unmap(&mut self, time: u64, start: u64, end: u64) {
        let before = self.lasting.range(..start).next_back().map(|(_, m)| *m).filter(|m| m.end > start);
        let inside: Vec<Mapping> = before.into_iter().chain(self.lasting.range(start..end).map(|(_, m)| *m)).collect();
        for m in inside {
            self.lasting.remove(&m.start);
            self.end(Mapping { to: time, ..m });
            if m.start < start {
                self.lasting.insert(m.start, m.part(m.start, start, time));
            }
            if m.end > end {
                self.lasting.insert(end, m.part(end, m.end, time));
            }
        }
    }

    fn end(&mut self, mapping: Mapping) {
        if mapping.from >= mapping.to {
            return;
        }
        if self.ended_count >= MAX_ENDED {
            self.dropped += 1;
            return;
        }
        self.ended_count += 1;
        self.ended.entry(mapping.start).or_default().push(mapping);
    }

    /// Mappings that are not remembered, because there are too many.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Notes that it has executed a program: all mappings are gone.
    pub fn exec(&mut self, time: u64) {
        for (_, m) in std::mem::take(&mut self.lasting) {
            self.end(Mapping { to: time, ..m });
        }
        self.perf_map = PerfMap::default();
    }

    /// What a child has mapped when it begins.
    pub fn fork(&self, time: u64) -> Process {
        let lasting = self.lasting.iter().map(|(start, m)| (*start, Mapping { from: time, ..*m })).collect();
        Process { lasting, perf_map: self.perf_map.clone(), ..Process::default() }
    }

    /// Where an address belonged to at a time. Before the first mapping that holds it was noted, to that one: what runs already when it is
    /// looked at has been mapped earlier.
    pub fn locate(&self, address: u64, time: u64) -> Option<Located> {
        let lasting = self.lasting.range(..=address).next_back().map(|(_, m)| m).filter(|m| address < m.end);
        if let Some(m) = lasting.filter(|m| m.from <= time) {
            return Some(m.located(address));
        }
        let ended = self.ended.range(..=address).rev().take(MAX_LOOKED_AT).flat_map(|(_, all)| all);
        let mut first = lasting;
        for m in ended.filter(|m| address < m.end) {
            if (m.from..m.to).contains(&time) {
                return Some(m.located(address));
            }
            if m.from > time && first.is_none_or(|f| m.from < f.from) {
                first = Some(m);
            }
        }
        first.map(|m| m.located(address))
    }

    /// Functions that a just-in-time compiler has made, for memory without a file.
    pub fn set_perf_map(&mut self, map: PerfMap) {
        self.perf_map = map;
    }

    /// See [`Self::set_perf_map`].
    pub fn perf_map(&self) -> &PerfMap {
        &self.perf_map
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(p: &Process, address: u64, time: u64) -> Option<(u32, u64)> {
        p.locate(address, time).map(|l| (l.module.map_or(0, |m| m.0), l.offset))
    }

    #[test]
    fn addresses_belong_to_what_was_mapped_at_the_time() {
        let mut p = Process::new();
        let id = |n| Some(ModuleId(n));
        p.map(10, 0x1000, 0x3000, 0, id(1));
        p.map(20, 0x2000, 0x1000, 0x500, id(2));
        p.map(30, 0x2800, 0x100, 0, None);
        assert_eq!(at(&p, 0x2010, 15), Some((1, 0x1010)));
        assert_eq!(at(&p, 0x2010, 20), Some((2, 0x510)));
        assert_eq!(at(&p, 0x2810, 25), Some((2, 0xd10)));
        assert_eq!(at(&p, 0x2810, 30), Some((0, 0x10)));
        // What is left of those that were cut.
        assert_eq!((at(&p, 0x1fff, 40), at(&p, 0x3000, 40)), (Some((1, 0xfff)), Some((1, 0x2000))));
        assert_eq!((at(&p, 0x2900, 40), at(&p, 0x27ff, 40)), (Some((2, 0xe00)), Some((2, 0xcff))));
        assert_eq!((at(&p, 0x4000, 40), at(&p, 0xfff, 40)), (None, None));
        // Earlier than anything is known: the first that is.
        assert_eq!(at(&p, 0x2010, 1), Some((1, 0x1010)));
        let child = p.fork(50);
        p.exec(60);
        p.map(61, 0x1000, 0x1000, 0, id(3));
        assert_eq!((at(&p, 0x1001, 59), at(&p, 0x1001, 61)), (Some((1, 1)), Some((3, 1))));
        assert_eq!((at(&p, 0x3001, 55), at(&p, 0x3001, 65)), (Some((1, 0x2001)), None));
        assert_eq!(at(&child, 0x1001, 70), Some((1, 1)));
    }

    /// Each page belongs to what was mapped there last, at every time.
    #[test]
    fn mappings_at_random_are_as_the_last_one_says() {
        let mut r = testkit::Random::new(21);
        for _ in 0..testkit::rounds(200) {
            let mut p = Process::new();
            let mut pages: Vec<[u32; 32]> = vec![[0; 32]];
            for n in 1..30 {
                let (from, len) = (r.below(30), 1 + r.below(8));
                p.map(n, from, len, 0, Some(ModuleId(n as u32)));
                let mut now = *pages.last().unwrap();
                now[from as usize..32.min(from + len) as usize].fill(n as u32);
                pages.push(now);
            }
            for (time, now) in pages.iter().enumerate() {
                for (address, id) in now.iter().enumerate().filter(|(_, id)| **id > 0) {
                    assert_eq!(at(&p, address as u64, time as u64).map(|l| l.0), Some(*id), "{address} at {time}");
                }
            }
        }
    }
}
