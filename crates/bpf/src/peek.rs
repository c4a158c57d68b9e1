//! A program that reads memory of the kernel for who runs it: it is attached nowhere, and runs once for each read.

use crate::asm::{AsmError, Assembler};
use crate::helper::Helper;
use crate::insn::{Alu, Cond, Reg::*, Size};
use crate::program::Program;

/// The most bytes of a read.
pub const MOST: usize = 256;

/// What the program's arguments ask for: an address, a number of bytes, and one of these.
pub mod ask {
    /// This many bytes.
    pub const BYTES: u64 = 0;
    /// A string, its NUL among the bytes.
    pub const TEXT: u64 = 1;
    /// The address of the kernel's structure of the thread.
    pub const TASK: u64 = 2;
}

/// The program, a raw tracepoint's. What was read is the value of the array `value`; the program returns how many bytes a string has, and of
/// what is not there less than zero.
///
/// # Errors
/// A mistake in it.
pub fn peek(value: i32) -> Result<Program, AsmError> {
    let mut a = Assembler::new();
    let [none, bytes, task] = [a.new_label(), a.new_label(), a.new_label()];
    a.mov(R6, R1);
    a.store(Size::W, R10, -4, 0);
    a.map_fd(R1, value);
    a.mov(R2, R10);
    a.alu(Alu::Add, R2, -4);
    a.call(Helper::MapLookup);
    a.jump_if(Cond::Eq, R0, 0, none);
    a.mov(R7, R0);
    a.load(Size::D, R4, R6, 16);
    a.jump_if(Cond::Eq, R4, ask::TASK as i32, task);
    a.mov(R1, R7);
    a.load(Size::D, R2, R6, 8);
    a.jump_if(Cond::Gt, R2, MOST as i32, none);
    a.load(Size::D, R3, R6, 0);
    a.jump_if(Cond::Eq, R4, ask::BYTES as i32, bytes);
    a.call(Helper::ProbeReadKernelStr);
    a.exit();
    a.bind(bytes);
    a.call(Helper::ProbeReadKernel);
    a.exit();
    a.bind(task);
    a.call(Helper::GetCurrentTask);
    a.store(Size::D, R7, 0, R0);
    a.mov(R0, 0);
    a.exit();
    a.bind(none);
    a.mov(R0, -1);
    a.exit();
    a.finish()
}
