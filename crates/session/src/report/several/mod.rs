//! Several traces as one: merged by the wall clock, told apart by where they come from.
//!
//! ```text
//!  A, B, PARENT ─► set: traces, names, offsets of clocks ─► Several (engine): one stream of events ─► Pump ─► views
//!                                                     └► what each has lost, named with its trace
//! ```

mod groups;
mod set;

use super::window::Window;
use super::{Outcome, Progress, damage, filter_of, needs_names, nothing, pids, tells, whole};
use crate::ask::{Ask, Show};
use crate::output::Output;
use crate::run::interrupts::Interrupts;
use crate::show::{Shown, ToOutput};
use crate::view::screen::Clocks;
use crate::view::{self, Kind, Make, lines, tables};
use crate::{complain, durations, spans, stacks};
use engine::backend::recorded::{OrderOfTraces, Part, Several};
use engine::pipeline::pump::{Pump, Sink};
use engine::pipeline::selection::Selection;
use engine::pipeline::source::Source;
use engine::resolver::{Origin as Whence, Resolver};
use engine::{Error, Result};
use events::Class;
use groups::{Grouping, Groups};
pub use set::{Named, Set, named};
use std::sync::Arc;
use views::options::Stacks;

/// Shows traces as one.
///
/// # Errors
/// They cannot be read, or not be shown so.
pub fn run(ask: &Ask, set: &Set) -> Result<u8> {
    if ask.trace.follow {
        return Err(Error::usage("--follow", "it follows one recording", "name one trace"));
    }
    let mut selection = selection_of(ask, set)?;
    let clocks = clocks_of(ask, set, &selection);
    let window = Window::parse(ask, set.begin(), clocks)?;
    let wanted = view::wanted(ask, spans::default(ask));
    let grouping = Grouping::of(ask, set)?;
    let mut sinks: Vec<Box<dyn Sink>> = Vec::new();
    for show in &wanted {
        sinks.push(sink(ask, set, show, (clocks, grouping.as_ref()))?);
    }
    let names = needs_names(ask, &selection)?;
    selection.from = window.from;
    let window = (if names { 0 } else { window.from }, window.to);
    let several = Several::new(parts(set, window), order(ask, &wanted));
    let bytes = set.traces.iter().map(|trace| trace.data.bytes()).sum();
    let progress = Progress::new(ask.quiet > 0 || has_lines(ask, &wanted), bytes, several.progress(), Arc::default());
    let mut pump = Pump::new(Source::new(Box::new(several), None), selection, sinks);
    pump.join(set.origins.clone());
    if names {
        pump.keep_descriptors();
    }
    if shows_stacks(ask, set, &wanted)? {
        for trace in &set.traces {
            pump.resolve_stacks(Resolver::new(
                Whence::of_trace(&trace.dir, &trace.metadata).on_wall_clock(),
                stacks::places(&ask.names)?,
            ));
        }
    }
    let outcome = show(ask, set, pump, &progress);
    end(ask, set, outcome)
}

/// What is selected of each trace: that of the first has those of the others.
fn selection_of(ask: &Ask, set: &Set) -> Result<Selection> {
    let mut all = Vec::new();
    for trace in &set.traces {
        let mut selection = filter_of(ask, trace)?;
        durations::of_trace(ask, trace, &selection)?;
        selection.pids = pids(ask)?;
        all.push(selection);
    }
    let others = all.split_off(1.min(all.len()));
    Ok(Selection { others, ..all.pop().unwrap_or_else(Selection::all) })
}

/// The clock that all share: the wall clock itself.
fn clocks_of(_ask: &Ask, set: &Set, selection: &Selection) -> Clocks {
    let selections = std::iter::once(selection).chain(&selection.others);
    let all: Vec<Clocks> = set.traces.iter().zip(selections).map(|(trace, of)| super::clocks_of(trace, of)).collect();
    Clocks {
        realtime_offset: 0,
        utc_offset: all.first().map_or(0, |clocks| clocks.utc_offset),
        string: all.iter().filter_map(|clocks| clocks.string).max(),
        no_strangers: all.iter().any(|clocks| clocks.no_strangers),
    }
}

/// What is read of each trace in a window of the wall clock.
fn parts(set: &Set, (from, to): (u64, u64)) -> Vec<Part<'_>> {
    let own = |time: u64, of: i64| match time {
        0 | u64::MAX => time,
        time => time.saturating_add_signed(of.saturating_neg()),
    };
    let part = |(trace, renumber): (_, events::traces::Renumber)| Part {
        trace,
        renumber,
        window: (own(from, renumber.time), own(to, renumber.time)),
    };
    set.parts().map(part).collect()
}

