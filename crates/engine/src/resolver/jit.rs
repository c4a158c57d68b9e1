//! Functions that just-in-time compilers have made, as a dump that the process has mapped (`jit-PID.dump`) or `/tmp/perf-PID.map` lists
//! them.
//!
//! ```text
//!  live ─► the dump and the map of a process that runs              to pack ─► both, also of a process that has ended
//!  a trace ─► .trapline/symbols/{jit,perf}-PID.pack: what the trace needs of them ◄──────────────────────────────┘
//! ```
//!
//! A dump has the time of each function, so that code which was written over keeps its name of the time. It is opened when it is mapped.

use super::Origin;
use super::packs::{self, Packed};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;
use symbols::jit_dump::{JitDump, Loaded};
use symbols::perf_map::{self, Owner, PerfMap};

/// A map that has grown is read again after this long, ns.
const AGAIN_NS: u64 = 100_000_000;
/// Processes whose maps are kept, refusals that are reported, and processes whose users are known.
const MOST: usize = 1024;
const MOST_REFUSED: usize = 8;
/// Dumps that are open.
const MOST_DUMPS: usize = 256;
const MOST_USERS: usize = 1 << 20;

/// A dump that a process has mapped.
struct Dump {
    file: Option<File>,
    dump: JitDump,
    name: String,
    /// When it was looked at, ns of the monotonic clock, and the bytes that it had.
    looked: u64,
    size: u64,
}

#[derive(Default)]
struct Known {
    map: PerfMap,
    name: String,
    /// Bytes of the file, and when it was looked at, ns of the monotonic clock.
    size: u64,
    looked: u64,
    /// When the file was made, ns of the monotonic clock: before that it was not this process's. 0: at any time.
    born: u64,
    /// The same, ns of the real time; 0 where the file system does not say.
    created: i64,
}

/// Functions of a process by where they begin: where they end, and their names.
type Functions = BTreeMap<u64, (u64, String)>;
/// Functions of a process by where they begin and since when.
type Timed = BTreeMap<(u64, u64), (u64, String)>;

/// The maps of all processes.
#[derive(Default)]
pub struct Jit {
    all: HashMap<u32, Known>,
    dumps: HashMap<u32, Dump>,
    /// Processes that run, and when a dump was looked for among what they have mapped.
    searched: HashMap<u32, u64>,
    /// Processes of whose dumps a pack was looked for.
    packs_read: HashSet<u32>,
    refused: Vec<String>,
    /// The user of each process, as the events say.
    users: HashMap<u32, u32>,
    /// What was asked for, where it is to be packed.
    asked: Option<HashMap<u32, Functions>>,
    /// Functions of dumps that were asked for.
    asked_of_dumps: HashMap<u32, Timed>,
}

impl Jit {
    /// To pack a trace: the maps of its processes are read, and what is asked for is remembered.
    pub fn to_pack() -> Jit {
        Jit { asked: Some(HashMap::new()), ..Jit::default() }
    }

    /// A process has mapped a file: perhaps a dump.
    pub fn mapped(&mut self, origin: &Origin, pid: u32, path: &[u8]) {
        let is_dump = |name: &[u8]| name.starts_with(b"jit-") && name.ends_with(b".dump");
        let name = path.rsplit(|b| *b == b'/').next().unwrap_or_default();
        if !is_dump(name) || self.dumps.len() >= MOST_DUMPS || self.dumps.contains_key(&pid) {
            return;
        }
        let name = String::from_utf8_lossy(path).into_owned();
        let uid = self.users.get(&pid).copied();
        let (file, users) = match origin {
            Origin::Live => {
                let uid = sys::proc::ids(pid as i32).map(|(uid, _)| uid).or(uid);
                (PathBuf::from(format!("/proc/{pid}/root{name}")), uid.into_iter().collect::<Vec<_>>())
            }
            // The file's own path: the process may have ended. Only its user, root and whoever reads are believed.
            Origin::Trace { same_host: true, .. } => {
                (PathBuf::from(&name), uid.into_iter().chain([sys::process::euid()]).collect())
            }
            Origin::Trace { .. } => return,
        };
        if let Some(file) = self.believed(&file, &name, &users) {
            self.dumps.insert(pid, Dump { file: Some(file), dump: JitDump::default(), name, looked: 0, size: 0 });
        }
    }

    /// Looks for a dump in what a process that runs has mapped: that it was mapped may be reported later than what needs it.
    fn search(&mut self, pid: u32) {
        let now = sys::time::monotonic();
        let last = self.searched.get(&pid).copied();
        if self.dumps.contains_key(&pid) || last.is_some_and(|last| now.saturating_sub(last) < AGAIN_NS) {
            return;
        }
        if self.searched.len() >= MOST {
            self.searched.clear();
        }
        self.searched.insert(pid, now);
        for map in sys::maps::of(pid as i32).unwrap_or_default() {
            self.mapped(&Origin::Live, pid, &map.path);
        }
    }

