//! The scratch buffer of a processor: programs keep words at its front, and build an event after them.
//!
//! ```text
//!                             r7
//!  ┌────────────┬──────────────┬─────────────────────────────────┐
//!  │ words of   │ words of all:│ the event under construction    │   one buffer per processor, and one set of buffers
//!  │ calls: ops,│ counters,    │ (and what a filter reads before)│   for the calls and one for each other enabling
//!  │ counters   │ what user    │                                 │
//!  │            │ space sets   │                                 │
//!  └────────────┴──────────────┴─────────────────────────────────┘
//! ```
//!
//! The buffers of an enabling have no words of calls, and room for its own events only: a session may have thousands.
//!
//! Every word is declared once, as a field of a struct, and its offset is computed from there: two words cannot overlap.
//!
//! A program *claims* the buffer of its processor before it writes to it and *releases* it at its end. Whatever interrupts or
//! preempts a program on its processor finds the buffer taken: its event is dropped, and counted. Counters are added to
//! atomically and need no claim.
//!
//! With [`Shape::with_ring`] the buffers are rings: [`own_ring`] has what they look like then.

use crate::own_ring::{self, Place};
use std::mem::{offset_of, size_of};

/// Bytes for an event of a call. The largest op takes 32 KiB, and starts within the first 16.
pub const EVENT: usize = 52 << 10;
/// The most bytes of an event that goes into a ring.
pub const MAX_EVENT: i32 = 0xc000;
/// Bytes of the buffer of calls.
pub const SIZE: u32 = WORDS as u32 + EVENT as u32;
/// Bytes of words before the event in the buffer of calls.
pub const WORDS: usize = size_of::<Words>();

/// Parts of a filter that have a counter of their own; the last counter is for all parts from there on.
pub const PARTS: usize = 32;
/// Event classes that have a counter of their own: all that codegen knows, and of those made at run time the first ones, which
/// are of calls with captures.
pub const CLASSES: usize = 1024;
/// Numbers of calls that have a counter of their own.
pub const CALLS: usize = 512;
/// Descriptors that are described at once.
pub(crate) const FDS_AT_ONCE: usize = 16;

