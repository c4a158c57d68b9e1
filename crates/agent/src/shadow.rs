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
//!                             none: another thread's (taken), or buried
//! ```
//!
//! The call of an entry that is removed as left, or buried, ends: an exit is recorded for it ([`record::left`]). Exceptions ([`leave_frame`])
//! and longjmp ([`leave`]) say so when they leave a call; what else leaves one is found out by the next Enter or Exit, as above.
//!
//! Whatever moves or removes entries that another thread may need, those of coroutines, has the lock of the thread's memory (`slots`).

use crate::entries::Entry;
use crate::memory::{load, store};
use crate::slots::{self, ENTRY, End, GONE, Locked, NO_CALL, Taken};
use crate::thread::{ABANDONED, Local};
use crate::{areas, kernel, permits, record, thread};
use abi::thread::{BARRIER, WRITTEN};
use core::sync::atomic::Ordering::Relaxed;
use core::sync::atomic::compiler_fence;

/// What the slot of a live barrier has, which is in the frame of a signal's stand-in.
pub const MARK: u64 = 0x7472_6170_6c69_6e65;
/// Entries are near if they are not farther below.
const NEAR: u64 = 64 << 10;
/// Parts of one stack have no larger gaps.
const GAP: u64 = 256 << 10;
/// The longest chain of tail calls: the caller's call ends when a longer one would begin.
const CHAIN: u64 = 64;
/// Entries that an Exit looks at to find out whether they are left.
const LOOKS: u32 = 64;
/// This many entries that other threads have taken are removed at once.
const MANY_GONE: u32 = 32;
/// How often a thread waits for an entry that another is about to move, and for how many ns at first and later: a minute in all. The other
/// may itself wait for memory for its records.
const ROUNDS: u32 = 60_000;
const SHORT: (u32, u64) = (2_000, 50_000);
const LONG: u64 = 1_000_000;

/// Whether the frame of an entry far away may be alive.
fn may_live(entry: Entry) -> bool {
    if entry.address() == GONE {
        return false;
    }
    if !permits::records() {
        return true;
    }
    let Some(there) = permits::peek_one(entry.place()) else { return false };
    if entry.address() == BARRIER { there == MARK } else { areas::is_return(there) }
}

/// Sets the top, and the slot of the entry below it.
fn set_top(local: &Local, top: u64) {
    local.top_slot.store(Entry::at(local, top - ENTRY).place(), Relaxed);
    compiler_fence(core::sync::atomic::Ordering::SeqCst);
    local.top.store(top, Relaxed);
}

/// Keeps other threads from the thread's entries.
fn lock(local: &Local) -> Option<Locked<'static>> {
    slots::at(local.place.load(Relaxed))?.lock(local.tid.load(Relaxed))
}

/// Notes where entries end, for the time when the thread has ended.
fn note(local: &Local) {
    if let Some(slot) = slots::at(local.place.load(Relaxed)) {
        slot.note(local.top.load(Relaxed));
    }
}

fn bury(local: &Local, entry: Entry) {
    let (place, address) = (entry.place(), entry.address());
    if let Some(slot) = slots::at(local.place.load(Relaxed)).filter(|_| address > GONE) {
        slot.bury(place, address);
    }
}

/// Removes entries that other threads have taken, down to the first barrier. The lock is held.
fn remove_gone(local: &Local) {
    if !permits::records() || !slots::at(local.place.load(Relaxed)).is_some_and(|s| s.take_gone(MANY_GONE)) {
        return;
    }
    let mask = kernel::block();
    let (base, top) = (local.base.load(Relaxed), local.top.load(Relaxed));
    let mut first = top;
    while first > base && Entry::at(local, first - ENTRY).address() != BARRIER {
        first -= ENTRY;
    }
    let mut to = first;
    for from in (first..top).step_by(ENTRY as usize).filter(|from| Entry::at(local, *from).address() != GONE) {
        if from != to {
            Entry::at(local, to).set(Entry::at(local, from).all());
        }
        to += ENTRY;
    }
    set_top(local, to);
    kernel::set_mask(mask);
}

