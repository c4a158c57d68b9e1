//! Serves agents: a thread that answers one after the other.
//!
//! ```text
//!  accept ─► who is it? ─► Hello, maps ─► planner ─► new shared memory ─► backend (before the answer) ─► Welcome ─► Installed
//! ```
//!
//! Each step of an agent may take a few seconds; a process that takes longer is left alone and runs untraced.

use super::module::Known;
use super::planner::{Answer, Placed, Planner};
use crate::backend::ids::ids;
use abi::message::{Hello, Installed, MAGIC, Reason, Verdict, Welcome};
use events::StreamId;
use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use sys::agent::{Held, Life, Listener, Request, Shared};
use sys::{proc, process};

/// The most bytes of `/proc/self/maps` that an agent may send.
const MAX_MAPS: u32 = 16 << 20;

/// What every process gets.
#[derive(Clone, Copy, Debug)]
pub struct Room {
    /// Chunks, and bytes of each.
    pub chunks: u32,
    /// Bytes of a chunk.
    pub chunk_size: u32,
    /// Wait for room, and do not drop.
    pub block: bool,
}

/// A process that has begun to write records.
pub struct Begun {
    /// The process, as trapline numbers it.
    pub pid: i32,
    /// As it numbers itself.
    pub own_pid: u32,
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

/// What the server tells the backend.
pub enum Said {
    /// An event that is to be delivered.
    Event(StreamId, Vec<u8>),
    /// A process runs a program, or is a child that runs on in its parent's.
    Came(Came),
    /// A file was read: which functions it has.
    Module(Arc<Known>),
    Begun(Box<Begun>),
    /// What went wrong.
    Trouble(String),
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

/// Serves until it is told to stop.
pub struct Server {
    listener: Listener,
    planner: Planner,
    life: Arc<Life>,
    room: Room,
    /// Users whose processes are answered, beside descendants of those that were.
    users: Vec<u32>,
    /// Processes that were answered.
    answered: HashMap<i32, Answered>,
    to: Sender<Said>,
    counts: Arc<Counts>,
    /// Lines that were said already.
    said: Arc<Mutex<Vec<String>>>,
}

impl Server {
    /// For this session.
    pub fn new(
        listener: Listener,
        planner: Planner,
        life: Arc<Life>,
        room: Room,
        users: Vec<u32>,
        to: Sender<Said>,
        counts: Arc<Counts>,
    ) -> Server {
        let (answered, said) = (HashMap::new(), Arc::default());
        Server { listener, planner, life, room, users, answered, to, counts, said }
    }

    /// A process whose descendants are answered.
    pub fn expect(&mut self, pid: i32) {
        self.answered.insert(pid, Answered::default());
    }

    /// The thread's work.
    pub fn run(mut self) {
        // Files are read for the user, and with no more rights.
        if !crate::rights::is_root() {
            let _ = sys::caps::drop_to(0);
        }
        while !self.counts.stop.load(Ordering::Acquire) {
            let _ = process::wait_readable(&self.listener, Duration::from_millis(50));
            loop {
                self.counts.busy.fetch_add(1, Ordering::AcqRel);
                let request = self.listener.accept();
                let more = matches!(request, Ok(Some(_)));
                if let Ok(Some(request)) = request
                    && let Err(e) = self.serve(request)
                {
                    self.trouble(format!("an agent was not answered: {e}"));
                }
                self.counts.busy.fetch_sub(1, Ordering::AcqRel);
                if !more {
                    break;
                }
            }
        }
    }

    fn trouble(&self, line: String) {
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        if said.len() < 100 && !said.contains(&line) {
            said.push(line.clone());
            let _ = self.to.send(Said::Trouble(line));
        }
    }

    /// Whether a process belongs to the session: its user's, or a descendant of one that does.
    fn is_ours(&self, pid: i32, uid: u32) -> bool {
        let mut ancestor = pid;
        for _ in 0..64 {
            if self.answered.contains_key(&ancestor) {
                return true;
            }
            match parent_of(ancestor) {
                Some(parent) if parent > 1 => ancestor = parent,
                _ => break,
            }
        }
        self.users.contains(&uid)
    }

