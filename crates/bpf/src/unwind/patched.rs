//! Code that stands for that of patched functions ([`unwind::patched`]).
//!
//! Stubs keep the return addresses of a thread in its shadow stack, the innermost last, each with its place on the stack. The walk meets
//! them in the same order, so that it goes through the shadow stack once, an entry per step. The search in the steps of moved code halves what
//! is left per step of the walk.
//!
//! The walker in user space (`unwind::patched::Shadow`) takes the same steps.

use super::area::*;
use super::caller::set_bits;
use super::hidden::peek;
use super::mapping::{BIAS, END, FIRST_PAGE, FLAGS, START};
use super::{Ends, Tables, keep_frame};
use crate::asm::{Assembler, Label};
use crate::helper::Helper;
use crate::insn::{Alu, Cond, Reg, Reg::*, Size};
use unwind::patched::{BARRIER, BASE, ENTRY, MOVED, PUSHED, RETURNS_SHIFT, SIZE_SHIFT, SKIPPED, TOP};
use unwind::{Ended, Frame};

/// Offset of `tls` in a process's value.
const TLS: i16 = 8;
/// Stack slot: the offset in a stub.
const OFFSET: i16 = -16;

/// Reads `size` bytes of the program's memory at the address in `from` to the area's bytes; else `fault`.
fn read(a: &mut Assembler<impl Sized>, from: Reg, size: i32, fault: Label) {
    a.mov(R3, from);
    a.mov(R1, R6);
    a.alu(Alu::Add, R1, i32::from(BYTES));
    a.mov(R2, size);
    a.call(Helper::ProbeReadUser);
    a.jump_if(Cond::Ne, R0, 0, fault);
}

/// The address in r8 is in patched code, whose mapping is in r9. In a stub: the frame is its function's, and `in_stub` finds its rule.
pub(super) fn found(a: &mut Assembler<impl Sized>, tables: &Tables, ends: &Ends, in_stub: Label) {
    let [moved, stub] = [a.new_label(), a.new_label()];
    let unknown = ends.at(Ended::Stub);
    a.note("a stub: r2 the offset in it, r3 the size");
    a.load(Size::W, R1, R9, FLAGS);
    a.mov(R2, R1);
    a.alu(Alu::And, R2, MOVED as i32);
    a.jump_if(Cond::Ne, R2, 0, moved);
    a.load(Size::D, R2, R9, START);
    a.mov(R4, R8);
    a.alu(Alu::Sub, R4, R2);
    a.mov(R3, R1);
    a.alu(Alu::Rsh, R3, SIZE_SHIFT as i32);
    a.alu(Alu::And, R3, 0xff);
    a.alu(Alu::Lsh, R3, 4);
    a.jump_if(Cond::Eq, R3, 0, ends.at(Ended::Damaged));
    a.mov(R2, R4);
    a.alu(Alu::Mod, R2, R3);
    a.note("where functions return to?");
    a.alu(Alu::Rsh, R1, RETURNS_SHIFT as i32);
    a.load(Size::D, R5, R6, BACK);
    a.jump_if(Cond::Eq, R5, 0, stub);
    a.alu(Alu::Add, R5, R2);
    a.jump_if(Cond::Ne, R5, R1, stub);
    remember(a);
    entry(a, tables, ends);
    a.bind(stub);
    a.note("its function");
    a.store(Size::D, R10, OFFSET, R2);
    a.alu(Alu::Div, R4, R3);
    a.alu(Alu::Lsh, R4, 2);
    a.load(Size::D, R1, R9, BIAS);
    a.alu(Alu::Add, R4, R1);
    read(a, R4, 4, unknown);
    signed(a, R1, BYTES);
    a.load(Size::D, R2, R9, START);
    a.alu(Alu::Add, R1, R2);
    a.store(Size::D, R6, PC, R1);
    set_bits(a, Frame::EXACT);
    keep_frame(a, tables);
    a.load(Size::D, R7, R10, OFFSET);
    a.jump(in_stub);
    a.bind(moved);
    step(a, ends);
}

/// The mapping in r9 is that of the stubs that were met last.
fn remember(a: &mut Assembler<impl Sized>) {
    a.mov(R1, R9);
    a.alu(Alu::Sub, R1, R7);
    a.alu(Alu::Rsh, R1, unwind::Mapping::SIZE.trailing_zeros() as i32);
    a.store(Size::D, R6, STUBS, R1);
}

/// `to` = the 4 bytes at `at` in the area, with their sign.
fn signed(a: &mut Assembler<impl Sized>, to: Reg, at: i16) {
    a.load(Size::W, to, R6, at);
    a.alu(Alu::Lsh, to, 32);
    a.alu(Alu::Arsh, to, 32);
}

