//! A process's plan as the bytes that go to the agent (`abi::plan`), and a reader of them that trusts nothing.

use crate::link::{Linked, PAGE, Patch};
use abi::VERSION;
use abi::plan::{self, MAGIC, PATCH};
use abi::stub::{Variant, layout};
use std::fmt;
use std::mem::size_of;
use std::ops::Range;

const HEADER: usize = size_of::<plan::Header>();
const AREA: usize = size_of::<plan::Area>();
const PATCH_LEN: usize = size_of::<plan::Patch>();
const ORIGINAL: usize = size_of::<plan::Original>();
const MAPPING: usize = 32;
const COUNTER: usize = size_of::<plan::Counter>();
/// The most entries of a kind that a reader takes.
const MOST: u32 = 1 << 24;

/// The bytes of a plan for these modules. Each area's contents begin at a page, so that it could be mapped. `mappings`: those of the
/// process, for its unwinder.
pub fn write(modules: &[Linked], mappings: &[[u64; 4]]) -> Vec<u8> {
    let patches: usize = modules.iter().map(|m| m.patches.len()).sum();
    let originals: usize = modules.iter().map(|m| m.originals.len()).sum();
    let areas_at = HEADER;
    let patches_at = areas_at + modules.len() * AREA;
    let originals_at = patches_at + patches * PATCH_LEN;
    let mappings_at = originals_at + originals * ORIGINAL;
    let counters_at = mappings_at + size_of_val(mappings);
    let counters: usize = modules.iter().map(|m| m.counters.len()).sum();
    let mut at = page(counters_at + counters * COUNTER);
    let total = at + modules.iter().map(|m| page(m.content.len())).sum::<usize>();
    let mut out = Vec::with_capacity(total);
    for word in [MAGIC, VERSION, modules.len() as u32, patches as u32, originals as u32, mappings.len() as u32] {
        out.extend(word.to_le_bytes());
    }
    for offset in [areas_at, patches_at, originals_at, mappings_at, counters_at, counters] {
        out.extend((offset as u64).to_le_bytes());
    }
    for module in modules {
        for word in [module.address, module.len(), at as u64, module.content.len() as u64, module.stubs] {
            out.extend(word.to_le_bytes());
        }
        out.extend((module.variant as u32).to_le_bytes());
        out.extend((module.steps.len() as u32).to_le_bytes());
        out.extend(module.steps_at.to_le_bytes());
        out.extend(module.entries_at.to_le_bytes());
        at += page(module.content.len());
    }
    for (number, module) in modules.iter().enumerate() {
        module.patches.iter().for_each(|p| write_patch(p, number as u32, &mut out));
    }
    let mut first = 0;
    for module in modules {
        for original in &module.originals {
            out.extend((original.hook as u32).to_le_bytes());
            out.extend((first + original.patch).to_le_bytes());
            out.extend(original.address.to_le_bytes());
        }
        first += module.patches.len() as u32;
    }
    mappings.as_flattened().iter().for_each(|word| out.extend(word.to_le_bytes()));
    let mut first = 0;
    for module in modules {
        for (address, patch) in &module.counters {
            out.extend(address.to_le_bytes());
            out.extend(u64::from(first + patch).to_le_bytes());
        }
        first += module.patches.len() as u32;
    }
    for module in modules {
        out.resize(page(out.len()), 0);
        out.extend(&module.content);
    }
    out.resize(total, 0);
    out
}

fn page(len: usize) -> usize {
    len.next_multiple_of(PAGE as usize)
}

fn write_patch(patch: &Patch, area: u32, out: &mut Vec<u8>) {
    out.extend(patch.address.to_le_bytes());
    out.extend(area.to_le_bytes());
    out.extend([patch.len, patch.splits.into(), patch.skipped, 0]);
    out.extend(patch.old);
    out.extend(patch.new);
}

/// An area of a plan that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Area<'b> {
    /// Its address and the bytes that it takes: whole pages.
    pub range: Range<u64>,
    /// Its contents; the rest is filled with int3.
    pub content: &'b [u8],
    /// Bytes of stubs at its beginning.
    pub stubs: u64,
    /// What they do.
    pub variant: Variant,
}

/// A plan that was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Contents<'b> {
    /// Its areas.
    pub areas: Vec<Area<'b>>,
    /// Its patches, each with the number of its area.
    pub patches: Vec<(u32, Patch)>,
    /// Numbers of hooks, with their patches, by numbers in the plan, and the addresses of the originals.
    pub originals: Vec<(u32, u32, u64)>,
    /// Mappings for the process's unwinder, as words.
    pub mappings: Vec<[u64; 4]>,
    /// Counters of static probes, with patches, by numbers in the plan.
    pub counters: Vec<(u64, u32)>,
}

/// What is wrong with a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Damaged(&'static str);

impl fmt::Display for Damaged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the plan is damaged: {}", self.0)
    }
}

impl std::error::Error for Damaged {}

