//! Serves agents.
//!
//! ```text
//!  accept ─► who is it? ─► Hello ─┬► maps ─► planner ─► new shared memory ─► backend (before the answer) ─► Welcome ─► Installed
//!  [one thread]                   │  [a thread for each]
//!                                 └► about to execute a program: expected, or a gap
//! ```
//!
//! One thread takes requests in the order in which they come, so that what a process says before it executes a program is known before
//! the program's agent asks. Another answers, as planning may take seconds; agents that wait for it get a message that it goes on. Each step of an agent
//! may take a few seconds; a process that takes longer runs untraced, which is a gap in the trace.

use super::module::Known;
use super::planner::{Answer, Placed, Unpatched};
use super::ready::{Full, Plans};
use super::sums::Shape;
use super::ticks::{ticks_of, ticks_per_ms};
use super::untraced::{Executed, Gap, words};
use abi::heap::{COARSE, RECORDED};
use abi::message::{CAME, Hello, Installed, MAGIC, Reason, Untraced, Verdict, Welcome};
use engine::backend::ids::ids;
use engine::error::Error;
use engine::maps;
use engine::plan::{OnFull, Plan};
use engine::request::functions::Functions;
use engine::request::heap_enabling::Wanted;
use events::StreamId;
use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, Scope};
use std::time::{Duration, Instant};
use sys::agent::{Held, Life, Listener, Request, Shared};
use sys::maps::Map;
use sys::{proc, process};

/// The most bytes of `/proc/self/maps` that an agent may send.
const MAX_MAPS: u32 = 16 << 20;

/// The most requests that are answered at a time.
const MOST: u64 = 64;
/// Keep-alive interval for waiting agents. Agents wait five times as long.
const PATIENCE: Duration = Duration::from_secs(2);

/// What every process gets.
#[derive(Clone, Copy, Debug)]
pub struct Room {
    /// Chunks, and bytes of each.
    pub chunks: u32,
    /// Bytes of a chunk.
    pub chunk_size: u32,
    /// Wait for room, and do not drop.
    pub block: bool,
    /// Bits of [`abi::heap`]: what is recorded of allocations.
    pub heap: u32,
    /// One allocation per this many bytes; 0: all.
    pub sample: u64,
    /// Sums are kept instead of records: a chunk has rows of a thread.
    pub sums: Option<Shape>,
    /// Calls are recorded if they take so many ticks.
    pub minimum: Option<u64>,
    /// Records say where functions were called from.
    pub callers: bool,
    /// The agent may be taken out of programs that it was loaded with.
    pub keep: bool,
}

/// Threads of a process that can have rows at a time.
const THREADS: u32 = 1024;

impl Room {
    /// As a plan has it.
    pub fn of(plan: &Plan, functions: &Functions) -> Room {
        let chunk_size = abi::shared::CHUNK as u32;
        let buffer = functions.buffer.unwrap_or(plan.buffer);
        let chunks = (buffer / chunk_size as usize).clamp(2, 1 << 20) as u32;
        let coarse = |h: &Wanted| if h.consumer.is_some() || h.packed { COARSE } else { 0 };
        let heap = functions.heap.as_ref().map_or(0, |h| RECORDED | coarse(h));
        let sample = functions.heap.as_ref().map_or(0, |h| h.sample);
        let sums = functions.sums.map(|sums| Shape::of(sums, ticks_per_ms()));
        let minimum = functions.minimum.map(|ns| ticks_of(ns, ticks_per_ms()));
        let (block, callers, keep) = (plan.on_full == OnFull::Block, functions.callers, plan.may_get_agent());
        Room { chunks, chunk_size, block, heap, sample, sums, minimum, callers, keep }
    }
}

/// A process that has begun to write records.
pub struct Begun {
    /// The process, as trapline numbers it.
    pub pid: i32,
    /// As it numbers itself.
    pub own_pid: u32,
    /// What rows are in its memory instead of records.
    pub sums: Option<Shape>,
    /// Calls are recorded if they take so many ticks.
    pub minimum: Option<u64>,
    /// Its memory, and what keeps it.
    pub shared: Shared,
    /// Held as long as the memory is read.
    pub held: Held,
    /// Readable when the process has ended.
    pub ended: OwnedFd,
    /// It is a child that runs on in its parent's program.
    pub is_fork: bool,
    /// Its name.
    pub comm: Option<Vec<u8>>,
    /// Its real user and group.
    pub ids: Option<(u32, u32)>,
}

