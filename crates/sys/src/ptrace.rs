//! ptrace(2): attach, resume, inspect, and wait.

use crate::check::check;
use std::io;

mod interrupted;

/// Options of a seized thread (`include/uapi/linux/ptrace.h`).
pub mod option {
    /// Bit 7 of the stop signal marks a system call stop.
    pub const SYSGOOD: u64 = 0x1;
    /// Stop at fork, and trace the child.
    pub const FORK: u64 = 0x2;
    /// Stop at vfork, and trace the child.
    pub const VFORK: u64 = 0x4;
    /// Stop at clone, and trace the child.
    pub const CLONE: u64 = 0x8;
    /// Stop after an execve.
    pub const EXEC: u64 = 0x10;
    /// Stop before a thread ends, while its memory is there.
    pub const EXIT: u64 = 0x40;
    /// Stop where the seccomp filter says TRACE.
    pub const SECCOMP: u64 = 0x80;
    /// Kill the tracee when the tracer ends.
    pub const EXITKILL: u64 = 0x10_0000;
}

/// `PTRACE_EVENT_*` (`include/uapi/linux/ptrace.h`).
pub mod event {
    /// fork
    pub const FORK: i32 = 1;
    /// vfork
    pub const VFORK: i32 = 2;
    /// clone
    pub const CLONE: i32 = 3;
    /// execve
    pub const EXEC: i32 = 4;
    /// A thread is about to end
    pub const EXIT: i32 = 6;
    /// seccomp RET_TRACE
    pub const SECCOMP: i32 = 7;
    /// group-stop, or the answer to INTERRUPT
    pub const STOP: i32 = 128;
}

const GET_SYSCALL_INFO: libc::c_uint = 0x420e;
const GET_RSEQ_CONFIGURATION: libc::c_uint = 0x420f;
const LISTEN: libc::c_uint = 0x4208;

/// A request whose arguments are integers.
fn request(req: libc::c_uint, tid: i32, data: u64) -> io::Result<()> {
    // SAFETY: no request that is made through this function takes an address.
    unsafe { ptrace(req, tid, 0, data) }.map(drop)
}

/// A request that fills `out`.
///
/// # Safety
/// The kernel must write no more than a `T` for it, or than the size of a `T` where it asks for a size (`sized`), and any bytes
/// must be a valid `T`.
unsafe fn fill<T>(req: libc::c_uint, tid: i32, sized: bool, out: &mut T) -> io::Result<libc::c_long> {
    let size = if sized { size_of::<T>() as u64 } else { 0 };
    // SAFETY: the address is that of `out`, which is borrowed for the call; the rest is the caller's promise.
    unsafe { ptrace(req, tid, size, out as *mut T as u64) }
}

/// The one call of ptrace(2).
///
/// # Safety
/// Where `req` takes an address, it must be valid for what the kernel reads or writes there.
unsafe fn ptrace(req: libc::c_uint, tid: i32, addr: u64, data: u64) -> io::Result<libc::c_long> {
    #[cfg(test)]
    tests::count_request();
    // SAFETY: the caller's promise.
    check(unsafe { libc::ptrace(req as _, tid, addr as *mut libc::c_void, data as *mut libc::c_void) })
}

/// Attaches without stopping.
pub fn seize(tid: i32, options: u64) -> io::Result<()> {
    request(libc::PTRACE_SEIZE as _, tid, options)
}
/// Attaches without stopping to one of several threads of a process; `ErrorKind::Interrupted` after 20 ms.
///
/// During an execve nobody can attach to the process, and the execve waits for the end of all other threads. Traced threads have not ended before
/// their tracer has waited for them: a tracer of some of them must do so before it attaches to the next. Without a timer (`RLIMIT_SIGPENDING`)
/// the request is not interrupted.
pub fn seize_or_interrupted(tid: i32, options: u64) -> io::Result<()> {
    #[cfg(test)]
    tests::count_request();
    let _timer = interrupted::Timer::start(interrupted::AFTER).ok();
    interrupted::seize(tid, options)
}

