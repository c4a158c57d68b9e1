//! A stack in the model, and how its value at the peak of all stacks together is kept.
//!
//! The whole reaches a new peak at most once an event, and a peak concerns every stack. So nothing is copied then: the peak
//! gets the next number (its *epoch*). A stack that is about to change for the first time since that peak notes its value
//! ([`Held::before_change`]); a stack that has not changed since then has the value it had at the peak.

use super::numbers::{Numbers, Sum};
use super::series::Mark;

/// A stack in the model. The first cache line is all that most events change.
#[derive(Clone, Debug, Default)]
#[repr(align(64))]
pub(super) struct Held {
    pub live: Sum,
    pub total: Sum,
    pub peak: u64,
    /// What was live at the peak of that epoch.
    noted: Sum,
    epoch: u64,
    /// How far its series is filled.
    pub mark: Mark,
    pub temporary: u64,
    pub ended: Sum,
    pub copies: Sum,
    pub mapped_live: Sum,
    pub mapped_total: Sum,
    pub mapped_ended: Sum,
}

impl Held {
    /// A stack without anything, whose series is filled so far.
    pub fn new(mark: Mark) -> Held {
        Held { mark, ..Held::default() }
    }

    /// To be called before `live` changes, with the number of the last peak.
    pub fn before_change(&mut self, epoch: u64) {
        if self.epoch != epoch {
            self.noted = self.live;
            self.epoch = epoch;
        }
    }

    /// Bytes of both kinds: what its series has.
    pub fn held(&self) -> u64 {
        self.live.bytes.saturating_add(self.mapped_live.bytes)
    }

    /// Whether there is nothing to show.
    pub fn is_empty(&self) -> bool {
        (self.total.blocks, self.mapped_total.blocks, self.copies.blocks) == (0, 0, 0)
    }

    /// Its numbers, with those at the peak `epoch`.
    pub fn numbers(&self, epoch: u64) -> Numbers {
        Numbers {
            total: self.total,
            temporary: self.temporary,
            live: self.live,
            ended: self.ended,
            peak: self.peak,
            at_peak: if self.epoch == epoch { self.noted } else { self.live },
            copies: self.copies,
            mapped_total: self.mapped_total,
            mapped_live: self.mapped_live,
            mapped_ended: self.mapped_ended,
        }
    }
}
