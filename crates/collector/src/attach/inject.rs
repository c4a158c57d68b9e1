//! Injects the agent: a thread of the process loads it from a file in memory, which needs no path that the process can see.

use super::image::Image;
use super::library::{Injected, Libc};
use super::suitable::Process;
use super::{call, failed, io_failed, maps_of, target};
use crate::file;
use abi::message::{Hello, Order};
use engine::backend::code::Files;
use engine::error::{Error, Result};
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, Instant};
use sys::remote::{Caller, Instructions, Thread};

/// How long a thread is looked for that can load a library.
const SEARCH: Duration = Duration::from_secs(5);
/// How long loading may take.
const LOAD: Duration = Duration::from_secs(5);
/// RTLD_NOW, and RTLD_GLOBAL, so that tracers of the program find the agent.
const RTLD_NOW: u64 = 2 | 0x100;
/// The flag that `__libc_dlopen_mode` wants of callers from outside.
const RTLD_DLOPEN: u64 = 0x8000_0000;
const MFD_CLOEXEC: u64 = 1;
/// Linux 6.3.
const MFD_EXEC: u64 = 0x10;

/// The path of the agent's file, if the process sees it there.
pub fn visible_file(pid: i32) -> Option<Vec<u8>> {
    let path = file::place(false).ok()?;
    let own = std::fs::metadata(&path).ok()?;
    let theirs = std::fs::metadata(format!("/proc/{pid}/root{}", path.display())).ok()?;
    let same = (own.dev(), own.ino()) == (theirs.dev(), theirs.ino());
    same.then(|| path.as_os_str().as_bytes().to_vec())
}

/// The agent in a process, injected where it is not there yet, and what it says of itself. Memory for calls stays in the process.
///
/// # Errors
/// It cannot be loaded; the process runs on as it was.
pub fn ready(pid: i32, files: &mut Files) -> Result<(Injected, Hello)> {
    let Some(injected) = Injected::find(pid) else { return inject(pid, files) };
    let mut thread = any(pid)?;
    injected.stay();
    let (_, hello) = call(pid, &mut thread, &injected, (Order::Look, 0), "")?;
    Ok((injected, hello))
}

/// Injects the agent into a process that does not have it.
fn inject(pid: i32, files: &mut Files) -> Result<(Injected, Hello)> {
    let (process, mut thread, instructions) = loader(pid, files)?;
    let tid = thread.tid();
    let mut caller = Caller::new(&mut thread, instructions).map_err(|e| no_memory(pid, &e))?;
    load((pid, tid), &mut caller, process.libc())?;
    let injected = Injected::find(pid).ok_or_else(|| failed(pid, "the agent was not loaded", "restart the program"))?;
    injected.stay();
    injected.keep(caller);
    let (_, hello) = call(pid, &mut thread, &injected, (Order::Look, 0), "")?;
    Ok((injected, hello))
}

fn no_memory(pid: i32, e: &io::Error) -> Error {
    if e.kind() == io::ErrorKind::TimedOut {
        return failed(pid, "a thread that was stopped does not go on", "thaw the process, if it is frozen");
    }
    target::at_limit(pid, e).unwrap_or_else(|| failed(pid, format!("no memory for the agent: {e}"), target::UPROBES))
}

/// Has a process load a library, by a path that it sees.
///
/// # Errors
/// It cannot be loaded; the process runs on as it was.
pub fn library(pid: i32, path: &[u8]) -> Result<()> {
    let (process, mut thread, instructions) = loader(pid, &mut Files::default())?;
    let mut caller = Caller::new(&mut thread, instructions).map_err(|e| no_memory(pid, &e))?;
    open(pid, &mut caller, process.libc(), &[path, b"\0"].concat())
}

/// A process, and a thread of it that can load a library, stopped; instructions of its.
fn loader(pid: i32, files: &mut Files) -> Result<(Process, Thread, Instructions)> {
    let image = Image::of(pid)?;
    let maps = maps_of(pid)?;
    let libc = Libc::find(pid, &maps).ok_or_else(|| failed(pid, "its glibc cannot be read", "run as root"))?;
    let process = Process::new(pid, &maps, libc, files);
    let instructions = Instructions::of(pid).map_err(|e| io_failed(pid, "memory", &e))?;
    let thread = choose(pid, |t| process.is_suitable(t))?;
    image.is_still_there(pid)?;
    Ok((process, thread, instructions))
}

/// Removes the memory for calls, where it was left in a process that could not be attached to.
pub fn give_up(pid: i32, injected: &Injected) {
    if injected.has_memory()
        && let Ok(mut thread) = any(pid)
    {
        injected.leave(&mut thread);
    }
}

/// Stops a thread, whichever can be stopped.
fn any(pid: i32) -> Result<Thread> {
    choose(pid, |_| true)
}

