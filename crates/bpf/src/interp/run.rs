//! The loop: instruction after instruction, frame after frame.
//!
//! Not here: arithmetic, memory and helpers.
//!
//! Invariant: a register that the kernel's verifier would call uninitialised is `None`, and reading it is a fault; `pc`
//! stays where a fault happened.

use super::{Cause, Fault, Machine, alu};
use crate::check::named_function;
use crate::insn::*;

/// Frames that may nest (`MAX_CALL_FRAMES`, include/linux/bpf_verifier.h, 6.18).
const FRAMES: usize = 8;

/// Carries out the helper with this number; None is a helper without result.
pub(super) type Helpers = fn(&mut Run<'_>, i32) -> Result<Option<u64>, Cause>;

/// A run of a program.
pub(super) struct Run<'a> {
    pub machine: &'a mut Machine,
    helpers: Helpers,
    insns: &'a [Insn],
    regs: [Option<u64>; 11],
    pc: usize,
    steps: u64,
    loops: u32,
    depth: usize,
}

pub(super) fn run(machine: &mut Machine, helpers: Helpers, insns: &[Insn], ctx: &[u8]) -> Result<u64, Fault> {
    let ctx = machine.memory.add_ctx(ctx);
    let loops = machine.loop_budget;
    let mut run = Run { machine, helpers, insns, regs: [None; 11], pc: 0, steps: 0, loops, depth: 0 };
    let result = run.function(0, [Some(ctx), None, None, None, None]);
    let pc = run.pc;
    machine.memory.pop(ctx);
    let open = machine.abandon_records();
    match result {
        Ok(_) if open > 0 => Err(Fault { pc, cause: Cause::Unreleased(open) }),
        Ok(r0) => Ok(r0),
        Err(cause) => Err(Fault { pc, cause }),
    }
}

