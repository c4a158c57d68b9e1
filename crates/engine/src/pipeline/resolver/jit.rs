//! Functions that just-in-time compilers have made, as `/tmp/perf-PID.map` of the process lists them. Only of processes that run.

use super::Origin;
use std::collections::HashMap;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use symbols::perf_map::{self, Owner, PerfMap};

/// A map that has grown is read again after so long, ns.
const AGAIN_NS: u64 = 100_000_000;
/// Processes whose maps are kept, and refusals that are reported.
const MOST: usize = 1024;
const MOST_REFUSED: usize = 8;

#[derive(Default)]
struct Known {
    map: PerfMap,
    name: String,
    /// Bytes of the file, and when it was looked at, ns of the monotonic clock.
    size: u64,
    looked: u64,
}

/// The maps of all processes.
#[derive(Default)]
pub struct Jit {
    all: HashMap<u32, Known>,
    refused: Vec<String>,
}

impl Jit {
    /// Name, start and map of the function that holds an address.
    pub fn find(&mut self, origin: &Origin, pid: u32, address: u64) -> Option<(&str, u64, &str)> {
        if !matches!(origin, Origin::Live) {
            return None;
        }
        let known = self.all.get(&pid).is_some_and(|k| k.map.find(address).is_some());
        if !known {
            self.read(pid);
        }
        let known = self.all.get(&pid)?;
        let (name, start) = known.map.find(address)?;
        Some((name, start, &known.name))
    }

    /// It executes another program.
    pub fn forget(&mut self, pid: u32) {
        self.all.remove(&pid);
    }

    fn read(&mut self, pid: u32) {
        let now = sys::time::monotonic();
        if self.all.len() >= MOST && !self.all.contains_key(&pid) {
            self.all.clear();
        }
        let known = self.all.entry(pid).or_default();
        if known.looked > 0 && now.saturating_sub(known.looked) < AGAIN_NS {
            return;
        }
        known.looked = now;
        // As the process itself knows its number, in its own file system.
        let inner = sys::proc::status_field(pid as i32, "NSpid");
        let inner = inner.as_deref().and_then(|all| all.split_whitespace().last()).unwrap_or_default();
        let name = format!("/tmp/perf-{inner}.map");
        let Ok(file) = sys::maps::open_itself(&PathBuf::from(format!("/proc/{pid}/root{name}"))) else { return };
        let (Ok(meta), Some((uid, _))) = (file.metadata(), sys::proc::ids(pid as i32)) else { return };
        let owner = Owner { uid: meta.uid(), regular: meta.is_file(), writable: meta.mode() & 0o022 != 0 };
        if let Err(why) = perf_map::check(owner, uid) {
            if self.refused.len() < MOST_REFUSED {
                self.refused.push(format!("{name}: not used: {why}"));
            }
            return;
        }
        if meta.len() == known.size {
            return;
        }
        let mut text = Vec::new();
        if file.take(perf_map::MAX_BYTES as u64).read_to_end(&mut text).is_ok() {
            (known.map, known.name, known.size) = (PerfMap::parse(&text), name, meta.len());
        }
    }

    /// Maps that are not believed.
    pub fn troubles(&self) -> Vec<String> {
        let mut all = self.refused.clone();
        all.dedup();
        all
    }
}
