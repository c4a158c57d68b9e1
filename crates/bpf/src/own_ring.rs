//! The ring that programs write without a helper: where its parts are in the scratch buffer of a processor.
//!
//! ```text
//!  ┌───────────┬───────────┬─────────────────────┬───────┬───────────┬───────┐
//!  │ words of  │ words of  │ data of place 1     │ slack │ data of   │ slack │   one value of an array that user space maps,
//!  │ place 1   │ place 2   │ record│record│ …    │       │ place 2   │       │   per processor
//!  └───────────┴───────────┴─────────────────────┴───────┴───────────┴───────┘
//!   record = u32 length, u32 0, the event, padding to 8
//! ```
//!
//! A program claims the first place, or the second where it has interrupted or preempted one that has the first. What has claimed a place
//! is the only writer of its data: nobody waits for it, and the other place goes on.
//!
//! An event is built where it will be read. A record is published when `scratch::TAIL` has passed it, and not before it is
//! complete. A record that begins in front of the end of the data may continue in the slack; the next one begins at the start of the data,
//! so nothing wraps.
//!
//! Invariant: the largest event always has room behind `TAIL`, because a record that would leave less is not published, but counted as
//! dropped. So filters and events may be tried there at any time, without asking.

/// Bytes in front of an event: its length.
pub const HEADER: u32 = 8;
/// The verifier follows offsets up to 512 MiB.
pub const LARGEST: u64 = 1 << 29;
/// Bytes for events in the second place, of calls and of other probes: what interrupts a program is rare.
pub(crate) const SECOND: [u32; 2] = [64 << 10, 16 << 10];
/// A ring of this many largest events is not made larger for the room that is kept free.
const LARGE: u32 = 16;

/// A place for events, in the buffer of a processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Where its words are.
    pub words: u32,
    /// Where its data are.
    pub data: u32,
    /// Bytes of data, a power of two.
    pub size: u32,
    /// The most bytes that are written and not read.
    pub limit: u32,
    /// Bytes after the data that a record may continue in.
    pub slack: u32,
}

impl Place {
    /// The first byte after it.
    pub const fn end(self) -> u32 {
        self.data + self.size + self.slack
    }
}

/// The two places in a buffer whose words take `words` bytes, for events of at most `event` bytes and rings for `wanted` bytes of them.
pub(crate) const fn places(words: u32, event: u32, wanted: [u32; 2]) -> [Place; 2] {
    let stride = words.next_multiple_of(64);
    let first = place(0, 2 * stride, event, wanted[0]);
    [first, place(stride, first.end(), event, wanted[1])]
}

const fn place(words: u32, data: u32, event: u32, wanted: u32) -> Place {
    let slack = (event + HEADER).next_multiple_of(64);
    let size = if wanted / LARGE >= slack { wanted.next_power_of_two() } else { (wanted + slack).next_power_of_two() };
    let most = size - slack;
    Place { words, data, size, limit: if wanted < most { wanted } else { most }, slack }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_do_not_overlap_and_leave_room_for_the_largest_event() {
        for (words, event) in [(13_000, 52 << 10), (400, 0), (400, 400), (408, 20_000)] {
            for ring in [4096, 64 << 10, 100_000, 1 << 20, 4 << 20, 200 << 20] {
                let [first, second] = places(words, event, [ring, 16 << 10]);
                assert!(words <= second.words && second.words + words <= first.data && first.words == 0);
                assert_eq!(first.end(), second.data);
                for place in [first, second] {
                    assert!(place.size.is_power_of_two() && place.slack >= event + HEADER, "{place:?}");
                    assert!(place.limit + place.slack <= place.size, "{place:?}");
                    assert_eq!([place.words % 8, place.data % 8, place.slack % 8], [0; 3], "{place:?}");
                }
                assert!(first.limit >= ring.min(ring - ring / LARGE) && first.size <= 4 * ring.max(64 << 10));
            }
        }
    }
}
