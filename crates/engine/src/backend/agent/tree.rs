//! Processes and threads as `process:` events, in sessions where no other backend reports them.
//!
//! Agents speak for their processes when these start a program, and in a child of fork(2) when it needs memory for its first record. So a
//! process is reported when it is first heard of, with its parent. How a process has ended is known of the command only.

use super::server::Came;
use crate::backend::Deliver;
use crate::own_events;
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
}

fn say(schema: &'static Schema, at: u64, who: (u32, u32), args: &[u64], tails: &[&[u8]], each: &mut dyn Deliver) {
    each.event(StreamId::TRACER, &own_events::process(schema, at, who, args, tails));
}

/// The event of a thread that has written its first record, or taken room for it, at this time. One that is gone already had the name
/// of its `process`: threads inherit it.
pub fn thread_begins((pid, tid): (u32, u32), at: u64, process: &[u8]) -> Vec<u8> {
    let comm = proc::comm(tid as i32).unwrap_or_else(|| process.to_vec());
    own_events::process(&g::P_FORK, at, (pid, pid), &[0, pid.into(), tid.into(), CLONE_THREAD], &[&comm])
}

/// The event of a thread that is gone at this time.
pub fn thread_ends(who: (u32, u32), at: u64) -> Vec<u8> {
    own_events::process(&g::P_EXIT, at, who, &[0, 0, 0], &[])
}

impl Tree {
    /// An agent has spoken for a process.
    pub fn came(&mut self, came: &Came, each: &mut dyn Deliver) {
        let who = (came.pid as u32, came.pid as u32);
        let parent = came.parent.filter(|p| self.processes.contains_key(p)).map(|p| p as u32);
        if let Some(parent) = parent.filter(|_| !self.processes.contains_key(&came.pid)) {
            let comm: &[u8] = if came.is_fork { &came.comm } else { b"" };
            say(&g::P_FORK, came.time, (parent, parent), &[0, who.0.into(), who.0.into(), 0], &[comm], each);
        }
        if !came.is_fork {
            let args = [0, who.0.into(), came.ids.0, came.ids.1];
            say(&g::P_EXEC, came.time, who, &args, &[&came.comm], each);
        }
        if let Ok(ended) = came.ended.try_clone() {
            self.processes.insert(came.pid, ended);
        }
    }

    /// Reports processes that have ended, now and then, and at the `end`. `command` is the command and how it ended. Those that are `read`
    /// still are reported later.
    pub fn look(
        &mut self,
        end: bool,
        command: Option<(i32, Change)>,
        read: impl Fn(i32) -> bool,
        each: &mut dyn Deliver,
    ) {
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
            say(&g::P_EXIT, time::monotonic(), (pid as u32, pid as u32), &args, &[], each);
        }
    }
}