    fn serve(&mut self, mut request: Request) -> io::Result<()> {
        let peer = request.peer;
        if !self.is_ours(peer.pid, peer.uid) {
            return Ok(());
        }
        let mut hello = [0; Hello::SIZE];
        match request.read(&mut hello) {
            // Somebody who asks whether anybody is there.
            Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
            other => other?,
        }
        let hello = Hello::parse(&hello);
        if hello.magic != MAGIC || hello.version != abi::VERSION || hello.maps_len > MAX_MAPS {
            return Err(io::Error::other("it speaks another version"));
        }
        let mut text = vec![0; hello.maps_len as usize];
        request.read(&mut text)?;
        let maps = sys::maps::in_text(&text);
        let begins = hello.reason != Reason::Modules as u32;
        let is_fork = hello.reason == Reason::Fork as u32;
        let before = match begins {
            true => Answered::default(),
            false => self.answered.get(&peer.pid).cloned().unwrap_or_default(),
        };
        let answer = if is_fork {
            let parent = self.answered.get(&(parent_of(peer.pid).unwrap_or(0))).cloned().unwrap_or_default();
            Answer { modules: parent.modules, ..Answer::default() }
        } else {
            self.planner.answer(peer.pid, &hello, &maps, &before.modules)
        };
        answer.problems.iter().for_each(|line| self.trouble(line.clone()));
        // A module that is loaded late may be the first with functions that are wanted.
        let traced = !before.has_memory && (is_fork || answer.functions > 0);
        let has_memory = before.has_memory || traced;
        self.answered.insert(peer.pid, Answered { modules: answer.modules, has_memory });
        for event in answer.reported {
            let _ = self.to.send(Said::Event(StreamId::FUNCTIONS, event));
        }
        for known in answer.read {
            let _ = self.to.send(Said::Module(known));
        }
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
        let shared = if traced { Some(self.begin(&hello, peer.pid, is_fork)?) } else { None };
        let plan = match answer.plan.is_empty() {
            true => None,
            false => Some(sys::agent::sealed(c"trapline-plan", &answer.plan)?),
        };
        let verdict = match (traced, &plan) {
            (true, _) => Verdict::Trace,
            (false, Some(_)) => Verdict::Follow,
            (false, None) => Verdict::Leave,
        };
        let fds: Vec<BorrowedFd<'_>> =
            shared.iter().map(|(fd, _)| fd.as_fd()).chain(plan.iter().map(AsFd::as_fd)).collect();
        let welcome = Welcome {
            magic: MAGIC,
            version: abi::VERSION,
            verdict: verdict as u32,
            descriptors: fds.len() as u32,
            shared: shared.as_ref().map_or(0, |(_, size)| *size),
            plan: answer.plan.len() as u64,
        };
        request.answer(&welcome.bytes(), &fds)?;
        if verdict == Verdict::Leave {
            return Ok(());
        }
        let mut installed = [0; Installed::SIZE];
        request.read(&mut installed)?;
        let installed = Installed::parse(&installed);
        if installed.magic != MAGIC || installed.error != 0 {
            let why = io::Error::from_raw_os_error(installed.error as i32);
            return Err(io::Error::other(format!("process {}: {why}", peer.pid)));
        }
        let refused = installed.other_bytes.saturating_add(installed.no_area).saturating_add(installed.failed);
        if refused > 0 {
            self.trouble(format!("process {}: {refused} functions could not be patched", peer.pid));
        }
        self.counts.refused.fetch_add(refused.into(), Ordering::Relaxed);
        self.counts.functions.fetch_add(installed.patched.into(), Ordering::Relaxed);
        self.counts.processes.fetch_add(begins.into(), Ordering::Relaxed);
        Ok(())
    }

    /// Memory for a process. The backend knows it before the process does.
    fn begin(&self, hello: &Hello, pid: i32, is_fork: bool) -> io::Result<(OwnedFd, u64)> {
        let running = !self.counts.paused.load(Ordering::Acquire);
        let shared = Shared::new(self.room.chunks, self.room.chunk_size, self.room.block, running)?;
        let held = self.life.hold(&shared)?;
        let (fd, size) = (shared.fd().try_clone_to_owned()?, shared.size());
        let ended = process::pidfd(pid, false)?;
        let (comm, ids) = (proc::comm(pid), proc::ids(pid));
        let begun = Begun { pid, own_pid: hello.pid, shared, held, ended, is_fork, comm, ids };
        let _ = self.to.send(Said::Begun(Box::new(begun)));
        Ok((fd, size))
    }
}

fn parent_of(pid: i32) -> Option<i32> {
    sys::proc::status_field(pid, "PPid")?.parse().ok()
}
