//! Processes and threads as `process:` events, in sessions where no other backend reports them.
//!
//! Agents speak for their processes when these start a program, and in a child of fork(2) when it needs memory for its first record. So a
//! process is reported when it is first heard of, with its parent. How a process has ended is known of the command only.

use super::server::Came;
use engine::own_events;
use engine::pipeline::backend::Deliver;
use events::generated as g;
use events::{Schema, StreamId};
use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};
use sys::ptrace::Change;
use sys::{proc, process, time};

/// `CLONE_THREAD` (include/uapi/linux/sched.h).
const CLONE_THREAD: u64 = 0x10000;
/// How often it is looked which processes have ended.
const LOOK: Duration = Duration::from_millis(10);

/// The processes that are there.
#[derive(Default)]
pub struct Tree {
    /// What is readable when they have ended.
    processes: HashMap<i32, OwnedFd>,
    looked: Option<Instant>,
    /// Events with their times, which are not delivered yet: what is heard of later may have happened before.
    said: Vec<(u64, Vec<u8>)>,
    /// The time of the last one that was delivered.
    last: u64,
}

impl Tree {
    /// Takes an event of its stream.
    pub fn put(&mut self, at: u64, event: Vec<u8>) {
        self.said.push((at, event));
    }

    fn say(&mut self, schema: &'static Schema, at: u64, who: (u32, u32), args: &[u64], tails: &[&[u8]]) {
        self.put(at, own_events::process(schema, at, who, args, tails));
    }

    /// A thread has written its first record at this time. One that is gone already had the name of its `process`: threads inherit it.
    pub fn thread_begins(&mut self, (pid, tid): (u32, u32), at: u64, process: &[u8]) {
        let comm = proc::comm(tid as i32).unwrap_or_else(|| process.to_vec());
        self.say(&g::P_FORK, at, (pid, pid), &[0, pid.into(), tid.into(), CLONE_THREAD], &[&comm]);
    }

    /// A thread is gone at this time.
    pub fn thread_ends(&mut self, who: (u32, u32), at: u64) {
        self.say(&g::P_EXIT, at, who, &[0, 0, 0], &[]);
    }

    /// Delivers what has happened up to this time, in order.
    pub fn deliver(&mut self, until: u64, each: &mut dyn Deliver) {
        order::by_key(&mut self.said, |(at, _)| *at);
        let n = self.said.partition_point(|(at, _)| *at <= until);
        for (at, mut event) in self.said.drain(..n) {
            self.last = self.last.max(at);
            // One that comes too late for its place is the next one.
            if let Some(time) = event.first_chunk_mut() {
                *time = self.last.to_le_bytes();
            }
            each.event(StreamId::TRACER, &event);
        }
    }

    /// An agent has spoken for a process.
    pub fn came(&mut self, came: &Came) {
        let who = (came.pid as u32, came.pid as u32);
        let parent = came.parent.filter(|p| self.processes.contains_key(p)).map(|p| p as u32);
        if let Some(parent) = parent.filter(|_| !self.processes.contains_key(&came.pid)) {
            let comm: &[u8] = if came.is_fork { &came.comm } else { b"" };
            self.say(&g::P_FORK, came.time, (parent, parent), &[0, who.0.into(), who.0.into(), 0], &[comm]);
        }
        if !came.is_fork {
            let args = [0, who.0.into(), came.ids.0, came.ids.1];
            self.say(&g::P_EXEC, came.time, who, &args, &[&came.comm]);
        }
        if let Ok(ended) = came.ended.try_clone() {
            self.processes.insert(came.pid, ended);
        }
    }

    /// Reports processes that have ended, now and then, and at the `end`. `command` is the command and how it ended. Those that are `read`
    /// still are reported later.
    pub fn look(&mut self, end: bool, command: Option<(i32, Change)>, read: impl Fn(i32) -> bool) {
        if !end && self.looked.is_some_and(|at| at.elapsed() < LOOK) {
            return;
        }
        self.looked = Some(Instant::now());
        let has_ended =
            |pid: i32, fd: &OwnedFd| !read(pid) && process::wait_readable(fd, Duration::ZERO).unwrap_or(true);
        let mut ended: Vec<i32> = Vec::new();
        self.processes.retain(|pid, fd| {
            let is_there = !has_ended(*pid, fd);
            if !is_there {
                ended.push(*pid);
            }
            is_there
        });
        ended.sort_unstable();
        for pid in ended {
            let args = match command.filter(|c| c.0 == pid) {
                Some((_, Change::Exited(code))) => [code as u64, 0, 0],
                Some((_, Change::Killed(signal, core))) => [0, signal as u64, core.into()],
                _ => [0, 0, 0],
            };
            self.say(&g::P_EXIT, time::monotonic(), (pid as u32, pid as u32), &args, &[]);
        }
    }
}
