//! Code that stands for that of patched functions: stubs, to which traced functions return instead of to their callers, and moved beginnings.
//!
//! ```text
//!  F: jmp stub ─► stub: return address ─► shadow stack of the thread; call moved ─► moved beginning of F ─► F
//!
//!  a return address that is a stub's ──────► the entry of the shadow stack that has its place ──► the caller's, or another stub's (tail calls)
//!  a pc in a stub ─────────────────────────► shown as the first instruction of F; the stub's rule leads on
//!  a pc in a moved beginning ──────────────► the instruction of F that it stands for
//! ```
//!
//! A mapping of such code has a flag in place of rows of its own:
//!
//! | | stubs | moved beginnings |
//! |---|---|---|
//! | `start` | the area's | |
//! | `bias` | where for each stub 4 bytes have the distance of its function from `start` | the area's address |
//! | `first_page` | of the rules of one stub | how many steps there are |
//! | `flags` | [`STUBS`], the size of a stub, and the offset to which functions return | [`MOVED`] |
//!
//! Steps (`abi::plan::Step`: u32 offset in the area, i32 distance of the instruction that it stands for) lie behind the code that they are
//! of ([`steps_at`]).

use crate::table::Mapping;

/// Flag of a mapping: an array of stubs.
pub const STUBS: u32 = 2;
/// Flag of a mapping: moved beginnings.
pub const MOVED: u32 = 4;
/// Bits of the flags of stubs: from this one on the 16ths of a stub's size.
pub const SIZE_SHIFT: u32 = 8;
/// From this one on the offset to which functions return; 0: they do not.
pub const RETURNS_SHIFT: u32 = 16;
/// In a step's offset: the stack pointer is 8 lower than before the instruction.
pub const PUSHED: u32 = 1 << 31;
/// In a step's offset: it is 128 lower.
pub const SKIPPED: u32 = 1 << 30;

/// Bytes of an entry of the shadow stack: the place of the return address, the return address, and more (`abi::thread::Shadow`).
pub const ENTRY: u64 = 32;
/// The return address of an entry that marks a signal handler. The two entries below it may be half written.
pub const BARRIER: u64 = 1;
/// Return addresses up to this one are none: what entries have in their place.
pub const NO_ADDRESS: u64 = 2;
/// Where in a thread's data the end of its shadow stack is, and its lowest entry (`abi::thread::Thread`).
pub const TOP: i16 = 0;
/// The lowest entry.
pub const BASE: i16 = 40;

/// The flags of stubs, whose size is a multiple of 16 below 4096.
pub const fn stubs(size: u32, returns: u32) -> u32 {
    STUBS | (size / 16) << SIZE_SHIFT | returns << RETURNS_SHIFT
}

/// Where the steps of moved beginnings lie.
pub const fn steps_at(moved: &Mapping) -> u64 {
    (moved.end + 7) & !7
}

/// What the code at an address is, in place of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Patched {
    /// A stub: the first instruction of its function, and where the CFA is, from rsp, if that is known.
    Stub {
        /// The function.
        function: u64,
        /// The distance of the CFA.
        cfa: Option<i64>,
    },
    /// Where functions return to a stub: where they were called from, if that is known.
    Return(Option<u64>),
    /// It stands for this instruction; the stack pointer is so much lower than there.
    Moved {
        /// The instruction.
        original: u64,
        /// By how much.
        lowered: u64,
    },
}

/// The most entries of a shadow stack that are looked at for a walk.
const MOST_ENTRIES: u32 = 4096;

/// The shadow stack of a thread that does not run, in a walk from the innermost frame outward.
///
/// ```text
///  base ── entry ── … ── entry ── top ── entries that were removed: an exception, or longjmp, is about to leave their frames ──►
/// ```
///
/// Removed entries are still right as long as no other call has taken their place: their places on the stack descend, from entry to entry.
#[derive(Clone, Copy, Debug, Default)]
pub struct Shadow {
    base: u64,
    top: u64,
    /// Entries below are to be looked at.
    next: u64,
    looks: u32,
}

