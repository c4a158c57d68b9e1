//! The registers of the programs, and those of a task in `struct pt_regs`.

/// The registers that keep their meaning through a program.
pub(crate) mod reg {
    use crate::insn::Reg;

    /// The state of the current task.
    pub(crate) const STATE: Reg = Reg::R6;
    /// The scratch buffer of this CPU, in whose front the event is built.
    pub(crate) const BUFFER: Reg = Reg::R7;
    /// Bytes of the event so far.
    pub(crate) const END: Reg = Reg::R8;
    /// The row of the call.
    pub(crate) const ROW: Reg = Reg::R9;
}

/// Offsets of the arguments' registers in `struct pt_regs` (arch/x86/include/asm/ptrace.h): di, si, dx, r10, r8, r9.
pub(crate) const ARG_REGISTERS: [i16; 6] = [112, 104, 96, 56, 72, 64];
/// Offset of ax, which holds the result; minus [`ENOSYS`] while there is none.
pub(crate) const AX: i16 = 80;
/// The error of a call that does not exist.
pub(crate) const ENOSYS: i32 = 38;
/// Offset of orig_ax: the number of the call that the task is in or has just made, -1 where it came to the kernel another way.
pub(crate) const ORIG_AX: i16 = 120;
/// Bytes of the struct.
pub(crate) const SIZE: i32 = 168;
/// Offset of ip, which is behind the instruction that made the call.
pub(crate) const IP: i16 = 128;

/// The bit of `thread_info.status` that marks 32-bit calls (arch/x86/include/asm/thread_info.h).
pub(crate) const TS_COMPAT: i32 = 2;
/// rt_sigreturn. At its end the registers are those of the interrupted program, with -1 in place of a number.
pub(crate) const RT_SIGRETURN: i32 = 15;
/// The calls that return in a child too: clone, fork, vfork, clone3.
pub(crate) const FORKS: [i32; 4] = [56, 57, 58, 435];
/// The numbers of [`FORKS`] in 32-bit programs (arch/x86/entry/syscalls/syscall_32.tbl).
pub(crate) const FORKS_32: [i32; 4] = [120, 2, 190, 435];
