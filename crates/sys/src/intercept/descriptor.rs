//! What a descriptor is, as the thread that has it has written it behind a call.
//!
//! ```text
//!  a capture: flags of the descriptor │ length │ number │ struct stat │ domain, type, protocol │ own address │ peer's address │ link
//! ```

use crate::fdinfo::Socket;

/// Where the parts are, behind the length.
pub(super) const FD: usize = 0;
pub(super) const STAT: usize = 8;
pub(super) const SOCKET: usize = STAT + size_of::<libc::stat>();
pub(super) const LOCAL: usize = SOCKET + 16;
pub(super) const PEER: usize = LOCAL + 8 + ADDRESS;
pub(super) const PATH: usize = PEER + 8 + ADDRESS;
/// Bytes of a socket's address (`struct sockaddr_storage`).
pub(super) const ADDRESS: usize = 128;

const DEVICE: usize = STAT + std::mem::offset_of!(libc::stat, st_dev);
const INODE: usize = STAT + std::mem::offset_of!(libc::stat, st_ino);
pub(super) const MODE: usize = STAT + std::mem::offset_of!(libc::stat, st_mode);
const NUMBERS: usize = STAT + std::mem::offset_of!(libc::stat, st_rdev);

/// `PATH_MAX` (`include/uapi/linux/limits.h`).
const PATH_MAX: usize = 4096;

/// A descriptor, or the working directory.
#[derive(Clone, Copy, Debug)]
pub struct Descriptor<'b> {
    bytes: &'b [u8],
    /// It is closed by an exec.
    pub cloexec: bool,
}

impl<'b> Descriptor<'b> {
    /// The most bytes of one.
    pub const MOST: u16 = (PATH + PATH_MAX - 1) as u16;
    /// No capture of memory has a lower address.
    pub const LOWEST: u64 = 65536;

    /// What a capture says of a descriptor; none: it is one of memory.
    pub fn of((address, bytes): (u64, &'b [u8])) -> Option<Descriptor<'b>> {
        (address < Descriptor::LOWEST && bytes.len() >= PATH)
            .then_some(Descriptor { bytes, cloexec: address & libc::FD_CLOEXEC as u64 != 0 })
    }

    fn number(&self, at: usize) -> u32 {
        self.bytes.get(at..at + 4).and_then(|b| b.first_chunk()).map_or(0, |b| u32::from_le_bytes(*b))
    }

    fn word(&self, at: usize) -> u64 {
        u64::from(self.number(at + 4)) << 32 | u64::from(self.number(at))
    }

    fn is(&self, format: u32) -> bool {
        self.number(MODE) & libc::S_IFMT == format
    }

    /// Its number, or `AT_FDCWD`.
    pub fn fd(&self) -> i32 {
        self.number(FD) as i32
    }

    /// What its link in `/proc` leads to; empty: that could not be read.
    pub fn path(&self) -> &'b [u8] {
        self.bytes.get(PATH..).unwrap_or_default()
    }

    /// The file's device and inode.
    pub fn file(&self) -> (u64, u64) {
        (self.word(DEVICE), self.word(INODE))
    }

    /// Major and minor number of a device, and whether it is a block device.
    pub fn device(&self) -> Option<(u32, u32, bool)> {
        let (block, numbers) = (self.is(libc::S_IFBLK), self.word(NUMBERS));
        (block || self.is(libc::S_IFCHR)).then(|| (libc::major(numbers), libc::minor(numbers), block))
    }

    /// What a socket is.
    pub fn socket(&self) -> Option<Socket> {
        let address = |at: usize| {
            let len = (self.number(at) as usize).min(ADDRESS);
            self.bytes.get(at + 8..at + 8 + len).unwrap_or_default().to_vec()
        };
        self.is(libc::S_IFSOCK).then(|| Socket {
            domain: self.number(SOCKET) as i32,
            kind: self.number(SOCKET + 4) as i32,
            protocol: self.number(SOCKET + 8) as i32,
            local: address(LOCAL),
            peer: address(PEER),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(mode: u32, numbers: u64, path: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0; PATH];
        bytes[FD..8].copy_from_slice(&7u64.to_le_bytes());
        bytes[MODE..MODE + 4].copy_from_slice(&mode.to_le_bytes());
        bytes[NUMBERS..NUMBERS + 8].copy_from_slice(&numbers.to_le_bytes());
        bytes[SOCKET..SOCKET + 4].copy_from_slice(&2u32.to_le_bytes());
        // More than there may be.
        bytes[LOCAL..LOCAL + 4].copy_from_slice(&1000u32.to_le_bytes());
        bytes.extend_from_slice(path);
        bytes
    }

    #[test]
    fn files_devices_and_sockets() {
        let bytes = written(libc::S_IFCHR | 0o666, libc::makedev(1, 3), b"/dev/null");
        let null = Descriptor::of((1, &bytes)).unwrap();
        assert_eq!((null.fd(), null.cloexec, null.path()), (7, true, &b"/dev/null"[..]));
        assert_eq!((null.device(), null.socket()), (Some((1, 3, false)), None));
        let bytes = written(libc::S_IFSOCK, 0, b"socket:[1]");
        let socket = Descriptor::of((0, &bytes)).unwrap();
        let ends = socket.socket().map(|s| (s.domain, s.local.len(), s.peer.len()));
        assert_eq!((socket.device(), ends), (None, Some((2, ADDRESS, 0))));
    }

    #[test]
    fn captures_of_memory_are_none() {
        let bytes = written(libc::S_IFREG, 0, b"/x");
        assert!(Descriptor::of((Descriptor::LOWEST, &bytes)).is_none());
        assert!(Descriptor::of((0, &bytes[..PATH - 1])).is_none());
    }
}
