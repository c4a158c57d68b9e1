//! Instructions that trapline's agent has replaced in a process. The kernel puts a breakpoint of a uprobe into every process that has the
//! file mapped, executes the *file's* instruction elsewhere, and goes on behind it: where the process has other bytes, that ends it. A patch
//! that lies behind a function's first instruction leaves that one alone; others do not.

use engine::provider::Site;
use engine::provider::file_point::FilePoint;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::OnceLock;
use symbols::code::{LONGEST, length};
use sys::maps::Map;

/// What the name of the agent's file begins with.
const AGENT: &[u8] = b"/trapline-agent";
const INT3: u8 = 0xcc;

/// Why a place takes no breakpoint.
#[derive(Clone, Copy, Debug)]
pub struct Moved {
    /// The process that has other bytes there.
    pub pid: i32,
}

impl std::fmt::Display for Moved {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "trapline has patched this instruction in process {}, which a probe would break", self.pid)
    }
}

impl std::error::Error for Moved {}

/// The processes that an agent is in, with their mappings: looked for once, when the first probe of a start needs them.
#[derive(Default)]
pub struct Agents(OnceLock<Vec<(i32, Vec<Map>)>>);

impl Agents {
    fn all(&self) -> &[(i32, Vec<Map>)] {
        let with_agent = |pid: i32| {
            let text = std::fs::read(format!("/proc/{pid}/maps")).ok()?;
            let has = text.windows(AGENT.len()).any(|w| w == AGENT);
            has.then(|| (pid, sys::maps::in_text(&text)))
        };
        self.0.get_or_init(|| sys::proc::processes().into_iter().filter_map(with_agent).collect())
    }

    /// The places of a file, by their numbers, at which a process has other instructions than the file, each with the process.
    pub fn moved(&self, point: &FilePoint) -> Vec<(usize, Moved)> {
        let Ok(meta) = point.file.metadata() else { return Vec::new() };
        let file = sys::maps::identity(&meta);
        let mut found = Vec::new();
        for (pid, maps) in self.all() {
            for map in maps.iter().filter(|m| m.file == file && m.prot & sys::maps::PROT_EXEC != 0) {
                let changed = |(_, site): &(usize, &Site)| is_changed(*pid, map, point, site.offset);
                let places = point.sites.iter().enumerate().filter(changed);
                found.extend(places.map(|(nth, _)| (nth, Moved { pid: *pid })));
            }
        }
        order::by_key(&mut found, |(nth, _)| *nth);
        found.dedup_by_key(|(nth, _)| *nth);
        found
    }
}

/// Whether the instruction at an offset of the file has other bytes in a process, but for a breakpoint.
fn is_changed(pid: i32, map: &Map, point: &FilePoint, offset: u64) -> bool {
    let inside = offset.checked_sub(map.offset).filter(|at| *at < map.range.1 - map.range.0);
    let read = || -> io::Result<Option<bool>> {
        let Some(at) = inside else { return Ok(None) };
        let (mut there, mut own) = ([0; LONGEST], [0; LONGEST]);
        let n = point.file.read_at(&mut own, offset)?;
        let m = sys::mem::read(pid, map.range.0 + at, &mut there)?;
        let len = length(&own[..n]).filter(|len| *len <= m);
        Ok(len.map(|len| there[1..len] != own[1..len] || there[0] != own[0] && there[0] != INT3))
    };
    matches!(read(), Ok(Some(true)))
}
