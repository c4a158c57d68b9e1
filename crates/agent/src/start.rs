//! The beginning: the constructor, which the loader runs before the program. It takes what belongs to the agent out of the
//! environment in place, so that the program sees the environment that its user gave. It has a stack of its own: what it would leave below
//! the loader's frames, programs that read variables which they have not initialised would find there.

use crate::{areas, args, calls, child, hooks, kernel, memory, own, probes, session, slots, slow, talk};
use abi::message::{Reason, SLOWS, Slow};
use core::arch::global_asm;
use core::cell::UnsafeCell;

const PRELOAD: &[u8] = b"LD_PRELOAD=";
const VARIABLE: &[u8] = b"TRAPLINE_AGENT=";
const _: () = assert!(VARIABLE.len() == abi::SOCKET.len() + 1);

#[used]
#[unsafe(link_section = ".init_array")]
static CONSTRUCTOR: unsafe extern "C" fn(u64, u64, u64) = trapline_constructor;

unsafe extern "C" {
    fn trapline_constructor(count: u64, arguments: u64, environment: u64);
}

global_asm!(
    ".text",
    ".globl trapline_constructor",
    ".hidden trapline_constructor",
    ".type trapline_constructor,@function",
    "trapline_constructor:",
    ".cfi_startproc",
    "push rbp",
    ".cfi_adjust_cfa_offset 8",
    ".cfi_rel_offset rbp, 0",
    "mov rbp, rsp",
    ".cfi_def_cfa_register rbp",
    "lea rsp, [rip + {stack} + {size}]",
    "call {constructor}",
    "mov rsp, rbp",
    "pop rbp",
    ".cfi_def_cfa rsp, 8",
    "ret",
    ".cfi_endproc",
    ".size trapline_constructor, .-trapline_constructor",
    stack = sym STACK,
    size = const STACK_SIZE,
    constructor = sym constructor,
);

const STACK_SIZE: usize = 64 << 10;

#[repr(C, align(64))]
struct Stack(UnsafeCell<[u8; STACK_SIZE]>);

// SAFETY: only the constructor uses it, which runs once, in the only thread.
unsafe impl Sync for Stack {}

/// The constructor's. Its deepest frames take a few KB.
static STACK: Stack = Stack(UnsafeCell::new([0; STACK_SIZE]));

extern "C" fn constructor(count: u64, arguments: u64, environment: u64) {
    let mask = kernel::block();
    talk::note_code(&slow_code(), &hooks::addresses());
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
    if child::begin() && areas::begin() && slots::begin() {
        hooks::begin();
        session::begin(true);
        session::ask(Reason::Start);
    }
}

/// Where the slow code is, for the collector.
fn slow_code() -> [u64; SLOWS] {
    let mut out = [0; SLOWS];
    let mut set = |slow: Slow, code: &u8| {
        if let Some(place) = out.get_mut(slow as usize) {
            *place = core::ptr::from_ref(code) as u64;
        }
    };
    let [chunk, enter, exit, high, late, count] = slow::code();
    set(Slow::Chunk, chunk);
    set(Slow::Enter, enter);
    set(Slow::Exit, exit);
    set(Slow::High, high);
    set(Slow::Late, late);
    set(Slow::Count, count);
    let [call, left] = calls::code();
    set(Slow::Call, call);
    set(Slow::Return, left);
    let [arguments, result] = args::code();
    set(Slow::Arguments, arguments);
    set(Slow::Result, result);
    set(Slow::Probe, probes::code());
    out
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
        let (path, rest) = (list.get(..end).unwrap_or(&[]), list.get(end + 1..).unwrap_or(&[]));
        let taken = own::take(name, path);
        let (rest_len, own_len) = (rest.len(), path.len());
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
    let start = own::stat_field(28)?;
    // SAFETY: the stack's beginning stays as it is while the process runs this program.
    unsafe {
        let count = if kernel::is_readable(start) { memory::load(start) } else { return None };
        let environment = start.wrapping_add(8 * count.wrapping_add(2));
        (count < 1 << 32 && kernel::is_readable(environment - 8) && memory::load(environment - 8) == 0)
            .then_some(environment)
    }
}
