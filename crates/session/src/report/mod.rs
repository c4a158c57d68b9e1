//! `trapline report`: any view of a trace, later, elsewhere.

mod foreign;
mod lacking;
mod outputs;
mod profiles;
mod progress;
mod selected;
pub mod several;
pub mod traces;
mod trouble;
mod untraced;
pub mod whole;
mod window;

use crate::ask::{Ask, Show};
use crate::complain;
use crate::durations;
use crate::heap::past as heap;
use crate::output::Output;
use crate::redact;
use crate::run::interrupts::Interrupts;
use crate::show::{Sinks, ToOutput, Views};
use crate::spans;
use crate::stacks;
use crate::view;
use crate::view::screen::{self, Clocks};
use ctf::folder::{Folder, reason};
use ctf::trace::{Found, Trace};
use engine::backend::recorded::{self, Following, Recorded};
use engine::pipeline::backend::Backend;
use engine::pipeline::functions::shown_name;
use engine::pipeline::parallel::{self, Lines};
use engine::pipeline::pump::{Flow, Pump, Sink};
use engine::pipeline::selection::Selection;
use engine::pipeline::source::Source;
use engine::resolver::{Origin, Resolver};
use engine::{Error, Result};
use events::functions::Table;
use events::{Class, Event, Schema};
use lacking::{nothing, nothing_shown, unnamed};
use outputs::{Outputs, asked_of, is_table, write_totals};
use profiles::{profile_of, without_profile};
use progress::Progress;
use selected::{clocks_of, filter_of, is_whole, needs_names, pids};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use trouble::{remedy, unreadable};
use views::View;
use views::options::Stacks;
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

/// What reads a trace, from a time to another, and how far it is.
fn backend_of(trace: &Trace, follow: bool, from: u64, to: u64) -> (Box<dyn Backend + '_>, Arc<recorded::Progress>) {
    if follow {
        let following = Following::new(trace.dir.clone(), from, to);
        let read = following.progress();
        return (Box::new(following), read);
    }
    let recorded = Recorded::new(trace, from, to);
    let read = recorded.progress();
    (Box::new(recorded), read)
}

/// All that gets the events in their order.
fn together(
    mut views: Views,
    directories: Vec<Box<dyn Sink>>,
    (heap, profile): (Option<Sinks>, Option<Sinks>),
    beside: Option<Beside>,
) -> Sinks {
    let has_others = !views.is_empty() || !directories.is_empty() || heap.is_some();
    let first = if beside.is_some() { Some(views.remove(0)) } else { None };
    let mut sinks = Sinks::from(views);
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
        sinks.lines = has_others || profile.lines;
        sinks.all.extend(profile.all);
        sinks.told = profile.told;
    }
    sinks
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
    let (backend, read) = backend_of(trace, follow, from, window.to);
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
            let interrupts = follow.then(|| Interrupts::watch(false));
            let sinks = together(opened, directories, (heap, profile), beside);
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
        told.iter().flat_map(|told| told().0).chain(progress.left_out()).for_each(|line| complain(&line));
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

/// Whether an event is of a probe, or has more of a thread than how it began and ended.
fn tells(schema: &Schema) -> bool {
    schema.class != Class::Process || matches!(schema.name, "signal" | "stop" | "inflight")
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
