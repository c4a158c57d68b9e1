//! Several traces whose recordings run: events of all in one order of time, a moment after they are stored, until all recordings have ended.
//!
//! ```text
//!  every PERIOD: all directories ─► what is older than the youngest moment of which every recorder has stored all ─► Several ─► Deliver
//! ```
//!
//! A trace that has ended waits for the others, so that the order is that of [`Several`], but for what a recorder stores late
//! ([`super::follow`]).

use super::follow::{Pace, SETTLED, open};
use super::past::Past;
use super::several::{Order as OrderOfTraces, Reader, Several};
use super::{Part, Progress};
use crate::error::Result;
use crate::pipeline::backend::{Deliver, Polled};
use crate::pipeline::functions::shown_name;
use ctf::trace::Trace;
use events::StreamId;
use events::hash::Table;
use events::layout::TID;
use events::traces::{self, Renumber};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// A trace that is followed.
pub struct Followed {
    dir: PathBuf,
    renumber: Renumber,
    /// The window, ns of its own clock, both ends included.
    window: (u64, u64),
    /// The start of the next events to deliver of each stream.
    next_of: Table<StreamId, u64>,
    /// Names of functions from before the window are still to be delivered.
    names_due: bool,
}

impl Followed {
    /// A trace, and the window to read of it.
    pub fn new(part: &Part<'_>) -> Followed {
        let (dir, renumber, window) = (part.trace.dir.clone(), part.renumber, part.window);
        Followed { dir, renumber, window, next_of: Table::default(), names_due: true }
    }

    /// The last moment of its own clock that is read now; `settled` is of the clock that all share.
    fn until(&self, settled: u64) -> u64 {
        settled.saturating_add_signed(self.renumber.time.saturating_neg()).min(self.window.1)
    }

    /// What is new up to a moment.
    fn reader<'t>(&mut self, trace: &'t Trace, until: u64) -> Reader<'t> {
        let from = self.window.0;
        let names_until = from.checked_sub(1).filter(|_| std::mem::take(&mut self.names_due));
        let before = names_until.map(|until| trace.data.functions_until(&trace.known, until));
        let begins = |stream| *self.next_of.get(&stream).unwrap_or(&from);
        let events = trace.data.events_from(&trace.known, begins, until).named(shown_name);
        Reader::of(before, events, self.renumber)
    }

    /// Goes on behind an event at this time of the clock that all share.
    fn delivered(&mut self, stream: StreamId, time: u64) {
        let next = time.saturating_add_signed(self.renumber.time.saturating_neg()).saturating_add(1);
        if next > self.window.0 {
            self.next_of.insert(stream, next);
        }
    }
}

/// The reader of traces whose recordings run.
pub struct FollowingSeveral {
    traces: Vec<Followed>,
    pace: Pace,
}

impl FollowingSeveral {
    /// Of these traces; each has its place in the list for a number.
    pub fn new(traces: Vec<Followed>) -> FollowingSeveral {
        FollowingSeveral { traces, pace: Pace::default() }
    }

    /// A handle that shows the progress, also later.
    pub fn progress(&self) -> Arc<Progress> {
        Arc::clone(&self.pace.progress)
    }

    /// The traces as they are now. One that cannot be read ends the report of all: it may be what orders the others.
    fn open(&self) -> Result<Vec<Trace>> {
        self.traces.iter().map(|followed| open(&followed.dir).map(|trace| *trace)).collect()
    }

    /// The last moment of which every recorder that runs has stored all, ns of the clock that all share; none where no recorder runs.
    fn settled(&self, opened: &[Trace], now: u64) -> Option<u64> {
        let all = opened.iter().zip(&self.traces).filter(|(trace, _)| trace.live);
        all.map(|(_, of)| now.saturating_sub(SETTLED).saturating_add_signed(of.renumber.time)).min()
    }

    /// Delivers what is new in each trace up to a moment of its own clock: how many events.
    fn deliver(&mut self, opened: &[Trace], untils: &[u64], each: &mut dyn Deliver) -> usize {
        let all = opened.iter().zip(&mut self.traces).zip(untils);
        let readers = all.map(|((trace, of), until)| of.reader(trace, *until)).collect();
        let mut several = Several::reading(readers, OrderOfTraces::Time);
        let (mut n, traces) = (0, &mut self.traces);
        let mut deliver = |stream: StreamId, event: &[u8]| {
            each.event(stream, event);
            n += 1;
            let tid = event.get(TID..).and_then(|rest| rest.first_chunk()).map(|bytes| u32::from_le_bytes(*bytes));
            if let (Some(of), Some(time)) = (traces.get_mut(tid.map_or(0, traces::of)), event.first_chunk()) {
                of.delivered(stream, u64::from_le_bytes(*time));
            }
        };
        while !several.next_events(&mut deliver).ended {}
        let progress = several.progress();
        self.pace.progress.add(progress.bytes(), progress.events());
        n
    }
}

impl Past for FollowingSeveral {
    fn next_events(&mut self, each: &mut dyn Deliver) -> Polled {
        let now = match self.pace.due() {
            Ok(now) => now,
            Err(polled) => return polled,
        };
        let opened = match self.open() {
            Ok(opened) => opened,
            Err(e) => return self.pace.failed(&e),
        };
        let settled = self.settled(&opened, now);
        let untils: Vec<u64> = self.traces.iter().map(|of| of.until(settled.unwrap_or(u64::MAX))).collect();
        let events = self.deliver(&opened, &untils, each);
        let are_over = || self.traces.iter().zip(&untils).all(|(of, until)| *until == of.window.1);
        Polled { events, ended: settled.is_none() || are_over() }
    }

    fn pause(&mut self, timeout: Duration) {
        std::thread::sleep(timeout);
    }

    fn end(&mut self) {
        self.pace.stop();
    }

    fn take_trouble(&mut self) -> Option<String> {
        self.pace.take_trouble()
    }
}
