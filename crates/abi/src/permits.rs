//! Filters of seccomp(2): which calls the agent makes, and what a filter answers for a call.
//!
//! A call that a filter does not know may end the process. So filters are run for the agent's calls before it makes one: by the agent,
//! when the program installs a filter, and by the collector, before it attaches to a process that has one.

/// Calls of slow code: rt_sigprocmask, futex, clock_gettime, gettid, getpid, mmap, getrlimit, tgkill, nanosleep.
pub const SLOW_CALLS: [u32; 9] = [14, 202, 228, 186, 39, 9, 97, 234, 35];
/// Calls of the conversation with the collector, in new processes and programs: openat, read, close, socket, setsockopt, connect, sendto,
/// recvmsg, munmap, lseek, getppid, madvise, mprotect, pread64, pwrite64, membarrier, rt_sigaction.
pub const TALK_CALLS: [u32; 17] = [257, 0, 3, 41, 54, 42, 44, 47, 11, 8, 110, 28, 10, 17, 18, 324, 13];
/// mremap, which maps more of the shared memory.
pub const GROW_CALLS: [u32; 1] = [25];
/// process_vm_readv, for arguments that lead to memory.
pub const READ_CALLS: [u32; 1] = [310];

/// Offsets in struct seccomp_data: the call's number.
pub const NUMBER: u32 = 0;
/// The architecture.
pub const ARCHITECTURE: u32 = 4;
/// The lower half of the first of six arguments; the upper half follows.
pub const ARGUMENTS: u32 = 16;
/// AUDIT_ARCH_X86_64.
pub const X86_64: u32 = 0xc000_003e;
/// The kernel's limit for a filter.
pub const INSTRUCTIONS: usize = 4096;

/// Upper halves of answers: the call is made (SECCOMP_RET_ALLOW, SECCOMP_RET_LOG), or fails (SECCOMP_RET_ERRNO).
pub const ALLOW: u32 = 0x7fff;
/// SECCOMP_RET_LOG.
pub const LOG: u32 = 0x7ffc;
/// SECCOMP_RET_ERRNO.
pub const ERRNO: u32 = 0x0005;

/// Runs a program of classic BPF that has `len` instructions, over the words that `data` has at an offset of struct seccomp_data. None:
/// it looks at a word that is not known, or is no valid program.
#[inline]
pub fn answer(
    len: usize,
    instruction: impl Fn(usize) -> Option<u64>,
    data: impl Fn(u32) -> Option<u32>,
) -> Option<u32> {
    let (mut a, mut x, mut memory, mut pc) = (0u32, 0u32, [0u32; 16], 0usize);
    // There are no jumps backwards.
    while pc < len {
        let instruction = instruction(pc)?;
        let (code, k) = (instruction as u16, (instruction >> 32) as u32);
        let (yes, no) = ((instruction >> 16) as u8, (instruction >> 24) as u8);
        pc += 1;
        let operand = if code & 8 != 0 { x } else { k };
        match code {
            // ld [k]
            0x20 => a = data(k)?,
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
