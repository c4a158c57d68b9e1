//! Views of function calls: entries and exits of functions in, trees, tables and graphs out.
//!
//! ```text
//! Step ─► stack::Stack ─► stack::Calls ─┬► tree · cat · json                 a line for each call; also `crate::timeline`
//!         calls of a      (selection    ├► totals ─► functions · stat        a row for each function
//!         thread           between)     └► contexts ─► brief · profile (flame, folded) · edges (dot, mermaid)
//! ```
//!
//! A [`Step`] is what a thread has recorded: a time and the number of a function that it has entered or left. Records can be missing, so
//! a stack assumes as little as possible and counts what it assumes ([`stack::Counts`]). Names are asked for when something is shown
//! ([`Functions`]); they may contain any characters, and each view escapes them as its format needs.
//!
//! A view that implements [`CallView`] takes the steps of all threads in the order of their times. The others take the steps of one thread
//! after another.

pub mod brief;
pub mod by_function;
pub mod by_thread;
pub mod cat;
pub mod contexts;
pub mod counted;
pub mod diff;
pub mod edges;
pub mod functions;
mod input;
pub mod json;
pub(crate) mod label;
mod making;
pub(crate) mod pattern;
pub mod profile;
pub mod runs;
pub mod selection;
pub mod short;
pub mod sort;
pub mod stack;
pub mod stat;
mod threads;
pub mod totals;
pub mod totals_json;
pub mod tree;

use crate::row::{Form, Row};
pub use input::{CallView, Functions, Step, SystemCall, Thread, What};
use making::Demangle::{Plain, Simple};
pub use making::{Demangle, Making};
pub use selection::Selection;

/// How a view of function calls is made.
#[derive(Clone, Copy)]
pub(crate) enum Make {
    /// From calls as they end or begin; `whole`, if there is one, is a faster way over many calls, to a terminal.
    View { view: fn(Making) -> Box<dyn CallView>, names: Demangle, whole: Option<by_thread::Write> },
    /// From sums of calls; `sorted`: the rows are functions, and `-S` orders them.
    Totals { write: by_thread::Write, names: Demangle, sorted: bool },
}

impl Make {
    const fn view(names: Demangle, view: fn(Making) -> Box<dyn CallView>) -> Make {
        Make::View { view, names, whole: None }
    }

    const fn totals(names: Demangle, write: by_thread::Write) -> Make {
        Make::Totals { write, names, sorted: false }
    }

    const fn sorted(names: Demangle, write: by_thread::Write) -> Make {
        Make::Totals { write, names, sorted: true }
    }
}

/// The views of function calls.
pub(crate) const ROWS: &[Row<Make>] = &[
    Row::new(
        "tree",
        Form::Text,
        "calls below their callers; on a terminal the slowest",
        Make::View { view: brief::open, names: Simple, whole: Some(brief::show) },
    ),
    Row::new("cat", Form::Text, "a line for each entry and each exit", Make::view(Simple, cat::open)),
    Row::new("functions", Form::Text, "a table of functions", Make::sorted(Simple, functions::show)),
    Row::new("stat", Form::Text, "a table of functions with fixed units", Make::totals(Simple, stat::show)),
    Row::new("callgraph", Form::Data, "who calls whom, in the language of dot", Make::totals(Simple, edges::dot)),
    Row::new("mermaid", Form::Data, "who calls whom, in the language of Mermaid", Make::totals(Simple, edges::mermaid)),
    Row::new("flame", Form::Svg, "a flame graph of the time in functions", Make::totals(Plain, profile::flame)),
    Row::new("folded", Form::Data, "folded stacks of the time in functions", Make::totals(Plain, profile::folded)),
    Row::new("calls-json", Form::Data, "an object for each call", Make::view(Plain, json::open)),
    Row::new("functions-json", Form::Data, "an object for each function", Make::sorted(Plain, totals_json::show)),
];