/// Entries at the top that a thread has left, if it is at `place` now: those below it, from the top downwards in ascending order
/// without large gaps, up to one above it or `near` it. Returns what the top is without them.
///
/// A barrier is left if its stand-in's frame is below: what a handler calls is below that.
fn without_left(local: &Local, place: u64, near: u64) -> Option<u64> {
    let (base, top) = (local.base.load(Relaxed), local.top.load(Relaxed));
    let (mut at, mut last) = (left_handler(local, place).unwrap_or(top), None);
    while at > base {
        let entry = Entry::at(local, at - ENTRY);
        let (there, is_barrier) = (entry.place(), entry.address() == BARRIER);
        if there >= place {
            return (at < top).then_some(at);
        }
        if !is_barrier && last.is_some_and(|last| there < last || there - last >= near) {
            break;
        }
        at = entry.rest();
        last = if is_barrier { last } else { Some(there) };
    }
    (at < top && last.is_none_or(|last| place - last < near)).then_some(at)
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
        let entry = Entry::at(local, at);
        if entry.address() == BARRIER {
            return (entry.place() < place).then(|| entry.rest());
        }
    }
    None
}

/// Ends the calls from a new top upwards, innermost first. They are still in the shadow stack: a handler that runs meanwhile, where there is
/// no room for a record, finds everything whole, and other threads find no lock.
fn end_calls(local: &Local, top: u64) {
    let mut at = local.top.load(Relaxed);
    while at > top {
        let entry = Entry::at(local, at - ENTRY);
        if entry.address() != BARRIER {
            record::left(local, entry);
        }
        at = entry.rest();
    }
}

/// Ends and buries the calls that a jump leaves which sets the stack pointer to `place`.
pub fn leave(local: &Local, place: u64) {
    if let Some(rest) = without_left(local, place, GAP) {
        end_calls(local, rest);
        let _locked = lock(local);
        bury_all(local, rest);
    }
}

/// Ends and removes the call whose return address is at a place, with its tail calls: an exception leaves it.
pub fn leave_frame(local: &Local, place: u64) {
    if find(local, place).is_none() {
        return;
    }
    bring(local, place);
    while Entry::at(local, local.top.load(Relaxed) - ENTRY).place() == place {
        let top = local.top.load(Relaxed);
        record::left(local, Entry::at(local, top - ENTRY));
        set_top(local, top - ENTRY);
    }
    note(local);
}

/// Buries the entries from a new top upwards.
fn bury_all(local: &Local, top: u64) {
    let mut at = local.top.load(Relaxed);
    while at > top {
        let entry = Entry::at(local, at - ENTRY);
        bury(local, entry);
        at = entry.rest();
    }
    set_top(local, top);
}

/// Removes what has certainly or most likely been left by a thread that calls something with its return address at `place`.
/// Returns the new top, and whether it is a tail call.
fn clear(local: &Local, place: u64, returns: u64) -> (u64, bool) {
    let base = local.base.load(Relaxed);
    let tail = areas::is_return(returns);
    let top = local.top.load(Relaxed);
    if top <= base || Entry::at(local, top - ENTRY).place() > place {
        return (top, tail);
    }
    let locked = lock(local);
    remove_gone(local);
    drop(locked);
    loop {
        let top = local.top.load(Relaxed);
        if top <= base {
            return (top, tail);
        }
        let there = Entry::at(local, top - ENTRY).place();
        if there > place || there == place && tail {
            return (top, tail);
        }
        // Where it is the place itself, another return address is there now.
        let left = if there == place { None } else { without_left(local, place, NEAR) };
        if left.is_none() && there != place && may_live(Entry::at(local, top - ENTRY)) {
            return (top, tail);
        }
        let rest = left.unwrap_or(Entry::at(local, top - ENTRY).rest());
        end_calls(local, rest);
        let _locked = lock(local);
        if left.is_some() {
            bury_all(local, rest);
        } else {
            set_top(local, rest);
        }
    }
}