/// Stops a seized thread (it reports an `event::STOP`).
pub fn interrupt(tid: i32) -> io::Result<()> {
    request(libc::PTRACE_INTERRUPT as _, tid, 0)
}
/// Resumes until the next signal or event.
pub fn cont(tid: i32, sig: i32) -> io::Result<()> {
    request(libc::PTRACE_CONT as _, tid, sig as u64)
}
/// Resumes until the next system call stop, signal or event.
pub fn syscall(tid: i32, sig: i32) -> io::Result<()> {
    request(libc::PTRACE_SYSCALL as _, tid, sig as u64)
}
/// Resumes for one instruction.
pub fn step(tid: i32) -> io::Result<()> {
    request(libc::PTRACE_SINGLESTEP as _, tid, 0)
}
/// Leaves a thread in its group-stop, and still gets notified of its end.
pub fn listen(tid: i32) -> io::Result<()> {
    request(LISTEN, tid, 0)
}
/// Detaches from a stopped thread.
pub fn detach(tid: i32, sig: i32) -> io::Result<()> {
    request(libc::PTRACE_DETACH as _, tid, sig as u64)
}
/// The message of the last event: a new thread's id, or the former id of a thread that called execve.
pub fn event_message(tid: i32) -> io::Result<u64> {
    let mut msg: libc::c_ulong = 0;
    // SAFETY: the kernel writes an unsigned long.
    unsafe { fill(libc::PTRACE_GETEVENTMSG as _, tid, false, &mut msg) }?;
    Ok(msg)
}
/// The siginfo of a signal-delivery stop, raw (`include/uapi/asm-generic/siginfo.h`).
pub fn siginfo(tid: i32) -> io::Result<[u8; 128]> {
    let mut info = [0u8; 128];
    // SAFETY: a siginfo_t has 128 bytes.
    unsafe { fill(libc::PTRACE_GETSIGINFO as _, tid, false, &mut info) }?;
    Ok(info)
}

/// Sets the siginfo of the signal that a thread is resumed with.
pub fn set_siginfo(tid: i32, info: &[u8; 128]) -> io::Result<()> {
    // SAFETY: the kernel reads a siginfo_t, of 128 bytes.
    unsafe { ptrace(libc::PTRACE_SETSIGINFO as _, tid, 0, info.as_ptr() as u64) }.map(drop)
}

/// Reads a word of a stopped thread's memory.
pub fn read_word(tid: i32, addr: u64) -> io::Result<u64> {
    Place::Memory(addr).read(tid)
}

/// Writes bytes to a stopped thread's memory, also where the thread may not: word by word, each whole.
pub fn write_bytes(tid: i32, addr: u64, bytes: &[u8]) -> io::Result<()> {
    let (mut at, end) = (addr & !7, addr + bytes.len() as u64);
    while at < end {
        let mut word = Place::Memory(at).read(tid)?.to_le_bytes();
        for (i, byte) in word.iter_mut().enumerate() {
            let i = at + i as u64;
            if let Some(new) = i.checked_sub(addr).and_then(|i| bytes.get(i as usize)) {
                *byte = *new;
            }
        }
        Place::Memory(at).write(tid, u64::from_le_bytes(word))?;
        at += 8;
    }
    Ok(())
}

/// Writes bytes to addresses of a stopped thread's memory, also where the thread may not: each by one call where procfs is there, else as
/// [`write_bytes`]. Threads that run meanwhile may see any part of them.
pub fn write_at_once<'b>(tid: i32, parts: impl Iterator<Item = (u64, &'b [u8])>) -> io::Result<()> {
    use std::os::unix::fs::FileExt;
    let memory = std::fs::OpenOptions::new().write(true).open(format!("/proc/{tid}/mem")).ok();
    for (addr, bytes) in parts {
        let written = memory.as_ref().is_some_and(|memory| memory.write_all_at(bytes, addr).is_ok());
        if !written {
            write_bytes(tid, addr, bytes)?;
        }
    }
    Ok(())
}

