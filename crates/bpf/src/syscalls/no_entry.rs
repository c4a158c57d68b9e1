//! Sessions in which no program runs at the entry of a call: what a call was is found in the registers at its end.
//!
//! ```text
//! orig_ax ─► number: the kernel keeps it; -1 after rt_sigreturn; that of execve after an execveat that succeeded
//! di … r9 ─► arguments: the kernel restores them; zeros in a program that has just begun
//! ax      ─► -ENOSYS while a call runs; its result afterwards
//! ```
//!
//! The state of a task has no [`state::IN_CALL`] and no tails of entry then, and so nothing waits for the end of a call.

use crate::asm::Label;
use crate::capture_row;
use crate::frame::registers::{ARG_REGISTERS, AX, ENOSYS, FORKS, FORKS_32, ORIG_AX, RT_SIGRETURN, TS_COMPAT};
use crate::frame::{Emitter, Source, slot, state};
use crate::helper::Helper;
use crate::insn::{Alu, Atomic, Cond, Reg::*, Size};
use crate::scratch;

const EXECVE: i32 = 59;
const EXECVEAT: i32 = 322;
/// The numbers of rt_sigreturn and execve in 32-bit programs (arch/x86/entry/syscalls/syscall_32.tbl).
const RT_SIGRETURN_32: i32 = 173;
const EXECVE_32: i32 = 11;

/// Stores what the registers say of the call that returns in the state; r2 = its result. `out` where it is none: a child's first return,
/// and what the command does before it is itself. From [`Source::All`] (tp_btf; context: pt_regs, result) the address of the registers is in
/// CTX then.
pub(super) fn returns(e: &mut Emitter<'_>, source: Source, out: Label) {
    let offsets = e.offsets;
    let [native, numbered, known, narrow] = std::array::from_fn(|_| e.new_label());
    e.note("the call, from the registers");
    e.load_slot(R9, slot::CTX);
    match source {
        Source::All => {
            e.load(Size::D, R3, R9, 0);
            e.store_slot(slot::CTX, R3);
        }
        Source::Single(_) => {
            e.task(R1);
            e.call(Helper::TaskPtRegs);
            e.mov(R3, R0);
        }
    }
    e.load(Size::D, R2, R9, if source == Source::All { 8 } else { 16 });
    e.load_state(R1, state::FLAGS);
    e.jump_if(Cond::Set, R1, state::STARTING, out);
    e.alu(Alu::And, R1, !state::COMPAT);
    e.task(R0);
    e.load(Size::W, R4, R0, offsets.thread_status);
    e.alu(Alu::And, R4, TS_COMPAT);
    e.jump_if(Cond::Eq, R4, 0, native);
    e.alu(Alu::Or, R1, state::COMPAT);
    e.bind(native);
    for (i, reg) in ARG_REGISTERS.iter().enumerate() {
        e.load(Size::D, R4, R3, *reg);
        e.store_state(state::ARGS + 8 * i as i16, R4);
    }
    // The kernel takes 32 bits of it.
    e.load(Size::D, R4, R3, ORIG_AX);
    e.alu(Alu::Lsh, R4, 32);
    e.alu(Alu::Arsh, R4, 32);
    e.jump_if(Cond::Sge, R4, 0, numbered);
    sigreturn(e, numbered);
    e.bind(numbered);
    e.jump_if(Cond::Ne, R2, 0, known);
    e.note("a child's first return is no call");
    e.jump_if(Cond::Set, R1, state::COMPAT, narrow);
    for nr in FORKS {
        e.jump_if(Cond::Eq, R4, nr, out);
    }
    e.jump(known);
    e.bind(narrow);
    for nr in FORKS_32 {
        e.jump_if(Cond::Eq, R4, nr, out);
    }
    // The kernel gives the call the number that it has in the new program (arch/x86/kernel/process_64.c, set_personality_ia32).
    e.jump_if(Cond::Ne, R4, EXECVE_32, known);
    e.mov(R4, EXECVE);
    e.alu(Alu::And, R1, !state::COMPAT);
    e.bind(known);
    e.store_state(state::FLAGS, R1);
    e.store_state(state::NR, R4);
    // What the verifier has learnt of it must not split its ways.
    e.store_state(state::RET, R2);
    e.load_state(R2, state::RET);
}

