//! One instruction, its eight bytes, and the numbers it is made of.
//!
//! Not here: which instructions make a program (see [`crate::check`]), and the helpers' numbers (see [`crate::helper`]).
//!
//! ```text
//! byte   0        1            2..4      4..8
//!        opcode   src:4 dst:4  off i16   imm i32      little-endian
//! ```
//! Invariant: every 8 bytes are an [`Insn`] and back; an `Insn` whose registers are below 16 loses nothing on the way.
//! The numbers are those of `include/uapi/linux/bpf_common.h` and `include/uapi/linux/bpf.h`, Linux 6.18, without `BPF_`.

/// Class: load an immediate.
pub const LD: u8 = 0x00;
/// Class: load from memory.
pub const LDX: u8 = 0x01;
/// Class: store an immediate.
pub const ST: u8 = 0x02;
/// Class: store a register, and the atomics.
pub const STX: u8 = 0x03;
/// Class: arithmetic in 32 bits; the upper half of the result is zero.
pub const ALU: u8 = 0x04;
/// Class: jumps that compare 64 bits, calls and exit.
pub const JMP: u8 = 0x05;
/// Class: jumps that compare 32 bits.
pub const JMP32: u8 = 0x06;
/// Class: arithmetic in 64 bits.
pub const ALU64: u8 = 0x07;

/// Mode: plain memory.
pub const MEM: u8 = 0x60;
/// Mode of [`LDX`]: memory, sign-extended (6.6).
pub const MEMSX: u8 = 0x80;
/// Mode of [`STX`]: atomic; `imm` is the operation.
pub const ATOMIC: u8 = 0xc0;

/// The second operand is `imm`.
pub const K: u8 = 0x00;
/// The second operand is `src`.
pub const X: u8 = 0x08;

/// Arithmetic: negate.
pub const NEG: u8 = 0x80;
/// Arithmetic: move.
pub const MOV: u8 = 0xb0;
/// Arithmetic: change of byte order.
pub const END: u8 = 0xd0;

/// Jump: always.
pub const JA: u8 = 0x00;
/// Jump: call.
pub const CALL: u8 = 0x80;
/// Jump: return.
pub const EXIT: u8 = 0x90;
/// Jump: `may_goto`, taken when the loop's budget is spent (6.9, `BPF_JCOND`).
pub const JCOND: u8 = 0xe0;

/// Opcode of the first slot of a 64-bit immediate, `LD | IMM | DW`.
pub const LD_IMM64: u8 = 0x18;

/// `src` of [`LD_IMM64`]: `imm` is a map's descriptor.
pub const PSEUDO_MAP_FD: u8 = 1;
/// `src` of [`LD_IMM64`]: a map's descriptor, and in the second slot an offset into its only value.
pub const PSEUDO_MAP_VALUE: u8 = 2;
/// `src` of [`LD_IMM64`]: a function of this program.
pub const PSEUDO_FUNC: u8 = 4;
/// `src` of a call: a function of this program.
pub const PSEUDO_CALL: u8 = 1;
/// `src` of a call: a kernel function by BTF id.
pub const PSEUDO_KFUNC_CALL: u8 = 2;

/// Atomic: the old value comes back.
pub const FETCH: i32 = 0x01;

/// Bytes of stack that a function has (`MAX_BPF_STACK`, include/linux/filter.h).
pub const STACK: usize = 512;
/// Instructions that a program may have (`BPF_COMPLEXITY_LIMIT_INSNS`, include/linux/bpf.h).
pub const MAX_INSNS: usize = 1_000_000;

/// A register. R0 is the result, R1 to R5 are arguments (lost over a call), R6 to R9 stay, R10 is the read-only frame.
#[allow(missing_docs)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Reg {
    R0,
    R1,
    R2,
    R3,
    R4,
    R5,
    R6,
    R7,
    R8,
    R9,
    R10,
}

/// How many bytes a load or a store moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Size {
    /// One.
    B = 0x10,
    /// Two.
    H = 0x08,
    /// Four.
    W = 0x00,
    /// Eight.
    D = 0x18,
}

impl Size {
    /// From an opcode.
    pub fn of(opcode: u8) -> Size {
        match opcode & 0x18 {
            0x10 => Size::B,
            0x08 => Size::H,
            0x00 => Size::W,
            _ => Size::D,
        }
    }
    /// In bytes.
    pub fn bytes(self) -> usize {
        match self {
            Size::B => 1,
            Size::H => 2,
            Size::W => 4,
            Size::D => 8,
        }
    }
}

/// An arithmetic operation of two operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Alu {
    /// `+`
    Add = 0x00,
    /// `-`
    Sub = 0x10,
    /// `*`
    Mul = 0x20,
    /// Unsigned `/`; by zero gives zero.
    Div = 0x30,
    /// `|`
    Or = 0x40,
    /// `&`
    And = 0x50,
    /// `<<`; the count is taken modulo the width.
    Lsh = 0x60,
    /// Unsigned `>>`
    Rsh = 0x70,
    /// Unsigned `%`; by zero leaves the first operand.
    Mod = 0x90,
    /// `^`
    Xor = 0xa0,
    /// Signed `>>`
    Arsh = 0xc0,
}