/// The state of a stopped thread, from PTRACE_GET_SYSCALL_INFO (Linux 5.3; `struct ptrace_syscall_info`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SyscallInfo {
    /// 0 none, 1 entry, 2 exit, 3 seccomp.
    pub op: u8,
    /// `AUDIT_ARCH_*`.
    pub arch: u32,
    /// Instruction pointer.
    pub ip: u64,
    /// Stack pointer.
    pub sp: u64,
    /// Number (entry and seccomp).
    pub nr: u64,
    /// Arguments (entry and seccomp).
    pub args: [u64; 6],
    /// Result (exit).
    pub ret: i64,
    /// What the filter returns (seccomp).
    pub told: u32,
}

/// `AUDIT_ARCH_X86_64` (`include/uapi/linux/audit.h`).
pub const ARCH_X86_64: u32 = 0xc000_003e;
/// `AUDIT_ARCH_I386`.
pub const ARCH_I386: u32 = 0x4000_0003;

/// Reads the state of a stopped thread.
pub fn syscall_info(tid: i32) -> io::Result<SyscallInfo> {
    let mut raw = [0u64; 12];
    // SAFETY: the kernel writes no more than the size that it is given.
    unsafe { fill(GET_SYSCALL_INFO, tid, true, &mut raw) }?;
    let op = raw[0] as u8;
    let mut info = SyscallInfo { op, arch: (raw[0] >> 32) as u32, ip: raw[1], sp: raw[2], ..SyscallInfo::default() };
    if op == 2 {
        info.ret = raw[3] as i64;
    } else {
        info.nr = raw[3];
        info.args.copy_from_slice(&raw[4..10]);
        info.told = if op == 3 { raw[10] as u32 } else { 0 };
    }
    Ok(info)
}

fn registers(tid: i32) -> io::Result<libc::user_regs_struct> {
    // SAFETY: all-zero user_regs_struct is a valid value, filled by the kernel.
    let mut regs: libc::user_regs_struct = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel writes a struct user_regs_struct.
    unsafe { fill(libc::PTRACE_GETREGS as _, tid, false, &mut regs) }?;
    Ok(regs)
}

/// All general registers of a stopped thread.
#[derive(Clone, Copy)]
pub struct Registers(pub(crate) libc::user_regs_struct);

impl Registers {
    /// The instruction pointer.
    pub fn pc(&self) -> u64 {
        self.0.rip
    }

    /// The stack pointer.
    pub fn sp(&self) -> u64 {
        self.0.rsp
    }

    /// The base of thread-local storage.
    pub fn fs_base(&self) -> u64 {
        self.0.fs_base
    }

    /// The base of `gs`.
    pub fn gs_base(&self) -> u64 {
        self.0.gs_base
    }

    /// Sets it.
    pub fn set_gs_base(&mut self, to: u64) {
        self.0.gs_base = to;
    }

    /// Sets the first arguments of a function, and where it begins: the thread is in no call any more.
    pub fn make_function(&mut self, pc: u64, arguments: [u64; 3]) {
        [self.0.rdi, self.0.rsi, self.0.rdx] = arguments;
        (self.0.rip, self.0.orig_rax) = (pc, u64::MAX);
    }

    /// The first two arguments of a function.
    pub fn first_arguments(&self) -> (u64, u64) {
        (self.0.rdi, self.0.rsi)
    }

    /// rax: the result of a call, or what becomes one.
    pub fn result(&self) -> i64 {
        self.0.rax as i64
    }

    /// The number of the call that the thread is in; negative: in none.
    pub fn number(&self) -> i64 {
        self.0.orig_rax as i64
    }

    /// r11, in which a stub has the address of its words.
    pub fn r11(&self) -> u64 {
        self.0.r11
    }

    /// The thread goes on elsewhere.
    pub fn set_pc(&mut self, pc: u64) {
        self.0.rip = pc;
    }

    /// rcx, where the processor has put the address behind a `syscall`.
    pub fn set_rcx(&mut self, to: u64) {
        self.0.rcx = to;
    }

