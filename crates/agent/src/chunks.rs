//! Memory for records: taking chunks, giving them up, and what happens when there is none. The thread's signals are blocked here.
//!
//! A process that fork(2) has made finds zeros in the page of [`State`], and asks for memory of its own when its first record needs
//! a chunk. A child of vfork(2) finds its parent's page, as it runs on its parent's thread data and writes to its parent's chunk.

use crate::heap;
use crate::kernel;
use crate::own;
use crate::permits;
use crate::plans;
use crate::talk;
use crate::thread::{self, Local};
use abi::message::Reason;
use abi::shared::{BLOCK, ChunkHeader, Control, DROP, FREE, FULL, HEADERS, HIGH, MAGIC, OWNED, OWNER_DIED, WAITERS};
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicU32, AtomicU64};

/// The page that a child of fork finds empty.
#[repr(C)]
pub struct State {
    /// The process, for whose sake the page was filled; 0 in a child.
    pub pid: AtomicU32,
    /// 0: nobody has asked for memory; [`ASKING`], [`DONE`].
    pub asked: AtomicU32,
}

const ASKING: u32 = 1;
/// Memory was asked for.
pub const DONE: u32 = 2;

/// Address of the page.
pub static STATE: AtomicU64 = AtomicU64::new(0);
/// Address of the shared memory; 0 without one.
pub static SHARED: AtomicU64 = AtomicU64::new(0);
static LEN: AtomicU64 = AtomicU64::new(0);
/// How many bytes of it are mapped: more when threads need more chunks.
static MAPPED: AtomicU64 = AtomicU64::new(0);
/// 1: a thread maps more.
static GROWING: AtomicU32 = AtomicU32::new(0);
/// How much is mapped at first.
const FIRST: u64 = 4 << 20;
/// 1: the collector is gone, for good.
static GONE: AtomicU32 = AtomicU32::new(0);

/// Bytes of a page.
const PAGE: u64 = 4096;

/// The longest sleep without a look at the collector.
const NAP: u64 = 50_000_000;

/// Makes the page of the process. At the start.
pub fn begin() -> bool {
    if state().is_some() {
        mine();
        return true;
    }
    let Some(page) = kernel::reserve(4096) else { return false };
    // SAFETY: the page is new.
    if unsafe { kernel::wipe_on_fork(page, 4096) } != 0 {
        return false;
    }
    STATE.store(page, Release);
    mine();
    true
}

/// The page, once it is there.
pub fn state() -> Option<&'static State> {
    let page = STATE.load(Acquire);
    // SAFETY: the page is never unmapped; zeros are valid.
    (page != 0).then(|| unsafe { &*(page as *const State) })
}

fn mine() {
    if let Some(state) = state() {
        state.pid.store(kernel::getpid() as u32, Relaxed);
        state.asked.store(DONE, Release);
    }
}

/// Whether this is a child of fork that has not asked for memory yet.
fn is_new() -> bool {
    state().is_some_and(|s| s.asked.load(Acquire) != DONE)
}

/// The first page of the shared memory.
pub fn control() -> Option<&'static Control> {
    let shared = SHARED.load(Acquire);
    // SAFETY: checked by `attach`, and mapped as long as the address is there.
    (shared != 0).then(|| unsafe { &*(shared as *const Control) })
}

fn chunk_address(control: &Control, number: u32) -> u64 {
    let headers = (size_of::<ChunkHeader>() as u64 * u64::from(control.chunks)).next_multiple_of(4096);
    address_of(control) + HEADERS as u64 + headers + u64::from(number) * u64::from(control.chunk_size)
}

fn header(control: &Control, number: u32) -> Option<&'static ChunkHeader> {
    if number >= control.chunks {
        return None;
    }
    // SAFETY: `attach` has checked that so many headers lie in the mapping.
    Some(unsafe { &*((address_of(control) + HEADERS as u64) as *const ChunkHeader).add(number as usize) })
}

/// Where a shared memory is: a thread may hold on to one that [`leave`] has left meanwhile.
fn address_of(control: &Control) -> u64 {
    core::ptr::from_ref(control) as u64
}

