//! A seccomp filter that lets unselected calls run without a stop.
//!
//! The filter checks only architecture and number, so that the kernel can cache its verdict for untraced calls in a bitmap
//! (Linux 5.11, `kernel/seccomp.c`, seccomp_cache_prepare) and their cost is next to nothing.
//! **A filter outlives its tracer, and RET_TRACE without a tracer fails the call with ENOSYS.**

use crate::check::check;
use crate::ptrace::ARCH_X86_64;
use std::io;

const LD_W_ABS: u16 = 0x20;
const JA: u16 = 0x05;
const JEQ: u16 = 0x15;
const JGE: u16 = 0x35;
const JSET: u16 = 0x45;
const RET: u16 = 0x06;
const ALLOW: u32 = 0x7fff_0000;
const TRACE: u32 = 0x7ff0_0000;
/// What the filter has the kernel report with each call that it traces, so that such a call differs from one that a filter of the program's
/// own would have traced. Where both would, the kernel reports the program's (`seccomp_run_filters`, `kernel/seccomp.c`).
pub const MARK: u16 = 0x7472;
const TRACE_MARKED: u32 = TRACE | MARK as u32;
const X32_BIT: u32 = 0x4000_0000;

/// One instruction of a classic BPF program (`struct sock_filter`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Insn {
    code: u16,
    jt: u8,
    jf: u8,
    k: u32,
}

fn insn(code: u16, k: u32, jt: u8, jf: u8) -> Insn {
    Insn { code, jt, jf, k }
}

/// What becomes of calls with a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// They run.
    Allow,
    /// They stop.
    Trace,
    /// They stop, but for those that a process makes in the code that records them ([`crate::intercept::CODE`]).
    Elsewhere,
}

/// A program that has these verdicts on calls, by number; `also`: the upper half of the addresses of other code whose calls run where those of the code that
/// records them do. All numbers of other architectures and of x32, those beyond, and clone with
/// CLONE_UNTRACED are traced.
pub fn program(verdicts: &[Verdict], also: Option<u32>) -> Vec<Insn> {
    // The offsets are those of `struct seccomp_data`. Only the verdict of clone depends on an argument, and is not cached.
    let mut p = vec![
        insn(LD_W_ABS, 4, 0, 0),
        insn(JEQ, ARCH_X86_64, 1, 0),
        insn(RET, TRACE_MARKED, 0, 0),
        insn(LD_W_ABS, 0, 0, 0),
    ];
    if verdicts.get(libc::SYS_clone as usize) == Some(&Verdict::Allow) {
        p.extend([
            insn(JEQ, libc::SYS_clone as u32, 0, 4),
            insn(LD_W_ABS, 16, 0, 0),
            insn(JSET, libc::CLONE_UNTRACED as u32, 0, 1),
            insn(RET, TRACE_MARKED, 0, 0),
            insn(RET, ALLOW, 0, 0),
        ]);
    }
    debug_assert!(verdicts.len() < X32_BIT as usize);
    let mut ranges: Vec<(u32, Verdict)> = vec![];
    for (nr, verdict) in verdicts.iter().copied().chain([Verdict::Trace]).enumerate() {
        if ranges.last().is_none_or(|(_, last)| *last != verdict) {
            ranges.push((nr as u32, verdict));
        }
    }
    search(&ranges, also, &mut p);
    p
}

/// Finds the range of a number by halves: `if nr >= start of the upper half goto it`.
fn search(ranges: &[(u32, Verdict)], also: Option<u32>, p: &mut Vec<Insn>) {
    match ranges {
        [] => {}
        [(_, Verdict::Allow)] => p.push(insn(RET, ALLOW, 0, 0)),
        [(_, Verdict::Trace)] => p.push(insn(RET, TRACE_MARKED, 0, 0)),
        [(_, Verdict::Elsewhere)] => {
            p.push(insn(LD_W_ABS, 12, 0, 0));
            for upper in [(crate::intercept::CODE >> 32) as u32].into_iter().chain(also) {
                p.extend([insn(JEQ, upper, 0, 1), insn(RET, ALLOW, 0, 0)]);
            }
            p.push(insn(RET, TRACE_MARKED, 0, 0));
        }
        _ => {
            let (lower, upper) = ranges.split_at(ranges.len() / 2);
            p.push(insn(JGE, upper[0].0, 0, 1));
            // The distance to the upper half is known when the lower one is there.
            let jump = p.len();
            p.push(insn(JA, 0, 0, 0));
            search(lower, also, p);
            p[jump].k = (p.len() - jump - 1) as u32;
            search(upper, also, p);
        }
    }
}

