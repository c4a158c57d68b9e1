//! Entries of shadow stacks: what is in them, and what becomes of the records that are written late.

use crate::memory::{load, store};
use crate::slots::{ENTRY, NO_CALL};
use crate::thread::{self, Local};
use crate::{kernel, sites};
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

/// An entry of a thread's shadow stack, or its sentinel: in memory that stays the thread's.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Entry(u64);

impl Entry {
    /// The one at an address. The agent is wrong where that is not in the thread's shadow stack.
    pub fn at(local: &Local, at: u64) -> Entry {
        let sentinel = local.base.load(Relaxed).wrapping_sub(ENTRY);
        // Stubs push up to the end of what is mapped, which the thread may not have noted yet.
        if at < sentinel || at >= thread::limit(local).max(local.top.load(Relaxed)) {
            kernel::abort()
        }
        Entry(at)
    }

    /// The topmost one, or the sentinel.
    ///
    /// # Safety
    /// The thread has a shadow stack.
    #[inline(always)]
    pub unsafe fn top(local: &Local) -> Entry {
        Entry(local.top.load(Relaxed) - ENTRY)
    }

    /// Its address.
    #[inline(always)]
    pub fn start(self) -> u64 {
        self.0
    }

    #[inline(always)]
    fn word_at(self, offset: u64) -> u64 {
        // SAFETY: within the entry.
        unsafe { load(self.0 + offset) }
    }

    /// The place of the return address.
    #[inline(always)]
    pub fn place(self) -> u64 {
        self.word_at(0)
    }

    /// The return address.
    #[inline(always)]
    pub fn address(self) -> u64 {
        self.word_at(8)
    }

    /// The time.
    #[inline(always)]
    pub fn time(self) -> u64 {
        self.word_at(16)
    }

    /// Function and flags.
    #[inline(always)]
    pub fn word(self) -> u64 {
        self.word_at(24)
    }

    /// Sets function and flags.
    #[inline(always)]
    pub fn set_word(self, word: u64) {
        // SAFETY: within the entry, which is the thread's.
        unsafe { store(self.0 + 24, word) };
    }

    /// Its call has ended.
    pub fn forget(self) {
        self.set_word(NO_CALL);
    }

    /// Sets all of it: place, address, time, function and flags.
    pub fn set(self, words: [u64; 4]) {
        for (n, word) in words.into_iter().enumerate() {
            // SAFETY: within the entry, which is the thread's.
            unsafe { store(self.0 + 8 * n as u64, word) };
        }
    }

    /// All of it.
    pub fn all(self) -> [u64; 4] {
        [self.place(), self.address(), self.time(), self.word()]
    }

    /// The place of the entry below it, or of the sentinel. Below that lies memory of the thread's, too.
    #[inline(always)]
    pub fn place_below(self) -> u64 {
        // SAFETY: see above.
        unsafe { load(self.0 - ENTRY) }
    }

    /// The function of the entry below it, and [`WRITTEN`]; 0 of the sentinel.
    #[inline(always)]
    pub fn word_below(self) -> u32 {
        // SAFETY: as in `place_below`.
        unsafe { load(self.0 - ENTRY + 24) as u32 }
    }

    /// What is left when it goes: a barrier takes the two below it along.
    pub fn rest(self) -> u64 {
        if self.address() == BARRIER { self.0 - 2 * ENTRY } else { self.0 }
    }
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

/// The topmost call whose entry is to be written late and has not been, and that has taken so long.
pub fn long_open(local: &Local, now: u64, least: u64) -> Option<Entry> {
    let (base, mut at) = (local.base.load(Relaxed), local.top.load(Relaxed));
    while at > base {
        let entry = Entry::at(local, at - ENTRY);
        let is_open = entry.address() != BARRIER && pending(entry.word()).is_some_and(|number| number != 0);
        if is_open && now.saturating_sub(entry.time()) >= least {
            return Some(entry);
        }
        at = entry.rest();
    }
    None
}

/// Passes the calls that have not been written, up to that of an entry, lowest first, with their times and functions. Those of a parent, from
/// before the time `born`, are the parent's to write.
pub fn write_entries(local: &Local, last: Entry, born: u64, mut write: impl FnMut(u64, u32)) {
    let (base, top) = (local.base.load(Relaxed), last.start() + ENTRY);
    // Timed entries are written from the bottom up, so those that are not are at the top, with barriers and those of other stubs.
    let mut at = top;
    while at > base {
        let entry = Entry::at(local, at - ENTRY);
        if entry.address() == BARRIER {
            at = (at - 3 * ENTRY).max(base);
        } else if is_written_late(entry.word()) {
            break;
        } else {
            at -= ENTRY;
        }
    }
    while at < top {
        let barrier = at + 2 * ENTRY < top && Entry::at(local, at + 2 * ENTRY).address() == BARRIER;
        if barrier {
            at += 3 * ENTRY;
            continue;
        }
        let entry = Entry::at(local, at);
        if let Some(number) = pending(entry.word()) {
            entry.set_word(written(entry.word()));
            if number != 0 && entry.time() >= born {
                write(entry.time(), number);
            }
        }
        at += ENTRY;
    }
}
