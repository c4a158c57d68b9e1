//! The trait that every backend implements.

use crate::control::{Order, Preparer, State};
use crate::error::{Error, Result};
use crate::pipeline::aside::Origin;
use crate::pipeline::recorder::Recorder;
use crate::plan::Plan;
use crate::stats::Report;
use events::StreamId;
use events::functions::Run;
use events::rules::Rules;
use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;
use sys::ptrace::Change;

/// The result of one call of [`Backend::poll`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Polled {
    /// Events and function records that were handed over.
    pub events: usize,
    /// The session has ended: no more events will come.
    pub ended: bool,
}

/// Takes what a backend delivers. A closure takes events, and is for backends without functions.
pub trait Deliver {
    /// An event and its stream.
    fn event(&mut self, stream: StreamId, event: &[u8]);

    /// Records of a thread. A `process:function` event of [`StreamId::FUNCTIONS`] comes before the first record that has its number.
    /// Runs of one thread come in order; those of several threads, and events, in any order as far as [`Deliver::settled`] allows.
    fn functions(&mut self, run: &Run<'_>);

    /// Nothing older than `until`, ns of the monotonic clock, will come: no event, no record. A backend that delivers runs says so after
    /// each round; one that delivers events only, in order, never does.
    fn settled(&mut self, until: u64);
}

impl<F: FnMut(StreamId, &[u8])> Deliver for F {
    fn event(&mut self, stream: StreamId, event: &[u8]) {
        self(stream, event);
    }
    fn functions(&mut self, _run: &Run<'_>) {}
    fn settled(&mut self, _until: u64) {}
}

/// What the backend attached, for `--explain`.
#[derive(Default)]
pub struct Attached {
    /// What runs in the kernel: where, and the program, which is shown as text.
    pub programs: Vec<(String, Box<dyn Display + Send>)>,
    /// Probes that are attached in the second way, because the kernel refused the first.
    pub fell_back: Vec<String>,
    /// Why events of calls go through the kernel's rings, and not through those that programs write themselves.
    pub kernel_rings: Option<&'static str>,
}

/// Runs a session and delivers its events.
///
/// The calls are: [`poll`](Backend::poll) and [`wait`](Backend::wait) in turn until `poll` says that it has ended, then
/// [`report`](Backend::report). Anything else may be called at any time.
pub trait Backend: Send {
    /// Its name, as `--backend` has it.
    fn name(&self) -> &'static str;

    /// Whether everything is attached: orders take effect from then on.
    fn has_begun(&self) -> bool {
        true
    }

    /// Delivers the available events, each with its stream, in the order in which views show them, and runs of function records.
    /// Without `room`, what can stay in its buffer does.
    fn poll(&mut self, room: bool, each: &mut dyn Deliver) -> Polled;

    /// Takes what there is out of its rings, for the next round: something else is about to take long.
    fn gather(&mut self) {}

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

    /// Asks for the end: running processes are released. [`Backend::poll`] delivers the remaining events.
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

    /// Texts of its events that are not to be shown.
    fn rules(&self) -> Option<Arc<dyn Rules>> {
        None
    }

    /// Which processor most of the events of the last round come from.
    fn origin(&self) -> Origin {
        Origin::Unknown
    }

    /// Events of a stream that were dropped so far. Function records: with those of the last runs.
    fn dropped_on(&self, stream: StreamId) -> u64;

    /// The counters at the end.
    fn report(&mut self) -> Report;

    /// The recorder that kept the events, where it ran in the backend's thread.
    fn take_recorder(&mut self) -> Option<Recorder> {
        None
    }
}
