//! Arithmetic, comparison and atomics on values.
//!
//! Not here: registers and memory; these are functions from numbers to a number.
//!
//! Invariant: results are those of `___bpf_prog_run` (`kernel/bpf/core.c`, 6.18) with the verifier's patches for division: by zero gives 0, modulo
//! zero leaves the first operand; nothing overflows.

use super::Cause;
use crate::insn::*;

/// `a op b` of an arithmetic instruction; `b` is already the register's value or the sign-extended immediate.
pub(super) fn alu(i: Insn, a: u64, b: u64) -> Result<u64, Cause> {
    let wide = i.class() == ALU64;
    match (i.op(), i.off) {
        (END, 0) => byte_order(i, a),
        (NEG, 0) if wide => Ok(a.wrapping_neg()),
        (NEG, 0) => Ok((a as u32).wrapping_neg().into()),
        (MOV, off) => moved(i, b, off),
        _ if wide => alu64(i, a, b),
        _ => alu32(i, a as u32, b as u32).map(u64::from),
    }
}

fn moved(i: Insn, b: u64, off: i16) -> Result<u64, Cause> {
    let wide = i.class() == ALU64;
    let extended = match off {
        0 => b,
        8 => b as i8 as u64,
        16 => b as i16 as u64,
        32 if wide => b as i32 as u64,
        _ => return Err(Cause::Opcode(i.opcode)),
    };
    Ok(if wide { extended } else { extended & 0xffff_ffff })
}

fn byte_order(i: Insn, a: u64) -> Result<u64, Cause> {
    let swap = i.class() == ALU64 || i.by_reg();
    match (i.imm, swap) {
        (16, false) => Ok(a & 0xffff),
        (32, false) => Ok(a & 0xffff_ffff),
        (64, false) => Ok(a),
        (16, true) => Ok((a as u16).swap_bytes().into()),
        (32, true) => Ok((a as u32).swap_bytes().into()),
        (64, true) => Ok(a.swap_bytes()),
        _ => Err(Cause::Opcode(i.opcode)),
    }
}

fn signed(i: Insn) -> Result<bool, Cause> {
    let may = matches!(i.op(), DIV | MOD);
    match i.off {
        0 => Ok(false),
        1 if may => Ok(true),
        _ => Err(Cause::Opcode(i.opcode)),
    }
}
const DIV: u8 = Alu::Div as u8;
const MOD: u8 = Alu::Mod as u8;

macro_rules! width {
    ($name:ident, $u:ty, $s:ty) => {
        fn $name(i: Insn, a: $u, b: $u) -> Result<$u, Cause> {
            let signed = signed(i)?;
            Ok(match i.op() {
                op if op == Alu::Add as u8 => a.wrapping_add(b),
                op if op == Alu::Sub as u8 => a.wrapping_sub(b),
                op if op == Alu::Mul as u8 => a.wrapping_mul(b),
                DIV if b == 0 => 0,
                DIV if signed => (a as $s).wrapping_div(b as $s) as $u,
                DIV => a / b,
                MOD if b == 0 => a,
                MOD if signed => (a as $s).wrapping_rem(b as $s) as $u,
                MOD => a % b,
                op if op == Alu::Or as u8 => a | b,
                op if op == Alu::And as u8 => a & b,
                op if op == Alu::Xor as u8 => a ^ b,
                op if op == Alu::Lsh as u8 => a.wrapping_shl(b as u32),
                op if op == Alu::Rsh as u8 => a.wrapping_shr(b as u32),
                op if op == Alu::Arsh as u8 => (a as $s).wrapping_shr(b as u32) as $u,
                _ => return Err(Cause::Opcode(i.opcode)),
            })
        }
    };
}
width!(alu64, u64, i64);
width!(alu32, u32, i32);

