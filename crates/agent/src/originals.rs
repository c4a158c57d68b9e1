//! Where the originals of hooked functions go on.

use abi::message::{HOOKS, Hook};
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicU32, AtomicU64};

/// 1: the original was noted in this session.
static NOTED: [AtomicU32; HOOKS] = [const { AtomicU32::new(0) }; HOOKS];
pub static ORIGINALS: [AtomicU64; HOOKS] = [const { AtomicU64::new(0) }; HOOKS];

/// Where the originals' addresses are.
pub fn address() -> u64 {
    ORIGINALS.as_ptr() as u64
}

/// Notes where an original goes on. The first one of each hook is kept: copies of a function (of libgcc, in the program and in a library)
/// do the same, and the first is in a module that stays.
pub fn set(hook: u32, address: u64) {
    if let Some(original) = ORIGINALS.get(hook as usize) {
        let noted = NOTED.get(hook as usize).is_some_and(|n| n.swap(1, Relaxed) != 0);
        if !noted {
            original.store(address, Release);
        }
    }
}

/// Where `free` of libc begins.
static FREE_OF_LIBC: AtomicU64 = AtomicU64::new(0);

/// Notes where `free` of libc begins.
pub fn set_free_of_libc(start: u64) {
    FREE_OF_LIBC.store(start, Relaxed);
}

/// Where `free` of libc begins; 0: it is not hooked.
pub fn free_of_libc() -> u64 {
    FREE_OF_LIBC.load(Relaxed)
}

/// Whether functions lead here.
pub fn are_in() -> bool {
    NOTED.iter().any(|n| n.load(Relaxed) != 0)
}

/// Where the original of a hook goes on; 0: it has none.
pub fn original(hook: Hook) -> u64 {
    ORIGINALS.get(hook as usize).map_or(0, |o| o.load(Acquire))
}

/// The session has ended: the next one notes its own originals. Those of this one stay until then, for threads that are in a hook.
pub fn end() {
    NOTED.iter().for_each(|n| n.store(0, Relaxed));
}
