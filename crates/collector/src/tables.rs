//! Unwind tables for agents, which walk the stacks of allocations by them: one file for all processes of a session.
//!
//! What rows and pages lead to is written before a process gets its mappings, so that no walk sees half of a module.

use abi::plan::Step;
use patch::link::Linked;
use std::collections::HashMap;
use std::io::{self, Read};
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use sys::maps::{self, Map, PROT_EXEC};
use unwind::build::shared::{self, Part};
use unwind::build::{Module, Placed, Space};
use unwind::shared::{ROWS_AT, SIZE};
use unwind::{Kind, Mapping, Rule, SavedBp};

/// Processes map this many bytes of rows, or a multiple.
const STEP: usize = 256 << 10;
/// The largest file that is read.
const MOST: u64 = 2 << 30;

/// Device, inode, size, time of the last change.
type Key = ((u32, u32, u64), u64, (i64, i64));

/// A file's tables, and where they are.
type File = Option<(Arc<Module>, Placed)>;

/// The tables of a session.
pub struct Tables {
    file: sys::agent::Tables,
    space: Space,
    /// How many rules are in the file.
    rules: usize,
    /// Where its rows end.
    end: usize,
    /// By file; none where it has no tables, or there is no room.
    files: HashMap<Key, File>,
    /// The first page of areas with these rules.
    areas: HashMap<Vec<(u32, u64)>, u32>,
    /// Areas of processes that were planned before.
    planned: HashMap<i32, Vec<Mapping>>,
}

impl Tables {
    /// Empty ones.
    ///
    /// # Errors
    /// There is no memory for them.
    pub fn new() -> io::Result<Tables> {
        let file = sys::agent::Tables::new(SIZE)?;
        let (space, files, areas) = (Space::shared(), HashMap::new(), HashMap::new());
        Ok(Tables { file, space, rules: 0, end: ROWS_AT, files, areas, planned: HashMap::new() })
    }

    /// Their file, and how much of it processes are to map.
    pub fn file(&self) -> (BorrowedFd<'_>, u64) {
        (self.file.fd(), self.end.next_multiple_of(STEP).min(SIZE) as u64)
    }

    /// The mappings of a process for its unwinder, in order, as words. `linked`: areas that it gets; those that it has already stay, unless
    /// it `begins`.
    pub fn mappings(&mut self, pid: i32, all: &[Map], linked: &[Linked], begins: bool) -> Vec<[u64; 4]> {
        let mut modules: Vec<(Mapping, Option<Arc<Module>>)> = Vec::new();
        for m in all.iter().filter(|m| m.prot & PROT_EXEC != 0) {
            let (start, end) = m.range;
            let known = if m.file.2 != 0 { self.of(pid, m) } else { None };
            let bare = Mapping { start, end, flags: Mapping::NO_ROWS, ..Mapping::default() };
            let found = known.and_then(|(module, placed)| Some((placed.mapping(start, end, m.offset)?, module)));
            modules.push(found.map_or((bare, None), |(mapping, module)| (mapping, Some(Arc::clone(module)))));
        }
        let rule = |address: u64| {
            let (mapping, module) = modules.iter().find(|(m, _)| m.holds(address))?;
            module.as_ref()?.tables().at(0, address.wrapping_sub(mapping.bias))
        };
        let areas: Vec<Vec<(u32, Rule)>> = linked.iter().map(|l| rules_of(l, rule)).collect();
        let mut own = if begins { Vec::new() } else { self.planned.remove(&pid).unwrap_or_default() };
        own.retain(|o| linked.iter().all(|l| l.address != o.start));
        own.extend(linked.iter().zip(areas).filter_map(|(l, rules)| self.area(l, &rules)));
        self.planned.insert(pid, own.clone());
        // They may be among the process's mappings already.
        let is_area = |m: &Mapping| own.iter().any(|o| o.start <= m.start && m.start < o.end);
        let mut words: Vec<[u64; 4]> =
            modules.iter().map(|(m, _)| *m).filter(|m| !is_area(m)).map(Mapping::to_words).collect();
        words.extend(own.iter().map(|m| m.to_words()));
        words.sort_unstable();
        words
    }

