//! A seccomp filter that lets unselected calls run without a stop.
//!
//! The filter checks only architecture and number, so that the kernel can cache its verdict for untraced calls in a bitmap
//! (Linux 5.11, `kernel/seccomp.c`, seccomp_cache_prepare) and their cost is next to nothing.
//! **A filter outlives its tracer, and RET_TRACE without a tracer fails the call with ENOSYS.**

use crate::check::check;
use crate::ptrace::ARCH_X86_64;
use std::io;

const LD_W_ABS: u16 = 0x20;
const JEQ: u16 = 0x15;
const JGE: u16 = 0x35;
const JSET: u16 = 0x45;
const RET: u16 = 0x06;
const ALLOW: u32 = 0x7fff_0000;
const TRACE: u32 = 0x7ff0_0000;
/// What the filter has the kernel tell with each call that it traces, so that such a call differs from one that a filter of the program's
/// own would have traced. Where both would, the kernel tells the program's (`seccomp_run_filters`, `kernel/seccomp.c`).
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

/// A program that traces the numbers in `traced`, all numbers of other architectures and of x32, those at or beyond
/// `known`, and clone with CLONE_UNTRACED; everything else runs untraced.
pub fn program(traced: &[bool]) -> Vec<Insn> {
    // The offsets are those of `struct seccomp_data`. Only the verdict of clone depends on an argument, and is not cached.
    let mut p = vec![
        insn(LD_W_ABS, 4, 0, 0),
        insn(JEQ, ARCH_X86_64, 1, 0),
        insn(RET, TRACE_MARKED, 0, 0),
        insn(LD_W_ABS, 0, 0, 0),
    ];
    if !traced.get(libc::SYS_clone as usize).copied().unwrap_or(true) {
        p.extend([
            insn(JEQ, libc::SYS_clone as u32, 0, 4),
            insn(LD_W_ABS, 16, 0, 0),
            insn(JSET, libc::CLONE_UNTRACED as u32, 0, 1),
            insn(RET, TRACE_MARKED, 0, 0),
            insn(RET, ALLOW, 0, 0),
        ]);
    }
    // Ranges of equal verdict, from the top: `if nr >= start return verdict`.
    let mut starts = vec![(0u32, traced.first().copied().unwrap_or(true))];
    for (nr, pair) in traced.windows(2).enumerate() {
        if pair[0] != pair[1] {
            starts.push((nr as u32 + 1, pair[1]));
        }
    }
    starts.push((traced.len() as u32, true));
    debug_assert!(traced.len() < X32_BIT as usize);
    for (start, trace) in starts.into_iter().rev() {
        p.push(insn(JGE, start, 0, 1));
        p.push(insn(RET, if trace { TRACE_MARKED } else { ALLOW }, 0, 0));
    }
    p.push(insn(RET, TRACE_MARKED, 0, 0));
    p
}

/// Runs a program over a call with a first argument, for tests: whether it is traced.
pub fn is_traced(program: &[Insn], arch: u32, nr: u32, first: u32) -> bool {
    let (mut a, mut pc) = (0u32, 0usize);
    loop {
        let i = program[pc];
        pc += 1;
        match i.code {
            LD_W_ABS => a = [nr, arch, 0, 0, first][i.k as usize / 4],
            JEQ => pc += usize::from(if a == i.k { i.jt } else { i.jf }),
            JGE => pc += usize::from(if a >= i.k { i.jt } else { i.jf }),
            JSET => pc += usize::from(if a & i.k != 0 { i.jt } else { i.jf }),
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

    #[test]
    fn selected_numbers_other_architectures_and_unknown_numbers_are_traced() {
        let mut traced = vec![false; 470];
        for nr in [0, 1, 59, 257, 469] {
            traced[nr] = true;
        }
        let p = program(&traced);
        let is_traced = |arch, nr| is_traced(&p, arch, nr, 0);
        for nr in 0..600u32 {
            let want = traced.get(nr as usize).copied().unwrap_or(true);
            assert_eq!(is_traced(ARCH_X86_64, nr), want, "{nr}");
        }
        assert!(is_traced(crate::ptrace::ARCH_I386, 20));
        assert!(is_traced(ARCH_X86_64, X32_BIT | 39));
        assert!(is_traced(ARCH_X86_64, u32::MAX));
        assert!(p.len() < 4096);
    }

    #[test]
    fn clone_is_traced_with_clone_untraced() {
        const SIGCHLD: u32 = 17;
        const UNTRACED: u32 = 0x80_0000;
        let clone = |traced: &[bool], flags| is_traced(&program(traced), ARCH_X86_64, 56, flags);
        let none = [false; 470];
        let all = [true; 470];
        assert!(!clone(&none, SIGCHLD) && clone(&none, SIGCHLD | UNTRACED));
        assert!(clone(&all, SIGCHLD) && clone(&all, SIGCHLD | UNTRACED));
    }
}
