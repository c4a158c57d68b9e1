//! `trapline`: the command line. One file per command, thin: what they do is in `engine` and `views`.

mod args;
mod call_views;
mod captures;
mod combinations;
mod diff;
mod doctor;
mod durations;
mod filter;
mod graph;
mod heap;
mod list;
mod output;
mod pack;
mod preface;
mod profile;
mod record;
mod repair;
mod report;
mod run;
mod session;
mod show;
mod slab;
mod snapshot;
mod stacks;
mod stats;
mod strace_flags;
mod target;
mod trace;
mod tracer;

use output::complain;
use std::process::ExitCode;

fn main() -> ExitCode {
    let started = sys::time::monotonic();
    let argv: Vec<std::ffi::OsString> = std::env::args_os().collect();
    let matches = match args::command().try_get_matches_from(&argv) {
        Ok(m) => m,
        Err(e) => return args::usage(&e, &argv),
    };
    let result = match matches.subcommand() {
        Some(("trace", m)) => trace::run(m, started),
        Some(("record", m)) => record::run(m, started),
        Some(("diff", m)) => diff::run(m),
        Some(("profile", m)) => match m.subcommand() {
            Some(("diff", m)) => diff::run(m),
            _ => profile::run(m, started),
        },
        Some(("graph", m)) => graph::run(m, started),
        Some(("tracer", m)) => tracer::run(m, started),
        Some(("report", m)) => report::run(m),
        Some(("repair", m)) => repair::run(m),
        Some(("pack", m)) => pack::run(m),
        Some(("snapshot", m)) => snapshot::run(m),
        Some(("session", m)) => session::run(m),
        Some(("slab", m)) => slab::run(m),
        Some(("heap", m)) => heap::run(m, started),
        Some(("list", m)) => list::run(m),
        Some(("doctor", _)) => doctor::run(),
        Some(("man", _)) => args::man(),
        Some(("completions", m)) => args::completions(m),
        _ => unreachable!("clap requires a subcommand"),
    };
    match result {
        Ok(code) => ExitCode::from(code),
        Err(e) => {
            if !matches!(e, engine::Error::Said) {
                complain(&e.to_string());
            }
            ExitCode::from(e.exit_status())
        }
    }
}
