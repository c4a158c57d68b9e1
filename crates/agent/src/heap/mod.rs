//! Functions that allocate and free memory: what stands in for them calls the original, and writes a record ([`abi::heap`]).
//!
//! ```text
//!  malloc: jmp thunk ─► r11 = original, jmp here ─► original ─► walk the stack ─► (new? Stack) Malloc ─► back to the caller
//!  free:   jmp thunk ─► …                        ─► Free ─► original
//! ```
//!
//! A process may have several allocators, each with its own originals: so a thunk hands over where its original goes on. Calls of an allocator
//! by an allocator are its own affair: the outermost counts. Errno, and all registers that a caller may rely on, stay as the original leaves them.

mod entry;
mod known;
mod memory;
mod sample;
mod stacks;
mod write;

pub use entry::addresses;
pub use write::{before_fork, resume, stack, suspend};

use crate::op::recording;
use crate::thread::{Local, local};
use crate::{chunks, originals, tables};
use abi::heap::Op;
use core::sync::atomic::Ordering::Relaxed;
use unwind::Registers;
use write::{allocated, freed, moved, now, reallocated, unmapped};

/// The frame of a stand-in: what its entry has pushed, and the return address above it.
#[repr(C)]
pub struct Frame {
    /// rbp of the caller.
    rbp: u64,
    /// Where the caller goes on.
    address: u64,
}

impl Frame {
    fn place(&self) -> u64 {
        core::ptr::from_ref(self) as u64
    }

    /// The caller, behind its call.
    fn caller(&self) -> Registers {
        Registers { pc: self.address, sp: self.place() + 16, bp: self.rbp }
    }
}

/// An original, with as many arguments as it may have.
type Original = extern "C" fn(u64, u64, u64) -> u64;

/// How far below its caller a function of the same allocator may run.
const DEEP: u64 = 1 << 20;

/// Whether an allocator calls itself: a call of it that has not returned is further out on the same stack.
#[inline(always)]
fn is_inside(local: &Local, frame: &Frame) -> bool {
    local.allocator.load(Relaxed).wrapping_sub(frame.place() + 1) < DEEP
}

/// Runs an original, as the outermost function of an allocator.
#[inline(always)]
fn outermost<T>(local: &Local, frame: &Frame, original: impl FnOnce() -> T) -> T {
    local.allocator.store(frame.place(), Relaxed);
    let result = original();
    local.allocator.store(0, Relaxed);
    result
}

/// Whether a block that the thread has got is recorded; if so, its free will be.
#[inline(always)]
fn takes(local: &Local, address: u64, size: u64) -> bool {
    let rate = sample::rate();
    if rate == 0 {
        return true;
    }
    // SAFETY: no other reference is in use here.
    unsafe { memory::memory(local) }.is_some_and(|m| m.countdown.takes(rate, size)) && keeps(local, address)
}

/// Notes a block that is to be recorded, or counts it as lost.
#[cold]
fn keeps(local: &Local, address: u64) -> bool {
    let added = sample::add(address);
    if !added {
        chunks::drop_records(local, 1);
    }
    added
}

/// What allocates, has this size, and returns the block, or null.
#[inline(always)]
fn allocates(a: u64, b: u64, c: u64, original: Original, frame: &Frame, size: u64) -> u64 {
    let local = local();
    if !recording() || is_inside(local, frame) {
        return original(a, b, c);
    }
    let block = outermost(local, frame, || original(a, b, c));
    if block != 0 && takes(local, block, size) {
        allocated(local, Op::Malloc, now(local), block, size, frame);
    }
    block
}

/// malloc(size), operator new(size, …).
extern "C" fn malloc(size: u64, b: u64, c: u64, original: Original, frame: &Frame) -> u64 {
    allocates(size, b, c, original, frame, size)
}

/// aligned_alloc(alignment, size).
extern "C" fn aligned(alignment: u64, size: u64, c: u64, original: Original, frame: &Frame) -> u64 {
    allocates(alignment, size, c, original, frame, size)
}

/// calloc(count, size).
extern "C" fn calloc(count: u64, size: u64, c: u64, original: Original, frame: &Frame) -> u64 {
    allocates(count, size, c, original, frame, count.wrapping_mul(size))
}

/// posix_memalign(where, alignment, size).
extern "C" fn posix_memalign(place: u64, alignment: u64, size: u64, original: Original, frame: &Frame) -> u64 {
    let local = local();
    if !recording() || is_inside(local, frame) {
        return original(place, alignment, size);
    }
    let error = outermost(local, frame, || original(place, alignment, size));
    // The upper half of a register that returns an int is not its business.
    if error as u32 == 0 {
        // SAFETY: the original has just put the block's address there.
        let block = unsafe { crate::memory::load(place) };
        if block != 0 && takes(local, block, size) {
            allocated(local, Op::Malloc, now(local), block, size, frame);
        }
    }
    error
}

