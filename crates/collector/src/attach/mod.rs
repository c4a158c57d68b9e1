//! Running processes: the agent is injected, and taken out again, by ptrace(2).
//!
//! ```text
//!  before   files are read, places where no thread may be are noted
//!  inject   one thread, outside of the loader and of malloc, loads the agent (dlopen), and says where it is; the others run on
//!  link     the plan is made for what is mapped now, while all run
//!  attach   all threads stop; one calls the agent's entry point, which asks the server and installs the plan as at a start
//!  detach   all threads stop; one calls the agent's entry point, which restores every byte and every handler
//! ```
//!
//! Between these the process is not traced by ptrace.

mod image;
mod inject;
mod library;
mod linker;
mod modules;
mod permits;
pub mod recording;
pub mod results;
mod sections;
mod served;
mod suitable;
mod target;
mod threads;
pub mod tracers;
pub mod violations;
pub mod wanted;

pub use target::{ended, far};

use super::ready::Plans;
use crate::module::Known;
use abi::message::{FREE, Hello, Invocation, MAGIC, Order, TRACED};
use engine::backend::code::Files;
use engine::error::{Error, Result};
use image::Image;
use library::Injected;
use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};
use suitable::Stacks;
use sys::maps::{self, Map};
use sys::proc;
use sys::remote::{self, Thread, Threads};

/// How long the agent may take to ask and to install.
const PATIENCE: Duration = Duration::from_secs(20);

/// How often a plan is made anew, because the process has mapped something meanwhile, until it is made while all threads are stopped.
const TRIES: u32 = 4;

/// A process that is to be attached to.
pub struct Running {
    pid: i32,
    image: Image,
    /// Where no thread may be when it is patched.
    splits: Vec<Range<u64>>,
    /// Its files with functions that are traced, and what is added to their addresses.
    modules: Vec<(Arc<Known>, u64)>,
}

/// What to say where an attempt fails.
fn failed(pid: i32, why: impl Into<String>, todo: impl Into<String>) -> Error {
    Error::failed(format!("-p {pid}"), why, todo)
}

/// As [`failed`], for an error of a call of trapline's own.
fn io_failed(pid: i32, what: &str, e: &io::Error) -> Error {
    if e.kind() == io::ErrorKind::TimedOut && target::is_frozen(pid) {
        return target::frozen(pid);
    }
    if matches!(e.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::NotFound) || e.raw_os_error() == Some(ESRCH)
    {
        return target::refusal(pid, e);
    }
    failed(pid, format!("{what}: {e}"), "the process runs on untraced: try again")
}

const ESRCH: i32 = 3;

impl Running {
    /// Looks at a process, without touching it. `prepare` reads the files that it has mapped.
    ///
    /// # Errors
    /// It cannot be attached to.
    pub fn new(pid: i32, prepare: impl FnOnce(&[Map]) -> (Vec<Range<u64>>, Vec<(Arc<Known>, u64)>)) -> Result<Running> {
        let image = Image::of(pid);
        let maps = target::check(pid)?;
        let (splits, modules) = prepare(&maps);
        Ok(Running { pid, image: image?, splits, modules })
    }

    /// Its id.
    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// Injects the agent where it is not there yet, and has it ask at the socket of this name, where `plans` answer.
    ///
    /// # Errors
    /// It cannot be attached to; it runs on as it was.
    pub fn attach(&self, socket: &str, plans: &Plans) -> Result<()> {
        patiently(self.pid, || self.attach_here(socket, plans))
    }

    fn attach_here(&self, socket: &str, plans: &Plans) -> Result<Option<()>> {
        let mut files = Files::default();
        let (injected, hello) = inject::ready(self.pid, &mut files)?;
        let attached = self.link_and_install((&injected, &hello), &mut files, socket, plans);
        inject::give_up(self.pid, &injected);
        attached
    }

    /// Has the plan ready before all threads stop. Where the process has mapped something meanwhile, they run on, and it is made anew.
    fn link_and_install(
        &self,
        (injected, hello): (&Injected, &Hello),
        files: &mut Files,
        socket: &str,
        plans: &Plans,
    ) -> Result<Option<()>> {
        let pid = self.pid;
        let mut tries = 1..=TRIES;
        loop {
            let mut stacks = Stacks::of(pid, files);
            plans.prepare(pid, hello, maps_of(pid)?).map_err(|e| io_failed(pid, "memory for its plan", &e))?;
            tries.next();
            let mut threads = Threads::stop(pid).map_err(|e| io_failed(pid, "its threads do not stop", &e))?;
            if has_vfork(&threads) {
                return Ok(None);
            }
            if tries.is_empty() || plans.fits(pid, &maps_of(pid)?) {
                let attached = self.install(&mut threads, injected, &mut stacks, socket);
                leave(&mut threads, injected);
                return attached.map(Some);
            }
        }
    }

