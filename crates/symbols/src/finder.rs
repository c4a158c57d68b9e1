//! Finds the files of modules in directories: the only file of this crate that opens anything.
//!
//! ```text
//!  program   --symbols DIRECTORY, then its own path
//!  debug     --symbols DIRECTORY, then what .gnu_debuglink names beside it, /usr/lib/debug, then debuginfod-find if that was asked for
//!  split     --symbols DIRECTORY, then PROGRAM.dwp, then the .dwo where it was compiled or beside the program
//!  DIRECTORY .build-id/xx/yyyy.debug · xx/yyyy.debug · xxyyyy[.debug] · NAME[.debug] · PATH/OF/NAME[.debug]
//! ```
//!
//! What has a build id is compared by it, whatever it is called. Only regular files are opened, and opening waits for nobody.

use crate::build_id;
use crate::debug_link::{Crc, DebugLink, SharedLink};
use crate::dwarf::split::{Open, Split};
use crate::files::{Files, Identity, OpenFile, Stamp, hex};
use crate::pack;
use std::cell::OnceCell;
use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Component, Path, PathBuf};
use std::process::{Command, Stdio};
use std::rc::Rc;
use std::time::{Duration, Instant};

/// `O_NONBLOCK` and `O_NOCTTY` of x86-64 and aarch64: a pipe does not make open(2) wait.
const OPEN_FLAGS: i32 = 0o4000 | 0o400;
/// Where distributions put debug information.
const SYSTEM: &str = "/usr/lib/debug";
/// The largest file whose CRC is computed, and pack that is read.
const MAX_CRC: u64 = 2 << 30;
const MAX_PACK: u64 = 1 << 30;

/// Looks for files in directories.
#[derive(Clone, Debug, Default)]
pub struct Finder {
    directories: Vec<PathBuf>,
    packs: Vec<PathBuf>,
    without_system: bool,
    debuginfod: Option<Debuginfod>,
}

impl Finder {
    /// Looks where programs are, and where the system keeps debug information.
    pub fn new() -> Finder {
        Finder::default()
    }

    /// Looks into a directory first (`--symbols`). A file is taken for itself.
    pub fn directory(mut self, path: impl Into<PathBuf>) -> Finder {
        self.directories.push(path.into());
        self
    }

    /// Looks into a directory of packs ([`crate::pack`]).
    pub fn packs(mut self, path: impl Into<PathBuf>) -> Finder {
        self.packs.push(path.into());
        self
    }

    /// Looks into nothing but the directories that it is given: neither at paths of programs nor into the system's.
    pub fn without_system(mut self) -> Finder {
        self.without_system = true;
        self
    }

    /// Asks the servers of debuginfod for what is found nowhere else.
    pub fn debuginfod(mut self, debuginfod: Debuginfod) -> Finder {
        self.debuginfod = Some(debuginfod);
        self
    }

    /// Files below the directories that may be, or belong to, a file.
    fn candidates(&self, wanted: &Identity, link: Option<&DebugLink>) -> Vec<PathBuf> {
        let mut all = Vec::new();
        let system = (!self.without_system).then(|| PathBuf::from(SYSTEM));
        for directory in self.directories.iter().chain(system.as_ref().filter(|_| link.is_some())) {
            if directory.is_file() {
                all.push(directory.clone());
                continue;
            }
            all.extend(by_build_id(directory, &wanted.build_id));
            let below: PathBuf = wanted.path.components().filter(|c| matches!(c, Component::Normal(_))).collect();
            let mut names: Vec<PathBuf> = below.file_name().map(PathBuf::from).into_iter().collect();
            names.push(below.clone());
            if let Some(link) = link.filter(|l| !l.name.as_os_str().is_empty()) {
                names.push(link.name.clone());
                names.push(below.with_file_name(&link.name));
            }
            for name in names.iter().filter(|n| !n.as_os_str().is_empty()) {
                all.push(directory.join(name));
                let mut with_debug = directory.join(name).into_os_string();
                with_debug.push(".debug");
                all.push(with_debug.into());
            }
        }
        all
    }
}

/// `DIRECTORY/.build-id/xx/yyyy.debug` and its like.
fn by_build_id(directory: &Path, id: &[u8]) -> Vec<PathBuf> {
    let Some((first, rest)) = id.split_first().filter(|(_, rest)| !rest.is_empty()) else { return Vec::new() };
    let (first, rest, whole) = (hex(&[*first]), hex(rest), hex(id));
    let split = PathBuf::from(first).join(format!("{rest}.debug"));
    vec![
        directory.join(".build-id").join(&split),
        directory.join(split),
        directory.join(format!("{whole}.debug")),
        directory.join(whole),
    ]
}

/// Opens a regular file. Of a device even opening may have effects, so that it is looked at before, and, because it may have been
/// replaced since, after.
fn open(path: &Path) -> io::Result<File> {
    if !path.metadata()?.is_file() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let file = OpenOptions::new().read(true).custom_flags(OPEN_FLAGS).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    Ok(file)
}

