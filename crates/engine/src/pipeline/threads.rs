//! The names and owners of threads, derived from events alone.
//!
//! Names and ids come with `process:attach` and `process:exec`, go to children with `process:fork`, and change with the calls that
//! change them: prctl(PR_SET_NAME) and the setuid family. Where the outcome of such a call does not follow from its event, the ids
//! are not known from then on.

use events::event::Event;
use events::generated as g;
use events::names::{FdName, Names};
use std::collections::HashMap;

/// `PR_SET_NAME` (include/uapi/linux/prctl.h).
const PR_SET_NAME: u64 = 15;
/// Bytes of a name without its NUL (`TASK_COMM_LEN`, include/linux/sched.h).
const COMM: usize = 15;
/// The id that leaves an id as it is, or means one that is not known.
const NONE: u32 = u32::MAX;

#[derive(Clone, Debug, Default)]
struct Thread {
    comm: Option<Vec<u8>>,
    uid: Option<u32>,
    gid: Option<u32>,
}

/// The table.
#[derive(Debug, Default)]
pub struct Threads {
    threads: HashMap<u32, Thread>,
}

impl Threads {
    /// Learns what `ev` makes known.
    #[inline]
    pub fn before(&mut self, ev: &Event<'_>) {
        if ev.is_syscall() {
            return;
        }
        match ev.schema.name {
            "exec" | "attach" => {
                let id = |name: &str| Some(ev.value_of(name) as u32).filter(|id| *id != NONE);
                let t = Thread { comm: Some(ev.bytes_of("comm").to_vec()), uid: id("uid"), gid: id("gid") };
                self.threads.insert(ev.tid(), t);
            }
            "fork" => {
                let own = Some(ev.bytes_of("comm")).filter(|comm| !comm.is_empty());
                let maker = self.threads.get(&ev.tid()).cloned();
                if let Some(mut t) = maker.or_else(|| own.map(|_| Thread::default())) {
                    t.comm = own.map(<[u8]>::to_vec).or(t.comm);
                    self.threads.insert(ev.value_of("tid") as u32, t);
                }
            }
            _ => {}
        }
    }

    /// Learns what holds after `ev`.
    #[inline]
    pub fn after(&mut self, ev: &Event<'_>) {
        if !ev.is_syscall() {
            if ev.schema.name == "exit" {
                self.threads.remove(&ev.tid());
            }
            return;
        }
        if !CHANGES.contains(&ev.schema.base) || ev.errno().is_some() || ev.ret() != 0 {
            return;
        }
        let t = self.threads.entry(ev.tid()).or_default();
        let id = |i: usize| ev.arg(i) as u32;
        match ev.schema.name {
            "prctl" if ev.arg(0) == PR_SET_NAME => {
                let name = ev.tail(1, false).map(|t| t.bytes);
                // A nul may be among the bytes of a tail that is not a string.
                t.comm =
                    name.map(|b| b.split(|c| *c == 0).next().unwrap_or_default().iter().take(COMM).copied().collect());
            }
            // The real id changes for those who have the capability, which are those of user 0 unless they gave it up.
            "setuid" => t.uid = t.uid.filter(|uid| *uid == 0 || *uid == id(0)).map(|_| id(0)),
            "setgid" => {
                let privileged = t.uid == Some(0);
                t.gid = t.gid.filter(|gid| privileged || *gid == id(0)).map(|_| id(0));
            }
            "setreuid" | "setresuid" if id(0) != NONE => t.uid = Some(id(0)),
            "setregid" | "setresgid" if id(0) != NONE => t.gid = Some(id(0)),
            _ => {}
        }
    }
}

/// The calls that change names and ids, by class: [`crate::request::select::NAME_CALLS`] and [`crate::request::select::ID_CALLS`].
static CHANGES: [u16; 7] = [
    g::C_PRCTL.id,
    g::C_SETUID.id,
    g::C_SETGID.id,
    g::C_SETREUID.id,
    g::C_SETREGID.id,
    g::C_SETRESUID.id,
    g::C_SETRESGID.id,
];

impl Names for Threads {
    fn fd(&self, _: u32, _: i32) -> Option<&FdName> {
        None
    }
    fn comm(&self, tid: u32) -> Option<&[u8]> {
        self.threads.get(&tid)?.comm.as_deref()
    }
    fn ids(&self, tid: u32) -> (Option<u32>, Option<u32>) {
        self.threads.get(&tid).map_or((None, None), |t| (t.uid, t.gid))
    }
}
