//! The beginning: the constructor, which the loader runs before the program. It takes what belongs to the agent out of the
//! environment in place, so that the program sees the environment that its user gave.

use crate::{areas, chunks, hooks, kernel, memory, slots, talk};
use abi::message::Reason;
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

// SAFETY: `bytes` is written before `len` is set, by one thread, and never again.
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

    /// As [`Text::set`], where there may be a text already. All other threads are stopped.
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

/// Notes the socket and the agent's file of a session. All other threads are stopped.
pub fn name(socket: &[u8], path: &[u8]) -> bool {
    AGENT.replace(path) && SOCKET.replace(socket)
}

const PRELOAD: &[u8] = b"LD_PRELOAD=";
const VARIABLE: &[u8] = b"TRAPLINE_AGENT=";
const _: () = assert!(VARIABLE.len() == abi::SOCKET.len() + 1);

#[used]
#[unsafe(link_section = ".init_array")]
static CONSTRUCTOR: extern "C" fn(u64, u64, u64) = constructor;

extern "C" fn constructor(count: u64, arguments: u64, environment: u64) {
    let mask = kernel::block();
    // glibc passes them; musl passes nothing, and the kernel knows where it has put them.
    let given = count > 0 && count < 1 << 32 && environment == arguments.wrapping_add(8 * (count + 1));
    if let Some(environment) = if given { Some(environment) } else { find_environment() } {
        // SAFETY: it is the array of the program's environment, and the program has not begun.
        if unsafe { take_own(environment as *mut *mut u8) } {
            begin();
        }
    }
    kernel::set_mask(mask);
}

fn begin() {
    if chunks::begin() && areas::begin() && slots::begin() {
        hooks::begin();
        talk::ask(Reason::Start);
    }
}

/// Takes the agent's variables out of an environment. True: the process is to be traced.
///
/// # Safety
/// It is an array of strings, all of which may be written.
unsafe fn take_own(environment: *mut *mut u8) -> bool {
    let (mut socket, mut preload) = (None, None);
    // SAFETY: the array ends with a null pointer, strings with NUL; both stay where they are.
    unsafe {
        let mut i = 0;
        while !(*environment.add(i)).is_null() {
            let text = memory::string(*environment.add(i), 1 << 17);
            if text.starts_with(VARIABLE) {
                socket = Some((i, text.get(VARIABLE.len()..).unwrap_or(&[])));
            } else if text.starts_with(PRELOAD) {
                preload = Some((i, text.get(PRELOAD.len()..).unwrap_or(&[])));
            }
            i += 1;
        }
        // Without both, somebody else has set one of them: nothing is changed.
        let (Some((socket_at, name)), Some((preload_at, list))) = (socket, preload) else { return false };
        let end = list.iter().position(|b| matches!(b, b':' | b' ')).unwrap_or(list.len());
        let (own, rest) = (list.get(..end).unwrap_or(&[]), list.get(end + 1..).unwrap_or(&[]));
        let taken = SOCKET.set(name) && AGENT.set(own);
        let (rest_len, own_len) = (rest.len(), own.len());
        let text = *environment.add(preload_at);
        if rest_len > 0 {
            // The user's own entries: `LD_PRELOAD=` moves to before them.
            let skip = own_len + 1;
            core::ptr::copy(text, text.add(skip), PRELOAD.len());
            core::ptr::write_bytes(text, 0, skip);
            *environment.add(preload_at) = text.add(skip);
        } else {
            core::ptr::write_bytes(text, 0, PRELOAD.len() + list.len());
        }
        core::ptr::write_bytes(*environment.add(socket_at), 0, VARIABLE.len() + name.len());
        let (mut from, mut to) = (0, 0);
        loop {
            let text = *environment.add(from);
            if from != socket_at && (from != preload_at || rest_len > 0) {
                *environment.add(to) = text;
                to += 1;
            }
            if text.is_null() {
                break;
            }
            from += 1;
        }
        taken
    }
}

/// The environment's array, from where the kernel says that the stack begins: argument count, arguments, null, environment.
fn find_environment() -> Option<u64> {
    let start = stat_field(28)?;
    // SAFETY: the stack's beginning stays as it is while the process runs this program.
    unsafe {
        let count = if kernel::is_readable(start) { memory::load(start) } else { return None };
        let environment = start.wrapping_add(8 * count.wrapping_add(2));
        (count < 1 << 32 && kernel::is_readable(environment - 8) && memory::load(environment - 8) == 0)
            .then_some(environment)
    }
}

/// How many threads the process has.
pub fn threads() -> Option<u64> {
    stat_field(20)
}

/// A number of `/proc/self/stat`, by its place in proc(5), from 4 on.
fn stat_field(field: usize) -> Option<u64> {
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