    /// At the entry of a call: another one is made in its place.
    pub fn replace_call(&mut self, number: i64, arguments: [u64; 6]) {
        let r = &mut self.0;
        [r.rdi, r.rsi, r.rdx, r.r10, r.r8, r.r9] = arguments;
        (r.rax, r.orig_rax) = (number as u64, number as u64);
    }

    /// Anywhere else: a call is made at the `syscall` instruction at `pc`.
    pub fn make_call(&mut self, pc: u64, number: i64, arguments: [u64; 6]) {
        self.replace_call(number, arguments);
        (self.0.rip, self.0.orig_rax) = (pc, u64::MAX);
    }

    /// The thread is in no call: it begins the one with this number at the `syscall` instruction at `pc`.
    pub fn begin_again(&mut self, pc: u64, number: u64) {
        (self.0.rip, self.0.rax, self.0.orig_rax) = (pc, number, u64::MAX);
    }

    /// Whether the thread runs 64-bit code (the code segment of Linux for x86-64 programs).
    pub fn is_64_bit(&self) -> bool {
        self.0.cs == 0x33
    }
}

/// All general registers of a stopped thread.
pub fn all_registers(tid: i32) -> io::Result<Registers> {
    registers(tid).map(Registers)
}

/// Sets the general registers of a stopped thread. A thread that was stopped in a system call and gets the registers back that it had
/// then repeats the call, or goes on with it, as after a stop without any change (`orig_rax` and the kernel's `-ERESTART*` in rax).
pub fn set_all_registers(tid: i32, to: &Registers) -> io::Result<()> {
    let from = std::ptr::from_ref(&to.0) as u64;
    // SAFETY: the kernel reads a struct user_regs_struct.
    unsafe { ptrace(libc::PTRACE_SETREGS as _, tid, 0, from) }.map(drop)
}

/// Has a thread make its call again that has ended with EINTR only because the thread was stopped, with the whole time that the call may
/// take: epoll_wait, sigtimedwait, semop and others that the kernel does not restart (signal(7), "Interruption of system calls and library
/// functions by stop signals"). Whether it does. The thread is stopped by [`interrupt`].
///
/// # Errors
/// It has ended.
pub fn repeat_call(tid: i32) -> io::Result<bool> {
    const EINTR: i32 = -4;
    let mut registers = all_registers(tid)?;
    let r = &mut registers.0;
    // Of 32-bit programs the upper halves say nothing. Both ways into the kernel are repeated two bytes before, as the kernel itself does it.
    let is_interrupted = r.orig_rax as i32 >= 0 && r.rax as i32 == EINTR;
    if !is_interrupted || crate::proc::gets_signal(tid) {
        return Ok(false);
    }
    r.rax = r.orig_rax;
    r.rip = r.rip.wrapping_sub(2);
    // No call is under way any more: the kernel does nothing about it.
    r.orig_rax = u64::MAX;
    set_all_registers(tid, &registers).map(|()| true)
}

/// The register set of extended states (`include/uapi/linux/elf.h`).
const NT_X86_XSTATE: u64 = 0x202;
const GET_REGISTER_SET: libc::c_uint = 0x4204;
const SET_REGISTER_SET: libc::c_uint = 0x4205;
const GET_SIGNAL_MASK: libc::c_uint = 0x420a;
const SET_SIGNAL_MASK: libc::c_uint = 0x420b;
const SINGLE_MASK: u64 = 8;

/// The floating point and vector registers of a stopped thread, in the standard format of XSAVE.
pub fn extended_state(tid: i32) -> io::Result<Vec<u8>> {
    let mut state = vec![0u8; 64 << 10];
    let mut part = libc::iovec { iov_base: state.as_mut_ptr().cast(), iov_len: state.len() };
    // SAFETY: the kernel writes no more than the iovec's length, and notes there how much it was.
    unsafe { ptrace(GET_REGISTER_SET, tid, NT_X86_XSTATE, &raw mut part as u64) }?;
    state.truncate(part.iov_len);
    Ok(state)
}

