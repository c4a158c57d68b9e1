//! Sessions that can be stopped and started, and whose calls can be chosen anew while they run.
//!
//! A word in the scratch buffer of each CPU, which user space has mapped, says what is held back. Programs look at it
//! when they have that buffer anyway. Who is whose child is told all the while. Without [`Target::switch`] none of this
//! is emitted.

use super::plan::AT_ENTRY;
use super::state;
use super::target::{Maps, Target};
use crate::asm::{Assembler, Label};
use crate::insn::{Alu, Cond, Reg::*, Size};
use crate::scratch;

/// Nothing is recorded.
pub const STOPPED: u64 = 1;
/// Calls that no row describes, and 32-bit ones, are not.
pub const NO_UNKNOWN: u64 = 2;

/// r1 = those of `bits` that the switch of this CPU says; the scratch buffer is in r7.
fn held_back(a: &mut Assembler, bits: u64) {
    scratch::words(a, R1);
    a.load(Size::D, R1, R1, scratch::SWITCH);
    a.alu(Alu::And, R1, bits as i32);
}

/// Goes `out` where the session is stopped. The scratch buffer is in r7.
pub(crate) fn stopped(a: &mut Assembler, target: &Target, out: Label) {
    if target.switch.is_some() {
        a.note("stopped?");
        held_back(a, STOPPED);
        a.jump_if(Cond::Ne, R1, 0, out);
    }
}

/// Goes `out` where the session is stopped, in a program that has not found the scratch buffer yet; whether r7 is it now.
pub(crate) fn stopped_before(a: &mut Assembler, maps: &Maps, target: &Target, out: Label) -> bool {
    if target.switch.is_some() {
        scratch::find(a, maps, out);
        stopped(a, target, out);
    }
    target.switch.is_some()
}

/// Goes `out` where the session is stopped, or where the call was not wanted when its memory had to be read.
pub(super) fn call_is_held_back(a: &mut Assembler, target: &Target, out: Label) {
    if target.switch.is_some() {
        stopped(a, target, out);
        a.load(Size::D, R1, R6, state::FLAGS);
        a.alu(Alu::And, R1, state::UNREAD);
        a.jump_if(Cond::Ne, R1, 0, out);
    }
}

/// Goes `out` where calls without a row are held back.
pub(super) fn raw_is_held_back(a: &mut Assembler, target: &Target, out: Label) {
    if target.switch.is_some() {
        a.note("stopped?");
        held_back(a, STOPPED | NO_UNKNOWN);
        a.jump_if(Cond::Ne, R1, 0, out);
    }
}

/// At entry, with those of the row's flags in r1 that are [`super::plan::WANTED`] or [`AT_ENTRY`]: remembers that the
/// call's memory was not read although it had to be. It may become wanted before it ends, and what is there then is
/// something else.
pub(super) fn not_read(a: &mut Assembler, target: &Target) {
    if target.switch.is_some() {
        let read = a.new_label();
        a.jump_if(Cond::Ne, R1, i32::from(AT_ENTRY), read);
        a.load(Size::D, R2, R6, state::FLAGS);
        a.alu(Alu::Or, R2, state::UNREAD);
        a.store(Size::D, R6, state::FLAGS, R2);
        a.bind(read);
    }
}
