//! Where a `syscall` instruction can be patched, and where its stub goes.

use super::functions::{Functions, How, Known};
use patch::calls::{self, Front, STUB, Way};
use patch::hole::{self, Kind, Mapping};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::rc::Rc;
use sys::maps::{Map, PROT_EXEC};

/// PROT_WRITE (`include/uapi/asm-generic/mman-common.h`).
const PROT_WRITE: u32 = 2;
/// Bytes of an area of stubs: those of all sites of a C library and its loader.
pub const AREA: u64 = 64 << 10;
/// What a jump reaches, less what lies between.
const REACH: u64 = (1 << 31) - (1 << 20);
/// The most files that are remembered.
const MOST_FILES: usize = 256;
/// Stops after which a file with much code is read for the sake of a site.
const PATIENCE: u32 = 3;
const LARGE: u64 = 8 << 20;

/// The areas of stubs of a program, and the holes that are used.
#[derive(Clone, Default)]
pub struct Areas {
    /// Address, and how many stubs there are.
    areas: Vec<(u64, u64)>,
    /// Of each the `syscall`.
    holes: HashMap<u64, u64>,
}

impl Areas {
    /// Room for a stub near an address, which is taken.
    pub fn room(&mut self, near: u64) -> Option<u64> {
        let (at, stubs) = self.areas.iter_mut().find(|area| has_room(area, near))?;
        *stubs += 1;
        Some(*at + (*stubs - 1) * STUB as u64)
    }

    /// Whether there is room for a stub near an address.
    pub fn has_room(&self, near: u64) -> bool {
        self.areas.iter().any(|area| has_room(area, near))
    }

    /// An area is there.
    pub fn add(&mut self, area: u64) {
        self.areas.push((area, 0));
    }

    /// A hole is used for a `syscall`.
    pub fn use_hole(&mut self, hole: u64, at: u64) {
        self.holes.insert(hole, at);
    }

    /// The `syscall` that a hole is used for.
    pub fn of_hole(&self, hole: u64) -> Option<u64> {
        self.holes.get(&hole).copied()
    }

    /// Whether an address is in a stub.
    pub fn has(&self, at: u64) -> bool {
        self.areas.iter().any(|(area, _)| (*area..*area + AREA).contains(&at))
    }

    /// Where there is room for an area near an address.
    pub fn hole(pid: i32, near: u64) -> Option<u64> {
        hole::nearest(&mappings(pid)?, &(near..near + 1), AREA)
    }
}

fn has_room((at, stubs): &(u64, u64), near: u64) -> bool {
    near.abs_diff(*at) < REACH && (*stubs + 1) * STUB as u64 <= AREA
}

/// How a site of a process is patched.
pub struct Place {
    /// The `syscall`.
    pub at: u64,
    pub way: Way,
    /// The bytes of the hole.
    pub hole: Vec<u8>,
    /// The number of its call, where it is known.
    pub number: Option<u32>,
}

/// Device (major, minor) and inode.
pub type Identity = (u32, u32, u64);

/// What is known of a file, by offsets in it.
#[derive(Default)]
struct File {
    /// Its sites, by that of the `syscall`; whether it was seen in the file that they can be patched so.
    sites: BTreeMap<u64, (Known, bool)>,
    /// Holes that these sites use.
    holes: HashSet<u64>,
    /// Where its functions lie, if they were looked for.
    functions: Option<Option<Rc<Functions>>>,
}

impl File {
    fn add(&mut self, offset: u64, known: Known) {
        self.holes.extend(known.hole());
        self.sites.insert(offset, (known, true));
    }
}

/// The files that processes have mapped.
#[derive(Default)]
pub struct Files(HashMap<Identity, File>);

