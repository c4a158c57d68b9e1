//! The code that processes have mapped, and its unwind tables, for walks in user space: of stopped threads (ptrace) and of copied stacks
//! (perf).
//!
//! Tables are built once for each file, which is open only while it is read.

use super::{elf_file, patched};
use std::collections::HashMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use symbols::headers::Headers;
use sys::maps::{Map, PROT_EXEC};
use unwind::Rule;
use unwind::build::Module;
use unwind::patched::Patched;

/// The most files with tables, and bytes of the vDSO.
const MOST_FILES: usize = 1024;
const MOST_VDSO: u64 = 1 << 20;
/// The most mappings of a process; a hostile one makes more.
const MOST_MAPPINGS: usize = 4096;

/// The tables of a file, and where its code lies.
pub struct Tables {
    module: Module,
    headers: Headers,
}

impl Tables {
    /// Makes them of a file; none where it is no ELF file.
    fn build(bytes: &[u8]) -> Option<Tables> {
        let headers = Headers::read(bytes)?;
        Some(Tables { module: Module::build(bytes).ok()?, headers })
    }
}

/// Mapped code; without tables, frames are guessed.
#[derive(Clone)]
struct Mapped {
    start: u64,
    end: u64,
    /// Of `start` in the file.
    offset: u64,
    tables: Option<Arc<Tables>>,
}

/// The code of a process.
#[derive(Clone, Default)]
pub struct Code {
    /// Sorted, apart.
    mapped: Vec<Mapped>,
    /// Areas of patched functions.
    areas: Vec<patched::Copy>,
    /// It has executable memory that is no file's: a just-in-time compiler's.
    jit: bool,
}

impl Code {
    /// Reads what a process has mapped; none where that is not allowed, or it has ended. `build` makes tables of files.
    pub fn of(pid: i32, files: &mut Files, build: &mut Building<'_>) -> Option<Code> {
        let mut code = Code::default();
        for map in sys::maps::of(pid).ok()?.iter().filter(|m| m.prot & PROT_EXEC != 0) {
            code.map(map, files.tables(pid, map, build), areas_of(pid, map));
        }
        Some(code)
    }

    /// A mapping is made, in the place of what was there. `areas`: those that it consists of ([`areas_of`]).
    pub fn map(&mut self, map: &Map, tables: Option<Arc<Tables>>, areas: Vec<patched::Copy>) {
        let (start, end) = map.range;
        if start >= end || is_kernels(&map.path) {
            return;
        }
        self.areas.retain(|a| end <= a.area().range().0 || a.area().range().1 <= start);
        self.jit |= is_nobodys(map) && areas.is_empty();
        let room = MOST_MAPPINGS.saturating_sub(self.areas.len());
        self.areas.extend(areas.into_iter().take(room));
        if self.mapped.iter().any(|m| m.start < end && start < m.end) {
            self.cut(start, end);
        }
        if self.mapped.len() < MOST_MAPPINGS {
            let at = self.mapped.partition_point(|m| m.start < start);
            self.mapped.insert(at, Mapped { start, end, offset: map.offset, tables });
        }
    }

    fn cut(&mut self, start: u64, end: u64) {
        let parts = |m: Mapped| {
            let low = (m.start < start).then(|| Mapped { end: m.end.min(start), ..m.clone() });
            let from = m.start.max(end);
            let offset = m.offset.wrapping_add(from.wrapping_sub(m.start));
            let high = (from < m.end).then_some(Mapped { start: from, offset, ..m });
            low.into_iter().chain(high)
        };
        self.mapped = std::mem::take(&mut self.mapped).into_iter().flat_map(parts).collect();
    }

    /// What lies at a pc, where that is code of patched functions; `exact`: it is no return address.
    pub fn patched(&self, pc: u64, exact: bool) -> Option<Patched> {
        Some(self.area(pc, exact)?.at(pc, exact).unwrap_or(Patched::Return(None)))
    }