    /// The function of a dump that was at an address at a time.
    fn of_dump(&mut self, origin: &Origin, pid: u32, address: u64, time: u64) -> Option<(&str, u64, &str)> {
        if let Origin::Trace { dir, .. } = origin
            && self.asked.is_none()
            && !self.dumps.contains_key(&pid)
            && !self.packs_read.contains(&pid)
        {
            self.packs_read.insert(pid);
            if let Some(text) = packs::read_file(dir, &dump_pack_of(pid)) {
                let (dump, name) = (JitDump::of(lines_of_dump(&text)), dump_of(pid));
                self.dumps.insert(pid, Dump { file: None, dump, name, looked: 0, size: 0 });
            }
        }
        if matches!(origin, Origin::Live) {
            self.search(pid);
        }
        let Dump { file, dump, looked, size, .. } = self.dumps.get_mut(&pid)?;
        let now = sys::time::monotonic();
        // Since it was read, other code may have been written over what it knows.
        let is_due = |looked: u64, unknown: bool| {
            looked == 0 || time >= looked || unknown && now.saturating_sub(looked) >= AGAIN_NS
        };
        if let Some(file) = file
            && is_due(*looked, dump.find(address, time).is_none())
            && let Ok(bytes) = file.metadata().map(|m| m.len())
            && (bytes != *size || *looked == 0)
        {
            (*looked, *size) = (now, bytes);
            if let Err(e) = dump.read(file) {
                let name = dump_of(pid);
                self.refused.push(format!("{name}: not used: {e}"));
            }
        }
        let Dump { dump, name, .. } = self.dumps.get(&pid)?;
        let found = dump.find(address, time)?;
        if self.asked.is_some() {
            let asked = self.asked_of_dumps.entry(pid).or_default().entry((found.range.0, found.time));
            asked.or_insert_with(|| (found.range.1, found.name.clone()));
        }
        Some((&found.name, found.range.0, name))
    }

    /// Name, start and map of the function that holds an address at a time.
    pub fn find(&mut self, origin: &Origin, pid: u32, address: u64, time: u64) -> Option<(&str, u64, &str)> {
        if self.of_dump(origin, pid, address, time).is_some() {
            return self.of_dump(origin, pid, address, time);
        }
        let known = self.all.get(&pid).is_some_and(|k| k.map.find(address).is_some());
        if !known {
            self.read(origin, pid);
        }
        let known = self.all.get(&pid).filter(|k| k.born <= time)?;
        let (start, end, name) = known.map.function(address)?;
        if let Some(asked) = &mut self.asked {
            asked.entry(pid).or_default().entry(start).or_insert_with(|| (end, name.to_string()));
        }
        Some((name, start, &known.name))
    }

    /// It executes another program.
    pub fn forget(&mut self, pid: u32) {
        self.all.remove(&pid);
        self.dumps.remove(&pid);
    }

    /// Whose process it is.
    pub fn belongs_to(&mut self, pid: u32, uid: u32) {
        if self.users.len() < MOST_USERS || self.users.contains_key(&pid) {
            self.users.insert(pid, uid);
        }
    }

    /// A process has made another one.
    pub fn fork(&mut self, parent: u32, child: u32) {
        if let Some(uid) = self.users.get(&parent) {
            self.belongs_to(child, *uid);
        }
    }

    fn read(&mut self, origin: &Origin, pid: u32) {
        let now = sys::time::monotonic();
        if self.all.len() >= MOST && !self.all.contains_key(&pid) {
            self.all.clear();
        }
        let known = self.all.entry(pid).or_default();
        if known.looked > 0 && (now.saturating_sub(known.looked) < AGAIN_NS || !matches!(origin, Origin::Live)) {
            return;
        }
        known.looked = now;
        let uid = self.users.get(&pid).copied();
        match origin {
            Origin::Live => {
                // As the process itself knows its number, in its own file system.
                let Some(own) = sys::proc::own_id(pid as i32) else { return };
                let name = format!("/tmp/perf-{own}.map");
                let Some((uid, _)) = sys::proc::ids(pid as i32) else { return };
                self.read_file(pid, PathBuf::from(format!("/proc/{pid}/root{name}")), name, &[uid]);
            }
            Origin::Trace { same_boot: true, realtime_offset, .. } if self.asked.is_some() => {
                // The process may have ended, and its number may be another one's. Only its user, root and whoever packs are believed.
                let users: Vec<u32> = uid.into_iter().chain([sys::process::euid()]).collect();
                let name = map_of(pid);
                self.read_file(pid, PathBuf::from(&name), name, &users);
                if let Some(known) = self.all.get_mut(&pid) {
                    known.born = known.created.saturating_sub(*realtime_offset).try_into().unwrap_or(0);
                }
            }
            Origin::Trace { dir, .. } if self.asked.is_none() => {
                if let Some(text) = packs::read_file(dir, &pack_of(pid)) {
                    (known.map, known.name) = (PerfMap::parse(&text), map_of(pid));
                }
            }
            Origin::Trace { .. } => {}
        }
    }

