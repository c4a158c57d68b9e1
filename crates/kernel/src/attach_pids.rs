//! `-p`: every thread of a process that runs gets the state that makes it traced.
//!
//! ```text
//! threads in /proc ─┬─ pidfd ──► task storage
//!                   └─ (before Linux 6.9 there are pidfds of first threads only) seeds ──► task iterator ──► task storage
//! ```
//!
//! Ids among the seeds are those of the initial pid namespace: from within another one, threads without pidfds are out of reach.

use super::programs::Later;
use super::{NO_EXIST, in_call};
use bpf::syscalls::{Maps, iterator, state};
use engine::backend::in_flight::{InFlight, at_attach};
use engine::capture::Limits;
use engine::error::{Error, Result};
use engine::own_events;
use engine::pipeline::merge::Merge;
use engine::request::select::Calls;
use std::collections::HashSet;
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use sys::bpf::map::Map;
use sys::bpf::prog::{Program, ProgramSpec};
use sys::bpf::{iter::read, link::Link};
use sys::btf::{KernelBtf, Kind};
use sys::{proc, process, time};

/// Attaches to one process after the other.
pub struct Attacher<'a> {
    /// Task storage.
    pub tasks: &'a Map,
    /// A thread's call in flight is reported where it is one of these.
    pub seen: &'a Calls,
    /// Of what is read of it.
    pub limits: Limits,
    /// For threads that have no pidfd.
    pub adopter: Option<&'a Adopter>,
    /// The states of threads do not say which calls they are in.
    pub no_entry: bool,
}

impl Attacher<'_> {
    fn state(&self, tid: i32, call: Option<&InFlight>) -> [u8; state::SIZE as usize] {
        in_call(tid, call.filter(|_| !self.no_entry))
    }

    /// Traces every thread of a process, and says so of all of them. Returns the calls that they are blocked in.
    pub fn attach(&self, pid: i32, alive: &mut HashSet<u32>, merge: &mut Merge) -> Result<Vec<InFlight>> {
        const EEXIST: i32 = 17;
        // The error of task storage for a thread that is gone (bpf_pid_task_storage_update_elem of kernel/bpf/bpf_task_storage.c, 6.1).
        const ENOENT: i32 = 2;
        const EINVAL: i32 = 22;
        let mistake = |e: io::Error| Error::failed(format!("-p {pid}"), e.to_string(), "use --backend ptrace");
        let gone = || Error::failed(format!("-p {pid}"), "no such process", "see 'ps -e'");
        // What a traced thread creates is traced from its birth. So when a round finds nobody untraced, all are, but for what a thread
        // made that ended before its turn came, which the next round finds. A process that makes threads all the time has new
        // ones in each round.
        let (mut settled, mut calls) = (0, Vec::new());
        while settled < 3 {
            settled += 1;
            let tids = proc::threads(pid).map_err(|_| gone())?;
            if process::has_ended(pid) {
                let why = "its parent has not collected it yet";
                return Err(Error::failed(format!("-p {pid}"), "the process has ended", why));
            }
            let fresh: Vec<i32> = tids.into_iter().filter(|t| alive.insert(*t as u32)).collect();
            if fresh.is_empty() {
                return Ok(calls);
            }
            let found: Vec<_> =
                fresh.into_iter().map(|tid| (tid, time::monotonic(), proc::comm(tid).unwrap_or_default())).collect();
            let mut say = |tid, at, comm: &Vec<u8>, call: Option<InFlight>| {
                settled = 0;
                let ((uid, gid), who) = (engine::backend::ids::ids(tid), (pid as u32, tid as u32));
                merge.push(&own_events::process(&events::generated::P_ATTACH, at, who, &[0, uid, gid], &[comm]));
                calls.extend(call.filter(|c| c.wanted(self.seen)));
            };
            let mut unnamed = Vec::new();
            for (tid, at, comm) in found {
                // Its time is before that of any end of the call.
                let call = at_attach(pid, tid, self.limits);
                let fd = match process::pidfd(tid, tid != pid) {
                    Ok(fd) => fd,
                    Err(e) if tid != pid && e.raw_os_error() == Some(EINVAL) => {
                        unnamed.push((tid, at, comm, call));
                        continue;
                    }
                    Err(_) => continue,
                };
                match self.tasks.update(&fd.as_raw_fd().to_le_bytes(), &self.state(tid, call.as_ref()), NO_EXIST) {
                    Ok(()) => say(tid, at, &comm, call),
                    // A thread that began after its creator was attached to; or one that is gone.
                    Err(e) if matches!(e.raw_os_error(), Some(EEXIST | ENOENT)) => continue,
                    Err(e) => return Err(mistake(e)),
                }
            }
            if let Some(adopter) = self.adopter.filter(|_| !unnamed.is_empty() && proc::pid_namespace().is_none()) {
                let states: Vec<_> =
                    unnamed.iter().map(|(tid, _, _, call)| (*tid, self.state(*tid, call.as_ref()))).collect();
                let fates = adopter.adopt(&states).map_err(mistake)?;
                for ((tid, at, comm, call), fate) in unnamed.into_iter().zip(fates) {
                    match fate {
                        iterator::TAKEN => say(tid, at, &comm, call),
                        iterator::HAD_ONE => {}
                        // It is gone, or storage was refused because a program was at work on it: the next round knows.
                        _ => drop(alive.remove(&(tid as u32))),
                    }
                }
            }
        }
        Ok(calls)
    }
}

