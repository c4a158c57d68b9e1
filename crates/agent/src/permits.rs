//! What the program has forbidden itself, and with that the agent: system calls, by filters of seccomp(2), and the time stamp counter.
//!
//! A call that a filter does not know may end the process. So every filter is run, before it is installed, for the calls that the agent
//! makes. Where one would be refused, the agent makes it no more: calls of functions are counted as lost then. A filter that looks at
//! arguments counts as one that refuses, because the agent's are not those that its author had in mind.

use crate::kernel;
use crate::memory::load;
use crate::thread::Local;
use crate::{chunks, shadow};
use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::Relaxed;

/// Bits of [`FORBIDDEN`].
const RECORDS: u32 = 1;
const TALK: u32 = 2;
const READS: u32 = 4;

/// What is forbidden, for all threads: a new one has what its creator had, and a filter may be for all.
static FORBIDDEN: AtomicU32 = AtomicU32::new(0);

/// Calls of slow code: rt_sigprocmask, futex, clock_gettime, gettid, getpid, mmap, getrlimit, tgkill, nanosleep.
const SLOW_CALLS: [u32; 9] = [14, 202, 228, 186, 39, 9, 97, 234, 35];
/// Calls of the conversation with the collector, in new processes and programs: openat, read, close, socket, setsockopt, connect, sendto,
/// recvmsg, munmap, lseek, getppid, madvise, mprotect, pread64, pwrite64, membarrier, rt_sigaction.
const TALK_CALLS: [u32; 17] = [257, 0, 3, 41, 54, 42, 44, 47, 11, 8, 110, 28, 10, 17, 18, 324, 13];

/// process_vm_readv, for arguments that lead to memory.
const READ_CALLS: [u32; 1] = [310];

/// Whether it may read memory that may not be there.
#[inline(always)]
pub fn reads() -> bool {
    FORBIDDEN.load(Relaxed) & (RECORDS | READS) == 0
}

/// Whether the agent may make the calls that records need.
#[inline(always)]
pub fn records() -> bool {
    FORBIDDEN.load(Relaxed) & RECORDS == 0
}

/// Whether it may talk with the collector, here and in programs that are executed.
#[inline(always)]
pub fn talk() -> bool {
    FORBIDDEN.load(Relaxed) & (RECORDS | TALK) == 0
}

/// Blocks all signals if that is allowed, and returns the mask for [`unblock`].
pub fn block() -> Option<u64> {
    records().then(|| kernel::set_mask(kernel::ALL))
}

/// Sets the mask that [`block`] has returned.
pub fn unblock(mask: Option<u64>) {
    if let Some(mask) = mask {
        kernel::set_mask(mask);
    }
}

/// The thread will be allowed next to nothing, or no time stamps (SECCOMP_MODE_STRICT, PR_TSC_SIGSEGV): its calls are no longer
/// observed, and it returns to the program itself, not to stubs.
pub fn lose_all(local: &Local) {
    if let Some(mask) = block() {
        chunks::give_up(local);
        shadow::abandon(local);
        kernel::set_mask(mask);
    }
    FORBIDDEN.fetch_or(RECORDS | TALK, Relaxed);
}

/// The program installs a filter: struct sock_fprog.
pub fn add_filter(local: &Local, program: u64) {
    if !records() {
        return;
    }
    let Some(filter) = Filter::at(program) else { return };
    let refuses = |calls: &[u32]| !calls.iter().all(|call| filter.allows(*call));
    if refuses(&READ_CALLS) {
        FORBIDDEN.fetch_or(READS, Relaxed);
    }
    if refuses(&SLOW_CALLS) {
        lose_all(local);
    } else if refuses(&TALK_CALLS) {
        FORBIDDEN.fetch_or(TALK, Relaxed);
    }
}

/// A program of classic BPF, in the program's memory.
struct Filter {
    code: u64,
    len: usize,
}

