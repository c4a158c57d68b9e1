//! The assembler: emitters of instructions, labels, and notes for the disassembly.
//!
//! Not here: resolving labels and removing dead code (see `link`), and the rules of a program (see [`crate::check`]).
//!
//! Invariant: no emitter fails or panics. The first mistake (a label bound twice, a raw jump) is kept, and
//! [`Assembler::finish`] reports it; so a generator need not check every emit.

use crate::helper::Helper;
use crate::insn::*;
use crate::link::{self, Item};
use crate::program::Program;
use std::convert::Infallible;

pub use crate::link::AsmError;
pub use crate::program::Label;

/// The second operand of arithmetic, stores and comparisons.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operand {
    /// A register.
    Reg(Reg),
    /// A constant, sign-extended to 64 bits by the 64-bit operations.
    Imm(i32),
}

impl From<Reg> for Operand {
    fn from(r: Reg) -> Operand {
        Operand::Reg(r)
    }
}
impl From<i32> for Operand {
    fn from(imm: i32) -> Operand {
        Operand::Imm(imm)
    }
}

impl Operand {
    /// (K or X, src, imm)
    fn split(self) -> (u8, u8, i32) {
        match self {
            Operand::Reg(r) => (X, r as u8, 0),
            Operand::Imm(imm) => (K, 0, imm),
        }
    }
}

/// Emits instructions one after the other. `E` is the error type of its user's code: see [`Assembler::fail`].
#[derive(Clone, Debug)]
pub struct Assembler<E = Infallible> {
    items: Vec<Item>,
    /// By label: the item that it is bound to.
    labels: Vec<Option<usize>>,
    mistake: Option<AsmError<E>>,
    note: Option<String>,
}

impl<E> Default for Assembler<E> {
    fn default() -> Assembler<E> {
        Assembler { items: Vec::new(), labels: Vec::new(), mistake: None, note: None }
    }
}

impl Assembler {
    /// An empty program, of a generator that cannot fail.
    pub fn new() -> Assembler {
        Assembler::default()
    }
}

impl<E> Assembler<E> {
    /// A label that is not bound yet.
    pub fn new_label(&mut self) -> Label {
        self.labels.push(None);
        Label(self.labels.len() - 1)
    }

    /// Binds a label to the next instruction.
    pub fn bind(&mut self, label: Label) {
        let here = self.items.len();
        match self.labels.get_mut(label.0) {
            Some(at @ None) => *at = Some(here),
            Some(Some(_)) => self.mistake(AsmError::BoundTwice(label)),
            None => self.mistake(AsmError::Unbound(label)),
        }
    }

    /// A new label, bound to the next instruction.
    pub fn here(&mut self) -> Label {
        let label = self.new_label();
        self.bind(label);
        label
    }

    /// Adds a note that explains the next instruction. Two notes before one instruction are joined.
    pub fn note(&mut self, text: impl Into<String>) {
        let text = text.into();
        self.note = Some(match self.note.take() {
            Some(before) => before + "; " + &text,
            None => text,
        });
    }

    /// How many instructions were emitted, dead ones included.
    pub fn len(&self) -> usize {
        self.items.len()
    }
    /// Nothing was emitted yet.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Removes dead code, gives every instruction its slot and every jump its distance, and checks the rules.
    pub fn finish(self) -> Result<Program, AsmError<E>> {
        match self.mistake {
            Some(mistake) => Err(mistake),
            None => link::link(&self.items, &self.labels),
        }
    }

    /// Records that the generator cannot make the code; [`Assembler::finish`] then fails with this error.
    pub fn fail(&mut self, e: E) {
        self.mistake(AsmError::Generator(e));
    }

    /// Keeps the first mistake.
    fn mistake(&mut self, e: AsmError<E>) {
        self.mistake.get_or_insert(e);
    }
    fn push(&mut self, insn: Insn, high: Option<i32>, to: Option<Label>) {
        let note = self.note.take();
        self.items.push(Item { insn, high, to, note });
    }
    fn emit(&mut self, opcode: u8, dst: u8, src: u8, off: i16, imm: i32) {
        self.push(Insn { opcode, dst, src, off, imm }, None, None);
    }

    /// Any instruction of one slot that is not a jump (exit is allowed).
    pub fn raw(&mut self, insn: Insn) {
        if insn.is_wide() || insn.names_function() || matches!(insn.flow(), Flow::Goto | Flow::Branch) {
            return self.mistake(AsmError::Raw(insn));
        }
        self.push(insn, None, None);
    }

    fn arithmetic(&mut self, class: u8, op: u8, dst: Reg, src: Operand) {
        let (x, src, imm) = src.split();
        self.emit(class | op | x, dst as u8, src, 0, imm);
    }
    /// `dst = src`
    pub fn mov(&mut self, dst: Reg, src: impl Into<Operand>) {
        self.arithmetic(ALU64, MOV, dst, src.into());
    }
    /// `dst = src` of the lower half; the upper half becomes zero.
    pub fn mov32(&mut self, dst: Reg, src: impl Into<Operand>) {
        self.arithmetic(ALU, MOV, dst, src.into());
    }
    /// `dst = src` of 8, 16 or 32 bits, sign-extended to 64 (6.6).
    pub fn mov_signed(&mut self, dst: Reg, src: Reg, bits: i16) {
        self.emit(ALU64 | MOV | X, dst as u8, src as u8, bits, 0);
    }
    /// `dst op= src`
    pub fn alu(&mut self, op: Alu, dst: Reg, src: impl Into<Operand>) {
        self.arithmetic(ALU64, op as u8, dst, src.into());
    }
    /// `dst op= src` in 32 bits; the upper half becomes zero.
    pub fn alu32(&mut self, op: Alu, dst: Reg, src: impl Into<Operand>) {
        self.arithmetic(ALU, op as u8, dst, src.into());
    }
    /// `dst = -dst`
    pub fn neg(&mut self, dst: Reg) {
        self.emit(ALU64 | NEG, dst as u8, 0, 0, 0);
    }
    /// `dst = -dst` in 32 bits.
    pub fn neg32(&mut self, dst: Reg) {
        self.emit(ALU | NEG, dst as u8, 0, 0, 0);
    }
    /// The lower 16, 32 or 64 bits of `dst` in that byte order; the bits above are set to zero.
    pub fn endian(&mut self, to: Endian, dst: Reg, bits: i32) {
        let x = if to == Endian::Big { X } else { K };
        self.emit(ALU | END | x, dst as u8, 0, 0, bits);
    }

