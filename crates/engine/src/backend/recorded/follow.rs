//! A trace that is still being written: events are delivered in order, a moment after they are stored, until the recording ends.
//!
//! A recorder stores events after half a second at the latest, each stream by itself. So what is older than [`SETTLED`] is complete.

use super::Progress;
use crate::backend::stats::Report;
use crate::backend::{Backend, Deliver, Polled};
use crate::control::{self, Order, State};
use crate::error::{Error, Result};
use crate::pipeline::functions::shown_name;
use ctf::trace::{Found, Trace};
use events::StreamId;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use sys::time;

/// Events of this age have been stored by the recorder, ns.
const SETTLED: u64 = 1_200_000_000;
/// The interval between two reads of the directory, ns.
const PERIOD: u64 = 200_000_000;

/// The reader of a trace whose recording is still running.
pub struct Following {
    dir: PathBuf,
    /// The start of the next events to deliver, ns of the monotonic clock.
    from: u64,
    /// No event after this is wanted.
    to: u64,
    /// When the directory is read again.
    next: u64,
    /// Names of functions from before the window are still to be delivered.
    names_due: bool,
    progress: Arc<Progress>,
    stopped: bool,
    trouble: Option<String>,
}

impl Following {
    /// The events of a window of time, ns of the monotonic clock, both ends included.
    pub fn new(dir: PathBuf, from: u64, to: u64) -> Following {
        Following { dir, from, to, next: 0, names_due: true, progress: Arc::default(), stopped: false, trouble: None }
    }

    /// A handle that shows the progress, also later.
    pub fn progress(&self) -> Arc<Progress> {
        Arc::clone(&self.progress)
    }

    fn open(&self) -> Result<Box<Trace>> {
        let damaged =
            |why: String| Error::failed(self.dir.display().to_string(), why, "all that came before was shown");
        match ctf::trace::open(&self.dir).map_err(|e| damaged(e.to_string()))? {
            Found::Native(trace) => Ok(trace),
            Found::Foreign => Err(damaged("it is another trace now".into())),
        }
    }
}

impl Backend for Following {
    fn name(&self) -> &'static str {
        "recorded"
    }

    fn poll(&mut self, _room: bool, each: &mut dyn Deliver) -> Polled {
        let now = time::monotonic();
        if self.stopped {
            return Polled { events: 0, ended: true };
        }
        if now < self.next {
            return Polled::default();
        }
        self.next = now + PERIOD;
        let trace = match self.open() {
            Ok(trace) => trace,
            Err(e) => {
                self.trouble = Some(e.to_string());
                return Polled { events: 0, ended: true };
            }
        };
        let settled = if trace.live { now.saturating_sub(SETTLED) } else { u64::MAX };
        let to = settled.min(self.to);
        let mut n = 0;
        if to >= self.from {
            if std::mem::take(&mut self.names_due)
                && let Some(until) = self.from.checked_sub(1)
            {
                let mut before = trace.data.functions_until(&trace.known, until);
                while let Some((event, stream)) = before.next() {
                    each.event(stream, event);
                }
            }
            let mut events = trace.data.events(&trace.known, self.from, to).named(shown_name);
            while let Some((event, stream)) = events.next() {
                each.event(stream, event);
                n += 1;
            }
            self.progress.add(events.bytes_read(), events.events_read());
        }
        self.from = self.from.max(to.saturating_add(1));
        Polled { events: n, ended: !trace.live || to == self.to }
    }

    fn wait(&mut self, timeout: Duration) {
        std::thread::sleep(timeout);
    }

    fn control(&mut self, _order: Order) -> Result<State> {
        Err(control::ended())
    }

    fn stop(&mut self) {
        self.stopped = true;
    }

    fn streams(&self) -> Vec<StreamId> {
        Vec::new()
    }

    /// What was dropped during the recording is reported for the trace as a whole.
    fn dropped_on(&self, _stream: StreamId) -> u64 {
        0
    }

    fn report(&mut self) -> Report {
        Report { trouble: self.trouble.take().into_iter().collect(), ..Report::default() }
    }
}