/// What a conditional jump asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Cond {
    /// `==`
    Eq = 0x10,
    /// Unsigned `>`
    Gt = 0x20,
    /// Unsigned `>=`
    Ge = 0x30,
    /// Any bit in common.
    Set = 0x40,
    /// `!=`
    Ne = 0x50,
    /// Signed `>`
    Sgt = 0x60,
    /// Signed `>=`
    Sge = 0x70,
    /// Unsigned `<`
    Lt = 0xa0,
    /// Unsigned `<=`
    Le = 0xb0,
    /// Signed `<`
    Slt = 0xc0,
    /// Signed `<=`
    Sle = 0xd0,
}

/// An atomic operation on memory, four or eight bytes wide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Atomic {
    /// Add.
    Add = 0x00,
    /// Or.
    Or = 0x40,
    /// And.
    And = 0x50,
    /// Exclusive or.
    Xor = 0xa0,
    /// Add; the source register gets the old value.
    FetchAdd = 0x01,
    /// Or; the source register gets the old value.
    FetchOr = 0x41,
    /// And; the source register gets the old value.
    FetchAnd = 0x51,
    /// Exclusive or; the source register gets the old value.
    FetchXor = 0xa1,
    /// Exchange.
    Xchg = 0xe1,
    /// If memory equals R0, store the source; R0 gets the old value.
    CmpXchg = 0xf1,
}

impl Atomic {
    /// From the `imm` of an atomic instruction.
    pub fn of(imm: i32) -> Option<Atomic> {
        use Atomic::*;
        [Add, Or, And, Xor, FetchAdd, FetchOr, FetchAnd, FetchXor, Xchg, CmpXchg].into_iter().find(|a| *a as i32 == imm)
    }
}

/// The byte order that [`END`] converts to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Endian {
    /// To little-endian: on little-endian hosts only truncates.
    Little,
    /// To big-endian.
    Big,
}

/// An instruction slot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Insn {
    /// Class, operation or size, and source or mode.
    pub opcode: u8,
    /// First register, 4 bits.
    pub dst: u8,
    /// Second register or a `PSEUDO_` value, 4 bits.
    pub src: u8,
    /// Offset of a memory access or of a jump.
    pub off: i16,
    /// Immediate.
    pub imm: i32,
}

/// Where control goes after an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// To the next one.
    Next,
    /// To its target.
    Goto,
    /// To its target or the next one.
    Branch,
    /// Back to the caller.
    Exit,
}

impl Insn {
    /// The class, the lowest three bits of the opcode.
    pub fn class(self) -> u8 {
        self.opcode & 0x07
    }
    /// The operation of arithmetic and jumps.
    pub fn op(self) -> u8 {
        self.opcode & 0xf0
    }
    /// The mode of loads and stores.
    pub fn mode(self) -> u8 {
        self.opcode & 0xe0
    }
    /// The second operand is a register.
    pub fn by_reg(self) -> bool {
        self.opcode & X != 0
    }
    /// The first slot of a 64-bit immediate.
    pub fn is_wide(self) -> bool {
        self.opcode == LD_IMM64
    }
    /// A call or an address of a function of the same program.
    pub fn names_function(self) -> bool {
        (self.opcode == JMP | CALL && self.src == PSEUDO_CALL) || (self.is_wide() && self.src == PSEUDO_FUNC)
    }

    /// Where control goes next; calls come back, so they are [`Flow::Next`].
    pub fn flow(self) -> Flow {
        match (self.class(), self.op()) {
            (JMP, CALL) => Flow::Next,
            (JMP, EXIT) => Flow::Exit,
            (JMP | JMP32, JA) => Flow::Goto,
            (JMP | JMP32, _) => Flow::Branch,
            _ => Flow::Next,
        }
    }

    /// How far a jump goes, counted from the next slot (`gotol`, 6.6, has it in `imm`).
    pub fn distance(self) -> i64 {
        if self.opcode == JMP32 | JA { self.imm.into() } else { self.off.into() }
    }

    /// The bytes that the kernel reads (x86-64 and other little-endian hosts).
    pub fn to_bytes(self) -> [u8; 8] {
        let (off, imm) = (self.off.to_le_bytes(), self.imm.to_le_bytes());
        [self.opcode, (self.dst & 15) | (self.src << 4), off[0], off[1], imm[0], imm[1], imm[2], imm[3]]
    }

    /// From the bytes that the kernel reads.
    pub fn from_bytes(b: [u8; 8]) -> Insn {
        Insn {
            opcode: b[0],
            dst: b[1] & 15,
            src: b[1] >> 4,
            off: i16::from_le_bytes([b[2], b[3]]),
            imm: i32::from_le_bytes([b[4], b[5], b[6], b[7]]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_there_and_back() {
        // r1 = *(u64 *)(r6 +112), as clang writes it.
        let insn = Insn { opcode: LDX | MEM | Size::D as u8, dst: 1, src: 6, off: 112, imm: 0 };
        assert_eq!(insn.to_bytes(), [0x79, 0x61, 0x70, 0, 0, 0, 0, 0]);
        assert_eq!(Insn::from_bytes(insn.to_bytes()), insn);
    }

    #[test]
    fn where_control_goes() {
        let flow = |opcode| Insn { opcode, ..Insn::default() }.flow();
        assert_eq!(flow(0x85), Flow::Next);
        assert_eq!(flow(0x95), Flow::Exit);
        assert_eq!(flow(0x05), Flow::Goto);
        assert_eq!(flow(0x16), Flow::Branch);
        assert_eq!(flow(0xe5), Flow::Branch);
        assert_eq!(flow(0x87), Flow::Next);
        assert_eq!((Atomic::of(0xf1), Atomic::of(0x02)), (Some(Atomic::CmpXchg), None));
    }
}
