//! Calls on a timeline: a slice from the entry to the end of each, in a track for each thread, for Perfetto's interface (ui.perfetto.dev) and
//! for everything that reads Chrome's format.

pub mod chrome;
pub mod perfetto;

use super::selection::{Place, Selected, Selection, Verdicts};
use super::stack::{Call, Calls, Stack};
use super::threads::Threads;
use super::{CallView, Functions, Step, SystemCall, Thread};

/// Where something is written about a thread.
pub struct Track<'a> {
    /// The thread.
    pub thread: Thread<'a>,
    /// Names of functions.
    pub functions: &'a dyn Functions,
    /// The file.
    pub out: &'a mut Vec<u8>,
}

/// A format of timelines. Times are in ns.
pub trait Format {
    /// Begins a file; `time` is that of the first event.
    fn begin(&mut self, time: u64, out: &mut Vec<u8>);
    /// Describes a thread, before its first event.
    fn thread(&mut self, track: &mut Track<'_>);
    /// A call begins.
    fn entered(&mut self, track: &mut Track<'_>, function: u32, time: u64);
    /// A call has ended.
    fn ended(&mut self, track: &mut Track<'_>, call: &Call);
    /// Records are missing.
    fn gap(&mut self, track: &mut Track<'_>, time: u64, dropped: u64);
    /// A system call.
    fn system_call(&mut self, track: &mut Track<'_>, call: &SystemCall<'_>);
    /// Ends a file.
    fn end(&mut self, losses: Option<Losses>, out: &mut Vec<u8>);
}

/// Events that were lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Losses {
    /// In all.
    pub all: u64,
    /// Of these, events of which it is not known which thread they were of, or when: no gap has them.
    pub elsewhere: u64,
    /// The time of the last event.
    pub last: u64,
}

/// What a mark is called that stands for events that were lost elsewhere.
const ELSEWHERE: &str = "events are missing";

#[derive(Debug, Default)]
struct State {
    stack: Stack,
    place: Place,
}

/// The view.
pub struct Timeline<F> {
    format: F,
    verdicts: Verdicts,
    threads: Threads<State>,
    begun: bool,
    lost: Option<u64>,
    /// Records that gaps have.
    gaps: u64,
    last: u64,
}

impl<F: Format> Timeline<F> {
    /// The calls that are selected; the shortest duration is ignored.
    pub fn new(format: F, selection: Selection) -> Timeline<F> {
        Timeline {
            format,
            verdicts: Verdicts::new(selection),
            threads: Threads::new(),
            begun: false,
            lost: None,
            gaps: 0,
            last: 0,
        }
    }

    fn begin(&mut self, time: u64, out: &mut Vec<u8>) {
        self.last = self.last.max(time);
        if !std::mem::replace(&mut self.begun, true) {
            self.format.begin(time, out);
        }
    }

    fn index(&mut self, thread: Thread<'_>, functions: &dyn Functions, out: &mut Vec<u8>) -> usize {
        let (index, is_new) = self.threads.index(thread);
        if is_new {
            self.format.thread(&mut Track { thread, functions, out });
        }
        index
    }

    fn with(
        &mut self,
        index: usize,
        functions: &dyn Functions,
        out: &mut Vec<u8>,
        work: impl FnOnce(&mut Stack, &mut dyn Calls),
    ) {
        let (identity, state) = self.threads.at(index);
        let track = Track { thread: identity.thread(), functions, out };
        let writer = Writer { format: &mut self.format, track, gaps: &mut self.gaps };
        let mut calls = Selected { place: &mut state.place, verdicts: &mut self.verdicts, functions, calls: writer };
        work(&mut state.stack, &mut calls);
    }
}

struct Writer<'a, F> {
    format: &'a mut F,
    track: Track<'a>,
    gaps: &'a mut u64,
}

impl<F: Format> Calls for Writer<'_, F> {
    fn entered(&mut self, function: u32, start: u64, _depth: usize) {
        self.format.entered(&mut self.track, function, start);
    }

    fn ended(&mut self, call: &Call) {
        self.format.ended(&mut self.track, call);
    }

    fn gap(&mut self, time: u64, dropped: u64) {
        *self.gaps = self.gaps.saturating_add(dropped);
        self.format.gap(&mut self.track, time, dropped);
    }
}

impl<F: Format> CallView for Timeline<F> {
    fn step(&mut self, thread: Thread<'_>, step: Step, functions: &dyn Functions, out: &mut Vec<u8>) {
        self.begin(step.time, out);
        let index = self.index(thread, functions, out);
        self.with(index, functions, out, |stack, mut calls| stack.step(step, &mut calls));
    }

    fn system_call(&mut self, thread: Thread<'_>, call: &SystemCall<'_>, functions: &dyn Functions, out: &mut Vec<u8>) {
        self.begin(call.start, out);
        let index = self.index(thread, functions, out);
        if self.threads.at(index).1.place.shows(&self.verdicts) {
            self.format.system_call(&mut Track { thread, functions, out }, call);
        }
    }

    fn lost(&mut self, events: u64) {
        self.lost = Some(events);
    }

    fn end(&mut self, functions: &dyn Functions, out: &mut Vec<u8>) {
        self.begin(0, out);
        for index in 0..self.threads.len() {
            self.with(index, functions, out, |stack, mut calls| stack.finish(0, &mut calls));
        }
        let Timeline { gaps, last, .. } = *self;
        let losses = self.lost.map(|all| Losses { all, elsewhere: all.saturating_sub(gaps), last });
        self.format.end(losses, out);
    }
}