impl Files {
    /// How the `syscall` at an address is patched, at which a call with this number has stopped so often, and in which mapping it is; none: it is not, or not
    /// yet.
    pub fn place(&mut self, pid: i32, at: u64, number: u64, stops: u32, areas: &Areas) -> Option<(Place, Map)> {
        let mut before = [0; 8];
        let read = sys::mem::read(pid, at.checked_sub(6)?, &mut before).ok()?;
        if read != before.len() || before[6..] != calls::INSTRUCTION || areas.has(at) {
            return None;
        }
        // Of what is no file's, or may be written, nobody knows what becomes of it.
        let map = sys::maps::at(pid, at).ok()??;
        if map.file.2 == 0 || map.prot & (PROT_EXEC | PROT_WRITE) != PROT_EXEC || at < map.range.0 + 6 {
            return None;
        }
        let offset = at - map.range.0 + map.offset;
        if let Some((known, _)) = self.file(&map).sites.get(&offset) {
            return Some((place(known, at, &map), map));
        }
        let number = u32::try_from(number).ok()?;
        let front = before.first_chunk().and_then(|before| Front::of_number(before, number));
        let front = front.filter(|front| !may_begin_function(at - front.bytes().len() as u64));
        if let Some(front) = front {
            let known = Known { number: Some(number), how: How::Front(front) };
            self.file(&map).sites.insert(offset, (known, false));
            return Some((place(&known, at, &map), map));
        }
        if stops < PATIENCE && is_large(&map) {
            return None;
        }
        let functions = self.functions(pid, &map)?;
        let file = self.file(&map);
        let known = functions.site(pid, &map, offset, |hole| file.holes.contains(&hole))?;
        file.add(offset, known);
        Some((place(&known, at, &map), map))
    }

    /// The sites of a file, but for this one, at which threads of any process have stopped, where this process has it mapped.
    pub fn known(&mut self, pid: i32, map: &Map, but: u64) -> Vec<Place> {
        let but = but - map.range.0 + map.offset;
        self.see(pid, map, but);
        let len = map.range.1 - map.range.0;
        let here = |(offset, (known, _)): (&u64, &(Known, bool))| {
            let inside = offset.checked_sub(map.offset).filter(|n| (16..len).contains(n) && *offset != but)?;
            Some(place(known, map.range.0 + inside, map))
        };
        self.file(map).sites.iter().filter_map(here).collect()
    }

    /// Looks in the file at sites that were seen in memory alone: a process may have made a call in the middle of another instruction.
    fn see(&mut self, pid: i32, map: &Map, but: u64) {
        let unseen = |file: &File| -> Vec<u64> {
            file.sites.iter().filter(|(at, known)| !known.1 && **at != but).map(|(at, _)| *at).collect()
        };
        for offset in unseen(self.file(map)) {
            let functions = self.functions(pid, map);
            let file = self.file(map);
            file.sites.remove(&offset);
            let used = |hole: u64| file.holes.contains(&hole);
            if let Some(known) = functions.and_then(|functions| functions.site(pid, map, offset, used)) {
                file.add(offset, known);
            }
        }
    }

    fn file(&mut self, map: &Map) -> &mut File {
        if self.0.len() >= MOST_FILES && !self.0.contains_key(&map.file) {
            self.0.clear();
        }
        self.0.entry(map.file).or_default()
    }

    fn functions(&mut self, pid: i32, map: &Map) -> Option<Rc<Functions>> {
        let read = || Functions::read(pid, map).map(Rc::new);
        self.file(map).functions.get_or_insert_with(read).clone()
    }
}

fn is_large(map: &Map) -> bool {
    map.range.1 - map.range.0 > LARGE
}

/// A site of a file at its address in a process.
fn place(known: &Known, at: u64, map: &Map) -> Place {
    let (way, hole) = match known.how {
        How::Front(front) => (Way::Front(front), vec![]),
        How::Hole(offset, bytes) => {
            (Way::Hole(map.range.0.wrapping_add(offset.wrapping_sub(map.offset))), bytes.to_vec())
        }
    };
    Place { at, way, hole, number: known.number }
}

/// Whether a function may begin here: there uprobes are put, and when one goes, the kernel writes the file's byte back, which would make
/// another instruction of a jump.
fn may_begin_function(address: u64) -> bool {
    address.is_multiple_of(16)
}

/// What a process has mapped, as far as it matters for where an area goes.
fn mappings(pid: i32) -> Option<Vec<Mapping>> {
    let maps = sys::maps::of(pid).ok()?;
    let program = maps.iter().find(|m| m.file.2 != 0).map(|m| m.file);
    let kind = |m: &Map| match &m.path[..] {
        b"[stack]" => Kind::Stack,
        b"[heap]" => Kind::Heap,
        _ if Some(m.file) == program => Kind::Heap,
        _ => Kind::Other,
    };
    Some(maps.iter().map(|m| Mapping { range: m.range.0..m.range.1, kind: kind(m) }).collect())
}
