//! The thread's rows: what functions have been called, and how long that took.

use crate::thread::{self, Local};
use crate::{entries, kernel, permits, sites};
use abi::thread::{Row, WRITTEN};
use core::arch::asm;
use core::sync::atomic::Ordering::Relaxed;

/// Adds to a word of the thread, in one instruction, because a handler may add to it too.
#[inline(always)]
fn add(address: u64, value: u64) {
    // SAFETY: a word of the thread's own rows.
    unsafe { asm!("add qword ptr [{}], {}", in(reg) address, in(reg) value, options(nostack)) };
}

fn row(local: &Local, number: u32) -> u64 {
    let counts = local.counts.load(Relaxed);
    if counts == 0 { 0 } else { counts + u64::from(number) * size_of::<Row>() as u64 }
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
        0 => {
            thread::miss();
        }
        row => add(row, 1),
    }
}

/// A call has ended. `patch::stub` says what is done with its time.
#[inline(always)]
pub fn add_time(local: &Local, number: u32, entry: u64, ticks: u64) {
    let own = row(local, number);
    if own == 0 {
        return;
    }
    add(own + 8, ticks);
    add(own + 16, ticks);
    let below = entries::word_below(entry);
    if below & WRITTEN != 0 && sites::get(below & !WRITTEN).is_some() {
        add(row(local, below & !WRITTEN) + 16, ticks.wrapping_neg());
    }
}