    /// Opens a file that one of these users may have written.
    fn believed(&mut self, path: &Path, name: &str, users: &[u32]) -> Option<File> {
        let file = sys::maps::open_itself(path).ok()?;
        let meta = file.metadata().ok()?;
        let owner = Owner { uid: meta.uid(), regular: meta.is_file(), writable: meta.mode() & 0o022 != 0 };
        let user = users.iter().find(|uid| **uid == owner.uid).or(users.first());
        match user.map_or(Ok(()), |uid| perf_map::check(owner, *uid)) {
            Ok(()) => Some(file),
            Err(why) => {
                if self.refused.len() < MOST_REFUSED {
                    self.refused.push(format!("{name}: not used: {why}"));
                }
                None
            }
        }
    }

    /// Reads a map that one of these users may have written.
    fn read_file(&mut self, pid: u32, path: PathBuf, name: String, users: &[u32]) {
        let Some(file) = self.believed(&path, &name, users) else { return };
        let Ok(meta) = file.metadata() else { return };
        let Some(known) = self.all.get_mut(&pid) else { return };
        if meta.len() == known.size {
            return;
        }
        let created = meta.created().ok().and_then(|t| t.duration_since(UNIX_EPOCH).ok());
        known.created = created.map_or(0, |t| t.as_nanos() as i64);
        let mut text = Vec::new();
        if file.take(perf_map::MAX_BYTES as u64).read_to_end(&mut text).is_ok() {
            (known.map, known.name, known.size) = (PerfMap::parse(&text), name, meta.len());
        }
    }

    /// A pack for each process of which something was asked for: lines of its map.
    pub fn packed(&self) -> Vec<Packed> {
        let line = |(start, (end, name)): (&u64, &(u64, String))| format!("{start:x} {:x} {name}\n", end - start);
        let pack = |(pid, functions): (&u32, &Functions)| Packed {
            file: pack_of(*pid),
            module: map_of(*pid),
            addresses: functions.len(),
            bytes: functions.iter().map(line).collect::<String>().into_bytes(),
        };
        let dumped = |((start, time), (end, name)): (&(u64, u64), &(u64, String))| {
            format!("{start:x} {:x} {time} {name}\n", end - start)
        };
        let of_dumps = self.asked_of_dumps.iter().map(|(pid, functions)| Packed {
            file: dump_pack_of(*pid),
            module: dump_of(*pid),
            addresses: functions.len(),
            bytes: functions.iter().map(dumped).collect::<String>().into_bytes(),
        });
        let mut all: Vec<Packed> = self.asked.iter().flatten().map(pack).chain(of_dumps).collect();
        order::by(&mut all, |a, b| a.file.cmp(&b.file));
        all
    }

    /// Maps that are not believed.
    pub fn troubles(&self) -> Vec<String> {
        let mut all = self.refused.clone();
        all.dedup();
        all
    }
}

/// A pack of a map or a dump with other names; none where it is neither.
pub fn renamed(file: String, old: &[u8], name: &dyn Fn(&str) -> String) -> Option<(String, Vec<u8>)> {
    let numbers = match file.split_once('-')? {
        ("perf", _) => 2,
        ("jit", _) => 3,
        _ => return None,
    };
    let line = |line: &str| {
        let (at, _) = line.match_indices(' ').nth(numbers - 1)?;
        Some(format!("{} {}\n", &line[..at], name(&line[at + 1..])))
    };
    let new: String = String::from_utf8_lossy(old).lines().filter_map(line).collect();
    Some((file, new.into_bytes()))
}

/// Start, size, time and name of each line of a pack of a dump.
fn lines_of_dump(text: &[u8]) -> Vec<Loaded> {
    let line = |line: &str| {
        let mut words = line.splitn(4, ' ');
        let start = u64::from_str_radix(words.next()?, 16).ok()?;
        let size = u64::from_str_radix(words.next()?, 16).ok()?;
        let time = words.next()?.parse().ok()?;
        Some(Loaded { range: (start, start.checked_add(size)?), time, name: words.next()?.into() })
    };
    String::from_utf8_lossy(text).lines().filter_map(line).collect()
}

fn dump_of(pid: u32) -> String {
    format!("jit-{pid}.dump")
}

fn dump_pack_of(pid: u32) -> String {
    format!("jit-{pid}.pack")
}

fn map_of(pid: u32) -> String {
    format!("/tmp/perf-{pid}.map")
}

fn pack_of(pid: u32) -> String {
    format!("perf-{pid}.pack")
}
