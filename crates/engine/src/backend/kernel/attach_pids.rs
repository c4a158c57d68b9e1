//! `-p`: every thread of a process that runs gets the state that makes it traced.
//!
//! ```text
//! threads in /proc ─┬─ pidfd ──► task storage
//!                   └─ (before Linux 6.9 there are pidfds of first threads only) seeds ──► task iterator ──► task storage
//! ```
//!
//! Ids among the seeds are those of the initial pid namespace: from within another one, threads without pidfds are out of reach.

use super::load::{Later, Loaded};
use super::{NO_EXIST, in_call, in_flight};
use crate::error::{Error, Result};
use crate::own_events;
use crate::pipeline::merge::Merge;
use crate::plan::Plan;

use bpf::syscalls::{Maps, iterator, state};
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
    plan: &'a Plan,
    loaded: &'a Loaded,
    later: &'a Later,
    adopter: Option<Adopter>,
}

impl<'a> Attacher<'a> {
    /// With programs that are attached.
    pub fn new(plan: &'a Plan, loaded: &'a Loaded, later: &'a Later) -> Attacher<'a> {
        Attacher { plan, loaded, later, adopter: None }
    }

    /// Traces every thread of a process: reports an attach event for each, and then the call that it is blocked in.
    pub fn attach(&mut self, pid: i32, alive: &mut HashSet<u32>, merge: &mut Merge) -> Result<()> {
        const EEXIST: i32 = 17;
        // The error of task storage for a thread that is gone (bpf_pid_task_storage_update_elem of kernel/bpf/bpf_task_storage.c, 6.1).
        const ENOENT: i32 = 2;
        const EINVAL: i32 = 22;
        let mistake = |e: io::Error| Error::failed(format!("-p {pid}"), e.to_string(), "use --backend ptrace");
        let gone = || Error::failed(format!("-p {pid}"), "no such process", "see 'ps -e'");
        let seen = self.plan.calls_at_attach();
        // What a traced thread creates is traced from its birth. So when a round finds nobody untraced, all are, but for what a thread
        // made that ended before its turn came, which the next round finds. A process that makes threads all the time has new
        // ones in each round.
        let mut settled = 0;
        while settled < 3 {
            settled += 1;
            let tids = proc::threads(pid).map_err(|_| gone())?;
            if process::has_ended(pid) {
                let why = "its parent has not collected it yet";
                return Err(Error::failed(format!("-p {pid}"), "the process has ended", why));
            }
            let fresh: Vec<i32> = tids.into_iter().filter(|t| alive.insert(*t as u32)).collect();
            if fresh.is_empty() {
                return Ok(());
            }
            let found: Vec<_> =
                fresh.into_iter().map(|tid| (tid, time::monotonic(), proc::comm(tid).unwrap_or_default())).collect();
            let mut say = |tid, at, comm: &Vec<u8>, call: Option<in_flight::InFlight>| {
                settled = 0;
                let ((uid, gid), who) = (crate::backend::ids::ids(tid), (pid as u32, tid as u32));
                merge.push(&own_events::process(&events::generated::P_ATTACH, at, who, &[0, uid, gid], &[comm]));
                if let Some(call) = call.filter(|c| c.wanted(&seen)) {
                    merge.push(&call.notice(1));
                }
            };
            let mut unnamed = Vec::new();
            for (tid, at, comm) in found {
                // Its time is before that of any end of the call.
                let call = in_flight::at_attach(pid, tid, self.plan.limits);
                let fd = match process::pidfd(tid, tid != pid) {
                    Ok(fd) => fd,
                    Err(e) if tid != pid && e.raw_os_error() == Some(EINVAL) => {
                        unnamed.push((tid, at, comm, call));
                        continue;
                    }
                    Err(_) => continue,
                };
                match self.loaded.tasks.update(&fd.as_raw_fd().to_le_bytes(), &in_call(tid, call.as_ref()), NO_EXIST) {
                    Ok(()) => say(tid, at, &comm, call),
                    // A thread that began after its creator was attached to; or one that is gone.
                    Err(e) if matches!(e.raw_os_error(), Some(EEXIST | ENOENT)) => continue,
                    Err(e) => return Err(mistake(e)),
                }
            }
            if !unnamed.is_empty() && proc::pid_namespace().is_none() {
                if self.adopter.is_none() {
                    self.adopter = Some(Adopter::load(&self.later.btf, &self.later.maps).map_err(mistake)?);
                }
                let states: Vec<_> =
                    unnamed.iter().map(|(tid, _, _, call)| (*tid, in_call(*tid, call.as_ref()))).collect();
                let fates = self.adopter.as_ref().map_or(Ok(Vec::new()), |a| a.adopt(&states)).map_err(mistake)?;
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
        Ok(())
    }
}

/// Threads per turn of the iterator.
const AT_ONCE: u32 = 64;

/// The loaded iterator.
struct Adopter {
    seeds: Map,
    link: Link,
    _program: Program,
}

impl Adopter {
    /// Loads it. An error means that this kernel has no task iterator, or does not allow trapline to use it.
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
