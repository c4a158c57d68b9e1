//! Makes the maps of a slab session, loads its programs and attaches them. Nothing is recorded before the state says so.

use super::points::{self, Point, Points, Test};
use super::{offsets, unable};
use crate::error::{Error, Result};
use crate::rights::refusal::rejected;
use bpf::slab::{self, Bytes, KEY, Maps, Turn, Which, state, value};
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use sys::bpf::link::Link;
use sys::bpf::map::{ANY, MMAPABLE, Map, MapKind, MapSpec, NO_PREALLOC};
use sys::bpf::prog::{Program, ProgramKind, ProgramSpec};
use sys::btf::KernelBtf;

/// Bytes of the description of a session.
pub const ABOUT: u32 = 1024;
/// Stacks whose counts are remembered from one table to the next.
pub const REMEMBERED: u32 = 16_384;
/// Bytes of what is remembered of a stack: objects and bytes, u64 each.
pub const REMEMBERED_BYTES: u32 = 16;

/// The maps of a session.
pub struct MapSet {
    /// The description of the session.
    pub about: Map,
    /// Its state.
    pub state: Map,
    /// Its only entry is the table of objects.
    pub objects: Map,
    /// Counts of stacks when they were last shown.
    pub remembered: Map,
}

/// A table with room for this many objects, and its counters.
pub fn table(room: u32) -> io::Result<Map> {
    let entries = room.checked_add(1).ok_or(io::ErrorKind::InvalidInput)?;
    let table = Map::hash("trapline_objects", KEY, value::BYTES as u32, entries, 0)?;
    table.update(&[0; KEY as usize], &[0; value::BYTES], ANY)?;
    Ok(table)
}

impl MapSet {
    /// Makes them, with an empty table.
    pub fn make(room: u32) -> io::Result<MapSet> {
        let table = table(room)?;
        let objects = Map::create(&MapSpec {
            kind: MapKind::ArrayOfMaps,
            name: "trapline_slab",
            key_size: 4,
            value_size: 4,
            entries: 1,
            flags: 0,
            inner: Some(table.as_fd()),
            types: None,
        })?;
        objects.put_map(&[0; 4], &table)?;
        Ok(MapSet {
            about: Map::array("trapline_about", ABOUT, 1, 0)?,
            state: Map::array("trapline_state", state::BYTES as u32, 1, MMAPABLE)?,
            objects,
            remembered: Map::hash("trapline_seen", 8, REMEMBERED_BYTES, REMEMBERED, NO_PREALLOC)?,
        })
    }
}

const _: () = assert!(points::MAX_NAME == slab::MAX_NAME);

/// A point as the programs have it.
pub fn place(point: &Point) -> slab::Place {
    let which = match point.test.clone() {
        Test::Cache { arg, address } => Which::Cache { arg, address },
        Test::Named { arg, name } => Which::Named { arg, name },
        Test::Known { arg } => Which::Known { arg },
        Test::Sized { arg, size, of } => Which::Sized { arg, size, of },
        Test::Order { arg, order } => Which::Order { arg, order },
        Test::Asked { function, address } => Which::Asked { function, address },
        Test::Tracked => Which::Tracked,
    };
    slab::Place { which, object: point.object, call_site: point.call_site }
}

/// The programs at a place, in this order.
const TURNS: [Turn; 2] = [Turn::First, Turn::Second];

/// Attaches the programs of a slab: the tracepoint of each, and its link. Releases come first, so that no object stays in the table whose
/// release happens while the programs are attached.
pub fn attach(name: &str, points: &Points, maps: &MapSet, btf: &KernelBtf) -> Result<Vec<(&'static str, Link)>> {
    let at = offsets::of(btf).map_err(|e| unable(name, &e))?;
    // The programs keep it.
    let taken = Map::per_cpu_array("trapline_taken", 8, 1).map_err(|e| unable(name, &e))?;
    let [objects, state, taken] = [&maps.objects, &maps.state, &taken].map(|m| m.as_fd().as_raw_fd());
    let maps = Maps { objects, state, taken };
    let mistake = |e: bpf::AsmError| Error::failed("BPF generator", e.to_string(), "please report it");
    let mut links = Vec::new();
    for point in &points.released {
        let source = slab::released(&maps, &at, &place(point)).map_err(mistake)?;
        for _ in TURNS {
            links.push((point.tracepoint, attach_one(name, point.tracepoint, &source)?));
        }
    }
    let size = points.size.map_or(Bytes::Pages { order: points::ORDER, shift: points::PAGE_SHIFT }, Bytes::Fixed);
    for point in &points.allocated {
        for turn in TURNS {
            let source = slab::allocated(&maps, &at, &place(point), size, turn).map_err(mistake)?;
            links.push((point.tracepoint, attach_one(name, point.tracepoint, &source)?));
        }
    }
    Ok(links)
}

fn attach_one(name: &str, tracepoint: &str, source: &bpf::Program) -> Result<Link> {
    let bytes = source.bytes();
    let spec = ProgramSpec::new(ProgramKind::RawTracepoint, "trapline_slab", &bytes);
    let program = Program::load(&spec).map_err(|e| match e.log.is_empty() {
        true => unable(name, &e.error),
        false => rejected(&e, source),
    })?;
    Link::raw_tracepoint(&program, tracepoint).map_err(|e| unable(name, &e))
}
