//! What ELF files say: build ids, functions, their names, code and prototypes, static probes; and which functions addresses belong to.
//! Pure: bytes in. Only [`finder`] opens files.
//!
//! ```text
//!  elf: tables ─┬─► demangle: names as sources have them       build_id, usdt, ld_cache: formats of their own
//!               ├─► frames (.eh_frame) + code (x86-64) ─► places: where a breakpoint may be put
//!               ├─► raise: what leaves functions otherwise than by returning
//!               └─► dwarf: what functions take and return, where they were inlined
//!
//!  process:map ─► Process ─┐                              ┌─ kallsyms, perf_map
//!  (address, time) ────────┴─► Symbolizer ─► StackFrames ◄┤
//!                               │  each distinct address  └─ Module ─┬─ pack        of the trace's directory
//!                               │  once                      │       ├─ dwarf       inlined functions, file:line
//!                               ▼                            │       ├─ symtab, plt (headers, xz: .gnu_debugdata)
//!                              demangle                      ▼       └─ debug_link  what else is to be opened
//!                                                   files::Files: finder::Finder, or the caller's
//! ```
//!
//! # From addresses to frames
//!
//! ```no_run
//! use symbols::files::Identity;
//! use symbols::finder::Finder;
//! use symbols::process::Process;
//! use symbols::Symbolizer;
//!
//! let mut symbolizer = Symbolizer::new(Finder::new().directory("/srv/symbols").packs("/tmp/trace/symbols"));
//! // Each process:map event: its path and build id, its time, address, length and offset.
//! let libc = symbolizer.module(&Identity::new("/lib/libc.so.6", &[0xab; 20]));
//! let mut process = Process::new();
//! process.map(1_000, 0x7f00_0000_0000, 0x15_0000, 0x2_8000, libc);
//! // Each address of a stack; of a return address, the byte before it.
//! for frame in symbolizer.resolve(&process, 0x7f00_0000_1234, 2_000) {
//!     println!("{}+{:#x} {:?}:{}{}", frame.function, frame.offset, frame.file, frame.line, if frame.inlined { " (inlined)" } else { "" });
//! }
//! // What is missing, and why.
//! for (_, module) in symbolizer.modules() {
//!     if let Some(problem) = module.status().problem {
//!         eprintln!("{}: {problem}", module.identity().path.display());
//!     }
//! }
//! ```
//!
//! - [`files::Identity::of_mapping`] says which mappings are of files. Others have the module `None`: [`process::Process::set_perf_map`]
//!   names the functions that a just-in-time compiler has put there; [`perf_map::check`] says whose map is to be believed.
//! - [`process::Process::exec`] and [`process::Process::fork`] follow the events of these names.
//! - The vDSO, and files that are open but have no name any more: [`Symbolizer::module_of_bytes`].
//! - `trapline pack`: [`Symbolizer::packed`] and [`Symbolizer::packed_kernel`], in files called [`pack::file_name`].
//! - Whoever opens files otherwise (`/proc/PID/map_files`, another root directory) implements [`files::Files`].
//!
//! Files are hostile: every offset is checked, every read and every loop is bounded.

pub mod build_id;
pub mod code;
pub mod code_tables;
pub mod debug_link;
pub mod demangle;
pub mod dwarf;
pub mod elf;
pub mod files;
pub mod finder;
pub mod frames;
pub mod headers;
pub mod jit_dump;
pub mod kallsyms;
pub mod ld_cache;
pub mod module;
mod module_id;
pub mod pack;
pub mod perf_map;
pub mod places;
pub mod plt;
mod pointers;
pub mod process;
mod read;
mod segment;
pub mod symbolizer;
pub mod symtab;
pub mod throws;
pub mod usdt;
pub mod xz;

pub use elf::{Elf, ElfError};
pub use module_id::ModuleId;
pub use read::ReadAt;
pub use symbolizer::{StackFrame, Symbolizer};
