//! The assembler: emitters of instructions, labels, and notes for the disassembly.
//!
//! Not here: what becomes of labels and of dead code (see `link`), and the rules of a program (see [`crate::check`]).
//!
//! Invariant: no emitter fails or panics. The first mistake (a label bound twice, a raw jump) is kept, and
//! [`Assembler::finish`] reports it; so a generator need not look at every emit.

use crate::check::Rejected;
use crate::filter::Unfit;
use crate::helper::Helper;
use crate::insn::*;
use crate::link;
use crate::program::Program;

/// A place in the program, to be bound once and jumped to from anywhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Label(pub(crate) usize);

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

/// Why there is no program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AsmError {
    /// A label was bound a second time.
    BoundTwice(Label),
    /// A label that live code needs was never bound, or not here.
    Unbound(Label),
    /// A label is bound behind the last instruction, and live code goes there.
    BoundAtEnd(Label),
    /// From slot `from` to slot `to` is more than 16 bits can say.
    TooFar {
        /// Slot of the jump.
        from: usize,
        /// Slot of its target.
        to: usize,
    },
    /// [`Assembler::raw`] takes no jumps, calls of local functions or two-slot instructions.
    Raw(Insn),
    /// A filter found no code.
    Filter(Unfit),
    /// The finished instructions break a rule.
    Rejected(Rejected),
}

impl std::fmt::Display for AsmError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            AsmError::BoundTwice(l) => write!(f, "label {} bound twice", l.0),
            AsmError::Unbound(l) => write!(f, "label {} never bound", l.0),
            AsmError::BoundAtEnd(l) => write!(f, "label {} is behind the last instruction", l.0),
            AsmError::TooFar { from, to } => write!(f, "jump from {from} to {to} is out of range"),
            AsmError::Raw(i) => write!(f, "opcode 0x{:02x} cannot be emitted raw", i.opcode),
            AsmError::Filter(u) => u.fmt(f),
            AsmError::Rejected(r) => r.fmt(f),
        }
    }
}
impl std::error::Error for AsmError {}

/// An instruction before it has a slot.
#[derive(Clone, Debug)]
pub(crate) struct Item {
    pub insn: Insn,
    /// `imm` of the second slot, of those that have one.
    pub high: Option<i32>,
    /// Where it jumps, or which function it names.
    pub to: Option<Label>,
    pub note: Option<String>,
}

/// Emits instructions one after the other.
#[derive(Clone, Debug, Default)]
pub struct Assembler {
    pub(crate) items: Vec<Item>,
    /// By label: the item it stands before.
    pub(crate) labels: Vec<Option<usize>>,
    pub(crate) mistake: Option<AsmError>,
    note: Option<String>,
}

impl Assembler {
    /// An empty program.
    pub fn new() -> Assembler {
        Assembler::default()
    }

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

    /// Says what the next instruction is for. Two notes before one instruction are joined.
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
    pub fn finish(self) -> Result<Program, AsmError> {
        link::link(self)
    }

    /// Keeps the first mistake, which [`Assembler::finish`] reports.
    pub(crate) fn mistake(&mut self, e: AsmError) {
        self.mistake.get_or_insert(e);
    }
    fn push(&mut self, insn: Insn, high: Option<i32>, to: Option<Label>) {
        let note = self.note.take();
        self.items.push(Item { insn, high, to, note });
    }
    fn emit(&mut self, opcode: u8, dst: u8, src: u8, off: i16, imm: i32) {
        self.push(Insn { opcode, dst, src, off, imm }, None, None);
    }

    /// Any instruction of one slot that does not say where to go next (exit may).
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
    /// The lower 16, 32 or 64 bits of `dst` in that byte order; the bits above become zero.
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
    /// `dst = value`, in one slot where that can say it.
    pub fn constant(&mut self, dst: Reg, value: u64) {
        match i32::try_from(value as i64) {
            Ok(imm) => self.mov(dst, imm),
            Err(_) => match u32::try_from(value) {
                Ok(low) => self.mov32(dst, low as i32),
                Err(_) => self.imm64(dst, value),
            },
        }
    }
    /// `dst =` the map behind a descriptor.
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
