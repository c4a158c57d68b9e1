//! What the program has forbidden itself, and with that the agent: system calls, by filters of seccomp(2), and the time stamp counter.
//!
//! A call that a filter does not know may end the process. So every filter is run, before it is installed, for the calls that the agent
//! makes. Where one would be refused, the agent makes it no more: calls of functions are counted as lost then. A filter that looks at
//! arguments counts as one that refuses, because the agent's are not those that its author had in mind.

use crate::kernel;
use crate::memory::load;
use abi::permits::{self, INSTRUCTIONS};
use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::Relaxed;

/// Bits of [`FORBIDDEN`]: the calls that records need.
pub const RECORDS: u32 = 1;
/// Those of the conversation with the collector.
pub const TALK: u32 = 2;
/// Reading memory that may not be there.
pub const READS: u32 = 4;
/// Mapping more of the shared memory.
pub const GROWS: u32 = 8;

/// What is forbidden, for all threads: a new one has what its creator had, and a filter may be for all.
static FORBIDDEN: AtomicU32 = AtomicU32::new(0);

/// Whether it may read memory that may not be there.
#[inline(always)]
pub fn reads() -> bool {
    FORBIDDEN.load(Relaxed) & (RECORDS | READS) == 0
}

/// Whether it may map more of the shared memory.
pub fn grows() -> bool {
    FORBIDDEN.load(Relaxed) & (RECORDS | GROWS) == 0
}

/// Reads two words that may not be there, or may go at any moment: another thread's stack, its storage. `records` holds.
pub fn peek(places: [u64; 2]) -> Option<[u64; 2]> {
    let mut words = [0; 16];
    if reads() {
        let tid = kernel::gettid() as i32;
        let got = kernel::read_process(tid, &mut words, &places.map(|p| [p, 8]));
        // The kernel reads what is there of the first range, and answers that the address is bad where that is nothing.
        if got >= 0 || got == kernel::EFAULT {
            let (first, second) = words.split_at(8);
            let word = |bytes: &[u8]| bytes.try_into().ok().map(u64::from_le_bytes);
            return (got == 16).then_some([word(first)?, word(second)?]);
        }
    }
    // Without that call, a word that goes between the look at it and its use ends the program. It takes a filter of seccomp(2), and a
    // thread that unmaps a stack at this very moment.
    // SAFETY: it was readable a moment ago.
    places.iter().all(|p| kernel::is_readable(*p)).then(|| places.map(|p| unsafe { load(p) }))
}

/// Reads one such word.
pub fn peek_one(place: u64) -> Option<u64> {
    peek([place; 2]).map(|[word, _]| word)
}

/// Whether the agent may make the calls that records need.
#[inline(always)]
pub fn records() -> bool {
    FORBIDDEN.load(Relaxed) & RECORDS == 0
}

/// Whether it may talk with the collector, here and in programs that are executed.
#[inline(always)]
pub fn talk() -> bool {
    FORBIDDEN.load(Relaxed) & (RECORDS | TALK) == 0
}

/// Blocks all signals if that is allowed, and returns the mask for [`unblock`].
pub fn block() -> Option<u64> {
    records().then(kernel::block)
}

/// Sets the mask that [`block`] has returned.
pub fn unblock(mask: Option<u64>) {
    if let Some(mask) = mask {
        kernel::set_mask(mask);
    }
}

/// Notes that something is forbidden from now on.
pub fn forbid(what: u32) {
    FORBIDDEN.fetch_or(what, Relaxed);
}

/// A program of classic BPF, in the program's memory.
pub struct Filter {
    code: u64,
    len: usize,
}

const PAGE: u64 = 4096;

impl Filter {
    /// The one of a struct sock_fprog.
    pub fn at(program: u64) -> Option<Filter> {
        if !kernel::is_readable(program) || !kernel::is_readable(program.wrapping_add(8)) {
            return None;
        }
        // SAFETY: both words are readable, and the program's.
        let (len, code) = unsafe { (load(program) as u16 as usize, load(program + 8)) };
        let end = code.checked_add(8 * len as u64)?;
        let readable = |at: u64| kernel::is_readable(at);
        let pages = (code & !(PAGE - 1)..end).step_by(PAGE as usize).all(|page| readable(page.max(code)));
        (0 < len && len <= INSTRUCTIONS && pages && readable(end - 8)).then_some(Filter { code, len })
    }

    /// What it answers for a call, whatever the arguments; None where it looks at those, or cannot be run.
    fn answer(&self, call: u32) -> Option<u32> {
        // SAFETY: `at` has looked at the whole code.
        let instruction = |n: usize| (n < self.len).then(|| unsafe { load(self.code + 8 * n as u64) });
        permits::answer(self.len, instruction, |k| match k {
            permits::NUMBER => Some(call),
            permits::ARCHITECTURE => Some(permits::X86_64),
            _ => None,
        })
    }

    /// Whether one of these calls is refused.
    pub fn refuses(&self, calls: &[u32]) -> bool {
        !calls.iter().all(|call| self.allows(*call))
    }

    fn allows(&self, call: u32) -> bool {
        self.answer(call).is_some_and(|answer| matches!(answer >> 16, permits::ALLOW | permits::LOG))
    }
}
