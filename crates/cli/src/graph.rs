//! `trapline graph`: which functions a command calls. It is a recording and a report of it. And the views of function calls.

use crate::complain;
use crate::output::Output;
use crate::record::{self, Planned};
use crate::run::Run;
use crate::show::{self, Clocks, Shown};
use crate::{args, target};
use clap::ArgMatches;
use engine::functions::Functions;
use engine::pipeline::selection::Selection;
use engine::select::Calls;
use engine::{Error, Result};
use std::ffi::OsString;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use views::call_events::CallEvents;
use views::calls::brief::{Brief, Screen};
use views::calls::cat::Cat;
use views::calls::functions::{SORTS, Sort};
use views::calls::json::Json;
use views::calls::timeline::Timeline;
use views::calls::timeline::chrome::Chrome;
use views::calls::timeline::perfetto::Perfetto;
use views::calls::tree::Tree;
use views::calls::tree::style::Style;
use views::calls::{self, CallView};
use views::options::{Options, Prefix};

/// Runs the command.
pub fn run(m: &ArgMatches, started: u64) -> Result<u8> {
    let selected = selection(m)?;
    let functions = Functions {
        libraries: m.get_flag("lib"),
        minimum: Some(selected.shortest).filter(|ns| *ns > 0),
        programs: m.get_many::<String>("program").into_iter().flatten().cloned().collect(),
        ..Functions::default()
    };
    let mut wanted: Vec<String> = m.get_many::<String>("as").into_iter().flatten().cloned().collect();
    let dir = m.get_one::<OsString>("output").map(PathBuf::from);
    if dir.is_none() && wanted.is_empty() {
        wanted.push("tree".into());
    }
    for view in &wanted {
        let name = view.split_once('=').map_or(view.as_str(), |(name, _)| name);
        if !VIEWS.contains(&name) {
            return Err(Error::usage(format!("--as {name}"), "no such view", VIEWS.join(", ")));
        }
    }
    let mut nothing = Selection::all();
    nothing.calls = Calls::parse("none")?;
    let Planned { mut plan, why, selection } = record::plan_functions(m, functions, nothing)?;
    let temporary = if dir.is_none() { Some(Temporary::new()?) } else { None };
    let dir = dir.unwrap_or_else(|| temporary.as_ref().map_or_else(PathBuf::new, |t| t.0.join("trace")));
    let keep = record::recorder(m, dir.clone(), &mut plan, &selection, false, show::Clocks::session(m))?;
    let run = Run::through(m, plan, &why, selection, show::Views::new(), Some(keep), None)?;
    run.finish_with(m, started, |events| {
        let shown = match events {
            _ if wanted.is_empty() => Ok(()),
            0 => {
                complain("no call of a function was recorded");
                Ok(())
            }
            _ => report_of(m, &dir, &wanted),
        };
        drop(temporary);
        shown
    })
}

/// Views of function calls, as `--as` names them.
const VIEWS: [&str; 10] =
    ["tree", "cat", "functions", "stat", "callgraph", "mermaid", "flame", "folded", "timeline", "calls-json"];

/// Shows the trace as `trapline report` does.
fn report_of(m: &ArgMatches, dir: &Path, wanted: &[String]) -> Result<()> {
    let mut words: Vec<OsString> = vec!["trapline".into(), "report".into()];
    for (id, values) in [("as", wanted.to_vec())].into_iter().chain(PASSED_ON.map(|id| (id, texts(m, id)))) {
        words.extend(values.into_iter().map(|v| format!("--{id}={v}").into()));
    }
    let flags = ["no-time", "module"].into_iter().filter(|f| m.get_flag(f));
    words.extend(flags.map(|f| format!("--{f}").into()));
    words.extend((0..m.get_count("quiet")).map(|_| "-q".into()));
    words.push(dir.into());
    let matches = args::command().try_get_matches_from(&words);
    let matches = matches.map_err(|e| Error::usage("--as", e.to_string(), "see 'trapline graph --help'"))?;
    match matches.subcommand() {
        Some(("report", m)) => crate::report::run(m).map(drop),
        _ => Ok(()),
    }
}

/// Options with a value that mean the same in a report.
const PASSED_ON: [&str; 7] = ["function", "no-function", "min-time", "depth", "summary-sort-by", "rows", "color"];

/// The values of an option as they were given.
fn texts(m: &ArgMatches, id: &str) -> Vec<String> {
    let raw = m.get_raw(id).into_iter().flatten();
    let given = m.value_source(id) == Some(clap::parser::ValueSource::CommandLine);
    raw.filter(|_| given).map(|v| v.to_string_lossy().into_owned()).collect()
}

/// A directory that goes with the value.
struct Temporary(PathBuf);

impl Temporary {
    fn new() -> Result<Temporary> {
        let mut random = [0; 8];
        let dir = sys::process::random(&mut random).and_then(|()| {
            let name = format!("trapline-graph-{:016x}", u64::from_le_bytes(random));
            let dir = std::env::temp_dir().join(name);
            std::fs::DirBuilder::new().mode(0o700).create(&dir).map(|()| dir)
        });
        dir.map(Temporary).map_err(|e| Error::failed("temporary directory", e.to_string(), "set TMPDIR, or use -o DIR"))
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The calls that are to be shown.
pub fn selection(m: &ArgMatches) -> Result<calls::Selection> {
    let all = |id: &str| m.get_many::<String>(id).into_iter().flatten().cloned().collect();
    let shortest = m.get_one::<String>("min-time").map(|s| target::duration("--min-time", s)).transpose()?;
    Ok(calls::Selection {
        only: all("function"),
        without: all("no-function"),
        depth: m.get_one::<usize>("depth").copied().unwrap_or(usize::MAX),
        shortest: shortest.unwrap_or(0),
    })
}

/// The order of a table of functions.
pub fn sort(m: &ArgMatches) -> Result<Sort> {
    let Some(name) = m.get_one::<String>("summary-sort-by") else { return Ok(Sort::default()) };
    let names: Vec<&str> = SORTS.iter().map(|(name, _)| *name).collect();
    Sort::parse(name).ok_or_else(|| Error::usage(format!("-S {name}"), "no such order", names.join(", ")))
}

/// How many rows or edges are shown, if that is asked for.
pub fn rows(m: &ArgMatches) -> Option<usize> {
    m.get_one::<u32>("rows").and_then(|n| usize::try_from(*n).ok())
}

/// A view of calls that takes events in their order, if `kind` is one. On a terminal a tree is a short one.
pub fn view(
    m: &ArgMatches,
    kind: &str,
    file: Option<&str>,
    output: &Output,
    options: Options,
    clocks: Clocks,
) -> Result<Option<Shown>> {
    let selection = selection(m)?;
    let style = Style { time: !m.get_flag("no-time"), module: m.get_flag("module"), colour: options.colour };
    let view: Box<dyn CallView> = match kind {
        "tree" if output.is_terminal() => {
            let (_, rows) = sys::process::terminal_size(&io::stdout()).unwrap_or((100, 24));
            let hint = "All calls: --as tree | less. By function: --as functions".to_owned();
            Box::new(Brief::new(style, selection, Screen { rows: usize::from(rows).saturating_sub(3).max(10), hint }))
        }
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
    let view = CallEvents::new(view);
    let view = if m.get_flag("syscalls") {
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
