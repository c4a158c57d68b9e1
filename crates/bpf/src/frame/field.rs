//! Offsets of the fields that all events begin with (see [`events::layout`]).

use events::layout;

/// Time.
pub(crate) const TIME: i16 = 0;
/// Class.
pub(crate) const ID: i16 = layout::ID as i16;
/// Capture bits.
pub(crate) const CAP: i16 = layout::CAP as i16;
/// Thread.
pub(crate) const TID: i16 = layout::TID as i16;
/// Process.
pub(crate) const PID: i16 = layout::PID as i16;
