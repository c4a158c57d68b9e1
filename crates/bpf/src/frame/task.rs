//! The state of a task, and what is read of the kernel's structs.

use super::{Emitter, reg, slot};
use crate::asm::Label;
use crate::helper::Helper;
use crate::insn::{Alu, Cond, Reg, Reg::*, Size};

impl Emitter<'_> {
    /// Asks for the current task: r0 and [`slot::TASK`], where [`Emitter::task`] finds it in all of the program that follows, so
    /// every way to there must have passed here. A helper costs as much as all that an event's fixed part takes.
    pub(crate) fn know_task(&mut self) {
        self.call(Helper::GetCurrentTaskBtf);
        self.store_slot(slot::TASK, R0);
        self.knows_task = true;
    }

    /// `r` = the current task. Where it is not known, the helper is asked, which loses r0 to r5.
    pub(crate) fn task(&mut self, r: Reg) {
        if self.knows_task {
            return self.load_slot(r, slot::TASK);
        }
        self.call(Helper::GetCurrentTaskBtf);
        if r != R0 {
            self.mov(r, R0);
        }
    }

    /// r0 = the state of the task in r2; where it has none, NULL, or with `new` one of zeros.
    pub(crate) fn storage(&mut self, new: bool) {
        let maps = self.maps;
        self.map_fd(R1, maps.tasks);
        self.mov(R3, 0);
        // BPF_LOCAL_STORAGE_GET_F_CREATE
        self.mov(R4, i32::from(new));
        self.call(Helper::TaskStorageGet);
    }

    /// From here on the current task may be unknown again: a way to here has not passed [`Emitter::know_task`].
    pub(crate) fn forget_task(&mut self) {
        self.knows_task = false;
    }

    /// `STATE` = the home of the current task, which has all that is not of a call; `out` where it has none.
    pub(crate) fn current_home(&mut self, out: Label) {
        self.note("the current task's state; none: not traced");
        self.know_task();
        self.mov(R2, R0);
        self.storage(false);
        self.jump_if(Cond::Eq, R0, 0, out);
        self.mov(reg::STATE, R0);
    }

    /// `ROW` = the row of the call whose number is in r1; `out` where there is none.
    pub(crate) fn row(&mut self, out: Label) {
        let maps = self.maps;
        self.jump_if(Cond::Ge, R1, maps.row_count, out);
        self.store(Size::W, R10, slot::KEY, R1);
        self.map_fd(R1, maps.rows);
        self.slot_address(R2, slot::KEY);
        self.call(Helper::MapLookup);
        self.jump_if(Cond::Eq, R0, 0, out);
        self.mov(reg::ROW, R0);
    }

    /// `to` = the pointer at `base + off` of the kernel's memory, 0 where it cannot be read. Not a load through a typed pointer:
    /// for each of those the verifier searches all of the kernel's types by name, three times, which takes a millisecond.
    pub(crate) fn follow(&mut self, to: Reg, base: Reg, off: i16) {
        self.peek(slot::HEAD, 8, base, i32::from(off));
        self.load_slot(to, slot::HEAD);
    }

    /// `*(slot) = *(base + off)` of the kernel's memory, zeros where that cannot be read.
    pub(crate) fn peek(&mut self, slot: i16, size: i32, base: Reg, off: i32) {
        self.mov(R3, base);
        self.alu(Alu::Add, R3, off);
        self.slot_address(R1, slot);
        self.mov(R2, size);
        self.call(Helper::ProbeReadKernel);
    }
}
