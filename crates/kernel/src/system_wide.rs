//! The whole machine: which threads exist, which of them are not traced, and which calls they are in when the trace begins.
//!
//! ```text
//! before attaching  mark trapline's own and its readers · process:attach for every thread (names)
//! after, in rounds  the call that each thread is in ─► its state, unless a program has met it ─► notice
//! ```
//!
//! A thread that is missed by both is known from the first call that it makes or ends: nothing is lost but the start of a call.

use super::loaded::Loaded;
use super::{NO_EXIST, in_call, seed_fds};
use engine::backend::in_flight::{InFlight, at_attach};
use engine::capture::Limits;
use engine::own_events;
use engine::pipeline::merge::Merge;
use engine::plan::Plan;
use engine::request::select::Calls;
use events::generated::P_ATTACH;
use std::collections::HashSet;
use std::os::fd::AsRawFd;
use sys::{proc, process, time};

/// Processes that are read from `/proc` between two rounds of draining.
const AT_ONCE: usize = 32;

/// The processes that are still to be read after the programs are attached.
pub struct ProcScan {
    /// Processes, the next one last.
    left: Vec<i32>,
    /// Threads whose names have been reported.
    told: HashSet<u32>,
    calls: Calls,
    limits: Limits,
    /// The states of threads do not say which calls they are in.
    no_entry: bool,
}

fn tell(pid: i32, tid: i32, merge: &mut Merge) {
    let now = time::monotonic();
    if let Some(comm) = proc::comm(tid) {
        let (uid, gid) = engine::backend::ids::ids(tid);
        merge.push(&own_events::process(&P_ATTACH, now, (pid as u32, tid as u32), &[0, uid, gid], &[&comm]));
    }
}

impl ProcScan {
    /// Reports every existing thread, before any program is attached.
    pub fn begin(plan: &Plan, left_out: &[i32], merge: &mut Merge) -> ProcScan {
        let mut s = ProcScan {
            left: Vec::new(),
            told: HashSet::new(),
            calls: plan.calls_at_attach(),
            limits: plan.limits,
            no_entry: plan.no_duration,
        };
        for pid in proc::processes() {
            if left_out.contains(&pid) || pid == process::own_pid() || proc::is_kernel_thread(pid) {
                continue;
            }
            seed_fds(pid, plan, merge);
            for tid in proc::threads(pid).unwrap_or_default() {
                tell(pid, tid, merge);
                s.told.insert(tid as u32);
            }
        }
        s
    }

    /// To be called when the programs are attached: lists the processes anew.
    pub fn attached(&mut self, left_out: &[i32]) {
        let keep = |pid: &i32| !left_out.contains(pid) && *pid != process::own_pid() && !proc::is_kernel_thread(*pid);
        self.left = proc::processes().into_iter().filter(keep).collect();
    }

    /// Reads some processes; returns whether any are left, and the calls that threads are in.
    pub fn step(&mut self, loaded: &Loaded, merge: &mut Merge) -> (bool, Vec<InFlight>) {
        let mut found = Vec::new();
        for _ in 0..AT_ONCE {
            let Some(pid) = self.left.pop() else { break };
            for tid in proc::threads(pid).unwrap_or_default() {
                if self.told.insert(tid as u32) {
                    tell(pid, tid, merge);
                }
                found.extend(self.look(pid, tid, loaded));
            }
        }
        (!self.left.is_empty(), found)
    }

    /// The call that a thread is in. It has a state already where it has made or ended a call since the programs were attached:
    /// then what was read here is of no use.
    fn look(&self, pid: i32, tid: i32, loaded: &Loaded) -> Option<InFlight> {
        let call = at_attach(pid, tid, self.limits)?;
        let fd = process::pidfd(tid, tid != pid).ok()?;
        let state = in_call(tid, Some(&call).filter(|_| !self.no_entry));
        loaded.tasks.update(&fd.as_raw_fd().to_le_bytes(), &state, NO_EXIST).ok()?;
        call.wanted(&self.calls).then_some(call)
    }
}
