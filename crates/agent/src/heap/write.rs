//! Records of allocations in the thread's chunk.
//!
//! While a record is made, the thread is **busy**: a handler that interrupts it gets a chunk of its own ([`suspend`], [`resume`]), so that
//! signals need not be blocked. The chunk that was interrupted is there again when the handler returns. If it never does (siglongjmp), that
//! chunk stays the thread's until it ends, and what was begun there is no record: its word is 0.

use super::memory::{self, Memory, memory};
use super::{Frame, stacks};
use crate::op::{HEAD, MARKER, put, recording};
use crate::thread::Local;
use crate::{child, chunks, kernel, shared};
use abi::heap::{COARSE, Op};
use core::sync::atomic::Ordering::{Acquire, Relaxed, SeqCst};
use core::sync::atomic::compiler_fence;
use unwind::Registers;

/// The time of a record.
#[inline(always)]
pub fn now(local: &Local) -> u64 {
    if let Some(control) = shared::control()
        && control.heap.load(Relaxed) & COARSE != 0
        && memory::is_alone(local)
    {
        return control.now.load(Relaxed);
    }
    kernel::tsc_in_order()
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

/// Whether there is room for this many bytes and a marker, in another chunk if need be.
#[inline(always)]
fn has_room(local: &Local, bytes: u64) -> bool {
    chunks::has_room(local, bytes + MARKER)
}

/// Writes a record without a stack, or counts it.
fn write(local: &Local, time: u64, op: Op, address: u64, rest: &[u64]) {
    busy(local, || {
        // SAFETY: it is only made.
        if unsafe { memory(local) }.is_some() && has_room(local, HEAD + 8 * rest.len() as u64) {
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
        // SAFETY: the only reference here.
        let Some(memory) = unsafe { memory(local) }.filter(|_| has_room(local, HEAD + 16)) else {
            return chunks::drop_records(local, 1);
        };
        let stack = stacks::of(local, memory, frame.caller());
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
        // SAFETY: as in `allocated`.
        let Some(memory) = (unsafe { memory(local) }) else { return chunks::drop_records(local, 1) };
        let stack = stacks::of(local, memory, frame.caller());
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
        // SAFETY: as in `allocated`.
        let Some(memory) = (unsafe { memory(local) }) else { return chunks::drop_records(local, 1) };
        let stack = stacks::of(local, memory, frame.caller());
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
    if !memory.knows(stack) && !define(local, memory, (stack, false), time, bytes) || !has_room(local, bytes) {
        return chunks::drop_records(local, 1);
    }
    record(local);
}

/// Writes the stack that was walked last. `exact`: it begins with what was about to be executed. `bytes`: what follows it.
#[cold]
fn define(local: &Local, memory: &mut Memory, (stack, exact): (u64, bool), time: u64, bytes: u64) -> bool {
    let (frames, ended) = memory.frames(local);
    let Some((first, frames)) = frames.split_first() else {
        return has_room(local, HEAD + 8 + bytes) && put(local, time, Op::Stack, ended, &[stack], &[]);
    };
    let first = if exact { first.wrapping_sub(1) | unwind::Frame::EXACT } else { *first };
    if !has_room(local, HEAD + 8 * (2 + frames.len() as u64) + bytes) {
        return false;
    }
    if put(local, time, Op::Stack, ended, &[stack, first], frames) {
        memory.remember(stack);
    }
    true
}

/// The stack of the thread from an address outward, which the collector knows from then on; 0: not known. `exact`: what has that address is about to
/// be executed; else it is a return address.
pub fn stack(local: &Local, start: Registers, exact: bool, time: u64) -> u64 {
    // Walks begin with return addresses: as if the first byte there had called.
    let start = Registers { pc: start.pc + u64::from(exact), ..start };
    let mut stack = 0;
    busy(local, || {
        // SAFETY: as in `allocated`.
        let Some(memory) = (unsafe { memory(local) }) else { return };
        let walked = stacks::of(local, memory, start);
        if memory.knows(walked) || define(local, memory, (walked, exact), time, 0) {
            stack = walked;
        }
    });
    stack
}

/// The process is about to fork.
pub fn before_fork(local: &Local) {
    if recording() {
        write(local, kernel::tsc(), Op::Fork, child::number(), &[]);
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
        local.last.store(0, Relaxed);
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
    if kernel::getpid() as u32 == s.pid && shared::is_of_session(s.cur) {
        local.chunk.store(s.chunk, Relaxed);
        local.high.store(s.high, Relaxed);
        local.cur.store(s.cur, Relaxed);
        local.end.store(s.end, Relaxed);
    }
    local.last.store(0, Relaxed);
    local.heap_busy.store(s.busy, Relaxed);
}
