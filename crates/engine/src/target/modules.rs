//! Which files make up a program: itself and the libraries that it is linked with, as the dynamic loader finds them; of a process, what
//! it has mapped.
//!
//! ```text
//!  program ─► #! ─► interpreter        library: DT_RPATH, LD_LIBRARY_PATH, DT_RUNPATH, /etc/ld.so.cache, the usual directories
//!  needed ─► library ─► needed ─► …    what a program loads by itself later (dlopen) is not known before it does
//! ```

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::env;
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use symbols::Elf;
use symbols::ld_cache::{LdCache, is_version};
use symbols::throws::{self, Means};

/// Device and inode of a file.
type Identity = (u64, u64);

/// Identity, size and time of a file: as long as these are equal, its tables are valid.
type Version = (u64, u64, u64, i64, i64);

/// The files that were read last: listing, checking and enabling need the same ones.
static READ: Mutex<Vec<(Version, Arc<Elf>)>> = Mutex::new(Vec::new());
const KEPT: usize = 8;

/// The most files of one program.
const MAX: usize = 1024;
/// Where loaders look at last: glibc's and musl's.
const USUAL: [&str; 5] = ["/lib64", "/usr/lib64", "/lib", "/usr/lib", "/usr/local/lib"];

/// A file that is part of a program.
pub struct Module {
    /// Where it lies.
    pub path: PathBuf,
    /// It, open.
    pub file: File,
    /// Its tables.
    pub elf: Arc<Elf>,
}

impl Module {
    /// Opens a file; none where it is no ELF file, or cannot be read.
    pub fn open(path: &Path) -> Option<Module> {
        let file = sys::maps::open_regular(path).ok()?;
        let elf = tables(&file).ok()?;
        Some(Module { path: path.into(), file, elf })
    }

    /// How its code can leave functions ([`throws`]).
    pub fn means(&self) -> Option<Means> {
        static KNOWN: Mutex<BTreeMap<Identity, Option<Means>>> = Mutex::new(BTreeMap::new());
        let meta = self.file.metadata().ok()?;
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        known.entry((meta.dev(), meta.ino())).or_insert_with(|| throws::of(&self.elf, &self.file)).clone()
    }
}

/// The tables of a file that is open.
pub fn tables(file: &File) -> Result<Arc<Elf>, String> {
    let meta = file.metadata().map_err(|e| e.to_string())?;
    let identity = (meta.dev(), meta.ino(), meta.size(), meta.mtime(), meta.mtime_nsec());
    let mut read = READ.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, elf)) = read.iter().find(|r| r.0 == identity) {
        return Ok(Arc::clone(elf));
    }
    let elf = Arc::new(Elf::read(file).map_err(|e| e.to_string())?);
    if read.len() >= KEPT {
        read.remove(0);
    }
    read.push((identity, Arc::clone(&elf)));
    Ok(elf)
}

/// A program or a library and everything that it is linked with, itself first. Libraries that are not found are skipped: without
/// them it would not start.
pub fn of_file(path: &Path) -> Vec<Module> {
    let Some(first) = Module::open(path).or_else(|| Module::open(&interpreter(path)?)) else { return Vec::new() };
    let search = Search::new();
    let mut seen = HashSet::from([first.path.clone()]);
    let mut waiting = VecDeque::from([first]);
    let mut all: Vec<Module> = Vec::new();
    while let Some(module) = waiting.pop_front() {
        if all.len() < MAX {
            for name in &module.elf.dynamic().needed {
                let found = search.find(name, &module).filter(|m| seen.insert(m.path.clone()));
                waiting.extend(found);
            }
        }
        all.push(module);
    }
    all
}

/// What a process has mapped with executable pages.
pub fn of_process(pid: i32) -> Vec<Module> {
    mapped(pid, |_| true)
}

/// The files that a process has mapped with executable pages and whose path is wanted.
fn mapped(pid: i32, wanted: impl Fn(&Path) -> bool) -> Vec<Module> {
    let mut seen = HashSet::new();
    let mut all = Vec::new();
    for map in sys::maps::of(pid).unwrap_or_default() {
        let path = PathBuf::from(std::ffi::OsStr::from_bytes(&map.path));
        let is_code = map.prot & sys::maps::PROT_EXEC != 0 && map.file.2 != 0;
        if !is_code || !wanted(&path) || !seen.insert(map.file) || all.len() >= MAX {
            continue;
        }
        let Ok(file) = sys::maps::open(pid, map.range, &map.path, map.file) else { continue };
        let Ok(elf) = tables(&file) else { continue };
        all.push(Module { path, file, elf });
    }
    all
}

/// The library of a name, with or without its version, that a process has mapped: its path, or the one through the process where it has
/// another at that path.
pub fn mapped_library(pid: i32, name: &str) -> Option<PathBuf> {
    let is = |path: &Path| path.file_name().is_some_and(|file| is_version(&file.to_string_lossy(), name));
    let found = mapped(pid, is).into_iter().next()?;
    let identity = sys::maps::identity(&found.file.metadata().ok()?);
    let here = fs::metadata(&found.path).is_ok_and(|meta| sys::maps::identity(&meta) == identity);
    Some(if here { found.path.clone() } else { inside(pid, &found.path) })
}

