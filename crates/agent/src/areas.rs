//! The areas of this process: where stubs are. Areas are only added.

use crate::kernel;
use abi::plan::{Area, Step};
use abi::stub::{Layout, RAISE, UNDO, Variant, layout};
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicU32, AtomicU64};

/// The most areas of a process: module loads that were seen, and big modules have several.
pub const MOST: usize = 1 << 15;
/// How many more the table has room for each time that it is full.
const MORE: usize = 1 << 10;
const SIZE: u64 = (MORE * size_of::<Area>()) as u64;
const _: () = assert!(SIZE.is_multiple_of(4096));

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
    let Some(table) = kernel::reserve_first((MOST / MORE) as u64 * SIZE, SIZE) else { return false };
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
///
/// # Safety
/// It is mapped, for good, with its steps where it says.
pub unsafe fn add(area: &Area) -> bool {
    let used = USED.load(Relaxed) as usize;
    let table = TABLE.load(Relaxed);
    if table == 0 || used >= MOST {
        return false;
    }
    if used.is_multiple_of(MORE) && used > 0 && !kernel::extend(table + (used / MORE) as u64 * SIZE, SIZE) {
        return false;
    }
    // SAFETY: the table has room for it, and nobody reads this entry before USED says so.
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

/// Unmaps all areas. All other threads are stopped.
///
/// # Safety
/// No thread will ever be in an area again.
pub unsafe fn free() {
    for area in all() {
        // SAFETY: so says the caller.
        unsafe { kernel::unmap(area.address, area.len) };
    }
    USED.store(0, Release);
}

/// By how much the instruction at a pc raises the stack pointer, if it is one that does that in front of a stub or of a hook; and the register
/// that it pops.
pub fn raises_at(pc: u64) -> Option<(i32, Option<u8>)> {
    let area = all().iter().find(|a| pc.wrapping_sub(a.address) < a.len)?;
    if area.address + area.len - pc < u64::from(UNDO) {
        return None;
    }
    // SAFETY: areas are mapped and readable, and it lies in one as a whole.
    let code = unsafe { (pc as *const [u8; UNDO as usize]).read() };
    if let Some(register) = abi::stub::popped(&code) {
        return Some((8, Some(register)));
    }
    let by = code.strip_prefix(&RAISE).and_then(|by| by.first_chunk())?;
    Some((i32::from_le_bytes(*by), None))
}

/// Where moved code stands for an instruction of the program.
#[derive(Clone, Copy)]
pub struct Moved {
    area: &'static Area,
    /// The number of the step.
    step: u32,
    /// The instruction.
    pub original: u64,
    /// By how much the stack pointer is lower than it was before the instruction.
    pub lowered: u64,
}

/// More steps than a moved beginning has.
const STEPS: u32 = 12;

fn step(area: &Area, number: u32) -> Option<Step> {
    let at = area.address + area.steps_at + u64::from(number) * size_of::<Step>() as u64;
    let is_there = number < area.steps && at + size_of::<Step>() as u64 <= area.address + area.len;
    // SAFETY: it lies in an area, which is mapped and readable, at a multiple of 4.
    is_there.then(|| unsafe { (at as *const Step).read() })
}

fn original(area: &Area, step: Step) -> u64 {
    area.address.wrapping_add_signed(step.original.into())
}

/// What a pc in moved code stands for.
pub fn moved(pc: u64) -> Option<Moved> {
    let area = all().iter().find(|a| pc.wrapping_sub(a.address) < a.len)?;
    let at = (pc - area.address) as u32;
    // The last step that begins at or below it.
    let (mut low, mut high) = (0, area.steps);
    while low < high {
        let middle = low + (high - low) / 2;
        if step(area, middle)?.at & Step::PLACE <= at {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    let number = low.checked_sub(1)?;
    let found = step(area, number).filter(|s| s.original != 0)?;
    Some(Moved { area, step: number, original: original(area, found), lowered: found.lowered() })
}

impl Moved {
    /// Where the same moved beginning has an instruction; none where it has not.
    pub fn find(&self, pc: u64) -> Option<u64> {
        let near = self.step.saturating_sub(STEPS)..self.step + STEPS;
        let mut steps = near.filter_map(|n| step(self.area, n));
        let found = steps.find(|s| is_of(self.area, *s, pc))?;
        Some(self.area.address + u64::from(found.at))
    }
}

/// Where code goes on instead of at a pc among the bytes that a patch has replaced; none at a function's first instruction, where the
/// patch is to be executed, and elsewhere.
pub fn instead_of(pc: u64) -> Option<u64> {
    const JUMP: u64 = 5;
    let area = (0..JUMP).find_map(|before| {
        let at = pc.checked_sub(before).filter(|at| kernel::is_readable(*at) && kernel::is_readable(at + JUMP))?;
        // SAFETY: it is readable.
        let (code, distance) = unsafe { ((at as *const u8).read(), ((at + 1) as *const i32).read_unaligned()) };
        let to = (at + JUMP).wrapping_add_signed(distance.into());
        all().iter().find(|a| code == 0xe9 && to.wrapping_sub(a.address) < a.len)
    })?;
    let number = (0..area.steps).find(|n| step(area, *n).is_some_and(|s| is_of(area, s, pc)))?;
    let below = number.checked_sub(1).and_then(|n| step(area, n)).map(|s| original(area, s));
    // Of a function whose first instruction stays, that has a step too.
    below.filter(|below| pc.wrapping_sub(*below) < 16)?;
    Some(area.address + u64::from(step(area, number)?.at))
}

fn is_of(area: &Area, step: Step, pc: u64) -> bool {
    step.lowered() == 0 && original(area, step) == pc
}

/// A pc in a stub: the stub's layout, and the pc's offset in it.
pub fn stub_of(pc: u64) -> Option<(&'static Layout, u32)> {
    let area = all().iter().find(|a| pc.wrapping_sub(a.address) < a.stubs)?;
    let layout = layout(Variant::of(area.variant)?);
    Some((layout, ((pc - area.address) % u64::from(layout.size)) as u32))
}

/// The variant of the stub that an address is in.
pub fn variant_at(address: u64) -> Option<Variant> {
    Variant::of(all().iter().find(|a| address.wrapping_sub(a.address) < a.stubs)?.variant)
}

/// The variant of the stub that begins for callers at an address, and its function's number.
pub fn function_of(entry: u64) -> Option<(Variant, u32)> {
    let area = all().iter().find(|a| entry.wrapping_sub(a.address) < a.stubs)?;
    let variant = Variant::of(area.variant)?;
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