    /// The number in the records of the function whose stub lies at a pc ([`patched::Copy::number`]).
    pub fn number(&self, pc: u64, exact: bool) -> Option<u32> {
        self.area(pc, exact)?.number(pc, exact)
    }

    fn area(&self, pc: u64, exact: bool) -> Option<&patched::Copy> {
        let lookup = pc.wrapping_sub(u64::from(!exact));
        self.areas.iter().find(|a| (a.area().range().0..a.area().range().1).contains(&lookup))
    }

    /// The distance of the data that stubs have of a thread from its `fs` base; none where there are no stubs.
    pub fn tls(&self) -> Option<i64> {
        self.areas.first().map(|a| a.area().tls())
    }

    /// The rule at an address; none where no code is mapped.
    pub fn rule(&self, address: u64) -> Option<Rule> {
        let at = self.mapped.partition_point(|m| m.end <= address);
        let mapped = self.mapped.get(at).filter(|m| m.start <= address)?;
        let Some(tables) = &mapped.tables else { return Some(Rule::NONE) };
        let offset = address.wrapping_sub(mapped.start).wrapping_add(mapped.offset);
        Some(tables.headers.address_of(offset).map_or(Rule::NONE, |own| tables.module.rule(own)))
    }

    /// The rule of code in no mapping: that of a just-in-time compiler is guessed.
    pub fn unmapped(&self) -> Option<Rule> {
        self.jit.then_some(Rule::NONE)
    }
}

const VDSO: &[u8] = b"[vdso]";

/// Whether memory is no file's.
fn is_nobodys(map: &Map) -> bool {
    map.file.2 == 0 && map.path != VDSO
}

/// The areas of traced functions that memory consists of; none where it is something else. They are read from the process.
pub fn areas_of(pid: i32, map: &Map) -> Vec<patched::Copy> {
    if !is_nobodys(map) || is_kernels(&map.path) {
        return Vec::new();
    }
    patched::areas(pid, map.range).into_iter().filter_map(|area| patched::Copy::of(pid, area)).collect()
}

/// Mappings of the kernel's own, in which no frame is looked up.
fn is_kernels(path: &[u8]) -> bool {
    matches!(path, b"[vsyscall]" | b"[uprobes]" | b"[vvar]" | b"[vvar_vclock]")
}

/// What a file is known by: device, inode and path.
type FileKey = ((u32, u32, u64), Vec<u8>);

/// What runs while tables are built.
pub type Building<'b> = dyn FnMut(Vec<u8>) -> Option<Tables> + 'b;

/// Builds tables and does nothing else meanwhile.
pub fn build_here(bytes: Vec<u8>) -> Option<Tables> {
    Tables::build(&bytes)
}

/// Builds tables in a thread of its own, and calls `meanwhile` until they are there.
pub fn build_beside(bytes: Vec<u8>, mut meanwhile: impl FnMut()) -> Option<Tables> {
    let bytes = Arc::new(bytes);
    let theirs = Arc::clone(&bytes);
    let builder = std::thread::Builder::new().name("trapline-tables".into());
    // Where no thread can be started, they are built here.
    let Ok(thread) = builder.spawn(move || Tables::build(&theirs)) else { return Tables::build(&bytes) };
    while !thread.is_finished() {
        meanwhile();
    }
    thread.join().ok().flatten()
}

/// The tables of all files.
#[derive(Default)]
pub struct Files {
    known: HashMap<FileKey, Option<Arc<Tables>>>,
    /// Files that could not be read.
    pub unreadable: u64,
    /// Files that have tables.
    pub built: u64,
    /// What building them took, ns.
    pub build_ns: u64,
}

impl Files {
    /// The tables of the file that is mapped; none where it has none, or cannot be read, which is tried again the next time.
    pub fn tables(&mut self, pid: i32, map: &Map, build: &mut Building<'_>) -> Option<Arc<Tables>> {
        if is_nobodys(map) {
            return None;
        }
        let key = (map.file, map.path.clone());
        if let Some(known) = self.known.get(&key) {
            return known.clone();
        }
        let began = sys::time::monotonic();
        let Some(bytes) = bytes_of(pid, map) else {
            self.unreadable += 1;
            return None;
        };
        let built = build(bytes).map(Arc::new);
        self.built += u64::from(built.is_some());
        self.build_ns += sys::time::monotonic().saturating_sub(began);
        if self.known.len() >= MOST_FILES {
            self.known.clear();
        }
        self.known.insert(key, built.clone());
        built
    }
}

