//! System-wide sessions: every task gets a state when it is created or at its first call, and some tasks are not traced.
//!
//! ```text
//! state of a task   none       nothing is known of it: what its first return to user space ends began before the start
//!                   start 0    nothing is known of it, but that a program has met it
//!                   else       known
//!                   LEFT_OUT   it reads what trapline writes: no events, nor for its threads
//!                   OWN        trapline's own: no events, nor for its children
//! ```
//!
//! Marks live in task storage, not in a list of ids, so that they hold in every pid namespace and are inherited without a gap.

use super::counters::Lost;
use super::{Emitter, Source, reg, state};
use crate::asm::Label;
use crate::helper::Helper;
use crate::insn::{Alu, Cond, Reg::*, Size};

/// The ends of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum At {
    /// `sys_enter`.
    Enter,
    /// `sys_exit`.
    Exit,
}

impl Emitter<'_> {
    /// `STATE` = the current task's state; the program ends where it is not traced. In a system-wide session every task gets one; without
    /// memory for it an event is lost, and counted.
    pub(crate) fn state_or_new(&mut self, out: Label) {
        self.every_state();
        self.leave_out(out);
    }

    /// As [`Emitter::state_or_new`], also for tasks that are not traced in a system-wide session.
    pub(crate) fn every_state(&mut self) {
        let [lost, made] = [self.new_label(), self.new_label()];
        self.find_state(lost, lost, None);
        self.jump(made);
        self.lost_without_state(lost);
        self.bind(made);
    }

    /// At the start or the end of a call, with the context in r1: as [`Emitter::every_state`], but at the start nothing is lost
    /// where there is no memory or no slot: what is not known of the call then is found at its end. Goes to `found` where that is
    /// a call for sure.
    pub(crate) fn state_of_call(&mut self, at: At, source: Source, found: Label) {
        let [lost, look, made] = [self.new_label(), self.new_label(), self.new_label()];
        let slots = self.maps.slots.filter(|_| source == Source::All);
        if let Some(slots) = slots {
            self.load(Size::D, R9, R1, 0);
            // Both must know whether the call is a 32-bit one.
            if at == At::Enter || self.session.no_entry {
                self.know_task();
            }
            self.hit(slots, found, look);
        }
        match at {
            At::Enter => self.find_state(self.untraced, self.untraced, slots.map(|_| look)),
            At::Exit => {
                self.find_state(lost, lost, slots.map(|_| look));
                self.jump(made);
                self.lost_without_state(lost);
                self.bind(made);
            }
        }
    }

    /// The event of a task whose state is not to be had.
    fn lost_without_state(&mut self, lost: Label) {
        let out = self.untraced;
        self.bind(lost);
        self.find(out);
        self.count_lost(Lost::Unknown);
        self.jump(out);
    }

    /// Jumps to `out` for tasks that are not traced.
    pub(crate) fn leave_out(&mut self, out: Label) {
        let session = self.session;
        if session.system_wide {
            self.load_state(R1, state::FLAGS);
            self.alu(Alu::And, R1, state::LEFT_OUT | state::OWN);
            self.jump_if(Cond::Ne, R1, 0, out);
        }
    }

    /// `STATE` = the current task's state, also where the task is not traced; the program ends where it has none. `no_memory`: a new one
    /// cannot be made; `busy`: it has no slot, and no spare one is free. `look`: the label where its own slot is looked after.
    fn find_state(&mut self, no_memory: Label, busy: Label, look: Option<Label>) {
        self.every_home(no_memory);
        let Some(slots) = self.maps.slots else { return };
        let look = look.unwrap_or_else(|| self.new_label());
        let [none, found] = [self.new_label(), self.new_label()];
        self.has_state = true;
        self.mov(R8, reg::STATE);
        self.slot(slots, look, none);
        self.jump(found);
        self.bind(none);
        // What the home says of an earlier call must not be taken for this one.
        self.load(Size::D, R1, R8, state::FLAGS);
        self.alu(Alu::And, R1, !state::IN_CALL);
        self.store(Size::D, R8, state::FLAGS, R1);
        self.jump(busy);
        self.bind(found);
    }

    /// `STATE` = the home of the current task, also where the task is not traced; the program ends where it has none. `no_memory`: a new
    /// one cannot be made.
    pub(crate) fn every_home(&mut self, no_memory: Label) {
        const PF_KTHREAD: i32 = 0x0020_0000; // include/linux/sched.h
        let (offsets, session, out) = (self.offsets, self.session, self.untraced);
        if !session.system_wide {
            return self.current_home(out);
        }
        self.note("the current task's state, made where there is none; threads of the kernel have none");
        self.know_task();
        self.load(Size::W, R1, R0, offsets.task_flags);
        self.alu(Alu::And, R1, PF_KTHREAD);
        self.jump_if(Cond::Ne, R1, 0, out);
        self.mov(R2, R0);
        self.storage(true);
        self.jump_if(Cond::Eq, R0, 0, no_memory);
        self.mov(reg::STATE, R0);
    }

    /// In a system-wide session, with the child's state in r0 and the context in r9: sets the child's start, so that it is known,
    /// and marks it as not traced where its creator is trapline's own, or not traced and of the same process.
    pub(crate) fn born(&mut self, out: Label) {
        let offsets = self.offsets;
        let [traced, none, thread] = [self.new_label(), self.new_label(), self.new_label()];
        self.mov(R8, R0);
        self.jump_if(Cond::Eq, R8, 0, none);
        self.call(Helper::KtimeGetNs);
        self.store(Size::D, R8, state::START, R0);
        self.bind(none);
        self.load_state(R5, state::FLAGS);
        self.alu(Alu::And, R5, state::LEFT_OUT | state::OWN);
        self.jump_if(Cond::Eq, R5, 0, traced);
        self.jump_if(Cond::Eq, R8, 0, out);
        self.load(Size::D, R1, R9, 0);
        self.load(Size::W, R2, R1, offsets.task_tgid);
        self.load(Size::D, R1, R9, 8);
        self.load(Size::W, R3, R1, offsets.task_tgid);
        self.jump_if(Cond::Eq, R2, R3, thread);
        self.alu(Alu::And, R5, state::OWN);
        self.bind(thread);
        self.store(Size::D, R8, state::FLAGS, R5);
        self.jump(out);
        self.bind(traced);
    }
}
