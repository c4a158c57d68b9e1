//! The plans that were carried out in a process that the agent was injected into, or may be taken out of: so that they can be undone.

use crate::install::Spared;
use crate::plan::Plan;
use crate::{install, kernel};
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicU32, AtomicU64};

/// The most plans of a session: one at its beginning, and one for each time that modules were loaded.
const MOST: usize = 1 << 14;

static TABLE: AtomicU64 = AtomicU64::new(0);
static USED: AtomicU32 = AtomicU32::new(0);

/// Address and length of a plan.
type Entry = [AtomicU64; 2];

/// Keeps plans from now on.
pub fn begin() -> bool {
    if TABLE.load(Relaxed) == 0 {
        let Some(table) = kernel::reserve((MOST * size_of::<Entry>()) as u64) else { return false };
        TABLE.store(table, Release);
    }
    true
}

fn entries(count: u32) -> &'static [Entry] {
    let table = TABLE.load(Acquire);
    if table == 0 {
        return &[];
    }
    // SAFETY: the table has room for MOST, is never unmapped, and zeros are valid.
    unsafe { core::slice::from_raw_parts(table as *const Entry, (count as usize).min(MOST)) }
}

/// Whether there are any.
pub fn any() -> bool {
    USED.load(Acquire) != 0
}

/// Whether plans are kept: the agent can be taken out.
pub fn are_kept() -> bool {
    TABLE.load(Acquire) != 0
}

/// Keeps a plan that is mapped for good. False: plans are not kept, it patches nothing, one with the same patches is kept (a module has come
/// to the same place again), or there are too many.
///
/// # Safety
/// So much is mapped there, read only.
pub unsafe fn keep(at: u64, len: u64) -> bool {
    let used = USED.load(Relaxed);
    // SAFETY: so says the caller, of this one as of those that are kept.
    let of = |at, len| Plan::new(unsafe { core::slice::from_raw_parts(at as *const u8, len as usize) });
    let kept = |[at, len]: &Entry| of(at.load(Relaxed), len.load(Relaxed));
    let Some(plan) = of(at, len).filter(|p| !p.patches.is_empty()) else { return false };
    if entries(used).iter().filter_map(kept).any(|k| k.patches == plan.patches) {
        return false;
    }
    let Some([address, bytes]) = entries(used + 1).get(used as usize) else { return false };
    bytes.store(len, Relaxed);
    address.store(at, Relaxed);
    USED.store(used + 1, Release);
    true
}

/// Undoes all plans, the last one first. All other threads are stopped. Where anything is spared, the plans stay too. How many patches could
/// not be undone.
pub fn undo(spared: Spared) -> u64 {
    let (mut left, whole) = (0, spared == Spared::Nothing);
    for [address, bytes] in entries(USED.load(Acquire)).iter().rev() {
        let (at, len) = (address.load(Relaxed), bytes.load(Relaxed));
        // SAFETY: so much is mapped there, since `keep`.
        left += install::undo(unsafe { core::slice::from_raw_parts(at as *const u8, len as usize) }, spared);
        if whole {
            // SAFETY: nobody uses it any more.
            unsafe { kernel::unmap(at, len) };
        }
    }
    if whole {
        USED.store(0, Release);
    }
    left
}
