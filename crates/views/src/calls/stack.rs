//! The open calls of a thread, and what becomes of them.
//!
//! ```text
//! entry f, entry g, exit g, exit f     calls that return
//! entry f, entry g, exit f             g was left: by longjmp, an exception, or its exit was lost
//! exit f                               f was entered before the first record, or its entry was lost
//! entry f                              f had not returned when the records end
//! ```
//!
//! A call ends at the exit of its function, or when an outer call ends. So an entry that was lost makes one exit that has no call, and an exit
//! that was lost makes a call too long; neither changes the calls around it.
//!
//! Invariants: each step takes constant time, on average; calls that end are reported innermost first, each inside of its caller; times of
//! a thread never go back. Memory is 40 bytes for each open call, of which there are at most [`MAX_DEPTH`], and 4 for each function.

use super::by_function::ByFunction;
use super::{Step, What};

/// The most open calls of a thread. Deeper ones are counted, and not reported.
pub const MAX_DEPTH: usize = 1 << 22;

/// A call that is open.
#[derive(Clone, Copy, Debug)]
pub struct Open {
    /// Number of the function.
    pub function: u32,
    /// When it was entered.
    pub start: u64,
    /// How much of its time was spent in the calls that it has made and that have ended.
    callees: u64,
}

/// How a call has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Its exit was recorded.
    Returned,
    /// An outer call has returned.
    Left,
    /// Not at all: the records end, or the thread.
    Unfinished,
}

/// A call that has ended.
#[derive(Clone, Copy, Debug)]
pub struct Call {
    /// Number of the function.
    pub function: u32,
    /// When it was entered.
    pub start: u64,
    /// When it has ended.
    pub end: u64,
    /// The time in the function itself: without that of the calls that it has made.
    pub own: u64,
    /// How many calls of the thread are around it.
    pub depth: usize,
    /// None of them is of the same function.
    pub outermost: bool,
    /// How it has ended.
    pub ending: Ending,
    /// Records are missing between its entry and its end, so that it may be two calls.
    pub across_gap: bool,
}

impl Call {
    /// From its entry to its end, ns.
    pub fn duration(&self) -> u64 {
        self.end - self.start
    }
}

/// Who gets the calls.
pub trait Calls {
    /// A call begins, inside of `depth` others.
    fn entered(&mut self, function: u32, start: u64, depth: usize) {
        let _ = (function, start, depth);
    }
    /// A call has ended.
    fn ended(&mut self, call: &Call);
    /// A function was left whose entry is not known.
    fn unmatched(&mut self, function: u32, time: u64) {
        let _ = (function, time);
    }
    /// Records are missing.
    fn gap(&mut self, time: u64, dropped: u64) {
        let _ = (time, dropped);
    }
    /// The session was stopped here.
    fn paused(&mut self, time: u64) {
        let _ = time;
    }
}

impl<C: Calls + ?Sized> Calls for &mut C {
    #[inline]
    fn entered(&mut self, function: u32, start: u64, depth: usize) {
        (**self).entered(function, start, depth);
    }
    #[inline]
    fn ended(&mut self, call: &Call) {
        (**self).ended(call);
    }
    fn unmatched(&mut self, function: u32, time: u64) {
        (**self).unmatched(function, time);
    }
    fn gap(&mut self, time: u64, dropped: u64) {
        (**self).gap(time, dropped);
    }
    fn paused(&mut self, time: u64) {
        (**self).paused(time);
    }
}

/// What a stack has met.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Entries and exits.
    pub steps: u64,
    /// Exits of functions whose entries are not known.
    pub unmatched: u64,
    /// Calls that ended because an outer call returned, and that were not open while the session was stopped.
    pub left: u64,
    /// Calls that had not returned at the end.
    pub unfinished: u64,
    /// Places where records are missing.
    pub gaps: u64,
    /// Records that are missing there.
    pub dropped: u64,
    /// Calls with missing records between their entry and their end.
    pub across_gaps: u64,
    /// Times in which the session was stopped.
    pub pauses: u64,
    /// Calls that were open at such a time, and of which no return was recorded.
    pub across_pauses: u64,
    /// Entries deeper than [`MAX_DEPTH`].
    pub too_deep: u64,
    /// Steps whose time was before that of the step before them.
    pub backwards: u64,
}

impl Counts {
    /// Adds others.
    pub fn join(&mut self, other: &Counts) {
        self.steps += other.steps;
        self.unmatched += other.unmatched;
        self.left += other.left;
        self.unfinished += other.unfinished;
        self.gaps += other.gaps;
        self.dropped = self.dropped.saturating_add(other.dropped);
        self.across_gaps += other.across_gaps;
        self.pauses += other.pauses;
        self.across_pauses += other.across_pauses;
        self.too_deep += other.too_deep;
        self.backwards += other.backwards;
    }

    /// What is not certain about the calls, in a sentence without a full stop; none where everything is.
    pub fn doubts(&self) -> Option<String> {
        let calls = |n: u64, what: &str| {
            (n > 0).then(|| if n == 1 { format!("1 call {what}") } else { format!("{n} calls {what}") })
        };
        let records =
            |n: u64| if n == 1 { "1 record is missing".to_owned() } else { format!("{n} records are missing") };
        let all = [
            (self.gaps > 0).then(|| records(self.dropped)),
            calls(self.left, "left without a recorded return"),
            calls(self.unfinished, "not returned at the end"),
            calls(self.across_pauses, "returned while the session was stopped, or later without a record"),
            calls(
                self.unmatched,
                if self.pauses > 0 { "entered while nothing was recorded" } else { "entered before the first record" },
            ),
            calls(self.too_deep, "too deep to be shown"),
        ];
        let all: Vec<_> = all.into_iter().flatten().collect();
        (!all.is_empty()).then(|| all.join("; "))
    }
}