/// A process that an agent has spoken for.
pub struct Came {
    /// The process.
    pub pid: i32,
    /// Its parent.
    pub parent: Option<i32>,
    /// It is a child that runs on in its parent's program.
    pub is_fork: bool,
    /// Its name.
    pub comm: Vec<u8>,
    /// User and group.
    pub ids: (u64, u64),
    /// When, ns of the monotonic clock: before its first record.
    pub time: u64,
    /// Readable when it has ended.
    pub ended: OwnedFd,
}

/// What the server reports to the backend.
pub enum Said {
    /// An event that is to be delivered.
    Event(StreamId, Vec<u8>),
    /// A process runs a program, or is a child that runs on in its parent's.
    Came(Came),
    /// What a process has mapped, executable: `process:map` events.
    Maps(Vec<Vec<u8>>),
    /// A file was read: which functions it has.
    Module(Arc<Known>),
    /// A file has places of probes, the first of which has this number.
    Points(u32, Arc<Known>),
    Begun(Box<Begun>),
    /// A program is not traced.
    Gap(Gap),
    /// What went wrong.
    Trouble(String),
    /// What of a process is not traced.
    LeftOut(String),
}

/// What both sides count.
#[derive(Debug, Default)]
pub struct Counts {
    /// The session ends: the server does.
    pub stop: AtomicBool,
    /// The session is stopped: new processes begin so.
    pub paused: AtomicBool,
    /// Requests that are being answered.
    pub busy: AtomicU64,
    /// Plans that were asked for.
    pub plans: AtomicU64,
    /// Processes that have got a plan.
    pub processes: AtomicU64,
    /// Functions that were patched, in all processes.
    pub functions: AtomicU64,
    /// Functions that were not, though they were planned.
    pub refused: AtomicU64,
}

/// What a process has got.
#[derive(Clone, Default)]
struct Answered {
    /// The modules that were planned.
    modules: Vec<Placed>,
    /// It has memory for records.
    has_memory: bool,
}

impl Answered {
    /// Without modules of these files, which have come anew.
    fn without(mut self, files: &[(u32, u32, u64)]) -> Answered {
        self.modules.retain(|m| !files.contains(&m.file()));
        self
    }
}

/// The files of modules that have come since the agent asked last, in what it says.
fn came(text: &[u8], maps: &[Map]) -> Vec<(u32, u32, u64)> {
    let number = |line: &[u8]| u64::from_str_radix(std::str::from_utf8(line.strip_prefix(CAME)?).ok()?, 16).ok();
    let file = |address: u64| maps.iter().find(|m| (m.range.0..m.range.1).contains(&address)).map(|m| m.file);
    let lines = text.rsplit(|b| *b == b'\n').skip_while(|line| line.is_empty()).map_while(number);
    lines.filter_map(file).collect()
}

/// Serves until it gets a request to stop.
pub struct Server {
    listener: Listener,
    plans: Arc<Plans>,
    life: Arc<Life>,
    room: Room,
    /// Users whose processes are answered, beside descendants of those that were.
    users: Vec<u32>,
    /// Processes that were answered.
    answered: Mutex<HashMap<i32, Answered>>,
    executed: Arc<Executed>,
    to: Sender<Said>,
    counts: Arc<Counts>,
    /// Lines that were said already.
    said: Mutex<Vec<String>>,
    /// Makes events of what processes have mapped.
    mapped: Mutex<maps::Encoder>,
    /// Agents that wait for a plan, and since when nothing was said to them.
    waiting: Mutex<HashMap<u64, (Request, Instant)>>,
}

/// What an agent asks for, once its first message was read.
struct Asked {
    request: Request,
    hello: Hello,
    text: Vec<u8>,
}

/// A request that is being answered, as long as the value lives.
struct Busy<'s>(&'s Counts);

