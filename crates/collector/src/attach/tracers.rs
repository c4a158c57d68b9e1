//! Tracers in a running process: the agent is injected where it is not there yet, and serves requests (`abi::tracer`) while all threads are
//! stopped. trapline keeps nothing between two commands: what is enabled, and where, the agent knows.

use super::image::Image;
use super::library::Injected;
use super::linker::{self, JUMP, Linker, Module};
use super::sections::{self};
use super::suitable::Stacks;
use super::violations::{self, Violation};
use super::{
    clear, failed, has_vfork, inject, invoke, io_failed, is_free, leave, look, maps_of, patiently, target, threads,
};
use crate::module::{Known, Role};
use crate::planner::{Planner, apart};
use crate::ticks::ticks_per_ms;
use abi::built_in::{self, BUILT_IN, Choice, Kind, MAIN, Results, Row, STOP};
use abi::message::{FREE, HOOKED, Hello, Installed, Order, TRACED, Verdict, Welcome};
use abi::stub::Variant;
use abi::tracer::{self, PRELOADED, Refused, Reply};
use engine::backend::code::Files;
use engine::error::{Error, Result};
use engine::request::functions::{Functions, matches};
use lang::near::nearest;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use sys::agent::{Listener, Print, Request, Status, Talk};
use sys::maps::{self, Map, PROT_EXEC};
use sys::remote::{self, Threads};

/// What a tracer is enabled with.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// Its name.
    pub name: String,
    /// The functions that it is on.
    pub functions: Functions,
    /// Patterns of names of sections; only functions that begin in one of these. Empty: in any.
    pub sections: Vec<String>,
    /// count: without time.
    pub no_time: bool,
    /// thread_checker: patterns of the names of the threads that may call them, 3 at most beside [`MAIN_THREAD`]; none: the main thread.
    pub threads: Vec<String>,
    /// Checkers: stop the program at a violation.
    pub stop: bool,
    /// loop_checker: the function whose callees are watched.
    pub caller: Option<String>,
    /// loop_checker: how long they may take, in ns.
    pub budget: u64,
}

/// What has become of a tracer's sites.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Done {
    /// Functions that it is on.
    pub functions: usize,
    /// Functions that could not be patched.
    pub refused: u32,
}

/// What a tracer has, with names.
#[derive(Clone, Debug, Default)]
pub struct Shown {
    /// The tracer.
    pub tracer: Listed,
    /// It counts calls.
    pub counts: bool,
    /// Functions that were called.
    pub counted: Vec<Counted>,
    /// Violations, in their order.
    pub violations: Vec<Violation>,
    /// Violations that there was no room for.
    pub lost: u64,
}

/// What was counted of a function.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// Its name.
    pub function: String,
    /// The file that contains it; empty where it is not known.
    pub module: String,
    /// Calls.
    pub calls: u64,
    /// Their time in all, in ns.
    pub total: u64,
    /// Without that of other counted functions, in ns.
    pub own: u64,
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
    /// Calls that no tracer was told of, because there was no memory for their threads.
    pub missed: u64,
    /// Calls that no tracer was told of, because their threads were in a tracer.
    pub nested: u64,
}

/// What the main thread is called among those that may call functions.
pub const MAIN_THREAD: &str = "main";
/// Bytes of the name of a thread.
const THREAD_NAME: usize = 15;

/// The state of a process whose functions a recording traces (`Invocation::session`).
pub(super) const RECORDED: u32 = 1;
/// Files with code that a process has mapped, whose functions may be wanted: mapping, path, role, file.
fn files<'m>(pid: i32, maps: &'m [Map], functions: &Functions) -> Vec<(&'m Map, String, Role, File)> {
    let program = std::fs::metadata(format!("/proc/{pid}/exe")).ok().map(|m| maps::identity(&m));
    let code = maps.iter().filter(|m| m.prot & PROT_EXEC != 0 && m.file.2 != 0);
    let file = |m: &'_ Map| {
        let path = String::from_utf8_lossy(&m.path).into_owned();
        let role = Role::of(&path, Some(m.file) == program);
        if !role.is_traced(functions) || path.contains("trapline-agent") || path.contains("/agent-") {
            return None;
        }
        let file = maps::open(pid, m.range, &m.path, m.file).ok()?;
        Some((path, role, file))
    };
    code.filter_map(|m| file(m).map(|(path, role, file)| (m, path, role, file))).collect()
}

