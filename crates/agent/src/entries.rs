//! Entries of shadow stacks: what is in them, and what becomes of the records that are written late.

use crate::memory::{load, store};
use crate::sites;
use crate::slots::{ENTRY, NO_CALL};
use crate::thread::Local;
use abi::thread::{BARRIER, WRITTEN};
use core::sync::atomic::Ordering::Relaxed;

/// The bits of the flags of an entry of the variant Called that say what has become of its record: 0: it was written, or there is none;
/// [`PENDING`], then [`LATE`]. Other variants have all bits there, or none.
pub const STATE: u32 = 0b11 << 30;
/// It is to be written when a call takes long enough.
pub const PENDING: u32 = 0b01 << 30;
/// It was written late.
const LATE: u32 = 0b10 << 30;

/// The tracers that have seen a call, and the epoch of it, from the flags of an entry of the variant Called.
#[inline(always)]
pub fn seen(flags: u32) -> (u32, u32) {
    (flags & 0xff, (flags & !STATE) >> 8)
}

/// The fields of an entry.
pub fn slot(at: u64) -> u64 {
    // SAFETY: callers pass entries between the sentinel and top.
    unsafe { load(at) }
}

pub fn address(at: u64) -> u64 {
    // SAFETY: as in `slot`.
    unsafe { load(at + 8) }
}

/// The call of an entry has ended.
pub fn forget(entry: u64) {
    // SAFETY: an entry between the sentinel and top.
    unsafe { store(entry + 24, NO_CALL) };
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

/// The number, in records, of the function of an entry that has not been written; none: it has been, or is not to be.
fn pending(word: u64) -> Option<u32> {
    let (function, flags) = (word as u32, (word >> 32) as u32);
    match flags {
        0 => Some(function),
        f if f & STATE == PENDING => sites::get(function & !WRITTEN).map(|s| s.record.load(Relaxed)),
        _ => None,
    }
}

/// The word of an entry that has been written late.
fn written(word: u64) -> u64 {
    let flags = (word >> 32) as u32;
    let flags = if flags == 0 { 1 } else { flags & !STATE | LATE };
    word & u64::from(u32::MAX) | u64::from(flags) << 32
}

/// Whether an entry was written late, and so those below it.
fn is_written_late(word: u64) -> bool {
    let flags = (word >> 32) as u32;
    flags != 0 && word as u32 & WRITTEN == 0 || flags & STATE == LATE
}

/// Passes the calls that have not been written, up to that of an entry, lowest first, with their times and functions.
pub fn write_entries(local: &Local, last: u64, mut write: impl FnMut(u64, u32)) {
    let (base, top) = (local.base.load(Relaxed), last + ENTRY);
    // Timed entries are written from the bottom up, so those that are not are at the top, with barriers and those of other stubs.
    let mut at = top;
    while at > base {
        // SAFETY: an entry between the sentinel and top.
        let word = unsafe { load(at - ENTRY + 24) };
        if address(at - ENTRY) == BARRIER {
            at = (at - 3 * ENTRY).max(base);
        } else if is_written_late(word) {
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
        if let Some(number) = pending(function) {
            // SAFETY: the entry is the thread's.
            unsafe { store(at + 24, written(function)) };
            if number != 0 {
                write(tsc, number);
            }
        }
        at += ENTRY;
    }
}