/// Tables of calls need no order between traces: one after the other takes less memory.
fn order(ask: &Ask, wanted: &[Show]) -> OrderOfTraces {
    let is_table = ask.table.summary_only || ask.table.latency.is_some();
    if is_table && wanted.iter().all(|show| matches!(show.view.as_str(), "text" | "json")) {
        OrderOfTraces::Traces
    } else {
        OrderOfTraces::Time
    }
}

/// Whether a terminal shows lines meanwhile.
fn has_lines(ask: &Ask, wanted: &[Show]) -> bool {
    let on_terminal = wanted.iter().any(|show| show.file.is_none()) && sys::process::is_terminal(&std::io::stdout());
    on_terminal && !ask.table.summary_only && ask.table.latency.is_none()
}

/// Whether views show stacks with names, and any trace has some.
fn shows_stacks(ask: &Ask, set: &Set, wanted: &[Show]) -> Result<bool> {
    let of_lines =
        stacks::form(&ask.format)? != Stacks::Fields && ask.table.latency.is_none() && !ask.table.summary_only;
    let any = ask.table.by.is_some() || of_lines || wanted.iter().any(|show| show.view == "open");
    Ok(any && set.traces.iter().any(|trace| stacks::have_any(trace.classes())))
}

/// The sink of a view.
fn sink(ask: &Ask, set: &Set, show: &Show, of: (Clocks, Option<&Grouping>)) -> Result<Box<dyn Sink>> {
    let (clocks, grouping) = of;
    let Some(first) = set.traces.first() else { return Err(nothing_to_show()) };
    let kind = view::of_trace(&show.view, ask, first)?;
    let output = kind.open(show.file.as_deref())?.of_the_past();
    let make = |output: &Output| shown(ask, show, kind, (output, clocks));
    match grouping {
        Some(grouping) => Ok(Box::new(Groups::new(grouping, &show.view, output, make)?)),
        None => Ok(Box::new(ToOutput { shown: make(&output)?, out: output })),
    }
}

fn nothing_to_show() -> Error {
    Error::failed("report", "none of these is a trace of trapline", "name the DIR of 'trapline record -o DIR'")
}

/// A view of events.
fn shown(ask: &Ask, show: &Show, kind: &'static Kind, (output, clocks): (&Output, Clocks)) -> Result<Shown> {
    match kind.make {
        Make::Lines(_) if show.view == "record" => Err(alone(kind)),
        Make::Lines(_) => match tables::by_stack(ask, &show.view)?.or(tables::latency(ask, &show.view, output)?) {
            Some(table) => Ok(table),
            None => lines::shown(ask, output, kind, clocks),
        },
        Make::Table(make) => Ok(Shown::table(make())),
        _ => Err(alone(kind)),
    }
}

/// What is said of a view of one trace.
fn alone(kind: &Kind) -> Error {
    Error::usage(format!("--as {}", kind.name), "it shows one trace at a time", "name one trace")
}

/// Moves all events, and ends the views.
fn show(ask: &Ask, set: &Set, mut pump: Pump<'_>, progress: &Progress) -> Outcome {
    let mut interrupts = Interrupts::watch(false);
    let mut all = false;
    while !all && !pump.is_unread() && !pump.is_to_end() {
        all = pump.turn().ended;
        progress.show();
        if interrupts.poll().is_some() {
            pump.source.stop();
        }
    }
    progress.done();
    let lost = set.traces.iter().map(ctf::trace::Trace::lost).try_fold(0u64, |n, lost| Some(n.saturating_add(lost?)));
    progress.during(&ask.show, || pump.end_sinks(lost));
    let trouble = pump.take_failures().into_iter().next();
    let unresolved = pump.stack_troubles();
    let any = |is: fn(&events::Schema) -> bool| pump.counters().any(|(s, n)| n.recorded > 0 && is(s));
    let (tells, calls) = (any(tells), any(|s| s.class == Class::Syscall));
    Outcome { all, written: pump.has_written(), tells, calls, trouble, unresolved }
}

/// Reports what each trace lacks.
fn end(ask: &Ask, set: &Set, outcome: Outcome) -> Result<u8> {
    stacks::tell(ask.quiet, &outcome.unresolved);
    let mut status = if set.lacks { whole::INCOMPLETE } else { 0 };
    for trace in &set.traces {
        status = status.max(whole::tell(ask, trace, None));
    }
    if ask.quiet == 0 && outcome.trouble.is_none() && !(outcome.written && outcome.tells) {
        set.traces.iter().take(1).for_each(|trace| {
            complain(&nothing(trace, &format!("nor in the other {} traces", set.traces.len() - 1)));
        });
    }
    outcome.trouble.map_or(Ok(()), Err)?;
    let mut first = Ok(status);
    for trace in &set.traces {
        match damage(trace, status) {
            Err(e) if first.is_ok() => first = Err(e),
            Err(e) => complain(&e.to_string()),
            Ok(_) => {}
        }
    }
    first
}
