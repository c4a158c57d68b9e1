//! The heap of programs: events of allocations in, what is outstanding, peaks, growth and totals by stack out.
//!
//! ```text
//! (process, hash) ─► Intern ─► stack ─┐
//! events ─────────────────────────────┴► Model ─┐
//! stack ─► Frames: its functions ───────────────┴► Rows ─► leaks · peak · totals · temporary · growth · profile · json · diff
//! ```
//!
//! The model knows stacks by number; a row of a view is all stacks with the same functions and lines ([`rows`]).

mod blocks;
pub mod diff;
mod ended;
pub mod growth;
mod held;
pub mod intern;
pub mod json;
pub mod leaks;
mod mappings;
pub mod model;
pub mod numbers;
pub mod peak;
mod process;
pub mod profile;
pub mod rows;
pub mod series;
pub mod temporary;
mod threads;
pub mod totals;
pub mod verdict;
mod words;

use crate::profile::lens::Lens;
use crate::row::{Form, Row};
pub use diff::Diff;
pub use intern::Intern;
pub use model::{Model, Summary};
pub use numbers::{Kind, Numbers, Sum};
pub use rows::{Frames, Rows};

/// The views of the heap.
pub(crate) const ROWS: &[Row<Write>] = &[
    Row::new("leaks", Form::Text, "what is outstanding, by stack", leaks::write),
    Row::new("peak", Form::Text, "what was outstanding at the peak", peak::write),
    Row::new("totals", Form::Text, "all allocations, by stack", totals::write),
    Row::new("temporary", Form::Text, "blocks that were freed at once", temporary::write),
    Row::new("growth", Form::Text, "memory over time", growth::write),
    Row::new("calltree", Form::Text, "a tree of functions by their memory, each below its callers", profile::calltree),
    Row::new(
        "bottom-up",
        Form::Text,
        "a tree of functions by their memory, each below what it calls",
        profile::bottom_up,
    ),
    Row::new("flame", Form::Svg, "a flame graph of memory", profile::flame),
    Row::new("pprof", Form::Binary(""), "memory for pprof", profile::pprof),
    Row::new("folded", Form::Data, "folded stacks of memory", profile::folded),
    Row::<Write>::new("heap-json", Form::Data, "one object with all numbers of the heap", json::write).short("json"),
];

/// Who has allocated or freed a block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Who {
    /// A program in a process: a number that counts up from 0.
    pub process: u32,
    /// The thread.
    pub tid: u32,
}

/// What flame graphs, pprof, folded stacks and differences are made of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Of {
    /// What is outstanding, and old enough.
    #[default]
    Outstanding,
    /// What was outstanding at the peak.
    Peak,
    /// All that was allocated.
    Total,
}

impl Of {
    /// The one that is called `name`.
    pub fn parse(name: &str) -> Option<Of> {
        [Of::Outstanding, Of::Peak, Of::Total].into_iter().find(|of| of.name() == name)
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Of::Outstanding => "outstanding",
            Of::Peak => "peak",
            Of::Total => "total",
        }
    }
}

/// Appends a view of a heap. The number is CLOCK_REALTIME minus the clock of the events, ns.
pub type Write = fn(&Rows, &Options, i64, &mut Vec<u8>);

/// How views are written.
#[derive(Clone, Debug)]
pub struct Options {
    /// What the heap is called, for instance the command.
    pub name: String,
    /// The most stacks of a text view.
    pub top: usize,
    /// What is selected where the view does not say that.
    pub of: Of,
    /// Events that were lost before they came, of whatever kind, where that is known.
    pub lost: Option<u64>,
    /// What of stacks is shown in flame, pprof, folded and trees.
    pub lens: Lens,
    /// Nodes of trees that weigh less, in thousandths of the whole, are not shown.
    pub least: u64,
}

impl Default for Options {
    fn default() -> Options {
        Options { name: String::new(), top: 20, of: Of::default(), lost: None, lens: Lens::default(), least: 5 }
    }
}
