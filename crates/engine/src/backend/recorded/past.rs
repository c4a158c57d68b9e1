//! What all readers of recorded events have in common as backends: nothing can be changed, and losses are those of the trace.

use crate::control::{self, Order, State};
use crate::error::Result;
use crate::pipeline::backend::{Backend, Deliver, Polled};
use crate::stats::Report;
use events::StreamId;
use events::rules::Rules;
use std::sync::Arc;
use std::time::Duration;

/// A reader of recorded events.
pub trait Past: Send {
    /// Delivers the next events, in the order in which views show them.
    fn next_events(&mut self, each: &mut dyn Deliver) -> Polled;

    /// Reads no more.
    fn end(&mut self);

    /// Sleeps until there may be more; never where all are there.
    fn pause(&mut self, timeout: Duration) {
        let _ = timeout;
    }

    /// Texts of its events that are not to be shown.
    fn redacted(&self) -> Option<Arc<dyn Rules>> {
        None
    }

    /// Why it ended early; once.
    fn take_trouble(&mut self) -> Option<String> {
        None
    }
}

impl<P: Past> Backend for P {
    fn name(&self) -> &'static str {
        "recorded"
    }

    fn poll(&mut self, _room: bool, each: &mut dyn Deliver) -> Polled {
        self.next_events(each)
    }

    fn rules(&self) -> Option<Arc<dyn Rules>> {
        self.redacted()
    }

    fn wait(&mut self, timeout: Duration) {
        self.pause(timeout);
    }

    fn control(&mut self, _order: Order) -> Result<State> {
        Err(control::ended())
    }

    fn stop(&mut self) {
        self.end();
    }

    fn streams(&self) -> Vec<StreamId> {
        Vec::new()
    }

    /// What was dropped during a recording is reported for its trace as a whole.
    fn dropped_on(&self, _stream: StreamId) -> u64 {
        0
    }

    fn report(&mut self) -> Report {
        Report { trouble: self.take_trouble().into_iter().collect(), ..Report::default() }
    }
}
