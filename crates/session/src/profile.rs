//! `trapline profile`: where the time goes, or events and their weights, by stacks.

pub mod diff;
mod gather;
mod off_cpu;
mod past;
mod sink;
mod weight;

use crate::ask::{Ask, Show};
use crate::combinations;
use crate::record::{self, Planned};
use crate::run::{Run, Status};
use crate::show::{self, Sinks};
use crate::view;
use crate::view::Of;
use crate::view::screen::Clocks;
use crate::view::stacks::{self, Drawing};
use engine::capture::captures::{self, Captures};
use engine::pipeline::pump::Sink;
use engine::pipeline::selection::Selection;
use engine::plan::Plan;
use engine::provider;
use engine::request::parse::Request;
use engine::request::select::Calls;
use engine::rights;
use engine::target::Target;
use engine::{Error, Result};
use events::Schema;
use gather::{Gather, has_stacks};
use off_cpu::OffCpu;
use sink::{Profile, ProfileSink};
use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;
use views::profile::style::Style;
use weight::Weight;

/// Samples per second and CPU: a prime, so that nothing periodic keeps step with it.
const HZ: &str = "997";

/// How often threads are looked at that do not run.
const BLOCKED: &str = "blocked:ms:5";

/// Runs the command.
pub fn run(ask: &Ask) -> Result<Status> {
    combinations::exclusive(ask)?;
    if ask.profile.wakers && !ask.profile.off_cpu && !ask.profile.wall {
        return Err(Error::usage("--wakers", "threads that are not blocked are not woken", "add --off-cpu or --wall"));
    }
    if ask.target.follow > 1 {
        return Err(Error::usage("-ff", "a profile covers all threads", "--group thread separates them"));
    }
    let requests = requests(ask)?;
    let mut selection = Selection::all();
    for calls in record::calls_of(&requests) {
        selection.calls = Calls::parse(&calls)?;
    }
    let Planned { mut plan, why, selection } = record::plan(ask, &requests, Captures::default(), None, selection)?;
    let dir = ask.keep.dir();
    let wanted = view::wanted(ask, "table");
    let clocks = Clocks::session(&ask.format);
    let live = !matches!(plan.target, Target::Command(_));
    let style = stacks::style(ask, title(ask, &plan), clocks)?;
    let classes: Vec<&Schema> = classes(&plan);
    let drawings = wanted.iter().map(drawing).collect::<Result<Vec<_>>>()?;
    let sinks = sinks(ask, &classes, drawings, style, live)?;
    let keep = dir.map(|dir| record::recorder(ask, dir, &mut plan, &selection, false, clocks)).transpose()?;
    Run::through(ask, plan, &why, selection, sinks, keep, None)?.finish(ask)
}

/// What draws these drawings of events of these classes.
pub fn sinks(ask: &Ask, classes: &[&Schema], drawings: Vec<Drawing>, style: Style, live: bool) -> Result<Sinks> {
    let profile = profile(ask, classes)?;
    let places = drawings.iter().flat_map(|d| d.output.descriptors()).collect();
    let lines = drawings.iter().any(Drawing::has_lines);
    let told = profile.clone();
    let all: Vec<Box<dyn Sink>> = match drawings.is_empty() {
        true => Vec::new(),
        false => vec![Box::new(ProfileSink::new(profile, drawings, style, live))],
    };
    let told = (!all.is_empty()).then(|| Box::new(move || told.borrow().told()) as show::Told);
    Ok(Sinks { all, places, told, lines })
}

/// An empty profile of events of these classes.
fn profile(ask: &Ask, classes: &[&Schema]) -> Result<Rc<RefCell<Profile>>> {
    if off_cpu::is_of(classes) {
        if ask.table.by.is_some() {
            return Err(Error::usage("--by", "the profile is of time in which threads were blocked", "leave it out"));
        }
        let wakers = classes.iter().any(|c| c.name == off_cpu::WAKING) && ask.profile.wakers;
        let has_clock = classes.iter().any(|c| provider::clock_period(c.name).is_some());
        if has_clock && !ask.profile.off_cpu {
            return Ok(Profile::new(Gather::of_wall_clock(), Weight::one(), Some(OffCpu::new(wakers))));
        }
        return Ok(Profile::new(Gather::of_switches(), Weight::one(), Some(OffCpu::new(wakers))));
    }
    let has_blocked = classes.iter().any(|c| provider::is_of_blocked(c.name));
    let has_clock = classes.iter().any(|c| provider::clock_period(c.name).is_some());
    if has_blocked && has_clock && ask.table.by.is_none() {
        return Ok(Profile::new(Gather::of_wall_clock(), Weight::one(), None));
    }
    if ask.profile.off_cpu {
        return Err(Error::failed(
            "--off-cpu",
            "the trace has no switches of threads",
            "record it with 'trapline profile --off-cpu -o DIR'",
        ));
    }
    if ask.profile.wall {
        return match has_clock {
            true => Ok(Profile::new(Gather::of_wall_clock(), Weight::one(), None)),
            false => Err(Error::failed(
                "--wall",
                "the trace has no samples",
                "record it with 'trapline profile --wall -o DIR'",
            )),
        };
    }
    let with_stacks: Vec<&Schema> = classes.iter().copied().filter(|c| has_stacks(c)).collect();
    let (weight, unit) = Weight::parse(ask, &with_stacks)?;
    Ok(Profile::new(Gather::new(unit), weight, None))
}

