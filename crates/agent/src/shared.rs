//! The memory that the process shares with the collector: its beginning, its chunks and their headers.

use crate::{kernel, permits};
use abi::shared::{ChunkHeader, Control, HEADERS, MAGIC, OWNER_DIED, WAITERS};
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicU32, AtomicU64};

/// Address of the shared memory; 0 without one.
pub static SHARED: AtomicU64 = AtomicU64::new(0);
static LEN: AtomicU64 = AtomicU64::new(0);
/// [`Control::sums`] of the last memory that was taken over.
static SUMS: AtomicU64 = AtomicU64::new(0);
/// How many bytes of it are mapped: more when threads need more chunks.
static MAPPED: AtomicU64 = AtomicU64::new(0);
/// 1: a thread maps more.
static GROWING: AtomicU32 = AtomicU32::new(0);
/// Bytes of a page.
pub const PAGE: u64 = 4096;
/// How much is mapped at first.
const FIRST: u64 = 4 << 20;
/// 1: the collector is gone, for good.
static GONE: AtomicU32 = AtomicU32::new(0);

/// The first page of the shared memory.
pub fn control() -> Option<&'static Control> {
    let shared = SHARED.load(Acquire);
    // SAFETY: checked by `attach`, and mapped as long as the address is there.
    (shared != 0).then(|| unsafe { &*(shared as *const Control) })
}

pub fn chunk_address(control: &Control, number: u32) -> u64 {
    let headers = (size_of::<ChunkHeader>() as u64 * u64::from(control.chunks)).next_multiple_of(4096);
    address_of(control) + HEADERS as u64 + headers + u64::from(number) * u64::from(control.chunk_size)
}

pub fn header(control: &Control, number: u32) -> Option<&'static ChunkHeader> {
    if number >= control.chunks {
        return None;
    }
    // SAFETY: `attach` has checked that this many headers lie in the mapping.
    Some(unsafe { &*((address_of(control) + HEADERS as u64) as *const ChunkHeader).add(number as usize) })
}

/// Bytes of a row, where the session keeps sums instead of records; else 0. Also in a child of fork that has no memory of its own yet: its
/// threads wait for that, and must not take rows that nobody reads.
pub fn sums() -> u64 {
    SUMS.load(Relaxed)
}

/// Where a shared memory is: a thread may hold on to one that [`leave`] has left meanwhile.
pub fn address_of(control: &Control) -> u64 {
    core::ptr::from_ref(control) as u64
}

/// Whether the next record goes to this memory, and not to one that was left while the thread took its chunk.
pub fn is_in(control: &Control, cur: u64) -> bool {
    let shared = address_of(control);
    shared <= cur && cur <= shared + LEN.load(Relaxed)
}

/// Whether an address is in the memory of the session.
pub fn is_of_session(cur: u64) -> bool {
    cur != 0 && control().is_some_and(|c| is_in(c, cur))
}

/// How many chunks are mapped as wholes, of which there is one at least.
pub fn mapped_chunks(control: &Control) -> u32 {
    let before = chunk_address(control, 0) - address_of(control);
    let there = MAPPED.load(Acquire).saturating_sub(before) / u64::from(control.chunk_size);
    there.min(control.chunks.into()).max(1) as u32
}

/// How much of a shared memory of this many bytes is mapped at first.
pub fn first(len: u64) -> u64 {
    if permits::grows() { len.min(FIRST) } else { len }
}

/// What has to be mapped for the first chunk.
fn with_first_chunk(control: &Control) -> u64 {
    chunk_address(control, 0) - address_of(control) + u64::from(control.chunk_size)
}

/// Maps more of the shared memory, which has no free chunk in what is mapped: twice as much, or all. False: there is no more.
pub fn grow(control: &Control, all: bool) -> bool {
    let (shared, len) = (address_of(control), LEN.load(Relaxed));
    let there = MAPPED.load(Acquire);
    if there >= len || !permits::grows() {
        return false;
    }
    if GROWING.compare_exchange(0, 1, AcqRel, Acquire).is_err() {
        while GROWING.load(Acquire) != 0 && permits::records() {
            kernel::sleep(20_000);
        }
    } else {
        let there = MAPPED.load(Acquire);
        let new = if all { len } else { len.min(2 * there) };
        if kernel::extend_file(shared, there, new) {
            MAPPED.store(new, Release);
        }
        GROWING.store(0, Release);
    }
    MAPPED.load(Acquire) > there
}

