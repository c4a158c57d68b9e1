//! The tracer `graph`: a recording in a process that runs. It ends with the trapline that records, which other commands find by the process.

use crate::ask::{Ask, Keep, Recorded, Show, Targets, Tracer};
use crate::graph::{self, Chosen};
use crate::of_agent::OfAgent;
use crate::run::{Named, Run, Status};
use crate::view::screen::Clocks;
use crate::{named, record, show};
use collector::attach::recording::Recorder;
use engine::pipeline::selection::Selection;
use engine::request::select::Calls;
use engine::{Error, Result};
use std::ffi::OsString;
use std::io::{Read, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

/// The name of the tracer.
pub const NAME: &str = "graph";

/// Enables it. Without a directory for the trace, the tree is shown when the recording ends, which this command waits for.
pub fn enable(asked: &Tracer, chosen: Chosen) -> Result<Status> {
    let pid = asked.pid;
    match &asked.ask.keep.output {
        None => {
            let ask = Ask { target: Targets::process(pid), started: asked.ask.started, ..Ask::default() };
            graph::run_with(&ask, chosen)
        }
        Some(dir) if asked.here => record(asked, dir, chosen),
        Some(_) if named::process_of(&name_of(pid)).is_some() => {
            Err(Error::failed(format!("-p {pid}"), "graph is already enabled", "disable it first"))
        }
        Some(_) => in_background(pid).map(Status::Exit),
    }
}

/// The session of a recording in the background.
fn name_of(pid: i32) -> String {
    format!("graph-{pid}")
}

/// Records, as `record --name` does.
fn record(asked: &Tracer, dir: &OsString, chosen: Chosen) -> Result<Status> {
    let pid = asked.pid;
    // The terminal may be closed.
    let _ = sys::process::new_session();
    let keep = Keep { output: Some(dir.clone()), name: Some(name_of(pid)), ..Keep::default() };
    let ask = Ask { target: Targets::process(pid), keep, quiet: 1, started: asked.ask.started, ..Ask::default() };
    let mut selection = Selection::all();
    selection.calls = Calls::parse("none")?;
    let planned = record::plan_functions(&ask, OfAgent::all(chosen.functions()), selection)?;
    let (mut plan, why, selection) = (planned.plan, planned.why, planned.selection);
    let named = Named::open(&ask, &mut plan)?;
    let clocks = Clocks::session(&ask.format);
    let keep = record::recorder(&ask, PathBuf::from(dir), &mut plan, &selection, true, clocks)?;
    Run::through(&ask, plan, &why, selection, show::Views::new(), Some(keep), named)?.finish(&ask)
}

/// Starts a trapline that records, and returns when it does.
fn in_background(pid: i32) -> Result<u8> {
    let failed = |e: std::io::Error| Error::scarce("tracer enable graph", &e);
    // What it says before it records is passed on; a pipe would break when this trapline ends.
    let mut said = unnamed_file().map_err(failed)?;
    let mut child = sys::process::command("/proc/self/exe")
        .args(std::env::args_os().skip(1))
        .arg("--here")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(said.try_clone().map_err(failed)?)
        .spawn()
        .map_err(failed)?;
    loop {
        if let Some(status) = child.try_wait().map_err(failed)? {
            let mut text = Vec::new();
            let _ = said.rewind().and_then(|()| said.read_to_end(&mut text));
            let _ = std::io::stderr().write_all(&text);
            return Ok(status.code().and_then(|c| u8::try_from(c).ok()).filter(|c| *c != 0).unwrap_or(125));
        }
        if named::process_of(&name_of(pid)) == Some(child.id()) {
            return Ok(0);
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A file that goes with its last descriptor.
fn unnamed_file() -> std::io::Result<std::fs::File> {
    let mut random = [0; 8];
    sys::process::random(&mut random)?;
    let path = std::env::temp_dir().join(format!("trapline-{:016x}", u64::from_le_bytes(random)));
    let file = std::fs::OpenOptions::new().read(true).append(true).create_new(true).mode(0o600).open(&path)?;
    std::fs::remove_file(&path)?;
    Ok(file)
}

/// Ends the recording; its trace is complete then.
pub fn disable(pid: i32) -> Result<()> {
    Recorder::of(pid)?.end(pid)
}

/// Shows the calls that the trace has so far, as a tree.
pub fn print(pid: i32) -> Result<()> {
    let recorder = Recorder::of(pid)?;
    let dir = recorder.trace().ok_or_else(|| {
        let why = format!("the trace of its recorder, process {}, cannot be found", recorder.pid);
        Error::failed(format!("-p {pid}"), why, "record with -o DIR, and use 'trapline report DIR'")
    })?;
    report(pid, &dir)
}

fn report(pid: i32, dir: &Path) -> Result<()> {
    let trace = Recorded { dir: Some(dir.into()), pid: vec![pid.to_string()], ..Recorded::default() };
    crate::report::run(&Ask { trace, show: vec![Show::stdout("tree")], quiet: 1, ..Ask::default() }).map(drop)
}
