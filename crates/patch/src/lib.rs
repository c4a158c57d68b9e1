//! Patches of functions: from code, symbols and FDEs to stubs and the bytes that lead into them. Pure: bytes in, bytes out. x86-64.
//!
//! ```text
//!  once per file      Module { code, functions, frames, symbols } ─► Plan::new ─► Plan { sites, refusals, moved beginnings }
//!  once per process   mappings ─► hole::nearest ─► Places { area, bias, slow code, … }
//!                     Plan, Places, numbers ─► link::link ─► Linked { area's bytes, patches } ─► file::write ─► the agent
//!
//!  F:  jmp stub ──► stub: record ─ call ──► moved beginning of F ─ jmp ──► rest of F ─ ret ──► stub: record ─ ret ──► caller
//! ```
//!
//! - [`stub`]: templates of stubs, and the contract between them and the agent.
//! - [`Plan`]: which functions can be patched. Nothing is patched unless all jumps and addresses of the file leave the patch alone, unwind information
//!   says that a function begins there, and its first instructions can be moved.
//! - [`calls`]: patches of `syscall` instructions, for the ptracer.
//! - Places of probes ([`Point`]) get code in front of one instruction, also in the middle of a function.
//! - [`link`]: the bytes for one process. A stub is a copy of 320 bytes with a few numbers filled in.
//!
//! Not here: reading ELF files (crate `symbols`), and what must not be traced for reasons that are not in the code, except for the names that
//! [`Refusal::of_name`] knows.

pub mod calls;
pub mod file;
mod first;
pub mod hole;
mod input;
pub mod link;
mod plan;
mod probe;
mod refusal;
mod relocate;
pub mod stub;
mod taken;
mod targets;

pub use first::Undo;
pub use input::{Frame, Function, Module, Point, Segment};
pub use plan::{Plan, Site};
pub use refusal::Refusal;
pub use relocate::{Fix, FixKind, Step};
