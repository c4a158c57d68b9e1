//! Kinds of rows.

/// What a row has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Kind {
    /// Calls of functions, of one depth.
    Function,
    /// System calls: `value` is the result, `subject` the file.
    Call,
    /// Times on the processor and off it, as the scheduler's switches say.
    Run,
    /// Samples.
    Sample,
    /// Signals, probes, what happens to threads.
    Mark,
    /// Allocations and releases of a process: `value` is the size, negative of a release; `subject` the index of what is released, from 1. An
    /// exec releases all: its `subject` is its own index.
    Heap,
    /// Events are missing here: `value` is how many.
    Lost,
    /// Spans of two probes: `text` is what is said of one.
    Span,
    /// Descriptors that a process has opened: `value` is how many more are open.
    Files,
    /// Who is on a processor: `subject` is the index of the thread, from 1.
    Cpu,
}

impl Kind {
    /// All, in the order of their numbers.
    pub const NAMES: [&str; 10] = ["function", "call", "run", "sample", "mark", "heap", "lost", "span", "files", "cpu"];
}
