//! `--where` and `--param`: the filter language on the command line.

use crate::ask::Ask;
use crate::complain;
use engine::pipeline::filter::{Expression, Filtered};
use engine::pipeline::selection::Selection;
use engine::select::Calls;
use engine::{Error, Result};
use events::Schema;
use std::io::Write;
use std::sync::Arc;

/// The filter that the command line asks for, typed for the calls and the classes of other probes that are selected. A mistake in it is reported here.
pub fn parse(ask: &Ask, calls: &Calls, probes: &[&'static Schema]) -> Result<Option<Arc<Expression>>> {
    let Some(text) = ask.select.filter.as_ref() else {
        return match !ask.select.param.is_empty() {
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
