//! The areas of this process: where stubs are. Areas are only added.

use crate::kernel;
use abi::plan::Area;
use abi::stub::{Layout, RAISE, UNDO, Variant, layout};
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicU32, AtomicU64};

/// The most areas of a process: module loads that were seen, and big modules have several.
pub const MOST: usize = 1 << 15;

static TABLE: AtomicU64 = AtomicU64::new(0);
static USED: AtomicU32 = AtomicU32::new(0);
/// Stubs of traced functions lie between these.
static LOW: AtomicU64 = AtomicU64::new(u64::MAX);
static HIGH: AtomicU64 = AtomicU64::new(0);

/// Makes the table. At the start, once.
pub fn begin() -> bool {
    if TABLE.load(Relaxed) != 0 {
        return true;
    }
    let Some(table) = kernel::reserve((MOST * size_of::<Area>()) as u64) else { return false };
    TABLE.store(table, Release);
    true
}

/// All areas.
pub fn all() -> &'static [Area] {
    let table = TABLE.load(Acquire);
    if table == 0 {
        return &[];
    }
    let used = (USED.load(Acquire) as usize).min(MOST);
    // SAFETY: the table is never unmapped; entries below `used` are written and never change.
    unsafe { core::slice::from_raw_parts(table as *const Area, used) }
}

/// Adds an area. Only the thread that installs does this.
pub fn add(area: &Area) -> bool {
    let used = USED.load(Relaxed) as usize;
    let table = TABLE.load(Relaxed);
    if table == 0 || used >= MOST {
        return false;
    }
    // SAFETY: the table has room for MOST, and nobody reads this entry before USED says so.
    unsafe { (table as *mut Area).add(used).write(*area) };
    USED.store(used as u32 + 1, Release);
    if area.stubs > 0 {
        LOW.fetch_min(area.address, Relaxed);
        HIGH.fetch_max(area.address + area.stubs, Relaxed);
    }
    true
}

/// Whether an address may be in a stub: false, nearly always, at once.
#[inline(always)]
pub fn may_be_stub(address: u64) -> bool {
    LOW.load(Relaxed) <= address && address < HIGH.load(Relaxed)
}

/// Where the table is, and how many areas it has.
pub fn table() -> (u64, u32) {
    (TABLE.load(Acquire), USED.load(Acquire))
}

/// Unmaps all areas. All other threads are stopped, and none of them will ever be in an area again.
pub fn free() {
    for area in all() {
        // SAFETY: nobody uses it, and nobody will.
        unsafe { kernel::unmap(area.address, area.len) };
    }
    USED.store(0, Release);
}

/// The variant that a plan names.
pub fn variant(number: u32) -> Option<Variant> {
    use Variant::{Called, Count, CountTimed, Entry, Paired, Timed};
    [Paired, Timed, Entry, Count, CountTimed, Called].into_iter().find(|v| *v as u32 == number)
}

/// By how much the instruction at a pc raises the stack pointer, if it is one that does that in front of a stub or of a hook.
pub fn raises_at(pc: u64) -> Option<i32> {
    let area = all().iter().find(|a| pc.wrapping_sub(a.address) < a.len)?;
    if area.address + area.len - pc < u64::from(UNDO) {
        return None;
    }
    // SAFETY: areas are mapped and readable, and it lies in one as a whole.
    let (code, by) = unsafe { ((pc as *const [u8; 4]).read(), ((pc + 4) as *const i32).read_unaligned()) };
    (code == RAISE).then_some(by)
}

/// A pc in a stub: the stub's layout, and the pc's offset in it.
pub fn stub_of(pc: u64) -> Option<(&'static Layout, u32)> {
    let area = all().iter().find(|a| pc.wrapping_sub(a.address) < a.stubs)?;
    let layout = layout(variant(area.variant)?);
    Some((layout, ((pc - area.address) % u64::from(layout.size)) as u32))
}

/// The variant of the stub that an address is in.
pub fn variant_at(address: u64) -> Option<Variant> {
    variant(all().iter().find(|a| address.wrapping_sub(a.address) < a.stubs)?.variant)
}

/// The variant of the stub that begins for callers at an address, and its function's number.
pub fn function_of(entry: u64) -> Option<(Variant, u32)> {
    let area = all().iter().find(|a| entry.wrapping_sub(a.address) < a.stubs)?;
    let variant = variant(area.variant)?;
    let layout = layout(variant);
    let begins = |stub: &u64| stub.wrapping_sub(area.address).is_multiple_of(layout.size.into());
    let entries = [entry, entry.wrapping_add(UNDO.into())];
    let stub = entries.map(|e| e.wrapping_sub(layout.entry.into())).into_iter().find(begins)?;
    // SAFETY: a whole stub lies there, in memory that is readable.
    let word = unsafe { ((stub + u64::from(layout.number)) as *const u32).read_unaligned() };
    Some((variant, abi::stub::number(variant, word)))
}

/// Whether an address is that to which a function with a stub returns.
pub fn is_return(address: u64) -> bool {
    stub_of(address).is_some_and(|(layout, offset)| layout.returns != 0 && offset == layout.returns)
}
