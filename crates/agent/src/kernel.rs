//! Bare system calls, and what the kernel's headers say about them (x86_64).

use core::arch::asm;
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::Relaxed;

pub const EEXIST: isize = -17;
pub const EFAULT: isize = -14;
pub const EINTR: isize = -4;
pub const EINVAL: isize = -22;
pub const ENOSYS: isize = -38;
pub const ESRCH: isize = -3;
pub const ENOMEM: u32 = 12;
pub const EMFILE: u32 = 24;
pub const EBUSY: u32 = 16;
pub const ECONNREFUSED: u32 = 111;
pub const EPROTO: u32 = 71;

const READ: usize = 0;
const CLOSE: usize = 3;
const LSEEK: usize = 8;
const MMAP: usize = 9;
const MPROTECT: usize = 10;
const MUNMAP: usize = 11;
pub const SIGACTION: usize = 13;
const SIGPROCMASK: usize = 14;
const PREAD: usize = 17;
const PWRITE: usize = 18;
const MREMAP: usize = 25;
const MADVISE: usize = 28;
const NANOSLEEP: usize = 35;
const GETPID: usize = 39;
const SOCKET: usize = 41;
const CONNECT: usize = 42;
const SENDTO: usize = 44;
const RECVMSG: usize = 47;
const SETSOCKOPT: usize = 54;
pub const CLONE: usize = 56;
pub const FORK: usize = 57;
pub const EXECVE: usize = 59;
const KILL: usize = 62;
const GETRLIMIT: usize = 97;
const GETUID: usize = 102;
const GETGID: usize = 104;
const GETEUID: usize = 107;
const GETEGID: usize = 108;
const GETPPID: usize = 110;
const FSTATFS: usize = 138;
pub const PRCTL: usize = 157;
const GETTID: usize = 186;
const GETXATTR: usize = 191;
const FUTEX: usize = 202;
const GETDENTS64: usize = 217;
const CLOCK_GETTIME: usize = 228;
pub const EXIT_GROUP: usize = 231;
const TGKILL: usize = 234;
const OPENAT: usize = 257;
const NEWFSTATAT: usize = 262;
const PROCESS_VM_READV: usize = 310;
pub const SECCOMP: usize = 317;
pub const EXECVEAT: usize = 322;
const MEMBARRIER: usize = 324;
pub const CLONE3: usize = 435;
const FACCESSAT2: usize = 439;

pub const PROT_READ: usize = 1;
pub const PROT_WRITE: usize = 2;
pub const PROT_EXEC: usize = 4;
pub const MAP_SHARED: usize = 1;
pub const MAP_PRIVATE: usize = 2;
const MAP_FIXED: usize = 0x10;
pub const MAP_ANONYMOUS: usize = 0x20;
const MAP_NORESERVE: usize = 0x4000;
pub const MAP_FIXED_NOREPLACE: usize = 0x10_0000;
const MADV_WIPEONFORK: usize = 18;
const MADV_DONTNEED: usize = 4;
const PR_GET_NAME: usize = 16;

pub const CLONE_VM: u64 = 0x100;

pub const AT_FDCWD: i32 = -100;
pub const AT_EMPTY_PATH: usize = 0x1000;
const AT_EACCESS: usize = 0x200;
const X_OK: usize = 1;
pub const O_RDONLY: usize = 0;
pub const O_RDWR: usize = 2;
const O_CLOEXEC: usize = 0o2_000_000;

/// A bare system call.
///
/// # Safety
/// As the call says: it may read and write the memory that its arguments name.
#[inline(always)]
pub unsafe fn call(number: usize, a: [usize; 6]) -> isize {
    let result;
    // SAFETY: the caller vouches for the call; the kernel changes only rax, rcx and r11, and memory.
    unsafe {
        asm!("syscall", inlateout("rax") number => result, in("rdi") a[0], in("rsi") a[1], in("rdx") a[2], in("r10") a[3],
            in("r8") a[4], in("r9") a[5], lateout("rcx") _, lateout("r11") _, options(nostack));
    }
    result
}

