//! The code that carries out a system call for a patched instruction, and records it. It is never run here: its bytes are copied to
//! [`super::CODE`] in the traced process.
//!
//! ```text
//!  stub ─► entry ─► a slot? a row? room? ─ no ─► raw: the call is made outside of this code, and stops at the ptracer
//!                    │ captures of entry, time
//!                    ▼
//!                  site: syscall
//!                    │ time, captures of exit, the record is published
//!                    ▼
//!                  behind the patched instruction
//! ```
//!
//! It has no stack and leaves nothing in memory but in the thread's slot, which `gs` leads to. At `site` all registers but rcx and r11, which
//! the instruction changes anyway, are the program's, and so are they behind it. No handler of signals runs on top of it: the
//! ptracer takes a thread out of it before it delivers one. It reads the program's memory without a look at whether that is there: the
//! ptracer has a thread that faults go on at the next place that is made for that.

use super::{
    CODE_LEN, CONTROL, EXIT, LITTLE, MAGIC, MMSGHDR, PART_LEN, RECORD, RING_AT, ROOM, ROW_BITS, ROWS, ROWS_AT, SLOTS,
    descriptor, op, slot,
};
use core::arch::global_asm;

global_asm!(
    include_str!("code.s"),
    include_str!("descriptor.s"),
    include_str!("messages.s"),
    include_str!("setup.s"),
    magic_at = const slot::MAGIC,
    tail = const slot::TAIL,
    head = const slot::HEAD,
    off = const slot::OFF,
    ring = const slot::RING,
    cur = const slot::CUR,
    state = const slot::STATE,
    ret = const slot::RET,
    raw = const slot::RAW,
    rax = const slot::RAX,
    flags = const slot::FLAGS,
    r11 = const slot::R11,
    link = const slot::LINK,
    first = const slot::FIRST,
    last = const slot::LAST,
    last_end = const slot::LAST_END,
    row_bits = const ROW_BITS,
    magic = const MAGIC,
    rows = const ROWS,
    rows_at = const ROWS_AT,
    room = const ROOM,
    little = const LITTLE,
    again = const slot::AGAIN,
    record = const RECORD,
    exit = const EXIT,
    string = const op::STRING,
    fixed = const op::FIXED,
    result = const op::RESULT,
    argument = const op::ARGUMENT,
    unsigned = const op::UNSIGNED,
    bits = const op::BITS,
    asked = const op::ASKED,
    to = const slot::TO,
    from = const slot::FROM,
    saved = const slot::SAVED,
    ring_at = const RING_AT,
    gettid = const libc::SYS_gettid,
    readv = const libc::SYS_process_vm_readv,
    field = const op::FIELD,
    each = const op::EACH,
    descriptor = const op::DESCRIPTOR,
    may = const slot::MAY,
    name_end = const slot::NAME_END,
    element = const op::FIRST_OF_TWO,
    directory = const op::DIRECTORY,
    passed = const op::PASSED,
    message = const op::MESSAGE,
    next = const op::NEXT,
    few = const op::FEW,
    body = const op::BODY,
    unit = const op::UNIT.trailing_zeros(),
    of_message = const op::OF_MESSAGE,
    message_at = const slot::MESSAGE,
    messages_left = const slot::MESSAGES,
    mm_len = const MMSGHDR,
    m_iov_len = const core::mem::offset_of!(libc::msghdr, msg_iovlen),
    m_control_len = const core::mem::offset_of!(libc::msghdr, msg_controllen),
    most_iov = const libc::UIO_MAXIOV,
    most_control = const CONTROL,
    m_len = const size_of::<libc::msghdr>(),
    m_control = const core::mem::offset_of!(libc::msghdr, msg_control),
    c_data = const size_of::<libc::cmsghdr>(),
    rights = const libc::SCM_RIGHTS,
    d_fd = const descriptor::FD,
    d_stat = const descriptor::STAT,
    d_mode = const descriptor::MODE,
    d_socket = const descriptor::SOCKET,
    d_local = const descriptor::LOCAL,
    d_peer = const descriptor::PEER,
    d_address = const descriptor::ADDRESS,
    d_path = const descriptor::PATH,
    at_fdcwd = const libc::AT_FDCWD,
    f_getfd = const libc::F_GETFD,
    s_ifmt = const libc::S_IFMT,
    s_ifsock = const libc::S_IFSOCK,
    sol_socket = const libc::SOL_SOCKET,
    so_domain = const libc::SO_DOMAIN,
    so_type = const libc::SO_TYPE,
    so_protocol = const libc::SO_PROTOCOL,
    fcntl = const libc::SYS_fcntl,
    fstat = const libc::SYS_fstat,
    getsockopt = const libc::SYS_getsockopt,
    getsockname = const libc::SYS_getsockname,
    getpeername = const libc::SYS_getpeername,
    readlinkat = const libc::SYS_readlinkat,
    slots = const SLOTS,
    slots_len = const PART_LEN,
    code_len = const CODE_LEN,
    mmap = const libc::SYS_mmap,
    close = const libc::SYS_close,
    prctl = const libc::SYS_prctl,
    read_write = const libc::PROT_READ | libc::PROT_WRITE,
    read_execute = const libc::PROT_READ | libc::PROT_EXEC,
    shared = const libc::MAP_SHARED | libc::MAP_FIXED_NOREPLACE,
    anonymous = const libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE,
);

