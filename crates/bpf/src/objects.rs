//! The program of an iterator that names the kernel's objects: it writes words of its context, the addresses of objects among them.

use crate::asm::{AsmError, Assembler};
use crate::helper::Helper;
use crate::insn::{Alu, Cond, Reg::*, Size};
use crate::program::Program;

/// A word of an iterator's context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Word {
    /// Where it lies.
    pub offset: i16,
    /// It is an address: at the end of the walk, 0.
    pub is_address: bool,
}

/// The program; each word takes 8 bytes of what it writes.
///
/// # Errors
/// A mistake in it.
pub fn named(words: &[Word]) -> Result<Program, AsmError> {
    let bytes = 8 * words.len() as i16;
    let mut a = Assembler::new();
    let out = a.new_label();
    a.load(Size::D, R6, R1, 0);
    a.load(Size::D, R6, R6, 0);
    for (i, word) in words.iter().enumerate() {
        let size = if word.is_address { Size::D } else { Size::W };
        a.load(size, R7, R1, word.offset);
        if word.is_address {
            a.jump_if(Cond::Eq, R7, 0, out);
        }
        a.store(Size::D, R10, 8 * i as i16 - bytes, R7);
    }
    a.mov(R1, R6);
    a.mov(R2, R10);
    a.alu(Alu::Add, R2, -i32::from(bytes));
    a.mov(R3, i32::from(bytes));
    a.call(Helper::SeqWrite);
    a.bind(out);
    a.mov(R0, 0);
    a.exit();
    a.finish()
}
