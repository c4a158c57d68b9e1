//! Calls that have not returned: what Enter and Exit do when the place of a return address is not where the last one leads to expect it.
//!
//! An entry that a program may still need is never dropped. The stack that a longjmp or an exception leaves looks like that of a
//! coroutine that sleeps: entries below the new one's place and near it are most likely left, but they are *buried*: put where an
//! Exit still finds them by their place. Entries far away stay, until their place no longer has the address of a stub.
//!
//! ```text
//!  Enter at S, top entry e:   e.slot > S       a caller: push
//!                             e.slot = S       [S] is a stub's return: tail call: push. Else e was left: drop
//!                             e.slot < S       near: bury. Far: drop if left for sure, else leave it, push
//!  Exit at S:                 entry of S below others: those above are left (bury) or another stack's (the entry's part goes to the top)
//! ```

use crate::areas;
use crate::kernel;
use crate::memory::{load, store};
use crate::permits;
use crate::thread::{BURIED, FRAMES, Local, stride};
use core::sync::atomic::Ordering::Relaxed;
use core::sync::atomic::compiler_fence;

/// The address in an entry that a signal's stand-in makes. Its slot is in the stand-in's frame, and has [`MARK`] while that runs.
pub const BARRIER: u64 = 1;
/// What the slot of a live barrier has.
pub const MARK: u64 = 0x7472_6170_6c69_6e65;
/// Entries are near if they are not farther below.
const NEAR: u64 = 64 << 10;
/// Parts of one stack have no larger gaps.
const GAP: u64 = 256 << 10;
/// The longest chain of tail calls that is followed.
const CHAIN: u64 = 64;
/// Entries that an Exit looks at to find out whether they are left.
const LOOKS: u32 = 64;

/// The fields of an entry.
fn slot(at: u64) -> u64 {
    // SAFETY: callers pass entries between the sentinel and top.
    unsafe { load(at) }
}

fn address(at: u64) -> u64 {
    // SAFETY: as in `slot`.
    unsafe { load(at + 8) }
}

/// Whether the frame of an entry far away may be alive.
fn may_live(at: u64) -> bool {
    let place = slot(at);
    if !permits::records() {
        return true;
    }
    // SAFETY: it was readable a moment ago; only another thread that unmaps a stack under its coroutine could change that.
    let there = if kernel::is_readable(place) { unsafe { load(place) } } else { return false };
    if address(at) == BARRIER { there == MARK } else { areas::is_return(there) }
}

/// What is left when an entry goes: a barrier takes the two below it along.
fn below(at: u64) -> u64 {
    if address(at) == BARRIER { at - 2 * stride() } else { at }
}

/// Sets the top, and the slot of the entry below it.
fn set_top(local: &Local, top: u64) {
    local.top_slot.store(slot(top - stride()), Relaxed);
    compiler_fence(core::sync::atomic::Ordering::SeqCst);
    local.top.store(top, Relaxed);
}

/// Where the graveyard has entries of a slot.
fn grave(local: &Local, place: u64, probe: u64) -> u64 {
    let hash = (place >> 3).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 48;
    local.memory.load(Relaxed) + FRAMES + (((hash + probe) * 16) & (BURIED - 1))
}

fn bury(local: &Local, at: u64) {
    let (place, address) = (slot(at), address(at));
    if address == BARRIER {
        return;
    }
    let free = (0..8).map(|p| grave(local, place, p)).find(|g| slot(*g) == 0 || slot(*g) == place);
    let grave = free.unwrap_or_else(|| grave(local, place, 0));
    // SAFETY: the graveyard is the thread's.
    unsafe {
        store(grave, place);
        store(grave + 8, address);
    }
}

fn buried(local: &Local, place: u64) -> Option<u64> {
    (0..8).map(|p| grave(local, place, p)).find(|g| slot(*g) == place && address(*g) != 0)
}

/// Entries at the top that a thread has left, if it is at `place` now: those below it, from the top downwards in ascending order
/// without large gaps, up to one above it or near it. Returns what the top is without them.
///
/// A barrier is left if its stand-in's frame is below: what a handler calls is below that.
fn without_left(local: &Local, place: u64) -> Option<u64> {
    let (size, base, top) = (stride(), local.base.load(Relaxed), local.top.load(Relaxed));
    let (mut at, mut last) = (left_handler(local, place).unwrap_or(top), None);
    while at > base {
        let (there, is_barrier) = (slot(at - size), address(at - size) == BARRIER);
        if there >= place {
            return (at < top).then_some(at);
        }
        if !is_barrier && last.is_some_and(|last| there < last || there - last >= NEAR) {
            break;
        }
        at = below(at - size);
        last = if is_barrier { last } else { Some(there) };
    }
    (at < top && last.is_none_or(|last| place - last < NEAR)).then_some(at)
}

