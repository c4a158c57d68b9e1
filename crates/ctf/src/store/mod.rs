//! Where packets go: files of a directory that grow by whole packets ([`Files`] in a [`Dir`]), or memory ([`Flight`]).
//!
//! ```text
//! DIR/metadata             text; there before the first packet
//! DIR/cpu_0, cpu_1, …      a stream each; with a limit of size in parts: cpu_0.0, cpu_0.1, …
//! DIR/.trapline/labels.json  names of flags
//! DIR/.trapline/end.new    room for the end record, taken when the recording begins
//! DIR/.trapline/end        there once the recording has ended: what was counted
//! DIR/.trapline/lock       locked while the trace is written
//! ```
//!
//! A packet that cannot be written whole is removed again, so that what is in the directory can always be read. Every file is new,
//! and reached through the open directory: whatever others put there is neither followed nor written over.

mod dir;
mod files;
mod flight;

pub use dir::{Dir, OWN, PACKS, Snapshots};
pub use files::{Files, Kept, Limit, Lost};
pub use flight::Flight;
use std::io;

/// What a store of packets needs of a file system.
pub trait Store {
    /// An open file.
    type File;
    /// Makes room for the line of a new stream in the end record.
    fn begin(&mut self) -> io::Result<()>;
    /// Makes a file that only its owner can read.
    fn create(&mut self, name: &str) -> io::Result<Self::File>;
    /// Writes `bytes` at `at`, which is the file's end: all of them, or the file stays as it was.
    fn append(&mut self, file: &mut Self::File, at: u64, bytes: &[u8]) -> io::Result<()>;
    /// Writes `bytes` over those at `at`, which takes no room.
    fn rewrite(&mut self, name: &str, at: u64, bytes: &[u8]) -> io::Result<()>;
    /// Removes a file.
    fn remove(&mut self, name: &str) -> io::Result<()>;
    /// Bytes of what is there beside the streams.
    fn overhead(&self) -> u64;
}

/// What the streams of a trace need at least where its size is limited, bytes.
pub const MIN_STREAMS: u64 = 64 << 10;

/// The smallest size of a flight recorder, bytes.
pub const MIN_FLIGHT: u64 = 64 << 10;

/// Bytes of a trace with this metadata, these names of flags and this room for its end record, without its streams.
pub fn overhead(metadata: &str, labels: &str, room: u64) -> u64 {
    (metadata.len() + labels.len()) as u64 + room
}

/// At how many bytes packets are full where at most `limit` bytes are kept: small, so that little is deleted at once.
pub fn packet_size(limit: u64) -> usize {
    (limit / 64).clamp(4096, crate::packet::FULL as u64) as usize
}
