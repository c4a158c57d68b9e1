//! The modules of a session: each file once, by what identifies its contents.

use super::builders::{Job, Source};
use super::identity::{Key, Mapped, Opened, Stat, vdso};
use super::processes::{ModuleId, Named, Processes};
use engine::backend::patched::{self, Variant};
use std::collections::{BTreeMap, HashMap};
use std::io;
use std::path::Path;
use unwind::build::{Module, Placed};

/// The most modules that are remembered; those that nobody has mapped, and that have no tables, are forgotten then.
const MOST: usize = 1 << 14;

/// What is known of a module.
pub(super) enum State {
    /// It is being built.
    Building,
    /// It waits for room.
    Built(Module),
    /// It has tables.
    Placed(Placed),
    /// It has no tables: no ELF file, or one without unwind information.
    Without,
    /// It could not be read. It is tried again when it is mapped again.
    Unreadable,
    /// It had tables, and others have taken their room. It is built again when it is mapped again.
    Out,
}

struct Entry {
    state: State,
    /// When it was last mapped: a count of mappings.
    used: u64,
}

/// All of them.
#[derive(Default)]
pub(super) struct Modules {
    entries: HashMap<ModuleId, Entry>,
    by_key: HashMap<Key, ModuleId>,
    by_stat: HashMap<Stat, ModuleId>,
    last: ModuleId,
    clock: u64,
}

/// The module of a mapping; what there is to be done first; why it cannot be read.
pub(super) struct Found {
    pub id: ModuleId,
    pub job: Option<Job>,
    pub error: Option<io::Error>,
}

impl Modules {
    /// No entry has this number: files that cannot be read, and of which nothing is known.
    const UNKNOWN: ModuleId = 0;

    pub fn state(&self, id: ModuleId) -> &State {
        self.entries.get(&id).map_or(&State::Unreadable, |e| &e.state)
    }

    pub fn set(&mut self, id: ModuleId, state: State) {
        if let Some(entry) = self.entries.get_mut(&id) {
            entry.state = state;
        }
    }

    /// Takes the tables of a module that waits for room.
    pub fn take_built(&mut self, id: ModuleId) -> Option<Module> {
        let entry = self.entries.get_mut(&id)?;
        match std::mem::replace(&mut entry.state, State::Building) {
            State::Built(module) => Some(module),
            other => {
                entry.state = other;
                None
            }
        }
    }

    /// Takes the place of a module, which is out from then on.
    pub fn take_placed(&mut self, id: ModuleId) -> Option<Placed> {
        let entry = self.entries.get_mut(&id)?;
        match std::mem::replace(&mut entry.state, State::Out) {
            State::Placed(placed) => Some(placed),
            other => {
                entry.state = other;
                None
            }
        }
    }

    /// A module that need not be read.
    fn known(&mut self, id: ModuleId) -> Option<Found> {
        self.clock += 1;
        let entry = self.entries.get_mut(&id)?;
        entry.used = self.clock;
        let again = matches!(entry.state, State::Unreadable | State::Out);
        (!again).then_some(Found { id, job: None, error: None })
    }

    fn entry(&mut self, key: Key) -> ModuleId {
        if let Some(id) = self.by_key.get(&key) {
            return *id;
        }
        self.last += 1;
        self.by_key.insert(key, self.last);
        self.entries.insert(self.last, Entry { state: State::Unreadable, used: self.clock });
        self.last
    }

    /// The module that is mapped. One that is not known, and can be read, is to be built.
    pub fn of(&mut self, mapped: &Mapped<'_>) -> Found {
        use super::records::MappedFile::*;
        if Named::of(mapped.path) == Named::Vdso {
            let size = mapped.range.1 - mapped.range.0;
            let id = self.entry(Key::Vdso(size));
            let found = self.known(id);
            return found.unwrap_or_else(|| self.begin(id, vdso(size).map(Source::Bytes)));
        }
        let known = match mapped.file {
            BuildId(id) => self.by_key.get(&Key::BuildId(id.clone())).copied(),
            Inode(_) => mapped.stat().and_then(|stat| self.by_stat.get(&stat).copied()),
        };
        if let Some(found) = known.and_then(|id| self.known(id)) {
            return found;
        }
        match (mapped.open(), mapped.file) {
            (Ok(opened), _) => self.opened(opened),
            (Err(e), BuildId(id)) => {
                let id = self.entry(Key::BuildId(id.clone()));
                self.begin(id, Err(e))
            }
            (Err(e), Inode(_)) => Found { id: Self::UNKNOWN, job: None, error: Some(e) },
        }
    }

    /// The rules of stubs, whether they are new and wait for room.
    pub fn of_stubs(&mut self, variant: Variant) -> (ModuleId, bool) {
        let id = self.entry(Key::Stubs(variant as u32));
        if self.known(id).is_some() {
            return (id, false);
        }
        self.set(id, State::Built(patched::module(variant)));
        (id, true)
    }

    /// Whether any module is being built.
    pub fn are_building(&self) -> bool {
        self.entries.values().any(|e| matches!(e.state, State::Building))
    }

    /// A file that will be mapped.
    pub fn expect(&mut self, path: &Path) -> Option<Job> {
        self.opened(Opened::at(path).ok()?).job
    }

    fn opened(&mut self, opened: Opened) -> Found {
        let id = self.entry(opened.key());
        if self.by_stat.len() >= MOST {
            self.by_stat.clear();
        }
        self.by_stat.insert(opened.stat(), id);
        let found = self.known(id);
        found.unwrap_or_else(|| self.begin(id, Ok(Source::File(opened.file))))
    }

    fn begin(&mut self, id: ModuleId, source: io::Result<Source>) -> Found {
        match source {
            Ok(source) => {
                self.set(id, State::Building);
                Found { id, job: Some(Job::Build(id, source)), error: None }
            }
            Err(e) => {
                self.set(id, State::Unreadable);
                Found { id, job: None, error: Some(e) }
            }
        }
    }

    /// Forgets modules without tables that nobody has mapped, where there are too many.
    pub fn bound(&mut self, processes: &Processes) {
        if self.entries.len() <= MOST {
            return;
        }
        let idle = |e: &Entry| matches!(e.state, State::Without | State::Unreadable | State::Out);
        self.entries.retain(|id, e| !idle(e) || processes.have(*id));
        let entries = &self.entries;
        self.by_key.retain(|_, id| entries.contains_key(id));
        self.by_stat.retain(|_, id| entries.contains_key(id));
    }

    /// The modules whose tables have to go, so that `wanted` chunks are free: whole chunks, first those whose modules no process has
    /// mapped, among them those that were mapped longest ago.
    pub fn victims(&self, wanted: usize, processes: &Processes) -> Vec<ModuleId> {
        let mut chunks: BTreeMap<u32, (bool, u64, Vec<ModuleId>)> = BTreeMap::new();
        for (id, entry) in &self.entries {
            let State::Placed(placed) = &entry.state else { continue };
            let mapped = processes.have(*id);
            for chunk in placed.chunks() {
                let (any, last, all) = chunks.entry(*chunk).or_default();
                (*any, *last) = (*any | mapped, entry.used.max(*last));
                all.push(*id);
            }
        }
        let mut chunks: Vec<_> = chunks.into_values().collect();
        chunks.sort_by_key(|(mapped, used, _)| (*mapped, *used));
        let mut victims: Vec<ModuleId> = chunks.into_iter().take(wanted).flat_map(|c| c.2).collect();
        victims.sort_unstable();
        victims.dedup();
        victims
    }
}
