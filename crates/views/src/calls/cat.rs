//! Calls as a table with a line for each entry and each exit: thread, time on return, and the call, indented.
//!
//! ```text
//! # THREAD           |  TIME (us) | FUNCTION
//! app-4711           |            | main() {
//! app-4711           |            |   f() {
//! app-4711           |      1.234 |   }
//! app-4711           |    100.000 | }
//! ```
//!
//! No line waits for another one, so that it can be followed live, step by step.

use super::label::Labels;
use super::selection::{Place, Selected, Selection, Verdicts};
use super::stack::{Call, Calls, Counts, Ending, Stack};
use super::threads::Threads;
use super::tree::style::indent;
use super::{CallView, Functions, Making, Step, SystemCall, Thread};
use crate::profile::name;
use crate::values;
use crate::write::number;
use events::traces::own;

/// Characters of the column of threads.
const THREAD: usize = 18;
/// Characters of the column of times.
const TIME: usize = 10;

#[derive(Debug, Default)]
struct State {
    stack: Stack,
    place: Place,
    depth: usize,
    /// What the thread is called, in the width of its column; empty at first.
    name: String,
}

/// The view.
pub struct Cat {
    verdicts: Verdicts,
    labels: Labels,
    threads: Threads<State>,
    begun: bool,
    /// Values of the step that comes next.
    values: Vec<u8>,
}

/// A line for each entry and each exit.
pub fn open(making: Making) -> Box<dyn CallView> {
    Box::new(Cat::new(making.selection))
}

impl Cat {
    /// A table of the selected calls; it ignores the shortest duration.
    pub fn new(selection: Selection) -> Cat {
        let verdicts = Verdicts::new(selection);
        Cat { verdicts, labels: Labels::default(), threads: Threads::new(), begun: false, values: Vec::new() }
    }

    fn begin(&mut self, out: &mut Vec<u8>) {
        if !std::mem::replace(&mut self.begun, true) {
            out.extend_from_slice(b"# THREAD           |  TIME (us) | FUNCTION\n");
        }
    }

    fn with(
        &mut self,
        index: usize,
        functions: &dyn Functions,
        out: &mut Vec<u8>,
        work: impl FnOnce(&mut Stack, &mut dyn Calls),
    ) {
        let (identity, state) = self.threads.at(index);
        name_once(&mut state.name, identity.thread());
        let (labels, values) = (&mut self.labels, &self.values[..]);
        let writer = Writer { thread: &state.name, depth: &mut state.depth, labels, functions, values, out };
        let mut calls = Selected { place: &mut state.place, verdicts: &mut self.verdicts, functions, calls: writer };
        work(&mut state.stack, &mut calls);
    }
}

/// Sets what a thread is called: `comm-TID`.
fn name_once(name: &mut String, t: Thread<'_>) {
    if name.is_empty() {
        let tid = own(t.tid).to_string();
        let comm = if t.comm.is_empty() { "-".into() } else { name::visible(t.comm) };
        let comm = name::shortened(&comm, THREAD - 1 - tid.len());
        *name = format!("{:THREAD$}", format!("{comm}-{tid}"));
    }
}

struct Writer<'a> {
    thread: &'a str,
    depth: &'a mut usize,
    labels: &'a mut Labels,
    functions: &'a dyn Functions,
    values: &'a [u8],
    out: &'a mut Vec<u8>,
}

impl Writer<'_> {
    fn line(&mut self, duration: Option<u64>, depth: usize, parts: [&str; 2]) {
        let out = &mut *self.out;
        out.extend_from_slice(self.thread.as_bytes());
        out.extend_from_slice(b" | ");
        match duration {
            Some(ns) => {
                number::padded(ns / 1000, TIME - 4, out);
                out.push(b'.');
                let part = ns % 1000;
                out.extend([part / 100, part / 10 % 10, part % 10].map(|digit| b'0' + digit as u8));
            }
            None => out.resize(out.len() + TIME, b' '),
        }
        out.extend_from_slice(b" | ");
        indent(depth, out);
        parts.iter().for_each(|p| out.extend_from_slice(p.as_bytes()));
        out.push(b'\n');
    }
}

impl Calls for Writer<'_> {
    fn entered(&mut self, function: u32, _start: u64, depth: usize) {
        match values::arguments(self.functions.signature(function), self.values) {
            Some(arguments) => {
                let name = self.labels.name(function, self.functions);
                self.line(None, depth, [&name, &format!("({arguments}) {{")]);
            }
            None => {
                let name = self.labels.call(function, self.functions);
                self.line(None, depth, [&name, " {"]);
            }
        }
        *self.depth = depth + 1;
    }

    fn ended(&mut self, call: &Call) {
        *self.depth = call.depth;
        let why = match call.ending {
            Ending::Returned => match values::result(self.functions.signature(call.function), self.values) {
                Some(result) => &format!(" = {result}"),
                None => "",
            },
            Ending::Left => " /* left without a recorded return */",
            Ending::Unfinished => " /* has not returned */",
        };
        self.line(Some(call.duration()), call.depth, ["}", why]);
    }

    fn unmatched(&mut self, function: u32, _time: u64) {
        let name = self.labels.call(function, self.functions);
        let depth = *self.depth;
        self.line(None, depth, ["} /* ", &format!("{name} */")]);
    }

    fn gap(&mut self, _time: u64, dropped: u64) {
        let depth = *self.depth;
        self.line(None, depth, ["/* missing records: ", &format!("{dropped} */")]);
    }

    fn paused(&mut self, _time: u64) {
        let depth = *self.depth;
        self.line(None, depth, ["/* the session was stopped here */", ""]);
    }
}

impl CallView for Cat {
    fn values(&mut self, values: &[u8]) {
        self.values.clear();
        self.values.extend_from_slice(values);
    }

    fn step(&mut self, thread: Thread<'_>, step: Step, functions: &dyn Functions, out: &mut Vec<u8>) {
        self.begin(out);
        let (index, _) = self.threads.index(thread);
        self.with(index, functions, out, |stack, mut calls| stack.step(step, &mut calls));
        self.values.clear();
    }

    fn system_call(&mut self, thread: Thread<'_>, call: &SystemCall<'_>, functions: &dyn Functions, out: &mut Vec<u8>) {
        self.begin(out);
        let (index, _) = self.threads.index(thread);
        let (identity, state) = self.threads.at(index);
        if state.place.shows(&self.verdicts) {
            name_once(&mut state.name, identity.thread());
            let depth = state.depth;
            let mut writer = Writer {
                thread: &state.name,
                depth: &mut state.depth,
                labels: &mut self.labels,
                functions,
                values: &[],
                out,
            };
            writer.line(Some(call.end.saturating_sub(call.start)), depth, [call.text, ""]);
        }
    }

    fn end(&mut self, functions: &dyn Functions, out: &mut Vec<u8>) {
        self.begin(out);
        let mut counts = Counts::default();
        for index in 0..self.threads.len() {
            self.with(index, functions, out, |stack, mut calls| stack.finish(0, &mut calls));
            counts.join(self.threads.at(index).1.stack.counts());
        }
        if let Some(doubts) = counts.doubts() {
            out.extend_from_slice(format!("# {doubts}\n").as_bytes());
        }
    }
}
