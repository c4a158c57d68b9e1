//! Tracers in a running process: the agent is injected where it is not there yet, and serves requests (`abi::tracer`) while all threads are
//! stopped. trapline keeps nothing between two commands: what is enabled, and where, the agent knows.
//!
//! ```text
//!  enable ──► modules (functions) ──► wanted (options) ─┐
//!  disable, status ─────────────────────────────────────┼─► served (threads stop, the agent asks) ──► the agent
//!  results (with names) ────────────────────────────────┘
//! ```

use super::image::Image;
use super::library::Injected;
use super::linker::{self, JUMP, Linker, Module};
use super::modules::{files, is, modules, near_functions, plain};
use super::sections;
use super::served::with;
use super::wanted::{MAIN_THREAD, THREAD_NAME, Wanted, options, stub};
use super::{failed, inject, io_failed, maps_of, target};
use crate::module::Known;
use crate::ticks::ticks_per_ms;
use abi::built_in::{BUILT_IN, Kind, Row};
use abi::tracer::{self, PRELOADED, Refused, Reply};
use engine::error::{Error, Result};
use engine::request::functions::Functions;
use lang::near::nearest;
use std::ops::Range;
use std::sync::Arc;
use sys::agent::Talk;
use sys::remote;

/// What has become of a tracer's sites.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Done {
    /// Functions that it is on.
    pub functions: usize,
    /// Functions that could not be patched.
    pub refused: u32,
}

/// A tracer that a process knows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listed {
    /// Its name.
    pub name: String,
    /// It is enabled.
    pub enabled: bool,
    /// Failures that a tracer of the program has reported.
    pub failures: u64,
    /// Panics of it that were caught.
    pub panics: u64,
    /// Calls that no tracer saw, because there was no memory for their threads.
    pub missed: u64,
    /// Calls that no tracer saw, because their threads were in a tracer.
    pub nested: u64,
}

/// No tracer of the process has this name.
pub fn no_such<'n>(pid: i32, name: &str, all: impl Iterator<Item = &'n str>) -> Error {
    let near = nearest(name, all).first().map_or(String::new(), |near| format!("nearest: {near}; "));
    failed(pid, format!("no such tracer {name}"), near + "see 'trapline tracer list'")
}

/// What the agent says that it refuses.
pub(super) fn refusal(pid: i32, name: &str, reply: &Reply, talk: &mut Talk) -> Option<Error> {
    let said = |why: String, todo: &str| Some(failed(pid, why, todo));
    let is = |r: Refused| reply.error == r as u32;
    match reply.error {
        0 => None,
        _ if is(Refused::NoSuch) => {
            let all = names(pid, talk).unwrap_or_default();
            Some(no_such(pid, name, all.iter().map(String::as_str)))
        }
        _ if is(Refused::Already) => said(format!("{name} is already enabled"), "disable it first"),
        _ if is(Refused::NotEnabled) => said(format!("{name} is not enabled"), "see 'trapline tracer status'"),
        _ if is(Refused::TooMany) => said(format!("{} tracers are enabled", tracer::ENABLED), "disable one"),
        _ if is(Refused::Processor) => {
            said(format!("{name} needs XSAVEC of the processor"), "build it without AVX-512")
        }
        _ if is(Refused::Sums) => said(
            "a script collects of its functions in the process".into(),
            "wait until the command of the script has ended",
        ),
        _ => said("the agent in the process has no memory, or speaks another version".into(), "restart the program"),
    }
}

/// Has a process load the library of a tracer. Returns the name of the tracer that this has registered.
fn load(pid: i32, file: &str) -> Result<String> {
    let path = std::fs::canonicalize(file).map_err(|e| failed(pid, format!("{file}: {e}"), "name a shared object"))?;
    // The agent comes first: the library looks for it.
    let names = || with(pid, &[], false, |talk| names(pid, talk));
    let before = names()?;
    let job = || inject::library(pid, path.as_os_str().as_encoded_bytes());
    remote::alone(job).map_err(|e| io_failed(pid, "thread", &e))??;
    let new = names()?.into_iter().find(|n| !before.contains(n));
    new.ok_or_else(|| failed(pid, format!("{file}: no new tracer"), "if it is loaded already, use the tracer's name"))
}

