//! What a stripped file says of the file that its debug information is in.
//!
//! ```text
//!  .gnu_debuglink     name, NUL, up to a multiple of 4, u32 CRC-32 of that file
//!  .gnu_debugaltlink  path, NUL, build id of the file that dwz lets several files share
//! ```

use crate::ReadAt;
use crate::build_id::MAX_ID;
use crate::headers::{Headers, u32_at};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// The most bytes of such a section.
const MAX: u64 = 8192;

/// The name of a file with debug information.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DebugLink {
    /// Name, without directories.
    pub name: PathBuf,
    /// CRC-32 of all its bytes.
    pub crc: u32,
}

impl DebugLink {
    /// Of a file.
    pub fn read(headers: &Headers, file: &(impl ReadAt + ?Sized)) -> Option<DebugLink> {
        let bytes = headers.bytes(file, ".gnu_debuglink", MAX)?;
        let (name, _) = name_of(&bytes)?;
        let crc = u32_at(&bytes, (name.len() + 1).next_multiple_of(4))?;
        let is_name = !name.contains(&b'/') && name != b"." && name != b"..";
        is_name.then(|| DebugLink { name: OsStr::from_bytes(name).into(), crc })
    }
}

/// The file that several files with debug information share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedLink {
    /// Its path; a relative one begins at the directory of the file that names it.
    pub path: PathBuf,
    /// Its build id.
    pub build_id: Vec<u8>,
}

impl SharedLink {
    /// Of a file.
    pub fn read(headers: &Headers, file: &(impl ReadAt + ?Sized)) -> Option<SharedLink> {
        let bytes = headers.bytes(file, ".gnu_debugaltlink", MAX)?;
        let (name, rest) = name_of(&bytes)?;
        let build_id = rest.to_vec();
        let path = OsStr::from_bytes(name).into();
        (1..=MAX_ID).contains(&build_id.len()).then_some(SharedLink { path, build_id })
    }
}

fn name_of(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = bytes.iter().position(|b| *b == 0).filter(|n| *n > 0)?;
    Some((&bytes[..end], &bytes[end + 1..]))
}

/// The CRC-32 of bytes that are read piece by piece, as `.gnu_debuglink` has it (IEEE 802.3).
#[derive(Clone, Copy, Debug)]
pub struct Crc(u32);

impl Default for Crc {
    fn default() -> Crc {
        Crc(!0)
    }
}

impl Crc {
    /// Takes more bytes.
    pub fn add(&mut self, bytes: &[u8]) {
        const TABLE: [u32; 256] = table();
        for b in bytes {
            self.0 = self.0 >> 8 ^ TABLE[usize::from(self.0 as u8 ^ b)];
        }
    }

    /// The sum of what was taken.
    pub fn value(self) -> u32 {
        !self.0
    }
}

const fn table() -> [u32; 256] {
    const POLYNOMIAL: u32 = 0xedb8_8320;
    let mut table = [0; 256];
    let mut i = 0;
    while i < 256 {
        let mut n = i as u32;
        let mut bit = 0;
        while bit < 8 {
            n = if n & 1 == 1 { n >> 1 ^ POLYNOMIAL } else { n >> 1 };
            bit += 1;
        }
        table[i] = n;
        i += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sum_is_that_of_the_standard() {
        let mut crc = Crc::default();
        crc.add(b"12345");
        crc.add(b"6789");
        assert_eq!(crc.value(), 0xcbf4_3926);
    }
}
