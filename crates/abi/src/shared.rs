//! The memory that a traced process shares with the collector: a memfd that the collector makes and seals against a change of its size.
//!
//! ```text
//!  0          4096                 4096 + 64·chunks (rounded up to pages)
//!  ┌─────────┬────────────────────┬─────────┬─────────┬─
//!  │ Control │ ChunkHeader[chunks]│ chunk 0 │ chunk 1 │ …      a chunk: Control::chunk_size bytes of records
//!  └─────────┴────────────────────┴─────────┴─────────┴─
//! ```
//!
//! A **record** has 8 bytes: the lower half of the time stamp counter, then a word that is never 0: `function << 1 | exit`. Functions
//! are numbered from 1 by the collector, for the whole session. The word 1 is [`HIGH`]: the first half is the upper half of the counter
//! of the records that follow, until the next one; each chunk begins with one. A word with the bit [`VALUES`] is that of a longer record:
//! 2 bytes with a length follow, and bytes of values of that length (`abi::values`); together they are a multiple of 8 bytes. The word is
//! written when the rest is there.
//!
//! A thread owns the chunk that it writes to. It takes a free one, which is all zeros, by changing its state from FREE to OWNED, sets the
//! header, and writes records in order, time before word (x86 keeps the order of stores). So the collector reads records while they are
//! written: they end at the first word that is 0. A thread that leaves its chunk sets FULL; the collector reads the rest, zeroes it and
//! sets FREE. The collector does the same for the chunks of threads and processes that have ended, however they ended.
//!
//! A session that keeps **sums** ([`Control::sums`]) has no records. A chunk has the rows of a thread, by the numbers of functions
//! ([`crate::thread::Row`], [`crate::thread::Measured`]); the row of number 0 begins with a HIGH record. A thread adds to its rows, and the
//! collector reads them whenever it likes.

use core::sync::atomic::{AtomicU32, AtomicU64};

/// The first word of the memory: "shar" in ASCII.
pub const MAGIC: u32 = 0x7261_6873;
/// Bytes before the headers of chunks.
pub const HEADERS: usize = 4096;
/// Bytes of a chunk that a collector makes where nobody has asked for others.
pub const CHUNK: usize = 64 << 10;
/// The word of a record that has the upper half of the counter.
pub const HIGH: u32 = 1;
/// The highest number of a function. Higher ones are of records of allocations ([`crate::heap`]).
pub const FUNCTIONS: u32 = (1 << 30) - 65;
/// Bit of a word: values follow the record.
pub const VALUES: u32 = 1 << 31;

/// Nobody owns the chunk. It is all zeros.
pub const FREE: u32 = 0;
/// A thread writes to it.
pub const OWNED: u32 = 1;
/// It is complete, and waits for the collector.
pub const FULL: u32 = 2;

/// Drop and count when there is no free chunk.
pub const DROP: u32 = 0;
/// Wait for a free chunk.
pub const BLOCK: u32 = 1;

/// Bit of a robust futex: somebody waits (FUTEX_WAITERS of linux/futex.h).
pub const WAITERS: u32 = 0x8000_0000;
/// Bit of a robust futex that the kernel sets when its owner has died (FUTEX_OWNER_DIED).
pub const OWNER_DIED: u32 = 0x4000_0000;

/// The first page.
#[repr(C, align(64))]
pub struct Control {
    /// [`MAGIC`].
    pub magic: u32,
    /// [`crate::VERSION`].
    pub version: u32,
    /// How many chunks there are.
    pub chunks: u32,
    /// Bytes of a chunk: whole pages.
    pub chunk_size: u32,
    /// 1: records are written; 0: the session is stopped. Stubs look at it only where they need a chunk: to stop, the collector also
    /// makes threads give up theirs ([`ChunkHeader::give_up`]).
    pub running: AtomicU32,
    /// [`DROP`] or [`BLOCK`].
    pub on_full: AtomicU32,
    /// A robust futex that a thread of the collector holds as long as it lives (get_robust_list(2)): the kernel sets
    /// [`OWNER_DIED`] when it ends, and the agent neither waits nor records any more.
    pub collector: AtomicU32,
    /// Changes whenever chunks have become free; threads that wait for one sleep on it (futex(2)), at most 50 ms at a time.
    pub freed: AtomicU32,
    /// Threads that sleep on `freed`: the collector wakes them.
    pub waiting: AtomicU32,
    /// Changes whenever a chunk has become full; the collector may sleep on it.
    pub filled: AtomicU32,
    /// Records that were not written because there was no free chunk, and to which no thread's header could be given.
    pub dropped: AtomicU64,
    /// Calls that were seen while the collector was gone.
    pub orphaned: AtomicU64,
    /// Execs that the process was about to make, and into which the agent could not follow: a program that changes its user, a static
    /// one, one of another architecture.
    pub left: AtomicU64,
    /// Where the chunk that is tried first is: a hint.
    pub hint: AtomicU32,
    /// Bits of [`crate::heap`]: what is recorded of allocations.
    pub heap: AtomicU32,
    /// The time stamp counter, as the collector has last seen it: each of its rounds, about every millisecond.
    pub now: AtomicU64,
    /// Of allocations, one is recorded per this many bytes, on average; 0: all are.
    pub sample: AtomicU64,
    /// Bytes of a row, where sums are kept; 0: records are written. Never changes.
    pub sums: u64,
    /// What a tick is, in units of a duration, as a fraction of 2^64. Never changes.
    pub scale: u64,
    /// Which memory of the collector's this is. Never changes.
    pub number: u32,
    /// 1: records say where functions were called from ([`crate::caller`]). Never changes.
    pub callers: AtomicU32,
    /// Where the table of the process's threads is ([`crate::thread::slot`]), and where the number of its slots is, 4 bytes; behind that is the
    /// number of the memory that the process has. The collector finds calls there whose entries are not written yet.
    pub threads: AtomicU64,
    /// The number's place.
    pub used: AtomicU64,
    /// When the process began, if it is a child of fork(2): what was called before, its parent has called.
    pub born: AtomicU64,
}

/// The header of a chunk.
#[repr(C, align(64))]
pub struct ChunkHeader {
    /// [`FREE`], [`OWNED`] or [`FULL`].
    pub state: AtomicU32,
    /// The thread that owns it, in its own PID namespace.
    pub tid: AtomicU32,
    /// Which of the thread's chunks it is, from 0: chunks of one thread are in this order.
    pub sequence: AtomicU32,
    /// 1: the collector asks the owner to give it up at the next chance. Only for stopping.
    pub give_up: AtomicU32,
    /// A time stamp, and the monotonic clock at the same moment in ns, from when the thread took it.
    pub tsc: AtomicU64,
    /// The clock.
    pub monotonic: AtomicU64,
    /// Records that the thread could not write before it took this chunk, since its last one.
    pub dropped: AtomicU64,
    /// 0.
    pub reserved: [u64; 2],
}
