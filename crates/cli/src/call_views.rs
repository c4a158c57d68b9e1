//! Views of function calls from the command line.

use crate::ask::Ask;
use crate::output::Output;
use crate::show::{Clocks, Shown};
use crate::target;
use engine::pipeline::functions::full_name;
use engine::{Error, Result};
use std::io;
use views::call_events::{CallEvents, Shown as Named};
use views::calls::brief::{Brief, Screen};
use views::calls::cat::Cat;
use views::calls::functions::{SORTS, Sort};
use views::calls::json::Json;
use views::calls::short::short;
use views::calls::timeline::Timeline;
use views::calls::timeline::chrome::Chrome;
use views::calls::timeline::perfetto::Perfetto;
use views::calls::tree::Tree;
use views::calls::tree::style::Style;
use views::calls::{CallView, Selection};
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
pub fn sort(ask: &Ask) -> Result<Sort> {
    let Some(name) = ask.table.sort_by.as_ref() else { return Ok(Sort::default()) };
    let names: Vec<&str> = SORTS.iter().map(|(name, _)| *name).collect();
    Sort::parse(name).ok_or_else(|| Error::usage(format!("-S {name}"), "no such order", names.join(", ")))
}

/// How functions are called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Demangle {
    /// By their demangled names, without template arguments and parameters.
    Simple,
    /// By their demangled names without parameters.
    Plain,
    /// By their demangled names.
    Full,
    /// As the linker calls them.
    No,
}

impl Demangle {
    /// What the command line asks for.
    pub fn of(ask: &Ask, default: Demangle) -> Demangle {
        match ask.calls.demangle.as_deref() {
            Some("simple") => Demangle::Simple,
            Some("full") => Demangle::Full,
            Some("no") => Demangle::No,
            _ => default,
        }
    }

    /// What makes such names.
    pub fn shown(self) -> Named {
        match self {
            Demangle::Simple => |f| if f.name == f.symbol { f.name.to_owned() } else { short(f.name).into_owned() },
            Demangle::Plain => |f| f.name.to_owned(),
            Demangle::Full => |f| full_name(f.symbol).unwrap_or_else(|| f.symbol.to_owned()),
            Demangle::No => |f| f.symbol.to_owned(),
        }
    }
}

/// How many rows or edges are shown, if that is asked for.
pub fn rows(ask: &Ask) -> Option<usize> {
    ask.table.rows.as_ref().and_then(|n| usize::try_from(*n).ok())
}

/// What lines of a tree look like.
fn style(ask: &Ask, colour: bool, terminal: bool) -> Style {
    let (columns, _) = sys::process::terminal_size(&io::stdout()).unwrap_or((100, 24));
    let width = if terminal { columns.into() } else { usize::MAX };
    Style { time: !ask.calls.no_time, module: ask.calls.module, colour, width }
}

/// The tree for a terminal: the slowest calls on a screen.
pub fn brief(ask: &Ask, selection: Selection, colour: bool) -> Brief {
    let (_, rows) = sys::process::terminal_size(&io::stdout()).unwrap_or((100, 24));
    let hint = "All calls: --as tree | less. By function: --as functions".to_owned();
    let screen = Screen { rows: usize::from(rows).saturating_sub(3).max(10), hint };
    Brief::new(style(ask, colour, true), selection, screen)
}

/// A view of calls that takes events in their order, if `kind` is one. On a terminal a tree is a short one.
pub fn view(
    ask: &Ask,
    kind: &str,
    file: Option<&str>,
    output: &Output,
    options: Options,
    clocks: Clocks,
) -> Result<Option<Shown>> {
    let selection = selection(ask)?;
    let style = style(ask, options.colour, output.is_terminal());
    let view: Box<dyn CallView> = match kind {
        "tree" if output.is_terminal() => Box::new(brief(ask, selection, options.colour)),
        "tree" => Box::new(Tree::new(style, selection)),
        "cat" => Box::new(Cat::new(selection)),
        "calls-json" => Box::new(Json::new(selection)),
        "timeline" if file.is_some_and(|f| f.ends_with(".json")) => Box::new(Timeline::new(Chrome::new(), selection)),
        "timeline" if output.is_terminal() => {
            return Err(Error::usage("--as timeline", "it is binary", "--as timeline=FILE, for ui.perfetto.dev"));
        }
        "timeline" => Box::new(Timeline::new(Perfetto::new(Some(clocks.realtime_offset)), selection)),
        _ => return Ok(None),
    };
    let default = if kind == "calls-json" { Demangle::Plain } else { Demangle::Simple };
    let view = CallEvents::new(view).names(Demangle::of(ask, default).shown());
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
    Ok(Some(Shown::table(Box::new(view))))
}
