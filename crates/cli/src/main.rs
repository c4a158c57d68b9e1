//! `trapline`: the command line: arguments, help, and what is printed of lists. What the commands do is in `session`.

mod args;
mod doctor;
mod list;
mod repair;
mod schema;
mod session;
mod slab;

use ::session::output::complain;
use ::session::run::Status;
use ::session::{copy, diff, graph, heap, open, profile, script, threads, tracer};
use args::Subcommand;
use std::process::ExitCode;

fn main() -> ExitCode {
    let started = sys::time::monotonic();
    // If that fails, such a file ends trapline.
    let _ = sys::signal::fail_beyond_the_size_limit();
    let argv: Vec<std::ffi::OsString> = std::env::args_os().collect();
    let subcommand = match args::parse(&argv, started) {
        Ok(subcommand) => subcommand,
        Err(status) => return status,
    };
    let result = match subcommand {
        Subcommand::Trace(ask) => script::trace(&ask).map(Status::pass_on),
        Subcommand::Record(ask) => script::record(&ask).map(Status::pass_on),
        Subcommand::Profile(ask) => profile::run(&ask).map(Status::pass_on),
        Subcommand::Graph(ask) => graph::run(&ask).map(Status::pass_on),
        Subcommand::Heap(ask) => heap::run(&ask).map(Status::pass_on),
        Subcommand::Run(ask) => script::run(&ask).map(Status::pass_on),
        Subcommand::Test(ask) => script::test::run(&ask),
        Subcommand::Stacks(ask) => threads::run(&ask),
        Subcommand::Collector(ask) => heap::control::run(&ask),
        Subcommand::Report(ask) => script::report(&ask),
        Subcommand::Open(ask) => open::run(&ask),
        Subcommand::Diff(ask, before, after) => diff::run(&ask, &before, &after),
        Subcommand::Repair(dir) => repair::run(&dir),
        Subcommand::Pack(ask) => copy::run(&ask),
        Subcommand::Tracer(ask) => tracer::run(&ask).map(Status::pass_on),
        Subcommand::Session(ask) => session::run(&ask),
        Subcommand::Slab(ask) => slab::run(&ask),
        Subcommand::List(pattern, verbose) => list::run(pattern.as_deref().unwrap_or("*"), verbose),
        Subcommand::Schema(part, json) => schema::run(part.as_deref(), json),
        Subcommand::Doctor => doctor::run(),
        Subcommand::Help(words) => args::help(&words),
        Subcommand::Man(page, dir) => args::man(page.as_deref(), dir.as_deref()),
        Subcommand::Completions(shell) => args::completions(&shell),
        Subcommand::Complete(before, after) => args::complete(&before, &after),
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
