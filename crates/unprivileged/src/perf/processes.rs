//! What is known of the traced threads and processes, as the records say, in order of time.

use engine::backend::code::{Building, Code, Files, areas_of, build_here};
use engine::backend::ids::ids;
use engine::backend::patched;
use engine::callers::Handle;
use std::collections::{HashMap, VecDeque};
use sys::maps::{Map, PROT_EXEC};
use sys::perf::record::{FileId, Mapping};
use sys::proc;

/// The most processes and threads that are remembered.
const MOST: usize = 1 << 16;
/// How long a process that was read because of an unknown address is not read again, ns.
const AGAIN: u64 = 50_000_000;

/// A thread.
pub struct Thread {
    /// Its process.
    pub pid: u32,
    /// Its name.
    pub comm: Vec<u8>,
    /// User and group, where they were asked for.
    ids: Option<(u32, u32)>,
}

#[derive(Default)]
struct Process {
    code: Code,
    /// When it was last read, ns.
    read: u64,
}

/// All of them.
#[derive(Default)]
pub struct Processes {
    threads: HashMap<u32, Thread>,
    processes: HashMap<u32, Process>,
    /// The tables of files.
    pub files: Files,
    /// Processes that were read.
    pub snapshots: u64,
    /// Mappings that were made.
    pub updates: u64,
    /// Where traced functions were called from.
    pub callers: Option<Handle>,
}

/// What mappings have of traced functions whose records wait to be worked off: read while the process is there.
#[derive(Default)]
pub struct Ahead(VecDeque<(u32, (u64, u64), Vec<patched::Copy>)>);

impl Ahead {
    /// A mapping was made.
    pub fn read(&mut self, m: &Mapping<'_>) {
        let Some(map) = executable(m).filter(|_| self.0.len() < MOST) else { return };
        let areas = areas_of(m.who.0 as i32, &map);
        if !areas.is_empty() {
            self.0.push_back((m.who.0, map.range, areas));
        }
    }

    /// Adds what was read later.
    pub fn append(&mut self, later: &mut Ahead) {
        self.0.append(&mut later.0);
    }

    fn take(&mut self, pid: u32, range: (u64, u64)) -> Option<Vec<patched::Copy>> {
        let at = self.0.iter().position(|(of, there, _)| (*of, *there) == (pid, range))?;
        self.0.remove(at).map(|(.., areas)| areas)
    }
}

impl Processes {
    /// None yet.
    pub fn new(callers: Option<Handle>) -> Processes {
        Processes { callers, ..Processes::default() }
    }

    /// A process that runs already; its threads.
    pub fn attach(&mut self, pid: u32, tids: &[i32]) {
        self.look_at(pid, 0);
        for &tid in tids {
            self.begin(tid as u32, pid, proc::comm(tid).unwrap_or_default());
        }
    }

    /// A thread begins.
    pub fn begin(&mut self, tid: u32, pid: u32, comm: Vec<u8>) {
        if self.threads.len() >= MOST {
            self.threads.clear();
        }
        self.threads.insert(tid, Thread { pid, comm, ids: None });
    }

    /// Threads are left.
    pub fn are_there(&self) -> bool {
        !self.threads.is_empty()
    }

    /// The processes that have executed something.
    pub fn pids(&self) -> impl Iterator<Item = u32> {
        self.processes.keys().copied()
    }

    /// A thread has made another, or a process.
    pub fn fork(&mut self, (pid, tid): (u32, u32), parent: (u32, u32), time: u64) {
        let comm = self.comm(parent.1).to_vec();
        self.begin(tid, pid, comm);
        if pid != parent.0 {
            self.callers.iter().for_each(|callers| callers.get().fork(tid, parent.1, time));
            let code = self.processes.get(&parent.0).map(|p| p.code.clone()).unwrap_or_default();
            self.insert(pid, Process { code, read: 0 });
        }
    }

    fn insert(&mut self, pid: u32, process: Process) {
        if self.processes.len() >= MOST {
            self.processes.clear();
        }
        self.processes.insert(pid, process);
    }

    /// A process executes a program: one thread is left, which has the process's number.
    pub fn exec(&mut self, pid: u32, comm: &[u8], time: u64) {
        self.callers.iter().for_each(|callers| callers.get().end(pid, time));
        self.threads.retain(|_, t| t.pid != pid);
        self.begin(pid, pid, comm.to_vec());
        self.insert(pid, Process::default());
    }

