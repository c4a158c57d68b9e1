//! Processes and threads of a trace, in the order in which they are met.

use super::execs::{Closed, Difference, Environment};
use events::Event;
use events::generated::{P_EXEC, P_EXIT, P_FORK};
use events::hash::Table;
use events::names::Names;
use events::traces::Origin;
use std::sync::Arc;

/// A program that a process has executed.
#[derive(Clone, Debug, Default)]
pub(super) struct Command {
    /// When, ns.
    pub time: u64,
    /// The file, as the call has it.
    pub file: String,
    /// The arguments, separated by blanks.
    pub line: String,
    /// The working directory; empty where it is not known.
    pub cwd: String,
    /// How its environment differs from the one before, where both are known.
    pub environment: Option<Difference>,
    /// Descriptors that were closed for it.
    pub closed: Vec<Closed>,
}

/// A process.
#[derive(Clone, Debug, Default)]
pub(super) struct Process {
    pub pid: u32,
    /// Where it was traced, if there are several traces.
    pub origin: Option<Origin>,
    /// The index of its parent, where that is in the trace.
    pub parent: Option<usize>,
    /// What it is called: by the last program that it has executed.
    pub name: String,
    /// Whether an exec has named it.
    named: bool,
    /// What it has executed.
    pub commands: Vec<Command>,
    /// When it begins and ends, as far as events say it: ns.
    pub first: u64,
    pub last: u64,
    /// Its exit status, or the negative number of the signal that has ended it.
    pub exit: Option<i64>,
    /// The environment of its program, where that was captured, as long as it lives.
    environment: Option<Arc<Environment>>,
    /// What the exec has closed whose call has not returned yet.
    closed: Vec<Closed>,
}

/// A thread.
#[derive(Clone, Debug, Default)]
pub(super) struct Thread {
    pub tid: u32,
    /// The index of its process.
    pub process: usize,
    pub name: String,
    /// The time of its first event, ns.
    pub first: u64,
}

/// All of them.
#[derive(Debug, Default)]
pub(super) struct Processes {
    all: Vec<Process>,
    threads: Vec<Thread>,
    /// Those that have the number now, ended or not.
    by_pid: Table<u32, usize>,
    by_tid: Table<u32, usize>,
    /// The last that was asked for.
    latest: Option<(u32, usize)>,
    /// Parents of processes that no event has come of.
    parents: Table<u32, Parent>,
}

/// The parent of a process, when it was started, and the environment that it got.
type Parent = (u32, u64, Option<Arc<Environment>>);

const CLONE_THREAD: u64 = 0x10000;

impl Processes {
    /// The processes.
    pub fn all(&self) -> &[Process] {
        &self.all
    }

    /// The threads.
    pub fn threads(&self) -> &[Thread] {
        &self.threads
    }

    /// The process of a thread.
    pub fn of_thread(&self, thread: usize) -> usize {
        self.threads.get(thread).map_or(0, |t| t.process)
    }

    /// The thread with a number, where it is known.
    pub fn known(&self, tid: u32) -> Option<usize> {
        self.by_tid.get(&tid).copied()
    }

    fn process(&mut self, pid: u32, (called, origin): (&str, Option<&Origin>), time: u64) -> usize {
        if let Some(known) = self.by_pid.get(&pid) {
            return *known;
        }
        let (parent, first, environment) = match self.parents.remove(&pid) {
            Some((parent, time, environment)) => (self.by_pid.get(&parent).copied(), time, environment),
            None => (None, time, None),
        };
        let (name, origin) = (called.to_owned(), origin.cloned());
        self.all.push(Process { pid, parent, origin, name, first, last: time, environment, ..Process::default() });
        self.by_pid.insert(pid, self.all.len() - 1);
        self.all.len() - 1
    }

    /// The thread that an event is of.
    pub fn thread(&mut self, (pid, tid): (u32, u32), names: &dyn Names, time: u64) -> usize {
        let known = match self.latest {
            Some((of, thread)) if of == tid => Some(thread),
            _ => self.by_tid.get(&tid).copied(),
        };
        if let Some(known) = known
            && self.all[self.threads[known].process].pid == pid
        {
            self.latest = Some((tid, known));
            let process = self.threads[known].process;
            self.all[process].last = self.all[process].last.max(time);
            return known;
        }
        self.latest = None;
        let comm = names.comm(tid).map(|c| String::from_utf8_lossy(c).into_owned()).unwrap_or_default();
        let process = self.process(pid, (&names.called(tid), names.origin(tid)), time);
        self.all[process].last = self.all[process].last.max(time);
        self.threads.push(Thread { tid, process, name: comm, first: time });
        self.by_tid.insert(tid, self.threads.len() - 1);
        self.threads.len() - 1
    }

    /// An exec of a process closes descriptors.
    pub fn closed(&mut self, process: usize, closed: Vec<Closed>) {
        if let Some(process) = self.all.get_mut(process) {
            process.closed = closed;
        }
    }

    /// A process has executed a program, with this environment, where it is known.
    pub fn executed(&mut self, process: usize, mut command: Command, environment: Option<Environment>) {
        let Some(process) = self.all.get_mut(process) else { return };
        let before = process.environment.take();
        command.environment = before.zip(environment.as_ref()).map(|(before, after)| Difference::of(&before, after));
        command.closed = std::mem::take(&mut process.closed);
        process.environment = environment.map(Arc::new);
        process.commands.push(command);
    }

    /// What has happened to a process.
    pub fn happened(&mut self, ev: &Event<'_>, names: &dyn Names) {
        let (pid, id) = (ev.pid(), ev.schema.id);
        // Numbers are used again: by a new thread, which a fork reports.
        if id == P_FORK.id {
            let child = ev.value_of("tid") as u32;
            self.by_tid.remove(&child);
            self.latest = None;
            if ev.value_of("flags") & CLONE_THREAD == 0 {
                self.by_pid.remove(&child);
                let parent = self.by_pid.get(&pid).and_then(|parent| self.all.get(*parent));
                self.parents.insert(child, (pid, ev.time(), parent.and_then(|parent| parent.environment.clone())));
            }
        }
        let Some(process) = self.by_pid.get(&pid).copied() else { return };
        if id == P_EXEC.id {
            let comm = String::from_utf8_lossy(ev.bytes_of("comm")).into_owned();
            let thread = self.by_tid.get(&pid).copied();
            let called = names.origin(pid).map_or_else(|| comm.clone(), |origin| format!("{}:{comm}", origin.label));
            thread.into_iter().for_each(|t| self.threads[t].name.clone_from(&comm));
            (self.all[process].name, self.all[process].named) = (called, true);
        } else if id == P_EXIT.id {
            let exit = match ev.value_of("signo") {
                0 => ev.value_of("code") as i64,
                signal => -(signal as i64),
            };
            if ev.tid() == pid {
                (self.all[process].exit, self.all[process].environment) = (Some(exit), None);
            }
        } else if let Some(thread) = self.by_tid.get(&ev.tid()).copied()
            && let Some(comm) = names.comm(ev.tid())
        {
            let comm = String::from_utf8_lossy(comm).into_owned();
            if !self.all[process].named && ev.tid() == pid {
                self.all[process].name = names.called(pid).into_owned();
            }
            self.threads[thread].name = comm;
        }
    }
}
