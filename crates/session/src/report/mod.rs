//! `trapline report`: any view of a trace, later, elsewhere.

mod foreign;
mod profiles;
mod progress;
pub mod several;
mod trouble;
mod untraced;
pub mod whole;
mod window;

use crate::ask::{Ask, Select, Show};
use crate::complain;
use crate::durations;
use crate::filter;
use crate::heap::past as heap;
use crate::manner::Manner;
use crate::output::Output;
use crate::redact;
use crate::run::interrupts::Interrupts;
use crate::show::{Shown, Sinks, ToOutput, Views};
use crate::spans;
use crate::stacks;
use crate::view::calls::{self, Demangle};
use crate::view::known::Known;
use crate::view::parquet::Making;
use crate::view::screen::{self, Clocks};
use crate::view::stacks::Drawing;
use crate::view::totals::{self, Asked, Calls as FunctionCalls};
use crate::view::{self, Make, lines, stats, tables};
use ctf::folder::{Folder, reason};
use ctf::trace::{Found, Trace};
use engine::backend::recorded::{Following, Recorded};
use engine::pipeline::backend::Backend;
use engine::pipeline::filter::EventFilter;
use engine::pipeline::functions::shown_name;
use engine::pipeline::parallel::{self, Lines};
use engine::pipeline::pump::{Flow, Pump, Sink};
use engine::pipeline::selection::Selection;
use engine::pipeline::source::Source;
use engine::request::expression::Expression;
use engine::request::functions::Functions;
use engine::request::parse;
use engine::request::select::Calls;
use engine::request::select::for_descriptors;
use engine::resolver::{Origin, Resolver};
use engine::{Error, Result};
use events::functions::Table;
use events::{Class, Event, Schema};
use profiles::{profile_of, without_profile};
use progress::Progress;
use std::io;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use trouble::{remedy, unreadable};
use views::View;
use views::advance::Advance;
use views::options::{FdNames, Options, Stacks};
use views::timeline::Timeline;
use window::Window;

/// What shows something beside the lines of text.
pub type Beside = Box<dyn FnOnce(ToOutput) -> Box<dyn Sink>>;

/// Runs the command.
pub fn run(ask: &Ask) -> Result<u8> {
    run_with(ask, &|_, _| None)
}

/// Runs the command; `beside` says what is shown beside the lines of text.
///
/// # Errors
/// The trace cannot be read, or not be shown so.
pub fn run_with(ask: &Ask, beside: &dyn Fn(&Trace, Clocks) -> Option<Beside>) -> Result<u8> {
    let Some(dir) = ask.trace.dir.clone() else {
        return Err(Error::usage("report", "no trace is named", "trapline report DIR, of 'trapline record -o DIR'"));
    };
    // A limited trace has many files, which are all open at once.
    let _ = sys::process::raise_file_limit();
    let rules = redact::rules(ask)?;
    if !ask.trace.more.is_empty() || !ask.trace.clock_offset.is_empty() {
        let dirs: Vec<PathBuf> = std::iter::once(&dir).chain(&ask.trace.more).cloned().collect();
        return several::run(ask, &several::Set::open(ask, several::named(&dirs)?, rules)?);
    }
    let (dir, is_parent) = the_trace(dir)?;
    if is_parent {
        let set = several::Set::open(ask, several::named(std::slice::from_ref(&dir))?, rules)?;
        return if set.traces.is_empty() { foreign::run(ask, &dir) } else { several::run(ask, &set) };
    }
    if ask.table.by.as_ref().is_some_and(|by| view::is_of_traces(by)) {
        return several::run(ask, &several::Set::open(ask, several::named(&[dir])?, rules)?);
    }
    match ctf::trace::open(&dir).map_err(|e| unreadable(&dir, &e))? {
        Found::Native(trace) => native(ask, &Trace { rules, ..*trace }, beside),
        Found::Foreign => foreign::run(ask, &dir),
    }
}

/// A trace of trapline, for a script.
///
/// # Errors
/// It cannot be read, or is none of trapline's own.
pub fn open(dir: PathBuf) -> Result<Trace> {
    let _ = sys::process::raise_file_limit();
    let foreign = |dir: &Path| {
        let todo = "'trapline report DIR' shows it";
        Error::failed(dir.display().to_string(), "scripts read traces of trapline only", todo)
    };
    let (dir, several) = the_trace(dir)?;
    if several {
        return Err(foreign(&dir));
    }
    match ctf::trace::open(&dir).map_err(|e| unreadable(&dir, &e))? {
        Found::Native(trace) => Ok(*trace),
        Found::Foreign => Err(foreign(&dir)),
    }
}

