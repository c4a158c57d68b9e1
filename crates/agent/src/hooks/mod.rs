//! Functions that stand in for some of libc's, libgcc's and the loader's. Each is reached by a patch of the function's entry, and calls
//! the original by its relocated beginning.
//!
//! Some only have something done *before* the original: those save every register, and jump to it, so that the return address stays
//! where it is. That matters for clone(2), which returns twice.

mod exec;
mod frames;
mod jumps;
pub mod signals;

use crate::kernel;
use crate::permits::{Filter, GROWS, READS, RECORDS, TALK};
use crate::thread::{ABANDONED, Local, local};
use crate::{child, chunks, heap, originals, permits, record, session, shadow, shared, slots, vectors};
use abi::message::{HOOKS, Hook};
use abi::permits::{GROW_CALLS, READ_CALLS, SLOW_CALLS, TALK_CALLS};
use core::arch::global_asm;
use core::sync::atomic::Ordering::Relaxed;

/// Takes over what the process had before the agent came.
pub fn adopt() {
    signals::adopt();
}

/// The session has ended.
pub fn end() {
    signals::give_back();
    originals::end();
}

/// What hooks need before the first patch.
pub fn begin() {
    signals::begin();
}

/// The addresses, for the collector. There is none for vfork: its child runs on in the parent's memory, on the parent's thread data.
pub fn addresses() -> [u64; HOOKS] {
    let mut out = [0; HOOKS];
    let mut set = |hook: Hook, code: u64| {
        if let Some(place) = out.get_mut(hook as usize) {
            *place = code;
        }
    };
    set(Hook::FindFde, frames::find as *const () as u64);
    set(Hook::Backtrace, frames::backtrace as *const () as u64);
    set(Hook::Sigaction, signals::sigaction as *const () as u64);
    set(Hook::Execve, exec::execve as *const () as u64);
    set(Hook::Execveat, exec::execveat as *const () as u64);
    set(Hook::Fexecve, exec::fexecve as *const () as u64);
    set(Hook::Fork, &raw const trapline_fork as u64);
    set(Hook::ForkAsyncSafe, &raw const trapline_fork_async_safe as u64);
    set(Hook::Clone, &raw const trapline_clone as u64);
    set(Hook::Syscall, &raw const trapline_syscall as u64);
    set(Hook::Prctl, &raw const trapline_prctl as u64);
    set(Hook::Modules, &raw const trapline_modules as u64);
    set(Hook::Longjmp, &raw const trapline_longjmp as u64);
    set(Hook::Exit, &raw const trapline_process_exit as u64);
    set(Hook::LongjmpChecked, &raw const trapline_longjmp_checked as u64);
    heap::addresses(&mut out);
    out
}

unsafe extern "C" {
    safe static trapline_fork: u8;
    safe static trapline_fork_async_safe: u8;
    safe static trapline_clone: u8;
    safe static trapline_syscall: u8;
    safe static trapline_prctl: u8;
    safe static trapline_modules: u8;
    safe static trapline_longjmp: u8;
    safe static trapline_longjmp_checked: u8;
    safe static trapline_process_exit: u8;
}

macro_rules! before {
    ($($name:literal, $hook:expr => $function:path $(, $argument:literal)?;)*) => {$(
        global_asm!(
            ".text",
            concat!(".globl ", $name), concat!(".hidden ", $name), concat!(".type ", $name, ",@function"),
            ".balign 16",
            concat!($name, ":"),
            ".cfi_startproc",
            // The original's address goes where a ret takes it from, so that no register is needed.
            "push rax",
            ".cfi_adjust_cfa_offset 8",
            "push rbp",
            ".cfi_adjust_cfa_offset 8",
            ".cfi_rel_offset rbp, 0",
            "mov rbp, rsp",
            ".cfi_def_cfa_register rbp",
            "push rax", "push rcx", "push rdx", "push rsi", "push rdi", "push r8", "push r9", "push r10", "push r11",
            vectors::save!(),
            "mov rax, [rip + {originals} + 8*{hook}]",
            "mov [rbp+8], rax",
            $($argument,)?
            "call {function}",
            vectors::restore!(),
            "lea rsp, [rbp-72]",
            "pop r11", "pop r10", "pop r9", "pop r8", "pop rdi", "pop rsi", "pop rdx", "pop rcx", "pop rax",
            "pop rbp",
            ".cfi_def_cfa rsp, 16",
            ".cfi_restore rbp",
            "ret",
            ".cfi_endproc",
            concat!(".size ", $name, ", .-", $name),
            originals = sym crate::originals::ORIGINALS,
            hook = const $hook as usize,
            function = sym $function,
        );
    )*};
}

before! {
    "trapline_fork", Hook::Fork => before_fork;
    "trapline_fork_async_safe", Hook::ForkAsyncSafe => before_fork;
    "trapline_clone", Hook::Clone => before_clone;
    "trapline_syscall", Hook::Syscall => before_syscall, "lea rdi, [rbp-72]";
    "trapline_prctl", Hook::Prctl => before_prctl;
    "trapline_modules", Hook::Modules => modules_changed;
    "trapline_longjmp", Hook::Longjmp => jumps::before;
    "trapline_longjmp_checked", Hook::LongjmpChecked => jumps::before;
    "trapline_process_exit", Hook::Exit => before_exit;
}

