//! What the agent keeps of each thread, in thread-local storage, and where shadow stacks come from.
//!
//! ```text
//!  memory of a thread:  FRAMES ── BURIED ── sentinel ── shadow entries ──►        reserved, not allocated: pages come as they are used
//! ```
//!
//! The memory of a thread that has ended is found by its id, which the kernel no longer knows, and used again.

use crate::kernel;
use abi::stub::Variant;
use abi::thread::{Shadow, ShadowTimed, Thread};
use core::arch::{asm, global_asm};
use core::mem::{offset_of, size_of};
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
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
    pub busy: AtomicU32,
    pub base: AtomicU64,
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
    /// The end of its shadow stack.
    pub limit: AtomicU64,
    /// 1: there was no memory for it; its calls are not observed.
    pub without: AtomicU32,
    /// Which of the descriptions of frames was used last.
    pub frame: AtomicU32,
}

const _: () = assert!(size_of::<Local>() <= size_of::<Thread>());
const _: () = assert!(offset_of!(Local, top) == abi::thread::TOP as usize);
const _: () = assert!(offset_of!(Local, top_slot) == abi::thread::TOP_SLOT as usize);
const _: () = assert!(offset_of!(Local, cur) == abi::thread::CUR as usize);
const _: () = assert!(offset_of!(Local, end) == abi::thread::END as usize);
const _: () = assert!(offset_of!(Local, high) == abi::thread::HIGH as usize);
const _: () = assert!(offset_of!(Local, base) == abi::thread::BASE as usize);
const _: () = assert!(offset_of!(Local, chunk) == abi::thread::CHUNK as usize);

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

/// Bytes of a shadow entry, the same in the whole process; 0: no area has been mapped yet.
static STRIDE: AtomicU64 = AtomicU64::new(0);

/// Bytes of a shadow entry.
#[inline(always)]
pub fn stride() -> u64 {
    match STRIDE.load(Relaxed) {
        0 => size_of::<Shadow>() as u64,
        n => n,
    }
}

/// Whether stubs of this variant may be mapped: a process has shadow entries of one size.
pub fn accepts(variant: Variant) -> bool {
    let wanted = match variant {
        Variant::Entry => return true,
        Variant::Timed => size_of::<ShadowTimed>(),
        Variant::Paired | Variant::NoTime => size_of::<Shadow>(),
    } as u64;
    STRIDE.compare_exchange(0, wanted, AcqRel, Acquire).map_or_else(|now| now == wanted, |_| true)
}

/// Forgets the size of shadow entries: no thread has one.
pub fn forget_stride() {
    STRIDE.store(0, Release);
}

/// Bytes for descriptions of frames, at the beginning of a thread's memory.
pub const FRAMES: u64 = 4096;
/// Bytes for buried entries, behind those.
pub const BURIED: u64 = 1 << 20;
/// The least and the most bytes of a shadow stack. A frame takes 16 bytes of stack at least, and a paired stub's entry has 16.
const LEAST: u64 = 16 << 20;
const MOST: u64 = 256 << 20;

/// A thread's memory, and who has it.
#[repr(C)]
struct Slot {
    tid: AtomicU32,
    /// Bytes / 4096.
    pages: AtomicU32,
    memory: AtomicU64,
}

const SLOTS: usize = 1 << 16;
static TABLE: AtomicU64 = AtomicU64::new(0);
static USED: AtomicU32 = AtomicU32::new(0);
static NEXT: AtomicU32 = AtomicU32::new(0);

/// Makes the table of threads' memory. At the start, once.
pub fn begin() -> bool {
    if TABLE.load(Relaxed) != 0 {
        return true;
    }
    let Some(table) = kernel::reserve((SLOTS * size_of::<Slot>()) as u64) else { return false };
    TABLE.store(table, Release);
    true
}

fn slots() -> &'static [Slot] {
    let table = TABLE.load(Acquire);
    if table == 0 {
        return &[];
    }
    let used = (USED.load(Acquire) as usize).min(SLOTS);
    // SAFETY: the table has room for SLOTS, is never unmapped, and zeros are valid.
    unsafe { core::slice::from_raw_parts(table as *const Slot, used) }
}

/// Memory of a thread that has ended: the process's threads before fork(2) and those of the same id count as such.
fn inherit(tid: u32) -> Option<(u64, u64)> {
    let slots = slots();
    let pages = |s: &Slot| u64::from(s.pages.load(Relaxed)) << 12;
    // Memory for entries of another size may be too small.
    let large = |s: &&Slot| pages(s) >= wanted();
    if let Some(own) = slots.iter().find(|s| s.tid.load(Relaxed) == tid).filter(large) {
        return Some((own.memory.load(Relaxed), pages(own)));
    }
    let pid = kernel::getpid() as u32;
    // A few at each time: a new mapping costs less than many questions.
    for _ in 0..slots.len().min(16) {
        let i = NEXT.fetch_add(1, Relaxed) as usize % slots.len();
        let slot = slots.get(i)?;
        let owner = slot.tid.load(Acquire);
        let memory = slot.memory.load(Relaxed);
        if owner != 0
            && memory != 0
            && large(&slot)
            && kernel::tgkill(pid, owner, 0) == kernel::ESRCH
            && slot.tid.compare_exchange(owner, tid, AcqRel, Relaxed).is_ok()
        {
            return Some((memory, pages(slot)));
        }
    }
    None
}

/// Bytes of a thread's memory.
fn wanted() -> u64 {
    let shadow = (kernel::stack_limit().clamp(LEAST, MOST) * (stride() / 16)) & !4095;
    FRAMES + BURIED + shadow
}

fn allocate(tid: u32) -> Option<(u64, u64)> {
    let len = wanted();
    let memory = kernel::reserve(len)?;
    let i = USED.fetch_add(1, AcqRel) as usize;
    if i >= SLOTS {
        USED.fetch_sub(1, AcqRel);
        return Some((memory, len));
    }
    if let Some(slot) = slots().get(i) {
        slot.pages.store((len >> 12) as u32, Relaxed);
        slot.memory.store(memory, Relaxed);
        slot.tid.store(tid, Release);
    }
    Some((memory, len))
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
    let inherited = inherit(tid);
    let Some((memory, len)) = inherited.or_else(|| allocate(tid)) else {
        local.without.store(1, Relaxed);
        return false;
    };
    if inherited.is_some() {
        let flags = kernel::MAP_PRIVATE | kernel::MAP_ANONYMOUS | kernel::MAP_NORESERVE | kernel::MAP_FIXED;
        // Buried entries of the thread before would be found again: its stack may lie where this one's does.
        kernel::map(memory + FRAMES, BURIED, kernel::PROT_READ | kernel::PROT_WRITE, flags, -1);
    }
    let sentinel = memory + FRAMES + BURIED;
    // SAFETY: the memory is this thread's alone.
    unsafe { crate::memory::store(sentinel, i64::MAX as u64) };
    let base = sentinel + stride();
    local.memory.store(memory, Relaxed);
    local.limit.store(memory + len, Relaxed);
    local.base.store(base, Relaxed);
    local.top_slot.store(i64::MAX as u64, Relaxed);
    local.top.store(base, Relaxed);
    true
}

/// Finds out the thread's id, if that is not known.
pub fn identify(local: &Local) {
    if local.tid.load(Relaxed) == 0 {
        local.tid.store(kernel::gettid() as u32, Relaxed);
    }
}
