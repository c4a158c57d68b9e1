//! What the agent knows of itself and its process: the collector's socket, its own file, `/proc/self/stat`.

use crate::kernel;
use core::sync::atomic::AtomicUsize;
use core::sync::atomic::Ordering::{Acquire, Release};

/// The longest name of a socket.
const NAME: usize = 104;
/// The longest path of the agent's file.
pub const PATH: usize = 4096;

/// Text that is written by the constructor, and in an injected agent at the beginning of each session.
struct Text<const N: usize> {
    bytes: core::cell::UnsafeCell<[u8; N]>,
    len: AtomicUsize,
}

// SAFETY: `bytes` is written while `len` is 0: by the constructor, or while all other threads are stopped.
unsafe impl<const N: usize> Sync for Text<N> {}

impl<const N: usize> Text<N> {
    const fn new() -> Text<N> {
        Text { bytes: core::cell::UnsafeCell::new([0; N]), len: AtomicUsize::new(0) }
    }

    fn set(&self, text: &[u8]) -> bool {
        // One byte stays for NUL.
        if text.len() >= N || self.len.load(Acquire) != 0 {
            return false;
        }
        // SAFETY: nobody reads the bytes while `len` is 0, and only the constructor writes them.
        unsafe {
            let bytes: *mut u8 = self.bytes.get().cast();
            core::ptr::copy_nonoverlapping(text.as_ptr(), bytes, text.len());
            bytes.add(text.len()).write(0);
        }
        self.len.store(text.len(), Release);
        true
    }

    /// Replaces the text, if there is one. All other threads are stopped.
    fn replace(&self, text: &[u8]) -> bool {
        self.len.store(0, Release);
        text.is_empty() || self.set(text)
    }

    fn get(&self) -> &[u8] {
        // SAFETY: so many bytes have been written, for good.
        unsafe { core::slice::from_raw_parts(self.bytes.get().cast(), self.len.load(Acquire)) }
    }
}

static SOCKET: Text<NAME> = Text::new();
static AGENT: Text<PATH> = Text::new();

/// The collector's socket, as [`abi::SOCKET`] has it.
pub fn socket_name() -> &'static [u8] {
    SOCKET.get()
}

/// The agent's file, as it was in `LD_PRELOAD`. A NUL follows.
pub fn agent_path() -> &'static [u8] {
    AGENT.get()
}

/// Notes the socket and the agent's file from the environment, in the constructor.
pub fn take(socket: &[u8], path: &[u8]) -> bool {
    SOCKET.set(socket) && AGENT.set(path)
}

/// Notes the socket and the agent's file of a session. All other threads are stopped.
pub fn name(socket: &[u8], path: &[u8]) -> bool {
    AGENT.replace(path) && SOCKET.replace(socket)
}

/// How many threads the process has.
pub fn threads() -> Option<u64> {
    stat_field(20)
}

/// A number of `/proc/self/stat`, by its place in proc(5), from 4 on.
pub fn stat_field(field: usize) -> Option<u64> {
    let fd = kernel::open_own(c"/proc/self/stat", kernel::O_RDONLY);
    if fd < 0 {
        return None;
    }
    let mut buffer = [0u8; 1024];
    let len = kernel::read(fd as i32, &mut buffer);
    kernel::close(fd as i32);
    let text = buffer.get(..usize::try_from(len).ok()?)?;
    // The name, the second one, may have anything in it, but no more than the last parenthesis.
    let rest = text.get(text.iter().rposition(|b| *b == b')')? + 2..)?;
    let digits = rest.split(|b| *b == b' ').nth(field - 3)?;
    digits
        .iter()
        .try_fold(0u64, |n, d| d.is_ascii_digit().then(|| n.wrapping_mul(10).wrapping_add(u64::from(d - b'0'))))
}
