//! `trapline trace`: system calls, live.

use crate::output::Output;
use crate::run::Run;
use crate::{combinations, filter, show, target};
use clap::ArgMatches;
use engine::{Error, Result};
use std::ffi::OsString;

/// Runs the command.
pub fn run(m: &ArgMatches, started: u64) -> Result<u8> {
    if m.get_flag("stack-trace") {
        return Err(Error::usage("-k", "stacks are not shown yet", "leave it out"));
    }
    let (mut selection, raw) = show::filter(m)?;
    filter::apply(m, &mut selection, &[])?;
    let (plan, why) = target::plan(m, target::target(m)?, &selection)?;
    combinations::say_without_effect(m, true);
    combinations::say_without_file(m);
    let output = m.get_one::<OsString>("output");
    let per_thread = m.get_count("follow") > 1 && output.is_some();
    // Opened before the command starts: a file that cannot be written is an error, not a surprise.
    let output = Output::open(output, m.get_flag("output-append-mode"), per_thread)?;
    let kind = m.get_one::<String>("as").map(String::as_str);
    let view = show::views(m, &output, raw, kind, show::Clocks::session(m))?;
    Run::through(m, plan, &why, selection, vec![(view, output)], None, None)?.finish(m, started)
}
