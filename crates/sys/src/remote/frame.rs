//! A signal frame with the registers of a stopped thread: rt_sigreturn(2) restores them, so that the thread goes on by itself if trapline
//! dies during a call.
//!
//! `struct ucontext` (arch/x86/include/uapi/asm/ucontext.h, sigcontext.h), then the extended state as the kernel puts it behind
//! (`struct _fpx_sw_bytes`).

use crate::ptrace::Registers;

/// Bytes of a `struct ucontext`.
const CONTEXT: usize = 304;
/// The extended state begins at such an offset, as XSAVE wants it.
const STATE: usize = 320;
const MAGIC1: u32 = 0x4650_5853;
const MAGIC2: u32 = 0x4650_5845;
/// Where software may note something in the format of XSAVE; the kernel's register set has the mask of states there.
const SOFTWARE: usize = 464;
/// UC_FP_XSTATE | UC_SIGCONTEXT_SS | UC_STRICT_RESTORE_SS.
const FLAGS: u64 = 7;
/// Flags that sigaltstack(2) refuses: the thread's alternate stack stays as it is.
const NO_STACK: u64 = 4;

/// Where the header of XSAVE's format has the mask of the states that are not as at first, and where the format's other states begin.
const IN_USE: usize = 512;
const OTHERS: usize = 576;

/// An extended state without what is behind the last state in use: a frame ends where its `xstate_size` says (`check_xstate_in_sigframe`,
/// arch/x86/kernel/fpu/signal.c of Linux 6.18).
fn in_use(state: &[u8]) -> &[u8] {
    let Some(mask) = state.get(IN_USE..OTHERS).and_then(|s| s.first_chunk()).map(|m| u64::from_le_bytes(*m)) else {
        return state;
    };
    let end = |i: u32| {
        // Leaf 0xd says of each state its size and its place ("Processor Extended State Enumeration").
        let leaf = std::arch::x86_64::__cpuid_count(0xd, i);
        (leaf.ebx + leaf.eax) as usize
    };
    let last = (2..63).filter(|i| mask & 1 << i != 0).map(end).fold(OTHERS, usize::max);
    state.get(..last).unwrap_or(state)
}

/// The bytes of the frame at `at`, a multiple of 64. rt_sigreturn is to be called with the stack pointer there.
pub fn build(at: u64, registers: &Registers, state: &[u8], mask: u64) -> Vec<u8> {
    let (r, state) = (resumed(registers), in_use(state));
    let mut words = [0u64; CONTEXT / 8];
    words[0] = FLAGS;
    words[3] = NO_STACK;
    let by_place = [
        r.r8, r.r9, r.r10, r.r11, r.r12, r.r13, r.r14, r.r15, r.rdi, r.rsi, r.rbp, r.rbx, r.rdx, r.rax, r.rcx, r.rsp,
        r.rip, r.eflags,
    ];
    words[5..23].copy_from_slice(&by_place);
    words[23] = r.cs & 0xffff | (r.ss & 0xffff) << 48;
    words[28] = if state.len() >= SOFTWARE + 24 { at + STATE as u64 } else { 0 };
    words[37] = mask;
    let mut bytes: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
    if words[28] != 0 {
        bytes.resize(STATE, 0);
        bytes.extend_from_slice(state);
        let size = state.len() as u32;
        let put = |bytes: &mut Vec<u8>, at: usize, n: u32| {
            bytes[STATE + at..STATE + at + 4].copy_from_slice(&n.to_le_bytes());
        };
        let states: [u8; 8] = std::array::from_fn(|i| state[SOFTWARE + i]);
        put(&mut bytes, SOFTWARE, MAGIC1);
        put(&mut bytes, SOFTWARE + 4, size + 4);
        bytes[STATE + SOFTWARE + 8..STATE + SOFTWARE + 16].copy_from_slice(&states);
        put(&mut bytes, SOFTWARE + 16, size);
        bytes.extend(MAGIC2.to_le_bytes());
    }
    bytes
}

/// The registers with which the thread repeats the system call that it was stopped in. What the kernel alone can continue
/// (`-ERESTART_RESTARTBLOCK`) ends with EINTR, as after any handler.
fn resumed(registers: &Registers) -> libc::user_regs_struct {
    const RESTART: std::ops::RangeInclusive<i64> = -514..=-512;
    const RESTART_BLOCK: i64 = -516;
    let mut r = registers.0;
    if r.orig_rax as i64 >= 0 {
        match r.rax as i64 {
            n if RESTART.contains(&n) => {
                r.rax = r.orig_rax;
                r.rip = r.rip.wrapping_sub(2);
            }
            RESTART_BLOCK => r.rax = -i64::from(libc::EINTR) as u64,
            _ => {}
        }
    }
    r
}
