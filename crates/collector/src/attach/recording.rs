//! A recording beside other tracers: it is the tracer `graph` of the functions that its plan has patched.

use super::library::Injected;
use super::linker::{Linker, Module};
use super::served::serve;
use super::tracers::{recorder, refusal};
use super::{failed, io_failed, maps_of};
use crate::module::Known;
use abi::message::Order;
use abi::stub::Variant;
use engine::error::{Error, Result};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use sys::agent::Talk;
use sys::maps;
use sys::remote::Threads;

/// Who records the functions of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recorder {
    /// Its process.
    pub pid: i32,
    /// The recording began with the program.
    pub preloaded: bool,
}

impl Recorder {
    /// That of a process, if there is one that this trapline may talk to.
    ///
    /// # Errors
    /// The process cannot be stopped, functions of it are not recorded, or something else records them.
    pub fn of(pid: i32) -> Result<Recorder> {
        let todo = "see 'trapline tracer status'";
        let (tid, preloaded) = recorder(pid)?.ok_or_else(|| failed(pid, "graph is not enabled", todo))?;
        let other =
            || failed(pid, format!("thread {tid} records it, which is no trapline of this version"), "end that");
        let recorder = sys::proc::status_field(tid, "Tgid").and_then(|t| t.parse().ok()).ok_or_else(other)?;
        // The number is from memory that the process writes to.
        let program = |pid: i32| std::fs::metadata(format!("/proc/{pid}/exe")).ok().map(|m| maps::identity(&m));
        if program(recorder).is_none() || program(recorder) != program(sys::process::own_pid()) {
            return Err(other());
        }
        Ok(Recorder { pid: recorder, preloaded })
    }

    /// The directory of its trace: that of a file of a trace that it has open.
    pub fn trace(&self) -> Option<PathBuf> {
        let files = std::fs::read_dir(format!("/proc/{}/fd", self.pid)).ok()?;
        let paths = files.flatten().filter_map(|f| std::fs::read_link(f.path()).ok());
        let dirs = paths.filter_map(|p| p.parent().map(Path::to_path_buf));
        dirs.filter(|d| d.is_absolute()).find(|d| d.join("metadata").is_file())
    }

    /// Ends the recording as Ctrl-C does, and waits until its trace is complete.
    ///
    /// # Errors
    /// It began with the program, or it does not end.
    pub fn end(&self, pid: i32) -> Result<()> {
        if self.preloaded {
            return Err(failed(pid, "the recording began with the program, and ends with it", "end the program"));
        }
        let refused = |e: std::io::Error| {
            Error::failed(
                format!("-p {pid}"),
                format!("its recorder, process {}: {e}", self.pid),
                "ask as its user, or as root",
            )
        };
        let ended = sys::process::pidfd(self.pid, false).map_err(refused)?;
        sys::signal::kill(self.pid, SIGINT).map_err(refused)?;
        match sys::process::wait_readable(&ended, PATIENCE).map_err(refused)? {
            true => Ok(()),
            false => {
                let why = format!("its recorder, process {}, takes long to end", self.pid);
                Err(failed(pid, why, "see whether it waits for its output"))
            }
        }
    }
}

const SIGINT: i32 = 2;
/// How long a recorder may take to write the rest of its trace.
const PATIENCE: Duration = Duration::from_secs(120);

/// Has a recording that has just begun on functions that have tracers.
pub(super) fn join(threads: &mut Threads, injected: &Injected, modules: &[(Arc<Known>, u64)]) -> Result<()> {
    let pid = threads.pid();
    serve(pid, threads, injected, Order::Tracers, |request| {
        let answer = |e| io_failed(pid, "the agent", &e);
        let mut talk = Talk::begin(request).map_err(answer)?;
        let status = talk.status().map_err(answer)?;
        let maps = maps_of(pid)?;
        let mut plan = Linker::new(&status, &maps, &talk.hello, Variant::Called);
        for (known, bias) in modules {
            let module = Module { known: Arc::clone(known), bias: *bias, sections: None };
            let todo = "choose fewer functions";
            plan.join(&module).map_err(|why| failed(pid, format!("{}: {why}", known.path), todo))?;
        }
        let (targets, bytes) = plan.finish();
        if targets.is_empty() {
            return Ok(());
        }
        let reply = talk.join(&targets, &bytes).map_err(answer)?;
        refusal(pid, "graph", &reply, &mut talk).map_or(Ok(()), Err)
    })
}
