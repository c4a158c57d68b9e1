//! The walker of a thread that walks its own stack again and again: it remembers rules by address, and the last stack.
//!
//! ```text
//!  start ─► frame ──coincides with one of the last stack?──no──► its rule (cache, else tables) ─► fresh list, step outward ─┐
//!             ▲           │ yes                                                                                            │
//!             │           └► all words that led outward from there are as they were? ──yes──► the rest is the last walk's  │
//!             │                       no: not before the frame where they differ ◄─┘                                       │
//!             └────────────────────────────────────────────────────────────────────────────────────────────────────────────┘
//! ```
//!
//! Why the rest is the last walk's: a step is a function of the frame (pc, rsp, and rbp where the rules of the frames from there on
//! use it), of its rule, and of the words that it reads. Where a frame and the words that its step has read are those of the last walk,
//! the caller is; and so on outward. What the words are and which of them count is in `last`; steps that read others are made
//! again. So frames, hash and ending are always those that [`crate::Walk`] has for the memory as it is now.
//!
//! What it asks for: the same generation means the same rules; and where the first and the last word of a frame can be read, those in
//! between can be.
//!
//! All bytes zero are a valid state: a mapping that the kernel has just made. Nothing is allocated, and each frame is looked at a bounded
//! number of times. Stack and tables may be anything. One state belongs to one thread, and a signal handler cannot use it during a walk.

mod cache;
mod hash;
mod known;
mod last;

pub use last::MAX;

use crate::rule::Rule;
use crate::stack::Ended;
use crate::table::{Mapping, Tables, find};
use crate::walk::{Caller, Registers};
use cache::Cache;
use last::{Last, Verified};

/// Where rules are found: the tables, and the mappings of the process.
///
/// Whoever writes them puts new contents in place before the generation rises; what is read meanwhile is forgotten then. Searches
/// end soon whatever the contents.
#[derive(Clone, Copy, Debug)]
pub struct Space<'t> {
    /// Rows, pages and rules.
    pub tables: Tables<'t>,
    /// Sorted by start.
    pub mappings: &'t [Mapping],
    /// The rule of code in no mapping: [`Rule::NONE`] in processes with a just-in-time compiler, whose frames are guessed.
    pub unmapped: Option<Rule>,
    /// Another number whenever anything of the above is another for an address that had a rule or lacked one.
    pub generation: u64,
}

impl Space<'_> {
    /// The rule at an address, as the tables have it.
    pub fn rule(&self, address: u64) -> Option<Rule> {
        find(self.mappings, address).map(|m| self.tables.rule(m, address)).or(self.unmapped)
    }
}

/// What a walk has found; the frames are [`Replay::frames`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Walked {
    /// Of the frames: the same ones have it in each thread and process. Never 0.
    pub hash: u64,
    /// Why there are no more frames.
    pub ended: Ended,
    /// The frames are those of the walk before this one, which had the same generation.
    pub same: bool,
}

/// What a thread remembers of its walks.
#[derive(Debug)]
#[repr(C)]
pub struct Replay {
    last: Last,
    cache: Cache,
    generation: u64,
}

impl Default for Replay {
    fn default() -> Replay {
        Replay::EMPTY
    }
}

impl Replay {
    /// The state before the first walk: all bytes are zero.
    pub const EMPTY: Replay = Replay { last: Last::EMPTY, cache: Cache::EMPTY, generation: 0 };

    /// Walks the stack from a frame that a call has left: `start.pc` is the return address of that call, `start.sp` the stack pointer
    /// after the return. At most [`MAX`] frames are kept, the innermost ones. `read` reads the 8 bytes of stack at an address.
    #[inline]
    pub fn walk(&mut self, space: &Space<'_>, start: Registers, read: impl Fn(u64) -> Option<u64>) -> Walked {
        if self.generation != space.generation || self.cache.is_new() {
            self.renew(space.generation);
        }
        let Replay { last, cache, .. } = self;
        let mut frame = Caller::returning(start);
        let mut context = None;
        let mut fresh = 0;
        let mut at = last.first();
        // Where the last stack goes on unchanged; the place behind it: nowhere.
        let (joint, ended) = loop {
            if !frame.interrupted && !frame.guessed {
                (fresh, frame.registers) = last.run(fresh, at, frame.registers, |pc| cache.newer(pc), &read);
            }
            if fresh == MAX {
                break (MAX, Ended::Full);
            }
            at = last.meet(at, &frame);
            if last.coincides(at, &frame) {
                let rules = |frame: &Caller| cache.rule(space, frame.lookup(), frame.registers.pc);
                let total = fresh + MAX - at;
                match last.verify(at, context, rules, &read) {
                    Verified::Ended(ended) if total <= MAX => break (at, ended),
                    Verified::More if total == MAX => break (at, Ended::Full),
                    // Other frames are cut off than last time.
                    Verified::Ended(_) | Verified::More => at = MAX,
                    Verified::Differs(from) => at = from + 1,
                }
            }
            let rule = cache.rule(space, frame.lookup(), frame.registers.pc);
            let next = rule.step(&frame, &mut context, &read);
            last.note(fresh, &frame, rule, next.as_ref().ok());
            fresh += 1;
            match next {
                Ok(next) => frame = next,
                Err(ended) => break (MAX, ended),
            }
        };
        let (hash, same) = last.splice(fresh, joint, ended);
        Walked { hash, ended, same }
    }

    /// The frames of the last walk, innermost first, as [`crate::Frame`] has them; those that were called are no exact ones.
    pub fn frames(&self) -> &[u64] {
        self.last.frames()
    }

    /// Forgets what other tables have said.
    #[cold]
    #[inline(never)]
    fn renew(&mut self, generation: u64) {
        self.generation = generation;
        self.cache.forget();
        self.last.forget();
    }
}
