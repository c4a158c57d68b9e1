//! Records of allocations in the thread's chunk.
//!
//! While a record is made, the thread is **busy**: a handler that interrupts it gets a chunk of its own ([`suspend`], [`resume`]), so that
//! signals need not be blocked. The chunk that was interrupted is there again when the handler returns. If it never does (siglongjmp), that
//! chunk stays the thread's until it ends, and what was begun there is no record: its word is 0.

use super::Frame;
use super::stacks::{self, Memory};
use crate::thread::{self, Local};
use crate::{chunks, kernel, permits};
use abi::heap::{COARSE, Op, RECORDED};
use abi::shared::HIGH;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use core::sync::atomic::{AtomicU32, AtomicU64, compiler_fence};

/// How far ahead of a record memory is fetched, bytes.
const AHEAD: u64 = 512;
/// Bytes of a marker.
const MARKER: u64 = 8;
/// Bytes of a record up to its address.
const HEAD: u64 = 16;
/// Bytes of a record behind which its length counts.
const BEFORE_VALUES: u64 = 10;

/// Whether allocations are recorded.
#[inline(always)]
pub fn recording() -> bool {
    chunks::control().is_some_and(|c| c.heap.load(Relaxed) & RECORDED != 0)
}

/// The first thread that has allocated.
static FIRST: AtomicU32 = AtomicU32::new(0);
/// 1: others have. A thread sees that after it has got memory that another one has freed: so times are compared where it matters only.
static SEVERAL: AtomicU32 = AtomicU32::new(0);

/// The time of a record.
#[inline(always)]
pub fn now(local: &Local) -> u64 {
    if let Some(control) = chunks::control()
        && control.heap.load(Relaxed) & COARSE != 0
        // Whether there are several threads is known once this one has begun.
        && (local.heap.load(Relaxed) != 0 || begin(local))
        && SEVERAL.load(Relaxed) == 0
    {
        return control.now.load(Relaxed);
    }
    kernel::tsc_in_order()
}

/// The thread's memory; None: there is none to be had.
#[inline(always)]
pub fn memory(local: &Local) -> Option<&'static mut Memory> {
    if local.heap.load(Relaxed) == 0 && !begin(local) {
        return None;
    }
    // SAFETY: it is the thread's alone; a handler that interrupts a busy thread uses another part of it (`stacks::of`).
    Some(unsafe { &mut *(local.heap.load(Relaxed) as *mut Memory) })
}

/// Gives a thread its memory.
#[cold]
fn begin(local: &Local) -> bool {
    let Some(mask) = permits::block() else { return false };
    let given = thread::enter(local) && thread::give_heap(local, size_of::<Memory>() as u64);
    let tid = local.tid.load(Relaxed);
    if given && FIRST.compare_exchange(0, tid, Relaxed, Relaxed).is_err_and(|first| first != tid) {
        SEVERAL.store(1, Release);
    }
    kernel::set_mask(mask);
    given
}

/// Runs `body` while the thread is busy.
#[inline(always)]
fn busy(local: &Local, body: impl FnOnce()) {
    local.heap_busy.store(1, Relaxed);
    compiler_fence(SeqCst);
    body();
    compiler_fence(SeqCst);
    local.heap_busy.store(0, Relaxed);
}

/// Whether there is room for so many bytes and a marker, in another chunk if need be.
#[inline(always)]
fn has_room(local: &Local, bytes: u64) -> bool {
    chunks::has_room(local, bytes + MARKER)
}

