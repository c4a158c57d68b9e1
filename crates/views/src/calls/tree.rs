//! Calls as a tree, a line for each entry and exit, in the layout of `uftrace replay`; it can be followed live.
//!
//! ```text
//! # DURATION     TID     FUNCTION
//!             [ 4711] | main() {
//!    1.234 us [ 4711] |   f();
//!  100.000 us [ 4711] | } /* main */
//! ```
//!
//! A call that shows no others takes one line, so the line of an entry waits for the thread's next step; with a shortest duration, until the
//! call, or one inside of it, has lasted so long. Lines of other threads wait behind it (`lines::Lines`), so that lines are in the order of entries;
//! but of no more than 64 KiB.

mod lines;
pub mod style;

use super::label::Labels;
use super::selection::{Place, Selected, Verdicts};
use super::stack::{Call, Calls, Counts, Ending, Stack};
use super::threads::Threads;
use super::{CallView, Functions, Step, SystemCall, Thread, What};
use crate::values;
use events::traces::own;
use lines::Lines;
use std::rc::Rc;
use style::{Line, Style};

/// A thread.
#[derive(Debug, Default)]
struct State {
    stack: Stack,
    place: Place,
    shown: Shown,
}

/// Calls that are open and selected.
#[derive(Debug, Default)]
struct Shown {
    /// Function, start, and how it was called, if its arguments are known.
    open: Vec<(u32, u64, Option<Rc<str>>)>,
    /// How many of them have lines.
    printed: usize,
}

/// The view.
pub struct Tree {
    style: Style,
    verdicts: Verdicts,
    labels: Labels,
    threads: Threads<State>,
    lines: Lines,
    begun: bool,
    /// Values of the step that comes next.
    values: Vec<u8>,
}

impl Tree {
    /// A tree of the selected calls.
    pub fn new(style: Style, selection: super::Selection) -> Tree {
        Tree {
            style,
            verdicts: Verdicts::new(selection),
            labels: Labels::default(),
            threads: Threads::new(),
            lines: Lines::default(),
            begun: false,
            values: Vec::new(),
        }
    }

    fn begin(&mut self, out: &mut Vec<u8>) {
        if !std::mem::replace(&mut self.begun, true) {
            self.style.heading(out);
        }
    }

    /// Does something with a thread's stack, which hands calls to a writer.
    fn with(
        &mut self,
        index: usize,
        functions: &dyn Functions,
        out: &mut Vec<u8>,
        work: impl FnOnce(&mut Stack, &mut dyn Told),
    ) {
        let (identity, state) = self.threads.at(index);
        let shortest = self.verdicts.selection().shortest;
        let writer = Writer {
            thread: index,
            tid: own(identity.tid),
            shown: &mut state.shown,
            lines: &mut self.lines,
            labels: &mut self.labels,
            style: &self.style,
            functions,
            values: &self.values,
            shortest,
            out,
        };
        let mut calls = Selected { place: &mut state.place, verdicts: &mut self.verdicts, functions, calls: writer };
        work(&mut state.stack, &mut calls);
    }

    fn ended(&mut self, index: usize, time: u64, functions: &dyn Functions, out: &mut Vec<u8>) {
        self.with(index, functions, out, |stack, mut calls| stack.finish(time, &mut calls));
    }

    /// What the stacks of all threads have met.
    pub fn counts(&self) -> Counts {
        let mut all = Counts::default();
        self.threads.iter().for_each(|(_, s)| all.join(s.stack.counts()));
        all
    }
}

/// Who gets calls, and prints them.
trait Told: Calls {
    fn system_call(&mut self, call: &SystemCall<'_>);
    fn print_open(&mut self, now: u64);
}

impl Told for Selected<'_, Writer<'_>> {
    fn system_call(&mut self, call: &SystemCall<'_>) {
        if self.place.shows(self.verdicts) {
            self.calls.system_call(call);
        }
    }

    fn print_open(&mut self, now: u64) {
        self.calls.print_open(now);
    }
}

/// Prints the calls of a thread.
struct Writer<'a> {
    thread: usize,
    tid: u32,
    shown: &'a mut Shown,
    lines: &'a mut Lines,
    labels: &'a mut Labels,
    style: &'a Style,
    functions: &'a dyn Functions,
    values: &'a [u8],
    shortest: u64,
    out: &'a mut Vec<u8>,
}