/// r4 = the number of a call that has left -1 in its place, with the result in r2 and flags in r1: rt_sigreturn, whose registers are those
/// of the interrupted program. A program that has made call number -1 gets the error that there is none.
fn sigreturn(e: &mut Emitter<'_>, numbered: Label) {
    let native = e.new_label();
    e.jump_if(Cond::Eq, R2, -ENOSYS, numbered);
    for i in 0..ARG_REGISTERS.len() as i16 {
        e.store_state(state::ARGS + 8 * i, 0);
    }
    e.mov(R4, RT_SIGRETURN);
    e.mov(R5, R1);
    e.alu(Alu::And, R5, state::COMPAT);
    e.jump_if(Cond::Eq, R5, 0, native);
    e.mov(R4, RT_SIGRETURN_32);
    e.bind(native);
}

/// Counts the arguments of a call that has replaced its program or its registers: nobody can read them.
pub(super) fn count_replaced(e: &mut Emitter<'_>) {
    let [replaced, execve, intact] = std::array::from_fn(|_| e.new_label());
    if !e.session.no_entry {
        return;
    }
    e.note("arguments that are gone");
    e.load_state(R1, state::NR);
    e.jump_if(Cond::Eq, R1, RT_SIGRETURN, replaced);
    e.jump_if(Cond::Eq, R1, EXECVE, execve);
    e.jump_if(Cond::Ne, R1, EXECVEAT, intact);
    e.bind(execve);
    e.result(R1);
    e.jump_if(Cond::Ne, R1, 0, intact);
    e.bind(replaced);
    let at = e.word(scratch::TOO_LATE);
    e.load_row(Size::B, R2, capture_row::N_IN);
    e.words(R1);
    e.atomic(Atomic::Add, Size::D, R1, at, R2);
    e.bind(intact);
}

/// At the end of a task: stores what the registers say of the call that it ends in, or goes to `none`. The scratch buffer is found.
pub(super) fn ends_in(e: &mut Emitter<'_>, none: Label) {
    let offsets = e.offsets;
    let native = e.new_label();
    e.load_state(R9, state::FLAGS);
    e.jump_if(Cond::Set, R9, state::STARTING, none);
    e.note("the call that it ends in");
    e.task(R1);
    e.call(Helper::TaskPtRegs);
    e.load(Size::D, R1, R0, ORIG_AX);
    e.alu(Alu::Lsh, R1, 32);
    e.alu(Alu::Arsh, R1, 32);
    e.jump_if(Cond::Slt, R1, 0, none);
    e.load(Size::D, R2, R0, AX);
    e.jump_if(Cond::Ne, R2, -ENOSYS, none);
    e.store_state(state::NR, R1);
    e.task(R0);
    e.load(Size::W, R2, R0, offsets.thread_status);
    e.alu(Alu::And, R2, TS_COMPAT);
    e.alu(Alu::And, R9, !state::COMPAT);
    e.jump_if(Cond::Eq, R2, 0, native);
    e.alu(Alu::Or, R9, state::COMPAT);
    e.bind(native);
    e.store_state(state::FLAGS, R9);
}

/// Counts the call in the state, which does not return, where it is wanted, and goes to `out`. The scratch buffer is found.
pub(super) fn count_unreturned(e: &mut Emitter<'_>, out: Label) {
    let [without_row, counted] = std::array::from_fn(|_| e.new_label());
    e.note("one that does not return");
    e.stopped(out);
    e.load_state(R1, state::FLAGS);
    e.jump_if(Cond::Set, R1, state::COMPAT, without_row);
    e.load_state(R1, state::NR);
    e.row(without_row);
    e.load_row(Size::H, R1, capture_row::FLAGS);
    e.jump_if(Cond::Set, R1, i32::from(capture_row::NO_ROW), without_row);
    e.alu(Alu::And, R1, i32::from(capture_row::WANTED));
    e.jump_if(Cond::Ne, R1, 0, counted);
    e.jump(out);
    e.bind(without_row);
    match e.session.unknown {
        true => e.raw_is_held_back(out),
        false => e.jump(out),
    }
    e.bind(counted);
    e.count(scratch::UNRETURNED);
    e.jump(out);
}
