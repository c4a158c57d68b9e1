//! What a thread has for its allocations.

use super::known;
use super::sample::Countdown;
use crate::thread::{self, Local};
use crate::{kernel, permits, slots};
use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use unwind::replay::Replay;

/// Handlers that interrupt one another while the thread is busy have walkers of their own, this many at a time with the thread's.
pub const LEVELS: usize = 3;
/// Bytes of a page.
pub const PAGE: u64 = 4096;
/// The most pages of a stack that are looked at at once.
const LOOKS: u64 = 1 << 10;

/// What a thread has for its allocations. All bytes zero are a valid beginning.
#[repr(C)]
pub struct Memory {
    /// Its next sample.
    pub countdown: Countdown,
    /// What the last Malloc record says ([`Local::last`]).
    size: u64,
    stack: u64,
    /// A stack that the collector knows.
    known: u64,
    pub window: Window,
    /// Which walker was used last.
    pub level: usize,
    /// Why its stack ends.
    pub ended: u8,
    walker: Replay,
    /// Those of handlers, each mapped when it is first needed; 0: not yet.
    others: [u64; LEVELS - 1],
}

impl Memory {
    /// Whether the last Malloc record of the chunk says the same.
    #[inline(always)]
    pub fn repeats(&self, local: &Local, size: u64, stack: u64) -> bool {
        local.last.load(Relaxed) == local.end.load(Relaxed) && self.size == size && self.stack == stack
    }

    /// Notes a Malloc record.
    #[inline(always)]
    pub fn note(&mut self, local: &Local, size: u64, stack: u64) {
        (self.size, self.stack) = (size, stack);
        local.last.store(local.end.load(Relaxed), Relaxed);
    }

    /// Whether the collector knows a stack.
    #[inline(always)]
    pub fn knows(&mut self, stack: u64) -> bool {
        if stack == self.known || stack == 0 {
            return true;
        }
        let known = known::has(stack);
        if known {
            self.known = stack;
        }
        known
    }

    /// The collector knows a stack from now on.
    pub fn remember(&mut self, stack: u64) {
        known::add(stack);
        self.known = stack;
    }

    /// The frames of the stack that was walked last, and why it ends.
    pub fn frames(&self, _: &Local) -> (&[u64], u64) {
        let frames = match self.level.checked_sub(1) {
            None => self.walker.frames(),
            Some(other) => match self.others.get(other) {
                // SAFETY: mapped by `walker`, for this thread alone.
                Some(at @ 1..) => unsafe { &*(*at as *const Replay) }.frames(),
                _ => &[],
            },
        };
        (frames, self.ended.into())
    }

    /// The walker of a level; None: there is no memory for it.
    #[inline(always)]
    pub fn walker(&mut self, level: usize) -> Option<&mut Replay> {
        match level.checked_sub(1) {
            None => Some(&mut self.walker),
            Some(other) => other_walker(self.others.get_mut(other)?),
        }
    }
}

#[cold]
fn other_walker(at: &mut u64) -> Option<&mut Replay> {
    if *at == 0 && permits::records() {
        *at = kernel::reserve(size_of::<Replay>() as u64)?;
    }
    // SAFETY: new memory is zeros, which is a valid walker; it is never unmapped, and the reference lives as long as that to its address.
    (*at != 0).then(|| unsafe { &mut *(*at as *mut Replay) })
}

/// Memory that can be read, with a thread's stack pointer.
#[derive(Clone, Copy, Default)]
#[repr(C)]
pub struct Window {
    pub low: u64,
    pub high: u64,
    /// What could be read before, where the stack pointer was higher.
    pub above: [u64; 2],
}

impl Window {
    /// It, or another one around this stack pointer.
    #[inline(always)]
    pub fn around(self, sp: u64) -> Window {
        if self.low <= sp && sp < self.high {
            return self;
        }
        let low = sp & !(PAGE - 1);
        Window { low, high: low + PAGE, above: [self.low, self.high] }
    }

    /// Has it reach so far that a word above the stack pointer is in it. False: it cannot be read.
    #[cold]
    pub fn widen(&mut self, sp: u64, at: u64) -> bool {
        if at < sp || at - sp > LOOKS * PAGE {
            return false;
        }
        while at + 8 > self.high {
            if permits::peek_one(self.high).is_none() {
                return false;
            }
            self.high += PAGE;
            if self.high == self.above[0] {
                self.high = self.above[1];
            }
        }
        true
    }
}

/// The first thread that has allocated.
static FIRST: AtomicU32 = AtomicU32::new(0);
/// 1: others have. A thread sees that after it has got memory that another one has freed: so times are compared where it matters only.
static SEVERAL: AtomicU32 = AtomicU32::new(0);

/// Whether no other thread than this one has allocated yet.
#[inline(always)]
pub fn is_alone(local: &Local) -> bool {
    // Whether there are several threads is known once this one has begun.
    (local.heap.load(Relaxed) != 0 || begin(local)) && SEVERAL.load(Relaxed) == 0
}

/// The thread's memory; None: there is none to be had.
///
/// # Safety
/// The thread has no other reference to it at the same time. A handler that interrupts it uses another part of it (`super::stacks::of`).
#[inline(always)]
pub unsafe fn memory(local: &Local) -> Option<&'static mut Memory> {
    if local.heap.load(Relaxed) == 0 && !begin(local) {
        return None;
    }
    // SAFETY: it is the thread's alone; the rest says the caller.
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

/// Forgets what belongs to a session, of all threads. All others are stopped.
pub fn forget() {
    for memory in slots::all().iter().map(|s| s.heap.load(Acquire) as *mut Memory).filter(|m| !m.is_null()) {
        // SAFETY: such memory is never unmapped; its thread is stopped, and takes any of these values.
        unsafe {
            (*memory).known = 0;
            (*memory).window = Window::default();
        }
    }
}
