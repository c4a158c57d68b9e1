//! Whether a process's filters of system calls (seccomp(2)) permit what loading the agent and the agent itself need. A call that a filter
//! does not know may end the process, so its filters are read and run for each of these calls before anything is done.
//!
//! Filters are read with CAP_SYS_ADMIN only (PTRACE_SECCOMP_GET_FILTER), and there is no way to try a call that may end the process.
//! So an ordinary user cannot attach to a process that has a filter.

use super::{failed, io_failed};
use abi::permits::{
    self, ALLOW, ARCHITECTURE, ARGUMENTS, ERRNO, GROW_CALLS, LOG, NUMBER, READ_CALLS, SLOW_CALLS, TALK_CALLS, X86_64,
};
use engine::error::Result;
use sys::remote::{self, Threads};
use sys::{proc, ptrace};

/// The most filters of a thread, and different ones of a process.
const MOST: usize = 256;

/// A call, with the arguments that are known.
#[derive(Clone, Copy)]
struct Call {
    number: u32,
    arguments: [Option<u64>; 6],
    /// Without it there is another way, or less is done: it may fail.
    may_fail: bool,
}

const fn any(number: u32) -> Call {
    Call { number, arguments: [None; 6], may_fail: false }
}

/// mmap with this protection and these flags.
const fn map(protection: u64, flags: u64) -> Call {
    Call { number: MMAP, arguments: [None, None, Some(protection), Some(flags), None, None], may_fail: false }
}

const fn protect(protection: u64, may_fail: bool) -> Call {
    Call { number: MPROTECT, arguments: [None, None, Some(protection), None, None, None], may_fail }
}

const MMAP: u32 = 9;
const MPROTECT: u32 = 10;
const SOCKET: u32 = 41;
const MEMBARRIER: u32 = 324;

/// What trapline has a thread do, what dlopen(3) does, and those of the agent's calls that filters look at the arguments of.
const CALLS: [Call; 25] = [
    // PROT_READ, PROT_WRITE, PROT_EXEC: 1, 2, 4. MAP_SHARED, MAP_PRIVATE, MAP_FIXED, MAP_ANONYMOUS, MAP_DENYWRITE: 1, 2, 0x10, 0x20, 0x800.
    map(3, 0x22),
    map(3, 0x32),
    map(3, 0x4022),
    map(1, 0x802),
    map(1, 0x812),
    map(5, 0x812),
    map(3, 0x812),
    map(3, 1),
    map(1, 2),
    // MAP_FIXED_NOREPLACE
    map(3, 0x10_0022),
    protect(1, false),
    protect(3, false),
    // Where it fails, code is mapped as such and written through /proc/PID/mem.
    protect(5, true),
    // sched_yield, rt_sigreturn, fstat, newfstatat, brk, rt_sigprocmask
    any(24),
    any(15),
    any(5),
    any(262),
    any(12),
    any(14),
    // memfd_create
    Call { may_fail: true, ..any(319) },
    // socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)
    Call { number: SOCKET, arguments: [Some(1), Some(0x8_0001), Some(0), None, None, None], may_fail: false },
    Call { may_fail: true, ..any(MEMBARRIER) },
    Call { may_fail: true, ..any(READ_CALLS[0]) },
    Call { may_fail: true, ..any(GROW_CALLS[0]) },
    any(3),
];

fn calls() -> impl Iterator<Item = Call> {
    let special = |n: &u32| [MMAP, MPROTECT, SOCKET, MEMBARRIER].contains(n);
    let others = SLOW_CALLS.into_iter().chain(TALK_CALLS).filter(move |n| !special(n)).map(any);
    CALLS.into_iter().chain(others)
}

/// The answer of a filter for a call; none where it depends on what is not known.
fn answer(filter: &[u64], call: &Call) -> Option<u32> {
    let word = |offset: u32| match offset {
        NUMBER => Some(call.number),
        ARCHITECTURE => Some(X86_64),
        _ => {
            let at = offset.checked_sub(ARGUMENTS)?;
            let argument = (*call.arguments.get(at as usize / 8)?)?;
            Some((argument >> (at % 8 * 8)) as u32)
        }
    };
    permits::answer(filter.len(), |n| filter.get(n).copied(), word)
}

/// The first call that a filter does not permit, and whether it would only fail.
fn refused(filter: &[u64]) -> Option<(u32, bool)> {
    calls().find_map(|call| match answer(filter, &call).map(|a| a >> 16) {
        Some(ALLOW | LOG) => None,
        Some(ERRNO) if call.may_fail => None,
        Some(ERRNO) => Some((call.number, true)),
        _ => Some((call.number, false)),
    })
}

const INSTEAD: &str = "start the command under trapline; or use -e 'uprobe:PROGRAM:FUNCTION' as root, with record";

