//! `trapline stacks`: what each thread is doing now, since when, what it waits for and who can end that.
//!
//! ```text
//! unprivileged::threads: calls, stacks ─┬─► resolver: functions ─────────────┬─► views::threads: deadlocks, text, JSON
//!                                       └─► futex, files: who can end it ────┘
//! ```

mod files;
mod futex;
mod holders;

use crate::ask::Ask;
use crate::output::Output;
use crate::view::screen;
use crate::{complain, stacks, target};
use engine::backend::in_flight::InFlight;
use engine::resolver::{Origin, Resolver};
use engine::target::Target;
use engine::{Error, Result, rights};
use events::names::{FdName, Names, Stack};
use events::{Event, Schema};
use files::Lock;
use holders::{End, Holders, name_of, process};
use std::collections::{HashMap, HashSet};
use std::io::ErrorKind;
use std::time::{Duration, Instant};
use sys::proc;
use unprivileged::threads::{Missing, ReadRegisters, Reader, Thread};
use views::Options;
use views::options::{FdNames, Prefix};
use views::threads::{Actor, Deadlock, Found, Frame, Process, Style, Wait};

/// Processes that are looked at because others wait for them.
const MOST_OTHERS: usize = 64;
/// Functions of a stack, from the innermost on, that say what a futex is.
const INNERMOST: usize = 8;
/// Descriptors of a process whose names are read for the text of calls.
const MOST_NAMED: usize = 512;
/// What waitid(2) waits for (`include/uapi/linux/wait.h`).
const P_PID: u64 = 1;
const P_PIDFD: u64 = 3;

/// Runs the command.
pub fn run(ask: &Ask) -> Result<u8> {
    rights::act_as_the_user();
    let _ = sys::process::raise_file_limit();
    let all = ask.target.all;
    let asked: Vec<i32> = match target::target(ask)? {
        Target::Pids(pids) => pids,
        _ => {
            let own = sys::process::own_pid();
            proc::processes().into_iter().filter(|pid| *pid != own && !proc::is_kernel_thread(*pid)).collect()
        }
    };
    let reader = Reader::new(ask.snapshot.no_stop, registers());
    let mut look = Look {
        reader,
        resolver: Resolver::new(Origin::Live, stacks::places(&ask.names)?),
        holders: Holders::default(),
    };
    let mut processes = Vec::new();
    let mut refused: Vec<(i32, std::io::Error)> = Vec::new();
    for pid in asked {
        let pid = proc::process_of(pid).unwrap_or(pid);
        if processes.iter().any(|p: &Process| p.pid == pid) {
            continue;
        }
        match look.process(pid) {
            Ok(process) => processes.push(process),
            Err(e) => refused.push((pid, e)),
        }
    }
    if all && processes.is_empty() {
        return Err(Error::failed("-a", "there is no process that you may look into", "run trapline as root"));
    }
    if !all {
        report_refused(&refused, processes.is_empty())?;
    }
    let hidden = refused.iter().filter(|(_, e)| e.kind() == ErrorKind::PermissionDenied).count();
    look.others(&mut processes);
    let found = Found { processes, stopped: look.reader.stopped };
    let deadlocks = still(views::threads::find(&found.processes));
    let json = ask.show.first().is_some_and(|show| show.view == "json");
    let mut out = match &ask.keep.output {
        Some(_) => Output::open(ask.keep.output.as_ref(), false, false)?,
        None => Output::view(None)?,
    };
    if json {
        views::threads::json(&found, &deadlocks, out.buffer());
    } else {
        let colour = screen::colour(&ask.format, &out);
        let style = Style { colour, each: ask.snapshot.each, no_inline: ask.lens.no_inline };
        views::threads::text(&found, &deadlocks, style, out.buffer());
    }
    out.close();
    if let Some(e) = out.take_trouble() {
        return Err(e);
    }
    if ask.quiet == 0 {
        let threads: usize = found.processes.iter().map(|p| p.threads.len()).sum();
        let stops = match look.reader.stops {
            0 => "none was stopped".into(),
            1 => format!("one was stopped, for {}", views::units::duration(found.stopped)),
            n => format!("{n} were stopped, for {} in all", views::units::duration(found.stopped)),
        };
        let s = if threads == 1 { "" } else { "s" };
        complain(&format!("{threads} thread{s} looked at; {stops}"));
        if all && hidden > 0 {
            let todo = if rights::is_root() { "" } else { ": run as root" };
            complain(&format!("{hidden} processes may not be looked into, and are not shown{todo}"));
        }
        if !all {
            stacks::tell(ask.quiet, &look.resolver.troubles());
        }
    }
    Ok(0)
}

