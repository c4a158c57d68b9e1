//! Views of profiles: resolved stacks in, tables, folded lines, flame graphs, pprof, JSON and differences out.
//!
//! ```text
//! Frame ─► Stacks::frame ─┐
//! frames ─► Stacks::stack ─┼─► Stacks::add(stack, labels, weight, time) ─► Stacks ─┬► functions ─► table, live screen
//! Labels ─► Stacks::labels┘                                     (through a lens)    ├► tree ─► flame, calltree
//!                                                                                  └► folded · pprof · json
//! ```
//!
//! A distinct stack is held once, with its weight. A view reads [`Stacks`] and nothing else, as often as it wants to. Names may
//! contain any characters; each view escapes them as its format needs ([`name`]).

pub mod blocked;
pub mod calltree;
pub mod diff;
pub mod flame;
pub mod folded;
pub mod functions;
pub mod json;
pub mod lens;
pub mod name;
pub mod pprof;
pub mod stacks;
mod strings;
pub mod style;
pub mod table;
pub mod tree;
pub(crate) mod words;

use crate::row::{Form, Row};
pub use stacks::{Blocks, FrameId, LabelsId, Limits, StackId, Stacks, Tally};

/// How a view of a profile is drawn.
#[derive(Clone, Copy)]
pub(crate) struct Drawn {
    pub(crate) draw: style::Draw,
    /// It has source files and lines in it.
    pub(crate) lines: bool,
}

impl Drawn {
    const fn by(draw: style::Draw) -> Drawn {
        Drawn { draw, lines: false }
    }

    const fn with_lines(draw: style::Draw) -> Drawn {
        Drawn { draw, lines: true }
    }
}

/// The views of profiles.
pub(crate) const ROWS: &[Row<Drawn>] = &[
    Row::new("table", Form::Text, "a table of functions by their samples", Drawn::by(table::draw)),
    Row::new("calltree", Form::Text, "a tree of functions, each below its callers", Drawn::by(calltree::draw)),
    Row::new(
        "bottom-up",
        Form::Text,
        "a tree of functions, each below what it calls",
        Drawn::by(calltree::draw_bottom_up),
    ),
    Row::new("folded", Form::Data, "folded stacks", Drawn::by(folded::draw)),
    Row::new("flame", Form::Svg, "a flame graph", Drawn::by(flame::draw)),
    Row::new("pprof", Form::Binary(""), "a profile for pprof", Drawn::with_lines(pprof::draw)),
    Row::new("profile-json", Form::Data, "a profile for speedscope", Drawn::with_lines(json::draw)).short("json"),
];

/// A frame of a stack: a function, and where in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Frame<'a> {
    /// The demangled name; empty where it is not known.
    pub function: &'a str,
    /// The file that contains the code, or the module of the kernel; empty where it is not known.
    pub module: &'a str,
    /// The source file; empty where it is not known.
    pub file: &'a str,
    /// The line in the source file; 0 where it is not known.
    pub line: u32,
    /// The compiler has put the function's code into that of the next frame.
    pub inlined: bool,
    /// The unwinder has guessed it.
    pub guessed: bool,
    /// It is a function of the kernel.
    pub kernel: bool,
}

/// Who had a stack.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Labels<'a> {
    /// Process.
    pub pid: u32,
    /// Thread.
    pub tid: u32,
    /// Command name of the thread; empty where it is not known.
    pub comm: &'a str,
}

/// What a weight measures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unit {
    /// Samples, each of which stands for this many ns; 0 where that is not known.
    Samples {
        /// ns between two samples.
        period: u64,
    },
    /// Time, ns.
    Nanoseconds,
    /// Memory, bytes.
    Bytes,
    /// Events.
    #[default]
    Events,
}

impl Unit {
    /// Its name, in the plural.
    pub fn name(self) -> &'static str {
        match self {
            Unit::Samples { .. } => "samples",
            Unit::Nanoseconds => "nanoseconds",
            Unit::Bytes => "bytes",
            Unit::Events => "events",
        }
    }

    /// A weight in short, for a column: a number, a duration or a size.
    pub fn short(self, weight: u64) -> String {
        match self {
            Unit::Samples { .. } | Unit::Events => weight.to_string(),
            Unit::Nanoseconds => crate::units::duration(weight),
            Unit::Bytes => crate::units::size(weight),
        }
    }

    /// A weight with its unit, for a sentence: `1 sample`, `12.3ms`, `4.00KiB`.
    pub fn text(self, weight: u64) -> String {
        match self {
            Unit::Samples { .. } | Unit::Events => {
                let name = if weight == 1 { self.name().trim_end_matches('s') } else { self.name() };
                format!("{weight} {name}")
            }
            _ => self.short(weight),
        }
    }
}

/// What the stacks of a view are grouped by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum By {
    /// Nothing: all together.
    Nothing,
    /// The command name.
    #[default]
    Comm,
    /// The process.
    Process,
    /// The thread.
    Thread,
}

impl By {
    /// The grouping that is called `name`.
    pub fn parse(name: &str) -> Option<By> {
        Some(match name {
            "none" => By::Nothing,
            "comm" => By::Comm,
            "process" => By::Process,
            "thread" => By::Thread,
            _ => return None,
        })
    }

    /// The name of the group to which `labels` belong: `comm`, `comm-PID` or `comm-PID/TID`. None where nothing is grouped.
    pub fn group(self, labels: Labels<'_>) -> Option<String> {
        let comm = if labels.comm.is_empty() { "[unknown]" } else { labels.comm };
        match self {
            By::Nothing => None,
            By::Comm => Some(comm.to_owned()),
            By::Process => Some(format!("{comm}-{}", labels.pid)),
            By::Thread => Some(format!("{comm}-{}/{}", labels.pid, labels.tid)),
        }
    }
}

/// `part` of `whole` in percent; 0 of nothing.
fn percent(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { 100.0 * part as f64 / whole as f64 }
}
