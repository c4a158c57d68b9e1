//! What of a trace a report shows: calls, probes, processes, filters.

use crate::ask::{Ask, Select, Show};
use crate::filter;
use crate::manner::Manner;
use crate::view::screen::Clocks;
use crate::view::{self, Make};
use ctf::trace::Trace;
use engine::pipeline::filter::EventFilter;
use engine::pipeline::selection::Selection;
use engine::request::expression::Expression;
use engine::request::functions::Functions;
use engine::request::parse;
use engine::request::select::Calls;
use engine::request::select::for_descriptors;
use engine::{Error, Result};
use events::{Class, Schema};
use std::sync::Arc;
use views::options::FdNames;

/// What is to be shown.
pub(super) fn filter_of(ask: &Ask, trace: &Trace) -> Result<Selection> {
    let (calls, probes) = selected(ask);
    let mut selection = filter::selection_of(ask, calls)?;
    // Where only other probes are selected, what happens to threads is not shown, as it is not recorded then.
    selection.lives = !selection.calls.is_empty() || probes.as_ref().is_none_or(Vec::is_empty);
    selection.probes = probes;
    // What is in the trace is counted whole; live views have no mappings.
    selection.mappings =
        ask.trace.mappings || ask.show.iter().any(|v| v.view.starts_with("stats") || is_whole(v, ask, trace));
    if let Some(selected) = trace.metadata.env_str("select").filter(|_| selection.calls.is_all())
        && let Ok(calls) = Calls::parse(selected)
    {
        selection.lives = !calls.is_empty();
        selection.calls = calls;
    }
    let probes = probes_of(trace, &selection);
    selection.expression = filter::parse(ask, &selection.calls, &probes)?;
    filters_of(trace, &mut selection);
    Ok(selection)
}

/// The expressions of `-e` that are about calls, and the patterns of other probes. Where calls are named alone, no other probe is
/// selected; without a name, and for `all` and what is not, all of them are.
pub(super) fn selected(ask: &Ask) -> (Vec<String>, Option<Vec<String>>) {
    let (mut calls, mut probes, mut named) = (Vec::new(), Vec::new(), false);
    for text in ask.select.expressions() {
        let (patterns, others): (Vec<String>, Vec<String>) =
            parse::names(text).into_iter().partition(|name| parse::is_probe(name));
        if patterns.is_empty() {
            named |= !filter::is_qualified(text) && !text.starts_with('!') && text != "all";
            calls.push(text.to_owned());
            continue;
        }
        named = true;
        probes.extend(patterns);
        if !others.is_empty() {
            calls.push(others.join(","));
        }
    }
    if named && calls.is_empty() {
        calls.push("none".into());
    }
    (calls, named.then_some(probes))
}

/// The classes of selected probes other than calls that are in a trace; `begin` and `end` of the session are not filtered.
pub(super) fn probes_of(trace: &Trace, selection: &Selection) -> Vec<&'static Schema> {
    let known = trace.classes();
    let filtered =
        |s: &&Schema| s.class == Class::Probe && !matches!(s.name, "begin" | "end") && selection.is_selected(s);
    known.filter(filtered).collect()
}

/// The clocks of the machine that has recorded the trace.
pub(super) fn clocks_of(trace: &Trace, selection: &Selection) -> Clocks {
    let clock = trace.metadata.clock(ctf::classes::CLOCK);
    let machine = trace.metadata.env_str("machine");
    Clocks {
        no_strangers: machine == Some("part") || machine.is_some() && selection.is_partial(),
        realtime_offset: clock.map_or(0, |c| c.offset_s.saturating_mul(1_000_000_000).saturating_add(c.offset)),
        utc_offset: trace.metadata.env_int("utc_offset").unwrap_or(0),
        string: trace.metadata.env_int("string_limit").and_then(|n| n.try_into().ok()),
    }
}

/// Whether a view or the filter asks for names of descriptors or threads.
pub(super) fn needs_names(ask: &Ask, selection: &Selection) -> Result<bool> {
    let manner = Manner::of(ask)?;
    Ok(manner.fd_names != FdNames::NONE
        || !selection.paths.is_empty()
        || manner.comm
        || ask.table.latency.as_ref().is_some_and(|by| by != "call")
        || selection.filters.iter().any(|s| s.filter().asks_comm() || s.filter().asks_ids()))
}

/// Refuses selections of events for views that read function records only.
pub(super) fn selected_functions(ask: &Ask) -> Result<Functions> {
    let refused = |what: String| {
        let todo = "use -e 'function:NAME', --function, --no-function, --depth, -p, --from and --to";
        Err(Error::usage(what, "it does not select function calls in this view", todo))
    };
    let Select { trace, signal, status, trace_path, filter, .. } = &ask.select;
    let others = [
        ("trace", !trace.is_empty()),
        ("signal", !signal.is_empty()),
        ("status", !status.is_empty()),
        ("trace-path", !trace_path.is_empty()),
        ("where", filter.is_some()),
    ];
    if let Some((id, _)) = others.iter().find(|(_, given)| *given) {
        return refused(format!("--{id}"));
    }
    let mut functions = Functions::default();
    for text in ask.select.expr.iter() {
        for name in parse::names(text) {
            match name.strip_prefix(Functions::PROVIDER).filter(|n| !n.ends_with(":entry") && !n.ends_with(":exit")) {
                Some(pattern) => functions.wanted.push(pattern.to_owned()),
                None => return refused(format!("-e {name}")),
            }
        }
    }
    Ok(functions)
}

/// Applies `--where`, and the recording's own filter again: a recording also has rejected calls that names of descriptors need.
pub(super) fn filters_of(trace: &Trace, selection: &mut Selection) {
    if let Some(own) = &selection.expression {
        let probes = |s: &Schema| s.class == Class::Probe && selection.is_selected(s);
        selection.filters.push(EventFilter::new(Arc::clone(own), |s| selection.calls.contains(s) || probes(s)));
    }
    let Some(text) = trace.metadata.env_str("where") else { return };
    let params: Vec<String> =
        (1..).map_while(|i| trace.metadata.env_str(&format!("where_{i}")).map(str::to_string)).collect();
    // Typed for the calls that are shown, not for those that were selected: one that is not for all of them is not asked again.
    if let Ok(recorded) = Expression::new(text, &params, &selection.calls, &[])
        && recorded.note().is_none()
    {
        selection
            .filters
            .push(EventFilter::new(Arc::new(recorded), |s| selection.calls.contains(s) && for_descriptors(s)));
    }
}

pub(super) fn pids(ask: &Ask) -> Result<Vec<u32>> {
    let lists = ask.trace.pid.iter();
    lists
        .flat_map(|l| l.split([',', ' ']).map(str::to_string).collect::<Vec<_>>())
        .filter(|p| !p.is_empty())
        .map(|p| p.parse().map_err(|_| Error::usage(format!("-p {p}"), "not a process id", "for instance -p 1234")))
        .collect()
}

/// Whether a view shows everything of a trace, with the names of files.
pub(super) fn is_whole(show: &Show, ask: &Ask, trace: &Trace) -> bool {
    view::of_trace(&show.view, ask, trace)
        .is_ok_and(|kind| matches!(kind.make, Make::Whole { .. } | Make::Directory(_)))
}
