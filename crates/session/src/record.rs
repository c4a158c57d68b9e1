//! `trapline record`: saves events to a trace on disk.

use crate::ask::{Ask, Show};
use crate::of_agent::OfAgent;
use crate::run::{Named, Run, Status};
use crate::view::screen::Clocks;
use crate::view::{self, Of, lines};
use crate::{captures, combinations, durations, filter, in_process, show, spans, stacks, target};
use ctf::store::MIN_FLIGHT;
use engine::capture::captures::Captures;
use engine::pipeline::pump::Sink;
use engine::pipeline::recorder::{Config, Monitor, Recorder, least_size};
use engine::pipeline::selection::Selection;
use engine::plan::{Backend, Plan};
use engine::request::call_enabling::{self, CallEnabling};
use engine::request::enabling::{self, Enabling, What};
use engine::request::expression::Expression;
use engine::request::functions::{Functions, Sums, Values};
use engine::request::heap_enabling::Wanted;
use engine::request::parse;
use engine::request::parse::Request;
use engine::request::probe_enabling;
use engine::request::returns::replaces_returns;
use engine::target::Target;
use engine::{Error, Result};
use events::Class;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Runs the command.
pub fn run(ask: &Ask) -> Result<Status> {
    run_own(ask, Own::default())
}

/// Changes the enablings of a recording.
pub type Adjust = dyn FnOnce(&mut [Enabling]) -> Result<()>;

/// What somebody adds to a recording.
#[derive(Default)]
pub struct Own {
    /// Who gets the events too, as they come.
    pub sinks: Vec<Box<dyn Sink>>,
    /// What is enabled may be adjusted before it begins.
    pub adjust: Option<Box<Adjust>>,
    /// What is wanted of calls of functions.
    pub calls: OfCalls,
}

/// What is wanted of calls of functions.
#[derive(Clone, Copy, Debug, Default)]
pub struct OfCalls {
    /// Arguments and results that are captured, unless others are asked for.
    pub values: Option<Values>,
    /// Nobody looks at their ends.
    pub entries: bool,
    /// Nobody wants more than these sums.
    pub sums: Option<Sums>,
}

/// Records, and gives the events to these sinks too, as they come. With them, no view is shown that is not asked for.
///
/// # Errors
/// A part of the request is not possible here; the command is not started then.
pub fn run_with(ask: &Ask, sinks: Vec<Box<dyn Sink>>) -> Result<Status> {
    run_own(ask, Own { sinks, ..Own::default() })
}

/// Records, with what somebody adds.
///
/// # Errors
/// A part of the request is not possible here; the command is not started then.
pub fn run_own(ask: &Ask, own: Own) -> Result<Status> {
    let Own { sinks: own, adjust, calls: of_calls } = own;
    let requests = requests(ask)?;
    let calls = calls_of(&requests);
    let default = if own.is_empty() { Some("text") } else { None };
    let sinks = Box::new(|views, _| {
        let mut sinks = show::Sinks::from(views);
        sinks.all.extend(own);
        sinks
    });
    through(
        ask,
        With { selection: selection(ask, calls)?, requests, default, sinks, said: Vec::new(), adjust, calls: of_calls },
    )
}

/// The selection of these calls, in the form of `-e` of trace, with what `-e` selects otherwise.
pub fn selection(ask: &Ask, mut calls: Vec<String>) -> Result<Selection> {
    calls.extend(ask.select.expressions().filter(|e| filter::is_qualified(e)).map(str::to_owned));
    filter::selection_of(ask, calls)
}

/// What is recorded, and who sees it.
pub struct With<'a> {
    /// What is enabled.
    pub requests: Vec<Request>,
    /// What is shown.
    pub selection: Selection,
    /// The default view of a session that keeps no trace.
    pub default: Option<&'static str>,
    /// Who gets the events: these views, and others. There is a monitor where a trace is written.
    pub sinks: Box<dyn FnOnce(show::Views, Option<Monitor>) -> show::Sinks + 'a>,
    /// What else is said of the trace, by name.
    pub said: Vec<(String, String)>,
    /// What is enabled may be adjusted before it begins.
    pub adjust: Option<Box<Adjust>>,
    /// What is wanted of calls of functions.
    pub calls: OfCalls,
}

