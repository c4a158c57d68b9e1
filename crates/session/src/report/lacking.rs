//! Why a report shows nothing, or less than was asked for.

use super::Outcome;
use crate::ask::{Ask, Show};
use crate::filter;
use crate::stacks;
use crate::view::calls;
use crate::view::known::Known;
use ctf::trace::Trace;
use engine::pipeline::filter::EventFilter;
use engine::pipeline::selection::Selection;
use engine::request::functions::Functions;
use views::calls::Demangle;

/// Why nothing was shown, if so. `read` is how many events were read.
pub(super) fn nothing_shown(
    ask: &Ask,
    trace: &Trace,
    selection: &Selection,
    shown: &Outcome,
    read: Option<u64>,
) -> Option<String> {
    // The first filter is the command line's.
    if let Some(tally) = selection.expression.as_ref().and(selection.filters.first()).map(EventFilter::tally)
        && let Some(why) = filter::nothing_matched(selection, &tally.total(), tally.passed())
    {
        return Some(why);
    }
    let used = filter::used(ask);
    let why = match (read?, used.is_empty()) {
        // Those who ask for mappings get them, figures are of the whole trace, and JSON has trapline's own events.
        _ if !shown.tells && shown.written && (selection.mappings || is_json(ask)) => return None,
        _ if shown.tells && shown.written => lacks(ask, trace, shown)?,
        (0, _) if ask.trace.from.is_some() || ask.trace.to.is_some() => "no event lies between --from and --to".into(),
        (0, _) => "it has no events".into(),
        (n, _) if shown.tells => lacks(ask, trace, shown)
            .unwrap_or_else(|| format!("this view shows none of its {n} events (without --as, all are shown)")),
        (n, false) => format!("none of the {n} events that were read is selected by {}", used.join(", ")),
        (n, true) => format!(
            "nothing that was to be recorded has happened; its {n} events are trapline's own, which --as json --mappings shows"
        ),
    };
    Some(nothing(trace, &why))
}

/// Whether events are shown as JSON, and nothing else is.
pub(super) fn is_json(ask: &Ask) -> bool {
    !ask.show.is_empty() && ask.show.iter().all(|show| show.view == "json") && ask.table.latency.is_none()
}

/// That there is nothing to show, and why.
pub(super) fn nothing(trace: &Trace, why: &str) -> String {
    format!("{}: nothing to show: {why}", trace.dir.display())
}

/// That the trace has no function that `-F` and `-N` leave, if so.
pub(super) fn unnamed(ask: &Ask, trace: &Trace) -> Option<String> {
    let selection = calls::selection(ask).ok().filter(|s| !s.only.is_empty() || !s.without.is_empty())?;
    let known =
        Known::new(std::iter::once(trace), calls::demangle(ask, Demangle::Simple), &Functions::default(), &selection);
    let all = "'trapline report --as functions DIR' lists them";
    (!known.has_any_of(&selection)).then(|| format!("-F and -N select none of its functions ({all})"))
}

/// What a trace lacks of which a view is made that shows other events too, or a heading.
pub(super) fn lacks(ask: &Ask, trace: &Trace, shown: &Outcome) -> Option<String> {
    let of_functions = |show: &Show| matches!(show.view.as_str(), "tree" | "cat" | "calls-json");
    let has_functions = || trace.data.function_threads().iter().any(|thread| thread.records() > 0);
    if ask.table.by.is_some() && !stacks::have_any(trace.classes()) {
        return Some("none of its events has a stack (record with --kstack or --ustack)".into());
    }
    if ask.show.iter().any(of_functions) && !ask.calls.syscalls && !ask.trace.follow && !has_functions() {
        return Some("it has no function calls (record with 'trapline graph -o DIR', or add --syscalls)".into());
    }
    if ask.table.latency.is_some() && !shown.calls {
        return Some("none of its events is a system call (leave --latency out)".into());
    }
    if ask.show.iter().any(of_functions) { unnamed(ask, trace) } else { None }
}
