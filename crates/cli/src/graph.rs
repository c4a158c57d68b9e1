//! `trapline graph`: which functions a command calls. It is a recording and a report of it.

use crate::record::{self, Planned};
use crate::run::Run;
use crate::{args, call_views, complain, show};
use clap::ArgMatches;
use engine::captures::Captures;
use engine::functions::Functions;
use engine::pipeline::selection::Selection;
use engine::select::Calls;
use engine::{Error, Result};
use std::ffi::OsString;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// Which functions are recorded.
#[derive(Clone, Debug, Default)]
pub struct Chosen {
    /// Patterns of names; empty: all of them.
    pub wanted: Vec<String>,
    /// Patterns of names that are not.
    pub unwanted: Vec<String>,
    /// Functions of shared libraries too.
    pub libraries: bool,
}

impl Chosen {
    /// As the engine has it.
    pub fn functions(self) -> Functions {
        let Chosen { wanted, unwanted, libraries } = self;
        Functions { wanted, unwanted, libraries, ..Functions::default() }
    }
}

/// Runs the command.
pub fn run(m: &ArgMatches, started: u64) -> Result<u8> {
    run_with(m, started, Chosen { unwanted: args::left(m), libraries: m.get_flag("lib"), ..Chosen::default() })
}

/// Records these functions, and shows them as the command does.
pub fn run_with(m: &ArgMatches, started: u64, chosen: Chosen) -> Result<u8> {
    let selected = call_views::selection(m)?;
    let functions = Functions {
        values: m.get_flag("args").then_some(engine::functions::STRINGS),
        minimum: Some(selected.shortest).filter(|ns| *ns > 0),
        programs: m.get_many::<String>("program").into_iter().flatten().cloned().collect(),
        ..chosen.functions()
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
    let mut selection = Selection::all();
    let planned = if m.get_flag("syscalls") {
        record::plan(m, &[], Captures::default(), Some(functions), selection)?
    } else {
        selection.calls = Calls::parse("none")?;
        record::plan_functions(m, functions, selection)?
    };
    let Planned { mut plan, why, selection } = planned;
    let temporary = if dir.is_none() { Some(Temporary::new()?) } else { None };
    let dir = dir.unwrap_or_else(|| temporary.as_ref().map_or_else(PathBuf::new, |t| t.0.join("trace")));
    let keep = record::recorder(m, dir.clone(), &mut plan, &selection, false, show::Clocks::session(m))?;
    let run = Run::through(m, plan, &why, selection, show::Views::new(), Some(keep), None)?;
    run.finish_with(m, started, |events| {
        let shown = match events {
            _ if wanted.is_empty() => Ok(()),
            0 => {
                complain("no call of a function was recorded (--lib shows the functions of libraries, debug symbols those of a stripped program)");
                Ok(())
            }
            _ => report_of(m, &dir, &wanted),
        };
        drop(temporary);
        shown
    })
}

/// Views of function calls, as `--as` names them.
const VIEWS: [&str; 11] = [
    "tree",
    "cat",
    "functions",
    "stat",
    "callgraph",
    "mermaid",
    "flame",
    "folded",
    "timeline",
    "calls-json",
    "functions-json",
];

/// Shows the trace as `trapline report` does.
fn report_of(m: &ArgMatches, dir: &Path, wanted: &[String]) -> Result<()> {
    let mut words: Vec<OsString> = vec!["trapline".into(), "report".into()];
    for (id, values) in [("as", wanted.to_vec())].into_iter().chain(PASSED_ON.map(|id| (id, texts(m, id)))) {
        words.extend(values.into_iter().map(|v| format!("--{id}={v}").into()));
    }
    let flags = ["no-time", "module", "syscalls"].into_iter().filter(|f| m.get_flag(f));
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
const PASSED_ON: [&str; 8] =
    ["function", "no-function", "min-time", "depth", "summary-sort-by", "rows", "color", "demangle"];

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
