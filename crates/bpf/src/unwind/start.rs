//! The function that is called: registers in, steps, record out.

use super::area::*;
use super::caller::set_bits;
use super::hash_frame;
use super::hidden::peek;
use super::{MemoryOffsets, UserStacks};
use crate::asm::Assembler;
use crate::helper::Helper;
use crate::insn::{Alu, Cond, Reg::*, Size};
use unwind::stack::{ENDINGS, HEAD, MAX_FRAMES};
use unwind::{Ended, Frame};

/// Stack slots: what the function that is called back gets, and the key of the process.
const AREA: i16 = -32;
const MAPPINGS: i16 = -24;
const KEY: i16 = -8;

/// Offsets in `struct pt_regs` (arch/x86/include/asm/ptrace.h): what is read begins with rbp.
const PT_BP: i16 = 32;
const PT_IP: i16 = 128 - PT_BP;
const PT_CS: i16 = 136 - PT_BP;
const PT_SP: i16 = 152 - PT_BP;
/// `__USER32_CS` (arch/x86/include/asm/segment.h).
const USER32_CS: i32 = 0x23;
/// Steps: one per frame; one per return address of the kernel's list, which follows 64 (`MAX_URETPROBE_DEPTH`) and may hold some more; one per
/// entry of a shadow stack, some of which may belong to calls that were left or to other coroutines; some for moved code.
const MAX_STEPS: i32 = 2 * MAX_FRAMES as i32 + 1024;

pub(super) fn function(a: &mut Assembler<impl Sized>, stacks: &UserStacks) {
    let [known, user, wide, walked, full, counted] = std::array::from_fn(|_| a.new_label());
    a.note("user stack");
    a.mov(R6, R1);
    a.store(Size::D, R10, AREA, R6);
    a.store(Size::D, R10, KEY, R2);
    let zero = [BACK, MAPPING, COUNT, GUESSED, BY_WORD, CONTEXT, BX_AT, ABOVE, ABOVE_FOR, STUBS, LOW, HIGH, STEP];
    let other = [(INSTANCE, UNSEEN), (SHADOW, UNSEEN), (WINDOW_AT, NOWHERE), (ENTRIES_AT, NOWHERE)];
    for (field, value) in zero.map(|field| (field, 0)).into_iter().chain(other) {
        a.store(Size::D, R6, field, value);
    }
    a.store(Size::D, R6, ENDED, Ended::Running as i32);
    begin_hash(a, R6);
    set_bits(a, Frame::EXACT);
    a.note("registers");
    a.call(Helper::GetCurrentTaskBtf);
    a.mov(R1, R0);
    a.call(Helper::TaskPtRegs);
    a.mov(R3, R0);
    a.alu(Alu::Add, R3, i32::from(PT_BP));
    a.mov(R1, R6);
    a.alu(Alu::Add, R1, i32::from(BYTES));
    a.mov(R2, i32::from(PT_SP) + 8);
    a.call(Helper::ProbeReadKernel);
    for (from, to) in [(0, BP), (PT_IP, PC), (PT_SP, SP)] {
        a.load(Size::D, R1, R6, BYTES + from);
        a.store(Size::D, R6, to, R1);
    }
    a.load(Size::H, R1, R6, BYTES + PT_CS);
    a.mov(R2, R1);
    a.alu(Alu::And, R2, 3);
    a.jump_if(Cond::Eq, R2, 3, user);
    a.store(Size::D, R6, ENDED, Ended::NotUser as i32);
    a.jump(walked);
    a.bind(user);
    a.jump_if(Cond::Ne, R1, USER32_CS, wide);
    a.store(Size::D, R6, ENDED, Ended::NotX86_64 as i32);
    first(a);
    a.jump(walked);
    a.bind(wide);
    a.map_fd(R1, stacks.tables.processes);
    a.mov(R2, R10);
    a.alu(Alu::Add, R2, i32::from(KEY));
    a.call(Helper::MapLookup);
    a.jump_if(Cond::Ne, R0, 0, known);
    a.store(Size::D, R6, ENDED, Ended::NoProcess as i32);
    first(a);
    a.jump(walked);
    a.bind(known);
    a.store(Size::D, R10, MAPPINGS, R0);
    a.mov(R1, MAX_STEPS);
    a.func(R2, stacks.step);
    a.mov(R3, R10);
    a.alu(Alu::Add, R3, i32::from(AREA));
    a.mov(R4, 0);
    a.call(Helper::Loop);
    a.bind(walked);
    a.note("the record");
    a.load(Size::D, R6, R10, AREA);
    if let Some(offsets) = &stacks.tables.memory {
        memory(a, offsets);
    }
    a.load(Size::D, R1, R6, ENDED);
    a.jump_if(Cond::Eq, R1, Ended::Running as i32, full);
    a.jump_if(Cond::Lt, R1, ENDINGS as i32, counted);
    a.bind(full);
    a.mov(R1, Ended::Full as i32);
    a.bind(counted);
    a.store(Size::D, R6, ENDED, R1);
    let bounded = a.new_label();
    a.load(Size::D, R0, R6, COUNT);
    a.jump_if(Cond::Le, R0, MAX_FRAMES as i32, bounded);
    a.mov(R0, 0);
    a.bind(bounded);
    a.load(Size::W, R2, R6, GUESSED);
    a.store(Size::W, R6, RECORD, R2);
    a.store(Size::H, R6, RECORD + 4, R1);
    a.store(Size::H, R6, RECORD + 6, R0);
    a.alu(Alu::Lsh, R1, 3);
    a.alu(Alu::Add, R6, R1);
    a.load(Size::D, R1, R6, ENDINGS_AT);
    a.alu(Alu::Add, R1, 1);
    a.store(Size::D, R6, ENDINGS_AT, R1);
    a.alu(Alu::Lsh, R0, 3);
    a.alu(Alu::Add, R0, HEAD as i32);
    a.exit();
}

/// A stack that ends too early may be none: while a process executes a program it has a new memory map in which no program lies yet, and
/// the registers of the old one; in its end it has no memory any more.
fn memory(a: &mut Assembler<impl Sized>, at: &MemoryOffsets) {
    let [look, none, there] = std::array::from_fn(|_| a.new_label());
    a.load(Size::D, R1, R6, ENDED);
    for early in [Ended::NoProcess, Ended::NoMapping, Ended::ReadFault, Ended::NoRow] {
        a.jump_if(Cond::Eq, R1, early as i32, look);
    }
    a.jump(there);
    a.bind(look);
    a.call(Helper::GetCurrentTask);
    for offset in [at.mm, at.start_code] {
        peek(a, BYTES, R0, offset);
        a.load(Size::D, R0, R6, BYTES);
        a.jump_if(Cond::Eq, R0, 0, none);
    }
    a.jump(there);
    a.bind(none);
    a.store(Size::D, R6, ENDED, Ended::NoMemory as i32);
    a.bind(there);
}

/// The record of a stack that is not walked has the innermost frame.
fn first(a: &mut Assembler<impl Sized>) {
    a.load(Size::D, R1, R6, PC);
    a.load(Size::D, R2, R6, BITS);
    a.alu(Alu::Or, R1, R2);
    a.store(Size::D, R6, RECORD + HEAD as i16, R1);
    hash_frame(a, R1);
    a.store(Size::D, R6, COUNT, 1);
}