/// Threads per turn of the iterator.
const AT_ONCE: u32 = 64;

/// An iterator over tasks that gives some of them their states.
pub struct Adopter {
    seeds: Map,
    link: Link,
    _program: Program,
}

impl Adopter {
    /// Loads it where this kernel needs it: from Linux 6.9 on threads have pidfds.
    ///
    /// # Errors
    /// This kernel has no such iterator, or not for this user.
    pub fn where_needed(later: &Later) -> Result<Option<Adopter>> {
        if sys::bpf::probe::thread_pidfd().is_ok() || proc::pid_namespace().is_some() {
            return Ok(None);
        }
        let Some(btf) = &later.btf else { return Ok(None) };
        let cannot = |e: io::Error| Error::failed("-p", e.to_string(), "use --backend ptrace");
        Adopter::load(btf, &later.maps).map(Some).map_err(cannot)
    }

    fn load(btf: &KernelBtf, maps: &Maps) -> io::Result<Adopter> {
        let missing = || io::Error::from(io::ErrorKind::Unsupported);
        let id = btf.find(Kind::Func, "bpf_iter_task").ok_or_else(missing)?;
        let pid =
            btf.field_of("task_struct", &["pid"]).and_then(|f| i16::try_from(f.offset).ok()).ok_or_else(missing)?;
        let seeds = Map::hash("trapline_seeds", 4, iterator::SEED, AT_ONCE, 0)?;
        let program = iterator::adopt(maps, seeds.as_fd().as_raw_fd(), pid).map_err(io::Error::other)?;
        let program = Program::load(&ProgramSpec::iterator("trapline_adopt", &program.bytes(), id))
            .map_err(|e| io::Error::new(e.error.kind(), e.to_string()))?;
        let link = Link::iterator(&program, &[])?;
        Ok(Adopter { seeds, link, _program: program })
    }

    /// Gives threads their states. Returns for each [`iterator::TAKEN`], [`iterator::HAD_ONE`], or 0: it was not found, or storage was refused.
    fn adopt(&self, threads: &[(i32, [u8; state::SIZE as usize])]) -> io::Result<Vec<i32>> {
        let mut fates = Vec::with_capacity(threads.len());
        for some in threads.chunks(AT_ONCE as usize) {
            for (tid, value) in some {
                self.seeds.update(&tid.to_ne_bytes(), &[&value[..], &[0; 8]].concat(), 0)?;
            }
            read(&self.link, &mut Vec::new())?;
            for (tid, _) in some {
                let mut value = vec![0; iterator::SEED as usize];
                let key = tid.to_ne_bytes();
                self.seeds.lookup(&key, &mut value)?;
                fates.push(i32::from(value[state::SIZE as usize]));
                self.seeds.delete(&key)?;
            }
        }
        Ok(fates)
    }
}