/// The plan for all that the requests enable.
pub fn planned(ask: &Ask, mut requests: Vec<Request>, selection: Selection, calls: OfCalls) -> Result<Planned> {
    let more = captures::captures(&ask.capture)?;
    let mut of_agent = of_agent(ask, &mut requests, stacks::with_calls(&ask.format, more))?;
    let strings = u16::try_from(ask.format.string()).unwrap_or(u16::MAX);
    // Keys are addresses, and not what is there.
    let for_spans = spans::need_values(ask).then_some(Values { strings, numbers: true });
    let has_functions = of_agent.as_ref().is_some_and(|a| !a.functions.none);
    if ask.capture.lib && !has_functions && ask.keep.name.is_none() {
        return Err(Error::usage("--lib", "no functions are recorded", "name some: -e function:NAME"));
    }
    if ask.capture.args {
        let Some(OfAgent { functions, .. }) = of_agent.as_mut().filter(|a| !a.functions.none) else {
            return Err(Error::usage("--args", "no functions are recorded", "name some: -e function:NAME"));
        };
        functions.values = for_spans.or(Some(Values { strings, numbers: false }));
    } else if let Some(of_agent) = &mut of_agent {
        let functions = &mut of_agent.functions;
        functions.values = calls.values.or(for_spans);
        (functions.entries, functions.sums) = (calls.entries, calls.sums);
    }
    let captures = stacks::with_calls(&ask.format, more);
    match of_agent {
        Some(of_agent) if requests.is_empty() => plan_functions(ask, of_agent, selection),
        of_agent => plan(ask, &requests, captures, of_agent, selection),
    }
}

/// Records.
///
/// # Errors
/// Those of [`run_with`].
pub fn through(ask: &Ask, with: With<'_>) -> Result<Status> {
    let With { requests, selection, default, sinks, mut said, adjust, calls } = with;
    said.extend(spans::said(ask));
    let Planned { mut plan, why, selection } = planned(ask, requests, selection, calls)?;
    only_of_recordings(ask, &plan)?;
    if let Some(adjust) = adjust {
        adjust(&mut plan.enablings)?;
    }
    // Before anything is made: a name that is in use must leave no files.
    let named = Named::open(ask, &mut plan)?;
    let dir = ask.keep.dir();
    let wanted = default.map_or_else(|| ask.show.clone(), |default| view::wanted(ask, default));
    combinations::say_without_effect(ask, !wanted.is_empty());
    let clocks = Clocks::session(&ask.format).of_machine(ask.target.all, &selection);
    let mut views = show::Views::new();
    for Show { view, file } in &wanted {
        let kind = view::find(view, &[Of::Events])?;
        let output = view::open_live(kind, file.as_deref())?;
        let shown = lines::shown(ask, &output, kind, clocks)?;
        views.push((shown, output));
    }
    let keep = match dir {
        None => {
            for (option, given) in [("max-size", &ask.keep.max_size), ("flight", &ask.keep.flight)] {
                if given.is_some() {
                    return Err(Error::usage(format!("--{option}"), "no trace is written", "name one: -o DIR"));
                }
            }
            None
        }
        Some(dir) => Some(recorder_with(ask, dir, &mut plan, &selection, (named.is_some(), clocks), said)?),
    };
    let sinks = sinks(views, keep.as_ref().map(Recorder::monitor));
    Run::through(ask, plan, &why, selection, sinks, keep, named)?.finish(ask)
}

/// What is to be done, and why so.
pub struct Planned {
    /// The plan.
    pub plan: Plan,
    /// Why it takes this backend.
    pub why: String,
    /// What is shown.
    pub selection: Selection,
}