/// Those whose functions are wanted.
fn modules(pid: i32, maps: &[Map], functions: &Functions) -> Vec<Module> {
    let module = |(m, path, role, file): (&Map, String, Role, File)| {
        let known = Known::read(&file, &path, role, functions).ok()?;
        let bias = known.bias(m.range.0, m.offset)?;
        Some(Module { known: Arc::new(known), bias, sections: sections::of(&file) })
    };
    files(pid, maps, functions).into_iter().filter_map(module).collect()
}

/// No tracer of the process has this name.
pub fn no_such<'n>(pid: i32, name: &str, all: impl Iterator<Item = &'n str>) -> Error {
    let near = nearest(name, all).first().map_or(String::new(), |near| format!("nearest: {near}; "));
    failed(pid, format!("no such tracer {name}"), near + "see 'trapline tracer list'")
}

/// Names of functions like one that is not there, for a message.
fn near_functions(modules: &[Module], name: &str) -> String {
    let linker = modules.iter().flat_map(|m| m.known.names.iter().chain(&m.known.others));
    let all: Vec<String> = linker.take(MOST_NAMES).map(|n| plain(n)).collect();
    let near = nearest(name, all.iter().map(String::as_str));
    if near.is_empty() { String::new() } else { format!("nearest: {}; ", near.join(", ")) }
}

/// The most names that are compared with one that is not there.
const MOST_NAMES: usize = 20_000;

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
        _ => said("the agent in the process has no memory, or speaks another version".into(), "restart the program"),
    }
}

/// How long threads may take to return from the calls that the last tracer has seen. Then the next command does what is left.
const RETURNS: Duration = Duration::from_millis(500);

/// Stops the process, and has a job done with its agent.
fn with<T: Send>(
    pid: i32,
    splits: &[Range<u64>],
    hooks: bool,
    job: impl FnOnce(&mut Talk) -> Result<T> + Send,
) -> Result<T> {
    let maps = target::check(pid)?;
    let nothing = Functions { wanted: vec![String::from("\n")], ..Functions::default() };
    let mut planner = Planner::new(nothing, ticks_per_ms());
    let mut all = if hooks { planner.prepare(pid, &maps) } else { Vec::new() };
    all.extend_from_slice(splits);
    let all = apart(all);
    let mut job = Some(job);
    let mut run = |injected: &Injected, mut stacks: Stacks| -> Result<Option<T>> {
        let mut threads = Threads::stop(pid).map_err(|e| io_failed(pid, "its threads do not stop", &e))?;
        if has_vfork(&threads) {
            return Ok(None);
        }
        let seen = look(&mut threads, injected, &mut stacks)?;
        clear(&mut threads, &all, &stacks)?;
        if hooks && seen.flags & HOOKED == 0 {
            serve(pid, &mut threads, injected, Order::Attach, |request| follow(pid, request, &mut planner))?;
        }
        let answer = serve(pid, &mut threads, injected, Order::Tracers, |request| {
            let mut talk = Talk::begin(request).map_err(|e| io_failed(pid, "the agent", &e))?;
            let job = job.take().ok_or_else(|| failed(pid, "the agent asks twice", "restart the program"))?;
            let answer = job(&mut talk)?;
            let status = talk.status().map_err(|e| io_failed(pid, "the agent", &e))?;
            Ok((answer, status.tracers.iter().any(|t| t.place > 0)))
        });
        let none = answer.as_ref().map_or(true, |(_, enabled)| !enabled);
        // With the last tracer libc's functions get their own bytes too, once no exception may pass through stubs any more.
        let (since, mut pause) = (Instant::now(), Duration::from_millis(1));
        let mut hooked = none;
        while hooked {
            let seen = look(&mut threads, injected, &mut stacks)?;
            if seen.session == RECORDED || seen.flags & HOOKED == 0 || seen.flags & TRACED != 0 {
                break;
            }
            if is_free(&mut threads, injected, &seen, &stacks) {
                invoke(&mut threads, injected, Order::Detach, FREE, "")?;
                threads::forget(&mut threads, &seen, true);
                break;
            }
            if since.elapsed() > RETURNS {
                break;
            }
            drop(threads);
            std::thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(100));
            match Threads::stop(pid) {
                Ok(again) => threads = again,
                // It has ended.
                Err(_) => return answer.map(|(answer, _)| Some(answer)),
            }
            hooked = !threads.all().is_empty();
        }
        leave(&mut threads, injected);
        answer.map(|(answer, _)| Some(answer))
    };
    let ready = || {
        let mut files = Files::default();
        let (injected, _) = inject::ready(pid, &mut files)?;
        let done = run(&injected, Stacks::of(pid, &mut files));
        inject::give_up(pid, &injected);
        done
    };
    patiently(pid, ready)
}