/// What is selected of a trace, and its clocks.
pub fn selected_of(ask: &Ask, trace: &Trace) -> Result<(Selection, Clocks)> {
    let mut selection = filter_of(ask, trace)?;
    selection.pids = pids(ask)?;
    selection.lives = true;
    let clocks = clocks_of(trace, &selection);
    Ok((selection, clocks))
}

/// Gives the events of a trace to a sink, in their order, with all names.
pub fn through(ask: &Ask, trace: &Trace, selection: Selection, clocks: Clocks, sink: Box<dyn Sink>) -> Result<u8> {
    let window = Window::parse(ask, trace.data.span().map_or(0, |s| s.0), clocks)?;
    let selection = Selection { from: window.from, ..selection };
    let recorded = Recorded::new(trace, 0, window.to);
    let progress = Progress::new(true, trace.data.bytes(), recorded.progress(), Arc::default());
    let source = Source::new(Box::new(recorded), None);
    let resolver = Resolver::new(Origin::of_trace(&trace.dir, &trace.metadata), stacks::places(&ask.names)?);
    let sinks = Sinks { all: vec![sink], places: Vec::new(), told: None, lines: false };
    let interrupts = Some(Interrupts::watch(false));
    let (shown, _) = in_order(ask, (trace, source), selection, (true, Some(resolver)), sinks, &progress, interrupts);
    if let Some(trouble) = shown.trouble {
        return Err(trouble);
    }
    damage(trace, whole::tell(ask, trace, None))
}

/// The directory that is meant, and whether it is one of LTTng with several traces, which belong together. A flight recorder's holds
/// snapshots, of which one is meant.
fn the_trace(dir: PathBuf) -> Result<(PathBuf, bool)> {
    let failed = |why: String, todo: &str| Error::failed(dir.display().to_string(), why, todo);
    let cannot = |e: io::Error| match e.kind() {
        io::ErrorKind::NotFound => failed("no such directory".into(), remedy(&e)),
        _ => failed(reason(&e), remedy(&e)),
    };
    let folder = Folder::open(&dir).map_err(cannot)?;
    match folder.metadata("metadata") {
        Ok(_) => return Ok((dir, false)),
        Err(e) if e.kind() == io::ErrorKind::NotFound => {}
        Err(e) => return Err(cannot(e)),
    }
    if ctf::trace::is_being_written(&dir) {
        return Err(failed("the recording has just begun".into(), "nothing is written yet: try again"));
    }
    let found = ctf::generic::find(&dir).unwrap_or_default();
    let snapshots: Vec<_> =
        found.iter().filter(|p| p.file_name().is_some_and(|n| n.to_string_lossy().starts_with("snapshot-"))).collect();
    match snapshots.as_slice() {
        [] if found.is_empty() => {
            Err(failed("not a trace: it has no metadata".into(), "name the DIR of 'trapline record -o DIR'"))
        }
        [] => Ok((dir, true)),
        [one] => Ok(((*one).clone(), false)),
        [first, ..] => Err(failed(
            format!("it holds {} snapshots", snapshots.len()),
            &format!("name one, for instance {}", first.display()),
        )),
    }
}