/// Sets them.
pub fn set_extended_state(tid: i32, state: &[u8]) -> io::Result<()> {
    let mut part = libc::iovec { iov_base: state.as_ptr().cast_mut().cast(), iov_len: state.len() };
    // SAFETY: the kernel reads no more than the iovec's length.
    unsafe { ptrace(SET_REGISTER_SET, tid, NT_X86_XSTATE, &raw mut part as u64) }.map(drop)
}

/// The mask of blocked signals of a stopped thread.
pub fn signal_mask(tid: i32) -> io::Result<u64> {
    let mut mask = 0u64;
    // SAFETY: the kernel writes 8 bytes, as requested.
    unsafe { ptrace(GET_SIGNAL_MASK, tid, SINGLE_MASK, &raw mut mask as u64) }?;
    Ok(mask)
}

/// Sets it. SIGKILL and SIGSTOP stay unblocked.
pub fn set_signal_mask(tid: i32, mask: u64) -> io::Result<()> {
    // SAFETY: the kernel reads 8 bytes, as requested.
    unsafe { ptrace(SET_SIGNAL_MASK, tid, SINGLE_MASK, &raw const mask as u64) }.map(drop)
}

const SECCOMP_GET_FILTER: libc::c_uint = 0x420c;

/// The filter of system calls with this number, as instructions of classic BPF, of a stopped thread. None: it has fewer. Filters are read
/// with CAP_SYS_ADMIN.
pub fn filter(tid: i32, number: usize) -> io::Result<Option<Vec<u64>>> {
    // BPF_MAXINSNS, include/uapi/linux/bpf_common.h
    const MOST: usize = 4096;
    let mut code = vec![0u64; MOST];
    // SAFETY: a filter has no more instructions, of 8 bytes each, and the kernel writes nothing else.
    match unsafe { ptrace(SECCOMP_GET_FILTER, tid, number as u64, code.as_mut_ptr() as u64) } {
        Ok(len) => {
            code.truncate(len as usize);
            Ok(Some(code))
        }
        Err(e) if e.raw_os_error() == Some(libc::ENOENT) => Ok(None),
        Err(e) => Err(e),
    }
}

/// PTRACE_GET_SYSCALL_USER_DISPATCH_CONFIG, include/uapi/linux/ptrace.h (Linux 6.4), and the size of struct ptrace_sud_config.
const GET_DISPATCH: libc::c_uint = 0x4210;
const DISPATCH: u64 = 32;

/// Whether a stopped thread has its system calls turned into signals (PR_SET_SYSCALL_USER_DISPATCH). Before Linux 6.4 the kernel does not report it: false.
pub fn dispatches_calls(tid: i32) -> bool {
    let mut config = [0u64; DISPATCH as usize / 8];
    // SAFETY: the kernel writes this many bytes, the mode first.
    let read = unsafe { ptrace(GET_DISPATCH, tid, DISPATCH, config.as_mut_ptr() as u64) };
    read.is_ok() && config[0] != 0
}

/// The registers that matter for a call that an attach interrupted: (orig_rax, rax).
pub fn call_registers(tid: i32) -> io::Result<(i64, i64)> {
    registers(tid).map(|regs| (regs.orig_rax as i64, regs.rax as i64))
}

/// The registers that a walk up the stack begins with.
#[derive(Clone, Copy, Debug)]
pub struct FrameRegisters {
    /// The instruction pointer.
    pub pc: u64,
    /// By their numbers in the System V ABI for x86-64 (figure 3.36): rax, rdx, rcx, rbx, rsi, rdi, rbp, rsp, r8 to r15.
    pub by_number: [u64; 16],
    /// The base of thread-local storage.
    pub fs_base: u64,
}

/// Reads the registers that a walk up the stack begins with.
pub fn frame_registers(tid: i32) -> io::Result<FrameRegisters> {
    let r = registers(tid)?;
    let by_number =
        [r.rax, r.rdx, r.rcx, r.rbx, r.rsi, r.rdi, r.rbp, r.rsp, r.r8, r.r9, r.r10, r.r11, r.r12, r.r13, r.r14, r.r15];
    Ok(FrameRegisters { pc: r.rip, by_number, fs_base: r.fs_base })
}