/// Maps all of it: the program is about to forbid itself the call for more.
pub fn map_all() {
    if let Some(control) = control() {
        grow(control, true);
    }
}

/// Takes over shared memory that the collector has sent. False: it is not what it should be.
///
/// # Safety
/// The first bytes of it ([`first`]) are mapped at the address, and stay until [`free`] where it is taken over.
pub unsafe fn attach(at: u64, len: u64) -> bool {
    if first(len) < HEADERS as u64 {
        return false;
    }
    // SAFETY: so says the caller.
    let control = unsafe { &*(at as *const Control) };
    let headers = (64 * u64::from(control.chunks)).next_multiple_of(4096);
    let chunks = u64::from(control.chunks) * u64::from(control.chunk_size);
    let right = control.magic == MAGIC
        && control.version == abi::VERSION
        && control.chunk_size >= 4096
        && (control.chunk_size <= abi::shared::CHUNK as u32 || control.sums != 0)
        && control.chunk_size.is_multiple_of(4096)
        && chunks <= len
        && HEADERS as u64 + headers + chunks <= len;
    let (there, needed) = (first(len), with_first_chunk(control));
    let mapped = there.max(needed);
    if right && (mapped == there || kernel::extend_file(at, there, mapped)) {
        LEN.store(len, Relaxed);
        MAPPED.store(mapped, Relaxed);
        GROWING.store(0, Relaxed);
        SUMS.store(control.sums, Relaxed);
        SHARED.store(at, Release);
        return true;
    }
    false
}

/// Memory of earlier sessions that a thread may still write to: address, then length.
static LEFT: [[AtomicU64; 2]; 16] = [const { [const { AtomicU64::new(0) }; 2] }; 16];

/// Leaves the shared memory for good. It stays mapped, until [`free`]: a thread may be about to write to it. All others are stopped.
pub fn leave() {
    let Some((shared, len)) = exchange() else { return };
    if let Some([at, bytes]) = LEFT.iter().find(|[at, _]| at.load(Relaxed) == 0) {
        bytes.store(len, Relaxed);
        at.store(shared, Relaxed);
    }
}

/// Takes the shared memory out of use: where it is, and its bytes. It stays mapped.
pub fn exchange() -> Option<(u64, u64)> {
    let (shared, len) = (SHARED.swap(0, AcqRel), LEN.load(Relaxed));
    GONE.store(0, Relaxed);
    (shared != 0).then_some((shared, len))
}

/// Unmaps what [`leave`] has left.
///
/// # Safety
/// No thread is in a stub or in the agent.
pub unsafe fn free() {
    for [at, len] in &LEFT {
        let shared = at.swap(0, Relaxed);
        if shared != 0 {
            // SAFETY: so says the caller: nobody writes to it any more.
            unsafe { kernel::unmap(shared, len.load(Relaxed)) };
        }
    }
}

/// Tells the collector where the table of threads is, and the number of its slots; `table` gets the number of the memory.
pub fn tell_threads(table: impl Fn(u32) -> [u64; 2]) {
    if let Some(control) = control() {
        let [table, used] = table(control.number);
        control.used.store(used, Relaxed);
        control.threads.store(table, Release);
    }
}

/// The collector's thread, in its own PID namespace; 0: there is none, or it is gone.
pub fn collector() -> u32 {
    const OWNER: u32 = !(OWNER_DIED | WAITERS);
    control().filter(|c| !is_gone(c)).map_or(0, |c| c.collector.load(Relaxed) & OWNER)
}

/// Whether the collector was found to be gone.
pub fn was_left() -> bool {
    GONE.load(Relaxed) != 0
}

pub fn is_gone(control: &Control) -> bool {
    let word = control.collector.load(Relaxed);
    let gone = word == 0 || word & OWNER_DIED != 0;
    if gone {
        GONE.store(1, Relaxed);
        // Nobody reads it any more: allocations cost no more than the way through their stand-ins.
        control.heap.store(0, Relaxed);
    }
    gone
}

/// Counts an exec into a program that the agent cannot follow.
pub fn count_left() {
    if let Some(control) = control() {
        control.left.fetch_add(1, Relaxed);
    }
}
