//! The input of views of calls: steps of threads, system calls, names.

use events::values::Signature;

/// A record of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// ns of the trace's clock.
    pub time: u64,
    /// What has happened.
    pub what: What,
}

/// What a thread has done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// It has entered the function with this number.
    Entry(u32),
    /// It has left the function with this number.
    Exit(u32),
    /// Records of it are missing here.
    Gap {
        /// How many.
        dropped: u64,
    },
    /// The session was stopped here for a time: calls may have begun and ended that nobody recorded.
    Pause,
    /// It has ended, or runs another program: open calls never return.
    End,
}

impl Step {
    /// The thread enters a function.
    pub fn entry(time: u64, function: u32) -> Step {
        Step { time, what: What::Entry(function) }
    }

    /// The thread leaves a function.
    pub fn exit(time: u64, function: u32) -> Step {
        Step { time, what: What::Exit(function) }
    }
}

/// A thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Thread<'a> {
    /// Its process.
    pub pid: u32,
    /// The thread itself. No two threads have one number at the same time.
    pub tid: u32,
    /// Its command name; empty where it is not known.
    pub comm: &'a str,
}

/// A system call that a thread has made, from entry to exit.
#[derive(Clone, Copy, Debug)]
pub struct SystemCall<'a> {
    /// When it was entered, ns of the trace's clock.
    pub start: u64,
    /// When it returned.
    pub end: u64,
    /// What it is called.
    pub name: &'a str,
    /// The call as strace shows it, from its name to its result, escaped.
    pub text: &'a str,
}

/// What is known about functions by their numbers.
pub trait Functions {
    /// The name that is shown; none where the number is not known.
    fn name(&self, number: u32) -> Option<&str>;
    /// The whole demangled name, where another one is shown: patterns may name either.
    fn whole_name(&self, number: u32) -> Option<&str> {
        self.name(number)
    }
    /// Its other names: patterns may name these too.
    fn aliases(&self, _number: u32) -> &[String] {
        &[]
    }
    /// The path of the file that contains the function; empty where it is not known.
    fn module(&self, number: u32) -> &str;

    /// What the arguments and the result of the function are, if they were captured.
    fn signature(&self, _number: u32) -> Option<&Signature> {
        None
    }
}

/// Shows calls while they are made, or later: steps of all threads, in the order of their times.
pub trait CallView {
    /// The values of the next step, which is an entry or an exit: its arguments, or its result, as the record has them.
    fn values(&mut self, values: &[u8]) {
        let _ = values;
    }
    /// Appends what a thread's step makes visible.
    fn step(&mut self, thread: Thread<'_>, step: Step, functions: &dyn Functions, out: &mut Vec<u8>);
    /// Appends a system call; to be called in the order of the calls' ends.
    fn system_call(&mut self, thread: Thread<'_>, call: &SystemCall<'_>, functions: &dyn Functions, out: &mut Vec<u8>) {
        let _ = (thread, call, functions, out);
    }
    /// Appends what waits for more steps: for a live view, when none have come for a moment. `now` is the time of the trace's clock.
    fn flush(&mut self, now: u64, functions: &dyn Functions, out: &mut Vec<u8>) {
        let _ = (now, functions, out);
    }
    /// The number of events that were lost, those included that steps report as missing; before [`CallView::end`], where it is known.
    fn lost(&mut self, events: u64) {
        let _ = events;
    }
    /// Ends the calls that are open, each thread's at its last step, and appends what is shown at the end.
    fn end(&mut self, functions: &dyn Functions, out: &mut Vec<u8>);
}
