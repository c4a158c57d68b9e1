//! Several traces as one: merged by the wall clock, distinguished by their origin.
//!
//! ```text
//!  A, B, PARENT ─► set: traces, names, offsets of clocks ─► Several (engine): one stream of events ─► Pump ─► views
//!                                                     └► what each has lost, named with its trace
//! ```

mod groups;
mod set;
mod sinks;

use super::outputs::follows;
use super::window::Window;
use super::{Outcome, Progress, asked_of, damage, filter_of, needs_names, nothing, pids, tells, whole, write_totals};
use crate::ask::{Ask, Show};
use crate::run::interrupts::Interrupts;
use crate::show::Told;
use crate::view::screen::Clocks;
use crate::view::{self, Make};
use crate::{complain, durations, script_text, spans, stacks};
use ctf::trace::Trace;
use engine::Result;
use engine::backend::recorded::{self, Followed, FollowingSeveral, OrderOfTraces, Part, Several};
use engine::pipeline::backend::Backend;
use engine::pipeline::pump::{Pump, Sink};
use engine::pipeline::selection::Selection;
use engine::pipeline::source::Source;
use engine::resolver::{Origin as Whence, Resolver};
use events::Class;
use groups::Grouping;
pub use set::{Named, Set, named};
use sinks::{Making, Opened};
use std::sync::Arc;
use views::options::Stacks;

/// Shows traces as one.
///
/// # Errors
/// They cannot be read, or not be shown so.
pub fn run(ask: &Ask, set: &Set) -> Result<u8> {
    let mut selection = selection_of(ask, set)?;
    let clocks = clocks_of(set, &selection);
    let window = Window::parse(ask, set.begin(), clocks)?;
    let whole = window == Window::ALL && std::iter::once(&selection).chain(&selection.others).all(Selection::is_all);
    let advance = Arc::default();
    let grouping = Grouping::of(ask, set);
    let making = Making { ask, set, selection: &selection, whole, clocks, grouping, advance: Arc::clone(&advance) };
    let (apart, wanted) = apart(&making, view::wanted(ask, spans::default(ask)))?;
    let (of_calls, wanted) = making.totals(wanted)?;
    let (has_totals, is_all) = (!of_calls.is_empty(), wanted.is_empty());
    let opened = if is_all { Opened::default() } else { making.open(&wanted)? };
    let status = one_by_one(ask, set, apart, is_all && !has_totals)?;
    write_totals(ask, of_calls, || {
        let parts = parts(set, (window.from, window.to)).into_iter();
        Ok((parts.map(|part| (part.trace, part.window.0..=part.window.1)), asked_of(ask, &selection)?))
    })?;
    if is_all {
        return if has_totals { end(ask, set, Outcome::of_records()) } else { Ok(status) };
    }
    let needs_all =
        |show: &Show| matches!(making.kind(&show.view).map(|kind| &kind.make), Ok(Make::Whole { .. } | Make::Heap(_)));
    let names = needs_names(ask, &selection)? || wanted.iter().any(needs_all);
    let has_text = !ask.table.summary_only && wanted.first().is_some_and(|show| show.view == "text");
    let stacks = shows_stacks(&making, &wanted)?;
    let names = names || stacks;
    selection.from = window.from;
    let window = (if names { 0 } else { window.from }, window.to);
    let (backend, read) = backend_of(ask, parts(set, window), order(ask, &wanted));
    let bytes = set.traces.iter().map(|trace| trace.data.bytes()).sum();
    let quiet = ask.quiet > 0 || ask.trace.follow || has_lines(ask, &wanted);
    let progress = Progress::new(quiet, bytes, read, advance);
    let mut pump = Pump::new(Source::new(backend, None), selection, opened.sinks);
    if names {
        pump.keep_descriptors();
    }
    name(ask, set, &mut pump, stacks)?;
    let outcome = show(ask, set, pump, (&progress, opened.told));
    if has_text {
        without_scripts(ask, set);
    }
    end(ask, set, outcome)
}

