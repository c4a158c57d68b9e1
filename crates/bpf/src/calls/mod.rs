//! The programs that trace system calls: what they read is in rows ([`plan`]), how they read it is here.
//!
//! ```text
//! sys_enter  task storage? ─► nr, arguments, start ─► [ops of entry, where the row says so]
//! sys_exit   task storage? ─► row ─► fixed part ─► tails of entry ─► tails of exit ─► ring of this CPU
//! fork, exec, exit, signal: task storage for the child, process: events
//! ```
//!
//! Pure: maps come in as descriptors, offsets of kernel structs as numbers. Every path that has counted an event as seen
//! either puts it into a ring or counts it as dropped.

mod emit;
mod events;
pub mod iter;
mod ops;
pub mod plan;

pub use emit::{Maps, Source, Target, sys_enter, sys_exit};
pub use events::{exec, exit, fork, ignored_signal, signal};

/// The value of the task storage.
///
/// ```text
/// 0 flags  8 start  16 number  24 arguments (8 × u64)  88 bytes of tails  96 capture bits  104 cpu  112 tails …
/// ```
pub mod state {
    /// Flags.
    pub const FLAGS: i16 = 0;
    /// Start of the call, ns.
    pub const START: i16 = 8;
    /// Number of the call.
    pub const NR: i16 = 16;
    /// Arguments.
    pub const ARGS: i16 = 24;
    /// Bytes in `TAILS`.
    pub const LEN: i16 = 88;
    /// Capture bits of `TAILS`.
    pub const CAPS: i16 = 96;
    /// Processor at entry.
    pub const CPU: i16 = 104;
    /// Tails of entry.
    pub const TAILS: i16 = 112;
    /// Room for tails. The whole stays below 8 KiB, the most that the kernel allocates for it without sleeping.
    pub const ROOM: i32 = 6144;
    /// Bytes of the value.
    pub const SIZE: u32 = TAILS as u32 + ROOM as u32;

    /// A call is under way.
    pub const IN_CALL: i32 = 1;
    /// The call is a 32-bit one.
    pub const COMPAT: i32 = 4;
    /// The call was in flight when its process was attached to: its start is not known.
    pub const ATTACHED: i32 = 8;
    /// The command before its execve: its calls are trapline's own.
    pub const STARTING: i32 = 2;
}

/// Offsets of the counters of a CPU, from the middle of its scratch buffer.
pub mod counter {
    /// Events that happened.
    pub const SEEN: i16 = 32760;
    /// Events that found the ring full.
    pub const DROPPED: i16 = 32640;
    /// Where the counters' offsets count from.
    pub const BASE: usize = 32768;
}

/// Bytes of the scratch buffer of a CPU: where an event is built.
pub const SCRATCH: u32 = 65536;
