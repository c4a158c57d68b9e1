//! What ELF files say: build ids, functions and where they lie in the file, static probes. Pure: bytes in.
//!
//! Files are hostile: every offset is checked, every read and every loop is bounded.

pub mod build_id;
pub mod elf;
mod read;
pub mod usdt;

pub use elf::{Elf, ElfError};
pub use read::ReadAt;
