//! Properties of the interpreter: arithmetic equals a reference, and nothing panics, whatever the bytes.

use proptest::prelude::*;

use super::*;
use crate::Reg::*;
use crate::{Alu, Assembler, Insn, Reg, insn};

const FD: i32 = 5;

fn frame(a: &mut Assembler, dst: Reg, off: i32) {
    a.mov(dst, R10);
    a.alu(Alu::Add, dst, off);
}

/// One step of arithmetic in the property below.
#[derive(Clone, Copy, Debug)]
struct Step(Alu, bool, u8, Result<u8, i32>);

fn steps() -> impl Strategy<Value = Vec<Step>> {
    use Alu::*;
    let op = prop::sample::select(vec![Add, Sub, Mul, Div, Or, And, Lsh, Rsh, Mod, Xor, Arsh]);
    let src = prop_oneof![(0u8..4).prop_map(Ok), any::<i32>().prop_map(Err), (-1..3i32).prop_map(Err)];
    prop::collection::vec((op, any::<bool>(), 0u8..4, src).prop_map(|(a, b, c, d)| Step(a, b, c, d)), 0..40)
}

/// An operation in 128 bits, where nothing overflows and widths are cut at the end.
fn reference(op: Alu, wide: bool, a: u64, b: u64) -> u64 {
    let bits = if wide { 64 } else { 32 };
    let cut = |v: i128| (v & ((1i128 << bits) - 1)) as u64;
    let (a, b) = (i128::from(cut(a.into())), i128::from(cut(b.into())));
    let shift = (b as u32) % bits;
    let signed = if a >> (bits - 1) == 1 { a - (1i128 << bits) } else { a };
    cut(match op {
        Alu::Add => a + b,
        Alu::Sub => a - b,
        Alu::Mul => (a as u128).wrapping_mul(b as u128) as i128,
        Alu::Div => a.checked_div(b).unwrap_or(0),
        Alu::Mod => a.checked_rem(b).unwrap_or(a),
        Alu::Or => a | b,
        Alu::And => a & b,
        Alu::Xor => a ^ b,
        Alu::Lsh => a << shift,
        Alu::Rsh => a >> shift,
        Alu::Arsh => signed >> shift,
    })
}

proptest! {
    #[test]
    fn arithmetic_as_the_reference(start in any::<[u64; 4]>(), steps in steps()) {
        let regs = [R0, R1, R2, R3];
        let mut want = start;
        let mut a = Assembler::new();
        for (reg, value) in regs.iter().zip(start) {
            a.constant(*reg, value);
        }
        for Step(op, wide, dst, src) in steps {
            let dst = usize::from(dst);
            let (operand, value) = match src {
                Ok(reg) => (regs[usize::from(reg)].into(), want[usize::from(reg)]),
                Err(imm) => (crate::Operand::Imm(imm), imm as i64 as u64),
            };
            if wide { a.alu(op, regs[dst], operand) } else { a.alu32(op, regs[dst], operand) }
            want[dst] = reference(op, wide, want[dst], value);
        }
        for (n, reg) in regs.iter().enumerate().skip(1) {
            a.alu(Alu::Mul, R0, n as i32 + 30);
            a.alu(Alu::Xor, R0, *reg);
        }
        a.exit();
        let fold = |sum: u64, (n, w): (usize, &u64)| sum.wrapping_mul(n as u64 + 30) ^ w;
        let sum = want.iter().enumerate().skip(1).fold(want[0], fold);
        prop_assert_eq!(Machine::new().run(&a.finish().unwrap(), &[]), Ok(sum));
    }

    #[test]
    fn any_bytes_are_harmless(words in prop::collection::vec(any::<[u8; 8]>(), 1..30), ctx in any::<[u8; 16]>()) {
        let insns: Vec<Insn> = words.into_iter().map(Insn::from_bytes).collect();
        let _ = crate::check::check(&insns);
        let _ = crate::disasm::listing(&insns, &BTreeMap::new());
        let mut m = Machine { limit: 1000, ..Machine::new() };
        m.add_array(0, 8, 1);
        let _ = run::run(&mut m, helpers::call, &insns, &ctx);
    }

    #[test]
    fn any_call_is_harmless(id in 0i32..220, args in any::<[u64; 5]>(), small in any::<[bool; 5]>()) {
        let mut m = Machine::new();
        m.add_ring(FD, 4096);
        let mut a = Assembler::new();
        frame(&mut a, R6, -64);
        a.map_fd(R7, FD);
        for (n, reg) in [R1, R2, R3, R4, R5].into_iter().enumerate() {
            match (small[n], args[n] % 4) {
                (true, 0) => a.mov(reg, R6),
                (true, 1) => a.mov(reg, R7),
                (true, _) => a.constant(reg, args[n] % 65),
                _ => a.constant(reg, args[n]),
            }
        }
        a.raw(Insn { opcode: insn::JMP | insn::CALL, imm: id, ..Insn::default() });
        a.mov(R0, 0);
        a.exit();
        let _ = m.run(&a.finish().unwrap(), &[]);
    }
}
