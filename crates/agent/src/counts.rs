//! The thread's rows: what functions have been called, and how long that took.

use crate::entries::Entry;
use crate::thread::{self, Local};
use crate::{chunks, kernel, permits, shared, sites};
use abi::shared::Control;
use abi::thread::{MEASURED, Measured, ROWS, Row, WRITTEN};
use core::arch::asm;
use core::mem::offset_of;
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::Relaxed;

/// The row of a function ([`Row`]).
type Counts = [AtomicU64; size_of::<Row>() / 8];

/// Adds to a word of the thread, in one instruction, because a handler may add to it too.
#[inline(always)]
fn add(word: &AtomicU64, value: u64) {
    // SAFETY: an atomic word, which no other thread writes.
    unsafe { asm!("add qword ptr [{}], {}", in(reg) word.as_ptr(), in(reg) value, options(nostack)) };
}

#[inline(always)]
fn row(local: &Local, number: u32) -> Option<&'static Counts> {
    let counts = local.counts.load(Relaxed);
    // SAFETY: the thread's rows are so many, and never unmapped.
    (counts != 0 && number < ROWS).then(|| unsafe { &*(counts as *const Counts).add(number as usize) })
}

/// A call of a function that is counted begins.
#[inline(always)]
pub fn count(local: &Local, number: u32) {
    if local.counts.load(Relaxed) == 0 && permits::records() {
        let mask = kernel::block();
        thread::give_counts(local);
        kernel::set_mask(mask);
    }
    match row(local, number) {
        None => thread::miss(),
        Some([calls, ..]) => add(calls, 1),
    }
}

/// A call has ended of which a session keeps sums: what its stub would have done. In a child of fork the thread may have no rows yet.
fn measure(local: &Local, number: u32, ticks: u64) {
    let has_rows = local.counts.load(Relaxed) != 0 || chunks::give_rows(local);
    let row = local.counts.load(Relaxed) + u64::from(number) * size_of::<Measured>() as u64;
    let measures = |c: &&Control| c.sums == size_of::<Measured>() as u64 && number < MEASURED;
    let Some(control) = shared::control().filter(measures).filter(|_| has_rows) else {
        return chunks::drop_records(local, 1);
    };
    let dur = ((u128::from(ticks) * u128::from(control.scale)) >> 64) as u64;
    // SAFETY: a row of the thread's chunk, in which all words may be used as atomic ones.
    let word = |offset: usize| unsafe { &*((row + offset as u64) as *const AtomicU64) };
    let bucket = (dur << 1 | 1).ilog2() as usize;
    add(word(offset_of!(Measured, ended)), 1);
    add(word(offset_of!(Measured, total)), dur);
    word(offset_of!(Measured, most)).fetch_max(dur, Relaxed);
    word(offset_of!(Measured, least)).fetch_max(!dur, Relaxed);
    add(word(offset_of!(Measured, buckets) + 8 * bucket), 1);
}

/// A call has ended. `patch::stub` says what is done with its time.
#[inline(always)]
pub fn add_time(local: &Local, number: u32, entry: Entry, ticks: u64) {
    if shared::sums() != 0 {
        return measure(local, number, ticks);
    }
    let Some([_, total, own, _]) = row(local, number) else { return };
    add(total, ticks);
    add(own, ticks);
    let below = entry.word_below();
    let counted = below & WRITTEN != 0 && sites::get(below & !WRITTEN).is_some();
    if let Some([_, _, own, _]) = row(local, below & !WRITTEN).filter(|_| counted) {
        add(own, ticks.wrapping_neg());
    }
}
