//! The reading side of the rings that trapline's own programs write without the kernel's help: places in the values of an array that is
//! mapped. What a place looks like, and who writes to it when, is defined where the programs are made (`bpf::own_ring`).
//!
//! A record is `u64` length, bytes, padding to 8. It is copied out, word by word, because other holders of the values may write to them at any
//! time. [`crate::span`] checks the positions and each length; a ring with invalid ones is given up.

use super::map::Values;
use crate::span::{self, Nonsense};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const HEADER: u64 = 8;

/// Where a place has what, in bytes from the beginning of the values.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// The word that says how many bytes are written.
    pub tail: usize,
    /// The word that says how many bytes are read.
    pub head: usize,
    /// The data.
    pub data: usize,
    /// Bytes of data, a power of two.
    pub size: usize,
    /// Bytes after them that the last record may continue in.
    pub slack: usize,
}

/// The only reader of the rings of a processor, of which programs that interrupt each other each write to one.
pub struct OwnRing {
    values: Arc<Values>,
    places: Vec<Reader>,
    /// The record that is handed out.
    record: Vec<[u8; 8]>,
}

struct Reader {
    place: Place,
    /// Bytes read. The word in the place is for the programs only.
    head: u64,
    /// It had invalid contents, and is no longer read.
    given_up: bool,
}

impl OwnRing {
    /// Reads these places, which nobody has read yet.
    ///
    /// # Errors
    /// `InvalidInput`: a place is not inside the values.
    pub fn new(values: &Arc<Values>, places: &[Place]) -> io::Result<OwnRing> {
        for p in places {
            let end = [p.size, p.slack].iter().try_fold(p.data, |sum, n| sum.checked_add(*n));
            let inside = end.is_some_and(|end| end <= values.len()) && p.data.is_multiple_of(8);
            if !inside || !p.size.is_power_of_two() || p.size < 8 {
                return Err(io::ErrorKind::InvalidInput.into());
            }
            if values.word(p.tail).is_none() || values.word(p.head).is_none() {
                return Err(io::ErrorKind::InvalidInput.into());
            }
        }
        let reader = |place: &Place| Reader { place: *place, head: 0, given_up: false };
        Ok(OwnRing { values: Arc::clone(values), places: places.iter().map(reader).collect(), record: Vec::new() })
    }

    /// Hands every record that is complete at the time of the call to `each`, for each place in order; returns how many.
    pub fn drain(&mut self, mut each: impl FnMut(&[u8])) -> usize {
        let mut count = 0;
        for reader in self.places.iter_mut().filter(|r| !r.given_up) {
            if let Err(why) = reader.read(&self.values, &mut self.record, &mut each, &mut count) {
                reader.given_up = true;
                span::give_up("a ring of programs", why);
            }
        }
        count
    }

    /// Bytes not yet read.
    pub fn available(&self) -> u64 {
        self.places.iter().map(|r| r.contents(&self.values).map_or(0, |s| s.left())).sum()
    }
}