/// Refuses a trace without stacks; `classes` are those of its events.
pub fn has_selected_stacks(dir: &Path, classes: &[&Schema]) -> Result<()> {
    if classes.iter().any(|c| has_stacks(c)) {
        return Ok(());
    }
    let todo = "record with 'trapline profile -o DIR', or with kstack or ustack";
    Err(Error::failed(dir.display().to_string(), "none of its selected events has a stack", todo))
}

/// A view, opened.
fn drawing(Show { view, file }: &Show) -> Result<Drawing> {
    Drawing::open(view::find(view, &[Of::Stacks])?, file.as_deref())
}

/// The events that are counted, with their stacks.
fn requests(ask: &Ask) -> Result<Vec<Request>> {
    let clock = || -> Result<String> {
        let hz = ask.profile.frequency.as_ref().map_or(HZ, String::as_str);
        match hz.parse::<u32>() {
            Ok(1..=100_000) => Ok(format!("profile:hz:{hz}")),
            _ => Err(Error::usage(
                format!("-F {hz}"),
                "not a number of samples per second",
                "1 to 100000, for instance 99",
            )),
        }
    };
    let (off_cpu, wall) = (ask.profile.off_cpu, ask.profile.wall);
    let texts: Vec<String> = match &ask.select.expr[..] {
        _ if off_cpu && wall => {
            return Err(Error::usage("--wall", "given together with --off-cpu", "--wall has the time blocked too"));
        }
        [_, ..] if off_cpu || wall => {
            let option = if wall { "--wall" } else { "--off-cpu" };
            return Err(Error::usage(option, "given together with -e", "leave one of them out"));
        }
        [] if wall && rights::is_root() && !copies_stacks(ask) => {
            [off_cpu::probes(ask.profile.wakers), vec![clock()?]].concat()
        }
        all @ [_, ..] => all.to_vec(),
        [] if off_cpu && !rights::is_root() => {
            return Err(Error::failed(
                "--off-cpu",
                "it needs tracepoints of the scheduler, which are for root",
                "use --wall, which has the time blocked too, or run trapline as root",
            ));
        }
        [] if off_cpu => off_cpu::probes(ask.profile.wakers),
        // Who may not trace the scheduler looks at threads that do not run.
        [] if wall => vec![BLOCKED.into(), clock()?],
        [] => vec![clock()?],
    };
    let mut requests = texts.iter().map(|text| Request::parse(text)).collect::<Result<Vec<_>>>()?;
    let has = |name: &String| {
        off_cpu::has_stacks(name) || provider::clock_period(name).is_some() || provider::is_of_blocked(name)
    };
    let without = |r: &Request| (off_cpu || wall) && !r.names.iter().all(has);
    for request in requests.iter_mut().filter(|r| !without(r)) {
        // As many frames as were asked for.
        let Captures { kstack, ustack, .. } = &mut request.captures;
        *ustack = if *ustack == 0 { captures::USER } else { *ustack };
        // An ordinary user sees no addresses of the kernel, and copied stacks are those of processes.
        if rights::is_root() && !copies_stacks(ask) {
            *kstack = if *kstack == 0 { captures::KERNEL } else { *kstack };
        }
        request.captures.comm = !request.names.iter().any(|name| has_own_comm(name));
    }
    Ok(requests)
}

/// Whether stacks are to be copied.
fn copies_stacks(ask: &Ask) -> bool {
    let begins = |option: &Option<String>, with: &str| option.as_ref().is_some_and(|v| v.starts_with(with));
    begins(&ask.tracing.unwind, "copy") || begins(&ask.tracing.backend, "perf")
}

/// Whether events of a tracepoint have a field that is called as the thread's name would be: two of one name cannot be read.
fn has_own_comm(name: &str) -> bool {
    let of_tracepoint = name.strip_prefix("tracepoint:").map(|_| provider::list(name, true));
    of_tracepoint.is_some_and(|found| found.is_ok_and(|all| all.iter().flat_map(|p| &p.args).any(|a| a.name == "comm")))
}

/// The classes of the events that are counted.
fn classes(plan: &Plan) -> Vec<&'static Schema> {
    let calls = plan.call_captures.iter().map(|c| c.schema);
    plan.probes().flat_map(|e| e.classes()).copied().chain(calls).collect()
}

/// The heading of a graph: the command, or the processes.
fn title(ask: &Ask, plan: &Plan) -> String {
    match &plan.target {
        Target::Command(_) => ask.target.words(),
        Target::Pids(pids) => format!("-p {}", pids.iter().map(i32::to_string).collect::<Vec<_>>().join(",")),
        Target::All { .. } => "the whole machine".into(),
    }
}