impl Run<'_> {
    /// Calls the function at `entry` and gives its R0; the caller's R6 to R10 and pc are as before.
    pub fn function(&mut self, entry: usize, args: [Option<u64>; 5]) -> Result<u64, Cause> {
        if self.depth == FRAMES {
            return Err(Cause::Depth);
        }
        let stack = self.machine.memory.add_stack(STACK);
        let [a, b, c, d, e] = args;
        let frame = Some(stack + STACK as u64);
        let regs = [None, a, b, c, d, e, None, None, None, None, frame];
        let saved = (std::mem::replace(&mut self.regs, regs), self.pc);
        self.pc = entry;
        self.depth += 1;
        let result = self.until_exit();
        self.depth -= 1;
        self.machine.memory.pop(stack);
        let at_exit = self.pc;
        (self.regs, self.pc) = saved;
        if result.is_err() || self.depth == 0 {
            self.pc = at_exit;
        }
        result
    }

    fn until_exit(&mut self) -> Result<u64, Cause> {
        loop {
            let insn = *self.insns.get(self.pc).ok_or(Cause::Pc)?;
            self.steps += 1;
            if self.steps > self.machine.limit {
                return Err(Cause::Limit);
            }
            if insn.class() == JMP && insn.op() == EXIT {
                return self.get(0);
            }
            self.step(insn)?;
        }
    }

    pub fn get(&self, reg: u8) -> Result<u64, Cause> {
        let value = self.regs.get(usize::from(reg)).ok_or(Cause::Register(reg))?;
        value.ok_or(Cause::Uninitialised(reg))
    }
    /// R1 to R5 as they are.
    pub fn args(&self) -> [Option<u64>; 5] {
        [self.regs[1], self.regs[2], self.regs[3], self.regs[4], self.regs[5]]
    }
    fn set(&mut self, reg: u8, value: u64) -> Result<(), Cause> {
        match self.regs.get_mut(usize::from(reg)) {
            Some(to) if reg < Reg::R10 as u8 => {
                *to = Some(value);
                Ok(())
            }
            _ => Err(Cause::Register(reg)),
        }
    }
    fn second(&self, i: Insn) -> Result<u64, Cause> {
        if i.by_reg() { self.get(i.src) } else { Ok(i.imm as i64 as u64) }
    }

    fn step(&mut self, i: Insn) -> Result<(), Cause> {
        match i.class() {
            ALU | ALU64 => self.arithmetic(i)?,
            LDX => {
                let address = self.get(i.src)?.wrapping_add_signed(i.off.into());
                let value = self.machine.memory.load(address, Size::of(i.opcode).bytes())?;
                self.set(i.dst, alu::extended(i, value)?)?;
            }
            ST | STX => self.store(i)?,
            JMP | JMP32 => return self.jump(i),
            _ => return self.wide(i),
        }
        self.pc += 1;
        Ok(())
    }

    fn arithmetic(&mut self, i: Insn) -> Result<(), Cause> {
        let first = if i.op() == MOV { 0 } else { self.get(i.dst)? };
        let second = if matches!(i.op(), NEG | END) { 0 } else { self.second(i)? };
        self.set(i.dst, alu::alu(i, first, second)?)
    }

    fn store(&mut self, i: Insn) -> Result<(), Cause> {
        let address = self.get(i.dst)?.wrapping_add_signed(i.off.into());
        let len = Size::of(i.opcode).bytes();
        match (i.class(), i.mode()) {
            (ST, MEM) => self.machine.memory.store(address, len, i.imm as i64 as u64),
            (STX, MEM) => self.machine.memory.store(address, len, self.get(i.src)?),
            (STX, ATOMIC) if len >= 4 => self.atomic(i, address, len),
            _ => Err(Cause::Opcode(i.opcode)),
        }
    }

    fn atomic(&mut self, i: Insn, address: u64, len: usize) -> Result<(), Cause> {
        let op = Atomic::of(i.imm).ok_or(Cause::Opcode(i.opcode))?;
        let old = self.machine.memory.load(address, len)?;
        let cut = |v: u64| if len == 4 { v & 0xffff_ffff } else { v };
        let r0 = if op == Atomic::CmpXchg { cut(self.get(0)?) } else { 0 };
        let new = alu::atomic(op, old, cut(self.get(i.src)?), r0);
        self.machine.memory.store(address, len, new)?;
        match op {
            Atomic::CmpXchg => self.set(0, old),
            _ if i.imm & FETCH != 0 => self.set(i.src, old),
            _ => Ok(()),
        }
    }

    fn go(&mut self, distance: i64) -> Result<(), Cause> {
        self.pc = usize::try_from(self.pc as i64 + 1 + distance).map_err(|_| Cause::Pc)?;
        Ok(())
    }

    fn jump(&mut self, i: Insn) -> Result<(), Cause> {
        let jumps = match (i.class(), i.op()) {
            (_, JA) => true,
            (JMP, CALL) => {
                self.call(i)?;
                false
            }
            (JMP, JCOND) => match self.loops.checked_sub(1) {
                Some(left) => {
                    self.loops = left;
                    false
                }
                None => true,
            },
            _ => alu::taken(i, self.get(i.dst)?, self.second(i)?)?,
        };
        self.go(if jumps { i.distance() } else { 0 })
    }

    fn call(&mut self, i: Insn) -> Result<(), Cause> {
        let r0 = match i.src {
            0 => (self.helpers)(self, i.imm)?,
            PSEUDO_CALL => {
                let entry = usize::try_from(named_function(self.pc, i)).map_err(|_| Cause::Pc)?;
                Some(self.function(entry, self.args())?)
            }
            PSEUDO_KFUNC_CALL => {
                let kfunc = *self.machine.kfuncs.get(&i.imm).ok_or(Cause::Kfunc(i.imm))?;
                let args = self.args().map(|a| a.unwrap_or(0));
                Some(kfunc(self.machine, args))
            }
            _ => return Err(Cause::Opcode(i.opcode)),
        };
        self.regs[..6].fill(None);
        self.regs[0] = r0;
        Ok(())
    }

    fn wide(&mut self, i: Insn) -> Result<(), Cause> {
        let high = self.insns.get(self.pc + 1).ok_or(Cause::Pc)?.imm as u32;
        let value = match i.src {
            _ if !i.is_wide() => return Err(Cause::Opcode(i.opcode)),
            0 => u64::from(high) << 32 | u64::from(i.imm as u32),
            PSEUDO_MAP_FD => self.machine.map_handle(i.imm)?,
            PSEUDO_MAP_VALUE => self.machine.map_value(i.imm)?.wrapping_add(high.into()),
            PSEUDO_FUNC => named_function(self.pc, i) as u64,
            _ => return Err(Cause::Opcode(i.opcode)),
        };
        self.set(i.dst, value)?;
        self.pc += 2;
        Ok(())
    }
}
