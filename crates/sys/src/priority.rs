//! The scheduling priority of the calling thread.

use crate::check::check;
use std::io;

/// The highest priority of a thread that shares its processor with others (setpriority(2)): it gets most of it, and never all.
const HIGHEST: i32 = -20;
/// `SCHED_RESET_ON_FORK` (`include/uapi/linux/sched.h`): what the thread starts has the usual priority.
const RESET_ON_FORK: i32 = 0x4000_0000;

/// Which of the threads that have a real-time priority goes first on a processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Urgency {
    /// The drain thread, which empties the rings that others fill.
    Reader = 2,
    /// The writer thread, which stores what the drain thread delivers.
    Writer = 1,
}

/// Gives the calling thread a real-time priority (SCHED_RR), or, where that is refused, the highest priority of the usual scheduling
/// class. What it starts does not have it. The kernel leaves the other threads a share of each second
/// (`/proc/sys/kernel/sched_rt_runtime_us`).
///
/// A nice value alone gives a thread its share of the processor, but not soon: with 64 busy threads, one of nice -20 waits for up
/// to 65 ms after it has become runnable (Linux 6.18).
///
/// # Errors
/// `EACCES`, `EPERM`: neither CAP_SYS_NICE nor RLIMIT_NICE allows it.
pub fn raise(urgency: Urgency) -> io::Result<()> {
    let real_time = libc::sched_param { sched_priority: urgency as i32 };
    let none = libc::sched_param { sched_priority: 0 };
    // SAFETY: the parameters are valid for the calls; 0 is the calling thread.
    unsafe {
        if libc::sched_setscheduler(0, libc::SCHED_RR | RESET_ON_FORK, &real_time) == 0 {
            return Ok(());
        }
        check(libc::sched_setscheduler(0, libc::SCHED_OTHER | RESET_ON_FORK, &none).into())?;
        check(libc::setpriority(libc::PRIO_PROCESS, 0, HIGHEST).into()).map(drop)
    }
}

/// Whether [`raise`] would work: CAP_SYS_NICE, or a limit that allows it.
pub fn may_raise() -> bool {
    let limit = |of| {
        let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: the limit is valid for the call.
        if unsafe { libc::getrlimit(of, &mut limit) } == 0 { limit.rlim_cur } else { 0 }
    };
    // getrlimit(2): a limit of n allows a nice value of 20 - n.
    let allowed =
        limit(libc::RLIMIT_NICE) >= (20 - HIGHEST) as u64 || limit(libc::RLIMIT_RTPRIO) >= Urgency::Reader as u64;
    allowed || crate::caps::effective().is_ok_and(|held| held & crate::caps::SYS_NICE != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fields 19 and 40 of stat(5): the nice value and the real-time priority.
    fn priorities() -> (i32, i32) {
        let text = std::fs::read_to_string("/proc/thread-self/stat").unwrap();
        let after_the_name: Vec<&str> = text.rsplit_once(") ").unwrap().1.split(' ').collect();
        let field = |n: usize| after_the_name[n - 3].parse().unwrap();
        (field(19), field(40))
    }

    #[test]
    fn a_raised_priority_is_not_inherited() {
        std::thread::spawn(|| {
            let before = priorities();
            match raise(Urgency::Reader) {
                Ok(()) => {
                    assert!([(HIGHEST, 0), (before.0, 2)].contains(&priorities()), "{:?}", priorities());
                    assert_eq!(std::thread::spawn(priorities).join().unwrap(), (0, 0));
                }
                Err(e) => assert!(matches!(e.raw_os_error(), Some(1 | 13)) && priorities() == before, "{e}"),
            }
        })
        .join()
        .unwrap();
    }
}
