//! Names of constants, the same for every view.

use events::generated::flags;

/// Name of a signal, `SIGRT_3`-like for real-time ones; none for numbers without one.
pub fn signal(n: u64) -> Option<&'static str> {
    flags::T_SIGNAL.name_of(n)
}

/// Name of a `si_code` of signal `signo` (`include/uapi/asm-generic/siginfo.h`).
pub fn si_code(signo: u64, code: i64) -> Option<&'static str> {
    let own = match signo {
        4 => Some(&flags::T_SI_CODE_SIGILL),
        5 => Some(&flags::T_SI_CODE_SIGTRAP),
        7 => Some(&flags::T_SI_CODE_SIGBUS),
        8 => Some(&flags::T_SI_CODE_SIGFPE),
        11 => Some(&flags::T_SI_CODE_SIGSEGV),
        17 => Some(&flags::T_SI_CODE_SIGCHLD),
        29 => Some(&flags::T_SI_CODE_SIGPOLL),
        31 => Some(&flags::T_SI_CODE_SIGSYS),
        _ => None,
    };
    let find = |t: &'static events::Table| {
        t.name_of(code as u64)
            .or_else(|| t.name_of(u64::from(code as u32)))
            .or_else(|| t.name_of(code as i32 as i64 as u64))
    };
    if code > 0
        && code < 0x80
        && let Some(name) = own.and_then(find)
    {
        return Some(name);
    }
    find(&flags::T_SI_CODE)
}

/// Name of a value of an enumeration of `size` bytes, whether the table writes negative values sign-extended or not.
pub fn enumerated(t: &'static events::Table, v: u64, size: u8) -> Option<&'static str> {
    let shift = 64 - 8 * u32::from(size);
    t.name_of(v << shift >> shift).or_else(|| t.name_of(((v << shift) as i64 >> shift) as u64))
}
