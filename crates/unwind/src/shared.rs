//! The tables of a session as one file that others map read-only, and where the parts of it lie.
//!
//! ```text
//! 0           512 KiB      8.5 MiB                          264.5 MiB
//! │ u64 rules │ u64 pages  │ u32 rows, chunk behind chunk   │          sparse: it takes what was written, in whole pages
//! ```
//!
//! Readers map all of it: parts that nobody has written are zeros, which are tables without rules. `build::shared` says what to
//! write.

/// Most rules: as many as there are numbers.
pub const RULES: usize = 1 << 16;
/// Most pages of modules: 64 GiB of code.
pub const PAGES: usize = 1 << 20;
/// Most chunks of rows.
pub const CHUNKS: usize = 256;
/// Most rows.
pub const ROWS: usize = CHUNKS * crate::table::CHUNK;

/// Where the rules begin, in bytes.
pub const RULES_AT: usize = 0;
/// Where the pages begin.
pub const PAGES_AT: usize = RULES_AT + RULES * size_of::<crate::Rule>();
/// Where the rows begin.
pub const ROWS_AT: usize = PAGES_AT + PAGES * size_of::<crate::Page>();
/// Bytes of the file.
pub const SIZE: usize = ROWS_AT + ROWS * size_of::<crate::Row>();

// Parts begin with a page of memory.
const _: () = assert!(PAGES_AT.is_multiple_of(4096) && ROWS_AT.is_multiple_of(4096) && SIZE.is_multiple_of(4096));
