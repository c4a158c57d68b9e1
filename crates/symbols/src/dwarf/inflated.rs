//! A section that is compressed (`SHF_COMPRESSED`), inflated as far as it is read.
//!
//! ```text
//!  u32 algorithm (1: zlib) │ u32 │ u64 bytes when inflated │ u64 alignment │ compressed bytes
//! ```

use crate::ReadAt;
use crate::headers::{read_bytes, u32_at, u64_at};
use miniz_oxide::inflate::TINFLStatus;
use miniz_oxide::inflate::core::{DecompressorOxide, decompress, inflate_flags as flags};
use std::cell::RefCell;
use std::io;
use std::rc::Rc;

/// `ELFCOMPRESS_ZLIB`.
const ZLIB: u32 = 1;
/// Bytes of `Elf64_Chdr`.
const HEAD: u64 = 24;
/// The most bytes of a section, when inflated. Deflate makes at most 1032 bytes of one.
const MAX: u64 = 1 << 30;
const MOST_OF_ONE: u64 = 1032;
/// As much is inflated at once, at least.
const STEP: usize = 256 << 10;

/// A compressed section.
pub(super) struct Inflated<'f> {
    file: Rc<dyn ReadAt + 'f>,
    offset: u64,
    /// Bytes in the file, and when inflated.
    compressed: u64,
    size: u64,
    state: RefCell<Option<State>>,
}

/// How far it has been inflated.
struct State {
    compressed: Vec<u8>,
    read: usize,
    /// All bytes of the section, of which so many are known.
    bytes: Vec<u8>,
    known: usize,
    inflater: Box<DecompressorOxide>,
    /// More bytes cannot be had.
    ended: bool,
}

impl<'f> Inflated<'f> {
    /// Of a section at an offset of a file. What cannot be inflated cannot be read.
    pub(super) fn new(file: Rc<dyn ReadAt + 'f>, offset: u64, compressed: u64) -> Inflated<'f> {
        let mut head = [0; HEAD as usize];
        let is_read = file.read_at(offset, &mut head).is_ok() && u32_at(&head, 0) == Some(ZLIB);
        let said = u64_at(&head, 8).filter(|n| is_read && *n <= MAX.min(compressed.saturating_mul(MOST_OF_ONE)));
        Inflated { file, offset, compressed, size: said.unwrap_or(0), state: RefCell::new(None) }
    }

    /// Bytes when inflated, as the section says.
    pub(super) fn size(&self) -> u64 {
        self.size
    }

    fn begin(&self) -> Option<State> {
        let compressed = read_bytes(&*self.file, self.offset.checked_add(HEAD)?, self.compressed.checked_sub(HEAD)?)?;
        // Memory of zeros costs nothing until it is written to.
        let bytes = vec![0; self.size as usize];
        Some(State { compressed, read: 0, bytes, known: 0, inflater: Box::default(), ended: false })
    }
}

impl State {
    /// Inflates up to an offset, or as far as it goes.
    fn inflate(&mut self, to: usize) {
        let to = to.max(self.known.saturating_add(STEP)).min(self.bytes.len());
        let flags = flags::TINFL_FLAG_PARSE_ZLIB_HEADER | flags::TINFL_FLAG_USING_NON_WRAPPING_OUTPUT_BUF;
        let (status, read, written) =
            decompress(&mut self.inflater, &self.compressed[self.read..], &mut self.bytes[..to], self.known, flags);
        self.read += read;
        self.known += written;
        // Not even what is whole of a damaged section is believed.
        if !matches!(status, TINFLStatus::Done | TINFLStatus::HasMoreOutput) {
            self.known = 0;
        }
        self.ended = status != TINFLStatus::HasMoreOutput || to == self.bytes.len();
        if self.ended {
            self.compressed = Vec::new();
        }
    }
}

impl ReadAt for Inflated<'_> {
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        let mut state = self.state.borrow_mut();
        if state.is_none() {
            *state = self.begin();
        }
        let state = state.as_mut().ok_or(io::ErrorKind::InvalidData)?;
        let end = usize::try_from(offset).ok().and_then(|o| o.checked_add(buf.len())).unwrap_or(usize::MAX);
        if end > state.known && end <= state.bytes.len() && !state.ended {
            state.inflate(end);
        }
        state.bytes[..state.known].read_at(offset, buf)
    }
}
