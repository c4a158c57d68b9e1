//! The memory that both sides map: its layout, and the words by which they meet.

#[cfg(not(all(test, miri)))]
use crate::check::check;
use crate::mapping::Mapping;
#[cfg(not(all(test, miri)))]
use crate::mapping::Mode;
use crate::ring::control::Page;
use crate::span::{self, Nonsense, Span};
use std::io;
#[cfg(not(all(test, miri)))]
use std::os::fd::{AsFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

/// The length of a frame that only fills the end of the ring.
pub(super) const SKIP: u32 = u32::MAX;
/// Bytes in front of a frame.
pub(super) const PREFIX: u64 = 8;
/// Where the control page begins.
const CONTROL: usize = 4096;
/// Bytes in front of the data.
const HEAD: usize = 12288;
/// The smallest ring, bytes.
const SMALLEST: usize = 4096;

const _: () = assert!(size_of::<Positions>() <= CONTROL && CONTROL + size_of::<Page>() <= HEAD);

/// The positions of both sides. (w): written by the writer, (r): by the reader.
#[repr(C)]
pub(super) struct Positions {
    /// (w) Bytes written.
    pub tail: AtomicU64,
    /// (r) Bytes read.
    pub head: AtomicU64,
    /// The reader sleeps here.
    pub reader: Sleep,
    /// The writer sleeps here.
    pub writer: Sleep,
    /// (w) No more frames will come.
    pub finished: AtomicU32,
}

/// A word on which one side sleeps until the other side wakes it.
#[repr(transparent)]
pub(super) struct Sleep(AtomicU32);

impl Sleep {
    /// Sleeps until somebody wakes it or `timeout` has passed; not at all where it is `ready`.
    pub fn until(&self, ready: impl FnOnce() -> bool, timeout: Duration) {
        self.0.store(1, Ordering::SeqCst);
        if !ready() {
            let ts = libc::timespec { tv_sec: timeout.as_secs() as i64, tv_nsec: timeout.subsec_nanos().into() };
            // SAFETY: the word lives in a mapping that outlives the call; the timeout is valid. Shared (not PRIVATE), because
            // two processes use it.
            unsafe { libc::syscall(libc::SYS_futex, self.0.as_ptr(), libc::FUTEX_WAIT, 1, &raw const ts, 0, 0) };
        }
        self.0.store(0, Ordering::SeqCst);
    }

    /// Whether somebody may sleep here.
    pub fn is_used(&self) -> bool {
        self.0.load(Ordering::Relaxed) != 0
    }

    /// Wakes the side that sleeps here.
    pub fn wake(&self) {
        if self.0.swap(0, Ordering::SeqCst) != 0 {
            // SAFETY: the word lives in a mapping that outlives the call; no other address is passed.
            unsafe { libc::syscall(libc::SYS_futex, self.0.as_ptr(), libc::FUTEX_WAKE, 1, 0, 0, 0) };
        }
    }
}

/// The mapping. The memory goes with the last mapping of it, in whatever process.
pub(super) struct Memory {
    map: Mapping,
    size: usize,
}

// SAFETY: positions and control page are atomic. The data is reached by addresses only, whose users, one writer and one reader, meet by the
// positions.
unsafe impl Sync for Memory {}

impl Memory {
    /// Memory for a ring of `size` data bytes: a power of two of at least 4096.
    pub fn new(size: usize) -> io::Result<Memory> {
        if !size.is_power_of_two() || size < SMALLEST {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        // Miri knows neither descriptors of memory nor two mappings of it.
        #[cfg(all(test, miri))]
        return Ok(Memory { map: Mapping::anonymous(HEAD + size)?, size });
        #[cfg(not(all(test, miri)))]
        Ok(Memory { map: Memory::map(HEAD + size)?, size })
    }

    #[cfg(not(all(test, miri)))]
    fn map(len: usize) -> io::Result<Mapping> {
        // SAFETY: a NUL-terminated name and flags; a descriptor that is returned is ours.
        let fd = unsafe {
            let fd = check(libc::memfd_create(c"trapline-ring".as_ptr(), libc::MFD_CLOEXEC).into())?;
            OwnedFd::from_raw_fd(fd as i32)
        };
        let file = std::fs::File::from(fd);
        file.set_len(len as u64)?;
        Mapping::new(file.as_fd(), 0, len, Mode::Shared)
    }

    /// The words by which both sides meet.
    pub fn positions(&self) -> &Positions {
        // SAFETY: the mapping starts with a page for them, zeroed, aligned, and large enough (checked above); their fields are
        // atomics, for which zero is valid; it lives as long as `self`.
        unsafe { &*self.map.base().cast::<Positions>() }
    }

    /// The control page.
    pub fn page(&self) -> &Page {
        // SAFETY: it begins at a page of the mapping, zeroed, aligned, and fits in front of the data (checked above); its fields
        // are atomics, for which zero is valid; it lives as long as `self`.
        unsafe { &*self.map.base().add(CONTROL).cast::<Page>() }
    }

    /// Bytes of data.
    pub fn size(&self) -> u64 {
        self.size as u64
    }

    /// The bytes between a position read and a position written.
    pub fn readable(&self, head: u64, tail: u64) -> Result<Span, Nonsense> {
        span::readable(head, tail, self.size())
    }

    /// Bytes in the ring; all of it where that is not known.
    pub fn used(&self) -> u64 {
        let p = self.positions();
        let head = p.head.load(Ordering::Acquire);
        self.readable(head, p.tail.load(Ordering::Acquire)).map_or(self.size(), |s| s.left())
    }

    /// The word at an offset that a [`Span`] has given: below `size`, and a multiple of 8.
    pub fn word(&self, offset: usize) -> *mut u32 {
        assert!(offset < self.size && offset.is_multiple_of(8), "an offset of the ring");
        // SAFETY: so the two words from there lie inside the mapping.
        unsafe { self.map.base().add(HEAD + offset).cast::<u32>() }
    }
}
