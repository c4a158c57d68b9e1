//! A finished program: slots, notes, and where its labels and functions went.
//!
//! Not here: how it is made (see `asm`) and whether a kernel accepts it.
//!
//! Invariant: what [`crate::Assembler::finish`] and [`Program::from_bytes`] return obeys [`crate::check`].

use std::collections::BTreeMap;

use crate::check::{self, Rejected};
use crate::disasm;
use crate::insn::Insn;

/// A place in a program, bound once and jumped to from anywhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Label(pub(crate) usize);

/// A program that can be loaded, interpreted and printed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Program {
    /// The slots; a 64-bit immediate has two.
    pub insns: Vec<Insn>,
    /// By slot: what the instruction is for.
    pub comments: BTreeMap<usize, String>,
    /// By label: its slot.
    pub(crate) slots: Vec<Option<usize>>,
}

impl Program {
    /// From the bytes that the kernel reads; a rest of less than a slot is an instruction that breaks a rule.
    pub fn from_bytes(bytes: &[u8]) -> Result<Program, Rejected> {
        let (whole, rest) = bytes.as_chunks::<8>();
        let insns: Vec<Insn> = whole.iter().map(|b| Insn::from_bytes(*b)).collect();
        if !rest.is_empty() {
            return Err(Rejected { pc: insns.len(), rule: check::Rule::HalfSlot });
        }
        check::check(&insns)?;
        Ok(Program { insns, ..Program::default() })
    }

    /// The bytes that the kernel reads.
    pub fn bytes(&self) -> Vec<u8> {
        self.insns.iter().flat_map(|i| i.to_bytes()).collect()
    }

    /// The slot of a label, if it is bound to an instruction. A label before dead code has the slot that follows.
    pub fn slot(&self, label: Label) -> Option<usize> {
        self.slots.get(label.0).copied().flatten()
    }

    /// The slots at which functions start, in the order of `func_info`; the first is 0.
    pub fn functions(&self) -> Vec<usize> {
        check::functions(&self.insns)
    }
}

/// The disassembly.
impl std::fmt::Display for Program {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&disasm::listing(&self.insns, &self.comments))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Assembler, Cond, Reg::*};

    #[test]
    fn bytes_there_and_back() {
        let mut a = Assembler::new();
        let end = a.new_label();
        a.imm64(R0, 0x1234_5678_9abc_def0);
        a.jump_if(Cond::Eq, R0, 0, end);
        a.mov(R0, 1);
        a.bind(end);
        a.exit();
        let p = a.finish().unwrap();
        let bytes = p.bytes();
        assert_eq!(bytes.len(), 8 * 5);
        assert_eq!(Program::from_bytes(&bytes).unwrap().insns, p.insns);
        assert_eq!(Program::from_bytes(&bytes[..33]).unwrap_err().rule, check::Rule::HalfSlot);
        assert_eq!(p.slot(end), Some(4));
    }
}
