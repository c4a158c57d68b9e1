//! The switch of a session that can be stopped and started, and whose calls can be selected anew while it runs.
//!
//! A word in the scratch buffer of each CPU, which user space has mapped, defines which events are not recorded. Programs read it
//! once they have found that buffer. Forks are followed all the time. Without [`super::Session::switch`] none of this is emitted.

use super::{Emitter, state};
use crate::asm::Label;
use crate::capture_row::AT_ENTRY;
use crate::insn::{Alu, Cond, Reg::*};
use crate::scratch;

/// Nothing is recorded.
pub const STOPPED: u64 = 1;
/// Calls that no row describes, and 32-bit ones, are not recorded.
pub const NO_UNKNOWN: u64 = 2;

impl Emitter<'_> {
    /// r1 = those of `bits` that are set in the switch of this CPU.
    pub(crate) fn held_back(&mut self, bits: u64) {
        self.reload(R1, scratch::SWITCH);
        self.alu(Alu::And, R1, bits as i32);
    }

    /// Goes to `out` where the session is stopped.
    pub(crate) fn stopped(&mut self, out: Label) {
        let session = self.session;
        if session.switch.is_some() {
            self.note("stopped?");
            self.held_back(STOPPED);
            self.jump_if(Cond::Ne, R1, 0, out);
        }
    }

    /// Goes to `out` where the session is stopped, in a program that has not found the scratch buffer yet. True: it has now.
    pub(crate) fn stopped_before(&mut self, out: Label) -> bool {
        let session = self.session;
        if session.switch.is_some() {
            self.find(out);
            self.stopped(out);
        }
        session.switch.is_some()
    }

    /// Goes to `out` where the session is stopped, or where the call was not wanted when its memory had to be read.
    pub(crate) fn call_is_held_back(&mut self, out: Label) {
        let session = self.session;
        if session.switch.is_some() {
            self.stopped(out);
            self.load_state(R1, state::FLAGS);
            self.alu(Alu::And, R1, state::UNREAD);
            self.jump_if(Cond::Ne, R1, 0, out);
        }
    }

    /// Goes to `out` where calls without a row are not recorded.
    pub(crate) fn raw_is_held_back(&mut self, out: Label) {
        let session = self.session;
        if session.switch.is_some() {
            self.note("stopped?");
            self.held_back(STOPPED | NO_UNKNOWN);
            self.jump_if(Cond::Ne, R1, 0, out);
        }
    }

    /// At entry, with those of the row's flags in r1 that are [`crate::capture_row::WANTED`] or [`AT_ENTRY`]: marks the call whose
    /// memory had to be read and was not. It may become wanted before it ends, and its memory has changed by then.
    pub(crate) fn not_read(&mut self) {
        let session = self.session;
        if session.switch.is_some() {
            let read = self.new_label();
            self.jump_if(Cond::Ne, R1, i32::from(AT_ENTRY), read);
            self.load_state(R2, state::FLAGS);
            self.alu(Alu::Or, R2, state::UNREAD);
            self.store_state(state::FLAGS, R2);
            self.bind(read);
        }
    }
}
