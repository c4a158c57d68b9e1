//! Where events come from: a backend, and what keeps them on their way.

use super::recorder::{Recorder, Totals};
use crate::backend::stats::Report;
use crate::backend::{Attached, Backend, Polled};
use crate::control::{Order, Preparer, State};
use crate::error::{Error, Result};
use crate::plan::Plan;
use std::time::Duration;
use sys::ptrace::Change;
use sys::time;

/// A backend and its recorder. Recording copies bytes; an event is not looked at.
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

    /// Keeps the events that are there and hands them over. Without `room`, or where the recorder has none, events that can wait
    /// where they are do: who is slower than the target makes it wait, or lets its rings fill up and count.
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

    /// Has an order carried out.
    ///
    /// # Errors
    /// It cannot be carried out; the session has ended, or is too busy to answer.
    pub fn control(&mut self, order: Order) -> Result<State> {
        if let (Some(recorder), Order::Enable(addition)) = (&mut self.recorder, &order) {
            // Before the first of their events.
            recorder.add_classes(addition.enabling.classes());
        }
        let mut state = self.backend.control(order)?;
        if let Some(recorder) = &self.recorder {
            state.kept = Some(recorder.so_far());
        }
        Ok(state)
    }

    /// What prepares orders; once.
    pub fn take_preparer(&mut self) -> Option<Box<dyn Preparer>> {
        self.backend.take_preparer()
    }

    /// Asks for the end: running processes are let go.
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

    /// The thread that stores what is kept begins now, with the priority that the calling thread may give it.
    pub fn start_writer(&mut self) {
        self.recorder.iter_mut().for_each(Recorder::start_writer);
    }

    /// What is known at the end. The recorder is given what it says of losses.
    pub fn report(&mut self) -> Report {
        let mut report = self.backend.report();
        // A source behind a thread has said so already.
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

    /// What has kept the events; once.
    pub fn take_recorder(&mut self) -> Option<Recorder> {
        self.recorder.take().or_else(|| self.backend.take_recorder())
    }

    /// Ends the recording, after [`Source::report`]: what it has kept in all.
    pub fn finish(&mut self) -> Result<Option<Totals>> {
        self.take_recorder().map(Recorder::finish).transpose()
    }
}
