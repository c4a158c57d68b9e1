//! What processes have mapped, as `process:map` events, so that symbols can be found later and elsewhere.
//!
//! ```text
//!  watch_command, watch_pid ─► perf events that children inherit, one per CPU ─► rings ─► drain ─► process:map events
//!  snapshot (a process that runs already) ─► /proc/PID/maps + build ids of the files ────────┘
//! ```
//!
//! Only executable mappings. Where perf_event_open(2) is refused, a process is read through `/proc` when an event shows that it has
//! executed a program or mapped code ([`Maps::note`]): mappings that are gone by then are missed, as is a process that has
//! ended by then. Events of one call of [`Maps::drain`] are in order of time.
//!
//! The kernel takes its events off a process that executes a program with other rights (set-user-ID), or one that may not be
//! read: of those it reports only that they have begun. They are read through `/proc`, and get new perf events.

mod files;
mod watch;

use crate::own_events;
use events::Event;
use events::generated::P_MAP;
use files::BuildIds;
use std::collections::{HashMap, HashSet};
use std::io;
use sys::perf::record::{FileId, Mapping};
use watch::{Said, Watch};

/// `PROT_EXEC`.
const EXEC: u32 = 4;

/// An exec whose mappings have not come this many ns after it has begun: they do not come.
const PATIENCE_NS: u64 = 2_000_000;
/// Longer than this, ns, no record of the kernel is late.
const LATE_NS: u64 = 5_000_000_000;
/// How many processes get new perf events: each takes a descriptor per CPU.
const MOST_RENEWED: usize = 200;

/// Address, length and offset of a mapping.
type Extent = (u64, u64, u64);

/// Watches what processes map.
#[derive(Default)]
pub struct Maps {
    /// The kernel's records.
    watch: Option<Watch>,
    /// They are refused for some process, or for all.
    refused: bool,
    ids: BuildIds,
    /// Encoded events that wait for [`Maps::drain`]: time, bytes.
    waiting: Vec<(u64, Vec<u8>)>,
    /// Without the kernel's records: mappings that snapshots have reported: process, address, length, offset, inode.
    told: HashSet<(i32, u64, u64, u64, u64)>,
    /// Execs that have begun, by process: the time.
    begun: HashMap<u32, u64>,
    /// Of processes that were read because the kernel was late: when, and what was found. The kernel's own records of
    /// that may still come.
    late: HashMap<u32, (u64, HashSet<Extent>)>,
    renewed: usize,
    /// The process whose mappings are skipped; 0: none.
    own: u32,
    lost: u64,
    missed: u64,
}

impl Maps {
    /// Watches nobody.
    pub fn new() -> Maps {
        Maps::default()
    }

    /// Follows a command that has not executed its program yet, and its children.
    pub fn watch_command(&mut self, pid: i32) {
        self.follow(&[pid]);
    }

    /// Follows what the caller will start: everything that is its child from now on. Its own mappings are skipped.
    pub fn watch_children(&mut self) {
        self.follow(&[0]);
        self.own = sys::process::own_pid() as u32;
    }

    /// Follows every process of the machine, and reports what running ones have mapped. Needs CAP_PERFMON.
    pub fn watch_all(&mut self) {
        if !self.follow(&[-1]) {
            return;
        }
        self.own = sys::process::own_pid() as u32;
        for pid in sys::proc::all() {
            // It may end meanwhile; threads of the kernel have none.
            let _ = self.snapshot(pid);
        }
    }

    /// Follows a running process, with all its threads and children, and reports what it has mapped.
    ///
    /// # Errors
    /// `ENOENT`: there is no such process. `EACCES`: it is somebody else's.
    pub fn watch_pid(&mut self, pid: i32) -> io::Result<()> {
        let mut known = HashSet::new();
        loop {
            let fresh: Vec<i32> = sys::proc::threads(pid)?.into_iter().filter(|t| known.insert(*t)).collect();
            if fresh.is_empty() || !self.follow(&fresh) {
                break;
            }
        }
        self.snapshot(pid)
    }