impl Reader {
    #[inline]
    fn word<'v>(&self, values: &'v Values, at: usize) -> Result<&'v AtomicU64, Nonsense> {
        let size = self.place.size as u64;
        values.word(at).ok_or(Nonsense::Positions { head: self.head, tail: self.head, size })
    }

    /// The bytes that are written and not read.
    #[inline]
    fn contents(&self, values: &Values) -> Result<span::Span, Nonsense> {
        // Acquire: what the tail has passed is there.
        let tail = self.word(values, self.place.tail)?.load(Ordering::Acquire);
        span::readable(self.head, tail, self.place.size as u64)
    }

    fn read(
        &mut self,
        values: &Values,
        copy: &mut Vec<[u8; 8]>,
        each: &mut impl FnMut(&[u8]),
        count: &mut usize,
    ) -> Result<(), Nonsense> {
        let Place { head, data, size, slack, .. } = self.place;
        let given = self.word(values, head)?;
        let mut span = self.contents(values)?;
        // The room is released in portions: programs read this word for every event.
        let portion = (size / 8) as u64;
        while !span.is_empty() {
            let at = data + span.offset();
            let len = self.word(values, at)?.load(Ordering::Relaxed);
            let record = len.checked_add(HEADER + 7).map_or(u64::MAX, |n| n & !7);
            let nonsense = Nonsense::Length { at: span.head(), len, left: span.left() };
            if record > span.contiguous() + slack as u64 {
                return Err(nonsense);
            }
            // What is in the slack does not count: the next record begins where the data do.
            let taken = record.min(span.contiguous());
            let from = at + HEADER as usize;
            let words = values.words(from..from + (record - HEADER) as usize).ok_or(nonsense)?;
            copy.clear();
            copy.extend(words.iter().map(|w| w.load(Ordering::Relaxed).to_ne_bytes()));
            let before = span;
            span.take(taken)?;
            each(copy.as_flattened().get(..len as usize).unwrap_or_default());
            *count += 1;
            self.head = span.head();
            if before.head() / portion != span.head() / portion {
                given.store(self.head, Ordering::Release);
            }
        }
        given.store(self.head, Ordering::Release);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SIZE: usize = 4096;
    const SLACK: usize = 512;
    const PLACE: Place = Place { tail: 0, head: 64, data: 128, size: SIZE, slack: SLACK };

    fn values() -> Arc<Values> {
        Arc::new(Values::anonymous(128 + SIZE + SLACK).unwrap())
    }

    fn word(values: &Values, at: usize) -> &AtomicU64 {
        values.word(at).unwrap()
    }

    /// Writes a record as programs do: the room was asked for.
    fn write(values: &Values, event: &[u8]) {
        let tail = word(values, PLACE.tail).load(Ordering::Relaxed);
        let at = PLACE.data + tail as usize % SIZE;
        word(values, at).store(event.len() as u64, Ordering::Relaxed);
        for (i, chunk) in event.chunks(8).enumerate() {
            let mut bytes = [0; 8];
            bytes[..chunk.len()].copy_from_slice(chunk);
            word(values, at + 8 + 8 * i).store(u64::from_ne_bytes(bytes), Ordering::Relaxed);
        }
        let next = (tail + ((event.len() as u64 + 15) & !7)).min((tail | (SIZE as u64 - 1)) + 1);
        word(values, PLACE.tail).store(next, Ordering::Release);
    }

    fn drained(ring: &mut OwnRing) -> Vec<Vec<u8>> {
        let mut out = Vec::new();
        let n = ring.drain(|r| out.push(r.to_vec()));
        assert_eq!(n, out.len());
        out
    }

    #[test]
    fn records_come_in_order_across_the_end() {
        let values = values();
        let mut ring = OwnRing::new(&values, &[PLACE]).unwrap();
        for i in 0..2000usize {
            let events = [vec![i as u8; 1 + i * 7 % 490], vec![!i as u8; i % 9]];
            events.iter().for_each(|e| write(&values, e));
            assert_eq!(drained(&mut ring), events);
            assert_eq!(
                (ring.available(), word(&values, 64).load(Ordering::Relaxed)),
                (0, word(&values, 0).load(Ordering::Relaxed))
            );
        }
    }

    /// Miri tries orders of both sides, and finds what they do not order.
    #[test]
    fn two_threads_meet_at_every_place_of_the_ring() {
        let values = values();
        let mut ring = OwnRing::new(&values, &[PLACE]).unwrap();
        let records = if cfg!(miri) { 40 } else { 20_000 };
        let record = |n: usize| vec![n as u8; n * 137 % 490];
        let writes = || {
            for n in 0..records {
                let tail = word(&values, PLACE.tail).load(Ordering::Relaxed);
                while tail + SLACK as u64 > word(&values, PLACE.head).load(Ordering::Acquire) + SIZE as u64 {
                    std::thread::yield_now();
                }
                write(&values, &record(n));
            }
        };
        std::thread::scope(|s| {
            s.spawn(writes);
            let mut next = 0;
            while next < records {
                ring.drain(|r| {
                    assert_eq!(r, record(next));
                    next += 1;
                });
                std::thread::yield_now();
            }
        });
    }

    #[test]
    fn a_record_is_not_read_before_the_tail_has_passed_it() {
        let values = values();
        let mut ring = OwnRing::new(&values, &[PLACE]).unwrap();
        word(&values, PLACE.data).store(16, Ordering::Relaxed);
        assert_eq!((drained(&mut ring).len(), ring.available()), (0, 0));
        word(&values, PLACE.tail).store(24, Ordering::Release);
        assert_eq!((ring.available(), drained(&mut ring).len()), (24, 1));
    }

    #[test]
    fn later_writes_do_not_change_a_record_that_was_read() {
        let values = values();
        let [mut one, mut other] = [0, 1].map(|_| OwnRing::new(&values, &[PLACE]).unwrap());
        [b"first", b"other"].iter().for_each(|e| write(&values, *e));
        let mut seen = Vec::new();
        one.drain(|record| {
            if seen.is_empty() {
                other.drain(|_| {});
                (PLACE.data..PLACE.data + 64).step_by(8).for_each(|at| word(&values, at).store(0, Ordering::Relaxed));
                word(&values, PLACE.data + 16).store(5, Ordering::Relaxed);
            }
            seen.push(record.to_vec());
        });
        assert_eq!(seen, [b"first".to_vec(), vec![0; 5]]);
    }

    #[test]
    fn places_outside_the_values_are_refused() {
        let values = values();
        let beyond = |place: Place| OwnRing::new(&values, &[place]).is_err();
        assert!(beyond(Place { data: 1 << 20, ..PLACE }) && beyond(Place { slack: usize::MAX, ..PLACE }));
        assert!(
            beyond(Place { tail: 3, ..PLACE })
                && beyond(Place { head: 1 << 20, ..PLACE })
                && beyond(Place { size: 48, ..PLACE })
        );
    }

    proptest! {
        #[test]
        fn hostile_contents_are_not_followed(
            tail in prop_oneof![any::<u64>(), (0u64..520).prop_map(|n| n * 8)],
            lens in proptest::collection::vec(prop_oneof![0u64..99, any::<u64>(), 4000u64..5000], SIZE / 8),
        ) {
            let values = values();
            for (i, len) in lens.iter().enumerate() {
                word(&values, PLACE.data + 8 * i).store(*len, Ordering::Relaxed);
            }
            word(&values, PLACE.tail).store(tail, Ordering::Relaxed);
            let mut ring = OwnRing::new(&values, &[PLACE]).unwrap();
            let records = drained(&mut ring);
            prop_assert!(records.iter().map(|r| r.len() + 8).sum::<usize>() <= SIZE + SLACK);
            prop_assert!(word(&values, PLACE.head).load(Ordering::Relaxed) <= tail);
        }
    }
}