    /// `dst = *(size *)(base + off)`
    pub fn load(&mut self, size: Size, dst: Reg, base: Reg, off: i16) {
        self.emit(LDX | MEM | size as u8, dst as u8, base as u8, off, 0);
    }
    /// `dst = *(signed size *)(base + off)`, sign-extended; up to four bytes (6.6).
    pub fn load_signed(&mut self, size: Size, dst: Reg, base: Reg, off: i16) {
        self.emit(LDX | MEMSX | size as u8, dst as u8, base as u8, off, 0);
    }
    /// `*(size *)(base + off) = src`
    pub fn store(&mut self, size: Size, base: Reg, off: i16, src: impl Into<Operand>) {
        let (x, src, imm) = src.into().split();
        let class = if x == X { STX } else { ST };
        self.emit(class | MEM | size as u8, base as u8, src, off, imm);
    }
    /// `*(size *)(base + off) op= src`, atomically; `size` is W or D.
    pub fn atomic(&mut self, op: Atomic, size: Size, base: Reg, off: i16, src: Reg) {
        self.emit(STX | ATOMIC | size as u8, base as u8, src as u8, off, op as i32);
    }

    fn wide(&mut self, dst: Reg, src: u8, imm: i32, high: i32, to: Option<Label>) {
        self.push(Insn { opcode: LD_IMM64, dst: dst as u8, src, off: 0, imm }, Some(high), to);
    }
    /// `dst = value`, in two slots.
    pub fn imm64(&mut self, dst: Reg, value: u64) {
        self.wide(dst, 0, value as u32 as i32, (value >> 32) as u32 as i32, None);
    }
    /// `dst = value`, in one slot if the value fits.
    pub fn constant(&mut self, dst: Reg, value: u64) {
        match i32::try_from(value as i64) {
            Ok(imm) => self.mov(dst, imm),
            Err(_) => match u32::try_from(value) {
                Ok(low) => self.mov32(dst, low as i32),
                Err(_) => self.imm64(dst, value),
            },
        }
    }
    /// `dst =` the map of a descriptor.
    pub fn map_fd(&mut self, dst: Reg, fd: i32) {
        self.wide(dst, PSEUDO_MAP_FD, fd, 0, None);
    }
    /// `dst =` the address of byte `off` of an array's only value.
    pub fn map_value(&mut self, dst: Reg, fd: i32, off: u32) {
        self.wide(dst, PSEUDO_MAP_VALUE, fd, off as i32, None);
    }
    /// `dst =` a function of this program, for a helper that calls back.
    pub fn func(&mut self, dst: Reg, label: Label) {
        self.wide(dst, PSEUDO_FUNC, 0, 0, Some(label));
    }

    /// Calls a helper.
    pub fn call(&mut self, helper: Helper) {
        self.emit(JMP | CALL, 0, 0, 0, helper.id());
    }
    /// Calls a kernel function of vmlinux by BTF id.
    pub fn call_kfunc(&mut self, btf_id: i32) {
        self.emit(JMP | CALL, 0, PSEUDO_KFUNC_CALL, 0, btf_id);
    }
    /// Calls a function of this program.
    pub fn call_local(&mut self, label: Label) {
        self.push(Insn { opcode: JMP | CALL, src: PSEUDO_CALL, ..Insn::default() }, None, Some(label));
    }
    /// Returns R0.
    pub fn exit(&mut self) {
        self.emit(JMP | EXIT, 0, 0, 0, 0);
    }

    /// Goes to `label`.
    pub fn jump(&mut self, label: Label) {
        self.push(Insn { opcode: JMP | JA, ..Insn::default() }, None, Some(label));
    }
    fn branch(&mut self, class: u8, cond: Cond, dst: Reg, src: Operand, label: Label) {
        let (x, src, imm) = src.split();
        let insn = Insn { opcode: class | cond as u8 | x, dst: dst as u8, src, off: 0, imm };
        self.push(insn, None, Some(label));
    }
    /// Goes to `label` if `dst cond src`, in 64 bits.
    pub fn jump_if(&mut self, cond: Cond, dst: Reg, src: impl Into<Operand>, label: Label) {
        self.branch(JMP, cond, dst, src.into(), label);
    }
    /// Goes to `label` if `dst cond src`, of the lower halves.
    pub fn jump_if32(&mut self, cond: Cond, dst: Reg, src: impl Into<Operand>, label: Label) {
        self.branch(JMP32, cond, dst, src.into(), label);
    }
    /// Goes to `label` once the kernel finds that this loop ran long enough (6.9).
    pub fn may_goto(&mut self, label: Label) {
        self.push(Insn { opcode: JMP | JCOND, ..Insn::default() }, None, Some(label));
    }
}
