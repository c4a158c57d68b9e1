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
use crate::thread::{ABANDONED, BURIED, ENTRY, FRAMES, Local};
use abi::thread::WRITTEN;
use core::sync::atomic::Ordering::Relaxed;
use core::sync::atomic::compiler_fence;

/// The address in an entry that a signal's stand-in makes. Its slot is in the stand-in's frame, and has [`MARK`] while that runs.
pub use abi::thread::BARRIER;
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
/// Function and flags of an entry that is no call: written, of no function.
const NOBODY: u64 = u64::MAX << 31;

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
    if address(at) == BARRIER { at - 2 * ENTRY } else { at }
}

/// Sets the top, and the slot of the entry below it.
fn set_top(local: &Local, top: u64) {
    local.top_slot.store(slot(top - ENTRY), Relaxed);
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
    let (base, top) = (local.base.load(Relaxed), local.top.load(Relaxed));
    let (mut at, mut last) = (left_handler(local, place).unwrap_or(top), None);
    while at > base {
        let (there, is_barrier) = (slot(at - ENTRY), address(at - ENTRY) == BARRIER);
        if there >= place {
            return (at < top).then_some(at);
        }
        if !is_barrier && last.is_some_and(|last| there < last || there - last >= NEAR) {
            break;
        }
        at = below(at - ENTRY);
        last = if is_barrier { last } else { Some(there) };
    }
    (at < top && last.is_none_or(|last| place - last < NEAR)).then_some(at)
}

/// What the top is without the calls of a handler that was left, and without its barrier, if one is among the topmost entries.
fn left_handler(local: &Local, place: u64) -> Option<u64> {
    let base = local.base.load(Relaxed);
    let mut at = local.top.load(Relaxed);
    for _ in 0..LOOKS {
        if at <= base {
            return None;
        }
        at -= ENTRY;
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
        bury(local, at - ENTRY);
        at = below(at - ENTRY);
    }
    set_top(local, top);
}

/// Removes what has certainly or most likely been left by a thread that calls something with its return address at `place`.
/// Returns the new top, and whether it is a tail call.
fn clear(local: &Local, place: u64, returns: u64) -> (u64, bool) {
    let base = local.base.load(Relaxed);
    let tail = areas::is_return(returns);
    loop {
        let top = local.top.load(Relaxed);
        if top <= base {
            return (top, tail);
        }
        let there = slot(top - ENTRY);
        if there > place || there == place && tail {
            return (top, tail);
        }
        if there == place {
            // Another return address is there now.
            set_top(local, below(top - ENTRY));
        } else if let Some(rest) = without_left(local, place) {
            bury_all(local, rest);
        } else if may_live(top - ENTRY) {
            return (top, tail);
        } else {
            set_top(local, below(top - ENTRY));
        }
    }
}

/// Makes room in a full shadow stack: entries that are certainly left go. Signals are blocked.
fn compact(local: &Local) {
    let (base, top) = (local.base.load(Relaxed), local.top.load(Relaxed));
    let (mut from, mut to) = (base, base);
    while from < top {
        if may_live(from) {
            if from != to {
                copy(from, to, ENTRY);
            }
            to += ENTRY;
        }
        from += ENTRY;
    }
    set_top(local, to);
}

fn copy(from: u64, to: u64, len: u64) {
    // SAFETY: both lie in the thread's shadow stack, between the sentinel and the limit.
    unsafe { core::ptr::copy(from as *const u8, to as *mut u8, len as usize) };
}

/// An entry for a function whose return address is at `place`, with this word ([`abi::thread::Shadow::function`]). False: it is not to be observed.
pub fn push(local: &Local, place: u64, word: u32, tsc: u64) -> bool {
    // SAFETY: the stub has just been called there.
    let returns = unsafe { load(place) };
    let (mut top, tail) = clear(local, place, returns);
    if tail && top - local.base.load(Relaxed) > CHAIN * ENTRY && slot(top - CHAIN * ENTRY) == place {
        return false;
    }
    if top + 16 * ENTRY > local.limit.load(Relaxed) {
        if !permits::records() {
            return false;
        }
        let mask = kernel::set_mask(kernel::ALL);
        set_top(local, top);
        compact(local);
        top = local.top.load(Relaxed);
        kernel::set_mask(mask);
        if top + 1024 * ENTRY > local.limit.load(Relaxed) {
            return false;
        }
    }
    // SAFETY: below the limit of the thread's own shadow stack.
    unsafe {
        store(top, place);
        store(top + 8, returns);
        store(top + 16, tsc);
        // The sign is extended: an entry that is not to be written late is marked in the upper half too.
        store(top + 24, i64::from(word as i32) as u64);
    }
    set_top(local, top + ENTRY);
    true
}

