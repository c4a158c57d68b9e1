//! `trapline graph`: which functions a command calls. It is a recording and a report of it.

use crate::ask::{Ask, Recorded, Show};
use crate::of_agent::OfAgent;
use crate::record::{self, Planned};
use crate::run::{Run, Status};
use crate::view::screen::Clocks;
use crate::view::{self, calls};
use crate::{complain, nothing, show};
use engine::capture::captures::Captures;
use engine::pipeline::selection::Selection;
use engine::request::functions::{Functions, STRINGS, Values};
use engine::request::select::Calls;
use engine::{Error, Result};
use std::fs::{File, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
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
pub fn run(ask: &Ask) -> Result<Status> {
    run_with(ask, Chosen { unwanted: ask.capture.leave.clone(), libraries: ask.capture.lib, ..Chosen::default() })
}

/// Records these functions, and shows them as the command does.
pub fn run_with(ask: &Ask, chosen: Chosen) -> Result<Status> {
    let selected = calls::selection(ask)?;
    let functions = Functions {
        values: ask.capture.args.then_some(Values { strings: STRINGS, numbers: false }),
        minimum: Some(selected.shortest).filter(|ns| *ns > 0),
        shown: ask.calls.function.clone(),
        programs: ask.capture.program.clone(),
        ..chosen.functions()
    };
    let dir = ask.keep.dir();
    let wanted = view::wanted(ask, "tree");
    for Show { view, file } in &wanted {
        view::check(view::find(view, view::OF_CALLS)?, file.as_deref())?;
    }
    let mut selection = Selection::all();
    let planned = if ask.calls.syscalls {
        record::plan(ask, &[], Captures::default(), Some(OfAgent::all(functions)), selection)?
    } else {
        selection.calls = Calls::parse("none")?;
        record::plan_functions(ask, OfAgent::all(functions), selection)?
    };
    let Planned { mut plan, why, selection } = planned;
    let temporary = if dir.is_none() { Some(Temporary::new()?) } else { None };
    let dir = dir.unwrap_or_else(|| temporary.as_ref().map_or_else(PathBuf::new, |t| t.dir.join("trace")));
    let keep = record::recorder(ask, dir.clone(), &mut plan, &selection, false, Clocks::session(&ask.format))?;
    let run = Run::through(ask, plan, &why, selection, show::Views::new(), Some(keep), None)?;
    run.finish_with(ask, |plan, events, report| {
        let shown = match events {
            0 => {
                complain(&nothing::calls(plan, report));
                Ok(())
            }
            _ if wanted.is_empty() => Ok(()),
            _ => report_of(ask, &dir, wanted),
        };
        drop(temporary);
        shown
    })
}

/// Shows the trace as `trapline report` does.
fn report_of(ask: &Ask, dir: &Path, show: Vec<Show>) -> Result<()> {
    let trace = Recorded { dir: Some(dir.into()), ..Recorded::default() };
    let (calls, table, format) = (ask.calls.clone(), ask.table.clone(), ask.format.clone());
    crate::report::run(&Ask {
        trace,
        calls,
        table,
        format,
        show,
        profile: ask.profile.clone(),
        quiet: ask.quiet,
        ..Ask::default()
    })
    .map(drop)
}

/// A directory that goes with the value. That of a killed trapline goes when the next one is made.
struct Temporary {
    dir: PathBuf,
    /// The directory, locked as long as it is in use.
    _lock: File,
}

/// What its name begins with.
const TEMPORARY: &str = "trapline-graph-";

impl Temporary {
    fn new() -> Result<Temporary> {
        let all = std::env::temp_dir();
        remove_abandoned(&all);
        let made = loop {
            match Temporary::make(&all) {
                Ok(None) => {}
                Ok(Some(made)) => break Ok(made),
                Err(e) => break Err(e),
            }
        };
        made.map_err(|e| Error::failed("temporary directory", e.to_string(), "set TMPDIR, or use -o DIR"))
    }

    /// None where another trapline has taken it for abandoned before it was locked.
    fn make(all: &Path) -> io::Result<Option<Temporary>> {
        let mut random = [0; 8];
        sys::process::random(&mut random)?;
        let dir = all.join(format!("{TEMPORARY}{:016x}", u64::from_le_bytes(random)));
        std::fs::DirBuilder::new().mode(0o700).create(&dir)?;
        let lock = match File::open(&dir) {
            Ok(lock) => lock,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(e),
        };
        let is_taken = matches!(lock.try_lock(), Err(TryLockError::WouldBlock)) || !dir.exists();
        Ok((!is_taken).then_some(Temporary { dir, _lock: lock }))
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

/// Removes the directories of this user's traplines that were killed.
fn remove_abandoned(all: &Path) {
    for entry in std::fs::read_dir(all).into_iter().flatten().flatten() {
        let is_named = entry.file_name().as_encoded_bytes().starts_with(TEMPORARY.as_bytes());
        // The metadata of the entry itself: a link is no directory.
        let is_ours = |m: std::fs::Metadata| m.is_dir() && m.uid() == sys::process::euid();
        if is_named
            && entry.metadata().is_ok_and(is_ours)
            && let Ok(lock) = File::open(entry.path())
            && lock.try_lock().is_ok()
        {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}