/// Where a call finds a word: in a register, by its offset in `struct user`, or in memory.
#[derive(Clone, Copy, Debug)]
enum Place {
    Register(usize),
    Memory(u64),
}

/// A word of a stopped thread that has another value while the kernel carries out a call, which the program is not to see.
#[derive(Clone, Copy, Debug)]
pub struct Changed {
    at: Place,
    was: u64,
    now: u64,
}

impl Changed {
    fn make(tid: i32, at: Place, was: u64, now: u64) -> io::Result<Changed> {
        at.write(tid, now)?;
        Ok(Changed { at, was, now })
    }

    /// Gives the word its value back, unless somebody else has given it another one meanwhile. `tid` is the stopped thread, or a stopped
    /// one that the call has made: it has a copy of the registers and, if it does not share it, of the memory.
    pub fn put_back(&self, tid: i32) -> io::Result<()> {
        if self.at.read(tid)? == self.now { self.at.write(tid, self.was) } else { Ok(()) }
    }
}

impl Place {
    const ORIG_RAX: Place = Place::Register(std::mem::offset_of!(libc::user_regs_struct, orig_rax));

    fn read(self, tid: i32) -> io::Result<u64> {
        let (req, at) = match self {
            Place::Register(offset) => (libc::PTRACE_PEEKUSER, offset as u64),
            Place::Memory(addr) => (libc::PTRACE_PEEKDATA, addr),
        };
        let mut word = 0u64;
        // SAFETY: the bare call, unlike libc's function, stores the word at the address in the fourth argument.
        let peek = unsafe { libc::syscall(libc::SYS_ptrace, libc::c_long::from(req), tid, at, &raw mut word) };
        check(peek).map(|_| word)
    }

    /// The kernel writes memory that the program may not write, too, if it is its own.
    fn write(self, tid: i32, word: u64) -> io::Result<()> {
        let (req, at) = match self {
            Place::Register(offset) => (libc::PTRACE_POKEUSER, offset as u64),
            Place::Memory(addr) => (libc::PTRACE_POKEDATA, addr),
        };
        // SAFETY: both take an address of the stopped thread, which only the kernel uses, and a word.
        unsafe { ptrace(req, tid, at, word) }.map(drop)
    }
}

/// Where the call that a thread is in has its `CLONE_*`, or the flags themselves where they are not its own to choose. None: it is
/// another call.
fn flags_of_clone(arch: u32, nr: u64, first: u64) -> Option<Result<Place, u64>> {
    use std::mem::offset_of;
    const X32_BIT: u64 = 0x4000_0000;
    const VFORK: u64 = (libc::CLONE_VM | libc::CLONE_VFORK) as u64;
    // The meaning of the registers depends on how the kernel was entered, and the code segment does not show `int 0x80`.
    let (register, nr, clone, vfork) = match arch {
        ARCH_I386 => (offset_of!(libc::user_regs_struct, rbx), nr, 120, 190),
        _ => (offset_of!(libc::user_regs_struct, rdi), nr & !X32_BIT, libc::SYS_clone as u64, libc::SYS_vfork as u64),
    };
    match nr {
        nr if nr == clone => Some(Ok(Place::Register(register))),
        nr if nr == vfork => Some(Err(VFORK)),
        // One number for all architectures.
        nr if nr == libc::SYS_clone3 as u64 => Some(Ok(Place::Memory(first))),
        _ => None,
    }
}

/// The flags (`CLONE_*`) of the call by which a thread makes another one, at the event that reports it. The arguments of clone3 are
/// read from memory, which other threads may have written to since.
pub fn clone_flags(tid: i32) -> io::Result<u64> {
    let regs = registers(tid)?;
    let arch = syscall_info(tid)?.arch;
    let first = if arch == ARCH_I386 { regs.rbx & 0xffff_ffff } else { regs.rdi };
    match flags_of_clone(arch, regs.orig_rax, first) {
        Some(Ok(place)) => place.read(tid),
        Some(Err(flags)) => Ok(flags),
        None => Ok(0),
    }
}

