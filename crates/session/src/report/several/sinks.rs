//! The views of several traces: what each is made of.

use super::groups::{Grouping, Groups, HeapGroups};
use super::set::Set;
use crate::ask::{Ask, Show};
use crate::heap::past as heap;
use crate::output::Output;
use crate::report::outputs::{follows, output_of};
use crate::report::profiles::{selected_classes, without_profile};
use crate::show::{Shown, ToOutput};
use crate::view::calls;
use crate::view::screen::{self, Clocks};
use crate::view::stacks::{self, Drawing};
use crate::view::totals::{self, command_of};
use crate::view::{self, Kind, Make, lines, pictures, stats, tables};
use crate::{profile, spans};
use ctf::trace::Trace;
use engine::pipeline::pump::Sink;
use engine::pipeline::selection::Selection;
use engine::{Error, Result};
use events::Schema;
use std::sync::Arc;
use views::advance::Advance;

/// What views are made of.
pub struct Making<'a> {
    /// The request.
    pub ask: &'a Ask,
    /// The traces.
    pub set: &'a Set,
    /// What is selected of them.
    pub selection: &'a Selection,
    /// All events are read.
    pub whole: bool,
    /// The clock that they share.
    pub clocks: Clocks,
    /// Which traces have a table together.
    pub grouping: Option<Grouping>,
    /// How far views are with what they write at the end.
    pub advance: Arc<Advance>,
}

/// Views, opened.
#[derive(Default)]
pub struct Opened {
    /// They take events.
    pub sinks: Vec<Box<dyn Sink>>,
    /// What profiles have to say at the end.
    pub told: Vec<crate::show::Told>,
}