    /// Whether the kernel reports the mappings of these threads.
    fn follow(&mut self, tids: &[i32]) -> bool {
        if self.refused {
            return false;
        }
        let watch = match &mut self.watch {
            Some(w) => Ok(w),
            none => Watch::new().map(|w| none.insert(w)),
        };
        self.refused = watch.and_then(|w| tids.iter().try_for_each(|t| w.add(*t))).is_err();
        !self.refused
    }

    /// Reports what a process has mapped now.
    ///
    /// # Errors
    /// `ENOENT`: it is gone. `EACCES`: it is somebody else's.
    pub fn snapshot(&mut self, pid: i32) -> io::Result<()> {
        let time = sys::time::monotonic();
        for m in sys::maps::of(pid)?.into_iter().filter(|m| m.prot & EXEC != 0) {
            let len = m.range.1.saturating_sub(m.range.0);
            if self.refused && !self.told.insert((pid, m.range.0, len, m.offset, m.file.2)) {
                continue;
            }
            let bytes = encode(&of_process(pid, &m), time, &mut self.ids);
            self.waiting.push((time, bytes));
        }
        Ok(())
    }

    /// Takes notice of an event of the trace: without the kernel's own records, processes are read when they execute a
    /// program or map code.
    #[inline]
    pub fn note(&mut self, ev: &Event<'_>) {
        if !self.refused {
            return;
        }
        let pid = ev.pid() as i32;
        let look = match (ev.is_syscall(), ev.schema.name) {
            (false, "exec") => {
                self.forget(pid);
                true
            }
            (false, "exit") if ev.pid() == ev.tid() => {
                self.forget(pid);
                false
            }
            (true, "mmap" | "mprotect" | "pkey_mprotect") => {
                ev.errno().is_none() && ev.value_of("prot") & u64::from(EXEC) != 0
            }
            _ => false,
        };
        if look {
            // It may have ended in the meantime: then its mappings are unknown.
            self.missed += u64::from(self.snapshot(pid).is_err());
        }
    }

    fn forget(&mut self, pid: i32) {
        self.told.retain(|t| t.0 != pid);
    }

    /// Hands over the events that have come up since the last call, encoded, in order of time; returns how many.
    pub fn drain(&mut self, mut each: impl FnMut(&[u8])) -> usize {
        self.read_rings();
        self.look_at_silent();
        order::by_key(&mut self.waiting, |w| w.0);
        let waiting = std::mem::take(&mut self.waiting);
        waiting.iter().for_each(|(_, bytes)| each(bytes));
        waiting.len()
    }

    fn read_rings(&mut self) {
        let Some(watch) = &mut self.watch else { return };
        let (ids, waiting, own, late) = (&mut self.ids, &mut self.waiting, self.own, &mut self.late);
        // The rings of several CPUs know of one process: when each has spoken last.
        let (mut execs, mut mapped) = (HashMap::new(), HashMap::new());
        let latest = |of: &mut HashMap<u32, u64>, pid, time| {
            let last = of.entry(pid).or_insert(time);
            *last = time.max(*last);
        };
        self.lost += watch.drain(|said, time| match said {
            Said::Mapping(m) if m.who.0 == own => {}
            Said::Mapping(m) => {
                latest(&mut mapped, m.who.0, time);
                let known = late
                    .get(&m.who.0)
                    .is_some_and(|(then, found)| time <= *then && found.contains(&(m.addr, m.len, m.offset)));
                if !known {
                    waiting.push((time, encode(m, time, ids)));
                }
            }
            Said::Exec(pid) => latest(&mut execs, pid, time),
        });
        let now = sys::time::monotonic();
        late.retain(|pid, (then, _)| {
            now.saturating_sub(*then) < LATE_NS && execs.get(pid).is_none_or(|begun| begun <= then)
        });
        self.begun.extend(execs);
        self.begun.retain(|pid, begun| mapped.get(pid).is_none_or(|time| time < begun));
    }