/// Opens a file if it is the one that is wanted.
fn open_same(path: &Path, wanted: &Identity) -> Option<OpenFile> {
    let file = open(path).ok()?;
    let is_same = match (&wanted.build_id[..], wanted.stamp) {
        ([], None) => true,
        ([], Some(stamp)) => stamp_of(&file).ok()? == stamp,
        (id, _) => build_id::of(&file).as_deref() == Some(id),
    };
    is_same.then(|| OpenFile { path: path.to_path_buf(), bytes: Rc::new(file) })
}

/// The size of a file, and when it was changed.
///
/// # Errors
/// As fstat(2).
pub fn stamp_of(file: &File) -> io::Result<Stamp> {
    let meta = file.metadata()?;
    let modified = meta.mtime().saturating_mul(1_000_000_000).saturating_add(meta.mtime_nsec());
    Ok(Stamp { size: meta.len(), modified })
}

/// Opens a file whose CRC is known.
fn open_by_crc(path: &Path, crc: u32) -> Option<OpenFile> {
    let file = open(path).ok()?;
    let mut piece = vec![0; 1 << 20];
    let (mut sum, mut at) = (Crc::default(), 0);
    if file.metadata().ok()?.len() > MAX_CRC {
        return None;
    }
    loop {
        let n = file.read_at(&mut piece, at).ok()?;
        if n == 0 {
            break;
        }
        sum.add(&piece[..n]);
        at += n as u64;
    }
    (sum.value() == crc).then(|| OpenFile { path: path.to_path_buf(), bytes: Rc::new(file) })
}

impl Files for Finder {
    fn program(&self, wanted: &Identity) -> Option<OpenFile> {
        // A name alone proves nothing: what is taken from a directory must have the build id, or lie at the path below it.
        let sure = |p: &PathBuf| {
            !wanted.build_id.is_empty() || p.ends_with(wanted.path.strip_prefix("/").unwrap_or(&wanted.path))
        };
        let given = self.candidates(wanted, None).into_iter().filter(sure).find_map(|p| open_same(&p, wanted));
        given.or_else(|| open_same(&wanted.path, wanted).filter(|_| !self.without_system && wanted.path.is_absolute()))
    }

    fn debug(&self, wanted: &Identity, link: Option<&DebugLink>) -> Option<OpenFile> {
        let none = DebugLink { name: PathBuf::new(), crc: 0 };
        let mut candidates = self.candidates(wanted, Some(link.unwrap_or(&none)));
        if let Some(link) = link.filter(|_| !self.without_system) {
            let own = wanted.path.parent().unwrap_or(Path::new("/"));
            candidates.extend([own.join(&link.name), own.join(".debug").join(&link.name)]);
        }
        let open = |p: PathBuf| match link {
            _ if !wanted.build_id.is_empty() => open_same(&p, wanted),
            Some(link) => open_by_crc(&p, link.crc),
            None => None,
        };
        // Two paths of one file: the program itself has nothing to add.
        let other = candidates.into_iter().filter(|p| *p != wanted.path);
        let found = other.filter_map(open).find(|f| has_debug(&f.bytes));
        found.or_else(|| {
            let path = self.debuginfod.as_ref()?.find(&wanted.build_id)?;
            open_same(&path, wanted)
        })
    }

    fn shared(&self, link: &SharedLink, by: &Path) -> Option<OpenFile> {
        let wanted = Identity::new(&link.path, &link.build_id);
        let mut candidates = self.candidates(&wanted, Some(&DebugLink { name: PathBuf::new(), crc: 0 }));
        // The path may be a link's, and is relative to what that leads to.
        let by = by.canonicalize().unwrap_or_else(|_| by.to_path_buf());
        candidates.push(by.parent().unwrap_or(Path::new("/")).join(&link.path));
        let found = candidates.iter().find_map(|p| open_same(p, &wanted));
        found.or_else(|| open_same(&self.debuginfod.as_ref()?.find(&link.build_id)?, &wanted))
    }

    fn split(&self, wanted: &Split, by: &Path) -> Vec<OpenFile> {
        let mut candidates = Vec::new();
        let names: Vec<PathBuf> = match wanted {
            Split::Package => {
                [Some(by.to_path_buf()), by.canonicalize().ok()].into_iter().flatten().map(package).collect()
            }
            Split::Unit(directory, name) => vec![directory.join(name)],
        };
        for name in &names {
            let last = name.file_name().unwrap_or_default();
            candidates.extend(self.directories.iter().map(|directory| directory.join(last)));
            if !self.without_system {
                candidates.push(name.clone());
                candidates.extend(by.parent().map(|own| own.join(last)));
            }
        }
        candidates.dedup();
        let open = |path: PathBuf| open(&path).ok().map(|file| OpenFile { path, bytes: Rc::new(file) });
        candidates.into_iter().filter(|p| p.is_absolute()).filter_map(open).collect()
    }

    fn pack(&self, wanted: &Identity) -> Option<Vec<u8>> {
        let name = pack::file_name(wanted);
        self.packs.iter().find_map(|directory| {
            let file = open(&directory.join(&name)).ok().filter(|f| f.metadata().is_ok_and(|m| m.len() <= MAX_PACK))?;
            let mut bytes = Vec::new();
            file.take(MAX_PACK).read_to_end(&mut bytes).ok()?;
            Some(bytes)
        })
    }
}

