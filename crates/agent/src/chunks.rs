//! Chunks, the memory for records: taking them, giving them up, and what happens when there is none. The thread's signals are blocked here.

use crate::shared::{PAGE, chunk_address, control, grow, header, is_gone, is_in, mapped_chunks, was_left};
use crate::thread::{self, Local};
use crate::{child, kernel, permits};
use abi::shared::{BLOCK, ChunkHeader, Control, DROP, FREE, FULL, HIGH, OWNED};
use abi::thread::Row;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

/// The longest sleep without a look at the collector.
const NAP: u64 = 50_000_000;

/// Counts records that are not written.
pub fn drop_records(local: &Local, n: u64) {
    let Some(control) = control() else { return };
    if was_left() {
        control.orphaned.fetch_add(n, Relaxed);
    } else if control.running.load(Relaxed) != 0 {
        local.dropped.fetch_add(n, Relaxed);
        control.dropped.fetch_add(n, Relaxed);
    }
}

/// Whether it is clear without a look at the chunks that there is no room, so that signals need not be blocked to find out.
pub fn hopeless(local: &Local) -> bool {
    if !permits::records() {
        return true;
    }
    if child::is_new() {
        return !permits::talk();
    }
    let Some(control) = control() else { return true };
    if local.chunk.load(Relaxed) != 0 {
        return false;
    }
    was_left()
        || control.running.load(Relaxed) == 0
        || control.on_full.load(Relaxed) == DROP
            && local.dropped.load(Relaxed) != 0
            && control.freed.load(Relaxed) == local.freed.load(Relaxed)
            && !is_gone(control)
}

/// Whether there is room for this many bytes of records, in another chunk if need be. For code that does not block signals.
#[inline(always)]
pub fn has_room(local: &Local, bytes: u64) -> bool {
    let end = local.end.load(Relaxed);
    end != 0 && local.cur.load(Relaxed) + bytes <= end || finds_room(local, bytes)
}

#[cold]
fn finds_room(local: &Local, bytes: u64) -> bool {
    if hopeless(local) {
        return false;
    }
    let mask = kernel::block();
    let room = make_room(local, bytes, mask);
    kernel::set_mask(mask);
    room
}

/// Makes room for this many bytes of records. `mask`: the thread's mask of signals, for the time in which it sleeps.
pub fn make_room(local: &Local, bytes: u64, mask: u64) -> bool {
    let mut renewed = false;
    loop {
        if !thread::has_room(local) {
            give_up(local);
            return false;
        }
        if child::is_new() {
            child::renew(local);
            renewed = true;
        }
        let Some(control) = control() else {
            give_up(local);
            return false;
        };
        if local.chunk.load(Relaxed) != 0 && !is_in(control, local.cur.load(Relaxed)) {
            give_up(local);
        }
        if control.running.load(Relaxed) == 0 {
            give_up(local);
            return false;
        }
        let number = local.chunk.load(Relaxed);
        if number != 0 {
            let asked = header(control, number - 1).is_some_and(|h| h.give_up.load(Relaxed) != 0);
            if !asked && local.cur.load(Relaxed) + bytes <= local.end.load(Relaxed) {
                // The chunk has just begun.
                if renewed {
                    child::introduce(local);
                }
                return true;
            }
            give_up(local);
        }
        if was_left() || is_gone(control) {
            return false;
        }
        let freed = control.freed.load(Acquire);
        if take(control, local) {
            continue;
        }
        if control.on_full.load(Relaxed) != BLOCK {
            local.freed.store(freed, Relaxed);
            return false;
        }
        control.waiting.fetch_add(1, AcqRel);
        // Everything is whole here: a handler may run, and take a chunk.
        kernel::set_mask(mask);
        kernel::wait(&control.freed, freed, NAP);
        kernel::set_mask(kernel::ALL);
        control.waiting.fetch_sub(1, AcqRel);
    }
}

