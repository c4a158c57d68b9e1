//! `trapline trace`: system calls, live.

use crate::output::Output;
use crate::run::Run;
use crate::{combinations, durations, filter, show, stacks, target};
use clap::ArgMatches;
use engine::captures::Captures;
use engine::{Result, enabling};
use std::ffi::OsString;

/// Runs the command.
pub fn run(m: &ArgMatches, started: u64) -> Result<u8> {
    let (mut selection, raw) = show::filter(m)?;
    filter::apply(m, &mut selection, &[])?;
    let (mut plan, mut why) = target::plan(m, target::target(m)?, &selection)?;
    let captures = stacks::with_calls(m, Captures::default());
    plan.call_captures = enabling::call_captures(&[], captures, &selection.calls)?;
    plan.call_captures.extend(enabling::signal_captures(captures)?);
    target::only_in_kernel(m, &mut plan, &mut why)?;
    durations::apply(m, &mut plan, &selection)?;
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
