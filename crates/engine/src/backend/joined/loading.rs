//! The calls by which the loader loads the agent's file: they are not the program's, and not shown.
//!
//! ```text
//!  openat(…, "…/agent-….so") = 3 ─► read(3), fstat(3), mmap(where the agent is linked), mprotect(there) ─► close(3)
//! ```
//!
//! The file is known by its path, its descriptor by the call that opened it, its mappings by where they are.

use crate::plan::Plan;
use events::generated as g;
use events::{Event, Schema};
use std::collections::HashMap;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// What a call has to do with it.
#[derive(Clone, Copy)]
enum Kind {
    /// Opens a file: the argument that has the path.
    Opens(usize),
    /// Uses a descriptor, its first argument.
    Uses,
    /// Closes one.
    Closes,
    /// Maps, changes or removes memory, at its first argument.
    Maps,
}

/// The processes that are about to load the agent.
pub struct Loading {
    path: Vec<u8>,
    /// The calls, by the ids of their classes.
    kinds: HashMap<u16, Kind>,
    /// The descriptors of the file, by process.
    open: HashMap<u32, u64>,
}

impl Loading {
    /// For the agent's file.
    pub fn new(file: &Path, plan: &Plan) -> Loading {
        let calls: [(&'static Schema, Kind); 10] = [
            (&g::C_OPEN, Kind::Opens(0)),
            (&g::C_OPENAT, Kind::Opens(1)),
            (&g::C_READ, Kind::Uses),
            (&g::C_PREAD64, Kind::Uses),
            (&g::C_FSTAT, Kind::Uses),
            (&g::C_NEWFSTATAT, Kind::Uses),
            (&g::C_CLOSE, Kind::Closes),
            (&g::C_MMAP, Kind::Maps),
            (&g::C_MPROTECT, Kind::Maps),
            (&g::C_MUNMAP, Kind::Maps),
        ];
        let kinds = calls.into_iter().flat_map(|(call, kind)| [call.id, plan.class_of(call).id].map(|id| (id, kind)));
        Loading { path: file.as_os_str().as_bytes().to_vec(), kinds: kinds.collect(), open: HashMap::new() }
    }

    /// Whether an event is one of those calls.
    pub fn is_part(&mut self, event: &[u8]) -> bool {
        let Some(id) = event.get(8..10).map(|b| u16::from_le_bytes([b[0], b[1]])) else { return false };
        if id == g::P_EXEC.id && !self.open.is_empty() {
            if let Ok(ev) = Event::parse(event) {
                self.open.remove(&ev.pid());
            }
            return false;
        }
        let Some(kind) = self.kinds.get(&id) else { return false };
        // Most of the time no process has the file open.
        if matches!(kind, Kind::Uses | Kind::Closes) && self.open.is_empty() {
            return false;
        }
        let Ok(ev) = Event::parse(event) else { return false };
        let is_its = || self.open.get(&ev.pid()) == Some(&(ev.arg(0) & 0xffff_ffff));
        match kind {
            Kind::Opens(path) => {
                let is_it = ev.tail(*path, false).is_some_and(|t| t.bytes == self.path);
                if is_it && ev.errno().is_none() {
                    self.open.insert(ev.pid(), ev.ret() as u64);
                }
                is_it
            }
            Kind::Uses => is_its(),
            Kind::Closes => is_its() && self.open.remove(&ev.pid()).is_some(),
            Kind::Maps => abi::CODE.contains(&ev.arg(0)),
        }
    }
}
