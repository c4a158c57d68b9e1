//! The area that a program unwinds in: what the next frame needs, counters, and the record in the end.
//!
//! ```text
//! 0  state of the frame under way │ bytes read │ counters: endings, repaired │ part of the stack │ record: head, frames (see unwind::stack)
//! ```
//!
//! It is part of a map's value, so that numbers in it are unknown to the verifier: the function that is called back for each frame looks
//! the same to it each time, and is verified once. User space zeroes it in the beginning; programs leave the counters standing.

use crate::asm::Assembler;
use crate::insn::{Alu, Reg, Size};
use unwind::stack::{ENDINGS, RECORD as RECORD_SIZE};

/// rip, or a return address.
pub(super) const PC: i16 = 0;
/// rsp.
pub(super) const SP: i16 = 8;
/// rbp.
pub(super) const BP: i16 = 16;
/// 1 where PC is a return address, which is looked up within the call before it; else 0.
pub(super) const BACK: i16 = 24;
/// Bits of the frame ([`unwind::Frame`]).
pub(super) const BITS: i16 = 32;
/// Number of the mapping that the last frame was in.
pub(super) const MAPPING: i16 = 40;
/// Frames in the record.
pub(crate) const COUNT: i16 = 48;
/// How many of them are guessed.
pub(crate) const GUESSED: i16 = 56;
/// [`unwind::Ended`].
pub(crate) const ENDED: i16 = 64;
/// Address of the next return instance of the kernel, [`UNSEEN`] before the first was looked for, and 0 behind the last.
pub(super) const INSTANCE: i16 = 72;
/// Address of the part of the stack that is in [`WINDOW`]; [`NOWHERE`]: none is.
pub(super) const WINDOW_AT: i16 = 80;
/// 1 where the stack ends so soon that it is read word by word.
pub(super) const BY_WORD: i16 = 88;
/// Address of the `struct ucontext` with the registers that a signal has interrupted last; 0: none has, the kernel has the registers.
pub(super) const CONTEXT: i16 = 96;
/// Value of [`WINDOW_AT`], [`ENTRIES_AT`] and [`BX_AT`], sign-extended: an address of the kernel.
pub(super) const NOWHERE: i32 = i32::MIN;
/// Address of the word with rbx; 0: it is in the register, with those of [`CONTEXT`]; [`NOWHERE`]: that is not known.
pub(super) const BX_AT: i16 = 104;
/// The entry of the shadow stack above the next one that the walk looks at; [`UNSEEN`] before the first.
pub(super) const SHADOW: i16 = 112;
/// The lowest entry of the shadow stack.
pub(super) const SHADOW_BASE: i16 = 120;
/// Its end.
pub(super) const SHADOW_TOP: i16 = 128;
/// The entry above its end that is looked at next; 0: those below are.
pub(super) const ABOVE: i16 = 136;
/// The place of the one before.
pub(super) const ABOVE_LAST: i16 = 144;
/// The place that was looked for above its end last.
pub(super) const ABOVE_FOR: i16 = 152;
/// Number of the mapping of stubs that were met last.
pub(super) const STUBS: i16 = 160;
/// Address of the part of the shadow stack that is in [`ENTRIES`]; [`NOWHERE`]: none is.
pub(super) const ENTRIES_AT: i16 = 168;
/// The first step of moved code that may be above the address, and the one behind the last; both 0 before the search.
pub(super) const LOW: i16 = 176;
pub(super) const HIGH: i16 = 184;
/// The last step found that is not above it.
pub(super) const STEP: i16 = 192;
/// Bytes that were read.
pub(super) const BYTES: i16 = 200;
/// How many of them there may be.
pub(super) const BYTES_SIZE: i32 = 128;
/// Value of [`INSTANCE`] and [`SHADOW`].
pub(super) const UNSEEN: i32 = 1;

/// Counters, u64 each: stacks by how they ended, in the order of [`unwind::Ended::ALL`].
pub const ENDINGS_AT: i16 = BYTES + BYTES_SIZE as i16;
/// Counter, u64: addresses that uprobes had replaced and that were found.
pub const REPAIRED: i16 = ENDINGS_AT + 8 * ENDINGS as i16;
/// Hash of the frames so far.
pub(crate) const HASH: i16 = REPAIRED + 8;
/// Part of the stack.
pub(super) const WINDOW: i16 = HASH + 8;
/// How many bytes: several frames. A call to read 1 KiB takes little longer than one to read a word, 20 to 30 ns.
pub(super) const WINDOW_SIZE: i32 = 1024;
/// Part of the shadow stack: eight entries.
pub(super) const ENTRIES: i16 = WINDOW + WINDOW_SIZE as i16;
/// How many bytes.
pub(super) const ENTRIES_SIZE: i32 = 256;
/// Bytes before the record, for the fixed part of an event that the frames are the tail of.
const HEADROOM: i16 = 64;
/// The record ([`unwind::Record`]).
pub const RECORD: i16 = ENTRIES + ENTRIES_SIZE as i16 + HEADROOM;
/// Bytes of the area.
pub const SIZE: usize = RECORD as usize + RECORD_SIZE;

/// What a hash begins with: an empty stack has one too.
const SEED: u64 = 0x9e37_79b9_7f4a_7c15;
/// An odd number whose bits are spread evenly (of splitmix64).
const FACTOR: u64 = 0xbf58_476d_1ce4_e5b9;

/// The hash of no frames, into the area at `area`. Loses r0.
pub(crate) fn begin_hash<E>(a: &mut Assembler<E>, area: Reg) {
    a.constant(Reg::R0, SEED);
    a.store(Size::D, area, HASH, Reg::R0);
}

/// `hash` = that of one more frame. Loses the frame's register and two more.
pub(crate) fn mix<E>(a: &mut Assembler<E>, hash: Reg, frame: Reg, one: Reg, two: Reg) {
    a.alu(Alu::Xor, hash, frame);
    a.mov(one, hash);
    a.alu(Alu::Lsh, hash, 23);
    a.alu(Alu::Rsh, one, 41);
    a.alu(Alu::Or, hash, one);
    a.constant(two, FACTOR);
    a.alu(Alu::Mul, hash, two);
}