/// One entry of the shadow stack: it is that of the return address whose place is below rsp, or lies further in, or further out.
fn entry(a: &mut Assembler<impl Sized>, tables: &Tables, ends: &Ends) {
    let unknown = ends.at(Ended::Stub);
    let [seen, upwards, last, call, other, pass] = std::array::from_fn(|_| a.new_label());
    a.note("the next entry of the shadow stack");
    let Some(fs_base) = tables.fs_base else { return a.jump(unknown) };
    a.load(Size::D, R8, R6, SP);
    a.alu(Alu::Sub, R8, 8);
    a.load(Size::D, R9, R6, ABOVE);
    a.jump_if(Cond::Ne, R9, 0, upwards);
    a.load(Size::D, R9, R6, SHADOW);
    a.jump_if(Cond::Ne, R9, UNSEEN, seen);
    a.call(Helper::GetCurrentTask);
    peek(a, BYTES, R0, fs_base);
    a.load(Size::D, R9, R6, BYTES);
    a.load(Size::D, R1, R7, TLS);
    a.alu(Alu::Add, R9, R1);
    read(a, R9, i32::from(BASE) + 8, unknown);
    a.load(Size::D, R9, R6, BYTES + BASE);
    a.store(Size::D, R6, SHADOW_BASE, R9);
    a.load(Size::D, R9, R6, BYTES + TOP);
    a.store(Size::D, R6, SHADOW, R9);
    a.store(Size::D, R6, SHADOW_TOP, R9);
    a.bind(seen);
    a.load(Size::D, R1, R6, SHADOW_BASE);
    a.jump_if(Cond::Le, R9, R1, last);
    a.alu(Alu::Sub, R9, ENTRY as i32);
    place_and_address(a, unknown);
    a.jump_if(Cond::Ne, R1, BARRIER as i32, call);
    a.alu(Alu::Sub, R9, 2 * ENTRY as i32);
    a.store(Size::D, R6, SHADOW, R9);
    a.jump(ends.more);
    a.bind(call);
    a.jump_if(Cond::Ne, R2, R8, other);
    a.store(Size::D, R6, SHADOW, R9);
    a.store(Size::D, R6, PC, R1);
    a.jump(ends.more);
    a.bind(last);
    a.imm64(R2, u64::MAX);
    a.bind(other);
    above(a, pass);
    a.jump(ends.more);
    a.bind(pass);
    a.load(Size::D, R1, R6, SHADOW_BASE);
    a.jump_if(Cond::Le, R9, R1, unknown);
    a.store(Size::D, R6, SHADOW, R9);
    a.jump(ends.more);
    a.bind(upwards);
    removed(a, ends);
}

/// r2 = the place and r1 = the address of the entry at r9, below the end. Several are read at a time, those further out. Below the lowest entry there may
/// be no memory yet; what lies above it is in the same page.
fn place_and_address(a: &mut Assembler<impl Sized>, fault: Label) {
    let [miss, hit, begin] = std::array::from_fn(|_| a.new_label());
    let load = |a: &mut Assembler<_>| {
        a.alu(Alu::Add, R3, R6);
        a.load(Size::D, R2, R3, ENTRIES);
        a.load(Size::D, R1, R3, ENTRIES + 8);
    };
    let rest = ENTRIES_SIZE - ENTRY as i32;
    a.mov(R3, R9);
    a.load(Size::D, R1, R6, ENTRIES_AT);
    a.alu(Alu::Sub, R3, R1);
    a.jump_if(Cond::Gt, R3, rest, miss);
    load(a);
    a.jump(hit);
    a.bind(miss);
    a.mov(R3, R9);
    a.alu(Alu::Sub, R3, rest);
    a.load(Size::D, R1, R6, SHADOW_BASE);
    a.jump_if(Cond::Ge, R3, R1, begin);
    a.mov(R3, R1);
    a.bind(begin);
    a.store(Size::D, R6, ENTRIES_AT, R3);
    a.mov(R1, R6);
    a.alu(Alu::Add, R1, i32::from(ENTRIES));
    a.mov(R2, ENTRIES_SIZE);
    a.call(Helper::ProbeReadUser);
    a.jump_if(Cond::Ne, R0, 0, fault);
    a.mov(R3, R9);
    a.load(Size::D, R1, R6, ENTRIES_AT);
    a.alu(Alu::Sub, R3, R1);
    a.jump_if(Cond::Gt, R3, rest, fault);
    load(a);
    a.bind(hit);
}

/// r2 is the place of the topmost entry, and that which is looked for, in r8, lies further in: it may have been removed. Else `pass`.
fn above(a: &mut Assembler<impl Sized>, pass: Label) {
    a.load(Size::D, R1, R6, SHADOW);
    a.load(Size::D, R3, R6, SHADOW_TOP);
    a.jump_if(Cond::Ne, R1, R3, pass);
    a.jump_if(Cond::Le, R2, R8, pass);
    a.load(Size::D, R1, R6, ABOVE_FOR);
    a.jump_if(Cond::Eq, R1, R8, pass);
    a.store(Size::D, R6, ABOVE_FOR, R8);
    a.store(Size::D, R6, ABOVE, R3);
    a.store(Size::D, R6, ABOVE_LAST, R2);
}