/// Calls the agent, which connects to a socket, and answers it there.
pub(super) fn serve<T: Send>(
    pid: i32,
    threads: &mut Threads,
    injected: &Injected,
    order: Order,
    answer: impl FnOnce(Request) -> Result<T> + Send,
) -> Result<T> {
    let listener = Listener::near(pid).map_err(|e| target::far(pid, &e))?;
    let name = listener.name().to_string();
    let stop = AtomicBool::new(false);
    let wait = || {
        while !stop.load(Ordering::Acquire) {
            listener.wait(Duration::from_millis(20));
            match listener.accept() {
                Ok(Some(request)) if request.peer.pid == pid => return Some(answer(request)),
                Ok(_) => {}
                Err(e) => return Some(Err(io_failed(pid, "socket", &e))),
            }
        }
        None
    };
    std::thread::scope(|scope| {
        let server = scope.spawn(wait);
        let called = invoke(threads, injected, order, 0, &name);
        stop.store(true, Ordering::Release);
        let answered = server.join().ok().flatten();
        match (called, answered) {
            (_, Some(Err(e))) | (Err(e), _) => Err(e),
            (Ok(_), Some(Ok(answer))) => Ok(answer),
            (Ok(_), None) => Err(failed(pid, "the agent in the process does not connect", "try again")),
        }
    })
}