/// Is the jump taken?
pub(super) fn taken(i: Insn, a: u64, b: u64) -> Result<bool, Cause> {
    let (a, b) = if i.class() == JMP { (a, b) } else { (a as u32 as u64, b as u32 as u64) };
    let sign = |v: u64| if i.class() == JMP { v as i64 } else { i64::from(v as i32) };
    Ok(match i.op() {
        op if op == Cond::Eq as u8 => a == b,
        op if op == Cond::Ne as u8 => a != b,
        op if op == Cond::Gt as u8 => a > b,
        op if op == Cond::Ge as u8 => a >= b,
        op if op == Cond::Lt as u8 => a < b,
        op if op == Cond::Le as u8 => a <= b,
        op if op == Cond::Set as u8 => a & b != 0,
        op if op == Cond::Sgt as u8 => sign(a) > sign(b),
        op if op == Cond::Sge as u8 => sign(a) >= sign(b),
        op if op == Cond::Slt as u8 => sign(a) < sign(b),
        op if op == Cond::Sle as u8 => sign(a) <= sign(b),
        _ => return Err(Cause::Opcode(i.opcode)),
    })
}

/// What an atomic stores over `old`; `r0` is what [`Atomic::CmpXchg`] compares with.
pub(super) fn atomic(op: Atomic, old: u64, src: u64, r0: u64) -> u64 {
    match op {
        Atomic::Add | Atomic::FetchAdd => old.wrapping_add(src),
        Atomic::Or | Atomic::FetchOr => old | src,
        Atomic::And | Atomic::FetchAnd => old & src,
        Atomic::Xor | Atomic::FetchXor => old ^ src,
        Atomic::Xchg => src,
        Atomic::CmpXchg => {
            if old == r0 {
                src
            } else {
                old
            }
        }
    }
}

/// A loaded value, sign-extended if the instruction requires it.
pub(super) fn extended(i: Insn, value: u64) -> Result<u64, Cause> {
    match (i.mode(), Size::of(i.opcode)) {
        (MEM, _) => Ok(value),
        (MEMSX, Size::B) => Ok(value as i8 as u64),
        (MEMSX, Size::H) => Ok(value as i16 as u64),
        (MEMSX, Size::W) => Ok(value as i32 as u64),
        _ => Err(Cause::Opcode(i.opcode)),
    }
}

#[cfg(test)]
mod tests {
    use crate::Reg::*;
    use crate::interp::{Fault, Machine};
    use crate::{Alu, Assembler, Atomic, Endian, Insn, Size, insn};

    fn run(m: &mut Machine, f: impl FnOnce(&mut Assembler)) -> Result<u64, Fault> {
        let mut a = Assembler::new();
        f(&mut a);
        a.exit();
        m.run(&a.finish().unwrap(), &[])
    }

    #[test]
    fn odd_arithmetic() {
        let m = &mut Machine::new();
        let of = |m: &mut Machine, value: u64, f: fn(&mut Assembler)| {
            run(m, |a| {
                a.constant(R0, value);
                f(a);
            })
            .unwrap()
        };
        assert_eq!(of(m, 5, |a| a.neg(R0)), -5i64 as u64);
        assert_eq!(of(m, 5, |a| a.neg32(R0)), 0xffff_fffb);
        assert_eq!(of(m, 0x1122, |a| a.endian(Endian::Big, R0, 16)), 0x2211);
        assert_eq!(of(m, 0x11_2233_4455, |a| a.endian(Endian::Little, R0, 32)), 0x2233_4455);
        assert_eq!(of(m, 0x80, |a| a.mov_signed(R0, R0, 8)), -128i64 as u64);
        assert_eq!(of(m, u64::MAX, |a| a.mov32(R0, R0)), 0xffff_ffff);
        // r0 s/= -1 of the smallest number: it wraps.
        let sdiv = Insn { opcode: insn::ALU64 | Alu::Div as u8, off: 1, imm: -1, ..Insn::default() };
        let smallest = run(m, |a| {
            a.imm64(R0, 1 << 63);
            a.raw(sdiv);
        });
        assert_eq!(smallest, Ok(1 << 63));
        let swap = |a: &mut Assembler| {
            a.store(Size::D, R10, -8, 7);
            a.mov(R0, 7);
            a.mov(R1, 9);
            a.atomic(Atomic::CmpXchg, Size::D, R10, -8, R1);
            a.load(Size::D, R1, R10, -8);
            a.alu(Alu::Lsh, R1, 8);
            a.alu(Alu::Or, R0, R1);
        };
        assert_eq!(run(m, swap), Ok(0x907));
    }
}
