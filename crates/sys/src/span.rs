//! Which bytes of a ring may be read: the one place where positions and lengths from another process or the kernel are checked before
//! they are used. The rings of the ptracer, of programs and of perf events all use it.
//!
//! ```text
//!        offset(head)                 offset(tail)
//!  ┌─────────┬───────────────────────────┬──────────┐
//!  │         │ record │ record │ …       │          │   positions count bytes and grow for ever; in the ring they are
//!  └─────────┴───────────────────────────┴──────────┘   taken modulo its size, a power of two
//! ```
//!
//! Invariants: a [`Span`] never holds more than the ring does; what is taken from it is inside it and never empty, so that a
//! reader terminates. A ring with other contents is no longer read: its reader [gives it up](give_up), which is
//! counted, and reported by [`given_up`].

use std::fmt;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// The alignment of positions and records, bytes.
const UNIT: u64 = 8;

/// Invalid contents of a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nonsense {
    /// More is written and not read than the ring holds, or more is read than written.
    Positions {
        /// Bytes read.
        head: u64,
        /// Bytes written.
        tail: u64,
        /// Bytes that the ring holds.
        size: u64,
    },
    /// A record whose length is impossible.
    Length {
        /// Where it begins.
        at: u64,
        /// Its length field, bytes.
        len: u64,
        /// How many bytes are left, at most.
        left: u64,
    },
}

impl fmt::Display for Nonsense {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Nonsense::Positions { head, tail, size } => write!(f, "{head} bytes read and {tail} written of {size}"),
            Nonsense::Length { at, len, left } => write!(f, "a record of {len} bytes at {at}, where there are {left}"),
        }
    }
}

/// The unread bytes of a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    head: u64,
    left: u64,
    size: u64,
}

/// The bytes between the positions `head` (read) and `tail` (written) of a ring of `size` bytes, a power of two.
#[inline]
pub fn readable(head: u64, tail: u64, size: u64) -> Result<Span, Nonsense> {
    let left = tail.wrapping_sub(head);
    let aligned = head.is_multiple_of(UNIT) && tail.is_multiple_of(UNIT);
    if left > size || !aligned || !size.is_power_of_two() || size < UNIT {
        return Err(Nonsense::Positions { head, tail, size });
    }
    Ok(Span { head, left, size })
}

impl Span {
    /// The position up to which everything is taken.
    #[inline]
    pub fn head(&self) -> u64 {
        self.head
    }

    /// Bytes that are not taken yet.
    #[inline]
    pub fn left(&self) -> u64 {
        self.left
    }

    /// Free bytes after it.
    #[inline]
    pub fn free(&self) -> u64 {
        self.size - self.left
    }

    /// Whether all of it is taken.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.left == 0
    }

    /// Where the next record begins in the ring, below its size: at least 8 bytes in front of the ring's end.
    #[inline]
    pub fn offset(&self) -> usize {
        (self.head & (self.size - 1)) as usize
    }

    /// Bytes from the next record's beginning to the ring's end.
    #[inline]
    pub fn contiguous(&self) -> u64 {
        self.size - (self.head & (self.size - 1))
    }

    /// Takes a record of `len` bytes, with its header and padding.
    #[inline]
    pub fn take(&mut self, len: u64) -> Result<(), Nonsense> {
        if len == 0 || len > self.left || !len.is_multiple_of(UNIT) {
            return Err(Nonsense::Length { at: self.head, len, left: self.left });
        }
        self.head = self.head.wrapping_add(len);
        self.left -= len;
        Ok(())
    }
}

/// The number of rings that are no longer read.
static GIVEN_UP: AtomicU64 = AtomicU64::new(0);
/// The first of them.
static FIRST: OnceLock<String> = OnceLock::new();

/// Notes that `ring` is no longer read. To be called once for each.
pub fn give_up(ring: &str, why: Nonsense) {
    FIRST.get_or_init(|| format!("{ring} has invalid contents ({why}): it is no longer read"));
    GIVEN_UP.fetch_add(1, Ordering::Release);
}

/// How many rings are no longer read, and what was wrong with the first. Each has lost one event at least.
pub fn given_up() -> Option<(u64, &'static str)> {
    let n = GIVEN_UP.load(Ordering::Acquire);
    FIRST.get().filter(|_| n > 0).map(|first| (n, first.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Valid positions and lengths, and those of an attacker who wants reads beyond the end.
    pub fn hostile() -> impl Strategy<Value = u64> {
        prop_oneof![
            any::<u64>(),
            (0u64..1 << 14).prop_map(|n| n & !7),
            (0u64..1 << 14).prop_map(|n| u64::MAX - 7 - (n & !7)),
            (0u32..64).prop_map(|n| 1 << n),
        ]
    }

    proptest! {
        #[test]
        fn what_is_taken_lies_in_the_ring_and_comes_to_an_end(
            head in hostile(),
            tail in hostile(),
            power in 0u32..64,
            lens in proptest::collection::vec(hostile(), 0..40),
        ) {
            let size = 1u64 << power;
            let Ok(mut span) = readable(head, tail, size) else {
                prop_assert!(tail.wrapping_sub(head) > size || (head | tail) % UNIT != 0 || size < UNIT);
                return Ok(());
            };
            prop_assert_eq!((span.left(), span.free()), (tail.wrapping_sub(head), size - span.left()));
            for len in lens {
                let before = span;
                prop_assert!((span.offset() as u64) < size && span.offset() as u64 + span.contiguous() == size);
                match span.take(len) {
                    Ok(()) => prop_assert!(span.left() < before.left() && span.left() + len == before.left()),
                    Err(_) => prop_assert_eq!(span, before),
                }
                prop_assert_eq!(span.head().wrapping_add(span.left()), tail);
            }
        }

        #[test]
        fn what_a_writer_means_is_read(head in any::<u64>(), fill in 0u64..=512) {
            let head = head & !7;
            let span = readable(head, head.wrapping_add(fill * 8), 4096);
            prop_assert_eq!(span.map(|s| (s.head(), s.left())), Ok((head, fill * 8)));
        }
    }

    #[test]
    fn nonsense_is_told_in_words() {
        let why = readable(16, 8, 4096).unwrap_err();
        assert_eq!(why.to_string(), "16 bytes read and 8 written of 4096");
        let mut span = readable(8, 64, 4096).unwrap();
        assert_eq!(span.take(64).unwrap_err().to_string(), "a record of 64 bytes at 8, where there are 56");
        assert!([0, 4, 57, u64::MAX].iter().all(|len| span.take(*len).is_err()));
    }
}