impl<'s> Busy<'s> {
    fn new(counts: &'s Counts) -> Busy<'s> {
        counts.busy.fetch_add(1, Ordering::AcqRel);
        Busy(counts)
    }
}

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        self.0.busy.fetch_sub(1, Ordering::AcqRel);
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Server {
    /// For this session.
    #[allow(clippy::too_many_arguments)]
    pub fn new(
        listener: Listener,
        plans: Arc<Plans>,
        life: Arc<Life>,
        room: Room,
        users: Vec<u32>,
        to: Sender<Said>,
        counts: Arc<Counts>,
        executed: Arc<Executed>,
    ) -> Server {
        Server {
            listener,
            plans,
            life,
            room,
            users,
            answered: Mutex::default(),
            executed,
            to,
            counts,
            said: Mutex::default(),
            mapped: Mutex::default(),
            waiting: Mutex::default(),
        }
    }

    /// A process whose descendants are answered, and which is about to execute a program.
    pub fn expect(&mut self, pid: i32, program: &[u8]) {
        locked(&self.answered).insert(pid, Answered::default());
        self.executed.expect(pid, program.to_vec());
    }

    /// A running process, which is answered as its descendants are.
    pub fn admit(&mut self, pid: i32) {
        locked(&self.answered).insert(pid, Answered::default());
    }

    /// The thread's work.
    pub fn run(self) {
        // Files are read for the user, and with no more rights; threads that are started inherit that.
        if !engine::rights::is_root() {
            let _ = sys::caps::drop_to(0);
        }
        let counts = Arc::clone(&self.counts);
        thread::scope(|scope| {
            while !counts.stop.load(Ordering::Acquire) {
                self.listener.wait(Duration::from_millis(50));
                self.reassure();
                while self.take(scope) {}
            }
        });
    }

    /// Takes a request, if there is one.
    fn take<'s>(&'s self, scope: &'s Scope<'s, '_>) -> bool {
        let busy = Busy::new(&self.counts);
        let Ok(Some(request)) = self.listener.accept() else { return false };
        let peer = request.peer.pid;
        match self.hear(request) {
            Ok(None) => {}
            Ok(Some(asked)) if self.counts.busy.load(Ordering::Acquire) < MOST => {
                let work = move || {
                    self.serve(asked);
                    drop(busy);
                };
                // Where no thread is to be had, the agent gets no answer: it runs untraced, which is counted.
                if thread::Builder::new().name("trapline-plan".into()).spawn_scoped(scope, work).is_err() {
                    self.trouble("an agent was not answered: no thread is to be had".into());
                }
            }
            Ok(Some(asked)) => self.serve(asked),
            Err(e) => self.trouble(format!("process {peer}: an agent was not understood: {e}")),
        }
        true
    }

    /// Sends keep-alives to waiting agents.
    fn reassure(&self) {
        for (request, last) in locked(&self.waiting).values_mut().filter(|(_, last)| last.elapsed() >= PATIENCE) {
            let welcome = Welcome {
                magic: MAGIC,
                version: abi::VERSION,
                verdict: Verdict::Wait as u32,
                descriptors: 0,
                shared: 0,
                plan: 0,
                tables: 0,
                keep: 0,
            };
            // One that is gone is noticed when it is answered.
            let _ = request.answer(&welcome.bytes(), &[]);
            *last = Instant::now();
        }
    }

    fn trouble(&self, line: String) {
        self.say_once(line, Said::Trouble);
    }

    /// Sends a line, unless it was sent before, or too many were.
    fn say_once(&self, line: String, said: fn(String) -> Said) {
        let mut all = locked(&self.said);
        if all.len() < 100 && !all.contains(&line) {
            all.push(line.clone());
            let _ = self.to.send(said(line));
        }
    }

    fn gap(&self, pid: i32, path: &[u8], why: String) {
        let _ = self.to.send(Said::Gap(Gap { pid, path: path.to_vec(), why }));
    }

    /// Whether a process belongs to the session: its user's, or a descendant of one that does.
    fn is_ours(&self, pid: i32, uid: u32) -> bool {
        let answered = locked(&self.answered);
        let mut ancestor = pid;
        for _ in 0..64 {
            if answered.contains_key(&ancestor) {
                return true;
            }
            match parent_of(ancestor) {
                Some(parent) if parent > 1 => ancestor = parent,
                _ => break,
            }
        }
        self.users.contains(&uid)
    }

