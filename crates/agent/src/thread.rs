//! What the agent keeps of each thread, in thread-local storage, and where shadow stacks come from.
//!
//! ```text
//!  memory of a thread:  FRAMES ── graves ── sentinel ── shadow entries ──► full ── SPARE ──► …   more graves
//!                                                                          mapped as it is needed, pages come as they are used
//! ```
//!
//! Stubs that write a record for each entry push it without a look at the end. They come to slow code once per chunk: there it is seen
//! to that what is mapped lasts for another chunk ([`has_room`]). Others come to slow code when they find the shadow stack full.
//!
//! The memory of a thread that has ended is found by its id, which the kernel no longer knows, and used again, unless a call in it has not
//! returned (`slots`).

use crate::{kernel, permits, slots};
use abi::thread::{ROWS, Row, Thread};
use core::arch::{asm, global_asm};
use core::mem::{offset_of, size_of};
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicU32, AtomicU64};

// Initial-exec storage, without a symbol that the loader would have to find. A library that is loaded late gets less than 2 KB of it.
global_asm!(
    ".section .tbss,\"awT\",@nobits",
    ".globl trapline_thread",
    ".hidden trapline_thread",
    ".type trapline_thread,@object",
    ".size trapline_thread, {size}",
    ".balign 16",
    "trapline_thread:",
    ".zero {size}",
    ".text",
    size = const size_of::<Thread>(),
);

/// [`Thread`] with the agent's own part. Only the thread itself, and handlers that interrupt it, look at it.
#[repr(C, align(16))]
pub struct Local {
    pub top: AtomicU64,
    pub top_slot: AtomicU64,
    pub cur: AtomicU64,
    pub end: AtomicU64,
    pub high: AtomicU32,
    /// 0, [`IN_TRACER`] or [`ABANDONED`].
    pub busy: AtomicU32,
    pub base: AtomicU64,
    pub counts: AtomicU64,
    /// The thread's id; 0: nothing below is set.
    pub tid: AtomicU32,
    /// Number of its chunk, plus 1; 0 without one.
    pub chunk: AtomicU32,
    /// How many chunks it has had in this process.
    pub sequence: AtomicU32,
    /// [`abi::shared::Control::freed`] when it last found no free chunk.
    pub freed: AtomicU32,
    /// Records that could not be written since its last one.
    pub dropped: AtomicU64,
    /// Where its memory begins.
    pub memory: AtomicU64,
    /// What is mapped of its shadow stack ends [`SPARE`] above.
    pub full: AtomicU64,
    /// 1: there was no memory for it; its calls are not observed.
    pub without: AtomicU32,
    /// Which of the descriptions of frames was used last.
    pub frame: AtomicU32,
    /// Its place in the table of threads' memory, plus 1; 0: it has none there.
    pub place: AtomicU32,
    /// While it is in a tracer: the address of the frame that has called that.
    pub in_tracer: AtomicU64,
    /// What it has for its allocations; 0: nothing yet.
    pub heap: AtomicU64,
    /// While it is in an allocator: the frame of the outermost function of that.
    pub allocator: AtomicU64,
    /// 1: it writes a record of an allocation.
    pub heap_busy: AtomicU32,
    /// How many handlers have interrupted that and not returned.
    pub heap_level: AtomicU32,
    /// The end of its chunk, if that has a Malloc record; else 0.
    pub last: AtomicU64,
}

const _: () = assert!(size_of::<Local>() <= size_of::<Thread>());
const _: () = assert!(offset_of!(Local, top) == abi::thread::TOP as usize);
const _: () = assert!(offset_of!(Local, top_slot) == abi::thread::TOP_SLOT as usize);
const _: () = assert!(offset_of!(Local, cur) == abi::thread::CUR as usize);
const _: () = assert!(offset_of!(Local, end) == abi::thread::END as usize);
const _: () = assert!(offset_of!(Local, high) == abi::thread::HIGH as usize);
const _: () = assert!(offset_of!(Local, base) == abi::thread::BASE as usize);
const _: () = assert!(offset_of!(Local, counts) == abi::thread::COUNTS as usize);
const _: () = assert!(offset_of!(Local, full) == abi::thread::FULL as usize);
const _: () = assert!(offset_of!(Local, tid) == abi::thread::TID as usize);
const _: () = assert!(offset_of!(Local, memory) == abi::thread::MEMORY as usize);
const _: () = assert!(offset_of!(Local, chunk) == abi::thread::CHUNK as usize);
const _: () = assert!(offset_of!(Local, dropped) == abi::thread::DROPPED as usize);

