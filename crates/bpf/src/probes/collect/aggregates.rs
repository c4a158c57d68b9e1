//! The code of aggregations: a value is added to the words that a map has at a key. `lang::script::maps` says what the words mean.

use crate::asm::Label;
use crate::frame::Emitter;
use crate::insn::{Alu, Atomic, Cond, Reg::*, Size};
use lang::script::maps::{ordered, words_of};
use lang::script::types::{Aggregate, Type};

/// How often a larger value is tried to be put in place of another one that changes meanwhile.
const TRIES: usize = 4;

/// Adds the value in r1 to the words at r0.
pub(super) fn add(e: &mut Emitter<'_>, aggregate: Aggregate, done: Label) {
    match aggregate {
        Aggregate::Count => {
            e.mov(R1, 1);
            e.atomic(Atomic::Add, Size::D, R0, 0, R1);
        }
        Aggregate::Sum { .. } => {
            e.atomic(Atomic::Add, Size::D, R0, 0, R1);
            e.store(Size::D, R0, 8, 1);
        }
        Aggregate::Avg { .. } | Aggregate::Stats { .. } => {
            e.atomic(Atomic::Add, Size::D, R0, 8, R1);
            e.mov(R1, 1);
            e.atomic(Atomic::Add, Size::D, R0, 0, R1);
        }
        Aggregate::Min { .. } | Aggregate::Max { .. } => extreme(e, aggregate, done),
        Aggregate::Hist { bits } => {
            e.mov(R3, R0);
            log2(e, bits);
            in_bucket(e, Type::Aggregate(aggregate), done);
        }
        Aggregate::Lhist { min, max, step } => {
            e.mov(R3, R0);
            linear(e, min, max, step);
            in_bucket(e, Type::Aggregate(aggregate), done);
        }
        // They have no words.
        Aggregate::Stddev { .. } | Aggregate::Llquantize(_) => {}
    }
}

/// The value in r1 takes the place of a smaller one at r0, whatever else changes that meanwhile.
fn extreme(e: &mut Emitter<'_>, aggregate: Aggregate, done: Label) {
    e.mov(R3, R0);
    e.store(Size::D, R3, 8, 1);
    e.constant(R2, ordered(aggregate));
    e.alu(Alu::Xor, R1, R2);
    e.load(Size::D, R0, R3, 0);
    for _ in 0..TRIES {
        e.jump_if(Cond::Ge, R0, R1, done);
        e.mov(R4, R0);
        e.mov(R2, R1);
        e.atomic(Atomic::CmpXchg, Size::D, R3, 0, R2);
        e.jump_if(Cond::Eq, R0, R4, done);
    }
    e.jump_if(Cond::Ge, R0, R1, done);
    e.store(Size::D, R3, 0, R1);
}

/// Adds 1 to the bucket whose number is in r1, of the words at r3.
fn in_bucket(e: &mut Emitter<'_>, ty: Type, done: Label) {
    let Some(words) = words_of(&ty) else { return };
    e.jump_if(Cond::Ge, R1, words as i32, done);
    e.alu(Alu::Lsh, R1, 3);
    e.alu(Alu::Add, R3, R1);
    e.mov(R1, 1);
    e.atomic(Atomic::Add, Size::D, R3, 0, R1);
}

/// r1 = the bucket of the value in r1: as `lang::script::maps` has it.
fn log2(e: &mut Emitter<'_>, bits: u8) {
    let [done, small, negative] = [e.new_label(), e.new_label(), e.new_label()];
    e.jump_if(Cond::Slt, R1, 0, negative);
    e.jump_if(Cond::Lt, R1, 1 << bits, small);
    // r2 = the number of the highest bit.
    e.mov(R2, 0);
    e.mov(R4, R1);
    for step in [32, 16, 8, 4, 2, 1] {
        let below = e.new_label();
        e.mov(R5, R4);
        e.alu(Alu::Rsh, R5, step);
        e.jump_if(Cond::Eq, R5, 0, below);
        e.alu(Alu::Add, R2, step);
        e.mov(R4, R5);
        e.bind(below);
    }
    if bits > 0 {
        e.alu(Alu::Sub, R2, i32::from(bits));
        e.alu(Alu::Rsh, R1, R2);
        e.alu(Alu::And, R1, (1 << bits) - 1);
    } else {
        e.mov(R1, 0);
    }
    e.alu(Alu::Add, R2, 1);
    e.alu(Alu::Lsh, R2, i32::from(bits));
    e.alu(Alu::Or, R1, R2);
    e.alu(Alu::Add, R1, 1);
    e.jump(done);
    e.bind(small);
    e.alu(Alu::Add, R1, 1);
    e.jump(done);
    e.bind(negative);
    e.mov(R1, 0);
    e.bind(done);
}

/// r1 = the bucket of the value in r1: as `lang::script::maps` has it.
fn linear(e: &mut Emitter<'_>, min: i64, max: i64, step: i64) {
    let [done, below, above] = [e.new_label(), e.new_label(), e.new_label()];
    let last = (max - min) / step + 1;
    e.constant(R2, min as u64);
    e.jump_if(Cond::Slt, R1, R2, below);
    e.constant(R4, max as u64);
    e.jump_if(Cond::Sge, R1, R4, above);
    e.alu(Alu::Sub, R1, R2);
    e.constant(R2, step as u64);
    e.alu(Alu::Div, R1, R2);
    e.alu(Alu::Add, R1, 1);
    e.constant(R2, last as u64);
    e.jump_if(Cond::Le, R1, R2, done);
    e.bind(above);
    e.constant(R1, last as u64);
    e.jump(done);
    e.bind(below);
    e.mov(R1, 0);
    e.bind(done);
}