/// Tells the pump the origins of events and, with `stacks`, the names of functions.
fn name(ask: &Ask, set: &Set, pump: &mut Pump<'_>, stacks: bool) -> Result<()> {
    pump.join(set.origins.clone());
    for trace in set.traces.iter().filter(|_| stacks) {
        let whence = Whence::of_trace(&trace.dir, &trace.metadata).on_wall_clock();
        pump.resolve_stacks(Resolver::new(whence, stacks::places(&ask.names)?));
    }
    Ok(())
}

/// What is selected of traces for a script, and the clock that all share.
///
/// # Errors
/// The request selects something that does not exist.
pub fn selected(ask: &Ask, set: &Set) -> Result<(Selection, Clocks)> {
    let mut selection = selection_of(ask, set)?;
    let clocks = clocks_of(set, &selection);
    selection.lives = true;
    selection.others.iter_mut().for_each(|of| of.lives = true);
    Ok((selection, clocks))
}

/// Gives the events of traces to a sink, in one order of time, with all names.
///
/// # Errors
/// A trace cannot be read, or the sink has failed.
pub fn through(ask: &Ask, set: &Set, (selection, clocks): (Selection, Clocks), sink: Box<dyn Sink>) -> Result<u8> {
    let window = Window::parse(ask, set.begin(), clocks)?;
    let selection = Selection { from: window.from, ..selection };
    let (backend, read) = backend_of(ask, parts(set, (0, window.to)), OrderOfTraces::Time);
    let progress = Progress::new(true, 0, read, Arc::default());
    let mut pump = Pump::new(Source::new(backend, None), selection, vec![sink]);
    pump.keep_descriptors();
    name(ask, set, &mut pump, true)?;
    let outcome = show(ask, set, pump, (&progress, Vec::new()));
    lacking(ask, set, outcome)
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
fn clocks_of(set: &Set, selection: &Selection) -> Clocks {
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

/// What reads the traces, and how far it is.
fn backend_of<'t>(
    ask: &Ask,
    parts: Vec<Part<'t>>,
    order: OrderOfTraces,
) -> (Box<dyn Backend + 't>, Arc<recorded::Progress>) {
    if ask.trace.follow {
        let following = FollowingSeveral::new(parts.iter().map(Followed::new).collect());
        let read = following.progress();
        return (Box::new(following), read);
    }
    let several = Several::new(parts, order);
    let read = several.progress();
    (Box::new(several), read)
}

/// The traces of recordings that were followed, as they are now.
fn reopened(ask: &Ask, set: &Set) -> Result<Option<Vec<Trace>>> {
    let now = || set.traces.iter().map(|trace| super::reopened(&trace.dir).map(|trace| *trace)).collect();
    ask.trace.follow.then(now).transpose()
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
fn shows_stacks(making: &Making<'_>, wanted: &[Show]) -> Result<bool> {
    let ask = making.ask;
    let is_text = ask.table.latency.is_none() && !ask.table.summary_only;
    let of_lines = stacks::form(&ask.format)? != Stacks::Fields && is_text;
    let shows = |show: &Show| match making.kind(&show.view).map(|kind| &kind.make) {
        Ok(Make::Lines(_)) => of_lines || ask.table.by.is_some(),
        Ok(Make::Trace(_) | Make::Calls { .. }) | Err(_) => false,
        Ok(_) => true,
    };
    // What is still being recorded may get probes with stacks.
    let may = |trace: &Trace| ask.trace.follow || stacks::have_any(trace.classes()) || view::heap::has_heap(trace);
    let any = || making.set.traces.iter().any(may);
    Ok(wanted.iter().any(shows) && any())
}

/// Views that are made of one trace after the other, and the others.
fn apart(making: &Making<'_>, wanted: Vec<Show>) -> Result<(Vec<Show>, Vec<Show>)> {
    let (mut apart, mut joined) = (Vec::new(), Vec::new());
    for show in wanted {
        let kind = making.kind(&show.view)?;
        follows(making.ask, kind)?;
        let is_apart = matches!(kind.make, Make::Directory(_));
        if is_apart { apart.push(show) } else { joined.push(show) }
    }
    Ok((apart, joined))
}

/// Shows one trace after the other in views that have a part for each.
fn one_by_one(ask: &Ask, set: &Set, shows: Vec<Show>, tells: bool) -> Result<u8> {
    let mut status = if set.lacks { whole::INCOMPLETE } else { 0 };
    if shows.is_empty() {
        return Ok(status);
    }
    let quiet = if tells { ask.quiet } else { ask.quiet.max(1) };
    let ask = Ask { show: shows, quiet, ..ask.clone() };
    for trace in &set.traces {
        status = status.max(super::native(&ask, trace, &|_, _| None)?);
    }
    Ok(status)
}

/// Moves all events, and ends the views.
fn show(ask: &Ask, set: &Set, mut pump: Pump<'_>, (progress, told): (&Progress, Vec<Told>)) -> Outcome {
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
    let lost = |traces: &[Trace]| traces.iter().try_fold(0u64, |n, trace| Some(n.saturating_add(trace.lost()?)));
    // Of recordings that were followed, what was lost is known at their end.
    let lost = match reopened(ask, set) {
        Ok(now) => lost(now.as_ref().unwrap_or(&set.traces)),
        Err(_) => None,
    };
    progress.during(&ask.show, || pump.end_sinks(lost));
    if ask.quiet == 0 {
        told.iter().flat_map(|told| told().0).chain(progress.left_out()).for_each(|line| complain(&line));
    }
    let trouble = pump.take_failures().into_iter().next();
    let unresolved = pump.stack_troubles();
    let any = |is: fn(&events::Schema) -> bool| pump.counters().any(|(s, n)| n.recorded > 0 && is(s));
    let (tells, calls) = (any(tells), any(|s| s.class == Class::Syscall));
    Outcome { all, written: pump.has_written(), tells, calls, trouble, unresolved }
}

/// Says that lines of the traces' scripts are not there: a script has the times, threads and maps of its own session.
fn without_scripts(ask: &Ask, set: &Set) {
    let with_script = set.traces.iter().filter(|trace| trace.metadata.env_str(script_text::TEXT).is_some()).count();
    if with_script > 0 && ask.quiet == 0 && !ask.script.none {
        complain(&format!(
            "lines of scripts are left out: {with_script} of the traces have one of their own ('report TRACE' prints them)"
        ));
    }
}

/// Reports what each trace lacks, and that nothing is shown of any.
fn end(ask: &Ask, set: &Set, outcome: Outcome) -> Result<u8> {
    stacks::tell(ask.quiet, &outcome.unresolved);
    if ask.quiet == 0 && outcome.trouble.is_none() && !(outcome.written && outcome.tells) {
        set.traces.iter().take(1).for_each(|trace| {
            complain(&nothing(trace, &format!("nor in the other {} traces", set.traces.len() - 1)));
        });
    }
    lacking(ask, set, outcome)
}

/// Reports what each trace lacks.
fn lacking(ask: &Ask, set: &Set, outcome: Outcome) -> Result<u8> {
    let now = reopened(ask, set)?;
    let traces = now.as_ref().unwrap_or(&set.traces);
    let mut status = if set.lacks { whole::INCOMPLETE } else { 0 };
    for trace in traces {
        status = status.max(whole::tell(ask, trace, None));
    }
    outcome.trouble.map_or(Ok(()), Err)?;
    let mut first = Ok(status);
    for trace in traces {
        match damage(trace, status) {
            Err(e) if first.is_ok() => first = Err(e),
            Err(e) => complain(&e.to_string()),
            Ok(_) => {}
        }
    }
    first
}