/// [`Local::busy`]: the thread is in a tracer that is not the agent's.
pub const IN_TRACER: u32 = 1;
/// Its calls are not observed any more.
pub const ABANDONED: u32 = 2;

/// Distance of the thread's data from its `fs` base.
pub fn tls_offset() -> i64 {
    let offset: i64;
    // SAFETY: reads a word that the loader has filled in.
    unsafe {
        asm!("mov {}, qword ptr [rip + trapline_thread@GOTTPOFF]", out(reg) offset, options(nostack, pure, readonly))
    };
    offset
}

/// The thread's data.
#[inline(always)]
pub fn local() -> &'static Local {
    let at: u64;
    // SAFETY: thread-local storage is mapped as long as the thread runs; all zeros are valid, and all fields are atomic.
    unsafe {
        asm!("mov {0}, qword ptr [rip + trapline_thread@GOTTPOFF]", "add {0}, qword ptr fs:[0]", out(reg) at,
            options(nostack, pure, readonly));
        &*(at as *const Local)
    }
}

pub use crate::slots::ENTRY;
use crate::slots::{FRONT, PART, PARTS};

/// The least and the most bytes of a shadow stack. A frame takes 16 bytes of stack at least, and an entry has [`ENTRY`].
const LEAST: u64 = 16 << 20;
const MOST: u64 = 256 << 20;
/// What is mapped of it at first.
const FIRST: u64 = 480 << 10;
/// Bytes that are mapped above a full shadow stack: for the entries of as many records as a chunk has, and for barriers.
pub const SPARE: u64 = 320 << 10;
const _: () = assert!(abi::shared::CHUNK as u64 / 8 * ENTRY + (64 << 10) <= SPARE);

fn allocate(tid: u32, local: u64) -> Option<(u64, u64, u32)> {
    let shadow = (kernel::stack_limit().clamp(LEAST, MOST) * (ENTRY / 16) + SPARE) & !4095;
    let (whole, first) = (FRONT + shadow, FRONT + FIRST);
    let memory = kernel::reserve_first(whole + (PARTS - 1) * PART, first)?;
    let place = slots::add(tid, local, memory, (first, whole));
    Some((memory, first, place))
}

/// Sees to it that what stubs push before they come to slow code again has room above the top. Where there is none to be had, the
/// next entry comes to slow code, and is refused.
#[inline(always)]
pub fn has_room(local: &Local) -> bool {
    let top = local.top.load(Relaxed);
    top < local.full.load(Relaxed) || top == 0 || grows(local, top)
}

/// The end of what is mapped of the thread's shadow stack.
pub fn limit(local: &Local) -> u64 {
    local.full.load(Relaxed) + SPARE
}

#[cold]
fn grows(local: &Local, top: u64) -> bool {
    let memory = local.memory.load(Relaxed);
    let slot = slots::at(local.place.load(Relaxed)).filter(|_| permits::records());
    while let Some(slot) = slot {
        let full = memory + slot.len() - SPARE;
        local.full.store(full, Relaxed);
        if top < full {
            return true;
        }
        if !slot.grow() {
            break;
        }
    }
    local.top_slot.store(0, Relaxed);
    false
}

