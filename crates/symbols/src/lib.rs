//! What ELF files say: build ids, functions and where they lie in the file, static probes. Pure: bytes in.
//!
//! Files are hostile: every offset is checked, every read and every loop is bounded.

pub mod build_id;
pub mod code;
pub mod demangle;
pub mod dwarf;
pub mod elf;
pub mod frames;
pub mod ld_cache;
pub mod places;
pub mod raise;
mod read;
pub mod usdt;

pub use elf::{Elf, ElfError};
pub use read::ReadAt;
