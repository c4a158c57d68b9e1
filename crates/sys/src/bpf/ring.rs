//! The reading side of a ring that programs write (`BPF_MAP_TYPE_RINGBUF`, Linux 5.8).
//!
//! ```text
//!  page 0        page 1        page 2
//!  ┌───────────┬─────────────┬──────────────────┬──────────────────┐
//!  │ consumer  │ producer    │ data             │ the same data    │   record = u32 length and flags, u32 page, bytes, pad
//!  └───────────┴─────────────┴──────────────────┴──────────────────┘             to 8
//!   ours to write  the kernel's: mapped to read
//! ```
//!
//! Mapped twice, a record that crosses the end is still contiguous. Positions count bytes and never wrap. A record is handed
//! out in place: the kernel does not reuse its room before the consumer position has passed it, and that is moved only after
//! `each` has returned. [`crate::span`] checks the positions and each length; a ring with invalid ones is given up.

use super::map::{Map, MapKind};
use crate::mapping::page_size;
use crate::mapping::{Mapping, Mode};
use crate::span::{self, Nonsense};
use std::io;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

const BUSY: u32 = 1 << 31;
const DISCARD: u32 = 1 << 30;
const HEADER: usize = 8;

/// The only reader of a ring. The mapping keeps the ring itself; the map's descriptor may be closed.
pub struct Ring {
    view: View,
    _consumer: Mapping,
    _producer: Mapping,
}

// SAFETY: the addresses of `view` point into the two mappings, which move with it; all that is shared with the kernel is
// accessed through atomics or after their acquire.
unsafe impl Send for Ring {}

impl Ring {
    /// Maps a ring.
    ///
    /// # Errors
    /// `InvalidInput`: not a ring. `ResourceBusy`: it has a reader. A second one would move the position while the first hands a
    /// record out in place.
    pub fn new(map: &Map) -> io::Result<Ring> {
        let (page, size) = (page_size(), map.entries() as usize);
        if map.kind() != MapKind::RingBuf || !size.is_power_of_two() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let consumer = Mapping::new(map.as_fd(), 0, page, Mode::Shared)?;
        let producer = Mapping::new(map.as_fd(), page, page + 2 * size, Mode::SharedRead)?;
        if !map.claim_reader() {
            return Err(io::ErrorKind::ResourceBusy.into());
        }
        // SAFETY: the data follow the producer's page.
        let data = unsafe { producer.base().add(page) };
        let (consumer_at, producer_at) = (consumer.base().cast(), producer.base().cast());
        let view = View { consumer: consumer_at, producer: producer_at, data, size, given_up: false };
        Ok(Ring { view, _consumer: consumer, _producer: producer })
    }

    /// Hands every record that is finished at the time of the call to `each`, in order; returns how many.
    ///
    /// Records after one that is still being written wait for it.
    pub fn drain(&mut self, each: impl FnMut(&[u8])) -> usize {
        self.view.drain(each)
    }

    /// Bytes not yet read, with headers, discarded and unfinished records.
    pub fn available(&self) -> u64 {
        self.view.contents().map_or(0, |s| s.left())
    }

    /// Bytes of data that it holds.
    pub fn size(&self) -> usize {
        self.view.size
    }
}

/// The ring's parts. Invariant: `consumer` and `producer` are valid words, `data` is `2 * size` readable bytes whose halves
/// are the same memory, and `size` is a power of two.
struct View {
    consumer: *const AtomicU64,
    producer: *const AtomicU64,
    data: *const u8,
    size: usize,
    /// It had invalid contents, and is no longer read.
    given_up: bool,
}

impl View {
    fn positions(&self) -> (&AtomicU64, &AtomicU64) {
        // SAFETY: valid by the invariant as long as `self`; page-aligned.
        unsafe { (&*self.consumer, &*self.producer) }
    }

    /// The bytes that are written and not read.
    fn contents(&self) -> Result<span::Span, Nonsense> {
        let (consumer, producer) = self.positions();
        // Ours alone: relaxed. Acquire pairs with the release of the kernel's reservation, so that headers are there.
        let at = consumer.load(Ordering::Relaxed);
        span::readable(at, producer.load(Ordering::Acquire), self.size as u64)
    }

    fn drain(&mut self, each: impl FnMut(&[u8])) -> usize {
        if self.given_up {
            return 0;
        }
        let mut count = 0;
        if let Err(why) = self.read(each, &mut count) {
            self.given_up = true;
            span::give_up("a ring of programs", why);
        }
        count
    }

