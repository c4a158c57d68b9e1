//! The metadata language of CTF 1.8, TSDL, read into the [model](crate::model).
//!
//! Takes the text of any tracer: type aliases and typedefs, named structs, variants and enumerations, nested declarations,
//! blocks in any order, and metadata that is wrapped into packets. What is read is bounded: [`MAX_TEXT`] bytes,
//! [`MAX_TYPES`] types after aliases are replaced by their types, [`MAX_DEPTH`] levels.
//!
//! ```
//! let text = "trace { byte_order = be; }; stream { event.header := struct { integer { size = 7; } id; }; }; event { name = x; };";
//! let metadata = ctf::tsdl::parse("metadata", text).unwrap();
//! assert_eq!(metadata.streams[0].events[0].name, "x");
//! let error = ctf::tsdl::parse("metadata", "trace { byte_order = up; };").unwrap_err();
//! assert_eq!(error.to_string(), "metadata:1:22: `up` is not an order of bytes: le, be, native or network");
//! ```

mod attributes;
mod blocks;
mod lexer;
mod parser;
mod scope;

use std::borrow::Cow;

pub use crate::model::MAX_DEPTH;
use crate::model::Metadata;
use lexer::Pos;

/// Most bytes of metadata that are taken: 16 MiB.
pub const MAX_TEXT: usize = 16 << 20;
/// Most types, fields and labels after all aliases are replaced.
pub const MAX_TYPES: usize = 1 << 19;

/// Most tokens that are taken.
const MAX_TOKENS: usize = 4 << 20;
/// First word of a packet of metadata.
const PACKET_MAGIC: u32 = 0x75D1_1D57;
/// Bytes of the header of a packet of metadata.
const PACKET_HEADER: usize = 37;

/// What is wrong with metadata, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}:{column}: {message}")]
pub struct Error {
    /// The file's name as it was given.
    pub file: String,
    /// Line, from 1. In metadata of packets, of the text that the packets contain.
    pub line: u32,
    /// Column, from 1, in characters.
    pub column: u32,
    /// What is wrong.
    pub message: String,
}

/// What is wrong with a text, and where in it.
#[derive(Debug)]
struct Fault {
    at: Pos,
    message: String,
}

impl Fault {
    fn at(at: Pos, message: impl Into<String>) -> Fault {
        Fault { at, message: message.into() }
    }
    fn start(message: impl Into<String>) -> Fault {
        Fault::at(Pos::START, message)
    }
    /// As others see it. Lines and columns are counted here, so that nobody else has to.
    fn of(self, file: &str, text: &str) -> Error {
        let before = &text[..self.at.0 as usize];
        let line = before.bytes().filter(|b| *b == b'\n').count();
        let column = before.rsplit('\n').next().unwrap_or(before).chars().count();
        Error { file: file.into(), line: line as u32 + 1, column: column as u32 + 1, message: self.message }
    }
}

/// Reads metadata. `file` is what errors call it.
///
/// # Errors
/// The first thing that is not understood, or a bound that is passed.
pub fn parse(file: &str, text: &str) -> Result<Metadata, Error> {
    let bounded = if text.len() > MAX_TEXT {
        Err(Fault::start(format!("{} bytes of metadata, more than {MAX_TEXT}", text.len())))
    } else {
        lexer::tokens(text, MAX_TOKENS).and_then(blocks::metadata)
    };
    bounded.map_err(|e| e.of(file, text))
}

/// Reads metadata that may be wrapped into packets. Bytes that are no UTF-8 become U+FFFD.
///
/// # Errors
/// Those of [`parse`], and packets that are cut, compressed or encrypted.
pub fn parse_bytes(file: &str, bytes: &[u8]) -> Result<Metadata, Error> {
    let text = unwrap(bytes).map_err(|e| e.of(file, ""))?;
    parse(file, &String::from_utf8_lossy(&text))
}

/// The text in packets of metadata; the same bytes if they are no packets.
fn unwrap(bytes: &[u8]) -> Result<Cow<'_, [u8]>, Fault> {
    let word = |at: usize| bytes.get(at..at + 4).and_then(|b| <[u8; 4]>::try_from(b).ok());
    let read: fn([u8; 4]) -> u32 = match word(0) {
        Some(b) if u32::from_le_bytes(b) == PACKET_MAGIC => u32::from_le_bytes,
        Some(b) if u32::from_be_bytes(b) == PACKET_MAGIC => u32::from_be_bytes,
        _ => return Ok(Cow::Borrowed(bytes)),
    };
    let mut text = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let fail = |what: &str| Err(Fault::start(format!("packet of metadata at byte {at}: {what}")));
        let Some(header) = bytes.get(at..at + PACKET_HEADER) else { return fail("its header is cut") };
        let field = |i: usize| word(at + i).map_or(0, read);
        if field(0) != PACKET_MAGIC {
            return fail("no magic number");
        }
        if header[32..35] != [0; 3] {
            return fail("compressed, encrypted or with a checksum, which is not supported");
        }
        let (content, packet) = ((field(24) / 8) as usize, (field(28) / 8) as usize);
        if content < PACKET_HEADER || content > packet {
            return fail("its sizes contradict each other");
        }
        match bytes.get(at + PACKET_HEADER..at + content) {
            Some(part) if at + packet <= bytes.len() => text.extend_from_slice(part),
            _ => return fail("it is cut"),
        }
        at += packet;
    }
    Ok(Cow::Owned(text))
}