/// The plan for the requests, all of which also capture `more`. The agent's part is traced beside it.
pub fn plan(
    ask: &Ask,
    requests: &[Request],
    more: Captures,
    mut of_agent: Option<OfAgent>,
    mut selection: Selection,
) -> Result<Planned> {
    selection.lives = !is_without_calls(requests);
    // Before other classes are made: the programs count what is lost of the first ones by name.
    let mut call_captures = call_enabling::call_captures(requests, more, &selection.calls)?;
    if selection.lives {
        call_captures.extend(call_enabling::signal_captures(more)?);
    }
    let target = target::target(ask)?;
    let mut probes = probe_enabling::enable(requests, more, &target)?;
    let in_place = probes.iter().filter(|e| e.point.is_some());
    let mut classes: Vec<_> = in_place.flat_map(|e| e.classes()).copied().collect();
    if let Some(of_agent) = &of_agent {
        only_processes(&target, &of_agent.functions)?;
        classes.extend(of_agent.classes());
    }
    filter::apply(ask, &mut selection, &classes)?;
    if let Some(expression) = &selection.expression {
        call_captures.retain(|c| c.schema.class != Class::Syscall || selection.calls.contains(c.schema));
        probe_enabling::narrow(&mut probes, expression)?;
    }
    if !captures::has_strings(&ask.capture) {
        probe_enabling::without_strings(&mut probes);
    }
    engine::request::returns::guard(&mut probes, &target, ask.tracing.force)?;
    let strings = captures::has_strings(&ask.capture);
    of_agent.iter_mut().try_for_each(|a| a.prepare(selection.expression.as_ref(), strings))?;
    let (mut plan, mut why) = target::plan(ask, target, &selection)?;
    if plan.backend == Backend::Agent {
        return Err(Error::usage("--backend agent", "it traces functions, and no other probes", "leave it out"));
    }
    let calls = call_enabling::call_enablings(requests)?;
    if selection.expression.is_some() && calls.iter().any(|e| e.filter.is_some()) {
        return Err(Error::usage("--where", "an -e has a filter for calls too", "use only one of them"));
    }
    let calls = call_enabling::of_wanted(calls, &selection.calls);
    let no_probes = probes.is_empty();
    plan.enablings = enabling::list(calls.into_iter().map(What::Calls));
    enabling::add(&mut plan.enablings, probes.into_iter().map(|e| What::Probe(Arc::new(e))));
    plan.call_captures = call_captures;
    if let Some(mut of_agent) = of_agent {
        // Each process has a buffer for its functions, and the other backend its own.
        let buffer = if ask.tracing.buffer.is_some() { plan.buffer } else { Backend::Agent.buffer() };
        of_agent.functions.buffer = Some(buffer);
        plan.functions = Some(of_agent.join(&mut plan.enablings));
    }
    plan.measure = ask.tracing.cost;
    let asked: Vec<&str> = requests.iter().flat_map(|r| &r.names).map(String::as_str).collect();
    if !asked.is_empty() && no_probes && selection.calls.is_empty() && asked != ["none"] {
        let todo = "name a probe or a call; -e none records only signals and exits";
        return Err(Error::usage(format!("-e {}", asked.join(",")), "nothing is enabled", todo));
    }
    target::only_in_kernel(ask, &mut plan, &mut why)?;
    durations::apply(ask, &mut plan, &selection)?;
    plan.limits.text = plan.limits.text.max(plan.call_enablings().map(CallEnabling::text_bytes).max().unwrap_or(0));
    Ok(Planned { plan, why, selection })
}

/// What is requested of the agent, which is taken out of the requests. `more` is captured by all probes.
fn of_agent(ask: &Ask, requests: &mut Vec<Request>, more: Captures) -> Result<Option<OfAgent>> {
    let probes = in_process::take(ask, requests, more)?;
    let Some(mut of_agent) = OfAgent::taken(requests, probes, more, ask.select.filter.is_some())? else {
        return Ok(None);
    };
    let has_heap = of_agent.enablings.iter().any(|e| matches!(e, What::Heap(_)));
    if has_heap && requests.is_empty() && (more.kstack > 0 || more.comm) {
        let option = if more.comm { "--comm" } else { "--kstack" };
        let why = "an allocation captures only its stack in the program";
        return Err(Error::usage(option, why, "--ustack, or no capture"));
    }
    of_agent.functions.unwanted = ask.capture.leave.clone();
    of_agent.functions.libraries = ask.capture.lib;
    Ok(Some(of_agent))
}

