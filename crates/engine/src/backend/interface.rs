//! What all backends have in common.

use super::stats::Report;
use crate::control::{Order, Preparer, State};
use crate::error::{Error, Result};
use crate::pipeline::recorder::Recorder;
use crate::plan::Plan;
use events::StreamId;
use std::time::Duration;
use sys::ptrace::Change;

/// What a call of [`Backend::poll`] has brought.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Polled {
    /// Events that were handed over.
    pub events: usize,
    /// No more will come.
    pub ended: bool,
}

/// What was attached, for `--explain`.
#[derive(Clone, Debug, Default)]
pub struct Attached {
    /// What runs in the kernel: where, and the program.
    pub programs: Vec<(String, bpf::Program)>,
    /// Probes that are attached in their second way, because the kernel has refused the first.
    pub fell_back: Vec<String>,
}

/// Carries a session out, and brings its events.
///
/// The calls are: [`poll`](Backend::poll) and [`wait`](Backend::wait) in turn until `poll` says that it has ended, then
/// [`report`](Backend::report). Anything else may be called at any time.
pub trait Backend: Send {
    /// Its name, as `--backend` has it.
    fn name(&self) -> &'static str;

    /// Hands over the events that are there, each with its stream, in the order in which views are to have them.
    /// Without `room`, events that can wait where they are do.
    fn poll(&mut self, room: bool, each: &mut dyn FnMut(StreamId, &[u8])) -> Polled;

    /// Sleeps until there may be events, or for `timeout`.
    fn wait(&mut self, timeout: Duration);

    /// Carries an order out, and returns the state of the session then.
    ///
    /// # Errors
    /// It cannot be carried out, or the session has ended.
    fn control(&mut self, order: Order) -> Result<State>;

    /// What prepares orders where the backend runs in a thread of its own; once.
    fn take_preparer(&mut self) -> Option<Box<dyn Preparer>> {
        None
    }

    /// Asks for the end: running processes are let go. [`Backend::poll`] brings what is left.
    fn stop(&mut self);

    /// The command's process id, once it is known.
    fn command(&self) -> Option<i32> {
        None
    }

    /// How the command ended, if it has.
    fn command_status(&mut self) -> Option<Change> {
        None
    }

    /// What was attached; once.
    fn take_attached(&mut self) -> Attached {
        Attached::default()
    }

    /// Why the session could not start, if it could not; once.
    fn failure(&mut self, _plan: &Plan) -> Option<Error> {
        None
    }

    /// The streams that events come from.
    fn streams(&self) -> Vec<StreamId>;

    /// Events of a stream that found no room so far.
    fn dropped_on(&self, stream: StreamId) -> u64;

    /// What is known at the end.
    fn report(&mut self) -> Report;

    /// What has kept the events, where they were kept on the other side of a thread.
    fn take_recorder(&mut self) -> Option<Recorder> {
        None
    }
}