    /// Has the agent ask and install, while all threads are stopped.
    fn install(&self, threads: &mut Threads, injected: &Injected, stacks: &mut Stacks, socket: &str) -> Result<()> {
        let seen = look(threads, injected, stacks)?;
        if seen.session == 1 {
            let why = "graph is already enabled: another trapline traces its functions";
            return Err(failed(self.pid, why, "disable it first"));
        }
        clear(threads, &self.splits, stacks)?;
        // A thread that is cleared away may execute another program.
        self.image.is_still_there(self.pid)?;
        let free = is_free(threads, injected, &seen, stacks);
        threads::forget(threads, &seen, free);
        let attached = invoke(threads, injected, Order::Attach, if free { FREE } else { 0 }, socket)?;
        if attached.flags & TRACED != 0
            && let Err(e) = recording::join(threads, injected, &self.modules)
        {
            let _ = invoke(threads, injected, Order::Detach, 0, "");
            return Err(e);
        }
        Ok(())
    }
}

/// How long a child of vfork(2) may take to execute its program.
const VFORK: Duration = Duration::from_secs(5);

/// Does a job with stopped threads in a thread of its own. None: a child of vfork(2) runs in the memory of the process; it is not stopped,
/// and may be anywhere in the code. Then the job is done again a little later.
fn patiently<T: Send>(pid: i32, mut job: impl FnMut() -> Result<Option<T>> + Send) -> Result<T> {
    let since = Instant::now();
    loop {
        let done = remote::alone(&mut job).map_err(|e| io_failed(pid, "thread", &e))??;
        if let Some(done) = done {
            return Ok(done);
        }
        if since.elapsed() > VFORK {
            let why = "a child that it has made by vfork(2) runs in its memory";
            return Err(failed(pid, why, "try again when that has executed its program"));
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Whether a child of vfork(2) runs in its memory.
fn has_vfork(threads: &Threads) -> bool {
    threads.deaf().iter().any(|(tid, _)| proc::is_in_vfork(threads.pid(), *tid))
}

/// How long threads may take to return from the calls that were traced; until then, the hook of unwinders stays in libgcc.
const RETURN: Duration = Duration::from_secs(2);

/// What is left of a session that has been taken out of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Left {
    /// Nothing: every byte of code is as it was.
    Nothing,
    /// The hook of unwinders, which threads need that have not returned from functions that were traced.
    Hook,
    /// Functions that had other bytes than trapline has put there.
    Bytes(u64),
}

/// Takes a session out of a process.
///
/// # Errors
/// It cannot be stopped, or has ended.
pub fn detach(pid: i32) -> Result<Left> {
    detach_within(pid, RETURN)
}

/// Takes the agent out of a process; threads have so long to return from functions that were traced.
///
/// # Errors
/// As for [`detach`].
pub fn detach_within(pid: i32, patience: Duration) -> Result<Left> {
    remote::alone(|| detach_here(pid, patience)).map_err(|e| io_failed(pid, "thread", &e))?
}

/// Takes out of a process what a session has left there whose collector is gone. Whether there was any.
///
/// # Errors
/// A session is under way; or as for [`detach`].
pub fn sweep(pid: i32) -> Result<bool> {
    target::check(pid)?;
    let state = remote::alone(|| {
        let Some(injected) = Injected::find(pid) else { return Ok(0) };
        let mut threads = Threads::stop(pid).map_err(|e| io_failed(pid, "its threads do not stop", &e))?;
        invoke(&mut threads, &injected, Order::Look, 0, "").map(|seen| seen.session)
    });
    match state.map_err(|e| io_failed(pid, "thread", &e))?? {
        0 => Ok(false),
        1 => Err(failed(pid, "another trapline traces it", "end that one")),
        _ => detach(pid).map(|_| true),
    }
}

/// Whether a process has the agent.
pub fn has_agent(pid: i32) -> bool {
    Injected::find(pid).is_some()
}

fn detach_here(pid: i32, patience: Duration) -> Result<Left> {
    let Some(injected) = Injected::find(pid) else { return Ok(Left::Nothing) };
    // It may have got a filter since.
    permits::check(pid).map_err(|e| match e {
        Error::Failed { why, .. } => {
            failed(pid, why, "its functions are no longer recorded, but the jumps in them stay until it ends")
        }
        other => other,
    })?;
    injected.stay();
    let left = take_out(pid, &injected, patience);
    inject::give_up(pid, &injected);
    left
}

fn take_out(pid: i32, injected: &Injected, patience: Duration) -> Result<Left> {
    let since = Instant::now();
    let mut pause = Duration::from_millis(1);
    let mut stacks = Stacks::of(pid, &mut Files::default());
    // What could not be undone, once bytes and handlers are as they were.
    let mut undone = None;
    let mut traced = false;
    loop {
        let mut threads = Threads::stop(pid).map_err(|e| io_failed(pid, "its threads do not stop", &e))?;
        let seen = look(&mut threads, injected, &mut stacks)?;
        let free = is_free(&mut threads, injected, &seen, &stacks);
        if seen.session != 0 && (free || undone.is_none()) {
            let done = invoke(&mut threads, injected, Order::Detach, if free { FREE } else { 0 }, "")?;
            threads::forget(&mut threads, &seen, free);
            (undone, traced) = (Some(done.left), done.flags & TRACED != 0);
        }
        let left = match undone {
            None => Some(Left::Nothing),
            Some(0) if free => Some(Left::Nothing),
            // The last tracer takes the rest along.
            Some(0) if traced => Some(Left::Nothing),
            Some(0) => (since.elapsed() > patience).then_some(Left::Hook),
            Some(n) => Some(Left::Bytes(n)),
        };
        if let Some(left) = left {
            leave(&mut threads, injected);
            return Ok(left);
        }
        drop(threads);
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(200));
    }
}

/// Asks the agent for its state, and what stubs hide of stacks.
fn look(threads: &mut Threads, injected: &Injected, stacks: &mut Stacks) -> Result<Invocation> {
    let seen = invoke(threads, injected, Order::Look, 0, "")?;
    stacks.areas = library::areas(threads.pid(), &seen);
    stacks.hidden.clear();
    for (_, place, address) in threads::entries(threads, &seen).unwrap_or_default() {
        // Of a chain of tail calls, the oldest one's is the program's.
        stacks
            .hidden
            .entry(place)
            .and_modify(|a| *a = if stacks.areas.iter().any(|r| r.contains(&address)) { *a } else { address })
            .or_insert(address);
    }
    Ok(seen)
}

/// Has no thread be where bytes change.
fn clear(threads: &mut Threads, splits: &[Range<u64>], stacks: &Stacks) -> Result<()> {
    let pid = threads.pid();
    match threads.clear(splits, &|t| stacks.walk(t)).map_err(|e| io_failed(pid, "stop", &e))? {
        true => Ok(()),
        false => Err(failed(pid, "a thread stays in the first bytes of a function", "try again")),
    }
}

/// Whether no thread needs the agent's areas any more.
fn is_free(threads: &mut Threads, injected: &Injected, seen: &Invocation, stacks: &Stacks) -> bool {
    if seen.areas == 0 {
        return threads.deaf().is_empty();
    }
    let mut ranges = stacks.areas.clone();
    ranges.push(injected.code.clone());
    order::by_key(&mut ranges, |r| r.start);
    threads.deaf().is_empty()
        && !threads::have_calls(threads, seen, &stacks.areas)
        && threads.all().iter().all(|t| t.may_return_into(&ranges, &|t| stacks.walk(t)).is_ok_and(|may| !may))
}

/// Calls the agent's entry point.
fn invoke(threads: &mut Threads, injected: &Injected, order: Order, flags: u32, socket: &str) -> Result<Invocation> {
    let pid = threads.pid();
    let first = threads.all().first_mut().ok_or_else(|| target::refusal(pid, &io::ErrorKind::NotFound.into()))?;
    let (answer, _) = call(pid, first, injected, (order, flags), socket)?;
    Ok(answer)
}

/// Calls the agent's entry point in a thread. For [`Order::Look`], what it says of itself follows the answer.
fn call(
    pid: i32,
    thread: &mut Thread,
    injected: &Injected,
    (order, flags): (Order, u32),
    socket: &str,
) -> Result<(Invocation, Hello)> {
    let path = if order == Order::Attach { inject::visible_file(pid).unwrap_or_default() } else { Vec::new() };
    let invocation = Invocation {
        magic: MAGIC,
        version: abi::VERSION,
        order: order as u32,
        flags,
        socket_len: socket.len() as u32,
        path_len: path.len() as u32,
        ..Invocation::default()
    };
    let bytes = [&invocation.bytes()[..], socket.as_bytes(), &path, b"\0", &[0; Hello::SIZE]].concat();
    // The entry point is nothing but an address.
    injected.image.is_still_there(pid)?;
    let mut called = || {
        let mut caller = injected.caller(pid, thread)?;
        let at = caller.data();
        let result = caller.call(injected.entry, [at, 0, 0, 0, 0, 0], &bytes, PATIENCE)?;
        let mut answer = [0; Invocation::SIZE + Hello::SIZE];
        sys::mem::read(pid, at, &mut answer)?;
        injected.keep(caller);
        Ok((result, answer))
    };
    let failed_call = |e| target::at_limit(pid, &e).unwrap_or_else(|| io_failed(pid, "a call in the process", &e));
    let (result, answer) = called().map_err(failed_call)?;
    let (answer, hello) = answer.split_at(Invocation::SIZE);
    match (result as i32, answer.first_chunk(), hello.first_chunk()) {
        (0, Some(answer), Some(hello)) => Ok((Invocation::parse(answer), Hello::parse(hello))),
        (errno, ..) => {
            let why = io::Error::from_raw_os_error(errno);
            Err(target::at_limit(pid, &why).unwrap_or_else(|| {
                failed(pid, format!("the agent in the process: {why}"), "the process runs on untraced: try again")
            }))
        }
    }
}

/// Removes the memory for calls from the process.
fn leave(threads: &mut Threads, injected: &Injected) {
    threads.all().first_mut().into_iter().for_each(|first| injected.leave(first));
}

/// What a process has mapped.
fn maps_of(pid: i32) -> Result<Vec<Map>> {
    maps::of(pid).map_err(|e| target::refusal(pid, &e))
}
