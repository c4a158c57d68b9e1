//! Seccomp filters: which calls trapline's traces, and which calls add one of the program's own.

use super::intercept;
use super::renames::CHANGE_ROOT;
use super::thread::Pending;
use events::generated::C_RAW;
use sys::intercept::Row;
use sys::seccomp::Verdict;

/// prctl and seccomp.
const FILTER_CALLS: [u64; 2] = [157, 317];
/// Its flags are in memory, of which a filter sees nothing.
const CLONE3: u64 = 435;
/// Their numbers in 32-bit programs (arch/x86/entry/syscalls/syscall_32.tbl).
const FILTER_CALLS_32: [u64; 2] = [172, 354];

/// Whether a call that has succeeded has added a filter to its thread, and then whether the other threads of its process have it too.
pub fn added(p: &Pending) -> Option<bool> {
    const PR_SET_SECCOMP: u64 = 22;
    const SECCOMP_SET_MODE_FILTER: u64 = 1; // 0: SECCOMP_SET_MODE_STRICT
    const SECCOMP_FILTER_FLAG_TSYNC: u64 = 1;
    let raw = p.schema.id == C_RAW.id;
    let (calls, args) = if raw { (FILTER_CALLS_32, &p.args[2..]) } else { (FILTER_CALLS, &p.args[..]) };
    let [prctl, seccomp] = calls;
    match (p.nr, args) {
        (nr, &[PR_SET_SECCOMP, ..]) if nr == prctl => Some(false),
        (nr, &[operation, flags, ..]) if nr == seccomp && operation <= SECCOMP_SET_MODE_FILTER => {
            Some(flags & SECCOMP_FILTER_FLAG_TSYNC != 0)
        }
        _ => None,
    }
}

/// Whether a call that has succeeded turns calls of its thread into signals, but for those that are made in a range of addresses.
pub fn dispatches(p: &Pending) -> bool {
    const PR_SET_SYSCALL_USER_DISPATCH: u64 = 59;
    const PR_SYS_DISPATCH_OFF: u64 = 0;
    // A 32-bit program has no calls that it records itself.
    let native = p.schema.id != C_RAW.id && p.nr == FILTER_CALLS[0];
    native && p.args[0] == PR_SET_SYSCALL_USER_DISPATCH && p.args[1] != PR_SYS_DISPATCH_OFF
}

/// What trapline's filter says of each number: calls that are wanted stop, but where a process records them itself (`rows`); so do the
/// restart of any of them, those that add a filter, and clone3, which may make a thread that is not traced; and where rows say what descriptors are,
/// calls after which names are other ones.
pub fn verdicts(calls: &[bool], rows: &[(usize, Row)]) -> Vec<Verdict> {
    const RESTART_SYSCALL: usize = 219;
    let mut verdicts: Vec<Verdict> =
        calls.iter().map(|wanted| if *wanted { Verdict::Trace } else { Verdict::Allow }).collect();
    for (nr, _) in rows {
        verdicts.get_mut(*nr).into_iter().for_each(|v| *v = Verdict::Elsewhere);
    }
    for nr in intercept::own_calls(rows) {
        verdicts.get_mut(nr).into_iter().filter(|v| **v == Verdict::Trace).for_each(|v| *v = Verdict::Elsewhere);
    }
    let names = rows.iter().any(|(_, row)| row.has_names());
    let root = CHANGE_ROOT.into_iter().filter(|_| names);
    for nr in FILTER_CALLS.into_iter().chain([CLONE3]).chain(root) {
        verdicts.get_mut(nr as usize).into_iter().for_each(|v| *v = Verdict::Trace);
    }
    if let Some(v) = verdicts.get_mut(RESTART_SYSCALL)
        && calls.iter().any(|wanted| *wanted)
    {
        // A wanted call that is restarted through restart_syscall ends there.
        *v = if rows.is_empty() { Verdict::Trace } else { Verdict::Elsewhere };
    }
    verdicts
}
