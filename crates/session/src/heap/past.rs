//! Heaps out of recorded traces.

use super::Drawing;
use super::sink::{HeapSink, Kept, Style};
use super::{Feed, style};
use crate::ask::{Ask, Heaps, Show};
use crate::output::Output;
use crate::show::Sinks;
use crate::view::Kind;
use crate::view::heap::{has_heap, has_only_heap, probe};
use crate::view::screen::Clocks;
use crate::{complain, stacks};
use ctf::trace::{Found, Trace};
use engine::backend::recorded::Recorded;
use engine::heap::classes::{PROVIDER, Probe};
use engine::pipeline::pump::Pump;
use engine::pipeline::selection::Selection;
use engine::pipeline::source::Source;
use engine::resolver::{Origin, Resolver};
use engine::{Error, Result};
use events::{Class, Schema};
use std::path::Path;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use views::heap::{Diff, Rows};

/// Refuses a trace without events of the heap.
fn check(trace: &Trace) -> Result<()> {
    if has_heap(trace) { Ok(()) } else { Err(without_allocations(trace)) }
}

/// What is said of a trace without events of the heap.
pub fn without_allocations(trace: &Trace) -> Error {
    let todo = "record with 'trapline heap -o DIR', or with -e heap:malloc -e heap:free";
    Error::failed(trace.dir.display().to_string(), "it has no allocations", todo)
}

/// How the heap of a trace is shown.
pub fn style_of(ask: &Ask, trace: &Trace, clocks: Clocks) -> Result<Style> {
    let mut style = style(ask)?;
    let command = trace.said("command");
    let program = command.split(' ').next().unwrap_or_default();
    style.options.name = program.rsplit('/').next().unwrap_or_default().to_string();
    style.realtime_offset = clocks.realtime_offset;
    Ok(style)
}

/// What draws views of the heap of a trace, if there are any.
pub fn sinks(ask: &Ask, trace: &Trace, drawings: Vec<Drawing>, clocks: Clocks) -> Result<Option<Sinks>> {
    if drawings.is_empty() {
        return Ok(None);
    }
    Ok(Some(sinks_of(drawings, style_of(ask, trace, clocks)?, lost(trace))))
}

/// The sinks of views of a heap that lacks `lost` events.
pub fn sinks_of(drawings: Vec<Drawing>, style: Style, lost: u64) -> Sinks {
    HeapSink::new(Arc::new(Mutex::new(Feed::lacking(lost))), drawings, style).sinks()
}

/// Opens a view of the heap of a trace.
pub fn drawing(kind: &'static Kind, file: Option<&str>, trace: &Trace) -> Result<Drawing> {
    check(trace)?;
    drawing_of(kind, file)
}

/// Opens a view of a heap of the past.
///
/// # Errors
/// Its file cannot be made.
pub fn drawing_of(kind: &'static Kind, file: Option<&str>) -> Result<Drawing> {
    let drawing = Drawing::of(kind, file)?;
    Ok(Drawing { output: drawing.output.of_the_past(), ..drawing })
}

/// Refuses options of views of the heap in a report without such a view.
pub fn without_views(ask: &Ask) -> Result<()> {
    let Heaps { of, top, min_age, .. } = &ask.heap;
    let given = [("of", of.is_some()), ("top", top.is_some()), ("min-age", min_age.is_some())];
    match given.iter().find(|(_, given)| *given) {
        Some((id, _)) => Err(Error::usage(format!("--{id}"), "it is for views of the heap", "add --as leaks")),
        None => Ok(()),
    }
}

/// Events of the heap that are missing, where it is known that they are of the heap.
pub fn lost(trace: &Trace) -> u64 {
    // Records that are missing are in the streams of function records.
    let of_agent = |s: &'static Schema| s.probe().starts_with(PROVIDER) || events::functions::kind(s).is_some();
    let other = |s: &'static Schema| s.class == Class::Probe && !of_agent(s);
    let has_functions = || trace.data.function_threads().iter().any(|thread| thread.records() > 0);
    let no_calls = trace.metadata.env_str("select") == Some("none");
    if !no_calls || trace.classes().any(other) || has_functions() { 0 } else { trace.discarded() }
}

/// Warns if outstanding blocks cannot be determined, and why. `selected`: not all events of the trace are read.
pub fn tell(ask: &Ask, trace: &Trace, selected: bool) {
    if ask.quiet == 0 {
        doubts(trace, selected).iter().for_each(|line| complain(&format!("{}: {line}", trace.dir.display())));
    }
}