/// A child would write to the chunk of its parent's thread: the thread gives it up before. And its memory must not look abandoned there.
extern "C" fn before_fork() {
    let local = local();
    if permits::records() {
        child::before_fork();
        slots::at(local.place.load(Relaxed)).into_iter().for_each(|slot| slot.forks());
    }
    heap::before_fork(local);
    if local.chunk.load(Relaxed) != 0 {
        let mask = permits::block();
        chunks::give_up(local);
        permits::unblock(mask);
    }
}

/// The process ends.
extern "C" fn before_exit() {
    record::write_open(local());
}

/// clone(function, stack, flags, …).
extern "C" fn before_clone(_: u64, _: u64, flags: u64) {
    if flags & kernel::CLONE_VM == 0 {
        before_fork();
    }
}

/// The registers of a call, as they are saved: what is written here the original gets.
#[repr(C)]
struct Saved {
    r11: u64,
    r10: u64,
    r9: u64,
    r8: u64,
    rdi: u64,
    rsi: u64,
    rdx: u64,
    rcx: u64,
    rax: u64,
}

/// syscall(number, …).
extern "C" fn before_syscall(saved: &mut Saved) {
    let Saved { rdi: number, rsi: first, rdx: second, rcx: third, r8: fourth, r9: fifth, .. } = *saved;
    match number as usize {
        // It is done: the call that remains changes nothing.
        kernel::SIGACTION if signals::by_number(first, second, third, fourth) => (saved.rdx, saved.rcx) = (0, 0),
        kernel::FORK => before_fork(),
        kernel::EXIT_GROUP => before_exit(),
        kernel::PRCTL => before_prctl(first, second, third),
        kernel::SECCOMP if first == SECCOMP_SET_MODE_STRICT => lose_all(local()),
        kernel::SECCOMP if first == SECCOMP_SET_MODE_FILTER => add_filter(local(), third),
        kernel::CLONE if first & kernel::CLONE_VM == 0 => before_fork(),
        kernel::CLONE3 if flags_of(first) & kernel::CLONE_VM == 0 => before_fork(),
        // Where it succeeds, it does not come back; else the program's own call fails in the same way.
        // SAFETY: so says the program, in either case.
        kernel::EXECVE => unsafe { exec::attempt(kernel::AT_FDCWD, first, second, third, 0, false) },
        // SAFETY: as above.
        kernel::EXECVEAT => unsafe { exec::attempt(first as i32, second, third, fourth, fifth as usize, true) },
        _ => {}
    }
}

const SECCOMP_SET_MODE_STRICT: u64 = 0;
const SECCOMP_SET_MODE_FILTER: u64 = 1;

/// prctl(option, …).
extern "C" fn before_prctl(option: u64, first: u64, second: u64) {
    const PR_SET_SECCOMP: u32 = 22;
    const SECCOMP_MODE_STRICT: u64 = 1;
    const SECCOMP_MODE_FILTER: u64 = 2;
    const PR_SET_TSC: u32 = 26;
    const PR_TSC_SIGSEGV: u64 = 2;
    const PR_SET_SYSCALL_USER_DISPATCH: u32 = 59;
    match (option as u32, first) {
        (PR_SET_SECCOMP, SECCOMP_MODE_STRICT) | (PR_SET_TSC, PR_TSC_SIGSEGV) => lose_all(local()),
        (PR_SET_SECCOMP, SECCOMP_MODE_FILTER) => add_filter(local(), second),
        // The agent's calls would come to the program's handler of SIGSYS.
        (PR_SET_SYSCALL_USER_DISPATCH, mode) if mode != 0 => lose_all(local()),
        _ => {}
    }
}

/// The thread will be allowed next to nothing, or no time stamps (SECCOMP_MODE_STRICT, PR_TSC_SIGSEGV), or its calls become signals
/// (PR_SET_SYSCALL_USER_DISPATCH): its calls are no longer observed, and it returns to the program itself, not to stubs.
fn lose_all(local: &Local) {
    if local.busy.load(Relaxed) != ABANDONED {
        // Another thread may have come here before: then signals are not blocked, and their handlers find the thread abandoned.
        let mask = permits::block();
        chunks::give_up(local);
        shadow::abandon(local);
        permits::unblock(mask);
    }
    permits::forbid(RECORDS | TALK);
}

/// The program installs a filter: struct sock_fprog.
fn add_filter(local: &Local, program: u64) {
    if !permits::records() {
        return;
    }
    let Some(filter) = Filter::at(program) else { return };
    if filter.refuses(&READ_CALLS) {
        permits::forbid(READS);
    }
    if filter.refuses(&GROW_CALLS) {
        shared::map_all();
        permits::forbid(GROWS);
    }
    if filter.refuses(&SLOW_CALLS) {
        lose_all(local);
    } else if filter.refuses(&TALK_CALLS) {
        permits::forbid(TALK);
    }
}

/// The first word of struct clone_args. What cannot be read, the kernel refuses too.
fn flags_of(arguments: u64) -> u64 {
    if !kernel::is_readable(arguments) {
        return kernel::CLONE_VM;
    }
    // SAFETY: it is readable, and the program's.
    unsafe { crate::memory::load(arguments) }
}

/// The loader says that modules come or go.
extern "C" fn modules_changed() {
    if !permits::talk() {
        return;
    }
    // A child of vfork has its parent's modules, and a child of fork asks for memory first.
    if child::owner() == kernel::getpid() as u32 {
        let mask = kernel::block();
        session::modules_changed();
        kernel::set_mask(mask);
    }
}