impl Making<'_> {
    /// The kind of a view: that of the first trace that has what it shows.
    pub fn kind(&self, view: &str) -> Result<&'static Kind> {
        let heap = self.set.traces.iter().find(|trace| view::heap::has_heap(trace));
        let stacks = self.set.traces.iter().find(|trace| crate::stacks::have_any(trace.classes()));
        let spans = self.set.traces.iter().find(|trace| spans::VIEWS.contains(&view) && spans::has_any(trace));
        let Some(trace) = spans.or(heap).or(stacks).or(self.set.traces.first()) else {
            let todo = "name the DIR of 'trapline record -o DIR'";
            return Err(Error::failed("report", "none of these is a trace of trapline", todo));
        };
        view::of_trace(view, self.ask, trace)
    }

    /// Opens views of what function calls add up to; returns the others too.
    ///
    /// # Errors
    /// They are asked for by host or trace, or a file cannot be made.
    pub fn totals(&self, wanted: Vec<Show>) -> Result<(Vec<totals::Opened>, Vec<Show>)> {
        let (mut totals, mut others) = (Vec::new(), Vec::new());
        for show in wanted {
            let kind = self.kind(&show.view)?;
            follows(self.ask, kind)?;
            let Make::Totals { write, names, sorted } = kind.make else {
                others.push(show);
                continue;
            };
            if self.grouping.is_some() {
                return Err(together(kind));
            }
            let output = view::open(kind, show.file.as_deref())?.of_the_past();
            totals.push(totals::Opened { write, names, sorted, output });
        }
        Ok((totals, others))
    }

    /// Opens views that take the events of all traces.
    ///
    /// # Errors
    /// One shows one trace at a time, or its file cannot be made.
    pub fn open(&self, wanted: &[Show]) -> Result<Opened> {
        let (mut opened, mut drawings, mut of_heap) = (Opened::default(), Vec::new(), Vec::new());
        for show in wanted {
            let kind = self.kind(&show.view)?;
            let file = show.file.as_deref();
            match kind.make {
                Make::Stacks { .. } => drawings.push(Drawing::open(kind, file)?),
                Make::Heap(_) => of_heap.push(heap::drawing_of(kind, file)?),
                _ => opened.sinks.push(self.of_events(kind, show)?),
            }
        }
        self.options_without_views(&drawings, &of_heap)?;
        if !of_heap.is_empty() {
            opened.sinks.push(self.heap(of_heap)?);
        }
        if !drawings.is_empty() {
            let sinks = self.profile(drawings)?;
            opened.told.extend(sinks.told);
            opened.sinks.extend(sinks.all);
        }
        Ok(opened)
    }

    fn options_without_views(&self, drawings: &[Drawing], of_heap: &[crate::heap::Drawing]) -> Result<()> {
        if drawings.is_empty() {
            without_profile(self.ask)?;
        }
        if of_heap.is_empty() { heap::without_views(self.ask) } else { Ok(()) }
    }

    fn of_events(&self, kind: &'static Kind, show: &Show) -> Result<Box<dyn Sink>> {
        let file = show.file.as_deref();
        let output = output_of(self.ask, kind, file)?;
        let make = |output: &Output| self.shown(kind, (output, file));
        match &self.grouping {
            Some(grouping) => Ok(Box::new(Groups::new(grouping, kind, output, make)?)),
            None => Ok(Box::new(ToOutput { shown: make(&output)?, out: output })),
        }
    }

    /// A view of events.
    fn shown(&self, kind: &'static Kind, (output, file): (&Output, Option<&str>)) -> Result<Shown> {
        let (ask, clocks) = (self.ask, self.clocks);
        match kind.make {
            Make::Lines(_) => match tables::by_stack(ask, kind.name)?.or(tables::latency(ask, kind.name, output)?) {
                Some(table) => Ok(table),
                None => lines::shown(ask, output, kind, clocks),
            },
            Make::Table(make) => Ok(Shown::table(make())),
            Make::Calls { view, names, .. } => {
                let options = screen::options(ask, output, clocks)?;
                calls::shown(ask, (view, names), output, options)
            }
            Make::Trace(make) if self.grouping.is_none() => Ok(Shown::table(make(self.stats()))),
            Make::Whole { writer, names } if self.grouping.is_none() => {
                let traces: Vec<&Trace> = self.set.traces.iter().collect();
                pictures::shown(ask, (writer, names), file, (&traces, self.stats()), &self.advance)
            }
            Make::Trace(_) | Make::Whole { .. } => Err(together(kind)),
            _ => Err(alone(kind)),
        }
    }

    fn stats(&self) -> stats::Table {
        let of = |((trace, renumber), origin): ((_, events::traces::Renumber), &'_ events::traces::Origin)| {
            (trace, origin.trace.clone(), renumber.time)
        };
        let all: Vec<(&Trace, String, i64)> = self.set.parts().zip(&self.set.origins).map(of).collect();
        stats::of_traces(all.iter().map(|(trace, name, time)| (*trace, name.as_str(), *time)), self.clocks, self.whole)
    }

    fn profile(&self, drawings: Vec<Drawing>) -> Result<crate::show::Sinks> {
        if self.grouping.is_some() {
            let todo = "leave it out: --group process names the trace of each";
            return Err(Error::usage("--by", "a profile is one of all traces", todo));
        }
        let mut classes: Vec<&'static Schema> = Vec::new();
        let mut own = std::iter::once(self.selection).chain(&self.selection.others);
        for trace in &self.set.traces {
            let selection = own.next().unwrap_or(self.selection);
            let selected = selected_classes(trace, selection);
            classes.extend(
                selected
                    .into_iter()
                    .filter(|class| !classes.iter().any(|known| known.id == class.id))
                    .collect::<Vec<_>>(),
            );
        }
        let dir = self.set.traces.first().map(|trace| trace.dir.as_path()).unwrap_or_else(|| ".".as_ref());
        profile::has_selected_stacks(dir, &classes)?;
        let style = stacks::style(self.ask, self.command(), self.clocks)?;
        profile::sinks(self.ask, &classes, drawings, style, false)
    }

    fn heap(&self, drawings: Vec<crate::heap::Drawing>) -> Result<Box<dyn Sink>> {
        let with_heap: Vec<&Trace> = self.set.traces.iter().filter(|trace| view::heap::has_heap(trace)).collect();
        let Some(first) = with_heap.first() else {
            return Err(heap::without_allocations(&self.set.traces[0]));
        };
        let style = heap::style_of(self.ask, first, self.clocks)?;
        match &self.grouping {
            Some(grouping) => {
                let lost = |group| self.of_group(grouping, group).map(heap::lost).sum();
                Ok(Box::new(HeapGroups::new(grouping.clone(), drawings, &style, lost)))
            }
            None => {
                let lost = with_heap.iter().map(|trace| heap::lost(trace)).sum();
                let sinks = heap::sinks_of(drawings, style, lost).all;
                sinks.into_iter().next().ok_or_else(|| heap::without_allocations(first))
            }
        }
    }

    fn of_group<'g>(&'g self, grouping: &'g Grouping, group: usize) -> impl Iterator<Item = &'g Trace> {
        let in_group = move |(nth, _): &(usize, &Trace)| grouping.of_trace(*nth) == group;
        self.set.traces.iter().enumerate().filter(in_group).map(|(_, trace)| trace)
    }

    /// The command that was traced; of several, how many traces there are.
    fn command(&self) -> String {
        command_of(self.set.traces.iter())
    }
}

/// What is said of a view that has no table for each host or trace.
fn together(kind: &Kind) -> Error {
    let why = format!("--as {} is of all traces together", kind.name);
    Error::usage("--by", why, "leave it out, or name the traces of one host")
}

/// What is said of a view of one trace.
pub fn alone(kind: &Kind) -> Error {
    Error::usage(format!("--as {}", kind.name), "it shows one trace at a time", "name one trace")
}