/// Runs a program over a call with a first argument that is made at an address, for tests: whether it is traced.
pub fn is_traced(program: &[Insn], arch: u32, nr: u32, first: u32, pc: u64) -> bool {
    let (mut a, mut at) = (0u32, 0usize);
    loop {
        let i = program[at];
        at += 1;
        match i.code {
            LD_W_ABS => a = [nr, arch, pc as u32, (pc >> 32) as u32, first][i.k as usize / 4],
            JA => at += i.k as usize,
            JEQ => at += usize::from(if a == i.k { i.jt } else { i.jf }),
            JGE => at += usize::from(if a >= i.k { i.jt } else { i.jf }),
            JSET => at += usize::from(if a & i.k != 0 { i.jt } else { i.jf }),
            _ => return i.k == TRACE_MARKED,
        }
    }
}

#[repr(C)]
struct Fprog {
    len: u16,
    filter: *const Insn,
}

/// Puts the filter on the calling process. Without CAP_SYS_ADMIN this needs, and sets, no_new_privs.
pub fn install(program: &[Insn]) -> io::Result<()> {
    const SET_MODE_FILTER: libc::c_ulong = 1;
    let prog = Fprog { len: program.len() as u16, filter: program.as_ptr() };
    // SAFETY: the program outlives the call, which copies it.
    let set =
        || check(unsafe { libc::syscall(libc::SYS_seccomp, SET_MODE_FILTER, 0 as libc::c_ulong, &raw const prog) });
    if set().is_ok() {
        return Ok(());
    }
    // SAFETY: plain integers.
    check(unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) }.into())?;
    set().map(drop)
}

/// Whether this kernel supports seccomp filters with the TRACE action.
pub fn available() -> bool {
    const GET_ACTION_AVAIL: libc::c_ulong = 2;
    let action: u32 = TRACE;
    // SAFETY: the action is valid for the call.
    check(unsafe { libc::syscall(libc::SYS_seccomp, GET_ACTION_AVAIL, 0 as libc::c_ulong, &raw const action) }).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PC: u64 = 0x7fff_f7d0_1234;

    fn verdicts(of: impl Fn(usize) -> Verdict) -> Vec<Verdict> {
        (0..470).map(of).collect()
    }

    #[test]
    fn selected_numbers_other_architectures_and_unknown_numbers_are_traced() {
        let selected = [0, 1, 59, 257, 469];
        let p = program(&verdicts(|nr| if selected.contains(&nr) { Verdict::Trace } else { Verdict::Allow }), None);
        let is_traced = |arch, nr| is_traced(&p, arch, nr, 0, PC);
        for nr in 0..600u32 {
            let want = nr >= 470 || selected.contains(&(nr as usize));
            assert_eq!(is_traced(ARCH_X86_64, nr), want, "{nr}");
        }
        assert!(is_traced(crate::ptrace::ARCH_I386, 20));
        assert!(is_traced(ARCH_X86_64, X32_BIT | 39));
        assert!(is_traced(ARCH_X86_64, u32::MAX));
        assert!(p.len() < 4096);
    }

    #[test]
    fn calls_of_the_code_that_records_them_run() {
        let p = program(&verdicts(|nr| if nr % 2 == 0 { Verdict::Elsewhere } else { Verdict::Trace }), None);
        for nr in 0..470 {
            assert!(is_traced(&p, ARCH_X86_64, nr, 0, PC), "{nr}");
            assert_eq!(is_traced(&p, ARCH_X86_64, nr, 0, crate::intercept::CODE + 77), nr % 2 == 1, "{nr}");
        }
        assert!(is_traced(&p, ARCH_X86_64, 470, 0, crate::intercept::CODE));
        assert!(p.len() < 4096);
        let other = (PC >> 32) as u32;
        let p = program(&verdicts(|nr| if nr % 2 == 0 { Verdict::Elsewhere } else { Verdict::Trace }), Some(other));
        for pc in [PC, crate::intercept::CODE] {
            assert_eq!([0, 1].map(|nr| is_traced(&p, ARCH_X86_64, nr, 0, pc)), [false, true]);
        }
        assert!(is_traced(&p, ARCH_X86_64, 0, 0, PC + (1 << 32)));
    }

    #[test]
    fn clone_is_traced_with_clone_untraced() {
        const SIGCHLD: u32 = 17;
        const UNTRACED: u32 = 0x80_0000;
        let clone = |verdict, flags| is_traced(&program(&verdicts(|_| verdict), None), ARCH_X86_64, 56, flags, PC);
        assert!(!clone(Verdict::Allow, SIGCHLD) && clone(Verdict::Allow, SIGCHLD | UNTRACED));
        assert!(clone(Verdict::Trace, SIGCHLD) && clone(Verdict::Trace, SIGCHLD | UNTRACED));
    }
}
