//! Calls of functions as rows: one for each depth of a thread.

use super::columns::{Item, Row, Rows};
use super::{Kind, Of};
use crate::calls::stack::{Call, Calls, Ending, Stack};
use crate::calls::{CallView, Functions, Step, Thread, What};
use events::hash::Table;

/// Depths of which there are rows: deeper calls are in none, and counted.
const MOST_DEPTHS: usize = 200;

/// What calls of functions are collected in.
#[derive(Debug, Default)]
pub(super) struct FunctionRows {
    /// The thread that makes the next step.
    pub thread: usize,
    rows: Rows,
    stacks: Table<(u32, u32), (usize, Stack)>,
    /// Names of functions, as they are met: from 1.
    names: Vec<String>,
    numbers: Table<u32, u32>,
    /// Calls that are in no row.
    pub deep: u64,
}

impl FunctionRows {
    /// The rows; their names are numbers of [`FunctionRows::names`].
    pub fn rows(&self) -> &[Row] {
        self.rows.all()
    }

    /// Names of functions, from number 1.
    pub fn names(&self) -> &[String] {
        &self.names
    }
}

/// Puts calls that have ended into the rows of a thread.
struct Collecting<'a> {
    thread: usize,
    rows: &'a mut Rows,
    names: &'a mut Vec<String>,
    numbers: &'a mut Table<u32, u32>,
    deep: &'a mut u64,
    functions: &'a dyn Functions,
}

impl Calls for Collecting<'_> {
    fn ended(&mut self, call: &Call) {
        if call.depth >= MOST_DEPTHS {
            *self.deep += 1;
            return;
        }
        let next = self.names.len() as u32 + 1;
        let name = *self.numbers.entry(call.function).or_insert(next);
        if name == next {
            self.names.push(self.functions.name(call.function).map_or_else(|| "?".to_owned(), str::to_owned));
        }
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
        let FunctionRows { thread: at, rows, stacks, names, numbers, deep, .. } = self;
        let (of, stack) = stacks.entry((thread.pid, thread.tid)).or_insert_with(|| (*at, Stack::default()));
        // A later thread may have the same number. The end of a thread may be said with an event of another one.
        if matches!(step.what, What::Entry(_)) {
            *of = *at;
        }
        let at = of;
        stack.step(step, &mut Collecting { thread: *at, rows, names, numbers, deep, functions });
    }

    fn end(&mut self, functions: &dyn Functions, _: &mut Vec<u8>) {
        let FunctionRows { rows, stacks, names, numbers, deep, .. } = self;
        for (thread, stack) in stacks.values_mut() {
            stack.finish(0, &mut Collecting { thread: *thread, rows, names, numbers, deep, functions });
        }
    }
}
