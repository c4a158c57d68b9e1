//! The caller of a frame: by its rule, or guessed by rbp.

use super::Ends;
use super::area::*;
use super::hidden::peek;
use crate::asm::{Assembler, Label};
use crate::helper::Helper;
use crate::insn::{Alu, Cond, Reg::*, Size};
use unwind::rule::{self, BX, BX_LOST, UCONTEXT};
use unwind::walk::GUESS_REACH;
use unwind::{Ended, Frame, Kind};

/// Reads `size` bytes of the stack at the address in r3 to `to` in the area; else the walk ends.
fn read(a: &mut Assembler<impl Sized>, ends: &Ends, to: i16, size: i32) {
    a.mov(R1, R6);
    a.alu(Alu::Add, R1, i32::from(to));
    a.mov(R2, size);
    a.call(Helper::ProbeReadUser);
    a.jump_if(Cond::Ne, R0, 0, ends.at(Ended::ReadFault));
}

/// r1 = the 8 bytes of the stack at the address in r3; else the walk ends. Loses r0 and r2 to r5.
///
/// They are mostly in what was read last; where not, more is read than is needed now, because the next frames lie behind. Where the stack
/// ends before that, the rest of it is read word by word.
fn word(a: &mut Assembler<impl Sized>, ends: &Ends) {
    let [miss, exact, done] = std::array::from_fn(|_| a.new_label());
    a.note("r1: the word of the stack at r3");
    a.load(Size::D, R1, R6, WINDOW_AT);
    a.mov(R2, R3);
    a.alu(Alu::Sub, R2, R1);
    a.jump_if(Cond::Gt, R2, WINDOW_SIZE - 8, miss);
    a.alu(Alu::Add, R2, R6);
    a.load(Size::D, R1, R2, WINDOW);
    a.jump(done);
    a.bind(miss);
    a.store(Size::D, R6, WINDOW_AT, R3);
    a.load(Size::D, R1, R6, BY_WORD);
    a.jump_if(Cond::Ne, R1, 0, exact);
    a.mov(R1, R6);
    a.alu(Alu::Add, R1, i32::from(WINDOW));
    a.mov(R2, WINDOW_SIZE);
    a.call(Helper::ProbeReadUser);
    a.load(Size::D, R1, R6, WINDOW);
    a.jump_if(Cond::Eq, R0, 0, done);
    a.store(Size::D, R6, BY_WORD, 1);
    a.bind(exact);
    a.load(Size::D, R3, R6, WINDOW_AT);
    a.store(Size::D, R6, WINDOW_AT, NOWHERE);
    read(a, ends, BYTES, 8);
    a.load(Size::D, R1, R6, BYTES);
    a.bind(done);
}

/// By the rule in r9 of the address in r8.
pub(super) fn by_rule(a: &mut Assembler<impl Sized>, ends: &Ends) {
    let [sp, bp, plt, signal, sp_at, bp_at, other, stub, cfa, known] = std::array::from_fn(|_| a.new_label());
    a.note("r7: the offset of the CFA");
    a.mov(R7, R9);
    a.alu(Alu::Lsh, R7, 24);
    a.alu(Alu::Arsh, R7, 40);
    a.alu(Alu::Lsh, R7, 3);
    a.mov(R1, R9);
    a.alu(Alu::And, R1, 0xff);
    for (kind, label) in [
        (Kind::Sp, sp),
        (Kind::Bp, bp),
        (Kind::End, ends.at(Ended::Outermost)),
        (Kind::None, ends.guess),
        (Kind::Plt, plt),
        (Kind::Signal, signal),
        (Kind::SpAt, sp_at),
        (Kind::BpAt, bp_at),
        (Kind::Register, other),
        (Kind::Stub, stub),
    ] {
        a.jump_if(Cond::Eq, R1, kind as i32, label);
    }
    a.jump(ends.at(Ended::Unknown));
    a.bind(plt);
    a.mov(R1, R9);
    a.alu(Alu::Rsh, R1, 56);
    a.alu(Alu::And, R8, 15);
    a.jump_if(Cond::Lt, R8, R1, sp);
    a.alu(Alu::Add, R7, 8);
    a.bind(sp);
    a.load(Size::D, R1, R6, SP);
    a.alu(Alu::Add, R7, R1);
    a.jump(cfa);
    for (label, register) in [(sp_at, SP), (bp_at, BP)] {
        a.bind(label);
        a.load(Size::D, R3, R6, register);
        a.alu(Alu::Add, R3, R7);
        read(a, ends, BYTES, 8);
        a.load(Size::D, R7, R6, BYTES);
        a.mov(R1, R9);
        a.alu(Alu::Arsh, R1, 56);
        a.alu(Alu::Add, R7, R1);
        a.jump(cfa);
    }
    a.bind(stub);
    a.load(Size::D, R1, R6, SP);
    a.alu(Alu::Add, R7, R1);
    a.jump(known);
    a.bind(signal);
    interrupted(a, ends);
    a.bind(other);
    register(a, ends);
    a.alu(Alu::Add, R7, R1);
    a.jump(cfa);
    a.bind(bp);
    a.load(Size::D, R1, R6, BP);
    a.alu(Alu::Add, R7, R1);
    a.bind(cfa);
    a.note("r7: the CFA");
    a.load(Size::D, R1, R6, SP);
    a.jump_if(Cond::Le, R7, R1, ends.at(Ended::NotGrowing));
    a.bind(known);
    place_of_bx(a);
    registers(a, ends);
}

