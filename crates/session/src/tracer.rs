//! `trapline tracer`: tracers of functions in a running process.

mod printed;
mod recording;
mod reports;

use crate::ask::Tracer;
use crate::graph::Chosen;
use crate::output::{complain, to_stdout};
use crate::run::Status;
pub use abi::built_in::Choice;
use abi::built_in::{BUILT_IN, Row};
use collector::attach::tracers::{self, Listed};
use collector::attach::wanted::Wanted;
use engine::request::functions::Functions;
use engine::{Error, Result};

/// The tracers that every process has.
pub fn built_in() -> impl Iterator<Item = &'static str> {
    BUILT_IN.iter().map(|row| row.name)
}

/// What they show, for help: a sentence each.
pub fn about() -> String {
    let all: Vec<String> = BUILT_IN.iter().map(|row| format!("{}: {}.", row.name, row.about)).collect();
    all.join(" ")
}

/// The names of those with an option, for help.
pub fn with(option: Choice) -> String {
    let has = |row: &&Row| row.options.contains(&option);
    let names: Vec<&str> = BUILT_IN.iter().filter(has).map(|row| row.name).collect();
    names.join(", ")
}

/// Runs the command.
pub fn run(asked: &Tracer) -> Result<Status> {
    let Tracer { pid, ask, .. } = asked;
    let pid = *pid;
    let name = || asked.name.clone().unwrap_or_default();
    match asked.what.as_str() {
        "enable" if name() == recording::NAME => {
            let Functions { wanted, unwanted, libraries, .. } = wanted(asked, name()).functions;
            recording::enable(asked, Chosen { wanted, unwanted, libraries })
        }
        "enable" if ask.keep.output.is_some() => Err(Error::usage("-o", "only graph writes a trace", "leave it out")),
        "print" if name() == recording::NAME => recording::print(pid).map(|()| Status::Exit(0)),
        "enable" => {
            let done = tracers::enable(pid, &wanted(asked, name()))?;
            if done.refused > 0 {
                complain(&format!("-p {pid}: {} of {} functions could not be patched", done.refused, done.functions));
            }
            Ok(Status::Exit(0))
        }
        "disable" => disable(pid, &name()).map(|()| Status::Exit(0)),
        "print" => printed::run(pid, &name(), ask).map(Status::Exit),
        "status" => status(pid, asked.name.as_ref()).map(Status::Exit),
        _ => {
            let names: String = tracers::status(pid)?.iter().map(|t| format!("{}\n", t.name)).collect();
            to_stdout(names.as_bytes()).map(Status::Exit)
        }
    }
}

/// Disables a tracer; a recording of functions ends.
///
/// # Errors
/// It is not enabled, or the process cannot be stopped.
pub fn disable(pid: i32, name: &str) -> Result<()> {
    if name == recording::NAME { recording::disable(pid) } else { tracers::disable(pid, name) }
}

/// Which tracers are enabled, on stdout; what they have reported, and the calls that they missed, on stderr.
fn status(pid: i32, only: Option<&String>) -> Result<u8> {
    let all = tracers::status(pid)?;
    if let Some(missing) = only.filter(|n| !all.iter().any(|t| t.name == **n)) {
        return Err(tracers::no_such(pid, missing, all.iter().map(|t| t.name.as_str())));
    }
    let shown: Vec<&Listed> = all.iter().filter(|t| only.is_none_or(|n| t.name == *n)).collect();
    let line = |t: &&Listed| format!("{}\t{}\n", t.name, if t.enabled { "enabled" } else { "disabled" });
    let status = to_stdout(shown.iter().map(line).collect::<String>().as_bytes())?;
    reports::lines(shown.into_iter()).iter().for_each(|line| complain(&format!("-p {pid}: {line}")));
    Ok(status)
}

fn wanted(asked: &Tracer, name: String) -> Wanted {
    let ask = &asked.ask;
    Wanted {
        name,
        functions: Functions {
            wanted: ask.calls.function.clone(),
            unwanted: ask.calls.no_function.clone(),
            libraries: ask.capture.lib,
            ..Functions::default()
        },
        sections: asked.section.clone(),
        no_time: ask.calls.no_time,
        threads: asked.thread.clone(),
        stop: asked.stop,
        caller: asked.caller.clone(),
        budget: asked.budget.unwrap_or(1_000).saturating_mul(1_000),
    }
}