/// The split files of a program: where they were compiled, or beside it.
pub fn split_files<'f>(program: &Path) -> Open<'f> {
    let program = program.to_path_buf();
    let open = move |wanted: &Split| Finder::new().split(wanted, &program).into_iter().map(|f| f.bytes).collect();
    Rc::new(open)
}

/// `PROGRAM.dwp`.
fn package(program: PathBuf) -> PathBuf {
    let mut name = program.into_os_string();
    name.push(".dwp");
    name.into()
}

/// Whether a file has anything that the stripped one lacks.
fn has_debug(file: &Rc<dyn crate::ReadAt>) -> bool {
    let headers = crate::headers::Headers::read(&**file);
    headers.is_some_and(|h| [".debug_info", ".symtab"].iter().any(|n| h.section(n).is_some_and(|s| s.size > 0)))
}

/// Why debuginfod is of no use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DebuginfodError {
    /// No server is named.
    #[error("DEBUGINFOD_URLS is not set (set it to the URL of a debuginfod server)")]
    NoServer,
    /// The program that asks them is missing.
    #[error("debuginfod-find is not installed (install the package debuginfod or elfutils)")]
    NoProgram,
}

/// How long `debuginfod-find` may take for one file where `DEBUGINFOD_MAXTIME` does not say it, and for how many seconds it may get too
/// little where `DEBUGINFOD_TIMEOUT` does not.
const MAX_TIME: Duration = Duration::from_secs(600);
const TIMEOUT: &str = "20";
/// The most bytes that are read of what it says.
const MAX_SAID: u64 = 8 << 10;

/// Asks the servers in `DEBUGINFOD_URLS`, by running `debuginfod-find`, which keeps what it has found. Once they fail otherwise than by not
/// having a file, they are not asked again.
#[derive(Clone, Debug)]
pub struct Debuginfod {
    program: PathBuf,
    servers: String,
    max_time: Duration,
    /// Why they are not asked any more; one for all clones.
    trouble: Rc<OnceCell<String>>,
}

impl Debuginfod {
    /// With servers as `DEBUGINFOD_URLS` lists them; `path` is what `PATH` is.
    ///
    /// # Errors
    /// There are none, or the program is missing.
    pub fn new(servers: &str, path: &str) -> Result<Debuginfod, DebuginfodError> {
        if servers.trim().is_empty() {
            return Err(DebuginfodError::NoServer);
        }
        let absolute = path.split(':').map(Path::new).filter(|d| d.is_absolute());
        let program = absolute.map(|d| d.join("debuginfod-find")).find(|p| p.is_file());
        let program = program.ok_or(DebuginfodError::NoProgram)?;
        Ok(Debuginfod { program, servers: servers.to_string(), max_time: MAX_TIME, trouble: Rc::default() })
    }

    /// Takes no longer than this for one file.
    pub fn max_time(mut self, limit: Duration) -> Debuginfod {
        self.max_time = limit;
        self
    }

    /// Why the servers are not asked any more.
    pub fn trouble(&self) -> Option<&str> {
        self.trouble.get().map(String::as_str)
    }

    /// The path of the debug information with a build id.
    fn find(&self, id: &[u8]) -> Option<PathBuf> {
        if id.is_empty() || self.trouble.get().is_some() {
            return None;
        }
        match self.ask(id) {
            Ok(path) => path,
            Err(why) => {
                let _ = self.trouble.set(why);
                None
            }
        }
    }

    /// What `debuginfod-find` answers; none: no server has it.
    fn ask(&self, id: &[u8]) -> Result<Option<PathBuf>, String> {
        let mut command = Command::new(&self.program);
        command.args(["debuginfo", &hex(id)]).env("DEBUGINFOD_URLS", &self.servers);
        if std::env::var_os("DEBUGINFOD_TIMEOUT").is_none() {
            command.env("DEBUGINFOD_TIMEOUT", TIMEOUT);
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|e| e.to_string())?;
        let until = Instant::now() + self.max_time;
        let status = loop {
            if let Some(status) = child.try_wait().map_err(|e| e.to_string())? {
                break status;
            }
            if Instant::now() >= until {
                let _ = child.kill();
                let _ = child.wait();
                return Err(format!("no answer within {} s", self.max_time.as_secs()));
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        // What it says is short, so that it lies in the pipes.
        let said = said(child.stderr.take());
        if !status.success() {
            let last = said.lines().rfind(|l| !l.trim().is_empty()).unwrap_or("it failed and did not say why").trim();
            return if last.contains("No such file") { Ok(None) } else { Err(last.to_string()) };
        }
        let path = self::said(child.stdout.take()).lines().last().map(PathBuf::from);
        Ok(path.filter(|p| p.is_absolute()))
    }
}

/// What a program that has ended has written, as far as it is text.
fn said(pipe: Option<impl Read>) -> String {
    let mut bytes = Vec::new();
    let _ = pipe.map(|p| p.take(MAX_SAID).read_to_end(&mut bytes));
    String::from_utf8(bytes).unwrap_or_default()
}