/// How long threads that were stopped may take to wait again, and how often that is looked at.
const RETURN: Duration = Duration::from_millis(300);
const LOOK: Duration = Duration::from_millis(1);

/// The deadlocks without those that are likely only and have come to an end in a moment: threads pass locks on all the time.
fn still(mut deadlocks: Vec<Deadlock>) -> Vec<Deadlock> {
    const MOMENT: Duration = Duration::from_millis(20);
    if deadlocks.iter().any(|d| d.likely) {
        let of_process = |tid: &i32| proc::process_of(*tid).unwrap_or(*tid);
        let of = |tid: &i32| proc::switches(of_process(tid), *tid);
        let switches = |d: &Deadlock| -> Vec<Option<u64>> { d.circle.iter().map(of).collect() };
        // Those that were stopped for their stacks go back into their calls as soon as a processor is free.
        let waits = |tid: &i32| proc::state(of_process(tid), *tid) != Some('R');
        let until = Instant::now() + RETURN;
        while Instant::now() < until && !deadlocks.iter().filter(|d| d.likely).all(|d| d.circle.iter().all(waits)) {
            std::thread::sleep(LOOK);
        }
        let before: Vec<_> = deadlocks.iter().map(switches).collect();
        std::thread::sleep(MOMENT);
        let mut before = before.into_iter();
        deadlocks.retain(|d| before.next() == Some(switches(d)) || !d.likely);
    }
    deadlocks
}

/// Who knows the registers of blocked threads: a program in the kernel, for root.
fn registers() -> Option<ReadRegisters> {
    let read = || kernel::registers::of_all().unwrap_or_default();
    rights::is_root().then(|| Box::new(read) as ReadRegisters)
}

/// Says which processes could not be looked at.
fn report_refused(refused: &[(i32, std::io::Error)], none: bool) -> Result<()> {
    let error = |(pid, e): &(i32, std::io::Error)| match e.kind() {
        ErrorKind::NotFound => Error::failed(format!("-p {pid}"), "no such process", "see 'ps -e'"),
        ErrorKind::PermissionDenied => {
            let yama = proc::yama_scope().is_some_and(|scope| scope > 0) && !rights::is_root();
            let why = match yama {
                true => "you may not look into it (/proc/sys/kernel/yama/ptrace_scope)",
                false => "you may not look into it (ptrace(2), access mode checking)",
            };
            Error::failed(format!("-p {pid}"), why, "run trapline as root, or name a process of your own")
        }
        _ => Error::failed(format!("-p {pid}"), e.to_string(), "name a process that runs"),
    };
    match refused.split_first() {
        Some((first, _)) if none => Err(error(first)),
        _ => {
            refused.iter().for_each(|r| complain(&error(r).to_string()));
            Ok(())
        }
    }
}

/// What looks at processes.
struct Look {
    reader: Reader,
    resolver: Resolver,
    holders: Holders,
}

/// The threads of one process, for what needs them all.
pub struct Looked<'t> {
    pid: i32,
    threads: &'t [Thread],
}

impl Looked<'_> {
    /// The thread of this process that knows itself by this id, as the process's memory has it.
    fn known(&self, own: i32) -> Option<i32> {
        self.threads.iter().find(|t| t.own == own).map(|t| t.tid)
    }

    /// A thread's name.
    fn name(&self, tid: i32) -> String {
        let found = self.threads.iter().find(|t| t.tid == tid);
        found.map(|t| String::from_utf8_lossy(&t.name).into_owned()).unwrap_or_default()
    }

    /// A thread, as one that can end a wait.
    fn thread(&self, tid: i32) -> Actor {
        Actor { pid: self.pid, tid: Some(tid), name: self.name(tid), how: String::new() }
    }

    fn is_futex(&self, call: &InFlight) -> bool {
        schema_of(call).is_some_and(|s| s.name == "futex")
    }
}