/// The same where the place is below that of the topmost entry, as it mostly is.
#[inline(always)]
pub fn push_below(local: &Local, place: u64, word: u64, tsc: u64) {
    let top = local.top.load(Relaxed);
    // SAFETY: there is room for a frame of each 16 bytes of the stack; the stub has just been called at `place`.
    unsafe {
        store(top, place);
        store(top + 8, load(place));
        store(top + 16, tsc);
        store(top + 24, word);
    }
    local.top_slot.store(place, Relaxed);
    compiler_fence(core::sync::atomic::Ordering::SeqCst);
    local.top.store(top + ENTRY, Relaxed);
}

/// The top entry, which is that of a place; it is brought there if need be.
#[inline(always)]
pub fn top_of(local: &Local, place: u64) -> u64 {
    if slot(local.top.load(Relaxed) - ENTRY) != place {
        bring(local, place);
    }
    local.top.load(Relaxed) - ENTRY
}

/// Sets function and flags of the top entry.
pub fn set_word(local: &Local, word: u64) {
    // SAFETY: the top entry, which has just been pushed.
    unsafe { store(local.top.load(Relaxed) - ENTRY + 24, word) };
}

/// The time, and function and flags, of an entry.
#[inline(always)]
pub fn time_and_word(entry: u64) -> (u64, u64) {
    // SAFETY: callers pass entries between the sentinel and top.
    unsafe { (load(entry + 16), load(entry + 24)) }
}

/// The word of the entry below one: its function, and [`WRITTEN`]; 0 of the sentinel.
#[inline(always)]
pub fn word_below(entry: u64) -> u32 {
    // SAFETY: below an entry is another, or the sentinel.
    unsafe { load(entry - ENTRY + 24) as u32 }
}

/// How many calls are open below the top one.
#[inline(always)]
pub fn depth(local: &Local) -> u32 {
    ((local.top.load(Relaxed) - local.base.load(Relaxed)) / ENTRY) as u32 - 1
}

/// Removes the top entry, and puts the return address back.
#[inline(always)]
pub fn pop(local: &Local, entry: u64) {
    // SAFETY: the entry is that of a call which returns now: its slot has the address of its stub.
    unsafe { store(slot(entry), address(entry)) };
    set_top(local, entry);
}

