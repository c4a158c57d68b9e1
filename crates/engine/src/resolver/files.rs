//! The files of modules: those that were mapped, and no others.

use super::{Origin, Places, packs};
use events::Event;
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use symbols::debug_link::{DebugLink, SharedLink};
use symbols::dwarf::split::Split;
use symbols::files::{Files, Identity, OpenFile};
use symbols::finder::Finder;
use symbols::module::Problem;
use symbols::{ReadAt, build_id};

/// What the kernel adds to the path of a file that has none any more.
const DELETED: &[u8] = b" (deleted)";
/// The most files that are remembered, and the largest vDSO.
const MOST: usize = 1 << 16;
const MAX_VDSO: u64 = 1 << 20;

/// A mapping of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Mapping {
    pid: u32,
    range: (u64, u64),
    /// Device, as stat(2) has it, and inode; 0 where they are not known.
    file: (u64, u64),
    time: u64,
}

/// Where files were mapped, and which of them were not found.
pub struct Mapped {
    live: bool,
    same_host: bool,
    realtime_offset: i64,
    /// The last mapping of a file; none where the path has had several files without build ids.
    last: RefCell<HashMap<Identity, Option<Mapping>>>,
    /// Another file has their path now.
    replaced: RefCell<HashSet<Identity>>,
}

impl Mapped {
    /// No mapping is known yet.
    pub fn new(origin: &Origin) -> Mapped {
        let (live, same_host, realtime_offset) = match origin {
            Origin::Live => (true, true, 0),
            Origin::Trace { same_host, realtime_offset, .. } => (false, *same_host, *realtime_offset),
        };
        Mapped { live, same_host, realtime_offset, last: RefCell::default(), replaced: RefCell::default() }
    }

    /// Learns of a mapping.
    pub fn note(&self, identity: &Identity, ev: &Event<'_>) {
        let addr = ev.value_of("addr");
        let file = (ev.value_of("dev"), ev.value_of("inode"));
        let range = (addr, addr.saturating_add(ev.value_of("len")));
        let mapping = Mapping { pid: ev.pid(), range, file, time: ev.time() };
        let mut all = self.last.borrow_mut();
        if let Some(last) = all.get_mut(identity) {
            let other = identity.build_id.is_empty() && last.is_none_or(|l| l.file != file);
            *last = if other { None } else { Some(mapping) };
        } else if all.len() < MOST {
            all.insert(identity.clone(), Some(mapping));
        }
    }

    fn of(&self, wanted: &Identity) -> Option<Mapping> {
        *self.last.borrow().get(wanted)?
    }

    /// The file that a process that still runs has mapped.
    fn of_process(&self, wanted: &Identity) -> Option<OpenFile> {
        let m = self.of(wanted).filter(|_| self.live)?;
        let by_range = PathBuf::from(format!("/proc/{}/map_files/{:x}-{:x}", m.pid, m.range.0, m.range.1));
        let mut inside = format!("/proc/{}/root", m.pid).into_bytes();
        inside.extend(wanted.path.as_os_str().as_bytes());
        let inside = Path::new(std::ffi::OsStr::from_bytes(&inside)).to_path_buf();
        [by_range, inside].into_iter().find_map(|path| self.same(path, wanted, Some(m)))
    }

    /// The file at a path, if it is the one that was mapped.
    fn same(&self, path: PathBuf, wanted: &Identity, mapping: Option<Mapping>) -> Option<OpenFile> {
        let file = sys::maps::open_regular(&path).ok()?;
        let same = if wanted.build_id.is_empty() {
            mapping.is_some_and(|m| self.is_unchanged(&file, m))
        } else {
            build_id::of(&file).as_ref() == Some(&wanted.build_id)
        };
        same.then(|| OpenFile { path, bytes: Rc::new(file) })
    }

    /// Without a build id: it is the same file of the same machine, and was not written to since.
    fn is_unchanged(&self, file: &File, m: Mapping) -> bool {
        let Ok(meta) = file.metadata() else { return false };
        let written = meta.mtime().saturating_mul(1_000_000_000).saturating_add(meta.mtime_nsec());
        let mapped = (m.time as i64).saturating_add(self.realtime_offset);
        let is_it = || m.file.1 != 0 && sys::maps::is_mapped_as(file, sys::maps::of_stat(m.file.0, m.file.1));
        self.same_host && (self.live || written <= mapped) && is_it()
    }

    /// The file of this machine that has its path.
    fn of_machine(&self, wanted: &Identity) -> Option<OpenFile> {
        if !wanted.path.is_absolute() {
            return None;
        }
        let mapping = self.of(wanted);
        let bytes = wanted.path.as_os_str().as_bytes();
        let before = bytes.strip_suffix(DELETED).map(|p| Path::new(std::ffi::OsStr::from_bytes(p)).to_path_buf());
        let found =
            [Some(wanted.path.clone()), before].into_iter().flatten().find_map(|p| self.same(p, wanted, mapping));
        if found.is_none() && wanted.path.is_file() {
            self.replaced.borrow_mut().insert(wanted.clone());
        }
        found
    }

    /// Why a file was of no use.
    pub fn why(&self, of: &Identity, problem: Problem) -> String {
        if problem == Problem::NotFound && self.replaced.borrow().contains(of) {
            let what = if of.build_id.is_empty() { "is not known to be" } else { "has another build id, so it is not" };
            return format!(
                "the file there {what} the one that was mapped (name a directory with that one: --symbols)"
            );
        }
        problem.to_string()
    }
}

/// All places together, the surest first.
pub struct SessionFiles {
    /// `--symbols`.
    given: Finder,
    /// And what the system has for debugging.
    all: Finder,
    mapped: Rc<Mapped>,
    trace: Option<PathBuf>,
}

impl SessionFiles {
    /// With the packs of `trace`.
    pub fn new(trace: Option<PathBuf>, places: Places, mapped: Rc<Mapped>) -> SessionFiles {
        let given = places.symbols.iter().fold(Finder::new(), |finder, dir| finder.directory(dir));
        let mut all = given.clone();
        if let Some(debuginfod) = places.debuginfod {
            all = all.debuginfod(debuginfod);
        }
        SessionFiles { given: given.without_system(), all, mapped, trace }
    }
}

impl Files for SessionFiles {
    fn program(&self, wanted: &Identity) -> Option<OpenFile> {
        let given = self.given.program(wanted);
        given.or_else(|| self.mapped.of_process(wanted)).or_else(|| self.mapped.of_machine(wanted))
    }

    fn debug(&self, wanted: &Identity, link: Option<&DebugLink>) -> Option<OpenFile> {
        self.all.debug(wanted, link)
    }

    fn shared(&self, link: &SharedLink, by: &Path) -> Option<OpenFile> {
        self.all.shared(link, by)
    }

    fn split(&self, wanted: &Split, by: &Path) -> Vec<OpenFile> {
        self.all.split(wanted, by)
    }

    fn pack(&self, wanted: &Identity) -> Option<Vec<u8>> {
        packs::read(self.trace.as_deref()?, wanted)
    }
}

/// The vDSO of this process, which is that of all others of this kernel.
pub fn own_vdso() -> Option<Rc<dyn ReadAt>> {
    let maps = sys::maps::of(sys::process::own_pid()).ok()?;
    let (from, to) = maps.into_iter().find(|m| m.path == b"[vdso]")?.range;
    let mut bytes = vec![0; usize::try_from(to.checked_sub(from).filter(|n| *n <= MAX_VDSO)?).ok()?];
    File::open("/proc/self/mem").ok()?.read_exact_at(&mut bytes, from).ok()?;
    Some(Rc::new(bytes))
}
