//! Which events: `-e` and its like, and `--where` and `--param`, the filter language on the command line.

use crate::ask::{Ask, Select};
use crate::complain;
use crate::manner;
use engine::pipeline::selection::Selection;
use engine::request::expression::{Expression, Filtered};
use engine::request::select::{Calls, Outcomes, Signals, descriptors};
use engine::{Error, Result};
use events::Schema;
use std::io::Write;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::sync::Arc;

/// The filter that the command line asks for, typed for the calls and the classes of other probes that are selected. A mistake in it is reported here.
pub fn parse(ask: &Ask, calls: &Calls, probes: &[&'static Schema]) -> Result<Option<Arc<Expression>>> {
    let Some(text) = ask.select.filter.as_ref() else {
        // A script has its parameters from there too.
        return match !ask.select.param.is_empty() && ask.script.args.is_empty() {
            true => Err(Error::usage("--param", "there is no filter that could name it", "give --where EXPR too")),
            false => Ok(None),
        };
    };
    let params: Vec<String> = ask.select.param.to_vec();
    match Expression::new(text, &params, calls, probes) {
        Ok(filter) => {
            filter.note().iter().filter(|_| ask.quiet == 0).for_each(|note| complain(note));
            Ok(Some(Arc::new(filter)))
        }
        Err(d) => {
            let terminal = sys::process::is_terminal(&std::io::stderr());
            let said = if terminal { d.block("--where", text) } else { d.line("--where", text) };
            let _ = std::io::stderr().write_all((said + "\n").as_bytes());
            Err(Error::Said)
        }
    }
}

/// Gives the selection a filter, typed for its calls and for the classes of other probes: calls that lack what it names need not
/// be traced.
pub fn apply(ask: &Ask, to: &mut Selection, probes: &[&'static Schema]) -> Result<()> {
    to.expression = parse(ask, &to.calls, probes)?;
    if let Some(filter) = &to.expression {
        to.calls = filter.calls().clone();
    }
    Ok(())
}

/// Why nothing was recorded, if the filter rejected everything or no call was made: `passed` of the selected calls passed it.
pub fn nothing_matched(selection: &Selection, filtered: &Filtered, passed: u64) -> Option<String> {
    let parts = selection.expression.as_ref()?.parts();
    let total = filtered.total();
    if passed > 0 {
        return None;
    }
    if total == 0 {
        return Some("nothing matched: no such call was made".into());
    }
    let (event, was) = if total == 1 { ("event", "was") } else { ("events", "were") };
    let mut reasons: Vec<(u64, String)> = filtered
        .parts
        .iter()
        .zip(parts)
        .filter(|(n, _)| **n > 0)
        .map(|(n, part)| (*n, format!("by '{part}'")))
        .collect();
    if filtered.unknown > 0 {
        reasons.push((filtered.unknown, "because they lack a value that the filter names".into()));
    }
    let why = match reasons.as_slice() {
        [(_, only)] if total == 1 => only.clone(),
        [(_, only)] => format!("all {only}"),
        several => several.iter().map(|(n, why)| format!("{n} {why}")).collect::<Vec<_>>().join(", "),
    };
    Some(format!("nothing matched: {total} {event} {was} rejected, {why}"))
}

/// Why no call was recorded, and what to do: `unselected` of those that were made were not selected.
pub fn no_calls(ask: &Ask, calls: &Calls, unselected: u64) -> String {
    let (used, attached) = (used(ask), !ask.target.attach.is_empty());
    let during = if attached { " while trapline was attached" } else { "" };
    let children = if ask.target.no_follow { "; --no-follow leaves out children and other threads" } else { "" };
    let (names, s) = (used.join(", "), if used.len() == 1 { "s" } else { "" });
    let why = match (used.is_empty(), unselected) {
        _ if calls.is_empty() => "no call is selected (leave -e out to see all calls)".into(),
        (true, _) if attached => {
            format!("no call ended{during} (wait longer, or see what it does: 'trapline profile -p PID')")
        }
        (true, _) => "no call was made".into(),
        (false, 0) => format!("no call that {names} select{s} was made{during} (leave {names} out to see all calls)"),
        (false, 1) => format!("the only call is not what {names} select{s} (leave {names} out to see it)"),
        (false, n) => format!("none of {n} calls is what {names} select{s} (leave {names} out to see them)"),
    };
    format!("nothing recorded: {why}{children}")
}

/// The options that select events and are given.
pub fn used(ask: &Ask) -> Vec<&'static str> {
    let Select { expr, trace, signal, status, .. } = &ask.select;
    let given = [
        ("-e", [expr, trace, signal, status].iter().any(|given| !given.is_empty())),
        ("-p", !ask.trace.pid.is_empty()),
        ("-P", !ask.select.trace_path.is_empty()),
        ("--where", ask.select.filter.is_some()),
        ("-z", ask.select.successful_only),
        ("-Z", ask.select.failed_only),
        ("--from", ask.trace.from.is_some()),
        ("--to", ask.trace.to.is_some()),
    ];
    given.iter().filter(|(_, given)| *given).map(|(name, _)| *name).collect()
}

/// What the command line selects.
pub fn selection(ask: &Ask) -> Result<Selection> {
    selection_of(ask, ask.select.expressions().map(str::to_owned).collect())
}

/// The selection with these expressions in place of those of `-e`.
pub fn selection_of(ask: &Ask, exprs: Vec<String>) -> Result<Selection> {
    crate::combinations::exclusive(ask)?;
    let mut f = Selection::all();
    let select = &ask.select;
    let exprs = exprs
        .into_iter()
        .chain(select.signal.iter().map(|s| format!("signal={s}")))
        .chain(select.status.iter().map(|s| format!("status={s}")));
    for e in exprs {
        let (kind, set) = manner::qualified(&e).unwrap_or(("trace", &e));
        match kind {
            "trace" => f.calls = Calls::parse(set)?,
            "trace-fds" => f.fds = Some(descriptors("-e trace-fds=", set)?),
            "signal" => f.signals = Signals::parse(set)?,
            "status" => f.outcomes = Outcomes::parse(set)?,
            kind if manner::is_of_manner(kind) => {}
            other => {
                let hint = crate::strace_flags::equivalent(&format!("--{other}"));
                let hint = hint.unwrap_or("trace=, trace-fds=, signal=, status=, abbrev=, verbose=, raw=, read=, write=, quiet= or decode-fds=");
                return Err(Error::usage(format!("-e {other}=…"), "no such qualifier", hint));
            }
        }
    }
    if select.successful_only {
        f.outcomes = Outcomes { successful: true, ..Outcomes::NONE };
    }
    if select.failed_only {
        f.outcomes = Outcomes { failed: true, ..Outcomes::NONE };
    }
    for p in &select.trace_path {
        f.paths.push(p.as_bytes().to_vec());
        if let Ok(full) = std::fs::canonicalize(p) {
            f.paths.push(full.into_os_string().into_vec());
        }
    }
    Ok(f)
}

/// Whether an `-e` is one of strace's with a qualifier: `signal=…`, `status=…`, `raw=…`, `trace=…`.
pub fn is_qualified(text: &str) -> bool {
    manner::qualified(text).is_some()
}
