//! Addresses in no mapping: the return address of a function with a return probe, which the kernel has replaced, or code that nobody
//! knows.
//!
//! The kernel keeps the replaced addresses of a thread in a list, the innermost first, each with its place on the stack. The walk meets
//! them in the same order, so that it goes through the list once.

use super::area::*;
use super::{Ends, GUESS_UNMAPPED, Instances, Tables, keep_frame};
use crate::asm::{Assembler, Label};
use crate::helper::Helper;
use crate::insn::{Alu, Cond, Reg, Reg::*, Size};
use unwind::Ended;

/// Reads the 8 bytes of the kernel at `base + off` to `to` in the area; zeros where that cannot be read.
fn peek(a: &mut Assembler<impl Sized>, to: i16, base: Reg, off: i32) {
    a.mov(R3, base);
    a.alu(Alu::Add, R3, off);
    a.mov(R1, R6);
    a.alu(Alu::Add, R1, i32::from(to));
    a.mov(R2, 8);
    a.call(Helper::ProbeReadKernel);
}

/// The address in r8 is in no mapping of the process in r7. A return address that was found is looked up in the next step.
pub(super) fn unmapped(a: &mut Assembler<impl Sized>, tables: &Tables, ends: &Ends) {
    let unknown = a.new_label();
    let guess = |a: &mut Assembler<_>| {
        keep_frame(a);
        a.load(Size::W, R1, R7, FLAGS);
        a.alu(Alu::And, R1, GUESS_UNMAPPED as i32);
        a.jump_if(Cond::Ne, R1, 0, ends.guess);
    };
    if let Some(instances) = &tables.instances {
        a.load(Size::D, R1, R6, BACK);
        a.jump_if(Cond::Eq, R1, 0, unknown);
        let lost = a.new_label();
        instance(a, instances, ends, unknown, lost);
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
fn instance(a: &mut Assembler<impl Sized>, at: &Instances, ends: &Ends, none: Label, lost: Label) {
    let [seen, fits] = [a.new_label(), a.new_label()];
    a.note("the address that a return probe hides?");
    a.load(Size::D, R9, R6, INSTANCE);
    a.jump_if(Cond::Ne, R9, UNSEEN, seen);
    a.call(Helper::GetCurrentTask);
    a.mov(R9, R0);
    peek(a, BYTES, R9, at.utask);
    a.load(Size::D, R9, R6, BYTES);
    a.jump_if(Cond::Eq, R9, 0, none);
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
    peek(a, BYTES, R9, at.address);
    a.load(Size::D, R1, R6, BYTES);
    a.store(Size::D, R6, PC, R1);
    peek(a, BYTES, R9, at.next);
    a.load(Size::D, R1, R6, BYTES);
    a.store(Size::D, R6, INSTANCE, R1);
    a.load(Size::D, R1, R6, REPAIRED);
    a.alu(Alu::Add, R1, 1);
    a.store(Size::D, R6, REPAIRED, R1);
    a.jump(ends.more);
}