/// Refuses the whole machine: the agent goes into the processes that are named.
fn only_processes(target: &Target, functions: &Functions) -> Result<()> {
    if matches!(target, Target::All { .. }) {
        let why = format!("{} are traced in one program", functions.what());
        return Err(Error::usage("-a", why, "use -p PID, or start the command"));
    }
    Ok(())
}

/// The plan for functions and allocations alone.
pub fn plan_functions(ask: &Ask, mut of_agent: OfAgent, mut selection: Selection) -> Result<Planned> {
    let target = target::target(ask)?;
    let classes = of_agent.classes();
    only_processes(&target, &of_agent.functions)?;
    // How processes have ended is known of the command only.
    selection.lives = false;
    filter::apply(ask, &mut selection, &classes)?;
    of_agent.prepare(selection.expression.as_ref(), captures::has_strings(&ask.capture))?;
    let functions = &of_agent.functions;
    let (mut plan, _) = target::plan(ask, target, &selection)?;
    let asked = ask.tracing.backend.as_deref();
    if let Some(other @ ("kernel" | "ptrace")) = asked {
        let todo = "leave it out; uprobe:PROGRAM:FUNCTION is for the kernel backend";
        let why = format!("{} are traced by the agent", functions.what());
        return Err(Error::usage(
            format!("--backend {other}"),
            why,
            if functions.none { "leave it out" } else { todo },
        ));
    }
    let why = match in_process::reason(ask) {
        Some(why) if functions.what() == "probes" => why,
        _ => format!("only an agent traces {}", functions.what()),
    };
    plan.backend = Backend::Agent;
    plan.functions = Some(of_agent.join(&mut plan.enablings));
    durations::apply(ask, &mut plan, &selection)?;
    if ask.tracing.on_full.is_none() {
        plan.on_full = Backend::Agent.on_full();
    }
    if ask.tracing.buffer.is_none() {
        plan.buffer = Backend::Agent.buffer();
    }
    Ok(Planned { plan, why, selection })
}

/// Whether other probes than calls are requested, and no call.
pub fn is_without_calls(requests: &[Request]) -> bool {
    !requests.is_empty() && requests.iter().flat_map(|r| &r.names).all(|n| parse::is_probe(n))
}

/// What writes the trace to a directory.
pub fn recorder(
    ask: &Ask,
    dir: PathBuf,
    plan: &mut Plan,
    selection: &Selection,
    named: bool,
    clocks: Clocks,
) -> Result<Recorder> {
    recorder_with(ask, dir, plan, selection, (named, clocks), Vec::new())
}

fn recorder_with(
    ask: &Ask,
    dir: PathBuf,
    plan: &mut Plan,
    selection: &Selection,
    (named, clocks): (bool, Clocks),
    said: Vec<(String, String)>,
) -> Result<Recorder> {
    // Names of descriptors are part of a trace of all calls; with a selection they cost calls that nobody asked for.
    plan.fd_names |= selection.calls.is_all() && selection.expression.is_none() && !named;
    plan.fd_details |= plan.fd_names;
    // Two enablings of a probe have one class, unless they capture different things.
    let mut classes: Vec<_> = plan.probes().chain(plan.in_process()).flat_map(|e| e.classes()).copied().collect();
    classes.extend(plan.call_captures.iter().map(|c| c.schema));
    classes.extend(plan.functions.as_ref().and_then(|f| f.values).map(|_| events::values::class()));
    classes.extend(plan.enablings.iter().filter_map(Enabling::heap).filter_map(|e| e.probe.class(e.stack)));
    classes.extend(plan.heap().into_iter().flat_map(Wanted::classes));
    let packed = plan.heap().is_some_and(|h| h.packed);
    order::by_key(&mut classes, |s| s.id);
    classes.dedup_by_key(|s| s.id);
    // What a named session records may change, and so is not hidden.
    let no_calls = !selection.lives;
    let select = (no_calls || plan.seen_calls() != selection.calls) && !named;
    let select = select.then(|| if no_calls { "none".into() } else { selection.calls.names().join(",") });
    let config = config(ask, dir, plan.backend_name(), clocks, classes, select, selection.expression.as_deref())?;
    let machine_in_part = ask.target.all.then(|| selection.is_partial());
    let config = Config { no_duration: plan.no_duration, packed, machine_in_part, said, ..config };
    if ask.tracing.force {
        replace(&config.dir)?;
    }
    Recorder::new(&config)
}