/// What is needed of the file that is mapped, or the vDSO: its tables for unwinders, at their places in the file.
pub fn bytes_of(pid: i32, map: &Map) -> Option<Vec<u8>> {
    if map.path == VDSO {
        return vdso(map.range.1.checked_sub(map.range.0)?);
    }
    elf_file::read(&sys::maps::open(pid, map.range, &map.path, map.file).ok()?).ok()
}

/// The bytes of the vDSO, which is the same for all processes, if its size is this.
fn vdso(size: u64) -> Option<Vec<u8>> {
    let pid = sys::process::own_pid();
    let own = sys::maps::of(pid).ok()?.into_iter().find(|m| m.path == VDSO)?;
    let mut bytes =
        vec![0; usize::try_from(size).ok().filter(|_| size <= MOST_VDSO && own.range.1 - own.range.0 == size)?];
    (sys::mem::read(pid, own.range.0, &mut bytes).ok()? == bytes.len()).then_some(bytes)
}

/// The id of a stack: never 0.
pub fn id_of(frames: &[u64], ended: u64) -> u64 {
    let mut hasher = DefaultHasher::new();
    (frames, ended).hash(&mut hasher);
    hasher.finish().max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use unwind::Frame;

    #[test]
    fn ids_are_those_of_the_frames() {
        let frames = [1 | Frame::EXACT, 2, 3];
        assert_eq!(id_of(&frames, 1), id_of(&frames, 1));
        assert_ne!(id_of(&frames, 1), id_of(&frames[..2], 1));
        assert_ne!(id_of(&frames, 1), id_of(&frames, 2));
        assert_ne!(id_of(&[], 0), 0);
    }

    fn map(range: (u64, u64), offset: u64, path: &str) -> Map {
        Map { range, prot: 5, flags: 2, offset, file: (1, 2, u64::from(!path.starts_with("//"))), path: path.into() }
    }

    #[test]
    fn later_mappings_replace_earlier_ones() {
        let mut code = Code::default();
        code.map(&map((100, 200), 1000, "/a"), None, Vec::new());
        code.map(&map((300, 400), 0, "/b"), None, Vec::new());
        code.map(&map((140, 160), 7, "/c"), None, Vec::new());
        let list = |c: &Code| c.mapped.iter().map(|m| (m.start, m.end, m.offset)).collect::<Vec<_>>();
        assert_eq!(list(&code), [(100, 140, 1000), (140, 160, 7), (160, 200, 1060), (300, 400, 0)]);
        code.map(&map((150, 350), 0, "/d"), None, Vec::new());
        assert_eq!(list(&code), [(100, 140, 1000), (140, 150, 7), (150, 350, 0), (350, 400, 50)]);
        assert_eq!((code.rule(99), code.rule(100), code.rule(400)), (None, Some(Rule::NONE), None));
        assert_eq!(code.unmapped(), None);
        code.map(&map((500, 600), 0, "[uprobes]"), None, Vec::new());
        assert_eq!(code.rule(500), None);
        code.map(&map((500, 600), 0, "//anon"), None, Vec::new());
        assert_eq!(code.unmapped(), Some(Rule::NONE));
    }

    #[test]
    fn own_code_has_tables() {
        let mut files = Files::default();
        let code = Code::of(sys::process::own_pid(), &mut files, &mut build_here).expect("own mappings");
        let here = own_code_has_tables as fn() as usize as u64;
        assert!(code.rule(here).is_some_and(|r| r != Rule::NONE), "{:?}", code.rule(here));
        assert!(files.built > 1 && files.unreadable == 0);
        assert!(code.mapped.iter().any(|m| m.tables.is_some()));
    }
}