impl Writer<'_> {
    /// Appends a line about a function.
    fn line(&mut self, function: Option<u32>, line: &Line<'_>, to: &mut Vec<u8>) {
        let module = function.filter(|_| self.style.module).map(|f| self.labels.module(f, self.functions));
        self.style.line(self.tid, module.as_deref(), line, to);
    }

    /// Prints the waiting lines of entries down to the depth `upto`, and then `last`.
    fn print_entries(&mut self, upto: usize, last: impl FnOnce(&mut Self, &mut Vec<u8>)) {
        let mut text = self.lines.scratch();
        while self.shown.printed < upto {
            let depth = self.shown.printed;
            let (function, _, called) = self.shown.open[depth].clone();
            let name = called.unwrap_or_else(|| self.labels.call(function, self.functions));
            self.line(
                Some(function),
                &Line { depth, name: &name, kind: style::Kind::Entry, duration: None, result: None },
                &mut text,
            );
            self.shown.printed += 1;
        }
        last(self, &mut text);
        self.lines.put(self.thread, &text, self.out);
        self.lines.give_back(text);
        if self.shown.open.len() > self.shown.printed {
            self.lines.wait(self.thread, self.out);
        }
    }

    fn print_open(&mut self, now: u64) {
        let lasting =
            self.shown.open.iter().take_while(|(_, start, _)| now.saturating_sub(*start) >= self.shortest).count();
        if lasting > self.shown.printed {
            self.print_entries(lasting, |_, _| ());
        }
    }

    fn system_call(&mut self, call: &SystemCall<'_>) {
        let duration = call.end.saturating_sub(call.start);
        if duration < self.shortest {
            return;
        }
        let depth = self.shown.open.len();
        self.print_entries(depth, |w, text| {
            let kind = style::Kind::SystemCall;
            w.line(None, &Line { depth, name: call.text, kind, duration: Some(duration), result: None }, text);
        });
    }
}

impl Calls for Writer<'_> {
    fn entered(&mut self, function: u32, start: u64, _depth: usize) {
        let open = self.shown.open.len();
        if self.shortest == 0 && self.shown.printed < open {
            self.print_entries(open, |_, _| ());
        }
        let called = values::arguments(self.functions.signature(function), self.values)
            .map(|arguments| format!("{}({arguments})", self.labels.name(function, self.functions)).into());
        self.shown.open.push((function, start, called));
        if self.shown.open.len() == self.shown.printed + 1 {
            self.lines.wait(self.thread, self.out);
        }
    }

    fn ended(&mut self, call: &Call) {
        let called = self.shown.open.pop().and_then(|o| o.2);
        let depth = self.shown.open.len();
        let has_entry = self.shown.printed > depth;
        let duration = call.duration();
        if !has_entry && duration < self.shortest {
            if self.shown.printed == depth {
                self.lines.put(self.thread, b"", self.out);
            }
            return;
        }
        let name = self.labels.call(call.function, self.functions);
        // A line about the end alone names the function only.
        let name = called.filter(|_| !has_entry).unwrap_or(name);
        let returned = call.ending == Ending::Returned;
        let result = returned.then(|| values::result(self.functions.signature(call.function), self.values)).flatten();
        let kind = match (has_entry, call.ending) {
            (false, Ending::Returned) => style::Kind::Leaf,
            (true, Ending::Returned) => style::Kind::Exit,
            (_, Ending::Left) => style::Kind::Left { has_entry },
            (_, Ending::Unfinished) => style::Kind::Unfinished { has_entry },
        };
        self.shown.printed = self.shown.printed.min(depth);
        self.print_entries(depth, |w, text| {
            let result = result.as_deref();
            w.line(Some(call.function), &Line { depth, name: &name, kind, duration: Some(duration), result }, text);
        });
    }

    fn unmatched(&mut self, function: u32, _time: u64) {
        let depth = self.shown.open.len();
        self.print_entries(depth, |w, text| {
            let name = w.labels.call(function, w.functions);
            w.line(
                Some(function),
                &Line { depth, name: &name, kind: style::Kind::Exit, duration: None, result: None },
                text,
            );
        });
    }

    fn gap(&mut self, _time: u64, dropped: u64) {
        let depth = self.shown.open.len();
        self.print_entries(depth, |w, text| {
            let name =
                if dropped == 1 { "1 record is missing".to_owned() } else { format!("{dropped} records are missing") };
            w.line(None, &Line { depth, name: &name, kind: style::Kind::Note, duration: None, result: None }, text);
        });
    }

    fn paused(&mut self, _time: u64) {
        let depth = self.shown.open.len();
        self.print_entries(depth, |w, text| {
            let name = "the session was stopped here";
            w.line(None, &Line { depth, name, kind: style::Kind::Note, duration: None, result: None }, text);
        });
    }
}

impl CallView for Tree {
    fn values(&mut self, values: &[u8]) {
        self.values.clear();
        self.values.extend_from_slice(values);
    }

    fn step(&mut self, thread: Thread<'_>, step: Step, functions: &dyn Functions, out: &mut Vec<u8>) {
        self.begin(out);
        let (index, _) = self.threads.index(thread);
        match step.what {
            What::End => self.ended(index, step.time, functions, out),
            _ => self.with(index, functions, out, |stack, mut calls| stack.step(step, &mut calls)),
        }
        self.values.clear();
    }

    fn system_call(&mut self, thread: Thread<'_>, call: &SystemCall<'_>, functions: &dyn Functions, out: &mut Vec<u8>) {
        self.begin(out);
        let (index, _) = self.threads.index(thread);
        self.with(index, functions, out, |_, calls| calls.system_call(call));
    }

    fn flush(&mut self, now: u64, functions: &dyn Functions, out: &mut Vec<u8>) {
        for index in 0..self.threads.len() {
            self.with(index, functions, out, |_, calls| calls.print_open(now));
        }
    }

    fn end(&mut self, functions: &dyn Functions, out: &mut Vec<u8>) {
        self.begin(out);
        for index in 0..self.threads.len() {
            self.ended(index, 0, functions, out);
        }
        if let Some(doubts) = self.counts().doubts() {
            out.extend_from_slice(format!("# {doubts}\n").as_bytes());
        }
    }
}
