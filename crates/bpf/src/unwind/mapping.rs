//! The mapping that an address is in.

use super::area::*;
use super::{MAPPINGS, PROCESS_HEAD};
use crate::asm::{Assembler, Label};
use crate::insn::{Alu, Cond, Reg, Reg::*, Size};

/// Offsets of a mapping's fields in a process's value, from the beginning of the value plus that of the mapping.
pub(super) const START: i16 = PROCESS_HEAD as i16;
pub(super) const END: i16 = START + 8;
pub(super) const BIAS: i16 = START + 16;
pub(super) const FIRST_PAGE: i16 = START + 24;
pub(super) const FLAGS: i16 = START + 28;
/// Bits of a mapping's number, and of its size.
const BITS: i32 = MAPPINGS.trailing_zeros() as i32;
const SIZE_BITS: i32 = unwind::Mapping::SIZE.trailing_zeros() as i32;

/// `to` = the process in r7 plus the offset of mapping number `nth`, which is below [`MAPPINGS`] after that.
fn nth(a: &mut Assembler<impl Sized>, to: Reg, nth: Reg) {
    a.mov(to, nth);
    a.alu(Alu::And, to, MAPPINGS as i32 - 1);
    a.alu(Alu::Lsh, to, SIZE_BITS);
    a.alu(Alu::Add, to, R7);
}

/// r8 = the address to be looked up, r9 = its mapping in the process in r7; else `unmapped`. Uses r1 to r5.
pub(super) fn find(a: &mut Assembler<impl Sized>, unmapped: Label) {
    let [search, found] = [a.new_label(), a.new_label()];
    a.note("a return address is looked up within the call");
    a.load(Size::D, R8, R6, PC);
    a.load(Size::D, R1, R6, BACK);
    a.alu(Alu::Sub, R8, R1);
    a.note("the mapping of the last frame?");
    a.load(Size::D, R1, R6, MAPPING);
    nth(a, R9, R1);
    a.load(Size::D, R2, R9, START);
    a.jump_if(Cond::Lt, R8, R2, search);
    a.load(Size::D, R2, R9, END);
    a.jump_if(Cond::Lt, R8, R2, found);
    a.bind(search);
    a.note("the stubs that were met last? What they return to is mostly in the mapping of the last frame again");
    let all = a.new_label();
    a.load(Size::D, R1, R6, STUBS);
    nth(a, R9, R1);
    a.load(Size::D, R2, R9, START);
    a.jump_if(Cond::Lt, R8, R2, all);
    a.load(Size::D, R2, R9, END);
    a.jump_if(Cond::Lt, R8, R2, found);
    a.bind(all);
    // Without branches: the verifier sees one way, and the processor mispredicts none. Starts and addresses are below 2^63.
    a.mov(R1, 0);
    for bit in (0..BITS).rev() {
        a.mov(R2, R1);
        a.alu(Alu::Add, R2, 1 << bit);
        nth(a, R3, R2);
        a.load(Size::D, R3, R3, START);
        a.mov(R4, R8);
        a.alu(Alu::Sub, R4, R3);
        a.alu(Alu::Rsh, R4, 63);
        a.alu(Alu::Xor, R4, 1);
        a.alu(Alu::Lsh, R4, bit);
        a.alu(Alu::Add, R1, R4);
    }
    a.store(Size::D, R6, MAPPING, R1);
    nth(a, R9, R1);
    a.load(Size::D, R2, R9, START);
    a.jump_if(Cond::Lt, R8, R2, unmapped);
    a.load(Size::D, R2, R9, END);
    a.jump_if(Cond::Ge, R8, R2, unmapped);
    a.bind(found);
}