/// Why it is not known what is outstanding.
fn doubts(trace: &Trace, selected: bool) -> Vec<String> {
    const SO: &str = "what is outstanding cannot be known";
    let has = |of: Probe| trace.classes().any(|class| probe(class) == Some(of));
    let mut lines = Vec::new();
    for (alloc, free) in [(Probe::Malloc, Probe::Free), (Probe::Mmap, Probe::Munmap)] {
        match (has(alloc), has(free)) {
            (true, false) => lines.push(format!("{} was not recorded: {SO}", free.name())),
            (false, true) => lines.push(format!("{} was not recorded: {SO}", alloc.name())),
            _ => {}
        }
    }
    let more = trace.end.iter().flat_map(|end| &end.more);
    // `enabling SEEN DROPPED FILTERED MISSED LABEL`
    let labels: Vec<&str> = more.filter_map(|l| l.strip_prefix("enabling ")?.splitn(5, ' ').nth(4)).collect();
    let is_filtered = |label: &&&str| {
        let name = label.split(' ').next().unwrap_or_default();
        name.starts_with(PROVIDER) && name.len() < label.len() && !labels.contains(&name)
    };
    if trace.metadata.env_str("where").is_some() || labels.iter().any(|label| is_filtered(&label)) {
        lines.push(format!("only events that pass a filter were recorded: {SO}"));
    }
    if trace.end.as_ref().is_some_and(|end| end.overwritten.is_some_and(|n| n > 0)) {
        lines.push(format!("the first events were overwritten: {SO}"));
    }
    if selected {
        lines.push(format!("only some events are selected: {SO}"));
    }
    lines
}

/// The heap of a trace.
fn rows(ask: &Ask, trace: &Trace) -> Result<Rows> {
    check(trace)?;
    let feed = Arc::new(Mutex::new(Feed::lacking(lost(trace))));
    let style = style_of(ask, trace, Clocks::now())?;
    let kept = Kept::default();
    let sink = HeapSink::new(feed, Vec::new(), style).keeps(Rc::clone(&kept));
    let source = Source::new(Box::new(Recorded::new(trace, 0, u64::MAX)), None);
    let mut pump = Pump::new(source, Selection::all(), vec![Box::new(sink)]);
    pump.keep_descriptors();
    pump.resolve_stacks(Resolver::new(Origin::of_trace(&trace.dir, &trace.metadata), stacks::places(&ask.names)?));
    while !pump.turn().ended {}
    pump.end_sinks(trace.lost());
    stacks::tell(ask.quiet, &pump.stack_troubles());
    tell(ask, trace, false);
    let failed = || Error::failed(trace.dir.display().to_string(), "it could not be read to its end", "try again");
    kept.borrow_mut().take().ok_or_else(failed)
}

/// Whether this is a trace with allocations and no other stacks. A trace that cannot be opened is reported later, where it is read.
pub fn is_of_heap(ask: &Ask, dir: &Path) -> bool {
    let of = ask.heap.of.is_some();
    matches!(ctf::trace::open(dir), Ok(Found::Native(t)) if has_only_heap(&t) || of && has_heap(&t))
}

/// `trapline diff A B` of heaps: what has grown, by stack.
pub fn diff(ask: &Ask, before: &Trace, after: &Trace) -> Result<()> {
    let mut outputs = Vec::new();
    for Show { view: name, file } in &ask.show {
        if name != "text" {
            return Err(Error::usage(format!("--as {name}"), "no such view of a difference of heaps", "text"));
        }
        outputs.push(Output::view(file.as_deref())?);
    }
    if outputs.is_empty() {
        outputs.push(Output::view(None)?);
    }
    let (from, to) = (rows(ask, before)?, rows(ask, after)?);
    let options = style(ask)?.options;
    for output in outputs {
        let mut output = output.of_the_past();
        Diff { before: &from, after: &to }.write(&options, output.buffer());
        output.flush();
        output.close();
        output.take_trouble().map_or(Ok(()), Err)?;
    }
    Ok(())
}

/// Whether options select some of the events of a trace.
pub fn selects(ask: &Ask) -> bool {
    let heap = format!("{PROVIDER}*");
    let all = ask.select.expr.iter().all(|e| *e == heap);
    !all || ask.select.filter.is_some() || ask.trace.from.is_some() || ask.trace.to.is_some()
}
