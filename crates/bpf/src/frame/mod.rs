//! What all programs share: registers, stack slots, the states of tasks, ids, the scratch buffer with its counters, and the output.
//!
//! ```text
//! program ─► Emitter: assembler, maps, offsets of the kernel's structs, settings of the session, functions to be called back
//!
//! r6  reg::STATE   the state of the current task      r8  reg::END  bytes of the event so far
//! r7  reg::BUFFER  the scratch buffer of this CPU     r9  reg::ROW  the row of the call
//! ```
//!
//! A register that a program needs for something else goes by its number there. `slot` names the words of the stack, `field` the
//! first fields of an event.

mod buffer;
mod counters;
mod emitter;
mod event;
pub(crate) mod field;
mod ids;
mod output;
mod program;
pub(crate) mod registers;
mod session;
pub mod session_switch;
pub(crate) mod slot;
mod slots;
pub mod state;
mod system_wide;
mod task;
mod words;

pub(crate) use counters::Lost;
pub(crate) use emitter::Emitter;
pub use emitter::Generated;
pub(crate) use program::program;
pub(crate) use registers::reg;
pub use session::{Maps, Rights, Session, Slots, Source, Stacks};
pub use state::held;
pub(crate) use system_wide::At;

/// The most frames of a stack that a program captures.
pub const FRAMES: i32 = 127;
/// `BPF_F_USER_STACK` (include/uapi/linux/bpf.h, 6.18); the lowest eight bits of the flags are how many frames are skipped.
pub(crate) const USER_STACK: i32 = 256;