    fn read(&self, mut each: impl FnMut(&[u8]), count: &mut usize) -> Result<(), Nonsense> {
        let mut span = self.contents()?;
        let consumer = self.positions().0;
        // The room is released in portions: the kernel reads this word at every reservation.
        let portion = (self.size / 8) as u64;
        let mut given = span.head();
        while !span.is_empty() {
            let offset = span.offset();
            // SAFETY: `offset` is below `size` and a multiple of 8; the word is an atomic for the kernel too.
            let header = unsafe { &*self.data.add(offset).cast::<AtomicU32>() };
            // Pairs with the xchg that submits: without the busy bit the bytes are there.
            let header = header.load(Ordering::Acquire);
            if header & BUSY != 0 {
                break;
            }
            let len = (header & !DISCARD) as usize;
            span.take((len + HEADER).next_multiple_of(8) as u64)?;
            if header & DISCARD == 0 {
                // SAFETY: `offset + 8 + len` is below `2 * size` (checked); nobody writes it before the position moves.
                each(unsafe { std::slice::from_raw_parts(self.data.add(offset + HEADER), len) });
                *count += 1;
            }
            if span.head() - given >= portion {
                given = span.head();
                consumer.store(given, Ordering::Release);
            }
        }
        if span.head() != given {
            consumer.store(span.head(), Ordering::Release);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A ring in plain memory, whose halves the test keeps equal itself.
    struct Fake {
        consumer: AtomicU64,
        producer: AtomicU64,
        data: Vec<u64>,
        size: usize,
        given_up: bool,
    }

    impl Fake {
        fn new(size: usize) -> Fake {
            Fake { consumer: 0.into(), producer: 0.into(), data: vec![0; size / 4], size, given_up: false }
        }

        fn bytes(&mut self) -> &mut [u8] {
            // SAFETY: the same memory as bytes.
            unsafe { std::slice::from_raw_parts_mut(self.data.as_mut_ptr().cast(), self.size * 2) }
        }

        fn write(&mut self, flags: u32, record: &[u8]) {
            let (at, size) = (self.producer.load(Ordering::Relaxed) as usize, self.size);
            let mut all = (record.len() as u32 | flags).to_le_bytes().to_vec();
            all.extend([0; 4]);
            all.extend(record);
            for (i, b) in all.iter().enumerate() {
                let to = (at + i) & (size - 1);
                self.bytes()[to] = *b;
                self.bytes()[to + size] = *b;
            }
            self.producer.store((at + all.len().next_multiple_of(8)) as u64, Ordering::Release);
        }

        fn drain(&mut self) -> (usize, Vec<Vec<u8>>) {
            let mut out = Vec::new();
            let mut view = View {
                consumer: &self.consumer,
                producer: &self.producer,
                data: self.data.as_ptr().cast(),
                size: self.size,
                given_up: self.given_up,
            };
            let n = view.drain(|r| out.push(r.to_vec()));
            self.given_up = view.given_up;
            (n, out)
        }
    }

    #[test]
    fn records_come_in_order_across_the_end() {
        let mut ring = Fake::new(4096);
        for i in 0..1000usize {
            let record = vec![i as u8; 1 + i * 7 % 900];
            ring.write(0, &record);
            assert_eq!(ring.drain(), (1, vec![record]));
        }
        assert_eq!(ring.consumer.load(Ordering::Relaxed), ring.producer.load(Ordering::Relaxed));
    }

    #[test]
    fn discarded_records_are_skipped_and_an_unfinished_one_is_waited_for() {
        let mut ring = Fake::new(4096);
        ring.write(0, b"one");
        ring.write(DISCARD, b"never");
        let at = ring.producer.load(Ordering::Relaxed) as usize;
        ring.write(BUSY, b"two");
        ring.write(0, b"three");
        assert_eq!(ring.drain(), (1, vec![b"one".to_vec()]));
        assert_eq!(ring.consumer.load(Ordering::Relaxed), at as u64);
        ring.bytes()[at + 3] = 0;
        assert_eq!(ring.drain(), (2, vec![b"two".to_vec(), b"three".to_vec()]));
        assert_eq!(ring.drain(), (0, vec![]));
    }

    #[test]
    fn a_length_beyond_what_was_written_is_not_followed() {
        let mut ring = Fake::new(4096);
        ring.write(0, b"one");
        ring.write(0, b"two");
        let (high, low) = (0x3f, 0xff);
        ring.bytes()[16] = low;
        ring.bytes()[19] = high;
        assert_eq!(ring.drain(), (1, vec![b"one".to_vec()]));
        assert!(ring.given_up);
        ring.bytes()[19] = 0;
        ring.bytes()[16] = 3;
        assert_eq!(ring.drain(), (0, vec![]));
    }

    proptest! {
        #[test]
        fn hostile_contents_are_not_followed(
            consumer in prop_oneof![any::<u64>(), (0u64..1200).prop_map(|n| n * 8)],
            ahead in prop_oneof![any::<u64>(), (0u64..520).prop_map(|n| n * 8)],
            words in proptest::collection::vec(prop_oneof![0u32..99, any::<u32>(), (0u32..99).prop_map(|n| n | DISCARD)], 1024),
        ) {
            let mut ring = Fake::new(4096);
            let bytes: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
            ring.bytes()[..4096].copy_from_slice(&bytes);
            ring.bytes()[4096..].copy_from_slice(&bytes);
            ring.consumer = consumer.into();
            ring.producer = consumer.wrapping_add(ahead).into();
            let (n, records) = ring.drain();
            prop_assert!(n <= 512 && n == records.len() && records.iter().map(|r| r.len() + 8).sum::<usize>() <= 4096);
            let read = ring.consumer.load(Ordering::Relaxed).wrapping_sub(consumer);
            prop_assert!(read == 0 || read <= ahead && read <= 4096, "{read} of {ahead}");
        }
    }
}