/// The open calls of a thread.
#[derive(Clone, Debug, Default)]
pub struct Stack {
    open: Vec<Open>,
    /// How many open calls each function has.
    of_function: ByFunction<u32>,
    /// Open calls beyond [`MAX_DEPTH`].
    beyond: u64,
    /// The calls that were open at the last gap: how many of the outermost.
    before_gap: usize,
    /// The calls that were open when the session was stopped: how many of the outermost.
    before_pause: usize,
    /// Time of the last step.
    last: u64,
    counts: Counts,
}

impl Stack {
    /// No open calls.
    pub fn new() -> Stack {
        Stack::default()
    }

    /// What it has met.
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// The open calls, outermost first.
    pub fn open(&self) -> &[Open] {
        &self.open
    }

    /// Time of the last step; 0 before the first.
    pub fn last(&self) -> u64 {
        self.last
    }

    /// Takes the thread's next step.
    #[inline(always)]
    pub fn step(&mut self, step: Step, calls: &mut impl Calls) {
        let time = self.clock(step.time);
        match step.what {
            What::Entry(f) => self.entry(f, time, calls),
            What::Exit(f) => self.exit(f, time, calls),
            What::Gap { dropped } => self.gap(time, dropped, calls),
            What::Pause => self.pause(time, calls),
            What::End => self.finish(time, calls),
        }
    }

    #[inline(always)]
    fn clock(&mut self, time: u64) -> u64 {
        if time < self.last {
            self.counts.backwards += 1;
            return self.last;
        }
        self.last = time;
        time
    }

    #[inline(always)]
    fn entry(&mut self, function: u32, time: u64, calls: &mut impl Calls) {
        self.counts.steps += 1;
        if self.open.len() >= MAX_DEPTH {
            self.beyond += 1;
            self.counts.too_deep += 1;
            return;
        }
        calls.entered(function, time, self.open.len());
        *self.of_function.of(function) += 1;
        self.open.push(Open { function, start: time, callees: 0 });
    }

    #[inline(always)]
    fn exit(&mut self, function: u32, time: u64, calls: &mut impl Calls) {
        self.counts.steps += 1;
        match self.open.last() {
            Some(top) if top.function == function && self.beyond == 0 => self.close(time, Ending::Returned, calls),
            _ => self.unusual_exit(function, time, calls),
        }
    }

    #[cold]
    fn unusual_exit(&mut self, function: u32, time: u64, calls: &mut impl Calls) {
        if self.beyond > 0 {
            self.beyond -= 1;
            return;
        }
        if self.of_function.get(function).is_none_or(|n| *n == 0) {
            self.counts.unmatched += 1;
            return calls.unmatched(function, time);
        }
        while self.open.last().is_some_and(|o| o.function != function) {
            self.close_early(time, Ending::Left, calls);
        }
        self.close_early(time, Ending::Returned, calls);
    }

    /// [`Stack::close`], where calls end otherwise than in their turn.
    #[inline(never)]
    fn close_early(&mut self, time: u64, ending: Ending, calls: &mut impl Calls) {
        self.close(time, ending, calls);
    }

    /// Ends the innermost call.
    #[inline(always)]
    fn close(&mut self, time: u64, ending: Ending, calls: &mut impl Calls) {
        let Some(open) = self.open.pop() else { return };
        let duration = time - open.start;
        if let Some(caller) = self.open.last_mut() {
            caller.callees += duration;
        }
        let of_function = self.of_function.of(open.function);
        *of_function -= 1;
        let depth = self.open.len();
        let call = Call {
            function: open.function,
            start: open.start,
            end: time,
            own: duration - open.callees,
            depth,
            outermost: *of_function == 0,
            ending,
            across_gap: depth < self.before_gap,
        };
        if call.across_gap || ending != Ending::Returned {
            self.count(&call);
        }
        calls.ended(&call);
    }

    #[cold]
    fn count(&mut self, call: &Call) {
        let across_pause = call.depth < self.before_pause;
        self.before_gap = self.before_gap.min(call.depth);
        self.before_pause = self.before_pause.min(call.depth);
        self.counts.across_gaps += u64::from(call.across_gap);
        match call.ending {
            Ending::Returned => {}
            Ending::Left if across_pause => self.counts.across_pauses += 1,
            Ending::Left => self.counts.left += 1,
            Ending::Unfinished => self.counts.unfinished += 1,
        }
    }

    #[cold]
    fn gap(&mut self, time: u64, dropped: u64, calls: &mut impl Calls) {
        self.counts.gaps += 1;
        self.counts.dropped = self.counts.dropped.saturating_add(dropped);
        self.before_gap = self.open.len();
        // Exits of calls that are too deep may be among the missing ones.
        self.beyond = 0;
        calls.gap(time, dropped);
    }

    #[cold]
    fn pause(&mut self, time: u64, calls: &mut impl Calls) {
        self.counts.pauses += 1;
        (self.before_gap, self.before_pause, self.beyond) = (self.open.len(), self.open.len(), 0);
        calls.paused(time);
    }

    /// Ends all calls that are open, at `time` or at the last step, whichever is later.
    pub fn finish(&mut self, time: u64, calls: &mut impl Calls) {
        self.last = self.last.max(time);
        self.beyond = 0;
        while !self.open.is_empty() {
            self.close_early(self.last, Ending::Unfinished, calls);
        }
        (self.before_gap, self.before_pause) = (0, 0);
    }

    /// What it has met, to begin with another thread: after [`Stack::finish`].
    pub fn take_counts(&mut self) -> Counts {
        self.last = 0;
        std::mem::take(&mut self.counts)
    }
}