/// Makes room in a full shadow stack: entries that are certainly left go. Signals are blocked.
fn compact(local: &Local) {
    let (base, top) = (local.base.load(Relaxed), local.top.load(Relaxed));
    let (mut from, mut to) = (base, base);
    while from < top {
        if may_live(Entry::at(local, from)) {
            if from != to {
                Entry::at(local, to).set(Entry::at(local, from).all());
            }
            to += ENTRY;
        }
        from += ENTRY;
    }
    set_top(local, to);
}

/// An entry for a function whose return address is at `place`, with this word ([`abi::thread::Shadow::function`]), and the time if that
/// matters. False: it is not to be observed.
///
/// # Safety
/// The thread has a shadow stack, and the place has the return address of a call that is under way.
pub unsafe fn push(local: &Local, place: u64, word: u32, is_timed: bool) -> bool {
    // SAFETY: so says the caller.
    let mut returns = unsafe { load(place) };
    let was_full = local.top_slot.load(Relaxed) == 0;
    let (mut top, tail) = clear(local, place, returns);
    if tail && top - local.base.load(Relaxed) > CHAIN * ENTRY && Entry::at(local, top - CHAIN * ENTRY).place() == place
    {
        top -= ENTRY;
        let oldest = Entry::at(local, top);
        returns = oldest.address();
        record::left(local, oldest);
        // SAFETY: the place is that of the call: it has the address of a stub.
        unsafe { pop(local, oldest) };
    }
    // What was left has ended before.
    let tsc = if is_timed && permits::records() { kernel::tsc() } else { 0 };
    if !thread::has_room(local) {
        if was_full || !permits::records() {
            return false;
        }
        let mask = kernel::block();
        set_top(local, top);
        let locked = lock(local);
        compact(local);
        drop(locked);
        top = local.top.load(Relaxed);
        kernel::set_mask(mask);
        if !thread::has_room(local) {
            return false;
        }
    }
    // The sign is extended: an entry that is not to be written late is marked in the upper half too.
    Entry::at(local, top).set([place, returns, tsc, i64::from(word as i32) as u64]);
    set_top(local, top + ENTRY);
    note(local);
    true
}

/// An entry for a place that is below that of the topmost entry, as it mostly is. False: it is not, or there is no room for an entry.
///
/// # Safety
/// As of [`push`].
#[inline(always)]
pub unsafe fn push_below(local: &Local, place: u64, word: u64, tsc: u64) -> bool {
    if place >= local.top_slot.load(Relaxed) || !thread::has_room(local) {
        return false;
    }
    let top = local.top.load(Relaxed);
    // SAFETY: there is room; the rest says the caller.
    unsafe {
        store(top, place);
        store(top + 8, load(place));
        store(top + 16, tsc);
        store(top + 24, word);
    }
    local.top_slot.store(place, Relaxed);
    compiler_fence(core::sync::atomic::Ordering::SeqCst);
    local.top.store(top + ENTRY, Relaxed);
    true
}

/// The top entry, which is that of a place; it is brought there if need be.
///
/// # Safety
/// A call returns that has an entry: the thread has a shadow stack.
#[inline(always)]
pub unsafe fn top_of(local: &Local, place: u64) -> Entry {
    // SAFETY: so says the caller.
    let top = unsafe { Entry::top(local) };
    if top.place() == place {
        return top;
    }
    bring(local, place);
    // SAFETY: as above.
    unsafe { Entry::top(local) }
}

/// How many calls are open below the top one.
#[inline(always)]
pub fn depth(local: &Local) -> u32 {
    ((local.top.load(Relaxed) - local.base.load(Relaxed)) / ENTRY) as u32 - 1
}