/// Puts all return addresses of a thread back, and has its calls not observed from now on. Signals are blocked.
pub fn abandon(local: &Local) {
    let base = local.base.load(Relaxed);
    let mut at = local.top.load(Relaxed);
    local.busy.store(ABANDONED, Relaxed);
    while at > base {
        at -= ENTRY;
        if address(at) == BARRIER {
            at -= 2 * ENTRY;
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
    let base = local.base.load(Relaxed);
    let mut at = local.top.load(Relaxed);
    while at > base {
        at -= ENTRY;
        if address(at) == BARRIER {
            // The two below a barrier belong to the code that it has interrupted.
            at -= 2 * ENTRY;
        } else if slot(at) == place {
            return Some(at);
        }
    }
    None
}

/// Brings the entry of a place to the top.
pub fn bring(local: &Local, place: u64) {
    let Some(found) = find(local, place) else { return unbury(local, place) };
    let mut looks = 0;
    while local.top.load(Relaxed) - ENTRY > found && looks < LOOKS {
        looks += 1;
        let top = local.top.load(Relaxed);
        match without_left(local, place) {
            Some(rest) if rest > found => bury_all(local, rest),
            _ if may_live(top - ENTRY) => break,
            _ => set_top(local, below(top - ENTRY).max(found + ENTRY)),
        }
    }
    let top = local.top.load(Relaxed);
    if top - ENTRY > found {
        // Another stack's. The part of this one that ends with the entry goes to the top.
        let mut first = found;
        let base = local.base.load(Relaxed);
        while first > base && address(first - ENTRY) != BARRIER && slot(first - ENTRY).wrapping_sub(slot(first)) < GAP {
            first -= ENTRY;
        }
        // SAFETY: from the sentinel to top all is the thread's; sizes are multiples of 8.
        let entries = unsafe { core::slice::from_raw_parts_mut(first as *mut u64, ((top - first) / 8) as usize) };
        let part = ((found + ENTRY - first) / 8) as usize;
        if part <= entries.len() {
            entries.rotate_left(part);
        }
    }
    set_top(local, top);
}

fn unbury(local: &Local, place: u64) {
    let Some(grave) = buried(local, place) else { kernel::abort() };
    let top = local.top.load(Relaxed);
    if top + ENTRY > local.limit.load(Relaxed) {
        kernel::abort()
    }
    // SAFETY: below the limit; the grave is the thread's. The entry has lost time and function: it counts as written, begun now.
    unsafe {
        store(top, place);
        store(top + 8, address(grave));
        store(top + 16, kernel::tsc());
        store(top + 24, NOBODY);
        store(grave + 8, 0);
    }
    set_top(local, top + ENTRY);
}

/// The return address of the program that belongs to a place: of a chain of tail calls, the oldest one's.
pub fn return_address(local: &Local, place: u64) -> Option<u64> {
    if local.top.load(Relaxed) == 0 {
        return None;
    }
    let Some(mut at) = find(local, place) else { return buried(local, place).map(address) };
    let base = local.base.load(Relaxed);
    while areas::is_return(address(at)) && at > base && slot(at - ENTRY) == place {
        at -= ENTRY;
    }
    Some(address(at))
}

/// A handler begins: a barrier, whose place is in the stand-in's frame. The two entries below it belong to what it has interrupted.
pub fn raise_barrier(local: &Local, place: u64) {
    let top = local.top.load(Relaxed);
    if top == 0 || top + 16 * ENTRY > local.limit.load(Relaxed) {
        return;
    }
    // SAFETY: below the limit of the thread's shadow stack.
    unsafe {
        store(top + 2 * ENTRY, place);
        store(top + 2 * ENTRY + 8, BARRIER);
        store(top + 2 * ENTRY + 24, NOBODY);
    }
    set_top(local, top + 3 * ENTRY);
}

/// A handler has returned: what it left goes, with the barrier. `before`: top and its slot when it began.
pub fn lower_barrier(local: &Local, place: u64, before: (u64, u64)) {
    if before.0 == 0 || local.busy.load(Relaxed) == ABANDONED {
        return;
    }
    let base = local.base.load(Relaxed);
    let mut at = local.top.load(Relaxed);
    while at > base {
        at -= ENTRY;
        if slot(at) == place && address(at) == BARRIER {
            let top = at - 2 * ENTRY;
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
    let (base, top) = (local.base.load(Relaxed), local.top.load(Relaxed));
    if top == 0 {
        return;
    }
    let mut at = top;
    for _ in 0..LOOKS {
        if at < base + 3 * ENTRY {
            return;
        }
        at -= ENTRY;
        if address(at) == BARRIER && slot(at) == place {
            copy(at + ENTRY, at - 2 * ENTRY, top - at - ENTRY);
            return set_top(local, top - 3 * ENTRY);
        }
        at = below(at);
    }
}

/// Passes the calls that have not been written, lowest first, with their times and functions. Returns the function of the top entry,
/// which is a timed one.
pub fn write_entries(local: &Local, mut write: impl FnMut(u64, u32)) -> u32 {
    let (base, top) = (local.base.load(Relaxed), local.top.load(Relaxed));
    let mut last = 0;
    // Timed entries are written from the bottom up, so those that are not are at the top, with barriers and those of other stubs.
    let mut at = top;
    while at > base {
        // SAFETY: an entry between the sentinel and top.
        let word = unsafe { load(at - ENTRY + 24) };
        if address(at - ENTRY) == BARRIER {
            at = (at - 3 * ENTRY).max(base);
        } else if word >> 32 != 0 && word as u32 & WRITTEN == 0 {
            break;
        } else {
            at -= ENTRY;
        }
    }
    while at < top {
        let barrier = at + 2 * ENTRY < top && address(at + 2 * ENTRY) == BARRIER;
        if barrier {
            at += 3 * ENTRY;
            continue;
        }
        // SAFETY: an entry between the sentinel and top.
        let (tsc, function) = unsafe { (load(at + 16), load(at + 24)) };
        last = function as u32;
        if function >> 32 == 0 {
            // SAFETY: the entry is the thread's.
            unsafe { store(at + 24, function | 1 << 32) };
            if last != 0 {
                write(tsc, last);
            }
        }
        at += ENTRY;
    }
    if top > base {
        // SAFETY: the top entry.
        last = unsafe { load(top - ENTRY + 24) } as u32;
    }
    last & !WRITTEN
}
