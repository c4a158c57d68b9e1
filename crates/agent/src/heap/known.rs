//! Hashes of stacks that the collector knows. A stack that finds no place is sent again each time.

use crate::kernel;
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

/// Places of the two tables. A processor's cache can hold the first one; the second one has what found no place there, and is mapped then.
const PLACES: [u64; 2] = [1 << 18, 1 << 20];
/// How many places of each are looked at.
const PROBES: u64 = 8;

static TABLES: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];

fn places(table: u64, len: u64, hash: u64) -> impl Iterator<Item = &'static AtomicU64> {
    // SAFETY: the table has this many places, and is never unmapped.
    (0..PROBES).map(move |probe| unsafe { &*((table + 8 * (hash.wrapping_add(probe) % len)) as *const AtomicU64) })
}

/// Whether a hash is there.
#[inline(always)]
pub fn has(hash: u64) -> bool {
    for (table, len) in TABLES.iter().zip(PLACES) {
        let table = table.load(Acquire);
        if table == 0 {
            return false;
        }
        for place in places(table, len, hash) {
            match place.load(Relaxed) {
                0 => return false,
                there if there == hash => return true,
                _ => {}
            }
        }
    }
    false
}

/// Puts a hash there.
pub fn add(hash: u64) {
    for (table, len) in TABLES.iter().zip(PLACES) {
        let Some(table) = mapped(table, 8 * len) else { return };
        for place in places(table, len, hash) {
            match place.compare_exchange(0, hash, Release, Relaxed) {
                Ok(_) => return,
                Err(there) if there == hash => return,
                Err(_) => {}
            }
        }
    }
}

/// A table, which is mapped if it is not yet.
fn mapped(table: &AtomicU64, bytes: u64) -> Option<u64> {
    let at = table.load(Acquire);
    if at != 0 {
        return Some(at);
    }
    let new = kernel::reserve(bytes)?;
    Some(match table.compare_exchange(0, new, AcqRel, Acquire) {
        Ok(_) => new,
        Err(there) => {
            // SAFETY: nobody has seen it.
            unsafe { kernel::unmap(new, bytes) };
            there
        }
    })
}

/// Forgets all: another collector knows none of them. Other threads are stopped.
pub fn forget() {
    for (table, len) in TABLES.iter().zip(PLACES) {
        let table = table.load(Acquire);
        if table != 0 {
            // SAFETY: the agent's own, and zeros are valid.
            unsafe { kernel::discard(table, 8 * len) };
        }
    }
}