/// Declares words, one after the other: each becomes a constant, its offset from the first.
macro_rules! words {
    ($($(#[$doc:meta])* $vis:vis $name:ident[$n:expr];)*) => {
        #[repr(C)]
        #[allow(non_snake_case, reason = "a field is named as the constant that it becomes")]
        struct Words { $($name: [u64; $n],)* }
        $($(#[$doc])* $vis const $name: i16 = offset(offset_of!(Words, $name));)*
    };
}

words! {
    /// The lost events of each class, by its id, where that is known.
    pub DROPPED_CLASSES[CLASSES];
    /// Calls that a filter rejected, by number. They are among those in `FILTERED` and `UNKNOWN`.
    pub FILTERED_CALLS[CALLS];
    /// Threads that traced threads have created.
    pub BORN[1];
    /// Traced threads that have reached their end: the memory may still be freed, and the last switch is still to come.
    pub ENDED[1];
    /// Traced threads that are gone: they have switched for the last time, and were reaped.
    pub FREED[1];
    /// Of sessions without programs at entry: arguments whose memory had to be read there.
    pub TOO_LATE[1];
    /// Of those: wanted calls in which tasks have ended.
    pub UNRETURNED[1];

    // Of the ops: a number that is spilled there is unknown to the verifier when it is reloaded.
    /// For a number that is reloaded at once.
    pub(crate) SPARE[1];
    /// Pointers of an array.
    pub(crate) TOTAL[1];
    /// The array could not be read to its end; later the mark of its capture.
    pub(crate) BROKEN[1];
    /// The raw result.
    pub(crate) RESULT[1];
    /// A length.
    pub(crate) LEN[1];
    /// Bytes that a result still covers.
    pub(crate) LEFT[1];
    /// Items that a function called back has done.
    pub(crate) DONE[1];
    /// Number of the first op that is run.
    pub(crate) FROM[1];
    /// Number after the last op that is run.
    pub(crate) TO[1];
    /// Number of the op that comes next.
    pub(crate) NEXT[1];
    /// Bytes of the event so far, between functions.
    pub(crate) OFFSET[1];
    /// Capture bits.
    pub(crate) CAPS[1];
    /// Not 0: the call has no result, because its task ends.
    pub(crate) CUT_OFF[1];
    /// Number of the message that the op comes to next; 0 where it is done.
    pub(crate) MORE[1];
    /// Where an array of messages starts.
    pub(crate) MSG_HEAD[1];
    /// How many messages it has.
    pub(crate) MSG_COUNT[1];

    // Of the names of descriptors.
    /// Descriptors to be described.
    pub(crate) FDS[FDS_AT_ONCE];
    /// How many descriptors those are.
    pub(crate) FD_COUNT[1];
    /// Flags of their events.
    pub(crate) FD_FLAGS[1];
    /// The entry that the walk to the root has reached.
    pub(crate) DENTRY[1];
    /// The mount that it is in.
    pub(crate) MOUNT[1];
    /// Whether the root was reached.
    pub(crate) REACHED[1];

    // Of all programs.
    /// Events that happened, but those that the filter of a probe rejected.
    pub SEEN[1];
    /// Events that were put into the ring of this place, which has one writer at a time: they are not among those in `SEEN`.
    pub PUBLISHED[1];
    /// Events that were lost: they found the ring full, the buffer taken, or no memory for their task's state.
    pub DROPPED[1];
    /// Events that a part of a filter rejected.
    pub FILTERED[PARTS];
    /// Events that lack a value which their filter names.
    pub UNKNOWN[1];
    /// Functions entered whose returns the program is for.
    pub ENTERED[1];
    /// Set by user space: which events are not recorded ([`crate::frame::session_switch`]).
    pub SWITCH[1];
    /// Set by user space: the session is over. Some programs take long to detach; what they see then is not recorded.
    pub STOPPED[1];
    /// 1 while a run of a program has claimed the buffer.
    pub BUSY[1];

    // Of a ring that programs write themselves ([`crate::own_ring`]).
    /// Bytes written.
    pub TAIL[1];
    /// Where the record that is written next begins, from the first word.
    pub NEXT_RECORD[1];
    /// Set by user space: where the data begin, from the first word.
    pub DATA[1];
    /// Set by user space: the size of the data less one.
    pub MASK[1];
    /// Set by user space: the most bytes that are written and not read.
    pub LIMIT[1];
    /// Keeps the reader's word in a cache line of its own.
    pub BEFORE[8];
    /// Written by user space: bytes read.
    pub HEAD[1];
    /// The rest of that cache line.
    pub AFTER[7];
}

/// What a map of buffers is made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// The first word.
    first: i16,
    /// Bytes for an event.
    event: u32,
    /// Bytes of the rings that the buffers contain; 0: rings are maps of their own.
    ring: u32,
}

impl Shape {
    /// For calls: all words, and the largest event.
    pub const CALLS: Shape = Shape { first: 0, event: EVENT as u32, ring: 0 };

    /// For other probes, whose events and filters need this many bytes.
    pub fn of_probe(event: usize) -> Shape {
        Shape { first: SEEN, event: event.min(EVENT).next_multiple_of(8) as u32, ring: 0 }
    }

    /// With a ring in each buffer, for this many bytes of events; none where that is too large.
    pub fn with_ring(self, bytes: usize) -> Option<Shape> {
        let shape = Shape { ring: u32::try_from(bytes).ok().filter(|n| *n < 1 << 28)?.max(8), ..self };
        (u64::from(shape.size()) < own_ring::LARGEST).then_some(shape)
    }

    /// The places of a processor, where they have rings.
    pub fn levels(self) -> Option<[Place; 2]> {
        let second = own_ring::SECOND[usize::from(!self.counts_classes())];
        Some(own_ring::places(self.words(), self.event, [self.ring()?, second]))
    }

    /// Where a place has this word, in the buffer of a processor.
    pub fn word_of(self, place: &Place, word: i16) -> usize {
        place.words as usize + self.word(word) as usize
    }

    /// The first words of each place, which user space sets before a program runs: offsets in the buffer of a processor, and values.
    pub fn first_words(self) -> impl Iterator<Item = (usize, u64)> {
        self.levels().into_iter().flatten().flat_map(move |place| {
            let data = u64::from(place.data - place.words);
            let (mask, limit) = (u64::from(place.size) - 1, place.limit.into());
            let words = [(DATA, data), (NEXT_RECORD, data), (MASK, mask), (LIMIT, limit)];
            words.map(|(word, value)| (self.word_of(&place, word), value))
        })
    }

    /// Bytes from the words of the first place to those of the second.
    pub(crate) fn stride(self) -> u32 {
        self.levels().map_or(0, |[_, second]| second.words)
    }

    /// The last byte where a record may begin, from the words of its place.
    pub(crate) fn last_record(self) -> u32 {
        let last = |place: &Place| place.data + place.size - place.words;
        self.levels().map_or(0, |places| places.iter().map(last).max().unwrap_or(0))
    }

    /// Whether the buffers are rings.
    pub const fn has_rings(self) -> bool {
        self.ring().is_some()
    }

    /// Bytes for the events of a ring in each buffer.
    pub(crate) const fn ring(self) -> Option<u32> {
        if self.ring == 0 { None } else { Some(self.ring) }
    }

    /// Bytes of words before the event.
    pub const fn words(self) -> u32 {
        WORDS as u32 - self.first as u32
    }

    /// The first of its words.
    pub const fn first_word(self) -> i16 {
        self.first
    }

    /// The offset of a word from the first one of the shape.
    pub(crate) const fn word(self, word: i16) -> i16 {
        word - self.first
    }

    /// Bytes of a buffer.
    pub fn size(self) -> u32 {
        match self.levels() {
            Some([_, last]) => last.end(),
            None => self.words() + self.event,
        }
    }

    /// Offset of a word of a processor's buffer in the array of buffers.
    pub fn index(self, cpu: u32, word: i16) -> usize {
        cpu as usize * self.size() as usize + self.word(word) as usize
    }

    /// Offsets of a word of a processor, one for each place that its programs may claim.
    pub fn indices(self, cpu: u32, word: i16) -> impl Iterator<Item = usize> {
        let second = self.levels().map(|[_, second]| second.words as usize);
        [Some(0), second].into_iter().flatten().map(move |at| self.index(cpu, word) + at)
    }

    /// Whether lost events are counted by class.
    pub fn counts_classes(self) -> bool {
        self.first <= DROPPED_CLASSES
    }
}

impl Default for Shape {
    fn default() -> Shape {
        Shape::CALLS
    }
}

/// Offsets of what a filter or a program keeps in the front of the buffer before the event is built: after any fixed part.
pub(crate) mod front {
    /// Numbers of a filter.
    pub const TEMPS: i16 = 512;
    /// How many numbers of a filter there can be.
    pub const TEMP_COUNT: usize = 32;
    /// Strings of a filter.
    pub const STRINGS: i16 = 1024;
    /// Registers of a task (`struct pt_regs`).
    pub const REGISTERS: i16 = 1024;
    /// The siginfo of a signal's event.
    pub const SIGINFO: i16 = 1024;
    const _: () = assert!(TEMPS as usize + 8 * TEMP_COUNT <= STRINGS as usize);
}

// Offsets are 16 bits; every write to the front is bounded by these, and ends before the words.
const _: () = assert!(size_of::<Words>() <= i16::MAX as usize && EVENT.is_multiple_of(8));
const _: () = assert!(MAX_EVENT as usize <= EVENT);

const fn offset(at: usize) -> i16 {
    assert!(at <= i16::MAX as usize);
    at as i16
}

/// Offset of a word of a processor's buffer in the array of buffers of calls.
pub fn index(cpu: u32, word: i16) -> usize {
    Shape::CALLS.index(cpu, word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_has_a_place_of_its_own() {
        let singles = [
            SEEN,
            DROPPED,
            PUBLISHED,
            UNKNOWN,
            BORN,
            ENDED,
            FREED,
            TOO_LATE,
            UNRETURNED,
            ENTERED,
            SWITCH,
            STOPPED,
            BUSY,
            SPARE,
            TOTAL,
            BROKEN,
            RESULT,
            LEN,
            LEFT,
            DONE,
            FROM,
            TO,
            NEXT,
            OFFSET,
            CAPS,
            CUT_OFF,
            MORE,
            MSG_HEAD,
            MSG_COUNT,
            FD_COUNT,
            FD_FLAGS,
            DENTRY,
            MOUNT,
            REACHED,
            TAIL,
            NEXT_RECORD,
            DATA,
            MASK,
            LIMIT,
            HEAD,
        ];
        let rows = [
            (DROPPED_CLASSES, CLASSES),
            (FILTERED, PARTS),
            (FILTERED_CALLS, CALLS),
            (FDS, FDS_AT_ONCE),
            (BEFORE, 8),
            (AFTER, 7),
        ];
        let mut all: Vec<(i16, usize)> = singles.iter().map(|at| (*at, 1)).chain(rows).collect();
        all.sort_unstable();
        let mut next = 0;
        for (at, n) in all {
            assert_eq!(at as usize, next, "words are declared without gaps");
            next += 8 * n;
        }
        assert_eq!(size_of::<Words>(), next, "a word is missing here");
        assert_eq!(SIZE as usize, EVENT + next);
        // From SEEN on, words are those of all programs.
        let of_all = [SEEN, DROPPED, FILTERED, UNKNOWN, ENTERED, SWITCH, STOPPED, BUSY];
        assert!(of_all.iter().all(|word| *word >= SEEN) && REACHED < SEEN && DROPPED_CLASSES < SEEN);
        for shape in [Shape::CALLS, Shape::of_probe(400)] {
            assert_eq!(shape.levels(), None);
            assert_eq!(shape.with_ring(1 << 29), None);
            let shape = shape.with_ring(1 << 20).unwrap();
            let [_, second] = shape.levels().unwrap();
            assert_eq!(shape.size(), second.end());
            // Behind the last record, wherever the verifier thinks that its place is, there is room for the largest event.
            assert!(shape.stride() + shape.last_record() + own_ring::HEADER + shape.event <= shape.size());
        }
        let probe = Shape::of_probe(100);
        assert_eq!((probe.size() as usize, probe.index(0, SEEN)), (next - SEEN as usize + 104, 0));
        assert_eq!(probe.index(1, BUSY), probe.size() as usize + (BUSY - SEEN) as usize);
    }
}
