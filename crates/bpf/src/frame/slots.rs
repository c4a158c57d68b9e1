//! Slots: where the words of a task's call are found without a helper.
//!
//! ```text
//! address of the task's registers ──hash──► slot: key, words of the state │ the key is this address: the task's own
//!                                                                         │ 0: free, claimed by the first task that comes
//!                                                                         └ another: the words are copied from task storage to a
//!                                                                           spare slot of the CPU, and back when the program ends
//! ```
//!
//! The registers of a system call lie at the top of the task's kernel stack, so no other task that lives has the same address. A task
//! gives its slot back when it ends. Whoever is traced has task storage, its *home*, which keeps what a program seldom needs:
//! the tails of entry, the signal that is held. While a task has a slot, that has its words, and those of the home are old.
//!
//! Only the task itself writes its slot, but for [`state::LOOK`]: others set a bit there, and its next program looks at the home, before
//! which it clears the word. Home first, then the slot: one of the two always sees what the other has done.

use super::session::Slots;
use super::state::{self, fate, look};
use super::{Emitter, reg, slot};
use crate::asm::Label;
use crate::helper::Helper;
use crate::insn::{Alu, Atomic, Cond, Reg, Reg::*, Size};

/// 2³² divided by the golden ratio, made odd: it spreads neighbouring stacks.
const SPREAD: u32 = 0x9e37_79b1;
/// The words of a call, in slots and homes alike.
const WORDS: [i16; 14] = [
    state::FLAGS,
    state::START,
    state::NR,
    state::ARGS,
    state::ARGS + 8,
    state::ARGS + 16,
    state::ARGS + 24,
    state::ARGS + 32,
    state::ARGS + 40,
    state::LEN,
    state::CAPS,
    state::CPU,
    state::STACKS,
    state::STACKS + 8,
];

