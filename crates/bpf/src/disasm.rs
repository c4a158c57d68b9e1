//! Instructions as text, as the kernel's verifier and bpftool write them (`kernel/bpf/disasm.c`, 6.18).
//!
//! Not an input format: nothing reads this text back. Where the kernel prints an address for a map, the descriptor is
//! shown (`map[fd:5]`).
//!
//! Invariant: every instruction has a text; what the kernel would call a bug is shown as `(xx) ?` with its fields.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::check::named_function;
use crate::helper::Helper;
use crate::insn::*;

/// Where the notes start.
const NOTE_COLUMN: usize = 48;

/// The whole program, a line per instruction, `;` before the comments.
pub fn listing(insns: &[Insn], comments: &BTreeMap<usize, String>) -> String {
    let mut out = String::new();
    let mut pc = 0;
    while let Some(insn) = insns.get(pc) {
        let text = format!("{pc:4}: ({:02x}) {}", insn.opcode, line(*insn, insns.get(pc + 1).copied()));
        let _ = match comments.get(&pc) {
            Some(note) => writeln!(out, "{text:NOTE_COLUMN$} ; {note}"),
            None => writeln!(out, "{text}"),
        };
        pc += if insn.is_wide() { 2 } else { 1 };
    }
    out
}

/// One instruction; `second` is the slot after it, which a 64-bit immediate needs.
pub fn line(insn: Insn, second: Option<Insn>) -> String {
    let text = match insn.class() {
        ALU | ALU64 => arithmetic(insn),
        LDX => load(insn),
        ST | STX => store(insn),
        JMP | JMP32 => jump(insn),
        _ => wide(insn, second),
    };
    text.unwrap_or_else(|| format!("? dst={} src={} off={} imm={}", insn.dst, insn.src, insn.off, insn.imm))
}

fn arithmetic(i: Insn) -> Option<String> {
    let r = if i.class() == ALU64 { 'r' } else { 'w' };
    let dst = i.dst;
    Some(match i.op() {
        END => byte_order(i),
        NEG => format!("{r}{dst} = -{r}{dst}"),
        MOV if i.by_reg() && i.off != 0 => format!("{r}{dst} = (s{}){r}{}", i.off, i.src),
        op => {
            let sign = if i.off == 1 && matches!(op, 0x30 | 0x90) { "s" } else { "" };
            format!("{r}{dst} {sign}{} {}", alu_sign(op)?, second_operand(i, r, |imm| imm.to_string()))
        }
    })
}

fn byte_order(i: Insn) -> String {
    let how = match (i.class(), i.by_reg()) {
        (ALU64, _) => "bswap",
        (_, true) => "be",
        (_, false) => "le",
    };
    format!("r{0} = {how}{1} r{0}", i.dst, i.imm)
}

fn second_operand(i: Insn, r: char, imm: impl FnOnce(i32) -> String) -> String {
    if i.by_reg() { format!("{r}{}", i.src) } else { imm(i.imm) }
}

fn alu_sign(op: u8) -> Option<&'static str> {
    const SIGNS: [&str; 13] = ["+=", "-=", "*=", "/=", "|=", "&=", "<<=", ">>=", "", "%=", "^=", "=", "s>>="];
    SIGNS.get(usize::from(op >> 4)).copied().filter(|s| !s.is_empty())
}

fn cond_sign(op: u8) -> Option<&'static str> {
    const SIGNS: [&str; 14] = ["", "==", ">", ">=", "&", "!=", "s>", "s>=", "", "", "<", "<=", "s<", "s<="];
    SIGNS.get(usize::from(op >> 4)).copied().filter(|s| !s.is_empty())
}

fn type_of(i: Insn) -> &'static str {
    match (Size::of(i.opcode), i.class() == LDX && i.mode() == MEMSX) {
        (Size::B, false) => "u8",
        (Size::H, false) => "u16",
        (Size::W, false) => "u32",
        (Size::D, false) => "u64",
        (Size::B, true) => "s8",
        (Size::H, true) => "s16",
        (Size::W, true) => "s32",
        (Size::D, true) => "s64",
    }
}

fn load(i: Insn) -> Option<String> {
    matches!(i.mode(), MEM | MEMSX).then(|| format!("r{} = *({} *)(r{} {:+})", i.dst, type_of(i), i.src, i.off))
}

fn store(i: Insn) -> Option<String> {
    match (i.class(), i.mode()) {
        (ST, MEM) => Some(format!("*({} *)(r{} {:+}) = {}", type_of(i), i.dst, i.off, i.imm)),
        (STX, MEM) => Some(format!("*({} *)(r{} {:+}) = r{}", type_of(i), i.dst, i.off, i.src)),
        (STX, ATOMIC) => atomic(i),
        _ => None,
    }
}

fn atomic(i: Insn) -> Option<String> {
    let (ty, dst, off, src) = (type_of(i), i.dst, i.off, i.src);
    let wide = if Size::of(i.opcode) == Size::D { "64" } else { "" };
    let fetch = |name: &str| format!("r{src} = atomic{wide}_{name}(({ty} *)(r{dst} {off:+}), r{src})");
    let lock = |sign: &str| format!("lock *({ty} *)(r{dst} {off:+}) {sign} r{src}");
    Some(match Atomic::of(i.imm)? {
        Atomic::Add => lock("+="),
        Atomic::Or => lock("|="),
        Atomic::And => lock("&="),
        Atomic::Xor => lock("^="),
        Atomic::FetchAdd => fetch("fetch_add"),
        Atomic::FetchOr => fetch("fetch_or"),
        Atomic::FetchAnd => fetch("fetch_and"),
        Atomic::FetchXor => fetch("fetch_xor"),
        Atomic::Xchg => fetch("xchg"),
        Atomic::CmpXchg => format!("r0 = atomic{wide}_cmpxchg(({ty} *)(r{dst} {off:+}), r0, r{src})"),
    })
}