/// Stops a thread that is good for what is to be done.
fn choose(pid: i32, is_good: impl Fn(&Thread) -> bool) -> Result<Thread> {
    let since = Instant::now();
    // Those that have been asked to stop, and wait in the kernel: they are nobody else's to ask.
    let mut asked: Vec<Thread> = Vec::new();
    while since.elapsed() < SEARCH {
        let mut tids = sys::proc::threads(pid).map_err(|e| io_failed(pid, "threads", &e))?;
        // The first thread first.
        order::by_key(&mut tids, |tid| *tid != pid);
        for tid in tids {
            let before = asked.iter().position(|t| t.tid() == tid).map(|i| asked.swap_remove(i));
            // One that waits in the kernel, for the child of a vfork(2) for instance, does not stop before it returns.
            if before.is_none() && sys::proc::status_field(tid, "State").is_some_and(|s| s.starts_with('D')) {
                continue;
            }
            let mut thread = match before.map_or_else(|| Thread::ask(tid), Ok) {
                Ok(thread) => thread,
                Err(e) if tid == pid => return Err(io_failed(pid, "stop", &e)),
                Err(_) => continue,
            };
            match thread.has_stopped() {
                Ok(true) if is_good(&thread) => return Ok(thread),
                Ok(true) => {}
                Ok(false) => asked.push(thread),
                Err(e) if tid == pid => return Err(io_failed(pid, "stop", &e)),
                Err(_) => {}
            }
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    Err(failed(pid, "all of its threads are in the loader, in malloc, or wait in the kernel", "try again"))
}

/// Has the thread load the agent: from memory, or else from the agent's file. The path stays in the loader's list, which debuggers read: by the
/// thread's id it is none of theirs, as long as the process has a procfs of its own pid namespace.
fn load((pid, tid): (i32, i32), caller: &mut Caller<'_>, libc: &Libc) -> Result<()> {
    let from_memory = match in_memory(pid, caller) {
        Ok(fd) => {
            let own = sys::proc::own_id(tid).unwrap_or(tid);
            let opened = match loads(pid, caller, libc, format!("/proc/self/task/{own}/fd/{fd}\0").as_bytes()) {
                Ok(Some(_)) => open(pid, caller, libc, format!("/proc/self/fd/{fd}\0").as_bytes()),
                other => other.map(drop),
            };
            let _ = caller.syscall(CLOSE, [fd as u64, 0, 0, 0, 0, 0], &[]);
            opened
        }
        Err(e) if target::at_limit(pid, &e).is_some() => return Err(no_memory(pid, &e)),
        Err(e) => Err(no_memory(pid, &e)),
    };
    match (from_memory, visible_file(pid)) {
        (Ok(()), _) => Ok(()),
        (Err(_), Some(path)) => open(pid, caller, libc, &[&path[..], b"\0"].concat()),
        (Err(e), None) => Err(e),
    }
}

const CLOSE: i64 = 3;
const MEMFD_CREATE: i64 = 319;

/// The agent as a file in memory; its descriptor in the process.
fn in_memory(pid: i32, caller: &mut Caller<'_>) -> io::Result<i32> {
    let name = [format!("trapline-{}", file::name()).as_bytes(), b"\0"].concat();
    let at = caller.data();
    let mut create = |flags: u64| caller.syscall(MEMFD_CREATE, [at, flags, 0, 0, 0, 0], &name);
    let fd = match create(MFD_CLOEXEC | MFD_EXEC)? {
        n if n < 0 => create(MFD_CLOEXEC)?,
        n => n,
    };
    if fd < 0 {
        return Err(io::Error::from_raw_os_error(-fd as i32));
    }
    let written = OpenOptions::new()
        .write(true)
        .open(format!("/proc/{pid}/fd/{fd}"))
        .and_then(|mut there| there.write_all(file::bytes()));
    if let Err(e) = written {
        let _ = caller.syscall(CLOSE, [fd as u64, 0, 0, 0, 0, 0], &[]);
        return Err(e);
    }
    Ok(fd as i32)
}

/// dlopen(3) in the process.
fn open(pid: i32, caller: &mut Caller<'_>, libc: &Libc, path: &[u8]) -> Result<()> {
    let Some(why) = loads(pid, caller, libc, path)? else { return Ok(()) };
    let limit = why.contains("Too many open files").then(|| target::at_limit(pid, &target::too_many_files()));
    let todo = "start the command under trapline";
    Err(limit.flatten().unwrap_or_else(|| failed(pid, format!("the library cannot be loaded: {why}"), todo)))
}

/// Has the thread load a library: none, or why the loader has refused it.
fn loads(pid: i32, caller: &mut Caller<'_>, libc: &Libc, path: &[u8]) -> Result<Option<String>> {
    let (function, flags) = match (libc.address("dlopen"), libc.address("__libc_dlopen_mode")) {
        (Some(dlopen), _) => (dlopen, RTLD_NOW),
        (None, Some(internal)) => (internal, RTLD_NOW | RTLD_DLOPEN),
        (None, None) => return Err(failed(pid, "its glibc has no dlopen", "start the command under trapline")),
    };
    let at = caller.data();
    let called = caller.call(function, [at, flags, 0, 0, 0, 0], path, LOAD);
    match called {
        Ok(0) => Ok(Some(why(pid, caller, libc))),
        Ok(_) => Ok(None),
        Err(e) if e.kind() == io::ErrorKind::TimedOut => {
            Err(failed(pid, "the agent is not loaded yet: the loader is busy", "the process runs on: try again"))
        }
        Err(e) => Err(io_failed(pid, "dlopen", &e)),
    }
}

/// What dlerror(3) says, as far as it is text.
fn why(pid: i32, caller: &mut Caller<'_>, libc: &Libc) -> String {
    let unknown = || "the loader refuses it".to_string();
    let Some(function) = libc.address("dlerror") else { return unknown() };
    let Ok(at @ 1..) = caller.call(function, [0; 6], &[], LOAD) else { return unknown() };
    let mut text = [0; 256];
    let len = sys::mem::read(pid, at, &mut text).unwrap_or(0);
    let text = text[..len].split(|b| *b == 0).next().unwrap_or_default();
    String::from_utf8_lossy(text).chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}