/// Removes the top entry, and puts the return address back.
///
/// # Safety
/// It is that of a call which returns now, or ends: its place has the address of its stub.
#[inline(always)]
pub unsafe fn pop(local: &Local, entry: Entry) {
    // SAFETY: so says the caller.
    unsafe { store(entry.place(), entry.address()) };
    local.top_slot.store(entry.place_below(), Relaxed);
    compiler_fence(core::sync::atomic::Ordering::SeqCst);
    local.top.store(entry.start(), Relaxed);
}

/// Puts all return addresses of a thread back, and has its calls not observed from now on. Signals are blocked, if that is allowed.
pub fn abandon(local: &Local) {
    let _locked = lock(local);
    let base = local.base.load(Relaxed);
    let mut at = local.top.load(Relaxed);
    local.busy.store(ABANDONED, Relaxed);
    while at > base {
        at -= ENTRY;
        let entry = Entry::at(local, at);
        if entry.address() == BARRIER {
            at -= 2 * ENTRY;
        } else if may_live(entry) {
            // SAFETY: the place has a stub's address. Of tail calls, the oldest one's comes last.
            unsafe { store(entry.place(), entry.address()) };
        }
    }
    local.top_slot.store(0, Relaxed);
    local.top.store(base, Relaxed);
}

/// The newest entry of a place, if there is one.
fn find(local: &Local, place: u64) -> Option<u64> {
    // SAFETY: they are the thread's own; without a shadow stack, both are 0.
    unsafe { slots::find(local.base.load(Relaxed), local.top.load(Relaxed), place) }
}

