//! The table of processes: a row when one has ended, or the trace.
//!
//! It learns from all events, so that the program of a process is known though its execve is not among those that are shown. Processes of which
//! nothing is shown have no row.

use super::column::Value;
use super::file::File;
use super::{About, schema};
use crate::{Options, json};
use events::Event;
use events::generated::{P_ATTACH, P_EXEC, P_EXIT, P_FORK};
use events::hash::Table;
use events::names::{AT_FDCWD, Names, NoNames};
use serde_json::Value as Json;
use std::rc::Rc;

/// What a process runs.
#[derive(Debug, Default)]
pub struct Program {
    /// The file, as the call of execve has it; empty where that is not known.
    pub exe: Vec<u8>,
    /// The arguments, a list in JSON.
    argv: Vec<u8>,
}

#[derive(Debug, Default)]
struct Process {
    parent: Option<u32>,
    comm: Vec<u8>,
    program: Rc<Program>,
    cwd: Vec<u8>,
    uid: Option<u32>,
    first: u64,
    last: u64,
    /// Its status, and the signal that has ended it.
    exit: Option<(i64, i64)>,
    shown: bool,
}

/// The table.
pub struct Processes {
    /// Its rows.
    pub file: File,
    about: About,
    all: Table<u32, Process>,
    /// The one that was asked for last.
    latest: Option<(u32, Rc<Program>)>,
    /// The one whose event was the last, of which nothing more is to be learned: when that was.
    settled: Option<(u32, u64)>,
    ended: usize,
}

const CLONE_THREAD: u64 = 0x10000;
/// Processes that have ended and wait for their last events.
const MOST_ENDED: usize = 1 << 10;

impl Processes {
    /// None so far.
    pub fn new(about: &About) -> Processes {
        let file = about.file(&schema::PROCESSES);
        Processes { file, about: about.clone(), all: Table::default(), latest: None, settled: None, ended: 0 }
    }

    /// What a process runs.
    pub fn program(&mut self, pid: u32) -> Rc<Program> {
        match &self.latest {
            Some((of, program)) if *of == pid => Rc::clone(program),
            _ => {
                let program = self.all.get(&pid).map(|p| Rc::clone(&p.program)).unwrap_or_default();
                self.latest = Some((pid, Rc::clone(&program)));
                program
            }
        }
    }

    /// Learns from an event.
    pub fn see(&mut self, ev: &Event<'_>) {
        let (id, time) = (ev.schema.id, ev.time());
        let is_exec = ev.is_syscall() && matches!(ev.schema.name, "execve" | "execveat");
        if let Some((pid, last)) = &mut self.settled {
            if *pid == ev.pid() && ev.is_syscall() && !is_exec {
                *last = time.max(*last);
                return;
            }
            self.unsettle();
        }
        if id == P_FORK.id {
            return self.forked(ev);
        }
        let first = ev.start();
        let process = self.all.entry(ev.pid()).or_insert_with(|| Process { first, ..Process::default() });
        process.last = process.last.max(time);
        if id == P_EXEC.id || id == P_ATTACH.id {
            process.comm = ev.bytes_of("comm").to_vec();
            process.uid = Some(ev.value_of("uid") as u32);
        } else if id == P_EXIT.id && ev.tid() == ev.pid() {
            process.exit = Some((ev.value_of("code") as i64, ev.value_of("signo") as i64));
            self.ended += 1;
            if self.ended > MOST_ENDED {
                self.write(|_, process| process.exit.is_some());
                self.ended = 0;
            }
        } else if is_exec && ev.errno().is_none() {
            process.program = Rc::new(executed(ev));
            process.cwd.clear();
            self.latest = None;
        }
    }

    /// Stores the time of the last event.
    fn unsettle(&mut self) {
        if let Some((pid, last)) = self.settled.take()
            && let Some(process) = self.all.get_mut(&pid)
        {
            process.last = process.last.max(last);
        }
    }

    /// A thread has made another one, or a process.
    fn forked(&mut self, ev: &Event<'_>) {
        let child = ev.value_of("tid") as u32;
        if ev.value_of("flags") & CLONE_THREAD != 0 {
            return;
        }
        // Numbers are used again.
        self.write(|pid, _| pid == child);
        self.latest = None;
        let program = self.program(ev.pid());
        let (comm, uid) = self.all.get(&ev.pid()).map(|p| (p.comm.clone(), p.uid)).unwrap_or_default();
        let time = ev.time();
        let parent = Some(ev.pid());
        let process = Process { parent, program, comm, uid, first: time, last: time, ..Process::default() };
        self.all.insert(child, process);
    }

    /// An event of a process is shown.
    #[inline]
    pub fn shown(&mut self, ev: &Event<'_>, names: &dyn Names) {
        if self.settled.is_some_and(|(pid, _)| pid == ev.pid()) {
            return;
        }
        let Some(process) = self.all.get_mut(&ev.pid()) else { return };
        if process.shown && !process.cwd.is_empty() {
            self.settled = Some((ev.pid(), process.last));
            return;
        }
        process.shown = true;
        if process.comm.is_empty() {
            process.comm = names.comm(ev.pid()).unwrap_or_default().to_vec();
        }
        process.uid = process.uid.or(names.ids(ev.pid()).0);
        if let Some(cwd) = names.fd(ev.pid(), AT_FDCWD) {
            process.cwd = cwd.path.clone();
        }
    }

    /// Writes the processes of which that is true, the first first, and forgets them.
    fn write(&mut self, which: impl Fn(u32, &Process) -> bool) {
        self.unsettle();
        let mut all: Vec<(u32, Process)> = self.all.extract_if(|pid, process| which(*pid, process)).collect();
        order::by_key(&mut all, |(pid, process)| (process.first, *pid));
        for (pid, process) in all.iter().filter(|(_, process)| process.shown) {
            let (first, last) = (self.about.time(process.first), self.about.time(process.last));
            let (code, signal) = process.exit.unzip();
            let signal = signal.filter(|signal| *signal != 0);
            self.file.row([
                Value::Int(first),
                Value::Int(first),
                Value::Int(last),
                Value::Int((*pid).into()),
                Value::maybe(process.parent),
                Value::text(&process.comm),
                Value::text(&process.program.exe),
                Value::text(&process.program.argv),
                Value::text(&process.cwd),
                Value::maybe(process.uid),
                Value::maybe(code.filter(|_| signal.is_none())),
                Value::maybe(signal),
            ]);
        }
    }

    /// Writes those that are left.
    pub fn end(&mut self) {
        self.write(|_, _| true);
    }
}

/// What a call of execve has started.
fn executed(ev: &Event<'_>) -> Program {
    let (mut text, mut groups) = (Vec::new(), Vec::new());
    json::details(ev, &Options::default(), &NoNames, &mut groups, &mut text);
    let args: Json = serde_json::from_slice(&text).unwrap_or_default();
    let argv = if args["argv"].is_null() { String::new() } else { args["argv"].to_string() };
    Program { exe: ev.bytes_of("filename").to_vec(), argv: argv.into_bytes() }
}