fn names(pid: i32, talk: &mut Talk) -> Result<Vec<String>> {
    let status = talk.status().map_err(|e| io_failed(pid, "the agent", &e))?;
    let text = |n: &[u8]| String::from_utf8_lossy(n).trim_end_matches('\0').to_string();
    Ok(status.tracers.iter().map(|t| text(&t.name)).collect())
}

/// Enables a tracer. A name with a slash is a library, which the process loads first.
///
/// # Errors
/// The process cannot be attached to, or refuses it; it runs on as it was.
pub fn enable(pid: i32, wanted: &Wanted) -> Result<Done> {
    if wanted.name.contains('/') {
        target::check(pid)?;
        return enable(pid, &Wanted { name: load(pid, &wanted.name)?, ..wanted.clone() });
    }
    let name = checked(pid, &wanted.name)?;
    let patterns = || wanted.threads.iter().filter(|t| *t != MAIN_THREAD);
    if patterns().count() > 3 {
        return Err(Error::usage("--thread", "more than 3 names", "use * and ?, as in 'worker-*'"));
    }
    if let Some(long) = patterns().find(|t| t.is_empty() || t.len() > THREAD_NAME) {
        let why = format!("a thread's name has 1 to {THREAD_NAME} bytes");
        return Err(Error::usage(format!("--thread {long}"), why, "use * for the rest"));
    }
    let image = Image::of(pid);
    let (maps, ticks) = (target::check(pid)?, ticks_per_ms());
    let image = image?;
    let mut functions = wanted.functions.clone();
    if let Some(caller) = wanted.caller.iter().find(|_| !functions.wanted.is_empty()) {
        functions.wanted.push(caller.clone());
    }
    let mut modules = modules(pid, &maps, &functions);
    if !wanted.sections.is_empty() {
        let all = files(pid, &maps, &functions).into_iter().map(|(_, path, _, file)| (path, sections::of(&file)));
        sections::check(&wanted.sections, all).map_err(|(why, todo)| failed(pid, why, todo))?;
        choose(wanted, &mut modules);
    }
    let place = |m: &Module, s: &patch::Site| s.address.wrapping_add(m.bias);
    let sites = || modules.iter().flat_map(|m| m.known.plan.sites.iter().map(move |s| (m, s)));
    if sites().next().is_none() {
        let mut refused = modules.iter().flat_map(|m| m.known.plan.refusals.iter().map(move |(n, why)| (m, *n, why)));
        if let Some((m, n, why)) = refused.next().filter(|_| !wanted.functions.are_all()) {
            let name = m.known.names.get(n as usize).map_or_else(String::new, |name| plain(name));
            return Err(failed(pid, format!("{name} cannot be patched: {why}"), "choose other functions"));
        }
        let all = Functions { libraries: functions.libraries, ..Functions::default() };
        let near = |name: &String| near_functions(&self::modules(pid, &maps, &all), name);
        let near = wanted.functions.wanted.first().map(near).unwrap_or_default();
        let todo = near + &format!("see 'trapline list uprobe:/proc/{pid}/exe:*'");
        return Err(failed(pid, "no function matches", todo));
    }
    let splits: Vec<Range<u64>> =
        sites().filter(|(_, s)| s.splits).map(|(m, s)| place(m, s) + 1..place(m, s) + JUMP).collect();
    with(pid, &splits, true, |talk| {
        image.is_still_there(pid)?;
        let status = talk.status().map_err(|e| io_failed(pid, "the agent", &e))?;
        let known = status.tracers.iter().find(|t| t.name == name);
        let kind = known.map_or(0, |t| t.kind);
        let maps = maps_of(pid)?;
        let mut plan = Linker::new(&status, &maps, &talk.hello, stub(kind, wanted));
        if status.tracers.iter().any(|t| t.kind == Kind::Graph as u32 && t.place > 0) {
            plan.recorded = linker::changed(pid, &modules);
        }
        for m in &modules {
            plan.add(m).map_err(|why| failed(pid, format!("{}: {why}", m.known.path), "choose fewer functions"))?;
        }
        let options = options(pid, kind, (wanted, ticks), &modules, &plan)?;
        let hooked = plan.hooked;
        let (targets, bytes) = plan.finish();
        let reply = talk.enable(name, options, &targets, &bytes).map_err(|e| io_failed(pid, "the agent", &e))?;
        match refusal(pid, &wanted.name, &reply, talk) {
            Some(e) => Err(e),
            None => {
                let refused = reply.other_bytes + reply.no_area + reply.failed + hooked as u32;
                Ok(Done { functions: targets.len() + hooked, refused })
            }
        }
    })
}