/// Refuses options that make sense only without a trace, or only with one.
fn only_of_recordings(ask: &Ask, plan: &Plan) -> Result<()> {
    for (option, given) in [("-A", ask.keep.append), ("-ff", ask.target.is_per_thread())] {
        if given {
            return Err(Error::usage(option, "a recording is always one new trace", "leave it out"));
        }
    }
    if ask.tracing.force && ask.keep.output.is_none() && !plan.probes().any(|e| replaces_returns(e)) {
        return Err(Error::usage("--force", "there is no trace to replace", "name one: -o DIR"));
    }
    Ok(())
}

/// What `-e` asks for.
pub fn requests(ask: &Ask) -> Result<Vec<Request>> {
    ask.select.expressions().filter(|e| !filter::is_qualified(e)).map(Request::parse).collect()
}

/// The calls in the requests, in the form of `-e` of trace. Without any request, all calls; with other probes alone, none.
pub fn calls_of(requests: &[Request]) -> Vec<String> {
    if requests.is_empty() {
        return Vec::new();
    }
    let names: Vec<String> = requests.iter().flat_map(|r| &r.names).filter(|n| !parse::is_probe(n)).cloned().collect();
    vec![if names.is_empty() { "none".into() } else { names.join(",") }]
}

fn config(
    ask: &Ask,
    dir: PathBuf,
    backend: &str,
    clocks: Clocks,
    classes: Vec<&'static events::Schema>,
    select: Option<String>,
    filter: Option<&Expression>,
) -> Result<Config> {
    let config = Config {
        dir,
        max_size: size("max-size", &ask.keep.max_size)?,
        flight: size("flight", &ask.keep.flight)?,
        // Its arguments are strings too.
        command: if captures::has_strings(&ask.capture) { ask.target.words() } else { String::new() },
        backend: backend.into(),
        realtime_offset: clocks.realtime_offset,
        utc_offset: clocks.utc_offset,
        classes,
        select,
        machine_in_part: None,
        no_duration: false,
        packed: false,
        filter: filter.map(|f| (f.text.clone(), f.params.clone())),
        string: ask.format.string(),
        said: Vec::new(),
    };
    if config.flight.is_some_and(|n| n < MIN_FLIGHT) {
        return Err(too_little("flight", &ask.keep.flight, MIN_FLIGHT, "too small to hold events"));
    }
    // It depends on how many classes of events the trace has.
    if let Some(max) = config.max_size {
        let least = least_size(&config).next_multiple_of(64 << 10);
        if max < least {
            return Err(too_little(
                "max-size",
                &ask.keep.max_size,
                least,
                "too small: it limits all files of the trace together",
            ));
        }
    }
    Ok(config)
}

/// A size that the command line gives.
fn size(name: &str, given: &Option<String>) -> Result<Option<u64>> {
    given.as_ref().map(|text| target::bytes(&format!("--{name}"), text)).transpose()
}

fn too_little(name: &str, given: &Option<String>, least: u64, why: &str) -> Error {
    let text = given.as_deref().unwrap_or_default();
    Error::usage(format!("--{name} {text}"), why, format!("at least {}K", least >> 10))
}

/// `--force`: removes a trace of trapline, and nothing else.
fn replace(dir: &Path) -> Result<()> {
    let refused = |why: String| Error::failed(format!("--force {}", dir.display()), why, "choose another directory");
    ctf::replace::clear(dir, sys::process::euid()).map_err(refused)
}
