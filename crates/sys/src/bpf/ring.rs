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
//! `each` has returned.

use super::map::{Map, MapKind};
use super::mapping::{Mapping, Mode};
use super::page_size;
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
    /// Maps a ring. There must be one reader only: two would hand out each record twice.
    pub fn new(map: &Map) -> io::Result<Ring> {
        let (page, size) = (page_size(), map.entries() as usize);
        if map.kind() != MapKind::RingBuf || !size.is_power_of_two() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let consumer = Mapping::new(map.as_fd(), 0, page, Mode::Shared)?;
        let producer = Mapping::new(map.as_fd(), page, page + 2 * size, Mode::SharedRead)?;
        // SAFETY: the data follow the producer's page.
        let data = unsafe { producer.base().add(page) };
        let view = View { consumer: consumer.base().cast(), producer: producer.base().cast(), data, size };
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
        let (consumer, producer) = self.view.positions();
        producer.load(Ordering::Acquire).wrapping_sub(consumer.load(Ordering::Relaxed))
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
}

impl View {
    fn positions(&self) -> (&AtomicU64, &AtomicU64) {
        // SAFETY: valid by the invariant as long as `self`; page-aligned.
        unsafe { (&*self.consumer, &*self.producer) }
    }

    fn drain(&mut self, mut each: impl FnMut(&[u8])) -> usize {
        let (consumer, producer) = self.positions();
        // Ours alone: relaxed. Acquire pairs with the release of the kernel's reservation, so that headers are there.
        let mut at = consumer.load(Ordering::Relaxed);
        let end = producer.load(Ordering::Acquire);
        // The room is given back in portions: the kernel reads this word at every reservation.
        let portion = (self.size / 8) as u64;
        let (mut given, mut count) = (at, 0);
        while at < end {
            let offset = at as usize & (self.size - 1);
            // SAFETY: `offset` is below `size` and a multiple of 8; the word is an atomic for the kernel too.
            let header = unsafe { &*self.data.add(offset).cast::<AtomicU32>() };
            // Pairs with the xchg that submits: without the busy bit the bytes are there.
            let header = header.load(Ordering::Acquire);
            let len = (header & !(BUSY | DISCARD)) as usize;
            let step = (len + HEADER).next_multiple_of(8) as u64;
            if header & BUSY != 0 || step > end - at || step > self.size as u64 {
                break; // Unfinished (or not a ring: read nothing more).
            }
            if header & DISCARD == 0 {
                // SAFETY: `offset + 8 + len` is below `2 * size` (checked); nobody writes it before the position moves.
                each(unsafe { std::slice::from_raw_parts(self.data.add(offset + HEADER), len) });
                count += 1;
            }
            at += step;
            if at - given >= portion {
                consumer.store(at, Ordering::Release);
                given = at;
            }
        }
        if at != given {
            consumer.store(at, Ordering::Release);
        }
        count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A ring in plain memory, whose halves the test keeps equal itself.
    struct Fake {
        consumer: AtomicU64,
        producer: AtomicU64,
        data: Vec<u64>,
        size: usize,
    }

    impl Fake {
        fn new(size: usize) -> Fake {
            Fake { consumer: 0.into(), producer: 0.into(), data: vec![0; size / 4], size }
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
            };
            let n = view.drain(|r| out.push(r.to_vec()));
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
    }
}