/// The entry at r9, above the end of the shadow stack: it counts as long as places descend from entry to entry.
fn removed(a: &mut Assembler<impl Sized>, ends: &Ends) {
    let [none, goes_on] = [a.new_label(), a.new_label()];
    a.store(Size::D, R6, ABOVE, 0);
    read(a, R9, 16, ends.more);
    a.load(Size::D, R1, R6, BYTES + 8);
    a.jump_if(Cond::Le, R1, unwind::patched::NO_ADDRESS as i32, none);
    a.load(Size::D, R2, R6, BYTES);
    a.load(Size::D, R3, R6, ABOVE_LAST);
    a.jump_if(Cond::Ge, R2, R3, none);
    a.jump_if(Cond::Gt, R2, R8, goes_on);
    a.jump_if(Cond::Ne, R2, R8, none);
    a.store(Size::D, R6, PC, R1);
    a.bind(none);
    a.jump(ends.more);
    a.bind(goes_on);
    a.store(Size::D, R6, ABOVE_LAST, R2);
    a.alu(Alu::Add, R9, ENTRY as i32);
    a.store(Size::D, R6, ABOVE, R9);
    a.jump(ends.more);
}

/// One step of the search for the instruction that the moved code at r8 stands for.
fn step(a: &mut Assembler<impl Sized>, ends: &Ends) {
    let unknown = ends.at(Ended::Stub);
    let [search, done, above, lowered] = std::array::from_fn(|_| a.new_label());
    a.note("moved code: a step of it");
    a.load(Size::D, R7, R6, HIGH);
    a.jump_if(Cond::Ne, R7, 0, search);
    a.load(Size::W, R7, R9, FIRST_PAGE);
    a.store(Size::D, R6, HIGH, R7);
    a.bind(search);
    a.load(Size::D, R1, R6, LOW);
    a.jump_if(Cond::Ge, R1, R7, done);
    a.alu(Alu::Add, R7, R1);
    a.alu(Alu::Rsh, R7, 1);
    a.mov(R4, R7);
    a.alu(Alu::Lsh, R4, 3);
    a.load(Size::D, R1, R9, END);
    a.alu(Alu::Add, R1, 7);
    a.alu(Alu::And, R1, -8);
    a.alu(Alu::Add, R4, R1);
    read(a, R4, 8, unknown);
    a.load(Size::W, R1, R6, BYTES);
    a.alu(Alu::And, R1, !(PUSHED | SKIPPED) as i32);
    a.load(Size::D, R2, R9, BIAS);
    a.alu(Alu::Sub, R8, R2);
    a.jump_if(Cond::Gt, R1, R8, above);
    a.alu(Alu::Add, R7, 1);
    a.store(Size::D, R6, LOW, R7);
    a.load(Size::D, R1, R6, BYTES);
    a.store(Size::D, R6, STEP, R1);
    a.jump(ends.more);
    a.bind(above);
    a.store(Size::D, R6, HIGH, R7);
    // With nothing left below, what is found is what was found before.
    a.jump_if(Cond::Eq, R7, 0, unknown);
    a.jump(ends.more);
    a.bind(done);
    signed(a, R1, STEP + 4);
    a.jump_if(Cond::Eq, R1, 0, unknown);
    a.load(Size::D, R2, R9, BIAS);
    a.alu(Alu::Add, R1, R2);
    a.note("the code of a probe calls, and has not come to its instruction: that is looked up, and not what is in front of it");
    a.load(Size::D, R2, R6, BACK);
    a.alu(Alu::Add, R1, R2);
    a.store(Size::D, R6, PC, R1);
    a.load(Size::W, R1, R6, STEP);
    a.note("8 where something was pushed, and 128 where the red zone was skipped");
    a.mov(R2, R1);
    a.alu(Alu::Rsh, R1, 31);
    a.alu(Alu::Lsh, R1, 3);
    a.alu(Alu::Rsh, R2, 30);
    a.alu(Alu::And, R2, 1);
    a.alu(Alu::Lsh, R2, 7);
    a.alu(Alu::Add, R2, R1);
    a.jump_if(Cond::Eq, R2, 0, lowered);
    a.load(Size::D, R1, R6, SP);
    a.alu(Alu::Add, R1, R2);
    a.store(Size::D, R6, SP, R1);
    a.bind(lowered);
    for field in [LOW, HIGH, STEP] {
        a.store(Size::D, R6, field, 0);
    }
    a.jump(ends.more);
}
