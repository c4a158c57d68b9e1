//! The views of a report, by how they are made: from events in order, from records of threads, from stacks.

use super::progress;
use super::selected::selected_functions;
use crate::ask::{Ask, Show};
use crate::heap::past as heap;
use crate::output::Output;
use crate::show::{Shown, Views};
use crate::view::calls;
use crate::view::parquet::{self, Making};
use crate::view::screen::{self, Clocks};
use crate::view::stacks::Drawing;
use crate::view::totals::{self, Asked};
use crate::view::{self, Kind, Make, lines, pictures, stats, tables};
use ctf::trace::Trace;
use engine::pipeline::pump::Sink;
use engine::pipeline::selection::Selection;
use engine::{Error, Result};
use std::ops::RangeInclusive;
use std::path::Path;
use std::sync::Arc;
use views::View;
use views::advance::Advance;
use views::options::Options;

/// The views of a report, opened.
#[derive(Default)]
pub(super) struct Outputs {
    /// Lines, and tables of events.
    pub(super) views: Views,
    /// Directories of files.
    pub(super) directories: Vec<Box<dyn Sink>>,
    /// How the last lines are made.
    pub(super) lines: Option<fn(Options) -> Box<dyn View + Send>>,
    /// What function calls add up to, and how functions are called there.
    pub(super) totals: Vec<totals::Opened>,
    /// Profiles.
    pub(super) drawings: Vec<Drawing>,
    /// Heaps.
    pub(super) heap: Vec<crate::heap::Drawing>,
    /// How far they are with what they write at the end.
    pub(super) advance: Arc<Advance>,
}

/// Refuses a view that needs the end of a recording, where recordings are followed.
///
/// # Errors
/// It is one.
pub(super) fn follows(ask: &Ask, kind: &Kind) -> Result<()> {
    if ask.trace.follow && !kind.follows() {
        let todo = "leave out --follow, to see what is written so far";
        return Err(Error::usage(format!("--as {}", kind.name), "does not follow a recording", todo));
    }
    Ok(())
}

/// Opens where a view goes: lines of a recording that is followed are there at once.
///
/// # Errors
/// The file cannot be made, or a terminal would get what it cannot show.
pub(super) fn output_of(ask: &Ask, kind: &Kind, file: Option<&str>) -> Result<Output> {
    let opened = if ask.trace.follow { view::open_live(kind, file) } else { view::open(kind, file) };
    opened.map(Output::of_the_past)
}

impl Outputs {
    /// Opens a view.
    pub(super) fn open(&mut self, show: &Show, ask: &Ask, trace: &Trace, of: (Clocks, bool)) -> Result<()> {
        let ((clocks, whole), file) = (of, show.file.as_deref());
        let kind = view::of_trace(&show.view, ask, trace)?;
        follows(ask, kind)?;
        let open = || output_of(ask, kind, file);
        match kind.make {
            Make::Totals { write, names, sorted } => {
                self.totals.push(totals::Opened { write, names, sorted, output: open()? })
            }
            Make::Heap(_) => self.heap.push(heap::drawing(kind, file, trace)?),
            Make::Stacks { .. } => self.drawings.push(Drawing::open(kind, file)?),
            Make::Whole { writer, names } => {
                let of = (&[trace][..], stats::of_trace(trace, clocks, whole));
                let shown = pictures::shown(ask, (writer, names), file, of, &self.advance)?;
                self.views.push((shown, open()?));
            }
            Make::Directory(make) => {
                view::check(kind, file)?;
                let stats = stats::of_trace(trace, clocks, whole);
                let dir = Path::new(file.unwrap_or_default());
                self.directories.push(parquet::open(Making { make, trace, clocks, stats, dir })?);
            }
            Make::Trace(make) => self.views.push((Shown::table(make(stats::of_trace(trace, clocks, whole))), open()?)),
            Make::Calls { view, names, whole } => {
                let output = open()?;
                let is_fast = || file.is_none() && output.is_terminal() && is_fast(ask, trace);
                if let Some(write) = whole.filter(|_| is_fast()) {
                    self.totals.push(totals::Opened { write, names, sorted: false, output });
                    return Ok(());
                }
                let options = screen::options(ask, &output, clocks)?;
                self.views.push((calls::shown(ask, (view, names), &output, options)?, output));
            }
            Make::Table(make) => self.views.push((Shown::table(make()), open()?)),
            Make::Lines(make) => {
                let output = open()?;
                self.lines = Some(make);
                let shown = match tables::by_stack(ask, &show.view)?.or(tables::latency(ask, &show.view, &output)?) {
                    Some(table) => table,
                    None => lines::shown(ask, &output, kind, clocks)?,
                };
                self.views.push((shown, output));
            }
        }
        Ok(())
    }
}

/// Whether a terminal gets the slowest function calls alone, because the trace has too many to show, and no system calls between them.
pub(super) fn is_fast(ask: &Ask, trace: &Trace) -> bool {
    !ask.trace.follow && !ask.calls.syscalls && totals::has_many(trace) && selected_functions(ask).is_ok()
}

/// The requested function calls.
pub(super) fn asked_of(ask: &Ask, selection: &Selection) -> Result<Asked> {
    Ok(Asked { pids: selection.pids.clone(), wanted: selected_functions(ask)?, selection: calls::selection(ask)? })
}

/// Writes what function calls add up to: those of traces, each in its window of time.
pub(super) fn write_totals<'t, T: Iterator<Item = (&'t Trace, RangeInclusive<u64>)>>(
    ask: &Ask,
    views: Vec<totals::Opened>,
    asked: impl Fn() -> Result<(T, Asked)>,
) -> Result<()> {
    for opened in views {
        let quiet = ask.quiet > 0 || opened.output.is_terminal();
        progress::of_work(quiet, || {
            let (traces, asked) = asked()?;
            let calls = totals::Calls::new(traces, asked, calls::demangle(ask, opened.names))?;
            opened.write(&calls, ask)
        })?;
    }
    Ok(())
}

/// Whether a view is made of whole events, whose stacks it shows whatever the lines of others show.
pub(super) fn is_table(show: &Show, ask: &Ask, trace: &Trace) -> bool {
    let kind = view::of_trace(&show.view, ask, trace);
    kind.is_ok_and(|kind| matches!(kind.make, Make::Table(_) | Make::Whole { .. } | Make::Directory(_)))
}
