//! `trapline diff A B`: what has changed from one recording to another: the functions that were called, the heap, or the
//! stacks of a profile.

use crate::ask::{Ask, Show};
use crate::call_diff;
use crate::heap::past as heap;
use crate::output::Output;
use crate::profile;
use crate::report::whole;
use crate::view::calls::{self, Demangle};
use crate::view::screen;
use crate::view::totals::{self, Asked, Calls};
use ctf::trace::Found;
use engine::request::functions::Functions;
use engine::{Error, Result};
use std::path::Path;
use views::calls::diff::{Diff, Side, Style};

/// The kinds of differences of calls.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Functions,
    Json,
}

impl Kind {
    fn parse(name: &str) -> Option<Kind> {
        match name {
            "functions" => Some(Kind::Functions),
            "functions-json" => Some(Kind::Json),
            _ => None,
        }
    }
}

/// Runs the command.
pub fn run(ask: &Ask, a: &Path, b: &Path) -> Result<u8> {
    let views: Vec<(Option<Kind>, Option<&str>)> =
        ask.show.iter().map(|Show { view, file }| (Kind::parse(view), file.as_deref())).collect();
    let _ = sys::process::raise_file_limit();
    let is_of_heap = ask.show.iter().all(|show| show.view == "text");
    if is_of_heap && heap::is_of_heap(ask, a) && heap::is_of_heap(ask, b) {
        let (before, after) = (call_diff::trace(a)?, call_diff::trace(b)?);
        heap::diff(ask, &before, &after)?;
        let status = whole::tell(ask, &before, None).max(whole::tell(ask, &after, None));
        return crate::report::damage(&before, status).and(crate::report::damage(&after, status));
    }
    let asks_calls = !ask.show.is_empty() && ask.show.iter().all(|show| call_diff::is_view(&show.view));
    if asks_calls || call_diff::is_several(a) || call_diff::is_several(b) {
        return call_diff::run(ask, &call_diff::Side::read(a)?, &call_diff::Side::read(b)?);
    }
    if ask.show.is_empty() && [a, b].iter().all(|dir| call_diff::is_trace(dir) && !has_calls_only(dir)) {
        let (before, after) = (call_diff::Side::read(a)?, call_diff::Side::read(b)?);
        let has_none = before.is_empty() && after.is_empty();
        if !before.has_stacks() && !after.has_stacks() && !has_none {
            return call_diff::run(ask, &before, &after);
        }
    }
    let of_calls = match views.iter().filter(|v| v.0.is_some()).count() {
        0 if views.is_empty() => has_calls_only(a) && has_calls_only(b),
        0 => false,
        n if n == views.len() => true,
        _ => {
            let todo = "run it once for each";
            return Err(Error::usage("--as", "functions are compared by calls, other views by stacks", todo));
        }
    };
    if !of_calls {
        return profile::diff::run(ask, a, b);
    }
    let sort = calls::sort(&ask.table)?;
    let outputs = match views.is_empty() {
        true => vec![(Kind::Functions, Output::view(None)?)],
        false => {
            let named = views.iter().filter_map(|(kind, file)| Some(((*kind)?, *file)));
            named.map(|(kind, file)| Ok((kind, Output::view(file)?))).collect::<Result<Vec<_>>>()?
        }
    };
    let (before, after) = (call_diff::trace(a)?, call_diff::trace(b)?);
    let demangle = Demangle::of(ask, Demangle::Simple);
    let calls = |trace| Calls::new(std::iter::once((trace, 0..=u64::MAX)), asked(ask)?, demangle);
    let (from, to) = (calls(&before)?, calls(&after)?);
    let totals = (from.totals(), to.totals());
    let diff = Diff {
        before: Side { totals: &totals.0, functions: from.functions() },
        after: Side { totals: &totals.1, functions: to.functions() },
    };
    for (kind, output) in outputs {
        let mut output = output.of_the_past();
        let (rows, width) = screen::table_size(&output);
        let rows = calls::rows(&ask.table).unwrap_or(rows);
        match kind {
            Kind::Functions => {
                let style = Style { sort, rows, width, colour: screen::colour(&ask.format, &output) };
                diff.table(style, output.buffer());
            }
            Kind::Json => diff.json(sort, calls::rows(&ask.table).unwrap_or(usize::MAX), output.buffer()),
        }
        output.flush();
        output.close();
        output.take_trouble().map_or(Ok(()), Err)?;
    }
    let status = whole::tell(ask, &before, None).max(whole::tell(ask, &after, None));
    crate::report::damage(&before, status).and(crate::report::damage(&after, status))
}

/// Which calls are compared.
fn asked(ask: &Ask) -> Result<Asked> {
    let selection = calls::selection(ask)?;
    Ok(Asked { pids: Vec::new(), wanted: Functions::default(), selection })
}

/// Whether this is a trace with function calls and without stacks. What cannot be opened is reported by whoever needs it.
fn has_calls_only(dir: &Path) -> bool {
    matches!(ctf::trace::open(dir), Ok(Found::Native(t)) if totals::has_calls_only(&t))
}
