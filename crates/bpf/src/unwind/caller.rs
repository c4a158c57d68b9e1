//! The caller of a frame: by its rule, or guessed by rbp.

use super::Ends;
use super::area::*;
use crate::asm::{Assembler, Label};
use crate::helper::Helper;
use crate::insn::{Alu, Cond, Reg::*, Size};
use unwind::rule::UCONTEXT;
use unwind::walk::GUESS_REACH;
use unwind::{Ended, Frame, Kind};

/// The furthest that rbp is saved from the CFA to be read together with the return address.
const TOGETHER: i32 = 64;
/// Where in the bytes an rbp goes that is read by itself.
const APART: i16 = BYTES + TOGETHER as i16;

/// Reads `size` bytes of the stack at the address in r3 to `to` in the area; else the walk ends.
fn read(a: &mut Assembler<impl Sized>, ends: &Ends, to: i16, size: i32) {
    a.mov(R2, size);
    read_r2(a, ends, to);
}

/// Reads r2 bytes of the stack at the address in r3 to `to` in the area; where that fails, the walk ends.
fn read_r2(a: &mut Assembler<impl Sized>, ends: &Ends, to: i16) {
    a.mov(R1, R6);
    a.alu(Alu::Add, R1, i32::from(to));
    a.call(Helper::ProbeReadUser);
    a.jump_if(Cond::Ne, R0, 0, ends.at(Ended::ReadFault));
}

/// By the rule in r9 of the address in r8.
pub(super) fn by_rule(a: &mut Assembler<impl Sized>, ends: &Ends) {
    let [sp, bp, plt, signal, sp_at, bp_at, cfa] = std::array::from_fn(|_| a.new_label());
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
    a.bind(signal);
    interrupted(a, ends);
    a.bind(bp);
    a.load(Size::D, R1, R6, BP);
    a.alu(Alu::Add, R7, R1);
    a.bind(cfa);
    a.note("r7: the CFA");
    a.load(Size::D, R1, R6, SP);
    a.jump_if(Cond::Le, R7, R1, ends.at(Ended::NotGrowing));
    registers(a, ends);
}

/// The registers of the caller, whose frame is below the CFA in r7.
fn registers(a: &mut Assembler<impl Sized>, ends: &Ends) {
    let [together, apart, alone, from_sp, from_bp, address] = std::array::from_fn(|_| a.new_label());
    a.note("r8: how far below the CFA rbp is saved");
    a.mov(R8, R9);
    a.alu(Alu::Lsh, R8, 8);
    a.alu(Alu::Arsh, R8, 48);
    a.alu(Alu::Rsh, R9, 8);
    a.alu(Alu::And, R9, 0xff);
    a.jump_if(Cond::Eq, R9, 0, alone);
    a.mov(R3, R8);
    a.jump_if(Cond::Eq, R9, 2, from_bp);
    a.jump_if(Cond::Eq, R9, 3, from_sp);
    a.neg(R8);
    a.jump_if(Cond::Lt, R8, 16, apart);
    a.jump_if(Cond::Le, R8, TOGETHER, together);
    a.bind(apart);
    a.alu(Alu::Add, R3, R7);
    a.jump(address);
    for (label, register) in [(from_bp, BP), (from_sp, SP)] {
        a.bind(label);
        a.load(Size::D, R1, R6, register);
        a.alu(Alu::Add, R3, R1);
        a.jump(address);
    }
    a.bind(address);
    read(a, ends, APART, 8);
    a.load(Size::D, R1, R6, APART);
    a.store(Size::D, R6, BP, R1);
    a.bind(alone);
    a.mov(R3, R7);
    a.alu(Alu::Sub, R3, 8);
    read(a, ends, BYTES, 8);
    a.load(Size::D, R1, R6, BYTES);
    let done = a.new_label();
    a.jump(done);
    a.bind(together);
    a.mov(R3, R7);
    a.alu(Alu::Sub, R3, R8);
    a.mov(R2, R8);
    read_r2(a, ends, BYTES);
    a.load(Size::D, R1, R6, BYTES);
    a.store(Size::D, R6, BP, R1);
    a.alu(Alu::Add, R8, R6);
    a.load(Size::D, R1, R8, BYTES - 8);
    a.bind(done);
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
    a.mov(R3, R7);
    read(a, ends, BYTES, 16);
    a.load(Size::D, R1, R6, BYTES);
    a.store(Size::D, R6, BP, R1);
    a.alu(Alu::Add, R7, 16);
    a.load(Size::D, R1, R6, BYTES + 8);
    next(a, ends, 1, Frame::GUESSED);
}