/// Whether the next record goes to this memory, and not to one that was left while the thread took its chunk.
fn is_in(control: &Control, cur: u64) -> bool {
    let shared = address_of(control);
    shared <= cur && cur <= shared + LEN.load(Relaxed)
}

/// Whether an address is in the memory of the session.
pub fn is_of_session(cur: u64) -> bool {
    cur != 0 && control().is_some_and(|c| is_in(c, cur))
}

/// How much of a shared memory of so many bytes is mapped at first.
pub fn first(len: u64) -> u64 {
    if permits::grows() { len.min(FIRST) } else { len }
}

/// Maps more of the shared memory, which has no free chunk in what is mapped: twice as much, or all. False: there is no more.
fn grow(control: &Control, all: bool) -> bool {
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

/// Takes over shared memory that the collector has sent, and whose beginning is mapped ([`first`]). False: it is not what it should be.
pub fn attach(at: u64, len: u64) -> bool {
    if first(len) < HEADERS as u64 {
        return false;
    }
    // SAFETY: so many bytes are mapped there.
    let control = unsafe { &*(at as *const Control) };
    let headers = (64 * u64::from(control.chunks)).next_multiple_of(4096);
    let chunks = u64::from(control.chunks) * u64::from(control.chunk_size);
    let right = control.magic == MAGIC
        && control.version == abi::VERSION
        && control.chunk_size >= 4096
        && control.chunk_size <= abi::shared::CHUNK as u32
        && control.chunk_size.is_multiple_of(4096)
        && chunks <= len
        && HEADERS as u64 + headers + chunks <= len
        && HEADERS as u64 + headers + u64::from(control.chunk_size) <= first(len);
    if right {
        LEN.store(len, Relaxed);
        MAPPED.store(first(len), Relaxed);
        GROWING.store(0, Relaxed);
        SHARED.store(at, Release);
    }
    right
}

/// Memory of earlier sessions that a thread may still write to: address, then length.
static LEFT: [[AtomicU64; 2]; 16] = [const { [const { AtomicU64::new(0) }; 2] }; 16];

/// Leaves the shared memory for good. It stays mapped, until [`free`]: a thread may be about to write to it. All others are stopped.
pub fn leave() {
    let (shared, len) = (SHARED.swap(0, AcqRel), LEN.load(Relaxed));
    GONE.store(0, Relaxed);
    if shared == 0 {
        return;
    }
    if let Some([at, bytes]) = LEFT.iter().find(|[at, _]| at.load(Relaxed) == 0) {
        bytes.store(len, Relaxed);
        at.store(shared, Relaxed);
    }
}

/// Unmaps what [`leave`] has left. No thread is in a stub or in the agent.
pub fn free() {
    for [at, len] in &LEFT {
        let shared = at.swap(0, Relaxed);
        if shared != 0 {
            // SAFETY: nobody writes to it any more.
            unsafe { kernel::unmap(shared, len.load(Relaxed)) };
        }
    }
}

/// Whether a session is under way: 0, 1, or 2 where its collector is gone, or cannot be known because nothing is recorded.
pub fn session() -> u32 {
    match control() {
        None => 2 * u32::from(plans::any()),
        Some(control) => 1 + u32::from(GONE.load(Relaxed) != 0 || is_gone(control)),
    }
}

/// The collector's thread, in its own PID namespace; 0: there is none, or it is gone.
pub fn collector() -> u32 {
    const OWNER: u32 = !(OWNER_DIED | WAITERS);
    control().filter(|_| session() == 1).map_or(0, |c| c.collector.load(Relaxed) & OWNER)
}

/// Leaves the shared memory: in a child, whose parent's it is. It stays mapped where a handler has forked that has interrupted the writing
/// of a record, and where the child has begun threads already: one of them may have looked at it just before. Else a page of it stays, which
/// is returned: by that the collector knows the child until it has asked.
fn detach(local: &Local) -> Option<u64> {
    let (shared, len) = (SHARED.swap(0, AcqRel), LEN.load(Relaxed));
    let is_unused = shared != 0 && local.heap_level.load(Relaxed) == 0 && own::threads() == Some(1);
    is_unused.then(|| {
        // SAFETY: this is the only thread, and it has no chunk.
        unsafe { kernel::unmap(shared + PAGE, len - PAGE) };
        shared
    })
}

/// Asks for memory in a child of fork. Other threads of it wait meanwhile.
fn renew(local: &Local) {
    let Some(state) = state() else { return };
    if state.asked.compare_exchange(0, ASKING, AcqRel, Acquire).is_err() {
        while is_new() {
            kernel::sleep(1_000_000);
        }
        return;
    }
    let page = detach(local);
    GONE.store(0, Relaxed);
    thread::identify_again(local);
    for field in [&local.sequence, &local.chunk] {
        field.store(0, Relaxed);
    }
    for field in [&local.cur, &local.end, &local.dropped] {
        field.store(0, Relaxed);
    }
    talk::ask(Reason::Fork);
    if let Some(page) = page {
        // SAFETY: as in `detach`.
        unsafe { kernel::unmap(page, PAGE) };
    }
    mine();
}

/// Counts records that are not written.
pub fn drop_records(local: &Local, n: u64) {
    let Some(control) = control() else { return };
    if GONE.load(Relaxed) != 0 {
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
    if is_new() {
        return !permits::talk();
    }
    let Some(control) = control() else { return true };
    if local.chunk.load(Relaxed) != 0 {
        return false;
    }
    GONE.load(Relaxed) != 0
        || control.running.load(Relaxed) == 0
        || control.on_full.load(Relaxed) == DROP
            && local.dropped.load(Relaxed) != 0
            && control.freed.load(Relaxed) == local.freed.load(Relaxed)
            && !is_gone(control)
}

fn is_gone(control: &Control) -> bool {
    let word = control.collector.load(Relaxed);
    let gone = word == 0 || word & OWNER_DIED != 0;
    if gone {
        GONE.store(1, Relaxed);
        // Nobody reads it any more: allocations cost no more than the way through their stand-ins.
        control.heap.store(0, Relaxed);
    }
    gone
}

/// Whether there is room for so many bytes of records, in another chunk if need be. For code that does not block signals.
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

/// Makes room for so many bytes of records. `mask`: the thread's mask of signals, for the time in which it sleeps.
pub fn make_room(local: &Local, bytes: u64, mask: u64) -> bool {
    let mut renewed = false;
    loop {
        if !thread::has_room(local) {
            give_up(local);
            return false;
        }
        if is_new() {
            renew(local);
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
                    heap::child(local);
                }
                return true;
            }
            give_up(local);
        }
        if GONE.load(Relaxed) != 0 || is_gone(control) {
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
    if state().is_some_and(|s| s.pid.load(Relaxed) == kernel::getpid() as u32) {
        thread::identify_again(local);
    }
    thread::identify(local);
    loop {
        let before = chunk_address(control, 0) - address_of(control);
        let there = MAPPED.load(Acquire).saturating_sub(before) / u64::from(control.chunk_size);
        let count = there.min(control.chunks.into()).max(1) as u32;
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
    if missing != 0 {
        control.dropped.fetch_sub(missing, Relaxed);
    }
    let at = chunk_address(control, number);
    local.chunk.store(number + 1, Relaxed);
    local.cur.store(at, Relaxed);
    local.end.store(at + u64::from(control.chunk_size), Relaxed);
    write_high(local, (now >> 32) as u32);
    heap::forget(local);
}

/// Writes a record. There is room.
fn write(local: &Local, time: u32, word: u32) {
    let cur = local.cur.load(Relaxed) as *mut u32;
    // SAFETY: `cur` lies in the thread's own chunk. The collector reads the word after the time.
    unsafe {
        cur.write_volatile(time);
        cur.add(1).write_volatile(word);
    }
    local.cur.fetch_add(8, Relaxed);
}

/// Writes the upper half of the counter for the records that follow. There is room.
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

/// Counts an exec into a program that the agent cannot follow.
pub fn count_left() {
    if let Some(control) = control() {
        control.left.fetch_add(1, Relaxed);
    }
}
