//! The whole machine: every task gets a state, at its birth or at its first call, and some are left out.
//!
//! ```text
//! state of a task   none       nothing is known of it: what its first return to user space ends began before the start
//!                   start 0    the same, but a program has met it
//!                   else       known: a return without an entry is a child's first, and no call
//!                   LEFT_OUT   it reads what trapline writes: no events, nor for its threads
//!                   OWN        trapline's own: no events, nor for its children
//! ```
//!
//! Marks live in task storage, not in a list of ids, so that they hold in every pid namespace and are inherited without a gap.

use super::emit::{ARG_REGISTERS, AX, claimed, current_state, slot, storage};
use super::state;
use super::target::{Maps, Source, Target};
use crate::asm::{Assembler, Label};
use crate::helper::Helper;
use crate::insn::{Alu, Cond, Reg::*, Size};
use crate::scratch::{self, Lost, front};
use events::layout::NO_CPU;

/// r6 = the current task's storage, or out. On a whole machine every task gets one, and those left out end here; without memory
/// for it an event is lost, and counted.
pub fn state_or_new(a: &mut Assembler, maps: &Maps, target: &Target, out: Label) {
    let [lost, made] = [a.new_label(), a.new_label()];
    every_state(a, maps, target, out, lost);
    a.jump(made);
    a.bind(lost);
    scratch::find(a, maps, out);
    scratch::count_lost(a, Lost::Unknown);
    a.jump(out);
    a.bind(made);
    leave_out(a, target, out);
}

/// Ends here for those who are left out.
pub fn leave_out(a: &mut Assembler, target: &Target, out: Label) {
    if target.whole {
        a.load(Size::D, R1, R6, state::FLAGS);
        a.alu(Alu::And, R1, state::LEFT_OUT | state::OWN);
        a.jump_if(Cond::Ne, R1, 0, out);
    }
}

/// r6 = the current task's storage, also of those who are left out; `out` for those that are not traced, `lost` where a new one
/// cannot be made.
pub fn every_state(a: &mut Assembler, maps: &Maps, target: &Target, out: Label, lost: Label) {
    const PF_KTHREAD: i32 = 0x0020_0000; // include/linux/sched.h
    if !target.whole {
        return current_state(a, maps, out);
    }
    a.note("the current task's state, made where there is none; threads of the kernel have none");
    a.call(Helper::GetCurrentTaskBtf);
    a.load(Size::W, R1, R0, target.task_flags);
    a.alu(Alu::And, R1, PF_KTHREAD);
    a.jump_if(Cond::Ne, R1, 0, out);
    a.mov(R2, R0);
    storage(a, maps, true);
    a.jump_if(Cond::Eq, R0, 0, lost);
    a.mov(R6, R0);
}

/// On a whole machine: a thread of which nothing is known (no flags, no start) leaves a call that began before the programs were
/// attached. Number and arguments are those that the registers still have; start, processor and what was to be read at entry are
/// unknown. From [`Source::All`] the address of the registers is in CTX.
pub fn began_before(a: &mut Assembler, maps: &Maps, target: &Target, source: Source, out: Label) {
    const ORIG_AX: i16 = 120;
    const REGISTERS: i32 = 168;
    const REGISTERS_AT: i16 = front::REGISTERS;
    const TS_COMPAT: i32 = 2;
    const RT_SIGRETURN: i32 = 15;
    const FORKS: [i32; 4] = [56, 57, 58, 435];
    let [known, numbered, goes_on, framed] = std::array::from_fn(|_| a.new_label());
    a.load(Size::D, R1, R6, state::FLAGS);
    a.jump_if(Cond::Ne, R1, 0, known);
    a.load(Size::D, R1, R6, state::START);
    a.jump_if(Cond::Ne, R1, 0, known);
    a.note("a call from before the start");
    a.call(Helper::KtimeGetNs);
    a.store(Size::D, R6, state::START, R0);
    claimed(a, maps, Lost::Unknown, out);
    if source == Source::All {
        a.load(Size::D, R3, R10, slot::CTX);
    } else {
        a.call(Helper::GetCurrentTaskBtf);
        a.mov(R1, R0);
        a.call(Helper::TaskPtRegs);
        a.mov(R3, R0);
    }
    a.mov(R1, R7);
    a.alu(Alu::Add, R1, i32::from(REGISTERS_AT));
    a.mov(R2, REGISTERS);
    a.call(Helper::ProbeReadKernel);
    if source == Source::All {
        a.load(Size::D, R1, R7, REGISTERS_AT + ORIG_AX);
    } else {
        a.load(Size::D, R2, R10, slot::CTX);
        a.load(Size::W, R1, R2, 8);
    }
    a.jump_if(Cond::Sge, R1, 0, numbered);
    // Its registers are those of the interrupted program, with -1 in place of a number.
    a.mov(R1, RT_SIGRETURN);
    a.bind(numbered);
    a.store(Size::D, R6, state::NR, R1);
    for (i, reg) in ARG_REGISTERS.iter().enumerate() {
        a.load(Size::D, R4, R7, REGISTERS_AT + *reg);
        a.store(Size::D, R6, state::ARGS + 8 * i as i16, R4);
    }
    a.jump_if(Cond::Ne, R1, RT_SIGRETURN, framed);
    a.store(Size::D, R6, state::ARGS, 0);
    a.bind(framed);
    a.note("a child's first return is no call");
    a.load(Size::D, R2, R7, REGISTERS_AT + AX);
    a.jump_if(Cond::Ne, R2, 0, goes_on);
    for nr in FORKS {
        a.jump_if(Cond::Eq, R1, nr, out);
    }
    a.bind(goes_on);
    a.store(Size::D, R6, state::LEN, 0);
    a.store(Size::D, R6, state::CAPS, 0);
    a.store(Size::D, R6, state::CPU, i32::from(NO_CPU));
    a.call(Helper::GetCurrentTaskBtf);
    a.load(Size::W, R2, R0, target.thread_status);
    a.mov(R1, state::IN_CALL | state::ATTACHED);
    a.alu(Alu::And, R2, TS_COMPAT);
    let wide = a.new_label();
    a.jump_if(Cond::Eq, R2, 0, wide);
    a.alu(Alu::Or, R1, state::COMPAT);
    a.bind(wide);
    a.store(Size::D, R6, state::FLAGS, R1);
    a.bind(known);
}

/// On a whole machine, with the child's state in r0 and the context in r9: the child is known from its birth (its start is
/// set), and left out where its creator is trapline's own, or left out and of the same process.
pub fn born(a: &mut Assembler, target: &Target, out: Label) {
    let [traced, none, thread] = [a.new_label(), a.new_label(), a.new_label()];
    a.mov(R8, R0);
    a.jump_if(Cond::Eq, R8, 0, none);
    a.call(Helper::KtimeGetNs);
    a.store(Size::D, R8, state::START, R0);
    a.bind(none);
    a.load(Size::D, R5, R6, state::FLAGS);
    a.alu(Alu::And, R5, state::LEFT_OUT | state::OWN);
    a.jump_if(Cond::Eq, R5, 0, traced);
    a.jump_if(Cond::Eq, R8, 0, out);
    a.load(Size::D, R1, R9, 0);
    a.load(Size::W, R2, R1, target.task_tgid);
    a.load(Size::D, R1, R9, 8);
    a.load(Size::W, R3, R1, target.task_tgid);
    a.jump_if(Cond::Eq, R2, R3, thread);
    a.alu(Alu::And, R5, state::OWN);
    a.bind(thread);
    a.store(Size::D, R8, state::FLAGS, R5);
    a.jump(out);
    a.bind(traced);
}
