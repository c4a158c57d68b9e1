//! `trapline tracer`: tracers of functions in a running process.

mod printed;
mod recording;
mod reports;

use crate::graph::Chosen;
use crate::output::{complain, to_stdout};
use clap::ArgMatches;
use engine::backend::agent::attach::tracers::{self, Listed, Wanted};
use engine::functions::Functions;
use engine::{Error, Result};

/// Runs the command.
pub fn run(m: &ArgMatches, started: u64) -> Result<u8> {
    let Some((command, m)) = m.subcommand() else { return Ok(0) };
    let pid = m.get_one::<i32>("attach").copied().unwrap_or(0);
    let name = || m.get_one::<String>("name").cloned().unwrap_or_default();
    match command {
        "enable" if name() == recording::NAME => {
            let Functions { wanted, unwanted, libraries, .. } = wanted(m, name()).functions;
            recording::enable(m, pid, Chosen { wanted, unwanted, libraries }, started)
        }
        "enable" if m.contains_id("output") => Err(Error::usage("-o", "only graph writes a trace", "leave it out")),
        "disable" if name() == recording::NAME => recording::disable(pid).map(|()| 0),
        "print" if name() == recording::NAME => recording::print(pid).map(|()| 0),
        "enable" => {
            let done = tracers::enable(pid, &wanted(m, name()))?;
            if done.refused > 0 {
                complain(&format!("-p {pid}: {} of {} functions could not be patched", done.refused, done.functions));
            }
            Ok(0)
        }
        "disable" => tracers::disable(pid, &name()).map(|()| 0),
        "print" => printed::run(pid, &name(), m),
        "status" => status(pid, m.get_one::<String>("name")),
        _ => to_stdout(tracers::status(pid)?.iter().map(|t| format!("{}\n", t.name)).collect::<String>().as_bytes()),
    }
}

/// Which tracers are enabled, on stdout; what they have reported, and what they were not told of, on stderr.
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

fn wanted(m: &ArgMatches, name: String) -> Wanted {
    let all = |id: &str| m.get_many::<String>(id).into_iter().flatten().cloned().collect::<Vec<_>>();
    Wanted {
        name,
        functions: Functions {
            wanted: all("function"),
            unwanted: all("no-function"),
            libraries: m.get_flag("lib"),
            ..Functions::default()
        },
        sections: all("section"),
        no_time: m.get_flag("no-time"),
        threads: all("thread"),
        stop: m.get_flag("stop"),
        caller: m.get_one::<String>("loop").cloned(),
        budget: m.get_one::<u64>("budget").copied().unwrap_or(1_000).saturating_mul(1_000),
    }
}
