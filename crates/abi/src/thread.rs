//! What stubs use of a thread, at a constant distance from its `fs` base. All zeros in a new thread, which the first stub finds out.

/// The agent's data of a thread. Stubs address the first fields by the offsets below.
#[derive(Debug)]
#[repr(C, align(16))]
pub struct Thread {
    /// Where the next [`Shadow`] goes; 0 in a new thread.
    pub top: u64,
    /// The place of the return address of the topmost shadow entry, as its `slot`.
    pub top_slot: u64,
    /// Where the next record goes.
    pub cur: u64,
    /// The end of the chunk; a thread without one has 0 here and in `cur`.
    pub end: u64,
    /// Upper half of the counter in the last [`crate::shared::HIGH`] record.
    pub high: u32,
    /// Not 0 while the agent's own code runs: stubs that a handler reaches then do not record.
    pub busy: u32,
    /// The lowest shadow entry.
    pub base: u64,
    /// The rest is the agent's.
    pub rest: [u64; 24],
}

/// Offset of [`Thread::top`].
pub const TOP: i32 = 0;
/// Offset of [`Thread::top_slot`].
pub const TOP_SLOT: i32 = 8;
/// Offset of [`Thread::cur`].
pub const CUR: i32 = 16;
/// Offset of [`Thread::end`].
pub const END: i32 = 24;
/// Offset of [`Thread::high`].
pub const HIGH: i32 = 32;

/// Offset of [`Thread::base`].
pub const BASE: i32 = 40;
/// Offset of the number of the thread's chunk, 4 bytes, which a collector zeroes with `cur` and `end` while the thread is stopped.
pub const CHUNK: i32 = 52;

/// The address in an entry of the shadow stack that marks a signal handler, and no call.
pub const BARRIER: u64 = 1;

/// A call that has not returned: an entry of the shadow stack, which grows upwards.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Shadow {
    /// The address of the return address on the stack.
    pub slot: u64,
    /// The return address.
    pub address: u64,
}

/// A call that has not returned, with stubs of the variant [`crate::stub::Variant::Timed`].
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct ShadowTimed {
    /// The address of the return address on the stack.
    pub slot: u64,
    /// The return address.
    pub address: u64,
    /// The time stamp counter at the entry.
    pub tsc: u64,
    /// The function's number.
    pub function: u32,
    /// 1: its entry has been written.
    pub written: u32,
}
