//! How far a view is with what it writes at the end: for whoever shows that, in another thread.

use std::sync::atomic::{AtomicU64, Ordering};

/// Work that is done, and all of it, in bytes; none where it is not known how much there is.
#[derive(Debug, Default)]
pub struct Advance {
    done: AtomicU64,
    all: AtomicU64,
}

impl Advance {
    /// There is so much to do.
    pub fn begin(&self, all: u64) {
        self.done.store(0, Ordering::Relaxed);
        self.all.store(all, Ordering::Relaxed);
    }

    /// So much more is done.
    pub fn add(&self, done: u64) {
        self.done.fetch_add(done, Ordering::Relaxed);
    }

    /// What is done, and how much there is.
    pub fn get(&self) -> (u64, u64) {
        (self.done.load(Ordering::Relaxed), self.all.load(Ordering::Relaxed))
    }
}
