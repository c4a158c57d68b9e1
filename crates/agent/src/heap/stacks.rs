//! The stacks of allocations: walked by tables that the collector has made (`unwind::replay`), and known by their hashes.

use super::memory::{LEVELS, Memory, PAGE, Window};
use crate::memory::load;
use crate::tables::{is_current, space};
use crate::thread::Local;
use crate::{areas, permits, shadow};
use core::cell::Cell;
use core::sync::atomic::Ordering::{Relaxed, SeqCst};
use core::sync::atomic::compiler_fence;
use unwind::Registers;
use unwind::replay::Space;

/// A range of memory that can be read, with the word at an address: this one, this one with a page more, or a page.
#[cold]
fn page_of(at: u64, known: [u64; 2]) -> Option<[u64; 2]> {
    let [low, high] = known;
    if low <= at && at.checked_add(8)? <= high {
        return Some(known);
    }
    let (first, last) = (at & !(PAGE - 1), at.checked_add(7)? & !(PAGE - 1));
    let can_be_read = [first, last].iter().all(|page| permits::peek_one(*page).is_some());
    can_be_read.then_some([if first == high && low != 0 { low } else { first }, last + PAGE])
}

/// Memory goes: it is not read for a stack any more without another look.
pub fn forget_window(local: &Local, address: u64, len: u64) {
    let at = local.heap.load(Relaxed) as *mut Memory;
    if !at.is_null() {
        // SAFETY: the thread's own memory.
        let memory = unsafe { &mut *at };
        let Window { low, high, above: [_, other] } = memory.window;
        if address < high.max(other) && low < address.saturating_add(len) {
            memory.window = Window::default();
        }
    }
}

/// The stack from a return address outward; 0: not known.
#[inline(always)]
pub fn of(local: &Local, memory: &mut Memory, start: Registers) -> u64 {
    loop {
        let Some(space) = space() else { return 0 };
        let hash = walk(local, memory, start, &space);
        compiler_fence(SeqCst);
        if is_current(&space) {
            return hash;
        }
    }
}

#[inline(always)]
fn walk(local: &Local, memory: &mut Memory, start: Registers, space: &Space<'_>) -> u64 {
    let level = local.heap_level.load(Relaxed) as usize % LEVELS;
    let window = Cell::new(memory.window.around(start.sp));
    let Some(walker) = memory.walker(level) else { return 0 };
    let other = Cell::new([0; 2]);
    let walked = walker.walk(space, start, |at| {
        let mut w = window.get();
        if at < start.sp || at > w.high - 8 {
            // A handler may run on a stack of its own: then what it has interrupted is elsewhere.
            if w.widen(start.sp, at) {
                window.set(w);
            } else {
                other.set(page_of(at, other.get())?);
            }
        }
        // SAFETY: the word lies in memory that can be read.
        let word = unsafe { load(at) };
        // A function that is traced too returns to its stub; where it was called from is in the shadow stack.
        let is_stub = areas::may_be_stub(word) && areas::is_return(word);
        Some(if is_stub { shadow::return_address(local, at).unwrap_or(word) } else { word })
    });
    memory.window = window.get();
    (memory.level, memory.ended) = (level, walked.ended as u8);
    walked.hash
}