/// Where the caller's rbx is, by the rule in r9 and the CFA in r7.
fn place_of_bx(a: &mut Assembler<impl Sized>) {
    let [own, lost, done] = std::array::from_fn(|_| a.new_label());
    a.note("where rbx is saved");
    a.mov(R1, R9);
    a.alu(Alu::And, R1, 0xff);
    for kind in [Kind::Plt, Kind::Stub] {
        a.jump_if(Cond::Eq, R1, kind as i32, done);
    }
    for kind in [Kind::Sp, Kind::Bp] {
        a.jump_if(Cond::Eq, R1, kind as i32, own);
    }
    a.bind(lost);
    a.store(Size::D, R6, BX_AT, NOWHERE);
    a.jump(done);
    a.bind(own);
    a.mov(R1, R9);
    a.alu(Alu::Rsh, R1, 56);
    a.jump_if(Cond::Eq, R1, 0, done);
    a.jump_if(Cond::Eq, R1, i32::from(BX_LOST), lost);
    a.alu(Alu::Lsh, R1, 3);
    a.mov(R2, R7);
    a.alu(Alu::Sub, R2, R1);
    a.note("below rsp it has been popped already");
    a.load(Size::D, R1, R6, SP);
    a.jump_if(Cond::Lt, R2, R1, done);
    a.store(Size::D, R6, BX_AT, R2);
    a.bind(done);
}

/// Numbers of words in 4 bits each, by number of a register in the ABI, the first lowest; 0 for rbp and rsp, which have kinds of their own.
const fn words(of: [u64; 16]) -> u64 {
    let (mut all, mut nth) = (0, 0);
    while nth < 16 {
        all |= of[nth] << (4 * nth);
        nth += 1;
    }
    all
}

/// Where registers are in `struct pt_regs` (arch/x86/include/asm/ptrace.h), words.
const IN_PT_REGS: u64 = words([10, 12, 11, 5, 13, 14, 0, 0, 9, 8, 7, 6, 3, 2, 1, 0]);
/// Where they are in `struct ucontext`, words behind r8.
const IN_UCONTEXT: u64 = {
    let (mut of, mut nth) = ([0; 16], 0);
    while nth < 16 {
        of[nth] = if nth == 6 || nth == 7 { 0 } else { (rule::IN_UCONTEXT[nth] - rule::IN_UCONTEXT[8]) as u64 / 8 };
        nth += 1;
    }
    words(of)
};

/// r1 = the register that the rule in r9 names. It is known of the innermost frame, and of one that a signal has interrupted; of others, rbx
/// may be.
fn register(a: &mut Assembler<impl Sized>, ends: &Ends) {
    let [own, kernel, known] = std::array::from_fn(|_| a.new_label());
    a.load(Size::D, R1, R6, BACK);
    a.jump_if(Cond::Eq, R1, 0, own);
    a.mov(R1, R9);
    a.alu(Alu::Rsh, R1, 56);
    a.jump_if(Cond::Ne, R1, i32::from(BX), ends.at(Ended::Unknown));
    a.load(Size::D, R3, R6, BX_AT);
    a.jump_if(Cond::Eq, R3, 0, own);
    a.jump_if(Cond::Eq, R3, NOWHERE, ends.at(Ended::Unknown));
    read(a, ends, BYTES, 8);
    a.jump(known);
    a.bind(own);
    a.mov(R2, R9);
    a.alu(Alu::Rsh, R2, 56);
    a.alu(Alu::And, R2, 15);
    a.alu(Alu::Lsh, R2, 2);
    let place = |a: &mut Assembler<_>, all| {
        a.imm64(R8, all);
        a.alu(Alu::Rsh, R8, R2);
        a.alu(Alu::And, R8, 15);
        a.alu(Alu::Lsh, R8, 3);
    };
    a.load(Size::D, R3, R6, CONTEXT);
    a.jump_if(Cond::Eq, R3, 0, kernel);
    place(a, IN_UCONTEXT);
    a.alu(Alu::Add, R3, R8);
    a.alu(Alu::Add, R3, i32::from(rule::IN_UCONTEXT[8]));
    read(a, ends, BYTES, 8);
    a.jump(known);
    a.bind(kernel);
    place(a, IN_PT_REGS);
    a.call(Helper::GetCurrentTaskBtf);
    a.mov(R1, R0);
    a.call(Helper::TaskPtRegs);
    a.mov(R3, R0);
    a.alu(Alu::Add, R3, R8);
    peek(a, BYTES, R3, 0);
    a.bind(known);
    a.load(Size::D, R1, R6, BYTES);
}