/// Leaves the functions of the sections that are wanted, and the one whose callees are watched.
fn choose(wanted: &Wanted, modules: &mut [Module]) {
    for m in modules {
        let caller = wanted.caller.as_deref().and_then(|name| Some(m.known.site_of(is(name))?.number));
        // Nobody else has it yet.
        let Some(Known { plan, .. }) = Arc::get_mut(&mut m.known) else { continue };
        let sections = m.sections.as_deref().unwrap_or_default();
        plan.sites.retain(|s| sections::have(sections, &wanted.sections, s.start) || Some(s.number) == caller);
    }
}

/// Disables a tracer.
///
/// # Errors
/// It is not enabled, or the process cannot be stopped.
pub fn disable(pid: i32, name: &str) -> Result<()> {
    let id = checked(pid, name)?;
    with(pid, &[], false, |talk| {
        let reply = talk.disable(id).map_err(|e| io_failed(pid, "the agent", &e))?;
        refusal(pid, name, &reply, talk).map_or(Ok(()), Err)
    })
}

pub(super) fn checked(pid: i32, name: &str) -> Result<[u8; tracer::NAME]> {
    tracer::name(name).ok_or_else(|| no_such(pid, name, BUILT_IN.iter().map(|row| row.name)))
}

/// The tracers of a process.
///
/// # Errors
/// The process cannot be stopped.
pub fn status(pid: i32) -> Result<Vec<Listed>> {
    target::check(pid)?;
    if Injected::find(pid).is_none() {
        let listed = |row: &Row| Listed { name: row.name.to_string(), ..Listed::default() };
        return Ok(BUILT_IN.iter().map(listed).collect());
    }
    with(pid, &[], false, |talk| {
        let status = talk.status().map_err(|e| io_failed(pid, "the agent", &e))?;
        Ok(status.tracers.iter().map(listed).collect())
    })
}

/// The enabled tracers of a process, which is not stopped for it.
pub fn enabled(pid: i32) -> Vec<String> {
    let name = |e: tracer::Entry| String::from_utf8_lossy(&e.name).trim_end_matches('\0').to_string();
    Injected::tracers(pid).into_iter().filter(|e| e.enabled).map(name).collect()
}

/// The enabled tracers of all processes that the user may look into: the process, and the name.
pub fn enabled_everywhere() -> Vec<(i32, String)> {
    let all = sys::proc::processes().into_iter();
    all.flat_map(|pid| enabled(pid).into_iter().map(move |name| (pid, name))).collect()
}

/// The thread that records the functions of a process, if any does, and whether that began with the program.
pub(super) fn recorder(pid: i32) -> Result<Option<(i32, bool)>> {
    target::check(pid)?;
    if Injected::find(pid).is_none() {
        return Ok(None);
    }
    with(pid, &[], false, |talk| {
        let status = talk.status().map_err(|e| io_failed(pid, "the agent", &e))?;
        let graph = status.tracers.iter().find(|t| t.kind == Kind::Graph as u32 && t.place > 0);
        Ok(graph.map(|t| (t.reported as u32 as i32, t.reported & PRELOADED != 0)))
    })
}

pub(super) fn listed(t: &tracer::Known) -> Listed {
    Listed {
        name: String::from_utf8_lossy(&t.name).trim_end_matches('\0').to_string(),
        enabled: t.place > 0,
        failures: if t.kind == Kind::Own as u32 { t.reported } else { 0 },
        panics: t.panics,
        missed: t.missed,
        nested: t.nested,
    }
}