/// Answers an agent that asks what to patch: hooks only.
fn follow(pid: i32, mut request: Request, planner: &mut Planner) -> Result<()> {
    let mut answer = || -> io::Result<u32> {
        let mut hello = [0; Hello::SIZE];
        request.read(&mut hello)?;
        let hello = Hello::parse(&hello);
        if hello.version != abi::VERSION || hello.maps_len > 16 << 20 {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let mut text = vec![0; hello.maps_len as usize];
        request.read(&mut text)?;
        let plan = planner.answer(pid, &hello, &maps::in_text(&text), &[]).plan;
        let file = sys::agent::sealed(c"trapline-plan", &plan)?;
        let welcome = Welcome {
            magic: abi::message::MAGIC,
            version: abi::VERSION,
            verdict: Verdict::Follow as u32,
            descriptors: 1,
            shared: 0,
            plan: plan.len() as u64,
            tables: 0,
        };
        request.answer(&welcome.bytes(), &[file.as_fd()])?;
        let mut installed = [0; Installed::SIZE];
        request.read(&mut installed)?;
        Ok(Installed::parse(&installed).error)
    };
    match answer() {
        Ok(0) => Ok(()),
        Ok(errno) => {
            let e = io::Error::from_raw_os_error(errno as i32);
            Err(target::at_limit(pid, &e).unwrap_or_else(|| io_failed(pid, "the agent", &e)))
        }
        Err(e) => Err(io_failed(pid, "the agent", &e)),
    }
}

/// Has a process load the library of a tracer. Returns the name of the tracer that this has told the agent of.
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

/// Whether one of the linker's names is that of a function, which may be a pattern.
fn is(name: &str) -> impl Fn(&str) -> bool {
    move |linker| matches(name, linker) || matches(name, &plain(linker))
}

/// What is enough for a site that has no other tracer.
fn stub(kind: u32, wanted: &Wanted) -> Variant {
    let is_timed = Row::find(kind).is_some_and(|row| row.options[0] == Choice::Time) && !wanted.no_time;
    built_in::stub(kind, is_timed.into())
}

/// Options as the tracer's row has them.
fn options(
    pid: i32,
    kind: u32,
    (wanted, ticks): (&Wanted, u64),
    modules: &[Module],
    plan: &Linker<'_>,
) -> Result<[u64; 8]> {
    let mut options = [0; 8];
    let Some(row) = Row::find(kind) else { return Ok(options) };
    let mut patterns = patterns(wanted);
    for (option, choice) in options.iter_mut().zip(row.options) {
        *option = match choice {
            Choice::Unused => 0,
            Choice::Time => (!wanted.no_time).into(),
            Choice::Flags => flags(wanted),
            Choice::Thread => patterns.next().unwrap_or(0),
            Choice::Caller => caller(pid, wanted, modules, plan)?.into(),
            Choice::Budget => wanted.budget.saturating_mul(ticks) / 1_000_000,
        };
    }
    Ok(options)
}

/// [`STOP`] and [`MAIN`].
fn flags(wanted: &Wanted) -> u64 {
    let main = wanted.threads.is_empty() || wanted.threads.iter().any(|t| t == MAIN_THREAD);
    (if wanted.stop { STOP } else { 0 }) | if main { MAIN } else { 0 }
}

/// The patterns of threads' names, two words each.
fn patterns(wanted: &Wanted) -> impl Iterator<Item = u64> {
    wanted.threads.iter().filter(|t| *t != MAIN_THREAD).flat_map(|name| {
        let mut text = [[0u8; 8]; (THREAD_NAME + 1) / 8];
        text.as_flattened_mut().iter_mut().zip(name.bytes().take(THREAD_NAME)).for_each(|(to, b)| *to = b);
        text.map(u64::from_le_bytes)
    })
}

/// The number of the function whose callees are watched.
fn caller(pid: i32, wanted: &Wanted, modules: &[Module], plan: &Linker<'_>) -> Result<u32> {
    let caller = wanted.caller.as_deref().unwrap_or_default();
    let found = modules.iter().find_map(|m| {
        let site = m.known.site_of(is(caller))?;
        plan.number(site.start.wrapping_add(m.bias))
    });
    found.filter(|_| !caller.is_empty()).ok_or_else(|| {
        let near = if caller.is_empty() { String::new() } else { near_functions(modules, caller) };
        failed(pid, format!("no function {caller} to watch the callees of"), near + "use --loop FUNCTION")
    })
}

fn plain(name: &str) -> String {
    symbols::demangle::of(name).map_or_else(|| name.to_string(), |d| d.plain)
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

fn checked(pid: i32, name: &str) -> Result<[u8; tracer::NAME]> {
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

fn listed(t: &tracer::Known) -> Listed {
    Listed {
        name: String::from_utf8_lossy(&t.name).trim_end_matches('\0').to_string(),
        enabled: t.place > 0,
        failures: if t.kind == Kind::Own as u32 { t.reported } else { 0 },
        panics: t.panics,
        missed: t.missed,
        nested: t.nested,
    }
}

/// What a tracer has so far.
///
/// # Errors
/// There is no such tracer, or the process cannot be stopped.
pub fn print(pid: i32, name: &str) -> Result<Shown> {
    let id = checked(pid, name)?;
    let maps = target::check(pid)?;
    let everything = Functions { libraries: true, ..Functions::default() };
    let (status, print) = with(pid, &[], false, |talk| {
        let (reply, print) = talk.print(id).map_err(|e| io_failed(pid, "the agent", &e))?;
        if let Some(e) = refusal(pid, name, &reply, talk) {
            return Err(e);
        }
        Ok((talk.status().map_err(|e| io_failed(pid, "the agent", &e))?, print))
    })?;
    let known = status.tracers.iter().find(|t| t.name == id);
    let counts = known.and_then(|t| Row::find(t.kind)).is_some_and(|row| row.results == Results::Counts);
    let shown = shown(pid, &status, &print, &modules(pid, &maps, &everything));
    Ok(Shown { tracer: known.map(listed).unwrap_or_default(), counts, ..shown })
}

fn shown(pid: i32, status: &Status, print: &Print, modules: &[Module]) -> Shown {
    let mut places: Vec<(u64, &str, &str)> = Vec::new();
    for m in modules {
        let named = m.known.names.iter().zip(&m.known.addresses);
        places.extend(named.map(|(n, a)| (a.wrapping_add(m.bias), n.as_str(), m.known.path.as_str())));
    }
    places.sort_unstable();
    let of = |number: u64| {
        let site = number.checked_sub(1).and_then(|i| status.sites.get(i as usize));
        let Some(address) = site.map(|s| s.address) else { return (number.to_string(), String::new()) };
        match places.binary_search_by_key(&address, |p| p.0).ok().and_then(|i| places.get(i)) {
            Some((_, name, module)) => (plain(name), (*module).to_string()),
            None => (format!("{address:#x}"), String::new()),
        }
    };
    let ticks_per_ms = u128::from(ticks_per_ms().max(1));
    let ns = |ticks: u64| (u128::from(ticks) * 1_000_000 / ticks_per_ms) as u64;
    let counted = print.counted.iter().map(|c| {
        let (function, module) = of(c.number);
        let own = ns(c.own.clamp(0, c.total as i64) as u64);
        Counted { function, module, calls: c.calls, total: ns(c.total), own }
    });
    let counted = counted.collect();
    let violations = violations::of(pid, &print.violations, |v| (of(v.number.into()).0, ns(v.took)));
    Shown { counted, violations, lost: print.head.lost, ..Shown::default() }
}
