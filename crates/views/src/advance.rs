//! The progress of a view that writes its output at the end, for a progress bar in another thread.

use std::sync::atomic::{AtomicU64, Ordering};

/// Work that is done, and all of it, in bytes; none where it is not known how much there is.
#[derive(Debug, Default)]
pub struct Advance {
    done: AtomicU64,
    all: AtomicU64,
    left_out: AtomicU64,
}

impl Advance {
    /// Begins work of `all` bytes.
    pub fn begin(&self, all: u64) {
        self.done.store(0, Ordering::Relaxed);
        self.all.store(all, Ordering::Relaxed);
    }

    /// So much more is done.
    pub fn add(&self, done: u64) {
        self.done.fetch_add(done, Ordering::Relaxed);
    }

    /// So many events are not in a picture: there are too many.
    pub fn leave_out(&self, events: u64) {
        self.left_out.fetch_max(events, Ordering::Relaxed);
    }

    /// How many events are not in the picture that lacks most.
    pub fn left_out(&self) -> u64 {
        self.left_out.load(Ordering::Relaxed)
    }

    /// What is done, and how much there is.
    pub fn get(&self) -> (u64, u64) {
        (self.done.load(Ordering::Relaxed), self.all.load(Ordering::Relaxed))
    }
}
