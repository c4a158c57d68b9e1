//! Calls as JSON, an object for each call on a line of its own, in the order in which calls end. docs/GRAPH.md describes it.

use super::selection::{Place, Selected, Selection, Verdicts};
use super::stack::{Call, Calls, Ending, Stack};
use super::threads::{Identity, Threads};
use super::{CallView, Functions, Making, Step, Thread};
use crate::values;
use crate::write::json as w;
use events::traces::own;

#[derive(Debug, Default)]
struct State {
    stack: Stack,
    place: Place,
    /// Values of the arguments of calls that are open and shown.
    open: Vec<Vec<u8>>,
}

/// The view.
pub struct Json {
    verdicts: Verdicts,
    threads: Threads<State>,
    /// Values of the step that comes next.
    values: Vec<u8>,
}

/// An object for each call.
pub fn open(making: Making) -> Box<dyn CallView> {
    Box::new(Json::new(making.selection))
}

impl Json {
    /// The calls that are selected.
    pub fn new(selection: Selection) -> Json {
        Json { verdicts: Verdicts::new(selection), threads: Threads::new(), values: Vec::new() }
    }

    fn with(
        &mut self,
        index: usize,
        functions: &dyn Functions,
        out: &mut Vec<u8>,
        work: impl FnOnce(&mut Stack, &mut dyn Calls),
    ) {
        let shortest = self.verdicts.selection().shortest;
        let (identity, state) = self.threads.at(index);
        let writer = Writer { identity, shortest, functions, open: &mut state.open, values: &self.values, out };
        let mut calls = Selected { place: &mut state.place, verdicts: &mut self.verdicts, functions, calls: writer };
        work(&mut state.stack, &mut calls);
    }
}

struct Writer<'a> {
    identity: &'a Identity,
    shortest: u64,
    functions: &'a dyn Functions,
    open: &'a mut Vec<Vec<u8>>,
    values: &'a [u8],
    out: &'a mut Vec<u8>,
}

impl Writer<'_> {
    fn begin(&mut self, kind: &str) {
        self.out.extend_from_slice(b"{\"v\":1,\"type\":");
        w::string(self.out, kind);
        for (key, id) in [("pid", own(self.identity.pid)), ("tid", own(self.identity.tid))] {
            w::key(self.out, key);
            w::number(self.out, id);
        }
        if !self.identity.comm.is_empty() {
            w::key(self.out, "tid_comm");
            w::string(self.out, &self.identity.comm);
        }
    }

    fn function(&mut self, function: u32) {
        w::key(self.out, "function");
        match self.functions.name(function) {
            Some(name) => w::string(self.out, name),
            None => w::null(self.out),
        }
        let module = self.functions.module(function);
        if !module.is_empty() {
            w::key(self.out, "module");
            w::string(self.out, module);
        }
    }

    fn numbers(&mut self, members: &[(&str, u64)]) {
        for (key, n) in members {
            w::key(self.out, key);
            w::number(self.out, *n);
        }
    }

    fn end(&mut self) {
        self.out.extend_from_slice(b"}\n");
    }
}

impl Calls for Writer<'_> {
    fn entered(&mut self, _function: u32, _start: u64, _depth: usize) {
        self.open.push(self.values.to_vec());
    }

    fn ended(&mut self, call: &Call) {
        let entry = self.open.pop().unwrap_or_default();
        if call.duration() < self.shortest {
            return;
        }
        self.begin("call");
        self.function(call.function);
        let depth = call.depth as u64;
        self.numbers(&[
            ("start_ns", call.start),
            ("duration_ns", call.duration()),
            ("self_ns", call.own),
            ("depth", depth),
        ]);
        let mut mark = |key| {
            w::key(self.out, key);
            w::boolean(self.out, true);
        };
        match call.ending {
            Ending::Returned => {}
            Ending::Left => mark("left"),
            Ending::Unfinished => mark("unfinished"),
        }
        if call.across_gap {
            mark("across_gap");
        }
        let exit = if call.ending == Ending::Returned { self.values } else { &[] };
        values::json(self.functions.signature(call.function), "args", &entry, exit, self.out);
        self.end();
    }

    fn unmatched(&mut self, function: u32, time: u64) {
        self.begin("return");
        self.function(function);
        self.numbers(&[("time_ns", time)]);
        self.end();
    }

    fn gap(&mut self, time: u64, dropped: u64) {
        self.begin("gap");
        self.numbers(&[("time_ns", time), ("dropped", dropped)]);
        self.end();
    }

    fn paused(&mut self, time: u64) {
        self.begin("pause");
        self.numbers(&[("time_ns", time)]);
        self.end();
    }
}

impl CallView for Json {
    fn values(&mut self, values: &[u8]) {
        self.values.clear();
        self.values.extend_from_slice(values);
    }

    fn step(&mut self, thread: Thread<'_>, step: Step, functions: &dyn Functions, out: &mut Vec<u8>) {
        let (index, _) = self.threads.index(thread);
        self.with(index, functions, out, |stack, mut calls| stack.step(step, &mut calls));
        self.values.clear();
    }

    fn end(&mut self, functions: &dyn Functions, out: &mut Vec<u8>) {
        for index in 0..self.threads.len() {
            self.with(index, functions, out, |stack, mut calls| stack.finish(0, &mut calls));
        }
    }
}