/// Writes a record, for which there is room: `rest` and `more` follow its address. The thread is busy. False: a handler has forked
/// meanwhile, and this is the child; or another session has begun.
#[inline(always)]
fn put(local: &Local, time: u64, op: Op, address: u64, rest: &[u64], more: &[u64]) -> bool {
    let mut at = local.cur.load(Relaxed);
    let (begun, high) = (at, (time >> 32) as u32);
    if at == 0 {
        return false;
    }
    let len = HEAD + 8 * (rest.len() + more.len()) as u64;
    // The collector has had this memory last: it comes from another processor's cache.
    // SAFETY: a hint; the address may be anything.
    unsafe { core::arch::x86_64::_mm_prefetch::<{ core::arch::x86_64::_MM_HINT_ET0 }>((at + AHEAD) as *const i8) };
    // SAFETY: the room lies in the thread's own chunk. The collector reads the word after the rest.
    unsafe {
        if local.high.load(Relaxed) != high {
            (at as *mut u64).write_volatile(u64::from(HIGH) << 32 | u64::from(high));
            local.high.store(high, Relaxed);
            at += MARKER;
        }
        ((at + 8) as *mut u64).write_volatile(address << 16 | (len - BEFORE_VALUES));
        for (i, word) in rest.iter().chain(more).enumerate() {
            ((at + HEAD) as *mut u64).add(i).write_volatile(*word);
        }
        compiler_fence(SeqCst);
        (at as *mut u64).write_volatile(u64::from(op.word()) << 32 | time & 0xffff_ffff);
    }
    let is_there = local.cur.load(Relaxed) == begun;
    if is_there {
        local.cur.store(at + len, Relaxed);
    }
    is_there
}

/// Writes a record without a stack, or counts it.
fn write(local: &Local, time: u64, op: Op, address: u64, rest: &[u64]) {
    busy(local, || {
        if memory(local).is_some() && has_room(local, HEAD + 8 * rest.len() as u64) {
            put(local, time, op, address, rest, &[]);
        } else {
            chunks::drop_records(local, 1);
        }
    });
}

/// A block is about to be freed.
#[inline(always)]
pub fn freed(local: &Local, time: u64, block: u64) {
    write(local, time, Op::Free, block, &[]);
}

/// A block was allocated, or memory was mapped.
#[inline(always)]
pub fn allocated(local: &Local, op: Op, time: u64, address: u64, size: u64, frame: &Frame) {
    busy(local, || {
        let Some(memory) = memory(local).filter(|_| has_room(local, HEAD + 16)) else {
            return chunks::drop_records(local, 1);
        };
        let stack = stacks::of(local, memory, frame);
        if op == Op::Malloc && memory.repeats(local, size, stack) {
            put(local, time, Op::Again, address, &[], &[]);
            return;
        }
        with_stack(local, memory, stack, time, |local| put(local, time, op, address, &[size, stack], &[]), HEAD + 16);
        if op == Op::Malloc {
            memory.note(local, size, stack);
        }
    });
}

/// A block was replaced by another one.
pub fn reallocated(local: &Local, (before, after): (u64, u64), old: u64, (new, size): (u64, u64), frame: &Frame) {
    busy(local, || {
        let Some(memory) = memory(local) else { return chunks::drop_records(local, 1) };
        let stack = stacks::of(local, memory, frame);
        let rest = [new, size, stack, after.wrapping_sub(before)];
        with_stack(local, memory, stack, after, |local| put(local, after, Op::Realloc, old, &rest, &[]), HEAD + 32);
    });
}

/// Memory was unmapped, which began at `time`.
pub fn unmapped(local: &Local, time: u64, (address, len): (u64, u64)) {
    stacks::forget_window(local, address, len);
    write(local, time, Op::Munmap, address, &[len]);
}

/// A mapping was moved, or its size changed.
pub fn moved(local: &Local, times: (u64, u64), old: (u64, u64), new: (u64, u64), frame: &Frame) {
    stacks::forget_window(local, old.0, old.1);
    busy(local, || {
        let Some(memory) = memory(local) else { return chunks::drop_records(local, 1) };
        let stack = stacks::of(local, memory, frame);
        let rest = [old.1, new.0, new.1, stack, times.1.wrapping_sub(times.0)];
        with_stack(
            local,
            memory,
            stack,
            times.1,
            |local| put(local, times.1, Op::Mremap, old.0, &rest, &[]),
            HEAD + 40,
        );
    });
}