/// Gives a thread its shadow stack. Signals are blocked.
pub fn enter(local: &Local) -> bool {
    if local.top.load(Relaxed) != 0 {
        return true;
    }
    if local.without.load(Relaxed) != 0 {
        return false;
    }
    identify(local);
    let tid = local.tid.load(Relaxed);
    let own = core::ptr::from_ref(local) as u64;
    let Some((memory, len, place)) = slots::inherit(tid, own).or_else(|| allocate(tid, own)) else {
        local.without.store(1, Relaxed);
        return false;
    };
    let sentinel = memory + FRONT;
    // SAFETY: the memory is this thread's alone.
    unsafe { crate::memory::store(sentinel, i64::MAX as u64) };
    let base = sentinel + ENTRY;
    local.memory.store(memory, Relaxed);
    local.place.store(place, Relaxed);
    local.full.store(memory + len - SPARE, Relaxed);
    local.base.store(base, Relaxed);
    local.top_slot.store(i64::MAX as u64, Relaxed);
    local.top.store(base, Relaxed);
    true
}

/// Bytes of a thread's rows.
const COUNTS: u64 = ROWS as u64 * size_of::<Row>() as u64;

/// Gives a thread its rows. It has its shadow stack; signals are blocked. A child of fork begins with zeros.
pub fn give_counts(local: &Local) -> bool {
    let Some(slot) = slots::at(local.place.load(Relaxed)) else { return false };
    let mut counts = slot.counts.load(Relaxed);
    if counts == 0 {
        let Some(new) = kernel::reserve(COUNTS) else { return false };
        // SAFETY: the memory is new.
        unsafe { kernel::wipe_on_fork(new, COUNTS) };
        slot.counts.store(new, Release);
        counts = new;
    }
    local.counts.store(counts, Relaxed);
    true
}

/// Gives a thread memory for its allocations: this many bytes. It has its shadow stack; signals are blocked.
pub fn give_heap(local: &Local, len: u64) -> bool {
    let Some(slot) = slots::at(local.place.load(Relaxed)) else { return false };
    let mut heap = slot.heap.load(Relaxed);
    if heap == 0 {
        let Some(new) = kernel::reserve(len) else { return false };
        slot.heap.store(new, Release);
        heap = new;
    }
    local.heap.store(heap, Relaxed);
    true
}

static MISSED: AtomicU64 = AtomicU64::new(0);
static NESTED: AtomicU64 = AtomicU64::new(0);

/// Counts a call that no tracer sees, because there is no memory for the thread.
pub fn miss() {
    MISSED.fetch_add(1, Relaxed);
}

/// Counts a call that no tracer sees, because the thread is in one.
pub fn nest() {
    NESTED.fetch_add(1, Relaxed);
}

/// Calls that no tracer saw: without memory, and in tracers.
pub fn missed() -> [u64; 2] {
    [MISSED.load(Relaxed), NESTED.load(Relaxed)]
}

/// What all threads have counted of a function. Other threads are stopped.
pub fn counted(number: u32) -> Row {
    let mut sum = Row::default();
    for slot in slots::all() {
        let counts = slot.counts.load(Acquire);
        if counts != 0 && number < ROWS {
            // SAFETY: a row of memory that is never unmapped.
            let row = unsafe { (counts as *const Row).add(number as usize).read_volatile() };
            sum.calls = sum.calls.wrapping_add(row.calls);
            sum.total = sum.total.wrapping_add(row.total);
            sum.own = sum.own.wrapping_add(row.own);
        }
    }
    sum
}

/// Sets what was counted to zero. Other threads are stopped.
pub fn forget_counts() {
    for counts in slots::all().iter().map(|s| s.counts.load(Acquire)).filter(|c| *c != 0) {
        // SAFETY: the memory is the agent's, and has nothing that is needed any more.
        unsafe { kernel::discard(counts, COUNTS) };
    }
}

/// Finds out the thread's id, if that is not known.
pub fn identify(local: &Local) {
    if local.tid.load(Relaxed) == 0 {
        local.tid.store(kernel::gettid() as u32, Relaxed);
    }
}

/// Finds out the thread's id, which is another one in a child of fork(2).
pub fn identify_again(local: &Local) {
    let tid = kernel::gettid() as u32;
    if local.tid.swap(tid, Relaxed) != tid
        && let Some(slot) = slots::at(local.place.load(Relaxed))
    {
        slot.is_now(tid);
    }
}
