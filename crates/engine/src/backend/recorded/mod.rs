//! A recorded trace as a backend: its packets, merged by time.

mod follow;
mod follow_several;
mod past;
mod several;

use crate::pipeline::backend::{Deliver, Polled};
use crate::pipeline::functions::shown_name;
use ctf::native::Merged;
use ctf::trace::Trace;
use events::rules::Rules;
use past::Past;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

pub use follow::Following;
pub use follow_several::{Followed, FollowingSeveral};
pub use several::{Order as OrderOfTraces, Part, Several};

/// Events that are handed over in one round.
const ROUND: usize = 4096;

/// The reader of a trace of trapline.
pub struct Recorded<'t> {
    /// Names of functions that are known from before the window.
    before: Option<Merged<'t>>,
    events: Merged<'t>,
    progress: Arc<Progress>,
    rules: Option<Arc<dyn Rules>>,
    stopped: bool,
}

/// The progress of the reader, for a progress bar.
#[derive(Debug, Default)]
pub struct Progress {
    bytes: AtomicU64,
    events: AtomicU64,
}

impl Progress {
    /// Bytes of packets that were read.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Events that were read.
    pub fn events(&self) -> u64 {
        self.events.load(Ordering::Relaxed)
    }

    fn set(&self, bytes: u64, events: u64) {
        self.bytes.store(bytes, Ordering::Relaxed);
        self.events.store(events, Ordering::Relaxed);
    }

    fn add(&self, bytes: u64, events: u64) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.events.fetch_add(events, Ordering::Relaxed);
    }
}

impl<'t> Recorded<'t> {
    /// The events of a window of time, ns of the monotonic clock, both ends included.
    pub fn new(trace: &'t Trace, from: u64, to: u64) -> Recorded<'t> {
        let events = trace.data.events(&trace.known, from, to).named(shown_name);
        let before = from.checked_sub(1).map(|until| trace.data.functions_until(&trace.known, until));
        Recorded { before, events, progress: Arc::default(), rules: trace.rules.clone(), stopped: false }
    }

    /// A handle that shows the progress, also later.
    pub fn progress(&self) -> Arc<Progress> {
        Arc::clone(&self.progress)
    }
}

impl Past for Recorded<'_> {
    fn next_events(&mut self, each: &mut dyn Deliver) -> Polled {
        let mut n = 0;
        while let Some((event, stream)) = self.before.as_mut().and_then(Merged::next) {
            each.event(stream, event);
        }
        self.before = None;
        let ended = loop {
            if self.stopped || n == ROUND {
                break self.stopped;
            }
            let Some((event, stream)) = self.events.next() else { break true };
            each.event(stream, event);
            n += 1;
        };
        self.progress.set(self.events.bytes_read(), self.events.events_read());
        Polled { events: n, ended }
    }

    fn redacted(&self) -> Option<Arc<dyn Rules>> {
        self.rules.clone()
    }

    fn end(&mut self) {
        self.stopped = true;
    }
}
