//! Records of allocations, as they lie in a chunk (`abi::heap`).

use crate::shared::control;
use crate::thread::Local;
use abi::heap::{Op, RECORDED};
use abi::shared::HIGH;
use core::sync::atomic::Ordering::{Relaxed, SeqCst};
use core::sync::atomic::compiler_fence;

/// How far ahead of a record memory is fetched, bytes.
const AHEAD: u64 = 512;
/// Bytes of a marker.
pub const MARKER: u64 = 8;
/// Bytes of a record up to its address.
pub const HEAD: u64 = 16;
/// Bytes of a record behind which its length counts.
const BEFORE_VALUES: u64 = 10;

/// Whether allocations are recorded.
#[inline(always)]
pub fn recording() -> bool {
    control().is_some_and(|c| c.heap.load(Relaxed) & RECORDED != 0)
}

/// Writes a record, for which there is room: `rest` and `more` follow its address. The thread is busy. False: a handler has forked
/// meanwhile, and this is the child; or another session has begun.
#[inline(always)]
pub fn put(local: &Local, time: u64, op: Op, address: u64, rest: &[u64], more: &[u64]) -> bool {
    let mut at = local.cur.load(Relaxed);
    let (begun, high) = (at, (time >> 32) as u32);
    let len = HEAD + 8 * (rest.len() + more.len()) as u64;
    if at == 0 || at + MARKER + len > local.end.load(Relaxed) {
        return false;
    }
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
