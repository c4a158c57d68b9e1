//! longjmp(3): the calls that it leaves end before it jumps.

use crate::memory::load;
use crate::shadow;
use crate::thread::local;
use core::arch::asm;
use core::sync::atomic::Ordering::Relaxed;

/// Where a jmp_buf of glibc and musl has the stack pointer.
const STACK_POINTER: u64 = 48;
/// Addresses of programs are below.
const ADDRESSES: u64 = 1 << 47;

/// longjmp(environment, value).
///
/// # Safety
/// As of libc's.
pub unsafe extern "C" fn before(environment: u64) {
    let local = local();
    if local.top.load(Relaxed) == 0 || local.busy.load(Relaxed) != 0 {
        return;
    }
    // SAFETY: the program's own jmp_buf, which the original reads.
    let word = unsafe { load(environment + STACK_POINTER) };
    // musl has it as it is, glibc mangles it (PTR_MANGLE).
    let plain = word.rotate_right(17) ^ pointer_guard();
    shadow::leave(local, if plain < ADDRESSES && plain.is_multiple_of(8) { plain } else { word });
}

/// What glibc mangles pointers with.
fn pointer_guard() -> u64 {
    let guard: u64;
    // SAFETY: a word of the thread's descriptor, in both libraries.
    unsafe { asm!("mov {}, qword ptr fs:[0x30]", out(reg) guard, options(nostack, pure, readonly)) };
    guard
}
