//! A section that is compressed, inflated as far as it is read.
//!
//! ```text
//!  SHF_COMPRESSED  u32 algorithm (1: zlib, 2: zstd) │ u32 │ u64 bytes when inflated │ u64 alignment │ compressed bytes
//!  .zdebug_*       "ZLIB" │ u64 bytes when inflated, big-endian │ compressed bytes
//! ```

use crate::ReadAt;
use crate::headers::{read_bytes, u32_at, u64_at};
use miniz_oxide::inflate::TINFLStatus;
use miniz_oxide::inflate::core::{DecompressorOxide, decompress, inflate_flags as flags};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};
use std::cell::RefCell;
use std::io::{self, Read};
use std::rc::Rc;

/// `ELFCOMPRESS_ZLIB`, `ELFCOMPRESS_ZSTD`.
const ZLIB: u32 = 1;
const ZSTD: u32 = 2;
/// Bytes of `Elf64_Chdr`, and of what `.zdebug_*` begin with.
const HEAD: u64 = 24;
const ZDEBUG: &[u8] = b"ZLIB";
const ZDEBUG_HEAD: u64 = 12;
/// The most bytes of a section, when inflated. Deflate makes at most 1032 bytes of one, zstd a block of 128 KiB of four.
const MAX: u64 = 1 << 30;
const MOST_OF_ONE: u64 = 1032;
const MOST_OF_ONE_ZSTD: u64 = 32 << 10;
/// As much is inflated at once, at least.
const STEP: usize = 256 << 10;

/// A compressed section.
pub(super) struct Inflated<'f> {
    file: Rc<dyn ReadAt + 'f>,
    offset: u64,
    /// Bytes in the file.
    compressed: u64,
    head: Option<Head>,
    state: RefCell<Option<State>>,
}

/// What a section begins with.
struct Head {
    algorithm: u32,
    /// Its own bytes.
    len: u64,
    /// Bytes of the section when inflated.
    size: u64,
}

/// How far it has been inflated.
struct State {
    compressed: Vec<u8>,
    read: usize,
    /// All bytes of the section, of which this many from the start are known.
    bytes: Vec<u8>,
    known: usize,
    inflater: Inflater,
    /// More bytes cannot be had.
    ended: bool,
}

enum Inflater {
    Zlib(Box<DecompressorOxide>),
    Zstd(Box<FrameDecoder>),
}

impl Head {
    fn parse(bytes: &[u8]) -> Option<Head> {
        if bytes.starts_with(ZDEBUG) {
            let size = u64::from_be_bytes(*bytes.get(ZDEBUG.len()..)?.first_chunk()?);
            return Some(Head { algorithm: ZLIB, len: ZDEBUG_HEAD, size });
        }
        Some(Head { algorithm: u32_at(bytes, 0)?, len: HEAD, size: u64_at(bytes, 8)? })
    }

    /// Whether this many compressed bytes can be what it says.
    fn is_possible(&self, compressed: u64) -> bool {
        let of_one = match self.algorithm {
            ZLIB => MOST_OF_ONE,
            ZSTD => MOST_OF_ONE_ZSTD,
            _ => return false,
        };
        self.size <= MAX.min(compressed.saturating_mul(of_one))
    }
}