/// At the entry of a call that makes a thread or process with CLONE_UNTRACED: takes that flag away, so that what it makes is traced.
/// None: it is another call, or has no such flag.
pub fn trace_untraced(tid: i32, call: &SyscallInfo) -> io::Result<Option<Changed>> {
    const UNTRACED: u64 = libc::CLONE_UNTRACED as u64;
    let Some(Ok(place)) = flags_of_clone(call.arch, call.nr, call.args[0]) else { return Ok(None) };
    let flags = place.read(tid)?;
    if flags & UNTRACED == 0 { Ok(None) } else { Changed::make(tid, place, flags, flags & !UNTRACED).map(Some) }
}

/// At the stop of a filter: has the kernel not carry out the call, which fails with ENOSYS, as that of an untraced thread does.
pub fn refuse(tid: i32) -> io::Result<Changed> {
    Changed::make(tid, Place::ORIG_RAX, Place::ORIG_RAX.read(tid)?, u64::MAX)
}

/// The address of a thread's `struct rseq`, where it registered one (Linux 5.13).
pub fn rseq_address(tid: i32) -> Option<u64> {
    let mut conf = [0u64; 3];
    // SAFETY: the kernel writes no more than the size that it is given.
    let n = unsafe { fill(GET_RSEQ_CONFIGURATION, tid, true, &mut conf) }.ok()?;
    (n >= 8 && conf[0] != 0).then_some(conf[0])
}

/// What a wait reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status {
    /// The thread.
    pub tid: i32,
    /// The raw status.
    pub raw: i32,
}

/// What a [`Status`] means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// It ended with this code.
    Exited(i32),
    /// It was killed by a signal; whether a core was dumped.
    Killed(i32, bool),
    /// Stopped: signal (bit 7: system call stop) and event.
    Stopped(i32, i32),
}

impl Status {
    /// Takes the status apart.
    pub fn change(&self) -> Change {
        let s = self.raw;
        if libc::WIFEXITED(s) {
            Change::Exited(libc::WEXITSTATUS(s))
        } else if libc::WIFSIGNALED(s) {
            Change::Killed(libc::WTERMSIG(s), libc::WCOREDUMP(s))
        } else {
            Change::Stopped(libc::WSTOPSIG(s), s >> 16)
        }
    }
}

/// Waits for any child or tracee; with `block` false returns at once with none.
///
/// A signal ends the wait with `ErrorKind::Interrupted`; ECHILD means that nothing is left.
pub fn wait(block: bool) -> io::Result<Option<Status>> {
    wait_for(-1, block)
}

/// Waits for one child or tracee.
pub fn wait_for(pid: i32, block: bool) -> io::Result<Option<Status>> {
    let mut raw = 0;
    let flags = libc::__WALL | if block { 0 } else { libc::WNOHANG };
    // SAFETY: `raw` is valid for the call.
    let tid = check(unsafe { libc::waitpid(pid, &mut raw, flags) }.into())? as i32;
    Ok((tid != 0).then_some(Status { tid, raw }))
}

#[cfg(test)]
pub(crate) mod tests {
    use std::sync::atomic::AtomicU64;
    use std::sync::atomic::Ordering::Relaxed;

    static REQUESTS: AtomicU64 = AtomicU64::new(0);
    static LAST: AtomicU64 = AtomicU64::new(u64::MAX);

    /// The process is killed instead of this request, counted from 1.
    pub fn die_at(request: u64) {
        LAST.store(request, Relaxed);
    }

    pub(super) fn count_request() {
        if REQUESTS.fetch_add(1, Relaxed) + 1 == LAST.load(Relaxed) {
            // SAFETY: a signal for the process itself.
            unsafe { libc::raise(libc::SIGKILL) };
        }
    }
}
