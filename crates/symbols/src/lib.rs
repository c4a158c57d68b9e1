//! What ELF files say: build ids, functions, their names, code and prototypes, static probes. Pure: bytes in.
//!
//! ```text
//!  elf: tables ─┬─► demangle: names as sources have them       build_id, usdt, ld_cache: formats of their own
//!               ├─► frames (.eh_frame) + code (x86-64) ─► places: where a breakpoint may be put
//!               ├─► raise: what leaves functions otherwise than by returning
//!               └─► dwarf: what functions take and return, where they were inlined
//! ```
//!
//! Files are hostile: every offset is checked, every read and every loop is bounded.

pub mod build_id;
pub mod code;
pub mod debug_link;
pub mod demangle;
pub mod dwarf;
pub mod elf;
pub mod files;
pub mod finder;
pub mod frames;
pub mod headers;
pub mod kallsyms;
pub mod ld_cache;
pub mod module;
mod module_id;
pub mod pack;
pub mod perf_map;
pub mod places;
pub mod plt;
pub mod process;
pub mod raise;
mod read;
pub mod symbolizer;
pub mod symtab;
pub mod usdt;
pub mod xz;

pub use elf::{Elf, ElfError};
pub use module_id::ModuleId;
pub use read::ReadAt;
pub use symbolizer::{StackFrame, Symbolizer};
