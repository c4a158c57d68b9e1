//! Where events come from: a backend, and the recorder that its events pass.

use super::aside::Origin;
use super::call_enablings::CallEnablings;
use super::recorder::Recorder;
use crate::control::{Order, Preparer, State};
use crate::error::{Error, Result};
use crate::pipeline::backend::{Attached, Backend, Deliver, Polled};
use crate::plan::Plan;
use crate::request::enabling::Enabling;
use crate::request::expression::Filtered;
use crate::request::select::Calls;
use crate::stats::totals::Totals;
use crate::stats::{Losses, Report};
use events::StreamId;
use events::functions::Run;
use events::rules::Rules;
use std::sync::Arc;
use std::time::Duration;
use sys::ptrace::Change;
use sys::time;

/// A backend and its recorder. Recording copies bytes and does not decode events.
pub struct Source<'b> {
    backend: Box<dyn Backend + 'b>,
    recorder: Option<Recorder>,
    /// None where they are on the other side of a thread.
    calls: Option<CallEnablings>,
}

impl<'b> Source<'b> {
    /// Events of `backend` are kept by `recorder`, where there is one.
    pub fn new(backend: Box<dyn Backend + 'b>, recorder: Option<Recorder>) -> Source<'b> {
        Source { backend, recorder, calls: Some(CallEnablings::default()) }
    }

    /// Another source, which runs in a thread.
    pub fn of_thread(backend: Box<dyn Backend + 'b>) -> Source<'b> {
        Source { backend, recorder: None, calls: None }
    }

    /// The backend's name.
    pub fn name(&self) -> &'static str {
        self.backend.name()
    }

    /// Texts of its events that are not to be shown.
    pub fn rules(&self) -> Option<Arc<dyn Rules>> {
        self.backend.rules()
    }

    /// Records what is available and delivers it. Without `room`, or where the recorder has none, what can wait
    /// where it is does: a slow reader makes the target wait, or lets its rings fill up and count.
    pub fn poll(&mut self, room: bool, each: &mut impl Deliver) -> Polled {
        let now = time::monotonic();
        let Source { backend, recorder, calls } = self;
        let room = room && recorder.as_ref().is_none_or(Recorder::has_room);
        let mut through = Through { calls: calls.as_mut(), keep: recorder.as_mut(), each };
        let polled = backend.poll(room, &mut through);
        if let Some(keep) = recorder {
            keep.tick(now, |stream| backend.dropped_on(stream));
        }
        polled
    }

    /// Sleeps until there may be events, or for `timeout`.
    pub fn wait(&mut self, timeout: Duration) {
        self.backend.wait(timeout);
    }

    /// Whether everything is attached, so that orders take effect.
    pub fn has_begun(&self) -> bool {
        self.backend.has_begun()
    }

    /// Has an order carried out.
    ///
    /// # Errors
    /// It cannot be carried out; the session has ended, or is too busy to answer.
    pub fn control(&mut self, order: Order) -> Result<State> {
        if let Order::Enable(enabled) = &order {
            // Before the first of their events.
            let classes: Vec<_> = enabled.new_classes().collect();
            self.recorder.iter_mut().for_each(|r| r.add_classes(&classes));
            if let (Some(calls), Some((_, evaluated))) = (&mut self.calls, &enabled.calls) {
                let state = self.backend.control(Order::Status)?;
                calls.set(&enabled.all, evaluated.clone(), &state.losses, &state.filtered);
            }
        }
        let mut state = self.backend.control(order)?;
        if let Some(calls) = &self.calls {
            state.enablings.extend(calls.counts(&state.losses, &state.filtered));
            state.filtered.add(calls.filtered());
        }
        if let Some(recorder) = &self.recorder {
            state.kept = Some(recorder.so_far());
        }
        Ok(state)
    }

    /// Each enabling of a call has its own filter, from the start.
    pub fn set_call_enablings(&mut self, all: &[Enabling], evaluated: &Calls) {
        self.calls.iter_mut().for_each(|calls| {
            calls.set(all, evaluated.clone(), &Losses::default(), &Filtered::default());
        });
    }

    /// What prepares orders; once.
    pub fn take_preparer(&mut self) -> Option<Box<dyn Preparer>> {
        self.backend.take_preparer()
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

    /// Which processor most of the events of the last round come from.
    pub fn origin(&self) -> Origin {
        self.backend.origin()
    }

    /// Has the writer thread stay off this processor, or run anywhere.
    pub fn keep_writer_off(&mut self, cpu: Option<u32>) {
        self.recorder.iter_mut().for_each(|r| r.keep_writer_off(cpu));
    }

    /// Starts the writer thread now, with the priority that the calling thread may give it.
    pub fn start_writer(&mut self) {
        self.recorder.iter_mut().for_each(Recorder::start_writer);
    }

    /// The counters at the end. The recorder gets the counts of losses in them.
    pub fn report(&mut self) -> Report {
        let mut report = self.backend.report();
        if let Some(calls) = &self.calls {
            report.enablings.extend(calls.counts(&report.losses, &report.filtered));
            report.filtered.add(calls.filtered());
        }
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

    /// The recorder; once.
    pub fn take_recorder(&mut self) -> Option<Recorder> {
        self.recorder.take().or_else(|| self.backend.take_recorder())
    }

    /// Ends the recording, after [`Source::report`]. Returns its totals.
    pub fn finish(&mut self) -> Result<Option<Totals>> {
        self.take_recorder().map(Recorder::finish).transpose()
    }
}

/// Takes what a backend delivers, has it recorded, and passes it on.
struct Through<'a, D> {
    calls: Option<&'a mut CallEnablings>,
    keep: Option<&'a mut Recorder>,
    each: &'a mut D,
}

impl<D: Deliver> Deliver for Through<'_, D> {
    #[inline]
    fn event(&mut self, stream: StreamId, event: &[u8]) {
        if self.calls.as_mut().is_none_or(|c| c.passes(event)) {
            if let Some(keep) = &mut self.keep {
                keep.event(stream, event);
            }
            self.each.event(stream, event);
        }
    }

    fn functions(&mut self, run: &Run<'_>) {
        if let Some(keep) = &mut self.keep {
            keep.functions(run);
        }
        self.each.functions(run);
    }

    fn settled(&mut self, until: u64) {
        self.each.settled(until);
    }
}
