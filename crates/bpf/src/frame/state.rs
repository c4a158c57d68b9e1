//! The state of a task: the value of the task storage, the task's home. While the task has a slot (`frame::slots`), its words are there,
//! at the same offsets.
//!
//! ```text
//! 0 flags  8 start  16 number  24 arguments (8 × u64)  88 bytes of tails  96 capture bits  104 cpu  112 tid (slot: and pid)
//! 120 result  128 held signal: what   home: number, 48 bytes of siginfo   192 ids of stacks (2 × u64)   home: 208 tails …
//!                                     slot: 136 key  144 look  152 fate
//! ```

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
/// Id of the thread in the session's namespace when the state was made; 0 where it is not known.
pub const TID: i16 = 112;
/// In a slot, where both ids are always known: the id of the process.
pub const PID: i16 = TID + 4;
/// Raw result of the call that ends. Loaded again from here, it is unknown to the verifier, which else follows each way through
/// the rest of the program once for each range of the result that it has learnt before.
pub const RET: i16 = 120;
/// A signal that waits to be shown: one of [`held`]. A slot has a copy: the home counts.
pub const HELD: i16 = 128;
/// Its number.
pub const HELD_NR: i16 = 136;
/// The first [`SIGINFO`] bytes of its siginfo.
pub const HELD_INFO: i16 = 144;
/// Of a slot: the address of its task's registers; 0: it is free.
pub const KEY: i16 = HELD_NR;
/// Of a slot: not 0, one of [`look`], where the task's next program must look at the home.
pub const LOOK: i16 = KEY + 8;
/// Of a slot: what becomes of it at the end of the program that uses it, one of [`fate`].
pub const FATE: i16 = LOOK + 8;
/// Bytes of a slot.
pub const SLOT: u32 = TAILS as u32;
/// Ids of the kernel's and of the process's stack at the entry of a call whose memory is read there.
pub const STACKS: i16 = HELD_INFO + SIGINFO as i16;
/// Tails of entry.
pub const TAILS: i16 = STACKS + 16;
/// Bytes of a siginfo that are read.
pub const SIGINFO: i32 = 48;
/// Room for tails. The whole stays below 8 KiB, the most that the kernel allocates for it without sleeping.
pub const ROOM: i32 = 6144;
/// Bytes of the value.
pub const SIZE: u32 = TAILS as u32 + ROOM as u32;

/// The task is in a call.
pub const IN_CALL: i32 = 1;
/// The call is a 32-bit one.
pub const COMPAT: i32 = 4;
/// The call was in flight when its process was attached to: its start is not known.
pub const ATTACHED: i32 = 8;
/// The command before its execve: its calls are trapline's own.
pub const STARTING: i32 = 2;
/// Not traced in a system-wide session: it reads what trapline writes. Its threads are not traced either, its children are.
pub const LEFT_OUT: i32 = 16;
/// Not traced, and its children neither: trapline's own.
pub const OWN: i32 = 32;
/// The call was not wanted when its memory had to be read.
pub const UNREAD: i32 = 64;
/// A filter has rejected the call at its entry, and it is counted.
pub const REJECTED: i32 = 128;
/// The scratch buffer was taken when the call's memory had to be read.
pub const ENTRY_LOST: i32 = 256;
/// The call is an execve of code that is not the program's ([`super::Session::hidden`]): it is shown if it succeeds.
pub const ON_BEHALF: i32 = 512;

/// The bits of [`LOOK`].
pub mod look {
    /// A signal is held there.
    pub const SIGNAL: i32 = 1;
    /// The task had no home: its words are those of the home, if it has one again.
    pub const ANEW: i32 = 2;
}

/// The values of [`FATE`].
pub mod fate {
    /// It stays what it is.
    pub const KEPT: i32 = 0;
    /// A spare slot, which one program uses: it is copied to the home.
    pub const COPIED: i32 = 1;
    /// Its task ends, or is traced no longer.
    pub const GIVEN_BACK: i32 = 2;
}

/// The values of [`HELD`]. The sender of a signal sets it, under the receiver's siglock and only where it is
/// [`NONE`](held::NONE); the receiver resets it.
pub mod held {
    /// No signal.
    pub const NONE: i32 = 0;
    /// One that the receiver ignores: shown after the call that the receiver is in.
    pub const IGNORED: i32 = 1;
    /// The one that ends the receiver's process, delivered as SIGKILL.
    pub const FATAL: i32 = 2;
}
