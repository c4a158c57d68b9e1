//! All views, whatever they are made of: `--as` of every command, its help and its completions come from here.

use crate::View;
use crate::calls::{self, CallView, Demangle, Making, by_thread};
use crate::heap;
use crate::options::Options;
use crate::parquet::{About, Parquet};
use crate::profile::{self, style::Draw};
use crate::row::Row;
use crate::timeline;
use crate::trace_stats::TraceStats;
use std::sync::LazyLock;

pub use crate::row::Form;

/// A view.
pub struct Kind {
    /// Its name in `--as`.
    pub name: &'static str,
    /// Its name in the commands that have views of this sort only.
    pub short: &'static str,
    /// What it shows, in a line.
    pub help: &'static str,
    /// What it is made of.
    pub of: Of,
    /// What is written.
    pub form: Form,
    /// How it is made.
    pub make: Make,
}

/// What a view is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Of {
    /// Events, one by one.
    Events,
    /// A whole trace.
    Trace,
    /// Everything over time.
    Time,
    /// Function calls.
    Calls,
    /// Stacks and their weights.
    Stacks,
    /// Allocations.
    Heap,
}

/// How a view is made.
#[derive(Clone, Copy)]
pub enum Make {
    /// Lines of events.
    Lines(fn(Options) -> Box<dyn View + Send>),
    /// A table of events, at their end.
    Table(fn() -> Box<dyn View>),
    /// A table of all events of a trace.
    Trace(fn(TraceStats) -> Box<dyn View>),
    /// All events of a trace, with stacks and the names of files.
    Whole {
        /// What writes it, for the file that it goes to.
        writer: fn(Option<&str>) -> timeline::Writer,
        /// How functions are called where nobody has said it.
        names: Demangle,
    },
    /// All events of a trace, with stacks and the names of files, in a directory.
    Directory(fn(About, TraceStats) -> Parquet),
    /// Function calls, as they end or begin.
    Calls {
        /// Makes it.
        view: fn(Making) -> Box<dyn CallView>,
        /// How functions are called where nobody has said it.
        names: Demangle,
        /// A faster way over many calls, to a terminal.
        whole: Option<by_thread::Write>,
    },
    /// What function calls add up to: the records of a trace, thread by thread.
    Totals {
        /// Writes it.
        write: by_thread::Write,
        /// How functions are called where nobody has said it.
        names: Demangle,
        /// It has rows of functions, whose order can be chosen.
        sorted: bool,
    },
    /// A profile.
    Stacks {
        /// Draws it.
        draw: Draw,
        /// It has source files and lines in it.
        lines: bool,
    },
    /// A heap.
    Heap(heap::Write),
}

static ALL: LazyLock<Vec<Kind>> = LazyLock::new(|| {
    let events = crate::EVENTS.iter().map(|row| kind(row, Of::Events, row.make));
    let traces = crate::TRACES.iter().map(|row| kind(row, Of::Trace, row.make));
    let timelines = timeline::ROWS.iter().map(|row| {
        let timeline::Make { writer, names, is_picture } = row.make;
        kind(row, if is_picture { Of::Time } else { Of::Trace }, Make::Whole { writer, names })
    });
    let calls = calls::ROWS.iter().map(|row| kind(row, Of::Calls, of_calls(row.make)));
    let profiles = profile::ROWS.iter().map(|row| {
        let profile::Drawn { draw, lines } = row.make;
        kind(row, Of::Stacks, Make::Stacks { draw, lines })
    });
    let heaps = heap::ROWS.iter().map(|row| kind(row, Of::Heap, Make::Heap(row.make)));
    events.chain(traces).chain(timelines).chain(calls).chain(profiles).chain(heaps).collect()
});

/// All views. Several may have one name, if they are made of different things.
pub fn all() -> std::slice::Iter<'static, Kind> {
    ALL.iter()
}

fn kind<M>(row: &Row<M>, of: Of, make: Make) -> Kind {
    let Row { name, short, help, form, .. } = *row;
    Kind { name, short, help, of, form, make }
}

fn of_calls(make: calls::Make) -> Make {
    match make {
        calls::Make::View { view, names, whole } => Make::Calls { view, names, whole },
        calls::Make::Totals { write, names, sorted } => Make::Totals { write, names, sorted },
    }
}

impl Kind {
    /// Whether it can follow a recording that goes on: by lines, or by what it writes when the recording has ended. Others need to know at their
    /// beginning what the trace has.
    pub fn follows(&self) -> bool {
        matches!(self.make, Make::Lines(_) | Make::Calls { .. } | Make::Stacks { .. } | Make::Whole { .. })
    }
}
