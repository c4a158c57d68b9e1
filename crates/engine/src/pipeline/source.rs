//! Where events come from: a backend, and the recorder that its events pass.

use super::recorder::{Recorder, Totals};
use crate::backend::stats::Report;
use crate::backend::{Attached, Backend, Polled};
use crate::control::{Order, State};
use crate::error::{Error, Result};
use crate::plan::Plan;
use std::time::Duration;
use sys::ptrace::Change;
use sys::time;

/// A backend and its recorder. Recording copies bytes and does not decode events.
pub struct Source<'b> {
    backend: Box<dyn Backend + 'b>,
    recorder: Option<Recorder>,
}

impl<'b> Source<'b> {
    /// Events of `backend` are kept by `recorder`, where there is one.
    pub fn new(backend: Box<dyn Backend + 'b>, recorder: Option<Recorder>) -> Source<'b> {
        Source { backend, recorder }
    }

    /// The backend's name.
    pub fn name(&self) -> &'static str {
        self.backend.name()
    }

    /// Records the available events and delivers them. Without `room`, or where the recorder has none, events that can wait
    /// where they are do: a slow reader makes the target wait, or lets its rings fill up and count.
    pub fn poll(&mut self, room: bool, mut each: impl FnMut(&[u8])) -> Polled {
        let now = time::monotonic();
        let Source { backend, recorder } = self;
        let Some(keep) = recorder else { return backend.poll(room, &mut |_, event| each(event)) };
        let room = room && keep.has_room();
        let polled = backend.poll(room, &mut |stream, event| {
            keep.event(stream, event);
            each(event);
        });
        keep.tick(now, |stream| backend.dropped_on(stream));
        polled
    }

    /// Sleeps until there may be events, or for `timeout`.
    pub fn wait(&mut self, timeout: Duration) {
        self.backend.wait(timeout);
    }

    /// Sends an order and waits for the answer; `None` where the session has ended, or is too busy to answer.
    pub fn control(&mut self, order: Order) -> Option<State> {
        let mut state = self.backend.control(order)?;
        if let Some(recorder) = &self.recorder {
            state.kept = Some(recorder.so_far());
        }
        Some(state)
    }

    /// Asks for the end: running processes are released.
    pub fn stop(&mut self) {
        self.backend.stop();
    }

    /// The command's process id, once it is known.
    pub fn command(&self) -> Option<i32> {
        self.backend.command()
    }

    /// How the command ended, if it has.
    pub fn command_status(&mut self) -> Option<Change> {
        self.backend.command_status()
    }

    /// Why the session could not start, if it could not; once.
    pub fn failure(&mut self, plan: &Plan) -> Option<Error> {
        self.backend.failure(plan)
    }

    /// What was attached; once.
    pub fn take_attached(&mut self) -> Attached {
        self.backend.take_attached()
    }

    /// Starts the writer thread now, with the priority that the calling thread may give it.
    pub fn start_writer(&mut self) {
        self.recorder.iter_mut().for_each(Recorder::start_writer);
    }

    /// The counters at the end. The recorder gets the counts of losses in them.
    pub fn report(&mut self) -> Report {
        let mut report = self.backend.report();
        // A source in a thread of its own has already done that.
        if let Some((_, first)) = sys::span::given_up()
            && !report.trouble.iter().any(|said| said == first)
        {
            report.trouble.push(first.to_string());
        }
        if let Some(keep) = &mut self.recorder {
            keep.set_counts(report.lines.clone());
            keep.set_losses(&report.losses);
            for stream in self.backend.streams() {
                keep.set_lost(stream, self.backend.dropped_on(stream));
            }
        }
        report
    }

    /// The recorder; once.
    pub fn take_recorder(&mut self) -> Option<Recorder> {
        self.recorder.take().or_else(|| self.backend.take_recorder())
    }

    /// Ends the recording, after [`Source::report`]. Returns its totals.
    pub fn finish(&mut self) -> Result<Option<Totals>> {
        self.take_recorder().map(Recorder::finish).transpose()
    }
}
