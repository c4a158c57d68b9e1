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
    /// The thread's rows, a [`Row`] or a [`Measured`] for each function, by its number; 0: none yet, or they are not to be touched.
    pub counts: u64,
    /// The agent's.
    pub own: [u64; 4],
    /// Where `top` is when the next entry comes to slow code, which sees to it that there is more room.
    pub full: u64,
    /// The rest is the agent's.
    pub rest: [u64; 18],
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
/// Offset of [`Thread::counts`].
pub const COUNTS: i32 = 48;
/// Offset of [`Thread::full`].
pub const FULL: i32 = 88;

/// Offset of [`Thread::base`].
pub const BASE: i32 = 40;
/// Offset of the number of the thread's chunk, 4 bytes, which a collector zeroes with `cur` and `end` while the thread is stopped.
pub const CHUNK: i32 = 60;
/// 8 bytes: records that the thread could not write since its last one.
pub const DROPPED: i32 = 72;

/// Offset of the thread's id, 4 bytes.
pub const TID: i32 = 56;
/// Offset of the place of the thread's memory.
pub const MEMORY: i32 = 80;

/// A slot of the table of threads, as a collector reads it: offsets of the thread's id (4 bytes; 0: nobody's), of the place of its memory and of
/// its [`Thread`], and its size.
pub mod slot {
    /// The id.
    pub const TID: usize = 0;
    /// The place of its memory.
    pub const MEMORY: usize = 16;
    /// The place of its [`super::Thread`].
    pub const LOCAL: usize = 40;
    /// Bytes of a slot.
    pub const SIZE: usize = 96;
}

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
    /// The time stamp counter at the entry, of stubs that need it.
    pub tsc: u64,
    /// The function's number, [`WRITTEN`] and [`RECORDED`].
    pub function: u32,
    /// Not 0: its entry has been written, or needs no [`crate::message::Slow::Late`].
    pub flags: u32,
}

/// What a thread has counted of a function.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Row {
    /// Its calls, counted when they begin.
    pub calls: u64,
    /// Ticks of the time stamp counter from the beginning to the end of its calls that have ended; calls within calls count twice.
    pub total: u64,
    /// Of these, ticks outside of calls of other counted functions. While calls of it are open, that of their callees is missing.
    pub own: u64,
    /// 0.
    pub reserved: u64,
}

/// The most rows: numbers of functions that are counted, or have tracers, are below it.
pub const ROWS: u32 = 1 << 18;

/// Buckets of [`Measured`].
pub const BUCKETS: usize = 64;

/// What a thread has measured of a function, in a session that keeps sums ([`crate::shared::Control::sums`]). A duration is one in ticks,
/// times [`crate::shared::Control::scale`].
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Measured {
    /// Its calls, counted when they begin.
    pub calls: u64,
    /// Its calls that have ended.
    pub ended: u64,
    /// Their durations, added up; calls within calls count twice.
    pub total: u64,
    /// The longest duration.
    pub most: u64,
    /// The complement of the shortest one: rows begin with zeros.
    pub least: u64,
    /// Calls by duration: bucket 0 is a duration of 0, bucket n one from 2^(n-1) to before 2^n.
    pub buckets: [u64; BUCKETS],
    /// 0: a row has whole cache lines.
    pub reserved: [u64; 3],
}

/// The most numbers of functions of which durations are measured: a thread has 19 MB of address space for them.
pub const MEASURED: u32 = 1 << 15;

/// In [`Shadow::function`]: the entry was never to be written late. Stubs write function and flags as one number of 32 bits, whose sign is
/// extended.
pub const WRITTEN: u32 = 1 << 31;
/// In [`Shadow::function`], beside [`WRITTEN`]: an entry record was written, so that an exit record belongs to it. The number is that of the
/// recording, and no row.
pub const RECORDED: u32 = 1 << 30;
