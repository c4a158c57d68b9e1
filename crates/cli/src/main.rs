//! `trapline`: the command line. One file per command, thin: what they do is in `engine` and `views`.

mod args;
mod ask;
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
mod view;

use args::Subcommand;
use output::complain;
use std::process::ExitCode;

fn main() -> ExitCode {
    let started = sys::time::monotonic();
    let argv: Vec<std::ffi::OsString> = std::env::args_os().collect();
    let subcommand = match args::parse(&argv) {
        Ok(subcommand) => subcommand,
        Err(status) => return status,
    };
    let result = match subcommand {
        Subcommand::Trace(ask) => trace::run(&ask, started),
        Subcommand::Record(ask) => record::run(&ask, started),
        Subcommand::Profile(ask) => profile::run(&ask, started),
        Subcommand::Graph(ask) => graph::run(&ask, started),
        Subcommand::Heap(ask) => heap::run(&ask, started),
        Subcommand::Collector(ask) => heap::control::run(&ask),
        Subcommand::Report(ask) => report::run(&ask),
        Subcommand::Diff(ask, before, after) => diff::run(&ask, &before, &after),
        Subcommand::Repair(dir) => repair::run(&dir),
        Subcommand::Pack(ask) => pack::run(&ask),
        Subcommand::Snapshot(pid) => snapshot::run(&pid),
        Subcommand::Tracer(ask) => tracer::run(&ask, started),
        Subcommand::Session(ask) => session::run(&ask),
        Subcommand::Slab(ask) => slab::run(&ask),
        Subcommand::List(pattern, verbose) => list::run(pattern.as_deref().unwrap_or("*"), verbose),
        Subcommand::Doctor => doctor::run(),
        Subcommand::Man => args::man(),
        Subcommand::Completions(shell) => args::completions(shell),
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
