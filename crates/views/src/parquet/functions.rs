//! The table of calls of functions: a row when a call has ended.

use super::column::Value;
use super::file::File;
use super::{About, schema};
use crate::calls::stack::{Call, Calls, Ending, Stack};
use crate::calls::{CallView, Functions, Step, Thread};
use events::hash::Table;

/// The table.
pub struct FunctionTable {
    /// Its rows.
    pub file: File,
    about: About,
    /// The open calls of each thread, and its name.
    threads: Table<(u32, u32), (String, Stack)>,
}

impl FunctionTable {
    /// None so far.
    pub fn new(about: &About) -> FunctionTable {
        FunctionTable { file: about.file(&schema::FUNCTIONS), about: about.clone(), threads: Table::default() }
    }
}

/// Writes the calls of a thread that have ended.
struct Writing<'a> {
    file: &'a mut File,
    about: &'a About,
    of: (u32, u32),
    comm: &'a str,
    functions: &'a dyn Functions,
}

impl Calls for Writing<'_> {
    fn ended(&mut self, call: &Call) {
        let time = Value::Int(self.about.time(call.start));
        let ending: &[u8] = match call.ending {
            Ending::Returned => b"returned",
            Ending::Left => b"left",
            Ending::Unfinished => b"unfinished",
        };
        self.file.row([
            time,
            time,
            Value::unsigned(Some(call.duration())),
            Value::unsigned(Some(call.own)),
            Value::Text(self.functions.name(call.function).unwrap_or("?").as_bytes()),
            Value::text(self.functions.module(call.function).as_bytes()),
            Value::Int(self.of.0.into()),
            Value::Int(self.of.1.into()),
            Value::text(self.comm.as_bytes()),
            Value::unsigned(Some(call.depth as u64)),
            Value::Text(ending),
            Value::Int(call.across_gap.into()),
            Value::Int(call.outermost.into()),
        ]);
    }
}

impl CallView for FunctionTable {
    fn step(&mut self, thread: Thread<'_>, step: Step, functions: &dyn Functions, _: &mut Vec<u8>) {
        let FunctionTable { file, about, threads } = self;
        let of = (thread.pid, thread.tid);
        let (comm, stack) = threads.entry(of).or_default();
        if !thread.comm.is_empty() && comm != thread.comm {
            thread.comm.clone_into(comm);
        }
        stack.step(step, &mut Writing { file, about, of, comm, functions });
    }

    fn end(&mut self, functions: &dyn Functions, _: &mut Vec<u8>) {
        let FunctionTable { file, about, threads } = self;
        for (of, (comm, stack)) in threads {
            stack.finish(0, &mut Writing { file, about, of: *of, comm, functions });
        }
    }
}
