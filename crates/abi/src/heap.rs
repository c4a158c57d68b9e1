//! Records of allocations, among those of functions ([`crate::shared`]): they have numbers of functions that no function has.
//!
//! ```text
//!  0      4      8     10          16
//!  ┌──────┬──────┬─────┬───────────┬─ ─ ─
//!  │ time │ word │ len │ address   │ rest          word: VALUES | (FIRST + op) << 1; len: bytes behind it
//!  └──────┴──────┴─────┴───────────┴─ ─ ─          address: 48 bits
//!
//!  op       address              rest (8 bytes each)
//!  Malloc   the block            size, stack
//!  Again    the block            -                           size and stack as the last Malloc of the chunk
//!  Free     the block            -
//!  Realloc  the old block        the new block, size, stack, ticks since the old one was free
//!  Mmap     the mapping          size, stack
//!  Munmap   the first byte       bytes
//!  Mremap   the old mapping      its bytes, the new mapping, its bytes, stack, ticks since the old one was unmapped
//!  Stack    why it ends there    the stack, frames…          before the first record with that stack
//!  Fork     which of the process's forks, from 1             before fork(2)
//!  Child    which of its parent's forks  the parent's id     a child's first record
//! ```
//!
//! A **stack** is a hash of its frames (`unwind::replay`), the same in all threads and processes; 0: not known. Frames are as in
//! `unwind::stack`, the innermost first. An allocation's time is from when the allocator has returned, that of a free from before it
//! begins. So records of all threads in order of time are right for each address. Where the collector asks for times as cheap as can be
//! ([`COARSE`]), that holds too, but a time may be as old as [`crate::shared::Control::now`].

use crate::shared::FUNCTIONS;

/// The number of a function that stands for the op 0.
pub const FIRST: u32 = FUNCTIONS + 1;
/// The most frames of a stack.
pub const FRAMES: usize = 512;
/// Bytes of the longest record.
pub const LONGEST: usize = 24 + 8 * FRAMES;

/// Bit of [`crate::shared::Control::heap`]: allocations are recorded.
pub const RECORDED: u32 = 1;
/// Bit: while the process has one thread, times are those of [`crate::shared::Control::now`].
pub const COARSE: u32 = 2;

/// What a record is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Op {
    /// A block was allocated.
    Malloc = 1,
    /// Another one of the same size, by the same stack.
    Again = 2,
    /// A block is freed.
    Free = 3,
    /// A block was freed, and another allocated with its contents.
    Realloc = 4,
    /// Memory was mapped.
    Mmap = 5,
    /// Memory is unmapped.
    Munmap = 6,
    /// A mapping was moved, or its size changed.
    Mremap = 7,
    /// A stack, by its hash.
    Stack = 8,
    /// The process is about to fork.
    Fork = 9,
    /// The process is a child.
    Child = 10,
}

impl Op {
    /// That of a record's word without [`crate::shared::VALUES`].
    #[inline]
    pub fn of(word: u32) -> Option<Op> {
        use Op::*;
        const ALL: [Op; 10] = [Malloc, Again, Free, Realloc, Mmap, Munmap, Mremap, Stack, Fork, Child];
        let n = (word >> 1).wrapping_sub(FIRST + 1);
        ALL.get(n as usize).copied()
    }

    /// The word of its records.
    pub const fn word(self) -> u32 {
        crate::shared::VALUES | (FIRST + self as u32) << 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shared::VALUES;

    #[test]
    fn words_tell_ops() {
        for op in [Op::Malloc, Op::Free, Op::Child] {
            assert_eq!(Op::of(op.word() & !VALUES), Some(op));
        }
        for none in [0, 1, 2, FUNCTIONS << 1, FIRST << 1, (FIRST + 11) << 1, !VALUES] {
            assert_eq!(Op::of(none), None, "{none:x}");
        }
    }
}