/// What the top is without the calls of a handler that was left, and without its barrier, if one is among the topmost entries.
fn left_handler(local: &Local, place: u64) -> Option<u64> {
    let (size, base) = (stride(), local.base.load(Relaxed));
    let mut at = local.top.load(Relaxed);
    for _ in 0..LOOKS {
        if at <= base {
            return None;
        }
        at -= size;
        if address(at) == BARRIER {
            return (slot(at) < place).then(|| below(at));
        }
    }
    None
}

/// Buries the entries from a new top upwards.
fn bury_all(local: &Local, top: u64) {
    let mut at = local.top.load(Relaxed);
    while at > top {
        bury(local, at - stride());
        at = below(at - stride());
    }
    set_top(local, top);
}

/// Removes what has certainly or most likely been left by a thread that calls something with its return address at `place`.
/// Returns the new top, and whether it is a tail call.
fn clear(local: &Local, place: u64, returns: u64) -> (u64, bool) {
    let (size, base) = (stride(), local.base.load(Relaxed));
    let tail = areas::is_return(returns);
    loop {
        let top = local.top.load(Relaxed);
        if top <= base {
            return (top, tail);
        }
        let there = slot(top - size);
        if there > place || there == place && tail {
            return (top, tail);
        }
        if there == place {
            // Another return address is there now.
            set_top(local, below(top - size));
        } else if let Some(rest) = without_left(local, place) {
            bury_all(local, rest);
        } else if may_live(top - size) {
            return (top, tail);
        } else {
            set_top(local, below(top - size));
        }
    }
}

/// Makes room in a full shadow stack: entries that are certainly left go. Signals are blocked.
fn compact(local: &Local) {
    let (size, base, top) = (stride(), local.base.load(Relaxed), local.top.load(Relaxed));
    let (mut from, mut to) = (base, base);
    while from < top {
        if may_live(from) {
            if from != to {
                copy(from, to, size);
            }
            to += size;
        }
        from += size;
    }
    set_top(local, to);
}

fn copy(from: u64, to: u64, len: u64) {
    // SAFETY: both lie in the thread's shadow stack, between the sentinel and the limit.
    unsafe { core::ptr::copy(from as *const u8, to as *mut u8, len as usize) };
}

/// An entry for a function whose return address is at `place`. False: it is not to be observed.
pub fn push(local: &Local, place: u64, timed: Option<(u64, u32)>) -> bool {
    let size = stride();
    // SAFETY: the stub has just been called there.
    let returns = unsafe { load(place) };
    let (mut top, tail) = clear(local, place, returns);
    if tail && top - local.base.load(Relaxed) > CHAIN * size && slot(top - CHAIN * size) == place {
        return false;
    }
    if top + 16 * size > local.limit.load(Relaxed) {
        if !permits::records() {
            return false;
        }
        let mask = kernel::set_mask(kernel::ALL);
        set_top(local, top);
        compact(local);
        top = local.top.load(Relaxed);
        kernel::set_mask(mask);
        if top + 1024 * size > local.limit.load(Relaxed) {
            return false;
        }
    }
    // SAFETY: below the limit of the thread's own shadow stack.
    unsafe {
        store(top, place);
        store(top + 8, returns);
        if let Some((tsc, function)) = timed {
            store(top + 16, tsc);
            store(top + 24, u64::from(function));
        }
    }
    set_top(local, top + size);
    true
}

/// Puts all return addresses of a thread back, and has its calls not observed from now on. Signals are blocked.
pub fn abandon(local: &Local) {
    let (size, base) = (stride(), local.base.load(Relaxed));
    let mut at = local.top.load(Relaxed);
    local.busy.store(1, Relaxed);
    while at > base {
        at -= size;
        if address(at) == BARRIER {
            at -= 2 * size;
        } else if may_live(at) {
            // SAFETY: the place has a stub's address. Of tail calls, the oldest one's comes last.
            unsafe { store(slot(at), address(at)) };
        }
    }
    local.top_slot.store(0, Relaxed);
    local.top.store(base, Relaxed);
}

/// The newest entry of a place, if there is one.
fn find(local: &Local, place: u64) -> Option<u64> {
    let (size, base) = (stride(), local.base.load(Relaxed));
    let mut at = local.top.load(Relaxed);
    while at > base {
        at -= size;
        if address(at) == BARRIER {
            // The two below a barrier belong to the code that it has interrupted.
            at -= 2 * size;
        } else if slot(at) == place {
            return Some(at);
        }
    }
    None
}

/// Brings the entry of a place to the top.
pub fn bring(local: &Local, place: u64) {
    let size = stride();
    let Some(found) = find(local, place) else { return unbury(local, place) };
    let mut looks = 0;
    while local.top.load(Relaxed) - size > found && looks < LOOKS {
        looks += 1;
        let top = local.top.load(Relaxed);
        match without_left(local, place) {
            Some(rest) if rest > found => bury_all(local, rest),
            _ if may_live(top - size) => break,
            _ => set_top(local, below(top - size).max(found + size)),
        }
    }
    let top = local.top.load(Relaxed);
    if top - size > found {
        // Another stack's. The part of this one that ends with the entry goes to the top.
        let mut first = found;
        let base = local.base.load(Relaxed);
        while first > base && address(first - size) != BARRIER && slot(first - size).wrapping_sub(slot(first)) < GAP {
            first -= size;
        }
        // SAFETY: from the sentinel to top all is the thread's; sizes are multiples of 8.
        let entries = unsafe { core::slice::from_raw_parts_mut(first as *mut u64, ((top - first) / 8) as usize) };
        let part = ((found + size - first) / 8) as usize;
        if part <= entries.len() {
            entries.rotate_left(part);
        }
    }
    set_top(local, top);
}