unsafe extern "C" {
    safe static trapline_calls: u8;
    safe static trapline_calls_before: u8;
    safe static trapline_calls_behind: u8;
    safe static trapline_calls_site: u8;
    safe static trapline_calls_after: u8;
    safe static trapline_calls_words: u8;
    safe static trapline_calls_rest: u8;
    safe static trapline_calls_captured: u8;
    safe static trapline_calls_count: u8;
    safe static trapline_calls_counted: u8;
    safe static trapline_calls_setup: u8;
    safe static trapline_calls_end: u8;
}

fn address(of: &u8) -> u64 {
    core::ptr::from_ref(of) as u64
}

fn offset(of: &u8) -> u64 {
    address(of) - address(&trapline_calls)
}

/// Its bytes, as they are best for this machine.
pub(super) fn bytes() -> Vec<u8> {
    let mut bytes = plain().to_vec();
    if has_rdpid() {
        for at in [offset(&trapline_calls_before), offset(&trapline_calls_behind)] {
            bytes[at as usize..][..APART.len()].copy_from_slice(&APART);
        }
    }
    bytes
}

/// Where rdtscp and a nop of three bytes are, `rdtsc; rdpid rcx`: rdtscp waits for all instructions before it, and takes twice as long.
const APART: [u8; 6] = [0x0f, 0x31, 0xf3, 0x0f, 0xc7, 0xf9];

/// Whether the processor has rdpid (CPUID leaf 7, bit 22 of ecx).
fn has_rdpid() -> bool {
    let cpuid = core::arch::x86_64::__cpuid_count;
    // Newer compilers know that it is safe.
    #[allow(unused_unsafe)]
    // SAFETY: every x86-64 processor has the instruction; leaf 0 says which others there are.
    unsafe {
        cpuid(0, 0).eax >= 7 && cpuid(7, 0).ecx & 1 << 22 != 0
    }
}

/// Its bytes, as they are in this program.
fn plain() -> &'static [u8] {
    let len = offset(&trapline_calls_end) as usize;
    // SAFETY: the bytes between the two labels are in one read-only section of the program.
    unsafe { core::slice::from_raw_parts(&raw const trapline_calls, len) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_and_processor_are_read_in_two_places() {
        for at in [offset(&trapline_calls_before), offset(&trapline_calls_behind)] {
            let there = &plain()[at as usize..][..APART.len()];
            assert_eq!(there, [0x0f, 0x01, 0xf9, 0x0f, 0x1f, 0x00]);
        }
    }
}

/// Where a thread is in the code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    /// At its first instruction, which reads the slot.
    Entry,
    /// Before the call.
    Before,
    /// At the instruction that makes the call.
    Site,
    /// At the one behind it.
    After,
    /// Behind that.
    Behind,
}

/// Where the part that makes the memory begins, and where it ends, by its offset.
pub(super) fn setup() -> (u64, u64) {
    (offset(&trapline_calls_setup), offset(&trapline_calls_end))
}

/// Where an address is in the code, by its offset from [`super::CODE`]; none: not in it.
pub(super) fn at(pc: u64) -> Option<At> {
    let site = offset(&trapline_calls_site);
    let after = offset(&trapline_calls_after);
    if pc >= offset(&trapline_calls_end) {
        return None;
    }
    Some(match pc {
        0 => At::Entry,
        _ if pc < site => At::Before,
        _ if pc == site => At::Site,
        _ if pc == after => At::After,
        _ => At::Behind,
    })
}

/// Where a thread goes on that has faulted at an offset because of what the program has in its registers or memory.
pub(super) fn fixup(pc: u64) -> Option<u64> {
    let (words, rest) = (offset(&trapline_calls_words), offset(&trapline_calls_rest));
    let captured = offset(&trapline_calls_captured);
    let (count, counted) = (offset(&trapline_calls_count), offset(&trapline_calls_counted));
    if (words..rest).contains(&pc) {
        Some(rest)
    } else if (rest..captured).contains(&pc) {
        Some(captured)
    } else if (count..counted).contains(&pc) {
        Some(counted)
    } else {
        None
    }
}