/// Writes a record with a stack: before it the stack, if nobody has written that yet.
#[inline(always)]
fn with_stack(
    local: &Local,
    memory: &mut Memory,
    stack: u64,
    time: u64,
    record: impl FnOnce(&Local) -> bool,
    bytes: u64,
) {
    if !memory.knows(stack) && !define(local, memory, stack, time, bytes) || !has_room(local, bytes) {
        return chunks::drop_records(local, 1);
    }
    record(local);
}

/// Writes the stack that was walked last. `bytes`: what follows it.
#[cold]
fn define(local: &Local, memory: &mut Memory, stack: u64, time: u64, bytes: u64) -> bool {
    let (frames, ended) = memory.frames(local);
    if !has_room(local, HEAD + 8 * (1 + frames.len() as u64) + bytes) {
        return false;
    }
    if put(local, time, Op::Stack, ended, &[stack], frames) {
        memory.remember(stack);
    }
    true
}

/// The thread begins a chunk: what it has written in another one is no longer the last record.
pub fn forget(local: &Local) {
    let at = local.heap.load(Relaxed);
    if at != 0 {
        // SAFETY: the thread's own memory.
        unsafe { (*(at as *mut Memory)).forget() };
    }
}

/// How many forks the process, or its parent before it was one, has made.
static FORKS: AtomicU64 = AtomicU64::new(0);
/// The process that has forked last, in its own PID namespace.
static FORKER: AtomicU32 = AtomicU32::new(0);

/// The process is about to fork.
pub fn before_fork(local: &Local) {
    if recording() {
        let number = FORKS.fetch_add(1, Relaxed) + 1;
        FORKER.store(kernel::getpid() as u32, Relaxed);
        write(local, kernel::tsc(), Op::Fork, number, &[]);
    }
}

/// A child has got memory of its own, and a chunk with room for this record and others: says whose child it is. Signals are blocked.
pub fn child(local: &Local) {
    let number = FORKS.load(Relaxed);
    if recording() && number != 0 {
        put(local, kernel::tsc(), Op::Child, number, &[FORKER.load(Relaxed).into()], &[]);
    }
}

/// What a handler has interrupted.
pub struct Suspended {
    pid: u32,
    busy: u32,
    allocator: u64,
    chunk: u32,
    high: u32,
    cur: u64,
    end: u64,
}

/// A handler begins. Signals are blocked.
pub fn suspend(local: &Local) -> Suspended {
    let busy = local.heap_busy.swap(0, Relaxed);
    let allocator = local.allocator.swap(0, Relaxed);
    let (mut s, zero) = (Suspended { pid: 0, busy, allocator, chunk: 0, high: 0, cur: 0, end: 0 }, 0);
    if busy != 0 {
        local.heap_level.fetch_add(1, Relaxed);
        s.pid = kernel::getpid() as u32;
        (s.chunk, s.high) = (local.chunk.swap(0, Relaxed), local.high.load(Relaxed));
        (s.cur, s.end) = (local.cur.swap(zero, Relaxed), local.end.swap(zero, Relaxed));
        forget(local);
    }
    s
}

/// The handler has returned. Signals are blocked.
pub fn resume(local: &Local, s: &Suspended) {
    local.allocator.store(s.allocator, Relaxed);
    if s.busy == 0 {
        return;
    }
    if local.chunk.load(Acquire) != 0 {
        chunks::give_up(local);
    }
    local.heap_level.fetch_sub(1, Relaxed);
    // In a child that the handler has made, the chunk is its parent's.
    if kernel::getpid() as u32 == s.pid && chunks::is_of_session(s.cur) {
        local.chunk.store(s.chunk, Relaxed);
        local.high.store(s.high, Relaxed);
        local.cur.store(s.cur, Relaxed);
        local.end.store(s.end, Relaxed);
    }
    forget(local);
    local.heap_busy.store(s.busy, Relaxed);
}