    /// Reads the processes that have begun a program and, as far as the kernel reports, not mapped it.
    fn look_at_silent(&mut self) {
        let now = sys::time::monotonic();
        let silent = |begun: &u64| now.saturating_sub(*begun) > PATIENCE_NS;
        let pids: Vec<u32> = self.begun.iter().filter(|(_, begun)| silent(begun)).map(|(pid, _)| *pid).collect();
        for pid in pids {
            self.begun.remove(&pid);
            if self.renewed < MOST_RENEWED
                && let Some(watch) = &mut self.watch
            {
                self.renewed += 1;
                // Not allowed to an ordinary user: then there is what is mapped now, and no more.
                let _ = watch.add(pid as i32);
            }
            let before = self.waiting.len();
            if self.snapshot(pid as i32).is_err() {
                self.missed += 1;
            }
            let found = self.waiting[before..].iter().filter_map(|(_, bytes)| Event::parse(bytes).ok());
            let found = found.map(|ev| (ev.value_of("addr"), ev.value_of("len"), ev.value_of("pgoff")));
            self.late.insert(pid, (sys::time::monotonic(), found.collect()));
        }
    }

    /// Processes that have begun a program of which nothing could be learnt: the kernel reports nothing, and it had ended, or
    /// may not be read.
    pub fn missed(&self) -> u64 {
        self.missed
    }

    /// Records that the kernel could not write because nobody had read the earlier ones.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// How mappings are learnt of, in words for `--explain`.
    pub fn method(&self) -> &'static str {
        match (&self.watch, self.refused) {
            (Some(_), false) => "perf_event_open: every executable mapping, as it is made",
            (Some(_), true) => {
                "perf_event_open for some processes, /proc/PID/maps at exec and mapping of code for others"
            }
            (None, true) => {
                "/proc/PID/maps at each exec and mapping of code that is traced (perf_event_open is refused)"
            }
            (None, false) => "none: no process is watched",
        }
    }

    /// Behaves as if perf_event_open(2) were refused.
    pub fn without_perf(mut self) -> Maps {
        (self.watch, self.refused) = (None, true);
        self
    }
}

/// What a process has mapped, executable, as `process:map` events.
#[derive(Default)]
pub struct Encoder(BuildIds);

impl Encoder {
    /// The events of these mappings of a process.
    pub fn events(&mut self, pid: i32, maps: &[sys::maps::Map], time: u64) -> Vec<Vec<u8>> {
        let executable = maps.iter().filter(|m| m.prot & EXEC != 0);
        executable.map(|m| encode(&of_process(pid, m), time, &mut self.0)).collect()
    }
}

/// A mapping as `/proc/PID/maps` has it.
fn of_process(pid: i32, m: &sys::maps::Map) -> Mapping<'_> {
    Mapping {
        who: (pid as u32, pid as u32),
        addr: m.range.0,
        len: m.range.1.saturating_sub(m.range.0),
        offset: m.offset,
        file: FileId::Inode(m.file.0, m.file.1, m.file.2),
        prot: m.prot,
        flags: m.flags,
        path: if m.path.is_empty() { b"//anon" } else { m.path.as_slice() },
    }
}

/// A mapping as a `process:map` event.
fn encode(m: &Mapping<'_>, time: u64, ids: &mut BuildIds) -> Vec<u8> {
    let found;
    let (id, dev, inode): (&[u8], u64, u64) = match m.file {
        FileId::BuildId(id) => (id, 0, 0),
        FileId::Inode(major, minor, inode) => {
            found = ids.of(m, (major, minor, inode));
            (&found, device(major, minor), inode)
        }
    };
    let numbers = [0, 0, m.addr, m.len, m.offset, m.prot.into(), m.flags.into(), dev, inode];
    own_events::process(&P_MAP, time, m.who, &numbers, &[m.path, id])
}

/// The number of a device as stat(2) gives it (`gnu_dev_makedev`).
fn device(major: u32, minor: u32) -> u64 {
    let (major, minor) = (u64::from(major), u64::from(minor));
    major >> 12 << 44 | (major & 0xfff) << 8 | minor >> 8 << 20 | minor & 0xff
}
