//! Views of function calls from the command line.

use crate::ask::{Ask, Tables};
use crate::output::Output;
use crate::show::Shown;
use crate::target;
use engine::pipeline::functions::full_name;
use engine::{Error, Result};
use std::io;
use views::call_events::{CallEvents, Shown as Named};
use views::calls::brief::{Brief, Screen};
use views::calls::short::short;
use views::calls::sort::{SORTS, Sort};
use views::calls::tree::style::Style;
use views::calls::{CallView, Demangle, Making, Selection};
use views::options::{Options, Prefix};

/// The calls that are to be shown.
pub fn selection(ask: &Ask) -> Result<Selection> {
    let shortest = ask.calls.min_time.as_ref();
    let shortest = shortest.map(|s| target::duration("--min-time", s)).transpose()?;
    Ok(Selection {
        only: ask.calls.function.clone(),
        without: ask.calls.no_function.clone(),
        depth: ask.calls.depth.unwrap_or(usize::MAX),
        shortest: shortest.unwrap_or(0),
    })
}

/// The order of a table of functions.
pub fn sort(table: &Tables) -> Result<Sort> {
    let Some(name) = &table.sort_by else { return Ok(Sort::default()) };
    let names: Vec<&str> = SORTS.iter().map(|(name, _)| *name).collect();
    Sort::parse(name).ok_or_else(|| Error::usage(format!("-S {name}"), "no such order", names.join(", ")))
}

/// How functions are called: as the command line says, or else as a view does.
pub fn demangle(ask: &Ask, default: Demangle) -> Demangle {
    match ask.calls.demangle.as_deref() {
        Some("simple") => Demangle::Simple,
        Some("full") => Demangle::Full,
        Some("no") => Demangle::No,
        _ => default,
    }
}

/// What makes such names.
pub fn named(demangle: Demangle) -> Named {
    match demangle {
        Demangle::Simple => |f| if f.name == f.symbol { f.name.to_owned() } else { short(f.name).into_owned() },
        Demangle::Plain => |f| f.name.to_owned(),
        Demangle::Full => |f| full_name(f.symbol).unwrap_or_else(|| f.symbol.to_owned()),
        Demangle::No => |f| f.symbol.to_owned(),
    }
}

/// The number of rows or edges by `--rows`.
pub fn rows(table: &Tables) -> Option<usize> {
    table.rows.and_then(|n| usize::try_from(n).ok())
}

/// What lines of a tree look like.
fn style(ask: &Ask, colour: bool, terminal: bool) -> Style {
    let (columns, _) = sys::process::terminal_size(&io::stdout()).unwrap_or((100, 24));
    let width = if terminal { columns.into() } else { usize::MAX };
    Style { time: !ask.calls.no_time, module: ask.calls.module, colour, width }
}

/// The screen of the slowest calls.
fn screen() -> Screen {
    let (_, rows) = sys::process::terminal_size(&io::stdout()).unwrap_or((100, 24));
    let hint = "All calls: --as tree | less. By function: --as functions".to_owned();
    Screen { rows: usize::from(rows).saturating_sub(3).max(10), hint }
}

/// The slowest calls, for a terminal.
pub fn brief(ask: &Ask, selection: Selection, colour: bool) -> Brief {
    Brief::new(style(ask, colour, true), selection, screen())
}

/// How a view of calls is made, and how functions are called in it where nobody has said it.
pub type How = (fn(Making) -> Box<dyn CallView>, Demangle);

/// A view of calls that takes events in their order.
pub fn shown(ask: &Ask, (view, names): How, output: &Output, options: Options) -> Result<Shown> {
    let (selection, terminal) = (selection(ask)?, output.is_terminal());
    let view = view(Making { selection, style: style(ask, options.colour, terminal), screen: terminal.then(screen) });
    let view = CallEvents::new(view).names(named(demangle(ask, names)));
    let view = if ask.calls.syscalls {
        view.system_calls(Options {
            prefix: Prefix::Never,
            stamp: Default::default(),
            colour: false,
            column: 0,
            ..options
        })
    } else {
        view
    };
    Ok(Shown::table(Box::new(view)))
}