    /// Reads what an agent says. Nothing is left to do where it wants no answer.
    fn hear(&self, mut request: Request) -> io::Result<Option<Asked>> {
        let peer = request.peer;
        if !self.is_ours(peer.pid, peer.uid) {
            return Ok(None);
        }
        let mut hello = [0; Hello::SIZE];
        match request.read(&mut hello) {
            // Somebody who asks whether anybody is there.
            Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
            other => other?,
        }
        let hello = Hello::parse(&hello);
        if hello.magic != MAGIC || hello.version != abi::VERSION || hello.maps_len > MAX_MAPS {
            return Err(io::Error::other("it speaks another version"));
        }
        let mut text = vec![0; hello.maps_len as usize];
        request.read(&mut text)?;
        match hello.reason {
            r if r == Reason::Exec as u32 => {
                let (why, path) = text.split_first().unwrap_or((&0, &[]));
                match Untraced::of(*why) {
                    None => self.executed.expect(peer.pid, path.to_vec()),
                    Some(why) => self.gap(peer.pid, path, words(why).into()),
                }
                Ok(None)
            }
            r if r == Reason::Failed as u32 => {
                self.executed.forget(peer.pid);
                Ok(None)
            }
            _ => {
                self.executed.forget(peer.pid);
                Ok(Some(Asked { request, hello, text }))
            }
        }
    }

    /// Answers.
    fn serve(&self, asked: Asked) {
        let (pid, begins) = (asked.request.peer.pid, asked.hello.reason != Reason::Modules as u32);
        let mut program = String::new();
        if let Err(e) = self.answer(asked, &mut program) {
            let what = if begins { "the agent" } else { "the agent's question about new modules" };
            let why = e.to_string();
            let why = Error::limit(&why).map_or(why, |(why, todo)| format!("{} ({todo})", why.to_lowercase()));
            self.gap(pid, program.as_bytes(), format!("{what} was not answered: {why}"));
        }
    }

    fn answer(&self, asked: Asked, program: &mut String) -> io::Result<()> {
        let Asked { mut request, hello, text } = asked;
        let peer = request.peer;
        let maps = sys::maps::in_text(&text);
        let begins = hello.reason != Reason::Modules as u32;
        let is_fork = hello.reason == Reason::Fork as u32;
        let before = match begins {
            true => Answered::default(),
            false => locked(&self.answered).get(&peer.pid).cloned().unwrap_or_default().without(&came(&text, &maps)),
        };
        let Full { mut answer, plan } = if is_fork {
            let parent = locked(&self.answered).get(&(parent_of(peer.pid).unwrap_or(0))).cloned().unwrap_or_default();
            Full { answer: Answer { modules: parent.modules, ..Answer::default() }, plan: None }
        } else {
            self.plan(&request, &hello, &maps, &before.modules)?
        };
        program.clone_from(&answer.program);
        answer.problems.iter().for_each(|line| self.say_once(line.clone(), Said::LeftOut));
        if let Some((path, runtime)) = &answer.left_alone {
            let path = if begins { &answer.program } else { path };
            self.gap(peer.pid, path.as_bytes(), runtime.words());
        }
        // A module that is loaded late may be the first with functions that are wanted.
        let traced = !before.has_memory && (is_fork || answer.functions + answer.allocators > 0);
        let has_memory = before.has_memory || traced;
        locked(&self.answered).insert(peer.pid, Answered { modules: std::mem::take(&mut answer.modules), has_memory });
        if begins {
            let came = Came {
                pid: peer.pid,
                parent: parent_of(peer.pid),
                is_fork,
                comm: sys::proc::comm(peer.pid).unwrap_or_default(),
                ids: ids(peer.pid),
                time: sys::time::monotonic(),
                ended: process::pidfd(peer.pid, false)?,
            };
            let _ = self.to.send(Said::Came(came));
        }
        if self.room.heap != 0 {
            // Of a child too: its parent may be gone, and nobody knows what that had mapped.
            let events = locked(&self.mapped).events(peer.pid, &maps, sys::time::monotonic());
            let _ = self.to.send(Said::Maps(events));
        }
        let shared = if traced { Some(self.begin(&hello, peer.pid, is_fork)?) } else { None };
        let verdict = match (traced, &plan) {
            (true, _) => Verdict::Trace,
            (false, Some(_)) => Verdict::Follow,
            (false, None) => Verdict::Leave,
        };
        // A process that loads modules has them, but more of them may be in use now.
        let tables = answer.tables.as_ref();
        let sent = tables.filter(|_| begins);
        let fds: Vec<BorrowedFd<'_>> = shared.iter().chain(&plan).chain(sent).map(|(fd, _)| fd.as_fd()).collect();
        let welcome = Welcome {
            magic: MAGIC,
            version: abi::VERSION,
            verdict: verdict as u32,
            descriptors: fds.len() as u32,
            shared: shared.as_ref().map_or(0, |(_, size)| *size),
            plan: plan.as_ref().map_or(0, |(_, size)| *size),
            tables: tables.map_or(0, |(_, size)| *size),
            keep: self.room.keep.into(),
        };
        request.answer(&welcome.bytes(), &fds)?;
        if verdict == Verdict::Leave {
            return Ok(());
        }
        let mut installed = [0; Installed::SIZE];
        request.read(&mut installed)?;
        let installed = Installed::parse(&installed);
        if installed.magic != MAGIC || installed.error != 0 {
            return Err(io::Error::from_raw_os_error(installed.error as i32));
        }
        let refused = installed.other_bytes.saturating_add(installed.no_area).saturating_add(installed.failed);
        if refused > 0 {
            let unpatched = answer.unpatched(peer.pid);
            let line =
                format!("process {}: {refused} functions could not be patched{}", peer.pid, words_of(&unpatched));
            self.say_once(line, Said::LeftOut);
            if let Some(one) = unpatched.iter().find(|u| u.is_of_heap) {
                self.gap(
                    peer.pid,
                    program.as_bytes(),
                    format!("{} could not be patched: its calls are missing", one.name),
                );
            }
        }
        self.counts.refused.fetch_add(refused.into(), Ordering::Relaxed);
        self.counts.functions.fetch_add(installed.patched.into(), Ordering::Relaxed);
        self.counts.processes.fetch_add(begins.into(), Ordering::Relaxed);
        Ok(())
    }

