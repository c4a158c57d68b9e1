//! What can be asked of a session while it runs: stop, start, other calls, how it stands.
//!
//! ```text
//! front end ── Order ──► Desk ──► drain thread (kernel), between two rounds ── Standing ──► front end
//!                  └──► words that the ptracer reads at its next stop (ptrace)
//! ```
//!
//! Orders are for sessions that were planned as [`crate::plan::Plan::named`]; others have nothing that could hold
//! events back.

use crate::backend::kernel::Skipped;
use crate::backend::kernel::probes::Counts;
use crate::losses::Losses;
use crate::recorder::Totals;
use crate::select::Calls;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// What is asked for.
#[derive(Clone, Debug)]
pub enum Order {
    /// Calls, signals and probes are not recorded from now on; who is whose child is.
    Stop,
    /// They are again.
    Start,
    /// These calls are recorded from now on, and no others.
    Select(Calls),
    /// How the session stands.
    Look,
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
    /// Events that found it full.
    pub dropped: u64,
}

/// How a session stands.
#[derive(Clone, Debug, Default)]
pub struct Standing {
    /// Its rings.
    pub streams: Vec<Stream>,
    /// What was kept so far; none where nothing is kept.
    pub kept: Option<Totals>,
    /// Events that were lost before they were in a ring.
    pub losses: Losses,
    /// Runs of programs that the kernel has left out.
    pub skipped: Skipped,
    /// What was counted of each enabling of a probe other than a call.
    pub enablings: Vec<(String, Counts)>,
}

/// Where the front end leaves an order for the drain thread, and waits for the answer.
#[derive(Default)]
pub struct Desk {
    papers: Mutex<Papers>,
    answered: Condvar,
}

#[derive(Default)]
struct Papers {
    order: Option<Order>,
    answer: Option<Standing>,
    closed: bool,
}

impl Desk {
    fn papers(&self) -> MutexGuard<'_, Papers> {
        self.papers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has an order carried out; none where the session has ended, or has not answered in time.
    pub fn ask(&self, order: Order, patience: Duration) -> Option<Standing> {
        let until = Instant::now() + patience;
        let mut papers = self.papers();
        papers.answer = None;
        papers.order = Some(order);
        while papers.answer.is_none() && !papers.closed {
            let left = until.checked_duration_since(Instant::now()).filter(|t| !t.is_zero());
            let Some(left) = left else {
                // Whoever asks next must not get this answer.
                papers.order = None;
                return None;
            };
            papers = self.answered.wait_timeout(papers, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        papers.answer.take()
    }

    /// The order that waits, if any. The drain thread only.
    pub fn take(&self) -> Option<Order> {
        self.papers().order.take()
    }

    /// Answers it.
    pub fn answer(&self, standing: Standing) {
        self.papers().answer = Some(standing);
        self.answered.notify_all();
    }

    /// No more orders are carried out.
    pub fn close(&self) {
        self.papers().closed = true;
        self.answered.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn an_order_is_answered_or_given_up() {
        let desk = Arc::new(Desk::default());
        assert!(desk.ask(Order::Look, Duration::from_millis(1)).is_none(), "nobody is there");
        assert!(desk.take().is_none(), "an order that was given up is not carried out");
        let clerk = Arc::clone(&desk);
        let thread = std::thread::spawn(move || {
            loop {
                match clerk.take() {
                    Some(Order::Look) => {
                        return clerk.answer(Standing {
                            losses: Losses { total: 7, classes: Vec::new() },
                            ..Standing::default()
                        });
                    }
                    Some(other) => panic!("{other:?}"),
                    None => std::thread::yield_now(),
                }
            }
        });
        assert_eq!(desk.ask(Order::Look, Duration::from_secs(30)).map(|s| s.losses.total), Some(7));
        thread.join().unwrap();
        desk.close();
        assert!(desk.ask(Order::Stop, Duration::from_secs(30)).is_none());
    }
}
