//! A trace that is still being written: events are delivered in order, a moment after they are stored, until the recording ends.
//!
//! A recorder stores events after half a second at the latest, each stream by itself. So what is older than [`SETTLED`] is complete, unless
//! the machine is busy, or the session takes so long to begin: mappings of processes that run already are of a time before that. What
//! is stored later than that is delivered when it is there, so that each stream is delivered whole.

use super::Progress;
use crate::control::{self, Order, State};
use crate::error::{Error, Result};
use crate::pipeline::backend::{Backend, Deliver, Polled};
use crate::pipeline::functions::shown_name;
use crate::stats::Report;
use ctf::trace::{Found, Trace};
use events::StreamId;
use events::hash::Table;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use sys::time;

/// Events of this age have been stored by the recorder, ns.
pub(super) const SETTLED: u64 = 1_200_000_000;
/// The interval between two reads of the directory, ns.
pub(super) const PERIOD: u64 = 200_000_000;

/// The reader of a trace whose recording is still running.
pub struct Following {
    dir: PathBuf,
    /// The start of the window, ns of the monotonic clock.
    from: u64,
    /// The start of the next events to deliver of each stream.
    next_of: Table<StreamId, u64>,
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
        Following {
            dir,
            from,
            next_of: Table::default(),
            to,
            next: 0,
            names_due: true,
            progress: Arc::default(),
            stopped: false,
            trouble: None,
        }
    }

    /// A handle that shows the progress, also later.
    pub fn progress(&self) -> Arc<Progress> {
        Arc::clone(&self.progress)
    }
}

/// The trace in a directory as it is now.
pub(super) fn open(dir: &Path) -> Result<Box<Trace>> {
    let damaged = |why: String| Error::failed(dir.display().to_string(), why, "all that came before was shown");
    match ctf::trace::open(dir).map_err(|e| damaged(e.to_string()))? {
        Found::Native(trace) => Ok(trace),
        Found::Foreign => Err(damaged("it is another trace now".into())),
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
        let trace = match open(&self.dir) {
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
            let Following { from, next_of, .. } = self;
            let begins = next_of.clone();
            let events = trace.data.events_from(&trace.known, |s| *begins.get(&s).unwrap_or(from), to);
            let mut events = events.named(shown_name);
            while let Some((event, stream)) = events.next() {
                each.event(stream, event);
                n += 1;
                if let Some(time) = event.first_chunk() {
                    next_of.insert(stream, u64::from_le_bytes(*time).saturating_add(1));
                }
            }
            self.progress.add(events.bytes_read(), events.events_read());
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pipeline::recorder::{Config, Recorder};
    use events::encode::{self, Fixed};
    use events::generated::{P_EXIT, P_MAP};
    use events::layout::Layout;
    use testkit::Scratch;

    fn event(schema: &'static events::Schema, time: u64) -> Vec<u8> {
        let mut out = Vec::new();
        let layout = Layout::of(schema);
        encode::fixed(&mut out, schema, &layout, &Fixed { time, tid: 1, pid: 1, ..Fixed::default() }, &[0; 12]);
        layout.tails.iter().for_each(|_| encode::bytes_tail(&mut out, b""));
        out
    }

    /// Waits until the writer has stored it, and reads what is new.
    fn new_streams(following: &mut Following) -> Vec<StreamId> {
        let mut all = Vec::new();
        for _ in 0..1000 {
            following.next = 0;
            following.poll(true, &mut |stream: StreamId, _: &[u8]| all.push(stream));
            if !all.is_empty() {
                break;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        all
    }

    /// A session that takes seconds to begin stores what its processes have mapped when a follower has been beyond that time.
    #[test]
    fn what_is_stored_late_is_delivered_late() {
        let dir = Scratch::new("late");
        let config = Config {
            dir: dir.to_path_buf(),
            max_size: None,
            flight: None,
            command: "test".into(),
            backend: "none".into(),
            classes: Vec::new(),
            realtime_offset: 0,
            utc_offset: 0,
            select: None,
            machine_in_part: None,
            no_duration: false,
            packed: false,
            filter: None,
            string: 32,
            said: Vec::new(),
        };
        let mut recorder = Recorder::new(&config).unwrap();
        let began = time::monotonic();
        let second = 1_000_000_000;
        while time::monotonic() < began + SETTLED {
            std::thread::sleep(Duration::from_millis(50));
        }
        let mut following = Following::new(dir.to_path_buf(), 0, u64::MAX);
        recorder.event(StreamId::cpu(0), &event(&P_EXIT, began + 1));
        recorder.tick(began + 3 * second, |_| 0);
        assert_eq!(new_streams(&mut following), [StreamId::cpu(0)]);
        recorder.monitor().mapping(&event(&P_MAP, began));
        recorder.tick(began + 6 * second, |_| 0);
        recorder.tick(began + 9 * second, |_| 0);
        assert_eq!(new_streams(&mut following), [StreamId::MAPS]);
        following.next = 0;
        assert_eq!(following.poll(true, &mut |_: StreamId, _: &[u8]| {}).events, 0);
        recorder.finish().unwrap();
    }
}
