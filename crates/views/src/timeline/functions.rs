//! Calls of functions as rows: one for each depth of a thread.

use super::columns::{Item, Row, Rows};
use super::{Kind, Of};
use crate::calls::selection::{Place, Selected, Selection, Verdicts};
use crate::calls::stack::{Call, Calls, Ending, Stack};
use crate::calls::{CallView, Functions, Step, Thread, What};
use crate::profile::name;
use events::hash::Table;

/// A function that has been called.
#[derive(Debug)]
pub(super) struct Function {
    /// Its name; `[function 7]` where that is not known.
    pub name: String,
    /// The file that contains it, without its directories; empty where it is not known.
    pub module: String,
}

/// The calls of a thread that are open, and whether they are shown.
#[derive(Debug, Default)]
struct Calling {
    thread: usize,
    stack: Stack,
    place: Place,
}

/// Collects calls of functions.
#[derive(Debug)]
pub(super) struct FunctionRows {
    /// The thread that makes the next step.
    pub thread: usize,
    /// The number of depths with rows; deeper calls are only counted.
    pub depths: usize,
    threads: Table<(u32, u32), Calling>,
    verdicts: Verdicts,
    rows: Rows,
    /// Functions, as they are met: from 1.
    all: Vec<Function>,
    numbers: Table<u32, u32>,
    /// Calls that are in no row.
    pub deep: u64,
}

impl FunctionRows {
    /// Collects calls that are selected; the shortest duration is ignored.
    pub fn new(selection: Selection, depths: usize) -> FunctionRows {
        FunctionRows {
            thread: 0,
            depths,
            threads: Table::default(),
            verdicts: Verdicts::new(selection),
            rows: Rows::default(),
            all: Vec::new(),
            numbers: Table::default(),
            deep: 0,
        }
    }

    /// The rows; their names are numbers of [`FunctionRows::all`].
    pub fn rows(&self) -> &[Row] {
        self.rows.all()
    }

    /// The functions, from number 1.
    pub fn all(&self) -> &[Function] {
        &self.all
    }

    /// Whether a thread is in calls that are shown, or all are.
    pub fn shows(&self, of: (u32, u32)) -> bool {
        let selection = self.verdicts.selection();
        let place = || self.threads.get(&of).map(|calling| calling.place.shows(&self.verdicts));
        selection.is_everything() || place().unwrap_or(selection.only.is_empty() && selection.depth > 0)
    }

    /// Steps of a thread; a new one has calls in which the next step is.
    fn with(&mut self, of: (u32, u32), functions: &dyn Functions, step: impl FnOnce(&mut Stack, &mut dyn Calls)) {
        let FunctionRows { thread, threads, verdicts, rows, all, numbers, deep, depths } = self;
        let calling = threads.entry(of).or_insert_with(|| Calling { thread: *thread, ..Calling::default() });
        let calls = Collecting { thread: calling.thread, depths: *depths, rows, all, numbers, deep, functions };
        step(&mut calling.stack, &mut Selected { place: &mut calling.place, verdicts, functions, calls });
    }
}

/// Puts calls that have ended into the rows of a thread.
struct Collecting<'a> {
    thread: usize,
    depths: usize,
    rows: &'a mut Rows,
    all: &'a mut Vec<Function>,
    numbers: &'a mut Table<u32, u32>,
    deep: &'a mut u64,
    functions: &'a dyn Functions,
}

impl Collecting<'_> {
    /// The number of a function in the rows.
    fn number(&mut self, function: u32) -> u32 {
        let next = self.all.len() as u32 + 1;
        let number = *self.numbers.entry(function).or_insert(next);
        if number == next {
            let name = self.functions.name(function).filter(|name| !name.is_empty());
            self.all.push(Function {
                name: name.map_or_else(|| format!("[function {function}]"), str::to_owned),
                module: name::base(self.functions.module(function)).to_owned(),
            });
        }
        number
    }
}

impl Calls for Collecting<'_> {
    fn ended(&mut self, call: &Call) {
        if call.depth >= self.depths {
            *self.deep += 1;
            return;
        }
        let name = self.number(call.function);
        let row = self.rows.of(Of::Thread(self.thread), Kind::Function, call.depth as u32);
        // 1: it was left by a jump, or an exception; 2: it had not ended; 4: records are missing in it.
        let ending = match call.ending {
            Ending::Returned => 0,
            Ending::Left => 1,
            Ending::Unfinished => 2,
        };
        let value = ending | i64::from(call.across_gap) << 2;
        row.push(&Item { start: call.start, length: call.duration(), name, value, ..Item::default() });
    }
}

impl CallView for FunctionRows {
    fn step(&mut self, thread: Thread<'_>, step: Step, functions: &dyn Functions, _: &mut Vec<u8>) {
        let of = (thread.pid, thread.tid);
        // A later thread may have the same number. The end of a thread may be said with an event of another one.
        if matches!(step.what, What::Entry(_))
            && let Some(calling) = self.threads.get_mut(&of)
        {
            calling.thread = self.thread;
        }
        self.with(of, functions, |stack, mut calls| stack.step(step, &mut calls));
    }

    fn end(&mut self, functions: &dyn Functions, _: &mut Vec<u8>) {
        let mut threads: Vec<(u32, u32)> = self.threads.keys().copied().collect();
        threads.sort_unstable();
        for of in threads {
            self.with(of, functions, |stack, mut calls| stack.finish(0, &mut calls));
        }
    }
}
