//! The orders that a running session takes: stop, start, select other calls, report its state.
//!
//! ```text
//! front end ── Order ──► ControlChannel ──► drain thread (kernel), between two rounds ── State ──► front end
//!                  └──► words that the ptracer reads at its next stop (ptrace)
//! ```
//!
//! Orders are for sessions that were planned as [`crate::plan::Plan::named`]; others have nothing that could make
//! programs skip events.

use crate::backend::stats::{Counts, Losses, Missed};
use crate::pipeline::recorder::Totals;
use crate::select::Calls;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// What is asked for.
#[derive(Clone, Debug)]
pub enum Order {
    /// Stop: calls, signals and probes are not recorded from now on, but forks, execs and exits are.
    Stop,
    /// Start: they are recorded again.
    Start,
    /// Select: these calls are recorded from now on, and no others.
    Select(Calls),
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
    /// What was counted of each enabling of a probe other than a call.
    pub enablings: Vec<(String, Counts)>,
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
    answer: Option<State>,
    closed: bool,
}

impl ControlChannel {
    fn pending(&self) -> MutexGuard<'_, Pending> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Leaves an order and waits for the answer; `None` if the session has ended, or has not answered in time.
    pub fn ask(&self, order: Order, patience: Duration) -> Option<State> {
        let until = Instant::now() + patience;
        let mut pending = self.pending();
        pending.answer = None;
        pending.order = Some(order);
        while pending.answer.is_none() && !pending.closed {
            let left = until.checked_duration_since(Instant::now()).filter(|t| !t.is_zero());
            let Some(left) = left else {
                // Whoever asks next must not get this answer.
                pending.order = None;
                return None;
            };
            pending = self.answered.wait_timeout(pending, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        pending.answer.take()
    }

    /// The waiting order, if any. Only the drain thread calls this.
    pub fn take(&self) -> Option<Order> {
        self.pending().order.take()
    }

    /// Answers the order.
    pub fn answer(&self, state: State) {
        self.pending().answer = Some(state);
        self.answered.notify_all();
    }

    /// No more orders are carried out.
    pub fn close(&self) {
        self.pending().closed = true;
        self.answered.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn an_order_is_answered_or_given_up() {
        let channel = Arc::new(ControlChannel::default());
        assert!(channel.ask(Order::Status, Duration::from_millis(1)).is_none(), "nobody is there");
        assert!(channel.take().is_none(), "an order that was given up is not carried out");
        let carrier = Arc::clone(&channel);
        let thread = std::thread::spawn(move || {
            loop {
                match carrier.take() {
                    Some(Order::Status) => {
                        return carrier
                            .answer(State { losses: Losses { total: 7, classes: Vec::new() }, ..State::default() });
                    }
                    Some(other) => panic!("{other:?}"),
                    None => std::thread::yield_now(),
                }
            }
        });
        assert_eq!(channel.ask(Order::Status, Duration::from_secs(30)).map(|s| s.losses.total), Some(7));
        thread.join().unwrap();
        channel.close();
        assert!(channel.ask(Order::Stop, Duration::from_secs(30)).is_none());
    }
}