/// Reads a plan. All offsets, lengths and numbers are checked; addresses of areas and patches are whatever they are, but areas do not
/// overlap each other, and a patch lies below 2^64.
pub fn parse(bytes: &[u8]) -> Result<Contents<'_>, Damaged> {
    let mut header = Reader { bytes: part(bytes, 0, HEADER)? };
    if header.u32() != MAGIC || header.u32() != VERSION {
        return Err(Damaged("it is none of this version"));
    }
    let [areas, patches, originals, mappings] = [(); 4].map(|()| header.u32());
    let [areas_at, patches_at, originals_at, mappings_at, counters_at, counters] = [(); 6].map(|()| header.u64());
    let counters = u32::try_from(counters).map_err(|_| Damaged("it has too many entries"))?;
    let areas = table(bytes, areas_at, areas, AREA)?.map(|r| area(bytes, r)).collect::<Result<Vec<_>, _>>()?;
    let mut ranges: Vec<&Range<u64>> = areas.iter().map(|a| &a.range).collect();
    ranges.sort_by_key(|r| r.start);
    if ranges.windows(2).any(|r| r[0].end > r[1].start) {
        return Err(Damaged("areas overlap"));
    }
    let patches =
        table(bytes, patches_at, patches, PATCH_LEN)?.map(|r| patch(r, areas.len())).collect::<Result<Vec<_>, _>>()?;
    let originals = table(bytes, originals_at, originals, ORIGINAL)?.map(|r| original(r, patches.len()));
    let originals = originals.collect::<Result<_, _>>()?;
    let mappings = table(bytes, mappings_at, mappings, MAPPING)?.map(|mut r| [(); 4].map(|()| r.u64())).collect();
    let counters = table(bytes, counters_at, counters, COUNTER)?.map(|r| counter(r, patches.len()));
    let counters = counters.collect::<Result<_, _>>()?;
    Ok(Contents { areas, patches, originals, mappings, counters })
}

fn part(bytes: &[u8], at: u64, len: usize) -> Result<&[u8], Damaged> {
    let at = usize::try_from(at).map_err(|_| Damaged("an offset is too large"))?;
    bytes.get(at..).and_then(|b| b.get(..len)).ok_or(Damaged("it is too short"))
}

fn table(bytes: &[u8], at: u64, count: u32, size: usize) -> Result<impl Iterator<Item = Reader<'_>>, Damaged> {
    if count > MOST {
        return Err(Damaged("it has too many entries"));
    }
    Ok(part(bytes, at, count as usize * size)?.chunks_exact(size).map(|bytes| Reader { bytes }))
}

fn area<'b>(bytes: &'b [u8], mut row: Reader<'_>) -> Result<Area<'b>, Damaged> {
    let [address, len, at, content, stubs] = [(); 5].map(|()| row.u64());
    let variant = match row.u32() {
        v if v == Variant::Paired as u32 => Variant::Paired,
        v if v == Variant::Timed as u32 => Variant::Timed,
        v if v == Variant::Entry as u32 => Variant::Entry,
        v if v == Variant::Callers as u32 => Variant::Callers,
        _ => return Err(Damaged("stubs of an unknown kind")),
    };
    let end = address.checked_add(len).ok_or(Damaged("an area has no end"))?;
    if !address.is_multiple_of(PAGE) || !len.is_multiple_of(PAGE) || content > len || stubs > content {
        return Err(Damaged("an area's lengths do not fit"));
    }
    if !stubs.is_multiple_of(layout(variant).size.into()) {
        return Err(Damaged("an area has a part of a stub"));
    }
    let content = part(bytes, at, usize::try_from(content).map_err(|_| Damaged("an area is too large"))?)?;
    Ok(Area { range: address..end, content, stubs, variant })
}

fn patch(mut row: Reader<'_>, areas: usize) -> Result<(u32, Patch), Damaged> {
    let (address, area) = (row.u64(), row.u32());
    let [len, splits, skipped, _] = row.array();
    let (old, new): ([u8; PATCH], [u8; PATCH]) = (row.array(), row.array());
    if area as usize >= areas {
        return Err(Damaged("a patch is of no area"));
    }
    if usize::from(len) > PATCH || len == 0 || splits > 1 || address.checked_add(len.into()).is_none() {
        return Err(Damaged("a patch's length"));
    }
    Ok((area, Patch { address, len, skipped, splits: splits == 1, old, new }))
}

fn original(mut row: Reader<'_>, patches: usize) -> Result<(u32, u32, u64), Damaged> {
    let (hook, patch, address) = (row.u32(), row.u32(), row.u64());
    if hook as usize >= abi::message::HOOKS || patch as usize >= patches {
        return Err(Damaged("an original is of no hook or no patch"));
    }
    Ok((hook, patch, address))
}

fn counter(mut row: Reader<'_>, patches: usize) -> Result<(u64, u32), Damaged> {
    let (address, patch) = (row.u64(), row.u32());
    if patch as usize >= patches || address.checked_add(2).is_none() {
        return Err(Damaged("a counter is of no patch"));
    }
    Ok((address, patch))
}

/// Takes numbers from the beginning of a row, whose length was checked; zeros behind its end.
struct Reader<'b> {
    bytes: &'b [u8],
}

impl Reader<'_> {
    fn array<const N: usize>(&mut self) -> [u8; N] {
        let (first, rest) = self.bytes.split_first_chunk::<N>().unwrap_or((&[0; N], &[]));
        self.bytes = rest;
        *first
    }

    fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.array())
    }

    fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.array())
    }
}
