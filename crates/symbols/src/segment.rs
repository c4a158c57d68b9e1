//! Bytes of a file as they are loaded, and its tables.

use crate::ElfError;
use crate::headers::{SectionHeader, read_bytes};
use std::fs::File;

/// The most bytes of a table of symbols, of relocations, or of names.
const MAX_TABLE: u64 = 512 << 20;

/// A segment that is loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Its address in the file's own address space.
    pub address: u64,
    /// Its offset in the file.
    pub offset: u64,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

pub(crate) fn damaged(what: &str) -> ElfError {
    ElfError::Damaged(format!("{what} cannot be read"))
}

/// The bytes of a table.
pub(crate) fn table(file: &File, section: &SectionHeader) -> Result<Vec<u8>, ElfError> {
    if section.compressed || section.size > MAX_TABLE {
        return Err(damaged(&section.name));
    }
    read_bytes(file, section.offset, section.size).ok_or_else(|| damaged(&section.name))
}
