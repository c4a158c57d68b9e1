//! A file of tables that this process writes, and that others map to read.

use super::socket::{memfd, seal};
use crate::mapping::{Mapping, Mode};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Nobody but who has made it may write to it (linux/fcntl.h, 5.1).
const F_SEAL_FUTURE_WRITE: i32 = 0x10;

/// It. Only what is written takes memory.
pub struct Tables {
    fd: OwnedFd,
    map: Mapping,
}

impl Tables {
    /// One of this many bytes, all zeros.
    ///
    /// # Errors
    /// Those of memfd_create(2) and mmap(2).
    pub fn new(len: usize) -> io::Result<Tables> {
        let fd = memfd(c"trapline-tables")?;
        let file = std::fs::File::from(fd);
        file.set_len(len as u64)?;
        let fd = OwnedFd::from(file);
        let map = Mapping::new(fd.as_fd(), 0, len, Mode::Shared)?;
        seal(&fd, F_SEAL_FUTURE_WRITE)?;
        Ok(Tables { fd, map })
    }

    /// Its file, for processes.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// Writes bytes at an offset, where nobody looks yet. False: they do not fit.
    pub fn write(&mut self, at: u64, bytes: &[u8]) -> bool {
        let end = usize::try_from(at).ok().and_then(|at| at.checked_add(bytes.len()));
        let Some(end) = end.filter(|end| *end <= self.map.len()) else { return false };
        // SAFETY: within the mapping, of which this is the only borrow; readers in other processes take bytes as they are.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.map.base().add(end - bytes.len()), bytes.len()) };
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    crate::check::has_not!(Tables: Sync);
    use std::os::fd::AsRawFd;

    #[test]
    fn only_its_maker_writes() {
        let mut tables = Tables::new(1 << 20).unwrap();
        let two = [1, 0, 0, 0, 2, 0, 0, 0];
        assert!(tables.write(4096, &two) && !tables.write(1 << 20, &[1]) && !tables.write(u64::MAX, &[1]));
        let mut bytes = [0; 8];
        let file = std::fs::File::from(tables.fd().try_clone_to_owned().unwrap());
        std::os::unix::fs::FileExt::read_exact_at(&file, &mut bytes, 4096).unwrap();
        assert_eq!(bytes, two);
        assert!(std::os::unix::fs::FileExt::write_all_at(&file, &bytes, 0).is_err());
        assert!(tables.fd().as_raw_fd() > 2);
    }
}
