//! A memory mapping of a descriptor, unmapped on drop. Its users must know who else writes there.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// How a mapping is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Shared, to read and write.
    Shared,
    /// Shared, to read.
    SharedRead,
    /// Private, to read. The only one that `/sys/kernel/btf/vmlinux` takes.
    PrivateRead,
}

pub(crate) struct Mapping {
    base: *mut u8,
    len: usize,
}

// SAFETY: only an address and a length. It is not Sync: whether threads may use the memory at once is for the owner's type to say.
unsafe impl Send for Mapping {}

impl Mapping {
    pub fn new(fd: BorrowedFd, offset: usize, len: usize, mode: Mode) -> io::Result<Mapping> {
        let (prot, flags) = match mode {
            Mode::Shared => (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED),
            Mode::SharedRead => (libc::PROT_READ, libc::MAP_SHARED),
            Mode::PrivateRead => (libc::PROT_READ, libc::MAP_PRIVATE),
        };
        // SAFETY: a new mapping at an address of the kernel's choice; the result is checked.
        let p = unsafe { libc::mmap(std::ptr::null_mut(), len, prot, flags, fd.as_raw_fd(), offset as libc::off_t) };
        if p == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Mapping { base: p.cast(), len })
    }

    /// Zeros of no file.
    #[cfg(test)]
    pub fn anonymous(len: usize) -> io::Result<Mapping> {
        let (prot, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: a new mapping at an address of the kernel's choice; the result is checked.
        let p = unsafe { libc::mmap(std::ptr::null_mut(), len, prot, flags, -1, 0) };
        if p == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Mapping { base: p.cast(), len })
    }

    pub fn base(&self) -> *mut u8 {
        self.base
    }

    pub fn len(&self) -> usize {
        self.len
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: mapped with this length; nobody holds a borrow of it any more.
        unsafe { libc::munmap(self.base.cast(), self.len) };
    }
}

#[cfg(test)]
crate::check::has_not!(Mapping: Sync);

/// The machine's page size.
pub(crate) fn page_size() -> usize {
    // SAFETY: no arguments that matter.
    unsafe { libc::sysconf(libc::_SC_PAGESIZE) as usize }
}
