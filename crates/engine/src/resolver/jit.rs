//! Functions that just-in-time compilers have made, as `/tmp/perf-PID.map` of the process lists them.
//!
//! ```text
//!  live ─► the map of a process that runs                           to pack ─► the map, also of a process that has ended
//!  a trace ─► .trapline/symbols/perf-PID.pack: those of its lines that the trace needs ◄──────────────────────┘
//! ```

use super::Origin;
use super::packs::{self, Packed};
use std::collections::{BTreeMap, HashMap};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::time::UNIX_EPOCH;
use symbols::perf_map::{self, Owner, PerfMap};

/// A map that has grown is read again after so long, ns.
const AGAIN_NS: u64 = 100_000_000;
/// Processes whose maps are kept, refusals that are reported, and processes whose users are known.
const MOST: usize = 1024;
const MOST_REFUSED: usize = 8;
const MOST_USERS: usize = 1 << 20;

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

/// The maps of all processes.
#[derive(Default)]
pub struct Jit {
    all: HashMap<u32, Known>,
    refused: Vec<String>,
    /// The user of each process, as the events say.
    users: HashMap<u32, u32>,
    /// What was asked for, where it is to be packed.
    asked: Option<HashMap<u32, Functions>>,
}

impl Jit {
    /// To pack a trace: the maps of its processes are read, and what is asked for is remembered.
    pub fn to_pack() -> Jit {
        Jit { asked: Some(HashMap::new()), ..Jit::default() }
    }

    /// Name, start and map of the function that holds an address at a time.
    pub fn find(&mut self, origin: &Origin, pid: u32, address: u64, time: u64) -> Option<(&str, u64, &str)> {
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
                let inner = sys::proc::status_field(pid as i32, "NSpid");
                let inner = inner.as_deref().and_then(|all| all.split_whitespace().last()).unwrap_or_default();
                let name = format!("/tmp/perf-{inner}.map");
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

    /// Reads a map that one of these users may have written.
    fn read_file(&mut self, pid: u32, path: PathBuf, name: String, users: &[u32]) {
        let Ok(file) = sys::maps::open_itself(&path) else { return };
        let Ok(meta) = file.metadata() else { return };
        let owner = Owner { uid: meta.uid(), regular: meta.is_file(), writable: meta.mode() & 0o022 != 0 };
        let user = users.iter().find(|uid| **uid == owner.uid).or(users.first());
        let checked = user.map_or(Ok(()), |uid| perf_map::check(owner, *uid));
        if let Err(why) = checked {
            if self.refused.len() < MOST_REFUSED {
                self.refused.push(format!("{name}: not used: {why}"));
            }
            return;
        }
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
        let mut all: Vec<Packed> = self.asked.iter().flatten().map(pack).collect();
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

fn map_of(pid: u32) -> String {
    format!("/tmp/perf-{pid}.map")
}

fn pack_of(pid: u32) -> String {
    format!("perf-{pid}.pack")
}