    /// Plans, while the agent gets keep-alives.
    fn plan(&self, request: &Request, hello: &Hello, maps: &[Map], before: &[Placed]) -> io::Result<Full> {
        let number = self.counts.plans.fetch_add(1, Ordering::Relaxed);
        locked(&self.waiting).insert(number, (request.second()?, Instant::now()));
        let answer = self.plans.answer(request.peer.pid, hello, maps, before);
        locked(&self.waiting).remove(&number);
        answer
    }

    /// Memory for a process. The backend knows it before the process does.
    fn begin(&self, hello: &Hello, pid: i32, is_fork: bool) -> io::Result<(OwnedFd, u64)> {
        let running = !self.counts.paused.load(Ordering::Acquire);
        let shared = match self.room.sums {
            Some(of) => Shared::for_sums(THREADS, (of.rows, of.row as u32), of.scale, running)?,
            None => Shared::new(self.room.chunks, self.room.chunk_size, self.room.block, running)?,
        };
        if self.room.heap != 0 {
            shared.record_heap(self.room.heap, self.room.sample);
        }
        if self.room.callers {
            shared.record_callers();
        }
        let held = self.life.hold(&shared)?;
        let (fd, size) = (shared.fd().try_clone_to_owned()?, shared.size());
        let ended = process::pidfd(pid, false)?;
        let (comm, ids) = (proc::comm(pid), proc::ids(pid));
        let Room { sums, minimum, .. } = self.room;
        let begun = Begun { pid, own_pid: hello.pid, shared, sums, minimum, held, ended, is_fork, comm, ids };
        let _ = self.to.send(Said::Begun(Box::new(begun)));
        Ok((fd, size))
    }
}

fn parent_of(pid: i32) -> Option<i32> {
    sys::proc::status_field(pid, "PPid")?.parse().ok()
}
/// Which functions these are, and why.
fn words_of(unpatched: &[Unpatched]) -> String {
    const SHOWN: usize = 5;
    let names: Vec<&str> = unpatched.iter().take(SHOWN).map(|u| &*u.name).collect();
    if names.is_empty() {
        return String::new();
    }
    let more = if unpatched.len() > SHOWN { ", …" } else { "" };
    let why = if unpatched.iter().all(|u| u.has_breakpoint) {
        "a breakpoint is there, of a probe (uprobe) or a debugger"
    } else {
        "somebody else has changed their first bytes"
    };
    format!(": {}{more} ({why})", names.join(", "))
}