fn native(ask: &Ask, trace: &Trace, beside: &dyn Fn(&Trace, Clocks) -> Option<Beside>) -> Result<u8> {
    let mut selection = filter_of(ask, trace)?;
    durations::of_trace(ask, trace, &selection)?;
    selection.pids = pids(ask)?;
    let clocks = clocks_of(trace, &selection);
    let window = Window::parse(ask, trace.data.span().map_or(0, |s| s.0), clocks)?;
    let whole = selection.is_all() && window == Window::ALL;
    let follow = ask.trace.follow;
    let wanted = view::wanted(ask, spans::default(ask));
    let mut outputs = Outputs::default();
    for show in &wanted {
        outputs.open(show, ask, trace, (clocks, whole))?;
    }
    let Outputs { views: mut opened, directories, lines, totals, drawings, heap, advance } = outputs;
    let no_views = opened.is_empty() && directories.is_empty() && drawings.is_empty() && heap.is_empty();
    let only_totals = !totals.is_empty() && no_views;
    if drawings.is_empty() && !only_totals {
        without_profile(ask)?;
    }
    if heap.is_empty() {
        crate::heap::past::without_views(ask)?;
    }
    write_totals(ask, totals, || Ok(([(trace, window.from..=window.to)].into_iter(), asked_of(ask, &selection)?)))?;
    if only_totals {
        unnamed(ask, trace).iter().filter(|_| ask.quiet == 0).for_each(|why| complain(&nothing(trace, why)));
        return damage(trace, whole::tell(ask, trace, None));
    }
    let profile = profile_of(ask, trace, &selection, drawings, clocks)?;
    let heap = heap::sinks(ask, trace, heap, clocks)?;
    let is_text =
        wanted.first().is_some_and(|show| show.view == "text") && !ask.table.summary_only && !opened.is_empty();
    let beside = if is_text && opened[0].0.has_lines() { beside(trace, clocks) } else { None };
    let resolver = match beside {
        Some(_) => Some(Resolver::new(Origin::of_trace(&trace.dir, &trace.metadata), stacks::places(&ask.names)?)),
        None => resolver(ask, trace, &selection, &wanted)?,
    };
    let has_heap = heap.is_some();
    let names = needs_names(ask, &selection)?
        || resolver.is_some()
        || has_heap
        || wanted.iter().any(|show| is_whole(show, ask, trace));
    // Names come from what was before the window.
    let from = if names { 0 } else { window.from };
    selection.from = window.from;
    let (backend, read): (Box<dyn Backend>, _) = if follow {
        let following = Following::new(trace.dir.clone(), from, window.to);
        let read = following.progress();
        (Box::new(following), read)
    } else {
        let recorded = Recorded::new(trace, from, window.to);
        let read = recorded.progress();
        (Box::new(recorded), read)
    };
    // A bar would be among the lines that a terminal shows meanwhile.
    let has_lines = opened.iter().any(|(view, output)| output.is_terminal() && view.has_lines());
    let quiet = ask.quiet > 0 || follow || has_lines;
    let progress = Progress::new(quiet, trace.data.bytes(), read, advance);
    let source = Source::new(backend, None);
    // Lines alone are made on all processors.
    let alone = directories.is_empty() && matches!(&opened[..], [(view, _)] if view.is_lines_only());
    let is_plain = trace.rules.is_none();
    let lines = lines
        .filter(|_| is_plain && alone && !names && !follow && !ask.format.depends_on_others() && !clocks.no_strangers);
    let (shown, selection) = match (opened.pop(), lines) {
        (Some((_, output)), Some(make)) => {
            let options = screen::options(ask, &output, clocks)?;
            let make = || make(options.clone());
            // Types of functions' values, where there are any.
            let has_values = trace.classes().any(|c| c.name == events::values::CLASS);
            let functions = if has_values { trace.functions(shown_name) } else { Table::default() };
            (in_parallel((trace, source), &selection, &functions, make, output, &progress)?, selection)
        }
        (last, _) => {
            opened.extend(last);
            let (has_views, has_directories) = (!opened.is_empty(), !directories.is_empty());
            let interrupts = follow.then(|| Interrupts::watch(false));
            let first = if beside.is_some() { Some(opened.remove(0)) } else { None };
            let mut sinks = Sinks::from(opened);
            sinks.lines |= !directories.is_empty();
            sinks.all.extend(directories);
            if let (Some(beside), Some((shown, out))) = (beside, first) {
                sinks.all.insert(0, beside(ToOutput { shown, out }));
            }
            if let Some(heap) = heap {
                sinks.lines = true;
                sinks.all.extend(heap.all);
            }
            if let Some(profile) = profile {
                sinks.lines = has_views || has_directories || has_heap || profile.lines;
                sinks.all.extend(profile.all);
                sinks.told = profile.told;
            }
            in_order(ask, (trace, source), selection, (names, resolver), sinks, &progress, interrupts)
        }
    };
    progress.done();
    stacks::tell(ask.quiet, &shown.unresolved);
    let read = shown.all.then(|| progress.events());
    if has_heap {
        heap::tell(ask, trace, heap::selects(ask));
    }
    // Names need what was before the window.
    let all = window.to == u64::MAX && (names || window.from == 0);
    // What is missing is known of a recording that was followed to its end.
    let ended = if follow { Some(reopened(&trace.dir)?) } else { None };
    let trace = ended.as_deref().unwrap_or(trace);
    let status = whole::tell(ask, trace, read.filter(|_| all));
    if ask.quiet == 0
        && shown.trouble.is_none()
        && let Some(why) = nothing_shown(ask, trace, &selection, &shown, read)
    {
        complain(&why);
    }
    if let Some(trouble) = shown.trouble {
        return Err(trouble);
    }
    damage(trace, status)
}

