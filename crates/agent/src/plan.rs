//! A plan of the collector: its tables, and the areas that it maps.

use crate::plain::{self, Plain};
use crate::{areas, debugger, kernel, thread};
use abi::plan::{self, Area, Counter, Header, Original, Patch, Trailer};
use abi::stub::Variant;

/// The most patches of a plan.
const PATCHES: u32 = 1 << 24;
const INT3: u8 = 0xcc;

/// A plan whose tables lie within it.
pub struct Plan<'a> {
    pub bytes: &'a [u8],
    pub areas: &'a [Area],
    pub patches: &'a [Patch],
    pub originals: &'a [Original],
    pub counters: &'a [Counter],
}

impl<'a> Plan<'a> {
    pub fn new(bytes: &'a [u8]) -> Option<Plan<'a>> {
        let header: Header = *table(bytes, 0, 1)?.first()?;
        let right = header.magic == plan::MAGIC && header.version == abi::VERSION && header.patches <= PATCHES;
        right.then_some(())?;
        Some(Plan {
            bytes,
            areas: table(bytes, header.areas_at, header.areas)?,
            patches: table(bytes, header.patches_at, header.patches)?,
            originals: table(bytes, header.originals_at, header.originals)?,
            counters: table(bytes, header.counters_at, u32::try_from(header.counters).ok()?)?,
        })
    }
}

impl Plan<'_> {
    /// Maps an area, if it is not there yet. Returns whether it is there, and the variant of its stubs.
    pub fn map_area(&self, number: u32) -> Option<u32> {
        let area = self.areas.get(number as usize)?;
        map_area(area, self.bytes).then_some(area.variant)
    }

    /// How many areas it has.
    pub fn areas(&self) -> u32 {
        self.areas.len() as u32
    }
}

/// A table of a plan.
pub fn table<T: Plain>(bytes: &[u8], at: u64, count: u32) -> Option<&[T]> {
    plain::slice(bytes.get(usize::try_from(at).ok()?..)?, count as usize)
}

/// Maps an area, if it is not there already.
pub fn map_area(area: &Area, plan: &[u8]) -> bool {
    let Some(content) = area
        .at
        .checked_add(area.content)
        .and_then(|end| plan.get(usize::try_from(area.at).ok()?..usize::try_from(end).ok()?))
    else {
        return false;
    };
    let whole = area.address.is_multiple_of(4096) && area.len.is_multiple_of(4096) && area.len > 0;
    let Some(variant) = Variant::of(area.variant) else { return false };
    let size = u64::from(abi::stub::layout(variant).size);
    let Some(room) = area.len.checked_sub(Trailer::SIZE as u64) else { return false };
    if !whole || area.content > room || area.stubs > area.content || !area.stubs.is_multiple_of(size) {
        return false;
    }
    let flags = kernel::MAP_PRIVATE | kernel::MAP_ANONYMOUS | kernel::MAP_FIXED_NOREPLACE;
    let at = kernel::map(area.address, area.len, kernel::PROT_READ | kernel::PROT_WRITE, flags, -1);
    if at == kernel::EEXIST {
        return is_there(area, content);
    }
    if at as u64 != area.address {
        return false;
    }
    // SAFETY: the memory is new and ours.
    let memory = unsafe { core::slice::from_raw_parts_mut(at as *mut u8, area.len as usize) };
    let (begin, rest) = memory.split_at_mut(content.len());
    begin.copy_from_slice(content);
    rest.fill(INT3);
    let trailer = trailer(area);
    if let Some(last) = rest.last_chunk_mut::<{ Trailer::SIZE }>() {
        last.copy_from_slice(plain::bytes(&trailer));
    }
    // SAFETY: nobody uses it yet.
    let protected = unsafe { kernel::protect(area.address, area.len, kernel::PROT_READ | kernel::PROT_EXEC) } == 0;
    // SAFETY: it has just been mapped.
    let added = (protected || map_code(area, content)) && unsafe { areas::add(area) };
    if !added {
        // SAFETY: nobody uses it.
        unsafe { kernel::unmap(area.address, area.len) };
        return false;
    }
    debugger::add(area);
    true
}

/// What an unwinder outside of the process finds of an area.
fn trailer(area: &Area) -> Trailer {
    Trailer {
        magic: Trailer::MAGIC,
        version: abi::VERSION,
        variant: area.variant,
        address: area.address,
        len: area.len,
        stubs: area.stubs,
        tls: thread::tls_offset(),
        steps: area.steps,
        steps_at: area.steps_at as u32,
        entries_at: area.entries_at as u32,
        reserved: 0,
    }
}

/// Maps an area as code in place of the memory that may not become code (PR_SET_MDWE, a filter), and writes it through `/proc/self/mem`.
fn map_code(area: &Area, content: &[u8]) -> bool {
    // SAFETY: what is replaced is the agent's own, and nobody uses it yet.
    let at = unsafe { kernel::map_over(area.address, area.len, kernel::PROT_READ | kernel::PROT_EXEC) };
    if at as u64 != area.address {
        return false;
    }
    let memory = kernel::open_own(c"/proc/self/mem", kernel::O_RDWR) as i32;
    if memory < 0 {
        return false;
    }
    let rest = [INT3; 4096];
    let mut written = kernel::pwrite(memory, content, area.address) == content.len() as isize;
    let mut at = area.content;
    while written && at < area.len {
        let len = (area.len - at).min(4096);
        let part = rest.get(..len as usize).unwrap_or(&[]);
        written = kernel::pwrite(memory, part, area.address + at) == len as isize;
        at += len;
    }
    let last = area.address + area.len - Trailer::SIZE as u64;
    written &= kernel::pwrite(memory, plain::bytes(&trailer(area)), last) == Trailer::SIZE as isize;
    kernel::close(memory);
    written
}

/// Whether the same area is there from an earlier plan: a module was unloaded, and has come to the same address again.
fn is_there(area: &Area, content: &[u8]) -> bool {
    let same = |a: &Area| (a.address, a.len, a.stubs, a.variant) == (area.address, area.len, area.stubs, area.variant);
    // SAFETY: an area that is in the list is mapped for good.
    areas::all().iter().any(same)
        && unsafe { core::slice::from_raw_parts(area.address as *const u8, content.len()) } == content
}