    /// A thread gets another name.
    pub fn rename(&mut self, (pid, tid): (u32, u32), comm: &[u8]) {
        match self.threads.get_mut(&tid) {
            Some(thread) => thread.comm = comm.to_vec(),
            None => self.begin(tid, pid, comm.to_vec()),
        }
    }

    /// A thread has ended.
    pub fn exit(&mut self, (pid, tid): (u32, u32), time: u64) {
        self.callers.iter().for_each(|callers| callers.get().end(tid, time));
        self.threads.remove(&tid);
        if !self.threads.values().any(|t| t.pid == pid) {
            self.processes.remove(&pid);
        }
    }

    /// Threads whose ends were lost.
    pub fn forget_ended(&mut self) {
        self.threads.retain(|tid, _| !sys::process::has_ended(*tid as i32));
    }

    /// A mapping is made. `ahead`: what was read of it.
    pub fn map(&mut self, m: &Mapping<'_>, ahead: &mut Ahead, build: &mut Building<'_>) {
        let Some(map) = executable(m) else { return };
        let pid = m.who.0;
        let tables = self.files.tables(pid as i32, &map, build);
        self.updates += 1;
        let areas = ahead.take(pid, map.range).unwrap_or_else(|| areas_of(pid as i32, &map));
        self.processes.entry(pid).or_default().code.map(&map, tables, areas);
    }

    /// What a process has mapped.
    pub fn code(&self, pid: u32) -> Option<&Code> {
        self.processes.get(&pid).map(|p| &p.code)
    }

    /// Reads a process, unless that was done a moment ago; whether it was.
    pub fn look_again(&mut self, pid: u32, now: u64) -> bool {
        let recent = self.processes.get(&pid).is_some_and(|p| now.saturating_sub(p.read) < AGAIN);
        !recent && self.look_at(pid, now)
    }

    fn look_at(&mut self, pid: u32, now: u64) -> bool {
        self.snapshots += 1;
        let found = Code::of(pid as i32, &mut self.files, &mut build_here);
        let is_there = found.is_some();
        match found {
            Some(code) => self.insert(pid, Process { code, read: now }),
            None => self.processes.entry(pid).or_default().read = now,
        }
        is_there
    }

    /// The name of a thread.
    pub fn comm(&self, tid: u32) -> &[u8] {
        self.threads.get(&tid).map_or(b"", |t| &t.comm)
    }

    /// A thread, perhaps one whose beginning was lost.
    pub fn thread(&mut self, pid: u32, tid: u32) -> &Thread {
        if !self.threads.contains_key(&tid) {
            self.begin(tid, pid, proc::comm(tid as i32).unwrap_or_default());
        }
        &self.threads[&tid]
    }

    /// User and group of a thread, as they were when they were first asked for.
    pub fn ids(&mut self, pid: u32, tid: u32) -> (u32, u32) {
        self.thread(pid, tid);
        let thread = self.threads.get_mut(&tid);
        let look = || {
            let (uid, gid) = ids(tid as i32);
            (uid as u32, gid as u32)
        };
        thread.map_or_else(look, |t| *t.ids.get_or_insert_with(look))
    }
}

/// A mapping of code; none where it is something else.
fn executable(m: &Mapping<'_>) -> Option<Map> {
    let FileId::Inode(major, minor, inode) = m.file else { return None };
    let range = (m.addr, m.addr.saturating_add(m.len));
    let file = (major, minor, if m.path.first() == Some(&b'/') { inode } else { 0 });
    let map = || Map { range, prot: m.prot, flags: m.flags, offset: m.offset, file, path: m.path.to_vec() };
    (m.prot & PROT_EXEC != 0).then(map)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_followed() {
        let mut all = Processes::default();
        all.begin(7, 7, b"a".to_vec());
        all.fork((7, 8), (7, 7), 1);
        all.fork((9, 9), (7, 8), 2);
        all.rename((7, 8), b"b");
        assert_eq!((all.comm(7), all.comm(8), all.comm(9), all.comm(1)), (&b"a"[..], &b"b"[..], &b"a"[..], &b""[..]));
        // The second thread executes a program: the first is gone.
        all.exec(7, b"c", 3);
        assert_eq!((all.comm(7), all.comm(8)), (&b"c"[..], &b""[..]));
        all.exit((9, 9), 4);
        assert!(all.are_there() && all.code(9).is_none() && all.code(7).is_some());
        all.exit((7, 7), 5);
        assert!(!all.are_there() && all.code(7).is_none());
    }
}
