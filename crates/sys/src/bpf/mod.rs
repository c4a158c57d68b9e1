//! bpf(2), called directly: maps, programs, links, rings, and information about them.
//!
//! ```text
//!  map · prog · link · info · iter ──► Attr (zeroed bytes, named offsets) ──► call ──► the kernel, or a fake in unit tests
//! ```
//!
//! No object file, no relocation, no skeleton: the generator of the instructions already knows the descriptors. Invariant: every
//! bpf(2) of the process goes through `call`, and every object is a descriptor that its owner closes, so that nothing
//! outlives the process, however it ends, but for what [`pin`] gives a name.

pub mod info;
pub mod iter;
pub mod link;
pub mod map;
pub mod own_ring;
pub mod pin;
pub mod probe;
pub mod prog;
pub mod ring;

#[cfg(test)]
pub(crate) mod fake;

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// Size of the attribute block. Linux 6.18's union has 168 bytes, older ones fewer: a kernel takes any size as long as what
/// it does not know is zero, and nothing here is set beyond.
const ATTR_SIZE: usize = 152;

/// Commands (`enum bpf_cmd`, `include/uapi/linux/bpf.h`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Command {
    MapCreate = 0,
    MapLookup = 1,
    MapUpdate = 2,
    MapDelete = 3,
    MapNextKey = 4,
    ProgLoad = 5,
    ObjectPin = 6,
    ObjectGet = 7,
    ProgTestRun = 10,
    ProgNextId = 11,
    MapNextId = 12,
    ProgById = 13,
    MapById = 14,
    ObjectInfo = 15,
    RawTracepointOpen = 17,
    BtfLoad = 18,
    BtfById = 19,
    MapFreeze = 22,
    BtfNextId = 23,
    MapLookupBatch = 24,
    MapUpdateBatch = 26,
    LinkCreate = 28,
    LinkById = 30,
    LinkNextId = 31,
    EnableStats = 32,
    IterCreate = 33,
}

/// Offsets in `union bpf_attr`, by command.
pub(crate) mod at {
    // MAP_CREATE
    pub const MAP_TYPE: usize = 0;
    pub const MAP_KEY_SIZE: usize = 4;
    pub const MAP_VALUE_SIZE: usize = 8;
    pub const MAP_ENTRIES: usize = 12;
    pub const MAP_FLAGS: usize = 16;
    pub const MAP_INNER_FD: usize = 20;
    pub const MAP_NAME: usize = 28;
    pub const MAP_BTF_FD: usize = 48;
    pub const MAP_KEY_TYPE: usize = 52;
    pub const MAP_VALUE_TYPE: usize = 56;
    // MAP_*_ELEM, MAP_GET_NEXT_KEY, MAP_FREEZE
    pub const ELEM_FD: usize = 0;
    pub const ELEM_KEY: usize = 8;
    pub const ELEM_VALUE: usize = 16;
    pub const ELEM_FLAGS: usize = 24;
    // OBJ_PIN, OBJ_GET
    pub const PIN_PATH: usize = 0;
    pub const PIN_FD: usize = 8;
    // MAP_UPDATE_BATCH, MAP_LOOKUP_BATCH
    pub const BATCH_IN: usize = 0;
    pub const BATCH_OUT: usize = 8;
    pub const BATCH_KEYS: usize = 16;
    pub const BATCH_VALUES: usize = 24;
    pub const BATCH_COUNT: usize = 32;
    pub const BATCH_FD: usize = 36;
    // PROG_LOAD
    pub const PROG_TYPE: usize = 0;
    pub const PROG_COUNT: usize = 4;
    pub const PROG_INSNS: usize = 8;
    pub const PROG_LICENSE: usize = 16;
    pub const PROG_LOG_LEVEL: usize = 24;
    pub const PROG_LOG_SIZE: usize = 28;
    pub const PROG_LOG: usize = 32;
    pub const PROG_FLAGS: usize = 44;
    pub const PROG_NAME: usize = 48;
    pub const PROG_EXPECTED_ATTACH: usize = 68;
    pub const PROG_BTF_FD: usize = 72;
    pub const PROG_FUNC_INFO_SIZE: usize = 76;
    pub const PROG_FUNC_INFO: usize = 80;
    pub const PROG_FUNC_INFO_COUNT: usize = 88;
    pub const PROG_ATTACH_BTF_ID: usize = 108;
    pub const PROG_ATTACH_BTF: usize = 112;
    // PROG_TEST_RUN
    pub const TEST_PROG: usize = 0;
    pub const TEST_RESULT: usize = 4;
    pub const TEST_CONTEXT_SIZE: usize = 40;
    pub const TEST_CONTEXT: usize = 48;
    // *_GET_NEXT_ID, *_GET_FD_BY_ID
    pub const ID: usize = 0;
    pub const NEXT_ID: usize = 4;
    // OBJ_GET_INFO_BY_FD
    pub const INFO_FD: usize = 0;
    pub const INFO_SIZE: usize = 4;
    pub const INFO: usize = 8;
    // RAW_TRACEPOINT_OPEN
    pub const RAW_NAME: usize = 0;
    pub const RAW_PROG: usize = 8;
    // BTF_LOAD
    pub const BTF: usize = 0;
    pub const BTF_LOG: usize = 8;
    pub const BTF_SIZE: usize = 16;
    pub const BTF_LOG_SIZE: usize = 20;
    pub const BTF_LOG_LEVEL: usize = 24;
    // LINK_CREATE
    pub const LINK_PROG: usize = 0;
    pub const LINK_ATTACH: usize = 8;
    pub const LINK_ITER: usize = 16;
    pub const LINK_ITER_SIZE: usize = 24;
    pub const LINK_TARGET: usize = 4;
    pub const LINK_PERF_COOKIE: usize = 16;
    pub const LINK_TRACING_COOKIE: usize = 24;
    pub const LINK_UPROBE_PATH: usize = 16;
    pub const LINK_UPROBE_OFFSETS: usize = 24;
    pub const LINK_UPROBE_COUNTERS: usize = 32;
    pub const LINK_UPROBE_COOKIES: usize = 40;
    pub const LINK_UPROBE_COUNT: usize = 48;
    pub const LINK_UPROBE_FLAGS: usize = 52;
    pub const LINK_UPROBE_PID: usize = 56;
    // ITER_CREATE
    pub const ITER_LINK: usize = 0;
    // ENABLE_STATS
    pub const STATS_TYPE: usize = 0;
}