/// The views of a report, opened.
#[derive(Default)]
struct Outputs {
    /// Lines, and tables of events.
    views: Views,
    /// Directories of files.
    directories: Vec<Box<dyn Sink>>,
    /// How the last lines are made.
    lines: Option<fn(Options) -> Box<dyn View + Send>>,
    /// What function calls add up to, and how functions are called there.
    totals: Vec<totals::Opened>,
    /// Profiles.
    drawings: Vec<Drawing>,
    /// Heaps.
    heap: Vec<crate::heap::Drawing>,
    /// How far they are with what they write at the end.
    advance: Arc<Advance>,
}

impl Outputs {
    /// Opens a view.
    fn open(&mut self, show: &Show, ask: &Ask, trace: &Trace, of: (Clocks, bool)) -> Result<()> {
        let ((clocks, whole), file) = (of, show.file.as_deref());
        let kind = view::of_trace(&show.view, ask, trace)?;
        if ask.trace.follow && !kind.follows() {
            let todo = "leave out --follow, to see what is written so far";
            return Err(Error::usage(format!("--as {}", show.view), "does not follow a recording", todo));
        }
        let opened = || if ask.trace.follow { kind.open_live(file) } else { kind.open(file) };
        let open = || opened().map(Output::of_the_past);
        match kind.make {
            Make::Totals { write, names } => self.totals.push((write, names, open()?)),
            Make::Heap(_) => self.heap.push(heap::drawing(kind, file, trace)?),
            Make::Stacks { .. } => self.drawings.push(Drawing::open(kind, file)?),
            Make::Whole(write) => {
                let (columns, _) = sys::process::terminal_size(&io::stdout()).unwrap_or((100, 24));
                let timeline = Timeline::new(stats::of_trace(trace, clocks, whole), write);
                let timeline = timeline.columns(columns.into()).advance(Arc::clone(&self.advance));
                let timeline = spans::with(ask, &[trace], timeline)?;
                self.views.push((Shown::table(Box::new(timeline)), open()?));
            }
            Make::Directory(make) => {
                kind.check(file)?;
                let stats = stats::of_trace(trace, clocks, whole);
                let dir = Path::new(file.unwrap_or_default());
                self.directories.push(make(Making { trace, clocks, stats, dir })?);
            }
            Make::Trace(make) => self.views.push((Shown::table(make(stats::of_trace(trace, clocks, whole))), open()?)),
            Make::Calls { view, names, whole } => {
                let output = open()?;
                let is_fast = || file.is_none() && output.is_terminal() && is_fast(ask, trace);
                if let Some(write) = whole.filter(|_| is_fast()) {
                    self.totals.push((write, names, output));
                    return Ok(());
                }
                let options = screen::options(ask, &output, clocks)?;
                self.views.push((calls::shown(ask, (view, names), (&output, file), options, clocks)?, output));
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

/// Whether a terminal gets the slowest calls of so many, without the calls of other kinds between them.
fn is_fast(ask: &Ask, trace: &Trace) -> bool {
    !ask.trace.follow && !ask.calls.syscalls && totals::has_many(trace) && selected_functions(ask).is_ok()
}

/// Which function calls are asked for.
fn asked_of(ask: &Ask, selection: &Selection) -> Result<Asked> {
    Ok(Asked { pids: selection.pids.clone(), wanted: selected_functions(ask)?, selection: calls::selection(ask)? })
}

/// Writes what function calls add up to: those of traces, each in its window of time.
fn write_totals<'t, T: Iterator<Item = (&'t Trace, RangeInclusive<u64>)>>(
    ask: &Ask,
    views: Vec<totals::Opened>,
    asked: impl Fn() -> Result<(T, Asked)>,
) -> Result<()> {
    for (write, names, mut output) in views {
        let quiet = ask.quiet > 0 || output.is_terminal();
        progress::of_work(quiet, || {
            let (traces, asked) = asked()?;
            let calls = FunctionCalls::new(traces, asked, Demangle::of(ask, names))?;
            calls.write(write, &mut totals::To { ask, output: &mut output })
        })?;
    }
    Ok(())
}

/// A trace of trapline as it is now.
fn reopened(dir: &Path) -> Result<Box<Trace>> {
    match ctf::trace::open(dir).map_err(|e| unreadable(dir, &e))? {
        Found::Native(trace) => Ok(trace),
        Found::Foreign => {
            Err(Error::failed(dir.display().to_string(), "it was replaced while it was read", "run report again"))
        }
    }
}

/// The outcome of showing a trace.
struct Outcome {
    /// All events were read; else the output wanted no more.
    all: bool,
    /// Something was written.
    written: bool,
    /// What was written is of more than how threads began and ended.
    tells: bool,
    /// System calls are among the events.
    calls: bool,
    /// Why something could not be.
    trouble: Option<Error>,
    /// Files of which no names are known, and why.
    unresolved: Vec<String>,
}

impl Outcome {
    /// Records of function calls were read, and no event.
    fn of_records() -> Outcome {
        Outcome { all: true, written: true, tells: true, calls: false, trouble: None, unresolved: Vec::new() }
    }
}

/// Whether a view is made of whole events, whose stacks it shows whatever the lines of others show.
fn is_table(show: &Show, ask: &Ask, trace: &Trace) -> bool {
    let kind = view::of_trace(&show.view, ask, trace);
    kind.is_ok_and(|kind| matches!(kind.make, Make::Table(_) | Make::Whole(_) | Make::Directory(_)))
}

/// Whether a view shows everything of a trace, with the names of files.
fn is_whole(show: &Show, ask: &Ask, trace: &Trace) -> bool {
    view::of_trace(&show.view, ask, trace).is_ok_and(|kind| matches!(kind.make, Make::Whole(_) | Make::Directory(_)))
}

/// What names functions, if stacks are shown.
fn resolver(ask: &Ask, trace: &Trace, selection: &Selection, views: &[Show]) -> Result<Option<Resolver>> {
    let form = stacks::form(&ask.format)?;
    let kind = |v: &Show| !v.view.starts_with("stats");
    let shown = ask.table.by.is_some()
        || views.iter().any(|show| is_table(show, ask, trace))
        || form != Stacks::Fields && ask.table.latency.is_none() && views.iter().any(kind);
    let known = trace.classes();
    let selected = known
        .filter(|s| if s.class == Class::Syscall { selection.calls.contains(s) } else { selection.is_selected(s) });
    // What is still being recorded may get probes with stacks.
    let may_have = ask.trace.follow || stacks::have_any(selected);
    if !shown || !may_have {
        return Ok(None);
    }
    Ok(Some(Resolver::new(Origin::of_trace(&trace.dir, &trace.metadata), stacks::places(&ask.names)?)))
}

/// Shows the events one after the other, with names of descriptors and processes where `names` are wanted, and of functions.
fn in_order(
    ask: &Ask,
    (trace, source): (&Trace, Source<'_>),
    selection: Selection,
    (names, resolver): (bool, Option<Resolver>),
    sinks: Sinks,
    progress: &Progress,
    mut interrupts: Option<Interrupts>,
) -> (Outcome, Selection) {
    let Sinks { all: sinks, told, lines, .. } = sinks;
    let mut pump = Pump::new(source, selection, sinks);
    if names {
        pump.keep_descriptors();
    }
    if let Some(resolver) = resolver {
        pump.resolve_stacks(if lines { resolver } else { resolver.without_lines() });
    }
    let mut all = false;
    while !all && !pump.is_unread() && !pump.is_to_end() {
        all = pump.turn().ended;
        progress.show();
        if interrupts.as_mut().is_some_and(|i| i.poll().is_some()) {
            pump.source.stop();
        }
    }
    // What a view shows at the end does not begin in the line of the bar.
    progress.done();
    // Of a recording that was followed, what was lost is known at its end.
    let ended = ask.trace.follow.then(|| reopened(&trace.dir).ok());
    let lost = ended.map_or(trace.lost(), |ended| ended.and_then(|t| t.lost()));
    progress.during(&ask.show, || pump.end_sinks(lost));
    if ask.quiet == 0 {
        told.iter().flat_map(|told| told().0).for_each(|line| complain(&line));
    }
    let trouble = pump.take_failures().into_iter().next();
    let unresolved = pump.stack_troubles();
    let tells = pump.counters().any(|(s, n)| n.recorded > 0 && tells(s));
    let is_call = |s: &Schema| s.class == Class::Syscall || events::io_uring::is_operation(s);
    let calls = pump.counters().any(|(s, n)| n.recorded > 0 && is_call(s));
    let outcome = Outcome { all, written: pump.has_written(), tells, calls, trouble, unresolved };
    (outcome, pump.selection)
}

/// Shows lines that need nothing but the event, and types of functions.
fn in_parallel(
    (trace, source): (&Trace, Source<'_>),
    selection: &Selection,
    functions: &Table,
    make: impl Fn() -> Box<dyn View + Send>,
    mut output: Output,
    progress: &Progress,
) -> Result<Outcome> {
    let any = AtomicBool::new(false);
    let lines = || -> Lines<'_> {
        let mut view = make();
        let any = &any;
        Box::new(move |event, text| {
            if let Ok(ev) = Event::parse(event)
                && selection.covers(&ev)
                && selection.passes(&ev, functions)
            {
                view.event(&ev, functions, text);
                if tells(ev.schema) {
                    any.store(true, Ordering::Relaxed);
                }
            }
        })
    };
    let all = parallel::lines(source, lines, |text| {
        output.write_lines(text);
        progress.show();
        if output.failed() { Flow::Stop } else { Flow::Continue }
    });
    let (mut last, mut end) = (make(), Vec::new());
    trace.lost().into_iter().for_each(|lost| last.lost(lost));
    last.end(&mut end);
    output.write_lines(&end);
    output.close();
    let (written, trouble) = (output.has_written(), output.take_trouble());
    let tells = any.into_inner();
    Ok(Outcome { all, written, tells, calls: tells, trouble, unresolved: Vec::new() })
}

/// Whether an event is of a probe, or tells more of a thread than how it began and ended.
fn tells(schema: &Schema) -> bool {
    schema.class != Class::Process || matches!(schema.name, "signal" | "stop" | "inflight")
}

/// What is to be shown.
fn filter_of(ask: &Ask, trace: &Trace) -> Result<Selection> {
    let (calls, probes) = selected(ask);
    let mut selection = filter::selection_of(ask, calls)?;
    // Where only other probes are selected, what happens to threads is not shown, as it is not recorded then.
    selection.lives = !selection.calls.is_empty() || probes.as_ref().is_none_or(Vec::is_empty);
    selection.probes = probes;
    // What is in the trace is counted whole; live views have no mappings.
    selection.mappings =
        ask.trace.mappings || ask.show.iter().any(|v| v.view.starts_with("stats") || is_whole(v, ask, trace));
    if let Some(selected) = trace.metadata.env_str("select").filter(|_| selection.calls.is_all())
        && let Ok(calls) = Calls::parse(selected)
    {
        selection.lives = !calls.is_empty();
        selection.calls = calls;
    }
    let probes = probes_of(trace, &selection);
    selection.expression = filter::parse(ask, &selection.calls, &probes)?;
    filters_of(trace, &mut selection);
    Ok(selection)
}

/// The expressions of `-e` that are about calls, and the patterns of other probes. Where calls are named alone, no other probe is
/// selected; without a name, and for `all` and what is not, all of them are.
fn selected(ask: &Ask) -> (Vec<String>, Option<Vec<String>>) {
    let (mut calls, mut probes, mut named) = (Vec::new(), Vec::new(), false);
    for text in ask.select.expressions() {
        let (patterns, others): (Vec<String>, Vec<String>) =
            parse::names(text).into_iter().partition(|name| parse::is_probe(name));
        if patterns.is_empty() {
            named |= !filter::is_qualified(text) && !text.starts_with('!') && text != "all";
            calls.push(text.to_owned());
            continue;
        }
        named = true;
        probes.extend(patterns);
        if !others.is_empty() {
            calls.push(others.join(","));
        }
    }
    if named && calls.is_empty() {
        calls.push("none".into());
    }
    (calls, named.then_some(probes))
}

/// The classes of selected probes other than calls that are in a trace; `begin` and `end` of the session are not filtered.
fn probes_of(trace: &Trace, selection: &Selection) -> Vec<&'static Schema> {
    let known = trace.classes();
    let filtered =
        |s: &&Schema| s.class == Class::Probe && !matches!(s.name, "begin" | "end") && selection.is_selected(s);
    known.filter(filtered).collect()
}

/// The clocks of the machine that has recorded the trace.
fn clocks_of(trace: &Trace, selection: &Selection) -> Clocks {
    let clock = trace.metadata.clock(ctf::classes::CLOCK);
    let machine = trace.metadata.env_str("machine");
    Clocks {
        no_strangers: machine == Some("part") || machine.is_some() && selection.is_partial(),
        realtime_offset: clock.map_or(0, |c| c.offset_s.saturating_mul(1_000_000_000).saturating_add(c.offset)),
        utc_offset: trace.metadata.env_int("utc_offset").unwrap_or(0),
        string: trace.metadata.env_int("string_limit").and_then(|n| n.try_into().ok()),
    }
}

/// Why nothing was shown, if so. `read` is how many events were read.
fn nothing_shown(
    ask: &Ask,
    trace: &Trace,
    selection: &Selection,
    shown: &Outcome,
    read: Option<u64>,
) -> Option<String> {
    // The first filter is the command line's.
    if let Some(tally) = selection.expression.as_ref().and(selection.filters.first()).map(EventFilter::tally)
        && let Some(why) = filter::nothing_matched(selection, &tally.total(), tally.passed())
    {
        return Some(why);
    }
    let used = filter::used(ask);
    let why = match (read?, used.is_empty()) {
        // Those who ask for mappings get them, figures are of the whole trace, and JSON has trapline's own events.
        _ if !shown.tells && shown.written && (selection.mappings || is_json(ask)) => return None,
        _ if shown.tells && shown.written => lacks(ask, trace, shown)?,
        (0, _) if ask.trace.from.is_some() || ask.trace.to.is_some() => "no event lies between --from and --to".into(),
        (0, _) => "it has no events".into(),
        (n, _) if shown.tells => lacks(ask, trace, shown)
            .unwrap_or_else(|| format!("this view shows none of its {n} events (without --as, all are shown)")),
        (n, false) => format!("none of the {n} events that were read is selected by {}", used.join(", ")),
        (n, true) => format!(
            "nothing that was to be recorded has happened; its {n} events are trapline's own, which --as json --mappings shows"
        ),
    };
    Some(nothing(trace, &why))
}

/// Whether events are shown as JSON, and nothing else is.
fn is_json(ask: &Ask) -> bool {
    !ask.show.is_empty() && ask.show.iter().all(|show| show.view == "json") && ask.table.latency.is_none()
}

/// That there is nothing to show, and why.
fn nothing(trace: &Trace, why: &str) -> String {
    format!("{}: nothing to show: {why}", trace.dir.display())
}

/// That the trace has no function that `-F` and `-N` leave, if so.
fn unnamed(ask: &Ask, trace: &Trace) -> Option<String> {
    let selection = calls::selection(ask).ok().filter(|s| !s.only.is_empty() || !s.without.is_empty())?;
    let known =
        Known::new(std::iter::once(trace), Demangle::of(ask, Demangle::Simple), &Functions::default(), &selection);
    let all = "'trapline report --as functions DIR' lists them";
    (!known.has_any_of(&selection)).then(|| format!("-F and -N select none of its functions ({all})"))
}

/// What a trace lacks of which a view is made that shows other events too, or a heading.
fn lacks(ask: &Ask, trace: &Trace, shown: &Outcome) -> Option<String> {
    let of_functions = |show: &Show| matches!(show.view.as_str(), "tree" | "cat" | "calls-json");
    let has_functions = || trace.data.function_threads().iter().any(|thread| thread.records() > 0);
    if ask.table.by.is_some() && !stacks::have_any(trace.classes()) {
        return Some("none of its events has a stack (record with --kstack or --ustack)".into());
    }
    if ask.show.iter().any(of_functions) && !ask.calls.syscalls && !ask.trace.follow && !has_functions() {
        return Some("it has no function calls (record with 'trapline graph -o DIR', or add --syscalls)".into());
    }
    if ask.table.latency.is_some() && !shown.calls {
        return Some("none of its events is a system call (leave --latency out)".into());
    }
    if ask.show.iter().any(of_functions) { unnamed(ask, trace) } else { None }
}

/// Reports what could not be read; else returns `status`.
pub fn damage(trace: &Trace, status: u8) -> Result<u8> {
    let all = trace.data.damage();
    let Some(first) = &all.first else { return Ok(status) };
    let places = if all.places == 1 { "1 place".into() } else { format!("{} places", all.places) };
    let file = first.path.file_name().unwrap_or_default().to_string_lossy();
    let why =
        format!("{} bytes in {places} are damaged; the first, {file} at byte {}: {}", all.bytes, first.at, first.what);
    Err(Error::failed(trace.dir.display().to_string(), why, "everything else was shown"))
}

/// Whether a view or the filter asks for names of descriptors or threads.
fn needs_names(ask: &Ask, selection: &Selection) -> Result<bool> {
    let manner = Manner::of(ask)?;
    Ok(manner.fd_names != FdNames::NONE
        || !selection.paths.is_empty()
        || manner.comm
        || ask.table.latency.as_ref().is_some_and(|by| by != "call")
        || selection.filters.iter().any(|s| s.filter().asks_comm() || s.filter().asks_ids()))
}

/// Refuses selections of events for views that read function records only.
fn selected_functions(ask: &Ask) -> Result<Functions> {
    let refused = |what: String| {
        let todo = "use -e 'function:NAME', --function, --no-function, --depth, -p, --from and --to";
        Err(Error::usage(what, "it does not select function calls in this view", todo))
    };
    let Select { trace, signal, status, trace_path, filter, .. } = &ask.select;
    let others = [
        ("trace", !trace.is_empty()),
        ("signal", !signal.is_empty()),
        ("status", !status.is_empty()),
        ("trace-path", !trace_path.is_empty()),
        ("where", filter.is_some()),
    ];
    if let Some((id, _)) = others.iter().find(|(_, given)| *given) {
        return refused(format!("--{id}"));
    }
    let mut functions = Functions::default();
    for text in ask.select.expr.iter() {
        for name in parse::names(text) {
            match name.strip_prefix(Functions::PROVIDER).filter(|n| !n.ends_with(":entry") && !n.ends_with(":exit")) {
                Some(pattern) => functions.wanted.push(pattern.to_owned()),
                None => return refused(format!("-e {name}")),
            }
        }
    }
    Ok(functions)
}

/// Applies `--where`, and the recording's own filter again: a recording also has rejected calls that names of descriptors need.
fn filters_of(trace: &Trace, selection: &mut Selection) {
    if let Some(own) = &selection.expression {
        let probes = |s: &Schema| s.class == Class::Probe && selection.is_selected(s);
        selection.filters.push(EventFilter::new(Arc::clone(own), |s| selection.calls.contains(s) || probes(s)));
    }
    let Some(text) = trace.metadata.env_str("where") else { return };
    let params: Vec<String> =
        (1..).map_while(|i| trace.metadata.env_str(&format!("where_{i}")).map(str::to_string)).collect();
    // Typed for the calls that are shown, not for those that were selected: one that is not for all of them is not asked again.
    if let Ok(recorded) = Expression::new(text, &params, &selection.calls, &[])
        && recorded.note().is_none()
    {
        selection
            .filters
            .push(EventFilter::new(Arc::new(recorded), |s| selection.calls.contains(s) && for_descriptors(s)));
    }
}

fn pids(ask: &Ask) -> Result<Vec<u32>> {
    let lists = ask.trace.pid.iter();
    lists
        .flat_map(|l| l.split([',', ' ']).map(str::to_string).collect::<Vec<_>>())
        .filter(|p| !p.is_empty())
        .map(|p| p.parse().map_err(|_| Error::usage(format!("-p {p}"), "not a process id", "for instance -p 1234")))
        .collect()
}