    /// The mapping of an area with these rules.
    fn area(&mut self, linked: &Linked, rules: &[(u32, Rule)]) -> Option<Mapping> {
        let key: Vec<(u32, u64)> = rules.iter().map(|(at, rule)| (*at, rule.0)).collect();
        let len = linked.len();
        let first_page = match self.areas.get(&key) {
            Some(page) => *page,
            None => {
                let placed = self.add(&Module::of_rules(rules, u32::try_from(len).ok()?))?;
                self.areas.insert(key, placed.pages().start);
                placed.pages().start
            }
        };
        Some(Mapping { start: linked.address, end: linked.address + len, bias: linked.address, first_page, flags: 0 })
    }

    /// The tables of a file, which are made the first time.
    fn of(&mut self, pid: i32, m: &Map) -> Option<&(Arc<Module>, Placed)> {
        use std::os::unix::fs::MetadataExt;
        let file = maps::open(pid, m.range, &m.path, m.file).ok()?;
        let meta = file.metadata().ok()?;
        let key = (m.file, meta.size(), (meta.mtime(), meta.mtime_nsec()));
        if !self.files.contains_key(&key) {
            let placed = self.read(file);
            self.files.insert(key, placed);
        }
        self.files.get(&key)?.as_ref()
    }

    fn read(&mut self, file: std::fs::File) -> File {
        let mut bytes = Vec::new();
        file.take(MOST).read_to_end(&mut bytes).ok()?;
        let module = Module::build(&bytes).ok().filter(|m| !m.is_empty())?;
        let placed = self.add(&module)?;
        Some((Arc::new(module), placed))
    }

    fn add(&mut self, module: &Module) -> Option<Placed> {
        let Tables { file, space, end, .. } = self;
        let mut write = |part: Part| file.write(part.offset, &part.bytes);
        let placed = space
            .add(module, |first, rows| {
                let part = shared::rows(first, rows);
                *end = (*end).max(part.offset as usize + part.bytes.len());
                write(part);
            })
            .ok()?;
        space.shared_rules(self.rules).map(&mut write);
        self.rules = space.rules().all().len();
        write(space.shared_pages(placed.pages()));
        Some(placed)
    }
}

/// The rules of an area's code: in jumps to hooks the stack is as at a call; in a moved beginning as in what it is a copy of. Stubs have
/// none: they last for moments, and what they leave on the stack is not the caller's address.
fn rules_of(linked: &Linked, original: impl Fn(u64) -> Option<Rule>) -> Vec<(u32, Rule)> {
    let mut rules = vec![(0, Rule::UNKNOWN)];
    let relative = |address: u64| address.wrapping_sub(linked.address) as u32;
    for step in linked.steps.iter().filter(|s| s.original != 0) {
        let of = linked.address.wrapping_add_signed(step.original.into());
        let rule = original(of).filter(|_| step.lowered() == 0).unwrap_or(Rule::UNKNOWN);
        rules.push((step.at & Step::PLACE, rule));
    }
    let called = Rule::new(Kind::Sp, 8, SavedBp::Same, 0).unwrap_or(Rule::UNKNOWN);
    rules.extend([(relative(linked.jumps.start), called), (relative(linked.jumps.end), Rule::UNKNOWN)]);
    rules.sort_by_key(|r| r.0);
    rules.dedup_by(|next, before| next.1 == before.1);
    rules
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_has_tables() {
        let own = sys::process::own_pid();
        let all = maps::of(own).unwrap();
        let mut tables = Tables::new().unwrap();
        let mappings = tables.mappings(own, &all, &[], true);
        let with_rows = mappings.iter().filter(|m| m[3] >> 32 == 0).count();
        assert!(with_rows >= 2 && mappings.is_sorted(), "{mappings:x?}");
        assert_eq!(tables.mappings(own, &all, &[], true), mappings);
    }
}