fn unbury(local: &Local, place: u64) {
    let Some(grave) = buried(local, place) else { kernel::abort() };
    let (size, top) = (stride(), local.top.load(Relaxed));
    if top + size > local.limit.load(Relaxed) {
        kernel::abort()
    }
    // SAFETY: below the limit; the grave is the thread's. A timed entry has lost its time: it counts as written, begun now.
    unsafe {
        store(top, place);
        store(top + 8, address(grave));
        if size > 16 {
            store(top + 16, kernel::tsc());
            store(top + 24, 1 << 32);
        }
        store(grave + 8, 0);
    }
    set_top(local, top + size);
}

/// The return address of the program that belongs to a place: of a chain of tail calls, the oldest one's.
pub fn return_address(local: &Local, place: u64) -> Option<u64> {
    if local.top.load(Relaxed) == 0 {
        return None;
    }
    let Some(mut at) = find(local, place) else { return buried(local, place).map(address) };
    let (size, base) = (stride(), local.base.load(Relaxed));
    while areas::is_return(address(at)) && at > base && slot(at - size) == place {
        at -= size;
    }
    Some(address(at))
}

/// A handler begins: a barrier, whose place is in the stand-in's frame. The two entries below it belong to what it has interrupted.
pub fn raise_barrier(local: &Local, place: u64) {
    let (size, top) = (stride(), local.top.load(Relaxed));
    if top == 0 || top + 16 * size > local.limit.load(Relaxed) {
        return;
    }
    // SAFETY: below the limit of the thread's shadow stack.
    unsafe {
        store(top + 2 * size, place);
        store(top + 2 * size + 8, BARRIER);
    }
    set_top(local, top + 3 * size);
}

/// A handler has returned: what it left goes, with the barrier. `before`: top and its slot when it began.
pub fn lower_barrier(local: &Local, place: u64, before: (u64, u64)) {
    if before.0 == 0 || local.busy.load(Relaxed) != 0 {
        return;
    }
    let (size, base) = (stride(), local.base.load(Relaxed));
    let mut at = local.top.load(Relaxed);
    while at > base {
        at -= size;
        if slot(at) == place && address(at) == BARRIER {
            let top = at - 2 * size;
            if top == before.0 {
                break;
            }
            return set_top(local, top);
        }
        at = below(at);
    }
    local.top_slot.store(before.1, Relaxed);
    local.top.store(before.0, Relaxed);
}

/// Removes the barrier of an earlier handler that had its stand-in at the same place, and did not return. `top` moves down.
pub fn remove_left_barrier(local: &Local, place: u64) {
    let (size, base, top) = (stride(), local.base.load(Relaxed), local.top.load(Relaxed));
    if top == 0 {
        return;
    }
    let mut at = top;
    for _ in 0..LOOKS {
        if at < base + 3 * size {
            return;
        }
        at -= size;
        if address(at) == BARRIER && slot(at) == place {
            copy(at + size, at - 2 * size, top - at - size);
            return set_top(local, top - 3 * size);
        }
        at = below(at);
    }
}

/// Passes the calls that have not been written, lowest first, with their times and functions. Returns the function of the top entry.
/// Entries are timed ones.
pub fn write_entries(local: &Local, mut write: impl FnMut(u64, u32)) -> u32 {
    let (size, base, top) = (stride(), local.base.load(Relaxed), local.top.load(Relaxed));
    let mut last = 0;
    // Entries are written from the bottom up, so those that are not are at the top: barriers and unwritten ones.
    let mut at = top;
    while at > base {
        // SAFETY: a timed entry between the sentinel and top.
        let written = unsafe { load(at - size + 24) } >> 32;
        if address(at - size) == BARRIER {
            at = (at - 3 * size).max(base);
        } else if written != 0 {
            break;
        } else {
            at -= size;
        }
    }
    while at < top {
        let barrier = at + 2 * size < top && address(at + 2 * size) == BARRIER;
        if barrier {
            at += 3 * size;
            continue;
        }
        // SAFETY: a timed entry between the sentinel and top.
        let (tsc, function) = unsafe { (load(at + 16), load(at + 24)) };
        last = function as u32;
        if function >> 32 == 0 {
            // SAFETY: the entry is the thread's.
            unsafe { store(at + 24, function | 1 << 32) };
            if last != 0 {
                write(tsc, last);
            }
        }
        at += size;
    }
    if top > base {
        // SAFETY: the top entry.
        last = unsafe { load(top - size + 24) } as u32;
    }
    last
}
