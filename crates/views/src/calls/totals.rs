//! Functions and what their calls add up to.
//!
//! The *total* time of a function is that of its calls, each from its entry to its end; of calls inside of calls of the same function, only the
//! outermost counts. Its *self* time is the time in the function itself. A call that has not returned lasts until the end of its thread's
//! records, or until the time that the caller names.
//!
//! Threads do not depend on each other: each of several workers takes the threads' steps in turn, with totals of its own, which are joined at
//! the end ([`in_parallel`]). Memory is 52 bytes for each function and worker.

use super::by_function::ByFunction;
use super::selection::{Place, Selected, Verdicts};
use super::stack::{Call, Calls, Counts, Ending, Stack};
use super::{Functions, Selection, Step, What};
use std::sync::{Mutex, PoisonError};

/// What the calls of a function add up to. Times are in ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Total {
    /// How many there were.
    pub calls: u64,
    /// Time in the function and in what it calls; inner calls of itself are not counted again.
    pub total: u64,
    /// Time in the function itself.
    pub own: u64,
    /// The sum of the durations of all calls, which is more than `total` where the function calls itself.
    pub sum: u64,
    /// The shortest call that returned and has all its records; [`u64::MAX`] without any.
    pub min: u64,
    /// The longest call.
    pub max: u64,
}

impl Default for Total {
    fn default() -> Total {
        Total { calls: 0, total: 0, own: 0, sum: 0, min: u64::MAX, max: 0 }
    }
}

impl Total {
    /// The average duration.
    pub fn average(&self) -> u64 {
        self.sum.checked_div(self.calls).unwrap_or(0)
    }

    /// The duration of the shortest call, where it is known.
    pub fn shortest(&self) -> Option<u64> {
        (self.min != u64::MAX).then_some(self.min)
    }

    #[inline]
    fn add(&mut self, call: &Call) {
        let duration = call.duration();
        self.calls += 1;
        self.own = self.own.saturating_add(call.own);
        self.sum = self.sum.saturating_add(duration);
        if call.outermost {
            self.total = self.total.saturating_add(duration);
        }
        self.max = self.max.max(duration);
        if call.ending == Ending::Returned && !call.across_gap {
            self.min = self.min.min(duration);
        }
    }

    /// Adds other calls.
    pub fn join(&mut self, other: &Total) {
        self.calls += other.calls;
        self.own = self.own.saturating_add(other.own);
        self.sum = self.sum.saturating_add(other.sum);
        self.total = self.total.saturating_add(other.total);
        self.max = self.max.max(other.max);
        self.min = self.min.min(other.min);
    }
}

/// The functions of many threads.
#[derive(Clone, Debug, Default)]
pub struct Totals {
    of: ByFunction<Total>,
    /// What the threads' stacks have met.
    pub counts: Counts,
    /// How many threads there were.
    pub threads: u64,
    /// Used again by each thread.
    stack: Stack,
}

impl Calls for ByFunction<Total> {
    #[inline]
    fn ended(&mut self, call: &Call) {
        self.of(call.function).add(call);
    }
}

impl Totals {
    /// No calls.
    pub fn new() -> Totals {
        Totals::default()
    }

    /// Adds all steps of a thread. Calls that have not returned last until its last step, or until `until` where that is later.
    pub fn thread(&mut self, steps: impl IntoIterator<Item = Step>, until: u64) {
        let mut feed = Feed { totals: self, selected: None };
        feed.steps(steps);
        feed.end(until);
    }

    fn end_of_thread(&mut self) {
        self.threads += 1;
        self.counts.join(&self.stack.take_counts());
    }

    /// Adds the calls of other threads.
    pub fn join(&mut self, other: &Totals) {
        for (f, total) in other.iter() {
            self.of.of(f).join(total);
        }
        self.counts.join(&other.counts);
        self.threads += other.threads;
    }

    /// All functions that were called, with their numbers.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &Total)> {
        self.of.iter().filter(|(_, t)| t.calls > 0)
    }

    /// What the calls of one function add up to; none where it was not called.
    pub fn get(&self, function: u32) -> Option<&Total> {
        self.of.get(function).filter(|t| t.calls > 0)
    }
}

/// What is selected of a thread's calls.
struct Part<'a> {
    place: Place,
    verdicts: &'a mut Verdicts,
    functions: &'a dyn Functions,
}

/// Takes the steps of a thread, in as many parts as they come in.
pub struct Feed<'a> {
    totals: &'a mut Totals,
    selected: Option<Part<'a>>,
}

impl Feed<'_> {
    /// Takes the thread's next steps.
    pub fn steps(&mut self, steps: impl IntoIterator<Item = Step>) {
        let Totals { of, stack, .. } = &mut *self.totals;
        match &mut self.selected {
            None => steps.into_iter().for_each(|step| stack.step(step, of)),
            Some(Part { place, verdicts, functions }) => {
                let mut calls = Selected { place, verdicts, functions: *functions, calls: of };
                steps.into_iter().for_each(|step| stack.step(step, &mut calls));
            }
        }
    }

    /// Whether calls of the thread are open.
    pub fn has_open(&self) -> bool {
        !self.totals.stack.open().is_empty()
    }

    fn end(&mut self, until: u64) {
        let until = until.max(self.totals.stack.last());
        self.steps([Step { time: until, what: What::End }]);
        self.totals.end_of_thread();
    }
}

/// The totals of all threads, by several workers. Each takes a thread, in the order of the list, as soon as it has finished the one before: put
/// those with the most steps first. `feed` hands over the steps of a thread.
pub fn in_parallel<T>(
    threads: impl IntoIterator<Item = T, IntoIter: Send>,
    workers: usize,
    until: u64,
    (selection, functions): (&Selection, &(dyn Functions + Sync)),
    feed: impl Fn(T, &mut Feed<'_>) + Sync,
) -> Totals {
    let threads = Mutex::new(threads.into_iter());
    let next = || threads.lock().unwrap_or_else(PoisonError::into_inner).next();
    let work = || {
        let mut totals = Totals::new();
        let mut verdicts = Verdicts::new(selection.clone());
        while let Some(thread) = next() {
            let part = Part { place: Place::default(), verdicts: &mut verdicts, functions };
            let mut to = Feed { totals: &mut totals, selected: Some(part).filter(|_| !selection.is_everything()) };
            feed(thread, &mut to);
            to.end(until);
        }
        totals
    };
    std::thread::scope(|scope| {
        let another = || std::thread::Builder::new().spawn_scoped(scope, work).ok();
        let others: Vec<_> = (1..workers).filter_map(|_| another()).collect();
        let mut all = work();
        for totals in others.into_iter().filter_map(|worker| worker.join().ok()) {
            all.join(&totals);
        }
        all
    })
}
