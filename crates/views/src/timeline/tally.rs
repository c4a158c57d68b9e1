//! What each process has done, added up from the rows.

use super::columns::Row;
use super::{Kind, Of, Timeline};

/// Of a process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    /// System calls.
    pub calls: u64,
    /// Those that have failed.
    pub errors: u64,
    /// Bytes that calls have read and written.
    pub read: u64,
    pub written: u64,
    /// Calls of functions.
    pub functions: u64,
    /// Samples.
    pub samples: u64,
    /// Blocks that were allocated.
    pub blocks: u64,
    /// On processors, ns, where switches are in the trace.
    pub ran: Option<u64>,
}

/// Calls whose results are bytes that were read, and written.
pub(crate) const READS: [&str; 8] =
    ["read", "pread64", "readv", "preadv", "preadv2", "recvfrom", "recvmsg", "getdents64"];
pub(crate) const WRITES: [&str; 10] = [
    "write",
    "pwrite64",
    "writev",
    "pwritev",
    "pwritev2",
    "sendto",
    "sendmsg",
    "sendfile",
    "copy_file_range",
    "splice",
];

/// Whether a call does nothing but wait.
pub(super) fn waits(name: &str) -> bool {
    /// Calls that do nothing but wait.
    const WAITS: [&str; 22] = [
        "futex",
        "futex_wait",
        "futex_waitv",
        "nanosleep",
        "clock_nanosleep",
        "poll",
        "ppoll",
        "select",
        "pselect6",
        "epoll_wait",
        "epoll_pwait",
        "epoll_pwait2",
        "wait4",
        "waitid",
        "pause",
        "rt_sigsuspend",
        "rt_sigtimedwait",
        "sched_yield",
        "io_getevents",
        "io_uring_enter",
        "semop",
        "flock",
    ];
    WAITS.contains(&name)
}

/// Of all processes, by their indices.
pub(super) fn of(timeline: &Timeline) -> Vec<Tally> {
    let mut all = vec![Tally::default(); timeline.processes.all().len()];
    let names: Vec<&str> = timeline.strings.all().collect();
    let name = |n: u32| names.get((n as usize).wrapping_sub(1)).copied().unwrap_or_default();
    for row in timeline.ordered() {
        let Some(tally) = process(timeline, row).and_then(|process| all.get_mut(process)) else { continue };
        match row.kind {
            Kind::Function => tally.functions += row.len(),
            Kind::Sample => tally.samples += row.len(),
            Kind::Heap => tally.blocks += row.items().filter(|i| i.subject == 0).count() as u64,
            Kind::Run => {
                let on = row.items().filter(|i| name(i.name) == super::runs::ON).map(|i| i.length).sum::<u64>();
                *tally.ran.get_or_insert(0) += on;
            }
            Kind::Call => {
                for item in row.items() {
                    tally.calls += 1;
                    let bytes = u64::try_from(item.value).unwrap_or(0);
                    match name(item.name) {
                        _ if (-4095..0).contains(&item.value) => tally.errors += 1,
                        name if READS.contains(&name) => tally.read = tally.read.saturating_add(bytes),
                        name if WRITES.contains(&name) => tally.written = tally.written.saturating_add(bytes),
                        _ => {}
                    }
                }
            }
            Kind::Mark | Kind::Lost | Kind::Span | Kind::Files | Kind::Cpu => {}
        }
    }
    all
}

/// The process of a row; none of a processor's.
pub(super) fn process(timeline: &Timeline, row: &Row) -> Option<usize> {
    match row.of {
        Of::Cpu(_) => None,
        Of::Process(process) => Some(process),
        Of::Thread(thread) => Some(timeline.processes.of_thread(thread)),
    }
}
