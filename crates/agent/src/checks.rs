//! The agent's own tracers: what they do when a function begins or returns.

use crate::frame::Frame;
use crate::memory::load;
use crate::sites::Site;
use crate::thread::{self, Local};
use crate::tracers::{self, Slot};
use crate::{child, entries, kernel, permits, shadow};
use abi::thread::WRITTEN;
use abi::tracer::{Kind, MAIN, STACK, STOP, Violation};
use core::mem::size_of;
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

/// Whether this is the main thread.
fn is_main() -> bool {
    kernel::getpid() == kernel::gettid()
}

/// Whether a thread of this name may call what is bound to the threads that the options name.
fn is_named(slot: &Slot) -> bool {
    let name = kernel::thread_name();
    [2, 4, 6].iter().any(|first| {
        let mut pattern = [0u8; 16];
        let words = [slot.option(*first), slot.option(*first + 1)];
        pattern.chunks_exact_mut(8).zip(words).for_each(|(to, w)| to.copy_from_slice(&w.to_le_bytes()));
        words != [0, 0] && abi::pattern::matches(&pattern, &name)
    })
}

/// A function that only some threads may call begins.
pub fn thread(local: &Local, frame: &Frame, site: &Site, slot: &Slot) {
    let main_may = slot.option(1) & MAIN != 0;
    let allowed = main_may && (local.tid.load(Relaxed) == child::owner() || is_main()) || is_named(slot);
    if !allowed {
        violation(frame, site, slot, 0);
    }
}

/// A function has returned: if it was called by the one that is watched, on the main thread, it may have taken too long.
pub fn duration(local: &Local, frame: &Frame, site: &Site, slot: &Slot, entry: u64, ticks: u64) {
    let caller = entries::word_below(entry);
    let watched = caller & WRITTEN != 0 && u64::from(caller & !WRITTEN) == slot.option(0);
    if watched && ticks > slot.option(2) && (local.tid.load(Relaxed) == child::owner() || is_main()) {
        violation(frame, site, slot, ticks);
    }
}

/// How many violations are kept of each checker.
const MOST: u64 = 256;

/// What a checker has found.
struct Found {
    table: AtomicU64,
    seen: AtomicU64,
}

static FOUND: [Found; 2] = [const { Found { table: AtomicU64::new(0), seen: AtomicU64::new(0) } }; 2];

/// That of a kind of tracer, if it is a checker.
fn found(kind: u32) -> Option<&'static Found> {
    FOUND.get((kind as usize).checked_sub(Kind::ThreadChecker as usize)?)
}

/// Makes room for the violations that a tracer may find. Other threads are stopped.
pub fn begin(kind: u32) -> bool {
    let Some(found) = found(kind) else { return true };
    if found.table.load(Relaxed) == 0
        && let Some(table) = kernel::reserve(MOST * size_of::<Violation>() as u64)
    {
        found.table.store(table, Release);
    }
    found.table.load(Relaxed) != 0
}

/// Writes a violation down.
fn violation(frame: &Frame, site: &Site, slot: &Slot, took: u64) {
    let Some(found) = found(slot.kind()).filter(|_| permits::records()) else { return };
    let table = found.table.load(Acquire);
    let mask = kernel::block();
    let number = found.seen.fetch_add(1, Relaxed);
    if table != 0 && number < MOST {
        // SAFETY: an entry of the table, which is this thread's alone.
        let v = unsafe { &mut *(table as *mut Violation).add(number as usize) };
        v.tid = kernel::gettid() as u32;
        v.thread = kernel::thread_name();
        v.number = site.number.load(Relaxed);
        v.kind = slot.kind();
        v.time = kernel::monotonic();
        v.took = took;
        // A function that has returned has restored the registers that it was called with, and the stub's address is at its place still.
        let (rip, rsp) = (site.address.load(Relaxed), frame.slot());
        v.registers = [rip, rsp, frame.rbp, frame.rbx, frame.r12, frame.r13, frame.r14, frame.r15];
        v.len = copy_stack(rsp, &mut v.stack) as u64;
        // SAFETY: as above.
        unsafe { core::ptr::write_volatile(&raw mut v.state, 1) };
    }
    let same = |t: &&tracers::Tracer| t.slot().is_some_and(|s| s.bit() == slot.bit());
    tracers::known().iter().filter(same).for_each(|t| {
        t.reported.fetch_add(1, Relaxed);
    });
    if slot.option(1) & STOP != 0 {
        kernel::tgkill(kernel::getpid() as u32, kernel::gettid() as u32, SIGSTOP);
    }
    kernel::set_mask(mask);
}

const SIGSTOP: u32 = 19;

/// Copies the stack from an address on. Where a stub's return address lies, the copy has the program's.
fn copy_stack(from: u64, to: &mut [u8; STACK]) -> usize {
    let mut len = 0;
    let mut at = from;
    for word in to.chunks_exact_mut(8) {
        // The next page may be the end of the stack.
        if (at == from || at.is_multiple_of(4096)) && !kernel::is_readable(at) {
            break;
        }
        // SAFETY: readable; the thread's own stack.
        let mut value = unsafe { load(at) };
        if crate::areas::is_return(value) {
            value = shadow::return_address(thread::local(), at).unwrap_or(value);
        }
        word.copy_from_slice(&value.to_le_bytes());
        len += 8;
        at += 8;
    }
    len
}

/// The violations of a kind of tracer that are complete.
pub fn violations(kind: u32) -> impl Iterator<Item = &'static Violation> {
    let (table, seen) = found(kind).map_or((0, 0), |f| (f.table.load(Acquire), f.seen.load(Relaxed)));
    let seen = if table == 0 { 0 } else { seen.min(MOST) };
    (0..seen).filter_map(move |i| {
        // SAFETY: entries of the table; complete ones do not change.
        let v = unsafe { &*(table as *const Violation).add(i as usize) };
        (v.state == 1).then_some(v)
    })
}

/// How many there was no room for.
pub fn lost(kind: u32) -> u64 {
    found(kind).map_or(0, |f| f.seen.load(Relaxed).saturating_sub(MOST))
}

/// Forgets those of a kind of tracer, which is not enabled. Other threads are stopped.
pub fn forget(kind: u32) {
    let Some(found) = found(kind) else { return };
    let table = found.table.load(Acquire);
    if table != 0 {
        // SAFETY: the table is the agent's, and its contents are not needed.
        unsafe { kernel::discard(table, MOST * size_of::<Violation>() as u64) };
    }
    found.seen.store(0, Relaxed);
}
