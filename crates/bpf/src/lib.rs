//! eBPF as data: instructions, an assembler, a disassembler, and an interpreter for tests.
//!
//! ```text
//! Assembler ──emitters──► items + labels ──finish──► Program ──bytes──► (crate sys loads them)
//!                          link: dead code, jumps       │
//!                          check: the rules             ├─► disasm: text, for --explain and for errors
//!                                                       └─► interp: Machine, for tests
//!
//! asm ◄─ filter ◄─ frame ◄─ syscalls, probes: the programs of a session; each uses what is left of it
//! asm ◄─ unwind: functions for any program that walk a user stack
//! asm ◄─ slab: the programs that keep the objects of a slab cache; probes uses how they know the cache
//! ```
//!
//! Pure: nothing here opens a file or makes a system call. What depends on the host (map descriptors, BTF ids, field
//! offsets) comes in as numbers. A program that [`Assembler::finish`] returns obeys the rules listed in [`check`];
//! its generator is responsible for what the kernel's verifier checks beyond those.

pub mod asm;
pub mod btf_offsets;
pub mod capture_row;
pub mod check;
pub mod disasm;
pub mod expr;
pub mod filter;
pub mod frame;
pub mod helper;
pub mod insn;
pub mod interp;
mod link;
pub mod objects;
pub mod own_ring;
pub mod peek;
pub mod probes;
pub mod program;
pub mod rows_at_exit;
pub mod scratch;
pub mod script;
pub mod slab;
pub mod stacks;
pub mod syscalls;
pub mod unwind;

pub use asm::{AsmError, Assembler, Label, Operand};
pub use btf_offsets::BtfOffsets;
pub use helper::Helper;
pub use insn::{Alu, Atomic, Cond, Endian, Insn, Reg, Size};
pub use program::Program;