impl<'f> Inflated<'f> {
    /// Of a section at an offset of a file. What cannot be inflated cannot be read.
    pub(super) fn new(file: Rc<dyn ReadAt + 'f>, offset: u64, compressed: u64) -> Inflated<'f> {
        let head = read_bytes(&*file, offset, compressed.min(HEAD)).and_then(|bytes| Head::parse(&bytes));
        let head = head.filter(|h| h.is_possible(compressed));
        Inflated { file, offset, compressed, head, state: RefCell::new(None) }
    }

    /// Bytes when inflated, as the section says.
    pub(super) fn size(&self) -> u64 {
        self.head.as_ref().map_or(0, |h| h.size)
    }

    fn begin(&self) -> Option<State> {
        let head = self.head.as_ref()?;
        let (from, len) = (self.offset.checked_add(head.len)?, self.compressed.checked_sub(head.len)?);
        let compressed = read_bytes(&*self.file, from, len)?;
        let inflater = match head.algorithm {
            ZSTD => Inflater::Zstd(Box::new(FrameDecoder::new())),
            _ => Inflater::Zlib(Box::default()),
        };
        // Memory of zeros costs nothing until it is written to.
        let bytes = vec![0; head.size as usize];
        Some(State { compressed, read: 0, bytes, known: 0, inflater, ended: false })
    }
}

impl State {
    /// Inflates up to an offset, or as far as it goes.
    fn inflate(&mut self, to: usize) {
        let to = to.max(self.known.saturating_add(STEP)).min(self.bytes.len());
        let compressed = &self.compressed[self.read..];
        let done = match &mut self.inflater {
            Inflater::Zlib(inflater) => zlib(inflater, compressed, &mut self.bytes[..to], self.known),
            Inflater::Zstd(decoder) => zstd(decoder, compressed, &mut self.bytes[self.known..to]),
        };
        match done {
            Some((read, written)) => {
                self.read += read;
                self.known += written;
            }
            // Not even what is whole of a damaged section is believed.
            None => self.known = 0,
        }
        self.ended = self.known < to || to == self.bytes.len();
        if self.ended {
            self.compressed = Vec::new();
        }
    }
}

/// Inflates into `bytes`, of which this many from the start are known: how many were read and written; none where they are damaged.
fn zlib(inflater: &mut DecompressorOxide, from: &[u8], bytes: &mut [u8], known: usize) -> Option<(usize, usize)> {
    let flags = flags::TINFL_FLAG_PARSE_ZLIB_HEADER | flags::TINFL_FLAG_USING_NON_WRAPPING_OUTPUT_BUF;
    let (status, read, written) = decompress(inflater, from, bytes, known, flags);
    matches!(status, TINFLStatus::Done | TINFLStatus::HasMoreOutput).then_some((read, written))
}

/// Fills `bytes`. Linkers that work in parallel write one frame behind the other.
fn zstd(decoder: &mut FrameDecoder, from: &[u8], bytes: &mut [u8]) -> Option<(usize, usize)> {
    let (mut rest, mut written) = (from, 0);
    while written < bytes.len() {
        if decoder.can_collect() > 0 {
            written += decoder.read(&mut bytes[written..]).ok()?;
        } else if decoder.is_finished() {
            decoder.init(&mut rest).ok()?;
        } else {
            decoder.decode_blocks(&mut rest, BlockDecodingStrategy::UptoBlocks(1)).ok()?;
        }
    }
    Some((from.len() - rest.len(), written))
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

#[cfg(test)]
mod tests {
    use super::*;
    use ruzstd::encoding::{CompressionLevel, compress_to_vec};

    const SIZE: usize = 700_000;

    fn plain() -> Vec<u8> {
        (0..SIZE / 4).flat_map(|n| (n as u32 / 3 * 7).to_le_bytes()).collect()
    }

    /// A section in frames of this many bytes each.
    fn section(size: u64, frame: usize) -> Vec<u8> {
        let mut section = [ZSTD.to_le_bytes(), [0; 4]].concat();
        section.extend([size.to_le_bytes(), 1u64.to_le_bytes()].concat());
        for part in plain().chunks(frame) {
            section.extend(compress_to_vec(part, CompressionLevel::Fastest));
        }
        section
    }

    fn read(section: &[u8], from: u64, len: usize) -> Option<Vec<u8>> {
        let inflated = Inflated::new(Rc::new(section), 0, section.len() as u64);
        let mut bytes = vec![0; len];
        inflated.read_at(from, &mut bytes).ok()?;
        Some(bytes)
    }

    #[test]
    fn sections_are_one_frame_or_several() {
        for frame in [SIZE, SIZE - 1, 100_000, 1000] {
            let section = section(SIZE as u64, frame);
            assert!(section.len() < SIZE, "{}", section.len());
            let inflated = Inflated::new(Rc::new(&section[..]), 0, section.len() as u64);
            let mut bytes = vec![0; SIZE];
            for from in (0..SIZE).step_by(70_000) {
                inflated.read_at(from as u64, &mut bytes[from..from + 70_000]).unwrap();
            }
            assert!(bytes == plain(), "{frame}");
        }
    }

    #[test]
    fn sections_are_no_larger_than_they_say_and_can_be() {
        let whole = section(SIZE as u64, 100_000);
        assert_eq!(read(&whole, SIZE as u64 - 1, 2), None);
        // Fewer bytes than it has, and more: then not even those are believed that it has.
        assert!(read(&section(1000, SIZE), 0, 1000).is_some_and(|b| b == plain()[..1000]));
        assert_eq!(read(&section(1000, SIZE), 0, 1001), None);
        assert_eq!(read(&section(SIZE as u64 + 1, SIZE), SIZE as u64, 1), None);
        assert_eq!(read(&whole[..whole.len() - 9], SIZE as u64 - 1, 1), None);
        for size in [MAX + 1, u64::MAX] {
            let section = section(size, SIZE);
            assert_eq!(Inflated::new(Rc::new(&section[..]), 0, section.len() as u64).size(), 0);
        }
        let few = &section(1 << 20, SIZE)[..HEAD as usize + 4];
        assert_eq!(Inflated::new(Rc::new(few), 0, few.len() as u64).size(), 0);
    }

    #[test]
    fn damaged_sections_end() {
        let mut r = testkit::Random::new(5);
        let whole = section(SIZE as u64, 100_000);
        for _ in 0..150 {
            let mut bytes = whole.clone();
            for _ in 0..=r.below(6) {
                let at = HEAD as usize + r.index(bytes.len() - HEAD as usize);
                bytes[at] = r.below(256) as u8;
            }
            let _ = read(&bytes, r.below(SIZE as u64), 1);
        }
    }
}