/// Takes a free chunk and begins it.
fn take(control: &Control, local: &Local) -> bool {
    // The thread that has called fork may not be the one that has asked for memory. A child of vfork runs on its parent's thread data.
    if child::owner() == kernel::getpid() as u32 {
        thread::identify_again(local);
    }
    thread::identify(local);
    loop {
        let count = mapped_chunks(control);
        let hint = control.hint.load(Relaxed);
        for i in 0..count {
            let number = ((u64::from(hint) + u64::from(i)) % u64::from(count)) as u32;
            let Some(header) = header(control, number) else { return false };
            if header.state.load(Relaxed) != FREE {
                continue;
            }
            if header.state.compare_exchange(FREE, OWNED, AcqRel, Relaxed).is_err() {
                continue;
            }
            control.hint.store((number + 1) % count, Relaxed);
            begin_chunk(control, local, header, number);
            return true;
        }
        if !grow(control, false) {
            return false;
        }
    }
}

fn begin_chunk(control: &Control, local: &Local, header: &ChunkHeader, number: u32) {
    let missing = local.dropped.swap(0, Relaxed);
    header.sequence.store(local.sequence.fetch_add(1, Relaxed), Relaxed);
    header.dropped.store(missing, Relaxed);
    header.monotonic.store(kernel::monotonic(), Relaxed);
    let now = kernel::tsc();
    header.tsc.store(now, Relaxed);
    header.tid.store(local.tid.load(Relaxed), Release);
    let at = chunk_address(control, number);
    local.chunk.store(number + 1, Relaxed);
    local.cur.store(at, Relaxed);
    local.end.store(at + u64::from(control.chunk_size), Relaxed);
    write_high(local, (now >> 32) as u32);
    // Once the chunk can be seen: until then this says that something is missing.
    if missing != 0 {
        control.dropped.fetch_sub(missing, Release);
    }
    local.last.store(0, Relaxed);
    if control.sums != 0 {
        // Functions are numbered from 1: there is no room for records behind the row of number 0.
        local.end.store(at + control.sums.min(ROW_OF_NOBODY), Relaxed);
        local.counts.store(at, Relaxed);
    }
}

/// Bytes at the beginning of rows that are no function's.
const ROW_OF_NOBODY: u64 = size_of::<Row>() as u64;

/// Gives a thread its rows in a session that keeps sums. For code that does not block signals.
pub fn give_rows(local: &Local) -> bool {
    if hopeless(local) {
        return false;
    }
    let mask = kernel::block();
    let given = make_room(local, 8, mask);
    kernel::set_mask(mask);
    given
}

/// Writes a record, for which there is room.
fn write(local: &Local, time: u32, word: u32) {
    let cur = local.cur.load(Relaxed) as *mut u32;
    if cur.is_null() || cur as u64 + 8 > local.end.load(Relaxed) {
        return;
    }
    // SAFETY: `cur` lies in the thread's own chunk. The collector reads the word after the time.
    unsafe {
        cur.write_volatile(time);
        cur.add(1).write_volatile(word);
    }
    local.cur.fetch_add(8, Relaxed);
}

/// Writes the upper half of the counter for the records that follow, for which there is room.
pub fn write_high(local: &Local, high: u32) {
    write(local, high, HIGH);
    local.high.store(high, Relaxed);
}

/// Writes a record with a time of its own, or counts it.
pub fn emit(local: &Local, tsc: u64, word: u32, mask: u64) {
    if !make_room(local, 16, mask) {
        return drop_records(local, 1);
    }
    let high = (tsc >> 32) as u32;
    if local.high.load(Relaxed) != high {
        write_high(local, high);
    }
    write(local, tsc as u32, word);
}

/// Gives the thread's chunk to the collector.
pub fn give_up(local: &Local) {
    let number = local.chunk.swap(0, Relaxed);
    let cur = local.cur.swap(0, Relaxed);
    local.end.store(0, Relaxed);
    if cur & !(PAGE - 1) == local.counts.load(Relaxed) {
        local.counts.store(0, Relaxed);
    }
    let Some(control) = control().filter(|c| is_in(c, cur)) else { return };
    if let Some(header) = number.checked_sub(1).and_then(|n| header(control, n)) {
        header.state.store(FULL, Release);
        control.filled.fetch_add(1, AcqRel);
        // The collector looks from time to time, too.
        if permits::records() {
            kernel::wake(&control.filled);
        }
    }
}
