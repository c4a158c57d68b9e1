//! `trapline diff A B`: what has changed from one recording to another: the functions that were called, the heap, or the
//! stacks of a profile.

use crate::ask::{Ask, Show};
use crate::call_diff;
use crate::heap::past as heap;
use crate::output::Output;
use crate::profile;
use crate::report::whole;
use crate::view::calls;
use crate::view::screen;
use crate::view::totals::{self, Asked, Calls};
use ctf::trace::{Found, Trace};
use engine::request::functions::Functions;
use engine::{Error, Result};
use std::path::Path;
use views::calls::Demangle;
use views::calls::diff::{Diff, Side, Style};
use views::calls::runs::Runs;
use views::calls::totals::Totals;

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
    if asks_calls {
        return call_diff::run(ask, &call_diff::Side::read(a)?, &call_diff::Side::read(b)?);
    }
    if call_diff::is_several(a) || call_diff::is_several(b) {
        let sides = [call_diff::traces(a)?, call_diff::traces(b)?];
        let only_calls = || sides.iter().flatten().all(totals::has_calls_only);
        if of_functions(&views, only_calls)? {
            return functions(ask, &views, &sides);
        }
        let [before, after] = sides.map(call_diff::Side::of);
        return call_diff::run(ask, &before, &after);
    }
    if ask.show.is_empty() && [a, b].iter().all(|dir| call_diff::is_trace(dir) && !has_calls_only(dir)) {
        let (before, after) = (call_diff::Side::read(a)?, call_diff::Side::read(b)?);
        let has_none = before.is_empty() && after.is_empty();
        if !before.has_stacks() && !after.has_stacks() && !has_none {
            return call_diff::run(ask, &before, &after);
        }
    }
    if !of_functions(&views, || has_calls_only(a) && has_calls_only(b))? {
        return profile::diff::run(ask, a, b);
    }
    functions(ask, &views, &[vec![*call_diff::trace(a)?], vec![*call_diff::trace(b)?]])
}

/// Whether function calls are compared: by request, or by default where the traces have nothing else.
fn of_functions(views: &[(Option<Kind>, Option<&str>)], nothing_else: impl Fn() -> bool) -> Result<bool> {
    match views.iter().filter(|v| v.0.is_some()).count() {
        0 if views.is_empty() => Ok(nothing_else()),
        0 => Ok(false),
        n if n == views.len() => Ok(true),
        _ => {
            let todo = "run it once for each";
            Err(Error::usage("--as", "functions are compared by calls, other views by stacks", todo))
        }
    }
}

/// Compares the functions of the recordings of two sides.
fn functions(ask: &Ask, views: &[(Option<Kind>, Option<&str>)], sides: &[Vec<Trace>; 2]) -> Result<u8> {
    let sort = calls::sort(&ask.table)?;
    let outputs = match views.is_empty() {
        true => vec![(Kind::Functions, Output::view(None)?)],
        false => {
            let named = views.iter().filter_map(|(kind, file)| Some(((*kind)?, *file)));
            named.map(|(kind, file)| Ok((kind, Output::view(file)?))).collect::<Result<Vec<_>>>()?
        }
    };
    let demangle = calls::demangle(ask, Demangle::Simple);
    let run = |trace| {
        let calls = Calls::new(std::iter::once((trace, 0..=u64::MAX)), asked(ask)?, demangle)?;
        Ok((calls.totals(), calls))
    };
    let [before, after] =
        sides.each_ref().map(|side| side.iter().map(run).collect::<Result<Vec<(Totals, Calls<'_>)>>>());
    let (before, after) = (before?, after?);
    let (before, after) = (runs_of(&before), runs_of(&after));
    for (kind, output) in outputs {
        let mut output = output.of_the_past();
        let (rows, width) = screen::table_size(&output);
        let most = calls::rows(&ask.table);
        let style = Style { sort, rows: most.unwrap_or(rows), width, colour: screen::colour(&ask.format, &output) };
        let (most, out) = (most.unwrap_or(usize::MAX), output.buffer());
        match (kind, &before[..], &after[..]) {
            (Kind::Functions, [before], [after]) => Diff { before: *before, after: *after }.table(style, out),
            (Kind::Json, [before], [after]) => Diff { before: *before, after: *after }.json(sort, most, out),
            (Kind::Functions, before, after) => Runs { before, after }.table(style, out),
            (Kind::Json, before, after) => Runs { before, after }.json(sort, most, out),
        }
        output.flush();
        output.close();
        output.take_trouble().map_or(Ok(()), Err)?;
    }
    call_diff::tell(ask, sides.iter().flatten())
}

fn runs_of<'r>(all: &'r [(Totals, Calls<'_>)]) -> Vec<Side<'r>> {
    all.iter().map(|(totals, calls)| Side { totals, functions: calls.functions() }).collect()
}

/// Which calls are compared.
fn asked(ask: &Ask) -> Result<Asked> {
    let selection = calls::selection(ask)?;
    Ok(Asked { pids: Vec::new(), wanted: Functions::default(), selection })
}

/// Whether this is a trace with function calls and without stacks. A trace that cannot be opened is reported later, where it is read.
fn has_calls_only(dir: &Path) -> bool {
    matches!(ctf::trace::open(dir), Ok(Found::Native(t)) if totals::has_calls_only(&t))
}
