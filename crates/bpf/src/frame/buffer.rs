//! The scratch buffer of the processor: found, claimed, released; and its words.

use super::counters::Lost;
use super::{Emitter, reg, slot};
use crate::asm::Label;
use crate::helper::Helper;
use crate::insn::{Alu, Atomic, Cond, Reg, Reg::*, Size};
use crate::own_ring::HEADER;
use crate::scratch::{BUSY, NEXT_RECORD};

impl Emitter<'_> {
    /// `r` = the address of the words of the buffer.
    pub(crate) fn words(&mut self, r: Reg) {
        self.load_slot(r, slot::WORDS);
    }

    /// The offset of a word from the first word of the buffer.
    pub(crate) fn word(&self, word: i16) -> i16 {
        self.maps.shape.word(word)
    }

    /// Finds the buffer of this CPU, unclaimed: only its words may be used.
    pub(crate) fn find(&mut self, out: Label) {
        let maps = self.maps;
        self.note("the scratch buffer of this CPU");
        self.call(Helper::GetSmpProcessorId);
        self.store(Size::W, R10, slot::KEY, R0);
        self.map_fd(R1, maps.scratch);
        self.slot_address(R2, slot::KEY);
        self.call(Helper::MapLookup);
        self.jump_if(Cond::Eq, R0, 0, out);
        self.store_slot(slot::WORDS, R0);
    }

    /// Claims the buffer that was found, which this run has not claimed yet; `taken` where other runs have it. Uses r1, r2 and r3.
    pub(crate) fn claim(&mut self, taken: Label) {
        let shape = self.maps.shape;
        self.note("claim it: a run that this one has interrupted may have it");
        self.words(R2);
        self.try_to_claim();
        if shape.ring().is_some() {
            let first = self.new_label();
            // Which place it is must not split the verifier's ways: it is computed before it is asked for.
            self.mov(R3, 0);
            self.alu(Alu::Sub, R3, R1);
            self.alu(Alu::And, R3, shape.stride() as i32);
            self.jump_if(Cond::Eq, R1, 0, first);
            self.alu(Alu::Add, R2, R3);
            self.try_to_claim();
            self.jump_if(Cond::Ne, R1, 0, taken);
            self.bind(first);
            self.words(R2);
            self.alu(Alu::Add, R2, R3);
            self.store_slot(slot::WORDS, R2);
        } else {
            self.jump_if(Cond::Ne, R1, 0, taken);
        }
        self.store_slot(slot::CLAIMED, R2);
    }

    /// r1 = 0 where the buffer whose words are at r2 is claimed now.
    fn try_to_claim(&mut self) {
        let busy = self.word(BUSY);
        self.mov(R1, 1);
        self.atomic(Atomic::Xchg, Size::D, R2, busy, R1);
    }

    /// `BUFFER` = where the next event is built, in the buffer that is claimed. Uses r1.
    pub(crate) fn place_event(&mut self) {
        let shape = self.maps.shape;
        self.words(reg::BUFFER);
        if shape.ring().is_none() {
            return self.alu(Alu::Add, reg::BUFFER, shape.words() as i32);
        }
        let (next, out) = (self.word(NEXT_RECORD), self.ends_at);
        self.load(Size::D, R1, reg::BUFFER, next);
        self.jump_if(Cond::Gt, R1, shape.last_record() as i32, out);
        self.alu(Alu::Add, reg::BUFFER, R1);
        self.alu(Alu::Add, reg::BUFFER, HEADER as i32);
    }

    /// At the start of a program: it has claimed nothing.
    pub(crate) fn unclaimed(&mut self) {
        self.store_slot(slot::CLAIMED, 0);
    }

    /// Releases the buffer at the end of a program, where it was claimed. Uses r1.
    pub(crate) fn release(&mut self) {
        let (free, busy) = (self.new_label(), self.word(BUSY));
        self.load_slot(R1, slot::CLAIMED);
        self.jump_if(Cond::Eq, R1, 0, free);
        self.store(Size::D, R1, busy, 0);
        self.bind(free);
    }

    /// `BUFFER` = where the next event is built, in the scratch buffer of this CPU, claimed. Where other runs have it, the event is
    /// counted as `lost`, and the program ends.
    pub(crate) fn claimed(&mut self, lost: Lost, out: Label) {
        self.claimed_or(out, |e| {
            e.count_lost(lost);
            e.jump(out);
        });
    }

    /// `BUFFER` = where the next event is built, in the scratch buffer of this CPU, claimed. Where other runs have it, it is only found,
    /// and the code of `taken` follows, which ends with a jump.
    pub(crate) fn claimed_or(&mut self, out: Label, taken: impl FnOnce(&mut Emitter<'_>)) {
        let [ready, busy] = std::array::from_fn(|_| self.new_label());
        self.load_slot(R1, slot::CLAIMED);
        self.jump_if(Cond::Ne, R1, 0, ready);
        self.find(out);
        self.claim(busy);
        self.jump(ready);
        self.bind(busy);
        taken(self);
        self.bind(ready);
        self.place_event();
    }
}
