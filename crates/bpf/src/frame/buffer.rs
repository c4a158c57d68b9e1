//! The scratch buffer of the processor: found, claimed, released; and its words.

use super::counters::Lost;
use super::{Emitter, reg, slot};
use crate::asm::Label;
use crate::helper::Helper;
use crate::insn::{Alu, Atomic, Cond, Reg, Reg::*, Size};
use crate::scratch::{BASE, BUSY};

impl Emitter<'_> {
    /// `r` = the address of the words of the buffer.
    pub(crate) fn words(&mut self, r: Reg) {
        self.mov(r, reg::BUFFER);
        self.alu(Alu::Add, r, BASE);
    }

    /// `BUFFER` = the scratch buffer of this CPU, unclaimed: only its words may be used.
    pub(crate) fn find(&mut self, out: Label) {
        let maps = self.maps;
        self.note("the scratch buffer of this CPU");
        self.call(Helper::GetSmpProcessorId);
        self.store(Size::W, R10, slot::KEY, R0);
        self.map_fd(R1, maps.scratch);
        self.slot_address(R2, slot::KEY);
        self.call(Helper::MapLookup);
        self.jump_if(Cond::Eq, R0, 0, out);
        self.mov(reg::BUFFER, R0);
        self.alu(Alu::Add, reg::BUFFER, maps.shape.words() as i32);
    }

    /// Claims the buffer, which this run has not claimed yet; `taken` where another run has it. Uses r1 and r2.
    pub(crate) fn claim(&mut self, taken: Label) {
        self.note("claim it: a run that this one has interrupted may have it");
        self.words(R2);
        self.mov(R1, 1);
        self.atomic(Atomic::Xchg, Size::D, R2, BUSY, R1);
        self.jump_if(Cond::Ne, R1, 0, taken);
        self.store_slot(slot::CLAIMED, reg::BUFFER);
    }

    /// At the start of a program: it has claimed nothing.
    pub(crate) fn unclaimed(&mut self) {
        self.store_slot(slot::CLAIMED, 0);
    }

    /// Releases the buffer at the end of a program, where it was claimed. Uses r1.
    pub(crate) fn release(&mut self) {
        let free = self.new_label();
        self.load_slot(R1, slot::CLAIMED);
        self.jump_if(Cond::Eq, R1, 0, free);
        self.alu(Alu::Add, R1, BASE);
        self.store(Size::D, R1, BUSY, 0);
        self.bind(free);
    }

    /// `BUFFER` = the scratch buffer of this CPU, claimed. Where another run has it, the event is counted as `lost`, and the
    /// program ends.
    pub(crate) fn claimed(&mut self, lost: Lost, out: Label) {
        self.claimed_or(out, |e| {
            e.count_lost(lost);
            e.jump(out);
        });
    }

    /// `BUFFER` = the scratch buffer of this CPU, claimed. Where another run has it, it is only found, and the code of `taken`
    /// follows, which ends with a jump.
    pub(crate) fn claimed_or(&mut self, out: Label, taken: impl FnOnce(&mut Emitter<'_>)) {
        let [fresh, ready, busy] = std::array::from_fn(|_| self.new_label());
        self.load_slot(reg::BUFFER, slot::CLAIMED);
        self.jump_if(Cond::Ne, reg::BUFFER, 0, ready);
        self.bind(fresh);
        self.find(out);
        self.claim(busy);
        self.jump(ready);
        self.bind(busy);
        taken(self);
        self.bind(ready);
    }
}
