//! Checkers: where their rules (`abi::built_in`) find a violation, it is written down.

use crate::entries::Entry;
use crate::frame::Frame;
use crate::memory::load;
use crate::sites::Site;
use crate::thread::{self, Local};
use crate::tracers::{self, Slot};
use crate::{child, kernel, permits, shadow};
use abi::built_in::{self, BUILT_IN, Call, Ended, Results, Row, STOP};
use abi::thread::WRITTEN;
use abi::tracer::{STACK, Violation};
use core::mem::size_of;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicU32, AtomicU64};

/// A call of a function with a checker, for the checker's rule.
struct Here<'a> {
    local: &'a Local,
    slot: &'a Slot,
}

impl Call for Here<'_> {
    fn option(&self, number: usize) -> u64 {
        self.slot.option(number)
    }

    fn is_main(&self) -> bool {
        self.local.tid.load(Relaxed) == child::owner() || kernel::getpid() == kernel::gettid()
    }

    fn thread_name(&self) -> [u8; 16] {
        kernel::thread_name()
    }
}

/// A function with a checker begins.
pub fn enter(local: &Local, frame: &Frame, site: &Site, slot: &Slot) {
    if built_in::at_entry(slot.kind(), &Here { local, slot }) {
        violation(frame, site, slot, 0);
    }
}

/// It has returned: its entry in the shadow stack, and the ticks that it has taken.
pub fn exit(local: &Local, frame: &Frame, site: &Site, slot: &Slot, (entry, took): (Entry, u64)) {
    let below = entry.word_below();
    let caller = if below & WRITTEN != 0 { below & !WRITTEN } else { 0 };
    if built_in::at_exit(slot.kind(), &Here { local, slot }, Ended { took, caller }) {
        violation(frame, site, slot, took);
    }
}

/// How many violations are kept of each checker.
const MOST: u64 = 256;

/// What a checker has found.
struct Found {
    /// Where its places are; 0: nowhere yet.
    table: AtomicU64,
    /// The next place.
    next: AtomicU64,
    lost: AtomicU64,
}

/// By the row of the tracer.
static FOUND: [Found; BUILT_IN.len()] =
    [const { Found { table: AtomicU64::new(0), next: AtomicU64::new(0), lost: AtomicU64::new(0) } }; BUILT_IN.len()];

/// A place of a table. The states of places order all that is done with them. No test can show what happens without: threads are stopped
/// while others look, and one that is stopped within the few instructions that matter cannot be had.
#[derive(Clone, Copy)]
struct Place(*mut Violation);

/// The state of a place that has nothing.
const FREE: u32 = 0;
/// It is complete, and does not change.
const WHOLE: u32 = 1;
/// A thread writes it.
const BEGUN: u32 = 2;
/// A thread writes it, and it was forgotten since it began.
const FORGOTTEN: u32 = 3;

impl Place {
    fn state(&self) -> &'static AtomicU32 {
        // SAFETY: a word of the table, which is never unmapped, and is used as an atomic only.
        unsafe { AtomicU32::from_ptr(&raw mut (*self.0).state) }
    }

    fn moves(self, from: u32, to: u32) -> bool {
        self.state().compare_exchange(from, to, AcqRel, Acquire).is_ok()
    }
}

impl Found {
    fn place(&self, number: u64) -> Option<Place> {
        let table = self.table.load(Acquire) as *mut Violation;
        // SAFETY: the table has so many places.
        (!table.is_null() && number < MOST).then(|| Place(unsafe { table.add(number as usize) }))
    }

    /// A place for the thread that asks.
    fn begin(&self) -> Option<Place> {
        loop {
            // One that has been forgotten may still be written.
            let place = self.place(self.next.fetch_add(1, Relaxed))?;
            if place.moves(FREE, BEGUN) {
                return Some(place);
            }
        }
    }
}

/// That of a kind of tracer, if it is a checker.
fn found(kind: u32) -> Option<&'static Found> {
    let is_checker = |row: &Row| row.kind as u32 == kind && row.results == Results::Violations;
    FOUND.get(BUILT_IN.iter().position(is_checker)?)
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
    let mask = kernel::block();
    if let Some(place) = found.begin() {
        let v = place.0;
        // A function that has returned has restored the registers that it was called with, and the stub's address is at its place still.
        let (rip, rsp) = (site.address.load(Relaxed), frame.slot());
        // SAFETY: a place of the table, of which all but the state is this thread's alone.
        unsafe {
            (*v).tid = kernel::gettid() as u32;
            (*v).thread = kernel::thread_name();
            (*v).number = site.number.load(Relaxed);
            (*v).kind = slot.kind();
            (*v).time = kernel::monotonic();
            (*v).took = took;
            (*v).registers = [rip, rsp, frame.rbp, frame.rbx, frame.r12, frame.r13, frame.r14, frame.r15];
            (*v).len = copy_stack(rsp, &mut (*v).stack) as u64;
        }
        if !place.moves(BEGUN, WHOLE) {
            place.state().store(FREE, Release);
        }
    } else {
        found.lost.fetch_add(1, Relaxed);
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

/// The places of a kind of tracer.
fn places_of(kind: u32) -> impl Iterator<Item = Place> {
    let found = found(kind);
    (0..MOST).map_while(move |number| found?.place(number))
}

/// The violations of a kind of tracer that are complete.
pub fn violations(kind: u32) -> impl Iterator<Item = &'static Violation> {
    // SAFETY: complete ones do not change.
    places_of(kind).filter(|e| e.state().load(Acquire) == WHOLE).map(|e| unsafe { &*e.0 })
}

/// How many there was no room for.
pub fn lost(kind: u32) -> u64 {
    found(kind).map_or(0, |f| f.lost.load(Relaxed))
}

/// Forgets those of a kind of tracer, which is not enabled. Other threads are stopped.
pub fn forget(kind: u32) {
    let Some(found) = found(kind) else { return };
    for place in places_of(kind) {
        // A thread may be stopped while it writes one.
        let _ = place.moves(WHOLE, FREE) || place.moves(BEGUN, FORGOTTEN);
    }
    found.next.store(0, Relaxed);
    found.lost.store(0, Relaxed);
}