/// The path, through the process, of the file that a process sees at an absolute path, where that is another one than this process sees.
pub fn seen_elsewhere(pid: i32, path: &Path) -> Option<PathBuf> {
    let inside = path.is_absolute().then(|| inside(pid, path))?;
    let identity = |path: &Path| fs::metadata(path).ok().map(|meta| sys::maps::identity(&meta));
    let there = identity(&inside)?;
    (identity(path) != Some(there)).then_some(inside)
}

/// A path as a process sees it.
fn inside(pid: i32, path: &Path) -> PathBuf {
    Path::new("/proc").join(pid.to_string()).join("root").join(path.strip_prefix("/").unwrap_or(path))
}

/// The interpreter that is named after `#!`.
fn interpreter(path: &Path) -> Option<PathBuf> {
    let mut line = Vec::new();
    sys::maps::open_regular(path).ok()?.take(256).read_to_end(&mut line).ok()?;
    let line = line.strip_prefix(b"#!")?.split(|b| *b == b'\n').next()?;
    let word = line.split(|b| b.is_ascii_whitespace()).find(|w| !w.is_empty())?;
    Some(PathBuf::from(std::ffi::OsStr::from_bytes(word)))
}

/// The dynamic loader's cache of libraries; musl's loader has no such file.
pub const LD_CACHE: &str = "/etc/ld.so.cache";

/// The contents of the dynamic loader's cache.
pub fn ld_cache() -> Option<LdCache> {
    LdCache::parse(&fs::read(LD_CACHE).ok()?)
}

/// Where libraries are looked for.
struct Search {
    cache: Option<LdCache>,
    environment: Vec<PathBuf>,
}

impl Search {
    fn new() -> Search {
        let environment = env::var_os("LD_LIBRARY_PATH").map(|p| env::split_paths(&p).collect()).unwrap_or_default();
        Search { cache: ld_cache(), environment }
    }

    /// The library that a file asks for.
    fn find(&self, name: &str, of: &Module) -> Option<Module> {
        if name.contains('/') {
            return Module::open(Path::new(name));
        }
        let dynamic = of.elf.dynamic();
        let rpath = dynamic.rpath.as_deref().filter(|_| dynamic.runpath.is_none());
        let before = directories(rpath, &of.path).into_iter().chain(self.environment.iter().cloned());
        let dirs = before.chain(directories(dynamic.runpath.as_deref(), &of.path));
        let cached = self.cache.iter().filter_map(|c| c.path(name)).map(PathBuf::from);
        let usual = USUAL.iter().map(|d| Path::new(d).join(name));
        dirs.map(|d| d.join(name)).chain(cached).chain(usual).find_map(|path| Module::open(&path))
    }
}

/// The directories of a list with colons; `$ORIGIN` is where the file lies.
fn directories(list: Option<&str>, of: &Path) -> Vec<PathBuf> {
    let origin = of.canonicalize().ok().and_then(|p| p.parent().map(|d| d.to_string_lossy().into_owned()));
    let origin = origin.unwrap_or_default();
    let expand = |d: &str| PathBuf::from(d.replace("$ORIGIN", &origin).replace("${ORIGIN}", &origin));
    list.into_iter().flat_map(|l| l.split(':')).filter(|d| !d.is_empty()).map(expand).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_program_and_its_libraries() {
        let exe = std::env::current_exe().unwrap();
        let all = of_file(&exe);
        assert_eq!(all[0].path, exe);
        let names: Vec<String> =
            all.iter().map(|m| m.path.file_name().unwrap().to_string_lossy().into_owned()).collect();
        let needed = &all[0].elf.dynamic().needed;
        assert!(needed.iter().all(|n| names.contains(n)), "{needed:?} {names:?}");
        // What it is linked with, it has mapped.
        let mapped = of_process(std::process::id() as i32);
        let identity = |m: &Module| m.file.metadata().map(|m| (m.dev(), m.ino())).unwrap();
        let mapped: HashSet<_> = mapped.iter().map(identity).collect();
        assert!(all.iter().all(|m| mapped.contains(&identity(m))), "{names:?}");
        assert!(all[0].means().is_some());
    }

    #[test]
    fn a_script_is_its_interpreter() {
        let dir = testkit::Scratch::new("modules");
        let path = dir.join("script");
        std::fs::write(&path, "#! /bin/sh -e\n:").unwrap();
        assert_eq!(of_file(&path).first().map(|m| m.path.clone()), Some("/bin/sh".into()));
        std::fs::write(&path, "no script").unwrap();
        assert!(of_file(&path).is_empty() && of_file(Path::new("/no/such/file")).is_empty());
    }

    #[test]
    fn directories_know_where_the_file_lies() {
        let exe = std::env::current_exe().unwrap().canonicalize().unwrap();
        let dir = exe.parent().unwrap();
        let want = [dir.join("../lib"), dir.into(), "/opt".into()];
        assert_eq!(directories(Some("$ORIGIN/../lib:${ORIGIN}::/opt"), &exe), want);
        assert!(directories(None, &exe).is_empty());
    }
}
