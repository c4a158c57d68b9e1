//! What function calls add up to: views that need each thread's calls only, whatever the order of the threads.

use super::contexts::Contexts;
use super::sort::Sort;
use super::totals::Totals;
use super::{Functions, Thread};

/// The function calls of a trace, or of several as one, that can be read thread by thread.
pub trait ByThread {
    /// What the calls of each function add up to.
    fn totals(&self) -> Totals;
    /// Hands over the contexts of each thread, one after the other.
    fn contexts(&self, each: &mut dyn FnMut(Thread<'_>, &Contexts));
    /// Appends the slowest calls, for a terminal.
    fn slowest(&self, out: &mut Vec<u8>);
    /// The names of the functions.
    fn functions(&self) -> &dyn Functions;
    /// Events that were lost; None where that is not known of all traces.
    fn lost(&self) -> Option<u64>;
    /// The command that was traced; of several, how many traces there are.
    fn command(&self) -> String;
}

/// How such a view is written.
#[derive(Clone, Debug)]
pub struct How {
    /// The order of functions.
    pub sort: Sort,
    /// The most rows or edges, where somebody has asked for a number.
    pub rows: Option<usize>,
    /// Rows and columns that the destination has room for.
    pub size: (usize, usize),
    /// Callers above those that they call.
    pub icicle: bool,
}

/// Appends such a view.
pub type Write = fn(&dyn ByThread, &How, &mut Vec<u8>);
