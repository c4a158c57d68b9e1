//! Hashes of stacks that the collector knows. A stack that finds no place is sent again each time.

use crate::kernel;
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

/// Places of the first table, which a processor's cache can hold, and of both: 8 MB more, of which the kernel gives pages when they are used.
const FIRST: u64 = 1 << 18;
const PLACES: u64 = FIRST + (1 << 20);
/// How many places of each are looked at. The second one has what found no place in the first.
const PROBES: u64 = 8;

static TABLE: AtomicU64 = AtomicU64::new(0);

fn place(table: u64, hash: u64, probe: u64) -> &'static AtomicU64 {
    let n = match probe.checked_sub(PROBES) {
        None => hash.wrapping_add(probe) % FIRST,
        Some(probe) => FIRST + hash.wrapping_add(probe) % (PLACES - FIRST),
    };
    // SAFETY: the table has this many places, and is never unmapped.
    unsafe { &*((table + 8 * n) as *const AtomicU64) }
}

/// Whether a hash is there.
#[inline(always)]
pub fn has(hash: u64) -> bool {
    let table = TABLE.load(Acquire);
    if table == 0 {
        return false;
    }
    for probe in 0..2 * PROBES {
        match place(table, hash, probe).load(Relaxed) {
            0 => return false,
            there if there == hash => return true,
            _ => {}
        }
    }
    false
}

/// Puts a hash there.
pub fn add(hash: u64) {
    let mut table = TABLE.load(Acquire);
    if table == 0 {
        let Some(new) = kernel::reserve(8 * PLACES) else { return };
        table = match TABLE.compare_exchange(0, new, AcqRel, Acquire) {
            Ok(_) => new,
            Err(there) => {
                // SAFETY: nobody has seen it.
                unsafe { kernel::unmap(new, 8 * PLACES) };
                there
            }
        };
    }
    for probe in 0..2 * PROBES {
        match place(table, hash, probe).compare_exchange(0, hash, Release, Relaxed) {
            Ok(_) => return,
            Err(there) if there == hash => return,
            Err(_) => {}
        }
    }
}

/// Forgets all: another collector knows none of them. Other threads are stopped.
pub fn forget() {
    let table = TABLE.load(Acquire);
    if table != 0 {
        // SAFETY: the agent's own, and zeros are valid.
        unsafe { kernel::discard(table, 8 * PLACES) };
    }
}