/// struct seccomp_data: the call's number, the architecture; then where it is made, and arguments.
const NUMBER: u32 = 0;
const ARCHITECTURE: u32 = 4;
const X86_64: u32 = 0xc000_003e;
const ALLOW: u32 = 0x7fff;
const LOG: u32 = 0x7ffc;
/// The kernel's limit.
const INSTRUCTIONS: usize = 4096;
const PAGE: u64 = 4096;

impl Filter {
    fn at(program: u64) -> Option<Filter> {
        if !kernel::is_readable(program) || !kernel::is_readable(program.wrapping_add(8)) {
            return None;
        }
        // SAFETY: both words are readable, and the program's.
        let (len, code) = unsafe { (load(program) as u16 as usize, load(program + 8)) };
        let end = code.checked_add(8 * len as u64)?;
        let readable = |at: u64| kernel::is_readable(at);
        let pages = (code & !(PAGE - 1)..end).step_by(PAGE as usize).all(|page| readable(page.max(code)));
        (0 < len && len <= INSTRUCTIONS && pages && readable(end - 8)).then_some(Filter { code, len })
    }

    /// What it answers for a call, whatever the arguments; None where it looks at those, or cannot be run.
    fn answer(&self, call: u32) -> Option<u32> {
        let (mut a, mut x, mut memory, mut pc) = (0u32, 0u32, [0u32; 16], 0usize);
        // There are no jumps backwards.
        while pc < self.len {
            // SAFETY: `at` has looked at the whole code.
            let instruction = unsafe { load(self.code + 8 * pc as u64) };
            let (code, k) = (instruction as u16, (instruction >> 32) as u32);
            let (yes, no) = ((instruction >> 16) as u8, (instruction >> 24) as u8);
            pc += 1;
            let operand = if code & 8 != 0 { x } else { k };
            match code {
                // ld [k]
                0x20 => match k {
                    NUMBER => a = call,
                    ARCHITECTURE => a = X86_64,
                    _ => return None,
                },
                // ld #k, ldx #k, ld #len, ldx #len, ld M[k], ldx M[k], st M[k], stx M[k]
                0x00 => a = k,
                0x01 => x = k,
                0x80 => a = 64,
                0x81 => x = 64,
                0x60 => a = *memory.get(k as usize)?,
                0x61 => x = *memory.get(k as usize)?,
                0x02 => *memory.get_mut(k as usize)? = a,
                0x03 => *memory.get_mut(k as usize)? = x,
                // add, sub, mul, div, or, and, lsh, rsh, neg, xor
                0x04 | 0x0c => a = a.wrapping_add(operand),
                0x14 | 0x1c => a = a.wrapping_sub(operand),
                0x24 | 0x2c => a = a.wrapping_mul(operand),
                0x34 | 0x3c => a = a.checked_div(operand).unwrap_or(0),
                0x44 | 0x4c => a |= operand,
                0x54 | 0x5c => a &= operand,
                0x64 | 0x6c => a = a.checked_shl(operand).unwrap_or(0),
                0x74 | 0x7c => a = a.checked_shr(operand).unwrap_or(0),
                0x84 => a = a.wrapping_neg(),
                0xa4 | 0xac => a ^= operand,
                // ja, jeq, jgt, jge, jset
                0x05 => pc = pc.checked_add(k as usize)?,
                0x15 | 0x1d => pc += usize::from(if a == operand { yes } else { no }),
                0x25 | 0x2d => pc += usize::from(if a > operand { yes } else { no }),
                0x35 | 0x3d => pc += usize::from(if a >= operand { yes } else { no }),
                0x45 | 0x4d => pc += usize::from(if a & operand != 0 { yes } else { no }),
                // ret #k, ret a, tax, txa
                0x06 => return Some(k),
                0x16 => return Some(a),
                0x07 => x = a,
                0x87 => a = x,
                _ => return None,
            }
        }
        None
    }

    fn allows(&self, call: u32) -> bool {
        self.answer(call).is_some_and(|answer| matches!(answer >> 16, ALLOW | LOG))
    }
}
