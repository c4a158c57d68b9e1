//! The orders that a running session takes: stop, start, enable something else, trace other processes, report its state.
//!
//! ```text
//! front end ── Order ──► Preparer ──► ControlChannel ──► drain thread (kernel), between two rounds ── State ──► front end
//!                  └──► words that the ptracer reads at its next stop (ptrace)
//! ```
//!
//! A [`Preparer`] stays with the front end: it loads and attaches programs, which takes time and capabilities that the drain thread
//! does not have.
//!
//! Orders are for sessions that were planned as [`crate::plan::Plan::named`]; others have nothing that could make
//! programs skip events.

use crate::error::{Error, Result};
use crate::request::enabling::Enabling;
use crate::request::expression::Filtered;
use crate::request::probe_enabling::ProbeEnabling;
use crate::request::select::Calls;
use crate::stats::totals::Totals;
use crate::stats::{Counts, Losses, Missed};
use events::Schema;
use std::any::Any;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// What is enabled from now on: all of it at one moment, so that none has neither what it replaces nor what replaces it.
#[derive(Debug, Default)]
pub struct Enabled {
    /// All enablings that the session has had, in their order.
    pub all: Vec<Enabling>,
    /// The number of the first that is new.
    pub first: usize,
    /// Where calls change: those that are seen from now on, and those whose filters are evaluated outside of the backend.
    pub calls: Option<(Calls, Calls)>,
    /// What the backend's [`Preparer`] has made of the new ones.
    pub prepared: Vec<Box<dyn Any + Send>>,
}

impl Enabled {
    /// The classes of events that new enablings have.
    pub fn new_classes(&self) -> impl Iterator<Item = &'static Schema> {
        self.all.iter().skip(self.first).filter(|e| e.is_live()).flat_map(Enabling::classes)
    }

    /// The probes that are new, with their numbers.
    pub fn new_probes(&self) -> impl Iterator<Item = (u32, &Arc<ProbeEnabling>)> {
        self.all.iter().skip(self.first).filter(|e| e.is_live()).filter_map(|e| Some((e.id, e.probe()?)))
    }
}

/// Prepares orders, outside of the drain thread.
pub trait Preparer: Send {
    /// Does the part of an order that takes time or capabilities.
    ///
    /// # Errors
    /// The order cannot be carried out.
    fn prepare(&mut self, order: Order) -> Result<Order>;
}

/// What is asked for.
#[derive(Debug)]
pub enum Order {
    /// Stop: calls, signals and probes are not recorded from now on, but forks, execs and exits are.
    Stop,
    /// Start: they are recorded again.
    Start,
    /// Enable: enablings are added, changed and taken away. The front end asks a backend for nothing of kinds that it does not have.
    Enable(Enabled),
    /// Attach: this process, with all its threads and the processes that it starts, is traced from now on.
    Attach(i32),
    /// Detach: this process is no longer traced.
    Detach(i32),
    /// Lend: a backend by ptrace(2) lets go of this process for a moment, so that another thread can stop it.
    Lend(i32),
    /// TakeBack: it attaches to this process again, or to one that a lent process has started meanwhile.
    TakeBack(i32),
    /// TakeOut: the agent leaves the processes, and another one follows.
    TakeOut,
    /// Status: report the state of the session.
    Status,
}

/// A ring that events come through.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stream {
    /// Its name: that of its file in a trace.
    pub name: String,
    /// Bytes in it.
    pub used: u64,
    /// Bytes of room.
    pub size: u64,
    /// Events that were dropped because it was full.
    pub dropped: u64,
}

/// The state of a session.
#[derive(Clone, Debug, Default)]
pub struct State {
    /// Its rings.
    pub streams: Vec<Stream>,
    /// What was kept so far; none where nothing is kept.
    pub kept: Option<Totals>,
    /// Events that were lost before they were in a ring.
    pub losses: Losses,
    /// Missed runs: the kernel skipped the program because it was already running on that CPU.
    pub missed: Missed,
    /// What filters have held back.
    pub filtered: Filtered,
    /// What was counted of enablings, by number, those that were taken away included; of calls, where it is counted for each.
    pub enablings: Vec<(u32, Counts)>,
    /// The processes that are traced and have not ended, as far as that is known, or threads of them.
    pub running: Vec<i32>,
    /// What agents have done, where there are any.
    pub agents: Option<Agents>,
}

/// What the agents of a session have done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Agents {
    /// Processes that are traced now.
    pub processes: u64,
    /// Threads of these that have written records.
    pub threads: u64,
    /// Files with functions that are patched.
    pub modules: u64,
    /// Patches, in all processes so far.
    pub patched: u64,
    /// Patches that were planned and could not be made, in all processes so far.
    pub refused: u64,
    /// The highest number that a function has.
    pub numbers: u32,
}

/// Where the front end leaves an order for the drain thread, and waits for the answer.
#[derive(Default)]
pub struct ControlChannel {
    pending: Mutex<Pending>,
    answered: Condvar,
}

#[derive(Default)]
struct Pending {
    order: Option<Order>,
    answer: Option<Result<State>>,
    closed: bool,
}

impl ControlChannel {
    fn pending(&self) -> MutexGuard<'_, Pending> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Leaves an order and waits for the answer.
    ///
    /// # Errors
    /// It cannot be carried out; the session has ended, or has not answered in time.
    pub fn ask(&self, order: Order, patience: Duration) -> Result<State> {
        let until = Instant::now() + patience;
        let mut pending = self.pending();
        pending.answer = None;
        pending.order = Some(order);
        while pending.answer.is_none() && !pending.closed {
            let left = until.checked_duration_since(Instant::now()).filter(|t| !t.is_zero());
            let Some(left) = left else {
                // Whoever asks next must not get this answer.
                pending.order = None;
                return Err(ended());
            };
            pending = self.answered.wait_timeout(pending, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        pending.answer.take().unwrap_or_else(|| Err(ended()))
    }

    /// The waiting order, if any. Only the drain thread calls this.
    pub fn take(&self) -> Option<Order> {
        self.pending().order.take()
    }

    /// Answers the order.
    pub fn answer(&self, answer: Result<State>) {
        self.pending().answer = Some(answer);
        self.answered.notify_all();
    }

    /// No more orders are carried out.
    pub fn close(&self) {
        self.pending().closed = true;
        self.answered.notify_all();
    }
}

/// The session takes no more orders.
pub fn ended() -> Error {
    Error::failed("the session", "it is ending, or too busy to answer", "see 'trapline session list'")
}

/// The backend cannot carry this order out.
pub fn unable(what: impl Into<String>, backend: &str) -> Error {
    Error::failed(what, format!("the {backend} backend cannot do that"), "record another session beside this one")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_is_answered_or_given_up() {
        let channel = Arc::new(ControlChannel::default());
        assert!(channel.ask(Order::Status, Duration::from_millis(1)).is_err(), "nobody is there");
        assert!(channel.take().is_none(), "an order that was given up is not carried out");
        let carrier = Arc::clone(&channel);
        let thread = std::thread::spawn(move || {
            loop {
                match carrier.take() {
                    Some(Order::Status) => {
                        let losses = Losses { total: 7, classes: Vec::new() };
                        return carrier.answer(Ok(State { losses, ..State::default() }));
                    }
                    Some(other) => panic!("{other:?}"),
                    None => std::thread::yield_now(),
                }
            }
        });
        assert_eq!(channel.ask(Order::Status, Duration::from_secs(30)).unwrap().losses.total, 7);
        thread.join().unwrap();
        channel.close();
        assert!(channel.ask(Order::Stop, Duration::from_secs(30)).is_err());
    }
}
