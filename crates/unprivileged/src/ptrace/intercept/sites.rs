//! Where a `syscall` instruction can be patched, and where its stub goes.

use engine::backend::code::bytes_of;
use patch::calls::{self, Front, STUB, Site, Way};
use patch::hole::{self, Kind, Mapping};
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::rc::Rc;
use symbols::frames::Table;
use symbols::headers::Headers;
use sys::maps::{Map, PROT_EXEC};

/// PROT_WRITE (`include/uapi/asm-generic/mman-common.h`).
const PROT_WRITE: u32 = 2;
/// Bytes of an area of stubs: those of all sites of a C library and its loader.
pub const AREA: u64 = 64 << 10;
/// What a jump reaches, less what lies between.
const REACH: u64 = (1 << 31) - (1 << 20);
/// The most files that are remembered.
const MOST_FILES: usize = 256;
/// The largest file of which it is read where its functions lie.
const LARGEST: u64 = 64 << 20;
/// The largest function that is taken apart.
const LONGEST: u64 = 64 << 10;
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

/// How a site is patched.
pub struct Place {
    pub way: Way,
    /// The bytes of the hole.
    pub hole: Vec<u8>,
    /// Where it is.
    pub map: Map,
}

/// Device (major, minor) and inode.
pub type Identity = (u32, u32, u64);

/// What is known of a file, by offsets in it.
#[derive(Default)]
struct File {
    /// Instructions in front of sites at which a thread has stopped; whether it was seen in the file that they are.
    sites: BTreeMap<u64, (Site, bool)>,
    /// Where its functions lie, if they were looked for.
    functions: Option<Option<Rc<Functions>>>,
}

struct Functions {
    headers: Headers,
    table: Table,
}

/// The files that processes have mapped.
#[derive(Default)]
pub struct Files(HashMap<Identity, File>);

impl Files {
    /// How the `syscall` at an address is patched, at which a call with this number has stopped so often; none: it is not, or not yet.
    pub fn place(&mut self, pid: i32, at: u64, number: u64, stops: u32, areas: &Areas) -> Option<Place> {
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
        let number = u32::try_from(number).ok()?;
        let front = before.first_chunk().and_then(|before| Front::number(before, number));
        let front = front.filter(|front| !may_begin_function(at - front.bytes().len() as u64));
        if let Some(front) = front {
            let site = Site { at, front, number: Some(number) };
            self.file(&map).sites.entry(at - map.range.0 + map.offset).or_insert((site, false));
            return Some(Place { way: Way::Front(front), hole: vec![], map });
        }
        if stops < PATIENCE && map.range.1 - map.range.0 > LARGE {
            return None;
        }
        let functions = self.functions(pid, &map)?;
        let offset = at - map.range.0 + map.offset;
        if let Some(site) = functions.site(pid, &map, offset) {
            self.file(&map).sites.insert(offset, (site, true));
            return Some(Place { way: Way::Front(site.front), hole: vec![], map });
        }
        let (hole, bytes) = functions.hole(pid, &map, at, areas)?;
        Some(Place { way: Way::Hole(hole), hole: bytes, map })
    }

    /// The sites of a file, but for this one, at which threads of any process have stopped, where this process has it mapped.
    pub fn known(&mut self, pid: i32, map: &Map, but: u64) -> Vec<Site> {
        let Some(file) = self.0.get(&map.file) else { return vec![] };
        let but = but - map.range.0 + map.offset;
        let unseen = file.sites.iter().filter(|(at, known)| !known.1 && **at != but).map(|(at, _)| *at);
        let unseen: Vec<u64> = unseen.collect();
        if !unseen.is_empty() {
            // A process may have made a call in the middle of another instruction.
            let functions = self.functions(pid, map);
            let seen = |at: u64| functions.as_ref()?.site(pid, map, at);
            let found: Vec<(u64, Option<Site>)> = unseen.into_iter().map(|at| (at, seen(at))).collect();
            let file = self.file(map);
            for (at, site) in found {
                match site {
                    Some(site) => file.sites.insert(at, (site, true)),
                    None => file.sites.remove(&at),
                };
            }
        }
        let len = map.range.1 - map.range.0;
        let here = |(offset, (site, _)): (&u64, &(Site, bool))| {
            let inside = offset.checked_sub(map.offset).filter(|n| (16..len).contains(n) && *offset != but)?;
            Some(Site { at: map.range.0 + inside, ..*site })
        };
        self.file(map).sites.iter().filter_map(here).collect()
    }

    fn file(&mut self, map: &Map) -> &mut File {
        if self.0.len() >= MOST_FILES && !self.0.contains_key(&map.file) {
            self.0.clear();
        }
        self.0.entry(map.file).or_default()
    }

    fn functions(&mut self, pid: i32, map: &Map) -> Option<Rc<Functions>> {
        let read = || {
            let is_small = |bytes: &Vec<u8>| bytes.len() as u64 <= LARGEST;
            let bytes = bytes_of(pid, map).filter(is_small)?;
            let headers = Headers::read(&bytes[..])?;
            let table = Table::read(&headers, &bytes[..])?;
            Some(Rc::new(Functions { headers, table }))
        };
        self.file(map).functions.get_or_insert_with(read).clone()
    }
}

impl Functions {
    /// The site at an offset of the file, as its function shows it.
    fn site(&self, pid: i32, map: &Map, offset: u64) -> Option<Site> {
        let own = self.headers.address_of(offset)?;
        let function = self.table.function(own)?;
        let len = function.end.checked_sub(function.start).filter(|len| *len <= LONGEST)?;
        let mut code = vec![0; len as usize];
        let file = sys::maps::open(pid, map.range, &map.path, map.file).ok()?;
        file.read_exact_at(&mut code, self.headers.offset_of(function.start)?).ok()?;
        let site = calls::sites(&code, function.start).into_iter().find(|site| site.at == own)?;
        (site.from() != function.start).then_some(site)
    }

    /// A hole near a site, and its bytes.
    fn hole(&self, pid: i32, map: &Map, at: u64, areas: &Areas) -> Option<(u64, Vec<u8>)> {
        let own = self.headers.address_of(at - map.range.0 + map.offset)?;
        let bias = at.wrapping_sub(own);
        let near = calls::near(own);
        let gaps = self.table.gaps(own, &near).into_iter();
        let gaps = gaps.map(|gap| gap.start.wrapping_add(bias)..gap.end.wrapping_add(bias));
        let inside = |gap: &Range<u64>| gap.start < gap.end && map.range.0 <= gap.start && gap.end <= map.range.1;
        for gap in gaps.filter(inside) {
            let mut bytes = vec![0; (gap.end - gap.start).min(64) as usize];
            if sys::mem::read(pid, gap.start, &mut bytes).ok()? != bytes.len() {
                continue;
            }
            if let Some(hole) = calls::hole(at, &gap, &bytes, |at| areas.holes.contains_key(&at)) {
                return Some((hole, bytes.get((hole - gap.start) as usize..)?.to_vec()));
            }
        }
        None
    }
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