/// Makes a wrapper of a call which neither reads nor writes memory but what its arguments own.
macro_rules! calls {
    ($($(#[$doc:meta])* fn $name:ident($($arg:ident: $type:ty),*) = $number:ident($($value:expr),*);)*) => {$(
        $(#[$doc])*
        pub fn $name($($arg: $type),*) -> isize {
            let mut a = [0usize; 6];
            let given = [$($value),*];
            let mut i = 0;
            while i < given.len() {
                a[i] = given[i];
                i += 1;
            }
            // SAFETY: the arguments are numbers, or references that live as long as the call.
            unsafe { call($number, a) }
        }
    )*};
}

calls! {
    fn read(fd: i32, to: &mut [u8]) = READ(fd as usize, to.as_mut_ptr() as usize, to.len());
    fn pread(fd: i32, to: &mut [u8], at: u64) = PREAD(fd as usize, to.as_mut_ptr() as usize, to.len(), at as usize);
    fn pwrite(fd: i32, from: &[u8], at: u64) = PWRITE(fd as usize, from.as_ptr() as usize, from.len(), at as usize);
    fn getdents(fd: i32, to: &mut [u8]) = GETDENTS64(fd as usize, to.as_mut_ptr() as usize, to.len());
    fn close(fd: i32) = CLOSE(fd as usize);
    fn getpid() = GETPID(0usize);
    fn getppid() = GETPPID(0usize);
    fn gettid() = GETTID(0usize);
    fn getuid() = GETUID(0usize);
    fn geteuid() = GETEUID(0usize);
    fn getgid() = GETGID(0usize);
    fn getegid() = GETEGID(0usize);
    fn tgkill(pid: u32, tid: u32, signal: u32) = TGKILL(pid as usize, tid as usize, signal as usize);
    fn unix_socket() = SOCKET(1usize, 1usize | O_CLOEXEC, 0usize);
    fn connect(fd: i32, address: &[u8]) = CONNECT(fd as usize, address.as_ptr() as usize, address.len());
    fn send(fd: i32, from: &[u8]) = SENDTO(fd as usize, from.as_ptr() as usize, from.len(), 0x4000usize, 0usize, 0usize);
    fn membarrier(command: usize) = MEMBARRIER(command, 0usize, 0usize);
    /// The size of a file.
    fn size(fd: i32) = LSEEK(fd as usize, 0usize, 2usize);
}

/// Reads memory of a process by the id of one of its threads: two ranges, address and length, of which all that is there. Any address will do.
pub fn read_process(tid: i32, to: &mut [u8], ranges: &[[u64; 2]; 2]) -> isize {
    let own = [to.as_mut_ptr() as u64, to.len() as u64];
    // SAFETY: the kernel writes to `to` only.
    unsafe {
        let from = ranges.as_ptr() as usize;
        call(PROCESS_VM_READV, [tid as usize, own.as_ptr() as usize, 1, from, 2, 0])
    }
}

/// Ends the process: the agent is wrong, and nothing it could do would be right.
pub fn abort() -> ! {
    loop {
        // SAFETY: an undefined instruction shows where it was; should a handler take it, the process ends.
        unsafe {
            call(KILL, [getpid() as usize, 6, 0, 0, 0, 0]);
            call(EXIT_GROUP, [134, 0, 0, 0, 0, 0]);
        }
    }
}

/// Where the agent's next mapping goes, if nothing is there: far from modules, because the collector places areas by the mappings that
/// it knows already.
static NEXT: AtomicU64 = AtomicU64::new(0x1100_0000_0000);

/// Maps memory; `at` 0: anywhere. Nothing that exists is replaced. A negative number is an error.
pub fn map(at: u64, len: u64, protection: usize, flags: usize, fd: i32) -> isize {
    let at = if at == 0 { space(len) } else { at };
    // SAFETY: without MAP_FIXED nothing that exists is replaced.
    unsafe { call(MMAP, [at as usize, len as usize, protection, flags & !MAP_FIXED, fd as usize, 0]) }
}

/// Maps new anonymous memory in place of what is there. A negative number is an error.
///
/// # Safety
/// What is there is the agent's, and nobody needs it.
pub unsafe fn map_over(at: u64, len: u64, protection: usize) -> isize {
    let flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;
    // SAFETY: so says the caller.
    unsafe { call(MMAP, [at as usize, len as usize, protection, flags, usize::MAX, 0]) }
}

/// New anonymous memory, without a claim on swap, or None.
pub fn reserve(len: u64) -> Option<u64> {
    let at = map(0, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1);
    (at > 0).then_some(at as u64)
}

/// Address space for `whole` bytes of the agent's own, of which [`map_first`] and [`extend`] map the beginning: what is not mapped counts for
/// no limit.
fn space(whole: u64) -> u64 {
    NEXT.fetch_add((whole + 0x1_ffff) & !0xffff, Relaxed)
}

/// Maps the first `len` of `whole` bytes, of memory or of a file.
pub fn map_first(whole: u64, len: u64, protection: usize, flags: usize, fd: i32) -> Option<u64> {
    let at = map(space(whole), len, protection, flags, fd);
    (at > 0).then_some(at as u64)
}

/// New anonymous memory, as [`reserve`] makes it, that can grow from `len` to `whole` bytes.
pub fn reserve_first(whole: u64, len: u64) -> Option<u64> {
    map_first(whole, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1)
}

/// Maps `more` bytes behind such memory, which ends at `end`. False: there is none to be had, or something else is there.
pub fn extend(end: u64, more: u64) -> bool {
    let flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE;
    let at = map(end, more, PROT_READ | PROT_WRITE, flags, -1);
    // Only the agent maps anything there: another thread, or a handler, has just done the same.
    at as u64 == end || at == EEXIST
}

/// Maps more of a shared file whose first `len` bytes are mapped at `at`, where it can grow, up to `new` bytes. The file may be closed.
pub fn extend_file(at: u64, len: u64, new: u64) -> bool {
    // SAFETY: without MREMAP_MAYMOVE, nothing that exists is moved or replaced.
    unsafe { call(MREMAP, [at as usize, len as usize, new as usize, 0, 0, 0]) == at as isize }
}

/// Takes memory back.
///
/// # Safety
/// Nothing uses it any more.
pub unsafe fn unmap(at: u64, len: u64) {
    // SAFETY: so says the caller.
    unsafe { call(MUNMAP, [at as usize, len as usize, 0, 0, 0, 0]) };
}

/// Changes what may be done with memory.
///
/// # Safety
/// Nobody needs what is taken away.
pub unsafe fn protect(at: u64, len: u64, protection: usize) -> isize {
    // SAFETY: so says the caller.
    unsafe { call(MPROTECT, [at as usize, len as usize, protection, 0, 0, 0]) }
}

/// Has a child of fork(2) find zeros in these pages.
///
/// # Safety
/// They are the agent's.
pub unsafe fn wipe_on_fork(at: u64, len: u64) -> isize {
    // SAFETY: so says the caller.
    unsafe { call(MADVISE, [at as usize, len as usize, MADV_WIPEONFORK, 0, 0, 0]) }
}

/// Has these pages be zeros again.
///
/// # Safety
/// They are the agent's, and nothing in them is needed.
pub unsafe fn discard(at: u64, len: u64) {
    // SAFETY: so says the caller.
    unsafe { call(MADVISE, [at as usize, len as usize, MADV_DONTNEED, 0, 0, 0]) };
}

/// The thread's name, filled up with NULs.
pub fn thread_name() -> [u8; 16] {
    let mut name = [0u8; 16];
    // SAFETY: the kernel writes 16 bytes.
    unsafe { call(PRCTL, [PR_GET_NAME, name.as_mut_ptr() as usize, 0, 0, 0, 0]) };
    name
}

/// Opens a file; `path` ends with NUL.
pub fn open(directory: i32, path: *const u8, how: usize) -> isize {
    // SAFETY: the kernel reads the path, and answers EFAULT where it cannot.
    unsafe { call(OPENAT, [directory as usize, path as usize, how | O_CLOEXEC, 0, 0, 0]) }
}

/// Opens a file of the agent's own choice.
pub fn open_own(path: &core::ffi::CStr, how: usize) -> isize {
    open(AT_FDCWD, path.as_ptr().cast(), how)
}

/// Whether the effective user may load a library: read it, from a file system that is not mounted with `noexec`.
pub fn is_loadable(path: *const u8) -> bool {
    const ST_NOEXEC: u64 = 8;
    let fd = open(AT_FDCWD, path, O_RDONLY);
    if fd < 0 {
        return false;
    }
    let mut file_system = [0u64; 15];
    // SAFETY: struct statfs has 120 bytes; its flags are the eleventh word.
    let answer = unsafe { call(FSTATFS, [fd as usize, file_system.as_mut_ptr() as usize, 0, 0, 0, 0]) };
    close(fd as i32);
    answer != 0 || file_system[10] & ST_NOEXEC == 0
}

/// Whether the effective user may execute a file. Kernels before 5.8 do not know the call: they say no later.
pub fn is_executable(directory: i32, path: *const u8, flags: usize) -> bool {
    // SAFETY: as in `open`.
    let answer = unsafe { call(FACCESSAT2, [directory as usize, path as usize, X_OK, flags | AT_EACCESS, 0, 0]) };
    answer == 0 || answer == ENOSYS
}

/// The real user.
pub fn real_user() -> u32 {
    getuid() as u32
}

/// The real group.
pub fn real_group() -> u32 {
    getgid() as u32
}

/// Whether the process has the rights of another user or group than the one that has started it.
pub fn has_changed_user() -> bool {
    geteuid() != getuid() || getegid() != getgid()
}

/// What is asked of a file.
pub struct File {
    pub mode: u32,
    pub user: u32,
    pub group: u32,
}

/// A file by its path.
pub fn file_at(directory: i32, path: *const u8, flags: usize) -> Option<File> {
    let mut stat = [0u64; 18];
    let a = [directory as usize, path as usize, stat.as_mut_ptr() as usize, flags, 0, 0];
    // SAFETY: struct stat has 144 bytes; the path as in `open`.
    let answer = unsafe { call(NEWFSTATAT, a) };
    // st_mode and st_uid, then st_gid.
    let file = File { mode: stat[3] as u32, user: (stat[3] >> 32) as u32, group: stat[4] as u32 };
    (answer == 0).then_some(file)
}

/// Whether a file has capabilities.
pub fn has_capabilities(path: *const u8) -> bool {
    // SAFETY: only the size is asked for.
    unsafe { call(GETXATTR, [path as usize, c"security.capability".as_ptr() as usize, 0, 0, 0, 0]) > 0 }
}

/// Receives a message with descriptors, which close on exec.
pub fn receive(fd: i32, header: &mut MessageHeader) -> isize {
    const MSG_CMSG_CLOEXEC: usize = 0x4000_0000;
    // SAFETY: the header names buffers that live as long as the call.
    unsafe { call(RECVMSG, [fd as usize, core::ptr::from_mut(header) as usize, MSG_CMSG_CLOEXEC, 0, 0, 0]) }
}

/// struct msghdr, with one struct iovec's address.
#[repr(C)]
pub struct MessageHeader {
    pub name: u64,
    pub name_len: u64,
    pub vectors: u64,
    pub vector_count: u64,
    pub control: u64,
    pub control_len: u64,
    pub flags: u64,
}

/// Has calls on a socket give up after this many seconds.
pub fn set_timeouts(fd: i32, seconds: u64) {
    let time = [seconds, 0u64];
    for option in [20, 21] {
        // SAFETY: struct timeval has 16 bytes (SO_RCVTIMEO, SO_SNDTIMEO of SOL_SOCKET).
        unsafe { call(SETSOCKOPT, [fd as usize, 1, option, time.as_ptr() as usize, 16, 0]) };
    }
}

/// Soft limit of the stack's size; u64::MAX: none.
pub fn stack_limit() -> u64 {
    let mut limit = [8u64 << 20, 0];
    // SAFETY: struct rlimit has 16 bytes.
    unsafe { call(GETRLIMIT, [3, limit.as_mut_ptr() as usize, 0, 0, 0, 0]) };
    limit[0]
}

/// The monotonic clock in ns.
pub fn monotonic() -> u64 {
    let mut time = [0u64; 2];
    // SAFETY: struct timespec has 16 bytes.
    unsafe { call(CLOCK_GETTIME, [1, time.as_mut_ptr() as usize, 0, 0, 0, 0]) };
    time[0].wrapping_mul(1_000_000_000).wrapping_add(time[1])
}

/// Sleeps.
pub fn sleep(ns: u64) {
    let time = [0u64, ns];
    // SAFETY: struct timespec has 16 bytes.
    unsafe { call(NANOSLEEP, [time.as_ptr() as usize, 0, 0, 0, 0, 0]) };
}

/// Sleeps while a word in shared memory has a value, at most this long.
pub fn wait(word: &core::sync::atomic::AtomicU32, value: u32, ns: u64) {
    let time = [0u64, ns];
    let a = [word.as_ptr() as usize, 0, value as usize, time.as_ptr() as usize, 0, 0];
    // SAFETY: FUTEX_WAIT reads the word and the time.
    unsafe { call(FUTEX, a) };
}

/// Wakes everybody who sleeps on a word.
pub fn wake(word: &core::sync::atomic::AtomicU32) {
    // SAFETY: FUTEX_WAKE does not even read the word.
    unsafe { call(FUTEX, [word.as_ptr() as usize, 1, i32::MAX as usize, 0, 0, 0]) };
}

/// All signals.
pub const ALL: u64 = u64::MAX;

/// Bytes of the stack that code with blocked signals needs: most of what its frames take, but for what exec, dlopen and commands do. No
/// more, because handlers may run on the smallest of stacks.
const NEEDED: usize = 1024;

/// Blocks all signals, and returns the mask that there was.
///
/// Touches the stack that it will take first: where that ends, the fault comes now, and the program's handler gets it, as it would have
/// some calls later. A fault while SIGSEGV is blocked ends the process, whatever its handlers are.
#[inline(always)]
pub fn block() -> u64 {
    // SAFETY: a read below the stack pointer, of memory that nobody else uses. Where there is none, SIGSEGV is what is to happen.
    unsafe { core::arch::asm!("test byte ptr [rsp - {needed}], 0", needed = const NEEDED, options(readonly, nostack)) };
    // A program that executes itself step by step has a SIGTRAP after each instruction, which would end it if it were blocked.
    set_mask(if flags() & TRAP_FLAG == 0 { ALL } else { ALL & !(1 << (SIGTRAP - 1)) })
}

// A function of its own, whose frame is described while the flags are on the stack.
core::arch::global_asm!(
    ".text",
    ".hidden trapline_flags",
    ".type trapline_flags,@function",
    "trapline_flags:",
    ".cfi_startproc",
    "pushfq",
    ".cfi_adjust_cfa_offset 8",
    "pop rax",
    ".cfi_adjust_cfa_offset -8",
    "ret",
    ".cfi_endproc",
    ".size trapline_flags, .-trapline_flags",
);

unsafe extern "C" {
    /// The processor's flags.
    #[link_name = "trapline_flags"]
    safe fn flags() -> u64;
}

const TRAP_FLAG: u64 = 0x100;
const SIGTRAP: u32 = 5;

/// Sets the mask of blocked signals, and returns what it was.
pub fn set_mask(mask: u64) -> u64 {
    let mut old = 0u64;
    // SAFETY: the kernel's sigset_t has 8 bytes (SIG_SETMASK).
    unsafe { call(SIGPROCMASK, [2, &raw const mask as usize, &raw mut old as usize, 8, 0, 0]) };
    old
}

/// Whether 8 bytes at an address can be read. The kernel copies the set before it finds that there is no such `how`.
pub fn is_readable(address: u64) -> bool {
    // SAFETY: nothing is written.
    unsafe { call(SIGPROCMASK, [usize::MAX, address as usize, 0, 8, 0, 0]) == EINVAL }
}

/// Whether 8 bytes at an address can be written, which may have any value then.
pub fn is_writable(address: u64) -> bool {
    // SAFETY: so says the caller of what is there; no mask changes.
    unsafe { call(SIGPROCMASK, [0, 0, address as usize, 8, 0, 0]) == 0 }
}

/// The kernel's struct sigaction.
#[derive(Clone, Copy, Default)]
#[repr(C)]
pub struct KernelAction {
    pub handler: u64,
    pub flags: u64,
    pub restorer: u64,
    pub mask: u64,
}

/// Sets what a signal does, and returns what it did.
///
/// # Safety
/// The handler is one.
pub unsafe fn set_action(signal: u32, action: &KernelAction) -> KernelAction {
    let mut old = KernelAction::default();
    let a = [signal as usize, core::ptr::from_ref(action) as usize, &raw mut old as usize, 8, 0, 0];
    // SAFETY: both have the kernel's layout.
    unsafe { call(SIGACTION, a) };
    old
}

/// What a signal does.
pub fn action(signal: u32) -> KernelAction {
    let mut now = KernelAction::default();
    // SAFETY: the answer has the kernel's layout.
    unsafe { call(SIGACTION, [signal as usize, 0, &raw mut now as usize, 8, 0, 0]) };
    now
}

/// The time stamp counter once everything before it has been done: else the processor reads it while it still waits for memory, such as the
/// word by which another thread hands over a block.
#[inline(always)]
pub fn tsc_in_order() -> u64 {
    // SAFETY: it changes nothing.
    unsafe { core::arch::x86_64::_mm_lfence() };
    tsc()
}

/// The processor, as the kernel has it beside the time stamp counter (`vdso_encode_cpunode`, arch/x86/include/asm/segment.h).
#[inline(always)]
pub fn cpu() -> u32 {
    let mut number = 0;
    // SAFETY: it changes nothing, and any program may do it that may read the counter.
    unsafe { core::arch::x86_64::__rdtscp(&mut number) };
    number & 0xfff
}

/// The time stamp counter.
#[inline(always)]
pub fn tsc() -> u64 {
    // SAFETY: any program may read it, or stubs would not be used.
    unsafe { core::arch::x86_64::_rdtsc() }
}
