//! A trace that is still being written: events are delivered in order, a moment after they are stored, until the recording ends.
//!
//! A recorder stores events after half a second at the latest, each stream by itself. So what is older than [`SETTLED`] is complete, unless
//! the machine is busy, or the session takes so long to begin: mappings of processes that run already are of a time before that. What
//! is stored later than that is delivered when it is there, so that each stream is delivered whole.

use super::Progress;
use super::past::Past;
use crate::error::{Error, Result};
use crate::pipeline::backend::{Deliver, Polled};
use crate::pipeline::functions::shown_name;
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
const PERIOD: u64 = 200_000_000;

/// When directories are read again, how far that is, and why it has ended.
#[derive(Default)]
pub(super) struct Pace {
    next: u64,
    pub(super) progress: Arc<Progress>,
    stopped: bool,
    trouble: Option<String>,
}

impl Pace {
    /// The moment, if directories are to be read now; else the result of the round.
    pub(super) fn due(&mut self) -> std::result::Result<u64, Polled> {
        let now = time::monotonic();
        if self.stopped || now < self.next {
            return Err(Polled { events: 0, ended: self.stopped });
        }
        self.next = now + PERIOD;
        Ok(now)
    }

    /// The end, because a directory cannot be read.
    pub(super) fn failed(&mut self, e: &Error) -> Polled {
        self.trouble = Some(e.to_string());
        Polled { events: 0, ended: true }
    }

    pub(super) fn stop(&mut self) {
        self.stopped = true;
    }

    pub(super) fn take_trouble(&mut self) -> Option<String> {
        self.trouble.take()
    }
}

/// The reader of a trace whose recording is still running.
pub struct Following {
    dir: PathBuf,
    /// The start of the window, ns of the monotonic clock.
    from: u64,
    /// The start of the next events to deliver of each stream.
    next_of: Table<StreamId, u64>,
    /// No event after this is wanted.
    to: u64,
    /// Names of functions from before the window are still to be delivered.
    names_due: bool,
    pace: Pace,
}

impl Following {
    /// The events of a window of time, ns of the monotonic clock, both ends included.
    pub fn new(dir: PathBuf, from: u64, to: u64) -> Following {
        Following { dir, from, next_of: Table::default(), to, names_due: true, pace: Pace::default() }
    }

    /// A handle that shows the progress, also later.
    pub fn progress(&self) -> Arc<Progress> {
        Arc::clone(&self.pace.progress)
    }

    /// Delivers what is new up to a moment: how many events.
    fn deliver(&mut self, trace: &Trace, to: u64, each: &mut dyn Deliver) -> usize {
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
        let (mut events, mut n) = (events.named(shown_name), 0);
        while let Some((event, stream)) = events.next() {
            each.event(stream, event);
            n += 1;
            if let Some(time) = event.first_chunk() {
                next_of.insert(stream, u64::from_le_bytes(*time).saturating_add(1));
            }
        }
        self.pace.progress.add(events.bytes_read(), events.events_read());
        n
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

impl Past for Following {
    fn next_events(&mut self, each: &mut dyn Deliver) -> Polled {
        let now = match self.pace.due() {
            Ok(now) => now,
            Err(polled) => return polled,
        };
        let trace = match open(&self.dir) {
            Ok(trace) => trace,
            Err(e) => return self.pace.failed(&e),
        };
        let settled = if trace.live { now.saturating_sub(SETTLED) } else { u64::MAX };
        let to = settled.min(self.to);
        let events = if to >= self.from { self.deliver(&trace, to, each) } else { 0 };
        Polled { events, ended: !trace.live || to == self.to }
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
            following.pace.next = 0;
            following.next_events(&mut |stream: StreamId, _: &[u8]| all.push(stream));
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
            command: "test".into(),
            backend: "none".into(),
            string: 32,
            ..Config::default()
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
        following.pace.next = 0;
        assert_eq!(following.next_events(&mut |_: StreamId, _: &[u8]| {}).events, 0);
        recorder.finish().unwrap();
    }
}