/// The schema of a 64-bit call.
fn schema_of(call: &InFlight) -> Option<&'static Schema> {
    events::registry::by_number(call.nr).filter(|_| !call.compat)
}

impl Look {
    fn process(&mut self, pid: i32) -> std::io::Result<Process> {
        let threads = self.reader.read(pid)?;
        let names = Descriptors::of(pid);
        let looked = Looked { pid, threads: &threads };
        let mut shown = Vec::with_capacity(threads.len());
        for t in &threads {
            let stack = self.stack(pid, t);
            let functions: Vec<String> = stack.iter().take(INNERMOST).map(|f| f.function.clone()).collect();
            shown.push(views::threads::Thread {
                tid: t.tid,
                own: (t.own != t.tid).then_some(t.own),
                name: String::from_utf8_lossy(&t.name).into_owned(),
                state: t.state,
                call: t.call.as_ref().map(|call| text_of(call, &names)),
                idle: t.idle,
                wait: self.wait(&looked, t, &functions),
                stack,
                incomplete: incomplete(t),
            });
        }
        let own = proc::own_id(pid).filter(|own| *own != pid);
        Ok(Process { pid, own, name: name_of(pid), threads: shown, other: false })
    }

    /// Looks at the processes that these wait for, and at those that they wait for.
    fn others(&mut self, processes: &mut Vec<Process>) {
        let mut seen: HashSet<i32> = processes.iter().map(|p| p.pid).collect();
        let mut at = 0;
        while let Some(p) = processes.get(at) {
            let waits = p.threads.iter().filter_map(|t| t.wait.as_ref());
            let next: Vec<i32> = waits.flat_map(|w| &w.by).map(|a| a.pid).filter(|pid| seen.insert(*pid)).collect();
            for pid in next {
                if processes.iter().filter(|p| p.other).count() >= MOST_OTHERS {
                    return;
                }
                if let Ok(other) = self.process(pid) {
                    processes.push(Process { other: true, ..other });
                }
            }
            at += 1;
        }
    }

    fn stack(&mut self, pid: i32, t: &Thread) -> Vec<Frame> {
        let raw = Stack { kernel: false, ended: t.ended as u8, guessed: 0, frames: &t.frames };
        let mut stack = Vec::new();
        self.resolver.frames(pid as u32, sys::time::monotonic(), &raw, &mut |f| {
            stack.push(Frame::of(f));
        });
        stack
    }

    /// What a thread waits for.
    fn wait(&mut self, looked: &Looked<'_>, t: &Thread, functions: &[String]) -> Option<Wait> {
        let call = t.call.as_ref()?;
        let (pid, args) = (looked.pid, call.args);
        let fd = args[0] as i32;
        let holders = &mut self.holders;
        match schema_of(call)?.name {
            "futex" => futex::wait(looked, t, call, functions),
            "read" | "readv" | "pread64" | "preadv" | "recvfrom" | "recvmsg" | "recvmmsg" => {
                files::transfer(pid, fd, End::Read, holders)
            }
            "write" | "writev" | "pwrite64" | "pwritev" | "sendto" | "sendmsg" | "sendmmsg" => {
                files::transfer(pid, fd, End::Write, holders)
            }
            "accept" | "accept4" => Some(files::accept(pid, fd)),
            "poll" | "ppoll" => {
                let timed = if schema_of(call)?.name == "poll" { args[2] as i32 >= 0 } else { args[2] != 0 };
                let fds = polled(t.tid, args[0], args[1]);
                files::ends(pid, &fds, timed).or_else(|| files::any_of(pid, &fds, timed))
            }
            "epoll_wait" | "epoll_pwait" => files::any_of(pid, &proc::epoll_targets(pid, fd), args[3] as i32 >= 0),
            "epoll_pwait2" => files::any_of(pid, &proc::epoll_targets(pid, fd), args[3] != 0),
            "flock" => files::lock(pid, fd, Lock::Flock, holders),
            "fcntl" => match args[1] {
                7 => files::lock(pid, fd, Lock::Posix, holders),
                38 => files::lock(pid, fd, Lock::Description, holders),
                _ => None,
            },
            "wait4" => Some(children(pid, args[0] as i32)),
            "waitid" => match args[0] {
                P_PIDFD => files::ends(pid, &[args[1] as i32], false),
                P_PID => Some(children(pid, args[1] as i32)),
                _ => Some(children(pid, -1)),
            },
            "vfork" => Some(children(pid, -1)),
            _ => None,
        }
    }
}

