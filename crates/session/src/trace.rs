//! `trapline trace`: system calls, live.

use crate::ask::Ask;
use crate::output::Output;
use crate::run::{Run, Status};
use crate::view::screen::Clocks;
use crate::view::{self, Kind, Make, Of, lines};
use crate::{combinations, durations, filter, stacks, target};
use engine::Result;
use engine::capture::captures::Captures;
use engine::request::call_enabling;
use engine::request::select::FD_CALLS as DESCRIPTORS;
use std::borrow::Cow;

/// The default request of a table of descriptors: the calls that open and close them, with their stacks.
pub fn for_view<'a>(ask: &'a Ask, kind: &Kind) -> Cow<'a, Ask> {
    let Make::Table(_) = kind.make else { return Cow::Borrowed(ask) };
    let mut ask = ask.clone();
    if ask.select.expr.is_empty() && ask.select.trace.is_empty() {
        ask.select.trace = vec![DESCRIPTORS.join(",")];
    }
    if ask.format.stack_trace.is_empty() && !ask.format.no_stacks {
        ask.format.stack_trace = vec!["source".into()];
    }
    Cow::Owned(ask)
}

/// Runs the command.
pub fn run(ask: &Ask) -> Result<Status> {
    let kind = view::find(ask.show.first().map_or("text", |show| &show.view), &[Of::Events])?;
    let ask = &for_view(ask, kind);
    let mut selection = filter::selection(ask)?;
    filter::apply(ask, &mut selection, &[])?;
    let (mut plan, mut why) = target::plan(ask, target::target(ask)?, &selection)?;
    let captures = stacks::with_calls(&ask.format, Captures::default());
    plan.call_captures = call_enabling::call_captures(&[], captures, &selection.calls)?;
    plan.call_captures.extend(call_enabling::signal_captures(captures)?);
    target::only_in_kernel(ask, &mut plan, &mut why)?;
    durations::apply(ask, &mut plan, &selection)?;
    combinations::say_without_effect(ask, true);
    combinations::say_without_file(ask);
    let output = ask.keep.output.as_ref();
    let per_thread = ask.target.is_per_thread() && output.is_some();
    // Opened before the command starts: a file that cannot be written is an error, not a surprise.
    let output = Output::open(output, ask.keep.append, per_thread)?;
    let clocks = Clocks::session(&ask.format).of_machine(ask.target.all, &selection);
    let shown = lines::shown(ask, &output, kind, clocks)?;
    Run::through(ask, plan, &why, selection, vec![(shown, output)], None, None)?.finish(ask)
}
