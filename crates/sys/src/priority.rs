//! The share of the processors that the calling thread gets.

use crate::check;
use std::io;

/// The highest priority of a thread that shares its processor with others (setpriority(2)): it gets most of it, and never all.
const HIGHEST: i32 = -20;
/// `SCHED_RESET_ON_FORK` (`include/uapi/linux/sched.h`): what the thread starts has the usual priority.
const RESET_ON_FORK: i32 = 0x4000_0000;

/// Gives the calling thread the highest priority of the usual scheduling class. What it starts does not have it.
///
/// # Errors
/// `EACCES`, `EPERM`: neither CAP_SYS_NICE nor RLIMIT_NICE allows it.
pub fn raise() -> io::Result<()> {
    let none = libc::sched_param { sched_priority: 0 };
    // SAFETY: the parameters are valid for the call; 0 is the calling thread.
    unsafe {
        check(libc::sched_setscheduler(0, libc::SCHED_OTHER | RESET_ON_FORK, &none).into())?;
        check(libc::setpriority(libc::PRIO_PROCESS, 0, HIGHEST).into()).map(drop)
    }
}

/// Whether [`raise`] would work: CAP_SYS_NICE, or a limit that allows it.
pub fn may_raise() -> bool {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the limit is valid for the call.
    let known = unsafe { libc::getrlimit(libc::RLIMIT_NICE, &mut limit) } == 0;
    // getrlimit(2): a limit of n allows a nice value of 20 - n.
    let allowed = known && limit.rlim_cur >= (20 - HIGHEST) as u64;
    allowed || crate::caps::effective().is_ok_and(|held| held & crate::caps::SYS_NICE != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Field 19 of stat(5): the nice value.
    fn nice() -> i32 {
        let text = std::fs::read_to_string("/proc/thread-self/stat").unwrap();
        let behind_the_name = text.rsplit_once(") ").unwrap().1;
        behind_the_name.split(' ').nth(16).unwrap().parse().unwrap()
    }

    #[test]
    fn a_raised_priority_is_not_inherited() {
        std::thread::spawn(|| {
            let before = nice();
            match raise() {
                Ok(()) => assert_eq!((nice(), std::thread::spawn(nice).join().unwrap()), (HIGHEST, 0)),
                Err(e) => assert!(matches!(e.raw_os_error(), Some(1 | 13)) && nice() == before, "{e}"),
            }
        })
        .join()
        .unwrap();
    }
}
