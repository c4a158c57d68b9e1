//! Which of several traces a thread or process is of, and where that was recorded ([`crate::traces`]).

/// Bits of the number of a thread in its own trace: Linux has none above 4194304 (`PID_MAX_LIMIT`, include/linux/threads.h).
pub(crate) const BITS: u32 = 22;
const OWN: u32 = (1 << BITS) - 1;
/// The most traces that have numbers.
pub const MOST: usize = 1 << (u32::BITS - BITS);

/// The number that a thread or process has in its own trace.
#[inline]
pub fn own(id: u32) -> u32 {
    id & OWN
}

/// The trace of a thread or process.
#[inline]
pub fn of(id: u32) -> usize {
    (id >> BITS) as usize
}

/// A thread or process that has the number `own` in the trace of `id`.
#[inline]
pub fn beside(id: u32, own: u32) -> u32 {
    id & !OWN | own & OWN
}

/// Where the events of a trace come from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// The name of the machine.
    pub host: String,
    /// The name of the trace among the others: its directory, without what all have in common.
    pub trace: String,
    /// What stands before lines of text: of the two, what differs between the traces.
    pub label: String,
    /// How many characters the longest label of all has.
    pub width: usize,
}