/// Brings the entry of a place to the top.
pub fn bring(local: &Local, place: u64) {
    if find(local, place).is_none() {
        return take(local, place);
    }
    let locked = lock(local);
    remove_gone(local);
    drop(locked);
    let Some(found) = find(local, place) else { return };
    let mut looks = 0;
    while local.top.load(Relaxed) - ENTRY > found && looks < LOOKS {
        looks += 1;
        let top = local.top.load(Relaxed);
        let left = without_left(local, place, NEAR).filter(|rest| *rest > found);
        if left.is_none() && may_live(Entry::at(local, top - ENTRY)) {
            break;
        }
        let rest = left.unwrap_or(Entry::at(local, top - ENTRY).rest().max(found + ENTRY));
        end_calls(local, rest);
        let _locked = lock(local);
        if left.is_some() {
            bury_all(local, rest);
        } else {
            set_top(local, rest);
        }
    }
    let _locked = lock(local);
    let top = local.top.load(Relaxed);
    if top - ENTRY > found {
        // Another stack's. The part of this one that ends with the entry goes to the top.
        let mut first = found;
        let base = local.base.load(Relaxed);
        let is_next = |first: u64| {
            let (above, entry) = (Entry::at(local, first), Entry::at(local, first - ENTRY));
            entry.address() != BARRIER && entry.place().wrapping_sub(above.place()) < GAP
        };
        while first > base && is_next(first) {
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
    note(local);
}

/// Puts an entry on top.
fn put(local: &Local, [place, address, tsc, word]: [u64; 4]) {
    let top = local.top.load(Relaxed);
    Entry::at(local, top).set([place, address, tsc, word]);
    set_top(local, top + ENTRY);
}

/// Looks in all threads' memory for the entries of a place that is not among the thread's, and takes them to its top. Returns the oldest
/// one's return address.
///
/// The entries of threads that run come first, because these are known for sure. Then those of threads that have ended, and what was buried,
/// once it is certain that no thread that runs has moved the entry meanwhile: what lies further has often been left.
fn search(local: &Local, place: u64, remove: bool) -> Option<u64> {
    if slots::all().len() < 2 {
        return dig_out(local, place, remove);
    }
    from_others(local, place, (End::Owner, false), remove)
        .or_else(|| from_others(local, place, (End::Noted, false), remove))
        .or_else(|| from_others(local, place, (End::Owner, true), remove))
        .or_else(|| dig_out(local, place, remove))
        .or_else(|| from_others(local, place, (End::Descending, false), remove))
}

fn from_others(local: &Local, place: u64, how: (End, bool), remove: bool) -> Option<u64> {
    let mut taken = Taken::default();
    let mask = permits::block();
    if slots::take(local.tid.load(Relaxed), local.place.load(Relaxed), place, how, remove, &mut taken) && remove {
        for [place, address, tsc, word] in taken.entries.iter().take(taken.len).copied() {
            // Records of a thread are in order: of a call that began elsewhere, nothing is written late.
            let is_late = word >> 32 == 0 && word as u32 & WRITTEN == 0;
            put(local, [place, address, tsc, if is_late { NO_CALL } else { word }]);
        }
        note(local);
    }
    permits::unblock(mask);
    taken.entries.first().filter(|_| taken.len > 0).map(|[_, address, ..]| *address)
}

fn dig_out(local: &Local, place: u64, remove: bool) -> Option<u64> {
    let address = slots::buried(place, remove)?;
    if remove {
        // The entry has lost time and function: it counts as written, begun now.
        put(local, [place, address, if permits::records() { kernel::tsc() } else { 0 }, NO_CALL]);
        note(local);
    }
    Some(address)
}

/// Brings the entry of a place, which is not among the thread's, to the top. The owner may be about to move it: then it is looked for again.
fn take(local: &Local, place: u64) {
    for round in 0..ROUNDS {
        if search(local, place, true).is_some() {
            return;
        }
        if slots::all().len() < 2 || !permits::records() {
            break;
        }
        kernel::sleep(if round < SHORT.0 { SHORT.1 } else { LONG });
    }
    kernel::abort()
}

/// The return address of the program that belongs to a place: of a chain of tail calls, the oldest one's.
pub fn return_address(local: &Local, place: u64) -> Option<u64> {
    if local.top.load(Relaxed) == 0 {
        return None;
    }
    let base = local.base.load(Relaxed);
    if let Some(at) = find(local, place) {
        // SAFETY: `at` is one of the thread's entries.
        return Some(Entry::at(local, unsafe { slots::chain(base, at, place) }).address());
    }
    // An exception that passes another thread's call takes the entry: this thread knows when the call has been left. A handler's entries
    // go when it returns, so what it looks at stays where it is.
    let mut at = local.top.load(Relaxed);
    while at > base && Entry::at(local, at - ENTRY).address() != BARRIER {
        at -= ENTRY;
    }
    search(local, place, at == base && slots::all().len() > 1)
}

/// A handler begins: a barrier, whose place is in the stand-in's frame. The two entries below it belong to what it has interrupted.
pub fn raise_barrier(local: &Local, place: u64) {
    let top = local.top.load(Relaxed);
    if top == 0 || !thread::has_room(local) && top + 16 * ENTRY > thread::limit(local) {
        return;
    }
    Entry::at(local, top + 2 * ENTRY).set([place, BARRIER, 0, NO_CALL]);
    set_top(local, top + 3 * ENTRY);
    note(local);
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
        let entry = Entry::at(local, at);
        if entry.place() == place && entry.address() == BARRIER {
            let top = at - 2 * ENTRY;
            end_calls(local, at + ENTRY);
            if top == before.0 {
                break;
            }
            return set_top(local, top);
        }
        at = entry.rest();
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
        let entry = Entry::at(local, at);
        if entry.address() == BARRIER && entry.place() == place {
            let _locked = lock(local);
            for from in (at + ENTRY..top).step_by(ENTRY as usize) {
                Entry::at(local, from - 3 * ENTRY).set(Entry::at(local, from).all());
            }
            return set_top(local, top - 3 * ENTRY);
        }
        at = entry.rest();
    }
}
