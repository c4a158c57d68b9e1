//! What writes a picture, and how much of a trace it can have.

use super::Timeline;
use crate::spill::Spill;

/// Appends a picture; of a large one, part by part.
type Write = fn(&Timeline, &mut Vec<u8>, Spill<'_>);

/// A writer of pictures.
#[derive(Clone, Copy, Debug)]
pub struct Writer {
    pub(super) write: How,
    /// Most events that are collected: of the others it is known that they are there.
    pub(super) most: u64,
    /// Depths of functions that have rows.
    pub(super) depths: usize,
}

/// Whether it is written as a whole.
#[derive(Clone, Copy, Debug)]
pub(super) enum How {
    Whole(fn(&Timeline, &mut Vec<u8>)),
    Parts(Write),
}

impl Writer {
    /// A picture that is looked at as a whole. A page of more events has no room in a browser.
    pub const fn whole(write: fn(&Timeline, &mut Vec<u8>)) -> Writer {
        Writer { write: How::Whole(write), most: 10_000_000, depths: 200 }
    }

    /// A file for other programs, written part by part. At its limit, a trace of function calls needs 250 MB for rows and a file of 2.5 GB, about the
    /// largest that Perfetto's interface opens.
    pub const fn parts(write: Write) -> Writer {
        Writer { write: How::Parts(write), most: 100_000_000, depths: 1 << 16 }
    }
}
