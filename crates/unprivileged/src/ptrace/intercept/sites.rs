//! Where a `syscall` instruction can be patched, and where its stub goes.

use engine::backend::code::bytes_of;
use patch::calls::{self, STUB, Way};
use patch::hole::{self, Kind, Mapping};
use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::rc::Rc;
use symbols::frames::Frames;
use symbols::headers::Headers;
use sys::maps::{Map, PROT_EXEC};

/// PROT_WRITE (`include/uapi/asm-generic/mman-common.h`).
const PROT_WRITE: u32 = 2;
/// Bytes of an area of stubs.
pub const AREA: u64 = 4096;
/// What a jump reaches, less what lies between.
const REACH: u64 = (1 << 31) - (1 << 20);
/// The most files that are remembered.
const MOST_FILES: usize = 256;
/// The largest file of which it is read where its functions lie.
const LARGEST: u64 = 64 << 20;

/// The areas of stubs of a program, and the holes that are used.
#[derive(Clone, Default)]
pub struct Areas {
    /// Address, and how many stubs there are.
    areas: Vec<(u64, u64)>,
    holes: HashSet<u64>,
}

impl Areas {
    /// Room for a stub near an address, which is taken.
    pub fn room(&mut self, near: u64) -> Option<u64> {
        let fits = |(at, stubs): &&mut (u64, u64)| near.abs_diff(*at) < REACH && (*stubs + 1) * STUB as u64 <= AREA;
        let (at, stubs) = self.areas.iter_mut().find(fits)?;
        *stubs += 1;
        Some(*at + (*stubs - 1) * STUB as u64)
    }

    /// An area is there: room for a stub in it, which is taken.
    pub fn add(&mut self, area: u64) -> u64 {
        self.areas.push((area, 1));
        area
    }

    /// A hole is used.
    pub fn use_hole(&mut self, at: u64) {
        self.holes.insert(at);
    }

    /// Whether an address is in a stub.
    fn has(&self, at: u64) -> bool {
        self.areas.iter().any(|(area, _)| (*area..*area + AREA).contains(&at))
    }

    /// Where there is room for an area near an address.
    pub fn hole(mappings: &[Mapping], near: u64) -> Option<u64> {
        hole::nearest(mappings, &(near..near + 1), AREA)
    }
}

/// How a site is patched.
pub struct Place {
    pub way: Way,
    /// The bytes of the hole.
    pub hole: Vec<u8>,
    /// What the process has mapped.
    pub mappings: Vec<Mapping>,
}

type Functions = Option<Rc<(Headers, Frames)>>;

/// Where the functions of files lie.
#[derive(Default)]
pub struct Files(HashMap<(u32, u32, u64), Functions>);

impl Files {
    /// How the `syscall` at an address is patched, at which a call with this number has stopped; none: it is not.
    pub fn place(&mut self, pid: i32, at: u64, number: u64, areas: &Areas) -> Option<Place> {
        let mut before = [0; 8];
        let read = sys::mem::read(pid, at - 6, &mut before).ok()?;
        if read != before.len() || before[6..] != [0x0f, 0x05] || areas.has(at) {
            return None;
        }
        let maps = sys::maps::of(pid).ok()?;
        // Of what is no file's, or may be written, nobody knows what becomes of it.
        let is_here = |m: &&Map| (m.range.0..m.range.1).contains(&at) && m.file.2 != 0;
        let map = maps.iter().find(is_here).filter(|m| m.prot & (PROT_EXEC | PROT_WRITE) == PROT_EXEC)?;
        let number = u32::try_from(number).ok()?;
        let loads = before.first_chunk().is_some_and(|before| calls::loads(before, number)) && map.range.0 + 6 <= at;
        let (way, hole) = if loads && !may_begin_function(at - calls::NUMBER) {
            (Way::Number(number), vec![])
        } else {
            let (hole, bytes) = self.hole(pid, map, at, areas)?;
            (Way::Hole(hole), bytes)
        };
        Some(Place { way, hole, mappings: mappings(&maps) })
    }

    /// A hole near a site, and its bytes.
    fn hole(&mut self, pid: i32, map: &Map, at: u64, areas: &Areas) -> Option<(u64, Vec<u8>)> {
        let file = self.functions(pid, map)?;
        let (headers, frames) = &*file;
        let own = headers.address_of(at - map.range.0 + map.offset)?;
        let bias = at.wrapping_sub(own);
        let near = calls::near(own);
        let all = frames.all();
        let next = all.partition_point(|f| f.end < near.start);
        let pairs = all.get(next..)?.windows(2).take_while(|pair| pair[0].end < near.end);
        let gaps = pairs.map(|pair| pair[0].end.wrapping_add(bias)..pair[1].start.wrapping_add(bias));
        let inside = |gap: &Range<u64>| gap.start < gap.end && map.range.0 <= gap.start && gap.end <= map.range.1;
        for gap in gaps.filter(inside) {
            let mut bytes = vec![0; (gap.end - gap.start).min(64) as usize];
            if sys::mem::read(pid, gap.start, &mut bytes).ok()? != bytes.len() {
                continue;
            }
            if let Some(hole) = calls::hole(at, &gap, &bytes, |at| areas.holes.contains(&at)) {
                return Some((hole, bytes.get((hole - gap.start) as usize..)?.to_vec()));
            }
        }
        None
    }

    fn functions(&mut self, pid: i32, map: &Map) -> Functions {
        if let Some(known) = self.0.get(&map.file) {
            return known.clone();
        }
        let read = || {
            let is_small = |bytes: &Vec<u8>| bytes.len() as u64 <= LARGEST;
            let bytes = bytes_of(pid, map).filter(is_small)?;
            let headers = Headers::read(&bytes[..])?;
            let frames = Frames::of_headers(&headers, &bytes[..]);
            Some(Rc::new((headers, frames)))
        };
        let functions = read();
        if self.0.len() >= MOST_FILES {
            self.0.clear();
        }
        self.0.insert(map.file, functions.clone());
        functions
    }
}

/// Whether a function may begin here: there uprobes are put, and when one goes, the kernel writes the file's byte back, which would make
/// another instruction of a jump.
fn may_begin_function(address: u64) -> bool {
    address.is_multiple_of(16)
}

/// What a process has mapped, as far as it matters for where an area goes.
fn mappings(maps: &[Map]) -> Vec<Mapping> {
    let program = maps.iter().find(|m| m.file.2 != 0).map(|m| m.file);
    let kind = |m: &Map| match &m.path[..] {
        b"[stack]" => Kind::Stack,
        b"[heap]" => Kind::Heap,
        _ if Some(m.file) == program => Kind::Heap,
        _ => Kind::Other,
    };
    maps.iter().map(|m| Mapping { range: m.range.0..m.range.1, kind: kind(m) }).collect()
}
