//! Addresses in no mapping: the return address of a function with a return probe, which the kernel has replaced; the copy of an instruction
//! with a uprobe, which it carries out elsewhere; or code that nobody knows.
//!
//! The kernel keeps the replaced addresses of a thread in a list, the innermost first, each with its place on the stack. The walk meets
//! them in the same order, so that it goes through the list once.

use super::area::*;
use super::{Ends, GUESS_UNMAPPED, Tables, UprobeOffsets, keep_frame};
use crate::asm::{Assembler, Label};
use crate::helper::Helper;
use crate::insn::{Alu, Cond, Reg, Reg::*, Size};
use unwind::Ended;

/// Reads the 8 bytes of the kernel at `base + off` to `to` in the area; zeros where that cannot be read.
pub(super) fn peek(a: &mut Assembler<impl Sized>, to: i16, base: Reg, off: i32) {
    a.mov(R3, base);
    a.alu(Alu::Add, R3, off);
    a.mov(R1, R6);
    a.alu(Alu::Add, R1, i32::from(to));
    a.mov(R2, 8);
    a.call(Helper::ProbeReadKernel);
}

/// The address in r8 is in no mapping of the process in r7. What was found in its place is looked up in the next step.
pub(super) fn unmapped(a: &mut Assembler<impl Sized>, tables: &Tables, ends: &Ends) {
    let unknown = a.new_label();
    let guess = |a: &mut Assembler<_>| {
        keep_frame(a, tables);
        a.load(Size::W, R1, R7, FLAGS);
        a.alu(Alu::And, R1, GUESS_UNMAPPED as i32);
        a.jump_if(Cond::Ne, R1, 0, ends.guess);
    };
    if let Some(offsets) = &tables.uprobes {
        let [returned, lost] = [a.new_label(), a.new_label()];
        a.load(Size::D, R1, R6, BACK);
        a.jump_if(Cond::Ne, R1, 0, returned);
        copy(a, offsets, ends, returned, unknown);
        // Else it may just have returned to where a return probe waits.
        a.bind(returned);
        instance(a, offsets, ends, unknown, lost);
        a.bind(lost);
        guess(a);
        a.jump(ends.at(Ended::ReturnProbe));
    }
    a.bind(unknown);
    guess(a);
    a.jump(ends.at(Ended::NoMapping));
}

/// Offset of a process's flags.
const FLAGS: i16 = 4;

/// One instance of the list: it has the address, or lies further in, or (`lost`) further out. `none`: the list is empty.
fn instance(a: &mut Assembler<impl Sized>, at: &UprobeOffsets, ends: &Ends, none: Label, lost: Label) {
    let [seen, fits] = [a.new_label(), a.new_label()];
    a.note("the address that a return probe hides?");
    a.load(Size::D, R9, R6, INSTANCE);
    a.jump_if(Cond::Ne, R9, UNSEEN, seen);
    utask(a, at, none);
    peek(a, BYTES, R9, at.first);
    a.load(Size::D, R9, R6, BYTES);
    a.jump_if(Cond::Eq, R9, 0, none);
    a.store(Size::D, R6, INSTANCE, R9);
    a.bind(seen);
    a.jump_if(Cond::Eq, R9, 0, lost);
    peek(a, BYTES, R9, at.stack);
    a.load(Size::D, R1, R6, BYTES);
    a.load(Size::D, R2, R6, SP);
    a.alu(Alu::Sub, R2, 8);
    a.jump_if(Cond::Eq, R1, R2, fits);
    a.jump_if(Cond::Gt, R1, R2, lost);
    peek(a, BYTES, R9, at.next);
    a.load(Size::D, R1, R6, BYTES);
    a.store(Size::D, R6, INSTANCE, R1);
    a.jump(ends.more);
    a.bind(fits);
    peek(a, BYTES, R9, at.next);
    a.load(Size::D, R1, R6, BYTES);
    a.store(Size::D, R6, INSTANCE, R1);
    peek(a, BYTES, R9, at.original);
    a.load(Size::D, R1, R6, BYTES);
    repaired(a, ends);
}

/// What uprobes keep of the current thread: r9 its address; `none` where there is nothing.
fn utask(a: &mut Assembler<impl Sized>, at: &UprobeOffsets, none: Label) {
    a.call(Helper::GetCurrentTask);
    peek(a, BYTES, R0, at.utask);
    a.load(Size::D, R9, R6, BYTES);
    a.jump_if(Cond::Eq, R9, 0, none);
}

/// The address is r1, and is looked up in the next step.
fn repaired(a: &mut Assembler<impl Sized>, ends: &Ends) {
    a.store(Size::D, R6, PC, R1);
    a.load(Size::D, R1, R6, REPAIRED);
    a.alu(Alu::Add, R1, 1);
    a.store(Size::D, R6, REPAIRED, R1);
    a.jump(ends.more);
}

/// Bytes of a copied instruction (`UPROBE_XOL_SLOT_BYTES`, arch/x86/include/asm/uprobes.h).
const COPY: i32 = 128;

/// The kernel carries out a copy of the instruction that has a uprobe; else `other`. `none`: no uprobe was ever reached.
fn copy(a: &mut Assembler<impl Sized>, at: &UprobeOffsets, ends: &Ends, other: Label, none: Label) {
    a.note("the copy of an instruction?");
    utask(a, at, none);
    peek(a, BYTES, R9, at.copy);
    peek(a, BYTES + 8, R9, at.address);
    a.load(Size::D, R2, R6, BYTES);
    a.jump_if(Cond::Eq, R2, 0, other);
    a.load(Size::D, R1, R6, PC);
    a.alu(Alu::Sub, R1, R2);
    a.jump_if(Cond::Ge, R1, COPY, other);
    a.load(Size::D, R2, R6, BYTES + 8);
    a.alu(Alu::Add, R1, R2);
    repaired(a, ends);
}