/// realloc(block, size), reallocarray(block, count, size): the latter with `times`.
#[inline(always)]
fn reallocates(block: u64, b: u64, c: u64, original: Original, frame: &Frame, times: u64) -> u64 {
    let local = local();
    if !recording() || is_inside(local, frame) {
        return original(block, b, c);
    }
    let size = b.wrapping_mul(times);
    // Before it, because another thread may get the block's address then.
    let was_seen = block != 0 && sample::frees(block);
    let before = if was_seen { now(local) } else { 0 };
    let new = outermost(local, frame, || original(block, b, c));
    // Nothing was done, or nothing can be said: a size of 0 frees the block, or does not.
    if new == 0 && (block == 0 || size != 0) {
        if was_seen && sample::rate() != 0 {
            sample::add(block);
        }
        return new;
    }
    match (was_seen, new != 0 && takes(local, new, size)) {
        (false, false) => {}
        (false, true) => allocated(local, Op::Malloc, now(local), new, size, frame),
        (true, false) => freed(local, before, block),
        (true, true) => reallocated(local, (before, now(local)), block, (new, size), frame),
    }
    new
}

/// realloc(block, size).
extern "C" fn realloc(block: u64, size: u64, c: u64, original: Original, frame: &Frame) -> u64 {
    reallocates(block, size, c, original, frame, 1)
}

/// reallocarray(block, count, size).
extern "C" fn reallocarray(block: u64, count: u64, size: u64, original: Original, frame: &Frame) -> u64 {
    reallocates(block, count, size, original, frame, size)
}

/// free(block), operator delete(block, …).
extern "C" fn free(block: u64, b: u64, c: u64, original: Original, frame: &Frame) -> u64 {
    let local = local();
    if block == 0 || !recording() || is_inside(local, frame) {
        return original(block, b, c);
    }
    if sample::frees(block) {
        freed(local, now(local), block);
    }
    outermost(local, frame, || original(block, b, c))
}

/// `free(block)` of libc. At the end of a thread glibc frees the blocks of its cache (tcache_thread_shutdown), which the program has freed
/// before: such a call names `free` itself, where all others, libc's own too, go through a table (PLT).
extern "C" fn free_of_libc(block: u64, b: u64, c: u64, original: Original, frame: &Frame) -> u64 {
    // SAFETY: the caller's call instruction ends there: the distance of a direct one is in its last four bytes.
    let distance = unsafe { ((frame.address - 4) as *const i32).read_unaligned() };
    if frame.address.wrapping_add_signed(distance.into()) == originals::free_of_libc() {
        return original(block, b, c);
    }
    free(block, b, c, original, frame)
}

/// Forgets what belongs to a session: the next collector knows no stack, and has tables and mappings of its own. All other threads are
/// stopped. `free`: none of them is in the agent.
pub fn leave(free: bool) {
    known::forget();
    sample::forget();
    memory::forget();
    tables::leave(free);
}

/// Whether a call of the kernel has failed, by what libc's function returns.
fn is_error(result: u64) -> bool {
    result >= -4095i64 as u64
}

/// mmap(address, length, protection, flags, descriptor, offset).
extern "C" fn mmap(a: u64, len: u64, c: u64, d: u64, e: u64, f: u64, original: u64, frame: &Frame) -> u64 {
    // SAFETY: the plan has put the beginning of `mmap` there.
    let original: extern "C" fn(u64, u64, u64, u64, u64, u64) -> u64 = unsafe { core::mem::transmute(original) };
    let local = local();
    if !recording() || is_inside(local, frame) {
        return original(a, len, c, d, e, f);
    }
    let at = outermost(local, frame, || original(a, len, c, d, e, f));
    if !is_error(at) {
        allocated(local, Op::Mmap, now(local), at, len, frame);
    }
    at
}

/// munmap(address, length).
extern "C" fn munmap(address: u64, len: u64, c: u64, original: Original, frame: &Frame) -> u64 {
    let local = local();
    if !recording() || is_inside(local, frame) {
        return original(address, len, c);
    }
    let before = now(local);
    let result = outermost(local, frame, || original(address, len, c));
    if result as u32 == 0 {
        unmapped(local, before, (address, len));
    }
    result
}

/// mremap(old address, old length, new length, flags, new address).
extern "C" fn mremap(old: u64, old_len: u64, len: u64, d: u64, e: u64, _: u64, original: u64, frame: &Frame) -> u64 {
    // SAFETY: the plan has put the beginning of `mremap` there.
    let original: extern "C" fn(u64, u64, u64, u64, u64) -> u64 = unsafe { core::mem::transmute(original) };
    let local = local();
    if !recording() || is_inside(local, frame) {
        return original(old, old_len, len, d, e);
    }
    let before = now(local);
    let new = outermost(local, frame, || original(old, old_len, len, d, e));
    if !is_error(new) {
        moved(local, (before, now(local)), (old, old_len), (new, len), frame);
    }
    new
}
