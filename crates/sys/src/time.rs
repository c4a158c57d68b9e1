//! Clocks.

fn now(clock: libc::clockid_t) -> u64 {
    let mut ts = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `ts` is a valid timespec for the duration of the call.
    unsafe { libc::clock_gettime(clock, &mut ts) };
    ts.tv_sec as u64 * 1_000_000_000 + ts.tv_nsec as u64
}

/// Nanoseconds of CLOCK_MONOTONIC.
pub fn monotonic() -> u64 {
    now(libc::CLOCK_MONOTONIC)
}

/// Nanoseconds of CLOCK_REALTIME since the epoch.
pub fn realtime() -> u64 {
    now(libc::CLOCK_REALTIME)
}

/// Nanoseconds of CLOCK_BOOTTIME, which goes on while the machine is suspended.
pub fn boot() -> u64 {
    now(libc::CLOCK_BOOTTIME)
}

/// The time stamp counter of the processor, and the monotonic clock at the same moment, ns: the closest of three looks, because a thread
/// may be interrupted between the two.
pub fn stamp() -> (u64, u64) {
    // SAFETY: every x86-64 processor has the instruction; Linux allows it unless a thread has asked for SIGSEGV instead (PR_SET_TSC).
    let tsc = || unsafe { std::arch::x86_64::_rdtsc() };
    let look = || (tsc(), monotonic(), tsc());
    let looks = [look(), look(), look()];
    let (before, now, after) =
        looks.into_iter().min_by_key(|(before, _, after)| after.wrapping_sub(*before)).unwrap_or_default();
    (before + after.saturating_sub(before) / 2, now)
}

/// CPU time of the calling thread, ns.
pub fn of_thread() -> u64 {
    now(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// CPU time of the process, ns.
pub fn of_process() -> u64 {
    now(libc::CLOCK_PROCESS_CPUTIME_ID)
}

/// Seconds that the local time zone adds to UTC at `secs` since the epoch.
pub fn utc_offset(secs: i64) -> i64 {
    // SAFETY: an all-zero tm is a valid value; localtime_r fills it from a valid time_t.
    let tm = unsafe {
        let mut tm: libc::tm = std::mem::zeroed();
        libc::localtime_r(&secs, &mut tm);
        tm
    };
    tm.tm_gmtoff
}