impl Shadow {
    /// That of the thread whose data lies at an address; none: it has none yet.
    pub fn of(local: u64, mut read: impl FnMut(u64) -> Option<u64>) -> Option<Shadow> {
        let (top, base) = (read(local.wrapping_add(TOP as u64))?, read(local.wrapping_add(BASE as u64))?);
        (top != 0).then_some(Shadow { base, top, next: top, looks: 0 })
    }

    /// The return address that was at a place, which is further out than those that were asked for before.
    pub fn address(&mut self, place: u64, mut read: impl FnMut(u64) -> Option<u64>) -> Option<u64> {
        let mut looked_above = false;
        loop {
            self.looks += 1;
            if self.looks > MOST_ENTRIES {
                return None;
            }
            let at_end = self.next <= self.base;
            let entry = self.next.wrapping_sub(ENTRY);
            let (there, address) = if at_end { (u64::MAX, 0) } else { (read(entry)?, read(entry.wrapping_add(8))?) };
            if !at_end && address == BARRIER {
                self.next = entry.wrapping_sub(2 * ENTRY);
                continue;
            }
            if !at_end && there == place {
                self.next = entry;
                return Some(address);
            }
            if self.next == self.top && there > place && !looked_above {
                looked_above = true;
                if let Some(address) = self.removed(place, there, &mut read) {
                    return Some(address);
                }
            }
            if at_end {
                return None;
            }
            self.next = entry;
        }
    }

    /// The return address of an entry above the top.
    fn removed(&mut self, place: u64, mut last: u64, mut read: impl FnMut(u64) -> Option<u64>) -> Option<u64> {
        let mut at = self.top;
        while self.looks < MOST_ENTRIES {
            self.looks += 1;
            let (there, address) = (read(at)?, read(at.wrapping_add(8))?);
            if address <= NO_ADDRESS || there >= last || there < place {
                return None;
            }
            if there == place {
                return Some(address);
            }
            last = there;
            at = at.wrapping_add(ENTRY);
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: u64 = 0x1000;

    /// Entries of places and addresses, of which this many are below the top.
    fn shadow<'e>(entries: &'e [(u64, u64)], below: u64) -> (Shadow, impl Fn(u64) -> Option<u64> + 'e) {
        let read = |at: u64| {
            let nth = (at - AT) / ENTRY;
            let (place, address) = entries.get(nth as usize)?;
            Some(if at.is_multiple_of(ENTRY) { *place } else { *address })
        };
        let top = AT + below * ENTRY;
        (Shadow { base: AT, top, next: top, looks: 0 }, read)
    }

    #[test]
    fn entries_are_found_by_their_places() {
        // A tail call has a second entry; a handler has interrupted the push of one.
        let entries = [(90, 11), (80, 12), (80, 13), (70, 14), (1, 1), (2, 2), (95, BARRIER), (300, 15)];
        let (mut shadow, read) = shadow(&entries, 8);
        let mut at = |place| shadow.address(place, &read);
        assert_eq!([at(300), at(80), at(80), at(90), at(90)], [Some(15), Some(13), Some(12), Some(11), None]);
    }

    #[test]
    fn removed_entries_count_until_others_take_their_place() {
        let entries = [(90, 11), (80, 12), (70, 13), (60, 14)];
        let (mut first, read) = shadow(&entries, 1);
        assert_eq!([60, 80, 90].map(|p| first.address(p, &read)), [Some(14), Some(12), Some(11)]);
        let entries = [(90, 11), (50, 12), (70, 13), (60, 14)];
        let (mut second, read) = shadow(&entries, 1);
        assert_eq!([60, 90].map(|p| second.address(p, &read)), [None, None]);
    }

    #[test]
    fn a_thread_has_perhaps_none() {
        assert!(Shadow::of(AT, |_| None).is_none() && Shadow::of(AT, |_| Some(0)).is_none());
    }
}
