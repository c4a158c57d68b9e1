//! Words of the scratch buffer to which programs spill numbers: reloaded, they are unknown to the verifier.

use super::Emitter;
use crate::insn::{Reg, Reg::*, Size};
use crate::scratch::*;

impl Emitter<'_> {
    /// `r` = a spilled word: to the verifier a new unknown each time.
    pub(crate) fn reload(&mut self, r: Reg, word: i16) {
        let at = self.word(word);
        self.words(r);
        self.load(Size::D, r, r, at);
    }

    /// Makes `r` a new unknown to the verifier.
    pub(crate) fn unknown(&mut self, r: Reg) {
        self.spill(SPARE, r);
        self.reload(r, SPARE);
    }

    /// Spills `r` to a word. Uses r0.
    pub(crate) fn spill(&mut self, word: i16, r: Reg) {
        let at = self.word(word);
        self.words(R0);
        self.store(Size::D, R0, at, r);
    }

    /// `r` = the raw result: to the verifier a new unknown each time, or what it learns of it in one op would multiply the ways
    /// through the next.
    pub(crate) fn result(&mut self, r: Reg) {
        self.reload(r, RESULT);
    }

    /// Sets the raw result, which is in r1. Uses r2.
    pub(crate) fn set_result(&mut self) {
        let at = self.word(RESULT);
        self.words(R2);
        self.store(Size::D, R2, at, R1);
    }

    /// Sets the capture bits to `r`. Uses r0.
    pub(crate) fn set_caps(&mut self, r: Reg) {
        self.spill(CAPS, r);
    }

    /// `r` = the capture bits.
    pub(crate) fn get_caps(&mut self, r: Reg) {
        self.reload(r, CAPS);
    }

    /// Sets whether the call ends without a result: the ops of exit then leave their empty tails. Uses r0 and r1.
    pub(crate) fn set_ended(&mut self, ended: bool) {
        self.mov(R1, i32::from(ended));
        self.spill(CUT_OFF, R1);
    }

    /// `r` = not 0 where the call ends without a result ([`Emitter::set_ended`]).
    pub(crate) fn get_ended(&mut self, r: Reg) {
        self.reload(r, CUT_OFF);
    }
}