fn jump(i: Insn) -> Option<String> {
    let r = if i.class() == JMP { 'r' } else { 'w' };
    Some(match (i.class(), i.op()) {
        (JMP, CALL) => call(i),
        (JMP, EXIT) => "exit".to_owned(),
        (JMP, JA) => format!("goto pc{:+}", i.off),
        (JMP32, JA) => format!("gotol pc{:+}", i.imm),
        (JMP, JCOND) => format!("may_goto pc{:+}", i.off),
        (_, op) => {
            let second = second_operand(i, r, |imm| format!("0x{imm:x}"));
            format!("if {r}{} {} {second} goto pc{:+}", i.dst, cond_sign(op)?, i.off)
        }
    })
}

fn call(i: Insn) -> String {
    match i.src {
        PSEUDO_CALL => format!("call pc{:+}", i.imm),
        PSEUDO_KFUNC_CALL => format!("call kernel-function#{}", i.imm),
        _ => format!("call {}#{}", Helper::from_id(i.imm).map_or("unknown", Helper::name), i.imm),
    }
}

fn wide(i: Insn, second: Option<Insn>) -> Option<String> {
    let high = second.filter(|_| i.is_wide())?.imm;
    let value = u64::from(high as u32) << 32 | u64::from(i.imm as u32);
    Some(match i.src {
        PSEUDO_MAP_FD => format!("r{} = map[fd:{}]", i.dst, i.imm),
        PSEUDO_MAP_VALUE => format!("r{} = map[fd:{}][0]+{}", i.dst, i.imm, high as u32),
        PSEUDO_FUNC => format!("r{} = subprog[{:+}]", i.dst, named_function(0, i) - 1),
        _ => format!("r{} = 0x{value:x}", i.dst),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Assembler, Reg::*};

    #[test]
    fn as_the_kernel_writes_it() {
        let mut a = Assembler::new();
        let (end, f) = (a.new_label(), a.new_label());
        a.note("pt_regs.di");
        a.load(Size::D, R1, R6, 112);
        a.load_signed(Size::W, R1, R6, -4);
        a.store(Size::B, R10, -8, 7);
        a.store(Size::H, R10, -8, R1);
        a.atomic(Atomic::Add, Size::D, R1, 0, R2);
        a.atomic(Atomic::FetchAdd, Size::D, R1, 8, R2);
        a.atomic(Atomic::CmpXchg, Size::W, R1, 0, R2);
        a.call(Helper::KtimeGetNs);
        a.jump_if(Cond::Eq, R0, 0, end);
        a.jump_if32(Cond::Sle, R0, R2, end);
        a.jump_if(Cond::Ne, R0, -1, end);
        a.alu(Alu::Arsh, R1, 3);
        a.alu32(Alu::Add, R1, -1);
        a.mov32(R2, R3);
        a.mov_signed(R2, R3, 8);
        a.neg(R1);
        a.endian(Endian::Big, R1, 16);
        a.imm64(R1, 0xffff_0000_1234);
        a.map_fd(R1, 5);
        a.map_value(R1, 5, 16);
        a.func(R1, f);
        a.call_local(f);
        a.call_kfunc(1234);
        a.may_goto(end);
        a.bind(end);
        a.exit();
        a.bind(f);
        a.exit();
        let want = "   0: (79) r1 = *(u64 *)(r6 +112)                ; pt_regs.di
   1: (81) r1 = *(s32 *)(r6 -4)
   2: (72) *(u8 *)(r10 -8) = 7
   3: (6b) *(u16 *)(r10 -8) = r1
   4: (db) lock *(u64 *)(r1 +0) += r2
   5: (db) r2 = atomic64_fetch_add((u64 *)(r1 +8), r2)
   6: (c3) r0 = atomic_cmpxchg((u32 *)(r1 +0), r0, r2)
   7: (85) call bpf_ktime_get_ns#5
   8: (15) if r0 == 0x0 goto pc+19
   9: (de) if w0 s<= w2 goto pc+18
  10: (55) if r0 != 0xffffffff goto pc+17
  11: (c7) r1 s>>= 3
  12: (04) w1 += -1
  13: (bc) w2 = w3
  14: (bf) r2 = (s8)r3
  15: (87) r1 = -r1
  16: (dc) r1 = be16 r1
  17: (18) r1 = 0xffff00001234
  19: (18) r1 = map[fd:5]
  21: (18) r1 = map[fd:5][0]+16
  23: (18) r1 = subprog[+5]
  25: (85) call pc+3
  26: (85) call kernel-function#1234
  27: (e5) may_goto pc+0
  28: (95) exit
  29: (95) exit
";
        assert_eq!(a.finish().unwrap().to_string(), want);
    }

    #[test]
    fn every_opcode_has_a_text() {
        for opcode in 0..=255 {
            let insn = Insn { opcode, dst: 15, src: 15, off: i16::MIN, imm: i32::MIN };
            assert!(!line(insn, None).is_empty());
            assert!(!line(insn, Some(insn)).is_empty());
        }
    }
}