impl Emitter<'_> {
    /// r0 = the slot of the stack whose registers are at `key`, a pointer or a number in r6 to r9; `none` where there is no such slot.
    pub(crate) fn slot_of(&mut self, slots: Slots, key: Reg, none: Label) {
        self.mov32(R1, key);
        self.alu32(Alu::Mul, R1, SPREAD as i32);
        self.alu32(Alu::Rsh, R1, 32 - slots.bits as i32);
        self.numbered_slot(slots, none);
    }

    /// r0 = the slot whose number is in r1.
    fn numbered_slot(&mut self, slots: Slots, none: Label) {
        self.store(Size::W, R10, slot::KEY, R1);
        self.map_fd(R1, slots.map);
        self.slot_address(R2, slot::KEY);
        self.call(Helper::MapLookup);
        self.jump_if(Cond::Eq, R0, 0, none);
    }

    /// At a call, with the address of its registers in r9: goes to `found` with `STATE` where the task has a slot, and on where that is
    /// to be found out. `look`: where its own slot is looked after.
    pub(super) fn hit(&mut self, slots: Slots, found: Label, look: Label) {
        let [miss, own, untraced] = [self.new_label(), self.new_label(), self.untraced];
        self.note("the slot of this stack");
        self.slot_of(slots, R9, miss);
        self.mov(reg::STATE, R0);
        self.load_state(R1, state::KEY);
        self.jump_if(Cond::Ne, R1, R9, miss);
        self.load_state(R1, state::LOOK);
        self.jump_if(Cond::Eq, R1, 0, own);
        self.note("another has changed the home");
        self.know_task();
        self.mov(R2, R0);
        self.storage(false);
        self.mov(R8, R0);
        self.jump_if(Cond::Ne, R8, 0, look);
        // It is traced no longer.
        self.give_back();
        self.jump(untraced);
        self.bind(own);
        self.store_slot(slot::STATE, reg::STATE);
        self.jump(found);
        self.bind(miss);
    }

    /// `STATE` = the slot of the current task, whose home is in r8 and which is known: its own, a free one, or a spare. `look`: its own is in
    /// `STATE`, and is looked after. `busy` where there is no spare one. Uses r9.
    pub(super) fn slot(&mut self, slots: Slots, look: Label, busy: Label) {
        let [taken, fill, told] = std::array::from_fn(|_| self.new_label());
        self.task(R1);
        self.call(Helper::TaskPtRegs);
        self.mov(R9, R0);
        self.slot_of(slots, R9, busy);
        self.mov(reg::STATE, R0);
        self.load_state(R1, state::KEY);
        self.jump_if(Cond::Eq, R1, R9, look);
        self.jump_if(Cond::Ne, R1, 0, taken);
        self.mov(R0, 0);
        self.atomic(Atomic::CmpXchg, Size::D, reg::STATE, state::KEY, R9);
        self.jump_if(Cond::Eq, R0, 0, fill);
        self.bind(taken);
        self.note("another task has the slot: a spare one of this CPU");
        self.spare(slots, fill, busy);
        self.bind(look);
        self.mov(R1, 0);
        self.atomic(Atomic::Xchg, Size::D, reg::STATE, state::LOOK, R1);
        self.alu(Alu::And, R1, look::ANEW);
        self.jump_if(Cond::Eq, R1, 0, told);
        self.bind(fill);
        for word in WORDS {
            self.load(Size::D, R1, R8, word);
            self.store_state(word, R1);
        }
        self.name_slot();
        self.bind(told);
        self.load(Size::D, R1, R8, state::HELD);
        self.store_state(state::HELD, R1);
        self.store_slot(slot::STATE, reg::STATE);
    }

    /// Goes to `fill` with a spare slot of this CPU in `STATE`: the first, or the second where this program has interrupted one that has
    /// the first.
    fn spare(&mut self, slots: Slots, fill: Label, busy: Label) {
        for nth in 0..Slots::SPARE as i32 {
            self.call(Helper::GetSmpProcessorId);
            self.mov32(R1, R0);
            self.alu(Alu::Mul, R1, Slots::SPARE as i32);
            self.alu(Alu::Add, R1, slots.count() as i32 + nth);
            self.numbered_slot(slots, busy);
            self.mov(reg::STATE, R0);
            self.mov(R1, fate::COPIED);
            self.atomic(Atomic::Xchg, Size::D, reg::STATE, state::FATE, R1);
            self.jump_if(Cond::Eq, R1, fate::KEPT, fill);
        }
        self.jump(busy);
    }

    /// Stores the ids of the current task, which is known, in its slot: they are those of its events.
    pub(crate) fn name_slot(&mut self) {
        if self.maps.slots.is_none() {
            return;
        }
        self.task(R1);
        self.thread_id(R2, R1);
        self.store(Size::W, reg::STATE, state::TID, R2);
        self.process_id(R2, R1);
        self.store(Size::W, reg::STATE, state::PID, R2);
    }

    /// Gives the slot in `STATE` back at once, which belongs to the current task: nothing may use it any more.
    fn give_back(&mut self) {
        self.store_state(state::FLAGS, 0);
        self.store_state(state::KEY, 0);
    }

    /// Has the slot given back at the end of the program.
    pub(crate) fn gives_slot_back(&mut self) {
        if self.maps.slots.is_none() {
            return;
        }
        let spare = self.new_label();
        self.load_state(R1, state::FATE);
        self.jump_if(Cond::Ne, R1, fate::KEPT, spare);
        self.store_state(state::FATE, fate::GIVEN_BACK);
        self.bind(spare);
    }

    /// r0 = the home of the current task; `none` where it has none any more. Uses r1 to r5.
    pub(crate) fn home(&mut self, none: Label) {
        if self.maps.slots.is_none() {
            return self.mov(R0, reg::STATE);
        }
        self.task(R2);
        self.storage(false);
        self.jump_if(Cond::Eq, R0, 0, none);
    }

    /// `STATE` = the slot that the program has found, after the register was used for something else.
    pub(crate) fn state_again(&mut self) {
        if self.has_state {
            self.load_slot(reg::STATE, slot::STATE);
        }
    }

    /// The end of a program that has found a state: a spare slot is copied to the home and released; one that is given back is freed.
    pub(super) fn leave_slot(&mut self) {
        let [kept, copied, free] = std::array::from_fn(|_| self.new_label());
        self.state_again();
        self.load_state(R1, state::FATE);
        self.jump_if(Cond::Eq, R1, fate::KEPT, kept);
        self.jump_if(Cond::Eq, R1, fate::COPIED, copied);
        self.store_state(state::FATE, fate::KEPT);
        self.give_back();
        self.jump(kept);
        self.bind(copied);
        self.note("a spare slot: the words go home");
        self.home(free);
        for word in WORDS {
            self.load_state(R1, word);
            self.store(Size::D, R0, word, R1);
        }
        self.bind(free);
        self.store_state(state::FATE, fate::KEPT);
        self.bind(kept);
    }
}