/// Refuses a process whose filters do not permit it.
///
/// # Errors
/// They do not, or cannot be read.
pub fn check(pid: i32) -> Result<()> {
    let mode = |tid: i32| proc::status_field(tid, "Seccomp").unwrap_or_default();
    let tids = proc::threads(pid).unwrap_or_default();
    if tids.iter().any(|tid| mode(*tid) == "1") {
        return Err(failed(pid, "the process may make no system calls (strict seccomp)", INSTEAD));
    }
    if remote::alone(|| dispatches(pid)).map_err(|e| io_failed(pid, "thread", &e))?? {
        return Err(failed(pid, "the process turns system calls into signals (syscall user dispatch)", INSTEAD));
    }
    if tids.iter().all(|tid| mode(*tid) != "2") {
        return Ok(());
    }
    let filters = remote::alone(|| filters(pid)).map_err(|e| io_failed(pid, "thread", &e))??;
    let Some((number, fails)) = filters.iter().find_map(|filter| refused(filter)) else { return Ok(()) };
    let name = events::registry::by_number(number.into()).map_or_else(|| format!("call {number}"), |s| s.name.into());
    let what = if fails { "refuses" } else { "may end the process for" };
    Err(failed(pid, format!("its seccomp filter {what} {name}, which the agent needs"), INSTEAD))
}

/// Whether a thread's system calls become signals, those of the agent too.
fn dispatches(pid: i32) -> Result<bool> {
    let mut threads = Threads::stop(pid).map_err(|e| io_failed(pid, "its threads do not stop", &e))?;
    Ok(threads.all().iter().any(|t| ptrace::dispatches_calls(t.tid())))
}

/// The different filters of all threads.
fn filters(pid: i32) -> Result<Vec<Vec<u64>>> {
    let unread = |why: String| {
        let todo = "run as root, or start the command under trapline";
        failed(pid, format!("its seccomp filter may end the process for the agent's calls, and {why}"), todo)
    };
    let mut threads = Threads::stop(pid).map_err(|e| io_failed(pid, "its threads do not stop", &e))?;
    let mut all: Vec<Vec<u64>> = Vec::new();
    for tid in
        threads.all().iter().map(|t| t.tid()).filter(|t| proc::status_field(*t, "Seccomp").as_deref() == Some("2"))
    {
        for number in 0..MOST {
            match sys::caps::with(sys::caps::TO_DETACH, || ptrace::filter(tid, number)) {
                Ok(Some(filter)) if all.contains(&filter) => {}
                Ok(Some(_)) if all.len() >= MOST => return Err(unread("it has too many".into())),
                Ok(Some(filter)) => all.push(filter),
                Ok(None) => break,
                Err(e) if e.kind() == std::io::ErrorKind::PermissionDenied => {
                    return Err(unread("only root may read it".into()));
                }
                Err(e) => return Err(unread(format!("it cannot be read: {e}"))),
            }
        }
    }
    if threads.deaf().is_empty() { Ok(all) } else { Err(unread("a thread waits in the kernel: try again".into())) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LD: u64 = 0x20;
    const JEQ: u64 = 0x15;
    const JSET: u64 = 0x45;
    const RET: u64 = 0x06;
    const ALLOWED: u64 = 0x7fff_0000;

    fn insn(code: u64, yes: u64, no: u64, k: u64) -> u64 {
        k << 32 | no << 24 | yes << 16 | code
    }

    /// One call gets an answer, all others are allowed.
    fn one(number: u64, action: u64) -> Vec<u64> {
        vec![insn(LD, 0, 0, 0), insn(JEQ, 0, 1, number), insn(RET, 0, 0, action), insn(RET, 0, 0, ALLOWED)]
    }

    #[test]
    fn a_filter_is_asked_for_each_call() {
        const KILL: u64 = 0x8000_0000;
        const FAIL: u64 = 0x0005_0001;
        assert_eq!(refused(&one(169, KILL)), None);
        for number in [9, 10, 15, 24, 41, 47, 257, 319, 324] {
            assert_eq!(refused(&one(number, KILL)), Some((number as u32, false)));
        }
        assert_eq!((refused(&one(319, FAIL)), refused(&one(324, FAIL))), (None, None));
        assert_eq!(refused(&one(41, FAIL)), Some((41, true)));
        // SECCOMP_RET_TRAP, SECCOMP_RET_USER_NOTIF, SECCOMP_RET_TRACE
        for action in [0x0003_0000, 0x7fc0_0000, 0x7ff0_0000] {
            assert_eq!(refused(&one(41, action)), Some((41, false)));
        }
        // No end, and a jump out of it.
        assert!(refused(&[insn(LD, 0, 0, 0)]).is_some() && refused(&[insn(5, 0, 0, 99)]).is_some());
    }

    #[test]
    fn arguments_that_are_known_are_looked_at() {
        // mmap and mprotect with PROT_EXEC, and sockets of another family than AF_UNIX.
        let argument = |call: u64, number: u64, test: u64, action: u64| {
            vec![
                insn(LD, 0, 0, 0),
                insn(JEQ, 0, 3, call),
                insn(LD, 0, 0, 16 + 8 * number),
                test,
                insn(RET, 0, 0, action),
                insn(RET, 0, 0, ALLOWED),
            ]
        };
        let has_exec = insn(JSET, 0, 1, 4);
        assert_eq!(refused(&argument(9, 2, has_exec, 0)), Some((9, false)));
        assert_eq!(refused(&argument(10, 2, has_exec, 0)), Some((10, false)));
        assert_eq!(refused(&argument(10, 2, has_exec, 0x0005_0001)), None);
        assert_eq!(refused(&argument(41, 0, insn(JEQ, 0, 1, 40), 0)), None);
        assert_eq!(refused(&argument(41, 0, insn(JEQ, 0, 1, 1), 0)), Some((41, false)));
        // The first argument of close is any.
        assert_eq!(refused(&argument(3, 0, insn(JEQ, 0, 1, 9), 0)), Some((3, false)));
    }
}