/// The registers of the caller, whose frame is below the CFA in r7.
fn registers(a: &mut Assembler<impl Sized>, ends: &Ends) {
    let [alone, from_sp, from_bp, address] = std::array::from_fn(|_| a.new_label());
    a.note("where rbp is saved");
    a.mov(R3, R9);
    a.alu(Alu::Lsh, R3, 8);
    a.alu(Alu::Arsh, R3, 48);
    a.alu(Alu::Rsh, R9, 8);
    a.alu(Alu::And, R9, 0xff);
    a.jump_if(Cond::Eq, R9, 0, alone);
    a.jump_if(Cond::Eq, R9, 2, from_bp);
    a.jump_if(Cond::Eq, R9, 3, from_sp);
    a.alu(Alu::Add, R3, R7);
    a.jump(address);
    for (label, register) in [(from_bp, BP), (from_sp, SP)] {
        a.bind(label);
        a.load(Size::D, R1, R6, register);
        a.alu(Alu::Add, R3, R1);
        a.jump(address);
    }
    a.bind(address);
    word(a, ends);
    a.store(Size::D, R6, BP, R1);
    a.bind(alone);
    a.mov(R3, R7);
    a.alu(Alu::Sub, R3, 8);
    word(a, ends);
    next(a, ends, 1, 0);
}

/// The caller's pc is in r1, its stack pointer in r7, its rbp in the area.
fn next(a: &mut Assembler<impl Sized>, ends: &Ends, back: i32, bits: u64) {
    a.jump_if(Cond::Eq, R1, 0, ends.at(Ended::Outermost));
    a.store(Size::D, R6, PC, R1);
    a.store(Size::D, R6, SP, R7);
    a.store(Size::D, R6, BACK, back);
    set_bits(a, bits);
    a.jump(ends.more);
}

/// Bits of the next frame.
pub(super) fn set_bits(a: &mut Assembler<impl Sized>, bits: u64) {
    match bits {
        0 => a.store(Size::D, R6, BITS, 0),
        bits => {
            a.imm64(R1, bits);
            a.store(Size::D, R6, BITS, R1);
        }
    }
}

/// What a signal has interrupted: the `struct ucontext` is at offset r7 from rsp. On an alternate stack the caller's is anywhere.
fn interrupted(a: &mut Assembler<impl Sized>, ends: &Ends) {
    let [bp, sp, pc] = UCONTEXT.map(|at| (at - UCONTEXT[0]) as i16);
    a.load(Size::D, R3, R6, SP);
    a.alu(Alu::Add, R3, R7);
    a.store(Size::D, R6, CONTEXT, R3);
    a.store(Size::D, R6, BX_AT, 0);
    a.alu(Alu::Add, R3, UCONTEXT[0] as i32);
    read(a, ends, BYTES, i32::from(pc) + 8);
    a.load(Size::D, R1, R6, BYTES + bp);
    a.store(Size::D, R6, BP, R1);
    a.load(Size::D, R7, R6, BYTES + sp);
    a.load(Size::D, R1, R6, BYTES + pc);
    next(a, ends, 0, Frame::EXACT);
}

/// Takes rbp as a frame pointer.
pub(super) fn guessed(a: &mut Assembler<impl Sized>, ends: &Ends) {
    let no_row: Label = ends.at(Ended::NoRow);
    a.load(Size::D, R7, R6, BP);
    a.jump_if(Cond::Eq, R7, 0, ends.at(Ended::Outermost));
    a.mov(R1, R7);
    a.alu(Alu::And, R1, 7);
    a.jump_if(Cond::Ne, R1, 0, no_row);
    a.mov(R1, R7);
    a.load(Size::D, R2, R6, SP);
    a.alu(Alu::Sub, R1, R2);
    a.jump_if(Cond::Ge, R1, GUESS_REACH as i32, no_row);
    a.store(Size::D, R6, BX_AT, NOWHERE);
    a.mov(R3, R7);
    read(a, ends, BYTES, 16);
    a.load(Size::D, R1, R6, BYTES);
    a.store(Size::D, R6, BP, R1);
    a.alu(Alu::Add, R7, 16);
    a.load(Size::D, R1, R6, BYTES + 8);
    next(a, ends, 1, Frame::GUESSED);
}
