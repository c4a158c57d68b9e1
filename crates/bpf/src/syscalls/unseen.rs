//! Calls whose entry no program has seen, in sessions with programs at entry.
//!
//! ```text
//! refused             seccomp(2), or a tracer, has answered the call before it began: the kernel passes sys_exit alone
//! ended by seccomp    the thread ends at the call: it passes neither
//! begun before        the programs were attached while the thread was in the call
//! no place for it     at the entry there was no memory, or no slot, for its words
//! ```
//!
//! The registers of the thread have number, arguments and result of such a call, when it returns or its task ends. When it was
//! entered, and on which processor, is unknown.

use crate::asm::Label;
use crate::frame::registers::{self, ARG_REGISTERS, AX, ENOSYS, FORKS, FORKS_32, IP, ORIG_AX, RT_SIGRETURN, TS_COMPAT};
use crate::frame::{Emitter, Lost, Source, reg, slot, state};
use crate::helper::Helper;
use crate::insn::{Alu, Cond, Reg::*, Size};
use crate::scratch::front;
use events::layout::NO_CPU;

/// Where the registers are in the scratch buffer.
const REGISTERS_AT: i16 = front::REGISTERS;

/// At the end of a call without an entry, with the flags of its thread in r1: stores what the registers say of it. `out` where it is
/// no call: the first return of a child, what the command does before it is itself, and calls of hidden code. From
/// [`Source::All`] the address of the registers is in CTX.
pub(super) fn returns(e: &mut Emitter<'_>, source: Source, out: Label) {
    let [numbered, goes_on, narrow] = std::array::from_fn(|_| e.new_label());
    e.note("a call without an entry");
    e.jump_if(Cond::Set, R1, state::STARTING, out);
    e.claimed(Lost::Unknown, out);
    match source {
        Source::All => e.load_slot(R3, slot::CTX),
        Source::Single(_) => registers_of_task(e),
    }
    read_registers(e);
    begin(e, source, out);
    e.jump_if(Cond::Sge, R1, 0, numbered);
    // One of which nothing was known returns from a signal handler; else a tracer has taken the number away.
    e.jump_if(Cond::Ne, R0, 0, numbered);
    e.mov(R1, RT_SIGRETURN);
    e.store_state(state::NR, R1);
    e.store_state(state::ARGS, 0);
    e.bind(numbered);
    e.note("a child's first return is no call");
    e.load_event(Size::D, R2, REGISTERS_AT + AX);
    e.jump_if(Cond::Ne, R2, 0, goes_on);
    e.load_state(R2, state::FLAGS);
    e.jump_if(Cond::Set, R2, state::COMPAT, narrow);
    let leave = e.new_label();
    FORKS.iter().for_each(|nr| e.jump_if(Cond::Eq, R1, *nr, leave));
    e.jump(goes_on);
    e.bind(narrow);
    FORKS_32.iter().for_each(|nr| e.jump_if(Cond::Eq, R1, *nr, leave));
    e.jump(goes_on);
    e.bind(leave);
    e.store_state(state::FLAGS, 0);
    e.jump(out);
    e.bind(goes_on);
}

/// At the end of a task that is in no call, as far as the programs know: stores the call that its registers show, which has no result
/// yet, or goes to `none`. The scratch buffer is claimed. r1 = the flags of the call.
pub(super) fn ends_in(e: &mut Emitter<'_>, none: Label) {
    e.note("a call whose entry nobody has seen");
    registers_of_task(e);
    read_registers(e);
    number(e);
    e.jump_if(Cond::Slt, R1, 0, none);
    e.load_event(Size::D, R2, REGISTERS_AT + AX);
    e.jump_if(Cond::Ne, R2, -ENOSYS, none);
    // One that has returned this, and was shown.
    let another = e.new_label();
    e.load_state(R2, state::RET);
    e.jump_if(Cond::Ne, R2, -ENOSYS, another);
    e.load_state(R2, state::NR);
    e.jump_if(Cond::Eq, R1, R2, none);
    e.bind(another);
    begin(e, Source::All, none);
    e.load_state(R1, state::FLAGS);
}

/// r3 = the address of the current task's registers.
pub(super) fn registers_of_task(e: &mut Emitter<'_>) {
    e.task(R1);
    e.call(Helper::TaskPtRegs);
    e.mov(R3, R0);
}

/// Reads the registers at r3 into the scratch buffer.
fn read_registers(e: &mut Emitter<'_>) {
    e.mov(R1, reg::BUFFER);
    e.alu(Alu::Add, R1, i32::from(REGISTERS_AT));
    e.mov(R2, registers::SIZE);
    e.call(Helper::ProbeReadKernel);
}

/// r1 = the number of the call, from the scratch buffer. The kernel takes 32 bits of it.
fn number(e: &mut Emitter<'_>) {
    e.load_event(Size::W, R1, REGISTERS_AT + ORIG_AX);
    e.alu(Alu::Lsh, R1, 32);
    e.alu(Alu::Arsh, R1, 32);
}

/// Stores the call whose registers are in the scratch buffer as one in flight; r1 = its number, r0 = the start that was in the state.
/// `hidden`: where it is one of hidden code.
fn begin(e: &mut Emitter<'_>, source: Source, hidden: Label) {
    let offsets = e.offsets;
    if let Some(upper) = e.session.hidden.filter(|_| source == Source::All) {
        e.load_event(Size::D, R1, REGISTERS_AT + IP);
        e.alu(Alu::Rsh, R1, 32);
        e.jump_if(Cond::Eq, R1, upper as i32, hidden);
    }
    for (i, register) in ARG_REGISTERS.iter().enumerate() {
        e.load_event(Size::D, R4, REGISTERS_AT + *register);
        e.store_state(state::ARGS + 8 * i as i16, R4);
    }
    for (word, value) in [(state::LEN, 0), (state::CAPS, 0), (state::CPU, i32::from(NO_CPU))] {
        e.store_state(word, value);
    }
    // Nothing was captured at its entry.
    if e.session.captures.is_some() {
        [state::STACKS, state::STACKS + 8].iter().for_each(|word| e.store_state(*word, 0));
    }
    let wide = e.new_label();
    e.task(R0);
    e.load(Size::W, R2, R0, offsets.thread_status);
    e.mov(R1, state::IN_CALL | state::ATTACHED);
    e.alu(Alu::And, R2, TS_COMPAT);
    e.jump_if(Cond::Eq, R2, 0, wide);
    e.alu(Alu::Or, R1, state::COMPAT);
    e.bind(wide);
    e.store_state(state::FLAGS, R1);
    number(e);
    e.store_state(state::NR, R1);
    e.load_state(R0, state::START);
    e.store_slot(slot::TEMP, R0);
    e.call(Helper::KtimeGetNs);
    e.store_state(state::START, R0);
    e.load_slot(R0, slot::TEMP);
    e.load_state(R1, state::NR);
}
