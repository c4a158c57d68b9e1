//! A section that is compressed (`SHF_COMPRESSED`), inflated when it is first read.
//!
//! ```text
//!  u32 algorithm (1: zlib) │ u32 │ u64 bytes when inflated │ u64 alignment │ compressed bytes
//! ```

use crate::ReadAt;
use crate::headers::{read_bytes, u32_at, u64_at};
use std::cell::OnceCell;
use std::io;
use std::rc::Rc;

/// `ELFCOMPRESS_ZLIB`.
const ZLIB: u32 = 1;
/// Bytes of `Elf64_Chdr`.
const HEAD: u64 = 24;
/// The most bytes of a section, when inflated. Deflate makes at most 1032 bytes of one.
const MAX: u64 = 1 << 30;
const MOST_OF_ONE: u64 = 1032;

/// A compressed section.
pub(super) struct Inflated<'f> {
    file: Rc<dyn ReadAt + 'f>,
    offset: u64,
    /// Bytes in the file, and when inflated.
    compressed: u64,
    size: u64,
    bytes: OnceCell<Vec<u8>>,
}

impl<'f> Inflated<'f> {
    /// Of a section at an offset of a file. Where it cannot be inflated, it is empty.
    pub(super) fn new(file: Rc<dyn ReadAt + 'f>, offset: u64, compressed: u64) -> Inflated<'f> {
        let mut head = [0; HEAD as usize];
        let is_read = file.read_at(offset, &mut head).is_ok() && u32_at(&head, 0) == Some(ZLIB);
        let said = u64_at(&head, 8).filter(|n| is_read && *n <= MAX.min(compressed.saturating_mul(MOST_OF_ONE)));
        Inflated { file, offset, compressed, size: said.unwrap_or(0), bytes: OnceCell::new() }
    }

    /// Bytes when inflated, as the section says.
    pub(super) fn size(&self) -> u64 {
        self.size
    }

    fn inflate(&self) -> Option<Vec<u8>> {
        let bytes = read_bytes(&*self.file, self.offset.checked_add(HEAD)?, self.compressed.checked_sub(HEAD)?)?;
        miniz_oxide::inflate::decompress_to_vec_zlib_with_limit(&bytes, self.size as usize).ok()
    }
}

impl ReadAt for Inflated<'_> {
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        self.bytes.get_or_init(|| self.inflate().unwrap_or_default()).read_at(offset, buf)
    }
}