/// The end of a child: of this one, as the process knows it, or of any (-1), or of one of a group (0, or less than -1), which may be any
/// too.
fn children(pid: i32, which: i32) -> Wait {
    // A child may be in further namespaces, which its parent does not see.
    let depth = proc::ids_by_namespace(pid).len().saturating_sub(1);
    let is = |child: &i32| which <= 0 || proc::ids_by_namespace(*child).get(depth) == Some(&which);
    let by: Vec<Actor> = proc::children(pid).into_iter().filter(is).map(process).collect();
    let (object, relation) = match &by[..] {
        [child] => (format!("the end of child {} ({})", child.pid, child.name), ""),
        [] => ("the end of a child".into(), ""),
        _ => ("the end of a child".into(), "which are"),
    };
    Wait { kind: "child", object, relation, complete: !by.is_empty(), by, ..Wait::default() }
}

/// The descriptors of a `struct pollfd` array: 8 bytes each, the descriptor first.
fn polled(tid: i32, address: u64, count: u64) -> Vec<i32> {
    const MOST: u64 = 4096;
    let mut bytes = vec![0; 8 * count.min(MOST) as usize];
    let n = sys::mem::read(tid, address, &mut bytes).unwrap_or(0);
    let fd = |entry: &[u8]| entry.first_chunk::<4>().map_or(-1, |b| i32::from_le_bytes(*b));
    bytes[..n].chunks_exact(8).map(fd).filter(|fd| *fd >= 0).collect()
}

/// What would say where the last frame was called from.
fn kept(t: &Thread) -> &'static str {
    match t.ended {
        unwind::Ended::Stub => "the callers of functions that are traced are in the agent's memory",
        _ => "the callers are kept in rbp",
    }
}

/// Why a stack is not whole.
fn incomplete(t: &Thread) -> Option<String> {
    use unwind::Ended;
    Some(match &t.missing {
        Some(Missing::NotRestarted) => {
            format!("{}, which only a stop of the thread could read: this call would fail with EINTR", kept(t))
        }
        Some(Missing::NotStopped) if t.frames.is_empty() => "it runs, and --no-stop is given: no stack".into(),
        Some(Missing::NotStopped) => format!("{}, and --no-stop is given", kept(t)),
        Some(Missing::Refused(why)) => match t.state {
            't' => "it is stopped by another tracer: its callers are not known".into(),
            _ => format!("it cannot be stopped: {why}"),
        },
        Some(Missing::Busy) => "it goes from call to call: no stack".into(),
        None if t.frames.is_empty() && matches!(t.state, 'Z' | 'X') => return None,
        None if matches!(t.ended, Ended::Outermost) => return None,
        None => t.ended.text().into(),
    })
}

/// Name and text of the call that a thread is in.
fn text_of(call: &InFlight, names: &Descriptors) -> (String, String) {
    let opts = Options { prefix: Prefix::Never, fd_names: FdNames::PATH, ..Options::default() };
    let mut out = Vec::new();
    for tails in [true, false] {
        let mut bytes = Vec::new();
        call.call(0, tails, &mut bytes);
        if let Ok(ev) = Event::parse(&bytes) {
            views::text::entered(&ev, names, &opts, &mut out);
            let name = ev.schema.name.to_string();
            return (name, String::from_utf8_lossy(&out).into_owned());
        }
    }
    (String::new(), format!("call {}", call.nr))
}

/// The names of a process's descriptors.
struct Descriptors {
    all: HashMap<i32, FdName>,
}

impl Descriptors {
    fn of(pid: i32) -> Descriptors {
        let fds = proc::fds(pid).unwrap_or_default();
        let name = |fd: i32| Some((fd, FdName { path: proc::fd_link(pid, Some(fd))?, detail: Vec::new() }));
        Descriptors { all: fds.into_iter().take(MOST_NAMED).filter_map(name).collect() }
    }
}

impl Names for Descriptors {
    fn fd(&self, _: u32, fd: i32) -> Option<&FdName> {
        self.all.get(&fd)
    }
    fn comm(&self, _: u32) -> Option<&[u8]> {
        None
    }
}
