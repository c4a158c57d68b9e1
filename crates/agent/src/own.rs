//! What the agent knows of itself and its process: the collector's socket, its own file, `/proc/self/stat`.

use crate::kernel;
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};

/// The longest name of a socket.
const NAME: usize = 104;
/// The longest path of the agent's file.
pub const PATH: usize = 4096;

/// Texts that are set by the constructor, and in an injected agent at the beginning of each session. They are in memory of their own, which
/// is never written again: a thread may be stopped while it uses one.
struct Text(AtomicU64);

/// Bytes of a text's memory: its length, its bytes, NUL.
const ROOM: u64 = 8192;

/// Texts that were replaced.
static LEFT: [AtomicU64; 16] = [const { AtomicU64::new(0) }; 16];

impl Text {
    /// Replaces the text, if that is another one. One thread only.
    fn set(&self, text: &[u8], most: usize) -> bool {
        if text == self.get() && self.0.load(Relaxed) != 0 {
            return true;
        }
        // One byte stays for NUL.
        let Some(at) = (text.len() < most).then(|| kernel::reserve(ROOM)).flatten() else { return false };
        // SAFETY: the memory is new, zeros, and large enough.
        unsafe {
            (at as *mut usize).write(text.len());
            core::ptr::copy_nonoverlapping(text.as_ptr(), (at + 8) as *mut u8, text.len());
        }
        let before = self.0.swap(at, AcqRel);
        if let Some(place) = LEFT.iter().find(|l| l.load(Relaxed) == 0) {
            place.store(before, Relaxed);
        }
        true
    }

    fn get(&self) -> &'static [u8] {
        let at = self.0.load(Acquire);
        if at == 0 {
            return &[];
        }
        // SAFETY: this many bytes have been written, for good: `free` is for times when nobody uses any.
        unsafe { core::slice::from_raw_parts((at + 8) as *const u8, (at as *const usize).read()) }
    }
}

/// Unmaps texts that were replaced.
///
/// # Safety
/// No thread is in the agent.
pub unsafe fn free() {
    for at in LEFT.iter().map(|l| l.swap(0, Relaxed)).filter(|at| *at != 0) {
        // SAFETY: so says the caller.
        unsafe { kernel::unmap(at, ROOM) };
    }
}

static SOCKET: Text = Text(AtomicU64::new(0));
static AGENT: Text = Text(AtomicU64::new(0));

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
    SOCKET.set(socket, NAME) && AGENT.set(path, PATH)
}

/// Notes the socket and the agent's file of a session. All other threads are stopped.
pub fn name(socket: &[u8], path: &[u8]) -> bool {
    AGENT.set(path, PATH) && SOCKET.set(socket, NAME)
}

/// How many threads the process has.
pub fn threads() -> Option<u64> {
    stat_field(20)
}

/// Whether this thread is traced, as it is while the collector has stopped all others; true where nothing says so.
pub fn is_held() -> bool {
    status(c"/proc/thread-self/status", b"\nTracerPid:\t", 10) != Some(0)
}

/// Whether any thread of the process has this signal pending.
pub fn has_pending(signal: u32) -> bool {
    const HEADER: usize = 19;
    const TASK: &[u8] = b"/proc/self/task/";
    const STATUS: &[u8] = b"/status\0";
    let fd = kernel::open_own(c"/proc/self/task", kernel::O_RDONLY);
    if fd < 0 {
        return false;
    }
    let mut found = false;
    let mut buffer = [0u8; 2048];
    while let Some(mut entries) =
        usize::try_from(kernel::getdents(fd as i32, &mut buffer)).ok().and_then(|n| buffer.get(..n))
    {
        if entries.is_empty() {
            break;
        }
        // struct linux_dirent64: inode, offset, length, type, name (include/linux/dirent.h).
        while let Some(len) = entries.get(16..18).and_then(|l| l.first_chunk()).map(|l| u16::from_ne_bytes(*l)) {
            let Some((entry, rest)) = entries.split_at_checked(len.into()) else { break };
            let name = entry.get(HEADER..).unwrap_or_default().split(|b| *b == 0).next().unwrap_or_default();
            let mut path = [0u8; 48];
            let parts = TASK.iter().chain(name).chain(STATUS);
            path.iter_mut().zip(parts).for_each(|(to, from)| *to = *from);
            if name.first().is_some_and(u8::is_ascii_digit)
                && let Ok(path) = core::ffi::CStr::from_bytes_until_nul(&path)
            {
                found |= status(path, b"\nSigPnd:\t", 16).is_some_and(|set| set & 1 << (signal - 1) != 0);
            }
            entries = rest;
        }
    }
    kernel::close(fd as i32);
    found
}

/// The beginning of a file of the kernel's.
fn read<'b>(path: &core::ffi::CStr, buffer: &'b mut [u8]) -> Option<&'b [u8]> {
    let fd = kernel::open_own(path, kernel::O_RDONLY);
    if fd < 0 {
        return None;
    }
    let len = kernel::read(fd as i32, buffer);
    kernel::close(fd as i32);
    buffer.get(..usize::try_from(len).ok()?)
}

/// A number behind a name in a thread's status.
fn status(path: &core::ffi::CStr, name: &[u8], base: u32) -> Option<u64> {
    let mut buffer = [0u8; 4096];
    let text = read(path, &mut buffer)?;
    let at = text.windows(name.len()).position(|w| w == name)? + name.len();
    let digits = text.get(at..)?.iter().map_while(|b| char::from(*b).to_digit(base));
    Some(digits.fold(0, |n, digit| n.wrapping_mul(base.into()).wrapping_add(digit.into())))
}

/// A number of `/proc/self/stat`, by its place in proc(5), from 4 on.
pub fn stat_field(field: usize) -> Option<u64> {
    let mut buffer = [0u8; 1024];
    let text = read(c"/proc/self/stat", &mut buffer)?;
    // The name, the second one, may have anything in it, but no more than the last parenthesis.
    let rest = text.get(text.iter().rposition(|b| *b == b')')? + 2..)?;
    let digits = rest.split(|b| *b == b' ').nth(field - 3)?;
    digits
        .iter()
        .try_fold(0u64, |n, d| d.is_ascii_digit().then(|| n.wrapping_mul(10).wrapping_add(u64::from(d - b'0'))))
}