/// The attribute block of one call: zero but for what is set by name.
#[repr(C, align(8))]
pub(crate) struct Attr([u8; ATTR_SIZE]);

impl Attr {
    pub fn new() -> Attr {
        Attr([0; ATTR_SIZE])
    }

    pub fn u32(mut self, at: usize, value: u32) -> Attr {
        self.0[at..at + 4].copy_from_slice(&value.to_ne_bytes());
        self
    }

    pub fn u64(mut self, at: usize, value: u64) -> Attr {
        self.0[at..at + 8].copy_from_slice(&value.to_ne_bytes());
        self
    }

    pub fn fd(self, at: usize, fd: BorrowedFd) -> Attr {
        self.u32(at, fd.as_raw_fd() as u32)
    }

    /// The address of what the kernel reads.
    pub fn input(self, at: usize, bytes: &[u8]) -> Attr {
        self.u64(at, bytes.as_ptr() as u64)
    }

    /// The address of what the kernel writes.
    pub fn output(self, at: usize, bytes: &mut [u8]) -> Attr {
        self.u64(at, bytes.as_mut_ptr() as u64)
    }

    /// An object's name: at most 15 bytes, of the characters that the kernel takes.
    pub fn name(mut self, at: usize, name: &str) -> Attr {
        for (to, from) in self.0[at..at + 15].iter_mut().zip(name.bytes()) {
            *to = if from.is_ascii_alphanumeric() || from == b'.' { from } else { b'_' };
        }
        self
    }

    pub fn get_u32(&self, at: usize) -> u32 {
        u32::from_ne_bytes(self.0[at..at + 4].try_into().unwrap_or_default())
    }

    #[cfg(test)]
    pub fn get_u64(&self, at: usize) -> u64 {
        u64::from_ne_bytes(self.0[at..at + 8].try_into().unwrap_or_default())
    }
}

/// The one call of bpf(2).
///
/// # Safety
/// Every address in `attr` must be valid for what `command` reads or writes there, for the lengths that `attr` names or that
/// the objects in it imply.
pub(crate) unsafe fn call(command: Command, attr: &mut Attr) -> io::Result<i32> {
    #[cfg(test)]
    if let Some(answer) = fake::answer(command, attr) {
        return answer;
    }
    // SAFETY: the block is ours and as long as said; the addresses in it are the caller's promise.
    let ret = unsafe { libc::syscall(libc::SYS_bpf, command as u32, attr.0.as_mut_ptr(), ATTR_SIZE) };
    crate::check::check(ret).map(|r| r as i32)
}

/// Calls bpf(2) for a command that returns a descriptor.
///
/// # Safety
/// The requirements of [`call`].
pub(crate) unsafe fn call_fd(command: Command, attr: &mut Attr) -> io::Result<OwnedFd> {
    // SAFETY: the caller's promise; the descriptor is new and ours. The kernel sets close-on-exec on all of them.
    unsafe { call(command, attr).map(|fd| OwnedFd::from_raw_fd(fd)) }
}

/// Lifts the limit on locked memory, which kernels before 5.11 charge maps to. May fail without harm on later ones.
pub fn raise_memory_limit() -> io::Result<()> {
    let all = libc::rlimit { rlim_cur: libc::RLIM_INFINITY, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: a valid structure.
    crate::check::check(unsafe { libc::setrlimit(libc::RLIMIT_MEMLOCK, &all) }.into()).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_cut_and_cleaned() {
        let a = Attr::new().name(at::MAP_NAME, "in flight/calls and more");
        assert_eq!(&a.0[28..44], b"in_flight_calls\0");
        assert!(a.0[44..].iter().all(|b| *b == 0));
    }
}
